# SPDX-License-Identifier: GPL-3.0-or-later
"""The Feet panel and its operators."""

from __future__ import annotations

from dataclasses import fields

import bpy
import pytest

from mocap_addon.blender import compat
from mocap_addon.blender.feet_recipe import FeetOptions, GroundChoice, feet_of
from mocap_addon.feet.settings import FeetSettings
from mocap_addon.ui import feet_memory, feet_overlay, feet_panels, feet_settings

from .helpers import press_retarget, refused
from .test_drawing import context, drawn


@pytest.fixture
def walking(character, walk):
    bpy.context.scene.mocap.filepath = walk
    press_retarget()
    assert character.animation_data.action is not None
    return character


def test_every_constant_is_in_one_panel_with_its_default():
    owner = bpy.context.scene.mocap.feet
    shown = [name for group in ("contacts", "legs", "als", "ground", "planting") for name in feet_settings.names_of(group)]
    assert sorted(shown) == sorted(FeetSettings.describe())
    for name, (default, unit, text) in FeetSettings.describe().items():
        prop = owner.bl_rna.properties[name]
        assert getattr(owner, name) == pytest.approx(default, rel=1e-6) and prop.description == text.removesuffix("."), name
        assert unit in ("1", "0..1") or "(" in prop.name, name


def test_the_panel_untouched_is_the_program_s_default(character):
    found = feet_settings.options(bpy.context.scene.mocap.feet, character)
    assert found.settings == FeetSettings() and found == FeetOptions(settings=found.settings)


def test_settings_there_and_back(character):
    owner = bpy.context.scene.mocap.feet
    wanted = FeetOptions(
        FeetSettings(mode="als", exact_slope=False, pin_hips=True, trace_up=0.31, als_rate=120.0),
        GroundChoice("plane", height=0.25),
        (3.0, 40.0),
        keep="track",
    )
    feet_settings.fill(owner, wanted)
    assert feet_settings.options(owner, character) == wanted
    assert {f.name for f in fields(FeetSettings) if not f.metadata} == {"mode", "exact_slope", "hold_contacts", "pin_hips"}


def test_bake_and_again_from_the_panel(walking):
    owner = bpy.context.scene.mocap.feet
    owner.ground = "FLOOR"
    before = walking.animation_data.action
    assert bpy.ops.mocap.bake_feet() == {"FINISHED"}
    action = walking.animation_data.action
    assert action != before and feet_of(action)["source"] == before.name
    assert feet_memory.of(action).action == action
    assert bpy.ops.mocap.bake_feet(how="AGAIN") == {"FINISHED"}
    assert walking.animation_data.action.name == f"{before.name} feet"
    owner.ground = "PLANE"
    assert bpy.ops.mocap.feet_as_baked() == {"FINISHED"} and owner.ground == "FLOOR"


def test_measuring_changes_nothing(walking):
    before = walking.animation_data.action
    keys = [len(c.keyframe_points) for c in compat.all_curves(before)]
    assert bpy.ops.mocap.check_feet() == {"FINISHED"}
    assert walking.animation_data.action == before
    assert keys == [len(c.keyframe_points) for c in compat.all_curves(before)]
    assert feet_memory.report_of(before)


def test_sentences_of_the_operators(character):
    for operator, sentence in ((bpy.ops.mocap.bake_feet, "plays an action"), (bpy.ops.mocap.foot_contact, "Bake the feet first")):
        with pytest.raises(RuntimeError, match=sentence):
            operator()


def test_an_empty_collection_is_said_so(walking):
    bpy.context.scene.mocap.feet.ground = "COLLECTION"
    assert "No collection is chosen" in refused(bpy.ops.mocap.bake_feet)
    bpy.context.scene.mocap.feet.collection = bpy.data.collections.new("empty")
    assert "surface to stand on" in refused(bpy.ops.mocap.bake_feet)


def lock(obj, side="l"):
    return next(c for c in compat.moving_curves(obj.animation_data) if c.data_path == f'["foot_lock_{side}"]')


