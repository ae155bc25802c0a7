# SPDX-License-Identifier: GPL-3.0-or-later
"""The motion of a body -> the keys of the controls that drive it.

The body's joints have the axes of the world at rest, so a joint's global rotation is how far it has turned, and the motion that takes a
joint from rest to its pose (:mod:`.rigid`) is what a control driving it takes on: no bone's roll, offset or parent enters. What the control
stores is that motion relative to what carries it (:mod:`.follow`).

A control that only turns stands where it is carried. Where the body bends about a point that is not the control's own head (the spine of a
generated Rigify rig turns about a point in the middle of the trunk, and the torso's control carries that point) the control is moved so
that the point goes where the body has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from ...motion import quat
from ...rig.body import RoleBody
from ...rig.control_sets import Control, ControlSet, Limb
from ..motion import PoseMotion
from .follow import Bones, Follower
from .limbs import Hinge, Pose, fixed, hinge_of, limb_joints, limb_motion
from .memory import FEW, Memory, NoMemory
from .rigid import Rigid, groups, stacked, unstacked

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Plan:
    """How a rig is driven.

    Parameters
    ----------
    controls : ControlSet
    body : RoleBody
        What motion is carried to.
    bones : Bones
        The whole rig.
    inverse : tuple of Limb
        Limbs that get keys on their inverse kinematics' controls.
    forward : tuple of Limb
        Limbs that are switched to forward kinematics.
    whole : bool
        Controls of joints that have no keys get some, too: what hangs elsewhere has to come along.
    """

    controls: ControlSet
    body: RoleBody
    bones: Bones
    inverse: tuple[Limb, ...] = ()
    forward: tuple[Limb, ...] = ()
    whole: bool = False

    @cached_property
    def memory(self) -> Memory:
        """Of the moments that were looked at last."""
        return Memory()

    @cached_property
    def hinges(self) -> dict[Limb, Hinge]:
        """How the limbs of :attr:`inverse` bend at rest."""
        return {limb: hinge_of(limb, self.body, self.bones) for limb in self.inverse}

    @property
    def roles(self) -> dict[str, tuple[int, ...]]:
        """Role -> the controls that play it."""
        out: dict[str, tuple[int, ...]] = {}
        for control in self.controls.controls:
            out[control.role] = (*out.get(control.role, ()), control.bone)
        for limb in self.inverse:
            _, lower, tip, *beyond = limb.roles
            out |= {role: () for role in limb.roles if role not in limb.keeps}
            parts = [(lower, limb.pole), (tip, limb.target), (tip, limb.heel), *((role, limb.toe) for role in beyond)]
            for role, bone in parts:
                if bone is not None:
                    out[role] = (*out[role], bone)
        return out


def to_controls(motion: PoseMotion, plan: Plan) -> PoseMotion:
    """The keys of the controls that make the deform bones move as the body does.

    Parameters
    ----------
    motion : PoseMotion
        Of ``plan.body.skeleton``.
    plan : Plan

    Returns
    -------
    PoseMotion
        Of the rig (joints of ``plan.bones.skeleton``). Controls of joints that have no keys get none.
    """
    count = len(motion.times)
    everything = range(len(plan.body.joints)) if plan.whole else ()
    keyed = {plan.body.joints[k] for k in (*motion.bones, *motion.moving, *everything)}
    turned = {plan.body.joints[k] for k in (*motion.bones, *everything)}
    moved = {plan.body.joints[k] for k in motion.moving}
    held = {role for limb in plan.inverse for role in limb.roles if role not in limb.keeps}
    limbs = [
        limb
        for limb in plan.inverse
        if any(plan.body.joints[plan.body.roles.joints[r][0]] in keyed for r in limb.roles if r in plan.body.roles.joints)
    ]
    active = [c for c in plan.controls.controls if c.joint in keyed and c.role not in held]
    step = float(np.median(np.diff(motion.times))) if count > 1 else 1.0
    memory = plan.memory if count <= FEW else NoMemory()
    memory.begin((count, step, frozenset(keyed), frozenset(turned)))
    body = memory.alike(body_motions(motion, plan.body))
    posed = _poses(active, body, plan, turned, count, memory)
    moves = {c.bone for c in active if c.moves and (c.role != "root" or c.joint in moved)}
    turns = {c.bone for c in active if c.turns and c.joint in turned}
    known = {joint: body[joint] for joint in plan.body.joints}
    for limb in limbs:
        find = partial(limb_motion, limb, plan.hinges[limb], body, plan.body, plan.bones, keyed, step)
        found = memory.once(("limb", limb.side, limb.part), find, *(body[joint] for joint in limb_joints(limb, plan.body)))
        posed |= found.posed
        moves |= found.moves
        turns |= found.turns
        known |= found.solved
    known |= {twin: known[joint] for twin, joint in plan.controls.twins.items() if joint in known}
    follower = Follower(plan.bones, known, posed, memory)
    order = sorted(posed)
    bones, moving = tuple(b for b in order if b in turns), tuple(b for b in order if b in moves)
    rotations = np.empty((count, len(bones), 4), order="F")
    locations = np.empty((count, len(moving), 3), order="F")
    for bone, basis in follower.bases(order, count):
        if bone in turns:
            rotations[:, bones.index(bone)] = quat.continuous(basis.rotation)
        if bone in moves:
            locations[:, moving.index(bone)] = basis.translation
    used = {control.role for control in active}
    switched = [s for limb in limbs for s in limb.ik] + [s for limb in plan.forward if not used.isdisjoint(limb.roles) for s in limb.fk]
    return replace(
        motion,
        bones=bones,
        rotations=rotations,
        moving=moving,
        locations=locations,
        held=frozenset(),
        scales={},
        settings=tuple(switched),
        followed=frozenset(follower.resting - plan.bones.above(order)),
    )


def on_bones(motion: PoseMotion, plan: Plan, deform: NDArray[np.bool_]) -> PoseMotion:
    """The same motion on the bones that move the skin, for players that know neither constraints nor drivers.

    Bones that hang on mechanisms are moved as well as turned, those without a role (a jaw, a breast) with what carries them.

    Parameters
    ----------
    motion : PoseMotion
        Of ``plan.body.skeleton``.
    plan : Plan
    deform : (J,) bool array
        Bones of the rig that move the skin.
    """
    skeleton, body = plan.bones.skeleton, plan.body
    parents: list[int] = body.skeleton.parents.tolist()
    above = {joint: body.joints[p] if p >= 0 else -1 for joint, p in zip(body.joints, parents, strict=True)}
    role = {body.joints[k]: role for role, chain in body.roles.joints.items() for k in chain}
    controls = [
        Control(joint, joint, role[joint], moves=role[joint] in ("root", "hips") or above[joint] not in skeleton.ancestors(joint))
        for joint in body.joints
        if joint in role  # a palm that only says where the forearm ends has none, and follows stiffly
    ]
    roots = {joint for joint in role if role[joint] == "root"}
    stands = {c.bone: c.joint for c in plan.controls.controls if c.turns} | dict(plan.controls.twins)
    for bone in np.flatnonzero(deform).tolist():
        if bone in above:
            continue
        carriers = skeleton.ancestors(bone)
        if any(joint in above and joint not in roots for joint in carriers):
            continue
        carrier = next((stands[joint] for joint in carriers if joint in stands), None)
        if carrier is not None and carrier not in roots:
            controls.append(Control(bone, carrier, role[carrier], moves=True))
    bare = Bones(skeleton, plan.bones.inherits_rotation)
    return to_controls(motion, Plan(ControlSet(plan.controls.name, tuple(controls)), body, bare, whole=True))


def body_motions(motion: PoseMotion, body: RoleBody) -> dict[int, Rigid]:
    """Joint of the rig -> how the body's joint moves away from rest."""
    still = replace(motion, placement=None, turning=None, curves={}, scales={})
    take = still.to_take(body.skeleton)
    rest, rotations, positions = body.skeleton.rest_global_positions, take.global_rotations, take.global_positions
    found: list[Rigid] = []
    for some in groups(len(body.joints), take.frames):
        found += unstacked(Rigid.about(rotations[:, some], rest[some], positions[:, some]))
    return dict(zip(body.joints, found, strict=True))


