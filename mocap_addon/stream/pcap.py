# SPDX-License-Identifier: GPL-3.0-or-later
"""Capture files: pcap (both byte orders, micro- and nanoseconds) and pcapng, read as they grow.

A reader goes on where it stopped, takes whole records only, and waits at a half-written one: the writer may be in the middle of it, or
dead. The formats: draft-ietf-opsawg-pcap and draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from ..motion.errors import FileError
from .packets import Dissector, Packet

_CHUNK = 1 << 20
_LARGEST = 64 << 20
"""No packet is that long: a record that says so is damaged."""

_MAGICS: dict[bytes, tuple[str, int]] = {
    b"\xd4\xc3\xb2\xa1": ("<", 1000),
    b"\xa1\xb2\xc3\xd4": (">", 1000),
    b"\x4d\x3c\xb2\xa1": ("<", 1),
    b"\xa1\xb2\x3c\x4d": (">", 1),
}
PCAPNG = b"\x0a\x0d\x0d\x0a"


def is_capture(head: bytes) -> bool:
    """Whether a file that begins so is a pcap or pcapng file."""
    return head[:4] in _MAGICS or (head[:4] == PCAPNG and head[8:12] in (b"\x4d\x3c\x2b\x1a", b"\x1a\x2b\x3c\x4d"))


class _Interface(NamedTuple):
    link: int
    ticks: int  # in a second
    offset: int  # seconds


class CaptureReader:
    """The packets of one capture file, in the order of the file.

    Parameters
    ----------
    path : path
    offset : int
        Where to begin: 0, or where a record of a pcap file begins.
    dissector : Dissector, optional
        Given on from file to file where one stream runs through several.

    Raises
    ------
    FileError
        The file cannot be opened or is no capture.
    """

    def __init__(self, path: str | Path, offset: int = 0, dissector: Dissector | None = None) -> None:
        self.path = Path(path)
        self.dissector = dissector or Dissector()
        self.at = 0
        """Up to here the file was read, in whole records."""
        self.damaged = ""
        try:
            self._file: BinaryIO = self.path.open("rb", buffering=0)
        except OSError as error:
            raise FileError(f"The capture cannot be opened ({error.strerror or error}).", path) from None
        self._order, self._factor, self._link = "", 0, -1
        self._pcapng = False
        self._interfaces: list[_Interface] = []
        self._last: int = 0
        try:
            self._begin(offset)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file; safe to call again."""
        self._file.close()

    def __enter__(self) -> CaptureReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin(self, offset: int) -> None:
        head = self._file.read(24)
        if not head[:4] or (len(head) < 12 and head[:4] in _MAGICS | {PCAPNG: None}):
            return  # nothing written yet
        if not is_capture(head):
            raise FileError("This is no capture file (pcap or pcapng).", self.path)
        if head[:4] == PCAPNG:
            self._pcapng = True
            self._order = "<" if head[8:12] == b"\x4d\x3c\x2b\x1a" else ">"
        elif len(head) == 24:
            self._order, self._factor = _MAGICS[head[:4]]
            self._link = struct.unpack_from(f"{self._order}I", head, 20)[0] & 0x0FFFFFFF
            self.at = max(24, offset)

    def packets(self, most: int = 1 << 62, until: int | None = None) -> Iterator[Packet]:
        """What is there and was not read yet, up to about ``most`` bytes and up to byte ``until``; call again for what comes later."""
        if not self._order:
            self._file.seek(0)
            self._begin(0)
        records = self._blocks if self._pcapng else self._records
        size = _CHUNK
        while most > 0 and self._order and not self.damaged:
            self._file.seek(self.at)
            want = size if until is None else min(size, until - self.at)
            data = self._file.read(want) if want > 0 else b""
            before = self.at
            for time, link, captured in records(data):
                yield from self.dissector.packets(time, link, captured)
            most -= self.at - before
            if self.at == before:
                if len(data) < size or size > _LARGEST:
                    return
                size *= 4  # one record is longer than what was read
            else:
                size = _CHUNK

    def _records(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        unpack = struct.Struct(f"{self._order}IIII").unpack_from
        at, start, end, factor, link = 0, self.at, len(data), self._factor, self._link
        while at + 16 <= end:
            seconds, fraction, length, _ = unpack(data, at)
            if length > _LARGEST:
                self.damaged = f"It is damaged at byte {start + at}; what comes after is left out."
                return
            stop = at + 16 + length
            if stop > end:
                return
            captured = data[at + 16 : stop]
            at = stop
            self.at = start + at
            yield seconds * 1_000_000_000 + fraction * factor, link, captured

    def _blocks(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        at, start, end = 0, self.at, len(data)
        while at + 12 <= end:
            if data[at : at + 4] == PCAPNG:
                self._order = "<" if data[at + 8 : at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            kind, length = struct.unpack_from(f"{self._order}II", data, at)
            if length > _LARGEST or length < 12 or length & 3:
                self.damaged = f"It is damaged at byte {start + at}; what comes after is left out."
                return
            if at + length > end:
                return
            block = data[at + 8 : at + length - 4]
            at += length
            self.at = start + at
            try:
                found = self._block(kind, block)
            except struct.error:
                self.dissector.counts.cut += 1
                continue
            if found is not None:
                yield found

    def _block(self, kind: int, block: bytes) -> tuple[int, int, bytes] | None:
        order = self._order
        if kind == 0x0A0D0D0A:
            self._interfaces.clear()
        elif kind == 1:
            self._interfaces.append(_interface(order, block))
        elif kind in (6, 2):  # a packet, in the present and the old layout
            number, high, low, captured = map(int, struct.unpack_from(f"{order}IIII" if kind == 6 else f"{order}HxxIII", block))
            if number < len(self._interfaces):
                interface = self._interfaces[number]
                self._last = interface.offset * 1_000_000_000 + ((high << 32) | low) * 1_000_000_000 // interface.ticks
                return self._last, interface.link, block[20 : 20 + captured]
        elif kind == 3 and self._interfaces:  # without a time
            (length,) = struct.unpack_from(f"{order}I", block)
            return self._last, self._interfaces[0].link, block[4 : 4 + length]
        return None


def _interface(order: str, block: bytes) -> _Interface:
    """An interface description: link type, resolution and offset of its time stamps."""
    (link,) = struct.unpack_from(f"{order}H", block)
    ticks, offset, at = 1_000_000, 0, 8
    while at + 4 <= len(block):
        code, length = struct.unpack_from(f"{order}HH", block, at)
        value = block[at + 4 : at + 4 + length]
        if code == 0:
            break
        if code == 9 and length == 1:
            ticks = 2 ** (value[0] & 0x7F) if value[0] & 0x80 else 10 ** min(value[0], 18)
        elif code == 14 and length == 8:
            (offset,) = struct.unpack(f"{order}q", value)
        at += 4 + length + (-length & 3)
    return _Interface(link, ticks, offset)


class Tail:
    """One stream of packets through the receiver's files, one after the other.

    :meth:`follow` is told of each new file (the receiver's ``file`` events), :meth:`read` gives what is new.
    """

    def __init__(self) -> None:
        self.dissector = Dissector()
        self.skipped = 0
        """Files that were gone before they were read: the reader was away for longer than the ring is long."""
        self._reader: CaptureReader | None = None
        self._ahead: list[tuple[str, int, str, int]] = []

    @property
    def place(self) -> tuple[str, int]:
        """File and byte up to which everything was read."""
        return ("", 0) if self._reader is None else (str(self._reader.path), self._reader.at)

    def follow(self, path: str, offset: int, previous: str = "", previous_size: int = 0) -> None:
        """The stream goes on in ``path`` from ``offset`` on; ``previous`` ended at ``previous_size``."""
        self._ahead.append((path, offset, previous, previous_size))

    def read(self, most: int = 1 << 62) -> Iterator[Packet]:
        """What is new, up to about ``most`` bytes."""
        while True:
            until = self._ahead[0][3] if self._ahead and self._reader and self._ahead[0][2] == str(self._reader.path) else None
            if self._reader is not None:
                before = self._reader.at
                yield from self._reader.packets(most, until)
                most -= self._reader.at - before
                if most <= 0:
                    return
            if not self._ahead:
                return
            path, offset, _, _ = self._ahead.pop(0)
            if self._reader is not None and str(self._reader.path) == path:
                continue  # a recording that went on after its writer was started again
            self.close()
            try:
                self._reader = CaptureReader(path, offset, self.dissector)
            except FileError:
                self.skipped += 1

    def close(self) -> None:
        """Close the file; safe to call again."""
        if self._reader is not None:
            self._reader.close()
            self._reader = None
