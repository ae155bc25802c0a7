# SPDX-License-Identifier: GPL-3.0-or-later
"""When heel, ball and toe touch the ground.

A part is in contact while it is low and slow, with hysteresis that works the same forwards and backwards in time: a stretch below the
leaving limits counts when it is somewhere below the entering ones. What "low" means depends on the take. Where nearly everything slow
happens at one height, that is the floor, and heights count from it. Else (stairs, uneven ground) a part is low where it is lowest in its
own near past and future, or close to the scene's surface; and a foot that is always above the other one carries nothing and is dropped.
A take whose slow feet are all on the scene's surface was made for it: then heights count from that. The lower foot may stand a good deal
higher than the floor while it is still: floors of recordings slope a little.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from . import edges, signals
from .result import BALL, HEEL, TOE, Gates
from .settings import FeetSettings

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

PART_OF_TRAVEL = 0.2
"""Feet of a walk carried over to other legs slide by a part of the walker's speed; what is slower than this part of it may stand."""
SHAKE = 0.001
"""Metres that points may shake by (median of what the low pass takes away); noisier takes are smoothed more."""
RAISED = 0.03
"""Metres: a heel that much higher than the ball is up."""
LANDING = 0.1
"""Seconds that a landing or lift-off takes at most; what slides for longer slides in contact."""
NOWHERE = 99.0
"""Metres over the scene's surface where there is none."""
STILL = 0.04
"""m/s: what stands still is no faster after the low pass."""


@dataclass(frozen=True, eq=False)
class Contacts:
    """What was found.

    Parameters
    ----------
    parts : (F, 2, 3) bool array
        Heel, ball and toe of left and right.
    held : (F, 2) bool array
        The foot stands on something.
    flat : (F, 2) bool array
        With heel and ball.
    floor : float or None
        Height of the take's own floor, metres; None where it has no single one.
    has_toe : pair of bool
        Whether the feet bend at the ball; then their tips alone hold nothing.
    early, late : (F, 2, 3) arrays or None
        Seconds by which each part's contact begins before its first frame and goes on after its last; None: not at all.
    on_scene : bool
        The take was made for the scene: its feet are on that wherever they are slow.
    """

    parts: Flags
    held: Flags
    flat: Flags
    floor: float | None
    has_toe: tuple[bool, bool] = (True, True)
    early: Array | None = None
    late: Array | None = None
    on_scene: bool = False

    def edges(self, side: int, flat: bool = False) -> tuple[Array | None, Array | None]:
        """``early`` and ``late`` (F,) of where a foot is held, from the first to the last of its parts; or flat, with heel and ball."""
        if self.early is None or self.late is None:
            return None, None
        parts = self.parts[:, side, : 2 if flat or self.has_toe[side] else 3]
        edge = np.diff(parts.astype(np.int8), axis=0, prepend=0, append=0)
        out: list[Array] = []
        for begins, known in ((edge[:-1] == 1, self.early), (edge[1:] == -1, self.late)):
            known = known[:, side, : parts.shape[1]]
            if flat:
                least = np.where(begins, known, np.inf).min(axis=1)
                out.append(np.where(np.isfinite(least), least, 0.0))  # a foot that is planted anew is flat there, and no part begins
            else:
                out.append(np.where(begins, known, 0.0).max(axis=1))
        return out[0], out[1]


def speeds(points: Array, times: Array, settings: FeetSettings, carried: Array | None = None) -> Array:
    """Speed of points ``(F, ..., 3)`` in m/s, after a low pass without delay; relative to what moves under them by ``carried``."""
    dt = signals.spacing(times)
    smooth = signals.convolve(points, signals.gaussian(settings.low_pass, dt))
    noise = float(np.median(np.abs(points - smooth))) if len(points) > 1 else 0.0
    if noise > SHAKE:
        smooth = signals.convolve(points, signals.gaussian(settings.low_pass * max(SHAKE / noise, 0.45), dt))
    v = signals.velocity(smooth, times)
    if carried is not None:
        v = v - carried
    return np.sqrt(np.einsum("...i,...i->...", v, v))


def shake(points: Array, times: Array, settings: FeetSettings) -> float:
    """How much the low pass takes away of ``points`` (F, ...): the median, metres."""
    smooth = signals.convolve(points, signals.gaussian(settings.low_pass, signals.spacing(times)))
    return float(np.median(np.abs(points - smooth))) if len(points) > 1 else 0.0


def _travel_speed(soles: Array, times: Array) -> Array:
    """(F,): speed over the ground of the middle between both feet, over a second."""
    middle = soles[:, :, 1, :2].mean(axis=1)
    smooth = signals.convolve(middle, signals.bell(0.7, signals.spacing(times)))
    v = signals.velocity(smooth, times)
    return np.hypot(v[:, 0], v[:, 1])


