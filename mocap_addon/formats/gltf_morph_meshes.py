# SPDX-License-Identifier: GPL-3.0-or-later
"""Morph targets of the meshes in a glTF file, and what three.js calls the objects that have them."""

from __future__ import annotations

from collections.abc import Mapping
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
    taken = set(names)
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
        objects = (names[i],) if len(parts) == 1 else _parts(sanitize(mesh.get("name") or f"mesh_{node['mesh']}"), len(parts), taken)
        out.append(MorphMesh(i, str(node.get("name") or ""), targets, objects))
    return out


def _parts(base: str, count: int, taken: set[str]) -> tuple[str, ...]:
    out: list[str] = []
    number = 0
    while len(out) < count:
        name = base if number == 0 else f"{base}_{number}"
        if name not in taken:
            taken.add(name)
            out.append(name)
        number += 1
    return tuple(out)
