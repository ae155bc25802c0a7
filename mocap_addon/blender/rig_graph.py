# SPDX-License-Identifier: GPL-3.0-or-later
"""A rig's motion as Blender evaluates it, frame by frame, in a scene of its own.

The rig is linked into an empty scene that no window shows, and that scene is stepped: everything the rig depends on is evaluated with it,
at that scene's frame, and nothing else. What such a scene evaluates is not written back to the objects, so the person's frame, pose and
unkeyed changes stay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import kinematics, quat, scaled_pose
from ..motion.errors import RigError
from ..motion.steps import Progress, Steps, run
from . import compat
from .playing import Playing
from .rig_curves import Channels, at_rest
from .rig_world import Body, RigMotion

Array = NDArray[np.float64]

SCALED = "Bones are scaled in this motion:"
"""How the note on scaled bones begins."""

_BLOCK = 1000
"""Frames whose matrices stand in memory at once."""

_EVEN = 1e-4
"""A scale that differs from 1 by less has only been rounded."""

_TINY = 1e-9

_SNAP = 1e-6
"""Share of the rig's size: a bone that leaves its rest offset by less has only been rounded."""

_POSE = (("location", 3), ("rotation_quaternion", 4), ("rotation_euler", 3), ("rotation_axis_angle", 4), ("scale", 3))
_OBJECT = ("location", "rotation_euler", "rotation_quaternion", "rotation_axis_angle", "scale")
_OBJECT = (*_OBJECT, "delta_location", "delta_rotation_euler", "delta_rotation_quaternion", "delta_scale")


def steps(chosen: Playing, body: Body, frames: Array) -> Steps[RigMotion]:
    """The motion at scene frames ``(F,)``, a frame a step.

    Raises
    ------
    RigError
        The rig cannot be evaluated as asked (in Edit Mode, another action on a linked rig).
    """
    obj = chosen.obj
    if obj.data.is_editmode:
        raise RigError(f'"{obj.name}" is in Edit Mode, where Blender evaluates no motion; leave it first.')
    names = body.skeleton.names
    place = {bone.name: i for i, bone in enumerate(obj.pose.bones)}
    order = [place[name] for name in names]
    rotations, translations = np.empty((len(frames), len(names), 4), order="F"), np.empty((len(frames), len(names), 3), order="F")
    world = np.empty((len(frames), 4, 4))
    scaled = np.zeros(len(names), dtype=bool)
    scales: NDArray[np.float32] | None = None
    inherit = [obj.data.bones[name].inherit_scale for name in names]
    mirrored = np.zeros(len(names), dtype=bool)
    poses: list[scaled_pose.ScaledPose | None] = []
    with _evaluated(chosen) as at:
        for start in range(0, len(frames), _BLOCK):
            part = slice(start, start + _BLOCK)
            flat = np.empty((len(frames[part]), 16 * len(place)), dtype=np.float32)
            for i, frame in enumerate(frames[part]):
                world[start + i] = at(float(frame), flat[i])
                yield (start + i + 1) / len(frames)
            # foreach_get gives columns one after another, so each 4x4 block is transposed
            pose = flat.reshape(len(flat), -1, 4, 4).transpose(0, 1, 3, 2)[:, order].astype(np.float64)
            linear = pose[..., :3, :3]
            lengths = np.linalg.norm(linear, axis=-2)
            changed = (np.abs(lengths - 1.0) > _EVEN).any(axis=(0, 2))
            scaled |= changed
            if changed.any():
                if scales is None:
                    scales = np.ones((len(frames), len(names), 3), dtype=np.float32)
                scales[part] = _own_scales(linear, lengths, body.skeleton.parents.tolist(), inherit)
            large = (np.abs(lengths - 1.0) > scaled_pose.STILL).any()
            poses.append(scaled_pose.taken_apart(pose, body.skeleton.parents.tolist()) if large else None)
            mirrored |= (np.linalg.det(linear) <= 0.0).any(axis=0)
            turned = quat.from_matrix(_rotation_part(linear, lengths))
            rotations[part], translations[part] = kinematics.inverse(turned, pose[..., :3, 3], body.skeleton.parents)
    _snap(translations, body)
    together = _together(poses, rotations, translations)
    if together is not None:
        _snap(together.translations, body)
    notes: list[str] = []
    if scaled.any():
        notes.append(
            _named(
                SCALED + " {}. How they lie and turn was taken; the scale itself is where Scale is on.",
                names,
                scaled,
            )
        )
    if mirrored.any():
        notes.append(_named("Bones are mirrored by a negative scale in this motion, so their rotations may be wrong: {}.", names, mirrored))
    own = {} if scales is None else {j: scales[:, j].astype(np.float64) for j in np.flatnonzero(scaled).tolist()}
    own = {j: values for j, values in own.items() if np.abs(values - 1.0).max() > _EVEN}
    return RigMotion(rotations, translations, world, tuple(notes), own, together)


