# SPDX-License-Identifier: GPL-3.0-or-later
"""An armature object -> arrays.

Derivation. With the object's evaluated world matrix ``M = T Q s`` (place, rotation, uniform scale), a bone's rest matrix ``L`` in the
armature's own axes and ``u = scale_length`` metres per Blender unit, the bone's rest in the world is ``M L``. Taken relative to the
object's origin and in metres that is the rotation ``Q rot(L)`` at ``s u Q loc(L)``. Below the roots ``Q`` cancels
(``inv(M P) M L = inv(P) L``), so only root bones carry it, and every length is multiplied by ``s u``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import TargetError
from ..motion.skeleton import Skeleton
from ..retarget.motion import PoseMotion
from . import placement, state
from .recipes import Place

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

SCALE_TOLERANCE = 1e-3
"""How far the axes of an object's scale may differ, as a share."""


@dataclass(frozen=True, eq=False)
class Target:
    """A character that can take motion, as arrays. J bones, a parent before its children.

    Parameters
    ----------
    name : str
        The object's name.
    skeleton : Skeleton
        Rest pose in the world's axes, metres, relative to the object's world origin. Object rotation and scale are folded into the roots.
        ``ends`` are the bones' tails.
    metres_per_unit : float
        Metres that one unit of the armature's own space measures: divide a location by it to get what a pose bone stores.
    object_rotation : (4,) array
        The object's rotation in the world; the inverse takes a root from the world's axes to the armature's.
    origin : (3,) array
        The object's world origin, metres.
    rotation_modes : tuple of str
        ``QUATERNION``, ``AXIS_ANGLE`` or one of six Euler orders.
    inherits_rotation : (J,) bool array
        False: the bone turns in the armature's axes whatever its parent does; its rotation in the world is ``rest_global * basis``.
    connected : (J,) bool array
        Marked as connected to the parent: Blender ignores the bone's location, even where there is no parent (any more).
    use_local_location : (J,) bool array
        False: the location is in the parent's (for a root: the armature's) axes instead of the bone's own.
    locked_location : (J, 3) bool array
    deform : (J,) bool array
    notes : tuple of str
        What a person should know, one plain sentence each.
    location : (3,) array
        The object's own ``location`` as it stands.
    location_axes : (3, 3) array
        Takes a step in the world, metres, to a step of that ``location``.
    rotation : (4,) array
        What the object's own rotation property holds as it stands.
    rotation_mode : str
        The object's.
    above : (3, 3) array
        The linear part of what stands before that rotation: its parents and its delta rotation.
    """

    name: str
    skeleton: Skeleton
    metres_per_unit: float
    object_rotation: Array
    origin: Array
    rotation_modes: tuple[str, ...]
    inherits_rotation: Flags
    connected: Flags
    use_local_location: Flags
    locked_location: Flags
    deform: Flags
    notes: tuple[str, ...] = ()
    location: Array = field(default_factory=lambda: np.zeros(3))
    location_axes: Array = field(default_factory=lambda: np.eye(3))
    rotation: Array = field(default_factory=lambda: quat.IDENTITY)
    rotation_mode: str = "XYZ"
    above: Array = field(default_factory=lambda: np.eye(3))

    def place(self, motion: PoseMotion) -> Place | None:
        """Where the object stands, to be remembered with an action of ``motion``; None when that does not move it."""
        if motion.placement is None and motion.turning is None:
            return None
        return Place(tuple(self.location.tolist()), None if motion.turning is None else tuple(self.rotation.tolist()))

    def object_locations(self, placement: Array) -> Array:
        """Metres in the world's axes away from where the object stands ``(F, 3)`` -> values of its ``location`` ``(F, 3)``."""
        return self.location + placement @ self.location_axes.T

    def placement(self, locations: Array) -> Array:
        """The reverse of :meth:`object_locations`."""
        return (locations - self.location) @ np.linalg.inv(self.location_axes).T

    def object_rotations(self, turning: Array) -> Array:
        """Turns in the world away from how the object stands ``(F, 4)`` -> what its rotation property has to hold ``(F, 4)``.

        Raises
        ------
        TargetError
            Its parents are scaled unevenly, so no rotation of its own turns it so.
        """
        axes = self._axes_above()
        return quat.mul(quat.mul(quat.mul(quat.inv(axes), turning), axes), self.rotation)

    def object_turns(self, rotations: Array) -> Array:
        """The reverse of :meth:`object_rotations`."""
        axes = self._axes_above()
        return quat.mul(quat.mul(quat.mul(axes, rotations), quat.inv(self.rotation)), quat.inv(axes))

    def _axes_above(self) -> Array:
        """(4,): the rotation of what stands before the object's own."""
        size = abs(float(np.linalg.det(self.above))) ** (1.0 / 3.0)
        if size < 1e-12 or np.max(np.abs(self.above.T @ self.above / size**2 - np.eye(3))) > 2.0 * SCALE_TOLERANCE:
            raise TargetError(
                f'What "{self.name}" is parented to is scaled unevenly, so it cannot be turned; apply that scale (Ctrl+A) first.'
            )
        u, _, vt = np.linalg.svd(self.above)
        return quat.from_matrix(u @ vt * np.sign(np.linalg.det(u @ vt)))

    def bone_locations(self, bone: int, locations: Array) -> Array:
        """Metres in the bone's own rest frame ``(F, 3)`` -> the numbers that the pose bone's location takes, ``(F, 3)``."""
        return quat.rotate(self._location_axes_of(bone), locations / self.metres_per_unit)

    def metres(self, bone: int, values: Array) -> Array:
        """The reverse of :meth:`bone_locations`."""
        return quat.rotate(quat.inv(self._location_axes_of(bone)), values * self.metres_per_unit)

    def _location_axes_of(self, bone: int) -> Array:
        """(4,): the bone's own rest axes in those that its location is along."""
        if self.use_local_location[bone]:
            return quat.IDENTITY
        rest = self.skeleton.rest_rotations[bone]
        return quat.mul(quat.inv(self.object_rotation), rest) if self.skeleton.parents[bone] < 0 else rest


