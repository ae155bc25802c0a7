# SPDX-License-Identifier: GPL-3.0-or-later
"""The time axis of a recorded performer, from the sender's frame numbers and times and from when its packets arrived.

The sender's clock decides; arrival only where it is missing or coarse. Times that were rounded (MVN sends whole milliseconds) become exact
where they are those of even frames.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..motion.timeline import COMMON_RATES

Array = NDArray[np.float64]
_USUAL = 30
"""So many of the common rates are usual ones, whole or NTSC; they come before the others."""


@dataclass(frozen=True)
class Axis:
    """``times (F,)`` seconds from 0, strictly increasing; the rate where frames are even; what was done, for a person."""

    times: Array
    rate: Fraction | None
    note: str = ""


def axis(times: Array, numbers: NDArray[np.int64] | None, *, by_source: bool) -> Axis:
    """The axis of F samples.

    Parameters
    ----------
    times : (F,) array
        Seconds: the sender's (restarts bridged) with ``by_source``, else arrivals. Increasing.
    numbers : (F,) int array or None
        Frame numbers without wraps and restarts, increasing; None where the sender counts none.
    by_source : bool
    """
    if len(times) < 2:
        return Axis(np.zeros(len(times)), None)
    index = np.arange(len(times)) if numbers is None else numbers - numbers[0]
    if by_source:
        quantum = _quantum(times)
        fit = _even(times, index, 0.51 * quantum + 2e-6)
        if fit is not None:
            return fit
        return Axis(times - times[0], None)
    fit = _even_arrivals(times, index) if numbers is not None else None
    if fit is not None:
        return fit
    return Axis(times - times[0], None, "The sender sends no usable time; samples are placed where they arrived.")


def _quantum(times: Array) -> float:
    """The step that times were rounded to: 1 ms, 10 ms, a float32's; 0 where nothing shows."""
    for step in (0.01, 0.001, 0.0001):
        whole = np.rint(times / step)
        if float(np.abs(times - whole * step).max()) < 1e-6 * max(1.0, step * 1e3) and len(times) > 2:
            return step
    return min(1e-3, float(np.spacing(np.float32(np.abs(times).max()))))


def _even(times: Array, index: NDArray[np.int64], tolerance: float) -> Axis | None:
    """Times that are frames of one rate within ``tolerance``; a common rate first."""
    span = float(index[-1])
    slope = float(times[-1] - times[0]) / span if span else 0.0
    if slope <= 0.0:
        return None
    slack = 2.0 * tolerance / span
    near = [r for r in COMMON_RATES if abs(float(1 / r) - slope) <= slack * 1.01]
    near.sort(key=lambda r: (COMMON_RATES.index(r) >= _USUAL, abs(float(1 / r) - slope)))
    for rate in near:
        exact: Array = index.astype(np.float64) * float(rate.denominator) / float(rate.numerator)
        if _spread(times - exact) <= 2.0 * tolerance:
            return Axis(exact, rate)
    fitted = _least_squares(times, index)
    if _spread(times - fitted) <= 2.0 * tolerance and len(times) > 8:
        return Axis(fitted - fitted[0], None)
    return None


def _even_arrivals(times: Array, index: NDArray[np.int64]) -> Axis | None:
    """Numbered frames by arrival: evenly spaced along the soonest packets, at a common rate where that explains them as well."""
    if len(times) < 16:
        return None
    fitted = _least_squares(times, index)
    if float(np.percentile(np.abs(times - fitted), 90)) > 0.1:
        return None
    slope = float(fitted[-1] - fitted[0]) / float(index[-1])
    noise = float(np.std(times - fitted)) * np.sqrt(12.0 / len(times)) / max(1.0, float(index[-1]))  # of the slope
    near = [r for r in COMMON_RATES if abs(float(1 / r) - slope) <= max(5.0 * noise, 2e-5 * slope)]
    note = "The sender sends no usable time; samples are placed by its frame numbers."
    if near:
        rate = min(near, key=lambda r: (COMMON_RATES.index(r) >= _USUAL, abs(float(1 / r) - slope)))
        return Axis(index.astype(np.float64) * float(rate.denominator) / float(rate.numerator), rate, note)
    return Axis(fitted - fitted[0], None, note)


def _least_squares(times: Array, index: NDArray[np.int64]) -> Array:
    x = index - index.mean()
    slope = float((x * (times - times.mean())).sum() / (x * x).sum())
    return times.mean() + slope * x


def _spread(values: Array) -> float:
    return float(values.max() - values.min())


def unwrapped(numbers: list[int | None], starts: list[bool], times: Array) -> NDArray[np.int64] | None:
    """Frame numbers of samples in order, without wraps; runs after a restart (``starts``) go on after a gap as long as ``times`` says.

    None where a sample has no number, or they do not increase.
    """
    if not numbers or any(n is None for n in numbers):
        return None
    raw = np.array([n for n in numbers if n is not None], dtype=np.int64)
    steps = np.diff(raw) % (1 << 32)
    steps[steps >= 1 << 31] -= 1 << 32
    again = np.array(starts[1:], dtype=bool)
    inner = ~again
    if np.any(steps[inner] <= 0):
        return None
    if np.any(again):
        span = np.diff(times)
        pace = float(span[inner].sum()) / max(1, int(steps[inner].sum())) if np.any(inner) else 0.0
        if pace <= 0.0:
            return None
        steps[again] = np.maximum(1, np.rint(span[again] / pace)).astype(np.int64)
    return np.concatenate([[0], np.cumsum(steps)])
