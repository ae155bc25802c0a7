# SPDX-License-Identifier: GPL-3.0-or-later
"""Which bone is which, and the correction table: naming families (data files), the matcher, its report, the table's file form."""

from __future__ import annotations

from .families import families
from .matcher import match, require_humanoid

__all__ = ["families", "match", "require_humanoid"]
