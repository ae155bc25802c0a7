# SPDX-License-Identifier: GPL-3.0-or-later
"""What was done by hand in an action since its last bake, read from its f-curves. Nothing is evaluated in the scene."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..retarget import edits as layer
from ..retarget.edits import Edits
from . import compat
from .baseline import Baseline
from .channels import Channels, rotation_path, to_rotations
from .curves import evaluate

Array = NDArray[np.float64]
Curves = Mapping[tuple[str, int], bpy.types.FCurve]

PROPERTY = "mocap_edits"
"""The action's group of custom properties with the layer of hand edits, as it was at the last update."""

ROTATIONS = {"QUATERNION": ("rotation_quaternion", 4), "AXIS_ANGLE": ("rotation_axis_angle", 4)}
_EULER = ("rotation_euler", 3)

_ON_FRAME = 1e-3
_ROUNDING = 1e-6


@dataclass(frozen=True, eq=False)
class Found:
    """Hand edits as they show now; and where all keys lie when they were moved together: frame ``f`` at ``offset + factor * f``."""

    edits: Edits
    known: frozenset[str]
    offset: float
    factor: float


def token(channel: Channels) -> str:
    """How a layer names a channel."""
    if channel.kind == "value":
        return f"value:{channel.path}"
    return f"{'location' if channel.kind == 'scale' else channel.kind}:{channel.layer}"


def curves_of(action: bpy.types.Action, slot: compat.Slot) -> dict[tuple[str, int], bpy.types.FCurve]:
    """The f-curves of a slot by path and index."""
    bag = compat.bag_of(action, slot)
    return {} if bag is None else {(curve.data_path, curve.array_index): curve for curve in bag.fcurves}


def slot_of(action: bpy.types.Action, baseline: Baseline) -> compat.Slot:
    """The slot that the bake lies in: the one with the most of its curves. It may have been renamed."""
    baked = {key for channel in baseline.channels for key in channel.keys}
    return max(compat.slots(action), key=lambda slot: len(baked & curves_of(action, slot).keys()), default=None)


def found(curves: Curves, baseline: Baseline, modes: Mapping[str, str], fresh: Iterable[Channels] = ()) -> Found:
    """Compare the curves with what was baked.

    Parameters
    ----------
    curves : mapping
        As :func:`curves_of` gives them.
    baseline : Baseline
    modes : mapping from bone name to rotation mode
        The bones' modes now.
    fresh : channels
        What is about to be baked. A curve of these that was not baked before, but is there, was made by hand: it counts as an edit of the
        rest pose.
    """
    keys = {key: _keys(curve) for key, curve in curves.items()}
    offset, factor = _moved(keys, baseline)
    reader = _Reader(curves, keys, offset + factor * baseline.frames.astype(np.float64))
    rotations: dict[str, Array] = {}
    locations: dict[str, Array] = {}
    values: dict[str, Array] = {}
    deleted: set[str] = set()
    for channel in _all_channels(baseline, fresh, curves, modes):
        path, width, mode = channel.path, channel.values.shape[1], channel.mode
        if channel.kind == "rotation":
            path, width, mode = _turned_by(channel, curves, modes)
        if not reader.has(path, width):
            deleted.add(token(channel))
            continue
        same = path == channel.path
        if same and reader.holds(path, channel.values):
            continue
        values_then = channel.values if len(channel.values) == len(baseline.frames) else channel.values.repeat(len(baseline.frames), axis=0)
        now, touched = reader.read(path, values_then if same else np.full((len(baseline.frames), width), np.nan))
        if not touched.any():
            continue
        if channel.kind == "rotation":
            d = layer.rotation_difference(to_rotations(values_then, channel.mode), to_rotations(now, mode))
            d[~touched] = quat.IDENTITY
            if touched.any() and np.any(d[:, 0] != 1.0):
                rotations[channel.group] = d
        elif channel.kind in ("location", "scale"):
            locations[channel.layer] = np.where(touched[:, None], now - values_then, 0.0)
        else:
            values[channel.path] = np.where(touched, now[:, 0], np.nan)
    edits = Edits(baseline.seconds, rotations, locations, values, frozenset(deleted))
    return Found(edits, frozenset(token(c) for c in _all_channels(baseline, fresh, curves, modes)), offset, factor)


def store(action: bpy.types.Action, edits: Edits) -> None:
    """Keep a layer with its action; an empty one leaves nothing there."""
    if edits.empty:
        if PROPERTY in action:
            del action[PROPERTY]
        return
    text, data = layer.pack(edits)
    action[PROPERTY] = {"layout": text, "data": data}


def load(action: bpy.types.Action, baseline: Baseline) -> Edits:
    """The layer kept with an action, at the times of its bake; an empty one when there is none."""
    group = action.get(PROPERTY)
    try:
        if group is not None:
            return layer.unpack(group["layout"], bytes(group["data"])).at(baseline.seconds)
    except (KeyError, TypeError, ValueError):
        pass
    return Edits(baseline.seconds)


