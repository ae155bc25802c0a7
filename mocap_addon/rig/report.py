# SPDX-License-Identifier: GPL-3.0-or-later
"""What was matched, how sure, what is missing, what is unused: as data and in plain words."""

from __future__ import annotations

from dataclasses import dataclass

from ..motion.skeleton import Skeleton
from .matcher import DOUBTFUL, spoken
from .roles import ARM_PARTS, CENTRE_ROLES, FINGERS, LEG_PARTS, REQUIRED_ROLES, SIDES, RoleMap

_USUAL = ("spine", "neck", "head", *(f"{side}{part}" for side in SIDES for part in ("Shoulder", "Hand", "Toes")))
_GROUPS = (
    ("Body", CENTRE_ROLES),
    *((f"{side.capitalize()} arm", tuple(f"{side}{part}" for part in ARM_PARTS)) for side in SIDES),
    *((f"{side.capitalize()} leg", tuple(f"{side}{part}" for part in LEG_PARTS)) for side in SIDES),
    *((f"{side.capitalize()} fingers", tuple(f"{side}{finger}" for finger in FINGERS)) for side in SIDES),
)


@dataclass(frozen=True)
class Report:
    """A role map in words' stead.

    Parameters
    ----------
    family : str
    matched : tuple of (role, names of joints, confidence)
        In the order of :data:`roles.ROLES`.
    doubtful : tuple of str
        Roles below the confidence that needs no look.
    missing : tuple of str
        Required roles without a joint: the skeleton cannot be used.
    absent : tuple of str
        Usual roles without a joint: it can be used without them.
    unused : tuple of str
        Names of joints without a role.
    notes : tuple of str
    """

    family: str
    matched: tuple[tuple[str, tuple[str, ...], float], ...]
    doubtful: tuple[str, ...]
    missing: tuple[str, ...]
    absent: tuple[str, ...]
    unused: tuple[str, ...]
    notes: tuple[str, ...]


def analyse(role_map: RoleMap, skeleton: Skeleton) -> Report:
    """The facts behind :func:`report`."""
    sure = role_map.confidence
    matched = tuple(
        (role, tuple(skeleton.names[j] for j in joints), float(sure.get(role, 1.0))) for role, joints in role_map.joints.items()
    )
    used = {j for joints in role_map.joints.values() for j in joints}
    return Report(
        role_map.family,
        matched,
        tuple(role for role, _, sure in matched if sure < DOUBTFUL),
        role_map.missing(REQUIRED_ROLES),
        role_map.missing(_USUAL),
        tuple(name for j, name in enumerate(skeleton.names) if j not in used),
        role_map.notes,
    )


def report(role_map: RoleMap, skeleton: Skeleton) -> str:
    """A few lines for an animator: what was matched, how sure, what is missing, what is unused."""
    facts = analyse(role_map, skeleton)
    by_role = {role: (names, sure) for role, names, sure in facts.matched}
    lines = [_summary(facts, len(skeleton))]
    for title, roles in _GROUPS:
        found = [_one(role, *by_role[role], short=title != "Body") for role in roles if role in by_role]
        if found:
            lines.append(f"  {title}: {', '.join(found)}")
    if facts.doubtful:
        lines.append(f"  Look at: {', '.join(f'{spoken(r)} ({by_role[r][1]:.0%} sure)' for r in facts.doubtful)}")
    if facts.missing:
        lines.append(f"  Missing, and needed: {', '.join(map(spoken, facts.missing))}")
    if facts.absent and facts.matched:
        lines.append(f"  Not there (nothing will follow them): {', '.join(map(spoken, facts.absent))}")
    if facts.unused and facts.matched:
        shown = ", ".join(facts.unused[:12]) + (f" and {len(facts.unused) - 12} more" if len(facts.unused) > 12 else "")
        lines.append(f"  Not used ({len(facts.unused)}): {shown}")
    lines += [f"  Note: {note}" for note in facts.notes]
    return "\n".join(lines)


def _summary(facts: Report, count: int) -> str:
    used = count - len(facts.unused)
    if not facts.matched:
        return f"None of {_joints(count)} was matched."
    how = {
        "structure": "found by the shape of the skeleton alone, not by names",
        "names of no one family": "names of no known family, matched word by word",
    }.get(facts.family, f"{facts.family} names")
    return f"{used} of {_joints(count)} matched: {how}."


def _joints(count: int) -> str:
    return "1 joint" if count == 1 else f"{count} joints"


def _one(role: str, names: tuple[str, ...], sure: float, short: bool) -> str:
    said = spoken(role)
    if short:  # the line's title names the side
        said = said.removeprefix("left ").removeprefix("right ")
    shown = names[0] if len(names) == 1 else f"{names[0]} ... {names[-1]} ({len(names)})"
    return f"{said} = {shown}{' ?' if sure < DOUBTFUL else ''}"
