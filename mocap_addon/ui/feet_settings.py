# SPDX-License-Identifier: GPL-3.0-or-later
"""How feet are planted, as the window remembers it: what is ground and every constant on the scene, the soles' measures on the character.

The constants come from :class:`..feet.settings.FeetSettings`: one added there is shown here.
"""

# pyright: reportInvalidTypeForm=false
from __future__ import annotations

from dataclasses import fields
from typing import Any

import bpy
from bpy.props import BoolProperty, CollectionProperty, EnumProperty, FloatProperty, IntProperty, PointerProperty

from ..blender.feet_recipe import FeetOptions, GroundChoice
from ..feet.body import Sole
from ..feet.settings import FeetSettings
from ..rig.roles import SIDES
from . import feet_overlay

OVERRIDABLE = {"LIBRARY_OVERRIDABLE"}

MODES = (
    ("PLANT", "Plant", "Each contact is held at one place on the ground, knowing what comes; hips and knees stay smooth"),
    ("ALS", "ALS", "Offsets, rotations and locks as the Advanced Locomotion System of games works them out, frame by frame"),
    ("OFF", "Off", "Nothing is moved; the feet are measured only"),
)
GROUNDS = (
    ("SCENE", "All That Is Seen", "Every visible mesh that is no part of a character"),
    ("COLLECTION", "A Collection", "What lies in one collection and those inside it"),
    ("OBJECTS", "Objects", "The objects in a list"),
    ("PLANE", "A Height", "Level ground at one height"),
    ("FLOOR", "The Lowest Foot", "Level ground where the feet of the motion are lowest"),
)
KEEPS = (
    ("FAKE_USER", "As an Action", "The action from before is kept with the file, and can be chosen again"),
    ("TRACK", "On a Muted Track", "The action from before is kept as a strip on a muted NLA track"),
)

_UNITS = {"m": "m", "deg": "°", "s": "s", "m/s": "m/s", "Hz": "Hz", "1/s": "1/s"}
_GROUPS: dict[str, tuple[str, ...]] = {
    "contacts": ("enter_", "leave_", "low_pass", "majority", "shortest_"),
    "legs": ("reach", "source_reach", "soft_reach", "stretch", "ankle_"),
    "als": ("als_",),
    "ground": ("trace_", "slope_", "step_"),
}
SOLE_NAMES = ("heel_height", "ball_height", "heel_offset", "toe_length")


def names_of(group: str) -> tuple[str, ...]:
    """The constants of a sub-panel: ``contacts``, ``legs``, ``als``, ``ground``, or ``planting`` for all others."""
    return tuple(name for name in FeetSettings.describe() if _group(name) == group)


def _group(name: str) -> str:
    return next((group for group, starts in _GROUPS.items() if name.startswith(starts)), "planting")


def _number(name: str) -> FloatProperty:
    default, unit, text = FeetSettings.describe()[name]
    label = name.removeprefix("als_").replace("_", " ").title()
    share = unit == "0..1"
    return FloatProperty(
        name=f"{label} ({_UNITS[unit]})" if unit in _UNITS else label,
        description=text.removesuffix("."),
        default=default,
        min=1.0 if name == "als_rate" else 0.0,
        max=1.0 if share else 3.4e38,
        soft_max=1.0 if share else max(4.0 * default, 1.0),
        subtype="FACTOR" if share else "NONE",
        precision=3,
        step=1 if default < 1.0 else 10,
        options={"SKIP_SAVE"},
    )


class FeetNumbers:
    """Every constant; a mixin, so that operators can have them too."""

    __annotations__ = {name: _number(name) for name in FeetSettings.describe()}


def _show_changed(self: bpy.types.bpy_struct, context: bpy.types.Context) -> None:
    feet_overlay.sync()


class MocapGroundObject(bpy.types.PropertyGroup):
    """One object of the list."""

    object: PointerProperty(name="Object", type=bpy.types.Object)


class MocapFeet(bpy.types.PropertyGroup):
    """What the Feet panel is set to."""

    mode: EnumProperty(name="Mode", description="How the feet are put on the ground", items=MODES)
    ground: EnumProperty(name="Ground", description="What the feet stand on", items=GROUNDS)
    collection: PointerProperty(
        name="Collection", description="Its meshes, with those of the collections inside it, are the ground", type=bpy.types.Collection
    )
    objects: CollectionProperty(type=MocapGroundObject)
    active_object: IntProperty(name="Object", description="One of the objects that are the ground")
    height: FloatProperty(name="Height (m)", description="Of the ground, in the world", precision=3)
    use_range: BoolProperty(name="Only a Range", description="Before and after the range of frames the motion stays; the borders are eased")
    start: FloatProperty(name="First frame", description="Scene frame", default=1.0, precision=1)
    end: FloatProperty(name="Last frame", description="Scene frame", default=100.0, precision=1)
    keep: EnumProperty(name="Keep the Action", description="What holds the action from before", items=KEEPS)
    exact_slope: BoolProperty(
        name="Exact slopes",
        description="Turn feet by the smallest rotation onto the slope. Off: by two angles, as ALS does, right along two axes only",
        default=True,
    )
    hold_contacts: BoolProperty(name="Lock feet", description="Hold feet where they stand. Off: they only follow the ground", default=True)
    pin_hips: BoolProperty(name="Keep the hips", description="The legs alone do the work", default=False)
    show: BoolProperty(
        name="Show in the View",
        description="Draw contacts, footprints, what is under the soles, and where they sink into the ground",
        update=_show_changed,
    )
    show_paths: BoolProperty(name="Paths", description="The way of the balls of the feet over the whole motion", default=True)
    show_footprints: BoolProperty(name="Footprints", description="Where a foot stands in one place", default=True)
    show_depth: BoolProperty(name="Depth", description="Where soles are below the ground by more than 5 mm", default=True)


