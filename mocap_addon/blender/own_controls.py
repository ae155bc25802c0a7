# SPDX-License-Identifier: GPL-3.0-or-later
"""Controls of rigs of no known kind, found by what drives their bones.

A bone that copies another's transform or rotation in full is driven by that other one. Two bones of a limb that an inverse kinematics
constraint bends are driven by its target and pole; what its influence hangs on is the switch. A joint that the rig hangs elsewhere than a
body does (feet on the root) is moved as well as turned.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import bpy

from ..retarget.travel import WHOLE
from ..rig.control_sets import LIMB_PARTS, Control, ControlSet, Limb, Setting
from ..rig.roles import CHAIN_ROLES, ROLES, SIDES, RoleMap
from . import routing
from .armature import Target
from .rig_links import acts, bent_by, own_target, pole_of, value_of

NAME = ""
"""A rig of no known kind."""

_PROPERTY = re.compile(r'^(?:pose\.bones\["((?:[^"\\]|\\.)*)"\])\["((?:[^"\\]|\\.)*)"\]$')
_SPACES = ("WORLD", "POSE")


def find(obj: bpy.types.Object, target: Target, roles: RoleMap) -> ControlSet | None:
    """The controls of a rig, or None where keys on its own bones do all that a body does."""
    skeleton = target.skeleton
    joints = {role: roles.chain(role)[: None if role in CHAIN_ROLES else 1] for role in ROLES}
    driver = {joint: _driver(obj, target, joint) for chain in joints.values() for joint in chain}
    limbs = [limb for side in SIDES for part in LIMB_PARTS if (limb := _limb(obj, target, roles, driver, side, part)) is not None]
    hips = roles.one("hips")
    if hips is None:
        return None
    busy = {skeleton.names[bone] for joint, bone in driver.items() if joint not in joints["root"]}
    carrier, _ = routing.carrier_above(target, driver[hips], busy)
    if carrier == WHOLE:
        return None  # the object carries the character: that is said of bones, not of controls
    controls: list[Control] = []
    taken: set[int] = set()
    detached = False
    for role, chain in joints.items():
        for k, joint in enumerate(chain):
            bone = driver[joint]
            if bone in taken or (role == "root" and bone == carrier):
                continue
            taken.add(bone)
            loose = role == "root" or (role == "hips" and carrier is None) or _detached(target, roles, driver, role, k)
            detached |= loose and role not in ("root", "hips")
            controls.append(Control(bone, joint, role, loose, copied=_stands_alike(obj, target, joint)))
            if role == "hips" and carrier is not None:
                controls.append(Control(carrier, joint, role, True, "joint", turns=False))
    if not limbs and not detached and all(bone == joint for joint, bone in driver.items()):
        return None
    return ControlSet(NAME, tuple(controls), tuple(limbs))


def _driver(obj: bpy.types.Object, target: Target, joint: int) -> int:
    """The bone at the end of the copies that a joint follows; itself where it follows none."""
    seen = [joint]
    while True:
        pose = obj.pose.bones[target.skeleton.names[seen[-1]]]
        found = [own_target(obj, c) for c in pose.constraints if _rules(c)]
        above = [target.skeleton.index(name) for name in found if name in target.skeleton]
        if not above or above[-1] in seen:
            return seen[-1]
        seen.append(above[-1])


def _rules(c: bpy.types.Constraint) -> bool:
    """Whether a constraint gives a bone another's rotation, whatever its own keys say."""
    if not acts(c) or c.influence < 1.0 or c.type not in ("COPY_TRANSFORMS", "COPY_ROTATION") or c.mix_mode != "REPLACE":
        return False
    same = (c.target_space in _SPACES and c.owner_space in _SPACES) or (c.target_space == "LOCAL" and c.owner_space == "LOCAL")
    return same and (c.type == "COPY_TRANSFORMS" or (c.use_x and c.use_y and c.use_z))


def _stands_alike(obj: bpy.types.Object, target: Target, joint: int | None) -> bool:
    """Whether a joint takes the other bone's rotation as it is, not as a turn away from rest."""
    found = [c for c in obj.pose.bones[target.skeleton.names[joint]].constraints if _rules(c)] if joint is not None else []
    return bool(found) and found[-1].owner_space != "LOCAL"


