# SPDX-License-Identifier: GPL-3.0-or-later
"""The YAML that Unity writes, read as text.

Unity's files are a small part of YAML 1.1: block mappings and sequences, flow mappings and sequences, plain and quoted scalars (all of
which may go on in the next line), block scalars, one tag a document. Nothing is turned into numbers, dates or truth values here: bones are
called ``No``, ``on`` and ``001``, and a plain YAML 1.1 reader takes ``1e-05`` and ``Infinity`` for words. The long lists of keys that make
up nearly all of a clip are not walked: :attr:`Parser.opaque` names the fields whose text is only marked off (``unity_keys`` reads them).
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ..motion.errors import FileError

_DOCUMENT = re.compile(rb"---[ \t]*(?:!u!(-?\d{1,9}))?[^\n]*")
_LINE = re.compile(rb"( *)([^\n]*)\n?")
_KEY = re.compile(rb"""('(?:[^'\n]|'')*'|"(?:[^"\\\n]|\\.)*"|(?:[^\s'"{}\[\],#&*!|>%@`:-]|-(?=\S))(?:[^\n:]|:(?![ \n]))*):(?=[ \n]|\Z)""")
_PROPERTY = re.compile(rb"(?:[&!][^\s,{}\[\]]*[ \t]+)+")
_FLOW_PLAIN = re.compile(rb"[^,{}\[\]\n]*")
_SPACE = re.compile(rb"[ \t\n]*")
_ESCAPES = {
    **{"0": "\0", "a": "\a", "b": "\b", "t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b", "N": "\x85"},
    **{"_": "\xa0", "L": "\u2028", "P": "\u2029"},
}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|\n[ \t]*|(.))", re.S)
_DEEPEST = 60


class Text(str):
    """A scalar as it was written, with its place (bytes from the start of the file)."""

    at: int = -1


class Span(NamedTuple):
    """The text of a field that is not walked: bytes ``start`` to ``stop``, its lines indented by ``indent``."""

    start: int
    stop: int
    indent: int


class Map(dict[str, "Node"]):
    """A mapping with its place."""

    at: int = -1


Node: TypeAlias = "Text | Map | list[Node] | Span"


class Document(NamedTuple):
    """One object of the file: its class, and where its text lies."""

    kind: int
    start: int
    stop: int


