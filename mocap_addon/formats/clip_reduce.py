# SPDX-License-Identifier: GPL-3.0-or-later
"""Clips made small, with a bound on how far any part of the character is moved by it (:mod:`.node_metric`).

Numbers are written shorter, and keys are left out that their neighbours give. Both are errors of a bone's rotation, and what hangs on the
bone would inherit them: at the fingers the errors of eight bones add up. So bones are treated from the root outwards, and each is made to
stand in the world where it should although what it hangs on does not. With ``W`` a bone's true rotation, ``V`` the one that was written and
``R = V^-1 W``, the child with true local rotation ``q`` behind a fixed turn ``B`` is written as ``B^-1 R B q``. Then an error of one bone
moves what hangs on it by the bone's own length times the angle, not by the length of all that follows.

How much each bone may be off is one share of the bound over its length, the same for all; the largest share that keeps the bound is found
by halving. Nothing is believed: every candidate is measured by the whole hierarchy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from .clip_thin import kept_keys
from .node_clip import Channel, NodeClip, whole
from .node_metric import NOTHING, SHELL, Body, Judge, Measured, compare_samples

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_ROUGH = 0.97
"""Share of the bound that is looked for on the samples alone; halfway between them the error is a little larger."""
_LOWEST, _HIGHEST, _HALVINGS = 0.02, 1.5, 6
_MANY = 150


class Writing(Protocol):
    """How a format writes the numbers of a channel."""

    @property
    def shares(self) -> Sequence[float]:
        """Shares of the bound that the rounding of one channel may take: each is tried."""
        ...

    def choice(self, channel: Channel, finest: float) -> int:
        """The shortest way of writing that is off by at most ``finest`` (radians, or units of a place or scale)."""
        ...

    def exact(self, channel: Channel) -> int:
        """The way that keeps every digit worth having."""
        ...

    def rounded(self, channel: Channel, choice: int) -> Channel:
        """What a reader gets."""
        ...

    def length(self, channel: Channel, choice: int) -> int:
        """About how many bytes a channel takes."""
        ...

    def worth(self, channel: Channel, kept: int, choice: int) -> bool:
        """Whether ``kept`` keys with times of their own are shorter than all of them."""
        ...


@dataclass(frozen=True, eq=False)
class Compact:
    """A clip as it will be read, and the error of that. ``choices`` is the way of writing of each channel."""

    clip: NodeClip
    choices: tuple[int, ...]
    measured: Measured


def compact(clip: NodeClip, body: Body, bound: float | None, writing: Writing, *, thin: bool = True) -> Compact:
    """Write a clip as short as the bound allows.

    Parameters
    ----------
    clip : NodeClip
    body : Body
        Its nodes, and which of them count.
    bound : float or None
        Metres. None: nothing is left out and all is written to the last digit.
    writing : Writing
    thin : bool
        Whether keys may be left out.

    Returns
    -------
    Compact
        ``measured`` is what the result was measured at. Where even all keys to the last digit miss the bound, that is the result.
    """
    truth = whole(clip).channels
    if bound is None:
        choices = tuple(writing.exact(c) for c in clip.channels)
        out = tuple(writing.rounded(c, k) for c, k in zip(clip.channels, choices, strict=True))
        return Compact(replace(clip, channels=out), choices, measure(clip, body, truth, out, between=False))
    search = _Search(clip, body, writing, thin)
    best: Compact | None = None
    for share in writing.shares:
        channels, choices = search.within(bound, share)
        if best is not None and search.size(channels, choices) >= search.size(best.clip.channels, best.choices):
            continue
        found = measure(clip, body, truth, channels)
        if found.worst > bound:  # between samples, or at a point that was not looked at
            channels, choices = search.within(0.93 * bound * bound / found.worst, share)
            found = measure(clip, body, truth, channels)
        best = Compact(replace(clip, channels=tuple(channels)), tuple(choices), found)
    if best is None or best.measured.worst > bound:
        finest = compact(clip, body, None, writing)
        return finest if best is None or finest.measured.worst < best.measured.worst else best
    return best


def measure(clip: NodeClip, body: Body, truth: Sequence[Channel], given: Sequence[Channel], *, between: bool = True) -> Measured:
    """The errors of channels that stand for a clip's. ``between``: also halfway between samples, which keys that were left out need."""
    if not truth:
        return NOTHING
    pose = whole(replace(clip, channels=tuple(given))).channels
    samples = clip.times
    if not between and len(samples) > _MANY:  # rounding of numbers is the same everywhere
        samples = samples[np.unique(np.linspace(0, len(samples) - 1, _MANY).astype(int))]
    if not between:
        return compare_samples(body, truth, pose, samples)
    judge = Judge(body, truth, samples)
    # Rounded rotations are not quite of unit length. Some players make them so, others shrink the bone by it; the larger error counts.
    unit = [replace(c, values=quat.normalize(c.values)) if c.path == "rotation" else c for c in pose]
    return max(judge.measure(pose), judge.measure(unit), key=lambda found: found.worst)


