# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests of the Mocap tab, without a window: Blender as a module, or a real one in the background."""

from __future__ import annotations

import pytest

bpy = pytest.importorskip("bpy", reason="this Python has no bpy; these tests run in Blender or in a bpy wheel")

from tests.paths import SHARED, need  # noqa: E402

WALK = SHARED / "cmu" / "asf_02_01_walk.bvh"
CHARACTER = SHARED / "targets" / "mh_ue_names_apose.glb"


@pytest.fixture(scope="session", autouse=True)
def registered():
    """The add-on is enabled once for all tests."""
    import mocap_addon

    mocap_addon.register()
    yield
    mocap_addon.unregister()


@pytest.fixture(autouse=True)
def empty_file(registered):
    """Every test starts from an empty factory file; tests call Blender's glTF importer themselves, too."""
    from mocap_addon.blender import compat

    bpy.ops.wm.read_factory_settings(use_empty=True)
    compat.settle_context()
    yield


@pytest.fixture
def walk() -> str:
    return str(need(WALK))


@pytest.fixture
def character():
    """A skinned person in A-pose, with an object-level transform, an action of its own, and an Euler bone."""
    bpy.ops.import_scene.gltf(filepath=str(need(CHARACTER)))
    obj = next(o for o in bpy.data.objects if o.type == "ARMATURE")
    bpy.context.view_layer.objects.active = obj
    return obj
