# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes of any file: the one door for operators and the command line. What needs no Blender is read without it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from .. import formats
from ..formats import ReadOptions
from ..motion.errors import FileError
from ..motion.steps import Progress, Steps, run
from ..motion.take import Take
from . import take_files

EXTENSIONS: tuple[str, ...] = (*(e for kind in formats.FORMATS if kind.reader for e in kind.extensions), ".fbx", ".blend")
"""Endings of the files that takes are read from, with the dot."""

_FBX = (b"Kaydara FBX Binary", b"; FBX")
_BLEND = b"BLENDER"
_PACKED_BLEND = (b"\x28\xb5\x2f\xfd", b"\x1f\x8b")


def read_takes(path: str | Path, options: ReadOptions | None = None, progress: Progress | None = None) -> list[Take]:
    """The takes of a file, in the project's axes and metres. The open file is not changed.

    Parameters
    ----------
    path : path
        Any file of :mod:`mocap_addon.formats`; ``.fbx`` and ``.blend`` by Blender's own importers.
    options : ReadOptions, optional
    progress : callable, optional
        Called with the share done (0..1) while a large file is read or Blender evaluates a motion frame by frame; returning False cancels.

    Returns
    -------
    list of Take
        ``facts`` hold ``path``, ``hash`` and ``read``, as :func:`mocap_addon.formats.read` says.

    Raises
    ------
    MocapError
        One plain sentence. Nothing of the file stays behind.
    """
    return run(read_steps(path, options), progress, f"Reading {Path(path).name} was cancelled.")


def read_steps(path: str | Path, options: ReadOptions | None = None) -> Steps[list[Take]]:
    """:func:`read_takes` step by step, as far as the kind of file allows."""
    path = Path(path)
    reader = _reader(path)
    if reader is None:
        kind = formats.recognise(path)
        return formats.read(path, options) if kind.steps is None else (yield from formats.read_steps(path, options))
    source = formats.origin(path, options)
    takes = yield from reader(path.absolute(), options)
    return [replace(take, facts={**take.facts, **source}) for take in takes]


def _reader(path: Path) -> Callable[[Path, ReadOptions | None], Steps[list[Take]]] | None:
    """Blender's part by content, and by name where the content is packed; None for the rest."""
    try:
        with path.open("rb") as file:
            head = file.read(32)
    except OSError as error:
        raise FileError(f"The file cannot be opened ({error.strerror or error}).", path) from None
    if head.startswith(_FBX):
        return take_files.fbx_steps
    if head.startswith(_BLEND) or (head.startswith(_PACKED_BLEND) and path.suffix.lower().startswith(".blend")):
        return take_files.blend_steps
    return None
