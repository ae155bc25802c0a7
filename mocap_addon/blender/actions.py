# SPDX-License-Identifier: GPL-3.0-or-later
"""Arrays -> an action on an armature.

A pose bone stores its basis, the transform away from its rest: that is what :class:`~mocap_addon.retarget.motion.PoseMotion` holds, so the
rotations only take the shape of the bone's own rotation mode, and the locations the bone's own unit and axes. Each f-curve then
costs three copies of one reused float32 buffer; nothing is evaluated, no frame is set.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import MocapError, TargetError
from ..retarget.motion import PoseMotion
from . import compat
from .armature import Target, check
from .scenes import scene_rate

Array = NDArray[np.float64]

RECIPE = "mocap_recipe"
"""The action's custom property with the recipe, as JSON text."""

STEPPED_PREFIX = "TC"
"""Curves whose names start so (time code) hold their value between keys."""

_WHOLE = 1e-4
_INTERPOLATION = bpy.types.Keyframe.bl_rna.properties["interpolation"].enum_items
_AXIS = {"X": 0, "Y": 1, "Z": 2}


@dataclass(frozen=True, eq=False)
class Channels:
    """One f-curve per column: ``values (F, n)`` at ``path[0]`` to ``path[n - 1]`` in the group ``group``."""

    path: str
    group: str
    values: Array
    color_mode: str = "AUTO_RGB"
    stepped: bool = False
    indexed: bool = True


def write(
    obj: bpy.types.Object,
    target: Target,
    motion: PoseMotion,
    *,
    name: str,
    frame_start: float,
    rate: Fraction | None = None,
    scene: bpy.types.Scene | None = None,
    recipe: Mapping[str, object] | None = None,
    assign: bool = True,
) -> bpy.types.Action:
    """Write ``motion`` as a new action, all of it or nothing.

    Bones connected to their parent get no location keys: Blender would ignore them.

    Parameters
    ----------
    obj : armature object
    target : Target
        What :func:`armature.read` said about ``obj``.
    motion : PoseMotion
    name : str
        Wanted name; Blender appends a number when it is taken.
    frame_start : float
        Scene frame of the first sample.
    rate : Fraction, optional
        The rate that the motion was resampled to: sample ``n`` is then taken to lie at exactly ``n / rate`` seconds.
    scene : scene, optional
        Whose frames the keys are counted in; the current one by default. A sample ``t`` seconds after the first lands on
        ``frame_start + t * fps / fps_base``, on a whole frame when it is within 1e-4 of one.
    recipe : mapping, optional
        How the motion was made, stored as JSON text in ``action["mocap_recipe"]``.
    assign : bool
        Make it the object's action. The action before it is kept (with a fake user if nothing else holds it).

    Raises
    ------
    TargetError
        The object cannot take an action.
    MocapError
        The motion has no frames or holds values that are not numbers.
    """
    check(obj)
    if assign and obj.animation_data is not None and obj.animation_data.use_tweak_mode:
        raise TargetError(f'An NLA strip of "{obj.name}" is being edited; leave tweak mode (Tab in the NLA editor) first.')
    missing = [name for name in (target.skeleton.names[k] for k in (*motion.bones, *motion.moving)) if name not in obj.pose.bones]
    if missing:
        raise TargetError(f'"{obj.name}" has no bone "{missing[0]}" any more; start again, so that its bones are read anew.')
    frames = _frames(motion.times, frame_start, scene_rate(scene or bpy.context.scene), rate)
    channels = [*_pose_channels(target, motion), *_curve_channels(motion)]
    _check(channels, motion)
    channels += _leftovers(obj, target, motion)
    with _Undo() as undo:
        action, slot, bag = compat.new_action(name)
        undo.add(lambda: bpy.data.actions.remove(action))
        _write_curves(bag, frames, channels)
        if recipe is not None:
            action[RECIPE] = json.dumps(recipe, ensure_ascii=False, default=str)
        _create_properties(obj, motion, undo)
        if assign:
            _assign(obj, action, slot, undo)
        action.use_fake_user = not assign
    return action


def recipe_of(action: bpy.types.Action) -> dict[str, object] | None:
    """The recipe an action of ours carries, or None."""
    text = action.get(RECIPE)
    if not isinstance(text, str):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


# --- what goes into the curves -------------------------------------------------------------------------------------------------------


def _frames(times: Array, start: float, fps: Fraction, rate: Fraction | None) -> Array:
    """Seconds ``(F,)`` -> scene frames ``(F,)``."""
    if len(times) == 0:
        raise MocapError("The motion has no frames; there is nothing to write.")
    frames = start + (times - times[0]) * float(fps)
    if rate is not None:
        count = (times - times[0]) * float(rate)
        if np.max(np.abs(count - np.rint(count))) < _WHOLE:
            step = fps / rate
            frames = start + np.rint(count) * step.numerator / step.denominator
    whole = np.rint(frames)
    return np.where(np.abs(frames - whole) < _WHOLE, whole, frames)


