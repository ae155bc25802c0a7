# SPDX-License-Identifier: GPL-3.0-or-later
"""Where each contact stands: one place and one rotation of the foot, known from the whole contact.

A contact's place is the mean of where its ball is while the foot is flat (the middle of what slides), in the space of what it stands on.
The sole is laid onto the surface under it: ten rays along it say which of several levels carries it, how that is inclined, and whether
toes or heel would stick in a riser; then the place is pulled back.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from . import contacts, signals, terrain
from .body import Feet
from .contacts import Contacts
from .ground import Ground, Hits
from .legs import cross, dot, unit
from .result import BALL, HEEL
from .settings import FeetSettings
from .spaces import Spaces, spaces_of

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

SAMPLES = 9
"""Rays along a sole from heel to tip; one more is cast at the ball."""
SEARCH = 3.0
"""Metres above and below that are asked for at once; who climbs farther is asked for again."""
SUPPORT = 0.3
"""Part of the sole that has to lie on a level for the foot to stand on it."""
ENOUGH = 0.45
"""Part of the sole that a foot is pushed to have under it, as far as the setting ``toe_in_wall`` allows."""
SLOW_TURN = 0.1
"""rad/s: a foot that turns faster than this is about to roll."""
EVEN = 0.02
"""Metres: hits that close to one plane are one level."""
HIGH_STEP = 0.25
"""Metres: how much farther than the trace a next step is looked for, where the trace finds too little."""
HANGING = 0.25
"""Metres: a contact that much below the contacts before and after it has stepped beside an edge."""


@dataclass(frozen=True, eq=False)
class Prints:
    """n contacts in order of time, both feet.

    Parameters
    ----------
    side, start, end : (n,) int arrays
        Left 0, right 1; first frame and the one after the last.
    middle : (n,) int array
        The frame whose world position and rotation are given.
    source : (n, 3) array
        Mean place of the source's ball at ``middle``, world.
    tilt : (n, 4) array
        From the source's sole to the surface.
    place : (n, 3) array
        The sole's ball on the surface at ``middle``, world.
    rotation : (n, 4) array
        The foot joint's at ``middle``, world.
    normal : (n, 3) array
    object : (n,) int array
        -1: on nothing.
    space : (n,) int array
        The object that carries it; -1: the world.
    rise : (n,) array
        Metres that the contact lies higher than the source's.
    """

    side: Indices
    start: Indices
    end: Indices
    middle: Indices
    source: Array
    tilt: Array
    place: Array
    rotation: Array
    normal: Array
    object: Indices
    space: Indices
    rise: Array

    def of(self, side: int) -> Prints:
        """Those of one foot."""
        mine = self.side == side
        return Prints(**{f.name: getattr(self, f.name)[mine] for f in fields(self)})


@dataclass(frozen=True, eq=False)
class _Means:
    """Means over each contact, at its middle frame in the world."""

    ball: Array
    rotation: Array
    flat: Flags


def find_prints(
    ground: Ground, feet: Feet, soles: Array, foot: Array, times: Array, found: Contacts, under: Indices | None, settings: FeetSettings
) -> Prints:
    """The footprints of all contacts.

    Parameters
    ----------
    ground : Ground
    feet : Feet
    soles : (F, 2, 3, 3) array
        Of the source.
    foot : (F, 2, 4) array
        The source's foot rotations.
    times : (F,) array
    found : Contacts
    under : (F, 2) int array or None
        Object under each foot, where anything of the ground moves; None: nothing does.
    settings : FeetSettings
    """
    side, start, end = _intervals(feet, soles, foot, times, found, under, ground, settings)
    middle = (start + end - 1) // 2
    space = np.full(len(side), -1, dtype=np.int64) if under is None else under[middle, side]
    still = _stillness(soles, times, settings)
    means = _means(feet, soles, foot, times, found, side, start, end, middle, space, ground, still)
    up_local, ahead_local = (np.stack([getattr(leg, name) for leg in feet.legs]) for name in ("up", "forward"))
    up = quat.rotate(means.rotation, up_local[side])
    up = np.where(means.flat[:, None], up, [0.0, 0.0, 1.0])
    ahead = quat.rotate(means.rotation, ahead_local[side])
    ahead = unit(ahead * [1.0, 1.0, 0.0] + 1e-12)
    floor = means.ball[:, 2]
    level = _levels(ground, feet, side, means.ball, ahead, floor, times[middle], settings)
    place, normal, rise = level.place, level.normal, level.rise
    tilt = _limited(quat.between(up, normal), settings)
    return Prints(
        side, start, end, middle, means.ball, tilt, place, quat.mul(tilt, means.rotation), normal, level.object, space, rise
    )  # fmt: skip


def _limited(tilt: Array, settings: FeetSettings) -> Array:
    v = quat.log(tilt)
    angle = np.sqrt(dot(v, v))
    return quat.exp(v * np.minimum(1.0, np.radians(settings.ankle_pitch) / np.maximum(angle, 1e-12))[:, None])


# contacts ----------------------------------------------------------------------------------------------------------------------


def _intervals(
    feet: Feet, soles: Array, foot: Array, times: Array, found: Contacts, under: Indices | None, ground: Ground, settings: FeetSettings
) -> tuple[Indices, Indices, Indices]:
    """Contacts, cut where a foot turns or travels too far for one place; a cut leaves the foot free for a moment."""
    sides: list[int] = []
    starts: list[int] = []
    ends: list[int] = []
    dt = signals.spacing(times)
    free = max(signals.half_width(0.2, dt), 2)
    for side, leg in enumerate(feet.legs):
        start, end = signals.runs(found.held[:, side])
        if len(start) == 0:
            continue
        spaces = spaces_of(ground, under[:, side], times, True) if under is not None else Spaces(None, None)
        point = spaces.point_in(soles[:, side, BALL])
        ahead = spaces.direction_in(quat.rotate(foot[:, side], leg.forward))
        heading = np.unwrap(np.arctan2(ahead[:, 1], ahead[:, 0]))
        spread = 2.0 * np.radians(settings.replant_yaw) * 0.75
        lows = np.minimum.reduceat(np.column_stack([heading, point[:, :2]]), np.column_stack([start, end - 1]).ravel(), axis=0)[::2]
        highs = np.maximum.reduceat(np.column_stack([heading, point[:, :2]]), np.column_stack([start, end - 1]).ravel(), axis=0)[::2]
        span = highs - lows
        parts = np.maximum(
            np.ceil(span[:, 0] / max(spread, 1e-6)), np.ceil(np.hypot(span[:, 1], span[:, 2]) / (2.0 * settings.replant_distance))
        )
        for s, e, n in zip(start.tolist(), end.tolist(), parts.astype(int).tolist(), strict=True):
            for a, b in _cut(s, e, n, heading, point, free):
                sides.append(side)
                starts.append(a)
                ends.append(b)
    order = np.lexsort((np.array(sides, dtype=np.int64), np.array(starts, dtype=np.int64)))
    return tuple(np.array(x, dtype=np.int64)[order] for x in (sides, starts, ends))  # type: ignore[return-value]


def _cut(start: int, end: int, parts: int, heading: Array, point: Array, free: int) -> list[tuple[int, int]]:
    """One contact in ``parts`` of equal turning and travel, with ``free`` frames between them; parts too short for that are dropped."""
    if parts <= 1 or end - start < 2 * free:
        return [(start, end)]
    way = np.abs(np.diff(heading[start:end])) + np.sqrt((np.diff(point[start:end, :2], axis=0) ** 2).sum(axis=1)) / 0.2
    done = np.concatenate([[0.0], np.cumsum(way)])
    cuts = np.searchsorted(done, done[-1] * np.arange(1, parts) / parts) + start
    edges = [start, *cuts.tolist(), end]
    out: list[tuple[int, int]] = []
    for i in range(parts):
        a = edges[i] + (free // 2 if i else 0)
        b = edges[i + 1] - (free - free // 2 if i < parts - 1 else 0)
        if b - a >= 2:
            out.append((a, b))
    return out or [(start, end)]


def _stillness(soles: Array, times: Array, settings: FeetSettings) -> Array:
    """(F, 2): weights of frames in means; much larger where heel and ball stand still against each other: the foot does not roll."""
    arm = soles[:, :, HEEL] - soles[:, :, BALL]
    turning = contacts.speeds(arm, times, settings) / np.maximum(np.sqrt(dot(arm, arm)), 1e-3)
    return 1.0 / (1.0 + (turning / SLOW_TURN) ** 2) ** 2


def _means(
    feet: Feet, soles: Array, foot: Array, times: Array, found: Contacts, side: Indices, start: Indices, end: Indices,
    middle: Indices, space: Indices, ground: Ground, stillness: Array,
) -> _Means:  # fmt: skip
    """Where each contact's ball is and how its foot is turned, over its flat frames (else over those with the ball down, else over all)."""
    n = len(side)
    ball, rotation, flat = np.zeros((n, 3)), quat.identity(n), np.zeros(n, dtype=bool)
    if n == 0:
        return _Means(ball, rotation, flat)
    owner = np.repeat(np.arange(n), end - start)
    frame = np.concatenate([np.arange(a, b) for a, b in zip(start.tolist(), end.tolist(), strict=True)])
    s = side[owner]
    is_flat, is_ball = found.flat[frame, s], found.parts[frame, s, BALL]
    flat = np.bincount(owner, is_flat, n) > 0
    balls = np.bincount(owner, is_ball, n) > 0
    weight = np.where(flat[owner], is_flat, np.where(balls[owner], is_ball, True)) * stillness[frame, s]
    moving = bool(np.any(space >= 0))
    there = spaces_of(ground, space[owner], times[frame], moving)
    at_middle = spaces_of(ground, space, times[middle], moving)
    heel_only = (~balls & found.parts[middle, side, HEEL])[owner]
    point = np.where(heel_only[:, None], soles[frame, s, HEEL], soles[frame, s, BALL])
    point = there.point_in(point)
    turn = there.turn_in(foot[frame, s])
    first = turn[np.searchsorted(owner, np.arange(n))][owner]
    turn = turn * np.where(dot(turn, first) < 0.0, -1.0, 1.0)[:, None]
    total = np.bincount(owner, weight, n)
    for c in range(3):
        ball[:, c] = np.bincount(owner, point[:, c] * weight, n) / total
    for c in range(4):
        rotation[:, c] = np.bincount(owner, turn[:, c] * weight, n)
    rotation = at_middle.turn_out(quat.normalize(rotation))
    ball = at_middle.point_out(ball)
    across = np.stack([leg.ball - leg.heel for leg in feet.legs])[side]
    ball = ball + np.where((~balls)[:, None], quat.rotate(rotation, across) * [1.0, 1.0, 0.0], 0.0)
    return _Means(ball, rotation, flat)


