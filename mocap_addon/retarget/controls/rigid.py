# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid motions: where something that stood still at rest has gone, ``x -> R x + t``, for all frames at once.

A bone's *motion* here is what takes it from its rest pose to its pose: a bone that simply follows another has the other's motion, however
the two stand to each other. With ``W`` its matrix in the pose and ``W0`` at rest the motion is ``X = W W0^-1``; with ``P`` the motion that
its parent (or whatever it hangs on) gives it, what the bone itself stores is ``basis = W0^-1 P^-1 X W0``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...motion import quat

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rigid:
    """``rotation (F, 4)`` and ``translation (F, 3)`` (metres); F may be 1 for what never moves."""

    rotation: Array
    translation: Array

    @classmethod
    def about(cls, rotation: Array, point: Array, place: Array) -> Rigid:
        """The motion that turns by ``rotation (F, 4)`` and takes ``point`` ``(3,)`` or ``(F, 3)`` to ``place``."""
        return cls(rotation, place - quat.rotate(rotation, np.broadcast_to(point, (*rotation.shape[:-1], 3))))

    def __matmul__(self, first: Rigid) -> Rigid:
        """``(a @ b)(x) = a(b(x))``."""
        return Rigid(quat.mul(self.rotation, first.rotation), self.apply(first.translation))

    def apply(self, point: Array) -> Array:
        """Where ``point`` ``(3,)`` or ``(F, 3)`` goes, ``(F, 3)``."""
        return quat.rotate(self.rotation, point) + self.translation

    @property
    def inverse(self) -> Rigid:
        """The way back."""
        undo = quat.inv(self.rotation)
        return Rigid(undo, -quat.rotate(undo, self.translation))


GROUP = 4096
"""Frames times motions that are worked on together: fewer calls for a moment, temporaries that stay in the cache for a long take."""


def groups(count: int, frames: int) -> Iterator[slice]:
    """``count`` motions of ``frames`` frames each, in parts of :data:`GROUP`."""
    step = max(1, GROUP // max(frames, 1))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def stacked(motions: Sequence[Rigid], frames: int) -> Rigid:
    """N motions as one of ``(F, N, 4)`` and ``(F, N, 3)``."""
    rotation, translation = np.empty((frames, len(motions), 4), order="F"), np.empty((frames, len(motions), 3), order="F")
    for k, motion in enumerate(motions):
        rotation[:, k], translation[:, k] = motion.rotation, motion.translation
    return Rigid(rotation, translation)


def unstacked(motions: Rigid) -> list[Rigid]:
    """The reverse of :func:`stacked`; views."""
    return [Rigid(motions.rotation[:, k], motions.translation[:, k]) for k in range(motions.rotation.shape[1])]


STILL = Rigid(quat.identity(1), np.zeros((1, 3)))
"""No motion."""


def at_rest(rotation: Array, position: Array) -> Rigid:
    """A bone's rest pose ``(4,)``, ``(3,)`` as a motion from the origin."""
    return Rigid(rotation[None], position[None])


def blend(a: Rigid, b: Rigid, share: float, rest: Rigid) -> Rigid:
    """Between the poses ``a @ rest`` and ``b @ rest`` of a bone, as Blender blends a constraint in: slerp and a straight line."""
    if share <= 0.0:
        return a
    if share >= 1.0:
        return b
    pose_a, pose_b = a @ rest, b @ rest
    rotation = quat.slerp(pose_a.rotation, pose_b.rotation, share)
    pose = Rigid(rotation, pose_a.translation + share * (pose_b.translation - pose_a.translation))
    return pose @ rest.inverse
