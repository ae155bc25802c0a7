# SPDX-License-Identifier: GPL-3.0-or-later
"""glTF files as parts that can be changed and written: the JSON, and one block of bytes.

Source: glTF 2.0 specification (Khronos, ISO/IEC 12113:2022), sections 3.6 (buffers) and 4 (GLB). Numbers that nothing uses any more are
left out of what is written, so that a character whose animations are exchanged ten times is no larger than after the first.
"""

from __future__ import annotations

import copy
import json
import os
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..motion.errors import FileError
from .gltf_buffers import Buffers
from .gltf_nodes import loader_names, read_json

Json = dict[str, Any]

_MIME = {".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".webp": "image/webp", ".ktx2": "image/ktx2"}
_COMPONENT = {"<f4": 5126, "<i2": 5122}
_KIND = {1: "SCALAR", 3: "VEC3", 4: "VEC4"}

# Extensions that are known to name no accessors (or, as instancing, where); with others nothing is left out.
_KNOWN = (
    *("KHR_materials", "KHR_texture", "KHR_lights_punctual", "KHR_mesh_quantization", "EXT_texture", "EXT_mesh_gpu_instancing"),
    *("VRM", "KHR_animation_pointer", "KHR_xmp", "KHR_node_visibility", "MSFT_texture", "KHR_draco"),
)


@dataclass
class GltfFile:
    """A glTF file: its JSON (with one buffer, number 0, or none) and that buffer's bytes."""

    data: Json
    binary: bytearray

    def add(self, values: NDArray[Any], *, bounds: bool = False, normalized: bool = False) -> int:
        """A new accessor of ``(K,)`` or ``(K, n)`` numbers (float32 or int16) in the last block of numbers; its index."""
        values = np.ascontiguousarray(values)
        dtype = values.dtype.newbyteorder("<").str
        self._pad()
        view = self._view()
        item: Json = {"bufferView": view, "componentType": _COMPONENT[dtype], "count": len(values)}
        offset = len(self.binary) - self.data["bufferViews"][view]["byteOffset"]
        if offset:
            item["byteOffset"] = offset
        item["type"] = _KIND[1 if values.ndim == 1 else values.shape[1]]
        if normalized:
            item["normalized"] = True
        if bounds:  # as doubles: what is compared are the numbers as they are stored
            item["min"], item["max"] = [float(values.min())], [float(values.max())]
        self.binary += values.astype(dtype, copy=False).tobytes()
        self.data["bufferViews"][view]["byteLength"] = len(self.binary) - self.data["bufferViews"][view]["byteOffset"]
        return _append(self.data, "accessors", item)

    def begin_block(self) -> None:
        """What is added from here on goes into a block (buffer view) of its own."""
        self._block = -1

    def add_block(self, content: bytes) -> int:
        """Bytes as a block of their own; its number."""
        self._pad()
        self.begin_block()
        view = self._view()
        self.binary += content
        self.data["bufferViews"][view]["byteLength"] = len(content)
        self.begin_block()
        return view

    _block: int = -1

    def _view(self) -> int:
        if self._block < 0:
            self._block = _append(self.data, "bufferViews", {"buffer": 0, "byteOffset": len(self.binary), "byteLength": 0})
        return self._block

    def _pad(self) -> None:
        self.binary += b"\0" * (-len(self.binary) % 4)

    def glb(self) -> bytes:
        """The file as one binary."""
        self._pad()
        data = self.data
        if self.binary:
            data["buffers"] = [{**(data.get("buffers") or [{}])[0], "byteLength": len(self.binary)}]
        text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
        text += b" " * (-len(text) % 4)
        chunks = struct.pack("<I4s", len(text), b"JSON") + text
        if self.binary:
            chunks += struct.pack("<I4s", len(self.binary), b"BIN\0") + bytes(self.binary)
        return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def read(path: str | Path) -> GltfFile:
    """A ``.glb``, ``.gltf`` or ``.vrm`` file with all that lies beside it (buffers, pictures) taken in.

    Raises
    ------
    FileError
        No glTF file, a damaged one, or something beside it is missing.
    """
    path = Path(path)
    data = copy.deepcopy(read_json(path))
    buffers = Buffers(data, path)
    binary = bytearray()
    starts: list[int] = []
    try:
        for k, buffer in enumerate(data.get("buffers") or ()):
            binary += b"\0" * (-len(binary) % 4)
            starts.append(len(binary))
            part = buffers.raw(k, int(buffer["byteLength"]))
            binary += part
        for view in data.get("bufferViews") or ():
            view["byteOffset"] = int(view.get("byteOffset") or 0) + starts[int(view.get("buffer") or 0)]
            view["buffer"] = 0
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        raise FileError("The buffers of this glTF file are damaged; export it again.", path) from None
    if starts:
        data["buffers"] = [{"byteLength": len(binary)}]
    out = GltfFile(data, binary)
    _take_pictures_in(out, buffers, path)
    return out


def save(path: str | Path, content: bytes) -> int:
    """Write bytes to a file, all or nothing; their number. :class:`FileError` if it cannot be written."""
    path = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:40]}.", suffix=".part", dir=path.parent)
    except OSError as error:
        raise FileError(f"The file cannot be written there ({error.strerror}).", path) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)  # mkstemp makes files that only their owner can read
        os.replace(temporary, path)
    except OSError as error:
        raise FileError(f"The file cannot be written there ({error.strerror}).", path) from None
    finally:
        Path(temporary).unlink(missing_ok=True)
    return len(content)


