# SPDX-License-Identifier: GPL-3.0-or-later
"""One finished take -> its files. All of them or none: each is written under a hidden name first."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ..motion.errors import FileError
from .naming import SUFFIXES

if TYPE_CHECKING:
    import bpy

    from ..blender.job import JobResult


@dataclass(frozen=True)
class Finished:
    """A take on its character, ready to be written.

    Parameters
    ----------
    obj : armature object
    result : JobResult
    gltf : Path or None
        The glTF file the character came from; a clip takes its node names from it.
    export : ExportChoices
    """

    obj: bpy.types.Object
    result: JobResult
    gltf: Path | None
    export: ExportChoices = field(default_factory=lambda: ExportChoices())


@dataclass(frozen=True)
class ExportChoices:
    """How clips are written. ``bound`` in metres; None: every frame to the last digit."""

    bound: float | None = None
    match: bool = False
    loop: bool = False
    mesh: bool = True
    fbx: str = "unreal"


def write(formats: Sequence[str], done: Finished, folder: Path, stem: str) -> tuple[dict[str, str], list[str]]:
    """Write the wanted formats; returns format -> path, and notes.

    Raises
    ------
    MocapError
        One of them could not be written; then none is there, and what was there before still is.
    """
    paths = {name: folder / (stem + SUFFIXES[name]) for name in formats}
    hidden = {name: folder / f".mocap-{os.getpid()}{SUFFIXES[name]}" for name in formats}
    notes: list[str] = []
    try:
        for name in formats:
            notes += _WRITERS[name](done, hidden[name])
        for path in paths.values():
            if path.is_dir():
                raise FileError("There is a folder of this name; move it away.", path)
        for name in formats:
            os.replace(hidden[name], paths[name])
    except OSError as error:
        raise FileError(f"The files cannot be written there ({error.strerror or error}).", folder) from None
    finally:
        for path in hidden.values():
            path.unlink(missing_ok=True)
    return {name: str(path) for name, path in paths.items()}, notes


def _blend(done: Finished, path: Path) -> Sequence[str]:
    from ..blender import scenes

    scenes.save_blend(path)
    return ()


def _bvh(done: Finished, path: Path) -> Sequence[str]:
    from .. import formats

    formats.write(done.result.take, path)
    return ()


def _exported(name: str) -> Callable[[Finished, Path], Sequence[str]]:
    """A writer for a format that actions are exported in."""

    def write_one(done: Finished, path: Path) -> Sequence[str]:
        from ..blender import exported_motion

        return exported_motion.write(done.obj, done.result, name, path, done.export, character=done.gltf)

    return write_one


_WRITERS: dict[str, Callable[[Finished, Path], Sequence[str]]] = {
    name: {"blend": _blend, "bvh": _bvh}.get(name) or _exported(name) for name in SUFFIXES
}
