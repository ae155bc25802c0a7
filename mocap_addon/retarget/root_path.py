# SPDX-License-Identifier: GPL-3.0-or-later
"""The way a character goes, and which way it faces on it: what root motion is made of.

A path is the motion of something that stands upright: a point, the *anchor*, at ``a(t)``, and a heading ``h(t)`` about the vertical. With
``a0`` the anchor at rest it carries every point ``p`` of the character at rest to

    C(t) p = a(t) + Rz(h(t)) (p - a0)                                                                          (1)

so at rest ``C`` is the identity. What the hips keep is ``C^-1 H``, ``H`` their motion in the world: ``C`` times that is ``H`` again,
whatever ``C`` is.

The heading of a body is the twist of its turn away from rest, ``D = H H0^-1``, about the vertical: of all headings the one from which ``D``
is the smallest turn. A body that leans, bows or lies has one; the direction in which one of its axes points over the ground does not (it
turns round when the axis passes the vertical). Only of a body that stands on its head nothing can be said: there the twist spins through a
whole turn within a moment, though the body goes straight over. Where the swing exceeds 120 degrees the heading therefore goes evenly from
what it was before to what it is after, the shorter way round.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..motion import quat

Array = NDArray[np.float64]

UP: Array = np.array([0.0, 0.0, 1.0])

_UPRIGHT = np.cos(0.5 * np.radians(120.0))
"""Cosine of half the swing up to which a turn has a heading of its own."""

_TAILS = 5.0


@dataclass(frozen=True, eq=False)
class RootPath:
    """Motion of an upright carrier.

    Parameters
    ----------
    places : (F, 3) array
        Metres: where the anchor is.
    headings : (F,) array
        Radians about the vertical away from rest, without jumps: two turns are 4 pi.
    anchor : (3,) array
        Metres: where it is at rest.
    """

    places: Array
    headings: Array
    anchor: Array

    @property
    def turns(self) -> Array:
        """(F, 4): the headings as rotations."""
        return about_up(self.headings)

    @property
    def shifts(self) -> Array:
        """(F, 3): where the carrier takes the origin; with :attr:`turns` all of equation (1)."""
        return self.places - quat.rotate(self.turns, self.anchor)

    def carry(self, rotations: Array, positions: Array) -> tuple[Array, Array]:
        """``C`` times rotations ``(F | 1, 4)`` and positions ``(F | 1, 3)`` in the world."""
        turns = self.turns
        return quat.mul(turns, rotations), self.places + quat.rotate(turns, positions - self.anchor)

    def leave(self, rotations: Array, positions: Array) -> tuple[Array, Array]:
        """``C^-1`` times rotations and positions: what is left when the path is taken off."""
        back = quat.inv(self.turns)
        return quat.mul(back, rotations), self.anchor + quat.rotate(back, positions - self.places)

    def only(self, axes: Iterable[str], *, heading: bool) -> RootPath:
        """The path along some of the world's axes (letters of ``xyz``), with or without heading; along the others the anchor is at rest."""
        taken = np.array([axis in set(axes) for axis in "xyz"])
        return replace(
            self,
            places=np.where(taken, self.places, self.anchor),
            headings=self.headings if heading else np.zeros(len(self.headings)),
        )

    def smoothed(self, times: Array, seconds: float) -> RootPath:
        """The path through :func:`low_pass`."""
        if seconds <= 0.0 or len(times) < 3:
            return self
        joined = low_pass(np.column_stack([self.places, self.headings]), times, seconds)
        return replace(self, places=joined[:, :3], headings=joined[:, 3])

    def lifted(self, height: float) -> RootPath:
        """The path ``height`` metres higher."""
        return replace(self, places=self.places + height * UP)


