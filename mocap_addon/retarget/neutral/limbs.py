# SPDX-License-Identifier: GPL-3.0-or-later
"""Arms and legs of an estimated reference pose: the bone from the offsets, the roll about it from the hinge of elbow and knee.

With ``d`` the upper bone's direction and ``f(t)`` the lower one's, both in the upper joint's frame, ``d x f(t)`` is the hinge, times the
sine of the flexion; whatever twists the forearm does not show in it. Elbows and knees flex one way only, so its sum over the frames has the
right sign. In a T-pose with the palms down the left forearm flexes ahead: ``X x -Y = -Z``; the right one ``-X x -Y = +Z``; both shins flex
back: ``-Z x +Y = +X``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...motion import quat
from ...rig.matcher import spoken
from ...rig.roles import FINGERS, SIDES
from .estimate import LEFT, OUT, Estimate, confidence, evidence, nearest_known
from .observe import UP, Samples, mean_direction, mean_rotation, turn_onto, unit

Array = NDArray[np.float64]

FLEXED = np.radians(20.0)
"""Flexion from which a joint shows its hinge."""
_ENOUGH = 5


def estimate_limbs(s: Samples, found: Estimate) -> None:
    """Upper and lower arms and legs, and hands."""
    for side in SIDES:
        _limb(s, found, side, ("UpperArm", "LowerArm", "Hand"), OUT[side], -UP if side == "left" else UP)
        _hand(s, found, side)
        _limb(s, found, side, ("UpperLeg", "LowerLeg", "Foot"), -UP, LEFT)


def _limb(s: Samples, found: Estimate, side: str, parts: tuple[str, str, str], along: Array, hinge: Array) -> None:
    """Both bones of a limb that points ``along`` in the reference and bends about ``hinge``."""
    upper, lower, tip = (s.one(f"{side}{part}") for part in parts)
    if upper is None or lower is None:
        return
    upper_bone = unit(s.reach(upper, lower))
    lower_tip = _tip(s, lower, tip)
    if not upper_bone.any() or lower_tip is None:
        return
    lower_bone = unit(s.reach(lower, lower_tip))
    if not lower_bone.any():
        return
    forearm = quat.rotate(quat.mul(quat.inv(s.rotations[:, upper]), s.rotations[:, lower]), lower_bone)
    axes = np.cross(upper_bone, forearm)
    angle = np.arctan2(np.linalg.norm(axes, axis=1), forearm @ upper_bone)
    flexed = angle > FLEXED
    if int(flexed.sum()) >= _ENOUGH or float(flexed.mean()) > 0.5:
        axis, stray = mean_direction(axes[flexed])
        sure = 0.95 * confidence(stray) * evidence(int(flexed.sum()))
    else:
        axis, stray = _untwisted(s, upper, upper_bone, along, hinge)
        sure = 0.45 * confidence(stray)
        found.notes.append(f"The {spoken(side + parts[1])} never bends by 20 degrees; its roll was guessed from how the limb hangs.")
    if float(np.linalg.norm(np.cross(upper_bone, axis))) < 0.1:
        return
    found.put(upper, turn_onto(upper_bone, axis, along, hinge), sure)
    seen = s.inside(lower, quat.rotate(s.rotations[:, upper], axis))
    lower_axis, twist = mean_direction(seen - lower_bone * (seen @ lower_bone)[:, None])
    dorsal = _dorsal_from(s, side, lower) if parts[2] == "Hand" else None
    if dorsal is not None:
        # A forearm that turns with the hand has its roll from the palm, which then hardly turns in its frame, while the elbow's hinge does.
        own, palm_twist = mean_direction(dorsal - lower_bone * (dorsal @ lower_bone)[:, None])
        if palm_twist + np.radians(3.0) < twist:
            lower_axis, twist = own * float(hinge @ UP), palm_twist
    found.put(lower, turn_onto(lower_bone, lower_axis, along, hinge), min(sure, 0.95 * confidence(twist)))


def _tip(s: Samples, joint: int, tip: int | None) -> int | None:
    """What a bone points to: the next joint of the limb, else its farthest child."""
    if tip is not None and s.skeleton.is_below(tip, joint):
        return tip
    children = s.skeleton.children[joint]
    return max(children, key=lambda c: float(np.linalg.norm(s.offsets[c]))) if children else tip


def _untwisted(s: Samples, joint: int, bone: Array, along: Array, hinge: Array) -> tuple[Array, float]:
    """The hinge in the joint's frame if the limb mostly swings from its reference without twisting; ``(3,)`` and stray in radians."""
    now = quat.rotate(quat.inv(s.body), quat.rotate(s.rotations[:, joint], bone))
    swing = quat.between(np.broadcast_to(along, now.shape), now)
    expected = quat.rotate(s.body, quat.rotate(swing, hinge))
    stands = s.upright
    return mean_direction(s.inside(joint, expected)[stands])


def dorsal_normal(s: Samples, side: str) -> Array | None:
    """(3,): where the back of the hand faces in the hand's frame, from its knuckles; None without two fingers."""
    hand = s.one(f"{side}Hand")
    knuckles = [j for finger in FINGERS[1:] if (j := s.one(f"{side}{finger}")) is not None]
    if hand is None or len(knuckles) < 2:
        return None
    first, last = s.reach(hand, knuckles[0]), s.reach(hand, knuckles[-1])
    normal = np.cross(first, last)
    if float(np.linalg.norm(normal)) < 0.02 * float(np.linalg.norm(first) * np.linalg.norm(last)):
        return None
    return unit(normal) * (1.0 if side == "left" else -1.0)


def _dorsal_from(s: Samples, side: str, joint: int) -> Array | None:
    """(f, 3): the back of the hand seen from ``joint``."""
    hand, normal = s.one(f"{side}Hand"), dorsal_normal(s, side)
    if hand is None or normal is None:
        return None
    return s.inside(joint, quat.rotate(s.rotations[:, hand], normal))


def _hand(s: Samples, found: Estimate, side: str) -> None:
    """The hand: along the arm and palm down by its knuckles; without fingers it stands to the forearm as it mostly does."""
    hand = s.one(f"{side}Hand")
    if hand is None:
        return
    normal = dorsal_normal(s, side)
    if normal is not None:
        knuckles = [s.reach(hand, j) for finger in FINGERS[1:] if (j := s.one(f"{side}{finger}")) is not None]
        found.put(hand, turn_onto(unit(np.sum(knuckles, axis=0)), normal, OUT[side], UP), 0.95)
    else:
        above = nearest_known(s, found, hand)
        if above is not None:
            relative, stray = mean_rotation(quat.mul(quat.inv(s.rotations[:, above]), s.rotations[:, hand]))
            found.follow(hand, above, relative, 0.7 * confidence(stray))
