# SPDX-License-Identifier: GPL-3.0-or-later
"""Feet drawn into the 3D view: footprints, the way of the balls, what is under the soles now, and where they sink into the ground.

There is one draw handler, and it is there only while some scene asks for it; never in the background.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..blender.feet import FeetBake
from ..blender.feet_recipe import feet_of
from . import characters, feet_memory

Array = NDArray[np.float64]
Colour = tuple[float, float, float, float]
Line = tuple[Array, Colour, float]

LEFT, RIGHT = (0.35, 0.75, 1.0, 1.0), (1.0, 0.65, 0.25, 1.0)
SUNK, GAP, ON, OFF = (1.0, 0.15, 0.1, 1.0), (1.0, 0.9, 0.2, 1.0), (0.2, 1.0, 0.35, 1.0), (0.8, 0.8, 0.8, 0.6)
DEEP = 0.005
"""Metres below the ground, or above it in a contact, from which a sole is marked."""

_handle: object | None = None


@dataclass
class Drawing:
    """Lines to draw: points ``(N, 3)`` two by two, a colour, a width."""

    lines: list[Line] = field(default_factory=list["Line"])

    def add(self, points: Array, colour: Colour, width: float = 2.0) -> None:
        """Separate lines."""
        good = np.isfinite(points).all(axis=1).reshape(-1, 2).all(axis=1)
        points = points.reshape(-1, 2, 3)[good].reshape(-1, 3)
        if len(points):
            self.lines.append((points, colour, width))

    def strip(self, points: Array, colour: Colour, width: float = 2.0) -> None:
        """Lines from each point to the next."""
        if len(points) > 1:
            self.add(np.stack([points[:-1], points[1:]], axis=1).reshape(-1, 3), colour, width)


def sync() -> None:
    """Have the handler exactly while a scene wants it."""
    global _handle
    wanted = not bpy.app.background and any(scene.mocap.feet.show for scene in bpy.data.scenes)
    if wanted and _handle is None:
        _handle = bpy.types.SpaceView3D.draw_handler_add(_draw, (), "WINDOW", "POST_VIEW")
    elif not wanted and _handle is not None:
        bpy.types.SpaceView3D.draw_handler_remove(_handle, "WINDOW")
        _handle = None
    redraw()


def end() -> None:
    """Take the handler away, whatever anybody wants."""
    global _handle
    if _handle is not None:
        bpy.types.SpaceView3D.draw_handler_remove(_handle, "WINDOW")
        _handle = None


def shown() -> bool:
    """Whether the handler is there."""
    return _handle is not None


@bpy.app.handlers.persistent
def after_change(*_: object) -> None:
    """A file was opened, or a step undone: another scene may want it now, or none."""
    sync()


def redraw() -> None:
    """Have the 3D views drawn again."""
    for window in bpy.context.window_manager.windows if bpy.context.window_manager else ():
        for area in window.screen.areas:
            if area.type == "VIEW_3D":
                area.tag_redraw()


def lines_of(scene: bpy.types.Scene, obj: bpy.types.Object | None) -> Drawing:
    """Everything that is drawn, in Blender units: what the handler does without the drawing, so that it can be tested without a window."""
    out = Drawing()
    action = obj.animation_data.action if obj is not None and obj.animation_data else None
    settings = scene.mocap.feet
    unit = 1.0 / float(scene.unit_settings.scale_length)
    stored = feet_of(action)
    bake = feet_memory.of(action)
    frame = scene.frame_current_final
    if settings.show_footprints:
        for one in bake.footprints if bake is not None else (stored or {}).get("footprints") or ():
            _footprint(out, one, unit, frame)
    if bake is not None:
        _soles(out, bake, unit, frame, settings)
    return out


def _soles(out: Drawing, bake: FeetBake, unit: float, frame: float, settings: bpy.types.PropertyGroup) -> None:
    result, frames = bake.result, bake.frames
    soles, traces = result.soles * unit, result.traces * unit
    depth = (result.traces[..., 2] - result.soles[..., 2]) if len(result.soles) else np.zeros((0, 2, 3))
    now = int(np.argmin(np.abs(frames - frame))) if len(frames) else -1
    for side, colour in enumerate((LEFT, RIGHT)):
        if settings.show_paths and len(frames) > 1:
            out.strip(soles[:, side, 1], (*colour[:3], 0.55), 1.5)
        if settings.show_depth:
            with np.errstate(invalid="ignore"):
                sunk = depth[:, side] > DEEP
            for point in range(3):
                at = sunk[:, point]
                if at.any():
                    out.add(np.stack([soles[at, side, point], traces[at, side, point]], axis=1).reshape(-1, 3), (*SUNK[:3], 0.7), 2.0)
        if now < 0:
            continue
        out.strip(soles[now, side], colour, 3.0)
        for point in range(3):
            on = bool(result.contacts[now, side, point])
            with np.errstate(invalid="ignore"):
                off_ground = on and depth[now, side, point] < -DEEP
                sunk_now = depth[now, side, point] > DEEP
            out.add(_star(soles[now, side, point], 0.02 * unit), SUNK if sunk_now else GAP if off_ground else ON if on else OFF, 3.0)
            out.add(np.stack([soles[now, side, point], traces[now, side, point]]), (*colour[:3], 0.5), 1.0)


def _footprint(out: Drawing, one: Mapping[str, Any], unit: float, frame: float) -> None:
    """The outline of a sole at its place, brighter while the foot stands there."""
    colour = LEFT if one["side"] == "left" else RIGHT
    place, normal = np.array(one["position"], dtype=np.float64), np.array(one["normal"], dtype=np.float64)
    ahead = np.array(one["ahead"], dtype=np.float64)
    across = np.cross(normal, ahead)
    turn = np.linspace(0.0, 2.0 * np.pi, 17)
    outline = place + normal * 0.004 + np.outer(0.11 * np.cos(turn) - 0.05, ahead) + np.outer(0.04 * np.sin(turn), across)
    now = one["start"] - 0.5 <= frame <= one["end"] + 0.5
    out.strip(outline * unit, (*colour[:3], 1.0 if now else 0.45), 3.0 if now else 1.5)
    if not one["reached"]:
        out.add(_star(place * unit, 0.03 * unit), GAP, 2.0)


def _star(place: Array, size: float) -> Array:
    return np.concatenate([np.stack([place - axis * size, place + axis * size]) for axis in np.eye(3)])


def _draw() -> None:
    """The handler. What goes wrong here would be said again for every redraw, so the overlay is taken away then."""
    try:
        context = bpy.context
        if not context.scene.mocap.feet.show or context.space_data is None or not context.space_data.overlay.show_overlays:
            return
        _draw_lines(lines_of(context.scene, characters.of(context)).lines)
    except Exception:
        end()
        raise


def _draw_lines(lines: Sequence[Line]) -> None:
    import gpu
    from gpu_extras.batch import batch_for_shader

    shader = gpu.shader.from_builtin("POLYLINE_UNIFORM_COLOR")
    viewport = gpu.state.viewport_get()
    before = gpu.state.blend_get(), gpu.state.depth_test_get()
    gpu.state.blend_set("ALPHA")
    gpu.state.depth_test_set("NONE")
    try:
        shader.bind()
        shader.uniform_float("viewportSize", (float(viewport[2]), float(viewport[3])))
        for points, colour, width in lines:
            shader.uniform_float("lineWidth", width)
            shader.uniform_float("color", colour)
            batch_for_shader(shader, "LINES", {"pos": points.astype(np.float32)}).draw(shader)
    finally:
        gpu.state.blend_set(before[0])
        gpu.state.depth_test_set(before[1])
