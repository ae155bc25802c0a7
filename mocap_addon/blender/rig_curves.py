# SPDX-License-Identifier: GPL-3.0-or-later
"""A rig's motion from its keys alone, in arrays over all frames.

Derivation. A pose bone's basis (location, rotation, scale) acts in the bone's rest frame: ``local = rest_local * basis``. A bone that
does not inherit rotation turns in the armature's axes, ``global = rest_global * basis``, while its place still hangs on its parent.
Locations are along the bone's own rest axes, or along its parent's (the armature's for a root) where local location is off; a connected
bone has none. Scale other than 1 is left to the other way of evaluating.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from . import compat, curves
from .channels import to_rotations
from .playing import BONE_PATH, OBJECT_PATHS, Playing
from .rig_world import Body, RigMotion

Array = NDArray[np.float64]
ByIndex = dict[int, bpy.types.FCurve]

ROTATION_PROPERTIES = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}
_EULER = "rotation_euler"
_UNSCALED = 1e-5
_REST = {"location": 0.0, "scale": 1.0}


class Channels:
    """The values of a rig's properties over the frames: from the curves, else as they stand, else at rest.

    A property that has no curve keeps the value it stands at. But one that only *another* action moves, which is not the one to be read,
    is at rest: what that action left behind there is none of this one's motion.
    """

    def __init__(self, chosen: Playing, frames: Array) -> None:
        self.frames = frames
        self.left_behind = set() if chosen.assigned else _moved_by_others(chosen.obj)
        self._by_path: dict[str, ByIndex] = {}
        for curve in chosen.curves:
            self._by_path.setdefault(curve.data_path, {})[curve.array_index] = curve

    def has(self, path: str) -> bool:
        """Whether the property has a curve."""
        return path in self._by_path

    def values(self, path: str, prop: str, standing: object) -> Array:
        """(F, n), or (1, n) where no curve plays; ``standing`` holds the n present values."""
        now = np.array(standing, dtype=np.float64)[None]
        found = self._by_path.get(path)
        if found is None:
            return at_rest(prop, now.shape[1]) if path in self.left_behind else now
        out = np.empty((len(self.frames), now.shape[1]), order="F")
        out[:] = at_rest(prop, now.shape[1]) if path in self.left_behind else now
        for index, curve in found.items():
            if index < out.shape[1]:
                out[:, index] = curves.evaluate(curve, self.frames)
        return out

    def of_bones(self, pose: _Pose, joints: Sequence[int], prop: str, width: int) -> tuple[Array, list[int], Array]:
        """A property of joints: as it stands ``(len(joints), width)``; which of them have curves, and theirs ``(F, M, width)``."""
        standing = pose.standing(prop, width)[list(joints)]
        moving: list[int] = []
        rows: list[Array] = []
        columns: list[int] = []
        found: list[bpy.types.FCurve] = []
        for j, row in zip(joints, standing, strict=True):
            path = pose.bases[j] + prop
            if path in self.left_behind:
                row[:] = at_rest(prop, width)
            for index, curve in sorted(self._by_path.get(path, {}).items()):
                if index < width:
                    columns.append(len(moving) * width + index)
                    found.append(curve)
            if path in self._by_path:
                moving.append(j)
                rows.append(row)
        values = curves.evaluate_all(found, self.frames)
        if columns != list(range(len(moving) * width)):  # some of a property's values have no curve
            some, values = values, np.empty((len(self.frames), len(moving) * width), order="F")
            values[:] = np.concatenate(rows)
            values[:, columns] = some
        return standing, moving, values.reshape(len(self.frames), len(moving), width)


def obstacles(chosen: Playing, frames: Array) -> list[str]:
    """What else than keys moves the rig, in a word or two each; empty where arrays tell it all."""
    obj = chosen.obj
    out: list[str] = []

    def add(what: str, there: bool) -> None:
        if there:
            out.append(what)

    animation = obj.animation_data
    add("NLA strips", chosen.strips)
    add("NLA tweak mode", chosen.assigned and animation is not None and animation.use_tweak_mode)
    add("drivers", _has_drivers(obj) or _has_drivers(obj.data))
    add("constraints", _has_constraints(obj) or any(map(_has_constraints, obj.pose.bones)))
    add("parents that move", not _stands_still(obj))
    add("animated bone settings", _is_animated(obj.data) or any(c.data_path.startswith("data.") for c in chosen.curves))
    add("animated rotation modes", any(c.data_path.endswith("rotation_mode") for c in chosen.curves))
    add("scaled bones", not out and bool(_scaled(chosen, Channels(chosen, frames))))
    return out


def read(chosen: Playing, body: Body, frames: Array) -> RigMotion:
    """The motion at scene frames ``(F,)``; :func:`obstacles` must have found nothing."""
    channels = Channels(chosen, frames)
    skeleton, parents = body.skeleton, body.skeleton.parents.tolist()
    count = len(skeleton)
    pose = _Pose(chosen.obj, skeleton.names)
    turns, turning = _turns(channels, pose, body)
    moves, moving = _moves(channels, pose, body)
    rotations, translations = np.empty((len(frames), count, 4), order="F"), np.empty((len(frames), count, 3), order="F")
    rotations[:] = quat.mul(skeleton.rest_rotations, turns)
    translations[:] = skeleton.rest_translations + moves
    for joints, values in turning:
        rotations[:, joints] = quat.mul(skeleton.rest_rotations[joints], values)
    for j, values in moving.items():
        translations[:, j] = skeleton.rest_translations[j] + values
    loose = {j for j in range(count) if not body.inherits_rotation[j] and pose.has[j]}
    needed = {a for j in loose for a in skeleton.ancestors(j)}
    bases = {j: values[:, k] for joints, values in turning for k, j in enumerate(joints) if j in loose}
    turned: dict[int, Array] = {}
    for j in sorted(loose | needed):
        p = parents[j]
        if j in loose:
            own = quat.mul(skeleton.rest_global_rotations[j], bases.get(j, turns[j][None]))
            rotations[:, j] = quat.mul(quat.inv(turned[p]), own)
        if j in needed:
            turned[j] = rotations[:, j] if p < 0 else quat.mul(turned[p], rotations[:, j])
    return RigMotion(rotations, translations, _world(chosen.obj, channels))


class _Pose:
    """The bones' properties as they stand, of a body's joints: those that the pose has (``has``), the others at rest."""

    def __init__(self, obj: bpy.types.Object, names: tuple[str, ...]) -> None:
        self._bones = obj.pose.bones
        rows = {pose.name: k for k, pose in enumerate(self._bones)}
        self._rows = np.array([rows.get(name, -1) for name in names], dtype=np.int64)
        self.has: list[bool] = (self._rows >= 0).tolist()
        self.bases = [f'pose.bones["{bpy.utils.escape_identifier(name)}"].' for name in names]

    def standing(self, prop: str, width: int) -> Array:
        """(J, width)."""
        flat = np.empty(len(self._bones) * width, dtype=np.float32)
        self._bones.foreach_get(prop, flat)
        out = np.empty((len(self._rows), width))
        here = self._rows >= 0
        out[here] = flat.reshape(-1, width)[self._rows[here]]
        out[~here] = at_rest(prop, width)
        return out


def _turns(channels: Channels, pose: _Pose, body: Body) -> tuple[Array, list[tuple[list[int], Array]]]:
    """What the joints are turned by in their own rotation modes: as they stand ``(J, 4)``; of those with curves, by mode, ``(F, M, 4)``."""
    out = quat.identity(len(body.skeleton))
    moving: list[tuple[list[int], Array]] = []
    for mode in dict.fromkeys(body.rotation_modes):
        joints = [j for j, (own, has) in enumerate(zip(body.rotation_modes, pose.has, strict=True)) if own == mode and has]
        prop = ROTATION_PROPERTIES.get(mode, _EULER)
        standing, animated, values = channels.of_bones(pose, joints, prop, 3 if prop == _EULER else 4)
        out[joints] = to_rotations(standing, mode)
        if animated:
            moving.append((animated, to_rotations(values, mode)))
    return out, moving


def _moves(channels: Channels, pose: _Pose, body: Body) -> tuple[Array, dict[int, Array]]:
    """How far the joints are off their rest in their parents' frames: as they stand ``(J, 3)``, and of those with curves ``(F, 3)``."""
    joints = [j for j, has in enumerate(pose.has) if has and not body.connected[j]]
    standing, animated, values = channels.of_bones(pose, joints, "location", 3)
    out = np.zeros((len(body.skeleton), 3))
    out[joints] = standing
    rest, own_axes = body.skeleton.rest_rotations, body.use_local_location
    out[own_axes] = quat.rotate(rest[own_axes], out[own_axes])
    return out, {j: quat.rotate(rest[j], values[:, k]) if own_axes[j] else values[:, k] for k, j in enumerate(animated)}


