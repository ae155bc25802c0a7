# SPDX-License-Identifier: GPL-3.0-or-later
"""Figures for feet, pelvis and knees: plain functions of arrays, before and after alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import signals
from .legs import cross, dot, length, unit
from .pose import Legs

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

HANGS = 0.1
"""Metres."""


def _level_speed(points: Array, times: Array) -> Array:
    v = signals.velocity(points, times)
    return np.hypot(v[..., 0], v[..., 1])


def skating_ratio(points: Array, height: Array, times: Array) -> float:
    """Share of frames in which either foot skates: below 5 cm, above 0.5 m/s now and in the mean over 0.25 s.

    ``points`` (F, 2, 3) one a foot, ``height`` (F, 2) over the ground. Source: foot skating ratio of Guided Motion Diffusion, 2023, with
    speeds in m/s.
    """
    speed = _level_speed(points, times)
    n = signals.half_width(0.125, signals.spacing(times))
    mean = np.column_stack([signals.smooth_held(speed[:, i], np.ones(2 * n + 1) / (2 * n + 1)) for i in range(speed.shape[1])])
    with np.errstate(invalid="ignore"):
        return float(np.mean(((height < 0.05) & (speed > 0.5) & (mean > 0.5)).any(axis=1)))


def weighted_skate(points: Array, height: Array, times: Array, where: Flags, limit: float = 0.025) -> float:
    """Mean of ``v (2 - 2^(h / H))`` over the samples ``where`` (F, n), m/s. Source: Zhang et al., *Mode-adaptive neural networks*, 2018."""
    weight = 2.0 - 2.0 ** np.clip(np.nan_to_num(height, nan=1.0) / limit, 0.0, 1.0)
    return float(np.mean((_level_speed(points, times) * weight)[where])) if np.any(where) else 0.0


def lowest_point(soles: Array, normal: Array) -> Indices:
    """(F, 2): which of a foot's points is lowest along the surface's normal."""
    return dot(soles, normal[:, :, None]).argmin(axis=2)


def sliding(soles: Array, normal: Array, times: Array, held: Flags, carried: Array | None = None) -> Array:
    """Speed along the surface of what a foot stands on, (F, 2) m/s; NaN where it is not held in this and the next frame.

    What it stands on is the lowest of the points ``soles`` (F, 2, n, 3) in either frame, the slower of both where they change.
    """
    out = np.full(held.shape, np.nan)
    if len(times) < 2:
        return out
    step = np.diff(soles, axis=0) / np.diff(times)[:, None, None, None]
    if carried is not None:
        step = step - 0.5 * (carried[1:] + carried[:-1])
    step = step - normal[:-1, :, None] * dot(step, normal[:-1, :, None])[..., None]
    speed = length(step)
    low = lowest_point(soles, normal)
    now, then = (np.take_along_axis(speed, k[..., None], axis=2)[..., 0] for k in (low[:-1], low[1:]))
    both = held[1:] & held[:-1]
    out[:-1][both] = np.minimum(now, then)[both]
    return out


def penetration(soles: Array, surface: Array) -> Array:
    """How deep the deepest of heel, ball and tip is below the surface, (F, 2) metres; 0 above it and where there is none."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.maximum(surface - soles[..., 2], 0.0), nan=0.0).max(axis=2)


def gap(soles: Array, surface: Array, held: Flags, normal: Array) -> Array:
    """How far the lowest of a standing foot's points is above the surface, (F, 2) metres along the normal; NaN where none stands.

    Feet whose lowest point hangs beyond an edge (``HANGS`` above what is under it) stand on another part of their sole: NaN too.
    """
    above = (soles[..., 2] - surface) * normal[..., 2:]
    low = np.take_along_axis(above, lowest_point(soles, normal)[..., None], axis=2)[..., 0]
    with np.errstate(invalid="ignore"):
        return np.where(held & (low < HANGS), np.maximum(np.nanmin(np.where(np.isnan(above), np.inf, above), axis=2), 0.0), np.nan)


def flexion(legs: Legs, knee: Array | None = None, ankle: Array | None = None, hip: Array | None = None) -> Array:
    """Bend of the knees, (F, 2) radians; 0 is straight."""
    hip = legs.hip if hip is None else hip
    knee = legs.knee if knee is None else knee
    ankle = legs.ankle if ankle is None else ankle
    a, b = unit(knee - hip), unit(ankle - knee)
    return np.arctan2(length(cross(a, b)), dot(a, b))


def vertical_jerk(z: Array, times: Array, cutoff: float = 6.0) -> float:
    """Root mean square of the third derivative of a height (F,), m/s^3, after a low pass without delay."""
    dt = signals.spacing(times)
    if len(z) < 8:
        return 0.0
    smooth = signals.convolve(z, signals.gaussian(cutoff, dt))
    edge = min(signals.half_width(0.2, dt), len(z) // 4)
    jerk = np.diff(smooth, 3)[edge : len(z) - 3 - edge] / dt**3
    return float(np.sqrt(np.mean(jerk**2))) if len(jerk) else 0.0
