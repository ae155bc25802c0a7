# SPDX-License-Identifier: GPL-3.0-or-later
"""The Export panel: presets, chosen actions, what it says afterwards."""

from __future__ import annotations

import json

import bpy
import pytest

from mocap_addon.blender import export
from mocap_addon.ui import export_settings, operators_export
from tests.ui.helpers import counts, fingerprint, give_action, refused


@pytest.fixture
def two_actions(character):
    give_action(character, "nod")
    character.animation_data.action.use_fake_user = True
    character.animation_data.action = None
    give_action(character, "bow")
    return character


def settings():
    return bpy.context.scene.mocap.export


@pytest.mark.parametrize("name", list(export.PRESETS))
def test_a_preset_sets_everything_and_a_change_makes_it_own_settings(name):
    settings().preset = name.upper()
    assert export_settings.options(settings()) == export.PRESETS[name]
    settings().match = not settings().match
    assert settings().preset == "CUSTOM"


def test_a_new_scene_is_set_as_its_preset_says():
    assert settings().preset == "WEB"
    assert export_settings.options(settings()) == export.PRESETS["web"]


def test_export_writes_what_plays_tells_sizes_and_errors_and_changes_nothing(two_actions, tmp_path):
    before, had = fingerprint(), counts()
    assert bpy.ops.mocap.export(directory=str(tmp_path)) == {"FINISHED"}
    assert fingerprint() == before
    assert counts() == had
    assert sorted(p.name for p in tmp_path.iterdir()) == ["Armature.glb", "Armature.manifest.json", "bow.clip.json"]
    found = operators_export.last(two_actions)
    sizes = {name: size for name, size, _ in found.files}
    assert sizes["bow.clip.json"] == operators_export.size_words((tmp_path / "bow.clip.json").stat().st_size)
    errors = [error for name, _, error in found.files if not name.endswith("manifest.json")]
    assert all(error == "exact" or error.endswith("mm off at most") for error in errors)


def test_chosen_actions(two_actions, tmp_path):
    settings().preset = "FILM"
    settings().which = "CHOSEN"
    assert "tick some" in refused(bpy.ops.mocap.export, directory=str(tmp_path))
    bpy.ops.mocap.list_actions()
    assert {row.name for row in settings().actions} == {"bow", "nod"}
    next(row for row in settings().actions if row.name == "bow").use = False
    bpy.ops.mocap.list_actions()
    bpy.ops.mocap.export(directory=str(tmp_path))
    assert [clip["name"] for clip in json.loads((tmp_path / "nod.clip.json").read_text())] == ["nod"]


def test_all_actions_are_in_one_file(two_actions, tmp_path):
    settings().which = "ALL"
    bpy.ops.mocap.export(directory=str(tmp_path))
    assert {clip["name"] for clip in json.loads((tmp_path / "Armature.clips.json").read_text())} == {"bow", "nod"}


def test_wrong_settings_are_one_sentence(two_actions, tmp_path):
    assert "not saved" in refused(bpy.ops.mocap.export)
    settings().formats = set()
    assert "No format" in refused(bpy.ops.mocap.export, directory=str(tmp_path))
    settings().preset = "WEB"
    settings().character = str(tmp_path / "none.glb")
    refused(bpy.ops.mocap.export, directory=str(tmp_path))
    two_actions.animation_data_clear()
    settings().character = ""
    assert "no action" in refused(bpy.ops.mocap.export, directory=str(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_words():
    assert operators_export.size_words(812) == "812 bytes"
    assert operators_export.size_words(47_468) == "47.5 KB"
    assert operators_export.size_words(1_018_068) == "1.02 MB"
    assert operators_export.error_words(9.5e-5) == "0.095 mm off at most"
    assert operators_export.error_words(1e-6) == "exact"


def test_only_what_the_formats_take_notice_of_is_shown():
    from mocap_addon.ui import panels_export
    from tests.ui.test_drawing import drawn

    def lines(formats: set[str]) -> set[str]:
        settings().formats = formats
        return set(drawn(panels_export.MOCAP_PT_export_settings).splitlines())

    small = {"Small Files", "Limit (mm)", "Leave Keys Out"}
    settings().preset = "WEB"
    assert small | {"Match Blender", "Loop", "Original File", "Same Bones in All"} <= lines({"THREEJS", "GLB"})
    assert not (small | {"Match Blender", "Loop", "Original File"}) & lines({"FBX"})
    assert "FBX For" in lines({"FBX"}) and "In Place" in lines({"BVH"})
    assert small <= lines({"VRMA"}) and "Loop" not in lines({"VRMA"})
    assert "KTX2 Texture" in lines({"MAP"}) and not small & lines({"MAP"})
