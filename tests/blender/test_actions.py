# SPDX-License-Identifier: GPL-3.0-or-later
"""Keys are right when Blender's own evaluated pose says so."""

from __future__ import annotations

import json
from fractions import Fraction

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Quaternion, Vector

from mocap_addon.blender import actions, armature, channels, compat, scenes
from mocap_addon.motion import kinematics, quat
from mocap_addon.motion.errors import MocapError, TargetError
from mocap_addon.retarget.motion import PoseMotion

from .helpers import MODES, keys_of, limb, make_rig, random_quaternions, smooth_quaternions, snapshot, world_matrices

F = 40


def motion_for(target, rotations=None, locations=None, moving=(0,), frames=F, rate=Fraction(24), **more):
    rng = np.random.default_rng(11)
    bones = tuple(range(len(target.skeleton)))
    rotations = smooth_quaternions(rng, frames, len(bones)) if rotations is None else rotations
    locations = rng.normal(size=(frames, len(moving), 3)) if locations is None else locations
    times = 3.0 + np.arange(frames) / float(rate)
    return PoseMotion("take", times, bones, np.asfortranarray(rotations), tuple(moving), locations, rate, **more)


def expected(obj, names, rotations, moving, units):
    """(F, J, 4, 4) by mathutils, the slow way: parent's pose @ rest in the parent @ basis."""
    out = np.empty((len(rotations), len(names), 4, 4))
    world = obj.matrix_world
    bones = obj.data.bones
    for f in range(len(rotations)):
        pose = {}
        for j, name in enumerate(names):
            bone = bones[name]
            basis = Quaternion(rotations[f, j]).to_matrix().to_4x4()
            if j in moving:
                basis = Matrix.Translation(Vector(units[f, moving.index(j)])) @ basis
            local = bone.parent.matrix_local.inverted() @ bone.matrix_local if bone.parent else bone.matrix_local
            pose[name] = (pose[bone.parent.name] if bone.parent else Matrix()) @ local @ basis
            out[f, j] = np.array(world @ pose[name])
    return out


def write(obj, motion, target=None, **options):
    options = {"name": "take", "frame_start": 1.0, "recipe": {}} | options
    return actions.write(obj, target or armature.read(obj), motion, **options)


def test_every_rotation_mode_rebuilds_the_pose():
    obj = limb()
    target = armature.read(obj)
    motion = motion_for(target, moving=(0, 3))
    write(obj, motion, target)
    names = target.skeleton.names
    seen = world_matrices(obj, range(1, F + 1), names)
    truth = expected(obj, names, motion.rotations, [0, 3], motion.locations)
    assert np.abs(seen - truth).max() < 1e-5
    assert [p.rotation_mode for p in obj.pose.bones] == list(MODES)


def test_random_rotations_without_continuity_are_still_right_at_the_keys():
    obj = limb()
    target = armature.read(obj)
    q = random_quaternions(np.random.default_rng(2), F, len(target.skeleton))
    write(obj, motion_for(target, q), target)
    seen = world_matrices(obj, range(1, F + 1), target.skeleton.names)
    truth = expected(obj, target.skeleton.names, q, [0], motion_for(target, q).locations)
    assert np.abs(seen - truth).max() < 2e-5


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0.0, 0.8)])
def test_two_full_turns_stay_continuous(mode, axis):
    """720 degrees in 81 frames is 9 degrees a frame; half-way between two keys the pose is half-way too (flips would show there)."""
    obj = limb(modes=(mode,))
    target = armature.read(obj)
    angle = np.radians(np.arange(81) * 9.0)
    q = np.concatenate([np.cos(angle / 2)[:, None], np.sin(angle / 2)[:, None] * np.array(axis)], 1)[:, None]
    write(obj, motion_for(target, q, np.zeros((81, 0, 3)), (), 81), target)
    seen = world_matrices(obj, 1.5 + np.arange(80), target.skeleton.names)[:, 0, :3, :3]
    rest = np.array(obj.data.bones[0].matrix_local)[:3, :3]
    middle = np.array([rest @ np.array(Quaternion(axis, a + np.radians(4.5)).to_matrix()) for a in angle[:-1]])
    apart = 2.0 * np.arcsin(np.linalg.norm(seen - middle, axis=(1, 2)) / np.sqrt(8.0))  # |A - B| = sqrt(8) sin(angle / 2)
    assert np.degrees(apart).max() < (0.001 if mode in ("QUATERNION", "AXIS_ANGLE") or max(axis) == 1 else 4.0)
    values = np.array([[k.co[1] for k in c.keyframe_points] for c in compat.all_curves(obj.animation_data.action)])
    assert np.abs(np.diff(values, axis=1)).max() < (0.2 if mode in ("QUATERNION", "AXIS_ANGLE") or max(axis) == 1 else 1.7)