def _rotation(channels: Channels, owner: bpy.types.Object, prefix: str = "") -> Array:
    """(F, 4) or (1, 4): what an object is turned by, in its own rotation mode."""
    mode = owner.rotation_mode
    prop = prefix + ROTATION_PROPERTIES.get(mode, _EULER)
    return to_rotations(channels.values(prop, prop, getattr(owner, prop)), mode)


def _scaled(chosen: Playing, channels: Channels) -> list[str]:
    """Names of the bones whose scale is not 1 on every frame."""
    names = tuple(pose.name for pose in chosen.obj.pose.bones)
    standing, animated, values = channels.of_bones(_Pose(chosen.obj, names), range(len(names)), "scale", 3)
    off = np.abs(standing - 1.0).max(axis=1, initial=0.0)
    off[animated] = np.abs(values - 1.0).max(axis=(0, 2), initial=0.0)
    return [names[j] for j in np.flatnonzero(off > _UNSCALED)]


# --- the object ----------------------------------------------------------------------------------------------------------------------


def _world(obj: bpy.types.Object, channels: Channels) -> Array:
    """(F, 4, 4), or (1, 4, 4) where nothing moves the object."""
    return _above(obj) @ basis(obj, channels)


def basis(obj: bpy.types.Object, channels: Channels) -> Array:
    """The object's own transform, without its parents': ``(F, 4, 4)``, or ``(1, 4, 4)`` where nothing moves it."""

    def values(prop: str) -> Array:
        return channels.values(prop, prop, getattr(obj, prop))

    turn = _rotation(channels, obj)
    if obj.rotation_mode != "AXIS_ANGLE":  # there is no delta of that
        turn = quat.mul(_rotation(channels, obj, "delta_"), turn)
    place, scale = values("location") + values("delta_location"), values("scale") * values("delta_scale")
    out = np.zeros((max(len(turn), len(place), len(scale)), 4, 4))
    out[:, :3, :3] = quat.to_matrix(turn) * scale[:, None, :]
    out[:, :3, 3] = place
    out[:, 3, 3] = 1.0
    return out


