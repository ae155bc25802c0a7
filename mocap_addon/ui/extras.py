# SPDX-License-Identifier: GPL-3.0-or-later
"""What travels with the pose besides bones: the settings, and their form for the core."""

# pyright: reportInvalidTypeForm=false
from __future__ import annotations

from typing import Any

import bpy
from bpy.props import BoolProperty, EnumProperty, FloatProperty, StringProperty

from ..retarget.extras import Extras, MorphOptions, PropOptions, TimeCodeOptions, format_names, parse_names

NAMES = (
    *("use_time_code", "time_code_start", "time_code_rate", "use_morphs", "morph_unit", "morph_names"),
    *("use_props", "prop_names", "use_markers", "locations_auto", "locations", "use_scales"),
)
"""Names of the settings."""

_UNITS = {"AUTO": 0.0, "ONE": 1.0, "PERCENT": 100.0}


class ExtraSettings:
    """Time code, morphs, props and marks."""

    use_time_code: BoolProperty(
        name="Time Code",
        description="Keys hour, minute, second and frame of the recording's time code on the armature object",
        default=True,
        options={"SKIP_SAVE"},
    )
    time_code_start: StringProperty(
        name="First Frame",
        description="Time code of the first frame, HH:MM:SS:FF, or HH:MM:SS;FF for drop-frame. Empty: the recording's own",
        options={"SKIP_SAVE"},
    )
    time_code_rate: StringProperty(
        name="Its Rate",
        description="Frames a second of the time code, for example 29.97. Empty: the recording's own",
        options={"SKIP_SAVE"},
    )
    use_morphs: BoolProperty(
        name="Shape Keys",
        description="Curves of the recording move the shape keys of the same name, on every mesh of the character",
        default=True,
        options={"SKIP_SAVE"},
    )
    morph_unit: EnumProperty(
        name="Values",
        description="How strong a shape key is at which value of its curve",
        items=(
            ("AUTO", "Find Out", "0 to 100 where values are that high, else 0 to 1"),
            ("ONE", "0 to 1", "A curve's 1 is the shape key's 1"),
            ("PERCENT", "0 to 100", "A curve's 100 is the shape key's 1"),
        ),
        options={"SKIP_SAVE"},
    )
    morph_names: StringProperty(
        name="Names",
        description="Curves whose shape keys are called otherwise: jawOpen = Mouth Open, tongueOut = Tongue. With nothing after the sign "
        "a curve is left out",
        options={"SKIP_SAVE"},
    )
    use_props: BoolProperty(
        name="Props", description="Rigid bodies of the recording become objects beside the character", default=False, options={"SKIP_SAVE"}
    )
    prop_names: StringProperty(
        name="Objects",
        description="Objects of this scene that move as props do: sword = Excalibur. Other props become empties. With nothing after the "
        "sign a prop is left out",
        options={"SKIP_SAVE"},
    )
    use_markers: BoolProperty(
        name="Markers", description="What was marked in the recording becomes markers of the scene, each once", options={"SKIP_SAVE"}
    )
    locations_auto: BoolProperty(
        name="Moving bones by the legs",
        description="Bones that also move, besides the hips, do so by the length of the legs, as the way walked does",
        default=True,
        options={"SKIP_SAVE"},
    )
    locations: FloatProperty(
        name="Times",
        description="How far bones that also move do so, in the recording's measure. 1: as far as recorded",
        default=1.0,
        min=0.001,
        soft_max=10.0,
        options={"SKIP_SAVE"},
    )
    use_scales: BoolProperty(
        name="Scale",
        description="Bones that also move are scaled, too, where the take scales those that they follow",
        options={"SKIP_SAVE"},
    )


def extras(owner: Any) -> Extras:
    """The settings in the form of the core. :class:`MocapError` where names are not pairs."""
    return Extras(
        TimeCodeOptions(owner.use_time_code, owner.time_code_start.strip(), owner.time_code_rate.strip()),
        MorphOptions(owner.use_morphs, parse_names(owner.morph_names), _UNITS[owner.morph_unit]),
        PropOptions(owner.use_props, parse_names(owner.prop_names)),
        owner.use_markers,
        0.0 if owner.locations_auto else round(float(owner.locations), 6),
        owner.use_scales,
    )


def show(owner: Any, found: Extras) -> None:
    """The reverse: the core's settings onto the panel."""
    owner.use_time_code, owner.time_code_start, owner.time_code_rate = found.time_code.use, found.time_code.start, found.time_code.rate
    owner.use_morphs, owner.morph_names = found.morphs.use, format_names(found.morphs.names)
    owner.morph_unit = next((name for name, unit in _UNITS.items() if unit == found.morphs.unit), "AUTO")
    owner.use_props, owner.prop_names, owner.use_markers = found.props.use, format_names(found.props.names), found.markers
    owner.locations_auto, owner.use_scales = found.locations == 0.0, found.scales
    if found.locations:
        owner.locations = found.locations


def draw(layout: bpy.types.UILayout, owner: bpy.types.bpy_struct) -> None:
    """For the panel and the redo panel."""
    layout.prop(owner, "use_time_code")
    column = layout.column(align=True)
    column.active = owner.use_time_code
    column.prop(owner, "time_code_start", placeholder="as recorded")
    column.prop(owner, "time_code_rate", placeholder="as recorded")
    layout.prop(owner, "use_morphs")
    column = layout.column(align=True)
    column.active = owner.use_morphs
    column.prop(owner, "morph_unit")
    column.prop(owner, "morph_names", placeholder="jawOpen = Jaw")
    layout.prop(owner, "use_props")
    column = layout.column()
    column.active = owner.use_props
    column.prop(owner, "prop_names", placeholder="sword = Excalibur")
    layout.prop(owner, "use_markers")
    column = layout.column(heading="Moving Bones")
    column.prop(owner, "locations_auto", text="Fit to the Legs")
    if not owner.locations_auto:
        column.prop(owner, "locations")
    column.prop(owner, "use_scales")
