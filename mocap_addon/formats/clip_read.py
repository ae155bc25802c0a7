# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading back what was written, as a player would: for measuring it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from ..motion.errors import FileError
from .gltf_buffers import Buffers
from .gltf_nodes import NodeTree, loader_names, read_json
from .node_clip import Channel
from .node_clip import Path as Property

_NUMBERS = re.compile(r'"(times|values)":\[([-+.eE\d,]*)\]')
_OF_THREE: Mapping[str, Property] = {"quaternion": "rotation", "position": "translation", "scale": "scale"}


def threejs(path: str | Path, tree: NodeTree) -> dict[str, list[Channel]]:
    """The channels of each clip of a three.js file, numbers in single precision as three keeps them."""
    node_of = {name: n for n, name in enumerate(tree.loader_names) if name and tree.found[n]}
    out: dict[str, list[Channel]] = {}
    # the numbers are taken out of the text by numpy, several times faster than the JSON reader
    lists: list[str] = []

    def kept(found: re.Match[str]) -> str:
        lists.append(found[2])
        return f'"{found[1]}":{len(lists) - 1}'

    text = _NUMBERS.sub(kept, Path(path).read_text(encoding="utf-8"))
    for clip in cast("list[dict[str, Any]]", json.loads(text)):
        channels = out.setdefault(clip["name"], [])
        for track in clip["tracks"]:
            node, _, prop = str(track["name"]).rpartition(".")
            if node in node_of and prop in _OF_THREE:
                times, values = (_single(lists[int(track[part])]) for part in ("times", "values"))
                channels.append(_channel(node_of[node], _OF_THREE[prop], times, values))
    return out


def gltf(path: str | Path, tree: NodeTree) -> dict[str, list[Channel]]:
    """The channels of each animation of a glTF file, on the nodes of ``tree`` that three's loader calls the same."""
    path = Path(path)
    data = read_json(path)
    names = loader_names(data)
    node_of = {name: n for n, name in enumerate(tree.loader_names) if name}
    buffers = Buffers(data, path)
    times: dict[int, np.ndarray[Any, np.dtype[np.float64]]] = {}
    out: dict[str, list[Channel]] = {}
    for animation in data.get("animations") or ():
        channels = out.setdefault(str(animation.get("name") or ""), [])
        for channel in animation["channels"]:
            prop: Property = channel["target"]["path"]
            node = node_of.get(names[int(channel["target"]["node"])])
            if node is None or str(prop) == "weights":
                continue
            sampler = animation["samplers"][channel["sampler"]]
            values = buffers.array(sampler["output"])
            at = int(sampler["input"])
            if at not in times:
                times[at] = buffers.array(at)[:, 0]
            channels.append(_channel(node, prop, times[at], values.ravel()))
    return out


def _channel(
    node: int, prop: Property, times: np.ndarray[Any, np.dtype[np.float64]], flat: np.ndarray[Any, np.dtype[np.float64]]
) -> Channel:
    values = flat.reshape(len(times), -1)
    if values.shape[1] != (4 if prop == "rotation" else 3):
        raise FileError("What was written cannot be read back; this is a fault of the add-on.")
    return Channel(node, prop, times, values[:, [3, 0, 1, 2]] if prop == "rotation" else values)


def _single(numbers: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    return np.fromstring(numbers, dtype=np.float64, sep=",").astype(np.float32).astype(np.float64)
