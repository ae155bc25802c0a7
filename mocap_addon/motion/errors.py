# SPDX-License-Identifier: GPL-3.0-or-later
"""The errors a person reads.

Every wrong input ends in a :class:`MocapError` whose message is one plain sentence: what is wrong, where
(file and line, or bone), and what to do. Operators report it and cancel; the command line prints it and exits 1.
"""

from __future__ import annotations

from pathlib import Path


class MocapError(Exception):
    """Base of all errors meant for a person; ``str(error)`` is one plain sentence."""


class FileError(MocapError):
    """A file that cannot be read or written as asked.

    Parameters
    ----------
    message : str
        What is wrong and what to do, without the place.
    path : path or None
        The file; only its name is put in front of the sentence.
    line : int or None
        1-based line number, where there is one.
    """

    def __init__(self, message: str, path: str | Path | None = None, line: int | None = None) -> None:
        place = Path(path).name if path is not None else ""
        if line is not None:
            place = f"{place}, line {line}" if place else f"line {line}"
        super().__init__(f"{place}: {message}" if place else message)
        self.path = Path(path) if path is not None else None
        self.line = line


class RigError(MocapError):
    """A skeleton, mapping or correction table that cannot be used as asked."""


class TargetError(MocapError):
    """A Blender object that cannot take the motion (linked, mirrored, not an armature, ...)."""
