# SPDX-License-Identifier: GPL-3.0-or-later
"""Where each contact stands: one place and one rotation of the foot, known from the whole contact.

A contact's place is the mean of where its ball is while the foot is flat (the middle of what slides), in the space of what it stands on.
The sole is laid onto the surface under it: twelve rays along it say which of several levels carries it, how that is inclined, and whether
toes or heel would stick in a riser; then the place is pulled back.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from . import contacts, signals
from .body import Feet
from .contacts import Contacts
from .ground import Ground
from .legs import cross, dot, unit
from .levels import find_levels
from .result import BALL, HEEL
from .settings import FeetSettings
from .spaces import Spaces, spaces_of

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

FLAT = 0.003
"""Metres: a foot whose heel or ball is higher than that over its lowest is about to roll."""
ROLLING = 0.002
"""Metres of height over which the point that tells of the place goes over from heel to ball."""
STANDS = 0.0003
"""Metres: a foot that is no farther from its place most of the time stands there."""
REPEATS = 4
"""How often a contact's mean is worked out anew without what lies far from it."""
WHOLE = 0.3
"""Seconds: from a shorter contact that the take cuts off nobody can tell how the foot would lie."""
SLOW_TURN = 0.1
"""rad/s: a foot that turns faster than this is about to roll."""


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
    heel : (n,) bool array
        Whether the heel has ground under it.
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
    heel: Flags

    def of(self, side: int) -> Prints:
        """Those of one foot."""
        mine = self.side == side
        return Prints(**{f.name: getattr(self, f.name)[mine] for f in fields(self)})


@dataclass(frozen=True, eq=False)
class _Means:
    """Means over each contact, at its middle frame in the world; and how far its support is from its place in the mean, metres."""

    ball: Array
    rotation: Array
    flat: Flags
    away: Array


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
    softness = max(ROLLING, 2.0 * contacts.shake(soles[..., 2], times, settings))
    means = _means(feet, soles, foot, times, found, side, start, end, middle, space, ground, still, softness)
    up_local, ahead_local = (np.stack([getattr(leg, name) for leg in feet.legs]) for name in ("up", "forward"))
    ahead = quat.rotate(means.rotation, ahead_local[side])
    ahead = unit(ahead * [1.0, 1.0, 0.0] + 1e-12)
    up = _ups(quat.rotate(means.rotation, up_local[side]), ahead, side, means.flat, found.floor is not None)
    floor = means.ball[:, 2]
    level = find_levels(ground, feet, side, means.ball, ahead, floor, times[middle], means.away < STANDS, settings)
    place, normal, rise = level.place, level.normal, level.rise
    tilt = _limited(quat.between(up, normal), settings)
    return Prints(
        side, start, end, middle, means.ball, tilt, place, quat.mul(tilt, means.rotation), normal, level.object, space, rise, level.heel
    )  # fmt: skip


def _ups(up: Array, ahead: Array, side: Indices, flat: Flags, even: bool) -> Array:
    """Which way the soles' upper sides point (n, 3): where the foot never lies flat, as where it does (median, by what is ahead), if the
    source's floor is even."""
    across = cross(np.array([0.0, 0.0, 1.0]), ahead)
    out = np.where(flat[:, None], up, [0.0, 0.0, 1.0])
    for foot in range(2):
        mine = side == foot
        known, asked = mine & flat, mine & ~flat
        if even and np.any(known) and np.any(asked):
            slants = [float(np.median(dot(up, axis)[known])) for axis in (ahead, across)]
            out[asked] = unit(
                ahead[asked] * slants[0] + across[asked] * slants[1] + [0.0, 0.0, np.sqrt(max(1.0 - slants[0] ** 2 - slants[1] ** 2, 0.0))]
            )
    return out


