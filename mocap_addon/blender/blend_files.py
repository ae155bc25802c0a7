# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of another ``.blend`` into the current scene, as they are arranged there."""

from __future__ import annotations

from pathlib import Path

import bpy


def append_all(path: Path) -> None:
    """Append the scene of ``path`` that holds the most bones: its objects and collections, hidden where they were hidden.

    The scene itself is only the way to know what belongs together (custom bone shapes, for one, belong to no collection and must not
    appear); it is removed again. A file without a scene is appended object by object.
    """
    scene = bpy.context.scene
    before = {block.session_uid for block in _everything()}
    with bpy.data.libraries.load(str(path), link=False) as (there, here):
        here.scenes = list(there.scenes)
        if not there.scenes:
            here.objects = list(there.objects)
    scenes = [s for s in here.scenes if s is not None]
    if scenes:
        best = max(scenes, key=_bones)
        _link(best, scene)
        for appended in scenes:
            bpy.data.scenes.remove(appended)
        _drop_unused(before)
    else:
        for obj in here.objects:
            if obj is not None:
                scene.collection.objects.link(obj)


def _bones(scene: bpy.types.Scene) -> int:
    return sum(len(obj.data.bones) for obj in scene.objects if obj.type == "ARMATURE")


def _link(appended: bpy.types.Scene, scene: bpy.types.Scene) -> None:
    hidden = {}
    for layer in appended.view_layers[:1]:
        hidden = {obj.name: obj.hide_get(view_layer=layer) for obj in layer.objects}
        switches = [(c.collection, c.exclude, c.hide_viewport) for c in _below(layer.layer_collection)]
    for child in appended.collection.children:
        scene.collection.children.link(child)
    for obj in appended.collection.objects:
        scene.collection.objects.link(obj)
    layer = bpy.context.view_layer
    for collection, exclude, hide in switches:
        for found in _below(layer.layer_collection):
            if found.collection == collection:
                found.exclude, found.hide_viewport = exclude, hide
    for name, is_hidden in hidden.items():
        if is_hidden and name in layer.objects:
            layer.objects[name].hide_set(True)


def _below(layer_collection: bpy.types.LayerCollection) -> list[bpy.types.LayerCollection]:
    out: list[bpy.types.LayerCollection] = []
    for child in layer_collection.children:
        out += [child, *_below(child)]
    return out


def _everything() -> list[bpy.types.ID]:
    kinds = (p.identifier for p in bpy.data.bl_rna.properties if p.type == "COLLECTION")
    return [block for kind in kinds if kind not in ("window_managers", "workspaces", "screens") for block in getattr(bpy.data, kind)]


def _drop_unused(before: set[int]) -> None:
    """Remove what came with the scenes and now belongs to nothing: worlds, node trees, other scenes' objects and what they used."""
    while True:
        new = [block for block in _everything() if block.session_uid not in before and block.users == 0]
        if not new:
            return
        bpy.data.batch_remove(new)
