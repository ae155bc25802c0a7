# SPDX-License-Identifier: GPL-3.0-or-later
"""Files to takes and back. Every file is turned into the project's axes and metres here, and nowhere else.

``take.facts`` of a file whose axes had to be found holds plain values that a person can be shown: ``format``, ``frames``, ``rate``,
``joints``, ``channels``; ``up`` and ``rest_up`` (the file's axes that point up in the motion and in the rest pose); ``rest`` (``"t"``,
``"a"``, ``"arms down"``, ``"arms up"``, ``"collapsed"``, ``"other"``); ``facing`` and ``rest_facing`` (the file's axes that the first frame
and the rest pose face, or None) and ``heading_deg`` (the first frame's, to the left of -Y in the project's axes); ``unit`` (metres) and
``unit_name``. :class:`ReadOptions` overrides what was found.
"""

from __future__ import annotations

from .options import Axis, ReadOptions
from .registry import FORMATS, Format, content_hash, origin, read, read_steps, recognise, write

__all__ = ["FORMATS", "Axis", "Format", "ReadOptions", "content_hash", "origin", "read", "read_steps", "recognise", "write"]
