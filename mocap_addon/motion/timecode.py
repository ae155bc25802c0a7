# SPDX-License-Identifier: GPL-3.0-or-later
"""Time code: which hour, minute, second and frame of the day a sample is, right at NTSC rates and over midnight.

SMPTE ST 12-1 counts frames, not seconds. At 30000/1001 frames a second it still counts thirty to the second, so its clock falls behind by
3.6 s an hour. Drop-frame makes up for that by leaving out *numbers* (never pictures): ``;00`` and ``;01`` of every minute that is no
tenth one; at 60000/1001 the first four. A day has 2,589,408 frames then, and 2,592,000 without.

A label is written ``HH:MM:SS:FF``, in drop-frame ``HH:MM:SS;FF``; a part of a frame follows after a full stop (``01:00:00:00.25``), for
samples that lie closer than the frames of the time code.

Time code is counted, so it is never interpolated: at new times it is computed anew from the start (:func:`curves`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from .errors import MocapError
from .timeline import format_rate

Array = NDArray[np.float64]

PREFIX = "TC"
"""Curves whose names start so are time code: they hold between samples and are never interpolated."""
HOUR, MINUTE, SECOND, FRAME, SUBFRAME = "TCHour", "TCMinute", "TCSecond", "TCFrame", "TCSubframe"

_LABEL = re.compile(r"\s*(\d{1,2}):(\d{1,2}):(\d{1,2})([:;.,])(\d{1,4})(\.\d+)?\s*", re.ASCII)
_CLOCK = re.compile(r"\s*(\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,](\d{3}))?\s*", re.ASCII)
"""A clock's time, ``HH:MM:SS`` or ``HH:MM:SS.mmm``, as some suits send it: milliseconds are always three digits."""
_NEAR = 1e-3
"""Frames: what lies so close below a frame is that frame; times have been through milliseconds and single precision."""


@dataclass(frozen=True)
class TimeCode:
    """One moment.

    Parameters
    ----------
    rate : Fraction
        Frames a second, exact: ``Fraction(30000, 1001)``.
    count : int
        Whole frames since midnight; brought into one day.
    subframe : float
        Part of a frame beyond that, 0 <= subframe < 1.
    drop : bool
        Drop-frame numbering.

    Raises
    ------
    MocapError
        Drop-frame at a rate that has none, or a rate that is none.
    """

    rate: Fraction
    count: int
    subframe: float = 0.0
    drop: bool = False

    def __post_init__(self) -> None:
        if self.rate <= 0 or not 0.0 <= self.subframe < 1.0:
            raise MocapError("Time code needs a frame rate above zero and a sub-frame from 0 up to 1.")
        if self.drop and not can_drop(self.rate):
            rate = format_rate(self.rate)
            raise MocapError(f"Drop-frame time code exists at 29.97, 59.94 and 119.88 frames a second only, not at {rate}.")
        object.__setattr__(self, "count", self.count % frames_per_day(self.rate, drop=self.drop))

    def __str__(self) -> str:
        hour, minute, second, frame = (int(part) for part in fields(np.array([self.count]), self.rate, drop=self.drop)[:, 0])
        width = max(2, len(str(nominal(self.rate) - 1)))
        part = f"{self.subframe:.4f}".rstrip("0").lstrip("0") if self.subframe >= 5e-5 else ""
        part = ".9999" if part == "1." else part  # rounding must not make it the next frame
        return f"{hour:02d}:{minute:02d}:{second:02d}{';' if self.drop else ':'}{frame:0{width}d}{part}"

    def shifted(self, seconds: float) -> TimeCode:
        """The time code so much later (or earlier); midnight is passed as a clock does."""
        count, part = _split(np.array([seconds]), self)
        return replace(self, count=int(count[0]), subframe=float(part[0]))

    @property
    def seconds(self) -> float:
        """Seconds of real time since midnight."""
        return (self.count + self.subframe) * float(self.rate.denominator) / float(self.rate.numerator)


def nominal(rate: Fraction) -> int:
    """How many frames are counted to a second: 30 at 29.97, 24 at 23.976."""
    return math.ceil(rate - Fraction(1, 100))


def can_drop(rate: Fraction) -> bool:
    """Whether the rate has drop-frame numbering: 30000/1001 and its multiples."""
    return (rate * 1001 / 30000).denominator == 1


def frames_per_day(rate: Fraction, *, drop: bool = False) -> int:
    """Numbers in 24 hours of time code."""
    base = nominal(rate)
    return 86400 * base - (_dropped(base) * (1440 - 144) if drop else 0)


