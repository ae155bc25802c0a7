# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys as they were baked, kept inside the action: what is changed by hand later is told from them.

The source may be another file by then, so the last bake cannot be made again: it has to be stored. A second, hidden action would show
up in every list and export, and weigh as much as the first. Blender keeps a key in 72 bytes or more; here it is one float32, exactly the
number that went into the key, so an untouched key is known by equality. That is 4 bytes in 76, a twentieth of the action, and needs no
compression (a .blend is compressed as a whole when its owner wants that). The numbers lie in a group of custom properties: Blender's
panels do not print those out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from .channels import Channels

Single = NDArray[np.float32]

PROPERTY = "mocap_baseline"
VERSION = 1


@dataclass(frozen=True, eq=False)
class Baseline:
    """What was baked last, without anything done by hand.

    Parameters
    ----------
    frames : (F,) array
        Scene frames of the keys as they were baked.
    channels : tuple of Channels
        Values ``(F, n)``; after :func:`load` float32, exactly as in the keys.
    fps : Fraction
        The scene's rate at the bake.
    offset, factor : float
        Where the keys have been moved by hand, all of them at once: frame ``f`` of the bake lies at ``offset + factor * f``.
    """

    frames: NDArray[Any]
    channels: tuple[Channels, ...]
    fps: Fraction
    offset: float = 0.0
    factor: float = 1.0

    @property
    def key_frames(self) -> Single:
        """(F,): where the keys lie in the action."""
        return np.asarray(self.offset + self.factor * self.frames.astype(np.float64), dtype=np.float32)

    @property
    def seconds(self) -> NDArray[np.float64]:
        """(F,): seconds since the first sample."""
        frames = self.frames.astype(np.float64)
        return (frames - frames[0]) / float(self.fps)


def store(action: bpy.types.Action, baseline: Baseline) -> None:
    """Keep a bake with its action."""
    layout = {
        "frames": len(baseline.frames),
        "fps": str(baseline.fps),
        "offset": baseline.offset,
        "factor": baseline.factor,
        "channels": [
            [c.path, c.group, *c.values.shape, c.color_mode, int(c.stepped), int(c.indexed), c.kind, c.mode] for c in baseline.channels
        ],
    }
    data = np.empty(len(baseline.frames) + sum(c.values.size for c in baseline.channels), dtype=np.float32)
    data[: len(baseline.frames)] = baseline.frames
    at = len(baseline.frames)
    for channel in baseline.channels:
        for column in range(channel.values.shape[1]):
            data[at : at + len(channel.values)] = channel.values[:, column]
            at += len(channel.values)
    action[PROPERTY] = {"version": VERSION, "layout": json.dumps(layout, ensure_ascii=False), "data": data.tobytes()}


def load(action: bpy.types.Action) -> Baseline | None:
    """The bake kept with an action; None when there is none, or one that this version cannot read."""
    group = action.get(PROPERTY)
    try:
        if group is None or int(group["version"]) > VERSION:
            return None
        layout = json.loads(group["layout"])
        data = np.frombuffer(bytes(group["data"]), dtype=np.float32)
        at = int(layout["frames"])
        frames = data[:at]
        channels: list[Channels] = []
        for path, name, rows, width, color, stepped, indexed, kind, mode in layout["channels"]:
            values = data[at : at + rows * width].reshape(width, rows).T
            at += rows * width
            channels.append(Channels(path, name, values, color, bool(stepped), bool(indexed), kind, mode))
        return Baseline(frames, tuple(channels), Fraction(layout["fps"]), float(layout["offset"]), float(layout["factor"]))
    except (KeyError, TypeError, ValueError):
        return None
