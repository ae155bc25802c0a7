# SPDX-License-Identifier: GPL-3.0-or-later
"""Carrying motion from one skeleton to another: the correction table computed and applied."""

from .adjust import Adjustments, adjusted
from .build import build_table, measured
from .mask import PARTS, Mask, blended
from .motion import PoseMotion
from .transfer import RetargetOptions, retarget

__all__ = ["PARTS", "Adjustments", "Mask", "PoseMotion", "RetargetOptions", "adjusted", "blended", "build_table", "measured", "retarget"]
