# SPDX-License-Identifier: GPL-3.0-or-later
"""A recording -> actions: one for each performer and prop that drives something, in time with each other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import bpy
import numpy as np

from ..blender import actions, batch, compat, live_pose, prop_objects, scenes
from ..motion.errors import MocapError
from ..motion.take import Take
from ..stream import capture, sidecar
from . import body, live, live_hold, live_notes, settings, table_sync

_last: list[Path] = []


@dataclass(frozen=True)
class Made:
    """An action, and what it moves."""

    action: str
    target: str


def stop(scene: bpy.types.Scene) -> Path | None:
    """End the recording, or the countdown to it; the file, None where nothing was recorded. The next take's number is set."""
    found = live.running()
    if found is None:
        return None
    found.record_at = None
    if found.session.notes is not None and found.session.recording is not None:
        live_notes.keep(found.session, found.rigs, scene, found.session.notes)  # with those who came, and what was set, since it began
    path = found.session.stop_recording()
    if path is not None:
        scene.mocap.live.number += 1
        _last[:] = [path]
    return path


def rate(stars: int) -> None:
    """The rating of the last recording into the notes beside it."""
    for path in _last:
        said = sidecar.load(path)
        if said is not None:
            said.rating = stars
            sidecar.save(path, said)


def last() -> Path | None:
    """The recording that was made last."""
    return _last[0] if _last else None


def actions_of(scene: bpy.types.Scene, path: str | Path) -> tuple[list[Made], list[str]]:
    """Actions of a recording for those whom the scene's list lets drive something; all of them or none. Notes too.

    Raises
    ------
    MocapError
        The recording cannot be read, or holds nobody.
    """
    keep = scene.mocap.live.keys == "SOURCE"
    rate_of = None if keep else scenes.scene_rate(scene)
    found = capture.load(path)
    takes = capture.takes(found, rate=rate_of, props="apart")
    if not takes:
        raise MocapError(f"{Path(path).name} holds no performer and no prop; look at the sources under Live.")
    made: list[Made] = []
    notes: list[str] = []
    idle: list[str] = []
    with ExitStack() as stack:
        undo = stack.enter_context(actions.Rollback())
        for take in takes:
            binding = _binding(scene, take)
            kind = str(take.facts.get("kind", "body"))
            if kind == "prop":
                made.append(_prop(scene, take, binding.target if binding is not None else None, keep, undo))
            elif binding is None or binding.target is None:
                idle.append(take.performer or take.name)
            else:
                action, said = _body(scene, take, binding, keep, stack)
                made.append(Made(action.name, binding.target.name))
                notes += said
    if idle:
        notes.append(f"{', '.join(idle)}: drives nothing yet; choose a character under Live, then make the actions of the recording again.")
    return made, list(dict.fromkeys(notes))


def sentence(path: str | Path, made: Sequence[Made]) -> str:
    """For the status bar."""
    name = Path(path).name
    if not made:
        return f"{name} is kept; nobody in it drives anything yet."
    what = f'action "{made[0].action}"' if len(made) == 1 else f"{len(made)} actions"
    return f"{name}: {what}."


def _binding(scene: bpy.types.Scene, take: Take):
    facts = take.facts
    key = (str(facts.get("sender", "")), str(facts.get("kind", "body")), str(facts.get("source_id", "")))
    who = live_notes.identity(key)
    listed = scene.mocap.live.performers
    exact = next((b for b in listed if b.identity == who), None)
    if exact is not None:
        return exact
    # sent from another computer this time: who is alone of that kind and name
    tail = who.split("|", 2)[-1]
    alike = [b for b in listed if b.identity.split("|", 2)[-1] == tail and b.identity.split("|")[0] == who.split("|")[0]]
    return alike[0] if len(alike) == 1 else None


def _start(scene: bpy.types.Scene, take: Take, keep: bool) -> float:
    """Scene frame of the first sample: performers of one recording keep their time to each other."""
    owner = scene.mocap
    first = float(owner.frame_start if owner.use_frame_start else scene.frame_start)
    if keep:
        return first + float(take.facts.get("start_s", 0.0)) * float(scenes.scene_rate(scene))
    return first + float(take.facts.get("first_frame", 0))


def _body(scene: bpy.types.Scene, take: Take, binding, keep: bool, stack: ExitStack) -> tuple[bpy.types.Action, tuple[str, ...]]:
    obj = binding.target
    if obj.name not in scene.objects:
        raise MocapError(f'"{obj.name}" is not in this scene; choose another character under Live.')
    rotations, translations = live_notes.reference_of(binding, take.skeleton)
    take = replace(take, skeleton=live_pose.rested(take.skeleton, rotations, translations))
    options = replace(
        settings.job_options(scene.mocap),
        rate="source" if keep else scenes.scene_rate(scene),
        frame_start=_start(scene, take, keep),
        adjustments=body.adjustments(obj, scene),
    )
    table = table_sync.to_table(obj)
    if table is not None and any(name not in take.skeleton for row in table.rows for name in row.source):
        table = None
    stack.enter_context(live_hold.released(obj, scene.frame_current_final))
    with batch.all_or_none(obj):
        result = batch.retarget_all(obj, (take,), table=table, options=options)[0]
    if table_sync.to_table(obj) is None:
        table_sync.from_table(obj, result.table)
    return result.action, result.notes


def _prop(scene: bpy.types.Scene, take: Take, obj: bpy.types.Object | None, keep: bool, undo: actions.Rollback) -> Made:
    name = take.performer or take.name
    if obj is None:
        obj = bpy.data.objects.new(name, None)
        undo.add(lambda: bpy.data.objects.remove(obj))
        obj.empty_display_type, obj.empty_display_size = "ARROWS", 0.1 / float(scene.unit_settings.scale_length)
        obj.rotation_mode = "QUATERNION"
        scene.collection.objects.link(obj)
    with live_hold.released(obj, scene.frame_current_final):
        action, slot, bag = compat.new_action(take.name)
        undo.add(lambda: bpy.data.actions.remove(action))
        fps: Fraction = scenes.scene_rate(scene)
        frames = actions.key_frames(take.times, _start(scene, take, keep), fps, None if keep else fps)
        places = np.broadcast_to(take.local_translations[:, 0], (take.frames, 3)) / float(scene.unit_settings.scale_length)
        actions.write_curves(bag, frames, prop_objects.channels_of(obj, take.local_rotations[:, 0], places))
        actions.make_active(obj, action, slot, undo)
    return Made(action.name, obj.name)
