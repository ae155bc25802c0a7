# SPDX-License-Identifier: GPL-3.0-or-later
"""OptiTrack Motive: NatNet 2.3 to 4.x over UDP (multicast 239.255.42.99), data port 1511, commands 1510.

Bones count from Motive's T-pose, metres, Y up (option ``up`` "z" where Motive is set so). Whether bones are given in the world or in their
parents is a setting: told by comparing the frame with the described offsets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..motion import kinematics
from ..motion.skeleton import Skeleton
from . import body
from . import natnet_wire as wire
from .axes import OURS, Y_UP, Axes
from .base import MAX_SOURCES, BaseDecoder, BrokenPacketError, UnknownPacketError
from .frame import NO_CURVES, Frame, Head, Sender, State
from .natnet_body import CORE, PARENTS, average
from .natnet_wire import Bone, DataFrame, Model, RigidBody, Version

Array = NDArray[np.float64]


@dataclass
class Described:
    """A skeleton's joints, as frames send them."""

    name: str
    numbers: tuple[int, ...]
    names: tuple[str, ...]
    parents: tuple[int, ...]
    offsets: Array | None
    local: bool | None = None


@dataclass
class NatNetState(State):
    """What was described. Options: ``version`` "4.1", ``up`` "y" or "z", ``space`` "global" or "local"."""

    version: Version | None = None
    rigid_bodies: dict[int, str] = field(default_factory=dict[int, str])
    skeletons: dict[int, Described] = field(default_factory=dict[int, Described])
    poses: dict[str, tuple[Array, Array]] = field(default_factory=dict[str, tuple[Array, Array]])

    @property
    def axes(self) -> Axes:
        """Motive's, as it is set."""
        return OURS if self.options.get("up") == "z" else Y_UP


class NatNet(BaseDecoder):
    name = "natnet"
    title = "OptiTrack NatNet"
    default_port = 1511

    def state(self) -> NatNetState:
        return NatNetState()

    def recognises(self, data: bytes) -> bool:
        if len(data) < 8 or data[1] or data[0] not in (wire.SERVER_INFO, wire.MODEL, wire.FRAME):
            return False
        return abs(len(data) - 4 - int.from_bytes(data[2:4], "little")) in (0, 65536)

    def request(self) -> bytes:
        """What to send to the command port: asks for the model definitions."""
        return wire.packed(wire.REQUEST_MODEL, b"\0")

    def greeting(self) -> bytes:
        """What to send to the command port first: the server answers with its version."""
        return wire.packed(wire.PING, b"Ping\0")

    def heads(self, data: bytes, state: State) -> list[Head]:
        assert isinstance(state, NatNetState)
        if not self.recognises(data) or data[0] != wire.FRAME:
            return []
        found, _ = _frame(data, state)
        named = {n: d.name for n, d in state.skeletons.items()}
        return [Head(named.get(n, str(n)), "body", found.number, found.time) for n, _ in found.skeletons]

    def read(self, data: bytes, state: State) -> list[Frame]:
        assert isinstance(state, NatNetState)
        if not self.recognises(data):
            raise UnknownPacketError("no NatNet")
        if data[0] == wire.SERVER_INFO:
            found = wire.server_version(data)
            if not (2, 1) <= found < (5, 0):
                raise BrokenPacketError("a version nobody knows")
            state.version = found
            return []
        if data[0] == wire.MODEL:
            _learn(data, state)
            return []
        found, version = _frame(data, state)
        state.version = version
        return _frames(found, state)

    def skeleton(self, source: str, state: State) -> Skeleton | None:
        assert isinstance(state, NatNetState)
        known = next((d for d in state.skeletons.values() if d.name == source), None)
        if known is None:
            return None
        if known.offsets is not None:
            shown = state.poses.get(source)
            low = 0.02 if shown is None else float(shown[0][:, 2].min())
            return body.from_offsets(known.names, known.parents, state.axes.points(known.offsets), low)
        pose = state.poses.get(source)
        return None if pose is None else body.measured(known.names, known.parents, *pose)

    def standard(self, joints: Sequence[str] = ()) -> Skeleton:
        return average()

    def encode(self, frames: Sequence[Frame], sender: Sender) -> list[bytes]:
        """Greeting and model once a second, then the frame. Options: ``version`` "4.1" (default), ``up``, ``space`` "local"."""
        version = _version(sender.options.get("version", "4.1"))
        axes = OURS if sender.options.get("up") == "z" else Y_UP
        out = DataFrame(sender.number, time=sender.time)
        model = Model()
        for i, frame in enumerate(f for f in frames if f.kind == "prop" and f.rotations is not None and f.positions is not None):
            assert frame.rotations is not None and frame.positions is not None
            model.rigid_bodies[i + 1] = frame.source
            row = np.concatenate([axes.points_back(frame.positions[0]), axes.to_xyzw(frame.rotations[0])])
            out.rigid_bodies.append(RigidBody(i + 1, tuple(row.tolist()), True))
        for i, frame in enumerate(f for f in frames if f.kind == "body" and f.rotations is not None and f.positions is not None):
            _add_body(frame, i + 1, out, model, sender, axes)
            code = (frame.time_code or "").replace(";", ":").split(":")
            if len(code) == 4 and all(part.isdigit() for part in code):
                out.time_code = int.from_bytes(bytes(min(255, int(part)) for part in code), "big")
        packets = [wire.write_frame(out, version)]
        if sender.number % max(1, round(sender.rate)) == 0:
            packets = [wire.write_server_info(version), wire.write_model(model, version), *packets]
        return packets


