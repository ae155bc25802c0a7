# SPDX-License-Identifier: GPL-3.0-or-later
"""Long work done step by step, so that whoever waits for it can show how far it is, do something else in between, and break it off."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import TypeVar

from .errors import MocapError

T = TypeVar("T")

Steps = Generator[float, None, T]
"""Yields the share done (0..1) between its steps and returns what came of it. Closed half-way it leaves nothing behind."""

Progress = Callable[[float], bool | None]
"""Called with the share done (0..1); returning False cancels."""


def run(steps: Steps[T], progress: Progress | None, cancelled: str) -> T:
    """Take every step.

    Parameters
    ----------
    steps : generator
    progress : callable or None
    cancelled : str
        The sentence of the error when ``progress`` says so.

    Raises
    ------
    MocapError
        ``progress`` returned False.
    """
    while True:
        try:
            share = next(steps)
        except StopIteration as end:
            return end.value
        if progress is not None and progress(share) is False:
            steps.close()
            raise MocapError(cancelled)


def at_once(found: T) -> Steps[T]:
    """Work that has no steps: ``found`` is there already."""
    return found
    yield 0.0  # what makes this a generator
