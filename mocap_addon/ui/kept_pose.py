# SPDX-License-Identifier: GPL-3.0-or-later
"""A pose kept aside while another one is shown on the same bones, and put back afterwards.

It is kept as text in a property of the object, so undo, redo and saving carry it along with the pose that is shown.
"""

from __future__ import annotations

import base64
import json

import bpy
import numpy as np

_CHANNELS = (("location", 3), ("rotation_quaternion", 4), ("rotation_euler", 3), ("rotation_axis_angle", 4), ("scale", 3))
_PLACE = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle")


def kept(obj: bpy.types.Object, frame: float) -> str:
    """The object's pose and place as text, and the scene frame it was on."""
    bones = obj.pose.bones
    out: dict[str, object] = {"frame": frame, "object": {name: list(getattr(obj, name)) for name in _PLACE}, "bones": bones.keys()}
    for name, width in _CHANNELS:
        values = np.empty(width * len(bones), dtype=np.float32)
        bones.foreach_get(name, values)
        out[name] = base64.b64encode(values.tobytes()).decode("ascii")
    return json.dumps(out)


def put_back(obj: bpy.types.Object, text: str, frame: float | None, *, place: bool = True) -> None:
    """The kept pose onto the bones again; bones that have come or gone since are left out.

    On another ``frame`` than it was kept on, what the object's animation says counts for all that is animated; None: not even then.
    """
    try:
        stored = json.loads(text)
        names, arrays = stored["bones"], {}
        for name, width in _CHANNELS:
            arrays[name] = np.frombuffer(base64.b64decode(stored[name]), dtype=np.float32).reshape(len(names), width)
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
    # A tag for the bones alone leaves the curves unread; with TIME they are evaluated at the present frame.
    obj.update_tag(refresh={"OBJECT", "DATA"} if frame in (None, stored["frame"]) else {"OBJECT", "DATA", "TIME"})
