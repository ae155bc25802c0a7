# SPDX-License-Identifier: GPL-3.0-or-later
"""What is read is what Blender shows: rest matrices by mathutils are the truth."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix

from mocap_addon.blender import armature, state
from mocap_addon.motion import quat
from mocap_addon.motion.errors import TargetError

from .helpers import MODES, limb, make_rig, rest_matrices, snapshot


def agree(obj, target, scale_length=1.0):
    """The skeleton's rest pose against Blender's rest matrices in the world."""
    names = target.skeleton.names
    truth = rest_matrices(obj, names)
    size = np.abs(truth[:, :3, 3]).max() * scale_length + 1.0
    places = target.skeleton.rest_global_positions + target.origin
    assert np.abs(places - truth[:, :3, 3] * scale_length).max() < 2e-6 * size
    axes = truth[:, :3, :3] / np.linalg.norm(truth[:, :3, :3], axis=1, keepdims=True)
    assert np.abs(quat.to_matrix(target.skeleton.rest_global_rotations) - axes).max() < 2e-6
    tails = np.array([obj.matrix_world @ obj.data.bones[n].tail_local for n in names]) * scale_length
    assert np.abs(target.skeleton.rest_global_ends + target.origin - tails).max() < 2e-6 * size


def test_an_untouched_armature():
    obj = limb()
    before = snapshot()
    target = armature.read(obj)
    assert snapshot() == before
    assert target.name == "Rig" and target.rotation_modes == MODES and target.metres_per_unit == 1.0
    assert list(target.skeleton.names) == [b.name for b in obj.data.bones]
    assert target.skeleton.parents.tolist() == list(range(-1, 7))
    assert target.inherits_rotation.all() and target.use_local_location.all() and target.deform.all()
    assert not target.connected.any() and not target.locked_location.any() and target.notes == ()
    agree(obj, target)


def _rotated(obj):
    obj.rotation_euler, obj.location = (1, -2, 0.5), (3, -4, 5)


def _axis_angle(obj):
    obj.rotation_mode, obj.rotation_axis_angle = "AXIS_ANGLE", (1.2, 0.6, 0, 0.8)


def _small(obj):
    obj.scale, obj.rotation_euler = (0.01,) * 3, (np.pi / 2, 0, 0)


def _parented(obj):
    empty, upper = bpy.data.objects.new("E", None), bpy.data.objects.new("U", None)
    for e in (empty, upper):
        bpy.context.scene.collection.objects.link(e)
    upper.rotation_euler, upper.location, upper.scale = (0.4, 0.2, -2), (1, 2, 3), (2, 2, 2)
    empty.parent, empty.rotation_euler = upper, (3, 1, 0)
    obj.parent, obj.matrix_parent_inverse = empty, Matrix.Rotation(0.7, 4, "Y") @ Matrix.Translation((1, 1, 1))
    obj.location = (0.1, 0.2, 0.3)


def _constrained(obj):
    other = bpy.data.objects.new("Lead", None)
    bpy.context.scene.collection.objects.link(other)
    other.rotation_euler, other.location = Euler((0.1, 1.0, 2.0)), (7, 8, 9)
    obj.constraints.new("COPY_TRANSFORMS").target = other


def _delta(obj):
    obj.delta_rotation_euler, obj.delta_location, obj.delta_scale = (0.3, 0, 1), (0, 1, 0), (3, 3, 3)


def _mirrored_twice(obj):
    obj.scale = (-1, -1, 1)  # a half turn, not a mirror


CHANGES = [_rotated, _axis_angle, _small, _parented, _constrained, _delta, _mirrored_twice]


@pytest.mark.parametrize("scale_length", [1.0, 0.01])
@pytest.mark.parametrize("change", CHANGES, ids=lambda f: f.__name__[1:])
def test_whatever_is_done_to_the_object(change, scale_length):
    obj = limb()
    plain = armature.read(obj)
    change(obj)
    bpy.context.scene.unit_settings.scale_length = scale_length
    target = armature.read(obj)
    agree(obj, target, scale_length)
    # One body: lengths in proportion, everything below the roots the same but for scale.
    ratio = target.metres_per_unit / plain.metres_per_unit
    assert np.allclose(target.skeleton.rest_rotations[1:], plain.skeleton.rest_rotations[1:], atol=1e-6)
    assert np.allclose(target.skeleton.rest_translations[1:], plain.skeleton.rest_translations[1:] * ratio, atol=2e-6 * max(1, ratio))
    assert np.allclose(target.skeleton.ends, plain.skeleton.ends * ratio, atol=2e-6 * max(1, ratio))


def test_bones_come_parents_first():
    names, above = ["hand", "root", "arm", "tail"], ["arm", None, "root", None]
    order, parents = armature._parents_first(names, above)
    got = [names[i] for i in order]
    assert sorted(got) == sorted(names)
    assert [above[names.index(n)] for n in got] == [got[p] if p >= 0 else None for p in parents]
    assert all(p < i for i, p in enumerate(parents))


def test_a_parent_made_after_its_child():
    obj = make_rig(
        [("hand", None, (0, 0, 2), (0, 0, 3), 0.1), ("root", None, (0, 0, 0), (0, 0, 1), 0.2), ("arm", None, (0, 0, 1), (0, 0.1, 2), 0.3)]
    )
    bpy.ops.object.mode_set(mode="EDIT")
    bones = obj.data.edit_bones
    bones["hand"].parent, bones["arm"].parent = bones["arm"], bones["root"]
    bpy.ops.object.mode_set(mode="OBJECT")
    target = armature.read(obj)
    assert [target.skeleton.names[p] if p >= 0 else None for p in target.skeleton.parents] == [
        b.parent.name if b.parent else None for b in (obj.data.bones[n] for n in target.skeleton.names)
    ]
    agree(obj, target)


def test_flags_of_bones():
    obj = limb()
    bones, poses = obj.data.bones, obj.pose.bones
    bones[2].use_inherit_rotation = bones[3].use_local_location = bones[4].use_deform = False
    poses[5].lock_location = (False, True, False)
    target = armature.read(obj)
    assert np.flatnonzero(~target.inherits_rotation).tolist() == [2]
    assert np.flatnonzero(~target.use_local_location).tolist() == [3]
    assert np.flatnonzero(~target.deform).tolist() == [4]
    assert np.argwhere(target.locked_location).tolist() == [[5, 1]]


def test_edit_mode_shows_the_bones_being_edited():
    obj = limb()
    bpy.ops.object.mode_set(mode="EDIT")
    bone = obj.data.edit_bones[-1]
    bone.tail = bone.head + (bone.tail - bone.head) * 3
    obj.data.edit_bones[0].roll += 0.5
    obj.data.edit_bones.new("added").tail = (0, 0, 1)
    target = armature.read(obj)
    assert obj.mode == "EDIT" and "Edit Mode" in target.notes[0] and "added" in target.skeleton
    assert target.rotation_modes[target.skeleton.index("added")] == "QUATERNION"
    bpy.ops.object.mode_set(mode="OBJECT")
    agree(obj, target)


def test_notes_name_what_acts_beside_the_keys():
    obj = limb()
    names = [b.name for b in obj.pose.bones]
    obj.pose.bones[1].constraints.new("LIMIT_ROTATION")
    obj.pose.bones[2].constraints.new("LIMIT_ROTATION").mute = True
    obj.pose.bones[3].lock_rotation = (True, False, False)
    obj.pose.bones[4].driver_add("location", 0)
    obj.pose.bones[6].scale = (1, 2, 1)
    obj.keyframe_insert("location", frame=1)
    obj.keyframe_insert("location", frame=2)
    obj.data.pose_position = "REST"
    text = "\n".join((*armature.read(obj).notes, *state.bone_notes(obj, names)))
    for start, expected in {"Constraints": names[1], "Locks": names[3], "Drivers": names[4], "Bones scaled": names[6]}.items():
        line = next(n for n in text.splitlines() if n.startswith(start))
        assert expected in line
        assert names[2] not in line
    assert "rest position" in text and "object itself is animated" in text


def test_refusals(tmp_path):
    with pytest.raises(TargetError, match="No armature"):
        armature.read(None)
    empty = bpy.data.objects.new("Lamp", None)
    bpy.context.scene.collection.objects.link(empty)
    with pytest.raises(TargetError, match='"Lamp" is not an armature'):
        armature.read(empty)
    with pytest.raises(TargetError, match="no bones"):
        armature.read(make_rig([], "Hollow"))
    loose = bpy.data.objects.new("Loose", limb("Gone").data)
    with pytest.raises(TargetError, match="not in the scene"):
        armature.read(loose)
    obj = limb()
    for scale, words in {
        (-1, 1, 1): "mirrored.*Ctrl",
        (1, 1.01, 1): "differently.*Ctrl",
        (1, 0, 1): "scaled to nothing",
        (float("nan"), 1, 1): "not a number",
    }.items():
        obj.scale = scale
        with pytest.raises(TargetError, match=words):
            armature.read(obj)
    obj.scale = (1.0, 1.0005, 1.0)
    armature.read(obj)


def test_a_linked_armature_is_refused_and_its_override_accepted(tmp_path):
    limb("Linked")
    path = str(tmp_path / "lib.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path, copy=True)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    with bpy.data.libraries.load(path, link=True) as (source, into):
        into.objects = source.objects
    obj = bpy.data.objects["Linked"]
    bpy.context.scene.collection.objects.link(obj)
    with pytest.raises(TargetError, match="Library Override"):
        armature.read(obj)
    override = obj.override_create(remap_local_usages=True)
    agree(override, armature.read(override))
