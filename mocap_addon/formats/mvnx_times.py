# SPDX-License-Identifier: GPL-3.0-or-later
"""When the frames of an MVNX file were: from its rounded time stamps to an exact time axis."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..motion import timeline

Array = NDArray[np.float64]

_SLACK = 1.5e-3
"""Seconds by which a stamp may differ from the exact time; stamps are whole milliseconds, cut or rounded."""
_MOST_FRAMES = 1e8
"""A frame number that is farther from the first (five days at 240 Hz) is damage."""


@dataclass(frozen=True)
class Axis:
    """A time axis ``times (F,)`` in seconds, its rate (None when it is not uniform), frames missing inside, and notes."""

    times: Array
    rate: Fraction | None
    missing: int
    notes: tuple[str, ...]


def axis(stamps: Array, indices: Array, rate: Fraction) -> Axis:
    """The times of frames.

    MVN counts frames (``index``) and stamps them in whole milliseconds (``time``). Where both exist and agree, or one exists, the
    frame number over the rate is the exact time, and a jump of the number is a gap. Stamps that fit no frame of the rate are taken as
    they are.

    Parameters
    ----------
    stamps, indices : (F,) arrays
        ``time`` in seconds and ``index``; NaN where a frame has none.
    rate : Fraction
        The nominal rate.
    """
    f = len(stamps)
    if f == 0:
        return Axis(np.zeros(0), rate, 0, ())
    stamped, counted = _rising(stamps), _rising(indices) and bool(np.all(indices == np.rint(indices)))
    counted = counted and float(indices[-1] - indices[0]) < _MOST_FRAMES
    notes: list[str] = []
    count: Array | None = None
    if counted and (not stamped or _fits(indices, stamps, rate)):
        count = indices
    elif counted and _fits(indices, stamps, measured := _measured(indices, stamps)):
        says, is_ = timeline.format_rate(rate), timeline.format_rate(measured)
        notes.append(f"The file says {says} frames a second and its time stamps say {is_}; the stamps were followed.")
        count, rate = indices, measured
    elif stamped:
        nearest: Array = np.rint((stamps - stamps[0]) * float(rate))
        if _rising(nearest) and _fits(nearest, stamps, rate):
            count = nearest
        else:
            note = f"The time stamps do not fit {timeline.format_rate(rate)} frames a second; the frames stand where their stamps say."
            return Axis(np.array(stamps, dtype=np.float64), None, 0, (note,))
    if count is None:
        count = np.arange(f, dtype=np.float64)
        if f > 1:
            notes.append("The frames have no rising time stamps; they are taken as following each other without a gap.")
    start = _start(stamps, indices if counted else None, rate)
    steps: Array = count - count[0]
    per = float(rate.denominator) / float(rate.numerator)
    times: Array = (start + steps) * float(rate.denominator) / float(rate.numerator) if isinstance(start, int) else start + steps * per
    missing = int(steps[-1]) + 1 - f
    if missing:
        gaps = int(np.count_nonzero(np.diff(steps) > 1.0))
        what = "1 frame is" if missing == 1 else f"{missing} frames are"
        where = "one place" if gaps == 1 else f"{gaps} places"
        notes.append(f"{what} missing in {where}; the others keep their times.")
    return Axis(times, None if missing else rate, missing, tuple(notes))


def _fits(count: Array, stamps: Array, rate: Fraction) -> bool:
    return float(np.max(np.abs((count - count[0]) / float(rate) - (stamps - stamps[0])))) <= _SLACK


def _measured(count: Array, stamps: Array) -> Fraction:
    """The rate that counted frames and their stamps say together."""
    return timeline.rate_from_frame_time(float((stamps[-1] - stamps[0]) / (count[-1] - count[0]))) if len(count) > 1 else Fraction(1)


def _start(stamps: Array, indices: Array | None, rate: Fraction) -> int | float:
    """Where the axis begins: a whole number of frames when the first stamp fits one, else seconds."""
    if np.isfinite(stamps[0]):
        frame = int(indices[0]) if indices is not None else round(float(stamps[0]) * float(rate))
        return frame if abs(frame * float(1 / rate) - float(stamps[0])) <= _SLACK else float(stamps[0])
    return int(indices[0]) if indices is not None else 0


def _rising(a: Array) -> bool:
    return bool(np.all(np.isfinite(a)) and np.all(np.diff(a) > 0.0))
