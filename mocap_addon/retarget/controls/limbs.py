# SPDX-License-Identifier: GPL-3.0-or-later
"""Controls of limbs that inverse kinematics holds: target, pole, heel and toe.

**Target.** It takes on the motion of the foot (or hand), so that these end where the forward solution has them, to the last digit: only
the knee is up to the solver.

**Heel.** A foot rolls over its ball. As much of the bend between foot and toes as turns about the heel control's own X, heel upwards, goes
on that control; the target takes the rest, so that it lies still with the sole while the heel lifts.

**Pole.** With ``h``, ``k``, ``t`` hip, knee and ankle, the limb's axis is ``u = t - h`` and the knee points along what of ``k - h`` is
perpendicular to it. Through a straight knee that direction turns by anything from frame to frame. There its angle from the hinge (the
direction that the knee has at rest, turned with thigh and shin) is taken from the frames around, each worth what its knee is bent.
The solver turns the chain so that ``cos(a) X + sin(a) Z`` of its first bone, ``a`` the constraint's pole angle, points to the pole; the
constant angle about the axis between that and the knee at rest is taken off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...motion import quat
from ...rig.body import RoleBody
from ...rig.control_sets import Limb
from .follow import Bones
from .rigid import Rigid

Array = NDArray[np.float64]
Pose = Callable[[Rigid], Rigid]

STRAIGHT = np.radians((5.0, 15.0))
"""Bend of a knee below which the pole's angle is smoothed over time, and above which the knee's place alone counts."""

DOUBT = np.sin(np.radians(4.0)) ** 2
"""How much the hinge counts against the knee's place: as much as a knee bent by this angle."""

SMOOTH = 0.1
"""Seconds (standard deviation) over which the pole's angle is smoothed where the knee is straight."""

AGAINST = np.radians((60.0, 100.0))
"""Angle between where the knee points and where its hinge does from which on it bends against the hinge."""

BACKWARD = np.radians((30.0, 45.0))
"""The bend where a knee counts even then: less is an overstretched knee, for which the pole must not change sides."""


@dataclass(frozen=True, eq=False)
class LimbMotion:
    """How a limb's controls move.

    Parameters
    ----------
    posed : mapping from joint to callable
        Control -> its motion, given how it is carried.
    turns, moves : frozenset of int
        Controls whose rotation and whose location get keys.
    solved : mapping from joint to Rigid
        How the solver makes the two bones move that bend.
    """

    posed: Mapping[int, Pose]
    turns: frozenset[int]
    moves: frozenset[int]
    solved: Mapping[int, Rigid]


def limb_motion(
    limb: Limb, hinge: Hinge, body: Mapping[int, Rigid], whole: RoleBody, bones: Bones, keyed: set[int], step: float
) -> LimbMotion:
    """The motion of a limb's controls.

    Parameters
    ----------
    limb : Limb
    hinge : Hinge
        How it bends at rest (:func:`hinge_of`).
    body : mapping from joint to Rigid
        How the body's joints move.
    whole : RoleBody
    bones : Bones
    keyed : set of int
        Joints of the body that the take moves at all.
    step : float
        Seconds between two frames.
    """
    upper, lower, tip, *beyond = limb_joints(limb, whole)
    toe = beyond[0] if beyond else None
    posed: dict[int, Pose] = {}
    turns = {limb.target}
    motion = body[tip]
    if toe is not None and toe in keyed and limb.toe is not None:
        posed[limb.toe] = _turned(body[toe], bones.head(limb.toe))
        turns.add(limb.toe)
        if limb.heel is not None:
            ball = whole.skeleton.rest_global_positions[whole.joints.index(toe)]
            axis = quat.rotate(bones.skeleton.rest_global_rotations[limb.heel], np.array([1.0, 0.0, 0.0]))
            roll, motion = heel_roll(body[tip], body[toe], ball, axis)
            posed[limb.heel] = _rolled(roll, bones, limb.heel)
            turns.add(limb.heel)
    ends = body[lower].apply(hinge.tip)
    if limb.tip is not None:
        motion = Rigid.about(motion.rotation, bones.head(limb.target), ends)
    if limb.copied:
        motion = Rigid.about(
            quat.mul(motion.rotation, bones.between(tip, limb.target)), bones.head(limb.target), motion.apply(bones.head(limb.target))
        )
    posed[limb.target] = fixed(motion)
    bend = bends(body[upper], body[lower], ends, hinge, step)
    if limb.pole is not None:
        posed[limb.pole] = _placed(bones.head(limb.pole), bend.pole(hinge))
    moves = {limb.target} | (set[int]() if limb.pole is None else {limb.pole})
    solved = dict(zip((upper, lower), solved_motions(bend, hinge), strict=True))
    return LimbMotion(posed, frozenset(turns), frozenset(moves), solved)


