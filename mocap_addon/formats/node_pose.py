# SPDX-License-Identifier: GPL-3.0-or-later
"""A take on a character's skeleton -> the local transforms of the nodes of its glTF file.

Blender's importer (with its default bone direction) and exporter keep a bone's axes equal to its node's; only the world differs, by
``C: (x, y, z) -> (x, z, -y)``. So a node below another bone's node moves by the bone's own local transform, and a root bone's node by
``inverse(its parent in the scene) * C * (the bone in the world)``, the armature's place in the scene being the file's. Nodes that no bone
stands for stay where the file has them; bones that the file does not have are multiplied into their children. Measured on seven
characters in Blender 4.2, 5.0 and 5.3: joints agree to 1e-5 m.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import FileError
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from .gltf_nodes import NodeTree

Array = NDArray[np.float64]

TO_GLTF: Array = np.array([np.sqrt(0.5), -np.sqrt(0.5), 0.0, 0.0])
"""The rotation ``C`` from Z up to Y up."""

# How far (radians, metres) a bone may stand from its node before the node gets a constant track: above what single precision makes of a
# bone on its way through Blender's edit bones (7e-6 and 1.2e-5 measured), far below 0.1 mm at the fingers.
_ANGLE = 2e-5
_LENGTH = 1.5e-5
_SCALE = 1e-4
_NO_BONE = -1


@dataclass(frozen=True, eq=False)
class NodeMotion:
    """One node's motion, or its constant place where that is not the file's.

    Parameters
    ----------
    node, bone : int
    rotations : (F, 4), (1, 4) or None
        wxyz. One row: it stays so. None: as in the file.
    translations : (F, 3), (1, 3) or None
        In the parent node's frame and unit.
    scale : (F, 3), (1, 3) or None
    metres : float
        How long the parent node's unit is.
    """

    node: int
    bone: int
    rotations: Array | None
    translations: Array | None
    scale: Array | None
    metres: float


@dataclass(frozen=True, eq=False)
class Carrier:
    """The node that an armature's bones hang on, moved away from its place: ``placement (F, 3)`` in metres, ``turning (F, 4)``, Z up."""

    node: int
    placement: Array
    turning: Array


def match(tree: NodeTree, skeleton: Skeleton, object_name: str = "") -> NDArray[np.int64]:
    """(J,): for each joint its node, -1 where the file has none.

    Blender numbers names that occur twice (``.001``), cuts long ones, and calls a node without a name ``Node_5``. Of several nodes with one
    name, the one below the parent's node wins, then the one below the node called ``object_name``, then a skin's joint.
    """
    by_name: dict[str, list[int]] = {}
    for n in tree.order:
        name = tree.names[n] or f"Node_{n}"
        for key in {name, name.encode()[:63].decode(errors="ignore")}:
            by_name.setdefault(key, []).append(n)
    out = np.full(len(skeleton), _NO_BONE, dtype=np.int64)
    used: set[int] = set()
    object_name = object_name if object_name in by_name else without_number(object_name)
    for j, name in enumerate(skeleton.names):
        free = [n for n in by_name.get(name) or by_name.get(without_number(name)) or () if n not in used]
        if not free:
            continue
        parent = next((int(out[a]) for a in skeleton.ancestors(j) if out[a] >= 0), _NO_BONE)

        def rank(n: int, parent: int = parent) -> tuple[bool, bool, bool]:
            above = list(tree.ancestors(n))
            return (
                next((a for a in above if a in used), _NO_BONE) == parent,
                any(tree.names[a] == object_name for a in above),
                n in tree.joints,
            )

        out[j] = free[0] if len(free) == 1 else max(free, key=rank)
        used.add(int(out[j]))
    return out


def armature_node(tree: NodeTree, nodes: NDArray[np.int64], object_name: str) -> int:
    """The node of the armature called ``object_name`` on which all root bones hang; -1 where there is none, or none that can be reached."""
    bones = {int(n) for n in nodes if n >= 0}
    above = {int(tree.parents[n]) for n in bones if not bones & set(tree.ancestors(n))}
    node = above.pop() if len(above) == 1 else _NO_BONE
    known = node >= 0 and tree.names[node] in (object_name, without_number(object_name))
    return node if known and bool(tree.found[node]) else _NO_BONE


