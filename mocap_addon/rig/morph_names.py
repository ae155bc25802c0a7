# SPDX-License-Identifier: GPL-3.0-or-later
"""Which curve of a take moves which shape key: names of morphs, matched as a person would read them.

``rig/morphs/_known.toml`` holds ARKit's 52 blend shapes and VRM's expressions with the names that other rigs give them.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from .names import words

Array = NDArray[np.float64]

_SIDES = {"l": "left", "r": "right", "lft": "left", "rgt": "right"}
_DATA = Path(__file__).parent / "morphs" / "_known.toml"
PERCENT_FROM = 1.5
"""Values beyond this are percent: an overshoot of a 0..1 morph is less, and a percentage that never passes 1.5 moves nothing."""


@dataclass(frozen=True)
class MorphMatch:
    """Result of :func:`match_morphs`: shape key -> curve, and the curves that no shape key answers to."""

    keys: Mapping[str, str]
    missing: tuple[str, ...]


def arkit() -> tuple[str, ...]:
    """ARKit's 52 blend shapes."""
    known = list(_morphs())
    return tuple(known[: known.index("tongueOut") + 1])


def canonical(name: str) -> str | None:
    """What this program calls a morph, or None for one it does not know."""
    known = _index()
    return next((known[key] for key in _readings(name) if key in known), None)


def match_morphs(curves: Iterable[str], keys: Iterable[str], renamed: Mapping[str, str] | None = None) -> MorphMatch:
    """Which curve each shape key follows.

    Parameters
    ----------
    curves : iterable of str
        Names of a take's curves.
    keys : iterable of str
        Names of shape keys.
    renamed : mapping, optional
        Curve -> shape key, said by a person; an empty name leaves a curve out. These come first, then equal names, then names that read
        alike, then names that mean the same. A key follows one curve.
    """
    curves, keys, renamed = list(dict.fromkeys(curves)), list(dict.fromkeys(keys)), renamed or {}
    out = {key: curve for curve, key in renamed.items() if curve in curves and key in keys}
    free = [curve for curve in curves if curve not in renamed]
    used = {curve for curve in curves if not renamed.get(curve, "-")} | set(out.values())
    ranks: tuple[Callable[[str], str | None], ...] = (str, _plain, canonical)
    for rank in ranks:
        by_rank: dict[str, str] = {}
        for curve in free:
            read = rank(curve)
            if read is not None:
                by_rank.setdefault(read, curve)
        for key in keys:
            read = rank(key)
            if key not in out and read is not None and read in by_rank:
                out[key] = by_rank[read]
    used |= set(out.values())
    return MorphMatch({key: out[key] for key in keys if key in out}, tuple(curve for curve in curves if curve not in used))


def unit_of(curves: Mapping[str, Array]) -> float:
    """What a morph's full strength of 1 is in these curves: 100 where any of them goes beyond what a 0..1 morph would."""
    most = max((float(np.abs(values).max()) for values in curves.values() if len(values)), default=0.0)
    return 100.0 if most > PERCENT_FROM else 1.0


def _plain(name: str) -> str:
    """A name without case, separators and spelling of its side."""
    return _joined(unicodedata.normalize("NFKC", name))


def _joined(name: str) -> str:
    found = list(words(name))
    if found and found[-1] in _SIDES and len(found) > 1:
        found[-1] = _SIDES[found[-1]]
    return "".join(found)


def _readings(name: str) -> list[str]:
    """Ways to read a name: whole, without what stands before its last full stop or colon, without a usual prefix."""
    name = unicodedata.normalize("NFKC", name)
    out = [_joined(name)]
    parts = [part for part in re.split(r"[.:|]", name) if part]
    if len(parts) > 1:
        tail = 2 if words(parts[-1])[:1] and words(parts[-1])[0] in {*_SIDES, *_SIDES.values()} and len(words(parts[-1])) == 1 else 1
        out.append(_joined("_".join(parts[-tail:])))
    for prefix in _prefixes():
        out += [one.removeprefix(prefix) for one in list(out) if one.startswith(prefix) and one != prefix]
    return out


@lru_cache(maxsize=1)
def _file() -> Mapping[str, object]:
    return tomllib.loads(_DATA.read_text(encoding="utf-8"))


def _morphs() -> Mapping[str, list[str]]:
    return cast("Mapping[str, list[str]]", _file()["morphs"])


@lru_cache(maxsize=1)
def _prefixes() -> tuple[str, ...]:
    found = {_joined(prefix) for prefix in cast("list[str]", _file()["prefixes"])}
    return tuple(sorted(found, key=len, reverse=True))


@lru_cache(maxsize=1)
def _index() -> dict[str, str]:
    """Every reading of every known name -> the name it is known by."""
    out: dict[str, str] = {}
    for name, variants in _morphs().items():
        for one in (name, *variants):
            out.setdefault(_plain(one), name)
    return out
