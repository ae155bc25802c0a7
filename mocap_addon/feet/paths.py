# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a foot goes: at its places in contact, on its own path between them, eased from one to the other.

A foot's base is the source's, raised by ``o`` and tilted by ``Q`` about the ball:

    ball' = ball + o up        R_base = Q R        ankle_base = ball' + Q (ankle - ball)

``o`` and ``Q`` belong to a contact and go over into the next one's on the way. On top come two corrections that are nothing where the
source needs none: a turn ``c`` that makes the sole lie still and flat while it is flat, and a shift ``d`` that keeps the lowest of heel
and ball at the footprint. Because the point to keep is always the lowest one, a foot rolls from heel to toe and none of them slides.
Both die away within the ease times outside contact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from . import signals
from .body import Feet
from .contacts import Contacts
from .footprints import Prints
from .ground import Ground
from .legs import cross, dot
from .pose import Legs
from .result import BALL
from .settings import FeetSettings
from .spaces import spaces_of
from .stretches import Stretches, between, fade

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]

SOFTEST = 0.002
"""Metres of height over which the point that is kept goes over from heel to ball."""
ROLLING = float(np.radians(2.5))
"""Radians that a flat foot pitches by at most; beyond it rolls."""
SLOWLY = float(np.radians(20.0))
"""rad/s: a foot that pitches more slowly does not roll, it is held badly; then four times the angle is flat."""
SWAY = 4.0
"""Hz: what is faster is no pitch but noise."""
SETTLING = 0.06
"""Seconds next to rolling in which pitch is left alone; as long again until all of it is taken away."""
LEAN = 0.08
"""Metres of height over a slope up to which a foot keeps it along the normal."""
AHEAD, BEHIND = 0.24, 0.15
"""Parts of a swing that a foot is ahead of its source on a step down, or behind it on a step up, at most."""
UP_PART = 0.95
"""A foot that steps up has risen in this first part of its way, one that steps down falls in the last."""


@dataclass(frozen=True, eq=False)
class Path:
    """Both feet, targets before clearance.

    Parameters
    ----------
    ankle : (F, 2, 3) array
    foot, toe : (F, 2, 4) array
    rise : (F, 2) array
        ``o``, metres.
    floor : (F, 2) array
        Height of the source's own ground under each foot, metres.
    held : (F, 2) bool array
        The foot stands at a footprint.
    owner : (F, 2) int array
        Which footprint; -1: none.
    normal : (F, 2, 3) array
        Of what is stood on (up where there is nothing).
    weight : (F, 2) array
        1 in contact, eased around.
    inside : pair of Stretches
        When each foot stands, begun and ended between frames.
    """

    ankle: Array
    foot: Array
    toe: Array
    rise: Array
    floor: Array
    held: Flags
    owner: Indices
    normal: Array
    weight: Array
    inside: tuple[Stretches, Stretches]


def find_path(
    ground: Ground, feet: Feet, legs: Legs, soles: Array, found: Contacts, prints: Prints, moving: bool, settings: FeetSettings
) -> Path:
    """Targets of both feet; arguments as for :func:`.footprints.find_prints`."""
    f = len(legs.times)
    ankle, foot, toe = legs.ankle.copy(), legs.foot.copy(), legs.toe.copy()
    rise, floor, weight = np.zeros((f, 2)), soles[..., 2].min(axis=2), np.zeros((f, 2))
    held, owner = np.zeros((f, 2), dtype=bool), np.full((f, 2), -1, dtype=np.int64)
    normal = np.zeros((f, 2, 3))
    normal[..., 2] = 1.0
    inside = [Stretches.of(held[:, side], legs.times) for side in range(2)]
    for side in range(2):
        mine = np.flatnonzero(prints.side == side)
        if len(mine):
            one = _Foot(ground, feet, legs, soles, found, prints, mine, side, moving, settings)
            ankle[:, side], foot[:, side], toe[:, side] = one.ankle, one.foot, one.toe
            rise[:, side], floor[:, side], weight[:, side] = one.rise, one.floor, one.weight
            held[:, side], owner[:, side], normal[:, side] = one.held, one.owner, one.normal
            inside[side] = one.inside
    return Path(ankle, foot, toe, rise, floor, held, owner, normal, weight, (inside[0], inside[1]))


