# SPDX-License-Identifier: GPL-3.0-or-later
"""A pass over an MVNX file in bounded memory: its frames as blocks of numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..motion.errors import FileError
from ..motion.steps import Steps
from . import numbers
from .mvnx_xml import ROW_TAGS, BrokenXmlError, Parser, Row, Subject

Array = NDArray[np.float64]

_CHUNK = 1 << 20
_ROWS = 512
_BYTES = 1 << 20
_GROUP_OF = {tag: "Left" if tag.endswith("Left") else "Right" if tag.endswith("Right") else "" for tag in ROW_TAGS}


@dataclass
class Block:
    """Some frames in the order of the file.

    Parameters
    ----------
    attributes : list of dict
        Of each frame: ``time``, ``index``, ``tc``, ``ms``, ``type`` where given.
    values : mapping from tag to (n, width) array
        Numbers of the frames' children; NaN where a frame lacks the tag or the number is not finite. Tags that no frame has are missing.
    offsets : list of int
        Where each frame begins in the file, bytes.
    """

    attributes: list[dict[str, str]]
    values: dict[str, Array]
    offsets: list[int]

    def rows(self, rows: list[int]) -> Block:
        """The frames ``rows`` alone."""
        at = np.array(rows, dtype=np.int64)
        return Block([self.attributes[i] for i in rows], {k: v[at] for k, v in self.values.items()}, [self.offsets[i] for i in rows])


class PlacedError(Exception):
    """What is wrong at a byte of the file; :class:`Scanner` turns it into a :class:`FileError` with the line."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


class Sink(Protocol):
    """Takes the blocks of one subject."""

    def add(self, block: Block) -> None:
        """Take the next frames."""
        ...


@dataclass
class _Rows:
    rows: list[Row] = field(default_factory=list[Row])
    size: int = 0


class Scanner:
    """One pass over one file.

    Parameters
    ----------
    path : path
    open_subject : callable
        Gives the :class:`Sink` for a subject whose frames begin.
    """

    def __init__(self, path: Path, open_subject: Callable[[Subject], Sink]) -> None:
        self.path = path
        self.notes: list[str] = []
        self._open_subject = open_subject
        self._parser = Parser(path, self._begin, self._take)
        self._sink: Sink | None = None
        self._subject: Subject | None = None
        self._waiting = _Rows()
        self._widths: dict[str, int] = {}
        self._frames = 0

    def steps(self) -> Steps[None]:
        """Read the file to its end, a megabyte a step."""
        try:
            size = max(self.path.stat().st_size, 1)
            with self.path.open("rb", buffering=0) as file:
                done = 0
                while chunk := file.read(_CHUNK):
                    done += len(chunk)
                    self._parser.feed(chunk)
                    yield min(done / size, 1.0)
            self._finish()
        except PlacedError as error:
            raise FileError(str(error), self.path, self._line(error.offset)) from None
        except OSError as error:
            raise FileError(f"The file cannot be read ({error.strerror or error}).", self.path) from None

    def _finish(self) -> None:
        try:
            self._parser.feed(b"", last=True)
        except BrokenXmlError as error:
            if self._frames + len(self._waiting.rows) == 0:  # all was well up to the end: only the rest is missing
                raise
            self.notes.append(f"The file breaks off at line {error.line}; the frames before that were read.")
        self._flush()

    def _line(self, offset: int) -> int:
        """The line that the byte ``offset`` is on: counted only when there is something to say."""
        line = 1
        with self.path.open("rb") as file:
            while offset > 0 and (chunk := file.read(min(offset, _CHUNK))):
                line += chunk.count(b"\n")
                offset -= len(chunk)
        return line

    def _begin(self, subject: Subject) -> None:
        self._flush()
        self._sink, self._subject = self._open_subject(subject), subject
        self._widths = {}

    def _take(self, row: Row) -> None:
        waiting = self._waiting
        waiting.rows.append(row)
        waiting.size += sum(map(len, row.texts.values()))
        if len(waiting.rows) >= _ROWS or waiting.size >= _BYTES:
            self._flush()

    def _flush(self) -> None:
        rows, self._waiting = self._waiting.rows, _Rows()
        if not rows or self._sink is None:
            return
        values: dict[str, Array] = {}
        for tag in ROW_TAGS:
            have = [i for i, row in enumerate(rows) if tag in row.texts]
            if have:
                values[tag] = self._matrix(tag, have, rows)
        self._frames += len(rows)
        self._sink.add(Block([row.attributes for row in rows], values, [row.offset for row in rows]))

    def _matrix(self, tag: str, have: list[int], rows: list[Row]) -> Array:
        texts = [rows[i].texts[tag] for i in have]
        found = numbers.parse(b"\n".join(texts))
        borders = np.cumsum([0, *(len(t) + 1 for t in texts)])
        counts = np.diff(np.searchsorted(found.starts, borders))
        width = self._widths.setdefault(tag, self._width(tag, int(counts[0])))
        if found.unreadable or np.any(counts != width):
            raise _bad_row(tag, width, [rows[i] for i in have])
        table = found.values.reshape(len(have), width)
        if len(have) == len(rows):
            return table
        out = np.full((len(rows), width), np.nan)
        out[have] = table
        return out

    def _width(self, tag: str, first: int) -> int:
        """How many numbers the tag has in every frame: as many as in the first, but four or three for each segment that is defined."""
        segments = self._subject.groups[_GROUP_OF[tag]].segments if self._subject is not None else []
        per = 4 if tag.startswith("orientation") else 3
        if tag == "footContacts" or (first >= per * len(segments) and first % per == 0):
            return first
        return per * max(len(segments), 1)


def _bad_row(tag: str, width: int, rows: list[Row]) -> PlacedError:
    for row in rows:
        found = numbers.parse(row.texts[tag])
        if found.unreadable:
            start = int(found.starts[found.unreadable[0]])
            word = row.texts[tag][start : start + 30].split()[0].decode("utf-8", "replace")
            return PlacedError(f'The {tag} of a frame holds "{word}", which is not a number; export the file from MVN again.', row.offset)
        if len(found.values) != width:
            message = f"The {tag} of a frame holds {len(found.values)} numbers, and {width} were expected; export the file from MVN again."
            return PlacedError(message, row.offset)
    return PlacedError(f"The numbers of {tag} cannot be told apart; export the file from MVN again.", rows[0].offset)
