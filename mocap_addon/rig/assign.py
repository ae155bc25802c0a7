# SPDX-License-Identifier: GPL-3.0-or-later
"""Limbs: which joints of one path through the hierarchy are which parts of an arm or a leg.

The parts of a limb stand below each other in a fixed order, so they are found together: over all paths from a root to
a leaf, the choice of joints, in order, whose names claim the parts most surely. That settles names with two meanings:
a "shoulder" above an "arm" is a collar bone, a "shoulder" above an "elbow" an upper arm.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ..motion.skeleton import Skeleton
from .claims import Claims
from .roles import ARM_PARTS, LEG_PARTS

# How much a part counts. The two long bones come first: without them the others are worth little.
_WEIGHTS = {"Shoulder": 0.5, "UpperArm": 1.3, "LowerArm": 1.3, "Hand": 1.0, "UpperLeg": 1.3, "LowerLeg": 1.3, "Foot": 1.0, "Toes": 0.4}


@dataclass(frozen=True)
class _Choice:
    """The best way to place the parts up to ``part`` on the way from the root down to here; a linked list towards the root."""

    value: float
    part: int
    joint: int
    before: _Choice | None


_NOTHING = _Choice(0.0, -1, -1, None)


def limb(skeleton: Skeleton, claims: Claims, side: str, parts: Sequence[str], allowed: Collection[int]) -> dict[str, int]:
    """Part -> joint for the most sure path; parts that no name claims are missing.

    Parameters
    ----------
    skeleton, claims
    side : "left" or "right"
    parts : sequence of str
        From the body outwards, as in ``roles.ARM_PARTS``.
    allowed : collection of int
        Joints that may be used.
    """
    # choices[j][k]: the best one on the way to joint j whose outermost placed part is the k-th (0: none placed yet)
    empty: list[_Choice | None] = [_NOTHING, *([None] * len(parts))]
    choices: list[list[_Choice | None]] = []
    best = _NOTHING
    for joint, parent in enumerate(map(int, skeleton.parents)):
        above: list[_Choice | None] = choices[parent] if parent >= 0 else empty
        here = above
        for k, part in enumerate(parts, start=1):
            sure = claims.preferred(joint, part, side) if joint in allowed and claims.of[joint] else 0.0
            if sure <= 0.0:
                continue
            before = max((c for c in above[:k] if c is not None), key=lambda c: c.value)
            choice = _Choice(before.value + sure * _WEIGHTS[part], k - 1, joint, before)
            held = above[k]
            if held is None or choice.value > held.value:
                here = list(above) if here is above else here
                here[k] = choice
                best = choice if choice.value > best.value + 1e-9 else best
        choices.append(here)
    out: dict[str, int] = {}
    link: _Choice | None = best
    while link is not None and link.part >= 0:
        out[parts[link.part]] = link.joint
        link = link.before
    return {part: out[part] for part in parts if part in out}


def limbs(skeleton: Skeleton, claims: Claims, allowed: Collection[int]) -> dict[str, int]:
    """Role -> joint of all four limbs, by names and order."""
    out: dict[str, int] = {}
    for side in ("left", "right"):
        for parts in (ARM_PARTS, LEG_PARTS):
            found = limb(skeleton, claims, side, parts, allowed)
            out.update({f"{side}{part}": joint for part, joint in _believed(claims, found, side).items()})
    return out


def _believed(claims: Claims, found: dict[str, int], side: str) -> dict[str, int]:
    """Without the part that settles it, a word with two meanings is not believed: a lone "leg", a "shoulder" with no elbow below."""
    if len(found) == 1:
        part, joint = next(iter(found.items()))
        return found if claims.sure(joint, part, side) >= 0.85 else {}
    for upper, lower in (("UpperArm", "LowerArm"), ("UpperLeg", "LowerLeg")):
        if upper in found and lower not in found and claims.sure(found[upper], upper, side) < 0.85:
            found = {part: joint for part, joint in found.items() if part != upper}
    return found


def fill_between(skeleton: Skeleton, claims: Claims, roles: dict[str, int]) -> dict[str, int]:
    """Middle joints of limbs whose names say nothing: the one that clearly splits the way best into two long bones."""
    filled: dict[str, int] = {}
    taken = set(roles.values())
    for side in ("left", "right"):
        for upper, middle, lower in (("UpperArm", "LowerArm", "Hand"), ("UpperLeg", "LowerLeg", "Foot")):
            a, b = roles.get(side + upper), roles.get(side + lower)
            if a is None or b is None or side + middle in roles or not skeleton.is_below(b, a):
                continue
            free = [j for j in way_down(skeleton, a, b)[1:-1] if j not in taken and not claims.helper[j] and not claims.of[j]]
            halves = sorted(((min(path_length(skeleton, a, j), path_length(skeleton, j, b)), j) for j in free), reverse=True)
            if len(halves) == 1 or (len(halves) > 1 and halves[0][0] > 1.25 * halves[1][0]):  # else it would be a guess
                filled[side + middle] = halves[0][1]
    return filled


def way_down(skeleton: Skeleton, ancestor: int, joint: int) -> list[int]:
    """Joints from ``ancestor`` to ``joint``, both included; empty when it is not below."""
    way = [joint]
    while way[-1] != ancestor:
        parent = int(skeleton.parents[way[-1]])
        if parent < 0:
            return []
        way.append(parent)
    return way[::-1]


def path_length(skeleton: Skeleton, ancestor: int, joint: int) -> float:
    """Metres along the bones from ``ancestor`` down to ``joint``; independent of the pose."""
    way = way_down(skeleton, ancestor, joint)[1:]
    return float(sum((float(x) ** 2 + float(y) ** 2 + float(z) ** 2) ** 0.5 for x, y, z in skeleton.rest_translations[way].tolist()))


def common_ancestor(skeleton: Skeleton, joints: Sequence[int]) -> int | None:
    """The lowest joint that stands above (or is) every one of ``joints``; None when they have no root in common."""
    if not joints:
        return None
    ways = [[j, *skeleton.ancestors(j)] for j in joints]
    others = [set(way) for way in ways[1:]]
    return next((j for j in ways[0] if all(j in other for other in others)), None)
