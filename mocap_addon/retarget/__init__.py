# SPDX-License-Identifier: GPL-3.0-or-later
"""Carrying motion from one skeleton to another: the correction table computed and applied."""

from .build import build_table, measured
from .motion import PoseMotion
from .transfer import RetargetOptions, retarget

__all__ = ["PoseMotion", "RetargetOptions", "build_table", "measured", "retarget"]
