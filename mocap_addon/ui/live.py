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
from ..stream.performers import Key
from ..stream.sample import Sampled
from ..stream.session import LiveSession, recover
from ..stream.sidecar import Sidecar, reference_text, unfinished
from ..stream.supervisor import Source, StreamError
from . import body, live_hold, live_notes, live_send, preview, table_sync
from .live_notes import identity, reference_of

INTERVAL = 1.0 / 60.0
_SEEN_EVERY = 0.25
_CHECKED_EVERY = 1.0
_MOST_PERFORMERS = 64
_IN_USE = 10.0
_KINDS = {"body": "Performer", "prop": "Prop", "morphs": "Face"}


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
    _running = Running(session, folder, scene.name, message=_cut_short(scene))
    if not bpy.app.background and not bpy.app.timers.is_registered(_tick):
        bpy.app.timers.register(_tick, first_interval=0.0, persistent=True)


def _cut_short(scene: bpy.types.Scene) -> str:
    """A sentence on recordings that a crash has cut short: they are whole up to that moment, and said once."""
    folder = _folder(scene)
    cut = unfinished(folder) if folder.is_dir() else []
    if not cut or any(time.time() - path.stat().st_mtime < _IN_USE for path in cut):
        return ""  # another Blender may be recording there
    found = recover(folder)
    names = ", ".join(path.name for path in found[:3])
    return f"{names}: cut short by a crash, whole up to that moment; Actions of a Recording makes actions of it."


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
            _show(found, scene)
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


def _show(found: Running, scene: bpy.types.Scene) -> None:
    items = found.session.feed.all()
    bindings = _bindings(scene, [k for k in items])
    wanted = {identity(key): key for key in items}
    keys = [wanted[b.identity] for b in bindings if b.identity in wanted]
    moments = found.session.poll(keys=keys) if keys else {}
    found.shown = {identity(key): moment for key, moment in moments.items()}
    frame = scene.frame_current_final
    check = time.monotonic() - found.checked > _CHECKED_EVERY
    if check:
        found.checked = time.monotonic()
        found.refused.clear()
        found.rigs = {who: one for who, one in found.rigs.items() if _still_there(one.obj) and one.current}
    rigs: list[live_pose.Rig] = []
    poses: list[Sampled] = []
    for binding in bindings:
        moment, obj = found.shown.get(binding.identity), binding.target
        if moment is None or obj is None or not binding.use or binding.identity in found.refused:
            continue
        try:
            if moment.skeleton is None:
                continue
            if preview.shown_on(obj) or obj.mocap.posing != preview.NONE:
                continue  # a person works on its reference pose
            live_hold.take_off(obj, frame)
            if binding.kind == "body":
                rigs.append(_rig_of(found, binding, obj, moment))
                poses.append(moment)
                _faces(found, binding, obj, moment)
            else:
                live_pose.write_object(obj, moment.rotations[0], moment.translations[0], float(scene.unit_settings.scale_length))
        except MocapError as error:
            found.refused[binding.identity] = str(error)
    if rigs:
        live_pose.write_all(rigs, [p.rotations for p in poses], [p.translations for p in poses])
    for binding in bindings:
        moment, obj = found.shown.get(binding.identity), binding.target
        if binding.kind == "morphs" and moment is not None and obj is not None and binding.use:
            live_hold.take_off(obj, frame)
            _faces(found, binding, obj, moment)


def _rig_of(found: Running, binding, obj: bpy.types.Object, moment: Sampled) -> live_pose.Rig:
    """What carries the performer's pose to the character, made anew where either has changed."""
    known = found.rigs.get(binding.identity)
    assert moment.skeleton is not None
    if known is not None and _still_there(known.obj) and known.obj == obj and known.fits and known.performer is moment.skeleton:
        return known
    source = live_pose.rested(moment.skeleton, *reference_of(binding, moment.skeleton))
    made = live_pose.Rig(
        obj,
        source,
        table_sync.to_table(obj),
        controls=bpy.data.scenes[found.scene].mocap.controls.lower() if found.scene in bpy.data.scenes else "auto",
        adjustments=body.adjustments(obj, _scene()),
    )
    made.performer = moment.skeleton
    found.rigs[binding.identity] = made
    return made


