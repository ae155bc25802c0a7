# SPDX-License-Identifier: GPL-3.0-or-later
"""Corrections from poses that a person makes in the viewport: the pose read, the reference pose laid out, the table filled."""

from __future__ import annotations

from dataclasses import replace

import bpy
import numpy as np
from numpy.typing import NDArray

from ..blender.armature import Target
from ..motion import quat
from ..motion.errors import TargetError
from ..motion.take import Take
from ..retarget import reference
from ..retarget.motion import PoseMotion
from ..rig.table import CorrectionTable
from . import preview
from .fitting import Fitting

Array = NDArray[np.float64]


def lay_out(scene: bpy.types.Scene, obj: bpy.types.Object, found: Fitting, table: CorrectionTable) -> None:
    """Pose the character as the take's reference pose has it, corrections included; its own pose is kept aside."""
    check(obj)
    motion = found.puppet.keys(_standing(found, found.fitted(table)))
    preview.hold(scene, obj, preview.REFERENCE)
    for bone in obj.pose.bones:
        bone.location, bone.scale = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    preview.write_pose(obj, found.target, motion)


def from_pose(obj: bpy.types.Object, found: Fitting, table: CorrectionTable, sample: Take | None) -> CorrectionTable:
    """The table corrected so that ``sample`` (None: the take's reference pose) gives the pose that the character has now."""
    check(obj)
    rotations = pose_of(obj, found.target)
    plan = found.puppet.plan
    if plan is not None:  # the body behind the controls has the axes of the world at rest
        joints = list(plan.body.joints)
        rotations = quat.mul(rotations[joints], quat.inv(found.target.skeleton.rest_global_rotations[joints]))
    fitting_rows = found.fitted(table)
    made = reference.corrected_to_pose(fitting_rows, found.skeleton, found.bodies, rotations, sample=sample)
    new = {row.target: row for row in made.rows}
    return replace(table, rows=tuple(new.get(row.target, row) for row in table.rows))


def check(obj: bpy.types.Object) -> None:
    """Raise :class:`TargetError` where the pose does not show."""
    if obj.data.pose_position == "REST":
        raise TargetError(f'"{obj.name}" shows its rest position; switch it to Pose Position (Armature properties) first.')


def pose_of(obj: bpy.types.Object, target: Target) -> Array:
    """(J, 4): global rotations of the bones as they stand, constraints included, in the target's space of the world.

    Raises
    ------
    TargetError
        The object is not evaluated.
    """
    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    if not seen.is_evaluated:
        raise TargetError(f'"{obj.name}" is disabled in this view layer; enable it, so that its pose can be read.')
    bones = seen.pose.bones
    matrices = np.empty(16 * len(bones), dtype=np.float32)
    bones.foreach_get("matrix", matrices)
    order = [bones.find(name) for name in target.skeleton.names]
    matrices = matrices.reshape(-1, 4, 4).transpose(0, 2, 1)[order].astype(np.float64)  # columns come one after another
    turns = matrices[:, :3, :3] / np.maximum(np.linalg.norm(matrices[:, :3, :3], axis=1, keepdims=True), 1e-12)
    return quat.mul(target.object_rotation, quat.from_matrix(turns))


def _standing(found: Fitting, table: CorrectionTable) -> PoseMotion:
    """The reference pose as one sample: every bone of the table where the take puts it, all others at rest."""
    skeleton, inherits = found.skeleton, found.puppet.inherits_rotation
    wanted = {skeleton.index(row.target): q for row, q in zip(table.rows, reference.standing(table, skeleton, found.bodies), strict=True)}
    rotations, bases = quat.identity(len(skeleton)), quat.identity(len(skeleton))
    for j, p in enumerate(skeleton.parents):
        follows = p >= 0 and (inherits is None or inherits[j])
        rest = quat.mul(rotations[p], skeleton.rest_rotations[j]) if follows else skeleton.rest_global_rotations[j]
        rotations[j] = wanted.get(j, rest)
        bases[j] = quat.mul(quat.inv(rest), rotations[j])
    return PoseMotion("", np.zeros(1), tuple(range(len(skeleton))), bases[None], (), np.zeros((1, 0, 3)))
