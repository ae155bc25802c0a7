# SPDX-License-Identifier: GPL-3.0-or-later
"""What travels with a pose besides bones, written with its action: morphs, props, marks. (Time code is curves of the motion itself.)"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion.errors import MocapError
from ..motion.take import Take
from ..retarget.extras import Extras
from ..retarget.motion import PoseMotion
from . import companions, markers, morph_keys, prop_objects
from .actions import Rollback
from .armature import Target
from .companions import Companion

_MOVES = 0.01
"""Metres that a joint has to leave its place by to be told of."""


@dataclass(frozen=True, eq=False)
class Planned:
    """What :func:`plan` found, to be written by :func:`write`. ``morphs`` says which shape keys the curves move, for exports too."""

    found: Sequence[Companion]
    events: tuple[tuple[float, str], ...]
    first: float
    morphs: morph_keys.Plan
    notes: tuple[str, ...]


def time_coded(motion: PoseMotion, take: Take, extras: Extras) -> PoseMotion:
    """The motion with the time code that is asked for; :class:`MocapError` where that is none. ``take`` has the same samples."""
    return motion.with_time_code(extras.time_code.of(take))


def plan(
    obj: bpy.types.Object,
    target: Target,
    motion: PoseMotion,
    take: Take,
    extras: Extras,
    action: bpy.types.Action | None,
    scene: bpy.types.Scene,
) -> Planned:
    """Everything that can go wrong, before anything is written. ``action`` is the one that is made again, if it is.

    Raises
    ------
    MocapError
    """
    morphs = morph_keys.plan(obj, motion.curves, take.facts, extras.morphs)
    found = list(morph_keys.companions_of(morphs, motion.curves))
    if extras.props.use:
        found += prop_objects.companions_of(obj, target, motion.props, extras.props, action, scene)
    for one in found:
        for channel in one.channels:
            if not np.isfinite(channel.values.sum()):
                raise MocapError(f'The motion of "{one.name}" ({channel.path}) is not a number somewhere; repair or cut the take there.')
    notes = [*morphs.notes, *morph_keys.clipped(morphs, motion.curves), *prop_objects.unused(motion.props, extras.props)]
    if take.timecode is not None and take.time_code is None:
        notes.append(f'"{take.timecode}" is not a time code at the take\'s rate; it was left out.')
    return Planned(found, take.events if extras.markers else (), float(motion.times[0]), morphs, tuple(notes))


def write(action: bpy.types.Action, frames: NDArray[np.float64], planned: Planned, undo: Rollback, *, assign: bool = True) -> list[str]:
    """Write it; notes."""
    notes = companions.write(action, frames, planned.found, undo, assign=assign)
    markers.write(bpy.context.scene, planned.events, planned.first, float(frames[0]), undo)
    return notes


def still_rows(take: Take, table_rows: Sequence[tuple[str, bool]]) -> list[str]:
    """A note on joints that the take moves about while their rows only turn. ``table_rows``: joint and whether its row is movable."""
    if len(take.local_translations) != take.frames:
        return []
    away = np.ptp(take.local_translations, axis=0).max(axis=1)
    names = [n for n, moves in table_rows if not moves and n in take.skeleton and away[take.skeleton.index(n)] > _MOVES]
    if not names:
        return []
    shown = ", ".join(f'"{name}"' for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return [f"The take moves {shown} out of place, which their bones do not follow; mark their rows as movable if they are to."]
