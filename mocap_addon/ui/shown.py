# SPDX-License-Identifier: GPL-3.0-or-later
"""What a retarget would write at one scene frame, as arrays: the take's sample on whatever gets the keys, in the place where root motion
puts it, mixed with the motion there is where a mask asks for that."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from dataclasses import replace

import bpy
import numpy as np
from numpy.typing import NDArray

from .. import retarget
from ..blender import control_rig, existing, scenes
from ..blender.existing import Existing
from ..blender.job import JobOptions
from ..motion import quat, timeline
from ..motion.errors import MocapError
from ..motion.take import Take
from ..retarget.adjust import Adjustments
from ..retarget.mask import blended, part_of
from ..retarget.motion import PoseMotion
from ..retarget.root_motion import RootMotion
from ..rig.table import CorrectionTable
from . import kept_pose, settings
from .fitting import Fitting

Array = NDArray[np.float64]

_AROUND = 0.25
"""Seconds before and after: the pole of a straight knee is found from the frames around."""

_KEPT = 4
_ways: OrderedDict[tuple[object, ...], tuple[Fitting, PoseMotion]] = OrderedDict()
_olds: OrderedDict[tuple[object, ...], PoseMotion] = OrderedDict()


def motion_at(
    scene: bpy.types.Scene, obj: bpy.types.Object, found: Fitting, table: CorrectionTable, job: JobOptions, body: Adjustments, frame: float
) -> PoseMotion:
    """One sample of what Retarget would write at a scene frame, for the bones that get keys.

    Raises
    ------
    MocapError
        The take has no frames, a bone or a root bone is missing.
    """
    table, seconds = found.fitted(table), settings.seconds_at(scene, frame)
    plan = found.puppet.plan
    around = _AROUND if plan is not None and plan.inverse else 0.0
    part, at = sample(found.take, seconds, around, float(scenes.scene_rate(scene)))
    motion = retarget.retarget(part, table, found.skeleton, found.options(job, body))
    motion = _in_its_place(motion, scene, found, table, job, body)
    motion = found.puppet.keys(motion)
    motion = picked(control_rig.switched(obj, motion)[0], at)
    return _masked(scene, obj, motion, found, job, frame) if job.mask else motion


def sample(take: Take, seconds: float, around: float = 0.0, rate: float = 24.0) -> tuple[Take, int]:
    """The take at one moment after its start, held before and after, with samples ``around`` it; and which of them is the moment."""
    if take.frames == 0:
        raise MocapError(f'The take "{take.name}" has no frames; there is nothing to show.')
    first, last = float(take.times[0]), float(take.times[-1])
    at = min(max(first + seconds, first), last)
    before, after = (int(min(around, room) * rate) for room in (at - first, last - at))
    times = at + np.arange(-before, after + 1) / rate
    start = max(int(np.searchsorted(take.times, times[0], side="right")) - 1, 0)
    stop = min(int(np.searchsorted(take.times, times[-1], side="right")) + 1, take.frames)
    return take.block(start, max(stop, start + 1)).sampled(times), before


def picked(motion: PoseMotion, k: int) -> PoseMotion:
    """One sample of a motion."""
    one = slice(k, k + 1)
    return replace(
        motion,
        times=motion.times[one],
        rotations=motion.rotations[one],
        locations=motion.locations[one],
        placement=None if motion.placement is None else motion.placement[one],
        turning=None if motion.turning is None else motion.turning[one],
        curves={name: values[one] for name, values in motion.curves.items()},
        scales={bone: values[one] for bone, values in motion.scales.items()},
    )


def forget_all() -> None:
    """Let go of everything."""
    _ways.clear()
    _olds.clear()


# --- root motion ------------------------------------------------------------------------------------------------------------------------


def _in_its_place(
    motion: PoseMotion, scene: bpy.types.Scene, found: Fitting, table: CorrectionTable, job: JobOptions, body: Adjustments
) -> PoseMotion:
    """The hips where root motion puts them. Who carries them does not show; where the take starts, on which height, and a way that is
    left out do, and those are rules about the whole take."""
    root = job.root
    destination = "in-place" if root.destination == "in-place" else "hips"
    wanted = replace(root, destination=destination)
    if wanted.plain:
        return motion
    whole = _way(scene, found, table, job, body, wanted)
    i0, i1, t = timeline.bracket(whole.times, motion.times)
    rotations, locations = motion.rotations.copy(order="K"), motion.locations.copy(order="K")
    for k, bone in enumerate(motion.bones):
        if bone in whole.bones and bone in _carried(found):
            own = whole.rotations[:, whole.bones.index(bone)]
            rotations[:, k] = quat.slerp(own[i0], own[i1], t)
    moving = [*motion.moving, *(bone for bone in whole.moving if bone not in motion.moving and bone in _carried(found))]
    out = np.empty((len(motion.times), len(moving), 3))
    for m, bone in enumerate(moving):
        own = locations[:, m] if m < len(motion.moving) else None
        out[:, m] = _linear(whole.locations[:, whole.moving.index(bone)], i0, i1, t) if bone in whole.moving else own
    placement = motion.placement if whole.placement is None else _linear(whole.placement, i0, i1, t)
    return replace(motion, rotations=rotations, moving=tuple(moving), locations=out, placement=placement)


def _carried(found: Fitting) -> set[int]:
    hips = found.bodies.target.pose.one("hips")
    return set() if hips is None else {hips, *found.skeleton.ancestors(hips)}


def _way(
    scene: bpy.types.Scene, found: Fitting, table: CorrectionTable, job: JobOptions, body: Adjustments, root: RootMotion
) -> PoseMotion:
    """The hips over the whole take; with the legs where the ground is looked for."""
    legs = ("Leg", "Foot", "Toes") if root.height == "ground" else ()
    rows = tuple(row for row in table.rows if row.role == "hips" or row.role.endswith(legs)) if legs else ()
    rows = rows or tuple(row for row in table.rows if row.role == "hips")
    rate = scenes.scene_rate(scene) if job.rate == "scene" else None if job.rate == "source" else job.rate
    key = (id(found), rate, rows, job.travel, body, root)
    known = _ways.get(key)
    if known is None or known[0] is not found:
        take = found.take if rate is None else found.take.resampled(rate)
        options = found.options(job, body, root)
        known = (found, retarget.retarget(take, replace(table, rows=rows), found.skeleton, options))
        _remember(_ways, key, known)
    return known[1]


def _linear(values: Array, i0: NDArray[np.int64], i1: NDArray[np.int64], t: Array) -> Array:
    return values[i0] * (1.0 - t)[:, None] + values[i1] * t[:, None]


# --- masks ------------------------------------------------------------------------------------------------------------------------------


def _masked(scene: bpy.types.Scene, obj: bpy.types.Object, motion: PoseMotion, found: Fitting, job: JobOptions, frame: float) -> PoseMotion:
    """Mixed with the motion or pose that the character has of its own, as far as the mask says at this frame."""
    roles = found.bodies.target.pose.roles if found.puppet.plan is None else found.puppet.plan.roles
    start = scene.frame_start if job.frame_start is None else job.frame_start
    mask = job.mask.bounded(np.array([start, start + found.take.duration * float(scenes.scene_rate(scene))]))
    at = np.array([frame])
    mixed = blended(_own(obj, motion, found, frame), motion, found.target.skeleton, roles, mask, at)
    parts = mask.parts if float(mask.weights(at)[0]) > 0.0 else frozenset[str]()
    return _only(mixed, [j for j in (*mixed.bones, *mixed.moving) if part_of(found.target.skeleton, roles, j) in parts], "hips" in parts)


def _only(motion: PoseMotion, joints: Collection[int], carried: bool) -> PoseMotion:
    """The motion of some bones; the others keep what they have."""
    bones = [k for k, j in enumerate(motion.bones) if j in joints]
    moving = [m for m, j in enumerate(motion.moving) if j in joints]
    return replace(
        motion,
        bones=tuple(motion.bones[k] for k in bones),
        rotations=motion.rotations[:, bones],
        moving=tuple(motion.moving[m] for m in moving),
        locations=motion.locations[:, moving],
        scales={j: values for j, values in motion.scales.items() if j in joints},
        placement=motion.placement if carried else None,
        turning=motion.turning if carried else None,
    )


def _own(obj: bpy.types.Object, like: PoseMotion, found: Fitting, frame: float) -> PoseMotion:
    """What the character has of its own at a frame: its action, and the pose kept aside where that moves nothing."""
    now = existing.now(obj, pose=False)
    text = obj.mocap.kept_pose or kept_pose.kept(obj, frame)
    carried = like.placement is not None, like.turning is not None
    key = (obj.session_uid, id(found.target), now.action, now.slot, hash(text), like.bones, like.moving, carried, frame)
    if key not in _olds:
        own = Existing(now.action, now.slot, kept_pose.posed(obj, text))
        _remember(_olds, key, existing.motion(own, obj, found.target, like, np.array([frame])))
    return _olds[key]


def _remember(store: OrderedDict, key: tuple[object, ...], value: object) -> None:
    store[key] = value
    while len(store) > _KEPT:
        store.popitem(last=False)
