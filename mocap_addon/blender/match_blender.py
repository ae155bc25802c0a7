# SPDX-License-Identifier: GPL-3.0-or-later
"""Between keys: Blender interpolates components of rotations (or Euler angles, along Bezier curves), players of glTF slerp.

Where the two part by more than a bound, samples are added halfway until they do not. The two agree at the ends of a piece; of straight
components of a quaternion also in its middle, where the difference is largest about a fifth from either end. So each piece is looked at in
three places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..formats import node_clip, node_pose
from ..motion.scaled_pose import ScaledPose
from ..motion.take import Take

if TYPE_CHECKING:
    from .node_clips import Stage

Array = NDArray[np.float64]
Sampled = tuple[Take, ScaledPose | None]

_LOOKED_AT = (0.2113, 0.5, 0.7887)
_MOST = 9  # halvings; few pieces ever need so many
_SAFE = 0.8


def refined(
    on: Stage, first: Sampled, frames: Array, sampled: Callable[[Array], Sampled], bound: float | None
) -> tuple[Sampled, Array, float]:
    """More samples where they are needed.

    Parameters
    ----------
    on : Stage
    first : Take, ScaledPose or None
        On ``frames (F,)``.
    sampled : callable
        Frames to the same, as Blender evaluates it.
    bound : float or None
        Metres. None: only look.

    Returns
    -------
    sampled, frames, gap
        ``gap`` is the largest difference that is left, metres.
    """
    if len(frames) < 2:
        return first, frames, 0.0
    found = first
    gaps = _gaps(on, found, frames, sampled, np.arange(len(frames) - 1))
    if bound is None:
        return found, frames, float(gaps.max())
    pieces = np.arange(len(frames) - 1)
    largest = gaps
    for _ in range(_MOST):
        wide = pieces[largest > _SAFE * bound]
        if not wide.size:
            break
        frames = np.sort(np.concatenate([frames, 0.5 * (frames[wide] + frames[wide + 1])]))
        # of the two halves of each, in the new numbering
        pieces = (wide[:, None] + np.arange(len(wide))[:, None] + np.array([0, 1])[None]).ravel()
        found = sampled(frames)
        largest = _gaps(on, found, frames, sampled, pieces)
    left = _gaps(on, found, frames, sampled, np.arange(len(frames) - 1))
    return found, frames, float(left.max())


def _gaps(on: Stage, given: Sampled, frames: Array, sampled: Callable[[Array], Sampled], pieces: NDArray[np.int64]) -> Array:
    """(P,): metres, the largest difference in each of the pieces that begin at these samples."""
    length = frames[pieces + 1] - frames[pieces]
    at = (frames[pieces][:, None] + length[:, None] * np.array(_LOOKED_AT)[None]).ravel()
    true = sampled(at)
    ours, wanted = _channels(on, given), _channels(on, true)
    points = on.body.over({c.node for c in (*ours, *wanted)})
    apart = points.at(ours, true[0].times) - points.at(wanted, true[0].times)
    squared = np.einsum("pcf,pcf->pf", apart, apart).max(axis=0)
    return np.sqrt(squared.reshape(len(pieces), len(_LOOKED_AT)).max(axis=1))


def _channels(on: Stage, sampled: Sampled) -> tuple[node_clip.Channel, ...]:
    take, pose = sampled
    everything = set(range(len(take.skeleton)))
    scales = None
    if pose is not None:
        take, scales = pose.onto(take), pose.scales
    return node_clip.channels_of(take.times, node_pose.node_motions(take, on.tree, on.nodes, everything, everything, scales))
