# SPDX-License-Identifier: GPL-3.0-or-later
"""Receives live motion and writes every datagram, stamped on arrival, into a pcap file. The file is the stream.

A process of its own: ``python -I -S receiver.py``, standard library alone, this one file. It is told what to do by JSON objects on standard
input, one a line, and says what happens by JSON objects on standard output. It ends when its input closes, so it cannot outlive its parent.
One thread owns the sockets, one the disk, two the pipes. :mod:`.supervisor` starts it; where no process can be started, the same classes
run inside a timer by :meth:`Receiver.pump` and :meth:`Store.step`.

Files are nanosecond pcap with raw IP (LINKTYPE_RAW). TCP bytes become TCP segments with a handshake and running sequence numbers, so that
Wireshark follows the stream. While watching they are segments of 5 s, of which the last 60 s (or 512 MB) are kept; a recording is one file.

Commands: ``{"do": "open", "folder", "sources", "relays", ...}`` first; then ``record`` (path, preroll), ``stop``, ``relays``, ``quit``.
A source: ``{"id", "transport": "udp"|"tcp"|"tcp-server", "host", "port", "group"?, "hello"?: [{"data": hex, "to"?, "every"?}]}``;
``host`` is the address of the interface to listen on, or of the server to connect to.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import selectors
import shutil
import socket
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

Address = tuple[str, int]
Emit = Callable[[dict[str, Any]], None]

HEADER = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 101)
"""Of a nanosecond pcap file of raw IP packets."""
_RECORD = struct.Struct("<IIII")
BUFFER_SIZES = tuple(n << 20 for n in (64, 32, 16, 8, 4, 2, 1))
QUEUE_LIMIT = 256 << 20
SYN, ACK, PUSH, FIN = 0x02, 0x10, 0x08, 0x01
_SO_TIMESTAMPNS, _SO_RXQ_OVFL, _IP_PKTINFO, _IP_MULTICAST_ALL, _SO_RCVBUFFORCE = 35, 40, 8, 49, 33
LINUX = sys.platform.startswith("linux")


# -- packets


def _sum(data: bytes) -> int:
    """The Internet checksum (RFC 1071): a number's residue modulo 0xFFFF is the ones' complement sum of its 16-bit words."""
    value = int.from_bytes(data + b"\0" if len(data) & 1 else data, "big")
    return 0xFFFF - (value % 0xFFFF)


def packed(host: str) -> bytes:
    """4 or 16 bytes of an address; 4 where IPv6 only wraps an IPv4 one."""
    if ":" not in host:
        return socket.inet_pton(socket.AF_INET, host or "0.0.0.0")
    raw = socket.inet_pton(socket.AF_INET6, host.partition("%")[0])
    return raw[12:] if raw[:12] == b"\0" * 10 + b"\xff\xff" else raw


def ip_record(stamp: int, protocol: int, source: bytes, target: bytes, segment: bytes, checksum_at: int, number: int) -> bytes:
    """One pcap record: the IP packet that carried ``segment`` (its checksum, at ``checksum_at``, still zero) at ``stamp`` nanoseconds."""
    if len(source) != len(target):  # one side is a wildcard of the other family
        source, target = (s if len(s) == 16 else b"\0" * 10 + b"\xff\xff" + s for s in (source, target))
    size = len(segment)
    checksum = _sum(source + target + struct.pack(">II", protocol, size) + segment) or 0xFFFF
    segment = segment[:checksum_at] + checksum.to_bytes(2, "big") + segment[checksum_at + 2 :]
    if len(source) == 4:
        head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + size, number & 0xFFFF, 0, 64, protocol, 0) + source + target
        head = head[:10] + _sum(head).to_bytes(2, "big") + head[12:]
    else:
        head = struct.pack(">IHBB", 6 << 28, size, protocol, 64) + source + target
    length = len(head) + size
    return _RECORD.pack(stamp // 1_000_000_000, stamp % 1_000_000_000, length, length) + head + segment


def udp_record(stamp: int, source: tuple[bytes, int], target: tuple[bytes, int], data: bytes, number: int = 0) -> bytes:
    """A datagram as a pcap record."""
    segment = struct.pack(">HHHH", source[1], target[1], 8 + len(data), 0) + data
    return ip_record(stamp, 17, source[0], target[0], segment, 6, number)


class TcpStream:
    """A connection's bytes as TCP segments: a handshake, running sequence numbers in both directions, an end."""

    def __init__(self, local: tuple[bytes, int], peer: tuple[bytes, int]) -> None:
        self.ends = (local, peer)
        self.next = [1000, 2000]  # the next sequence number of local and peer
        self.count = 0
        self.first = b""
        """The first bytes that were received: names and descriptions, which a recording that begins later needs too."""
        self._shaken: list[bytes] = []

    def begin(self, stamp: int, *, by_peer: bool) -> list[bytes]:
        """The handshake."""
        a, b = (1, 0) if by_peer else (0, 1)
        self._shaken = [self._segment(stamp, a, SYN), self._segment(stamp, b, SYN | ACK), self._segment(stamp, a, ACK)]
        return self._shaken

    def again(self, stamp: int) -> list[bytes]:
        """How the connection began, for a file that begins now: handshake and first bytes under their own sequence numbers."""
        kept, self.next = self.next, [1001, 2001]
        out = [*self._shaken, *self.data(stamp, self.first)]
        self.next = kept
        return out

    def data(self, stamp: int, data: bytes, *, sent: bool = False) -> list[bytes]:
        """What was received (or ``sent``), in segments that fit into IP packets."""
        who = 0 if sent else 1
        return [self._segment(stamp, who, PUSH | ACK, data[i : i + 60000]) for i in range(0, len(data), 60000)]

    def end(self, stamp: int, *, by_peer: bool) -> list[bytes]:
        """The connection closes."""
        a, b = (1, 0) if by_peer else (0, 1)
        return [self._segment(stamp, a, FIN | ACK), self._segment(stamp, b, FIN | ACK), self._segment(stamp, a, ACK)]

    def _segment(self, stamp: int, who: int, flags: int, data: bytes = b"") -> bytes:
        mine, other = self.ends[who], self.ends[1 - who]
        acknowledged = self.next[1 - who] if flags & ACK else 0
        head = struct.pack(">HHIIBBHHH", mine[1], other[1], self.next[who], acknowledged, 0x50, flags, 0xFFFF, 0, 0)
        self.next[who] = (self.next[who] + len(data) + (1 if flags & (SYN | FIN) else 0)) & 0xFFFFFFFF
        self.count += 1
        return ip_record(stamp, 6, mine[0], other[0], head + data, 16, self.count)


