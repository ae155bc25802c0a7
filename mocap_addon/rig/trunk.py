# SPDX-License-Identifier: GPL-3.0-or-later
"""The middle of the body: hips, spine, neck, head, and the root above the hips. Decided by the hierarchy, with the names as a guide."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..motion.skeleton import Skeleton
from .assign import common_ancestor, path_length, way_down
from .claims import Claims

NAMED_APART = 0.7
"""Confidence of hips found by their place although another joint bears the name."""
BY_PLACE = 0.6
"""Confidence of a joint found by the hierarchy alone."""


@dataclass
class Trunk:
    """What was found: role -> joints, role -> confidence, and notes."""

    joints: dict[str, tuple[int, ...]] = field(default_factory=dict[str, tuple[int, ...]])
    sure: dict[str, float] = field(default_factory=dict[str, float])
    notes: list[str] = field(default_factory=list[str])


def find_trunk(skeleton: Skeleton, claims: Claims, limbs: dict[str, int], allowed: frozenset[int]) -> Trunk:
    """Hips, spine, neck, head, jaw and root of a body whose limbs are known (role -> joint)."""
    trunk = Trunk()
    legs = [j for j in (_top(limbs, side, ("UpperLeg", "LowerLeg")) for side in ("left", "right")) if j is not None]
    arms = [j for j in (_top(limbs, side, ("Shoulder", "UpperArm", "LowerArm")) for side in ("left", "right")) if j is not None]
    used = set(limbs.values())
    head = _head(skeleton, claims, allowed, used)
    hips = _hips(skeleton, claims, legs, arms, head, allowed, used, trunk)
    if hips is not None:
        trunk.joints["hips"] = (hips,)
        _root(skeleton, claims, hips, trunk)
    if head is not None and (hips is None or skeleton.is_below(head, hips)) and head != hips:
        trunk.joints["head"] = (head,)
        trunk.sure["head"] = claims.sure(head, "head")
        _part_of_head(skeleton, claims, head, trunk)
    _spine_and_neck(skeleton, claims, hips, head if "head" in trunk.joints else None, arms, used, trunk)
    return trunk


def _top(limbs: dict[str, int], side: str, parts: tuple[str, ...]) -> int | None:
    return next((limbs[side + part] for part in parts if side + part in limbs), None)


def _head(skeleton: Skeleton, claims: Claims, allowed: frozenset[int], used: set[int]) -> int | None:
    """The most sure joint called head; of equals the one nearest to the root (``Head`` before ``Head2``)."""
    named = [j for j in allowed if j not in used and claims.sure(j, "head") > 0.0]
    named = [j for j in named if not any(a in used for a in skeleton.ancestors(j))]
    return max(named, key=lambda j: (claims.preferred(j, "head"), -len(skeleton.ancestors(j)), -j), default=None)


def _hips(
    skeleton: Skeleton,
    claims: Claims,
    legs: list[int],
    arms: list[int],
    head: int | None,
    allowed: frozenset[int],
    used: set[int],
    trunk: Trunk,
) -> int | None:
    """The joint from which both legs and the trunk start.

    A joint called hips that carries only the legs (``Root > Hips > legs``, ``Root > Spine``) is not it: turned or moved, it would leave the
    trunk behind. A joint called hips further up a bare chain is (``Pelvis > Spine > legs and arms``).
    """
    named = [j for j in sorted(allowed) if claims.sure(j, "hips") > 0.0 and j not in used]
    upper = arms or ([head] if head is not None else [])
    if not upper:
        upper = [j for j in sorted(allowed) if claims.sure(j, "neck") > 0.0 or claims.sure(j, "spine") > 0.0][:1]
    place = common_ancestor(skeleton, [*legs, *upper]) if legs else None
    while place is not None and (place in used or place in legs or place == head):
        parent = int(skeleton.parents[place])
        place = parent if parent >= 0 else None
    if place is None:
        best = max(named, key=lambda j: (claims.preferred(j, "hips"), -len(skeleton.ancestors(j))), default=None)
        if best is not None:
            trunk.sure["hips"] = claims.sure(best, "hips")
            if legs and not all(skeleton.is_below(leg, best) for leg in legs):
                trunk.notes.append(f'The legs do not hang on "{skeleton.names[best]}"; the hips were found by their name.')
        return best
    above = [j for j in (place, *skeleton.ancestors(place)) if j in named]
    if above:
        trunk.sure["hips"] = claims.sure(above[0], "hips")
        return above[0]
    below = [j for j in named if skeleton.is_below(j, place)]
    apart = common_ancestor(skeleton, legs)
    if below and apart is not None and apart in below and _is_floor(skeleton, place, apart, legs):
        trunk.sure["hips"] = NAMED_APART
        meet, taken = skeleton.names[place], skeleton.names[apart]
        trunk.notes.append(f'Trunk and legs meet only in "{meet}", which is not at the hips; "{taken}" is taken.')
        return apart
    trunk.sure["hips"] = NAMED_APART if below else BY_PLACE
    if below:
        trunk.notes.append(
            f'"{skeleton.names[below[0]]}" does not carry both the legs and the trunk; "{skeleton.names[place]}" above it is taken as hips.'
        )
    return place


def _is_floor(skeleton: Skeleton, place: int, hips: int, legs: list[int]) -> bool:
    """Whether ``place`` is far from the hips: further than a third of what hangs below the first leg."""
    leg = max((path_length(skeleton, legs[0], j) for j in range(len(skeleton)) if skeleton.is_below(j, legs[0])), default=0.0)
    return path_length(skeleton, place, hips) > leg / 3.0 > 0.0


def _root(skeleton: Skeleton, claims: Claims, hips: int, trunk: Trunk) -> None:
    above = skeleton.ancestors(hips)
    if not above:
        return
    named = [j for j in above if claims.sure(j, "root") > 0.0]
    root = named[-1] if named else above[-1]
    trunk.joints["root"] = (root,)
    trunk.sure["root"] = claims.sure(root, "root") if named else 0.8


def _part_of_head(skeleton: Skeleton, claims: Claims, head: int, trunk: Trunk) -> None:
    for part, side in (("jaw", ""), ("Eye", "left"), ("Eye", "right")):
        found = [j for j in range(head + 1, len(skeleton)) if claims.sure(j, part, side) > 0.0 and skeleton.is_below(j, head)]
        if found:
            best = max(found, key=lambda j: (claims.preferred(j, part, side), -j))
            trunk.joints[side + part] = (best,)
            trunk.sure[side + part] = claims.sure(best, part, side)


def _spine_and_neck(
    skeleton: Skeleton, claims: Claims, hips: int | None, head: int | None, arms: list[int], used: set[int], trunk: Trunk
) -> None:
    """Every link between hips and head. The joint where the arms start is the last of the spine, unless it is called neck."""
    chest = common_ancestor(skeleton, [int(skeleton.parents[a]) for a in arms if skeleton.parents[a] >= 0])
    if hips is not None and chest is not None and not skeleton.is_below(chest, hips):
        chest = None
    tip = _tip(skeleton, claims, hips, head, chest, used)
    if tip is None:
        return
    start = hips if hips is not None else _first_of_spine(skeleton, claims, tip)
    way = way_down(skeleton, start, tip)
    if hips is not None:
        way = way[1:]
    if tip == head:
        way = way[:-1]
    branch = common_ancestor(skeleton, [chest, tip]) if chest is not None else None
    links = [j for j in way if j not in used and not claims.helper[j]]
    cut = _cut(claims, links, branch)
    for role, joints in (("spine", links[:cut]), ("neck", links[cut:])):
        if joints:
            trunk.joints[role] = tuple(joints)
            sures = [max(claims.sure(j, "spine"), claims.sure(j, "neck")) for j in joints]
            trunk.sure[role] = min(s if s > 0.0 else NAMED_APART if claims.of[j] else BY_PLACE for s, j in zip(sures, joints, strict=True))


def _tip(skeleton: Skeleton, claims: Claims, hips: int | None, head: int | None, chest: int | None, used: set[int]) -> int | None:
    """Where the way through the trunk ends: the head, else the last neck, else where the arms start, else the last spine by name."""
    if head is not None:
        return head
    below = [j for j in range(len(skeleton)) if j not in used and (hips is None or (j != hips and skeleton.is_below(j, hips)))]
    for part in ("neck", "chest", "spine"):
        if part == "chest":
            if chest is not None and chest != hips:
                return chest
            continue
        named = [j for j in below if claims.sure(j, part) > 0.0 and not any(a in used for a in skeleton.ancestors(j))]
        if named:
            return max(named, key=lambda j: len(skeleton.ancestors(j)))
    return None


def _first_of_spine(skeleton: Skeleton, claims: Claims, tip: int) -> int:
    """Without hips: the topmost joint above ``tip`` that is called spine or neck, else ``tip``."""
    named = [j for j in (tip, *skeleton.ancestors(tip)) if claims.sure(j, "spine") > 0.0 or claims.sure(j, "neck") > 0.0]
    return named[-1] if named else tip


def _cut(claims: Claims, links: list[int], branch: int | None) -> int:
    """How many of the links belong to the spine."""
    if branch is not None and branch in links:
        cut = links.index(branch) + 1
        while cut > 0 and claims.sure(links[cut - 1], "neck") > 0.0:
            cut -= 1
        return cut
    return next((i for i, j in enumerate(links) if claims.sure(j, "neck") > 0.0), len(links))
