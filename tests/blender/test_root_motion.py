# SPDX-License-Identifier: GPL-3.0-or-later
"""Root motion as Blender evaluates it: root times hips is the motion of before, whoever carries it and however the object stands."""

from __future__ import annotations

import itertools
import zlib
from fractions import Fraction

import bpy
import numpy as np
import pytest
from mathutils import Vector

from mocap_addon import formats
from mocap_addon.blender import characters, job
from mocap_addon.blender.job import JobOptions
from mocap_addon.motion import quat
from mocap_addon.motion.take import Take
from mocap_addon.retarget.root_motion import RootMotion
from tests.paths import SHARED, need

METRES = 1e-4
DEGREES = 0.01
AXES = [letters for n in range(4) for letters in map("".join, itertools.combinations("xyz", n))]
CHARACTERS = {"unreal": "mh_ue_names_apose.glb", "mixamo": "mh_mixamo_names_scale001.glb", "kaykit": "kaykit_manny/manny_med_mod.gltf"}
HAS_ROOT = ("unreal", "kaykit")


@pytest.fixture(scope="module")
def take() -> Take:
    """Half a second of a walk that turns, starting beside the origin."""
    path = need(SHARED / "cmu" / "asf_01_01_playground_jumps_turn_30fps.bvh")
    whole = formats.read(path)[0].resampled(Fraction(24))
    some = whole.block(200, 290)
    picked = some.sampled(some.times[::11])
    turn = quat.from_axis_angle(np.array([0.0, 0.0, 1.0]), 0.7)
    moved = picked.rerooted(lambda q: quat.mul(turn, q), lambda v: quat.rotate(turn, v) + np.array([1.5, -0.8, 0.0]), rest=False)
    return Take(moved.name, moved.skeleton, np.arange(moved.frames) / 24.0, moved.local_rotations, moved.local_translations, Fraction(24))


def character(name: str) -> bpy.types.Object:
    obj = characters.bring_in(need(SHARED / "targets" / CHARACTERS[name])).armature
    if obj.animation_data is not None:
        obj.animation_data_clear()
    bpy.context.view_layer.update()
    return obj


def stand(obj: bpy.types.Object, how: str) -> None:
    """Put the object somewhere, in some way."""
    if how in ("turned", "parented"):
        obj.location = (0.7, -1.1, 0.3)
        obj.rotation_mode = {"turned": "ZXY", "parented": "AXIS_ANGLE"}[how]
        if how == "turned":
            obj.rotation_euler = (obj.rotation_euler[0] + 0.2, -0.4, 1.9)
            obj.delta_rotation_euler = (0.1, 0.2, -0.3)
            obj.delta_location = (0.0, 2.0, 0.0)
        else:
            obj.rotation_axis_angle = (1.1, 0.36, 0.48, 0.8)
        obj.scale = obj.scale * 1.7
    if how == "parented":
        for i in range(2):
            above = bpy.data.objects.new(f"Above {i}", None)
            bpy.context.scene.collection.objects.link(above)
            above.rotation_euler = (0.5, -0.3 * i, 2.0)
            above.location = (0.2, 1.0, -0.4)
            above.scale = (0.5, 0.5, 0.5)
            top = obj
            while top.parent is not None:
                top = top.parent
            top.parent = above
    bpy.context.view_layer.update()


