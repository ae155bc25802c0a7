# SPDX-License-Identifier: GPL-3.0-or-later
"""One smooth path of the pelvis that leaves every planted foot within reach.

For a planted leg with reach ``r``, hip ``h``, ankle target ``t`` and level distance ``l`` between them the pelvis may rise by at most
``t.z - h.z + sqrt(r^2 - l^2)``, and by no less than the same with the leg's most bent length. The wish is the trend of the ground: a line
from contact to contact, so that stairs are a ramp. Relative to it the offset is held inside the *narrowed* band (the lowest upper limit
within ``w`` before and after, the highest lower one) and then smoothed with a kernel that is ``w`` wide to either side: a mean of values
that all lie inside the band of this frame lies inside it. Where the ramp is steep the knees are bent a little more: a leg that nearly is
straight would have to fold or stretch abruptly for a foot that comes down or leaves. No iteration, no delay, nothing beyond ``w`` matters.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import signals
from .legs import free_reach, length
from .pose import Legs
from .settings import FeetSettings

CLIMB = 0.3
"""m/s: who goes up or down faster than this bends the knees."""
CROUCH = 0.08
"""Metres that the pelvis is lower for every m/s beyond it."""

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]


def band(legs: Legs, target: Array, held: Flags, settings: FeetSettings) -> tuple[Array, Array]:
    """Lowest and highest offset of the pelvis in every frame, (F,) metres; infinite where no foot is held."""
    free, most = free_reach(legs, settings)
    reach = free + 0.25 * np.minimum(most - free, settings.soft_reach * free)
    whole = length(legs.knee - legs.hip) + length(legs.ankle - legs.knee)
    bent = np.minimum(settings.compression * whole, length(legs.ankle - legs.hip))
    across = np.hypot(target[..., 0] - legs.hip[..., 0], target[..., 1] - legs.hip[..., 1])
    drop = target[..., 2] - legs.hip[..., 2]
    high = drop + np.sqrt(np.maximum(reach**2 - np.minimum(across, 0.9 * reach) ** 2, 0.0))
    low = drop + np.sqrt(np.maximum(bent**2 - across**2, 0.0))
    return (
        np.where(held, low, -np.inf).max(axis=1),
        np.where(held, high, np.inf).min(axis=1),
    )


def trend(rise: Array, held: Flags, times: Array, settle: float) -> Array:
    """How the ground under the character goes up and down, (F,) metres: from the middle of one contact straight to the middle of the next.

    Long contacts hold their level until ``settle`` seconds before their end. Where both feet say something, the lower one counts.
    """
    dt = signals.spacing(times)
    level, known = np.full(len(times), np.inf), np.zeros(len(times), dtype=bool)
    for side in range(2):
        start, end = signals.runs(held[:, side])
        inset = np.minimum(signals.half_width(settle, dt), (end - 1 - start) // 2)
        inside = signals.filled(start + inset, end - inset, np.ones(len(start), dtype=bool), len(times))
        level = np.where(inside, np.minimum(level, rise[:, side]), level)
        known |= inside
    if not np.any(known):
        return np.zeros(len(times))
    return signals.smooth_held(np.interp(times, times[known], level[known]), signals.bell(settle, dt))


def crouch(ground: Array, times: Array, window: float) -> Array:
    """How much lower the pelvis is where the ground under the character rises or falls steeply, (F,) metres."""
    steep = np.maximum(np.abs(signals.velocity(ground, times)) - CLIMB, 0.0)
    return CROUCH * signals.smooth_held(steep, signals.bell(window, signals.spacing(times))) if np.any(steep > 0.0) else steep


def offset(legs: Legs, target: Array, rise: Array, held: Flags, settings: FeetSettings) -> Array:
    """How far the pelvis goes up, (F,) metres."""
    dt = signals.spacing(legs.times)
    ground = trend(rise, held, legs.times, settings.pelvis_window)
    low, high = (limit - ground for limit in band(legs, target, held, settings))
    high = np.maximum(high, -settings.pelvis_limit)
    n = signals.half_width(settings.pelvis_window, dt)
    inside = np.minimum(np.maximum(0.0, signals.highest(low, n)), signals.lowest(high, n))
    inside = inside - crouch(ground, legs.times, settings.pelvis_window)
    return ground + signals.smooth_held(inside, signals.bell(settings.pelvis_window, dt))
