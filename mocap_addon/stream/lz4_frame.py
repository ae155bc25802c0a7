# SPDX-License-Identifier: GPL-3.0-or-later
"""LZ4 frames (lz4 Frame format 1.6): a reader, and a writer that stores blocks as they are.

Own, because the package that does it is compiled for one platform and one Python.
"""

from __future__ import annotations

import struct

from .base import BrokenPacketError

MAGIC = b"\x04\x22\x4d\x18"
_PRIMES = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
_MASK = 0xFFFFFFFF
_BLOCK_SIZES = {4: 1 << 16, 5: 1 << 18, 6: 1 << 20, 7: 1 << 22}


def decompress(data: bytes, limit: int = 1 << 18) -> bytes:
    """The content of a frame; :class:`BrokenPacketError` when damaged or longer than ``limit``. Checksums of content are not looked at."""
    if data[:4] != MAGIC or len(data) < 11:
        raise BrokenPacketError("no LZ4 frame")
    flags = data[4]
    if flags >> 6 != 1 or flags & 2 or data[5] >> 4 & 7 not in _BLOCK_SIZES:
        raise BrokenPacketError("an LZ4 frame of an unknown version")
    at = 6 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)
    if at >= len(data) or data[at] != xxh32(data[4:at]) >> 8 & 0xFF:
        raise BrokenPacketError("the head of the LZ4 frame is damaged")
    at += 1
    out = bytearray()
    while True:
        if at + 4 > len(data):
            raise BrokenPacketError("the LZ4 frame is cut off")
        (size,) = struct.unpack_from("<I", data, at)
        at += 4
        if size == 0:
            return bytes(out)
        stored, size = size >> 31, size & 0x7FFFFFFF
        if size > len(data) - at:
            raise BrokenPacketError("an LZ4 block is cut off")
        if stored:
            out += data[at : at + size]
        else:
            _block(data, at, at + size, out, limit)
        if len(out) > limit:
            raise BrokenPacketError("the LZ4 frame is longer than any packet")
        at += size + (4 if flags & 16 else 0)


def _block(data: bytes, at: int, end: int, out: bytearray, limit: int) -> None:
    """Append what a compressed block says: runs of literals, each but the last followed by a copy from what is there already."""
    while at < end:
        token = data[at]
        at += 1
        length = token >> 4
        if length == 15:
            while at < end:
                more = data[at]
                at += 1
                length += more
                if more != 255:
                    break
        if length:
            if length > end - at:
                raise BrokenPacketError("literals are cut off")
            out += data[at : at + length]
            at += length
        if at == end:
            return
        if at + 2 > end:
            raise BrokenPacketError("an LZ4 sequence is cut off")
        offset = data[at] | data[at + 1] << 8
        at += 2
        length = token & 15
        if length == 15:
            while at < end:
                more = data[at]
                at += 1
                length += more
                if more != 255:
                    break
        length += 4
        start = len(out) - offset
        if offset == 0 or start < 0 or start + length > limit:
            raise BrokenPacketError("an LZ4 copy reaches out of the frame")
        if offset >= length:
            out += out[start : start + length]
        else:  # overlapping: the copied part repeats
            out += (out[start:] * (length // offset + 1))[:length]


def compress(content: bytes, block: int = 1 << 16) -> bytes:
    """A frame whose blocks are stored as they are: independent blocks of at most 64 KB, no checksum of the content."""
    head = bytes([0x60, 0x40])
    out = MAGIC + head + bytes([xxh32(head) >> 8 & 0xFF])
    for i in range(0, len(content), block):
        part = content[i : i + block]
        out += struct.pack("<I", len(part) | 1 << 31) + part
    return out + b"\0\0\0\0"


def xxh32(data: bytes, seed: int = 0) -> int:
    """The checksum of LZ4 frames (xxHash, 32 bits)."""
    p1, p2, p3, p4, p5 = _PRIMES
    n, at = len(data), 0
    if n >= 16:
        lanes = [(seed + p1 + p2) & _MASK, (seed + p2) & _MASK, seed, (seed - p1) & _MASK]
        while at + 16 <= n:
            for i, word in enumerate(struct.unpack_from("<4I", data, at)):
                lanes[i] = _turn((lanes[i] + word * p2) & _MASK, 13) * p1 & _MASK
            at += 16
        h = sum(_turn(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
    else:
        h = (seed + p5) & _MASK
    h = (h + n) & _MASK
    while at + 4 <= n:
        h = _turn((h + int.from_bytes(data[at : at + 4], "little") * p3) & _MASK, 17) * p4 & _MASK
        at += 4
    for byte in data[at:]:
        h = _turn((h + byte * p5) & _MASK, 11) * p1 & _MASK
    h = (h ^ h >> 15) * p2 & _MASK
    h = (h ^ h >> 13) * p3 & _MASK
    return h ^ h >> 16


def _turn(x: int, by: int) -> int:
    return (x << by | x >> (32 - by)) & _MASK
