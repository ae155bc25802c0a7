# SPDX-License-Identifier: GPL-3.0-or-later
"""Which way a body stands and faces: its reference frame.

Character axes are (left, back, up) = (+X, +Y, +Z): a character faces -Y. The reference frame of a skeleton in some pose is the rotation
that turns that body upright and facing -Y.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import RigError
from ..motion.skeleton import Skeleton

Array = NDArray[np.float64]

MOST_SPREAD = np.radians(10.0)
"""However unsymmetric a body, its heading is not doubted by more."""

_PAIRED = ("UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot", "Shoulder")
_LIMBS = (("UpperArm", "LowerArm"), ("LowerArm", "Hand"), ("UpperLeg", "LowerLeg"), ("Shoulder", "UpperArm"))


@dataclass(frozen=True, eq=False)
class Pose:
    """A skeleton in its reference pose: ``rotations (J, 4)`` and ``positions (J, 3)`` in the world, metres, and the roles' joints."""

    skeleton: Skeleton
    rotations: Array
    positions: Array
    ends: Array
    roles: Mapping[str, tuple[int, ...]]

    def one(self, role: str) -> int | None:
        """First joint of a role, or None."""
        found = self.roles.get(role)
        return found[0] if found else None

    def place(self, role: str) -> Array | None:
        """(3,): where the role's first joint is, or None."""
        joint = self.one(role)
        return None if joint is None else self.positions[joint]


def rest_pose(skeleton: Skeleton, roles: Mapping[str, tuple[int, ...]]) -> Pose:
    """The skeleton's own rest pose as reference."""
    return Pose(skeleton, skeleton.rest_global_rotations, skeleton.rest_global_positions, skeleton.rest_global_ends, roles)


def posed(skeleton: Skeleton, roles: Mapping[str, tuple[int, ...]], rotations: Array, positions: Array) -> Pose:
    """Any pose as reference: global ``rotations (J, 4)`` and ``positions (J, 3)``."""
    return Pose(skeleton, rotations, positions, positions + quat.rotate(rotations, skeleton.ends), roles)


def up_axis(pose: Pose, axes: Array) -> Array:
    """(3,): the body's up, snapped to the nearest of the six axes of the space that ``axes (4,)`` turns into the world.

    Up points from the feet to the hips and on to the head. A body is built along an axis of its own space; leaning of a few degrees is its
    pose.
    """
    hips = pose.place("hips")
    if hips is None:
        raise RigError("No bone is matched as hips; match the hips first.")
    body = np.zeros(3)
    top = pose.place("head")
    if top is None:
        tops = [p for side in ("left", "right") if (p := pose.place(f"{side}UpperArm")) is not None]
        top = np.mean(tops, axis=0) if tops else None
    if top is not None:
        body += _unit(top - hips)
    feet = [p for side in ("left", "right") if (p := pose.place(f"{side}Foot")) is not None]
    if feet:
        body += _unit(hips - np.mean(feet, axis=0))
    directions = quat.rotate(axes, np.concatenate([np.eye(3), -np.eye(3)]))
    return directions[int(np.argmax(directions @ body))]


def left_axis(pose: Pose, up: Array) -> tuple[Array, float]:
    """(3,): the body's left, perpendicular to ``up``, and by how many radians the body itself disagrees about it.

    Every pair of mirrored joints and limbs votes with the vector between its two sides; the weighted median of the headings is taken.
    Skeletons measured from people are not quite symmetric at the hips, but most of their limbs are drawn exactly left and right, and the
    median follows those.
    """
    votes: list[Array] = []
    for part in _PAIRED:
        left, right = pose.place(f"left{part}"), pose.place(f"right{part}")
        if left is not None and right is not None:
            votes.append(left - right)
    for near, far in _LIMBS:
        points = [pose.place(f"{side}{part}") for side in ("left", "right") for part in (near, far)]
        if all(p is not None for p in points):
            a, b, c, d = (np.asarray(p) for p in points)
            votes.append(_unit(b - a) - _unit(d - c))
    flat = [v - up * float(v @ up) for v in votes]
    flat = [v for v in flat if float(np.linalg.norm(v)) > 1e-3]
    if not flat:
        raise RigError("Left and right of the body cannot be told apart; match the upper arms and upper legs of both sides.")
    total = np.sum([_unit(v) for v in flat], axis=0)
    if float(np.linalg.norm(total)) < 1e-6:
        raise RigError("Left and right bones lie on one spot or on the wrong sides; check the left and right bones in the table.")
    mean = _unit(total)
    forward = np.cross(mean, up)
    angles = np.array([np.arctan2(float(v @ forward), float(v @ mean)) for v in flat])
    weights = np.array([min(float(np.linalg.norm(v)), 1.0) for v in flat])
    median = _weighted_median(angles, weights)
    spread = min(float(np.abs(angles - median).max()), MOST_SPREAD)
    return quat.rotate(quat.from_axis_angle(np.cross(mean, forward), median), mean), spread


def to_character(pose: Pose, axes: Array) -> tuple[Array, float]:
    """(4,): the rotation that turns the body of ``pose`` upright (+Z) with its left to +X; and its doubt about the heading in radians."""
    up = up_axis(pose, axes)
    left, spread = left_axis(pose, up)
    return quat.from_matrix(np.stack([left, np.cross(up, left), up])), spread


def snapped_heading(rotation: Array, doubt: float) -> Array:
    """The rotation with its heading (turn about Z) put on the nearest quarter turn when it lies within ``doubt`` radians; ``(4,)`` ->
    ``(4,)``.

    Bodies are drawn facing along an axis. Where an unsymmetric one leaves its heading in doubt by some degrees, the axis is meant; a
    recording must not be turned by the difference. A body that agrees with itself keeps its heading to the last digit.
    """
    _, twist = quat.swing_twist(rotation, (0.0, 0.0, 1.0))
    heading = 2.0 * float(np.arctan2(twist[3], twist[0]))
    quarter = 0.5 * np.pi
    miss = heading - quarter * round(heading / quarter)
    if abs(miss) > doubt + 1e-6:
        return rotation
    return quat.mul(quat.from_axis_angle((0.0, 0.0, 1.0), -miss), rotation)


def _weighted_median(values: Array, weights: Array) -> float:
    order = np.argsort(values)
    values, cumulative = values[order], np.cumsum(weights[order])
    whole = float(cumulative[-1])
    i = int(np.searchsorted(cumulative, (0.5 - 1e-12) * whole))
    if abs(cumulative[i] - 0.5 * whole) < 1e-9 * whole and i + 1 < len(values):
        return 0.5 * float(values[i] + values[i + 1])
    return float(values[i])


def _unit(v: Array) -> Array:
    length = float(np.linalg.norm(v))
    return v / length if length > 1e-12 else np.zeros(3)
