# SPDX-License-Identifier: GPL-3.0-or-later
"""What the action before has left in the pose, and keys that put it back.

Blender keeps the last value of a channel that no action moves any more. A take that does not key what the action before moved would
therefore play on top of a pose that depends on where the playhead stood. Such channels get one key with the rest value:

- location and scale of the bones that the new motion keys, and the rotation of those that it only moves;
- everything on bones above those, which carry them, and on others that these follow;
- everything on other bones, where the action before was one of ours: then it is our motion that would show in ours.

What a person posed by hand without keys, or animated on other bones in an action of their own, is theirs and stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import bpy
import numpy as np

from ..retarget.motion import PoseMotion
from . import compat
from .armature import Target
from .channels import OBJECT_GROUP, Channels, in_mode, rotation_channels
from .recipes import Place, place_of, recipe_of

_BONE = re.compile(r'(pose\.bones\["((?:[^"\\]|\\.)*)"\])\.(\w+)$')
_REST = {
    "location": (0.0, 0.0, 0.0),
    "scale": (1.0, 1.0, 1.0),
    "rotation_quaternion": (1.0, 0.0, 0.0, 0.0),
    "rotation_axis_angle": (0.0, 0.0, 1.0, 0.0),
    "rotation_euler": (0.0, 0.0, 0.0),
}


def rest_keys(obj: bpy.types.Object, target: Target, motion: PoseMotion, written: set[str]) -> Iterator[Channels]:
    """One key at rest for each channel that the present action moves and the new one, whose data paths are ``written``, leaves."""
    animation = obj.animation_data
    if animation is None or animation.action is None:
        return
    ours = recipe_of(animation.action) is not None
    moved = [curve.data_path for curve in compat.moving_curves(animation)]
    yield from put_back(target, motion, moved, written, place_of(animation.action), everything=ours)


def put_back(
    target: Target, motion: PoseMotion, moved: Iterable[str], written: set[str], place: Place | None, *, everything: bool
) -> Iterator[Channels]:
    """The same for the data paths ``moved``.

    ``place`` is where the object stood before, where they were ours. With ``everything``, all bones that have no keys any more.
    """
    stands = in_mode(target.rotation[None], target.rotation_mode)
    names = target.skeleton.names
    turned = {names[bone] for bone in motion.bones}
    keyed = {*turned, *(names[bone] for bone in motion.moving)}
    carrying = {names[j] for bone in (*motion.bones, *motion.moving) for j in target.skeleton.ancestors(bone)} - keyed
    carrying |= {names[j] for j in motion.followed}
    for path in dict.fromkeys(moved):
        if path in written:
            continue
        if path == "location" and place is not None:
            yield Channels(path, OBJECT_GROUP, target.location[None], kind="rest")
        if path == stands[0] and place is not None and place.rotation is not None:
            yield replace(rotation_channels(OBJECT_GROUP, *stands, target.rotation_mode), kind="rest")
        found = _BONE.match(path)
        if found is None or found[3] not in _REST:
            continue
        bone = bpy.utils.unescape_identifier(found[2])
        if bone not in target.skeleton:
            continue
        unturned = found[3] in ("location", "scale") or bone not in turned
        if (bone in keyed and unturned) or bone in carrying or (everything and bone not in keyed):
            yield Channels(path, bone, np.array([_REST[found[3]]]), kind="rest")
