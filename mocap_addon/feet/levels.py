# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of several levels carries each sole, how it is inclined, and where to put feet whose toes or heels stick in something."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .body import Feet
from .ground import Ground
from .legs import cross, dot, unit
from .settings import FeetSettings
from .under_soles import Under, follow

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

SAMPLES = 9
"""Rays along a sole from heel to tip; one more is cast behind it, one in front of it, and one at the ball."""
ROOM = 0.03
"""Metres behind heel and in front of toes that are to be free of risers: closer to one a foot would have to come straight down."""
BACK = 0.07
"""Metres that toes are pulled back at most for the sake of that; out of a riser in any case."""
SOLE = slice(1, 1 + SAMPLES)
"""Those of the rays that are under the sole itself; its ends are the second one and the last but two."""
WHOLE = slice(0, SAMPLES + 2)
"""With those behind and in front."""
SUPPORT = 0.3
"""Part of the sole that has to lie on a level for the foot to stand on it."""
ENOUGH = 0.45
"""Part of the sole that a foot is pushed to have under it, as far as the setting ``toe_in_wall`` allows."""
EVEN = 0.02
"""Metres: hits that close to one plane are one level."""
HANGING = 0.25
"""Metres: a contact that much below the contacts before and after it has stepped beside an edge."""


@dataclass(frozen=True, eq=False)
class Levels:
    """Where n soles lie.

    Parameters
    ----------
    place : (n, 3) array
        The ball on the surface.
    normal : (n, 3) array
    object : (n,) int array
        -1: nothing.
    rise : (n,) array
        Metres over the source's own ground.
    heel : (n,) bool array
        Whether the heel is over the surface too; else it hangs beyond an edge.
    """

    place: Array
    normal: Array
    object: Indices
    rise: Array
    heel: Flags


def find_levels(
    ground: Ground, feet: Feet, side: Indices, ball: Array, ahead: Array, floor: Array, times: Array, still: Flags, settings: FeetSettings
) -> Levels:
    """Lay every contact's sole on what is under it; toes and heels come out of risers and walls.

    What is ``still`` (n,), lies on its level already and sticks in nothing stays where it is.
    """
    n = len(side)
    heel = -np.array([leg.sole.heel_offset + leg.sole.ball_offset for leg in feet.legs])[side]  # type: ignore[operator]
    tip = np.array([leg.sole.toe_length for leg in feet.legs])[side]  # type: ignore[arg-type]
    along = heel[:, None] + (tip - heel)[:, None] * np.linspace(0.0, 1.0, SAMPLES)
    offsets = np.column_stack([heel - ROOM, along, tip + ROOM, np.zeros(n)])
    steepest = float(np.cos(np.radians(settings.slope_limit)))
    at = ball.copy()
    rise = np.zeros(n)
    under = follow(ground, at, ahead, offsets, floor, times, steepest, settings)
    shift = _out_of_risers(under, offsets, ahead, tip, heel, settings)
    shift = np.where(still & _lies(under, offsets, ahead, floor), 0.0, shift)
    shift = _walls(ground, under, at, ahead, shift, heel, tip, times, settings)
    moved = np.abs(shift) > 1e-9
    if np.any(moved):
        at = at + ahead * shift[:, None]
        under = follow(ground, at, ahead, offsets, floor, times, steepest, settings)
    plane = _plane(under, offsets, ahead)
    hanging = _hanging(plane.height - floor, side, plane.found)
    found = plane.found & ~hanging
    rise = np.where(found, plane.height - floor, 0.0)
    rise = _filled_in(rise, found)
    place = at.copy()
    place[:, 2] = floor + rise
    normal = np.where(found[:, None], plane.normal, [0.0, 0.0, 1.0])
    return Levels(place, normal, np.where(found, plane.object, -1), rise, plane.heel | ~found)


