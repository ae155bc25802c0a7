# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be said of a character file without Blender: a look at its first bytes, and at a glTF's description."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..motion.errors import FileError

KINDS: dict[str, str] = {
    ".glb": "glTF",
    ".gltf": "glTF",
    ".vrm": "VRM",
    ".fbx": "FBX",
    ".blend": "Blender",
}
"""Endings of files that Blender brings in as characters, and what such a file is called."""

_STARTS: dict[str, tuple[bytes, ...]] = {
    "Blender": (b"BLENDER", b"\x28\xb5\x2f\xfd", b"\x1f\x8b"),  # plain, compressed since 3.0, compressed before
    "FBX": (b"Kaydara FBX Binary", b"; FBX"),
}


def is_character(path: Path) -> bool:
    """Whether the file's name ends like a character's."""
    return path.suffix.lower() in KINDS


def describe(path: Path) -> tuple[dict[str, object], str]:
    """A record and a sentence about a character file; :class:`FileError` when it is not what its name says."""
    kind = KINDS[path.suffix.lower()]
    record: dict[str, object] = {"file": str(path), "kind": "character", "format": kind}
    what = f"{'an' if kind == 'FBX' else 'a'} {kind} file"
    if kind in _STARTS:
        _check_start(path, kind)
    else:
        facts = _gltf_facts(path)
        record.update(facts)
        counts = ((facts["bones"], "bone"), (facts["meshes"], "mesh"), (len(facts["animations"]), "animation"))
        what += " with " + ", ".join(f"{n} {word if n == 1 else 'meshes' if word == 'mesh' else word + 's'}" for n, word in counts)
        if not facts["bones"]:
            return record, f"{what}: it has no skeleton, so it cannot take motion"
    return record, f"{what}: a character file; use it with --character"


def _check_start(path: Path, kind: str) -> None:
    try:
        with path.open("rb") as file:
            head = file.read(32)
    except OSError as error:
        raise FileError(f"The file cannot be read ({error.strerror or error}).", path) from None
    if not head.startswith(_STARTS[kind]):
        raise FileError(f"This is no {kind} file although it is called so; give the right file or rename it.", path)


def _gltf_facts(path: Path) -> dict[str, Any]:
    from ..formats import gltf_nodes

    data = gltf_nodes.read_json(path)
    try:
        tree = gltf_nodes.tree(data, path)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError):
        raise FileError("The description of this glTF file is damaged; export the character again.", path) from None
    extensions = data.get("extensions")
    return {
        "nodes": len(tree),
        "bones": len(tree.joints),
        "meshes": len(_list(data, "meshes")),
        "animations": [str(a.get("name") or "") if isinstance(a, dict) else "" for a in _list(data, "animations")],
        "vrm": isinstance(extensions, dict) and ("VRMC_vrm" in extensions or "VRM" in extensions),
    }


def _list(data: dict[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    return value if isinstance(value, list) else []
