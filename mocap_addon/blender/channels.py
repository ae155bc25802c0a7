# SPDX-License-Identifier: GPL-3.0-or-later
"""Motion <-> the values of f-curves: rotations in the bone's own rotation mode, locations in its own unit and axes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import quat, timecode
from ..motion.errors import MocapError
from ..retarget.motion import PoseMotion

if TYPE_CHECKING:
    from .armature import Target

Array = NDArray[np.float64]

RATE, DROP, START = ("TCRateNumerator", "TCRateDenominator"), "TCDropFrame", "TCStart"
"""Custom properties of the armature object beside the time code's curves: its exact rate, drop-frame, and (a text) its first label."""

OBJECT_GROUP = "Object Transforms"
"""The group that Blender gives an object's own curves."""

Kind = Literal["rotation", "location", "scale", "value", "rest"]

_AXIS = {"X": 0, "Y": 1, "Z": 2}


@dataclass(frozen=True, eq=False)
class Channels:
    """One f-curve per column: ``values (F, n)`` at ``path[0]`` to ``path[n - 1]`` in the group ``group``.

    ``kind``: ``rotation``, ``location`` and ``scale`` of the bone that the group is named after (or of the object), ``value`` of a custom
    property, or ``rest``: one key that puts back what another action moved. ``mode`` is the rotation's mode.
    """

    path: str
    group: str
    values: Array
    color_mode: str = "AUTO_RGB"
    stepped: bool = False
    indexed: bool = True
    kind: Kind = "value"
    mode: str = ""

    @property
    def keys(self) -> tuple[tuple[str, int], ...]:
        """Data path and array index of every f-curve."""
        return tuple((self.path, i) for i in range(self.values.shape[1]))

    @property
    def layer(self) -> str:
        """What the layer of hand edits calls what is moved: a bone's place by its name, its scale by another."""
        return f"{self.group} (scale)" if self.kind == "scale" else self.group


def pose_channels(target: Target, motion: PoseMotion) -> Iterator[Channels]:
    """Locations and rotations of the motion's bones, as the target's bones store them; and the object's own where it carries them."""
    names = target.skeleton.names
    rotations = _in_rotation_modes(target, motion)
    moving = {bone: k for k, bone in enumerate(motion.moving)}
    keyed = [*motion.bones, *(bone for bone in motion.moving if bone not in rotations)]
    for bone in keyed:
        base = bone_path(names[bone])
        if bone in moving and not target.connected[bone]:
            locations = target.bone_locations(bone, motion.locations[:, moving[bone]])
            yield Channels(f"{base}.location", names[bone], locations, kind="location")
        if bone in rotations:
            prop, values = rotations[bone]
            values = values[:1] if bone in motion.held else values
            yield rotation_channels(names[bone], prop, values, target.rotation_modes[bone])
    for bone, values in motion.scales.items():
        yield Channels(f"{bone_path(names[bone])}.scale", names[bone], values, kind="scale")
    for bone, prop, value in motion.settings:
        yield Channels(setting_path(bone, prop), bone, np.array([[value]]), "AUTO_RAINBOW", stepped=True, indexed=False)
    if motion.placement is not None:
        yield Channels("location", OBJECT_GROUP, target.object_locations(motion.placement), kind="location")
    if motion.turning is not None:
        prop, values = in_mode(target.object_rotations(motion.turning), target.rotation_mode)
        yield rotation_channels(OBJECT_GROUP, prop, values, target.rotation_mode)


def rotation_channels(group: str, prop: str, values: Array, mode: str) -> Channels:
    """The curves of the rotation property of a bone, or of the object (:data:`OBJECT_GROUP`)."""
    color = "AUTO_YRGB" if prop == "rotation_quaternion" else "AUTO_RGB"
    return Channels(rotation_path(group, prop), group, values, color, kind="rotation", mode=mode)


def rotation_path(group: str, prop: str) -> str:
    """Data path of a rotation property of a bone, or of the object (:data:`OBJECT_GROUP`)."""
    return prop if group == OBJECT_GROUP else f"{bone_path(group)}.{prop}"


def rotation_of(owner: bpy.types.Object | bpy.types.PoseBone) -> Array:
    """(4,): what the rotation property of an object or pose bone holds, in whatever mode it is."""
    mode = owner.rotation_mode
    values = {"QUATERNION": owner.rotation_quaternion, "AXIS_ANGLE": owner.rotation_axis_angle}.get(mode, owner.rotation_euler)
    return to_rotations(np.array(values, dtype=np.float64)[None], mode)[0]


def in_mode(q: Array, mode: str) -> tuple[str, Array]:
    """Rotations ``(F, 4)`` -> name and values ``(F, 3)`` or ``(F, 4)`` of the property that a bone in ``mode`` is turned by."""
    if mode == "QUATERNION":
        return "rotation_quaternion", quat.continuous(q)
    return ("rotation_axis_angle", axis_angle(q)) if mode == "AXIS_ANGLE" else ("rotation_euler", euler(q, mode))


def to_rotations(values: Array, mode: str) -> Array:
    """The reverse of :func:`in_mode`: values ``(..., n)`` of a rotation property -> rotations ``(..., 4)`` as Blender understands them."""
    values = np.asarray(values, dtype=np.float64)
    if mode == "QUATERNION":
        none = np.einsum("...i,...i->...", values, values) < 1e-20
        return quat.normalize(np.where(none[..., None], quat.IDENTITY, values) if none.any() else values)
    if mode == "AXIS_ANGLE":
        length = np.linalg.norm(values[..., 1:], axis=-1)
        axis = values[..., 1:] / np.maximum(length, 1e-30)[..., None]
        return quat.from_axis_angle(axis, np.where(length > 1e-10, values[..., 0], 0.0))
    order = mode[::-1]
    return quat.from_euler(values[..., [_AXIS[letter] for letter in order]], order)


