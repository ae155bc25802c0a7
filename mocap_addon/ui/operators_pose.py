# SPDX-License-Identifier: GPL-3.0-or-later
"""Live preview, reference pose, corrections from poses, bones picked in the viewport."""

from __future__ import annotations

import bpy
import numpy as np
from bpy.props import EnumProperty

from ..motion.errors import MocapError
from ..motion.take import Take
from ..rig.table import CorrectionTable
from . import characters, fitting, posing, preview, rig_takes, run, settings, shown, table_sync, takes
from .fitting import Fitting
from .operators_table import NO_ROW, OnTable

_NO_TAKE = "Choose a take first."
_IN_REFERENCE = "Apply or cancel the reference pose first."


class _OnTakeAndTable(OnTable):
    """For operators that hold take and character against each other."""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if not super().poll(context):
            return False
        if not takes.chosen(context.scene):
            cls.poll_message_set(_NO_TAKE)
            return False
        return True

    @staticmethod
    def fitted(context: bpy.types.Context) -> tuple[bpy.types.Object, CorrectionTable, Fitting]:
        """The character, its table, and the take held against it."""
        obj = characters.named(context, "")
        scene = context.scene
        table = table_sync.to_table(obj)
        return obj, table, fitting.fit(obj, preview.panel_take(scene), table, settings.job_options(scene.mocap))

    def corrected(self, context: bpy.types.Context, obj: bpy.types.Object, table: CorrectionTable, old: CorrectionTable) -> set[str]:
        """Put the new corrections into the rows and say how many changed."""
        table_sync.set_corrections(obj, table)
        run.table_changed(context.scene, obj)
        changed = sum(a.correction != b.correction for a, b in zip(table.rows, old.rows, strict=True))
        self.report({"INFO"}, f"{changed} {'bone' if changed == 1 else 'bones'} corrected." if changed else "The pose needs no correction.")
        return {"FINISHED"}


class MOCAP_OT_preview(_OnTakeAndTable, bpy.types.Operator):
    """Show the take on the character while its bones are edited"""

    bl_idname = "mocap.preview"
    bl_label = "Preview"
    bl_description = (
        "Show the take on the character at the current frame while you work on the bones. "
        "No key is set, and the character gets its own pose back when the preview ends"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if not super().poll(context):
            return False
        if characters.of(context).mocap.posing == preview.REFERENCE:
            cls.poll_message_set(_IN_REFERENCE)
            return False
        return True

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            obj = characters.named(context, "")
            if preview.shown_on(obj):
                preview.end(context.scene, obj)
            else:
                posing.check(obj)
                preview.begin(context.scene, obj)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}


class MOCAP_OT_edit_reference_pose(_OnTakeAndTable, bpy.types.Operator):
    """Pose the character as the performer stands in the rest pose"""

    bl_idname = "mocap.edit_reference_pose"
    bl_label = "Edit Reference Pose"
    bl_description = (
        "Stand the character as it stands when the performer is in the take's rest pose. "
        "Turn its bones in Pose Mode until they are right, then press Apply"
    )
    bl_options = {"REGISTER", "UNDO"}

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        done = self.execute(context)
        obj = characters.of(context)
        if done == {"FINISHED"} and context.mode == "OBJECT" and obj.visible_get():  # a person wants to turn bones now
            context.view_layer.objects.active = obj
            bpy.ops.object.mode_set(mode="POSE")
            _in_pose_mode.add(obj.session_uid)
        return done

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            obj, table, found = self.fitted(context)
            posing.lay_out(context.scene, obj, found, table)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}


_in_pose_mode: set[int] = set()
"""Characters that Edit Reference Pose brought into Pose Mode: Apply and Cancel take them out again."""


class _InReferencePose(_OnTakeAndTable):
    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        obj = characters.of(context)
        done = self.execute(context)
        if done == {"FINISHED"} and obj.session_uid in _in_pose_mode:
            _in_pose_mode.discard(obj.session_uid)
            if context.mode == "POSE" and context.object == obj:
                bpy.ops.object.mode_set(mode="OBJECT")
        return done

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        obj = characters.of(context)
        if obj is None or obj.mocap.posing != preview.REFERENCE:
            cls.poll_message_set("Press Edit Reference Pose first.")
            return False
        return True


class MOCAP_OT_apply_reference_pose(_InReferencePose, bpy.types.Operator):
    """Make corrections from the pose that the character has now"""

    bl_idname = "mocap.apply_reference_pose"
    bl_label = "Apply"
    bl_description = (
        "Use the pose the character has now: the performer's rest pose will give exactly this pose. "
        "The differences become corrections, and the character gets its own pose back"
    )
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            obj, table, found = self.fitted(context)
            made = posing.from_pose(obj, found, table, None)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        preview.end(context.scene, obj)
        return self.corrected(context, obj, made, table)


class MOCAP_OT_cancel_reference_pose(_InReferencePose, bpy.types.Operator):
    """Leave the corrections as they were and give the character its own pose back"""

    bl_idname = "mocap.cancel_reference_pose"
    bl_label = "Cancel"
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        preview.end(context.scene, characters.of(context))
        return {"FINISHED"}


_USE_POSE = {
    "REST": "The character stands now as the performer does in the take's rest pose: correct the bones so that the take gives this pose",
    "FRAME": "The character stands now as the performer does at the current frame: correct the bones so that it gives this pose there",
    "BOTH": "Take and character stand alike now, as they are posed in the viewport: correct the bones so that one gives the other",
}


