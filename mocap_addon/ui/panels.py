# SPDX-License-Identifier: GPL-3.0-or-later
"""The "Mocap" tab of the 3D view's sidebar. Drawing reads only what is in memory: no file, no evaluation."""

from __future__ import annotations

import math

import bpy

from ..retarget.neutral import SURE
from ..rig.roles import REQUIRED_ROLES
from . import characters, extras, operators_update, outdated, preview, table_sync, takes, words
from .operators_retarget import draw_job, draw_mask, draw_reading, draw_reference, draw_root
from .operators_root import MOCAP_OT_root_motion

MOST_NOTES = 5


class _Tab:
    bl_space_type = "VIEW_3D"
    bl_region_type = "UI"
    bl_category = "Mocap"


def paragraph(layout: bpy.types.UILayout, context: bpy.types.Context, text: str, icon: str) -> None:
    """A sentence over as many lines as the sidebar's width asks for."""
    column = layout.column(align=True)
    column.scale_y = 0.8
    for i, line in enumerate(words.wrapped(text, _letters(context, 0.93))):
        column.label(text=line, icon=icon if i == 0 else "BLANK1", translate=False)


def fact(layout: bpy.types.UILayout, context: bpy.types.Context, label: str, value: str) -> None:
    """``label   value``; a long value takes several lines."""
    for i, line in enumerate(words.wrapped(value, _letters(context, 0.66))):
        split = layout.split(factor=0.3, align=True)
        name = split.row()
        name.alignment = "RIGHT"
        name.active = False
        name.label(text=label if i == 0 else "")
        split.label(text=line, translate=False)


def _letters(context: bpy.types.Context, share: float) -> int:
    """How many letters fit into ``share`` of the sidebar's width."""
    width = context.region.width / context.preferences.system.ui_scale
    return int((width - 50.0) * share / 6.3)