def _version(text: object) -> Version:
    major, _, minor = str(text).partition(".")
    return (int(major), int(minor or 0)) if major.isdigit() and (minor or "0").isdigit() else (4, 1)


def _frame(data: bytes, state: NatNetState) -> tuple[DataFrame, Version]:
    """The frame, read as the known version or as the first that fits."""
    chosen = state.options.get("version")
    known = _version(chosen) if chosen is not None else state.version
    for version in (known,) if known is not None else wire.VERSIONS:
        try:
            return wire.frame(data, version), version
        except BrokenPacketError:
            continue
    raise BrokenPacketError("a frame of no version that is known")


def _learn(data: bytes, state: NatNetState) -> None:
    known = (state.version,) if state.version is not None else wire.VERSIONS
    model: Model | None = None
    for version in known:
        try:
            model = wire.model(data, version)
            break
        except BrokenPacketError:
            continue
    if model is None:
        raise BrokenPacketError("a model definition of no version that is known")
    for number, name in list(model.rigid_bodies.items())[:MAX_SOURCES]:
        if number in state.rigid_bodies or len(state.rigid_bodies) < MAX_SOURCES:
            state.rigid_bodies[number] = name
    for number, (name, bones) in list(model.skeletons.items())[:MAX_SOURCES]:
        made = _described(name or str(number), bones)
        if made is not None and (number in state.skeletons or len(state.skeletons) < MAX_SOURCES):
            state.skeletons[number] = made


def _described(name: str, bones: list[Bone]) -> Described | None:
    if not bones or len(bones) > 256:
        return None
    numbers = [b.number & 0xFFFF for b in bones]
    names: list[str] = []
    for i, bone in enumerate(bones):
        short = bone.name.removeprefix(f"{name}_") or f"Bone{i + 1}"
        names.append(short if short not in names else f"{short}_{i}")
    parents = [numbers.index(b.parent & 0xFFFF) if b.parent & 0xFFFF in numbers and b.parent not in (0, 0xFFFFFFFF) else -1 for b in bones]
    if any(p >= i for i, p in enumerate(parents)) or len(set(numbers)) != len(numbers):
        return None
    offsets = np.array([b.offset for b in bones], dtype=np.float64)
    if not np.abs(offsets).max() < 1e4:
        return None
    return Described(name, tuple(numbers), tuple(names), tuple(parents), offsets)


def _frames(found: DataFrame, state: NatNetState) -> list[Frame]:
    out: list[Frame] = []
    time = found.time if abs(found.time) < 1e12 else None
    code = _code(found.time_code)
    for number, bones in found.skeletons[:MAX_SOURCES]:
        frame = _body(number, bones, found.number, time, code, state)
        out += [] if frame is None else [frame]
    for rigid in found.rigid_bodies[:MAX_SOURCES]:
        row = np.array([rigid.row])
        square = float(row[0, 3:] @ row[0, 3:])
        if not (0.81 < square < 1.21 and np.abs(row[0, :3]).max() < 1e5):
            state.counts.broken += bool(rigid.tracked)
            continue
        name = state.rigid_bodies.get(rigid.number, f"RigidBody{rigid.number}")
        turn = state.axes.from_xyzw(row[:, 3:] / square**0.5)
        valid = None if rigid.tracked else np.array([False])
        place = state.axes.points(row[:, :3])
        out.append(Frame(name, "prop", found.number, time, (name,), place, turn, "global", NO_CURVES, code, valid, name))
    return out


