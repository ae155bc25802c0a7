# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of nodes as three.js has them, against three.js; and reading of glTF files, good and bad."""

from __future__ import annotations

import json
import random
import struct
from typing import Any

import numpy as np
import pytest

from mocap_addon.formats import gltf_nodes
from mocap_addon.motion.errors import FileError
from tests.node import run

ASSET = {"version": "2.0"}


def gltf(nodes: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"asset": ASSET, "scene": 0, "scenes": [{"nodes": [0]}], "nodes": nodes, **more}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mixamorig:Hips", "mixamorigHips"),
        ("upper_arm.L", "upper_armL"),
        ("Bone.001", "Bone001"),
        ("Bone 001", "Bone_001"),
        ("a[0]/b", "a0b"),
        ("a|b-c", "a|b-c"),
        ("腰 骨", "腰_骨"),
        ("tab\there\u00a0\u3000\ufeff", "tab_here___"),
        ("next\u0085\x1cline", "next\u0085\x1cline"),
        ("...", ""),
    ],
)
def test_sanitize(name, expected):
    assert gltf_nodes.sanitize(name) == expected


def test_scene_name_is_taken_first():
    data = gltf([{"name": "Hips"}], scenes=[{"name": "Hips", "nodes": [0]}])
    assert gltf_nodes.loader_names(data) == ("Hips_1",)


def test_two_names_that_become_one():
    data = gltf([{"name": "Armature", "children": [1, 2]}, {"name": "upper_arm.L"}, {"name": "upper_armL"}])
    assert gltf_nodes.loader_names(data) == ("Armature", "upper_armL", "upper_armL_1")
    assert gltf_nodes.tree(data).found.all()


def test_a_skin_names_its_joints_in_its_own_order():
    nodes = [{"name": "A", "children": [1, 2]}, {"name": "Body", "skin": 0}, {"name": "b.", "children": [3]}, {"name": "b"}]
    assert gltf_nodes.loader_names(gltf(nodes, skins=[{"joints": [3, 2]}])) == ("A", "Body", "b_1", "b")
    assert gltf_nodes.loader_names(gltf(nodes, skins=[{"joints": [2, 3]}])) == ("A", "Body", "b", "b_1")


def test_a_literal_number_hides_a_numbered_node():
    data = gltf([{"name": "r", "children": [1, 2, 3]}, {"name": "a_1"}, {"name": "a"}, {"name": "a."}])
    assert gltf_nodes.loader_names(data) == ("r", "a_1", "a", "a_1")
    assert gltf_nodes.tree(data).found.tolist() == [True, True, True, False]


def random_gltf(rng: random.Random) -> dict[str, Any]:
    """Small trees of nasty names with skins, cameras, lights, meshes of several parts, two scenes and animations."""
    pieces = ["a", "a", "a", "b", "a_1", "a_2", "b_1", ".", ":", " ", "[0]", "/", "骨", "腰", "toString", "__proto__", "\u3000", "é"]

    def name() -> str:
        return "".join(rng.choice(pieces) for _ in range(rng.choice([1, 1, 1, 2, 3])))

    count = rng.randint(2, 12)
    nodes: list[dict[str, Any]] = [{"name": name()} if rng.random() < 0.9 else {} for _ in range(count)]
    scenes: list[dict[str, Any]] = [{"nodes": [], **({"name": name()} if rng.random() < 0.6 else {})} for _ in range(rng.choice([1, 1, 2]))]
    order = list(range(count))
    rng.shuffle(order)
    for place, i in enumerate(order):
        if place == 0 or rng.random() < 0.2:
            rng.choice(scenes)["nodes"].append(i)
        else:
            nodes[rng.choice(order[:place])].setdefault("children", []).append(i)
    data: dict[str, Any] = {"asset": ASSET, "scene": rng.randrange(len(scenes)), "scenes": scenes, "nodes": nodes}
    if rng.random() < 0.6:
        data["skins"] = [{"joints": rng.sample(order, rng.randint(1, count))} for _ in range(rng.randint(1, 2))]
        for _ in range(2):
            rng.choice(nodes)["skin"] = rng.randrange(len(data["skins"]))
    if rng.random() < 0.4:
        data["cameras"] = [
            {"type": "perspective", "perspective": {"yfov": 1, "znear": 1}, **({"name": name()} if rng.random() < 0.7 else {})}
        ]
        rng.choice(nodes)["camera"] = 0
    if rng.random() < 0.4:
        data["extensionsUsed"] = ["KHR_lights_punctual"]
        lights = [{"type": "point", **({"name": name()} if rng.random() < 0.7 else {})} for _ in range(2)]
        data["extensions"] = {"KHR_lights_punctual": {"lights": lights}}
        rng.choice(nodes)["extensions"] = {"KHR_lights_punctual": {"light": rng.randrange(2)}}
    if rng.random() < 0.4:
        part = {"attributes": {"POSITION": 0}}
        data["accessors"] = [{"componentType": 5126, "count": 3, "type": "VEC3"}]
        data["meshes"] = [{"primitives": [part] * rng.randint(1, 3), **({"name": name()} if rng.random() < 0.7 else {})} for _ in range(2)]
        for _ in range(2):
            rng.choice(nodes)["mesh"] = rng.randrange(2)
    return data


