# SPDX-License-Identifier: GPL-3.0-or-later
"""Making an action again after its source, table or settings changed, without losing what was done by hand since.

The action stays the same data-block with the same slot, so NLA strips and users keep pointing at it; our curves get new keys in place,
and whatever else lies in it stays. The hand edits live on as a layer (:mod:`mocap_addon.retarget.edits`) that is folded into the keys. NLA
tracks lie *below* the active action, so for a layer in one the bake would have to be pushed down into a strip: that rearranges what a
person set up. Folded in, the layer is the difference between the keys and the stored bake, needs no NLA, and can still be switched
off, weakened or cleared. A curve whose bake has not changed is left untouched, its hand-made handles and thinned keys included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import bpy
import numpy as np

from .. import formats
from ..motion import quat
from ..motion.errors import FileError, MocapError, TargetError
from ..motion.take import Take
from ..retarget.edits import Edits
from ..rig import loads
from ..rig.table import CorrectionTable
from . import actions, baseline, feet, feet_recipe, hand_edits, job
from .armature import check
from .baseline import Baseline
from .channels import OBJECT_GROUP, Channels, check_channels, curve_channels, in_mode, pose_channels, rotation_channels, to_rotations
from .existing import Existing
from .job import JobOptions
from .leftovers import put_back
from .recipes import place_of
from .scenes import scene_rate
from .takes import read_takes
from .update_source import Reader, Remembering, take_again
from .update_write import Plan, UpdateResult, writing


@dataclass(frozen=True)
class EditSummary:
    """Hand edits of an action: the bones, the other curves, what was deleted, the number of frames touched, and how much of it shows."""

    bones: tuple[str, ...]
    curves: tuple[str, ...]
    deleted: tuple[str, ...]
    frames: int
    influence: float


def update_action(
    obj: bpy.types.Object,
    action: bpy.types.Action,
    *,
    table: CorrectionTable | None = None,
    options: JobOptions | None = None,
    take: Take | None = None,
    read: Reader | None = None,
) -> UpdateResult:
    """Make an action again by its recipe, in place, and put the hand edits back on.

    Parameters
    ----------
    obj : armature object
    action : Action
        One that :func:`.job.retarget_onto` made.
    table : CorrectionTable, optional
        Instead of the recipe's.
    options : JobOptions, optional
        Instead of the recipe's. ``name`` is not used; ``frame_start`` None: the action stays where it lies.
    take : Take, optional
        Instead of reading the source file again.
    read : callable, optional
        Reads a file, for callers that remember what they have read: ``(path, options) -> takes``.

    An action whose feet were planted: the one that they were planted in is made again, and they are planted in that anew.

    Raises
    ------
    MocapError
        One plain sentence; nothing has been changed then.
    """
    planted = action if feet_recipe.feet_of(action) is not None else None
    made = action if planted is None else feet_recipe.source_of(planted)
    with writing(obj, [made]) as write:
        plan = _prepare(obj, made, table, options, take, read or read_takes)
        result = write(plan)
        if planted is None:
            return result
        baked = feet.rebake_feet(obj, action=planted)
        return replace(result, action=baked.action, rewritten=result.rewritten + baked.curves, notes=(*result.notes, *baked.notes))


def update_all(
    obj: bpy.types.Object,
    *,
    table: CorrectionTable | None = None,
    options: JobOptions | None = None,
    read: Reader | None = None,
    progress: Callable[[float], None] | None = None,
) -> list[UpdateResult]:
    """The same for every action of a character (:func:`actions_of`); all of them or none.

    ``options`` count for every action; None: each keeps its own. ``progress`` is called with 0..1.

    Raises
    ------
    MocapError
        Naming the action; nothing has been changed then.
    """
    found = actions_of(obj)
    if not found:
        raise MocapError(f'"{obj.name}" has no action that was made here; retarget a take onto it first.')
    remembered = Remembering(read or read_takes)
    done: list[UpdateResult] = []
    with writing(obj, found) as write:
        for k, action in enumerate(found):
            try:
                done.append(write(_prepare(obj, action, table, options, None, remembered)))
            except MocapError as error:
                raise MocapError(f'The action "{action.name}" cannot be made again, so none was: {error}') from error
            if progress is not None:
                progress((k + 1) / len(found))
        for action in [a for a in bpy.data.actions if (feet_recipe.feet_of(a) or {}).get("source") in {f.name for f in found}]:
            feet.rebake_feet(obj, action=action)
    return done


def actions_of(obj: bpy.types.Object) -> list[bpy.types.Action]:
    """The actions made here that belong to a character: in use by it, in its NLA, or made for an object of its name.

    Those whose feet were planted are not among them, but those that they were planted in are.
    """
    animation = obj.animation_data
    used: set[bpy.types.Action] = set()
    if animation is not None:
        used = {strip.action for track in animation.nla_tracks for strip in track.strips if strip.action}
        used |= {animation.action} if animation.action else set()
    recipes = [(action, actions.recipe_of(action)) for action in bpy.data.actions if action.library is None]
    made = {action: recipe for action, recipe in recipes if recipe and feet_recipe.FEET not in recipe}
    return [action for action, recipe in made.items() if action in used or recipe.get("character") == obj.name]


def source_changed(action: bpy.types.Action) -> bool | None:
    """Whether the source file is another one than at the last bake; None when it is gone or was no file (a rig in the scene)."""
    recipe = actions.recipe_of(action) or {}
    path = "" if recipe.get("rig") else str(recipe.get("source") or "")
    try:
        return formats.content_hash(path) != recipe.get("source_hash") if path else None
    except FileError:
        return None


def summary(obj: bpy.types.Object, action: bpy.types.Action) -> EditSummary | None:
    """What was done by hand in an action since it was first baked; None when it is not one of ours."""
    old = baseline.load(action)
    if old is None:
        return None
    edits = _layer(obj, action, old, ())[0]
    touched = np.zeros(len(edits.times), dtype=bool)
    for q in edits.rotations.values():
        touched |= quat.angle(q, quat.IDENTITY) > 0.0
    for v in edits.locations.values():
        touched |= np.any(v != 0.0, axis=1)
    return EditSummary(edits.bones, tuple(edits.values), tuple(sorted(edits.deleted)), int(touched.sum()), edits.influence)


def set_edit_influence(obj: bpy.types.Object, action: bpy.types.Action, influence: float) -> None:
    """Show the layer of hand edits at ``influence`` 0..1: at 0 the action is as baked, at 1 as edited. Nothing is lost either way."""
    _relayer(obj, action, lambda edits: replace(edits, influence=min(max(float(influence), 0.0), 1.0)))


def clear_edits(obj: bpy.types.Object, action: bpy.types.Action) -> None:
    """Take all hand edits away, deleted curves included: what is left is the last bake."""
    _relayer(obj, action, lambda edits: Edits(edits.times))


# --- preparing: nothing is changed ------------------------------------------------------------------------------------------------------


def _prepare(
    obj: bpy.types.Object,
    action: bpy.types.Action,
    table: CorrectionTable | None,
    options: JobOptions | None,
    take: Take | None,
    read: Reader,
) -> Plan:
    recipe, old = _recipe_and_bake(action)
    check(obj)
    options = job.options_of(recipe) if options is None else options
    take = take_again(recipe, read) if take is None else take
    if table is None and recipe.get("table"):
        table = loads(str(recipe["table"]))
    carried, recipe = _carried(obj, take, table, options, recipe, action)
    started = time.perf_counter()
    scene = bpy.context.scene
    frames = actions.key_frames(carried.motion.times, carried.frame_start, scene_rate(scene), None)
    fresh = [*pose_channels(carried.target, carried.motion), *curve_channels(carried.motion)]
    check_channels(fresh, carried.motion)
    edits, offset, factor = _layer(obj, action, old, fresh)
    rest = _with_rest(old, fresh)
    rest += _carriers_at_rest(action, carried, old, {channel.path for channel in rest})
    new = Baseline(frames, tuple(rest), scene_rate(scene), offset, factor)
    if np.any(np.diff(new.key_frames) <= 0.0):
        raise MocapError("The samples lie too close together for Blender's frame numbers; resample the take to the scene's rate.")
    waiting = [bone for bone in edits.bones if not any(c.layer == bone and c.kind in ("rotation", "location", "scale") for c in fresh)]
    notes = [f'The hand edits of "{bone}" wait until the bone is in the table again.' for bone in waiting]
    timing = {**carried.timing, "edits": time.perf_counter() - started}
    notes = (*carried.notes, *notes)
    return Plan(obj, action, old, new, edits, True, carried.motion, carried.table, recipe, notes, timing, carried.extras)


def _carried(
    obj: bpy.types.Object, take: Take, table: CorrectionTable | None, options: JobOptions, recipe: dict[str, Any], action: bpy.types.Action
) -> tuple[job.Carried, dict[str, object]]:
    """The take carried anew to where the action lies, over what it was laid over; and its new recipe."""
    stays = options.frame_start is None and recipe.get("frame_start") is not None
    stored = recipe.get("under")
    under = Existing(stored["action"], stored["slot"], stored["pose"]) if isinstance(stored, dict) else Existing()
    placed = replace(options, frame_start=float(recipe["frame_start"])) if stays else options
    carried = job.carry(obj, take, table=table, options=placed, under=under, action=action)
    new = dict(carried.recipe)
    if stays:
        new["options"] = {**carried.recipe["options"], "frame_start": None}
    return carried, new


def _recipe_and_bake(action: bpy.types.Action) -> tuple[dict[str, object], Baseline]:
    recipe, old = actions.recipe_of(action), baseline.load(action)
    if action.library is not None:
        raise TargetError(f'The action "{action.name}" is linked from another file; choose ID Data > Make Local first.')
    if recipe is None:
        raise MocapError(f'The action "{action.name}" was not made here, so it cannot be made again; retarget its take anew.')
    if old is None:
        raise MocapError(
            f'The action "{action.name}" does not hold what was baked, so hand edits cannot be told from it; retarget its take anew.'
        )
    return recipe, old


def _layer(obj: bpy.types.Object, action: bpy.types.Action, old: Baseline, fresh: Iterable[Channels]) -> tuple[Edits, float, float]:
    """The layer with all hand edits up to now in it, and where the keys were moved to."""
    curves = hand_edits.curves_of(action, hand_edits.slot_of(action, old))
    found = hand_edits.found(curves, old, _modes(obj), tuple(fresh))
    return hand_edits.load(action, old).absorbing(found.edits, found.known), found.offset, found.factor


def _modes(obj: bpy.types.Object) -> dict[str, str]:
    return {OBJECT_GROUP: obj.rotation_mode, **{bone.name: bone.rotation_mode for bone in obj.pose.bones}}


def _with_rest(old: Baseline, fresh: Sequence[Channels]) -> list[Channels]:
    """The fresh channels, and those of the bake that only put back what another action had moved."""
    paths = {channel.path for channel in fresh}
    return [*fresh, *(channel for channel in old.channels if channel.kind == "rest" and channel.path not in paths)]


def _carriers_at_rest(action: bpy.types.Action, carried: job.Carried, old: Baseline, written: set[str]) -> list[Channels]:
    """Rest keys for what carried the hips in the bake and does not any more: bones above them, the object."""
    hips, skeleton = carried.target_roles.one("hips"), carried.target.skeleton
    above = {OBJECT_GROUP, *(skeleton.names[j] for j in (skeleton.ancestors(hips) if hips is not None else ()))}
    moved = [channel.path for channel in old.channels if channel.group in above]
    return list(put_back(carried.target, carried.motion, moved, written, place_of(action), everything=False))


def _relayer(obj: bpy.types.Object, action: bpy.types.Action, change: Callable[[Edits], Edits]) -> None:
    _, old = _recipe_and_bake(action)
    check(obj)
    edits, offset, factor = _layer(obj, action, old, ())
    new = replace(old, channels=tuple(_in_present_mode(channel, _modes(obj)) for channel in old.channels), offset=offset, factor=factor)
    with writing(obj, [action]) as write:
        write(Plan(obj, action, old, new, change(edits), same_layer=False))


def _in_present_mode(channel: Channels, modes: dict[str, str]) -> Channels:
    mode = modes.get(channel.group, channel.mode)
    if channel.kind != "rotation" or mode == channel.mode:
        return channel
    prop, values = in_mode(to_rotations(channel.values, channel.mode), mode)
    return rotation_channels(channel.group, prop, values, mode)
