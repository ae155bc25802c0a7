# SPDX-License-Identifier: GPL-3.0-or-later
"""What came of reading a take."""

from __future__ import annotations

from dataclasses import dataclass

from ..motion.take import Take
from ..rig.roles import RoleMap


@dataclass(frozen=True)
class Reference:
    """The pose that a take's rotations are counted from, where none is chosen: in words, how sure that is (0..1), the parts of the body
    that are doubtful, and what else a person should know."""

    words: str = ""
    sure: float = 1.0
    doubtful: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Reading:
    """What came of reading a file: takes, or the sentence that says why not.

    Parameters
    ----------
    path : str
        Absolute.
    takes : tuple of Take
    roles : tuple of RoleMap
        One a take.
    facts : tuple of (str, str)
        What the panel shows: label and value.
    reference : Reference
        The pose that the first take's rotations are counted from.
    error : str
        One plain sentence; empty when the file was read.
    """

    path: str
    takes: tuple[Take, ...] = ()
    roles: tuple[RoleMap, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    reference: Reference = Reference()
    error: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes of reader and matcher over all takes, each sentence once."""
        found = [note for take in self.takes for note in take.notes] + [note for roles in self.roles for note in roles.notes]
        return tuple(dict.fromkeys(found))

    @property
    def nbytes(self) -> int:
        """Memory held by the motion."""
        return sum(take.local_rotations.nbytes + take.local_translations.nbytes for take in self.takes)
