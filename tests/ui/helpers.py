# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of the window share."""

from __future__ import annotations

import hashlib

import bpy
import numpy as np

from mocap_addon.ui import settings
from tests.blender.helpers import keys_of


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
    """A hash of everything of the user's that must stay: rest poses, transforms, poses, modes, other actions, selection, scene settings."""
    out: dict[str, object] = {}
    for obj in bpy.data.objects:
        loose = (obj.rotation_mode, tuple(obj.location), tuple(obj.rotation_euler), tuple(obj.rotation_quaternion), tuple(obj.scale))
        animation = obj.animation_data
        assigned = None if ignore_assigned or animation is None else (animation.action.name if animation.action else None)
        tracks = [] if animation is None else [(t.name, [s.name for s in t.strips]) for t in animation.nla_tracks]
        out[f"object {obj.name}"] = (loose, obj.mode, obj.select_get(), obj.hide_get(), assigned, tracks, obj.parent and obj.parent.name)
        if obj.type == "ARMATURE":
            out[f"modes {obj.name}"] = [
                (b.name, b.rotation_mode, [c.name for c in b.constraints], tuple(b.lock_location), tuple(b.scale)) for b in obj.pose.bones
            ]
    for data in bpy.data.armatures:
        rest = [(b.name, b.parent and b.parent.name, b.use_connect, [tuple(r) for r in b.matrix_local]) for b in data.bones]
        out[f"armature {data.name}"] = (rest, data.pose_position)
    for mesh in bpy.data.meshes:
        points = np.empty(3 * len(mesh.vertices), dtype=np.float32)
        mesh.vertices.foreach_get("co", points)
        out[f"mesh {mesh.name}"] = points.tobytes()
    for action in bpy.data.actions:
        if action.name not in ignore_actions:
            out[f"action {action.name}"] = keys_of(action)
    scene, render = bpy.context.scene, bpy.context.scene.render
    active = bpy.context.view_layer.objects.active
    out["scene"] = (scene.frame_start, scene.frame_end, scene.frame_current, render.fps, render.fps_base, scene.unit_settings.scale_length)
    out["active"] = active and active.name
    out["tools"] = (scene.tool_settings.use_keyframe_insert_auto, scene.use_preview_range)
    return {key: hashlib.sha256(repr(value).encode()).hexdigest() for key, value in out.items()}


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
