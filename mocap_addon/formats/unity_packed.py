# SPDX-License-Identifier: GPL-3.0-or-later
"""The bit-packed rotation curves of compressed Unity clips (``m_CompressedRotationCurves``).

Bits are counted from the lowest of the first byte. Times are whole numbers of hundredths of a second, each the distance from the one
before. A rotation takes 32 bits: two say which component is left out, one its sign, then follow the others with ten bits each, nine for the
one after the left-out component; they span -1..1. Slopes span ``m_Start`` to ``m_Start + m_Range``; one set a key where both sides of all
keys are alike, else first the keys' in-slopes, then their out-slopes.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..motion.errors import FileError
from . import unity_keys
from .unity_keys import Keys
from .unity_yaml import Map, Node, Text, line_of

Array = NDArray[np.float64]

_TICK = 0.01
_MOST = 50_000_000
_NOT_HEX = re.compile(r"[^0-9a-fA-F]")


def keys(data: bytes, curve: Map, path: Path) -> Keys:
    """The keys of one packed curve.

    Raises
    ------
    FileError
        With its line, where parts of it are missing.
    """
    count = _count(data, curve, "m_Values", path)
    times: Array = np.cumsum(_integers(data, curve, "m_Times", count, path)).astype(np.float64) * _TICK
    values = _quaternions(_bits(data, curve, "m_Values", 32 * count, path), count)
    in_slopes = out_slopes = np.zeros((count, 4))
    given = _count(data, curve, "m_Slopes", path)
    if given in (4 * count, 8 * count) and count:
        slopes = _floats(data, curve, "m_Slopes", given, path)
        in_slopes = slopes[: 4 * count].reshape(count, 4)
        out_slopes = slopes[-4 * count :].reshape(count, 4)
    elif given:
        raise _damaged(data, curve, path, f"has {given} slopes for {count} keys")
    elif count > 1:
        in_slopes = out_slopes = _smooth(times, values)
    if count == 0 or np.any(np.diff(times) < 0.0):
        raise _damaged(data, curve, path, "has no keys, or its times do not rise")
    return Keys(times, values, in_slopes, out_slopes)


def _smooth(times: Array, values: Array) -> Array:
    """Slopes through each key's neighbours, where the file keeps none."""
    step = np.maximum(np.diff(times)[:, None], 1e-9)
    lines = np.diff(values, axis=0) / step
    return np.concatenate([lines[:1], 0.5 * (lines[1:] + lines[:-1]), lines[-1:]])


def _part(data: bytes, curve: Map, name: str, path: Path) -> Map:
    part = curve.get(name)
    if not isinstance(part, Map):
        raise _damaged(data, curve, path, f"has no {name}")
    return part


def _count(data: bytes, curve: Map, name: str, path: Path) -> int:
    return _whole(data, curve, _part(data, curve, name, path).get("m_NumItems"), path, _MOST)


def _whole(data: bytes, curve: Map, node: Node | None, path: Path, most: int) -> int:
    value = unity_keys.number(data, node if node is not None else Text(), path, where=curve.at)
    if value != int(value) or not 0 <= value <= most:
        raise _damaged(data, curve, path, f"has a count of {value:g}")
    return int(value)


def _bits(data: bytes, curve: Map, name: str, needed: int, path: Path) -> NDArray[np.uint8]:
    """The bits of a part, lowest first."""
    text = _part(data, curve, name, path).get("m_Data")
    digits = str(text).replace(" ", "") if isinstance(text, Text) else ""
    if _NOT_HEX.search(digits) or len(digits) % 2 or 4 * len(digits) < needed:
        raise _damaged(data, curve, path, f"has incomplete data in {name}")
    return np.unpackbits(np.frombuffer(bytes.fromhex(digits), dtype=np.uint8), bitorder="little")


def _numbers(bits: NDArray[np.uint8], count: int, size: int) -> NDArray[np.int64]:
    weights = np.left_shift(np.int64(1), np.arange(size, dtype=np.int64))
    return bits[: count * size].reshape(count, size).astype(np.int64) @ weights


def _integers(data: bytes, curve: Map, name: str, count: int, path: Path) -> NDArray[np.int64]:
    part = _part(data, curve, name, path)
    if _count(data, curve, name, path) != count:
        raise _damaged(data, curve, path, "has another number of times than of rotations")
    size = _whole(data, curve, part.get("m_BitSize"), path, 32)
    return _numbers(_bits(data, curve, name, count * size, path), count, size)


def _floats(data: bytes, curve: Map, name: str, count: int, path: Path) -> Array:
    part = _part(data, curve, name, path)
    size = _whole(data, curve, part.get("m_BitSize"), path, 32)
    reach, start = (unity_keys.number(data, part.get(k, Text()), path, where=curve.at) for k in ("m_Range", "m_Start"))
    steps = _numbers(_bits(data, curve, name, count * size, path), count, size).astype(np.float64)
    return start + steps * (reach / max(1, (1 << size) - 1))


def _quaternions(bits: NDArray[np.uint8], count: int) -> Array:
    """(K, 4) xyzw."""
    table = bits[: 32 * count].reshape(count, 32)
    left_out = _numbers(np.ascontiguousarray(table[:, :2]).ravel(), count, 2)
    negative = table[:, 2] != 0
    out = np.zeros((count, 4))
    for which in range(4):
        rows = np.flatnonzero(left_out == which)
        at = 3
        for component in (c for c in range(4) if c != which):
            size = 9 if component == (which + 1) % 4 else 10
            steps = _numbers(np.ascontiguousarray(table[rows, at : at + size]).ravel(), len(rows), size)
            out[rows, component] = steps / (0.5 * ((1 << size) - 1)) - 1.0
            at += size
        rest = np.sqrt(np.maximum(0.0, 1.0 - np.sum(out[rows] ** 2, axis=1)))
        out[rows, which] = np.where(negative[rows], -rest, rest)
    return out


def _damaged(data: bytes, curve: Map, path: Path, what: str) -> FileError:
    return FileError(f"This compressed rotation curve {what}; save the clip in Unity again.", path, line_of(data, curve.at))
