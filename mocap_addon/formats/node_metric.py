# SPDX-License-Identifier: GPL-3.0-or-later
"""How far two clips on the same nodes are from each other, in metres on the character.

Every bone carries a rigid shell: the ends of three arms of 3 cm along its axes. The error of a bone at a time is the largest distance
between where the two clips put such an end, by the whole hierarchy (the measure of N. Frechette, *Animation Compression Library*, GDC
2017). Both clips are compared on every sample and halfway between samples, where the truth is the slerp of the neighbours.

Rotations need not be of unit length: a player that does not normalise them (three.js) shrinks the bone, and so does this.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from .gltf_nodes import NodeTree
from .node_clip import Channel, values_at

Array = NDArray[np.float64]

SHELL = 0.03
"""Metres."""

_BLOCK = 1000  # times whose matrices stand in memory at once
_KEPT = 1_500_000  # nodes times times whose true places are kept, 150 MB
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
        self._known: dict[tuple[frozenset[int], bool], Points] = {}

    def over(self, nodes: Iterable[int], *, outermost: bool = False) -> Points:
        """The shells as points on those of ``nodes`` that they hang on, which alone move.

        ``outermost``: of each node only the points farthest out in 26 directions; the largest error is nearly always at one of them.
        Clips of one character mostly move the same nodes, so what was worked out is kept.
        """
        moving = frozenset(nodes)
        if (moving, outermost) not in self._known:
            self._known[moving, outermost] = self._over(moving, outermost)
        return self._known[moving, outermost]

    def _over(self, moving: frozenset[int], outermost: bool) -> Points:
        tree, parents = self.tree, self.tree.parents.tolist()
        holder, frames = self._holders(moving)
        local = np.array([frames[n] for n in self.watched]).reshape(-1, 4, 4)
        shells = (_ARMS / self._units[self.watched, None, None]) @ local[:, :3, :3].transpose(0, 2, 1) + local[:, None, :3, 3]
        found: dict[int, list[int]] = {}
        for k, n in enumerate(self.watched):
            found.setdefault(holder[n], []).append(k)
        wanted = {a for m in found if m >= 0 for a in (m, *tree.ancestors(m)) if a in moving}
        steps: list[Step] = []
        place: dict[int, int] = {}
        watched = np.array(self.watched, dtype=np.int64)
        for n in (n for n in tree.order if n in wanted):
            rows, parent = found.get(n, []), parents[n]
            points, of = shells[rows].reshape(-1, 3), np.repeat(watched[rows], len(_ARMS))
            if outermost and len(points) > len(_DIRECTIONS):
                picked = np.unique(np.argmax(points @ _DIRECTIONS.T, axis=0))
                points, of = points[picked], of[picked]
            place[n] = len(steps)
            between = frames[parent] if parent >= 0 and holder[parent] != parent else None
            above = place.get(holder[parent], -1) if parent >= 0 else -1
            steps.append(Step(n, above, between, np.hstack([points, np.ones((len(points), 1))]), of))
        return Points(tree, steps)

    def _holders(self, moving: frozenset[int]) -> tuple[dict[int, int], dict[int, Array]]:
        """Of each node the nearest moving one at or above it (-1: the scene), and its (4, 4) place in that one's frame as the file stands.

        Multiplied down, not by an inverse: so that a node is exactly where a player puts it.
        """
        holder: dict[int, int] = {}
        frames: dict[int, Array] = {}
        parents, locals_ = self.tree.parents.tolist(), self.tree.local_matrices
        for n in self.tree.order:
            p = parents[n]
            holder[n] = n if n in moving else holder[p] if p >= 0 else -1
            if holder[n] == n:
                frames[n] = _UNIT
            elif holder[n] < 0:
                frames[n] = self.tree.global_matrices[n]
            else:
                frames[n] = locals_[n] if holder[n] == p else frames[p] @ locals_[n]
        return holder, frames

    @cached_property
    def _units(self) -> Array:
        """(N,): metres of one unit in a node's own frame."""
        return np.maximum(np.cbrt(np.abs(np.linalg.det(self.tree.global_matrices[:, :3, :3]))), 1e-12)