def read(obj: bpy.types.Object, scene: bpy.types.Scene | None = None, place: Place | None = None) -> Target:
    """Read an armature object's rest pose and what its bones need. Nothing is changed.

    Parameters
    ----------
    obj : armature object
    scene : scene, optional
        Where the unit scale comes from; the current one by default.
    place : Place, optional
        Where the object stands; by default as it does now, without the way that an action of ours carries it.

    Raises
    ------
    TargetError
        Not an armature, no bones, linked from another file, mirrored, scaled to nothing or differently along its axes.
    """
    scene = scene or bpy.context.scene
    check(obj)
    if scene not in obj.users_scene:
        raise TargetError(f'"{obj.name}" is not in the scene "{scene.name}"; link it to one of its collections.')
    notes: list[str] = []
    if obj.data.is_editmode:  # of this object or of another one with the same bones
        obj.update_from_editmode()  # the armature's bones are those from before Edit Mode until they are flushed
        notes.append("The armature is in Edit Mode; the motion shows after leaving it.")
    graph = bpy.context.evaluated_depsgraph_get()  # also builds the pose of an object made a moment ago
    bones = obj.data.bones
    if not len(bones):
        raise TargetError(f'"{obj.name}" has no bones; choose another armature.')
    placed = placement.of(obj, graph, place)
    rotation, scale, origin = _decompose(placed.matrix, obj.name)
    unit = float(scene.unit_settings.scale_length)

    names = [b.name for b in bones]
    order, parents = _parents_first(names, [b.parent.name if b.parent else None for b in bones])
    flags = {name: _get(bones, name, bool)[order] for name in _FLAGS}
    skeleton = _skeleton(bones, order, parents, rotation, scale * unit)
    poses = [obj.pose.bones.get(names[i]) for i in order]
    return Target(
        name=obj.name,
        skeleton=skeleton,
        metres_per_unit=scale * unit,
        object_rotation=rotation,
        origin=origin * unit,
        rotation_modes=tuple(p.rotation_mode if p else "QUATERNION" for p in poses),
        inherits_rotation=flags["use_inherit_rotation"],
        connected=flags["use_connect"],
        use_local_location=flags["use_local_location"],
        locked_location=np.array([tuple(p.lock_location) if p else (False,) * 3 for p in poses], dtype=bool),
        deform=flags["use_deform"],
        notes=(*notes, *placed.notes, *state.object_notes(obj, scale)),
        location=placed.location,
        location_axes=placed.axes / unit,
        rotation=placed.rotation,
        rotation_mode=obj.rotation_mode,
        above=placed.above,
    )


