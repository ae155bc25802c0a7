# SPDX-License-Identifier: GPL-3.0-or-later
"""What the window remembers: one group on the scene (take, character, settings), one on the armature object (the bone table).

Only storage and tooltips live here; :mod:`.table_sync` turns the rows into a ``CorrectionTable`` and back, :mod:`.settings` the rest
into the options of the core.
"""

# pyright: reportInvalidTypeForm=false
from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import bpy
from bpy.props import (
    BoolProperty,
    CollectionProperty,
    EnumProperty,
    FloatProperty,
    FloatVectorProperty,
    IntProperty,
    PointerProperty,
    StringProperty,
)

from ..blender.control_rig import CONTROLS
from . import rig_takes, takes, waiting
from .body import BodySliders, MaskSettings
from .export_settings import MocapExport
from .extras import ExtraSettings
from .feet_settings import MocapFeet, MocapSole
from .live_properties import MocapLive
from .root import RootSettings

OVERRIDABLE = {"LIBRARY_OVERRIDABLE"}
"""Lets a person edit the rows of an overridden character. (The groups themselves are not marked: Blender 5 cannot load such overrides.)"""
UNKNOWN = -1.0
"""Stands for "not a number" in the stored residuals: Blender's sliders cannot show NaN."""

RATE_MODES = (
    ("SCENE", "Scene", "Keys fall on the scene's whole frames. The motion keeps its speed"),
    ("SOURCE", "As Recorded", "Every recorded sample becomes a key, also between the scene's frames"),
    ("CUSTOM", "Other", "Keys at a rate of your own"),
)
UP_AXES = (
    ("AUTO", "Find Out", "Found from the motion itself"),
    ("Y", "Y", "The file's Y axis points up"),
    ("Z", "Z", "The file's Z axis points up"),
    ("X", "X", "The file's X axis points up"),
)
UNITS = (
    ("AUTO", "Find Out", "Found from the size of the body"),
    ("MM", "Millimetres", "One unit of the file is a millimetre"),
    ("CM", "Centimetres", "One unit of the file is a centimetre"),
    ("M", "Metres", "One unit of the file is a metre"),
    ("INCH", "Inches", "One unit of the file is an inch"),
    ("OTHER", "Other", "Say yourself how long one unit of the file is"),
)
SOURCES = (
    ("FILE", "File", "A motion capture file"),
    ("RIG", "Rig", "Another armature in the scene and its actions"),
)
FILTERS = (
    ("MATCHED", "Matched", "Only bones that follow the take"),
    ("ALL", "All", "Every bone of the character"),
    ("UNMATCHED", "Unmatched", "Only bones that follow nothing yet"),
    ("DOUBTFUL", "Doubtful", "Only bones whose match or direction is worth a look"),
    ("EDITED", "Corrected", "Only bones with a correction of yours"),
)
REFERENCES = (
    ("AUTO", "Find Out", "The take's rest pose; where that is no standing body, a pose found in the recording"),
    ("REST", "Rest Pose", "The take's rest pose, whatever it looks like"),
    ("FRAME", "A Frame", "A frame of the recording. Choose one in which the performer stands as straight as the character does at rest"),
)
RULES = (
    ("copy", "Follow One Bone", "Turns as this one bone of the take does"),
    ("blend", "Follow Two Bones", "Turns as a mix of two neighbouring bones of the take does"),
    ("chord", "Follow a Chain", "Aims along a whole chain of bones of the take"),
    (
        "twist",
        "Share the Roll",
        "Turns about the limb by a share of what hand, foot or the limb itself turn, so that the skin does not wring",
    ),
)
KEYS_ON = tuple((identifier.upper(), label, sentence) for identifier, label, sentence in CONTROLS)
POSING = (
    ("NONE", "Nothing", "The bones have their own pose"),
    ("PREVIEW", "Preview", "The take at the current frame"),
    ("REFERENCE", "Reference Pose", "The pose that the take's rest pose is to give"),
)

_quiet = 0


@contextmanager
def quiet() -> Iterator[None]:
    """Rows are filled by the program inside: nothing is measured anew for each value."""
    global _quiet
    _quiet += 1
    try:
        yield
    finally:
        _quiet -= 1


def _row_changed(self: MocapRow, context: bpy.types.Context) -> None:
    """A person changed a row: measure how the bones point now, and show it."""
    if not _quiet and self.id_data is not None:
        from . import run

        run.table_changed(context.scene, self.id_data)


