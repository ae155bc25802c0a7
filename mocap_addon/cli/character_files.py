# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be said of a character file without Blender: a look at its first bytes, and at a glTF's JSON."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from ..motion.errors import FileError

ENDINGS: dict[str, str] = {
    ".glb": "glTF",
    ".gltf": "glTF",
    ".vrm": "VRM",
    ".vrma": "VRM animation",
    ".fbx": "FBX",
    ".blend": "Blender",
}
"""Endings of files that Blender brings in as characters, and what they are called."""

_LARGEST_JSON = 256 << 20


def is_character(path: Path) -> bool:
    """Whether the file's name ends like a character's."""
    return path.suffix.lower() in ENDINGS


def describe(path: Path) -> tuple[dict[str, object], str]:
    """A record and a sentence about a character file.

    Raises
    ------
    FileError
        When the file is not what its name says.
    """
    kind = ENDINGS[path.suffix.lower()]
    record: dict[str, object] = {"file": str(path), "kind": "character", "format": kind}
    try:
        with path.open("rb") as file:
            head = file.read(32)
    except OSError as error:
        raise FileError(f"The file cannot be read ({error.strerror or error}).", path) from None
    if kind in ("glTF", "VRM", "VRM animation"):
        known = _gltf_facts(path, head)
        record.update(known)
        counts = f"{known['nodes']} nodes, {known['skins']} skins, {len(known['animations'])} animations"
        return record, f"a {kind} file ({counts}): use it with --character"
    if kind == "Blender":
        if not head.startswith((b"BLENDER", b"\x28\xb5\x2f\xfd", b"\x1f\x8b")):
            raise FileError("This is not a Blender file although it is called so.", path)
    elif not head.startswith((b"Kaydara FBX Binary", b"; FBX")):
        raise FileError("This is not an FBX file although it is called so.", path)
    article = "an" if kind == "FBX" else "a"
    return record, f"{article} {kind} file: use it with --character"


def _gltf_facts(path: Path, head: bytes) -> dict[str, Any]:
    data = _gltf_json(path, head)
    skins = _list(data, "skins")
    joints = [len(_list(skin, "joints")) for skin in skins if isinstance(skin, dict)]
    extensions = data.get("extensions")
    vrm = extensions.get("VRMC_vrm", extensions.get("VRM")) if isinstance(extensions, dict) else None
    names = [a.get("name") if isinstance(a, dict) else None for a in _list(data, "animations")]
    return {
        "nodes": len(_list(data, "nodes")),
        "skins": len(skins),
        "joints": max(joints, default=0),
        "animations": [name if isinstance(name, str) else "" for name in names],
        "vrm": vrm is not None,
    }


def _gltf_json(path: Path, head: bytes) -> dict[str, Any]:
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            if head.startswith(b"glTF"):
                if len(head) < 20:
                    raise FileError("The file is cut off inside its header.", path)
                length, chunk = struct.unpack("<I4s", head[12:20])
                if chunk != b"JSON" or length > size - 20:
                    raise FileError("The file is cut off or is not glTF 2.", path)
                file.seek(20)
            else:
                length = size
            if length > _LARGEST_JSON:
                raise FileError(f"Its description alone is larger than {_LARGEST_JSON >> 20} MB; it is not read.", path)
            data = json.loads(file.read(length))
    except OSError as error:
        raise FileError(f"The file cannot be read ({error.strerror or error}).", path) from None
    except (ValueError, RecursionError):
        raise FileError("This is not a glTF file although it is called so.", path) from None
    if not isinstance(data, dict) or not isinstance(data.get("asset"), dict):
        raise FileError("This is not a glTF file although it is called so.", path)
    return data


def _list(data: dict[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []
