# SPDX-License-Identifier: GPL-3.0-or-later
"""Shape keys that an action moves -> the expressions of a VRM animation.

Source: VRM Consortium, *VRMC_vrm-1.0* (expressions) and *VRMC_vrm_animation-1.0*. Where the character's own VRM file says which expression
a morph target is, that counts; else its name, as people spell it. What is no preset goes by its own name, as a custom expression.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..formats import gltf_nodes
from ..formats.gltf_morph_meshes import morph_meshes
from ..formats.vrma import PRESETS, Expressions
from ..rig import morph_names

Array = NDArray[np.float64]
Json = Mapping[str, Any]

_STILL = 1e-4  # a weight that is never more says nothing
_GAZE = ("lookUp", "lookDown", "lookLeft", "lookRight")
_KNOWN = {morph_names.canonical(name) or name: name for name in PRESETS}


def of_shapes(shapes: Mapping[str, Mapping[str, Array]], character: Path | None) -> tuple[Expressions, list[str]]:
    """Expressions, and notes.

    Parameters
    ----------
    shapes : mapping of mesh to mapping of shape key to (F,) array
        Of several meshes with one key the first one that moves counts.
    character : path, optional
        The character's glTF file.
    """
    values: dict[str, Array] = {}
    for own in shapes.values():
        for name, curve in own.items():
            if float(np.abs(curve).max(initial=0.0)) > _STILL and (name not in values or not np.ptp(values[name])):
                values[name] = curve
    told = {} if character is None else _told(gltf_nodes.read_json(character))
    out: dict[tuple[str, str], Array] = {}
    gaze: list[str] = []
    for name, curve in values.items():
        kind, expression, weight = told.get(name) or _by_name(name)
        if expression in _GAZE:
            gaze.append(name)
        elif (kind, expression) not in out:
            out[kind, expression] = np.clip(curve / weight, 0.0, 1.0)
    if not gaze:
        return out, []
    return out, [f"A VRM animation has a gaze in place of these expressions, so they are left out: {', '.join(gaze[:5])}."]


def _by_name(name: str) -> tuple[str, str, float]:
    preset = _KNOWN.get(morph_names.canonical(name) or name)
    return ("custom", name, 1.0) if preset is None and name not in _GAZE else ("preset", preset or name, 1.0)


def _told(data: Json) -> dict[str, tuple[str, str, float]]:
    """Morph target -> kind and name of the expression that moves it alone, and how far."""
    extensions: Json = data.get("extensions") or {}
    groups: Json = (extensions.get("VRMC_vrm") or {}).get("expressions") or {}
    targets = {mesh.node: mesh.targets for mesh in morph_meshes(data)}
    out: dict[str, tuple[str, str, float]] = {}
    for kind in ("preset", "custom"):
        for name, one in (groups.get(kind) or {}).items():
            found: dict[str, float] = {}
            for bind in one.get("morphTargetBinds") or ():
                names = targets.get(int(bind["node"]), ())
                if int(bind["index"]) < len(names):
                    found[names[int(bind["index"])]] = float(bind["weight"])
            if len(found) == 1:
                ((target, weight),) = found.items()
                if target and weight > 0.0:
                    out.setdefault(target, (kind, name, weight))
    return out
