# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigs whose deform bones do not hang on each other but on the bones that drive them.

In a generated Rigify rig ``DEF-thigh.L`` hangs on ``ORG-spine`` and ``DEF-spine`` on ``root``: the body is whole only
when ``ORG-x`` and ``DEF-x`` count as one bone. :func:`deform_skeleton` gives that body.
"""

from __future__ import annotations

import numpy as np

from ..motion.skeleton import Skeleton

DEFORM = "DEF-"
_DRIVING = ("ORG-", "MCH-")


def deform_skeleton(skeleton: Skeleton) -> tuple[Skeleton, tuple[int, ...]] | None:
    """The deform bones of a control rig (with its roots), hung on each other; None when the skeleton is no such rig.

    Returns
    -------
    Skeleton
        Bones at their rest places, with axes of the world.
    tuple of int
        For each of its joints the joint of ``skeleton``.
    """
    deform = [j for j, name in enumerate(skeleton.names) if name.startswith(DEFORM)]
    driving = sum(name.startswith(_DRIVING) for name in skeleton.names)
    if len(deform) < 8 or driving < 8:
        return None
    kept = [*skeleton.roots, *(j for j in deform if j not in skeleton.roots)]
    above = {j: _above(skeleton, j, set(kept)) for j in kept}
    order = sorted(kept, key=lambda j: (_depth(above, j), j))
    index = {j: i for i, j in enumerate(order)}
    parents = np.array([index[p] if (p := above[j]) is not None else -1 for j in order], dtype=np.int64)
    places = skeleton.rest_global_positions[order]
    offsets = places - places[parents] * (parents >= 0)[:, None]
    ends = skeleton.rest_global_ends[order] - places
    return Skeleton(tuple(skeleton.names[j] for j in order), parents, offsets, ends=ends), tuple(order)


def _above(skeleton: Skeleton, joint: int, kept: set[int]) -> int | None:
    """The nearest kept bone above ``joint``, where a driving bone stands for the deform bone of the same name."""
    own = skeleton.names[joint]
    for j in skeleton.ancestors(joint):
        if j in kept:
            return j
        name = skeleton.names[j]
        for prefix in _DRIVING:
            twin = DEFORM + name.removeprefix(prefix)
            if name.startswith(prefix) and twin != own and twin in skeleton:
                return skeleton.index(twin)
    return None


def _depth(above: dict[int, int | None], joint: int) -> int:
    """Number of bones above ``joint``; a ring (which no sound rig has) ends the count."""
    depth = 0
    at = above[joint]
    while at is not None and depth <= len(above):
        depth += 1
        at = above[at]
    return depth