def hinge_of(limb: Limb, whole: RoleBody, bones: Bones) -> Hinge:
    """How a limb bends at rest."""
    upper, lower, tip = (whole.skeleton.rest_global_positions[whole.joints.index(j)] for j in limb_joints(limb, whole)[:3])
    if limb.tip is not None:
        tip = bones.skeleton.rest_global_ends[limb.tip]
    pole = None if limb.pole is None else bones.head(limb.pole)
    return Hinge.of(upper, lower, tip, pole, _reference(limb, bones), both=limb.part == "Leg")


def limb_joints(limb: Limb, whole: RoleBody) -> list[int]:
    """The joints of the limb's roles: three and, where the body has it, what is beyond."""
    return [whole.joints[whole.roles.joints[role][0]] for role in limb.roles if role in whole.roles.joints]


def heel_roll(foot: Rigid, toes: Rigid, ball: Array, axis: Array) -> tuple[Array, Rigid]:
    """The lift of the heel about the ball ``(F,)`` (radians, 0 or more) and the foot's motion without it.

    Parameters
    ----------
    foot, toes : Rigid
    ball : (3,) array
        Where they meet, at rest.
    axis : (3,) array
        At rest; a positive turn about it lifts the heel.
    """
    bend = quat.mul(quat.inv(toes.rotation), foot.rotation)
    twist = quat.swing_twist(bend, axis)[1]
    angle = 2.0 * np.arctan2(np.einsum("fi,i->f", twist[:, 1:], axis), twist[:, 0])
    roll = np.maximum((angle + np.pi) % (2.0 * np.pi) - np.pi, 0.0)
    lift = Rigid.about(quat.from_axis_angle(axis, roll), ball, ball)
    return roll, foot @ lift.inverse


@dataclass(frozen=True, eq=False)
class Hinge:
    """How a limb bends at rest.

    Parameters
    ----------
    upper, lower, tip : (3,) arrays
        Hip, knee and ankle.
    forward : (3,) array
        Unit vector, perpendicular to the line from hip to ankle: where the knee points.
    offset : float
        Radians about that line from where the solver puts the pole to where the knee points.
    distance : float
        Metres from the line to the pole.
    both : bool
        Whether the outer bone's turn says how the hinge stands, too: a shin does, a forearm turns about its length with the hand.
    """

    upper: Array
    lower: Array
    tip: Array
    forward: Array
    offset: float
    distance: float
    both: bool = True

    @cached_property
    def frames(self) -> Array:
        """(2, 4): upper and lower bone at rest: X along the bone, Z across the plane in which the limb bends."""
        across = quat.cross(_unit(self.tip - self.upper), self.forward)
        return _frames(np.stack([self.lower - self.upper, self.tip - self.lower]), across)

    @cached_property
    def lengths(self) -> tuple[float, float]:
        """Of both bones, metres."""
        return float(np.linalg.norm(self.lower - self.upper)), float(np.linalg.norm(self.tip - self.lower))

    @classmethod
    def of(cls, upper: Array, lower: Array, tip: Array, pole: Array | None, reference: Array | None, *, both: bool = True) -> Hinge:
        """``reference (3,)``: the direction that the solver turns to the pole; None: it is where the knee points."""
        axis = _unit(tip - upper)
        bend = _across(lower - upper, axis)
        length = float(np.linalg.norm(tip - upper))
        to_pole = bend if pole is None else _across(pole - upper, axis)
        straight = float(np.linalg.norm(bend)) < 1e-3 * length
        forward = _unit(to_pole if straight else bend)
        offset = 0.0 if reference is None else _angle(_across(reference, axis), forward, axis)
        return cls(upper, lower, tip, forward, float(offset), max(float(np.linalg.norm(to_pole)), 0.5 * length), both)


@dataclass(frozen=True, eq=False)
class Bends:
    """A limb at every frame: ``start``, ``knee`` and ``end (F, 3)``; unit vectors ``axis`` from start to end and ``forward`` to where the
    knee points, across it."""

    start: Array
    knee: Array
    end: Array
    axis: Array
    forward: Array

    def pole(self, hinge: Hinge) -> Array:
        """(F, 3): where the pole has to be."""
        along = np.einsum("fi,fi->f", self.knee - self.start, self.axis)
        direction = quat.rotate(quat.from_axis_angle(self.axis, np.full(len(self.axis), -hinge.offset)), self.forward)
        return self.start + self.axis * along[:, None] + hinge.distance * direction


def bends(upper: Rigid, lower: Rigid, end: Array, hinge: Hinge, step: float) -> Bends:
    """How a limb bends; through a straight knee by its hinge.

    Parameters
    ----------
    upper, lower : Rigid
    end : (F, 3) array
        Where the limb ends.
    hinge : Hinge
    step : float
        Seconds between two frames.
    """
    start, knee = upper.apply(hinge.upper), lower.apply(hinge.lower)
    axis = _unit(end - start)
    bend = _bend(knee - start, end - knee)
    turned = quat.rotate(upper.rotation, hinge.forward)
    if hinge.both:
        turned = turned + quat.rotate(lower.rotation, hinge.forward)
    turned = _unit(_across(turned, axis))
    miss = _angle(turned, _across(knee - start, axis), axis)
    angle = _through_straight(bend, miss, step)
    return Bends(start, knee, end, axis, quat.rotate(quat.from_axis_angle(axis, angle), turned))


