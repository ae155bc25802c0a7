# SPDX-License-Identifier: GPL-3.0-or-later
"""VRPN trackers over TCP (vrpn 07.x), port 3883: rigid bodies of any server, and ChingMu's performers.

Layout after the library's own Format_Of_Protocol.txt: a cookie, then messages with a header of 24 bytes and a payload padded to eight.
Types and senders are named by messages of their own and have other numbers on every connection.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..motion import kinematics, quat
from ..motion.skeleton import Skeleton
from . import body
from .axes import CHINGMU, OURS, Axes
from .base import MAX_REMAINDER, MAX_SOURCES, BaseDecoder, BrokenPacketError, UnknownPacketError, numbers
from .chingmu import BACKWARDS, system
from .chingmu_body import PARENTS, average, average_of, bends_backwards, joints
from .frame import NO_CURVES, Frame, Head, Sender, State

Array = NDArray[np.float64]
COOKIE = b"vrpn: ver. 07.35  0\0\0\0\0\0"
HEADER = struct.Struct(">5i4x")
POSE = struct.Struct(">i4x7d")
TRACKER, PING, PONG = "vrpn_Tracker Pos_Quat", "vrpn_Base ping_message", "vrpn_Base pong_message"
_SENDER, _TYPE = -1, -2
_MAX_MESSAGE = 1 << 16
_PER_HUMAN = 150


class Message(NamedTuple):
    """A message without its padding."""

    seconds: int
    microseconds: int
    sender: int
    kind: int
    payload: bytes

    @property
    def time(self) -> float:
        """Seconds of the server's clock."""
        return self.seconds + self.microseconds * 1e-6


@dataclass
class Body:
    """A performer of ChingMu's, joint by joint."""

    time: float = 0.0
    turns: Array = field(default_factory=lambda: quat.identity(63))
    root: Array = field(default_factory=lambda: np.zeros(3))
    seen: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(63, dtype=bool))
    hands: bool = False
    settled: bool = False


@dataclass
class VrpnState(State):
    """Names of this connection's senders and types. Options: ``unit`` "m" or "mm"; ``base`` and ``facing`` of ChingMu's."""

    senders: dict[int, str] = field(default_factory=dict[int, str])
    kinds: dict[int, str] = field(default_factory=dict[int, str])
    millimetres: bool | None = None
    bodies: dict[str, Body] = field(default_factory=dict[str, Body])
    first: dict[str, tuple[Array, float]] = field(default_factory=dict[str, tuple[Array, float]])
    greeted: bool = False


