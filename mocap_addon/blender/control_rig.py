# SPDX-License-Identifier: GPL-3.0-or-later
"""What an animator uses on a character, and how motion gets there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion.errors import RigError, TargetError
from ..motion.skeleton import Skeleton
from ..retarget import PoseMotion
from ..retarget.controls import Plan, on_bones, to_controls
from ..rig.body import RoleBody, role_body
from ..rig.control_sets import ControlSet, Limb, find_controls
from ..rig.roles import RoleMap
from ..rig.table import CorrectionTable
from . import compat, own_controls, rig_links
from .armature import Target
from .channels import setting_path
from .recipes import recipe_of
from .state import moved_by_rig

SWITCHED = "switched"
"""The recipe's entry with what the settings of a motion stood at before."""

Controls = Literal["auto", "deform", "fk", "ik_legs", "ik"]

CONTROLS: tuple[tuple[Controls, str, str], ...] = (
    (
        "auto",
        "Automatic",
        "The controls that an animator uses where the character's bones are driven, turned joint by joint (FK); else the bones",
    ),
    ("deform", "Bones", "The bones that move the skin, whatever drives them"),
    ("fk", "FK controls", "Controls that turn joint by joint; legs and arms are switched to FK"),
    ("ik_legs", "IK legs", "Feet, knee poles and heels for the legs, which are switched to IK; FK controls for the rest"),
    ("ik", "IK legs and arms", "Feet, hands and poles for legs and arms, which are switched to IK; FK controls for the rest"),
)
"""Identifier, name and description of every choice."""


