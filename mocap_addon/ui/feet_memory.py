# SPDX-License-Identifier: GPL-3.0-or-later
"""The last bakes and checks of this session, for the overlay and the report; what outlives it is in the action's recipe."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

import bpy

from ..blender.feet import FeetBake
from ..blender.feet_recipe import feet_of

_KEPT = 8
_bakes: OrderedDict[int, FeetBake] = OrderedDict()


def keep(bake: FeetBake) -> None:
    """Remember a bake, or a check, with its action."""
    uid = bake.action.session_uid
    _bakes.pop(uid, None)
    _bakes[uid] = bake
    if len(_bakes) > _KEPT:
        _bakes.popitem(last=False)


def of(action: bpy.types.Action | None) -> FeetBake | None:
    """What is remembered of an action."""
    return None if action is None else _bakes.get(action.session_uid)


def report_of(action: bpy.types.Action | None) -> Mapping[str, object] | None:
    """The report of an action: of this session, else as it was stored."""
    found = of(action)
    if found is not None:
        return found.report
    stored = feet_of(action)
    report = (stored or {}).get("report")
    return report if isinstance(report, Mapping) else None


def forget_all() -> None:
    """Let go of everything."""
    _bakes.clear()
