# SPDX-License-Identifier: GPL-3.0-or-later
"""The head of a BVH file: HIERARCHY and the two lines after MOTION.

The grammar is read the way the format's writers differ in it: keywords in any case; a joint's name is the rest of its line (so it may hold
spaces, colons, dots, any script); an opening brace may stand on that line; the words ``End Site`` and nothing else end a chain;
channels are known by their names, in any order and number, and the words after CHANNELS count, not the number before them.
"""

from __future__ import annotations

import math
import re
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from ..motion.errors import FileError
from .numbers import to_float

_CHANNEL = re.compile(r"([xyz])_?(pos|rot|scale)[a-z]*", re.IGNORECASE)
_KEYWORDS = frozenset({"{", "}", "joint", "root", "end", "offset", "channels"})
_MOST_JOINTS = 20_000
_MOST_CHANNELS = 1_000_000


@dataclass
class Joint:
    """One ROOT or JOINT as written: ``parent`` indexes the file's joints (-1 for a ROOT); ``channels`` are pairs (kind, axis) with kind
    ``"pos"``, ``"rot"`` or ``""`` (a column that means nothing here) and axis 0..2; ``first`` is the column of its first channel."""

    name: str
    parent: int
    line: int
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)
    channels: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])
    first: int = 0
    end: tuple[float, float, float] | None = None


@dataclass
class Header:
    """All that stands before the rows of numbers."""

    joints: list[Joint]
    columns: int
    notes: list[str]
    frames: int | None = None  # as declared
    frame_time: float | None = None
    frame_time_digits: int | None = None  # decimals as written
    motion_line: int = 0  # 1-based line of the first row; 0 where there is no MOTION


class _Words:
    """The words of a text one after the other, with their lines; a joint's name is taken as the rest of its line."""

    def __init__(self, text: str, path: Path) -> None:
        self.path = path
        self._lines = iter(enumerate(re.split("\r\n|\r|\n", text), 1))
        self._words: list[str] = []  # of the current line
        self._at = 0
        self.line = 1
        """Line of the next word, or the last line with words at the end."""
        self._taken_on = 0
        self._fill()

    def _fill(self) -> None:
        """Go on to the next line with words where the current one is used up."""
        while self._at >= len(self._words):
            number, line = next(self._lines, (0, ""))
            if number == 0:
                return
            if (words := line.replace("\0", " ").split()) and not words[0].startswith("#"):
                self._words, self._at, self.line = words, 0, number

    @property
    def over(self) -> bool:
        return self._at >= len(self._words)

    def peek(self) -> str:
        """The next word; empty at the end."""
        return "" if self.over else self._words[self._at]

    def take(self) -> str:
        """The next word, and go on."""
        word = self.peek()
        self._taken_on = self.line
        self._at += 1
        self._fill()
        return word

    def rest_of_line(self, stop: Callable[[str], bool]) -> list[str]:
        """The words left on the line of the word just taken, up to one that ``stop`` knows."""
        if self.over or self.line != self._taken_on:
            return []
        words = self._words[self._at :]
        end = next((i for i, word in enumerate(words) if stop(word)), len(words))
        self._at += end
        self._fill()
        return words[:end]

    def put_back(self, word: str) -> None:
        """Make ``word`` the next one."""
        if self.over:
            self._words, self._at = [word], 0
        else:
            self._words.insert(self._at, word)

    def fail(self, message: str, line: int | None = None) -> FileError:
        return FileError(message, self.path, self.line if line is None else line)

    def number(self, what: str) -> float:
        line = self.line
        if self.over:
            raise self.fail(f"The file ends where {what} should stand; it is cut off.")
        word = self.take()
        value = to_float(word.rstrip(",;").replace(",", ".").encode("utf-8", "replace"))
        if value is None or math.isnan(value) or abs(value) > 1e30:
            raise self.fail(f'"{_short(word)}" stands where {what} should; the line is damaged.', line)
        return value


