# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes small glTF files node by node, independent of the reader: plain JSON and struct."""

from __future__ import annotations

import base64
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

FLOAT, SHORT, BYTE, UINT, USHORT = 5126, 5122, 5120, 5125, 5123
_KINDS = {FLOAT: "<f4", SHORT: "<i2", BYTE: "<i1", UINT: "<u4", USHORT: "<u2"}
_TYPES = {1: "SCALAR", 3: "VEC3", 4: "VEC4", 16: "MAT4"}


class Gltf:
    """A glTF file in the making. Rotations are given as glTF has them: x, y, z, w."""

    def __init__(self) -> None:
        self.data: dict[str, Any] = {
            "asset": {"version": "2.0"},
            "scene": 0,
            "scenes": [{"nodes": []}],
            "nodes": [],
            "accessors": [],
            "bufferViews": [],
            "animations": [],
            "skins": [],
        }
        self.buffer = bytearray()

    def node(self, name: str | None = None, parent: int | None = None, **transform: Any) -> int:
        """A node; ``rotation``, ``translation``, ``scale`` or ``matrix`` as lists."""
        index = len(self.data["nodes"])
        item = {key: np.asarray(value, dtype=float).tolist() if key != "mesh" else value for key, value in transform.items()}
        self.data["nodes"].append({**({} if name is None else {"name": name}), **item})
        if parent is None:
            self.data["scenes"][0]["nodes"].append(index)
        else:
            self.data["nodes"][parent].setdefault("children", []).append(index)
        return index

    def accessor(self, values: Any, kind: int = FLOAT, *, normalized: bool = False, stride: int = 0) -> int:
        """The numbers of ``values (count, n)``."""
        values = np.atleast_2d(np.asarray(values, dtype=float))
        if values.shape[0] == 1 and values.shape[1] not in _TYPES:
            values = values.T
        dtype = np.dtype(_KINDS[kind])
        raw = np.rint(values * np.iinfo(dtype).max) if normalized else values
        rows = [row.astype(dtype).tobytes() for row in raw]
        width = len(rows[0]) if rows else 0
        view = self._view(b"".join(row + b"\xaa" * (stride - width if stride else 0) for row in rows), stride)
        item = {"bufferView": view, "componentType": kind, "count": len(values), "type": _TYPES[values.shape[1]]}
        self.data["accessors"].append({**item, **({"normalized": True} if normalized else {})})
        return len(self.data["accessors"]) - 1

    def sparse(self, count: int, at: list[int], values: Any, base: int | None = None) -> int:
        """``count`` rows of zeros, or of accessor ``base``, with ``values`` put in the rows ``at``."""
        values = np.asarray(values, dtype=float)
        item: dict[str, Any] = {"componentType": FLOAT, "count": count, "type": _TYPES[values.shape[1]]}
        if base is not None:
            item["bufferView"] = self.data["accessors"][base]["bufferView"]
        indices = self._view(np.array(at, dtype="<u2").tobytes())
        filled = self._view(values.astype("<f4").tobytes())
        item["sparse"] = {
            "count": len(at),
            "indices": {"bufferView": indices, "componentType": USHORT},
            "values": {"bufferView": filled},
        }
        self.data["accessors"].append(item)
        return len(self.data["accessors"]) - 1

    def _view(self, raw: bytes, stride: int = 0) -> int:
        while len(self.buffer) % 4:
            self.buffer += b"\0"
        item = {"buffer": 0, "byteOffset": len(self.buffer), "byteLength": len(raw), **({"byteStride": stride} if stride else {})}
        self.buffer += raw
        self.data["bufferViews"].append(item)
        return len(self.data["bufferViews"]) - 1

    def animation(self, name: str | None = None) -> dict[str, Any]:
        """A new animation to give to :meth:`channel`."""
        item: dict[str, Any] = {**({} if name is None else {"name": name}), "samplers": [], "channels": []}
        self.data["animations"].append(item)
        return item

    def channel(self, animation: dict[str, Any], node: int, path: str, times: Any, values: Any, interpolation: str | None = None) -> None:
        """Curves of one node; ``times`` and ``values`` are arrays or accessors."""
        sampler = {
            "input": times if isinstance(times, int) else self.accessor(np.asarray(times, dtype=float)[:, None]),
            "output": values if isinstance(values, int) else self.accessor(values),
            **({"interpolation": interpolation} if interpolation else {}),
        }
        animation["samplers"].append(sampler)
        animation["channels"].append({"sampler": len(animation["samplers"]) - 1, "target": {"node": node, "path": path}})

    def skin(self, joints: list[int], binds: Any = None) -> None:
        """A skin; ``binds (J, 4, 4)`` are the joints' matrices when bound, not their inverses."""
        item: dict[str, Any] = {"joints": joints}
        if binds is not None:
            item["inverseBindMatrices"] = self.accessor(np.linalg.inv(np.asarray(binds)).transpose(0, 2, 1).reshape(-1, 16))
        self.data["skins"].append(item)

    def humanoid(self, bones: dict[str, int]) -> None:
        """Make it a VRM animation."""
        self.data["extensionsUsed"] = ["VRMC_vrm_animation"]
        extension = {"specVersion": "1.0", "humanoid": {"humanBones": {role: {"node": node} for role, node in bones.items()}}}
        self.data["extensions"] = {"VRMC_vrm_animation": extension}

    def _json(self, uri: str | None) -> dict[str, Any]:
        data = {key: value for key, value in self.data.items() if value or key in ("asset", "scene")}
        return {**data, "buffers": [{"byteLength": len(self.buffer), **({} if uri is None else {"uri": uri})}]}

    def glb(self) -> bytes:
        """As one binary file."""
        text = json.dumps(self._json(None)).encode()
        text += b" " * (-len(text) % 4)
        raw = bytes(self.buffer) + b"\0" * (-len(self.buffer) % 4)
        body = struct.pack("<I4s", len(text), b"JSON") + text + struct.pack("<I4s", len(raw), b"BIN\0") + raw
        return struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body

    def gltf(self, uri: str | None = None) -> str:
        """As text, the buffer inside it or at ``uri``."""
        inside = "data:application/octet-stream;base64," + base64.b64encode(bytes(self.buffer)).decode()
        return json.dumps(self._json(uri or inside))

    def save(self, path: Path) -> Path:
        """As a binary file at ``path``."""
        path.write_bytes(self.glb())
        return path
