# SPDX-License-Identifier: GPL-3.0-or-later
"""The project's own JSON (``docs/streaming.md``): frames as they are, in the project's axes and metres, over UDP or as lines over TCP.

``{"mocap": 1, "frames": [{"source", "kind", "number", "time", "joints", "positions", "rotations" (w, x, y, z), "space", "curves",
"time_code", "origin"}], "skeletons": {source: {"joints", "parents", "translations", "rotations"}}}``. ``origin`` says whether the motion is
captured, retargeted or replayed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..motion.errors import RigError
from ..motion.skeleton import Skeleton
from . import body
from .base import MAX_REMAINDER, BaseDecoder, UnknownPacketError
from .frame import Frame, Head, Kind, Sender, State
from .json_values import Object, load, mapping, number, objects, text

Array = NDArray[np.float64]
_KINDS: dict[str, Kind] = {"body": "body", "prop": "prop", "morphs": "morphs", "info": "info"}
_MAX_JOINTS = 512
_MAX_KEPT = 64
"""Skeletons and lists of joints that are remembered of one sender."""


@dataclass
class OwnState(State):
    """Skeletons as sent; joints, shared by all frames that have the same."""

    skeletons: dict[str, Skeleton] = field(default_factory=dict[str, Skeleton])
    joints: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict[tuple[str, ...], tuple[str, ...]])


class OwnJson(BaseDecoder):
    name = "json"
    title = "Mocap JSON"
    default_port = 9750
    stands_alone = False  # the head is as dear as the whole
    transports = ("udp", "tcp")

    def state(self) -> OwnState:
        return OwnState()

    def recognises(self, data: bytes) -> bool:
        return data.lstrip()[:1] == b"{" and b'"mocap"' in data[:64]

    def messages(self, chunk: bytes, state: State) -> list[bytes]:
        *lines, rest = (state.remainder + chunk).split(b"\n")
        if len(rest) > MAX_REMAINDER:
            state.counts.broken += 1
            rest = b""
        state.remainder = rest
        return [line for line in lines if line.strip()]

    def heads(self, data: bytes, state: State) -> list[Head]:
        out: list[Head] = []
        for item in objects(_whole(data).get("frames")):
            kind = _KINDS.get(text(item.get("kind"), "body"))
            if kind is not None and text(item.get("source")):
                out.append(Head(text(item.get("source")), kind, _count(item.get("number")), number(item.get("time"))))
        return out

    def read(self, data: bytes, state: State) -> list[Frame]:
        assert isinstance(state, OwnState)
        whole = _whole(data)
        for source, described in ((k[:128], v) for k, v in mapping(whole.get("skeletons")).items()):
            found = _skeleton(mapping(described))
            if found is not None and (source in state.skeletons or len(state.skeletons) < _MAX_KEPT):
                state.skeletons[source] = found
            elif found is None:
                state.counts.broken += 1
        out: list[Frame] = []
        for item in objects(whole.get("frames")):
            frame = _frame(item, state)
            if frame is None:
                state.counts.broken += 1
            else:
                out.append(frame)
        return out

    def skeleton(self, source: str, state: State) -> Skeleton | None:
        assert isinstance(state, OwnState)
        return state.skeletons.get(source)

    def standard(self, joints: Sequence[str] = ()) -> Skeleton:
        """Any joints can be sent; these are Unity's humanoid."""
        from . import humanoid

        return humanoid.standard()

    def encode(self, frames: Sequence[Frame], sender: Sender) -> list[bytes]:
        """One datagram; skeletons once a second. Option ``lines`` ends it with a line feed, for TCP."""
        packet: dict[str, object] = {"mocap": 1, "frames": [_written(f, sender) for f in frames]}
        if sender.skeletons and sender.number % max(1, round(sender.rate)) == 0:
            packet["skeletons"] = {source: _described(s) for source, s in sender.skeletons.items()}
        raw = json.dumps(packet, separators=(",", ":"), allow_nan=False).encode()
        return [raw + b"\n" if sender.options.get("lines") else raw]


def _whole(data: bytes) -> Object:
    whole = load(data)
    if number(whole.get("mocap")) != 1.0:
        raise UnknownPacketError("not the project's JSON")
    return whole


def _count(value: object) -> int | None:
    found = number(value)
    return int(found) if found is not None and abs(found) < 1 << 53 else None