def drop_animations(file: GltfFile) -> None:
    """Take all animations out, with the numbers that only they use."""
    animations: list[Json] = file.data.pop("animations", [])
    if not animations or not _is_known(file.data):
        return
    theirs = {int(s[k]) for a in animations for s in a.get("samplers") or () for k in ("input", "output")}
    others = {owner[key] for owner, key in _accessor_places(file.data)}
    _renumber(file.data, "accessors", theirs - others, _accessor_places)
    drop_unused(file)


def drop_unused(file: GltfFile) -> None:
    """Leave out blocks of bytes that nothing uses any more, and pack the others."""
    data = file.data
    views: list[Json] = data.get("bufferViews") or []
    used = {owner[key] for owner, key in _view_places(data)}
    _renumber(data, "bufferViews", set(range(len(views))) - used, _view_places)
    packed = bytearray()
    for view in data.get("bufferViews") or ():
        start = int(view.get("byteOffset") or 0)
        packed += b"\0" * (-len(packed) % 4)
        part = file.binary[start : start + int(view["byteLength"])]
        view["byteOffset"] = len(packed)
        packed += part
    file.binary = packed
    file.begin_block()
    if not packed:
        data.pop("buffers", None)


def hang_skins_on_scene(data: Json) -> None:
    """Put skinned meshes directly into the scene where that changes neither what is seen nor a name.

    A skinned mesh is where its joints are, whatever it hangs on, so validators warn of one below a node that might move. Files with several
    scenes, and meshes that others hang on, are left as they are.
    """
    nodes: list[Json] = data.get("nodes") or []
    scenes: list[Json] = data.get("scenes") or []
    roots: set[int] = set(scenes[0].get("nodes") or ()) if len(scenes) == 1 else set()
    moved = [i for i, node in enumerate(nodes) if node.get("skin") is not None and not node.get("children") and i not in roots]
    if not roots or not moved:
        return
    changed: Json = {**data, "nodes": [dict(node) for node in nodes], "scenes": [dict(scenes[0])]}
    for node in changed["nodes"]:
        left = [c for c in node.get("children") or () if c not in moved]
        node.pop("children", None)
        if left:
            node["children"] = left
    for i in moved:
        for key in ("translation", "rotation", "scale", "matrix"):
            changed["nodes"][i].pop(key, None)
    changed["scenes"][0]["nodes"] = [*(scenes[0].get("nodes") or ()), *moved]
    if loader_names(changed) == loader_names(data):
        data.update(changed)


def as_parts(node: Json, translation: NDArray[np.float64], rotation: NDArray[np.float64], scale: NDArray[np.float64]) -> None:
    """Write a node's matrix as translation, rotation (given wxyz) and scale: only such a node can be animated."""
    if node.pop("matrix", None) is not None:
        node["translation"], node["scale"] = translation.tolist(), scale.tolist()
        node["rotation"] = rotation[[1, 2, 3, 0]].tolist()


def _take_pictures_in(file: GltfFile, buffers: Buffers, path: Path) -> None:
    """Pictures that lie beside the file become part of it."""
    for image in file.data.get("images") or ():
        uri = image.get("uri")
        if not uri or uri.startswith("data:"):
            continue
        content = buffers.beside(uri)
        view = file.add_block(content)
        del image["uri"]
        image["bufferView"] = view
        image["mimeType"] = image.get("mimeType") or _MIME.get(Path(uri).suffix.lower(), "image/png")
    file.begin_block()


def _append(data: Json, kind: str, item: Json) -> int:
    items: list[Json] = data.setdefault(kind, [])
    items.append(item)
    return len(items) - 1


def _is_known(data: Json) -> bool:
    names = cast("Sequence[str]", data.get("extensionsUsed") or ())
    return all(name.startswith(_KNOWN) for name in names)


Places = Callable[[Json], Iterator[tuple[Any, Any]]]


def _accessor_places(data: Json) -> Iterator[tuple[Any, Any]]:
    """Everything that holds the number of an accessor, as (owner, key)."""
    for mesh in data.get("meshes") or ():
        for primitive in mesh.get("primitives") or ():
            owners: list[Json] = [primitive.get("attributes") or {}, *(primitive.get("targets") or ())]
            for owner in owners:
                for key in owner:
                    yield owner, key
            if primitive.get("indices") is not None:
                yield primitive, "indices"
    for skin in data.get("skins") or ():
        if skin.get("inverseBindMatrices") is not None:
            yield skin, "inverseBindMatrices"
    for animation in data.get("animations") or ():
        for sampler in animation.get("samplers") or ():
            yield sampler, "input"
            yield sampler, "output"
    for node in data.get("nodes") or ():
        extensions: Json = node.get("extensions") or {}
        instancing: Json = extensions.get("EXT_mesh_gpu_instancing") or {}
        attributes: Json = instancing.get("attributes") or {}
        for key in attributes:
            yield attributes, key


def _view_places(data: Json) -> Iterator[tuple[Any, Any]]:
    """Everything that holds the number of a buffer view: the key has one name in the format and all its extensions."""
    stack: list[object] = [data]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            owner = cast("Json", item)
            if isinstance(owner.get("bufferView"), int):
                yield owner, "bufferView"
            stack.extend(value for key, value in owner.items() if key != "extras")
        elif isinstance(item, list):
            stack.extend(cast("list[object]", item))


def _renumber(data: Json, kind: str, gone: set[int], places: Places) -> None:
    items: list[Json] = data.get(kind) or []
    new: Mapping[int, int] = {old: k for k, old in enumerate(i for i in range(len(items)) if i not in gone)}
    data[kind] = [item for i, item in enumerate(items) if i not in gone]
    if not data[kind]:
        del data[kind]
    for owner, key in list(places(data)):
        owner[key] = new[owner[key]]
