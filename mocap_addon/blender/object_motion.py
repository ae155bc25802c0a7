# SPDX-License-Identifier: GPL-3.0-or-later
"""Where an object of the scene is at given frames, in arrays where nothing but keys moves it and what it hangs on.

Derivation. ``world = world of the parent * matrix_parent_inverse * basis``, up the parents, with ``basis`` made of the object's own keys
(:func:`.rig_curves.basis`).
"""

from __future__ import annotations

from collections.abc import Iterator

import bpy
import numpy as np
from numpy.typing import NDArray

from . import compat, playing, rig_curves
from .playing import OBJECT_PATHS, Playing

Array = NDArray[np.float64]


def parents_of(obj: bpy.types.Object) -> Iterator[bpy.types.Object]:
    """The object and what it hangs on, from itself upwards."""
    at: bpy.types.Object | None = obj
    while at is not None:
        yield at
        at = at.parent


def stands_still(obj: bpy.types.Object) -> bool:
    """Whether neither the object nor anything above it can move."""
    return all(not _moving_curves(one) and not _obstructed(one) for one in parents_of(obj))


def by_keys(obj: bpy.types.Object) -> bool:
    """Whether keys alone say where the object is (standing still is a case of it)."""
    return all(not _obstructed(one) for one in parents_of(obj))


def world_matrices(obj: bpy.types.Object, frames: Array) -> Array:
    """World matrices ``(F, 4, 4)`` at scene frames ``(F,)``, or ``(1, 4, 4)`` where nothing moves; only where :func:`by_keys`."""
    animation = obj.animation_data
    action = animation.action if animation is not None else None
    slot = compat.assigned_slot(animation) if action is not None else None
    channels = rig_curves.Channels(Playing(obj, action, slot, _moving_curves(obj), True, False), frames)
    own = rig_curves.basis(obj, channels)
    if obj.parent is None:
        return own
    return world_matrices(obj.parent, frames) @ np.array(obj.matrix_parent_inverse, dtype=np.float64) @ own


def is_animated(owner: bpy.types.ID | None) -> bool:
    """Whether a data-block has curves, strips or drivers of its own."""
    animation = getattr(owner, "animation_data", None)
    if animation is None:
        return False
    return animation.action is not None or len(animation.nla_tracks) > 0 or len(animation.drivers) > 0


def _moving_curves(obj: bpy.types.Object) -> tuple[bpy.types.FCurve, ...]:
    """The curves that play and place the object."""
    if obj.animation_data is None:
        return ()
    found = compat.moving_curves(obj.animation_data)
    return tuple(curve for curve in found if curve.data_path in OBJECT_PATHS and playing.curves.is_playing(curve))


def _obstructed(obj: bpy.types.Object) -> bool:
    """Whether something else than keys has a say in where the object is."""
    animation = obj.animation_data
    if any(not c.mute and c.influence > 0.0 for c in obj.constraints) or obj.rigid_body is not None:
        return True
    if animation is not None:
        if playing.strip_range(obj) is not None or animation.use_tweak_mode:
            return True
        if any(not driver.mute and driver.data_path in OBJECT_PATHS for driver in animation.drivers):
            return True
        if any(c.data_path == "rotation_mode" for c in compat.moving_curves(animation)):
            return True
    parent = obj.parent
    if parent is None:
        return False
    return obj.parent_type not in ("OBJECT", "ARMATURE") or (parent.type == "CURVE" and parent.data.use_path) or parent.type == "LATTICE"
