# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigs of no known kind: legs on inverse kinematics, bones that copy others, feet that hang on the root.

The truth is the same skeleton with nothing that drives it, as Blender evaluates it.
"""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.blender import characters
from mocap_addon.motion.errors import TargetError
from tests.paths import DATA, SHARED, need

from .control_rig_makers import (
    SIDES,
    bone_angle,
    degrees,
    keyed,
    millimetres,
    plain_rig,
    pole_step,
    posed,
    pro_rig,
    retarget,
    settings_of,
    through_straight,
)

WALK = DATA / "takes" / "cmu_walk_60rows.bvh"
FRAMES = (1.0, 4.0, 7.0, 10.0, 12.0)
LEGS = tuple(f"{part}.{s}" for part in ("thigh", "shin", "foot", "toe") for s in SIDES)
BODY = ("hips", "spine", "head", *LEGS, *(f"{part}.{s}" for part in ("upper_arm", "forearm", "hand") for s in SIDES))
KINDS = {"alone": {}, "switch": {"switch": True}, "hanging": {"hanging": True}, "copies": {"copies": True}}


@pytest.fixture(scope="module")
def walk():
    return formats.read(WALK)[0]


def undriven() -> bpy.types.Object:
    """The same person with nothing on the bones, feet on the shins."""
    obj = plain_rig()
    for bone in obj.pose.bones:
        for constraint in list(bone.constraints):
            bone.constraints.remove(constraint)
    return obj


def truth(take, frames=FRAMES) -> dict[float, dict]:
    obj = undriven()
    retarget(obj, take)
    out = {frame: posed(obj, frame, BODY) for frame in frames}
    bpy.data.objects.remove(obj)
    return out


def worst(obj, meant, names) -> tuple[float, float, float]:
    """Degrees, millimetres, degrees of direction."""
    seen = {frame: posed(obj, frame, names) for frame in meant}
    pairs = [(seen[frame][n], meant[frame][n]) for frame in meant for n in names]
    return tuple(max(f(a, b) for a, b in pairs) for f in (degrees, millimetres, bone_angle))


@pytest.mark.parametrize("kind", KINDS)
def test_33_legs_on_inverse_kinematics_follow(walk, kind):
    """R: detect IK and its switch, drive targets and poles. T: 2-bone IK legs with poles; an IK/FK property; feet on the targets."""
    meant = truth(walk)
    obj = plain_rig(**KINDS[kind])
    result = retarget(obj, walk)
    have = keyed(result.action)
    assert {"IK_foot.L", "IK_knee.R", "toe.L", "hips"} <= have and not {"thigh.L", "shin.R"} & have
    assert ("foot.L" in have) == (kind in ("alone", "switch"))
    turn, place, _ = worst(obj, meant, [n for n in BODY if not n.startswith(("thigh", "shin"))])
    assert turn < 0.5 and place < 1.0, (turn, place)
    _, place, direction = worst(obj, meant, LEGS)
    assert place < 3.0 and direction < 0.5, (place, direction)
    path = 'pose.bones["IK_foot.L"]["IK"]' if kind == "switch" else 'pose.bones["shin.L"].constraints["IK"].influence'
    assert settings_of(result.action)[path] == 1.0
    assert any("the keys are on what drives them, legs by their IK controls" in note for note in result.notes)


@pytest.mark.parametrize("kind", KINDS)
def test_33_legs_switched_to_fk(walk, kind):
    """R: key FK, the switch with it."""
    meant = truth(walk)
    obj = plain_rig(**KINDS[kind])
    result = retarget(obj, walk, controls="fk")
    assert {"thigh.L", "shin.R"} <= keyed(result.action) and "IK_knee.L" not in keyed(result.action)
    turn, place, _ = worst(obj, meant, BODY)
    assert turn < 0.1 and place < 0.1, (turn, place)
    path = 'pose.bones["IK_foot.L"]["IK"]' if kind == "switch" else 'pose.bones["shin.L"].constraints["IK"].influence'
    assert settings_of(result.action)[path] == 0.0
    assert not any(note.startswith("Constraints decide") for note in result.notes)


def test_33_a_limb_that_is_fk_stays_fk_unless_asked(walk):
    obj = plain_rig(switch=True)
    for s in SIDES:
        obj.pose.bones[f"IK_foot.{s}"]["IK"] = 0.0
    obj.update_tag()
    bpy.context.view_layer.update()
    assert "thigh.L" in keyed(retarget(obj, walk).action)
    assert "IK_foot.L" in keyed(retarget(obj, walk, controls="ik_legs").action)


def test_33_keys_on_bones_that_are_held_are_named(walk):
    """R: report bones with no effect. T: keys on the legs' own bones while inverse kinematics holds them."""
    notes = retarget(plain_rig(), walk, controls="deform").notes
    assert any(note.startswith("Constraints decide") and "thigh.L (IK)" in note and "shin.L (IK)" in note for note in notes)