def test_axis_angle_through_identity_and_no_rotation_at_all():
    still = np.zeros((5, 1, 4))
    still[..., 0] = 1.0
    assert np.array_equal(channels.axis_angle(still)[:, 0], np.tile([0.0, 0.0, 1.0, 0.0], (5, 1)))
    angle = np.linspace(-1.0, 1.0, 21)  # swings through zero: the axis must not flip there
    q = np.stack([np.cos(angle / 2), np.sin(angle / 2), 0 * angle, 0 * angle], -1)[:, None]
    out = channels.axis_angle(q)[:, 0]
    assert np.allclose(np.abs(np.diff(out[:, 0])), 0.1)
    assert np.allclose(out[:, 1:], out[:1, 1:])
    assert np.allclose(out[:, 0] * out[:, 1], angle)


def test_euler_follows_mathutils():
    q = random_quaternions(np.random.default_rng(1), 50, 1)
    for mode in MODES[1:-1]:
        angles = channels.euler(q, mode)
        for i in range(50):
            assert abs(abs(Euler(angles[i, 0], mode).to_quaternion().dot(Quaternion(q[i, 0]))) - 1.0) < 1e-6


@pytest.mark.parametrize("scale_length", [1.0, 0.01])
def test_locations_are_metres_whatever_the_object_and_the_bone_say(scale_length):
    """A location is turned to the world by hand: object rotation and scale, unit scale, bones with and without local location."""
    obj = limb(modes=("QUATERNION",) * 3)
    obj.rotation_euler, obj.scale, obj.location = (0.3, -1.1, 2.0), (0.02,) * 3, (4, 5, 6)
    bpy.context.scene.unit_settings.scale_length = scale_length
    for bone, local in zip(obj.data.bones, (False, False, True), strict=True):
        bone.use_local_location = local
    target = armature.read(obj)
    locations = np.random.default_rng(3).normal(size=(F, 3, 3))
    motion = motion_for(target, None, locations, (0, 1, 2))
    write(obj, motion, target)
    seen = world_matrices(obj, range(1, F + 1), target.skeleton.names)
    # In the project's terms: metres, relative to the object's origin, rest @ basis down the chain.
    take = motion.to_take(target.skeleton)
    rotations, places = kinematics.forward(take.local_rotations, take.local_translations, target.skeleton.parents)
    size = max(1.0, np.abs(places).max())
    assert np.abs(seen[..., :3, 3] * scale_length - (places + target.origin)).max() < 2e-5 * size
    unscaled = seen[..., :3, :3] / np.linalg.norm(seen[..., :3, :3], axis=-2, keepdims=True)
    assert np.abs(unscaled - quat.to_matrix(rotations)).max() < 1e-5


def test_frames_are_counted_in_the_scene_rate():
    obj = limb(modes=("QUATERNION",))
    target = armature.read(obj)
    scenes.set_rate(bpy.context.scene, Fraction(30000, 1001))
    same = write(obj, motion_for(target, rate=Fraction(30000, 1001), frames=2000), target, frame_start=7)
    curve = compat.all_curves(same)[0]
    assert [k.co[0] for k in curve.keyframe_points] == list(range(7, 2007))
    scenes.set_rate(bpy.context.scene, Fraction(24))
    for rate in (None, Fraction(120)):
        faster = write(obj, motion_for(target, rate=Fraction(120)), target, frame_start=0, rate=rate)
        assert np.allclose([k.co[0] for k in compat.all_curves(faster)[0].keyframe_points], np.arange(F) / 5, rtol=0, atol=1e-6)
    uneven = motion_for(target, frames=3)
    uneven.times[:] = 10.0, 10.5, 11.0000001
    assert [k.co[0] for k in compat.all_curves(write(obj, uneven, target, rate=Fraction(7)))[0].keyframe_points] == [1.0, 13.0, 25.0]
    single = write(obj, motion_for(target, frames=1), target, frame_start=12.5)
    assert [k.co[0] for k in compat.all_curves(single)[0].keyframe_points] == [12.5]


