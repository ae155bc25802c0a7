# SPDX-License-Identifier: GPL-3.0-or-later
"""The panel "Curves & Props", and all settings in one file, from the window."""

from __future__ import annotations

import math

import bpy
import pytest

from mocap_addon import rig
from mocap_addon.blender.job import JobOptions, options_of
from mocap_addon.blender.recipes import recipe_of
from mocap_addon.retarget import Mask
from mocap_addon.retarget.extras import Extras, MorphOptions, PropOptions, TimeCodeOptions
from mocap_addon.retarget.root_motion import RootMotion
from mocap_addon.ui import settings

from .helpers import press_retarget, refused

EXTRAS = Extras(
    TimeCodeOptions(True, "01:00:00;02", "29.97"),
    MorphOptions(True, (("jawOpen", "Mouth Open"), ("tongueOut", "")), 100.0),
    PropOptions(True, (("sword", "Excalibur"),)),
    True,
    1.5,
)
OPTIONS = JobOptions(
    rate="source",
    reference_frame="rest",
    travel=0.75,
    mask=Mask(frozenset({"head", "left arm"}), 3.0, 9.0, 2.0),
    root=RootMotion(destination="in-place", axes="xz", heading="hips", height="ground", origin="first", smoothing=0.5),
    controls="deform",
    extras=EXTRAS,
)


def test_the_panel_shows_what_it_was_set_to():
    panel = bpy.context.scene.mocap
    assert settings.job_options(panel) == JobOptions()
    settings.show(panel, OPTIONS)
    assert settings.job_options(panel) == OPTIONS
    settings.show(panel, JobOptions())
    assert settings.job_options(panel) == JobOptions()


def test_a_file_carries_all_settings_to_another_character(character, walk, tmp_path):
    panel, path = bpy.context.scene.mocap, tmp_path / "all.toml"
    panel.filepath = walk
    bpy.ops.mocap.match_bones()
    settings.show(panel, OPTIONS)
    character.mocap.arm_space = math.radians(4.0)
    assert bpy.ops.mocap.save_table(filepath=str(path)) == {"FINISHED"}
    settings.show(panel, JobOptions())
    character.mocap.arm_space = 0.0
    assert bpy.ops.mocap.load_table(filepath=str(path)) == {"FINISHED"}
    assert settings.job_options(panel) == OPTIONS
    assert character.mocap.arm_space == pytest.approx(math.radians(4.0), abs=1e-6)


def test_a_table_without_settings_changes_none_and_wrong_ones_change_nothing(character, walk, tmp_path):
    panel, path = bpy.context.scene.mocap, tmp_path / "table.toml"
    panel.filepath = walk
    bpy.ops.mocap.match_bones()
    settings.show(panel, OPTIONS)
    from mocap_addon.ui import table_sync

    table = table_sync.to_table(character)
    rig.save_table(table, path)
    assert bpy.ops.mocap.load_table(filepath=str(path)) == {"FINISHED"}
    assert settings.job_options(panel) == OPTIONS
    path.write_text(path.read_text().replace("version = 1\n", "version = 1\nsettings = { travel = -3.0 }\n"))
    assert "travel" in refused(bpy.ops.mocap.load_table, filepath=str(path))
    assert settings.job_options(panel) == OPTIONS


def test_retarget_takes_the_panels_curves_and_props(character, walk):
    panel = bpy.context.scene.mocap
    panel.filepath = walk
    panel.time_code_start, panel.time_code_rate = "23:59:59:23", "23.976"
    assert press_retarget() == {"FINISHED"}
    made = options_of(recipe_of(character.animation_data.action)).extras
    assert made.time_code == TimeCodeOptions(True, "23:59:59:23", "23.976")
    assert character["TCStart"] == "23:59:59:23" and character["TCRateDenominator"] == 1001.0
    panel.time_code_start = "noon"
    assert "not a time code" in refused(bpy.ops.mocap.retarget, **{n: getattr(panel, n) for n in settings.SHARED})
    panel.time_code_start, panel.morph_names = "", "jawOpen"
    assert "no pair of names" in refused(bpy.ops.mocap.retarget, **{n: getattr(panel, n) for n in settings.SHARED})
