# SPDX-License-Identifier: GPL-3.0-or-later
"""Rokoko Studio: one JSON text a datagram, plain or in an LZ4 frame; versions 2, 2.5, 3 and 4; port 14043.

Places and rotations are global, in Unity's axes. Rotations count from Studio's own T-pose, in which most joints are turned (its table is in
both of Rokoko's plug-ins), so what a joint has turned is ``q T^-1``. Studio 1's "2.5" calls itself 3 but is built like 2.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.skeleton import Skeleton
from . import body, lz4_frame
from .axes import UNITY
from .base import MAX_SOURCES, BaseDecoder, BrokenPacketError, UnknownPacketError
from .frame import NO_CURVES, Frame, Head, Sender, State
from .json_values import Object, load, mapping, number, objects, text, transforms
from .rokoko_body import JOINTS, MORPHS, PARENT, STANDARD, T_POSE, role_of

Array = NDArray[np.float64]


@dataclass
class RokokoState(State):
    """The first pose of each performer, for its skeleton; its height of the hips."""

    poses: dict[str, tuple[tuple[str, ...], Array, Array]] = field(default_factory=dict[str, tuple[tuple[str, ...], Array, Array]])
    heights: dict[str, float] = field(default_factory=dict[str, float])


class Layout(NamedTuple):
    """Joints that are there, and what undoes their T-pose."""

    names: tuple[str, ...]
    parents: tuple[int, ...]
    undo: Array


@lru_cache(maxsize=64)
def layout(names: tuple[str, ...]) -> Layout:
    """The layout of these joints, which stand in the order of :data:`.rokoko_body.JOINTS`."""
    return Layout(names, tuple(_parents(names)), quat.inv(UNITY.from_xyzw(np.array([T_POSE[n] for n in names]).reshape(-1, 4))))


def _parents(names: Sequence[str]) -> list[int]:
    out: list[int] = []
    for name in names:
        above = PARENT[name]
        while above and above not in names:
            above = PARENT[above]
        out.append(names.index(above) if above else -1)
    return out


class Rokoko(BaseDecoder):
    name = "rokoko"
    title = "Rokoko Studio"
    default_port = 14043
    stands_alone = False  # the head is as dear as the whole

    def state(self) -> RokokoState:
        return RokokoState()

    def recognises(self, data: bytes) -> bool:
        if data[:4] == lz4_frame.MAGIC:
            return True
        if data.lstrip()[:1] != b"{":
            return False
        begins = data[:4096]
        return (b'"actors"' in data or b'"props"' in data) and (b'"scene"' in begins or b'"trackers"' in data or b'"timestamp"' in begins)

    def heads(self, data: bytes, state: State) -> list[Head]:
        """JSON has no head: the whole text is parsed, only its poses are not."""
        found = _parsed(data)
        time = _time(found)
        return [Head(name, "body", None, time) for name in _names(found.actors)]

    def read(self, data: bytes, state: State) -> list[Frame]:
        assert isinstance(state, RokokoState)
        found = _parsed(data)
        time = _time(found)
        out: list[Frame] = []
        for name, actor in zip(_names(found.actors), found.actors, strict=True):
            frame = _actor(actor if found.version == 2 else mapping(actor.get("body")), name, time, state)
            if frame is not None:
                out.append(frame)
                height = number((actor if found.version == 2 else mapping(actor.get("dimensions"))).get("hipHeight"))
                if height and len(state.heights) < MAX_SOURCES:
                    state.heights[name] = height
            out += _face(mapping(actor.get("face")), name, time)
        for face in found.faces:
            out += _face(face, text(face.get("profileName")) or text(face.get("faceId")), time)
        out += _props(found.props, "", time, state) + _props(found.trackers, "tracker ", time, state)
        return out

    def skeleton(self, source: str, state: State) -> Skeleton | None:
        assert isinstance(state, RokokoState)
        pose = state.poses.get(source)
        if pose is None:
            return None
        names, places, turns = pose
        found = body.measured(names, layout(names).parents, places, turns)
        if float(np.abs(found.rest_translations[1:]).max(initial=0.0)) < 0.01:  # rotations alone
            return body.scaled_to(_average(names), state.heights.get(source, 0.0))
        return found

    def standard(self, joints: Sequence[str] = ()) -> Skeleton:
        wanted = {*STANDARD, *joints}
        return _average(tuple(n for n in JOINTS if n in wanted))

    def encode(self, frames: Sequence[Frame], sender: Sender) -> list[bytes]:
        """Options: ``version`` 2, 2.5, 3 (default) or 4; ``lz4`` True; ``texts`` True sends numbers as texts."""
        version = float(str(sender.options.get("version", 3)))
        packet = _packet_v3(frames, sender, version) if version >= 3 else _packet_v2(frames, sender, version)
        if sender.options.get("texts"):
            packet = _as_texts(packet)
        raw = json.dumps(packet, separators=(",", ":"), allow_nan=False).encode()
        return [lz4_frame.compress(raw) if sender.options.get("lz4") else raw]


class _Parsed(NamedTuple):
    version: int
    stamp: object
    actors: list[Object]
    props: list[Object]
    trackers: list[Object]
    faces: list[Object]


def _parsed(data: bytes) -> _Parsed:
    whole = load(lz4_frame.decompress(data) if data[:4] == lz4_frame.MAGIC else data)
    version = number(str(whole.get("version", "")).replace(",", "."))
    if version is None or not 2 <= version < 10:
        raise UnknownPacketError("a version of Rokoko's JSON that nobody knows")
    if version < 3 or "trackers" in whole:
        lists = (objects(whole.get(k)) for k in ("actors", "props", "trackers", "faces"))
        return _Parsed(2, whole.get("timestamp"), *lists)
    scene = mapping(whole.get("scene"))
    if not scene:
        raise BrokenPacketError("no scene in the packet")
    return _Parsed(3, scene.get("timestamp"), objects(scene.get("actors")), objects(scene.get("props")), [], [])


def _names(things: Sequence[Object]) -> list[str]:
    """A name for each, each once: people may call two actors alike."""
    out: list[str] = []
    for i, thing in enumerate(things):
        name = text(thing.get("name")) or str(i)
        out.append(name if name not in out else f"{name} ({i + 1})")
    return out


def _time(found: _Parsed) -> float | None:
    stamp = number(found.stamp)
    if stamp is None:
        return None
    return stamp / 1000.0 if abs(stamp) > 1e11 else stamp  # an epoch in milliseconds


def _actor(joints: Object, source: str, time: float | None, state: RokokoState) -> Frame | None:
    names = tuple(n for n in JOINTS if n in joints)
    if "hip" not in names:
        return None
    rows, good = transforms([joints[n] for n in names])
    if not good.any():
        state.counts.broken += 1
        return None
    lay = layout(names)
    places = UNITY.points(rows[:, :3])
    turns = quat.mul(UNITY.from_xyzw(rows[:, 3:]), lay.undo)
    valid: NDArray[np.bool_] | None = None
    if not good.all():
        state.counts.broken += 1
        valid = good
        above = np.array(lay.parents)
        for j in np.flatnonzero(~good):  # a bone whose numbers are bad goes with the one above it
            turns[j] = turns[above[j]] if above[j] >= 0 else quat.IDENTITY
            places[j] = np.nan
    else:
        known = state.poses.get(source)
        if (known is None and len(state.poses) < MAX_SOURCES) or (known is not None and len(known[0]) < len(names)):
            state.poses[source] = (lay.names, places, turns)
    return Frame(source, "body", None, time, lay.names, places, turns, "global", NO_CURVES, None, valid, source)


def _face(face: Object, source: str, time: float | None) -> list[Frame]:
    if not face:
        return []
    values = {k: v / 100.0 for k in MORPHS if k in face and (v := number(face[k])) is not None and abs(v) < 1e6}
    return [Frame(source, "morphs", None, time, curves=values, name=source)] if values else []


def _props(props: Sequence[Object], prefix: str, time: float | None, state: RokokoState) -> list[Frame]:
    named = [(prefix + name, p) for name, p in zip(_names(props), props, strict=True)]
    if not named:
        return []
    rows, good = transforms([p for _, p in named])
    places, turns = UNITY.points(rows[:, :3]), UNITY.from_xyzw(rows[:, 3:])
    state.counts.broken += int(np.count_nonzero(~good))
    return [
        Frame(name, "prop", None, time, (name,), places[i : i + 1], turns[i : i + 1], name=name)
        for i, (name, _) in enumerate(named)
        if good[i]
    ]


def _average(names: tuple[str, ...]) -> Skeleton:
    return body.skeleton(names, _parents(names), [role_of(n) for n in names])


# -- sending -----------------------------------------------------------------------------------------------------------------------


def _written(place: Array, turn: Array) -> dict[str, dict[str, float]]:
    p, q = (np.round(a, 7).tolist() for a in (UNITY.points_back(place), UNITY.to_xyzw(turn)))
    return {"position": dict(zip("xyz", p, strict=True)), "rotation": dict(zip("xyzw", q, strict=True))}


def _joints(frame: Frame) -> dict[str, object]:
    names = tuple(n for n in JOINTS if n in frame.joints)
    assert frame.positions is not None and frame.rotations is not None
    at = [frame.joints.index(n) for n in names]
    turns = quat.mul(frame.rotations[at], quat.inv(layout(names).undo))
    places = np.nan_to_num(frame.positions[at])
    return {n: _written(places[i], turns[i]) for i, n in enumerate(names)}


def _morphs(frames: Sequence[Frame], source: str) -> dict[str, object]:
    own = {k: v for f in frames if f.source == source for k, v in f.curves.items() if k in MORPHS}
    return {k: round(own.get(k, 0.0) * 100.0, 5) for k in MORPHS} if own else {}


def _packet_v3(frames: Sequence[Frame], sender: Sender, version: float) -> dict[str, object]:
    actors: list[object] = []
    for frame in frames:
        if frame.kind != "body" or frame.positions is None or frame.rotations is None:
            continue
        joints, face = _joints(frame), _morphs(frames, frame.source)
        gloves = any("Thumb" in n for n in joints)
        height = float(frame.positions[frame.joints.index("hip"), 2]) if "hip" in frame.joints else 0.0
        actors.append(
            {
                "name": frame.source,
                "color": [255, 128, 0],
                "meta": {"hasGloves": gloves, "hasLeftGlove": gloves, "hasRightGlove": gloves, "hasBody": True, "hasFace": bool(face)},
                "dimensions": {"totalHeight": 1.75, "hipHeight": round(height, 6)},
                "body": joints,
                **({"face": {"faceId": frame.source, **face}} if face else {}),
            }
        )
    props = [{"name": f.source, "color": [255, 255, 255], "type": 0, **_prop(f)} for f in frames if f.kind == "prop"]
    scene = {"timestamp": sender.time, "actors": actors, "props": props}
    return {"version": "3,0" if version == 3 else int(version), "fps": sender.rate, "scene": scene}


def _packet_v2(frames: Sequence[Frame], sender: Sender, version: float) -> dict[str, object]:
    bodies = [f for f in frames if f.kind == "body" and f.rotations is not None]
    actors = [{"name": f.source, "id": f.source, "hipHeight": 0.95, **_joints(f)} for f in bodies]
    named = [(f.source, _morphs(frames, f.source)) for f in bodies]
    faces = [{"faceId": name, "profileName": name, **values} for name, values in named if values]
    props = [{"name": f.source, "id": f.source, **_prop(f)} for f in frames if f.kind == "prop"]
    lists = {"props": props, "trackers": [], "faces": faces, "actors": actors}
    return {"version": 3 if version == 2.5 else 2, "timestamp": sender.time, **lists}


def _prop(frame: Frame) -> dict[str, dict[str, float]]:
    assert frame.positions is not None and frame.rotations is not None
    return _written(frame.positions[0], frame.rotations[0])


def _as_texts(value: object) -> object:
    if isinstance(value, dict):
        return {k: _as_texts(v) for k, v in value.items()}  # type: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_as_texts(v) for v in value]  # type: ignore[reportUnknownVariableType]
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
