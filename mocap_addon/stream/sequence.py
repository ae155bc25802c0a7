# SPDX-License-Identifier: GPL-3.0-or-later
"""Frame numbers: what is new, what came twice, what came late, and when a sender has begun anew.

Numbers are unsigned and may wrap at 2^32; any other jump back is a late packet or a restart. A late packet must not look like a restart, so
a restart is believed only after three packets of the new run in order, which are then taken in, none lost.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, Literal, TypeVar

T = TypeVar("T")
Verdict = Literal["new", "late", "restart"]

WRAP = 1 << 32
REMEMBERED = 1024
LATE_SECONDS = 1.0
"""A packet that is this late by the sender's clock is not late but of another run."""
QUIET_SECONDS = 0.3
"""Nothing of the old run for so long, while the numbers went on from an earlier one: a short loop has begun anew."""
EARLY_SECONDS = 0.5
"""A packet cannot come before it was sent: by so much, the sender's clock was set."""
JUMP = 100_000
"""Numbers do not get lost by so many: the sender began anew at a higher one."""


class Sequence(Generic[T]):
    """The numbers of one performer. :meth:`feed` gives back what is to be taken in, in order."""

    def __init__(self) -> None:
        self.last: int | None = None
        self.received = self.lost = self.late = self.duplicates = self.restarts = 0
        self._seen: set[int] = set()
        self._order: deque[int] = deque()
        self._back: list[tuple[int, T, bool]] = []
        self._forward_at = 0.0

    def feed(self, number: int, item: T, arrival: float, delay: float | None, counted: bool = True) -> list[tuple[T, Verdict]]:
        """A packet with ``number`` came in.

        Parameters
        ----------
        number : int
        item : anything
            Comes back once it is to be taken in: now, later, or never (a duplicate).
        arrival : float
            Our time, seconds.
        delay : float or None
            How much later than the fastest the packet came, by the sender's clock; None where it has none.
        counted : bool
            Whether numbers count frames, so that a gap is a loss.
        """
        if self.last is None:
            return [self._new(number, item, arrival, "new")]
        ahead = (number - self.last) % WRAP
        if ahead == 0:
            self.duplicates += 1
            return []
        if ahead < WRAP // 2:
            self._back.clear()
            if (counted and ahead > JUMP) or (delay is not None and delay < -EARLY_SECONDS):
                self.restarts += 1
                return [self._new(number, item, arrival, "restart")]
            if counted:
                self.lost += ahead - 1
            return [self._new(number, item, arrival, "new")]
        return self._backward(number, item, arrival, delay, WRAP - ahead, counted)

    def restart(self) -> None:
        """Forget the run: the next packet begins a new one."""
        self.last = None
        self._seen.clear()
        self._order.clear()
        self._back.clear()

    def _new(self, number: int, item: T, arrival: float, verdict: Verdict) -> tuple[T, Verdict]:
        if verdict == "restart":
            self.restart()
        self.last, self._forward_at = number, arrival
        self._remember(number)
        self.received += 1
        return item, verdict

    def _remember(self, number: int) -> None:
        self._seen.add(number)
        self._order.append(number)
        if len(self._order) > REMEMBERED:
            self._seen.discard(self._order.popleft())

    def _backward(self, number: int, item: T, arrival: float, delay: float | None, behind: int, counted: bool) -> list[tuple[T, Verdict]]:
        late = -EARLY_SECONDS < delay < LATE_SECONDS if delay is not None else behind <= 64
        fresh = late and number not in self._seen
        run = self._back
        if run and number == run[-1][0]:
            self.duplicates += 1
            return []
        if run and not 0 < (number - run[-1][0]) % WRAP < WRAP // 2:
            run.clear()
        run.append((number, item, fresh))
        del run[:-REMEMBERED]
        if len(run) >= 3 and (not late or arrival - self._forward_at > QUIET_SECONDS):
            return self._begin_anew(arrival, counted)
        if fresh:
            self._remember(number)
            self.received += 1
            self.late += 1
            if counted and self.lost > 0:
                self.lost -= 1
            return [(item, "late")]
        if late:
            self.duplicates += 1
        return []

    def _begin_anew(self, arrival: float, counted: bool) -> list[tuple[T, Verdict]]:
        waiting = [(n, i) for n, i, taken in self._back if not taken]
        self.restarts += 1
        self.restart()
        out: list[tuple[T, Verdict]] = []
        for n, i in waiting:
            if counted and self.last is not None:
                self.lost += (n - self.last) % WRAP - 1
            out.append(self._new(n, i, arrival, "new" if out else "restart"))
        return out


def ticks(time: float) -> int:
    """A sender's time as a number, for those who send no other."""
    return round(time * 10_000.0) % WRAP
