# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading JSON that anybody may have sent: numbers that came as texts, fields that are missing or of another kind."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .base import BrokenPacketError

Array = NDArray[np.float64]
Object = Mapping[str, object]


def load(data: bytes) -> Object:
    """A JSON object; :class:`BrokenPacketError` when the text is damaged or holds something else."""
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise BrokenPacketError("no JSON") from None
    if not isinstance(found, dict):
        raise BrokenPacketError("no JSON object")
    return cast(Object, found)


def number(value: object) -> float | None:
    """A finite number, also where it was sent as a text (with a comma, too); else None."""
    try:
        found = float(value.replace(",", ".") if isinstance(value, str) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return found if abs(found) < 1e300 else None


def mapping(value: object) -> Object:
    """An object, or an empty one."""
    return cast(Object, value) if isinstance(value, dict) else {}


def objects(value: object, limit: int = 256) -> list[Object]:
    """The objects of a list, at most ``limit``."""
    if not isinstance(value, list):
        return []
    return [cast(Object, item) for item in cast(list[object], value)[:limit] if isinstance(item, dict)]


def text(value: object, default: str = "") -> str:
    """A short text; numbers are written out."""
    if isinstance(value, str):
        return value[:128]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 53 else default


def transform(value: object) -> list[float] | None:
    """Place and rotation (x, y, z, w) of ``{position{x,y,z}, rotation{x,y,z,w}}``; None when a number is missing."""
    both = mapping(value)
    p, q = mapping(both.get("position")), mapping(both.get("rotation"))
    found = [number(p.get(k)) for k in "xyz"] + [number(q.get(k)) for k in "xyzw"]
    return None if any(v is None for v in found) else cast(list[float], found)


def transforms(values: list[object]) -> tuple[Array, NDArray[np.bool_]]:
    """``(N, 7)`` of many, and which of them are transforms: finite, and a rotation of about unit length (made unit)."""
    try:
        rows = np.array([_fast(v) for v in values], dtype=np.float64).reshape(-1, 7)
    except (TypeError, KeyError, ValueError, IndexError, OverflowError):
        bad = [float("nan")] * 7
        rows = np.array([transform(v) or bad for v in values], dtype=np.float64).reshape(-1, 7)
    square = np.einsum("ij,ij->i", rows[:, 3:], rows[:, 3:])
    good = (square > 0.81) & (square < 1.21) & (np.abs(rows[:, :3]) < 1e5).all(axis=1)
    if not good.all():
        rows[~good] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        square[~good] = 1.0
    rows[:, 3:] /= np.sqrt(square)[:, None]
    return rows, good


def _fast(value: Any) -> tuple[Any, ...]:
    p, q = value["position"], value["rotation"]
    return p["x"], p["y"], p["z"], q["x"], q["y"], q["z"], q["w"]
