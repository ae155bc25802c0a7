# SPDX-License-Identifier: GPL-3.0-or-later
"""The transfer: a take's rotations onto a target skeleton, all frames at once.

Derivation
----------
Global rotations in the world; ``S`` source joint, ``S0`` the same at the reference pose, ``T`` target bone, ``T0`` at rest. ``A`` and
``B`` turn the source's and the target's reference body upright, facing -Y (:mod:`.frames`), ``R`` is the alignment (:mod:`.align`), ``C``
the table's correction.

    T(t) = A S(t) S0^-1 A^-1 . C R B T0                                                                        (1)

The source turns away from its reference by ``S S0^-1`` in the world, by ``A S S0^-1 A^-1`` in character axes; the target does the same,
starting from its corrected rest. Bone roll is part of ``T0`` on the far right: it never touches the motion. With ``G = S`` and ``K = S0^-1
A^-1 C R B T0``, constant per bone, this is ``T(t) = A G(t) K``. For a link that follows two (``blend``) or a whole chain (``chord``),
``G`` is the interpolated *delta* and ``K = A^-1 C R B T0``.

A pose bone stores its turn away from rest in its parent's frame: with ``p`` the parent, ``a`` the nearest ancestor that is keyed, ``L``
the constant rotation from ``a`` to ``p`` (bones between stay at rest), and ``r`` the bone's own local rest rotation,

    basis(t) = r^-1 T_p^-1 T = r^-1 L^-1 K_a^-1 . [G_a(t)^-1 G_b(t)] . K_b                                      (2)

``A`` has cancelled: where the world stands does not matter below the hips. When the source of ``a`` stands above the source of ``b``, the
bracket is the product of the source's *local* rotations on the way down: usually one of them, and no forward kinematics are needed.
Left and right factors are constant, so (2) is one 4x4 matrix per bone times the quaternions of all frames.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import RigError
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from ..rig.matcher import match
from ..rig.table import CorrectionTable, Row
from . import build, frames, props, root_source, scales, travel
from .adjust import NO_ADJUSTMENTS, Adjustments, adjusted
from .build import Bodies
from .chains import beyond, link_offsets
from .motion import PoseMotion
from .root_motion import AS_RECORDED, RootMotion
from .twist import Twists, strays

Array = NDArray[np.float64]

_BELOW_HINGE = ("LowerArm", "LowerLeg")

BLOCK = 2000
"""Frames worked on at a time: temporaries of this size stay in the processor's cache."""


@dataclass(frozen=True)
class RetargetOptions:
    """How to carry a take over.

    Parameters
    ----------
    travel : float or None
        Scale of the hips' travel; None: the ratio of leg lengths.
    locations : float or None
        Scale of the locations of other movable bones; None: that of the travel.
    scales : bool
        Movable bones are scaled as the take scales the joints that they follow (:mod:`.scales`).
    reference : Pose or None
        The source's reference pose (see :func:`reference_pose`); None: its rest pose.
    target_axes : (4,) array or None
        Rotation of the target's own space in the world (its object's).
    sole : float or None
        Metres below the source's lowest joint when it stands (:func:`.travel.sole_thickness`); None: found from the take.
    inherits_rotation : (J,) bool array or None
        Target bones that follow their parent's rotation; None: all.
    carrier : int or None
        Target bone that takes the hips' travel in their place, one above them without a row of its own; :data:`.travel.WHOLE`: the
        character as a whole; None: the hips themselves.
    bodies : Bodies or None
        Both bodies at their reference poses, where they are known already (:func:`.build.bodies_of`); ``reference`` and ``target_axes``
        are then in them.
    adjustments : Adjustments
        Body sliders (:mod:`.adjust`).
    root : RootMotion
        Who carries the character over the ground.
    root_joints : (int or None, int or None), optional
        The joints that play the root in the source and in the target, where they are known already.
    """

    travel: float | None = None
    locations: float | None = None
    scales: bool = False
    reference: frames.Pose | None = None
    target_axes: Array | None = None
    sole: float | None = None
    inherits_rotation: NDArray[np.bool_] | None = None
    carrier: int | None = None
    bodies: Bodies | None = None
    adjustments: Adjustments = NO_ADJUSTMENTS
    root: RootMotion = AS_RECORDED
    root_joints: tuple[int | None, int | None] | None = None


