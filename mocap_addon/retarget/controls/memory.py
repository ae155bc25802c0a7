# SPDX-License-Identifier: GPL-3.0-or-later
"""What was worked out before, for as long as what went into it is the same: one bone's correction leaves most of a rig where it was.

Motions that have not changed are handed on as the very objects of the time before (:meth:`Memory.alike`); what comes of the same objects
is then the same too, and need not be computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import numpy as np

from .rigid import Rigid

T = TypeVar("T")

FEW = 32
"""Frames up to which results are remembered: a moment that is looked at, never a take."""


class Memory:
    """Results by name, with what went into them. It remembers the last one of each."""

    def __init__(self) -> None:
        self._results: dict[Hashable, tuple[tuple[object, ...], Any]] = {}
        self._motions: dict[int, Rigid] = {}
        self._setting: Hashable = None

    def begin(self, setting: Hashable) -> None:
        """Forget everything if ``setting``, what all results depend on, is another one than before."""
        if setting != self._setting:
            self._results, self._motions, self._setting = {}, {}, setting

    def alike(self, motions: dict[int, Rigid]) -> dict[int, Rigid]:
        """The same motions; those that are as they were before are the objects from before."""
        self._motions = {joint: self._same(joint, motion) for joint, motion in motions.items()}
        return self._motions

    def known(self, name: Hashable, *inputs: object) -> Any:
        """The result that ``name`` had for these very objects; None where it was for others."""
        before, result = self._results.get(name, ((), None))
        return result if len(before) == len(inputs) and all(a is b for a, b in zip(before, inputs, strict=True)) else None

    def keep(self, name: Hashable, result: T, *inputs: object) -> T:
        """Remember a result and the objects it came of."""
        self._results[name] = (inputs, result)
        return result

    def once(self, name: Hashable, compute: Callable[[], T], *inputs: object) -> T:
        """The result of ``compute``, which depends on ``inputs`` alone."""
        found = self.known(name, *inputs)
        return self.keep(name, compute(), *inputs) if found is None else found

    def _same(self, joint: int, motion: Rigid) -> Rigid:
        before = self._motions.get(joint)
        if before is None or not np.array_equal(before.rotation, motion.rotation):
            return motion
        return before if np.array_equal(before.translation, motion.translation) else motion


class NoMemory(Memory):
    """For long takes: everything is computed, nothing is kept."""

    def alike(self, motions: dict[int, Rigid]) -> dict[int, Rigid]:
        return motions

    def known(self, name: Hashable, *inputs: object) -> Any:
        return None

    def keep(self, name: Hashable, result: T, *inputs: object) -> T:
        return result
