# SPDX-License-Identifier: GPL-3.0-or-later
"""The alignment: how far the target's rest is turned, bone by bone, to stand as the source's reference stands.

Everything here is in character axes (left, back, up). ``d`` is a target bone's direction at rest, ``s`` the source's at its reference,
both turned upright and facing -Y. The rotations ``R`` found here take the place of the target's rest ``T0`` by ``R T0``:

* upper and lower arm, upper and lower leg, fingers: ``R_child = minimal(R_parent d -> s) R_parent``. The parent's turn is inherited first,
  so a straight limb swings as one piece. Independent swings would twist elbows by 22 and wrists by 50 to 106 degrees between an A- and a
  T-pose.
* hips, spine, neck, head, clavicles: identity. Their directions differ from rig to rig by how the rig was drawn, not by how the body
  stands; swinging them bends the chest.
* foot: heading only, so the sole stays as flat as the target's rest has it; toes follow the foot.
* hand: with the forearm, then straightened as far as the source's is: a rest drawn with a relaxed wrist would keep its bend in every
  frame. The hand points to its fingers; one without any is taken to be straight. When both have palms (two fingers or more in
  common), direction and normal of these are laid onto each other.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..rig.roles import FINGERS, HELPER, SIDES
from .frames import Pose

Array = NDArray[np.float64]

FRONTAL = np.radians(150.0)
"""Beyond this a shortest turn could go any way; limbs are then swung through the frontal plane (about the back axis)."""

_BY_MIDDLE = ("Middle", "Ring", "Index", "Little")
"""Which finger says where a hand points, best first."""

_BACK = np.array([0.0, 1.0, 0.0])


class Body:
    """A reference pose in character axes: what the rules ask about it."""

    def __init__(self, pose: Pose, to_character: Array) -> None:
        self.pose = pose
        self.turn = to_character
        self.positions = quat.rotate(to_character, pose.positions)
        self.ends = quat.rotate(to_character, pose.ends)

    def place(self, joint: int | None) -> Array | None:
        """(3,): the joint's place, or None."""
        return None if joint is None else self.positions[joint]

    def direction(self, role: str, next_role: str) -> Array | None:
        """(3,): unit vector from the first joint of one role to the first of the next, or None.

        Without a next role (a forearm whose palm bones start at the wrist, with no hand between) the bone reaches to its farthest child.
        """
        joint = self.pose.one(role)
        if joint is None:
            return None
        tip = self.place(self.pose.one(next_role))
        children = self.pose.skeleton.children[self.pose.roles[role][-1]]
        if tip is None and children:
            reach = np.linalg.norm(self.positions[list(children)] - self.positions[joint], axis=-1)
            tip = self.positions[children[int(np.argmax(reach))]]
        return None if tip is None else unit(tip - self.positions[joint])

    def hand_direction(self, side: str, finger: str | None) -> Array | None:
        """(3,): unit vector from the wrist to the first joint of a finger that does not lie in the wrist itself, or None."""
        hand = self.pose.one(f"{side}Hand")
        chain = () if finger is None else self.pose.roles.get(f"{side}{finger}", ())
        if hand is None:
            return None
        for joint in chain:
            reach = self.positions[joint] - self.positions[hand]
            if float(np.linalg.norm(reach)) > 0.01 * float(np.ptp(self.positions[:, 2])):
                return unit(reach)
        return None

    def middle_finger(self, side: str) -> str | None:
        """The finger that says where the hand points, or None."""
        return next((finger for finger in _BY_MIDDLE if self.pose.one(f"{side}{finger}") is not None), None)

    def chain_directions(self, chain: tuple[int, ...]) -> list[Array | None]:
        """Unit vectors along a chain's links. The last link's end never counts: leaf bones point anywhere."""
        links: list[Array | None] = [unit(self.positions[b] - self.positions[a]) for a, b in pairwise(chain)]
        return [*links, None]

    def foot_heading(self, side: str) -> Array | None:
        """(3,): horizontal unit vector from ankle to toes, or None where it is not known."""
        foot, toes = self.pose.one(f"{side}Foot"), self.pose.one(f"{side}Toes")
        if foot is None:
            return None
        tip = self.positions[toes] if toes is not None else self.ends[foot]
        flat = (tip - self.positions[foot]) * np.array([1.0, 1.0, 0.0])
        length = float(np.linalg.norm(tip - self.positions[foot]))
        if not np.all(np.isfinite(flat)) or length < 1e-9 or float(np.linalg.norm(flat)) < 0.25 * length:
            return None
        return unit(flat)

    def palm(self, side: str, fingers: Collection[str] = FINGERS) -> Array | None:
        """(3,): normal of the back of the hand from wrist, first and last of some fingers, or None."""
        hand = self.pose.one(f"{side}Hand")
        knuckles = [j for finger in FINGERS[1:] if finger in fingers and (j := self.pose.one(f"{side}{finger}")) is not None]
        if hand is None or len(knuckles) < 2:
            return None
        normal = np.cross(self.positions[knuckles[0]] - self.positions[hand], self.positions[knuckles[-1]] - self.positions[hand])
        if float(np.linalg.norm(normal)) < 1e-9:
            return None
        return unit(normal) * (1.0 if side == "left" else -1.0)