def reference_pose(take: Take, frame: int | None) -> frames.Pose | None:
    """The pose of sample ``frame`` as a reference, or None for the rest pose; :class:`RigError` when there is no such sample."""
    if frame is None:
        return None
    if not 0 <= frame < take.frames:
        raise RigError(f'The take "{take.name}" has no sample {frame}; it has samples 0 to {take.frames - 1}.')
    one = take.block(frame, frame + 1)
    return frames.posed(take.skeleton, {}, one.global_rotations[0], one.global_positions[0])


def retarget(take: Take, table: CorrectionTable, target: Skeleton, options: RetargetOptions | None = None) -> PoseMotion:
    """Carry a take onto a target skeleton.

    Parameters
    ----------
    take : Take
    table : CorrectionTable
        As :func:`.build.build_table` computed it, or an edited or loaded one.
    target : Skeleton
        In world axes and metres, relative to where the take's origin shall be.
    options : RetargetOptions, optional

    Returns
    -------
    PoseMotion
        Keys of the table's bones only, in the table's order of bones.

    Raises
    ------
    RigError
        A row names a bone that is not there, the hips are missing, or a root is wanted and there is none.
    """
    options = options or RetargetOptions()
    if take.frames == 0:
        raise RigError(f'The take "{take.name}" has no frames; there is nothing to retarget.')
    bodies = options.bodies or build.bodies_of(table, take.skeleton, target, reference=options.reference, target_axes=options.target_axes)
    if options.sole is None:
        options = replace(options, sole=travel.sole_thickness(take, bodies))
    plan = _Plan(table, take.skeleton, target, bodies, options)
    count = take.frames
    rotations = np.empty((count, len(plan.bones), 4), order="F")
    locations = np.empty((count, len(plan.moving), 3), order="F")
    for start in range(0, count, BLOCK):
        stop = min(start + BLOCK, count)
        plan.run(take.block(start, stop), rotations[start:stop], locations[start:stop])
    for k in range(rotations.shape[1]):
        _make_continuous(rotations[:, k])
    kept = [m for m, joint in enumerate(plan.moving) if joint != travel.WHOLE]
    whole = [m for m, joint in enumerate(plan.moving) if joint == travel.WHOLE]
    motion = PoseMotion(
        name=take.name,
        times=take.times,
        bones=plan.bones,
        rotations=rotations,
        moving=tuple(plan.moving[m] for m in kept),
        locations=locations[:, kept] if whole else locations,
        rate=take.rate,
        curves=dict(take.curves),
        placement=locations[:, whole[0]] if whole else None,
        props=props.carried(take, bodies, travel.travel_scale(bodies) if options.travel is None else options.travel) if take.props else {},
        scales=plan.scales(take),
    ).with_time_code(take.time_code)
    motion = adjusted(motion, target, bodies.target, options.adjustments, inherits_rotation=options.inherits_rotation)
    motion = _twisted(motion, table, target, bodies, options)
    return motion if options.root.plain else _rooted(motion, take, target, bodies, options)


def prepared(table: CorrectionTable, source: Skeleton, target: Skeleton, options: RetargetOptions) -> _Plan:
    """What :func:`retarget` works out before it looks at a frame, for :mod:`.moment`; ``options.bodies`` and ``options.sole`` are given."""
    assert options.bodies is not None
    return _Plan(table, source, target, options.bodies, options)


def _twisted(motion: PoseMotion, table: CorrectionTable, target: Skeleton, bodies: Bodies, options: RetargetOptions) -> PoseMotion:
    """The motion with the twist bones that the table has."""
    twists = Twists.of(table, target, bodies.target, bodies.turns, motion.bones, options.inherits_rotation)
    notes = (*motion.notes, *strays(table, target))
    if twists is None:
        return replace(motion, notes=notes) if notes != motion.notes else motion
    return replace(motion, bones=twists.bones, rotations=twists.apply(motion.rotations), notes=notes)


