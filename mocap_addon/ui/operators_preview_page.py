# SPDX-License-Identifier: GPL-3.0-or-later
"""Preview in Browser: the character's actions as a page, opened at once."""

from __future__ import annotations

import bpy

from ..blender import preview_page
from ..motion.errors import MocapError
from . import characters, export_settings, run


class MOCAP_OT_preview_page(characters.OnCharacter, bpy.types.Operator):
    """Show the character and the chosen actions in the browser, beside what they were made of. Nothing in the scene is changed"""

    bl_idname = "mocap.preview_page"
    bl_label = "Preview in Browser"
    bl_options = {"REGISTER"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        settings = context.scene.mocap.export
        try:
            obj = characters.named(context, "")
            run.end_preview(context.scene, obj)
            chosen = export_settings.chosen(settings, obj)
            original = bpy.path.abspath(settings.character) if settings.character else None
            path = preview_page.preview(obj, chosen, character=original, open_it=not bpy.app.background)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        self.report({"INFO"}, f"The page is {path}.")
        return {"FINISHED"}
