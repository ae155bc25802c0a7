# SPDX-License-Identifier: GPL-3.0-or-later
"""Who was heard, in the scene's list; and what a newcomer drives."""

from __future__ import annotations

import bpy

from ..stream.performers import Key
from .live_notes import identity

_MOST_PERFORMERS = 64
_KINDS = {"body": "Performer", "prop": "Prop", "morphs": "Face"}


def bindings(scene: bpy.types.Scene, keys: list[Key]) -> list:
    """The scene's list of performers, with those who were heard for the first time."""
    listed = scene.mocap.live.performers
    known = {b.identity for b in listed}
    for key in keys:
        who = identity(key)
        if who in known or key[1] == "info" or len(listed) >= _MOST_PERFORMERS:
            continue
        known.add(who)
        made = listed.add()
        made.identity, made.kind, made.protocol = who, key[1], key[0].partition(" ")[0]
        made.name = f"{_KINDS[key[1]]} {key[2]}" if key[2].isdigit() else key[2]  # protocols that only number them
        _choose_character(scene, made)
    return list(listed)


def _choose_character(scene: bpy.types.Scene, made) -> None:
    """The first performer drives the panel's character, where nobody does; a prop the object of its name."""
    listed = scene.mocap.live.performers
    taken = {b.target for b in listed if b.target is not None}
    if made.kind == "body":
        obj = scene.mocap.target
        if obj is None:
            armatures = [o for o in scene.objects if o.type == "ARMATURE"]
            obj = armatures[0] if len(armatures) == 1 else None
        if obj is not None and obj not in taken and obj.library is None:
            made.target = obj
    elif made.kind == "prop":
        obj = scene.objects.get(made.name)
        if obj is not None and obj.type != "ARMATURE" and obj not in taken and obj.library is None:
            made.target = obj
