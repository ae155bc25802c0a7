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

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from . import signals
from .legs import free_reach, length
from .pose import Legs
from .settings import FeetSettings
from .stretches import Stretches

CLIMB = 0.3
"""m/s: who goes up or down faster than this bends the knees."""
CROUCH = 0.08
"""Metres that the pelvis is lower for every m/s beyond it."""

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Feet = tuple[Stretches, Stretches]


def band(legs: Legs, target: Array, inside: Feet, settings: FeetSettings) -> tuple[Array, Array]:
    """Lowest and highest offset of the pelvis in every frame, (F,) metres; infinite where no foot is held."""
    free, most = free_reach(legs, settings)
    reach = free + 0.25 * np.minimum(most - free, settings.soft_reach * free)
    whole = length(legs.knee - legs.hip) + length(legs.ankle - legs.knee)
    bent = np.minimum(settings.compression * whole, length(legs.ankle - legs.hip))
    across = np.hypot(target[..., 0] - legs.hip[..., 0], target[..., 1] - legs.hip[..., 1])
    drop = target[..., 2] - legs.hip[..., 2]
    high = drop + np.sqrt(np.maximum(reach**2 - np.minimum(across, 0.9 * reach) ** 2, 0.0))
    low = drop + np.sqrt(np.maximum(bent**2 - across**2, 0.0))
    held = np.stack([foot.mask for foot in inside], axis=1)
    for side, foot in enumerate(inside):
        _to_the_edges(high[:, side], foot, np.minimum)
        _to_the_edges(low[:, side], foot, np.maximum)
    return (
        np.where(held, low, -np.inf).max(axis=1),
        np.where(held, high, np.inf).min(axis=1),
    )


def _to_the_edges(limit: Array, foot: Stretches, tighter: Callable[[Array, Array], Array]) -> None:
    """Limits of the first and the last frame of a contact also hold for where it really begins and ends; by themselves they do not move
    a pelvis that may stay where it is."""
    first, last, begin, finish = foot.spans()
    long = last > first
    for here, there, at in ((first[long], first[long] + 1, begin[long]), (last[long], last[long] - 1, finish[long])):
        rate = (limit[there] - limit[here]) / (foot.times[there] - foot.times[here])
        there = limit[here] + rate * (at - foot.times[here])
        limit[here] = tighter(limit[here], np.where(there * limit[here] < 1e-6 * np.abs(there), 0.0, there))


def trend(rise: Array, inside: Feet, settle: float) -> Array:
    """How the ground under the character goes up and down, (F,) metres: from the middle of one contact straight to the middle of the next.

    Long contacts hold their level until ``settle`` seconds before their end. Where both feet say something, the lower one counts.
    """
    times = inside[0].times
    level = np.full(len(times), np.inf)
    spans: list[tuple[Array, Array]] = []
    for side, foot in enumerate(inside):
        _, _, begin, finish = foot.spans()
        inset = np.minimum(settle, 0.5 * (finish - begin))
        spans.append((begin + inset, np.maximum(finish - inset, begin + inset)))
        level = np.where(_within(times, *spans[side]), np.minimum(level, rise[:, side]), level)
    known = np.isfinite(level)
    at, levels = [times[known]], [level[known]]
    for side, (begin, finish) in enumerate(spans):
        for edge in (begin, finish):
            own, other = (np.interp(edge, times, rise[:, k]) for k in (side, 1 - side))
            at.append(edge)
            levels.append(np.where(_within(edge, *spans[1 - side]), np.minimum(own, other), own))
    knots, heights = np.concatenate(at), np.concatenate(levels)
    if len(knots) == 0:
        return np.zeros(len(times))
    order = np.argsort(knots, kind="stable")
    return signals.smooth_held(np.interp(times, knots[order], heights[order]), signals.bell(settle, signals.spacing(times)))


def _within(times: Array, begin: Array, finish: Array) -> Flags:
    """Which of ``times`` lie in one of the spans."""
    if len(begin) == 0:
        return np.zeros(len(times), dtype=bool)
    which = np.searchsorted(begin, times, side="right") - 1
    return (which >= 0) & (times <= finish[np.maximum(which, 0)])


def crouch(ground: Array, times: Array, window: float) -> Array:
    """How much lower the pelvis is where the ground under the character rises or falls steeply, (F,) metres."""
    steep = np.maximum(np.abs(signals.velocity(ground, times)) - CLIMB, 0.0)
    return CROUCH * signals.smooth_held(steep, signals.bell(window, signals.spacing(times))) if np.any(steep > 0.0) else steep


def offset(legs: Legs, target: Array, rise: Array, inside: Feet, settings: FeetSettings) -> Array:
    """How far the pelvis goes up, (F,) metres."""
    dt, window = signals.spacing(legs.times), settings.pelvis_window
    ground = trend(rise, inside, window)
    low, high = (limit - ground for limit in band(legs, target, inside, settings))
    high = np.maximum(high, -settings.pelvis_limit)
    room = np.minimum(np.maximum(0.0, -signals.lowest_within(-low, window, dt)), signals.lowest_within(high, window, dt))
    return ground + signals.smooth_held(room - crouch(ground, legs.times, window), signals.bell(window, dt))
