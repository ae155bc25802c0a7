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
from . import signals, ways, worth
from .body import Feet
from .contacts import Contacts
from .footprints import Prints
from .ground import Ground
from .legs import cross, dot, unit
from .pose import Legs
from .result import BALL, HEEL
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
NEAR = 0.005
"""Metres: toes lie on the ground while the ball is no higher; from twice that on they are left alone."""
LANDING = 0.1
"""Seconds that a foot takes to land or to leave, at most."""
NOTHING = 0.0007
"""Metres: a footprint that its source is no farther from is left alone; twice as far, all the work is done."""


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
    touched : (F, 2) array
        0 where the source stands on this ground already, before and after; 1 where it has to be put there.
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
    touched: Array


def find_path(
    ground: Ground, feet: Feet, legs: Legs, soles: Array, found: Contacts, prints: Prints, moving: bool, settings: FeetSettings
) -> Path:
    """Targets of both feet; arguments as for :func:`.footprints.find_prints`."""
    f = len(legs.times)
    ankle, foot, toe = legs.ankle.copy(), legs.foot.copy(), legs.toe.copy()
    rise, floor, weight, touched = np.zeros((f, 2)), soles[..., 2].min(axis=2), np.zeros((f, 2)), np.ones((f, 2))
    held, owner = np.zeros((f, 2), dtype=bool), np.full((f, 2), -1, dtype=np.int64)
    normal = np.zeros((f, 2, 3))
    normal[..., 2] = 1.0
    inside = [Stretches.of(held[:, side], legs.times) for side in range(2)]
    for side in range(2):
        mine = np.flatnonzero(prints.side == side)
        if len(mine):
            one = _Foot(ground, feet, legs, soles, found, prints, mine, side, moving, settings)
            ankle[:, side], foot[:, side], toe[:, side] = one.ankle, one.foot, one.toe
            rise[:, side], floor[:, side], weight[:, side], touched[:, side] = one.rise, one.floor, one.weight, one.touched
            held[:, side], owner[:, side], normal[:, side] = one.held, one.owner, one.normal
            inside[side] = one.inside
    return Path(ankle, foot, toe, rise, floor, held, owner, normal, weight, (inside[0], inside[1]), touched)


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
        self.worth = np.ones(len(prints.side))
        self.worth[np.unique(self.which)] = self._worth(soles[:, side], legs.foot[:, side], found.flat[:, side] & self.held, at, times)
        steps = ways.stepped(ground, prints, mine, times, settings)
        prints = worth.for_what_it_is_worth(prints, self.worth, sloping=not found.on_scene)
        abrupt = ways.abrupt(prints, self.owner, inside) * steps[self.owner[np.minimum(inside.after, len(times) - 1)]]
        ball = soles[:, side, BALL]
        self.rise = ways.followed(prints, self.owner, ball[:, :2], inside, abrupt)
        self.floor = between(self._spread(prints.source[:, 2], at), inside)
        tilt = quat.exp(between(self._spread(quat.log(prints.tilt), at), inside))
        base = quat.mul(tilt, legs.foot[:, side])
        base_ankle = ball + quat.rotate(tilt, legs.ankle[:, side] - ball)
        base_ankle[:, 2] += self.rise
        base_ankle += ways.leant(np.maximum(ball[:, 2] - self.floor, 0.0), tilt)
        base_ankle[:, :2] += ways.hurried(ball[:, :2], abrupt, inside)
        ease = (settings.ease_out, settings.ease_in)
        flat = Stretches.of(found.flat[:, side] & self.held, times, *found.edges(side, flat=True))
        self.foot = quat.mul(self._laid(base, inside, flat, at, ease), base)
        shift = np.zeros((len(times), 3))
        shift[at] = (self._kept(at) - base_ankle[at]) * self.worth[self.which][:, None]
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
        self.touched = worth.either(self.worth, self.owner)

    def _carry(self, ground: Ground, prints: Prints, times: Array, at: Indices, moving: bool) -> None:
        """Place, resting rotation and normal of the footprint under every held frame, carried by what it lies on."""
        which = self.which
        middle = spaces_of(ground, prints.space, times[prints.middle], moving)
        now = spaces_of(ground, prints.space[which], times[at], moving)
        self.place = now.point_out(middle.point_in(prints.place)[which])
        self.resting = now.turn_out(middle.turn_in(prints.rotation)[which])
        self.heel_on = prints.heel[which]
        self.up = now.direction_out(middle.direction_in(prints.normal)[which])

    def _worth(self, soles: Array, foot: Array, flat: Flags, at: Indices, times: Array) -> Array:
        """How much of the work each footprint needs, 0 to 1: none where the source stands on it as it is, all the time.

        What counts is how far the point that the foot stands on is from its place and how far the foot is turned, both at most, but for
        the moments in which it lands and leaves, where only sinking in counts if most footprints are good; and how far it is from lying
        flat in most of the frames in which it would be made to: it may roll.
        """
        leg, first = self.leg, np.flatnonzero(np.diff(self.which, prepend=-1))
        points = np.stack([soles[at, HEEL], soles[at, BALL]], axis=1)
        places = np.stack([self.place + quat.rotate(self.resting, p - leg.ball) for p in (leg.heel, leg.ball)], axis=1)
        heights = dot(points - self.place[:, None], self.up[:, None])
        heights[~self.heel_on, 0] = 1e3
        share = np.exp(-(heights - heights.min(axis=1, keepdims=True)) / SOFTEST)
        away = ((places - points) * (share / share.sum(axis=1, keepdims=True))[..., None]).sum(axis=1)
        away = away - self.up * dot(away, self.up)[:, None]
        low = heights.min(axis=1)
        far = np.maximum(np.sqrt(dot(away, away)), np.abs(low))
        angles = _taken_apart(quat.mul(self.resting, quat.inv(foot[at])), *self._axes(), self.up)
        pitches = np.zeros(len(foot))
        pitches[at] = angles[:, 0]
        inside = _hardly_pitching(pitches, flat, times)[at]
        pitch, roll, yaw = (np.abs(angles) * np.sqrt(dot(leg.ball - leg.heel, leg.ball - leg.heel))).T
        slant = np.maximum(worth.lower_third(pitch, inside > 0.5, first), worth.lower_third(roll, flat[at], first))
        far, inner = np.maximum(far, yaw), worth.inner(first, len(at), signals.half_width(LANDING, signals.spacing(times)))
        whole, middle = (np.maximum(np.maximum.reduceat(x, first), slant) for x in (far, np.where(inner, far, -low)))
        needed = middle if float(np.median(middle)) < NOTHING else whole
        return signals.ease((needed - NOTHING) / NOTHING)

    def _worth_of_toes(self, angle: Array, down: Flags) -> Array:
        """For every held frame how much toes have to be lowered: not at all where they lie on the ground in many of their frames."""
        first = np.flatnonzero(np.diff(self.which, prepend=-1))
        off = worth.lower_third(np.maximum(angle, 0.0) * np.sqrt(dot(self.leg.tip, self.leg.tip)), down, first)
        return np.repeat(signals.ease((off - NOTHING) / NOTHING), np.diff(np.append(first, len(angle))))

    def _axes(self) -> tuple[Array, Array]:
        """Ahead and to the left along the surface under every held frame."""
        across = unit(cross(self.up, quat.rotate(self.resting, self.leg.forward)))
        return cross(across, self.up), across

    def _laid(self, base: Array, inside: Stretches, flat: Stretches, at: Indices, ease: tuple[float, float]) -> Array:
        """Rotations (F, 4) to put before ``base``: they make a flat foot lie still, as in its resting rotation.

        In held frames the turn from base to resting is taken apart, exactly, into a turn on the spot, a tilt sideways and a pitch. The
        turn on the spot is taken away wherever the foot stands, the tilt where it is flat. Pitch is what a foot rolls by: it is taken
        away only well inside the time in which it hardly pitches, so that rolling begins and ends where the source has it.
        """
        frames = len(base)
        ahead, across = self._axes()
        turn = quat.mul(self.resting, quat.inv(base[at]))
        angles = np.zeros((frames, 3))
        angles[at] = _taken_apart(turn, ahead, across, self.up)
        pitch = angles[:, 0]
        depth = _hardly_pitching(pitch, flat.mask, inside.times)
        tilt = fade(angles[:, 1:2], flat, *ease)[:, 0]
        pitch_left, tilt_left = (pitch * (1.0 - depth))[at], (angles[:, 1] - tilt)[at]
        left = quat.mul(quat.from_axis_angle(across, pitch_left), quat.from_axis_angle(ahead, tilt_left))
        laid = np.zeros((frames, 3))
        laid[at] = quat.log(quat.mul(quat.inv(left), turn))
        laid[at] *= self.worth[self.which][:, None]
        return quat.exp(fade(laid, inside, *ease))

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
        angle = lowering(arm, axis, self.normal, ground)
        over = -ground[at] - (self.leg.sole.ball_height or 0.0)
        come = np.maximum(angle[at], 0.0) * (1.0 - signals.ease((over - NEAR) / NEAR))  # toes come down with the ball
        angle[at] = self._worth_of_toes(come, down[at]) * come + np.minimum(angle[at], 0.0)
        angle = np.where(down, angle, np.minimum(angle, 0.0))  # while the heel alone is down, toes are only kept out of the ground
        self.toe = quat.mul(quat.from_axis_angle(axis, fade(angle[:, None], inside, *ease)[:, 0]), self.toe)


