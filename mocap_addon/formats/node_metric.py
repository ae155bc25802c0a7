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

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from .gltf_nodes import NodeTree
from .node_clip import Channel, Path

Array = NDArray[np.float64]

SHELL = 0.03
"""Metres."""

_BLOCK = 1000  # times whose matrices stand in memory at once
_KEPT = 1_500_000  # bones times times whose true places are kept, 100 MB


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
        needed = {n for w in self.watched for n in (w, *tree.ancestors(w))}
        self.order = [n for n in tree.order if n in needed]
        self.unit = {n: max(float(np.cbrt(abs(np.linalg.det(tree.global_matrices[n][:3, :3])))), 1e-12) for n in self.order}

    def shells(self, channels: Sequence[Channel], times: Array) -> Array:
        """(W, 4, 3, F): the bones' joints and the three ends of their shells, in the scene."""
        by_node: dict[int, dict[Path, Channel]] = {}
        for c in channels:
            by_node.setdefault(c.node, {})[c.path] = c
        place = {n: k for k, n in enumerate(self.watched)}
        out = np.empty((len(self.watched), 4, 3, len(times)))
        world: dict[int, tuple[Array, Array]] = {}
        for n in self.order:
            linear, offset = self._local(n, by_node.get(n, {}), times)
            p = int(self.tree.parents[n])
            if p >= 0:
                above, origin = world[p]
                offset = origin + _apply(above, offset)
                linear = _times(above, linear)
            world[n] = linear, offset
            if n in place:
                out[place[n], 0] = offset
                out[place[n], 1:] = offset + (SHELL / self.unit[n]) * linear.transpose(1, 0, 2)
        return out

    def _local(self, node: int, own: dict[Path, Channel], times: Array) -> tuple[Array, Array]:
        """(3, 3, F) and (3, F); F is 1 where nothing moves."""
        q = _values(own.get("rotation"), self.tree.rotations[node], times)
        t = _values(own.get("translation"), self.tree.translations[node], times)
        s = _values(own.get("scale"), self.tree.scales[node], times)
        linear = quat.to_matrix(q).transpose(1, 2, 0) * s.T[None]
        return linear, t.T


class Judge:
    """Measures clips against one truth, on its samples ``(F,)`` (seconds) and halfway between them."""

    def __init__(self, body: Body, truth: Sequence[Channel], samples: Array) -> None:
        self.body, self.truth = body, truth
        times = between(samples)
        self.parts = [times[start : start + _BLOCK] for start in range(0, len(times), _BLOCK)]
        small = len(times) * len(body.watched) <= _KEPT
        self.kept = [body.shells(truth, part) for part in self.parts] if small else None

    def measure(self, given: Sequence[Channel]) -> Measured:
        """The errors of a clip."""
        worst, at, node = 0.0, 0.0, -1
        rest: list[Array] = []
        for k, part in enumerate(self.parts):
            truth = self.body.shells(self.truth, part) if self.kept is None else self.kept[k]
            gap = self.body.shells(given, part) - truth
            gap *= gap
            squared = gap.sum(axis=2).max(axis=1)
            most = int(np.argmax(squared))
            w, f = divmod(most, len(part))
            if float(squared[w, f]) > worst:
                worst, at, node = float(squared[w, f]), float(part[f]), self.body.watched[w]
            rest.append(squared.ravel())
        if not rest or not self.body.watched:
            return NOTHING
        return Measured(float(np.sqrt(worst)), float(np.sqrt(np.percentile(np.concatenate(rest), 99.0))), node, at)


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
