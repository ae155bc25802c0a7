# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the hips go, and the locations of other movable bones.

What stands on the ground are the legs, so it is the middle between the two hip joints that is carried over, not the hips bone: rigs place
that bone anywhere between the crotch and the navel.

With ``m(t)`` that middle on the source, ``a`` the height of its ankles over the ground at the reference pose, ``k`` the scale of travel
(ratio of leg lengths), and the same with a prime on the target:

    m'(t) = k A m(t) + (a' - k a) up                          hips'(t) = m'(t) - T(t) T0^-1 (m0' - hips0')

The legs point as the source's do and are ``k`` times as long, so the hips stand ``k`` times as high over the ankle, which has its own
height over the ground: a stretched leg stays as stretched, a planted sole planted. The heights of the hips at the reference pose would
not do: where that pose spreads or bends the legs, the hips are lower than the legs are long.

The ground of a rest pose is the plane of its origin when the body stands on it. A rest pose that hangs anywhere (most BVH files put the
hips at the origin) says only where its lowest joint is; how thick the sole is below it shows in the motion, where the ground is at zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..motion import kinematics, quat
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from ..rig.roles import SIDES
from . import scales
from .align import Body
from .build import Bodies

if TYPE_CHECKING:
    from .transfer import BlockMotion

Array = NDArray[np.float64]

STANDING = 0.15
"""A body whose lowest point lies this share of its hip height or less above the origin's plane stands on it: the rest is sole and skin."""


_SAMPLES = 120
_THICKEST = 0.12
_NOTHING = 1e-6


def leg_length(body: Body) -> float:
    """Metres: upper plus lower leg, mean of the sides; 0 when no leg is known."""
    lengths: list[float] = []
    for side in SIDES:
        points = [body.place(body.pose.one(f"{side}{part}")) for part in ("UpperLeg", "LowerLeg", "Foot")]
        if all(p is not None for p in points):
            hip, knee, ankle = (np.asarray(p) for p in points)
            lengths.append(float(np.linalg.norm(knee - hip) + np.linalg.norm(ankle - knee)))
    return float(np.mean(lengths)) if lengths else 0.0


def travel_scale(bodies: Bodies) -> float:
    """Ratio of leg lengths, target over source; 1 when either is not known."""
    source, target = leg_length(bodies.source), leg_length(bodies.target)
    return target / source if source > 1e-9 and target > 1e-9 else 1.0


def hip_middle(body: Body) -> Array:
    """(3,): the middle between the hip joints in character axes; the hips themselves when a leg is missing."""
    sides = [body.place(body.pose.one(f"{side}UpperLeg")) for side in SIDES]
    hips = body.place(body.pose.one("hips"))
    if any(p is None for p in sides):
        return np.asarray(hips)
    return 0.5 * (np.asarray(sides[0]) + np.asarray(sides[1]))


def ankle_height(body: Body) -> float | None:
    """Metres, character axes: height of the ankles at the reference pose, mean of the sides; None when one is not known."""
    ankles = [body.place(body.pose.one(f"{side}Foot")) for side in SIDES]
    return None if any(p is None for p in ankles) else float(np.mean([np.asarray(p)[2] for p in ankles]))


def ground_height(body: Body, sole: float) -> float:
    """Metres, character axes: the height of the ground that the body stands on at its reference pose.

    ``sole`` is the thickness below the lowest joint where the pose does not show it.
    """
    lowest, stands = _lowest(body)
    return 0.0 if stands else lowest - sole


def _lowest(body: Body) -> tuple[float, bool]:
    """Height of the lowest joint of the feet at the reference pose, and whether the body stands on the plane of its origin."""
    joints, tips = _feet(body)
    heights = np.concatenate([body.positions[joints, 2], body.ends[tips, 2]]) if joints else body.positions[:, 2]
    lowest = float(np.nanmin(heights))
    reach = float(hip_middle(body)[2]) - lowest
    return lowest, -0.02 * reach <= lowest <= STANDING * reach


def _feet(body: Body) -> tuple[list[int], list[int]]:
    """Joints of feet and toes, and the feet without toes, whose bone ends at the toes. Where a leaf bone ends says nothing otherwise: many
    exporters let it point anywhere."""
    roles = body.pose.roles
    joints = [j for side in SIDES for part in ("Foot", "Toes") for j in roles.get(f"{side}{part}", ())]
    return joints, [j for side in SIDES if not roles.get(f"{side}Toes") for j in roles.get(f"{side}Foot", ())]


def sole_thickness(take: Take, bodies: Bodies) -> float:
    """Metres below the source's lowest joint: as its rest stands, else in stance (the 5th percentile over the take); 0 where the ground is
    not at zero."""
    body = bodies.source
    lowest, stands = _lowest(body)
    if stands:
        return float(np.clip(lowest, 0.0, _THICKEST * leg_length(body)))
    picked = np.unique(np.linspace(0, take.frames - 1, min(take.frames, _SAMPLES)).astype(int))
    feet, tips = _feet(body)
    if not feet:
        return 0.0
    moving = len(take.local_translations) == take.frames
    translations = take.local_translations[picked] if moving else take.local_translations
    rotations = kinematics.global_rotations(take.local_rotations[picked], take.skeleton.parents, feet)
    positions = kinematics.global_positions(rotations, translations, take.skeleton.parents, feet)
    ends = positions[:, tips] + quat.rotate(rotations[:, tips], take.skeleton.ends[tips])
    heights: Array = quat.rotate(body.turn, np.concatenate([positions[:, feet], ends], axis=1))[..., 2]
    lows: Array = np.nanmin(heights, axis=1)
    height = float(np.percentile(lows, 5.0))
    return height if 0.0 < height <= _THICKEST * leg_length(body) else 0.0