def node_motions(
    take: Take,
    tree: NodeTree,
    nodes: NDArray[np.int64],
    turning: Collection[int],
    moving: Collection[int],
    scales: Array | None = None,
    carrier: Carrier | None = None,
) -> list[NodeMotion]:
    """The motion of a character's nodes.

    Parameters
    ----------
    take : Take
        Every joint of the character, the world's axes, metres, relative to the armature's origin; the joints that nothing moves hold the
        pose they are to keep. With scales of every frame: in the frames that those enlarge.
    tree : NodeTree
    nodes : (J,) int array
        See :func:`match`.
    turning, moving : collections of int
        Joints whose rotation and whose place change. They always get a track, so that clips of one character blend evenly; the other joints
        get a constant one only where the file has their node elsewhere.
    scales : (J, 3) or (F, J, 3) array, optional
        Scales that joints keep, or have on every frame.
    carrier : Carrier, optional
        The armature's node where it moves too.

    Returns
    -------
    list of NodeMotion
        In the order of the joints, those with at least one track; the carrier's last.

    Raises
    ------
    FileError
        If the file's bones have other axes than the take's, or an uneven scale stands above a bone.
    """
    walk = _Walk(take, tree, nodes, set(turning), set(moving), scales)
    out = walk.run()
    return out if carrier is None else [*out, walk.carried(carrier)]