@dataclass(frozen=True, eq=False)
class Puppet:
    """What motion is carried to: the character's bones as they are, or the body behind its controls.

    Parameters
    ----------
    skeleton : Skeleton
    roles : RoleMap
        By joints of ``skeleton``.
    inherits_rotation : (J,) bool array or None
    plan : Plan or None
        How the body's motion gets onto the controls; None where it is the bones' already.
    """

    skeleton: Skeleton
    roles: RoleMap
    inherits_rotation: NDArray[np.bool_] | None
    plan: Plan | None = None

    def keys(self, motion: PoseMotion) -> PoseMotion:
        """Motion of ``skeleton`` -> motion of the character's bones."""
        return motion if self.plan is None else to_controls(motion, self.plan)

    def on_bones(self, motion: PoseMotion, target: Target) -> PoseMotion:
        """The same on the bones that move the skin, for players that know neither constraints nor drivers."""
        return motion if self.plan is None else on_bones(motion, self.plan, target.deform)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know of where the keys go."""
        plan = self.plan
        if plan is None:
            return ()
        held = sorted({{"Leg": "legs", "Arm": "arms"}[limb.part] for limb in plan.inverse}, reverse=True)
        how = f"{' and '.join(held)} by their IK controls" if held else "joint by joint (FK)"
        if plan.controls.name:
            return (f"The keys are on the controls of this {plan.controls.name} rig, {how}.",)
        return (f"The bones of this character are driven: the keys are on what drives them, {how}.",) if held or self._led else ()

    @property
    def _led(self) -> bool:
        return self.plan is not None and any(control.bone != control.joint for control in self.plan.controls.controls)


def puppet(
    obj: bpy.types.Object, target: Target, roles: RoleMap, choice: Controls = "auto", table: CorrectionTable | None = None
) -> Puppet:
    """What a take is to be carried to on a character.

    Parameters
    ----------
    obj : armature object
    target : Target
    roles : RoleMap
        Which bones of the target play which role.
    choice : Controls
    table : CorrectionTable, optional
        The one that will be used: where its hips are no deform bone of ours, it was made for bones of a person's own choice.

    Raises
    ------
    TargetError
        Controls are asked for and there are none that are known.
    """
    plan = plan_for(obj, target, roles, choice)
    if plan is not None and choice == "auto" and table is not None and not _fits(table, plan):
        plan = None
    if plan is None:
        return Puppet(target.skeleton, _free(obj, target, roles), target.inherits_rotation)
    return Puppet(plan.body.skeleton, plan.body.roles, None, plan)


def _free(obj: bpy.types.Object, target: Target, roles: RoleMap) -> RoleMap:
    """The roles without twist bones of limbs on which the rig itself moves one: keys would twist once more, or do nothing."""
    if not roles.twists:
        return roles
    moved = moved_by_rig(obj)
    held = {role for joint, role in roles.twists.items() if target.skeleton.names[joint] in moved}
    free = {joint: role for joint, role in roles.twists.items() if role not in held}
    return roles if len(free) == len(roles.twists) else replace(roles, twists=free)


def fitted(table: CorrectionTable, puppet: Puppet) -> CorrectionTable:
    """The table without rows for bones that a body has no joints for."""
    rows = tuple(row for row in table.rows if puppet.plan is None or row.target in puppet.skeleton)
    return table if len(rows) == len(table.rows) else replace(table, rows=rows)


def switched(obj: bpy.types.Object, motion: PoseMotion) -> tuple[PoseMotion, list[list[object]]]:
    """The motion with settings that the present action of ours has changed, and this one does not need, put back; and what its own settings
    stood at before: ``[bone, property, value]`` each.

    Blender keeps the last value of a property that no action moves any more: an action that turned a limb's stretching off would leave it
    off for the next.
    """
    action = obj.animation_data.action if obj.animation_data else None
    stored = (recipe_of(action) or {}).get(SWITCHED) if action is not None else None
    before = {(str(bone), str(prop)): float(value) for bone, prop, value in stored} if isinstance(stored, list) else {}
    wanted = {(bone, prop) for bone, prop, _ in motion.settings}
    back = [(*key, value) for key, value in before.items() if key not in wanted and rig_links.value_of(obj, *key) is not None]
    stood = {**{key: rig_links.value_of(obj, *key) for key in wanted}, **before}
    return replace(motion, settings=(*motion.settings, *back)), [[*key, value] for key, value in stood.items() if value is not None]


def _fits(table: CorrectionTable, plan: Plan) -> bool:
    return all(row.target in plan.body.skeleton for row in table.rows if row.role == "hips")


def check_alike(action: str, motion: PoseMotion) -> None:
    """Raise :class:`RigError` where an action, of which a part is to stay, has its keys on other controls than the new motion."""
    found = bpy.data.actions.get(action)
    paths = {setting_path(bone, prop): (bone, prop, value) for bone, prop, value in motion.settings}
    for curve in () if found is None else compat.all_curves(found):
        bone, prop, value = paths.get(curve.data_path, ("", "", 0.0))
        if bone and len(curve.keyframe_points) and abs(curve.evaluate(curve.keyframe_points[0].co[0]) - value) > 1e-3:
            raise RigError(
                f'The motion that is there has its keys on other controls ("{prop}" of "{bone}" differs), so that parts of both do '
                "not fit together; choose the same controls for the new one."
            )


def plan_for(obj: bpy.types.Object, target: Target, roles: RoleMap, choice: Controls = "auto") -> Plan | None:
    """How a take gets onto the controls of a character; None where it goes straight onto its bones.

    Raises
    ------
    TargetError
        Controls are asked for and there are none.
    """
    if choice == "deform":
        return None
    found = find_controls(target.skeleton, roles)
    known = found is not None
    found = own_controls.find(obj, target, roles) if found is None else found
    wanted = _IK_PARTS[choice]
    if found is None or (wanted and not found.limbs):
        if choice == "auto":
            return None
        raise TargetError(f'No such controls were found on "{obj.name}"; choose its bones instead.')
    limbs = [_ready(obj, target, limb) for limb in found.limbs]
    if known:
        inverse = tuple(limb for limb in limbs if limb.part in wanted)
    else:  # a limb without a switch stays as it is
        held = [own_controls.active(obj, limb) for limb in limbs]
        inverse = tuple(
            limb for limb, on in zip(limbs, held, strict=True) if limb.part in wanted or (on and (choice == "auto" or not limb.fk))
        )
    forward = tuple(limb for limb in limbs if limb not in inverse)
    return Plan(found, _body(target, roles, found), rig_links.read(obj, target), inverse, forward)


_IK_PARTS: dict[Controls, tuple[str, ...]] = {"auto": (), "fk": (), "deform": (), "ik_legs": ("Leg",), "ik": ("Leg", "Arm")}


def _body(target: Target, roles: RoleMap, found: ControlSet) -> RoleBody:
    keep = {control.joint for control in found.controls}
    keep |= {joint for limb in found.limbs for role in limb.roles for joint in roles.chain(role)[:1]}
    return role_body(target.skeleton, roles, keep=keep, places=found.places)


def _ready(obj: bpy.types.Object, target: Target, limb: Limb) -> Limb:
    """The limb with what its constraint says of the pole, and only the settings that the rig has."""
    have = {name: tuple(s for s in getattr(limb, name) if rig_links.value_of(obj, s[0], s[1]) is not None) for name in ("fk", "ik")}
    if limb.solver is None or limb.pole is None or limb.pole_angle is not None:
        return replace(limb, **have)
    pole = target.skeleton.names[limb.pole]
    constraints = obj.pose.bones[target.skeleton.names[limb.solver]].constraints
    found = next((c for c in constraints if c.type == "IK" and c.pole_subtarget == pole), None)
    if found is None:
        return replace(limb, **have)
    return replace(limb, first=rig_links.bent_by(target, limb.solver, found)[-1], pole_angle=float(found.pole_angle), **have)
