# SPDX-License-Identifier: GPL-3.0-or-later
"""Starting: what ``scripts/mocap`` costs before a verb begins, beside the import of Blender's module that some verbs need anyway.

Everything but that import (the shell script, the check of the environment, Python, the command line) has to fit into half a second.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from support.figures import Figure

ROOT = Path(__file__).resolve().parents[2]
WALK = ROOT / "mocap_addon" / "demo" / "zombieWalk1.bvh"


def seconds(*command: str | Path) -> float:
    """Wall time of a command."""
    started = time.perf_counter()
    subprocess.run([str(c) for c in command], check=True, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return time.perf_counter() - started


def measure(repeats: int = 9) -> list[Figure]:
    """Medians of alternating runs."""
    mocap = ROOT / "scripts" / "mocap"
    seconds(mocap, "--version")  # sets up what is missing
    starts, imports, infos = [], [], []
    for _ in range(repeats):
        starts.append(seconds(mocap, "--version"))
        imports.append(seconds(sys.executable, "-c", "import bpy"))
        infos.append(seconds(mocap, "info", WALK))
    return [
        Figure("start of mocap above that of Blender's module", statistics.median(starts), "s", 0.5),
        Figure("python -c 'import bpy'", statistics.median(imports), "s"),
        Figure("mocap info of a short take, whole command", statistics.median(infos), "s"),
    ]