class Vrpn(BaseDecoder):
    name = "vrpn"
    title = "VRPN"
    default_port = 3883
    transports = ("tcp",)
    stands_alone = False

    def state(self) -> VrpnState:
        return VrpnState()

    def recognises(self, data: bytes) -> bool:
        return data[:11] == COOKIE[:11]

    def messages(self, chunk: bytes, state: State) -> list[bytes]:
        buffer = state.remainder + chunk
        out: list[bytes] = []
        at = 0
        while len(buffer) - at >= 24:
            if buffer[at : at + 11] == COOKIE[:11]:
                out.append(buffer[at : at + 24])
                at += 24
                continue
            size = int.from_bytes(buffer[at : at + 4], "big", signed=True)
            if not 24 <= size <= _MAX_MESSAGE:
                state.counts.broken += 1
                found = buffer.find(b"\0\0\0\x58", at + 1)  # most messages are poses, 88 bytes long
                if found < 0:
                    at = len(buffer)
                    break
                at = found
                continue
            padded = (size + 7) // 8 * 8
            if len(buffer) - at < padded:
                break
            out.append(buffer[at : at + size])
            at += padded
        state.remainder = buffer[at:][-MAX_REMAINDER:]
        return out

    def heads(self, data: bytes, state: State) -> list[Head]:
        assert isinstance(state, VrpnState)
        message = _message(data)
        if message is None or state.kinds.get(message.kind) != TRACKER or len(message.payload) < POSE.size:
            return []
        (sensor,) = struct.unpack_from(">i", message.payload)
        human = _human_of(message, sensor, state)
        if human is None:
            return [Head(_source(message, sensor, state), "prop", None, message.time)]
        return [Head(human[0], "body", None, message.time, whole=False)]

    def read(self, data: bytes, state: State) -> list[Frame]:
        assert isinstance(state, VrpnState)
        message = _message(data)
        if message is None:
            return []
        if message.kind < 0:
            _described(message, state)
            return []
        kind = state.kinds.get(message.kind)
        if kind != TRACKER:
            if kind is None:
                raise UnknownPacketError("a type that was not named")
            state.counts.ignored += 1
            return []
        if len(message.payload) < POSE.size:
            raise BrokenPacketError("a pose is cut off")
        sensor, *values = POSE.unpack_from(message.payload)
        row = np.array(values)
        square = float(row[3:] @ row[3:])
        if not (0.81 < square < 1.21 and np.abs(row[:3]).max() < 1e8):
            raise BrokenPacketError("no transform of a body")
        row[3:] /= square**0.5
        human = _human_of(message, sensor, state)
        return _rigid(message, sensor, row, state) if human is None else _joint(message, human, row, state)

    def flush(self, state: State) -> list[Frame]:
        """What has come of performers' frames, after a silence."""
        assert isinstance(state, VrpnState)
        return [_emit(source, found, state) for source, found in state.bodies.items() if found.seen.any()]

    def answers(self, data: bytes, state: State) -> bytes:
        """What a client has to send back: its cookie and names after the server's cookie, a pong for a ping."""
        assert isinstance(state, VrpnState)
        if data[:11] == COOKIE[:11]:
            if state.greeted:
                return b""
            state.greeted = True
            return COOKIE + _named(_SENDER, 0, "mocap") + _named(_TYPE, 0, PONG)
        message = _message(data)
        if message is not None and message.kind >= 0 and state.kinds.get(message.kind) == PING:
            return packed(message.seconds, message.microseconds, 0, 0, b"")
        return b""

    def skeleton(self, source: str, state: State) -> Skeleton | None:
        assert isinstance(state, VrpnState)
        pose = state.first.get(source)
        return None if pose is None else body.scaled_to_pose(average(len(pose[0])), *pose)

    def standard(self, joints: Sequence[str] = ()) -> Skeleton:
        return average_of(joints)

    def encode(self, frames: Sequence[Frame], sender: Sender) -> list[bytes]:
        """What ChingMu's server sends: cookie and names with moment 0, then a message a prop and a joint."""
        out: list[bytes] = []
        if sender.number == 0:
            out = [COOKIE, _named(_SENDER, 0, "MCServer"), _named(_SENDER, 1, "MCAvatar"), _named(_TYPE, 5, TRACKER)]
        seconds = int(sender.time)
        stamp = (seconds, round((sender.time - seconds) * 1e6))
        props = [f for f in frames if f.kind == "prop" and f.rotations is not None and f.positions is not None]
        humans = [f for f in frames if f.kind == "body" and f.rotations is not None and f.positions is not None]
        for frame, sensor in zip(props, numbers([f.source.rpartition("/")[2] for f in props], 100), strict=True):
            assert frame.rotations is not None and frame.positions is not None
            out.append(_pose(stamp, 0, sensor, CHINGMU.points_back(frame.positions[0]) * 1000.0, CHINGMU.to_xyzw(frame.rotations[0])))
        for human, frame in enumerate(humans):
            assert frame.rotations is not None and frame.positions is not None
            names = joints(len(frame.joints))
            at = [frame.joints.index(n) for n in names if n in frame.joints]
            if len(at) != len(names):
                continue
            above = np.array(PARENTS[: len(names)], dtype=np.int64)
            local, _ = kinematics.inverse(frame.rotations[at], np.zeros((len(at), 3)), above)
            places = np.zeros((len(at), 3))
            places[0] = CHINGMU.points_back(frame.positions[at[0]]) * 1000.0
            turns = CHINGMU.to_xyzw(local)
            out += [_pose(stamp, 1, 100 + _PER_HUMAN * human + j, places[j], turns[j]) for j in range(len(at))]
        return out


def _message(data: bytes) -> Message | None:
    """A message; None for the cookie."""
    if data[:11] == COOKIE[:11]:
        return None
    if len(data) < 24:
        raise BrokenPacketError("a message is cut off")
    size, seconds, microseconds, sender, kind = HEADER.unpack_from(data)
    if not 24 <= size <= len(data):
        raise BrokenPacketError("a message's length is wrong")
    return Message(seconds, microseconds, sender, kind, data[24:size])


def packed(seconds: int, microseconds: int, sender: int, kind: int, payload: bytes) -> bytes:
    """A message with its padding."""
    return HEADER.pack(24 + len(payload), seconds, microseconds, sender, kind) + payload + b"\0" * (-len(payload) % 8)


def _named(kind: int, number: int, name: str) -> bytes:
    raw = name.encode() + b"\0"
    return packed(0, 0, number, kind, struct.pack(">i", len(raw)) + raw)


