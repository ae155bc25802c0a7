# SPDX-License-Identifier: GPL-3.0-or-later
"""Many decimal numbers as text at once, each no longer than it must be: ten times faster than one by one."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]

_MOST_DECIMALS, _LARGEST = 8, 1e6
_AT_ONCE = 8_000  # numbers whose digits stand in memory at once: what fits the processor's cache


def _words(rows: Sequence[Sequence[int]]) -> Words:
    """Four bytes each as one number, to be written at once."""
    return np.array(rows, dtype=np.uint8).view(np.uint32).ravel()


_FOUR = _words([list(f"{n:04d}".encode()) for n in range(10000)])
"""The digits of 0 to 9999."""
_ENDS: Bytes = np.array([len(f"{n:04d}".rstrip("0")) for n in range(10000)], dtype=np.uint8)
"""How many of the four digits there are when the zeros at the end are left out."""
_FIRST = _words([[1] * n + [0] * (4 - n) for n in range(5)])
_LAST = _words([[0] * (4 - n) + [1] * n for n in range(5)])
"""Which of four bytes are kept: the first 0 to 4 of them, the last 0 to 4."""


def listed(values: Array, decimals: int) -> str:
    """Numbers that were rounded to ``decimals``, with commas between them and in brackets: a JSON array.

    Each is what ``repr`` would show, but for a decimal point with nothing behind it, and small ones as whole numbers with an exponent.
    """
    return listed_all([values], decimals)[0]


def listed_all(lists: Sequence[Array], decimals: int) -> list[str]:
    """:func:`listed` of many arrays at once."""
    out: list[str] = []
    some: list[Array] = []
    count = 0
    for values in lists:
        flat = np.ascontiguousarray(values, dtype=np.float64).ravel()
        if some and count + flat.size > _AT_ONCE:
            out += _together(some, decimals)
            some, count = [], 0
        some.append(flat)
        count += flat.size
    return out + _together(some, decimals)


def _together(lists: Sequence[Array], decimals: int) -> list[str]:
    flat = np.concatenate(lists) if lists else np.zeros(0)
    if not flat.size:
        return ["[]"] * len(lists)
    if not 0 <= decimals <= _MOST_DECIMALS or float(np.abs(flat).max()) >= _LARGEST:
        return [json.dumps(one.tolist(), separators=(",", ":"), allow_nan=False) for one in lists]
    text, keep = _table(flat, decimals)
    written = text[keep].tobytes().decode("ascii")
    out: list[str] = []
    row = start = 0
    for one in lists:
        size = np.count_nonzero(keep[row : row + one.size])
        out.append(f"[{written[start + 1 : start + size]}]" if one.size else "[]")
        row, start = row + one.size, start + size
    return out


def _table(flat: Array, decimals: int) -> tuple[Bytes, Flags]:
    """A row for each number: all characters that it could need (comma, sign, digits, point, decimals), and which of them it does."""
    scaled = np.rint(flat * 10.0**decimals).astype(np.int64)
    negative = scaled < 0
    scaled = np.abs(scaled)
    whole, part = (half.astype(np.uint32) for half in np.divmod(scaled, 10**decimals))
    front, front_keep = _front(whole, negative, part > 0)
    high, low = np.divmod(part * np.uint32(10 ** (8 - decimals)), np.uint32(10000))  # eight decimals, the last ones zeros
    text, keep = (np.empty((flat.size, front.shape[1] + 2), dtype=np.uint32) for _ in range(2))
    text[:, :-2], keep[:, :-2] = front, front_keep
    text[:, -2], text[:, -1] = _FOUR[high], _FOUR[low]
    keep[:, -2], keep[:, -1] = _FIRST[np.where(low > 0, 4, _ENDS[high])], _FIRST[_ENDS[low]]
    out, kept = text.view(np.uint8), keep.view(np.bool_)
    small = np.flatnonzero((scaled > 0) & (scaled < _small(decimals)[0].shape[0]))
    if small.size:
        short, short_keep = (table[scaled[small]] for table in _small(decimals))
        out[small, 2:10], kept[small, 2:10], kept[small, 10:] = short, short_keep, False
    return out, kept


@functools.cache
def _small(decimals: int) -> tuple[Bytes, Flags]:
    """Eight characters for each number of last digits that is below 0.0001, and which of them are kept: ``12e-7``."""
    count = 10 ** max(decimals - 4, 0)
    texts = [f"{n}e-{decimals}" for n in range(count)]
    for n in range(10, count, 10):
        short = str(n).rstrip("0")
        texts[n] = f"{short}e-{decimals - len(str(n)) + len(short)}"
    rows = np.array([list(text.ljust(8).encode()) for text in texts], dtype=np.uint8)
    return rows, rows > ord(" ")


def _front(whole: Words, negative: Flags, pointed: Flags) -> tuple[Words, Words]:
    """What stands before the decimals as rows of words, and which bytes of them are kept: comma, sign, digits and point."""
    signs = negative + 2 * pointed
    if int(whole.max()) < 10:
        text = _words([list(f",-{n}.".encode()) for n in range(10)])[whole]
        return text[:, None], _words([[1, n % 2, 1, n // 2] for n in range(4)])[signs][:, None]
    high, low = np.divmod(whole, np.uint32(10000))  # at most six digits
    text, keep = (np.empty((len(whole), 4), dtype=np.uint32) for _ in range(2))
    text[:, 0], keep[:, 0] = _words([list(b",-  ")])[0], _words([[1, n, 0, 0] for n in range(2)])[negative.astype(np.int64)]
    text[:, 1], text[:, 2], text[:, 3] = _FOUR[high], _FOUR[low], _words([list(b".   ")])[0]
    digits = 1 + (whole[:, None] >= 10 ** np.arange(1, 6)).sum(axis=1)
    keep[:, 1], keep[:, 2] = _LAST[np.maximum(digits - 4, 0)], _LAST[np.minimum(digits, 4)]
    keep[:, 3] = _words([[n, 0, 0, 0] for n in range(2)])[pointed.astype(np.int64)]
    return text, keep
