# SPDX-License-Identifier: GPL-3.0-or-later
"""One take as files of every kind, each made by a writer that is not ours: Blender's exporters, where it has one."""

from __future__ import annotations

from pathlib import Path

import addon_utils
import bpy
import numpy as np

from mocap_addon.blender import compat
from tests.paths import DATA

WALK = DATA / "takes" / "cmu_walk_60rows.bvh"
CMU_UNIT = 0.0254 / 0.45
"""Metres: what one unit of the CMU files is."""


def bvh_rig(path: Path = WALK, scale: float = CMU_UNIT, name: str = "Walk") -> bpy.types.Object:
    """The file as Blender's own importer reads it, with the scene at the file's rate; the object is called ``Source``."""
    addon_utils.enable("io_anim_bvh", default_set=False)
    bpy.ops.import_anim.bvh(
        filepath=str(path), global_scale=scale, rotate_mode="QUATERNION", use_fps_scale=False, update_scene_fps=True, frame_start=1
    )
    obj = bpy.context.object
    obj.name, obj.animation_data.action.name = "Source", name
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = round(scene.render.fps / scene.render.fps_base), 1.0  # it keeps 120 as 120.00005
    scene.frame_start, scene.frame_end = (int(f) for f in obj.animation_data.action.frame_range)
    return obj


def skin(obj: bpy.types.Object) -> bpy.types.Object:
    """A mesh with a triangle at each bone, bound to it: what makes exporters write a bind pose."""
    points, faces = [], []
    for bone in obj.data.bones:
        at = np.array(obj.matrix_world @ bone.head_local)
        faces.append((len(points), len(points) + 1, len(points) + 2))
        points += [tuple(at + step) for step in np.diag((0.0, 0.02, 0.02))]
    mesh = bpy.data.meshes.new("Skin")
    mesh.from_pydata(points, [], faces)
    out = bpy.data.objects.new("Skin", mesh)
    bpy.context.scene.collection.objects.link(out)
    for i, bone in enumerate(obj.data.bones):
        out.vertex_groups.new(name=bone.name).add([3 * i, 3 * i + 1, 3 * i + 2], 1.0, "REPLACE")
    out.modifiers.new("Armature", "ARMATURE").object = obj
    out.parent = obj
    return out


def second_action(obj: bpy.types.Object, name: str) -> bpy.types.Action:
    """A copy of the rig's action in which it travels twice as far, kept but not assigned."""
    action = obj.animation_data.action.copy()
    action.name, action.use_fake_user = name, True
    root = next(bone.name for bone in obj.data.bones if bone.parent is None)
    for curve in compat.all_curves(action):
        if curve.data_path == f'pose.bones["{root}"].location':
            for point in curve.keyframe_points:
                point.co.y *= 2.0
            curve.update()
    return action


def save_fbx(path: Path, *, all_actions: bool = False, **options) -> Path:
    """Everything, by Blender's FBX exporter. Keys are baked on whole frames."""
    addon_utils.enable("io_scene_fbx", default_set=False)
    bpy.ops.export_scene.fbx(
        filepath=str(path),
        bake_anim_use_all_actions=all_actions,
        bake_anim_use_nla_strips=False,
        bake_anim_simplify_factor=0.0,
        add_leaf_bones=False,
        **options,
    )
    return path


def save_glb(path: Path, **options) -> Path:
    """Everything, by Blender's glTF exporter."""
    addon_utils.enable("io_scene_gltf2", default_set=False)
    known = bpy.ops.export_scene.gltf.get_rna_type().properties
    wanted = {"export_animations": True, "export_optimize_animation_size": False, "export_anim_slide_to_zero": True, **options}
    bpy.ops.export_scene.gltf(filepath=str(path), **{k: v for k, v in wanted.items() if k in known})
    return path


def save_blend(path: Path) -> Path:
    """Everything that is open."""
    bpy.ops.wm.save_as_mainfile(filepath=str(path), copy=True, check_existing=False)
    return path


def everything() -> dict[str, object]:
    """All that a person could miss: every data-block by name and users, the scenes' settings, and how the open scene stands."""
    kinds = [p.identifier for p in bpy.data.bl_rna.properties if p.type == "COLLECTION"]
    blocks = {kind: [(b.name, b.users, b.use_fake_user) for b in getattr(bpy.data, kind)] for kind in kinds}
    scene, layer = bpy.context.scene, bpy.context.view_layer
    poses = {
        obj.name: [(b.name, b.rotation_mode, *map(tuple, b.matrix_basis)) for b in obj.pose.bones]
        for obj in bpy.data.objects
        if obj.type == "ARMATURE"
    }
    keys = {
        action.name: [
            (c.data_path, c.array_index, [(*k.co, *k.handle_left, k.interpolation) for k in c.keyframe_points])
            for slot in compat.slots(action)
            for c in compat.all_curves(action, slot)
        ]
        for action in bpy.data.actions
    }
    assigned = {o.name: (o.animation_data.action.name if o.animation_data and o.animation_data.action else None) for o in bpy.data.objects}
    return {
        "blocks": blocks,
        "poses": poses,
        "keys": keys,
        "assigned": assigned,
        "places": {o.name: tuple(map(tuple, o.matrix_world)) for o in bpy.data.objects},
        "collections": {o.name: sorted(c.name for c in o.users_collection) for o in bpy.data.objects},
        "scene": (scene.name, scene.render.fps, scene.render.fps_base, scene.frame_start, scene.frame_end, scene.frame_current),
        "more": (scene.frame_subframe, scene.unit_settings.system, scene.unit_settings.scale_length, sorted(scene.keys())),
        "shown": (layer.objects.active and layer.objects.active.name, sorted(o.name for o in layer.objects if o.select_get())),
        "mode": (bpy.context.mode, layer.active_layer_collection.name, {o.name: o.hide_get() for o in layer.objects}),
        "window": (bpy.context.window.scene.name, bpy.context.window.view_layer.name),
    }