def _all_channels(baseline: Baseline, fresh: Iterable[Channels], curves: Curves, modes: Mapping[str, str]) -> Iterator[Channels]:
    """The bake's channels, and those of the next one that were made by hand before: with the rest pose as what was baked."""
    baked = [channel for channel in baseline.channels if channel.kind != "rest"]
    yield from baked
    have, count = {token(channel) for channel in baked}, len(baseline.frames)
    put_back = {channel.path: channel.values[0] for channel in baseline.channels if channel.kind == "rest"}
    for channel in fresh:
        if token(channel) in have or channel.kind == "rest" or not any(key in curves for key in channel.keys):
            continue
        rest = np.zeros((count, channel.values.shape[1]), dtype=np.float32)
        if channel.kind == "scale":
            rest[:] = 1.0
        if channel.kind == "rotation" and channel.mode == "QUATERNION":
            rest[:, 0] = 1.0
        if channel.kind == "rotation" and channel.mode == "AXIS_ANGLE":
            rest[:, 2] = 1.0
        if channel.path in put_back:
            rest[:] = put_back[channel.path]
        yield Channels(channel.path, channel.group, rest, channel.color_mode, channel.stepped, channel.indexed, channel.kind, channel.mode)


def _turned_by(channel: Channels, curves: Curves, modes: Mapping[str, str]) -> tuple[str, int, str]:
    """Path, width and mode of the curves that turn the bone now: those of its present mode where they are there, else those of the bake."""
    mode = modes.get(channel.group, channel.mode)
    prop, width = ROTATIONS.get(mode, _EULER)
    path = rotation_path(channel.group, prop)
    if path != channel.path and any((path, i) in curves for i in range(width)):
        return path, width, mode
    euler_now = path == channel.path and (channel.path, 0) in curves
    return channel.path, channel.values.shape[1], mode if euler_now and prop == "rotation_euler" else channel.mode


def _keys(curve: bpy.types.FCurve) -> NDArray[np.float32]:
    """(n, 2): frames and values of a curve's keys."""
    points = curve.keyframe_points
    out = np.empty(2 * len(points), dtype=np.float32)
    points.foreach_get("co", out)
    return out.reshape(-1, 2)


def _moved(keys: Mapping[tuple[str, int], NDArray[np.float32]], baseline: Baseline) -> tuple[float, float]:
    """Offset and factor when every baked curve has been moved or stretched in time alike; else what they were."""
    before = baseline.offset, baseline.factor
    moving = [channel for channel in baseline.channels if len(channel.values) == len(baseline.frames)]
    baked = [keys[key] for channel in moving for key in channel.keys if key in keys]
    whole = [k[:, 0].astype(np.float64) for k in baked if len(k) == len(baseline.frames)]
    if 2 * len(whole) <= len(baked):
        return before
    frames, first = baseline.frames.astype(np.float64), whole[0]
    factor = (first[-1] - first[0]) / (frames[-1] - frames[0]) if len(frames) > 1 else 1.0
    if abs(factor - baseline.factor) * (frames[-1] - frames[0]) < _ON_FRAME:
        factor = baseline.factor
    offset = float(first[0] - factor * frames[0])
    if factor <= 0.0 or any(np.abs(x - (offset + factor * frames)).max() > _ON_FRAME for x in whole):
        return before
    return (offset if abs(offset - baseline.offset) > _ON_FRAME else baseline.offset), float(factor)


class _Reader:
    """Values of curves at the bake's frames: taken from the keys where they lie there, evaluated where they do not."""

    def __init__(self, curves: Curves, keys: Mapping[tuple[str, int], NDArray[np.float32]], frames: Array) -> None:
        self._curves, self._keys, self._frames = curves, keys, frames

    def has(self, path: str, width: int) -> bool:
        return any((path, i) in self._curves and self._any(self._curves[path, i]) for i in range(width))

    def holds(self, path: str, base: NDArray[Any]) -> bool:
        """Whether a bone that is held in one pose still has just that one key."""
        keys = [self._keys.get((path, i)) for i in range(base.shape[1])]
        return len(base) == 1 and all(k is not None and len(k) == 1 and k[0, 1] == base[0, i] for i, k in enumerate(keys))

    def read(self, path: str, base: NDArray[Any]) -> tuple[Array, NDArray[np.bool_]]:
        """Values ``(F, n)`` and where ``(F,)`` they are not the baked ones. A component without a curve counts as baked."""
        out = base.astype(np.float64)
        touched = np.zeros(len(base), dtype=bool)
        for i in range(base.shape[1]):
            curve = self._curves.get((path, i))
            if curve is None or not self._any(curve):
                continue
            keys = self._keys[path, i]
            if len(keys) == len(self._frames) and np.abs(keys[:, 0] - self._frames).max() <= _ON_FRAME:
                changed = keys[:, 1] != base[:, i]
                out[:, i] = keys[:, 1]
            else:
                with _without_modifiers(curve):
                    seen = evaluate(curve, self._frames)
                near = _ROUNDING * np.maximum(1.0, np.abs(base[:, i].astype(np.float64)))
                changed = ~(np.abs(seen - base[:, i]) <= near)
                out[:, i] = np.where(changed, seen, base[:, i])
            touched |= changed
        return np.where(np.isnan(out), 0.0, out), touched

    @staticmethod
    def _any(curve: bpy.types.FCurve) -> bool:
        return len(curve.keyframe_points) > 0 or len(curve.sampled_points) > 0


@contextmanager
def _without_modifiers(curve: bpy.types.FCurve) -> Iterator[None]:
    """What modifiers add stays in them; they are on top of any keys."""
    on = [modifier for modifier in curve.modifiers if not modifier.mute]
    for modifier in on:
        modifier.mute = True
    try:
        yield
    finally:
        for modifier in on:
            modifier.mute = False
