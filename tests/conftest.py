# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for all tests."""

from __future__ import annotations

import logging
import os

from hypothesis import settings

# Machines differ in speed, and a shared one stalls: a test fails for what it computes, never for how long one example took.
settings.register_profile("mocap", deadline=None, print_blob=True)
settings.load_profile("mocap")

# Blender's glTF exporter keeps the stream of the test in which it was first used, and would complain about each line after that.
logging.raiseExceptions = False


def pytest_collection_modifyitems(config, items):
    """In the matrix (MOCAP_MATRIX=1) what is marked "thorough" is left out: the default Blender has run it."""
    if os.environ.get("MOCAP_MATRIX"):
        kept = [item for item in items if item.get_closest_marker("thorough") is None]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept
