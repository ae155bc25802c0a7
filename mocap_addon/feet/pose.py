# SPDX-License-Identifier: GPL-3.0-or-later
"""The legs of a take in the world, as arrays of frames and sides."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion import kinematics, quat
from ..motion.take import Take
from .body import Feet

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Legs:
    """Both legs over F frames; second axis: left, right.

    Parameters
    ----------
    times : (F,) array
        Seconds.
    hip, knee, ankle, ball : (F, 2, 3) array
        Joints in the world, metres; ``ball`` is the toe joint (the sole's ball where there is none).
    thigh, shin, foot, toe : (F, 2, 4) array
        The joints' rotations in the world; ``toe`` is the foot's where there is no toe joint.
    above_thigh, above_shin, above_foot, above_toe : (F, 2, 4) array
        Rotations of their parents.
    hips : (F, 3) array
        The joint that carries both.
    above_hips : (F, 4) array
        Its parent's rotation.
    """

    times: Array
    hip: Array
    knee: Array
    ankle: Array
    ball: Array
    thigh: Array
    shin: Array
    foot: Array
    toe: Array
    above_thigh: Array
    above_shin: Array
    above_foot: Array
    above_toe: Array
    hips: Array
    above_hips: Array


def legs_of(take: Take, feet: Feet) -> Legs:
    """The legs of ``take``; nothing else of the body is computed."""
    skeleton = take.skeleton
    wanted = [j for leg in feet.legs for j in (leg.thigh, leg.shin, leg.foot, max(leg.toe, leg.foot))]
    rotations = kinematics.global_rotations(take.local_rotations, skeleton.parents, [*wanted, feet.hips])
    positions = kinematics.global_positions(rotations, take.local_translations, skeleton.parents, [*wanted, feet.hips])

    def turned(joints: list[int]) -> Array:
        return rotations[:, joints]

    def above(joints: list[int]) -> Array:
        return np.stack([_parent(rotations, int(skeleton.parents[j])) for j in joints], axis=1)

    thighs, shins, foots = ([getattr(leg, part) for leg in feet.legs] for part in ("thigh", "shin", "foot"))
    toes = [leg.toe if leg.toe >= 0 else leg.foot for leg in feet.legs]
    ankle, foot = positions[:, foots], turned(foots)
    sole_ball = ankle + quat.rotate(foot, np.stack([leg.ball for leg in feet.legs]))
    has_toe = np.array([leg.toe >= 0 for leg in feet.legs])
    return Legs(
        take.times, positions[:, thighs], positions[:, shins], ankle, np.where(has_toe[:, None], positions[:, toes], sole_ball),
        turned(thighs), turned(shins), foot, turned(toes), above(thighs), above(shins), above(foots), above(toes),
        positions[:, feet.hips], _parent(rotations, int(skeleton.parents[feet.hips])),
    )  # fmt: skip


def _parent(rotations: Array, joint: int) -> Array:
    return rotations[:, joint] if joint >= 0 else quat.identity(len(rotations))


def soles(feet: Feet, ankle: Array, foot: Array, toe_joint: Array, toe: Array, normal: Array | None = None) -> Array:
    """Heel, ball and tip of both feet ``(F, 2, 3, 3)``.

    From ankles, foot rotations, toe joints and toe rotations ``(F, 2, ...)``. The ball is under the toe joint, against ``normal``
    (F, 2, 3), upwards when not given.
    """
    out = np.empty((len(ankle), 2, 3, 3))
    up = np.array([0.0, 0.0, 1.0])
    for i, leg in enumerate(feet.legs):
        on_toe = leg.toe >= 0
        out[:, i, 0] = ankle[:, i] + quat.rotate(foot[:, i], leg.heel)
        under = (up if normal is None else normal[:, i]) * (leg.sole.ball_height or 0.0)
        out[:, i, 1] = toe_joint[:, i] - under if on_toe else ankle[:, i] + quat.rotate(foot[:, i], leg.ball)
        out[:, i, 2] = (toe_joint if on_toe else ankle)[:, i] + quat.rotate((toe if on_toe else foot)[:, i], leg.tip)
    return out
