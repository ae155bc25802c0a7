# SPDX-License-Identifier: GPL-3.0-or-later
"""The master: a body in its T-pose and a motion that leaves nothing out.

Character axes: left +X, back +Y, up +Z; metres. In the T-pose every joint's frame is that of the world, so a joint's global rotation *is*
its turn away from the reference. The arms' bones lie on a line, the knuckles on an arch, the legs are not quite vertical.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from .matrices import LEFT, UP, about, turns, unit

FINGERS = ("Thumb", "Index", "Middle", "Ring", "Little")
SIDES = ("left", "right")
FRAMES = 96
SOLE = 0.02
"""Metres from the ground to the toes' joints."""

Places = dict[str, np.ndarray]

_SPINE = {
    "hips": (None, (0.0, 0.0, 1.0)),
    "spine1": ("hips", (0.0, 0.01, 1.09)),
    "spine2": ("spine1", (0.0, 0.025, 1.22)),
    "spine3": ("spine2", (0.0, 0.035, 1.36)),
    "neck": ("spine3", (0.0, 0.02, 1.53)),
    "head": ("neck", (0.0, -0.01, 1.64)),
}
_LEFT = {
    "Shoulder": ("spine3", (0.02, 0.0, 1.48)),
    "UpperArm": ("Shoulder", (0.17, 0.03, 1.49)),
    "LowerArm": ("UpperArm", (0.45, 0.036, 1.486)),
    "Hand": ("LowerArm", (0.71, 0.0254, 1.484)),
    "UpperLeg": ("hips", (0.09, 0.01, 0.93)),
    "LowerLeg": ("UpperLeg", (0.095, -0.005, 0.5)),
    "Foot": ("LowerLeg", (0.1, 0.03, 0.08)),
    "Toes": ("Foot", (0.115, -0.11, SOLE)),
}
# from the wrist, along the forearm, forward, up; then the lengths of the first two links
_KNUCKLES = {
    "Thumb": (0.03, 0.035, -0.012, 0.04, 0.03),
    "Index": (0.088, 0.028, 0.001, 0.038, 0.024),
    "Middle": (0.09, 0.0, 0.0, 0.043, 0.027),
    "Ring": (0.085, -0.02, -0.003, 0.04, 0.025),
    "Little": (0.078, -0.04, -0.009, 0.031, 0.019),
}
_SPREAD = {"Thumb": 35.0, "Index": 6.0, "Middle": 0.0, "Ring": -5.0, "Little": -11.0}


def _body() -> tuple[Places, dict[str, str | None]]:
    places: Places = {name: np.array(place) for name, (_, place) in _SPINE.items()}
    parents: dict[str, str | None] = {name: parent for name, (parent, _) in _SPINE.items()}
    for side, mirror in zip(SIDES, (1.0, -1.0), strict=True):
        for part, (parent, place) in _LEFT.items():
            places[side + part] = np.array(place) * [mirror, 1.0, 1.0]
            parents[side + part] = parent if parent in _SPINE else side + parent
        wrist, along = places[f"{side}Hand"], unit(places[f"{side}Hand"] - places[f"{side}LowerArm"])
        for finger, (far, ahead, up, *lengths) in _KNUCKLES.items():
            at, parent = wrist + far * along + np.array([0.0, -ahead, up]), f"{side}Hand"
            way = about(UP, -mirror * _SPREAD[finger]) @ along
            for link, length in enumerate((0.0, *lengths), start=1):
                at = at + length * way
                name = f"{side}{finger}{link}"
                places[name], parents[name] = at, parent
                parent = name
    return places, parents


PLACES, PARENTS = _body()


def tip(name: str) -> np.ndarray:
    """Where the bone of a joint ends in the T-pose: at the next joint of its chain; fingertips, toes and the crown are drawn."""
    follows = {"hips": "spine1", "spine3": "neck", **{f"{side}Hand": f"{side}Middle1" for side in SIDES}}
    children = [child for child, parent in PARENTS.items() if parent == name]
    if name in follows or children:
        return PLACES[follows.get(name) or children[0]]
    if name == "head":
        return PLACES[name] + 0.2 * UP
    way = unit(PLACES[name] - PLACES[PARENTS[name] or name])
    if name.endswith("Toes"):
        way = unit(way * [1.0, 1.0, 0.0])
    return PLACES[name] + 0.02 * way


