# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged packets in great numbers: a million of every protocol (MOCAP_MUTANTS sets another number), for a night.

Each protocol is a process of its own, whose memory is looked at after the first tenth and at the end.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from support.figures import Figure  # noqa: E402

_RUN = """
import json, sys, warnings
from tests.stream import mutants
warnings.simplefilter("error")
name, count = sys.argv[1], int(sys.argv[2])
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6
try:
    resident()
except OSError:
    resident = lambda: 0.0
parts, first = [], 0.0
for tenth in range(10):
    parts.append(mutants.throw(name, count // 10, seed=1000 + tenth))
    first = first or resident()
print(json.dumps({"decoded": sum(p.decoded for p in parts) / max(1, sum(p.count for p in parts)), "failed": sum(p.failed for p in parts),
    "faults": sorted(f for p in parts for f in p.faults), "slowest": max(p.slowest for p in parts), "growth": resident() - first}))
"""


def measure() -> list[Figure]:
    """Per protocol: share that still decodes, faults, growth, the longest packet."""
    from tests.stream.mutants import NAMES

    count = int(os.environ.get("MOCAP_MUTANTS", "1000000"))
    out: list[Figure] = []
    for name in NAMES:
        command = [sys.executable, "-c", _RUN, name, str(count)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=8 * 3600)
        if done.returncode:
            print(done.stderr, file=sys.stderr)
            out.append(Figure(f"{name}: exceptions of {count:,}", float("inf"), "", 0.0))
            continue
        found = json.loads(done.stdout)
        for fault in found["faults"]:
            print(f"{name}: {fault}", file=sys.stderr)
        out.append(Figure(f"{name}: exceptions of {count:,}", found["failed"], "", 0.0))
        out.append(Figure(f"{name}: still decoding", round(100.0 * found["decoded"], 1), "%", 30.0, "higher"))
        out.append(Figure(f"{name}: memory after the first tenth", round(found["growth"], 2), "MB", 2.0))
        out.append(Figure(f"{name}: longest packet", round(found["slowest"] * 1e3, 3), "ms", 5.0))
    return out
