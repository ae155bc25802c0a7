# SPDX-License-Identifier: GPL-3.0-or-later
"""From foot and pelvis targets to the rotations of bones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from . import legs as solver
from .body import Feet
from .pose import Legs, soles
from .settings import FeetSettings

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Baked:
    """Local transforms of what changed, and where it is.

    Parameters
    ----------
    joints, local_rotations, moving, local_translations
        As in :class:`.result.FeetResult`.
    solved : Solved
    foot, toe : (F, 2, 4) array
        World.
    toe_joint : (F, 2, 3) array
    soles : (F, 2, 3, 3) array
    """

    joints: tuple[int, ...]
    local_rotations: Array
    moving: tuple[int, ...]
    local_translations: Array
    solved: solver.Solved
    foot: Array
    toe: Array
    toe_joint: Array
    soles: Array


def toe_joints(legs: Legs, ankle: Array, foot: Array) -> Array:
    """(F, 2, 3): the toe joints of feet that are carried elsewhere."""
    return ankle + quat.rotate(foot, quat.rotate(quat.inv(legs.foot), legs.ball - legs.ankle))


def bake(
    take: Take, feet: Feet, legs: Legs, pelvis: Array, ankle: Array, foot: Array, toe: Array, normal: Array, gate: Array,
    settings: FeetSettings,
) -> Baked:  # fmt: skip
    """Solve the legs and express everything in the bones' own frames.

    Parameters
    ----------
    take : Take
    feet : Feet
    legs : Legs
        Of the take.
    pelvis : (F, 3) array
        Offset of the hips, world, metres; gated already.
    ankle, foot, toe : (F, 2, 3), (F, 2, 4), (F, 2, 4) arrays
        Targets at full strength.
    normal : (F, 2, 3) array
        Of what each foot stands on.
    gate : (F, 2) array
        0: the leg as the source has it, carried by the hips.
    settings : FeetSettings
    """
    hip = legs.hip + pelvis[:, None]
    if np.any(gate < 1.0):
        carried = legs.ankle + pelvis[:, None]
        ankle = carried + (ankle - carried) * gate[..., None]
        foot, toe = quat.slerp(legs.foot, foot, gate), quat.slerp(legs.toe, toe, gate)
    solved = solver.solve(legs, feet, hip, ankle, settings)
    thigh = quat.mul(solved.thigh_turn, legs.thigh)
    local = np.empty((len(take.times), 2, 4, 4), order="F")
    local[:, :, 0] = quat.mul(quat.inv(legs.above_thigh), thigh)
    local[:, :, 1] = quat.mul(quat.inv(quat.mul(solved.thigh_turn, legs.above_shin)), quat.mul(solved.shin_turn, legs.shin))
    local[:, :, 2] = quat.mul(quat.inv(quat.mul(solved.shin_turn, legs.above_foot)), foot)
    above_toe = quat.mul(foot, quat.mul(quat.inv(legs.foot), legs.above_toe))
    local[:, :, 3] = quat.mul(quat.inv(above_toe), toe)
    joints: list[int] = []
    rotations: list[Array] = []
    for side, leg in enumerate(feet.legs):
        for part, joint in enumerate((leg.thigh, leg.shin, leg.foot, leg.toe)):
            if joint >= 0:
                joints.append(joint)
                rotations.append(local[:, side, part])
    stacked = np.empty((len(take.times), len(joints), 4), order="F")
    for i, q in enumerate(rotations):
        stacked[:, i] = _continuous_with(quat.normalize(q), take.local_rotations[:, joints[i]])
    moving, translations = _translations(take, feet, legs, pelvis, solved.stretch)
    joint = toe_joints(legs, solved.ankle, foot)
    return Baked(
        tuple(joints), stacked, moving, translations, solved, foot, toe, joint, soles(feet, solved.ankle, foot, joint, toe, normal)
    )


def _continuous_with(q: Array, source: Array) -> Array:
    """Signs as the source's where the two begin, then neighbours with a dot product of at least 0."""
    if len(q) and float(q[0] @ source[0]) < 0.0:
        q = -q
    return quat.continuous(q)


def _translations(take: Take, feet: Feet, legs: Legs, pelvis: Array, stretch: Array) -> tuple[tuple[int, ...], Array]:
    moving = [feet.hips]
    factors: list[Array | None] = [None]
    if np.any(stretch > 1.0):
        for side, leg in enumerate(feet.legs):
            for joint in (*_path(take.skeleton, leg.shin, leg.thigh), *_path(take.skeleton, leg.foot, leg.shin)):
                moving.append(joint)
                factors.append(stretch[:, side])
    source = np.broadcast_to(take.local_translations, (len(take.times), len(take.skeleton), 3))
    out = np.empty((len(take.times), len(moving), 3), order="F")
    out[:] = source[:, moving]
    out[:, 0] += quat.rotate(quat.inv(legs.above_hips), pelvis)
    for i, factor in enumerate(factors):
        if factor is not None:
            out[:, i] *= factor[:, None]
    return tuple(moving), out


def _path(skeleton: Skeleton, joint: int, above: int) -> list[int]:
    """``joint`` and what lies between it and ``above``."""
    out: list[int] = []
    while joint != above:
        out.append(joint)
        joint = int(skeleton.parents[joint])
    return out
