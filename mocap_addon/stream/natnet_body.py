# SPDX-License-Identifier: GPL-3.0-or-later
"""Motive's own skeleton of 21 bones, in the order in which it is sent."""

from __future__ import annotations

from functools import lru_cache

from ..motion.skeleton import Skeleton
from . import body

_ARM = (("Shoulder", "Shoulder"), ("UArm", "UpperArm"), ("FArm", "LowerArm"), ("Hand", "Hand"))
_LEG = (("Thigh", "UpperLeg"), ("Shin", "LowerLeg"), ("Foot", "Foot"))


def _rows() -> list[tuple[str, str, str]]:
    out = [
        ("Hip", "", "hips"),
        ("Ab", "Hip", "spine:1/2"),
        ("Chest", "Ab", "spine:2/2"),
        ("Neck", "Chest", "neck:1/1"),
        ("Head", "Neck", "head"),
    ]
    for limb, top in ((_ARM, "Chest"), (_LEG, "Hip")):
        for letter, side in (("L", "left"), ("R", "right")):
            above = top
            for name, role in limb:
                out.append((letter + name, above, side + role))
                above = letter + name
    return [*out, ("LToe", "LFoot", "leftToes"), ("RToe", "RFoot", "rightToes")]


_ROWS = _rows()
CORE: tuple[str, ...] = tuple(n for n, _, _ in _ROWS)
PARENTS: tuple[int, ...] = tuple(CORE.index(p) if p else -1 for _, p, _ in _ROWS)


@lru_cache(maxsize=1)
def average() -> Skeleton:
    """A person of average size in T-pose."""
    return body.skeleton(CORE, PARENTS, [r for _, _, r in _ROWS])