class _Foot:
    """The path of one foot; its attributes are one side of :class:`Path`'s."""

    def __init__(
        self, ground: Ground, feet: Feet, legs: Legs, soles: Array, found: Contacts, prints: Prints, mine: Indices, side: int,
        moving: bool, settings: FeetSettings,
    ) -> None:  # fmt: skip
        times = legs.times
        self.leg = feet.legs[side]
        self.owner = _owners(prints, mine, len(times))
        self.held = self.owner >= 0
        inside = Stretches.of(self.held, times, *found.edges(side))
        at = np.flatnonzero(self.held)
        self.which = self.owner[at]
        self._carry(ground, prints, times, at, moving)
        abrupt = _abrupt(prints, self.owner, inside)
        part = 1.0 - (1.0 - UP_PART) * signals.ease((np.abs(abrupt) - 0.03) / 0.07)
        ball = soles[:, side, BALL]
        self.rise = _followed(prints, self.owner, ball[:, :2], inside, part)
        self.floor = between(self._spread(prints.source[:, 2], at), inside)
        tilt = quat.exp(between(self._spread(quat.log(prints.tilt), at), inside))
        base = quat.mul(tilt, legs.foot[:, side])
        base_ankle = ball + quat.rotate(tilt, legs.ankle[:, side] - ball)
        base_ankle[:, 2] += self.rise
        base_ankle += _leant(np.maximum(ball[:, 2] - self.floor, 0.0), tilt)
        base_ankle[:, :2] += _hurried(ball[:, :2], abrupt, inside)
        ease = (settings.ease_out, settings.ease_in)
        flat = Stretches.of(found.flat[:, side] & self.held, times, *found.edges(side, flat=True))
        turn = np.zeros((len(times), 3))
        turn[at] = quat.log(quat.mul(self.resting, quat.inv(base[at])))
        self.foot = quat.mul(quat.exp(self._wobble(turn, inside, flat, at, ease)), base)
        shift = np.zeros((len(times), 3))
        shift[at] = self._kept(at) - base_ankle[at]
        self.ankle = base_ankle + fade(shift, inside, *ease)
        self.normal = np.zeros((len(times), 3))
        self.normal[:, 2] = 1.0
        self.normal[at] = self.up
        bent = quat.mul(quat.inv(legs.foot[:, side]), legs.toe[:, side])
        self.toe = quat.mul(self.foot, bent)
        if self.leg.toe >= 0:
            self._rest_toe(found.parts[:, side, BALL] & self.held, at, inside, ease)
        self.weight = fade(self.held[:, None].astype(np.float64), inside, *ease)[:, 0]
        self.inside = inside

    def _carry(self, ground: Ground, prints: Prints, times: Array, at: Indices, moving: bool) -> None:
        """Place, resting rotation and normal of the footprint under every held frame, carried by what it lies on."""
        which = self.which
        middle = spaces_of(ground, prints.space, times[prints.middle], moving)
        now = spaces_of(ground, prints.space[which], times[at], moving)
        self.place = now.point_out(middle.point_in(prints.place)[which])
        self.resting = now.turn_out(middle.turn_in(prints.rotation)[which])
        self.heel_on = prints.heel[which]
        self.up = now.direction_out(middle.direction_in(prints.normal)[which])

    def _wobble(self, turn: Array, inside: Stretches, flat: Stretches, at: Indices, ease: tuple[float, float]) -> Array:
        """Turns that make a flat foot lie still, from turns to its resting rotation.

        Turning on the spot is taken away wherever the foot stands, tilting sideways where it is flat. Pitch is what a foot rolls by: it
        is taken away only well inside the time in which it hardly pitches, so that rolling begins and ends where the source has it.
        """
        times = inside.times
        across = np.zeros_like(turn)
        across[at] = cross(self.up, quat.rotate(self.resting, self.leg.forward))
        pitch = dot(turn, across)
        rate = np.abs(signals.velocity(signals.convolve(pitch, signals.gaussian(SWAY, signals.spacing(times))), times))
        level = flat.mask & ((np.abs(pitch) < ROLLING) | ((rate < SLOWLY) & (np.abs(pitch) < 4.0 * ROLLING)))
        rolling = Stretches.of(~level, times)
        depth = signals.ease((np.minimum(rolling.since, rolling.until) - SETTLING) / SETTLING)
        up = np.zeros_like(turn)
        up[at] = self.up
        yaw = up * dot(turn, up)[:, None]
        spin, tilt = fade(yaw, inside, *ease), fade(turn - yaw - across * pitch[:, None], flat, *ease)
        return spin + tilt + across * (pitch * depth)[:, None]

    def _spread(self, values: Array, at: Indices) -> Array:
        """A value a footprint as values of frames; zero where none is."""
        out = np.zeros((len(self.owner), *values.shape[1:]))
        out[at] = values[self.which]
        return out

    def _kept(self, at: Indices) -> Array:
        """The ankle that keeps the lowest point of the sole at its footprint, in held frames."""
        leg = self.leg
        points = [leg.heel, leg.ball] if leg.toe >= 0 else [leg.heel, leg.ball, leg.tip]
        arms = np.stack([quat.rotate(self.foot[at], p) for p in points], axis=1)
        if leg.toe >= 0:
            arms[:, 1] = quat.rotate(self.foot[at], leg.joint) - self.up * (leg.sole.ball_height or 0.0)
        heights = dot(arms, self.up[:, None])
        heights[~self.heel_on, 0] = 1e3  # hangs beyond an edge: nothing to stand on
        share = np.exp(-(heights - heights.min(axis=1, keepdims=True)) / SOFTEST)
        share = share / share.sum(axis=1, keepdims=True)
        kept = np.stack([self.place + quat.rotate(self.resting, p - leg.ball) for p in points], axis=1)
        ankle = ((kept - arms) * share[..., None]).sum(axis=1)
        above = dot(ankle - self.place, self.up) + heights.min(axis=1)
        return ankle - self.up * above[:, None]

    def _rest_toe(self, down: Flags, at: Indices, inside: Stretches, ease: tuple[float, float]) -> None:
        """Turn the toes about the ball so that their tip lies on the surface while the ball does."""
        axis = np.zeros((len(self.foot), 3))
        ahead = quat.rotate(self.foot, self.leg.forward)
        axis[:] = cross(self.normal, ahead)
        axis /= np.maximum(np.sqrt(dot(axis, axis)), 1e-9)[:, None]
        joint = self.ankle + quat.rotate(self.foot, self.leg.joint)
        arm = quat.rotate(self.toe, self.leg.tip)
        ground = np.zeros(len(axis))
        ground[at] = dot(self.place - joint[at], self.up)
        angle = _lowering(arm, axis, self.normal, ground)
        angle = np.where(down, angle, np.minimum(angle, 0.0))  # while the heel alone is down, toes are only kept out of the ground
        self.toe = quat.mul(quat.from_axis_angle(axis, fade(angle[:, None], inside, *ease)[:, 0]), self.toe)


