# SPDX-License-Identifier: GPL-3.0-or-later
"""The curves of a glTF animation at any times.

Source: glTF 2.0 specification (Khronos), section 3.11 and appendix C: ``LINEAR`` (slerp on the shorter arc for rotations), ``STEP``,
``CUBICSPLINE`` (Hermite; tangents are per second, so they are multiplied by the length of the piece; rotations are normalised). Before
the first key and after the last the curve holds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion import quat

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sampler:
    """One curve: keys at ``times (K,)`` seconds, strictly increasing.

    ``values`` is ``(K, n)``, or ``(K, 3, n)`` for ``CUBICSPLINE``: in-tangent, value, out-tangent. Rotations are wxyz.
    """

    times: Array
    values: Array
    interpolation: str
    rotates: bool

    def at(self, times: Array) -> Array:
        """Values ``(F, n)`` at ``times (F,)`` seconds."""
        cubic = self.interpolation == "CUBICSPLINE"
        points = self.values[:, 1] if cubic else self.values
        if self.rotates:
            points = quat.normalize(points)
        last = len(self.times) - 1
        k = np.clip(np.searchsorted(self.times, times, side="right") - 1, 0, max(last - 1, 0))
        after = np.minimum(k + 1, last)
        length = np.where(after > k, self.times[after] - self.times[k], 1.0)
        t = np.clip((times - self.times[k]) / length, 0.0, 1.0)
        if self.interpolation == "STEP":
            return points[np.where(t >= 1.0, after, k)]
        if cubic:
            return self._hermite(k, after, length, t)
        if self.rotates:
            return quat.slerp(points[k], points[after], t)
        w = t[:, None]
        return points[k] * (1.0 - w) + points[after] * w

    def _hermite(self, k: NDArray[np.int64], after: NDArray[np.int64], length: Array, t: Array) -> Array:
        t, length = t[:, None], length[:, None]
        t2, t3 = t * t, t * t * t
        out = (
            (2.0 * t3 - 3.0 * t2 + 1.0) * self.values[k, 1]
            + (t3 - 2.0 * t2 + t) * length * self.values[k, 2]
            + (3.0 * t2 - 2.0 * t3) * self.values[after, 1]
            + (t3 - t2) * length * self.values[after, 0]
        )
        return quat.normalize(out) if self.rotates else out


def snapped(at: Array, keys: Array, reach: float) -> Array:
    """Times ``at (F,)`` put on the nearest of the sorted ``keys (K,)`` where that is within ``reach`` seconds: a key that was written for
    a frame
    is that frame's value, whatever float32 made of its time."""
    i = np.clip(np.searchsorted(keys, at), 0, len(keys) - 1)
    before = np.maximum(i - 1, 0)
    nearest = np.where(np.abs(keys[before] - at) <= np.abs(keys[i] - at), keys[before], keys[i])
    return np.where(np.abs(nearest - at) <= reach, nearest, at)
