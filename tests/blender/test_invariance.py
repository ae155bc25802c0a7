# SPDX-License-Identifier: GPL-3.0-or-later
"""How a character was built and placed never shows in its motion: same evaluated world motion to 0.1 mm and 0.01 degree."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix, Quaternion

from mocap_addon import formats
from mocap_addon.blender import scenes
from mocap_addon.blender.job import JobOptions, retarget_onto
from mocap_addon.motion import quat
from mocap_addon.motion.errors import TargetError
from tests.paths import need

from . import fidelity

TAKE = "cmu/asf_02_01_walk.bvh"
FRAMES = (1, 9, 17, 26)


@pytest.fixture
def take():
    return formats.read(need(fidelity.find(TAKE)))[0]


def character() -> bpy.types.Object:
    obj = fidelity.target_object("unreal")
    for child in list(obj.children):
        bpy.data.objects.remove(child)
    return obj


def motion(obj, take, **options) -> fidelity.Evaluated:
    scenes.set_rate(bpy.context.scene, Fraction(24))
    retarget_onto(obj, take, options=JobOptions(frame_start=1.0, **options))
    return fidelity.evaluated(obj, FRAMES)


def assert_same(a: fidelity.Evaluated, b: fidelity.Evaluated, *, unit: float = 1.0, but: tuple[str, ...] = ("Root",)) -> None:
    names = [name for name in a.names if name not in but]
    i, j = [a.names.index(n) for n in names], [b.names.index(n) for n in names]
    assert np.linalg.norm(a.positions[:, i] - b.positions[:, j] / unit, axis=-1).max() < 1e-4
    assert np.degrees(quat.angle(a.rotations[:, i], b.rotations[:, j]).max()) < 0.01


@pytest.fixture
def plain(take):
    out = motion(character(), take)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    return out


@pytest.mark.parametrize(
    "matrix",
    [
        Matrix.Rotation(np.radians(90), 4, "X"),
        Matrix.Rotation(np.radians(37), 4, "Z"),
        Euler((0.4, -1.1, 2.0)).to_matrix().to_4x4(),
        Matrix.Scale(0.01, 4) @ Matrix.Rotation(np.radians(-90), 4, "X"),
    ],
    ids=["x90", "z37", "any", "x-90 scale 0.01"],
)
@pytest.mark.parametrize("parented", [False, True])
def test_the_objects_own_transform(take, plain, matrix, parented):
    obj = character()
    obj.data.transform(Matrix.Scale(1.0 / matrix.median_scale, 4))  # the same size in the world: "scale 0.01, bones in centimetres"
    if parented:
        empty = bpy.data.objects.new("Empty", None)
        bpy.context.collection.objects.link(empty)
        empty.matrix_world = matrix
        obj.parent = empty
        obj.matrix_parent_inverse = Matrix.Identity(4)
    else:
        obj.matrix_world = matrix
    bpy.context.view_layer.update()
    assert_same(plain, motion(obj, take))


def test_place_of_the_object_is_the_origin_of_the_take(take, plain):
    obj = character()
    obj.location = (3.0, -2.0, 0.5)
    bpy.context.view_layer.update()
    out = motion(obj, take)
    assert_same(plain, fidelity.Evaluated(out.names, out.rotations, out.positions - [3.0, -2.0, 0.5]))


def test_random_roll_of_every_bone(take, plain):
    obj = character()
    rng = np.random.default_rng(3)
    before = fidelity.rest(obj)
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode="EDIT")
    for bone in obj.data.edit_bones:
        bone.roll = float(rng.uniform(-3.1, 3.1))
    bpy.ops.object.mode_set(mode="OBJECT")
    after = fidelity.rest(obj)
    assert np.degrees(quat.angle(before.rotations, after.rotations)).max() > 30  # the rolls are really there
    out = motion(obj, take)
    back = quat.mul(out.rotations, quat.mul(quat.inv(after.rotations), before.rotations))
    assert_same(plain, fidelity.Evaluated(out.names, back, out.positions))


@pytest.mark.parametrize("heading", [90.0, -33.0, 180.0])
def test_rest_facing_another_way(take, plain, heading):
    obj = character()
    obj.data.transform(Matrix.Rotation(np.radians(heading), 4, "Z"))
    bpy.context.view_layer.update()
    assert_same(plain, motion(obj, take))


def test_rest_lying_in_its_own_space(take, plain):
    """Bones built with Y up in the armature's own axes and no object rotation: the rest lies on its back, the motion stands."""
    obj = character()
    obj.data.transform(Matrix.Rotation(np.radians(-90), 4, "X"))
    bpy.context.view_layer.update()
    assert_same(plain, motion(obj, take))


