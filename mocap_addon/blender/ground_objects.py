# SPDX-License-Identifier: GPL-3.0-or-later
"""Which objects of the scene are ground: never a character, what it wears or holds, or its rig's widgets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import bpy

from .. import rig
from . import compat, playing
from .object_motion import is_animated, parents_of, stands_still
from .rig_world import read_body

SOLID_TYPES = frozenset({"MESH", "CURVE", "SURFACE", "META", "FONT"})
"""Types of objects that have a surface."""

_STIFF = frozenset(
    (
        "ARRAY",
        "BEVEL",
        "BOOLEAN",
        "CAST",
        "CURVE",
        "DECIMATE",
        "DISPLACE",
        "EDGE_SPLIT",
        "LAPLACIANSMOOTH",
        "MASK",
        "MIRROR",
        "MULTIRES",
        "NORMAL_EDIT",
        "REMESH",
        "SCREW",
        "SHRINKWRAP",
        "SIMPLE_DEFORM",
        "SKIN",
        "SMOOTH",
        "CORRECTIVE_SMOOTH",
        "SOLIDIFY",
        "SUBSURF",
        "TRIANGULATE",
        "UV_PROJECT",
        "UV_WARP",
        "VERTEX_WEIGHT_EDIT",
        "VERTEX_WEIGHT_MIX",
        "VERTEX_WEIGHT_PROXIMITY",
        "DATA_TRANSFER",
        "WARP",
        "WEIGHTED_NORMAL",
        "WELD",
        "WIREFRAME",
        "COLLISION",
    )
)
"""Modifiers whose result changes only with their settings and the objects that they look at."""

_SOMEBODY = ("hips", "leftUpperLeg", "rightUpperLeg", "leftLowerLeg", "rightLowerLeg")

_TIMED_NODES = frozenset({"GeometryNodeInputSceneTime", "GeometryNodeSimulationInput", "GeometryNodeSimulationOutput"})


def in_scene(scene: bpy.types.Scene) -> list[bpy.types.Object]:
    """What can be seen of a scene."""
    return [obj for obj in scene.objects if not obj.hide_viewport and obj.visible_get()]


def in_collection(collection: bpy.types.Collection) -> list[bpy.types.Object]:
    """What lies in a collection and those inside it."""
    return [obj for obj in collection.all_objects if not obj.hide_viewport]


def ground_objects(objects: Iterable[bpy.types.Object], character: bpy.types.Object | None) -> list[bpy.types.Object]:
    """Those of ``objects`` that a foot can stand on, or that carry instances of such, in the order given.

    Left out are the character's own meshes and everything that hangs on it, whatever other characters have likewise, and the shapes that
    bones are drawn as.
    """
    known: dict[bpy.types.Object, bool] = {} if character is None else {character: True}
    widgets = {bone.custom_shape for obj in bpy.data.objects if obj.type == "ARMATURE" for bone in obj.pose.bones if bone.custom_shape}
    found = dict.fromkeys(objects)
    solid = [obj for obj in found if obj.type in SOLID_TYPES or _instances(obj)]
    return [obj for obj in solid if obj not in widgets and not any(_is_character(a, known) for a in _carried_by(obj))]


def may_deform(obj: bpy.types.Object) -> bool:
    """Whether the object's own surface may change with time, as far as can be told without evaluating it."""
    data = obj.data
    if is_animated(data) or is_animated(getattr(data, "shape_keys", None)) or obj.type == "META":
        return True
    if obj.parent is not None and obj.parent_type in ("ARMATURE", "LATTICE", "CURVE"):
        return True
    modifiers = [m for m in obj.modifiers if m.show_viewport]
    if modifiers and _animates_modifiers(obj):
        return True
    return len(obj.particle_systems) > 0 or obj.instance_type in ("VERTS", "FACES") or any(_may_change(m) for m in modifiers)


def _instances(obj: bpy.types.Object) -> bool:
    if obj.instance_type == "COLLECTION" and obj.instance_collection is not None:
        return True
    return any(m.type == "NODES" and m.show_viewport for m in obj.modifiers)


def _carried_by(obj: bpy.types.Object) -> Iterator[bpy.types.Object]:
    """Armatures that an object hangs on or is deformed by."""
    for one in parents_of(obj):
        if one.type == "ARMATURE":
            yield one
        for modifier in one.modifiers:
            if modifier.type == "ARMATURE" and modifier.object is not None:
                yield modifier.object
        for constraint in one.constraints:
            target = getattr(constraint, "target", None)
            carries = not constraint.mute and constraint.type in ("CHILD_OF", "COPY_TRANSFORMS", "COPY_LOCATION")
            if carries and target is not None and target.type == "ARMATURE":
                yield target


def _is_character(obj: bpy.types.Object, known: dict[bpy.types.Object, bool]) -> bool:
    """Whether an armature is somebody: a rig with hips and two legs. A drawbridge that bones move is none."""
    if obj not in known:
        known[obj] = len(obj.data.bones) > 4 and not rig.match(read_body(obj).skeleton).missing(_SOMEBODY)
    return known[obj]


def _animates_modifiers(obj: bpy.types.Object) -> bool:
    animation = obj.animation_data
    if animation is None:
        return False
    if playing.strip_range(obj) is not None:
        return True
    curves = [*animation.drivers, *(compat.moving_curves(animation) if animation.action is not None else ())]
    return any(curve.data_path.startswith("modifiers[") for curve in curves)


def _may_change(modifier: bpy.types.Modifier) -> bool:
    if modifier.type == "NODES":
        return _tree_may_change(modifier.node_group, set()) or any(not stands_still(o) for o in _node_objects(modifier))
    if modifier.type not in _STIFF:
        return True
    looked_at = [getattr(modifier, p.identifier) for p in modifier.bl_rna.properties if p.type == "POINTER"]
    if any(isinstance(found, bpy.types.Object) and (not stands_still(found) or may_deform(found)) for found in looked_at):
        return True
    return any(is_animated(found) for found in looked_at if isinstance(found, bpy.types.Texture))


def _node_objects(modifier: bpy.types.Modifier) -> list[bpy.types.Object]:
    """Objects and members of collections that a node modifier's inputs and nodes name."""
    out: list[bpy.types.Object] = []
    values = list(modifier.values())
    group = modifier.node_group
    if group is not None:
        values += [s.default_value for node in group.nodes for s in node.inputs if s.type in ("OBJECT", "COLLECTION")]
    for value in values:
        if isinstance(value, bpy.types.Object):
            out.append(value)
        elif isinstance(value, bpy.types.Collection):
            out += value.all_objects
    return out


def _tree_may_change(tree: bpy.types.NodeTree | None, seen: set[str]) -> bool:
    if tree is None or tree.name in seen:
        return False
    seen.add(tree.name)
    if is_animated(tree) or any(node.bl_idname in _TIMED_NODES for node in tree.nodes):
        return True
    return any(_tree_may_change(getattr(node, "node_tree", None), seen) for node in tree.nodes)
