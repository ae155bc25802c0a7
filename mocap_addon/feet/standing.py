# SPDX-License-Identifier: GPL-3.0-or-later
"""How a take's own skeleton stands: for characters without a mesh whose rest pose does not have its soles flat."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.take import Take
from ..rig.roles import SIDES, RoleMap
from . import signals

Array = NDArray[np.float64]

STILL = 0.2
"""The part of a take's frames in which a foot is taken to stand: those in which it is slowest."""


def standing_pose(take: Take, roles: RoleMap) -> tuple[Array, Array]:
    """A pose for :func:`.body.find_feet`: each leg as it is where its foot is stillest and lowest.

    BVH files often hold the body in a rest pose that never stood on anything; in the motion it stands for a good part of the time.

    Returns
    -------
    (J, 4), (J, 3) arrays
        Global rotations and positions. Each foot is put so that its lowest joint or bone end lies at z = 0, which is the sole as far as
        joints can tell.
    """
    rotations, positions = take.global_rotations, take.global_positions
    out_r, out_p = take.skeleton.rest_global_rotations.copy(), take.skeleton.rest_global_positions.copy()
    if take.frames < 3:
        return out_r, out_p
    for side in SIDES:
        chain = [j for part in ("UpperLeg", "LowerLeg", "Foot", "Toes") for j in roles.chain(f"{side}{part}")]
        foot = [j for part in ("Foot", "Toes") for j in roles.chain(f"{side}{part}")]
        if not foot:
            continue
        ends = positions[:, foot] + quat.rotate(rotations[:, foot], take.skeleton.ends[foot])
        points = np.concatenate([positions[:, foot], np.where(np.isfinite(ends), ends, positions[:, foot])], axis=1)
        v = signals.velocity(points, take.times)
        speed = np.sqrt((v * v).sum(axis=-1)).max(axis=1)
        low = points[..., 2].max(axis=1)  # a foot on tiptoe has a high ankle
        count = max(round(STILL * take.frames), 1)
        still = np.argsort(speed, kind="stable")[:count]
        best = int(still[np.argsort(low[still], kind="stable")[len(still) // 2]])
        names = _below(take, chain)
        drop = np.array([0.0, 0.0, float(points[best, :, 2].min())])
        out_r[names], out_p[names] = rotations[best, names], positions[best, names] - drop
    return out_r, out_p


def _below(take: Take, chain: list[int]) -> list[int]:
    """The chain and everything between and below its first joint."""
    return [j for j in range(len(take.skeleton)) if take.skeleton.is_below(j, chain[0])]
