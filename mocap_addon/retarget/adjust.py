# SPDX-License-Identifier: GPL-3.0-or-later
"""Body sliders: small corrections of a carried motion that a person sets by eye, all frames at once.

A carried motion lies in character axes (left, back, up) as :mod:`.transfer` leaves it: upright, and facing -Y at the reference pose. With
``B T0`` a bone's rest turned into them, ``D = T (B T0)^-1`` is its turn away from rest and ``X`` what a slider adds, ``T' = X T``; the
basis follows from that and its parent's ``T'``, and what hangs below is carried along by its own unchanged basis unless said otherwise.

* **arm space** turns the upper arm by the angle about the chest's front-back axis, less the part of that axis that lies along the arm (the
  arm is not to spin about itself when it points forwards), and fading out from level to straight up, where "away from the body" ends.
* **leg spread** turns the upper leg about the pelvis's front-back axis; the foot keeps its own turn, so that the sole stays as it was.
* **foot yaw** turns the foot about its own up axis, as a correction in the table would: ``T' = D X T0``.
* **hip height** raises or lowers the whole body. Feet go with it: bringing them back to the ground is not this module's work.
* **shoulder share** turns the clavicle up about the chest's front-back axis by a share of the angle that the arm is raised above level
  (eased in over the first 20 degrees); the arm itself keeps its turn in the world.
* **head level** swings the head's up axis towards the vertical.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import RigError
from ..motion.skeleton import Skeleton
from ..rig.roles import SIDES
from .align import Body
from .motion import PoseMotion

Array = NDArray[np.float64]

LIMITS: dict[str, tuple[float, float]] = {
    "arm_space": (-90.0, 90.0),
    "leg_spread": (-45.0, 45.0),
    "foot_yaw": (-90.0, 90.0),
    "hip_height": (-10.0, 10.0),
    "shoulder_share": (0.0, 1.0),
    "head_level": (0.0, 1.0),
    "relaxed_fingers": (0.0, 1.0),
}
"""The least and greatest value of every slider."""

_EASE = np.radians(20.0)
_BACK = np.array([0.0, 1.0, 0.0])
_UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Adjustments:
    """The body sliders; 0 everywhere changes nothing.

    Parameters
    ----------
    arm_space : float
        Degrees that both arms are moved away from the body; the hands follow.
    leg_spread : float
        Degrees that both legs are moved apart; the soles keep their tilt.
    foot_yaw : float
        Degrees that both feet are turned outwards.
    hip_height : float
        Metres that the hips, and the whole body with them, are raised.
    shoulder_share : float
        Share (0..1) of an arm's raising above level that its clavicle takes part in; the arm keeps its direction.
    head_level : float
        How much (0..1) the head is kept upright whatever the neck does; at 1 it neither nods nor tilts.
    relaxed_fingers : float
        How far (0..1) fingers that the take does not move are curled into a relaxed hand.
    """

    arm_space: float = 0.0
    leg_spread: float = 0.0
    foot_yaw: float = 0.0
    hip_height: float = 0.0
    shoulder_share: float = 0.0
    head_level: float = 0.0
    relaxed_fingers: float = 0.0

    def __post_init__(self) -> None:
        for name, (least, greatest) in LIMITS.items():
            value = float(getattr(self, name))
            if not (math.isfinite(value) and least <= value <= greatest):
                label = name.replace("_", " ")
                raise RigError(f"The {label} {value:g} is out of range; it must lie between {least:g} and {greatest:g}.")

    def __bool__(self) -> bool:
        """Whether anything is to be changed."""
        return any(getattr(self, f.name) for f in fields(self))


NO_ADJUSTMENTS = Adjustments()


def adjusted(
    motion: PoseMotion,
    target: Skeleton,
    body: Body,
    adjustments: Adjustments,
    *,
    inherits_rotation: NDArray[np.bool_] | None = None,
) -> PoseMotion:
    """The motion with the sliders applied; itself when they are all 0.

    Parameters
    ----------
    motion : PoseMotion
    target : Skeleton
    body : Body
        The target at rest with its roles (``bodies.target`` of :class:`.build.Bodies`).
    adjustments : Adjustments
        A slider whose bones the target does not have does nothing.
    inherits_rotation : (J,) bool array, optional
        Bones that follow their parent's rotation; None: all.
    """
    if not adjustments:
        return motion
    pose = Posed(motion, target, inherits_rotation)
    if adjustments.shoulder_share:
        for side in SIDES:
            _share_with_clavicle(pose, body, side, adjustments.shoulder_share)
    if adjustments.arm_space:
        for side in SIDES:
            _move_arm(pose, body, side, np.radians(adjustments.arm_space))
    if adjustments.leg_spread:
        for side in SIDES:
            _spread_leg(pose, body, side, np.radians(adjustments.leg_spread))
    if adjustments.foot_yaw:
        for side in SIDES:
            _yaw_foot(pose, body, side, np.radians(adjustments.foot_yaw))
    if adjustments.head_level:
        _level_head(pose, body, adjustments.head_level)
    out = pose.motion()
    if adjustments.hip_height:
        out = _raised(out, target, body, adjustments.hip_height)
    if adjustments.relaxed_fingers:
        from .relaxed import relaxed  # the other way round it reads the names here

        out = relaxed(out, target, body, adjustments.relaxed_fingers)
    return out


class Posed:
    """A motion whose bones can be turned in the world; global rotations are worked out when asked for."""

    def __init__(self, motion: PoseMotion, skeleton: Skeleton, inherits: NDArray[np.bool_] | None) -> None:
        self._motion, self._skeleton = motion, skeleton
        self._inherits = np.ones(len(skeleton), dtype=bool) if inherits is None else inherits
        self._place = {joint: k for k, joint in enumerate(motion.bones)}
        self._changed: dict[int, Array] = {}
        self._globals: dict[int, Array] = {}

    def basis(self, joint: int) -> Array:
        """(F, 4) or (4,): the bone's turn away from rest in its own frame."""
        if joint in self._changed:
            return self._changed[joint]
        return self._motion.rotations[:, self._place[joint]] if joint in self._place else quat.IDENTITY

    def rotation(self, joint: int) -> Array:
        """(F, 4) or (4,): the bone's rotation in the world."""
        if joint not in self._globals:
            self._globals[joint] = quat.mul(self._frame(joint), self.basis(joint))
        return self._globals[joint]

    def set_rotation(self, joint: int, rotation: Array) -> None:
        """Give the bone a rotation in the world ``(F, 4)``; what hangs below is carried along."""
        rotation = np.broadcast_to(rotation, (len(self._motion.times), 4))
        self._changed[joint] = quat.normalize(quat.mul(quat.inv(self._frame(joint)), rotation))
        for other in [j for j in self._globals if self._skeleton.is_below(j, joint)]:
            del self._globals[other]

    def motion(self) -> PoseMotion:
        """The motion with what was turned."""
        if not self._changed:
            return self._motion
        bones = tuple(sorted({*self._motion.bones, *self._changed}))
        rotations = np.empty((len(self._motion.times), len(bones), 4), order="F")
        for k, joint in enumerate(bones):
            rotations[:, k] = quat.continuous(self._changed[joint]) if joint in self._changed else self.basis(joint)
        return replace(self._motion, bones=bones, rotations=rotations, held=self._motion.held - self._changed.keys())

    def _frame(self, joint: int) -> Array:
        """The parent's rotation times the bone's own rest rotation: what the basis is counted from."""
        p = int(self._skeleton.parents[joint])
        rest = self._skeleton.rest_rotations[joint]
        if p < 0:
            return rest
        return quat.mul(self.rotation(p) if self._inherits[joint] else self._skeleton.rest_global_rotations[p], rest)


