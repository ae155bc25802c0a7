# SPDX-License-Identifier: GPL-3.0-or-later
"""Controls of limbs that inverse kinematics holds: target, pole, heel and toe.

**Target.** It takes on the motion of the foot (or hand), so that these end where the forward solution has them, to the last digit: only
the knee is up to the solver.

**Heel.** A foot rolls over its ball. As much of the bend between foot and toes as turns about the heel control's own X, heel upwards, goes
on that control; the target takes the rest, so that it lies still with the sole while the heel lifts.

**Pole.** With ``h``, ``k``, ``t`` hip, knee and ankle, the limb's axis is ``u = t - h`` and the knee points along what of ``k - h`` is
perpendicular to it. Through a straight knee that direction turns by anything from frame to frame; there the direction of the hinge takes
over: the one that the knee has at rest, turned with thigh and shin. Between the two the angle about the axis is blended by the bend.
The solver turns the chain so that ``cos(a) X + sin(a) Z`` of its first bone, ``a`` the constraint's pole angle, points to the pole; the
constant angle about the axis between that and the knee at rest is taken off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...motion import quat
from ...rig.body import RoleBody
from ...rig.control_sets import Limb
from .follow import Bones
from .rigid import Rigid

Array = NDArray[np.float64]
Pose = Callable[[Rigid], Rigid]

STRAIGHT = np.radians((4.0, 15.0))
"""Bend of a knee below which only the hinge counts for the pole, and above which only the knee's place does."""

AGAINST = np.radians((60.0, 100.0))
"""Angle between where the knee points and where its hinge does from which on it bends against the hinge."""

BACKWARD = np.radians((30.0, 45.0))
"""The bend where a knee counts even then: less is an overstretched knee, for which the pole must not change sides."""


def limb_motions(limb: Limb, body: Mapping[int, Rigid], whole: RoleBody, bones: Bones, keyed: set[int]) -> dict[int, tuple[Pose, str]]:
    """Control -> how it moves (given how it is carried) and which of its channels get keys (``"turns"``, ``"moves"``)."""
    joints = [whole.joints[whole.roles.joints[role][0]] if role in whole.roles.joints else None for role in limb.roles]
    upper, lower, tip = (j for j in joints[:3] if j is not None)
    toe = joints[3] if len(joints) > 3 else None
    out: dict[int, tuple[Pose, str]] = {}
    motion = body[tip]
    if toe is not None and toe in keyed and limb.toe is not None:
        out[limb.toe] = _turned(body[toe], bones.head(limb.toe)), "turns"
        if limb.heel is not None:
            ball = whole.skeleton.rest_global_positions[whole.joints.index(toe)]
            roll, motion = heel_roll(body[tip], body[toe], ball, quat.rotate(bones.skeleton.rest_global_rotations[limb.heel], np.eye(3)[0]))
            out[limb.heel] = _rolled(roll, bones, limb.heel), "turns"
    if limb.tip is not None:
        point = bones.skeleton.rest_global_ends[limb.tip]
        motion = Rigid.about(motion.rotation, bones.head(limb.target), body[lower].apply(point))
    out[limb.target] = _fixed(motion), "turns moves"
    if limb.pole is not None:
        hip, knee, ankle = (whole.skeleton.rest_global_positions[whole.joints.index(j)] for j in (upper, lower, tip))
        hinge = Hinge.of(hip, knee, ankle, bones.head(limb.pole), _reference(limb, bones))
        places = pole_places(body[upper], body[lower], body[tip], hinge)
        out[limb.pole] = _placed(bones.head(limb.pole), places), "moves"
    return out


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
    """

    upper: Array
    lower: Array
    tip: Array
    forward: Array
    offset: float
    distance: float

    @classmethod
    def of(cls, upper: Array, lower: Array, tip: Array, pole: Array, reference: Array | None) -> Hinge:
        """``reference (3,)``: the direction that the solver turns to the pole; None: it is where the knee points."""
        axis = _unit(tip - upper)
        to_pole = _across(pole - upper, axis)
        bend = _across(lower - upper, axis)
        length = float(np.linalg.norm(tip - upper))
        straight = float(np.linalg.norm(bend)) < 1e-3 * length
        forward = _unit(to_pole if straight else bend)
        offset = 0.0 if reference is None else _angle(_across(reference, axis), forward, axis)
        return cls(upper, lower, tip, forward, float(offset), max(float(np.linalg.norm(to_pole)), 0.5 * length))


def pole_places(upper: Rigid, lower: Rigid, tip: Rigid, hinge: Hinge) -> Array:
    """(F, 3): where the pole has to be."""
    h, k, t = upper.apply(hinge.upper), lower.apply(hinge.lower), tip.apply(hinge.tip)
    axis = _unit(t - h)
    bend = _bend(k - h, t - k)
    turned = _unit(_across(_unit(quat.rotate(upper.rotation, hinge.forward) + quat.rotate(lower.rotation, hinge.forward)), axis))
    miss = _angle(turned, _across(k - h, axis), axis)
    along = 1.0 - _smooth(np.abs(miss), *AGAINST)
    share = np.maximum(_smooth(bend, *STRAIGHT) * along, _smooth(bend, *BACKWARD))
    direction = quat.rotate(quat.from_axis_angle(axis, share * miss - hinge.offset), turned)
    foot_of_knee = h + axis * np.einsum("fi,fi->f", k - h, axis)[:, None]
    return foot_of_knee + hinge.distance * direction


def _reference(limb: Limb, bones: Bones) -> Array | None:
    """(3,): at rest, the direction that the solver turns to the pole."""
    if limb.solver is None or limb.pole_angle is None:
        return None
    first = int(bones.skeleton.parents[limb.solver])
    if first < 0:
        return None
    direction = np.array([np.cos(limb.pole_angle), 0.0, np.sin(limb.pole_angle)])
    return quat.rotate(bones.skeleton.rest_global_rotations[first], direction)


def _fixed(motion: Rigid) -> Pose:
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
    return np.arctan2(np.linalg.norm(np.cross(u, v), axis=-1), np.einsum("...i,...i->...", u, v))


def _angle(u: Array, v: Array, axis: Array) -> Array:
    """Signed angle from ``u`` to ``v`` about unit ``axis``, all ``(..., 3)``; both across it."""
    return np.arctan2(np.einsum("...i,...i->...", np.cross(u, v), axis), np.einsum("...i,...i->...", u, v))


def _across(v: Array, axis: Array) -> Array:
    return v - axis * np.einsum("...i,...i->...", v, axis)[..., None]


def _unit(v: Array) -> Array:
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), 1e-12)


def _smooth(x: Array, low: float, high: float) -> Array:
    """0 below ``low``, 1 above ``high``, smooth between."""
    s = np.clip((x - low) / (high - low), 0.0, 1.0)
    return s * s * (3.0 - 2.0 * s)
