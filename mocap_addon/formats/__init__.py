# SPDX-License-Identifier: GPL-3.0-or-later
"""Files to takes and back. Every file is turned into the project's axes and metres here, and nowhere else."""

from __future__ import annotations

from .options import Axis, ReadOptions
from .registry import FORMATS, Format, read, recognise, write

__all__ = ["FORMATS", "Axis", "Format", "ReadOptions", "read", "recognise", "write"]
