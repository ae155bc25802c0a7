# SPDX-License-Identifier: GPL-3.0-or-later
"""ChingMu's joints, in the order in which its SDK returns them: 23 of the body (left before right), then 20 of either hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..motion.skeleton import Skeleton
from . import body

_ARM = (("Shoulder", "Shoulder"), ("Arm", "UpperArm"), ("ForeArm", "LowerArm"), ("Hand", "Hand"))
_LEG = (("UpLeg", "UpperLeg"), ("Leg", "LowerLeg"), ("Foot", "Foot"), ("ToeBase", "Toes"))
_DIGITS = (("Thumb", "Thumb"), ("Index", "Index"), ("Middle", "Middle"), ("Ring", "Ring"), ("Pinky", "Little"))


def _rows() -> list[tuple[str, str, str]]:
    """Name, parent, role (:func:`.body.place`)."""
    out = [("Hips", "", "hips")]
    for i, name in enumerate(("Spine", "Spine1", "Spine2", "Spine3")):
        out.append((name, out[-1][0], f"spine:{i + 1}/4"))
    out += [("Neck", "Spine3", "neck:1/1"), ("Head", "Neck", "head")]
    for limb, top in ((_ARM, "Spine3"), (_LEG, "Hips")):
        for side in ("Left", "Right"):
            above = top
            for name, role in limb:
                out.append((side + name, above, side.lower() + role))
                above = side + name
    for side in ("Left", "Right"):
        for digit, role in _DIGITS:
            above = f"{side}Hand"
            for i in (1, 2, 3, 4):
                out.append((f"{side}Hand{digit}{i}", above, f"{side.lower()}{role}:{i}"))
                above = out[-1][0]
    return out


_ROWS = _rows()
BODY = 23
NAMES: tuple[str, ...] = tuple(n for n, _, _ in _ROWS)
"""All 63."""
PARENTS: tuple[int, ...] = tuple(NAMES.index(p) if p else -1 for _, p, _ in _ROWS)
LAYOUTS: dict[int, tuple[str, ...]] = {BODY: NAMES[:BODY], len(NAMES): NAMES}


def joints(count: int) -> tuple[str, ...]:
    """The joints that ``count`` rotations stand for; what comes after the 63 known ones (streams of 150) has no meaning here."""
    return LAYOUTS[63 if count >= 63 else BODY]


@lru_cache(maxsize=4)
def average(count: int) -> Skeleton:
    """A person of average size with the first ``count`` joints in T-pose."""
    return body.skeleton(NAMES[:count], PARENTS[:count], [r for _, _, r in _ROWS[:count]])


def average_of(names: Sequence[str]) -> Skeleton:
    """The same with or without hands, as ``names`` has them."""
    return average(63 if any("Thumb" in n for n in names) else BODY)


_KNEES = (NAMES.index("LeftLeg"), NAMES.index("RightLeg"))


def bends_backwards(local_rotations: NDArray[np.float64]) -> bool:
    """Whether both knees are bent forwards by more than 30 degrees, which none does: a sign that forward is elsewhere.

    Flexion turns the shin about the body's left, our +X: ``2 w x`` is the sine of that part.
    """
    w, x = local_rotations[list(_KNEES), 0], local_rotations[list(_KNEES), 1]
    return bool((2.0 * w * x < -0.5).all())
