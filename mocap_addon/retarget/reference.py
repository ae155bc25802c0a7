# SPDX-License-Identifier: GPL-3.0-or-later
"""Corrections from poses: a person stands the character as the performer stands, and the table is to say so.

Derivation, from equation (1) of :mod:`.transfer`. Without corrections a bone stands at ``T'(t) = A S(t) S0^-1 A^-1 . R B T0``. With
``E = R B T0``, and ``D = T' E^-1`` (how far the source has turned away from its reference, in character axes; the identity at the
reference), the whole is

    T(t) = D P C E

where ``P`` is the roll that a forearm's or hand's own correction passes down (:func:`.build.passed_rolls`). It is to be what the person
made, ``T = H Q``: ``Q`` the bone's rotation in the world, ``H`` what turns the character as it was posed to where the take has it. So

    C = P^-1 D^-1 H Q E^-1

At the reference pose ``T`` is in character axes, so ``H = B``. For a sample of the take ``H`` is the identity, unless the character was
posed facing another way: then it is the turn about the vertical that brings the posed hips to face as the take's do.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import RigError
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from ..rig.table import CorrectionTable
from . import build
from .build import Bodies
from .neutral import source_reference
from .transfer import RetargetOptions, retarget

Array = NDArray[np.float64]

SAME_WAY = np.radians(30.0)
"""Hips whose facing differs by less were turned on purpose; by more, the character was posed where it stands and only the pose counts."""

UNTOUCHED = np.radians(0.01)
"""A correction that would change by less stays the number it was."""

_PASSES = 3  # a forearm's roll reaches the hand, and both reach the fingers


def reference_take(take: Take, frame: int | None) -> Take:
    """One sample: the take's reference pose, as a take."""
    if frame is None:
        found = source_reference(take, None)
        skeleton = take.skeleton if found is None else found.skeleton
        rotations, translations = skeleton.rest_rotations, skeleton.rest_translations
        return replace(
            take.block(0, 0), times=np.zeros(1), local_rotations=rotations[None], local_translations=translations[None], valid=None
        )
    if not 0 <= frame < take.frames:
        raise RigError(f'The take "{take.name}" has no sample {frame}; it has samples 0 to {take.frames - 1}.')
    return take.block(frame, frame + 1)


def standing(table: CorrectionTable, target: Skeleton, bodies: Bodies) -> Array:
    """(n, 4): every row's bone as the take's reference pose puts it, in the target's own space of the world. Corrections included."""
    turns = quat.mul(_rolled(table, target, bodies), _plain(table, target, bodies))
    return quat.mul(quat.inv(bodies.target.turn), turns)


def corrected_to_pose(
    table: CorrectionTable,
    target: Skeleton,
    bodies: Bodies,
    rotations: Array,
    *,
    sample: Take | None = None,
) -> CorrectionTable:
    """The table with corrections that put the character into a pose.

    Parameters
    ----------
    table : CorrectionTable
    target : Skeleton
    bodies : Bodies
    rotations : (J, 4) array
        Global rotations of the target's bones in the pose, in the target's space of the world.
    sample : Take, optional
        One sample of the take that the pose belongs to; None: the take's reference pose.

    Returns
    -------
    CorrectionTable
        Retargeting ``sample`` with it gives the pose; corrections that need no change keep their numbers.
    """
    joints = [target.index(row.target) for row in table.rows]
    plain = _plain(table, target, bodies)  # E
    if sample is None:
        turned, wanted = quat.identity(len(joints)), quat.mul(bodies.target.turn, rotations[joints])
    else:
        bare = replace(table, rows=tuple(replace(row, correction=(0.0, 0.0, 0.0)) for row in table.rows))
        moved = retarget(sample, bare, target, RetargetOptions(bodies=bodies, sole=0.0)).to_take(target)
        turned = quat.mul(moved.global_rotations[0, joints], quat.inv(plain))  # D
        now = quat.mul(quat.mul(turned, _rolled(table, target, bodies)), plain)
        hips = [k for k, row in enumerate(table.rows) if row.role == "hips"][:1]
        wanted = quat.mul(_facing(rotations[joints][hips], now[hips]), rotations[joints])
    whole = quat.mul(quat.mul(quat.inv(turned), wanted), quat.inv(plain))  # P C
    return _with_corrections(table, target, bodies, whole)


def _with_corrections(table: CorrectionTable, target: Skeleton, bodies: Bodies, whole: Array) -> CorrectionTable:
    """Corrections that, with the rolls they pass down to each other, come to ``whole (n, 4)``."""
    joints = [target.index(row.target) for row in table.rows]
    if not table.rows or bool((quat.angle(_rolled(table, target, bodies), whole) < UNTOUCHED).all()):
        return table
    rows = table.rows
    for _ in range(_PASSES):
        rolls = build.passed_rolls(rows, target, bodies)
        own = quat.mul(quat.inv(np.array([rolls.get(joint, quat.IDENTITY) for joint in joints])), whole)
        same = quat.angle(build.corrections_of(table.rows), own) < UNTOUCHED
        same |= np.array([row.rule == "twist" for row in table.rows])  # it follows what the others do
        angles = np.degrees(quat.to_euler(own, "XYZ")).round(4) + 0.0
        rows = tuple(
            old if kept else replace(old, correction=(float(a[0]), float(a[1]), float(a[2])))
            for old, kept, a in zip(table.rows, same, angles, strict=True)
        )
    return replace(table, rows=rows)


def _plain(table: CorrectionTable, target: Skeleton, bodies: Bodies) -> Array:
    """(n, 4): ``E = R B T0`` of every row."""
    joints = [target.index(row.target) for row in table.rows]
    turns = np.array([bodies.turns.get(joint, quat.IDENTITY) for joint in joints]).reshape(-1, 4)
    return quat.mul(quat.mul(turns, bodies.target.turn), target.rest_global_rotations[joints])


def _rolled(table: CorrectionTable, target: Skeleton, bodies: Bodies) -> Array:
    """(n, 4): ``P C`` of every row."""
    rolls = build.passed_rolls(table.rows, target, bodies)
    passed = np.array([rolls.get(target.index(row.target), quat.IDENTITY) for row in table.rows]).reshape(-1, 4)
    return quat.mul(passed, build.corrections_of(table.rows))


def _facing(posed: Array, taken: Array) -> Array:
    """(4,): ``H`` from the hips as posed and as the take has them, ``(1, 4)`` each, or ``(0, 4)`` where there are none."""
    if not len(posed):
        return quat.IDENTITY
    _, twist = quat.swing_twist(quat.mul(taken[0], quat.inv(posed[0])), (0.0, 0.0, 1.0))
    return quat.IDENTITY if float(quat.angle(twist, quat.IDENTITY)) < SAME_WAY else twist
