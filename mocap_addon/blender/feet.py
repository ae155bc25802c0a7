# SPDX-License-Identifier: GPL-3.0-or-later
"""Planting the feet of a character's action on the scene: a copy of the action in which hips and legs alone are rewritten.

The action from before stays as it is. The copy remembers it, and how it was made, so that it can be made again when the scene has moved or
locks were edited: then hips and legs come from the action before once more, and whatever else was done to the copy stays.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np
from numpy.typing import NDArray

from ..feet.body import Feet
from ..feet.ground import Ground
from ..feet.plan import plan_feet
from ..feet.result import FeetResult, Gates
from ..motion import quat
from ..motion.errors import MocapError
from ..retarget.motion import PoseMotion
from . import actions, compat, feet_actions, feet_gates, feet_keys, feet_reading, playing
from .actions import Rollback
from .armature import check
from .channels import check_channels, pose_channels
from .control_rig import CONTROLS, Controls
from .feet_motion import LegMotion
from .feet_recipe import FeetOptions, feet_of, opened, options_of
from .job import JobResult
from .playing import Playing
from .recipes import recipe_of

Array = NDArray[np.float64]

_STILL = 1e-6
"""Metres and radians: less is no change."""


@dataclass(frozen=True, eq=False)
class FeetBake:
    """What came of it.

    Parameters
    ----------
    action : Action
        With its feet planted, now the object's.
    before : Action
        The one it was made from.
    frames : (F,) array
        Scene frames of the motion; the result's arrays have a row for each.
    feet : Feet
        The character's, by joints of the motion.
    result : FeetResult
    motion : PoseMotion
        What was rewritten, of the character's bones.
    body : PoseMotion or None
        Where controls drive the character, the whole motion of the body behind them.
    curves : int
        How many were rewritten.
    notes : tuple of str
    timing : dict
        Seconds: ``read``, ``ground``, ``plan`` (rays included), ``write``.
    """

    action: bpy.types.Action
    before: bpy.types.Action
    frames: Array
    feet: Feet
    result: FeetResult
    motion: PoseMotion
    body: PoseMotion | None
    curves: int
    notes: tuple[str, ...]
    timing: dict[str, float]

    @property
    def report(self) -> Mapping[str, object]:
        """For JSON: metrics before and after, contacts."""
        return self.result.report

    @property
    def footprints(self) -> list[dict[str, Any]]:
        """For JSON: where feet stand, see :func:`prints_of`."""
        return prints_of(self.frames, self.feet, self.result)


def bake_feet(
    obj: bpy.types.Object,
    options: FeetOptions | None = None,
    *,
    ground: Ground | None = None,
    gates: Gates | None = None,
    name: str | None = None,
) -> FeetBake:
    """Plant the feet of the action that a character has.

    Parameters
    ----------
    obj : armature object
        Where the feet of its action were baked before, they are baked anew from the action before that, into the same action.
    options : FeetOptions, optional
    ground : Ground, optional
        Instead of what the options choose; it cannot be remembered with the action.
    gates : Gates, optional
        Instead of what the action's curves say. Times count from the action's first frame.
    name : str, optional
        Of the new action; by default the old one's with "feet".

    Raises
    ------
    MocapError
        One plain sentence; nothing has been changed then.
    """
    options = options or FeetOptions()
    action = feet_actions.present(obj)
    into = action if feet_of(action) is not None else None
    return _bake(obj, options, into, ground, gates, name)


def rebake_feet(
    obj: bpy.types.Object, options: FeetOptions | None = None, *, action: bpy.types.Action | None = None, ground: Ground | None = None
) -> FeetBake:
    """Bake the feet of an action again, by default the character's, as they were baked: for a scene that has moved, or edited locks.

    Raises
    ------
    MocapError
        Its feet were not baked here, or the action from before is gone.
    """
    check(obj)
    action = action or feet_actions.present(obj)
    return _bake(obj, options or options_of(action), action, ground, None, None)


def check_feet(obj: bpy.types.Object, options: FeetOptions | None = None, *, ground: Ground | None = None) -> FeetBake:
    """Measure feet against the ground without baking: the character's action as it is. Nothing is changed; ``before`` is the action."""
    options = options or FeetOptions()
    action = feet_actions.present(obj)
    options = replace(options, settings=replace(options.settings, mode="off"))
    chosen = playing.by_itself(obj, action, compat.assigned_slot(obj.animation_data))
    legs, result, notes, timing = _planned(obj, chosen, chosen, options, None, ground, None)
    return FeetBake(action, action, legs.frames, legs.feet, result, legs.motion(result), None, 0, notes, timing)


