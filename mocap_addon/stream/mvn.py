# SPDX-License-Identifier: GPL-3.0-or-later
"""Xsens / Movella MVN: the network streamer (MXTP 01, 02, 05, 12, 13, 20 to 25), port 9763, UDP or TCP.

Types 01 and 02 give global orientations that are identity in T-pose; 05 (for Unity) gives local ones. The specification says centimetres,
the program sends metres; what is sent is told by the distance of pelvis and head. Which axis points up is told by where the spine begins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ..motion.skeleton import Skeleton
from . import body, mvn_extra, mvn_pose, mvn_send, mvn_wire
from .axes import MVN
from .base import MAX_REMAINDER, BaseDecoder, BrokenPacketError, UnknownPacketError
from .frame import Frame, Head, Sender, State
from .mvn_layout import layout, standard
from .mvn_state import Character, MvnState, gather, is_whole
from .mvn_wire import Header

Array = NDArray[np.float64]


class Mvn(BaseDecoder):
    name = "mvn"
    title = "Xsens MVN"
    default_port = 9763
    transports = ("udp", "tcp")

    def state(self) -> MvnState:
        return MvnState()

    def recognises(self, data: bytes) -> bool:
        return data[:4] == mvn_wire.MAGIC and len(data) >= 24 and data[4:6].isdigit()

    def messages(self, chunk: bytes, state: State) -> list[bytes]:
        out, rest, skipped = mvn_wire.messages(state.remainder + chunk)
        state.remainder = rest[-MAX_REMAINDER:]
        if skipped:
            state.counts.unknown += 1
        return out

    def heads(self, data: bytes, state: State) -> list[Head]:
        head = mvn_wire.header(data)
        if head.kind not in mvn_pose.POSES:
            return []
        return [Head(str(head.character), "body", head.sample, head.time_code / 1000.0, is_whole(head))]

    def read(self, data: bytes, state: State) -> list[Frame]:
        assert isinstance(state, MvnState)
        head = mvn_wire.header(data)
        if head.kind in mvn_pose.POSES:
            return self._pose(data, head, state)
        reader = _READERS.get(head.kind)
        if reader is None:
            if head.kind in _KNOWN_ELSEWHERE:
                state.counts.ignored += 1
                return []
            raise UnknownPacketError("a message type nobody knows")
        return reader(mvn_wire.payload(data, head), head, state)

    def _pose(self, data: bytes, head: Header, state: MvnState) -> list[Frame]:
        size = head.items * mvn_wire.ITEM_BYTES[head.kind]
        if size == 0 or size > len(data) - 24:
            raise BrokenPacketError("fewer items than the header says")
        if is_whole(head):
            return mvn_pose.read(data[24 : 24 + size], head.items, head, state)
        gathered = gather(data[24 : 24 + size], head, state)
        return [] if gathered is None else mvn_pose.read(gathered[1], gathered[0], head, state)

    def decode_all(self, packets: Sequence[bytes], state: State) -> list[list[Frame]]:
        """Many datagrams in order: poses of one performer are read all at once, the rest one by one."""
        assert isinstance(state, MvnState)
        out: list[list[Frame]] = [[] for _ in packets]
        groups: dict[tuple[int, int], list[tuple[int, Header, str | None]]] = {}
        for i, data in enumerate(packets):
            if data[:6] == b"MXTP02" and len(data) >= 24:
                head = Header._make(mvn_wire.HEADER.unpack_from(data))
                ready = mvn_pose.ready(head, state)
                if (
                    ready is not None
                    and head.part == mvn_wire.LAST
                    and len(data) == 24 + 32 * head.items
                    and head.items * 4 == len(ready.id_bytes)
                ):
                    groups.setdefault((head.character, head.items), []).append((i, head, ready.code_at(head.sample)))
                    continue
            out[i] = self.decode(data, state)
        for (number, _), members in groups.items():
            bodies = [packets[i][24:] for i, _, _ in members]
            frames = mvn_pose.read_many(bodies, [h for _, h, _ in members], [c for _, _, c in members], state.characters[number], state)
            for (i, _, _), frame in zip(members, frames, strict=True):
                if frame is None:
                    out[i] = self.decode(packets[i], state)
                else:
                    out[i] = [frame]
                    state.counts.packets += 1
                    state.counts.frames += 1
        return out

    # -- skeletons and sending

    def skeleton(self, source: str, state: State) -> Skeleton | None:
        assert isinstance(state, MvnState)
        character = state.characters.get(int(source)) if source.isdigit() else None
        if character is None:
            return None
        return _skeleton(character)

    def standard(self, joints: Sequence[str] = ()) -> Skeleton:
        return standard(any(name.endswith("Carpus") for name in joints))

    def encode(self, frames: Sequence[Frame], sender: Sender) -> list[bytes]:
        return mvn_send.encode(frames, sender)


def _skeleton(character: Character) -> Skeleton | None:
    """The T-pose: origins of the null pose where it was sent, else what the first pose shows."""
    lay = layout(tuple(range(1, 24)), (23, 0, 0))
    found: Skeleton | None = None
    if character.pose is not None:
        lay, places, turns = character.pose
        found = body.measured(lay.names, lay.parents, places, turns)
    elif character.offsets is not None:
        found = body.from_offsets(lay.names, lay.parents, character.offsets)
    if character.origins is None or len(character.origins) < 23:
        return found
    whole = standard(False)
    shown = whole if found is None else found
    origins = dict(zip(whole.names, character.origins, strict=False))
    places = shown.rest_global_positions.copy()
    for j, name in enumerate(shown.names):
        places[j] = origins[name] if name in origins else places[shown.parents[j]] + shown.rest_translations[j]
    return body.from_places(shown.names, shown.parents.tolist(), places)


def _meta(text: bytes, head: Header, state: MvnState) -> list[Frame]:
    character = state.character(head.character)
    found = mvn_extra.meta(text)
    if found.get("name"):
        character.name = found["name"][:128]
    if not found:
        raise BrokenPacketError("no tag that anybody knows")
    return []


def _scale(data: bytes, head: Header, state: MvnState) -> list[Frame]:
    names, origins = mvn_extra.null_pose(data)
    if len(names) >= 7:
        span = float(np.linalg.norm(origins[6] - origins[0]))
        unit = 0.01 if span > 5.0 else 1.0
        state.character(head.character).origins = MVN.points(origins * unit)
    return []


def _time_code(data: bytes, head: Header, state: MvnState) -> list[Frame]:
    text = mvn_extra.time_code(data)
    state.character(head.character).time_code = (head.sample, text)
    source = str(head.character)
    return [Frame(source, "info", head.sample, head.time_code / 1000.0, time_code=text, name=source)]


def _values(data: bytes, head: Header, state: MvnState) -> list[Frame]:
    return [mvn_extra.values(data, head)]


_Reader = Callable[[bytes, Header, MvnState], list[Frame]]
_READERS: dict[bytes, _Reader] = {
    b"12": _meta,
    b"13": _scale,
    b"25": _time_code,
    **dict.fromkeys((b"20", b"21", b"22", b"23", b"24"), _values),
}
_KNOWN_ELSEWHERE = frozenset((b"03", b"04", b"10", b"11"))
"""Virtual markers and what is deprecated: counted as ignored."""
