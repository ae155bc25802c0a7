# SPDX-License-Identifier: GPL-3.0-or-later
"""Chains of different link counts (spines, necks, fingers) matched by arc length."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..motion.skeleton import Skeleton
from ..rig.table import Rule

Array = NDArray[np.float64]


_BEYOND = {"spine": ("neck", "head"), "neck": ("head",)}


def beyond(role: str, roles: Mapping[str, tuple[int, ...]]) -> int | None:
    """The joint that a chain's last link reaches to: of a spine the neck (else the head), of a neck the head; None where none is known."""
    return next((found[0] for name in _BEYOND.get(role, ()) if (found := roles.get(name))), None)


def link_offsets(skeleton: Skeleton, chain: tuple[int, ...], tip: int | None = None, *, ends: bool = True) -> list[Array]:
    """For each link the vector ``(3,)`` to the next link's joint, in the link's own frame at rest (metres).

    The last link reaches to the joint ``tip`` (:func:`beyond`), else to the child nearest to the middle of all, else with ``ends`` to
    its known end; else zero. Joints between two links (helpers) are included in the vector.
    """
    from ..motion import quat

    out: list[Array] = []
    rotations, positions = skeleton.rest_global_rotations, skeleton.rest_global_positions
    for i, joint in enumerate(chain):
        following = chain[i + 1] if i + 1 < len(chain) else tip
        place = positions[following] if following is not None else _tip(skeleton, joint, ends)
        out.append(np.zeros(3) if place is None else quat.rotate(quat.inv(rotations[joint]), place - positions[joint]))
    return out


def _tip(skeleton: Skeleton, joint: int, ends: bool) -> Array | None:
    children = skeleton.children[joint]
    if children:
        positions = skeleton.rest_global_positions
        middle = np.mean([positions[c] for c in children], axis=0)
        return positions[min(children, key=lambda c: float(np.linalg.norm(positions[c] - middle)))]
    end = skeleton.rest_global_ends[joint]
    return end if ends and np.all(np.isfinite(end)) else None


def middles(skeleton: Skeleton, chain: tuple[int, ...], tip: int | None = None) -> Array:
    """(n,): the arc position, 0..1, of each link's middle. A last link of unknown length counts as long as the others' mean."""
    lengths = np.array([float(np.linalg.norm(v)) for v in link_offsets(skeleton, chain, tip)])
    known = lengths[lengths > 1e-9]
    if lengths[-1] <= 1e-9 and known.size:
        lengths[-1] = float(known.mean())
    total = float(lengths.sum())
    if total <= 1e-9:
        return (np.arange(len(chain)) + 0.5) / len(chain)
    ends = np.cumsum(lengths)
    return (ends - 0.5 * lengths) / total


def match_chain(
    source: Skeleton,
    source_chain: tuple[int, ...],
    target: Skeleton,
    target_chain: tuple[int, ...],
    tips: tuple[int | None, int | None] = (None, None),
) -> list[tuple[tuple[int, ...], Rule, float]]:
    """For each target link: the source joints it follows, by what rule, and the share of the second (see :class:`..rig.table.Row`).

    Equal counts go link by link. One target link for several source links aims along their chord. Otherwise a target link takes the
    slerp of the two source links whose middles lie round its own middle, measured along the chain. ``tips``: the joints that the two chains
    reach to (:func:`beyond`).
    """
    n, m = len(source_chain), len(target_chain)
    if n == m:
        return [((s,), "copy", 0.0) for s in source_chain]
    if m == 1:
        return [(source_chain, "chord", 0.0)]
    at, have = middles(target, target_chain, tips[1]), middles(source, source_chain, tips[0])
    out: list[tuple[tuple[int, ...], Rule, float]] = []
    for u in map(float, at):
        k = int(np.searchsorted(have, u))
        if k == 0 or k == n:
            out.append(((source_chain[min(k, n - 1)],), "copy", 0.0))
            continue
        share = float((u - have[k - 1]) / max(have[k] - have[k - 1], 1e-12))
        out.append(((source_chain[k - 1], source_chain[k]), "blend", round(share, 6)))
    return out
