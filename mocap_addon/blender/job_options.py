# SPDX-License-Identifier: GPL-3.0-or-later
"""How a take becomes an action: the settings, and how they are kept with the action so that it can be made again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from fractions import Fraction
from typing import Any, Literal

import bpy

from .. import __version__, rig
from ..motion.take import Take
from ..retarget import Adjustments, Mask
from ..retarget.adjust import NO_ADJUSTMENTS
from ..retarget.extras import AS_BY_DEFAULT, Extras
from ..retarget.mask import NO_MASK
from ..retarget.neutral import Chosen
from ..retarget.root_motion import AS_RECORDED, RootMotion
from ..rig.table import CorrectionTable
from .control_rig import Controls


@dataclass(frozen=True)
class JobOptions:
    """How a take becomes an action.

    Parameters
    ----------
    rate : Fraction, "scene" or "source"
        Samples a second: "scene" puts one key on each whole frame of the scene; "source" keeps the take's samples where they are in time.
    frame_start : float or None
        Scene frame of the first sample; None: the scene's first frame.
    reference_frame : int, "rest" or None
        Sample of the take to use as the source's reference pose; "rest": its rest pose; None: its rest pose where that is a body, else what
        is found in the take (:mod:`..retarget.neutral`).
    travel : float or None
        Scale of the hips' travel; None: the ratio of leg lengths.
    name : str or None
        The action's name; None: the take's.
    adjustments : Adjustments
        Body sliders.
    mask : Mask
        Parts of the body and range of frames that the motion goes to. Elsewhere the character keeps the motion, or the pose, that it has:
        the new action holds both.
    root : RootMotion
        Who carries the character over the ground.
    controls : "auto", "deform", "fk", "ik_legs" or "ik"
        Which bones get the keys where the character's bones are driven by controls (:data:`.control_rig.CONTROLS`).
    extras : Extras
        Time code, morphs, props and marks.
    """

    rate: Fraction | Literal["scene", "source"] = "scene"
    frame_start: float | None = None
    reference_frame: Chosen = None
    travel: float | None = None
    name: str | None = None
    adjustments: Adjustments = NO_ADJUSTMENTS
    mask: Mask = NO_MASK
    root: RootMotion = AS_RECORDED
    controls: Controls = "auto"
    extras: Extras = AS_BY_DEFAULT


def recipe_for(obj: bpy.types.Object, take: Take, table: CorrectionTable, options: JobOptions) -> dict[str, object]:
    """What it takes to run the job again, for :func:`.recipes.store_recipe`."""
    return {
        "version": 1,
        "addon": __version__,
        "character": obj.name,
        "take": take.name,
        "source": take.facts.get("path", ""),
        "source_hash": take.facts.get("hash", ""),
        "read": take.facts.get("read", {}),
        "rig": _rig(take),
        "options": options_data(options),
        "table": rig.dumps(table),
    }


def options_data(options: JobOptions) -> dict[str, object]:
    """The settings as plain data; :func:`options_of` reads them."""
    rate = options.rate if isinstance(options.rate, str) else f"{options.rate.numerator}/{options.rate.denominator}"
    return {
        "rate": rate,
        "frame_start": options.frame_start,
        "reference_frame": options.reference_frame,
        "travel": options.travel,
        "controls": options.controls,
        "extras": options.extras.as_dict(),
        "adjustments": asdict(options.adjustments),
        "root": options.root.as_dict(),
        "mask": {**asdict(options.mask), "parts": sorted(options.mask.parts)},
    }


def _rig(take: Take) -> dict[str, object] | None:
    """Of a take that was read from a rig in the scene: what to read again."""
    if take.facts.get("format") != "rig":
        return None
    return {name: take.facts.get(name) for name in ("object", "action", "slot", "frame_start", "frame_end", "asked")}


def options_of(recipe: Mapping[str, object]) -> JobOptions:
    """The settings that a recipe holds; what it does not know is as by default."""
    stored = recipe.get("options")
    known = {f.name for f in fields(JobOptions)}
    found: dict[str, Any] = {k: v for k, v in stored.items() if k in known} if isinstance(stored, Mapping) else {}
    rate = found.get("rate", "scene")
    if rate not in ("scene", "source"):
        found["rate"] = Fraction(rate)
    if "adjustments" in found:
        found["adjustments"] = Adjustments(**found["adjustments"])
    if "extras" in found:
        found["extras"] = Extras.from_dict(found["extras"])
    if "root" in found:
        found["root"] = RootMotion.from_dict(found["root"])
    if "mask" in found:
        found["mask"] = Mask(**{**found["mask"], "parts": frozenset(found["mask"]["parts"])})
    return JobOptions(**found)
