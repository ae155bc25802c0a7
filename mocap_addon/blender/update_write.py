# SPDX-License-Identifier: GPL-3.0-or-later
"""An action made again, into the curves there are: all of it or nothing.

The action stays the same data-block. What goes wrong half-way puts keys and properties back as they were, from a copy that Blender makes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import bpy
import numpy as np

from ..motion import quat
from ..retarget import PoseMotion
from ..retarget.edits import Edits
from ..rig.table import CorrectionTable
from . import actions, baseline, companions, compat, extra_keys, hand_edits
from .baseline import Baseline
from .channels import Channels, in_mode, to_rotations
from .curves import CHOICE


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


@dataclass(frozen=True, eq=False)
class Plan:
    """What an action is to hold: the bake it has and the new one, the layer of hand edits; where it is made anew, what it is made of.

    ``same_layer``: the layer is the one that shows now.
    """

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


@contextmanager
def writing(obj: bpy.types.Object, touched: Sequence[bpy.types.Action]) -> Iterator[Callable[[Plan], UpdateResult]]:
    """Writes plans. When anything goes wrong in the block, the actions are put back; curves are removed only at its end."""
    kept: list[_Kept] = []
    gone: list[tuple[bpy.types.Action, compat.Slot, set[tuple[str, int]]]] = []

    def write(plan: Plan) -> UpdateResult:
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


def _rewrite(plan: Plan, slot: compat.Slot) -> tuple[int, set[tuple[str, int]]]:
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
    if channel.kind in ("location", "scale") and channel.layer in shown.locations:
        return replace(channel, values=channel.values + shown.locations[channel.layer])
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
    for names, width, dtype in ((_CHOICES, 1, CHOICE), (_NUMBERS, 1, np.float32), (_FLAGS, 1, bool), (_VECTORS, 2, np.float32)):
        values = np.empty(width * count, dtype=dtype)
        for name in names:
            source.keyframe_points.foreach_get(name, values)
            target.keyframe_points.foreach_set(name, values)
