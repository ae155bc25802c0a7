# SPDX-License-Identifier: GPL-3.0-or-later
"""The live session of this Blender: a timer that reads on, shows poses, and begins recordings.

Nothing here is modal: the timer runs at the display's rate, also during playback and with the sidebar closed. In a Blender without a
window, where timers do not run, :func:`pump` does the same. What a person is told of it (who was heard, who drives what) lies in the scene.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import bpy

from ..blender import live_pose
from ..motion.errors import MocapError
from ..stream.greetings import greeted
from ..stream.sample import Sampled
from ..stream.session import LiveSession
from ..stream.sidecar import Sidecar, reference_text
from ..stream.supervisor import Source, StreamError
from . import live_folder, live_hold, live_notes, live_send, live_show

INTERVAL = 1.0 / 60.0
_SEEN_EVERY = 0.25


@dataclass
class Running:
    """A session and what was worked out for its performers."""

    session: LiveSession
    folder: tempfile.TemporaryDirectory
    scene: str
    rigs: dict[str, live_pose.Rig] = field(default_factory=dict)
    faces: dict[str, live_pose.Face] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    """Identity -> why it drives nothing."""
    shown: dict[str, Sampled] = field(default_factory=dict)
    calibrate_at: float | None = None
    record_at: float | None = None
    message: str = ""
    seen: float = 0.0
    checked: float = 0.0
    timing: dict[str, float] = field(default_factory=dict)


_running: Running | None = None


def running() -> Running | None:
    """The session that is on."""
    return _running


def protocol_items() -> tuple[tuple[str, str, str], ...]:
    """Identifier, name and description of every protocol, the first for finding out."""
    from . import live_properties

    return live_properties.ITEMS


# --- begin and end ----------------------------------------------------------------------------------------------------------------------


def start(scene: bpy.types.Scene) -> None:
    """Begin to listen to the scene's sources.

    Raises
    ------
    StreamError
        There is nothing to listen to, or nothing can run at all.
    """
    global _running
    stop()
    if not scene.mocap.live.sources:
        raise StreamError("There is no source yet; add one, and give it the port that the sender sends to.")
    folder = tempfile.TemporaryDirectory(prefix="mocap-live-", dir=bpy.app.tempdir or None)
    session = LiveSession(folder.name, sources_of(scene), back=scene.mocap.live.back, executable=_python())
    try:
        session.start()
    except BaseException:
        folder.cleanup()
        raise
    _running = Running(session, folder, scene.name, message=live_folder.cut_short(scene))
    if not bpy.app.background and not bpy.app.timers.is_registered(_tick):
        bpy.app.timers.register(_tick, first_interval=0.0, persistent=True)


def stop() -> None:
    """End the session: a running recording is finished, every character is as it was. Safe to call again."""
    global _running
    found, _running = _running, None
    if bpy.app.timers.is_registered(_tick):
        bpy.app.timers.unregister(_tick)
    if found is not None:
        found.session.close()
        found.folder.cleanup()
    live_hold.put_all_back(bpy.context.scene.frame_current_final if bpy.context.scene is not None else None)


def sources_of(scene: bpy.types.Scene) -> list[Source]:
    """What the scene listens to."""
    return [_source(one) for one in scene.mocap.live.sources]


def _source(one) -> Source:
    protocol = None if one.protocol == "AUTO" else one.protocol.lower()
    source = Source(one.port, one.transport.lower(), one.host.strip() or "127.0.0.1", one.group.strip() or None, protocol)
    server = one.server.strip() if protocol == "natnet" else ""
    if server:
        live_send.check_allowed(server)
    return greeted(source, server or None)


def _python() -> str | None:
    """The Python that runs the receiver: Blender's own."""
    return sys.executable if sys.executable and Path(sys.executable).name.lower().startswith("python") else _beside_blender()


def _beside_blender() -> str:
    """Python where Blender keeps it; empty where there is none, and the receiver runs inside Blender."""
    folder = Path(sys.prefix) / ("" if sys.platform == "win32" else "bin")
    return next((str(p) for p in sorted(folder.glob("python*")) if p.is_file() and "config" not in p.name), "")


def sources_changed() -> None:
    """A port was changed: a session that is on begins again with the new ones, unless it records."""
    if _running is not None and _running.session.recording is None:
        scene = bpy.data.scenes.get(_running.scene)
        if scene is None or not scene.mocap.live.sources:
            stop()
            return
        try:
            start(scene)
        except MocapError as error:
            stop()
            print(f"Mocap: {error}", file=sys.stderr)


def bindings_changed() -> None:
    """Somebody drives something else now: what is driven no longer gets its own motion back at once."""
    forget()
    scene = _scene()
    wanted = {b.target for b in scene.mocap.live.performers if b.use and b.target is not None} if scene is not None else set()
    for obj in live_hold.off():
        if obj not in wanted:
            live_hold.put_back(obj, scene.frame_current_final if scene is not None else None)


def set_back(seconds: float) -> None:
    """How far behind the sender the motion is shown."""
    if _running is not None:
        _running.session.back = seconds


def forget() -> None:
    """What was worked out for characters is worked out anew: after undo, a change of the table, another file."""
    if _running is not None:
        _running.rigs.clear()
        _running.faces.clear()
        _running.refused.clear()


