# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding the reference pose of a take: its rest, a frame that shows a T-pose, or an estimate from the motion.

Many files have a zero pose that was never meant to be seen: every bone along +X, limbs in a heap. Rotations counted from it carry over as
nonsense. What was meant has to be found:

1. the rest pose, when it is a body (T, A, arms down, splayed): nothing is looked at then, it costs nothing;
2. a frame of the take in which somebody stands in a T-pose;
3. a known skeleton (:mod:`.conventions`), where the take agrees with it;
4. the motion: limbs from the offsets, rolls from the hinges of elbows and knees, soles from standing feet, left from hips and shoulders
   (:mod:`.limbs`, :mod:`.feet`, :mod:`.estimate`), put on quarter turns where the skeleton is built of them (:mod:`.tidy`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ...motion import kinematics, quat
from ...motion.skeleton import Skeleton
from ...motion.take import Take
from ...rig.matcher import match, spoken
from ...rig.roles import FINGERS, ROLES, SIDES, RoleMap
from .. import frames
from ..transfer import reference_pose
from . import tidy
from .conventions import follow, known
from .estimate import Estimate, estimate_clavicles, estimate_fingers, estimate_trunk, fill
from .feet import estimate_feet
from .limbs import estimate_limbs
from .observe import Samples, unit

Array = NDArray[np.float64]
How = Literal["rest", "frame", "motion", "family"]
Chosen = int | Literal["rest"] | None
"""A sample, the rest pose, or whatever is found."""

BODIES: frozenset[str] = frozenset({"t", "a", "arms down", "arms up"})
"""What readers call a rest pose that is a body (``take.facts["rest"]``)."""

SURE = 0.75
"""A reference below this confidence is worth a look."""

_T_POSE = np.radians(10.0)
_SOON = np.radians(2.0)
_CLEARANCE = 0.02


@dataclass(frozen=True, eq=False)
class Found:
    """A reference pose and where it is from.

    Parameters
    ----------
    pose : Pose
        Global rotations and positions, facing -Y and standing on the ground where it was estimated. Its skeleton has the pose as its rest.
    how : "rest", "frame", "motion" or "family"
    frame : int or None
        The frame that shows it.
    confidence : float
        0..1: the mean of its roles, limbs and hips above all.
    sure : mapping from role to float
    notes : tuple of str
        What a person should know, one plain sentence each.
    """

    pose: frames.Pose
    how: How
    frame: int | None = None
    confidence: float = 1.0
    sure: Mapping[str, float] = field(default_factory=dict[str, float])
    notes: tuple[str, ...] = ()


def is_body(skeleton: Skeleton, roles: Mapping[str, tuple[int, ...]]) -> bool:
    """Whether the rest pose stands: both legs straight and away from the head, left and right apart and the same way at hips and shoulders.

    True where too little is known to doubt it.
    """
    one = {role: joints[0] for role, joints in roles.items() if joints}
    p = skeleton.rest_global_positions

    def way(start: str, end: str) -> Array | None:
        return unit(p[one[end]] - p[one[start]]) if start in one and end in one else None

    trunk = way("hips", "head")
    if trunk is None:
        trunk = way("hips", "leftUpperArm")
    legs = [way(f"{side}UpperLeg", f"{side}Foot") for side in SIDES]
    if trunk is None or any(leg is None for leg in legs):
        return True
    if any(float(leg @ trunk) > -0.5 for leg in legs if leg is not None):
        return False
    knees = [(way(f"{side}UpperLeg", f"{side}LowerLeg"), way(f"{side}LowerLeg", f"{side}Foot")) for side in SIDES]
    if any(float(thigh @ shin) < 0.3 for thigh, shin in knees if thigh is not None and shin is not None):
        return False
    across = [way(f"right{part}", f"left{part}") for part in ("UpperLeg", "UpperArm")]
    apart = [v for v in across if v is not None and v.any()]
    if not apart or any(abs(float(v @ trunk)) > 0.5 for v in apart):
        return False
    return float(apart[0] @ apart[-1]) > 0.5


def find_reference(take: Take, roles: RoleMap) -> Found:
    """The reference pose of a take.

    Parameters
    ----------
    take : Take
    roles : RoleMap
        As :func:`mocap_addon.rig.match` gives it.

    Returns
    -------
    Found
    """
    if take.facts.get("rest") in BODIES or is_body(take.skeleton, roles.joints):
        return Found(frames.rest_pose(take.skeleton, roles.joints), "rest")
    samples = Samples(take, roles.joints)
    if len(samples) == 0:
        note = "The rest pose is no body and the take has no frames to find a reference pose in."
        return Found(frames.rest_pose(take.skeleton, roles.joints), "rest", confidence=0.0, notes=(note,))
    if take.facts.get("unfit"):  # bones without lengths, no bones at all: there is nothing to see
        return Found(frames.rest_pose(take.skeleton, roles.joints), "rest", confidence=0.0, notes=(str(take.facts["unfit"]),))
    return in_frame(take, samples) or from_motion(samples)


def in_frame(take: Take, s: Samples) -> Found | None:
    """A frame in which the limbs are straight, the arms level to the sides and the legs below the body; early ones are preferred."""
    miss = _t_pose_miss(s)
    if miss is None or float(miss.min()) > _T_POSE:
        return None
    best = int(np.flatnonzero(miss <= miss.min() + _SOON)[0])
    frame = int(s.frames[best])
    one = take.block(frame, frame + 1)
    skeleton = take.skeleton.with_rest(one.local_rotations[0], one.local_translations[0])
    pose = frames.posed(skeleton, s.roles, one.global_rotations[0], one.global_positions[0])
    sure = 1.0 - 0.3 * float(miss[best]) / _T_POSE
    return Found(
        pose,
        "frame",
        frame,
        round(sure, 3),
        {role: sure for role in s.roles},
        (f"Frame {frame} shows a T-pose; it is the reference pose.",),
    )


def _t_pose_miss(s: Samples) -> Array | None:
    """(f,): by how much (radians) each frame misses a T-pose: the worst of the arms' and legs' bones and the trunk."""
    worst = np.arccos(np.clip(s.trunk[:, 2], -1.0, 1.0))
    for side in SIDES:
        out = s.left * (1.0 if side == "left" else -1.0)
        down = np.broadcast_to(np.array([0.0, 0.0, -1.0]), out.shape)
        for near, far, wanted in (
            ("UpperArm", "LowerArm", out),
            ("LowerArm", "Hand", out),
            ("UpperLeg", "LowerLeg", down),
            ("LowerLeg", "Foot", down),
        ):
            a, b = s.one(f"{side}{near}"), s.one(f"{side}{far}")
            if a is None or b is None:
                if far == "Hand":
                    continue
                return None
            bone = unit(s.positions[:, b] - s.positions[:, a])
            worst = np.maximum(worst, np.arccos(np.clip((bone * wanted).sum(axis=1), -1.0, 1.0)))
    return worst


def from_motion(s: Samples, *, conventions: bool = True) -> Found:
    """An estimate from how the body moves: a T-pose facing -Y. Without ``conventions`` from the motion alone."""
    found = Estimate()
    estimate_trunk(s, found)
    estimate_clavicles(s, found)
    estimate_limbs(s, found)
    built_tidy = tidy.is_tidy(s, found)
    if built_tidy:
        tidy.tidy_body(s, found)
    estimate_feet(s, found)
    if built_tidy:
        tidy.tidy_feet(s, found)
    convention = known(s, found) if conventions else None
    if convention is not None:
        follow(s, found, convention)
        found.notes.clear()  # what the motion does not show is known
    estimate_fingers(s, found)
    fill(s, found)
    sure = {role: found.sure[joints[0]] for role, joints in s.roles.items() if joints}
    total = _overall(sure)
    if convention is not None:
        notes = (f"The joints are built as in {convention.name}, whose T-pose is known and the reference pose ({total:.0%} sure).",)
        return Found(_stand(s, found), "family", None, total, sure, notes)
    return Found(_stand(s, found), "motion", None, total, sure, _notes(found, sure, total, built_tidy))


def _notes(found: Estimate, sure: Mapping[str, float], total: float, built_tidy: bool) -> tuple[str, ...]:
    notes = [f"The reference pose was found in the motion ({total:.0%} sure)."]
    if built_tidy:
        notes.append("The joints' frames are quarter turns of each other, so the estimate was put on quarter turns.")
    doubtful = [role for role in ROLES if sure.get(role, 1.0) < 0.5 and role != "root"]
    notes += found.notes
    if doubtful:
        shown = ", ".join(map(spoken, doubtful[:6])) + (f" and {len(doubtful) - 6} more" if len(doubtful) > 6 else "")
        notes.append(f"Look at {shown}: the motion hardly shows their reference pose; correct it in the table, or choose a frame.")
    return tuple(notes)


def _overall(sure: Mapping[str, float]) -> float:
    counted = [role for role in sure if role != "root" and not role.endswith(FINGERS)]
    weights = {role: 3.0 if role == "hips" or role.endswith(("Arm", "Leg")) else 1.0 for role in counted}
    total = sum(weights.values())
    return round(sum(sure[role] * w for role, w in weights.items()) / total, 3) if total else 0.0


def _stand(s: Samples, found: Estimate) -> frames.Pose:
    """The pose that the rotations make with the take's offsets: hips over the origin, feet as high over the ground as they mostly stand."""
    skeleton, hips = s.skeleton, s.one("hips")
    rotations = np.array([found.rotations[j] for j in range(len(skeleton))])
    positions = np.zeros((len(skeleton), 3))
    above: set[int] = set() if hips is None else set(skeleton.ancestors(hips))
    for j, p in enumerate(skeleton.parents.tolist()):
        if p >= 0 and j != hips and j not in above:
            positions[j] = positions[p] + quat.rotate(rotations[p], s.offsets[j])
    below = [j for j in range(len(skeleton)) if j not in above]
    ends = positions[below] + quat.rotate(rotations[below], skeleton.ends[below])
    lowest = float(np.nanmin(np.concatenate([positions[below, 2], ends[:, 2]])))
    positions[below, 2] += _sole_height(s) - lowest
    local, offsets = kinematics.inverse(rotations, positions, skeleton.parents)
    stands = skeleton.with_rest(local, offsets)
    return frames.posed(stands, s.roles, rotations, positions)


def _sole_height(s: Samples) -> float:
    """Metres of the lowest joint or bone end of the feet over the ground, where the take stands on the ground; else a little."""
    joints = [j for side in SIDES for part in ("Foot", "Toes") for j in s.roles.get(f"{side}{part}", ())]
    if joints:
        ends = s.positions[:, joints] + quat.rotate(s.rotations[:, joints], s.skeleton.ends[joints])
        lowest: Array = np.nanmin(np.concatenate([s.positions[:, joints], ends], axis=1)[..., 2], axis=1)
        height = float(np.percentile(lowest, 5.0))
        if 0.0 <= height <= 0.12 * s.leg:
            return height
    return _CLEARANCE * s.leg


_remembered: WeakKeyDictionary[Take, Found] = WeakKeyDictionary()


def found_for(take: Take) -> Found:
    """:func:`find_reference` with the roles that the matcher gives; remembered as long as the take lives."""
    if take not in _remembered:
        _remembered[take] = find_reference(take, match(take.skeleton))
    return _remembered[take]


def source_reference(take: Take, frame: Chosen) -> frames.Pose | None:
    """What the source's rotations are counted from; None for the take's own rest pose.

    Parameters
    ----------
    take : Take
    frame : int, "rest" or None
        The sample that was chosen as the reference; "rest": the rest pose, whatever it looks like; None: what :func:`find_reference` finds.

    Raises
    ------
    RigError
        When there is no such sample.
    """
    if isinstance(frame, int):
        return reference_pose(take, frame)
    if frame == "rest" or take.facts.get("rest") in BODIES:
        return None
    found = found_for(take)
    return None if found.how == "rest" else found.pose


def reference_notes(take: Take, frame: Chosen) -> tuple[str, ...]:
    """What a person should know about the reference that :func:`source_reference` gives."""
    if frame is not None or take.facts.get("rest") in BODIES:
        return ()
    return found_for(take).notes
