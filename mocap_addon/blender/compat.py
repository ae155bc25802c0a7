# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between Blender versions. The only module that reads ``bpy.app.version``.

=============  =======================  ============================================  =================================
step           4.2, 4.3                 4.4, 4.5                                      5.0 and later
=============  =======================  ============================================  =================================
who owns       the action               slot -> layer -> strip -> channel bag         the same
a new curve    ``action_group=``        no group argument; ``fcurve.group`` is set    ``group_name=``
assigning      ``ad.action``            ``ad.action`` and ``ad.action_slot``          the same
=============  =======================  ============================================  =================================

Below, a *bag* is whatever holds the f-curves of one data-block: the action itself up to 4.3, the slot's channel bag from 4.4 on.
Where there are no slots, a slot is None.
"""

from __future__ import annotations

from typing import Any

import bpy

SLOTTED: bool = bpy.app.version >= (4, 4, 0)
"""Actions have slots, and f-curves live in channel bags."""

_GROUP_BY_NAME: bool = bpy.app.version >= (5, 0, 0)

_CONTEXT_HOLDS_A_SCENE: bool = bpy.app.version < (4, 5, 0)

SLOT_NAME = "Slot"
"""The one name of every slot we make, so that actions can be exchanged on one character. Blender 5.3's BVH importer uses it too."""

Bag = Any
Slot = Any


def new_action(name: str, kind: str = "OBJECT") -> tuple[bpy.types.Action, Slot, Bag]:
    """A new action for an object with one slot and an empty bag.

    Parameters
    ----------
    name : str
        Blender makes it unique.
    kind : str
        What it moves: ``OBJECT``, or ``KEY`` for shape keys.

    Returns
    -------
    action, slot, bag
    """
    action = bpy.data.actions.new(name)
    if not SLOTTED:
        action.id_root = kind
        return action, None, action
    slot = action.slots.new(id_type=kind, name=SLOT_NAME)
    return action, slot, action.layers.new("Layer").strips.new(type="KEYFRAME").channelbag(slot, ensure=True)


def new_slot(action: bpy.types.Action, kind: str, name: str) -> Slot:
    """Another slot in an action; only where there are slots."""
    return action.slots.new(id_type=kind, name=name)


def slot_for(action: bpy.types.Action, kind: str, name: str) -> Slot:
    """The action's slot of a kind and name, or None."""
    found = [slot for slot in action.slots if slot.target_id_type == kind] if SLOTTED else []
    return next((slot for slot in found if slot.name_display == name), None)


def slots(action: bpy.types.Action) -> tuple[Slot, ...]:
    """The action's slots; ``(None,)`` where there is no such thing, so that ``for slot in slots(action)`` always covers everything."""
    return tuple(action.slots) if SLOTTED else (None,)


def bag_of(action: bpy.types.Action, slot: Slot) -> Bag | None:
    """The bag of ``slot``, or None when the slot has no curves yet."""
    if not SLOTTED:
        return action
    if slot is None:
        return None
    for layer in action.layers:
        for strip in layer.strips:
            bag = strip.channelbag(slot)
            if bag is not None:
                return bag
    return None


def ensure_bag(action: bpy.types.Action, slot: Slot) -> Bag:
    """The bag of ``slot``, made when there is none."""
    bag = bag_of(action, slot)
    if bag is not None:
        return bag
    layer = action.layers[0] if action.layers else action.layers.new("Layer")
    strip = layer.strips[0] if layer.strips else layer.strips.new(type="KEYFRAME")
    return strip.channelbag(slot, ensure=True)


def all_curves(action: bpy.types.Action, slot: Slot = None) -> list[bpy.types.FCurve]:
    """The f-curves of ``slot``; of every slot when it is None."""
    if not SLOTTED:
        return list(action.fcurves)
    # By the function that gives a bag: what is reached through a collection of bags carries the way along, which Blender copies for every
    # key that is read, and arrays of keys then take four times as long.
    wanted = tuple(action.slots) if slot is None else (slot,)
    bags = [strip.channelbag(one) for layer in action.layers for strip in layer.strips for one in wanted]
    return [curve for bag in bags if bag is not None for curve in bag.fcurves]


def moving_curves(animation: bpy.types.AnimData) -> list[bpy.types.FCurve]:
    """The f-curves of the assigned action that move its owner: those of the assigned slot, none where no slot is."""
    slot = assigned_slot(animation)
    if animation.action is None or (SLOTTED and slot is None):
        return []
    return all_curves(animation.action, slot)


def new_curve(bag: Bag, path: str, index: int, group: str) -> bpy.types.FCurve:
    """A new f-curve in the group called ``group``. Blender raises RuntimeError when the channel has one already."""
    if _GROUP_BY_NAME:
        return bag.fcurves.new(path, index=index, group_name=group)
    if not SLOTTED:
        return bag.fcurves.new(path, index=index, action_group=group)
    curve = bag.fcurves.new(path, index=index)
    curve.group = bag.groups.get(group) or bag.groups.new(group)
    return curve


def assigned_slot(animation: bpy.types.AnimData) -> Slot:
    """The slot in use, or None."""
    return animation.action_slot if SLOTTED else None


def assign(animation: bpy.types.AnimData, action: bpy.types.Action | None, slot: Slot = None) -> None:
    """Make ``action`` the active one, by ``slot``. A slotted action without its slot set moves nothing, so the slot is always set."""
    animation.action = action
    if SLOTTED and action is not None:
        animation.action_slot = slot


def settle_context() -> None:
    """Make ``bpy.context`` safe to set something through, as Blender's glTF importer and exporter do (``bpy.context.window.scene = ...``).

    Before 4.5, whoever reads ``bpy.context.tool_settings`` or ``bpy.context.layer_collection`` (Rigify does) makes the present scene the
    owner of ``bpy.context``. When that scene is gone, because another file was opened, the next value that is set through the context is
    noted in its freed memory, and Blender crashes then or later. Read where there is no scene, they leave no owner behind.
    """
    if _CONTEXT_HOLDS_A_SCENE:
        with bpy.context.temp_override(scene=None):
            _ = bpy.context.tool_settings
