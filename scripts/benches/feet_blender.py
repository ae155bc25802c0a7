# SPDX-License-Identifier: GPL-3.0-or-later
"""Feet planted on a hill: against what no add-on can avoid, and against a person's way.

"Its rays and keys" is the bare work in Blender: every ray that the bake casts, once, into arrays of distance, face and normal, and the
bare writing of as many curves and keys as the bake writes. "Blender's own way" is a target for each foot that is put onto the ground on
each frame by a ray and keyed, inverse kinematics on the legs, and ``nla.bake``. Times are taken in one process, alternating, medians;
against the bare work they are processor time, so that what else the machine does is not counted.

``scripts/bench feet`` measures quality, and the planting by itself without Blender.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from support.figures import Figure

ROOT = Path(__file__).resolve().parents[2]
WALK = ROOT / "demo" / "takes" / "cmu_02_01_walk.bvh"
CHARACTER = ROOT / "mocap_addon" / "demo" / "character.glb"
FRAMES = 10_000
LENGTH, WIDTH = 560.0, 24.0
"""Metres of the hill along the walk and across."""


def measure(frames: int = FRAMES) -> list[Figure]:
    """Every figure of speed and memory."""
    figures = _against_bare(frames)
    figures += _against_blender(frames)
    figures += _linear(frames)
    figures += _platform(frames)
    return figures + _memory()


# --- scenes --------------------------------------------------------------------------------------------------------------------------


def walking(frames: int, skinned: bool = True):
    """A character that walks on and on, ``frames`` keys, as retargeted."""
    import bpy
    import numpy as np

    from mocap_addon import formats
    from mocap_addon.blender import characters
    from mocap_addon.blender.job import JobOptions, retarget_onto

    bpy.ops.wm.read_factory_settings(use_empty=True)
    scene = bpy.context.scene
    scene.render.fps = 30
    obj = characters.bring_in(CHARACTER).armature
    if not skinned:
        for child in list(obj.children):
            bpy.data.objects.remove(child)
    take = formats.read(WALK)[0]
    # one stride that ends as it begins, but for the way: the two samples whose poses are nearest
    q = take.local_rotations
    start = 20
    away = np.abs(q[start] - q[start + 60 :]).sum(axis=(1, 2))
    end = start + 60 + int(np.argmin(away[:120]))
    step = take.local_translations[end, 0] - take.local_translations[start, 0]
    count = int(np.ceil(frames * float(take.rate) / 30.0)) + 8
    index = np.arange(count)
    laps, inside = np.divmod(index, end - start)
    moved = take.local_translations[start + inside].copy()
    moved[:, 0, :2] += laps[:, None] * step[:2]
    moved[:, 0, :2] -= moved[0, 0, :2]
    long = replace(
        take,
        times=index / float(take.rate),
        local_rotations=q[start + inside],
        local_translations=moved,
        curves={},
        valid=None,
    )
    retarget_onto(obj, long.resampled(__import__("fractions").Fraction(30)).block(0, frames), options=JobOptions(name="walk"))
    return obj


def hill(triangles: int = 100_000, name: str = "hill"):
    """A rolling grid under the whole walk."""
    import bpy
    import numpy as np

    across = max(2, round((triangles / 2 * WIDTH / LENGTH) ** 0.5))
    along = max(2, round(triangles / 2 / across))
    y, x = np.meshgrid(np.linspace(-LENGTH, LENGTH / 20, along + 1), np.linspace(-WIDTH / 2, WIDTH / 2, across + 1), indexing="ij")
    z = 0.4 * np.sin(0.35 * y) + 0.2 * np.cos(0.5 * x + 0.2 * y)
    vertices = np.stack([x, y, z], axis=-1).reshape(-1, 3).astype(np.float32)
    i = (np.arange(along)[:, None] * (across + 1) + np.arange(across)[None]).reshape(-1)
    quads = np.stack([i, i + 1, i + across + 2, i + across + 1], axis=1)
    corners = np.concatenate([quads[:, [0, 1, 2]], quads[:, [0, 2, 3]]]).astype(np.int32)
    mesh = bpy.data.meshes.new(name)
    mesh.vertices.add(len(vertices))
    mesh.vertices.foreach_set("co", vertices.reshape(-1))
    mesh.loops.add(corners.size)
    mesh.loops.foreach_set("vertex_index", corners.reshape(-1))
    mesh.polygons.add(len(corners))
    mesh.polygons.foreach_set("loop_start", np.arange(0, corners.size, 3, dtype=np.int32))
    mesh.update(calc_edges=True)
    obj = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(obj)
    return obj


def options(ground):
    from mocap_addon.blender.feet_recipe import FeetOptions, GroundChoice

    return FeetOptions(ground=GroundChoice.of(ground))


# --- figures -------------------------------------------------------------------------------------------------------------------------


class _Counted:
    """A ground that remembers what it was asked."""

    def __init__(self, ground) -> None:
        self.ground, self.asked = ground, []
        self.names = ground.names

    def cast(self, origins, directions, lengths, times, limit=4, enough=None):
        self.asked.append((origins.copy(), directions.copy(), lengths.copy()))
        return self.ground.cast(origins, directions, lengths, times, limit, enough)

    def spaces(self, objects, times):
        return self.ground.spaces(objects, times)


def _asked(obj, ground):
    """Every ray of a bake, and the tree that they are cast into."""
    from mocap_addon.blender import feet
    from mocap_addon.blender.ground import scene_ground

    with scene_ground([ground], character=obj, frame=1.0) as found:
        counted = _Counted(found)
        baked = feet.bake_feet(obj, options(ground), ground=counted)
        return baked, counted.asked, found._own[0].surface


def _bare_rays(solid, asked) -> float:
    import numpy as np

    started = time.process_time()
    for origins, directions, lengths in asked:
        cast, far, face, side = solid.tree.ray_cast, [], [], []
        for origin, direction, length in zip(origins.tolist(), directions.tolist(), lengths.tolist(), strict=True):
            _, normal, index, distance = cast(origin, direction, length)
            far.append(distance)
            face.append(index)
            side.append((0.0, 0.0, 0.0) if normal is None else normal.to_tuple())
        np.array(far, dtype=np.float64)
        np.array(face, dtype=np.float64)
        np.array(side, dtype=np.float64)
    return time.process_time() - started


def _bare_keys(frames: int, curves: int) -> float:
    import bpy
    import numpy as np

    from mocap_addon.blender import compat

    co = np.zeros(2 * frames, dtype=np.float32)
    co[::2] = np.arange(frames)
    linear = np.full(frames, bpy.types.Keyframe.bl_rna.properties["interpolation"].enum_items["LINEAR"].value, dtype=np.int32)
    started = time.process_time()
    action, _slot, bag = compat.new_action("bare")
    for k in range(curves):
        curve = compat.new_curve(bag, f'pose.bones["{k}"].location', 0, str(k))
        points = curve.keyframe_points
        points.add(frames)
        points.foreach_set("co", co)
        points.foreach_set("interpolation", linear)
        curve.update()
    seconds = time.process_time() - started
    bpy.data.actions.remove(action)
    return seconds


def _baked(obj, ground, source, clock=time.process_time) -> tuple[float, object]:
    """Seconds of a whole bake from the action ``source``."""
    import bpy

    from mocap_addon.blender import compat, feet

    compat.assign(obj.animation_data, source, compat.slots(source)[0])
    gc.collect()
    started = clock()
    done = feet.bake_feet(obj, options(ground))
    seconds = clock() - started
    compat.assign(obj.animation_data, source, compat.slots(source)[0])
    bpy.data.actions.remove(done.action)
    return seconds, done


def _against_bare(frames: int, repeats: int = 5) -> list[Figure]:
    obj, ground = walking(frames), hill()
    source = obj.animation_data.action
    baked, asked, solid = _asked(obj, ground)
    rays = sum(len(one[0]) for one in asked)
    curves = baked.curves
    ours, bare, parts = [], [], {}
    for _ in range(repeats):
        seconds, done = _baked(obj, ground, source)
        ours.append(seconds)
        for key, value in done.timing.items():
            parts.setdefault(key, []).append(value)
        bare.append((_bare_rays(solid, asked), _bare_keys(frames, curves)))
    whole = statistics.median(a + b for a, b in bare)
    return [
        Figure(f"bake / its rays and keys, {frames} frames", statistics.median(ours) / whole, "x", 3.0),
        Figure(f"bake, {frames} frames", 1e3 * statistics.median(ours), "ms"),
        *(Figure(f"  of which {key}", 1e3 * statistics.median(v), "ms") for key, v in parts.items()),
        Figure("its rays", 1e3 * statistics.median(a for a, _ in bare), "ms"),
        Figure("its keys", 1e3 * statistics.median(b for _, b in bare), "ms"),
        Figure("rays a frame", rays / frames, ""),
    ]


def _blenders_own_way(obj, ground, frames: int) -> float:
    """A target for each foot that is keyed frame by frame, inverse kinematics, ``nla.bake``."""
    import bpy
    from mathutils import Vector

    from mocap_addon import rig
    from mocap_addon.blender import armature

    target = armature.read(obj)
    roles = rig.match(target.skeleton)
    names = target.skeleton.names
    feet = [(names[roles.one(f"{s}Foot")], names[roles.last(f"{s}LowerLeg")]) for s in ("left", "right")]
    scene = bpy.context.scene
    started = time.perf_counter()
    marks = []
    for foot, _ in feet:
        mark = bpy.data.objects.new(f"target {foot}", None)
        scene.collection.objects.link(mark)
        marks.append(mark)
    for frame in range(1, frames + 1):
        scene.frame_set(frame)
        for (foot, _), mark in zip(feet, marks, strict=True):
            at = obj.matrix_world @ obj.pose.bones[foot].head
            hit, place, _normal, _index = ground.ray_cast(at + Vector((0, 0, 0.5)), Vector((0, 0, -1)), distance=1.0)
            mark.location = Vector((at.x, at.y, (place.z if hit else 0.0) + at.z))
            mark.keyframe_insert("location", frame=frame)
    for (_, shin), mark in zip(feet, marks, strict=True):
        constraint = obj.pose.bones[shin].constraints.new("IK")
        constraint.target, constraint.chain_count = mark, 2
    bpy.ops.object.select_all(action="DESELECT")
    obj.select_set(True)
    bpy.context.view_layer.objects.active = obj
    bpy.ops.nla.bake(frame_start=1, frame_end=frames, only_selected=False, visual_keying=True, clear_constraints=True, bake_types={"POSE"})
    return time.perf_counter() - started


def _against_blender(frames: int, theirs: int = 300) -> list[Figure]:
    figures: list[Figure] = []
    for skinned in (False, True):
        obj, ground = walking(frames, skinned), hill()
        source = obj.animation_data.action
        ours = statistics.median(_baked(obj, ground, source, time.perf_counter)[0] for _ in range(3)) / frames
        own = _blenders_own_way(obj, ground, theirs) / theirs
        what = "skinned character" if skinned else "bare rig"
        figures.append(Figure(f"Blender's own way / bake, a frame, {what}", own / ours, "x", 15.0 if skinned else 10.0, "higher"))
    return figures


def _linear(frames: int) -> list[Figure]:
    per_frame = {}
    for count in (frames // 5, frames):
        obj, ground = walking(count, skinned=False), hill()
        source = obj.animation_data.action
        per_frame[count] = min(_baked(obj, ground, source)[0] for _ in range(5)) / count
    return [Figure(f"time a frame, {frames} / {frames // 5} frames", per_frame[frames] / per_frame[frames // 5], "x", 1.25)]


def _platform(frames: int) -> list[Figure]:
    """The same ground standing still, and carried along by keys."""
    from mocap_addon.blender import compat

    obj, ground = walking(frames, skinned=False), hill()
    source = obj.animation_data.action
    still, moving = [], []
    for _ in range(5):
        ground.animation_data_clear()
        ground.location = (0.0, 0.0, 0.0)
        still.append(_baked(obj, ground, source)[0])
        for frame, x in ((1, 0.0), (frames, 2.0)):
            ground.location.x = x
            ground.keyframe_insert("location", frame=frame)
        for curve in compat.all_curves(ground.animation_data.action):
            for key in curve.keyframe_points:
                key.interpolation = "LINEAR"
        moving.append(_baked(obj, ground, source)[0])
    return [Figure(f"moving platform / static one, {frames} frames", statistics.median(moving) / statistics.median(still), "x", 1.5)]


def _memory() -> list[Figure]:
    """Peak memory of a process that bakes on 2 million triangles."""
    alone = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "scripts")))}
    out = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=True, env=alone, timeout=600, cwd=ROOT)
    found = json.loads(out.stdout.strip().splitlines()[-1])
    return [
        Figure("peak memory, 2 million triangles", found["peak"] / 1e9, "GB", 2.0),
        Figure("bake on 2 million triangles, 1000 frames", found["seconds"], "s"),
    ]


def _one() -> None:
    """In a process of its own: a bake on 2 million triangles, as JSON on the last line."""
    import resource

    from mocap_addon.blender import feet

    obj, ground = walking(1000, skinned=False), hill(2_000_000)
    started = time.perf_counter()
    feet.bake_feet(obj, options(ground))
    seconds = time.perf_counter() - started
    print(json.dumps({"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, "seconds": seconds}))


if __name__ == "__main__":
    _one()
