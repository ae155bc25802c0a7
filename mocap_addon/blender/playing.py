# SPDX-License-Identifier: GPL-3.0-or-later
"""What moves a rig: its action in one of its slots, another action by name, or NLA strips."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

import bpy

from ..motion.errors import RigError, TargetError
from . import compat, curves

BONE_PATH = re.compile(r'pose\.bones\["((?:[^"\\]|\\.)*)"\]\.(\w+)$')
"""Data path of a bone's property: escaped name and property."""

OBJECT_PATHS = ("location", "rotation_euler", "rotation_quaternion", "rotation_axis_angle", "scale")
OBJECT_PATHS = (*OBJECT_PATHS, *(f"delta_{path}" for path in OBJECT_PATHS if path != "rotation_axis_angle"))
"""Data paths that place an object."""


@dataclass(frozen=True, eq=False)
class Playing:
    """What is to be read from a rig.

    Parameters
    ----------
    obj : armature object
    action : action or None
        None where strips, constraints or drivers alone move the rig.
    slot : slot or None
    curves : tuple of f-curves
        Those of the action that play.
    assigned : bool
        It is what the rig plays now, so that nothing need be assigned to evaluate it.
    strips : bool
        NLA strips play under the action.
    """

    obj: bpy.types.Object
    action: bpy.types.Action | None
    slot: compat.Slot
    curves: tuple[bpy.types.FCurve, ...]
    assigned: bool
    strips: bool

    @property
    def name(self) -> str:
        """What the take is called."""
        if self.strips:
            return f"{self.obj.name} NLA"
        return self.action.name if self.action else self.obj.name

    def frame_range(self) -> tuple[float, float] | None:
        """First and last frame with a key, or as set by hand on the action; with strips from their first to their last frame."""
        ranges: list[tuple[float, float]] = []
        if self.action is not None and self.action.use_frame_range:
            ranges.append((self.action.frame_start, self.action.frame_end))
        elif self.curves:
            ranges += [found for found in map(curves.extent, self.curves) if found is not None]
        strips = strip_range(self.obj) if self.strips else None
        if strips is not None:
            ranges.append(strips)
        return (min(r[0] for r in ranges), max(r[1] for r in ranges)) if ranges else None


def check(obj: bpy.types.Object | None) -> None:
    """Raise :class:`TargetError` unless ``obj`` is an armature object with bones."""
    if obj is None:
        raise TargetError("No armature is chosen; choose the rig whose motion is wanted.")
    if obj.type != "ARMATURE":
        raise TargetError(f'"{obj.name}" is not an armature; choose the rig whose motion is wanted.')
    if not len(obj.data.bones):
        raise TargetError(f'"{obj.name}" has no bones; choose another armature.')


def choose(obj: bpy.types.Object | None, action: bpy.types.Action | str | None = None, slot: str | None = None) -> Playing:
    """What the rig plays, or an action by itself; :class:`RigError` where there is no motion, no such action or no such slot."""
    check(obj)
    if action is None and slot is None:
        return _now(obj)
    animation = obj.animation_data
    if action is None:
        action = animation.action if animation else None
        if action is None:
            raise RigError(f'"{obj.name}" has no action, so there is no slot "{slot}"; name the action too.')
    elif isinstance(action, str):
        found = bpy.data.actions.get(action)
        if found is None:
            raise RigError(f'There is no action called "{action}"; choose one of {_names(p.action.name for p in suitable(obj))}.')
        action = found
    return _by_itself(obj, action, *_slot(obj, action, slot))


def suitable(obj: bpy.types.Object) -> list[Playing]:
    """Every action with every slot that moves this rig's bones; the assigned one also if it moves only the object."""
    out: list[Playing] = []
    for action in bpy.data.actions:
        out += [by_itself(obj, action, slot) for slot in suitable_slots(obj, action)]
    now = obj.animation_data
    if now is not None and now.action is not None and not any(p.action == now.action for p in out):
        slot = compat.assigned_slot(now)
        if (slot is not None or not compat.SLOTTED) and moves(obj, _playing_curves(now.action, slot)):
            out.append(by_itself(obj, now.action, slot))
    return out


def suitable_slots(obj: bpy.types.Object, action: bpy.types.Action) -> list[compat.Slot]:
    """Slots of the action at least half of whose bones this rig has."""
    bones = obj.data.bones
    out: list[compat.Slot] = []
    for slot in compat.slots(action):
        named = {path[1] for curve in compat.all_curves(action, slot) if (path := BONE_PATH.match(curve.data_path))}
        here = sum(bpy.utils.unescape_identifier(name) in bones for name in named)
        if here and 2 * here >= len(named):
            out.append(slot)
    return out


