# SPDX-License-Identifier: GPL-3.0-or-later
"""Every constant of foot planting, with its unit; those of ALS have ALS's values in metres."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Literal

from ..motion.errors import MocapError

Mode = Literal["plant", "als", "off"]


def _of(default: float, unit: str, text: str) -> float:
    return field(default=default, metadata={"unit": unit, "doc": text})


@dataclass(frozen=True)
class FeetSettings:
    """How feet are put on the ground. ``FeetSettings.describe()`` gives name, default, unit and meaning of every number."""

    mode: Mode = "plant"
    exact_slope: bool = True
    """ALS mode: turn feet by the smallest rotation onto the slope; off: by ALS's own pair of atan2."""
    hold_contacts: bool = True
    """ALS mode: lock feet in contacts (off: follow the ground only)."""
    pin_hips: bool = False
    """Keep the pelvis where it is; legs alone do the work."""

    # traces
    trace_up: float = _of(0.50, "m", "How far above the foot's level a surface is looked for.")
    trace_down: float = _of(0.45, "m", "How far below the foot's level a surface is looked for.")
    slope_limit: float = _of(44.765, "deg", "Steeper surfaces are walls.")
    step_limit: float = _of(0.15, "m", "A sole rests on the highest surface under it; lower ones by more than this are beyond an edge.")

    # contacts
    enter_height: float = _of(0.04, "m", "A contact begins below this height over the ground; for legs of 0.9 m, scaled with the leg.")
    leave_height: float = _of(0.06, "m", "A contact ends above this height; scaled with the leg.")
    enter_speed: float = _of(0.15, "m/s", "A contact begins below this speed; scaled with the leg.")
    leave_speed: float = _of(0.30, "m/s", "A contact ends above this speed; scaled with the leg.")
    low_pass: float = _of(8.0, "Hz", "Speeds are taken of positions smoothed at this frequency, without delay.")
    majority: float = _of(0.10, "s", "Window of the majority filter over contacts.")
    shortest_contact: float = _of(0.10, "s", "Shorter contacts are dropped.")
    shortest_gap: float = _of(0.08, "s", "Shorter gaps between contacts are closed.")

    # planting
    ease_in: float = _of(0.16, "s", "How long before a landing the foot begins to head for its place.")
    ease_out: float = _of(0.20, "s", "How long after a lift-off the foot is back on its own path.")
    clearance: float = _of(0.01, "m", "A swinging sole stays this far above the ground where the source did not touch it.")
    replant_yaw: float = _of(40.0, "deg", "A planted foot that the body has turned away from by more than this is planted anew.")
    replant_distance: float = _of(0.20, "m", "A planted foot that its source has moved away from by more than this is planted anew.")
    toe_in_wall: float = _of(0.10, "m", "How far a place is moved at most that has toes in a riser or wall, or the ball beyond an edge.")
    pelvis_window: float = _of(0.35, "s", "Smoothing of the pelvis' path, to either side.")
    pelvis_limit: float = _of(0.60, "m", "The pelvis goes no farther down than this from where the ground alone would have it.")
    compression: float = _of(0.45, "1", "A leg is not bent to less than this part of its length.")

    # legs
    reach: float = _of(0.999, "1", "A leg is not stretched beyond this part of its length, unless the source is.")
    source_reach: float = _of(0.95, "1", "Up to this part of its length a leg may straighten even if the source is bent more.")
    soft_reach: float = _of(0.02, "1", "Over this part of its length a leg approaches its limit softly.")
    stretch: float = _of(0.0, "0..1", "How much of what is out of reach is made up by longer bones.")
    stretch_limit: float = _of(1.03, "1", "Longest leg, of its length, with stretch.")
    ankle_pitch: float = _of(60.0, "deg", "A slope tips the foot no farther than this.")

    # ranges
    border: float = _of(0.50, "s", "How long a baked range takes to ease into what is around it.")

    # ALS
    als_rate: float = _of(60.0, "Hz", "Steps of ALS mode, whatever the rate of the take.")
    als_foot_height: float = _of(0.135, "m", "From the ground to the foot joint; 0: each foot's own.")
    als_rising: float = _of(15.0, "1/s", "Interpolation speed of a foot's offset going up.")
    als_falling: float = _of(30.0, "1/s", "Interpolation speed of a foot's offset going down.")
    als_rotation: float = _of(30.0, "1/s", "Interpolation speed of a foot's rotation.")
    als_pelvis_rising: float = _of(10.0, "1/s", "Interpolation speed of the pelvis going up.")
    als_pelvis_falling: float = _of(15.0, "1/s", "Interpolation speed of the pelvis going down.")
    als_reset: float = _of(15.0, "1/s", "Interpolation speed of offsets going back to nothing in the air.")

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.metadata and not (isinstance(value, int | float) and value == value and 0.0 <= value < float("inf")):
                raise MocapError(f'The foot setting "{f.name}" is {value}; a number of at least 0 is needed.')
        if self.mode not in ("plant", "als", "off"):
            raise MocapError(f'The foot mode "{self.mode}" is unknown; choose "plant", "als" or "off".')
        if self.als_rate < 1.0:
            raise MocapError('The foot setting "als_rate" is below 1; ALS mode needs at least one step a second.')

    @classmethod
    def describe(cls) -> Mapping[str, tuple[float, str, str]]:
        """Name -> (default, unit, meaning) of every number."""
        return {f.name: (float(f.default), f.metadata["unit"], f.metadata["doc"]) for f in fields(cls) if f.metadata}  # type: ignore[arg-type]
