# SPDX-License-Identifier: GPL-3.0-or-later
"""What an MVNX file says about a subject, and the XML parser that collects it.

The parser sees everything but the bulk of the frames: :mod:`.mvnx_scan` takes those out of its input where it can. It also reads
frames itself, so that a file in any legal XML spelling (prefixes, comments, CDATA, UTF-16) gives the same rows.
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

MAX_OUTLINE = 16 << 20
"""Bytes of everything but frames that a file may have; real ones have 30 KB a subject."""
MAX_TEXT = 1 << 20
"""Bytes that the text of one wanted tag may have; the orientation of 23 segments has 900."""
_MAX_TOKEN = 8 << 20
_MAX_PARTS = 50_000
_MAX_SEGMENTS = 200
_MAX_SUBJECTS = 64
_ROOM = {"segments": "", "fingerTrackingSegmentsLeft": "Left", "fingerTrackingSegmentsRight": "Right"}
_JOINTS = {"joints": "", "fingerTrackingJointsLeft": "Left", "fingerTrackingJointsRight": "Right"}
_KEPT_TEXT = frozenset({"pos_b", "pos_s", "connector1", "connector2", *ROW_TAGS})


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
    line: int
    version: str = ""
    software: str = ""
    groups: dict[str, SegmentGroup] = field(default_factory=lambda: {side: SegmentGroup() for side in ("", "Left", "Right")})
    contacts: dict[int, str] = field(default_factory=dict[int, str])


@dataclass
class Row:
    """One frame as text: its attributes, the wanted children, and the line it starts on."""

    attributes: dict[str, str]
    texts: dict[str, bytes]
    line: int


class Outline:
    """Feeds expat and keeps what it finds.

    Parameters
    ----------
    path : path
        For messages.
    on_subject : callable
        Called with the :class:`Subject` when its ``<frames>`` begins, when all definitions are known.
    on_row : callable
        Called with every frame that the parser itself meets.
    """

    def __init__(self, path: Path, on_subject: Callable[[Subject], None], on_row: Callable[[Row], None]) -> None:
        self.path = path
        self.in_frames = False
        self.extra_lines = 0
        """Lines that were taken out of the parser's input."""
        self._on_subject, self._on_row = on_subject, on_row
        self._stack: list[str] = []
        self._subjects = 0
        self._subject: Subject | None = None
        self._version = self._software = ""
        self._group: SegmentGroup | None = None
        self._point = ""
        self._connectors: list[str] = []
        self._row: Row | None = None
        self._text: list[str] | None = None
        self._length = 0
        self._parts = 0
        self._fed = 0
        self._parser = self._make_parser()

    def _make_parser(self) -> expat.XMLParserType:
        p = expat.ParserCreate(namespace_separator=" ")
        p.buffer_text = True
        p.StartElementHandler = self._start
        p.EndElementHandler = self._end
        p.CharacterDataHandler = self._characters
        p.StartDoctypeDeclHandler = self._doctype
        p.EntityDeclHandler = self._entity
        p.SkippedEntityHandler = self._skipped
        defer = getattr(p, "SetReparseDeferralEnabled", None)
        if defer is not None:
            defer(False)  # a tag that is complete must be seen at once: the scanner takes over right behind <frames>
        return p

    @property
    def line(self) -> int:
        """Line of the file that the parser stands on."""
        return self._parser.CurrentLineNumber + self.extra_lines

    def fail(self, message: str, line: int | None = None) -> FileError:
        """The error that says so, with the file's name and the line."""
        return FileError(message, self.path, self.line if line is None else line)

    def feed(self, data: bytes, last: bool = False) -> None:
        """Parse more of the file; :class:`FileError` where it is not XML or not safe."""
        self._fed += len(data)
        try:
            self._parser.Parse(data, last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code) or "unknown error"
            line = error.lineno + self.extra_lines
            raise BrokenXml(f"The file is not well-formed XML ({reason}); export it from MVN again.", self.path, line, error.code) from None
        except (ValueError, LookupError):
            raise self.fail("The text encoding that the file declares is not known; save it as UTF-8.") from None
        if self._fed - self._parser.CurrentByteIndex > _MAX_TOKEN:
            raise self.fail("One tag or attribute is larger than 8 MB; this is not an MVNX file.")

    # -- refusals --------------------------------------------------------------------------------------------------------------

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        # MVN Studio itself wrote <!DOCTYPE mvnx SYSTEM "http://.../schema.dtd">: a mere reference is harmless, and never fetched.
        if internal:
            raise self.fail("The file carries its own document type definition, which can hide harmful entities; remove it and try again.")

    def _entity(self, *_: object) -> None:
        raise self.fail("The file declares XML entities, which can be harmful; remove the declarations and try again.")

    def _skipped(self, name: str, is_parameter: bool) -> None:
        raise self.fail(f'The file uses the entity "{name}", which nothing defines; remove it and try again.')

    # -- elements --------------------------------------------------------------------------------------------------------------

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = name.rpartition(" ")[2]
        above = self._stack[-1] if self._stack else ""
        if not self._stack and tag != "mvnx":
            raise self.fail(f"The outermost tag is <{tag[:40]}>; an MVNX file begins with <mvnx>.")
        if len(self._stack) > 50:
            raise self.fail("The tags are nested more than 50 deep; this is not an MVNX file.")
        self._stack.append(tag)
        self._text = [] if tag in _KEPT_TEXT else None
        self._length = 0
        if self._row is not None:
            return
        if tag == "frame" and above == "frames" and self.in_frames:
            self._row = Row(dict(attributes), {}, self.line)
        elif tag == "mvnx":
            self._version = attributes.get("version", "")
        elif tag == "mvn":
            self._software = attributes.get("version", "")
        elif tag == "subject":
            self._begin_subject(attributes)
        elif self._subject is not None:
            self._definition(tag, above, attributes, self._subject)

    def _begin_subject(self, attributes: dict[str, str]) -> None:
        self._subjects += 1
        if self._subjects > _MAX_SUBJECTS:
            raise self.fail(f"The file holds more than {_MAX_SUBJECTS} subjects; split it.")
        self._subject = Subject(dict(attributes), self.line, self._version, self._software)

    def _definition(self, tag: str, above: str, attributes: dict[str, str], subject: Subject) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise self.fail(f"There are more than {_MAX_PARTS} definitions before the frames; this is not an MVNX file.")
        if tag in _ROOM:
            self._group = subject.groups[_ROOM[tag]]
        elif tag in _JOINTS:
            self._group = subject.groups[_JOINTS[tag]]
        elif tag == "segment" and above in _ROOM and self._group is not None:
            if len(self._group.segments) >= _MAX_SEGMENTS:
                raise self.fail(f"The file defines more than {_MAX_SEGMENTS} segments; a body has 23.")
            self._group.segments.append(Segment(attributes.get("label", f"Segment{len(self._group.segments) + 1}")))
        elif tag == "point":
            self._point = attributes.get("label", "")
        elif tag == "joint" and above in _JOINTS:
            self._connectors = []
        elif tag == "contactDefinition":
            index = attributes.get("index", "")
            subject.contacts[int(index) if re.fullmatch(r"\d{1,3}", index) else len(subject.contacts)] = attributes.get("label", "")
        elif tag == "frames" and above == "subject":
            self.in_frames = True
            self._on_subject(subject)

    def _characters(self, data: str) -> None:
        if self._text is not None:
            self._text.append(data)
            self._length += len(data)
            if self._length > MAX_TEXT:
                raise self.fail(f"The text of <{self._stack[-1]}> is longer than 1 MB; this is not an MVNX file.")

    def _end(self, name: str) -> None:
        tag = self._stack.pop()
        above = self._stack[-1] if self._stack else ""
        text = "".join(self._text).strip() if self._text is not None else None
        self._text = None
        if self._row is not None:
            if tag == "frame" and above == "frames":
                self._on_row(self._row)
                self._row = None
            elif text and above == "frame":
                self._row.texts[tag] = text.encode("utf-8", "replace")
        elif tag == "frames":
            self.in_frames = False
        elif tag in _ROOM or tag in _JOINTS:
            self._group = None
        elif text is not None and self._group is not None:
            self._end_definition(tag, text, self._group)

    def _end_definition(self, tag: str, text: str, group: SegmentGroup) -> None:
        if tag in ("pos_b", "pos_s") and group.segments:
            try:
                x, y, z = (float(v) for v in text.split())
            except ValueError:
                raise self.fail(
                    f'The point "{self._point}" is not three numbers ("{text[:40]}"); export the file from MVN again.'
                ) from None
            group.segments[-1].points[self._point] = (x, y, z)
        elif tag in ("connector1", "connector2"):
            self._connectors.append(text)
            if len(self._connectors) == 2:
                group.joints.append((self._connectors[0], self._connectors[1]))


class BrokenXml(FileError):
    """The text is not XML; ``ends_early`` when it only stops too soon."""

    def __init__(self, message: str, path: Path, line: int, code: int) -> None:
        super().__init__(message, path, line)
        names = expat.errors
        early = (
            names.XML_ERROR_NO_ELEMENTS,
            names.XML_ERROR_UNCLOSED_TOKEN,
            names.XML_ERROR_PARTIAL_CHAR,
            names.XML_ERROR_UNCLOSED_CDATA_SECTION,
        )
        self.ends_early = expat.ErrorString(code) in early