def prints_of(frames: Array, feet: Feet, result: FeetResult) -> list[dict[str, Any]]:
    """Footprints as plain data: ``side``, ``start`` and ``end`` (scene frames), ``position`` (world, metres, under the ball), ``normal``,
    ``ahead`` (unit, where the foot points), ``drift`` (metres), ``reached``."""
    out: list[dict[str, Any]] = []
    turns = np.array([one.rotation for one in result.footprints]).reshape(-1, 4)
    forward = np.array([feet.legs[one.side == "right"].forward for one in result.footprints]).reshape(-1, 3)
    for one, ahead in zip(result.footprints, np.round(quat.rotate(turns, forward), 5).tolist(), strict=True):
        out.append(
            {
                "side": one.side,
                "start": float(frames[one.start]),
                "end": float(frames[one.end - 1]),
                "position": [round(float(x), 5) for x in one.position],
                "normal": [round(float(x), 5) for x in one.normal],
                "ahead": ahead,
                "drift": round(float(one.drift), 6),
                "reached": bool(one.reached),
            }
        )
    return out


def onto_job(result: JobResult, bake: FeetBake) -> JobResult:
    """What a retarget gave, with the feet planted: for exports.

    Raises
    ------
    MocapError
        The action has other frames than the motion.
    """
    if len(bake.motion.times) != len(result.motion.times):
        raise MocapError("The action has other frames than its motion; plant its feet in Blender and export it from there.")
    motion = _over(result.motion, bake.motion)
    if bake.body is not None:
        meant: PoseMotion | None = replace(bake.body, curves=result.motion.curves, placement=result.motion.placement)
    else:
        meant = None if result.meant is None else _over(result.meant, bake.motion)
    return replace(result, action=bake.action, motion=motion, meant=meant, notes=tuple(dict.fromkeys((*result.notes, *bake.notes))))


def _over(motion: PoseMotion, new: PoseMotion) -> PoseMotion:
    """A motion with that of some bones in place of its own."""
    bones = tuple(dict.fromkeys((*motion.bones, *new.bones)))
    moving = tuple(dict.fromkeys((*motion.moving, *new.moving)))
    rotations = np.empty((len(motion.times), len(bones), 4), order="F")
    locations = np.empty((len(motion.times), len(moving), 3), order="F")
    for out, joints, key, columns in ((rotations, bones, "bones", "rotations"), (locations, moving, "moving", "locations")):
        for one in (motion, new):
            for k, joint in enumerate(getattr(one, key)):
                out[:, joints.index(joint)] = getattr(one, columns)[:, k]
    return replace(
        motion,
        bones=bones,
        rotations=rotations,
        moving=moving,
        locations=locations,
        held=motion.held - set(new.bones),
        placement=motion.placement if new.placement is None else new.placement,
    )


