# SPDX-License-Identifier: GPL-3.0-or-later
"""A live pose onto what it drives: an armature through its table, an object as a prop, shape keys as a face.

Only pose bones, the transform of props and the values of shape keys are written, in whole arrays; bones without a role keep the pose they
have. What does not depend on the pose is worked out when a :class:`Rig` is made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import bpy
import numpy as np
from mathutils import Matrix, Quaternion, Vector
from numpy.typing import NDArray

from .. import retarget, rig
from ..motion import kinematics, quat
from ..motion.errors import MocapError
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from ..retarget.adjust import NO_ADJUSTMENTS, Adjustments
from ..retarget.build import bodies_of, table_and_bodies
from ..retarget.extras import MorphOptions
from ..retarget.moment import Moment, Posed, pose
from ..retarget.motion import PoseMotion
from ..retarget.transfer import RetargetOptions
from ..retarget.travel import WHOLE, sole_thickness
from ..rig.table import CorrectionTable
from . import armature, channels, control_rig, morph_keys, rig_links, routing
from .control_rig import Controls

Array = NDArray[np.float64]

_PROPERTIES = {"QUATERNION": ("rotation_quaternion", 4), "AXIS_ANGLE": ("rotation_axis_angle", 4)}


@dataclass(frozen=True)
class _Turns:
    """Bones of one rotation mode: rows of the pose, places among the pose bones, the property's name and width."""

    mode: str
    rows: NDArray[np.intp]
    bones: NDArray[np.intp]
    prop: str
    width: int


