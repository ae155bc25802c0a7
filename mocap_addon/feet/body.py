# SPDX-License-Identifier: GPL-3.0-or-later
"""A character's legs and the points of its feet that touch the ground."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import RigError
from ..motion.skeleton import Skeleton
from ..rig.roles import SIDES, RoleMap

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Sole:
    """What a foot measures where the character stands at rest, metres. None: taken from the joints.

    Parameters
    ----------
    heel_height : float or None
        From the ankle joint down to the sole under the heel (a shoe's heel included).
    ball_height : float or None
        From the ball joint (where the toes begin) down to the sole under it.
    heel_offset : float or None
        From the ankle joint back to where the heel touches the ground.
    toe_length : float or None
        From the ball joint forward to the tip of the sole.
    ball_offset : float or None
        From the ankle joint forward to the ball; only feet without a toe joint need it.
    """

    heel_height: float | None = None
    ball_height: float | None = None
    heel_offset: float | None = None
    toe_length: float | None = None
    ball_offset: float | None = None


@dataclass(frozen=True, eq=False)
class Leg:
    """One leg. Joints may lie between those named (limbs split for skinning): they go along.

    Parameters
    ----------
    side : "left" or "right"
    thigh, shin, foot : int
        Joints at hip, knee and ankle.
    toe : int
        The joint at the ball; -1 where there is none.
    heel, ball : (3,) array
        Points of the sole in the foot joint's frame, metres. Where there is a toe joint the ball really is what lies ``sole.ball_height``
        under that joint, however the foot is turned: heels rise over toes that stay flat.
    joint : (3,) array
        The toe joint in the foot joint's frame; the ball where there is none.
    tip : (3,) array
        The sole's foremost point in the toe joint's frame (in the foot joint's, where there is no toe joint), metres.
    hinge : (3,) array
        Unit, in the thigh joint's frame: the axis that the knee bends about, should the leg be straight. A turn about it by a positive
        angle takes the shin back.
    forward, up : (3,) array
        Unit, in the foot joint's frame: where the foot points and away from the ground when its sole lies flat.
    sole : Sole
        The measures, all filled in.
    """

    side: str
    thigh: int
    shin: int
    foot: int
    toe: int
    heel: Array
    ball: Array
    joint: Array
    tip: Array
    hinge: Array
    forward: Array
    up: Array
    sole: Sole


@dataclass(frozen=True, eq=False)
class Feet:
    """Hips and two legs of one character.

    Parameters
    ----------
    hips : int
        The joint that carries both thighs and is moved when the pelvis is.
    legs : (left, right)
    length : float
        Hip to ankle along the leg, metres: the mean of both.
    notes : tuple of str
    """

    hips: int
    legs: tuple[Leg, Leg]
    length: float
    notes: tuple[str, ...] = ()


def find_feet(skeleton: Skeleton, roles: RoleMap, soles: Mapping[str, Sole] | None = None, pose: tuple[Array, Array] | None = None) -> Feet:
    """The legs of a skeleton.

    Parameters
    ----------
    skeleton : Skeleton
    roles : RoleMap
        Needs hips and, on both sides, upper leg, lower leg and foot.
    soles : mapping from "left" or "right" to Sole, optional
        Measures that are known (of the skinned mesh, or typed in).
    pose : (rotations (J, 4), positions (J, 3)), optional
        Global: a pose in which the character stands upright with its soles flat. None: the rest pose.

    Raises
    ------
    RigError
        A joint is missing, or the hips do not carry a leg.
    """
    rotations, positions = pose if pose is not None else (skeleton.rest_global_rotations, skeleton.rest_global_positions)
    missing = roles.missing(("hips", *(f"{side}{part}" for side in SIDES for part in ("UpperLeg", "LowerLeg", "Foot"))))
    if missing:
        raise RigError(f"Feet cannot be planted: no bone is known as {', '.join(missing)}; name the bones in the correction table.")
    hips = roles.one("hips")
    assert hips is not None
    floor = _floor(skeleton, roles, rotations, positions)
    legs = tuple(_leg(skeleton, roles, side, hips, floor, (soles or {}).get(side, Sole()), rotations, positions) for side in SIDES)
    lengths = [_length(positions, leg) for leg in legs]
    return Feet(hips, (legs[0], legs[1]), float(np.mean(lengths)))


def _length(positions: Array, leg: Leg) -> float:
    hip, knee, ankle = positions[leg.thigh], positions[leg.shin], positions[leg.foot]
    return float(np.linalg.norm(knee - hip) + np.linalg.norm(ankle - knee))


def _floor(skeleton: Skeleton, roles: RoleMap, rotations: Array, positions: Array) -> float:
    """Height of the ground under the standing character: z = 0 where it just stands on that, else its lowest foot joint or bone end."""
    joints = [j for side in SIDES for part in ("Foot", "Toes") for j in roles.chain(f"{side}{part}")]
    ends = positions[joints] + quat.rotate(rotations[joints], skeleton.ends[joints])
    lowest = float(np.nanmin(np.concatenate([positions[joints, 2], ends[:, 2]])))
    return 0.0 if 0.0 <= lowest <= 0.06 else lowest


def _leg(skeleton: Skeleton, roles: RoleMap, side: str, hips: int, floor: float, sole: Sole, rotations: Array, positions: Array) -> Leg:
    thigh, shin, foot = (roles.chain(f"{side}{part}")[0] for part in ("UpperLeg", "LowerLeg", "Foot"))
    toe = roles.one(f"{side}Toes")
    for joint, above in ((thigh, hips), (shin, thigh), (foot, shin), *(((toe, foot),) if toe is not None else ())):
        if joint == above or not skeleton.is_below(joint, above):
            raise RigError(
                f'Feet cannot be planted: the bone "{skeleton.names[joint]}" does not hang on "{skeleton.names[above]}"; '
                "choose the bones of the leg that deform the character."
            )
    ankle = positions[foot]
    forward = _forward(skeleton, rotations, positions, foot, toe)
    reach = _reach(skeleton, rotations, positions, foot, toe, forward)
    heel_height = _known(sole.heel_height, max(float(ankle[2]) - floor, 0.0))
    ball_height = _known(sole.ball_height, _ball_height(positions, toe, floor))
    heel_offset = _known(sole.heel_offset, 0.3 * reach)
    toe_length = _known(sole.toe_length, _toe_length(skeleton, rotations, positions, toe, forward, reach))
    ball_offset = _known(sole.ball_offset, reach) if toe is None else reach
    measured = Sole(heel_height, ball_height, heel_offset, toe_length, ball_offset)
    up = np.array([0.0, 0.0, 1.0])
    heel = ankle - forward * heel_offset - up * heel_height
    if toe is not None:
        ball = positions[toe] - up * ball_height
        tip = ball + forward * toe_length
    else:
        ball = np.array([*(ankle + forward * ball_offset)[:2], heel[2]])
        tip = ball + forward * toe_length
    at_tip = toe if toe is not None else foot
    into = quat.inv(rotations[foot])
    # the sole's own plane: through heel and ball, level from side to side
    along = ball - heel
    side_axis = np.cross(up, along)
    plane_up = np.cross(along, side_axis)
    plane_up = plane_up / np.linalg.norm(plane_up)
    across = np.cross(up, forward)  # towards the character's left
    return Leg(
        side, thigh, shin, foot, -1 if toe is None else toe,
        heel=quat.rotate(into, heel - ankle), ball=quat.rotate(into, ball - ankle),
        joint=quat.rotate(into, (ball if toe is None else positions[toe]) - ankle),
        tip=quat.rotate(quat.inv(rotations[at_tip]), tip - positions[at_tip]),
        hinge=quat.rotate(quat.inv(rotations[thigh]), across),
        forward=quat.rotate(into, along / np.linalg.norm(along)), up=quat.rotate(into, plane_up), sole=measured,
    )  # fmt: skip


def _known(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else float(value)


def _forward(skeleton: Skeleton, rotations: Array, positions: Array, foot: int, toe: int | None) -> Array:
    """Level direction that the foot points in: to the ball, else to the bone's end, else where characters face."""
    wanted = [positions[toe] - positions[foot]] if toe is not None else []
    wanted.append(quat.rotate(rotations[foot], skeleton.ends[foot]))
    for v in wanted:
        flat = np.array([v[0], v[1], 0.0])
        if np.all(np.isfinite(v)) and np.linalg.norm(flat) > 0.25 * np.linalg.norm(v) > 0.0:
            return flat / np.linalg.norm(flat)
    return np.array([0.0, -1.0, 0.0])


def _reach(skeleton: Skeleton, rotations: Array, positions: Array, foot: int, toe: int | None, forward: Array) -> float:
    """How far in front of the ankle the ball is."""
    ankle = positions[foot]
    if toe is not None:
        return max(float((positions[toe] - ankle) @ forward), 0.02)
    end = quat.rotate(rotations[foot], skeleton.ends[foot])
    whole = float(end @ forward) if np.all(np.isfinite(end)) else 0.0
    return 0.7 * whole if whole > 0.05 else 0.13


def _ball_height(positions: Array, toe: int | None, floor: float) -> float:
    return max(float(positions[toe][2]) - floor, 0.0) if toe is not None else 0.0


def _toe_length(skeleton: Skeleton, rotations: Array, positions: Array, toe: int | None, forward: Array, reach: float) -> float:
    if toe is not None:
        end = quat.rotate(rotations[toe], skeleton.ends[toe])
        if np.all(np.isfinite(end)) and float(end @ forward) > 0.01:
            return float(end @ forward)
    return 0.4 * reach