def _bake(
    obj: bpy.types.Object, options: FeetOptions, into: bpy.types.Action | None, ground: Ground | None, gates: Gates | None, name: str | None
) -> FeetBake:
    slot = feet_actions.slot_of(obj, into)
    baked = feet_of(into) or {}
    source, source_slot = feet_actions.source_and_slot(into, baked, obj, slot)
    chosen = playing.by_itself(obj, source, source_slot)
    gated = chosen if into is None else playing.by_itself(obj, into, slot)
    legs, result, notes, timing = _planned(obj, chosen, gated, options, baked.get("locks"), ground, gates)
    started = time.perf_counter()
    motion = legs.motion(result)
    channels = list(pose_channels(legs.target, motion))
    check_channels(channels, motion)
    span = None if options.frame_range is None else _span(legs, result, options.frame_range)
    keys = feet_gates.keys_of(result, legs.frames)
    paths = {channel.path for channel in channels}
    stored = {
        "source": source.name,
        "slot": playing.slot_name(source_slot),
        "options": options.as_dict(),
        "locks": {n: k for n, k in keys.items() if n in feet_gates.FOOT_LOCK},
        "paths": sorted(paths),
        "report": result.report,
        "footprints": prints_of(legs.frames, legs.feet, result),
        "frames": [float(legs.frames[0]), float(legs.frames[-1])],
    }
    with Rollback() as undo:
        action = (into or source).copy()
        undo.add(lambda: bpy.data.actions.remove(action))
        bag = compat.ensure_bag(action, feet_actions.same_slot(action, slot))
        if into is not None:
            feet_keys.copy_curves(bag, {(c.data_path, c.array_index): c for c in chosen.curves}, paths | set(baked.get("paths") or ()))
        written = feet_keys.rewrite(bag, legs.frames, channels, span)
        feet_gates.write_gates(bag, keys)
        feet_actions.remember(action, source, obj, stored, legs)
        feet_gates.add_properties(obj, undo)
        if into is None:
            action.name = name or f"{source.name} feet"
            actions.make_active(obj, action, feet_actions.same_slot(action, slot), undo)
            action.use_fake_user = False
            feet_actions.keep(obj, source, source_slot, options, undo)
    if into is not None:
        feet_actions.take_place(into, action)
    timing["write"] = time.perf_counter() - started
    return FeetBake(action, source, legs.frames, legs.feet, result, motion, legs.body(result), written, notes, timing)


def _planned(
    obj: bpy.types.Object,
    chosen: Playing,
    gated: Playing,
    options: FeetOptions,
    locks: Any,
    ground: Ground | None,
    gates: Gates | None,
) -> tuple[LegMotion, FeetResult, tuple[str, ...], dict[str, float]]:
    """Motion and plan: nothing is changed."""
    started = time.perf_counter()
    scene = bpy.context.scene
    legs = feet_reading.read(obj, chosen, controls=options.controls or _controls(chosen), measures=options.soles, scene=scene)
    if gates is None:
        gates = feet_gates.read_gates(gated.curves, legs.frames, locks)
        own = feet_gates.read_gates(chosen.curves, legs.frames)
        gates = replace(gates, contacts=own.contacts if gates.contacts is None else gates.contacts)
    if options.frame_range is not None:
        start, end = (float(np.interp(f, legs.frames, legs.take.times)) for f in options.frame_range)
        if not end > start:
            raise MocapError(
                f"The range {options.frame_range[0]:g} to {options.frame_range[1]:g} has no frames of the action in it; "
                f"it has frames {legs.frames[0]:g} to {legs.frames[-1]:g}."
            )
        gates = replace(gates, start=start, end=end)
    read = time.perf_counter()
    timing = {"read": read - started}
    if ground is not None:
        result, notes = plan_feet(legs.take, legs.feet, ground, options.settings, gates), ()
    else:
        with opened(options.ground, obj, scene, float(legs.frames[0])) as (found, notes):
            timing["ground"] = time.perf_counter() - read
            read = time.perf_counter()
            result = plan_feet(legs.take, legs.feet, found, options.settings, gates)
    timing["plan"] = time.perf_counter() - read
    return legs, result, tuple(dict.fromkeys((*notes, *legs.notes, *legs.feet.notes, *result.notes))), timing


def _controls(chosen: Playing) -> Controls:
    """Where an action of ours has its keys."""
    recipe = recipe_of(chosen.action) if chosen.action is not None else None
    stored = (recipe or {}).get("options")
    found = stored.get("controls") if isinstance(stored, dict) else None
    return next((identifier for identifier, _, _ in CONTROLS if identifier == found), "auto")


def _span(legs: LegMotion, result: FeetResult, asked: tuple[float, float]) -> tuple[float, float]:
    """First and last frame to rewrite: the range, and what is eased around it."""
    old = legs.take.local_rotations[:, list(result.joints)]
    changed = (quat.angle(old, result.local_rotations) > _STILL).any(axis=1) | (np.abs(result.hips_offset) > _STILL).any(axis=1)
    frames = legs.frames
    at = np.flatnonzero(changed)
    low = min(int(at[0]) - 1, int(np.searchsorted(frames, asked[0] - 1e-3))) if len(at) else int(np.searchsorted(frames, asked[0] - 1e-3))
    high = int(np.searchsorted(frames, asked[1] + 1e-3)) - 1
    high = max(int(at[-1]) + 1, high) if len(at) else high
    return float(frames[max(low, 0)]), float(frames[min(high, len(frames) - 1)])
