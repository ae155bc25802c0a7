# SPDX-License-Identifier: GPL-3.0-or-later
"""What was marked in a take, as markers of the scene."""

from __future__ import annotations

from collections.abc import Iterable

import bpy

from .actions import Rollback
from .scenes import scene_rate


def write(scene: bpy.types.Scene, events: Iterable[tuple[float, str]], first: float, frame_start: float, undo: Rollback) -> int:
    """Markers at the whole frames nearest to the events; the number of new ones.

    Parameters
    ----------
    scene : scene
    events : iterable of (seconds, name)
        On the take's time axis.
    first : float
        Seconds of the take's first sample.
    frame_start : float
        Scene frame of the first sample.

    A marker of the same name on the same frame is not made twice; markers that are there are never moved.
    """
    rate = float(scene_rate(scene))
    there = {(marker.frame, marker.name) for marker in scene.timeline_markers}
    made = 0
    for seconds, name in events:
        frame = round(frame_start + (seconds - first) * rate)
        name = name.strip()[:63] or "Event"
        if (frame, name) in there:
            continue
        there.add((frame, name))
        marker = scene.timeline_markers.new(name, frame=frame)
        undo.add(lambda marker=marker: scene.timeline_markers.remove(marker))
        made += 1
    return made
