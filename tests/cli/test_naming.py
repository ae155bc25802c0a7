# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mocap_addon.cli.naming import Names, file_stem


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("walk", "walk"),
        ("a/b\\c:d", "a_b_c_d"),
        ("Gang läuft 走る", "Gang läuft 走る"),
        ("..", "take"),
        ("", "take"),
        ("../../etc/passwd", "_.._etc_passwd"),
        (".hidden", "hidden"),
        ("ends. ", "ends"),
        ("CON", "CON_"),
        ("nul.bvh", "nul.bvh_"),
        ("console", "console"),
        ("tab\tline\n", "tab_line_"),
    ],
)
def test_stems(name, stem):
    assert file_stem(name) == stem


@given(st.text(max_size=400))
def test_every_stem_is_a_file_name_that_can_be_written(name):
    stem = file_stem(name)
    assert stem and Path(stem).name == stem and stem not in (".", "..")
    assert len(os.fsencode(stem)) <= 121 and not stem.startswith(".") and stem[-1] not in ". "


def test_names_are_unique_also_where_case_does_not_count(tmp_path):
    names = Names(tmp_path, [])
    assert [names.stem(n) for n in ("walk", "Walk", "walk", "walk_2")] == ["walk", "Walk_2", "walk_3", "walk_2_2"]


def test_inputs_are_never_overwritten(tmp_path):
    (tmp_path / "walk.bvh").write_text("x")
    (tmp_path / "hero.blend").write_text("x")
    link = tmp_path / "link"
    link.symlink_to(tmp_path, target_is_directory=True)
    names = Names(link, [tmp_path / "walk.bvh", tmp_path / "hero.blend"])
    assert [names.stem(n) for n in ("walk", "hero", "run")] == ["walk_2", "hero_2", "run"]
