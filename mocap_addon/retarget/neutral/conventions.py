# SPDX-License-Identifier: GPL-3.0-or-later
"""Known skeletons without a rest pose: where the axes of every joint's frame point in their T-pose.

A convention is believed when nothing in the take speaks against it: all limb bones lie where it says, hip joints and shoulders too, and
whatever hinges and soles the motion shows. Names do not count; exporters keep frames and change names.

To add one: for every role write where X, Y and Z of the joint's own frame point in the T-pose, as seen by the performer; what feet and toes
fall from level, in degrees, stands in ``slopes``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...motion import quat
from ...rig.roles import SIDES
from .estimate import LEFT, OUT, Estimate, chest_of
from .observe import UP, Samples, mean_direction, unit

Array = NDArray[np.float64]

_POINTS = {"left": (1, 0, 0), "right": (-1, 0, 0), "back": (0, 1, 0), "ahead": (0, -1, 0), "up": (0, 0, 1), "down": (0, 0, -1)}
_BONE = np.radians(3.0)
_ACROSS = np.radians(6.0)
_SHOWN = np.radians(15.0)
_SOLE = np.radians(6.0)
_TELLING = 0.6
"""An estimate at least so sure can speak against a convention."""

_LIMBS = (("UpperArm", "LowerArm"), ("LowerArm", "Hand"), ("UpperLeg", "LowerLeg"), ("LowerLeg", "Foot"))


@dataclass(frozen=True)
class Convention:
    """A skeleton's T-pose: role (its side written ``left`` or ``right``) -> axes, and slopes of feet and toes in degrees."""

    name: str
    axes: Mapping[str, str]
    slopes: Mapping[str, float] = field(default_factory=dict[str, float])

    def rotation(self, role: str) -> Array | None:
        """(4,): the joint's rotation in the T-pose, character axes, or None."""
        axes = self.axes.get(role)
        if axes is None:
            return None
        turn = quat.from_matrix(np.array([_POINTS[word] for word in axes.split()], dtype=np.float64).T)
        return quat.mul(quat.from_axis_angle(LEFT, np.radians(self.slopes.get(role, 0.0))), turn)


def _sides(**parts: tuple[str, str]) -> dict[str, str]:
    return {f"{side}{part}": axes for part, both in parts.items() for side, axes in zip(SIDES, both, strict=True)}


_ARMS = ("left up ahead", "left down back")
_ALIKE = ("left up ahead", "right up back")
BANDAI_NAMCO = Convention(
    "the Bandai-Namco motion dataset",
    {"hips": "up right ahead", "spine": "up ahead left", "neck": "up ahead left", "head": "up ahead left"}
    | _sides(Shoulder=_ARMS, UpperArm=_ARMS, LowerArm=_ARMS, Hand=_ARMS)
    | _sides(UpperLeg=("down left ahead", "up left back"), LowerLeg=("down left ahead", "up left back"))
    | _sides(Foot=("ahead left up", "back left down"), Toes=("ahead left up", "back left down")),
    {"leftFoot": 39.6, "rightFoot": 39.6, "leftToes": 22.4, "rightToes": 22.4},
)

_LEG, _FOOT = ("down left ahead", "down left ahead"), ("ahead up right", "ahead up right")
ROKOKO = Convention(
    "Rokoko Studio's BVH",
    {"hips": "left up ahead", "spine": "up right ahead", "neck": "up right ahead", "head": "left up ahead"}
    | _sides(Shoulder=_ALIKE, UpperArm=_ALIKE, LowerArm=_ALIKE, Hand=_ALIKE)
    | _sides(UpperLeg=_LEG, LowerLeg=_LEG, Foot=_FOOT, Toes=_FOOT),
    {"leftFoot": 25.3, "rightFoot": 25.3},
)

CONVENTIONS: tuple[Convention, ...] = (BANDAI_NAMCO, ROKOKO)


def known(s: Samples, estimate: Estimate) -> Convention | None:
    """The convention that take and estimate agree with, or None."""
    return next((convention for convention in CONVENTIONS if _agrees(s, estimate, convention)), None)


def _agrees(s: Samples, estimate: Estimate, convention: Convention) -> bool:
    for side in SIDES:
        for part, tip in _LIMBS:
            joint, end, turn = s.one(f"{side}{part}"), s.one(f"{side}{tip}"), convention.rotation(f"{side}{part}")
            wanted = OUT[side] if part.endswith("Arm") else -UP
            if joint is None or end is None or turn is None or not _near(quat.rotate(turn, s.reach(joint, end)), wanted, _BONE):
                return False
    for joint, role, pair in ((s.one("hips"), "hips", "UpperLeg"), (chest_of(s), "spine", "Shoulder")):
        across, turn = s.across(pair), convention.rotation(role)
        if (
            joint is None
            or across is None
            or turn is None
            or not _near(quat.rotate(turn, mean_direction(s.inside(joint, across))[0]), LEFT, _ACROSS)
        ):
            return False
    for role in convention.axes:
        joint, turn = s.one(role), convention.rotation(role)
        judged = any(part in role for part in ("UpperArm", "UpperLeg", "LowerLeg", "Foot"))
        shown = estimate.rotations.get(joint) if judged and joint is not None and estimate.sure.get(joint, 0.0) >= _TELLING else None
        if shown is not None and turn is not None and float(quat.angle(shown, turn)) > (_SOLE if role.endswith("Foot") else _SHOWN):
            return False
    return True


def _near(v: Array, wanted: Array, within: float) -> bool:
    return bool(float(unit(v) @ wanted) >= np.cos(within))


def follow(s: Samples, estimate: Estimate, convention: Convention) -> None:
    """Put every joint that the convention knows where it says."""
    for role in convention.axes:
        turn = convention.rotation(role)
        for joint in s.roles.get(role, ()):
            if turn is not None:
                estimate.put(joint, turn, 0.98)
