# SPDX-License-Identifier: GPL-3.0-or-later
"""When contacts begin and end, between frames: the same motion has the same contacts at any rate.

Speeds say that a point stands; they cannot say when it came to stand, since every speed is a mean over some frames. So contacts are
followed outwards from where the point surely stands, for as long as it is where it stood; and between the last frame in which it is
and the first in which it is not, the way that it came is gone on with until it meets that place.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from . import signals

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

NEAR = 0.003
"""Metres from where it stood within which a point still stands."""
SLIDE = 0.08
"""Seconds over which is measured how a standing point slides."""
FARTHEST = 0.1
"""Seconds by which a contact is followed outwards."""
EASE = 0.03
"""Seconds that are left to a landing and to a lift-off within what was followed: there a foot still may move by ``NEAR`` and more."""
STEPS = 16
"""Moments between two frames that are looked at."""


def follow(points: Array, times: Array, parts: Flags, carried: Array | None) -> tuple[Flags, Array, Array]:
    """Contacts with their edges: the parts, longer by some frames, and seconds ``early`` and ``late`` as in :class:`.contacts.Contacts`.

    Parameters
    ----------
    points : (F, 2, 3, 3) array
    times : (F,) array
    parts : (F, 2, 3) bool array
    carried : (F, 2, 3, 3) array or None
        Velocity of what is under each point.

    Returns
    -------
    (F, 2, 3) bool array, two (F, 2, 3) arrays
    """
    early, late = np.zeros(parts.shape), np.zeros(parts.shape)
    out = parts.copy()
    if len(times) < 4:
        return out, early, late
    farthest = int(np.ceil(FARTHEST / signals.spacing(times)))
    edge = np.diff(parts.astype(np.int8), axis=0)
    for known, step, (frame, side, part) in ((early, -1, np.nonzero(edge == 1)), (late, 1, np.nonzero(edge == -1))):
        frame = frame + (step < 0)
        away, seconds = _ways(points, times, carried, frame, side, part, step, farthest + 3)
        more, beyond = _followed(away, seconds, farthest)
        for k in range(1, farthest + 1):
            use = more >= k
            out[frame[use] + step * k, side[use], part[use]] = True
        known[frame + step * more, side, part] = beyond
    for side in range(2):
        for part in range(3):
            own = (parts[:, side, part], out[:, side, part], early[:, side, part], late[:, side, part])
            out[:, side, part], early[:, side, part], late[:, side, part] = _inset(*own, times)
    return out, early, late


def _inset(found: Flags, mask: Flags, early: Array, late: Array, times: Array) -> tuple[Flags, Array, Array]:
    """Contacts of one part that begin ``EASE`` after what was followed and end as much before, but hold all that was ``found``."""
    start, end = signals.runs(mask)
    at = np.flatnonzero(found)
    surely = at[np.searchsorted(at, start)], at[np.searchsorted(at, end) - 1]
    begin = np.minimum(times[start] - early[start] + EASE, times[surely[0]])
    finish = np.maximum(times[end - 1] + late[end - 1] - EASE, times[surely[1]])
    first, last = np.searchsorted(times, begin), np.searchsorted(times, finish, side="right")
    early, late = np.zeros(len(mask)), np.zeros(len(mask))
    early[first], late[last - 1] = times[first] - begin, finish - times[last - 1]
    return signals.filled(first, last, np.ones(len(first), dtype=bool), len(mask)), early, late


def _ways(
    points: Array, times: Array, carried: Array | None, frame: Indices, side: Indices, part: Indices, step: int, count: int
) -> tuple[Array, Array]:
    """Ways (n, count + 1, 3) from where each of n points stands, from its edge ``frame`` outwards, and the seconds (n, count + 1).

    Beyond the take's ends a point is nowhere: NaN.
    """
    inner = max(signals.half_width(SLIDE, signals.spacing(times)), 1)
    index = frame[:, None] + step * np.arange(-inner, count + 1)
    at = np.clip(index, 0, len(times) - 1)
    t = times[at] - times[frame][:, None]
    x = points[at, side[:, None], part[:, None]]
    if carried is not None:
        v = carried[at, side[:, None], part[:, None]]
        x = x.copy()
        x[:, 1:] -= np.cumsum(0.5 * (v[:, 1:] + v[:, :-1]) * np.diff(t, axis=1)[..., None], axis=1)
    x = x - x[:, inner : inner + 1]
    slide = x[:, :1] / np.where(t[:, :1] == 0.0, 1.0, t[:, :1])[..., None]
    way = x[:, inner:] - slide * t[:, inner:, None]
    way[(index != at)[:, inner:]] = np.nan
    return way, np.abs(t[:, inner:])


def _followed(way: Array, seconds: Array, farthest: int) -> tuple[Indices, Array]:
    """For each edge how many frames more the point stands, and for how many seconds after those."""
    distance = np.sqrt(np.einsum("...i,...i->...", way, way))
    with np.errstate(invalid="ignore"):
        stands = distance <= NEAR
    more = np.minimum(np.argmin(np.concatenate([stands, np.zeros((len(stands), 1), dtype=bool)], axis=1), axis=1) - 1, farthest)
    more = np.maximum(more, 0)
    row = np.arange(len(way))
    a, b, c = (way[row, more + k] for k in (1, 2, 3))
    # a parabola through the first three frames in which it does not stand, at 0, 1 and 2; -1 is the last one in which it does
    u = (np.arange(STEPS + 1) / STEPS)[:, None, None] - 1.0
    guess = a + u * (b - a) + (0.5 * u * (u - 1.0)) * (c - 2.0 * b + a)
    left = np.sqrt(np.einsum("...i,...i->...", guess, guess))
    near = left <= NEAR
    latest = np.asarray(STEPS - np.argmax(near[::-1], axis=0), dtype=np.float64)
    closest = np.asarray(np.argmin(np.nan_to_num(left, nan=np.inf), axis=0), dtype=np.float64)
    last = np.where(near.any(axis=0), latest, closest)
    span = seconds[row, more + 1] - seconds[row, more]
    known = np.isfinite(left[0]) & (distance[row, more + 1] > NEAR)
    return more, np.where(known, last / STEPS * span, 0.0)
