# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes with the pose in a clip: morph targets, and custom properties of the armature as numbers (time code, contacts, gates)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import bpy
import numpy as np
from numpy.typing import NDArray

from ..formats import gltf_nodes, node_pose
from ..formats.gltf_morph_meshes import MorphMesh, asked_by_nodes, part_names
from ..formats.node_clip import MorphCurve, ScalarCurve
from ..motion import timecode
from . import curves, export_character, morph_keys
from .playing import Playing

if TYPE_CHECKING:
    from .node_clips import Stage

Array = NDArray[np.float64]
Shapes = Mapping[str, Mapping[str, Array]]
"""Mesh object -> shape key -> values ``(F,)``."""

_KEY_BLOCK = 'key_blocks["'


def own_meshes(obj: bpy.types.Object, names: Iterable[str]) -> list[MorphMesh]:
    """What Blender's exporter will write of the meshes on this armature, by name; nodes are not known before it has.

    A mesh whose faces have several materials has as many parts; ``names`` are those of the scene and the armature's nodes.
    """
    others = [one.name for one in export_character.members(obj) if one.type == "MESH"]
    asked = asked_by_nodes([*names, *others])
    out: list[MorphMesh] = []
    for mesh in _meshes(obj):
        blocks = mesh.data.shape_keys.key_blocks
        targets = tuple(b.name for b in blocks if b != b.relative_key and not b.mute)
        if not targets:
            continue
        slots = np.empty(len(mesh.data.polygons), dtype=np.int32)
        mesh.data.polygons.foreach_get("material_index", slots)
        count = len(np.unique(np.clip(slots, 0, max(0, len(mesh.data.materials) - 1))))
        parts = (gltf_nodes.sanitize(mesh.name),) if count < 2 else part_names(mesh.data.name, count, asked)
        out.append(MorphMesh(-1, mesh.name, targets, parts))
    return out


def _meshes(obj: bpy.types.Object) -> list[bpy.types.Object]:
    """Meshes with shape keys that hang on the armature or are moved by it."""
    return [
        one
        for one in export_character.members(obj)
        if one.type == "MESH" and one.data.shape_keys is not None and len(one.data.shape_keys.key_blocks) > 1
    ]


def shapes(obj: bpy.types.Object, chosen: Playing, frames: Array) -> Shapes:
    """What an action does to the shape keys of each mesh at scene frames ``(F,)``."""
    out: dict[str, dict[str, Array]] = {}
    for mesh in _meshes(obj):
        found = _shape_curves(mesh.data.shape_keys, chosen)
        if found:
            out[mesh.name] = {name: curves.evaluate(curve, frames) for name, curve in found.items()}
    return out


def shapes_named(obj: bpy.types.Object, found: Mapping[str, Array]) -> Shapes:
    """The same from a retarget's curves, which are called as the shape keys are."""
    out = {mesh.name: {b.name: found[b.name] for b in mesh.data.shape_keys.key_blocks if b.name in found} for mesh in _meshes(obj)}
    return {mesh: values for mesh, values in out.items() if values}


def morphs(on: Stage, found: Shapes) -> tuple[MorphCurve, ...]:
    """The morph targets of the file that shape keys are."""
    return tuple(curve for mesh, values in found.items() for curve in _on_mesh(on, values, mesh))


def _shape_curves(keys: bpy.types.Key, chosen: Playing) -> dict[str, bpy.types.FCurve]:
    """The shape keys' f-curves that go with an action, by the keys' names."""
    out: dict[str, bpy.types.FCurve] = {}
    for curve in morph_keys.curves_beside(keys, chosen.action, assigned=chosen.assigned):
        if curve.data_path.startswith(_KEY_BLOCK) and curve.data_path.endswith('"].value') and curves.is_playing(curve):
            out[bpy.utils.unescape_identifier(curve.data_path[len(_KEY_BLOCK) : -len('"].value')])] = curve
    return out


def _on_mesh(on: Stage, values: Mapping[str, Array], mesh: str | None) -> list[MorphCurve]:
    out: list[MorphCurve] = []
    for one in on.morphs:
        if mesh is not None and one.name not in (mesh, node_pose.without_number(mesh)):
            continue
        for name, curve in values.items():
            if name in one.targets:
                out += [MorphCurve(one.node, part, name, one.targets.index(name), curve) for part in one.objects]
    return out


def scalars(chosen: Playing, frames: Array) -> tuple[ScalarCurve, ...]:
    """Custom properties of the armature that the action moves: time code, contacts, gates."""
    out: list[ScalarCurve] = []
    for curve in chosen.curves:
        path = curve.data_path
        if path.startswith('["') and path.endswith('"]'):
            out.append(_scalar(bpy.utils.unescape_identifier(path[2:-2]), curves.evaluate(curve, frames)))
    return tuple(out)


def _scalar(name: str, values: Array) -> ScalarCurve:
    """Whole numbers and time code hold until the next; others go on evenly."""
    whole = np.round(values)
    if name.startswith(timecode.PREFIX):
        return ScalarCurve(name, np.asarray(values), True)
    discrete = bool(np.abs(values - whole).max(initial=0.0) < 1e-4)
    return ScalarCurve(name, whole if discrete else np.asarray(values), discrete)


def divided(on: Stage, found: Mapping[str, Array]) -> tuple[tuple[MorphCurve, ...], tuple[ScalarCurve, ...]]:
    """A retarget's curves: those that are called like a morph target move it, the others are numbers."""
    morphs: list[MorphCurve] = []
    scalars: list[ScalarCurve] = []
    for name, values in found.items():
        own = _on_mesh(on, {name: values}, None)
        morphs += own
        if not own:
            scalars.append(_scalar(name, values))
    return tuple(morphs), tuple(scalars)
