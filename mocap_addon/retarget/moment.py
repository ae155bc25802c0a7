# SPDX-License-Identifier: GPL-3.0-or-later
"""One pose of many performers at once: what a live stream needs sixty times a second.

It is the transfer of :mod:`.transfer`, worked the other way round: there arrays run over the frames of one take, here over the performers
whose tables have the same shape, and over the bones. What does not depend on the pose is worked out once, in :class:`Moment`.

A location (:mod:`.travel`) is an affine function of where its source joint is and of how it is turned, ``c + P p + Q vec(R)``; its twelve
columns are found once, from poses that are tried out, so that nothing of it is written down twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from ..rig.table import CorrectionTable
from .transfer import BlockMotion, RetargetOptions, prepared
from .twist import Twists, together

Array = NDArray[np.float64]

_TRIED = 40


class Moment:
    """A table made ready for one pose at a time.

    Parameters
    ----------
    table : CorrectionTable
    source, target : Skeleton
    options : RetargetOptions
        With ``bodies`` and ``sole``. Body sliders and root motion are not in it: :func:`.retarget` does them.

    Attributes
    ----------
    bones, moving : tuple of int
        As in :class:`.PoseMotion`.
    """

    def __init__(self, table: CorrectionTable, source: Skeleton, target: Skeleton, options: RetargetOptions) -> None:
        plan = prepared(table, source, target, options)
        self.plan, self.source = plan, source
        assert options.bodies is not None
        body, turned = options.bodies.target, options.bodies.turns
        self.twists = Twists.of(table, target, body, turned, plan.bones, options.inherits_rotation)
        self.bones, self.moving = (plan.bones if self.twists is None else self.twists.bones), plan.moving
        rules = [bone.row.rule for bone in plan.plan]
        self.first = np.array([bone.sources[0] for bone in plan.plan], dtype=np.intp)
        self.blends = np.array([k for k, rule in enumerate(rules) if rule == "blend"], dtype=np.intp)
        self.chords = [bone for bone in plan.plan if bone.row.rule == "chord"]
        mixed = [bone for bone in plan.plan if bone.row.rule == "blend"]
        self.second = np.array([bone.sources[1] for bone in mixed], dtype=np.intp)
        self.share: Array = np.array([bone.row.blend for bone in mixed], dtype=np.float64)
        self.undo = quat.inv(plan.reference[[self.first[self.blends], self.second]])  # (2, blends, 4)
        self.above = np.array([-1 if bone.above is None else bone.above for bone in plan.plan], dtype=np.intp)
        self.matrices: Array = np.array([bone.matrix for bone in plan.plan]).reshape(-1, 4, 4)
        movable = [bone for bone in plan.plan if bone.row.movable]
        self.movers = tuple((bone.sources[0], bone.row.role == "hips") for bone in movable)
        self.columns: Array = np.array([_columns(mover) for mover in plan.movers]).reshape(-1, 3, 13)
        self.levels = _levels(source)
        self.shape = (
            source.parents.tobytes(),
            self.first.tobytes(),
            self.second.tobytes(),
            self.above.tobytes(),
            self.blends.tobytes(),
            tuple((bone.joint, bone.sources) for bone in self.chords),
            self.movers,
            None if self.twists is None else self.twists.shape,
        )
        """Moments of equal shape are worked on together."""


@dataclass(frozen=True)
class Posed:
    """What :func:`pose` gives for one performer: ``rotations (K, 4)`` of the moment's bones and ``locations (M, 3)`` of those that move, as
    in :class:`.PoseMotion`."""

    rotations: Array
    locations: Array


def pose(moments: Sequence[Moment], rotations: Sequence[Array], translations: Sequence[Array]) -> list[Posed]:
    """Local rotations ``(J, 4)`` and translations ``(J, 3)`` of each performer's joints -> the poses of their characters."""
    out: list[Posed | None] = [None] * len(moments)
    groups: dict[object, list[int]] = {}
    for i, moment in enumerate(moments):
        groups.setdefault(moment.shape, []).append(i)
    for members in groups.values():
        found = _together([moments[i] for i in members], np.array([rotations[i] for i in members]), [translations[i] for i in members])
        for i, one in zip(members, found, strict=True):
            out[i] = one
    return [one for one in out if one is not None]


