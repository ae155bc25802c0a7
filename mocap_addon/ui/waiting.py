# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading that takes long, in a window that stays alive: a share in the status bar, and Esc breaks it off.

The work is done in slices between Blender's own events (:mod:`..motion.steps`); nothing runs beside it. Until it is done, events go
nowhere else, so that nothing it reads from can change under it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import bpy

from ..motion.errors import MocapError
from ..motion.steps import Steps

PATIENCE = 0.25
"""Seconds of work that are done at once: what is quicker never waits."""

SLICE = 0.04
"""Seconds of work between two looks at the events."""

_HINT = "Reading {}: {:.0%}    Esc: cancel"


class Finished(Exception):  # noqa: N818
    """The work is done; ``value`` is what came of it."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


def advance(steps: Steps[Any], seconds: float) -> float:
    """Work for a while; the share done.

    Raises
    ------
    Finished
        Nothing is left to do.
    """
    end = time.perf_counter() + seconds
    share = 0.0
    while True:
        try:
            share = next(steps)
        except StopIteration as stop:
            raise Finished(stop.value) from None
        if time.perf_counter() >= end:
            return share


class Waits:
    """For operators that read before they do what they are there for."""

    def wait(self, context: bpy.types.Context, steps: Steps[Any], label: str, then: Callable[[Any], set[str]]) -> set[str]:
        """To be returned from ``invoke``: read, at once or with the window alive, then do ``then`` with what was read."""
        self._steps, self._label, self._then = steps, label, then
        self._timer = None
        try:
            share = advance(steps, PATIENCE)
            while context.window is None or bpy.app.background:
                share = advance(steps, PATIENCE)
        except Finished as done:
            return then(done.value)
        except MocapError as error:
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        manager = context.window_manager
        self._timer = manager.event_timer_add(0.01, window=context.window)
        manager.progress_begin(0, 100)
        self._tell(context, share)
        manager.modal_handler_add(self)
        return {"RUNNING_MODAL"}

    def modal(self, context: bpy.types.Context, event: bpy.types.Event) -> set[str]:
        if event.type == "ESC" and event.value == "PRESS":
            self.cancel(context)
            self.report({"INFO"}, f"Reading {self._label} was cancelled.")
            return {"CANCELLED"}
        if event.type != "TIMER":
            return {"RUNNING_MODAL"}
        try:
            self._tell(context, advance(self._steps, SLICE))
        except Finished as done:
            self._end(context)
            return self._then(done.value)
        except MocapError as error:
            self._end(context)
            self.report({"ERROR"}, str(error))
            return {"CANCELLED"}
        return {"RUNNING_MODAL"}

    def cancel(self, context: bpy.types.Context) -> None:
        """Broken off, by Esc or because the window goes."""
        self._steps.close()
        self._end(context)
        self.broken_off(context)

    def broken_off(self, context: bpy.types.Context) -> None:
        """What is to be said where the reading was meant to show."""

    def _tell(self, context: bpy.types.Context, share: float) -> None:
        context.window_manager.progress_update(int(100 * share))
        if context.workspace is not None:
            context.workspace.status_text_set(_HINT.format(self._label, share))

    def _end(self, context: bpy.types.Context) -> None:
        manager = context.window_manager
        if self._timer is not None:
            manager.event_timer_remove(self._timer)
            manager.progress_end()
            self._timer = None
        if context.workspace is not None:
            context.workspace.status_text_set(None)
        for window in manager.windows:
            for area in window.screen.areas:
                area.tag_redraw()
