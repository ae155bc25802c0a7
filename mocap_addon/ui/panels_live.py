# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel "Live" of the Mocap tab: what is listened to, who moves, recording, sending."""

from __future__ import annotations

import time

import bpy

from ..stream.protocols import PROTOCOLS
from . import live, live_folder, live_notes, live_send, live_takes
from .panels import _Tab, paragraph

_ICONS = {"body": "ARMATURE_DATA", "prop": "OBJECT_DATA", "morphs": "SHAPEKEY_DATA"}


class MOCAP_UL_live_performers(bpy.types.UIList):
    """Who was heard: name, how it arrives, what it drives."""

    def draw_item(self, context, layout, data, item, icon, active_data, active_property, index=0, flt_flag=0) -> None:
        found = live.running()
        moment = found.shown.get(item.identity) if found is not None else None
        heard = moment is not None and not moment.stale
        row = layout.row(align=True)
        name = row.row(align=True)
        name.active = heard or found is None
        name.prop(item, "name", text="", emboss=False, icon=_ICONS.get(item.kind, "QUESTION"))
        row.prop(item, "target", text="")
        row.prop(item, "use", text="", icon="HIDE_OFF" if item.use else "HIDE_ON", emboss=False)


class MOCAP_UL_live_sources(bpy.types.UIList):
    """Ports that are listened to, and how they are."""

    def draw_item(self, context, layout, data, item, icon, active_data, active_property, index=0, flt_flag=0) -> None:
        state = _state(index)
        icon = "RADIOBUT_OFF" if state is None else "ERROR" if state.message else "RADIOBUT_ON" if state.rate else "RADIOBUT_OFF"
        row = layout.row(align=True)
        row.prop(item, "protocol", text="", icon=icon, emboss=False)
        port = row.row(align=True)
        port.alignment = "RIGHT"
        port.label(text=f"{item.transport.split('-')[0]} {item.port}", translate=False)


