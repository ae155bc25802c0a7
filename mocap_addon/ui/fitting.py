# SPDX-License-Identifier: GPL-3.0-or-later
"""Take and character held against each other: worked out once, so that an edit of the table costs a few milliseconds.

What is kept depends on the take, on the character's rest pose and controls and on which bone follows which, never on corrections, sliders
or poses.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field, replace

import bpy
import numpy as np

from .. import retarget, rig
from ..blender import armature, control_rig, rig_links, routing
from ..blender.armature import Target
from ..blender.control_rig import Puppet
from ..blender.job import JobOptions
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from ..retarget.adjust import NO_ADJUSTMENTS, Adjustments
from ..retarget.build import Bodies, bodies_of
from ..retarget.neutral import source_reference
from ..retarget.root_motion import RootMotion
from ..retarget.transfer import RetargetOptions
from ..retarget.travel import sole_thickness
from ..rig.table import CorrectionTable, Row

_KEPT = 4
_targets: OrderedDict[tuple[object, ...], Target] = OrderedDict()
_fittings: OrderedDict[tuple[object, ...], Fitting] = OrderedDict()
_puppets: OrderedDict[tuple[object, ...], tuple[Target, Puppet, tuple[float | None, ...]]] = OrderedDict()


@dataclass(frozen=True, eq=False)
class Fitting:
    """A take and a character: what the motion goes to, both bodies at their reference poses, how thick the performer's soles are, what
    carries the hips' travel, the joints that play the root on both sides."""

    take: Take
    target: Target
    puppet: Puppet
    bodies: Bodies
    sole: float
    carrier: int | None
    roots: tuple[int | None, int | None]
    _measures: dict[tuple[object, ...], Row] = field(default_factory=dict[tuple[object, ...], Row], init=False, repr=False)

    @property
    def skeleton(self) -> Skeleton:
        """What the take is carried to: the character's bones, or the body behind its controls."""
        return self.puppet.skeleton

    def fitted(self, table: CorrectionTable) -> CorrectionTable:
        """The rows that :attr:`skeleton` has joints for."""
        return control_rig.fitted(table, self.puppet)

    def measured(self, table: CorrectionTable) -> CorrectionTable:
        """The rows that fit, with residuals computed anew where a row is another one than the last time."""
        table = self.fitted(table)
        changed = [row for row in table.rows if _asked(row) not in self._measures]
        found = retarget.measured(replace(table, rows=tuple(changed)), self.take.skeleton, self.skeleton, bodies=self.bodies).rows
        known = self._measures | {_asked(row): row for row in found}
        self._measures.clear()
        self._measures.update({_asked(row): known[_asked(row)] for row in table.rows})
        measures = [known[_asked(row)] for row in table.rows]
        rows = [replace(r, alignment=m.alignment, residual=m.residual, hinge=m.hinge) for r, m in zip(table.rows, measures, strict=True)]
        return replace(table, rows=tuple(rows))

    def options(self, job: JobOptions, adjustments: Adjustments = NO_ADJUSTMENTS, root: RootMotion | None = None) -> RetargetOptions:
        """For a retarget of the take, or of any part of it.

        Without ``root`` the hips carry the character and of the root motion only the height counts: where it starts, and the way that is
        left out in place, cannot be told from a part.
        """
        height = job.root.height if job.root.height != "ground" else "scaled"
        return RetargetOptions(
            travel=job.travel,
            locations=job.extras.locations or None,
            scales=job.extras.scales,
            bodies=self.bodies,
            sole=self.sole,
            inherits_rotation=self.puppet.inherits_rotation,
            carrier=self.carrier,
            adjustments=adjustments,
            root=root or RootMotion(height=height),
            root_joints=self.roots,
        )


def _asked(row: Row) -> tuple[object, ...]:
    """What the measures of a row depend on, besides the two bodies."""
    return row.role, row.target, row.source, row.rule, row.correction


def fit(obj: bpy.types.Object, take: Take, table: CorrectionTable, job: JobOptions) -> Fitting:
    """Take and character by the rows of ``table``; from memory where nothing that counts has changed.

    Raises
    ------
    MocapError
        The table does not fit one of the two, or there is no such frame, or there are no such controls.
    """
    target, puppet = puppet_of(obj, table, job)
    rows = tuple((row.role, row.target, row.source, row.movable) for row in table.rows)
    key = (id(take), id(puppet), job.reference_frame, rows)
    found = _fittings.get(key)
    if found is None or found.take is not take or found.puppet is not puppet:
        reference = source_reference(take, job.reference_frame)
        roles = (rig.match(take.skeleton), puppet.roles)
        fitting = control_rig.fitted(table, puppet)
        axes = target.object_rotation
        bodies = bodies_of(fitting, take.skeleton, puppet.skeleton, reference=reference, target_axes=axes, roles=roles)
        carrier = routing.carrier_of(target, table)[0] if puppet.plan is None else None
        found = Fitting(take, target, puppet, bodies, sole_thickness(take, bodies), carrier, (roles[0].one("root"), roles[1].one("root")))
        _remember(_fittings, key, found)
    _fittings.move_to_end(key)
    return found


def puppet_of(obj: bpy.types.Object, table: CorrectionTable, job: JobOptions) -> tuple[Target, Puppet]:
    """The character, and what motion goes to on it.

    Raises
    ------
    TargetError
        It cannot take motion, or has no such controls.
    """
    target = target_of(obj)
    hips = tuple(row.target for row in table.rows if row.role == "hips")
    key = (id(target), job.controls, hips, _constraints(obj))
    found = _puppets.get(key)
    if found is None or found[0] is not target or found[2] != _switches(obj, found[1]):
        puppet = control_rig.puppet(obj, target, rig.match(target.skeleton), job.controls, table)
        found = (target, puppet, _switches(obj, puppet))
        _remember(_puppets, key, found)
    return found[:2]


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
    _puppets.clear()
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
    modes = np.empty(len(bones), dtype=np.int32)
    obj.pose.bones.foreach_get("rotation_mode", modes)
    where = np.array(obj.matrix_world, dtype=np.float64).tobytes() + np.array(obj.location, dtype=np.float64).tobytes()
    unit = bpy.context.scene.unit_settings.scale_length
    parents = tuple([parent and parent.name for bone in bones for parent in (bone.parent,)])
    numbers = tuple(values.tobytes() for values in (rest, length, flags, modes))
    return (obj.session_uid, unit, where, tuple(bones.keys()), parents, *numbers)


def _constraints(obj: bpy.types.Object) -> tuple[tuple[object, ...], ...]:
    """What of a rig's constraints says which bone drives which."""
    bones = [bone for bone in obj.pose.bones if bone.constraints]
    return tuple([(bone.name, c.type, c.mute, getattr(c, "subtarget", "")) for bone in bones for c in bone.constraints])


def _switches(obj: bpy.types.Object, puppet: Puppet) -> tuple[float | None, ...]:
    """What the limbs of a rig are switched to now."""
    limbs = puppet.plan.controls.limbs if puppet.plan is not None else ()
    return tuple(rig_links.value_of(obj, bone, prop) for limb in limbs for bone, prop, _value in limb.ik)


def _remember(store: OrderedDict, key: tuple[object, ...], value: object) -> None:
    store[key] = value
    while len(store) > _KEPT:
        store.popitem(last=False)
