# SPDX-License-Identifier: GPL-3.0-or-later
"""Clips made small, with a bound on how far any part of the character is moved by it (:mod:`.node_metric`).

Two things are done, each only as far as the bound lets it. Numbers are written shorter, each channel's by itself: the hips turn a whole
body, a finger tip two centimetres. And keys are left out that their neighbours give: all keys of a channel are put in the order in which
Ramer, Douglas and Peucker would add them (1972/73; errors of rotations are angles times the length of what hangs on the bone), and as many
of them are left out, of all channels at one and the same level, as the bound allows. Nothing is believed: every candidate is measured by the
whole hierarchy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from .node_clip import Channel, NodeClip, spherical, whole
from .node_metric import SHELL, Body, Judge, Measured

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_ROUNDING = (0.03, 0.12, 0.4)
"""Shares of the bound that the rounding of one channel may take: each is tried, and the shortest result taken."""
_ROUGH = 0.97
"""Share of the bound that is looked for on the samples alone; halfway between them the error is a little larger."""
_ALL_ROUNDING = 0.7
"""Share of the bound that all rounding together may take before it is made finer."""
_LOWEST, _HIGHEST, _HALVINGS = 0.01, 4.0, 7
_REACH_SAMPLES = 24


class Writing(Protocol):
    """How a format writes the numbers of a channel."""

    def choices(self, channel: Channel) -> Sequence[int]:
        """The ways it can, the shortest first."""
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

    def in_pose(channels: Sequence[Channel]) -> Sequence[Channel]:
        return whole(replace(clip, channels=tuple(channels))).channels

    exact = Judge(body, truth, clip.times)
    if bound is None:
        finest = tuple(writing.choices(c)[-1] for c in clip.channels)
        out = tuple(writing.rounded(c, k) for c, k in zip(clip.channels, finest, strict=True))
        return Compact(replace(clip, channels=out), finest, exact.measure(in_pose(out)))
    rough = Judge(body, truth, clip.times, rough=True)
    reach = reaches(clip, body, truth)
    orders = _orders(clip.channels, reach, bound) if thin else [None] * len(clip.channels)
    best: Compact | None = None
    size = 0
    for share in _ROUNDING:
        tried = _tried(clip, reach, orders, bound * _ROUGH, share, writing, lambda channels: rough.measure(in_pose(channels)))
        length = sum(writing.length(c, k) for c, k in zip(tried[0], tried[1], strict=True))
        if best is None or length < size:
            best, size = Compact(replace(clip, channels=tuple(tried[0])), tuple(tried[1]), exact.measure(in_pose(tried[0]))), length
            if best.measured.worst > bound:  # between samples, or at a point that was not looked at
                tighter = bound * _ROUGH * bound / best.measured.worst * 0.95
                channels, choices = _tried(clip, reach, orders, tighter, share, writing, lambda c: rough.measure(in_pose(c)))
                best = Compact(replace(clip, channels=tuple(channels)), tuple(choices), exact.measure(in_pose(channels)))
    assert best is not None
    return best


def _tried(
    clip: NodeClip, reach: Array, orders: Sequence[Array | None], bound: float, share: float, writing: Writing, measure: _Measure
) -> tuple[list[Channel], list[int]]:
    """Numbers rounded so that each channel takes ``share`` of the bound at most, then as few keys as it allows."""
    choices, rounded = _choose(clip.channels, reach, bound, share, writing, measure)
    return _thinned(clip.channels, rounded, choices, orders, bound, writing, measure), choices


def reaches(clip: NodeClip, body: Body, truth: Sequence[Channel]) -> Array:
    """(C,): metres from a channel's node to the farthest shell that hangs on it."""
    at = clip.times[np.unique(np.linspace(0, len(clip.times) - 1, _REACH_SAMPLES).astype(int))]
    moving = {c.node for c in clip.channels}
    points = Body(body.tree, {*body.watched, *moving}).over(moving)
    places = points.at(truth, at)
    of = points.of
    below: dict[int, list[int]] = {}
    for row, n in enumerate(of.tolist()):
        for a in (n, *body.tree.ancestors(n)):
            below.setdefault(a, []).append(row)
    first = {n: rows[0] for n, rows in _rows(of).items()}
    out = np.full(len(clip.channels), SHELL)
    for k, c in enumerate(clip.channels):
        apart = places[below[c.node]] - places[first[c.node]]
        out[k] = max(SHELL, float(np.sqrt(np.einsum("pcf,pcf->pf", apart, apart).max())))
    return out


def _rows(of: NDArray[np.int64]) -> dict[int, list[int]]:
    out: dict[int, list[int]] = {}
    for row, n in enumerate(of.tolist()):
        out.setdefault(n, []).append(row)
    return out


