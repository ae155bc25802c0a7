# SPDX-License-Identifier: GPL-3.0-or-later
"""Feet as Blender shows them, against ground that is known as a formula: read from the evaluated pose, frame by frame.

Nothing of the product's measuring is used: sole points are fixed to the evaluated bones, heights come from the formula, contacts from the
lock curves that the bake wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import bpy
import numpy as np

from mocap_addon import formats
from mocap_addon.blender import compat, feet, feet_reading, job
from mocap_addon.blender.feet_recipe import FeetOptions, GroundChoice
from mocap_addon.feet.settings import FeetSettings
from mocap_addon.motion import quat
from tests.paths import SHARED, need

Height = Callable[[np.ndarray, np.ndarray], np.ndarray]

CHARACTERS = ("mh_ue_names_apose.glb", "mh_mixamo_names_scale001.glb", "mh_cmu_names_boneaxes.glb")
TAKES = (
    "cmu/asf_02_01_walk.bvh",
    "cmu/asf_02_03_run_jog.bvh",
    "cmu/asf_03_02_walk_uneven.bvh",
    "cmu/asf_03_01_walk_uneven_down.bvh",
    "misc_bvh/pymo_figure8_walk_xyz.bvh",
    "xsens/mvn_bvh_walk_239hz_1200f.bvh",
)
GROUNDS = ("flat", "stairs", "hills")


def character(name: str) -> bpy.types.Object:
    """One of the characters, standing in an empty scene at 30 frames a second."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.render.fps = 30
    bpy.ops.import_scene.gltf(filepath=str(need(SHARED / "targets" / name)))
    obj = next(o for o in bpy.data.objects if o.type == "ARMATURE")
    if obj.animation_data is not None:
        obj.animation_data_clear()
    return obj


def retargeted(obj: bpy.types.Object, name: str, most: int = 300) -> bpy.types.Action:
    """A take on it, at most ``most`` frames of the scene."""
    path = next((p for p in (SHARED / name, *SHARED.rglob(Path(name).name)) if p.exists()), SHARED / name)
    take = formats.read(need(path))[0]
    count = min(take.frames, int(most * float(take.rate or 30) / 30.0))
    return job.retarget_onto(obj, take.block(0, count)).action


def slab(name: str, corners: np.ndarray) -> bpy.types.Object:
    """A box by its corners ``(2, 2, 2, 3)``."""
    data = bpy.data.meshes.new(name)
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    data.from_pydata(corners.reshape(-1, 3).tolist(), [], faces)
    obj = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(obj)
    return obj


