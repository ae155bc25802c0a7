# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes and captures as live streams: what to send when, and sending it on time."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..motion.take import Take
from .frame import Decoder, Frame, Sender, frames_of
from .pcap import CaptureReader
from .supervisor import StreamError

Moment = tuple[float, list[bytes]]
"""Seconds since the start, and the datagrams to send then."""


def moments(takes: Sequence[Take], decoder: Decoder, *, sender: Sender | None = None, shift: float = 0.0) -> Iterator[Moment]:
    """The datagrams of takes that begin together, at the samples of the first; the others are held before and after their own.

    Parameters
    ----------
    takes : sequence of Take
        On skeletons with the protocol's joint names (``decoder.standard()``) whose rest is the T-pose.
    decoder : Decoder
    sender : Sender, optional
        Its frame number goes on where it stands; for loops.
    shift : float
        Seconds that the sender's clock has run already.
    """
    if not takes or not takes[0].frames:
        return
    sender = sender or Sender()
    lead = takes[0]
    at = lead.times - lead.times[0]
    if lead.frames > 1:
        sender.rate = float(lead.rate) if lead.rate is not None else (lead.frames - 1) / lead.duration
    if (coded := lead.time_code) is not None:
        sender.options.setdefault("timecode_rate", str(coded.rate))
    others = [take.sampled(take.times[0] + at) if take.frames != lead.frames or not _alike(take, at) else take for take in takes[1:]]
    names = _names(takes)
    for take, name in zip(takes, names, strict=True):
        sender.skeletons.setdefault(name, take.skeleton)
    first = sender.number
    for i in range(lead.frames):
        frames: list[Frame] = []
        for take, name in zip((lead, *others), names, strict=True):
            frames += frames_of(take, i, source=name)
        sender.number, sender.time = first + i, shift + float(at[i])
        yield float(at[i]), decoder.encode(frames, sender)
    sender.number = first + lead.frames


def _alike(take: Take, at: NDArray[np.float64]) -> bool:
    return bool(np.allclose(take.times - take.times[0], at, rtol=0.0, atol=1e-9))


def _names(takes: Sequence[Take]) -> list[str]:
    """A name for each performer, each once."""
    out: list[str] = []
    for take in takes:
        name = base = take.performer or take.name or "Performer"
        n = 1
        while name in out:
            n += 1
            name = f"{base} {n}"
        out.append(name)
    return out


def recorded(path: str | Path, port: int | None = None) -> Iterator[Moment]:
    """A capture's own UDP datagrams (to ``port``, or all) as they arrived."""
    with CaptureReader(path) as reader:
        start: int | None = None
        for packet in reader.packets():
            if packet.transport == "udp" and (port is None or packet.target[1] == port):
                start = packet.time if start is None else start
                yield max(0.0, (packet.time - start) * 1e-9), [packet.data]


class Outlet:
    """Where datagrams go: UDP, or TCP as client or server.

    Parameters
    ----------
    host, port : str, int
    transport : "udp", "tcp" (connect) or "tcp-server" (listen at that address; who connects gets everything)

    Raises
    ------
    StreamError
        The address cannot be used.
    """

    def __init__(self, host: str, port: int, transport: str = "udp") -> None:
        self.transport = transport
        self.sent = self.failed = 0
        self._clients: list[socket.socket] = []
        kind = socket.SOCK_DGRAM if transport == "udp" else socket.SOCK_STREAM
        try:
            family, _, _, _, self._address = socket.getaddrinfo(host, port, type=kind)[0]
            self._socket = socket.socket(family, kind)
            try:
                if transport == "tcp-server":
                    if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
                        self._socket.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE"), 1)  # noqa: B009
                    else:
                        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    self._socket.bind(self._address)
                    self._socket.listen(8)
                    self._socket.setblocking(False)
                elif transport == "tcp":
                    self._socket.settimeout(5.0)
                    self._socket.connect(self._address)
                elif str(self._address[0]).startswith(("224.", "239.")):
                    self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, struct.pack("b", 1))
            except OSError:
                self._socket.close()
                raise
        except OSError as error:
            raise StreamError(f"Nothing can be sent to {host}:{port} ({error.strerror or error}); check address and port.") from None

    @property
    def port(self) -> int:
        """The port that is listened on (tcp-server)."""
        return int(self._socket.getsockname()[1])

    @property
    def clients(self) -> int:
        """Who is connected (tcp-server)."""
        self._accept()
        return len(self._clients)

    def send(self, datagrams: Iterable[bytes]) -> None:
        """Send; what the network refuses is counted, a receiver that is not there yet is no error."""
        if self.transport == "tcp-server":
            self._accept()
        for data in datagrams:
            try:
                if self.transport == "udp":
                    self._socket.sendto(data, self._address)
                elif self.transport == "tcp":
                    self._socket.sendall(data)
                else:
                    self._to_clients(data)
                self.sent += 1
            except OSError as error:
                self.failed += 1
                if self.transport == "tcp":
                    raise StreamError(f"The receiver closed the connection ({error.strerror or error}); start it again.") from None

    def _accept(self) -> None:
        while self.transport == "tcp-server":
            try:
                client, _ = self._socket.accept()
            except OSError:
                return
            client.settimeout(2.0)
            self._clients.append(client)

    def _to_clients(self, data: bytes) -> None:
        for client in list(self._clients):
            try:
                client.sendall(data)
            except OSError:
                client.close()
                self._clients.remove(client)

    def close(self) -> None:
        """Close; safe to call again."""
        for client in self._clients:
            client.close()
        self._clients.clear()
        self._socket.close()

    def __enter__(self) -> Outlet:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Player:
    """Sends moments when their time has come; for a timer (:meth:`tick`) or until the end (:meth:`run`).

    Parameters
    ----------
    make : callable
        Gives the moments of one round; called with the seconds that the rounds before took.
    outlet : Outlet
    speed : float
    loop : bool
    """

    def __init__(self, make: Callable[[float], Iterator[Moment]], outlet: Outlet, *, speed: float = 1.0, loop: bool = False) -> None:
        self.outlet, self.speed, self.loop = outlet, speed, loop
        self.position = 0.0
        """Seconds of the motion that were sent."""
        self.done = False
        self._make = make
        self._base = self._last = self._step = 0.0
        self._round = make(0.0)
        self._began: float | None = None
        self._next = next(self._round, None)
        self.done = self._next is None

    def tick(self, now: float | None = None) -> float | None:
        """Send what is due at monotonic ``now``; seconds until the next is, None at the end."""
        now = time.monotonic() if now is None else now
        if self._began is None:
            self._began = now
        while self._next is not None:
            due = self._began + (self._base + self._next[0]) / self.speed
            if due > now:
                return due - now
            self.outlet.send(self._next[1])
            self._step = self._next[0] - self._last if self._next[0] > self._last else self._step
            self._last, self.position = self._next[0], self._base + self._next[0]
            self._next = next(self._round, None)
            if self._next is None and self.loop:
                self._base += self._last + (self._step or 0.1)
                self._last = 0.0
                self._round = self._make(self._base)
                self._next = next(self._round, None)
        self.done = True
        return None

    def run(self, seconds: float | None = None, should_stop: Callable[[], bool] | None = None) -> None:
        """Send until the end, or for so many seconds."""
        start = time.monotonic()
        while not self.done and (should_stop is None or not should_stop()):
            wait = self.tick()
            left = float("inf") if seconds is None else start + seconds - time.monotonic()
            if wait is None or left <= 0.0:
                return
            time.sleep(min(wait, left, 0.25))
