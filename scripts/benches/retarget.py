# SPDX-License-Identifier: GPL-3.0-or-later
"""Retargeting: file to action, against the bare writing of the same keys and against Blender's own way.

All ratios are of times taken in one process, alternating, medians. "Bare writing" is what no add-on can avoid: new curves, ``add``,
``foreach_set`` of co and interpolation, ``update``, with ready arrays. "Blender's own way" is its BVH importer, Copy Rotation constraints
in world space and ``nla.bake``: what a person does without this add-on.
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
from pathlib import Path

from support.figures import Figure

ROOT = Path(__file__).resolve().parents[2]
WALK = ROOT / "demo" / "takes" / "cmu_02_01_walk.bvh"
CHARACTER = ROOT / "mocap_addon" / "demo" / "character.glb"


def long_take(frames: int, folder: Path) -> Path:
    """The demo walk repeated to ``frames`` rows."""
    head, rows = WALK.read_text().split("Frames:")
    lines = rows.splitlines()[2:]
    lines = [line for line in lines if line.strip()]
    frame_time = rows.splitlines()[1]
    path = folder / f"walk_{frames}.bvh"
    with path.open("w") as out:
        out.write(f"{head}Frames: {frames}\n{frame_time}\n")
        for i in range(frames):
            out.write(lines[i % len(lines)] + "\n")
    return path


def measure(sizes: tuple[int, ...] = (500, 2000), long: int = 100_000, processes: int = 5) -> list[Figure]:
    """Every figure of the retargeting benchmark."""
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for frames in sizes:
            figures += _against_bare_writing(long_take(frames, folder), frames)
        for frames in sizes:
            figures += _against_blender(long_take(frames, folder), frames)
        if long:
            figures += _long_takes(folder, long, processes)
    return figures


def _load(skinned: bool = True):
    import bpy

    from mocap_addon import formats
    from mocap_addon.blender import characters, scenes

    bpy.ops.wm.read_factory_settings(use_empty=True)
    scenes.set_rate(bpy.context.scene, formats.read(WALK)[0].rate)
    obj = characters.bring_in(CHARACTER).armature
    if not skinned:
        for child in list(obj.children):
            bpy.data.objects.remove(child)
    return obj


def _file_to_action(obj, path: Path):
    from mocap_addon import formats
    from mocap_addon.blender.job import retarget_onto

    return retarget_onto(obj, formats.read(path)[0])


def _bare_writing(obj, motion, target) -> float:
    """Seconds to write the same number of curves and keys with arrays that are ready."""
    import bpy
    import numpy as np

    from mocap_addon.blender import compat

    frames = len(motion.times)
    paths = []
    for bone in motion.moving:
        paths += [(f'pose.bones["{target.skeleton.names[bone]}"].location', i, target.skeleton.names[bone]) for i in range(3)]
    for bone in motion.bones:
        paths += [(f'pose.bones["{target.skeleton.names[bone]}"].rotation_quaternion', i, target.skeleton.names[bone]) for i in range(4)]
    co = np.zeros(2 * frames, dtype=np.float32)
    co[::2] = np.arange(frames)
    linear = np.full(frames, bpy.types.Keyframe.bl_rna.properties["interpolation"].enum_items["LINEAR"].value, dtype=np.int32)
    started = time.perf_counter()
    action, _slot, bag = compat.new_action("bare")
    for path, index, group in paths:
        curve = compat.new_curve(bag, path, index, group)
        points = curve.keyframe_points
        points.add(frames)
        points.foreach_set("co", co)
        points.foreach_set("interpolation", linear)
        curve.update()
    seconds = time.perf_counter() - started
    bpy.data.actions.remove(action)
    return seconds


def _against_bare_writing(path: Path, frames: int, repeats: int = 15) -> list[Figure]:
    import bpy

    obj = _load()
    result = _file_to_action(obj, path)  # warm
    ours: list[float] = []
    bare: list[float] = []
    parts: dict[str, list[float]] = {}
    for _ in range(repeats):
        gc.collect()
        started = time.perf_counter()
        result = _file_to_action(obj, path)
        ours.append(time.perf_counter() - started)
        for key, value in result.timing.items():
            parts.setdefault(key, []).append(value)
        bare.append(_bare_writing(obj, result.motion, result.target))
        bpy.data.actions.remove(result.action)
    ratio = statistics.median(ours) / statistics.median(bare)
    figures = [
        Figure(f"file to action / bare writing, {frames} frames", ratio, "x", 3.5 if frames >= 2000 else 4.0),
        Figure(f"file to action, {frames} frames", 1e3 * statistics.median(ours), "ms"),
        Figure(f"bare writing, {frames} frames", 1e3 * statistics.median(bare), "ms"),
    ]
    return figures + [Figure(f"  of which {key}, {frames} frames", 1e3 * statistics.median(v), "ms") for key, v in parts.items()]


def _blenders_own_way(obj, path: Path, rows) -> float:
    import bpy

    scene = bpy.context.scene
    started = time.perf_counter()
    before = set(bpy.data.objects)
    bpy.ops.import_anim.bvh(filepath=str(path), rotate_mode="QUATERNION", frame_start=1)
    source = next(o for o in bpy.data.objects if o not in before)
    for row in rows:
        constraint = obj.pose.bones[row.target].constraints.new("COPY_ROTATION")
        constraint.target, constraint.subtarget = source, row.source[0]
    bpy.ops.object.select_all(action="DESELECT")
    obj.select_set(True)
    bpy.context.view_layer.objects.active = obj
    scene.frame_end = int(source.animation_data.action.frame_range[1])
    bpy.ops.nla.bake(
        frame_start=1, frame_end=scene.frame_end, only_selected=False, visual_keying=True, clear_constraints=True, bake_types={"POSE"}
    )
    seconds = time.perf_counter() - started
    bpy.data.objects.remove(source)
    return seconds


def _against_blender(path: Path, frames: int) -> list[Figure]:
    figures: list[Figure] = []
    for skinned in (True, False):
        obj = _load(skinned)
        rows = _file_to_action(obj, path).table.rows
        ours: list[float] = []
        for _ in range(7):
            started = time.perf_counter()
            _file_to_action(obj, path)
            ours.append(time.perf_counter() - started)
        theirs = _blenders_own_way(obj, path, rows)
        limit = (30.0 if frames >= 2000 else 20.0) if skinned else 12.0
        what = "skinned character" if skinned else "bare rig"
        figures.append(
            Figure(f"Blender's own way / file to action, {what}, {frames} frames", theirs / statistics.median(ours), "x", limit, "higher")
        )
        figures.append(Figure(f"Blender's own way, {what}, {frames} frames", theirs, "s"))
    return figures


def _long_takes(folder: Path, long: int, processes: int) -> list[Figure]:
    """Time per frame and memory in fresh processes."""
    short_path, long_path = long_take(2000, folder), long_take(long, folder)
    per_frame: dict[int, list[float]] = {2000: [], long: []}
    memory: list[float] = []
    alone = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "scripts")))}
    for _ in range(processes):
        for frames, path in ((2000, short_path), (long, long_path)):
            out = subprocess.run(
                [sys.executable, __file__, str(path)], capture_output=True, text=True, check=True, env=alone, timeout=600, cwd=ROOT
            )
            found = json.loads(out.stdout.strip().splitlines()[-1])
            per_frame[frames].append(found["seconds"] / frames)
            if frames == long:
                memory.append(found["above"])
    short, large = (statistics.median(per_frame[n]) for n in (2000, long))
    return [
        Figure(f"time per frame, {long} / 2000 frames", large / short, "x", 1.4),
        Figure(f"file to action, {long} frames", large * long, "s"),
        Figure(f"peak memory above take and action / take's arrays, {long} frames", statistics.median(memory), "x", 2.5),
    ]


def _status(key: str) -> int:
    """Bytes of VmRSS or VmHWM."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    return 0


def _alone(path: Path) -> None:
    """One file to one action in this process; prints seconds and peak memory above take and action, as a share of the take's arrays."""
    import ctypes

    from mocap_addon import formats
    from mocap_addon.blender.job import retarget_onto

    obj = _load()
    result = _file_to_action(obj, WALK)  # code loaded, caches warm, as in a second take of a session
    del result
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the high-water mark starts here
    started = time.perf_counter()
    take = formats.read(path)[0]
    result = retarget_onto(obj, take)
    seconds = time.perf_counter() - started
    peak = _status("VmHWM")
    arrays = take.local_rotations.nbytes + take.local_translations.nbytes
    del result
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    held = _status("VmRSS")  # take and action (and Blender) are what is left
    print(json.dumps({"seconds": seconds, "above": (peak - held) / arrays}))


if __name__ == "__main__":
    _alone(Path(sys.argv[1]))