def _lowering(arm: Array, axis: Array, normal: Array, height: Array) -> Array:
    """Angle about ``axis`` that brings the end of ``arm`` to ``height`` over the pivot along ``normal``; within a right angle."""
    along = arm - axis * dot(arm, axis)[:, None]
    ahead = cross(axis, normal)  # with the axis to the left and the normal up: forward
    x, y = dot(along, ahead), dot(along, normal)
    radius = np.maximum(np.hypot(x, y), 1e-9)
    wanted = np.arcsin(np.clip((height - dot(axis * dot(arm, axis)[:, None], normal)) / radius, -1.0, 1.0))
    turn = np.arctan2(y, x) - wanted  # a positive turn about the left axis takes the tip down
    return np.clip((turn + np.pi) % (2.0 * np.pi) - np.pi, -0.5 * np.pi, 0.5 * np.pi)


def _leant(height: Array, tilt: Array) -> Array:
    """(F, 3): from straight over the plane to as high along its normal, for a foot that comes down to it or leaves it.

    So heel strikes and toe-offs meet a slope as they meet the floor. High up only a little of it is left: legs stay apart.
    """
    up = np.zeros((len(height), 3))
    up[:, 2] = LEAN * np.tanh(height / LEAN)
    return quat.rotate(tilt, up) - up


