# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion or pose that a character has already, as arrays: what shows where a mask lets no new motion through."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import RigError
from ..motion.take import PropTrack
from ..retarget import PoseMotion
from . import compat, curves
from .armature import Target
from .channels import bone_path, in_mode, rotation_of, to_rotations
from .recipes import place_of

Array = NDArray[np.float64]

OBJECT = "the object"
"""What :func:`carriers` calls the object."""


@dataclass(frozen=True)
class Existing:
    """What is laid under new motion.

    Parameters
    ----------
    action, slot : str
        Names of the action and of its slot; empty when there is none.
    pose : mapping from bone name to 7 numbers
        Rotation (wxyz) and location of bones posed by hand, as they are stored; those that are not here stand at rest.
    """

    action: str = ""
    slot: str = ""
    pose: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, "tuple[float, ...]"])


def now(obj: bpy.types.Object, *, pose: bool = True) -> Existing:
    """What the character has now: its assigned action, and (unless ``pose`` is False) the pose of the bones that it does not move."""
    animation = obj.animation_data
    action = animation.action if animation is not None else None
    slot = compat.assigned_slot(animation) if action is not None else None
    moved = {c.data_path for c in compat.moving_curves(animation)} if action is not None and pose else set[str]()
    posed: dict[str, tuple[float, ...]] = {}
    for bone in obj.pose.bones if pose else ():
        path = bone_path(bone.name)
        turned = any(f"{path}.{p}" in moved for p in ("rotation_quaternion", "rotation_euler", "rotation_axis_angle"))
        rotation = (1.0, 0.0, 0.0, 0.0) if turned else tuple(rotation_of(bone).tolist())
        location = (0.0, 0.0, 0.0) if f"{path}.location" in moved else tuple(bone.location)
        if max(abs(x) for x in (*rotation[1:], *location)) > 1e-7:
            posed[bone.name] = (*rotation, *location)
    return Existing(action.name if action else "", slot.name_display if slot is not None else "", posed)


def motion(existing: Existing, obj: bpy.types.Object, target: Target, like: PoseMotion, frames: Array) -> PoseMotion:
    """The existing motion of the bones of ``like`` at scene frames ``(F,)``.

    Raises
    ------
    RigError
        The action is not there any more.
    """
    found = _curves(existing)
    modes = {bone.name: bone.rotation_mode for bone in obj.pose.bones}
    rotations = np.empty((len(frames), len(like.bones), 4), order="F")
    for k, joint in enumerate(like.bones):
        name = target.skeleton.names[joint]
        own = np.array(existing.pose.get(name, (1.0, 0.0, 0.0, 0.0)))[None, :4]
        prop, still = in_mode(own, modes[name])
        values = _evaluated(found, f"{bone_path(name)}.{prop}", still[0], frames)
        rotations[:, k] = quat.continuous(to_rotations(values, modes[name]))
    locations = np.empty((len(frames), len(like.moving), 3), order="F")
    for m, joint in enumerate(like.moving):
        name = target.skeleton.names[joint]
        own = np.array(existing.pose.get(name, (0.0,) * 7))[4:]
        locations[:, m] = target.metres(joint, _evaluated(found, f"{bone_path(name)}.location", own, frames))
    placement = None
    if like.placement is not None:
        placement = target.placement(_evaluated(found, "location", target.location, frames))
    turning = None
    if like.turning is not None:
        prop, still = in_mode(target.rotation[None], target.rotation_mode)
        values = to_rotations(_evaluated(found, prop, still[0], frames), target.rotation_mode)
        turning = quat.continuous(target.object_turns(values))
    return replace(like, rotations=rotations, locations=locations, placement=placement, turning=turning, held=frozenset(), curves={})


def carriers(existing: Existing, bones: Collection[str]) -> set[str]:
    """Those of ``bones`` that the existing action moves; and :data:`OBJECT` where it is one of ours that moves the object."""
    action = bpy.data.actions.get(existing.action)
    moving = {path for (path, _), curve in _curves(existing).items() if len(curves.key_frames(curve)) > 1}
    out = {bone for bone in bones if any(path.startswith(f"{bone_path(bone)}.") for path in moving)}
    place = place_of(action) if action is not None else None
    return out if place is None else {*out, OBJECT}


def frame_range(existing: Existing) -> tuple[float, float] | None:
    """First and last frame of the existing action's keys, or None."""
    found = list(_curves(existing).values())
    ends = [frames[[0, -1]] for curve in found if len(frames := curves.key_frames(curve))]
    return (float(min(e[0] for e in ends)), float(max(e[1] for e in ends))) if ends else None


def padded(new: PoseMotion, frames: Array, wanted: tuple[float, float] | None) -> tuple[PoseMotion, Array]:
    """The motion, and its scene frames ``(F,)``, held on in its own step so far that it covers the frames ``wanted``."""
    if wanted is None:
        return new, frames
    step = float(frames[1] - frames[0]) if len(frames) > 1 else 1.0
    seconds = float(new.times[1] - new.times[0]) if len(frames) > 1 else 1.0 / 24.0
    before = max(0, math.ceil((float(frames[0]) - wanted[0]) / step - 1e-3))
    after = max(0, math.ceil((wanted[1] - float(frames[-1])) / step - 1e-3))
    if not before and not after:
        return new, frames
    held = np.clip(np.arange(-before, len(frames) + after), 0, len(frames) - 1)
    longer = replace(
        new,
        times=_continued(new.times, before, after, seconds),
        rotations=new.rotations[held],
        locations=new.locations[held],
        placement=None if new.placement is None else new.placement[held],
        turning=None if new.turning is None else new.turning[held],
        curves={name: values[held] for name, values in new.curves.items()},
        props={name: PropTrack(p.rotations[held], p.translations[held]) for name, p in new.props.items()},
        scales={bone: values[held] for bone, values in new.scales.items()},
    )
    if new.time_code is not None:
        longer = longer.with_time_code(new.time_code.shifted(-before * seconds))
    return longer, _continued(frames, before, after, step)


def _continued(axis: Array, before: int, after: int, step: float) -> Array:
    return np.concatenate([axis[0] - step * np.arange(before, 0, -1), axis, axis[-1] + step * np.arange(1, after + 1)])


def _curves(existing: Existing) -> dict[tuple[str, int], bpy.types.FCurve]:
    if not existing.action:
        return {}
    action = bpy.data.actions.get(existing.action)
    if action is None:
        raise RigError(f'The action "{existing.action}", which this one was laid over, is not there any more; retarget the take anew.')
    slots = [s for s in compat.slots(action) if s is None or s.name_display == existing.slot] or list(compat.slots(action)[:1])
    return {(c.data_path, c.array_index): c for slot in slots[:1] for c in compat.all_curves(action, slot) if curves.is_playing(c)}


def _evaluated(found: Mapping[tuple[str, int], bpy.types.FCurve], path: str, still: Array, frames: Array) -> Array:
    """(F, n): the property at the frames; a component without a curve keeps its own value."""
    out = np.empty((len(frames), len(still)), order="F")
    for i, value in enumerate(still):
        curve = found.get((path, i))
        out[:, i] = value if curve is None else curves.evaluate(curve, frames)
    return out