def _through_straight(bend: Array, miss: Array, step: float) -> Array:
    """(F,): the angle about the limb's axis from where the hinge points to where the knee is taken to point.

    Parameters
    ----------
    bend : (F,) array
        Of the knee, radians.
    miss : (F,) array
        From where the hinge points to where the knee does.
    step : float
        Seconds between two frames.
    """
    # What a knee says of its direction is worth the square of how far it stands out. An overstretched one says it of the same plane.
    plane = np.where(np.abs(miss) > 0.5 * np.pi, miss - np.copysign(np.pi, miss), miss)
    weight = np.sin(bend) ** 2 * np.cos(plane) ** 2
    reach = max(1, round(4.0 * SMOOTH / step))
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) * step / SMOOTH) ** 2)
    kernel /= kernel.sum()
    smooth = np.convolve(weight * plane, kernel)[reach:-reach] / (np.convolve(weight, kernel)[reach:-reach] + DOUBT)
    along = 1.0 - _smooth(np.abs(miss), *AGAINST)
    share = np.maximum(_smooth(bend, *STRAIGHT) * along, _smooth(bend, *BACKWARD))
    return smooth + share * (miss - smooth)


def solved_motions(bend: Bends, hinge: Hinge) -> tuple[Rigid, Rigid]:
    """How the solver makes the limb's two bones move: it bends them in one plane, as they are bent at rest, and never turns one about its
    length. The knee lies where both lengths meet (law of cosines)."""
    a, b = hinge.lengths
    reach = np.linalg.norm(bend.end - bend.start, axis=-1)
    along = np.clip((a * a - b * b + reach * reach) / np.maximum(2.0 * reach, 1e-9), -a, a)
    out = np.sqrt(np.maximum(a * a - along * along, 0.0))
    knee = bend.start + bend.axis * along[:, None] + bend.forward * out[:, None]
    now = _frames(np.stack([knee - bend.start, bend.end - knee], axis=1), quat.cross(bend.axis, bend.forward)[:, None])
    turns = quat.mul(now, quat.inv(hinge.frames))
    return Rigid.about(turns[:, 0], hinge.upper, bend.start), Rigid.about(turns[:, 1], hinge.lower, knee)


def _frames(along: Array, across: Array) -> Array:
    """(..., 4): the rotations that take X along a bone and Z to the hinge, which is square to it."""
    x = _unit(along)
    across = np.broadcast_to(across, x.shape)
    return quat.from_matrix(np.stack([x, quat.cross(across, x), across], axis=-1))


def _reference(limb: Limb, bones: Bones) -> Array | None:
    """(3,): at rest, the direction that the solver turns to the pole."""
    if limb.first is None or limb.pole_angle is None:
        return None
    direction = np.array([np.cos(limb.pole_angle), 0.0, np.sin(limb.pole_angle)])
    return quat.rotate(bones.skeleton.rest_global_rotations[limb.first], direction)


def fixed(motion: Rigid) -> Pose:
    """Moved so, whatever carries it."""
    return lambda _carried: motion


def _turned(motion: Rigid, head: Array) -> Pose:
    return lambda carried: Rigid.about(motion.rotation, head, carried.apply(head))


def _placed(head: Array, places: Array) -> Pose:
    return lambda carried: Rigid.about(np.broadcast_to(carried.rotation, (len(places), 4)), head, places)


def _rolled(roll: Array, bones: Bones, heel: int) -> Pose:
    rest = bones.rest(heel)
    own = Rigid(quat.from_axis_angle((1.0, 0.0, 0.0), roll), np.zeros((1, 3)))
    return lambda carried: carried @ rest @ own @ rest.inverse


def _bend(u: Array, v: Array) -> Array:
    """Angle between vectors ``(..., 3)``, radians."""
    return np.arctan2(np.linalg.norm(quat.cross(u, v), axis=-1), np.einsum("...i,...i->...", u, v))


def _angle(u: Array, v: Array, axis: Array) -> Array:
    """Signed angle from ``u`` to ``v`` about unit ``axis``, all ``(..., 3)``; both across it."""
    return np.arctan2(np.einsum("...i,...i->...", quat.cross(u, v), axis), np.einsum("...i,...i->...", u, v))


def _across(v: Array, axis: Array) -> Array:
    return v - axis * np.einsum("...i,...i->...", v, axis)[..., None]


def _unit(v: Array) -> Array:
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-12)


def _smooth(x: Array, low: float, high: float) -> Array:
    """0 below ``low``, 1 above ``high``, smooth between."""
    s = np.clip((x - low) / (high - low), 0.0, 1.0)
    return s * s * (3.0 - 2.0 * s)
