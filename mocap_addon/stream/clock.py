# SPDX-License-Identifier: GPL-3.0-or-later
"""A sender's clock in terms of ours.

A packet's delay is never negative, so the offset between the clocks lies below every ``arrival - source time``: of all lines below these
points the one is taken that touches their lower hull in the middle of the window (Moon, Skelly and Towsley, *Estimation and removal of
clock skew from network delay measurements*, 1999, whose linear programme has this solution). It follows drift, and jitter does not move it.
"""

from __future__ import annotations

from itertools import pairwise

WINDOW = 20.0
"""Seconds that are looked back on."""
BUCKET = 0.25
"""Of so many seconds the one packet counts that came soonest."""
MAX_DRIFT = 5e-4
"""Seconds a second that two clocks may part; more is no clock."""
SLEW = 0.01
"""Seconds a second that what is shown follows the estimate, so that motion never jerks."""

Point = tuple[float, float]


class Clock:
    """The offset ``arrival - source time`` of packets without delay. Times are seconds; memory is bounded by :data:`WINDOW`."""

    def __init__(self) -> None:
        self._points: list[Point] = []
        self._bucket = 0.0
        self._line: tuple[float, float, float] | None = None  # offset at a source time, drift
        self._began = 0.0
        self._shown: tuple[float, float] | None = None  # offset, and the arrival time it was asked for

    def restart(self) -> None:
        """The sender's clock began anew: forget what was learned of it."""
        self.__init__()

    def add(self, source: float, arrival: float) -> None:
        """A packet of the sender's time ``source`` came in at ``arrival``."""
        offset = arrival - source
        points = self._points
        if not points:
            self._began = arrival
        if points and arrival - self._bucket < BUCKET:
            if offset < points[-1][1]:
                points[-1] = (source, offset)
            elif self._line is not None and arrival - self._began > 1.0:
                return
        else:
            self._bucket = arrival
            points.append((source, offset))
            if points[0][0] < source - WINDOW:
                del points[: sum(p[0] < source - WINDOW for p in points)]
        self._line = _fit(points)

    def offset(self, source: float) -> float:
        """The estimate for the sender's time ``source``; 0 before the first packet."""
        if self._line is None:
            return 0.0
        value, at, drift = self._line
        return value + drift * (source - at)

    def smooth(self, now: float) -> float:
        """The offset to show with at our time ``now``: the estimate, without jumps of less than 50 ms after the first two seconds."""
        target = self.offset(now - self.offset(self._points[-1][0])) if self._points else 0.0
        if self._shown is None or now - self._began < 2.0 or abs(target - self._shown[0]) > 0.05 or now < self._shown[1]:
            value = target
        else:
            most = SLEW * (now - self._shown[1])
            value = self._shown[0] + min(max(target - self._shown[0], -most), most)
        self._shown = (value, now)
        return value


def _fit(points: list[Point]) -> tuple[float, float, float]:
    """A line below all points: (offset, at source time, drift)."""
    lowest = min(points, key=lambda p: p[1])
    first, last = min(p[0] for p in points), max(p[0] for p in points)
    if last - first < 3.0:
        return lowest[1], lowest[0], 0.0
    hull: list[Point] = []
    for p in sorted(points):
        while len(hull) >= 2 and _turns_up(hull[-2], hull[-1], p) <= 0.0:
            hull.pop()
        hull.append(p)
    middle = 0.5 * (first + last)
    for a, b in pairwise(hull):
        if b[0] >= middle and b[0] > a[0]:
            drift = (b[1] - a[1]) / (b[0] - a[0])
            if abs(drift) <= MAX_DRIFT:
                return b[1], b[0], drift
            break
    recent = [p for p in points if p[0] >= last - 5.0]
    lowest = min(recent, key=lambda p: p[1])
    return lowest[1], lowest[0], 0.0


def _turns_up(a: Point, b: Point, c: Point) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


class TimeCheck:
    """Whether a sender's time is a clock at all: some stand still, count frames, or move in steps of seconds (float32 of the time of
    day)."""

    def __init__(self) -> None:
        self.good = True
        self._first: tuple[float, float] | None = None
        self._last = 0.0
        self._count = self._moved = 0
        self._paced = False

    def add(self, source: float | None, arrival: float) -> bool:
        """One more packet; whether its time can be used."""
        if source is None:
            self.good = False
            self._first = None
            return False
        if self._first is None or source < self._first[0] or source - self._last > 5.0:
            self._first, self._last, self._count, self._moved = (source, arrival), source, 0, 0
            return self.good
        self._count += 1
        self._moved += source != self._last
        self._last = source
        span = arrival - self._first[1]
        if self._count >= 12 and span >= 1.0:
            pace = (source - self._first[0]) / span
            fine = self._moved >= 0.5 * self._count or (source - self._first[0]) / max(1, self._moved) < 0.012
            paced = 0.7 < pace < 1.4
            # Packets that were held up and came in a burst look like another pace, once.
            self.good = fine and (paced or (self.good and self._paced))
            self._paced = paced
            self._first = None
        return self.good