# -- the disk


class Store:
    """The files. :meth:`put` and :meth:`command` are the socket thread's; :meth:`step` does the work, in the disk thread or the timer."""

    def __init__(self, config: dict[str, Any], emit: Emit) -> None:
        self.folder = str(config["folder"])
        self.ring_seconds = float(config.get("ring_seconds", 60.0))
        self.ring_bytes = int(config.get("ring_bytes", 512 << 20))
        self.segment_seconds = float(config.get("segment_seconds", 5.0))
        self.free_limit = int(config.get("free_limit", 2 << 30))
        self.emit = emit
        self.queue: deque[bytes | tuple[str, dict[str, Any]]] = deque()
        self.woken = threading.Event()
        self.put_bytes = self.done_bytes = 0  # each is written by one thread alone
        self.refused = self.failed = self.records = 0
        self.path, self.fd, self.size, self.opened = "", -1, 0, 0.0
        self.recording = ""
        self.ring: list[tuple[str, int, int]] = []  # path, bytes, nanoseconds of the last write
        self.free = 0
        self._retry = self._checked = 0.0
        self._said_failed = False
        os.makedirs(self.folder, exist_ok=True)
        known = sorted(n for n in os.listdir(self.folder) if n.startswith("live-") and n.endswith(".pcap"))
        for name in known:
            with contextlib.suppress(OSError):
                info = os.stat(os.path.join(self.folder, name))
                self.ring.append((os.path.join(self.folder, name), info.st_size, info.st_mtime_ns))
        self.serial = int(known[-1][5:-5]) + 1 if known and known[-1][5:-5].isdecimal() else 1
        take = config.get("take")
        if take:
            self._continue(str(take["path"]), int(take.get("from", len(HEADER))))
        elif config.get("record"):
            self._record({"path": config["record"], "preroll": 0.0})
        if self.fd < 0:
            self._segment()

    # the socket thread's side

    def put(self, records: list[bytes]) -> None:
        """Queue whole records; beyond 256 MB waiting they are counted as refused."""
        size = sum(map(len, records))
        if self.put_bytes - self.done_bytes > QUEUE_LIMIT:
            self.refused += len(records)
            return
        self.put_bytes += size
        self.queue.extend(records)
        if not self.woken.is_set():
            self.woken.set()

    def command(self, name: str, words: dict[str, Any]) -> None:
        """Queue a command behind the records that came before it."""
        self.queue.append((name, words))
        self.woken.set()

    # the disk's side

    def run(self, ended: threading.Event) -> None:
        """The disk thread, until ``ended`` and everything is written."""
        while not (ended.is_set() and not self.queue):
            self.woken.wait(0.25)
            self.woken.clear()
            if not ended.is_set():
                time.sleep(0.002)  # so that what comes together is written together
            self.step()
        self.close()

    def step(self) -> None:
        """Write what is queued, turn over segments, watch the free space."""
        while self.queue:
            batch: list[bytes] = []
            size = 0
            while self.queue and isinstance(self.queue[0], bytes) and size < 4 << 20:
                item = self.queue.popleft()
                assert isinstance(item, bytes)
                batch.append(item)
                size += len(item)
            if batch:
                self._write(b"".join(batch), len(batch))
                self.done_bytes += size
                continue
            command = self.queue.popleft()
            assert isinstance(command, tuple)
            name, words = command
            try:
                {"record": self._record, "stop": self._stop}[name](words)
            except OSError as error:
                detail = error.strerror or str(error)
                self.emit({"event": "refused", "do": name, "error": "disk", "detail": detail, "path": str(words.get("path", ""))})
        now = time.monotonic()
        if now - self._checked > 0.5:
            self._checked = now
            self._watch_space()
        if not self.recording and (now - self.opened > self.segment_seconds or self.size > 32 << 20) and self.size > len(HEADER):
            self._turn_over()

    def close(self) -> None:
        """Close the file, whole."""
        if self.fd >= 0:
            if self.recording:
                with contextlib.suppress(OSError):
                    os.fsync(self.fd)
            os.close(self.fd)
            self.fd = -1

    def _turn_over(self) -> None:
        try:
            self._segment()
        except OSError as error:
            self._failed(error)
        self._trim()

    def _segment(self) -> None:
        path = os.path.join(self.folder, f"live-{self.serial:06d}.pcap")
        self.serial += 1
        self._switch(path, HEADER)

    def _switch(self, path: str, start: bytes) -> None:
        """Go on in a new file. The reader is told where, and how long the old one has become."""
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o644)
        before, size = self.path, self.size
        if self.fd >= 0 and not self.recording:
            self.ring.append((self.path, self.size, time.time_ns()))
        self.close()
        self.path, self.fd, self.size, self.opened = path, fd, 0, time.monotonic()
        self._write(start, 0)
        self.emit({"event": "file", "path": path, "offset": len(start), "previous": before, "previous_size": size})

    def _write(self, data: bytes, records: int) -> None:
        """All of ``data``, or none of it: a failed write is cut off again."""
        if self.fd < 0 or (self._retry and time.monotonic() < self._retry):
            self.failed += records
            return
        whole, view = self.size, memoryview(data)
        try:
            while view:
                done = os.write(self.fd, view)
                view, self.size = view[done:], self.size + done
        except OSError as error:
            self.failed += records
            self.size = whole
            with contextlib.suppress(OSError):
                os.ftruncate(self.fd, whole)
                os.lseek(self.fd, whole, os.SEEK_SET)
            self._failed(error)
        else:
            self.records += records
            self._retry, self._said_failed = 0.0, False

    def _failed(self, error: OSError) -> None:
        self._retry = time.monotonic() + 1.0
        if not self._said_failed:
            self._said_failed = True
            self.emit({"event": "disk", "error": "write", "detail": error.strerror or str(error), "path": self.path})

    def _record(self, words: dict[str, Any]) -> None:
        if self.recording:
            self.emit({"event": "refused", "do": "record", "error": "recording", "path": self.recording})
            return
        path = str(words["path"])
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        self._watch_space(os.path.dirname(path) or ".")
        if self.free < self.free_limit:
            self.emit({"event": "refused", "do": "record", "error": "space", "free": self.free, "path": path})
            return
        if os.path.exists(path):
            self.emit({"event": "refused", "do": "record", "error": "exists", "path": path})
            return
        preroll = float(words.get("preroll", 0.0))
        start = HEADER + words.get("began", b"") + (self._earlier(time.time_ns() - int(preroll * 1e9)) if preroll > 0.0 else b"")
        self._switch(path, start)
        self.recording = path
        self.emit({"event": "recording", "path": path, "offset": len(start), "time": time.time_ns()})

    def _earlier(self, since: int) -> bytes:
        """The records of the ring from ``since`` (nanoseconds) on, as bytes."""
        out: list[bytes] = []
        for path in [p for p, _, last in self.ring if last >= since] + [self.path]:
            with contextlib.suppress(OSError), open(path, "rb") as file:
                data = file.read()
                at = len(HEADER)
                first = last = None
                while at + 16 <= len(data):
                    seconds, nanoseconds, length, _ = _RECORD.unpack_from(data, at)
                    if at + 16 + length > len(data):
                        break
                    if first is None and seconds * 1_000_000_000 + nanoseconds >= since:
                        first = at
                    at = last = at + 16 + length
                if first is not None:
                    out.append(data[first:last])
        return b"".join(out)

    def _continue(self, path: str, known: int) -> None:
        """Go on with a recording whose writer died: a record it did not finish is cut off. ``known``: so far the file is whole."""
        fd = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
        size, at = os.fstat(fd).st_size, max(known, len(HEADER))
        if size < len(HEADER):
            os.lseek(fd, 0, os.SEEK_SET)
            os.write(fd, HEADER)
            size = at = len(HEADER)
        with open(path, "rb") as file:
            file.seek(at)
            while len(head := file.read(16)) == 16:
                length = _RECORD.unpack(head)[2]
                if at + 16 + length > size:
                    break
                at += 16 + length
                file.seek(length, os.SEEK_CUR)
        os.ftruncate(fd, at)
        os.lseek(fd, at, os.SEEK_SET)
        self.path, self.fd, self.size, self.opened, self.recording = path, fd, at, time.monotonic(), path
        self.emit({"event": "file", "path": path, "offset": at, "previous": path, "previous_size": at})
        self.emit({"event": "recording", "path": path, "offset": at, "time": time.time_ns(), "continued": True})

    def _stop(self, words: dict[str, Any]) -> None:
        if not self.recording:
            self.emit({"event": "recorded", "path": "", "reason": "nothing"})
            return
        path, size = self.recording, self.size
        with contextlib.suppress(OSError):
            self._segment()
        if self.path == path:  # no room even for a new segment
            self.close()
        self.recording = ""
        self.emit({"event": "recorded", "path": path, "size": size, "reason": str(words.get("reason", "asked"))})

    def _watch_space(self, folder: str | None = None) -> None:
        with contextlib.suppress(OSError):
            self.free = shutil.disk_usage(folder or os.path.dirname(self.path) or ".").free
            if self.recording and folder is None and self.free < self.free_limit:
                self._stop({"reason": "space"})

    def _trim(self) -> None:
        """Forget segments that are too old or too many; a file that somebody still holds open is tried again later."""
        now, total = time.time_ns(), sum(size for _, size, _ in self.ring)
        kept: list[tuple[str, int, int]] = []
        for path, size, last in self.ring:
            if now - last > self.ring_seconds * 1e9 or total > self.ring_bytes:
                try:
                    os.unlink(path)
                except FileNotFoundError:
                    pass
                except OSError:
                    kept.append((path, size, last))
                    continue
                total -= size
            else:
                kept.append((path, size, last))
        self.ring = kept


