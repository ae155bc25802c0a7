# SPDX-License-Identifier: GPL-3.0-or-later
"""Every ordered pair carried over by the program and held against its truth."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from mocap_addon.motion import quat
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.retarget import PoseMotion, RetargetOptions, retarget
from mocap_addon.retarget.build import table_and_bodies
from mocap_addon.retarget.neutral import source_reference
from mocap_addon.rig import match

from .matrices import degrees_apart, of_quaternions
from .standard import Body
from .truth import CHAIN, OWN, STATIC, expected


@dataclass(frozen=True)
class Pair:
    """One ordered pair. In the worst frame of each joint: degrees, and metres at the master's size; by which rule each has its truth.

    ``alike``: the same moving links. ``legs``: metres, hips and legs against the target's own version.
    """

    source: str
    target: str
    alike: bool
    rules: tuple[str, ...]
    keys: tuple[str, ...]
    degrees: np.ndarray
    metres: np.ndarray
    legs: float

    def worst(self, *rules: str) -> float:
        """Degrees of the worst joint of some rules, 0 where there is none."""
        return max((float(d) for d, r in zip(self.degrees, self.rules, strict=True) if r in rules), default=0.0)

    def named(self) -> str:
        """The pair with its worst joints, to be read by a person."""
        turn, place = int(np.argmax(self.degrees)), int(np.argmax(self.metres))
        return (
            f"{self.source} -> {self.target}: {self.keys[turn]} ({self.rules[turn]}) {self.degrees[turn]:.3g} degrees, "
            f"{self.keys[place]} {1000.0 * self.metres[place]:.3g} mm"
        )


@dataclass
class Mismatch:
    """Roles of a standard that were matched otherwise than they were made."""

    name: str
    known: bool
    roles: dict[str, tuple[list[str], list[str]]] = field(default_factory=dict)


def mismatch(body: Body) -> Mismatch:
    """What the matcher makes of a standard: every role on its joints, no role more."""
    found = match(body.character)
    out = Mismatch(body.name, found.family == body.family)
    for role in sorted({*found.joints, *body.roles}):
        have, want = found.chain(role), body.roles.get(role, ())
        if have != want:
            out.roles[role] = ([body.links[j].name for j in have], [body.links[j].name for j in want])
    return out


def carry(source: Body, target: Body) -> PoseMotion:
    """The pair as the program carries it: matched, aligned, retargeted."""
    take, character = source.take, target.character
    reference = source_reference(take, None)
    roles = match(take.skeleton), match(character)
    axes = quat.from_matrix(target.scene_object)
    table, both = table_and_bodies(take.skeleton, roles[0], character, roles[1], reference=reference, target_axes=axes)
    return retarget(take, table, character, RetargetOptions(bodies=both))


def posed(motion: PoseMotion, skeleton: Skeleton) -> tuple[np.ndarray, np.ndarray]:
    """Forward kinematics of what the pose bones store: global rotations ``(F, J, 3, 3)`` and places ``(F, J, 3)``."""
    count, joints = len(motion.times), len(skeleton)
    rest = of_quaternions(skeleton.rest_rotations)
    bases, moves = {b: k for k, b in enumerate(motion.bones)}, {b: k for k, b in enumerate(motion.moving)}
    rotations, places = np.empty((count, joints, 3, 3)), np.empty((count, joints, 3))
    for j, p in enumerate(skeleton.parents.tolist()):
        local = np.broadcast_to(rest[j], (count, 3, 3))
        offset = np.broadcast_to(skeleton.rest_translations[j], (count, 3))
        if j in bases:
            local = local @ of_quaternions(motion.rotations[:, bases[j]])
        if j in moves:
            offset = offset + motion.locations[:, moves[j]] @ rest[j].T
        rotations[:, j] = local if p < 0 else rotations[:, p] @ local
        places[:, j] = offset if p < 0 else places[:, p] + (rotations[:, p] @ offset[..., None])[..., 0]
    return rotations, places


def compare(source: Body, target: Body) -> Pair:
    """One pair."""
    rotations, places = posed(carry(source, target), target.character)
    truth = expected(source, target)
    below = target.below_hips
    wanted = np.where(below[:, None, None], truth.turns, target.scene_object) @ target.frames
    stand = np.where(below[:, None], truth.positions, truth.positions @ target.scene_object.T)
    degrees = degrees_apart(rotations, wanted).max(axis=0)
    metres = np.linalg.norm(places / target.size - stand, axis=-1).max(axis=0)
    legs = [j for j, key in enumerate(target.keys) if key == "hips" or key.endswith(("UpperLeg", "LowerLeg", "Foot"))]
    own = np.linalg.norm(places[:, legs] / target.size - target.positions[:, legs], axis=-1).max()
    return Pair(source.name, target.name, source.moving == target.moving, truth.rules, tuple(target.keys), degrees, metres, float(own))


__all__ = ["CHAIN", "OWN", "STATIC", "Mismatch", "Pair", "carry", "compare", "mismatch", "posed"]
