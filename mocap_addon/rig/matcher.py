# SPDX-License-Identifier: GPL-3.0-or-later
"""Which joint plays which role.

Names first (:mod:`.claims`: a family's own names, else words of any naming), each in its place in the hierarchy (:mod:`.assign`,
:mod:`.trunk`, :mod:`.fingers`); then, for what names leave open, the hierarchy and the rest pose alone (:mod:`.structure`). A joint has one
role; a role whose joint would be a guess stays empty.

Confidence: 1.0 the family's own name in its place, 0.9 a word of any naming, 0.8 a word with two meanings settled by the
hierarchy or a joint found by name outside its place, 0.6 hierarchy and lengths alone.
"""

from __future__ import annotations

from dataclasses import replace

from ..motion.errors import RigError
from ..motion.skeleton import Skeleton
from .assign import fill_between, limbs
from .claims import Claims, read_claims
from .control_rigs import deform_skeleton
from .control_sets import described_roles
from .families import families
from .fingers import find_fingers
from .geometry import is_quadruped, read_body, side_troubles
from .roles import REQUIRED_ROLES, ROLES, SIDES, RoleMap
from .structure import find_body
from .trunk import BY_PLACE, find_trunk
from .twist import find_twists

DOUBTFUL = 0.75
"""Matches below this confidence should be looked at."""

QUADRUPED = "quadruped"
"""The family of a skeleton on four legs; its map is empty."""


def match(skeleton: Skeleton, family: str | None = None) -> RoleMap:
    """Find the roles of a skeleton's joints.

    Never fails on a skeleton: what is no humanoid comes back with fewer roles (or none) and a note that says so;
    :func:`require_humanoid` turns that into an error.

    Parameters
    ----------
    skeleton : Skeleton
    family : str, optional
        Name of the naming family to use; without it the best one is found.

    Returns
    -------
    RoleMap

    Raises
    ------
    RigError
        When ``family`` is no family's name.
    """
    key = (family, skeleton.content)
    if key not in _matched:
        while len(_matched) >= _REMEMBERED:
            _matched.pop(next(iter(_matched)))
        _matched[key] = _match_anew(skeleton, family)
    return _matched[key]


_REMEMBERED = 64
_matched: dict[tuple[object, ...], RoleMap] = {}
"""Skeletons matched before: takes of one suit onto one character ask the same two questions a thousand times."""


def _match_anew(skeleton: Skeleton, family: str | None) -> RoleMap:
    described = described_roles(skeleton) if family is None else None
    if described is not None:
        return described
    rig = deform_skeleton(skeleton)
    if rig is None:
        return _match(skeleton, family, [])
    body, back = rig
    notes = ["The deform bones of this control rig were matched."]
    found = _match(body, family, notes)
    joints = {role: tuple(back[j] for j in joints) for role, joints in found.joints.items()}
    return replace(found, joints=joints, twists={back[j]: role for j, role in found.twists.items()})


def _match(skeleton: Skeleton, family: str | None, notes: list[str]) -> RoleMap:
    claims = read_claims(skeleton, family)
    allowed = _one_figure(skeleton, claims, notes)
    one = limbs(skeleton, claims, allowed)
    sure = {role: claims.sure(j, *_part_side(role)) for role, j in one.items()}
    _detached_feet(skeleton, claims, one, sure, notes)
    for role, joint in fill_between(skeleton, claims, one).items():
        one[role], sure[role] = joint, BY_PLACE
    trunk = find_trunk(skeleton, claims, one, allowed)
    joints: dict[str, tuple[int, ...]] = {role: (j,) for role, j in one.items()} | trunk.joints
    sure |= trunk.sure
    notes += trunk.notes
    found, found_sure = find_fingers(skeleton, claims, one)
    joints |= found
    sure |= found_sure
    name = claims.family or "names of no one family"
    if any(role not in joints for role in REQUIRED_ROLES):
        name = _complete(skeleton, claims, joints, sure, notes, name)
    return _finish(skeleton, name, joints, sure, notes)


def _part_side(role: str) -> tuple[str, str]:
    for side in SIDES:
        if role.startswith(side):
            return role[len(side) :], side
    return role, ""


def _one_figure(skeleton: Skeleton, claims: Claims, notes: list[str]) -> frozenset[int]:
    """All joints, or those of the most complete figure (with what stands above it) where a file holds several."""
    everything = frozenset(range(len(skeleton)))
    heads = [j for j in everything if claims.sure(j, "hips") >= 0.9]
    heads = sorted(j for j in heads if not any(j != k and skeleton.is_below(j, k) for k in heads))
    if len(heads) < 2:
        return everything
    below = {h: frozenset(j for j in range(h, len(skeleton)) if skeleton.is_below(j, h)) for h in heads}
    count = {h: len({c.role for j in below[h] for c in claims.of[j]}) for h in heads}
    figures = [h for h in heads if count[h] >= 8]
    if len(figures) < 2:
        return everything
    best = max(figures, key=lambda h: (count[h], -h))
    names = ", ".join(f'"{skeleton.names[h]}"' for h in figures)
    notes.append(f'{len(figures)} figures stand in this skeleton ({names}); "{skeleton.names[best]}" is used.')
    others = frozenset(j for h in figures if h != best for j in below[h])
    return everything - others


