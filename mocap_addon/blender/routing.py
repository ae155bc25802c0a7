# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the hips' travel goes on rigs whose hips bone cannot take it.

Blender ignores the location of a bone that is connected to its parent, and a bone whose location is locked was made not to be moved. The
travel then goes to the nearest bone above the hips that is free of both and has no row in the table. Where there is none it goes to the
object itself, so that the character still walks.
"""

from __future__ import annotations

from collections.abc import Collection

from ..retarget.travel import WHOLE
from ..rig.table import CorrectionTable
from .armature import Target


def carrier_of(target: Target, table: CorrectionTable) -> tuple[int | None, str]:
    """What takes the hips' travel, and a sentence about it.

    Returns
    -------
    int or None
        A bone of the target; :data:`~mocap_addon.retarget.travel.WHOLE` for the object; None for the hips themselves.
    str
        Empty for the hips themselves.
    """
    row = next((row for row in table.rows if row.role == "hips" and row.movable), None)
    if row is None or row.target not in target.skeleton:
        return None, ""
    return carrier_above(target, target.skeleton.index(row.target), {row.target for row in table.rows})


def carrier_above(target: Target, hips: int, mapped: Collection[str]) -> tuple[int | None, str]:
    """The same for a hips bone; ``mapped`` are the names of bones that have other things to do."""
    reason = _held(target, hips)
    if not reason:
        return None, ""
    above = (joint for joint in target.skeleton.ancestors(hips) if not _held(target, joint) and target.skeleton.names[joint] not in mapped)
    carrier = next(above, WHOLE)
    taker = "the object itself is" if carrier == WHOLE else f'the bone "{target.skeleton.names[carrier]}" above it is'
    return carrier, f'The bone "{target.skeleton.names[hips]}" {reason}, so {taker} moved instead.'


def _held(target: Target, joint: int) -> str:
    """Why a bone cannot be moved; empty when it can."""
    if target.connected[joint]:
        parent = "its parent" if target.skeleton.parents[joint] >= 0 else "a parent it no longer has"
        return f"is connected to {parent}, and Blender ignores its location"
    return "has a locked location" if target.locked_location[joint].all() else ""
