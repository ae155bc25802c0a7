# SPDX-License-Identifier: GPL-3.0-or-later
"""Curves that belong to an action but move other data-blocks than its armature: shape keys of the character's meshes, props.

From 4.4 on, shape keys get a slot of their own in the same action; before that, and for props, an action each. The main action holds a list
of its companions (a custom property), so that it can be played again as a whole and made again: whatever was changed by hand since in a
curve of a companion is told by its digest, and such a curve is left as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import bpy
import numpy as np
from numpy.typing import NDArray

from . import actions, compat
from .channels import Channels

PROPERTY = "mocap_companions"
"""The main action's custom property: what moves with it, as JSON text."""

Kind = Literal["KEY", "OBJECT"]
Owner = bpy.types.Key | bpy.types.Object


@dataclass(frozen=True, eq=False)
class Companion:
    """Curves for one owner.

    Parameters
    ----------
    kind : "KEY" or "OBJECT"
    name : str
        Which of its kind it is: the shape keys' name, or the prop's.
    owner : callable
        Gives the data-block, made where needed; with the rollback that takes it back.
    channels : sequence of Channels
    """

    kind: Kind
    name: str
    owner: Callable[[actions.Rollback], Owner]
    channels: Sequence[Channels]


def write(action: bpy.types.Action, frames: NDArray[Any], found: Sequence[Companion], undo: actions.Rollback, *, assign: bool) -> list[str]:
    """Write companions of an action, over those that it has from before; notes for a person."""
    before = {(one["kind"], one["name"]): one for one in listed(action)}
    records: list[dict[str, Any]] = []
    notes: list[str] = []
    for one in found:
        owner = one.owner(undo)
        old = before.pop((one.kind, one.name), None)
        place, slot = place_of(action, old) if old is not None else (None, None)
        if old is not None and place is not None and not _moves(owner, place, slot) and assign:
            old = place = None  # a person gave it another motion since: that stays, and this one is new
        digests: dict[str, str] = dict(old["curves"]) if old is not None and place is not None else {}
        if place is None:
            place, slot = _new_place(action, one, owner, undo)
        digests, edited = _write(place, slot, frames, one.channels, digests)
        if edited:
            notes.append(f'Curves of "{one.name}" that were changed by hand were left as they are: {", ".join(sorted(edited)[:5])}.')
        if assign:
            _assign(owner, place, slot, undo)
        elif place.users == 0:
            place.use_fake_user = True
        own = "" if place == action else place.name
        records.append({"kind": one.kind, "name": one.name, "owner": owner.name, "action": own, "slot": _handle(slot), "curves": digests})
    records += before.values()  # what the new bake does not have stays as it is
    if records:
        action[PROPERTY] = json.dumps(records, ensure_ascii=False)
    elif PROPERTY in action:
        del action[PROPERTY]
    return notes


def listed(action: bpy.types.Action | None) -> list[dict[str, Any]]:
    """What is written down about an action's companions."""
    text = action.get(PROPERTY) if action is not None else None
    try:
        found = json.loads(text) if isinstance(text, str) else []
    except ValueError:
        return []
    return [one for one in found if isinstance(one, dict) and {"kind", "name", "owner", "action", "slot", "curves"} <= one.keys()]


def assign_all(action: bpy.types.Action) -> None:
    """Let every companion's owner play it: the action is the one that shows now."""
    with actions.Rollback() as undo:
        for one in listed(action):
            owner = (bpy.data.shape_keys if one["kind"] == "KEY" else bpy.data.objects).get(one["owner"])
            place, slot = place_of(action, one)
            if owner is not None and place is not None:
                _assign(owner, place, slot, undo)


def is_companion(action: bpy.types.Action, owner: Owner) -> bool:
    """Whether an action that an owner plays was written here, with its main action or in it."""
    if any(one["owner"] == owner.name for one in listed(action)):
        return True
    return any(one["owner"] == owner.name and one["action"] == action.name for main in bpy.data.actions for one in listed(main))


def actions_of(action: bpy.types.Action) -> list[bpy.types.Action]:
    """The other actions that belong to an action."""
    return [found for one in listed(action) if one["action"] and (found := bpy.data.actions.get(one["action"])) is not None]


@contextmanager
def kept(obj: bpy.types.Object) -> Iterator[None]:
    """An error inside leaves the objects of the file and what the character's shape keys and others play as they were."""
    owners: list[Owner] = [*bpy.data.shape_keys, *(one for one in bpy.data.objects if one != obj)]
    was = [
        (one, one.animation_data is not None, one.animation_data and one.animation_data.action, _slot_in_use(one), _pose(one))
        for one in owners
        if one.library is None
    ]
    before = {one.session_uid for one in bpy.data.objects}
    try:
        yield
    except BaseException:
        for one in [one for one in bpy.data.objects if one.session_uid not in before]:
            bpy.data.objects.remove(one)
        for one, had, action, slot, pose in was:
            animation = one.animation_data
            if animation is not None and (animation.action != action or _handle(compat.assigned_slot(animation)) != _handle(slot)):
                compat.assign(animation, action, slot)
            if animation is not None and not had:
                one.animation_data_clear()
            _put_pose(one, pose)
        raise