def _rooted(motion: PoseMotion, take: Take, target: Skeleton, bodies: Bodies, options: RetargetOptions) -> PoseMotion:
    """The motion with its root motion where the options want it."""
    joints = options.root_joints or (match(take.skeleton).one("root"), match(target).one("root"))
    scale = travel.travel_scale(bodies) if options.travel is None else options.travel
    sole = scale * (options.sole or 0.0)
    chain = root_source.chain_of(target, bodies.target, joints[1], options.inherits_rotation, options.carrier, sole)
    out = root_source.apply(motion, take, chain, bodies, options.root, root=joints[0], scale=scale)
    return replace(out, props=props.moved_along(motion, out, chain))


def _first_of(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


def _make_continuous(q: Array) -> None:
    """Signs of ``q (F, 4)`` in place so that neighbours have a dot product >= 0."""
    if len(q) < 2:
        return
    dots = q[1:, 0] * q[:-1, 0]
    for c in range(1, 4):
        dots += q[1:, c] * q[:-1, c]
    flips = np.flatnonzero(dots < 0.0) + 1
    for start, stop in zip(flips[::2], [*flips[1::2], len(q)], strict=False):
        q[start:stop] *= -1.0


@dataclass(frozen=True, eq=False)
class _Bone:
    """One row, made ready: its constants of equation (2)."""

    row: Row
    joint: int
    sources: tuple[int, ...]
    matrix: Array  # (4, 4): left and right factors of (2)
    above: int | None  # place in the plan of the keyed ancestor, None when there is none
    turn: Array  # (4,): K of (1)


class _Plan:
    """Everything that does not depend on the frame."""

    def __init__(self, table: CorrectionTable, source: Skeleton, target: Skeleton, bodies: Bodies, options: RetargetOptions) -> None:
        self.source, self.target, self.bodies = source, target, bodies
        self.turn_source = bodies.source.turn
        self.reference = bodies.source.pose.rotations
        inherits = options.inherits_rotation if options.inherits_rotation is not None else np.ones(len(target), dtype=bool)
        names = [row.target for row in table.rows]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise RigError(f'The target bone "{twice}" has two rows in the table; delete one of them.')
        rows = sorted((row for row in table.rows if row.rule != "twist"), key=lambda row: target.index(row.target))
        joints = [target.index(row.target) for row in rows]
        place = {joint: k for k, joint in enumerate(joints)}
        sources = [self._sources(row) for row in rows]
        constants = self._constants(rows, joints, sources)
        above = [self._keyed_ancestor(joint, place, inherits) for joint in joints]
        left = quat.mul(np.array([between for _, between in above]).reshape(-1, 4), target.rest_rotations[joints])  # L r
        outer = np.array([quat.inv(self.turn_source) if a is None else constants[a] for a, _ in above]).reshape(-1, 4)
        matrices = quat.left_matrix(quat.inv(quat.mul(outer, left))) @ quat.right_matrix(constants)  # (outer L r)^-1 . K_b
        self.plan = [_Bone(*parts) for parts in zip(rows, joints, sources, matrices, [a for a, _ in above], constants, strict=True)]
        self.bones = tuple(bone.joint for bone in self.plan)
        movable = [bone for bone in self.plan if bone.row.movable]
        self._scaled = [bone for bone in movable if bone.row.rule == "copy"] if options.scales else []
        carrier = self._carrier(options.carrier)
        self.moving = tuple(carrier if bone.row.role == "hips" and carrier is not None else bone.joint for bone in movable)
        self._movers: list[Callable[[Take, BlockMotion], Array]] = [
            travel.hips(
                target,
                bodies,
                options.travel,
                options.sole or 0.0,
                bone.joint,
                bone.sources[0],
                build.correction_of(bone.row),
                carrier,
                root_source.HEIGHTS_AS_RECORDED if options.root.height == "keep" else None,
            )
            if bone.row.role == "hips"
            else travel.other(
                source,
                target,
                bodies,
                _first_of(options.locations, options.travel),
                bone.joint,
                bone.sources[0],
                frozenset(one.sources[0] for one in self._scaled),
            )
            for bone in movable
        ]
        self._offsets = {  # a leaf's end never counts
            bone.joint: link_offsets(source, bone.sources, beyond(bone.row.role, bodies.source.pose.roles), ends=False)
            for bone in self.plan
            if bone.row.rule == "chord"
        }

    def _carrier(self, carrier: int | None) -> int | None:
        """The carrier, checked: it stands above the hips and has no row."""
        hips = next((bone.joint for bone in self.plan if bone.row.role == "hips"), None)
        if carrier is None or carrier == travel.WHOLE or hips is None:
            return carrier
        if carrier in self.bones or carrier not in self.target.ancestors(hips):
            name = self.target.names[carrier]
            raise RigError(f'The bone "{name}" cannot take the hips\' travel; only a bone above them without a row of its own can.')
        return carrier

    def _sources(self, row: Row) -> tuple[int, ...]:
        sources = tuple(self.source.index(name) for name in row.source)
        if not sources or (row.rule == "copy" and len(sources) != 1) or (row.rule == "blend" and len(sources) != 2):
            count = len(sources)
            raise RigError(
                f'The row of "{row.target}" has {count} source bones, which does not fit its rule "{row.rule}"; correct the row.'
            )
        return sources

    def _constants(self, rows: list[Row], joints: list[int], sources: list[tuple[int, ...]]) -> Array:
        """(n, 4): ``K`` of every row, see equation (1)."""
        rolls = build.passed_rolls(rows, self.target, self.bodies)
        turns = np.array([self.bodies.turns.get(joint, quat.IDENTITY) for joint in joints]).reshape(-1, 4)
        turns = quat.mul(build.corrections_of(rows), turns)  # C R
        for k, joint in enumerate(joints):
            if joint in rolls:
                turns[k] = quat.mul(rolls[joint], turns[k])
        start = quat.mul(quat.mul(turns, self.bodies.target.turn), self.target.rest_global_rotations[joints])  # C R B T0
        undo = np.array([self.reference[s[0]] if row.rule == "copy" else quat.IDENTITY for row, s in zip(rows, sources, strict=True)])
        return quat.mul(quat.inv(quat.mul(self.turn_source, undo.reshape(-1, 4))), start)  # S0^-1 A^-1 C R B T0

    def _keyed_ancestor(self, joint: int, place: dict[int, int], inherits: NDArray[np.bool_]) -> tuple[int | None, Array]:
        """Place in the plan of the nearest keyed ancestor and the constant rotation from it (or from the world) to the parent."""
        p = int(self.target.parents[joint])
        if p < 0:
            return None, quat.IDENTITY
        if not inherits[joint]:
            return None, self.target.rest_global_rotations[p]  # Blender then uses the parent's rest rotation
        between = quat.IDENTITY
        while p >= 0 and p not in place:
            between = quat.mul(self.target.rest_rotations[p], between)
            if not inherits[p] and self.target.parents[p] >= 0:
                return None, quat.mul(self.target.rest_global_rotations[int(self.target.parents[p])], between)
            p = int(self.target.parents[p])
        return (place[p] if p >= 0 else None), between

    def run(self, take: Take, rotations: Array, locations: Array) -> None:
        """Fill ``rotations (f, K, 4)`` and ``locations (f, M, 3)`` for a block of the take."""
        motion = BlockMotion(take, self)
        for k, bone in enumerate(self.plan):
            q = motion.relative(bone)
            np.matmul(bone.matrix, q.T, out=rotations[:, k].T)
        for m, mover in enumerate(self._movers):
            locations[:, m] = mover(take, motion)

    def scales(self, take: Take) -> dict[int, Array]:
        """Target joint -> its scales ``(F, 3)``, for bones that follow a joint which the take scales."""
        names = ((bone, self.source.names[bone.sources[0]]) for bone in self._scaled)
        return {bone.joint: scales.along(take.scales[name], bone.turn) for bone, name in names if name in take.scales}

    @property
    def movers(self) -> list[Callable[[Take, BlockMotion], Array]]:
        """What gives the locations of :attr:`moving`."""
        return self._movers

    def chord_offsets(self, bone: _Bone) -> list[Array]:
        """Link vectors of a chord row, each in its link's own frame."""
        return self._offsets[bone.joint]


class BlockMotion:
    """One block's source rotations, computed when asked for."""

    def __init__(self, take: Take, plan: _Plan) -> None:
        self._take, self._plan = take, plan
        self._local = take.local_rotations
        self._parents = take.skeleton.parents
        self._globals: dict[int, Array] = {}
        self._driven: dict[int, Array] = {}

    def global_rotation(self, joint: int) -> Array:
        """(f, 4): ``S`` of a source joint."""
        if joint not in self._globals:
            p = int(self._parents[joint])
            own = self._local[:, joint]
            self._globals[joint] = own if p < 0 else quat.mul(self.global_rotation(p), own)
        return self._globals[joint]

    def global_position(self, joint: int) -> Array:
        """(f, 3): place of a source joint, metres."""
        translations = self._take.local_translations
        p = int(self._parents[joint])
        own = np.broadcast_to(translations[:, joint], (len(self._local), 3))
        return own if p < 0 else self.global_position(p) + quat.rotate(self.global_rotation(p), own)

    def driver(self, bone: _Bone) -> Array:
        """(f, 4): ``G`` of a row."""
        if bone.row.rule == "copy":
            return self.global_rotation(bone.sources[0])
        if bone.joint not in self._driven:
            if bone.row.rule == "blend":
                first, second = (self._delta(j) for j in bone.sources)
                self._driven[bone.joint] = quat.slerp(first, second, bone.row.blend)
            else:
                self._driven[bone.joint] = self._chord(bone)
        return self._driven[bone.joint]

    def relative(self, bone: _Bone) -> Array:
        """(f, 4): the bracket ``G_a^-1 G_b`` of equation (2), or ``G_b`` where no ancestor is keyed."""
        if bone.above is None:
            return self.driver(bone)
        above = self._plan.plan[bone.above]
        if bone.row.rule == "copy" and above.row.rule == "copy":
            path = self._path(above.sources[0], bone.sources[0])
            if path is not None:
                q = self._local[:, path[0]] if path else quat.identity(len(self._local))
                for joint in path[1:]:
                    q = quat.mul(q, self._local[:, joint])
                return q
        return quat.mul(quat.inv(self.driver(above)), self.driver(bone))

    def _path(self, top: int, joint: int) -> list[int] | None:
        """Joints from below ``top`` down to ``joint``, or None when ``top`` does not stand above it."""
        path: list[int] = []
        while joint != top:
            if joint < 0:
                return None
            path.append(joint)
            joint = int(self._parents[joint])
        return path[::-1]

    def _delta(self, joint: int) -> Array:
        return quat.mul(self.global_rotation(joint), quat.inv(self._plan.reference[joint]))

    def _chord(self, bone: _Bone) -> Array:
        """Delta that aims the chain's chord: ``minimal(D c0 -> c) D``, ``D`` the delta that gives the twist.

        Which link's twist counts is for the hinge of elbow and knee to say, which must bend an unsplit limb about its own axis. A limb bone
        that a rig splits for skinning turns about its length along the way. Above the hinge the last link counts: the hinge hangs on it
        (Daz: ``shldrBend`` has none of the twist, ``shldrTwist`` all). Below it the first link does: it is what the hinge turns, while what
        the links after it add goes with hand and foot, which have their own turn. A spine ends at the chest, so its last link counts.
        """
        offsets = self._plan.chord_offsets(bone)
        now = sum((quat.rotate(self.global_rotation(j), v) for j, v in zip(bone.sources, offsets, strict=True)), np.zeros(3))
        then = sum((quat.rotate(self._plan.reference[j], v) for j, v in zip(bone.sources, offsets, strict=True)), np.zeros(3))
        delta = self._delta(bone.sources[0 if bone.row.role.endswith(_BELOW_HINGE) else -1])
        return quat.mul(quat.between(quat.rotate(delta, np.asarray(then)), np.asarray(now)), delta)
