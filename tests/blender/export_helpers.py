# SPDX-License-Identifier: GPL-3.0-or-later
"""Characters with actions, what Blender shows of them, and what three.js shows of what was exported."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import bpy
import mathutils
import numpy as np

from mocap_addon.blender import characters, export
from mocap_addon.motion import quat
from tests.blender.helpers import make_rig
from tests.node import run
from tests.paths import SHARED, need

TARGETS = SHARED / "targets"
LIMIT = 1e-4
C = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
"""Blender's axes -> glTF's."""

BODY = [
    ("root", None, (0, 0, 0), (0, 0.2, 0), 0.0),
    ("hips", "root", (0, 0, 1.0), (0, 0, 1.2), 0.1),
    ("spine", "hips", (0, 0, 1.2), (0, 0, 1.5), 0.0),
    ("head", "spine", (0, 0, 1.5), (0, 0, 1.8), 0.3),
    ("arm.L", "spine", (0.15, 0, 1.45), (0.45, 0, 1.4), 0.2),
    ("hand.L", "arm.L", (0.45, 0, 1.4), (0.7, 0, 1.4), -0.4),
    ("arm.R", "spine", (-0.15, 0, 1.45), (-0.45, 0, 1.4), 0.2),
    ("leg.L", "hips", (0.1, 0, 1.0), (0.1, 0.02, 0.1), 0.0),
    ("leg.R", "hips", (-0.1, 0, 1.0), (-0.1, 0.02, 0.1), 0.0),
]


def body(name: str = "Body", rows: Sequence = BODY) -> bpy.types.Object:
    """A rig of nine bones without a mesh, in quaternions."""
    obj = make_rig(rows, name)
    for pose in obj.pose.bones:
        pose.rotation_mode = "QUATERNION"
    return obj


def skinned(name: str) -> bpy.types.Object:
    """A character file of the shared data."""
    return characters.bring_in(need(TARGETS / name)).armature


def set_rate(fps: int, base: float = 1.0) -> float:
    """Seconds a frame."""
    render = bpy.context.scene.render
    render.fps, render.fps_base = fps, base
    return base / fps


def act(
    obj: bpy.types.Object, name: str, frames: Iterable[float], turns: Mapping[str, Sequence[float]], travel: str = "", size: float = 1.0
) -> bpy.types.Action:
    """An action that swings bones about an axis (degrees), keyed with Blender's own call, and walks with ``travel``."""
    obj.animation_data_create()
    obj.animation_data.action = None
    frames = list(frames)
    for k, frame in enumerate(frames):
        phase = k / max(1, len(frames) - 1)
        for bone, (x, y, z) in turns.items():
            axis = np.radians((x, y, z)) * np.sin(2.7 * phase + 0.4)
            pose = obj.pose.bones[bone]
            pose.rotation_quaternion = quat.exp(axis)
            pose.keyframe_insert("rotation_quaternion", frame=frame)
        if travel:
            pose = obj.pose.bones[travel]
            pose.location = (size * 0.2 * np.sin(5 * phase), size * 1.5 * phase, size * 0.1 * phase)
            pose.keyframe_insert("location", frame=frame)
    action = obj.animation_data.action
    action.name = name
    action.use_fake_user = True
    for pose in obj.pose.bones:
        pose.matrix_basis.identity()
    return action


def shown(obj: bpy.types.Object, frames: Iterable[float]) -> list[dict[str, np.ndarray]]:
    """Frame by frame each bone's world matrix, as Blender evaluates it."""
    out = []
    for frame in frames:
        whole = int(np.floor(frame))
        bpy.context.scene.frame_set(whole, subframe=frame - whole)
        seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        out.append({p.name: np.array(seen.matrix_world @ p.matrix) for p in seen.pose.bones})
    return out


def halfway(obj: bpy.types.Object, a: dict, b: dict) -> dict[str, np.ndarray]:
    """The pose between two, each bone by slerp and straight line in its parent's frame; mathutils' own slerp."""
    out: dict[str, np.ndarray] = {}
    for bone in sorted(obj.data.bones, key=lambda bone: len(bone.parent_recursive)):
        ends = []
        for pose in (a, b):
            own = pose[bone.name].astype(np.float64)
            own = np.linalg.inv(pose[bone.parent.name].astype(np.float64)) @ own if bone.parent else own
            ends.append((own[:3, 3], mathutils.Matrix(own[:3, :3]).to_quaternion(), np.linalg.norm(own[:3, :3], axis=0)))
        (t0, q0, size), (t1, q1, _) = ends
        local = np.eye(4)
        local[:3, :3] = np.array(q0.slerp(q1, 0.5).normalized().to_matrix()) * size
        local[:3, 3] = 0.5 * (t0 + t1)
        out[bone.name] = out[bone.parent.name] @ local if bone.parent else local
    return out


def write(
    obj: bpy.types.Object, folder: Path, actions: Sequence = ("",), formats: str = "threejs", **options
) -> dict[str, export.ExportedFile]:
    """Export; the files by their names."""
    character, names = options.pop("character", None), options.pop("names", None)
    made = export.ExportOptions(tuple(formats.split(",")), **{"bound": None, **options})
    report = export.export_actions(obj, list(actions), folder, made, character=character, names=names)
    return {one.path.name: one for one in report.files}


def clips_in(path: Path) -> dict[str, dict]:
    return {clip["name"]: clip for clip in json.loads(path.read_text())}


def tracks_of(clip: dict) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Name -> times and values of the tracks of a clip in JSON."""
    return {t["name"]: (np.array(t["times"]), np.array(t["values"]).reshape(len(t["times"]), -1)) for t in clip["tracks"]}


def play(character: Path, times: Sequence[float], **more) -> dict:
    """three.js plays a clip; nothing may be printed, every track must find a node."""
    return play_all([{"character": character, "times": list(times), **more}])[0]


def play_all(wanted: Sequence[dict]) -> list[dict]:
    """Several clips in one process."""
    requests = [{k: v if k == "times" else str(v) for k, v in one.items()} for one in wanted]
    out = run("play_clips.mjs", requests)
    for played in out:
        assert played["playing"] == [] and played["loading"] == [], played["playing"]
        assert played["valid"]
        assert -1 not in played["bound"].values(), played["bound"]
    return out


def apart(played: dict, poses: list[dict[str, np.ndarray]], names: Sequence[str] | None = None) -> float:
    """Metres: the largest distance between a bone in Blender and the node of its name in three.js."""
    worst, seen = 0.0, 0
    for pose, frame in zip(poses, played["frames"], strict=True):
        for i, name in enumerate(played["names"]):
            if name in pose and str(i) in frame["places"] and (names is None or name in names):
                worst = max(worst, float(np.linalg.norm(np.array(frame["places"][str(i)][:3]) - C @ pose[name][:3, 3])))
                seen += 1
    assert seen >= len(poses) * (len(names) if names is not None else min(map(len, poses)))
    return worst