def _turn_of(pose: Posed, body: Body, joint: int) -> Array:
    """(F, 4): ``D = T (B T0)^-1``, the bone's turn away from rest."""
    return quat.mul(pose.rotation(joint), quat.inv(quat.mul(body.turn, body.pose.rotations[joint])))


def _turn_by(pose: Posed, joint: int, x: Array) -> None:
    """``T' = X T`` with ``X (F, 4)``."""
    pose.set_rotation(joint, quat.mul(x, pose.rotation(joint)))


def _chest(body: Body) -> int | None:
    return next((joint for role in ("spine", "hips") for joint in reversed(body.pose.roles.get(role, ()))), None)


def _sign(side: str) -> float:
    # turning about +Y (back) takes up to left: the left arm, which points to +X, is raised by a turn about -Y
    return -1.0 if side == "left" else 1.0


def _arm(pose: Posed, body: Body, side: str) -> tuple[int, Array, Array] | None:
    """Joint of the upper arm, its direction ``(F, 3)`` and the turn of the chest ``(F, 4)``, both in character axes."""
    joint, chest = body.pose.one(f"{side}UpperArm"), _chest(body)
    rest = body.direction(f"{side}UpperArm", f"{side}LowerArm")
    if joint is None or chest is None or rest is None:
        return None
    return joint, quat.rotate(_turn_of(pose, body, joint), rest), _turn_of(pose, body, chest)


