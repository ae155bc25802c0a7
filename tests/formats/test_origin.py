# SPDX-License-Identifier: GPL-3.0-or-later
"""What it takes to read a file again is in the facts of its takes."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import pytest

from mocap_addon import formats
from mocap_addon.formats import ReadOptions
from mocap_addon.motion.errors import FileError
from tests.paths import DATA

WALK = DATA / "takes" / "cmu_walk_60rows.bvh"


def test_path_hash_and_the_options_that_were_set(monkeypatch):
    monkeypatch.chdir(WALK.parent)
    (take,) = formats.read(WALK.name, ReadOptions(rate=Fraction(30000, 1001), unit=0.01))
    assert take.facts["path"] == str(WALK)
    assert take.facts["hash"] == hashlib.blake2b(WALK.read_bytes(), digest_size=16).hexdigest()
    assert take.facts["read"] == {"rate": "30000/1001", "unit": 0.01}
    assert take.facts["format"]  # what the reader found out is still there


def test_nothing_set_and_another_content(tmp_path):
    copy = tmp_path / "walk.bvh"
    copy.write_bytes(WALK.read_bytes() + b"\n")
    one, other = formats.read(WALK)[0], formats.read(copy)[0]
    assert one.facts["read"] == {} and one.facts["hash"] != other.facts["hash"] == formats.content_hash(copy)


def test_a_file_that_is_gone():
    with pytest.raises(FileError, match=r"gone\.bvh: The file cannot be read"):
        formats.content_hash(DATA / "gone.bvh")
