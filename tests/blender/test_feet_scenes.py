# SPDX-License-Identifier: GPL-3.0-or-later
"""The synthetic scenes of the feet room as scenes of Blender: meshes for ground, an armature for the walker, the evaluated pose for result.

The same measures and limits hold as for the arrays alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import bpy
import numpy as np
import pytest

pytest.importorskip("scipy", reason="the measures of the feet room need SciPy")

from mocap_addon.blender import actions, armature, compat, feet
from mocap_addon.blender.feet_recipe import FeetOptions, GroundChoice
from mocap_addon.feet.ground import Box, Boxes, Plane, Union
from mocap_addon.motion import kinematics, quat
from mocap_addon.motion.take import Take
from mocap_addon.retarget.motion import PoseMotion
from tests.feet import scenes
from tests.feet.limits import rows
from tests.feet.measure import measure

from .feet_checks import slab
from .helpers import make_rig

FEW = ("clean", "platform turning", "jump", "storeys", "high heels", "stairs 17/28 up", "slope 20, heading 45")


@dataclass(frozen=True)
class Evaluated:
    """What stands for the arrays' result: the take that Blender shows."""

    take: Take
    contacts: np.ndarray

    def onto(self, _source: Take) -> Take:
        return self.take


def walker(take: Take, frame: float = 1.0) -> bpy.types.Object:
    """The walker's bones, crooked rolls and all, with the take as its action."""
    skeleton = take.skeleton
    at, ends = skeleton.rest_global_positions, skeleton.rest_global_ends
    rows_ = []
    for j, name in enumerate(skeleton.names):
        below = [k for k in range(len(skeleton)) if skeleton.parents[k] == j]
        tail = at[below[-1]] if below and name != "Hips" else ends[j] if np.isfinite(ends[j]).all() else at[j] + (0.0, 0.0, 0.1)
        rows_.append((name, skeleton.names[skeleton.parents[j]] if skeleton.parents[j] >= 0 else None, tuple(at[j]), tuple(tail), 0.3 * j))
    obj = make_rig(rows_, "Walker")
    target = armature.read(obj)
    order = [target.skeleton.index(name) for name in skeleton.names]
    rest = target.skeleton.rest_global_rotations[order]
    world = quat.mul(quat.mul(take.global_rotations, quat.inv(skeleton.rest_global_rotations)), rest)
    local, _ = kinematics.inverse(world, take.global_positions, skeleton.parents)
    own = target.skeleton.rest_rotations[order]
    away = take.global_positions[:, 0] - at[0]
    motion = PoseMotion(
        take.name,
        take.times,
        tuple(order),
        quat.continuous(quat.mul(quat.inv(own), local)),
        (order[0],),
        quat.rotate(quat.inv(rest[0]), away)[:, None],
        rate=Fraction(60),
    )
    actions.write(obj, target, motion, name="walk", frame_start=frame, rate=Fraction(60))
    return obj


def read_back(obj: bpy.types.Object, source: Take) -> Take:
    """The evaluated pose as a take on the walker's own skeleton."""
    names = source.skeleton.names
    rest = np.array([np.array((obj.matrix_world @ obj.data.bones[n].matrix_local).to_quaternion()) for n in names])
    turns, places = [], []
    for k in range(source.frames):
        bpy.context.scene.frame_set(k + 1)
        seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        matrices = [seen.matrix_world @ seen.pose.bones[n].matrix for n in names]
        turns.append([tuple(m.to_quaternion()) for m in matrices])
        places.append([tuple(m.translation) for m in matrices])
    world = quat.mul(quat.mul(np.array(turns), quat.inv(rest)), source.skeleton.rest_global_rotations)
    local, moved = kinematics.inverse(world, np.array(places), source.skeleton.parents)
    return replace(source, local_rotations=quat.continuous(local), local_translations=moved)