def test_unit_scale_of_the_scene(take, plain):
    obj = character()
    obj.scale = (100.0, 100.0, 100.0)
    bpy.context.scene.unit_settings.scale_length = 0.01
    bpy.context.view_layer.update()
    assert_same(plain, motion(obj, take), unit=100.0)


@pytest.mark.parametrize("heading", [0.0, 41.0, 90.0, -120.0])
def test_source_facing_any_way(take, plain, heading):
    turned = take.turned(quat.from_axis_angle((0.0, 0.0, 1.0), np.radians(heading)))
    assert_same(plain, motion(character(), turned))


def test_five_hundred_metres_away(take):
    obj = character()
    near = motion(obj, take)
    near_keys = _rotation_keys(obj)
    far_take = take.rerooted(lambda q: q, lambda v: v + np.array([500.0, 0.0, 0.0]), rest=False)
    far = motion(obj, far_take)
    far_keys = _rotation_keys(obj)
    assert near_keys.keys() == far_keys.keys() and len(near_keys) > 60
    assert max(np.abs(near_keys[k] - far_keys[k]).max() for k in near_keys) < 1e-6
    shift = (far.positions - near.positions)[:, near.names.index("head")].mean(axis=0)
    assert np.linalg.norm(shift) > 450 * 0.9
    moving = [i for i, name in enumerate(near.names) if name != "Root"]
    assert np.linalg.norm((far.positions - near.positions - shift)[:, moving], axis=-1).max() < 5e-4


def _rotation_keys(obj) -> dict[tuple[str, int], np.ndarray]:
    from mocap_addon.blender import compat

    out = {}
    for curve in compat.all_curves(obj.animation_data.action):
        if "rotation" in curve.data_path:
            co = np.empty(len(curve.keyframe_points) * 2, dtype=np.float32)
            curve.keyframe_points.foreach_get("co", co)
            out[curve.data_path, curve.array_index] = co[1::2]
    return out


def test_a_full_turn_keeps_quaternions_continuous(take):
    spin = np.linspace(0.0, np.radians(720.0), take.frames)
    turns = quat.from_axis_angle((0.0, 0.0, 1.0), spin)
    local = take.local_rotations.copy()
    local[:, 0] = quat.mul(turns, local[:, 0])
    obj = character()
    motion(obj, replace(take, local_rotations=local))
    keys = _rotation_keys(obj)
    for path in {path for path, _ in keys}:
        q = np.stack([keys[path, c] for c in range(4)], axis=-1)
        assert np.einsum("fc,fc->f", q[1:], q[:-1]).min() > 0.0


@pytest.mark.parametrize("scale", [(-1.0, 1.0, 1.0), (1.0, 1.0, 2.0), (0.0, 0.0, 0.0)])
def test_mirrored_or_uneven_scale_is_refused_in_a_sentence(take, scale):
    obj = character()
    obj.scale = scale
    bpy.context.view_layer.update()
    actions = len(bpy.data.actions)
    with pytest.raises(TargetError, match="scale"):
        retarget_onto(obj, take)
    assert len(bpy.data.actions) == actions
    assert Quaternion() == obj.rotation_quaternion