@dataclass(frozen=True)
class Motion:
    """Turns away from the T-pose ``(F, 3, 3)`` by joint, twists of the limbs about their own axes in degrees ``(F,)`` (part of the turns),
    and places of the hips ``(F, 3)``."""

    turns: dict[str, np.ndarray]
    twists: dict[str, np.ndarray]
    hips: np.ndarray


# degrees about left, back and up (mirrored on the right side) and about the bone's own axis
_AMOUNTS = {
    "spine1": (14, 9, 16, 0),
    "spine2": (15, 10, 18, 0),
    "spine3": (12, 8, 15, 0),
    "neck": (18, 12, 25, 0),
    "head": (22, 16, 30, 0),
    "Shoulder": (8, 14, 12, 0),
    "UpperArm": (25, 75, 65, 70),
    "Hand": (20, 45, 25, 10),
    "UpperLeg": (65, 22, 15, 30),
    "Foot": (30, 12, 20, 0),
    "Toes": (25, 0, 0, 0),
}


@lru_cache(maxsize=1)
def motion() -> Motion:
    """Every joint bends and twists; the hips turn twice about the vertical, lean, and go over once; the feet stand most of the time."""
    rng = np.random.default_rng(20)
    t = np.linspace(0.0, 1.0, FRAMES)

    def wave(amount: float) -> np.ndarray:
        return amount * np.sin(2.0 * np.pi * (rng.uniform(0.8, 2.3) * t + rng.uniform()))

    def half_wave(amount: float) -> np.ndarray:
        return 0.5 * amount * (1.0 - np.cos(2.0 * np.pi * (rng.uniform(0.8, 1.8) * t + rng.uniform())))

    over = 360.0 * np.clip((t - 0.7) / 0.2, 0.0, 1.0)
    lean = turns(np.radians(np.stack([wave(20), wave(15), wave(0)], axis=-1)))
    globals_ = {"hips": about(UP, 720.0 * t) @ about(LEFT, over) @ lean}
    twists: dict[str, np.ndarray] = {}
    for name, parent in PARENTS.items():
        if parent is None:
            continue
        side = next((s for s in SIDES if name.startswith(s)), "")
        part, mirror = name[len(side) :], -1.0 if side == "right" else 1.0
        own = unit(tip(name) - PLACES[name])
        if part in _AMOUNTS:
            x, y, z, twist = _AMOUNTS[part]
            swing = turns(np.radians(np.stack([wave(x), mirror * wave(y), mirror * wave(z)], axis=-1)))
            twists[name] = wave(twist)
        elif part == "LowerArm":
            swing, twists[name] = about(UP, -mirror * half_wave(140.0)), wave(75.0)
        elif part == "LowerLeg":
            swing, twists[name] = about(LEFT, half_wave(125.0)), wave(20.0)
        else:  # fingers curl about the knuckles' axis and spread a little
            curl = half_wave(60.0 if part.startswith("Thumb") else 85.0)
            swing = about(np.cross(own, -UP), curl) @ about(UP, wave(8.0 if part.endswith("1") else 0.0))
            twists[name] = wave(5.0)
        globals_[name] = globals_[parent] @ swing @ about(own, twists[name])
    path = np.stack([2.0 * np.cos(3.0 * t), 1.5 * np.sin(4.0 * t), np.zeros(FRAMES)], axis=-1)
    places = {"hips": np.zeros((FRAMES, 3))}
    for name, parent in PARENTS.items():
        if parent is not None:
            places[name] = places[parent] + globals_[parent] @ (PLACES[name] - PLACES[parent])
    low = np.min([places[f"{side}{part}"][:, 2] for side in SIDES for part in ("Foot", "Toes")], axis=0)
    leap = 0.4 * np.maximum(0.0, np.sin(2.0 * np.pi * 2.0 * t)) ** 2
    path[:, 2] = SOLE - low + leap
    return Motion(globals_, twists, path)
