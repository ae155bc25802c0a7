# SPDX-License-Identifier: GPL-3.0-or-later
"""What the window is set to -> the options of the core. The same names stand on the scene's group and on the operators."""

from __future__ import annotations

from typing import Any

from ..blender import scenes
from ..blender.job import JobOptions
from ..formats import ReadOptions
from ..motion import timeline
from ..retarget.neutral import Chosen
from . import body, extras, root

SHARED = (
    *("rate", "up", "unit", "unit_length"),
    *body.MASK_NAMES,
    *root.NAMES,
    *extras.NAMES,
    *("controls", "reference", "reference_frame", "rate_mode", "custom_rate", "use_frame_start", "frame_start", "travel_auto", "travel"),
)
"""Settings that the panel hands to an operator."""

_UNITS: dict[str, float] = {"MM": 0.001, "CM": 0.01, "M": 1.0, "INCH": 0.0254}


def read_options(owner: Any) -> ReadOptions:
    """Overrides for reading a file. :class:`MocapError` when the rate is not one."""
    text: str = owner.rate.strip()
    return ReadOptions(
        rate=timeline.parse_rate(text) if text else None,
        up=None if owner.up == "AUTO" else owner.up,
        unit=unit(owner),
    )


def unit(owner: Any) -> float | None:
    """Metres per unit of the file, or None to find out."""
    choice: str = owner.unit
    if choice == "OTHER":
        return round(float(owner.unit_length) * 0.01, 9)
    return _UNITS.get(choice)


def reference(owner: Any) -> Chosen:
    """In which pose take and character are compared."""
    if owner.reference == "FRAME":
        return int(owner.reference_frame)
    return "rest" if owner.reference == "REST" else None


def job_options(owner: Any) -> JobOptions:
    """Settings of a retarget. :class:`MocapError` when the rate is not one."""
    mode: str = owner.rate_mode
    rate = timeline.parse_rate(owner.custom_rate) if mode == "CUSTOM" else mode.lower()
    return JobOptions(
        rate=rate,
        frame_start=owner.frame_start if owner.use_frame_start else None,
        reference_frame=reference(owner),
        travel=None if owner.travel_auto else round(float(owner.travel), 6),
        mask=body.mask(owner),
        root=root.motion(owner),
        controls=owner.controls.lower(),
        extras=extras.extras(owner),
    )


def show(owner: Any, options: JobOptions) -> None:
    """The reverse: settings of a file onto the panel. Where a take starts in the scene stays as it is."""
    owner.rate_mode = options.rate.upper() if isinstance(options.rate, str) else "CUSTOM"
    if not isinstance(options.rate, str):
        owner.custom_rate = str(options.rate)
    owner.reference = {None: "AUTO", "rest": "REST"}.get(options.reference_frame, "FRAME")
    if isinstance(options.reference_frame, int):
        owner.reference_frame = options.reference_frame
    owner.travel_auto = options.travel is None
    if options.travel is not None:
        owner.travel = options.travel
    body.show_mask(owner, options.mask)
    root.show(owner, options.root)
    owner.controls = options.controls.upper()
    extras.show(owner, options.extras)


def copy_unset(source: Any, operator: Any) -> None:
    """Settings of the panel into an operator, except those that the caller gave."""
    for name in SHARED:
        if not operator.properties.is_property_set(name):
            setattr(operator, name, getattr(source, name))


def seconds_at(scene: Any, frame: float | None = None) -> float:
    """How long after the take's start a scene frame (None: the current one) is, by the settings of the panel."""
    owner = scene.mocap
    start = owner.frame_start if owner.use_frame_start else scene.frame_start
    return ((scene.frame_current_final if frame is None else frame) - start) / float(scenes.scene_rate(scene))
