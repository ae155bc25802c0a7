# SPDX-License-Identifier: GPL-3.0-or-later
"""Standard output holds results and nothing else; read from a process of its own, where the real descriptor 1 is a pipe."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.paths import ROOT

NOISY = """
import os, sys, ctypes
from mocap_addon.cli.output import Output
out = Output(as_json=True, ends_process={ends})
out.result({{"n": 1, "name": "läuft \\udc80", "bad": float("nan"), "inf": [float("inf")], "t": (1, 2)}}, [])
with out.while_blender_works(verbose={verbose}):
    print("python noise")
    os.write(1, b"descriptor noise\\n")
    libc = ctypes.CDLL(None)
    libc.printf(b"buffered C noise\\n")
    out.result({{"n": 2}}, [])
print("after")
out.result({{"n": 3}}, [])
"""


def run(code, **more):
    env = {**os.environ, "PYTHONPATH": str(ROOT), "LC_ALL": "C", **more}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, timeout=60)


def test_noise_goes_nowhere_and_descriptor_1_comes_back():
    done = run(NOISY.format(ends=False, verbose=False))
    lines = done.stdout.decode().splitlines()
    assert [json.loads(line) for line in lines if line != "after"] == [
        {"n": 1, "name": "läuft \udc80", "bad": None, "inf": [None], "t": [1, 2]},
        {"n": 2},
        {"n": 3},
    ]
    assert "after" in lines and done.stderr == b""


def test_at_the_end_of_a_process_nothing_but_results_comes():
    done = run(NOISY.format(ends=True, verbose=False))
    assert [json.loads(line)["n"] for line in done.stdout.decode().splitlines()] == [1, 2, 3]


def test_verbose_noise_goes_to_standard_error():
    done = run(NOISY.format(ends=True, verbose=True))
    assert len(done.stdout.splitlines()) == 3
    for noise in (b"python noise", b"descriptor noise", b"buffered C noise"):
        assert noise in done.stderr


def test_a_reader_that_goes_away_is_no_traceback():
    code = "import sys; from mocap_addon.cli import main; sys.exit(main(['info', *['nothing.bvh'] * 1, '--json']))"
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    err = process.stderr.read()
    assert process.wait(60) == 1 and b"Traceback" not in err and b"BrokenPipe" not in err
    process.stderr.close()


def test_text_survives_a_terminal_that_only_knows_ascii():
    code = "from mocap_addon.cli.output import Output; Output(as_json=False).result({}, ['läuft \\udc80'])"
    done = run(code, PYTHONIOENCODING="ascii")
    assert done.returncode == 0 and done.stdout == b"l\\xe4uft \\udc80\n"