def test_curves_are_linear_grouped_and_bound_to_the_one_slot():
    obj = limb()
    target = armature.read(obj)
    action = write(obj, motion_for(target), target)
    curves = compat.all_curves(action)
    assert len(curves) == 3 + sum({"QUATERNION": 4, "AXIS_ANGLE": 4}.get(m, 3) for m in MODES)
    assert {k.interpolation for c in curves for k in c.keyframe_points} == {"LINEAR"}
    for curve in curves:
        assert curve.is_valid and curve.group.name in obj.pose.bones
        assert curve.data_path.startswith(obj.pose.bones[curve.group.name].path_from_id())
    assert obj.animation_data.action == action and not action.use_fake_user and not action.use_cyclic
    assert tuple(action.frame_range) == (1.0, float(F))
    if compat.SLOTTED:
        assert obj.animation_data.action_slot == action.slots[0] and action.slots[0].name_display == compat.SLOT_NAME
        assert len(action.slots) == 1 and len(action.layers) == 1


def test_save_and_reload_keeps_motion_recipe_and_earlier_action(tmp_path):
    obj = limb()
    target = armature.read(obj)
    old = write(obj, motion_for(target), target, name="older")
    old_keys = keys_of(old)
    motion = motion_for(
        target, random_quaternions(np.random.default_rng(8), F, len(target.skeleton)), curves={"blink": np.linspace(0, 1, F)}
    )
    action = write(obj, motion, target, name="newer", recipe={"source": "ü.bvh", "steps": [1, {"a": 2.5}]})
    unassigned = write(obj, motion, target, name="aside", assign=False)
    assert obj.animation_data.action == action and unassigned.use_fake_user
    names = target.skeleton.names
    before = world_matrices(obj, range(1, F + 1), names)
    path = scenes.save_blend(tmp_path / "saved.blend")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["saved.blend"] and bpy.data.filepath == ""
    bpy.ops.wm.open_mainfile(filepath=str(path))
    obj = bpy.data.objects["Rig"]
    assert np.array_equal(world_matrices(obj, range(1, F + 1), names), before)
    assert actions.recipe_of(obj.animation_data.action) == {"source": "ü.bvh", "steps": [1, {"a": 2.5}]}
    assert keys_of(bpy.data.actions["older"]) == old_keys and "aside" in bpy.data.actions
    assert obj["blink"] == pytest.approx(1.0)


def test_curves_become_properties_keyed_in_the_same_action():
    obj = limb(modes=("QUATERNION",))
    obj["mine"] = 0.25
    target = armature.read(obj)
    curves = {'odd "name"': np.linspace(0, 2, F), "TCFrame": np.arange(F) % 7.0, "mine": np.linspace(5, 6, F)}
    action = write(obj, motion_for(target, curves=curves), target)
    for frame in (1, 9, F):
        bpy.context.scene.frame_set(frame)
        seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        for name, values in curves.items():
            assert seen[name] == pytest.approx(values[frame - 1], abs=1e-5)
    kinds = {c.data_path: {k.interpolation for k in c.keyframe_points} for c in compat.all_curves(action)}
    assert kinds['["TCFrame"]'] == {"CONSTANT"} and kinds['["mine"]'] == {"LINEAR"}


