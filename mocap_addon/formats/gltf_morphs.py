# SPDX-License-Identifier: GPL-3.0-or-later
"""Morph animations of glTF files as curves: the weights of meshes by their targets' names, the expressions of VRM animations.

Source: glTF 2.0 specification, section 3.7.2.2 (``weights``; one value for each target of each key) and its common practice that
``mesh.extras.targetNames`` names them; ``VRMC_vrm_animation`` 1.0: an expression's weight is the x of its node's translation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from .gltf_buffers import Buffers, finite
from .gltf_samplers import Sampler, snapped

Array = NDArray[np.float64]
Json = Mapping[str, Any]
Named = tuple[tuple[str, ...], Sampler]
"""Names of the columns of a sampler's values; an empty name is a column that nobody needs."""


def weights(data: Json, animation: Json, buffers: Buffers) -> list[Named]:
    """The morph weights that an animation moves, mesh by mesh."""
    out: list[Named] = []
    definitions: list[Json] = list(animation["samplers"])
    for channel in animation["channels"]:
        target: Json = channel.get("target") or {}
        if target.get("node") is None or target.get("path") != "weights":
            continue
        names = _target_names(data, int(target["node"]))
        if names:
            out.append((names, _sampler(definitions[int(channel["sampler"])], len(names), buffers)))
    return out


def expressions(data: Json, samplers: Mapping[tuple[int, str], Sampler]) -> list[Named]:
    """The expressions that a VRM animation moves, from the translations of their nodes."""
    extensions: Json = data.get("extensions") or {}
    extension: Json = extensions.get("VRMC_vrm_animation") or {}
    groups: Json = extension.get("expressions") or {}
    out: list[Named] = []
    for kind in ("preset", "custom"):
        found: Mapping[str, Json] = groups.get(kind) or {}
        for name, item in found.items():
            sampler = samplers.get((int(item["node"]), "translation")) if item.get("node") is not None else None
            if sampler is not None:
                out.append(((name, "", ""), sampler))
    return out


def curves(found: list[Named], at: Array, reach: float) -> dict[str, Array]:
    """Name -> ``(F,)`` at the times ``at (F,)`` of the file. Of two meshes with a target of one name the first one that moves counts."""
    out: dict[str, Array] = {}
    for names, sampler in found:
        values = sampler.at(snapped(at, sampler.times, reach))
        for column, name in enumerate(names):
            mine = np.ascontiguousarray(values[:, column])
            if name and (name not in out or (not np.ptp(out[name]) and np.ptp(mine))):
                out[name] = mine
    return out


def _target_names(data: Json, node: int) -> tuple[str, ...]:
    meshes: list[Json] = list(data.get("meshes") or ())
    index = data["nodes"][node].get("mesh")
    if index is None:
        return ()
    mesh = meshes[int(index)]
    primitives: list[Json] = list(mesh.get("primitives") or ())
    count = max((len(p.get("targets") or ()) for p in primitives), default=0)
    extras = mesh.get("extras")
    given: object = cast("Json", extras).get("targetNames") if isinstance(extras, Mapping) else None
    if not isinstance(given, list):
        given = []
    names = [str(name) for name in cast("list[object]", given)][:count]
    label = str(mesh.get("name") or f"mesh {index}")
    return (*names, *(f"{label} {k}" for k in range(len(names), count)))


def _sampler(item: Json, width: int, buffers: Buffers) -> Sampler:
    times, values = buffers.array(int(item["input"]))[:, 0], buffers.array(int(item["output"]))
    kind = str(item.get("interpolation") or "LINEAR")
    per_key = 3 if kind == "CUBICSPLINE" else 1
    if kind not in ("LINEAR", "STEP", "CUBICSPLINE") or not len(times) or not finite(times) or not finite(values):
        raise ValueError
    if values.shape != (len(times) * per_key * width, 1):
        raise ValueError
    values = values.reshape(len(times), per_key, width) if per_key == 3 else values.reshape(len(times), width)
    keep = np.concatenate([np.diff(times) != 0.0, [True]])
    times, values = times[keep], values[keep]
    if np.any(np.diff(times) <= 0.0):
        raise ValueError
    return Sampler(times, values, kind, False)