# levels ------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Level:
    place: Array
    normal: Array
    object: Indices
    rise: Array


def _levels(
    ground: Ground, feet: Feet, side: Indices, ball: Array, ahead: Array, floor: Array, times: Array, settings: FeetSettings
) -> _Level:
    """Lay every contact's sole on what is under it; toes and heels come out of risers and walls."""
    n = len(side)
    heel = -np.array([leg.sole.heel_offset + leg.sole.ball_offset for leg in feet.legs])[side]  # type: ignore[operator]
    tip = np.array([leg.sole.toe_length for leg in feet.legs])[side]  # type: ignore[arg-type]
    offsets = np.column_stack([heel[:, None] + (tip - heel)[:, None] * np.linspace(0.0, 1.0, SAMPLES), np.zeros(n)])
    steepest = float(np.cos(np.radians(settings.slope_limit)))
    at = ball.copy()
    rise = np.zeros(n)
    under = _follow(ground, at, ahead, offsets, floor, times, steepest, settings)
    shift = _out_of_risers(under, offsets, ahead, tip, heel, settings)
    shift = _walls(ground, under, at, ahead, shift, heel, tip, times, settings)
    moved = np.abs(shift) > 1e-9
    if np.any(moved):
        at = at + ahead * shift[:, None]
        under = _follow(ground, at, ahead, offsets, floor, times, steepest, settings)
    plane = _plane(under, offsets, ahead)
    hanging = _hanging(plane.height - floor, side, plane.found)
    found = plane.found & ~hanging
    rise = np.where(found, plane.height - floor, 0.0)
    rise = _filled_in(rise, found)
    place = at.copy()
    place[:, 2] = floor + rise
    normal = np.where(found[:, None], plane.normal, [0.0, 0.0, 1.0])
    return _Level(place, normal, np.where(found, plane.object, -1), rise)


