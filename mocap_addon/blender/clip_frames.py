# SPDX-License-Identifier: GPL-3.0-or-later
"""The scene frames that a clip of an action is sampled on."""

from __future__ import annotations

from fractions import Fraction

import bpy
import numpy as np
from numpy.typing import NDArray

from . import curves
from .playing import BONE_PATH, Playing

Array = NDArray[np.float64]


def sample_frames(chosen: Playing, scene: bpy.types.Scene) -> Array:
    """(F,): the scene frames that are exported.

    Every whole frame from the first to the last key, and every key that lies between whole frames. A bake that has a key at least every
    frame throughout (120 Hz on a scene at 30) is taken on its own keys alone.
    """
    with curves.remembered():
        first, last = chosen.frame_range() or (float(scene.frame_start), float(scene.frame_end))
        keys = _keys(chosen)
    keys = keys[(keys >= first - 1e-4) & (keys <= last + 1e-4)]
    dense = len(keys) > 2 and keys[0] <= first + 1e-3 and keys[-1] >= last - 1e-3 and float(np.diff(keys).max()) <= 1.0 + 1e-3
    if dense:
        return keys
    whole = np.arange(np.ceil(first - 1e-4), np.floor(last + 1e-4) + 1.0)
    between = keys[np.abs(keys - np.round(keys)) > 1e-3]
    return np.unique(np.concatenate([[first], whole, between, [last]]))


def _keys(chosen: Playing) -> Array:
    """The frames of all keys of bones, sorted."""
    found: list[Array] = []
    seen: set[tuple[int, bytes]] = set()
    for curve in chosen.curves:
        if BONE_PATH.match(curve.data_path):
            frames = curves.key_frames(curve)
            look = len(frames), frames[:: max(1, len(frames) // 5)].tobytes() + frames[-1:].tobytes()
            if look not in seen:  # of a bake all curves have the same keys; looking at a few tells
                seen.add(look)
                found.append(frames)
    return np.unique(np.round(np.concatenate(found), 4)) if found else np.zeros(0)


def rate_of(frames: Array, fps: Fraction) -> Fraction:
    """Samples a second where they are even; the scene's rate otherwise."""
    if len(frames) < 2:
        return fps
    step = float(np.median(np.diff(frames)))
    if step < 1.0 and float(np.abs(np.diff(frames) - step).max()) < 1e-3:
        return fps / Fraction(step).limit_denominator(1000)
    return fps