def _detached_feet(skeleton: Skeleton, claims: Claims, one: dict[str, int], sure: dict[str, float], notes: list[str]) -> None:
    """Feet (and toes) that hang elsewhere than on the shin, as in rigs with baked IK: matched by name."""
    for side in SIDES:
        if f"{side}LowerLeg" not in one:
            continue
        for part in ("Foot", "Toes"):
            role = side + part
            if role in one:
                continue
            taken = set(one.values())
            found = [j for j in range(len(skeleton)) if j not in taken and claims.sure(j, part, side) >= 0.9]
            if part == "Toes" and f"{side}Foot" in one:
                found = [j for j in found if skeleton.is_below(j, one[f"{side}Foot"])]
            if not found or (part == "Toes" and skeleton.is_below(found[0], one[f"{side}LowerLeg"])):
                continue
            one[role], sure[role] = found[0], min(0.8, claims.sure(found[0], part, side))
            if part == "Foot":
                parent = int(skeleton.parents[found[0]])
                where = f'on "{skeleton.names[parent]}"' if parent >= 0 else "on nothing"
                notes.append(f'The foot "{skeleton.names[found[0]]}" hangs {where}, not on the leg.')


def _complete(
    skeleton: Skeleton, claims: Claims, joints: dict[str, tuple[int, ...]], sure: dict[str, float], notes: list[str], name: str
) -> str:
    """Fill what names left open from the structure, where the two agree; returns the family's name."""
    found = find_body(skeleton)
    if not found.joints:
        if not joints:
            notes += found.notes
        return name
    known = [role for role in REQUIRED_ROLES if role in joints]
    agree = [role for role in known if found.joints.get(role) == joints[role]]
    if len(known) > 2 and len(agree) < 0.6 * len(known):
        return name
    if len(known) <= 2:  # too little to go by: the structure decides
        joints.clear()
        sure.clear()
        name = "structure"
    taken = {j for js in joints.values() for j in js}
    added = False
    for role, js in found.joints.items():
        if role in joints or any(j in taken or claims.helper[j] for j in js):
            continue
        if not _fits(skeleton, joints, role, js):
            continue
        joints[role], sure[role] = js, BY_PLACE
        taken.update(js)
        added = True
    if added:
        notes += found.notes
        if name != "structure":
            notes.append("Some joints were found by their place alone, not by their names; look at the doubtful ones.")
    return name


def _fits(skeleton: Skeleton, joints: dict[str, tuple[int, ...]], role: str, js: tuple[int, ...]) -> bool:
    """Whether a joint found by structure stands where its neighbours by name want it."""
    hips = joints.get("hips")
    if hips and role not in ("hips", "root") and not skeleton.is_below(js[0], hips[0]):
        return False
    if role == "hips":
        return all(skeleton.is_below(j[0], js[0]) for r, j in joints.items() if r not in ("root",) and not r.endswith(("Foot", "Toes")))
    part, side = _part_side(role)
    for order in (("Shoulder", "UpperArm", "LowerArm", "Hand"), ("UpperLeg", "LowerLeg", "Foot", "Toes")):
        if part not in order:
            continue
        at = order.index(part)
        for k, other in enumerate(order):
            there = joints.get(side + other)
            if there and k < at and not skeleton.is_below(js[0], there[0]):
                return False
            if there and k > at and not skeleton.is_below(there[0], js[0]):
                return False
    return True


def _finish(skeleton: Skeleton, name: str, joints: dict[str, tuple[int, ...]], sure: dict[str, float], notes: list[str]) -> RoleMap:
    one = {role: js[0] for role, js in joints.items()}
    if is_quadruped(skeleton, one):
        note = "This skeleton stands on four legs; only humanoids (two arms, two legs, upright) can take or give motion."
        return RoleMap({}, QUADRUPED, {}, (note,))
    body = read_body(skeleton, one)
    if body is not None:
        notes += side_troubles(skeleton, one, body)
    partial = _partial(joints)
    if partial:
        notes.insert(0, partial)
    order = [role for role in ROLES if role in joints]
    return RoleMap(
        {role: joints[role] for role in order},
        name if joints else "",
        {role: round(sure.get(role, BY_PLACE), 3) for role in order},
        tuple(dict.fromkeys(notes)),
        find_twists(skeleton, joints, next((family for family in families() if family.name == name), None)),
    )


def _partial(joints: dict[str, tuple[int, ...]]) -> str:
    """One sentence for a body that is not whole, else ""."""
    arms = all(f"{side}UpperArm" in joints and f"{side}LowerArm" in joints for side in SIDES)
    legs = all(f"{side}UpperLeg" in joints and f"{side}LowerLeg" in joints for side in SIDES)
    if arms and legs:
        return ""
    if arms:
        return "Only an upper body was found; there are no two legs."
    if legs:
        return "Only a lower body was found; there are no two arms."
    if len(joints) > 0:
        return "No whole body was found: neither two arms nor two legs."
    return "No body was found: no joint is named or placed like a part of one."


def require_humanoid(role_map: RoleMap, skeleton: Skeleton) -> None:
    """Refuse a skeleton that motion cannot be carried to or from.

    Raises
    ------
    RigError
        One sentence that names what is missing.
    """
    missing = role_map.missing()
    if not missing:
        return
    if role_map.family == QUADRUPED:
        raise RigError(role_map.notes[0])
    first = role_map.notes[0] + " " if role_map.notes and _partial(dict(role_map.joints)) else ""
    named = ", ".join(spoken(role) for role in missing[:4]) + (f" and {len(missing) - 4} more" if len(missing) > 4 else "")
    raise RigError(f"{first}Missing: {named} (of {len(skeleton)} joints); name or map these joints by hand.")


def spoken(role: str) -> str:
    """A role as a person says it: ``leftUpperArm`` -> ``left upper arm``."""
    return "".join(f" {c.lower()}" if c.isupper() else c for c in role).strip()