def grid(name: str, points: np.ndarray, quads: np.ndarray) -> bpy.types.Mesh:
    """A mesh from arrays."""
    data = bpy.data.meshes.new(name)
    data.vertices.add(points.size // 3)
    data.vertices.foreach_set("co", points.astype(np.float32).ravel())
    data.loops.add(quads.size)
    data.loops.foreach_set("vertex_index", quads.astype(np.int32).ravel())
    data.polygons.add(len(quads))
    data.polygons.foreach_set("loop_start", np.arange(0, quads.size, 4, dtype=np.int32))
    data.update(calc_edges=True)
    return data


def build(ground: str, start: np.ndarray, way: np.ndarray) -> Height:
    """Mesh objects in the scene, and the formula for their height. Stairs rise along ``way`` from 0.9 m after ``start``."""
    length = float(np.linalg.norm(way)) or 1.0
    along = way / length
    if ground == "flat":
        slab("floor", _corners(start - 60.0 * np.ones(2), np.array([1.0, 0.0]), 120.0, 120.0, -1.0, 0.0))
        return lambda x, y: np.zeros_like(x)
    if ground == "stairs":
        rise, tread = 0.17, 0.28
        across = np.array([-along[1], along[0]])
        first = start + 0.9 * along
        steps = min(40, int(length / tread) + 4)
        slab("floor", _corners(first - 60.0 * along - 30.0 * across, along, 60.0, 60.0, -1.0, 0.0))
        for k in range(steps):
            deep = tread if k < steps - 1 else 60.0
            slab(f"step {k + 1}", _corners(first + k * tread * along - 30.0 * across, along, deep, 60.0, -1.0, rise * (k + 1)))

        def stairs(x, y):
            s = (np.stack([x, y], axis=-1) - first) @ along
            return rise * np.clip(np.floor(s / tread) + 1, 0, steps)

        return stairs

    def hills(x, y):
        return 0.25 * np.sin(0.9 * x + 0.3) * np.cos(0.7 * y) - 0.25 * np.sin(0.9 * start[0] + 0.3) * np.cos(0.7 * start[1])

    n, half = 320, 16.0 + length
    u = np.linspace(-half, half, n + 1)
    x, y = np.meshgrid(start[0] + u, start[1] + u, indexing="ij")
    i = (np.arange(n)[:, None] * (n + 1) + np.arange(n)[None]).reshape(-1)
    data = grid("hills", np.stack([x, y, hills(x, y)], axis=-1), np.stack([i, i + n + 1, i + n + 2, i + 1], axis=1))
    bpy.context.scene.collection.objects.link(bpy.data.objects.new("hills", data))
    return hills


def _corners(corner: np.ndarray, along: np.ndarray, deep: float, wide: float, low: float, high: float) -> np.ndarray:
    across = np.array([-along[1], along[0]])
    points = [[[[*(corner + a * deep * along + c * wide * across), z] for z in (low, high)] for c in (0, 1)] for a in (0, 1)]
    return np.array(points)


@dataclass(frozen=True)
class Shown:
    """What Blender shows: sole points ``(F, 2, 3, 3)``, hips ``(F, 3)``, hip, knee and ankle joints ``(F, 2, 3, 3)``."""

    soles: np.ndarray
    hips: np.ndarray
    legs: np.ndarray
    frames: np.ndarray
    turns: np.ndarray = field(default_factory=lambda: np.zeros(0))


def shown(obj: bpy.types.Object, height: Height | None = None) -> Shown:
    """Every frame of the action, from the evaluated pose. What is under a ball joint rolls: it lies along the ground's normal."""
    body, names = feet_reading.feet_of_character(obj)
    bones = obj.data.bones
    driven = len(names) < len(bones)  # joints of a body that has the axes of the world at rest
    joints = sorted({body.hips, *(j for leg in body.legs for j in (leg.thigh, leg.shin, leg.foot, leg.toe if leg.toe >= 0 else leg.foot))})
    first, last = (round(f) for f in obj.animation_data.action.frame_range)
    heads, turns = [], []
    unit = bpy.context.scene.unit_settings.scale_length
    for frame in range(first, last + 1):
        bpy.context.scene.frame_set(frame)
        seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        matrices = [seen.matrix_world @ seen.pose.bones[names[j]].matrix for j in joints]
        heads.append([tuple(m.translation) for m in matrices])
        rest = [(seen.matrix_world @ bones[names[j]].matrix_local).to_quaternion().inverted() for j in joints] if driven else None
        turns.append([tuple(m.to_quaternion() @ rest[k] if rest else m.to_quaternion()) for k, m in enumerate(matrices)])
    at, turned = np.array(heads) * unit, np.array(turns)
    place = {j: k for k, j in enumerate(joints)}
    soles = np.empty((len(at), 2, 3, 3))
    for side, leg in enumerate(body.legs):
        tip = leg.toe if leg.toe >= 0 else leg.foot
        for p, (joint, offset) in enumerate(((leg.foot, leg.heel), (leg.foot, leg.ball), (tip, leg.tip))):
            if p == 1 and leg.toe >= 0:  # the sole under the ball goes with the ball joint
                ball = at[:, place[leg.toe]]
                soles[:, side, 1] = ball - _normals(height, ball) * leg.sole.ball_height
                continue
            soles[:, side, p] = at[:, place[joint]] + quat.rotate(turned[:, place[joint]], offset)
    legs = np.stack([np.stack([at[:, place[j]] for j in (leg.thigh, leg.shin, leg.foot)], axis=1) for leg in body.legs], axis=1)
    thighs = np.stack([quat.rotate(turned[:, place[leg.thigh]], leg.hinge) for leg in body.legs], axis=1)
    return Shown(soles, at[:, place[body.hips]], legs, np.arange(first, last + 1.0), thighs)


def _normals(height: Height | None, at: np.ndarray, h: float = 1e-3) -> np.ndarray:
    up = np.tile((0.0, 0.0, 1.0), (len(at), 1))
    if height is None:
        return up
    x, y = at[:, 0], at[:, 1]
    up[:, 0] = -(height(x + h, y) - height(x - h, y)) / (2 * h)
    up[:, 1] = -(height(x, y + h) - height(x, y - h)) / (2 * h)
    steep = np.linalg.norm(up[:, :2], axis=1) > 2.0  # across a riser
    up[steep] = (0.0, 0.0, 1.0)
    return up / np.linalg.norm(up, axis=1, keepdims=True)


def locks(obj: bpy.types.Object, frames: np.ndarray) -> np.ndarray:
    """(F, 2): where the action says that feet are planted."""
    found = {c.data_path: c for c in compat.moving_curves(obj.animation_data)}
    return np.array([[found[f'["foot_lock_{s}"]'].evaluate(float(f)) >= 0.5 for s in "lr"] for f in frames])


@dataclass(frozen=True)
class Figures:
    """Of one bake, in cm/s and mm."""

    contacts: int
    skate_before: float
    skate: float
    deep_contact: float
    deep_swing: float
    gap: float
    jerk: float
    knee_flips: int
    moved: float

    def __str__(self) -> str:
        return (
            f"{self.contacts:3d} contacts, skate {self.skate_before:5.2f} -> {self.skate:5.2f} cm/s, below {self.deep_contact:5.1f} / "
            f"{self.deep_swing:5.1f} mm, gap {self.gap:5.1f} mm, jerk x{self.jerk:4.2f}, flips {self.knee_flips}, "
            f"moved {self.moved:5.1f} mm"
        )


def figures(
    before: Shown, after: Shown, held: np.ndarray, height: Height, fps: float = 30.0, eased: int = 2, landing: bool = False
) -> Figures:
    """Measure. With ``landing`` only swings that end in a contact of the same foot: one that the take cuts off has nowhere to go."""
    level = height(after.soles[..., 0], after.soles[..., 1])
    over = after.soles[..., 2] - level
    deep = _depth(after.soles, over, height)
    solid = held.copy()
    for _ in range(eased):
        solid = solid & np.pad(solid, ((1, 0), (0, 0)))[:-1] & np.pad(solid, ((0, 1), (0, 0)))[1:]
    return Figures(
        contacts=int(np.sum(held[1:] & ~held[:-1]) + held[0].sum()),
        skate_before=_skate(before.soles, before.soles[..., 2], solid, fps),
        skate=_skate(after.soles, over, solid, fps),
        deep_contact=1e3 * float(deep[solid].max(initial=0.0)),
        deep_swing=1e3 * float(deep[_between(held) if landing else ~held].max(initial=0.0)),
        gap=1e3 * float(over[solid].min(axis=1, initial=np.inf).max(initial=0.0)) if solid.any() else 0.0,
        jerk=_jerk(after.hips[:, 2], fps) / max(_jerk(before.hips[:, 2], fps), 1e-9),
        knee_flips=_flips(before, after),
        moved=1e3 * float(np.linalg.norm(after.legs - before.legs, axis=-1).max()),
    )


def _depth(soles: np.ndarray, over: np.ndarray, height: Height) -> np.ndarray:
    """How far points are from the nearest place outside the ground, metres: straight up, or sideways out of a riser."""
    deep = np.maximum(-over, 0.0)
    far = np.argwhere(deep > 0.004)
    for index in map(tuple, far):
        x, y, z = soles[index]
        for radius in np.arange(0.002, min(deep[index], 0.1), 0.001):
            turn = np.linspace(0.0, 2.0 * np.pi, 24)
            if (height(x + radius * np.cos(turn), y + radius * np.sin(turn)) <= z + 1e-6).any():
                deep[index] = radius
                break
    return deep


def _between(held: np.ndarray) -> np.ndarray:
    """(F, 2): swings between two contacts of the same foot."""
    before = np.maximum.accumulate(held, axis=0)
    after = np.maximum.accumulate(held[::-1], axis=0)[::-1]
    return ~held & before & after


def _skate(soles: np.ndarray, over: np.ndarray, solid: np.ndarray, fps: float) -> float:
    """Mean level speed of what a planted sole stands on, cm/s: heel or ball, from frame to frame whichever is low in both.

    A toe's tip slides as the toe is bent and turned about the ball.
    """
    soles, over = soles[:, :, :2], over[:, :, :2]
    lowest = np.maximum(over[1:], over[:-1]).argmin(axis=2)
    step = np.linalg.norm(np.diff(soles, axis=0)[..., :2], axis=-1)
    picked = np.take_along_axis(step, lowest[..., None], axis=2)[..., 0]
    both = solid[1:] & solid[:-1]
    return 100.0 * fps * float(picked[both].mean()) if both.any() else 0.0


def _jerk(z: np.ndarray, fps: float) -> float:
    """Root mean square of the third derivative after a 6 Hz low-pass without delay: the gain of a second-order Butterworth run both ways,
    on the signal mirrored at its ends."""
    if len(z) < 30:
        return 0.0
    n = len(z)
    mirrored = np.concatenate([2 * z[0] - z[:0:-1], z, 2 * z[-1] - z[-2::-1]])
    gain = 1.0 / (1.0 + (np.fft.rfftfreq(len(mirrored), 1.0 / fps) / 6.0) ** 4)
    smooth = np.fft.irfft(np.fft.rfft(mirrored) * gain, len(mirrored))[n - 1 : 2 * n - 1]
    return float(np.sqrt(np.mean((np.diff(smooth, 3) * fps**3) ** 2)))


def _flips(before: Shown, after: Shown) -> int:
    """Frames on which a knee that is clearly bent bends to the other side than in the source."""

    def side(s: Shown) -> np.ndarray:
        thigh, shin = s.legs[:, :, 1] - s.legs[:, :, 0], s.legs[:, :, 2] - s.legs[:, :, 1]
        bent = np.cross(thigh, shin) / (np.linalg.norm(thigh, axis=-1) * np.linalg.norm(shin, axis=-1))[..., None]
        return (bent * s.turns).sum(axis=-1)

    a, b = side(before), side(after)
    return int(np.sum((np.abs(a) > 0.1) & (np.abs(b) > 0.1) & (np.sign(a) != np.sign(b))))


def run(obj: bpy.types.Object, action: bpy.types.Action, ground: str, mode: str = "plant") -> tuple[Figures, feet.FeetBake]:
    """Bake on one of the grounds and measure what Blender shows."""
    before = shown(obj)
    start, end = before.hips[0, :2], before.hips[-1, :2]
    if np.linalg.norm(end - start) < 1.0:
        end = before.hips[int(np.argmax(np.linalg.norm(before.hips[:, :2] - start, axis=1))), :2]
    height = build(ground, start, end - start)
    baked = feet.bake_feet(obj, FeetOptions(FeetSettings(mode=mode), GroundChoice("scene")))
    after = shown(obj, height)
    return figures(before, after, locks(obj, after.frames), height, landing=ground == "stairs"), baked
