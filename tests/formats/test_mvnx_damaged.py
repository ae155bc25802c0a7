# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged and hostile MVNX files: one sentence with the line, or a take; never anything else, never much memory or time."""

from __future__ import annotations

import random
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mocap_addon.formats import mvnx
from mocap_addon.motion.errors import FileError, MocapError
from mocap_addon.motion.take import Take
from tests.paths import ROOT

from .mvnx_writer import Made

SMALL = Made(frames=6)
TEXT = SMALL.text()
LINES = TEXT.split("\n")
FIRST = next(i for i, line in enumerate(LINES) if 'type="normal"' in line)  # 0-based index of the first frame of motion
THIRD = [i for i, line in enumerate(LINES) if 'type="normal"' in line][2]


def attempt(path: Path, data: bytes | str) -> list[Take] | MocapError:
    """Read what is given; anything but takes or one sentence fails the test."""
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    before = time.perf_counter()
    try:
        takes = mvnx.read(path)
    except MocapError as error:
        text = str(error)
        assert "\n" not in text and text.endswith(".") and text.startswith(path.name), text
        takes = error
    else:
        for take in takes:
            assert np.isfinite(take.local_rotations).all() and np.isfinite(take.local_translations).all() and np.isfinite(take.times).all()
            np.testing.assert_allclose(np.linalg.norm(take.local_rotations, axis=-1), 1.0, atol=1e-9)
    assert time.perf_counter() - before < 10.0
    return takes


def refusal(path: Path, data: bytes | str) -> str:
    found = attempt(path, data)
    assert isinstance(found, FileError), found
    return str(found)


def cut(line: int, old: str, new: str) -> str:
    """The small file with one replacement in one line (0-based); fails when there is nothing to replace."""
    assert old in LINES[line]
    return "\n".join([*LINES[:line], LINES[line].replace(old, new, 1), *LINES[line + 1 :]])


# -- where and what ------------------------------------------------------------------------------------------------------------


def test_the_line_of_a_wrong_number_of_numbers(tmp_path: Path) -> None:
    row = LINES[THIRD + 1]
    assert row.startswith("<orientation>")
    short = "\n".join([*LINES[: THIRD + 1], row.replace(" 0.", " ", 1).replace(" ", "", 1), *LINES[THIRD + 2 :]])
    text = refusal(tmp_path / "a.mvnx", short)
    assert f"line {THIRD + 1}:" in text and "numbers" in text
    fewer = "\n".join([*LINES[: THIRD + 1], re.sub(r" \S+</", "</", row), *LINES[THIRD + 2 :]])
    text = refusal(tmp_path / "a.mvnx", fewer)
    assert f"line {THIRD + 1}:" in text and "holds 91 numbers, and 92 were expected" in text


def test_the_first_frame_is_not_believed_against_the_definitions(tmp_path: Path) -> None:
    row = LINES[FIRST + 1]
    fewer = "\n".join([*LINES[: FIRST + 1], re.sub(r" \S+</", "</", row), *LINES[FIRST + 2 :]])
    assert f"line {FIRST + 1}:" in refusal(tmp_path / "a.mvnx", fewer)
    poses = Made(frames=6, poses=())
    text = re.sub(r"(<orientation>.*?) \S+</orientation>", r"\1</orientation>", poses.text())
    assert "91 numbers, and 92" in refusal(tmp_path / "a.mvnx", text)


def test_compensating_rows_are_still_told_apart(tmp_path: Path) -> None:
    lines = list(LINES)
    second = [i for i, line in enumerate(LINES) if 'type="normal"' in line][1]
    lines[second + 1] = re.sub(r" \S+</", "</", lines[second + 1])
    lines[THIRD + 1] = lines[THIRD + 1].replace("</", " 0.5</")
    assert f"line {second + 1}:" in refusal(tmp_path / "a.mvnx", "\n".join(lines))


def test_words_among_numbers(tmp_path: Path) -> None:
    text = refusal(tmp_path / "a.mvnx", cut(THIRD + 1, " 0.", " zero."))
    assert f"line {THIRD + 1}:" in text and "zero" in text and "not a number" in text


