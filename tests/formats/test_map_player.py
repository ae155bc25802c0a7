# SPDX-License-Identifier: GPL-3.0-or-later
"""The player of transform maps: against three.js' AnimationMixer on the same clips, in Node and on a graphics card (in software)."""

from __future__ import annotations

import itertools
import json
import shutil
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mocap_addon.formats import threejs, threejs_clip, transform_map
from mocap_addon.formats.clip_reduce import compact
from mocap_addon.formats.node_clip import NodeClip, channel
from mocap_addon.formats.node_metric import Body
from mocap_addon.formats.threejs_clip import JsonWriting
from tests import browser, node
from tests.paths import ROOT

from .test_transform_map import CHARACTER, character, made_up

THREE = ROOT / "tests" / "node" / "node_modules" / "three"


def written(folder, **options):
    """A character with four clips of different lengths and rates, as three.js clips and as a map."""
    tree, joints = character()
    clips = [
        made_up(tree, joints, "walk", 31, 1),
        made_up(tree, joints, "run", 20, 2, rate=24, wide=1.0),
        made_up(tree, joints, "wave", 61, 3, wide=0.4),
        made_up(tree, joints, "jump", 13, 4, rate=60, wide=0.8),
    ]
    body = Body(tree, joints)
    converted = [one for clip in clips for one in threejs_clip.to_clip(tree, compact(clip, body, None, JsonWriting()))]
    threejs.write(folder / "clips.json", converted)
    transform_map.write(folder / "hero.map.json", transform_map.bake(tree, clips, joints, **options))
    shutil.copy(CHARACTER, folder / "character.glb")


def played(folder, query=""):
    node._ready()
    roots = {"test": browser.__path__[0], "three": THREE, "viewer": ROOT / "mocap_addon" / "viewer", "data": folder}
    answer = browser.ask(f"test/crowd.html?{query}", {name: Path(path) for name, path in roots.items()}, timeout=240)
    assert "failed" not in answer, answer
    assert answer["missing"] == 0 and answer["shown"] == 0 and answer["said"] == []
    return answer


def test_a_thousand_instances_are_where_mixers_put_them(tmp_path):
    written(tmp_path)
    answer = played(tmp_path, "count=1000&vertices=480")
    print(json.dumps(answer))
    assert answer["worst"] < 0.5 and answer["worstFading"] < 0.5  # mm
    assert answer["cpu"] < 0.01
    assert answer["calls"] <= answer["meshes"] == 1
    assert answer["crowdMs"] * 10 < answer["mixersMs"]


@pytest.mark.thorough
def test_after_minutes_too_and_in_half_precision(tmp_path):
    written(tmp_path, precision="float16")
    info = json.loads((tmp_path / "hero.map.json").read_text())
    answer = played(tmp_path, "count=60&vertices=300&late=1")
    assert max(answer["worst"], answer["worstFading"]) < 4 * info["error_mm"] + 0.5


def evaluated(folder, *requests):
    return node.run("map_pose.mjs", {"map": str(folder / "hero.map.json"), "character": str(CHARACTER), "requests": list(requests)})


def test_on_the_main_thread_limbs_keep_their_lengths_through_a_quarter_turn(tmp_path):
    """Halfway between two directions a quarter turn apart the arm is as long as ever: blended matrices would shorten it by 29 percent."""
    tree, joints = character()
    names = {tree.names[n]: n for n in joints}
    arm = names["upperarm_l"]
    times = np.arange(2) / 30
    clips = []
    for name, angle in (("down", 0.0), ("ahead", np.pi / 2)):
        q = np.array([[np.cos(angle / 2), np.sin(angle / 2), 0.0, 0.0]] * 2)
        clips.append(
            NodeClip(
                name,
                times,
                (channel(arm, "rotation", times, q), *(channel(n, "rotation", times[:1], tree.rotations[[n]]) for n in joints if n != arm)),
                Fraction(30),
            )
        )
    transform_map.write(tmp_path / "hero.map.json", transform_map.bake(tree, clips, joints))
    poses = evaluated(tmp_path, *({"from": "down", "to": "ahead", "at": 0, "share": s} for s in (0.0, 0.25, 0.5, 0.75, 1.0)))
    chain = ["upperarm_l", "lowerarm_l", "hand_l"]
    lengths = np.array([[np.linalg.norm(np.subtract(p[a], p[b])) for a, b in itertools.pairwise(chain)] for p in poses])
    np.testing.assert_allclose(lengths, np.repeat(lengths[:1], 5, axis=0), rtol=1e-6)
    hands = np.array([np.subtract(p["hand_l"], p["upperarm_l"]) for p in poses])
    assert np.linalg.norm(hands[0]) == pytest.approx(np.linalg.norm(hands[2]), rel=1e-6)
    assert np.degrees(np.arccos(hands[0] @ hands[4] / np.linalg.norm(hands[0]) ** 2)) > 60  # and it did turn


def test_clips_of_different_lengths_fade_without_reading_past_their_ends(tmp_path):
    written(tmp_path)
    poses = evaluated(
        tmp_path,
        *(
            {"from": a, "to": b, "at": t, "share": 0.5, "mixer": str(tmp_path / "clips.json")}
            for a, b in (("walk", "jump"), ("wave", "run"))
            for t in (0.0, 0.19, 0.2, 0.21, 1.0, 2.0, 7.77)
        ),
    )
    assert max(p["apart"] for p in poses) < 1e-5


def test_a_ktx2_file_is_read_by_three(tmp_path):
    written(tmp_path)
    tree, joints = character()
    for precision, kind in (("float32", 109), ("float16", 97)):
        made = transform_map.bake(tree, [made_up(tree, joints, "walk", 31, 1)], joints, precision=precision)
        _, data = transform_map.write(tmp_path / "hero.map.json", made, container="ktx2")
        told = node.run("ktx2.mjs", {"path": str(data)})
        width, height, layers = made.shape
        assert (told["vkFormat"], told["width"], told["height"], told["layers"]) == (kind, width, height, 0 if layers == 1 else layers)
        assert told["levels"] == [made.texels.nbytes] and told["samples"] == 4 and told["writer"] == "mocap"
        (pose,) = evaluated(tmp_path, {"from": "walk", "to": "walk", "at": 0.3, "share": 1})
        assert all(abs(v) < 10 for v in pose["hand_l"])
