# SPDX-License-Identifier: GPL-3.0-or-later
"""The state machine of Advanced Locomotion System V4: foot locks, foot offsets and pelvis offset, one update after another.

Metres and degrees; the formulas are ALS's (interpolation as Unreal's ``VInterpTo`` and ``RInterpTo``: a share ``min(speed dt, 1)`` of
the way). Everything that does not depend on the update before is an array; only the recursion is a loop, over plain floats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .settings import FeetSettings

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

SNAP = 1e-8
"""m^2: a vector that near its target jumps onto it (Unreal: 1e-4 cm^2)."""
SNAP_DEGREES = 1e-4


@dataclass(frozen=True, eq=False)
class Offsets:
    """N updates, left and right.

    Parameters
    ----------
    location : (N, 2, 3) array
        Offsets of the feet, world, metres.
    angles : (N, 2, 2) array
        Their two rotation channels, degrees.
    pelvis : (N, 3) array
    alpha : (N,) array
        How much of the pelvis' offset shows.
    """

    location: Array
    angles: Array
    pelvis: Array
    alpha: Array


def lock_weights(lock: Array, gate: Array) -> tuple[Array, Indices]:
    """Weight of a foot's lock (N,) and the update (N,) whose foot it holds; -1 before the first.

    The weight falls with the curve, or jumps to it from 0.99 on; it never fades in. What is held is the foot where the weight jumped:
    ALS reads the foot anew in each update, but reads its own locked pose.
    """
    weight, at = np.zeros(len(lock)), np.full(len(lock), -1, dtype=np.int64)
    w, where = 0.0, -1
    for i, (k, e) in enumerate(zip(lock.tolist(), gate.tolist(), strict=True)):
        if e > 0.0:
            before = w
            if k >= 0.99 or k < w:
                w = k
            if w >= 0.99 and before < 0.99:
                where = i
        weight[i], at[i] = w, where
    return weight, at


def targets(foot: Array, root: Array, point: Array, normal: Array, walkable: Flags, height: Array, exact: bool) -> tuple[Array, Array]:
    """What offsets and angles head for.

    Parameters
    ----------
    foot : (N, 2, 3) array
        World; only x and y count.
    root : (N,) array
        Height of the floor that the character stands on.
    point, normal : (N, 2, 3) array
        Hits of the traces.
    walkable : (N, 2) bool array
    height : (2,) array
        Of the foot joints over their soles.
    exact : bool
        Angles of the smallest rotation from up to the normal (a rotation vector about x and y), else ALS's own pair: about y by
        ``atan2(n.x, n.z)``, about x by ``-atan2(n.y, n.z)``.

    Returns
    -------
    (N, 2, 3), (N, 2, 2) arrays
        Metres; degrees about x and y.
    """
    h = height[None, :, None]
    floor = np.stack([foot[..., 0], foot[..., 1], np.broadcast_to(root[:, None], foot.shape[:2])], axis=-1)
    up = np.array([0.0, 0.0, 1.0])
    location = np.where(walkable[..., None], point + h * normal - (floor + h * up), 0.0)
    if exact:
        level = np.hypot(normal[..., 0], normal[..., 1])
        angle = np.arctan2(level, normal[..., 2])
        scale = np.where(level > 1e-12, angle / np.maximum(level, 1e-300), 1.0)
        about_x, about_y = -normal[..., 1] * scale, normal[..., 0] * scale
    else:
        about_x, about_y = -np.arctan2(normal[..., 1], normal[..., 2]), np.arctan2(normal[..., 0], normal[..., 2])
    angles = np.degrees(np.stack([about_x, about_y], axis=-1))
    return location, np.where(walkable[..., None], angles, 0.0)


def run(location: Array, angles: Array, gate: Array, airborne: Flags, settings: FeetSettings, dt: float, fresh: bool = False) -> Offsets:
    """All updates.

    Parameters
    ----------
    location, angles : (N, 2, 3), (N, 2, 2) arrays
        From :func:`targets`.
    gate : (N, 2) array
        Enable_FootIK.
    airborne : (N,) bool array
    settings : FeetSettings
    dt : float
        Seconds between updates.
    fresh : bool
        Begin with nothing, as a game does when it starts; else as if the first update's targets had stood for long.
    """
    n = len(location)
    out = Offsets(np.zeros((n, 2, 3)), np.zeros((n, 2, 2)), np.zeros((n, 3)), 0.5 * (gate[:, 0] + gate[:, 1]))
    if n == 0:
        return out
    rising, falling, turning, reset, p_rising, p_falling = (
        min(s * dt, 1.0)
        for s in (
            settings.als_rising, settings.als_falling, settings.als_rotation, settings.als_reset,
            settings.als_pelvis_rising, settings.als_pelvis_falling,
        )
    )  # fmt: skip
    zero3, zero2 = (0.0, 0.0, 0.0), (0.0, 0.0)
    goals = [[tuple(v) for v in location[:, side].tolist()] for side in range(2)]
    tilts = [[tuple(v) for v in angles[:, side].tolist()] for side in range(2)]
    gates, flying = gate.tolist(), airborne.tolist()
    offset = [zero3, zero3] if fresh else [goals[0][0], goals[1][0]]
    tilt = [zero2, zero2] if fresh else [tilts[0][0], tilts[1][0]]
    pelvis = zero3 if fresh else _lower(goals[0][0], goals[1][0])
    offsets: list[tuple[tuple[float, ...], tuple[float, ...]]] = []
    tilted: list[tuple[tuple[float, ...], tuple[float, ...]]] = []
    pelvises: list[tuple[float, ...]] = []
    for i in range(n):
        wanted = [zero3, zero3]
        for side in (0, 1):
            if flying[i]:
                offset[side] = _towards(offset[side], zero3, reset)
                tilt[side] = _turned(tilt[side], zero2, reset)
            elif gates[i][side] <= 0.0:
                offset[side], tilt[side] = zero3, zero2
            else:
                goal = goals[side][i]
                wanted[side] = goal
                offset[side] = _towards(offset[side], goal, falling if offset[side][2] > goal[2] else rising)
                tilt[side] = _turned(tilt[side], tilts[side][i], turning)
        if 0.5 * (gates[i][0] + gates[i][1]) > 0.0:
            goal = zero3 if flying[i] else _lower(wanted[0], wanted[1])
            pelvis = _towards(pelvis, goal, p_rising if goal[2] > pelvis[2] else p_falling)
        else:
            pelvis = zero3
        offsets.append((offset[0], offset[1]))
        tilted.append((tilt[0], tilt[1]))
        pelvises.append(pelvis)
    out.location[:], out.angles[:], out.pelvis[:] = offsets, tilted, pelvises
    return out


def _lower(left: tuple[float, ...], right: tuple[float, ...]) -> tuple[float, ...]:
    """The target of the lower foot; the right one's where they are level."""
    return left if left[2] < right[2] else right


def _towards(c: tuple[float, ...], t: tuple[float, ...], share: float) -> tuple[float, ...]:
    x, y, z = t[0] - c[0], t[1] - c[1], t[2] - c[2]
    if share <= 0.0 or x * x + y * y + z * z < SNAP:
        return t
    return (c[0] + share * x, c[1] + share * y, c[2] + share * z)


def _turned(c: tuple[float, ...], t: tuple[float, ...], share: float) -> tuple[float, ...]:
    a, b = (t[0] - c[0] + 180.0) % 360.0 - 180.0, (t[1] - c[1] + 180.0) % 360.0 - 180.0
    if share <= 0.0 or (abs(a) <= SNAP_DEGREES and abs(b) <= SNAP_DEGREES):
        return t
    return ((c[0] + share * a + 180.0) % 360.0 - 180.0, (c[1] + share * b + 180.0) % 360.0 - 180.0)