def _above(obj: bpy.types.Object) -> Array:
    """(4, 4): the frame that the object's own transform acts in, for parents that stand still."""
    steps: list[Array] = []
    while obj.parent is not None:
        steps += [np.array(obj.matrix_parent_inverse), np.array(obj.parent.matrix_basis)]
        obj = obj.parent
    return reduce(lambda below, step: step @ below, steps, np.eye(4))


def _stands_still(obj: bpy.types.Object) -> bool:
    """Whether all parents stand still and are objects, not bones, vertices or curves."""
    while obj.parent is not None:
        if obj.parent_type not in ("OBJECT", "ARMATURE") or _is_animated(obj.parent) or _has_constraints(obj.parent):
            return False
        if obj.parent.type == "CURVE" and obj.parent.data.use_path:
            return False  # it may carry its children along
        obj = obj.parent
        if obj.rigid_body is not None:
            return False
    return True


def _is_animated(owner: bpy.types.ID) -> bool:
    animation = owner.animation_data
    return animation is not None and (animation.action is not None or len(animation.nla_tracks) > 0 or _has_drivers(owner))


def _has_drivers(owner: bpy.types.ID) -> bool:
    return owner.animation_data is not None and any(not driver.mute for driver in owner.animation_data.drivers)


def _has_constraints(owner: bpy.types.Object | bpy.types.PoseBone) -> bool:
    return any(not c.mute and (c.influence > 0.0) for c in owner.constraints)


# --- what is not keyed ---------------------------------------------------------------------------------------------------------------


def at_rest(prop: str, width: int) -> Array:
    """(1, width): a property's value in the rest pose. A quaternion's and an axis' rest is no rotation."""
    out = np.full((1, width), _REST.get(prop.removeprefix("delta_"), 0.0))
    if prop.endswith("rotation_quaternion"):
        out[0, 0] = 1.0
    if prop.endswith("rotation_axis_angle"):
        out[0, 2] = 1.0
    return out


def _moved_by_others(obj: bpy.types.Object) -> set[str]:
    """Data paths that the assigned action or the strips animate: what stands there now is theirs."""
    animation = obj.animation_data
    if animation is None:
        return set()
    playing: list[tuple[bpy.types.Action, compat.Slot]] = []
    if animation.action is not None and not (compat.SLOTTED and compat.assigned_slot(animation) is None):
        playing.append((animation.action, compat.assigned_slot(animation)))
    for track in animation.nla_tracks:
        playing += [(strip.action, None) for strip in track.strips if strip.action is not None]
    found = {curve.data_path for action, slot in playing for curve in compat.all_curves(action, slot)}
    return {path for path in found if BONE_PATH.match(path) or path in OBJECT_PATHS}
