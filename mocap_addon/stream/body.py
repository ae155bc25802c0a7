# SPDX-License-Identifier: GPL-3.0-or-later
"""A person of average size in T-pose, for senders that send rotations alone, and for bodies that are to be sent.

Proportions after the segment lengths in Winter, Biomechanics and Motor Control of Human Movement (fractions of the stature H), H = 1.75 m.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..motion import kinematics, quat
from ..motion.skeleton import Skeleton

Array = NDArray[np.float64]

_HIPS, _NECK, _HEAD, _ARM = 0.95, 1.46, 1.56, 1.43
_FINGER_FAN: Mapping[str, float] = {"Index": -0.030, "Middle": -0.008, "Ring": 0.014, "Little": 0.034}
_FINGER_REACH: Mapping[str, tuple[float, ...]] = {
    "Index": (0.030, 0.092, 0.136, 0.160, 0.182),
    "Middle": (0.030, 0.094, 0.142, 0.170, 0.194),
    "Ring": (0.030, 0.090, 0.134, 0.160, 0.182),
    "Little": (0.030, 0.082, 0.114, 0.134, 0.154),
}
_LEFT: Mapping[str, tuple[float, float, float]] = {
    "Shoulder": (0.03, 0.01, 1.44),
    "UpperArm": (0.18, 0.01, _ARM),
    "LowerArm": (0.46, 0.01, _ARM),
    "Hand": (0.71, 0.01, _ARM),
    "UpperLeg": (0.09, 0.0, 0.92),
    "LowerLeg": (0.09, -0.005, 0.49),
    "Foot": (0.09, 0.02, 0.08),
    "Toes": (0.09, -0.12, 0.02),
    "ToeEnd": (0.09, -0.19, 0.015),
    "Eye": (0.032, -0.09, 1.63),
}


def place(role: str) -> tuple[float, float, float]:
    """Metres: where a joint of this role stands. ``spine:2/4`` is the second of four links, ``leftIndex:0`` a palm bone, 4 a fingertip."""
    name, _, link = role.partition(":")
    if name == "hips":
        return (0.0, 0.0, _HIPS)
    if name in ("spine", "neck"):
        i, n = map(int, link.split("/"))
        low, high = (1.02, _NECK) if name == "spine" else (_NECK, _HEAD)
        return (0.0, 0.01, low + (high - low) * (i - 1) / n)
    if name == "head":
        return (0.0, 0.0, _HEAD)
    if name == "jaw":
        return (0.0, -0.02, 1.585)
    side, part = (1.0, name[4:]) if name.startswith("left") else (-1.0, name[5:])
    if part in _LEFT:
        x, y, z = _LEFT[part]
        return (side * x, y, z)
    hand = _LEFT["Hand"]
    if part == "Thumb":
        along = (0.01, 0.030, 0.062, 0.090, 0.112)[int(link)]
        return (side * (hand[0] + along), hand[1] - 0.02 - 0.6 * along, hand[2] - 0.01)
    return (side * (hand[0] + _FINGER_REACH[part][int(link)]), hand[1] + _FINGER_FAN[part], hand[2])


def skeleton(names: Sequence[str], parents: Sequence[int], roles: Sequence[str]) -> Skeleton:
    """A skeleton with identity rest rotations whose joints stand where an average person's do."""
    return from_places(names, parents, np.array([place(role) for role in roles]))


def from_places(names: Sequence[str], parents: Sequence[int], places: Array) -> Skeleton:
    """The same from places ``(J, 3)`` in the world at rest."""
    above = np.asarray(parents, dtype=np.int64)
    offsets = np.where((above >= 0)[:, None], places - places[np.maximum(above, 0)], places)
    return Skeleton(tuple(names), above, offsets)


_TOES = 0.02
"""Metres: what a ball of the foot is over the floor."""


def lowest(local_rotations: Array, local_translations: Array, parents: Sequence[int]) -> float:
    """Metres: height of the lowest joint of a pose."""
    above = np.asarray(parents, dtype=np.int64)
    return float(kinematics.forward(local_rotations, local_translations, above)[1][:, 2].min())


def from_offsets(names: Sequence[str], parents: Sequence[int], offsets: Array, low: float = _TOES) -> Skeleton:
    """The same from places ``(J, 3)`` in parents at rest.

    Roots stand so that the lowest joint is ``low`` metres over the floor: as high as it was in a pose on the ground. Other heights (of a
    jump, of somebody who sits) are not believed.
    """
    low = low if 0.0 <= low <= 0.15 else _TOES
    above = np.asarray(parents, dtype=np.int64)
    out = np.where(np.isfinite(offsets) & (above >= 0)[:, None], offsets, 0.0)
    places = out.copy()
    for j, p in enumerate(above.tolist()):
        if p >= 0:
            places[j] += places[p]
    out[above < 0, 2] = low - float(places[:, 2].min())
    return Skeleton(tuple(names), above, out)


def measured(names: Sequence[str], parents: Sequence[int], positions: Array, rotations: Array) -> Skeleton:
    """The T-pose behind one pose: ``positions (J, 3)`` and ``rotations (J, 4)`` in the world, counted from the T-pose.

    A bone's offset is its place in its parent's frame; the lowest joint stays as high as it is. Joints without a place stand on their
    parents.
    """
    above = np.asarray(parents, dtype=np.int64)
    safe = np.maximum(above, 0)
    return from_offsets(
        names, parents, quat.rotate(quat.inv(rotations[safe]), positions - positions[safe]), float(np.nanmin(positions[:, 2]))
    )


def scaled_to(body: Skeleton, hips_height: float) -> Skeleton:
    """``body`` made as large as one whose first joint stands ``hips_height`` metres high; unchanged where that is no person's height."""
    own = float(body.rest_translations[0, 2])
    if not (0.3 <= hips_height <= 2.5) or own <= 0.0:
        return body
    return body.with_rest(body.rest_rotations, body.rest_translations * (hips_height / own))


def scaled_to_pose(body: Skeleton, local_rotations: Array, root_height: float) -> Skeleton:
    """``body`` made as large as one that stands on the floor in this pose ``(J, 4)`` with its root ``root_height`` metres high.

    Unchanged where that would be no person (a jump, a fall, a floor elsewhere).
    """
    offsets = body.rest_translations.copy()
    offsets[0] = 0.0
    rotations = kinematics.global_rotations(local_rotations, body.parents)
    drop = -float(kinematics.global_positions(rotations, offsets, body.parents)[:, 2].min())
    drop += float(body.rest_global_positions[:, 2].min())
    if drop <= 0.3 or not 0.5 <= root_height / drop <= 1.5:
        return body
    return body.with_rest(body.rest_rotations, body.rest_translations * (root_height / drop))
