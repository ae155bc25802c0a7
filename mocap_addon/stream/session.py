# SPDX-License-Identifier: GPL-3.0-or-later
"""A live session: the receiver, what it has captured, who moves, and recordings. What a window or a script needs of this room.

Call :meth:`LiveSession.tick` often (a timer at the display's rate): it reads on in the capture and never blocks or raises. :meth:`poll`
gives the poses to show. Nothing is lost when neither is called for a while: the receiver is a process of its own, and its file is the
stream.

::

    session = LiveSession(folder, [Source(9763), Source(39539, protocol="vmc")])
    session.start()
    ...
    session.tick()
    for key, moment in session.poll().items(): ...      # sample.Sampled
    session.record(path, preroll=2.0); ...; session.stop_recording()
    takes = session.takes_of(session.finished[-1])
    session.close()
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from ..motion.take import Take
from . import capture, sidecar
from .capture import Progress, Props
from .feed import Feed, Port, Slot
from .frame import Decoder, Kind
from .pcap import Tail
from .performers import Follower, Key, Statistics, Track
from .protocols import PROTOCOLS
from .sample import Sampled, sample
from .sidecar import Sidecar
from .supervisor import Source, StreamError, Supervisor

BACK = 0.1
"""Seconds that the pose shown is behind by default."""
_MOST_BYTES = 2 << 20
"""Read on a tick: some 20 ms of work at worst, after having been away for long."""


@dataclass(frozen=True)
class Performer:
    """Who was found: a performer, a prop or a face."""

    key: Key
    kind: Kind
    name: str
    protocol: str
    statistics: Statistics
    stale: bool


@dataclass(frozen=True)
class SourceState:
    """One source as a person sees it.

    ``state`` is of "closed", "connecting", "listening", "connected", "failed". ``rate`` counts packets a second; ``protocols`` are those
    that were recognised; ``unknown`` and ``broken`` count packets; ``drops`` those that the system lost; ``age`` is seconds since the last
    one; ``message`` a sentence where something is wrong. ``loss`` and ``latency`` are the worst of its performers.
    """

    source: Source
    port: int
    state: str
    protocols: tuple[str, ...] = ()
    packets: int = 0
    rate: float = 0.0
    unknown: int = 0
    broken: int = 0
    drops: int = 0
    loss: float | None = None
    latency: float | None = None
    age: float | None = None
    message: str | None = None


class LiveSession:
    """Sources, performers and recordings.

    Parameters
    ----------
    folder : path
        Where the capture's segments go while watching: one for each session, old segments in it are forgotten.
    sources : sequence of Source
    relays : sequence of (host, port)
    back : float
        Seconds that the pose shown lies behind; may be set at any time.
    executable, options : see :class:`Supervisor`
    decoders : sequence of Decoder
    """

    def __init__(
        self,
        folder: str | Path,
        sources: Sequence[Source],
        *,
        relays: Sequence[tuple[str, int]] = (),
        back: float = BACK,
        executable: str | None = None,
        options: Mapping[str, object] | None = None,
        decoders: Sequence[Decoder] = tuple(PROTOCOLS.values()),
        supervisor: Supervisor | None = None,
    ) -> None:
        self.back = back
        self.supervisor = supervisor or Supervisor(folder, sources, relays=relays, executable=executable, options=options)
        self.feed = Feed(decoders, keep=max(2.0, 2.0 * back))
        self.tail = Tail()
        self.recording: Path | None = None
        self.finished: list[Path] = []
        """Captures of this session that were ended, oldest first."""
        self.notes: Sidecar | None = None
        """What is kept beside the running recording; change it and call :meth:`save_notes`."""
        self.fault = ""
        self._asked: Path | None = None
        self._counts: dict[str, tuple[float, int, float]] = {}  # packets counted until when, and the rate then
        self._gaps = 0

    # -- life

    def start(self) -> None:
        """Start receiving. A :class:`StreamError` only where nothing can run at all; what is wrong with a port is in :meth:`sources`."""
        self.supervisor.start()

    def close(self) -> None:
        """End everything; a recording is finished first. Safe to call again."""
        if self.supervisor.running:
            self._take_in(self.supervisor.close())
        if self.recording is not None:
            self._finish(self.recording, "finished")
        self.tail.close()

    def __enter__(self) -> LiveSession:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def tick(self) -> None:
        """Read on: what the receiver says, and what it has captured. Never raises; a fault of ours is in ``fault``."""
        try:
            self._take_in(self.supervisor.tick())
            for packet in self.tail.read(_MOST_BYTES):
                self.feed.add(packet)
            self.supervisor.place = self.tail.place
            self.feed.silence(self.now())
        except Exception as error:  # receiving goes on whatever happens
            self.fault = f"{type(error).__name__}: {error}"

    def pump(self, seconds: float = 0.0, until: Callable[[], bool] | None = None) -> bool:
        """Tick for so many seconds, or until something holds: for scripts, and for Blender without a window. Whether it held."""
        end = time.monotonic() + seconds
        while True:
            self.tick()
            if until is not None and until():
                return True
            left = end - time.monotonic()
            if left <= 0.0:
                return until is None
            time.sleep(min(0.01, left))

    # -- what is shown

    def now(self) -> float:
        """Our time in the feed's seconds."""
        return self.feed.seconds(time.time_ns()) if self.feed.base is not None else 0.0

    def poll(self, now: float | None = None, keys: Sequence[Key] | None = None) -> dict[Key, Sampled]:
        """The pose of everybody (or of ``keys``) ``back`` seconds ago."""
        keep = max(2.0, 2.0 * self.back)
        if keep != self.feed.keep:
            self.feed.set_keep(keep)
        items: Mapping[Key, Track | Follower] = self.feed.all()
        chosen = items.values() if keys is None else [items[k] for k in keys if k in items]
        return sample(chosen, self.now() if now is None else now, self.back)

    def performers(self) -> list[Performer]:
        """Everybody who was ever heard, performers first, then props, then faces."""
        now = self.now()
        order = {"body": 0, "prop": 1, "morphs": 2, "info": 3}
        return [
            Performer(key, item.kind, item.name, key[0].partition(" ")[0], item.statistics(now), item.stale(now))
            for key, item in sorted(self.feed.all().items(), key=lambda pair: (order[pair[0][1]], pair[0][0], pair[0][2]))
        ]

    def sources(self) -> list[SourceState]:
        """Every source: what arrives, and what is wrong."""
        now = self.now()
        messages = self.supervisor.messages()
        return [self._source(i, source, messages[i], now) for i, source in enumerate(self.supervisor.sources)]

    def _source(self, number: int, source: Source, message: str | None, now: float) -> SourceState:
        told = self.supervisor.states.get(str(number), {})
        port = int(told.get("port", source.port))
        slots = [s for s in self.feed.slots.values() if s.place[2] == port]
        names = tuple(dict.fromkeys(s.decoder.name for s in slots if s.decoder is not None))
        totals = [s.totals() for s in slots]
        packets = int(told.get("packets", 0))
        figures = [t.statistics(now) for t in self.feed.tracks.values() if any(t.key[0].endswith(f" {s.name}") for s in slots)]
        losses = [f.loss for f in figures if f.loss is not None]
        latencies = [f.latency for f in figures if f.latency is not None]
        unknown = sum(t["unknown"] for t in totals)
        if message is None and packets > 20 and not names and unknown:
            message = f"Packets arrive on port {port}, but in no protocol that is known ({unknown} so far)."
        last = int(told.get("last", 0))
        return SourceState(
            source,
            port,
            str(told.get("state", "closed")),
            names,
            packets,
            self._rate(number, packets),
            unknown,
            sum(t["broken"] for t in totals),
            int(told.get("drops", 0)),
            max(losses, default=None),
            max(latencies, default=None),
            (time.time_ns() - last) * 1e-9 if last else None,
            message,
        )

    def _rate(self, number: int, packets: int) -> float:
        """Packets a second between the receiver's last reports, a second apart."""
        when = float(self.supervisor.status.get("time", 0)) * 1e-9
        before, count, rate = self._counts.get(str(number), (when, packets, 0.0))
        if when - before >= 1.0:
            rate = max(0.0, (packets - count) / (when - before))
            before, count = when, packets
        self._counts[str(number)] = (before, count, rate)
        return rate

    def messages(self) -> list[str]:
        """Sentences for the person: what the receiver had to say, newest last."""
        out = list(self.supervisor.notes)
        if self.supervisor.restarts:
            gap = sum(b - a for a, b in self.supervisor.gaps)
            out.append(f"The receiver ended unexpectedly and was started again; about {gap:.1f} s of motion are missing.")
        if self.fault:
            out.append(f"A packet could not be worked on ({self.fault}); receiving goes on.")
        return out

    # -- recordings

    def record(self, path: str | Path, *, preroll: float = 0.0, notes: Sidecar | None = None) -> None:
        """Record everything to ``path`` (``.pcap``), from ``preroll`` seconds ago on. ``recording`` is set once it runs (see :meth:`pump`).

        Raises
        ------
        StreamError
            A recording runs already, nothing receives, or the file exists.
        FileError
            The folder cannot be written.
        """
        path = Path(path)
        if self.recording is not None or self._asked is not None:
            raise StreamError("A recording is running already; stop it first.")
        if not self.supervisor.running:
            raise StreamError("Nothing is received yet; start the stream first.")
        if path.exists():
            raise StreamError(f"There is a recording called {path.name} already; it is never overwritten, choose another name.")
        self.notes = replace(notes or Sidecar(take=path.stem), state="recording", start=time.time() - preroll, end=None)
        with contextlib.suppress(FileExistsError):
            path.parent.mkdir(parents=True, exist_ok=True)
        self._asked = path
        self._gaps = len(self.supervisor.gaps)
        try:
            self._save(path)
        except BaseException:
            self._asked = None
            raise
        self.supervisor.record(path.absolute(), preroll)

    def stop_recording(self, timeout: float = 5.0) -> Path | None:
        """End the recording and wait (at most ``timeout`` seconds) until its file is whole; the file, or None where there was none."""
        path = self.recording or self._asked
        if path is None:
            return None
        self.supervisor.stop()
        self.pump(timeout, until=lambda: self.recording is None and self._asked is None)
        if self.recording is not None:  # it died in between: what it wrote is there, and the next one shall not go on with it
            self.supervisor.recording = ""
            self.supervisor.stop()
            self._finish(self.recording, "finished")
        return path if path in self.finished else None

    def save_notes(self) -> None:
        """Write the sidecar of the running recording again, after it was changed."""
        if self.notes is not None and self.recording is not None:
            self._save(self.recording)

    def takes_of(
        self, path: str | Path, *, rate: Fraction | None = None, props: Props = "apart", progress: Progress | None = None
    ) -> list[Take]:
        """The takes of a recording; see :func:`capture.takes`."""
        return capture.takes(capture.load(path, decoders=tuple(self.feed.decoders.values()), progress=progress), rate=rate, props=props)

    def _save(self, path: Path) -> None:
        assert self.notes is not None
        self.notes.gaps = [[a, b] for a, b in self.supervisor.gaps[self._gaps :]]
        self.notes.ports = self._ports()
        sidecar.save(path, self.notes)

    def _ports(self) -> dict[str, dict[str, Any]]:
        """What has to be known to read the capture again: protocols that were set or recognised, and decoders' options."""
        out: dict[str, dict[str, Any]] = {}
        for port, source in zip(self.supervisor.ports, self.supervisor.sources, strict=True):
            slots: list[Slot] = [s for s in self.feed.slots.values() if s.place[2] == port and s.decoder is not None]
            names = {s.decoder.name for s in slots if s.decoder is not None}
            protocol = source.protocol or (names.pop() if len(names) == 1 else None)
            out[str(port)] = {"protocol": protocol, "options": dict(source.options)}
        return out

    def _finish(self, path: Path, state: sidecar.State) -> None:
        self.recording = self._asked = None
        self.finished.append(path)
        if self.notes is not None:
            self.notes.state, self.notes.end = state, time.time()
            try:
                self._save(path)
            except Exception as error:
                self.supervisor.notes.append(str(error))

    def _take_in(self, events: Sequence[Mapping[str, Any]]) -> None:
        for event in events:
            kind = event.get("event")
            if kind == "file":
                self.tail.follow(str(event["path"]), int(event["offset"]), str(event["previous"]), int(event["previous_size"]))
            elif kind == "source":
                number, port = int(event["id"]), int(event["port"])
                source = self.supervisor.sources[number]
                self.feed.ports[port] = Port(source.protocol, source.options)
            elif kind == "recording":
                if not event.get("continued"):
                    self.recording, self._asked = self._asked or Path(str(event["path"])), None
                elif self.recording is not None and self.notes is not None:
                    with contextlib.suppress(Exception):
                        self._save(self.recording)
            elif kind == "recorded" and self.recording is not None:
                self._finish(self.recording, "finished")
            elif kind == "refused" and event.get("do") == "record" and self._asked is not None:
                sidecar.beside(self._asked).unlink(missing_ok=True)
                self._asked = self.notes = None


def recover(folder: str | Path) -> list[Path]:
    """Captures in ``folder`` whose recording was cut short by a crash; marked as recovered. They are read like any other."""
    found = sidecar.unfinished(folder)
    for path in found:
        said = sidecar.load(path)
        if said is not None:
            said.state = "recovered"
            sidecar.save(path, said)
    return found
