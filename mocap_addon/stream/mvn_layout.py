# SPDX-License-Identifier: GPL-3.0-or-later
"""Which segments an MVN datagram's items are: 23 of the body, then props, then 20 of either hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ..formats.mvnx_skeleton import STANDARD
from ..motion.skeleton import Skeleton
from . import body

PARENTS: tuple[int, ...] = (-1, 0, 1, 2, 3, 4, 5, 4, 7, 8, 9, 4, 11, 12, 13, 0, 15, 16, 17, 0, 19, 20, 21)
_SIDE_ROLES = {
    "Shoulder": "Shoulder",
    "UpperArm": "UpperArm",
    "ForeArm": "LowerArm",
    "Hand": "Hand",
    "UpperLeg": "UpperLeg",
    "LowerLeg": "LowerLeg",
    "Foot": "Foot",
    "Toe": "Toes",
}
ROLES: tuple[str, ...] = (
    "hips",
    *(f"spine:{i}/4" for i in range(1, 5)),
    "neck:1/1",
    "head",
    *(("right" + _SIDE_ROLES[n[5:]] if n.startswith("Right") else "left" + _SIDE_ROLES[n[4:]]) for n in STANDARD[7:]),
)
_DIGITS = {"First": "Thumb", "Second": "Index", "Third": "Middle", "Fourth": "Ring", "Fifth": "Little"}
HAND: tuple[str, ...] = (
    "Carpus",
    *(f"First{part}" for part in ("MC", "PP", "DP")),
    *(f"{digit}{part}" for digit in ("Second", "Third", "Fourth", "Fifth") for part in ("MC", "PP", "MP", "DP")),
)
"""The 20 segments of one hand, without the side."""
FINGER_NAMES: tuple[str, ...] = tuple(f"{side}{n}" for side in ("Left", "Right") for n in HAND)
UNITY_ORDER: tuple[int, ...] = (0, 15, 16, 17, 18, 19, 20, 21, 22, 1, 2, 3, 4, 11, 12, 13, 14, 7, 8, 9, 10, 5, 6)
"""Type 05: the k-th item is this segment."""


@dataclass(frozen=True)
class Layout:
    """Joints of one body, where its items are, and the props beside it. One object for every frame of a layout."""

    names: tuple[str, ...]
    parents: tuple[int, ...]
    items: NDArray[np.intp]
    props: tuple[tuple[str, int], ...]
    in_order: bool
    pairs: tuple[int, int] | None
    """Joints whose distance tells metres from centimetres: pelvis and head, else none."""


@lru_cache(maxsize=256)
def layout(ids: tuple[int, ...], declared: tuple[int, int, int]) -> Layout:
    """The layout of items with these ids. Ids of the 23 say where a segment is; what follows goes by its order (props, then fingers).

    ``declared`` are the header's counts of body segments, props and finger segments; zeros from senders before 2019.
    """
    lowest = min(ids)
    shift = 0 if lowest == 0 else 1
    count, props, fingers = declared
    if count + props + fingers != len(ids):
        count = min(len(ids), 23)
        rest = len(ids) - count
        fingers = 40 if rest >= 40 else 0
        props = rest - fingers
    segments = [i - shift for i in ids[:count]]
    if len(set(segments)) != count or not all(0 <= s < 23 for s in segments):
        segments = list(range(min(count, 23)))
    order = sorted(range(len(segments)), key=segments.__getitem__)
    present = [segments[i] for i in order]
    names = [STANDARD[s] for s in present]
    parents = [_above(s, present) for s in present]
    items = list(order)
    for k in range(min(fingers, 40)):
        name = FINGER_NAMES[k]
        hand = "LeftHand" if k < 20 else "RightHand"
        if hand not in names:
            continue
        names.append(name)
        items.append(count + props + k)
        parents.append(names.index(finger_parent(name, hand)))
    in_order = items == list(range(len(ids)))
    pairs = (names.index("Pelvis"), names.index("Head")) if "Pelvis" in names and "Head" in names else None
    beside = tuple((f"Prop{k + 1}", count + k) for k in range(props))
    return Layout(tuple(names), tuple(parents), np.array(items, dtype=np.intp), beside, in_order, pairs)


def _above(segment: int, present: Sequence[int]) -> int:
    """The next segment above that is there."""
    up = PARENTS[segment]
    while up >= 0 and up not in present:
        up = PARENTS[up]
    return present.index(up) if up >= 0 else -1


def finger_parent(name: str, hand: str) -> str:
    side = hand.removesuffix("Hand")
    part = name.removeprefix(side)
    if part == "Carpus":
        return hand
    if part.endswith("MC"):
        return f"{side}Carpus"
    return f"{side}{HAND[HAND.index(part) - 1]}"


def role_of(name: str) -> str:
    """Where a segment stands on an average body (:func:`.body.place`)."""
    if name in STANDARD:
        return ROLES[STANDARD.index(name)]
    side = "left" if name.startswith("Left") else "right"
    part = name.removeprefix("Left").removeprefix("Right")
    if part == "Carpus":
        return f"{side}Hand"
    digit = next(d for d in _DIGITS if part.startswith(d))
    links = ("MC", "PP", "DP") if digit == "First" else ("MC", "PP", "MP", "DP")
    return f"{side}{_DIGITS[digit]}:{links.index(part[len(digit) :]) + (1 if digit == 'First' else 0)}"


@lru_cache(maxsize=4)
def standard(fingers: bool) -> Skeleton:
    """The 23 segments of an average person in T-pose, with or without the 40 of its hands."""
    ids = tuple(range(1, 64 if fingers else 24))
    made = layout(ids, (23, 0, 40 if fingers else 0))
    return body.skeleton(made.names, made.parents, [role_of(n) for n in made.names])