# --- curves --------------------------------------------------------------------------------------------------------------------------


def _write(
    place: bpy.types.Action, slot: compat.Slot, frames: NDArray[Any], channels: Iterable[Channels], digests: dict[str, str]
) -> tuple[dict[str, str], set[str]]:
    """Write what is not changed by hand; the new digests, and the paths that were."""
    bag = compat.ensure_bag(place, slot)
    there = {(curve.data_path, curve.array_index): curve for curve in bag.fcurves}
    edited: set[str] = set()
    out: dict[str, str] = {}
    fresh: list[Channels] = []
    wanted: set[tuple[str, int]] = set()
    for channel in channels:
        wanted |= set(channel.keys)
        names = [_token(key) for key in channel.keys]
        if any(name in digests and _digest(there.get(key)) != digests[name] for name, key in zip(names, channel.keys, strict=True)):
            edited.add(channel.path)
            out |= {name: digests[name] for name in names if name in digests}
        else:
            fresh.append(channel)
    actions.write_curves(bag, frames, fresh, there)
    now = {(curve.data_path, curve.array_index): curve for curve in bag.fcurves}
    for channel in fresh:
        out |= {_token(key): _digest(now.get(key)) for key in channel.keys}
    for key, curve in there.items():  # curves of the bake before that the new one does not have, untouched by hand
        name = _token(key)
        if key not in wanted and name in digests:
            if _digest(curve) == digests[name]:
                bag.fcurves.remove(curve)
            else:
                out[name] = digests[name]
    return out, edited


def _token(key: tuple[str, int]) -> str:
    return f"{key[0]}#{key[1]}"


def _digest(curve: bpy.types.FCurve | None) -> str:
    """Of the values of the keys; times may have been moved together."""
    if curve is None:
        return ""
    pairs = np.empty(2 * len(curve.keyframe_points), dtype=np.float32)
    curve.keyframe_points.foreach_get("co", pairs)
    return hashlib.blake2b(np.ascontiguousarray(pairs[1::2]).tobytes(), digest_size=12).hexdigest()


# --- where they lie ------------------------------------------------------------------------------------------------------------------


def _new_place(action: bpy.types.Action, one: Companion, owner: Owner, undo: actions.Rollback) -> tuple[bpy.types.Action, compat.Slot]:
    if one.kind == "KEY" and compat.SLOTTED:
        slot = compat.new_slot(action, "KEY", owner.name)
        undo.add(lambda: action.slots.remove(slot))
        compat.ensure_bag(action, slot)
        return action, slot
    place, slot, _bag = compat.new_action(f"{action.name} {one.name}", one.kind)
    undo.add(lambda: bpy.data.actions.remove(place))
    return place, slot


def place_of(action: bpy.types.Action, record: dict[str, Any]) -> tuple[bpy.types.Action | None, compat.Slot]:
    place = bpy.data.actions.get(record["action"]) if record["action"] else action
    if place is None or not compat.SLOTTED:
        return place, None
    slot = next((slot for slot in place.slots if slot.handle == record["slot"]), None)
    return (place, slot) if slot is not None else (None, None)


def _moves(owner: Owner, place: bpy.types.Action, slot: compat.Slot) -> bool:
    """Whether that is what moves the owner, or nothing does."""
    animation = owner.animation_data
    if animation is None or animation.action is None:
        return True
    return animation.action == place and _handle(compat.assigned_slot(animation)) == _handle(slot)


def _assign(owner: Owner, place: bpy.types.Action, slot: compat.Slot, undo: actions.Rollback) -> None:
    if owner.animation_data is None or owner.animation_data.action != place or _handle(_slot_in_use(owner)) != _handle(slot):
        actions.make_active(owner, place, slot, undo)


def _slot_in_use(owner: Owner) -> compat.Slot:
    return None if owner.animation_data is None or owner.animation_data.action is None else compat.assigned_slot(owner.animation_data)


def _handle(slot: compat.Slot) -> int:
    return 0 if slot is None else int(slot.handle)


def _pose(owner: Owner) -> tuple[float, ...]:
    if isinstance(owner, bpy.types.Key):
        return tuple(block.value for block in owner.key_blocks)
    return ()


def _put_pose(owner: Owner, pose: tuple[float, ...]) -> None:
    if isinstance(owner, bpy.types.Key):
        for block, value in zip(owner.key_blocks, pose, strict=False):
            if block.value != value:
                block.value = value
