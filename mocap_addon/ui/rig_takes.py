# SPDX-License-Identifier: GPL-3.0-or-later
"""A rig in the scene as the source: its actions as takes, kept until the rig or one of its actions changes."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace

import bpy
import numpy as np

from .. import rig
from ..blender import sources
from ..blender.sources import RigTake
from ..motion.errors import MocapError, RigError, TargetError
from ..motion.steps import Steps, run
from ..motion.take import Take
from . import summary
from .reading import Reading

_KEPT = 8


@dataclass(frozen=True)
class RigChoice:
    """Which rig, and what of it.

    Parameters
    ----------
    object : str
        Name of the armature object.
    take : str
        Label of one of its takes (:func:`labels`); empty: what it plays now.
    every : bool
        Every action that moves its bones, each as a take.
    """

    object: str
    take: str = ""
    every: bool = False


_readings: OrderedDict[tuple[RigChoice, str], Reading] = OrderedDict()


def choice(scene: bpy.types.Scene) -> RigChoice | None:
    """What the panel is set to; None when no rig is chosen."""
    owner = scene.mocap
    if owner.source_rig is None:
        return None
    return RigChoice(owner.source_rig.name, "" if owner.source_every else owner.source_take, owner.source_every)


def labels(obj: bpy.types.Object | None) -> list[str]:
    """What can be chosen of a rig, by name."""
    return [] if obj is None else [found.label for found in sources.takes_of(obj)]


def read(wanted: RigChoice) -> Reading:
    """Read the rig, or take it from memory when neither it nor its actions have changed.

    Raises
    ------
    MocapError
        One plain sentence.
    """
    return run(read_steps(wanted), None, "")


def read_steps(wanted: RigChoice) -> Steps[Reading]:
    """:func:`read` step by step, where Blender evaluates the rig."""
    known = kept(wanted)
    if known is not None and not known.error and all(take.facts.get("evaluated") == "curves" for take in known.takes):
        return known  # what Blender itself evaluates may depend on anything in the scene: read again
    obj = bpy.data.objects.get(wanted.object)
    if obj is None:
        raise TargetError(f'There is no object called "{wanted.object}"; pick the rig whose motion is wanted.')
    takes: list[Take] = []
    for one in _wanted(obj, wanted):
        takes.append((yield from _read(obj, one)))
    found = tuple(takes)
    roles = tuple(rig.match(take.skeleton) for take in found)
    return _keep(wanted, Reading(wanted.object, found, roles, summary.facts(found, roles), summary.reference(found[0])))


def read_or_say(wanted: RigChoice) -> Steps[Reading]:
    """:func:`read_steps` for the panel: an error is kept for it to show."""
    try:
        return (yield from read_steps(wanted))
    except MocapError as error:
        return say(wanted, str(error))


def say(wanted: RigChoice, error: str) -> Reading:
    """Keep an error for the panel to show."""
    return _keep(wanted, Reading(wanted.object, error=error))


def kept(wanted: RigChoice) -> Reading | None:
    """What is in memory of it, or None."""
    return _readings.get(_key(wanted))


def present(scene: bpy.types.Scene, take: Take) -> Take:
    """The pose in which the panel's rig stands now, on the skeleton of a ``take`` that was read from it.

    Raises
    ------
    MocapError
        The take comes from no rig in the scene, or the rig's bones are others by now.
    """
    obj = scene.mocap.source_rig if scene.mocap.source == "RIG" else None
    if obj is None:
        raise RigError("The take is a file, which has no pose in the scene; go to a frame of it and choose For This Frame.")
    pose = sources.read_pose(obj, scene=scene)
    if pose.skeleton.names != take.skeleton.names:
        raise RigError(f'The bones of "{obj.name}" are others than when it was read; press Match under Bones first.')
    return replace(pose, skeleton=take.skeleton)


def forget_all() -> None:
    """Let go of everything."""
    _readings.clear()


@bpy.app.handlers.persistent
def after_change(_scene: bpy.types.Scene, graph: bpy.types.Depsgraph) -> None:
    """Forget what was read of a rig that has changed. Frame changes evaluate rigs too, but change nothing of theirs."""
    if not _readings:
        return
    changed = {update.id.name for update in graph.updates if isinstance(update.id, bpy.types.Action)}
    if changed:
        for key in [k for k, reading in _readings.items() if any(take.facts.get("action") in changed for take in reading.takes)]:
            del _readings[key]


def _wanted(obj: bpy.types.Object, wanted: RigChoice) -> list[RigTake | None]:
    if not wanted.every and not wanted.take:
        return [None]
    there = sources.takes_of(obj)
    if wanted.every:
        found = [take for take in there if take.kind == "action"]
        if not found:
            raise RigError(f'"{obj.name}" has no action that moves its bones; pick another rig.')
        return list(found)
    found = [take for take in there if take.label == wanted.take]
    if not found:
        raise RigError(f'"{obj.name}" has no action "{wanted.take}"; choose one of its own.')
    return list(found)


def _read(obj: bpy.types.Object, take: RigTake | None) -> Steps[Take]:
    if take is None or take.kind == "playing":
        return sources.read_steps(obj)
    return sources.read_steps(obj, action=take.action, slot=take.slot or None)


def _key(wanted: RigChoice) -> tuple[RigChoice, str]:
    scene, obj = bpy.context.scene, bpy.data.objects.get(wanted.object)
    animation = obj.animation_data if obj is not None else None
    playing = animation.action.name if animation is not None and animation.action else ""
    rate = f"{scene.render.fps}/{scene.render.fps_base:.6f}"
    return wanted, f"{playing} {rate} {scene.unit_settings.scale_length} {'' if obj is None else _rest(obj)}"


def _rest(obj: bpy.types.Object) -> str:
    """The rest pose and the object's transform, as a short text."""
    bones = obj.data.bones if obj.type == "ARMATURE" else ()
    rest = np.empty(16 * len(bones), dtype=np.float32)
    if len(bones):
        bones.foreach_get("matrix_local", rest)
    place = np.array(obj.matrix_basis, dtype=np.float32).tobytes() if obj.animation_data is None else b""
    return hashlib.blake2b(rest.tobytes() + place, digest_size=8).hexdigest()


def _keep(wanted: RigChoice, reading: Reading) -> Reading:
    _readings[_key(wanted)] = reading
    while len(_readings) > _KEPT:
        _readings.popitem(last=False)
    return reading
