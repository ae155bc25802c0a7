# SPDX-License-Identifier: GPL-3.0-or-later
"""Naming families: which software or studio calls which joint what. One TOML file each in ``families/`` (``docs/families.md`` says how).

``_words.toml`` beside them is the general dictionary for joints that no family explains.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

from ..motion.errors import FileError
from .names import Reading, readings, without_namespace, words
from .roles import ARM_PARTS, CHAIN_ROLES, FINGERS, LEG_PARTS

FOLDER = Path(__file__).parent / "families"

SIDED_PARTS: frozenset[str] = frozenset({*ARM_PARTS, *LEG_PARTS, *FINGERS, "Eye"})
CENTRE_PARTS: frozenset[str] = frozenset({"root", "hips", "spine", "neck", "head", "jaw"})
_CHAINS = frozenset({role.removeprefix("left") for role in CHAIN_ROLES if not role.startswith("right")})

_ANY_DIGITS = "\u0f00"  # stands for "#" while a pattern is cut into words: a letter no name contains


@dataclass(frozen=True)
class Claim:
    """What a name says of its joint.

    Parameters
    ----------
    part : str
        A role without its side (``UpperArm``), or "" when the joint is known and has no role.
    side : "left", "right" or ""
    rank : int
        For a chain the place of the name in the family's list; otherwise how late an alternative it is.
    sure : float
        0..1.
    literal : bool
        Whether the name is spelled as the family spells it.
    """

    part: str
    side: str = ""
    rank: int = 0
    sure: float = 1.0
    literal: bool = False

    @property
    def role(self) -> str:
        """The role with its side."""
        return f"{self.side}{self.part}"


@dataclass
class _Entries:
    """Keys of one side class -> (part, rank, shape)."""

    plain: dict[str, tuple[str, int, str]] = field(default_factory=dict[str, tuple[str, int, str]])
    loose: dict[str, tuple[str, int, str]] = field(default_factory=dict[str, tuple[str, int, str]])
    patterns: list[tuple[re.Pattern[str], tuple[str, int, str]]] = field(default_factory=list[tuple[re.Pattern[str], tuple[str, int, str]]])

    def add(self, reading: Reading, entry: tuple[str, int, str]) -> None:
        if _ANY_DIGITS in reading.key:
            self.patterns.append((re.compile(re.escape(reading.key).replace(_ANY_DIGITS, "[0-9]*")), entry))
            return
        self.plain.setdefault(reading.key, entry)
        self.loose.setdefault(reading.loose, entry)

    def exact(self, key: str) -> tuple[str, int, str] | None:
        return self.plain.get(key)

    def inexact(self, loose: str) -> tuple[str, int, str] | None:
        found = self.loose.get(loose)
        if found is None:
            found = next((entry for pattern, entry in self.patterns if pattern.fullmatch(loose)), None)
        return found


class Family:
    """A naming family, ready for look-ups.

    Parameters
    ----------
    name : str
        As a person reads it.
    roles : mapping from part to list of str
        The names on the left side; for chains the links from the body outwards, otherwise alternatives.
    ignore : sequence of str
        Names (left side) or patterns with ``*`` of joints that have no role.
    prefixes : sequence of str
        Text in front of the names; ``#`` stands for any digits.
    prefix_required : bool
        Whether names without a prefix are foreign.
    twist : sequence of str
        Names (left side) or patterns with ``*`` of bones that only share a limb's roll, where their names do not say "twist" or "roll".
    """

    def __init__(
        self,
        name: str,
        roles: Mapping[str, Sequence[str]],
        ignore: Sequence[str] = (),
        prefixes: Sequence[str] = (),
        prefix_required: bool = False,
        twist: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.roles = {part: tuple(names) for part, names in roles.items()}
        self.prefix_required = prefix_required
        self._prefixes = [_prefix_pattern(prefix) for prefix in prefixes]
        self._entries = {"": _Entries(), "side": _Entries()}
        self._globs = [pattern.casefold() for pattern in ignore if "*" in pattern]
        self._twist = [pattern.casefold() for pattern in twist]
        for part, names in self.roles.items():
            for rank, text in enumerate(names):
                self._add(text, part, rank)
        for text in ignore:
            if "*" not in text:
                self._add(text, "", 0)
        self._cache: dict[str, Claim | None] = {}
        self.size = sum(len(names) if part in _CHAINS else 1 for part, names in self.roles.items())

    def _add(self, text: str, part: str, rank: int) -> None:
        bare = self._bare(text) or text
        options = readings(bare.replace("#", _ANY_DIGITS))
        left = next((r for r in options if r.side == "left"), None)
        if part in SIDED_PARTS and left is None:
            raise FileError(f'the family "{self.name}" must give a left side name for {part}, not "{text}".')
        use = left if left is not None and part not in CENTRE_PARTS else options[0]
        self._entries["side" if use.side else ""].add(use, (part, rank, use.shape.casefold()))

    def _bare(self, text: str) -> str | None:
        """``text`` without the family's prefix; None when it has none."""
        for pattern in self._prefixes:
            cut = pattern.match(text)
            if cut and cut.end() < len(text):
                return text[cut.end() :]
        return None

    def is_twist(self, name: str) -> bool:
        """Whether the family's list of twist bones has the name."""
        options = {name, without_namespace(name)}
        texts = {text.casefold() for option in options for text in (option, as_left(option))}
        return any(fnmatchcase(text, pattern) for text in texts for pattern in self._twist)

    def claim(self, name: str) -> Claim | None:
        """What the family says of a joint called ``name``; None when it does not know the name."""
        if name not in self._cache:
            if len(self._cache) > 20_000:
                self._cache.clear()
            self._cache[name] = self._claim(name)
        return self._cache[name]

    def _claim(self, name: str) -> Claim | None:
        bare = self._bare(name)
        texts = [] if bare is None else [bare]
        if not self.prefix_required or (bare is None and words(name) == ("root",)):
            texts.append(name)
        exact = self._find(texts, "exact")
        if exact is not None and exact.literal:
            return exact
        if self._globs:
            plain, left = name.casefold(), as_left(name).casefold()
            if any(fnmatchcase(plain, glob) or fnmatchcase(left, glob) for glob in self._globs):
                return Claim("")
        return exact if exact is not None else self._find(texts, "inexact")

    def _find(self, texts: Sequence[str], step: Literal["exact", "inexact"]) -> Claim | None:
        for text in texts:
            for reading in readings(text):
                entries = self._entries["side" if reading.side else ""]
                found = entries.exact(reading.key) if step == "exact" else entries.inexact(reading.loose)
                if found is not None:
                    part, rank, shape = found
                    side = reading.side if part in SIDED_PARTS else ""
                    return Claim(part, side, rank, 1.0, reading.shape.casefold() == shape)
        return None


