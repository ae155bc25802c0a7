# SPDX-License-Identifier: GPL-3.0-or-later
"""Known complaints about retargeting: what single bones of the target are like (13, 16 to 19, 28, 32). Truth is the evaluated pose."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import bpy
import numpy as np
import pytest

from mocap_addon.blender import compat
from mocap_addon.motion import quat

from . import fidelity
from .complaints import FRAMES, character, edit, retarget, walk
from .helpers import MODES
from .snapshot import beside_the_retarget, snapshot


def apart(a: fidelity.Evaluated, b: fidelity.Evaluated, names=None) -> float:
    """Largest angle in degrees between two evaluated poses, over the bones ``names``."""
    names = names or a.names
    i, j = [a.names.index(n) for n in names], [b.names.index(n) for n in names]
    return float(np.degrees(quat.angle(a.rotations[:, i], b.rotations[:, j]).max()))


def played(take=None, change=None, **options):
    """Evaluated walk of a fresh character after ``change(obj)``, and the object."""
    obj = character()
    if change is not None:
        change(obj)
    retarget(obj, take, **options)
    return fidelity.evaluated(obj, FRAMES), obj


@pytest.fixture
def plain():
    out, obj = played()
    bpy.data.objects.remove(obj)
    return out


def test_13_locks_limits_and_constraints_are_named_and_stay(plain):
    """R: result = request or a named warning; constraints restored. T: locked rotation X, LIMIT_ROTATION, COPY_ROTATION muted and not."""
    obj = character()
    bones = obj.pose.bones
    empty = bpy.data.objects.new("Empty", None)
    bpy.context.scene.collection.objects.link(empty)
    bones["upperarm_l"].lock_rotation = (True, False, False)
    bones["upperarm_r"].lock_rotation, bones["upperarm_r"].lock_rotation_w = (True, True, True), True
    limit = bones["hand_l"].constraints.new("LIMIT_ROTATION")
    limit.use_limit_x, limit.owner_space = True, "LOCAL"
    muted = bones["thigh_r"].constraints.new("COPY_ROTATION")
    muted.target, muted.mute = empty, True
    weak = bones["foot_r"].constraints.new("COPY_ROTATION")
    weak.target, weak.influence = empty, 0.0
    aimless = bones["foot_l"].constraints.new("COPY_ROTATION")
    copy = bones["hand_r"].constraints.new("COPY_ROTATION")
    copy.target = empty
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    decided = next(note for note in result.notes if note.startswith("Constraints decide"))
    acting = next(note for note in result.notes if note.startswith("Constraints act"))
    locked = next(note for note in result.notes if "Locks do not hold keys back" in note)
    assert "hand_r" in decided and copy.name in decided and "hand_l" not in decided
    assert "hand_l" in acting and limit.name in acting and "hand_r" not in acting
    assert "upperarm_l" in locked and "upperarm_r" in locked
    assert not any(word in note for word in ("thigh_r", "foot_r", "foot_l") for note in result.notes), aimless
    seen = fidelity.evaluated(obj, FRAMES)
    free = [n for n in plain.names if not n.startswith("hand_") and not any(p.name.startswith("hand_") for p in bones[n].parent_recursive)]
    assert apart(seen, plain, free) < 0.01 and "lowerarm_l" in free  # locks bind the window's handles, not keys
    assert apart(seen, plain, ["hand_r"]) > 5.0  # the copied rotation does win, as the note says
    copy.mute = limit.mute = True
    assert apart(fidelity.evaluated(obj, FRAMES), plain) < 0.01


def test_13_inverse_kinematics_is_named_with_its_whole_chain():
    """R: a named warning. T: an IK constraint with a chain of two on the shin; another with its own bone left out of the chain's tail."""
    obj = character()
    empty = bpy.data.objects.new("Goal", None)
    bpy.context.scene.collection.objects.link(empty)
    ik = obj.pose.bones["calf_l"].constraints.new("IK")
    ik.target, ik.chain_count = empty, 2
    result = retarget(obj)
    decided = next(note for note in result.notes if note.startswith("Constraints decide"))
    assert "calf_l (IK)" in decided and "thigh_l (IK)" in decided and "pelvis" not in decided and "foot_l" not in decided


