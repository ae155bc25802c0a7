# SPDX-License-Identifier: GPL-3.0-or-later
"""A plain LZ4 compressor, so that compressed frames can be had without the package: greedy, with a table of four-byte beginnings."""

from __future__ import annotations

import struct

from mocap_addon.stream.lz4_frame import MAGIC, xxh32


def _length(n: int) -> bytes:
    return b"\xff" * (n // 255) + bytes([n % 255])


def _sequence(literals: bytes, offset: int = 0, match: int = 0) -> bytes:
    high, low = min(15, len(literals)), min(15, max(0, match - 4))
    out = bytes([high << 4 | low]) + (_length(len(literals) - 15) if high == 15 else b"") + literals
    if match:
        out += struct.pack("<H", offset) + (_length(match - 19) if low == 15 else b"")
    return out


def block(content: bytes) -> bytes:
    """One block; the last five bytes are literals and no copy begins in the last twelve."""
    seen: dict[bytes, int] = {}
    out, start, at = b"", 0, 0
    while at < len(content) - 12:
        key = content[at : at + 4]
        found = seen.get(key)
        seen[key] = at
        if found is None or at - found > 65535:
            at += 1
            continue
        size = 4
        while at + size < len(content) - 5 and content[found + size] == content[at + size]:
            size += 1
        out += _sequence(content[start:at], at - found, size)
        at += size
        start = at
    return out + _sequence(content[start:])


def compress(content: bytes) -> bytes:
    """A frame of one block (content up to 4 MB)."""
    head = bytes([0x60, 0x70])
    packed = block(content)
    return MAGIC + head + bytes([xxh32(head) >> 8 & 0xFF]) + struct.pack("<I", len(packed)) + packed + bytes(4)