def _in_rotation_modes(target: Target, motion: PoseMotion) -> dict[int, tuple[str, Array]]:
    """Bone -> its rotation property and values ``(F, 3)`` or ``(F, 4)``; bones of one mode are turned together."""
    out: dict[int, tuple[str, Array]] = {}
    modes = [target.rotation_modes[bone] for bone in motion.bones]
    for mode in dict.fromkeys(modes):
        picked = [k for k, m in enumerate(modes) if m == mode]
        if mode == "QUATERNION":
            prop, values = "rotation_quaternion", motion.rotations
            out.update({motion.bones[k]: (prop, values[:, k]) for k in picked})
            continue
        q = motion.rotations[:, picked]
        prop, values = ("rotation_axis_angle", axis_angle(q)) if mode == "AXIS_ANGLE" else ("rotation_euler", euler(q, mode))
        out.update({motion.bones[k]: (prop, values[:, i]) for i, k in enumerate(picked)})
    return out


def euler(q: Array, mode: str) -> Array:
    """Quaternions ``(F, ..., 4)`` -> ``rotation_euler`` (x, y, z) ``(F, ..., 3)`` of the mode, continuous over the frames.

    Blender's ``XYZ`` turns about X first, ``Rz @ Ry @ Rx``: intrinsically the mode's letters backwards.
    """
    order = mode[::-1]
    angles = quat.continuous_euler(quat.to_euler(q, order))
    out = np.empty_like(angles, order="F")
    for i, letter in enumerate(order):
        out[..., _AXIS[letter]] = angles[..., i]
    return out


def axis_angle(q: Array) -> Array:
    """Quaternions ``(F, ..., 4)`` -> Blender's ``rotation_axis_angle`` ``(F, ..., 4)`` (angle, x, y, z), continuous over the frames.

    ``(angle, axis)`` and ``(-angle, -axis)`` are one rotation: the axis keeps the sign nearest to the frame before and the angle is
    unwrapped. Where there is no rotation there is no axis: the one of the frame before is held (at the start, the first there is).
    """
    vector = q[..., 1:]
    length = np.sqrt(np.einsum("...i,...i->...", vector, vector))
    known = length > 1e-8
    frame = np.arange(len(q)).reshape(-1, *([1] * (q.ndim - 2)))
    last = np.maximum.accumulate(np.where(known, frame, -1), axis=0)
    held = np.where(last < 0, np.argmax(known, axis=0), last)[..., None]
    with np.errstate(invalid="ignore", divide="ignore"):
        axis = np.where(known[..., None], vector / length[..., None], (0.0, 1.0, 0.0))
    axis = np.take_along_axis(axis, np.broadcast_to(held, axis.shape), axis=0)
    sign = np.ones(length.shape)
    sign[1:] = np.cumprod(np.where(np.einsum("f...i,f...i->f...", axis[1:], axis[:-1]) < 0.0, -1.0, 1.0), axis=0)
    angle = np.unwrap(2.0 * np.arctan2(length * sign * np.where(known, 1.0, 0.0), q[..., 0]), axis=0)
    return np.asfortranarray(np.concatenate([angle[..., None], axis * sign[..., None]], axis=-1))


def curve_channels(motion: PoseMotion) -> Iterator[Channels]:
    """The motion's scalar curves, as custom properties of the object; time code holds between its keys."""
    for name, values in motion.curves.items():
        stepped = name.startswith(timecode.PREFIX)
        yield Channels(property_path(name), "Mocap", np.asarray(values, dtype=np.float64)[:, None], "AUTO_RAINBOW", stepped, indexed=False)
    for name, value in time_code_settings(motion).items():
        yield Channels(property_path(name), "Mocap", np.array([[value]]), "AUTO_RAINBOW", stepped=True, indexed=False)


def time_code_settings(motion: PoseMotion) -> dict[str, float]:
    """What time code needs besides its curves, as custom properties: one key each."""
    start = motion.time_code
    if start is None:
        return {}
    out = {RATE[0]: float(start.rate.numerator), RATE[1]: float(start.rate.denominator), DROP: float(start.drop)}
    return out if timecode.SUBFRAME in motion.curves else {**out, timecode.SUBFRAME: 0.0}


def check_channels(channels: list[Channels], motion: PoseMotion) -> None:
    """Raise :class:`MocapError` for values that no key can hold."""
    for channel in channels:
        if len(channel.values) not in (len(motion.times), 1 if motion.held or channel.stepped else len(motion.times)):
            raise MocapError(f'The motion of "{channel.group}" has {len(channel.values)} samples for {len(motion.times)} times.')
        if not np.isfinite(channel.values.sum()):
            frame = int(np.argmin(np.isfinite(channel.values).all(axis=1)))
            raise MocapError(f'The motion of "{channel.group}" is not a number at sample {frame + 1}; repair or cut the take there.')


def bone_path(name: str) -> str:
    """Data path of a pose bone."""
    return f'pose.bones["{bpy.utils.escape_identifier(name)}"]'


def setting_path(bone: str, prop: str) -> str:
    """Data path of a setting of a bone (:class:`~mocap_addon.retarget.motion.PoseMotion`)."""
    return f"{bone_path(bone)}{prop if prop.startswith('.') else property_path(prop)}"


def property_path(name: str) -> str:
    """Data path of a custom property."""
    return f'["{bpy.utils.escape_identifier(name)}"]'
