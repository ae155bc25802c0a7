# SPDX-License-Identifier: GPL-3.0-or-later
"""How a foot gets from one footprint to the next: over slopes as over the floor, up and down steps as people climb them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from . import signals, terrain
from .footprints import Prints
from .ground import Ground
from .legs import dot
from .settings import FeetSettings
from .stretches import Stretches

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

LEAN = 0.08
"""Metres of height over a slope up to which a foot keeps it along the normal."""
AHEAD, BEHIND = 0.24, 0.15
"""Parts of a swing that a foot is ahead of its source on a step down, or behind it on a step up, at most."""
UP_PART = 0.95
"""A foot that steps up has risen in this first part of its way, one that steps down falls in the last."""
STEP = 0.02
"""Metres by which the ground departs from the smooth curve between two footprints where there is a step between them, at least."""
SAMPLES = 12
"""Points on the way that are looked at."""


def stepped(ground: Ground, prints: Prints, mine: Indices, times: Array, settings: FeetSettings) -> Array:
    """(n,): for each of one foot's footprints ``mine``, 1 where the ground on the way to it has steps, 0 where it is smooth.

    Smooth is what hardly departs from the cubic (Hermite's) between the two heights and slopes: a hill, or nothing at all where it is
    the source that stepped up.
    """
    out = np.zeros(len(prints.side))
    if len(mine) < 2:
        return out
    a, b = mine[:-1, None], mine[1:, None]
    x = np.arange(1, SAMPLES + 1) / (SAMPLES + 1.0)
    way = prints.place[b] - prints.place[a]
    slopes = [-dot(prints.normal[k][..., :2], way[..., :2]) / np.maximum(prints.normal[k][..., 2], 0.2) for k in (a, b)]
    points = prints.place[a] + x[:, None] * way
    y = x - 1.0
    points[..., 2] += x * x * (1.0 - 2.0 * y) * way[..., 2] - way[..., 2] * x + x * y * (y * slopes[0] + x * slopes[1])
    flat = points.reshape(-1, 3)
    hits = terrain.cast_down(
        ground, flat, np.repeat(times[prints.middle[mine[1:]]], SAMPLES), settings.trace_up, settings.trace_down, 4, nearest=True
    )
    off = np.abs(terrain.nearest_to(hits, flat[:, 2], 0.05).height - flat[:, 2]).reshape(-1, SAMPLES)
    off = np.where(np.isnan(off), settings.trace_down, off).max(axis=1)
    out[mine[1:]] = signals.ease((off - STEP) / STEP)
    return out


def leant(height: Array, tilt: Array) -> Array:
    """(F, 3): from straight over the plane to as high along its normal, for a foot that comes down to it or leaves it.

    So heel strikes and toe-offs meet a slope as they meet the floor. High up only a little of it is left: legs stay apart.
    """
    up = np.zeros((len(height), 3))
    up[:, 2] = LEAN * np.tanh(height / LEAN)
    return quat.rotate(tilt, up) - up


def abrupt(prints: Prints, owner: Indices, inside: Stretches) -> Array:
    """(F,): how much higher than its last the next footprint is than the slopes at both tell: edges on the way, metres. 0 in contact."""
    before, after = inside.before, inside.after
    swing = np.flatnonzero((owner < 0) & (before >= 0) & (after < len(owner)))
    out = np.zeros(len(owner))
    a, b = owner[before[swing]], owner[after[swing]]
    way = (prints.place[b] - prints.place[a])[:, :2]
    slope = -0.5 * sum(dot(prints.normal[k][:, :2], way) / np.maximum(prints.normal[k][:, 2], 0.2) for k in (a, b))
    out[swing] = prints.rise[b] - prints.rise[a] - slope
    return out


def followed(prints: Prints, owner: Indices, ball: Array, inside: Stretches, edges: Array) -> Array:
    """(F,): how much a foot is raised; on its way it goes from the plane of its last footprint over to that of the next.

    On an even slope both are the same, and the foot keeps the height over it that it has over its own floor. ``edges`` (F,) as of
    :func:`abrupt`.
    """
    part = 1.0 - (1.0 - UP_PART) * signals.ease((np.abs(edges) - 0.03) / 0.07)
    before, after = inside.before, inside.after
    b, a = np.where(before < 0, after, before), np.where(after >= len(owner), before, after)
    ends = (before < 0) | (after >= len(owner))

    def on_plane(k: Indices) -> Array:
        slope = -prints.normal[k][:, :2] / np.maximum(prints.normal[k][:, 2:], 0.2)
        return prints.rise[k] + dot(slope, np.where(ends[:, None], ball[b], ball) - prints.source[k][:, :2])

    last, then = on_plane(owner[b]), on_plane(owner[a])
    x = inside.way()
    up = prints.rise[owner[a]] > prints.rise[owner[b]]
    return last + (then - last) * signals.ease(np.where(up, x / part, (x - (1.0 - part)) / part))


def hurried(ball: Array, edges: Array, inside: Stretches) -> Array:
    """(F, 2): level shifts that let a foot be ahead of its source on a step down and behind it on a step up.

    So it is over its place before it comes down to it, and has risen before it gets to an edge. The source is taken at another time of
    the swing, ``x' = x + 16 a x^2 (1 - x)^2``, which begins and ends as the source does.
    """
    swing = np.flatnonzero(edges != 0.0)
    out = np.zeros_like(ball)
    if len(swing) == 0:
        return out
    fall, x = -edges[swing], inside.way()[swing]
    amount = np.clip(1.5 * fall, -BEHIND, AHEAD) * signals.ease((np.abs(fall) - 0.03) / 0.07)
    there = inside.times[swing] + (inside.since + inside.until)[swing] * 16.0 * amount * (x * (1.0 - x)) ** 2
    for c in range(2):
        out[swing, c] = np.interp(there, inside.times, ball[:, c]) - ball[swing, c]
    return out
