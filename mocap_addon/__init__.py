# SPDX-License-Identifier: GPL-3.0-or-later
"""Motion capture onto any humanoid armature.

Nothing of Blender is imported until :func:`register` is called, so the rooms without bpy can be used and tested alone.
"""

from __future__ import annotations

__version__ = "0.1.0"


def register() -> None:
    """Called by Blender when the extension is enabled."""
    from . import cli
    from .ui import registration

    registration.register()
    cli.register_command()


def unregister() -> None:
    """Called by Blender when the extension is disabled."""
    from . import cli
    from .ui import registration

    cli.unregister_command()
    registration.unregister()
