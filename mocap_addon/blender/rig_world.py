# SPDX-License-Identifier: GPL-3.0-or-later
"""A source rig's body, and its motion from the armature's own axes into the world.

Derivation. With the object's world matrix ``M(t) = T(t) Q(t) s(t)``, a bone's pose ``P(t)`` in the armature's axes and ``u`` metres a
Blender unit, the bone in the world is ``M P``. Below the roots ``Q`` and ``T`` cancel, so only roots carry them, and every length is
multiplied by ``s u``. Where the object stands says nothing of the motion, so the take is relative to its origin. But where the object
moves, its travel and its turns are part of the take, which is in the world then; the rest pose stands as the object did at the first
frame, but for its heading (the turn about the vertical), which is motion too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import TargetError
from ..motion.scaled_pose import ScaledPose
from ..motion.skeleton import Skeleton
from . import armature

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

STILL = 1e-6
"""Blender units, or share of a unit matrix: an object that moves less stands still."""


@dataclass(frozen=True, eq=False)
class Body:
    """A rig's bones in the armature's own axes and Blender units, parents first; the flags are those of :class:`.armature.Target`."""

    skeleton: Skeleton
    rotation_modes: tuple[str, ...]
    inherits_rotation: Flags
    connected: Flags
    use_local_location: Flags


@dataclass(frozen=True, eq=False)
class RigMotion:
    """What a rig does, in the armature's own axes and Blender units.

    Parameters
    ----------
    rotations : (F, J, 4) array
        In the parents' frames.
    translations : (F, J, 3) array
    world : (F, 4, 4) or (1, 4, 4) array
        The object in the world.
    scales : mapping from joint to (F, 3) array
        Bones that are scaled, along their own axes.
    notes : tuple of str
    pose : ScaledPose or None
        Where bones are scaled: the same with their scales.
    """

    rotations: Array
    translations: Array
    world: Array
    notes: tuple[str, ...] = ()
    scales: Mapping[int, Array] = field(default_factory=dict[int, Array])
    pose: ScaledPose | None = None


@dataclass(frozen=True, eq=False)
class Folded:
    """The same in the world's axes and metres."""

    skeleton: Skeleton
    rotations: Array
    translations: Array
    notes: tuple[str, ...] = field(default_factory=tuple)
    pose: ScaledPose | None = None


def read_body(obj: bpy.types.Object) -> Body:
    """The rest pose of an armature object and what evaluating its bones needs."""
    bones = obj.data.bones
    names = [b.name for b in bones]
    order, parents = armature._parents_first(names, [b.parent.name if b.parent else None for b in bones])
    flags = {name: armature._get(bones, name, bool)[order] for name in armature._FLAGS}
    poses = [obj.pose.bones.get(names[i]) for i in order]
    return Body(
        skeleton=armature._skeleton(bones, order, parents, quat.IDENTITY, 1.0),
        rotation_modes=tuple(p.rotation_mode if p else "QUATERNION" for p in poses),
        inherits_rotation=flags["use_inherit_rotation"] | (parents < 0),
        connected=flags["use_connect"] & (parents >= 0),
        use_local_location=flags["use_local_location"],
    )


def fold(obj: bpy.types.Object, body: Body, motion: RigMotion, metres_per_unit: float, frames: Array) -> Folded:
    """Fold the object's own transform into the roots."""
    rotation, scale, place = _taken_apart(motion.world, obj.name, frames)
    turns, travels = _moves(rotation), _moves(place)
    origin = np.zeros(3) if travels else place[0]
    rest_turn = _without_heading(rotation[0]) if turns else rotation[0]
    notes: list[str] = []
    if turns or travels:
        notes.append(f'The object "{obj.name}" moves by itself; its motion is part of the take, which is in the axes of the world.')
    if _moves(scale):
        notes.append(f'The scale of the object "{obj.name}" is animated; the lengths of the take change with it.')

    roots = list(body.skeleton.roots)
    lengths = scale * metres_per_unit
    rotations, translations = motion.rotations, motion.translations
    for r in roots:
        rotations[:, r] = quat.mul(rotation, rotations[:, r])
        moved = quat.rotate(rotation, translations[:, r])
        translations[:, r] = moved * lengths[:, None] + (place - origin) * metres_per_unit
    below = np.flatnonzero(body.skeleton.parents >= 0)
    if np.any(lengths != 1.0):
        translations[:, below] *= lengths[:, None, None]
    pose = motion.pose
    if pose is not None:
        pose = replace(pose, translations=pose.translations * lengths[:, None, None])

    skeleton = body.skeleton
    unit = float(lengths[0])
    rest_r, rest_t = skeleton.rest_rotations.copy(), skeleton.rest_translations * unit
    rest_r[roots], rest_t[roots] = quat.mul(rest_turn, rest_r[roots]), quat.rotate(rest_turn, rest_t[roots])
    rest = Skeleton(skeleton.names, skeleton.parents, rest_t, rest_r, skeleton.ends * unit)
    return Folded(rest, rotations, translations, tuple(notes), pose)


def _taken_apart(world: Array, name: str, frames: Array) -> tuple[Array, Array, Array]:
    """World matrices ``(N, 4, 4)`` -> rotations ``(N, 4)``, uniform scales ``(N,)``, places ``(N, 3)``."""
    armature._decompose(world[0], name)
    linear = world[:, :3, :3]
    volume = np.linalg.det(linear)
    with np.errstate(invalid="ignore", divide="ignore"):
        scale = np.cbrt(volume)
        uneven = np.abs(linear.transpose(0, 2, 1) @ linear / (scale**2)[:, None, None] - np.eye(3)).max(axis=(1, 2))
    bad = ~(volume > 0.0) | ~(uneven <= 2.0 * armature.SCALE_TOLERANCE)
    if bad.any():
        at = frames[int(np.argmax(bad))] if len(world) > 1 else frames[0]
        raise TargetError(f'At frame {at:g} "{name}" is mirrored or scaled differently along its axes; take that animation off the object.')
    return quat.from_matrix(_nearest_rotations(linear / scale[:, None, None])), scale, world[:, :3, 3]


def _nearest_rotations(m: Array) -> Array:
    """The rotations nearest to ``(..., 3, 3)`` of positive determinant: two Newton steps, enough from within a few parts in 1000.

    Source: Higham, *Computing the polar decomposition with applications*, 1986.
    """
    for _ in range(2):
        m = 0.5 * (m + np.swapaxes(np.linalg.inv(m), -1, -2))
    return m


def _moves(a: Array) -> bool:
    return len(a) > 1 and float(np.ptp(a, axis=0).max()) > STILL


def _without_heading(q: Array) -> Array:
    """The part of a rotation ``(4,)`` that is left when the turn about the vertical, which acts last, is taken off."""
    swing, _heading = quat.swing_twist(quat.inv(q), np.array([0.0, 0.0, 1.0]))
    return quat.inv(swing)
