# SPDX-License-Identifier: GPL-3.0-or-later
"""NatNet's bytes: frames and model definitions of versions 2.1 to 4.x. Little-endian, strings end with a zero.

A frame does not say its version. It is told by the server's greeting, else by which version uses up the datagram exactly.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from .base import BrokenPacketError

Version = tuple[int, int]
VERSIONS: tuple[Version, ...] = ((4, 1), (3, 1), (4, 0), (3, 0), (2, 10), (2, 9), (2, 7), (2, 6), (2, 3))
PING, SERVER_INFO, REQUEST_MODEL, MODEL, FRAME = 0, 1, 4, 5, 7
_MAX = 4096


class Reader:
    """A place in a datagram; every read is checked."""

    def __init__(self, data: bytes, version: Version, at: int = 4) -> None:
        self.data, self.version, self.at = data, version, at

    def take(self, size: int) -> int:
        """Where the next ``size`` bytes begin; they are passed."""
        start = self.at
        if size < 0 or start + size > len(self.data):
            raise BrokenPacketError("the packet is cut off")
        self.at = start + size
        return start

    def u32(self) -> int:
        """An unsigned number."""
        at = self.take(4)
        return int.from_bytes(self.data[at : at + 4], "little")

    def count(self) -> int:
        """How many follow."""
        found = self.u32()
        if found > _MAX:
            raise BrokenPacketError("more things than a scene has")
        return found

    def u16(self) -> int:
        """A short unsigned number."""
        at = self.take(2)
        return int.from_bytes(self.data[at : at + 2], "little")

    def floats(self, count: int) -> tuple[float, ...]:
        """float32 numbers."""
        return struct.unpack_from(f"<{count}f", self.data, self.take(4 * count))

    def string(self) -> str:
        """Text up to a zero."""
        stop = self.data.find(b"\0", self.at, self.at + 256)
        if stop < 0:
            raise BrokenPacketError("a name does not end")
        text = self.data[self.at : stop].decode("utf-8", "replace")
        self.at = stop + 1
        return text

    def section(self) -> tuple[int, int]:
        """How many elements follow, and where they end (-1: not said, before 4.1)."""
        count = self.count()
        if self.version < (4, 1):
            return count, -1
        size = self.u32()
        if size > len(self.data) - self.at:
            raise BrokenPacketError("a section is cut off")
        return count, self.at + size


@dataclass
class RigidBody:
    """A rigid body, or a bone: id, and place with rotation (x, y, z, w)."""

    number: int
    row: tuple[float, ...]
    tracked: bool


@dataclass
class DataFrame:
    """What is used of a frame."""

    number: int
    rigid_bodies: list[RigidBody] = field(default_factory=list[RigidBody])
    skeletons: list[tuple[int, list[RigidBody]]] = field(default_factory=list[tuple[int, list[RigidBody]]])
    time_code: int = 0
    sub_frame: int = 0
    time: float = 0.0


@dataclass
class Bone:
    """A rigid body's description: its number, its parent's, and where it stands in the parent."""

    name: str
    number: int
    parent: int
    offset: tuple[float, ...]


@dataclass
class Model:
    """Rigid bodies by number, skeletons by number with their names and bones."""

    rigid_bodies: dict[int, str] = field(default_factory=dict[int, str])
    skeletons: dict[int, tuple[str, list[Bone]]] = field(default_factory=dict[int, tuple[str, list[Bone]]])


def server_version(data: bytes) -> Version:
    """The protocol's version in a server's greeting: after the name (256 bytes) and the server's own version."""
    if len(data) < 4 + 256 + 8:
        raise BrokenPacketError("the greeting is cut off")
    return data[264], data[265]


def frame(data: bytes, version: Version) -> DataFrame:
    """A frame as of ``version``; :class:`BrokenPacketError` where it does not use up the datagram exactly."""
    r = Reader(data, version)
    out = DataFrame(r.u32())
    count, end = r.section()
    if end >= 0:
        r.at = end
    else:
        for _ in range(count):  # marker sets
            r.string()
            r.take(12 * r.count())
    count, end = r.section()
    r.take(12 * count) if end < 0 else r.take(end - r.at)  # markers without a label
    count, end = r.section()
    out.rigid_bodies = [_rigid_body(r) for _ in range(count)]
    _ends(r, end)
    if version >= (2, 1):
        count, end = r.section()
        for _ in range(count):
            number = r.u32()
            out.skeletons.append((number, [_rigid_body(r) for _ in range(r.count())]))
        _ends(r, end)
    if version >= (4, 1):
        _, end = r.section()  # assets
        r.at = end
    if version >= (2, 3):
        count, end = r.section()  # labelled markers
        size = 26 if version >= (3, 0) else (22 if version >= (2, 6) else 20)
        if end < 0:
            r.take(size * count)
        else:
            r.at = end
    for since in ((2, 9), (2, 11)):  # force plates, devices
        if version >= since:
            count, end = r.section()
            if end >= 0:
                r.at = end
                continue
            for _ in range(count):
                r.u32()
                for _ in range(r.count()):
                    r.take(4 * r.count())
    _suffix(r, out)
    return out


def _ends(r: Reader, end: int) -> None:
    if end >= 0 and r.at != end:
        raise BrokenPacketError("a section has another length than it says")