def moves(obj: bpy.types.Object, found: Iterable[bpy.types.FCurve]) -> int:
    """How many of the curves move a bone of the rig or the rig itself."""
    bones = obj.data.bones
    paths = (BONE_PATH.match(curve.data_path) or curve.data_path for curve in found)
    return sum(p in OBJECT_PATHS if isinstance(p, str) else bpy.utils.unescape_identifier(p[1]) in bones for p in paths)


def strip_range(obj: bpy.types.Object) -> tuple[float, float] | None:
    """First and last frame of the NLA strips that play; None where none does."""
    animation = obj.animation_data
    if animation is None or not animation.use_nla:
        return None
    tracks = [t for t in animation.nla_tracks if t.is_solo] or list(animation.nla_tracks)
    strips = [s for track in tracks if not track.mute for s in track.strips if not s.mute]
    return (min(s.frame_start for s in strips), max(s.frame_end for s in strips)) if strips else None


def slot_name(slot: compat.Slot) -> str:
    """A slot's name as a person sees it; empty where there is none."""
    return "" if slot is None else str(slot.name_display)


def _now(obj: bpy.types.Object) -> Playing:
    animation = obj.animation_data
    strips = strip_range(obj) is not None
    action = animation.action if animation else None
    slot = compat.assigned_slot(animation) if action else None
    if compat.SLOTTED and slot is None:
        found: tuple[bpy.types.FCurve, ...] = ()
    else:
        found = _playing_curves(action, slot) if action else ()
    if strips or moves(obj, found):
        return Playing(obj, action if found else None, slot, found, True, strips)
    if _is_driven(obj):
        return Playing(obj, None, None, (), True, False)
    others = _names(p.action.name for p in suitable(obj))
    if action is not None and compat.SLOTTED and slot is None:
        raise RigError(
            f'No slot of the action "{action.name}" is chosen for "{obj.name}", so it does not move; choose one, or name an action.'
        )
    hint = f"name one of {others}" if others else "assign an action, or choose another rig"
    raise RigError(f'"{obj.name}" has no action and no NLA strips that move it, so there is no motion to read; {hint}.')


def by_itself(obj: bpy.types.Object, action: bpy.types.Action, slot: compat.Slot) -> Playing:
    """One action in one of its slots, whatever else plays."""
    return _by_itself(obj, action, slot, _playing_curves(action, slot))


def _by_itself(obj: bpy.types.Object, action: bpy.types.Action, slot: compat.Slot, found: tuple[bpy.types.FCurve, ...]) -> Playing:
    animation = obj.animation_data
    assigned = (
        animation is not None
        and animation.action == action
        and _same(compat.assigned_slot(animation), slot)
        and strip_range(obj) is None
        and not animation.use_tweak_mode
    )
    return Playing(obj, action, slot, found, assigned, False)


def _same(a: compat.Slot, b: compat.Slot) -> bool:
    return (a is None and b is None) if a is None or b is None else a.handle == b.handle


def _playing_curves(action: bpy.types.Action, slot: compat.Slot) -> tuple[bpy.types.FCurve, ...]:
    return tuple(curve for curve in compat.all_curves(action, slot) if curves.is_playing(curve))


def _slot(obj: bpy.types.Object, action: bpy.types.Action, wanted: str | None) -> tuple[compat.Slot, tuple[bpy.types.FCurve, ...]]:
    """The slot that is meant, and those of its curves that play."""
    slots = compat.slots(action)
    if wanted is not None and compat.SLOTTED:
        found = [s for s in slots if wanted in (s.name_display, s.identifier)]
        if not found:
            raise RigError(f'The action "{action.name}" has no slot "{wanted}"; it has {_names(slot_name(s) for s in slots)}.')
        slots = tuple(found)
    animation = obj.animation_data
    if wanted is None and animation is not None and animation.action == action:
        assigned = compat.assigned_slot(animation)
        slots = (assigned,) if assigned is not None else slots
    found = [(slot, _playing_curves(action, slot)) for slot in slots]
    moved = [moves(obj, playing) for _, playing in found]
    if not any(moved):
        raise RigError(f'The action "{action.name}" moves no bone of "{obj.name}"; choose an action made for it.')
    return found[moved.index(max(moved))]


def _is_driven(obj: bpy.types.Object) -> bool:
    """Whether constraints or drivers move the rig."""
    drivers = obj.animation_data is not None and any(not d.mute for d in obj.animation_data.drivers)
    constrained = any(not c.mute and c.influence for owner in (obj, *obj.pose.bones) for c in owner.constraints)
    return drivers or constrained


def _names(names: Iterable[str], most: int = 5) -> str:
    found = list(dict.fromkeys(f'"{name}"' for name in names))
    return ", ".join(found[:most]) + (f" and {len(found) - most} more" if len(found) > most else "")