@dataclass(frozen=True, eq=False)
class _Under:
    """Heights (n, P), normals (n, P, 3), objects (n, P) under the soles; NaN where there is nothing."""

    height: Array
    normal: Array
    object: Indices


def _follow(
    ground: Ground, ball: Array, ahead: Array, offsets: Array, floor: Array, times: Array, steepest: float, settings: FeetSettings
) -> _Under:
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
        )
        ok = terrain.standable(hits, steepest).reshape(n - first, p, -1)
        base = rise
        stop = n
        for i in range(first, n):
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
    return _Under(height, normal, index)


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


def _carrying(under: _Under, offsets: Array, ahead: Array, ball: bool = True) -> tuple[Flags, Indices]:
    """(n, P): which samples lie on the level that carries the sole, and which sample stands for it: the highest level with enough of it.

    With ``ball`` only levels under the ball count, where there is one: it carries the foot when the heel rises.
    """
    z = under.height
    slope = -dot(under.normal, ahead[:, None]) / np.maximum(under.normal[..., 2], 0.2)
    predicted = z[:, :, None] + slope[:, :, None] * (offsets[:, None, :] - offsets[:, :, None])
    with np.errstate(invalid="ignore"):
        on = np.abs(z[:, None, :] - predicted) < EVEN  # (n, j, k): sample k lies on the plane of j
    share = on[..., :SAMPLES].mean(axis=2)
    at_ball = np.nan_to_num(predicted[:, :, -1], nan=-np.inf)
    enough = np.where(share >= SUPPORT, at_ball, -np.inf)
    with_ball = np.where(on[:, :, -1], enough, -np.inf)
    if ball:
        enough = np.where(np.isfinite(with_ball).any(axis=1)[:, None], with_ball, enough)
    best = np.where(np.isfinite(enough).any(axis=1), enough.argmax(axis=1), np.nan_to_num(share).argmax(axis=1))
    return on[np.arange(len(z)), best], best


