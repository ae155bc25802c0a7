# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading joint names: separators, prefixes, sides and numbers.

A name is cut into words where its writer cut it: at every sign that is no letter or digit, at lower-to-upper changes,
and between letters and digits. A *reading* is one way to understand the words: a side (or none) and what is left, in
lower case without separators. ``LeftUpLeg``, ``left_up_leg``, ``UpLeg.L`` and ``mixamorig1:LeftUpLeg`` all have the
reading (left, ``upleg``).
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^\W\d_]+")
_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")
_NUMBERED = re.compile(r"^(.+)_([0-9]{2,4})$")

_LONG_SIDES = {"left": "left", "right": "right", "lft": "left", "rgt": "right"}
_SHORT_SIDES = {"l": "left", "r": "right"}
_CENTRE = {"c", "x", "m", "center", "centre"}
_GLUED = (("left", "left"), ("right", "right"), ("左", "left"), ("右", "right"), ("l", "left"), ("r", "right"))

# Prefixes that tell kinds of bones of one rig apart: taking them off would make a control and a deform bone the same.
RESERVED = frozenset({"def", "org", "mch", "ctrl", "ik", "fk", "drv", "tgt", "ref", "vis", "wgt"})


@dataclass(frozen=True)
class Reading:
    """One way to understand a name.

    Parameters
    ----------
    side : "left", "right" or ""
    key : str
        The rest in lower case without separators, numbers as written (``spine01``).
    loose : str
        The same without leading zeros (``spine1``).
    shape : str
        The name as written with its side replaced by ``*``: tells ``*_upperarm`` from ``upperarm.*``.
    """

    side: str
    key: str
    loose: str
    shape: str


@lru_cache(maxsize=8192)
def words(text: str) -> tuple[str, ...]:
    """The words of a name, in lower case; full-width letters and digits count as plain ones."""
    return tuple(m.group().lower() for m in _WORD.finditer(unicodedata.normalize("NFKC", text)))


@lru_cache(maxsize=8192)
def readings(text: str) -> tuple[Reading, ...]:
    """Every way to understand ``text``, the most literal first."""
    plain = unicodedata.normalize("NFKC", text)
    spans = [(m.start(), m.end(), m.group().lower()) for m in _WORD.finditer(plain)]
    every = [w for _, _, w in spans]
    out = [_reading("", every, plain)]
    at = _side_at(every)
    if at is not None:
        start, end, word = spans[at]
        side = _LONG_SIDES.get(word) or _SHORT_SIDES[word]
        rest = every[:at] + every[at + 1 :]
        shape = f"{plain[:start]}*{plain[end:]}"
        out.append(_reading(side, rest, shape))
        if any(w in _CENTRE for w in rest) and len(rest) > 1:
            out.append(_reading(side, [w for w in rest if w not in _CENTRE], shape))
        return tuple(out)
    if any(w in _CENTRE for w in every) and len(every) > 1:
        out.append(_reading("", [w for w in every if w not in _CENTRE], plain))
    joined = "".join(every)
    for mark, side in _GLUED:
        if joined.startswith(mark) and len(joined) > len(mark):
            out.append(_reading(side, [joined[len(mark) :]], f"*{plain[len(mark) :]}"))
        if joined.endswith(mark) and len(joined) > len(mark):
            out.append(_reading(side, [joined[: -len(mark)]], f"{plain[: -len(mark)]}*"))
    return tuple(out)


def _reading(side: str, rest: Sequence[str], shape: str) -> Reading:
    key = "".join(rest)
    loose = "".join(_ZEROS.sub("", w) for w in rest)
    return Reading(side, key, loose, shape)


def _side_at(every: Sequence[str]) -> int | None:
    """Index of the word that names the side. A lone letter counts only when letters remain beside it (``L5`` is a vertebra)."""
    for i, word in enumerate(every):
        if word in _LONG_SIDES:
            return i
    found = [i for i, word in enumerate(every) if word in _SHORT_SIDES]
    for i in reversed(found):
        if any(not w.isdigit() for k, w in enumerate(every) if k != i):
            return i
    return None


def without_namespace(name: str) -> str:
    """``char:mixamorig:Hips`` -> ``Hips``, ``Armature|Hips`` -> ``Hips``. Any number of prefixes."""
    tail = re.split(r"[:|]", name)[-1].strip()
    return tail or name


def bare_names(names: Sequence[str], vocabulary: Iterable[str]) -> list[str]:
    """The names without what most of them share: a namespace, a common first word, a common last word, exporters' running numbers.

    Parameters
    ----------
    names : sequence of str
    vocabulary : iterable of str
        Words that mean something and so are never taken off as a prefix.
    """
    known = frozenset(vocabulary) | RESERVED | _LONG_SIDES.keys() | _SHORT_SIDES.keys()
    out = [without_namespace(unicodedata.normalize("NFKC", name)) for name in names]
    out = _without_running_numbers(out)
    for _ in range(4):
        shorter = _without_first(out, known)
        if shorter == out:
            break
        out = shorter
    return _without_last(out)


def _without_running_numbers(names: list[str]) -> list[str]:
    """Some exporters number all nodes: ``b_Hip_01``, ``b_Tail01_012``. Taken off when nearly all names have one and no two the same."""
    found = [_NUMBERED.match(name) for name in names]
    numbers = [int(m.group(2)) for m in found if m]
    if len(names) >= 8 and len(numbers) >= 0.8 * len(names) and len(set(numbers)) == len(numbers):
        return [m.group(1) if m else name for m, name in zip(found, names, strict=True)]
    return names


def _without_first(names: list[str], known: frozenset[str]) -> list[str]:
    firsts = Counter(w[0] for w in map(words, names) if len(w) > 1)
    enough = max(5, len(names) // 5)
    drop = {word for word, count in firsts.items() if count >= enough and word not in known}
    if not drop:
        return names
    return [_cut_first(name) if len(words(name)) > 1 and words(name)[0] in drop else name for name in names]


def _cut_first(name: str) -> str:
    matches = list(_WORD.finditer(name))
    return name[matches[1].start() :]


def _without_last(names: list[str]) -> list[str]:
    lasts = Counter(w[-1] for w in map(words, names) if len(w) > 1)
    sides = _LONG_SIDES.keys() | _SHORT_SIDES.keys()
    drop = {word for word, count in lasts.items() if count >= max(5, 0.6 * len(names)) and word not in sides}
    if not drop:
        return names
    return [_cut_last(name) if len(words(name)) > 1 and words(name)[-1] in drop else name for name in names]


def _cut_last(name: str) -> str:
    matches = list(_WORD.finditer(name))
    return name[: matches[-2].end()]