class Rig:
    """A character that follows a performer.

    Parameters
    ----------
    obj : armature object
    source : Skeleton
        The performer's joints; its rest pose is what stands as the character does (:func:`rested`).
    table : CorrectionTable, optional
        The character's; computed when missing or when it was made for other joints.
    controls : where the pose goes on driven rigs, see :mod:`.control_rig`
    travel : float, optional
    adjustments : Adjustments

    Raises
    ------
    MocapError
        The character cannot take motion, or either is no humanoid.
    """

    def __init__(
        self,
        obj: bpy.types.Object,
        source: Skeleton,
        table: CorrectionTable | None = None,
        *,
        controls: Controls = "auto",
        travel: float | None = None,
        adjustments: Adjustments = NO_ADJUSTMENTS,
    ) -> None:
        self.obj, self.source = obj, source
        self.performer: Skeleton = source
        """The skeleton as the stream gave it, where ``source`` is that one calibrated."""
        self.target = armature.read(obj, bpy.context.scene)
        roles = rig.match(self.target.skeleton)
        self.puppet = control_rig.puppet(obj, self.target, roles, controls, table)
        source_roles = rig.match(source)
        axes, skeleton = self.target.object_rotation, self.puppet.skeleton
        if table is not None and any(name not in source for row in table.rows for name in row.source):
            table = None
        if table is None:
            rig.require_humanoid(source_roles, source)
            rig.require_humanoid(self.puppet.roles, skeleton)
            table, bodies = table_and_bodies(source, source_roles, skeleton, self.puppet.roles, reference=None, target_axes=axes)
        else:
            table = control_rig.fitted(table, self.puppet)
            bodies = bodies_of(table, source, skeleton, reference=None, target_axes=axes, roles=(source_roles, self.puppet.roles))
        self.table = table
        carrier = routing.carrier_of(self.target, table)[0] if self.puppet.plan is None else None
        still = Take("", source, np.zeros(1), source.rest_rotations[None], source.rest_translations[None])
        self.options = RetargetOptions(
            travel=travel,
            bodies=bodies,
            sole=sole_thickness(still, bodies),
            inherits_rotation=self.puppet.inherits_rotation,
            carrier=carrier,
            adjustments=adjustments,
        )
        plain = self.puppet.plan is None and adjustments == NO_ADJUSTMENTS
        self.moment = Moment(table, source, skeleton, self.options) if plain else None
        self._count = len(obj.pose.bones)
        self._state = _state(obj)
        if self.moment is not None:
            self._prepare(self.moment)

    def _prepare(self, moment: Moment) -> None:
        obj, target = self.obj, self.target
        order = {name: i for i, name in enumerate(obj.pose.bones.keys())}
        names = target.skeleton.names
        groups: dict[str, list[int]] = {}
        for k, bone in enumerate(moment.bones):
            groups.setdefault(target.rotation_modes[bone], []).append(k)
        self._turns: list[_Turns] = []
        for mode, rows in groups.items():
            prop, width = _PROPERTIES.get(mode, ("rotation_euler", 3))
            bones = np.array([order[names[moment.bones[k]]] for k in rows], dtype=np.intp)
            self._turns.append(_Turns(mode, np.array(rows, dtype=np.intp), bones, prop, width))
        moving = [m for m, bone in enumerate(moment.moving) if bone != WHOLE and not target.connected[bone]]
        self._movers = np.array(moving, dtype=np.intp)
        self._moved = np.array([order[names[moment.moving[m]]] for m in moving], dtype=np.intp)
        axes = [target.bone_locations(moment.moving[m], np.eye(3)).T for m in moving]
        self._axes: Array = np.array(axes).reshape(-1, 3, 3)
        self._whole = moment.moving.index(WHOLE) if WHOLE in moment.moving else None

    @property
    def fits(self) -> bool:
        """Whether the character still has the bones it was made for."""
        return len(self.obj.pose.bones) == self._count

    @property
    def current(self) -> bool:
        """Whether the character's rest pose, rotation modes, turn and size are those it was made for; slower than :attr:`fits`."""
        return self.fits and _state(self.obj) == self._state

    def write(self, found: Posed) -> None:
        """A pose of :attr:`moment` onto the bones."""
        bones = self.obj.pose.bones
        count = self._count
        for turns in self._turns:
            values = np.empty(count * turns.width, dtype=np.float32)
            bones.foreach_get(turns.prop, values)
            rows = values.reshape(count, turns.width)
            rows[turns.bones] = _in_mode(found.rotations[turns.rows], turns.mode, rows[turns.bones])
            bones.foreach_set(turns.prop, values)
        if len(self._moved):
            values = np.empty(count * 3, dtype=np.float32)
            bones.foreach_get("location", values)
            values.reshape(count, 3)[self._moved] = np.einsum("mij,mj->mi", self._axes, found.locations[self._movers])
            bones.foreach_set("location", values)
        if self._whole is not None:
            self.obj.location = self.target.object_locations(found.locations[self._whole][None])[0]
        self.obj.update_tag(refresh={"OBJECT", "DATA"})

    def write_slowly(self, rotations: Array, translations: Array) -> None:
        """A pose of the performer onto controls, or with body sliders: by the retarget of a take of one sample."""
        take = Take("", self.source, np.zeros(1), rotations[None], translations[None])
        motion = retarget.retarget(take, self.table, self.puppet.skeleton, self.options)
        self._write_motion(self.puppet.keys(motion))

    def _write_motion(self, motion: PoseMotion) -> None:
        bones = self.obj.pose.bones
        for channel in channels.pose_channels(self.target, motion):
            if channel.stepped:
                continue
            if channel.group == channels.OBJECT_GROUP and "." not in channel.path:
                setattr(self.obj, channel.path, channel.values[0])
            else:
                setattr(bones[channel.group], channel.path.rpartition(".")[2], channel.values[0])
        for bone, prop, value in motion.settings:
            rig_links.set_value(self.obj, bone, prop, value)
        self.obj.update_tag(refresh={"OBJECT", "DATA"})


def _state(obj: bpy.types.Object) -> tuple[object, ...]:
    bones = obj.data.bones
    rest = np.empty(16 * len(bones), dtype=np.float32)
    bones.foreach_get("matrix_local", rest)
    turned = np.round(np.array(obj.matrix_world, dtype=np.float64)[:3, :3], 5)
    return rest.tobytes(), turned.tobytes(), tuple(bone.rotation_mode for bone in obj.pose.bones)


