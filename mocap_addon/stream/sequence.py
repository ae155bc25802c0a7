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
        self._held: list[tuple[int, T, float]] = []
        self._old: tuple[int, float] | None = None  # the last number of the run before, and when it ended
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
            if (counted and ahead > JUMP) or (delay is not None and delay < -EARLY_SECONDS):
                return self._foreign(number, item, arrival, counted)
            self._back.clear()
            if counted:
                self.lost += ahead - 1
            return [self._new(number, item, arrival, "new")]
        if -EARLY_SECONDS < delay < LATE_SECONDS if delay is not None else WRAP - ahead <= 64:
            return self._backward(number, item, arrival, counted)
        return self._foreign(number, item, arrival, counted)

    def restart(self) -> None:
        """Forget the run: the next packet begins a new one."""
        self.last = None
        self._seen.clear()
        self._order.clear()
        self._back.clear()
        self._held.clear()

    def _new(self, number: int, item: T, arrival: float, verdict: Verdict) -> tuple[T, Verdict]:
        self.last, self._forward_at = number, arrival
        self._remember(number)
        self.received += 1
        return item, verdict

    def _remember(self, number: int) -> None:
        self._seen.add(number)
        self._order.append(number)
        if len(self._order) > REMEMBERED:
            self._seen.discard(self._order.popleft())

    def _backward(self, number: int, item: T, arrival: float, counted: bool) -> list[tuple[T, Verdict]]:
        """A number that may be a late one of this run, or, where nothing else comes, of a short loop that has begun anew."""
        fresh = number not in self._seen
        run = self._back
        if run and number == run[-1][0]:
            self.duplicates += 1
            return []
        if run and not 0 < (number - run[-1][0]) % WRAP < WRAP // 2:
            run.clear()
        run.append((number, item, fresh))
        del run[:-REMEMBERED]
        if len(run) >= 3 and arrival - self._forward_at > QUIET_SECONDS:
            again = [(n, i) for n, i, taken in run[:-1] if not taken]
            self.duplicates -= len(again)  # what they were taken for
            return self._begin_anew([*again, (number, item)], arrival, counted)
        if not fresh:
            self.duplicates += 1
            return []
        self._remember(number)
        self.received += 1
        self.late += 1
        if counted and self.lost > 0:
            self.lost -= 1
        return [(item, "late")]

    def _foreign(self, number: int, item: T, arrival: float, counted: bool) -> list[tuple[T, Verdict]]:
        """A packet that cannot be of this run: held back until three of them say that the sender began anew."""
        if self._old is not None and arrival - self._old[1] < LATE_SECONDS and (number - self._old[0] + REMEMBERED) % WRAP < 2 * REMEMBERED:
            self.late += 1  # a straggler of the run before
            return []
        held = self._held
        if held and arrival - held[-1][2] > 2.0 * QUIET_SECONDS:
            held.clear()
        if any(n == number for n, _, _ in held):
            self.duplicates += 1
            return []
        held.append((number, item, arrival))
        if len(held) < 3:
            return []
        first = held[0][0]
        held.sort(key=lambda h: (h[0] - first + WRAP // 2) % WRAP)
        return self._begin_anew([(n, i) for n, i, _ in held], arrival, counted)

    def _begin_anew(self, waiting: list[tuple[int, T]], arrival: float, counted: bool) -> list[tuple[T, Verdict]]:
        last = self.last
        self.restarts += 1
        self.restart()
        self._old = None if last is None else (last, arrival)
        out: list[tuple[T, Verdict]] = []
        for n, i in waiting:
            if counted and self.last is not None:
                self.lost += min(JUMP, (n - self.last) % WRAP - 1)
            out.append(self._new(n, i, arrival, "new"))
        return [(i, "restart" if k == 0 else "new") for k, (i, _) in enumerate(out)]


def ticks(time: float) -> int:
    """A sender's time as a number, for those who send no other."""
    return round(time * 10_000.0) % WRAP
