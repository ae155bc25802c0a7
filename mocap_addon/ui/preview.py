# SPDX-License-Identifier: GPL-3.0-or-later
"""What a retarget would give at the current frame, shown on the character at once, while the table is edited.

Only pose bones are written. A pose set on bones stays until the frame changes, whatever action is assigned, so actions, NLA and drivers are
left alone. After a frame change, when the action has put its own pose there, the preview of the new frame is written over it. The pose
from before is kept with the object (:mod:`.kept_pose`) and put back when the preview ends, before a retarget, and for the moment of saving:
a preview never gets into a file or an action.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import bpy
import numpy as np

from .. import retarget
from ..blender import channels, compat, recipes
from ..blender.armature import Target
from ..motion import quat
from ..motion.errors import MocapError
from ..motion.take import Take
from ..retarget.mask import Mask, part_of
from ..retarget.motion import PoseMotion
from ..rig.table import CorrectionTable
from . import body, fitting, kept_pose, settings, table_sync, takes
from .fitting import Fitting

NONE, PREVIEW, REFERENCE = "NONE", "PREVIEW", "REFERENCE"

_live: dict[int, str] = {}
"""``session_uid`` of the characters that show something, and what: a frame change asks nothing more when it is empty."""

_problems: dict[int, str] = {}
_written: dict[int, frozenset[int]] = {}
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
    motion = motion_at(scene, obj, _table(obj), scene.frame_current_final)
    hold(scene, obj, PREVIEW)
    _show(scene, obj, motion)


def hold(scene: bpy.types.Scene, obj: bpy.types.Object, what: str) -> None:
    """Keep the present pose aside; ``what`` is going to be shown instead."""
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


def refresh(scene: bpy.types.Scene, obj: bpy.types.Object, table: CorrectionTable | None = None) -> None:
    """Show the table and the settings as they are now, if the object shows a preview at all."""
    if not shown_on(obj):
        return
    _live[obj.session_uid] = PREVIEW
    try:
        _show(scene, obj, motion_at(scene, obj, table or _table(obj), scene.frame_current_final))
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
    for store in (_live, _problems, _written, _before_change, _before_save):
        store.clear()


# --- what is shown ----------------------------------------------------------------------------------------------------------------------


def motion_at(scene: bpy.types.Scene, obj: bpy.types.Object, table: CorrectionTable, frame: float) -> PoseMotion:
    """One sample of what Retarget would write at a scene frame.

    Raises
    ------
    MocapError
        The take is not in memory, or it does not fit.
    """
    take, options = panel_take(scene), settings.job_options(scene.mocap)
    found = fitting.fit(obj, take, table, options.reference_frame)
    one = sample(take, settings.seconds_at(scene, frame))
    motion = retarget.retarget(one, table, found.target.skeleton, found.options(options, body.adjustments(obj, scene)))
    return _masked(_at_rest_above(obj, motion, found), found, options.mask, frame)


def _at_rest_above(obj: bpy.types.Object, motion: PoseMotion, found: Fitting) -> PoseMotion:
    """The motion, and rest for what carries the hips in the assigned action: in a preview the hips carry themselves."""
    animation = obj.animation_data
    if animation is None or animation.action is None:
        return motion
    skeleton, hips = found.target.skeleton, found.bodies.target.pose.one("hips")
    names = {channels.bone_path(skeleton.names[j]): j for j in (skeleton.ancestors(hips) if hips is not None else ())}
    paths = {curve.data_path.rpartition(".")[0] for curve in compat.moving_curves(animation)}
    above = [j for path, j in names.items() if path in paths and j not in motion.bones]
    still = [j for j in above if j not in motion.moving]
    if above:
        count = len(motion.times)
        motion = replace(
            motion,
            bones=(*motion.bones, *above),
            rotations=np.concatenate([motion.rotations, quat.identity((count, len(above)))], axis=1),
            moving=(*motion.moving, *still),
            locations=np.concatenate([motion.locations, np.zeros((count, len(still), 3))], axis=1),
        )
    place = recipes.place_of(animation.action)
    if place is not None and motion.placement is None:
        motion = replace(motion, placement=np.zeros((len(motion.times), 3)))
    if place is not None and place.rotation is not None and motion.turning is None:
        motion = replace(motion, turning=quat.identity(len(motion.times)))
    return motion


def _masked(motion: PoseMotion, found: Fitting, mask: Mask, frame: float) -> PoseMotion:
    """What the mask lets through at a frame; its soft borders show in the retarget only."""
    if not mask:
        return motion
    skeleton, roles = found.target.skeleton, found.bodies.target.pose.roles
    show = float(mask.weights(np.array([frame]))[0]) > 0.0 if mask.start is not None else True
    through = {j for j in (*motion.bones, *motion.moving) if show and part_of(skeleton, roles, j) in mask.parts}
    bones = [k for k, j in enumerate(motion.bones) if j in through]
    moving = [m for m, j in enumerate(motion.moving) if j in through]
    return replace(
        motion,
        bones=tuple(motion.bones[k] for k in bones),
        rotations=motion.rotations[:, bones],
        moving=tuple(motion.moving[m] for m in moving),
        locations=motion.locations[:, moving],
        placement=motion.placement if show and "hips" in mask.parts else None,
        turning=motion.turning if show and "hips" in mask.parts else None,
    )


def sample(take: Take, seconds: float) -> Take:
    """The take at one moment after its start; held before and after."""
    if take.frames == 0:
        raise MocapError(f'The take "{take.name}" has no frames; there is nothing to show.')
    at = float(np.clip(take.times[0] + seconds, take.times[0], take.times[-1]))
    first = max(int(np.searchsorted(take.times, at, side="right")) - 1, 0)
    return take.block(first, min(first + 2, take.frames)).sampled(np.array([at]))


def panel_take(scene: bpy.types.Scene) -> Take:
    """The take the panel is set to, from memory; read when it is not there."""
    if not takes.chosen(scene):
        raise MocapError("No take is chosen; choose a motion capture file, or a rig, in the Mocap tab.")
    reading = takes.loaded(scene) or takes.read_for_panel(scene)
    if reading.error:
        raise MocapError(reading.error)
    return reading.takes[0]


def write_pose(obj: bpy.types.Object, target: Target, motion: PoseMotion) -> None:
    """The first sample onto the pose bones, and onto the object where it carries them."""
    bones = obj.pose.bones
    for channel in channels.pose_channels(target, motion):
        if channel.group == channels.OBJECT_GROUP and "." not in channel.path:
            setattr(obj, channel.path, channel.values[0])
            obj.mocap.kept_place = True
        else:
            setattr(bones[channel.group], channel.path.rpartition(".")[2], channel.values[0])


def _show(scene: bpy.types.Scene, obj: bpy.types.Object, motion: PoseMotion) -> None:
    target, state = fitting.target_of(obj), obj.mocap
    now = frozenset((*motion.bones, *motion.moving)) | (frozenset((-1,)) if motion.placement is not None else frozenset())
    if _written.get(obj.session_uid, now) - now:  # a bone is left out now: it gets back what it has of its own at this frame
        kept_pose.put_back(obj, state.kept_pose, scene.frame_current_final, place=state.kept_place)
        bpy.context.view_layer.update()
    _written[obj.session_uid] = now
    write_pose(obj, target, motion)


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
                _before_change[obj.session_uid] = kept_pose.kept(obj, scene.frame_current_final)


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
        shown = kept_pose.kept(obj, bpy.context.scene.frame_current_final)
        _before_save[obj.session_uid] = (state.posing, state.kept_pose, state.kept_place, shown)
        kept_pose.put_back(obj, state.kept_pose, None, place=state.kept_place)
        state.posing, state.kept_pose, state.kept_place = NONE, "", False


@bpy.app.handlers.persistent
def after_save(*_: object) -> None:
    """What was shown is shown again."""
    for obj in _objects():
        if obj.session_uid in _before_save:
            state = obj.mocap
            state.posing, state.kept_pose, state.kept_place, shown = _before_save[obj.session_uid]
            kept_pose.put_back(obj, shown, None, place=state.kept_place)
    _before_save.clear()


@bpy.app.handlers.persistent
def after_load(*_: object) -> None:
    """A file that was saved in the middle of a preview (a crash's autosave) opens with the pose from before it."""
    forget_all()
    for obj in _objects():
        if obj.mocap.posing != NONE:
            end(bpy.context.scene, obj)
