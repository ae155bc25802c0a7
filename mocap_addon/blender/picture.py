# SPDX-License-Identifier: GPL-3.0-or-later
"""A motion in one picture: the character at several moments, side by side on a floor. For the command line: it uses up the open scene."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import bpy
import numpy as np
from mathutils import Matrix, Vector
from numpy.typing import NDArray

from ..motion.errors import FileError, TargetError

Array = NDArray[np.float64]

_APART = 0.42
"""Least distance of neighbouring phases, as a share of the character's height."""

_FIRST, _LAST = (0.62, 0.68, 0.74), (0.05, 0.26, 0.52)
"""Colours of the first and the last phase (linear)."""


def strip(
    path: str | Path, obj: bpy.types.Object, frames: Sequence[float], *, size: tuple[int, int] = (1280, 448), samples: int = 6
) -> Path:
    """Render the character of the armature ``obj`` at ``frames`` into one PNG, seen from its right, walking from left to right.

    Parameters
    ----------
    path : path
        The ``.png``; replaced if it exists.
    obj : armature object
    frames : sequence of float
        Scene frames, in order.
    size : (int, int)
        Pixels.
    samples : int
        Light paths a pixel.

    Raises
    ------
    TargetError
        The armature moves no mesh.
    FileError
        The picture cannot be written.
    """
    path = Path(path).absolute()
    scene = bpy.context.scene
    phases = [_frozen(scene, obj, frame) for frame in frames]
    if not phases or not all(phases):
        raise TargetError(f'"{obj.name}" moves no mesh, so there is nothing to draw.')
    for other in scene.objects:
        other.hide_render = True
    across, forward, floor, height = _lay_out(phases)
    stage = bpy.data.collections.new("Picture")
    scene.collection.children.link(stage)
    for k, phase in enumerate(phases):
        share = k / max(1, len(phases) - 1)
        colour = [(1.0 - share) * a + share * b for a, b in zip(_FIRST, _LAST, strict=True)]
        material = _material(f"Phase {k}", colour, roughness=0.55)
        for mesh, matrix in phase:
            mesh.materials.clear()
            mesh.materials.append(material)
            part = bpy.data.objects.new(f"Phase {k}", mesh)
            part.matrix_world = matrix
            stage.objects.link(part)
    _furnish(scene, stage, phases, across, forward, floor, height, size)
    return _render(scene, path, size, samples)


Phase = list[tuple[bpy.types.Mesh, Matrix]]


def _frozen(scene: bpy.types.Scene, obj: bpy.types.Object, frame: float) -> Phase:
    """The meshes that follow ``obj`` as they are at ``frame``."""
    scene.frame_set(int(frame), subframe=frame - int(frame))
    graph = bpy.context.evaluated_depsgraph_get()
    out: Phase = []
    for one in scene.objects:
        if one.type == "MESH" and one.visible_get() and (one.find_armature() == obj or _is_below(one, obj)):
            evaluated = one.evaluated_get(graph)
            out.append((bpy.data.meshes.new_from_object(evaluated, depsgraph=graph), evaluated.matrix_world.copy()))
    return out


def _is_below(one: bpy.types.Object, obj: bpy.types.Object) -> bool:
    while one.parent is not None and one != obj:
        one = one.parent
    return one == obj


def _lay_out(phases: Sequence[Phase]) -> tuple[Vector, Vector, float, float]:
    """Direction of travel, direction to the camera, height of the floor and of the character; phases too near are moved apart."""
    boxes = [_box(phase) for phase in phases]
    middles = [(low + high) / 2.0 for low, high in boxes]
    height = max(float(high[2] - low[2]) for low, high in boxes)
    travel = middles[-1] - middles[0]
    travel[2] = 0.0
    distance = float(np.linalg.norm(travel))
    # On the spot: laid out along +X, a little turned, so that the character (it faces -Y) is seen from its front right.
    across = travel / distance if distance > 0.5 * height else np.array([1.0, 0.0, 0.0])
    step = _APART * height if distance > 0.5 * height else 0.58 * height
    place = 0.0
    for k, phase in enumerate(phases):
        along = float((middles[k] - middles[0]) @ across)
        place = along if k == 0 else max(place + step, along)
        shift = Matrix.Translation(Vector(across * (place - along)))
        phase[:] = [(mesh, shift @ matrix) for mesh, matrix in phase]
    floor = min(float(low[2]) for low, _high in boxes)
    towards = np.array([across[1], -across[0], 0.0])
    return Vector(across), Vector(towards), floor, height


def _box(phase: Phase) -> tuple[Array, Array]:
    points: list[Array] = []
    for mesh, matrix in phase:
        flat = np.empty(3 * len(mesh.vertices), dtype=np.float32)
        mesh.vertices.foreach_get("co", flat)
        m = np.array(matrix)
        points.append(flat.reshape(-1, 3) @ m[:3, :3].T + m[:3, 3])
    every = np.concatenate(points)
    return every.min(axis=0), every.max(axis=0)


