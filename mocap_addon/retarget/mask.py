# SPDX-License-Identifier: GPL-3.0-or-later
"""New motion for parts of the body and a range of frames only; elsewhere the motion there was stays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import RigError
from ..motion.skeleton import Skeleton
from ..rig.roles import ARM_PARTS, FINGERS, LEG_PARTS, SIDES
from .motion import PoseMotion

Array = NDArray[np.float64]

PARTS: tuple[str, ...] = ("hips", "torso", "head", "left arm", "right arm", "left leg", "right leg", "fingers")
"""The parts of the body. Hips: their rotation and the travel. Arms begin at the clavicle. The neck belongs to the head."""

_PART_OF: dict[str, str] = {
    "root": "hips",
    "hips": "hips",
    "spine": "torso",
    **dict.fromkeys(("neck", "head", "jaw", "leftEye", "rightEye"), "head"),
    **{f"{side}{part}": f"{side} arm" for side in SIDES for part in ARM_PARTS},
    **{f"{side}{part}": f"{side} leg" for side in SIDES for part in LEG_PARTS},
    **{f"{side}{finger}": "fingers" for side in SIDES for finger in FINGERS},
}


@dataclass(frozen=True)
class Mask:
    """Where new motion goes; by default everywhere.

    Parameters
    ----------
    parts : frozenset of str
        Some of :data:`PARTS`.
    start, end : float or None
        First and last scene frame of the range; None: where the new motion starts or ends. Outside the range nothing changes.
    ease : float
        Frames inside the range, at either border, over which the old motion goes over into the new one.
    """

    parts: frozenset[str] = frozenset(PARTS)
    start: float | None = None
    end: float | None = None
    ease: float = 0.0

    def __post_init__(self) -> None:
        unknown = sorted(set(self.parts) - set(PARTS))
        if unknown:
            raise RigError(f'"{unknown[0]}" is not a part of the body; write some of: {", ".join(PARTS)}.')
        if not self.parts:
            raise RigError("No part of the body is chosen; choose at least one.")
        if self.start is not None and self.end is not None and self.end < self.start:
            raise RigError(f"The range ends (frame {self.end:g}) before it starts (frame {self.start:g}).")
        if not (math.isfinite(self.ease) and self.ease >= 0.0):
            raise RigError("The borders of a range cannot be eased over less than no frames.")

    def __bool__(self) -> bool:
        """Whether anything is left out."""
        return self.parts != frozenset(PARTS) or self.start is not None or self.end is not None or self.ease > 0.0

    def bounded(self, frames: Array) -> Mask:
        """The mask with a start and an end: where the new motion at scene frames ``(F,)`` has its own."""
        return replace(
            self,
            start=float(frames[0]) if self.start is None else self.start,
            end=float(frames[-1]) if self.end is None else self.end,
        )

    def weights(self, frames: Array) -> Array:
        """(F,): how much of the new motion shows at scene frames ``(F,)``: 0 to 1, by smoothstep at the borders."""
        start = frames[0] if self.start is None else self.start
        end = frames[-1] if self.end is None else self.end
        inside = np.minimum(frames - start, end - frames)
        x = np.clip(inside / self.ease, 0.0, 1.0) if self.ease > 0.0 else np.ones(len(frames))
        return np.where(inside < 0.0, 0.0, x * x * (3.0 - 2.0 * x))


NO_MASK = Mask()


def part_of(skeleton: Skeleton, roles: Mapping[str, tuple[int, ...]], joint: int) -> str:
    """The part of the body that a joint belongs to: its role's, or that of the nearest joint with a role above it; else the hips."""
    by_joint = {j: _PART_OF[role] for role, joints in roles.items() if role in _PART_OF for j in joints}
    return next((by_joint[j] for j in (joint, *skeleton.ancestors(joint)) if j in by_joint), "hips")


def blended(
    old: PoseMotion, new: PoseMotion, skeleton: Skeleton, roles: Mapping[str, tuple[int, ...]], mask: Mask, frames: Array
) -> PoseMotion:
    """The new motion where the mask lets it through, the old one elsewhere.

    Parameters
    ----------
    old, new : PoseMotion
        At the same times. Bones that only the new one has start from rest in the old one.
    skeleton : Skeleton
    roles : mapping from role to joints
    mask : Mask
    frames : (F,) array
        Scene frames of the samples.
    """
    weights = mask.weights(frames)
    none = np.zeros(len(frames))

    def weight(joint: int) -> Array:
        return weights if part_of(skeleton, roles, joint) in mask.parts else none

    rotations = new.rotations.copy(order="K")
    place = {joint: k for k, joint in enumerate(old.bones)}
    touched: set[int] = set()
    for k, joint in enumerate(new.bones):
        w = weight(joint)
        if np.all(w == 1.0):
            continue
        touched.add(joint)
        was = old.rotations[:, place[joint]] if joint in place else np.broadcast_to(quat.IDENTITY, rotations[:, k].shape)
        mixed = quat.slerp(was, rotations[:, k], w)
        mixed = np.where((w == 0.0)[:, None], was, np.where((w == 1.0)[:, None], rotations[:, k], mixed))
        rotations[:, k] = quat.continuous(mixed)
    locations = new.locations.copy(order="K")
    where = {joint: m for m, joint in enumerate(old.moving)}
    for m, joint in enumerate(new.moving):
        locations[:, m] = _mixed(old.locations[:, where[joint]] if joint in where else None, locations[:, m], weight(joint))
    placement = new.placement
    if placement is not None:
        placement = _mixed(old.placement, placement, weights if "hips" in mask.parts else none)
    turning = new.turning
    if turning is not None:
        was = quat.identity(len(frames)) if old.turning is None else old.turning
        turning = quat.continuous(quat.slerp(was, turning, weights if "hips" in mask.parts else none))
    scales = {joint: 1.0 + (values - 1.0) * w[:, None] for joint, values in new.scales.items() if np.any(w := weight(joint))}
    mixed_parts = {"rotations": rotations, "locations": locations, "placement": placement, "turning": turning, "scales": scales}
    return replace(new, **mixed_parts, held=new.held - touched)


def _mixed(was: Array | None, now: Array, w: Array) -> Array:
    return now * w[:, None] + (0.0 if was is None else was * (1.0 - w)[:, None])
