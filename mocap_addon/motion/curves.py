# SPDX-License-Identifier: GPL-3.0-or-later
"""Animation curves of keys with handles, evaluated over all frames at once, exactly as Blender evaluates its f-curves.

Source: Blender's ``blenkernel/intern/fcurve.cc`` (behaviour, not code). A key's interpolation governs the piece after it. A Bezier piece
is a cubic in both coordinates whose handles are first shortened to the piece's length in time, so that time never runs backwards; the
parameter is then found from the time and the value from the parameter.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CONSTANT, LINEAR, BEZIER = 0, 1, 2
"""Codes of ``Curve.interpolation``; Blender numbers its own so too."""

_ON_KEY = 1e-4
"""Frames: a time this close to a key has the key's value."""

_STEPS = 60
"""Halvings at most; each is replaced by a Newton step where that lands inside the bracket, so that a handful does."""


@dataclass(frozen=True, eq=False)
class Curve:
    """One scalar curve.

    Parameters
    ----------
    frames, values : (K,) arrays
        The keys, in the order of time.
    interpolation : (K,) int array
        ``CONSTANT``, ``LINEAR`` or ``BEZIER``: how the value goes from this key to the next.
    left, right : (K, 2) arrays or None
        Handles (frame, value), where any piece is ``BEZIER`` or the ends are extended along them.
    extend : bool
        Beyond its ends the curve goes on in a straight line; otherwise it holds.
    """

    frames: Array
    values: Array
    interpolation: NDArray[np.int64]
    left: Array | None = None
    right: Array | None = None
    extend: bool = False


def evaluate(curve: Curve, at: Array) -> Array:
    """Values ``(F,)`` at the frames ``at (F,)``, in any order."""
    frames, values = curve.frames, curve.values
    if len(frames) == 1 and not curve.extend:
        return np.full(len(at), values[0])
    if np.array_equal(frames, at):
        return values.copy()
    after = np.searchsorted(frames, at, side="right")  # at lies in the piece from key after - 1 to key after
    before = np.clip(after - 1, 0, len(frames) - 1)
    out = values[before].copy()
    beyond = np.minimum(after, len(frames) - 1)
    nearer = np.where(frames[beyond] - at < at - frames[before], beyond, before)
    on_key = np.abs(frames[nearer] - at) < _ON_KEY
    out[on_key] = values[nearer[on_key]]
    inside = ~on_key & (after > 0) & (after < len(frames))
    kind = curve.interpolation[before]
    for code, piece in ((LINEAR, _linear), (BEZIER, _bezier)):
        picked = np.flatnonzero(inside & (kind == code))
        if picked.size:
            out[picked] = piece(curve, before[picked], at[picked])
    early, late = ~on_key & (after == 0), ~on_key & (after == len(frames))
    for end, picked in ((0, early), (-1, late)):
        if picked.any():
            out[picked] = _beyond(curve, end, at[picked])
    return out


def _linear(curve: Curve, k: NDArray[np.int64], at: Array) -> Array:
    x, y = curve.frames, curve.values
    return y[k] + (y[k + 1] - y[k]) * ((at - x[k]) / (x[k + 1] - x[k]))


def _bezier(curve: Curve, k: NDArray[np.int64], at: Array) -> Array:
    assert curve.left is not None and curve.right is not None
    x0, y0, x3, y3 = curve.frames[k], curve.values[k], curve.frames[k + 1], curve.values[k + 1]
    length = x3 - x0
    out_x, out_y = _shortened(curve.right[k, 0] - x0, curve.right[k, 1] - y0, length)
    in_x, in_y = _shortened(x3 - curve.left[k + 1, 0], y3 - curve.left[k + 1, 1], length)
    # time as a share of the piece, so that the coefficients are of size 1
    t = bezier_parameter(out_x / length, 1.0 - in_x / length, (at - x0) / length)
    s = 1.0 - t
    return s * s * s * y0 + 3.0 * s * s * t * (y0 + out_y) + 3.0 * s * t * t * (y3 - in_y) + t * t * t * y3


def _shortened(dx: Array, dy: Array, length: Array) -> tuple[Array, Array]:
    """A handle that reaches over the piece's other end, cut to end there."""
    reach = np.abs(dx)
    share = np.where(reach > length, length / np.maximum(reach, 1e-30), 1.0)
    return dx * share, dy * share


def bezier_parameter(x1: Array, x2: Array, x: Array) -> Array:
    """The ``t`` in [0, 1] at which the cubic from 0 to 1 with handles ``x1``, ``x2`` is ``x``: Newton steps inside a shrinking bracket."""
    c1, c2, c3 = 3.0 * x1, 3.0 * x2 - 6.0 * x1, 1.0 + 3.0 * x1 - 3.0 * x2
    low, high, t = np.zeros_like(x), np.ones_like(x), x.copy()
    for _ in range(_STEPS):
        miss = ((c3 * t + c2) * t + c1) * t - x
        if float(np.abs(miss).max()) < 1e-15:
            break
        low, high = np.where(miss < 0.0, t, low), np.where(miss > 0.0, t, high)
        slope = (3.0 * c3 * t + 2.0 * c2) * t + c1
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            newton = t - miss / slope
        t = np.where((newton > low) & (newton < high), newton, 0.5 * (low + high))
    return t


def _beyond(curve: Curve, end: int, at: Array) -> Array:
    """Before the first key (``end`` 0) or after the last (-1)."""
    x, y = curve.frames[end], curve.values[end]
    kind = int(curve.interpolation[end])
    held = np.full(len(at), y)
    if not curve.extend or kind == CONSTANT:
        return held
    if kind == LINEAR:
        if len(curve.frames) == 1:
            return held
        neighbour = 1 if end == 0 else -2
        dx, dy = curve.frames[neighbour] - x, curve.values[neighbour] - y
    else:
        handles = curve.left if end == 0 else curve.right
        assert handles is not None
        dx, dy = handles[end, 0] - x, handles[end, 1] - y
    return held if dx == 0.0 else np.asarray(y + (at - x) * (dy / dx))
