# SPDX-License-Identifier: GPL-3.0-or-later
"""The metrics M1 to M10, from forward kinematics of the new take, the body's measures and the exact ground: none of the product's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import binary_dilation, binary_erosion
from scipy.signal import butter, filtfilt

from mocap_addon.motion import quat
from mocap_addon.motion.take import Take

from .walker import Shape, Walk

Height = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # x, y, t -> z


def flat_floor(x, y, t):
    return np.zeros_like(x)


def soles_of(take: Take, shape: Shape, joints=((2, 3, 4, 5), (6, 7, 8, 9)), normals=None, toes: bool = True):
    """(F, 2, 3, 3) heel, ball, tip from joints alone; a bone's turn from rest says how its points turn."""
    g, p = take.global_rotations, take.global_positions
    rest = take.skeleton.rest_global_rotations
    out = np.empty((take.frames, 2, 3, 3))
    for i, (_, _, foot, toe) in enumerate(joints):
        turn = quat.mul(g[:, foot], quat.inv(rest[foot]))
        out[:, i, 0] = p[:, foot] + quat.rotate(turn, np.array([0.0, shape.heel_offset, -shape.heel_height]))
        up = np.array([0.0, 0.0, 1.0]) if normals is None else normals[:, i]
        out[:, i, 1] = p[:, toe] - up * shape.ball_height
        turn_toe = quat.mul(g[:, toe], quat.inv(rest[toe]))
        out[:, i, 2] = p[:, toe] + quat.rotate(turn_toe, np.array([0.0, -shape.toe_length, -shape.ball_height]))
    return out


def knee_angles(take: Take, joints=((2, 3, 4), (6, 7, 8))):
    p = take.global_positions
    out = []
    for hip, knee, ankle in joints:
        a, b = p[:, knee] - p[:, hip], p[:, ankle] - p[:, knee]
        out.append(np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b), axis=1), (a * b).sum(axis=1))))
    return np.stack(out, axis=1)


def knee_forward(take: Take, joints=((2, 3, 4), (6, 7, 8))):
    """Metres of the knee before the line from hip to ankle, in the thigh's own sense of forward (its turn from rest)."""
    p, g, rest = take.global_positions, take.global_rotations, take.skeleton.rest_global_rotations
    out = []
    for hip, knee, ankle in joints:
        line = p[:, ankle] - p[:, hip]
        line /= np.linalg.norm(line, axis=1, keepdims=True)
        off = p[:, knee] - p[:, hip]
        off = off - line * (off * line).sum(axis=1, keepdims=True)
        forward = quat.rotate(quat.mul(g[:, hip], quat.inv(rest[hip])), np.array([0.0, -1.0, 0.0]))
        out.append((off * forward).sum(axis=1))
    return np.stack(out, axis=1)


def jerk(z, fps):
    """RMS of the third difference after a 6 Hz zero-phase Butterworth."""
    b, a = butter(2, 6.0 / (fps / 2))
    s = filtfilt(b, a, z, padlen=min(3 * 3 * 3, len(z) - 1))
    j = np.diff(s, 3) * fps**3
    return float(np.sqrt(np.mean(j[10:-10] ** 2)))


def f1(found, truth, tolerance):
    """F1 of (F,) flags where what lies within ``tolerance`` frames of an edge of the truth does not count."""
    sure_on = binary_erosion(truth, iterations=tolerance, border_value=1)
    sure_off = ~binary_dilation(truth, iterations=tolerance)
    tp = np.sum(found & sure_on)
    fp, fn = np.sum(found & sure_off), np.sum(~found & sure_on)
    return 2 * tp / max(2 * tp + fp + fn, 1)


@dataclass
class Measures:
    M1: float  # share
    M1_source: float
    M2_drift: float  # mm
    M2_speed: float  # cm/s
    M3: float  # cm/s
    M3_source: float
    M4_contact: float  # mm
    M4_swing: float
    M5: float  # mm
    M6: float
    M7: float  # deg
    M8_p99: float  # deg / frame^2 over limit
    M8_limit: float
    M8_flips: int
    M9: float  # ratio
    M9_reach: float  # mm beyond the legs
    M10: float  # mm


def normal_of(height: Height, x, y, t, h=1e-5):
    dx = (height(x + h, y, t) - height(x - h, y, t)) / (2 * h)
    dy = (height(x, y + h, t) - height(x, y - h, t)) / (2 * h)
    n = np.stack([-dx, -dy, np.ones_like(dx)], axis=-1)
    return n / np.linalg.norm(n, axis=-1, keepdims=True)