def _move_arm(pose: Posed, body: Body, side: str, angle: float) -> None:
    found = _arm(pose, body, side)
    if found is None:
        return
    joint, along, chest = found
    axis = quat.rotate(chest, _BACK)
    height = np.einsum("...i,...i->...", quat.rotate(chest, _UP), along)
    share = np.einsum("...i,...i->...", axis, along)
    fade = np.where(height > 0.0, 1.0 - height**2, 1.0)
    vector = (axis - share[..., None] * along) * (_sign(side) * angle * fade)[..., None]
    _turn_by(pose, joint, quat.exp(vector))


def _share_with_clavicle(pose: Posed, body: Body, side: str, share: float) -> None:
    found, clavicle = _arm(pose, body, side), body.pose.one(f"{side}Shoulder")
    if found is None or clavicle is None:
        return
    joint, along, chest = found
    lift = np.arcsin(np.clip(np.einsum("...i,...i->...", quat.rotate(chest, _UP), along), 0.0, 1.0))
    vector = quat.rotate(chest, _BACK) * (_sign(side) * share * lift * _smooth(lift / _EASE))[..., None]
    arm = pose.rotation(joint)
    _turn_by(pose, clavicle, quat.exp(vector))
    pose.set_rotation(joint, arm)


def _spread_leg(pose: Posed, body: Body, side: str, angle: float) -> None:
    joint, hips, foot = body.pose.one(f"{side}UpperLeg"), body.pose.one("hips"), body.pose.one(f"{side}Foot")
    if joint is None or hips is None:
        return
    kept = None if foot is None else pose.rotation(foot)
    axis = quat.rotate(_turn_of(pose, body, hips), _BACK)
    _turn_by(pose, joint, quat.exp(axis * (_sign(side) * angle)))
    if foot is not None and kept is not None:
        pose.set_rotation(foot, kept)


def _yaw_foot(pose: Posed, body: Body, side: str, angle: float) -> None:
    joint = body.pose.one(f"{side}Foot")
    if joint is None:
        return
    d = _turn_of(pose, body, joint)
    # a character faces -Y: turning about +Z takes that to +X, outwards for the left foot
    x = quat.from_axis_angle(_UP, -_sign(side) * angle)
    _turn_by(pose, joint, quat.mul(quat.mul(d, x), quat.inv(d)))


def _level_head(pose: Posed, body: Body, share: float) -> None:
    joint = body.pose.one("head")
    if joint is None:
        return
    up = quat.rotate(_turn_of(pose, body, joint), _UP)
    upright = quat.between(up, np.broadcast_to(_UP, up.shape))
    _turn_by(pose, joint, quat.exp(share * quat.log(upright)))


def _raised(motion: PoseMotion, target: Skeleton, body: Body, metres: float) -> PoseMotion:
    up = _UP * metres
    if motion.placement is not None:
        return replace(motion, placement=motion.placement + up)
    hips = body.pose.one("hips")
    moved = [m for m, joint in enumerate(motion.moving) if hips is not None and target.is_below(hips, joint)]
    if not moved:
        return motion
    locations = motion.locations.copy(order="K")
    locations[:, moved[0]] += quat.rotate(quat.inv(target.rest_global_rotations[motion.moving[moved[0]]]), up)
    return replace(motion, locations=locations)


def _smooth(x: Array) -> Array:
    x = np.clip(x, 0.0, 1.0)
    return x * x * (3.0 - 2.0 * x)
