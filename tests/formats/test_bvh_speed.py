# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed and memory, as ratios within one run: file to take against reading the same numbers with numpy's own text reader."""

from __future__ import annotations

import re
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

from mocap_addon.formats import bvh_read
from tests.paths import DATA, ROOT

WALK = DATA / "takes" / "cmu_walk_60rows.bvh"


def long_walk(path, frames: int) -> str:
    """The bundled walk over and over; returns the rows' text."""
    head, rows = re.split(r"(?<=Frame Time: 0.00833333\n)", WALK.read_text())
    lines = rows.splitlines()
    body = "\n".join((lines * (frames // len(lines) + 1))[:frames]) + "\n"
    path.write_text(head.replace("Frames: 60", f"Frames: {frames}") + body)
    return body


def best(call, times: int = 7) -> float:
    out = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        out.append(time.perf_counter() - start)
    return min(out)


def test_a_take_in_less_time_than_numpy_reads_its_numbers(tmp_path):
    """Parsing, rotations, axes and all, measured at 0.5 of numpy's bare reading of the numbers; 1.0 is the limit on a busy machine."""
    path = tmp_path / "walk.bvh"
    body = long_walk(path, 2000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bare = best(lambda: np.fromstring(body, sep=" "))
    assert best(lambda: bvh_read.read(path)) < 1.0 * bare


def test_time_grows_with_the_frames(tmp_path):
    """Per frame 20,000 frames may cost 1.6 times what 2,000 cost."""
    long_walk(tmp_path / "a.bvh", 2000)
    long_walk(tmp_path / "b.bvh", 20_000)
    assert best(lambda: bvh_read.read(tmp_path / "b.bvh"), 3) / 10 < 1.6 * best(lambda: bvh_read.read(tmp_path / "a.bvh"))


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read the Linux way")
def test_memory(tmp_path):
    """The peak of a fresh process: at most the take's arrays and once as much again."""
    path = tmp_path / "walk.bvh"
    long_walk(path, 30_000)
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from mocap_addon.formats import bvh_read\n"
        "peak = lambda: int([l for l in open('/proc/self/status') if l.startswith('VmHWM')][0].split()[1]) * 1024\n"
        "before = peak(); take = bvh_read.read(sys.argv[2])[0]\n"
        "print((peak() - before) / (take.local_rotations.nbytes + take.local_translations.nbytes))\n"
    )
    run = subprocess.run([sys.executable, "-c", code, str(ROOT), str(path)], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 2.0
