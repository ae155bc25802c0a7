# SPDX-License-Identifier: GPL-3.0-or-later
"""Noitom Axis Studio and Axis Neuron: BVH values broadcast over UDP or TCP, binary (both headers) or text, port 7001.

59 joints depth first, centimetres and degrees; local to the parent as in a BVH file, whose rest is a T-pose. The order of the angles is a
setting of the sender that no packet tells: YXZ unless option ``order`` says otherwise.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..motion import kinematics, quat
from ..motion.skeleton import Skeleton
from . import body
from .axes import Y_UP
from .base import MAX_REMAINDER, MAX_SOURCES, BaseDecoder, BrokenPacketError, UnknownPacketError, numbers
from .frame import NO_CURVES, Frame, Head, Sender, State
from .noitom_body import Layout, average, layout

Array = NDArray[np.float64]
NEW = struct.Struct("<HIHBBI32sIIIIH")
OLD = struct.Struct("<HIIIII32sIIH")
FIRST, LAST = 0xDDFF, 0xEEFF
_TEXT = re.compile(rb"\s*(\d{1,9})\s+(\S{1,64})\s+(-?[\d.][^|]*)\|\|")
_ORDERS = frozenset(("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"))


class Packet(NamedTuple):
    """One avatar's values. ``number`` is None where the header has none (the old one, and texts)."""

    old: bool
    size: int
    displacement: bool
    reference: bool
    avatar: int
    name: bytes
    number: int | None


@dataclass
class NoitomState(State):
    """Options: ``order`` of the angles; ``old`` (four spines, one neck), else by the header. The first displacements are the bones."""

    offsets: dict[int, tuple[Layout, Array]] = field(default_factory=dict[int, tuple[Layout, Array]])
    layouts: dict[int, Layout] = field(default_factory=dict[int, Layout])
    first: dict[int, tuple[Array, float]] = field(default_factory=dict[int, tuple[Array, float]])

    @property
    def order(self) -> str:
        """The order of the angles."""
        order = str(self.options.get("order", "YXZ")).upper()
        return order if order in _ORDERS else "YXZ"


