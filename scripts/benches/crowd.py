# SPDX-License-Identifier: GPL-3.0-or-later
"""Crowds by transform map in Chromium, with WebGL in software: a thousand instances of a body of 480 vertices against a mixer each.

Half of them are in the middle of a cross-fade. The map's own figures (size, error of half precision) are of the same four clips.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from support.figures import Figure  # noqa: E402


def measure() -> list[Figure]:
    """Distances from where mixers put the vertices, draw calls, JavaScript a frame."""
    from tests.formats import test_map_player as player

    with tempfile.TemporaryDirectory(prefix="mocap-bench-") as name:
        folder = Path(name)
        player.written(folder)
        found = player.played(folder, "count=1000&vertices=480")
        single = (folder / "hero.map.bin").stat().st_size
        player.written(folder, precision="float16")
        half = json.loads((folder / "hero.map.json").read_text())
        halved = (folder / "hero.map.bin").stat().st_size
    script = max(found["crowdMs"], 0.005)  # the clock of a page counts in steps of 0.1 ms over 200 frames at best
    return [
        Figure("1000 instances: farthest vertex", found["worst"], "mm", 0.5),
        Figure("1000 instances, mid-fade: farthest vertex", found["worstFading"], "mm", 0.5),
        Figure("draw calls a mesh", found["calls"] / found["meshes"], "", 1.0),
        Figure("JavaScript a frame: 1000 mixers", found["mixersMs"], "ms"),
        Figure("JavaScript a frame: the crowd", found["crowdMs"], "ms"),
        Figure("times less JavaScript (the crowd counted as 0.005 ms at least)", found["mixersMs"] / script, "x", 10.0, "higher"),
        Figure("map in float32", single / 1e6, "MB"),
        Figure("map in float16", halved / 1e6, "MB"),
        Figure("float16: largest error", half["error_mm"], "mm"),
    ]
