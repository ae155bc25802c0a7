# SPDX-License-Identifier: GPL-3.0-or-later
"""The frame rate that key times were written at: exporters keep seconds in float32 and leave a still bone's keys out."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from . import timeline

Array = NDArray[np.float64]

SLOWEST = 12
"""Keys farther apart than this many a second were set by hand or thinned out; their spacing is no frame rate."""


def distinct(times: Array) -> Array:
    """Times ``(N,)`` in any order -> each once, sorted; what rounding alone sets apart is one time."""
    times = np.unique(times)
    if len(times) < 2:
        return times
    return times[np.concatenate([[True], np.diff(times) > 2.0 * _rounding(times)])]


def uniform_rate(times: Array) -> Fraction | None:
    """The rate of ``times (N,)`` (seconds, sorted, distinct) where they are evenly spaced as frames are; None otherwise.

    A common rate is meant where the spacing is within rounding of it: Blender, for one, keeps 120 as 120.00005.
    """
    if len(times) < 2 or times[-1] - times[0] <= 0.0:
        return None
    count, span = len(times) - 1, float(times[-1] - times[0])
    measured = count / span
    even = _places(times, measured)
    if measured < SLOWEST or even is None or not np.array_equal(even, np.arange(len(times))):
        return None
    near = min(timeline.COMMON_RATES, key=lambda rate: abs(float(rate) - measured))
    if abs(float(near) / measured - 1.0) <= 2e-6 + 2.0 * _rounding(times) / span:
        return near
    return Fraction(measured).limit_denominator(1001)


def fitting_rate(times: Array) -> Fraction | None:
    """The first of the common rates on whose frames all of ``times`` lie, counted from the first time; None if none.

    The usual whole rates come before 24000/1001 and its like.
    """
    even = uniform_rate(times)
    if even is not None or len(times) == 0:
        return even
    return next((rate for rate in timeline.COMMON_RATES if rate > 23 and _places(times, float(rate)) is not None), None)


def _rounding(times: Array) -> float:
    """Seconds that float32 and the arithmetic of exporters may be off."""
    return 1e-5 + 1.2e-7 * float(np.abs(times).max())


def _places(times: Array, rate: float) -> NDArray[np.int64] | None:
    """Which frame each time is, or None where one is none."""
    at = (times - times[0]) * rate
    whole = np.rint(at)
    return whole.astype(np.int64) if float(np.abs(at - whole).max()) <= _rounding(times) * rate else None