# -- the sockets


def why(error: OSError) -> str:
    """A word for what went wrong with a socket."""
    number = error.errno or 0
    windows = getattr(error, "winerror", None)
    if isinstance(error, socket.gaierror):
        return "no_host"
    if number == errno.EADDRINUSE or windows == 10048:
        return "in_use"
    if number in (errno.EACCES, errno.EPERM) or windows == 10013:
        return "permission"
    if number in (errno.EADDRNOTAVAIL, errno.ENODEV, errno.ENXIO) or windows == 10049:
        return "no_interface"
    if number == errno.ECONNREFUSED or windows == 10061:
        return "refused"
    if number in (errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ETIMEDOUT) or windows in (10050, 10051, 10060, 10065):
        return "network"
    return "closed" if number in (errno.ECONNRESET, errno.EPIPE, errno.ECONNABORTED) else "other"


class Link:
    """One source: its sockets, what arrived on them, and what is wrong with it. Opened again every second while it does not work."""

    def __init__(self, spec: dict[str, Any], receiver: Receiver) -> None:
        self.spec, self.receiver = spec, receiver
        self.id = str(spec["id"])
        self.transport = str(spec.get("transport", "udp"))
        self.host, self.port = str(spec.get("host") or "127.0.0.1"), int(spec["port"])
        self.state, self.error, self.detail = "closed", "", ""
        self.packets = self.bytes = self.drops = self.last = self.buffer = 0
        self.kernel_stamps = False
        self.sockets: dict[socket.socket, TcpStream | None] = {}
        self.main: socket.socket | None = None
        self.connecting = False
        self.local: tuple[bytes, int] = (b"\x7f\0\0\1", self.port)
        self.next_try = 0.0
        self.next_hello: list[float] = []

    def open(self) -> None:
        """Open, or say why not and try again in a second."""
        self.next_try = time.monotonic() + 1.0
        try:
            family, _, _, _, address = socket.getaddrinfo(
                self.host, self.port, type=socket.SOCK_DGRAM if self.transport == "udp" else socket.SOCK_STREAM
            )[0]
            {"udp": self._open_udp, "tcp": self._connect, "tcp-server": self._listen}[self.transport](family, address)
        except OSError as error:
            self.fail(why(error), error.strerror or str(error))
        except (KeyError, OverflowError, UnicodeError) as error:
            self.fail("other", f"{error}")

    def fail(self, error: str, detail: str) -> None:
        """Close, remember why, tell it where it is news."""
        news = (self.state, self.error) != ("failed", error)
        self.close()
        self.state, self.error, self.detail = "failed", error, detail
        if news:
            self.tell()

    def tell(self) -> None:
        """The source's state as an event."""
        self.receiver.emit({"event": "source", **self.status()})

    def status(self) -> dict[str, Any]:
        """Counts and state, for the status line."""
        keys = ("id", "state", "error", "detail", "packets", "bytes", "drops", "last", "buffer", "kernel_stamps")
        return {**{k: getattr(self, k) for k in keys}, "port": self.local[1] or self.port, "connections": len(self.sockets)}

    def close(self) -> None:
        """Close every socket; safe to call again."""
        for sock in list(self.sockets):
            self._drop(sock, by_peer=False)
        if self.main is not None:
            self.receiver.forget(self.main)
            self.main = None
        self.connecting = False
        self.state = "closed"

    def _ready(self, sock: socket.socket, family: int, state: str) -> None:
        self.main, self.state, self.error, self.detail = sock, state, "", ""
        host, port = sock.getsockname()[:2]
        self.local = (packed(host), port)
        self.next_hello = [0.0] * len(self.spec.get("hello", ()))
        self.tell()

    def _open_udp(self, family: int, address: Any) -> None:
        sock = socket.socket(family, socket.SOCK_DGRAM)
        try:
            sock.setblocking(False)
            group = self.spec.get("group")
            if sys.platform == "win32":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR if group else socket.SO_EXCLUSIVEADDRUSE, 1)
            elif group:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self.buffer = largest_buffer(sock)
            if LINUX:
                for option in (_SO_TIMESTAMPNS, _SO_RXQ_OVFL):
                    with contextlib.suppress(OSError):
                        sock.setsockopt(socket.SOL_SOCKET, option, 1)
                if family == socket.AF_INET:
                    sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
            if family == socket.AF_INET6 and not group and self.host == "::":
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            if group:
                self._join(sock, family, str(group), address)
            else:
                sock.bind(address)
        except OSError:
            sock.close()
            raise
        self.receiver.watch(sock, self.read_udp)
        self._ready(sock, family, "listening")

    def _join(self, sock: socket.socket, family: int, group: str, address: Any) -> None:
        """Bind to a multicast group on the chosen interface."""
        own = sys.platform == "win32"  # Windows binds to an interface, the others to the group, which keeps other groups out
        if family == socket.AF_INET:
            sock.bind((self.host if own else group, self.port))
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(group) + socket.inet_aton(self.host))
            if LINUX:
                sock.setsockopt(socket.IPPROTO_IP, _IP_MULTICAST_ALL, 0)
        else:
            scope = address[3] or (1 if self.host == "::1" and LINUX else 0)
            sock.bind((self.host if own else group, self.port, 0, scope))
            sock.setsockopt(
                socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, socket.inet_pton(socket.AF_INET6, group) + struct.pack("@I", scope)
            )

    def _connect(self, family: int, address: Any) -> None:
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.setblocking(False)
        code = sock.connect_ex(address)
        if code not in (0, errno.EINPROGRESS, errno.EWOULDBLOCK, getattr(errno, "WSAEWOULDBLOCK", 0)):
            sock.close()
            raise OSError(code, os.strerror(code))
        self.main, self.connecting, self.next_try = sock, True, time.monotonic() + 5.0
        if self.state != "failed":
            self.state = "connecting"
        self.receiver.watch(sock, self._connected, writing=True)

    def _connected(self, sock: socket.socket) -> None:
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self.next_try = time.monotonic() + 1.0
            self.fail(why(OSError(code, os.strerror(code))), os.strerror(code))
            return
        self.connecting = False
        self.receiver.watch(sock, self.read_tcp)
        self._ready(sock, sock.family, "connected")
        host, port = sock.getpeername()[:2]
        stream = TcpStream(self.local, (packed(host), port))
        self.sockets[sock] = stream
        self.main = None
        self.receiver.store.put(stream.begin(time.time_ns(), by_peer=False))
        self.hello()

    def _listen(self, family: int, address: Any) -> None:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            option = socket.SO_EXCLUSIVEADDRUSE if sys.platform == "win32" else socket.SO_REUSEADDR
            sock.setsockopt(socket.SOL_SOCKET, option, 1)
            sock.bind(address)
            sock.listen(16)
            sock.setblocking(False)
        except OSError:
            sock.close()
            raise
        self.receiver.watch(sock, self._accept)
        self._ready(sock, family, "listening")

    def _accept(self, sock: socket.socket) -> None:
        try:
            connection, peer = sock.accept()
        except OSError:
            return
        connection.setblocking(False)
        stream = TcpStream((packed(connection.getsockname()[0]), self.local[1]), (packed(peer[0]), peer[1]))
        self.sockets[connection] = stream
        self.receiver.store.put(stream.begin(time.time_ns(), by_peer=True))
        self.receiver.watch(connection, self.read_tcp)
        self.tell()

    def read_udp(self, sock: socket.socket) -> None:
        """Everything that waits, at most 256 datagrams at a time so that no port starves another."""
        out: list[bytes] = []
        relays, buffer, view = self.receiver.relays, self.receiver.buffer, self.receiver.view
        extended = hasattr(sock, "recvmsg_into")
        for _ in range(256):
            try:
                if extended:
                    size, extras, _, peer = sock.recvmsg_into([buffer], 256)
                else:
                    size, peer = sock.recvfrom_into(buffer)
                    extras = []
            except (BlockingIOError, InterruptedError):
                break
            except ConnectionResetError:  # Windows: what we once sent did not arrive
                continue
            except OSError as error:
                self.fail(why(error), error.strerror or str(error))
                break
            stamp, target = 0, self.local[0]
            for level, kind, value in extras:
                if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(value) >= 16:
                    seconds, nanoseconds = struct.unpack_from("@qq", value)
                    stamp, self.kernel_stamps = seconds * 1_000_000_000 + nanoseconds, True
                elif level == socket.SOL_SOCKET and kind == _SO_RXQ_OVFL and len(value) >= 4:
                    self.drops = int.from_bytes(value[:4], sys.byteorder)
                elif level == socket.IPPROTO_IP and kind == _IP_PKTINFO and len(value) >= 12:
                    target = value[8:12]
            data = bytes(view[:size])
            self.packets += 1
            self.bytes += size
            self.last = stamp or time.time_ns()
            out.append(udp_record(self.last, (packed(peer[0]), peer[1]), (target, self.local[1]), data, self.packets))
            for relay in relays:
                self.receiver.relay(data, relay)
        if out:
            self.receiver.store.put(out)

    def read_tcp(self, sock: socket.socket) -> None:
        """One chunk of a connection."""
        try:
            data = sock.recv(1 << 18)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._gone(sock, why(error), error.strerror or str(error))
            return
        if not data:
            self._gone(sock, "closed", "the other side closed the connection")
            return
        self.packets += 1
        self.bytes += len(data)
        self.last = time.time_ns()
        stream = self.sockets[sock]
        if stream is not None:
            if len(stream.first) < 1 << 14:
                stream.first += data[: (1 << 14) - len(stream.first)]
            self.receiver.store.put(stream.data(self.last, data))

    def _gone(self, sock: socket.socket, error: str, detail: str) -> None:
        self._drop(sock, by_peer=True)
        if self.transport == "tcp":
            self.next_try = time.monotonic() + 1.0
            self.fail(error, detail)
        else:
            self.tell()

    def _drop(self, sock: socket.socket, *, by_peer: bool) -> None:
        stream = self.sockets.pop(sock, None)
        if stream is not None:
            self.receiver.store.put(stream.end(time.time_ns(), by_peer=by_peer))
        self.receiver.forget(sock)

    def hello(self) -> None:
        """Send what the server wants to hear: once, or every so many seconds. It goes into the capture too."""
        now = time.monotonic()
        for i, words in enumerate(self.spec.get("hello", ())):
            if i >= len(self.next_hello) or now < self.next_hello[i]:
                continue
            every = float(words.get("every", 0.0))
            self.next_hello[i] = now + every if every > 0.0 else float("inf")
            data = bytes.fromhex(words["data"])
            with contextlib.suppress(OSError):
                if self.transport == "udp" and self.main is not None:
                    to = (str(words["to"][0]), int(words["to"][1]))
                    self.main.sendto(data, to)
                    self.receiver.store.put([udp_record(time.time_ns(), self.local, (packed(to[0]), to[1]), data)])
                for sock, stream in self.sockets.items():
                    sock.send(data)
                    if stream is not None:
                        self.receiver.store.put(stream.data(time.time_ns(), data, sent=True))

    def greet_again(self) -> None:
        """A recording begins: let a server without a connection tell once more what it tells only when asked."""
        if self.transport == "udp":
            self.next_hello = [0.0] * len(self.next_hello)

    def keep(self, now: float) -> None:
        """Once in a while: try again what failed, say hello, notice an interface that went away."""
        if self.state == "failed" or self.connecting:
            if now >= self.next_try:
                if self.connecting:
                    self.fail("network", os.strerror(errno.ETIMEDOUT))
                self.open()
            return
        if self.spec.get("hello"):
            self.hello()
        own = self.transport != "tcp" and not self.host.startswith("127.") and self.host not in ("0.0.0.0", "::", "::1", "localhost")
        if own and now >= self.next_try:
            self.next_try = now + 2.0
            try:
                family, _, _, _, address = socket.getaddrinfo(self.host, 0, type=socket.SOCK_DGRAM)[0]
                with socket.socket(family, socket.SOCK_DGRAM) as probe:
                    probe.bind(address)
            except OSError as error:
                self.fail("network_gone", error.strerror or str(error))


