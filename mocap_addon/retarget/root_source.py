# SPDX-License-Identifier: GPL-3.0-or-later
"""Root motion of a take on its way to a character: what only the source knows, and the whole policy applied.

The source's root joint ``J`` carries the target's hips as it carried the source's: with ``J0`` and ``h0`` joint and hips of the source at
its reference pose, in character axes, ``k`` the scale of travel, and ``h0'`` the target's hips at rest,

    a0 = h0' + k (J0 - h0)          a(t) = k A J(t)          heading: the twist of A J J0^-1 A^-1

with heights counted from where the joint is at the reference pose.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import RigError
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from ..rig.roles import SIDES
from . import travel
from .align import Body
from .build import Bodies
from .motion import PoseMotion
from .root_motion import RootChain, RootMotion, extract
from .root_path import UP, RootPath, headings_of
from .world import Flags

Array = NDArray[np.float64]

HEIGHTS_AS_RECORDED = 1.0

_FEET = ("Foot", "Toes")
_STILL = 1e-5


def chain_of(
    target: Skeleton, body: Body, root: int | None, inherits: Flags | None = None, carrier: int | None = None, sole: float = 0.0
) -> RootChain:
    """The character's hips, root and feet as its body knows them; ``sole`` as in :func:`.travel.ground_height`, of the target."""
    roles = body.pose.roles
    hips = roles.get("hips")
    if not hips:
        raise RigError("No bone is matched as hips; match the hips first.")
    feet = tuple(joint for side in SIDES for part in _FEET for joint in roles.get(f"{side}{part}", ()))
    return RootChain(target, hips[0], root, inherits, carrier, feet, travel.ground_height(body, sole), upright(body.turn))


def upright(to_character: Array) -> Array:
    """(4,): of the rotation that turns a body upright and to face -Y, the part that only rights it."""
    heading = quat.swing_twist(to_character, UP)[1]
    return quat.mul(quat.inv(heading), to_character)


def apply(
    motion: PoseMotion,
    take: Take,
    chain: RootChain,
    bodies: Bodies,
    policy: RootMotion,
    *,
    root: int | None = None,
    scale: float | None = None,
) -> PoseMotion:
    """A retargeted motion under a policy.

    Parameters
    ----------
    motion : PoseMotion
        As the transfer made it, the hips carrying everything.
    take : Take
        What it was made from.
    chain : RootChain
        The target's.
    bodies : Bodies
    policy : RootMotion
    root : int, optional
        The source's root joint; the topmost one by default.
    scale : float, optional
        Of the hips' travel; the ratio of leg lengths by default.

    Raises
    ------
    RigError
        The source has no joint above its hips, or the target no root bone, and the policy needs one.
    """
    path = None
    if policy.source != "hips":
        scale = travel.travel_scale(bodies) if scale is None else scale
        path = _path_of_joint(take, _joint(take.skeleton, bodies, policy, root), bodies, chain, policy, scale)
    out = extract(motion, chain, policy, path)
    if path is None or max(float(np.ptp(path.places, axis=0).max()), float(np.ptp(path.headings))) > _STILL:
        return out
    note = "The take's root joint does not move, so the hips keep all of the way; take it from the hips instead."
    return replace(out, notes=(*out.notes, note))


def _joint(source: Skeleton, bodies: Bodies, policy: RootMotion, root: int | None) -> int:
    hips = bodies.source.pose.one("hips")
    above = [] if hips is None else source.ancestors(hips)
    if not above:
        name = "" if hips is None else f' "{source.names[hips]}"'
        raise RigError(f"The take has no joint above its hips{name} that could show the way; take the way from the hips.")
    return root if policy.source == "root" and root in above else above[-1]


def _path_of_joint(take: Take, joint: int, bodies: Bodies, chain: RootChain, policy: RootMotion, scale: float) -> RootPath:
    axes, pose = bodies.source.turn, bodies.source.pose
    hips = pose.one("hips")
    assert hips is not None
    scales = np.array([scale, scale, HEIGHTS_AS_RECORDED if policy.height == "keep" else scale])
    rotations, places = _in_world(take, joint)
    reference = quat.mul(axes, pose.rotations[joint])
    headings = headings_of(quat.mul(quat.mul(axes, rotations), quat.inv(reference)), take.times)
    anchor = chain.skeleton.rest_global_positions[chain.hips] + scales * (bodies.source.positions[joint] - bodies.source.positions[hips])
    there = scales * quat.rotate(axes, places)
    there[:, 2] += anchor[2] - scales[2] * bodies.source.positions[joint][2]
    return RootPath(there, headings, anchor)


def _in_world(take: Take, joint: int) -> tuple[Array, Array]:
    """Rotations ``(F, 4)`` and places ``(F, 3)`` of one joint."""
    translations = np.broadcast_to(take.local_translations, (take.frames, len(take.skeleton), 3))
    rotation, place = quat.identity(take.frames), np.zeros((take.frames, 3))
    for j in (*reversed(take.skeleton.ancestors(joint)), joint):
        place = place + quat.rotate(rotation, translations[:, j])
        rotation = quat.mul(rotation, take.local_rotations[:, j])
    return rotation, place
