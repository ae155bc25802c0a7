# SPDX-License-Identifier: GPL-3.0-or-later
"""Body sliders, masks and relaxed fingers from the job's options to the evaluated pose, and through an update."""

from __future__ import annotations

from pathlib import Path

import bpy
import mathutils
import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.blender import actions, characters, compat, update
from mocap_addon.blender.job import JobOptions, options_of, retarget_onto
from mocap_addon.motion.errors import MocapError
from mocap_addon.retarget import Adjustments, Mask
from mocap_addon.rig import loads
from tests.blender.helpers import keys_of, world_matrices
from tests.paths import DATA, ROOT

WALK = DATA / "takes" / "cmu_walk_60rows.bvh"
OTHER = DATA / "takes" / "makehuman_zombie_walk.bvh"
CHARACTER = ROOT / "mocap_addon" / "demo" / "character.glb"
FRAMES = (1, 5, 9, 14)


@pytest.fixture
def hero() -> bpy.types.Object:
    return characters.bring_in(CHARACTER).armature


def baked(hero: bpy.types.Object, path: Path = WALK, **options) -> bpy.types.Action:
    return retarget_onto(hero, formats.read(path)[0], options=JobOptions(**options)).action


def poses(hero, action, frames=FRAMES) -> np.ndarray:
    compat.assign(hero.animation_data, action, compat.slots(action)[0])
    return world_matrices(hero, frames, [bone.name for bone in hero.pose.bones])


def bones_of(action, *roles: str) -> list[str]:
    return [row.target for row in loads(actions.recipe_of(action)["table"]).rows if row.role in roles]


def values(action) -> dict[tuple[str, int], list[tuple[float, float]]]:
    return {(path, i): [(k[0], k[1]) for k in keys] for path, i, keys in keys_of(action)}


def test_a_head_kept_level_in_the_evaluated_pose(hero):
    action = baked(hero, adjustments=Adjustments(head_level=1.0, hip_height=0.05))
    plain = baked(hero)
    (head,) = bones_of(action, "head")
    index = [bone.name for bone in hero.pose.bones].index(head)
    rest = hero.matrix_world @ hero.data.bones[head].matrix_local
    up = np.array(rest.to_3x3().inverted() @ mathutils.Vector((0, 0, 1)))  # the head's up in its own axes
    now = poses(hero, action)[:, index, :3, :3] @ up
    was = poses(hero, plain)[:, index, :3, :3] @ up
    assert np.allclose(now / np.linalg.norm(now, axis=1)[:, None], [0, 0, 1], atol=1e-5)
    assert np.abs(was[:, :2]).max() > 0.02
    (hips,) = bones_of(action, "hips")
    k = [bone.name for bone in hero.pose.bones].index(hips)
    assert np.allclose((poses(hero, action) - poses(hero, plain))[:, k, :3, 3], [0, 0, 0.05], atol=1e-5)


def test_options_survive_the_recipe(hero):
    options = JobOptions(
        rate="source",
        travel=0.5,
        adjustments=Adjustments(arm_space=5.0),
        mask=Mask(parts=frozenset({"head", "torso"}), start=3.0, ease=2.0),
    )
    action = retarget_onto(hero, formats.read(WALK)[0], options=options).action
    assert options_of(actions.recipe_of(action)) == options
    before = keys_of(action)
    assert update.update_action(hero, action).rewritten == 0 and keys_of(action) == before


def test_without_sliders_the_keys_are_what_they_were(hero):
    assert keys_of(baked(hero)) == keys_of(baked(hero, adjustments=Adjustments(), mask=Mask()))


