# SPDX-License-Identifier: GPL-3.0-or-later
"""The links of a standard: dropped ones, split ones, helpers, under its family's own names."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np

from .declared import Helper, Standard
from .master import PLACES, SIDES

FAMILIES = Path(__file__).resolve().parents[3] / "mocap_addon" / "rig" / "families"

_SPINES = {1: ("spine1",), 2: ("spine1", "spine3"), 3: ("spine1", "spine2", "spine3")}
_SPINES |= {4: ("spine1", "spine2", "spine2", "spine3"), 5: ("spine1", "spine1", "spine2", "spine2", "spine3")}
LIMBS = {"UpperArm": "LowerArm", "LowerArm": "Hand", "UpperLeg": "LowerLeg", "LowerLeg": "Foot"}
"""Limb bones, and what each reaches to."""


@dataclass(frozen=True)
class Link:
    """One joint of a standard: which joint of the master it moves with, how much of its turn (of its twist) it has, and where it stands."""

    key: str
    role: str
    name: str
    above: str | None
    place: np.ndarray
    moves: str | None = None  # None: static to its parent
    share: float = 1.0  # of the master's turn, away from the master's parent
    twist: float = 1.0  # of the master's twist
    rest: str | None = None  # whose rest turn it has; None: its parent's
    leaf_of: tuple[str, str, float] | None = None  # a twist bone beside a limb: its bone, the joint at its end, where between them

    @property
    def motion(self) -> tuple[str, float, float] | None:
        """What it moves with, to be compared between standards."""
        return None if self.moves is None else (self.moves, self.share, self.twist)


@cache
def family_file(family: str) -> dict:
    """What the family's file says."""
    return tomllib.loads((FAMILIES / f"{family}.toml").read_text(encoding="utf-8"))


def links_of(s: Standard) -> list[Link]:
    """The joints of a standard, a parent before its children."""
    names = _Names(s)
    links: dict[str, Link] = {}

    def put(link: Link) -> None:
        links[link.key] = link

    above: str | None = None
    if s.root:
        put(Link("root", "root", names("root"), None, np.zeros(3)))
        above = "root"
    put(Link("hips", "hips", names("hips"), above, PLACES["hips"], "hips", rest="hips"))
    last = _chain(put, names, "spine", _SPINES[s.spine], "hips", PLACES["neck"])
    chest = last
    if s.neck:
        last = _chain(put, names, "neck", ("neck",) * s.neck, last, PLACES["head"])
    put(Link("head", "head", names("head"), last, PLACES["head"], "head", rest="head"))
    for side in SIDES:
        parts = [*(["Shoulder"] if s.shoulders else []), "UpperArm", "LowerArm", "Hand"]
        _limb(put, names, s, side, parts, chest)
        for finger in s.fingers:
            on = f"{side}Hand"
            for k in range(s.links):
                name = f"{side}{finger}{k + 1}"
                put(Link(name, f"{side}{finger}", names(finger, side, k), on, PLACES[name], name, rest=name))
                on = name
        _limb(put, names, s, side, ["UpperLeg", "LowerLeg", "Foot", *(["Toes"] if s.toes else [])], "hips")
    for helper in s.helpers:
        ends = (helper.above, *helper.below)
        sided = any(end.startswith("left") for end in ends) and not any(end.startswith("right") for end in ends)
        for side in SIDES if sided else ("",):
            _insert(links, names, helper, side)
    order: dict[str, Link] = {}
    while len(order) < len(links):  # a parent before its children, otherwise as they came
        order |= {key: link for key, link in links.items() if key not in order and (link.above is None or link.above in order)}
    return list(order.values())


def _chain(put, names: _Names, role: str, moves: tuple[str, ...], above: str, end: np.ndarray) -> str:
    """Links of a spine or neck; a joint of the master that occurs n times is split into n, each with its share of the turn."""
    for k, key in enumerate(moves):
        count, nth = moves.count(key), moves[:k].count(key)
        later = [PLACES[m] for m in moves[k + 1 :] if m != key]
        place = PLACES[key] + nth / count * ((later[0] if later else end) - PLACES[key])
        name = f"{role}.{k + 1}"
        put(Link(name, role, names(role, "", k), above, place, key, share=(nth + 1) / count, rest=key))
        above = name
    return above


def _limb(put, names: _Names, s: Standard, side: str, parts: list[str], above: str) -> None:
    for part in parts:
        key = side + part
        second, half = s.splits.get(part, ("", False))
        put(Link(key, key, names(part, side), above, PLACES[key], key, twist=0.5 if half else 1.0, rest=key))
        above = key
        if second:
            place = PLACES[key] + 0.5 * (PLACES[side + LIMBS[part]] - PLACES[key])
            put(Link(f"{key}/2", "", names.other(second, side), key, place, key if half else None, rest=None))
            above = f"{key}/2"


def _insert(links: dict[str, Link], names: _Names, helper: Helper, side: str) -> None:
    above, below = (x.replace("left", side) if side else x for x in (helper.above, " ".join(helper.below)))
    keys = below.split()
    key = f"helper {names.other(helper.name, side)}"
    place = links[above].place
    if keys:
        place = place + helper.share * (links[keys[0]].place - place)
    toward = helper.twist.replace("left", side) if side else helper.twist
    if toward:
        place = place + helper.share * (links[toward].place - place)
    place = place + helper.aside * np.array([0.3, -0.8, 0.5])
    for k in keys:
        links[k] = replace(links[k], above=key)
    links[key] = Link(key, "", names.other(helper.name, side), above, place, leaf_of=(above, toward, helper.share) if toward else None)


class _Names:
    """A family's own names, read from its file."""

    def __init__(self, s: Standard) -> None:
        roles: dict[str, str | list[str]] = family_file(s.family)["roles"]
        self._roles = {part: (names,) if isinstance(names, str) else tuple(names) for part, names in roles.items()} | s.names
        self._sides = s.sides

    def __call__(self, part: str, side: str = "", link: int = 0) -> str:
        return self.other(self._roles[part][link], side)

    def other(self, name: str, side: str) -> str:
        """The name on a side; given is the left one."""
        if side != "right":
            return name
        for left, right in self._sides:
            out, count = re.subn(left, right, name, count=1)
            if count:
                return out
        raise ValueError(f"{name} shows no side")