def test_what_the_action_before_left_in_the_pose_does_not_stay():
    obj = limb(modes=("QUATERNION", "QUATERNION"))
    target = armature.read(obj)
    names = target.skeleton.names
    second = obj.pose.bones[1]
    second.location, second.scale = (1, 2, 3), (2, 2, 2)
    second.keyframe_insert("location", frame=1)
    second.keyframe_insert("scale", frame=1)
    old = obj.animation_data.action
    motion = motion_for(target)
    write(obj, motion, target)
    truth = expected(obj, names, motion.rotations, [0], motion.locations)
    assert np.abs(world_matrices(obj, range(1, F + 1), names) - truth).max() < 1e-5
    assert old.use_fake_user and old.users == 1


def test_nothing_but_the_new_action_appears():
    obj, other = limb(), limb("Other")
    other.pose.bones[0].keyframe_insert("location", frame=3)
    obj.pose.bones[2].keyframe_insert("scale", frame=4)
    bpy.context.view_layer.update()
    target = armature.read(obj)
    before = snapshot()
    action = write(obj, motion_for(target), target)
    obj.animation_data.action.use_fake_user = False
    bpy.context.view_layer.update()
    after = snapshot()
    assert after["counts"]["actions"] == before["counts"]["actions"] + 1
    assert {k: v for k, v in after["actions"].items() if k != action.name} == before["actions"]
    assert after["objects"]["Other"] == before["objects"]["Other"]
    assert after["scene"] == before["scene"]


@pytest.mark.parametrize("animated", [False, True])
@pytest.mark.parametrize("fault", ["new_curve", "assign", "dumps", "after"])
def test_a_fault_in_the_middle_leaves_everything_as_it_was(monkeypatch, fault, animated):
    obj = limb()
    if animated:
        obj.pose.bones[0].keyframe_insert("location", frame=3)
        obj.animation_data.action.use_fake_user = False
        other = bpy.data.actions.new("untouched")
        other.use_fake_user = True
    target = armature.read(obj)
    motion = motion_for(target, curves={"c": np.ones(F)})
    bpy.context.view_layer.update()
    before = snapshot()
    calls = 0

    def failing(*args, **kwargs):
        nonlocal calls
        calls += 1
        if fault == "new_curve" and calls < 9:
            return real(*args, **kwargs)
        if fault == "assign" and calls > 1:
            return real(*args, **kwargs)
        if fault == "after":
            real(*args, **kwargs)
        raise OSError("injected")

    owner, name = {
        "new_curve": (compat, "new_curve"),
        "assign": (compat, "assign"),
        "dumps": (json, "dumps"),
        "after": (actions, "make_active"),
    }[fault]
    real = getattr(owner, name)
    monkeypatch.setattr(owner, name, failing)
    with pytest.raises(OSError, match="injected"):
        write(obj, motion, target)
    monkeypatch.undo()
    assert calls
    assert snapshot() == before


def test_refusals_are_sentences_and_leave_nothing():
    obj = limb(modes=("QUATERNION", "XYZ"))
    target = armature.read(obj)
    before = snapshot()
    obj.pose.bones[0].name = "renamed"
    with pytest.raises(TargetError, match=r"no bone .* any more"):
        write(obj, motion_for(target), target)
    obj.pose.bones[0].name = target.skeleton.names[0]
    broken = smooth_quaternions(np.random.default_rng(0), F, 2)
    broken[17, 1, 2] = np.nan
    with pytest.raises(MocapError, match=r"XYZ.* sample 18"):
        write(obj, motion_for(target, broken), target)
    with pytest.raises(MocapError, match="no frames"):
        write(obj, motion_for(target, np.zeros((0, 2, 4)), np.zeros((0, 1, 3)), frames=0), target)
    with pytest.raises(MocapError, match="too close together"):
        write(obj, motion_for(target, rate=Fraction(1000)), target, frame_start=1_000_000)
    assert snapshot() == before


