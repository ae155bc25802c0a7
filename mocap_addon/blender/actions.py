# SPDX-License-Identifier: GPL-3.0-or-later
"""Arrays -> an action on an armature.

A pose bone stores its basis, the transform away from its rest: that is what :class:`~mocap_addon.retarget.motion.PoseMotion` holds, so the
rotations only take the shape of the bone's own rotation mode, and the locations the bone's own unit and axes. Each f-curve then
costs three copies of one reused float32 buffer; nothing is evaluated, no frame is set.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion.errors import MocapError, TargetError
from ..retarget.motion import PoseMotion
from . import baseline, compat, curves
from .armature import Target, check
from .channels import START, Channels, check_channels, curve_channels, pose_channels, time_code_settings
from .leftovers import rest_keys
from .recipes import RECIPE, recipe_of, store_place, store_recipe
from .scenes import scene_rate

__all__ = ["RECIPE", "Rollback", "create_properties", "key_frames", "make_active", "recipe_of", "store_recipe", "write", "write_curves"]

Array = NDArray[np.float64]

_WHOLE = 1e-4
_INTERPOLATION = bpy.types.Keyframe.bl_rna.properties["interpolation"].enum_items


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
    finish: Callable[[bpy.types.Action, Array, Rollback], object] | None = None,
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
        How the motion was made, stored as JSON text in ``action["mocap_recipe"]``; beside it the keys themselves, so that what is
        changed by hand later can be told from them (:mod:`.baseline`).
    assign : bool
        Make it the object's action. The action before it is kept (with a fake user if nothing else holds it).
    finish : callable, optional
        Called with the action, the scene frames of its samples and the rollback, when all else is done: for what belongs to it.

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
    scene = scene or bpy.context.scene
    frames = key_frames(motion.times, frame_start, scene_rate(scene), rate)
    channels = [*pose_channels(target, motion), *curve_channels(motion)]
    check_channels(channels, motion)
    channels += rest_keys(obj, target, motion, {channel.path for channel in channels})
    with Rollback() as undo:
        action, slot, bag = compat.new_action(name)
        undo.add(lambda: bpy.data.actions.remove(action))
        write_curves(bag, frames, channels)
        if recipe is not None:
            store_recipe(action, recipe)
            baseline.store(action, baseline.Baseline(frames, tuple(channels), scene_rate(scene)))
        elif (place := target.place(motion)) is not None:
            store_place(action, place)
        create_properties(obj, motion, undo)
        if assign:
            make_active(obj, action, slot, undo)
        action.use_fake_user = not assign
        if finish is not None:
            finish(action, frames, undo)
    return action


# --- what goes into the curves -------------------------------------------------------------------------------------------------------


def key_frames(times: Array, start: float, fps: Fraction, rate: Fraction | None) -> Array:
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


# --- writing -------------------------------------------------------------------------------------------------------------------------


def write_curves(
    bag: compat.Bag,
    frames: Array,
    channels: Sequence[Channels],
    existing: Mapping[tuple[str, int], bpy.types.FCurve] | None = None,
) -> None:
    """Linear keys at ``frames (F,)`` for every channel; a channel of fewer rows has keys at the first frames only.

    ``existing`` (by path and index) are curves of the bag that get new keys instead of being made; everything else of theirs stays.
    """
    # Key points are (frame, value) pairs: one buffer for all curves, the frames written once, a column of values each time.
    count = len(frames)
    pairs = np.empty(2 * count, dtype=np.float32)
    pairs[0::2] = frames
    values = pairs[1::2]
    if np.any(np.diff(pairs[0::2]) <= 0.0):
        raise MocapError("The samples lie too close together for Blender's frame numbers; resample the take to the scene's rate.")
    linear = np.full(count, _INTERPOLATION["LINEAR"].value, dtype=curves.CHOICE)
    constant = np.full(count, _INTERPOLATION["CONSTANT"].value, dtype=curves.CHOICE)
    for channel in channels:
        n = len(channel.values)
        interpolation = (constant if channel.stepped else linear)[:n]
        for i in range(channel.values.shape[1]):
            curve = existing.get((channel.path, i)) if existing else None
            if curve is None:
                curve = compat.new_curve(bag, channel.path, i if channel.indexed else 0, channel.group)
                curve.color_mode = channel.color_mode
            else:
                curve.keyframe_points.clear()
            points = curve.keyframe_points
            points.add(n)
            values[:n] = channel.values[:, i]
            points.foreach_set("co", pairs[: 2 * n])
            points.foreach_set("interpolation", interpolation)
            curve.update()


def create_properties(obj: bpy.types.Object, motion: PoseMotion, undo: Rollback) -> None:
    if obj.override_library is not None:
        return  # a property added to an override is lost at reload; the curves stay in the action
    first = {name: float(values[0]) for name, values in motion.curves.items()} | time_code_settings(motion)
    for name, value in first.items():
        if name not in obj:
            obj[name] = value
            undo.add(lambda name=name: obj.pop(name, None))
    if motion.time_code is not None:
        before = obj.get(START)
        obj[START] = str(motion.time_code)
        undo.add(lambda: obj.pop(START, None) if before is None else obj.__setitem__(START, before))


def make_active(obj: bpy.types.Object, action: bpy.types.Action, slot: compat.Slot, undo: Rollback) -> None:
    """Make an action the object's; the one before is kept, with a fake user where nothing else holds it."""
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


class Rollback:
    """Takes back, newest first, what was done inside the ``with`` block when something raises in it."""

    def __init__(self) -> None:
        self._steps: list[Callable[[], object]] = []

    def add(self, step: Callable[[], object]) -> None:
        self._steps.append(step)

    def __enter__(self) -> Rollback:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            for step in reversed(self._steps):
                step()