def own_floor(z: Array, slow: Flags) -> float | None:
    """Height of the floor that a take stands on, of its soles' heights and where they are slow, both ``(F, 2, 3)``; None: no single one."""
    if not np.any(slow[:, :, :2]):
        return float(np.percentile(z.min(axis=(1, 2)), 5.0))
    low = np.percentile(z.min(axis=(1, 2)), 5.0)
    lower_foot = z.min(axis=2).argmin(axis=1)
    standing = slow[np.arange(len(z)), lower_foot, :2].any(axis=1)
    if not np.any(standing):
        return float(low)
    heights = z.min(axis=2)[np.arange(len(z)), lower_foot][standing]
    return float(low) if np.mean(np.abs(heights - np.median(heights)) < 0.06) > 0.8 else None


def _on_scene(over: Array, slow: Flags) -> bool:
    """Whether feet that are slow stand on the scene's surface nearly always, of heights over it (F, 2, 3)."""
    low = np.nan_to_num(over, nan=NOWHERE).min(axis=2)
    either = np.where(slow[..., :2].any(axis=2), np.abs(low), np.inf).min(axis=1)
    return bool(np.count_nonzero(either < 0.03) > 0.8 * np.count_nonzero(np.isfinite(either)))


def detect(
    soles: Array,
    times: Array,
    settings: FeetSettings,
    leg: float,
    has_toe: tuple[bool, bool] = (True, True),
    carried: Array | None = None,
    over_scene: Array | None = None,
) -> Contacts:
    """Contacts of a take's own soles.

    Parameters
    ----------
    soles : (F, 2, 3, 3) array
        Heel, ball and tip, world, metres.
    times : (F,) array
    settings : FeetSettings
    leg : float
        Leg length, metres; limits are for 0.9.
    has_toe : pair of bool
        Whether the feet bend at the ball.
    carried : (F, 2, 3, 3) array, optional
        Velocity of what is under each point.
    over_scene : (F, 2, 3) array, optional
        Heights over the scene's surface; NaN where there is none. Only asked where the take has no floor of its own.
    """
    scale, dt = leg / 0.9, signals.spacing(times)
    v = speeds(soles, times, settings, carried)
    travel = PART_OF_TRAVEL * _travel_speed(soles, times)
    enter_speed = np.maximum(settings.enter_speed * scale, travel)
    stay_speed = np.maximum(settings.leave_speed * scale, 2.0 * travel)
    stay_slow, enter_slow = v < stay_speed[:, None, None], v < enter_speed[:, None, None]
    z = soles[..., 2]
    floor = own_floor(z, enter_slow)
    level = floor
    on_scene = floor is None and over_scene is not None and _on_scene(over_scene, enter_slow)
    if on_scene and over_scene is not None:
        z, level = np.where(np.isnan(over_scene), NOWHERE, over_scene), 0.0
    height = _over_floor(z, enter_slow, level) if level is not None else _over_lowest(z, dt, over_scene)
    lowest = z.min(axis=2)
    lower = (lowest <= lowest[:, ::-1])[..., None]
    stay = stay_slow & (height < settings.leave_height * scale)
    stay |= lower & (v < settings.enter_speed * scale) & (height < 2.0 * settings.leave_height * scale)
    enter = enter_slow & (height < settings.enter_height * scale)
    enter |= lower & (v < 0.5 * settings.enter_speed * scale) & (height < 2.0 * settings.enter_height * scale)
    parts = np.zeros(stay.shape, dtype=bool)
    for side in range(2):
        for part in range(3):
            found = signals.hysteresis(enter[:, side, part], stay[:, side, part])
            found = signals.majority(found, settings.majority, dt)
            found = signals.without_gaps(found, settings.shortest_gap, dt)
            parts[:, side, part] = signals.without_short(found, settings.shortest_contact, dt)
    if level is None:
        _drop_raised(parts, soles, settings.enter_height * scale)
    _trim(parts, v, stay_speed, signals.half_width(LANDING, dt))
    parts, early, late = edges.follow(soles, times, parts, carried)
    return replace(summed(parts, has_toe, floor), early=early, late=late, on_scene=on_scene)


