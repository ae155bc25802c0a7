# SPDX-License-Identifier: GPL-3.0-or-later
"""Fingers, by their names only: a wrong finger is worse than none.

A finger's links are the bones from the knuckle outwards, for the thumb from its metacarpal. The palm bones (metacarpals)
of the other fingers are no links of theirs, unless nothing else is there; fingertips (a fourth number, "end", "tip") are
not either.
"""

from __future__ import annotations

from ..motion.skeleton import Skeleton
from .claims import Claims
from .families import PALM_RANK
from .roles import FINGERS


def find_fingers(skeleton: Skeleton, claims: Claims, limbs: dict[str, int]) -> tuple[dict[str, tuple[int, ...]], dict[str, float]]:
    """Finger roles -> links, and how sure; looked for below the hand, and below the forearm where a finger hangs beside the hand."""
    joints: dict[str, tuple[int, ...]] = {}
    sure: dict[str, float] = {}
    for side in ("left", "right"):
        hand, forearm = limbs.get(f"{side}Hand"), limbs.get(f"{side}LowerArm")
        wrist = forearm if forearm is not None else hand
        if wrist is None:
            continue
        below = [j for j in range(wrist + 1, len(skeleton)) if claims.of[j] and skeleton.is_below(j, wrist)]
        for finger in FINGERS:
            links = _links(skeleton, claims, [j for j in below if claims.sure(j, finger, side) > 0.0], finger, side)
            if links:
                joints[side + finger] = tuple(links)
                sure[side + finger] = min(claims.sure(j, finger, side) for j in links)
    return joints, sure


def _links(skeleton: Skeleton, claims: Claims, named: list[int], finger: str, side: str) -> list[int]:
    chain: list[int] = []
    for j in named:  # a parent stands before its children, so the chain grows outwards; a second chain of the same name is left
        if not chain or skeleton.is_below(j, chain[-1]):
            chain.append(j)
    if finger != "Thumb":
        beyond_palm = [j for j in chain if claims.rank(j, finger, side) != PALM_RANK]
        # "RightHandIndex" above "RightHandIndex1": a name without a number in front of numbered ones is the palm bone too.
        if len(beyond_palm) > 1 and claims.rank(beyond_palm[0], finger, side) == 0 and claims.rank(beyond_palm[1], finger, side) == 1:
            first = claims.of[beyond_palm[0]][0]
            if first.sure < 1.0:
                beyond_palm = beyond_palm[1:]
        chain = beyond_palm or chain
    while len(chain) > 3:
        tip = not skeleton.children[chain[-1]]
        chain = chain[:-1] if tip or finger == "Thumb" else chain[1:]
    return chain
