# SPDX-License-Identifier: GPL-3.0-or-later
"""Morph curves of a take onto the shape keys of a character's meshes, and back.

Every mesh that has the key gets the curve: faces, brows, lashes and teeth are often meshes of their own. What an action of ours moved
before and this one does not goes back to zero by one key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import timecode
from ..motion.errors import TargetError
from ..motion.take import Take
from ..retarget.extras import MorphOptions
from ..retarget.motion import PoseMotion
from ..rig import morph_names
from . import companions, compat, curves
from .channels import Channels
from .companions import Companion

Array = NDArray[np.float64]

_VALUE = re.compile(r'key_blocks\["((?:[^"\\]|\\.)*)"\]\.value$')
_MOST = 8
FACT = "morphs"
"""Readers that know which curves of a take are morphs name them in this of its facts."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Which shape keys a take moves: ``keys`` mesh by mesh (shape key -> curve's name), what the curves' values are divided by, notes."""

    keys: tuple[tuple[bpy.types.Key, Mapping[str, str]], ...]
    unit: float
    notes: tuple[str, ...]


def shape_keys_of(obj: bpy.types.Object) -> list[bpy.types.Key]:
    """The shape keys of the meshes that hang on an armature, each once."""
    out: dict[bpy.types.Key, None] = {}
    for mesh in bpy.data.objects:
        if mesh.type != "MESH" or mesh.data.shape_keys is None or not mesh.data.shape_keys.use_relative:
            continue
        deformed = any(modifier.type == "ARMATURE" and modifier.object == obj for modifier in mesh.modifiers)
        if deformed or mesh.parent == obj:
            out[mesh.data.shape_keys] = None
    return list(out)


def plan(obj: bpy.types.Object, found: Mapping[str, Array], facts: Mapping[str, object], options: MorphOptions) -> Plan:
    """Which shape keys curves move. A curve is a morph where a reader or a person says so, it is known, or a shape key has its name."""
    if not options.use:
        return Plan((), 1.0, ())
    stated = facts.get(FACT)
    known = {str(name) for name in stated} if isinstance(stated, list | tuple) else set[str]()
    renamed = dict(options.names)
    candidates = [name for name in found if not name.startswith(timecode.PREFIX)]
    said = {name for name in candidates if name in known or name in renamed or morph_names.canonical(name) is not None}
    matched: list[tuple[bpy.types.Key, Mapping[str, str]]] = []
    notes: list[str] = []
    moved: set[str] = set()
    for key in shape_keys_of(obj):
        names = [block.name for block in key.key_blocks if block != key.reference_key]
        keys = morph_names.match_morphs(candidates, names, renamed).keys
        moved |= set(keys.values())
        if keys and key.library is not None:
            notes.append(f'The shape keys "{key.name}" are linked from another file, so their morphs stay as they are.')
            continue
        driven = _driven(key) & keys.keys()
        if driven:
            notes.append(f"Drivers move these shape keys, so their morphs were left out: {_listed(sorted(driven))}.")
        if keys and key.animation_data is not None and key.animation_data.use_tweak_mode:
            raise TargetError(
                f'An NLA strip of the shape keys "{key.name}" is being edited; leave tweak mode (Tab in the NLA editor) first.'
            )
        matched.append((key, {name: curve for name, curve in keys.items() if name not in driven}))
    morphs = [name for name in candidates if name in said or name in moved]
    missing = [name for name in morphs if name not in moved and renamed.get(name, "-")]
    gone = [key for curve, key in renamed.items() if curve in found and key and not any(key in keys for _, keys in matched)]
    if gone:
        notes.append(f"No mesh of the character has the shape key {_listed(gone)} that a morph was to move.")
    if missing:
        notes.append(f"No mesh of the character has a shape key for these morphs of the take: {_listed(missing)}.")
    unit = options.unit or morph_names.unit_of({name: found[name] for name in morphs})
    return Plan(tuple(matched), unit, tuple(notes))


def companions_of(plan: Plan, found: Mapping[str, Array]) -> Iterator[Companion]:
    """What :func:`.companions.write` is to write."""
    for key, keys in plan.keys:
        channels = [Channels(_path(name), "Shape Keys", found[curve][:, None] / plan.unit, indexed=False) for name, curve in keys.items()]
        channels += _rest(key, {channel.path for channel in channels})
        if channels:
            yield Companion("KEY", key.name, lambda undo, key=key: key, channels)


