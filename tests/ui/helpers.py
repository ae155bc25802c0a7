# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of the window share."""

from __future__ import annotations

import re

import bpy
import numpy as np

from mocap_addon.ui import settings
from tests.blender import snapshot


def refused(operator, **arguments) -> str:
    """Run an operator that must refuse; its message, checked to be one plain sentence."""
    try:
        result = operator(**arguments)
    except RuntimeError as error:
        text = str(error).strip()
    else:
        raise AssertionError(f"the operator did not refuse: {result}")
    assert "Traceback" not in text, text
    lines = text.splitlines()
    assert lines[0].startswith("Error: "), text
    sentence = lines[0].removeprefix("Error: ")
    assert len(lines) == 1 or lines[1:] == [line for line in lines[1:] if line.startswith("Location:")], text
    assert sentence[0].isupper() or sentence[0] == '"' or ": " in sentence, sentence
    assert sentence.endswith("."), sentence
    return sentence


def press_retarget() -> set[str]:
    """The Retarget button: its invoke hands the panel's settings on (it needs a window; without one Blender goes straight to execute)."""
    panel = bpy.context.scene.mocap
    return bpy.ops.mocap.retarget(**{name: getattr(panel, name) for name in settings.SHARED})


def counts() -> dict[str, int]:
    """Number of data-blocks of each kind."""
    return {
        name: len(getattr(bpy.data, name))
        for name in ("objects", "armatures", "actions", "images", "meshes", "texts", "collections", "scenes")
    }


def fingerprint(*, ignore_actions: tuple[str, ...] = (), ignore_assigned: bool = False) -> dict[str, str]:
    """Everything of the user's that must stay, as :mod:`tests.blender.snapshot` sees it; without the tab's own settings and tables.

    The pose that the playing action gives the bones does not count. ``ignore_assigned``: neither does which action plays, and what keeps
    the one before.
    """
    own = [f"actions/{name}{mark}" for name in ignore_actions for mark in "/["]
    out = {
        path: value
        for path, value in snapshot.snapshot().items()
        if '["mocap"]' not in path and not path.startswith(tuple(own)) and not _POSE.match(path) and not path.endswith("/name_full")
    }
    del out["actions/count"]  # :func:`counts` has it
    if ignore_assigned:
        out = {path: value for path, value in out.items() if not _ASSIGNED.match(path)}
    return out


_POSE = re.compile(r"objects/[^/]+/pose/[^/]+/(location|rotation_(?!mode)|matrix|head|tail|length|center|vector|bbone_|[xyz]_axis)")
_ASSIGNED = re.compile(r"objects/[^/]+/animation/|actions/[^/]+/use_fake_user")


def give_action(obj: bpy.types.Object, name: str = "Old") -> bpy.types.Action:
    """An animation that the user made by hand before."""
    bone = obj.pose.bones[-1]
    bone.rotation_mode = "XYZ"
    for frame, angle in ((1, 0.0), (9, 0.7)):
        bone.rotation_euler = (angle, 0.0, 0.0)
        bone.keyframe_insert("rotation_euler", frame=frame)
    obj.animation_data.action.name = name
    return obj.animation_data.action


def turns(obj: bpy.types.Object, bone: str, frames) -> np.ndarray:
    """(F, 3, 3): the bone's evaluated rotation in the world."""
    out = []
    for frame in frames:
        bpy.context.scene.frame_set(frame)
        seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        out.append(np.array((seen.matrix_world @ seen.pose.bones[bone].matrix).to_3x3().normalized()))
    return np.array(out)


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """Largest angle in degrees between rotation matrices ``(F, 3, 3)``: |A - B| is 2 sqrt(2) sin(angle / 2), exact for small angles too."""
    size = np.linalg.norm(np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64), axis=(1, 2))
    return float(np.degrees(2.0 * np.arcsin(np.clip(size / np.sqrt(8.0), 0.0, 1.0))).max())
