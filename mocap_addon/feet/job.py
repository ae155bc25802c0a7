# SPDX-License-Identifier: GPL-3.0-or-later
"""What every mode begins with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion.take import Take
from .body import Feet
from .contacts import Contacts
from .ground import Ground
from .pose import Legs
from .settings import FeetSettings

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Job:
    """A take's legs and soles, its contacts, the ground and what of it moves.

    Parameters
    ----------
    take : Take
    feet : Feet
    legs : Legs
    soles : (F, 2, 3, 3) array
        Heel, ball and tip of the source, world, metres.
    ground : Ground
    moving : bool
        Whether anything of the ground moves.
    under : (F, 2) int array or None
        The object under each ball; None where nothing moves.
    found : Contacts
    has_toe : pair of bool
    settings : FeetSettings
    """

    take: Take
    feet: Feet
    legs: Legs
    soles: Array
    ground: Ground
    moving: bool
    under: Indices | None
    found: Contacts
    has_toe: tuple[bool, bool]
    settings: FeetSettings
