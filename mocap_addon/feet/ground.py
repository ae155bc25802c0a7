# SPDX-License-Identifier: GPL-3.0-or-later
"""What feet stand on: arrays of rays in, arrays of hits out. The core knows no scene; anything that answers :class:`Ground` will do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..motion import quat

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Hits:
    """Where N rays met surfaces, up to K a ray, nearest first.

    Parameters
    ----------
    distance : (N, K) array
        Metres along the ray; infinity where there is no (further) hit.
    point : (N, K, 3) array
        World, metres; anything where there is none.
    normal : (N, K, 3) array
        Unit, the surface's own as it was modelled (the underside of a ceiling points down); anything where there is none.
    object : (N, K) int array
        Which of the ground's objects; -1 where there is none.
    """

    distance: Array
    point: Array
    normal: Array
    object: Indices

    @classmethod
    def none(cls, rays: int, limit: int) -> Hits:
        """No hit at all. Laid out hit by hit: mostly there are only first ones, and what is behind them is then never touched."""
        return cls(
            np.full((rays, limit), np.inf, order="F"), np.zeros((rays, limit, 3), order="F"), np.zeros((rays, limit, 3), order="F"),
            np.full((rays, limit), -1, np.int64, order="F"),
        )  # fmt: skip

    def met(self) -> Hits:
        """Without the columns behind all hits."""
        count = max(np.count_nonzero(np.any(self.object >= 0, axis=0)), 1)
        return Hits(self.distance[:, :count], self.point[:, :count], self.normal[:, :count], self.object[:, :count])


class Ground(Protocol):
    """Surfaces that rays are cast against, at any time of the take."""

    @property
    def names(self) -> tuple[str, ...]:
        """A name an object; ``Hits.object`` counts in it."""
        ...

    def cast(self, origins: Array, directions: Array, lengths: Array, times: Array, limit: int = 4, enough: Array | None = None) -> Hits:
        """All surfaces that rays cross, at most ``limit`` a ray, nearest first.

        Parameters
        ----------
        origins : (N, 3) array
            World, metres.
        directions : (N, 3) array
            Unit.
        lengths : (N,) array
            Metres: nothing farther counts.
        times : (N,) array
            Seconds of the take: where moving objects are.
        limit : int
            K of the result.
        enough : (N,) array, optional
            Metres: once a ray has met, first of all and at least this far along it, a surface that faces it, the others need not be looked
            for. A foot above a floor does not ask what is under the floor.
        """
        ...

    def spaces(self, objects: Indices, times: Array) -> tuple[Array, Array]:
        """Where objects ``(M,)`` stand at ``times`` (M,) seconds: positions ``(M, 3)`` metres and rotations ``(M, 4)``.

        Identity for what never moves and for object -1.
        """
        ...


def _still(objects: Indices) -> tuple[Array, Array]:
    return np.zeros((len(objects), 3)), quat.identity(len(objects))


@dataclass(frozen=True, eq=False)
class Plane:
    """An endless plane through ``point`` with ``normal`` (need not be unit)."""

    point: tuple[float, float, float] = (0.0, 0.0, 0.0)
    normal: tuple[float, float, float] = (0.0, 0.0, 1.0)
    name: str = "plane"

    @property
    def names(self) -> tuple[str, ...]:
        """See :class:`Ground`."""
        return (self.name,)

    def cast(self, origins: Array, directions: Array, lengths: Array, times: Array, limit: int = 4, enough: Array | None = None) -> Hits:
        """See :class:`Ground`."""
        n = np.asarray(self.normal, dtype=np.float64)
        n = n / np.linalg.norm(n)
        towards = directions @ n
        with np.errstate(divide="ignore", invalid="ignore"):
            t = ((np.asarray(self.point) - origins) @ n) / towards
        return _single(origins, directions, t, np.broadcast_to(n, origins.shape), (t >= 0.0) & (t <= lengths), limit)

    def spaces(self, objects: Indices, times: Array) -> tuple[Array, Array]:
        """See :class:`Ground`."""
        return _still(objects)


def _single(origins: Array, directions: Array, t: Array, normals: Array, found: NDArray[np.bool_], limit: int) -> Hits:
    """Hits of a surface that a ray meets once at most."""
    out = Hits.none(len(origins), limit)
    out.distance[found, 0] = t[found]
    out.point[found, 0] = origins[found] + directions[found] * t[found, None]
    out.normal[found, 0] = normals[found]
    out.object[found, 0] = 0
    return out


@dataclass(frozen=True, eq=False)
class HeightField:
    """A surface ``z = height(x, y)``, arrays in and out; its slope is taken by central differences of ``step`` metres.

    Vertical rays meet it exactly; slanting ones are marched in 64 parts and bisected.
    """

    height: Callable[[Array, Array], Array]
    name: str = "height field"
    step: float = 1e-4

    @property
    def names(self) -> tuple[str, ...]:
        """See :class:`Ground`."""
        return (self.name,)

    def cast(self, origins: Array, directions: Array, lengths: Array, times: Array, limit: int = 4, enough: Array | None = None) -> Hits:
        """See :class:`Ground`."""
        upright = np.abs(directions[:, 2]) > 1.0 - 1e-12
        t = np.full(len(origins), np.inf)
        if np.any(upright):
            o = origins[upright]
            t[upright] = (self.height(o[:, 0], o[:, 1]) - o[:, 2]) * np.sign(directions[upright, 2])
        if not np.all(upright):
            t[~upright] = self._march(origins[~upright], directions[~upright], lengths[~upright])
        with np.errstate(invalid="ignore"):
            found = (t >= 0.0) & (t <= lengths) & np.isfinite(t)
        at = origins + directions * np.where(found, t, 0.0)[:, None]
        return _single(origins, directions, t, self._normals(at[:, 0], at[:, 1]), found, limit)

    def _normals(self, x: Array, y: Array) -> Array:
        h = self.step
        dx = (self.height(x + h, y) - self.height(x - h, y)) / (2.0 * h)
        dy = (self.height(x, y + h) - self.height(x, y - h)) / (2.0 * h)
        n = np.stack([-dx, -dy, np.ones_like(dx)], axis=-1)
        return n / np.linalg.norm(n, axis=-1, keepdims=True)

    def _above(self, origins: Array, directions: Array, t: Array) -> Array:
        at = origins + directions * t[:, None]
        return at[:, 2] - self.height(at[:, 0], at[:, 1])

    def _march(self, origins: Array, directions: Array, lengths: Array, parts: int = 64) -> Array:
        """First change of side along slanting rays; infinity where there is none."""
        low, found = np.zeros(len(origins)), np.zeros(len(origins), dtype=bool)
        before = self._above(origins, directions, low) > 0.0
        for k in range(1, parts + 1):
            t = lengths * (k / parts)
            crossed = ~found & ((self._above(origins, directions, t) > 0.0) != before)
            low = np.where(crossed, lengths * ((k - 1) / parts), low)
            found |= crossed
        high = low + lengths / parts
        for _ in range(40):
            middle = 0.5 * (low + high)
            same = (self._above(origins, directions, middle) > 0.0) == before
            low, high = np.where(same, middle, low), np.where(same, high, middle)
        return np.where(found, 0.5 * (low + high), np.inf)

    def spaces(self, objects: Indices, times: Array) -> tuple[Array, Array]:
        """See :class:`Ground`."""
        return _still(objects)


Motion = Callable[[Array], tuple[Array, Array]]
"""Seconds ``(M,)`` -> positions ``(M, 3)`` and rotations ``(M, 4)`` of a rigid object."""


@dataclass(frozen=True, eq=False)
class Box:
    """A solid box: steps, ledges, platforms.

    Parameters
    ----------
    low, high : triple of float
        Corners in the box's own space, metres.
    name : str
    motion : Motion or None
        Where the box's own space stands at a time; None: in the world, always.
    """

    low: tuple[float, float, float]
    high: tuple[float, float, float]
    name: str = "box"
    motion: Motion | None = None


@dataclass(frozen=True, eq=False)
class Boxes:
    """Any number of :class:`Box`; rays meet the faces they enter by and those they leave by."""

    boxes: Sequence[Box]

    @property
    def names(self) -> tuple[str, ...]:
        """See :class:`Ground`."""
        return tuple(box.name for box in self.boxes)

    def cast(self, origins: Array, directions: Array, lengths: Array, times: Array, limit: int = 4, enough: Array | None = None) -> Hits:
        """See :class:`Ground`."""
        return nearest([self._one(i, origins, directions, lengths, times) for i in range(len(self.boxes))], len(origins), limit)

    def _one(self, index: int, origins: Array, directions: Array, lengths: Array, times: Array) -> Hits:
        """Entry and exit of one box: the slab method (Kay and Kajiya, *Ray tracing complex scenes*, 1986)."""
        box = self.boxes[index]
        if box.motion is not None:
            at, turned = box.motion(times)
            undo = quat.inv(turned)
            o, d = quat.rotate(undo, origins - at), quat.rotate(undo, directions)
        else:
            turned, o, d = None, origins, directions
        low, high = np.asarray(box.low, dtype=np.float64), np.asarray(box.high, dtype=np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = (low - o) / d, (high - o) / d
        flat = np.abs(d) < 1e-15
        inside = (o >= low) & (o <= high)
        near = np.where(flat, np.where(inside, -np.inf, np.inf), np.minimum(one, other))
        far = np.where(flat, np.where(inside, np.inf, -np.inf), np.maximum(one, other))
        t = np.stack([near.max(axis=1), far.min(axis=1)], axis=1)
        found = (t[:, :1] <= t[:, 1:]) & (t >= 0.0) & (t <= lengths[:, None])
        axes = np.stack([near.argmax(axis=1), far.argmin(axis=1)], axis=1)
        normal = np.eye(3)[axes]
        along = np.sign(np.take_along_axis(d, axes, axis=1)) * np.array([-1.0, 1.0])
        normal = normal * along[..., None]
        if turned is not None:
            normal = quat.rotate(turned[:, None], normal)
        t = np.where(found, t, np.inf)
        point = origins[:, None] + directions[:, None] * np.where(found, t, 0.0)[..., None]
        return Hits(t, point, normal, np.where(found, index, -1).astype(np.int64))

    def spaces(self, objects: Indices, times: Array) -> tuple[Array, Array]:
        """See :class:`Ground`."""
        positions, rotations = _still(objects)
        for i, box in enumerate(self.boxes):
            on = objects == i
            if box.motion is not None and np.any(on):
                positions[on], rotations[on] = box.motion(times[on])
        return positions, rotations


@dataclass(frozen=True, eq=False)
class Union:
    """Several grounds as one; their objects are counted on."""

    parts: Sequence[Ground]

    @property
    def names(self) -> tuple[str, ...]:
        """See :class:`Ground`."""
        return tuple(name for part in self.parts for name in part.names)

    def cast(self, origins: Array, directions: Array, lengths: Array, times: Array, limit: int = 4, enough: Array | None = None) -> Hits:
        """See :class:`Ground`."""
        found: list[Hits] = []
        first = 0
        for part in self.parts:
            hits = part.cast(origins, directions, lengths, times, limit, enough)
            found.append(Hits(hits.distance, hits.point, hits.normal, np.where(hits.object >= 0, hits.object + first, -1)))
            first += len(part.names)
        return nearest(found, len(origins), limit)

    def spaces(self, objects: Indices, times: Array) -> tuple[Array, Array]:
        """See :class:`Ground`."""
        positions, rotations = _still(objects)
        first = 0
        for part in self.parts:
            count = len(part.names)
            on = (objects >= first) & (objects < first + count)
            if np.any(on):
                positions[on], rotations[on] = part.spaces(objects[on] - first, times[on])
            first += count
        return positions, rotations


def nearest(found: Sequence[Hits], rays: int, limit: int) -> Hits:
    """The ``limit`` nearest of several sets of hits of the same rays."""
    if not found:
        return Hits.none(rays, limit)
    distance = np.concatenate([h.distance for h in found], axis=1)
    order = np.argsort(distance, axis=1, kind="stable")[:, :limit]
    point = np.concatenate([h.point for h in found], axis=1)
    normal = np.concatenate([h.normal for h in found], axis=1)
    index = np.concatenate([h.object for h in found], axis=1)
    picked = Hits(
        np.take_along_axis(distance, order, axis=1),
        np.take_along_axis(point, order[..., None], axis=1),
        np.take_along_axis(normal, order[..., None], axis=1),
        np.take_along_axis(index, order, axis=1),
    )
    if order.shape[1] == limit:
        return picked
    out = Hits.none(rays, limit)
    k = order.shape[1]
    out.distance[:, :k], out.point[:, :k], out.normal[:, :k], out.object[:, :k] = (
        picked.distance,
        picked.point,
        picked.normal,
        picked.object,
    )
    return out
