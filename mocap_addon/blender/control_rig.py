# SPDX-License-Identifier: GPL-3.0-or-later
"""What an animator uses on a character, and how motion gets there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import bpy
import numpy as np
from numpy.typing import NDArray

from ..motion.errors import TargetError
from ..motion.skeleton import Skeleton
from ..retarget import PoseMotion
from ..retarget.controls import Plan, to_controls
from ..rig.body import RoleBody, role_body
from ..rig.control_sets import ControlSet, Limb, find_controls
from ..rig.roles import RoleMap
from ..rig.table import CorrectionTable
from . import rig_links
from .armature import Target

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
        return Puppet(target.skeleton, roles, target.inherits_rotation)
    return Puppet(plan.body.skeleton, plan.body.roles, None, plan)


def fitted(table: CorrectionTable, skeleton: Skeleton) -> CorrectionTable:
    """The table without rows for bones that a body has no joints for."""
    rows = tuple(row for row in table.rows if row.target in skeleton)
    return table if len(rows) == len(table.rows) else replace(table, rows=rows)


def _fits(table: CorrectionTable, plan: Plan) -> bool:
    return all(row.target in plan.body.skeleton for row in table.rows if row.role == "hips")


def plan_for(obj: bpy.types.Object, target: Target, roles: RoleMap, choice: Controls = "auto") -> Plan | None:
    """How a take gets onto the controls of a character; None where it goes straight onto its bones.

    Raises
    ------
    TargetError
        Controls are asked for and there are none that are known.
    """
    if choice == "deform":
        return None
    found = find_controls(target.skeleton, roles)
    if found is None:
        if choice == "auto":
            return None
        raise TargetError(f'No controls of a known kind were found on "{obj.name}"; choose its bones instead.')
    wanted = {"ik": ("Leg", "Arm"), "ik_legs": ("Leg",)}.get(choice, ())
    limbs = [_with_solver(obj, target, limb) for limb in found.limbs]
    inverse = tuple(limb for limb in limbs if limb.part in wanted)
    forward = tuple(limb for limb in limbs if limb.part not in wanted)
    return Plan(found, _body(target, roles, found), rig_links.read(obj, target), inverse, forward)


def _body(target: Target, roles: RoleMap, found: ControlSet) -> RoleBody:
    keep = {control.joint for control in found.controls}
    keep |= {joint for limb in found.limbs for role in limb.roles for joint in roles.chain(role)[:1]}
    return role_body(target.skeleton, roles, keep=keep, places=found.places)


def _with_solver(obj: bpy.types.Object, target: Target, limb: Limb) -> Limb:
    """The limb with the pole angle of its constraint, and only the settings that the rig has."""
    have = {name: tuple(s for s in getattr(limb, name) if value_of(obj, s[0], s[1]) is not None) for name in ("fk", "ik")}
    angle = None
    if limb.solver is not None and limb.pole is not None:
        pole = target.skeleton.names[limb.pole]
        constraints = obj.pose.bones[target.skeleton.names[limb.solver]].constraints
        angle = next((float(c.pole_angle) for c in constraints if c.type == "IK" and c.pole_subtarget == pole), None)
    return replace(limb, pole_angle=angle, **have)


def value_of(obj: bpy.types.Object, bone: str, prop: str) -> float | None:
    """What a setting of a bone stands at; None where there is no such thing. ``prop`` as in :class:`PoseMotion`'s settings."""
    pose = obj.pose.bones.get(bone)
    if pose is None:
        return None
    try:
        return float(pose.path_resolve(prop[1:] if prop.startswith(".") else f'["{bpy.utils.escape_identifier(prop)}"]'))
    except (ValueError, TypeError):
        return None
