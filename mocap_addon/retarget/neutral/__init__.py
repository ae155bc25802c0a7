# SPDX-License-Identifier: GPL-3.0-or-later
"""The pose that a source's rotations are counted from, found where its rest pose is no body."""

from .find import BODIES, SURE, Chosen, Found, find_reference, found_for, is_body, reference_notes, source_reference

__all__ = ["BODIES", "SURE", "Chosen", "Found", "find_reference", "found_for", "is_body", "reference_notes", "source_reference"]
