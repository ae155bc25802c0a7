# SPDX-License-Identifier: GPL-3.0-or-later
"""How bones follow each other: parents and the constraints that copy, in arrays.

What a control's keys mean depends on what carries the control, and in a rig that is seldom its parent alone. Of Blender's constraints
those are worked out that pass on a whole transform, a rotation or a place; limits, stretching and tracking are left to the check against
Blender itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ...motion import quat
from ...motion.skeleton import Skeleton
from .memory import Memory, NoMemory
from .rigid import STILL, Rigid, at_rest, blend, groups, stacked, unstacked

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
    _rests: dict[int, Rigid] = field(default_factory=dict[int, Rigid], init=False, repr=False)
    _across: dict[tuple[int, int], Rigid] = field(default_factory=dict[tuple[int, int], Rigid], init=False, repr=False)

    def rest(self, joint: int) -> Rigid:
        """The rest pose of a joint."""
        if joint not in self._rests:
            self._rests[joint] = at_rest(self.skeleton.rest_global_rotations[joint], self.skeleton.rest_global_positions[joint])
        return self._rests[joint]

    def across(self, target: int, joint: int) -> Rigid:
        """What makes ``joint`` stand in its armature as ``target`` does at rest: ``W0_target W0_joint^-1``."""
        if (target, joint) not in self._across:
            self._across[target, joint] = self.rest(target) @ self.rest(joint).inverse
        return self._across[target, joint]

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
    memory : Memory, optional
        Of the times before, with the same bones and the same of them known and posed.
    """

    def __init__(
        self,
        bones: Bones,
        known: Mapping[int, Rigid],
        posed: Mapping[int, Callable[[Rigid], Rigid]],
        memory: Memory | None = None,
    ) -> None:
        self.bones = bones
        self._known, self._posed, self._memory = known, posed, memory or NoMemory()
        self._found: dict[int, Rigid] = {}
        self._above: dict[int, Rigid] = {}
        self._asked: set[int] = set()
        self.resting: set[int] = set()
        """Bones that were taken to be at rest in themselves."""

    def motion(self, joint: int) -> Rigid:
        """How a joint moves: as it is known, else as it is posed, else at rest in itself, with what carries it."""
        if joint in self._posed:
            if joint not in self._found:
                pose, carried = self._posed[joint], self.carried(joint)
                self._found[joint] = self._memory.once(("posed", joint), lambda: pose(carried), pose, carried)
            return self._found[joint]
        if joint in self._known:
            return self._known[joint]
        self.resting.add(joint)
        return self.carried(joint)

    def basis(self, joint: int) -> Rigid:
        """What the joint itself has to store: ``W0^-1 P^-1 X W0``."""
        return _basis(self.bones.rest(joint), self.carried(joint), self.motion(joint))

    def bases(self, joints: Sequence[int], frames: int) -> Iterator[tuple[int, Rigid]]:
        """:meth:`basis` of many joints over ``frames`` frames, in any order."""
        new: list[int] = []
        for joint in joints:
            known = self._memory.known(("basis", joint), self.carried(joint), self.motion(joint))
            if known is None:
                new.append(joint)
            else:
                yield joint, known
        skeleton = self.bones.skeleton
        for some in groups(len(new), frames):
            at = new[some]
            rest = at_rest(skeleton.rest_global_rotations[at], skeleton.rest_global_positions[at])
            carried, motions = [self.carried(joint) for joint in at], [self.motion(joint) for joint in at]
            own = unstacked(_basis(rest, stacked(carried, frames), stacked(motions, frames)))
            for joint, basis, *inputs in zip(at, own, carried, motions, strict=True):
                yield joint, self._memory.keep(("basis", joint), basis, *inputs)

    def carried(self, joint: int) -> Rigid:
        """How a joint moves when it is at rest in itself: with its parent and its constraints."""
        if joint not in self._above:
            if joint in self._asked:
                return STILL  # a ring of constraints, which Blender does not solve either
            self._asked.add(joint)
            above, links = int(self.bones.skeleton.parents[joint]), self.bones.links.get(joint, ())
            inputs = [STILL if above < 0 else self.motion(above)]
            inputs += [motion for link in links for target, _ in link.targets for motion in self._asked_of(target, link)]
            self._above[joint] = self._memory.once(("carried", joint), lambda: self._led(joint, inputs[0], links), *inputs)
            self._asked.discard(joint)
        return self._above[joint]

    def _asked_of(self, target: int, link: Link) -> list[Rigid]:
        """What a link has to know of one of its targets."""
        return [self.carried(target), self.motion(target)] if link.local else [self.motion(target)]

    def _led(self, joint: int, parent: Rigid, links: Sequence[Link]) -> Rigid:
        """How a joint moves with its parent, which moves as ``parent``, and with its constraints."""
        motion = parent
        if not self.bones.inherits_rotation[joint] and parent is not STILL:
            head = self.bones.head(joint)
            motion = Rigid(quat.identity(len(parent.rotation)), parent.apply(head) - head)
        before = motion
        for link in links:
            motion = blend(motion, self._linked(joint, link, motion, before), link.influence, self.bones.rest(joint))
        return motion

    def _linked(self, joint: int, link: Link, motion: Rigid, before: Rigid) -> Rigid:
        """The motion that a constraint alone gives; ``before`` is what the parent gives."""
        if link.kind == "parents":
            return _weighted([(self.motion(t), w) for t, w in link.targets], self.bones.head(joint)) @ motion
        target = link.targets[0][0]
        if link.local:
            own, rest = self.basis(target), self.bones.rest(joint)
            if link.kind == "rotation":
                own = Rigid(own.rotation, np.zeros_like(own.translation))
            return before @ rest @ own @ rest.inverse
        followed, head = self.motion(target), self.bones.head(joint)
        if link.kind == "transforms":
            return followed @ self.bones.across(target, joint)
        if link.kind == "location":
            return Rigid.about(motion.rotation, head, followed.apply(self.bones.head(target)))
        return Rigid.about(quat.mul(followed.rotation, self.bones.across(target, joint).rotation), head, motion.apply(head))


def _basis(rest: Rigid, carried: Rigid, motion: Rigid) -> Rigid:
    return rest.inverse @ carried.inverse @ motion @ rest


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