def _rigid_body(r: Reader) -> RigidBody:
    number = r.u32()
    row = r.floats(7)
    if r.version < (3, 0):
        markers = r.count()
        r.take(12 * markers)
        if r.version >= (2, 0):
            r.take(8 * markers)
    if r.version >= (2, 0):
        r.take(4)
    return RigidBody(number, row, bool(r.u16() & 1) if r.version >= (2, 6) else True)


def _suffix(r: Reader, out: DataFrame) -> None:
    out.time_code, out.sub_frame = r.u32(), r.u32()
    if r.version >= (2, 7):
        (out.time,) = struct.unpack_from("<d", r.data, r.take(8))
    else:
        (out.time,) = r.floats(1)
    if r.version >= (3, 0):
        r.take(24)
    r.u16()
    if len(r.data) - r.at not in (0, 4):  # a mark of four bytes ends the frame
        raise BrokenPacketError("the frame is of another version")


def model(data: bytes, version: Version) -> Model:
    """A model definition as of ``version``. Kinds that are not needed are passed over where their length is known, else end the reading."""
    r = Reader(data, version)
    out = Model()
    for _ in range(r.count()):
        kind = r.u32()
        end = -1
        if version >= (4, 1):
            size = r.u32()
            if size > len(data) - r.at:
                raise BrokenPacketError("a description is cut off")
            end = r.at + size
        if kind == 0:
            r.string()
            for _ in range(r.count()):
                r.string()
        elif kind == 1:
            bone = _description(r)
            out.rigid_bodies[bone.number] = bone.name
        elif kind == 2:
            name, number = r.string(), r.u32()
            out.skeletons[number] = (name, [_description(r) for _ in range(r.count())])
        elif end < 0:
            break
        if end >= 0:
            r.at = end
    return out


def _description(r: Reader) -> Bone:
    name = r.string() if r.version >= (2, 0) else ""
    number, parent = r.u32(), r.u32()
    offset = r.floats(3)
    if r.version >= (4, 2):
        r.take(16)
    if r.version >= (3, 0):
        markers = r.count()
        r.take(16 * markers)
        if r.version >= (4, 0):
            for _ in range(markers):
                r.string()
    return Bone(name, number, parent, offset)


# -- writing ----------------------------------------------------------------------------------------------------------------------


def packed(kind: int, body: bytes) -> bytes:
    """A message with its head."""
    return struct.pack("<HH", kind, len(body) & 0xFFFF) + body


def _section(version: Version, count: int, content: bytes) -> bytes:
    return struct.pack("<I", count) + (struct.pack("<I", len(content)) if version >= (4, 1) else b"") + content


def write_rigid_body(body: RigidBody, version: Version) -> bytes:
    """A rigid body or bone of a frame."""
    out = struct.pack("<I7f", body.number, *body.row)
    if version < (3, 0):
        out += struct.pack("<I", 0)
    out += struct.pack("<f", 0.0)
    return out + (struct.pack("<H", int(body.tracked)) if version >= (2, 6) else b"")


def write_frame(out: DataFrame, version: Version) -> bytes:
    """A frame without markers, plates and devices."""
    body = struct.pack("<I", out.number & 0xFFFFFFFF)
    body += _section(version, 0, b"") * 2
    body += _section(version, len(out.rigid_bodies), b"".join(write_rigid_body(b, version) for b in out.rigid_bodies))
    skeletons = b"".join(
        struct.pack("<II", number, len(bones)) + b"".join(write_rigid_body(b, version) for b in bones) for number, bones in out.skeletons
    )
    body += _section(version, len(out.skeletons), skeletons)
    empty = [(4, 1), (2, 3), (2, 9), (2, 11)]
    body += b"".join(_section(version, 0, b"") for since in empty if version >= since)
    body += struct.pack("<II", out.time_code, out.sub_frame)
    body += struct.pack("<d" if version >= (2, 7) else "<f", out.time)
    body += b"\0" * 24 if version >= (3, 0) else b""
    return packed(FRAME, body + struct.pack("<H", 0) + b"\0\0\0\0")


def write_bone(bone: Bone, version: Version) -> bytes:
    """A rigid body's description, without markers."""
    out = bone.name.encode()[:200] + b"\0" + struct.pack("<II3f", bone.number, bone.parent & 0xFFFFFFFF, *bone.offset)
    out += struct.pack("<4f", 0.0, 0.0, 0.0, 1.0) if version >= (4, 2) else b""
    return out + (struct.pack("<I", 0) if version >= (3, 0) else b"")


def write_model(content: Model, version: Version) -> bytes:
    """A model definition."""
    parts = [(1, write_bone(Bone(name, number, 0xFFFFFFFF, (0.0, 0.0, 0.0)), version)) for number, name in content.rigid_bodies.items()]
    for number, (name, bones) in content.skeletons.items():
        head = name.encode()[:200] + b"\0" + struct.pack("<II", number, len(bones))
        parts.append((2, head + b"".join(write_bone(b, version) for b in bones)))
    body = struct.pack("<I", len(parts))
    for kind, part in parts:
        body += struct.pack("<I", kind) + (struct.pack("<I", len(part)) if version >= (4, 1) else b"") + part
    return packed(MODEL, body)


def write_server_info(version: Version) -> bytes:
    """A server's greeting."""
    return packed(SERVER_INFO, b"Motive".ljust(256, b"\0") + bytes([3, 1, 0, 0, *version, 0, 0]))


def rows(bodies: list[RigidBody]) -> NDArray[np.float64]:
    """(N, 7)."""
    return np.array([b.row for b in bodies], dtype=np.float64).reshape(-1, 7)
