# SPDX-License-Identifier: GPL-3.0-or-later
"""Node transforms, against matrices multiplied out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap_addon.formats import gltf_nodes, node_pose, threejs
from mocap_addon.motion.errors import FileError
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import Take

C = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
NAMES = ("root", "hips", "spine", "head")
PARENTS = (-1, 0, 1, 2)


def matrix(q: np.ndarray, t: np.ndarray, s: float = 1.0) -> np.ndarray:
    m = np.eye(4)
    m[:3, :3] = Rotation.from_quat(np.roll(q, -1)).as_matrix() * s
    m[:3, 3] = t
    return m


def turns(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return np.roll(Rotation.random(int(np.prod(shape)), random_state=int(rng.integers(1 << 30))).as_quat(), 1, axis=-1).reshape(*shape, 4)


def rig(rng: np.random.Generator) -> Skeleton:
    return Skeleton(NAMES, np.array(PARENTS), rng.normal(size=(4, 3)), turns(rng, 4))


def take_of(skeleton: Skeleton, rng: np.random.Generator, frames: int = 5) -> Take:
    return Take("t", skeleton, np.arange(frames) / 30, turns(rng, frames, 4), np.repeat(skeleton.rest_translations[None], frames, axis=0))


def worlds(take: Take, frame: int) -> list[np.ndarray]:
    out: list[np.ndarray] = []
    for j, p in enumerate(PARENTS):
        m = matrix(take.local_rotations[frame, j], take.local_translations[frame, j])
        out.append(m if p < 0 else out[p] @ m)
    return out


def file_of(skeleton: Skeleton, above: np.ndarray, unit: float, without: str = "") -> gltf_nodes.NodeTree:
    """What an exporter writes: an armature node that places the bones, bones in its unit."""
    rest = []
    for j, p in enumerate(PARENTS):
        m = matrix(skeleton.rest_rotations[j], skeleton.rest_translations[j])
        rest.append(m if p < 0 else rest[p] @ m)
    scaled = [m.copy() for m in rest]
    nodes: list[dict[str, Any]] = [{"name": "Armature", "matrix": above.T.ravel().tolist(), "children": []}]
    place = {}
    for j, name in enumerate(NAMES):
        if name == without:
            continue
        p = PARENTS[j]
        while p >= 0 and NAMES[p] == without:
            p = PARENTS[p]
        there = np.linalg.inv(above) @ C @ scaled[j] if p < 0 else np.linalg.inv(scaled[p]) @ scaled[j]
        local = there.copy()
        local[:3, :3] /= np.cbrt(np.linalg.det(local[:3, :3]))
        if p >= 0:
            local[:3, 3] /= unit
        nodes[place[p] if p >= 0 else 0].setdefault("children", []).append(len(nodes))
        place[j] = len(nodes)
        nodes.append({"name": name, "matrix": local.T.ravel().tolist()})
    return gltf_nodes.tree({"scenes": [{"nodes": [0]}], "nodes": nodes, "skins": [{"joints": list(place.values())}]})


def played(tree: gltf_nodes.NodeTree, motions: list[node_pose.NodeMotion], frame: int) -> dict[str, np.ndarray]:
    """Every node in the scene: T R S down the tree, motions in the place of the file's."""
    moved = {m.node: m for m in motions}
    out = {}
    for n in tree.order:
        m = moved.get(n)
        pick = lambda rows, still: still if rows is None else rows[min(frame, len(rows) - 1)]  # noqa: E731
        q = pick(m and m.rotations, tree.rotations[n])
        t = pick(m and m.translations, tree.translations[n])
        s = tree.scales[n] if m is None or m.scale is None else m.scale
        local = matrix(q, t) @ np.diag([*s, 1.0])
        p = int(tree.parents[n])
        out[n] = local if p < 0 else out[p] @ local
    return {tree.names[n]: m for n, m in out.items()}


ABOVE = [
    pytest.param(np.eye(4), 1.0, id="nothing"),
    pytest.param(matrix(np.array([0.5, -0.5, 0.5, 0.5]), np.zeros(3), 0.01), 0.01, id="scale 0.01, turned"),
    pytest.param(matrix(np.array([0.1, 0.7, -0.5, 0.5]) / 1.0, np.zeros(3), 100.0), 100.0, id="scale 100, turned"),
]


@pytest.mark.parametrize(("above", "unit"), ABOVE)
@pytest.mark.parametrize("without", ["", "root", "spine"])
def test_nodes_land_where_the_bones_are(above, unit, without):
    rng = np.random.default_rng(3)
    skeleton = rig(rng)
    take = take_of(skeleton, rng)
    take.local_translations[:, 1] += rng.normal(size=(5, 3))
    tree = file_of(skeleton, above, unit, without)
    nodes = node_pose.match(tree, skeleton)
    motions = node_pose.node_motions(take, tree, nodes, range(4), [1])
    for frame in range(5):
        theirs = played(tree, motions, frame)
        for name, m in zip(NAMES, worlds(take, frame), strict=True):
            if name == without:
                continue
            np.testing.assert_allclose(theirs[name][:3, 3], (C @ m)[:3, 3], atol=1e-9)
            turned = theirs[name][:3, :3] / np.cbrt(np.linalg.det(theirs[name][:3, :3]))
            np.testing.assert_allclose(turned, (C @ m)[:3, :3], atol=1e-9)


