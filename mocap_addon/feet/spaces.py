# SPDX-License-Identifier: GPL-3.0-or-later
"""The space of what a foot stands on: carried along by the object, or the world."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from .ground import Ground

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spaces:
    """Rigid spaces at M moments; still ones cost nothing.

    Parameters
    ----------
    positions, rotations : arrays (M, 3), (M, 4), or None
        None: the world.
    """

    positions: Array | None
    rotations: Array | None

    def point_in(self, p: Array) -> Array:
        """World points (M, 3) in these spaces."""
        if self.positions is None or self.rotations is None:
            return p
        return quat.rotate(quat.inv(self.rotations), p - self.positions)

    def point_out(self, p: Array) -> Array:
        """Points (M, 3) of these spaces in the world."""
        if self.positions is None or self.rotations is None:
            return p
        return quat.rotate(self.rotations, p) + self.positions

    def turn_in(self, q: Array) -> Array:
        """World rotations (M, 4) in these spaces."""
        return q if self.rotations is None else quat.mul(quat.inv(self.rotations), q)

    def turn_out(self, q: Array) -> Array:
        """Rotations (M, 4) of these spaces in the world."""
        return q if self.rotations is None else quat.mul(self.rotations, q)

    def direction_out(self, v: Array) -> Array:
        """Directions (M, 3) of these spaces in the world."""
        return v if self.rotations is None else quat.rotate(self.rotations, v)

    def direction_in(self, v: Array) -> Array:
        """World directions (M, 3) in these spaces."""
        return v if self.rotations is None else quat.rotate(quat.inv(self.rotations), v)


WORLD = Spaces(None, None)


def spaces_of(ground: Ground, objects: Indices, times: Array, moving: bool) -> Spaces:
    """Spaces of ``objects`` (M,) at ``times`` (M,)."""
    return Spaces(*ground.spaces(objects, times)) if moving else WORLD
