# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenes: exact frame rates, an empty file to work in, saving."""

from __future__ import annotations

import functools
import math
import os
from fractions import Fraction
from pathlib import Path

import bpy
import numpy as np

from ..motion.errors import FileError, MocapError

_MAX_FPS = 32767
_MAX_FRAME = 1_048_574


def scene_rate(scene: bpy.types.Scene) -> Fraction:
    """Frames per second as the exact fraction that is meant: 30 over a base of 1.001 is 30000/1001.

    Blender stores the base as float32, so the simplest fraction that rounds to the same float32 is taken for it.
    """
    return Fraction(scene.render.fps) / _simplest(scene.render.fps_base)


@functools.cache
def _simplest(value: float) -> Fraction:
    exact = Fraction(value)
    for digits in range(8):
        near = exact.limit_denominator(10**digits)
        if near and np.float32(float(near)) == np.float32(value):
            return near
    return exact


def current() -> bpy.types.Scene:
    """The scene that is open."""
    return bpy.context.scene


def set_rate(scene: bpy.types.Scene, wanted: Fraction) -> None:
    """Set the scene's rate: 30000/1001 becomes 30 over a base of 1.001."""
    fps = max(1, math.ceil(wanted))
    if wanted <= 0 or fps > _MAX_FPS:
        raise MocapError(f"Blender cannot play {float(wanted):g} frames per second; choose a rate up to {_MAX_FPS}.")
    scene.render.fps = fps
    scene.render.fps_base = float(fps / wanted)


def set_frame_range(scene: bpy.types.Scene, start: float, end: float) -> None:
    """Show whole frames from ``start`` to ``end``, both included, as far as Blender counts."""
    first, last = (min(max(n, 0), _MAX_FRAME) for n in (math.floor(start + 1e-4), math.ceil(end - 1e-4)))
    scene.frame_start, scene.frame_end = first, max(first, last)


def fresh(wanted: Fraction | None = None) -> bpy.types.Scene:
    """Throw the open file away for an empty one and return its scene. Preferences and enabled add-ons stay. For the command line only."""
    bpy.ops.wm.read_homefile(app_template="", use_empty=True, use_factory_startup=True, load_ui=False)
    scene = bpy.context.scene
    if wanted is not None:
        set_rate(scene, wanted)
    return scene


def save_blend(path: str | Path) -> Path:
    """Save everything that is open as a compressed ``.blend``, whole or not at all. The open file keeps its own name."""
    path = Path(path).absolute()
    if path.suffix.lower() != ".blend":
        raise FileError("Blender files end in .blend; choose such a name.", path)
    if not path.parent.is_dir():
        raise FileError(f'the folder "{path.parent.name}" does not exist; create it first.', path)
    temporary = path.with_name(f".{path.stem}.{os.getpid()}.tmp.blend")
    try:
        # The same folder, so that relative paths to textures stay right; a copy, so that the open file is not renamed.
        bpy.ops.wm.save_as_mainfile(filepath=str(temporary), copy=True, compress=True, check_existing=False)
        os.replace(temporary, path)
    except (RuntimeError, OSError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise FileError(f"could not be saved ({reason}); check that the folder can be written to.", path) from error
    finally:
        temporary.unlink(missing_ok=True)
    return path
