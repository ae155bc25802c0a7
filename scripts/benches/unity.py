# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading Unity clips: against PyYAML's C loader on made-up clips of 5 MB, processor time, the best of three.

``long`` has twenty bones with hundreds of keys (a baked take), ``short`` thousands of curves with three keys each (the worst layout for
reading many keys at once).
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from support.figures import Figure  # noqa: E402

SIZE = 5_000_000
_HEAD = "%YAML 1.1\n%TAG !u! tag:unity3d.com,2011:\n--- !u!74 &7400000\nAnimationClip:\n  m_Name: made up\n  m_RotationCurves:\n"
_TAIL = "  m_FloatCurves: []\n  m_SampleRate: 30\n  m_AnimationClipSettings:\n    m_StartTime: 0\n    m_StopTime: 1\n"
_THIRDS = "{x: 0.33333334, y: 0.33333334, z: 0.33333334, w: 0.33333334}"

_OURS = """
import json, sys, time
from mocap_addon.formats import unity_clip
best = 1e9
for _ in range(3):
    start = time.process_time()
    clip, = unity_clip.read_clips(sys.argv[1])
    best = min(best, time.process_time() - start)
print(json.dumps([best, sum(len(c.keys.times) for c in clip.curves)]))
"""
_THEIRS = """
import json, sys, time, yaml
class Loader(yaml.CSafeLoader):
    pass
Loader.add_multi_constructor("tag:unity3d.com,2011:", lambda loader, suffix, node: loader.construct_mapping(node, deep=True))
best = 1e9
for _ in range(3):
    with open(sys.argv[1], "rb") as file:
        start = time.process_time()
        data = yaml.load(file, Loader)
        best = min(best, time.process_time() - start)
print(json.dumps([best, sum(len(c["curve"]["m_Curve"]) for c in data["AnimationClip"]["m_RotationCurves"])]))
"""


def measure() -> list[Figure]:
    """Seconds of both readers, and their ratio."""
    with tempfile.TemporaryDirectory(prefix="mocap-bench-") as folder:
        other = _environment(Path(folder) / "yaml")
        out: list[Figure] = []
        for name, keys, limit in (("long", 500, 20.0), ("short", 3, None)):
            path = Path(folder) / f"{name}.anim"
            path.write_text(made_up(keys))
            ours, count = _run(sys.executable, _OURS, path)
            theirs, same = _run(other, _THEIRS, path)
            assert count == same, "both read the same keys"
            megabytes = path.stat().st_size / 1e6
            out += [
                Figure(f"{name}: {megabytes:.1f} MB, {count} keys, ours", ours, "s"),
                Figure(f"{name}: PyYAML CSafeLoader", theirs, "s"),
                Figure(f"{name}: times faster", theirs / ours, "x", limit, "higher"),
            ]
    return out


def made_up(keys: int) -> str:
    """A clip of about ``SIZE`` bytes whose curves have ``keys`` keys."""
    rng = np.random.default_rng(0)
    parts, size, bone = [_HEAD], 0, 0
    while size < SIZE:
        lines = ["  - curve:\n      serializedVersion: 2\n      m_Curve:\n"]
        for k in range(keys):
            q = rng.normal(size=4)
            value, slope = _group(q / np.linalg.norm(q)), _group(rng.normal(size=4) * [1, 1e-5, 1, 1])
            lines.append(
                f"      - serializedVersion: 3\n        time: {np.float32(k / 30):.8g}\n        value: {value}\n        inSlope: {slope}\n"
                f"        outSlope: {slope}\n        tangentMode: 0\n        weightedMode: 0\n"
                f"        inWeight: {_THIRDS}\n        outWeight: {_THIRDS}\n"
            )
        lines.append(f"      m_PreInfinity: 2\n      m_PostInfinity: 2\n      m_RotationOrder: 4\n    path: Armature/Hips/bone{bone}\n")
        parts.append("".join(lines))
        size, bone = size + len(parts[-1]), bone + 1
    return "".join([*parts, _TAIL])


def _group(values: np.ndarray) -> str:
    return "{" + ", ".join(f"{c}: {np.float32(v):.8g}" for c, v in zip("xyzw", values, strict=True)) + "}"


def _environment(folder: Path) -> str:
    """A Python with PyYAML, for this measurement alone."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    subprocess.run([str(python), "-m", "pip", "install", "-q", "pyyaml"], check=True, timeout=300)
    return str(python)


def _run(python: str, code: str, path: Path) -> tuple[float, int]:
    done = subprocess.run([python, "-c", code, str(path)], cwd=ROOT, capture_output=True, text=True, timeout=600, check=True)
    seconds, count = json.loads(done.stdout)
    return seconds, count
