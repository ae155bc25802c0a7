# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for all tests."""

from __future__ import annotations

import logging

from hypothesis import settings

# Machines differ in speed, and a shared one stalls: a test fails for what it computes, never for how long one example took.
settings.register_profile("mocap", deadline=None, print_blob=True)
settings.load_profile("mocap")

# Blender's glTF exporter keeps the stream of the test in which it was first used, and would complain about each line after that.
logging.raiseExceptions = False