def test_33_a_target_outside_the_rig_is_left_alone_and_named(walk):
    """An empty as the goal is another object's animation: nothing of it is keyed."""
    obj = plain_rig()
    empty = bpy.data.objects.new("Goal", None)
    bpy.context.scene.collection.objects.link(empty)
    for s in SIDES:
        ik = obj.pose.bones[f"shin.{s}"].constraints["IK"]
        ik.target, ik.pole_target = empty, None
    result = retarget(obj, walk)
    assert empty.animation_data is None and "thigh.L" in keyed(result.action)
    assert any(note.startswith("Constraints decide") and "thigh.L (IK)" in note for note in result.notes)
    with pytest.raises(TargetError):
        retarget(obj, walk, controls="ik_legs")


def test_34_no_pole_flips_through_a_straight_knee():
    """R: a stable bend plane. T: the knee through 180 degrees, trembling; the pole's step below 5 degrees a frame."""
    plain = undriven()
    take = through_straight(plain)
    retarget(plain, take)
    frames = range(1, take.frames + 1)
    meant = {frame: posed(plain, frame, LEGS) for frame in frames}
    bpy.data.objects.remove(plain)
    obj = plain_rig()
    retarget(obj, take)
    for s in SIDES:
        ends = [tuple(meant[f][f"{part}.{s}"].translation for part in ("thigh", "foot")) for f in frames]
        poles = [posed(obj, f, [f"IK_knee.{s}"])[f"IK_knee.{s}"].translation for f in frames]
        knees = [meant[f][f"shin.{s}"].translation for f in frames]
        assert pole_step([(*e, p) for e, p in zip(ends, poles, strict=True)]) < 5.0
        assert pole_step([(*e, k) for e, k in zip(ends, knees, strict=True)]) > 30.0
    turn, place, _ = worst(obj, {f: meant[f] for f in (1, 13, 31, 61)}, [n for n in LEGS if n.startswith(("foot", "toe"))])
    assert turn < 0.5 and place < 1.0, (turn, place)


def test_no_pole_at_all(walk):
    """A target without a pole: the feet are right, the knees are the solver's."""
    meant = truth(walk)
    obj = plain_rig()
    for s in SIDES:
        obj.pose.bones[f"shin.{s}"].constraints["IK"].pole_target = None
    result = retarget(obj, walk)
    assert "IK_knee.L" not in keyed(result.action)
    assert worst(obj, meant, ["foot.L", "foot.R"])[1] < 1.0


@pytest.mark.parametrize("kind", ["COPY_TRANSFORMS", "COPY_ROTATION"])
def test_bones_that_copy_controls(walk, kind):
    """A game skeleton that copies a control skeleton: the controls get the keys, whichever way they point."""
    meant = truth(walk)
    obj = undriven()
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode="EDIT")
    edit = obj.data.edit_bones
    arms = [f"{part}.{s}" for s in SIDES for part in ("upper_arm", "forearm", "hand")]
    for name in arms:
        made = edit.new(f"ctl {name}")
        made.head, made.tail, made.roll = edit[name].head, edit[name].tail, edit[name].roll
        parent = edit[name].parent.name
        made.parent = edit.get(f"ctl {parent}") or edit[parent]
    bpy.ops.object.mode_set(mode="OBJECT")
    for name in arms:
        copy = obj.pose.bones[name].constraints.new(kind)
        copy.target, copy.subtarget = obj, f"ctl {name}"
    bpy.context.view_layer.update()
    result = retarget(obj, walk)
    have = keyed(result.action)
    assert {f"ctl {name}" for name in arms} <= have and not set(arms) & have
    turn, place, _ = worst(obj, meant, BODY)
    assert turn < 0.1 and place < 0.1, (turn, place)


def test_an_ordinary_character_is_keyed_as_ever(walk):
    result = retarget(undriven(), walk)
    assert result.meant is not None and result.puppet.plan is None and result.on_bones is result.motion
    assert not any(note.startswith("Checked at") for note in result.notes)


