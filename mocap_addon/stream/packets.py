# SPDX-License-Identifier: GPL-3.0-or-later
"""Captured bytes -> what was sent: link layers, IP with its fragments, UDP datagrams, TCP streams put in order.

Nothing here raises for what was captured; what cannot be read is counted. All memories are bounded.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass, field
from typing import NamedTuple

Address = tuple[str, int]

NULL, ETHERNET, RAW, LOOP, SLL, IPV4, IPV6, SLL2 = 0, 1, 101, 108, 113, 228, 229, 276
_RAW_TOO = frozenset({RAW, 12, 14, IPV4, IPV6})
_VLANS = frozenset({0x8100, 0x88A8, 0x9100, 0x9200})
_TCP, _UDP, _FRAGMENT = 6, 17, 44
_EXTENSIONS = frozenset({0, 43, 60, 51, 135})
_MOST_FRAGMENTED, _FRAGMENT_SECONDS = 64, 30
_GOES_ON, _BEGINS, _HOLE = 0, 1, 2
_MOST_WAITING, _WAIT_NANOSECONDS = 256, 2_000_000_000

_IP4 = struct.Struct(">BBHHHBBH4s4s")
_UDP_HEAD = struct.Struct(">HHH")
_TCP_HEAD = struct.Struct(">HHIIBB")


class Packet(NamedTuple):
    """A datagram, or the next bytes of a TCP stream.

    ``time`` is nanoseconds since 1970; ``start``: a connection begins here; ``hole``: it goes on after bytes that were not captured.
    """

    time: int
    transport: str
    source: Address
    target: Address
    data: bytes
    start: bool = False
    hole: bool = False


@dataclass
class PacketCounts:
    """What else was in a capture."""

    packets: int = 0
    other: int = 0  # no UDP or TCP
    cut: int = 0  # captured only in part
    unfinished: int = 0  # fragments whose rest never came
    lost: int = 0  # holes in TCP streams
    link_types: set[int] = field(default_factory=set[int])


class Dissector:
    """Captured packets of one file, in order, to :class:`Packet`."""

    def __init__(self) -> None:
        self.counts = PacketCounts()
        self._names: dict[bytes, str] = {}
        self._fragments: dict[tuple[bytes, bytes, int, int], _Fragments] = {}
        self._streams: dict[tuple[Address, Address], _Stream] = {}

    def packets(self, time: int, link: int, data: bytes) -> list[Packet]:
        """What this captured packet completes: usually one, none for what is no UDP or TCP."""
        self.counts.packets += 1
        try:
            if link in _RAW_TOO:
                return self._ip(time, data, 0)
            at = _link_size(link, data)
            if at >= 0:
                return self._ip(time, data, at)
            self.counts.link_types.add(link)
        except (struct.error, IndexError):
            self.counts.cut += 1
            return []
        self.counts.other += 1
        return []

    def flush(self) -> list[Packet]:
        """The end of the capture: what still waits behind holes in TCP streams."""
        out: list[Packet] = []
        for ends, stream in self._streams.items():
            chunks: list[tuple[int, bytes, int]] = []
            self.counts.lost += stream.settle(0, chunks, ended=True)
            out += [Packet(t, "tcp", *ends, chunk, mark == _BEGINS, mark == _HOLE) for t, chunk, mark in chunks]
        return out

    def _ip(self, time: int, data: bytes, at: int) -> list[Packet]:
        version = data[at] >> 4
        if version == 4:
            first, _, total, number, part, _, protocol, _, source, target = _IP4.unpack_from(data, at)
            start = at + 4 * (first & 15)
            end = at + total if total else len(data)  # 0: cut into packets by the network card only later
            if part & 0x3FFF:
                key = (source, target, protocol, number)
                return self._fragment(time, key, 8 * (part & 0x1FFF), bool(part & 0x2000), data[start:end], end > len(data))
        elif version == 6:
            length, protocol = struct.unpack_from(">HB", data, at + 4)
            source, target = data[at + 8 : at + 24], data[at + 24 : at + 40]
            start, end = at + 40, at + 40 + length if length else len(data)
            while protocol in _EXTENSIONS:
                step = 4 * data[start + 1] + 8 if protocol == 51 else 8 * data[start + 1] + 8
                protocol, start = data[start], start + step
            if protocol == _FRAGMENT:
                protocol, _, part, number = struct.unpack_from(">BBHI", data, start)
                if part & 0xFFF9:
                    key = (source, target, protocol, number)
                    return self._fragment(time, key, part & 0xFFF8, bool(part & 1), data[start + 8 : end], end > len(data))
                start += 8
        else:
            self.counts.other += 1
            return []
        return self._transport(time, protocol, source, target, data, start, end)

    def _transport(self, time: int, protocol: int, source: bytes, target: bytes, data: bytes, start: int, end: int) -> list[Packet]:
        if protocol == _UDP:
            from_port, to_port, length = _UDP_HEAD.unpack_from(data, start)
            if length:
                end = min(end, start + length)
            if end > len(data) or (length and end < start + length):
                self.counts.cut += 1
                return []
            ends = (self._name(source), from_port), (self._name(target), to_port)
            return [Packet(time, "udp", *ends, data[start + 8 : end])]
        if protocol == _TCP:
            from_port, to_port, number, _, offset, flags = _TCP_HEAD.unpack_from(data, start)
            ends = (self._name(source), from_port), (self._name(target), to_port)
            if end > len(data):
                self.counts.cut += 1
            stream = self._streams.get(ends)
            if stream is None:
                if len(self._streams) >= 1024:
                    self._streams.pop(next(iter(self._streams)))
                stream = self._streams[ends] = _Stream()
            chunks, lost = stream.add(time, number, flags, data[start + 4 * (offset >> 4) : end])
            self.counts.lost += lost
            return [Packet(t, "tcp", *ends, chunk, mark == _BEGINS, mark == _HOLE) for t, chunk, mark in chunks]
        self.counts.other += 1
        return []

    def _fragment(self, time: int, key: tuple[bytes, bytes, int, int], at: int, more: bool, data: bytes, cut: bool) -> list[Packet]:
        if cut:
            self.counts.cut += 1
            return []
        held = self._fragments.get(key)
        if held is None or time - held.time > _FRAGMENT_SECONDS * 1_000_000_000:
            if held is None and len(self._fragments) >= _MOST_FRAGMENTED:
                self._fragments.pop(next(iter(self._fragments)))
                self.counts.unfinished += 1
            held = self._fragments[key] = _Fragments(time)
        whole = held.add(at, more, data)
        if whole is None:
            return []
        del self._fragments[key]
        source, target, protocol, _ = key
        # Stamped with the first fragment: that is when the datagram was sent.
        return self._transport(held.time, protocol, source, target, whole, 0, len(whole))

    def _name(self, address: bytes) -> str:
        name = self._names.get(address)
        if name is None:
            if len(self._names) > 4096:
                self._names.clear()
            if len(address) == 16 and address[:12] == b"\0" * 10 + b"\xff\xff":
                name = socket.inet_ntop(socket.AF_INET, address[12:])
            else:
                name = socket.inet_ntop(socket.AF_INET if len(address) == 4 else socket.AF_INET6, address)
            self._names[address] = name
        return name


def _link_size(link: int, data: bytes) -> int:
    """Where the IP packet begins behind a link layer's header; -1 where there is none."""
    if link == ETHERNET:
        at = 12
        kind = (data[at] << 8) | data[at + 1]
        while kind in _VLANS:
            at += 4
            kind = (data[at] << 8) | data[at + 1]
        return at + 2 if kind in (0x0800, 0x86DD) else -1
    if link in (NULL, LOOP):
        family = max(data[0], data[3]) if len(data) > 4 else 0  # written in the byte order of who captured
        return 4 if family in (2, 10, 23, 24, 28, 30) else -1
    if link == SLL:
        return 16 if data[14:16] in (b"\x08\0", b"\x86\xdd") else -1
    if link == SLL2:
        return 20 if data[0:2] in (b"\x08\0", b"\x86\xdd") else -1
    return -1


