# SPDX-License-Identifier: GPL-3.0-or-later
"""Which keys of a curve its neighbours give.

Every other key is tried at once: where all samples between its two neighbours stay within the limit without it, it goes. That is repeated,
with the other half of the keys in turn, until nothing goes any more. So a curve of which most keys are needed is done after two rounds, and
one of which few are after as many as halve it. (Top-down splitting takes as many rounds as the curve has bits, whatever is left.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from .node_clip import spherical

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_ROUNDS = 16


def kept_keys(values: Array, times: Array, limits: Array, *, rotations: bool) -> Mask:
    """The keys that are needed.

    Parameters
    ----------
    values : (C, F, n) array
        Curves with the same times; rotations wxyz of continuous sign.
    times : (F,) array
    limits : (C,) array
        Radians, or units: how far a sample may be from what is left.

    Returns
    -------
    (C, F) bool array
        First and last key are always kept.
    """
    count, frames = values.shape[:2]
    flat = np.ascontiguousarray(values).reshape(count * frames, -1)
    seconds = np.tile(times, count)
    limit = np.repeat(limits, frames)
    keep = np.ones(count * frames, dtype=bool)
    first = np.zeros(count * frames, dtype=bool)
    last = first.copy()
    first[::frames] = last[frames - 1 :: frames] = True
    idle = 0
    for turn in range(_ROUNDS):
        keys = np.flatnonzero(keep)
        rank = np.arange(len(keys)) - np.maximum.accumulate(np.where(first[keys], np.arange(len(keys)), 0))
        tried = np.flatnonzero((rank % 2 == turn % 2) & ~first[keys] & ~last[keys])
        gone = keys[tried][_fits(flat, seconds, limit, keep, keys, tried, rotations=rotations)]
        keep[gone] = False
        idle = 0 if gone.size else idle + 1
        if idle == 2:
            break
    return keep.reshape(count, frames)


def _fits(
    flat: Array, seconds: Array, limit: Array, keep: Mask, keys: NDArray[np.int64], tried: NDArray[np.int64], *, rotations: bool
) -> Mask:
    """(T,): whether everything between the neighbours of the keys ``keys[tried]`` stays within the limits without them."""
    if not tried.size:
        return np.zeros(0, dtype=bool)
    left, right = keys[tried - 1], keys[tried + 1]
    size = right - left - 1  # samples to look at, the tried key and those that are gone already
    span = np.repeat(np.arange(len(tried)), size)
    start = np.cumsum(size) - size
    at = np.arange(len(span)) - start[span] + left[span] + 1
    a, b = flat[left[span]], flat[right[span]]
    share = (seconds[at] - seconds[left[span]]) / (seconds[right[span]] - seconds[left[span]])
    if rotations:
        error = quat.angle(spherical(a, b, share), flat[at])
    else:
        miss = a * (1.0 - share[:, None]) + b * share[:, None] - flat[at]
        error = np.sqrt(np.einsum("fi,fi->f", miss, miss))
    return np.maximum.reduceat(error / limit[at], start) <= 1.0
