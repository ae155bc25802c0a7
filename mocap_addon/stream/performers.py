# SPDX-License-Identifier: GPL-3.0-or-later
"""One performer, prop or face of one sender: its frames in order of the sender's time, and what is known of how they arrive."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass

from ..motion.skeleton import Skeleton
from .clock import Clock, TimeCheck
from .frame import Decoder, Frame, Kind, State
from .sequence import Sequence, Verdict, ticks

Key = tuple[str, Kind, str]
"""Sender (``protocol host:port``), kind, and the id that the sender gave."""

MOST_ENTRIES = 1024
STALE_SECONDS = 0.5
"""Nothing new for so long: what is shown is held, and marked."""
_WINDOW = 10.0


class Datagram:
    """A packet whose body is decoded when somebody asks for it, once."""

    __slots__ = ("_frames", "data", "decoder", "provisional", "state")

    def __init__(
        self, data: bytes, decoder: Decoder, state: State, frames: list[Frame] | None = None, *, provisional: bool = False
    ) -> None:
        self.data, self.decoder, self.state, self._frames = data, decoder, state, frames
        self.provisional = provisional
        """More of the same moment may still come, and takes its place."""

    def frames(self) -> list[Frame]:
        """What the body says; empty where it is broken."""
        if self._frames is None:
            self._frames = self.decoder.decode(self.data, self.state)
        return self._frames

    @property
    def waits(self) -> bool:
        """Whether the body was not decoded yet."""
        return self._frames is None

    def give(self, frames: list[Frame]) -> None:
        """The body, decoded with others at once."""
        self._frames = frames

    def frame(self, kind: Kind, source: str) -> Frame | None:
        """The frame of one performer or prop in it."""
        for frame in self.frames():
            if frame.kind == kind and frame.source == source:
                return frame
        return None


def skeleton_of(datagram: Datagram, frame: Frame) -> Skeleton | None:
    """A performer's T-pose: as the decoder knows it; of average size where the sender tells nothing but names that the protocol has."""
    sent = datagram.decoder.skeleton(frame.source, datagram.state)
    if sent is not None or not frame.joints:
        return sent
    average = datagram.decoder.standard(frame.joints)
    return average if set(frame.joints) <= set(average.names) else None


def decode_together(datagrams: list[Datagram]) -> None:
    """Decode bodies that are going to be asked for, those of one sender at once."""
    groups: dict[int, dict[int, Datagram]] = {}
    for datagram in datagrams:
        if datagram.waits and datagram.decoder.stands_alone:
            groups.setdefault(id(datagram.state), {})[id(datagram)] = datagram
    for members in groups.values():
        found = list(members.values())
        if len(found) > 1:
            like = found[0]
            for datagram, frames in zip(found, like.decoder.decode_all([d.data for d in found], like.state), strict=True):
                datagram.give(frames)


class Entry:
    """A moment: ``time`` on the track's axis, arrival, and the datagram it came in."""

    __slots__ = ("arrival", "cache", "datagram", "number", "run", "source_time", "time")

    def __init__(self, time: float, source_time: float | None, arrival: float, number: int | None, datagram: Datagram) -> None:
        self.time, self.source_time, self.arrival, self.number, self.datagram = time, source_time, arrival, number, datagram
        self.run = 0
        """Counts the sender's restarts."""
        self.cache: dict[str, object] = {}


@dataclass(frozen=True)
class Statistics:
    """How frames arrive. Seconds, frames a second; ``loss`` is a share of 0..1 of the last 10 s where frames are numbered, else None."""

    rate: float = 0.0
    interval: float | None = None
    loss: float | None = None
    latency: float | None = None  # the median packet's delay beyond the fastest
    jitter: float | None = None  # that of the slowest of twenty
    age: float = float("inf")
    received: int = 0
    lost: int = 0
    late: int = 0
    duplicates: int = 0
    restarts: int = 0
    clock: str = "sender"