class _Search:
    """One clip: what is needed to try ways of writing it."""

    def __init__(self, clip: NodeClip, body: Body, writing: Writing, thin: bool) -> None:
        self.clip, self.writing, self.thin = clip, writing, thin
        self.tree = body.tree
        self.truth = whole(clip).channels
        self.rough = Judge(body, self.truth, clip.times, rough=True)
        self.lengths = _lengths(clip, body, self.truth, inherited=clip.additive)
        moving = {c.node for c in clip.channels}
        self.above = {n: next((a for a in self.tree.ancestors(n) if a in moving), -1) for n in moving}
        self.between = {n: self._turn(n, self.above[n]) for n in moving}
        self.levels = self._levels(moving)

    def size(self, channels: Sequence[Channel], choices: Sequence[int]) -> int:
        """About how many bytes."""
        return sum(self.writing.length(c, k) for c, k in zip(channels, choices, strict=True))

    def within(self, bound: float, share: float) -> tuple[list[Channel], list[int]]:
        """The shortest within the bound, on the samples."""
        choices = [self.writing.choice(c, share * bound / reach) for c, reach in zip(self.clip.channels, self.lengths, strict=True)]
        limit = _ROUGH * bound

        def error(channels: Sequence[Channel]) -> float:
            return self.rough.measure(whole(replace(self.clip, channels=tuple(channels))).channels).worst

        best = self._written(choices, 0.0)
        for _ in range(4):
            if error(best) <= 0.9 * limit:
                break
            share *= 0.5
            choices = [self.writing.choice(c, share * bound / reach) for c, reach in zip(self.clip.channels, self.lengths, strict=True)]
            best = self._written(choices, 0.0)
        else:
            choices = [self.writing.exact(c) for c in self.clip.channels]
            best = self._written(choices, 0.0)
        if not self.thin or len(self.clip.times) < 3 or error(best) > limit:
            return best, choices
        low, high = float(np.log(_LOWEST)), float(np.log(_HIGHEST))
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            tried = self._written(choices, float(np.exp(middle)) * bound)
            if error(tried) <= limit:
                best, low = tried, middle
            else:
                high = middle
        return best, choices

    def _written(self, choices: Sequence[int], allowed: float) -> list[Channel]:
        """All channels, rotations from the root outwards; ``allowed`` is how far (metres) left out keys may move a bone's end."""
        out = list(self.clip.channels)
        left: dict[int, Array] = {}  # node -> R, (F, 4); missing: nothing is off
        for level in self.levels:
            targets = {k: self._target(k, left) for k in level}
            kept = self._kept(targets, choices, allowed)
            for k in level:
                c = self.clip.channels[k]
                given = replace(c, values=targets[k])
                read = self.writing.rounded(given, choices[k])
                if kept.get(k) is not None:
                    read = replace(read, times=read.times[kept[k]], values=read.values[kept[k]])
                out[k] = read
                if c.path == "rotation" and not self.clip.additive:
                    self._leave(c, targets[k], read, left)
        return out

    def _target(self, k: int, left: dict[int, Array]) -> Array:
        """What the channel has to hold so that the bone stands where it should."""
        c = self.clip.channels[k]
        over = left.get(self.above[c.node])
        if over is None or c.path != "rotation" or c.constant or len(over) != len(c.values):
            return c.values
        turn = self.between[c.node]
        return quat.mul(quat.mul(quat.mul(quat.inv(turn), over), turn), c.values)

    def _leave(self, c: Channel, target: Array, read: Channel, left: dict[int, Array]) -> None:
        """What the bones below have to make good."""
        if c.constant:
            over = left.get(self.above[c.node])
            if over is None:
                return
            turn = quat.mul(self.between[c.node], c.values[0])
            left[c.node] = quat.mul(quat.mul(quat.inv(turn), over), turn)
            return
        shown = read.values if len(read.times) == len(c.times) else read.at(self._as_read(c, read))
        left[c.node] = quat.mul(quat.inv(quat.normalize(shown)), target)

    def _as_read(self, c: Channel, read: Channel) -> Array:
        """The samples' times as a reader has them: those of the keys are the keys' own."""
        return self.writing.rounded(c, self.writing.exact(c)).times if read.times[-1] != c.times[-1] else c.times

    def _kept(self, targets: dict[int, Array], choices: Sequence[int], allowed: float) -> dict[int, Mask]:
        out: dict[int, Mask] = {}
        if allowed <= 0.0:
            return out
        groups: dict[tuple[bool, int], list[int]] = {}
        for k in targets:
            c = self.clip.channels[k]
            if not c.constant and len(c.times) == len(self.clip.times):
                groups.setdefault((c.path == "rotation", c.values.shape[1]), []).append(k)
        for (rotations, _), members in groups.items():
            limits = np.array([allowed / self.lengths[k] for k in members])
            masks = kept_keys(np.stack([targets[k] for k in members]), self.clip.times, limits, rotations=rotations)
            for k, mask in zip(members, masks, strict=True):
                if not mask.all() and self.writing.worth(self.clip.channels[k], int(mask.sum()), choices[k]):
                    out[k] = mask
        return out

    def _levels(self, moving: set[int]) -> list[list[int]]:
        depth: dict[int, int] = {}
        for n in self.tree.order:
            if n in moving:
                depth[n] = 0 if self.above[n] < 0 else depth[self.above[n]] + 1
        out: list[list[int]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
        for k, c in enumerate(self.clip.channels):
            out[depth[c.node]].append(k)
        has_turn = {c.node for c in self.clip.channels if c.path == "rotation"}
        if has_turn != moving:  # a node that only travels passes on what is above it
            self._pass_on(moving - has_turn)
        return out

    def _pass_on(self, nodes: set[int]) -> None:
        for n in [m for m in self.tree.order if m in self.above]:
            a = self.above[n]
            if a in nodes:
                self.between[n] = quat.mul(quat.mul(self.between[a], self.tree.rotations[a]), self.between[n])
                self.above[n] = self.above[a]

    def _turn(self, node: int, above: int) -> Array:
        """(4,): the fixed turns between a node and the moving one above it."""
        q = quat.IDENTITY
        for a in self.tree.ancestors(node):
            if a == above:
                break
            q = quat.mul(self.tree.rotations[a], q)
        return q


def _lengths(clip: NodeClip, body: Body, truth: Sequence[Channel], *, inherited: bool) -> Array:
    """(C,): metres that an error of one radian, or one unit of a place, of a channel moves something by.

    Of a rotation the distance to the farthest of what is fixed to the node and of the moving nodes below; with ``inherited`` to the
    farthest of all that hangs on it.
    """
    at = clip.times[np.unique(np.linspace(0, len(clip.times) - 1, 16).astype(int))]
    moving = {c.node for c in clip.channels}
    points = Body(body.tree, {*body.watched, *moving}).over(moving)
    places, of = points.at(truth, at), points.of
    carried = np.concatenate([np.full(len(step.of), step.node) for step in points.steps])
    owners: list[int] = of.tolist()
    row = {n: r for r, n in reversed(list(enumerate(owners)))}
    above = {n: next((a for a in body.tree.ancestors(n) if a in moving), -1) for n in moving}
    below: dict[int, list[int]] = {n: np.flatnonzero(carried == n).tolist() for n in moving}
    for n in moving:
        chain = [a for a in body.tree.ancestors(n) if a in moving] if inherited else [above[n]]
        for a in chain:
            if a >= 0:
                below[a] += np.flatnonzero(carried == n).tolist() if inherited else [row[n]]
    out = np.empty(len(clip.channels))
    for k, c in enumerate(clip.channels):
        apart = places[below[c.node]] - places[row[c.node]]
        far = max(SHELL, float(np.sqrt(np.einsum("pcf,pcf->pf", apart, apart).max())))
        out[k] = c.metres if c.path == "translation" else far
    return out
