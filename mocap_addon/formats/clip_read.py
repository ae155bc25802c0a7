# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading back what was written, as a player would: for measuring it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..motion.errors import FileError
from . import numbers
from .gltf_buffers import Buffers
from .gltf_nodes import NodeTree, loader_names, read_json
from .node_clip import Channel
from .node_clip import Path as Property

Array = NDArray[np.float64]

_NUMBERS = re.compile(rb'"(times|values)":\[([-+.eE\d,]*)\]')
_AT_ONCE = 1 << 16  # bytes of text that are read at once: what fits the processor's cache
_OF_THREE: Mapping[str, Property] = {"quaternion": "rotation", "position": "translation", "scale": "scale"}


def threejs(path: str | Path, tree: NodeTree) -> dict[str, list[Channel]]:
    """The channels of each clip of a three.js file, numbers in single precision as three keeps them."""
    node_of = {name: n for n, name in enumerate(tree.loader_names) if name and tree.found[n]}
    text, lists = _numbers_apart(Path(path).read_bytes())
    arrays = _singles(lists)
    out: dict[str, list[Channel]] = {}
    for clip in cast("list[dict[str, Any]]", json.loads(text)):
        channels = out.setdefault(clip["name"], [])
        for track in clip["tracks"]:
            node, _, prop = str(track["name"]).rpartition(".")
            if node in node_of and prop in _OF_THREE:
                channels.append(_channel(node_of[node], _OF_THREE[prop], arrays[int(track["times"])], arrays[int(track["values"])]))
    return out


def _numbers_apart(text: bytes) -> tuple[str, list[bytes]]:
    """JSON with the number of a list of numbers instead of each, and the lists; equal ones are one (most tracks share their times)."""
    known: dict[bytes, int] = {}
    pieces: list[bytes] = []
    at = 0
    for found in _NUMBERS.finditer(text):
        number = known.setdefault(found[2], len(known))
        pieces += [text[at : found.start(2) - 1], b"%d" % number]
        at = found.end()
    return b"".join([*pieces, text[at:]]).decode("utf-8"), list(known)


def _singles(lists: list[bytes]) -> list[Array]:
    """Numbers in single precision: several lists at once, many times faster than the JSON reader."""
    out: list[Array] = []
    start = 0
    while start < len(lists):
        stop, size = start + 1, len(lists[start])
        while stop < len(lists) and size + len(lists[stop]) < _AT_ONCE:
            size += len(lists[stop])
            stop += 1
        some = lists[start:stop]
        values = _values(b" ".join(some).replace(b",", b" ")).astype(np.float32).astype(np.float64)
        counts = [one.count(b",") + 1 if one else 0 for one in some]
        out += np.split(values, np.cumsum(counts)[:-1])
        start = stop
    return out


def _values(text: bytes) -> Array:
    """Numbers between spaces; those with an exponent as two, a whole number and a power of ten to divide it by."""
    if b"e-" not in text:
        return numbers.parse(text).values
    raw = np.frombuffer(text, dtype=np.uint8)
    marks = np.flatnonzero((raw[:-1] == ord("e")) & (raw[1:] == ord("-")))
    found = numbers.parse(text.replace(b"e-", b"  "))
    powers = np.searchsorted(found.starts, marks)
    found.values[powers - 1] /= 10.0 ** found.values[powers]
    return np.delete(found.values, powers)


def gltf(path: str | Path, tree: NodeTree) -> dict[str, list[Channel]]:
    """The channels of each animation of a glTF file, on the nodes of ``tree`` that three's loader calls the same."""
    path = Path(path)
    data = read_json(path)
    names = loader_names(data)
    node_of = {name: n for n, name in enumerate(tree.loader_names) if name}
    buffers = Buffers(data, path)
    times: dict[int, Array] = {}
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


def _channel(node: int, prop: Property, times: Array, flat: Array) -> Channel:
    values = flat.reshape(len(times), -1)
    if values.shape[1] != (4 if prop == "rotation" else 3):
        raise FileError("What was written cannot be read back; this is a fault of the add-on.")
    return Channel(node, prop, times, values[:, [3, 0, 1, 2]] if prop == "rotation" else values)
