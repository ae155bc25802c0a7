# SPDX-License-Identifier: GPL-3.0-or-later
"""Exports: their size and their speed. Their truth is :mod:`.export_grid`.

Five takes at their own rates on one character's armature alone, clip by clip, against Blender's glTF exporter (as it is, and without its
optimisation) and against three.js JSON with all digits. Beside them glTF Transform and gltfpack on our own full file, with the errors
measured as ours are.
"""

from __future__ import annotations

import gc
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
from support.figures import Figure

ROOT = Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared" / "data"
NODE = Path(__file__).resolve().parent / "node"
TAKES = (
    "cmu/asf_02_01_walk.bvh",
    "cmu/asf_02_03_run_jog.bvh",
    "cmu/asf_02_05_punch_60fps.bvh",
    "bandai_nc/dataset-2_walk-turn-left_normal_001.bvh",
    "cmu/asf_01_01_playground_jumps_turn_30fps.bvh",
)
CHARACTERS = ("mh_ue_names_apose.glb", "mh_mixamo_names_scale001.glb", "mh_vrm1_tpose.vrm")
REPEATS = 3


def measure() -> list[Figure]:
    """Every figure."""
    with tempfile.TemporaryDirectory() as name:
        return _sizes_and_speed(Path(name))


def _setting(take_file: str, character: str, rate: Fraction | None, *, skinned: bool, mode: str = ""):
    """A character with a take on it; its bones in another rotation ``mode``."""
    import bpy

    from mocap_addon import formats
    from mocap_addon.blender import characters, scenes
    from mocap_addon.blender.job import retarget_onto

    bpy.ops.wm.read_factory_settings(use_empty=True)
    take = formats.read(SHARED / take_file)[0]
    scenes.set_rate(bpy.context.scene, rate or take.rate)
    obj = characters.bring_in(SHARED / "targets" / character).armature
    if not skinned:
        for child in list(obj.children):
            bpy.data.objects.remove(child)
    if mode:
        for pose in obj.pose.bones:
            pose.rotation_mode = mode
    result = retarget_onto(obj, take)
    scenes.set_frame_range(bpy.context.scene, *result.action.frame_range)
    return obj, result


def _sizes_and_speed(folder: Path) -> list[Figure]:
    import bpy

    from mocap_addon.blender import export
    from mocap_addon.blender.export import ExportOptions

    ours = {
        "full JSON": ExportOptions(("threejs",), bound=None, manifest=False, mesh=False),
        "full GLB": ExportOptions(("glb",), bound=None, mesh=False),
        "JSON at 0.1 mm": ExportOptions(("threejs",), bound=1e-4, manifest=False, mesh=False),
        "GLB at 0.1 mm": ExportOptions(("glb",), bound=1e-4, mesh=False),
        "JSON at 0.5 mm": ExportOptions(("threejs",), bound=5e-4, manifest=False, mesh=False),
        "GLB at 0.5 mm": ExportOptions(("glb",), bound=5e-4, mesh=False),
    }
    theirs = {"default": {}, "un-optimised": {"export_optimize_animation_size": False}}
    size: dict[str, int] = {}
    seconds: dict[str, float] = {}
    error: dict[str, float] = {}

    def add(name: str, path: Path, took: float = 0.0, off: float = 0.0) -> None:
        size[name] = size.get(name, 0) + path.stat().st_size
        seconds[name] = seconds.get(name, 0.0) + took
        error[name] = max(error.get(name, 0.0), off)

    for file in TAKES:
        obj, result = _setting(file, CHARACTERS[0], None, skinned=False)
        for name, options in theirs.items():
            path = folder / "blender.glb"
            add(f"Blender {name}", path, _timed(lambda p=path, o=options: bpy.ops.export_scene.gltf(filepath=str(p), **o), 1))
        for name, options in ours.items():
            reports = []
            wanted = obj, [result.action.name], folder, options
            took = _timed(lambda w=wanted, r=reports: r.append(export.export_actions(*w)), REPEATS)
            (found,) = reports[-1].files
            add(name, found.path, took, found.error)
        digits = folder / "digits.json"
        digits.write_text(_all_digits(obj, result.action.name))
        add("all digits", digits)
        _beside(obj, result.action.name, folder, add)
        print(file, {k: v for k, v in size.items()}, file=sys.stderr)
    out = [
        Figure("JSON at 0.1 mm: error, worst", 1000 * error["JSON at 0.1 mm"], "mm", 0.1),
        Figure("JSON at 0.1 mm: smaller than all digits", size["all digits"] / size["JSON at 0.1 mm"], "x", 2.4, "higher"),
        Figure("GLB at 0.1 mm: error, worst", 1000 * error["GLB at 0.1 mm"], "mm", 0.1),
        Figure("GLB at 0.1 mm: smaller than Blender's", size["Blender default"] / size["GLB at 0.1 mm"], "x", 2.2, "higher"),
        Figure(
            "GLB at 0.1 mm: smaller than Blender's un-optimised", size["Blender un-optimised"] / size["GLB at 0.1 mm"], "x", 4.5, "higher"
        ),
        Figure("JSON at 0.5 mm: smaller than all digits", size["all digits"] / size["JSON at 0.5 mm"], "x"),
        Figure("JSON at 0.5 mm: error, worst", 1000 * error["JSON at 0.5 mm"], "mm", 0.5),
        Figure("GLB at 0.5 mm: smaller than Blender's", size["Blender default"] / size["GLB at 0.5 mm"], "x"),
        Figure("GLB at 0.5 mm: error, worst", 1000 * error["GLB at 0.5 mm"], "mm", 0.5),
        Figure("JSON, all samples: faster than Blender's exporter", seconds["Blender default"] / seconds["full JSON"], "x", 15.0, "higher"),
        Figure("GLB, all samples: faster than Blender's exporter", seconds["Blender default"] / seconds["full GLB"], "x", 30.0, "higher"),
        Figure("JSON at 0.1 mm: faster than Blender's exporter", seconds["Blender default"] / seconds["JSON at 0.1 mm"], "x"),
        Figure("GLB at 0.1 mm: faster than Blender's exporter", seconds["Blender default"] / seconds["GLB at 0.1 mm"], "x"),
    ]
    for name in (k for k in size if k.startswith(("glTF Transform", "gltfpack"))):
        out.append(Figure(f"{name}: smaller than Blender's", size["Blender default"] / size[name], "x"))
        out.append(Figure(f"{name}: error, worst", 1000 * error[name], "mm"))
    return out


