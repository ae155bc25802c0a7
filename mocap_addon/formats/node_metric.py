# SPDX-License-Identifier: GPL-3.0-or-later
"""How far two clips on the same nodes are from each other, in metres on the character.

Every bone carries a rigid shell: the ends of three arms of 3 cm along its axes. The error of a bone at a time is the largest distance
between where the two clips put such an end, by the whole hierarchy (the measure of N. Frechette, *Animation Compression Library*, GDC
2017). Both clips are compared on every sample and halfway between samples, where the truth is the slerp of the neighbours.

Rotations need not be of unit length: a player that does not normalise them (three.js) shrinks the bone, and so does this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from .gltf_nodes import NodeTree
from .node_clip import Channel, Path

Array = NDArray[np.float64]

SHELL = 0.03
"""Metres."""

_BLOCK = 1000  # times whose matrices stand in memory at once
_KEPT = 6_000_000  # points times times whose true places are kept, 150 MB
_UNIT: Array = np.eye(4)
_ARMS: Array = SHELL * np.concatenate([np.zeros((1, 3)), np.eye(3)])
_DIRECTIONS: Array = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if x or y or z], dtype=np.float64)


@dataclass(frozen=True)
class Measured:
    """Errors in metres: the largest, the 99th percentile over bones and times, and where (node) and when (seconds) the largest is."""

    worst: float
    p99: float
    node: int
    time: float


NOTHING = Measured(0.0, 0.0, -1, 0.0)


class Body:
    """The nodes of a file that are compared, with what they hang on.

    Parameters
    ----------
    tree : NodeTree
    watched : iterable of int
        Nodes whose shells are compared.
    """

    def __init__(self, tree: NodeTree, watched: Iterable[int]) -> None:
        self.tree = tree
        self.watched = sorted(set(watched))

    def over(self, nodes: Iterable[int], *, outermost: bool = False) -> Points:
        """The shells as points on those of ``nodes`` that they hang on, which alone move.

        ``outermost``: of each node only the points farthest out in 26 directions; the largest error is nearly always at one of them.
        """
        moving = set(nodes)
        tree = self.tree
        units = np.maximum(np.cbrt(np.abs(np.linalg.det(tree.global_matrices[:, :3, :3]))), 1e-12)
        found: dict[int, list[Array]] = {}
        origin: dict[int, list[int]] = {}
        for n in self.watched:
            m = next((a for a in (n, *tree.ancestors(n)) if a in moving), -1)
            local = self._between(n, m)
            found.setdefault(m, []).append((_ARMS / units[n]) @ local[:3, :3].T + local[:3, 3])
            origin.setdefault(m, []).extend([n] * 4)
        wanted = {a for m in found if m >= 0 for a in (m, *tree.ancestors(m)) if a in moving}
        steps: list[Step] = []
        place: dict[int, int] = {}
        for n in (n for n in tree.order if n in wanted):
            above = next((a for a in tree.ancestors(n) if a in moving), -1)
            parent = int(tree.parents[n])
            points = np.concatenate(found[n]) if n in found else np.zeros((0, 3))
            of = np.array(origin.get(n, []), dtype=np.int64)
            if outermost and len(points) > len(_DIRECTIONS):
                picked = np.unique(np.argmax(points @ _DIRECTIONS.T, axis=0))
                points, of = points[picked], of[picked]
            place[n] = len(steps)
            steps.append(Step(n, place.get(above, -1), np.eye(4) if parent == above else self._between(parent, above), points, of))
        return Points(tree, steps)

    def _between(self, node: int, above: int) -> Array:
        """(4, 4): a node in the frame of one above it, or in the scene (-1), as the file stands."""
        g = self.tree.global_matrices
        if node < 0 or node == above:
            return np.eye(4)
        if above < 0:
            return g[node]
        # multiplied down, not by an inverse: so that a node is exactly where a player puts it
        path = [node, *self.tree.ancestors(node)]
        out = np.eye(4)
        for n in reversed(path[: path.index(above)]):
            out = out @ self._local(n)
        return out

    def _local(self, n: int) -> Array:
        out = np.eye(4)
        out[:3, :3] = quat.to_matrix(self.tree.rotations[n]) * self.tree.scales[n]
        out[:3, 3] = self.tree.translations[n]
        return out


@dataclass(frozen=True, eq=False)
class Step:
    """A moving node: the moving one above it, what stands between, and the points that hang on it, with the node whose shell each is of."""

    node: int
    above: int
    between: Array
    points: Array
    of: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Points:
    """Points on moving nodes."""

    tree: NodeTree
    steps: list[Step]

    @property
    def of(self) -> NDArray[np.int64]:
        """(P,): the node whose shell a point is of."""
        return np.concatenate([step.of for step in self.steps]) if self.steps else np.zeros(0, dtype=np.int64)

    def at(self, channels: Sequence[Channel], times: Array) -> Array:
        """(P, 3, F): where the points are in the scene."""
        by_node: dict[int, dict[Path, Channel]] = {}
        for c in channels:
            by_node.setdefault(c.node, {})[c.path] = c
        out = np.empty((sum(len(step.points) for step in self.steps), 3, len(times)))
        world: list[tuple[Array, Array]] = []
        row = 0
        for step in self.steps:
            linear, offset = self._local(step.node, by_node.get(step.node, {}), times)
            fixed = step.between
            if not np.array_equal(fixed, _UNIT):
                offset = fixed[:3, :3] @ offset + fixed[:3, 3:]
                linear = _times(fixed[:3, :3, None], linear)
            if step.above >= 0:
                above, origin = world[step.above]
                offset = origin + _apply(above, offset)
                linear = _times(above, linear)
            world.append((linear, offset))
            if len(step.points):
                p = step.points[:, :, None]
                stop = row + len(step.points)
                out[row:stop] = offset + linear[:, 0] * p[:, 0, None] + linear[:, 1] * p[:, 1, None] + linear[:, 2] * p[:, 2, None]
                row = stop
        return out

    def _local(self, node: int, own: dict[Path, Channel], times: Array) -> tuple[Array, Array]:
        """(3, 3, F) and (3, F); F is 1 where nothing moves."""
        q = _values(own.get("rotation"), self.tree.rotations[node], times)
        t = _values(own.get("translation"), self.tree.translations[node], times)
        s = _values(own.get("scale"), self.tree.scales[node], times)
        linear = quat.to_matrix(q).transpose(1, 2, 0)
        if not np.all(s == 1.0):
            linear = linear * s.T[None]
        return linear, t.T


class Judge:
    """Measures clips against one truth, on its samples ``(F,)`` (seconds) and halfway between them.

    ``rough``: on the samples and the outermost points alone, for searching; ``between_too`` False: on the samples alone.
    """

    def __init__(self, body: Body, truth: Sequence[Channel], samples: Array, *, rough: bool = False, between_too: bool = True) -> None:
        self.points = body.over({c.node for c in truth}, outermost=rough)
        self.truth, self.of = truth, self.points.of
        times = between(samples) if between_too and not rough else samples
        self.parts = [times[start : start + _BLOCK] for start in range(0, len(times), _BLOCK)]
        small = len(times) * len(self.of) <= _KEPT
        self.kept = [self.points.at(truth, part) for part in self.parts] if small else None

    def measure(self, given: Sequence[Channel]) -> Measured:
        """The errors of a clip with channels for the same nodes."""
        worst, at, node = 0.0, 0.0, -1
        rest: list[Array] = []
        if not len(self.of):
            return NOTHING
        for k, part in enumerate(self.parts):
            truth = self.points.at(self.truth, part) if self.kept is None else self.kept[k]
            gap = self.points.at(given, part)
            gap -= truth
            gap *= gap
            squared = gap.sum(axis=1)
            most = int(np.argmax(squared))
            p, f = divmod(most, len(part))
            if float(squared[p, f]) > worst:
                worst, at, node = float(squared[p, f]), float(part[f]), int(self.of[p])
            rest.append(squared.ravel())
        if not rest:
            return NOTHING
        joined = np.concatenate(rest)
        high = int(0.99 * (len(joined) - 1))
        return Measured(float(np.sqrt(worst)), float(np.sqrt(np.partition(joined, high)[high])), node, at)


def compare_samples(body: Body, truth: Sequence[Channel], given: Sequence[Channel], samples: Array) -> Measured:
    """The errors at the samples alone, where both have channels for the same nodes and paths: both are followed in one pass."""
    points = body.over({c.node for c in truth})
    of, count = points.of, len(samples)
    if not len(of):
        return NOTHING
    other = {(c.node, c.path): c for c in given}
    twice = np.arange(2.0 * count)
    both = [
        replace(c, times=twice, values=np.concatenate([c.at(samples), other[c.node, c.path].at(samples)]))
        for c in truth
        if (c.node, c.path) in other
    ]
    if len(both) != len(truth) or len(both) != len(other):
        return Judge(body, truth, samples, between_too=False).measure(given)
    places = points.at(both, twice)
    gap = places[:, :, count:] - places[:, :, :count]
    squared = (gap * gap).sum(axis=1)
    p, f = divmod(int(np.argmax(squared)), count)
    high = int(0.99 * (squared.size - 1))
    rest = float(np.sqrt(np.partition(squared.ravel(), high)[high]))
    return Measured(float(np.sqrt(squared[p, f])), rest, int(of[p]), float(samples[f]))


def compare(body: Body, truth: Sequence[Channel], given: Sequence[Channel], samples: Array) -> Measured:
    """The errors of ``given`` against ``truth``, on the samples ``(F,)`` (seconds) and halfway between them."""
    return Judge(body, truth, samples).measure(given)


def between(samples: Array) -> Array:
    """The samples and the times halfway between them, ``(2 F - 1,)``."""
    if len(samples) < 2:
        return samples
    out = np.empty(2 * len(samples) - 1)
    out[::2] = samples
    out[1::2] = 0.5 * (samples[1:] + samples[:-1])
    return out


def _values(channel: Channel | None, standing: Array, times: Array) -> Array:
    if channel is None:
        return standing[None]
    return channel.values if channel.constant else channel.at(times)


def _apply(m: Array, v: Array) -> Array:
    return m[:, 0] * v[0] + m[:, 1] * v[1] + m[:, 2] * v[2]


def _times(a: Array, b: Array) -> Array:
    """(3, 3, F) products, written out: several times faster than a loop over small matrices."""
    return a[:, 0, None] * b[0] + a[:, 1, None] * b[1] + a[:, 2, None] * b[2]
