# SPDX-License-Identifier: GPL-3.0-or-later
"""FBX and Blender files as takes: brought in by Blender, read as rigs, and removed again.

A take lasts from its first to its last key. Its samples are the keys of the file where those are evenly spaced (an FBX file baked at 30 a
second gives 30, whatever the scene's rate is); else whole frames at the file's own rate.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import bpy
import numpy as np
from numpy.typing import NDArray

from ..formats import ReadOptions, orientation
from ..motion import grid, quat, timeline
from ..motion.errors import FileError, MocapError
from ..motion.steps import Steps
from ..motion.take import Take
from . import characters, curves, playing, scenes, sources
from .playing import Playing

Array = NDArray[np.float64]

_SAYS_NOTHING = re.compile(r"(?i)(mixamo\.com|take[ _]?\d*|unreal take|scene|default|action|animation|(anim|base)[a-z]*layer.*|layer ?\d*)")
"""Names that programs give every animation."""

_NO_SKIN = "The file holds no skin, so its rest pose is how the bones stood when it was written; choose a reference pose if that is none."

_NEAR = 1e-2
"""Frames: how far a key of an FBX file may lie beside a frame that is meant."""


def fbx_steps(path: Path, options: ReadOptions | None = None) -> Steps[list[Take]]:
    """Every animation stack of every skeleton of an FBX file.

    Raises
    ------
    FileError
        Blender cannot read the file, or nothing in it moves a skeleton. Nothing stays behind.
    """
    with _nothing_stays() as new:
        fps, scene = _import_fbx(path)
        armatures = _armatures(path, new(bpy.data.objects))
        found = [(one, fps, scene) for one in _shared_out(armatures, new(bpy.data.actions))]
        names = [_stack_name(one) for one, _fps, _scene in found]
        if len(names) == 1 and _SAYS_NOTHING.fullmatch(names[0]):
            names = [path.stem]
        notes = () if any(_is_skinned(mesh) for mesh in new(bpy.data.objects)) else (_NO_SKIN,)
        sampled = yield from _sampled(path, found, names, trust_keys=True)
        takes = [replace(take, notes=(*take.notes, *notes)) for take in sampled]
    return _as_asked(takes, options or ReadOptions())


def blend_steps(path: Path, options: ReadOptions | None = None) -> Steps[list[Take]]:
    """What every armature of a Blender file plays through NLA strips, and every action made for it.

    Raises
    ------
    FileError
        Blender cannot read the file, or nothing in it moves an armature. Nothing stays behind.
    """
    with _nothing_stays() as new:
        named, default = _append(path)
        armatures = _armatures(path, new(bpy.data.objects))
        found: list[tuple[Playing, Fraction, bpy.types.Scene]] = []
        for one in _shared_out(armatures, new(bpy.data.actions)):
            scene = next(iter(one.obj.users_scene), default)
            found.append((one, scenes.scene_rate(scene), scene))
        names = [one.name if one.strips or one.action is None else named.get(one.action, one.name) for one, _fps, _scene in found]
        takes = yield from _sampled(path, found, names, trust_keys=False)
    return _as_asked(takes, options or ReadOptions())


# --- bringing in ---------------------------------------------------------------------------------------------------------------------


@contextmanager
def _nothing_stays() -> Iterator[Callable[[Iterable[bpy.types.ID]], list]]:
    """Removes every data-block that was made inside; gives a function that picks the new ones."""
    before = characters._idents()
    try:
        yield lambda blocks: [block for block in blocks if block.session_uid not in before]
    finally:
        characters._remove(before)


def _import_fbx(path: Path) -> tuple[Fraction, bpy.types.Scene]:
    """Import into a scene of its own where Blender's importer can, else into the open one. Gives the rate that frames are counted in."""
    with _refusals(path):
        if "fbx_import" in dir(bpy.ops.wm):  # as characters does: Blender 4.5 on, unless it was built without
            scene = bpy.data.scenes.new("Mocap")
            with characters._quiet(), bpy.context.temp_override(scene=scene, view_layer=scene.view_layers[0]):
                bpy.ops.wm.fbx_import(filepath=str(path))
            return scenes.scene_rate(scene), scene
        scene = bpy.context.scene
        characters._enable("io_scene_fbx")
        with characters._as_it_was(scene), characters._quiet():
            bpy.ops.import_scene.fbx(filepath=str(path), use_image_search=False, use_custom_props=False)
            return scenes.scene_rate(scene), scene


def _append(path: Path) -> tuple[dict[bpy.types.Action, str], bpy.types.Scene]:
    """Append all scenes and actions: the actions with their names in the file (here, a taken name got a number), and one of the scenes."""
    with _refusals(path), characters._quiet(), bpy.data.libraries.load(str(path), link=False) as (there, here):
        here.scenes, here.actions = list(there.scenes), list(there.actions)
        if not there.scenes:
            here.objects = list(there.objects)
        names = list(there.actions)
    actions = {action: name for action, name in zip(here.actions, names, strict=True) if action is not None}
    return actions, next((scene for scene in here.scenes if scene is not None), bpy.context.scene)


@contextmanager
def _refusals(path: Path) -> Iterator[None]:
    """Whatever an importer raises on a damaged file becomes a sentence."""
    try:
        yield
    except MocapError:
        raise
    except Exception as error:
        reason = characters._reason(error, path)
        raise FileError(f"Blender cannot read this file ({reason}); export it again from where it was made.", path) from error


