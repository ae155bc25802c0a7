# SPDX-License-Identifier: GPL-3.0-or-later
"""The poses of a live session's performers onto what they drive."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import bpy

from ..blender import live_pose
from ..motion.errors import MocapError
from ..stream.sample import Sampled
from . import body, live_hold, live_performers, preview, table_sync
from .live_notes import identity, reference_of

if TYPE_CHECKING:
    from .live import Running

_CHECKED_EVERY = 1.0


def show(found: Running, scene: bpy.types.Scene) -> None:
    """Everybody who is heard, now; why somebody drives nothing is kept with the session."""
    items = found.session.feed.all()
    bindings = live_performers.bindings(scene, [k for k in items])
    wanted = {identity(key): key for key in items}
    keys = [wanted[b.identity] for b in bindings if b.identity in wanted]
    moments = found.session.poll(keys=keys) if keys else {}
    found.shown = {identity(key): moment for key, moment in moments.items()}
    frame = scene.frame_current_final
    check = time.monotonic() - found.checked > _CHECKED_EVERY
    if check:
        found.checked = time.monotonic()
        found.refused.clear()
        found.rigs = {who: one for who, one in found.rigs.items() if _still_there(one.obj) and one.current}
    rigs: list[live_pose.Rig] = []
    poses: list[Sampled] = []
    for binding in bindings:
        moment, obj = found.shown.get(binding.identity), binding.target
        if moment is None or obj is None or not binding.use or binding.identity in found.refused:
            continue
        try:
            if moment.skeleton is None:
                continue
            if preview.shown_on(obj) or obj.mocap.posing != preview.NONE:
                continue  # a person works on its reference pose
            live_hold.take_off(obj, frame)
            if binding.kind == "body":
                rigs.append(_rig_of(found, scene, binding, obj, moment))
                poses.append(moment)
                _faces(found, binding, obj, moment)
            else:
                live_pose.write_object(obj, moment.rotations[0], moment.translations[0], float(scene.unit_settings.scale_length))
        except MocapError as error:
            found.refused[binding.identity] = str(error)
    if rigs:
        live_pose.write_all(rigs, [p.rotations for p in poses], [p.translations for p in poses])
    for binding in bindings:
        moment, obj = found.shown.get(binding.identity), binding.target
        if binding.kind == "morphs" and moment is not None and obj is not None and binding.use:
            live_hold.take_off(obj, frame)
            _faces(found, binding, obj, moment)


def _rig_of(found: Running, scene: bpy.types.Scene, binding, obj: bpy.types.Object, moment: Sampled) -> live_pose.Rig:
    """What carries the performer's pose to the character, made anew where either has changed."""
    known = found.rigs.get(binding.identity)
    assert moment.skeleton is not None
    if known is not None and _still_there(known.obj) and known.obj == obj and known.fits and known.performer is moment.skeleton:
        return known
    source = live_pose.rested(moment.skeleton, *reference_of(binding, moment.skeleton))
    made = live_pose.Rig(
        obj,
        source,
        table_sync.to_table(obj),
        controls=bpy.data.scenes[found.scene].mocap.controls.lower() if found.scene in bpy.data.scenes else "auto",
        adjustments=body.adjustments(obj, scene),
    )
    made.performer = moment.skeleton
    found.rigs[binding.identity] = made
    return made


def _still_there(obj: bpy.types.Object) -> bool:
    """Whether the object was not deleted."""
    try:
        return bool(obj.name)
    except ReferenceError:
        return False


def _faces(found: Running, binding, obj: bpy.types.Object, moment: Sampled) -> None:
    if not moment.curves:
        return
    known = found.faces.get(binding.identity)
    if known is None or any(name not in known.names for name in moment.curves):
        names = dict.fromkeys((*(known.names if known is not None else ()), *moment.curves))
        known = found.faces[binding.identity] = live_pose.Face(obj, list(names))
    known.write(moment.curves)