class MOCAP_OT_use_pose(_OnTakeAndTable, bpy.types.Operator):
    """Correct the bones so that the take gives the pose that the character has now"""

    bl_idname = "mocap.use_pose"
    bl_label = "Use Pose"
    bl_options = {"REGISTER", "UNDO"}

    which: EnumProperty(
        name="For",
        items=(
            ("REST", "For the Rest Pose", "The character now stands as the performer does in the take's rest pose"),
            ("FRAME", "For This Frame", "The character now stands as the performer does at the current frame of the take"),
            ("BOTH", "For Both as They Stand", "The character now stands as the rig that the take comes from does"),
        ),
        options={"SKIP_SAVE"},
    )

    @classmethod
    def description(cls, context: bpy.types.Context, properties: bpy.types.OperatorProperties) -> str:
        return _USE_POSE[properties.which]

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if not super().poll(context):
            return False
        if characters.of(context).mocap.posing == preview.REFERENCE:
            cls.poll_message_set(_IN_REFERENCE)
            return False
        return True

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            obj, table, found = self.fitted(context)
            made = posing.from_pose(obj, found, table, self._sample(context.scene, found))
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return self.corrected(context, obj, made, table)

    def _sample(self, scene: bpy.types.Scene, found: Fitting) -> Take | None:
        """What the performer does in the pose that the character has; None: the take's rest pose."""
        if self.which == "FRAME":
            return shown.sample(found.take, settings.seconds_at(scene))[0]
        return rig_takes.present(scene, found.take) if self.which == "BOTH" else None


class MOCAP_OT_use_frame(bpy.types.Operator):
    """Compare take and character in the current frame"""

    bl_idname = "mocap.use_frame"
    bl_label = "Compare in This Frame"
    bl_description = (
        "Compare take and character in the current frame, instead of in the take's rest pose. "
        "Go to a frame in which the performer stands as straight as the character does at rest"
    )
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if not takes.chosen(context.scene):
            cls.poll_message_set(_NO_TAKE)
            return False
        return True

    def execute(self, context: bpy.types.Context) -> set[str]:
        scene = context.scene
        try:
            take = preview.panel_take(scene)
            frame = sample_at(take, settings.seconds_at(scene))
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        scene.mocap.reference_frame, scene.mocap.reference = frame, "FRAME"
        self.report({"INFO"}, f"Take and character are compared in recorded frame {frame}.")
        return {"FINISHED"}


class MOCAP_OT_pick_bone(OnTable, bpy.types.Operator):
    """Use the bone that is active in the viewport"""

    bl_idname = "mocap.pick_bone"
    bl_label = "Pick Bone"
    bl_options = {"REGISTER", "UNDO"}

    what: EnumProperty(
        name="Pick",
        items=(
            ("ROW", "The Character's Bone", "Go to the character's active bone in the list"),
            ("SOURCE", "What It Follows", "The chosen bone follows the active bone of the other armature"),
        ),
        options={"SKIP_SAVE"},
    )

    @classmethod
    def description(cls, context: bpy.types.Context, properties: bpy.types.OperatorProperties) -> str:
        if properties.what == "ROW":
            return "Go to the bone that is active in the viewport"
        return "Follow the bone that is active in the viewport, on the armature that plays the take"

    def execute(self, context: bpy.types.Context) -> set[str]:
        obj = characters.of(context)
        try:
            if self.what == "ROW":
                self._go_to(obj, picked_bone(context, obj, own=True))
            else:
                self._follow(context, obj, picked_bone(context, obj, own=False))
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}

    @staticmethod
    def _go_to(obj: bpy.types.Object, name: str) -> None:
        index = obj.mocap.rows.find(name)
        if index < 0:
            raise MocapError(f'The bone "{name}" is not in the list; press Match, so that the bones are read anew.')
        obj.mocap.active_row = index

    @staticmethod
    def _follow(context: bpy.types.Context, obj: bpy.types.Object, name: str) -> None:
        row = table_sync.active_row(obj)
        if row is None:
            raise MocapError(NO_ROW)
        if name not in takes.joint_names(context.scene):
            raise MocapError(f'The take has no bone "{name}"; pick one of the armature that plays it, or choose the name in the list.')
        row.source = name


def picked_bone(context: bpy.types.Context, obj: bpy.types.Object, *, own: bool) -> str:
    """Name of the bone that is active in the viewport, of ``obj`` itself or of another armature.

    Raises
    ------
    MocapError
        There is none.
    """
    active = context.active_pose_bone
    others = [bone for bone in context.selected_pose_bones or () if (bone.id_data == obj) == own]
    if active is not None and (active.id_data == obj) == own:
        return active.name
    if others:
        return others[0].name
    armature = context.object
    if armature is not None and armature.type == "ARMATURE" and (armature == obj) == own and armature.data.bones.active is not None:
        return armature.data.bones.active.name
    if own:
        raise MocapError(f"No bone of {obj.name} is active; click one in Pose Mode.")
    raise MocapError("No bone of another armature is active; click one in Pose Mode, on the armature that plays the take.")


def sample_at(take: Take, seconds: float) -> int:
    """Number of the sample nearest to a moment after the take's start."""
    if take.frames == 0:
        raise MocapError(f'The take "{take.name}" has no frames.')
    return int(np.argmin(np.abs(take.times - take.times[0] - seconds)))