def test_contacts_are_forced_moved_and_put_back(walking):
    bpy.context.scene.mocap.feet.ground = "FLOOR"
    bpy.ops.mocap.bake_feet()
    found = [tuple(p.co) for p in lock(walking).keyframe_points]
    bpy.ops.mocap.foot_contact(side="LEFT", what="ON", start=10.0, end=14.0)
    assert all(lock(walking).evaluate(f) == 1.0 for f in (10, 13.9))
    bpy.ops.mocap.foot_contact(side="LEFT", what="OFF", start=12.0, end=13.0)
    assert [lock(walking).evaluate(f) for f in (11, 12, 12.9, 13)] == [1, 0, 0, 1]
    bpy.context.scene.frame_set(11)
    bpy.ops.mocap.foot_contact(side="LEFT", what="END")
    assert [lock(walking).evaluate(f) for f in (10.5, 11, 12)] == [1, 0, 0]
    bpy.ops.mocap.foot_contact(side="LEFT", what="FOUND")
    assert [tuple(p.co) for p in lock(walking).keyframe_points] == found


def test_the_panel_is_drawn_in_every_state(walking):
    owner = bpy.context.scene.mocap.feet
    for mode in ("PLANT", "ALS", "OFF"):
        for ground in ("SCENE", "COLLECTION", "OBJECTS", "PLANE", "FLOOR"):
            owner.mode, owner.ground = mode, ground
            assert "Ground" in drawn(*feet_panels.PANELS)
    owner.mode, owner.ground, owner.use_range = "PLANT", "FLOOR", True
    assert "Bake the feet first" in drawn(*feet_panels.PANELS)
    owner.use_range = False
    bpy.ops.mocap.bake_feet()
    text = drawn(*feet_panels.PANELS)
    assert "mocap.bake_feet" in text or "Bake Again" in text
    assert "Left: " in text and "Made From" in text
    assert context() is not None


def test_soles_are_measured_and_typed(walking):
    assert bpy.ops.mocap.measure_soles() == {"FINISHED"}
    sole = walking.mocap.sole_left
    assert 0.03 < sole.heel_height < 0.15 and not sole.use
    assert feet_settings.options(bpy.context.scene.mocap.feet, walking).soles == {}
    sole.use, sole.heel_height = True, 0.125
    found = feet_settings.options(bpy.context.scene.mocap.feet, walking).soles
    assert found["left"].heel_height == pytest.approx(0.125) and "right" not in found


def test_no_drawing_in_the_background_and_none_left_behind(walking):
    owner = bpy.context.scene.mocap.feet
    owner.ground, owner.show = "FLOOR", True
    assert feet_overlay.shown() is not bpy.app.background
    owner.show = False
    assert not feet_overlay.shown()


def test_what_is_drawn(walking):
    owner = bpy.context.scene.mocap.feet
    owner.ground = "FLOOR"
    assert feet_overlay.lines_of(bpy.context.scene, walking).lines == []
    bpy.ops.mocap.bake_feet()
    full = feet_overlay.lines_of(bpy.context.scene, walking).lines
    assert len(full) > 6 and all(points.shape[1] == 3 and len(points) % 2 == 0 for points, _, _ in full)
    feet_memory.forget_all()  # as after opening the file again: footprints are in the action
    later = feet_overlay.lines_of(bpy.context.scene, walking).lines
    assert 0 < len(later) < len(full)


def test_objects_of_the_ground():
    owner = bpy.context.scene.mocap.feet
    assert "selected" in refused(bpy.ops.mocap.ground_objects, what="ADD")
    bpy.ops.mesh.primitive_plane_add()
    assert bpy.ops.mocap.ground_objects(what="ADD") == {"FINISHED"}
    owner.ground = "OBJECTS"
    assert feet_settings.ground_of(owner) == GroundChoice("objects", ("Plane",))
    bpy.ops.mocap.ground_objects(what="REMOVE")
    assert len(owner.objects) == 0
