# SPDX-License-Identifier: GPL-3.0-or-later
"""Triangles of evaluated objects, and trees over them that rays are cast into.

A large tree is built from a mesh of our own that exists only for that moment: :meth:`BVHTree.FromObject` reads its arrays in C, where
``FromPolygons`` wants every triangle as a Python list (2 million of them weigh more than the tree). Vertices are stored relative to
the middle of the surface, so that single precision is good far away from the origin too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat

import bpy
import numpy as np
from mathutils import Vector
from mathutils.bvhtree import BVHTree
from numpy.typing import NDArray

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Indices = NDArray[np.int64]

NEXT = 1e-4
"""Blender units that a ray goes on behind a hit, to find the next surface."""

_FACING = 0.7
"""Cosine: a surface that a ray meets so steeply can be stood on, if the ray comes from above."""

_LISTED = 300_000
"""Triangles up to which lists are quicker than a mesh, and light enough."""

MANY = 20_000
"""Triangles from which an object has a tree of its own rather than a share in one for all."""

_CLOSED_AT_MOST = 400_000
"""Triangles: a larger surface is taken for open ground without counting its edges."""


@dataclass(frozen=True, eq=False)
class Triangles:
    """``vertices (V, 3)``, ``corners (T, 3)``, and the ``normals (P, 3)`` of the faces that the triangles make up."""

    vertices: Single
    corners: NDArray[np.int32]
    normals: Single


def triangles(obj: bpy.types.Object) -> Triangles | None:
    """The surface of an evaluated object (or instance) in its own axes; None where it has none."""
    mesh = obj.to_mesh()
    if mesh is None:
        return None
    try:
        mesh.calc_loop_triangles()
        vertices = np.empty((len(mesh.vertices), 3), dtype=np.float32)
        corners = np.empty((len(mesh.loop_triangles), 3), dtype=np.int32)
        mesh.vertices.foreach_get("co", vertices.reshape(-1))
        if len(mesh.polygons) == len(corners) and len(mesh.loops) == corners.size:  # nothing but triangles: as it is stored
            mesh.attributes[".corner_vert"].data.foreach_get("value", corners.reshape(-1))
        else:
            mesh.loop_triangles.foreach_get("vertices", corners.reshape(-1))
        normals = np.empty((len(mesh.polygons), 3), dtype=np.float32)
        mesh.polygons.foreach_get("normal", normals.reshape(-1))
    finally:
        obj.to_mesh_clear()
    return Triangles(vertices, corners, normals) if len(corners) and np.isfinite(vertices).all() else None


@dataclass(frozen=True, eq=False)
class Met:
    """What rays met. ``ray (H,)`` their numbers, ``distance (H,)`` along them, ``normal (H, 3)``, ``part (H,)``, and the how manieth of its
    ray each is, ``place (H,)``, from 0."""

    ray: Indices
    distance: Array
    normal: Array
    part: Indices
    place: Indices


@dataclass(eq=False)
class Solid:
    """A surface that rays are cast into, in axes of its own.

    Parameters
    ----------
    tree : BVHTree
    origin : (3,) array
        Where the tree's own origin is.
    low, high : (3,) arrays
        Its bounds.
    surface : Triangles
        Relative to ``origin``; its normals are of what the tree counts in, triangles or faces.
    starts : (P,) int array
        The first triangle of each part.
    """

    tree: BVHTree
    origin: Array
    low: Array
    high: Array
    surface: Triangles
    starts: Indices
    _sides: dict[int, int] = field(default_factory=dict[int, int])

    def near(self, origins: Array, directions: Array, lengths: Array) -> Indices:
        """Which rays pass the bounds: numbers ``(M,)``. Slab by slab, as Kay and Kajiya (1986) do."""
        first, last = np.zeros(len(origins)), lengths.astype(np.float64)
        for axis in range(3):
            start, step = origins[:, axis], directions[:, axis]
            with np.errstate(divide="ignore", invalid="ignore"):
                a, b = (self.low[axis] - start) / step, (self.high[axis] - start) / step
            flat = step == 0.0
            if flat.any():
                inside = (start >= self.low[axis]) & (start <= self.high[axis])
                a, b = np.where(flat, np.where(inside, -np.inf, np.inf), a), np.where(flat, np.where(inside, np.inf, -np.inf), b)
            np.maximum(first, np.minimum(a, b), out=first)
            np.minimum(last, np.maximum(a, b), out=last)
        return np.flatnonzero(first <= last)

    def shoot(self, origins: Array, directions: Array, lengths: Array, most: int, enough: Array | None = None) -> Met:
        """Up to ``most`` surfaces along each ray ``(N,)``; directions of length one. The only calls into Blender are one a ray and hit.

        ``enough`` as in :meth:`..feet.ground.Ground.cast`.
        """
        rays = self.near(origins, directions, lengths)
        start, step, left = origins[rays] - self.origin, directions[rays], lengths[rays].astype(np.float64)
        gone = np.zeros(len(rays))
        found: list[tuple[Indices, Array, Indices, Indices]] = []
        for turn in range(most):
            if not len(rays):
                break
            distance, face = _cast(self.tree, start, step, left)
            met = np.flatnonzero(face >= 0)
            distance, face = distance[met], face[met]
            found.append((rays[met], gone[met] + distance, face, np.full(len(met), turn, dtype=np.int64)))
            further = distance + NEXT
            on = left[met] > further
            if turn == 0 and enough is not None:
                faces = np.einsum("ij,ij->i", self.surface.normals[face], step[met]) < -_FACING
                on &= ~(faces & (distance >= enough[rays[met]]))
            met, further = met[on], further[on]
            start = start[met] + step[met] * further[:, None]
            rays, step, gone, left = rays[met], step[met], gone[met] + further, left[met] - further
        if not found:
            none = np.zeros(0, dtype=np.int64)
            return Met(none, np.zeros(0), np.zeros((0, 3)), none, none)
        ray, distance, face, place = (np.concatenate(column) for column in zip(*found, strict=True))
        one = len(self.starts) == 1
        part = np.zeros(len(ray), dtype=np.int64) if one else np.searchsorted(self.starts, face, side="right") - 1
        normal = self._faced(self.surface.normals[face].astype(np.float64), part, ray, directions[ray])
        return Met(ray, distance, normal, part, place)

    def _faced(self, normals: Array, part: Indices, ray: Indices, directions: Array) -> Array:
        """Normals ``(H, 3)`` that say where up is; hits come nearest first for each ray.

        The side of a sheet that a ray meets is its upper one, whichever way its faces were drawn. A closed body has an inside, so its
        faces are taken as they are; but where one that is turned inside out is met from outside, they are turned round.
        """
        behind = np.einsum("ij,ij->i", normals, directions) > 0.0
        sign = np.ones(len(normals))
        for one in np.unique(part[behind]).tolist():
            if one not in self._sides:
                self._sides[one] = self._side(one)
            of, side = np.flatnonzero(part == one), self._sides[one]
            if side == 0:
                sign[of] = np.where(behind[of], -1.0, 1.0)
            elif side < 0:
                _, first, which = np.unique(ray[of], return_index=True, return_inverse=True)
                sign[of] = np.where(behind[of][first], -1.0, 1.0)[which]
        return normals * sign[:, None]

    def _side(self, part: int) -> int:
        """1 for a closed body whose faces look outwards, -1 for one turned inside out, 0 for a sheet."""
        last = int(self.starts[part + 1]) if part + 1 < len(self.starts) else len(self.surface.corners)
        corners = self.surface.corners[int(self.starts[part]) : last].astype(np.int64)
        if len(corners) > _CLOSED_AT_MOST:
            return 0
        edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
        edges.sort(axis=1)
        _, uses = np.unique(edges[:, 0] * len(self.surface.vertices) + edges[:, 1], return_counts=True)
        if not np.all(uses == 2):
            return 0
        a, b, c = (self.surface.vertices[corners[:, i]].astype(np.float64) for i in range(3))
        volume = np.einsum("ij,ij->", a - a[:1], np.cross(b - a[:1], c - a[:1]))
        return 1 if volume >= 0.0 else -1


def _cast(tree: BVHTree, starts: Array, steps: Array, lengths: Array) -> tuple[Array, Indices]:
    """First hit of every ray: distances ``(N,)`` and triangles or faces ``(N,)``, -1 for none.

    Answers are taken apart at once: thousands of them kept together set Python's garbage collector to work, which costs as much again.
    """
    same = len(steps) > 0 and bool((steps == steps[0]).all())
    along = repeat(Vector(steps[0].tolist())) if same else _rows(steps)
    faces: list[int] = []
    face = faces.append

    def far() -> Iterator[float]:
        for _, _, index, distance in map(tree.ray_cast, _rows(starts), along, lengths.tolist()):
            face(-1 if index is None else index)
            yield distance or 0.0

    return np.fromiter(far(), dtype=np.float64, count=len(starts)), np.array(faces, dtype=np.int64)


def _rows(points: Array) -> Iterator[tuple[float, float, float]]:
    """The rows of ``(N, 3)``, without a list of each."""
    return zip(points[:, 0].tolist(), points[:, 1].tolist(), points[:, 2].tolist(), strict=True)


def _bounds(vertices: NDArray[np.floating]) -> tuple[Array, Array]:
    """Lowest and highest of ``(V, 3)`` along each axis."""
    columns = [vertices[:, axis] for axis in range(3)]
    return np.array([c.min() for c in columns]), np.array([c.max() for c in columns])


def as_it_is(tree: BVHTree, surface: Triangles) -> Solid:
    """The surface of one object in its own axes, with the tree that Blender has built over it."""
    low, high = _bounds(surface.vertices)
    return Solid(tree, np.zeros(3), low - NEXT, high + NEXT, surface, np.zeros(1, dtype=np.int64))


def solid(parts: list[Triangles], matrices: list[Array | None]) -> Solid | None:
    """One surface of several, each taken through its matrix ``(4, 4)`` first (None: as it is); None where nothing is left.

    A mirroring matrix turns the faces' winding round, so that they go on looking outwards.
    """
    if not parts:
        return None
    placed = [_placed(part, matrix) for part, matrix in zip(parts, matrices, strict=True)]
    bounds = [_bounds(v) for v, _ in placed]
    low, high = np.min([b for b, _ in bounds], axis=0), np.max([b for _, b in bounds], axis=0)
    origin = 0.5 * (low + high)
    starts = np.cumsum([0, *(len(c) for _, c in placed)])
    offsets = np.cumsum([0, *(len(v) for v, _ in placed)])
    vertices = np.empty((offsets[-1], 3), dtype=np.float32)
    corners = np.empty((starts[-1], 3), dtype=np.int32)
    for i, (points, faces) in enumerate(placed):
        vertices[offsets[i] : offsets[i + 1]] = points - origin
        corners[starts[i] : starts[i + 1]] = faces + offsets[i]
    surface = Triangles(vertices, corners, _normals(vertices, corners))
    return Solid(_tree(surface), origin, low - NEXT, high + NEXT, surface, starts[:-1].astype(np.int64))


def _placed(part: Triangles, matrix: Array | None) -> tuple[NDArray[np.floating], NDArray[np.int32]]:
    if matrix is None:
        return part.vertices, part.corners
    points = part.vertices @ matrix[:3, :3].T + matrix[:3, 3]
    return points, part.corners[:, ::-1] if np.linalg.det(matrix[:3, :3]) < 0.0 else part.corners


def _normals(vertices: Single, corners: NDArray[np.int32]) -> Single:
    a, b, c = (vertices[corners[:, i]] for i in range(3))
    normals = np.cross(b - a, c - a)
    normals /= np.maximum(np.linalg.norm(normals, axis=1), 1e-30)[:, None]
    return normals


def _tree(surface: Triangles) -> BVHTree:
    """Blender's own tree over the triangles. What it is built from is gone afterwards."""
    if len(surface.corners) <= _LISTED:
        return BVHTree.FromPolygons(surface.vertices.tolist(), surface.corners.tolist(), all_triangles=True)
    mesh = bpy.data.meshes.new("Mocap")
    try:
        mesh.vertices.add(len(surface.vertices))
        mesh.vertices.foreach_set("co", surface.vertices.reshape(-1))
        mesh.loops.add(surface.corners.size)
        mesh.loops.foreach_set("vertex_index", np.ascontiguousarray(surface.corners).reshape(-1))
        mesh.polygons.add(len(surface.corners))
        mesh.polygons.foreach_set("loop_start", np.arange(0, surface.corners.size, 3, dtype=np.int32))
        mesh.update(calc_edges=False)
        obj = bpy.data.objects.new("Mocap", mesh)
        scene = bpy.data.scenes.new("Mocap")
        try:
            scene.collection.objects.link(obj)
            scene.frame_set(scene.frame_current)
            return BVHTree.FromObject(obj, scene.view_layers[0].depsgraph)
        finally:
            bpy.data.scenes.remove(scene)
            bpy.data.objects.remove(obj)
    finally:
        bpy.data.meshes.remove(mesh)