WHOLE = -1
"""In place of a bone: the character as a whole."""


def hips(
    target: Skeleton,
    bodies: Bodies,
    scale: float | None,
    sole: float,
    bone: int,
    joint: int,
    correction: Array,
    carrier: int | None = None,
    heights: float | None = None,
) -> Callable[[Take, BlockMotion], Array]:
    """A function from a block of the take to the hips bone's locations ``(f, 3)`` (metres, in the bone's own rest frame).

    ``sole`` is what :func:`sole_thickness` found. ``correction (4,)`` is the hips' own: they turn about the middle between the hip joints,
    so that the legs stay where they stand. With a ``carrier`` the locations are those of another bone, above the hips, or of the whole
    character (:data:`WHOLE`, in the world's axes). Everything between the two is at rest, so that the hips are displaced as the carrier is.
    ``heights`` is another scale for ups and downs.
    """
    k = travel_scale(bodies) if scale is None else scale
    a = bodies.source.turn
    pose = bodies.source.pose
    to_middle = quat.rotate(quat.inv(quat.mul(a, pose.rotations[joint])), hip_middle(bodies.source) - bodies.source.positions[joint])
    up = k if heights is None else heights
    standing = float(hip_middle(bodies.source)[2]) - ground_height(bodies.source, sole)
    lift = np.array([0.0, 0.0, _lift(bodies, k, sole) + (k - up) * standing])
    stretch: Array | float = k if heights is None else np.array([k, k, up])
    back = quat.rotate(correction, bodies.target.positions[bone] - hip_middle(bodies.target))
    undo_reference = quat.inv(quat.mul(a, pose.rotations[joint]))
    to_local = _to_local(target, bone, bone if carrier is None else carrier)

    def run(take: Take, motion: BlockMotion) -> Array:
        turn = quat.mul(a, motion.global_rotation(joint))
        middle = quat.rotate(a, motion.global_position(joint)) + quat.rotate(turn, to_middle)
        delta = quat.mul(turn, undo_reference)
        return to_local(stretch * middle + lift + quat.rotate(delta, back))

    return run


def _lift(bodies: Bodies, k: float, sole: float) -> float:
    """``a' - k a``; with the heights of the hips where an ankle is not known."""
    source, target = ankle_height(bodies.source), ankle_height(bodies.target)
    if source is None or target is None:
        source, target = float(hip_middle(bodies.source)[2]), float(hip_middle(bodies.target)[2])
    return target - ground_height(bodies.target, k * sole) - k * (source - ground_height(bodies.source, sole))


def other(
    source: Skeleton,
    target: Skeleton,
    bodies: Bodies,
    scale: float | None,
    bone: int,
    joint: int,
    scaled: frozenset[int] = frozenset(),
) -> Callable[[Take, BlockMotion], Array]:
    """The same for a movable bone below the hips: how far the source joint has left its rest offset, in its parent's frame, scaled.

    What joints of ``scaled`` do to it by being scaled is left out: the bones that follow them do it.
    """
    k = travel_scale(bodies) if scale is None else scale
    p_source, p_target = int(source.parents[joint]), int(target.parents[bone])
    rest_parent = quat.mul(bodies.source.turn, bodies.source.pose.rotations[p_source] if p_source >= 0 else quat.IDENTITY)
    target_parent = quat.mul(bodies.target.turn, target.rest_global_rotations[p_target] if p_target >= 0 else quat.IDENTITY)
    turn = quat.mul(quat.inv(quat.mul(target_parent, target.rest_rotations[bone])), rest_parent)

    def run(take: Take, motion: BlockMotion) -> Array:
        stretched = scales.above(take, source, joint, scaled) if scaled else None
        place = take.local_translations[:, joint]
        rest = source.rest_translations[joint]
        if stretched is not None:  # what hangs on a bone without extent is nowhere: at rest
            gone = np.abs(stretched) < _NOTHING
            place = np.where(gone, rest, place / np.where(gone, 1.0, stretched))
        moved = place - rest
        return np.broadcast_to(k * quat.rotate(turn, moved), (take.frames, 3))

    return run


def _to_local(target: Skeleton, bone: int, carrier: int) -> Callable[[Array], Array]:
    """World places of ``bone`` ``(f, 3)`` -> locations in the carrier's rest frame. What stands above the hips stays at rest."""
    rest = target.rest_global_positions[bone]
    turn = quat.IDENTITY if carrier == WHOLE else quat.inv(target.rest_global_rotations[carrier])
    return lambda places: quat.rotate(turn, places - rest)