def largest_buffer(sock: socket.socket) -> int:
    """Set the largest receive buffer that the system allows; its size in bytes as the system counts."""
    options = [_SO_RCVBUFFORCE, socket.SO_RCVBUF] if LINUX else [socket.SO_RCVBUF]
    for option in options:  # the first needs a privilege, and then passes the system's limit
        for size in BUFFER_SIZES:
            try:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
            except OSError:
                continue
            return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
    return sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)


class Receiver:
    """The sources and what is done with what they bring."""

    def __init__(self, config: dict[str, Any], emit: Emit) -> None:
        self.emit = emit
        self.store = Store(config, emit)
        self.buffer = bytearray(65536)
        self.view = memoryview(self.buffer)
        self.selector = selectors.DefaultSelector()
        self.relays: list[Address] = []
        self.relayed = self.relay_failed = 0
        self._out: dict[int, socket.socket] = {}
        self._next_keep = self._next_status = 0.0
        self.links = [Link(spec, self) for spec in config.get("sources", ())]
        for link in self.links:
            link.open()
        self.set_relays(config.get("relays", ()))

    def watch(self, sock: socket.socket, work: Callable[[socket.socket], None], *, writing: bool = False) -> None:
        """Call ``work(sock)`` when it can be read (or written)."""
        event = selectors.EVENT_WRITE if writing else selectors.EVENT_READ
        if sock in self.selector.get_map():
            self.selector.modify(sock, event, work)
        else:
            self.selector.register(sock, event, work)

    def forget(self, sock: socket.socket) -> None:
        """Close a socket."""
        with contextlib.suppress(KeyError, ValueError):
            self.selector.unregister(sock)
        sock.close()

    def set_relays(self, relays: Any) -> None:
        """Where datagrams go on to. An address that we listen on ourselves would be a loop."""
        own = {link.local[1] for link in self.links if link.transport == "udp"}
        self.relays = []
        for host, port in relays:
            if int(port) in own and (str(host).startswith("127.") or host in ("localhost", "::1", "0.0.0.0", "::")):
                self.emit({"event": "refused", "do": "relays", "error": "loop", "host": host, "port": port})
            else:
                self.relays.append((str(host), int(port)))

    def relay(self, data: bytes, to: Address) -> None:
        """Send a datagram on, as it came."""
        family = socket.AF_INET6 if ":" in to[0] else socket.AF_INET
        try:
            if family not in self._out:
                self._out[family] = socket.socket(family, socket.SOCK_DGRAM)
                self._out[family].setblocking(False)
            self._out[family].sendto(data, to)
            self.relayed += 1
        except OSError:
            self.relay_failed += 1

    def command(self, words: dict[str, Any]) -> bool:
        """Do what a line of input asks; False to end."""
        do = words.get("do")
        if do == "quit":
            return False
        if do == "relays":
            self.set_relays(words.get("to", ()))
        elif do == "stop":
            self.store.command("stop", {"reason": words.get("reason", "asked")})
        elif do == "record":
            began: list[bytes] = []
            for link in self.links:
                link.greet_again()
                for stream in link.sockets.values():
                    began += stream.again(time.time_ns()) if stream is not None else []
            self.store.command("record", {"path": words["path"], "preroll": words.get("preroll", 0.0), "began": b"".join(began)})
        return True

    def pump(self, timeout: float = 0.0) -> None:
        """Read what has arrived, waiting at most ``timeout`` seconds for something to arrive; and the housekeeping."""
        for key, _ in self.selector.select(timeout):
            key.data(key.fileobj)
        now = time.monotonic()
        if now >= self._next_keep:
            self._next_keep = now + 0.2
            for link in self.links:
                link.keep(now)
        if now >= self._next_status:
            self._next_status = now + 0.25
            self.emit(self.status())

    def status(self) -> dict[str, Any]:
        """Everything that is counted."""
        s = self.store
        return {
            "event": "status",
            "time": time.time_ns(),
            "sources": [link.status() for link in self.links],
            "queue": max(0, s.put_bytes - s.done_bytes),
            "refused": s.refused,
            "failed": s.failed,
            "records": s.records,
            "path": s.path,
            "size": s.size,
            "recording": s.recording,
            "free": s.free,
            "relayed": self.relayed,
            "relay_failed": self.relay_failed,
        }

    def close(self) -> None:
        """Close every socket; what they brought is still queued for the store."""
        for link in self.links:
            link.close()
        for sock in self._out.values():
            sock.close()
        self._out.clear()
        self.selector.close()


