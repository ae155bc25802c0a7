# SPDX-License-Identifier: GPL-3.0-or-later
"""The armature that gets the motion: which one, what is known about it, and why it may not be usable."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import bpy
import numpy as np

from .. import rig
from ..blender import armature
from ..motion import kinematics, quat
from ..motion.errors import MocapError, TargetError
from ..motion.skeleton import Skeleton
from ..rig.roles import RoleMap

_KEPT = 16
_known: OrderedDict[tuple[object, ...], Character] = OrderedDict()


NO_CHARACTER = "Select the character's armature first."


class OnCharacter:
    """For operators that need a character."""

    @classmethod
    def poll(cls, context: bpy.types.Context) -> bool:
        if of(context) is None:
            cls.poll_message_set(NO_CHARACTER)
            return False
        return True


@dataclass(frozen=True, eq=False)
class Character:
    """What the panel shows of an armature."""

    roles: RoleMap
    bones: int
    error: str = ""


def of(context: bpy.types.Context) -> bpy.types.Object | None:
    """The character in use: the one picked, else the selected armature, else the armature of the selected mesh."""
    picked = context.scene.mocap.target
    if picked is not None:
        return picked
    active = context.object
    if active is None or active.type == "ARMATURE":
        return active
    if active.type == "MESH":
        return active.find_armature()
    return None


def named(context: bpy.types.Context, name: str) -> bpy.types.Object:
    """The armature called ``name``; without a name the one in use.

    Raises
    ------
    TargetError
        There is none, or it cannot take motion.
    """
    # A linked character and its override have the same name: the one of this file is meant.
    objects = bpy.data.objects
    obj = (objects.get((name, None)) or objects.get(name)) if name else of(context)
    if obj is None:
        if name:
            raise TargetError(f'There is no object called "{name}"; give the name of an armature.')
        raise TargetError("No character is chosen; select an armature, or pick one in the Mocap tab.")
    reason = problem(obj)
    if reason:
        raise TargetError(reason)
    return obj


def problem(obj: bpy.types.Object) -> str:
    """Why the object cannot take motion, in one sentence; empty when it can. Cheap enough for drawing."""
    try:
        armature.check(obj)
    except TargetError as error:
        return str(error)
    if not obj.data.bones:
        return f'"{obj.name}" has no bones; choose another armature.'
    scales = obj.matrix_world.to_3x3()
    if scales.determinant() < 0.0:
        return f'"{obj.name}" is mirrored by a negative scale; apply its scale (Ctrl+A) first.'
    lengths = [column.length for column in scales.col]
    if max(lengths) - min(lengths) > 2.0 * armature.SCALE_TOLERANCE * max(lengths):
        return f'"{obj.name}" is scaled differently along its axes; apply its scale (Ctrl+A) first.'
    return ""


def driven(obj: bpy.types.Object) -> bool:
    """Whether constraints say how some of its bones stand, so that it matters which bones get the keys. Cheap enough for drawing."""
    return obj.pose is not None and any(bone.constraints for bone in obj.pose.bones)


def known(obj: bpy.types.Object) -> Character:
    """Family and roles of an armature; computed anew only when its bones changed. Never evaluates the scene, so drawing may call it."""
    bones = obj.data.bones
    heads = np.empty(3 * len(bones), dtype=np.float32)
    bones.foreach_get("head_local", heads)
    key = (obj.session_uid, tuple(bones.keys()), heads.tobytes(), tuple(obj.matrix_world.to_quaternion()))
    found = _known.get(key)
    if found is None:
        try:
            found = Character(rig.match(_outline(obj)), len(bones))
        except MocapError as error:
            found = Character(RoleMap({}), len(bones), str(error))
        _known[key] = found
        if len(_known) > _KEPT:
            _known.popitem(last=False)
    return found


def forget_all() -> None:
    """Let go of everything."""
    _known.clear()


def _outline(obj: bpy.types.Object) -> Skeleton:
    """The rest pose turned as the object is: enough to see which bone is which."""
    ordered: list[bpy.types.Bone] = []
    waiting = [bone for bone in reversed(obj.data.bones) if bone.parent is None]
    while waiting:
        ordered.append(waiting.pop())
        waiting.extend(reversed(ordered[-1].children))
    place = {bone.name: i for i, bone in enumerate(ordered)}
    parents = np.array([place[bone.parent.name] if bone.parent else -1 for bone in ordered], dtype=np.int64)
    turn = np.array(obj.matrix_world.to_quaternion())
    heads = quat.rotate(turn, np.array([bone.head_local for bone in ordered], dtype=np.float64))
    turns = quat.mul(turn, np.array([bone.matrix_local.to_quaternion() for bone in ordered], dtype=np.float64))
    rotations, translations = kinematics.inverse(turns, heads, parents)
    ends = np.outer([bone.length for bone in ordered], (0.0, 1.0, 0.0))
    return Skeleton(tuple(place), parents, translations, quat.normalize(rotations), ends)