class _Fragments:
    """The parts of one datagram."""

    def __init__(self, time: int) -> None:
        self.time = time
        self.parts: dict[int, bytes] = {}
        self.size = -1

    def add(self, at: int, more: bool, data: bytes) -> bytes | None:
        if len(self.parts) < 128:
            self.parts.setdefault(at, data)
        if not more:
            self.size = at + len(data)
        if self.size < 0:
            return None
        out = b""
        for start in sorted(self.parts):
            if start > len(out):
                return None
            out += self.parts[start][len(out) - start :]
        return out[: self.size] if len(out) >= self.size else None


class _Stream:
    """One direction of a TCP connection."""

    def __init__(self) -> None:
        self.next = -1
        self.mark = _BEGINS
        self.waiting: dict[int, tuple[int, bytes]] = {}

    def add(self, time: int, number: int, flags: int, data: bytes) -> tuple[list[tuple[int, bytes, int]], int]:
        """The chunks that are in order now, each with its time and a mark (begins, after a hole); and how many holes were given up."""
        if flags & 0x02:  # SYN
            fresh = self.next < 0 or number + 1 & 0xFFFFFFFF != self.next
            self.next = number + 1 & 0xFFFFFFFF
            if fresh:
                self.mark = _BEGINS
                self.waiting.clear()
            return [], 0
        out: list[tuple[int, bytes, int]] = []
        if data:
            if self.next < 0:
                self.next = number  # captured from the middle on
            self._take(time, number, data, out)
        return out, self.settle(time, out, ended=bool(flags & 0x01))

    def settle(self, time: int, out: list[tuple[int, bytes, int]], *, ended: bool) -> int:
        """Add to ``out`` what waits and is in order now; at the end, or after two seconds, also what comes after a hole. How many holes."""
        lost = 0
        while self.waiting:
            ready = [n for n in self.waiting if (self.next - n) & 0xFFFFFFFF < 0x80000000]
            for n in sorted(ready, key=lambda n: (n - self.next + 0x80000000) & 0xFFFFFFFF):
                self._take(*self._late(n), out)
            if ready or not self.waiting:
                continue
            oldest = min(t for t, _ in self.waiting.values())
            if len(self.waiting) < _MOST_WAITING and time - oldest < _WAIT_NANOSECONDS and not ended:
                break
            self.next = min(self.waiting, key=lambda n: (n - self.next) & 0xFFFFFFFF)
            self.mark, lost = _HOLE, lost + 1
        return lost

    def _late(self, number: int) -> tuple[int, int, bytes]:
        time, data = self.waiting.pop(number)
        return time, number, data

    def _take(self, time: int, number: int, data: bytes, out: list[tuple[int, bytes, int]]) -> None:
        behind = (self.next - number) & 0xFFFFFFFF
        if behind >= 0x80000000:  # before its time
            self.waiting[number] = max(self.waiting.get(number, (time, b"")), (time, data), key=lambda held: len(held[1]))
            return
        fresh = data[behind:]
        if fresh:
            self.next = (self.next + len(fresh)) & 0xFFFFFFFF
            out.append((time, fresh, self.mark))
            self.mark = _GOES_ON
