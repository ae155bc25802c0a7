# SPDX-License-Identifier: GPL-3.0-or-later
"""Bone transform maps: the numbers in the files against matrices multiplied out here, and their sidecar."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from mocap_addon.formats import gltf_nodes, transform_map
from mocap_addon.formats.node_clip import NodeClip, channel
from mocap_addon.motion.errors import MocapError
from tests.paths import ROOT

CHARACTER = ROOT / "mocap_addon" / "demo" / "character.glb"


def character():
    data = gltf_nodes.read_json(CHARACTER)
    return gltf_nodes.tree(data), list(data["skins"][0]["joints"])


def made_up(tree, joints, name: str, frames: int, seed: int, rate=30, wide=0.6, loop=True) -> NodeClip:
    """Every joint turns smoothly and much; the first one goes about."""
    rng = np.random.default_rng(seed)
    times = np.arange(frames) / rate
    phase = times / times[-1] * 2 * np.pi if frames > 1 else times
    channels = []
    for n in joints:
        rest = Rotation.from_quat(tree.rotations[n][[1, 2, 3, 0]])
        turn = (
            sum(np.outer(np.sin(k * phase + rng.uniform(0, 6)) - np.sin(rng.uniform(0, 6)), rng.normal(size=3)) for k in (1, 2)) * wide / 2
        )
        q = (rest * Rotation.from_rotvec(turn)).as_quat()[:, [3, 0, 1, 2]]
        if loop and frames > 1:
            q[-1] = q[0]
        channels.append(channel(n, "rotation", times, q))
    place = tree.translations[joints[0]] + np.stack([np.sin(phase), 0.1 * np.sin(2 * phase), np.cos(phase)], axis=1)
    if loop and frames > 1:
        place[-1] = place[0]
    channels.append(channel(joints[0], "translation", times, place))
    return NodeClip(name, times, tuple(channels), Fraction(rate), loop=loop)


def read_back(path):
    info = json.loads(path.read_text())
    raw = (path.parent / info["data"]).read_bytes()
    if info["data"].endswith(".ktx2"):
        raw = raw[int.from_bytes(raw[80:88], "little") :]
    kind = "<f2" if info["component"] == "f16" else "<f4"
    texels = np.frombuffer(raw, kind, info["width"] * info["height"] * info["layers"] * 4)
    return info, texels.reshape(info["layers"] * info["height"], info["width"], 4).astype(float)


def worlds_of(tree, clip, at):
    """Node -> its matrix in the scene at a time, by hand."""
    found = {(c.node, c.path): c for c in clip.channels}
    out = {}
    for n in tree.order:

        def value(path, rest, n=n):
            c = found.get((n, path))
            if c is None:
                return rest[n]
            if len(c.times) == 1:
                return c.values[0]
            if path == "rotation":
                return Slerp(c.times, Rotation.from_quat(c.values[:, [1, 2, 3, 0]]))(at).as_quat()[[3, 0, 1, 2]]
            return np.array([np.interp(at, c.times, c.values[:, i]) for i in range(3)])

        m = np.eye(4)
        q = value("rotation", tree.rotations)
        m[:3, :3] = Rotation.from_quat(q[[1, 2, 3, 0]]).as_matrix() * value("scale", tree.scales)
        m[:3, 3] = value("translation", tree.translations)
        p = int(tree.parents[n])
        out[n] = m if p < 0 else out[p] @ m
    return out


def rows_to_worlds(info, row):
    """What a player makes of a row."""
    out = []
    for b, bone in enumerate(info["bones"]):
        t = row[b * info["texels"] : (b + 1) * info["texels"]]
        m = np.eye(4)
        m[:3, :3] = Rotation.from_quat(t[0]).as_matrix() * (t[2, :3] if info["texels"] > 2 else t[1, 3])
        m[:3, 3] = t[1, :3]
        out.append(m if bone["parent"] < 0 else out[bone["parent"]] @ m)
    return np.array(out)


@pytest.mark.parametrize(("precision", "container"), [("float32", "bin"), ("float32", "ktx2"), ("float16", "bin"), ("float16", "ktx2")])
def test_rows_are_the_frames_of_the_clips(tmp_path, precision, container):
    tree, joints = character()
    clips = [made_up(tree, joints, "walk", 25, 1), made_up(tree, joints, "run", 13, 2, rate=24), made_up(tree, joints, "pose", 1, 3)]
    made = transform_map.bake(tree, clips, joints, precision=precision)
    path, data = transform_map.write(tmp_path / "hero.map.json", made, container=container)
    assert data.name == f"hero.map.{container}" and sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, data.name])
    info, rows = read_back(path)
    assert [(c["name"], c["row"], c["frames"], c["fps"]) for c in info["clips"]] == [
        ("walk", 0, 25, 30),
        ("run", 25, 13, 24),
        ("pose", 38, 1, 30),
    ]
    assert [c["duration"] for c in info["clips"]] == pytest.approx([0.8, 0.5, 0.0])
    worst = 0.0
    for clip, entry in zip(clips, info["clips"], strict=True):
        for f in range(entry["frames"]):
            meant = worlds_of(tree, clip, f / entry["fps"])
            got = rows_to_worlds(info, rows[entry["row"] + f])
            for b, n in enumerate(made.nodes):
                for arm in (np.zeros(3), *np.eye(3) * 0.03):
                    worst = max(worst, float(np.linalg.norm((got[b] - meant[n])[:3] @ np.append(arm, 1.0))))
    assert worst * 1000 <= info["error_mm"] * 1.01 + 1e-5  # the bound that is stated holds, and says something
    assert worst * 1000 >= info["error_mm"] * 0.9 - 1e-5
    assert info["error_mm"] < (0.01 if precision == "float32" else 5.0)


def test_the_bounds_hold_every_bone(tmp_path):
    tree, joints = character()
    clip = made_up(tree, joints, "walk", 25, 1)
    made = transform_map.bake(tree, [clip], joints)
    frames = [worlds_of(tree, clip, f / 30) for f in range(25)]
    every = np.array([[worlds[n][:3, 3] for n in made.nodes] for worlds in frames])
    np.testing.assert_allclose(made.bounds, [every.min(axis=(0, 1)), every.max(axis=(0, 1))], atol=1e-9)


def test_rows_go_on_in_the_next_layer(monkeypatch, tmp_path):
    monkeypatch.setattr(transform_map, "LIMIT", 128)
    tree, joints = character()
    clip = made_up(tree, joints[:20], "long", 300, 1)
    made = transform_map.bake(tree, [clip], joints[:20])
    info, rows = read_back(transform_map.write(tmp_path / "a.map.json", made)[0])
    assert (info["height"], info["layers"]) == (128, 3) and len(rows) == 384
    np.testing.assert_allclose(rows[299, 0], made.texels[299, 0])
    assert not rows[300:].any()


def test_a_length_between_frames_ends_where_the_clip_ends():
    tree, joints = character()
    clip = made_up(tree, joints, "odd", 25, 1)
    made = transform_map.bake(tree, [clip], joints, rate=Fraction(7))
    entry = made.clips[0]
    assert entry.frames == 7 and entry.duration == pytest.approx(clip.duration, abs=1e-9)


def test_uneven_scales_take_a_third_texel():
    tree, joints = character()
    clip = made_up(tree, joints, "a", 5, 1)
    squeezed = replace(clip, channels=(*clip.channels, channel(joints[3], "scale", clip.times, np.linspace([1, 1, 1], [1, 2, 1], 5))))
    assert transform_map.bake(tree, [clip], joints).per_bone == 2
    assert transform_map.bake(tree, [squeezed], joints).per_bone == 3


def test_an_in_place_clip_says_how_fast_it_would_go():
    tree, joints = character()
    clip = made_up(tree, joints, "walk", 31, 1)
    away = np.linspace([1.0, 0, 0], [1.0, 0, 3.0], 31)
    made = transform_map.bake(
        tree, [replace(clip, path=(away, np.tile([1.0, 0, 0, 0], (31, 1)))), made_up(tree, joints, "idle", 5, 2)], joints
    )
    walk, idle = transform_map.sidecar(made, "x.bin")["clips"]
    assert walk["way"] == [0, 0, 3] and walk["speed"] == pytest.approx(3.0) and "way" not in idle


def test_matrices_are_three_jss_own_bone_texture():
    tree, joints = character()
    clip = made_up(tree, joints, "a", 5, 1)
    rng = np.random.default_rng(0)
    binds = {n: np.vstack([rng.normal(size=(3, 4)), [0, 0, 0, 1]]) for n in joints}
    made = transform_map.bake(tree, [clip], joints, layout="matrices", inverse_binds=binds)
    meant = worlds_of(tree, clip, 3 / 30)
    for j, n in enumerate(joints):
        np.testing.assert_allclose(made.texels[3, 4 * j : 4 * j + 4].T, meant[n] @ binds[n], atol=1e-5)
    assert made.nodes == tuple(joints)


def test_what_cannot_be_a_map():
    tree, joints = character()
    clip = made_up(tree, joints, "a", 5, 1)
    with pytest.raises(MocapError, match="no clip"):
        transform_map.bake(tree, [], joints)
    with pytest.raises(MocapError, match='called "a"'):
        transform_map.bake(tree, [clip, clip], joints)
    with pytest.raises(MocapError, match="no bones"):
        transform_map.bake(tree, [clip], [])
    from mocap_addon.formats.node_clip import additive

    with pytest.raises(MocapError, match="differences"):
        transform_map.bake(tree, [additive(clip)], joints)
