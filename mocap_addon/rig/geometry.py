# SPDX-License-Identifier: GPL-3.0-or-later
"""What the rest pose says: whether it is a body at all, which side is left, whether it walks on four legs.

Nothing here trusts an axis: up is from the feet to the hips, ahead is where the toes point, left is up x ahead. A rest
pose whose limbs do not look like a body's (all bones along +X, as some exporters write) says nothing, and only names and
hierarchy count.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion.skeleton import Skeleton

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Body:
    """Directions of a usable rest pose, unit vectors ``(3,)``; ``left`` is None where nothing shows what is ahead."""

    up: Array
    left: Array | None


def length(v: Array) -> float:
    """Length of a vector ``(3,)``."""
    return math.sqrt(float(v @ v))


def unit(v: Array) -> Array:
    """``v (3,)`` at length 1; a zero vector stays zero."""
    size = length(v)
    return v / size if size > 1e-12 else v


def has_end(skeleton: Skeleton, joint: int) -> bool:
    """Whether the skeleton says where the bone of ``joint`` ends, away from its start."""
    return length(skeleton.ends[joint]) > 0.0  # NaN compares false


def read_body(skeleton: Skeleton, one: Mapping[str, int]) -> Body | None:
    """Up and left of a rest pose, or None when it is no body.

    Parameters
    ----------
    skeleton : Skeleton
    one : mapping from role to joint
        At least hips, both upper legs and feet, and something of the upper body.
    """
    p = skeleton.rest_global_positions
    hips, ahead = one.get("hips"), None
    upper = next((one[r] for r in ("head", "neck", "chest", "leftUpperArm", "rightUpperArm") if r in one), None)
    legs = [(one[s + "UpperLeg"], one[s + "Foot"]) for s in ("left", "right") if s + "UpperLeg" in one and s + "Foot" in one]
    if hips is None or upper is None or len(legs) < 2 or not np.isfinite(p).all():
        return None
    down = [unit(p[foot] - p[thigh]) for thigh, foot in legs]
    trunk = unit(p[upper] - p[hips])
    up = -unit(down[0] + down[1])
    if down[0] @ down[1] < 0.3 or up @ trunk < 0.5:
        return None
    ahead = _ahead(skeleton, one, up)
    return Body(up, None if ahead is None else unit(np.cross(up, ahead)))


def _ahead(skeleton: Skeleton, one: Mapping[str, int], up: Array) -> Array | None:
    """Where the feet point, level; None when they point nowhere."""
    p, ends = skeleton.rest_global_positions, skeleton.rest_global_ends
    total = np.zeros(3)
    for side in ("left", "right"):
        foot = one.get(side + "Foot")
        if foot is None:
            continue
        toes = one.get(side + "Toes")
        chain = [j for j in (foot, toes) if j is not None]
        points = [p[toes]] if toes is not None else []
        points += [ends[j] for j in chain if np.isfinite(ends[j]).all()]
        points += [p[c] for j in chain for c in skeleton.children[j]]
        level = [v - (v @ up) * up for v in (point - p[foot] for point in points)]
        if level:
            total = total + max(level, key=lambda v: float(v @ v))
    leg = length(p[one["leftFoot"]] - p[one["leftUpperLeg"]]) if {"leftFoot", "leftUpperLeg"} <= one.keys() else 0.0
    return unit(total) if length(total) > 0.02 * leg else None


def side_troubles(skeleton: Skeleton, one: Mapping[str, int], body: Body) -> list[str]:
    """Sentences about left joints that do not lie opposite their right ones, or sides that the feet contradict."""
    p = skeleton.rest_global_positions
    across = np.zeros(3)
    pairs = [(part, one["left" + part], one["right" + part]) for part in _PAIRED if {"left" + part, "right" + part} <= one.keys()]
    for _, left, right in pairs:
        across = across + unit(p[left] - p[right])
    across = across - (across @ body.up) * body.up
    if length(across) < 0.3:
        return ["Left and right joints do not lie opposite each other in the rest pose; check the sides."] if pairs else []
    across = unit(across)
    out = [
        f'"{skeleton.names[left]}" lies on the right of "{skeleton.names[right]}"; its name and its place disagree.'
        for _, left, right in pairs
        if unit(p[left] - p[right]) @ across < -0.3
    ]
    if body.left is not None and across @ body.left < -0.3:
        out.append("Left and right are swapped against the way the feet point; the names were believed.")
    return out


_PAIRED = ("UpperLeg", "LowerLeg", "Foot", "UpperArm", "LowerArm")


def is_quadruped(skeleton: Skeleton, one: Mapping[str, int]) -> bool:
    """Whether the rest pose stands on hands and feet: forelegs along the legs, hands near the level of the feet, the trunk level."""
    need = [s + part for s in ("left", "right") for part in ("UpperArm", "UpperLeg", "Foot")]
    if "hips" not in one or any(role not in one for role in need):
        return False
    p = skeleton.rest_global_positions
    if not np.isfinite(p).all():
        return False
    fore = {s: one.get(s + "Hand", one.get(s + "LowerArm")) for s in ("left", "right")}
    if fore["left"] is None or fore["right"] is None:
        return False
    legs = [p[one[s + "Foot"]] - p[one[s + "UpperLeg"]] for s in ("left", "right")]
    arms = [p[fore[s]] - p[one[s + "UpperArm"]] for s in ("left", "right")]
    down = unit(legs[0] + legs[1])
    tall = 0.5 * float(legs[0] @ down + legs[1] @ down)
    if unit(legs[0]) @ unit(legs[1]) < 0.5 or tall <= 0.0:
        return False
    forelegs = all(unit(arm) @ down > 0.6 for arm in arms)
    drop = 0.5 * sum(float((p[fore[s]] - p[one[s + "Foot"]]) @ down) for s in ("left", "right"))
    shoulders = 0.5 * (p[one["leftUpperArm"]] + p[one["rightUpperArm"]]) - p[one["hips"]]
    return forelegs and abs(drop) < 0.4 * tall and abs(float(unit(shoulders) @ down)) < 0.6
