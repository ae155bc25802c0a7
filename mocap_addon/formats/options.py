# SPDX-License-Identifier: GPL-3.0-or-later
"""What a person may say about a file that the reader would otherwise find out or guess."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal, get_args

from ..motion.errors import MocapError

Axis = Literal["X", "-X", "Y", "-Y", "Z", "-Z"]
AXES: tuple[Axis, ...] = get_args(Axis)


@dataclass(frozen=True)
class ReadOptions:
    """Overrides for :func:`mocap_addon.formats.read`. None everywhere means: as the file says, or as it is found from the motion.

    Parameters
    ----------
    rate : Fraction or None
        Frames a second, instead of the file's.
    up : "X", "-X", "Y", "-Y", "Z", "-Z" or None
        The file's axis that points up in the motion.
    rest_up : the same
        The file's axis that points up in the rest pose. None: found, or ``up`` where the rest pose is no body.
    unit : float or None
        Metres in one file unit.
    """

    rate: Fraction | None = None
    up: Axis | None = None
    rest_up: Axis | None = None
    unit: float | None = None

    def __post_init__(self) -> None:
        for axis in (self.up, self.rest_up):
            if axis is not None and axis not in AXES:
                raise MocapError(f'"{axis}" is not an axis; write one of {", ".join(AXES)}.')
        if self.unit is not None and not (math.isfinite(self.unit) and self.unit > 0.0):
            raise MocapError(f"The unit {self.unit} is not a length; give the metres in one file unit, for example 0.01 for centimetres.")
        if self.rate is not None and not 0 < self.rate <= 100_000:
            raise MocapError(f"The frame rate {self.rate} is out of range; it must lie between 0 and 100000.")