def _pose_channels(target: Target, motion: PoseMotion) -> Iterator[Channels]:
    names = target.skeleton.names
    rotations = _in_rotation_modes(target, motion)
    moving = {bone: k for k, bone in enumerate(motion.moving)}
    keyed = [*motion.bones, *(bone for bone in motion.moving if bone not in rotations)]
    for bone in keyed:
        base = bone_path(names[bone])
        if bone in moving and not target.connected[bone]:
            yield Channels(f"{base}.location", names[bone], target.bone_locations(bone, motion.locations[:, moving[bone]]))
        if bone in rotations:
            prop, values = rotations[bone]
            yield Channels(f"{base}.{prop}", names[bone], values, "AUTO_YRGB" if prop == "rotation_quaternion" else "AUTO_RGB")


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


def _curve_channels(motion: PoseMotion) -> Iterator[Channels]:
    for name, values in motion.curves.items():
        stepped = name.startswith(STEPPED_PREFIX)
        yield Channels(property_path(name), "Mocap", np.asarray(values, dtype=np.float64)[:, None], "AUTO_RAINBOW", stepped, indexed=False)


def _leftovers(obj: bpy.types.Object, target: Target, motion: PoseMotion) -> list[Channels]:
    """Rest values for channels that the present action moves on our bones and ours would not.

    Without them a location or scale that the other action left behind at the current frame would stay in the pose for good. What a person
    set without keys is kept.
    """
    animation = obj.animation_data
    if animation is None or animation.action is None or (compat.SLOTTED and compat.assigned_slot(animation) is None):
        return []
    moved = {curve.data_path for curve in compat.all_curves(animation.action, compat.assigned_slot(animation))}
    out: list[Channels] = []
    for bone in motion.bones:
        name = target.skeleton.names[bone]
        base = bone_path(name)
        if f"{base}.location" in moved and (bone not in motion.moving or target.connected[bone]):
            out.append(Channels(f"{base}.location", name, np.zeros((1, 3))))
        if f"{base}.scale" in moved:
            out.append(Channels(f"{base}.scale", name, np.ones((1, 3))))
    return out


def _check(channels: list[Channels], motion: PoseMotion) -> None:
    for channel in channels:
        if len(channel.values) != len(motion.times):
            raise MocapError(f'The motion of "{channel.group}" has {len(channel.values)} samples for {len(motion.times)} times.')
        if not np.isfinite(channel.values.sum()):
            frame = int(np.argmin(np.isfinite(channel.values).all(axis=1)))
            raise MocapError(f'The motion of "{channel.group}" is not a number at sample {frame + 1}; repair or cut the take there.')


def bone_path(name: str) -> str:
    """Data path of a pose bone."""
    return f'pose.bones["{bpy.utils.escape_identifier(name)}"]'


def property_path(name: str) -> str:
    """Data path of a custom property."""
    return f'["{bpy.utils.escape_identifier(name)}"]'


# --- writing -------------------------------------------------------------------------------------------------------------------------


def _write_curves(bag: compat.Bag, frames: Array, channels: list[Channels]) -> None:
    # Key points are (frame, value) pairs: one buffer for all curves, the frames written once, a column of values each time.
    count = len(frames)
    pairs = np.empty(2 * count, dtype=np.float32)
    pairs[0::2] = frames
    values = pairs[1::2]
    if np.any(np.diff(pairs[0::2]) <= 0.0):
        raise MocapError("The samples lie too close together for Blender's frame numbers; resample the take to the scene's rate.")
    linear = np.full(count, _INTERPOLATION["LINEAR"].value, dtype=np.int32)
    constant = np.full(count, _INTERPOLATION["CONSTANT"].value, dtype=np.int32)
    for channel in channels:
        n = len(channel.values)
        interpolation = (constant if channel.stepped else linear)[:n]
        for i in range(channel.values.shape[1]):
            curve = compat.new_curve(bag, channel.path, i if channel.indexed else 0, channel.group)
            curve.color_mode = channel.color_mode
            points = curve.keyframe_points
            points.add(n)
            values[:n] = channel.values[:, i]
            points.foreach_set("co", pairs[: 2 * n])
            points.foreach_set("interpolation", interpolation)
            curve.update()


def _create_properties(obj: bpy.types.Object, motion: PoseMotion, undo: _Undo) -> None:
    if obj.override_library is not None:
        return  # a property added to an override is lost at reload; the curves stay in the action
    for name, values in motion.curves.items():
        if name not in obj:
            obj[name] = float(values[0])
            undo.add(lambda name=name: obj.pop(name, None))


def _assign(obj: bpy.types.Object, action: bpy.types.Action, slot: compat.Slot, undo: _Undo) -> None:
    if obj.animation_data is None:
        undo.add(obj.animation_data_clear)
    animation = obj.animation_data or obj.animation_data_create()
    before, before_slot = animation.action, compat.assigned_slot(animation)
    if before is not None:
        kept = before.use_fake_user
        undo.add(lambda: setattr(before, "use_fake_user", kept))
    undo.add(lambda: compat.assign(animation, before, before_slot))
    compat.assign(animation, action, slot)
    if before is not None and before.library is None and before.users == 0:
        before.use_fake_user = True


class _Undo:
    """Takes back, newest first, what was done inside the ``with`` block when something raises in it."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []

    def add(self, step: Callable[[], object]) -> None:
        self._steps.append(step)

    def __enter__(self) -> _Undo:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for step in reversed(self._steps):
                step()