def _armatures(path: Path, objects: Iterable[bpy.types.Object]) -> list[bpy.types.Object]:
    found = [obj for obj in objects if obj.type == "ARMATURE" and len(obj.data.bones)]
    if not found:
        raise FileError("There is no skeleton in this file, so there is no take in it.", path)
    return sorted(found, key=lambda obj: -len(obj.data.bones))


def _is_skinned(obj: bpy.types.Object) -> bool:
    return obj.type == "MESH" and any(modifier.type == "ARMATURE" for modifier in obj.modifiers)


# --- which action is whose -----------------------------------------------------------------------------------------------------------


def _shared_out(armatures: list[bpy.types.Object], actions: list[bpy.types.Action]) -> list[Playing]:
    """For each armature its NLA strips and its actions.

    An action that suits several goes to those that use it, else to the one it is named after, else to the one with the most bones.
    """
    suited = {obj: [one for one in playing.suitable(obj) if one.action in actions] for obj in armatures}
    out: list[Playing] = []
    for obj in armatures:
        if playing.strip_range(obj) is not None:
            out.append(playing.choose(obj))
        for one in suited[obj]:
            others = [other for other in armatures if any(o.action == one.action for o in suited[other])]
            users = [other for other in others if one.action in _used(other)]
            named = [other for other in others if one.action.name.startswith(other.name + "|")]
            if obj in (users or named or others[:1]):
                out.append(one)
    return out


def _used(obj: bpy.types.Object) -> set[bpy.types.Action]:
    animation = obj.animation_data
    if animation is None:
        return set()
    strips = [strip.action for track in animation.nla_tracks for strip in track.strips]
    return {action for action in (animation.action, *strips) if action is not None}


def _stack_name(one: Playing) -> str:
    """The stack of an action called ``armature|stack`` or ``armature|stack|layer``; one written by Blender has the armature in it again."""
    parts = one.name.split("|")
    own = re.sub(r"\.\d{3}$", "", one.obj.name)
    while parts and re.sub(r"\.\d{3}$", "", parts[0]) == own:
        parts.pop(0)
    return parts[0] if parts else own


# --- sampling ------------------------------------------------------------------------------------------------------------------------


def _sampled(
    path: Path,
    found: list[tuple[Playing, Fraction, bpy.types.Scene]],
    names: list[str],
    *,
    trust_keys: bool,
) -> Steps[list[Take]]:
    if not found:
        raise FileError("No animation in this file moves a skeleton.", path)
    several = len({one.obj for one, _fps, _scene in found}) > 1
    takes: list[Take] = []
    for k, ((one, fps, scene), name) in enumerate(zip(found, names, strict=True)):
        frames, rate, notes = _samples(one, fps, scene, trust_keys=trust_keys)
        take = yield from _part(sources.sample_steps(one, frames, fps, scene=scene, rate=rate), k, len(found))
        kind = "FBX" if trust_keys else "Blender"
        called = f"{name} {one.obj.name}" if several and names.count(name) > 1 else name
        takes.append(replace(take, name=called, notes=(*take.notes, *notes), facts={**take.facts, "format": kind}))
    return takes


def _samples(one: Playing, fps: Fraction, scene: bpy.types.Scene, *, trust_keys: bool) -> tuple[Array, Fraction, list[str]]:
    """Scene frames to sample at ``(F,)``, and their rate."""
    keys = [curves.key_frames(curve) for curve in one.curves]
    keys = [k for k in keys if len(k)]
    times = grid.distinct(np.concatenate(keys) / float(fps)) if keys and not one.strips else np.zeros(0)
    rate = grid.uniform_rate(times)
    if rate is not None and (trust_keys or rate > fps):
        return times[0] * float(fps) + timeline.uniform_times(len(times), rate) * float(fps), rate, []
    first, last = one.frame_range() or (scene.frame_start, scene.frame_end)
    return np.arange(np.floor(first + _NEAR), np.ceil(last - _NEAR) + 1.0), fps, []


def _part(steps: Steps[Take], k: int, count: int) -> Steps[Take]:
    """One of ``count`` works that follow on each other."""
    try:
        while True:
            yield (k + next(steps)) / count
    except StopIteration as end:
        return end.value
    finally:
        steps.close()


def _as_asked(takes: list[Take], options: ReadOptions) -> list[Take]:
    """What a person says about the file instead of what Blender made of it. ``up`` is among the axes after the import."""
    out: list[Take] = []
    for take in takes:
        if options.up not in (None, "Z"):
            take = take.turned(orientation.turn_to_z(options.up))
        if options.rest_up not in (None, options.up or "Z"):
            undo = orientation.turn_to_z(options.up or "Z") * np.array([1.0, -1.0, -1.0, -1.0])
            take = _rest_turned(take, quat.mul(orientation.turn_to_z(options.rest_up), undo))
        if options.unit not in (None, 1.0):
            take = take.scaled(options.unit)
        if options.rate is not None:
            take = replace(take, rate=options.rate, times=timeline.uniform_times(take.frames, options.rate))
        out.append(take)
    return out


def _rest_turned(take: Take, turn: Array) -> Take:
    rotations, translations = take.skeleton.rest_rotations.copy(), take.skeleton.rest_translations.copy()
    roots = list(take.skeleton.roots)
    rotations[roots], translations[roots] = quat.mul(turn, rotations[roots]), quat.rotate(turn, translations[roots])
    return replace(take, skeleton=take.skeleton.with_rest(rotations, translations))