class MocapRow(bpy.types.PropertyGroup):
    """One bone of the character and what it follows. ``name`` is the bone."""

    def _source_get(self) -> str:
        sources = json.loads(self.sources or "[]")
        return sources[0] if sources else ""

    def _source_set(self, value: str) -> None:
        value = value.strip()
        if value == self._source_get() and self.rule == "copy":
            return
        self.sources = json.dumps([value]) if value else ""
        with quiet():
            self.rule, self.blend, self.confidence, self.by_hand = "copy", 0.0, 1.0, True
        self.residual = self.hinge = UNKNOWN
        _row_changed(self, bpy.context)

    def _source_search(self, context: bpy.types.Context, text: str) -> list[str]:
        return takes.joint_names(context.scene, text)

    role: StringProperty(name="Body Part", override=OVERRIDABLE)
    sources: StringProperty(override=OVERRIDABLE, description="The followed bones, as a JSON list")
    source: StringProperty(
        name="Follows",
        description="The bone of the take that this bone follows. Empty: it keeps the pose it has",
        get=_source_get,
        set=_source_set,
        search=_source_search,
        override=OVERRIDABLE,
    )
    rule: EnumProperty(name="How", items=RULES, default="copy", override=OVERRIDABLE)
    blend: FloatProperty(
        name="Share",
        description="How much of the second bone goes into the mix. Of a twist bone: how much of the limb's roll it shares; "
        "at 0 it gets no keys",
        min=0.0,
        max=1.0,
        subtype="FACTOR",
        update=_row_changed,
        override=OVERRIDABLE,
    )
    correction: FloatVectorProperty(
        name="Correction",
        description="Turns this bone away from where the take puts it. The axes are the character's own as it stands straight: "
        "X points to its left, Y to its back, Z up",
        size=3,
        subtype="EULER",
        unit="ROTATION",
        update=_row_changed,
        override=OVERRIDABLE,
    )
    movable: BoolProperty(
        name="Also Moves",
        description="The bone's place follows the take too, not only its direction. As a rule only the hips",
        update=_row_changed,
        override=OVERRIDABLE,
    )
    alignment: FloatVectorProperty(size=3, override=OVERRIDABLE)
    residual: FloatProperty(default=UNKNOWN, override=OVERRIDABLE)
    hinge: FloatProperty(default=UNKNOWN, override=OVERRIDABLE)
    confidence: FloatProperty(default=1.0, min=0.0, max=1.0, override=OVERRIDABLE)
    by_hand: BoolProperty(description="The followed bone was chosen by a person", override=OVERRIDABLE)


class MocapObject(BodySliders, bpy.types.PropertyGroup):
    """The bone table and the body sliders of an armature object."""

    rows: CollectionProperty(type=MocapRow, override={"LIBRARY_OVERRIDABLE", "USE_INSERTION"})
    active_row: IntProperty(name="Bone", description="Click a bone to see its details below", override=OVERRIDABLE)
    about: StringProperty(override=OVERRIDABLE, description="Families, notes and version of the table, as JSON")
    posing: EnumProperty(items=POSING, override=OVERRIDABLE, description="What is shown on the bones in place of their own pose")
    kept_pose: StringProperty(override=OVERRIDABLE, description="The pose to put back, as JSON")
    sole_left: PointerProperty(type=MocapSole)
    sole_right: PointerProperty(type=MocapSole)
    kept_place: BoolProperty(override=OVERRIDABLE, description="The object's place is to be put back too")
    live: BoolProperty(override=OVERRIDABLE, description="Live motion moves the object, and its own animation is put aside")
    live_kept: StringProperty(override=OVERRIDABLE, description="Pose and place to put back, as JSON")
    live_action: PointerProperty(type=bpy.types.Action, override=OVERRIDABLE, description="The action to put back")
    live_slot: StringProperty(override=OVERRIDABLE, description="The slot to put back")
    live_nla: BoolProperty(override=OVERRIDABLE, description="Whether the NLA is to play again")


def _reading_changed(self: bpy.types.bpy_struct, context: bpy.types.Context) -> None:
    """Read the take anew; the operators, which share these settings, read when they run."""
    if isinstance(self, bpy.types.PropertyGroup):
        _read_soon(context, self.id_data)
        _job_changed(self, context)


def _read_soon(context: bpy.types.Context, scene: bpy.types.Scene) -> None:
    """Read what the panel is set to: at once where that is quick, else with the window alive, where there is one."""
    if bpy.app.background or context.window is None:
        takes.read_for_panel(scene)
        return
    steps = takes.panel_steps(scene)
    try:
        waiting.advance(steps, waiting.PATIENCE)
    except waiting.Finished:
        return
    steps.close()
    bpy.ops.mocap.read_take("INVOKE_DEFAULT")


def _job_changed(self: bpy.types.bpy_struct, context: bpy.types.Context) -> None:
    """Show what the setting does, where a preview is shown."""
    if isinstance(self, bpy.types.PropertyGroup):
        from . import run

        run.settings_changed(self.id_data)