_REMEMBERED = 8
_LONGEST_REMEMBERED = 1 << 18
_parsed_before: OrderedDict[str, Header] = OrderedDict()


def parse_hierarchy(text: str, path: Path) -> Header:
    """HIERARCHY of a BVH file (everything before the MOTION line).

    The last ones are remembered: the takes of one performer begin with the same text. Their headers share joints, which nobody changes.

    Raises
    ------
    FileError
        With the line, where the text cannot be a hierarchy.
    """
    found = _parsed_before.get(text)
    if found is None:
        found = _parsed(text, path)
        if len(text) <= _LONGEST_REMEMBERED:
            _parsed_before[text] = found
            while len(_parsed_before) > _REMEMBERED:
                _parsed_before.popitem(last=False)
    return Header(found.joints, found.columns, list(found.notes))


def _parsed(text: str, path: Path) -> Header:
    words = _Words(text, path)
    notes: list[str] = []
    if words.peek().lower() == "hierarchy":
        words.take()
    elif words.peek().lower() != "root":
        raise words.fail("A BVH file begins with HIERARCHY, this one does not; it may be damaged or of another kind.")
    joints: list[Joint] = []
    stack: list[int] = []  # the joints whose braces are open
    while not words.over:
        line = words.line
        word = words.take()
        key = word.lower()
        if key == "{":
            raise words.fail('There is a "{" without a ROOT or JOINT before it; the hierarchy is damaged.', line)
        elif key == "}":
            if not stack:
                raise words.fail('There is one "}" too many; the hierarchy is damaged.', line)
            stack.pop()
        elif key in ("root", "joint"):
            if key == "joint" and not stack:
                raise words.fail("A JOINT stands outside of every ROOT; the hierarchy is damaged.", line)
            if key == "root" and stack:
                raise words.fail('A ROOT stands inside another joint; a "}" is missing before it.', line)
            name = _name(words, len(joints), line, notes)
            joints.append(Joint(name, stack[-1] if stack else -1, line))
            if len(joints) > _MOST_JOINTS:
                raise words.fail(f"There are more than {_MOST_JOINTS} joints; the hierarchy is damaged.", line)
            _open(words, name)
            stack.append(len(joints) - 1)
        elif key == "end" and words.peek().lower() == "site":
            if not stack:
                raise words.fail("An End Site stands outside of every joint; the hierarchy is damaged.", line)
            words.take()
            words.rest_of_line(lambda word: word == "{")
            _end_site(words, joints[stack[-1]])
        elif key == "offset":
            if not stack:
                raise words.fail("An OFFSET stands outside of every joint; the hierarchy is damaged.", line)
            joints[stack[-1]].offset = (words.number("an offset"), words.number("an offset"), words.number("an offset"))
        elif key == "channels":
            if not stack:
                raise words.fail("CHANNELS stand outside of every joint; the hierarchy is damaged.", line)
            _channels(words, joints[stack[-1]], line, notes)
        else:
            raise words.fail(f'"{_short(word)}" is no word of a BVH hierarchy; the line is damaged.', line)
    if stack:
        raise words.fail(f'The hierarchy ends inside the joint "{joints[stack[-1]].name}"; the file is cut off or a "}}" is missing.')
    if not joints:
        raise words.fail("The hierarchy holds no joint.")
    return _numbered(joints, notes, words)


def _name(words: _Words, index: int, line: int, notes: list[str]) -> str:
    name = " ".join(words.rest_of_line(lambda word: word == "{"))
    if len(name) > 1 and name.endswith("{"):  # the brace touches the name
        name = name[:-1].rstrip()
        words.put_back("{")
    if not name:
        notes.append(f'The joint on line {line} has no name; it is called "joint{index}".')
        return f"joint{index}"
    return name[:256]


def _open(words: _Words, what: str) -> None:
    if words.peek() != "{":
        raise words.fail(
            f'A "{{" is missing after "{_short(what)}"; the hierarchy is damaged.'
            if not words.over
            else "The file ends in the middle of the hierarchy; it is cut off."
        )
    words.take()


