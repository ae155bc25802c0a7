# SPDX-License-Identifier: GPL-3.0-or-later
"""Root motion of the action that a character plays, divided anew without its take."""

from __future__ import annotations

import bpy
from bpy.props import EnumProperty

from ..blender import root_motion
from ..motion.errors import MocapError
from . import characters, root, run


class MOCAP_OT_root_motion(bpy.types.Operator):
    """Divide the motion of the character's action anew between its hips and what carries them. The old action is kept"""

    bl_idname = "mocap.root_motion"
    bl_label = "Root Motion"
    bl_options = {"REGISTER", "UNDO"}

    what: EnumProperty(
        name="How",
        items=(
            ("SETTINGS", "As Set Above", "As the settings of the Root Motion panel say"),
            ("HIPS", "Back into the Hips", "Root bone and object carry nothing any more; the hips do alone what was seen before"),
        ),
        options={"SKIP_SAVE"},
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        obj = characters.of(context)
        if obj is None or obj.animation_data is None or obj.animation_data.action is None:
            cls.poll_message_set("Choose a character that plays an action first.")
            return False
        return True

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            obj = characters.named(context, "")
            run.end_preview(context.scene, obj)
            if self.what == "HIPS":
                done = root_motion.merge(obj)
            else:
                policy = root.motion(context.scene.mocap)
                if policy.plain:
                    raise MocapError(
                        "The settings leave the hips to carry the character; choose what else carries it, or Back into the Hips."
                    )
                done = root_motion.extract(obj, policy)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        for note in done.notes[:4]:
            self.report({"WARNING"}, note)
        self.report({"INFO"}, f'Action "{done.action.name}" made; "{done.before.name}" is kept.')
        return {"FINISHED"}