def test_13_drivers_are_named_where_they_matter():
    """R: a named warning. T: drivers on a mapped bone, on an unmapped one, and on a property that no key of ours touches."""
    obj = character()
    edit(obj, lambda bones: setattr(bones.new("widget"), "tail", (0.0, 0.0, 0.1)))
    obj.pose.bones["hand_l"].driver_add("rotation_quaternion", 1)
    obj.pose.bones["hand_r"].driver_add("scale", 0)
    obj.pose.bones["widget"].driver_add("location", 0)
    notes = retarget(obj).notes
    named = next(note for note in notes if note.startswith("Drivers"))
    assert "hand_l" in named and "hand_r" not in named and "widget" not in named


def test_bones_without_inherit_rotation(plain):
    """Bones that turn in the armature's axes whatever their parents do end up turned in the world as all others."""
    turned = ("thigh_l", "hand_r", "spine_02", "head")

    def change(obj) -> None:
        for name in turned:
            obj.data.bones[name].use_inherit_rotation = False

    assert apart(played(change=change)[0], plain) < 0.01


def test_16_rotation_modes_stay_and_old_actions_still_play():
    """R: mode kept; keys in the bone's own mode. T: a rig mixing QUATERNION, XYZ, ZYX, AXIS_ANGLE with an old action."""
    obj = character()
    modes = dict(zip(obj.pose.bones.keys(), cycle(("QUATERNION", "XYZ", "ZYX", "AXIS_ANGLE")), strict=False))
    for name, mode in modes.items():
        pose = obj.pose.bones[name]
        pose.rotation_mode = mode
        prop = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}.get(mode, "rotation_euler")
        for frame, angle in ((1, 0.1), (20, 0.4)):
            value = [np.cos(angle), np.sin(angle), 0.0, 0.0] if mode == "QUATERNION" else [angle, 0.0, 1.0, 0.0]
            setattr(pose, prop, value if prop != "rotation_euler" else value[:3])
            pose.keyframe_insert(prop, frame=frame)
    old = obj.animation_data.action
    slot = compat.assigned_slot(obj.animation_data)
    was = fidelity.evaluated(obj, (1, 7, 20))
    before = snapshot()
    new = retarget(obj).action
    assert beside_the_retarget(before, obj, new) == []
    assert {pose.name: pose.rotation_mode for pose in obj.pose.bones} == modes
    props = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
    for curve in compat.all_curves(new):
        for name, mode in modes.items():
            if curve.data_path.startswith(f'pose.bones["{name}"].rotation'):
                assert curve.data_path.endswith(props.get(mode, "rotation_euler"))
    compat.assign(obj.animation_data, old, slot)
    assert apart(fidelity.evaluated(obj, (1, 7, 20)), was) < 1e-3


def test_17_every_mode_gives_the_same_pose_and_euler_angles_run_on(plain):
    """R: all modes keyed, Euler continuous. T: bones with rotating modes, object in quaternions; matrices < 1e-5; shoulder passing 90."""
    base = walk()
    lift = np.linspace(0.0, np.radians(170.0), base.frames)
    joint = base.skeleton.index("lhumerus")
    local = base.local_rotations.copy()
    local[:, joint] = quat.mul(quat.from_axis_angle((0.0, 0.0, 1.0), lift), local[:, joint])
    take = replace(base, local_rotations=local)

    def change(obj) -> None:
        obj.rotation_mode = "QUATERNION"
        for pose, mode in zip(obj.pose.bones, cycle(MODES), strict=False):
            pose.rotation_mode = mode

    frames = range(1, 70, 4)
    wanted, first = fidelity.evaluated(played(take)[1], frames), None
    for obj in list(bpy.data.objects):
        bpy.data.objects.remove(obj)
    _, first = played(take, change)
    seen = fidelity.evaluated(first, frames)
    assert np.abs(quat.to_matrix(seen.rotations) - quat.to_matrix(wanted.rotations)).max() < 1e-5
    assert np.abs(seen.positions - wanted.positions).max() < 1e-5
    curves = [c for c in compat.all_curves(first.animation_data.action) if c.data_path.endswith(("rotation_euler", "rotation_axis_angle"))]
    assert len(curves) > 60
    for curve in curves:
        values = np.array([k.co[1] for k in curve.keyframe_points])
        assert np.abs(np.diff(values)).max() < np.pi


