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
from .legs import dot, unit
from .levels import find_levels
from .result import BALL, HEEL
from .settings import FeetSettings
from .spaces import Spaces, spaces_of

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

FLAT = 0.003
"""Metres: a foot whose heel or ball is higher than that over its lowest is about to roll."""
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
    level = find_levels(ground, feet, side, means.ball, ahead, floor, times[middle], settings)
    place, normal, rise = level.place, level.normal, level.rise
    tilt = _limited(quat.between(up, normal), settings)
    return Prints(
        side, start, end, middle, means.ball, tilt, place, quat.mul(tilt, means.rotation), normal, level.object, space, rise, level.heel
    )  # fmt: skip


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


def _rolled(heel: Array, ball: Array, owner: Indices) -> Array:
    """How much higher heel or ball are than at their lowest in the same contact, metres: where both are lowest the foot is flat."""
    first = np.searchsorted(owner, np.arange(int(owner[-1]) + 1))
    return np.maximum(*(z - np.minimum.reduceat(z, first)[owner] for z in (heel, ball)))


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
    weight = weight / (1.0 + (_rolled(heels[:, 2], points[:, 2], owner) / FLAT) ** 2) ** 2
    heel_only = (~balls & found.parts[middle, side, HEEL])[owner]
    point = np.where(heel_only[:, None], heels, points)
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
