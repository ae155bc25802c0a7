# SPDX-License-Identifier: GPL-3.0-or-later
"""Time axes and frame rates.

A time axis is seconds, float64, strictly increasing, not necessarily uniform. A frame rate is an exact fraction:
``Fraction(30000, 1001)``, never 29.97.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .errors import MocapError

Array = NDArray[np.float64]

_USUAL = (24, 25, 30, 48, 50, 60, 72, 90, 100, 120, 125, 144, 150, 180, 200, 240, 250, 300, 360, 480, 500, 1000)
_NTSC = (24, 30, 48, 60, 72, 96, 120, 240)
_OTHER = (*range(1, 101), 110, 119, 160, 239, 256, 400, 600, 960, 2000)
_RANKS: tuple[tuple[Fraction, ...], ...] = (
    tuple(map(Fraction, _USUAL)),
    tuple(Fraction(n * 1000, 1001) for n in _NTSC),
    tuple(Fraction(n) for n in _OTHER if n not in _USUAL),
)
COMMON_RATES: tuple[Fraction, ...] = tuple(rate for rank in _RANKS for rate in rank)
"""Rates that cameras, suits and engines use: what a rounded frame time most likely meant; the usual ones first."""

_RANK_TIMES: tuple[Array, ...] = tuple(np.array([rate.denominator / rate.numerator for rate in rank]) for rank in _RANKS)


def rate_from_frame_time(frame_time: float, digits: int | None = None) -> Fraction:
    """The exact rate that a written frame time stands for.

    Files round: ``0.0083333`` means 120, ``0.0417083`` means 24000/1001. A common rate is taken when it would be written as the
    same digits; otherwise the frame time itself is inverted. Few digits fit several rates (``0.0167``: 60 and 59.94, ``0.017``: also
    59 and 58): then the usual whole rates come before the NTSC ones, and those before the rest.

    Parameters
    ----------
    frame_time : float
        Seconds, > 0.
    digits : int, optional
        Decimals the file gave. Without it, six significant digits are assumed.

    Raises
    ------
    MocapError
        The frame time is zero, negative or not finite.
    """
    if not (frame_time > 0.0 and math.isfinite(frame_time)):
        raise MocapError(f"The frame time {frame_time!r} is not a duration; give the frame rate instead.")
    unit = 10.0**-digits if digits is not None else 10.0 ** (math.floor(math.log10(frame_time)) - 5)
    # Half a unit is rounding; a whole unit also admits files that cut digits off (0.033333 for 30, 0.016666 for 60).
    for reach in (0.5, 1.0):
        for rank, times in zip(_RANKS, _RANK_TIMES, strict=True):
            misses = np.abs(times - frame_time)
            best = int(np.argmin(misses))
            if misses[best] <= max(1.001 * reach * unit, 1e-9):
                return rank[best]
    return (1 / Fraction(frame_time)).limit_denominator(10_000_000)


def parse_rate(text: str) -> Fraction:
    """A person's rate -> exact fraction: ``"30"``, ``"30000/1001"``, ``"29.97"``, ``"23.976"``. NTSC decimals become exact."""
    try:
        # Python would write out the zeros of 1e999999999.
        rate = Fraction(0 if "e" in text.lower() else text.strip())
    except (ValueError, ZeroDivisionError):
        raise MocapError(f'"{text}" is not a frame rate; write for example 30, 29.97 or 30000/1001.') from None
    if rate <= 0 or rate > 100_000:
        raise MocapError(f'The frame rate "{text}" is out of range; it must lie between 0 and 100000.')
    for n in _NTSC:
        ntsc = Fraction(n * 1000, 1001)
        if rate != n and abs(float(rate - ntsc)) < 0.006 * n / 24:
            return ntsc
    return rate


def format_rate(rate: Fraction) -> str:
    """A rate as a person reads it: ``30``, ``29.97``."""
    return str(rate.numerator) if rate.denominator == 1 else f"{float(rate):.4g}" if rate < 100 else f"{float(rate):.5g}"


def uniform_times(count: int, rate: Fraction, start: float = 0.0) -> Array:
    """``count`` times in seconds at ``rate``; computed from whole numbers, so hours later nothing has drifted."""
    return start + np.arange(count, dtype=np.float64) * float(rate.denominator) / float(rate.numerator)


def usual_rate(times: Array) -> Fraction | None:
    """The common rate that most neighbouring ``times (F,)`` lie apart by, whatever gaps there are; None where there is none within 1 %."""
    if len(times) < 2:
        return None
    step = float(np.median(np.diff(times)))
    near = min(COMMON_RATES, key=lambda rate: abs(float(rate) * step - 1.0))
    return near if abs(float(near) * step - 1.0) < 0.01 else None


def sample_times(times: Array, rate: Fraction) -> Array:
    """Whole frames at ``rate`` that cover ``times``: from its first, to the last that is not after its end (within 1e-6 of a frame)."""
    if len(times) == 0:
        return np.zeros(0)
    span = float(times[-1] - times[0]) * float(rate)
    return uniform_times(math.floor(span + 1e-6) + 1, rate, float(times[0]))


def bracket(times: Array, at: Array) -> tuple[NDArray[np.int64], NDArray[np.int64], Array]:
    """For each time in ``at``: the sample before, the sample after, and the share of the second (0..1); held outside the range.

    A time that is a sample up to rounding is that sample alone: both indices name it, so that it is copied and no neighbour matters.
    """
    if len(times) < 2:
        zero = np.zeros(len(at), dtype=np.int64)
        return zero, zero, np.zeros(len(at))
    i = np.clip(np.searchsorted(times, at, side="right") - 1, 0, len(times) - 2)
    t = np.clip((at - times[i]) / (times[i + 1] - times[i]), 0.0, 1.0)
    first, second = t < 1e-9, t > 1.0 - 1e-9
    return np.where(second, i + 1, i), np.where(first, i, i + 1), np.where(first | second, 0.0, t)
