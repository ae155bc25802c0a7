# SPDX-License-Identifier: GPL-3.0-or-later
"""Tests that need Blender: in a Python with the bpy module, or inside a real Blender through tests/run_in_blender.py."""

from __future__ import annotations

import pytest

bpy = pytest.importorskip("bpy", reason="this Python has no bpy; these tests run in Blender or in a bpy wheel")


@pytest.fixture(autouse=True)
def empty_file():
    """Every test starts from an empty factory file; tests call Blender's glTF importer themselves, too."""
    from mocap_addon.blender import compat

    bpy.ops.wm.read_factory_settings(use_empty=True)
    compat.settle_context()
    yield