def _limited(tilt: Array, settings: FeetSettings) -> Array:
    v = quat.log(tilt)
    angle = np.sqrt(dot(v, v))
    return quat.exp(v * np.minimum(1.0, np.radians(settings.ankle_pitch) / np.maximum(angle, 1e-12))[:, None])


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
    total = float(done[-1])
    edges = [start, *(int(np.searchsorted(done, total * k / parts)) + start for k in range(1, parts)), end]
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
    middle: Indices, space: Indices, ground: Ground, stillness: Array, softness: float,
) -> _Means:  # fmt: skip
    """Where each contact's ball is and how its foot is turned, over its flat frames (else over those with the ball down, else over all).

    Where both heel and ball are lowest the foot is flat. While it rolls on one of them, that one says where the ball of the flat foot is.
    """
    n = len(side)
    if n == 0:
        return _Means(np.zeros((n, 3)), quat.identity(n), np.zeros(n, dtype=bool), np.zeros(n))
    owner = np.repeat(np.arange(n), end - start)
    first = np.searchsorted(owner, np.arange(n))
    frame = np.concatenate([np.arange(a, b, dtype=np.int64) for a, b in zip(start.tolist(), end.tolist(), strict=True)])
    s = side[owner]
    is_flat, is_ball = found.flat[frame, s], found.parts[frame, s, BALL]
    flat = np.bincount(owner, is_flat, n) > 0
    balls = np.bincount(owner, is_ball, n) > 0
    weight = np.where(flat[owner], is_flat, np.where(balls[owner], is_ball, True)) * stillness[frame, s]
    moving = bool(np.any(space >= 0))
    there = spaces_of(ground, space[owner], times[frame], moving)
    at_middle = spaces_of(ground, space, times[middle], moving)
    heels, points = there.point_in(soles[frame, s, HEEL]), there.point_in(soles[frame, s, BALL])
    low_heel, low_ball = (
        _low(p[:, 2], stillness[frame, s], found.parts[frame, s, k], owner, first, softness) for p, k in ((heels, HEEL), (points, BALL))
    )
    either = np.minimum(low_heel, low_ball)  # a foot that never lies flat rolls on whatever is lower
    if found.floor is not None:
        flat &= ((start > 0) & (end < len(times))) | (times[end - 1] - times[start] > WHOLE)
    low_heel, low_ball = np.where(flat, low_heel, either), np.where(flat, low_ball, either)
    up_heel, up_ball = (np.maximum(p[:, 2] - low[owner], 0.0) for p, low in ((heels, low_heel), (points, low_ball)))
    flattest = weight / (1.0 + (np.maximum(up_heel, up_ball) / FLAT) ** 2) ** 2
    turn = there.turn_in(foot[frame, s])
    turn = turn * np.where(dot(turn, turn[first][owner]) < 0.0, -1.0, 1.0)[:, None]
    rotation = quat.normalize(np.column_stack([np.bincount(owner, turn[:, c] * flattest, n) for c in range(4)]).astype(np.float64))
    along = quat.rotate(rotation, np.stack([leg.ball - leg.heel for leg in feet.legs])[side])
    level = np.where(flat[:, None], _pitched(along, low_ball - low_heel), along * [1.0, 1.0, 0.0])
    rotation = np.where(flat[:, None], quat.mul(quat.between(along, level), rotation), rotation)
    on_heel = (0.5 - 0.5 * np.tanh((up_heel - up_ball) / ROLLING))[:, None]
    points = points * (1.0 - on_heel) + (heels + level[owner]) * on_heel
    points[:, 2] = low_ball[owner] + np.minimum(up_heel, up_ball)
    place, away = _most(points, weight, owner, n)
    return _Means(at_middle.point_out(place), at_middle.turn_out(rotation), flat, away)


def _low(z: Array, stillness: Array, down: Flags, owner: Indices, first: Indices, softness: float) -> Array:
    """How low a part of the foot is when it is down in each contact: heights (M,) near the lowest that it has there while it is still."""
    lowest = np.minimum.reduceat(np.where(down, z, np.inf), first)
    any_down = np.isfinite(lowest)
    lowest = np.where(any_down, lowest, np.minimum.reduceat(z, first))
    weight = stillness * (down | ~any_down[owner]) * np.exp(-np.maximum(z - lowest[owner], 0.0) / softness)
    n = len(first)
    return np.bincount(owner, weight * z, n) / np.maximum(np.bincount(owner, weight, n), 1e-300)


def _pitched(along: Array, rise: Array) -> Array:
    """Vectors (n, 3) of the same length and heading that rise by ``rise``."""
    whole, ahead = dot(along, along), np.hypot(along[:, 0], along[:, 1])
    level = np.sqrt(np.maximum(whole - rise**2, 1e-12)) / np.maximum(ahead, 1e-9)
    return np.column_stack([along[:, 0] * level, along[:, 1] * level, rise])


def _most(points: Array, weight: Array, owner: Indices, n: int) -> tuple[Array, Array]:
    """Where most of each contact's points lie (n, 3), and how far most of them are from there (n,).

    Means in which what lies farther away than the mean distance counts little (and less and less): a foot that stands still and comes or
    leaves at the edges of its contact is found where it stands; of one that slides evenly it is the middle.
    """
    total = np.maximum(np.bincount(owner, weight, n), 1e-12)
    place = np.column_stack([np.bincount(owner, points[:, c] * weight, n) / total for c in range(3)])
    away = np.zeros(len(points))
    for _ in range(REPEATS):
        away = np.sqrt(dot(points - place[owner], points - place[owner]))
        scale = np.maximum(np.bincount(owner, away * weight, n) / total, 1e-5)
        near = weight / (1.0 + (away / scale[owner]) ** 2) ** 2
        weight, total = near, np.maximum(np.bincount(owner, near, n), 1e-12)
        place = np.column_stack([np.bincount(owner, points[:, c] * near, n) / total for c in range(3)])
    away = np.sqrt(dot(points - place[owner], points - place[owner]))
    return place, np.bincount(owner, away * weight, n) / total