def _timed(work, repeats: int) -> float:
    """Seconds of processor time, the median: other work on the machine does not count."""
    took = []
    for _ in range(repeats):
        gc.collect()
        started = time.process_time()
        work()
        took.append(time.process_time() - started)
    return statistics.median(took)


def _all_digits(obj, action: str) -> str:
    """The same tracks with every sample, times and values as Python prints doubles, which is as JavaScript does."""
    from mocap_addon.blender import node_clips, playing

    on = node_clips.stage(obj)
    clip = node_clips.of_action(on, playing.choose(obj, action)).clip
    tracks = []
    for c in clip.channels:
        times = [0.0, clip.duration] if c.constant else c.times.tolist()
        values = np.repeat(c.values, 2, axis=0) if c.constant else c.values
        name = f"{on.tree.loader_names[c.node]}.{ {'rotation': 'quaternion', 'translation': 'position', 'scale': 'scale'}[c.path] }"
        kind = "quaternion" if c.path == "rotation" else "vector"
        tracks.append({"name": name, "type": kind, "times": times, "values": values.ravel().tolist()})
    return json.dumps([{"name": clip.name, "duration": clip.duration, "tracks": tracks}], separators=(",", ":"))


def _beside(obj, action: str, folder: Path, add) -> None:
    """Other programs on our full GLB; nothing where they cannot be had."""
    if not _ready():
        return
    from mocap_addon.blender import node_clips, playing
    from mocap_addon.formats import clip_read, clip_reduce

    on = node_clips.stage(obj)
    clip = node_clips.of_action(on, playing.choose(obj, action)).clip
    full = folder / f"{action}.glb"
    from mocap_addon.blender import export

    export.export_actions(obj, [action], folder, export.ExportOptions(("glb",), bound=None, mesh=False))
    pack = [str(NODE / "node_modules" / ".bin" / "gltfpack"), "-kn", "-noq", "-af", "0"]
    jobs = {
        "glTF Transform resample 1e-4": ["node", str(NODE / "other.mjs"), "resample", "1e-4"],
        "gltfpack -kn -noq -af 0": pack,
        "gltfpack -kn -noq -af 0 -ar 16 -at 24 -cc": [*pack, "-ar", "16", "-at", "24", "-cc"],
    }
    for name, words in jobs.items():
        out, plain = folder / "other.glb", folder / "plain.glb"
        more = ["-i", str(full), "-o", str(out)] if "gltfpack" in name else [str(full), str(out)]
        done = subprocess.run([*words, *more], capture_output=True, text=True, timeout=120, cwd=NODE)
        if done.returncode == 0:
            done = subprocess.run(
                ["node", str(NODE / "other.mjs"), "plain", str(out), str(plain)], capture_output=True, text=True, timeout=120
            )
        if done.returncode:
            print(name, done.stderr[-400:], file=sys.stderr)
            continue
        found = next(iter(clip_read.gltf(plain, on.tree).values()))
        have = {(c.node, c.path) for c in found}
        wanted = [c for c in found if (c.node, c.path) in {(k.node, k.path) for k in clip.channels}]
        wanted += [c for c in clip.channels if (c.node, c.path) not in have and c.constant]
        add(name, out, 0.0, clip_reduce.measure(clip, on.body, clip.channels, wanted).worst)


def _ready() -> bool:
    if shutil.which("node") is None or shutil.which("npm") is None:
        return False
    if (NODE / "node_modules" / "gltfpack").exists():
        return True
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=NODE, capture_output=True, text=True, timeout=300)
    return done.returncode == 0
