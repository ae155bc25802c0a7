# SPDX-License-Identifier: GPL-3.0-or-later
"""The bone table: match, load, save, reset, mirror."""

from __future__ import annotations

from dataclasses import replace

import bpy
from bpy.props import BoolProperty, EnumProperty, StringProperty

from .. import rig
from ..blender import settings_file
from ..motion.errors import FileError, MocapError
from ..rig.roles import mirrored
from ..rig.table import CorrectionTable, Row
from . import body, characters, preview, properties, run, settings, table_sync, takes
from .operators_take import take_for

_NO_TABLE = "Press Match first."
NO_ROW = "No bone is chosen in the list; click one first."


class OnTable(characters.OnCharacter):
    """For operators that need a character whose bones are matched."""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if not super().poll(context):
            return False
        if not table_sync.has_table(characters.of(context)):
            cls.poll_message_set(_NO_TABLE)
            return False
        return True


class MOCAP_OT_match_bones(characters.OnCharacter, bpy.types.Operator):
    """Find out which bone of the character follows which bone of the take. Your corrections are kept"""

    bl_idname = "mocap.match_bones"
    bl_label = "Match"
    bl_options = {"REGISTER", "UNDO"}

    keep: BoolProperty(name="Keep Corrections", description="Keep the corrections made so far", default=True, options={"SKIP_SAVE"})

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if not super().poll(context):
            return False
        if not takes.chosen(context.scene):
            cls.poll_message_set("Choose a take first.")
            return False
        return True

    def execute(self, context: bpy.types.Context) -> set[str]:
        panel = context.scene.mocap
        try:
            obj = characters.named(context, "")
            take = take_for(context, "", panel).takes[0]
            table = run.matched(obj, take, settings.job_options(panel), keep=self.keep)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        table_sync.from_table(obj, table)
        preview.refresh(context.scene, obj, table)
        self.report({"INFO"}, f"{len(table.rows)} bones of {obj.name} follow the take; {len(table.unmapped_target)} keep their pose.")
        return {"FINISHED"}


def with_settings(context: bpy.types.Context) -> CorrectionTable:
    """The character's table with all that the panel is set to, for a file."""
    obj = characters.of(context)
    options = replace(settings.job_options(context.scene.mocap), adjustments=body.adjustments(obj, context.scene))
    return settings_file.with_settings(table_sync.to_table(obj), options)


class MOCAP_OT_load_table(characters.OnCharacter, bpy.types.Operator):
    """Load a bone table from a file and use it for this character, with the settings that were saved in it"""

    bl_idname = "mocap.load_table"
    bl_label = "Load Bone Table"
    bl_options = {"REGISTER", "UNDO"}

    filepath: StringProperty(subtype="FILE_PATH", options={"SKIP_SAVE"})
    filter_glob: StringProperty(default="*.toml", options={"HIDDEN"})

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            obj = characters.named(context, "")
            if not self.filepath:
                raise MocapError("No file is chosen; choose a bone table (.toml).")
            table = rig.load_table(bpy.path.abspath(self.filepath))
            table, dropped = table_sync.fitted(table, obj.data.bones.keys())
            if not table.rows:
                raise FileError(f"Nothing in this bone table fits {obj.name}; it was made for another character.", self.filepath)
            found = settings_file.settings_in(table)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        table_sync.from_table(obj, table, by_hand=True)
        if found is not None:
            settings.show(context.scene.mocap, found)
            body.show(obj, found.adjustments, context.scene)
        run.table_changed(context.scene, obj)
        for sentence in settings_file.strange_keys(table):
            self.report({"WARNING"}, sentence)
        if dropped:
            self.report({"WARNING"}, f"{obj.name} has no bone {', '.join(dropped[:4])}{' ...' if len(dropped) > 4 else ''}; left out.")
        self.report({"INFO"}, f"Bone table loaded: {len(table.rows)} bones.")
        return {"FINISHED"}


