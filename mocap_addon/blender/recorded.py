# SPDX-License-Identifier: GPL-3.0-or-later
"""The correction table that is kept with a recording: by which its performer was shown while it was made."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from .. import rig
from ..motion.errors import MocapError
from ..motion.take import Take
from ..rig.table import CorrectionTable

_ENOUGH = 0.8


def table_of(take: Take, bones: Collection[str]) -> CorrectionTable | None:
    """The table kept with a take, cut down to a character's bones.

    Parameters
    ----------
    take : Take
    bones : collection of str
        Names of the character's bones.

    Returns
    -------
    CorrectionTable or None
        None where there is none, or where it is of another character (:func:`notes`): no hips, or fewer than four in five of its bones.
    """
    text = take.facts.get("table")
    if not isinstance(text, str) or not text:
        return None
    try:
        table = rig.loads(text)
    except MocapError:
        return None
    rows = tuple(row for row in table.rows if row.target in bones and all(name in take.skeleton for name in row.source))
    if not any(row.role == "hips" for row in rows) or len(rows) < _ENOUGH * len(table.rows):
        return None
    followed = {row.target for row in rows}
    return replace(table, rows=rows, unmapped_target=tuple(name for name in bones if name not in followed))


def notes(take: Take, table: CorrectionTable | None) -> tuple[str, ...]:
    """What a person should know of it: which table was used, or that the one that is kept was not."""
    if not take.facts.get("table"):
        return ()
    if table is None:
        return ("The bone table kept with the recording is of another character; the bones were matched by themselves.",)
    return ("The bone table kept with the recording was used.",)
