# SPDX-License-Identifier: GPL-3.0-or-later
"""Morph targets of the meshes in a glTF file, and what three.js calls the objects that have them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from .gltf_nodes import loader_names, sanitize

Json = Mapping[str, Any]


@dataclass(frozen=True)
class MorphMesh:
    """A node whose mesh has morph targets.

    Parameters
    ----------
    node : int
    name : str
        As the file writes it.
    targets : tuple of str
        Names in the mesh's order; empty where the file gives none.
    objects : tuple of str
        What three.js calls the objects it makes of the mesh: one for each of its parts.
    """

    node: int
    name: str
    targets: tuple[str, ...]
    objects: tuple[str, ...]


def morph_meshes(data: Json) -> list[MorphMesh]:
    """Every node with morph targets, in the file's order.

    A mesh of one part is the node itself. One of several parts is a group with the node's name, whose parts are called after the mesh, with
    a number where that name is taken (a node of the same name is always named before).
    """
    names = loader_names(data)
    asked = asked_by_nodes(str(one.get("name") or "") for key in ("scenes", "nodes") for one in data.get(key) or ())
    nodes: list[Json] = list(data.get("nodes") or [])
    out: list[MorphMesh] = []
    for i, node in enumerate(nodes):
        if node.get("mesh") is None:
            continue
        mesh: Json = data["meshes"][node["mesh"]]
        parts: list[Json] = list(mesh["primitives"])
        count = len(parts[0].get("targets") or ()) if parts else 0
        if not count:
            continue
        extras: Json = mesh.get("extras") or {}
        given: list[object] = list(extras.get("targetNames") or ())
        targets = tuple(str(name) for name in given[:count]) if len(given) >= count else ("",) * count
        objects = (names[i],) if len(parts) == 1 else part_names(mesh.get("name") or f"mesh_{node['mesh']}", len(parts), asked)
        out.append(MorphMesh(i, str(node.get("name") or ""), targets, objects))
    return out


def part_names(mesh: str, count: int, asked: Counter[str]) -> tuple[str, ...]:
    """What three.js calls the parts of a mesh.

    Parameters
    ----------
    mesh : str
        Its name.
    count : int
        So many parts.
    asked : Counter
        How often each name, as three.js sanitises it, was wanted before: by all nodes, and by meshes before this one; it is counted on. The
        first gets the name itself, the next ones a number, whether another node has just that name or not.
    """
    base = sanitize(mesh)
    out: list[str] = []
    for _ in range(count):
        out.append(f"{base}_{asked[base]}" if asked[base] else base)
        asked[base] += 1
    return tuple(out)


def asked_by_nodes(names: Iterable[str]) -> Counter[str]:
    """How often each name is wanted by nodes and scenes called so."""
    return Counter(sanitize(name) for name in names if name)
