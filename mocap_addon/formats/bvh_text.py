# SPDX-License-Identifier: GPL-3.0-or-later
"""A BVH file as bytes: where its parts are, and its rows of numbers in pieces of bounded size."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from ..motion.errors import FileError
from .bvh_header import Header, parse_hierarchy
from .numbers import to_float

PIECE = 1 << 18
"""Bytes of text read at a time: its temporaries stay in the cache, and small allocations cost no page faults."""
LARGE_PIECE = 1 << 20
"""The same for files above 4 MB: the takes' arrays are frames last in memory, so longer strips of them touch fewer pages."""

_LONGEST_LINE = 1 << 23
_LONGEST_HEAD = 1 << 26
_MOTION = re.compile(rb"(?:\A|[\r\n}])[ \t]*MOTION[ \t]*(?=[\r\n]|Frame|\Z)", re.IGNORECASE)
_FRAMES = re.compile(rb"\s*Frames?[ \t]*:?[ \t]*([^\s:]+)", re.IGNORECASE)
_FRAME_TIME = re.compile(rb"\s*Frame[ \t]*Time[ \t]*:?[ \t]*([^\s:]+)", re.IGNORECASE)


class BvhText:
    """An open BVH file whose head has been read.

    ``header`` is complete; :meth:`pieces` then gives the rows of numbers, once.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self.path = path
        self.size = 0
        """Bytes of all rows."""
        self.first_piece = 0
        """Bytes of the first of :meth:`pieces`, once it has been given."""
        file, encoding = _utf8(file, path)
        head, at, after = _until_motion(file)
        text, note = _decode(head[:at], encoding)
        self.header: Header = parse_hierarchy(text, path)
        if note:
            self.header.notes.append(note)
        if after < 0:
            self.header.notes.append("The file has no MOTION part; it is a skeleton without frames.")
            self._rest = b""
        else:
            after = self._motion_head(head, after)
            self.header.motion_line = _line_of(head, after)
            self._rest = head[after:]
        self._file = file
        here = file.tell()
        self.size = file.seek(0, 2) - here + len(self._rest)
        file.seek(here)

    def pieces(self) -> Iterator[bytes]:
        """The rows of numbers in pieces of bounded size that end at line ends."""
        rest = self._rest
        size = PIECE if self.size < 4 * LARGE_PIECE else LARGE_PIECE
        at = 0
        while True:
            piece = rest[at : at + size]
            at += len(piece)
            if len(piece) < size:
                piece += self._file.read(size - len(piece))
            if not piece:
                return
            if at < len(rest):
                end = rest.find(b"\n", at)
                more = rest[at : end + 1] if end >= 0 else rest[at:]
                piece += more
                at += len(more)
            if not piece.endswith(b"\n"):
                piece += self._file.readline(_LONGEST_LINE)
            if len(piece) >= _LONGEST_LINE:
                raise FileError(
                    "A single line is longer than 8 MB; this is no BVH file or it is damaged.", self.path, self.header.motion_line
                )
            self.first_piece = self.first_piece or len(piece)
            yield piece

    def _motion_head(self, head: bytes, at: int) -> int:
        """Read ``Frames:`` and ``Frame Time:`` (in either order, either may be missing); where the rows begin."""
        header = self.header
        for _ in range(2):
            if match := _FRAME_TIME.match(head, at):
                word = match.group(1).replace(b",", b".")
                header.frame_time = to_float(word)
                decimals = re.fullmatch(rb"[0-9]*\.([0-9]+)", word)
                header.frame_time_digits = len(decimals.group(1)) if decimals else None
            elif match := _FRAMES.match(head, at):
                word = match.group(1)
                header.frames = int(word[:18]) if word.isdigit() else None
                if header.frames is None:
                    header.notes.append("The number of frames is not a number; the rows were counted instead.")
            else:
                break
            at = match.end()
        return at


def _utf8(file: BinaryIO, path: Path) -> tuple[BinaryIO, str]:
    """The file from behind its byte-order mark; UTF-16 is turned into UTF-8 first, and lone carriage returns into line feeds."""
    mark = file.read(4)
    if mark.startswith(codecs.BOM_UTF8):
        file.seek(3)
        return file, "utf-8"
    if mark.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        file.seek(0)
        try:
            return BytesIO(file.read().decode("utf-16").encode("utf-8")), "utf-8"
        except UnicodeDecodeError:
            raise FileError("The file says it is UTF-16 text, and is not; it is damaged.", path) from None
    start = mark + file.read(1 << 16)
    file.seek(0)
    if b"\r" in start and b"\n" not in start:  # line ends of old Macs
        return BytesIO(file.read().replace(b"\r", b"\n")), ""
    return file, ""


def _until_motion(file: BinaryIO) -> tuple[bytes, int, int]:
    """Read until the MOTION line has been seen: (what was read, where the hierarchy ends, where the text after MOTION begins or -1)."""
    head = b""
    searched = 0
    while len(head) < _LONGEST_HEAD:
        more = file.read(PIECE)
        head += more
        if match := _MOTION.search(head, searched):
            # The two lines after MOTION must be in ``head`` too.
            head += file.read(4096)
            keep = 1 if head[match.start() : match.start() + 1] == b"}" else 0
            return head, match.start() + keep, match.end()
        if not more:
            break
        searched = max(0, len(head) - 256)
    return head, len(head), -1


def _decode(head: bytes, encoding: str) -> tuple[str, str]:
    """The hierarchy's text, and a remark where its encoding had to be guessed."""
    try:
        return head.decode("utf-8"), ""
    except UnicodeDecodeError:
        return head.decode(
            "latin-1"
        ), "The joint names are not UTF-8; they were read as Western European (Latin-1)." if not encoding else ""


def _line_of(text: bytes, at: int) -> int:
    """1-based number of the line that ``at`` is in, or of the next one where ``at`` stands at a line's end."""
    return text.count(b"\n", 0, at) + 1
