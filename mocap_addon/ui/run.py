# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes onto a character, for the operators: all takes of a file or none of them, and the table kept with the armature."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import bpy

from ..blender import batch, job
from ..blender.job import JobOptions
from ..motion.errors import MocapError, RigError
from ..motion.take import Take
from ..rig.table import CorrectionTable
from . import body, fitting, live, live_hold, preview, settings, table_sync, takes

LONG_WORK = 1_000_000
"""Samples times joints from which a progress number is shown: about a second."""


@dataclass(frozen=True)
class Outcome:
    """What came of one file: names of the actions, how many bones follow, what a person should know."""

    actions: tuple[str, ...]
    bones: int
    notes: tuple[str, ...]

    def sentence(self, obj_name: str) -> str:
        """For the status bar."""
        what = f'Action "{self.actions[0]}"' if len(self.actions) == 1 else f"{len(self.actions)} actions"
        return f"{what} on {obj_name}: {self.bones} bones follow the take."


def onto(obj: bpy.types.Object, found: tuple[Take, ...], options: JobOptions, step: Callable[[], None] | None = None) -> Outcome:
    """Every take as an action of its own; the first one is left assigned.

    A table made by hand is used as it stands; without one the bones are matched, and the table is stored with the armature.

    Raises
    ------
    MocapError
        And nothing stays behind: no action, no other assignment than before.
    """
    scene = bpy.context.scene
    end_preview(scene, obj)
    options = replace(options, adjustments=body.adjustments(obj, scene))
    with live_hold.released(obj, scene.frame_current_final), batch.all_or_none(obj):
        table = usable_table(obj, found[0])
        made = batch.retarget_all(obj, found, table=table, options=options, progress=None if step is None else lambda _done: step())
        if table is None:
            table_sync.from_table(obj, made[0].table)
        else:
            table_sync.set_measures(obj, made[0].table)
    notes = dict.fromkeys(note for one in made for note in one.notes)
    return Outcome(tuple(one.action.name for one in made), len(made[0].table.rows), tuple(notes))


def end_preview(scene: bpy.types.Scene, obj: bpy.types.Object) -> None:
    """The character gets its own pose back, before an action is written. :class:`RigError` while a person works on its reference pose."""
    if obj.mocap.posing == preview.REFERENCE:
        raise RigError(f'The reference pose of "{obj.name}" is being edited; press Apply or Cancel first.')
    preview.end(scene, obj)


def usable_table(obj: bpy.types.Object, take: Take) -> CorrectionTable | None:
    """The stored table when it fits this take and these bones; None when the bones are to be matched.

    Raises
    ------
    RigError
        The table does not fit, but a person worked on it: it is not thrown away unasked.
    """
    table = table_sync.to_table(obj)
    if table is None:
        return None
    sources, targets = table_sync.strangers(table, take.skeleton.names, obj.data.bones.keys())
    if not sources and not targets:
        return table
    if not table_sync.is_edited(obj):
        return None
    where, name = ("take", sources[0]) if sources else ("character", targets[0])
    raise RigError(f'The bone table was made for another {where}: here is no bone "{name}"; press Match under Bones, or load a table.')


def matched(obj: bpy.types.Object, take: Take, options: JobOptions, *, keep: bool) -> CorrectionTable:
    """A freshly computed table; with ``keep`` the corrections made so far live on in it."""
    table = job.preview_table(obj, take, reference_frame=options.reference_frame, controls=options.controls)[0]
    if not keep:
        return table
    return measured(obj, table_sync.carry_corrections(table_sync.to_table(obj), table), take, options)


def measured(obj: bpy.types.Object, table: CorrectionTable, take: Take, options: JobOptions) -> CorrectionTable:
    """The table with residuals computed anew; :class:`MocapError` when it does not fit take or character."""
    return fitting.fit(obj, take, table, options).measured(table)


def table_changed(scene: bpy.types.Scene, obj: bpy.types.Object) -> None:
    """After an edit: show how the bones point, if the take is in memory, and the pose, if it is previewed."""
    reading, table = takes.loaded(scene), table_sync.to_table(obj)
    live.forget()
    if table is None:
        return
    found = None
    if reading is not None:
        with suppress(MocapError, IndexError):
            found = fitting.fit(obj, reading.takes[0], table, settings.job_options(scene.mocap))
            table_sync.set_measures(obj, found.measured(table))
    preview.refresh(scene, obj, table, found)


def settings_changed(scene: bpy.types.Scene) -> None:
    """After a change of the panel's settings: everything that shows a preview."""
    for obj in preview.showing():
        if obj.mocap.posing == preview.PREVIEW and scene in obj.users_scene:
            table_changed(scene, obj)


@contextmanager
def progress(context: bpy.types.Context, steps: int, work: int) -> Iterator[Callable[[], None] | None]:
    """The number beside the mouse pointer, for work that lasts over a second; yields the function that counts one step."""
    if work < LONG_WORK:
        yield None
        return
    manager = context.window_manager
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        manager.progress_update(done)

    manager.progress_begin(0, max(steps, 1))
    try:
        yield step
    finally:
        manager.progress_end()


def work_of(found: tuple[Take, ...]) -> int:
    """Samples times joints of all takes."""
    return sum(take.frames * len(take.skeleton) for take in found)
