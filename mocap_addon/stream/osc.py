# SPDX-License-Identifier: GPL-3.0-or-later
"""Open Sound Control 1.0: bundles and messages, in the order they stand in the datagram.

Own, because the package in use elsewhere sorts messages by time stamp and takes seven times as long. Numbers of any type become floats or
ints: senders write a whole number as an int where a float belongs.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .base import BrokenPacketError

BUNDLE = b"#bundle\0"
IMMEDIATELY = b"\0\0\0\0\0\0\0\1"
_MAX_DEPTH = 8
Value = float | int | str | bytes | bool | None
_FIXED = {"i": struct.Struct(">i"), "f": struct.Struct(">f"), "h": struct.Struct(">q"), "d": struct.Struct(">d"), "t": struct.Struct(">Q")}
_FOUR_BYTES = "crm"
_NO_BYTES: dict[str, Value] = {"T": True, "F": False, "N": None, "I": True}


class Message(NamedTuple):
    """An address, its type tags, and where in the datagram its arguments begin and end."""

    address: bytes
    tags: str
    start: int
    end: int


def messages(data: bytes, start: int = 0, end: int | None = None, depth: int = 0) -> Iterator[Message]:
    """Every message, nested bundles too. :class:`BrokenPacketError` where the datagram is cut off or no OSC."""
    end = len(data) if end is None else end
    if data[start : start + 8] != BUNDLE:
        yield _message(data, start, end)
        return
    if depth >= _MAX_DEPTH:
        raise BrokenPacketError("bundles nested too deep")
    at = start + 16
    if at > end:
        raise BrokenPacketError("a bundle is cut off")
    while at < end:
        if at + 4 > end:
            raise BrokenPacketError("a bundle is cut off")
        size = int.from_bytes(data[at : at + 4], "big")
        at += 4
        if size % 4 or size == 0 or size > end - at:
            raise BrokenPacketError("an element of a bundle has a wrong size")
        yield from messages(data, at, at + size, depth + 1)
        at += size


def _message(data: bytes, start: int, end: int) -> Message:
    stop = data.find(b"\0", start, end)
    if data[start : start + 1] != b"/" or stop < 0:
        raise BrokenPacketError("no OSC address")
    address = data[start:stop]
    at = start + ((stop - start) // 4 + 1) * 4
    if data[at : at + 1] != b",":
        return Message(address, "", min(at, end), end)
    stop = data.find(b"\0", at, end)
    if stop < 0:
        raise BrokenPacketError("the type tags are cut off")
    tags = data[at + 1 : stop].decode("latin-1")
    return Message(address, tags, min(at + ((stop - at) // 4 + 1) * 4, end), end)


def arguments(data: bytes, message: Message) -> list[Value]:
    """The arguments; :class:`BrokenPacketError` where they are cut off or of an unknown type."""
    out: list[Value] = []
    at, end = message.start, message.end
    for tag in message.tags:
        fixed = _FIXED.get(tag)
        if fixed is not None:
            if at + fixed.size > end:
                raise BrokenPacketError("an argument is cut off")
            out.append(fixed.unpack_from(data, at)[0])
            at += fixed.size
        elif tag in "sS":
            stop = data.find(b"\0", at, end)
            if stop < 0:
                raise BrokenPacketError("a string is cut off")
            out.append(data[at:stop].decode("utf-8", "replace"))
            at += ((stop - at) // 4 + 1) * 4
        elif tag == "b":
            if at + 4 > end:
                raise BrokenPacketError("a blob is cut off")
            size = int.from_bytes(data[at : at + 4], "big")
            if size > end - at - 4:
                raise BrokenPacketError("a blob is cut off")
            out.append(data[at + 4 : at + 4 + size])
            at += 4 + (size + 3) // 4 * 4
        elif tag in _NO_BYTES:
            out.append(_NO_BYTES[tag])
        elif tag in _FOUR_BYTES:
            if at + 4 > end:
                raise BrokenPacketError("an argument is cut off")
            out.append(data[at : at + 4])
            at += 4
        elif tag not in "[]":
            raise BrokenPacketError("an argument of a type that nobody knows")
    return out


def _string(text: str) -> bytes:
    raw = text.encode("utf-8", "replace") + b"\0"
    return raw + b"\0" * (-len(raw) % 4)


def encode(address: str, *values: float | int | str) -> bytes:
    """A message; numbers by their Python type (float as ``f``, int as ``i``)."""
    tags, body = ",", b""
    for value in values:
        if isinstance(value, str):
            tags, body = tags + "s", body + _string(value)
        elif isinstance(value, int):
            tags, body = tags + "i", body + struct.pack(">i", value)
        else:
            tags, body = tags + "f", body + struct.pack(">f", value)
    return _string(address) + _string(tags) + body


def bundles(elements: Sequence[bytes], size: int) -> list[bytes]:
    """Messages in as few bundles of at most ``size`` bytes as their order allows."""
    out: list[bytes] = []
    now = b""
    for element in elements:
        packed = len(element).to_bytes(4, "big") + element
        if now and 16 + len(now) + len(packed) > size:
            out.append(BUNDLE + IMMEDIATELY + now)
            now = b""
        now += packed
    return [*out, BUNDLE + IMMEDIATELY + now] if now else out