def test_broken_tags_name_their_line(tmp_path: Path) -> None:
    text = refusal(tmp_path / "a.mvnx", cut(THIRD + 1, "</orientation>", "</orientatiom>"))
    assert f"line {THIRD + 2}:" in text and "mismatched tag" in text


def test_a_file_that_breaks_off_gives_what_is_there(tmp_path: Path) -> None:
    found = attempt(tmp_path / "a.mvnx", "\n".join(LINES[: THIRD + 2]))
    assert isinstance(found, list) and found[0].frames == 2
    assert any(f"breaks off at line {THIRD + 2}" in note for note in found[0].notes)
    assert "no subject" in refusal(tmp_path / "a.mvnx", "<mvnx/>")
    assert "no element found" in refusal(tmp_path / "a.mvnx", "\n".join(LINES[:FIRST][:50]))


FRAMES = "<mvnx><subject><frames><frame>{}</frame></frames></subject></mvnx>"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("", "no element found"),
        (b"\x00\x01\x02\xff" * 1000, "not well-formed"),
        ("HIERARCHY\nROOT Hips\n", "not well-formed"),
        ("<html><body/></html>", "outermost tag is <html>"),
        ("<mvnx version='2'><mvnxInfo frameCount='1'/></mvnx>", "no subject with frames"),
        ("<mvnx><subject label='x'><frames/></subject></mvnx>", "only pose frames"),
        (
            FRAMES.format("<orientation>1 0 0 0</orientation>"),
            "1 segments and 0 are defined",
        ),
        (FRAMES.format("<position>1 0 0</position>"), "no orientations"),
        ("<mvnx encoding='x'>" + "<a>" * 100, "nested more than 50"),
        ("<?xml version='1.0' encoding='klingon'?><mvnx/>", "encoding"),
    ],
)
def test_what_is_no_motion_is_said(tmp_path: Path, data: bytes | str, words: str) -> None:
    assert words in refusal(tmp_path / "a.mvnx", data)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="cannot be read"):
        mvnx.read(tmp_path / "none.mvnx")


def test_circular_joints(tmp_path: Path) -> None:
    text = TEXT.replace("<connector1>Pelvis/jL5S1</connector1>", "<connector1>Head/jL5S1</connector1>")
    found = attempt(tmp_path / "a.mvnx", text)
    assert isinstance(found, list)  # the legs remain; what hangs in the air is kept as bodies of their own
    text = TEXT.replace("</joints>", "<joint><connector1>L5/x</connector1><connector2>Pelvis/x</connector2></joint></joints>")
    assert "circle" in refusal(tmp_path / "a.mvnx", text)


def test_a_prop_between_body_parts_is_passed_over(tmp_path: Path) -> None:
    made = Made(frames=6, props=1)
    text = (
        made.text()
        .replace("<connector1>RightForeArm/", "<connector1>Prop1/")
        .replace("</joints>", "<joint><connector1>RightForeArm/x</connector1><connector2>Prop1/x</connector2></joint></joints>")
    )
    found = attempt(tmp_path / "a.mvnx", text)
    assert isinstance(found, list) and list(found[0].props) == ["Prop1"]
    skeleton = found[0].skeleton
    assert skeleton.names[skeleton.parents[skeleton.index("RightHand")]] == "RightForeArm"


# -- hostile -------------------------------------------------------------------------------------------------------------------

LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10 if i else "ha"}">' for i in range(12))
DTD = "document type definition"
POINT = '<point label="a"><pos_b>1 1 1</pos_b></point>'
DEFAULTS = '<!DOCTYPE mvnx [<!ATTLIST subject label CDATA "x">]>'
HOSTILE = {
    "own definitions": (DEFAULTS + TEXT.split("?>", 1)[1], DTD),
    "billion laughs": (f"<!DOCTYPE mvnx [{LAUGHS}]><mvnx><comment>&l11;</comment></mvnx>", DTD),
    "quadratic": (f'<!DOCTYPE mvnx [<!ENTITY a "{"x" * 60_000}">]><mvnx>{"&a;" * 60_000}</mvnx>', DTD),
    "external file": (
        '<!DOCTYPE mvnx [<!ENTITY f SYSTEM "file:///etc/passwd">]><mvnx><subject label="&f;"/></mvnx>',
        "document type definition",
    ),
    "parameter entity": ('<!DOCTYPE mvnx [<!ENTITY % p SYSTEM "http://localhost/x"> %p;]><mvnx/>', DTD),
    "undefined entity": ('<!DOCTYPE mvnx SYSTEM "x.dtd"><mvnx><comment>&foo;</comment></mvnx>', 'the entity "foo"'),
    "attribute of 40 MB": (f'<mvnx a="{"x" * 40_000_000}"/>', "larger than 8 MB"),
    "comment of 40 MB": (f"<mvnx><!--{'x' * 40_000_000}--></mvnx>", "larger than 8 MB"),
    "text of 40 MB": (TEXT.replace("<orientation>", "<orientation>" + "1 " * 20_000_000, 1), "longer than 1 MB"),
    "many segments": (TEXT.replace("<segments>", "<segments>" + '<segment label="a"/>' * 300_000), "more than 200 segments"),
    "many points": (
        TEXT.replace("<points>", "<points>" + POINT * 300_000, 1),
        "more than 50000 definitions",
    ),
    "many subjects": ("<mvnx>" + "<subject/>" * 300_000 + "</mvnx>", "more than 64 subjects"),
    "deep": ("<mvnx>" + "<a>" * 1_000_000, "nested more than 50"),
    "many names": ("<mvnx><subject>" + "".join(f"<a{i}/>" for i in range(300_000)) + "</subject></mvnx>", "more than 50000 definitions"),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_files_are_refused(tmp_path: Path, kind: str) -> None:
    data, words = HOSTILE[kind]
    text = refusal(tmp_path / "a.mvnx", data)
    assert words in text and len(text) < 250


def test_memory_of_hostile_files(tmp_path: Path) -> None:
    """All of them in one fresh process that may not have more than 1 GB of address space."""
    for name, (data, _) in HOSTILE.items():
        (tmp_path / f"{name}.mvnx").write_text(data)
    script = (
        "import resource, sys, pathlib\n"
        "resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "from mocap_addon.formats import mvnx\n"
        "from mocap_addon.motion.errors import MocapError\n"
        "n = 0\n"
        "for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):\n"
        "    try:\n"
        "        mvnx.read(path)\n"
        "    except MocapError:\n"
        "        n += 1\n"
        "print(n)\n"
    )
    environment = {"OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, env=environment, timeout=120)
    assert done.stdout.strip() == str(len(HOSTILE)), done.stderr[-2000:]


# -- at random -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_flipped_bits(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(TEXT.encode())
    for _ in range(chance.choice([1, 1, 1, 5, 50])):
        at = chance.randrange(len(data))
        data[at] ^= 1 << chance.randrange(8)
    attempt(tmp_path / "a.mvnx", bytes(data))


@pytest.mark.parametrize("share", [0.01, 0.1, 0.2, 0.3, 0.4, 0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99, 0.999])
def test_truncations(tmp_path: Path, share: float) -> None:
    attempt(tmp_path / "a.mvnx", TEXT.encode()[: int(len(TEXT) * share)])


PIECES = ["", "<", ">", "</frame>", "<frame>", "nan", "1e999", "1e200", "-", "99999999", "<!--", "&", '"', " ", "\n", "</mvnx>"]


EDIT = st.tuples(st.integers(0, len(TEXT) - 1), st.integers(0, 60), st.one_of(st.sampled_from(PIECES), st.text(max_size=5)))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(EDIT, min_size=1, max_size=4))
def test_edited_files(tmp_path: Path, edits: list[tuple[int, int, str]]) -> None:
    text = TEXT
    for at, length, new in edits:
        text = text[:at] + new + text[at + length :]
    attempt(tmp_path / "a.mvnx", text.encode("utf-8", "surrogatepass"))