def _own_scales(linear: Array, lengths: Array, parents: list[int], inherit: list[str]) -> Array:
    """(F, J, 3): how much each bone is scaled beyond what it inherits, from the linear parts ``(F, J, 3, 3)`` of the bones' poses."""
    out = lengths.copy()
    for j, p in enumerate(parents):
        if p < 0 or inherit[j] in ("NONE", "NONE_LEGACY"):
            continue
        if inherit[j] == "AVERAGE":
            out[:, j] /= np.cbrt(np.abs(np.linalg.det(linear[:, p])))[:, None]
        elif inherit[j] == "ALIGNED":
            out[:, j] /= np.maximum(lengths[:, p], _TINY)
        elif (np.abs(lengths[:, p] - 1.0) > _EVEN).any():
            good = np.abs(np.linalg.det(linear[:, p])) > _TINY  # the scale of what hangs on a bone without extent cannot be told
            out[good, j] = np.linalg.norm(np.linalg.solve(linear[good, p], linear[good, j]), axis=-2)
            out[~good, j] = 1.0
    return out


def _together(poses: list[scaled_pose.ScaledPose | None], rotations: Array, translations: Array) -> scaled_pose.ScaledPose | None:
    """The pose of all blocks; None where none of them has a scale."""
    if not any(poses):
        return None
    parts: list[scaled_pose.ScaledPose] = []
    for start, one in zip(range(0, len(rotations), _BLOCK), poses, strict=True):
        part = slice(start, start + _BLOCK)
        parts.append(one or scaled_pose.unscaled(rotations[part], translations[part]))
    return scaled_pose.joined(parts)


def present(obj: bpy.types.Object, body: Body) -> RigMotion:
    """The rig as it stands now, one sample: constraints and what was posed without keys included.

    Raises
    ------
    RigError
        It is not evaluated in this view layer.
    """
    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    if not seen.is_evaluated:
        raise RigError(f'"{obj.name}" is disabled in this view layer; enable it, so that its pose can be read.')
    flat = np.empty(16 * len(seen.pose.bones), dtype=np.float32)
    seen.pose.bones.foreach_get("matrix", flat)
    order = [seen.pose.bones.find(name) for name in body.skeleton.names]
    pose = flat.reshape(1, -1, 4, 4).transpose(0, 1, 3, 2)[:, order].astype(np.float64)
    linear = pose[..., :3, :3]
    turned = quat.from_matrix(_rotation_part(linear, np.linalg.norm(linear, axis=-2)))
    rotations, translations = kinematics.inverse(turned, pose[..., :3, 3], body.skeleton.parents)
    return RigMotion(rotations, translations, np.array(seen.matrix_world, dtype=np.float64)[None])


def read(chosen: Playing, body: Body, frames: Array, progress: Progress | None = None) -> RigMotion:
    """:func:`steps` in one go; :class:`MocapError` when ``progress`` says False."""
    return run(steps(chosen, body, frames), progress, f'Reading "{chosen.obj.name}" was cancelled.')


def _rotation_part(linear: Array, lengths: Array) -> Array:
    """Scale and shear taken out of ``(F, J, 3, 3)``: columns to length one, made square to each other where they are not."""
    m = linear / np.maximum(lengths, 1e-12)[..., None, :]
    skew = np.abs(np.swapaxes(m, -1, -2) @ m - np.eye(3)).max(axis=(-1, -2))
    bent = (skew > 1e-5) | (np.linalg.det(m) <= 0.0)
    if bent.any():
        u, _, vt = np.linalg.svd(np.nan_to_num(m[bent]))
        u[..., 2] *= np.linalg.det(u @ vt)[..., None]
        m[bent] = u @ vt
    return m


def _snap(translations: Array, body: Body) -> None:
    rest = body.skeleton.rest_translations
    near = _SNAP * max(1e-3, float(np.abs(body.skeleton.rest_global_positions).max()))
    for j in range(len(rest)):
        if float(np.abs(translations[:, j] - rest[j]).max()) < 10.0 * near:
            translations[:, j] = rest[j]


