# SPDX-License-Identifier: GPL-3.0-or-later
"""MVNX, the XML files of Xsens (Movella) MVN, versions 3 and 4.

A frame holds each segment's orientation (wxyz, segment to world) and the place of its origin (metres) in a right-handed world with Z up;
MVN's own reference pose faces +X. Those axes are kept as they are, heading included.
"""

from __future__ import annotations

from pathlib import Path

from ..motion.errors import FileError
from ..motion.steps import Progress, Steps, run
from ..motion.take import Take
from . import orientation
from .mvnx_build import TakeBuilder
from .mvnx_scan import Scanner
from .mvnx_xml import Subject
from .options import ReadOptions


def read(path: str | Path, options: ReadOptions | None = None, progress: Progress | None = None) -> list[Take]:
    """Read an MVNX file.

    Parameters
    ----------
    path : path
    options : ReadOptions, optional
        ``rate`` replaces the file's frame rate, ``up`` and ``unit`` what MVN documents (Z, metres).
    progress : callable, optional
        Called with the share read (0..1) after every megabyte; returning False cancels with a :class:`MocapError`.

    Returns
    -------
    list of Take
        One a subject that has frames. Rest pose: the file's T-pose. Only the root moves, bones keep their lengths;
        ``facts["fk_error_mm"]`` (``max``, ``mean``) says how far the file's positions differ from that. Foot contacts are curves
        ``contact_l_heel``, ``contact_l_toe``, ``contact_r_heel``, ``contact_r_toe`` (0 or 1). Fingers are joints below the hands.

    Raises
    ------
    FileError
        The file is not MVNX, damaged (with the line), or not safe to read (own entities).
    MocapError
        Reading was cancelled.
    """
    return run(steps(path, options), progress, f"Reading {Path(path).name} was cancelled.")


def steps(path: str | Path, options: ReadOptions | None = None) -> Steps[list[Take]]:
    """:func:`read`, a megabyte a step."""
    path = Path(path)
    builders: list[TakeBuilder] = []

    def begin(subject: Subject) -> TakeBuilder:
        builders.append(TakeBuilder(subject))
        return builders[-1]

    scanner = Scanner(path, begin)
    yield from scanner.steps()
    return _takes(path, builders, scanner, options)


def _takes(path: Path, builders: list[TakeBuilder], scanner: Scanner, options: ReadOptions | None) -> list[Take]:
    full = [b for b in builders if b.frames]
    if not full:
        what = "has no subject with frames" if not builders else "has only pose frames, no motion"
        raise FileError(f"The file {what}; export it from MVN with the recording's frames.", path)
    options = options or ReadOptions()
    takes: list[Take] = []
    while full:
        builder = full.pop(0)
        label = builder.subject.attributes.get("label", "")
        name = path.stem if len(builders) == 1 else f"{path.stem} {label or len(takes) + 1}"
        take = builder.finish(name, options.rate, tuple(scanner.notes))
        if options.up not in (None, "Z"):
            take = take.turned(orientation.turn_to_z(options.up))
        takes.append(take if options.unit in (None, 1.0) else take.scaled(options.unit))
    return takes
