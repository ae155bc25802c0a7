# SPDX-License-Identifier: GPL-3.0-or-later
"""From a sender's axes to the project's (Z up, facing -Y, left +X) and back."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Axes:
    """A signed permutation of axes: component ``i`` of ours is ``signs[i]`` times the sender's component ``order[i]``.

    A rotation's vector part turns along, and changes sign where the sender is left-handed (the determinant is -1).
    """

    order: tuple[int, int, int]
    signs: tuple[float, float, float]
    _take: NDArray[np.intp] = field(init=False, repr=False)
    _wxyz: NDArray[np.intp] = field(init=False, repr=False)
    _xyzw: NDArray[np.intp] = field(init=False, repr=False)
    _signs: Array = field(init=False, repr=False)
    _turn: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        matrix = np.zeros((3, 3))
        matrix[np.arange(3), list(self.order)] = self.signs
        hand = float(np.sign(np.linalg.det(matrix)))
        order = np.array(self.order, dtype=np.intp)
        object.__setattr__(self, "_take", order)
        object.__setattr__(self, "_wxyz", np.concatenate([[0], order + 1]))
        object.__setattr__(self, "_xyzw", np.concatenate([[3], order]))
        object.__setattr__(self, "_signs", np.array(self.signs, dtype=np.float64))
        object.__setattr__(self, "_turn", np.array([1.0, *(hand * s for s in self.signs)]))

    def points(self, sent: NDArray[np.floating]) -> Array:
        """Places ``(..., 3)`` in our axes."""
        return sent[..., self._take] * self._signs

    def from_wxyz(self, sent: NDArray[np.floating]) -> Array:
        """Rotations sent as w, x, y, z -> ours, ``(..., 4)``."""
        return sent[..., self._wxyz] * self._turn

    def from_xyzw(self, sent: NDArray[np.floating]) -> Array:
        """Rotations sent as x, y, z, w -> ours (wxyz), ``(..., 4)``."""
        return sent[..., self._xyzw] * self._turn

    def points_back(self, ours: Array) -> Array:
        """Our places in the sender's axes."""
        out = np.empty_like(ours)
        out[..., self._take] = ours * self._signs
        return out

    def to_wxyz(self, ours: Array) -> Array:
        """Our rotations in the sender's axes, w first."""
        out = np.empty_like(ours)
        out[..., self._wxyz] = ours * self._turn
        return out

    def to_xyzw(self, ours: Array) -> Array:
        """Our rotations in the sender's axes, w last."""
        out = np.empty_like(ours)
        out[..., self._xyzw] = ours * self._turn
        return out

    @property
    def vector_turn(self) -> tuple[NDArray[np.intp], Array]:
        """Index and signs that take (place, w, x, y, z) ``(..., 7)`` to ours at once."""
        return np.concatenate([self._take, self._wxyz + 3]), np.concatenate([self._signs, self._turn])


OURS = Axes((0, 1, 2), (1.0, 1.0, 1.0))
"""Z up, facing -Y: nothing changes."""
MVN = Axes((1, 0, 2), (1.0, -1.0, 1.0))
"""X forward, Y left, Z up."""
MVN_Y_UP = Axes((2, 0, 1), (-1.0, -1.0, 1.0))
"""X forward, Y up, Z right."""
Y_UP = Axes((0, 2, 1), (1.0, -1.0, 1.0))
"""Right-handed, Y up, facing +Z, left +X: BVH, MotionBuilder, Maya, Motive."""
UNITY = Axes((0, 2, 1), (-1.0, -1.0, 1.0))
"""Left-handed, Y up, facing +Z, left -X."""
CHINGMU = Axes((0, 1, 2), (-1.0, -1.0, 1.0))
"""X right, Y front, Z up: half a turn about the vertical."""
CHINGMU_UNREAL = Axes((1, 0, 2), (-1.0, -1.0, 1.0))
"""The same after ChingMu's Unreal plug-in has exchanged x and y, which mirrors."""
OURS_UNREAL = Axes((1, 0, 2), (1.0, 1.0, 1.0))
"""Our own after the same exchange."""