def test_feet_that_hang_on_the_root_stay_on_the_legs():
    """RobotExpressive, whose feet and pole targets were driven by inverse kinematics that its file does not have."""
    obj = characters.bring_in(need(SHARED / "targets" / "RobotExpressive.glb")).armature
    if obj.animation_data is not None:
        obj.animation_data_clear()
    for bone in obj.pose.bones:
        bone.matrix_basis.identity()
    bpy.context.view_layer.update()
    take = formats.read(WALK)[0]
    result = retarget(obj, take)
    assert {result.target.skeleton.names[j] for j in result.motion.moving} >= {"FootL", "FootR"}
    for s in "LR":
        rest = obj.data.bones[f"LowerLeg{s}"].matrix_local.inverted() @ obj.data.bones[f"Foot{s}"].head_local
        size = obj.dimensions.z
        still, turns = [], []
        for frame in FRAMES:
            seen = posed(obj, frame, [f"LowerLeg{s}", f"Foot{s}"])
            unit = seen[f"LowerLeg{s}"].to_scale().x
            gap = seen[f"LowerLeg{s}"].inverted() @ seen[f"Foot{s}"].translation - rest
            still.append(gap.length * unit)
            turns.append(seen[f"Foot{s}"].to_quaternion())
        assert max(still) < 1e-4 * size
        assert max(np.degrees(turns[0].rotation_difference(q).angle) for q in turns) > 5.0


def test_hips_that_cannot_move_let_the_bone_above_carry_them(walk):
    """Legs on inverse kinematics below hips that are connected to a bone above."""
    meant = truth(walk)
    obj = plain_rig()
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode="EDIT")
    edit = obj.data.edit_bones
    made = edit.new("mover")
    made.head, made.tail = (0, 0.2, 1.0), edit["hips"].head
    edit["hips"].parent, edit["hips"].use_connect = made, True
    bpy.ops.object.mode_set(mode="OBJECT")
    result = retarget(obj, walk)
    assert "mover" in keyed(result.action)
    turn, place, _ = worst(obj, meant, ["hips", "foot.L", "foot.R", "hand.L"])
    assert turn < 0.5 and place < 1.0, (turn, place)


def test_nothing_is_left_behind(walk):
    """The scene in which the result is looked at is gone, and the frame and the scenes are as they were."""
    obj = plain_rig()
    bpy.context.scene.frame_set(3)
    scenes = [s.name for s in bpy.data.scenes]
    retarget(obj, walk)
    assert [s.name for s in bpy.data.scenes] == scenes and bpy.context.scene.frame_current == 3
    assert [c.name for c in obj.users_collection] == [bpy.context.scene.collection.name]


@pytest.mark.parametrize("choice", ["auto", "ik_legs", "ik"])
def test_auto_rig_pro_by_its_names(walk, choice):
    """The description in data, on a rig made for this test; what it says is held against the motion that was meant."""
    obj = pro_rig()
    result = retarget(obj, walk, controls=choice)
    have, switches = keyed(result.action), settings_of(result.action)
    assert {"c_root_master.x", "c_root.x", "c_spine_01.x", "c_spine_02.x", "c_neck.x", "c_head.x", "c_shoulder.l"} <= have
    assert ("c_thigh_fk.l" in have) == (choice == "auto") and ("c_foot_ik.l" in have) == (choice != "auto")
    assert ("c_hand_ik.r" in have) == (choice == "ik") and ("c_forearm_fk.r" in have) == (choice != "ik")
    assert switches['pose.bones["c_foot_ik.l"]["ik_fk_switch"]'] == (1.0 if choice == "auto" else 0.0)
    assert switches['pose.bones["c_hand_ik.l"]["ik_fk_switch"]'] == (0.0 if choice == "ik" else 1.0)
    body = result.take
    for frame in FRAMES:
        seen = posed(obj, frame, [n for n in body.skeleton.names if n in obj.pose.bones])
        for k, name in enumerate(body.skeleton.names):
            if name.startswith(("foot", "toes", "hand", "head", "root.x")):
                assert np.linalg.norm(np.array(seen[name].translation) - body.global_positions[int(frame) - 1, k]) < 1e-3, (name, frame)
    assert any("Auto-Rig Pro" in note for note in result.notes)
    thigh = body.skeleton.index("thigh_stretch.l")
    assert np.allclose(body.skeleton.rest_global_positions[thigh], (0.1, 0.0, 0.95), atol=1e-6)  # the hip, not the middle of the thigh