def test_18_clips_do_not_leak_into_each_other():
    """R: reset each run; key every mapped bone. T: clip 1 keys the arms, clip 2 does not; run in both orders, equal results."""
    obj = character()
    whole = retarget(obj).table
    obj.animation_data_clear()
    for pose in obj.pose.bones:
        pose.matrix_basis.identity()
    armless = replace(whole, rows=tuple(row for row in whole.rows if "arm" not in row.target and "hand" not in row.target))
    assert len(armless.rows) < len(whole.rows) - 3
    clips = {"arms": whole, "no arms": armless}

    def run(names) -> dict[str, fidelity.Evaluated]:
        for other in list(bpy.data.objects):
            bpy.data.objects.remove(other)
        fresh, out = character(), {}
        for name in names:
            retarget(fresh, table=clips[name])
            out[name] = fidelity.evaluated(fresh, FRAMES)
            bpy.context.scene.frame_set(40)
        return out

    one, other = run(("arms", "no arms")), run(("no arms", "arms"))
    alone = {name: run((name,))[name] for name in clips}
    for name in clips:
        assert apart(one[name], other[name]) < 1e-3 and apart(one[name], alone[name]) < 1e-3


def test_19_only_mapped_bones_and_only_the_asked_clip():
    """R: only mapped bones, only the asked clip. T: target with an own action of an unmapped quill, unmapped IK bones; another action."""
    obj = character()

    def change(bones) -> None:
        for name, parent in (("ik_foot_l", "Root"), ("ik_hand_l", "Root"), ("quill_01", "head"), ("quill_02", "quill_01")):
            made = bones.new(name)
            made.head = bones[parent].tail
            made.tail = made.head + bones[parent].vector.normalized() * 0.1
            made.parent = bones[parent]

    edit(obj, change)
    quill = obj.pose.bones["quill_01"]
    for frame, x in ((1, 0.0), (30, 0.5)):
        quill.rotation_quaternion = (1.0, x, 0.0, 0.0)
        quill.keyframe_insert("rotation_quaternion", frame=frame)
    own = obj.animation_data.action
    bystander = bpy.data.actions.new("two keys")
    obj.pose.bones["ik_foot_l"].location = (0.1, 0.2, 0.3)
    bpy.context.scene.frame_set(30)
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    mapped = {row.target for row in result.table.rows}
    keyed = {curve.data_path.split('"')[1] for curve in compat.all_curves(result.action)}
    assert keyed == mapped and not mapped & {"ik_foot_l", "ik_hand_l", "quill_01", "quill_02"}
    bpy.context.scene.frame_set(12)
    assert tuple(obj.pose.bones["ik_foot_l"].location) == pytest.approx((0.1, 0.2, 0.3))
    assert {a.name for a in bpy.data.actions} == {own.name, bystander.name, result.action.name}


TRAPS = {
    "prefix with a number": lambda n: f"mixamorig1:{n}",
    "prefix with a space": lambda n: f"My Rig:{n}",
    "trailing digits": lambda n: f"{n}.001",
    "dots": lambda n: n.replace("_", "."),
    "spaces": lambda n: n.replace("_", " "),
    "a quote": lambda n: f'"{n}"',
    "a backslash and brackets": lambda n: f"[{n}]\\",
    "unicode": lambda n: f"骨é:{n}",
    "63 bytes": lambda n: f"{'x' * (62 - len(n))}:{n}",
}


