# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a character's actions, and a run's map and page from the command line."""

from __future__ import annotations

import base64
import json
import re

import bpy
import numpy as np
import pytest

from mocap_addon import cli, formats
from mocap_addon.blender import characters, compat, feet, job, preview_page
from tests.formats.test_viewer_page import CHARACTER, DATA
from tests.paths import ROOT

WALK = ROOT / "mocap_addon" / "demo" / "zombieWalk1.bvh"


def data_of(path):
    return json.loads(DATA.findall(path.read_text(encoding="utf-8"))[0])


def test_an_action_stands_beside_its_take(tmp_path):
    obj = characters.bring_in(CHARACTER, None).armature
    (take,) = formats.read(WALK)
    result = job.retarget_onto(obj, take)
    path = preview_page.preview(obj, [result.action.name], folder=tmp_path, character=CHARACTER, open_it=False)
    data = data_of(path)
    assert [c["name"] for c in data["clips"]] == [result.action.name] and data["clips"][0]["before"] == 0
    assert data["sources"][0]["name"] == take.name and data["clips"][0]["error_mm"] < 0.1
    assert data["feet"] == {"left": ["foot_l", "ball_l"], "right": ["foot_r", "ball_r"]}
    shown = tmp_path / "shown.glb"
    shown.write_bytes(base64.b64decode(data["character"]["glb"]))
    (back,) = formats.read(shown)
    meant = result.take
    index = {name: j for j, name in enumerate(meant.skeleton.names)}
    for j, name in enumerate(back.skeleton.names):
        assert abs(back.global_positions[:, j] - meant.global_positions[:, index[name]]).max() < 2e-4


def test_without_its_take_it_stands_alone_and_names_cannot_break_the_page(tmp_path):
    obj = characters.bring_in(CHARACTER, None).armature
    (take,) = formats.read(WALK)
    result = job.retarget_onto(obj, take)
    recipe = json.loads(result.action["mocap_recipe"])
    recipe["source"] = str(tmp_path / "gone.bvh")
    result.action["mocap_recipe"] = json.dumps(recipe)
    result.action.name = "</script><b>"
    data = data_of(preview_page.preview(obj, [result.action.name], folder=tmp_path, open_it=False))
    assert data["sources"] == [] and data["clips"][0]["name"] == "</script><b>"


def test_the_operator_writes_into_blenders_own_temporary_folder():
    from mocap_addon import register, unregister

    register()
    try:
        obj = characters.bring_in(CHARACTER, None).armature
        (take,) = formats.read(WALK)
        job.retarget_onto(obj, take)
        bpy.context.view_layer.objects.active = obj
        obj.select_set(True)
        if not bpy.app.background:
            pytest.skip("with a window the browser would be opened")
        assert bpy.ops.mocap.preview_page() == {"FINISHED"}
    finally:
        unregister()


def test_one_map_and_one_page_for_a_run(tmp_path, capfd):
    other = tmp_path / "again.bvh"
    other.write_bytes(WALK.read_bytes())
    words = [
        "convert",
        str(WALK),
        str(other),
        "--character",
        str(CHARACTER),
        "--out",
        str(tmp_path / "out"),
        "--formats",
        "map,viewer",
        "--json",
    ]
    assert cli.main([*words, "--map-ktx2", "--map-half"]) == 0
    records = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    together = records[-1]
    assert len(records) == 3 and len(together["clips"]) == 2 and 0 < together["map_error_mm"] < 10
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["character.html", "character.map.json", "character.map.ktx2"]
    info = json.loads((tmp_path / "out" / "character.map.json").read_text())
    assert [c["name"] for c in info["clips"]] == together["clips"] and info["component"] == "f16"
    data = data_of(tmp_path / "out" / "character.html")
    assert [c["name"] for c in data["clips"]] == together["clips"] and len(data["sources"]) == 2
    assert not re.search("mocap-", " ".join(p.name for p in tmp_path.iterdir()))


def test_planted_feet_stand_where_their_locks_say_beside_the_action_before(tmp_path):
    obj = characters.bring_in(CHARACTER, None).armature
    (take,) = formats.read(WALK)
    before = job.retarget_onto(obj, take).action
    planted = feet.bake_feet(obj).action
    data = data_of(preview_page.preview(obj, [planted.name], folder=tmp_path, character=CHARACTER, open_it=False))
    (clip,) = data["clips"]
    assert data["sources"][clip["before"]]["name"] == before.name
    locks = {side: next(c for c in compat.all_curves(planted) if c.data_path == f'["foot_lock_{side[0]}"]') for side in ("left", "right")}
    fps = bpy.context.scene.render.fps
    start = min(k.co[0] for c in locks.values() for k in c.keyframe_points)
    for side, spans in clip["contacts"].items():
        for a, b in spans:
            held = [locks[side].evaluate(start + t * fps) for t in np.linspace(a, b, 5)]
            assert min(held) > 0.5 and a <= b
