# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion that feet are planted in: read from a character's action into the world, and the new one made keys again.

Where keys move the character's own bones, hips and legs alone are read and written, in arrays. Where controls drive them, what Blender
shows of the deform bones is read (as of any rig, :mod:`.sources`), and the new motion goes onto those controls that have to change.

World, metres: a bone in the armature's axes stands at ``M(t) P(t)`` with ``M`` the object's world matrix (:mod:`.rig_world`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import cast

import bpy
import numpy as np
from numpy.typing import NDArray

from ..feet.body import Feet, Sole, find_feet
from ..feet.result import FeetResult
from ..motion import kinematics, quat
from ..motion.errors import RigError
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from ..retarget.controls import Plan
from ..retarget.motion import PoseMotion
from ..retarget.travel import WHOLE
from ..rig import match
from ..rig.control_sets import Limb, find_controls
from ..rig.roles import SIDES, RoleMap
from . import armature, control_rig, curves, rig_curves, rig_graph, rig_links, rig_world, root_keys, routing, scenes, soles
from .armature import Target
from .channels import bone_path, setting_path
from .control_rig import Controls
from .playing import Playing
from .recipes import place_of

Array = NDArray[np.float64]

_LEG = ("UpperLeg", "LowerLeg", "Foot", "Toes")
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
        legs = {bone for side in SIDES for part in _LEG for bone in plan.roles.get(f"{side}{part}", ())} if switched else set[int]()
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
        now = _setting(self.obj, self.chosen, bone, prop)
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


def read(
    obj: bpy.types.Object,
    chosen: Playing,
    *,
    controls: Controls = "auto",
    measures: Mapping[str, Sole] | None = None,
    scene: bpy.types.Scene | None = None,
) -> LegMotion:
    """Read what an action does with hips and legs. Nothing is changed.

    Parameters
    ----------
    obj : armature object
    chosen : Playing
        The action in its slot.
    controls : Controls
        Where controls drive the character, which of them have the keys.
    measures : mapping from side to Sole, optional
        What is known of the soles; what is None in it is measured.
    scene : scene, optional

    Raises
    ------
    MocapError
        No hips or legs are known, nothing moves them, or the object is scaled unevenly.
    """
    with curves.remembered():
        return _read(obj, chosen, controls, measures or {}, scene or bpy.context.scene)


def _read(obj: bpy.types.Object, chosen: Playing, controls: Controls, measures: Mapping[str, Sole], scene: bpy.types.Scene) -> LegMotion:
    assert chosen.action is not None
    target = armature.read(obj, scene, place_of(chosen.action))
    roles = match(target.skeleton)
    puppet = control_rig.puppet(obj, target, roles, _played(obj, chosen, target, roles) if controls == "auto" else controls)
    frames = _frames(chosen, target, roles, driven=puppet.plan is not None)
    sole = soles_of(obj, target, roles, measures)
    unit = float(scene.unit_settings.scale_length)
    if puppet.plan is None:
        feet_at_rest = find_feet(target.skeleton, roles, sole)
        joints = _needed(target, feet_at_rest)
        carrier, told = routing.carrier_above(target, feet_at_rest.hips, ())
    else:
        joints = puppet.plan.body.joints
        feet_at_rest, carrier, told = find_feet(puppet.skeleton, puppet.roles, sole), None, ""
    body = _part(rig_world.read_body(obj), tuple(target.skeleton.names[j] for j in joints))
    by_keys = not rig_curves.obstacles(chosen, frames)
    if not by_keys:
        body = rig_world.read_body(obj)
    motion = rig_curves.read(chosen, body, frames) if by_keys else rig_graph.read(chosen, body, frames)
    folded = rig_world.fold(obj, body, motion, unit, frames)
    turn, _, place = rig_world._taken_apart(motion.world, obj.name, frames)
    place = place * unit
    take = _in_world(folded, place, chosen.name, (frames - frames[0]) / float(scenes.scene_rate(scene)))
    order = [take.skeleton.index(target.skeleton.names[j]) for j in joints]
    if puppet.plan is None:
        take = _picked(take, order)
        index = {joint: k for k, joint in enumerate(joints)}
        feet = _renumbered(feet_at_rest, index)
    else:
        take = _of_body(take, order, puppet.plan, target)
        feet = feet_at_rest
    notes = tuple(filter(None, [told, *puppet.notes]))
    return LegMotion(obj, target, chosen, frames, take, feet, tuple(joints), puppet.plan, turn, place, carrier, notes)


def _played(obj: bpy.types.Object, chosen: Playing, target: Target, roles: RoleMap) -> Controls:
    """Which controls of a known rig an action plays by: what its switches stand at on its first frame."""
    found = find_controls(target.skeleton, roles)
    if found is None:
        return "auto"

    def on(limb: Limb) -> bool:
        forward = {(bone, prop): value for bone, prop, value in limb.fk}
        for bone, prop, wanted in limb.ik:
            now = _setting(obj, chosen, bone, prop)
            if now is not None and (bone, prop) in forward:
                return abs(now - wanted) < abs(now - forward[bone, prop])
        return False

    legs, arms = ([on(limb) for limb in found.limbs if limb.part == part] for part in ("Leg", "Arm"))
    if not legs or not all(legs):
        return "fk" if legs else "auto"
    return "ik" if arms and all(arms) else "ik_legs"


def _setting(obj: bpy.types.Object, chosen: Playing, bone: str, prop: str) -> float | None:
    """What a setting of a bone stands at on the action's first frame; None where there is no such thing."""
    path = setting_path(bone, prop)
    curve = next((c for c in chosen.curves if c.data_path == path), None)
    if curve is None:
        return rig_links.value_of(obj, bone, prop)
    extent = chosen.frame_range()
    return float(curve.evaluate(extent[0] if extent is not None else 0.0))


def _frames(chosen: Playing, target: Target, roles: RoleMap, *, driven: bool) -> Array:
    """Frames of all keys that move hips and legs, and whole frames between them."""
    names = [target.skeleton.names[j] for j in _carrying(target, roles)]
    found = {(c.data_path, c.array_index): c for c in chosen.curves}
    bases = {f"{bone_path(name)}." for name in names}
    own = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle")
    paths = [path for path, _ in found if path in own or driven or any(path.startswith(base) for base in bases)]
    frames = root_keys._frames(found, paths)
    if frames is None:
        raise RigError(f'The action "{chosen.name}" moves neither the hips nor the legs of "{chosen.obj.name}"; choose another action.')
    return frames


def _carrying(target: Target, roles: RoleMap) -> list[int]:
    ends = [j for role in ("hips", *(f"{s}{p}" for s in SIDES for p in _LEG)) for j in roles.chain(role)[:1]]
    return sorted({above for joint in ends for above in (joint, *target.skeleton.ancestors(joint))})


def _needed(target: Target, feet: Feet) -> tuple[int, ...]:
    ends = [joint for leg in feet.legs for joint in (leg.thigh, leg.shin, leg.foot, leg.toe) if joint >= 0]
    return tuple(sorted({above for joint in ends for above in (joint, *target.skeleton.ancestors(joint))}))


def feet_of_character(obj: bpy.types.Object, scene: bpy.types.Scene | None = None) -> tuple[Feet, tuple[str, ...]]:
    """A character's feet with all measures filled in, and the bone behind each of the joints that they count in.

    Where controls drive the character, the joints have the axes of the world at rest (:mod:`..rig.body`).
    """
    target = armature.read(obj, scene)
    roles = match(target.skeleton)
    puppet = control_rig.puppet(obj, target, roles)
    return find_feet(puppet.skeleton, puppet.roles, soles_of(obj, target, roles, {})), puppet.skeleton.names


def soles_of(obj: bpy.types.Object, target: Target, roles: RoleMap, typed: Mapping[str, Sole]) -> dict[str, Sole]:
    """What a person said, else what was measured."""
    found = soles.measured(obj, target, roles)
    for side, own in typed.items():
        base = found.get(side, Sole())
        found[side] = replace(base, **{name: value for name, value in vars(own).items() if value is not None})
    return found


def _part(body: rig_world.Body, names: tuple[str, ...]) -> rig_world.Body:
    """Some of a rig's bones, with all above them."""
    order = [body.skeleton.index(name) for name in names]
    skeleton = body.skeleton
    new = {old: k for k, old in enumerate(order)}
    if any(p >= 0 and p not in new for p in skeleton.parents[order].tolist()):
        return body
    parents = np.array([new.get(p, -1) for p in skeleton.parents[order].tolist()], dtype=np.int64)
    part = Skeleton(names, parents, skeleton.rest_translations[order], skeleton.rest_rotations[order], skeleton.ends[order])
    return rig_world.Body(
        part,
        tuple(body.rotation_modes[j] for j in order),
        body.inherits_rotation[order],
        body.connected[order],
        body.use_local_location[order],
    )


def _in_world(folded: rig_world.Folded, place: Array, name: str, times: Array) -> Take:
    """The take where the object stands: :func:`.rig_world.fold` leaves an object that stays where it is at the origin."""
    translations = folded.translations
    if not rig_world._moves(place):
        for root in folded.skeleton.roots:
            translations[:, root] += place[0]
    return Take(name, folded.skeleton, times, quat.continuous(folded.rotations), translations)


def _picked(take: Take, order: list[int]) -> Take:
    """The joints ``order`` of a take, in which all that stands above them is too."""
    if order == list(range(len(take.skeleton))):
        return take
    skeleton = take.skeleton
    new = {old: k for k, old in enumerate(order)}
    parents = np.array([new.get(int(p), -1) for p in skeleton.parents[order]], dtype=np.int64)
    part = Skeleton(
        tuple(skeleton.names[j] for j in order),
        parents,
        skeleton.rest_translations[order],
        skeleton.rest_rotations[order],
        skeleton.ends[order],
    )
    return replace(
        take, skeleton=part, local_rotations=take.local_rotations[:, order], local_translations=take.local_translations[:, order]
    )


def _of_body(take: Take, order: list[int], plan: Plan, target: Target) -> Take:
    """The motion of the body behind a rig: joints turn away from rest as their deform bones do, and stand where those carry them."""
    joints = list(plan.body.joints)
    skeleton = plan.body.skeleton
    rest = target.skeleton.rest_global_rotations[joints]
    now = take.global_rotations[:, order]
    turned = quat.mul(now, quat.inv(rest))
    beside = skeleton.rest_global_positions - target.skeleton.rest_global_positions[joints]
    places = take.global_positions[:, order] + quat.rotate(turned, beside)
    local_r, local_t = kinematics.inverse(turned, places, skeleton.parents)
    return Take(take.name, skeleton, take.times, quat.continuous(local_r), local_t)


def _renumbered(feet: Feet, index: Mapping[int, int]) -> Feet:
    legs = tuple(
        replace(leg, thigh=index[leg.thigh], shin=index[leg.shin], foot=index[leg.foot], toe=index[leg.toe] if leg.toe >= 0 else -1)
        for leg in feet.legs
    )
    return replace(feet, hips=index[feet.hips], legs=(legs[0], legs[1]))


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