def test_a_connected_bone_gets_no_location_keys():
    obj = make_rig([("a", None, (0, 0, 0), (0, 0, 1), 0.0), ("b", "a", (0, 0, 1), (0, 0, 2), 0.0)])
    bpy.ops.object.mode_set(mode="EDIT")
    obj.data.edit_bones["b"].use_connect = True
    bpy.ops.object.mode_set(mode="OBJECT")
    target = armature.read(obj)
    assert target.connected.tolist() == [False, True]
    motion = motion_for(target, moving=(0, 1))
    action = write(obj, motion, target)
    paths = {c.data_path for c in compat.all_curves(action)}
    assert 'pose.bones["a"].location' in paths and 'pose.bones["b"].location' not in paths
    truth = expected(obj, ["a", "b"], motion.rotations, [0], motion.locations)
    assert np.abs(world_matrices(obj, range(1, F + 1), ["a", "b"]) - truth).max() < 1e-5


def test_tweak_mode_is_refused_and_nla_is_left_alone():
    obj = limb(modes=("QUATERNION",))
    obj.pose.bones[0].keyframe_insert("location", frame=3)
    data = obj.animation_data
    track = data.nla_tracks.new()
    track.strips.new("strip", 1, data.action)
    data.action = None
    target = armature.read(obj)
    state = [(t.name, t.mute, [(s.name, s.action, s.influence, s.frame_start) for s in t.strips]) for t in data.nla_tracks]
    action = write(obj, motion_for(target), target)
    assert [(t.name, t.mute, [(s.name, s.action, s.influence, s.frame_start) for s in t.strips]) for t in data.nla_tracks] == state
    data.action = None
    track.select = True
    data.nla_tracks.active = track
    data.use_tweak_mode = True
    assert data.use_tweak_mode
    with pytest.raises(TargetError, match="tweak mode"):
        write(obj, motion_for(target), target)
    assert action.name in bpy.data.actions


def test_works_in_pose_and_edit_mode_without_leaving_it():
    obj = limb()
    target = armature.read(obj)
    motion = motion_for(target)
    for mode in ("POSE", "EDIT"):
        bpy.ops.object.mode_set(mode=mode)
        target = armature.read(obj)
        write(obj, motion, target)
        assert obj.mode == mode
        bpy.ops.object.mode_set(mode="OBJECT")
        truth = expected(obj, target.skeleton.names, motion.rotations, [0], motion.locations)
        assert np.abs(world_matrices(obj, range(1, F + 1), target.skeleton.names) - truth).max() < 1e-5


def test_an_override_keeps_its_motion_through_a_reload(tmp_path):
    limb("Linked")
    library = str(tmp_path / "lib.blend")
    bpy.ops.wm.save_as_mainfile(filepath=library, copy=True)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    with bpy.data.libraries.load(library, link=True) as (source, into):
        into.objects = source.objects
    bpy.context.scene.collection.objects.link(bpy.data.objects["Linked"])
    obj = bpy.data.objects["Linked"].override_create(remap_local_usages=True)
    target = armature.read(obj)
    motion = motion_for(target, curves={"blink": np.ones(F)})
    write(obj, motion, target)
    assert "blink" not in obj
    names = target.skeleton.names
    truth = expected(obj, names, motion.rotations, [0], motion.locations)
    assert np.abs(world_matrices(obj, range(1, F + 1), names) - truth).max() < 1e-5
    path = scenes.save_blend(tmp_path / "shot.blend")
    bpy.ops.wm.open_mainfile(filepath=str(path))
    again = next(o for o in bpy.data.objects if o.override_library)
    assert again.animation_data.action.library is None
    assert np.abs(world_matrices(again, range(1, F + 1), names) - truth).max() < 1e-5


def test_names_that_need_escaping():
    names = ['a"b', "back\\slash", "ünïcödé 骨", "tab\there", "end]", "dot.L"]
    obj = make_rig([(n, None, (i, 0, 0), (i, 0, 1), 0.0) for i, n in enumerate(names)])
    target = armature.read(obj)
    motion = motion_for(target, curves={n: np.full(F, float(i)) for i, n in enumerate(names)})
    action = write(obj, motion, target)
    truth = expected(obj, names, motion.rotations, [0], motion.locations)
    assert np.abs(world_matrices(obj, range(1, F + 1), names) - truth).max() < 1e-5
    assert all(c.is_valid for c in compat.all_curves(action))
    assert [obj[n] for n in names] == [0, 1, 2, 3, 4, 5]
