# SPDX-License-Identifier: GPL-3.0-or-later
"""A swinging foot clears what is in its way, and begins to before it gets there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import signals, terrain
from .ground import Ground
from .settings import FeetSettings
from .terrain import Surface

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

DIP = 0.02
"""Metres: what dips in by no more than this is raised at once."""
SPREAD = 0.25
"""Seconds: how long before and after an obstacle a foot is raised for it, at most."""


def under(ground: Ground, points: Array, times: Array, settings: FeetSettings) -> Surface:
    """What lies nearest to the points ``(F, 2, 3, 3)``, of any slope; flat arrays over all of them."""
    flat = points.reshape(-1, 3)
    hits = terrain.cast_down(ground, flat, np.repeat(times, 6), settings.trace_up, settings.trace_down, 4, nearest=True)
    return terrain.nearest_to(hits, flat[:, 2], 0.05)


def needed(points: Array, surface: Array, own_height: Array, held: Flags, settings: FeetSettings) -> Array:
    """How far each swinging foot is too low, (F, 2) metres.

    Parameters
    ----------
    points : (F, 2, 3, 3) array
        Heel, ball, tip as targeted.
    surface : (F, 2, 3) array
        Height of the ground under them; NaN where there is none.
    own_height : (F, 2, 3) array
        How high the source has them over its own floor: where it grazed the floor no clearance is asked for.
    held : (F, 2) bool array
    settings : FeetSettings
    """
    room = np.clip(own_height, 0.0, settings.clearance)
    with np.errstate(invalid="ignore"):
        low = np.nan_to_num(surface + room - points[..., 2], nan=0.0).max(axis=2)
    return np.where(held, 0.0, np.maximum(low, 0.0))


def lift(need: Array, least: Array, held: Flags, times: Array) -> Array:
    """A smooth height over ``need`` (F,) of one foot that is zero in contact; ``held`` (F,).

    Every need raises what is around it by a bell that ends at the swing's edges; the height is the highest of all bells. Needs are
    spread by two frames first, so that the last, light smoothing stays above them. Next to contacts, where the bells end, it is no less
    than ``least`` (F,): what dips in by a little, which begins with nothing there.
    """
    if not np.any(need > 1e-6):
        return np.zeros_like(need)
    dt = signals.spacing(times)
    few = max(signals.half_width(0.03, dt), 1)
    need = np.where(held, 0.0, signals.highest(need, few))
    before, after = signals.neighbours(held)
    inf = np.inf
    left = np.where(before >= 0, times - times[np.maximum(before, 0)], inf)
    right = np.where(after < len(held), times[np.minimum(after, len(held) - 1)] - times, inf)
    left, right = np.clip(left, 1e-9, SPREAD), np.clip(right, 1e-9, SPREAD)
    out = need.copy()
    for k in range(1, signals.half_width(SPREAD, dt) + 1):
        later = need[:-k] * (1.0 - signals.ease((times[k:] - times[:-k]) / right[:-k]))
        out[k:] = np.maximum(out[k:], later)
        sooner = need[k:] * (1.0 - signals.ease((times[k:] - times[:-k]) / left[k:]))
        out[:-k] = np.maximum(out[:-k], sooner)
    smooth = signals.smooth_held(out, signals.bell((few + 1) * dt, dt))
    return np.maximum(
        np.where(held, 0.0, smooth * signals.ease(np.minimum(left, right) / (2.0 * dt))), np.where(held | (least > DIP), 0.0, least)
    )
