# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone transform maps of a character's actions: joints where Blender's evaluated pose has them."""

from __future__ import annotations

import json
from fractions import Fraction

import bpy
import numpy as np
import pytest

from mocap_addon.blender import actions, armature, export
from mocap_addon.blender.export import ExportOptions
from tests.formats.test_transform_map import read_back, rows_to_worlds

from .test_threejs_blender import CENTIMETRES, FRACTIONS, METRES, TARGETS, VRM, bring, motion_for


def poses(obj: bpy.types.Object, count: int) -> list[dict[str, np.ndarray]]:
    """Frame -> bone -> place of its head, glTF's axes, by Blender."""
    out = []
    for frame in range(count):
        bpy.context.scene.frame_set(1 + frame)
        out.append({b.name: np.array((obj.matrix_world @ b.matrix).translation)[[0, 2, 1]] * [1, 1, -1] for b in obj.pose.bones})
    return out


@pytest.mark.parametrize(("name", "hips"), [METRES, CENTIMETRES, pytest.param(*VRM, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("precision", ["float32", "float16"])
def test_joints_are_where_blender_has_them(tmp_path, name, hips, precision):
    obj = bring(name)
    bpy.context.scene.render.fps = 30
    target = armature.read(obj)
    for seed in (5, 6):
        actions.write(obj, target, motion_for(target, hips, FRACTIONS["30"], seed=seed), name=f"clip {seed}", frame_start=1)
    names = ["clip 5", "clip 6"]
    options = ExportOptions(("map",), map_precision=precision, map_container="ktx2" if precision == "float16" else "bin")
    report = export.export_actions(obj, names, tmp_path, options, character=TARGETS / name)
    paths = {one.path.suffix: one.path for one in report.files}
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in paths.values())
    info, rows = read_back(paths[".json"])
    assert [c["name"] for c in info["clips"]] == names and all(c["frames"] == 8 and c["fps"] == 30 for c in info["clips"])
    index = {b["name"]: i for i, b in enumerate(info["bones"])}
    limit = 1e-4 if precision == "float32" else 1e-4 + info["error_mm"] / 1000
    compared = 0
    for clip in info["clips"]:
        obj.animation_data.action = bpy.data.actions[clip["name"]]
        if hasattr(obj.animation_data, "action_slot") and obj.animation_data.action_slot is None:
            obj.animation_data.action_slot = bpy.data.actions[clip["name"]].slots[0]
        for f, meant in enumerate(poses(obj, clip["frames"])):
            worlds = rows_to_worlds(info, rows[clip["row"] + f])
            for bone, place in meant.items():
                loader = bone.replace(":", "").replace(".", "").replace(" ", "_")
                if loader in index:
                    compared += 1
                    assert np.linalg.norm(worlds[index[loader]][:3, 3] - place) < limit, bone
    assert compared > 500
    assert json.loads(paths[".json"].read_text())["error_mm"] == pytest.approx(1000 * max(f.error or 0 for f in report.files), abs=1e-5)


@pytest.mark.thorough
@pytest.mark.parametrize("rate", ["24", "29.97", "60", "120"])
@pytest.mark.parametrize(("name", "hips"), [METRES, CENTIMETRES, VRM])
def test_rates_are_exact(tmp_path, name, hips, rate):
    """A key on every frame of the scene: as many rows, at the scene's own rate, of exactly its length, each where Blender has it."""
    obj = bring(name)
    exact = {"60": Fraction(60), **FRACTIONS}[rate]
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = (30, 1.001) if rate == "29.97" else (int(rate), 1.0)
    target = armature.read(obj)
    action = actions.write(obj, target, motion_for(target, hips, exact), name="clip", frame_start=1)
    export.export_actions(obj, [action.name], tmp_path, ExportOptions(("map",)), character=TARGETS / name)
    info, rows = read_back(next(tmp_path.glob("*.json")))
    (clip,) = info["clips"]
    assert clip["frames"] == 8 and Fraction(clip["rate"]) == exact and clip["duration"] == pytest.approx(7 / exact, abs=1e-9)
    index = {b["name"]: i for i, b in enumerate(info["bones"])}
    for f, meant in enumerate(poses(obj, 8)):
        worlds = rows_to_worlds(info, rows[f])
        for bone, place in meant.items():
            loader = bone.replace(":", "").replace(".", "").replace(" ", "_")
            if loader in index:
                assert np.linalg.norm(worlds[index[loader]][:3, 3] - place) < 1e-4, bone
