# SPDX-License-Identifier: GPL-3.0-or-later
"""Live motion: sources, start and stop, calibration, recording, and sending. None of them is modal."""

from __future__ import annotations

import contextlib

import bpy
from bpy.props import FloatProperty, IntProperty, StringProperty

from ..motion.errors import MocapError
from . import live, live_folder, live_send, live_takes


class _Reports:
    """An error is one sentence, and the operator is cancelled."""

    def run(self, context: bpy.types.Context) -> None:
        raise NotImplementedError

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            self.run(context)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"FINISHED"}


class _NeedsSession(_Reports):
    """Only while something is listened to."""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if live.running() is None:
            cls.poll_message_set("Press Start first")
            return False
        return True


class MOCAP_OT_live_add_source(bpy.types.Operator):
    """Listen to one more port"""

    bl_idname = "mocap.live_add_source"
    bl_label = "Add Source"
    bl_options = {"REGISTER", "UNDO"}

    protocol: StringProperty(name="Protocol", description="A protocol's name, such as MVN or VMC. Empty: found out", options={"SKIP_SAVE"})
    port: IntProperty(name="Port", description="The port. 0: the protocol's usual one", min=0, max=65535, options={"SKIP_SAVE"})

    def execute(self, context: bpy.types.Context) -> set[str]:
        settings = context.scene.mocap.live
        names = [item[0] for item in live.protocol_items()]
        wanted = self.protocol.upper() or "AUTO"
        if wanted not in names:
            self.report({"ERROR"}, f'There is no protocol called "{self.protocol}"; there are {", ".join(names[1:])}.')
            return {"CANCELLED"}
        made = settings.sources.add()
        made.protocol = wanted
        if self.port:
            made.port = self.port
        settings.active_source = len(settings.sources) - 1
        return {"FINISHED"}


class MOCAP_OT_live_remove_source(bpy.types.Operator):
    """Listen to this port no more"""

    bl_idname = "mocap.live_remove_source"
    bl_label = "Remove Source"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if not context.scene.mocap.live.sources:
            cls.poll_message_set("There is no source to remove")
            return False
        return True

    def execute(self, context: bpy.types.Context) -> set[str]:
        settings = context.scene.mocap.live
        settings.sources.remove(min(settings.active_source, len(settings.sources) - 1))
        settings.active_source = max(0, min(settings.active_source, len(settings.sources) - 1))
        live.sources_changed()
        return {"FINISHED"}


class MOCAP_OT_live_start(_Reports, bpy.types.Operator):
    """Listen to the sources and show what is received on the characters. Their own animation is put aside meanwhile, and comes back"""

    bl_idname = "mocap.live_start"
    bl_label = "Start"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if not context.scene.mocap.live.sources:
            cls.poll_message_set("Add a source first")
            return False
        return True

    def run(self, context: bpy.types.Context) -> None:
        live.start(context.scene)


class MOCAP_OT_live_stop(_Reports, bpy.types.Operator):
    """Listen no more. Every character gets its own animation and pose back; a running recording is finished and kept"""

    bl_idname = "mocap.live_stop"
    bl_label = "Stop"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return live.running() is not None

    def run(self, context: bpy.types.Context) -> None:
        live.stop()


class MOCAP_OT_live_forget(bpy.types.Operator):
    """Take performers off the list who are not heard any more"""

    bl_idname = "mocap.live_forget"
    bl_label = "Clear the List"
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        settings, found = context.scene.mocap.live, live.running()
        heard = found.shown if found is not None else {}
        for i in reversed(range(len(settings.performers))):
            if settings.performers[i].identity not in heard:
                settings.performers.remove(i)
        live.bindings_changed()
        return {"FINISHED"}


class MOCAP_OT_live_calibrate(_NeedsSession, bpy.types.Operator):
    """Take the pose in which the performers stand after the countdown as the one that their characters have at rest: a T-pose as a rule"""

    bl_idname = "mocap.live_calibrate"
    bl_label = "Calibrate"

    seconds: FloatProperty(name="Countdown", description="Seconds until the pose is taken. Below 0: as set in the panel", default=-1.0)

    def run(self, context: bpy.types.Context) -> None:
        live.calibrate(context.scene.mocap.live.calibrate_in if self.seconds < 0.0 else self.seconds)