@dataclass(frozen=True, eq=False)
class Step:
    """A moving node.

    Parameters
    ----------
    node, above : int
        The node, and which step the moving one above it is; -1 without.
    between : (4, 4) array or None
        What stands between them; None: nothing.
    points : (P, 4) array
        What hangs on the node, in its frame; the last number is 1.
    of : (P,) int array
        The node whose shell each point is of.
    """

    node: int
    above: int
    between: Array | None
    points: Array
    of: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Points:
    """Points on moving nodes."""

    tree: NodeTree
    steps: list[Step]

    @cached_property
    def of(self) -> NDArray[np.int64]:
        """(P,): the node whose shell a point is of."""
        return np.concatenate([step.of for step in self.steps]) if self.steps else np.zeros(0, dtype=np.int64)

    def at(self, channels: Sequence[Channel], times: Array) -> Array:
        """(P, 3, F): where the points are in the scene."""
        return self.placed(self.worlds(channels, times))

    def placed(self, worlds: Array) -> Array:
        """(P, 3, F): where matrices ``(S, 4, 3, F)`` of the nodes put the points; of differences between matrices, how far apart."""
        frames = worlds.shape[-1]
        out = np.empty((len(self.of), 3, frames))
        row = 0
        for step, world in zip(self.steps, worlds, strict=True):
            if len(step.points):
                stop = row + len(step.points)
                np.matmul(step.points, world.reshape(4, 3 * frames), out=out[row:stop].reshape(-1, 3 * frames))
                row = stop
        return out

    def worlds(self, channels: Sequence[Channel], times: Array) -> Array:
        """(S, 4, 3, F): the moving nodes in the scene: three columns and the place."""
        return self._chained(*self._parts(channels, times))

    def compared(self, truth: Sequence[Channel], given: Sequence[Channel], times: Array) -> Array:
        """(P, F): the squares of how far the points of two clips are apart, both followed in one pass."""
        both = (np.concatenate(pair, axis=-1) for pair in zip(self._parts(truth, times), self._parts(given, times), strict=True))
        worlds = self._chained(*both)
        return squares(self.placed(worlds[..., len(times) :] - worlds[..., : len(times)]))

    def _parts(self, channels: Sequence[Channel], times: Array) -> tuple[Array, Array, Array]:
        """Rotations (4, S, F), translations and scales (3, S, F) of the moving nodes in their parents' frames."""
        nodes = [step.node for step in self.steps]
        row = {node: k for k, node in enumerate(nodes)}
        standing = {"rotation": self.tree.rotations, "translation": self.tree.translations, "scale": self.tree.scales}
        parts: dict[str, Array] = {}
        for path, values in standing.items():
            parts[path] = np.empty((values.shape[1], len(nodes), len(times)))
            parts[path][:] = values[nodes].T[:, :, None]
        known = [c for c in channels if c.node in row]
        for c, values in zip(known, values_at(known, times), strict=True):
            parts[c.path][:, row[c.node]] = values.T
        return parts["rotation"], parts["translation"], parts["scale"]

    def _chained(self, rotations: Array, translations: Array, scales: Array) -> Array:
        """(S, 4, 3, F): each node below the one above it. Products are written out: several times faster than over small matrices."""
        locals_ = _columns(rotations)
        if np.any(scales != 1.0):
            locals_[:, :3] *= scales.transpose(1, 0, 2)[:, :, None]
        locals_[:, 3] = translations.transpose(1, 0, 2)
        out, more = np.empty_like(locals_), np.empty_like(locals_[:1])[0] if len(locals_) else locals_
        for step, local, world in zip(self.steps, locals_, out, strict=True):
            if step.between is not None:
                local = step.between[:3, :3] @ local
                local[3] += step.between[:3, 3:]
            if step.above < 0:
                world[:] = local
                continue
            above = out[step.above]
            np.multiply(above[0], local[:, 0, None], out=world)
            world += np.multiply(above[1], local[:, 1, None], out=more)
            world += np.multiply(above[2], local[:, 2, None], out=more)
            world[3] += above[3]
        return out


class Judge:
    """Measures clips against one truth, on its samples ``(F,)`` (seconds) and halfway between them.

    ``rough``: on the samples and the outermost points alone, for searching.
    """

    def __init__(self, body: Body, truth: Sequence[Channel], samples: Array, *, rough: bool = False) -> None:
        self.points = body.over({c.node for c in truth}, outermost=rough)
        self.truth, self.of = truth, self.points.of
        times = samples if rough else between(samples)
        self.parts = [times[start : start + _BLOCK] for start in range(0, len(times), _BLOCK)]
        small = len(times) * len(self.points.steps) <= _KEPT
        self.kept = [self.points.worlds(truth, part) for part in self.parts] if small else None

    def measure(self, given: Sequence[Channel]) -> Measured:
        """The errors of a clip with channels for the same nodes."""
        if not len(self.of) or not self.parts:
            return NOTHING
        found: list[Array] = []
        for k, part in enumerate(self.parts):
            truth = self.points.worlds(self.truth, part) if self.kept is None else self.kept[k]
            apart = self.points.worlds(given, part)
            apart -= truth
            found.append(squares(self.points.placed(apart)))
        return _measured(found, self.of, self.parts)


def compare_samples(body: Body, truth: Sequence[Channel], given: Sequence[Channel], samples: Array) -> Measured:
    """The errors at the samples alone."""
    points = body.over({c.node for c in truth})
    if not len(points.of):
        return NOTHING
    return _measured([points.compared(truth, given, samples)], points.of, [samples])


def _measured(squared: Sequence[Array], of: NDArray[np.int64], times: Sequence[Array]) -> Measured:
    """From squares of errors ``(P, F)``, the nodes that the points are of, and the times, part by part."""
    worst, at, node = 0.0, 0.0, -1
    for some, part in zip(squared, times, strict=True):
        p, f = divmod(int(np.argmax(some)), len(part))
        if float(some[p, f]) > worst:
            worst, at, node = float(some[p, f]), float(part[f]), int(of[p])
    joined = squared[0].ravel() if len(squared) == 1 else np.concatenate([some.ravel() for some in squared])
    high = int(0.99 * (len(joined) - 1))
    return Measured(float(np.sqrt(worst)), float(np.sqrt(np.partition(joined, high)[high])), node, at)


def squares(apart: Array) -> Array:
    """(P, 3, F) differences -> (P, F) squares of their lengths; the differences are used up."""
    apart *= apart
    out = apart[:, 0]
    out += apart[:, 1]
    out += apart[:, 2]
    return out


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


def _columns(rotations: Array) -> Array:
    """Rotations (4, S, F) -> (S, 4, 3, F): the columns of their matrices, and room for a place; not of unit length they shrink."""
    w, x, y, z = rotations
    out = np.empty((rotations.shape[1], 4, 3, rotations.shape[2]))
    out[:, 0, 0], out[:, 1, 0], out[:, 2, 0] = 1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)
    out[:, 0, 1], out[:, 1, 1], out[:, 2, 1] = 2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)
    out[:, 0, 2], out[:, 1, 2], out[:, 2, 2] = 2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)
    return out
