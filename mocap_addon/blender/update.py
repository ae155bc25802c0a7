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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import bpy
import numpy as np

from .. import formats
from ..formats import ReadOptions
from ..motion import quat
from ..motion.errors import FileError, MocapError, TargetError
from ..motion.take import Take
from ..retarget import PoseMotion
from ..retarget.edits import Edits
from ..rig import loads
from ..rig.table import CorrectionTable
from . import actions, baseline, companions, compat, extra_keys, feet, feet_recipe, hand_edits, job, sources
from .armature import check
from .baseline import Baseline
from .channels import OBJECT_GROUP, Channels, check_channels, curve_channels, in_mode, pose_channels, rotation_channels, to_rotations
from .existing import Existing
from .job import JobOptions
from .leftovers import put_back
from .recipes import place_of
from .scenes import scene_rate
from .takes import read_takes

Reader = Callable[[str, ReadOptions], Sequence[Take]]


@dataclass(frozen=True, eq=False)
class UpdateResult:
    """What came of an update.

    Parameters
    ----------
    action : Action
    motion : PoseMotion
        The fresh motion, without hand edits.
    table : CorrectionTable
    edited : tuple of str
        Bones whose hand edits were kept.
    rewritten : int
        Curves that got new keys; 0 when nothing has changed.
    notes : tuple of str
    timing : dict
        Seconds: ``table``, ``retarget``, ``edits``, ``write``.
    """

    action: bpy.types.Action
    motion: PoseMotion
    table: CorrectionTable
    edited: tuple[str, ...]
    rewritten: int
    notes: tuple[str, ...]
    timing: dict[str, float]


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
    with _writing(obj, [made]) as write:
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
    remembered = _Remembering(read or read_takes)
    done: list[UpdateResult] = []
    with _writing(obj, found) as write:
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


@dataclass(frozen=True, eq=False)
class _Plan:
    obj: bpy.types.Object
    action: bpy.types.Action
    old: Baseline
    new: Baseline
    edits: Edits
    same_layer: bool
    motion: PoseMotion | None = None
    table: CorrectionTable | None = None
    recipe: dict[str, object] | None = None
    notes: tuple[str, ...] = ()
    timing: dict[str, float] | None = None
    extras: extra_keys.Planned | None = None


def _prepare(
    obj: bpy.types.Object,
    action: bpy.types.Action,
    table: CorrectionTable | None,
    options: JobOptions | None,
    take: Take | None,
    read: Reader,
) -> _Plan:
    recipe, old = _recipe_and_bake(action)
    check(obj)
    options = job.options_of(recipe) if options is None else options
    take = _reload(recipe, read) if take is None else take
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
    waiting = [bone for bone in edits.bones if not any(c.group == bone and c.kind in ("rotation", "location") for c in fresh)]
    notes = [f'The hand edits of "{bone}" wait until the bone is in the table again.' for bone in waiting]
    timing = {**carried.timing, "edits": time.perf_counter() - started}
    notes = (*carried.notes, *notes)
    return _Plan(obj, action, old, new, edits, True, carried.motion, carried.table, recipe, notes, timing, carried.extras)


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


def _reload(recipe: dict[str, object], read: Reader) -> Take:
    rig = recipe.get("rig")
    if isinstance(rig, dict):
        return _reread(rig)
    path, name = str(recipe.get("source") or ""), str(recipe.get("take") or "")
    if not path:
        raise MocapError("The action was not made from a file, so its source cannot be read again; retarget it anew.")
    if not Path(path).is_file():
        folder = Path(path).parent
        raise FileError(f'The source is not in "{folder}" any more; put it back, or retarget the take anew from where it is.', path)
    takes = list(read(path, _read_options(recipe.get("read"))))
    named = [take for take in takes if take.name == name]
    if named or len(takes) == 1:
        return (named or takes)[0]
    there = ", ".join(f'"{take.name}"' for take in takes[:5]) or "none"
    raise FileError(f'There is no take "{name}" in the file any more; there are: {there}.', path)