class MOCAP_OT_save_table(OnTable, bpy.types.Operator):
    """Save the bone table and all settings to one file, to use them for other characters with the same bones"""

    bl_idname = "mocap.save_table"
    bl_label = "Save Bone Table"
    bl_options = {"REGISTER"}

    filepath: StringProperty(subtype="FILE_PATH", options={"SKIP_SAVE"})
    filter_glob: StringProperty(default="*.toml", options={"HIDDEN"})
    check_existing: BoolProperty(default=True, options={"HIDDEN"})

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if not self.filepath:
            self.filepath = bpy.path.clean_name(characters.of(context).name) + ".toml"
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def check(self, context: bpy.types.Context) -> bool:
        named = bpy.path.ensure_ext(self.filepath, ".toml")
        changed, self.filepath = named != self.filepath, named
        return changed

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            if not self.filepath:
                raise MocapError("No file name is given; say where to save the bone table.")
            path = bpy.path.abspath(bpy.path.ensure_ext(self.filepath, ".toml"))
            rig.save_table(with_settings(context), path)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        self.report({"INFO"}, f"Bone table saved to {path}.")
        return {"FINISHED"}


class MOCAP_OT_reset_corrections(OnTable, bpy.types.Operator):
    """Set corrections back to zero"""

    bl_idname = "mocap.reset_corrections"
    bl_label = "Reset Correction"
    bl_options = {"REGISTER", "UNDO"}

    which: EnumProperty(
        name="Bones",
        items=(("ONE", "This Bone", "Only the bone that is chosen in the list"), ("ALL", "All Bones", "Every bone of the table")),
        options={"SKIP_SAVE"},
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        obj = characters.of(context)
        chosen = table_sync.active_row(obj)
        if self.which == "ONE" and chosen is None:
            self.report({"ERROR"}, NO_ROW)
            return {"CANCELLED"}
        rows = obj.mocap.rows if self.which == "ALL" else [chosen]
        with properties.quiet():
            for row in rows:
                row.correction = (0.0, 0.0, 0.0)
        run.table_changed(context.scene, obj)
        return {"FINISHED"}


class MOCAP_OT_mirror_corrections(OnTable, bpy.types.Operator):
    """Give the bones of one side the corrections of the other, mirrored"""

    bl_idname = "mocap.mirror_corrections"
    bl_label = "Mirror Corrections"
    bl_options = {"REGISTER", "UNDO"}

    which: EnumProperty(
        name="Direction",
        items=(
            ("LEFT", "Left to Right", "The right side gets the left side's corrections"),
            ("RIGHT", "Right to Left", "The left side gets the right side's corrections"),
            ("ONE", "This Bone to Its Opposite", "Only the bone that is chosen in the list"),
        ),
        options={"SKIP_SAVE"},
    )

    def execute(self, context: bpy.types.Context) -> set[str]:
        obj = characters.of(context)
        table, chosen = table_sync.to_table(obj), table_sync.active_row(obj)
        if self.which == "ONE" and chosen is None:
            self.report({"ERROR"}, NO_ROW)
            return {"CANCELLED"}
        if self.which == "ONE":
            row, onto = self._pair(table, chosen.name)
            mirrored_table = table if onto is None else table.with_row(rig.mirror_row(row, onto))
        else:
            mirrored_table = rig.mirror_table(table, self.which.lower())
        if mirrored_table.rows == table.rows:
            self.report({"INFO"}, "There was nothing to mirror: no correction, or no opposite bone.")
            return {"CANCELLED"}
        table_sync.set_corrections(obj, mirrored_table)
        run.table_changed(context.scene, obj)
        return {"FINISHED"}

    @staticmethod
    def _pair(table: CorrectionTable, target: str) -> tuple[Row | None, Row | None]:
        """The row of ``target`` and its opposite: the same link of the same chain on the other side."""
        row = table.row(target)
        if row is None or mirrored(row.role) == row.role:
            return row, None
        link = [r.target for r in table.rows if r.role == row.role].index(target)
        others = [r for r in table.rows if r.role == mirrored(row.role)]
        return row, others[link] if link < len(others) else None