def measure(
    walk: Walk, source: Take, result, height: Height = flat_floor, truth=None, carry=None, edge: float = 0.1, swing_points=True,
    source_height: Height = flat_floor,
) -> Measures:  # fmt: skip
    """All of them.

    ``truth``: heel and ball down (F, 2, 2), else the walker's. ``carry(points, times)``: world points in the space of what is stood on.
    """
    new = result.onto(source)
    t, dt, shape = source.times, float(np.median(np.diff(source.times))), walk.shape
    parts = walk.parts if truth is None else truth
    rough = soles_of(new, shape)
    tt = np.broadcast_to(t[:, None], rough.shape[:2])
    n = normal_of(height, rough[:, :, 1, 0], rough[:, :, 1, 1], tt)
    soles, old = soles_of(new, shape, normals=n), soles_of(source, shape)
    t3 = np.broadcast_to(t[:, None, None], soles.shape[:3])
    over = soles[..., 2] - height(soles[..., 0], soles[..., 1], t3)
    over_old = old[..., 2] - source_height(old[..., 0], old[..., 1], t3)
    held = parts.any(axis=2)
    n_edge = max(round(edge / dt), 1)
    solid = np.stack([binary_erosion(held[:, i], iterations=n_edge, border_value=1) for i in range(2)], axis=1)
    inside = carry(soles, t) if carry else soles
    drift, speed = _drift(inside, parts, solid, dt)
    skate, skate_old = _skate(inside, over, parts, dt), _skate(carry(old, t) if carry else old, over_old, parts, dt)
    deep = np.maximum(-over, 0.0)
    clear_swing = np.stack([~binary_dilation(held[:, i], iterations=1) for i in range(2)], axis=1)
    near = over[:, :, :2] < 0.1  # a heel or ball beyond an edge hangs; one of them has to stand
    gaps = np.where(parts & solid[..., None] & near, over[:, :, :2] * n[..., 2:], 0.0)
    gaps = np.maximum(gaps, np.where(solid & ~(parts & near).any(axis=2), 1.0, 0.0)[..., None])
    both = np.stack([binary_erosion(parts[:, i].all(axis=1), iterations=n_edge, border_value=1) for i in range(2)], axis=1)
    tilt = _tilt(new, n, both)
    knees, knees_old = knee_angles(new), knee_angles(source)
    dd, dd_old = np.abs(np.diff(knees, 2, axis=0)), np.abs(np.diff(knees_old, 2, axis=0))
    fwd = knee_forward(new)
    legs = np.linalg.norm(new.global_positions[:, [4, 8]] - new.global_positions[:, [2, 6]], axis=2)
    lengths = np.linalg.norm(new.global_positions[:, [3, 4, 5, 7, 8, 9]] - new.global_positions[:, [2, 3, 4, 6, 7, 8]], axis=2)
    rest = source.skeleton.rest_global_positions
    exact = np.linalg.norm(rest[[3, 4, 5, 7, 8, 9]] - rest[[2, 3, 4, 6, 7, 8]], axis=1)
    fps = 1.0 / dt
    before = carry(old, t) if carry else old
    near_edge = round(2 / 30 / dt)
    scores = [f1(result.contacts[:, i, k], parts[:, i, k], near_edge) for i in range(2) for k in range(2)]
    heights = [take.global_positions[:, 0, 2] for take in (new, source)]
    return Measures(
        M1=_fsr(inside, over, dt, parts[:, :, 1]),
        M1_source=_fsr(before, over_old, dt, parts[:, :, 1]),
        M2_drift=drift * 1e3,
        M2_speed=speed * 100,
        M3=skate * 100,
        M3_source=skate_old * 100,
        M4_contact=float(np.where(held[..., None], deep, 0).max() * 1e3),
        M4_swing=float(np.where(clear_swing[..., None], deep, 0).max() * 1e3),
        M5=float(gaps.max() * 1e3),
        M6=float(np.mean(scores)),
        M7=float(tilt),
        M8_p99=float(np.percentile(dd, 99)),
        M8_limit=float(1.5 * np.percentile(dd_old, 99) + 1.0),
        M8_flips=int((fwd < -0.005).sum()),
        M9=jerk(heights[0], fps) / max(jerk(heights[1], fps), 1e-9),
        M9_reach=float(np.maximum(legs - (shape.thigh + shape.shin), 0).max() * 1e3),
        M10=float(np.abs(lengths - exact).max() * 1e3),
    )


def _drift(soles, parts, solid, dt):
    """Largest distance of a supporting point from its mean place in the solid part of a contact, and the mean speed there."""
    worst, speeds = 0.0, []
    for i in range(2):
        for k in range(2):
            mask = parts[:, i, k] & solid[:, i]
            for a, b in _runs(mask):
                p = soles[a:b, i, k]
                if b - a > 2:
                    worst = max(worst, float(np.linalg.norm(p - p.mean(axis=0), axis=1).max()))
                    speeds.append(np.linalg.norm(np.diff(p, axis=0), axis=1) / dt)
    return worst, float(np.concatenate(speeds).mean()) if speeds else 0.0


def _skate(soles, over, parts, dt):
    v = np.linalg.norm(np.diff(soles, axis=0)[..., :2], axis=-1) / dt
    s = v * (2 - 2 ** np.clip(over[:-1] / 0.025, 0, 1))
    return float(s[:, :, :2][parts[1:] & parts[:-1]].mean())


def _fsr(soles, over, dt, held):
    """Share of frames that skate by the definition, of those in which the truth has the foot on the ground: a low swing is no skating."""
    v = np.linalg.norm(np.gradient(soles[:, :, 1], dt, axis=0)[..., :2], axis=-1)
    n = 2 * round(0.125 / dt) + 1
    inner = binary_erosion(held, structure=np.ones((3, 1)), border_value=1)
    mean = np.stack([np.convolve(np.pad(v[:, i], n // 2, mode="edge"), np.ones(n) / n, mode="valid") for i in range(2)], axis=1)
    return float(((over[:, :, 1] < 0.05) & (v > 0.5) & (mean > 0.5) & inner).any(axis=1).mean())


def _tilt(take, n, flat):
    worst = 0.0
    for i, foot in enumerate((4, 8)):
        rest = take.skeleton.rest_global_rotations[foot]
        up = quat.rotate(quat.mul(take.global_rotations[:, foot], quat.inv(rest)), np.array([0.0, 0.0, 1.0]))
        angle = np.degrees(np.arctan2(np.linalg.norm(np.cross(up, n[:, i]), axis=1), (up * n[:, i]).sum(axis=1)))
        if flat[:, i].any():
            worst = max(worst, float(angle[flat[:, i]].max()))
    return worst


def _runs(mask):
    e = np.diff(np.concatenate([[0], mask.astype(int), [0]]))
    return list(zip(np.flatnonzero(e == 1), np.flatnonzero(e == -1), strict=True))