@pytest.mark.parametrize("trap", TRAPS)
def test_28_bone_names_that_trip_others(plain, trap):
    """R: names escaped, prefix by pattern. T: ':' prefix, digits, dots, spaces, a quote, unicode, 63 bytes."""

    def change(obj) -> None:
        for bone in obj.data.bones:
            bone.name = TRAPS[trap](bone.name)

    seen, obj = played(change=change)
    assert max(len(bone.name.encode()) for bone in obj.data.bones) <= 63
    assert sum(TRAPS[trap](name) in seen.names for name in plain.names) == len(plain.names)
    assert apart(fidelity.Evaluated([TRAPS[trap](n) for n in plain.names], plain.rotations, plain.positions), seen) < 0.01


def test_28_two_armatures_with_prefixes_of_their_own(plain):
    """R: each its own. T: two armatures with two prefixes in one scene."""
    pair = [character(), character()]
    for obj, prefix in zip(pair, ("anna:", "bert:"), strict=True):
        for bone in obj.data.bones:
            bone.name = prefix + bone.name
    for obj, prefix in zip(pair, ("anna:", "bert:"), strict=True):
        result = retarget(obj)
        assert all(row.target.startswith(prefix) for row in result.table.rows)
    for obj, prefix in zip(pair, ("anna:", "bert:"), strict=True):
        assert (
            apart(fidelity.Evaluated([prefix + n for n in plain.names], plain.rotations, plain.positions), fidelity.evaluated(obj, FRAMES))
            < 0.01
        )


def test_28_two_prefixes_in_one_armature_are_reported(plain):
    """R: report ambiguous. T: two people joined into one armature object: one of them moves, and a note says which."""
    pair = [character(), character()]
    for obj, prefix in zip(pair, ("anna:", "bert:"), strict=True):
        for bone in obj.data.bones:
            bone.name = prefix + bone.name
        obj.select_set(True)
    bpy.context.view_layer.objects.active = pair[0]
    bpy.ops.object.join()
    result = retarget(pair[0])
    assert any('"anna:pelvis"' in note and '"bert:pelvis"' in note for note in result.notes)
    moved = {row.target.partition(":")[0] for row in result.table.rows}
    assert len(moved) == 1
    prefix = moved.pop()
    names = [f"{prefix}:{name}" for name in plain.names]
    assert apart(fidelity.Evaluated(names, plain.rotations, plain.positions), fidelity.evaluated(pair[0], FRAMES)) < 0.01


@pytest.mark.parametrize("scale", [(1.2, 1.2, 1.2), (1.0, 1.5, 0.8)])
def test_32_scaled_bones_are_named_and_stay(scale):
    """R: transferred or named as dropped. T: uniform and non-uniform bone scale, by hand: stays and is named."""
    obj = character()
    obj.pose.bones["lowerarm_l"].scale = scale
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    assert any("scaled" in note and "lowerarm_l" in note for note in result.notes)
    bpy.context.scene.frame_set(30)
    assert tuple(obj.pose.bones["lowerarm_l"].scale) == pytest.approx(scale)


def test_32_scale_keys_of_the_action_before_do_not_stay(plain):
    """R: no leftover. T: an old action keys scales on a mapped bone; the playhead stands where it is 2."""
    obj = character()
    pose = obj.pose.bones["upperarm_r"]
    for frame, size in ((1, 1.0), (30, 2.0)):
        pose.scale = (size,) * 3
        pose.keyframe_insert("scale", frame=frame)
    bpy.context.scene.frame_set(30)
    notes = retarget(obj).notes
    assert not any("scaled" in note for note in notes)
    seen = fidelity.evaluated(obj, FRAMES)
    assert apart(seen, plain) < 0.01 and np.abs(seen.positions - plain.positions).max() < 1e-4
