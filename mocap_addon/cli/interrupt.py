# SPDX-License-Identifier: GPL-3.0-or-later
"""Ctrl-C at the right moment. Inside Blender it would end in a failed import or a crash; so it is held until a take is finished."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType


class Held:
    """While this context lasts, the first Ctrl-C is only noted, and :meth:`check` acts on it; a second one acts at once."""

    def __init__(self) -> None:
        self._asked = False
        self._before: object = None

    def __enter__(self) -> Held:
        # Only the main thread may, and who ignores the signal (nohup) goes on ignoring it.
        if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            self._before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]

    def check(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed."""
        if self._asked:
            raise KeyboardInterrupt

    def _ask(self, _signal: int, _frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