class Noitom(BaseDecoder):
    name = "noitom"
    title = "Noitom Axis"
    default_port = 7001
    transports = ("udp", "tcp")

    def state(self) -> NoitomState:
        return NoitomState()

    def recognises(self, data: bytes) -> bool:
        if data[:2] == b"\xff\xdd":
            return len(data) >= 64 and data[62:64] == b"\xff\xee"
        return data[:4] == b"CCCC" or _TEXT.match(data) is not None

    def messages(self, chunk: bytes, state: State) -> list[bytes]:
        buffer = state.remainder + chunk
        out: list[bytes] = []
        at = 0
        while True:
            if buffer[at : at + 2] == b"\xff\xdd":
                if len(buffer) - at < 64:
                    break
                head = _head(buffer[at : at + 64])
                if head is not None:
                    size = 64 + 4 * head.size
                    if len(buffer) - at < size:
                        break
                    out.append(buffer[at : at + size])
                    at += size
                    continue
            else:
                end = buffer.find(b"||", at, at + 65536)
                binary = buffer.find(b"\xff\xdd", at)
                if end >= 0 and (binary < 0 or end < binary) and buffer[at : at + 1].isdigit():
                    out.append(buffer[at : end + 2])
                    at = end + 2
                    while buffer[at : at + 1] in (b"\n", b"\r", b" "):
                        at += 1
                    continue
                if binary < 0 and buffer[at : at + 1].isdigit() and len(buffer) - at < 65536:
                    break
            found = buffer.find(b"\xff\xdd", at + 1)
            if found < 0:
                at = max(at, len(buffer) - 1) if buffer[-1:] == b"\xff" else len(buffer)
                break
            state.counts.unknown += 1
            at = found
        state.remainder = buffer[at:][-MAX_REMAINDER:]
        return out

    def heads(self, data: bytes, state: State) -> list[Head]:
        head = _head(data)
        if head is None:
            match = _TEXT.match(data)
            return [Head(str(int(match.group(1))), "body", None, None)] if match else []
        return [Head(str(head.avatar), "body", head.number, None)]

    def read(self, data: bytes, state: State) -> list[Frame]:
        assert isinstance(state, NoitomState)
        head = _head(data)
        if head is not None:
            if len(data) < 64 + 4 * head.size:
                raise BrokenPacketError("the values are cut off")
            values = np.frombuffer(data, "<f4", head.size, 64).astype(np.float64)
            return _frames(head, values[None], [head.number], state)
        match = _TEXT.match(data)
        if match is not None:
            return _text(match, state)
        if data[:4] == b"CCCC":
            state.counts.ignored += 1
            state.note("Advanced BVH of Axis Studio is not read; switch its BVH broadcasting to the plain binary format.")
            return []
        raise UnknownPacketError("no header of Axis")

    def decode_all(self, packets: Sequence[bytes], state: State) -> list[list[Frame]]:
        """Many datagrams in order: those of one avatar and kind are read all at once."""
        assert isinstance(state, NoitomState)
        out: list[list[Frame]] = [[] for _ in packets]
        groups: dict[tuple[object, ...], list[tuple[int, Packet]]] = {}
        for i, data in enumerate(packets):
            head = _head(data)
            if head is None or len(data) != 64 + 4 * head.size:
                out[i] = self.decode(data, state)
            else:
                groups.setdefault(head[:6], []).append((i, head))
        for members in groups.values():
            head = members[0][1]
            values = np.frombuffer(b"".join(packets[i][64:] for i, _ in members), "<f4").reshape(len(members), head.size)
            try:
                with np.errstate(all="ignore"):
                    frames = _frames(head, values.astype(np.float64), [h.number for _, h in members], state)
            except BrokenPacketError:
                for i, _ in members:
                    out[i] = self.decode(packets[i], state)
                continue
            state.counts.packets += len(members)
            state.counts.frames += len(members)
            for (i, _), frame in zip(members, frames, strict=True):
                out[i] = [frame]
        return out

    def skeleton(self, source: str, state: State) -> Skeleton | None:
        assert isinstance(state, NoitomState)
        avatar = int(source) if source.isdigit() else -1
        lay = state.layouts.get(avatar)
        if lay is None:
            return None
        known = state.offsets.get(avatar)
        if known is None:
            return body.scaled_to_pose(average("Spine3" in lay.names, len(lay.names) > 21), *state.first[avatar])
        return body.from_offsets(lay.names, lay.parents, known[1], body.lowest(state.first[avatar][0], known[1], lay.parents))

    def standard(self, joints: Sequence[str] = ()) -> Skeleton:
        return average("Spine3" in joints, any("Thumb" in n for n in joints))

    def encode(self, frames: Sequence[Frame], sender: Sender) -> list[bytes]:
        """Options: ``displacement`` False, ``reference`` True, ``old`` True (header of Axis Neuron), ``text`` True, ``order``."""
        bodies = [f for f in frames if f.kind == "body" and f.rotations is not None and f.positions is not None]
        avatars = numbers([f.source for f in bodies], 1 << 30)
        return [_packed(f, avatar, sender) for f, avatar in zip(bodies, avatars, strict=True)]


def _head(data: bytes) -> Packet | None:
    """A binary header of either kind; None when it is none. The minor version tells them apart: 0 is the old one."""
    if len(data) < 64 or data[:2] != b"\xff\xdd" or data[62:64] != b"\xff\xee":
        return None
    if data[4] == 0:
        _, _, count, displacement, reference, avatar, name, _, _, _ = OLD.unpack_from(data)
        return Packet(True, count & 0xFFFF, bool(displacement), bool(reference), avatar, name, None)
    _, _, count, displacement, reference, avatar, name, number, _, _, _, _ = NEW.unpack_from(data)
    return Packet(False, count, bool(displacement), bool(reference), avatar, name, number)


def _text(match: re.Match[bytes], state: NoitomState) -> list[Frame]:
    try:
        values = np.array(match.group(3).split(), dtype=np.float64)
    except ValueError:
        raise BrokenPacketError("a number in the text is damaged") from None
    head = Packet(False, len(values), len(values) not in (180, 186), len(values) in (360, 186), int(match.group(1)), match.group(2), None)
    return _frames(head, values[None], [None], state)


def _frames(head: Packet, values: Array, counts: Sequence[int | None], state: NoitomState) -> list[Frame]:
    """``values (F, count)`` of one avatar -> F frames."""
    if head.reference:
        values = values[:, 6:]
    joints = values.shape[1] // 6 if head.displacement else (values.shape[1] - 3) // 3
    if joints not in (59, 21) or values.shape[1] != (6 * joints if head.displacement else 3 + 3 * joints):
        raise BrokenPacketError("values for another number of joints than 59 or 21")
    if not (values.min() > -1e6 and values.max() < 1e6):
        raise BrokenPacketError("a value is not finite")
    lay = layout(bool(state.options.get("old", head.old)), joints == 59)
    f = len(values)
    places = np.full((f, joints, 3), np.nan)
    if head.displacement:
        table = values.reshape(f, joints, 6)
        places[:], angles = Y_UP.points(table[:, :, :3]) * 0.01, table[:, :, 3:]
    else:
        places[:, 0] = Y_UP.points(values[:, :3]) * 0.01
        angles = values[:, 3:].reshape(f, joints, 3)
    turns = Y_UP.from_wxyz(_turns(angles, state.order))
    avatar = head.avatar
    if avatar in state.layouts or len(state.layouts) < MAX_SOURCES:
        if state.layouts.get(avatar) is not lay:
            state.layouts[avatar], state.first[avatar] = lay, (turns[0], float(places[0, 0, 2]))
            state.offsets.pop(avatar, None)
        if head.displacement and avatar not in state.offsets:
            state.offsets[avatar] = (lay, places[0])
    source = str(avatar)
    name = head.name.partition(b"\0")[0].decode("utf-8", "replace").strip() or source
    return [
        Frame(source, "body", number, None, lay.names, places[i], turns[i], "local", NO_CURVES, None, None, name)
        for i, number in enumerate(counts)
    ]


