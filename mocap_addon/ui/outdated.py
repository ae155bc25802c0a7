# SPDX-License-Identifier: GPL-3.0-or-later
"""Which actions of a character are no longer what their take, table and sliders would give.

Drawing asks only what is in memory. Files are looked at by a timer a moment after a panel asked for them, and read again only when their
size or time has changed.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress

import bpy

from .. import formats, rig
from ..blender import job, recipes, update
from ..motion.errors import FileError, MocapError
from ..rig.table import CorrectionTable, Row
from . import body, table_sync

EVERY = 2.0
"""Seconds between two looks at the files."""

_Stamp = tuple[int, int]
_hashes: dict[str, tuple[_Stamp, str] | None] = {}
_wanted: dict[str, float] = {}
_asked: dict[str, float] = {}
_tables: dict[tuple[int, int], CorrectionTable | None] = {}


def of(obj: bpy.types.Object) -> dict[str, tuple[str, ...]]:
    """Names of the actions made here for a character -> what has changed since, in plain words; empty when nothing has."""
    return {action.name: reasons(bpy.context.scene, obj, action) for action in update.actions_of(obj)}


def reasons(scene: bpy.types.Scene, obj: bpy.types.Object, action: bpy.types.Action) -> tuple[str, ...]:
    """What has changed since the action was made."""
    recipe = recipes.recipe_of(action) or {}
    out: list[str] = []
    state = _file_state(recipe)
    if state is not None and state != recipe.get("source_hash"):
        out.append("the take's file" if state else "the take's file is gone")
    stored, table = _table_of(action, recipe), table_sync.to_table(obj)
    if stored is not None and table is not None and suits(table, stored) and _essence(table) != _essence(stored):
        out.append("the bones")
    with suppress(MocapError, TypeError, ValueError):
        if job.options_of(recipe).adjustments != body.adjustments(obj, scene):
            out.append("the body sliders")
    return tuple(out)


def suits(table: CorrectionTable, stored: CorrectionTable) -> bool:
    """Whether the window's table can be for the same take as the one an action was made with."""
    known = {name for row in stored.rows for name in row.source} | set(stored.unmapped_source)
    return all(name in known for row in table.rows for name in row.source)


def stored_table(action: bpy.types.Action) -> CorrectionTable | None:
    """The table an action was made with."""
    return _table_of(action, recipes.recipe_of(action) or {})


def forget_all() -> None:
    """Let go of everything."""
    _hashes.clear()
    _wanted.clear()
    _asked.clear()
    _tables.clear()
    if bpy.app.timers.is_registered(look):
        bpy.app.timers.unregister(look)


def look() -> None:
    """Look at the files that were asked for. For the timer; tests call it."""
    changed = False
    for path in list(_wanted):
        del _wanted[path]
        before = _hashes.get(path)
        try:
            info = os.stat(path)
            stamp = (info.st_size, info.st_mtime_ns)
            if before is None or before[0] != stamp:
                _hashes[path] = (stamp, formats.content_hash(path))
        except (OSError, FileError):
            _hashes[path] = ((0, 0), "")
        changed |= _hashes[path] != before
    if changed:
        for window in bpy.context.window_manager.windows:
            for area in window.screen.areas:
                if area.type == "VIEW_3D":
                    area.tag_redraw()


def _file_state(recipe: dict[str, object]) -> str | None:
    """Hash of the take's file as it was last seen: empty when it is gone, None when it was not looked at yet or there is no file."""
    path = str(recipe.get("source") or "")
    if not path or recipe.get("rig"):
        return None
    now = time.monotonic()
    if now - _asked.get(path, -EVERY) >= EVERY:
        _asked[path] = _wanted[path] = now
        if not bpy.app.background and not bpy.app.timers.is_registered(look):
            bpy.app.timers.register(look, first_interval=0.2)
    found = _hashes.get(path)
    return None if found is None else found[1]


def _table_of(action: bpy.types.Action, recipe: dict[str, object]) -> CorrectionTable | None:
    text = recipe.get("table")
    if not isinstance(text, str):
        return None
    key = (action.session_uid, hash(text))
    if key not in _tables:
        if len(_tables) > 64:
            _tables.clear()
        try:
            _tables[key] = rig.loads(text)
        except MocapError:
            _tables[key] = None
    return _tables[key]


def _essence(table: CorrectionTable) -> list[tuple[object, ...]]:
    """What of a table makes the motion."""

    def of_row(row: Row) -> tuple[object, ...]:
        angles = tuple(round(a, 3) + 0.0 for a in row.correction)
        return (row.target, row.source, row.rule, round(row.blend, 4), angles, row.movable)

    return sorted(of_row(row) for row in table.rows)
