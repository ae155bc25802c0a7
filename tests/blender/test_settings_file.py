# SPDX-License-Identifier: GPL-3.0-or-later
"""All settings of a retarget in one file: saved, shared, loaded, and honest about what it does not know."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from fractions import Fraction

import pytest

from mocap_addon import rig
from mocap_addon.blender import settings_file
from mocap_addon.blender.job import JobOptions
from mocap_addon.cli import arguments, job_settings
from mocap_addon.motion.errors import MocapError
from mocap_addon.retarget import Adjustments, Mask
from mocap_addon.retarget.extras import Extras, MorphOptions, PropOptions, TimeCodeOptions
from mocap_addon.retarget.root_motion import RootMotion
from mocap_addon.rig.table import CorrectionTable, Row

TABLE = CorrectionTable((Row("hips", "pelvis", ("Hips",), movable=True), Row("head", "skull", ("Head",), correction=(0.0, 5.0, 0.0))))
ALL = JobOptions(
    rate=Fraction(30000, 1001),
    reference_frame=7,
    travel=0.9,
    adjustments=Adjustments(arm_space=4.0),
    mask=Mask(frozenset({"head", "torso"}), 10.0, 20.0, 4.0),
    root=RootMotion(destination="object", axes="xy", smoothing=0.5),
    controls="fk",
    extras=Extras(
        TimeCodeOptions(True, "01:00:00;02", "29.97"),
        MorphOptions(True, (("a", 'B "x"'),), 100.0),
        PropOptions(True, (("s", "Sword"),)),
        True,
        1.0,
    ),
)


@pytest.mark.parametrize("options", [JobOptions(), ALL, replace(ALL, rate="source", reference_frame="rest", mask=Mask())])
def test_every_setting_comes_back_from_the_file(tmp_path, options):
    path = tmp_path / "hero.toml"
    rig.save_table(settings_file.with_settings(TABLE, replace(options, frame_start=33.0, name="this one")), path)
    table = rig.load_table(path)
    assert repr(table.rows) == repr(rig.loads(rig.dumps(TABLE)).rows)  # by their texts: what is not measured is not a number
    assert settings_file.settings_in(table) == options  # where one take starts, and its name, are not shared
    assert settings_file.strange_keys(table) == []


def test_a_table_alone_still_loads_and_a_file_with_settings_is_a_table():
    old = rig.loads(rig.dumps(TABLE))
    assert settings_file.settings_in(old) is None and settings_file.strange_keys(old) == []
    data = tomllib.loads(rig.dumps(settings_file.with_settings(TABLE, ALL)))
    assert [row["target"] for row in data["row"]] == ["pelvis", "skull"]
    assert data["settings"]["extras"]["morphs"]["names"] == {"a": 'B "x"'}


def test_unknown_keys_are_named_in_a_sentence_and_kept():
    text = rig.dumps(settings_file.with_settings(TABLE, ALL))
    text = text.replace("[settings]\n", "[settings]\nhair = 3\n").replace(
        "[settings.extras.morphs]\n", "[settings.extras.morphs]\ntongue = 1\n"
    )
    text = text.replace('target = "skull"\n', 'target = "skull"\nmood = "calm"\n').replace(
        "version = 1\n", 'version = 1\nstudio = "north"\n'
    )
    table = rig.loads(text)
    (sentence,) = settings_file.strange_keys(table)
    assert all(name in sentence for name in ("settings.hair", "settings.extras.morphs.tongue", "mood of skull", "studio"))
    assert settings_file.settings_in(table) == ALL
    again = rig.loads(rig.dumps(settings_file.with_settings(table, JobOptions())))
    assert again.extra["settings"]["hair"] == 3 and again.extra["studio"] == "north"


@pytest.mark.parametrize(
    "line",
    [
        'rate = "fast"',
        "travel = -1.0",
        'travel = "long"',
        "reference_frame = -2",
        'controls = "hands"',
        "root = 3",
        'mask = { parts = ["nose"] }',
        'extras = { markers = "yes" }',
        "adjustments = { arm_space = [1.0] }",
    ],
)
def test_wrong_values_say_which(line):
    table = rig.loads(rig.dumps(TABLE).replace("version = 1\n", f"version = 1\nsettings = {{ {line} }}\n"))
    with pytest.raises(MocapError) as caught:
        settings_file.settings_in(table)
    assert "table file" in str(caught.value) and "\n" not in str(caught.value)


def words(*more: str):
    return arguments.parse(["convert", "walk.bvh", "--character", "hero.glb", "--out", "x", *more])


def test_the_command_comes_before_the_file():
    table = settings_file.with_settings(TABLE, ALL)
    plain = job_settings.job_options(words(), table)
    assert plain == replace(ALL, rate="scene") and job_settings.rate(words(), table) == ALL.rate
    said = words(
        "--heading", "hips", "--controls=deform", "--fps", "25", "--timecode", "off", "--morphs", "jawOpen=Jaw, b=", "--reference", "rest"
    )
    options = job_settings.job_options(said, table)
    assert options.root == replace(ALL.root, heading="hips") and options.controls == "deform" and options.reference_frame == "rest"
    assert options.extras.morphs == MorphOptions(True, (("jawOpen", "Jaw"), ("b", "")), 100.0) and not options.extras.time_code.use
    assert options.travel == 0.9 and job_settings.rate(said, table) == 25
    assert job_settings.job_options(words("--props", "--markers"), None).extras == Extras(props=PropOptions(True), markers=True)
    assert job_settings.job_options(words(), None) == JobOptions()