def _hardly_pitching(pitch: Array, flat: Flags, times: Array) -> Array:
    """(F,): 1 well inside the stretches in which a flat foot does not roll, eased to 0 at their edges; one that lies for a moment rolls."""
    rate = np.abs(signals.velocity(signals.convolve(pitch, signals.gaussian(SWAY, signals.spacing(times))), times))
    level = flat & ((np.abs(pitch) < ROLLING) | ((rate < SLOWLY) & (np.abs(pitch) < 4.0 * ROLLING)))
    rolling = Stretches.of(~level, times)
    since, until = rolling.since, rolling.until
    there = np.minimum(since, times - times[0]) + np.minimum(until, times[-1] - times)
    long = signals.ease((there - 4.0 * SETTLING) / (2.0 * SETTLING))
    return signals.ease((np.minimum(since, until) - SETTLING) / SETTLING) * long


def _taken_apart(turn: Array, ahead: Array, across: Array, up: Array) -> Array:
    """(n, 3) angles p, r, y of ``turn = A(p) R(r) U(y)``: about ``across``, ``ahead`` and ``up``, orthonormal axes ``(n, 3)``."""
    u, v, w = (quat.rotate(turn, axis) for axis in (ahead, across, up))
    pitch = np.arctan2(dot(w, ahead), dot(w, up))
    roll = np.arcsin(np.clip(-dot(w, across), -1.0, 1.0))
    yaw = np.arctan2(dot(u, across), dot(v, across))
    return np.column_stack([pitch, roll, yaw])


def lowering(arm: Array, axis: Array, normal: Array, height: Array) -> Array:
    """Angle about ``axis`` that brings the end of ``arm`` to ``height`` over the pivot along ``normal``; within a right angle."""
    along = arm - axis * dot(arm, axis)[:, None]
    ahead = cross(axis, normal)  # with the axis to the left and the normal up: forward
    x, y = dot(along, ahead), dot(along, normal)
    radius = np.maximum(np.hypot(x, y), 1e-9)
    wanted = np.arcsin(np.clip((height - dot(axis * dot(arm, axis)[:, None], normal)) / radius, -1.0, 1.0))
    turn = np.arctan2(y, x) - wanted  # a positive turn about the left axis takes the tip down
    return np.clip((turn + np.pi) % (2.0 * np.pi) - np.pi, -0.5 * np.pi, 0.5 * np.pi)


def _owners(prints: Prints, mine: Indices, frames: int) -> Indices:
    """Which footprint each frame belongs to; -1: none."""
    out = np.full(frames, -1, dtype=np.int64)
    for i in mine.tolist():
        out[prints.start[i] : prints.end[i]] = i
    return out