def under_key_names(plan: Plan, motion: PoseMotion) -> PoseMotion:
    """The motion with its morph curves as shape keys have them, 0..1 under the keys' own names: what files for players need."""
    if not plan.keys:
        return motion
    keys = {name: motion.curves[curve] / plan.unit for _, keys in plan.keys for name, curve in keys.items() if curve in motion.curves}
    used = {curve for _, keys in plan.keys for curve in keys.values()}
    return replace(motion, curves={**{name: v for name, v in motion.curves.items() if name not in used}, **keys})


def clipped(plan: Plan, found: Mapping[str, Array]) -> list[str]:
    """Notes on values that the sliders of shape keys do not let through."""
    out: list[str] = []
    for key, keys in plan.keys:
        for name, curve in keys.items():
            block, values = key.key_blocks[name], found[curve] / plan.unit
            if len(values) and (values.min() < block.slider_min - 1e-4 or values.max() > block.slider_max + 1e-4):
                out.append(name)
    names = list(dict.fromkeys(out))
    return [f"The range of these shape keys is smaller than their morphs', which it cuts off: {_listed(names)}."] if names else []


def read(obj: bpy.types.Object, action: bpy.types.Action | None, frames: Array, *, assigned: bool) -> dict[str, Array]:
    """What moves the shape keys of a rig's meshes at scene frames ``(F,)``, by the keys' names.

    That is what belongs to ``action``; else what plays, if the action is the ``assigned`` one too. Where two meshes have a key of one name,
    the first one that moves counts.
    """
    out: dict[str, Array] = {}
    for key in shape_keys_of(obj):
        for curve in curves_beside(key, action, assigned=assigned):
            path = _VALUE.match(curve.data_path)
            if path is None or not curves.is_playing(curve):
                continue
            values = curves.evaluate(curve, frames)
            name = bpy.utils.unescape_identifier(path[1])
            if name not in out or (not np.ptp(out[name]) and np.ptp(values)):
                out[name] = values
    return out


def curves_beside(key: bpy.types.Key, action: bpy.types.Action | None, *, assigned: bool) -> list[bpy.types.FCurve]:
    """The f-curves of shape keys that belong to an action of their armature: companions, a slot in it, the same stack of an FBX file."""
    if action is not None:
        beside = next((one for one in companions.listed(action) if one["kind"] == "KEY" and one["owner"] == key.name), None)
        if beside is not None:
            place, slot = companions.place_of(action, beside)
            return compat.all_curves(place, slot) if place is not None else []
        own = compat.slot_for(action, "KEY", key.name)
        if own is not None:
            return compat.all_curves(action, own)
        stack = action.name.split("|")[1:]
        for other in bpy.data.actions if stack and not assigned else ():
            if other.name.split("|")[1:] == stack and any(_VALUE.match(curve.data_path) for curve in compat.all_curves(other)):
                return compat.all_curves(other)
    return compat.moving_curves(key.animation_data) if assigned and key.animation_data is not None else []


def with_morphs(take: Take, found: Mapping[str, Array]) -> Take:
    """A take with morph curves, named as such in its facts."""
    if not found:
        return take
    return replace(take, curves={**take.curves, **found}, facts={**take.facts, FACT: tuple(found)})


def _driven(key: bpy.types.Key) -> set[str]:
    """Shape keys whose value a driver sets: keys on them would show nothing."""
    drivers = key.animation_data.drivers if key.animation_data is not None else ()
    found = (_VALUE.match(driver.data_path) for driver in drivers if not driver.mute)
    return {bpy.utils.unescape_identifier(path[1]) for path in found if path}


def _rest(key: bpy.types.Key, written: set[str]) -> Iterator[Channels]:
    """One key at zero for what an action of ours moves now and the new one does not."""
    animation = key.animation_data
    if animation is None or animation.action is None or not companions.is_companion(animation.action, key):
        return
    for path in dict.fromkeys(curve.data_path for curve in compat.moving_curves(animation)):
        found = _VALUE.match(path)
        if found and path not in written and bpy.utils.unescape_identifier(found[1]) in key.key_blocks:
            yield Channels(path, "Shape Keys", np.zeros((1, 1)), indexed=False, kind="rest")


def _path(name: str) -> str:
    return f'key_blocks["{bpy.utils.escape_identifier(name)}"].value'


def _listed(names: list[str]) -> str:
    shown = ", ".join(f'"{name}"' for name in names[:_MOST])
    return shown + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")
