# SPDX-License-Identifier: GPL-3.0-or-later
"""What an object does of itself is put aside while live motion moves it: action, NLA and pose, each back in its place afterwards.

An assigned action would overwrite the live pose at every frame change. What was put aside lies in properties of the object, so undo and
saving carry it along: a file that is saved holds the object as it was, and one from a crash's autosave is put right when it is opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

import bpy

from ..blender import compat, live_pose, morph_keys
from . import kept_pose

_PLACE = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")
_paused: list[tuple[int, str]] = []


def take_off(obj: bpy.types.Object, frame: float) -> None:
    """Put aside what moves the object, and its pose; nothing where that was done already.

    Raises
    ------
    MocapError
        It is linked, or one of its NLA strips is being edited.
    """
    state = obj.mocap
    if state.live:
        return
    live_pose.check_free(obj)
    stored = {"pose": kept_pose.kept(obj, frame) if obj.type == "ARMATURE" else "", "place": {n: list(getattr(obj, n)) for n in _PLACE}}
    stored["faces"] = [_face(keys) for keys in _faces(obj)]
    state.live_kept = json.dumps(stored)
    animation = obj.animation_data
    if animation is not None:
        slot = compat.assigned_slot(animation)
        state.live_action, state.live_slot, state.live_nla = (
            animation.action,
            slot.identifier if slot is not None else "",
            animation.use_nla,
        )
        animation.action = None
        animation.use_nla = False
    for keys in _faces(obj):
        if keys.animation_data is not None:
            keys.animation_data.action = None
    state.live = True


def put_back(obj: bpy.types.Object, frame: float | None) -> bool:
    """The object plays its own animation again and has its own pose; whether it was off. ``frame``: the scene's, where it is known."""
    state = obj.mocap
    if not state.live:
        return False
    stored = _stored(obj)
    state.live = False
    animation = obj.animation_data
    if animation is not None:
        animation.use_nla = state.live_nla
        if animation.action is None and state.live_action is not None:  # a person may have given it another one
            compat.assign(animation, state.live_action, _slot(state.live_action, state.live_slot))
    state.live_action, state.live_slot, state.live_kept = None, "", ""
    for name, values in stored.get("place", {}).items():
        setattr(obj, name, values)
    if stored.get("pose"):
        kept_pose.put_back(obj, stored["pose"], frame, place=False)
    for face in stored.get("faces", ()):
        _put_face_back(face)
    obj.update_tag(refresh={"OBJECT", "DATA", "TIME"})
    return True


def off() -> list[bpy.types.Object]:
    """Objects whose own animation is put aside."""
    return [obj for obj in bpy.data.objects if obj.library is None and obj.mocap.live]


def put_all_back(frame: float | None = None) -> None:
    """Every object as it was."""
    for obj in off():
        put_back(obj, frame)


@contextmanager
def released(obj: bpy.types.Object, frame: float) -> Iterator[None]:
    """Inside, the object is itself: for a bake, which then is what it plays afterwards."""
    was = put_back(obj, frame)
    try:
        yield
    finally:
        if was:
            take_off(obj, frame)


@bpy.app.handlers.persistent
def before_save(*_: object) -> None:
    """The file gets every object as it was."""
    _paused.clear()
    for obj in off():
        seen = kept_pose.kept(obj, bpy.context.scene.frame_current_final) if obj.type == "ARMATURE" else ""
        _paused.append((obj.session_uid, seen))
        put_back(obj, None)


@bpy.app.handlers.persistent
def after_save(*_: object) -> None:
    """And live motion goes on."""
    frame = bpy.context.scene.frame_current_final
    uids = dict(_paused)
    for obj in bpy.data.objects:
        if obj.session_uid in uids:
            take_off(obj, frame)
            if uids[obj.session_uid]:
                kept_pose.put_back(obj, uids[obj.session_uid], None, place=False)
    _paused.clear()


def _stored(obj: bpy.types.Object) -> dict:
    try:
        found = json.loads(obj.mocap.live_kept or "{}")
    except ValueError:
        found = {}
    return found if isinstance(found, dict) else {}


def _faces(obj: bpy.types.Object) -> list[bpy.types.Key]:
    return morph_keys.shape_keys_of(obj) if obj.type == "ARMATURE" else []


def _face(keys: bpy.types.Key) -> dict[str, object]:
    animation = keys.animation_data
    slot = compat.assigned_slot(animation) if animation is not None else None
    action = animation.action.name if animation is not None and animation.action is not None else ""
    values = {block.name: block.value for block in keys.key_blocks}
    return {"keys": keys.name, "values": values, "action": action, "slot": slot.identifier if slot is not None else ""}


def _put_face_back(face: dict) -> None:
    keys = bpy.data.shape_keys.get(face.get("keys", ""))
    if keys is None:
        return
    action = bpy.data.actions.get(face.get("action", ""))
    if action is not None and keys.animation_data is not None and keys.animation_data.action is None:
        compat.assign(keys.animation_data, action, _slot(action, face.get("slot", "")))
    for name, value in face.get("values", {}).items():
        if name in keys.key_blocks:
            keys.key_blocks[name].value = value


def _slot(action: bpy.types.Action, identifier: str) -> compat.Slot:
    return next((slot for slot in compat.slots(action) if slot is not None and slot.identifier == identifier), None)