def evaluated(obj: bpy.types.Object, count: int, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Rotations ``(F, J, 4)`` and places ``(F, J, 3)`` of bones in the world from Blender's evaluated pose, frames 1 on; metres."""
    matrices = np.empty((count, len(names), 4, 4))
    for f in range(count):
        bpy.context.scene.frame_set(1 + f)
        ready = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        world = np.array(ready.matrix_world, dtype=np.float64)
        for j, name in enumerate(names):
            matrices[f, j] = world @ np.array(ready.pose.bones[name].matrix, dtype=np.float64)
    linear = matrices[..., :3, :3] / np.linalg.norm(matrices[..., :3, :3], axis=-2, keepdims=True)
    return quat.from_matrix(linear), matrices[..., :3, 3] * bpy.context.scene.unit_settings.scale_length


def same(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> None:
    assert np.linalg.norm(a[1] - b[1], axis=-1).max() < METRES
    assert np.degrees(quat.angle(a[0], b[0])).max() < DEGREES


def carried(pose: tuple[np.ndarray, np.ndarray], policy: RootMotion, rest: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Where a plain evaluated pose goes by the rule for first frames: its first hips over their rest place, perhaps with their heading."""
    q, x = pose
    if policy.origin == "keep":
        return pose
    turn = quat.IDENTITY
    if policy.origin == "first-heading":
        d = quat.mul(q[0, 0], quat.inv(rest[0]))
        turn = quat.from_axis_angle(np.array([0.0, 0.0, 1.0]), -2.0 * np.arctan2(d[3], d[0]))
    first = x[0, 0]
    return quat.mul(turn, q), np.array([rest[1][0], rest[1][1], first[2]]) + quat.rotate(turn, x - first)


def rest_of(obj: bpy.types.Object, name: str, head: str) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and place of a bone at rest in the world; the rotation as if the tilted object were put upright, the shortest way."""
    m = np.array(obj.matrix_world, dtype=np.float64) @ np.array(obj.data.bones[name].matrix_local, dtype=np.float64)
    turn = obj.matrix_world.to_quaternion()
    trunk = turn @ (obj.data.bones[head].head_local - obj.data.bones[name].head_local)
    up = max((s * (turn @ Vector(axis)) for axis in np.eye(3) for s in (1, -1)), key=trunk.dot)
    righted = quat.mul(np.array(up.rotation_difference(Vector((0, 0, 1)))), quat.from_matrix(m[:3, :3] / np.linalg.norm(m[:3, :3], axis=0)))
    return righted, m[:3, 3] * bpy.context.scene.unit_settings.scale_length


def body_names(result: job.JobResult) -> list[str]:
    """Hips first, then what hangs on them."""
    skeleton = result.target.skeleton
    hips = result.target_roles.one("hips")
    picked = [role for role in ("head", "leftHand", "rightFoot", "leftToes") if result.target_roles.one(role) is not None]
    return [skeleton.names[hips], *(skeleton.names[result.target_roles.one(role)] for role in picked)]


def run(obj: bpy.types.Object, take: Take, policy: RootMotion | None = None) -> job.JobResult:
    bpy.context.scene.render.fps = 24
    bpy.context.scene.frame_set(3)  # wherever the playhead stands, what carried before must not be taken for the place
    return job.retarget_onto(obj, take, options=JobOptions(frame_start=1.0, root=policy or RootMotion()))


@pytest.mark.parametrize("how", ["as it comes", "turned", "parented"])
@pytest.mark.parametrize("name", CHARACTERS)
def test_root_times_hips_is_the_motion_of_before(take, name, how):
    """Every destination with all axes, headings, first frames, with and without smoothing, one action after the other on one object."""
    obj = character(name)
    stand(obj, how)
    plain = run(obj, take)
    names = body_names(plain)
    before = evaluated(obj, take.frames, names)
    hips_rest = rest_of(obj, names[0], names[1])
    assert np.linalg.norm(np.ptp(before[1][:, 0], axis=0)) > 0.1
    destinations = ("object", "bone", "hips") if name in HAS_ROOT else ("object", "hips")
    for destination, axes, heading, origin, smoothing in itertools.product(
        destinations, AXES, ("root", "hips"), ("keep", "first", "first-heading"), (0.0, 0.4)
    ):
        policy = RootMotion(destination=destination, axes=axes, heading=heading, origin=origin, smoothing=smoothing)
        if zlib.crc32(repr((name, how, policy)).encode()) % (6 if destination != "hips" else 30):
            continue  # a sixth of them a character and place: each combination comes up with one or another
        run(obj, take, policy)
        same(evaluated(obj, take.frames, names), carried(before, policy, hips_rest))
    run(obj, take)
    same(evaluated(obj, take.frames, names), before)
