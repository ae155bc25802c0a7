# SPDX-License-Identifier: GPL-3.0-or-later
"""Take and character held against each other: worked out once, so that an edit of the table costs a few milliseconds.

What is kept depends on the take, on the character's rest pose and on which bone follows which, never on corrections, sliders or poses.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import bpy
import numpy as np

from .. import rig
from ..blender import armature, routing
from ..blender.armature import Target
from ..blender.job import JobOptions
from ..motion.take import Take
from ..retarget.adjust import NO_ADJUSTMENTS, Adjustments
from ..retarget.build import Bodies, bodies_of
from ..retarget.neutral import Chosen, source_reference
from ..retarget.root_motion import RootMotion
from ..retarget.transfer import RetargetOptions
from ..retarget.travel import sole_thickness
from ..rig.table import CorrectionTable

_KEPT = 4
_targets: OrderedDict[tuple[object, ...], Target] = OrderedDict()
_fittings: OrderedDict[tuple[object, ...], Fitting] = OrderedDict()


@dataclass(frozen=True, eq=False)
class Fitting:
    """A take and a character: both bodies at their reference poses, how thick the performer's soles are, what carries the hips' travel."""

    take: Take
    target: Target
    bodies: Bodies
    sole: float
    carrier: int | None

    def options(self, job: JobOptions, adjustments: Adjustments = NO_ADJUSTMENTS) -> RetargetOptions:
        """For a retarget of any part of the take.

        Of the root motion only the height counts here: who carries the character does not show, and where it starts cannot be told from
        a part.
        """
        height = job.root.height if job.root.height != "ground" else "scaled"
        return RetargetOptions(
            travel=job.travel,
            bodies=self.bodies,
            sole=self.sole,
            inherits_rotation=self.target.inherits_rotation,
            carrier=self.carrier,
            adjustments=adjustments,
            root=RootMotion(height=height),
        )


def fit(obj: bpy.types.Object, take: Take, table: CorrectionTable, reference_frame: Chosen) -> Fitting:
    """Take and character by the rows of ``table``; from memory where nothing that counts has changed.

    Raises
    ------
    MocapError
        The table does not fit one of the two, or there is no such frame.
    """
    target = target_of(obj)
    rows = tuple((row.role, row.target, row.source, row.movable) for row in table.rows)
    key = (id(take), id(target), reference_frame, rows)
    found = _fittings.get(key)
    if found is None or found.take is not take or found.target is not target:
        reference = source_reference(take, reference_frame)
        roles = (rig.match(take.skeleton), rig.match(target.skeleton))
        axes = target.object_rotation
        bodies = bodies_of(table, take.skeleton, target.skeleton, reference=reference, target_axes=axes, roles=roles)
        found = Fitting(take, target, bodies, sole_thickness(take, bodies), routing.carrier_of(target, table)[0])
        _remember(_fittings, key, found)
    _fittings.move_to_end(key)
    return found


def target_of(obj: bpy.types.Object) -> Target:
    """What :func:`armature.read` says of a character; read anew only when its rest pose, transform or bone settings changed.

    Raises
    ------
    TargetError
        It cannot take motion.
    """
    key = _state(obj)
    found = _targets.get(key)
    if found is None:
        found = armature.read(obj)
        _remember(_targets, _state(obj), found)  # reading evaluates the scene, which may have moved the object
    return found


def forget_all() -> None:
    """Let go of everything."""
    _targets.clear()
    _fittings.clear()


_BONE_FLAGS = ("use_inherit_rotation", "use_connect", "use_local_location", "use_deform")


def _state(obj: bpy.types.Object) -> tuple[object, ...]:
    """All that a :class:`Target` depends on. Reads properties only; nothing is evaluated."""
    armature.check(obj)
    bones = obj.data.bones
    rest = np.empty(16 * len(bones), dtype=np.float32)
    bones.foreach_get("matrix_local", rest)
    length = np.empty(len(bones), dtype=np.float32)
    bones.foreach_get("length", length)
    flags = np.empty((len(_BONE_FLAGS), len(bones)), dtype=bool)
    for name, row in zip(_BONE_FLAGS, flags, strict=True):
        bones.foreach_get(name, row)
    modes = tuple(bone.rotation_mode for bone in obj.pose.bones)
    where = np.array(obj.matrix_world, dtype=np.float64).tobytes() + np.array(obj.location, dtype=np.float64).tobytes()
    unit = bpy.context.scene.unit_settings.scale_length
    parents = tuple(bone.parent.name if bone.parent else "" for bone in bones)
    return (obj.session_uid, unit, where, tuple(bones.keys()), parents, rest.tobytes(), length.tobytes(), flags.tobytes(), modes)


def _remember(store: OrderedDict, key: tuple[object, ...], value: object) -> None:
    store[key] = value
    while len(store) > _KEPT:
        store.popitem(last=False)
