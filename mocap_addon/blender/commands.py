# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands of Blender's own command line (``blender --command NAME ...``)."""

from __future__ import annotations

from collections.abc import Callable

import bpy


def add(name: str, run: Callable[[list[str]], int]) -> object:
    """Make ``blender --command NAME`` call ``run`` with the words after it; what that returns is the exit code.

    Gives a handle for :func:`remove`.
    """
    return bpy.utils.register_cli_command(name, run)


def remove(handle: object) -> None:
    """Take a command away."""
    bpy.utils.unregister_cli_command(handle)
