# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid bodies that were recorded beside a performer, in the character's world.

The hips of the character walk where those of the performer walked times ``k``, ground on ground (:mod:`.travel`). What lies in that world
goes the same way: with ``A`` the turn that makes the performer face as the character does,

    x' = k A x                    Q' = A Q

Size is not changed: a cup is no bigger in a giant's hand. A root policy that moves the whole performance (its first frame to the origin,
its ground to zero, or no way at all) moves it rigidly at each moment, ``H'(t) = C(t) H(t)`` for the hips; the props move by the same ``C``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.take import PropTrack, Take
from .build import Bodies
from .motion import PoseMotion
from .root_motion import RootChain
from .world import Keys, World

Array = NDArray[np.float64]


def carried(take: Take, bodies: Bodies, scale: float) -> dict[str, PropTrack]:
    """The take's props in the character's world: metres from where its object stands."""
    turn = bodies.source.turn
    return {
        name: PropTrack(quat.continuous(quat.mul(turn, track.rotations)), scale * quat.rotate(turn, track.translations))
        for name, track in take.props.items()
    }


def moved_along(before: PoseMotion, after: PoseMotion, chain: RootChain) -> Mapping[str, PropTrack]:
    """The props of ``before`` moved as its hips were to become those of ``after``."""
    if not before.props:
        return before.props
    (was, at), (now, to) = (World(Keys.of(m), chain.skeleton, chain.inherits_rotation).of(chain.hips) for m in (before, after))
    turn = quat.mul(now, quat.inv(was))
    out: dict[str, PropTrack] = {}
    for name, track in before.props.items():
        places = to + quat.rotate(turn, track.translations - at)
        out[name] = PropTrack(quat.continuous(np.asfortranarray(quat.mul(turn, track.rotations))), np.asfortranarray(places))
    return out
