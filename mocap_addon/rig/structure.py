# SPDX-License-Identifier: GPL-3.0-or-later
"""A body without names: found by the shape of the hierarchy and the lengths of its bones, which no pose changes.

The hips are the joint from which two chains of equal lengths (the legs) and a third branch (the trunk) start; the chest is
the joint in the trunk from which the next two equal chains (the arms) start. In each limb the two longest neighbouring
bones are its long bones. Which side is left the rest pose must show; where it does not, no limb gets a side.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..motion.skeleton import Skeleton
from .assign import way_down
from .geometry import has_end, length, read_body, unit

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Found:
    """Role -> joints, and what a person should know."""

    joints: dict[str, tuple[int, ...]]
    notes: tuple[str, ...] = ()


class _Shape:
    """Lengths of bones and longest chains below each joint."""

    def __init__(self, skeleton: Skeleton) -> None:
        self.skeleton = skeleton
        self.length = np.sqrt(np.einsum("ij,ij->i", skeleton.rest_translations, skeleton.rest_translations))

    @cached_property
    def chains(self) -> list[tuple[int, ...]]:
        """For each joint the way to the furthest joint below it, itself included."""
        n = len(self.skeleton)
        far, best = np.zeros(n), [(j,) for j in range(n)]
        out: list[tuple[int, ...]] = list(best)
        for j in range(n - 1, -1, -1):
            for c in self.skeleton.children[j]:
                reach = float(self.length[c] + far[c])
                if reach > far[j] + 1e-9:
                    far[j] = reach
                    out[j] = (j, *out[c])
        return out

    def reach(self, joint: int) -> float:
        """Metres along the longest chain from ``joint``'s parent through ``joint``."""
        return float(self.length[list(self.chains[joint])].sum())

    def alike(self, a: int, b: int) -> bool:
        """Whether the longest chains through ``a`` and ``b`` have the same number of bones of the same lengths, within 5 %."""
        one, two = self.length[list(self.chains[a])], self.length[list(self.chains[b])]
        return len(one) == len(two) and bool((np.abs(one - two) <= 0.05 * (one + two) / 2 + 0.01 * one.sum()).all())

    def pair(self, joint: int, bones: int) -> tuple[int, int] | None:
        """The two children of ``joint`` whose chains are alike and longest, with at least ``bones`` joints each."""
        usable = [c for c in self.skeleton.children[joint] if len(self.chains[c]) >= bones]
        pairs = [(a, b) for i, a in enumerate(usable) for b in usable[i + 1 :] if self.alike(a, b)]
        return max(pairs, key=lambda p: self.reach(p[0]), default=None)


def find_body(skeleton: Skeleton) -> Found:
    """Roles by hierarchy and rest geometry alone; nothing where no body can be seen."""
    shape = _Shape(skeleton)
    for hips in range(len(skeleton)):
        legs = shape.pair(hips, 3)
        if legs is None:
            continue
        chest = _chest(shape, hips, legs)
        if chest is not None:
            return _roles(shape, hips, legs, chest, shape.pair(chest, 3) or (-1, -1))
    return Found({})


def _chest(shape: _Shape, hips: int, legs: tuple[int, int]) -> int | None:
    """The joint of the trunk with the longest pair of chains: the arms, shorter than the legs are not needed to be."""
    skeleton = shape.skeleton
    trunk = [c for c in skeleton.children[hips] if c not in legs]
    best: tuple[float, int] | None = None
    for j in range(hips + 1, len(skeleton)):
        pair = shape.pair(j, 3)
        if pair is not None and any(skeleton.is_below(j, c) for c in trunk) and (best is None or shape.reach(pair[0]) > best[0]):
            best = (shape.reach(pair[0]), j)
    return best[1] if best else None


def _roles(shape: _Shape, hips: int, legs: tuple[int, int], chest: int, arms: tuple[int, int]) -> Found:
    skeleton = shape.skeleton
    joints: dict[str, tuple[int, ...]] = {"hips": (hips,), "spine": tuple(way_down(skeleton, hips, chest)[1:])}
    joints |= _neck_and_head(shape, chest, arms)
    leg = _limbs(shape, legs, ("UpperLeg", "LowerLeg", "Foot", "Toes"), "")
    arm = _limbs(shape, arms, ("UpperArm", "LowerArm", "Hand"), "Shoulder")
    if not leg or not arm:
        return Found({})
    sides, note = _sides(skeleton, joints, leg, arm)
    if sides is None:
        return Found({}, (note,))
    for pair, flip in ((leg, sides[0]), (arm, sides[1])):
        for side, parts in zip(("right", "left") if flip else ("left", "right"), pair, strict=True):
            joints |= {side + part: (j,) for part, j in parts.items()}
    above = skeleton.ancestors(hips)
    if above:
        joints["root"] = (above[-1],)
    return Found({role: j for role, j in joints.items() if j}, (note,) if note else ())


