# SPDX-License-Identifier: GPL-3.0-or-later
"""Text to numbers, fast and exact.

Motion files are mostly decimal text. :func:`parse` reads a whole block of it with a fixed number of array operations: it finds where
tokens begin and end and where their decimal points are, takes the digits before and after the point eight at a time as one
64-bit word each, and turns a word into a number with three multiplications (Lemire, *Number parsing at a gigabyte per second*, 2021,
section 4; the words come from a gather instead of a pointer). The digits of a token form a whole number below 2**53 and its decimals a
power of ten below 10**22, both exact, so their quotient is the correctly rounded value (Clinger, *How to read floating point numbers
accurately*, 1990): bit for bit what ``float()`` gives. Tokens that are not of this plain shape (exponents, seventeen digits, ``nan``)
are read one by one.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

_PAD = b" " * 16
_ZERO, _PLUS, _MINUS, _POINT = np.uint8(48), np.uint8(43), np.uint8(45), np.uint8(46)
_LONGEST = 4096  # bytes of one token that are looked at
# The digits' values of the last n bytes of a little-endian word, n = 0..8; the bytes before them become leading zeros.
_KEEP: Words = np.array([(0x0F0F0F0F0F0F0F0F << (8 * (8 - n))) & 0xFFFFFFFFFFFFFFFF for n in range(9)], dtype=np.uint64)
_POWERS: Array = 10.0 ** np.arange(23, dtype=np.float64)
_MOST_DIGITS = 15  # any 15 digits are below 2**53
_PLAIN = re.compile(rb"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eEdD][-+]?[0-9]+)?")


@dataclass(frozen=True)
class Numbers:
    """What a block of text holds.

    Parameters
    ----------
    values : (N,) float64 array
        NaN where a token is not a finite number.
    starts : (N,) int array
        Where each token begins in the text, bytes.
    unreadable : tuple of int
        Indices of tokens that are no numbers at all; ``nan`` and ``inf`` in any spelling are not among them.
    """

    values: Array
    starts: Indices
    unreadable: tuple[int, ...] = ()


def parse(text: bytes) -> Numbers:
    """Every number of ``text``: decimals separated by white space. The caller has dealt with commas (:func:`unify_commas`)."""
    padded = _PAD + text + b" "
    b = np.frombuffer(padded, dtype=np.uint8)
    space = b <= 32
    edges = np.flatnonzero(space[1:] != space[:-1])
    starts, ends = edges[0::2] + 1, edges[1::2] + 1  # [start, end) in the padded text
    if len(starts) == 0:
        return Numbers(np.zeros(0), starts)
    negative = b[starts] == _MINUS
    begins = starts + negative
    points = np.flatnonzero(b == _POINT)
    one_point_each = len(points) == len(starts) and bool(np.all((points >= begins) & (points < ends)))
    # Every byte is white space, a digit, a point or a leading minus: a byte that is anything else is in none of these counts.
    plain = np.count_nonzero(space) + np.count_nonzero(b - _ZERO < 10) + len(points) + np.count_nonzero(negative) == len(b)
    if plain and one_point_each:
        odd = np.zeros(0, dtype=np.int64)
    else:
        if len(glued := _glued_signs(b)):
            return _unglue(text, glued - len(_PAD))
        points, odd = _find_odd(b, space, starts, ends, begins, points)
    before, after = points - begins, np.maximum(ends - points - 1, 0)
    digits = before + after
    if int(before.max()) > 8 or int(after.max()) > 16 or int(digits.max()) > _MOST_DIGITS or int(digits.min()) == 0:
        unfit = (before > 8) | (after > 16) | (digits > _MOST_DIGITS) | (digits == 0)
        odd = np.union1d(odd, np.flatnonzero(unfit))
        before, after = np.minimum(before, 8), np.minimum(after, 16)
    if 5 * len(odd) > len(starts) and (at_once := _all_at_once(text)) is not None and len(at_once) == len(starts):
        return Numbers(at_once, starts - len(_PAD))
    words: Words = np.ndarray((len(b) - 7,), dtype="<u8", buffer=padded, strides=(1,))
    whole = _eight_digits(words[points - 8], before).astype(np.float64)
    part = _eight_digits(words[ends - 8], np.minimum(after, 8)).astype(np.float64)
    if int(after.max()) > 8:
        part += 1e8 * _eight_digits(words[ends - 16], np.maximum(after - 8, 0)).astype(np.float64)
    scale = _POWERS[after]
    values = np.copysign((whole * scale + part) / scale, 0.5 - negative)
    starts -= len(_PAD)
    return Numbers(values, starts) if len(odd) == 0 else _mend(text, values, starts, odd)


def _glued_signs(b: Bytes) -> Indices:
    """Places of signs that follow a digit or a point: ``1.5-2.5`` is two numbers whose space was eaten by a fixed-width writer."""
    signs = np.flatnonzero((b == _MINUS) | (b == _PLUS))
    before = b[signs - 1]
    return signs[(before - _ZERO < 10) | (before == _POINT)]


def _find_odd(
    b: Bytes, space: NDArray[np.bool_], starts: Indices, ends: Indices, begins: Indices, points: Indices
) -> tuple[Indices, Indices]:
    """For each token the place of its decimal point (its end, if it has none), and the tokens that are not plain decimals."""
    owner = np.searchsorted(starts, points, side="right") - 1
    twice = owner[1:][owner[1:] == owner[:-1]]
    point = ends.copy()
    point[owner] = points
    minus = np.flatnonzero(b == _MINUS)
    inside = minus[b[minus - 1] > 32]
    other = np.flatnonzero(~(space | (b - _ZERO < 10) | (b == _POINT) | (b == _MINUS)))
    strange = np.searchsorted(starts, np.concatenate([inside, other]), side="right") - 1
    return np.maximum(point, begins), np.unique(np.concatenate([twice, strange]))


def _eight_digits(words: Words, count: Indices) -> Words:
    """The number that the last ``count`` (0..8) digits of each 8-byte word write."""
    w = words & _KEEP[count]
    w = w * np.uint64(10) + (w >> np.uint64(8))
    low = w & np.uint64(0x000000FF000000FF)
    high = (w >> np.uint64(16)) & np.uint64(0x000000FF000000FF)
    return (low * np.uint64(0x000F424000000064) + high * np.uint64(0x0000271000000001)) >> np.uint64(32)


def _all_at_once(text: bytes) -> Array | None:
    """All tokens through ``float()``; None where one of them is not its spelling of a number, or a spelling that only Python allows."""
    if b"_" in text:
        return None
    try:
        values = np.array(text.split(), dtype=np.float64)
    except ValueError:
        return None
    values[~np.isfinite(values)] = np.nan
    return values


def _mend(text: bytes, values: Array, starts: Indices, odd: Indices) -> Numbers:
    """Read the tokens ``odd`` one by one and put them in their places."""
    unreadable: list[int] = []
    for i in odd.tolist():
        start = int(starts[i])
        value = to_float(text[start : start + _LONGEST].split(None, 1)[0])
        values[i] = math.nan if value is None else value
        if value is None:
            unreadable.append(i)
    return Numbers(values, starts, tuple(unreadable))


def _unglue(text: bytes, signs: Indices) -> Numbers:
    """Read ``text`` with a space put before each of ``signs``; the starts are those in the text as it was."""
    spaced = np.insert(np.frombuffer(text, dtype=np.uint8), signs, np.uint8(32)).tobytes()
    numbers = parse(spaced)
    shift = np.searchsorted(signs + np.arange(len(signs)), numbers.starts)
    return Numbers(numbers.values, numbers.starts - shift, numbers.unreadable)


def to_float(token: bytes) -> float | None:
    """One token -> its value; NaN for "not a number" and infinity in any spelling (``-1.#IND``, ``nan(ind)``); None for anything else."""
    if _PLAIN.fullmatch(token):
        value = float(token.replace(b"d", b"e").replace(b"D", b"e"))
        return value if math.isfinite(value) else math.nan
    bare = token.lower().lstrip(b"+-")
    if bare.startswith((b"nan", b"inf", b"1.#", b"#", b"-nan")):
        return math.nan
    return None


def unify_commas(text: bytes, decimal: bool) -> bytes:
    """Commas out of the way: as decimal points (``decimal``), or as separators."""
    return text.replace(b",", b"." if decimal else b" ")