class ReadSettings:
    """How a file is to be understood."""

    rate: StringProperty(
        name="Frame Rate",
        description="Frames per second of the recording, for example 120 or 29.97. Empty: as the file says",
        update=_reading_changed,
        options={"SKIP_SAVE"},
    )
    up: EnumProperty(
        name="Up", description="Which axis of the file points up", items=UP_AXES, update=_reading_changed, options={"SKIP_SAVE"}
    )
    unit: EnumProperty(
        name="Unit", description="How long one unit of the file is", items=UNITS, update=_reading_changed, options={"SKIP_SAVE"}
    )
    unit_length: FloatProperty(
        name="Centimetres",
        description="Length of one unit of the file in centimetres",
        default=1.0,
        min=1e-4,
        soft_max=1000.0,
        precision=4,
        update=_reading_changed,
        options={"SKIP_SAVE"},
    )


class JobSettings(MaskSettings, RootSettings, ExtraSettings):
    """How a take is put onto the character."""

    controls: EnumProperty(
        name="Keys On",
        description="Which bones get the keys where controls or constraints drive the character's bones",
        items=KEYS_ON,
        update=_job_changed,
        options={"SKIP_SAVE"},
    )
    reference: EnumProperty(
        name="Compare In",
        description="The pose in which take and character are held against each other: both stand alike then",
        items=REFERENCES,
        update=_job_changed,
        options={"SKIP_SAVE"},
    )
    reference_frame: IntProperty(
        name="Recorded frame", description="Number of the recorded frame, counted from 0", min=0, update=_job_changed, options={"SKIP_SAVE"}
    )
    rate_mode: EnumProperty(name="Key Rate", description="How often keys are set", items=RATE_MODES, options={"SKIP_SAVE"})
    custom_rate: StringProperty(
        name="Keys per second", description="Keys per second, for example 25 or 29.97", default="30", options={"SKIP_SAVE"}
    )
    use_frame_start: BoolProperty(
        name="Start at",
        description="Start at a frame of your own instead of the scene's first frame",
        update=_job_changed,
        options={"SKIP_SAVE"},
    )
    frame_start: FloatProperty(
        name="Start frame", description="Scene frame of the first key", default=1.0, precision=1, update=_job_changed, options={"SKIP_SAVE"}
    )
    travel_auto: BoolProperty(
        name="Fit travel to the legs",
        description="The distance walked is scaled by the length of the character's legs, so that the feet do not slide",
        default=True,
        update=_job_changed,
        options={"SKIP_SAVE"},
    )
    travel: FloatProperty(
        name="Travel",
        description="The distance walked, times this. 1 keeps the performer's own",
        default=1.0,
        min=0.0,
        soft_max=3.0,
        update=_job_changed,
        options={"SKIP_SAVE"},
    )


class MocapScene(ReadSettings, JobSettings, bpy.types.PropertyGroup):
    """What the Mocap tab is set to."""

    def _is_armature(self, obj: bpy.types.Object) -> bool:
        return obj.type == "ARMATURE"

    def _is_other_armature(self, obj: bpy.types.Object) -> bool:
        return obj.type == "ARMATURE" and obj != self.target

    def _source_take_search(self, context: bpy.types.Context, text: str) -> list[str]:
        wanted = text.casefold()
        return [label for label in rig_takes.labels(self.source_rig) if wanted in label.casefold()]

    live: PointerProperty(type=MocapLive, description="Live motion: sources, performers, recording, sending")
    source: EnumProperty(name="From", description="Where the motion comes from", items=SOURCES, update=_reading_changed)
    filepath: StringProperty(name="File", description="The motion capture file to put on the character", update=_reading_changed)
    source_rig: PointerProperty(
        name="Rig",
        description="The armature whose motion goes onto the character",
        type=bpy.types.Object,
        poll=_is_other_armature,
        update=_reading_changed,
    )
    source_take: StringProperty(
        name="Action",
        description="Which of the rig's actions. Empty: what the rig plays now, with its NLA strips and constraints",
        search=_source_take_search,
        update=_reading_changed,
    )
    source_every: BoolProperty(
        name="All Actions",
        description="Every action that moves the rig's bones, each onto the character as an action of its own",
        update=_reading_changed,
    )
    target: PointerProperty(
        name="Character",
        description="The armature that gets the motion. Empty: the selected armature",
        type=bpy.types.Object,
        poll=_is_armature,
    )
    feet: PointerProperty(name="Feet", description="How feet are put on the ground", type=MocapFeet)
    export: PointerProperty(name="Export", description="What the Export panel is set to", type=MocapExport)
    row_filter: EnumProperty(name="Show", description="Which bones the list shows", items=FILTERS)
