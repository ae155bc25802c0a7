# SPDX-License-Identifier: GPL-3.0-or-later
"""The wire format of MVN's network streamer (MXTP): header, items, strings. Network byte order everywhere."""

from __future__ import annotations

import struct
from typing import NamedTuple

from .base import BrokenPacketError, UnknownPacketError

HEADER = struct.Struct(">4s2sIBBIBBBB2xH")
MAGIC = b"MXTP"
LAST = 0x80
"""The bit of the datagram counter that marks a sample's last datagram."""
ITEM_BYTES = {b"01": 28, b"02": 32, b"05": 32, b"20": 20, b"21": 40, b"22": 44}


class Header(NamedTuple):
    """The 24 bytes before every message."""

    magic: bytes
    kind: bytes
    sample: int
    part: int
    items: int
    time_code: int
    character: int
    body: int
    props: int
    fingers: int
    payload: int


def header(data: bytes) -> Header:
    """The header of a datagram; :class:`UnknownPacketError` when it is none, :class:`BrokenPacketError` when its payload is cut off."""
    if len(data) < 24 or data[:4] != MAGIC:
        raise UnknownPacketError("no MXTP header")
    found = Header._make(HEADER.unpack_from(data))
    if found.payload > len(data) - 24:
        raise BrokenPacketError("the payload is cut off")
    return found


def payload(data: bytes, head: Header) -> bytes:
    """What follows the header: as long as it says; senders before 2019 say 0, and some emulators a little less than they send."""
    size = head.payload
    if size == 0 or (head.kind == b"25" and size == 12):
        return data[24:]
    return data[24 : 24 + size]


def pack(
    kind: bytes,
    sample: int,
    part: int,
    items: int,
    time_ms: int,
    character: int,
    counts: tuple[int, int, int],
    body: bytes,
) -> bytes:
    """A whole message. ``counts``: segments of the body, props, finger segments."""
    return (
        HEADER.pack(MAGIC, kind, sample & 0xFFFFFFFF, part, items & 0xFF, time_ms & 0xFFFFFFFF, character & 0xFF, *counts, len(body)) + body
    )


def string(text: str) -> bytes:
    """int32 length, then UTF-8."""
    raw = text.encode("utf-8", "replace")
    return struct.pack(">i", len(raw)) + raw


def read_string(data: bytes, at: int) -> tuple[str, int]:
    """A string at ``at`` and where the next thing begins."""
    if at + 4 > len(data):
        raise BrokenPacketError("a string is cut off")
    (size,) = struct.unpack_from(">i", data, at)
    if not 0 <= size <= len(data) - at - 4:
        raise BrokenPacketError("a string is longer than its message")
    return data[at + 4 : at + 4 + size].decode("utf-8", "replace"), at + 4 + size


def messages(buffer: bytes, limit: int = 1 << 16) -> tuple[list[bytes], bytes, int]:
    """TCP: whole messages, the rest, and how many bytes were passed over while looking for the next header."""
    out: list[bytes] = []
    at = skipped = 0
    while len(buffer) - at >= 24:
        if buffer[at : at + 4] != MAGIC:
            found = buffer.find(MAGIC, at + 1)
            to = found if found >= 0 else len(buffer) - 3
            skipped += to - at
            at = to
            continue
        size = 24 + (buffer[at + 22] << 8 | buffer[at + 23])
        following = buffer[at + size : at + size + 4]
        if size == 24 or (following and not MAGIC.startswith(following[:4])):
            found = buffer.find(MAGIC, at + 4)  # before 2019 the size is 0; else a damaged one: the next header ends the message
            if found < 0 and size == 24:
                break
            if found >= 0 and found - at <= limit:
                size = found - at
        if len(buffer) - at < size:
            break
        out.append(buffer[at : at + size])
        at += size
    return out, buffer[at:], skipped