def _reread(rig: dict[str, Any]) -> Take:
    """The same of a rig in the scene: its action, or what it plays; all of it, unless a range was asked for."""
    obj = bpy.data.objects.get(rig["object"])
    if obj is None:
        raise TargetError(f'The source "{rig["object"]}" is not in this file any more; retarget the take anew.')
    asked = rig.get("asked") or {}
    return sources.read_rig(
        obj,
        action=rig["action"] if asked.get("action", True) and rig["action"] else None,
        slot=rig["slot"] or None,
        frame_range=(rig["frame_start"], rig["frame_end"]) if asked.get("range") else None,
    )


def _read_options(stored: object) -> ReadOptions:
    found: dict[str, Any] = dict(stored) if isinstance(stored, dict) else {}
    if "rate" in found:
        found["rate"] = Fraction(found["rate"])
    return ReadOptions(**{name: value for name, value in found.items() if name in ReadOptions.__dataclass_fields__})


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
    with _writing(obj, [action]) as write:
        write(_Plan(obj, action, old, new, change(edits), same_layer=False))


def _in_present_mode(channel: Channels, modes: dict[str, str]) -> Channels:
    mode = modes.get(channel.group, channel.mode)
    if channel.kind != "rotation" or mode == channel.mode:
        return channel
    prop, values = in_mode(to_rotations(channel.values, channel.mode), mode)
    return rotation_channels(channel.group, prop, values, mode)


class _Remembering:
    """Reads every file once."""

    def __init__(self, read: Reader) -> None:
        self._read, self._found = read, dict[tuple[str, ReadOptions], Sequence[Take]]()

    def __call__(self, path: str, options: ReadOptions) -> Sequence[Take]:
        key = path, options
        if key not in self._found:
            self._found[key] = self._read(path, options)
        return self._found[key]


# --- writing: all of it or nothing ------------------------------------------------------------------------------------------------------


@contextmanager
def _writing(obj: bpy.types.Object, touched: Sequence[bpy.types.Action]) -> Iterator[Callable[[_Plan], UpdateResult]]:
    """Writes plans. When anything goes wrong in the block, the actions are put back; curves are removed only at its end."""
    kept: list[_Kept] = []
    gone: list[tuple[bpy.types.Action, compat.Slot, set[tuple[str, int]]]] = []

    def write(plan: _Plan) -> UpdateResult:
        kept.extend(_Kept(one) for one in (plan.action, *companions.actions_of(plan.action)))
        started = time.perf_counter()
        slot = hand_edits.slot_of(plan.action, plan.old)
        rewritten, unwanted = _rewrite(plan, slot)
        gone.append((plan.action, slot, unwanted))
        baseline.store(plan.action, plan.new)
        hand_edits.store(plan.action, plan.edits)
        if plan.recipe is not None:
            actions.store_recipe(plan.action, plan.recipe)
        if plan.motion is not None:
            actions.create_properties(obj, plan.motion, undo)
        beside: list[str] = []
        if plan.extras is not None:
            shown_now = obj.animation_data is not None and obj.animation_data.action == plan.action
            beside = extra_keys.write(plan.action, plan.new.key_frames, plan.extras, undo, assign=shown_now)
        timing = {**(plan.timing or {}), "write": time.perf_counter() - started}
        shown = plan.edits.bones if plan.edits.influence > 0.0 else ()
        return UpdateResult(
            plan.action, plan.motion, plan.table, shown, rewritten + len(unwanted), tuple(dict.fromkeys((*plan.notes, *beside))), timing
        )

    try:
        with actions.Rollback() as undo:
            undo.add(lambda: [k.restore() for k in reversed(kept)])
            yield write
        for action, slot, unwanted in gone:
            bag = compat.bag_of(action, slot)
            for curve in [c for c in bag.fcurves if (c.data_path, c.array_index) in unwanted] if unwanted else ():
                bag.fcurves.remove(curve)
    finally:
        for k in kept:
            k.forget()