def _code(word: int) -> str | None:
    if not word:
        return None
    return f"{word >> 24:02d}:{word >> 16 & 255:02d}:{word >> 8 & 255:02d}:{word & 255:02d}"


def _body(number: int, bones: list[RigidBody], count: int, time: float | None, code: str | None, state: NatNetState) -> Frame | None:
    known = state.skeletons.get(number)
    if known is None:
        if len(bones) != len(CORE) or len(state.skeletons) >= MAX_SOURCES:
            state.counts.ignored += 1
            state.note("Skeletons wait for their description: let Motive send it, or check that its command port can be reached.")
            return None
        numbers = tuple(b.number & 0xFFFF for b in bones)
        known = state.skeletons[number] = Described(str(number), numbers, CORE, PARENTS, None, False)
    if tuple(b.number & 0xFFFF for b in bones) != known.numbers:
        state.counts.broken += 1
        return None
    rows = wire.rows(bones)
    square = np.einsum("ij,ij->i", rows[:, 3:], rows[:, 3:])
    good = (square > 0.81) & (square < 1.21) & (np.abs(rows[:, :3]) < 1e5).all(axis=1)
    if not good.all():
        state.counts.broken += 1
        return None
    places, turns = state.axes.points(rows[:, :3]), state.axes.from_xyzw(rows[:, 3:] / np.sqrt(square)[:, None])
    if known.local is None:
        known.local = _is_local(rows[:, :3], known, state)
    if not known.local and known.name not in state.poses and len(state.poses) < MAX_SOURCES:
        state.poses[known.name] = (places, turns)
    tracked = np.array([b.tracked for b in bones])
    valid = None if tracked.all() else tracked
    space = "local" if known.local else "global"
    return Frame(known.name, "body", count, time, known.names, places, turns, space, NO_CURVES, code, valid, known.name)


def _is_local(sent: Array, known: Described, state: NatNetState) -> bool:
    chosen = state.options.get("space")
    if chosen in ("global", "local"):
        return chosen == "local"
    if known.offsets is None or len(sent) < 2:
        return False
    inner = [j for j, p in enumerate(known.parents) if p >= 0]
    return float(np.median(np.abs(sent[inner] - known.offsets[inner]).max(axis=1))) < 0.01


def _add_body(frame: Frame, number: int, out: DataFrame, model: Model, sender: Sender, axes: Axes) -> None:
    assert frame.rotations is not None and frame.positions is not None
    names = [n for n in CORE if n in frame.joints] or list(frame.joints)
    at = [frame.joints.index(n) for n in names]
    above = [_above(n, names) for n in names]
    turns, places = frame.rotations[at], np.nan_to_num(frame.positions[at])
    skeleton = sender.skeletons.get(frame.source)
    local_r, local_p = kinematics.inverse(turns, places, np.array(above, dtype=np.int64))
    offsets = axes.points_back(local_p)
    if skeleton is not None and all(n in skeleton for n in names):
        rest = skeleton.rest_global_positions[[skeleton.index(n) for n in names]]
        offsets = axes.points_back(np.array([rest[j] - rest[p] if p >= 0 else rest[j] for j, p in enumerate(above)]))
    if sender.options.get("space") == "local":
        turns, places = local_r, local_p
    rows = np.hstack([axes.points_back(places), axes.to_xyzw(turns)])
    out.skeletons.append((number, [RigidBody(number << 16 | j + 1, tuple(row), True) for j, row in enumerate(rows.tolist())]))
    described = [Bone(f"{frame.source}_{n}", j + 1, above[j] + 1, tuple(offsets[j].tolist())) for j, n in enumerate(names)]
    model.skeletons[number] = (frame.source, described)


def _above(name: str, names: Sequence[str]) -> int:
    if name not in CORE:
        return -1
    p = PARENTS[CORE.index(name)]
    while p >= 0 and CORE[p] not in names:
        p = PARENTS[p]
    return names.index(CORE[p]) if p >= 0 else -1
