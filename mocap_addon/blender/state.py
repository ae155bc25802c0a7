# SPDX-License-Identifier: GPL-3.0-or-later
"""What acts on a character beside the keys: said in plain sentences, never changed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

import bpy

from . import compat
from .recipes import place_of

_BONE_PATH = re.compile(r'pose\.bones\["((?:[^"\\]|\\.)*)"\]\.(\w+)')
_PLACING = ("location", "rotation", "scale", "delta_")
_NAMED = 5
_KEYED = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle")


def object_notes(obj: bpy.types.Object, scale: float) -> list[str]:
    """What the object itself does with any motion; ``scale`` is its scale in the world."""
    out: list[str] = []
    animation = obj.animation_data
    if obj.data.pose_position == "REST":
        out.append("The armature shows its rest position; switch it to Pose Position to see the motion.")
    if any(_acts(c) for c in obj.constraints) or _moves(obj):
        out.append("The object itself is animated or constrained; its place at the current frame is taken as its place.")
    if animation and animation.action_influence < 1.0:
        out.append(f"The object's animation has an influence of {animation.action_influence:.2f} in the NLA; the motion is weakened by it.")
    if animation and animation.action_blend_type != "REPLACE":
        out.append("The object's action is blended with NLA tracks below it and does not replace them.")
    if not 0.001 <= scale <= 1000.0:
        out.append(f"The object is scaled by {scale:g}.")
    return out


def bone_notes(
    obj: bpy.types.Object, keyed: Iterable[str], above: Iterable[str] = (), moving: Collection[str] = (), *, controls: bool = False
) -> list[str]:
    """What acts on the bones that get keys (those ``moving`` also for their location), and on those ``above`` them without keys.

    What constraints make of ``controls`` is known, and left out.
    """
    poses = [pose for name in keyed if (pose := obj.pose.bones.get(name)) is not None]
    out: list[str] = []

    def named(sentence: str, names: Sequence[str]) -> None:
        if names:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            out.append(sentence.format(", ".join(names[:_NAMED]) + more))

    ruled = _ruled(obj)
    free = [] if controls else poses
    named(
        "Constraints decide the rotation, whatever its keys say, at: {}; mute them to see the motion.",
        [f"{p.name} ({ruled[p.name]})" for p in free if p.name in ruled],
    )
    named(
        "Constraints act on top of the motion at: {}.",
        [f"{p.name} ({kinds})" for p in free if p.name not in ruled and (kinds := ", ".join(c.name for c in p.constraints if _acts(c)))],
    )
    named("Locks do not hold keys back; locked rotation at: {}.", [p.name for p in poses if any(p.lock_rotation)])
    named("Locks do not hold keys back; locked location at: {}.", [p.name for p in poses if p.name in moving and any(p.lock_location)])
    moved = _animated(obj)
    named(
        "Bones scaled in the current pose stay scaled: {}.",
        [p.name for p in poses if (p.name, "scale") not in moved and max(abs(s - 1.0) for s in p.scale) > 1e-4],
    )
    driven = _driven(obj)
    named("Drivers override keys at: {}.", [p.name for p in poses if p.name in driven])
    named("The character is carried by the pose of bones that get no keys: {}.", [name for name in above if _posed(obj, name, moved)])
    return out


def _driven(obj: bpy.types.Object) -> set[str]:
    """Bones whose pose drivers decide."""
    animation = obj.animation_data
    paths = [d.data_path for d in animation.drivers] if animation else []
    return {bpy.utils.unescape_identifier(m[1]) for m in map(_BONE_PATH.match, paths) if m and m[2] in _KEYED}


def moved_by_rig(obj: bpy.types.Object) -> set[str]:
    """Bones that drivers or constraints of the rig move, whatever keys they have."""
    return _driven(obj) | _ruled(obj).keys() | {pose.name for pose in obj.pose.bones if any(_acts(c) for c in pose.constraints)}


def _acts(constraint: bpy.types.Constraint) -> bool:
    return not constraint.mute and constraint.influence > 0.0 and constraint.is_valid


def _rules(constraint: bpy.types.Constraint) -> bool:
    """Whether the constraint leaves nothing of the rotation that a bone's keys give it."""
    if not _acts(constraint) or constraint.influence < 1.0:
        return False
    kind = constraint.type
    if kind == "COPY_TRANSFORMS":
        return constraint.mix_mode == "REPLACE"
    if kind == "COPY_ROTATION":
        return constraint.mix_mode == "REPLACE" and constraint.use_x and constraint.use_y and constraint.use_z
    return False


def _ruled(obj: bpy.types.Object) -> dict[str, str]:
    """Bone -> name of the constraint that decides its rotation: its own, or the inverse kinematics of a bone below it."""
    out: dict[str, str] = {}
    for pose in obj.pose.bones:
        for constraint in pose.constraints:
            if _rules(constraint):
                out[pose.name] = constraint.name
            elif constraint.type in ("IK", "SPLINE_IK") and _acts(constraint) and constraint.influence == 1.0:
                chain = [pose, *pose.parent_recursive] if getattr(constraint, "use_tail", True) else list(pose.parent_recursive)
                length = constraint.chain_count or len(chain)
                out.update({bone.name: constraint.name for bone in chain[:length]})
    return out


def _posed(obj: bpy.types.Object, name: str, moved: set[tuple[str, str]]) -> bool:
    """Whether a bone is posed by hand: what the action before has left there is put back to rest (:mod:`.leftovers`)."""
    pose = obj.pose.bones.get(name)
    if pose is None or any(bone == name for bone, _ in moved):
        return False
    basis = pose.matrix_basis
    return max(abs(basis[i][k] - float(i == k)) for i in range(4) for k in range(4)) > 1e-4


def _animated(obj: bpy.types.Object) -> set[tuple[str, str]]:
    """Names of the bones that the assigned action moves, with the property."""
    animation = obj.animation_data
    if animation is None:
        return set()
    found = (_BONE_PATH.match(curve.data_path) for curve in compat.moving_curves(animation))
    return {(bpy.utils.unescape_identifier(m[1]), m[2]) for m in found if m}


def _moves(obj: bpy.types.Object) -> bool:
    """Whether drivers or the assigned action move the object as a whole, other than by the travel that an action of ours gives it."""
    animation = obj.animation_data
    if animation is None:
        return False
    if any(driver.data_path.startswith(_PLACING) for driver in animation.drivers):
        return True
    if animation.action is None:
        return False
    place = place_of(animation.action)
    turned = place is not None and place.rotation is not None
    starts = ("scale", "delta_", *(() if place is not None else ("location",)), *(() if turned else ("rotation",)))
    return any(curve.data_path.startswith(starts) and _varies(curve) for curve in compat.moving_curves(animation))


def _varies(curve: bpy.types.FCurve) -> bool:
    return len(curve.keyframe_points) != 1 or len(curve.modifiers) > 0
