# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking a ground what lies under points, and which of several storeys counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from .ground import Ground, Hits

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

HEADROOM = 0.3
"""A foot stands on nothing that has a ceiling closer than this above it, metres: that is the inside of something."""
OPEN = 0.7
"""Metres: two surfaces that both face up are storeys without thickness when farther apart, a body and what is under it when closer."""


@dataclass(frozen=True, eq=False)
class Surface:
    """What lies under N points.

    Parameters
    ----------
    height : (N,) array
        World z, metres; NaN where there is nothing.
    normal : (N, 3) array
        Unit, upwards.
    object : (N,) int array
        -1 where there is nothing.
    """

    height: Array
    normal: Array
    object: Indices


def cast_down(ground: Ground, points: Array, times: Array, up: float, down: float, limit: int = 6, *, nearest: bool = False) -> Hits:
    """All between ``up`` above and ``down`` below points ``(N, 3)``, from above; with ``nearest`` what is nearest to them will do."""
    origins = points + np.array([0.0, 0.0, up])
    directions = np.zeros_like(points)
    directions[:, 2] = -1.0
    enough = np.full(len(points), up) if nearest else None
    return ground.cast(origins, directions, np.full(len(points), up + down), times, limit, enough)


def standable(hits: Hits, steepest: float) -> Flags:
    """(N, K): which hits of rays from above a foot can stand on.

    Parameters
    ----------
    hits : Hits
    steepest : float
        Least z of a walkable normal.
    """
    there = hits.object >= 0
    nz = hits.normal[..., 2]
    front = there & (nz > 0.0)
    lone = there & ~np.any(front, axis=1, keepdims=True)  # a floor modelled upside down
    ok = (front | lone) & (np.abs(nz) >= steepest)
    if hits.distance.shape[1] == 1:
        return ok
    with np.errstate(invalid="ignore"):
        room = hits.distance[:, 1:] - hits.distance[:, :-1]
    below_front = front[:, :-1] & (room < OPEN)
    below_back = there[:, :-1] & ~front[:, :-1] & (room < HEADROOM) & ~lone[:, :-1]
    ok[:, 1:] &= ~(below_front | below_back)
    return ok


def nearest_to(hits: Hits, wanted: Array, steepest: float, up: float = np.inf, down: float = np.inf) -> Surface:
    """The standable surface nearest to the heights ``wanted`` (N,), no more than ``up`` above and ``down`` below them."""
    hits = hits.met()
    z = hits.point[..., 2]
    away = z - wanted[:, None]
    ok = standable(hits, steepest) & (away <= up) & (away >= -down)
    best = np.where(ok, np.abs(away), np.inf).argmin(axis=1)
    row = np.arange(len(best))
    found = ok[row, best]
    normal = hits.normal[row, best]
    normal = normal * np.where(normal[:, 2:] < 0.0, -1.0, 1.0)
    return Surface(
        np.where(found, z[row, best], np.nan),
        np.where(found[:, None], normal, [0.0, 0.0, 1.0]),
        np.where(found, hits.object[row, best], -1).astype(np.int64),
    )


def moves(ground: Ground, times: Array) -> bool:
    """Whether anything of the ground moves between the first and the last of ``times``."""
    count = len(ground.names)
    if count == 0 or len(times) < 2:
        return False
    moments = np.unique(np.linspace(0, len(times) - 1, 24).round().astype(np.int64))
    objects = np.repeat(np.arange(count, dtype=np.int64), len(moments))
    positions, rotations = ground.spaces(objects, np.tile(times[moments], count))
    p, q = positions.reshape(count, -1, 3), rotations.reshape(count, -1, 4)
    return bool(np.any(np.abs(p - p[:, :1]) > 1e-6) or np.any(quat.angle(q, q[:, :1]) > 1e-6))


def carried_velocity(ground: Ground, points: Array, objects: Indices, times: Array, step: float) -> Array:
    """Velocity (N, 3) that rigid ``objects`` give to points (N, 3) fixed to them, by central differences over ``step`` seconds."""
    at, turned = ground.spaces(objects, times)
    local = quat.rotate(quat.inv(turned), points - at)
    before_at, before = ground.spaces(objects, times - 0.5 * step)
    after_at, after = ground.spaces(objects, times + 0.5 * step)
    moved = quat.rotate(after, local) + after_at - quat.rotate(before, local) - before_at
    return np.where((objects >= 0)[:, None], moved / step, 0.0)
