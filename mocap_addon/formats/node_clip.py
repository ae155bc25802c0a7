# SPDX-License-Identifier: GPL-3.0-or-later
"""A clip on the nodes of a glTF file: what three.js JSON, GLB and their reduction share.

A channel is one property of one node with keys of its own. Between keys players interpolate linearly, rotations by slerp, except where a
channel holds its value until the next key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import MocapError
from .node_pose import NodeMotion

Array = NDArray[np.float64]
Path = Literal["rotation", "translation", "scale"]

SAME = 1e-9
"""Numbers that differ by less are one value: a channel that moves less stands still."""


@dataclass(frozen=True, eq=False)
class Channel:
    """Keys of one property of one node.

    Parameters
    ----------
    node : int
    path : "rotation", "translation" or "scale"
    times : (K,) array
        Seconds, strictly rising; one key: it stays so.
    values : (K, 4) wxyz or (K, 3) array
        Rotations of unit length and continuous sign; translations in the parent's unit.
    metres : float
        How long that unit is.
    """

    node: int
    path: Path
    times: Array
    values: Array
    metres: float = 1.0

    @property
    def constant(self) -> bool:
        """Whether nothing moves."""
        return len(self.times) == 1

    def at(self, times: Array) -> Array:
        """(F, 4) or (F, 3): the values at ``times``, held before the first key and after the last."""
        values = values_at((self,), times)[0]
        return np.repeat(values, len(times), axis=0) if self.constant else values


def values_at(channels: Sequence[Channel], times: Array) -> list[Array]:
    """The values ``(F, n)`` of each channel at ``times``, one row of what stands still; see :meth:`Channel.at`.

    Channels that share the array of their times are worked out together.
    """
    out = [c.values for c in channels]
    together: dict[tuple[int, bool], list[int]] = {}
    for k, c in enumerate(channels):
        if not c.constant and c.times is not times:
            together.setdefault((id(c.times), c.path == "rotation"), []).append(k)
    for (_, turns), members in together.items():
        keys = channels[members[0]].times
        if np.array_equal(times, keys):
            continue
        after = np.clip(np.searchsorted(keys, times, side="right"), 1, len(keys) - 1)
        before = after - 1
        share = np.clip((times - keys[before]) / (keys[after] - keys[before]), 0.0, 1.0)
        picked, inside = np.where(share < 1.0, before, after), np.flatnonzero((share > 0.0) & (share < 1.0))
        for k in members:
            out[k] = channels[k].values[picked]
        if inside.size:
            a = np.concatenate([channels[k].values[before[inside]] for k in members])
            b = np.concatenate([channels[k].values[after[inside]] for k in members])
            shares = np.tile(share[inside], len(members))
            found = spherical(a, b, shares) if turns else a * (1.0 - shares[:, None]) + b * shares[:, None]
            for k, some in zip(members, np.split(found, len(members)), strict=True):
                out[k][inside] = some
    return out


@dataclass(frozen=True, eq=False)
class MorphCurve:
    """One morph target of one mesh: ``values (F,)`` at the clip's times; ``mesh`` is what three.js calls it, ``index`` its place there."""

    node: int
    mesh: str
    target: str
    index: int
    values: Array


@dataclass(frozen=True, eq=False)
class ScalarCurve:
    """A number that travels with the pose: ``values (F,)`` at the clip's times; discrete ones hold until the next key."""

    name: str
    values: Array
    discrete: bool


@dataclass(frozen=True, eq=False)
class NodeClip:
    """One clip.

    Parameters
    ----------
    name : str
    times : (F,) array
        Seconds of the samples it was made from; the first is 0.
    channels : tuple of Channel
    rate : Fraction or None
    morphs, scalars : tuples
    path : (F, 3), (F, 4) or None
        The way that was taken off an in-place clip: places in metres and turns wxyz, in the file's axes.
    reference : mapping of (node, path) to (4,) or (3,) array
        Of an additive clip: the pose that its values are counted from.
    user_data : mapping
    loop : bool
        The last sample is the first again.
    """

    name: str
    times: Array
    channels: tuple[Channel, ...]
    rate: Fraction | None = None
    morphs: tuple[MorphCurve, ...] = ()
    scalars: tuple[ScalarCurve, ...] = ()
    path: tuple[Array, Array] | None = None
    reference: Mapping[tuple[int, Path], Array] = field(default_factory=dict[tuple[int, Path], Array])
    user_data: Mapping[str, object] = field(default_factory=dict[str, object])
    loop: bool = False

    @property
    def duration(self) -> float:
        """Seconds."""
        if len(self.times) > 1:
            return float(self.times[-1])
        return float(1 / self.rate) if self.rate else 1.0 / 30.0  # players divide by it

    @property
    def additive(self) -> bool:
        """Whether the values are differences from a pose."""
        return bool(self.reference)