class Track:
    """Frames of one performer or prop, bounded.

    The axis of ``entries`` is the sender's time, shifted at restarts so that it goes on, or our own where the sender has no usable one.
    :meth:`axis` turns our time into it.
    """

    def __init__(self, key: Key, keep: float = 2.0, most: int = MOST_ENTRIES) -> None:
        self.key = key
        self.kind: Kind = key[1]
        self.source = key[2]
        self.name = key[2]
        self.keep, self.most = keep, most
        self.entries: list[Entry] = []
        self.times: list[float] = []
        self.sequence: Sequence[Entry] = Sequence()
        self.clock, self.check = Clock(), TimeCheck()
        self.by_source = True
        self.arrival_only = False
        self.last_arrival = float("-inf")
        self.last_heard = float("-inf")
        self.numbers_count = True
        self.skeleton: Skeleton | None = None
        self.skeleton_of: object = None
        self._shift = 0.0
        self._stuck = 0
        self._history: deque[tuple[float, int, int]] = deque()  # arrival, frames received and lost until then
        self._delays: deque[float] = deque(maxlen=200)
        self._intervals: deque[float] = deque(maxlen=200)

    def add(self, number: int | None, time: float | None, arrival: float, datagram: Datagram) -> list[Entry]:
        """A frame came in; what of it, and of what was held back before, is new."""
        self.last_heard = max(self.last_heard, arrival)
        if self._completes(number, time):
            self.entries[-1].datagram = datagram
            self.entries[-1].cache.clear()
            return []
        good = self.check.add(time, arrival) and not self.arrival_only
        if good != self.by_source:
            self._change_axis(by_source=good)
            self.arrival_only = self.most > MOST_ENTRIES and not good  # a file has one axis
        source = time if good else None
        entry = Entry(0.0, source, arrival, number, datagram)
        delay = None if source is None else arrival - source - self._shift - self.clock.offset(source + self._shift)
        if self.numbers_count and number is not None:
            if self.kind == "prop" and self.sequence.last == number and self._repeated(datagram):
                return self._unnumbered(entry)
            if self.sequence.last == number and not self._repeated(datagram):
                self._stuck += 1
                if self.kind != "body" or self._stuck > 8:
                    self.numbers_count = False  # a number that stands still counts nothing
                    self.sequence.restart()
            else:
                self._stuck = 0
        if self.numbers_count and number is not None:
            taken = self.sequence.feed(number, entry, arrival, delay)
        elif source is not None and not (self.kind == "prop" and self._standing(source)):
            taken = self.sequence.feed(ticks(source), entry, arrival, delay, counted=False)
        else:
            return self._unnumbered(entry)
        return [e for e, verdict in taken if self._insert(e, verdict)]

    def _completes(self, number: int | None, time: float | None) -> bool:
        """Whether a frame is the rest of the last one, which was taken before it was whole."""
        if not self.entries or not self.entries[-1].datagram.provisional:
            return False
        last = self.entries[-1]
        return number == last.number if number is not None else time is not None and time == last.source_time

    def _unnumbered(self, entry: Entry) -> list[Entry]:
        """Without number and time a frame is new when it says something new. A prop at rest stays there until the last time it was seen."""
        repeated = self._repeated(entry.datagram)
        if not repeated:
            self.sequence.received += 1
            return [entry] if self._insert(entry, "new") else []
        self.sequence.duplicates += 1
        if self._insert(entry, "late") and self.entries[-1] is entry and len(self.entries) > 2:
            before = self.entries[-3].datagram
            if before is entry.datagram or before.data == entry.datagram.data:
                del self.entries[-2], self.times[-2]
        return []

    def _repeated(self, datagram: Datagram) -> bool:
        last = self.entries[-1].datagram if self.entries else None
        return last is not None and (last is datagram or last.data == datagram.data)

    def _standing(self, source: float) -> bool:
        return bool(self.entries) and self.entries[-1].source_time == source

    def _insert(self, entry: Entry, verdict: Verdict) -> bool:
        arrival = entry.arrival
        if entry.source_time is None:
            entry.time = arrival
        else:
            if verdict == "restart":
                self._begin_run(entry)
            entry.time = entry.source_time + self._shift
            self.clock.add(entry.time, arrival)
            self._delays.append(max(0.0, arrival - entry.time - self.clock.offset(entry.time)))
        entry.run = self.sequence.restarts
        times = self.times
        if not times or entry.time > times[-1]:
            if times and verdict == "new":
                self._intervals.append(entry.time - times[-1])
            times.append(entry.time)
            self.entries.append(entry)
        else:
            at = bisect_right(times, entry.time)
            if at and times[at - 1] == entry.time:
                return False
            times.insert(at, entry.time)
            self.entries.insert(at, entry)
        self.last_arrival = max(self.last_arrival, arrival)
        self._trim()
        history = self._history
        if not history or arrival - history[-1][0] > 0.2:
            history.append((arrival, self.sequence.received, self.sequence.lost))
            while arrival - history[0][0] > _WINDOW:
                history.popleft()
        return True

    def _begin_run(self, entry: Entry) -> None:
        """The sender began anew: its time goes on where the old run was when this packet arrived."""
        assert entry.source_time is not None
        if self.entries:
            last = self.entries[-1]
            self._shift = last.time + max(1e-3, entry.arrival - last.arrival) - entry.source_time
        self.clock.restart()
        self._delays.clear()

    def _change_axis(self, *, by_source: bool) -> None:
        """The sender's time turned out to be none, or to be one: what is held gets its place on the other axis."""
        self.by_source = by_source
        self.clock.restart()
        self._delays.clear()
        self._intervals.clear()
        self.sequence.restart()
        if by_source:
            self._shift = 0.0
        for entry in self.entries:
            known = entry.source_time is not None and by_source
            entry.time = entry.source_time + self._shift if known and entry.source_time is not None else entry.arrival
        self.entries.sort(key=lambda e: e.time)
        if by_source:
            self.entries = [e for e in self.entries if e.source_time is not None]
        self.times = [e.time for e in self.entries]

    def _trim(self) -> None:
        times = self.times
        if len(times) > self.most or (len(times) > 64 and times[-1] - times[0] > 2.0 * self.keep):
            cut = max(len(times) - self.most, bisect_right(times, times[-1] - self.keep))
            del times[:cut], self.entries[:cut]

    def axis(self, now: float) -> float:
        """Our time ``now`` on the track's axis."""
        return now - self.clock.smooth(now) if self.by_source else now

    def around(self, at: float) -> tuple[Entry, Entry, float] | None:
        """The entries round the axis time ``at`` and the share of the second; held before the first and after the last."""
        times = self.times
        if not times:
            return None
        i = bisect_right(times, at) - 1
        if i < 0:
            return self.entries[0], self.entries[0], 0.0
        if i + 1 >= len(times):
            return self.entries[-1], self.entries[-1], 0.0
        return self.entries[i], self.entries[i + 1], (at - times[i]) / (times[i + 1] - times[i])

    def stale(self, now: float) -> bool:
        """Whether nothing was heard for half a second."""
        return now - self.last_heard > STALE_SECONDS

    def statistics(self, now: float) -> Statistics:
        """The figures at our time ``now``."""
        s, history = self.sequence, self._history
        rate, loss = 0.0, None
        recent = [h for h in history if now - h[0] <= 2.5]
        if len(recent) >= 2 and recent[-1][0] > recent[0][0]:
            rate = (recent[-1][1] - recent[0][1]) / (recent[-1][0] - recent[0][0])
        if self.numbers_count and s.last is not None and len(history) >= 2:
            got, gone = history[-1][1] - history[0][1], history[-1][2] - history[0][2]
            loss = max(0, gone) / max(1, got + max(0, gone))
        intervals, delays = sorted(self._intervals), sorted(self._delays)
        return Statistics(
            rate=rate,
            interval=intervals[len(intervals) // 2] if intervals else None,
            loss=loss,
            latency=delays[len(delays) // 2] if delays else None,
            jitter=delays[int(0.95 * len(delays))] if delays else None,
            age=now - self.last_heard,
            received=s.received,
            lost=s.lost,
            late=s.late,
            duplicates=s.duplicates,
            restarts=s.restarts,
            clock="sender" if self.by_source else "arrival",
        )


class Follower:
    """A prop or face that arrives in the datagrams of another track, and shares its order and its clock."""

    def __init__(self, key: Key, leader: Track) -> None:
        self.key = key
        self.kind: Kind = key[1]
        self.source = key[2]
        self.name = key[2]
        self.leader = leader
        self.skeleton: Skeleton | None = None
        self.skeleton_of: object = None
        self.last_seen = float("-inf")
        """When a decoded datagram last held it."""

    @property
    def last_heard(self) -> float:
        """Arrival of the last datagram, where the last one that was decoded held it."""
        return self.leader.last_heard

    def axis(self, now: float) -> float:
        """As :meth:`Track.axis`."""
        return self.leader.axis(now)

    def around(self, at: float) -> tuple[Entry, Entry, float] | None:
        """As :meth:`Track.around`."""
        return self.leader.around(at)

    def stale(self, now: float) -> bool:
        """As :meth:`Track.stale`; also when the performer is still there but this is not."""
        return self.leader.stale(now) or now - self.last_seen > 2.0 + STALE_SECONDS

    def statistics(self, now: float) -> Statistics:
        """As :meth:`Track.statistics`."""
        return self.leader.statistics(now)
