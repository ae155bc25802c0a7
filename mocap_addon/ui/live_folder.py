# SPDX-License-Identifier: GPL-3.0-or-later
"""Where recordings lie and what they are called."""

from __future__ import annotations

import time
from pathlib import Path

import bpy

from ..stream.session import recover
from ..stream.sidecar import unfinished
from ..stream.supervisor import StreamError

_IN_USE = 10.0


def take_name(scene: bpy.types.Scene) -> str:
    """Slate, name and number of the next take, as a file's name."""
    settings = scene.mocap.live
    parts = (clean(settings.slate), clean(settings.take) or "Take", f"{settings.number:03d}")
    return "_".join(part for part in parts if part)


def recordings(scene: bpy.types.Scene) -> Path:
    """The folder of recordings; made where it is not there.

    Raises
    ------
    StreamError
        It cannot be made.
    """
    folder = _folder(scene)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StreamError(f'The folder "{folder}" for recordings cannot be made ({error.strerror}); choose another.') from None
    return folder


def cut_short(scene: bpy.types.Scene) -> str:
    """A sentence on recordings that a crash has cut short: they are whole up to that moment, and said once."""
    folder = _folder(scene)
    cut = unfinished(folder) if folder.is_dir() else []
    if not cut or any(time.time() - path.stat().st_mtime < _IN_USE for path in cut):
        return ""  # another Blender may be recording there
    found = recover(folder)
    names = ", ".join(path.name for path in found[:3])
    return f"{names}: cut short by a crash, whole up to that moment; Actions of a Recording makes actions of it."


def _folder(scene: bpy.types.Scene) -> Path:
    chosen = scene.mocap.live.folder.strip()
    if chosen:
        return Path(bpy.path.abspath(chosen))
    return Path(bpy.data.filepath).parent / "mocap" if bpy.data.filepath else Path(_own_folder())


def _own_folder() -> str:
    package = __package__.rpartition(".")[0]
    if package.startswith("bl_ext."):
        return bpy.utils.extension_path_user(package, path="recordings", create=True)
    return str(Path(bpy.utils.resource_path("USER")) / "mocap_recordings")


def clean(text: str) -> str:
    """Words of a person as a part of a file's name."""
    return "".join(c if c.isalnum() or c in " -." else "_" for c in text).strip(" .")[:80]
