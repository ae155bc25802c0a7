# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion that feet are planted in, read from a character's action into the world.

Where keys move the character's own bones, hips and legs alone are read. Where controls drive them, what Blender shows of the deform bones
is read, as of any rig (:mod:`.sources`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import bpy
import numpy as np
from numpy.typing import NDArray

from ..feet.body import Feet, Sole, find_feet
from ..motion import kinematics, quat
from ..motion.errors import RigError
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from ..retarget.controls import Plan
from ..rig import match
from ..rig.control_sets import Limb, find_controls
from ..rig.roles import SIDES, RoleMap
from . import armature, control_rig, curves, rig_curves, rig_graph, rig_world, root_keys, routing, scenes
from .armature import Target
from .channels import bone_path
from .control_rig import Controls
from .feet_motion import LEG, LegMotion, setting_of
from .playing import Playing
from .recipes import place_of
from .soles import soles_of

Array = NDArray[np.float64]


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
            now = setting_of(obj, chosen, bone, prop)
            if now is not None and (bone, prop) in forward:
                return abs(now - wanted) < abs(now - forward[bone, prop])
        return False

    legs, arms = ([on(limb) for limb in found.limbs if limb.part == part] for part in ("Leg", "Arm"))
    if not legs or not all(legs):
        return "fk" if legs else "auto"
    return "ik" if arms and all(arms) else "ik_legs"


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
    ends = [j for role in ("hips", *(f"{s}{p}" for s in SIDES for p in LEG)) for j in roles.chain(role)[:1]]
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