def _abrupt(prints: Prints, owner: Indices, inside: Stretches) -> Array:
    """(F,): how much higher than its last the next footprint is than the slopes at both tell: edges on the way, metres. 0 in contact."""
    before, after = inside.before, inside.after
    swing = np.flatnonzero((owner < 0) & (before >= 0) & (after < len(owner)))
    out = np.zeros(len(owner))
    a, b = owner[before[swing]], owner[after[swing]]
    way = (prints.place[b] - prints.place[a])[:, :2]
    slope = -0.5 * sum(dot(prints.normal[k][:, :2], way) / np.maximum(prints.normal[k][:, 2], 0.2) for k in (a, b))
    out[swing] = prints.rise[b] - prints.rise[a] - slope
    return out


def _followed(prints: Prints, owner: Indices, ball: Array, inside: Stretches, part: Array) -> Array:
    """(F,): how much a foot is raised; on its way it goes from the plane of its last footprint over to that of the next.

    On an even slope both are the same, and the foot keeps the height over it that it has over its own floor.
    """
    before, after = inside.before, inside.after
    b, a = np.where(before < 0, after, before), np.where(after >= len(owner), before, after)
    ends = (before < 0) | (after >= len(owner))

    def on_plane(k: Indices) -> Array:
        slope = -prints.normal[k][:, :2] / np.maximum(prints.normal[k][:, 2:], 0.2)
        return prints.rise[k] + dot(slope, np.where(ends[:, None], ball[b], ball) - prints.source[k][:, :2])

    last, then = on_plane(owner[b]), on_plane(owner[a])
    x = inside.way()
    up = prints.rise[owner[a]] > prints.rise[owner[b]]
    return last + (then - last) * signals.ease(np.where(up, x / part, (x - (1.0 - part)) / part))


def _hurried(ball: Array, abrupt: Array, inside: Stretches) -> Array:
    """(F, 2): level shifts that let a foot be ahead of its source on a step down and behind it on a step up.

    So it is over its place before it comes down to it, and has risen before it gets to an edge. The source is taken at another time of
    the swing, ``x' = x + 16 a x^2 (1 - x)^2``, which begins and ends as the source does.
    """
    swing = np.flatnonzero(abrupt != 0.0)
    out = np.zeros_like(ball)
    if len(swing) == 0:
        return out
    fall, x = -abrupt[swing], inside.way()[swing]
    amount = np.clip(1.5 * fall, -BEHIND, AHEAD) * signals.ease((np.abs(fall) - 0.03) / 0.07)
    there = inside.times[swing] + (inside.since + inside.until)[swing] * 16.0 * amount * (x * (1.0 - x)) ** 2
    for c in range(2):
        out[swing, c] = np.interp(there, inside.times, ball[:, c]) - ball[swing, c]
    return out


def _owners(prints: Prints, mine: Indices, frames: int) -> Indices:
    """Which footprint each frame belongs to; -1: none."""
    out = np.full(frames, -1, dtype=np.int64)
    for i in mine.tolist():
        out[prints.start[i] : prints.end[i]] = i
    return out