def _table(value: object, rows: int, columns: int) -> Array | None:
    """``rows`` lists of ``columns`` numbers; null for a row that is not sent."""
    if not isinstance(value, list) or len(cast(list[object], value)) != rows:
        return None
    given = [[None] * columns if row is None else row for row in cast(list[object], value)]
    try:
        found = np.array(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found.shape == (rows, columns) else None


def _frame(item: Object, state: OwnState) -> Frame | None:
    source, kind = text(item.get("source")), _KINDS.get(text(item.get("kind"), "body"))
    named = item.get("joints", [])
    if not source or kind is None or not isinstance(named, list) or len(cast(list[object], named)) > _MAX_JOINTS:
        return None
    names = tuple(n for n in cast(list[object], named) if isinstance(n, str))
    if len(names) != len(cast(list[object], named)) or len(set(names)) != len(names):
        return None
    names = state.joints.get(names, names)
    if len(state.joints) < _MAX_KEPT:
        state.joints[names] = names
    places, turns = _table(item.get("positions"), len(names), 3), _table(item.get("rotations"), len(names), 4)
    if kind in ("body", "prop") and (turns is None or not names):
        return None
    if places is not None and bool((np.abs(places) > 1e5).any()):
        return None
    if turns is not None:
        square = (turns * turns).sum(axis=1)
        if not ((square > 0.81) & (square < 1.21)).all():
            return None
        turns = turns / np.sqrt(square)[:, None]
    curves = {k[:128]: v for k, raw in list(mapping(item.get("curves")).items())[:512] if (v := number(raw)) is not None}
    code, origin = text(item.get("time_code")) or None, text(item.get("origin"))
    return Frame(
        source,
        kind,
        _count(item.get("number")),
        number(item.get("time")),
        names,
        places,
        turns,
        "local" if item.get("space") == "local" else "global",
        curves,
        code,
        None,
        text(item.get("name")) or source,
        "replay" if origin == "replay" else ("retargeted" if origin == "retargeted" else "capture"),
    )


def _skeleton(described: Object) -> Skeleton | None:
    named, above = described.get("joints"), described.get("parents")
    if not isinstance(named, list) or not isinstance(above, list) or len(cast(list[object], named)) > _MAX_JOINTS:
        return None
    names = tuple(str(n)[:128] for n in cast(list[object], named))
    parents = [number(p) for p in cast(list[object], above)]
    offsets = _table(described.get("translations"), len(names), 3)
    turns = _table(described.get("rotations"), len(names), 4)
    if offsets is None or not np.abs(offsets).max(initial=0.0) < 1e5 or any(p is None or abs(p) > 2000 for p in parents):
        return None
    try:
        if turns is not None and np.isfinite(turns).all():
            return Skeleton(names, np.array(parents, dtype=np.int64), offsets, turns)
        return Skeleton(names, np.array(parents, dtype=np.int64), offsets)
    except RigError:
        return None


def _rows(table: Array | None, digits: int) -> list[list[float] | None] | None:
    if table is None:
        return None
    return [row if all(v == v for v in row) else None for row in np.round(table, digits).tolist()]


def _written(frame: Frame, sender: Sender) -> dict[str, object]:
    out: dict[str, object] = {
        "source": frame.source,
        "kind": frame.kind,
        "number": sender.number if frame.number is None else frame.number,
        "time": sender.time if frame.time is None else frame.time,
        "joints": list(frame.joints),
        "positions": _rows(frame.positions, 7),
        "rotations": _rows(frame.rotations, 9),
        "space": frame.space,
        "origin": str(sender.options.get("origin", "replay")),
    }
    if frame.curves:
        out["curves"] = dict(frame.curves)
    if frame.time_code:
        out["time_code"] = frame.time_code
    if frame.name and frame.name != frame.source:
        out["name"] = frame.name
    return out


def _described(skeleton: Skeleton) -> dict[str, object]:
    """The rest pose with identity rotations, from which the frames' rotations count."""
    rest = body.from_places(skeleton.names, skeleton.parents.tolist(), skeleton.rest_global_positions)
    return {
        "joints": list(rest.names),
        "parents": rest.parents.tolist(),
        "translations": np.round(rest.rest_translations, 7).tolist(),
        "rotations": rest.rest_rotations.tolist(),
    }