def _end_site(words: _Words, joint: Joint) -> None:
    """``{ OFFSET x y z }``; of several End Sites at a joint the first is its bone's end."""
    _open(words, "End Site")
    end: tuple[float, float, float] | None = None
    while not words.over and words.peek() != "}":
        line = words.line
        word = words.take()
        if word.lower() == "offset":
            end = (words.number("an offset"), words.number("an offset"), words.number("an offset"))
        elif word.lower() == "channels":  # some writers give an End Site "CHANNELS 0"
            if words.peek() != "0":
                raise words.fail("An End Site has channels; the hierarchy is damaged.", line)
            words.take()
        else:
            raise words.fail(f'"{_short(word)}" stands inside an End Site; the hierarchy is damaged.', line)
    if words.over:
        raise words.fail("The file ends inside an End Site; it is cut off.")
    words.take()
    if joint.end is None:
        joint.end = end


def _channels(words: _Words, joint: Joint, line: int, notes: list[str]) -> None:
    count_word = words.take()
    names = words.rest_of_line(lambda word: word.lower() in _KEYWORDS)  # the whole hierarchy may stand on one line
    while not names and _CHANNEL.fullmatch(words.peek()):  # names on lines of their own
        names = [words.take(), *words.rest_of_line(lambda word: word.lower() in _KEYWORDS)]
    if not count_word.isdecimal():
        raise words.fail(f'"{_short(count_word)}" stands where the number of channels should; the line is damaged.', line)
    count = int(count_word[:12])
    if count > _MOST_CHANNELS:
        raise words.fail(f"A joint cannot have {count_word[:20]} channels; the line is damaged.", line)
    if count != len(names):
        notes.append(f'Line {line} announces {count} channels for "{joint.name}" and names {len(names)}; the names count.')
    joint.channels = []
    for name in names:
        match = _CHANNEL.fullmatch(name)
        kind = match.group(2).lower() if match else ""
        joint.channels.append((kind if kind in ("pos", "rot") else "", "xyz".index(match.group(1).lower()) if match else 0))
        if kind not in ("pos", "rot"):
            notes.append(f'The channel "{_short(name)}" of "{joint.name}" (line {line}) is not a position or rotation; it is left out.')
    if sum(kind == "rot" for kind, _ in joint.channels) > 3:
        raise words.fail(f'"{joint.name}" has more than three rotation channels; the line is damaged.', line)


def _numbered(joints: list[Joint], notes: list[str], words: _Words) -> Header:
    """Give every joint its first column, and names that occur twice under one root a number."""
    columns = 0
    taken: set[str] = set()
    last: dict[str, int] = {}
    again: list[Joint] = []
    for joint in joints:
        joint.first = columns
        columns += len(joint.channels)
        if joint.parent < 0:
            taken, last = set(), {}
        name = joint.name
        if name in taken:
            again.append(joint)
            while joint.name in taken:
                last[name] = last.get(name, 0) + 1
                joint.name = f"{name}.{last[name]:03d}"
        taken.add(joint.name)
    if again:
        more = f" (and {len(again) - 1} more like it)" if len(again) > 1 else ""
        notes.append(f'A joint name occurs again on line {again[0].line}; that joint is called "{again[0].name}"{more}.')
    if columns > _MOST_CHANNELS:
        raise words.fail(f"The joints have {columns} channels together; the hierarchy is damaged.", 1)
    return Header(joints, columns, _shortened(notes))


def _short(word: str) -> str:
    """A word as it may stand in a sentence."""
    shown = "".join(c if c.isprintable() else "?" for c in word[:40])
    return shown + "..." if len(word) > 40 else shown


def _shortened(notes: list[str], most: int = 6) -> list[str]:
    return notes if len(notes) <= most else [*notes[:most], f"There are {len(notes) - most} more remarks of this kind about the hierarchy."]