def channels_of(times: Array, motions: Iterable[NodeMotion]) -> tuple[Channel, ...]:
    """The channels of nodes that move, a key on every sample; what stands still has one key."""
    motions = list(motions)
    out: list[Channel] = []
    turns = _unit_rotations(motions)
    for motion in motions:
        found: tuple[tuple[Path, Array | None], ...] = (
            ("rotation", turns.get(motion.node)),
            ("translation", motion.translations),
            ("scale", motion.scale),
        )
        for path, values in found:
            if values is not None:
                out.append(_keyed(motion.node, path, times, values, motion.metres))
    return tuple(out)


def _unit_rotations(motions: Sequence[NodeMotion]) -> dict[int, Array]:
    """The rotations of nodes, of unit length and continuous sign; those of one length are worked out together."""
    by_length: dict[int, dict[int, Array]] = {}
    for motion in motions:
        if motion.rotations is not None:
            by_length.setdefault(len(motion.rotations), {})[motion.node] = motion.rotations
    out: dict[int, Array] = {}
    for length, some in by_length.items():
        together = np.empty((length, len(some), 4), order="F")
        for k, values in enumerate(some.values()):
            together[:, k] = values
        _check_rotations(list(some), together)
        together = quat.continuous(quat.normalize(together))
        out.update({node: together[:, k] for k, node in enumerate(some)})
    return out


def channel(node: int, path: Path, times: Array, values: Array, metres: float = 1.0) -> Channel:
    """A channel from values ``(F, n)`` or ``(1, n)``.

    Raises
    ------
    MocapError
        For values that are not finite or a rotation of no length.
    """
    values = np.asarray(values, dtype=np.float64)
    if path == "rotation":
        _check_rotations([node], values[:, None])
        values = quat.continuous(quat.normalize(values))
    return _keyed(node, path, times, values, metres)


def _check_rotations(nodes: Sequence[int], values: Array) -> None:
    """Raise for rotations ``(F, C, 4)`` of nodes that are none."""
    squares = np.einsum("fci,fci->cf", values, values)
    odd = ~np.all(np.isfinite(squares), axis=1)
    if odd.any():
        raise MocapError(f"In the rotation of node {nodes[int(np.argmax(odd))]} are values that are not numbers; clean the take first.")
    short = np.any(squares < 1e-12, axis=1)
    if short.any():
        raise MocapError(f"In the rotation of node {nodes[int(np.argmax(short))]} is one of zero length; clean the take first.")


def _keyed(node: int, path: Path, times: Array, values: Array, metres: float) -> Channel:
    """A channel of values that are as they should be; one that stands still has one key."""
    if not np.all(np.isfinite(values)):
        raise MocapError(f"In the {path} of node {node} are values that are not numbers; clean the take first.")
    if len(values) == 1 or float(np.abs(values - values[:1]).max()) < SAME:
        return Channel(node, path, times[:1], values[:1], metres)
    return Channel(node, path, times, values, metres)


def only(clip: NodeClip, nodes: Iterable[int]) -> NodeClip:
    """The clip without the channels of other nodes."""
    wanted = set(nodes)
    return replace(clip, channels=tuple(c for c in clip.channels if c.node in wanted))


def closed(clip: NodeClip) -> NodeClip:
    """The clip as a loop: its end is its beginning. One more frame is added unless the last pose already is the first.

    The same pose is meant where no rotation is more than 0.05 degrees off and nothing is more than 0.1 mm away.
    """
    if len(clip.times) < 2:
        return replace(clip, loop=True)
    apart = max((_apart(c) for c in clip.channels if not c.constant), default=0.0)
    if apart < 1.0:
        return replace(clip, loop=True, channels=tuple(_snapped(c) for c in clip.channels))
    step = float(1 / clip.rate) if clip.rate else float(np.median(np.diff(clip.times)))
    times = np.append(clip.times, clip.times[-1] + step)

    def grown(c: Channel) -> Channel:
        if c.constant:
            return c
        return channel(c.node, c.path, times, np.concatenate([c.values, c.values[:1]]), c.metres)

    def again(values: Array) -> Array:
        return np.append(values, values[0])

    return replace(
        clip,
        times=times,
        channels=tuple(map(grown, clip.channels)),
        morphs=tuple(replace(m, values=again(m.values)) for m in clip.morphs),
        scalars=tuple(replace(s, values=again(s.values)) for s in clip.scalars),
        path=None if clip.path is None else (_go_on(clip.path[0]), np.concatenate([clip.path[1], clip.path[1][-1:]])),
        loop=True,
    )


