# SPDX-License-Identifier: GPL-3.0-or-later
"""What a retarget would give at the current frame, shown on the character at once, while the table is edited.

Only pose bones are written, and the switches of their controls. A pose set on bones stays until the frame changes, whatever action is
assigned, so actions, NLA and drivers are left alone. After a frame change, when the action has put its own pose there, the preview of the
new frame is written over it. The pose from before is kept with the object (:mod:`.kept_pose`) and put back when the preview ends, before a
retarget, and for the moment of saving: a preview never gets into a file or an action.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import bpy

from ..blender import channels, leftovers, rig_links
from ..blender.armature import Target
from ..blender.channels import Channels
from ..blender.job import JobOptions
from ..motion.errors import MocapError
from ..motion.take import Take
from ..retarget.motion import PoseMotion
from ..rig.table import CorrectionTable
from . import body, fitting, kept_pose, settings, shown, table_sync, takes
from .fitting import Fitting

NONE, PREVIEW, REFERENCE = "NONE", "PREVIEW", "REFERENCE"

_live: dict[int, str] = {}
"""``session_uid`` of the characters that show something, and what: a frame change asks nothing more when it is empty."""

_problems: dict[int, str] = {}
_written: dict[int, frozenset[str]] = {}
_controls: dict[int, str] = {}
_before_change: dict[int, str] = {}
_before_save: dict[int, tuple[str, str, bool, str]] = {}


# --- begin and end ----------------------------------------------------------------------------------------------------------------------


def begin(scene: bpy.types.Scene, obj: bpy.types.Object) -> None:
    """Show the character at the current frame of the take, and go on doing so.

    Raises
    ------
    MocapError
        There is nothing to show; the pose is as it was.
    """
    table, job = _table(obj), settings.job_options(scene.mocap)
    found = fitting.fit(obj, panel_take(scene), table, job)
    motion = _motion(scene, obj, found, table, job)
    hold(scene, obj, PREVIEW)
    _controls[obj.session_uid] = scene.mocap.controls
    _show(scene, obj, found.target, motion)


def hold(scene: bpy.types.Scene, obj: bpy.types.Object, what: str) -> None:
    """Keep the present pose aside; ``what`` is going to be shown instead."""
    if obj.mocap.live:
        raise MocapError(f'"{obj.name}" is driven by live motion now; turn that off under Live first.')
    if obj.mocap.posing == NONE:
        obj.mocap.kept_pose = kept_pose.kept(obj, scene.frame_current_final)
        obj.mocap.kept_place = False
    obj.mocap.posing = what
    _live[obj.session_uid] = what


def end(scene: bpy.types.Scene, obj: bpy.types.Object) -> bool:
    """Put the kept pose back; whether there was one."""
    _live.pop(obj.session_uid, None)
    _problems.pop(obj.session_uid, None)
    _written.pop(obj.session_uid, None)
    _controls.pop(obj.session_uid, None)
    state = obj.mocap
    if state.posing == NONE:
        return False
    kept_pose.put_back(obj, state.kept_pose, scene.frame_current_final, place=state.kept_place)
    state.posing, state.kept_pose, state.kept_place = NONE, "", False
    return True


def shown_on(obj: bpy.types.Object) -> bool:
    """Whether the object shows a preview."""
    return obj.mocap.posing == PREVIEW


def problem(obj: bpy.types.Object) -> str:
    """Why the preview does not show the table as it stands; empty when it does."""
    return _problems.get(obj.session_uid, "")


# --- keeping up -------------------------------------------------------------------------------------------------------------------------


def refresh(scene: bpy.types.Scene, obj: bpy.types.Object, table: CorrectionTable | None = None, found: Fitting | None = None) -> None:
    """Show the table and the settings as they are now, if the object shows a preview at all. ``found``: take and character by that table,
    where they have been held against each other already."""
    if not shown_on(obj):
        return
    _live[obj.session_uid] = PREVIEW
    try:
        table, job = table or _table(obj), settings.job_options(scene.mocap)
        if _controls.get(obj.session_uid, scene.mocap.controls) != scene.mocap.controls:
            # which controls hold a limb is asked of the rig as it is without a preview
            kept_pose.put_back(obj, obj.mocap.kept_pose, scene.frame_current_final, place=obj.mocap.kept_place)
            found = None
        _controls[obj.session_uid] = scene.mocap.controls
        found = found or fitting.fit(obj, panel_take(scene), table, job)
        _show(scene, obj, found.target, _motion(scene, obj, found, table, job))
        _problems.pop(obj.session_uid, None)
    except MocapError as error:
        _problems[obj.session_uid] = str(error)


def refresh_all(scene: bpy.types.Scene) -> None:
    """The same for every character of the scene that shows a preview."""
    for obj in showing():
        if scene in obj.users_scene:
            refresh(scene, obj)


def end_all() -> None:
    """Every character gets its own pose back."""
    for obj in showing():
        end(next(iter(obj.users_scene), bpy.context.scene), obj)
    forget_all()


def forget_all() -> None:
    """Let go of everything."""
    for store in (_live, _problems, _written, _controls, _before_change, _before_save):
        store.clear()
    shown.forget_all()


# --- what is shown ----------------------------------------------------------------------------------------------------------------------


def _motion(scene: bpy.types.Scene, obj: bpy.types.Object, found: Fitting, table: CorrectionTable, job: JobOptions) -> PoseMotion:
    """One sample of what Retarget would write at the current frame."""
    return shown.motion_at(scene, obj, found, table, job, body.adjustments(obj, scene), scene.frame_current_final)


def panel_take(scene: bpy.types.Scene) -> Take:
    """The take the panel is set to, from memory; read when it is not there."""
    if not takes.chosen(scene):
        raise MocapError("No take is chosen; choose a motion capture file, or a rig, in the Mocap tab.")
    reading = takes.loaded(scene) or takes.read_for_panel(scene)
    if reading.error:
        raise MocapError(reading.error)
    return reading.takes[0]


def write_pose(obj: bpy.types.Object, target: Target, motion: PoseMotion) -> None:
    """The first sample onto the pose bones, and onto the object where it carries them; switches of controls as it needs them."""
    _write(obj, channels.pose_channels(target, motion))
    _set(obj, motion)


def _write(obj: bpy.types.Object, found: Iterable[Channels]) -> None:
    bones = obj.pose.bones
    for channel in found:
        if channel.stepped:
            continue  # switches: see :func:`_set`
        if channel.group == channels.OBJECT_GROUP and "." not in channel.path:
            setattr(obj, channel.path, channel.values[0])
            obj.mocap.kept_place = True
        else:
            setattr(bones[channel.group], channel.path.rpartition(".")[2], channel.values[0])


def _set(obj: bpy.types.Object, motion: PoseMotion) -> None:
    """The switches of controls; what they stood at is kept with the pose."""
    wanted = [setting for setting in motion.settings if rig_links.value_of(obj, *setting[:2]) != setting[2]]
    if wanted:
        obj.mocap.kept_pose = kept_pose.with_settings(obj, obj.mocap.kept_pose, wanted)
        for bone, prop, value in wanted:
            rig_links.set_value(obj, bone, prop, value)
        obj.update_tag()


def _show(scene: bpy.types.Scene, obj: bpy.types.Object, target: Target, motion: PoseMotion) -> None:
    """The motion, and rest for what the assigned action moves and a new action would put back."""
    state = obj.mocap
    wanted = list(channels.pose_channels(target, motion))
    wanted += leftovers.rest_keys(obj, target, motion, {channel.path for channel in wanted})
    now = frozenset(channel.path for channel in wanted)
    if _written.get(obj.session_uid, now) - now:  # a bone is left out now: it gets back what it has of its own at this frame
        kept_pose.put_back(obj, state.kept_pose, scene.frame_current_final, place=state.kept_place)
        bpy.context.view_layer.update()
    _written[obj.session_uid] = now
    _write(obj, wanted)
    _set(obj, motion)


def _table(obj: bpy.types.Object) -> CorrectionTable:
    table = table_sync.to_table(obj)
    if table is None:
        raise MocapError("The bones are not matched yet; press Match under Bones.")
    return table


def _objects() -> Iterator[bpy.types.Object]:
    return (obj for obj in bpy.data.objects if obj.type == "ARMATURE" and obj.library is None)


def showing() -> list[bpy.types.Object]:
    """The characters that show a preview or a reference pose."""
    return [obj for obj in _objects() if obj.session_uid in _live] if _live else []


# --- Blender's events -------------------------------------------------------------------------------------------------------------------


@bpy.app.handlers.persistent
def before_frame_change(scene: bpy.types.Scene, *_: object) -> None:
    """A pose that a person is making is remembered."""
    _before_change.clear()
    if not bpy.app.is_job_running("RENDER"):
        for obj in showing():
            if obj.mocap.posing == REFERENCE:
                _before_change[obj.session_uid] = kept_pose.kept(obj, scene.frame_current_final, like=obj.mocap.kept_pose)


@bpy.app.handlers.persistent
def after_frame_change(scene: bpy.types.Scene, *_: object) -> None:
    """The action has put its own pose there: previews follow to the new frame, a pose in the making stays."""
    if _live and not bpy.app.is_job_running("RENDER"):
        for obj in showing():
            if obj.session_uid in _before_change:
                kept_pose.put_back(obj, _before_change[obj.session_uid], None, place=False)
        refresh_all(scene)


@bpy.app.handlers.persistent
def after_undo(*_: object) -> None:
    """Undo brings back what was on the objects; the memory of who shows what follows."""
    _live.clear()
    _live.update({obj.session_uid: obj.mocap.posing for obj in _objects() if obj.mocap.posing != NONE})
    refresh_all(bpy.context.scene)


@bpy.app.handlers.persistent
def before_save(*_: object) -> None:
    """The file gets the kept pose, and nothing of what is shown."""
    _before_save.clear()
    for obj in _objects():
        state = obj.mocap
        if state.posing == NONE:
            continue
        seen = kept_pose.kept(obj, bpy.context.scene.frame_current_final, like=state.kept_pose)
        _before_save[obj.session_uid] = (state.posing, state.kept_pose, state.kept_place, seen)
        kept_pose.put_back(obj, state.kept_pose, None, place=state.kept_place)
        state.posing, state.kept_pose, state.kept_place = NONE, "", False


@bpy.app.handlers.persistent
def after_save(*_: object) -> None:
    """What was shown is shown again."""
    for obj in _objects():
        if obj.session_uid in _before_save:
            state = obj.mocap
            state.posing, state.kept_pose, state.kept_place, seen = _before_save[obj.session_uid]
            kept_pose.put_back(obj, seen, None, place=state.kept_place)
    _before_save.clear()


@bpy.app.handlers.persistent
def after_load(*_: object) -> None:
    """A file that was saved in the middle of a preview (a crash's autosave) opens with the pose from before it."""
    forget_all()
    for obj in _objects():
        if obj.mocap.posing != NONE:
            end(bpy.context.scene, obj)
