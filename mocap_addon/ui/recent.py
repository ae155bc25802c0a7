# SPDX-License-Identifier: GPL-3.0-or-later
"""The files used last, over all sessions where the extension has a folder of its own to write to."""

from __future__ import annotations

import json
import logging
import os

import bpy

MOST = 12

_paths: list[str] = []
_log = logging.getLogger(__name__)


def paths() -> tuple[str, ...]:
    """Newest first."""
    return tuple(_paths)


def add(path: str) -> None:
    """Put ``path`` in front."""
    if _paths[:1] == [path]:
        return
    _paths[:] = [path, *(p for p in _paths if p != path)][:MOST]
    _save()


def load() -> None:
    """Read the list of former sessions; a missing or damaged list is an empty one."""
    name = _storage(create=False)
    if name is None or not os.path.isfile(name):
        return
    try:
        with open(name, encoding="utf-8") as file:
            found = json.load(file)
        _paths[:] = [p for p in found if isinstance(p, str)][:MOST]
    except (OSError, ValueError, TypeError):
        _log.info("The list of recent takes could not be read; starting a new one.")


def _save() -> None:
    name = _storage(create=True)
    if name is None:
        return
    try:
        with open(name + ".part", "w", encoding="utf-8") as file:
            json.dump(_paths, file)
        os.replace(name + ".part", name)
    except OSError:
        _log.info("The list of recent takes could not be saved.")


def _storage(*, create: bool) -> str | None:
    """Only an installed extension has a folder to write to; from a checkout the list lives for the session."""
    package = __package__.rpartition(".")[0]
    if not package.startswith("bl_ext."):
        return None
    try:
        return os.path.join(bpy.utils.extension_path_user(package, create=create), "recent_takes.json")
    except (ValueError, OSError):
        return None


class MOCAP_MT_recent(bpy.types.Menu):
    """Motion files used lately."""

    bl_idname = "MOCAP_MT_recent"
    bl_label = "Recent Takes"

    def draw(self, context: bpy.types.Context) -> None:
        if not _paths:
            self.layout.label(text="No takes yet")
        for path in _paths:
            op = self.layout.operator("mocap.open_take", text=os.path.basename(path), icon="FILE")
            op.filepath = path
