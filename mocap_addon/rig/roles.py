# SPDX-License-Identifier: GPL-3.0-or-later
"""What a joint is: roles, named after the VRM 1.0 humanoid.

A role holds one joint or a chain of joints in order from the body outwards. ``spine`` is every link between hips and neck
(VRM's spine, chest, upperChest and any number more); ``neck`` likewise; a finger is one role with its links. Two skeletons with chains of
different counts are matched by arc length, never by number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

FINGERS: tuple[str, ...] = ("Thumb", "Index", "Middle", "Ring", "Little")
SIDES: tuple[str, ...] = ("left", "right")

CENTRE_ROLES: tuple[str, ...] = ("root", "hips", "spine", "neck", "head", "jaw", "leftEye", "rightEye")
ARM_PARTS: tuple[str, ...] = ("Shoulder", "UpperArm", "LowerArm", "Hand")
LEG_PARTS: tuple[str, ...] = ("UpperLeg", "LowerLeg", "Foot", "Toes")

ROLES: tuple[str, ...] = (
    *CENTRE_ROLES,
    *(f"{side}{part}" for side in SIDES for part in (*ARM_PARTS, *FINGERS)),
    *(f"{side}{part}" for side in SIDES for part in LEG_PARTS),
)
"""Every role, centre first, then arms with fingers, then legs."""

CHAIN_ROLES: frozenset[str] = frozenset({"spine", "neck", *(f"{side}{finger}" for side in SIDES for finger in FINGERS)})
"""Roles that may hold any number of links."""

REQUIRED_ROLES: tuple[str, ...] = (
    "hips",
    *(f"{side}{part}" for side in SIDES for part in ("UpperArm", "LowerArm", "UpperLeg", "LowerLeg", "Foot")),
)
"""Without these a skeleton is not a humanoid that motion can be carried to or from."""


HELPER = "helper"
"""The role of rows for joints without a meaning of their own that both skeletons have under one name (CMU's LHipJoint, twist bones)."""


def mirrored(role: str) -> str:
    """``leftHand`` <-> ``rightHand``; a role of the centre stays."""
    if role.startswith("left"):
        return "right" + role[4:]
    if role.startswith("right"):
        return "left" + role[5:]
    return role


@dataclass(frozen=True)
class RoleMap:
    """Which joints of a skeleton play which roles.

    Parameters
    ----------
    joints : mapping from role to tuple of int
        Joint indices, from the body outwards. Roles that are missing have no entry.
    family : str
        The naming family that explains the names ("Mixamo", "Xsens MVN"), or "structure" when only the hierarchy did.
    confidence : mapping from role to float
        0..1: 1 the family's own name in its own place; below 0.75 doubtful.
    notes : tuple of str
        What a person should know, one plain sentence each.
    twists : mapping from int to str
        Twist bone -> role of the limb bone whose roll it shares (:mod:`.twist`).
    """

    joints: Mapping[str, tuple[int, ...]]
    family: str = ""
    confidence: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: tuple[str, ...] = ()
    twists: Mapping[int, str] = field(default_factory=dict[int, str])

    def one(self, role: str) -> int | None:
        """The first joint of ``role``, or None."""
        found = self.joints.get(role)
        return found[0] if found else None

    def last(self, role: str) -> int | None:
        """The outermost joint of ``role``, or None."""
        found = self.joints.get(role)
        return found[-1] if found else None

    def chain(self, role: str) -> tuple[int, ...]:
        """All joints of ``role``; empty when it is missing."""
        return tuple(self.joints.get(role, ()))

    def missing(self, wanted: Iterable[str] = REQUIRED_ROLES) -> tuple[str, ...]:
        """Those of ``wanted`` that have no joint."""
        return tuple(role for role in wanted if not self.joints.get(role))