class MOCAP_PT_live(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_live"
    bl_label = "Live"
    bl_order = 20
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout, settings, found = self.layout, context.scene.mocap.live, live.running()
        row = layout.row()
        row.template_list("MOCAP_UL_live_sources", "", settings, "sources", settings, "active_source", rows=2)
        column = row.column(align=True)
        column.operator("mocap.live_add_source", text="", icon="ADD")
        column.operator("mocap.live_remove_source", text="", icon="REMOVE")
        if 0 <= settings.active_source < len(settings.sources):
            _draw_source(layout, context, settings.sources[settings.active_source], settings.active_source)
        elif not len(settings.sources):
            paragraph(layout, context, "Add a source, and set the port that the sender sends to.", "INFO")
        row = layout.row()
        row.scale_y = 1.4
        if found is None:
            row.operator("mocap.live_start", icon="PLAY")
        else:
            row.operator("mocap.live_stop", icon="PAUSE")
            for sentence in dict.fromkeys([*filter(None, [found.message]), *found.session.messages()[-2:]]):
                paragraph(layout, context, sentence, "INFO")


def _state(index: int):
    found = live.running()
    states = found.session.sources() if found is not None else []
    return states[index] if index < len(states) else None


def _draw_source(layout: bpy.types.UILayout, context: bpy.types.Context, source, index: int) -> None:
    column = layout.column(align=True)
    column.use_property_split = True
    column.use_property_decorate = False
    column.prop(source, "port")
    column.prop(source, "transport")
    column.prop(source, "host")
    if source.transport == "UDP":
        column.prop(source, "group", placeholder="none")
    if source.protocol == "NATNET":
        column.prop(source, "server", placeholder="not asked")
    state = _state(index)
    if state is None:
        return
    if state.message:
        paragraph(layout, context, state.message, "ERROR")
        return
    words = [f"{state.rate:.0f} packets/s"]
    if state.loss is not None:
        words.append(f"{100.0 * state.loss:.1f} % lost")
    if state.latency is not None:
        words.append(f"{1000.0 * state.latency:.0f} ms late")
    if state.drops:
        words.append(f"{state.drops} dropped by the system")
    if state.unknown or state.broken:
        words.append(f"{state.unknown + state.broken} not understood")
    if state.age is not None and state.age > 1.0:
        words.append(f"silent for {state.age:.0f} s")
    title = ", ".join(PROTOCOLS[name].title for name in state.protocols if name in PROTOCOLS)
    title = f"{title}: " if title else ""
    paragraph(layout, context, title + ", ".join(words) if state.packets else "Nothing has arrived yet.", "BLANK1")


class MOCAP_PT_live_performers(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_live_performers"
    bl_parent_id = "MOCAP_PT_live"
    bl_label = "Performers"

    def draw(self, context: bpy.types.Context) -> None:
        layout, settings, found = self.layout, context.scene.mocap.live, live.running()
        if not len(settings.performers):
            paragraph(layout, context, "Everybody who is heard shows here, and can be given a character.", "INFO")
            return
        layout.template_list("MOCAP_UL_live_performers", "", settings, "performers", settings, "active_performer", rows=3)
        if found is not None and 0 <= settings.active_performer < len(settings.performers):
            _draw_performer(layout, context, found, settings.performers[settings.active_performer])
        column = layout.column(align=True)
        column.use_property_split = True
        column.use_property_decorate = False
        column.prop(settings, "back")
        row = layout.row(align=True)
        left = 0.0 if found is None or found.calibrate_at is None else max(0.0, found.calibrate_at - time.monotonic())
        row.operator("mocap.live_calibrate", text=f"In {left:.0f} s ..." if left else "Calibrate", icon="OUTLINER_OB_ARMATURE")
        row.prop(settings, "calibrate_in", text="")
        if any(b.reference for b in settings.performers):
            row.operator("mocap.live_clear_calibration", text="", icon="X")
        layout.operator("mocap.live_forget", icon="TRASH")


def _draw_performer(layout: bpy.types.UILayout, context: bpy.types.Context, found: live.Running, binding) -> None:
    if binding.identity in found.refused:
        paragraph(layout, context, found.refused[binding.identity], "ERROR")
        return
    one = next((p for p in found.session.performers() if live_notes.identity(p.key) == binding.identity), None)
    if one is None:
        paragraph(layout, context, "Not heard in this session.", "BLANK1")
        return
    s = one.statistics
    words = [PROTOCOLS[one.protocol].title if one.protocol in PROTOCOLS else one.protocol, f"{s.rate:.0f} a second"]
    words += [f"{100.0 * s.loss:.1f} % lost"] if s.loss is not None else []
    words += [f"{1000.0 * s.jitter:.0f} ms jitter"] if s.jitter is not None else []
    words += ["stale: the last pose is held"] if one.stale else []
    words += ["calibrated"] if binding.reference else []
    paragraph(layout, context, ", ".join(words), "BLANK1")


class MOCAP_PT_live_record(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_live_record"
    bl_parent_id = "MOCAP_PT_live"
    bl_label = "Record"

    def draw(self, context: bpy.types.Context) -> None:
        layout, settings, found = self.layout, context.scene.mocap.live, live.running()
        recording = found is not None and (found.session.recording is not None or found.record_at is not None)
        row = layout.row()
        row.scale_y = 1.6
        if recording:
            assert found is not None
            row.alert = True
            row.operator("mocap.live_stop_recording", text=_clock(found), icon="SNAP_FACE")
        else:
            row.operator("mocap.live_record", text=f"Record {live_folder.take_name(context.scene)}", icon="REC")
        column = layout.column(align=True)
        column.use_property_split = True
        column.use_property_decorate = False
        column.enabled = not recording
        column.prop(settings, "slate", placeholder="none")
        column.prop(settings, "take")
        column.prop(settings, "number")
        column.separator()
        column.prop(settings, "countdown")
        column.prop(settings, "preroll")
        column.prop(settings, "keys")
        column.prop(settings, "folder", placeholder="beside the file")
        last = live_takes.last()
        if last is not None and not recording:
            row = layout.row(align=True)
            row.label(text=last.name, icon="FILE_TICK", translate=False)
            for stars in range(1, 6):
                icon = "SOLO_ON" if stars <= settings.rating else "SOLO_OFF"
                row.operator("mocap.live_rate", text="", icon=icon, emboss=False).stars = stars
        layout.operator("mocap.live_use_recording", icon="FILE_FOLDER")


def _clock(found: live.Running) -> str:
    if found.record_at is not None:
        return f"In {max(0.0, found.record_at - time.monotonic()):.0f} s ..."
    notes = found.session.notes
    seconds = time.time() - notes.start if notes is not None and notes.start is not None else 0.0
    return f"Stop   {int(seconds // 60):02d}:{seconds % 60:04.1f}"


class MOCAP_PT_live_send(_Tab, bpy.types.Panel):
    bl_idname = "MOCAP_PT_live_send"
    bl_parent_id = "MOCAP_PT_live"
    bl_label = "Send"
    bl_options = {"DEFAULT_CLOSED"}

    def draw(self, context: bpy.types.Context) -> None:
        layout, settings, sending = self.layout, context.scene.mocap.live, live_send.sending()
        column = layout.column(align=True)
        column.use_property_split = True
        column.use_property_decorate = False
        for name in ("send_protocol", "send_host", "send_port", "send_speed", "send_loop"):
            column.prop(settings, name)
        if sending is None:
            layout.operator("mocap.live_send", icon="EXPORT")
            return
        layout.operator("mocap.live_stop_sending", icon="PAUSE")
        text = sending.message or f"{sending.name} to {sending.to}: {sending.player.position:.1f} s"
        paragraph(layout, context, text, "ERROR" if sending.message else "BLANK1")


CLASSES = (
    MOCAP_UL_live_sources,
    MOCAP_UL_live_performers,
    MOCAP_PT_live,
    MOCAP_PT_live_performers,
    MOCAP_PT_live_record,
    MOCAP_PT_live_send,
)
