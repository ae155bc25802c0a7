# SPDX-License-Identifier: GPL-3.0-or-later
"""A relaxed hand for characters whose fingers the take does not move.

A finger curls about its own axis, found from the rest pose: the normal of the back of the hand times the finger's direction, so that a
positive turn takes the finger towards the palm on either hand. What a finger is bent already at rest counts: only the rest of the angle is
added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.skeleton import Skeleton
from ..rig.roles import FINGERS, SIDES
from .align import Body, unit
from .motion import PoseMotion

Array = NDArray[np.float64]

FLEXION: dict[str, tuple[float, float, float]] = {
    "Thumb": (8.0, 12.0, 16.0),
    "Index": (14.0, 26.0, 14.0),
    "Middle": (20.0, 30.0, 16.0),
    "Ring": (24.0, 34.0, 18.0),
    "Little": (26.0, 34.0, 20.0),
}
"""Degrees at knuckle, middle and end joint of a hand that hangs at ease: each finger a little more closed than the one before it."""


def relaxed(motion: PoseMotion, target: Skeleton, body: Body, share: float = 1.0) -> PoseMotion:
    """The motion with every finger that it does not move curled by ``share`` of :data:`FLEXION`, one key each.

    Each finger by itself: recordings are common that have one joint for the thumb and nothing else.
    """
    bases: dict[int, Array] = {}
    for side in SIDES:
        normal = body.palm(side)
        for finger in FINGERS if normal is not None else ():
            chain = body.pose.roles.get(f"{side}{finger}", ())
            if normal is not None and not any(joint in motion.bones for joint in chain):
                bases.update(_curled(target, body, normal, chain, _hand(body, side), np.radians(FLEXION[finger]) * share))
    if not bases:
        return motion
    bones = tuple(sorted({*motion.bones, *bases}))
    rotations = np.empty((len(motion.times), len(bones), 4), order="F")
    place = {joint: k for k, joint in enumerate(motion.bones)}
    for k, joint in enumerate(bones):
        rotations[:, k] = bases[joint] if joint in bases else motion.rotations[:, place[joint]]
    return replace(motion, bones=bones, rotations=rotations, held=motion.held | bases.keys())


def _hand(body: Body, side: str) -> Array | None:
    return body.place(body.pose.one(f"{side}Hand"))


def _curled(
    target: Skeleton, body: Body, normal: Array, chain: tuple[int, ...], hand: Array | None, flexion: Array
) -> Iterator[tuple[int, Array]]:
    """Joint and basis ``(4,)`` of every link; palm bones in front of three links are left alone."""
    links = chain[-3:]
    points = [body.positions[j] for j in links]
    end = body.ends[links[-1]] if links else np.full(3, np.nan)
    if not links or (len(links) == 1 and not np.all(np.isfinite(end))):
        return
    whole = unit((points[-1] if len(links) > 1 else end) - points[0])
    axis = np.cross(normal, whole)
    if float(np.linalg.norm(axis)) < 0.1:
        return
    axis = unit(axis)
    before = hand if len(chain) == len(links) else body.positions[chain[-4]]
    directions = [None if before is None else points[0] - before]
    directions += [b - a for a, b in pairwise(points)]
    directions.append(end - points[-1] if np.all(np.isfinite(end)) else None)
    wanted = flexion[: len(links)].copy()
    wanted[-1] += 0.5 * float(flexion[len(links) :].sum())  # fewer links bend more each
    for k, joint in enumerate(links):
        add = max(0.0, float(wanted[k]) - _bend(directions[k], directions[k + 1], axis))
        own = quat.rotate(quat.inv(quat.mul(body.turn, target.rest_global_rotations[joint])), axis)
        yield joint, quat.from_axis_angle(own, add)


def _bend(first: Array | None, second: Array | None, axis: Array) -> float:
    """Radians about the axis from one direction to the next; 0 where either is not known."""
    if first is None or second is None:
        return 0.0
    a, b = first - axis * float(first @ axis), second - axis * float(second @ axis)
    if float(np.linalg.norm(a)) < 1e-9 or float(np.linalg.norm(b)) < 1e-9:
        return 0.0
    return float(np.arctan2(np.cross(a, b) @ axis, a @ b))
