# SPDX-License-Identifier: GPL-3.0-or-later
"""The XML of an MVNX file: definitions, and frames as rows of text.

Everything goes through expat, which is as fast here as searching the bytes for tags (both 80 to 90 MB/s) and knows every legal spelling
(prefixes, comments, CDATA, UTF-16). What keeps it fast: text of unwanted tags is never asked for, nor are line numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from ..motion.errors import FileError

Point = tuple[float, float, float]

ROW_TAGS: tuple[str, ...] = (
    "orientation",
    "position",
    "orientationFingersLeft",
    "positionFingersLeft",
    "orientationFingersRight",
    "positionFingersRight",
    "footContacts",
)
"""The children of a frame that are read; everything else (velocities, sensors, joint angles) is skipped."""

# Limits on what damaged or hostile files can make us store; a real subject has 23 to 63 segments, 200 points and 900 bytes of orientation.
_MAX_TEXT = 1 << 20
_MAX_TOKEN = 8 << 20
_MAX_PARTS = 50_000
_MAX_SEGMENTS = 200
_MAX_SUBJECTS = 64
_MAX_DEPTH = 50

_SEGMENTS = {"segments": "", "fingerTrackingSegmentsLeft": "Left", "fingerTrackingSegmentsRight": "Right"}
_JOINTS = {"joints": "", "fingerTrackingJointsLeft": "Left", "fingerTrackingJointsRight": "Right"}
_DEFINING_TEXT = frozenset({"pos_b", "pos_s", "connector1", "connector2"})
_ROW_TEXT = frozenset(ROW_TAGS)
_AGAIN = "export the file from MVN again."


@dataclass
class Segment:
    """One body part: its label and its points (joints ``j...``, landmarks ``p...``) in metres in its own frame."""

    label: str
    points: dict[str, Point] = field(default_factory=dict[str, Point])


@dataclass
class SegmentGroup:
    """Segments in the order of the numbers in a frame, and the joints as pairs of connectors (``Pelvis/jL5S1``, ``L5/jL5S1``)."""

    segments: list[Segment] = field(default_factory=list[Segment])
    joints: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


@dataclass
class Subject:
    """One ``<subject>``: the body (``groups[""]``), the fingers (``groups["Left"]``, ``groups["Right"]``) and what the columns mean."""

    attributes: dict[str, str]
    offset: int
    version: str = ""
    software: str = ""
    groups: dict[str, SegmentGroup] = field(default_factory=lambda: {side: SegmentGroup() for side in ("", "Left", "Right")})
    contacts: dict[int, str] = field(default_factory=dict[int, str])


@dataclass
class Row:
    """One frame as text: its attributes, the wanted children, and where it begins in the file (bytes)."""

    attributes: dict[str, str]
    texts: dict[str, bytes]
    offset: int


class BrokenXmlError(FileError):
    """The text is not XML."""

    def __init__(self, path: Path, line: int, code: int) -> None:
        reason = expat.ErrorString(code) or "unknown error"
        super().__init__(f"The file is not well-formed XML ({reason}); {_AGAIN}", path, line)


class Parser:
    """Feeds expat and keeps what it finds.

    Parameters
    ----------
    path : path
        For messages.
    on_subject : callable
        Called with the :class:`Subject` when its ``<frames>`` begins, when all definitions are known.
    on_row : callable
        Called with every frame.
    """

    def __init__(self, path: Path, on_subject: Callable[[Subject], None], on_row: Callable[[Row], None]) -> None:
        self.path = path
        self._on_subject, self._on_row = on_subject, on_row
        self._stack: list[str] = []
        self._local: dict[str, str] = {}
        self._subjects = self._parts = self._fed = self._length = 0
        self._subject: Subject | None = None
        self._version = self._software = ""
        self._group: SegmentGroup | None = None
        self._point = ""
        self._connectors: list[str] = []
        self._in_frames = False
        self._row: Row | None = None
        self._text: list[str] | None = None
        p = self._parser = expat.ParserCreate(namespace_separator=" ")
        p.buffer_text = True
        p.StartElementHandler, p.EndElementHandler = self._start, self._end
        p.StartDoctypeDeclHandler, p.EntityDeclHandler, p.SkippedEntityHandler = self._doctype, self._entity, self._skipped

    def feed(self, data: bytes, last: bool = False) -> None:
        """Parse more of the file; :class:`FileError` where it is not XML or not safe."""
        self._fed += len(data)
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            raise BrokenXmlError(self.path, error.lineno, error.code) from None
        except (ValueError, LookupError):
            raise self._fail("The text encoding that the file declares is not known; save it as UTF-8.") from None
        if self._fed - self._parser.CurrentByteIndex > _MAX_TOKEN:
            raise self._fail("One tag or comment is larger than 8 MB; this is not an MVNX file.")

    def _fail(self, message: str) -> FileError:
        return FileError(message, self.path, self._parser.CurrentLineNumber)

    # -- refusals --------------------------------------------------------------------------------------------------------------

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        # MVN Studio itself wrote <!DOCTYPE mvnx SYSTEM "http://.../schema.dtd">: a mere reference is harmless, and never fetched.
        if internal:
            raise self._fail("The file carries its own document type definition, which can hide harmful entities; remove it and try again.")

    def _entity(self, *_: object) -> None:
        raise self._fail("The file declares XML entities, which can be harmful; remove the declarations and try again.")

    def _skipped(self, name: str, is_parameter: bool) -> None:
        raise self._fail(f"The file uses the entity {_quoted(name)}, which nothing defines; remove it and try again.")

    # -- elements --------------------------------------------------------------------------------------------------------------

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = self._local.get(name) or self._new_name(name)
        stack = self._stack
        above = stack[-1] if stack else ""
        stack.append(tag)
        if self._row is not None:
            self._want_text(tag in _ROW_TEXT and above == "frame")
        elif tag == "frame" and above == "frames" and self._in_frames:
            self._row = Row(attributes, {}, self._parser.CurrentByteIndex)
        else:
            self._want_text(tag in _DEFINING_TEXT)
            self._outside(tag, above, attributes)
        if len(stack) > _MAX_DEPTH:
            raise self._fail(f"The tags are nested more than {_MAX_DEPTH} deep; this is not an MVNX file.")

    def _new_name(self, name: str) -> str:
        if len(self._local) < 1000:
            self._local[name] = name.rpartition(" ")[2]
        return name.rpartition(" ")[2]

    def _outside(self, tag: str, above: str, attributes: dict[str, str]) -> None:
        """A tag that is not in a frame."""
        if not above and tag != "mvnx":
            raise self._fail(f"The outermost tag is <{tag[:40]}>; an MVNX file begins with <mvnx>.")
        if tag == "mvnx":
            self._version = attributes.get("version", "")
        elif tag == "mvn":
            self._software = attributes.get("version", "")
        elif tag == "subject":
            self._subjects += 1
            if self._subjects > _MAX_SUBJECTS:
                raise self._fail(f"The file holds more than {_MAX_SUBJECTS} subjects; split it.")
            self._subject = Subject(attributes, self._parser.CurrentByteIndex, self._version, self._software)
        elif self._subject is not None:
            self._definition(tag, above, attributes, self._subject)

    def _definition(self, tag: str, above: str, attributes: dict[str, str], subject: Subject) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise self._fail(f"There are more than {_MAX_PARTS} definitions besides the frames; this is not an MVNX file.")
        if tag in _SEGMENTS:
            self._group = subject.groups[_SEGMENTS[tag]]
        elif tag in _JOINTS:
            self._group = subject.groups[_JOINTS[tag]]
        elif tag == "segment" and above in _SEGMENTS and self._group is not None:
            if len(self._group.segments) >= _MAX_SEGMENTS:
                raise self._fail(f"The file defines more than {_MAX_SEGMENTS} segments; a body has 23.")
            self._group.segments.append(Segment(attributes.get("label", f"Segment{len(self._group.segments) + 1}")))
        elif tag == "point":
            self._point = attributes.get("label", "")
        elif tag == "joint":
            self._connectors = []
        elif tag == "contactDefinition":
            index = attributes.get("index", "")
            subject.contacts[int(index) if re.fullmatch(r"[0-9]{1,3}", index) else len(subject.contacts)] = attributes.get("label", "")
        elif tag == "frames" and above == "subject":
            self._in_frames = True
            self._on_subject(subject)

    def _want_text(self, want: bool) -> None:
        if want:
            self._text, self._length = [], 0
            self._parser.CharacterDataHandler = self._characters
        elif self._text is not None:
            self._text = None
            self._parser.CharacterDataHandler = None

    def _characters(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)
            self._length += len(data)
            if self._length > _MAX_TEXT:
                raise self._fail(f"The text of <{self._stack[-1]}> is longer than 1 MB; this is not an MVNX file.")

    def _end(self, name: str) -> None:
        tag = self._stack.pop()
        text = None
        if self._text is not None:
            text = "".join(self._text).strip()
            self._text = None
            self._parser.CharacterDataHandler = None
        if self._row is not None:
            if text:
                self._row.texts[tag] = text.encode("utf-8", "replace")
            elif tag == "frame" and self._stack[-1] == "frames":
                self._on_row(self._row)
                self._row = None
        elif tag == "frames":
            self._in_frames = False
        elif tag in _SEGMENTS or tag in _JOINTS:
            self._group = None
        elif text is not None and self._group is not None:
            self._end_definition(tag, text, self._group)

    def _end_definition(self, tag: str, text: str, group: SegmentGroup) -> None:
        if tag in ("pos_b", "pos_s") and group.segments:
            try:
                x, y, z = (float(v) for v in text.split())
            except ValueError:
                raise self._fail(f"The point {_quoted(self._point)} is not three numbers ({_quoted(text)}); {_AGAIN}") from None
            if not max(abs(x), abs(y), abs(z)) < 100.0:
                raise self._fail(f"The point {_quoted(self._point)} lies outside any body ({_quoted(text)}); {_AGAIN}")
            group.segments[-1].points[self._point] = (x, y, z)
        elif tag in ("connector1", "connector2"):
            self._connectors.append(text)
            if len(self._connectors) == 2:
                group.joints.append((self._connectors[0], self._connectors[1]))


def _quoted(text: str) -> str:
    """Text from the file inside a sentence: short, on one line."""
    return '"' + " ".join("".join(c if c.isprintable() else " " for c in text[:60]).split())[:40] + '"'
