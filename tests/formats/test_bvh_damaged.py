# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged files give a sentence with the line, or a take; never another error, over 1 GB or over 10 seconds."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import tracemalloc

import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.formats import bvh_read
from mocap_addon.motion.errors import FileError
from tests.formats import damaged
from tests.paths import ROOT

NAMES = list(damaged.damaged())
# Files that name no line: there is nothing in them, or nothing that belongs to a line.
WITHOUT_LINE = {"empty", "one byte", "white space", "zeros", "noise", "UTF-16 cut in a character", "UTF-16 of noise"}
# Files that must not pass for good ones, and a word of the sentence that says why.
REFUSED = {
    "cut off at 5.0%": "cut off",
    "no root": "no joint",
    "no HIERARCHY": "HIERARCHY",
    "only MOTION": "HIERARCHY",
    "rows too short": "do not belong together",
    "rows too long": "do not belong together",
    "offset of words": "offset",
    "offset nan": "offset",
    "brace missing at the end": "missing",
    "brace too many": "too many",
    "End without Site": "End",
    "huge channel count": "channels",
    "too many rotations": "rotation",
    "200,000 joints": "joints",
    "10,000 joints without channels, 200,000 rows": "joints",
}


def test_there_are_enough():
    assert len(NAMES) >= 60


@pytest.mark.filterwarnings("error")  # a warning of numpy's is a traceback to whoever turned warnings into errors
@pytest.mark.parametrize("name", NAMES)
def test_a_sentence_or_a_take(tmp_path, name):
    path = damaged.write(tmp_path, name)
    start = time.perf_counter()
    try:
        takes = bvh_read.read(path)
    except FileError as error:
        sentence = str(error)
        assert sentence.startswith("damaged.bvh")
        assert sentence.endswith(".") and "\n" not in sentence and len(sentence) < 300
        assert all(c.isprintable() for c in sentence)
        assert name in WITHOUT_LINE or re.match(r"damaged\.bvh, line \d+: ", sentence) or name.startswith("10,000 joints without")
        assert REFUSED.get(name, "") in sentence
    else:
        assert name not in REFUSED
        for take in takes:
            check(take)
    assert time.perf_counter() - start < 10.0


def check(take):
    """Whatever is read can be used: unit rotations, finite places, and something that says what was wrong."""
    assert np.isfinite(take.local_rotations).all()
    assert np.isfinite(take.local_translations).all()
    assert np.isfinite(take.skeleton.rest_translations).all()
    np.testing.assert_allclose(np.linalg.norm(take.local_rotations, axis=-1), 1.0, atol=1e-9)
    assert all(n.endswith(".") and len(n) < 400 for n in take.notes)
    assert len(take.notes) < 30


@pytest.mark.parametrize("name", NAMES)
def test_the_general_door_is_as_safe(tmp_path, name):
    path = damaged.write(tmp_path, name)
    if path.stat().st_size > 2_000_000:
        pytest.skip("the same reader; large files are measured once")
    try:
        formats.read(path)
    except FileError as error:
        assert str(error).endswith(".")


def test_every_cut(tmp_path):
    """A file that breaks off anywhere, byte by byte."""
    whole = damaged.ARM_FILE.encode()
    path = tmp_path / "cut.bvh"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        try:
            (take,) = bvh_read.read(path)
        except FileError:
            assert end < whole.index(b"MOTION") + 6
        else:
            assert take.frames <= 3


def test_every_bit(tmp_path):
    """A file with one bit wrong, two bits of every byte."""
    whole = damaged.ARM_FILE.encode()
    path = tmp_path / "bit.bvh"
    for at in range(len(whole)):
        for bit in (at % 8, (3 * at + 5) % 8):
            path.write_bytes(whole[:at] + bytes([whole[at] ^ (1 << bit)]) + whole[at + 1 :])
            try:
                for take in bvh_read.read(path):
                    check(take)
            except FileError:
                pass


@pytest.mark.parametrize(
    "name", ["10,000 joints without channels, 200,000 rows", "a row of 20 megabytes", "a row of 7 megabytes", "a million blank lines"]
)
def test_memory_stays_below_a_gigabyte(tmp_path, name):
    path = damaged.write(tmp_path, name)
    tracemalloc.start()
    try:
        bvh_read.read(path)
    except FileError:
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 1_000_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process are set the Linux way")
@pytest.mark.parametrize("name", ["a billion frames declared", "10,000 joints deep", "200,000 joints", "a row of 7 megabytes"])
def test_in_a_process_that_cannot_have_more(tmp_path, name):
    """One gigabyte of data and ten seconds of processor time, enforced from outside."""
    path = damaged.write(tmp_path, name)
    code = (
        "import resource, sys; sys.path.insert(0, sys.argv[2])\n"
        "from mocap_addon.formats import bvh_read; from mocap_addon.motion.errors import FileError\n"
        "resource.setrlimit(resource.RLIMIT_DATA, (10**9, 10**9)); resource.setrlimit(resource.RLIMIT_CPU, (10, 10))\n"
        "try: print(len(bvh_read.read(sys.argv[1])), 'takes')\n"
        "except FileError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(path), str(ROOT)], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert "more memory" not in run.stdout
