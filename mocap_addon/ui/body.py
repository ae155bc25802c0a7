# SPDX-License-Identifier: GPL-3.0-or-later
"""Body sliders of a character, and where a take goes on it: parts of the body, a range of frames."""

# pyright: reportInvalidTypeForm=false
from __future__ import annotations

import math
from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty

from ..retarget.adjust import LIMITS, Adjustments
from ..retarget.mask import NO_MASK, PARTS, Mask

OVERRIDABLE = {"LIBRARY_OVERRIDABLE"}

SLIDERS = tuple(LIMITS)
"""Names of the sliders, as in :class:`Adjustments`."""

_DEGREES = ("arm_space", "leg_spread", "foot_yaw")

PART_ITEMS = tuple(
    (part.upper().replace(" ", "_"), part.title(), f"The {part} {'follow' if part == 'fingers' else 'follows'} the take", 1 << i)
    for i, part in enumerate(("hips", "torso", "head", "left arm", "right arm", "left leg", "right leg", "fingers"))
)
ALL_PARTS = {item[0] for item in PART_ITEMS}


def _slider_changed(self: bpy.types.bpy_struct, context: bpy.types.Context) -> None:
    from . import preview

    if self.id_data is not None:
        preview.refresh(context.scene, self.id_data)


def _angle(name: str, description: str) -> FloatProperty:
    return FloatProperty(
        name=name,
        description=description,
        subtype="ANGLE",
        min=math.radians(LIMITS[name.lower().replace(" ", "_")][0]),
        max=math.radians(LIMITS[name.lower().replace(" ", "_")][1]),
        soft_min=math.radians(-30.0),
        soft_max=math.radians(30.0),
        update=_slider_changed,
        override=OVERRIDABLE,
    )


def _share(name: str, description: str) -> FloatProperty:
    return FloatProperty(
        name=name, description=description, subtype="FACTOR", min=0.0, max=1.0, update=_slider_changed, override=OVERRIDABLE
    )


class BodySliders:
    """Small changes of the whole body, made by eye."""

    arm_space: _angle("Arm Space", "Moves both arms away from the body, or closer to it. The hands follow")
    leg_spread: _angle("Leg Spread", "Moves both legs apart, or closer together. The soles keep their tilt")
    foot_yaw: _angle("Foot Yaw", "Turns both feet outwards, or inwards")
    hip_height: FloatProperty(
        name="Hip Height",
        description="Raises or lowers the hips, and the whole body with them",
        subtype="DISTANCE",
        soft_min=-0.3,
        soft_max=0.3,
        step=1,
        precision=3,
        update=_slider_changed,
        override=OVERRIDABLE,
    )
    shoulder_share: _share(
        "Shoulder Share", "How much the shoulders take part when an arm is raised above level. The arms keep their direction"
    )
    head_level: _share("Head Level", "Keeps the head upright, whatever the neck does")
    relaxed_fingers: _share("Relaxed Fingers", "Curls fingers that the take does not move, as in a hand that hangs at ease")


def adjustments(obj: bpy.types.Object, scene: bpy.types.Scene) -> Adjustments:
    """The character's sliders in the units of the core."""
    owner = obj.mocap
    values: dict[str, float] = {}
    for name in SLIDERS:
        value = float(getattr(owner, name))
        if name in _DEGREES:
            value = round(math.degrees(value), 4)
        elif name == "hip_height":
            least, greatest = LIMITS[name]
            value = min(max(round(value * float(scene.unit_settings.scale_length), 6), least), greatest)
        values[name] = value + 0.0
    return Adjustments(**values)


def show(obj: bpy.types.Object, found: Adjustments, scene: bpy.types.Scene) -> None:
    """The reverse: the core's sliders onto the character."""
    for name in SLIDERS:
        value = float(getattr(found, name))
        if name in _DEGREES:
            value = math.radians(value)
        elif name == "hip_height":
            value /= float(scene.unit_settings.scale_length)
        setattr(obj.mocap, name, value)


def reset(obj: bpy.types.Object) -> None:
    """Every slider back to its start."""
    for name in SLIDERS:
        obj.mocap.property_unset(name)


def moved(obj: bpy.types.Object) -> bool:
    """Whether any slider is away from its start."""
    return any(getattr(obj.mocap, name) for name in SLIDERS)


def _mask_changed(self: bpy.types.bpy_struct, context: bpy.types.Context) -> None:
    if isinstance(self, bpy.types.PropertyGroup):
        from . import run

        run.settings_changed(self.id_data)


class MaskSettings:
    """Where on the character, and when, the take goes."""

    mask_parts: EnumProperty(
        name="Body Parts",
        description="Parts of the body that get the take. The others keep the motion, or the pose, that they have",
        items=PART_ITEMS,
        default=ALL_PARTS,
        update=_mask_changed,
        options={"ENUM_FLAG", "SKIP_SAVE"},
    )
    use_mask_range: BoolProperty(
        name="Only a range of frames",
        description="The take goes to a range of frames only. Before and after it the character keeps the motion that it has",
        update=_mask_changed,
        options={"SKIP_SAVE"},
    )
    mask_start: FloatProperty(
        name="First frame",
        description="First scene frame of the range",
        default=1.0,
        precision=1,
        update=_mask_changed,
        options={"SKIP_SAVE"},
    )
    mask_end: FloatProperty(
        name="Last frame",
        description="Last scene frame of the range",
        default=100.0,
        precision=1,
        update=_mask_changed,
        options={"SKIP_SAVE"},
    )
    mask_ease: FloatProperty(
        name="Soft borders",
        description="Frames over which the old motion blends into the take, at both ends of the range",
        default=8.0,
        min=0.0,
        soft_max=50.0,
        precision=1,
        update=_mask_changed,
        options={"SKIP_SAVE"},
    )


MASK_NAMES = ("mask_parts", "use_mask_range", "mask_start", "mask_end", "mask_ease")


def mask(owner: Any) -> Mask:
    """The mask in the form of the core. :class:`MocapError` when nothing is left of it."""
    parts = frozenset(part for part in PARTS if part.upper().replace(" ", "_") in owner.mask_parts)
    if not owner.use_mask_range:
        return NO_MASK if parts == frozenset(PARTS) else Mask(parts)
    return Mask(parts, owner.mask_start, owner.mask_end, owner.mask_ease)


def show_mask(owner: Any, found: Mask) -> None:
    """The reverse: a mask onto the panel."""
    owner.mask_parts = {part.upper().replace(" ", "_") for part in found.parts}
    owner.use_mask_range = found.start is not None or found.end is not None
    if owner.use_mask_range:
        owner.mask_start = owner.mask_start if found.start is None else found.start
        owner.mask_end = owner.mask_end if found.end is None else found.end
        owner.mask_ease = found.ease
