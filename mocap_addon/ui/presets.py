# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone tables kept by name, for other characters with the same bones and other files."""

from __future__ import annotations

import os

import bpy
from bpy.props import StringProperty

from .. import rig
from ..motion.errors import MocapError
from . import characters, table_sync
from .operators_table import OnTable, with_settings

_ENDING = ".toml"
_names: list[str] = []


def folder(*, create: bool = False) -> str:
    """Where the tables lie: the extension's own folder; Blender's configuration folder when it runs from a checkout."""
    package = __package__.rpartition(".")[0]
    if package.startswith("bl_ext."):
        return bpy.utils.extension_path_user(package, path="tables", create=create)
    return bpy.utils.user_resource("CONFIG", path=os.path.join("mocap_addon", "tables"), create=create)


def names() -> tuple[str, ...]:
    """Names of the tables, from memory."""
    return tuple(_names)


def path_of(name: str) -> str:
    """Path of the table called ``name``."""
    return os.path.join(folder(), bpy.path.clean_name(name) + _ENDING)


def look() -> None:
    """Read the list of tables anew; a folder that is not there holds none."""
    try:
        found = [name.removesuffix(_ENDING) for name in os.listdir(folder()) if name.endswith(_ENDING)]
    except (OSError, ValueError):
        found = []
    _names[:] = sorted(found, key=str.casefold)


class MOCAP_MT_table_presets(bpy.types.Menu):
    """Bone tables kept by name"""

    bl_idname = "MOCAP_MT_table_presets"
    bl_label = "Bone Tables"

    def draw(self, context: bpy.types.Context) -> None:
        layout = self.layout
        for name in _names:
            layout.operator("mocap.load_table", text=name, icon="PRESET", translate=False).filepath = path_of(name)
        if not _names:
            layout.label(text="No tables kept yet")
        layout.separator()
        layout.operator("mocap.keep_table", icon="ADD")
        if _names:
            layout.operator("mocap.drop_table", icon="REMOVE")
        layout.separator()
        layout.operator("mocap.load_table", text="Load from File...", icon="FILE_FOLDER").filepath = ""
        layout.operator("mocap.save_table", text="Save to File...", icon="FILE_TICK").filepath = ""


class MOCAP_OT_keep_table(OnTable, bpy.types.Operator):
    """Keep this bone table by a name, for other characters with the same bones"""

    bl_idname = "mocap.keep_table"
    bl_label = "Keep This Table..."
    bl_options = {"REGISTER"}

    name: StringProperty(name="Name", description="What the table is called. A table of the same name is replaced", options={"SKIP_SAVE"})

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if not self.name:
            self.name = str(table_sync.about(characters.of(context)).get("target_family") or characters.of(context).name)
        return context.window_manager.invoke_props_dialog(self, title="Keep This Bone Table", confirm_text="Keep")

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            if not self.name.strip():
                raise MocapError("No name is given; say what the bone table is called.")
            folder(create=True)
            rig.save_table(with_settings(context), path_of(self.name))
        except (MocapError, OSError) as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        look()
        self.report({"INFO"}, f'Bone table kept as "{self.name}".')
        return {"FINISHED"}


class MOCAP_OT_drop_table(bpy.types.Operator):
    """Delete a bone table from the list"""

    bl_idname = "mocap.drop_table"
    bl_label = "Delete a Table..."
    bl_options = {"REGISTER"}

    def _search(self, context: bpy.types.Context, text: str) -> list[str]:
        return [name for name in _names if text.casefold() in name.casefold()]

    name: StringProperty(name="Table", description="The bone table to delete", search=_search, options={"SKIP_SAVE"})

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if not _names:
            cls.poll_message_set("No bone table is kept.")
            return False
        return True

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        return context.window_manager.invoke_props_dialog(self, title="Delete a Bone Table", confirm_text="Delete")

    def execute(self, context: bpy.types.Context) -> set[str]:
        if self.name not in _names:
            self.report({"ERROR"}, f'There is no bone table "{self.name}"; choose one of the list.')
            return {"CANCELLED"}
        try:
            os.remove(path_of(self.name))
        except OSError as error:
            self.report({"ERROR"}, f"The bone table cannot be deleted ({error.strerror}).")
            return {"CANCELLED"}
        finally:
            look()
        return {"FINISHED"}
