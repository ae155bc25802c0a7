# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion that feet are planted in, and the new one made keys again.

Where keys move the character's own bones, hips and legs alone are read and written, in arrays. Where controls drive them, the new motion
goes onto those controls that have to change. :mod:`.feet_reading` makes it from an action.

World, metres: a bone in the armature's axes stands at ``M(t) P(t)`` with ``M`` the object's world matrix (:mod:`.rig_world`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import bpy
import numpy as np
from numpy.typing import NDArray

from ..feet.body import Feet
from ..feet.result import FeetResult
from ..motion import quat
from ..motion.take import Take
from ..retarget.controls import Plan
from ..retarget.motion import PoseMotion
from ..retarget.travel import WHOLE
from ..rig.roles import SIDES
from . import control_rig, curves, rig_links
from .armature import Target
from .channels import bone_path, setting_path
from .playing import Playing

Array = NDArray[np.float64]

LEG = ("UpperLeg", "LowerLeg", "Foot", "Toes")
_CHANGED = 1e-6
"""Radians and metres: a control that differs by less is left alone."""


@dataclass(frozen=True, eq=False)
class LegMotion:
    """A character's motion as far as feet need it.

    Parameters
    ----------
    obj : armature object
    target : Target
    chosen : Playing
        The action that it was read from.
    frames : (F,) array
        Scene frames.
    take : Take
        In the world, metres; times from the first frame on. Joints are ``joints`` of the target.
    feet : Feet
        By joints of the take.
    joints : tuple of int
    plan : Plan or None
        Where controls drive the character.
    turn, place : (F or 1, 4) and (F or 1, 3) arrays
        How the object is turned, and where it is (metres).
    carrier : int or None
        What is moved in the hips' stead, see :mod:`.routing`.
    notes : tuple of str
    """

    obj: bpy.types.Object
    target: Target
    chosen: Playing
    frames: Array
    take: Take
    feet: Feet
    joints: tuple[int, ...]
    plan: Plan | None
    turn: Array
    place: Array
    carrier: int | None
    notes: tuple[str, ...]

    def motion(self, result: FeetResult) -> PoseMotion:
        """What has to be rewritten, at each of the frames."""
        return self._on_controls(result) if self.plan is not None else self._on_bones(result)

    def body(self, result: FeetResult) -> PoseMotion | None:
        """The new motion of the body behind the controls; None where there are none."""
        return None if self.plan is None else self._body_motion(result.onto(self.take), result.moving)

    # --- bones that are keyed themselves ----------------------------------------------------------------------------------------------

    def _on_bones(self, result: FeetResult) -> PoseMotion:
        take, target = self.take, self.target
        rest = take.skeleton.rest_rotations
        turned: dict[int, Array] = {}
        after: Take | None = None
        for k, joint in enumerate(result.joints):
            if target.inherits_rotation[self.joints[joint]]:
                turned[joint] = quat.mul(quat.inv(rest[joint]), result.local_rotations[:, k])
            else:  # turns in the armature's axes, whatever its parent does
                after = result.onto(take) if after is None else after
                rest_global = target.skeleton.rest_global_rotations[self.joints[joint]]
                own = quat.mul(target.object_rotation, quat.mul(quat.inv(self.turn), after.global_rotations[:, joint]))
                turned[joint] = quat.mul(quat.inv(rest_global), own)
        moved = self._pelvis(result)
        for m, joint in enumerate(result.moving):
            if joint != self.feet.hips:  # stretched legs
                offset = result.local_translations[:, m] - take.skeleton.rest_translations[joint]
                moved[self.joints[joint]] = quat.rotate(quat.inv(rest[joint]), offset)
        placement = moved.pop(WHOLE, None)
        rotations = np.empty((len(self.frames), len(turned), 4), order="F")
        for k, values in enumerate(turned.values()):
            rotations[:, k] = quat.continuous(values)
        return PoseMotion(
            take.name,
            take.times,
            tuple(self.joints[joint] for joint in turned),
            rotations,
            tuple(moved),
            np.stack(list(moved.values()), axis=1) if moved else np.zeros((len(self.frames), 0, 3)),
            placement=placement,
        )

    def _pelvis(self, result: FeetResult) -> dict[int, Array]:
        """Bone (or the object) -> its location, metres in its own rest frame, that takes the hips where they have to be."""
        offset = result.hips_offset
        if not np.any(np.abs(offset) > 1e-9):
            return {}
        frames, target = self.frames, self.target
        values = _Now(self.chosen)
        if self.carrier == WHOLE:
            return {WHOLE: target.placement(values.of("location", np.array(self.obj.location), frames)) + offset}
        bone = self.joints[self.feet.hips] if self.carrier is None else self.carrier
        pose = self.obj.pose.bones[target.skeleton.names[bone]]
        stored = values.of(f"{bone_path(pose.name)}.location", np.array(pose.location, dtype=np.float64), frames)
        above = int(target.skeleton.parents[bone])
        axes = self.turn if above < 0 else self.take.global_rotations[:, self.joints.index(above)]
        rest = target.skeleton.rest_rotations[bone]
        if above < 0:
            rest = quat.mul(quat.inv(target.object_rotation), rest)
        return {bone: target.metres(bone, stored) + quat.rotate(quat.inv(quat.mul(axes, rest)), offset)}

    # --- controls ------------------------------------------------------------------------------------------------------------------------

    def _on_controls(self, result: FeetResult) -> PoseMotion:
        """The keys of those controls that differ from what plays now."""
        plan = cast("Plan", self.plan)
        puppet = control_rig.Puppet(plan.body.skeleton, plan.body.roles, None, plan)
        before, after = (puppet.keys(self._body_motion(take, result.moving)) for take in (self.take, result.onto(self.take)))
        switched = tuple((bone, prop, value) for bone, prop, value in after.settings if self._differs(bone, prop, value))
        legs = {bone for side in SIDES for part in LEG for bone in plan.roles.get(f"{side}{part}", ())} if switched else set[int]()
        turned = [
            k
            for k, bone in enumerate(after.bones)
            if bone in legs
            or bone not in before.bones
            or quat.angle(before.rotations[:, before.bones.index(bone)], after.rotations[:, k]).max() > _CHANGED
        ]
        moved = [
            m
            for m, bone in enumerate(after.moving)
            if bone in legs
            or bone not in before.moving
            or np.abs(before.locations[:, before.moving.index(bone)] - after.locations[:, m]).max() > _CHANGED
        ]
        return replace(
            after,
            bones=tuple(after.bones[k] for k in turned),
            rotations=after.rotations[:, turned],
            moving=tuple(after.moving[m] for m in moved),
            locations=after.locations[:, moved],
            settings=switched,
            followed=frozenset(),
        )

    def _differs(self, bone: str, prop: str, wanted: float) -> bool:
        """Whether a setting that the new keys need stands at something else now."""
        now = setting_of(self.obj, self.chosen, bone, prop)
        return now is not None and abs(now - wanted) > 1e-3

    def _body_motion(self, take: Take, moving: tuple[int, ...]) -> PoseMotion:
        """The body's motion where the object stands still: from the world back into the armature's axes."""
        undo = quat.mul(self.target.object_rotation, quat.inv(self.turn))
        rotations, translations = take.local_rotations.copy(order="K"), take.local_translations.copy(order="K")
        for root in take.skeleton.roots:
            rotations[:, root] = quat.mul(undo, rotations[:, root])
            translations[:, root] = quat.rotate(undo, translations[:, root] - self.place)
        count = len(take.skeleton)
        moved = tuple(dict.fromkeys((*take.skeleton.roots, *moving)))
        return PoseMotion(
            take.name,
            take.times,
            tuple(range(count)),
            quat.continuous(rotations),
            moved,
            translations[:, list(moved)] - take.skeleton.rest_translations[list(moved)],
        )


class _Now:
    """What an action says of a property, else what it stands at."""

    def __init__(self, chosen: Playing) -> None:
        self._found = {(c.data_path, c.array_index): c for c in chosen.curves}

    def of(self, path: str, still: Array, frames: Array) -> Array:
        """(F, n)."""
        out = np.empty((len(frames), len(still)), order="F")
        for i, value in enumerate(still.tolist()):
            curve = self._found.get((path, i))
            out[:, i] = value if curve is None else curves.evaluate(curve, frames)
        return out


def setting_of(obj: bpy.types.Object, chosen: Playing, bone: str, prop: str) -> float | None:
    """What a setting of a bone stands at on the action's first frame; None where there is no such thing."""
    path = setting_path(bone, prop)
    curve = next((c for c in chosen.curves if c.data_path == path), None)
    if curve is None:
        return rig_links.value_of(obj, bone, prop)
    extent = chosen.frame_range()
    return float(curve.evaluate(extent[0] if extent is not None else 0.0))
