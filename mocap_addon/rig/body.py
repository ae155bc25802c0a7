# SPDX-License-Identifier: GPL-3.0-or-later
"""The body behind a rig: the joints that play roles, hung on each other as a body hangs, whatever the rig hangs them on.

In control rigs the thigh's deform bone may hang on a mechanism and a foot on the root. Motion is carried to a body that is whole; what the
rig's bones have to do for it is worked out afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..motion.skeleton import Skeleton
from .roles import CHAIN_ROLES, FINGERS, ROLES, SIDES, RoleMap

_ABOVE: Mapping[str, tuple[str, ...]] = {
    "root": (),
    "hips": ("root",),
    "spine": ("hips",),
    "neck": ("spine", "hips"),
    "head": ("neck", "spine", "hips"),
    "jaw": ("head",),
    "Eye": ("head",),
    "Shoulder": ("spine", "hips"),
    "UpperArm": ("Shoulder", "spine", "hips"),
    "LowerArm": ("UpperArm",),
    "Hand": ("LowerArm",),
    "UpperLeg": ("hips",),
    "LowerLeg": ("UpperLeg",),
    "Foot": ("LowerLeg",),
    "Toes": ("Foot",),
    **{finger: ("Hand",) for finger in FINGERS},
}


@dataclass(frozen=True, eq=False)
class RoleBody:
    """A body of the joints with roles.

    Parameters
    ----------
    skeleton : Skeleton
        Joints at their rest places, named as in the rig, all with the axes of the world: a joint's rotation is how far it has turned away
        from rest.
    joints : tuple of int
        For each of its joints the joint of the rig.
    roles : RoleMap
        The roles, by joints of the body.
    """

    skeleton: Skeleton
    joints: tuple[int, ...]
    roles: RoleMap


def role_body(
    skeleton: Skeleton, roles: RoleMap, *, keep: Iterable[int] | None = None, places: Mapping[int, int] | None = None
) -> RoleBody:
    """The body of a rig.

    Parameters
    ----------
    skeleton : Skeleton
    roles : RoleMap
    keep : iterable of int, optional
        The joints to take; None: all with roles.
    places : mapping from joint to joint, optional
        Joint -> the joint whose head is where it really is.
    """
    wanted = None if keep is None else set(keep)
    chains = {role: tuple(j for j in roles.chain(role) if wanted is None or j in wanted) for role in ROLES}
    chains = {role: joints for role, joints in chains.items() if joints}
    wrists = _wrists(skeleton, chains)
    chains |= wrists
    joints: list[int] = []
    above: dict[int, int] = {}
    for role in ROLES:
        for k, joint in enumerate(chains.get(role, ())[: None if role in CHAIN_ROLES else 1]):
            if joint in above:
                continue
            above[joint] = chains[role][k - 1] if k else _parent(skeleton, chains, role, joint)
            joints.append(joint)
    order = sorted(joints, key=lambda j: (_depth(above, j), j))
    index = {joint: i for i, joint in enumerate(order)}
    parents = np.array([index.get(above[j], -1) for j in order], dtype=np.int64)
    at = [(places or {}).get(j, j) for j in order]
    points = skeleton.rest_global_positions[at]
    offsets = points - points[parents] * (parents >= 0)[:, None]
    ends = skeleton.rest_global_ends[order] - points
    body = Skeleton(tuple(skeleton.names[j] for j in order), parents, offsets, ends=ends)
    inside = {role: tuple(index[j] for j in chain if j in index) for role, chain in chains.items() if role not in wrists}
    return RoleBody(body, tuple(order), replace(roles, joints=inside, twists={}))


def _wrists(skeleton: Skeleton, chains: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """For forearms without a hand (palm bones start at the wrist) the farthest bone on them: it says where the forearm ends."""
    out: dict[str, tuple[int, ...]] = {}
    taken = {joint for chain in chains.values() for joint in chain}
    for side in SIDES:
        forearm = chains.get(f"{side}LowerArm")
        below = [j for j in skeleton.children[forearm[-1]] if j not in taken] if forearm and f"{side}Hand" not in chains else []
        if forearm and below:
            reach = skeleton.rest_global_positions[below] - skeleton.rest_global_positions[forearm[-1]]
            out[f"{side}Hand"] = (below[int(np.argmax(np.linalg.norm(reach, axis=-1)))],)
    return out


def _parent(skeleton: Skeleton, chains: Mapping[str, tuple[int, ...]], role: str, joint: int) -> int:
    """What a joint hangs on: where the rig has it below a joint that a body allows, that one; else the outermost that is allowed."""
    side = next((s for s in SIDES if role.startswith(s)), "")
    allowed: list[int] = []
    wanted = list(_ABOVE[role.removeprefix(side)])
    for part in wanted:
        found = chains.get(part) or chains.get(f"{side}{part}")
        allowed += reversed(found or ())
        if not found:  # a body without hands: its fingers hang on the forearms
            wanted += [above for above in _ABOVE[part] if above not in wanted]
    real = next((j for j in skeleton.ancestors(joint) if j in allowed), None)
    return real if real is not None else (allowed[0] if allowed else -1)


def _depth(above: Mapping[int, int], joint: int) -> int:
    depth = 0
    at = above[joint]
    while at in above and depth <= len(above):
        depth, at = depth + 1, above[at]
    return depth