class MOCAP_OT_live_clear_calibration(bpy.types.Operator):
    """Compare the performer with the character as the stream says again"""

    bl_idname = "mocap.live_clear_calibration"
    bl_label = "Clear Calibration"
    bl_options = {"REGISTER", "UNDO"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        for binding in context.scene.mocap.live.performers:
            binding.reference = ""
        live.forget()
        return {"FINISHED"}


class MOCAP_OT_live_record(_NeedsSession, bpy.types.Operator):
    """Record everything that is received, after the countdown. The recording is a file of its own that nothing here can lose"""

    bl_idname = "mocap.live_record"
    bl_label = "Record"

    def run(self, context: bpy.types.Context) -> None:
        live.record(context.scene)


class MOCAP_OT_live_stop_recording(bpy.types.Operator):
    """End the recording; an action is made for every performer and prop that drives something"""

    bl_idname = "mocap.live_stop_recording"
    bl_label = "Stop Recording"
    bl_options = {"REGISTER", "UNDO"}

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        found = live.running()
        return found is not None and (found.session.recording is not None or found.record_at is not None)

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            path = live_takes.stop(context.scene)
            if path is None:
                self.report({"INFO"}, "Nothing was recorded: the countdown had not ended.")
                return {"CANCELLED"}
            made, notes = live_takes.actions_of(context.scene, path)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        for note in notes[:4]:
            self.report({"WARNING"}, note)
        self.report({"INFO"}, live_takes.sentence(path, made))
        return {"FINISHED"}


class MOCAP_OT_live_use_recording(bpy.types.Operator):
    """Make actions of a recording again, for the performers and props as they are set now"""

    bl_idname = "mocap.live_use_recording"
    bl_label = "Actions of a Recording"
    bl_options = {"REGISTER", "UNDO"}

    filepath: StringProperty(name="Recording", subtype="FILE_PATH", options={"SKIP_SAVE"})
    filter_glob: StringProperty(default="*.pcap;*.pcapng", options={"HIDDEN"})

    def invoke(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if self.filepath:
            return self.execute(context)
        with contextlib.suppress(MocapError):
            self.filepath = str(live_folder.recordings(context.scene)) + "/"
        context.window_manager.fileselect_add(self)
        return {"RUNNING_MODAL"}

    def execute(self, context: bpy.types.Context) -> set[str]:
        try:
            made, notes = live_takes.actions_of(context.scene, bpy.path.abspath(self.filepath))
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        for note in notes[:4]:
            self.report({"WARNING"}, note)
        self.report({"INFO"}, live_takes.sentence(self.filepath, made))
        return {"FINISHED"}


class MOCAP_OT_live_rate(bpy.types.Operator):
    """Say how good the last take was"""

    bl_idname = "mocap.live_rate"
    bl_label = "Rate the Take"
    bl_options = {"INTERNAL"}

    stars: IntProperty(name="Stars", min=0, max=5)

    def execute(self, context: bpy.types.Context) -> set[str]:
        settings = context.scene.mocap.live
        settings.rating = 0 if settings.rating == self.stars else self.stars
        live_takes.rate(settings.rating)
        return {"FINISHED"}


class MOCAP_OT_live_send(_Reports, bpy.types.Operator):
    """Send the take of the panel, or the character's own animation where no take is chosen, as a live stream"""

    bl_idname = "mocap.live_send"
    bl_label = "Send"

    def run(self, context: bpy.types.Context) -> None:
        live_send.start(context.scene)


class MOCAP_OT_live_stop_sending(_Reports, bpy.types.Operator):
    """Send no more"""

    bl_idname = "mocap.live_stop_sending"
    bl_label = "Stop Sending"

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        return live_send.sending() is not None

    def run(self, context: bpy.types.Context) -> None:
        live_send.stop()


CLASSES = (
    MOCAP_OT_live_add_source,
    MOCAP_OT_live_remove_source,
    MOCAP_OT_live_start,
    MOCAP_OT_live_stop,
    MOCAP_OT_live_forget,
    MOCAP_OT_live_calibrate,
    MOCAP_OT_live_clear_calibration,
    MOCAP_OT_live_record,
    MOCAP_OT_live_stop_recording,
    MOCAP_OT_live_use_recording,
    MOCAP_OT_live_rate,
    MOCAP_OT_live_send,
    MOCAP_OT_live_stop_sending,
)
