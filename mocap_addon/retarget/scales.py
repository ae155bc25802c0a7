# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that a take scales, onto the bones that follow them in place too.

A scale ``s`` along the axes of the source's joint stretches by ``diag(s)`` in that joint's frame. With ``K`` what turns vectors of the
target bone's frame into the joint's (equation (1) of :mod:`.transfer`: ``T = A S K``) that is ``K^T diag(s) K`` in the bone's frame. A bone
can only be stretched along its own axes, so the diagonal is taken: exact for even scales, and where the axes lie along each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.skeleton import Skeleton
from ..motion.take import Take

Array = NDArray[np.float64]


def along(scales: Array, turn: Array) -> Array:
    """Scales ``(F, 3)`` along a joint's axes -> along those of a bone, ``turn (4,)`` being ``K``."""
    return scales @ quat.to_matrix(turn) ** 2


def above(take: Take, source: Skeleton, joint: int, carried: Iterable[int]) -> Array | None:
    """(F, 3): by what the joints of ``carried`` above ``joint`` stretch its place, along its parent's axes; None where none does."""
    found = [take.scales[source.names[a]] for a in source.ancestors(joint) if a in set(carried) and source.names[a] in take.scales]
    return np.prod(found, axis=0) if found else None


def missed(take: Take, followed: Mapping[str, bool]) -> list[str]:
    """A note on joints that the take scales while their rows do not follow in place. ``followed``: joint -> whether its row is movable."""
    names = [f'"{name}"' for name in take.scales if not followed.get(name, True)]
    if not names:
        return []
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return [f"The take scales {shown}, which their bones do not follow; mark their rows as movable if they are to."]
