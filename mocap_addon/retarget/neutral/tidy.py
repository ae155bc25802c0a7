# SPDX-License-Identifier: GPL-3.0-or-later
"""Skeletons whose joint frames are tidy: quarter turns of each other in the T-pose, as character software writes them.

Nothing says so in the file, but it shows: bones lie along an axis of their joint's frame to a fraction of a degree, and so do the hinges of
elbows and knees. Once most limbs agree there is little doubt that the rest is built alike, and what the motion can only tell within the
habits of a performer (a bowed head, drawn shoulders, bent wrists) is exact. Frames at random do not pass this test.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...motion import quat
from ...rig.roles import SIDES
from .estimate import LEFT, Estimate
from .observe import UP, Samples, turn_onto, unit

Array = NDArray[np.float64]

_ALONG = np.radians(1.0)
_AGREES = np.radians(12.0)
_SHARE = 0.75
_LIMBS = (("UpperArm", "LowerArm"), ("LowerArm", "Hand"), ("UpperLeg", "LowerLeg"), ("LowerLeg", "Foot"))
_REACH = {"limb": np.radians(25.0), "trunk": np.radians(32.0), "hand": np.radians(35.0)}
_WRIST = np.radians(50.0)
_SIDEWAYS = np.radians(15.0)


def _quarter_turns() -> Array:
    """(24, 4): the rotations that carry the axes onto axes."""
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    frames = [np.stack([x, y, np.cross(x, y)], axis=-1) for x in axes for y in axes if abs(float(x @ y)) < 0.5]
    return np.ascontiguousarray(quat.from_matrix(np.array(frames)))


QUARTER_TURNS: Array = _quarter_turns()


def nearest_quarter(rotation: Array) -> tuple[Array, float]:
    """(4,): the quarter turn nearest to ``rotation (4,)``, and the angle between (radians)."""
    angles = quat.angle(QUARTER_TURNS, rotation)
    best = int(np.argmin(angles))
    return QUARTER_TURNS[best], float(angles[best])


def is_tidy(s: Samples, found: Estimate) -> bool:
    """Whether limb bones lie along axes, and hinges too, in at least three limbs of four and six joints."""
    agree = known = 0
    for side in SIDES:
        for part, tip in _LIMBS:
            joint, end = s.one(f"{side}{part}"), s.one(f"{side}{tip}")
            if joint is None or end is None or joint not in found.rotations:
                continue
            known += 1
            bone = unit(s.reach(joint, end))
            along = float(np.arccos(np.clip(np.abs(bone).max(), 0.0, 1.0)))
            agree += along <= _ALONG and nearest_quarter(found.rotations[joint])[1] <= _AGREES
    return agree >= 6 and agree >= _SHARE * known


def tidy_body(s: Samples, found: Estimate) -> None:
    """Put limbs, trunk, clavicles and hands on the nearest quarter turn."""
    for role, joints in s.roles.items():
        part = role.removeprefix("left").removeprefix("right")
        kind = "limb" if any(part == p for p, _ in _LIMBS) else "trunk" if part in ("hips", "spine", "neck", "head", "Shoulder") else ""
        for joint in joints if kind else ():
            _put(found, joint, _REACH[kind])
    for side in SIDES:
        hand, forearm = s.one(f"{side}Hand"), s.one(f"{side}LowerArm")
        if hand is None or hand not in found.rotations:
            continue
        like_forearm = None if forearm is None else found.rotations.get(forearm)
        if like_forearm is not None and found.sure[hand] < 0.9 and float(quat.angle(like_forearm, found.rotations[hand])) < _WRIST:
            found.put(hand, like_forearm, 0.85)  # without knuckles: wrists are drawn like the forearm they hang on
        else:
            _put(found, hand, _REACH["hand"])


def tidy_feet(s: Samples, found: Estimate) -> None:
    """Put the axis from side to side of feet and toes on an axis of their frame; how far they slope stays as the motion shows it."""
    for side in SIDES:
        for joint in (j for part in ("Foot", "Toes") for j in s.roles.get(f"{side}{part}", ())):
            if joint not in found.rotations:
                continue
            undo = quat.inv(found.rotations[joint])
            sideways, up = quat.rotate(undo, LEFT), quat.rotate(undo, UP)
            k = int(np.argmax(np.abs(sideways)))
            axis = np.sign(sideways[k]) * np.eye(3)[k]
            if np.arccos(np.clip(float(axis @ sideways), -1.0, 1.0)) <= _SIDEWAYS:
                found.put(joint, turn_onto(axis, up, LEFT, UP), found.sure[joint])


def _put(found: Estimate, joint: int, within: float) -> None:
    if joint in found.rotations:
        turn, miss = nearest_quarter(found.rotations[joint])
        if miss <= within:
            found.put(joint, turn, max(found.sure[joint], 0.95))
