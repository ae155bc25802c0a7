# SPDX-License-Identifier: GPL-3.0-or-later
"""The numbers of a glTF file: accessors to arrays. Only the bytes that are asked for are read.

Source: glTF 2.0 specification (Khronos, ISO/IEC 12113:2022), sections 3.6 (accessors, sparse storage) and 4 (GLB containers).
"""

from __future__ import annotations

import base64
import binascii
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from ..motion.errors import FileError

Array = NDArray[np.float64]
Json = Mapping[str, Any]

_TYPES: dict[int, str] = {5120: "<i1", 5121: "<u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
_WIDTHS: dict[str, int] = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4, "MAT4": 16}
_MOST = 1 << 28
"""Numbers that one accessor may ask for: as many as 190 hours of one bone at 60 Hz take."""

_HELD = 16 << 20
"""Bytes of a file that is read once and held; larger ones are read piece by piece."""


class Buffers:
    """Reads the accessors of one file.

    Parameters
    ----------
    data : mapping
        The file's JSON, see :func:`.gltf_nodes.read_json`.
    path : path
        The file; buffers with a relative address lie beside it.
    """

    def __init__(self, data: Json, path: Path) -> None:
        self._data = data
        self._path = path
        self._inline: dict[int, bytes] = {}
        self._begin: int | None = None
        self._own: bytes | None = None

    def array(self, accessor: int) -> Array:
        """(count, components) numbers; integers that stand for fractions (``normalized``) become them.

        Raises
        ------
        FileError
            The accessor points outside its buffer, a buffer is missing, or it is packed in a way that is not read here.
        """
        try:
            return self._array(accessor)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError, struct.error, binascii.Error):
            raise FileError("The animation data of this glTF file is damaged; export it again.", self._path) from None
        except OSError as error:
            raise FileError(f"The buffer of this glTF file cannot be read ({error.strerror or error}).", self._path) from None

    def raw(self, buffer: int, size: int) -> bytes:
        """The first ``size`` bytes of a buffer; :class:`FileError` where there are fewer."""
        content = self._bytes(buffer, 0, size)
        if len(content) < size:
            raise FileError("The file is cut off: one of its buffers ends early.", self._path)
        return content

    def beside(self, uri: str) -> bytes:
        """What lies beside the file under a relative address; :class:`FileError` where it is missing."""
        try:
            return self._beside(uri).read_bytes()
        except OSError as error:
            raise FileError(f"A file beside this glTF file cannot be read ({error.strerror or error}).", self._path) from None

    def _array(self, index: int) -> Array:
        item = _item(self._data, "accessors", index)
        dtype = np.dtype(_TYPES[item["componentType"]])
        count, width = int(item["count"]), _WIDTHS[item["type"]]
        if count < 0 or count * width > _MOST:
            raise ValueError
        if item.get("bufferView") is None:
            out = np.zeros((count, width), dtype=dtype)
        else:
            out = self._view(int(item["bufferView"]), int(item.get("byteOffset") or 0), dtype, count, width)
        sparse: Json | None = item.get("sparse")
        if sparse is not None:
            out = self._with_sparse(out, sparse, dtype, width)
        if not item.get("normalized"):
            return out.astype(np.float64)
        top = float(np.iinfo(dtype).max)
        return np.maximum(out.astype(np.float64) / top, -1.0)

    def _with_sparse(self, out: NDArray[Any], sparse: Json, dtype: np.dtype[Any], width: int) -> NDArray[Any]:
        count = int(sparse["count"])
        at, values = sparse["indices"], sparse["values"]
        kind = np.dtype(_TYPES[at["componentType"]])
        places = self._view(int(at["bufferView"]), int(at.get("byteOffset") or 0), kind, count, 1)[:, 0]
        new = self._view(int(values["bufferView"]), int(values.get("byteOffset") or 0), dtype, count, width)
        out = out.copy()
        out[places.astype(np.int64)] = new
        return out

    def _view(self, index: int, offset: int, dtype: np.dtype[Any], count: int, width: int) -> NDArray[Any]:
        view = _item(self._data, "bufferViews", index)
        if any("meshopt" in name for name in cast("Mapping[str, object]", view.get("extensions") or {})):
            raise FileError("The data of this file is compressed (meshopt); export it without compression.", self._path)
        stride = int(view.get("byteStride") or 0) or dtype.itemsize * width
        size = (count - 1) * stride + dtype.itemsize * width if count else 0
        if offset < 0 or stride < dtype.itemsize * width or offset + size > int(view["byteLength"]):
            raise ValueError
        raw = self._bytes(int(view.get("buffer") or 0), int(view.get("byteOffset") or 0) + offset, size)
        if len(raw) < size:
            raise FileError("The file is cut off: its animation data ends early.", self._path)
        if not count:
            return np.zeros((0, width), dtype=dtype)
        return np.ndarray((count, width), dtype, raw, strides=(stride, dtype.itemsize))

    def _bytes(self, buffer: int, start: int, size: int) -> bytes:
        if start < 0:
            raise ValueError
        uri: str | None = _item(self._data, "buffers", buffer).get("uri")
        if uri is None:
            begin = self._binary_chunk() + start
            return _read(self._path, begin, size) if self._own is None else self._own[begin : begin + size]
        if uri.startswith("data:"):
            if buffer not in self._inline:
                self._inline[buffer] = base64.b64decode(uri.partition(",")[2], validate=True)
            return self._inline[buffer][start : start + size]
        return _read(self._beside(uri), start, size)

    def _beside(self, uri: str) -> Path:
        parts = urlsplit(uri)
        name = unquote(parts.path)
        if parts.scheme or parts.netloc or Path(name).is_absolute() or ":" in name:
            raise FileError(
                "A buffer of this glTF file is kept elsewhere than beside it; put it there, or export one .glb file.", self._path
            )
        found = self._path.parent / name
        if not found.is_file():
            raise FileError(f'The buffer "{found.name}" of this glTF file is missing; put it beside the file.', self._path)
        return found

    def _binary_chunk(self) -> int:
        """Where the bytes of the GLB's own buffer begin."""
        if self._begin is not None:
            return self._begin
        if self._path.stat().st_size <= _HELD:
            self._own = self._path.read_bytes()
        head = _read(self._path, 0, 20) if self._own is None else self._own[:20]
        if head[:4] != b"glTF":
            raise ValueError
        begin = 20 + struct.unpack("<I", head[12:16])[0]
        if (_read(self._path, begin + 4, 4) if self._own is None else self._own[begin + 4 : begin + 8]) != b"BIN\0":
            raise FileError("The file is cut off: it has no binary part.", self._path)
        self._begin = begin + 8
        return self._begin


def _read(path: Path, start: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        return file.read(size)


def _item(data: Json, kind: str, index: int) -> Json:
    items = cast("Sequence[Json]", data[kind])
    if not 0 <= index < len(items):
        raise IndexError
    return items[index]


def finite(values: Array) -> bool:
    """Whether every number is one."""
    return math.isfinite(float(values.sum()))