def test_a_slider_moved_after_hand_edits(hero):
    action = baked(hero)
    (wrist,) = bones_of(action, "leftHand")
    curve = next(c for c in compat.bag_of(action, compat.slots(action)[0]).fcurves if wrist in c.data_path and c.array_index == 1)
    for point in curve.keyframe_points:
        point.co.y += 0.2
    curve.update()
    options = JobOptions(adjustments=Adjustments(arm_space=12.0))
    update.update_action(hero, action, options=options)
    fresh = retarget_onto(hero, formats.read(WALK)[0], options=options).action
    assert {k for k, v in values(action).items() if v != values(fresh)[k]} <= {(curve.data_path, i) for i in range(4)}
    assert update.summary(hero, action).bones == (wrist,)
    assert options_of(actions.recipe_of(action)).adjustments == options.adjustments


def test_only_the_arms_over_another_action(hero):
    base = baked(hero, OTHER)
    base_curves = {k for k in values(base) if any(f'"{b}"' in k[0] for b in bones_of(base, "hips", "leftUpperLeg", "head"))}
    length = max(x for keys in values(base).values() for x, _ in keys)
    action = baked(hero, mask=Mask(parts=frozenset({"left arm", "right arm"})))
    plain = baked(hero)
    arms = bones_of(action, *(f"{s}{p}" for s in ("left", "right") for p in ("UpperArm", "LowerArm", "Hand")))
    new, old, own = values(action), values(base), values(plain)
    for key in base_curves:
        assert np.allclose(new[key], old[key], atol=2e-6), key
    for key in own:
        if any(f'"{b}"' in key[0] for b in arms):
            count = len(own[key])
            assert np.allclose(np.abs(new[key][:count]), np.abs(own[key]), atol=2e-6), key
    assert max(x for keys in new.values() for x, _ in keys) == length > 12


def test_a_masked_action_made_again_is_laid_over_the_same_one(hero):
    base = baked(hero, OTHER)
    action = baked(hero, mask=Mask(start=4.0, end=12.0, ease=3.0))
    before = values(action)
    assert update.update_action(hero, action).rewritten == 0 and values(action) == before
    bpy.data.actions.remove(base)
    with pytest.raises(MocapError, match="was laid over, is not there any more"):
        update.update_action(hero, action)
    assert values(action) == before


def test_a_pose_set_by_hand_stays_where_the_mask_is_closed(hero):
    plain = baked(hero)
    (head,) = bones_of(plain, "head")
    hero.animation_data_clear()
    bpy.data.actions.remove(plain)
    for bone in hero.pose.bones:
        bone.matrix_basis.identity()
    turn = mathutils.Quaternion((0.9, 0.3, 0.1, 0.2)).normalized()
    hero.pose.bones[head].rotation_mode = "XYZ"
    hero.pose.bones[head].rotation_euler = turn.to_euler("XYZ")
    action = baked(hero, mask=Mask(parts=frozenset({"left leg"})))
    for _ in range(2):
        bpy.context.scene.frame_set(9)
        seen = hero.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones[head].rotation_euler.to_quaternion()
        assert abs(seen.dot(turn)) > 1 - 1e-6
        update.update_action(hero, action, options=JobOptions(travel=1.0, mask=Mask(parts=frozenset({"left leg"}))))


def test_relaxed_fingers_take_one_key_and_can_be_edited(hero):
    options = {"adjustments": Adjustments(relaxed_fingers=1.0)}
    action = baked(hero, **options)
    fingers = [(k, v) for k, v in values(action).items() if len(v) == 1]
    assert len(fingers) == 4 * 2 * 4 * 3  # four curves a bone; the recording moves the thumbs, not the other four fingers
    assert update.update_action(hero, action).rewritten == 0
    path = next(k[0] for k, _ in fingers if k[1] == 1)
    curve = next(c for c in compat.bag_of(action, compat.slots(action)[0]).fcurves if c.data_path == path and c.array_index == 1)
    curve.keyframe_points.insert(8, curve.keyframe_points[0].co.y + 0.3)
    update.update_action(hero, action, options=JobOptions(adjustments=Adjustments(relaxed_fingers=0.5)))
    assert len(update.summary(hero, action).bones) == 1
    got = [k[1] for k in values(action)[path, 1]]
    assert len(got) == 12 and got[7] - got[0] == pytest.approx(0.3, abs=0.05)