# -- the process


class Mouth:
    """Says things on standard output without ever blocking who speaks: a parent that does not listen only misses counts."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque()
        self.there = threading.Event()

    def say(self, event: dict[str, Any]) -> None:
        """Queue a line; counts are left out while many wait."""
        if event.get("event") == "status" and len(self.lines) > 100:
            return
        self.lines.append(json.dumps(event))
        self.there.set()

    def run(self) -> None:
        """The thread that writes."""
        while True:
            self.there.wait()
            self.there.clear()
            self.flush()

    def flush(self) -> None:
        """Write what is queued."""
        with contextlib.suppress(OSError, ValueError, IndexError):
            while self.lines:
                os.write(1, self.lines.popleft().encode() + b"\n")


def _listen_to_parent(first: threading.Event, words: deque[dict[str, Any]], wake: socket.socket) -> None:
    for line in sys.stdin:
        with contextlib.suppress(ValueError):
            words.append(json.loads(line))
        first.set()
        with contextlib.suppress(OSError):
            wake.send(b"\0")
    words.append({"do": "quit"})
    first.set()
    with contextlib.suppress(OSError):
        wake.send(b"\0")


def main() -> int:
    """Run until standard input closes."""
    import signal

    for name in ("SIGINT", "SIGPIPE", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    with contextlib.suppress(OSError, AttributeError):  # where it is allowed: stamps and buffers do not wait for others' work
        os.setpriority(os.PRIO_PROCESS, 0, -10)
    mouth, words, first = Mouth(), deque[dict[str, Any]](), threading.Event()
    near, far = socket.socketpair()
    near.setblocking(False)
    threading.Thread(target=mouth.run, daemon=True).start()
    threading.Thread(target=_listen_to_parent, args=(first, words, far), daemon=True).start()
    first.wait()
    config = words.popleft()
    if config.get("do") != "open":
        return 0
    try:
        receiver = Receiver(config, mouth.say)
    except OSError as error:
        mouth.say({"event": "fatal", "error": "disk", "detail": error.strerror or str(error), "path": str(config.get("folder"))})
        mouth.flush()
        return 1
    ended = threading.Event()
    disk = threading.Thread(target=receiver.store.run, args=(ended,), daemon=True)
    disk.start()
    parent = os.getppid()
    receiver.watch(near, _drain)
    mouth.say({"event": "started", "pid": os.getpid()})
    going = True
    while going:
        receiver.pump(0.2)
        while words and going:
            going = receiver.command(words.popleft())
        if sys.platform != "win32" and os.getppid() != parent:
            going = False
    receiver.close()
    ended.set()
    receiver.store.woken.set()
    disk.join(10.0)
    mouth.say({**receiver.status(), "event": "ended"})
    mouth.flush()
    return 0


def _drain(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.recv(4096)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a thread may still wait for a pipe
