# SPDX-License-Identifier: GPL-3.0-or-later
"""A pose kept aside while another one is shown on the same bones, and put back afterwards.

It is kept as text in a property of the object, so undo, redo and saving carry it along with the pose that is shown.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable

import bpy
import numpy as np

from ..blender import channels, rig_links

_CHANNELS = (("location", 3), ("rotation_quaternion", 4), ("rotation_euler", 3), ("rotation_axis_angle", 4), ("scale", 3))
_PLACE = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle")


def kept(obj: bpy.types.Object, frame: float, *, like: str = "") -> str:
    """The object's pose and place as text, and the scene frame it was on; with the settings of bones that the text ``like`` holds."""
    bones = obj.pose.bones
    out: dict[str, object] = {"frame": frame, "object": {name: list(getattr(obj, name)) for name in _PLACE}, "bones": bones.keys()}
    for name, width in _CHANNELS:
        values = np.empty(width * len(bones), dtype=np.float32)
        bones.foreach_get(name, values)
        out[name] = base64.b64encode(values.tobytes()).decode("ascii")
    return with_settings(obj, json.dumps(out), _settings(like))


def with_settings(obj: bpy.types.Object, text: str, wanted: Iterable[tuple[str, str, float]]) -> str:
    """The kept pose with what settings of bones stand at now (:class:`~mocap_addon.retarget.motion.PoseMotion`), unless it has them."""
    known = _settings(text)
    have = {(bone, prop) for bone, prop, _value in known}
    new = [(bone, prop, rig_links.value_of(obj, bone, prop)) for bone, prop, _value in wanted if (bone, prop) not in have]
    new = [setting for setting in new if setting[2] is not None]
    return json.dumps({**json.loads(text), "settings": [*known, *new]}) if new else text


def posed(obj: bpy.types.Object, text: str) -> dict[str, tuple[float, ...]]:
    """The kept pose: bone -> rotation (wxyz) and location, in the shape of :class:`.existing.Existing`."""
    try:
        stored = json.loads(text)
        arrays = _arrays(stored)
    except (ValueError, KeyError, TypeError):
        return {}
    out: dict[str, tuple[float, ...]] = {}
    for i, name in enumerate(stored["bones"]):
        bone = obj.pose.bones.get(name)
        if bone is not None:
            mode = bone.rotation_mode
            prop = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}.get(mode, "rotation_euler")
            rotation = channels.to_rotations(arrays[prop][i][None], mode)[0]
            out[name] = (*rotation.tolist(), *arrays["location"][i].tolist())
    return out


def _settings(text: str) -> list[tuple[str, str, float]]:
    try:
        return [tuple(setting) for setting in json.loads(text).get("settings", ())] if text else []
    except (ValueError, AttributeError):
        return []


def _arrays(stored: dict) -> dict[str, np.ndarray]:
    count = len(stored["bones"])
    return {name: np.frombuffer(base64.b64decode(stored[name]), dtype=np.float32).reshape(count, width) for name, width in _CHANNELS}


def put_back(obj: bpy.types.Object, text: str, frame: float | None, *, place: bool = True) -> None:
    """The kept pose onto the bones again; bones that have come or gone since are left out.

    On another ``frame`` than it was kept on, what the object's animation says counts for all that is animated; None: not even then.
    """
    try:
        stored = json.loads(text)
        names, arrays = stored["bones"], _arrays(stored)
    except (ValueError, KeyError, TypeError):
        return  # text that somebody changed: the pose stays as it is
    bones = obj.pose.bones
    if bones.keys() == names:
        for name, values in arrays.items():
            bones.foreach_set(name, values.ravel())
    else:
        for i, bone_name in enumerate(names):
            bone = bones.get(bone_name)
            if bone is not None:
                for name, values in arrays.items():
                    setattr(bone, name, values[i])
    if place:
        for name, values in stored["object"].items():
            setattr(obj, name, values)
    for setting in _settings(text):
        rig_links.set_value(obj, *setting)
    # A tag for the bones alone leaves the curves unread; with TIME they are evaluated at the present frame.
    obj.update_tag(refresh={"OBJECT", "DATA"} if frame in (None, stored["frame"]) else {"OBJECT", "DATA", "TIME"})
