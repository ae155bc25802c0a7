# SPDX-License-Identifier: GPL-3.0-or-later
"""Retarget: the take onto the character, as an action. One undo step; nothing else changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress

import bpy
from bpy.props import BoolProperty, CollectionProperty, StringProperty

from ..blender import batch
from ..motion.errors import MocapError
from ..motion.steps import Steps
from . import characters, extras, run, settings, takes, waiting
from .operators_take import steps_for, take_for
from .properties import JobSettings, ReadSettings
from .reading import Reading

MOST_NOTES = 4


class _Retargeting(ReadSettings, JobSettings):
    """What both operators share: the settings, and how they are shown in the redo panel."""

    target: StringProperty(
        name="Character",
        description="Name of the armature that gets the motion. Empty: the character in use",
        options={"SKIP_SAVE"},
    )

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.prop_search(self, "target", bpy.data, "objects", icon="OUTLINER_OB_ARMATURE")
        obj = bpy.data.objects.get(self.target)
        draw_job(layout, self, driven=obj is not None and characters.driven(obj))
        for name, label, draw in _SECTIONS:
            head, body = layout.panel(f"mocap_redo_{name}", default_closed=True)
            head.label(text=label)
            if body is not None:
                draw(body, self)

    def from_panel(self, context: bpy.types.Context) -> None:
        settings.copy_unset(context.scene.mocap, self)
        obj = characters.of(context)
        if not self.target and obj is not None:
            self.target = obj.name

    def report_outcome(self, obj: bpy.types.Object, outcome: run.Outcome) -> None:
        for note in outcome.notes[:MOST_NOTES]:
            self.report({"WARNING"}, note)
        self.report({"INFO"}, outcome.sentence(obj.name))


def draw_job(layout: bpy.types.UILayout, owner: bpy.types.bpy_struct, *, driven: bool) -> None:
    """Controls (of a character whose bones are ``driven``), rate, start and travel; for the panel and the redo panel."""
    if driven:
        layout.prop(owner, "controls")
    layout.prop(owner, "rate_mode")
    if owner.rate_mode == "CUSTOM":
        layout.prop(owner, "custom_rate", text="Per Second")
    row = layout.row(heading="Start At", align=True)
    row.prop(owner, "use_frame_start", text="")
    part = row.row(align=True)
    part.active = owner.use_frame_start
    part.prop(owner, "frame_start", text="")
    row = layout.row(heading="Travel")
    row.prop(owner, "travel_auto", text="Fit to the Legs")
    if not owner.travel_auto:
        layout.prop(owner, "travel", text="Times")


def draw_mask(layout: bpy.types.UILayout, owner: bpy.types.bpy_struct) -> None:
    """Parts of the body and range of frames; for the panel and the redo panel."""
    column = layout.column(align=True)
    column.use_property_split = False
    for pair in (("HEAD", "TORSO"), ("LEFT_ARM", "RIGHT_ARM"), ("HIPS", "FINGERS"), ("LEFT_LEG", "RIGHT_LEG")):
        row = column.row(align=True)
        for part in pair:
            row.prop_enum(owner, "mask_parts", part)
    layout.prop(owner, "use_mask_range", text="Range of Frames")
    if owner.use_mask_range:
        column = layout.column(align=True)
        column.prop(owner, "mask_start", text="First")
        column.prop(owner, "mask_end", text="Last")
        column.prop(owner, "mask_ease", text="Soft Borders")


def draw_reading(layout: bpy.types.UILayout, owner: bpy.types.bpy_struct) -> None:
    """How the file is to be understood; for the panel and the redo panel."""
    layout.prop(owner, "rate", placeholder="as the file says")
    layout.prop(owner, "up")
    layout.prop(owner, "unit")
    if owner.unit == "OTHER":
        layout.prop(owner, "unit_length")


def draw_reference(layout: bpy.types.UILayout, owner: bpy.types.bpy_struct, *, pick: bool = False) -> None:
    """In which pose take and character are compared; for the panel, where the present frame can be picked, and the redo panel."""
    row = layout.row(align=True)
    row.prop(owner, "reference")
    if pick:
        row.operator("mocap.use_frame", text="", icon="TIME")
    if owner.reference == "FRAME":
        layout.prop(owner, "reference_frame", text="Frame")


def draw_root(layout: bpy.types.UILayout, owner: bpy.types.bpy_struct) -> None:
    """Who carries the character over the ground; for the panel and the redo panel."""
    layout.prop(owner, "root_destination")
    if owner.root_destination != "HIPS":
        layout.prop(owner, "root_source")
        row = layout.row(heading="Axes", align=True)
        row.prop(owner, "root_axes", expand=True)
        layout.prop(owner, "root_heading")
        layout.prop(owner, "root_smoothing")
    layout.prop(owner, "root_height")
    layout.prop(owner, "root_origin")


_SECTIONS = (
    ("root", "Root Motion", draw_root),
    ("extras", "Curves & Props", extras.draw),
    ("mask", "Only a Part", draw_mask),
    ("reference", "Reference Pose", draw_reference),
    ("reading", "Reading the File", draw_reading),
)
"""What the redo panel shows folded, as the tab does."""


class MOCAP_OT_retarget(_Retargeting, waiting.Waits, bpy.types.Operator):
    """Put the take onto the character, as a new action. The character's own animation, pose and settings stay as they are"""

    bl_idname = "mocap.retarget"
    bl_label = "Retarget"
    bl_options = {"REGISTER", "UNDO"}

    filepath: StringProperty(
        name="File",
        description="The motion capture file. Empty: the one in the Mocap tab",
        subtype="FILE_PATH",
        options={"HIDDEN", "SKIP_SAVE"},
    )

    source_rig: StringProperty(
        name="Rig",
        description="Name of an armature in the scene whose motion is wanted, instead of a file",
        options={"HIDDEN", "SKIP_SAVE"},
    )
    source_action: StringProperty(
        name="Action", description="Which of the rig's actions. Empty: what the rig plays now", options={"HIDDEN", "SKIP_SAVE"}
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return context.scene is not None

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        self.from_panel(context)
        steps = steps_for(context, self.filepath, self, self.source_rig, self.source_action)
        label = os.path.basename(self.filepath) or self.source_rig or takes.label(context.scene)
        return self.wait(context, steps, label, lambda reading: self._put(context, lambda: reading))

    def execute(self, context: bpy.types.Context) -> set[str]:
        return self._put(context, lambda: take_for(context, self.filepath, self, self.source_rig, self.source_action))

    def _put(self, context: bpy.types.Context, read: Callable[[], Reading]) -> set[str]:
        try:
            obj = characters.named(context, self.target)
            options = settings.job_options(self)
            reading = read()
            if any(take.facts.get("object") == obj.name for take in reading.takes):
                raise MocapError(f'"{obj.name}" cannot be its own source; pick another rig, or another character.')
            with run.progress(context, len(reading.takes), run.work_of(reading.takes)) as step:
                outcome = run.onto(obj, reading.takes, options, step)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        self.report_outcome(obj, outcome)
        return {"FINISHED"}


class MOCAP_OT_import_take(_Retargeting, waiting.Waits, bpy.types.Operator):
    """Put one or several motion capture files onto the character, each as an action of its own"""

    bl_idname = "mocap.import_take"
    bl_label = "Use as Mocap Take"  # what Blender asks where a file is dropped
    bl_options = {"REGISTER", "UNDO"}

    directory: StringProperty(subtype="DIR_PATH", options={"HIDDEN", "SKIP_SAVE"})
    files: CollectionProperty(type=bpy.types.OperatorFileListElement, options={"HIDDEN", "SKIP_SAVE"})
    dropped: BoolProperty(options={"HIDDEN", "SKIP_SAVE"})
    filter_glob: StringProperty(default=takes.FILE_FILTER, options={"HIDDEN"})

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return context.scene is not None

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if self.files:  # dropped into the window
            self.from_panel(context)
            self.dropped = True
            if characters.of(context) is None:
                return self._only_choose(context)
            first = os.path.basename(self._paths()[0])
            more = f" and {len(self._paths()) - 1} more" if len(self._paths()) > 1 else ""
            return self.wait(context, self._read_ahead(), first + more, lambda _: self.execute(context))
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def _paths(self) -> list[str]:
        return [os.path.join(self.directory, file.name) for file in self.files if file.name]

    def _read_ahead(self) -> Steps[None]:
        """All files into memory; what is wrong with one is said when it is its turn."""
        with suppress(MocapError):
            options = settings.read_options(self)
            for path in self._paths():
                with suppress(MocapError):
                    yield from takes.read_steps(path, options)

    def _only_choose(self, context: bpy.types.Context) -> set[str]:
        """There is no character yet: the file is shown in the panel."""
        context.scene.mocap.source = "FILE"
        context.scene.mocap.filepath = self._paths()[0]
        self.report({"INFO"}, "The take is chosen in the Mocap tab; select a character, then press Retarget there.")
        return {"FINISHED"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        paths = self._paths()
        if not paths:
            self.report({"ERROR"}, "No file is chosen; choose one or several motion capture files.")
            return {"CANCELLED"}
        try:
            obj = characters.named(context, self.target)
            job, reading = settings.job_options(self), settings.read_options(self)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        done: list[run.Outcome] = []
        errors: list[str] = []
        with batch.all_or_none(obj), run.progress(context, len(paths), run.LONG_WORK if len(paths) > 1 else 0) as step:
            for path in paths:
                try:
                    done.append(run.onto(obj, takes.read(path, reading).takes, job))
                except MocapError as error:
                    errors.append(str(error))
                if step is not None:
                    step()
        if not done:
            self.report({"ERROR"}, "\n".join(errors))
            return {"CANCELLED"}
        if self.dropped and not errors:  # what was found in it is seen in the tab, and the bones can be worked on
            context.scene.mocap.source, context.scene.mocap.filepath = "FILE", paths[0]
        for error in errors:  # a warning: an error would undo the good ones in a script's eyes
            self.report({"WARNING"}, error)
        actions = tuple(name for outcome in done for name in outcome.actions)
        notes = tuple(dict.fromkeys(note for outcome in done for note in outcome.notes))
        self.report_outcome(obj, run.Outcome(actions, done[-1].bones, notes))
        return {"FINISHED"}
