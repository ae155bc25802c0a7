# SPDX-License-Identifier: GPL-3.0-or-later
"""How bones follow each other: parents and the constraints that copy, in arrays.

What a control's keys mean depends on what carries the control, and in a rig that is seldom its parent alone. Of Blender's constraints
those are worked out that pass on a whole transform, a rotation or a place; limits, stretching and tracking are left to the check against
Blender itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...motion import quat
from ...motion.skeleton import Skeleton
from .rigid import STILL, Rigid, at_rest, blend

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Link:
    """A constraint on a bone.

    Parameters
    ----------
    kind : "transforms", "rotation", "location" or "parents"
        What is taken from the target: the pose, its rotation, its place; or the bone moves with the targets as if it hung on them.
    targets : tuple of (joint, weight)
    influence : float
        0..1.
    local : bool
        Away from rest, each in its own axes, instead of in the armature's.
    """

    kind: Literal["transforms", "rotation", "location", "parents"]
    targets: tuple[tuple[int, float], ...]
    influence: float = 1.0
    local: bool = False


@dataclass(frozen=True, eq=False)
class Bones:
    """A rig's bones: rest pose (world axes, metres), whether they turn with their parents, and their constraints in order."""

    skeleton: Skeleton
    inherits_rotation: NDArray[np.bool_]
    links: Mapping[int, tuple[Link, ...]] = field(default_factory=dict[int, "tuple[Link, ...]"])

    def rest(self, joint: int) -> Rigid:
        """The rest pose of a joint."""
        return at_rest(self.skeleton.rest_global_rotations[joint], self.skeleton.rest_global_positions[joint])

    def above(self, joints: Iterable[int]) -> set[int]:
        """The joints and all that stand above them."""
        return {above for joint in joints for above in (joint, *self.skeleton.ancestors(joint))}

    def between(self, joint: int, control: int) -> Array:
        """(4,): what ``joint``'s turn away from rest is multiplied by on the right to give that of a control that stands as it does."""
        return quat.mul(self.skeleton.rest_global_rotations[joint], quat.inv(self.skeleton.rest_global_rotations[control]))

    def head(self, joint: int) -> Array:
        """(3,): where a joint is at rest."""
        return self.skeleton.rest_global_positions[joint]


class Follower:
    """Works out how bones move when some are known.

    Parameters
    ----------
    bones : Bones
    known : mapping from joint to Rigid
        Motions that are given; what a bone hangs on does not matter then.
    posed : mapping from joint to callable
        For bones that are posed: how they move, given how they would at rest in themselves.
    """

    def __init__(self, bones: Bones, known: Mapping[int, Rigid], posed: Mapping[int, Callable[[Rigid], Rigid]]) -> None:
        self.bones = bones
        self._known, self._posed = known, posed
        self._found: dict[int, Rigid] = {}
        self._above: dict[int, Rigid] = {}
        self._asked: set[int] = set()
        self.resting: set[int] = set()
        """Bones that were taken to be at rest in themselves."""

    def motion(self, joint: int) -> Rigid:
        """How a joint moves: as it is known, else as it is posed, else at rest in itself, with what carries it."""
        if joint in self._posed:
            if joint not in self._found:
                self._found[joint] = self._posed[joint](self.carried(joint))
            return self._found[joint]
        if joint in self._known:
            return self._known[joint]
        self.resting.add(joint)
        return self.carried(joint)

    def basis(self, joint: int) -> Rigid:
        """What the joint itself has to store: ``W0^-1 P^-1 X W0``."""
        rest = self.bones.rest(joint)
        return rest.inverse @ self.carried(joint).inverse @ self.motion(joint) @ rest

    def carried(self, joint: int) -> Rigid:
        """How a joint moves when it is at rest in itself: with its parent and its constraints."""
        if joint not in self._above:
            if joint in self._asked:
                return STILL  # a ring of constraints, which Blender does not solve either
            self._asked.add(joint)
            motion = self._parent(joint)
            before = motion
            for link in self.bones.links.get(joint, ()):
                rest = self.bones.rest(joint)
                motion = blend(motion, self._linked(joint, link, motion, before), link.influence, rest)
            self._asked.discard(joint)
            self._above[joint] = motion
        return self._above[joint]

    def _parent(self, joint: int) -> Rigid:
        p = int(self.bones.skeleton.parents[joint])
        if p < 0:
            return STILL
        motion = self.motion(p)
        if self.bones.inherits_rotation[joint]:
            return motion
        head = self.bones.head(joint)
        return Rigid(quat.identity(len(motion.rotation)), motion.apply(head) - head)

    def _linked(self, joint: int, link: Link, motion: Rigid, before: Rigid) -> Rigid:
        """The motion that a constraint alone gives; ``before`` is what the parent gives."""
        if link.kind == "parents":
            return _weighted([(self.motion(t), w) for t, w in link.targets], self.bones.head(joint)) @ motion
        target = link.targets[0][0]
        rest, rest_t = self.bones.rest(joint), self.bones.rest(target)
        if link.local:
            own = self.basis(target)
            if link.kind == "rotation":
                own = Rigid(own.rotation, np.zeros_like(own.translation))
            return before @ rest @ own @ rest.inverse
        pose = self.motion(target) @ rest_t
        if link.kind == "transforms":
            return pose @ rest.inverse
        place = motion.apply(self.bones.head(joint))
        if link.kind == "location":
            return Rigid.about(motion.rotation, self.bones.head(joint), pose.translation)
        return Rigid.about(quat.mul(pose.rotation, quat.inv(rest.rotation)), self.bones.head(joint), place)


def _weighted(parts: Sequence[tuple[Rigid, float]], head: Array) -> Rigid:
    """Several motions by weight, turning about where they take ``head``."""
    parts = [(motion, weight) for motion, weight in parts if weight > 0.0]
    if not parts:
        return STILL
    motion, total = parts[0]
    for other, weight in parts[1:]:
        total += weight
        share = weight / total
        place = motion.apply(head) + share * (other.apply(head) - motion.apply(head))
        motion = Rigid.about(quat.slerp(motion.rotation, other.rotation, share), head, place)
    return motion
