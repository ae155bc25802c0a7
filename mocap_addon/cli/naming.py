# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of output files: after the take, legal on every system, never twice, never an input's."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

SUFFIXES: dict[str, str] = {
    "blend": ".blend",
    "threejs": ".clip.json",
    "glb": ".glb",
    "fbx": ".fbx",
    "vrma": ".vrma",
    "bvh": ".bvh",
}
"""The output formats and how their files' names end. Beside ``blend`` each is a row of :data:`..blender.export_formats.FORMATS` too."""

COLLECTED: dict[str, str] = {"map": ".map.json", "viewer": ".html"}
"""Formats that are written once for all takes of a run."""

_FORBIDDEN = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_DEVICES = re.compile(r"(?i)(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
_LONGEST = 120  # Bytes; leaves room for endings and numbers within the usual 255.


def file_stem(name: str) -> str:
    """``name`` with what file systems forbid replaced by ``_``; never empty.

    Windows' rules are the strictest (reserved characters and device names, no dot or space at the end), so they hold everywhere: a folder
    of results can be copied anywhere.
    """
    stem = _FORBIDDEN.sub("_", name).strip().rstrip(". ")
    while len(os.fsencode(stem)) > _LONGEST:
        stem = stem[:-1]
    stem = stem.rstrip(". ").lstrip(".")
    if not stem:
        return "take"
    return f"{stem}_" if _DEVICES.fullmatch(stem) else stem


class Names:
    """Hands out file stems, each once.

    Parameters
    ----------
    folder : Path
        Where the files will lie.
    inputs : iterable of Path
        Files that must not be overwritten, whatever they are called.
    """

    def __init__(self, folder: Path, inputs: Iterable[Path]) -> None:
        self._folder = folder
        self._inputs = {_same(path) for path in inputs}
        self._taken: set[str] = set()

    def stem(self, name: str) -> str:
        """A stem for ``name``: itself, or with ``_2``, ``_3`` ... when it is taken (case does not tell files apart everywhere)."""
        base = file_stem(name)
        stem, n = base, 1
        while stem.casefold() in self._taken or self._hits_input(stem):
            n += 1
            stem = f"{base}_{n}"
        self._taken.add(stem.casefold())
        return stem

    def _hits_input(self, stem: str) -> bool:
        return any(_same(self._folder / (stem + suffix)) in self._inputs for suffix in SUFFIXES.values())


def _same(path: Path) -> str:
    return os.path.normcase(os.path.realpath(path))
