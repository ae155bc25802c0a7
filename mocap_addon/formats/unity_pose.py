# SPDX-License-Identifier: GPL-3.0-or-later
"""The transforms that a Unity clip animates, sampled on every frame and turned right-handed.

Unity is left-handed with Y up. Every local frame is mirrored in x: places ``(-x, y, z)``, rotations ``(w, x, -y, -z)``. It is
then right-handed with Y up and +Z ahead, as glTF is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from . import unity_curves
from .unity_clip import SKINNED_MESH, TRANSFORM, Curve, UnityClip

Array = NDArray[np.float64]

BLEND_SHAPE = "blendShape."
_PERCENT = 0.01
# Single components that old clips and scripts animate, and which list they belong to.
_SINGLES = {
    "m_LocalRotation": ("rotation", "xyzw"),
    "localEulerAnglesRaw": ("euler", "xyz"),
    "localEulerAngles": ("euler", "xyz"),
    "m_LocalEulerAngles": ("euler", "xyz"),
    "m_LocalEulerAnglesHint": ("", ""),
    "m_LocalPosition": ("position", "xyz"),
    "m_LocalScale": ("scale", "xyz"),
}


@dataclass(frozen=True, eq=False)
class Transform:
    """What moves one transform; None: nothing in the clip.

    Parameters
    ----------
    rotations : (F, 4) or None
        wxyz, right-handed.
    translations : (F, 3) or None
        Right-handed, Unity's unit.
    scales : (F, 3) or None
    """

    rotations: Array | None = None
    translations: Array | None = None
    scales: Array | None = None


@dataclass(frozen=True, eq=False)
class Sampled:
    """A clip on its frames.

    Parameters
    ----------
    times : (F,) array
        Seconds, the first 0.
    transforms : mapping of path to Transform
        In the order of the file.
    morphs : mapping of (path, name) to (F,) array
        Blend shapes; 1 is Unity's 100.
    floats : mapping of name to (F,) array
        All other curves: muscles under Unity's own names, others after their path.
    notes : tuple of str
    """

    times: Array
    transforms: Mapping[str, Transform]
    morphs: Mapping[tuple[str, str], Array] = field(default_factory=dict[tuple[str, str], Array])
    floats: Mapping[str, Array] = field(default_factory=dict[str, Array])
    notes: tuple[str, ...] = ()


def sample(clip: UnityClip, times: Array) -> Sampled:
    """The clip at ``times (F,)``, seconds of the clip."""
    parts: dict[str, dict[str, Array]] = {}
    morphs: dict[tuple[str, str], Array] = {}
    floats: dict[str, Array] = {}
    singles: dict[tuple[str, str], dict[str, Array]] = {}
    notes: list[str] = []
    for curve in clip.curves:
        if curve.kind != "float":
            part = parts.setdefault(curve.path, {})
            part[curve.kind] = _whole(curve, times)
            continue
        values = curve.at(times)[:, 0]
        attribute, _, component = curve.attribute.rpartition(".")
        if curve.class_id == TRANSFORM and attribute in _SINGLES:
            kind, components = _SINGLES[attribute]
            if kind and component in components:
                singles.setdefault((curve.path, kind), {})[component] = values
        elif curve.class_id == SKINNED_MESH and curve.attribute.startswith(BLEND_SHAPE):
            morphs[curve.path, curve.attribute[len(BLEND_SHAPE) :]] = values * _PERCENT
        else:
            floats[_apart(_float_name(curve), floats)] = values
    for (path, kind), found in singles.items():
        part = parts.setdefault(path, {})
        if kind not in part:
            part[kind] = _joined(kind, found, len(times))
    twice = [path for path, part in parts.items() if "rotation" in part and "euler" in part]
    if twice:
        notes.append(f'"{_last(twice[0])}" is turned by a quaternion and by Euler angles; the quaternion was used.')
    transforms = {path: _transform(part) for path, part in parts.items()}
    return Sampled(times - times[0], transforms, morphs, floats, tuple(notes))


def paths(found: Mapping[str, object]) -> list[str]:
    """Every transform that is named or stands above a named one, a parent before its children, in the order of the file.

    The animated object itself (the empty path) is only among them where it moves.
    """
    out: dict[str, None] = {"": None} if "" in found else {}
    children: dict[str, dict[str, None]] = {}
    for path in found:
        steps = [s for s in path.split("/") if s]
        for n in range(len(steps)):
            children.setdefault("/".join(steps[:n]), {})["/".join(steps[: n + 1])] = None
    stack = list(reversed(children.get("", {})))
    while stack:
        path = stack.pop()
        out[path] = None
        stack += reversed(children.get(path, {}))
    return list(out)


def parent(path: str) -> str:
    """The path of the transform above; empty for the topmost ones."""
    return path.rpartition("/")[0]


def _whole(curve: Curve, times: Array) -> Array:
    values = curve.at(times)
    if curve.kind == "rotation":
        return unity_curves.rotations(values)
    return unity_curves.euler_rotations(values, curve.order) if curve.kind == "euler" else values


def _joined(kind: str, found: Mapping[str, Array], count: int) -> Array:
    components = "xyzw" if kind == "rotation" else "xyz"
    standing = 1.0 if kind == "scale" else 0.0
    values = np.stack([found.get(c, np.full(count, 1.0 if c == "w" else standing)) for c in components], axis=1)
    if kind == "rotation":
        return unity_curves.rotations(values)
    return unity_curves.euler_rotations(values) if kind == "euler" else values


def _transform(part: Mapping[str, Array]) -> Transform:
    q = part.get("rotation", part.get("euler"))
    t = part.get("position")
    if q is not None:
        q = quat.continuous(q * np.array([1.0, 1.0, -1.0, -1.0]))
    return Transform(q, None if t is None else t * np.array([-1.0, 1.0, 1.0]), part.get("scale"))


def _float_name(curve: Curve) -> str:
    return f"{_last(curve.path)}.{curve.attribute}" if curve.path else curve.attribute


def _apart(name: str, used: Mapping[str, object]) -> str:
    n, out = 1, name or "value"
    while out in used:
        n += 1
        out = f"{name} {n}"
    return out


def _last(path: str) -> str:
    return path.rpartition("/")[2]


def listed(names: Sequence[str], most: int = 5) -> str:
    """A few of some names as a person reads them."""
    return ", ".join(f'"{n}"' for n in names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