def _out_of_risers(under: _Under, offsets: Array, ahead: Array, tip: Array, heel: Array, settings: FeetSettings) -> Array:
    """How far each place is pushed along its foot so that no higher level is under toes or heel; metres, limited."""
    on, _ = _carrying(under, offsets, ahead)
    z = under.height[:, :SAMPLES]
    on, x = on[:, :SAMPLES], offsets[:, :SAMPLES]
    level = np.where(on, z, np.nan)
    with np.errstate(invalid="ignore"):
        top = np.nanmax(np.where(on.any(axis=1)[:, None], level, -np.inf), axis=1)
        higher = z > top[:, None] + 0.04
    foremost = np.where(on, x, -np.inf).max(axis=1)
    rearmost = np.where(on, x, np.inf).min(axis=1)
    in_front = (higher & (x > foremost[:, None])).any(axis=1)
    behind = (higher & (x < rearmost[:, None])).any(axis=1)
    back = np.where(in_front & ~behind, tip - foremost + 0.005, 0.0)
    forth = np.where(behind & ~in_front, rearmost - heel + 0.005, 0.0)
    share = on.mean(axis=1)
    inward = np.where((share > 0.0) & (share < ENOUGH), (ENOUGH - share) * (tip - heel), 0.0)
    forth += np.where(~in_front & ~behind & ~on[:, 0] & on[:, -1], inward, 0.0)
    back += np.where(~in_front & ~behind & on[:, 0] & ~on[:, -1], inward, 0.0)
    limit = settings.toe_in_wall
    other, _ = _carrying(under, offsets, ahead, ball=False)  # what carries the heel alone: the foot may as well go back onto it
    onto = 0.02 - np.where(other[:, :SAMPLES], x, -np.inf).max(axis=1)
    rather = ~other[:, -1] & other.any(axis=1) & (forth > onto) & (onto > 0.0)
    forth, back = np.where(rather, 0.0, forth), np.where(rather, onto, back)
    return np.minimum(np.nan_to_num(forth, posinf=0.0), limit) - np.minimum(np.nan_to_num(back, posinf=0.0), limit)


def _walls(
    ground: Ground, under: _Under, ball: Array, ahead: Array, shift: Array, heel: Array, tip: Array, times: Array, settings: FeetSettings
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


def _plane(under: _Under, offsets: Array, ahead: Array) -> _Plane:
    """The plane each sole lies in: through the ground at heel and ball where both are carried, level sideways with the ground's normals."""
    on, best = _carrying(under, offsets, ahead)
    found = on.any(axis=1)
    row = np.arange(len(best))
    z, x = under.height, offsets
    total = np.maximum(on.sum(axis=1), 1)[:, None]
    mean = unit(np.where(on[..., None], under.normal, 0.0).sum(axis=1) / total + 1e-12)
    sideways = cross(np.array([0.0, 0.0, 1.0]), ahead)
    lateral = -dot(mean, sideways) / np.maximum(mean[:, 2], 0.2)
    own = under.normal[row, best]
    slope = -dot(own, ahead) / np.maximum(own[:, 2], 0.2)
    both = on[:, 0] & on[:, -1]
    with np.errstate(invalid="ignore"):
        chord = (z[:, -1] - z[:, 0]) / np.minimum(x[:, 0], -1e-6) * -1.0
    slope = np.where(both, chord, slope)
    at_ball = np.where(on[:, -1], z[:, -1], z[row, best] - slope * x[row, best])
    normal = unit(np.array([0.0, 0.0, 1.0]) - ahead * slope[:, None] - sideways * lateral[:, None])
    return _Plane(at_ball, normal, under.object[row, best], found)


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
