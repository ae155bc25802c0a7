# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rest pose looks like, in words: a person decides by it whether the file needs a reference frame."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ..motion.skeleton import Skeleton
from .roles import SIDES, RoleMap

T_WITHIN = 15.0
"""Degrees off level up to which arms make a T-pose."""


def describe(skeleton: Skeleton, roles: RoleMap) -> str:
    """The rest pose in a few words: ``T``, ``A, arms 41 degrees below level``, ``arms down``, ``arms raised``, ``not a body``.

    Parameters
    ----------
    skeleton : Skeleton
        In the project's axes (Z up).
    roles : RoleMap
        Arms and legs are found by it; without them the answer is ``unknown``.
    """
    legs = _directions(skeleton, roles, "UpperLeg", "Foot")
    arms = _directions(skeleton, roles, "UpperArm", "Hand")
    if not arms:
        arms = _directions(skeleton, roles, "UpperArm", "LowerArm")
    if not arms or not legs:
        return "unknown"
    # Standing legs point down; a zero pose that was never meant to be seen (every bone along one axis) fails here.
    if max(leg[2] for leg in legs) > -0.5:
        return "not a body (limbs do not stand)"
    below = -float(np.degrees(np.mean([np.arcsin(np.clip(arm[2], -1.0, 1.0)) for arm in arms])))
    if abs(below) <= T_WITHIN:
        return "T"
    if below < 0.0:
        return f"arms raised {-below:.0f} degrees above level"
    return "arms down" if below > 70.0 else f"A, arms {below:.0f} degrees below level"


def _directions(skeleton: Skeleton, roles: RoleMap, start: str, end: str) -> list[NDArray[np.float64]]:
    """Unit vectors from one part to another, for the sides that have both and a length."""
    at = skeleton.rest_global_positions
    find: Callable[[str], int | None] = roles.one
    out: list[NDArray[np.float64]] = []
    for side in SIDES:
        a, b = find(side + start), find(side + end)
        if a is None or b is None:
            continue
        d = at[b] - at[a]
        length = float(np.linalg.norm(d))
        if length > 1e-9:
            out.append(d / length)
    return out
