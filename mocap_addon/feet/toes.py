# SPDX-License-Identifier: GPL-3.0-or-later
"""Toes of a foot that rolls off bend up rather than dip into the ground."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from . import signals
from .body import Feet
from .legs import cross, dot, unit
from .paths import Path, lowering
from .result import BALL, TOE
from .terrain import Surface

Array = NDArray[np.float64]

ROLL_OFF = 0.25
"""Seconds after a contact within which toes bend; less and less from the half of it on."""
BENT = float(np.radians(40.0))
"""Radians that toes bend up by at most."""
SAME = 0.02
"""Metres: what is under the tip is the level that the ball is over, gone on with at its slope, up to that."""


def bent_toes(feet: Feet, path: Path, points: Array, surface: Surface, joints: Array, times: Array) -> tuple[Array, Array]:
    """Toes that would dip into the ground as a foot leaves it bend up instead: (F, 2, 4) and (F, 2, 3), toe rotations and tips.

    Recordings seldom have toes of their own; rigid feet dip as they roll off. Only what is on the level that the ball is over counts:
    higher edges are stepped over.

    Parameters
    ----------
    feet : Feet
    path : Path
    points : (F, 2, 3, 3) array
        Heel, ball, tip as targeted.
    surface : Surface
        Under them.
    joints : (F, 2, 3) array
        The toes' joints.
    times : (F,) array
    """
    toes, tips = path.toe.copy(), points[:, :, TOE].copy()
    heights, normals = surface.height.reshape(-1, 2, 3), surface.normal.reshape(-1, 2, 3, 3)
    slope = -normals[:, :, BALL, :2] / np.maximum(normals[:, :, BALL, 2:], 0.2)
    ahead = heights[:, :, BALL] + dot(slope, (points[:, :, TOE] - points[:, :, BALL])[..., :2])
    with np.errstate(invalid="ignore"):
        dips = (tips[..., 2] < heights[:, :, TOE]) & (np.abs(heights[:, :, TOE] - ahead) < SAME)
    for side, leg in enumerate(feet.legs):
        before, _ = signals.neighbours(path.held[:, side])
        since = times - times[np.maximum(before, 0)]
        at = np.flatnonzero(dips[:, side] & (before >= 0) & ~path.held[:, side] & (since < ROLL_OFF))
        if leg.toe < 0 or len(at) == 0:
            continue
        up = normals[at, side, TOE]
        axis = unit(cross(up, quat.rotate(path.foot[at, side], leg.forward)))
        arm = quat.rotate(toes[at, side], leg.tip)
        over = (heights[at, side, TOE] - joints[at, side, 2]) * up[:, 2] + dot(arm[:, :2], up[:, :2])
        angle = np.clip(lowering(arm, axis, up, over), -BENT, 0.0) * (1.0 - signals.ease(since[at] / ROLL_OFF * 2.0 - 1.0))
        toes[at, side] = quat.mul(quat.from_axis_angle(axis, angle), toes[at, side])
        tips[at, side] = joints[at, side] + quat.rotate(toes[at, side], leg.tip)
    return toes, tips
