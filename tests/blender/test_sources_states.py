# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigs as sources in awkward states: linked, overridden, out of sight, with strips in every mood."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from mocap_addon.blender import compat, sources
from mocap_addon.motion.errors import RigError, TargetError
from tests.blender import take_makers as make
from tests.blender.helpers import limb
from tests.blender.test_sources import assert_plays, assign, key_bones, nla


@pytest.fixture
def library(tmp_path):
    """A rig with two actions in a file of its own, and what is in them."""
    obj = make.bvh_rig()
    make.second_action(obj, "Far walk")
    truth = {name: sources.read_rig(obj, action=name).global_positions for name in ("Walk", "Far walk")}
    path = make.save_blend(tmp_path / "library.blend")
    bpy.ops.wm.read_factory_settings(use_empty=True)
    with bpy.data.libraries.load(str(path), link=True) as (there, here):
        here.objects, here.actions = ["Source"], list(there.actions)
    bpy.context.scene.collection.objects.link(here.objects[0])
    return here.objects[0], truth


@pytest.mark.parametrize("method", ["curves", "depsgraph"])
def test_linked(library, method):
    obj, truth = library
    before = make.everything()
    np.testing.assert_allclose(sources.read_rig(obj, method=method).global_positions, truth["Walk"], atol=1e-5)
    if method == "curves":
        np.testing.assert_allclose(sources.read_rig(obj, action="Far walk").global_positions, truth["Far walk"], atol=1e-5)
    else:
        with pytest.raises(RigError, match="linked from another file"):
            sources.read_rig(obj, action="Far walk", method=method)
    assert make.everything() == before
    assert [(t.label, t.assigned) for t in sources.takes_of(obj)] == [("Walk", True), ("Far walk", False)]


@pytest.mark.parametrize("method", ["curves", "depsgraph"])
def test_overridden(library, method):
    linked, truth = library
    linked.override_hierarchy_create(bpy.context.scene, bpy.context.view_layer, do_fully_editable=True)
    obj = next(o for o in bpy.context.scene.objects if o.override_library)
    before = make.everything()
    for name, places in truth.items():
        np.testing.assert_allclose(sources.read_rig(obj, action=name, method=method).global_positions, places, atol=1e-5)
    bpy.context.view_layer.update()
    assert make.everything() == before


@pytest.mark.parametrize("where", ["excluded", "nowhere"])
def test_out_of_sight(where):
    obj = limb()
    assign(obj, *key_bones(obj, np.random.default_rng(1)))
    truth = sources.read_rig(obj).global_positions
    bpy.context.scene.collection.objects.unlink(obj)
    if where == "excluded":
        collection = bpy.data.collections.new("Away")
        bpy.context.scene.collection.children.link(collection)
        collection.objects.link(obj)
        bpy.context.view_layer.layer_collection.children["Away"].exclude = True
    for method in ("curves", "depsgraph"):
        np.testing.assert_allclose(sources.read_rig(obj, method=method).global_positions, truth, atol=1e-5)


def test_an_action_without_its_slot():
    if not compat.SLOTTED:
        pytest.skip("actions have no slots before Blender 4.4")
    obj = limb()
    assign(obj, *key_bones(obj, np.random.default_rng(2)))
    obj.animation_data.action_slot = None
    with pytest.raises(RigError, match='No slot of the action "Walk"'):
        sources.read_rig(obj)
    assert sources.read_rig(obj, action="Walk").frames == 24


def test_a_strip_that_is_being_edited():
    obj = limb()
    _action, strip = nla(obj)
    obj.animation_data.nla_tracks.active = obj.animation_data.nla_tracks[0]
    strip.select = True
    obj.animation_data.use_tweak_mode = True
    assert obj.animation_data.use_tweak_mode
    playing = sources.read_rig(obj)
    assert "tweak" in playing.facts["because"]
    assert sources.read_rig(obj, action="Strip").facts["evaluated"] == "curves"
    with pytest.raises(RigError, match="tweak mode"):
        sources.read_rig(obj, action="Strip", method="depsgraph")
    assert obj.animation_data.use_tweak_mode


def test_influence_over_time_and_muted_tracks():
    obj = limb()
    _action, strip = nla(obj)
    strip.use_animated_influence = True
    influence = strip.fcurves.find("influence")
    for frame, value in ((10, 0.0), (40, 1.0)):
        influence.keyframe_points.insert(frame, value)
    assert_plays(sources.read_rig(obj), obj, range(10, 59), tolerance=3e-5)
    obj.animation_data.nla_tracks[0].mute = True
    with pytest.raises(RigError, match='name one of "Strip"'):
        sources.read_rig(obj)


def test_an_armature_without_bones():
    obj = bpy.data.objects.new("Bare", bpy.data.armatures.new("Bare"))
    for call in (sources.read_rig, sources.takes_of):
        with pytest.raises(TargetError, match="no bones"):
            call(obj)