class _Walk:
    def __init__(
        self, take: Take, tree: NodeTree, nodes: NDArray[np.int64], turning: set[int], moving: set[int], scales: Array | None
    ) -> None:
        self.take, self.tree, self.nodes = take, tree, nodes
        self.turning, self.moving, self.scales = turning, moving, scales
        self.still = scales is None or scales.ndim == 2  # lengths of a take do not hang on scales that only are kept
        self.parents = take.skeleton.parents.tolist()
        self.bone_of = {int(n): j for j, n in enumerate(nodes) if n >= 0}
        self.above = self._above()
        self.units: dict[int, float] = {}  # bone -> metres of one unit in its frame, by what stands above its root
        self.enlarged = 1.0

    def run(self) -> list[NodeMotion]:
        for n in self.tree.order:
            if n in self.bone_of:
                self._unit(n)
        self.enlarged = self._enlarged()
        idle = self._idle()
        out = [self._node(n) for n in sorted(self.bone_of, key=self.bone_of.__getitem__) if n not in idle]
        return [m for m in out if not (m.rotations is None and m.translations is None and m.scale is None)]

    def carried(self, carrier: Carrier) -> NodeMotion:
        """The armature's node: turned about where the file has it, and moved."""
        parent, here = int(self.tree.parents[carrier.node]), self.tree.global_matrices[carrier.node]
        q = quat.mul(quat.mul(quat.mul(TO_GLTF, carrier.turning), quat.inv(TO_GLTF)), _rotation_of(here))
        t = here[:3, 3] + self.enlarged * quat.rotate(TO_GLTF, carrier.placement)
        unit = 1.0
        if parent >= 0:
            unit = _even_scale(self.tree.global_matrices[parent], self.tree.names[carrier.node])
            undo: Array = np.asarray(np.linalg.inv(self.tree.global_matrices[parent]), dtype=np.float64)
            q, t = quat.mul(_rotation_of(undo), q), t @ undo[:3, :3].T + undo[:3, 3]
        return NodeMotion(carrier.node, _NO_BONE, q, t, None, unit)

    def _above(self) -> dict[int, int]:
        """Of every node the nearest one above it that a bone stands for, or -1."""
        out: dict[int, int] = {_NO_BONE: _NO_BONE}
        parents = self.tree.parents.tolist()
        for n in self.tree.order:
            out[n] = parents[n] if parents[n] in self.bone_of else out[parents[n]]
        return out

    def _between(self, node: int) -> Array:
        """(4, 4): the node's parent in the frame of the nearest bone's node above it, or in the scene."""
        parent, above = int(self.tree.parents[node]), self.above[node]
        if parent == above:
            return np.eye(4)
        g = self.tree.global_matrices
        return g[parent] if above < 0 else np.asarray(np.linalg.inv(g[above]) @ g[parent], dtype=np.float64)

    def _unit(self, node: int) -> None:
        above = self.above[node]
        unit = self._folded(node) if above < 0 else self.units[self.bone_of[above]]
        if above < 0 or above != int(self.tree.parents[node]):
            unit *= _even_scale(self._between(node), self.tree.names[node])
        self.units[self.bone_of[node]] = unit

    def _folded(self, node: int) -> float:
        """The armature's scale where the exporter multiplied it into the root bones ("Remove Armature Object"), else 1."""
        own = math.prod(self.tree.scales[node].tolist())
        scale = self._scale(self.bone_of[node])
        kept = 1.0 if scale is None or len(scale) > 1 else math.prod(scale[0].tolist())
        return 1.0 if abs(own - 1.0) < 1e-3 or own <= 0.0 or kept <= 0.0 else float(np.cbrt(own / kept))

    def _enlarged(self) -> float:
        """The file's lengths over the take's: 1, but for a character that was scaled since; checks that the bones' axes are the same."""
        nodes, joints = self._plain(lambda j, above: self.parents[j] >= 0 and above == int(self.nodes[self.parents[j]]))
        here = self.take.skeleton.rest_translations[joints]
        there = self.tree.translations[nodes] * self._metres(joints)[:, None]
        lengths = np.linalg.norm(here, axis=1)
        ratios = np.linalg.norm(there, axis=1)[lengths > 1e-4] / lengths[lengths > 1e-4]
        if not len(ratios):
            return 1.0
        ratio = float(np.median(ratios))
        here, there, lengths = (values[lengths > 1e-4] for values in (here, there, lengths))
        apart = np.linalg.norm(there - ratio * here, axis=1) / np.maximum(ratio * lengths, 1e-12)
        if ratio <= 0.0 or np.median(apart) > 0.05:
            raise FileError(
                "The bones in this character file have other axes or lengths than the armature in Blender; "
                "export the character from Blender and give that file."
            )
        return 1.0 if abs(ratio - 1.0) < 1e-3 else ratio

    def _plain(self, which: Callable[[int, int], bool]) -> tuple[list[int], list[int]]:
        """Nodes right below another bone's, and their joints, where ``which`` is true of the joint and the node above."""
        found = [(n, j) for n, j in self.bone_of.items() if self.above[n] >= 0 and self.above[n] == int(self.tree.parents[n])]
        some = [(n, j) for n, j in found if which(j, self.above[n])]
        return [n for n, _ in some], [j for _, j in some]

    def _metres(self, joints: Sequence[int]) -> Array:
        return np.array([self.units[j] for j in joints])

    def _idle(self) -> set[int]:
        """Nodes that stay where the file has them, as far as that can be told of all at once: most fingers of most takes."""
        if self.scales is not None:
            return set()
        busy = self.turning | self.moving
        nodes, joints = self._plain(lambda j, above: j not in busy and self.parents[j] == self.bone_of[above])
        units, above = self._metres(joints), self._metres([self.parents[j] for j in joints])
        turned = quat.angle(self.take.local_rotations[0, joints], self.tree.rotations[nodes])
        places = self.take.local_translations[0, joints] * self.enlarged / above[:, None]
        moved = np.linalg.norm(places - self.tree.translations[nodes], axis=1) * units
        still = (turned <= _ANGLE) & (moved <= _LENGTH)
        return {n for n, stays in zip(nodes, still.tolist(), strict=True) if stays}

    def _node(self, node: int) -> NodeMotion:
        j, above = self.bone_of[node], self.above[node]
        q, t, scale = self._relative(j, self.bone_of[above] if above >= 0 else _NO_BONE)
        t = t * self.enlarged
        if above < 0:
            parent = int(self.tree.parents[node])
            origin = self.tree.global_matrices[parent][:3, 3] if parent >= 0 else np.zeros(3)
            q, t = quat.mul(TO_GLTF, q), quat.rotate(TO_GLTF, t) + origin
        else:
            t = t / self.units[self.bone_of[above]]
        if int(self.tree.parents[node]) != above:
            undo: Array = np.asarray(np.linalg.inv(self._between(node)), dtype=np.float64)
            q, t = quat.mul(_rotation_of(undo), q), t @ undo[:3, :3].T + undo[:3, 3]
        unit = self.units[j]
        keep_q = len(q) > 1 or j in self.turning or float(quat.angle(q[0], self.tree.rotations[node])) > _ANGLE
        keep_t = len(t) > 1 or j in self.moving or float(np.linalg.norm(t[0] - self.tree.translations[node])) * unit > _LENGTH
        folded = self._folded(node) if above < 0 else 1.0
        if scale is not None and folded != 1.0:
            scale = None if len(scale) == 1 else scale * folded
        if scale is not None and np.allclose(scale, self.tree.scales[node], rtol=_SCALE, atol=0.0):
            scale = None
        return NodeMotion(node, j, q if keep_q else None, t if keep_t else None, scale, unit)

    def _relative(self, joint: int, above: int) -> tuple[Array, Array, Array | None]:
        """Rotation, place and scale of a joint in another's frame, or in the world (-1); one row where nothing on the way changes.

        Uneven scales of bones that the file does not have are passed on along the axes of what hangs on them.
        """
        path = self._path(joint, above)
        if path is None:  # the file hangs the node on another parent than the skeleton does
            (q0, t0, s0), (q1, t1, s1) = self._relative(above, _NO_BONE), self._relative(joint, _NO_BONE)
            t = quat.rotate(quat.inv(q0), t1 - t0)
            return quat.mul(quat.inv(q0), q1), t if self.still or s0 is None else t / s0, s1 if s0 is None or s1 is None else s1 / s0
        q, t, s = self._local(path[0])
        for j in path[1:]:
            q1, t1, s1 = self._local(j)
            q, t = quat.mul(q1, q), t1 + quat.rotate(q1, t if self.still or s1 is None else s1 * t)
            s = s1 if s is None else s if s1 is None or self.still else s1 * s
        return q, t, s

    def _path(self, joint: int, above: int) -> list[int] | None:
        path: list[int] = []
        while joint != above:
            if joint < 0:
                return None
            path.append(joint)
            joint = self.parents[joint]
        return path

    def _local(self, j: int) -> tuple[Array, Array, Array | None]:
        q = self.take.local_rotations[:, j]
        t = self.take.local_translations[:, j]
        return (q if j in self.turning else q[:1]), (t if j in self.moving else t[:1]), self._scale(j)

    def _scale(self, j: int) -> Array | None:
        """(F, 3), or (1, 3) where it stands still."""
        if self.scales is None:
            return None
        if self.still:
            return self.scales[None, j]
        own = self.scales[:, j]
        return own if np.ptp(own, axis=0).max() > 0.0 else own[:1]


def unmatched(skeleton: Skeleton, nodes: NDArray[np.int64], joints: Iterable[int]) -> list[str]:
    """Names of those ``joints`` that have no node."""
    return [skeleton.names[j] for j in sorted(set(joints)) if nodes[j] < 0]


def without_number(name: str) -> str:
    """A name without the number that Blender gives what is called alike."""
    return re.sub(r"\.\d{3}$", "", name)


def _rotation_of(matrix: Array) -> Array:
    m = matrix[:3, :3]
    return quat.from_matrix(m / np.cbrt(np.linalg.det(m)))


def _even_scale(matrix: Array, name: str) -> float:
    m = matrix[:3, :3]
    lengths = np.sqrt(np.einsum("ij,ij->j", m, m))
    determinant = float(np.linalg.det(m))
    if determinant <= 0.0 or np.ptp(lengths) > 1e-3 * lengths.max() or abs(determinant - math.prod(lengths.tolist())) > 1e-3 * determinant:
        raise FileError(
            f'Above the node "{name}" stands an uneven or mirrored scale; apply the scale in Blender and export the character again.'
        )
    return float(np.cbrt(determinant))
