# SPDX-License-Identifier: GPL-3.0-or-later
"""Leaving keys out and writing numbers shorter: bounds held, by matrices multiplied out and SciPy's slerp."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from mocap_addon.formats import clip_reduce, gltf_clips, gltf_nodes, node_clip, node_metric, threejs_clip
from mocap_addon.formats.clip_thin import kept_keys
from mocap_addon.formats.node_clip import Channel, NodeClip
from mocap_addon.formats.node_metric import Body


def chain(count: int = 6, scale: float = 1.0) -> gltf_nodes.NodeTree:
    """A chain of nodes of a third of a metre, below one that is scaled."""
    nodes = [{"name": "top", "scale": [scale] * 3, "rotation": [0.5, 0.5, 0.5, 0.5], "children": [1]}]
    for n in range(1, count + 1):
        nodes.append({"name": f"b{n}", "translation": [0, 0.3 / scale, 0.05 / scale], "rotation": [0, 0, 0.6, 0.8], "children": [n + 1]})
    nodes[-1].pop("children")
    return gltf_nodes.tree({"scenes": [{"nodes": [0]}], "nodes": nodes, "asset": {}})


def wobble(frames: int, count: int, seed: int = 0, noise: float = 0.0, size: float = 0.8) -> np.ndarray:
    """(F, C, 4) wxyz: smooth swings."""
    rng = np.random.default_rng(seed)
    t = np.linspace(0.0, 2.0, frames)[:, None]
    vectors = size * np.sin(rng.uniform(1, 4, count) * t + rng.uniform(0, 6, count))[..., None] * rng.normal(size=(count, 3)) / 2
    vectors = vectors + noise * rng.normal(size=vectors.shape)
    q = Rotation.from_rotvec(vectors.reshape(-1, 3)).as_quat().reshape(frames, count, 4)[..., [3, 0, 1, 2]]
    return q


def clip_on(tree: gltf_nodes.NodeTree, frames: int = 90, **more) -> NodeClip:
    times = np.arange(frames) / 60.0
    count = len(tree) - 1
    q = wobble(frames, count, **more)
    channels = [node_clip.channel(n + 1, "rotation", times, q[:, n]) for n in range(count)]
    unit = float(tree.scales[0][0])
    places = np.stack([np.sin(times), 0.3 * times, times**2], axis=1) / unit
    channels.append(node_clip.channel(1, "translation", times, places, unit))
    return NodeClip("swing", times, tuple(channels))


def places(tree: gltf_nodes.NodeTree, channels, times: np.ndarray) -> np.ndarray:
    """(F, N, 4, 3): joints and shells by 4x4 matrices, rotations by SciPy; the independent measure."""
    found = {}
    for c in channels:
        at = np.clip(times, c.times[0], c.times[-1])
        if len(c.times) == 1:
            values = np.repeat(c.values, len(times), axis=0)
        elif c.path == "rotation":
            values = Slerp(c.times, Rotation.from_quat(c.values[:, [1, 2, 3, 0]]))(at).as_quat()[:, [3, 0, 1, 2]]
        else:
            values = np.stack([np.interp(at, c.times, c.values[:, k]) for k in range(3)], axis=1)
        found[c.node, c.path] = values
    out = np.empty((len(times), len(tree), 4, 3))
    for f in range(len(times)):
        world = {}
        for n in tree.order:
            m = np.eye(4)
            q = found[n, "rotation"][f] if (n, "rotation") in found else tree.rotations[n]
            m[:3, :3] = Rotation.from_quat(q[[1, 2, 3, 0]]).as_matrix() @ np.diag(tree.scales[n])
            m[:3, 3] = found[n, "translation"][f] if (n, "translation") in found else tree.translations[n]
            p = int(tree.parents[n])
            world[n] = world[p] @ m if p >= 0 else m
            axes = world[n][:3, :3] / np.cbrt(np.linalg.det(world[n][:3, :3]))
            out[f, n] = world[n][:3, 3] + np.vstack([np.zeros(3), 0.03 * axes.T])
    return out


@pytest.mark.parametrize("scale", [1.0, 0.01])
@pytest.mark.parametrize("writing", [threejs_clip.JsonWriting(), gltf_clips.GlbWriting()])
@pytest.mark.parametrize("bound", [1e-4, 1e-3])
def test_the_bound_holds_by_matrices_multiplied_out_and_much_is_saved(writing, bound, scale):
    tree = chain(scale=scale)
    clip = clip_on(tree, noise=1e-5)
    body = Body(tree, range(1, len(tree)))
    done = clip_reduce.compact(clip, body, bound, writing)
    assert done.measured.worst <= bound
    times = node_metric.between(clip.times)
    apart = np.linalg.norm(places(tree, clip.channels, times) - places(tree, done.clip.channels, times), axis=-1)[:, 1:]
    assert apart.max() <= done.measured.worst + 2e-6
    assert apart.max() >= 0.8 * done.measured.worst  # a player that does not normalise may be further off
    keys = sum(len(c.times) for c in done.clip.channels)
    assert keys < 0.9 * sum(len(c.times) for c in clip.channels)


def test_the_measure_is_that_of_matrices():
    """A clip against another one that is off by known turns."""
    tree = chain(scale=0.01)
    clip, other = clip_on(tree), clip_on(tree, seed=1)
    found = node_metric.compare(Body(tree, range(1, len(tree))), clip.channels, other.channels, clip.times)
    times = node_metric.between(clip.times)
    apart = np.linalg.norm(places(tree, clip.channels, times) - places(tree, other.channels, times), axis=-1)[:, 1:]
    assert found.worst == pytest.approx(apart.max(), rel=1e-9)
    assert found.time == pytest.approx(times[np.unravel_index(apart.argmax(), apart.shape)[0]])


def test_a_lone_error_is_told_where_it_is():
    tree = chain(3)
    clip = clip_on(tree)
    c = clip.channels[2]
    values = c.values.copy()
    values[40] = Rotation.from_rotvec([0, 0, 0.01]).as_quat()[[3, 0, 1, 2]]
    broken = [Channel(k.node, k.path, k.times, values if k is c else k.values, k.metres) for k in clip.channels]
    found = node_metric.compare(Body(tree, [1, 2, 3]), clip.channels, broken, clip.times)
    assert (found.node, found.time) == (3, pytest.approx(40 / 60))


def test_without_a_bound_every_sample_stays():
    tree = chain()
    clip = clip_on(tree)
    for writing in (threejs_clip.JsonWriting(), gltf_clips.GlbWriting()):
        done = clip_reduce.compact(clip, Body(tree, range(1, 7)), None, writing)
        assert [len(c.times) for c in done.clip.channels] == [len(c.times) for c in clip.channels]
        assert done.measured.worst < 2e-6


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 60), st.integers(0, 10_000), st.floats(1e-4, 0.2), st.booleans())
def test_every_sample_stays_within_the_limit_of_its_own_curve(frames, seed, limit, even):
    rng = np.random.default_rng(seed)
    times = np.arange(frames) / 30.0 if even else np.cumsum(rng.uniform(0.005, 0.2, frames))
    q = wobble(frames, 3, seed, noise=0.01)
    limits = limit * np.array([1.0, 0.3, 3.0])
    kept = kept_keys(q.transpose(1, 0, 2), times, limits, rotations=True)
    assert kept[:, 0].all() and kept[:, -1].all()
    for c in range(3):
        keys = np.flatnonzero(kept[c])
        found = Slerp(times[keys], Rotation.from_quat(q[keys][:, c][:, [1, 2, 3, 0]]))(times)
        true = Rotation.from_quat(q[:, c][:, [1, 2, 3, 0]])
        assert (found.inv() * true).magnitude().max() <= limits[c] + 1e-7


def test_a_straight_curve_needs_its_ends_only_and_a_jagged_one_every_key():
    times = np.arange(65) / 30.0
    straight = np.stack([times, 2 * times, -times], axis=1)
    jagged = straight + np.where(np.arange(65) % 2, 0.1, -0.1)[:, None]
    kept = kept_keys(np.stack([straight, jagged]), times, np.array([1e-6, 1e-3]), rotations=False)
    assert kept.sum(axis=1).tolist() == [2, 65]


def test_turns_of_more_than_half_a_circle_are_not_left_out():
    """Between two keys a player takes the shorter way."""
    times = np.arange(41) / 30.0
    angle = np.linspace(0.0, 4.0 * np.pi, 41)
    q = np.stack([np.cos(angle / 2), np.sin(angle / 2), 0 * angle, 0 * angle], axis=1)
    keys = np.flatnonzero(kept_keys(q[None], times, np.array([1e-3]), rotations=True)[0])
    assert np.diff(angle[keys]).max() < np.pi


def test_rounded_rotations_are_of_unit_length():
    q = wobble(200, 1, noise=0.3)[:, 0]
    shorts = gltf_clips.shorts(q).astype(float)
    assert np.abs(np.linalg.norm(shorts, axis=1) / 32767 - 1).max() < 2e-5
    turned = Rotation.from_quat(shorts[:, [1, 2, 3, 0]]).inv() * Rotation.from_quat(q[:, [1, 2, 3, 0]])
    assert turned.magnitude().max() < 6e-5


def test_loops_close():
    tree = chain(2)
    times = np.arange(30) / 30.0
    q = wobble(30, 2)
    open_ = NodeClip("x", times, (node_clip.channel(1, "rotation", times, q[:, 0]),))
    closed = node_clip.closed(open_)
    assert closed.loop and len(closed.times) == 31
    np.testing.assert_array_equal(np.abs(closed.channels[0].values[-1]), np.abs(closed.channels[0].values[0]))
    again = node_clip.closed(closed)
    assert len(again.times) == 31
    assert len(tree) == 3


def test_additive_and_back():
    clip = clip_on(chain(3))
    extra = node_clip.additive(clip)
    np.testing.assert_allclose(extra.channels[0].values[0], [1, 0, 0, 0], atol=1e-12)
    back = node_clip.whole(extra)
    for a, b in zip(clip.channels, back.channels, strict=True):
        np.testing.assert_allclose(a.values, b.values, atol=1e-12)
    body = Body(chain(3), [1, 2, 3])
    done = clip_reduce.compact(extra, body, 1e-4, threejs_clip.JsonWriting())
    assert done.measured.worst <= 1e-4
    assert node_metric.compare(body, clip.channels, node_clip.whole(done.clip).channels, clip.times).worst <= 1.01e-4


def test_one_frame_and_standing_clips():
    tree = chain(2)
    pose = NodeClip("pose", np.zeros(1), (Channel(1, "rotation", np.zeros(1), np.array([[0.8, 0.6, 0, 0]])),))
    for writing in (threejs_clip.JsonWriting(), gltf_clips.GlbWriting()):
        for bound in (None, 1e-4):
            done = clip_reduce.compact(pose, Body(tree, [1, 2]), bound, writing)
            assert done.measured.worst < 1e-4
    (clip,) = threejs_clip.to_clip(tree, clip_reduce.compact(pose, Body(tree, [1, 2]), None, threejs_clip.JsonWriting()))
    assert clip.duration > 0.0