def write_all(rigs: Sequence[Rig], rotations: Sequence[Array], translations: Sequence[Array]) -> None:
    """The poses of many performers onto their characters."""
    quick = [i for i, one in enumerate(rigs) if one.moment is not None]
    moments = [moment for one in rigs if (moment := one.moment) is not None]
    for i, found in zip(quick, pose(moments, [rotations[i] for i in quick], [translations[i] for i in quick]), strict=True):
        rigs[i].write(found)
    for i, one in enumerate(rigs):
        if one.moment is None:
            one.write_slowly(rotations[i], translations[i])


def _in_mode(q: Array, mode: str, before: NDArray[np.float32]) -> Array:
    """Rotations ``(n, 4)`` -> values of the rotation property ``(n, 3 or 4)``; Euler angles on the turn that is nearest to ``before``."""
    if mode == "QUATERNION":
        return q
    if mode == "AXIS_ANGLE":
        return np.array([channels.in_mode(one[None], mode)[1][0] for one in q])
    order = mode[::-1]
    angles = quat.to_euler(q, order)
    out = np.empty_like(angles)
    for i, letter in enumerate(order):
        out[:, "XYZ".index(letter)] = angles[:, i]
    return out + np.rint((before - out) / (2.0 * np.pi)) * (2.0 * np.pi)


def rested(skeleton: Skeleton, rotations: Array | None, translations: Array | None = None) -> Skeleton:
    """The skeleton with a pose of the performer (local rotations ``(J, 4)``) as its rest: the calibrated one."""
    if rotations is None or len(rotations) != len(skeleton):
        return skeleton
    moved = skeleton.rest_translations if translations is None else translations
    return replace(skeleton, rest_rotations=quat.normalize(rotations), rest_translations=np.array(moved))


def stood(skeleton: Skeleton, rotations: Array, translations: Array) -> tuple[Array, Array]:
    """A calibration pose: the performer's heading and place on the ground are taken out, so that only the pose counts.

    The hips go over the origin; how high they stand stays.
    """
    places = kinematics.forward(rotations, translations, skeleton.parents)[1]
    moved = translations.copy()
    for root in skeleton.roots:
        moved[root, :2] -= places[skeleton.roots[0], :2]
    return rotations, moved


def write_object(obj: bpy.types.Object, rotation: Array, place: Array, unit: float) -> None:
    """A prop's place (metres) and rotation in the world onto an object; its scale, parent and rotation mode stay."""
    size = obj.matrix_world.to_scale()
    obj.matrix_world = Matrix.LocRotScale(Vector(place / unit), Quaternion(rotation), size)


class Face:
    """The shape keys of a character's meshes that follow a performer's curves."""

    def __init__(self, obj: bpy.types.Object, names: Sequence[str]) -> None:
        self.names = tuple(names)
        plan = morph_keys.plan(obj, {name: np.zeros(1) for name in names}, {}, MorphOptions())
        self.keys = [(keys, dict(found)) for keys, found in plan.keys]

    def write(self, curves: Mapping[str, float]) -> None:
        """Values 0..1; those of curves that are not sent stay."""
        for keys, found in self.keys:
            blocks = keys.key_blocks
            for block, name in found.items():
                if name in curves and block in blocks:
                    blocks[block].value = curves[name]


def check_free(obj: bpy.types.Object) -> None:
    """Raise :class:`MocapError` where an object cannot be driven live."""
    if obj.library is not None:
        raise MocapError(f'"{obj.name}" is linked from another file; choose Object > Library Override > Make first.')
    if obj.animation_data is not None and obj.animation_data.use_tweak_mode:
        raise MocapError(f'An NLA strip of "{obj.name}" is being edited; leave tweak mode (Tab in the NLA editor) first.')
