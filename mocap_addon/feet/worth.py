# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands already is left alone: how much of the work each footprint is worth, and what that means for its neighbourhood."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from . import signals
from .footprints import Prints
from .legs import unit

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]
Indices = NDArray[np.int64]


def inner(first: Indices, count: int, edge: int) -> Flags:
    """(M,): what is not among the first and last few of groups that begin at ``first``: ``edge``, at most a quarter of the group."""
    size = np.diff(np.append(first, count))
    place, size = np.arange(count) - np.repeat(first, size), np.repeat(size, size)
    few = np.minimum(edge, size // 4)
    return (place >= few) & (place < size - few)


def lower_third(x: Array, mask: Flags, first: Indices) -> Array:
    """(n,): what a third of the values (M,) under ``mask`` are below, in groups that begin at ``first`` (n,); 0 where there are none."""
    owner = np.repeat(np.arange(len(first)), np.diff(np.append(first, len(x))))[mask]
    order, count = np.lexsort((x[mask], owner)), np.bincount(owner, minlength=len(first))
    out = np.zeros(len(first))
    out[count > 0] = x[mask][order][(np.cumsum(count) - count + count // 3)[count > 0]]
    return out


def for_what_it_is_worth(prints: Prints, worth: Array, sloping: bool = True) -> Prints:
    """Footprints that ask for less where there is less to do: rise, tilt and slope. ``sloping`` off: the source's way has the slopes."""
    slope = prints.normal[:, :2] / np.maximum(prints.normal[:, 2:], 0.2) * (worth[:, None] if sloping else 0.0)
    normal = unit(np.column_stack([slope, np.ones(len(slope))]))
    return replace(prints, rise=prints.rise * worth, tilt=quat.exp(quat.log(prints.tilt) * worth[:, None]), normal=normal)


def either(worth: Array, owner: Indices) -> Array:
    """(F,): the larger worth of the footprints before and after each frame; 1 where there is none at all."""
    before, after = signals.neighbours(owner >= 0)
    if not np.any(owner >= 0):
        return np.ones(len(owner))
    b, a = np.where(before < 0, after, before), np.where(after >= len(owner), before, after)
    return np.maximum(worth[owner[b]], worth[owner[a]])