def parse(text: str, rate: Fraction, *, drop: bool | None = None) -> TimeCode:
    """A label as time code.

    Parameters
    ----------
    text : str
        ``HH:MM:SS:FF``; a semicolon (some write a full stop or a comma) before the frame means drop-frame; ``.25`` after it a part of one.
        Also a clock's ``HH:MM:SS.mmm``: the frame that lies there in the second.
    rate : Fraction
        Frames a second of the time code.
    drop : bool, optional
        Drop-frame, whatever the separator says.

    Raises
    ------
    MocapError
        No label, a field out of range, or a frame number that drop-frame leaves out.
    """
    clock = _CLOCK.fullmatch(text)
    if clock is not None:
        beyond = int(clock[4] or 0) / 1000.0 * nominal(rate)
        part = f"{beyond % 1.0:.6f}"[1:] if beyond % 1.0 < 0.9999995 else ""
        return parse(f"{clock[1]}:{clock[2]}:{clock[3]}:{int(beyond)}{part}", rate, drop=drop)
    found = _LABEL.fullmatch(text)
    if found is None:
        raise MocapError(f'"{text}" is not a time code; write HH:MM:SS:FF, or HH:MM:SS;FF for drop-frame.')
    hour, minute, second, frame = (int(found[k]) for k in (1, 2, 3, 5))
    base = nominal(rate)
    if hour > 23 or minute > 59 or second > 59 or frame >= base:
        raise MocapError(
            f'The time code "{text.strip()}" is out of range: at {format_rate(rate)} frames a second it ends at 23:59:59:{base - 1:02d}.'
        )
    dropping = (found[4] != ":" and can_drop(rate)) if drop is None else drop
    count = ((hour * 60 + minute) * 60 + second) * base + frame
    if dropping:
        left_out = _dropped(base)
        if minute % 10 and second == 0 and frame < left_out:
            raise MocapError(f'The time code "{text.strip()}" does not exist in drop-frame; that minute starts with frame {left_out:02d}.')
        minutes = 60 * hour + minute
        count -= left_out * (minutes - minutes // 10)
    return TimeCode(rate, count, min(float(found[6] or 0.0), 0.9999999), dropping)


def fields(count: NDArray[np.int64], rate: Fraction, *, drop: bool = False) -> NDArray[np.int64]:
    """(4, F): hour, minute, second and frame of frame counts ``(F,)`` since midnight; a day later they start again."""
    base = nominal(rate)
    count = np.asarray(count, dtype=np.int64) % frames_per_day(rate, drop=drop)
    if drop:
        left_out = _dropped(base)
        minute = 60 * base - left_out  # numbers in a minute that leaves some out
        ten = 10 * minute + left_out  # the first of ten minutes leaves none out
        tens, rest = count // ten, count % ten
        later = np.maximum(rest - left_out, 0) // minute  # minutes of these ten in which numbers were left out so far
        count = count + left_out * (9 * tens + later)
    second = count // base
    return np.stack([second // 3600, second // 60 % 60, second % 60, count % base])


def curves(start: TimeCode, seconds: Array) -> dict[str, Array]:
    """Time code as curves: ``TCHour``, ``TCMinute``, ``TCSecond``, ``TCFrame``; with parts of frames anywhere also ``TCSubframe``.

    Parameters
    ----------
    start : TimeCode
        At second zero.
    seconds : (F,) array
        Of the samples, counted from the start.
    """
    count, part = _split(np.asarray(seconds, dtype=np.float64), start)
    table = fields(count, start.rate, drop=start.drop).astype(np.float64)
    out: dict[str, Array] = {HOUR: table[0], MINUTE: table[1], SECOND: table[2], FRAME: table[3]}
    if np.any(part > 0.0):
        out[SUBFRAME] = part
    return out


def from_curves(found: Mapping[str, Array], rate: Fraction, *, drop: bool = False) -> TimeCode | None:
    """The reverse: time code of the first sample, None where a curve is missing or the numbers are none."""
    try:
        hour, minute, second, frame = (round(float(found[name][0])) for name in (HOUR, MINUTE, SECOND, FRAME))
        part = float(found[SUBFRAME][0]) if SUBFRAME in found else 0.0
        return replace(parse(f"{hour}:{minute}:{second}:{frame}", rate, drop=drop), subframe=min(max(part, 0.0), 0.9999999))
    except (KeyError, IndexError, ValueError, OverflowError, MocapError):
        return None


def _split(seconds: Array, start: TimeCode) -> tuple[NDArray[np.int64], Array]:
    """Whole frames since midnight (not brought into one day) and parts of a frame, 0 <= part < 1."""
    beyond = seconds * (float(start.rate.numerator) / float(start.rate.denominator)) + start.subframe
    whole = np.floor(beyond + _NEAR)
    part = np.maximum(beyond - whole, 0.0)
    return whole.astype(np.int64) + start.count, np.where(part < _NEAR, 0.0, part)


def _dropped(base: int) -> int:
    """Numbers that a minute leaves out."""
    return base // 15
