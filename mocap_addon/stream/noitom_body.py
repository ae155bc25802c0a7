# SPDX-License-Identifier: GPL-3.0-or-later
"""Noitom's 59 joints, in the order in which their values are sent (depth first)."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from ..motion.skeleton import Skeleton
from . import body

_DIGITS = ("Index", "Middle", "Ring", "Pinky")


def _hand(side: str) -> tuple[tuple[str, str, str], ...]:
    """Name, parent and role of the 19 joints of a hand."""
    s = side.lower()
    out: list[tuple[str, str, str]] = []
    above = f"{side}Hand"
    for i in (1, 2, 3):
        out.append((f"{side}HandThumb{i}", above, f"{s}Thumb:{i}"))
        above = out[-1][0]
    for digit in _DIGITS:
        role = "Little" if digit == "Pinky" else digit
        out.append((f"{side}InHand{digit}", f"{side}Hand", f"{s}{role}:0"))
        above = out[-1][0]
        for i in (1, 2, 3):
            out.append((f"{side}Hand{digit}{i}", above, f"{s}{role}:{i}"))
            above = out[-1][0]
    return tuple(out)


def _leg(side: str) -> tuple[tuple[str, str, str], ...]:
    s = side.lower()
    return (
        (f"{side}UpLeg", "Hips", f"{s}UpperLeg"),
        (f"{side}Leg", f"{side}UpLeg", f"{s}LowerLeg"),
        (f"{side}Foot", f"{side}Leg", f"{s}Foot"),
    )


def _arm(side: str, chest: str) -> tuple[tuple[str, str, str], ...]:
    s = side.lower()
    return (
        (f"{side}Shoulder", chest, f"{s}Shoulder"),
        (f"{side}Arm", f"{side}Shoulder", f"{s}UpperArm"),
        (f"{side}ForeArm", f"{side}Arm", f"{s}LowerArm"),
        (f"{side}Hand", f"{side}ForeArm", f"{s}Hand"),
    )


class Layout(NamedTuple):
    """Joints as sent."""

    names: tuple[str, ...]
    parents: tuple[int, ...]
    roles: tuple[str, ...]


@lru_cache(maxsize=4)
def layout(old: bool, fingers: bool = True) -> Layout:
    """Axis Neuron (``old``) has four spines and one neck, Axis Studio three spines and two necks; 59 joints, or 21 without fingers."""
    if old:
        trunk = tuple(zip(("Spine", "Spine1", "Spine2", "Spine3"), ("Hips", "Spine", "Spine1", "Spine2"), range(1, 5), strict=True))
        rows = [(n, p, f"spine:{i}/4") for n, p, i in trunk] + [("Neck", "Spine3", "neck:1/1"), ("Head", "Neck", "head")]
    else:
        trunk = tuple(zip(("Spine", "Spine1", "Spine2"), ("Hips", "Spine", "Spine1"), range(1, 4), strict=True))
        rows = [(n, p, f"spine:{i}/3") for n, p, i in trunk]
        rows += [("Neck", "Spine2", "neck:1/2"), ("Neck1", "Neck", "neck:2/2"), ("Head", "Neck1", "head")]
    chest = "Spine3" if old else "Spine2"
    order = [("Hips", "", "hips"), *_leg("Right"), *_leg("Left"), *rows]
    for side in ("Right", "Left"):
        order += [*_arm(side, chest), *(_hand(side) if fingers else ())]
    names = tuple(n for n, _, _ in order)
    parents = tuple(names.index(p) if p else -1 for _, p, _ in order)
    return Layout(names, parents, tuple(r for _, _, r in order))


@lru_cache(maxsize=4)
def average(old: bool, fingers: bool = True) -> Skeleton:
    """A person of average size with these joints."""
    lay = layout(old, fingers)
    return body.skeleton(lay.names, lay.parents, lay.roles)