def _limb(obj: bpy.types.Object, target: Target, roles: RoleMap, driver: Mapping[int, int], side: str, part: str) -> Limb | None:
    """The limb with the constraint that bends it, if there is one with a target in the rig."""
    names = [f"{side}{role}" for role in LIMB_PARTS[part] if role]
    chain = [roles.one(name) for name in names]
    if any(joint is None for joint in chain[:3]):
        return None
    upper, lower, tip = (driver[joint] for joint in chain[:3] if joint is not None)
    skeleton = target.skeleton
    for owner in (tip, lower):
        pose = obj.pose.bones[skeleton.names[owner]]
        for c in pose.constraints:
            aim = own_target(obj, c) if c.type == "IK" and not c.mute and c.is_valid else ""
            bent = bent_by(target, owner, c) if aim in skeleton else []
            if upper not in bent or lower not in bent:
                continue
            goal, pole = skeleton.index(aim), pole_of(obj, c)
            moved = goal == tip or goal in skeleton.ancestors(tip)  # the foot goes with the target
            keeps = tuple(names[3:] if moved else names[2:])
            off, on = _switch(obj, pose.name, c)
            return Limb(
                side,
                part,
                goal,
                pole=skeleton.index(pole) if pole in skeleton else None,
                solver=owner,
                fk=off,
                ik=on,
                first=bent[-1],
                pole_angle=float(c.pole_angle) if pole in skeleton else None,
                tip=lower if owner == lower and c.use_tail else None,
                keeps=keeps,
                copied=goal == tip and _stands_alike(obj, target, chain[2]),
            )
    return None


def active(obj: bpy.types.Object, limb: Limb) -> bool:
    """Whether the limb is held by its solver now."""
    return not limb.ik or all(value_of(obj, bone, prop) == value for bone, prop, value in limb.ik)


def _switch(obj: bpy.types.Object, bone: str, c: bpy.types.Constraint) -> tuple[tuple[Setting, ...], tuple[Setting, ...]]:
    """What turns a constraint off and on: the property that drives its influence, else the influence itself."""
    path = f'pose.bones["{bpy.utils.escape_identifier(bone)}"].constraints["{bpy.utils.escape_identifier(c.name)}"].influence'
    drivers = obj.animation_data.drivers if obj.animation_data else ()
    curve = next((d for d in drivers if d.data_path == path), None)
    if curve is None:
        prop = f'.constraints["{bpy.utils.escape_identifier(c.name)}"].influence'
        return ((bone, prop, 0.0),), ((bone, prop, 1.0),)
    variables = curve.driver.variables
    source = variables[0].targets[0] if len(variables) == 1 and variables[0].type == "SINGLE_PROP" else None
    found = _PROPERTY.match(source.data_path) if source is not None and source.id == obj else None
    values = {} if found is None else {_driven(curve, variables[0].name, x): x for x in (0.0, 1.0)}
    if found is None or set(values) != {0.0, 1.0}:
        return (), ()
    holder, prop = (bpy.utils.unescape_identifier(text) for text in found.groups())
    return ((holder, prop, values[0.0]),), ((holder, prop, values[1.0]),)


def _driven(curve: bpy.types.FCurve, name: str, x: float) -> float | None:
    """What a driver makes of its one variable's value; None for an expression that is more than the variable or one less it."""
    text = re.sub(r"\s", "", curve.driver.expression)
    if curve.driver.type == "SCRIPTED":
        if text not in (name, f"1-{name}", f"1.0-{name}"):
            return None
        x = x if text == name else 1.0 - x
    mapped = len(curve.keyframe_points) or len(curve.modifiers)
    return round(float(curve.evaluate(x)), 4) if mapped else x


def _detached(target: Target, roles: RoleMap, driver: Mapping[int, int], role: str, link: int) -> bool:
    """Whether a joint's control is not carried by what carries it in a body."""
    above = _ABOVE.get(_part(role))
    if link or above is None:
        return False
    side = role[: len(role) - len(_part(role))]
    parent = roles.one(f"{side}{above}")
    bone = driver[roles.chain(role)[0]]
    return parent is not None and not {parent, driver[parent]} & set(target.skeleton.ancestors(bone))


_ABOVE = {
    "LowerArm": "UpperArm",
    "Hand": "LowerArm",
    "LowerLeg": "UpperLeg",
    "Foot": "LowerLeg",
    "Toes": "Foot",
}


def _part(role: str) -> str:
    return next((role[len(side) :] for side in SIDES if role.startswith(side)), role)