_FLAGS = ("use_inherit_rotation", "use_connect", "use_local_location", "use_deform")


def check(obj: bpy.types.Object | None) -> None:
    """Raise :class:`TargetError` unless ``obj`` is an armature object that can be given an action here."""
    if obj is None:
        raise TargetError("No armature is chosen; choose the character's armature.")
    if obj.type != "ARMATURE":
        raise TargetError(f'"{obj.name}" is not an armature; choose the character\'s armature.')
    if obj.library is not None:
        raise TargetError(
            f'"{obj.name}" is linked from another file and cannot be animated here; choose Object > Library Override > Make first.'
        )


def _get(bones: bpy.types.bpy_prop_collection, name: str, dtype: type, width: int = 1) -> NDArray:
    out = np.empty(len(bones) * width, dtype=dtype)
    bones.foreach_get(name, out)
    return out


def rest_matrices(bones: bpy.types.bpy_prop_collection) -> Array:
    """(N, 4, 4): the bones in the armature's own axes, in Blender's order."""
    # foreach_get gives columns one after another, so each 4x4 block is transposed.
    return _get(bones, "matrix_local", np.float32, 16).reshape(-1, 4, 4).transpose(0, 2, 1).astype(np.float64)


def _parents_first(names: Sequence[str], parent_names: Sequence[str | None]) -> tuple[list[int], NDArray[np.int64]]:
    """Blender's order where it already has parents first, else by depth; and each bone's parent in that order."""
    index = {name: i for i, name in enumerate(names)}
    above = [-1 if p is None else index[p] for p in parent_names]
    order = list(range(len(names)))
    if any(p >= i for i, p in enumerate(above)):

        def depth(i: int) -> int:
            n = 0
            while above[i] >= 0:
                i, n = above[i], n + 1
            return n

        order.sort(key=depth)
    place = {old: new for new, old in enumerate(order)}
    return order, np.array([place[above[i]] if above[i] >= 0 else -1 for i in order], dtype=np.int64)


def _decompose(m: Array, name: str) -> tuple[Array, float, Array]:
    """World matrix ``(4, 4)`` -> rotation ``(4,)``, uniform scale, origin ``(3,)``; a sentence for what cannot be taken apart so."""
    linear = m[:3, :3]
    if not np.all(np.isfinite(m)):
        raise TargetError(f'The transform of "{name}" is not a number; clear its location, rotation and scale (Alt+G, Alt+R, Alt+S).')
    if np.min(np.linalg.norm(linear, axis=0)) < 1e-9:
        raise TargetError(f'"{name}" is scaled to nothing; set its scale to 1.')
    volume = float(np.linalg.det(linear))
    if volume < 0.0:
        raise TargetError(f'"{name}" is mirrored by a negative scale; apply its scale (Ctrl+A) first.')
    scale = volume ** (1.0 / 3.0)
    # M'M is s^2 I for a uniform scale; a share e on one axis shows as 2e there, and shear as an entry beside the diagonal.
    if scale < 1e-9 or np.max(np.abs(linear.T @ linear / scale**2 - np.eye(3))) > 2.0 * SCALE_TOLERANCE:
        raise TargetError(f'"{name}" is scaled differently along its axes; apply its scale, or that of its parents, (Ctrl+A) first.')
    u, _, vt = np.linalg.svd(linear)
    return quat.from_matrix(u @ vt), scale, m[:3, 3].copy()


def _skeleton(bones: bpy.types.bpy_prop_collection, order: list[int], parents: NDArray[np.int64], rotation: Array, unit: float) -> Skeleton:
    rest = rest_matrices(bones)[order]
    global_r = quat.mul(rotation, quat.from_matrix(rest[:, :3, :3]))
    global_t = quat.rotate(rotation, rest[:, :3, 3]) * unit
    rooted = (parents < 0)[:, None]
    undo = quat.inv(global_r[parents])
    lengths = _get(bones, "length", np.float32)[order].astype(np.float64) * unit
    names = [bone.name for bone in bones]
    return Skeleton(
        names=tuple(names[i] for i in order),
        parents=parents,
        rest_translations=np.where(rooted, global_t, quat.rotate(undo, global_t - global_t[parents])),
        rest_rotations=np.where(rooted, global_r, quat.normalize(quat.mul(undo, global_r))),
        ends=np.outer(lengths, (0.0, 1.0, 0.0)),  # a bone points along its own Y
    )