@dataclass(frozen=True, eq=False)
class Replacing:
    """A whole motion put elsewhere: the turn ``turn (4,)`` about the point ``pivot (3,)``, then the step ``step (3,)``."""

    turn: Array
    pivot: Array
    step: Array

    @classmethod
    def of_first(cls, path: RootPath, *, heading: bool) -> Replacing:
        """What brings the first sample of a path over its anchor's rest place, and to the rest heading if asked; heights stay."""
        first = path.places[0]
        turn = about_up(-path.headings[:1])[0] if heading else quat.IDENTITY
        return cls(turn, first, (path.anchor - first) * (1.0, 1.0, 0.0))

    def __call__(self, rotations: Array, positions: Array) -> tuple[Array, Array]:
        """Rotations ``(..., 4)`` and positions ``(..., 3)`` in the world, put elsewhere."""
        return quat.mul(self.turn, rotations), self.pivot + self.step + quat.rotate(self.turn, positions - self.pivot)

    def path(self, path: RootPath) -> RootPath:
        """The same for a path."""
        turned = 2.0 * float(np.arctan2(self.turn[3], self.turn[0]))
        return replace(path, places=self(quat.IDENTITY, path.places)[1], headings=path.headings + turned)


def about_up(angles: Array) -> Array:
    """Angles ``(F,)`` in radians -> rotations ``(F, 4)`` about the vertical."""
    return quat.from_axis_angle(UP, angles)


def headings_of(turns: Array, times: Array) -> Array:
    """Headings of a body from its turns away from rest.

    Parameters
    ----------
    turns : (F, 4) array
        ``D`` in the world's axes.
    times : (F,) array
        Seconds.

    Returns
    -------
    (F,) array
        Radians, the first in (-pi, pi], then without jumps.
    """
    w, z = turns[:, 0], turns[:, 3]
    length = np.hypot(w, z)
    upright = np.flatnonzero(length >= _UPRIGHT)
    if not len(upright):  # never upright: the twist, for what it is worth
        upright = np.flatnonzero(length > 1e-9)
    if not len(upright):
        return np.zeros(len(turns))
    angles = 2.0 * np.arctan2(z[upright], w[upright])
    angles[0] -= 2.0 * np.pi * np.ceil((angles[0] - np.pi) / (2.0 * np.pi))
    return np.interp(times, times[upright], np.unwrap(angles))


def low_pass(values: Array, times: Array, seconds: float) -> Array:
    """Values ``(F, n)`` smoothed without delay; first and last sample stay where they are.

    A Gaussian that halves a wave of ``seconds`` and hardly touches one of four times that: ``exp(-2 (pi s f)^2) = 1/2`` at ``f = 1 /
    seconds`` gives ``s = seconds sqrt(ln 2 / 2) / pi``. Beyond the ends the values go on mirrored through the end points. Uneven times are
    put on an even grid first.
    """
    grid: Array = times
    spread: Array = values
    steps = np.diff(times)
    step = float(np.median(steps))
    even = float(np.abs(steps - step).max()) < 1e-3 * step
    if not even:
        count = min(int(np.ceil((times[-1] - times[0]) / step)) + 1, 20 * len(times))
        grid = np.linspace(float(times[0]), float(times[-1]), count, dtype=np.float64)
        step = float(grid[1] - grid[0])
        spread = _between(grid, times, values)
    sigma = seconds * np.sqrt(0.5 * np.log(2.0)) / np.pi / step
    reach = int(np.ceil(_TAILS * sigma))
    weights = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    weights /= weights.sum()
    padded: Array = np.pad(spread, ((reach, reach), (0, 0)), mode="reflect", reflect_type="odd")
    out = np.column_stack([_convolved(column, weights) for column in padded.T])
    return out if even else _between(times, grid, out)


def _convolved(padded: Array, weights: Array) -> Array:
    """``np.convolve(padded, weights, "valid")``; through the spectrum where that is shorter."""
    if len(weights) < 200:
        return np.convolve(padded, weights, mode="valid")
    size = len(padded) + len(weights) - 1
    joined: Array = np.fft.irfft(np.fft.rfft(padded, size) * np.fft.rfft(weights, size), size)
    return joined[len(weights) - 1 : len(padded)]


def _between(at: Array, times: Array, values: Array) -> Array:
    out = np.empty((len(at), values.shape[1]))
    for k in range(values.shape[1]):
        out[:, k] = np.interp(at, times, values[:, k])
    return out
