# SPDX-License-Identifier: GPL-3.0-or-later
"""A rig in the scene as the source of a take.

Nothing of the person's is changed: where the arrays of keys do not tell the motion (constraints, drivers, NLA strips), it is evaluated in a
scene of its own, see :mod:`.rig_graph`; the open scene stays on its frame.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import RigError
from ..motion.scaled_pose import ScaledPose
from ..motion.steps import Progress, Steps, run
from ..motion.take import Take
from . import morph_keys, playing, rig_curves, rig_graph, rig_world, scenes, time_code_keys
from .playing import Playing, check

Array = NDArray[np.float64]
Method = Literal["auto", "curves", "depsgraph"]


@dataclass(frozen=True)
class RigTake:
    """Something that can be read from a rig.

    Parameters
    ----------
    kind : "playing" or "action"
        What the rig plays now (its NLA strips and what else moves it), or one action by itself.
    label : str
        For a person.
    action, slot : str
        Names to give to :func:`read_rig`; empty for "playing", and the slot where actions have none.
    frame_start, frame_end : float
        Scene frames.
    assigned : bool
        The rig plays it now.
    """

    kind: Literal["playing", "action"]
    label: str
    action: str
    slot: str
    frame_start: float
    frame_end: float
    assigned: bool


def takes_of(obj: bpy.types.Object) -> list[RigTake]:
    """What can be read from an armature object: what it plays through NLA strips, then every action that moves its bones.

    The assigned action stands first among the actions; the others follow by name. An action is listed once for each of its slots that
    suits.
    """
    check(obj)
    out: list[RigTake] = []
    strips = playing.strip_range(obj)
    if strips is not None:
        out.append(RigTake("playing", "NLA", "", "", *strips, assigned=True))
    found = playing.suitable(obj)
    for one in found:
        assert one.action is not None
        slot = playing.slot_name(one.slot)
        alone = sum(other.action == one.action for other in found) == 1
        label = one.action.name if alone else f"{one.action.name} ({slot})"
        out.append(RigTake("action", label, one.action.name, slot, *one.frame_range(), assigned=one.assigned))
    return sorted(out, key=lambda take: (take.kind != "playing", not take.assigned, take.label.casefold()))


def read_rig(
    obj: bpy.types.Object,
    *,
    action: bpy.types.Action | str | None = None,
    slot: str | None = None,
    frame_range: tuple[float, float] | None = None,
    scene: bpy.types.Scene | None = None,
    method: Method = "auto",
    progress: Progress | None = None,
) -> Take:
    """The motion of an armature object on every frame of a range, as a take.

    Parameters
    ----------
    obj : armature object
        It may be hidden, in any mode but Edit Mode where constraints have to be evaluated, or linked.
    action : action or str, optional
        Read this action by itself, whatever else is assigned. None: what the rig plays: its action, its NLA strips, its constraints.
    slot : str, optional
        The action's slot by name; None: the assigned one, else the one that moves most bones.
    frame_range : (float, float), optional
        First and last scene frame; None: all of the action, of the strips, or of the scene.
    scene : scene, optional
        Whose rate and unit count; the current one by default.
    method : "auto", "curves" or "depsgraph"
        "curves" evaluates keys in arrays; "depsgraph" lets Blender evaluate frame by frame; "auto" uses arrays where nothing but keys moves
        the rig.
    progress : callable, optional
        Called with the share done (0..1); returning False cancels with a :class:`MocapError`.

    Returns
    -------
    Take
        In the world's axes and metres, relative to the object's origin; in the world where the object itself moves. The rest pose is the
        armature's. Shape keys of its meshes that move are curves; time code and foot contacts are read where the action holds them.
        ``facts["evaluated"]`` says which method was used.

    Raises
    ------
    TargetError
        Not an armature, no bones, mirrored, scaled differently along its axes.
    RigError
        Nothing moves the rig, or there is no such action or slot.
    """
    check(obj)
    work = read_steps(obj, action=action, slot=slot, frame_range=frame_range, scene=scene, method=method)
    return run(work, progress, f'Reading "{obj.name}" was cancelled.')


def read_steps(
    obj: bpy.types.Object,
    *,
    action: bpy.types.Action | str | None = None,
    slot: str | None = None,
    frame_range: tuple[float, float] | None = None,
    scene: bpy.types.Scene | None = None,
    method: Method = "auto",
) -> Steps[Take]:
    """:func:`read_rig`, a frame a step where Blender evaluates the rig."""
    scene = scene or bpy.context.scene
    chosen = playing.choose(obj, action, slot)
    first, last = frame_range or chosen.frame_range() or (scene.frame_start, scene.frame_end)
    if last < first or not np.isfinite(last - first):
        raise RigError(f"The frame range {first:g} to {last:g} is empty; give the first frame before the last.")
    frames = np.arange(np.floor(first + 1e-4), np.ceil(last - 1e-4) + 1.0)
    take = yield from sample_steps(chosen, frames, scenes.scene_rate(scene), scene=scene, method=method)
    asked = {"action": action is not None, "range": frame_range is not None}
    return replace(take, facts={**take.facts, "asked": asked})


def read_pose(obj: bpy.types.Object, *, scene: bpy.types.Scene | None = None) -> Take:
    """The pose in which an armature object stands now, as a take of one sample; what was posed without keys included.

    Raises
    ------
    RigError
        It is in Edit Mode, or not evaluated in this view layer.
    TargetError
        As for :func:`read_rig`.
    """
    check(obj)
    scene = scene or bpy.context.scene
    if obj.mode == "EDIT":
        raise RigError(f'"{obj.name}" is in Edit Mode, where it has no pose; leave it first.')
    body = rig_world.read_body(obj)
    folded = rig_world.fold(obj, body, rig_graph.present(obj, body), float(scene.unit_settings.scale_length), np.zeros(1))
    return Take(f"{obj.name} as it stands", folded.skeleton, np.zeros(1), folded.rotations, folded.translations, notes=folded.notes)


def sample_steps(
    chosen: Playing,
    frames: Array,
    fps: Fraction,
    *,
    scene: bpy.types.Scene,
    rate: Fraction | None = None,
    method: Method = "auto",
) -> Steps[Take]:
    """What ``chosen`` does at scene frames ``(F,)`` of a scene at ``fps``; ``rate`` is the frames' own where they are no whole ones."""
    return (yield from _steps(chosen, frames, fps, scene, rate, method, None, True))[0]