MocapFeet.__annotations__.update(FeetNumbers.__annotations__)


class MocapSole(bpy.types.PropertyGroup):
    """What one foot measures, metres."""

    use: BoolProperty(name="Own measures", description="Use these instead of what is measured on the skin", override=OVERRIDABLE)
    heel_height: FloatProperty(
        name="Heel Height (m)",
        description="From the ankle joint down to the sole",
        default=0.08,
        min=0.0,
        precision=4,
        override=OVERRIDABLE,
    )
    ball_height: FloatProperty(
        name="Ball Height (m)", description="From the ball joint down to the sole", default=0.02, min=0.0, precision=4, override=OVERRIDABLE
    )
    heel_offset: FloatProperty(
        name="Heel Back (m)",
        description="From the ankle joint back to where the heel touches the ground",
        default=0.05,
        min=0.0,
        precision=4,
        override=OVERRIDABLE,
    )
    toe_length: FloatProperty(
        name="Toe Length (m)",
        description="From the ball joint forward to the tip of the sole",
        default=0.06,
        min=0.0,
        precision=4,
        override=OVERRIDABLE,
    )


def soles_of(obj: bpy.types.Object) -> dict[str, Sole]:
    """Side -> what a person typed."""
    owners = {side: getattr(obj.mocap, f"sole_{side}") for side in SIDES}
    return {side: Sole(**{n: round(float(getattr(o, n)), 6) for n in SOLE_NAMES}) for side, o in owners.items() if o.use}


def show_soles(obj: bpy.types.Object, found: dict[str, Sole]) -> None:
    """Fill measures in."""
    for side, sole in found.items():
        owner = getattr(obj.mocap, f"sole_{side}")
        for name in SOLE_NAMES:
            value = getattr(sole, name)
            if value is not None:
                setattr(owner, name, value)


def ground_of(owner: Any) -> GroundChoice:
    """What is ground, in the form of the core."""
    if owner.ground == "COLLECTION":
        return GroundChoice("collection", (owner.collection.name,) if owner.collection is not None else ())
    if owner.ground == "OBJECTS":
        return GroundChoice("objects", tuple(one.object.name for one in owner.objects if one.object is not None))
    return GroundChoice(owner.ground.lower(), height=round(float(owner.height), 6))


def options(owner: Any, obj: bpy.types.Object) -> FeetOptions:
    """The settings in the form of the core."""
    numbers = {name: _exact(name, float(getattr(owner, name))) for name in FeetSettings.describe()}
    flags = {f.name: bool(getattr(owner, f.name)) for f in fields(FeetSettings) if f.name != "mode" and not f.metadata}
    return FeetOptions(
        FeetSettings(mode=owner.mode.lower(), **flags, **numbers),
        ground_of(owner),
        (float(owner.start), float(owner.end)) if owner.use_range else None,
        soles_of(obj),
        keep=owner.keep.lower(),
    )


def _exact(name: str, value: float) -> float:
    """A number as it was typed: Blender stores single precision."""
    default = FeetSettings.describe()[name][0]
    return default if abs(value - default) <= 1e-6 * max(abs(default), 1e-3) else round(value, 6)


def fill(owner: Any, found: FeetOptions) -> None:
    """The reverse of :func:`options`, for an action that was baked so."""
    owner.mode, owner.keep = found.settings.mode.upper(), found.keep.upper()
    for name in FeetSettings.describe():
        setattr(owner, name, getattr(found.settings, name))
    for flag in ("exact_slope", "hold_contacts", "pin_hips"):
        setattr(owner, flag, getattr(found.settings, flag))
    owner.ground, owner.height = found.ground.kind.upper(), found.ground.height
    if found.ground.kind == "collection" and found.ground.names:
        owner.collection = bpy.data.collections.get(found.ground.names[0])
    if found.ground.kind == "objects":
        owner.objects.clear()
        for name in found.ground.names:
            if name in bpy.data.objects:
                owner.objects.add().object = bpy.data.objects[name]
    owner.use_range = found.frame_range is not None
    if found.frame_range is not None:
        owner.start, owner.end = found.frame_range
