# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that may be a take or a character, and bone tables kept by name."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import bpy
import pytest

from mocap_addon.ui import handlers, operators_retarget, presets, table_sync, takes

from .conftest import CHARACTER
from .helpers import counts, refused
from .test_preview import ready  # noqa: F401


def test_who_takes_which_file():
    plain, take, character = (
        set(handler.bl_file_extensions.split(";"))
        for handler in (handlers.MOCAP_FH_take, handlers.MOCAP_FH_use_as_take, handlers.MOCAP_FH_use_as_character)
    )
    assert {".bvh", ".mvnx", ".vrma"} <= plain and not plain & (take | character)
    assert {".fbx", ".glb", ".gltf"} <= take and character == {".fbx", ".glb", ".gltf", ".vrm"}
    for handler in (handlers.MOCAP_FH_take, handlers.MOCAP_FH_use_as_take, handlers.MOCAP_FH_use_as_character):
        module, _, name = handler.bl_import_operator.partition(".")
        properties = getattr(getattr(bpy.ops, module), name).get_rna_type().properties
        assert "filepath" in properties or {"directory", "files"} <= set(properties.keys())  # what Blender hands over
        assert handler.poll_drop(SimpleNamespace(area=SimpleNamespace(type="VIEW_3D")))
        assert not handler.poll_drop(SimpleNamespace(area=SimpleNamespace(type="IMAGE_EDITOR"))) and not handler.poll_drop(
            SimpleNamespace(area=None)
        )


def test_a_file_as_character(tmp_path):
    assert CHARACTER.exists() or pytest.skip("the character is not here")
    assert bpy.ops.mocap.open_character(filepath=str(CHARACTER)) == {"FINISHED"}
    assert bpy.context.scene.mocap.target.type == "ARMATURE"
    before = counts()
    (tmp_path / "broken.glb").write_bytes(b"glTF nothing")
    assert "broken.glb" in refused(bpy.ops.mocap.open_character, filepath=str(tmp_path / "broken.glb"))
    refused(bpy.ops.mocap.open_character)
    assert counts() == before


def test_the_same_file_as_take(character, walk, tmp_path):
    """A character with an animation, exported by Blender: its motion goes onto another one."""
    bpy.ops.mocap.retarget(filepath=walk)
    path = str(tmp_path / "walking.glb")
    bpy.ops.export_scene.gltf(filepath=path, export_format="GLB")
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.mocap.open_character(filepath=str(CHARACTER))
    target = bpy.context.scene.mocap.target
    assert bpy.ops.mocap.import_take(directory=str(tmp_path), files=[{"name": "walking.glb"}]) == {"FINISHED"}
    assert target.animation_data.action.frame_range[1] > 60.0


def test_dropped_before_there_is_a_character(walk):
    scene, said = bpy.context.scene, []
    folder, _, name = walk.rpartition("/")
    operator = SimpleNamespace(directory=folder, files=[SimpleNamespace(name=name)], report=lambda kind, text: said.append(text))
    operator._paths = lambda: operators_retarget.MOCAP_OT_import_take._paths(operator)
    assert operators_retarget.MOCAP_OT_import_take._only_choose(operator, bpy.context) == {"FINISHED"}
    assert scene.mocap.filepath == walk and "select a character" in said[0]


def test_dropped_onto_a_character_it_is_the_panels_take_too(walk, character):
    """So that it can be previewed and corrected. A script's import leaves the panel alone."""
    scene = bpy.context.scene
    folder, _, name = walk.rpartition("/")
    assert bpy.ops.mocap.import_take(directory=folder, files=[{"name": name}]) == {"FINISHED"}
    assert not scene.mocap.filepath
    assert bpy.ops.mocap.import_take(directory=folder, files=[{"name": name}], dropped=True) == {"FINISHED"}
    assert scene.mocap.filepath == walk and len(takes.peek(scene).takes[0].skeleton) == 31
    assert bpy.ops.mocap.preview() == {"FINISHED"}


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """Tables kept somewhere else than in the user's own folder."""

    def folder(*, create: bool = False) -> str:
        if create:
            (tmp_path / "tables").mkdir(exist_ok=True)
        return str(tmp_path / "tables")

    monkeypatch.setattr(presets, "folder", folder)
    presets.look()
    yield tmp_path / "tables"
    monkeypatch.undo()
    presets.look()


def test_tables_kept_by_name(ready, shelf):  # noqa: F811
    assert presets.names() == ()
    ready.mocap.rows["head"].correction = (0.2, 0.0, 0.0)
    table = table_sync.to_table(ready)
    assert bpy.ops.mocap.keep_table(name="My Hero / 2") == {"FINISHED"}
    assert len(presets.names()) == 1 and len(list(shelf.iterdir())) == 1
    bpy.ops.mocap.reset_corrections(which="ALL")
    assert bpy.ops.mocap.load_table(filepath=presets.path_of(presets.names()[0])) == {"FINISHED"}
    assert [r.correction for r in table_sync.to_table(ready).rows] == [r.correction for r in table.rows]
    assert "no bone table" in refused(bpy.ops.mocap.drop_table, name="other")
    refused(bpy.ops.mocap.keep_table, name=" ")
    assert bpy.ops.mocap.drop_table(name=presets.names()[0]) == {"FINISHED"}
    assert presets.names() == () and not bpy.ops.mocap.drop_table.poll()
    shutil.rmtree(shelf)
    presets.look()
    assert presets.names() == ()
