# SPDX-License-Identifier: GPL-3.0-or-later
"""Unity's humanoid: bone names (HumanBodyBones), which hangs on which, and a body of average size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from ..motion.skeleton import Skeleton
from . import body

_SIDES = ("Left", "Right")
DIGITS = ("Thumb", "Index", "Middle", "Ring", "Little")
LINKS = ("Proximal", "Intermediate", "Distal")
CORE: tuple[str, ...] = (
    "Hips",
    "Spine",
    "Chest",
    "UpperChest",
    "Neck",
    "Head",
    *(f"{s}{part}" for s in _SIDES for part in ("Shoulder", "UpperArm", "LowerArm", "Hand")),
    *(f"{s}{part}" for s in _SIDES for part in ("UpperLeg", "LowerLeg", "Foot", "Toes")),
)
FINGERS: tuple[str, ...] = tuple(f"{s}{d}{link}" for s in _SIDES for d in DIGITS for link in LINKS)
BONES: tuple[str, ...] = (*CORE, "LeftEye", "RightEye", "Jaw", *FINGERS)
"""All 55, a parent before its children."""


def _parent(name: str) -> str:
    single = {"Hips": "", "Spine": "Hips", "Chest": "Spine", "UpperChest": "Chest", "Neck": "UpperChest", "Head": "Neck", "Jaw": "Head"}
    if name in single:
        return single[name]
    side = "Left" if name.startswith("Left") else "Right"
    part = name.removeprefix(side)
    limb = {"Shoulder": "UpperChest", "UpperLeg": "Hips", "Eye": "Head"}
    if part in limb:
        return limb[part]
    chain = {"UpperArm": "Shoulder", "LowerArm": "UpperArm", "Hand": "LowerArm", "LowerLeg": "UpperLeg", "Foot": "LowerLeg", "Toes": "Foot"}
    if part in chain:
        return side + chain[part]
    digit, link = next((d, part.removeprefix(d)) for d in DIGITS if part.startswith(d))
    return f"{side}Hand" if link == LINKS[0] else f"{side}{digit}{LINKS[LINKS.index(link) - 1]}"


PARENT: dict[str, str] = {name: _parent(name) for name in BONES}


def parents(names: Sequence[str]) -> list[int]:
    """Index of the next bone above that is there, -1 for none."""
    index = {n: i for i, n in enumerate(names)}
    out: list[int] = []
    for name in names:
        above = PARENT[name]
        while above and above not in index:
            above = PARENT[above]
        out.append(index[above] if above else -1)
    return out


def ordered(names: Iterable[str]) -> tuple[str, ...]:
    """The known ones in an order where parents stand first."""
    found = set(names)
    return tuple(n for n in BONES if n in found)


@lru_cache(maxsize=64)
def standard(names: tuple[str, ...] = CORE) -> Skeleton:
    """An average person in T-pose with these bones."""
    chosen = ordered(names)
    trunk = [n for n in ("Spine", "Chest", "UpperChest") if n in chosen]
    roles: list[str] = []
    for name in chosen:
        side = "left" if name.startswith("Left") else "right"
        part = name.removeprefix("Left").removeprefix("Right")
        digit = next((d for d in DIGITS if part.startswith(d)), "")
        if name in trunk:
            roles.append(f"spine:{trunk.index(name) + 1}/{len(trunk)}")
        elif name == "Neck":
            roles.append("neck:1/1")
        elif name in ("Hips", "Head", "Jaw"):
            roles.append(name.lower())
        elif digit:
            roles.append(f"{side}{digit}:{LINKS.index(part.removeprefix(digit)) + 1}")
        else:
            roles.append(side + part)
    return body.skeleton(chosen, parents(chosen), roles)
