# SPDX-License-Identifier: GPL-3.0-or-later
"""Enabling and disabling, from a checkout and as an extension."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace

import bpy
import pytest

import mocap_addon
from mocap_addon.ui import registration
from tests.paths import ROOT


def known_names() -> set[str]:
    found = {name for name in dir(bpy.types) if name.startswith("MOCAP")}
    found |= {f"ops.{name}" for name in dir(bpy.ops.mocap)}
    return found | {owner.__name__ for owner in (bpy.types.Scene, bpy.types.Object) if hasattr(owner, "mocap")}


def test_disable_and_enable_again_is_clean():
    first = known_names()
    assert {"Scene", "Object", "ops.retarget", "ops.import_take"} <= first
    for _ in range(2):
        mocap_addon.unregister()
        assert known_names() == set()
        mocap_addon.register()
        assert known_names() == first


def test_enabling_twice_is_an_error_that_is_seen():
    with pytest.raises((ValueError, RuntimeError)):
        bpy.utils.register_class(registration.CLASSES[-1])


def test_a_broken_class_is_not_swallowed(monkeypatch):
    class MOCAP_PT_broken(bpy.types.Panel):
        bl_label = "no space type"

    mocap_addon.unregister()
    monkeypatch.setattr(registration, "CLASSES", (*registration.CLASSES, MOCAP_PT_broken))
    with pytest.raises(AttributeError, match="draw"):
        mocap_addon.register()
    monkeypatch.undo()
    for cls in reversed(registration.CLASSES):
        bpy.utils.unregister_class(cls)
    mocap_addon.register()


def test_every_class_of_the_room_is_in_the_list():
    listed = set(registration.CLASSES)
    names = (
        "handlers",
        "lists",
        "operators_pose",
        "operators_retarget",
        "operators_table",
        "operators_take",
        "panels",
        "properties",
        "recent",
    )
    for name in names:
        module = importlib.import_module(f"mocap_addon.ui.{name}")
        own = {
            c
            for c in vars(module).values()
            if isinstance(c, type) and issubclass(c, bpy.types.bpy_struct) and c.__module__ == module.__name__
        }
        assert own <= listed, own - listed


def test_operators_speak_to_the_user():
    for cls in registration.CLASSES:
        if issubclass(cls, bpy.types.Operator):
            assert cls.bl_idname.startswith("mocap."), cls
            assert cls.__doc__ and not cls.__doc__.endswith("."), cls  # Blender adds the full stop
    for group in (bpy.context.scene.mocap, bpy.ops.mocap.retarget.get_rna_type()):
        properties = group.bl_rna.properties if hasattr(group, "bl_rna") else group.properties
        for item in properties:
            if item.identifier not in ("rna_type", "name", "bl_rna"):
                assert item.description and not item.description.endswith("."), item.identifier


def test_as_an_extension_under_an_unknown_prefix(tmp_path, monkeypatch):
    folder = tmp_path / "bl_ext_test" / "some_repo"
    folder.mkdir(parents=True)
    for package in (folder.parent, folder):
        (package / "__init__.py").write_text("")
    (folder / "mocap_addon").symlink_to(ROOT / "mocap_addon")
    monkeypatch.syspath_prepend(str(tmp_path))
    mocap_addon.unregister()
    try:
        module = importlib.import_module("bl_ext_test.some_repo.mocap_addon")
        for _ in range(2):
            module.register()
            assert bpy.context.scene.mocap.rate_mode == "SCENE"
            module.unregister()
    finally:
        for name in [n for n in sys.modules if n.startswith("bl_ext_test")]:
            del sys.modules[name]
        mocap_addon.register()


def test_dropped_files_reach_the_operator():
    handler = bpy.types.MOCAP_FH_take
    assert handler.bl_import_operator == "mocap.import_take"
    assert {".bvh", ".mvnx"} <= set(handler.bl_file_extensions.split(";"))
    assert handler.poll_drop(SimpleNamespace(area=SimpleNamespace(type="VIEW_3D")))
    assert not handler.poll_drop(SimpleNamespace(area=SimpleNamespace(type="TEXT_EDITOR")))
    assert not handler.poll_drop(SimpleNamespace(area=None))
