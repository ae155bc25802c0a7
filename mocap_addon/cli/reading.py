# SPDX-License-Identifier: GPL-3.0-or-later
"""Files named on the command line -> takes."""

from __future__ import annotations

import argparse
import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from ..motion.errors import FileError, MocapError

if TYPE_CHECKING:
    from ..formats import ReadOptions
    from ..motion.take import Take


def expanded(words: Iterable[str]) -> list[Path]:
    """The files that the words name, each once. A pattern that the shell has left (Windows' does) is expanded here."""
    out: dict[str, Path] = {}
    for word in words:
        found = sorted(glob.glob(word)) if not os.path.exists(word) and glob.has_magic(word) else [word]
        for name in found or [word]:
            out.setdefault(os.path.abspath(name), Path(name))
    return list(out.values())


def read(path: Path, options: argparse.Namespace | None = None, *, blender: bool = False) -> list[Take]:
    """Every take in ``path``; :class:`MocapError` when there is none or it cannot be read. ``blender``: also what only Blender can read."""
    if blender:
        from ..blender.takes import read_takes as read_file
    else:
        from ..formats import read as read_file

    if path.is_dir():
        raise FileError("This is a folder; name the files in it.", path)
    try:
        takes = read_file(path, read_options(options) if options else None)
    except OSError as error:
        raise FileError(f"The file cannot be read ({error.strerror or error}).", path) from None
    except MemoryError:
        raise FileError("The file asks for more memory than there is.", path) from None
    if not takes:
        raise MocapError(f"{path.name}: There is no take in this file.")
    return takes


def read_options(options: argparse.Namespace) -> ReadOptions:
    """The command's ``--up``, ``--rest-up``, ``--unit`` and ``--take-fps`` as the formats' options."""
    from ..formats import ReadOptions

    up, rest_up = (axis and axis.upper() for axis in (options.up, options.rest_up))
    return ReadOptions(rate=options.take_fps, up=up, rest_up=rest_up, unit=options.unit)