def _scene() -> bpy.types.Scene | None:
    named = bpy.data.scenes.get(_running.scene) if _running is not None else None
    return named or bpy.context.scene or next(iter(bpy.data.scenes), None)


# --- the timer --------------------------------------------------------------------------------------------------------------------------


def _tick() -> float | None:
    if _running is None:
        return None
    tick()
    return INTERVAL


def tick() -> None:
    """Read on and show. Never raises: a fault is shown in the panel and the stream goes on."""
    found = _running
    if found is None:
        return
    try:
        began = time.perf_counter()
        found.session.tick()
        scene = _scene()
        if scene is not None:
            live_show.show(found, scene)
        now = time.perf_counter()
        found.timing["tick"] = now - began
        _due(found, time.monotonic())
        if now - found.seen > _SEEN_EVERY:
            found.seen = now
            _redraw()
    except Exception as error:  # the stream goes on whatever happens
        found.message = f"Something went wrong while showing live motion ({type(error).__name__}: {error}); it goes on."


def pump(seconds: float) -> None:
    """The timer's work for so many seconds, for scripts and for Blender without a window."""
    end = time.monotonic() + seconds
    while _running is not None and time.monotonic() < end:
        tick()
        bpy.context.view_layer.update()
        time.sleep(min(INTERVAL, max(0.0, end - time.monotonic())))


# --- calibration ------------------------------------------------------------------------------------------------------------------------


def calibrate(in_seconds: float) -> None:
    """Take everybody's pose of then as the one that stands as their characters do at rest.

    Raises
    ------
    StreamError
        Nobody is heard.
    """
    if _running is None:
        raise StreamError("Nothing is received; press Start under Live first.")
    if not any(moment.skeleton is not None and len(moment.rotations) > 1 for moment in _running.shown.values()):
        raise StreamError("Nobody is heard yet; begin to send, and look that the performer shows under Live.")
    _running.calibrate_at = time.monotonic() + in_seconds
    if in_seconds <= 0.0:
        _calibrate_now(_running)


def _calibrate_now(found: Running) -> None:
    found.calibrate_at = None
    scene = _scene()
    if scene is None:
        return
    count = 0
    for binding in scene.mocap.live.performers:
        moment = found.shown.get(binding.identity)
        if binding.kind != "body" or moment is None or moment.skeleton is None or moment.stale:
            continue
        rotations, translations = live_pose.stood(moment.skeleton, moment.rotations, moment.translations)
        binding.reference = reference_text(moment.skeleton.names, rotations, translations)
        count += 1
    forget()
    found.message = f"{count} performer{'s' if count != 1 else ''} calibrated." if count else "Nobody was heard, so nobody is calibrated."


# --- what is due ------------------------------------------------------------------------------------------------------------------------


def _due(found: Running, now: float) -> None:
    if found.calibrate_at is not None and now >= found.calibrate_at:
        _calibrate_now(found)
    if found.record_at is not None and now >= found.record_at:
        found.record_at = None
        scene = _scene()
        if scene is not None:
            try:
                _record_now(found, scene)
            except MocapError as error:
                found.message = str(error)


def record(scene: bpy.types.Scene) -> None:
    """Begin to record, after the scene's countdown.

    Raises
    ------
    StreamError
        Nothing is received, or a recording runs.
    """
    if _running is None:
        raise StreamError("Nothing is received; press Start under Live first.")
    if _running.session.recording is not None or _running.record_at is not None:
        raise StreamError("A recording is running already; stop it first.")
    wait = float(scene.mocap.live.countdown)
    if wait > 0.0 and not bpy.app.background:
        _running.record_at = time.monotonic() + wait
    else:
        _record_now(_running, scene)


def _record_now(found: Running, scene: bpy.types.Scene) -> None:
    settings = scene.mocap.live
    folder = live_folder.recordings(scene)
    while (folder / f"{live_folder.take_name(scene)}.pcap").exists():
        settings.number += 1
    notes = Sidecar(take=live_folder.clean(settings.take) or "Take", number=settings.number, slate=settings.slate)
    live_notes.keep(found.session, found.rigs, scene, notes)
    settings.rating = 0
    found.session.record(folder / f"{live_folder.take_name(scene)}.pcap", preroll=float(settings.preroll), notes=notes)
    found.message = ""


# --- Blender's events -------------------------------------------------------------------------------------------------------------------


def _redraw() -> None:
    for window in bpy.context.window_manager.windows if bpy.context.window_manager is not None else ():
        for area in window.screen.areas:
            if area.type == "VIEW_3D":
                for region in area.regions:
                    if region.type == "UI":
                        region.tag_redraw()


@bpy.app.handlers.persistent
def after_undo(*_: object) -> None:
    """Objects are others now. What undo has brought back as driven, without a session, is put right."""
    forget()
    if _running is None:
        live_hold.put_all_back(bpy.context.scene.frame_current_final)


@bpy.app.handlers.persistent
def after_load(*_: object) -> None:
    """Another file: it is listened on, for the performers that this file binds. A file saved by a crash is put right."""
    forget()
    live_hold.put_all_back(None)
    if _running is not None and bpy.context.scene is not None:
        _running.scene = bpy.context.scene.name
        if not bpy.app.background and not bpy.app.timers.is_registered(_tick):
            bpy.app.timers.register(_tick, first_interval=0.0, persistent=True)
