# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading MVNX: speed and memory on made-up recordings of 5 minutes at 240 Hz, each read in a fresh process.

Speeds are of the processor's time (user and system): one thread reads, and on a machine with nothing else to do the clock says the same.

``full`` files have every tag that MVN can export (about 8 KB a frame), ``plain`` ones orientation and position alone (1.7 KB), where the
numbers weigh most. The hour is twelve times the five minutes, which holds as far as the time per frame does not grow: that ratio is
a figure of its own, and ``python scripts/benches/mvnx.py 864000`` reads a whole hour.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from support.figures import Figure  # noqa: E402

RATE = 240
FIVE_MINUTES = 5 * 60 * RATE
HOUR = 60 * 60 * RATE

_SIDE = ("Shoulder", "UpperArm", "ForeArm", "Hand")
_LEG = ("UpperLeg", "LowerLeg", "Foot", "Toe")
_NAMES = (
    *("Pelvis", "L5", "L3", "T12", "T8", "Neck", "Head"),
    *(f"{s}{part}" for s in ("Right", "Left") for part in _SIDE),
    *(f"{s}{part}" for s in ("Right", "Left") for part in _LEG),
)
_FULL: tuple[tuple[str, int], ...] = (
    ("velocity", 69),
    ("acceleration", 69),
    ("angularVelocity", 69),
    ("angularAcceleration", 69),
    ("footContacts", 4),
    ("sensorFreeAcceleration", 51),
    ("sensorMagneticField", 51),
    ("sensorOrientation", 68),
    ("jointAngle", 66),
    ("jointAngleXZY", 66),
    ("jointAngleErgo", 12),
    ("centerOfMass", 9),
)
_READ = """
import json, resource, sys, time
from mocap_addon.formats import mvnx
from mocap_addon.motion import kinematics
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start, wall = time.process_time(), time.perf_counter()
take, = mvnx.read(sys.argv[1])
seconds, wall = time.process_time() - start, time.perf_counter() - wall
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
arrays = take.local_rotations.nbytes + take.local_translations.nbytes + sum(c.nbytes for c in take.curves.values()) + take.times.nbytes
memory = (peak - before) * 1024 / arrays
print(json.dumps({"seconds": seconds, "wall": wall, "memory": memory, "peak_mb": peak / 1024, "frames": take.frames}))
"""


def made_up(path: Path, frames: int, full: bool) -> Path:
    """A recording with the right tags, sizes and time stamps; its motion is noise, 240 frames long, over and over."""
    rng = np.random.default_rng(1)
    bodies = [_body(rng, full) for _ in range(RATE)]
    with path.open("w", newline="\n") as file:
        file.write('<?xml version="1.0" encoding="UTF-8"?>\n<mvnx xmlns="http://www.xsens.com/mvn/mvnx" version="4">\n')
        file.write(f'<subject label="Made up" frameRate="{RATE}" segmentCount="23">\n<segments>\n')
        for i, name in enumerate(_NAMES):
            file.write(f'<segment label="{name}" id="{i + 1}"/>\n')
        file.write('</segments>\n<frames segmentCount="23">\n')
        for i in range(frames):
            ms = i * 1000 // RATE
            stamp = f'time="{ms}" index="{i}" tc="{ms // 3600000:02d}:{ms // 60000 % 60:02d}:{ms // 1000 % 60:02d}:{i % RATE}"'
            file.write(f'\t\t\t<frame {stamp} ms="{1542082631842 + ms}" type="normal">\n{bodies[i % RATE]}\t\t\t</frame>\n')
        file.write("</frames>\n</subject>\n</mvnx>\n")
    return path


def _body(rng: np.random.Generator, full: bool) -> str:
    q = rng.normal(size=(23, 4))
    tags = [("orientation", (q / np.linalg.norm(q, axis=1, keepdims=True)).ravel()), ("position", rng.normal(size=69))]
    tags += [(tag, rng.normal(size=count) * 3.0) for tag, count in _FULL] if full else []
    return "".join(f"\t\t\t\t<{tag}>{' '.join(f'{v:.6f}' for v in values)}</{tag}>\n" for tag, values in tags)


def read_fresh(path: Path) -> dict[str, float]:
    """Seconds, memory above the process before in multiples of the take's arrays, peak and frames, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", _READ, str(path)], capture_output=True, text=True, cwd=ROOT, check=True, timeout=1200)
    return json.loads(done.stdout.splitlines()[-1])


def measure(frames: int = FIVE_MINUTES, repeats: int = 3) -> list[Figure]:
    """Every figure of the MVNX benchmark."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        for kind in ("full", "plain"):
            path = made_up(Path(name) / "take.mvnx", frames, kind == "full")
            megabytes = path.stat().st_size / 1e6
            runs = [read_fresh(path) for _ in range(repeats)]
            best = min(run["seconds"] for run in runs)
            short = made_up(Path(name) / "short.mvnx", max(frames // 10, 1), kind == "full")
            brief = min(read_fresh(short)["seconds"] for _ in range(repeats)) / max(frames // 10, 1)
            wall = min(run["wall"] for run in runs)
            figures += [
                Figure(f"{kind}: speed ({megabytes:.0f} MB, best of {repeats})", megabytes / best, "MB/s", 30.0, "higher"),
                Figure(f"{kind}: speed by the clock, beside whatever else ran", megabytes / wall, "MB/s"),
                Figure(f"{kind}: frames a second", frames / best, "1/s"),
                Figure(f"{kind}: memory, of the take's arrays", max(run["memory"] for run in runs), "x", 3.0),
                Figure(f"{kind}: time a frame, of that in a tenth of the frames", best / frames / brief, "x", 1.3),
                Figure(f"{kind}: an hour at 240 Hz would take", best * HOUR / frames, "s"),
                Figure(f"{kind}: peak of the process", max(run["peak_mb"] for run in runs), "MB"),
            ]
    return figures


if __name__ == "__main__":
    found = measure(int(sys.argv[1]) if len(sys.argv) > 1 else FIVE_MINUTES, 1 if len(sys.argv) > 1 else 3)
    for figure in found:
        print(figure.line(max(len(f.name) for f in found)))
    sys.exit(0 if all(f.holds for f in found) else 1)
