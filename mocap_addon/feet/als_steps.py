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
    goals = np.concatenate([location, angles], axis=2).tolist()
    wanted0 = [0.0] * 5
    state = [list(wanted0), list(wanted0)] if fresh else [list(goals[0][0]), list(goals[0][1])]
    px, py, pz = (0.0, 0.0, 0.0) if fresh else _lower(goals[0][0], goals[0][1])[:3]
    feet: list[list[list[float]]] = []
    pelvises: list[tuple[float, float, float]] = []
    for goal, gates, flying in zip(goals, gate.tolist(), airborne.tolist(), strict=True):
        wanted = [wanted0, wanted0]
        for side in (0, 1):
            if flying:
                state[side] = _step(state[side], wanted0, reset, reset)
            elif gates[side] <= 0.0:
                state[side] = wanted0
            else:
                wanted[side] = t = goal[side]
                state[side] = _step(state[side], t, falling if state[side][2] > t[2] else rising, turning)
        feet.append([state[0], state[1]])
        if gates[0] + gates[1] <= 0.0:
            px = py = pz = 0.0
        else:
            t = _lower(wanted[0], wanted[1])
            x, y, z = t[0] - px, t[1] - py, t[2] - pz
            share = p_rising if z > 0.0 else p_falling
            if share <= 0.0 or x * x + y * y + z * z < SNAP:
                px, py, pz = t[0], t[1], t[2]
            else:
                px, py, pz = px + share * x, py + share * y, pz + share * z
        pelvises.append((px, py, pz))
    moved = np.array(feet)
    out.location[:], out.angles[:], out.pelvis[:] = moved[..., :3], moved[..., 3:], pelvises
    return out


def _lower(left: list[float], right: list[float]) -> list[float]:
    """The target of the lower foot; the right one's where they are level."""
    return left if left[2] < right[2] else right


def _step(c: list[float], t: list[float], share: float, turn: float) -> list[float]:
    """One foot's offset and angles a step nearer to their targets (five numbers each)."""
    cx, cy, cz, ca, cb = c
    tx, ty, tz, ta, tb = t
    x, y, z = tx - cx, ty - cy, tz - cz
    if share > 0.0 and x * x + y * y + z * z >= SNAP:
        tx, ty, tz = cx + share * x, cy + share * y, cz + share * z
    a, b = (ta - ca + 180.0) % 360.0 - 180.0, (tb - cb + 180.0) % 360.0 - 180.0
    if turn > 0.0 and (abs(a) > SNAP_DEGREES or abs(b) > SNAP_DEGREES):
        ta, tb = (ca + turn * a + 180.0) % 360.0 - 180.0, (cb + turn * b + 180.0) % 360.0 - 180.0
    return [tx, ty, tz, ta, tb]