def _prefix_pattern(prefix: str) -> re.Pattern[str]:
    """Prefix of a family file -> pattern on raw names: separators are optional, "#" is any digits, case does not matter."""
    pieces = [re.escape(piece) for piece in re.split(r"[\W_]+", prefix.replace("#", _ANY_DIGITS)) if piece]
    return re.compile(r"[\W_]*".join(pieces).replace(_ANY_DIGITS, "[0-9]*") + r"[\W_]*", re.IGNORECASE)


@lru_cache(maxsize=8192)
def as_left(name: str) -> str:
    """The name with a right side word turned into the left one, in the same spelling."""
    swaps = {"right": "left", "r": "l", "rgt": "lft"}

    def swap(found: re.Match[str]) -> str:
        word = found.group()
        other = swaps.get(word.lower())
        if other is None:
            return word
        return other.upper() if word.isupper() else other.capitalize() if word[0].isupper() else other

    return re.sub(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+", swap, name).replace("右", "左")


# --- files ---


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    """Every family, in the order of the file names; read once."""
    return tuple(load_family(path) for path in sorted(FOLDER.glob("[!_]*.toml")))


def load_family(path: Path) -> Family:
    """One family file.

    Raises
    ------
    FileError
        When the file is no TOML or misses something, naming the place.
    """
    data = _read(path)
    name = data.get("name")
    if not isinstance(name, str) or not name:
        raise FileError('the family needs a "name".', path)
    roles = data.get("roles")
    if not isinstance(roles, dict) or not roles:
        raise FileError('the family needs a table "[roles]".', path)
    lists: dict[str, list[str]] = {}
    for part, value in cast("dict[str, object]", roles).items():
        if part not in SIDED_PARTS and part not in CENTRE_PARTS:
            raise FileError(f'"{part}" is no role; one of {", ".join(sorted(SIDED_PARTS | CENTRE_PARTS))} was expected.', path)
        lists[part] = _texts(value, part, path)
    unknown = sorted(data.keys() - {"name", "roles", "ignore", "prefixes", "prefix_required", "twist"})
    if unknown:
        raise FileError(f'"{unknown[0]}" is no key of a family file.', path)
    try:
        return Family(
            name,
            lists,
            _texts(data.get("ignore", []), "ignore", path),
            _texts(data.get("prefixes", []), "prefixes", path),
            bool(data.get("prefix_required", False)),
            _texts(data.get("twist", []), "twist", path),
        )
    except FileError as error:
        raise FileError(str(error), path) from None


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"the family cannot be read ({error.strerror}).", path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"the family is no valid TOML: {error}.", path) from None


