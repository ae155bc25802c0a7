# SPDX-License-Identifier: GPL-3.0-or-later
"""Every kind of export in Node and in Chromium, against Blender; ``scripts/bench export_grid`` is the whole of it."""

from __future__ import annotations

from fractions import Fraction

import bpy
import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.blender import scenes
from mocap_addon.blender.export import ExportOptions
from mocap_addon.blender.job import retarget_onto
from tests.blender import export_grid as grid
from tests.blender import export_helpers as h
from tests.paths import SHARED, need

CHARACTERS = {"metres": "mh_ue_names_apose.glb", "scale001": "mh_mixamo_names_scale001.glb", "vrm": "mh_vrm1_tpose.vrm"}
PUNCH = "asf_02_05_punch_60fps.bvh"


def onto(character: str, take: str, rate: Fraction, mode: str = ""):
    scenes.set_rate(bpy.context.scene, rate)
    obj = h.skinned(CHARACTERS[character])
    for pose in obj.pose.bones if mode else ():
        pose.rotation_mode = mode
    return obj, retarget_onto(obj, formats.read(need(SHARED / "cmu" / take))[0])


@pytest.mark.parametrize(
    ("character", "take", "rate"),
    [
        ("vrm", PUNCH, Fraction(30000, 1001)),
        pytest.param("metres", "asf_02_01_walk.bvh", Fraction(120), marks=pytest.mark.thorough),
        pytest.param("scale001", PUNCH, Fraction(24), marks=pytest.mark.thorough),
    ],
)
def test_joints_stand_where_blender_has_them_in_node_and_in_chromium(tmp_path, character, take, rate):
    obj, result = onto(character, take, rate)
    rest = result.action.name, tmp_path, h.TARGETS / CHARACTERS[character], float(rate), len(result.motion.times)
    some = grid.cases(obj, *rest, looks=6)
    assert [one.kind for one in some] == ["JSON", "GLB", "map"]
    for found in (grid.in_node(some), grid.in_chromium(some, tmp_path)):
        for one, here in zip(some, found, strict=True):
            assert here.keys < h.LIMIT and here.between < h.LIMIT and here.duration < 1e-4, (one.kind, here)


@pytest.mark.parametrize("bound", [None, pytest.param(h.LIMIT, marks=pytest.mark.thorough)])
def test_match_blender_holds_for_the_punch_at_24_on_an_euler_rig(tmp_path, bound):
    """Of a second of it, three moments in four lie between keys. Without the option the clip goes another way by more than the limit."""
    obj, result = onto("scale001", PUNCH, Fraction(24), "XYZ")
    assert all(pose.rotation_mode == "XYZ" for pose in obj.pose.bones)
    result.action.use_frame_range, result.action.frame_start, result.action.frame_end = True, 40, 64
    frames = np.arange(0.0, 24.01, 0.25)
    poses = h.shown(obj, 40.0 + frames)
    rest = h.TARGETS / CHARACTERS["scale001"], (frames / 24.0).tolist(), poses, 1.0, 0
    some = grid.written(obj, result.action.name, tmp_path / "with", *rest, ExportOptions(bound=bound, match=True))
    some += grid.written(obj, result.action.name, tmp_path / "without", *rest, ExportOptions(bound=bound), kinds=["JSON"])
    *matched, plain = grid.in_node(some)
    assert max(one.between for one in matched) < h.LIMIT < plain.between
    assert max(one.duration for one in matched) < 1e-4


def test_a_finer_map_is_told_by_its_rate(tmp_path):
    """Two rows a frame and more where Blender turns otherwise than by slerp."""
    import json

    h.set_rate(24)
    obj = h.skinned(CHARACTERS["metres"])
    h.act(obj, "swing", [1, 3], {"upperarm_l": (150, 20, 60)})
    for match in (False, True):
        h.write(obj, tmp_path, formats="map", match=match, character=h.TARGETS / CHARACTERS["metres"], names=["swing"])
        (clip,) = json.loads((tmp_path / "Armature.map.json").read_text())["clips"]
        assert clip["duration"] == pytest.approx(2 / 24, abs=1e-9)
        assert (clip["rate"] == "24/1" and clip["frames"] == 3) if not match else (clip["fps"] >= 48 and clip["frames"] > 4)
