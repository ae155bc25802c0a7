# SPDX-License-Identifier: GPL-3.0-or-later
"""MVNX, the XML files of Xsens (Movella) MVN, versions 3 and 4.

A frame holds each segment's orientation (wxyz, segment to world) and the place of its origin (metres) in a right-handed world with Z up;
MVN's own reference pose faces +X. Those axes are kept as they are, heading included.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

from ..motion.errors import FileError
from ..motion.take import Take
from .mvnx_build import TakeBuilder
from .mvnx_outline import Subject
from .mvnx_scan import Progress, Scanner


def recognise(head: bytes) -> bool:
    """Whether the beginning of a file (a few kilobytes) is that of an MVNX file."""
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        head = head.decode("utf-16", "ignore").encode("ascii", "ignore")
    elif head[1:2] == b"\x00" or head[:1] == b"\x00":
        head = head.replace(b"\x00", b"")
    return b"<mvnx" in head or b":mvnx" in head


def read(path: str | Path, options: object = None, progress: Progress | None = None, *, by_parser: bool = False) -> list[Take]:
    """Read an MVNX file.

    Parameters
    ----------
    path : path
    options : ReadOptions, optional
        ``rate`` (Fraction or None) replaces the file's frame rate.
    progress : callable, optional
        Called with the share read (0..1) about every 4 MB; returning False cancels with a :class:`MocapError`.
    by_parser : bool
        Read the frames with the XML parser too, not only what is around them. Slower; the takes are the same.

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
    path = Path(path)
    builders: list[TakeBuilder] = []

    def begin(subject: Subject) -> TakeBuilder:
        builders.append(TakeBuilder(subject))
        return builders[-1]

    scanner = Scanner(path, begin, progress, by_parser)
    try:
        scanner.run()
        return _takes(path, builders, scanner, options)
    except FileError as error:
        if error.path is not None:
            raise
        raise FileError(str(error).partition(": ")[2] if error.line is not None else str(error), path, error.line) from None


def _takes(path: Path, builders: list[TakeBuilder], scanner: Scanner, options: object) -> list[Take]:
    full = [b for b in builders if b.frames]
    if not full:
        what = "has no subject with frames" if not builders else "has only pose frames, no motion"
        raise FileError(f"The file {what}; export it from MVN with the recording's frames.", path)
    rate = getattr(options, "rate", None)
    takes: list[Take] = []
    while full:
        builder = full.pop(0)
        label = builder.subject.attributes.get("label", "")
        name = path.stem if len(builders) == 1 else f"{path.stem} {label or len(takes) + 1}"
        takes.append(builder.finish(name, rate if isinstance(rate, Fraction) else None, tuple(scanner.notes)))
    return takes
