# SPDX-License-Identifier: GPL-3.0-or-later
"""Where something lasts, and when it really began and ended: between frames, so that the rate of a take does not matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import signals

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

SLOPE = 0.04
"""Seconds over which is measured how a value changes where a stretch begins or ends: no less than two frames at any rate."""


@dataclass(frozen=True, eq=False)
class Stretches:
    """Stretches of frames, and for every frame those around it.

    Parameters
    ----------
    mask : (F,) bool array
        Inside one.
    times : (F,) array
        Seconds.
    before, after : (F,) int array
        The last frame inside one at or before each frame, the first at or after it; -1 and F where there is none.
    since, until : (F,) array
        Seconds from the end of the one before and to the beginning of the next; 0 inside, infinite where there is none.
    late : (F,) array
        Seconds by which a stretch goes on after its last frame; ``early``: by which it begins before its first. Zero elsewhere.
    """

    mask: Flags
    times: Array
    before: Indices
    after: Indices
    since: Array
    until: Array
    early: Array
    late: Array

    @classmethod
    def of(cls, mask: Flags, times: Array, early: Array | None = None, late: Array | None = None) -> Stretches:
        """Those of ``mask``. ``early`` and ``late`` (F,) are looked at where stretches begin and end alone."""
        f = len(mask)
        before, after = signals.neighbours(mask)
        start, end = signals.runs(mask)
        first, last = np.zeros(f), np.zeros(f)
        if early is not None:
            first[start] = early[start]
        if late is not None:
            last[end - 1] = late[end - 1]
        b, a = np.maximum(before, 0), np.minimum(after, f - 1)
        since = np.where(before >= 0, np.maximum(times - times[b] - last[b], 0.0), np.inf)
        until = np.where(after < f, np.maximum(times[a] - times - first[a], 0.0), np.inf)
        return cls(mask, times, before, after, np.where(mask, 0.0, since), np.where(mask, 0.0, until), first, last)

    def spans(self) -> tuple[Indices, Indices, Array, Array]:
        """First frame, last frame, beginning and end (seconds) of every stretch."""
        start, end = signals.runs(self.mask)
        return start, end - 1, self.times[start] - self.early[start], self.times[end - 1] + self.late[end - 1]

    def way(self) -> Array:
        """(F,): which part of the time from one stretch to the next has passed; 0 inside and where one of both is missing."""
        whole = self.since + self.until
        known = np.isfinite(whole) & (whole > 0.0)
        return np.divide(self.since, whole, out=np.zeros_like(whole), where=known)


def fade(values: Array, inside: Stretches, leave: float, enter: float) -> Array:
    """Values known in stretches, let go outside them.

    A value dies away within ``leave`` seconds after a stretch and the next begins to show ``enter`` seconds before its own, both with
    their own velocity at the edge (cubic Hermite), so that nothing jumps. Where the gap is shorter than both, one goes over into
    the other and nothing is let go.

    Parameters
    ----------
    values : (F, n) array
    inside : Stretches
    leave, enter : float

    Returns
    -------
    (F, n) array
    """
    mask = inside.mask
    out = np.where(mask[:, None], values, 0.0)
    if not np.any(mask) or np.all(mask):
        return out
    gap = np.where(np.isfinite(inside.since) & np.isfinite(inside.until), inside.since + inside.until, np.inf)
    rate = _edge_rates(values, mask, inside.times)
    for at, x, width, sign, more in (
        (inside.before, inside.since, leave, 1.0, inside.late),
        (inside.after, inside.until, enter, -1.0, inside.early),
    ):
        span = np.maximum(np.minimum(width, gap), 1e-9)
        use = np.flatnonzero(~mask & (x < span))
        there, s, wide = at[use], x[use] / span[use], span[use]
        hold, carry = 1.0 - signals.ease(s), (s * (1.0 - s) ** 2 * wide + more[there] * (1.0 - signals.ease(s))) * sign
        out[use] += values[there] * hold[:, None] + rate[there] * carry[:, None]
    return out


def _edge_rates(values: Array, mask: Flags, times: Array) -> Array:
    """Velocity of ``values`` at the first and last frame of every stretch, one-sided over ``SLOPE`` seconds; zero elsewhere."""
    rate = np.zeros_like(values)
    start, end = signals.runs(mask)
    last = end - 1
    reach = np.minimum(last - start, max(signals.half_width(SLOPE, signals.spacing(times)), 1))
    for here, there in ((start, start + reach), (last, last - reach)):
        span = times[there] - times[here]
        use = span != 0.0
        rate[here[use]] = (values[there[use]] - values[here[use]]) / span[use, None]
    return rate


def between(values: Array, inside: Stretches) -> Array:
    """Values (F,) or (F, n) known in stretches; elsewhere eased from one stretch's last to the next one's first, held at the ends."""
    mask = inside.mask
    if not np.any(mask):
        return np.zeros_like(values)
    b = np.where(inside.before < 0, inside.after, inside.before)
    a = np.where(inside.after >= len(mask), inside.before, inside.after)
    out = values.copy()
    swing = np.flatnonzero(~mask)
    last, share = values[b[swing]], signals.ease(inside.way()[swing])
    out[swing] = last + (values[a[swing]] - last) * (share if values.ndim == 1 else share[:, None])
    return out