def _pose(stamp: tuple[int, int], sender: int, sensor: int, place: Array, turn: Array) -> bytes:
    return packed(*stamp, sender, 5, struct.pack(">ii", sensor, sensor) + struct.pack(">7d", *place.tolist(), *turn.tolist()))


def _described(message: Message, state: VrpnState) -> None:
    table = {_SENDER: state.senders, _TYPE: state.kinds}.get(message.kind)
    if table is None:
        state.counts.ignored += 1
        return
    if len(message.payload) < 4:
        raise BrokenPacketError("a name is cut off")
    size = int.from_bytes(message.payload[:4], "big")
    if size > len(message.payload) - 4 or size > 256:
        raise BrokenPacketError("a name is cut off")
    if message.sender in table or len(table) < MAX_SOURCES:
        table[message.sender] = message.payload[4 : 4 + size].partition(b"\0")[0].decode("utf-8", "replace")


def _source(message: Message, sensor: int, state: VrpnState) -> str:
    return f"{state.senders.get(message.sender, message.sender)}/{sensor}"


def _human_of(message: Message, sensor: int, state: VrpnState) -> tuple[str, int] | None:
    """Performer and joint of a sensor, where the sender is ChingMu's avatar server."""
    name = state.senders.get(message.sender, "")
    first = int(str(state.options.get("base", 100)))
    if not name.startswith("MCAvatar") or sensor < first:
        return None
    human, joint = divmod(sensor - first, _PER_HUMAN)
    return f"{name}/{human}", joint


def _system(message: Message, row: Array, state: VrpnState) -> tuple[Axes, float]:
    """ChingMu's axes and millimetres for its own servers; else the project's axes, and millimetres where a place is farther than 20."""
    if state.senders.get(message.sender, "").startswith(("MCServer", "MCAvatar")):
        return system(state.options), 0.001
    unit = state.options.get("unit")
    if unit in ("m", "mm"):
        return OURS, 0.001 if unit == "mm" else 1.0
    if state.millimetres is None and float(np.abs(row[:3]).max()) > 20.0:
        state.millimetres = True
        state.note("Lengths are taken as millimetres: a tracker stands more than 20 units away.")
    return OURS, 0.001 if state.millimetres else 1.0


def _rigid(message: Message, sensor: int, row: Array, state: VrpnState) -> list[Frame]:
    axes, unit = _system(message, row, state)
    source = _source(message, sensor, state)
    place = axes.points(row[None, :3]) * unit
    if not np.abs(place).max() < 1e5:
        raise BrokenPacketError("a place is out of any room")
    return [Frame(source, "prop", None, message.time, (source,), place, axes.from_xyzw(row[None, 3:]), name=source)]


def _joint(message: Message, human: tuple[str, int], row: Array, state: VrpnState) -> list[Frame]:
    """Let a joint in; the performer's frame is whole when a joint comes again or another time begins."""
    source, joint = human
    if joint >= 63:
        state.counts.ignored += 1
        return []
    found = state.bodies.get(source)
    if found is None:
        if len(state.bodies) >= MAX_SOURCES:
            state.counts.ignored += 1
            return []
        found = state.bodies[source] = Body(message.time)
    out: list[Frame] = []
    if found.seen.any() and (found.seen[joint] or found.time != message.time):
        out.append(_emit(source, found, state))
        found.settled = True
    found.time = message.time
    if joint >= 23 and not found.hands:
        found.hands, found.settled = True, False
    axes = system(state.options)
    found.turns[joint] = axes.from_xyzw(row[3:])
    found.seen[joint] = True
    if joint == 0:
        found.root = axes.points(row[:3]) * 0.001
    if found.settled and found.seen[: 63 if found.hands else 23].all():
        out.append(_emit(source, found, state))
    return out


def _emit(source: str, found: Body, state: VrpnState) -> Frame:
    count = 63 if found.hands else 23
    names = joints(count)
    places = np.full((count, 3), np.nan)
    places[0] = found.root
    seen = found.seen[:count]
    valid = None if seen.all() else seen.copy()
    found.seen = np.zeros(63, dtype=bool)
    turns = found.turns[:count].copy()
    if bends_backwards(turns):
        state.note(BACKWARDS)
    if source not in state.first or len(state.first[source][0]) != count:
        state.first[source] = (turns, float(found.root[2]))
    return Frame(source, "body", None, found.time, names, places, turns, "local", NO_CURVES, None, valid, source)
