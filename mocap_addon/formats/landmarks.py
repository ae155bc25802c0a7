# SPDX-License-Identifier: GPL-3.0-or-later
"""The few joints that tell which way a body stands: head, hips, feet, hands, and pairs of left and right.

This is no retargeting map (that is ``rig/``'s); it only has to be right often enough to find the axes and the size of a body,
whatever the joints are called.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_FOOT = ("ankle", "foot", "toe")
_HAND = ("hand", "wrist")
_SWAPS = (
    (re.compile("left", re.IGNORECASE), ("right", "Right", "RIGHT")),
    (re.compile(r"(?<![A-Za-z])[lL](?![A-Za-z])"), ("r", "R")),
    (re.compile(r"(?<=[a-z0-9_.:-])L$|^L(?=[A-Z])|(?<=[:_.])L(?=[A-Z])"), ("R",)),
    (re.compile(r"^l|(?<=[:_.])l"), ("r",)),
    (re.compile(r"^L"), ("R",)),
)


@dataclass(frozen=True)
class Landmarks:
    """Joint indices; -1 or empty where nothing was found. ``pairs`` are (left, right), from the body outwards."""

    head: int
    hips: int
    feet: tuple[int, ...]
    hands: tuple[int, ...]
    pairs: tuple[tuple[int, int], ...]

    @property
    def body(self) -> bool:
        """Whether head, hips and feet were all found."""
        return self.head >= 0 and self.hips >= 0 and len(self.feet) > 0


def find(names: tuple[str, ...], parents: Indices) -> Landmarks:
    """Look for the landmarks by name (any prefix, any spelling of the sides) and hierarchy."""
    plain = [re.sub(r"[^a-z0-9]", "", name.rsplit(":", 1)[-1].lower()) for name in names]
    depth = _depths(parents)
    head = _shallowest([i for i, n in enumerate(plain) if "head" in n], depth)
    if head < 0:
        head = _shallowest([i for i, n in enumerate(plain) if "neck" in n], depth)
    pairs = _pairs(names)
    feet = _both_sides(plain, pairs, _FOOT, depth)
    hands = _both_sides(plain, pairs, _HAND, depth)
    hips = _common_ancestor(feet, parents) if feet else -1
    return Landmarks(head, hips, feet, hands, pairs)


def path_length(lengths: Array, parents: Indices, joint: int, ancestor: int) -> float:
    """Sum of the bone lengths from ``joint`` up to where its chain meets that of ``ancestor``."""
    chain_above: set[int] = {-1}
    up = ancestor
    while up >= 0:
        chain_above.add(up)
        up = int(parents[up])
    total = 0.0
    while joint not in chain_above:
        total += float(lengths[joint])
        joint = int(parents[joint])
    return total


def is_below(joint: int, ancestors: set[int], parents: Indices) -> bool:
    """Whether one of ``ancestors`` stands above ``joint``, or is it."""
    while joint >= 0:
        if joint in ancestors:
            return True
        joint = int(parents[joint])
    return False


def _depths(parents: Indices) -> list[int]:
    out: list[int] = []
    above: list[int] = parents.tolist()
    for p in above:
        out.append(0 if p < 0 else out[p] + 1)
    return out


def _shallowest(candidates: list[int], depth: list[int]) -> int:
    return min(candidates, key=lambda i: (depth[i], i), default=-1)


def _pairs(names: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    index = {name: i for i, name in enumerate(names)}
    out: list[tuple[int, int]] = []
    for name, i in index.items():
        for pattern, others in _SWAPS:
            found = next((index[n] for o in others if (n := pattern.sub(o, name, count=1)) in index and n != name), None)
            if found is not None:
                out.append((i, found))
                break
    return tuple(out)


def _both_sides(plain: list[str], pairs: tuple[tuple[int, int], ...], words: tuple[str, ...], depth: list[int]) -> tuple[int, ...]:
    """The shallowest pair whose name holds one of ``words``, the first word that any pair has."""
    for word in words:
        matching = [(a, b) for a, b in pairs if word in plain[a]]
        if matching:
            return min(matching, key=lambda ab: depth[ab[0]])
    return ()


def _common_ancestor(joints: tuple[int, ...], parents: Indices) -> int:
    shared: list[int] | None = None
    for joint in joints:
        chain: list[int] = []
        while joint >= 0:
            chain.append(joint)
            joint = int(parents[joint])
        shared = chain if shared is None else [j for j in shared if j in set(chain)]
    return shared[0] if shared else -1
