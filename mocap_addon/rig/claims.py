# SPDX-License-Identifier: GPL-3.0-or-later
"""What the names of a skeleton claim: the family that explains them best, and for every joint the parts it may be."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from ..motion.errors import RigError
from ..motion.skeleton import Skeleton
from .families import Claim, Family, dictionary, families
from .names import bare_names, without_namespace


@dataclass(frozen=True)
class Claims:
    """Per joint the claims its name makes; ``()`` for a name that says nothing.

    ``helper[j]`` tells that the name marks a joint without a role (twist, IK, end, ...).
    """

    family: str
    of: tuple[tuple[Claim, ...], ...]
    helper: tuple[bool, ...]

    def sure(self, joint: int, part: str, side: str = "") -> float:
        """How surely ``joint`` is ``part``, 0..1."""
        return max((c.sure for c in self.of[joint] if c.part == part and c.side == side), default=0.0)

    def preferred(self, joint: int, part: str, side: str = "") -> float:
        """As :meth:`sure`, a little less for the later ones of a family's alternative names."""
        return max((c.sure - 0.001 * c.rank for c in self.of[joint] if c.part == part and c.side == side), default=0.0)

    def rank(self, joint: int, part: str, side: str = "") -> int:
        """Rank of the name in the chain ``part``."""
        return next((c.rank for c in self.of[joint] if c.part == part and c.side == side), 0)

    def sides(self, joint: int) -> str:
        """The side that any claim of ``joint`` names, or ""."""
        return next((c.side for c in self.of[joint] if c.side), "")


def read_claims(skeleton: Skeleton, wanted: str | None = None) -> Claims:
    """Find the family of a skeleton and what every name claims.

    Parameters
    ----------
    skeleton : Skeleton
    wanted : str, optional
        Name of the family to use; without it the best one is found.

    Raises
    ------
    RigError
        When no family has the wanted name.
    """
    general = dictionary()
    full = [without_namespace(name) for name in skeleton.names]
    bare = bare_names(skeleton.names, general.vocabulary)
    common = [general.claims(b) for b in bare]
    family, by_family = _best(full, bare, common, wanted)
    of: list[tuple[Claim, ...]] = []
    for j, general_claims in enumerate(common):
        own = by_family[j] if by_family is not None else None
        of.append((own,) if own is not None else general_claims)
    helper = tuple(bool(claims) and all(not c.part for c in claims) for claims in of)
    body = tuple(tuple(c for c in claims if c.part) for claims in of)
    return Claims(family, body, helper)


def _best(full: list[str], bare: list[str], common: list[tuple[Claim, ...]], wanted: str | None) -> tuple[str, list[Claim | None] | None]:
    candidates = families()
    if wanted is not None:
        candidates = tuple(f for f in candidates if f.name.casefold() == wanted.casefold())
        if not candidates:
            raise RigError(f'There is no naming family called "{wanted}"; there are {", ".join(f.name for f in families())}.')
    known = sum(any(c.part for c in claims) for claims in common)
    best: tuple[float, str, list[Claim | None] | None] = (0.0, "", None)
    for family in candidates:
        claims = [family.claim(f) or (family.claim(b) if b != f else None) for f, b in zip(full, bare, strict=True)]
        score, explained = _score(family, claims, common)
        if wanted is None and (explained < 8 or explained < 0.5 * known):
            continue
        if score > best[0] or wanted is not None:
            best = (score, family.name, claims)
    return best[1], best[2]


def _score(family: Family, claims: list[Claim | None], common: list[tuple[Claim, ...]]) -> tuple[float, int]:
    """How well a family explains the names: found roles, spelled its way, less the body joints it does not know and the names it misses."""
    found: Counter[tuple[str, str, int]] = Counter()
    literal = ignored = foreign = 0
    for own, general in zip(claims, common, strict=True):
        if own is None:
            foreign += any(c.part for c in general)
        elif own.part:
            found[own.side, own.part, own.rank] += 1
            literal += own.literal
        else:
            ignored += 1
    explained = len(found)
    centre = sum(1 for side, _, _ in found if not side)
    missing = max(0.0, family.size - centre - (explained - centre) / 2)
    return explained + 0.25 * literal + 0.3 * ignored - 0.5 * foreign - 0.02 * missing, explained
