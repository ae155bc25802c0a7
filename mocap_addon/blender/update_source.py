# SPDX-License-Identifier: GPL-3.0-or-later
"""The take of an action, read again by the action's recipe."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import bpy

from ..formats import ReadOptions
from ..motion.errors import FileError, MocapError, TargetError
from ..motion.take import Take
from . import sources

Reader = Callable[[str, ReadOptions], Sequence[Take]]


def take_again(recipe: Mapping[str, object], read: Reader) -> Take:
    """The take that a recipe names.

    Raises
    ------
    MocapError
        It is not there any more, or was never in a file.
    """
    rig = recipe.get("rig")
    if isinstance(rig, dict):
        return _reread(rig)
    path, name = str(recipe.get("source") or ""), str(recipe.get("take") or "")
    if not path:
        raise MocapError("The action was not made from a file, so its source cannot be read again; retarget it anew.")
    if not Path(path).is_file():
        folder = Path(path).parent
        raise FileError(f'The source is not in "{folder}" any more; put it back, or retarget the take anew from where it is.', path)
    takes = list(read(path, _read_options(recipe.get("read"))))
    named = [take for take in takes if take.name == name]
    if named or len(takes) == 1:
        return (named or takes)[0]
    there = ", ".join(f'"{take.name}"' for take in takes[:5]) or "none"
    raise FileError(f'There is no take "{name}" in the file any more; there are: {there}.', path)


def _reread(rig: dict[str, Any]) -> Take:
    """The same of a rig in the scene: its action, or what it plays; all of it, unless a range was asked for."""
    obj = bpy.data.objects.get(rig["object"])
    if obj is None:
        raise TargetError(f'The source "{rig["object"]}" is not in this file any more; retarget the take anew.')
    asked = rig.get("asked") or {}
    return sources.read_rig(
        obj,
        action=rig["action"] if asked.get("action", True) and rig["action"] else None,
        slot=rig["slot"] or None,
        frame_range=(rig["frame_start"], rig["frame_end"]) if asked.get("range") else None,
    )


def _read_options(stored: object) -> ReadOptions:
    found: dict[str, Any] = dict(stored) if isinstance(stored, dict) else {}
    if "rate" in found:
        found["rate"] = Fraction(found["rate"])
    return ReadOptions(**{name: value for name, value in found.items() if name in ReadOptions.__dataclass_fields__})


class Remembering:
    """Reads every file once."""

    def __init__(self, read: Reader) -> None:
        self._read, self._found = read, dict[tuple[str, ReadOptions], Sequence[Take]]()

    def __call__(self, path: str, options: ReadOptions) -> Sequence[Take]:
        key = path, options
        if key not in self._found:
            self._found[key] = self._read(path, options)
        return self._found[key]