def test_the_file_keeps_its_own_place():
    rng = np.random.default_rng(4)
    skeleton = rig(rng)
    take = take_of(skeleton, rng)
    above = matrix(np.array([1.0, 0, 0, 0]), np.array([3.0, 4.0, 5.0]))
    tree = file_of(skeleton, above, 1.0)
    motions = node_pose.node_motions(take, tree, node_pose.match(tree, skeleton), range(4), [0])
    head = played(tree, motions, 2)["head"][:3, 3]
    np.testing.assert_allclose(head, (C @ worlds(take, 2)[3])[:3, 3] + (3, 4, 5), atol=1e-9)


def test_only_what_moves_or_stands_elsewhere_gets_a_track():
    rng = np.random.default_rng(5)
    skeleton = rig(rng)
    tree = file_of(skeleton, np.eye(4), 1.0)
    still = np.repeat(skeleton.rest_rotations[None], 5, axis=0)
    take = Take("t", skeleton, np.arange(5) / 30, still, np.repeat(skeleton.rest_translations[None], 5, axis=0))
    nodes = node_pose.match(tree, skeleton)
    (only,) = node_pose.node_motions(take, tree, nodes, [2], [])
    assert (only.bone, only.rotations.shape, only.translations, only.scale) == (2, (5, 4), None, None)
    still[:, 3] = turns(rng, 1)[0]
    spine, head = node_pose.node_motions(take, tree, nodes, [2], [])
    assert (spine.bone, head.bone, head.rotations.shape) == (2, 3, (1, 4))


def test_a_scaled_character_moves_in_the_files_size():
    rng = np.random.default_rng(6)
    skeleton = rig(rng)
    tree = file_of(skeleton, np.eye(4), 1.0)
    big = Skeleton(NAMES, np.array(PARENTS), skeleton.rest_translations * 3.0, skeleton.rest_rotations)
    take = take_of(big, rng)
    motions = node_pose.node_motions(take, tree, node_pose.match(tree, big), range(4), [0])
    np.testing.assert_allclose(played(tree, motions, 1)["head"][:3, 3], (C @ worlds(take, 1)[3])[:3, 3] / 3.0, atol=1e-9)


def test_other_bone_axes_are_refused():
    rng = np.random.default_rng(7)
    skeleton = rig(rng)
    tree = file_of(skeleton, np.eye(4), 1.0)
    other = Skeleton(NAMES, np.array(PARENTS), np.roll(skeleton.rest_translations, 1, axis=1), skeleton.rest_rotations)
    with pytest.raises(FileError, match="other axes"):
        node_pose.node_motions(take_of(other, rng), tree, node_pose.match(tree, other), range(4), [0])


@pytest.mark.parametrize("scale", [(1.0, 1.0, 2.0), (-1.0, 1.0, 1.0)])
def test_uneven_or_mirrored_scale_above_is_refused(scale):
    rng = np.random.default_rng(8)
    skeleton = rig(rng)
    tree = file_of(skeleton, np.diag([*scale, 1.0]), 1.0)
    with pytest.raises(FileError, match="uneven or mirrored"):
        node_pose.node_motions(take_of(skeleton, rng), tree, node_pose.match(tree, skeleton), range(4), [0])


def chain(*names: str, object_name: str = "") -> list[int]:
    """Nodes of a file matched with a skeleton of the given names, each below the one before."""
    data = {
        "scenes": [{"nodes": [0, 3]}],
        "nodes": [
            {"name": "One", "children": [1]},
            {"name": "hips", "children": [2, 6]},
            {"name": "hand"},
            {"name": "Two", "children": [4]},
            {"name": "hips", "children": [5]},
            {"name": "hand"},
            {"children": [7]},
            {"name": "hand"},
        ],
    }
    skeleton = Skeleton(names, np.arange(len(names)) - 1, np.zeros((len(names), 3)))
    return node_pose.match(gltf_nodes.tree(data), skeleton, object_name).tolist()


def test_match_of_equal_names():
    assert chain("hips", "hand", object_name="One") == [1, 2]
    assert chain("hips", "hand", object_name="Two") == [4, 5]
    assert chain("hips", "hand", object_name="Two.001") == [4, 5]
    assert chain("hips", "Node_6", "hand.001") == [1, 6, 7]
    assert chain("hips", "foot") == [1, -1]


def test_a_node_out_of_reach_is_refused():
    data = {"scenes": [{"nodes": [0]}], "nodes": [{"name": "r", "children": [1, 2, 3]}, {"name": "a_1"}, {"name": "a"}, {"name": "a."}]}
    tree = gltf_nodes.tree(data)
    still = node_pose.NodeMotion(3, 0, np.array([[1.0, 0, 0, 0]]), None, None, 1.0)
    with pytest.raises(FileError, match=r'another node than "a\."'):
        threejs.node_tracks(tree, [still])
