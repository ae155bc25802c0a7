# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded takes on characters over flat ground, hills and stairs, as Blender shows them afterwards."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from mocap_addon.blender import compat, feet
from mocap_addon.blender.feet_recipe import FeetOptions, GroundChoice
from mocap_addon.feet.result import Gates
from mocap_addon.feet.settings import FeetSettings
from mocap_addon.motion.errors import TargetError

from . import feet_checks as checks

FEW = (
    (checks.CHARACTERS[0], "cmu/asf_02_01_walk.bvh", "flat"),
    (checks.CHARACTERS[1], "cmu/asf_03_02_walk_uneven.bvh", "hills"),
    (checks.CHARACTERS[2], "xsens/mvn_bvh_walk_239hz_1200f.bvh", "stairs"),
    (checks.CHARACTERS[0], "cmu/asf_02_03_run_jog.bvh", "hills"),
)
ALL = [(c, t, g) for c in checks.CHARACTERS for t in checks.TAKES for g in checks.GROUNDS if (c, t, g) not in FEW]


def held_to(found: checks.Figures) -> None:
    assert found.contacts >= 3, found
    assert found.skate <= 0.2 * found.skate_before and found.skate < 1.0, found
    assert found.deep_contact <= 5.0 and found.deep_swing <= 10.0, found
    assert found.knee_flips == 0 and found.jerk <= 1.5, found


@pytest.mark.parametrize("name, take, ground", FEW)
def test_feet_stand_where_blender_shows_them(name, take, ground):
    obj = checks.character(name)
    found, baked = checks.run(obj, checks.retargeted(obj, take), ground)
    held_to(found)
    assert baked.report["after"]


@pytest.mark.thorough
@pytest.mark.parametrize("name, take, ground", ALL)
def test_every_take_on_every_character_over_every_ground(name, take, ground):
    obj = checks.character(name)
    held_to(checks.run(obj, checks.retargeted(obj, take), ground)[0])


def moved_by_a_second_bake(name: str, take: str) -> float:
    """Metres that joints and soles move at most when a take that was planted, and is known as such by nothing, is planted again."""
    obj = checks.character(name)
    baked = checks.run(obj, checks.retargeted(obj, take), "flat")[1]
    clean = checks.shown(obj)
    del baked.action["mocap_recipe"]
    feet.bake_feet(obj, FeetOptions(ground=GroundChoice("scene")), gates=Gates())
    again = checks.shown(obj)
    pairs = ((again.soles, clean.soles), (again.legs, clean.legs), (again.hips, clean.hips))
    return max(float(np.linalg.norm(a - b, axis=-1).max()) for a, b in pairs)


def test_a_clean_take_on_flat_ground_stays_as_it_is():
    assert moved_by_a_second_bake(checks.CHARACTERS[1], "cmu/asf_02_01_walk.bvh") < 0.001


@pytest.mark.thorough
@pytest.mark.parametrize("take", checks.TAKES)
@pytest.mark.parametrize("name", checks.CHARACTERS)
def test_every_clean_take_on_every_character_stays_as_it_is(name, take):
    assert moved_by_a_second_bake(name, take) < 0.001


def test_again_after_the_scene_has_moved():
    obj = checks.character(checks.CHARACTERS[0])
    checks.run(obj, checks.retargeted(obj, "cmu/asf_02_01_walk.bvh"), "flat")
    before = checks.shown(obj)
    bpy.data.objects["floor"].location.z = 0.3
    baked = feet.rebake_feet(obj)
    after = checks.shown(obj)
    held = checks.locks(obj, after.frames)
    assert (after.soles - before.soles)[held][..., 2].mean() == pytest.approx(0.3, abs=0.002)
    assert (after.hips - before.hips)[:, 2].mean() == pytest.approx(0.3, abs=0.005)
    assert baked.report["frames"] == len(after.frames)


def test_a_floor_that_rides_along_carries_the_feet():
    obj = checks.character(checks.CHARACTERS[0])
    action = checks.retargeted(obj, "cmu/asf_02_01_walk.bvh")
    before = checks.shown(obj)
    checks.build("flat", before.hips[0, :2], before.hips[-1, :2] - before.hips[0, :2])
    floor = bpy.data.objects["floor"]
    last = action.frame_range[1]
    for frame, x in ((1, 0.0), (last, 0.4)):
        floor.location.x = x
        floor.keyframe_insert("location", frame=frame)
    for curve in compat.all_curves(floor.animation_data.action):
        for key in curve.keyframe_points:
            key.interpolation = "LINEAR"
    feet.bake_feet(obj, FeetOptions())
    after = checks.shown(obj)
    held = checks.locks(obj, after.frames)
    carried = 0.4 * (after.frames - 1.0) / (last - 1.0)
    soles = after.soles.copy()
    soles[..., 0] -= carried[:, None, None]
    assert checks._skate(soles, soles[..., 2], held, 30.0) < 1.0
    assert checks._skate(after.soles, soles[..., 2], held, 30.0) > 5.0


