# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for all tests."""

from __future__ import annotations

import logging
import os
import sys

import pytest
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


_exit_code = 0


def pytest_sessionfinish(session, exitstatus):
    global _exit_code
    _exit_code = int(exitstatus)


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config):
    """The result must not be lost to how Blender as a module ends with the interpreter.

    4.2 may crash. 4.5 hangs where something still refers to the module, as tests do: Blender is then not closed, and its sound
    system waits for a thread that nobody stops.
    """
    bpy = sys.modules.get("bpy")
    if bpy is not None and not bpy.app.binary_path:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(_exit_code)
