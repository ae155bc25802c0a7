# SPDX-License-Identifier: GPL-3.0-or-later
"""The "Feet" panel of the Mocap tab."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import bpy

from ..blender import feet_gates
from ..blender.feet_recipe import feet_of
from ..rig.roles import SIDES
from . import characters, feet_memory, feet_report, feet_settings
from .operators_feet import playing
from .panels import _Tab, fact, paragraph


class MOCAP_UL_ground(bpy.types.UIList):
    """Objects that are the ground."""

    bl_idname = "MOCAP_UL_ground"

    def draw_item(self, context, layout, data, item, icon, active_data, active_property, index=0, flt_flag=0):
        layout.label(text=item.object.name if item.object is not None else "deleted", icon="OBJECT_DATA", translate=False)


class MOCAP_PT_feet(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_feet"
    bl_label = "Feet"
    bl_order = 5
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout, settings = self.layout, context.scene.mocap.feet
        layout.row(align=True).prop(settings, "mode", expand=True)
        layout.use_property_split = True
        layout.use_property_decorate = False
        layout.prop(settings, "ground")
        if settings.ground == "COLLECTION":
            layout.prop(settings, "collection", text="")
        elif settings.ground == "OBJECTS":
            _draw_objects(layout, settings)
        elif settings.ground == "PLANE":
            layout.prop(settings, "height")
        layout.prop(settings, "use_range")
        if settings.use_range:
            column = layout.column(align=True)
            column.prop(settings, "start")
            column.prop(settings, "end")
        action = playing(context)
        planted = feet_of(action)
        if action is None:
            paragraph(layout, context, "Choose a character that plays an action.", "INFO")
        row = layout.row(align=True)
        row.scale_y = 1.6
        if settings.mode == "OFF":
            row.operator("mocap.check_feet", icon="DRIVER_DISTANCE")
        else:
            row.operator("mocap.bake_feet", icon="CON_FOLLOWPATH").how = "SETTINGS"
        if planted is not None:
            row = layout.row(align=True)
            row.operator("mocap.bake_feet", text="Bake Again", icon="FILE_REFRESH").how = "AGAIN"
            row.operator("mocap.feet_as_baked", text="", icon="EYEDROPPER")
            fact(layout, context, "Made From", str(planted.get("source")))
        column = layout.column(align=True)
        column.use_property_split = False
        row = column.row(align=True)
        row.prop(settings, "show", toggle=True, icon="HIDE_OFF" if settings.show else "HIDE_ON")
        if settings.mode != "OFF":
            row.operator("mocap.check_feet", text="", icon="DRIVER_DISTANCE")
        if settings.show:
            row = column.row(align=True)
            for name in ("show_footprints", "show_paths", "show_depth"):
                row.prop(settings, name, toggle=True)


def _draw_objects(layout: bpy.types.UILayout, settings: bpy.types.PropertyGroup) -> None:
    row = layout.row()
    row.template_list("MOCAP_UL_ground", "", settings, "objects", settings, "active_object", rows=3)
    column = row.column(align=True)
    column.operator("mocap.ground_objects", text="", icon="ADD").what = "ADD"
    column.operator("mocap.ground_objects", text="", icon="REMOVE").what = "REMOVE"
    column.operator("mocap.ground_objects", text="", icon="X").what = "CLEAR"


class _Sub(_Tab):
    bl_parent_id = "MOCAP_PT_feet"
    bl_options = {"DEFAULT_CLOSED"}


class MOCAP_PT_feet_report(_Sub, bpy.types.Panel):
    bl_idname = "MOCAP_PT_feet_report"
    bl_label = "Report"
    bl_options = set()

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return bool(feet_memory.report_of(playing(context)))

    def draw(self, context: bpy.types.Context) -> None:
        report = feet_memory.report_of(playing(context)) or {}
        for head, rows in (("", feet_report.rows(report)), ("Slid in Contact", feet_report.contact_rows(report))):
            if rows:
                _table(self.layout, (head, "Before", "After"), rows)
        for sentence in feet_report.sentences(report):
            paragraph(self.layout, context, sentence, "INFO")


def _table(layout: bpy.types.UILayout, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    grid = layout.column(align=True)
    grid.scale_y = 0.85
    for words in (head, *rows):
        split = grid.split(factor=0.47, align=True)
        split.label(text=words[0], translate=False)
        for word in words[1:]:
            cell = split.row()
            cell.alignment = "RIGHT"
            cell.active = words is not head
            cell.label(text=word, translate=False)


class MOCAP_PT_feet_contacts(_Sub, bpy.types.Panel):
    bl_idname = "MOCAP_PT_feet_contacts"
    bl_label = "Contacts"

    def draw(self, context: bpy.types.Context) -> None:
        layout, obj = self.layout, characters.of(context)
        planted = feet_of(playing(context))
        if obj is None or planted is None:
            paragraph(layout, context, "Bake the feet first; then contacts can be changed here or in the graph editor.", "INFO")
        else:
            for side in SIDES:
                _draw_side(layout, context, obj, side, planted)
        _numbers(layout, context, "contacts")


def _draw_side(
    layout: bpy.types.UILayout, context: bpy.types.Context, obj: bpy.types.Object, side: str, planted: Mapping[str, Any]
) -> None:
    box = layout.box().column(align=True)
    curve = feet_gates.lock_curve(obj, side)
    frame = context.scene.frame_current_final
    on = curve is not None and curve.evaluate(frame) >= 0.5
    name = feet_gates.FOOT_LOCK[side == "right"]
    keys = [] if curve is None else [[float(p.co[0]), float(p.co[1])] for p in curve.keyframe_points]
    edited = curve is not None and keys != [list(key) for key in (planted.get("locks") or {}).get(name, [])]
    row = box.row()
    row.label(text=f"{side.title()}: {'planted' if on else 'free'}", icon="PINNED" if on else "UNPINNED")
    if edited:
        row.label(text="changed")
    button = row.operator("mocap.foot_contact", text="", icon="LOOP_BACK")
    button.side, button.what = side.upper(), "FOUND"
    for line in ((("ON", "Plant"), ("OFF", "Free")), (("START", "Start Here"), ("END", "End Here"))):
        row = box.row(align=True)
        for what, text in line:
            button = row.operator("mocap.foot_contact", text=text)
            button.side, button.what = side.upper(), what


def _numbers(layout: bpy.types.UILayout, context: bpy.types.Context, group: str) -> None:
    """The constants of a group, one below the other."""
    layout.use_property_split = True
    layout.use_property_decorate = False
    column = layout.column(align=True)
    for name in feet_settings.names_of(group):
        column.prop(context.scene.mocap.feet, name)


class MOCAP_PT_feet_planting(_Sub, bpy.types.Panel):
    bl_idname = "MOCAP_PT_feet_planting"
    bl_label = "Planting"

    def draw(self, context: bpy.types.Context) -> None:
        _numbers(self.layout, context, "planting")
        self.layout.prop(context.scene.mocap.feet, "pin_hips")
        self.layout.prop(context.scene.mocap.feet, "keep")


class MOCAP_PT_feet_ground(_Sub, bpy.types.Panel):
    bl_idname = "MOCAP_PT_feet_ground"
    bl_label = "Surfaces"

    def draw(self, context: bpy.types.Context) -> None:
        _numbers(self.layout, context, "ground")


class MOCAP_PT_feet_legs(_Sub, bpy.types.Panel):
    bl_idname = "MOCAP_PT_feet_legs"
    bl_label = "Legs"

    def draw(self, context: bpy.types.Context) -> None:
        _numbers(self.layout, context, "legs")


class MOCAP_PT_feet_als(_Sub, bpy.types.Panel):
    bl_idname = "MOCAP_PT_feet_als"
    bl_label = "ALS"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return context.scene.mocap.feet.mode == "ALS"

    def draw(self, context: bpy.types.Context) -> None:
        _numbers(self.layout, context, "als")
        self.layout.prop(context.scene.mocap.feet, "exact_slope")
        self.layout.prop(context.scene.mocap.feet, "hold_contacts")


class MOCAP_PT_feet_soles(_Sub, bpy.types.Panel):
    bl_idname = "MOCAP_PT_feet_soles"
    bl_label = "Soles"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        obj = characters.of(context)
        return obj is not None and not characters.problem(obj)

    def draw(self, context: bpy.types.Context) -> None:
        layout, obj = self.layout, characters.of(context)
        layout.operator("mocap.measure_soles", icon="DRIVER_DISTANCE")
        layout.use_property_split = True
        layout.use_property_decorate = False
        for side in SIDES:
            owner = getattr(obj.mocap, f"sole_{side}")
            layout.prop(owner, "use", text=f"{side.title()}: own measures")
            column = layout.column(align=True)
            column.active = owner.use
            for name in feet_settings.SOLE_NAMES:
                column.prop(owner, name)


PANELS = (
    MOCAP_PT_feet,
    MOCAP_PT_feet_report,
    MOCAP_PT_feet_contacts,
    MOCAP_PT_feet_planting,
    MOCAP_PT_feet_ground,
    MOCAP_PT_feet_legs,
    MOCAP_PT_feet_als,
    MOCAP_PT_feet_soles,
)
