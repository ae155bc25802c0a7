# SPDX-License-Identifier: GPL-3.0-or-later
"""Ground from files, through Blender's own importers: for the command line. Everything goes again afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import bpy

from ..motion.errors import FileError
from . import characters

KINDS = (".blend", ".glb", ".gltf", ".fbx", ".obj", ".ply", ".stl")
"""Endings of files that can be ground."""


@contextmanager
def brought_in(path: str | Path) -> Iterator[list[bpy.types.Object]]:
    """The objects of a file, in the current scene for as long as the block lasts, moving as they do there.

    Raises
    ------
    FileError
        The file is missing, of another kind, cannot be read, or holds nothing.
    """
    path = Path(path).absolute()
    importer = _IMPORTERS.get(path.suffix.lower())
    if importer is None:
        raise FileError(f"this cannot be ground; choose one of {', '.join(KINDS)}.", path)
    if not path.is_file():
        raise FileError("there is no such file; check the path.", path)
    before = characters._idents()
    try:
        with characters._as_it_was(bpy.context.scene), characters._quiet():
            importer(path)
    except Exception as error:  # an importer may raise anything on a damaged file
        characters._remove(before)
        raise FileError(f"Blender cannot read this file ({characters._reason(error, path)}).", path) from error
    new = [block for blocks in characters._collections() for block in blocks if block.session_uid not in before]
    try:
        found = [block for block in new if isinstance(block, bpy.types.Object)]
        if not found:
            raise FileError("there is nothing in this file to stand on.", path)
        yield found
    finally:
        bpy.data.batch_remove(new)


def _operator(name: str) -> Callable[[Path], None]:
    def run(path: Path) -> None:
        getattr(bpy.ops.wm, name)(filepath=str(path))

    return run


_IMPORTERS: dict[str, Callable[[Path], None]] = {
    **{ending: characters._IMPORTERS[ending] for ending in (".blend", ".glb", ".gltf", ".fbx")},
    ".obj": _operator("obj_import"),
    ".ply": _operator("ply_import"),
    ".stl": _operator("stl_import"),
}
