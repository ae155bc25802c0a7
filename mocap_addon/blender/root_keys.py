# SPDX-License-Identifier: GPL-3.0-or-later
"""The keys of an action that root motion is about, as a motion: of the hips, of what carries them, of what else hangs on that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import bpy
import numpy as np
from numpy.typing import NDArray

from .. import rig
from ..motion import quat
from ..motion.errors import RigError
from ..retarget.align import Body
from ..retarget.frames import rest_pose, to_character
from ..retarget.motion import PoseMotion
from ..retarget.root_motion import RootChain
from ..retarget.root_source import chain_of
from . import armature, compat, curves, routing
from .armature import Target
from .baseline import Baseline
from .channels import OBJECT_GROUP, Channels, bone_path, in_mode, rotation_of, rotation_path, to_rotations
from .recipes import Place, place_of
from .scenes import scene_rate

Array = NDArray[np.float64]
Curves = Mapping[tuple[str, int], bpy.types.FCurve]

_ROTATIONS = ("rotation_quaternion", "rotation_euler", "rotation_axis_angle")
_SCALED = 1e-4
_GAP = 1.001
"""Frames: keys farther apart than this leave frames between them without one."""


@dataclass(frozen=True, eq=False)
class RootKeys:
    """What was read.

    Parameters
    ----------
    target : Target
        With the object where it stands when nothing carries it.
    chain : RootChain
    frames : (F,) array
        Scene frames.
    motion : PoseMotion
        At those frames: hips, root, carriers, bones that hang on them, and the object; with ``feet`` also the legs.
    changing : frozenset of int
        Those of its bones whose keys root motion is divided among.
    found : mapping from path and index to f-curve
        All that play.
    """

    target: Target
    chain: RootChain
    frames: Array
    motion: PoseMotion
    changing: frozenset[int]
    found: Curves

    def paths(self) -> set[str]:
        """Data paths of everything that may be rewritten, whether it has curves or not."""
        out = {"location", rotation_path(OBJECT_GROUP, in_mode(quat.identity(1), self.target.rotation_mode)[0])}
        for bone in self.changing:
            name, mode = self.target.skeleton.names[bone], self.target.rotation_modes[bone]
            out |= {f"{bone_path(name)}.location", rotation_path(name, in_mode(quat.identity(1), mode)[0])}
        return out


def read(obj: bpy.types.Object, *, feet: bool = False) -> RootKeys:
    """The root's keys in the action of an armature object. Nothing is changed.

    Raises
    ------
    MocapError
        No action, no keys for hips or anything that carries them, no hips, or a scaled bone above them.
    """
    scene = bpy.context.scene
    armature.check(obj)
    animation = obj.animation_data
    if animation is None or animation.action is None:
        raise RigError(f'"{obj.name}" has no action; put a take onto it first, or choose one of its actions.')
    if compat.SLOTTED and compat.assigned_slot(animation) is None:
        raise RigError(f'The action "{animation.action.name}" has no slot for "{obj.name}"; choose one beside the action.')
    found = {(c.data_path, c.array_index): c for c in compat.moving_curves(animation) if curves.is_playing(c)}
    target = armature.read(obj, scene, place_of(animation.action) or _first_place(obj, found))
    chain = _chain(target)
    turned, moved = _keyed(target, found)
    wanted = _wanted(chain, turned | moved, feet)
    _check_scale(obj, target, chain, found)
    reader = _Reader(obj, target, found)
    changing = frozenset({*chain.held(turned | moved), *chain.lifting})
    carrying = {*changing, *chain.skeleton.ancestors(chain.hips)}
    frames = _frames(found, [path for bone in carrying for path in _paths(target, bone)] + ["location", *_ROTATIONS])
    if frames is None:
        raise RigError(f'The action "{animation.action.name}" moves neither the hips of "{obj.name}" nor what carries them.')
    fps = scene_rate(scene)
    motion = reader.motion(animation.action.name, frames, (frames - frames[0]) / float(fps), wanted, turned, moved)
    return RootKeys(target, chain, frames, motion, changing, found)


def of_baseline(keys: RootKeys, bake: Baseline) -> PoseMotion | None:
    """The same part of what was baked, for bones that the bake has; None where it lies at other frames, in other modes, or lacks them."""
    if len(bake.frames) != len(keys.frames) or np.abs(bake.key_frames - keys.frames).max() > 1e-3:
        return None
    count, target, motion = len(keys.frames), keys.target, keys.motion
    values = {c.path: np.broadcast_to(c.values, (count, c.values.shape[1])) for c in bake.channels if len(c.values) in (1, count)}
    object_turn = in_mode(quat.identity(1), target.rotation_mode)[0]
    turns = [_paths(target, bone)[1] for bone in motion.bones]
    moves = [_paths(target, bone)[0] for bone in motion.moving]
    whole = [*(["location"] if motion.placement is not None else []), *([object_turn] if motion.turning is not None else [])]
    if any(path not in values for path in (*turns, *moves, *whole)):
        return None
    rotations = np.empty((count, len(turns), 4), order="F")
    locations = np.empty((count, len(moves), 3), order="F")
    for k, (bone, path) in enumerate(zip(motion.bones, turns, strict=True)):
        rotations[:, k] = to_rotations(values[path], target.rotation_modes[bone])
    for m, (bone, path) in enumerate(zip(motion.moving, moves, strict=True)):
        locations[:, m] = target.metres(bone, values[path].astype(np.float64))
    return replace(
        motion,
        rotations=rotations,
        locations=locations,
        placement=None if motion.placement is None else target.placement(values["location"].astype(np.float64)),
        turning=None if motion.turning is None else target.object_turns(to_rotations(values[object_turn], target.rotation_mode)),
    )


def rest_channels(keys: RootKeys, written: Iterable[Channels]) -> list[Channels]:
    """One key at rest for everything that may have been moved before and has no keys now, so that nothing stays in the pose."""
    done = {channel.path for channel in written}
    before = {path for path, _ in keys.found}
    target, out = keys.target, list[Channels]()
    for bone in sorted(keys.changing):
        name, mode = target.skeleton.names[bone], target.rotation_modes[bone]
        prop, values = in_mode(quat.identity(1), mode)
        for path, rest in ((f"{bone_path(name)}.location", np.zeros((1, 3))), (rotation_path(name, prop), values)):
            if path in before and path not in done:
                out.append(Channels(path, name, rest, kind="rest"))
    prop, values = in_mode(target.rotation[None], target.rotation_mode)
    for path, rest in (("location", target.location[None]), (prop, values)):
        if path in before and path not in done:
            out.append(Channels(path, OBJECT_GROUP, rest, kind="rest"))
    return out


def _chain(target: Target) -> RootChain:
    roles = rig.match(target.skeleton)
    hips = roles.one("hips")
    if hips is None:
        raise RigError(f'No bone of "{target.name}" is known as its hips, so nothing can be taken off them or put into them.')
    pose = rest_pose(target.skeleton, roles.joints)
    body = Body(pose, to_character(pose, target.object_rotation)[0])
    carrier, _ = routing.carrier_above(target, hips, ())
    return chain_of(target.skeleton, body, roles.one("root"), target.inherits_rotation, carrier)


def _paths(target: Target, bone: int) -> list[str]:
    base = bone_path(target.skeleton.names[bone])
    return [f"{base}.location", f"{base}.{in_mode(quat.identity(1), target.rotation_modes[bone])[0]}"]


def _keyed(target: Target, found: Curves) -> tuple[set[int], set[int]]:
    """Bones with curves for their rotation, in the mode they are in, and for their location."""
    have = {path for path, _ in found}
    turned, moved = set[int](), set[int]()
    for bone in range(len(target.skeleton)):
        location, rotation = _paths(target, bone)
        if location in have and not target.connected[bone]:
            moved.add(bone)
        if rotation in have:
            turned.add(bone)
    return turned, moved


def _wanted(chain: RootChain, keyed: set[int], feet: bool) -> set[int]:
    """Bones to read: what is held, what carries it, and the legs where the ground is asked for."""
    ends = {*chain.held(keyed), *chain.lifting, *(chain.feet if feet else ())}
    return {above for bone in ends for above in (bone, *chain.skeleton.ancestors(bone))}


def _check_scale(obj: bpy.types.Object, target: Target, chain: RootChain, found: Curves) -> None:
    for bone in (chain.hips, *chain.skeleton.ancestors(chain.hips)):
        name = target.skeleton.names[bone]
        values = list(obj.pose.bones[name].scale)
        for i in range(3):
            curve = found.get((f"{bone_path(name)}.scale", i))
            if curve is not None:
                values += [point.co[1] for point in curve.keyframe_points]
        if bone != chain.hips and max(abs(v - 1.0) for v in values) > _SCALED:
            raise RigError(f'The bone "{name}" above the hips is scaled; clear its scale (Alt+S) and delete its scale keys first.')


def _first_place(obj: bpy.types.Object, found: Curves) -> Place | None:
    """Where an object that is animated by hand stands at its first key; None where it is not animated."""
    have = {path for path, _ in found}
    turned = any(path in have for path in _ROTATIONS)
    if "location" not in have and not turned:
        return None
    first = min(float(curves.key_frames(c)[0]) for (path, _), c in found.items() if path in ("location", *_ROTATIONS))
    at = np.array([first])
    reader = _Values(found)
    location = reader.read("location", np.array(obj.location, dtype=np.float64), at)[0]
    prop, still = in_mode(rotation_of(obj)[None], obj.rotation_mode)
    rotation = to_rotations(reader.read(prop, still[0], at), obj.rotation_mode)[0]
    return Place(tuple(location.tolist()), tuple(rotation.tolist()) if turned else None)


def _frames(found: Curves, paths: Iterable[str]) -> Array | None:
    """Frames of all keys of the paths; whole frames between them too where keys lie farther apart or are not joined by straight lines."""
    wanted = set(paths)
    playing = [curve for (path, _), curve in found.items() if path in wanted]
    keys = [frames for curve in playing if len(frames := curves.key_frames(curve))]
    if not keys:
        return None
    alike = all(np.array_equal(one, keys[0]) for one in keys)
    frames = keys[0].copy() if alike else np.unique(np.concatenate(keys))
    if len(frames) > 1 and np.diff(frames).max() > _GAP:
        frames = np.unique(np.concatenate([frames, np.arange(np.ceil(frames[0]), np.floor(frames[-1]) + 1.0)]))
    return frames[np.concatenate([[True], np.diff(frames) > 1e-3])]


class _Values:
    """Properties over frames: from the curves, else as they stand."""

    def __init__(self, found: Curves) -> None:
        self._found = found

    def read(self, path: str, still: Array, frames: Array) -> Array:
        """(F, n)."""
        out = np.empty((len(frames), len(still)), order="F")
        for i, value in enumerate(still):
            curve = self._found.get((path, i))
            out[:, i] = value if curve is None else curves.evaluate(curve, frames)
        return out


class _Reader(_Values):
    def __init__(self, obj: bpy.types.Object, target: Target, found: Curves) -> None:
        super().__init__(found)
        self._obj, self._target = obj, target

    def motion(self, name: str, frames: Array, times: Array, wanted: set[int], turned: set[int], moved: set[int]) -> PoseMotion:
        """Bones with curves, and those above them that are posed by hand."""
        target = self._target
        rotations: dict[int, Array] = {}
        locations: dict[int, Array] = {}
        for bone in sorted(wanted):
            pose, mode = self._obj.pose.bones[target.skeleton.names[bone]], target.rotation_modes[bone]
            location, rotation = _paths(target, bone)
            still = rotation_of(pose)
            if bone in turned or quat.angle(still, quat.IDENTITY) > 1e-6:
                values = self.read(rotation, in_mode(still[None], mode)[1][0], frames)
                rotations[bone] = quat.continuous(to_rotations(values, mode))
            place = np.array(pose.location, dtype=np.float64)
            if bone in moved or (np.abs(place).max() > 1e-7 and not target.connected[bone]):
                locations[bone] = target.metres(bone, self.read(location, place, frames))
        have = {path for path, _ in self._found}
        prop, still = in_mode(target.rotation[None], target.rotation_mode)
        placement = turning = None
        if "location" in have:
            placement = target.placement(self.read("location", target.location, frames))
        if prop in have:
            turning = quat.continuous(target.object_turns(to_rotations(self.read(prop, still[0], frames), target.rotation_mode)))
        return PoseMotion(
            name,
            times,
            tuple(rotations),
            np.stack(list(rotations.values()), axis=1) if rotations else np.zeros((len(frames), 0, 4)),
            tuple(locations),
            np.stack(list(locations.values()), axis=1) if locations else np.zeros((len(frames), 0, 3)),
            placement=placement,
            turning=turning,
        )
