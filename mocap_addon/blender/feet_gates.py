# SPDX-License-Identifier: GPL-3.0-or-later
"""Gates and locks of the feet: f-curves of custom properties of the armature object, edited in the graph editor.

``foot_ik_l`` and ``foot_ik_r`` (ALS's ``Enable_FootIK``) say how much of the planting shows; ``foot_lock_l`` and ``foot_lock_r``
(``FootLock``) say where a foot is planted. They lie in the pose's own action and slot; the properties are only their handles, and what
those stand at says nothing. A bake writes what it found; what was changed since is a person's word at the next bake, and the rest is found
anew, so that it follows a scene that has moved.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import bpy
import numpy as np
from numpy.typing import NDArray

from ..feet.result import FeetResult, Gates
from . import compat, curves
from .actions import Rollback
from .channels import property_path

Array = NDArray[np.float64]

FOOT_IK = ("foot_ik_l", "foot_ik_r")
FOOT_LOCK = ("foot_lock_l", "foot_lock_r")
CONTACTS = ("contact_l_heel", "contact_l_toe", "contact_r_heel", "contact_r_toe")
"""What a source with contacts of its own brings along (MVNX)."""

GROUP = "Feet"
_SAME = 1e-3

Keys = list[tuple[float, float]]


def read_gates(found: Iterable[bpy.types.FCurve], frames: Array, baked: Mapping[str, Sequence[Sequence[float]]] | None = None) -> Gates:
    """What an action says of its feet at scene frames ``(F,)``.

    Parameters
    ----------
    found : iterable of f-curve
        Those of the action.
    frames : (F,) array
    baked : mapping from property to its keys, optional
        The locks as the last bake wrote them (:func:`keys_of`): where a curve still is what was baked, contacts are found anew.
    """
    by_name = {name: curve for curve in found for name in (_name(curve.data_path),) if name}
    values = {name: curves.evaluate(by_name[name], frames) for name in (*FOOT_IK, *FOOT_LOCK, *CONTACTS) if _plays(by_name.get(name))}
    gate = None
    if any(name in values for name in FOOT_IK):
        gate = np.stack([np.clip(values.get(name, np.ones(len(frames))), 0.0, 1.0) for name in FOOT_IK], axis=1)
    lock = None
    if any(name in values for name in FOOT_LOCK):
        lock = np.stack([np.clip(values.get(name, np.full(len(frames), np.nan)), 0.0, 1.0) for name in FOOT_LOCK], axis=1)
        for k, name in enumerate(FOOT_LOCK):
            if baked and name in baked and name in values:
                before = stepped(baked[name], frames)
                lock[np.abs(before - values[name]) < _SAME, k] = np.nan
        if not np.any(np.isfinite(lock)):
            lock = None
    contacts = None
    if all(name in values for name in CONTACTS):
        heel_l, toe_l, heel_r, toe_r = (values[name] > 0.5 for name in CONTACTS)
        contacts = np.stack([np.stack([heel_l, toe_l, toe_l], axis=1), np.stack([heel_r, toe_r, toe_r], axis=1)], axis=1)
    return Gates(foot_ik=gate, foot_lock=lock, contacts=contacts)


def keys_of(result: FeetResult, frames: Array) -> dict[str, Keys]:
    """Property -> its keys ``(frame, value)``: one where the value changes, held until the next."""
    columns = {**dict(zip(FOOT_IK, result.foot_ik.T, strict=True)), **dict(zip(FOOT_LOCK, result.locks.T, strict=True))}
    out: dict[str, Keys] = {}
    for name, values in columns.items():
        changes = np.flatnonzero(np.concatenate([[True], np.abs(np.diff(values)) > _SAME]))
        out[name] = [(float(frames[i]), round(float(values[i]), 4)) for i in changes]
    return out


def stepped(keys: Sequence[Sequence[float]], frames: Array) -> Array:
    """Values ``(F,)`` of keys that each hold until the next."""
    if not keys:
        return np.full(len(frames), np.nan)
    table = np.array(keys, dtype=np.float64)
    return table[np.clip(np.searchsorted(table[:, 0], frames + 1e-4, side="right") - 1, 0, None), 1]


def write_gates(bag: compat.Bag, keys: Mapping[str, Keys]) -> None:
    """Write the curves anew."""
    for curve in [c for c in bag.fcurves if _name(c.data_path) in keys]:
        bag.fcurves.remove(curve)
    for name, pairs in keys.items():
        write_steps(compat.new_curve(bag, property_path(name), 0, GROUP), pairs)


def write_steps(curve: bpy.types.FCurve, pairs: Keys) -> None:
    """Give a curve keys that each hold until the next."""
    points = curve.keyframe_points
    points.clear()
    points.add(len(pairs))
    points.foreach_set("co", np.array(pairs, dtype=np.float32).reshape(-1))
    constant = bpy.types.Keyframe.bl_rna.properties["interpolation"].enum_items["CONSTANT"].value
    points.foreach_set("interpolation", np.full(len(pairs), constant, dtype=curves.CHOICE))
    curve.update()


def add_properties(obj: bpy.types.Object, undo: Rollback, names: Iterable[str] = (*FOOT_IK, *FOOT_LOCK)) -> None:
    """The handles of the curves. On an override Blender drops them at reload, and the curves do without."""
    if obj.override_library is not None:
        return
    for name in names:
        if name not in obj:
            obj[name] = 1.0 if name in FOOT_IK else 0.0
            obj.id_properties_ui(name).update(min=0.0, max=1.0, soft_min=0.0, soft_max=1.0, description=_TELL[name[:-2]])
            undo.add(lambda name=name: obj.pop(name, None))


_TELL = {
    "foot_ik": "How much of the planting of this foot shows; keyed in the action, read when the feet are baked",
    "foot_lock": "Where this foot is planted, from 0.5 on; keyed in the action, read when the feet are baked",
}


# --- editing by hand -----------------------------------------------------------------------------------------------------------------


def intervals(curve: bpy.types.FCurve) -> list[tuple[float, float]]:
    """Where a lock's curve is on: first frame, and the first one after; the last interval of an unending one ends at infinity."""
    out: list[tuple[float, float]] = []
    start: float | None = None
    for point in curve.keyframe_points:
        frame, value = float(point.co[0]), float(point.co[1])
        if value >= 0.5 and start is None:
            start = frame
        elif value < 0.5 and start is not None:
            out.append((start, frame))
            start = None
    return out if start is None else [*out, (start, float("inf"))]


