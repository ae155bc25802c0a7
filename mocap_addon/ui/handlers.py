# SPDX-License-Identifier: GPL-3.0-or-later
"""What happens by itself: a take dropped into the 3D view, a file opened."""

from __future__ import annotations

from contextlib import suppress

import bpy

from .. import rig
from ..blender import actions
from ..motion.errors import MocapError
from . import table_sync, takes

EITHER = (".fbx", ".glb", ".gltf", ".vrm")
"""Files that may hold a take, a character, or both: Blender asks which handler is meant."""


def _over_the_view(context: bpy.types.Context) -> bool:
    return context.area is not None and context.area.type == "VIEW_3D"


class MOCAP_FH_take(bpy.types.FileHandler):
    """Motion capture files dragged into the window."""

    bl_idname = "MOCAP_FH_take"
    bl_label = "Mocap take onto the character"
    bl_import_operator = "mocap.import_take"
    bl_file_extensions = ";".join(ending for ending in takes.EXTENSIONS if ending not in (*EITHER, ".blend"))

    @classmethod
    def poll_drop(cls, context: bpy.types.Context) -> bool:
        return _over_the_view(context)


class MOCAP_FH_use_as_take(bpy.types.FileHandler):
    """Files with characters and animations, for their motion."""

    bl_idname = "MOCAP_FH_use_as_take"
    bl_label = "Use as Mocap Take"
    bl_import_operator = "mocap.import_take"
    bl_file_extensions = ";".join(ending for ending in EITHER if ending in takes.EXTENSIONS)

    @classmethod
    def poll_drop(cls, context: bpy.types.Context) -> bool:
        return _over_the_view(context)


class MOCAP_FH_use_as_character(bpy.types.FileHandler):
    """The same files, for the character."""

    bl_idname = "MOCAP_FH_use_as_character"
    bl_label = "Use as Mocap Character"
    bl_import_operator = "mocap.open_character"
    bl_file_extensions = ";".join(EITHER)

    @classmethod
    def poll_drop(cls, context: bpy.types.Context) -> bool:
        return _over_the_view(context)


@bpy.app.handlers.persistent
def restore_tables(*_: object) -> None:
    """Give overridden characters the table of their last retarget back.

    Blender drops what an add-on stores on a library override when the file is opened again. The recipe of the action stays: an action is
    a data-block of the file itself.
    """
    for obj in bpy.data.objects:
        if obj.type != "ARMATURE" or obj.override_library is None or table_sync.has_table(obj):
            continue
        action = obj.animation_data.action if obj.animation_data else None
        recipe = actions.recipe_of(action) if action else None
        if recipe and isinstance(recipe.get("table"), str):
            with suppress(MocapError):  # a recipe that somebody edited: the bones are matched anew
                table_sync.from_table(obj, rig.loads(recipe["table"]))