def _rewrite(plan: _Plan, slot: compat.Slot) -> tuple[int, set[tuple[str, int]]]:
    """Keys of the new bake with the layer on it, into the curves there are; the number of curves written, and those not wanted any more."""
    bag = compat.ensure_bag(plan.action, slot)
    curves = hand_edits.curves_of(plan.action, slot)
    shown = plan.edits.shown().at(plan.new.seconds)
    before = {channel.path: channel for channel in plan.old.channels}
    still = np.array_equal(plan.old.key_frames, plan.new.key_frames) and np.array_equal(
        plan.old.frames.astype(np.float32), plan.new.frames.astype(np.float32)
    )
    out: list[Channels] = []
    for channel in plan.new.channels:
        old = before.get(channel.path)
        same = old is not None and old.mode == channel.mode and np.array_equal(old.values, channel.values.astype(np.float32))
        if hand_edits.token(channel) in plan.edits.deleted or (channel.kind == "rest" and same) or (same and still and plan.same_layer):
            continue
        out.append(_edited(channel, shown))
    actions.write_curves(bag, plan.new.key_frames, out, curves)
    wanted = {key for channel in plan.new.channels for key in channel.keys}
    baked = {key for channel in plan.old.channels for key in channel.keys}
    return sum(len(channel.keys) for channel in out), (baked - wanted) & curves.keys()


def _edited(channel: Channels, shown: Edits) -> Channels:
    """The channel with the layer on it."""
    if channel.kind == "rotation" and channel.group in shown.rotations:
        q = quat.mul(to_rotations(channel.values, channel.mode), shown.rotations[channel.group])
        return replace(channel, values=in_mode(q, channel.mode)[1])
    if channel.kind == "location" and channel.group in shown.locations:
        return replace(channel, values=channel.values + shown.locations[channel.group])
    if channel.kind == "value" and channel.path in shown.values:
        own = shown.values[channel.path]
        return replace(channel, values=np.where(np.isnan(own), channel.values[:, 0], own)[:, None])
    return channel


_VECTORS = ("co", "handle_left", "handle_right")
_FLAGS = ("select_control_point", "select_left_handle", "select_right_handle")
_CHOICES = ("interpolation", "easing", "type", "handle_left_type", "handle_right_type")
_NUMBERS = ("amplitude", "back", "period")
_OURS = (actions.RECIPE, baseline.PROPERTY, hand_edits.PROPERTY, companions.PROPERTY)


class _Kept:
    """An action as it was. The copy is Blender's own, so it costs next to nothing until it is needed."""

    def __init__(self, action: bpy.types.Action) -> None:
        self._action = action
        self._copy: bpy.types.Action | None = action.copy()

    def forget(self) -> None:
        """Drop the copy."""
        if self._copy is not None:
            bpy.data.actions.remove(self._copy)
            self._copy = None

    def restore(self) -> None:
        """Put keys and properties back; curves that were added since are removed."""
        assert self._copy is not None
        for slot, kept in zip(compat.slots(self._action), compat.slots(self._copy), strict=True):
            bag = compat.bag_of(self._action, slot)
            was = hand_edits.curves_of(self._copy, kept)
            for key, curve in hand_edits.curves_of(self._action, slot).items():
                if key in was:
                    _copy_keys(was[key], curve)
                else:
                    bag.fcurves.remove(curve)
        for name in _OURS:
            if name in self._copy:
                value = self._copy[name]
                self._action[name] = value if isinstance(value, str) else value.to_dict()
            elif name in self._action:
                del self._action[name]


def _copy_keys(source: bpy.types.FCurve, target: bpy.types.FCurve) -> None:
    count = len(source.keyframe_points)
    target.keyframe_points.clear()
    if not count:
        return
    target.keyframe_points.add(count)
    for names, width, dtype in ((_CHOICES, 1, np.int32), (_NUMBERS, 1, np.float32), (_FLAGS, 1, bool), (_VECTORS, 2, np.float32)):
        values = np.empty(width * count, dtype=dtype)
        for name in names:
            source.keyframe_points.foreach_get(name, values)
            target.keyframe_points.foreach_set(name, values)