def additive(clip: NodeClip, frame: int = 0) -> NodeClip:
    """The clip as differences from its pose on a sample: rotations ``ref^-1 q``, translations and scales ``v - ref``.

    That is what players with additive blending add to the pose below. Channels that do not move then say nothing and are left out.
    """
    frame = min(frame, len(clip.times) - 1)
    moving = [c for c in clip.channels if not c.constant]
    if not moving:
        raise MocapError(f'The clip "{clip.name}" does not move, so there is no difference to write; write it as a plain clip.')
    reference: dict[tuple[int, Path], Array] = {}
    out: list[Channel] = []
    for c in moving:
        ref = c.at(clip.times[[frame]])[0]
        reference[c.node, c.path] = ref
        values = quat.mul(quat.inv(ref), c.values) if c.path == "rotation" else c.values - ref
        out.append(replace(c, values=values))
    morphs = tuple(replace(m, values=m.values - m.values[frame]) for m in clip.morphs)
    return replace(clip, channels=tuple(out), reference=reference, morphs=morphs)


def whole(clip: NodeClip) -> NodeClip:
    """The reverse of :func:`additive`, for measuring."""
    out: list[Channel] = []
    for c in clip.channels:
        ref = clip.reference.get((c.node, c.path))
        if ref is not None:
            c = replace(c, values=quat.mul(ref, c.values) if c.path == "rotation" else c.values + ref)
        out.append(c)
    return replace(clip, channels=tuple(out), reference={})


def same_nodes(clips: Sequence[NodeClip], standing: Mapping[tuple[int, Path], Array]) -> list[NodeClip]:
    """Clips that all have a channel for what any of them moves: cross-fades pull on what one of two clips leaves out.

    ``standing`` is the place of a node in the file, for clips that do not move it.
    """
    wanted: dict[tuple[int, Path], float] = {}
    for clip in clips:
        for c in clip.channels:
            wanted.setdefault((c.node, c.path), c.metres)
    out: list[NodeClip] = []
    for clip in clips:
        have = {(c.node, c.path) for c in clip.channels}
        more = [
            Channel(node, path, clip.times[:1], standing[node, path][None], metres)
            for (node, path), metres in wanted.items()
            if (node, path) not in have
        ]
        out.append(replace(clip, channels=(*clip.channels, *more)))
    return out


def spherical(a: Array, b: Array, share: Array) -> Array:
    """Slerp as players do it: the ends come out as they are, also where rounding took them off unit length."""
    dot = np.einsum("fi,fi->f", a, b)
    b = b * np.where(dot < 0.0, -1.0, 1.0)[:, None]
    minus, plus = a - b, a + b
    omega = 2.0 * np.arctan2(np.sqrt(np.einsum("fi,fi->f", minus, minus)), np.sqrt(np.einsum("fi,fi->f", plus, plus)))
    bottom = np.sinc(omega / np.pi)
    wa = (1.0 - share) * np.sinc((1.0 - share) * omega / np.pi) / bottom
    wb = share * np.sinc(share * omega / np.pi) / bottom
    return wa[:, None] * a + wb[:, None] * b


def _apart(c: Channel) -> float:
    """How far a channel's end is from its beginning, 1 where it is as far as the same pose may be."""
    first, last = c.values[0], c.values[-1]
    if c.path == "rotation":
        return float(quat.angle(first, last)) / np.radians(0.05)
    return float(np.linalg.norm(last - first)) * (c.metres if c.path == "translation" else 0.1) / 1e-4


def _snapped(c: Channel) -> Channel:
    if c.constant:
        return c
    values = c.values.copy()
    first = values[0]
    values[-1] = -first if c.path == "rotation" and float(first @ values[-1]) < 0.0 else first
    return replace(c, values=values)


def _go_on(places: Array) -> Array:
    """The way goes on for one more frame as it did for the last."""
    step = places[-1] - places[-2]
    return np.concatenate([places, (places[-1] + step)[None]])
