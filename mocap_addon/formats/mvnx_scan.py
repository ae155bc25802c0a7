# SPDX-License-Identifier: GPL-3.0-or-later
"""A pass over an MVNX file: definitions and frames, block by block, in bounded memory.

An XML parser alone needs about a second for 40 MB here, most of it for tags nobody wants. So the frames in the spelling that
MVN writes are found by searching for their tags in the bytes, and the parser (:class:`.mvnx_outline.Outline`) gets the file without them:
``<frames ...></frames>``. It still checks everything else. The first block that is spelled in any other way (a comment, a prefix,
CDATA, an entity, an unknown tag between frames) goes to the parser, and so does the rest of the file; both ways give the same rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from ..motion.errors import FileError, MocapError
from . import numbers
from .mvnx_outline import MAX_OUTLINE, MAX_TEXT, ROW_TAGS, BrokenXml, Outline, Row, Subject

Array = NDArray[np.float64]
Progress = Callable[[float], bool | None]

CHUNK = 4 << 20
_MAX_FRAME = 8 << 20
_PARSER_ROWS = 256
_PARSER_BYTES = 2 << 20
_GROUP_OF = {tag: "Left" if tag.endswith("Left") else "Right" if tag.endswith("Right") else "" for tag in ROW_TAGS}
_ATTRIBUTE = re.compile(rb"""([A-Za-z_][\w.:-]*)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')""")
_ATTRIBUTES = re.compile(rb"""(?:\s+[A-Za-z_][\w.:-]*\s*=\s*(?:"[^"<]*"|'[^'<]*'))*\s*""")
_TAGS: tuple[tuple[str, bytes, bytes, bytes], ...] = tuple(
    (tag, f"<{tag}>".encode(), f"</{tag}>".encode(), f"<{tag}".encode()) for tag in ROW_TAGS
)


@dataclass
class Block:
    """Some frames in the order of the file.

    Parameters
    ----------
    attributes : list of dict
        Of each frame: ``time``, ``index``, ``tc``, ``ms``, ``type`` where given.
    values : mapping from tag to (n, width) array
        Numbers of the frames' children; NaN where a frame lacks the tag or the number is not finite. Tags that no frame has are missing.
    lines : list of int
        Where each frame begins.
    """

    attributes: list[dict[str, str]]
    values: dict[str, Array]
    lines: list[int]


class Sink(Protocol):
    """Takes the blocks of one subject."""

    def add(self, block: Block) -> None:
        """Take the next frames."""
        ...


@dataclass
class _Rows:
    attributes: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    texts: list[dict[str, bytes]] = field(default_factory=list[dict[str, bytes]])
    lines: list[int] = field(default_factory=list[int])
    size: int = 0