def built(ground, frames: int, seconds: np.ndarray) -> None:
    """Mesh objects for a ground of the feet room."""
    if isinstance(ground, Union):
        for part in ground.parts:
            built(part, frames, seconds)
    elif isinstance(ground, Boxes):
        for box in ground.boxes:
            _box(box, seconds)
    elif isinstance(ground, Plane) or ground is None:
        plane = ground or Plane()
        n = np.array(plane.normal) / np.linalg.norm(plane.normal)
        corners = [(x, y) for x, y in ((-30, -30), (30, -30), (30, 30), (-30, 30))]
        z = [plane.point[2] - (n[0] * (x - plane.point[0]) + n[1] * (y - plane.point[1])) / n[2] for x, y in corners]
        data = bpy.data.meshes.new("plane")
        data.from_pydata([(x, y, h) for (x, y), h in zip(corners, z, strict=True)], [], [(0, 1, 2, 3)])
        bpy.context.scene.collection.objects.link(bpy.data.objects.new("plane", data))


def _box(box: Box, seconds: np.ndarray) -> None:
    low, high = np.array(box.low), np.array(box.high)
    obj = slab(box.name, np.array([[[[x, y, z] for z in (low[2], high[2])] for y in (low[1], high[1])] for x in (low[0], high[0])]))
    if box.motion is None:
        return
    at, turned = box.motion(seconds)
    obj.rotation_mode = "QUATERNION"
    for k in range(len(seconds)):
        obj.location, obj.rotation_quaternion = at[k], turned[k]
        obj.keyframe_insert("location", frame=k + 1)
        obj.keyframe_insert("rotation_quaternion", frame=k + 1)
    for curve in compat.all_curves(obj.animation_data.action):
        for key in curve.keyframe_points:
            key.interpolation = "LINEAR"


def played(scene: scenes.Scene) -> tuple[bpy.types.Object, feet.FeetBake]:
    bpy.context.scene.render.fps = 60
    obj = walker(scene.source)
    built(scene.ground, scene.source.frames, scene.source.times)
    soles = dict.fromkeys(("left", "right"), scene.walk.shape.sole)
    return obj, feet.bake_feet(obj, FeetOptions(ground=GroundChoice("scene"), soles=soles))


def fallen_short(scene: scenes.Scene) -> list:
    obj, baked = played(scene)
    shown = Evaluated(read_back(obj, scene.source), baked.result.contacts)
    m = measure(scene.walk, scene.source, shown, scene.height, carry=scene.carry, source_height=scene.source_height)
    return [r for r in rows(m, noisy="noise" in scene.name, slides=m.M3_source > 1.0) if not r.holds]


@cache
def all_scenes() -> dict[str, scenes.Scene]:
    return {s.name: s for s in scenes.everything()}


@pytest.mark.parametrize("name", FEW)
def test_a_scene_keeps_its_limits_as_blender_shows_it(name):
    assert not fallen_short(all_scenes()[name])


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(set(all_scenes()) - set(FEW)))
def test_every_scene_keeps_its_limits_as_blender_shows_it(name):
    assert not fallen_short(all_scenes()[name])


def test_a_clean_take_stays_as_it_is():
    scene = all_scenes()["clean"]
    bpy.context.scene.render.fps = 60
    obj = walker(scene.source)
    before = read_back(obj, scene.source)
    assert np.abs(before.global_positions - scene.source.global_positions).max() < 1e-4  # the walker is what it should be
    built(None, scene.source.frames, scene.source.times)
    soles = dict.fromkeys(("left", "right"), scene.walk.shape.sole)
    feet.bake_feet(obj, FeetOptions(ground=GroundChoice("scene"), soles=soles))
    after = read_back(obj, scene.source)
    assert np.linalg.norm(after.global_positions - before.global_positions, axis=2).max() < 1e-3
    assert np.degrees(quat.angle(after.global_rotations, before.global_rotations)).max() < 0.1
