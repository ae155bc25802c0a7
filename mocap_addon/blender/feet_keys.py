# SPDX-License-Identifier: GPL-3.0-or-later
"""New values into the curves of an action, over all of it or a range; what is outside the range stays as it was, handles included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import bpy
import numpy as np
from numpy.typing import NDArray

from . import actions, compat, curves
from .channels import Channels

Array = NDArray[np.float64]
ByKey = Mapping[tuple[str, int], bpy.types.FCurve]

_VECTORS = ("co", "handle_left", "handle_right")
_CHOICES = ("interpolation", "easing", "type", "handle_left_type", "handle_right_type")
_NUMBERS = ("amplitude", "back", "period")
_LINEAR = bpy.types.Keyframe.bl_rna.properties["interpolation"].enum_items["LINEAR"].value
_FREE = bpy.types.Keyframe.bl_rna.properties["handle_left_type"].enum_items["FREE"].value
_CLOSE = 1e-3
"""Frames: keys nearer than this are one."""


def rewrite(bag: compat.Bag, frames: Array, channels: Sequence[Channels], span: tuple[float, float] | None) -> int:
    """Write ``channels`` at ``frames (F,)`` and return how many curves that were; with ``span`` keys before and after it stay.

    ``span`` must begin and end at ``frames``, with nothing changed at its ends.
    """
    mine = {key for channel in channels for key in channel.keys}
    for curve in [c for c in bag.fcurves if (c.data_path, c.array_index) in mine and not _plain(c)]:
        bag.fcurves.remove(curve)  # the values that were read have in them what samples and modifiers make of it
    found: ByKey = {(c.data_path, c.array_index): c for c in bag.fcurves}
    whole = [
        channel
        for channel in channels
        if span is None or len(channel.values) != len(frames) or any(key not in found for key in channel.keys)
    ]
    part = [channel for channel in channels if channel not in whole]
    actions.write_curves(bag, frames, whole, found)
    if part and span is not None:
        for channel in part:
            for i, key in enumerate(channel.keys):
                _into(found[key], frames, channel.values[:, i], span)
    _unmute_groups(bag, mine)
    return sum(len(channel.keys) for channel in channels)


def _unmute_groups(bag: compat.Bag, mine: set[tuple[str, int]]) -> None:
    """A muted group would keep its new curves from playing; its other curves are muted one by one instead."""
    for group in bag.groups:
        members = list(group.channels) if group.mute else []
        if any((curve.data_path, curve.array_index) in mine for curve in members):
            group.mute = False
            for curve in members:
                curve.mute = (curve.data_path, curve.array_index) not in mine


def _plain(curve: bpy.types.FCurve) -> bool:
    """Whether a curve is what its keys say, and plays."""
    muted = curve.mute or (curve.group is not None and curve.group.mute)
    return not muted and len(curve.keyframe_points) > 0 and not len(curve.modifiers)


def copy_curves(bag: compat.Bag, source: ByKey, paths: set[str]) -> None:
    """Make the curves at ``paths`` those of another action: new ones, changed ones, and none where that has none."""
    for curve in [c for c in bag.fcurves if c.data_path in paths]:
        bag.fcurves.remove(curve)
    for (path, index), curve in source.items():
        if path not in paths:
            continue
        new = compat.new_curve(bag, path, index, curve.group.name if curve.group is not None else "")
        new.extrapolation, new.color_mode = curve.extrapolation, curve.color_mode
        if len(curve.keyframe_points):
            _set(new, _all(curve.keyframe_points))


def _into(curve: bpy.types.FCurve, frames: Array, values: Array, span: tuple[float, float]) -> None:
    """Straight lines in the range, the curve's own keys outside it.

    A key's way to the next is theirs together, so the range is widened to the keys around it; those stay.
    """
    old = _all(curve.keyframe_points)
    at = old["co"][:, 0]
    left, right = np.flatnonzero(at <= span[0] + _CLOSE), np.flatnonzero(at >= span[1] - _CLOSE)
    before, after = int(left[-1]) + 1 if len(left) else 0, int(right[0]) if len(right) else len(at)
    low = at[before - 1] + _CLOSE if before else span[0] - _CLOSE
    high = at[after] - _CLOSE if after < len(at) else span[1] + _CLOSE
    inside = (frames > low) & (frames < high)
    count = int(inside.sum())
    fresh = np.stack([frames[inside], values[inside]], axis=1).astype(np.float32)
    new: dict[str, NDArray[np.generic]] = {}
    for name, column in old.items():
        if name in _VECTORS:
            middle: NDArray[np.generic] = fresh
        elif name in _NUMBERS or name in ("easing", "type"):
            middle = np.full(count, column[0] if len(column) else 0, dtype=column.dtype)
        else:
            middle = np.full(count, _LINEAR if name == "interpolation" else _FREE, dtype=column.dtype)
        new[name] = np.concatenate([column[:before], middle, column[after:]])
    # A handle that Blender sets by the neighbours would move with them, and with it what lies outside.
    for edge in (before - 1, before + count):
        if 0 <= edge < len(new["co"]):
            new["handle_left_type"][edge] = new["handle_right_type"][edge] = _FREE
    if before:
        new["interpolation"][before - 1] = _LINEAR
    _set(curve, new)


def _all(points: bpy.types.bpy_prop_collection) -> dict[str, NDArray[np.generic]]:
    out = {name: _get(points, name, 2, np.float32) for name in _VECTORS}
    out |= {name: _get(points, name, 1, curves.CHOICE) for name in _CHOICES}
    return out | {name: _get(points, name, 1, np.float32) for name in _NUMBERS}


def _set(curve: bpy.types.FCurve, values: Mapping[str, NDArray[np.generic]]) -> None:
    points = curve.keyframe_points
    points.clear()
    points.add(len(values["co"]))
    for name in ("co", *_CHOICES, *_NUMBERS, "handle_left", "handle_right"):
        points.foreach_set(name, np.ascontiguousarray(values[name]).reshape(-1))
    curve.update()


def _get(points: bpy.types.bpy_prop_collection, name: str, width: int, dtype: type[np.generic]) -> NDArray[np.generic]:
    flat = np.empty(len(points) * width, dtype=dtype)
    points.foreach_get(name, flat)
    return flat.reshape(-1, 2) if width == 2 else flat