class Scanner:
    """One pass over one file.

    Parameters
    ----------
    path : path
    open_subject : callable
        Gives the :class:`Sink` for a subject whose frames begin.
    progress : callable, optional
        Called with the share that is done (0..1); returning False cancels with a :class:`MocapError`.
    by_parser : bool
        Leave the frames to the XML parser from the start (for comparison).
    """

    def __init__(self, path: Path, open_subject: Callable[[Subject], Sink], progress: Progress | None, by_parser: bool = False) -> None:
        self.path = path
        self.notes: list[str] = []
        self._open_subject, self._progress, self._by_parser = open_subject, progress, by_parser
        self._outline = Outline(path, self._begin, self._from_parser)
        self._mode: Literal["outline", "frames", "parser"] = "parser" if by_parser else "outline"
        self._sink: Sink | None = None
        self._subject: Subject | None = None
        self._frames = 0
        self._rows = _Rows()
        self._widths: dict[str, int] = {}
        self._outlined = 0

    def run(self) -> None:
        """Read the file to its end."""
        try:
            size = max(self.path.stat().st_size, 1)
            with self.path.open("rb", buffering=0) as file:
                self._read(file.read, size)
        except OSError as error:
            raise FileError(f"The file cannot be read ({error.strerror or error}).", self.path) from None

    def _read(self, read: Callable[[int], bytes | None], size: int) -> None:
        rest, done = b"", 0
        while chunk := read(CHUNK):
            done += len(chunk)
            rest = self._take(rest + chunk if rest else chunk)
            if len(rest) > _MAX_FRAME:
                raise self._outline.fail("One frame is larger than 8 MB; this is not an MVNX file.")
            if self._progress is not None and self._progress(min(done / size, 1.0)) is False:
                raise MocapError(f"Reading {self.path.name} was cancelled.")
        self._finish(rest)

    def _finish(self, rest: bytes) -> None:
        try:
            self._outline.feed(rest, last=True)
        except BrokenXml as error:
            if not error.ends_early or self._frames + len(self._rows.lines) == 0:
                raise
            self._flush()
            self.notes.append(f"The file breaks off at line {error.line}; what stands before that was read.")
        self._flush()

    # -- the file without its frames -------------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> bytes:
        """Use what is complete in ``data``; the rest is returned and comes back with more behind it."""
        while True:
            if self._mode == "parser":
                self._feed_outline(data)
                return b""
            if self._mode == "outline":
                at = data.find(b"<frames")
                end = data.find(b">", at) + 1 if at >= 0 else 0
                if at < 0 or end == 0:
                    keep = at if at >= 0 else max(len(data) - 8, 0)
                    self._feed_outline(data[:keep])
                    return data[keep:]
                self._feed_outline(data[:end])
                data = data[end:]
                if self._outline.in_frames:
                    self._mode = "frames"
                continue
            used, ended = self._frames_of(data)
            self._outline.extra_lines += data.count(b"\n", 0, used)
            data = data[used:]
            if not ended:
                return data

    def _feed_outline(self, data: bytes) -> None:
        if self._mode == "outline":
            self._outlined += len(data)
            if self._outlined > MAX_OUTLINE:
                raise self._outline.fail("There are more than 16 MB of definitions around the frames; this is not an MVNX file.")
        view = memoryview(data)
        for start in range(0, len(data), 1 << 18):  # in pieces, so that a refusal comes before memory is spent
            self._outline.feed(bytes(view[start : start + (1 << 18)]))

    def _begin(self, subject: Subject) -> None:
        self._flush()
        self._sink, self._subject = self._open_subject(subject), subject
        self._widths = {}
        self._outlined = 0

    def _from_parser(self, row: Row) -> None:
        rows = self._rows
        rows.attributes.append(row.attributes)
        rows.texts.append(row.texts)
        rows.lines.append(row.line)
        rows.size += sum(map(len, row.texts.values()))
        if len(rows.lines) >= _PARSER_ROWS or rows.size >= _PARSER_BYTES:
            self._flush()

    # -- the frames ------------------------------------------------------------------------------------------------------------

    def _frames_of(self, data: bytes) -> tuple[int, bool]:
        """Read the complete frames of ``data``: how many bytes were used, and whether the frames ended or the parser takes over."""
        plain = data.find(b"<!") < 0 and data.find(b"&") < 0 and data.find(b"<?") < 0
        starts: list[int] = []
        pos, ended, odd = 0, False, not plain
        while not odd:
            start = data.find(b"<", pos)
            if start < 0 or len(data) - start < 9:
                break
            if data.startswith(b"</frames", start):
                ended, odd = True, not _blank(data, pos, start)
                break
            gt = data.find(b">", start)
            close = data.find(b"</frame>", gt) if gt >= 0 else -1
            if not (data.startswith(b"<frame", start) and data[start + 6] in b" \t\r\n>/" and _blank(data, pos, start)):
                odd = True
                break
            if close < 0:
                break
            if not self._frame(data, start, gt, close):
                odd = True
                break
            starts.append(start)
            pos = close + 8
        self._number_lines(data, starts)
        self._flush()
        if odd:
            self._mode = "parser"
        elif ended:
            self._mode = "outline"
        return pos, odd or ended

    def _frame(self, data: bytes, start: int, gt: int, close: int) -> bool:
        """Note one frame; False when it is not spelled as MVN does."""
        if data[gt - 1] == 47 or data.find(b"<frame", gt, close) >= 0 or not _ATTRIBUTES.fullmatch(data, start + 6, gt):
            return False
        texts: dict[str, bytes] = {}
        for tag, opening, closing, beginning in _TAGS:
            at = data.find(opening, gt, close)
            if at < 0:
                found = data.find(beginning, gt, close)
                if (found >= 0 and not data[found + len(beginning)] in _LETTERS) or data.find(closing, gt, close) >= 0:
                    return False
                continue
            at += len(opening)
            end = data.find(b"<", at, close)
            if end < 0 or end - at > MAX_TEXT or not data.startswith(closing, end) or data.find(opening, end, close) >= 0:
                return False
            text = data[at:end]
            if not text.isspace() and text:
                texts[tag] = text
        pairs = _ATTRIBUTE.findall(data, start + 6, gt)
        self._rows.attributes.append({k.decode("ascii", "replace"): (a or b).decode("utf-8", "replace") for k, a, b in pairs})
        self._rows.texts.append(texts)
        return True

    def _number_lines(self, data: bytes, starts: list[int]) -> None:
        line, at = self._outline.line, 0
        for start in starts:
            line += data.count(b"\n", at, start)
            at = start
            self._rows.lines.append(line)

    # -- rows to numbers -------------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        rows, self._rows = self._rows, _Rows()
        if not rows.lines or self._sink is None:
            return
        values: dict[str, Array] = {}
        for tag in ROW_TAGS:
            have = [i for i, texts in enumerate(rows.texts) if tag in texts]
            if have:
                values[tag] = self._matrix(tag, have, rows)
        self._frames += len(rows.lines)
        self._sink.add(Block(rows.attributes, values, rows.lines))

    def _matrix(self, tag: str, have: list[int], rows: _Rows) -> Array:
        texts = [rows.texts[i][tag] for i in have]
        found = numbers.parse(b"\n".join(texts))
        borders = np.cumsum([0, *(len(t) + 1 for t in texts)])
        counts = np.diff(np.searchsorted(found.starts, borders))
        width = self._widths.setdefault(tag, self._width(tag, int(counts[0])))
        if found.unreadable or np.any(counts != width):
            raise self._bad_row(tag, width, have, rows)
        table = found.values.reshape(len(have), width)
        if len(have) == len(rows.lines):
            return table
        out = np.full((len(rows.lines), width), np.nan)
        out[have] = table
        return out

    def _width(self, tag: str, first: int) -> int:
        """How many numbers the tag has in every frame: as many as in the first, but four or three for each segment that is defined."""
        segments = self._subject.groups[_GROUP_OF[tag]].segments if self._subject is not None else []
        per = 4 if tag.startswith("orientation") else 3
        if tag == "footContacts" or not segments or (first >= per * len(segments) and first % per == 0):
            return first
        return per * len(segments)

    def _bad_row(self, tag: str, width: int, have: list[int], rows: _Rows) -> FileError:
        for i in have:
            found = numbers.parse(rows.texts[i][tag])
            if found.unreadable:
                text = rows.texts[i][tag].split()[min(found.unreadable[0], len(rows.texts[i][tag].split()) - 1)]
                message = (
                    f'The {tag} of a frame holds "{text[:30].decode("utf-8", "replace")}", which is not a number; export the file again.'
                )
                return FileError(message, self.path, rows.lines[i])
            if len(found.values) != width:
                message = f"The {tag} of a frame holds {len(found.values)} numbers, and {width} were expected; export the file again."
                return FileError(message, self.path, rows.lines[i])
        return FileError(f"The numbers of {tag} cannot be told apart; export the file again.", self.path, rows.lines[have[0]])


_LETTERS = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")


def _blank(data: bytes, start: int, end: int) -> bool:
    return start == end or data[start:end].isspace()