def _still_there(obj: bpy.types.Object) -> bool:
    """Whether the object was not deleted."""
    try:
        return bool(obj.name)
    except ReferenceError:
        return False


def _faces(found: Running, binding, obj: bpy.types.Object, moment: Sampled) -> None:
    if not moment.curves:
        return
    known = found.faces.get(binding.identity)
    if known is None or any(name not in known.names for name in moment.curves):
        names = dict.fromkeys((*(known.names if known is not None else ()), *moment.curves))
        known = found.faces[binding.identity] = live_pose.Face(obj, list(names))
    known.write(moment.curves)


def _bindings(scene: bpy.types.Scene, keys: list[Key]) -> list:
    """The scene's list of performers, with those who were heard for the first time."""
    listed = scene.mocap.live.performers
    known = {b.identity for b in listed}
    for key in keys:
        who = identity(key)
        if who in known or key[1] == "info" or len(listed) >= _MOST_PERFORMERS:
            continue
        known.add(who)
        made = listed.add()
        made.identity, made.kind, made.protocol = who, key[1], key[0].partition(" ")[0]
        made.name = f"{_KINDS[key[1]]} {key[2]}" if key[2].isdigit() else key[2]  # protocols that only number them
        _choose_character(scene, made)
    return list(listed)


def _choose_character(scene: bpy.types.Scene, made) -> None:
    """The first performer drives the panel's character, where nobody does; a prop the object of its name."""
    listed = scene.mocap.live.performers
    taken = {b.target for b in listed if b.target is not None}
    if made.kind == "body":
        obj = scene.mocap.target
        if obj is None:
            armatures = [o for o in scene.objects if o.type == "ARMATURE"]
            obj = armatures[0] if len(armatures) == 1 else None
        if obj is not None and obj not in taken and obj.library is None:
            made.target = obj
    elif made.kind == "prop":
        obj = scene.objects.get(made.name)
        if obj is not None and obj.type != "ARMATURE" and obj not in taken and obj.library is None:
            made.target = obj


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
    folder = recordings(scene)
    while (folder / f"{take_name(scene)}.pcap").exists():
        settings.number += 1
    notes = Sidecar(take=_clean(settings.take) or "Take", number=settings.number, slate=settings.slate)
    live_notes.keep(found.session, found.rigs, scene, notes)
    settings.rating = 0
    found.session.record(folder / f"{take_name(scene)}.pcap", preroll=float(settings.preroll), notes=notes)
    found.message = ""


def take_name(scene: bpy.types.Scene) -> str:
    """Slate, name and number of the next take, as a file's name."""
    settings = scene.mocap.live
    parts = (_clean(settings.slate), _clean(settings.take) or "Take", f"{settings.number:03d}")
    return "_".join(part for part in parts if part)


def _clean(text: str) -> str:
    return "".join(c if c.isalnum() or c in " -." else "_" for c in text).strip(" .")[:80]


def recordings(scene: bpy.types.Scene) -> Path:
    """The folder of recordings; made where it is not there.

    Raises
    ------
    StreamError
        It cannot be made.
    """
    folder = _folder(scene)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StreamError(f'The folder "{folder}" for recordings cannot be made ({error.strerror}); choose another.') from None
    return folder


def _folder(scene: bpy.types.Scene) -> Path:
    chosen = scene.mocap.live.folder.strip()
    if chosen:
        return Path(bpy.path.abspath(chosen))
    return Path(bpy.data.filepath).parent / "mocap" if bpy.data.filepath else Path(_own_folder())


def _own_folder() -> str:
    package = __package__.rpartition(".")[0]
    if package.startswith("bl_ext."):
        return bpy.utils.extension_path_user(package, path="recordings", create=True)
    return str(Path(bpy.utils.resource_path("USER")) / "mocap_recordings")


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
