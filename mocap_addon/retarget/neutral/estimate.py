# SPDX-License-Identifier: GPL-3.0-or-later
"""What an estimate of a reference pose is made of, and its trunk: hips, spine, neck, head, clavicles.

Everything is in character axes (left +X, back +Y, up +Z): a joint's reference rotation turns what is fixed in its own frame (a bone, a
hinge, the sole) onto where that stands in a T-pose.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ...motion import quat
from ...rig.roles import FINGERS, SIDES
from .observe import UP, Samples, mean_direction, mean_rotation, turn_onto, unit

Array = NDArray[np.float64]

LEFT: Array = np.array([1.0, 0.0, 0.0])
BACK: Array = np.array([0.0, 1.0, 0.0])
OUT: dict[str, Array] = {"left": LEFT, "right": -LEFT}
"""Where an arm points in a T-pose."""


@dataclass
class Estimate:
    """Joint -> reference rotation ``(4,)`` in character axes and how sure, 0..1; and sentences about doubts."""

    rotations: dict[int, Array] = field(default_factory=dict[int, Array])
    sure: dict[int, float] = field(default_factory=dict[int, float])
    notes: list[str] = field(default_factory=list[str])

    def put(self, joint: int, rotation: Array, sure: float) -> None:
        """Set one joint."""
        self.rotations[joint], self.sure[joint] = rotation, round(float(np.clip(sure, 0.0, 1.0)), 3)

    def follow(self, joint: int, above: int, relative: Array, sure: float) -> None:
        """Set one joint by its rotation ``(4,)`` in the frame of another that is known."""
        self.put(joint, quat.mul(self.rotations[above], relative), min(sure, self.sure[above]))


def confidence(stray: float, worst: float = np.radians(45.0)) -> float:
    """0..1 from how far single frames stray from the mean (radians)."""
    return float(np.clip(1.0 - stray / worst, 0.1, 1.0))


def evidence(frames: int) -> float:
    """0..1 from how many frames show something: a handful is enough, one may be anything."""
    return min(1.0, 0.4 + 0.06 * frames)


def estimate_trunk(s: Samples, found: Estimate) -> None:
    """Hips, spine, neck, head.

    Left is exact for the hips and for the joint that carries the shoulders: the two hip joints (shoulders) lie left and right of each other
    in its frame. The joints between share both; the head looks where hips and chest face, on the whole. Up is where the trunk points while
    the body stands, for the head the world's up.
    """
    hips = s.one("hips")
    if hips is None:
        return
    low = s.across("UpperLeg")
    high = s.across("Shoulder")
    high = s.across("UpperArm") if high is None else high
    low = s.left if low is None else low
    high = low if high is None else high
    _put(s, found, hips, unit(low), s.trunk)
    spine = [j for j in s.roles.get("spine", ()) if j != hips]
    chest = chest_of(s)
    count = spine.index(chest) + 1 if chest in spine else len(spine)
    for k, joint in enumerate(spine):
        share = min(1.0, (k + 1) / max(count, 1))
        _put(s, found, joint, unit(unit(low) * (1.0 - share) + unit(high) * share), s.trunk)
    for joint in s.roles.get("neck", ()):
        _put(s, found, joint, unit(high), unit(s.trunk + UP))
    head = s.one("head")
    if head is not None:
        stood = float(np.median(s.trunk[s.upright, 2])) > 0.6
        _put(s, found, head, unit(unit(low) + unit(high)), np.broadcast_to(UP, s.trunk.shape) if stood else s.trunk)
        if not stood:
            found.notes.append("Nobody stands upright in this take; the reference of head and feet is a guess.")


def chest_of(s: Samples) -> int | None:
    """The joint that carries both shoulders."""
    for part in ("Shoulder", "UpperArm"):
        left, right = s.one(f"left{part}"), s.one(f"right{part}")
        if left is not None and right is not None:
            return next((j for j in s.skeleton.ancestors(left) if s.skeleton.is_below(right, j)), None)
    return None


def _put(s: Samples, found: Estimate, joint: int, left: Array, up: Array) -> None:
    stands = s.upright
    own_left, stray_left = mean_direction(s.inside(joint, left)[stands])
    own_up, stray_up = mean_direction(s.inside(joint, up)[stands])
    if float(np.linalg.norm(np.cross(own_left, own_up))) < 0.2:
        return
    found.put(
        joint,
        turn_onto(own_left, own_up, LEFT, UP),
        0.9 * confidence(max(stray_left, stray_up)) * min(1.0, 0.5 + 5.0 * float(stands.mean())),
    )


def estimate_clavicles(s: Samples, found: Estimate) -> None:
    """A clavicle stands to the chest as it mostly does."""
    for side in SIDES:
        for joint in s.roles.get(f"{side}Shoulder", ()):
            above = nearest_known(s, found, joint)
            if above is not None:
                relative, stray = mean_rotation(quat.mul(quat.inv(s.rotations[:, above]), s.rotations[:, joint]))
                found.follow(joint, above, relative, confidence(stray))


def estimate_fingers(s: Samples, found: Estimate) -> None:
    """Fingers stand to the hand as they mostly do."""
    for side in SIDES:
        hand = s.one(f"{side}Hand")
        for joint in (j for finger in FINGERS for j in s.roles.get(f"{side}{finger}", ())):
            if hand in found.rotations:
                relative, stray = mean_rotation(quat.mul(quat.inv(s.rotations[:, hand]), s.rotations[:, joint]))
                found.follow(joint, hand, relative, confidence(stray))


def fill(s: Samples, found: Estimate) -> None:
    """Everything else stands to the nearest known joint above it (or, above the hips, to the hips) as it mostly does."""
    for joint in range(len(s.skeleton)):
        if joint in found.rotations:
            continue
        above = nearest_known(s, found, joint)
        below = next((j for j in (s.one("hips"), *sorted(found.rotations)) if j is not None and s.skeleton.is_below(j, joint)), None)
        near = above if above is not None else below
        if near is None:
            found.put(joint, mean_rotation(s.rotations[:, joint])[0], 0.1)
        else:
            relative, stray = mean_rotation(quat.mul(quat.inv(s.rotations[:, near]), s.rotations[:, joint]))
            found.follow(joint, near, relative, confidence(stray))


def nearest_known(s: Samples, found: Estimate, joint: int) -> int | None:
    """The nearest joint above that has a rotation already."""
    return next((j for j in s.skeleton.ancestors(joint) if j in found.rotations), None)