def _trim(parts: Flags, v: Array, fastest: Array, most: int) -> None:
    """Take away up to ``most`` of the first and last frames of a part's contacts in which it is much faster than in the rest of them.

    What stands still in the middle has landed when it stands still, what slides all the time when it slides.
    """
    for side in range(2):
        for part in range(3):
            start, end = signals.runs(parts[:, side, part])
            if len(start) == 0:
                continue
            long = end - start
            frame = np.flatnonzero(parts[:, side, part])
            owner = np.repeat(np.arange(len(start)), long)
            own = v[frame, side, part]
            first = np.cumsum(long) - long
            median = own[np.lexsort((own, owner))][first + long // 2]
            calm = own <= np.clip(2.0 * median, STILL, None)[owner]
            calm &= own <= fastest[frame]
            away = np.where(calm, frame - start[owner], len(v))
            before = np.minimum.reduceat(away, first)
            after = np.minimum.reduceat(np.where(calm, end[owner] - 1 - frame, len(v)), first)
            some = before < len(v)
            low = start + np.where(some, np.minimum(before, most), 0)
            high = end - np.where(some, np.minimum(after, most), 0)
            parts[:, side, part] = signals.filled(low, high, high > low, len(v))


def summed(parts: Flags, has_toe: tuple[bool, bool], floor: float | None) -> Contacts:
    """Contacts of their parts: where the foot bends at the ball, its tip alone holds nothing."""
    held = parts[:, :, HEEL] | parts[:, :, BALL]
    for side in range(2):
        if not has_toe[side]:
            held[:, side] |= parts[:, side, TOE]
    return Contacts(parts, held, parts[:, :, HEEL] & parts[:, :, BALL], floor, has_toe)


def _over_floor(z: Array, slow: Flags, floor: float) -> Array:
    """(F, 2, 3): how high each part is over the floor; each counts from where it rests itself, up to 5 cm beside the floor."""
    out = np.empty_like(z)
    for side in range(2):
        for part in range(3):
            own = z[:, side, part]
            rests = own[slow[:, side, part] & (own < floor + 0.1)]
            base = float(np.percentile(rests, 10.0)) if len(rests) > 4 else floor
            out[:, side, part] = own - np.clip(base, floor - 0.05, floor + 0.05)
    return out


def _over_lowest(z: Array, dt: float, over_scene: Array | None) -> Array:
    """(F, 2, 3): how high each part is over the lowest one around, or over the scene, whatever is less."""
    near = signals.half_width(0.3, dt)
    out = z - signals.lowest(z.reshape(len(z), 6), near).reshape(z.shape)
    if over_scene is not None:
        out = np.fmin(out, np.where(np.abs(over_scene) < 0.1, np.abs(over_scene), np.nan))
    return out


def _drop_raised(parts: Flags, soles: Array, height: float) -> None:
    """Take away contacts in which the foot never is as low as the other one: it is held up."""
    low = soles[..., 2].min(axis=2)
    for side in range(2):
        as_low = low[:, side] <= low[:, 1 - side] + height
        keep = signals.hysteresis(as_low, np.any(parts[:, side], axis=1))
        parts[:, side] &= keep[:, None]


def obey(found: Contacts, gates: Gates, times: Array, soles: Array, has_toe: tuple[bool, bool]) -> Contacts:
    """Contacts as the gates will have them: the source's own, then locks, then what a person forces.

    Where a foot is planted that was not found to be, its heel is down too unless it is clearly raised.
    """
    if gates.contacts is None and gates.foot_lock is None and not gates.forces:
        return found
    parts = found.parts.copy()
    if gates.contacts is not None:
        parts = gates.contacts.copy()
    for side in range(2):
        on = np.zeros(len(times), dtype=bool)
        off = np.zeros(len(times), dtype=bool)
        if gates.foot_lock is not None:
            lock = gates.foot_lock[:, side]
            on, off = lock >= 0.5, lock < 0.5  # NaN is neither: as detected
        for force in gates.forces:
            if force.side == ("left", "right")[side]:
                within = (times >= force.start - 1e-9) & (times <= force.end + 1e-9)
                on = (on & ~within) | (within if force.state == "on" else False)
                off = (off & ~within) | (within if force.state == "off" else False)
        parts[off, side] = False
        bare = on & ~parts[:, side, :2].any(axis=1)
        parts[bare, side, BALL] = True
        parts[bare & (soles[:, side, HEEL, 2] < soles[:, side, BALL, 2] + RAISED), side, HEEL] = True
    out = replace(summed(parts, has_toe, found.floor), on_scene=found.on_scene)
    if found.early is None or found.late is None:
        return out
    then, now = (np.diff(p.astype(np.int8), axis=0, prepend=0, append=0) for p in (found.parts, parts))
    same = then == now  # where a person moved an edge it lies on the frame
    return replace(out, early=np.where(same[:-1], found.early, 0.0), late=np.where(same[1:], found.late, 0.0))