def _named(sentence: str, names: tuple[str, ...], picked: NDArray[np.bool_]) -> str:
    found = [names[j] for j in np.flatnonzero(picked)]
    return sentence.format(", ".join(found[:5]) + (f" and {len(found) - 5} more" if len(found) > 5 else ""))


# --- a scene of its own --------------------------------------------------------------------------------------------------------------


@contextmanager
def _evaluated(chosen: Playing) -> Iterator[Callable[[float, NDArray[np.float32]], Array]]:
    """Gives a function that steps to a frame, fills the bones' matrices in and returns the object's world matrix."""
    obj = chosen.obj
    with ExitStack() as undo:
        _show(obj, undo)
        if not chosen.assigned:
            _assign(chosen, undo)
        scene = bpy.data.scenes.new("Mocap")
        undo.callback(lambda: bpy.data.scenes.remove(scene))
        scene.collection.objects.link(obj)
        layer = scene.view_layers[0]

        def at(frame: float, out: NDArray[np.float32]) -> Array:
            whole = int(np.floor(frame))
            scene.frame_set(whole, subframe=frame - whole)
            ready = obj.evaluated_get(layer.depsgraph)
            ready.pose.bones.foreach_get("matrix", out)
            return np.array(ready.matrix_world, dtype=np.float64)

        yield at


def _show(obj: bpy.types.Object, undo: ExitStack) -> None:
    """A disabled object is not evaluated, and one in its rest position not posed."""
    for owner, prop, wanted in ((obj, "hide_viewport", False), (obj.data, "pose_position", "POSE")):
        if getattr(owner, prop) != wanted:
            undo.callback(setattr, owner, prop, getattr(owner, prop))
            setattr(owner, prop, wanted)


def _assign(chosen: Playing, undo: ExitStack) -> None:
    """Let the rig play the chosen action alone; what other actions left behind in the pose is put to rest first."""
    obj = chosen.obj
    if obj.library is not None:
        raise RigError(f'"{obj.name}" is linked from another file, so only what it plays there can be evaluated, not another action.')
    if obj.animation_data is not None and obj.animation_data.use_tweak_mode:
        raise RigError(f'An NLA strip of "{obj.name}" is being edited; leave tweak mode (Tab in the NLA editor) first.')
    undo.callback(restorer(obj))
    left_behind = Channels(chosen, np.zeros(1)).left_behind if obj.animation_data else set()
    animation = obj.animation_data or obj.animation_data_create()
    animation.use_nla = False
    _put_to_rest(obj, left_behind)
    compat.assign(animation, chosen.action, chosen.slot)


def posed(obj: bpy.types.Object) -> bpy.types.bpy_prop_collection:
    """The pose bones; an object that a script has just made has some once it was evaluated.

    Raises
    ------
    RigError
        It never is, for it stands in no collection of the scene.
    """
    if obj.pose is None:
        bpy.context.view_layer.update()
    if obj.pose is None:
        raise RigError(f'"{obj.name}" is in no collection of this scene, so it has no pose; link it to one.')
    return obj.pose.bones


def restorer(obj: bpy.types.Object) -> Callable[[], None]:
    """What puts action, slot, NLA switch, pose and object transform back as they are now."""
    animation = obj.animation_data
    kept = None if animation is None else (animation.action, compat.assigned_slot(animation), animation.use_nla)
    bones = posed(obj)
    pose = {name: np.empty(width * len(bones), dtype=np.float32) for name, width in _POSE}
    for name, values in pose.items():
        bones.foreach_get(name, values)
    place = {name: tuple(getattr(obj, name)) for name in _OBJECT}

    def restore() -> None:
        if kept is None:
            obj.animation_data_clear()
        else:
            action, slot, use_nla = kept
            compat.assign(obj.animation_data, action, slot)
            obj.animation_data.use_nla = use_nla
        # What was assigned is evaluated once more on the present frame; only then does the pose as it was, with unkeyed changes, stay.
        bpy.context.view_layer.update()
        for name, values in pose.items():
            bones.foreach_set(name, values)
        for name, values in place.items():
            setattr(obj, name, values)
        obj.update_tag()
        bpy.context.view_layer.update()

    return restore


def _put_to_rest(obj: bpy.types.Object, left_behind: set[str]) -> None:
    for path in left_behind:
        owner_path, _, prop = path.rpartition(".")
        try:
            owner = obj.path_resolve(owner_path) if owner_path else obj
            setattr(owner, prop, at_rest(prop, len(getattr(owner, prop)))[0])
        except (AttributeError, ValueError, TypeError):
            continue  # a curve of a bone that is gone, or of a single value that has no say in the pose
