# SPDX-License-Identifier: GPL-3.0-or-later
"""What a take is, in a few labelled words for the panel. No bpy."""

from __future__ import annotations

from collections.abc import Sequence

from ..motion import timeline
from ..motion.take import Take
from ..retarget import neutral
from ..rig import rest_pose
from ..rig.roles import ROLES, RoleMap
from . import words
from .reading import Reference

Facts = tuple[tuple[str, str], ...]


def facts(takes: Sequence[Take], roles: Sequence[RoleMap]) -> Facts:
    """Label and value of everything worth knowing about a file's takes."""
    take, found = takes[0], roles[0]
    out: list[tuple[str, str]] = []
    if len(takes) > 1:
        out.append(("Performers", f"{len(takes)}: {words.listed([t.name for t in takes], 2)}"))
    out.append(("Skeleton", f"{found.family or 'unknown'}, {len(take.skeleton)} bones"))
    length = f"{words.duration_words(take.duration)}, {take.frames} frames" if take.frames > 1 else f"{take.frames or 'no'} frame"
    out.append(("Length", length))
    out.append(("Rate", f"{timeline.format_rate(take.rate)} per second" if take.rate else "uneven"))
    unit = take.facts.get("unit")
    if isinstance(unit, (int, float)) and unit > 0:
        out.append(("One Unit", words.length_words(float(unit))))
    if take.facts.get("up"):
        facing = take.facts.get("facing")
        out.append(("Axes", f"{take.facts['up']} up" + (f", facing {facing}" if facing else "")))
    out.append(("Rest Pose", rest_pose.describe(take.skeleton, found)))
    if take.timecode:
        out.append(("Time Code", take.timecode))
    missing = found.missing()
    if missing:
        out.append(("Not Found", words.listed([words.role_words(role) for role in missing], 3)))
    return tuple(out)


_DOUBTFUL_PART = 0.5


def reference(take: Take) -> Reference:
    """The pose that the take's rotations are counted from where a person chooses none."""
    if take.facts.get("rest") in neutral.BODIES:
        return Reference("the rest pose")
    found = neutral.found_for(take)
    doubtful = [words.role_words(role) for role in ROLES if found.sure.get(role, 1.0) < _DOUBTFUL_PART and role != "root"]
    where = {
        "rest": "the rest pose",
        "frame": f"recorded frame {found.frame}, a T-pose",
        "motion": "worked out from the motion",
        "family": "known from the kind of skeleton",
    }[found.how]
    return Reference(where, found.confidence, tuple(doubtful), found.notes)