def test_names_are_those_of_three():
    """600 random files, loaded by three.js: the same names; and no node counts as found that three.js does not find."""
    rng = random.Random(20)
    files = [random_gltf(rng) for _ in range(600)]
    theirs = run("names.mjs", files)
    compared = hidden = cautious = 0
    for data, three in zip(files, theirs, strict=True):
        names = gltf_nodes.loader_names(data)
        found = gltf_nodes.found_by_name(data)
        for i, name in enumerate(three["names"]):
            if name is None or "name" not in data["nodes"][i]:
                continue  # outside every scene, or without a name
            assert names[i] == name, data
            compared += 1
            hidden += not three["found"][i]
            assert not found[i] or three["found"][i], (i, data)
            cautious += bool(three["found"][i] and not found[i])
            if not any(key in data for key in ("meshes", "cameras", "extensions")):
                assert found[i] == three["found"][i], (i, data)
    assert compared > 2500
    assert hidden > 100  # the files do contain what the test is about
    assert cautious < 0.03 * compared


def test_transforms_of_parts_and_of_a_matrix():
    """A quarter turn about X, scale 2, moved: as parts, and as the column-by-column matrix written out by hand."""
    half = 0.5**0.5
    parts = {"name": "p", "translation": [1, 2, 3], "rotation": [half, 0, 0, half], "scale": [2, 2, 2], "children": [1]}
    matrix = {"name": "m", "matrix": [2, 0, 0, 0, 0, 0, 2, 0, 0, -2, 0, 0, 1, 2, 3, 1], "children": [1]}
    child = {"name": "c", "translation": [0, 1, 0]}
    for first in (parts, matrix):
        tree = gltf_nodes.tree(gltf([first, child]))
        np.testing.assert_allclose(tree.rotations[0], [half, half, 0, 0], atol=1e-12)
        np.testing.assert_allclose(tree.scales[0], [2, 2, 2], atol=1e-12)
        np.testing.assert_allclose(tree.global_matrices[1][:3, 3], [1, 2, 5], atol=1e-12)


def binary(data: dict[str, Any]) -> bytes:
    text = json.dumps(data).encode()
    return b"glTF" + struct.pack("<II", 2, 20 + len(text)) + struct.pack("<I", len(text)) + b"JSON" + text


def test_text_and_binary_files_are_told_by_their_content(tmp_path):
    data = gltf([{"name": "a"}])
    (tmp_path / "x.glb").write_text("\ufeff" + json.dumps(data), encoding="utf-8")
    (tmp_path / "x.gltf").write_bytes(binary(data))
    for name in ("x.glb", "x.gltf"):
        assert gltf_nodes.read_tree(tmp_path / name).loader_names == ("a",)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"glTF",
        b"glTF\x02\0\0\0\xff\0\0\0\xff\0\0\0JSON{",
        b"glTF\x01\0\0\0",
        b"not json",
        b"[]",
        b"{}",
        b'"text"',
        b"\xff\xfe\x00",
        b"[" * 100_000,
        json.dumps(gltf([{"name": "a", "children": [0]}])).encode(),
        json.dumps(gltf([{"name": "a", "children": [1]}, {"name": "b", "children": [0]}])).encode(),
        json.dumps(gltf([{"name": "a", "children": [7]}])).encode(),
        json.dumps(gltf([{"name": "a", "children": [-1]}, {"name": "b"}])).encode(),
        json.dumps(gltf([{"name": "a", "children": [2, 2]}, {}, {}])).encode(),
        json.dumps(gltf([{"name": "a", "children": ["b"]}])).encode(),
        json.dumps(gltf([{"name": "a", "rotation": [1, 2]}])).encode(),
        json.dumps(gltf([{"name": "a", "matrix": [1, 2]}])).encode(),
        json.dumps(gltf([{"name": "a", "translation": "far"}])).encode(),
        json.dumps(gltf([{"name": "a"}], skins=[{"joints": [9]}])).encode(),
        json.dumps(gltf([{"name": "a", "skin": 4}])).encode(),
        json.dumps(gltf([{"name": "a", "mesh": 4}])).encode(),
        json.dumps(gltf([{"name": 5}])).encode(),
        json.dumps(gltf([7])).encode(),
        json.dumps({"asset": ASSET, "nodes": 5}).encode(),
        json.dumps({"asset": ASSET, "nodes": [{}], "scenes": [{"nodes": [3]}]}).encode(),
        json.dumps({"asset": ASSET, "nodes": [{}], "scenes": {"a": 1}}).encode(),
    ],
)
def test_damaged_files_get_a_sentence(tmp_path, content):
    path = tmp_path / "bad.glb"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"^bad\.glb: [A-Z].*\.$"):
        gltf_nodes.read_tree(path)


def test_a_missing_file_gets_a_sentence(tmp_path):
    with pytest.raises(FileError, match=r"^none\.glb: "):
        gltf_nodes.read_tree(tmp_path / "none.glb")


def test_a_deep_chain_of_nodes():
    nodes = [{"name": f"n{i}", "children": [i + 1]} for i in range(3000)] + [{"name": "end"}]
    tree = gltf_nodes.tree(gltf(nodes))
    assert tree.found.all()