def _carrying(under: Under, offsets: Array, ahead: Array, ball: bool = True) -> tuple[Flags, Indices]:
    """(n, P): which samples lie on the level that carries the sole, and which sample stands for it: the highest level with enough of it.

    With ``ball`` only levels under the ball count, where there is one: it carries the foot when the heel rises.
    """
    z = under.height
    slope = -dot(under.normal, ahead[:, None]) / np.maximum(under.normal[..., 2], 0.2)
    predicted = z[:, :, None] + slope[:, :, None] * (offsets[:, None, :] - offsets[:, :, None])
    with np.errstate(invalid="ignore"):
        on = np.abs(z[:, None, :] - predicted) < EVEN  # (n, j, k): sample k lies on the plane of j
    share = on[..., SOLE].mean(axis=2)
    share[:, [0, WHOLE.stop - 1]] = -1.0  # what lies beyond the sole carries nothing
    at_ball = np.nan_to_num(predicted[:, :, -1], nan=-np.inf)
    enough = np.where(share >= SUPPORT, at_ball, -np.inf)
    with_ball = np.where(on[:, :, -1], enough, -np.inf)
    if ball:
        enough = np.where(np.any(np.isfinite(with_ball), axis=1, keepdims=True), with_ball, enough)
    some = np.any(np.isfinite(enough), axis=1)
    best: Indices = np.asarray(np.argmax(np.where(some[:, None], enough, share), axis=1), dtype=np.int64)
    return on[np.arange(len(z)), best], best


def _out_of_risers(under: Under, offsets: Array, ahead: Array, tip: Array, heel: Array, settings: FeetSettings) -> Array:
    """How far each place is pushed along its foot so that no higher level is under toes or heel; metres, limited."""
    on, _ = _carrying(under, offsets, ahead)
    z, sole = under.height[:, WHOLE], on[:, SOLE]
    on, x = on[:, WHOLE], offsets[:, WHOLE]
    level = np.where(on, z, np.nan)
    with np.errstate(invalid="ignore"):
        top = np.nanmax(np.where(np.any(on, axis=1, keepdims=True), level, -np.inf), axis=1)
        higher = z > top[:, None] + 0.04
    foremost, rearmost = np.where(on, x, -np.inf).max(axis=1), np.where(on, x, np.inf).min(axis=1)
    in_front = (higher & (x > foremost[:, None])).any(axis=1)
    behind = (higher & (x < rearmost[:, None])).any(axis=1)
    out = tip - foremost + 0.005
    back = np.where(in_front & ~behind, np.maximum(out, np.minimum(out + ROOM, BACK)), 0.0)
    forth = np.where(behind & ~in_front, rearmost - heel + 0.005 + ROOM, 0.0)
    share = sole.mean(axis=1)
    inward = np.where((share > 0.0) & (share < ENOUGH), (ENOUGH - share) * (tip - heel), 0.0)
    forth += np.where(~in_front & ~behind & ~sole[:, 0] & sole[:, -1], inward, 0.0)
    back += np.where(~in_front & ~behind & sole[:, 0] & ~sole[:, -1], inward, 0.0)
    limit = settings.toe_in_wall
    other, _ = _carrying(under, offsets, ahead, ball=False)  # what carries the heel alone: the foot may as well go back onto it
    onto = 0.02 - np.where(other[:, SOLE], offsets[:, SOLE], -np.inf).max(axis=1)
    rather = ~other[:, -1] & np.any(other, axis=1) & (forth > onto) & (onto > 0.0)
    forth, back = np.where(rather, 0.0, forth), np.where(rather, onto, back)
    return np.minimum(np.nan_to_num(forth, posinf=0.0), limit) - np.minimum(np.nan_to_num(back, posinf=0.0), limit)


def _lies(under: Under, offsets: Array, ahead: Array, floor: Array) -> Flags:
    """(n,): whether the source's sole lies on its level as it is, with no higher one under any of it."""
    plane = _plane(under, offsets, ahead)
    with np.errstate(invalid="ignore"):
        slope = -dot(plane.normal, ahead) / np.maximum(plane.normal[:, 2], 0.2)
        above = under.height - (plane.height[:, None] + slope[:, None] * offsets)
        return plane.found & (np.abs(plane.height - floor) < 0.001) & ~np.any(above[:, SOLE] > 0.04, axis=1)


