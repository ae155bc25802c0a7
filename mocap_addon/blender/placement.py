# SPDX-License-Identifier: GPL-3.0-or-later
"""Where an armature object stands in the world, whatever its state.

Derivation. ``world = P basis`` with ``P`` the parent's world matrix times ``matrix_parent_inverse``, and ``basis`` made of the object's
location, rotation and scale. Blender keeps the product in ``matrix_world``, but works it out only for objects that take part in the view
layer: on a disabled one, or in an excluded collection, it is whatever it was last. There it is multiplied out here.

A step of the object's ``location`` moves it by that step through ``P`` alone: the object's own rotation and scale do not turn it.

The rotation: with ``basis = T (D R S)``, ``R`` the rotation that the object's own property holds, ``D`` its delta rotation and ``S`` its
scale, the linear part of the world matrix is ``(P D) R S``. So a turn ``W`` in the world is the property's ``X^-1 W X R`` with ``X`` the
rotation of ``P D = world S^-1 R^-1``.
"""

from __future__ import annotations

from dataclasses import dataclass

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from .channels import rotation_of
from .recipes import Place, place_of

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Placement:
    """An object in the world, Blender units.

    Parameters
    ----------
    matrix : (4, 4) array
        World matrix at the current frame, without the travel that an action of ours gives the object.
    location : (3,) array
        The ``location`` that goes with it.
    axes : (3, 3) array
        What a step in the world is as a step of ``location``.
    rotation : (4,) array
        What the object's own rotation property holds.
    above : (3, 3) array
        The linear part of what stands before that rotation: parents and the delta rotation.
    notes : tuple of str
    """

    matrix: Array
    location: Array
    axes: Array
    rotation: Array
    above: Array
    notes: tuple[str, ...] = ()


def of(obj: bpy.types.Object, graph: bpy.types.Depsgraph, place: Place | None = None) -> Placement:
    """Where ``obj`` stands, or would stand at ``place``. Nothing is changed."""
    ready = obj.evaluated_get(graph)
    notes: tuple[str, ...] = ()
    location = np.array(ready.location, dtype=np.float64)
    if ready.is_evaluated:
        matrix = np.array(ready.matrix_world, dtype=np.float64)
    else:
        found = _multiplied_out(obj)
        matrix = np.array(obj.matrix_world, dtype=np.float64) if found is None else found
        if found is None:
            notes = (f'"{obj.name}" is disabled in this view layer, so its place is taken as it was when Blender last worked it out.',)
    axes = _axes(matrix, np.array(ready.matrix_basis, dtype=np.float64))
    rotation = rotation_of(ready)
    scale = np.array(ready.scale, dtype=np.float64) * np.array(ready.delta_scale, dtype=np.float64)
    own = quat.to_matrix(rotation) * scale
    above = matrix[:3, :3] @ np.linalg.inv(own) if np.isfinite(own).all() and abs(np.linalg.det(own)) > 1e-30 else np.eye(3)
    base = place or _remembered(obj)
    if base is not None:
        matrix = matrix.copy()
        matrix[:3, 3] += np.linalg.solve(axes, np.array(base.location) - location)
        location = np.array(base.location)
        if base.rotation is not None:
            rotation = np.array(base.rotation)
            matrix[:3, :3] = above @ (quat.to_matrix(rotation) * scale)
    return Placement(matrix, location, axes, rotation, above, notes)


def _multiplied_out(obj: bpy.types.Object) -> Array | None:
    """World matrix from the transforms up the parents; None where a bone, a vertex or a constraint has a say."""
    if any(not c.mute and c.influence for c in obj.constraints):
        return None
    basis = np.array(obj.matrix_basis, dtype=np.float64)
    if obj.parent is None:
        return basis
    if obj.parent_type not in ("OBJECT", "ARMATURE"):
        return None
    above = _multiplied_out(obj.parent)
    return None if above is None else above @ np.array(obj.matrix_parent_inverse, dtype=np.float64) @ basis


def _axes(world: Array, basis: Array) -> Array:
    """(3, 3): world steps -> steps of ``location``. Constraints act as if they were parents."""
    linear, own = world[:3, :3], basis[:3, :3]
    if not (np.all(np.isfinite(linear)) and np.all(np.isfinite(own))):
        return np.eye(3)  # the caller refuses such an object in its own words
    if abs(np.linalg.det(linear)) < 1e-30 or abs(np.linalg.det(own)) < 1e-30:
        return np.eye(3)
    return own @ np.linalg.inv(linear)


def _remembered(obj: bpy.types.Object) -> Place | None:
    """Where the object stood before an action of ours, where such an action is assigned and moves it."""
    action = obj.animation_data.action if obj.animation_data else None
    return place_of(action) if action is not None else None
