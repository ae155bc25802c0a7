# SPDX-License-Identifier: GPL-3.0-or-later
"""Which nodes of a glTF file are a body's joints, and how the body stands at rest.

Joints are the joints of skins with every node between them; skins that share nodes are one body. A file without skins (motion alone, VRM
animations) has one body: the nodes of its humanoid map, else those below the topmost moving node. What stands above a body's topmost
joints is not part of it: its transform is folded into them.

The rest pose is the pose in which the skin was bound where the file tells it, as Blender's importer has it: of two joints with inverse bind
matrices ``B`` the child's place in the parent is ``B_parent inv(B_child)``. Other joints rest as their nodes stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import FileError
from .gltf_buffers import Buffers
from .gltf_nodes import NodeTree

Array = NDArray[np.float64]
Json = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class GltfBody:
    """The joints of one body.

    Parameters
    ----------
    nodes : tuple of int
        A joint's node, parents first.
    parents : (J,) int array
    names : tuple of str
        Unique.
    above : tuple of int
        Nodes above the topmost joints, from the scene downwards.
    rest_rotations, rest_translations : (J, 4), (J, 3) arrays
        In the parent joint's frame and the file's units there; a topmost joint's in its parent node's.
    """

    nodes: tuple[int, ...]
    parents: NDArray[np.int64]
    names: tuple[str, ...]
    above: tuple[int, ...]
    rest_rotations: Array
    rest_translations: Array


def bodies(data: Json, tree: NodeTree, buffers: Buffers) -> list[GltfBody]:
    """The bodies of a file, the one with the most joints first; empty where nothing in it can be a body."""
    binds = _bind_matrices(data, tree, buffers)
    humanoid = humanoid_nodes(data)
    groups = [set(humanoid.values())] if humanoid else _skinned(data, tree) or _moving(data, tree)
    if humanoid and not all(0 <= n < len(tree) for n in groups[0]):
        raise FileError("The humanoid map names nodes that are not in the file; export it again.")
    names = {node: role for role, node in humanoid.items()}
    found = [_body(_closed(group, tree), tree, binds, names) for group in groups if group]
    return sorted(found, key=lambda body: -len(body.nodes))


def humanoid_nodes(data: Json) -> dict[str, int]:
    """VRM animations say which node is which bone of the humanoid: role -> node. Empty for other files."""
    extensions: Json = data.get("extensions") or {}
    extension: Json = extensions.get("VRMC_vrm_animation") or {}
    humanoid: Json = extension.get("humanoid") or {}
    bones: Mapping[str, Json] = humanoid.get("humanBones") or {}
    return {role: int(bone["node"]) for role, bone in bones.items() if bone.get("node") is not None}


def _skinned(data: Json, tree: NodeTree) -> list[set[int]]:
    """Joints of skins; skins that share joints, or whose joints hang on joints of others, are one group."""
    groups: list[set[int]] = []
    for skin in data.get("skins") or ():
        group = _closed({int(j) for j in skin["joints"]}, tree)
        above = {a for n in group for a in tree.ancestors(n)}
        for other in [g for g in groups if g & group or g & above or _below(g, tree) & group or _one_holder(g, group, tree)]:
            groups.remove(other)
            group |= other
        groups.append(_closed(group, tree))
    return groups


def _below(group: set[int], tree: NodeTree) -> set[int]:
    return {a for n in group for a in tree.ancestors(n)}


def _one_holder(a: set[int], b: set[int], tree: NodeTree) -> bool:
    """Whether the topmost joints of both hang on one node: an armature of several roots."""
    holders = [{int(tree.parents[n]) for n in group if int(tree.parents[n]) not in group} for group in (a, b)]
    return len(holders[0] | holders[1]) == 1 and -1 not in holders[0]


def _moving(data: Json, tree: NodeTree) -> list[set[int]]:
    """Without skins: what hangs on the topmost moving nodes, except meshes, cameras and lights."""
    moved: set[int] = set()
    for animation in data.get("animations") or ():
        targets: list[Json] = [channel.get("target") or {} for channel in animation.get("channels") or ()]
        moved |= {int(t["node"]) for t in targets if t.get("node") is not None and t.get("path") in ("rotation", "translation")}
    moved = {n for n in moved if 0 <= n < len(tree)}
    nodes: list[Json] = list(data.get("nodes") or ())
    shown = {n for n, node in enumerate(nodes) if any(node.get(kind) is not None for kind in ("mesh", "camera"))}
    tops = {n for n in moved if not any(a in moved for a in tree.ancestors(n))}
    by_root: dict[int, set[int]] = {}
    for n in range(len(tree)):
        path = [n, *tree.ancestors(n)]
        if n not in shown and tops & set(path):
            by_root.setdefault(path[-1], set()).add(n)
    return [group for group in by_root.values() if len(group) > 1]


def _closed(group: Iterable[int], tree: NodeTree) -> set[int]:
    """The group with every node that lies between two of its nodes."""
    out = set(group)
    for n in list(out):
        path: list[int] = []
        for a in tree.ancestors(n):
            if a in out:
                out.update(path)
                path = []
            else:
                path.append(a)
    return out


def _body(group: set[int], tree: NodeTree, binds: Mapping[int, Array], given: Mapping[int, str]) -> GltfBody:
    nodes = tuple(n for n in tree.order if n in group)
    place = {n: j for j, n in enumerate(nodes)}
    parents = np.array([place.get(int(tree.parents[n]), -1) for n in nodes], dtype=np.int64)
    tops = [n for n, p in zip(nodes, parents.tolist(), strict=True) if p < 0]
    paths = [list(tree.ancestors(n)) for n in tops]
    if len({tuple(path) for path in paths}) > 1:
        raise FileError("The joints of a skeleton hang on different nodes; parent them to one, or export the skeleton with one root.")
    rotations, translations = tree.rotations[list(nodes)].copy(), tree.translations[list(nodes)].copy()
    bound = _bound_locals(nodes, parents.tolist(), tree, binds)
    if bound and _same_lengths(bound, translations):
        for j, (rotation, translation) in bound.items():
            rotations[j], translations[j] = rotation, translation
    return GltfBody(
        nodes,
        parents,
        _unique([given.get(n) or tree.names[n] or f"node_{n}" for n in nodes]),
        tuple(paths[0][::-1]),
        rotations,
        translations,
    )


def _bind_matrices(data: Json, tree: NodeTree, buffers: Buffers) -> dict[int, Array]:
    """Node -> inverse bind matrix ``(4, 4)``; the first skin that has the joint counts."""
    out: dict[int, Array] = {}
    for skin in data.get("skins") or ():
        accessor: int | None = skin.get("inverseBindMatrices")
        if accessor is None:
            continue
        matrices = buffers.array(int(accessor)).reshape(-1, 4, 4).transpose(0, 2, 1)
        for joint, matrix in zip(skin["joints"], matrices, strict=False):
            if np.isfinite(matrix).all() and abs(float(np.linalg.det(matrix))) > 1e-18:
                out.setdefault(int(joint), matrix)
    return {n: m for n, m in out.items() if 0 <= n < len(tree)}


def _bound_locals(nodes: tuple[int, ...], parents: list[int], tree: NodeTree, binds: Mapping[int, Array]) -> dict[int, tuple[Array, Array]]:
    """Joint -> rotation and place in its parent when the skin was bound."""
    out: dict[int, tuple[Array, Array]] = {}
    for j, (n, p) in enumerate(zip(nodes, parents, strict=True)):
        if n not in binds or (p >= 0 and nodes[p] not in binds) or (p < 0 and tree.parents[n] >= 0):
            continue
        local: Array = (binds[nodes[p]] if p >= 0 else np.eye(4)) @ np.linalg.inv(binds[n])
        linear = local[:3, :3]
        lengths = np.sqrt(np.sum(linear * linear, axis=0))
        if float(np.linalg.det(linear)) > 0.0 and float(np.ptp(lengths)) < 1e-2 * float(lengths.max()):
            out[j] = quat.from_matrix(linear / lengths), local[:3, 3]
    return out


def _same_lengths(bound: Mapping[int, tuple[Array, Array]], translations: Array) -> bool:
    """Whether bones are as long in the bind pose as in the nodes, by and large; other bind matrices mean something else."""
    pairs = [(float(np.linalg.norm(t)), float(np.linalg.norm(translations[j]))) for j, (_, t) in bound.items()]
    pairs = [(a, b) for a, b in pairs if max(a, b) > 1e-6]
    return not pairs or float(np.median([abs(a - b) / max(a, b) for a, b in pairs])) < 0.05


def _unique(names: list[str]) -> tuple[str, ...]:
    used: set[str] = set()
    out: list[str] = []
    for name in names:
        candidate, k = name, 0
        while candidate in used:
            k += 1
            candidate = f"{name}.{k:03d}"
        used.add(candidate)
        out.append(candidate)
    return tuple(out)