def set_interval(curve: bpy.types.FCurve, start: float, end: float, value: float) -> None:
    """Make a stepped curve hold ``value`` from ``start`` until ``end``; outside it stays as it is."""
    keys = [(float(p.co[0]), float(p.co[1])) for p in curve.keyframe_points]
    after = float(curve.evaluate(end)) if keys else 0.0
    before = float(stepped(keys, np.array([start - 1e-3]))[0]) if keys else 0.0
    kept = [k for k in keys if k[0] < start - 1e-4 or k[0] > end + 1e-4]
    new = [*kept, (start, value)]
    if np.isfinite(end):
        new.append((end, after))
    if not keys or keys[0][0] > start + 1e-4:
        new.append((min(start - 1.0, keys[0][0] if keys else start - 1.0), before if not keys else keys[0][1]))
    write_steps(curve, _tidied(sorted(dict(new).items())))


def move_interval(curve: bpy.types.FCurve, old: tuple[float, float], new: tuple[float, float]) -> None:
    """Move the ends of one interval that is on."""
    set_interval(curve, *old, 0.0)
    set_interval(curve, *new, 1.0)


def lock_curve(obj: bpy.types.Object, side: str) -> bpy.types.FCurve | None:
    """The lock's curve of a side in the object's action; None where there is none."""
    if obj.animation_data is None:
        return None
    path = property_path(FOOT_LOCK[side == "right"])
    return next((c for c in compat.moving_curves(obj.animation_data) if c.data_path == path), None)


def _tidied(keys: Keys) -> Keys:
    """Without keys that change nothing."""
    return [key for i, key in enumerate(keys) if i == 0 or abs(key[1] - keys[i - 1][1]) > _SAME]


def _name(path: str) -> str:
    """``["foot_ik_l"]`` -> ``foot_ik_l``; empty for any other path."""
    return bpy.utils.unescape_identifier(path[2:-2]) if path.startswith('["') and path.endswith('"]') else ""


def _plays(curve: bpy.types.FCurve | None) -> bool:
    return curve is not None and curves.is_playing(curve)
