# SPDX-License-Identifier: GPL-3.0-or-later
"""The actions of a bake of feet: which one is read, what the new one remembers, and what becomes of the one before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import bpy
import numpy as np

from .. import __version__
from ..motion.errors import MocapError, RigError, TargetError
from ..retarget.travel import WHOLE
from . import baseline, compat, hand_edits, playing
from .actions import Rollback
from .armature import check
from .feet_motion import LegMotion
from .feet_recipe import FEET, FeetOptions, source_of
from .recipes import recipe_of, store_recipe


def present(obj: bpy.types.Object) -> bpy.types.Action:
    """The action that a character has; RigError or TargetError where it has none that can be planted."""
    check(obj)
    animation = obj.animation_data
    if animation is None or animation.action is None:
        raise RigError(f'"{obj.name}" has no action; put a take onto it first, or choose one of its actions.')
    if animation.use_tweak_mode:
        raise TargetError(f'An NLA strip of "{obj.name}" is being edited; leave tweak mode (Tab in the NLA editor) first.')
    if compat.SLOTTED and compat.assigned_slot(animation) is None:
        raise RigError(f'The action "{animation.action.name}" has no slot for "{obj.name}"; choose one beside the action.')
    return animation.action


def slot_of(obj: bpy.types.Object, into: bpy.types.Action | None) -> compat.Slot:
    """The slot of the action that is the character's: the assigned one, or where the action is not assigned the one that suits it."""
    animation = obj.animation_data
    if into is None or (animation is not None and animation.action == into):
        return compat.assigned_slot(animation)
    suitable = playing.suitable_slots(obj, into)
    if not suitable:
        raise RigError(f'The action "{into.name}" moves no bone of "{obj.name}"; choose an action made for it.')
    return suitable[0]


def source_and_slot(
    into: bpy.types.Action | None, baked: Mapping[str, Any], obj: bpy.types.Object, slot: compat.Slot
) -> tuple[bpy.types.Action, compat.Slot]:
    """The action to read: the present one, or the one that its feet were baked from."""
    if into is None:
        return obj.animation_data.action, slot
    source = source_of(into)
    slots = [s for s in compat.slots(source) if s is None or playing.slot_name(s) == baked.get("slot")] or list(compat.slots(source))
    if not slots:
        raise MocapError(f'The action "{source.name}" has no slot any more; retarget the take anew.')
    return source, slots[0]


def same_slot(action: bpy.types.Action, slot: compat.Slot) -> compat.Slot:
    """The slot of a copy that stands for the one of the original."""
    return None if slot is None else next(s for s in compat.slots(action) if s.handle == slot.handle)


def remember(action: bpy.types.Action, source: bpy.types.Action, obj: bpy.types.Object, stored: dict[str, Any], legs: LegMotion) -> None:
    """Keep with the new action how it was made, as the entry ``feet`` of its recipe."""
    for name in (baseline.PROPERTY, hand_edits.PROPERTY):
        if name in action:
            del action[name]  # they tell edits by hand from the retarget's bake: that is the action's before
    recipe = recipe_of(source) or {"version": 1, "addon": __version__, "character": obj.name}
    if legs.carrier == WHOLE and "place" not in recipe:
        recipe = {**recipe, "place": {"location": legs.target.location.tolist(), "rotation": None}}
    store_recipe(action, {**recipe, FEET: stored})


def keep(obj: bpy.types.Object, source: bpy.types.Action, slot: compat.Slot, options: FeetOptions, undo: Rollback) -> None:
    """Hold the action from before: by a fake user, or on a muted track."""
    if options.keep == "track":
        animation = obj.animation_data
        track = animation.nla_tracks.new()
        undo.add(lambda: animation.nla_tracks.remove(track))
        track.name, track.mute = source.name, True
        start = int(np.floor(source.frame_range[0]))
        strip = track.strips.new(source.name, start, source)
        if compat.SLOTTED and slot is not None:
            strip.action_slot = slot
    elif source.library is None:
        before = source.use_fake_user
        undo.add(lambda: setattr(source, "use_fake_user", before))
        source.use_fake_user = True


def take_place(old: bpy.types.Action, new: bpy.types.Action) -> None:
    """Put an action in another's place, under its name, with everything that uses it."""
    name, fake = old.name, old.use_fake_user
    old.user_remap(new)
    bpy.data.actions.remove(old)
    new.name, new.use_fake_user = name, fake
