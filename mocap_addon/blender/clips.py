# SPDX-License-Identifier: GPL-3.0-or-later
"""A motion on an armature -> a three.js clip for its character."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import bpy
import numpy as np
from numpy.typing import NDArray

from ..formats import clip_reduce, gltf_nodes, node_pose, threejs, threejs_clip
from ..formats.threejs_clip import JsonWriting
from ..motion import quat
from ..motion.take import Take
from ..retarget.motion import PoseMotion
from . import armature
from .armature import Target

Array = NDArray[np.float64]

# glTF's (x, z, -y) of Blender's (x, y, z)
_C: Array = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])


@dataclass(frozen=True)
class ClipFacts:
    """What :func:`write_clip` wrote.

    Parameters
    ----------
    path : Path
    name, uuid : str
    duration : float
        Seconds.
    frames, tracks, size : int
        Keys of a moving track, number of tracks, bytes.
    renamed : mapping of str to str
        Node names in three.js that differ from the bones'.
    notes : tuple of str
        What a person should know, one plain sentence each.
    """

    path: Path
    name: str
    uuid: str
    duration: float
    frames: int
    tracks: int
    size: int
    renamed: dict[str, str]
    notes: tuple[str, ...] = ()


def write_clip(
    path: str | Path,
    obj: bpy.types.Object,
    target: Target,
    motion: PoseMotion,
    *,
    name: str | None = None,
    character: str | Path | None = None,
    scene: bpy.types.Scene | None = None,
) -> ClipFacts:
    """Write a motion as a three.js clip file.

    Parameters
    ----------
    path : path
        The ``.json`` file; replaced if it exists.
    obj : armature object
        Bones that the motion does not key keep the pose they have on it.
    target : Target
        ``armature.read(obj)``.
    motion : PoseMotion
    name : str, optional
        The clip's name; the motion's by default.
    character : path, optional
        The ``.glb``, ``.gltf`` or ``.vrm`` that the clip will play on: the file the armature was imported from, or one that Blender
        exported. Without it the clip is for the file that Blender's exporter writes of this armature with its default options.
    scene : scene, optional
        The scene to be exported, where there is no character file; the current one by default.

    Raises
    ------
    FileError
        If the character file cannot be read or is another character's, a node cannot be named, or the clip cannot be written.
    """
    from . import node_clips

    on = node_clips.stage(obj, character, scene, target)
    made = node_clips.of_motion(on, motion, name=name)
    exact = clip_reduce.compact(made.clip, on.body, None, JsonWriting())
    written = threejs_clip.to_clip(on.tree, exact)
    size = threejs.write(path, written)
    clip = written[0]
    return ClipFacts(Path(path), clip.name, clip.uuid, clip.duration, len(clip.times), len(clip.tracks), size, on.renamed, made.notes)


def whole_pose(obj: bpy.types.Object, target: Target, motion: PoseMotion) -> tuple[Take, Array]:
    """The motion with the pose that all other bones keep, and every bone's scale ``(J, 3)``; the object where it stands.

    Blender turns a bone that does not inherit rotation in the armature's axes, and ignores the location of a connected bone.
    """
    skeleton = target.skeleton
    take = replace(motion, placement=None, turning=None).to_take(skeleton)
    rotations, translations = take.local_rotations, take.local_translations
    scales = np.ones((len(skeleton), 3))
    turning, moving = set(motion.bones), set(motion.moving)
    for j, bone in enumerate(skeleton.names):
        pose = obj.pose.bones.get(bone)
        if pose is None:
            continue
        place, rotation, scale = pose.matrix_basis.decompose()
        scales[j] = scale
        if j not in turning:
            rotations[:, j] = quat.mul(skeleton.rest_rotations[j], quat.normalize(np.array(rotation)))
        if target.connected[j]:
            translations[:, j] = skeleton.rest_translations[j]
        elif j not in moving and any(place):
            translations[:, j] = skeleton.rest_translations[j] + _in_parent(target, j, np.array(place))
    if not np.all(target.inherits_rotation):
        rotations = _hinged(target, rotations)
    return replace(take, local_rotations=rotations, local_translations=translations), scales


def _object_moves(motion: PoseMotion) -> bool:
    return motion.placement is not None or motion.turning is not None


def _carrier(tree: gltf_nodes.NodeTree, nodes: NDArray[np.int64], name: str, motion: PoseMotion) -> node_pose.Carrier | None:
    """The armature's node with the object's motion, where there are both."""
    node = node_pose.armature_node(tree, nodes, name) if _object_moves(motion) else -1
    if node < 0:
        return None
    count = len(motion.times)
    placement = np.zeros((count, 3)) if motion.placement is None else motion.placement
    return node_pose.Carrier(node, placement, quat.identity(count) if motion.turning is None else motion.turning)


def tree_of(obj: bpy.types.Object, scene: bpy.types.Scene, target: Target | None = None) -> gltf_nodes.NodeTree:
    """The nodes that Blender's exporter writes for an armature in its rest position, below the objects it is parented to.

    The armature stands where ``target`` has it, without the way that an action carries it; without that, where it is now.

    Other objects of the scene are left out; one that has a bone's name could take it (give :func:`write_clip` the exported file then).
    """
    chain = [obj]
    while chain[-1].parent is not None:
        chain.append(chain[-1].parent)
    nodes: list[dict[str, object]] = []

    def add(name: str, matrix: Array, parent: int | None) -> int:
        nodes.append({"name": name, "matrix": matrix.T.ravel().tolist(), "children": []})
        if parent is not None:
            nodes[parent]["children"].append(len(nodes) - 1)  # type: ignore[attr-defined]
        return len(nodes) - 1

    graph = bpy.context.evaluated_depsgraph_get()
    above, at = np.eye(4), None
    for one in reversed(chain):
        world = np.array(one.evaluated_get(graph).matrix_world, dtype=np.float64)
        if one == obj and target is not None:
            unit = float(scene.unit_settings.scale_length)
            world[:3, :3] = quat.to_matrix(target.object_rotation) * (target.metres_per_unit / unit)
            world[:3, 3] = target.origin / unit
        world = _C @ world @ _C.T
        at = add(one.name, np.linalg.inv(above) @ world, at)
        above = world
    bones = obj.data.bones
    names = [bone.name for bone in bones]
    places = {name: k for k, name in enumerate(names)}
    parents = [-1 if bone.parent is None else places[bone.parent.name] for bone in bones]
    children: dict[int, list[int]] = {}
    for k, p in enumerate(parents):
        children.setdefault(p, []).append(k)
    rests = np.concatenate([armature.rest_matrices(bones), np.linalg.inv(_C)[None]])  # the last stands above the roots
    locals_ = np.linalg.inv(rests[parents]) @ rests[:-1]
    turns = quat.from_matrix(locals_[:, :3, :3])[:, [1, 2, 3, 0]].tolist()
    shifts = locals_[:, :3, 3].tolist()
    stack = [(k, at) for k in reversed(children.get(-1, []))]
    joints: list[int] = []
    while stack:
        k, parent = stack.pop()
        nodes.append({"name": names[k], "translation": shifts[k], "rotation": turns[k], "children": []})
        nodes[parent]["children"].append(len(nodes) - 1)  # type: ignore[attr-defined]
        joints.append(len(nodes) - 1)
        stack.extend((child, joints[-1]) for child in reversed(children.get(k, [])))
    data = {"scenes": [{"name": scene.name, "nodes": [0]}], "nodes": nodes, "skins": [{"joints": joints}]}
    return gltf_nodes.tree(data)


def _in_parent(target: Target, bone: int, location: Array) -> Array:
    """A pose bone's location -> metres in the parent's frame (in the world's axes for a root)."""
    metres = location * target.metres_per_unit
    if target.use_local_location[bone]:
        return quat.rotate(target.skeleton.rest_rotations[bone], metres)
    return quat.rotate(target.object_rotation, metres) if target.skeleton.parents[bone] < 0 else metres


def _hinged(target: Target, rotations: Array) -> Array:
    """Local rotations in which bones that do not inherit their parent's rotation do not."""
    parents = target.skeleton.parents.tolist()
    out, above = rotations.copy(order="K"), np.empty_like(rotations)
    for j, p in enumerate(parents):
        if p >= 0 and not target.inherits_rotation[j]:
            own = quat.mul(target.skeleton.rest_global_rotations[p], rotations[:, j])
            out[:, j] = quat.mul(quat.inv(above[:, p]), own)
            above[:, j] = own
        else:
            above[:, j] = rotations[:, j] if p < 0 else quat.mul(above[:, p], rotations[:, j])
    return out


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
