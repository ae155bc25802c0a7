# SPDX-License-Identifier: GPL-3.0-or-later
"""The Export panel of the "Mocap" tab."""

from __future__ import annotations

import bpy

from . import characters, operators_export
from .panels import MOST_NOTES, _Tab, fact, paragraph

_MOST_FILES = 12


class MOCAP_UL_export_actions(bpy.types.UIList):
    """The character's actions with a tick each."""

    def draw_item(self, context, layout, data, item, icon, active_data, active_property, index=0, flt_flag=0):
        row = layout.row(align=True)
        row.use_property_split = False
        row.prop(item, "use", text="")
        row.label(text=item.name, icon="ACTION", translate=False)


class MOCAP_PT_export(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_export"
    bl_label = "Export"
    bl_order = 9
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout, settings = self.layout, context.scene.mocap.export
        layout.use_property_split = True
        layout.use_property_decorate = False
        obj = characters.of(context)
        layout.prop(settings, "preset")
        layout.prop(settings, "which")
        if settings.which == "CHOSEN":
            row = layout.row()
            row.template_list("MOCAP_UL_export_actions", "", settings, "actions", settings, "active_action", rows=4)
            row.operator("mocap.list_actions", text="", icon="FILE_REFRESH")
            if not len(settings.actions):
                paragraph(layout, context, "Press the button beside the list to fill it.", "INFO")
        layout.prop(settings, "folder")
        row = layout.row()
        row.scale_y = 1.6
        row.operator("mocap.export", icon="EXPORT").directory = ""
        layout.operator("mocap.preview_page", icon="URL")
        if obj is not None:
            _draw_report(layout, context, operators_export.last(obj))


class MOCAP_PT_export_settings(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_export_settings"
    bl_parent_id = "MOCAP_PT_export"
    bl_label = "Settings"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout, settings = self.layout, context.scene.mocap.export
        column = layout.column(align=True)
        names = [item.identifier for item in settings.bl_rna.properties["formats"].enum_items]
        for start in range(0, len(names), 2):
            row = column.row(align=True)
            for name in names[start : start + 2]:
                row.prop_enum(settings, "formats", name)
        layout.use_property_split = True
        layout.use_property_decorate = False
        # what none of the formats takes notice of is not shown
        if {"THREEJS", "GLB", "VRMA"} & settings.formats:
            layout.prop(settings, "use_bound")
            if settings.use_bound:
                column = layout.column(align=True)
                column.prop(settings, "bound", text="Limit (mm)")
                column.prop(settings, "thin")
        if settings.formats - {"FBX", "BVH"}:
            layout.prop(settings, "match", text="Match Blender")
        if settings.formats - {"FBX", "BVH", "VRMA"}:
            layout.prop(settings, "loop")
        column = layout.column()
        column.prop(settings, "in_place")
        if "THREEJS" in settings.formats:
            column.prop(settings, "additive")
            column.prop(settings, "manifest")
        if {"GLB", "FBX"} & settings.formats:
            column.prop(settings, "mesh")
        if {"GLB", "THREEJS"} & settings.formats:
            column.prop(settings, "together")
            row = column.row()
            row.active = settings.together
            row.prop(settings, "same_bones")
        if "FBX" in settings.formats:
            layout.prop(settings, "fbx")
        if "MAP" in settings.formats:
            column = layout.column()
            column.prop(settings, "map_half")
            column.prop(settings, "map_ktx2")
        if settings.formats - {"FBX", "BVH"}:
            layout.prop(settings, "character", placeholder="exported from here")


def _draw_report(layout: bpy.types.UILayout, context: bpy.types.Context, found: operators_export.Shown | None) -> None:
    if found is None:
        return
    column = layout.column(align=True)
    column.scale_y = 0.85
    for name, size, error in found.files[:_MOST_FILES]:
        paragraph(column, context, name, "FILE")
        fact(column, context, size, error or "written")
    if len(found.files) > _MOST_FILES:
        paragraph(column, context, f"and {len(found.files) - _MOST_FILES} more files.", "BLANK1")
    if found.gap:
        paragraph(column, context, found.gap, "INFO")
    for note in found.notes[:MOST_NOTES]:
        paragraph(column, context, note, "INFO")
