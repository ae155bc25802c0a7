# SPDX-License-Identifier: GPL-3.0-or-later
"""Many takes in one call."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from fractions import Fraction

import bpy
import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.blender import armature, characters, compat, export_character, scenes
from mocap_addon.blender.batch import retarget_all, takes_of_rig
from mocap_addon.blender.job import JobOptions, retarget_onto
from mocap_addon.motion.errors import MocapError
from mocap_addon.retarget.mask import Mask
from tests.blender import take_makers as make
from tests.blender.helpers import keys_of, limb, snapshot
from tests.paths import ROOT

CHARACTER = ROOT / "mocap_addon" / "demo" / "character.glb"


def character():
    scenes.set_rate(bpy.context.scene, Fraction(120))
    return characters.bring_in(CHARACTER).armature


def walks(count: int, frames: int = 60):
    """Takes that differ in length, read when asked for."""
    (walk,) = formats.read(make.WALK)
    for k in range(count):
        n = frames - 3 * k
        at = np.arange(n) % walk.frames
        motion = {"local_rotations": walk.local_rotations[at], "local_translations": walk.local_translations[at]}
        yield replace(walk, name=f"walk {k}", times=np.arange(n) / 120, **motion)


def test_each_take_is_the_action_that_one_call_makes():
    obj = character()
    found = retarget_all(obj, walks(4))
    assert [r.action.name for r in found] == ["walk 0", "walk 1", "walk 2", "walk 3"]
    assert obj.animation_data.action == found[0].action
    assert [r.action.use_fake_user for r in found] == [False, True, True, True]
    for result, take in zip(found, walks(4), strict=True):
        alone = retarget_onto(obj, take)
        assert keys_of(alone.action) == keys_of(result.action)
        assert result.table == alone.table and result.notes == alone.notes


def test_all_or_none():
    obj = character()
    retarget_all(obj, walks(1))
    bpy.context.view_layer.update()  # the action shows
    obj.pose.bones["pelvis"].location = (1.0, 2.0, 3.0)  # a change without keys
    bpy.context.view_layer.update()
    before = snapshot()

    def broken():
        yield from walks(2)
        yield replace(next(walks(1)), name="bad", skeleton=next(walks(1)).skeleton.renamed([f"x{i}" for i in range(31)]))

    with pytest.raises(MocapError, match='Take "bad"'):
        retarget_all(obj, broken())
    assert snapshot() == before
    with pytest.raises(MocapError, match="cancelled"):
        retarget_all(obj, walks(5), progress=lambda done: done < 3)
    assert snapshot() == before
    with pytest.raises(MocapError, match="no take"):
        retarget_all(obj, [])
    assert snapshot() == before


def test_every_action_of_a_rig():
    source = make.bvh_rig()
    make.second_action(source, "Far walk")
    obj = character()
    found = retarget_all(obj, takes_of_rig(source))
    assert [r.take for r in found] == ["Walk", "Far walk"]
    assert source.animation_data.action.name == "Walk"
    assert keys_of(found[0].action) != keys_of(found[1].action)


def test_a_rig_without_actions():
    source = limb("Still")
    with pytest.raises(MocapError, match="no take"):
        retarget_all(character(), takes_of_rig(source))


def test_memory_is_that_of_the_longest_take():
    """numpy's arrays, as Python counts them; the keys are in Blender's own memory."""
    obj = character()
    retarget_all(obj, walks(1))  # what is worked out once

    def peak(takes) -> int:
        tracemalloc.start()
        try:
            retarget_all(obj, takes)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    one = peak(walks(1, 1500))
    assert one > 5_000_000
    assert peak(walks(8, 1500)) < 1.5 * one


def test_the_character_is_read_once(monkeypatch):
    """What does not depend on the take is not done again for each of ten."""
    obj, calls, real = character(), [], armature.read
    monkeypatch.setattr(armature, "read", lambda *a, **k: calls.append(1) or real(*a, **k))
    assert len(retarget_all(obj, walks(10, 40))) == 10
    assert len(calls) == 1


def test_every_take_lies_over_the_motion_there_was():
    """Parts that a mask leaves out keep the action from before the call, not that of the take before."""
    obj = character()
    old = retarget_onto(obj, replace(next(walks(1)).block(20, 21), name="old"), options=JobOptions(frame_start=1.0)).action
    made = retarget_all(obj, walks(3), options=JobOptions(frame_start=1.0, mask=Mask(parts=frozenset({"left arm"}))))
    for one in made:
        kept = {curve.data_path: curve.evaluate(30.0) for curve in compat.all_curves(one.action) if "thigh_r" in curve.data_path}
        assert kept == pytest.approx(
            {curve.data_path: curve.evaluate(30.0) for curve in compat.all_curves(old) if "thigh_r" in curve.data_path}, abs=1e-5
        )
        arm = [curve for curve in compat.all_curves(one.action) if "upperarm_l" in curve.data_path]
        assert max(np.ptp([key.co[1] for key in curve.keyframe_points]) for curve in arm) > 0.01


def test_a_character_that_a_script_has_just_made(tmp_path):
    """Blender gives an object its pose when it is evaluated; one that stands in no collection never is."""
    new = bpy.data.objects.new("Second", character().data)
    with pytest.raises(MocapError, match='"Second" is in no collection'):
        export_character.export(new, tmp_path / "character.glb")
    bpy.context.scene.collection.objects.link(new)
    assert new.pose is None
    assert len(retarget_all(new, walks(2))) == 2
    third = bpy.data.objects.new("Third", new.data)
    bpy.context.scene.collection.objects.link(third)
    assert export_character.export(third, tmp_path / "character.glb").exists()
