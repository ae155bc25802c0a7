# SPDX-License-Identifier: GPL-3.0-or-later
"""Clips on the nodes of a glTF file as three.js clips, and how short their numbers can be written."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..motion.errors import FileError
from . import threejs
from .clip_reduce import Compact
from .gltf_nodes import NodeTree, sanitize
from .node_clip import Channel, MorphCurve, NodeClip, Path, ScalarCurve
from .threejs import Clip, Track

Array = NDArray[np.float64]

_PROPERTY: dict[Path, str] = {"rotation": "quaternion", "translation": "position", "scale": "scale"}
_MICROMETRE = 6
_SMALLEST_MORPH = 1e-4  # a morph target that never does more does nothing


class JsonWriting:
    """Numbers as text, in fewer or more decimals."""

    shares: Sequence[float] = (0.5, 0.15)

    def choice(self, channel: Channel, finest: float) -> int:
        """Decimals. The largest component of a rotation is the sum of the others' errors off, so a last digit counts about twice."""
        step = 0.5 * finest if channel.path == "rotation" else 1.2 * finest
        return max(0, min(self.exact(channel), math.ceil(-math.log10(max(step, 1e-12)) - 1e-9)))

    def exact(self, channel: Channel) -> int:
        """Single precision, which three keeps; of places a micrometre, counted in the parent's unit."""
        if channel.path == "translation":
            return max(0, _MICROMETRE + math.ceil(math.log10(channel.metres) - 1e-6))
        return 7 if channel.path == "rotation" else _MICROMETRE

    def rounded(self, channel: Channel, choice: int) -> Channel:
        """What three.js reads."""
        if channel.path == "rotation":
            return replace(channel, values=threejs.rounded_quaternions(channel.values, choice))
        return replace(channel, values=np.round(channel.values, choice) + 0.0)

    def length(self, channel: Channel, choice: int) -> int:
        """Of the text."""
        return len(channel.times) * (9 + channel.values.shape[1] * (choice + 3))

    def worth(self, channel: Channel, kept: int, choice: int) -> bool:
        """Every key that is left out saves its time and values."""
        return kept < len(channel.times)


def names_of(tree: NodeTree, clip: NodeClip) -> dict[int, str]:
    """The names that three's loader gives the nodes of a clip.

    Raises
    ------
    FileError
        If a node cannot be reached by name: it has none, or three finds another one first.
    """
    out: dict[int, str] = {}
    for c in clip.channels:
        if not tree.found[c.node]:
            name, shown = tree.loader_names[c.node], tree.names[c.node]
            why = f'three.js would move another node than "{shown}" by that name' if name else f"three.js cannot name node {c.node}"
            raise FileError(f"In this character file {why}; rename the bone in Blender and export the character again.")
        out[c.node] = tree.loader_names[c.node]
    return out


def to_clip(tree: NodeTree, compact: Compact, *, morph_names: bool = True, time_decimals: int = 7) -> list[Clip]:
    """A clip, and the way that was taken off it as a clip of its own (for the object that carries the character).

    Parameters
    ----------
    tree : NodeTree
    compact : Compact
        The clip, and the decimals of its channels (:class:`JsonWriting`).
    morph_names : bool
        Morph targets by name; by their number otherwise. A name that three.js cannot write is always a number.
    time_decimals : int
        Decimals of the times.
    """
    clip = compact.clip
    names = names_of(tree, clip)
    tracks = [_track(c, names[c.node], digits) for c, digits in zip(clip.channels, compact.choices, strict=True)]
    tracks += [track for m in clip.morphs if (track := _morph(m, morph_names)) is not None]
    tracks += [_scalar(s, clip.times) for s in clip.scalars]
    data = dict(clip.user_data)
    if clip.loop:
        data["loop"] = True
    times = clip.times if len(clip.times) > 1 else clip.times[:1]

    def make(name: str, some: Sequence[Track], more: dict[str, object]) -> Clip:
        return threejs.clip(name, times, some, rate=clip.rate, user_data=more, additive=clip.additive, time_decimals=time_decimals)

    out = [make(clip.name, tracks, data)]
    if clip.path is not None:
        places, turns = clip.path
        way = [
            Track("", "position", places, _MICROMETRE, of_root=True),
            Track("", "quaternion", turns[:, [1, 2, 3, 0]], of_root=True),
        ]
        out.append(make(f"{clip.name} root", way, {"root_of": clip.name}))
    return out


def standing(tree: NodeTree) -> dict[tuple[int, Path], Array]:
    """Where the file has each node."""
    out: dict[tuple[int, Path], Array] = {}
    for n in range(len(tree)):
        out[n, "rotation"], out[n, "translation"], out[n, "scale"] = tree.rotations[n], tree.translations[n], tree.scales[n]
    return out


def manifest(character: str, entries: Sequence[dict[str, object]], renamed: dict[str, str]) -> str:
    """The text of a list of a character's clips: a JSON object with the file of the character, its renamed bones, and the clips."""
    data = {"version": 1, "character": character, "bones": renamed, "clips": list(entries)}
    return json.dumps(data, indent=1, allow_nan=False) + "\n"


def _track(c: Channel, name: str, digits: int) -> Track:
    values = c.values[:, [1, 2, 3, 0]] if c.path == "rotation" else c.values
    return Track(name, _PROPERTY[c.path], values, digits, None if c.constant else c.times)


def _morph(m: MorphCurve, by_name: bool) -> Track | None:
    if float(np.abs(m.values).max(initial=0.0)) < _SMALLEST_MORPH:
        return None
    named = by_name and m.target and not set(m.target) & set("[]")
    return Track(sanitize(m.mesh), f"morphTargetInfluences[{m.target if named else m.index}]", m.values[:, None], 4)


def _scalar(s: ScalarCurve, times: Array) -> Track:
    """Discrete numbers have a key where they change, and one at the end."""
    name = s.name.replace("[", "(").replace("]", ")")
    values = s.values
    if not s.discrete or len(values) < 2:
        return Track("", f"userData[{name}]", values[:, None], 6, discrete=s.discrete, of_root=True)
    keep = np.concatenate([[True], values[1:] != values[:-1]])
    keep[-1] = True
    if keep.sum() == 2 and values[0] == values[-1]:
        return Track("", f"userData[{name}]", values[:1, None], 6, discrete=True, of_root=True)
    return Track("", f"userData[{name}]", values[keep][:, None], 6, times[keep], discrete=True, of_root=True)