def test_locks_are_obeyed():
    obj = checks.character(checks.CHARACTERS[0])
    checks.run(obj, checks.retargeted(obj, "cmu/asf_02_01_walk.bvh"), "flat")
    frames = checks.shown(obj).frames
    held = checks.locks(obj, frames)
    start = int(np.flatnonzero(held[1:, 0] & ~held[:-1, 0])[0]) + 1
    curve = next(c for c in compat.moving_curves(obj.animation_data) if c.data_path == '["foot_lock_l"]')
    from mocap_addon.blender import feet_gates

    end = next(e for s, e in feet_gates.intervals(curve) if s == frames[start])
    feet_gates.set_interval(curve, frames[start], end, 0.0)
    feet.rebake_feet(obj)
    again = checks.locks(obj, frames)
    inside = (frames >= frames[start]) & (frames < end)
    assert not again[inside, 0].any() and np.array_equal(again[~inside], held[~inside])
    gate = next(c for c in compat.moving_curves(obj.animation_data) if c.data_path == '["foot_ik_r"]')
    gate.keyframe_points[0].co[1] = 0.0
    source = bpy.data.actions[feet.feet_of(obj.animation_data.action)["source"]]
    feet.rebake_feet(obj)
    mine = {(c.data_path, c.array_index): c for c in compat.moving_curves(obj.animation_data)}
    was = {(c.data_path, c.array_index): c for c in compat.all_curves(source)}
    turned = [k for k in was if "foot_r" in k[0] and "rotation" in k[0]]
    assert turned and all(abs(mine[k].evaluate(f) - was[k].evaluate(f)) < 0.2 for k in turned for f in frames[::5])


def test_als_mode_follows_the_ground():
    obj = checks.character(checks.CHARACTERS[0])
    found, baked = checks.run(obj, checks.retargeted(obj, "cmu/asf_02_01_walk.bvh"), "hills", mode="als")
    assert baked.report["mode"] == "als" and found.knee_flips == 0
    assert found.skate < found.skate_before


def test_between_two_storeys_and_on_instances_with_clothes_on():
    obj = checks.character(checks.CHARACTERS[0])
    action = checks.retargeted(obj, "cmu/asf_02_01_walk.bvh")
    before = checks.shown(obj)
    height = checks.build("flat", before.hips[0, :2], before.hips[-1, :2] - before.hips[0, :2])
    inside = bpy.data.collections.new("storey")
    slab = bpy.data.objects["floor"]
    inside.objects.link(slab)
    bpy.context.scene.collection.objects.unlink(slab)
    for name, z in (("lower", 0.0), ("upper", 2.6)):
        storey = bpy.data.objects.new(name, None)
        storey.instance_type, storey.instance_collection, storey.location.z = "COLLECTION", inside, z
        bpy.context.scene.collection.objects.link(storey)
    skirt = checks.slab("skirt", checks._corners(np.array([-0.4, -8.0]), np.array([0.0, 1.0]), 10.0, 0.8, 0.05, 0.15))
    skirt.modifiers.new("rig", "ARMATURE").object = obj
    baked = feet.bake_feet(obj, FeetOptions(ground=GroundChoice("scene")))
    after = checks.shown(obj)
    found = checks.figures(before, after, checks.locks(obj, after.frames), height)
    held_to(found)
    assert baked.before == action


def test_a_linked_character_is_refused_and_an_override_is_baked(tmp_path):
    obj = checks.character(checks.CHARACTERS[0])
    checks.retargeted(obj, "cmu/asf_02_01_walk.bvh")
    name = obj.name
    path = str(tmp_path / "hero.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    with bpy.data.libraries.load(path, link=True) as (_, here):
        here.objects = [name]
    linked = bpy.data.objects[name]
    bpy.context.scene.collection.objects.link(linked)
    with pytest.raises(TargetError, match="linked from another file"):
        feet.bake_feet(linked)
    own = linked.override_create(remap_local_usages=True)
    baked = feet.bake_feet(own, FeetOptions(FeetSettings(), GroundChoice("floor")))
    assert own.animation_data.action == baked.action and baked.action.library is None
    assert "foot_lock_l" not in own  # Blender would drop it at reload; the curve stays
    assert any(c.data_path == '["foot_lock_l"]' for c in compat.moving_curves(own.animation_data))
    feet.rebake_feet(own)


@pytest.mark.thorough
def test_on_a_generated_rigify_rig_whatever_has_the_keys(tmp_path):
    from mocap_addon import formats
    from mocap_addon.blender import job
    from tests.paths import SHARED, need

    from .control_rig_makers import generate_rigify, opened

    path = generate_rigify(tmp_path / "rigify.blend")
    take = formats.read(need(SHARED / "cmu" / "asf_02_01_walk.bvh"))[0]
    for controls in ("fk", "ik_legs", "ik"):
        for ours in (True, False):
            obj, _ = opened(path)
            bpy.context.scene.render.fps = 30
            action = job.retarget_onto(obj, take, options=job.JobOptions(controls=controls, frame_start=1.0)).action
            if not ours:  # as if a person had animated it
                del action["mocap_recipe"]
            found, baked = checks.run(obj, action, "hills")
            held_to(found)
            assert baked.curves < 60
