# SPDX-License-Identifier: GPL-3.0-or-later
"""Dropping a take into the 3D view puts it onto the character."""

from __future__ import annotations

import bpy


class MOCAP_FH_take(bpy.types.FileHandler):
    """Motion capture files dragged into the window."""

    bl_idname = "MOCAP_FH_take"
    bl_label = "Mocap take onto the character"
    bl_import_operator = "mocap.import_take"
    bl_file_extensions = ".bvh"

    @classmethod
    def poll_drop(cls, context: bpy.types.Context) -> bool:
        return context.area is not None and context.area.type == "VIEW_3D"