def _together(moments: list[Moment], local: Array, translations: list[Array]) -> list[Posed]:
    like = moments[0]
    turned = _globals(local, like)
    driver = turned[:, like.first]
    if len(like.blends):
        undo = np.array([m.undo for m in moments])
        a = quat.mul(driver[:, like.blends], undo[:, 0])
        b = quat.mul(turned[:, like.second], undo[:, 1])
        driver[:, like.blends] = quat.slerp(a, b, np.array([m.share for m in moments]))
    for bone in like.chords:
        k = like.plan.bones.index(bone.joint)
        for p, moment in enumerate(moments):
            driver[p, k] = BlockMotion(_one(moment, local[p], translations[p]), moment.plan).driver(moment.plan.plan[k])[0]
    held = driver[:, like.above]
    held[:, like.above < 0] = quat.IDENTITY
    bracket = quat.mul(quat.inv(held), driver)
    turns = np.matmul(np.array([m.matrices for m in moments]), bracket[..., None])[..., 0]
    twists = [m.twists for m in moments if m.twists is not None]
    if twists:
        turns = together(twists, turns)
    if not like.movers:
        return [Posed(turn, np.zeros((0, 3))) for turn in turns]
    moved = np.array(translations)
    features = np.ones((len(moments), len(like.movers), 13))
    for m, (joint, whole) in enumerate(like.movers):
        features[:, m, 1:4] = _place(moved, turned, like.source.parents, joint) if whole else moved[:, joint]
        features[:, m, 4:] = quat.to_matrix(turned[:, joint]).reshape(-1, 9)
    places = np.einsum("pmij,pmj->pmi", np.array([m.columns for m in moments]), features)
    return [Posed(turn, place) for turn, place in zip(turns, places, strict=True)]


def _globals(local: Array, like: Moment) -> Array:
    """(P, J, 4): rotations in the world, one depth of the skeleton after the other."""
    out = local.copy()
    for joints, parents in like.levels:
        out[:, joints] = quat.mul(out[:, parents], local[:, joints])
    return out


def _levels(skeleton: Skeleton) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """Joints of one depth and their parents, from the roots' children outwards."""
    depth = np.zeros(len(skeleton), dtype=np.intp)
    for j, p in enumerate(skeleton.parents.tolist()):
        depth[j] = 0 if p < 0 else depth[p] + 1
    found = [np.flatnonzero(depth == d) for d in range(1, int(depth.max(initial=0)) + 1)]
    return [(joints, skeleton.parents[joints].astype(np.intp)) for joints in found]


def _place(translations: Array, turned: Array, parents: NDArray[np.int64], joint: int) -> Array:
    """(P, 3): where a joint is in the world."""
    out = translations[:, joint]
    p = int(parents[joint])
    while p >= 0:
        out = translations[:, p] + quat.rotate(turned[:, p], out)
        p = int(parents[p])
    return out


def _one(moment: Moment, rotations: Array, translations: Array) -> Take:
    return Take("", moment.source, np.zeros(1), rotations[None], translations[None])


class _Tried:
    """Stands for a take and its block of motion in which every joint is at ``places`` and turned by ``turns``."""

    def __init__(self, turns: Array, places: Array) -> None:
        self.turns, self.places, self.frames = turns, places, len(turns)

    def global_rotation(self, joint: int) -> Array:
        return self.turns

    def global_position(self, joint: int) -> Array:
        return self.places

    @property
    def local_translations(self) -> _Tried:
        return self

    def __getitem__(self, key: tuple[slice, int]) -> Array:
        return self.places


def _columns(mover: Any) -> Array:
    """(3, 13): the affine function that a mover is, of one, place and rotation matrix."""
    rng = np.random.default_rng(1)
    turns, places = quat.normalize(rng.normal(size=(_TRIED, 4))), rng.normal(size=(_TRIED, 3))
    tried = _Tried(turns, places)
    values = np.array(mover(tried, tried), dtype=np.float64)
    features = np.concatenate([np.ones((_TRIED, 1)), places, quat.to_matrix(turns).reshape(-1, 9)], axis=1)
    found, *_ = np.linalg.lstsq(features, values, rcond=None)
    return np.asarray(found.T, dtype=np.float64)
