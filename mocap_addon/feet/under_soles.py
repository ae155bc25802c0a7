# SPDX-License-Identifier: GPL-3.0-or-later
"""What is under the soles of contacts, contact after contact: of several storeys the one that the contact before leads to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from . import terrain
from .ground import Ground, Hits
from .legs import unit
from .settings import FeetSettings

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

SEARCH = 3.0
"""Metres above and below that are asked for at once; who climbs farther is asked for again."""
HIGH_STEP = 0.25
"""Metres: how much farther than the trace a next step is looked for, where the trace finds too little."""


@dataclass(frozen=True, eq=False)
class Under:
    """Heights (n, P), normals (n, P, 3), objects (n, P) under the soles; NaN where there is nothing."""

    height: Array
    normal: Array
    object: Indices


def follow(
    ground: Ground, ball: Array, ahead: Array, offsets: Array, floor: Array, times: Array, steepest: float, settings: FeetSettings
) -> Under:
    """What is under each sole, contact after contact: the surface nearest to the level of the contact before."""
    n, p = offsets.shape
    height, normal, index = np.full((n, p), np.nan), np.zeros((n, p, 3)), np.full((n, p), -1, dtype=np.int64)
    normal[..., 2] = 1.0
    rise, first = 0.0, 0
    last: tuple[Array, Array] | None = None
    while first < n:
        rest = slice(first, n)
        points = ball[rest, None] + ahead[rest, None] * offsets[rest, :, None]
        points[..., 2] = floor[rest, None] + rise
        hits = terrain.cast_down(
            ground, points.reshape(-1, 3), np.repeat(times[rest], p), settings.trace_up + SEARCH, settings.trace_down + SEARCH, 8
        ).met()
        ok = terrain.standable(hits, steepest).reshape(n - first, p, -1)
        plain = _plain(hits, ok)
        base = rise
        stop = n
        for i in range(first, n):
            row = plain.at(i - first, floor[i] + rise, settings)
            if row >= 0:
                height[i], normal[i], index[i] = plain.height[row], plain.normal[row], plain.object[row]
                rise, last = plain.ball[row] - float(floor[i]), (ball[i], plain.up[row])
                if abs(rise - base) > SEARCH - 0.5:
                    stop = i + 1
                    break
                continue
            # the level of the contact before, its plane gone on with, a high step up or down, the take's own: the first that finds most
            found = _one(hits, ok[i - first], (i - first) * p, floor[i], rise, settings)
            gone_on = rise if last is None else rise + _on_plane(last, ball[i])
            for wanted in (gone_on, rise + HIGH_STEP, rise - HIGH_STEP, 0.0):
                if not np.all(found[2] >= 0):
                    other = _one(hits, ok[i - first], (i - first) * p, floor[i], wanted, settings)
                    found = other if np.count_nonzero(other[2] >= 0) > np.count_nonzero(found[2] >= 0) else found
            if not np.any(found[2] >= 0):
                continue
            height[i], normal[i], index[i] = found
            carried = np.nanmax(height[i]) if np.isnan(height[i, -1]) else height[i, -1]
            rise = float(carried - floor[i])
            last = (ball[i], unit(normal[i, index[i] >= 0].mean(axis=0)))
            if abs(rise - base) > SEARCH - 0.5:
                stop = i + 1
                break
        first = stop
    return Under(height, normal, index)


@dataclass(frozen=True, eq=False)
class _Plain:
    """Soles under which each ray finds one surface to stand on and no other: nothing is to be chosen there."""

    row: list[int]
    height: Array
    normal: Array
    object: Indices
    low: list[float]
    high: list[float]
    ball: list[float]
    up: Array

    def at(self, sole: int, level: float, settings: FeetSettings) -> int:
        """The row of a sole that is plain and within the trace of a level; -1: it is not."""
        row = self.row[sole]
        within = row >= 0 and self.high[row] - level <= settings.trace_up and level - self.low[row] <= settings.trace_down
        return row if within else -1


def _plain(hits: Hits, ok: Flags) -> _Plain:
    """Those of the soles whose hits ``ok (n, P, K)`` can be stood on; ``row`` says where each is found, -1: it is not plain."""
    n, p, _ = ok.shape
    plain: Indices = np.flatnonzero((np.count_nonzero(ok, axis=2) == 1).all(axis=1))
    row = np.full(n, -1)
    row[plain] = np.arange(len(plain))
    ray = np.repeat(plain * p, p) + np.tile(np.arange(p, dtype=np.int64), len(plain))
    place: Indices = ok[plain].argmax(axis=2).ravel()
    z = hits.point[ray, place, 2].reshape(-1, p)
    normal = hits.normal[ray, place].reshape(-1, p, 3)
    normal = np.where(normal[..., 2:] < 0.0, -normal, normal)
    low, high = z.min(axis=1).tolist(), z.max(axis=1).tolist()
    number = hits.object[ray, place].reshape(-1, p)
    return _Plain(row.tolist(), z, normal, number, low, high, z[:, -1].tolist(), unit(normal.mean(axis=1)))


def _on_plane(last: tuple[Array, Array], ball: Array) -> float:
    """How much higher the plane of one contact is at the next one's place."""
    place, normal = last
    return float(-(normal[:2] @ (ball - place)[:2]) / max(float(normal[2]), 0.2))


def _one(hits: Hits, ok: Flags, row: int, floor: float, rise: float, settings: FeetSettings) -> tuple[Array, Array, Indices]:
    """Heights, normals and objects of one sole's rays, rows ``row`` on; NaN, up and -1 where they find nothing."""
    p = len(ok)
    z = hits.point[row : row + p, :, 2]
    away = z - (floor + rise)
    use = ok & (away <= settings.trace_up) & (away >= -settings.trace_down)
    best = np.where(use, np.abs(away), np.inf).argmin(axis=1)
    line = np.arange(p)
    found = use[line, best]
    normal = hits.normal[row : row + p][line, best]
    normal = np.where(normal[:, 2:] < 0.0, -normal, normal)
    return (
        np.where(found, z[line, best], np.nan),
        np.where(found[:, None], normal, [0.0, 0.0, 1.0]),
        np.where(found, hits.object[row : row + p][line, best], -1),
    )
