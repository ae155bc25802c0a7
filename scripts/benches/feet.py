# SPDX-License-Identifier: GPL-3.0-or-later
"""Feet on the ground: the metrics M1 to M13 on made-up scenes and real takes, and the speed of planting 10,000 frames.

The scenes' figures are the worst of each group, worked out from the new take's own joints and the exact ground (tests/feet/measure.py).
``scripts/bench feet --report`` prints every scene with every limit as well. Jerks are compared after the same 6 Hz low pass without delay.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from support.figures import Figure  # noqa: E402

from mocap_addon.feet.ground import HeightField  # noqa: E402
from mocap_addon.feet.plan import plan_feet  # noqa: E402
from mocap_addon.feet.result import Gates  # noqa: E402
from mocap_addon.feet.settings import FeetSettings  # noqa: E402
from mocap_addon.motion import quat  # noqa: E402
from tests.feet import measure as metrics  # noqa: E402
from tests.feet import scenes, walker  # noqa: E402
from tests.feet.limits import Row, rows  # noqa: E402

HILL = HeightField(lambda x, y: 0.12 * np.sin(1.3 * x + 0.3) + 0.1 * np.cos(1.1 * y))


def measure() -> list[Figure]:
    """Every figure."""
    figures: list[Figure] = []
    for group, members in _groups().items():
        worst: dict[str, Row] = {}
        for scene in members:
            for row in rows_of(scene):
                if row.name not in worst or _room(row) < _room(worst[row.name]):
                    worst[row.name] = row
        figures += [Figure(f"{group}: {r.name}", r.value, r.unit, r.limit, "lower" if r.lower else "higher") for r in worst.values()]
    return figures + _between_bakes() + _speed() + _in_blender()


def _in_blender() -> list[Figure]:
    """Whole bakes, where there is a Blender (feet_blender.py)."""
    try:
        import bpy  # noqa: F401
    except ImportError:
        return []
    from benches import feet_blender

    return feet_blender.measure()


def rows_of(scene: scenes.Scene) -> list[Row]:
    """The limits of one scene."""
    result = plan_feet(scene.source, scene.walk.feet, scene.ground)
    m = metrics.measure(scene.walk, scene.source, result, scene.height, carry=scene.carry, source_height=scene.source_height)
    return rows(m, noisy="noise" in scene.name, slides=m.M3_source > 1.0)


def _room(row: Row) -> float:
    """How far a row is from its limit; negative beyond it."""
    return (row.limit - row.value) if row.lower else (row.value - row.limit)


def _groups() -> dict[str, list[scenes.Scene]]:
    others = scenes.others()
    return {
        "slopes of 10 to 30 degrees, 8 headings": [scenes.slope(d, h) for d in (10, 20, 30) for h in range(0, 360, 45)],
        "slopes of 40 degrees, 8 headings": [scenes.slope(40, h) for h in range(0, 360, 45)],
        "stairs 17/28 cm up at 1.2 m/s": [scenes.stairs(0.17, 0.28, True)],
        "stairs 17/28 cm down at 1.2 m/s": [scenes.stairs(0.17, 0.28, False)],
        "flat, platforms, tunnel, storeys, box, jump": [s for s in others if s.name in _PLACES],
        "other bodies": [s for s in others if s.name not in _PLACES and "noise" not in s.name],
        "1 cm noise": [s for s in others if "noise" in s.name],
    }


_PLACES = ("clean", "skating", "box", "jump", "platform", "platform turning", "tunnel", "storeys")


def _between_bakes() -> list[Figure]:
    """M11 to M13, which compare bakes with each other."""
    out: list[Figure] = []
    fine = walker.sliding(scenes.plain(fps=240.0), lambda t: 0.3 * scenes.wandering(t))
    whole = plan_feet(fine.take, fine.feet, HILL).onto(fine.take)
    for fps in (24.0, 30.0, 60.0, 120.0):
        w = walker.sliding(scenes.plain(fps=fps), lambda t: 0.3 * scenes.wandering(t))
        new = plan_feet(w.take, w.feet, HILL).onto(w.take)
        step = round(240 / fps)
        n = min(new.frames, len(range(0, whole.frames, step)))
        ankles = np.linalg.norm(new.global_positions[:n, [4, 8]] - whole.global_positions[::step, [4, 8]][:n], axis=2)
        knees = np.abs(metrics.knee_angles(new)[:n] - metrics.knee_angles(whole)[::step][:n])
        out.append(Figure(f"M11 at {fps:g} against 240 Hz: ankles, 99 % of frames", float(np.percentile(ankles, 99)) * 1e3, "mm", 5.0))
        out.append(Figure(f"M11 at {fps:g} against 240 Hz: knees, 99 % of frames", float(np.percentile(knees, 99)), "deg", 2.0))
    clean = scenes.clean()
    new = plan_feet(clean.source, clean.walk.feet, None).onto(clean.source)
    far = np.linalg.norm(new.global_positions - clean.source.global_positions, axis=2).max() * 1e3
    turned = np.degrees(quat.angle(new.global_rotations, clean.source.global_rotations)).max()
    out += [Figure("M12 clean take: joints move", float(far), "mm", 1.0), Figure("M12 clean take: bones turn", float(turned), "deg", 0.1)]
    w = walker.sliding(scenes.plain(), scenes.wandering)
    a = plan_feet(w.take, w.feet, HILL).onto(w.take)
    b = plan_feet(w.take, w.feet, HILL, gates=Gates(start=1.0, end=4.5)).onto(w.take)
    inside = (w.take.times >= 2.0) & (w.take.times <= 3.5)
    off = np.abs(a.global_positions - b.global_positions)[inside].max() * 1e3
    return [*out, Figure("M13 a range against the whole, 1 s from its ends", float(off), "mm", 1.0)]


def _speed(frames: int = 10_000) -> list[Figure]:
    """Seconds for a long walk over a hill, per mode, and growth with length."""
    steps, last = walker.straight(int(frames / 15) - 3)
    w = walker.walk(steps, last, fps=30.0)
    out: list[Figure] = []
    for mode in ("plant", "als"):
        settings = FeetSettings(mode=mode)
        times = {n: min(_timed(w, n, settings) for _ in range(3)) for n in (w.take.frames // 10, w.take.frames)}
        short, long = times.values()
        out.append(Figure(f"planning {w.take.frames} frames over a hill, {mode}", long, "s"))
        out.append(Figure(f"time per frame, {w.take.frames} / {w.take.frames // 10} frames, {mode}", long / short / 10.0, "x", 1.2))
    return out


def _timed(w: walker.Walk, frames: int, settings: FeetSettings) -> float:
    take = w.take.block(0, frames)
    started = time.perf_counter()
    plan_feet(take, w.feet, HILL, settings)
    return time.perf_counter() - started


def report() -> list[str]:
    """Every scene with every limit, as lines of a table."""
    out: list[str] = []
    for scene in scenes.everything():
        for row in rows_of(scene):
            figure = Figure(f"{scene.name}: {row.name}", row.value, row.unit, row.limit, "lower" if row.lower else "higher")
            out.append(figure.line(72))
    return out


if __name__ == "__main__":
    found = measure()
    for line in report() if "--report" in sys.argv else []:
        print(line)
    for figure in found:
        print(figure.line(max(len(f.name) for f in found)))
    sys.exit(0 if all(f.holds for f in found) else 1)
