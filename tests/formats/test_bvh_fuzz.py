# SPDX-License-Identifier: GPL-3.0-or-later
"""Texts made by chance: the reader gives takes or a sentence, and skeletons made by chance come back as they were."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mocap_addon.formats import ReadOptions, bvh_read
from mocap_addon.motion.errors import FileError
from tests.formats import bvh_oracle
from tests.formats.bvh_text import ARM_FILE
from tests.formats.test_bvh_damaged import check

WORDS = [
    "HIERARCHY",
    "ROOT",
    "JOINT",
    "End",
    "Site",
    "OFFSET",
    "CHANNELS",
    "MOTION",
    "Frames:",
    "Frame",
    "Time:",
    "{",
    "}",
    "\n",
    "\n",
    "a b",
]
WORDS += ["0", "1", "-1", "3", "6", "1e9", "nan", "Xposition", "Yrotation", "Zrotation", "Xrotation", "0.05", "9" * 30, ",", "\0", "#", "é"]
EDITS = st.lists(
    st.tuples(st.integers(0, len(ARM_FILE) - 1), st.integers(0, 12), st.sampled_from([*WORDS, " ", "", "7.5"])), min_size=1, max_size=6
)


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("fuzz") / "fuzz.bvh"


def attempt(file: Path, data: bytes) -> None:
    file.write_bytes(data)
    try:
        takes = bvh_read.read(file)
    except FileError as error:
        assert str(error).endswith(".") and "\n" not in str(error)
    else:
        assert takes
        for take in takes:
            check(take)


@settings(max_examples=500, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS)
def test_edited(file, edits):
    text = ARM_FILE
    for at, removed, put in edits:
        at = min(at, len(text))
        text = text[:at] + put + text[at + removed :]
    attempt(file, text.encode())


@settings(max_examples=300)
@given(words=st.lists(st.sampled_from(WORDS), max_size=60))
def test_words_by_chance(file, words):
    attempt(file, ("HIERARCHY\nROOT r\n{\n" + " ".join(words)).encode())


@settings(max_examples=200)
@given(lines=st.permutations(ARM_FILE.splitlines()))
def test_lines_in_any_order(file, lines):
    attempt(file, "\n".join(["HIERARCHY", *lines]).encode())


@settings(max_examples=200)
@given(data=st.binary(max_size=300))
def test_bytes_by_chance(file, data):
    attempt(file, b"HIERARCHY\n" + data)
    attempt(file, ARM_FILE[: ARM_FILE.index("0.05\n") + 5].encode() + data)


CHANNELS = st.sampled_from(
    [
        "",
        "Xrotation Yrotation Zrotation",
        "Zrotation Xrotation Yrotation",
        "Yrotation Xrotation",
        "Zrotation",
        "Xposition Yposition Zposition Yrotation Zrotation Xrotation",
        "Zrotation Zposition Xrotation Xposition Yrotation Yposition",
        "Yposition Xrotation Zrotation Yrotation",
    ]
)


@st.composite
def skeletons(draw) -> str:
    """A well-formed file with any hierarchy and any mixture of channels; offsets below 1, so that positions never look relative."""
    count = draw(st.integers(1, 12))
    parents = [-1] + [draw(st.integers(0, i - 1)) for i in range(1, count)]
    channels = [draw(CHANNELS) for _ in range(count)]
    if not any(channels):
        channels[0] = "Xrotation Yrotation Zrotation"
    number = st.floats(-0.99, 0.99).map(lambda v: f"{v:.4f}")

    def joint(i: int) -> list[str]:
        names = channels[i].split()
        offset = " ".join(draw(number) for _ in range(3))
        lines = [f"{'JOINT' if i else 'ROOT'} j{i}", "{", f"OFFSET {offset}", f"CHANNELS {len(names)} {channels[i]}"]
        below = [line for child in range(count) if parents[child] == i for line in joint(child)]
        return [*lines, *(below or ["End Site", "{", "OFFSET 0 1 0", "}"]), "}"]

    columns = sum(len(c.split()) for c in channels)
    value = st.floats(1.0, 180.0).flatmap(lambda v: st.sampled_from([f"{v:.3f}", f"-{v:.6f}", f"{v:.0f}", f"{v:.4e}"]))
    rows = [" ".join(draw(value) for _ in range(columns)) for _ in range(draw(st.integers(1, 4)))]
    return "\n".join(["HIERARCHY", *joint(0), "MOTION", f"Frames: {len(rows)}", "Frame Time: 0.04", *rows]) + "\n"


@settings(max_examples=150)
@given(text=skeletons())
def test_skeletons_by_chance_against_a_scalar_reader(file, text):
    file.write_text(text)
    bvh = bvh_oracle.read(file)
    (take,) = bvh_read.read(file, ReadOptions(up="Z", rest_up="Z", unit=1.0))
    assert take.skeleton.names == tuple(n.name for n in bvh.nodes)
    for row in range(len(bvh.rows)):
        positions, rotations = bvh_oracle.pose(bvh, row)
        np.testing.assert_allclose(take.global_positions[row], positions, atol=1e-9)
        for found, expected in zip(take.global_rotations[row], rotations, strict=True):
            w, x, y, z = found
            assert (expected.inv() * type(expected).from_quat([x, y, z, w])).magnitude() < 1e-9
