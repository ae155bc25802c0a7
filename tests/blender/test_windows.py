# SPDX-License-Identifier: GPL-3.0-or-later
"""What Blender's glTF importer and exporter do to windows and to the context, and what is left of it afterwards."""

from __future__ import annotations

import ctypes

import bpy
import pytest

from mocap_addon.blender import characters, export_character
from mocap_addon.motion.errors import FileError
from tests.paths import ROOT

from .helpers import limb

CHARACTER = ROOT / "mocap_addon" / "demo" / "character.glb"


@pytest.fixture
def character():
    return characters.bring_in(CHARACTER).armature


def camera(name: str) -> bpy.types.Object:
    obj = bpy.data.objects.new(name, bpy.data.cameras.new(name))
    bpy.context.scene.collection.objects.link(obj)
    return obj


def view() -> bpy.types.SpaceView3D:
    return next(area.spaces.active for area in bpy.context.window.screen.areas if area.type == "VIEW_3D")


@pytest.mark.parametrize("local", [False, True], ids=["the scene's camera", "a camera of the view's own"])
def test_an_export_leaves_the_window_as_it_was(character, tmp_path, local):
    """The scene of the export is called so that another one comes before it, and it has no camera."""
    scene, window, space = bpy.context.scene, bpy.context.window, view()
    scene.name = "Zeta"
    bpy.data.scenes.new("Alpha")
    window.view_layer = scene.view_layers.new("Second")
    scene.camera = camera("Scene's")
    if local:
        space.use_local_camera, space.camera = True, camera("View's")
    space.region_3d.view_perspective = "CAMERA"
    seen = space.camera
    export_character.export(character, tmp_path / "character.glb")
    assert [s.name for s in bpy.data.scenes] == ["Alpha", "Zeta"]
    assert (window.scene.name, window.view_layer.name, bpy.context.scene.name, bpy.context.view_layer.name) == ("Zeta", "Second") * 2
    assert seen is not None and (space.camera, space.region_3d.view_perspective, scene.camera.name) == (seen, "CAMERA", "Scene's")


def test_an_export_that_fails_leaves_the_window_as_it_was(character, tmp_path):
    bpy.context.scene.name = "Zeta"
    bpy.data.scenes.new("Alpha")
    (tmp_path / "character.glb").mkdir()
    with pytest.raises(FileError, match="Blender cannot export"):
        export_character.export(character, tmp_path / "character.glb")
    assert bpy.context.window.scene.name == "Zeta" and len(bpy.data.scenes) == 2


def owner_of_the_context() -> int:
    """The address of the data-block that ``bpy.context`` belongs to: the first member of what it wraps, behind count and type."""
    return ctypes.c_size_t.from_address(id(bpy.context) + object.__basicsize__).value


@pytest.mark.skipif(not hasattr(ctypes, "pythonapi"), reason="only CPython tells where its objects lie")
@pytest.mark.parametrize("read", ["tool_settings", "layer_collection"])
def test_bringing_in_and_exporting_write_into_no_scene_that_is_gone(tmp_path, read):
    """Before Blender 4.5 the context belongs to the scene in which one of these was read last, and what importer and exporter set through
    it is noted there, in freed memory when another file has been opened since."""
    getattr(bpy.context, read)
    if bpy.app.version < (4, 5, 0):
        assert owner_of_the_context() == bpy.context.scene.as_pointer()  # else this test looks in the wrong place
    bpy.ops.wm.read_factory_settings(use_empty=True)
    characters.bring_in(CHARACTER)
    assert owner_of_the_context() == 0

    getattr(bpy.context, read)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    export_character.export(limb(), tmp_path / "character.glb")
    assert owner_of_the_context() == 0
