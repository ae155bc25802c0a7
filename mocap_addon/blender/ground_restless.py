# SPDX-License-Identifier: GPL-3.0-or-later
"""Ground that changes its shape, or moves by more than keys: evaluated by Blender, frame by frame, in a scene of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import bpy
import numpy as np
from numpy.typing import NDArray

from .ground_scene import evaluating, placed
from .ground_trees import Met, Solid, Triangles, solid, triangles

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_KEPT = 4_000_000
"""Triangles whose trees are kept for the next question; what is more is built again."""


@dataclass(frozen=True, eq=False)
class _Shape:
    """A surface as it was last, and the tree over it."""

    surface: Triangles
    tree: Solid


class Restless:
    """Objects that Blender has to evaluate. Blender units, scene frames."""

    def __init__(self, objects: list[bpy.types.Object], allowed: Callable[[bpy.types.Object], bool]) -> None:
        self._allowed = allowed
        self.objects = tuple(objects)
        self._part = {obj: i for i, obj in enumerate(objects)}
        self._stack = ExitStack()
        self._scene = self._stack.enter_context(evaluating(objects))
        self._at: float | None = None
        self._last: dict[tuple[object, ...], _Shape] = {}
        self._worlds: dict[tuple[int, float], Array] = {}

    def close(self) -> None:
        """Take the scene away."""
        self._last.clear()
        self._stack.close()

    def matrices(self, obj: bpy.types.Object, frames: Array) -> Array:
        """World matrices ``(F, 4, 4)`` of one of the objects."""
        number = self._part[obj]
        at, back = np.unique(frames, return_inverse=True)
        for frame in at.tolist():
            if (number, frame) not in self._worlds:
                self._step(frame)
        return np.array([self._worlds[number, frame] for frame in at.tolist()])[back]

    def shoot(self, origins: Array, directions: Array, lengths: Array, frames: Array, limit: int, enough: Array | None = None) -> Met:
        """As :meth:`.ground_trees.Solid.shoot`; ``part`` counts in ``objects``."""
        order = np.argsort(frames, kind="stable")
        edges = np.flatnonzero(np.diff(frames[order])) + 1
        found: list[Met] = []
        for rays in np.split(order, edges) if len(order) else ():
            found += self._at_frame(float(frames[rays[0]]), rays, origins, directions, lengths, limit, enough)
        none = np.zeros(0, dtype=np.int64)
        every = [Met(none, np.zeros(0), np.zeros((0, 3)), none, none), *found]
        ray, distance, normal, part = (np.concatenate([getattr(m, name) for m in every]) for name in ("ray", "distance", "normal", "part"))
        order = np.lexsort((distance, ray))
        ray = ray[order]
        place = np.arange(len(ray)) - np.searchsorted(ray, ray, side="left")
        near = order[place < limit]
        return Met(ray[place < limit], distance[near], normal[near], part[near], place[place < limit])

    def _at_frame(
        self, frame: float, rays: Indices, origins: Array, directions: Array, lengths: Array, limit: int, enough: Array | None
    ) -> Iterator[Met]:
        graph = self._step(frame)
        o, d, length = origins[rays], directions[rays], lengths[rays]
        low = np.minimum(o, o + d * length[:, None]).min(axis=0)
        high = np.maximum(o, o + d * length[:, None]).max(axis=0)
        for owner, ready, is_instance, matrix in placed(graph, self._part, self._allowed):
            number, key = self._part[owner], (ready.original.name_full, ready.data.name_full if is_instance else "")
            box = np.array(ready.bound_box) @ matrix[:3, :3].T + matrix[:3, 3]
            if np.any(box.max(axis=0) < low) or np.any(box.min(axis=0) > high):
                continue
            tree = self._tree(key, ready)
            if tree is None or abs(np.linalg.det(matrix[:3, :3])) < 1e-30:
                continue
            undo = np.linalg.inv(matrix)
            along = d @ undo[:3, :3].T
            size = np.maximum(np.linalg.norm(along, axis=1), 1e-30)
            met = tree.shoot(
                o @ undo[:3, :3].T + undo[:3, 3],
                along / size[:, None],
                length * size,
                limit,
                None if enough is None else enough[rays] * size,
            )
            normal = met.normal @ undo[:3, :3]
            normal /= np.maximum(np.linalg.norm(normal, axis=1), 1e-30)[:, None]
            yield Met(rays[met.ray], met.distance / size[met.ray], normal, np.full(len(met.ray), number, dtype=np.int64), met.place)

    def _step(self, frame: float) -> bpy.types.Depsgraph:
        layer = self._scene.view_layers[0]
        if frame != self._at:
            whole = int(np.floor(frame))
            self._scene.frame_set(whole, subframe=frame - whole)
            self._at = frame
            for obj, number in self._part.items():
                world = np.array(obj.evaluated_get(layer.depsgraph).matrix_world, dtype=np.float64)
                self._worlds[number, frame] = world
        return layer.depsgraph

    def _tree(self, key: tuple[object, ...], ready: bpy.types.Object) -> Solid | None:
        """The tree over a surface; the one from before where the surface has not changed."""
        now = triangles(ready)
        if now is None:
            return None
        before = self._last.get(key)
        if before is not None and _same(before.surface, now):
            return before.tree
        tree = solid([now], [None])
        if tree is None:
            return None
        if sum(len(shape.surface.corners) for shape in self._last.values()) > _KEPT:
            self._last.clear()
        self._last[key] = _Shape(now, tree)
        return tree


def _same(a: Triangles, b: Triangles) -> bool:
    return a.vertices.shape == b.vertices.shape and np.array_equal(a.vertices, b.vertices) and np.array_equal(a.corners, b.corners)