class MOCAP_PT_take(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_take"
    bl_label = "Take"
    bl_order = 0

    def draw(self, context: bpy.types.Context) -> None:
        layout, settings = self.layout, context.scene.mocap
        layout.row(align=True).prop(settings, "source", expand=True)
        if settings.source == "RIG":
            _draw_rig(layout, settings)
        else:
            row = layout.row(align=True)
            row.prop(settings, "filepath", text="", icon="ARMATURE_DATA", placeholder="Choose a recording")
            row.operator("mocap.open_take", text="", icon="FILE_FOLDER").filepath = ""
            row.menu("MOCAP_MT_recent", text="", icon="TIME")
        if not takes.chosen(context.scene):
            rig = settings.source == "RIG"
            sentence = "Pick the armature whose motion is wanted." if rig else "Choose a recording, or drop the file into the 3D view."
            paragraph(layout, context, sentence, "INFO")
            return
        reading = takes.peek(context.scene)
        if reading is None:
            layout.operator("mocap.read_take", icon="FILE_REFRESH").filepath = ""
            return
        if reading.error:
            paragraph(layout, context, reading.error, "ERROR")
            layout.operator("mocap.read_take", text="Read Again", icon="FILE_REFRESH").filepath = ""
            return
        column = layout.column(align=True)
        column.scale_y = 0.85
        for label, value in reading.facts:
            fact(column, context, label, value)
        for note in reading.notes[:MOST_NOTES]:
            paragraph(layout, context, note, "INFO")


def _draw_rig(layout: bpy.types.UILayout, settings: bpy.types.PropertyGroup) -> None:
    column = layout.column(align=True)
    column.prop(settings, "source_rig", text="", icon="OUTLINER_OB_ARMATURE")
    if settings.source_rig is not None:
        row = column.row(align=True)
        row.active = not settings.source_every
        row.prop(settings, "source_take", text="", icon="ACTION", placeholder="What it plays now")
        column.prop(settings, "source_every", toggle=True)


class MOCAP_PT_take_overrides(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_take_overrides"
    bl_parent_id = "MOCAP_PT_take"
    bl_label = "If This Is Wrong"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return context.scene.mocap.source == "FILE" and bool(context.scene.mocap.filepath)

    def draw(self, context: bpy.types.Context) -> None:
        self.layout.use_property_split = True
        self.layout.use_property_decorate = False
        draw_reading(self.layout, context.scene.mocap)


class MOCAP_PT_character(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_character"
    bl_label = "Character"
    bl_order = 1

    def draw(self, context: bpy.types.Context) -> None:
        layout, settings = self.layout, context.scene.mocap
        obj = characters.of(context)
        row = layout.row(align=True)
        row.prop(settings, "target", text="", icon="OUTLINER_OB_ARMATURE")
        row.operator("mocap.open_character", text="", icon="FILE_FOLDER").filepath = ""
        if settings.target is None:
            row.operator("mocap.use_armature", text="", icon="UNPINNED")
        if obj is None:
            paragraph(layout, context, "Select the character's armature, or pick it here.", "INFO")
            return
        reason = characters.problem(obj)
        if reason:
            paragraph(layout, context, reason, "ERROR")
            return
        if settings.target is not None and not settings.target.users_scene:
            paragraph(layout, context, f'"{obj.name}" was deleted from the scene; pick another armature.', "ERROR")
            return
        known = characters.known(obj)
        column = layout.column(align=True)
        column.scale_y = 0.85
        if settings.target is None:
            fact(column, context, "Selected", obj.name)
        fact(column, context, "Skeleton", known.roles.family or "unknown")
        missing = known.roles.missing(REQUIRED_ROLES)
        if known.error:
            paragraph(layout, context, known.error, "ERROR")
        elif missing:
            names = words.listed([words.role_words(role) for role in missing])
            paragraph(layout, context, f"Not found on this character: {names}.", "ERROR")
        for note in known.roles.notes[:MOST_NOTES]:
            paragraph(layout, context, note, "INFO")


class MOCAP_PT_bones(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_bones"
    bl_label = "Bones"
    bl_order = 2

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        obj = characters.of(context)
        row = layout.row(align=True)
        row.operator("mocap.match_bones", icon="FILE_REFRESH")
        row.menu("MOCAP_MT_table_presets", text="", icon="PRESET")
        row.operator_menu_enum("mocap.mirror_corrections", "which", text="", icon="MOD_MIRROR")
        row.operator("mocap.reset_corrections", text="", icon="LOOP_BACK").which = "ALL"
        if obj is None or not table_sync.has_table(obj):
            paragraph(layout, context, "Not matched yet. Retarget does it by itself; Match shows the result first.", "INFO")
            return
        row = layout.row(align=True)
        row.prop(context.scene.mocap, "row_filter", text="")
        row.operator("mocap.pick_bone", text="", icon="EYEDROPPER").what = "ROW"
        layout.template_list("MOCAP_UL_bones", "", obj.mocap, "rows", obj.mocap, "active_row", rows=8)
        layout.operator("mocap.preview", icon="HIDE_OFF", depress=preview.shown_on(obj))
        if preview.problem(obj):
            paragraph(layout, context, preview.problem(obj), "ERROR")
        if not table_sync.suits_take(obj, takes.joint_names(context.scene)):
            paragraph(layout, context, "Matched to another take. Match again, or press Retarget, which does it.", "INFO")
        facts = table_sync.about(obj)
        for note in list(facts.get("notes", ()))[:MOST_NOTES]:
            paragraph(layout, context, str(note), "INFO")


class MOCAP_PT_bone(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_bone"
    bl_parent_id = "MOCAP_PT_bones"
    bl_label = "Bone"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        obj = characters.of(context)
        return obj is not None and table_sync.active_row(obj) is not None

    def draw(self, context: bpy.types.Context) -> None:
        layout, row = self.layout, table_sync.active_row(characters.of(context))
        layout.use_property_split = True
        layout.use_property_decorate = False
        column = layout.column(align=True)
        column.scale_y = 0.85
        fact(column, context, "Body Part", words.capital(words.part_words(row.role, row.rule)) or "none")
        follows = layout.row(align=True)
        follows.prop(row, "source", icon="BONE_DATA")
        follows.operator("mocap.pick_bone", text="", icon="EYEDROPPER").what = "SOURCE"
        if row.rule != "copy":
            fact(layout, context, "", _mixed(row))
        if row.rule == "twist":
            layout.prop(row, "blend", text="Share of the Roll")
        if not row.sources:
            return
        turn = layout.column(align=True)
        for i, label in enumerate(("Correction X", "Y", "Z")):
            turn.prop(row, "correction", index=i, text=label)
        layout.prop(row, "movable")
        column = layout.column(align=True)
        column.scale_y = 0.85
        fact(column, context, "Match", words.confidence_words(row.confidence))
        if row.residual >= 0.0:
            fact(column, context, "Points", words.residual_words(row.residual))
        if row.hinge > words.FAIR_DEGREES:
            fact(column, context, "Bends", f"{row.hinge:.0f}° off the take")
        rest = math.degrees(math.hypot(*row.alignment))
        if rest > words.GOOD_DEGREES:
            fact(column, context, "Rest Pose", f"{rest:.0f}° from the take's")
        if table_sync.corrected(row):
            layout.operator("mocap.reset_corrections", icon="LOOP_BACK").which = "ONE"


def _mixed(row: bpy.types.PropertyGroup) -> str:
    names = table_sync.sources_of(row)
    if row.rule == "twist":
        return "shares the roll of the limb" if row.blend > 0.0 else "off: keeps its pose"
    if row.rule == "chord":
        return f"the chain {names[0]} to {names[-1]}"
    return f"{1.0 - row.blend:.0%} {names[0]}, {row.blend:.0%} {names[-1]}"


class MOCAP_PT_reference_pose(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_reference_pose"
    bl_parent_id = "MOCAP_PT_bones"
    bl_label = "Reference Pose"
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return characters.of(context) is not None and takes.chosen(context.scene)

    def draw(self, context: bpy.types.Context) -> None:
        layout, obj = self.layout, characters.of(context)
        if obj.mocap.posing == preview.REFERENCE:
            paragraph(layout, context, "Turn the bones in Pose Mode until the character stands as the performer does at rest.", "INFO")
            row = layout.row(align=True)
            row.scale_y = 1.3
            row.operator("mocap.apply_reference_pose", icon="CHECKMARK")
            row.operator("mocap.cancel_reference_pose", icon="X")
            return
        _draw_compared(layout, context)
        layout.operator("mocap.edit_reference_pose", text="Edit Pose", icon="POSE_HLT")
        column = layout.column(align=True)
        column.label(text="The Present Pose Is Right")
        row = column.row(align=True)
        row.operator("mocap.use_pose", text="For Rest Pose").which = "REST"
        row.operator("mocap.use_pose", text="For This Frame").which = "FRAME"
        if context.scene.mocap.source == "RIG":
            column.operator("mocap.use_pose", text="For Both as They Stand").which = "BOTH"


def _draw_compared(layout: bpy.types.UILayout, context: bpy.types.Context) -> None:
    """In which pose take and character are compared; where that was found, how sure it is."""
    settings, reading = context.scene.mocap, takes.peek(context.scene)
    column = layout.column()
    column.use_property_split = True
    column.use_property_decorate = False
    draw_reference(column, settings, pick=True)
    if settings.reference != "AUTO" or reading is None or not reading.reference.words:
        return
    found = reading.reference
    sure = f" ({found.sure:.0%} sure)" if found.sure < 0.995 else ""
    column = layout.column(align=True)
    column.scale_y = 0.85
    fact(column, context, "Found", found.words + sure)
    if found.doubtful:
        which = words.listed(found.doubtful)
        paragraph(layout, context, f"Doubtful: {which}. Choose a frame in which the performer stands straight, or edit the pose.", "ERROR")
    elif found.sure < SURE:
        paragraph(layout, context, "Doubtful. Choose a frame in which the performer stands straight, or edit the pose.", "ERROR")


class MOCAP_PT_retarget(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_retarget"
    bl_label = "Retarget"
    bl_order = 4

    def draw(self, context: bpy.types.Context) -> None:
        layout, settings = self.layout, context.scene.mocap
        layout.use_property_split = True
        layout.use_property_decorate = False
        obj = characters.of(context)
        draw_job(layout, settings, driven=obj is not None and characters.driven(obj))
        row = layout.row()
        row.scale_y = 1.6
        row.operator("mocap.retarget", icon="PLAY")
        if obj is not None:
            _draw_update(layout, context, obj)


def _draw_update(layout: bpy.types.UILayout, context: bpy.types.Context, obj: bpy.types.Object) -> None:
    """Update buttons, and what has changed since the actions were made."""
    states, own = outdated.of(obj), operators_update.assigned(obj)
    if not states:
        return
    row = layout.row(align=True)
    if own is not None:
        row.operator("mocap.update", text="Update", icon="FILE_REFRESH").which = "ONE"
    if len(states) > 1 or own is None:
        row.operator("mocap.update", text=f"Update All ({len(states)})", icon="NONE" if own else "FILE_REFRESH").which = "ALL"
    if own is not None:
        row.operator("mocap.hand_edits", text="", icon="POSE_HLT")
    for name, reasons in [*states.items()][:MOST_NOTES]:
        if reasons:
            paragraph(layout, context, f"{name}: changed since it was made: {words.listed(reasons)}.", "ERROR")


class MOCAP_PT_body(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_body"
    bl_label = "Body"
    bl_order = 3
    bl_options = {"DEFAULT_CLOSED"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        obj = characters.of(context)
        return obj is not None and not characters.problem(obj)

    def draw(self, context: bpy.types.Context) -> None:
        layout, obj = self.layout, characters.of(context)
        layout.use_property_split = True
        layout.use_property_decorate = False
        column = layout.column(align=True)
        for name in ("arm_space", "leg_spread", "foot_yaw", "hip_height"):
            column.prop(obj.mocap, name)
        column = layout.column(align=True)
        for name in ("shoulder_share", "head_level", "relaxed_fingers"):
            column.prop(obj.mocap, name, slider=True)
        row = layout.row(align=True)
        row.operator("mocap.preview", icon="HIDE_OFF", depress=preview.shown_on(obj))
        row.operator("mocap.reset_body", text="", icon="LOOP_BACK")


class MOCAP_PT_root(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_root"
    bl_parent_id = "MOCAP_PT_retarget"
    bl_label = "Root Motion"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        self.layout.use_property_split = True
        self.layout.use_property_decorate = False
        draw_root(self.layout, context.scene.mocap)
        if MOCAP_OT_root_motion.poll(context):
            column = self.layout.column(align=True)
            column.label(text="Present Action")
            column.operator("mocap.root_motion", text="Divide as Above").what = "SETTINGS"
            column.operator("mocap.root_motion", text="Back into the Hips").what = "HIPS"


class MOCAP_PT_extras(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_extras"
    bl_parent_id = "MOCAP_PT_retarget"
    bl_label = "Curves & Props"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        self.layout.use_property_split = True
        self.layout.use_property_decorate = False
        extras.draw(self.layout, context.scene.mocap)


class MOCAP_PT_mask(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_mask"
    bl_parent_id = "MOCAP_PT_retarget"
    bl_label = "Only a Part"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        self.layout.use_property_split = True
        self.layout.use_property_decorate = False
        draw_mask(self.layout, context.scene.mocap)
