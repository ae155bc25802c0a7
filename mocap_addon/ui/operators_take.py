# SPDX-License-Identifier: GPL-3.0-or-later
"""Choosing and reading a take, choosing a character."""

from __future__ import annotations

import os

import bpy
from bpy.props import StringProperty

from ..blender.characters import bring_in
from ..motion.errors import MocapError
from ..motion.steps import Steps, run
from . import characters, rig_takes, settings, takes, waiting
from .reading import Reading


class MOCAP_OT_open_take(bpy.types.Operator):
    """Choose a motion capture file and read it"""

    bl_idname = "mocap.open_take"
    bl_label = "Open Take"
    bl_options = {"REGISTER", "INTERNAL"}

    filepath: StringProperty(subtype="FILE_PATH", options={"HIDDEN", "SKIP_SAVE"})
    filter_glob: StringProperty(default=takes.FILE_FILTER, options={"HIDDEN"})

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if self.filepath:
            return self.execute(context)
        self.filepath = _folder_of_the_take(context.scene)
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        if not self.filepath:
            self.report({"ERROR"}, "No file is chosen; choose a motion capture file.")
            return {"CANCELLED"}
        context.scene.mocap.source = "FILE"
        context.scene.mocap.filepath = self.filepath  # which reads it
        reading = takes.peek(context.scene)
        if reading is not None and reading.error:
            self.report({"ERROR"}, reading.error)
            return {"CANCELLED"}
        return {"FINISHED"}


def _folder_of_the_take(scene: bpy.types.Scene) -> str:
    """Where to look for other files first; empty: where Blender does."""
    current = scene.mocap.filepath
    return os.path.join(os.path.dirname(takes.absolute(current)), "") if current else ""


class MOCAP_OT_read_take(waiting.Waits, bpy.types.Operator):
    """Read the take again and show what is in it"""

    bl_idname = "mocap.read_take"
    bl_label = "Read"
    bl_options = {"REGISTER", "INTERNAL"}

    filepath: StringProperty(
        name="File", description="The file to read. Empty: the one in the panel", subtype="FILE_PATH", options={"SKIP_SAVE"}
    )

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return context.scene is not None

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if self.filepath:
            return self.execute(context)
        scene = context.scene
        return self.wait(context, takes.panel_steps(scene), takes.label(scene), self._said)

    def execute(self, context: bpy.types.Context) -> set[str]:
        scene = context.scene
        if self.filepath and self.filepath != scene.mocap.filepath:
            scene.mocap.filepath = self.filepath  # which reads it
            return self._said(takes.peek(scene))
        return self._said(takes.read_for_panel(scene))

    def broken_off(self, context: bpy.types.Context) -> None:
        takes.say(context.scene, "Reading was cancelled; press Read Again to start anew.")

    def _said(self, reading: Reading | None) -> set[str]:
        if reading is None:
            self.report({"ERROR"}, "No take is chosen; choose a motion capture file or a rig.")
            return {"CANCELLED"}
        if reading.error:
            self.report({"ERROR"}, reading.error)
            return {"CANCELLED"}
        return {"FINISHED"}


class MOCAP_OT_use_armature(characters.OnCharacter, bpy.types.Operator):
    """Stay with this armature, whatever is selected later"""

    bl_idname = "mocap.use_armature"
    bl_label = "Keep This Character"
    bl_options = {"REGISTER", "UNDO", "INTERNAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        context.scene.mocap.target = characters.of(context)
        return {"FINISHED"}


class MOCAP_OT_open_character(bpy.types.Operator):
    """Bring a character from a file into the scene, at rest, and use it"""

    bl_idname = "mocap.open_character"
    bl_label = "Use as Mocap Character"  # what Blender asks where a file is dropped
    bl_options = {"REGISTER", "UNDO"}

    filepath: StringProperty(subtype="FILE_PATH", options={"HIDDEN", "SKIP_SAVE"})
    filter_glob: StringProperty(default="*.fbx;*.glb;*.gltf;*.vrm;*.blend", options={"HIDDEN"})

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if context.mode != "OBJECT":
            cls.poll_message_set("Go to Object Mode first.")
            return False
        return True

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if self.filepath:  # dropped into the window
            return self.execute(context)
        self.filepath = _folder_of_the_take(context.scene)
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            if not self.filepath:
                raise MocapError("No file is chosen; choose a character (.glb, .fbx, .vrm or .blend).")
            found = bring_in(bpy.path.abspath(self.filepath))
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        context.scene.mocap.target = found.armature
        for note in found.notes:
            self.report({"WARNING"}, note)
        self.report({"INFO"}, f"{found.armature.name} is the character now.")
        return {"FINISHED"}


def take_for(context: bpy.types.Context, filepath: str, owner: object, rig: str = "", action: str = "") -> Reading:
    """What an operator is to work on: the file or rig it was given, else the panel's.

    Raises
    ------
    MocapError
        Nothing is chosen, or it cannot be read.
    """
    return run(steps_for(context, filepath, owner, rig, action), None, "")


def steps_for(context: bpy.types.Context, filepath: str, owner: object, rig: str = "", action: str = "") -> Steps[Reading]:
    """:func:`take_for` step by step."""
    scene = context.scene
    if rig:
        return (yield from rig_takes.read_steps(rig_takes.RigChoice(rig, action)))
    if not filepath and scene.mocap.source == "RIG":
        found = rig_takes.choice(scene)
        if found is None:
            raise MocapError("No rig is chosen; pick the armature whose motion is wanted in the Mocap tab.")
        return (yield from rig_takes.read_steps(found))
    path = filepath or scene.mocap.filepath
    if not path:
        raise MocapError("No take is chosen; choose a motion capture file in the Mocap tab.")
    return (yield from takes.read_steps(path, settings.read_options(owner)))
