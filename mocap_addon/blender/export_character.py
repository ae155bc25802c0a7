# SPDX-License-Identifier: GPL-3.0-or-later
"""The character's own glTF file, exported once by Blender: no animation in it, nothing of the scene changed."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import addon_utils
import bpy

from ..formats import gltf_write
from ..motion.errors import FileError
from . import rig_graph, windows


def export(obj: bpy.types.Object, path: str | Path) -> Path:
    """Export an armature with the meshes it moves as a ``.glb`` in its rest pose.

    The armature stands in the scene as it does now. Skinned meshes hang on the scene, not below the armature: their place means nothing,
    and validators warn of it.

    Raises
    ------
    FileError
        Blender's exporter is missing or fails.
    """
    path = Path(path)
    if not addon_utils.check("io_scene_gltf2")[1] and addon_utils.enable("io_scene_gltf2", default_set=False) is None:
        raise FileError("Blender's glTF exporter (io_scene_gltf2) is missing; enable that add-on.", path)
    known = bpy.ops.export_scene.gltf.get_rna_type().properties
    wanted: dict[str, object] = {
        "export_format": "GLB",
        "use_active_scene": True,
        "use_selection": False,
        "use_visible": False,
        "export_animations": False,
        "export_current_frame": False,
        "export_rest_position_armature": True,
        "export_morph": True,
        "export_extras": False,
        "export_cameras": False,
        "export_lights": False,
        "export_yup": True,
        "export_apply": False,
    }
    with _scene_of_its_own(obj) as scene, io.StringIO() as chat, contextlib.redirect_stdout(chat), contextlib.redirect_stderr(chat):
        try:
            with windows.kept(), bpy.context.temp_override(scene=scene, view_layer=scene.view_layers[0]):
                bpy.ops.export_scene.gltf(filepath=str(path), **{k: v for k, v in wanted.items() if k in known})
        except Exception as error:  # an exporter may raise anything
            line = str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
            raise FileError(f"Blender cannot export this character as glTF ({line}).", path) from error
    file = gltf_write.read(path)
    gltf_write.hang_skins_on_scene(file.data)
    gltf_write.drop_animations(file)
    gltf_write.save(path, file.glb())
    return path


def members(obj: bpy.types.Object) -> list[bpy.types.Object]:
    """The armature, what it is parented to, and the meshes that hang on it or are moved by it."""
    out = [obj]
    above = obj.parent
    while above is not None:
        out.append(above)
        above = above.parent
    for one in bpy.context.scene.objects:
        moved = any(m.type == "ARMATURE" and m.object == obj for m in one.modifiers) if one.type == "MESH" else False
        if one not in out and one.type == "MESH" and (moved or obj in _above(one)):
            out.append(one)
    return out


def _above(obj: bpy.types.Object) -> list[bpy.types.Object]:
    out: list[bpy.types.Object] = []
    while obj.parent is not None:
        obj = obj.parent
        out.append(obj)
    return out


@contextmanager
def _scene_of_its_own(obj: bpy.types.Object) -> Iterator[bpy.types.Scene]:
    """A scene with the character alone, at rest; action and pose are put back after."""
    here, animation = bpy.context.scene, obj.animation_data
    restore = rig_graph.restorer(obj)
    scene = bpy.data.scenes.new("Mocap Export")
    try:
        scene.unit_settings.scale_length = here.unit_settings.scale_length
        if animation is not None:
            animation.use_nla = False
            animation.action = None
        for one in members(obj):
            scene.collection.objects.link(one)
        yield scene
    finally:
        bpy.data.scenes.remove(scene)
        restore()
