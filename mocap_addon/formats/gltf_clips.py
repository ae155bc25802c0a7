# SPDX-License-Identifier: GPL-3.0-or-later
"""Clips on the nodes of a glTF file as its animations: added to the character's own file, or alone with its skeleton.

Times are seconds from 0 in float32. Rotations are float32, or 16-bit integers that stand for fractions of 32767 (core glTF, no extension:
4e-5 rad), whose largest component is computed again from the others so that they are of unit length. Times of keys that several channels
share are stored once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from . import gltf_nodes
from .clip_reduce import Compact
from .gltf_nodes import NodeTree
from .gltf_write import GltfFile, as_parts, drop_animations, hang_skins_on_scene, read
from .node_clip import Channel, MorphCurve, NodeClip

Array = NDArray[np.float64]
Json = dict[str, Any]

SHORT, FLOAT = 0, 1
_TOP = 32767.0
_SHORT_ERROR = 4e-5  # radians
_OWN_TIMES = 150  # bytes that times of its own cost a channel, beside the times
_STILL_MORPH = 1e-6


class GlbWriting:
    """Numbers as bytes: 16-bit integers or float32."""

    shares: Sequence[float] = (0.5,)

    def __init__(self) -> None:
        self._times: dict[int, tuple[Array, Array]] = {}

    def choice(self, channel: Channel, finest: float) -> int:
        """Only rotations can be short in core glTF."""
        return SHORT if channel.path == "rotation" and finest >= _SHORT_ERROR else FLOAT

    def exact(self, channel: Channel) -> int:
        """Single precision."""
        return FLOAT

    def rounded(self, channel: Channel, choice: int) -> Channel:
        """What a reader gets."""
        values = shorts(channel.values) / _TOP if choice == SHORT else channel.values.astype(np.float32).astype(np.float64)
        return replace(channel, values=values, times=self._single(channel.times))

    def _single(self, times: Array) -> Array:
        """Times in single precision: of one array always the same one, so that what shares its times goes on doing so."""
        if id(times) not in self._times:
            self._times[id(times)] = times, times.astype(np.float32).astype(np.float64)
        return self._times[id(times)][1]

    def length(self, channel: Channel, choice: int) -> int:
        """Of the values; times that are the channel's own are counted by :meth:`worth`."""
        return len(channel.times) * (8 if choice == SHORT else 4 * channel.values.shape[1])

    def worth(self, channel: Channel, kept: int, choice: int) -> bool:
        """The keys' times cannot be shared with other channels then."""
        size = 8 if choice == SHORT else 4 * channel.values.shape[1]
        return kept * (size + 4) + _OWN_TIMES < len(channel.times) * size


def shorts(q: Array) -> NDArray[np.int16]:
    """Unit quaternions ``(K, 4)`` in any order of components as 16-bit integers of continuous sign."""
    scaled = np.round(quat.continuous(q) * _TOP)
    rows, largest = np.arange(len(q)), np.argmax(np.abs(scaled), axis=1)
    others = np.einsum("fi,fi->f", scaled, scaled) - scaled[rows, largest] ** 2
    scaled[rows, largest] = np.round(np.copysign(np.sqrt(np.maximum(_TOP**2 - others, 0.0)), scaled[rows, largest]))
    return scaled.astype(np.int16)


def add_clips(file: GltfFile, clips: Sequence[Compact], node_of: dict[int, int] | None = None) -> None:
    """Write clips as animations, after those that are there.

    Parameters
    ----------
    file : GltfFile
    clips : sequence of Compact
        Written by :class:`GlbWriting`. Additive ones cannot be told from others by a reader but for their extras.
    node_of : dict, optional
        The clips' node -> the file's; the same by default.
    """
    file.begin_block()
    seen: dict[bytes, int] = {}
    for one in clips:
        _add_clip(file, one, node_of, seen)
    file.begin_block()


def _add_clip(file: GltfFile, one: Compact, node_of: dict[int, int] | None, seen: dict[bytes, int]) -> None:
    clip = one.clip
    ends = np.array([0.0, clip.duration], dtype=np.float32)
    samplers: list[Json] = []
    channels: list[Json] = []
    moved: set[int] = set()

    def times_of(times: NDArray[np.float32]) -> int:
        key = times.tobytes()
        if key not in seen:
            seen[key] = file.add(times, bounds=True)
        return seen[key]

    def put(node: int, path: str, times: NDArray[np.float32], values: NDArray[Any], short: bool = False) -> None:
        samplers.append({"input": times_of(times), "output": file.add(values, normalized=short)})
        node = node if node_of is None else node_of[node]
        channels.append({"sampler": len(samplers) - 1, "target": {"node": node, "path": path}})
        moved.add(node)

    for c, choice in zip(clip.channels, one.choices, strict=True):
        values = c.values[:, [1, 2, 3, 0]] if c.path == "rotation" else c.values
        short = choice == SHORT and c.path == "rotation"
        stored = np.round(values * _TOP).astype(np.int16) if short else values.astype(np.float32)
        times = ends if c.constant else c.times.astype(np.float32)
        put(c.node, c.path, times, np.repeat(stored, 2, axis=0) if c.constant else stored, short)
    for node, curves in _by_mesh(clip.morphs).items():
        if node_of is None or node in node_of:
            put(node, "weights", clip.times.astype(np.float32), _weights(file.data, node, curves).astype(np.float32).ravel())
    if not channels:
        return
    animation: Json = {"name": clip.name, "samplers": samplers, "channels": channels}
    extras = _extras(clip)
    if extras:
        animation["extras"] = extras
    file.data.setdefault("animations", []).append(animation)
    if not any("matrix" in file.data["nodes"][node] for node in moved):
        return
    tree = gltf_nodes.tree(file.data)
    for node in moved:
        as_parts(file.data["nodes"][node], tree.translations[node], tree.rotations[node], tree.scales[node])


