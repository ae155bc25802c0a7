# SPDX-License-Identifier: GPL-3.0-or-later
"""F-curves over many frames at once. What the array code does not know is left to Blender, frame by frame."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import curves

Array = NDArray[np.float64]
Keys = NDArray[np.float32]

_CODES = {item.identifier: item.value for item in bpy.types.Keyframe.bl_rna.properties["interpolation"].enum_items}
_KNOWN = {_CODES["CONSTANT"]: curves.CONSTANT, _CODES["LINEAR"]: curves.LINEAR, _CODES["BEZIER"]: curves.BEZIER}


CHOICE = np.uint8
"""What Blender stores a key's interpolation, easing and handle types as: arrays of it are copied whole, of any other type key by key."""

_kept: dict[int, Keys] | None = None


@contextmanager
def remembered() -> Iterator[None]:
    """Inside, the keys of a curve are read from Blender once, however often they are asked for. No curve may be changed meanwhile."""
    global _kept
    outer = _kept
    _kept = {} if outer is None else outer
    try:
        yield
    finally:
        _kept = outer


def evaluate(curve: bpy.types.FCurve, frames: Array) -> Array:
    """Values ``(F,)`` of an f-curve at scene frames ``(F,)``, as ``curve.evaluate`` gives them."""
    known = _as_arrays(curve, frames)
    if known is not None:
        return curves.evaluate(known, frames)
    return np.array([curve.evaluate(float(frame)) for frame in frames])


def evaluate_all(found: Sequence[bpy.types.FCurve], frames: Array) -> Array:
    """(F, C): :func:`evaluate` of many curves; those that have a key on every frame and nowhere else, as a bake has, in one go."""
    out = np.empty((len(frames), len(found)), order="F")
    baked = [k for k, curve in enumerate(found) if len(curve.keyframe_points) == len(frames) and not _modified(curve)]
    if baked and len(frames):
        co = np.stack([_keys(found[k], found[k].keyframe_points) for k in baked])
        on_keys = np.all(co[:, :, 0] == frames, axis=1)
        if on_keys.all() and len(baked) == len(found):
            out.T[...] = co[:, :, 1]
            return out
        baked = np.array(baked)[on_keys].tolist()
        out[:, baked] = co[on_keys, :, 1].T
    for k in set(range(len(found))) - set(baked):
        out[:, k] = evaluate(found[k], frames)
    return out


def is_playing(curve: bpy.types.FCurve) -> bool:
    """Whether the curve moves anything: not muted, by itself or with its group, and not empty."""
    if curve.mute or (curve.group is not None and curve.group.mute):
        return False
    return len(curve.keyframe_points) > 0 or len(curve.sampled_points) > 0 or any(not m.mute for m in curve.modifiers)


def extent(curve: bpy.types.FCurve) -> tuple[float, float] | None:
    """First and last frame with a key or sample; None without."""
    points = curve.keyframe_points if len(curve.keyframe_points) else curve.sampled_points
    if _kept is not None and len(points):
        frames = _keys(curve, points)[:, 0]
        return float(frames[0]), float(frames[-1])
    return (float(points[0].co[0]), float(points[-1].co[0])) if len(points) else None


def key_frames(curve: bpy.types.FCurve) -> Array:
    """(K,): the frames of its keys, or of its samples."""
    points = curve.keyframe_points if len(curve.keyframe_points) else curve.sampled_points
    return _keys(curve, points)[:, 0].astype(np.float64)


def _modified(curve: bpy.types.FCurve) -> bool:
    """Whether anything but its keys has a say in the curve."""
    return any(not modifier.mute for modifier in curve.modifiers)


def _as_arrays(curve: bpy.types.FCurve, frames: Array) -> curves.Curve | None:
    points = curve.keyframe_points
    count = len(points)
    if not count or _modified(curve):
        return None
    x, y = _keys(curve, points).T.astype(np.float64)
    if count == len(frames) and np.array_equal(x, frames):
        return curves.Curve(x, y, np.zeros(count, dtype=np.int64))  # every frame is a key's own: how it goes on does not matter
    if np.any(np.diff(x) <= 0.0):
        return None
    extend = curve.extrapolation == "LINEAR"
    codes = _interpolation(points)
    kinds = np.full(count, -1, dtype=np.int64)
    for theirs, ours in _KNOWN.items():
        kinds[codes == theirs] = ours
    if np.any(kinds < 0):
        return None
    if not np.any(kinds == curves.BEZIER):
        return curves.Curve(x, y, kinds, extend=extend)
    left, right = (_pairs(points, name, count).astype(np.float64) for name in ("handle_left", "handle_right"))
    return curves.Curve(x, y, kinds, left, right, extend)


def _keys(curve: bpy.types.FCurve, points: bpy.types.bpy_prop_collection) -> Keys:
    """(K, 2): frame and value of every key or sample."""
    if _kept is None:
        return _pairs(points, "co", len(points))
    key = curve.as_pointer()
    if key not in _kept:
        _kept[key] = _pairs(points, "co", len(points))
    return _kept[key]


def _pairs(points: bpy.types.bpy_prop_collection, name: str, count: int) -> Keys:
    flat = np.empty(2 * count, dtype=np.float32)
    points.foreach_get(name, flat)
    return flat.reshape(-1, 2)


def _interpolation(points: bpy.types.bpy_prop_collection) -> NDArray[np.uint8]:
    out = np.empty(len(points), dtype=CHOICE)
    points.foreach_get("interpolation", out)
    return out