def _turns(angles: Array, order: str) -> Array:
    """Degrees ``(F, J, 3)`` in the order of their turns -> quaternions; three quarter-turn products multiplied out by components."""
    half = np.ascontiguousarray(np.moveaxis(angles, 2, 0)) * (np.pi / 360.0)
    c, s = np.cos(half), np.sin(half)
    i, j, k = ("XYZ".index(a) for a in order)
    sign = 1.0 if (i, j, k) in ((0, 1, 2), (1, 2, 0), (2, 0, 1)) else -1.0
    cc, ss, cs, sc = c[0] * c[1], s[0] * s[1], c[0] * s[1], s[0] * c[1]
    out = np.empty((*angles.shape[:2], 4))
    out[..., 0] = cc * c[2] - sign * ss * s[2]
    out[..., 1 + i] = sc * c[2] + sign * cs * s[2]
    out[..., 1 + j] = cs * c[2] - sign * sc * s[2]
    out[..., 1 + k] = cc * s[2] + sign * ss * c[2]
    return out


def _complete(frame: Frame, lay: Layout) -> tuple[Array, Array]:
    """Rotations and places of all 59; those that the frame lacks go with the one above them, at an average person's distance."""
    assert frame.rotations is not None and frame.positions is not None
    at = {n: i for i, n in enumerate(frame.joints)}
    if all(n in at for n in lay.names):
        order = [at[n] for n in lay.names]
        if np.isfinite(frame.positions[order]).all():
            return frame.rotations[order], frame.positions[order]
    turns, places = np.zeros((len(lay.names), 4)), np.zeros((len(lay.names), 3))
    standard = average("Spine3" in lay.names)
    for j, (name, p) in enumerate(zip(lay.names, lay.parents, strict=True)):
        if name in at:
            turns[j], places[j] = frame.rotations[at[name]], frame.positions[at[name]]
        else:
            turns[j] = turns[p] if p >= 0 else quat.IDENTITY
        if name not in at or not np.isfinite(places[j]).all():
            places[j] = standard.rest_translations[j] if p < 0 else places[p] + quat.rotate(turns[p], standard.rest_translations[j])
    return turns, places


def _packed(frame: Frame, avatar: int, sender: Sender) -> bytes:
    options = sender.options
    old = bool(options.get("old"))
    lay = layout("Spine3" in frame.joints or (old and "Neck1" not in frame.joints))
    assert frame.rotations is not None and frame.positions is not None
    turns, places = _complete(frame, lay)
    local_r, local_p = kinematics.inverse(turns, places, np.array(lay.parents, dtype=np.int64))
    order = str(options.get("order", "YXZ"))
    angles = np.degrees(quat.to_euler(Y_UP.to_wxyz(local_r), order))
    offsets = Y_UP.points_back(local_p) * 100.0
    with_places = options.get("displacement", True) is not False
    values = np.hstack([offsets, angles]).ravel() if with_places else np.concatenate([offsets[0], angles.ravel()])
    if options.get("reference"):
        values = np.concatenate([np.zeros(6), values])
    name = (frame.name or frame.source).encode("utf-8")[:31]
    if options.get("text"):
        return (
            f"{avatar} {name.decode('utf-8', 'replace').replace(' ', '_')} ".encode()
            + " ".join(f"{v:.4f}" for v in values).encode()
            + b" ||"
        )
    flags = (int(with_places), int(bool(options.get("reference"))))
    if old:
        head = OLD.pack(FIRST, 0x01000000, len(values), *flags, avatar, name, 0, 0, LAST)
    else:
        head = NEW.pack(FIRST, 0x01010000, len(values), *flags, avatar, name, sender.number & 0xFFFFFFFF, 0, 0, 0, LAST)
    return head + values.astype("<f4").tobytes()