def sample_scaled(
    chosen: Playing,
    frames: Array,
    fps: Fraction,
    *,
    scene: bpy.types.Scene,
    progress: Progress | None = None,
    body: rig_world.Body | None = None,
) -> tuple[Take, ScaledPose | None]:
    """:func:`sample_steps` in one go, without a hash of the motion; and the pose with its scales where bones are scaled.

    ``body``: the rig's, where it is known already.
    """
    work = _steps(chosen, frames, fps, scene, None, "auto", body, False)
    return run(work, progress, f'Reading "{chosen.obj.name}" was cancelled.')


def _steps(
    chosen: Playing,
    frames: Array,
    fps: Fraction,
    scene: bpy.types.Scene,
    rate: Fraction | None,
    method: Method,
    body: rig_world.Body | None,
    digest: bool,
) -> Steps[tuple[Take, ScaledPose | None]]:
    obj = chosen.obj
    if body is None:
        if obj.mode == "EDIT":
            obj.update_from_editmode()  # bones are those from before Edit Mode until they are flushed
        body = rig_world.read_body(obj)
    why = rig_curves.obstacles(chosen, frames) if method != "depsgraph" else []
    if method == "curves" and why:
        raise RigError(f'The motion of "{obj.name}" is not made by keys alone ({", ".join(why)}); let Blender evaluate it.')
    by_keys = method != "depsgraph" and not why
    motion = rig_curves.read(chosen, body, frames) if by_keys else (yield from rig_graph.steps(chosen, body, frames))
    folded = rig_world.fold(obj, body, motion, float(scene.unit_settings.scale_length), frames)
    if not (np.isfinite(folded.rotations.sum()) and np.isfinite(folded.translations.sum())):
        raise RigError(f'The motion of "{obj.name}" is not a number somewhere; check the values of its curves.')
    rate = rate or fps
    take = Take(
        name=chosen.name,
        skeleton=folded.skeleton,
        times=np.arange(len(frames)) * float(rate.denominator) / float(rate.numerator),
        local_rotations=quat.continuous(folded.rotations),
        local_translations=folded.translations,
        rate=rate,
        events=_marks(chosen, frames, float(rate)),
        scales={folded.skeleton.names[j]: values for j, values in motion.scales.items()},
        notes=(*motion.notes, *folded.notes),
        facts={
            "format": "rig",
            "path": f"{obj.name}/{chosen.name}",
            "object": obj.name,
            "action": chosen.action.name if chosen.action else "",
            "slot": playing.slot_name(chosen.slot),
            **({"hash": _digest(folded.rotations, folded.translations)} if digest else {}),
            "frame_start": float(frames[0]),
            "frame_end": float(frames[-1]),
            "frames": len(frames),
            "rate": rate,
            "joints": len(folded.skeleton),
            "up": "Z",
            "unit": float(scene.unit_settings.scale_length),
            "evaluated": "curves" if by_keys else "depsgraph",
            "because": ", ".join(why),
        },
    )
    take = time_code_keys.with_time_code(take, chosen, frames)
    return morph_keys.with_morphs(take, morph_keys.read(obj, chosen.action, frames, assigned=chosen.assigned)), folded.pose


def _marks(chosen: Playing, frames: Array, rate: float) -> tuple[tuple[float, str], ...]:
    """The action's own markers between the frames, in seconds of the take."""
    if chosen.action is None:
        return ()
    inside = [mark for mark in chosen.action.pose_markers if frames[0] <= mark.frame <= frames[-1]]
    return tuple((float(mark.frame - frames[0]) / rate, mark.name) for mark in sorted(inside, key=lambda mark: (mark.frame, mark.name)))


def _digest(*arrays: Array) -> str:
    """Hexadecimal hash of a motion, to the precision that Blender has."""
    out = hashlib.blake2b(digest_size=16)
    for a in arrays:
        for j in range(a.shape[1]):
            out.update(np.ascontiguousarray(np.round(a[:, j], 5) + 0.0, dtype=np.float32).tobytes())
    return out.hexdigest()