def _walls(
    ground: Ground, under: Under, ball: Array, ahead: Array, shift: Array, heel: Array, tip: Array, times: Array, settings: FeetSettings
) -> Array:
    """Also out of walls that no ray from above can see: one ray along each sole, a little above it."""
    n = len(ball)
    level = under.height[:, -1]
    use = np.flatnonzero(~np.isnan(level) & (shift == 0.0))
    if len(use) == 0:
        return shift
    along = ahead[use].copy()
    normal = under.normal[use, -1]
    along[:, 2] = -dot(along, normal) / np.maximum(normal[:, 2], 0.2)
    along = unit(along)
    origin = ball[use] + ahead[use] * heel[use, None]
    origin[:, 2] = level[use] + along[:, 2] * heel[use] + 0.05
    hits = ground.cast(origin, along, tip[use] - heel[use], times[use], 1)
    steep = (hits.object[:, 0] >= 0) & (np.abs(hits.normal[:, 0, 2]) < 0.5)
    into = np.where(steep, tip[use] - heel[use] - hits.distance[:, 0] + 0.005, 0.0)
    out = np.zeros(n)
    out[use] = -np.minimum(np.where(into > 0.0, into, 0.0), settings.toe_in_wall)
    return shift + out


@dataclass(frozen=True, eq=False)
class _Plane:
    height: Array
    normal: Array
    object: Indices
    found: Flags
    heel: Flags


def _plane(under: Under, offsets: Array, ahead: Array) -> _Plane:
    """The plane each sole lies in: through the ground at heel and ball where both are carried, level sideways with the ground's normals."""
    on, best = _carrying(under, offsets, ahead)
    on[:, [0, WHOLE.stop - 1]] = False
    found = np.any(on, axis=1)
    row = np.arange(len(best))
    z, x = under.height, offsets
    total = np.maximum(on.sum(axis=1), 1)[:, None]
    mean = unit(np.where(on[..., None], under.normal, 0.0).sum(axis=1) / total + 1e-12)
    sideways = cross(np.array([0.0, 0.0, 1.0]), ahead)
    lateral = -dot(mean, sideways) / np.maximum(mean[:, 2], 0.2)
    own = under.normal[row, best]
    slope = -dot(own, ahead) / np.maximum(own[:, 2], 0.2)
    both = on[:, 1] & on[:, -1]
    with np.errstate(invalid="ignore"):
        chord = (z[:, -1] - z[:, 1]) / np.minimum(x[:, 1], -1e-6) * -1.0
    slope = np.where(both, chord, slope)
    at_ball = np.where(on[:, -1], z[:, -1], z[row, best] - slope * x[row, best])
    normal = unit(np.array([0.0, 0.0, 1.0]) - ahead * slope[:, None] - sideways * lateral[:, None])
    return _Plane(at_ball, normal, under.object[row, best], found, on[:, 1] | on[:, 2])


def _hanging(rise: Array, side: Indices, found: Flags) -> Flags:
    """Contacts beside an edge: far lower than the other foot's contacts around them."""
    n = len(rise)
    out = ~found
    with np.errstate(invalid="ignore"):
        for i in range(n):
            around = [j for j in (_other(side, found, i, -1), _other(side, found, i, 1)) if j is not None]
            if found[i] and len(around) == 2 and rise[i] < min(rise[j] for j in around) - HANGING:
                out[i] = True
            elif found[i] and len(around) == 1 and n > 2:
                j = around[0]
                again = _same(side, found, i, 1 if j > i else -1)
                if again is not None and max(rise[i], rise[again]) < rise[j] - HANGING:
                    out[i] = True
    return out


def _other(side: Indices, found: Flags, i: int, step: int) -> int | None:
    j = i + step
    while 0 <= j < len(side):
        if side[j] != side[i] and found[j]:
            return j
        j += step
    return None


def _same(side: Indices, found: Flags, i: int, step: int) -> int | None:
    j = i + step
    while 0 <= j < len(side):
        if side[j] == side[i] and found[j]:
            return j
        j += step
    return None


def _filled_in(rise: Array, found: Flags) -> Array:
    """Rises of contacts that stand on nothing: between those around them."""
    if not np.any(found):
        return np.zeros_like(rise)
    index = np.arange(len(rise))
    return np.interp(index, index[found], rise[found])
