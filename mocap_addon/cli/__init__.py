# SPDX-License-Identifier: GPL-3.0-or-later
"""`mocap VERB ...`: the add-on's work for a shell.

The same verbs run as ``scripts/mocap VERB``, as ``blender --command mocap VERB`` and as
``blender --background --python scripts/mocap.py -- VERB``. Nothing heavy is imported until a verb needs it; Blender only by
``convert`` and ``demo``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from .output import Output

OK, FAILED, USAGE = 0, 1, 2
INTERRUPTED = 130
"""Exit codes: all done; a take or file failed (the others are still done); the command itself was wrong; Ctrl-C."""


def main(argv: Sequence[str] | None = None, *, ends_process: bool = False, called: str = "mocap") -> int:
    """Run one verb.

    Parameters
    ----------
    argv : sequence of str, optional
        The words after ``mocap``. None: those of the process.
    ends_process : bool
        The process ends after this call: standard output is then left to results alone until its very end, so that nothing that
        Blender says while it closes gets among them.
    called : str
        What a person writes in place of ``mocap``, for help and messages.

    Returns
    -------
    int
        0, 1 or 2: see the module. Never raises for wrong input.
    """
    from . import arguments, output

    words = list(sys.argv[1:] if argv is None else argv)
    try:
        options = arguments.parse(words, called)
    except arguments.Done as done:
        return done.code
    out = output.Output(as_json=getattr(options, "json", False), ends_process=ends_process)
    try:
        return _verb(options.verb)(options, out)
    except KeyboardInterrupt:
        out.failure("Stopped. What was finished before is kept; nothing half-done was left.")
        return INTERRUPTED
    except BrokenPipeError:
        out.abandon()
        return FAILED
    except Exception as error:
        out.unexpected(error, verbose=getattr(options, "verbose", False))
        return FAILED


def _verb(name: str) -> Callable[[argparse.Namespace, Output], int]:
    if name == "info":
        from .info import run
    elif name == "convert":
        from .convert import run
    elif name == "record":
        from .live import record as run
    elif name == "replay":
        from .live import replay as run
    else:
        from .demo import run
    return run


_registered: object | None = None


def register_command() -> None:
    """Make ``blender --command mocap ...`` known; for the add-on's ``register()``."""
    global _registered
    from ..blender import commands

    if _registered is None:
        _registered = commands.add("mocap", _run_command)


def unregister_command() -> None:
    """Undo :func:`register_command`."""
    global _registered
    from ..blender import commands

    if _registered is not None:
        commands.remove(_registered)
        _registered = None


def _run_command(argv: list[str]) -> int:
    # Blender ends after a command.
    return main(argv, ends_process=True, called="blender --command mocap")
