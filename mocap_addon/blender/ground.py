# SPDX-License-Identifier: GPL-3.0-or-later
"""The scene as ground to stand on: mesh objects, evaluated with their modifiers, instances included, still or moving.

Three ways, by what can move:

- what stands still becomes one tree in the world, but for large meshes, whose tree Blender builds as they are;
- what moves as a whole, and by keys alone, becomes one tree in its own axes for all frames: rays are taken into those axes, arrays at once;
- everything else (constraints, strips, cloth, armatures, simulations, particles) is evaluated frame by frame in a scene of its own, as
  rigs are (:mod:`.rig_graph`); a tree is built only where a ray passes the bounds, and only when the surface has changed.

Arrays are in the world, metres; trees are in Blender units.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import bpy
import numpy as np
from mathutils.bvhtree import BVHTree
from numpy.typing import NDArray

from ..feet.ground import Hits
from ..feet.legs import length
from ..motion import quat
from ..motion.errors import MocapError
from . import object_motion
from .ground_objects import ground_objects, may_deform
from .ground_restless import Restless
from .ground_scene import evaluating, placed
from .ground_trees import MANY, Met, Solid, Triangles, as_it_is, solid, triangles
from .scenes import scene_rate

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_KEPT = 24
"""Answers about moving objects that are remembered."""

TOUCHING = 0.005
"""Metres: a sole that is in a surface by no more than this stands on it, and does not ask what is under it."""

Allowed = Callable[[bpy.types.Object], bool]
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class _Own:
    """A surface in the axes of the ``index``-th object; ``world`` is where those are, None where they move."""

    surface: Solid
    index: int
    world: Array | None


class SceneGround:
    """Mesh objects of the scene. Answers :class:`..feet.ground.Ground`.

    Use it through :func:`scene_ground`, which takes it apart again.

    Parameters
    ----------
    objects : objects, see :func:`.ground_objects.ground_objects`
    scene : scene
        Whose unit and rate count.
    frame : float
        Scene frame at zero seconds.
    """

    def __init__(
        self, objects: Iterable[bpy.types.Object], scene: bpy.types.Scene, frame: float, character: bpy.types.Object | None = None
    ) -> None:
        self._unit = float(scene.unit_settings.scale_length)
        self._rate, self._first = float(scene_rate(scene)), frame
        self._objects = list(objects)
        self.notes: tuple[str, ...] = ()
        self.names = tuple(obj.name for obj in self._objects)
        self._number = {obj: i for i, obj in enumerate(self._objects)}
        self._moves = [not object_motion.stands_still(obj) for obj in self._objects]
        calm = [obj for obj in self._objects if _is_calm(obj)]
        self._still: Solid | None = None
        self._still_parts: Indices = np.zeros(0, dtype=np.int64)
        self._own: list[_Own] = []
        self._kept: dict[tuple[object, ...], Any] = {}
        allowed = _Allowed(character)
        self._build(calm, scene, allowed)
        restless = [obj for obj in self._objects if obj not in set(calm)]
        self._restless = Restless(restless, allowed) if restless else None

    def close(self) -> None:
        """Take the evaluating scene away."""
        if self._restless is not None:
            self._restless.close()

    @property
    def triangles(self) -> int:
        """How many there are in what never changes."""
        kept = [self._still, *(one.surface for one in self._own)]
        return sum(len(s.surface.corners) for s in kept if s is not None)

    # --- asked by the core ----------------------------------------------------------------------------------------------------------

    def cast(self, origins: Array, directions: Array, lengths: Array, times: Array, limit: int = 4, enough: Array | None = None) -> Hits:
        """See :class:`..feet.ground.Ground`."""
        start, reach = origins / self._unit, lengths / self._unit
        enough = None if enough is None else (enough - TOUCHING) / self._unit
        found: list[tuple[Met, Indices]] = []
        if self._still is not None:
            met = self._still.shoot(start, directions, reach, limit, enough)
            found.append((met, self._still_parts[met.part]))
        frames = self._first + times * self._rate
        for one in self._own:
            met = self._into(one, start, directions, reach, frames, limit, enough)
            found.append((met, np.full(len(met.ray), one.index, dtype=np.int64)))
        if self._restless is not None:
            met = self._restless.shoot(start, directions, reach, frames, limit, enough)
            numbers = np.array([self._number[obj] for obj in self._restless.objects], dtype=np.int64)
            found.append((met, numbers[met.part]))
        return _sorted(found, origins, directions, self._unit, limit)

    def spaces(self, objects: Indices, times: Array) -> tuple[Array, Array]:
        """See :class:`..feet.ground.Ground`."""
        places, turns = np.zeros((len(objects), 3)), quat.identity(len(objects))
        frames = self._first + times * self._rate
        for index in np.flatnonzero(np.bincount(objects + 1)[1:]).tolist():
            if not self._moves[index]:
                continue
            of = objects == index
            at, back = _different(frames[of])
            place, turn = self._remembered(("space", index), at, lambda a, i=index: self._space(i, a))
            places[of], turns[of] = place[back], turn[back]
        return places, turns

    def _space(self, index: int, frames: Array) -> tuple[Array, Array]:
        matrices = self._world(index, frames)
        linear = matrices[:, :3, :3]
        if len(linear) and np.all(linear == linear[0]):  # it only travels
            linear = linear[:1]
        size = np.maximum(np.cbrt(np.abs(np.linalg.det(linear))), 1e-12)
        turns = quat.from_matrix(linear / size[:, None, None])
        return matrices[:, :3, 3] * self._unit, np.broadcast_to(turns, (len(frames), 4))

    def _remembered(self, what: tuple[str, int], frames: Array, work: Callable[[Array], T]) -> T:
        """What ``work`` gives for these frames; the core asks for the same ones several times."""
        key = (*what, len(frames), hash(frames.tobytes()))
        if key not in self._kept:
            if len(self._kept) >= _KEPT:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = work(frames)
        return self._kept[key]

    # --- what never changes its shape -----------------------------------------------------------------------------------------------

    def _build(self, calm: list[bpy.types.Object], scene: bpy.types.Scene, allowed: Allowed) -> None:
        still: list[Triangles] = []
        matrices: list[Array | None] = []
        owners: list[int] = []
        shapes: dict[bpy.types.Object, list[tuple[Triangles, Array]]] = {}
        for obj, shape, matrix, tree in _surfaces(calm, scene, allowed):
            number, moves = self._number[obj], self._moves[self._number[obj]]
            if tree is not None:
                self._own.append(_Own(as_it_is(tree, shape), number, None if moves else matrix))
            elif moves:
                shapes.setdefault(obj, []).append((shape, matrix))
            else:
                still.append(shape)
                matrices.append(matrix)
                owners.append(number)
        self._still = solid(still, matrices)
        self._still_parts = np.array(owners, dtype=np.int64)
        for obj, parts in shapes.items():
            surface = solid([shape for shape, _ in parts], [matrix for _, matrix in parts])
            if surface is not None:
                self._own.append(_Own(surface, self._number[obj], None))

    def _into(self, one: _Own, origins: Array, directions: Array, lengths: Array, frames: Array, limit: int, enough: Array | None) -> Met:
        """Rays against a surface in axes of its own."""
        if one.world is not None:
            undo, back = _inverse(one.world)[None], np.zeros(1, dtype=np.int64)
        else:
            at, back = _different(frames)
            undo = self._remembered(("undo", one.index), at, lambda a: _inverse(self._world(one.index, a)))
        linear = undo[back, :3, :3]
        own, along = _turned(linear, origins), _turned(linear, directions)
        own += undo[back, :3, 3]
        size = np.maximum(length(along), 1e-30)
        along /= size[:, None]
        met = one.surface.shoot(own, along, lengths * size, limit, None if enough is None else enough * size)
        there = linear if one.world is not None else linear[met.ray]
        normal = _turned(there.transpose(0, 2, 1), met.normal)
        normal /= np.maximum(length(normal), 1e-30)[:, None]
        return Met(met.ray, met.distance / size[met.ray], normal, met.part, met.place)

    def _world(self, index: int, frames: Array) -> Array:
        """(F, 4, 4) of an object that moves, at different frames."""
        obj = self._objects[index]
        if self._restless is not None and obj in self._restless.objects:
            return self._restless.matrices(obj, frames)
        found = self._remembered(("world", index), frames, lambda a: object_motion.world_matrices(obj, a))
        return np.broadcast_to(found, (len(frames), 4, 4))


@contextmanager
def scene_ground(
    objects: Iterable[bpy.types.Object],
    *,
    character: bpy.types.Object | None = None,
    scene: bpy.types.Scene | None = None,
    frame: float | None = None,
) -> Iterator[SceneGround]:
    """The surfaces of ``objects`` that ``character`` can stand on. Nothing of the person's is changed.

    Parameters
    ----------
    objects : iterable of objects
        What is none for a foot (characters, clothes, widgets, cameras) is left out.
    character : armature object, optional
    scene : scene, optional
        The current one by default.
    frame : float, optional
        Scene frame at zero seconds of the take; by default the scene's first frame.

    Raises
    ------
    MocapError
        None of the objects has a surface.
    """
    scene = scene or bpy.context.scene
    picked = ground_objects(objects, character)
    if not picked:
        raise MocapError("Nothing that was chosen as ground has a surface to stand on; choose meshes that are no part of a character.")
    ground = SceneGround(picked, scene, float(scene.frame_start if frame is None else frame), character)
    try:
        yield ground
    finally:
        ground.close()


def _different(frames: Array) -> tuple[Array, Indices]:
    """Frames without repeats, in order, and which of them each is; quick where they are in order already, as rays of a take are."""
    step = np.diff(frames)
    if not np.all(step >= 0.0):
        return np.unique(frames, return_inverse=True)
    new = np.concatenate([np.ones(min(len(frames), 1), dtype=bool), step > 0.0])
    return frames[new], np.cumsum(new) - 1


def _turned(linear: Array, vectors: Array) -> Array:
    """Vectors ``(N, 3)`` through matrices ``(N or 1, 3, 3)``. Not by ``@``, which sets threads to work that cost more than the sums."""
    out = np.empty(vectors.shape, order="F")
    x, y, z = (vectors[:, k] for k in range(3))
    for i in range(3):
        out[:, i] = linear[:, i, 0] * x + linear[:, i, 1] * y + linear[:, i, 2] * z
    return out


def _inverse(matrices: Array) -> Array:
    """Inverse of transforms ``(..., 4, 4)``; nothing but zeros for what is scaled to nothing, which no ray meets then."""
    flat = np.abs(np.linalg.det(matrices[..., :3, :3])) < 1e-18
    return np.where(flat[..., None, None], 0.0, np.linalg.inv(np.where(flat[..., None, None], np.eye(4), matrices)))


class _Allowed:
    """Whether what is instanced is ground; each object is looked at once."""

    def __init__(self, character: bpy.types.Object | None) -> None:
        self._character, self._known = character, dict[bpy.types.Object, bool]()

    def __call__(self, obj: bpy.types.Object) -> bool:
        if obj not in self._known:
            self._known[obj] = bool(ground_objects([obj], self._character))
        return self._known[obj]


def _is_calm(obj: bpy.types.Object) -> bool:
    """Whether the surface is one and the same at all times and keys alone move it."""
    if not object_motion.by_keys(obj):
        return False
    inside = obj.instance_collection.all_objects if obj.instance_type == "COLLECTION" and obj.instance_collection else ()
    return not may_deform(obj) and not any(may_deform(o) or not object_motion.stands_still(o) for o in inside)


def _surfaces(
    objects: list[bpy.types.Object], scene: bpy.types.Scene, allowed: Allowed
) -> Iterator[tuple[bpy.types.Object, Triangles, Array, BVHTree | None]]:
    """Whose surface, its triangles in axes of their own, and what takes them into the world, or for what moves into its owner's axes.

    With it a tree over the triangles as they are, where they are many and those of the owner itself.
    """
    if not objects:
        return
    with evaluating(objects) as own:
        own.frame_set(scene.frame_current)
        graph = own.view_layers[0].depsgraph
        shapes: dict[int, Triangles | None] = {}
        still = {obj: object_motion.stands_still(obj) for obj in objects}
        for obj, ready, is_instance, matrix in placed(graph, still, allowed):
            key = ready.data.as_pointer()
            if key not in shapes:
                shapes[key] = triangles(ready)
            shape = shapes[key]
            if shape is not None:
                own_axes = matrix if still[obj] else _inverse(np.array(obj.evaluated_get(graph).matrix_world)) @ matrix
                alone = not is_instance and obj.type == "MESH" and len(shape.corners) > MANY
                yield obj, shape, own_axes, BVHTree.FromObject(obj, graph) if alone else None


def _sorted(found: list[tuple[Met, Indices]], origins: Array, directions: Array, unit: float, limit: int) -> Hits:
    """The nearest hits of each ray."""
    out = Hits.none(len(origins), limit)
    ray = np.concatenate([met.ray for met, _ in found]) if found else np.zeros(0, dtype=np.int64)
    if not len(ray):
        return out
    distance = np.concatenate([met.distance for met, _ in found]) * unit
    normal = np.concatenate([met.normal for met, _ in found])
    number = np.concatenate([numbers for _, numbers in found])
    if len(found) == 1:
        place = found[0][0].place
    else:
        order = np.lexsort((distance, ray))
        sorted_rays = ray[order]
        place = np.arange(len(ray)) - np.searchsorted(sorted_rays, sorted_rays, side="left")
        order, place = order[place < limit], place[place < limit]
        ray, distance, normal, number = ray[order], distance[order], normal[order], number[order]
    out.distance[ray, place] = distance
    out.object[ray, place] = number
    for axis in range(3):
        out.point[ray, place, axis] = origins[ray, axis] + directions[ray, axis] * distance
        out.normal[ray, place, axis] = normal[:, axis]
    return out