def align(source: Body, target: Body) -> dict[int, Array]:
    """Target joint -> ``R (4,)`` for every joint of a role that both bodies have and that is turned at all."""
    out: dict[int, Array] = {}
    for side in SIDES:
        _align_limb(source, target, side, ("UpperLeg", "LowerLeg", "Foot"), out)
        forearm = _align_limb(source, target, side, ("UpperArm", "LowerArm", "Hand"), out)
        _align_hand(source, target, side, forearm, out)
        _align_foot(source, target, side, out)
    for joint in target.pose.roles.get(HELPER, ()):  # a helper in a limb is turned with the limb
        above = next((j for j in target.pose.skeleton.ancestors(joint) if j in out), None)
        if above is not None:
            out[joint] = out[above]
    return out


def swing(current: Array, wanted: Array) -> Array:
    """(4,): smallest turn of ``current (3,)`` onto ``wanted (3,)``; near-opposite directions go through the frontal plane."""
    angle = float(np.arccos(np.clip(current @ wanted, -1.0, 1.0)))
    if angle <= FRONTAL:
        return quat.between(current, wanted)
    a, b = np.arctan2(current[0], current[2]), np.arctan2(wanted[0], wanted[2])
    if np.hypot(current[0], current[2]) < 0.1 or np.hypot(wanted[0], wanted[2]) < 0.1:
        return quat.between(current, wanted, _BACK)
    turn = (b - a + np.pi) % (2.0 * np.pi) - np.pi
    frontal = quat.from_axis_angle(_BACK, turn)  # +Y turns +Z towards +X, as the angle above counts
    return quat.mul(quat.between(quat.rotate(frontal, current), wanted), frontal)


def unit(v: Array) -> Array:
    """``v`` at length one; a zero vector stays zero."""
    length = float(np.linalg.norm(v))
    return v / length if length > 1e-12 else np.zeros(3)


def _align_limb(source: Body, target: Body, side: str, parts: tuple[str, str, str], out: dict[int, Array]) -> Array:
    """Swing both bones of a limb; the turn of the outer one."""
    turn = quat.identity()
    for near, far in pairwise(parts):
        d, s = target.direction(f"{side}{near}", f"{side}{far}"), source.direction(f"{side}{near}", f"{side}{far}")
        if d is not None and s is not None and d.any() and s.any():
            turn = quat.mul(swing(quat.rotate(turn, d), s), turn)
        for joint in target.pose.roles.get(f"{side}{near}", ()):
            out[joint] = turn
    return turn


def _align_hand(source: Body, target: Body, side: str, forearm: Array, out: dict[int, Array]) -> None:
    turn = forearm
    both = [f for f in _BY_MIDDLE if target.pose.one(f"{side}{f}") is not None and source.pose.one(f"{side}{f}") is not None]
    common = both[0] if both else None
    d, s = (body.hand_direction(side, common or body.middle_finger(side)) for body in (target, source))
    if d is None and source.pose.one(f"{side}Middle") is not None:  # the other fingers' knuckles lie off the hand's line
        d = target.direction(f"{side}LowerArm", f"{side}Hand")
    if s is None:
        s = source.direction(f"{side}LowerArm", f"{side}Hand")
    if d is not None and s is not None and d.any() and s.any():
        turn = quat.mul(swing(quat.rotate(turn, d), s), turn)
        normal_t, normal_s = target.palm(side, both), source.palm(side, both)
        if common is not None and normal_t is not None and normal_s is not None:
            turn = quat.mul(quat.from_matrix(_frame(s, normal_s)), quat.inv(quat.from_matrix(_frame(d, normal_t))))
    for joint in target.pose.roles.get(f"{side}Hand", ()):
        out[joint] = turn
    for finger in FINGERS:
        chain_t, chain_s = target.pose.roles.get(f"{side}{finger}", ()), source.pose.roles.get(f"{side}{finger}", ())
        if chain_t and chain_s:
            _align_finger(source.chain_directions(chain_s), target.chain_directions(chain_t), chain_t, turn, out)


def _frame(along: Array, normal: Array) -> Array:
    """(3, 3): axes of a hand: along it, across it, and its normal as near as a right angle allows."""
    across = unit(np.cross(normal, along))
    return np.stack([along, across, np.cross(along, across)], axis=-1)


def _align_finger(
    wanted: list[Array | None], current: list[Array | None], joints: tuple[int, ...], turn: Array, out: dict[int, Array]
) -> None:
    for i, (joint, d) in enumerate(zip(joints, current, strict=True)):
        s = wanted[min(i, len(wanted) - 1)]
        if len(wanted) == len(current) and d is not None and s is not None and d.any() and s.any():
            turn = quat.mul(swing(quat.rotate(turn, d), s), turn)
        out[joint] = turn


def _align_foot(source: Body, target: Body, side: str, out: dict[int, Array]) -> None:
    turn = quat.identity()
    d, s = target.foot_heading(side), source.foot_heading(side)
    if d is not None and s is not None:
        turn = quat.from_axis_angle((0.0, 0.0, 1.0), float(np.arctan2(s[1], s[0]) - np.arctan2(d[1], d[0])))
    for part in ("Foot", "Toes"):
        for joint in target.pose.roles.get(f"{side}{part}", ()):
            out[joint] = turn