def character(path: str | Path, clips: Sequence[Compact], *, keep: bool = False) -> GltfFile:
    """The character's own file with these clips, in place of its animations or (``keep``) after them."""
    file = read(path)
    if not keep:
        drop_animations(file)
    hang_skins_on_scene(file.data)
    add_clips(file, clips)
    return file


def skeleton(tree: NodeTree, clips: Sequence[Compact], joints: Iterable[int] = ()) -> GltfFile:
    """The clips alone, with the nodes they move, ``joints``, and what these hang on.

    The nodes are called what three's loader calls them in the character's file, so that the clips play on that.
    """
    moved = {c.node for one in clips for c in one.clip.channels}
    wanted = {n for w in (*moved, *joints) for n in (w, *tree.ancestors(w))}
    order = [n for n in tree.order if n in wanted]
    node_of = {n: k for k, n in enumerate(order)}
    nodes: list[Json] = [{"name": tree.loader_names[n] or f"node_{n}"} for n in order]
    for key, values, rest in (
        ("translation", tree.translations[order], (0.0, 0.0, 0.0)),
        ("rotation", tree.rotations[order][:, [1, 2, 3, 0]], (0.0, 0.0, 0.0, 1.0)),
        ("scale", tree.scales[order], (1.0, 1.0, 1.0)),
    ):
        for k in np.flatnonzero(np.abs(values - np.array(rest)).max(axis=1) > 1e-9).tolist():
            nodes[k][key] = singles(values[k])
    above = tree.parents[order].tolist()
    for k, parent in enumerate(above):
        if parent >= 0:
            nodes[node_of[parent]].setdefault("children", []).append(k)
    roots = [k for k, parent in enumerate(above) if parent < 0]
    data: Json = {"asset": {"version": "2.0", "generator": "Mocap for Blender"}, "scene": 0, "scenes": [{"nodes": roots}], "nodes": nodes}
    file = GltfFile(data, bytearray())
    add_clips(file, clips, node_of)
    return file


def singles(values: Array) -> list[float]:
    """Numbers in single precision, written no longer than that."""
    return [float(str(v)) for v in values.astype(np.float32)]


def _by_mesh(morphs: Sequence[MorphCurve]) -> dict[int, list[MorphCurve]]:
    out: dict[int, list[MorphCurve]] = {}
    for m in morphs:
        out.setdefault(m.node, []).append(m)
    return {node: curves for node, curves in out.items() if any(np.ptp(m.values) > _STILL_MORPH for m in curves)}


def _weights(data: Json, node: int, curves: Sequence[MorphCurve]) -> Array:
    """(F, T): all morph targets of a mesh, those without a curve as they stand."""
    mesh: Json = data["meshes"][data["nodes"][node]["mesh"]]
    count = len(mesh["primitives"][0]["targets"])
    standing = data["nodes"][node].get("weights") or mesh.get("weights") or [0.0] * count
    out = np.tile(np.array(standing, dtype=np.float64), (len(curves[0].values), 1))
    for m in curves:
        out[:, m.index] = m.values
    return out


def _extras(clip: NodeClip) -> Json:
    """What the format has no place for: players find it in the clip's user data."""
    out: Json = dict(clip.user_data)
    if clip.rate is not None:
        out["fps"], out["rate"] = round(float(clip.rate), 6), f"{clip.rate.numerator}/{clip.rate.denominator}"
    if clip.loop:
        out["loop"] = True
    if clip.additive:
        out["additive"] = True
    if clip.scalars:
        out["curves"] = {s.name: _sparse(clip.times, s.values) for s in clip.scalars}
    if clip.path is not None:
        places, turns = clip.path
        times = np.round(clip.times, 6).tolist()
        out["root"] = {"times": times, "positions": np.round(places, 6).tolist(), "rotations": np.round(turns[:, [1, 2, 3, 0]], 7).tolist()}
    return out


def _sparse(times: Array, values: Array) -> Json:
    keep = np.concatenate([[True], values[1:] != values[:-1]])
    keep[-1] = True
    return {"times": np.round(times[keep], 6).tolist(), "values": np.round(values[keep], 6).tolist()}
