# SPDX-License-Identifier: GPL-3.0-or-later
"""Exports against Blender, in three.js: three characters, five takes, five rates; clips as JSON, as GLB and as bone map.

Each is played in Node and in headless Chromium (maps by the vertex shader there), exact and, for clips, reduced at 0.1 mm. On keys joints
are compared with Blender's evaluated pose, between keys with the slerp of the neighbours; how far Blender's own way between keys is from
that is told for every cell. With "Match Blender" the punch at 24 frames a second, on bones in quaternions and in Euler angles, is compared
with Blender's evaluated pose at five places between any two frames. Clips of ten minutes are measured by their lengths.
``--report`` prints the whole table.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
from support.figures import Figure

from . import export as sizes

RATES = (Fraction(24), Fraction(30000, 1001), Fraction(30), Fraction(60), Fraction(120))
PUNCH = sizes.TAKES[2]
MINUTES = 10
_lines: list[str] = []


def measure() -> list[Figure]:
    """Every figure."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [*_grid(folder / "grid"), *_matched(folder / "match"), *_lengths(folder / "long")]


def report() -> list[str]:
    """The grid: millimetres on keys and between keys, the worse of Node and Chromium; Blender's own way between keys."""
    return _lines


def _grid(folder: Path) -> list[Figure]:
    from tests.blender import export_grid as g

    worst: dict[tuple[str, str, str], list[float]] = {}
    longest, gaps, played = 0.0, [], 0
    _lines.append(
        f"{'character':28}{'take':44}{'rate':>7}"
        + "".join(f"{kind:>18}" for kind in (*g.KINDS, "small JSON", "small GLB"))
        + f"{'Blender':>12}"
    )
    for character in sizes.CHARACTERS:
        for file in sizes.TAKES:
            cells: list[g.Case] = []
            own: dict[str, float] = {}
            for rate in RATES:
                obj, result = sizes._setting(file, character, rate, skinned=True)
                at, original = folder / f"{float(rate):g}", sizes.SHARED / "targets" / character
                more = result.action.name, at, original, float(rate), len(result.motion.times)
                cells += g.cases(obj, *more, label=f"{float(rate):.5g}")
                more = result.action.name, at / "small", original, float(rate), len(result.motion.times)
                small = g.cases(obj, *more, bound=1e-4, label=f"{float(rate):.5g}", kinds=("JSON", "GLB"))
                cells += small
                own[f"{float(rate):.5g}"] = _gap(obj, result.action.name)
            table: dict[str, list[str]] = {}
            both = zip(cells, g.in_node(cells), g.in_chromium(cells, folder, 900.0), strict=True)
            for one, node, chromium in both:
                kind = f"small {one.kind}" if one.folder.name == "small" else one.kind
                for where, found in (("Node", node), ("Chromium", chromium)):
                    worst.setdefault((kind, where, "keys"), []).append(found.keys)
                    worst.setdefault((kind, where, "between"), []).append(found.between)
                    longest, played = max(longest, found.duration), played + 1
                keys, between = max(node.keys, chromium.keys), max(node.between, chromium.between)
                table.setdefault(one.label, []).append(f"{1000 * keys:9.4f}{1000 * between:9.4f}")
            gaps += own.values()
            for label, row in table.items():
                _lines.append(f"{character:28}{Path(file).stem[:42]:44}{label:>7}{''.join(row)}{1000 * own[label]:12.3f}")
                print(_lines[-1], file=sys.stderr)
            shutil.rmtree(folder)
    out = [Figure("clips and maps played, in Node and Chromium together", played, "")]
    for (kind, where, what), found in worst.items():
        name = "on keys" if what == "keys" else "between keys, against the slerp of the neighbours"
        out.append(Figure(f"{kind} in {where}: joints {name}, worst", 1000 * max(found), "mm", 0.1))
    out.append(Figure("durations, worst", 1000 * longest, "ms", 0.1))
    out.append(Figure("Blender's own way between keys, without more keys, worst", 1000 * max(gaps), "mm"))
    return out


def _gap(obj, action: str) -> float:
    from mocap_addon.blender import node_clips, playing

    return node_clips.of_action(node_clips.stage(obj), playing.choose(obj, action), gap=True).gap or 0.0


def _matched(folder: Path) -> list[Figure]:
    """The punch at 24 frames a second with "Match Blender", on bones in quaternions and in Euler angles."""
    from mocap_addon.blender.export import ExportOptions
    from tests.blender import export_grid as g
    from tests.blender.export_helpers import shown

    worst: dict[tuple[str, str], float] = {}
    for character in sizes.CHARACTERS:
        for mode in ("QUATERNION", "XYZ"):
            obj, result = sizes._setting(PUNCH, character, Fraction(24), skinned=True, mode=mode)
            count = len(result.motion.times)
            frames = np.arange(0.0, count - 1 + 1e-6, 0.2)
            poses = shown(obj, 1.0 + frames)
            for small, bound in (("", None), ("small ", 1e-4)):
                options = ExportOptions(bound=bound, match=True)
                at = folder / f"{Path(character).stem}_{mode}_{'small' if bound else 'exact'}"
                kinds = g.KINDS if bound is None else ("JSON", "GLB")
                times, original = (frames / 24.0).tolist(), sizes.SHARED / "targets" / character
                some = g.written(obj, result.action.name, at, original, times, poses, (count - 1) / 24.0, 0, options, kinds=kinds)
                for one, node, chromium in zip(some, g.in_node(some), g.in_chromium(some, folder, 900.0), strict=True):
                    key = f"{small}{one.kind}", "Euler angles" if mode == "XYZ" else "quaternions"
                    worst[key] = max(worst.get(key, 0.0), node.between, chromium.between)
                print(character, mode, bound, worst, file=sys.stderr)
    return [
        Figure(f"{kind} with Match Blender, the punch at 24 in {mode}: joints anywhere, worst", 1000 * value, "mm", 0.1)
        for (kind, mode), value in worst.items()
    ]


def _lengths(folder: Path) -> list[Figure]:
    """Clips of ten minutes at every rate."""
    import bpy

    from mocap_addon.blender import scenes
    from mocap_addon.blender.export import ExportOptions
    from tests.blender import export_grid as g
    from tests.blender.export_helpers import act

    worst: dict[str, float] = {}
    for rate in RATES:
        obj, _ = sizes._setting(PUNCH, sizes.CHARACTERS[0], Fraction(24), skinned=True)
        scenes.set_rate(bpy.context.scene, rate)
        last = round(60 * MINUTES * rate)
        action = act(obj, "long", [1, 1 + last], {obj.data.bones[2].name: (10, 0, 0)})
        original = sizes.SHARED / "targets" / sizes.CHARACTERS[0]
        some = g.written(obj, action.name, folder / f"{float(rate):g}", original, [], [], float(last / rate), 0, ExportOptions(bound=1e-4))
        for one, found in zip(some, g.in_node(some), strict=True):
            worst[one.kind] = max(worst.get(one.kind, 0.0), found.duration)
        print("ten minutes", rate, worst, file=sys.stderr)
    return [Figure(f"{kind} of {MINUTES} minutes: duration, worst", 1000 * value, "ms", 0.1) for kind, value in worst.items()]
