# SPDX-License-Identifier: GPL-3.0-or-later
"""A rig's constraints -> the plain links that :mod:`mocap_addon.retarget.controls` follows."""

from __future__ import annotations

import bpy

from ..retarget.controls import Bones, Link
from .armature import Target

_SAME = ("WORLD", "POSE")
_KINDS = {"COPY_TRANSFORMS": "transforms", "COPY_ROTATION": "rotation", "COPY_LOCATION": "location"}


def read(obj: bpy.types.Object, target: Target) -> Bones:
    """The rig's bones with what they follow now, driven influences included. Nothing is changed."""
    ready = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    poses = (ready if ready.is_evaluated else obj).pose.bones
    links: dict[int, tuple[Link, ...]] = {}
    for pose in poses:
        if len(pose.constraints) and pose.name in target.skeleton:
            found = [link for c in pose.constraints if (link := _link(obj, c, target)) is not None]
            if found:
                links[target.skeleton.index(pose.name)] = tuple(found)
    return Bones(target.skeleton, target.inherits_rotation, links)


def acts(constraint: bpy.types.Constraint) -> bool:
    """Whether a constraint does anything at all."""
    return not constraint.mute and constraint.influence > 0.0 and constraint.is_valid


def own_target(obj: bpy.types.Object, constraint: bpy.types.Constraint) -> str:
    """The bone of the same rig that a constraint is aimed at; empty when it is anything else."""
    aim = getattr(constraint, "target", None)
    same = aim is not None and aim.original == obj.original
    return str(constraint.subtarget) if same else ""


def bent_by(target: Target, owner: int, constraint: bpy.types.Constraint) -> list[int]:
    """The bones that an inverse kinematics constraint on ``owner`` bends, from the tip on."""
    above = target.skeleton.ancestors(owner)
    chain = [owner, *above] if constraint.use_tail else above
    return chain[: constraint.chain_count or len(chain)]


def pole_of(obj: bpy.types.Object, constraint: bpy.types.Constraint) -> str:
    """The bone of the same rig that is the constraint's pole; empty when there is none."""
    pole = constraint.pole_target
    return str(constraint.pole_subtarget) if pole is not None and pole.original == obj.original else ""


def value_of(obj: bpy.types.Object, bone: str, prop: str) -> float | None:
    """What a setting of a bone stands at; None where there is no such thing. ``prop`` as in :class:`PoseMotion`'s settings."""
    pose = obj.pose.bones.get(bone)
    if pose is None:
        return None
    try:
        return float(pose.path_resolve(prop[1:] if prop.startswith(".") else f'["{bpy.utils.escape_identifier(prop)}"]'))
    except (ValueError, TypeError):
        return None


def set_value(obj: bpy.types.Object, bone: str, prop: str, value: float) -> None:
    """Set what :func:`value_of` tells; nothing where there is no such thing."""
    if value_of(obj, bone, prop) is None:
        return
    pose = obj.pose.bones[bone]
    if prop.startswith("."):
        owner, _, name = prop[1:].rpartition(".")
        setattr(pose.path_resolve(owner) if owner else pose, name, value)
    else:
        pose[prop] = type(pose[prop])(value)


def _link(obj: bpy.types.Object, c: bpy.types.Constraint, target: Target) -> Link | None:
    if not acts(c):
        return None
    if c.type == "ARMATURE":
        weights = [
            (target.skeleton.index(t.subtarget), float(t.weight))
            for t in c.targets
            if t.target is not None and t.target.original == obj.original and t.subtarget in target.skeleton
        ]
        return Link("parents", tuple(weights), float(c.influence)) if weights else None
    kind = _KINDS.get(c.type)
    name = own_target(obj, c)
    if kind is None or name not in target.skeleton:
        return None
    local = c.target_space == "LOCAL" and c.owner_space == "LOCAL"
    if not local and not (c.target_space in _SAME and c.owner_space in _SAME):
        return None
    whole = kind == "transforms" or (c.use_x and c.use_y and c.use_z and not (c.invert_x or c.invert_y or c.invert_z))
    offset = getattr(c, "use_offset", False) and kind == "location"
    if not whole or offset or getattr(c, "mix_mode", "REPLACE") != "REPLACE" or getattr(c, "head_tail", 0.0) > 0.0:
        return None
    return Link(kind, ((target.skeleton.index(name), 1.0),), float(c.influence), local)