def importance(values: Array, times: Array, weight: Array, *, rotations: bool, least: float) -> Array:
    """In which order keys matter.

    Parameters
    ----------
    values : (F, C, n) array
        Channels with the same times; rotations of continuous sign.
    times : (F,) array
    weight : (C,) array
        What an error of one radian or one unit counts.
    least : float
        Keys that count less need no order.

    Returns
    -------
    (F, C) array
        Leaving out all keys at or below a level leaves errors of that level, channel by channel. The ends are infinite.
    """
    frames, count = values.shape[:2]
    flat = np.ascontiguousarray(values.transpose(1, 0, 2)).reshape(frames * count, -1)
    out = np.zeros(frames * count)
    keep = np.zeros(frames * count, dtype=bool)
    keep[::frames] = keep[frames - 1 :: frames] = True
    out[keep] = np.inf
    seconds = np.tile(times, count)
    scale = np.repeat(weight, frames)
    active = np.flatnonzero(~keep)
    while active.size:
        keys = np.flatnonzero(keep)
        span = np.searchsorted(keys, active) - 1
        left, right = keys[span], keys[span + 1]
        share = (seconds[active] - seconds[left]) / (seconds[right] - seconds[left])
        if rotations:
            guess = spherical(flat[left], flat[right], share)
            error = quat.angle(guess, flat[active]) * scale[active]
        else:
            guess = flat[left] * (1.0 - share[:, None]) + flat[right] * share[:, None]
            error = np.sqrt(np.einsum("fi,fi->f", guess - flat[active], guess - flat[active])) * scale[active]
        starts = np.flatnonzero(np.concatenate([[True], np.diff(span) != 0]))
        most = np.maximum.reduceat(error, starts)
        size = np.diff(np.append(starts, len(span)))
        of_span = np.repeat(most, size)
        at = np.flatnonzero((error == of_span) & (of_span > least))
        if not at.size:
            break
        at = at[np.concatenate([[True], np.diff(span[at]) != 0])]  # one key a span
        chosen = active[at]
        out[chosen] = np.minimum(error[at], np.minimum(out[left[at]], out[right[at]]))
        keep[chosen] = True
        going_on = (of_span > least) & ~keep[active]
        active = active[going_on]
    return out.reshape(count, frames).T


def _choose(
    channels: Sequence[Channel], reach: Array, bound: float, share: float, writing: Writing, measure: _Measure
) -> tuple[list[int], list[Channel]]:
    """The shortest way of writing for each channel, and what is read then."""
    ladders = [list(writing.choices(c)) for c in channels]
    step = [0] * len(channels)
    rounded = [writing.rounded(c, ladder[0]) for c, ladder in zip(channels, ladders, strict=True)]
    errors = np.array([_rounding(c, r) for c, r in zip(channels, rounded, strict=True)]) * reach

    def finer(k: int) -> None:
        step[k] += 1
        rounded[k] = writing.rounded(channels[k], ladders[k][step[k]])
        errors[k] = _rounding(channels[k], rounded[k]) * reach[k]

    for k, ladder in enumerate(ladders):
        while len(ladder) > 2 and errors[k] > share * bound and step[k] + 1 < len(ladder):
            finer(k)
    for _ in range(4 * len(channels) + 1):
        if measure(rounded).worst <= _ALL_ROUNDING * bound:
            break
        open_ = [k for k in range(len(channels)) if step[k] + 1 < len(ladders[k])]
        if not open_:
            break
        for k in sorted(open_, key=lambda k: -errors[k])[: max(1, len(open_) // 12)]:
            finer(k)
    return [ladder[s] for ladder, s in zip(ladders, step, strict=True)], rounded


class _Measure(Protocol):
    def __call__(self, channels: Sequence[Channel]) -> Measured: ...


def _thinned(
    channels: Sequence[Channel],
    rounded: Sequence[Channel],
    choices: Sequence[int],
    orders: Sequence[Array | None],
    bound: float,
    writing: Writing,
    measure: _Measure,
) -> list[Channel]:
    """As few keys as the bound allows."""

    def at_level(level: float) -> list[Channel]:
        out: list[Channel] = []
        for c, r, choice, rank in zip(channels, rounded, choices, orders, strict=True):
            kept = rank > level if rank is not None else None
            if kept is None or kept.all() or not writing.worth(c, int(kept.sum()), choice):
                out.append(r)
            else:
                out.append(replace(r, times=r.times[kept], values=r.values[kept]))
        return out

    if all(rank is None for rank in orders):
        return list(rounded)
    low, high = float(np.log(_LOWEST)), float(np.log(_HIGHEST))
    best = list(rounded)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        tried = at_level(float(np.exp(middle)))
        if measure(tried).worst <= bound:
            best, low = tried, middle
        else:
            high = middle
    return best


def _orders(channels: Sequence[Channel], reach: Array, bound: float) -> list[Array | None]:
    """The importance of each channel's keys as a share of the bound; None where nothing can be left out."""
    out: list[Array | None] = [None] * len(channels)
    groups: dict[tuple[int, bool], list[int]] = {}
    for k, c in enumerate(channels):
        if len(c.times) > 2:
            groups.setdefault((id(c.times), c.path == "rotation"), []).append(k)
    for (_, rotations), members in groups.items():
        values = np.stack([channels[k].values for k in members], axis=1)
        size = np.array([reach[k] if channels[k].path != "translation" else channels[k].metres for k in members])
        found = importance(values, channels[members[0]].times, size / bound, rotations=rotations, least=_LOWEST)
        for column, k in enumerate(members):
            out[k] = found[:, column]
    return out


def _rounding(given: Channel, read: Channel) -> float:
    """How far rounding takes a channel: radians, or metres; of scales a share."""
    apart = np.abs(given.values - read.values)
    if given.path == "rotation":
        return 2.0 * float(np.sqrt(np.einsum("fi,fi->f", apart, apart).max()))
    return float(np.sqrt(np.einsum("fi,fi->f", apart, apart).max())) * (given.metres / SHELL if given.path == "translation" else 1.0)
