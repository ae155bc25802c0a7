# SPDX-License-Identifier: GPL-3.0-or-later
"""Ten takes onto one character in one call, against one.

"First" is what a person waits for: the first call of a session, file reading, matching and table included, each in a process of its own.
"Again" is the same call in a session that has made such actions already, alternating, medians of the processor's time. Nothing is thrown
away between the calls, as nothing is in a session: one take and ten both write into memory that is new. What ten takes share then is
reading the character, the table with its text, and the heads of their files; the parts of a take that remain (its numbers read, carried
over, and written: 93 of 100) each need ten times, and most of writing is inside Blender, one key at a time. Memory is what numpy holds at
the worst moment, as Python counts it.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

from benches.retarget import ROOT, _load, long_take
from support.figures import Figure

TAKES = 10


def measure(sizes: tuple[int, ...] = (500, 2000), processes: int = 5) -> list[Figure]:
    """Every figure of this benchmark."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        for frames in sizes:
            path = long_take(frames, Path(name))
            found = {count: [_process(path, count) for _ in range(processes)] for count in (1, TAKES)}
            first = {count: statistics.median(run["first"] for run in runs) for count, runs in found.items()}
            again = statistics.median(run["again"] for run in found[TAKES])
            memory = statistics.median(run["memory"] for run in found[TAKES])
            figures += [
                Figure(f"{TAKES} takes / 1 take, first, {frames} frames", first[TAKES] / first[1], "x", 8.0),
                Figure(f"{TAKES} takes / 1 take, again, {frames} frames", again, "x", 9.0),
                Figure(f"1 take, first, {frames} frames", 1e3 * first[1], "ms"),
                Figure(f"{TAKES} takes, first, {frames} frames", 1e3 * first[TAKES], "ms"),
                Figure(f"memory of {TAKES} takes / 1 take, {frames} frames", memory, "x", 1.5),
            ]
    return figures


def _process(path: Path, count: int) -> dict[str, float]:
    alone = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "scripts")))}
    command = [sys.executable, __file__, str(path), str(count)]
    out = subprocess.run(command, capture_output=True, text=True, check=True, env=alone, timeout=600, cwd=ROOT)
    return json.loads(out.stdout.strip().splitlines()[-1])


def _alone(path: Path, count: int) -> None:
    """Seconds of the first call with ``count`` takes; then the ratio of later calls, and of memory."""
    from mocap_addon import formats
    from mocap_addon.blender.batch import retarget_all

    obj = _load()

    def takes(wanted: int) -> Iterator[object]:
        return (formats.read(path)[0] for _ in range(wanted))

    def call(wanted: int, clock: Callable[[], float] = time.process_time) -> float:
        gc.collect()
        started = clock()
        retarget_all(obj, takes(wanted))
        return clock() - started

    def peak(wanted: int) -> int:
        tracemalloc.start()
        try:
            call(wanted)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    found = {"first": call(count, time.perf_counter)}
    if count > 1:
        times = [(call(1), call(count)) for _ in range(3)]
        found["again"] = statistics.median(t for _, t in times) / statistics.median(t for t, _ in times)
        found["memory"] = peak(count) / peak(1)
    print(json.dumps(found))


if __name__ == "__main__":
    _alone(Path(sys.argv[1]), int(sys.argv[2]))
