# SPDX-License-Identifier: GPL-3.0-or-later
"""Windows stay as they are while an exporter of Blender's runs.

Blender's glTF exporter shows the scene that it writes in the window, and leaves it there. When that is a scene of ours, which is removed
afterwards, the window would show whatever scene comes before it, in that scene's first view layer, and what was seen through a camera
would be seen from beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import bpy

from . import compat


@contextmanager
def kept() -> Iterator[None]:
    """Every window shows the same scene, view layer and views through cameras after as before."""
    compat.settle_context()
    shown = [_Shown(window) for manager in bpy.data.window_managers for window in manager.windows]
    try:
        yield
    finally:
        changed = [one for one in shown if one.window.scene != one.scene]  # first of all: a window takes those that belong to it along
        for one in changed:
            one.restore()


class _Shown:
    """What a window shows, and what Blender changes in its views when it shows a scene without their camera."""

    def __init__(self, window: bpy.types.Window) -> None:
        spaces = [space for area in window.screen.areas for space in area.spaces if space.type == "VIEW_3D"]
        views = [view for space in spaces for view in (space.region_3d, *space.region_quadviews) if view is not None]
        self.window, self.scene, self.layer = window, window.scene, window.view_layer
        self.cameras = [(space, space.camera) for space in spaces]
        self.perspectives = [(view, view.view_perspective) for view in views]

    def restore(self) -> None:
        self.window.scene = self.scene
        self.window.view_layer = self.layer
        for space, camera in self.cameras:
            if space.camera != camera:
                space.camera = camera
        for view, perspective in self.perspectives:
            if view.view_perspective != perspective:
                view.view_perspective = perspective