def _furnish(
    scene: bpy.types.Scene,
    stage: bpy.types.Collection,
    phases: Sequence[Phase],
    across: Vector,
    towards: Vector,
    floor: float,
    height: float,
    size: tuple[int, int],
) -> None:
    """Floor, light, sky and camera."""
    boxes = [_box(phase) for phase in phases]
    low, high = np.min([b[0] for b in boxes], axis=0), np.max([b[1] for b in boxes], axis=0)
    middle = Vector((low + high) / 2.0)
    wide = max(
        abs((Vector(corner) - middle) @ across) for b in boxes for corner in (b[0], b[1], (b[0][0], b[1][1], 0), (b[1][0], b[0][1], 0))
    )

    camera = bpy.data.objects.new("Camera", bpy.data.cameras.new("Camera"))
    camera.data.lens = 70.0
    half_width = max(wide + 0.15 * height, (0.62 * height) * size[0] / size[1])
    distance = half_width / (camera.data.sensor_width / 2.0 / camera.data.lens)
    at = Vector((middle.x, middle.y, floor + 0.47 * height))
    eye = at + (towards + 0.16 * across).normalized() * distance + Vector((0.0, 0.0, 0.16 * distance))
    camera.location = eye
    camera.rotation_euler = (at - eye).to_track_quat("-Z", "Y").to_euler()
    camera.data.clip_end = 100.0 * distance
    scene.camera = camera

    r = 40.0 * height
    mesh = bpy.data.meshes.new("Floor")
    mesh.from_pydata([(-r, -r, 0), (r, -r, 0), (r, r, 0), (-r, r, 0)], [], [(0, 1, 2, 3)])
    ground = bpy.data.objects.new("Floor", mesh)
    ground.location = (middle.x, middle.y, floor)
    mesh.materials.append(_material("Floor", (0.72, 0.73, 0.75), roughness=1.0))

    sun = bpy.data.objects.new("Sun", bpy.data.lights.new("Sun", "SUN"))
    sun.data.energy, sun.data.angle = 2.6, 0.05
    sun.rotation_euler = (-(towards * 0.7 - across * 0.5 + Vector((0.0, 0.0, 1.0)))).to_track_quat("-Z", "Y").to_euler()
    for one in (camera, ground, sun):
        stage.objects.link(one)
    world = bpy.data.worlds.new("Picture")
    for node in _nodes(world):
        if node.type == "BACKGROUND":
            node.inputs["Color"].default_value = (0.80, 0.84, 0.90, 1.0)
            node.inputs["Strength"].default_value = 0.75
    scene.world = world


def _nodes(owner: bpy.types.Material | bpy.types.World) -> Sequence[bpy.types.Node]:
    if owner.node_tree is None:  # From 5.0 on it is always there, and asking for it is deprecated.
        owner.use_nodes = True
    return owner.node_tree.nodes


def _material(name: str, colour: Sequence[float], *, roughness: float) -> bpy.types.Material:
    material = bpy.data.materials.new(name)
    for node in _nodes(material):
        if node.type == "BSDF_PRINCIPLED":
            node.inputs["Base Color"].default_value = (*colour, 1.0)
            node.inputs["Roughness"].default_value = roughness
    return material


def _has_denoiser() -> bool:
    try:
        import _cycles
    except ImportError:
        return False
    return bool(getattr(_cycles, "with_openimagedenoise", False))


def _render(scene: bpy.types.Scene, path: Path, size: tuple[int, int], samples: int) -> Path:
    render = scene.render
    render.engine = "CYCLES"  # The one engine that needs no graphics card.
    render.resolution_x, render.resolution_y, render.resolution_percentage = *size, 100
    render.image_settings.file_format = "PNG"
    render.image_settings.color_mode = "RGB"
    render.use_border = render.use_compositing = render.use_sequencer = False
    cycles = scene.cycles
    cycles.device, cycles.max_bounces, cycles.use_adaptive_sampling = "CPU", 2, False
    # Denoised, a handful of samples is enough; the quickest denoising costs as much as they do. Some builds are without it.
    cycles.use_denoising = denoised = _has_denoiser()
    cycles.samples = samples if denoised else 3 * samples
    if denoised:
        cycles.denoising_prefilter, cycles.denoising_input_passes = "NONE", "RGB"
        if hasattr(cycles, "denoising_quality"):
            cycles.denoising_quality = "FAST"
    scene.view_settings.view_transform = "Standard"
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp.png")
    render.filepath = str(temporary)
    try:
        bpy.ops.render.render(write_still=True)
        os.replace(temporary, path)
    except (RuntimeError, OSError) as error:
        raise FileError(f"The picture cannot be made ({' '.join(str(error).split())}).", path) from None
    finally:
        temporary.unlink(missing_ok=True)
    return path