def _texts(value: object, what: str, path: Path) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, list) and all(isinstance(v, str) and v for v in cast("list[object]", value)):
        return cast("list[str]", value)
    raise FileError(f'"{what}" must be a name or a list of names.', path)


# --- the general dictionary ---


class Dictionary:
    """Words of any naming: what a name most likely means when no family knows it."""

    def __init__(self, path: Path) -> None:
        data = cast("dict[str, dict[str, list[str]]]", _read(path))
        self._tables: dict[str, dict[str, list[tuple[str, float]]]] = {"": {}, "side": {}}
        self._patterns: list[tuple[re.Pattern[str], str]] = []
        for part, entries in data["centre"].items():
            self._fill("", part, entries)
        for part, entries in data["sided"].items():
            self._fill("side", part, entries)
        self.ignored_words = frozenset(data["ignore"]["words"])
        spoken = {"thumb", "index", "middle", "mid", "ring", "pinky", "little", "finger", "up", "low", "upper", "lower", "fore"}
        self.vocabulary = self.ignored_words.union(spoken, *self._tables.values())
        self._cache: dict[str, tuple[Claim, ...]] = {}

    def _fill(self, table: str, part: str, entries: Sequence[str]) -> None:
        for entry in entries:
            key = entry.rstrip("?")
            if "#" in key:
                self._patterns.append((re.compile(re.escape(key.replace("#", _ANY_DIGITS)).replace(_ANY_DIGITS, "[0-9]+")), part))
            else:
                self._tables[table].setdefault(key, []).append((part, 0.8 if entry.endswith("?") else 0.9))

    def claims(self, name: str) -> tuple[Claim, ...]:
        """Every part that ``name`` may mean; one claim with an empty part for a helper; nothing for an unknown name."""
        if name not in self._cache:
            if len(self._cache) > 20_000:
                self._cache.clear()
            self._cache[name] = self._claims(name)
        return self._cache[name]

    def _claims(self, name: str) -> tuple[Claim, ...]:
        if any(word in self.ignored_words for word in words(name)):
            return (Claim(""),)
        for reading in readings(name):
            table = "side" if reading.side else ""
            found = self._tables[table].get(reading.loose)
            if found is None and not table:
                found = [(part, 0.9) for pattern, part in self._patterns if part in CENTRE_PARTS and pattern.fullmatch(reading.loose)]
            if found:
                return tuple(Claim(part, reading.side, 0, sure) for part, sure in found)
        for reading in readings(name):
            if reading.side:
                finger = finger_of(reading.loose)
                if finger is not None:
                    return (Claim(finger[0], reading.side, finger[1], 0.9),)
        return ()


_FINGER = re.compile(
    r"(?:hand|f|finger)?(?P<palm>in(?:hand)?|inhand|meta|metacarpal|carpal|palm)?"
    r"(?P<finger>thumb|index|middle|mid|ring|pinky|pinkie|little)(?:finger|hand)?"
    r"(?P<link>metacarpal|meta|root|proximal|intermediate|medial|distal|base)?(?P<number>[0-9]*)"
)
_FINGER_NAMES = {
    "thumb": "Thumb",
    "index": "Index",
    "middle": "Middle",
    "mid": "Middle",
    "ring": "Ring",
    "pinky": "Little",
    "pinkie": "Little",
    "little": "Little",
}
PALM_RANK = -1
"""Rank of a palm bone (metacarpal) among a finger's links."""


def finger_of(key: str) -> tuple[str, int] | None:
    """Finger and rank of its link that a key without side names: ``handindex2`` -> (``Index``, 2), ``inhandring`` -> (``Ring``, -1)."""
    found = _FINGER.fullmatch(key)
    if not found:
        return None
    finger = _FINGER_NAMES[found["finger"]]
    link = found["link"]
    if found["palm"] or link in ("metacarpal", "meta", "root"):
        return finger, PALM_RANK
    if found["number"]:
        return finger, int(found["number"])
    return finger, {"proximal": 1, "base": 1, "intermediate": 2, "medial": 2, "distal": 3}.get(link or "", 0)


@lru_cache(maxsize=1)
def dictionary() -> Dictionary:
    """The general dictionary, read once."""
    return Dictionary(FOLDER / "_words.toml")
