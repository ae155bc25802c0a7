# SPDX-License-Identifier: GPL-3.0-or-later
"""What a character's bones do when its controls play a motion, held against the motion that was meant.

A few frames are evaluated by Blender, constraints, drivers and solvers included, in a scene of its own: the person's frame and pose stay.
Where a rig spreads a twist along a limb or a chain of its own accord, or a solver bends a limb, the roll there is the rig's and only the
direction counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..retarget import PoseMotion
from ..retarget.controls import Plan, body_motions
from .armature import Target

Array = NDArray[np.float64]

FRAMES = 8
"""How many frames are looked at."""

_WHOLE = ("hips", "head", "LowerArm", "Hand", "LowerLeg", "Foot", "Toes")
"""Roles whose roll a rig does not spread."""

_MILLIMETRES, _DEGREES = 1.0, 0.5
"""Differences that are worth a word."""

_MOVING, _MISSING = 5.0, 0.9
"""Degrees that a joint should turn for anything to be said of it, and the share of them that is missing where keys have no effect."""


@dataclass(frozen=True, eq=False)
class Difference:
    """Evaluated against meant, over the frames looked at: ``distance (J,)`` in millimetres and ``angle (J,)`` in degrees for each of the
    joints ``names``, and the joints that stay still although they should turn."""

    names: tuple[str, ...]
    distance: Array
    angle: Array
    idle: tuple[str, ...]
    frames: int

    def sentences(self) -> list[str]:
        """What a person should know."""
        far, turned = int(np.argmax(self.distance)), int(np.argmax(self.angle))
        most = f"{self.distance[far]:.1f} mm ({self.names[far]}) and {self.angle[turned]:.1f} degrees ({self.names[turned]})"
        if self.distance[far] < _MILLIMETRES and self.angle[turned] < _DEGREES:
            out = [f"Checked at {self.frames} frames: played by its controls, the character follows the motion to within {most}."]
        else:
            out = [f"Checked at {self.frames} frames: played by its controls, the character differs from the motion by up to {most}."]
        if self.idle:
            more = f" and {len(self.idle) - 5} more" if len(self.idle) > 5 else ""
            out.append(f"Keys have no effect on: {', '.join(self.idle[:5])}{more}; other constraints or drivers hold them.")
        return out


def difference(
    obj: bpy.types.Object, target: Target, plan: Plan, motion: PoseMotion, keys: Array, frames: int = FRAMES
) -> Difference | None:
    """How far the character's bones are from the body's motion.

    Parameters
    ----------
    obj : armature object
        With the action that was made assigned.
    target : Target
    plan : Plan
    motion : PoseMotion
        The body's.
    keys : (F,) array
        Scene frames of its samples.
    frames : int
        How many of them to look at.

    Returns
    -------
    Difference or None
        None where Blender does not evaluate the character: it is disabled or shows its rest position.
    """
    if obj.hide_viewport or obj.data.pose_position == "REST" or obj.data.is_editmode or not len(keys):
        return None
    picked = np.unique(np.linspace(0, len(keys) - 1, min(frames, len(keys))).round().astype(int))
    body = plan.body
    joints = list(body.joints)
    names = tuple(target.skeleton.names[j] for j in joints)
    rotations, positions = _evaluated(obj, target, joints, keys[picked])
    meant = body_motions(motion, body)
    rest_r, rest_p = target.skeleton.rest_global_rotations[joints], target.skeleton.rest_global_positions[joints]
    turn = np.stack([meant[j].rotation[picked] for j in joints], axis=1)
    place = np.stack([meant[j].apply(p)[picked] for j, p in zip(joints, rest_p, strict=True)], axis=1)
    now = quat.mul(rotations, quat.inv(rest_r))
    whole = np.isin(np.arange(len(joints)), _with_roll(plan))
    along = quat.rotate(rest_r, np.array([0.0, 1.0, 0.0]))
    swing = _between(quat.rotate(now, along), quat.rotate(turn, along))
    angle = np.degrees(np.where(whole, quat.angle(now, turn), swing)).max(axis=0)
    distance = np.linalg.norm(positions - place, axis=-1).max(axis=0) * 1000.0
    keyed = {body.joints[k] for k in motion.bones}
    idle = (angle > _MOVING) & _idle(now, turn, along, whole, body.skeleton.parents)
    return Difference(
        names, distance, angle, tuple(n for n, j, still in zip(names, joints, idle, strict=True) if still and j in keyed), len(picked)
    )


def _with_roll(plan: Plan) -> list[int]:
    """Joints of the body whose roll is the motion's: neither spread by the rig nor left to a solver."""
    solved = {role for limb in plan.inverse for role in limb.roles[:2]}
    roles = plan.body.roles.joints
    return [k[0] for role, k in roles.items() if role.removeprefix("left").removeprefix("right") in _WHOLE and role not in solved]


def _idle(now: Array, meant: Array, along: Array, whole: NDArray[np.bool_], parents: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(J,): whether all is missing of what a joint should do in its parent's frame after the first frame looked at; where the roll is the
    rig's, of what its direction ``along (J, 3)`` should do."""

    def local(q: Array) -> Array:
        above = np.where(parents >= 0, parents, 0)
        return np.where((parents >= 0)[:, None], quat.mul(quat.inv(q[:, above]), q), q)

    def turns(q: Array, other: Array) -> Array:
        swing = _between(quat.rotate(q, along), quat.rotate(other, along))
        return np.degrees(np.where(whole, quat.angle(q, other), swing)).max(axis=0)

    is_, should = local(now), local(meant)
    same_start = quat.mul(should[:1], quat.mul(quat.inv(is_[:1]), is_))
    wanted = turns(should, should[:1])
    return (wanted > _MOVING) & (turns(same_start, should) > _MISSING * wanted)


def _between(u: Array, v: Array) -> Array:
    return 2.0 * np.arctan2(np.linalg.norm(u - v, axis=-1), np.linalg.norm(u + v, axis=-1))


def _evaluated(obj: bpy.types.Object, target: Target, joints: list[int], frames: Array) -> tuple[Array, Array]:
    """World rotations ``(F, J, 4)`` and places ``(F, J, 3)`` (metres, from the object's origin at rest) of bones."""
    names = [target.skeleton.names[j] for j in joints]
    with _scene_of(obj) as scene:
        matrices = np.empty((len(frames), len(names), 4, 4))
        for i, frame in enumerate(frames.tolist()):
            whole = int(np.floor(frame))
            scene.frame_set(whole, subframe=frame - whole)
            bones = obj.evaluated_get(scene.view_layers[0].depsgraph).pose.bones
            matrices[i] = [bones[name].matrix for name in names]
    linear = matrices[..., :3, :3]
    linear = linear / np.maximum(np.linalg.norm(linear, axis=-2, keepdims=True), 1e-12)
    rotations = quat.mul(target.object_rotation, quat.from_matrix(linear))
    return rotations, quat.rotate(target.object_rotation, matrices[..., :3, 3]) * target.metres_per_unit


@contextmanager
def _scene_of(obj: bpy.types.Object) -> Iterator[bpy.types.Scene]:
    """A scene with nothing but the object, which is gone afterwards."""
    scene = bpy.data.scenes.new("Mocap")
    try:
        scene.collection.objects.link(obj)
        yield scene
    finally:
        bpy.data.scenes.remove(scene)
