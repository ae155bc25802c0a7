# SPDX-License-Identifier: GPL-3.0-or-later
"""From the motion of a body to the keys of the controls that drive it, as arrays."""

from .convert import Plan, body_motions, on_bones, to_controls
from .follow import Bones, Link
from .rigid import Rigid

__all__ = ["Bones", "Link", "Plan", "Rigid", "body_motions", "on_bones", "to_controls"]