def _poses(
    active: Sequence[Control], body: Mapping[int, Rigid], plan: Plan, turned: set[int], count: int, memory: Memory
) -> dict[int, Pose]:
    """How each control moves over ``count`` frames, given how it would at rest in itself."""
    held = {control.bone: _held(control, plan, active) for control in active}
    inputs = {control.bone: (body[control.joint], body[held[control.bone][0]]) for control in active}
    out: dict[int, Pose] = {bone: memory.known(("pose", bone), *moving) for bone, moving in inputs.items()}
    new = [control for control in active if out[control.bone] is None]
    rests = plan.bones.skeleton.rest_global_rotations
    for some in groups(len(new), count):
        controls = new[some]
        copied = np.array([control.copied for control in controls])
        between = quat.mul(rests[[c.joint for c in controls]], quat.inv(rests[[c.bone for c in controls]]))
        own = stacked([body[control.joint] for control in controls], count)
        rotations = quat.mul(own.rotation, np.where(copied[:, None], between, quat.IDENTITY))
        points = np.array([held[control.bone][1] for control in controls])
        places = stacked([body[held[control.bone][0]] for control in controls], count).apply(points)
        swings = quat.rotate(rotations, points[None])
        for k, control in enumerate(controls):
            rotation, swing = rotations[:, k], swings[:, k]
            if not (control.turns and control.joint in turned):
                pose = _unturned(points[k], places[:, k] if control.moves else None)
            elif control.moves:
                pose = fixed(Rigid(rotation, places[:, k] - swing))
            else:
                pose = _turning(rotation, points[k], swing)
            out[control.bone] = memory.keep(("pose", control.bone), pose, *inputs[control.bone])
    return out


def _held(control: Control, plan: Plan, active: Sequence[Control]) -> tuple[int, Array]:
    """The point (at rest) that a control is held by, and the body's joint that it goes with."""
    if control.moves and control.carries == "joint":
        return control.joint, plan.body.skeleton.rest_global_positions[plan.body.joints.index(control.joint)]
    if control.moves and control.carries == "below" and (below := _below(control, plan, active)) is not None:
        return below.joint, plan.bones.head(below.bone)
    return control.joint, plan.bones.head(control.bone)


def _unturned(point: Array, places: Array | None) -> Pose:
    """Turned by what carries it; ``point`` at ``places``, or carried as well."""
    return lambda carried: Rigid.about(carried.rotation, point, carried.apply(point) if places is None else places)


def _turning(rotation: Array, head: Array, swing: Array) -> Pose:
    """Turned by ``rotation``, which takes ``head`` to ``swing``; where its head is carried."""
    return lambda carried: Rigid(rotation, carried.apply(head) - swing)


def _below(control: Control, plan: Plan, active: Sequence[Control]) -> Control | None:
    """The first control of the trunk that hangs on ``control`` with nothing posed between."""
    trunk = {c.bone: c for c in active if c.role in ("hips", "spine") and c is not control}
    posed = {*trunk, control.bone}
    for bone in sorted(trunk):
        above = next((j for j in plan.bones.skeleton.ancestors(bone) if j in posed), None)
        if above == control.bone:
            return trunk[bone]
    return None