def _limbs(shape: _Shape, starts: tuple[int, int], parts: tuple[str, ...], before: str) -> list[dict[str, int]]:
    """Both limbs of a pair; empty where the long bones cannot be told."""
    chains = [shape.chains[j] for j in starts]
    lengths = 0.5 * (shape.length[list(chains[0])] + shape.length[list(chains[1])])
    at = _long_bones(lengths)
    if at is None or any(_goes_on(shape, chain, at) for chain in chains):
        return []  # a limb of many bones: which of them are the long ones would be a guess
    out: list[dict[str, int]] = []
    for chain in chains:
        limb = {part: chain[at + k] for k, part in enumerate(parts) if at + k < len(chain)}
        toes = limb.get("Toes")
        if toes is not None and not shape.skeleton.children[toes] and not has_end(shape.skeleton, toes):
            del limb["Toes"]  # the end of the foot rather than a joint
        if before and at >= 1 and lengths[at] > 0.0:
            limb[before] = chain[at - 1]
        out.append(limb)
    return out


def _long_bones(lengths: Array) -> int | None:
    """Where in a chain the two neighbouring bones start that are longest together and not too unlike.

    None when two places are about as good.
    """
    found: list[tuple[float, int]] = []
    for i in range(len(lengths) - 2):
        upper, lower = float(lengths[i + 1]), float(lengths[i + 2])
        if min(upper, lower) > 0.4 * max(upper, lower):
            found.append((upper + lower, i))
    found.sort(reverse=True)
    if not found or (len(found) > 1 and found[1][0] > 0.9 * found[0][0]):
        return None
    return found[0][1]


def _goes_on(shape: _Shape, chain: tuple[int, ...], i: int) -> bool:
    """Whether another bone as long continues the long bones ``i, i + 1, i + 2`` of a chain in a straight line: limbs of split bones."""
    if i + 3 >= len(chain):
        return False
    p = shape.skeleton.rest_global_positions
    lower, beyond = p[chain[i + 2]] - p[chain[i + 1]], p[chain[i + 3]] - p[chain[i + 2]]
    return length(beyond) > 0.75 * length(lower) and float(unit(beyond) @ unit(lower)) > 0.94


def _neck_and_head(shape: _Shape, chest: int, arms: tuple[int, int]) -> dict[str, tuple[int, ...]]:
    """The longest other branch of the chest; its last joint is the head, or the one before where the last has no length."""
    others = [c for c in shape.skeleton.children[chest] if c not in arms]
    if not others:
        return {}
    chain = list(shape.chains[max(others, key=shape.reach)])
    end = shape.skeleton.ends[chain[-1]]
    if len(chain) > 1 and not np.isfinite(end).all():
        return {}  # nothing says whether the last joint is a head or the end of one
    if len(chain) > 1 and not has_end(shape.skeleton, chain[-1]):
        chain.pop()
    return {"neck": tuple(chain[:-1]), "head": (chain[-1],)}


def _sides(
    skeleton: Skeleton, joints: dict[str, tuple[int, ...]], leg: list[dict[str, int]], arm: list[dict[str, int]]
) -> tuple[tuple[bool, bool] | None, str]:
    """For legs and arms whether the first of the pair is the right one."""
    one = {role: j[0] for role, j in joints.items() if j}
    for side, legs, arms in (("left", leg[0], arm[0]), ("right", leg[1], arm[1])):
        one |= {side + part: j for part, j in {**legs, **arms}.items()}
    body = read_body(skeleton, one)
    if body is None:
        return None, "A body can be seen in the hierarchy, but its rest pose does not show which side is left; name the bones."
    p = skeleton.rest_global_positions
    left, note = body.left, ""
    if left is None:
        left, note = np.array([1.0, 0.0, 0.0]), "Nothing shows where the character looks; its left was taken to be +X."
    flips: list[bool] = []
    for pair, part in ((leg, "UpperLeg"), (arm, "UpperArm")):
        across = float(unit(p[pair[0][part]] - p[pair[1][part]]) @ left)
        if abs(across) < 0.3:
            return None, "A body can be seen in the hierarchy, but its left and right joints do not lie apart; name the bones."
        flips.append(across < 0.0)
    return (flips[0], flips[1]), note