def load(path: Path) -> bytes:
    """The file's text: no byte order mark, line ends as ``\\n``.

    Raises
    ------
    FileError
        It cannot be read, or is no YAML text.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise FileError(f"The file cannot be opened ({error.strerror or error}).", path) from None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = data.decode("utf-16", "replace").encode()
    data = data.removeprefix(b"\xef\xbb\xbf")
    if b"\0" in data:
        raise FileError('This Unity file is binary; set Project Settings > Editor > Asset Serialization to "Force Text" and save it.', path)
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in data else data


def documents(data: bytes) -> list[Document]:
    """The objects of a file, in its order."""
    out: list[Document] = []
    at = 0 if data.startswith(b"---") else data.find(b"\n---") + 1 or -1
    while at >= 0:
        following = data.find(b"\n---", at) + 1 or -1
        mark = _DOCUMENT.match(data, at)
        assert mark is not None
        stop = len(data) if following < 0 else following
        out.append(Document(int(mark[1] or -1), min(mark.end() + 1, stop), stop))
        at = following
    return out


class Parser:
    """Reads one stretch of a file.

    Parameters
    ----------
    data : bytes
        The whole file; places count from its start.
    start, stop : int
        From where to where to read; lines begin at ``start``.
    path : Path
        For the sentence of an error.
    opaque : collection of str
        Fields whose value becomes a :class:`Span`.
    """

    def __init__(self, data: bytes, start: int, stop: int, path: Path, opaque: Collection[str] = ()) -> None:
        self.data, self.pos, self.stop, self.path = data, start, stop, path
        self.opaque = frozenset(opaque)
        self.deep = 0

    def parse(self) -> Node:
        """The whole stretch: one mapping or sequence."""
        line = self._peek()
        if line is None:
            out = Map()
            out.at = self.pos
            return out
        out = self._block(line[0])
        rest = self._peek()
        if rest is not None:
            raise self.error("This line stands farther to the left than the list it should belong to; the file is damaged here.", rest[1])
        return out

    def error(self, message: str, at: int) -> FileError:
        """The sentence with the line of the place ``at``."""
        return FileError(message, self.path, line_of(self.data, at))

    def _peek(self) -> tuple[int, int] | None:
        """Indent and place of the next line that is not empty; :attr:`pos` is moved to that line's start."""
        while self.pos < self.stop:
            match = _LINE.match(self.data, self.pos, self.stop)
            assert match is not None
            content = match[2]
            if content and not content.startswith(b"#") and content.strip():
                if content.startswith(b"\t"):
                    raise self.error("A line begins with a tab, which YAML does not allow; the file is damaged here.", match.start())
                return len(match[1]), match.start(2)
            self.pos = match.end()
        return None

    def _block(self, indent: int) -> Node:
        self.deep += 1
        line = self._peek()
        assert line is not None
        if self.deep > _DEEPEST:
            raise self.error("The lists of this file are nested too deeply; it is damaged here.", line[1])
        out = self._sequence(indent) if self._is_item(line[1]) else self._mapping(indent, line[1])
        self.deep -= 1
        return out

    def _is_item(self, at: int) -> bool:
        return self.data[at : at + 1] == b"-" and self.data[at + 1 : at + 2] in (b" ", b"\n", b"")

    def _sequence(self, indent: int) -> list[Node]:
        out: list[Node] = []
        while (line := self._peek()) is not None and line[0] == indent and self._is_item(line[1]):
            at = line[1] + 1
            while self.data[at : at + 1] == b" ":
                at += 1
            if at >= self.stop or self.data[at : at + 1] == b"\n":  # the item begins in the next line
                self.pos = at + 1
                below = self._peek()
                out.append(self._block(below[0]) if below is not None and below[0] > indent else self._scalar(b"", at))
            elif self._is_item(at):
                raise self.error("Two lists begin in one line, which Unity does not write; the file is damaged here.", at)
            elif _KEY.match(self.data, at, self.stop) is not None:
                out.append(self._mapping(indent + at - line[1], at))
            else:
                out.append(self._value(at, indent))
        return out

    def _mapping(self, indent: int, at: int) -> Map:
        out = Map()
        out.at = at
        while True:
            match = _KEY.match(self.data, at, self.stop)
            if match is None:
                shown = self.data[at : self._line_end(at)][:40].decode("utf-8", "replace").strip()
                raise self.error(f'"{shown}" is not a field with a value; the file is damaged here.', at)
            name = self._unquoted(match[1], at)
            out[name] = self._field(name, match.end(), indent)
            line = self._peek()
            if line is None or line[0] < indent or (line[0] == indent and self._is_item(line[1])):
                return out
            if line[0] > indent:
                raise self.error(
                    "This line stands farther to the right than the list it should belong to; the file is damaged here.", line[1]
                )
            at = line[1]

    def _field(self, name: str, after: int, indent: int) -> Node:
        """The value of a field whose colon ends at ``after``."""
        at = after
        while self.data[at : at + 1] in (b" ", b"\t"):
            at += 1
        if at < self.stop and self.data[at : at + 1] != b"\n":
            return self._value(at, indent)
        self.pos = at + 1
        line = self._peek()
        if line is None or line[0] < indent or (line[0] == indent and not self._is_item(line[1])):
            return self._scalar(b"", at)
        if name in self.opaque:
            return self._skip(line[0], self._is_item(line[1]))
        return self._block(line[0])

    def _skip(self, indent: int, items: bool) -> Span:
        """Mark off lines that stand at ``indent`` or deeper; of a list those that are its items or deeper."""
        start = self.pos
        here = b"[ -]" if items else b" {0}[^\n]"
        end = re.compile(b"\n(?=[^\n])(?! {%d}%s)" % (indent, here)).search(self.data, start, self.stop)
        self.pos = end.end() if end is not None else self.stop
        return Span(start, self.pos, indent)

    def _value(self, at: int, indent: int) -> Node:
        """A value that begins in its field's line."""
        properties = _PROPERTY.match(self.data, at, self.stop)
        if properties is not None:
            at = properties.end()
        first = self.data[at : at + 1]
        if first in (b"{", b"["):
            out, end = self._flow(at)
            self._end_line(end)
            return out
        if first in (b"'", b'"'):
            end = self._quote_end(at)
            self._end_line(end)
            return self._scalar(self._unquoted(self.data[at:end], at), at)
        if first in (b"|", b">"):
            self.pos = self._line_end(at) + 1
            start = self.pos
            while (line := self._peek()) is not None and line[0] > indent:
                self.pos = self._line_end(line[1]) + 1
            return self._scalar(self.data[start : self.pos], at)
        parts = [self.data[at : self._line_end(at)]]
        self.pos = self._line_end(at) + 1
        while (line := self._peek()) is not None and line[0] > indent:  # a long plain text goes on, deeper
            end = self._line_end(line[1])
            if _KEY.match(self.data, line[1], end) is not None or self._is_item(line[1]):
                raise self.error(
                    "This line stands farther to the right than the list it should belong to; the file is damaged here.", line[1]
                )
            parts.append(self.data[line[1] : end])
            self.pos = end + 1
        return self._scalar(b" ".join((p if b" #" not in p else p[: p.index(b" #")]).strip() for p in parts), at)

    def _end_line(self, at: int) -> None:
        rest = self.data[at : self._line_end(at)].strip()
        if rest and not rest.startswith(b"#"):
            raise self.error(f'After the value stands "{rest[:20].decode("utf-8", "replace")}"; the file is damaged here.', at)
        self.pos = self._line_end(at) + 1

    def _line_end(self, at: int) -> int:
        end = self.data.find(b"\n", at, self.stop)
        return self.stop if end < 0 else end

    def _flow(self, at: int) -> tuple[Node, int]:
        """A flow mapping or sequence; and where it ends."""
        self.deep += 1
        opened, closing = at, b"}" if self.data[at : at + 1] == b"{" else b"]"
        if self.deep > _DEEPEST:
            raise self.error("The lists of this file are nested too deeply; it is damaged here.", at)
        items: list[Node] = []
        fields = Map()
        fields.at = at
        at = self._space(at + 1)
        while self.data[at : at + 1] != closing:
            name = ""
            if closing == b"}":
                key = re.compile(rb"""('(?:[^']|'')*'|"(?:[^"\\]|\\.)*"|[^,{}\[\]\n:]+)[ \t]*:""").match(self.data, at, self.stop)
                if key is None:
                    raise self.error("This list in braces does not end, or a value in it has no name; the file is damaged here.", opened)
                name = self._unquoted(key[1].strip(), at)
                at = self._space(key.end())
            value, at = self._flow_value(at)
            if closing == b"}":
                fields[name] = value
            else:
                items.append(value)
            at = self._space(at)
            following = self.data[at : at + 1] if at < self.stop else b""
            if following == b",":
                at = self._space(at + 1)
            elif following != closing:
                raise self.error("This list in braces does not end; the file is damaged here.", opened)
        self.deep -= 1
        return (fields if closing == b"}" else items), at + 1

    def _flow_value(self, at: int) -> tuple[Node, int]:
        first = self.data[at : at + 1]
        if first in (b"{", b"["):
            return self._flow(at)
        if first in (b"'", b'"'):
            end = self._quote_end(at)
            return self._scalar(self._unquoted(self.data[at:end], at), at), end
        match = _FLOW_PLAIN.match(self.data, at, self.stop)
        assert match is not None
        return self._scalar(match[0].strip(), at), match.end()

    def _space(self, at: int) -> int:
        match = _SPACE.match(self.data, at, self.stop)
        assert match is not None
        return match.end()

    def _quote_end(self, at: int) -> int:
        pattern = rb"'(?:[^']|'')*'" if self.data[at : at + 1] == b"'" else rb'"(?:[^"\\]|\\.)*"'
        match = re.compile(pattern, re.S).match(self.data, at, self.stop)
        if match is None:
            raise self.error("This quoted text does not end; the file is damaged here.", at)
        return match.end()

    def _unquoted(self, raw: bytes, at: int) -> str:
        text = raw.decode("utf-8", "surrogateescape")
        if text[:1] == "'":
            return re.sub(r"[ \t]*\n[ \t]*", " ", text[1:-1]).replace("''", "'")
        if text[:1] != '"':
            return text
        text = re.sub(r"(?<!\\)[ \t]*\n[ \t]*", " ", text[1:-1])

        def escape(match: re.Match[str]) -> str:
            code = match[1] or match[2] or match[3]
            if code is None:
                return _ESCAPES.get(match[4], match[4]) if match[4] is not None else ""
            if int(code, 16) > 0x10FFFF:
                raise self.error("A quoted text holds a sign that does not exist; the file is damaged here.", at)
            return chr(int(code, 16))

        # two halves of one sign (UTF-16) become that sign
        return _ESCAPE.sub(escape, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\" in text else text

    @staticmethod
    def _scalar(raw: bytes | str, at: int) -> Text:
        out = Text(raw.decode("utf-8", "surrogateescape") if isinstance(raw, bytes) else raw)
        out.at = at
        return out


def line_of(data: bytes, at: int) -> int:
    """The 1-based line of a place in the text."""
    return data.count(b"\n", 0, at) + 1
