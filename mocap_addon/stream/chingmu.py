# SPDX-License-Identifier: GPL-3.0-or-later
"""ChingMu (CMTracker, CMAvatar): what its SDK returns, as JSON; as the SDK gives it or as its Unreal plug-in passes it on.

The SDK has no public wire format of its own beside VRPN (:mod:`.vrpn`), so this profile is ours (``docs/streaming.md``): one JSON object a
datagram, ``{"chingmu": 1, "space": "raw" | "unreal", "timecode": u32, "time": seconds, "humans": [...], "bodies": [...]}``. A human has
``id``, ``attitude`` (root x, y, z, then x, y, z, w of every joint, as CMHumanExtern fills it) and ``detected``; a body has ``id``, ``pose``
(x, y, z and x, y, z, w) and ``detected``.

Raw: millimetres, X right, Y front, Z up. Rotations of joints are local, counted from the T-pose in axes that stand like the world.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ..motion import kinematics, quat
from ..motion.skeleton import Skeleton
from . import body
from .axes import CHINGMU, CHINGMU_UNREAL, OURS, OURS_UNREAL, Axes
from .base import MAX_SOURCES, BaseDecoder, BrokenPacketError, UnknownPacketError
from .chingmu_body import PARENTS, average, average_of, bends_backwards, joints
from .frame import NO_CURVES, Frame, Head, Sender, State
from .json_values import Object, load, number, objects, text

Array = NDArray[np.float64]
_VALID = 1 << 31
BACKWARDS = 'Knees bend forwards: this server seems to face the other way; set its option "facing" to "-y".'


def time_code(word: int) -> tuple[int | None, str | None]:
    """VrpnTimeCode: the server's frame number, or the SMPTE time code where the highest bit says that it is one."""
    if not word & _VALID:
        return word, None
    hours, minutes, seconds, frames = word >> 24 & 31, word >> 18 & 63, word >> 12 & 63, word >> 5 & 127
    return None, f"{hours:02d}:{minutes:02d}:{seconds:02d}:{frames:02d}"


def time_word(code: str) -> int:
    """The word of ``HH:MM:SS:FF``."""
    hours, minutes, seconds, frames = (int(part) for part in code.replace(";", ":").split(":")[:4])
    return _VALID | hours << 24 | minutes << 18 | seconds << 12 | frames << 5


def system(options: Mapping[str, object], unreal: bool = False) -> Axes:
    """Axes of the SDK; with option ``facing`` "-y" of one that is set up so that a T-pose faces -Y."""
    if options.get("facing") == "-y":
        return OURS_UNREAL if unreal else OURS
    return CHINGMU_UNREAL if unreal else CHINGMU


@dataclass
class ChingMuState(State):
    """Options: ``space`` "raw" or "unreal" where packets do not say, ``facing`` "y" (default) or "-y".

    Of each performer: last rotations, which a lost joint holds; first pose; last word, to leave out what was seen."""

    last: dict[str, tuple[int | None, Array]] = field(default_factory=dict[str, tuple[int | None, Array]])
    first: dict[str, tuple[Array, float]] = field(default_factory=dict[str, tuple[Array, float]])
    words: dict[str, int] = field(default_factory=dict[str, int])


class ChingMu(BaseDecoder):
    name = "chingmu"
    title = "ChingMu"
    default_port = 3890
    stands_alone = False  # a lost joint holds what came before, and a time code that stands is left out

    def state(self) -> ChingMuState:
        return ChingMuState()

    def recognises(self, data: bytes) -> bool:
        begins = data[:256]
        return data.lstrip()[:1] == b"{" and (b'"chingmu"' in begins or (b'"humans"' in data and b'"attitude"' in data))

    def heads(self, data: bytes, state: State) -> list[Head]:
        whole = _whole(data)
        count, _ = _stamp(whole)
        time = number(whole.get("time"))
        return [Head(_id(human, i), "body", count, time) for i, human in enumerate(objects(whole.get("humans")))]

    def read(self, data: bytes, state: State) -> list[Frame]:
        assert isinstance(state, ChingMuState)
        whole = _whole(data)
        unreal = str(whole.get("space", state.options.get("space", "raw"))) == "unreal"
        humans, props = objects(whole.get("humans")), objects(whole.get("bodies"))
        if not humans and not props:
            raise BrokenPacketError("neither humans nor bodies")
        out: list[Frame] = []
        for i, human in enumerate(humans):
            frame = _human(human, _id(human, i), whole, unreal, state)
            out += [] if frame is None else [frame]
        for i, prop in enumerate(props):
            frame = _rigid(prop, _id(prop, i), whole, unreal, state)
            out += [] if frame is None else [frame]
        return out

    def skeleton(self, source: str, state: State) -> Skeleton | None:
        assert isinstance(state, ChingMuState)
        pose = state.first.get(source)
        return None if pose is None else body.scaled_to_pose(average(len(pose[0])), *pose)

    def standard(self, joints: Sequence[str] = ()) -> Skeleton:
        return average_of(joints)

    def encode(self, frames: Sequence[Frame], sender: Sender) -> list[bytes]:
        """Option ``space``: "raw" (default) or "unreal"."""
        unreal = sender.options.get("space") == "unreal"
        code = next((f.time_code for f in frames if f.time_code and f.time_code.count(":") == 3), None)
        word = time_word(code) if code else sender.number & 0x7FFFFFFF
        bodies = [f for f in frames if f.kind == "body" and f.rotations is not None and f.positions is not None]
        props = [f for f in frames if f.kind == "prop" and f.rotations is not None and f.positions is not None]
        packet = {
            "chingmu": 1,
            "space": "unreal" if unreal else "raw",
            "timecode": word,
            "time": sender.time,
            "humans": [{"id": f.source, "attitude": _attitude(f, unreal), "detected": [1] * len(joints(len(f.joints)))} for f in bodies],
            "bodies": [{"id": f.source, "pose": _written(f.positions, f.rotations, unreal), "detected": 1} for f in props],
        }
        return [json.dumps(packet, separators=(",", ":"), allow_nan=False).encode()]


def _whole(data: bytes) -> Object:
    whole = load(data)
    if "humans" not in whole and "bodies" not in whole:
        raise UnknownPacketError("JSON without humans and bodies")
    return whole


def _id(thing: Object, index: int) -> str:
    return text(thing.get("id")) or text(thing.get("name")) or str(index)


def _stamp(whole: Object) -> tuple[int | None, str | None]:
    frame = number(whole.get("frame"))
    word = number(whole.get("timecode"))
    if word is not None and 0 <= word < 1 << 32:
        count, code = time_code(int(word))
        return (int(frame) if frame is not None and abs(frame) < 1 << 53 else count), code
    return (int(frame) if frame is not None and abs(frame) < 1 << 53 else None), None


def _numbers(value: object) -> Array | None:
    """A list of numbers (or of lists of them) as one row; None where it is something else."""
    if not isinstance(value, list) or len(cast(list[object], value)) > 4096:
        return None
    try:
        found = np.array(cast(list[object], value), dtype=np.float64).ravel()
    except (TypeError, ValueError, OverflowError):
        return None
    return found


def _human(human: Object, source: str, whole: Object, unreal: bool, state: ChingMuState) -> Frame | None:
    row = _numbers(human.get("attitude"))
    if row is None or len(row) < 3 + 4 * 23 or (len(row) - 3) % 4 or not np.abs(row[:3]).max() < 1e8:
        state.counts.broken += 1
        return None
    count, code = _stamp(whole)
    word = int(number(whole.get("timecode")) or 0)
    if code is not None and state.words.get(source) == word:
        state.counts.ignored += 1  # polled again before the next one came
        return None
    if source not in state.words and len(state.words) >= MAX_SOURCES:
        state.counts.ignored += 1
        return None
    state.words[source] = word
    names = joints((len(row) - 3) // 4)
    axes, unit = system(state.options, unreal), 0.01 if unreal else 0.001
    sent = row[3 : 3 + 4 * len(names)].reshape(-1, 4)
    square = np.einsum("ij,ij->i", sent, sent)
    seen = (square > 0.81) & (square < 1.21)
    flags = _numbers(human.get("detected"))
    if flags is not None and len(flags) >= len(names):
        seen &= flags[: len(names)] != 0.0
    elif flags is None and human.get("detected") in (False, 0):
        seen[:] = False
    held = state.last.get(source)
    turns = held[1].copy() if held is not None and len(held[1]) == len(names) else quat.identity(len(names))
    turns[seen] = axes.from_xyzw(sent[seen]) / np.sqrt(square[seen])[:, None]
    if bends_backwards(turns):
        state.note(BACKWARDS)
    places = np.full((len(names), 3), np.nan)
    places[0] = axes.points(row[:3]) * unit
    state.last[source] = (count, turns)
    if source not in state.first or len(state.first[source][0]) != len(names):
        state.first[source] = (turns, float(places[0, 2]))
    time = number(whole.get("time"))
    valid = None if seen.all() else seen
    name = text(human.get("name")) or source
    return Frame(source, "body", count, time, names, places, turns, "local", NO_CURVES, code, valid, name)


def _rigid(prop: Object, source: str, whole: Object, unreal: bool, state: ChingMuState) -> Frame | None:
    row = _numbers(prop.get("pose"))
    if row is None or len(row) != 7 or not np.abs(row[:3]).max() < 1e8 or not 0.81 < float(row[3:] @ row[3:]) < 1.21:
        state.counts.broken += 1
        return None
    axes, unit = system(state.options, unreal), 0.01 if unreal else 0.001
    turn = axes.from_xyzw(row[None, 3:] / np.sqrt(row[3:] @ row[3:]))
    count, code = _stamp(whole)
    lost = prop.get("detected") in (False, 0)
    valid = np.array([False]) if lost else None
    place, time = axes.points(row[None, :3]) * unit, number(whole.get("time"))
    return Frame(source, "prop", count, time, (source,), place, turn, "global", NO_CURVES, code, valid, text(prop.get("name")) or source)


def _attitude(frame: Frame, unreal: bool) -> list[float]:
    names = joints(len(frame.joints))
    assert frame.rotations is not None and frame.positions is not None
    at = {n: i for i, n in enumerate(frame.joints)}
    turns = np.zeros((len(names), 4))
    for j, name in enumerate(names):
        turns[j] = frame.rotations[at[name]] if name in at else (turns[PARENTS[j]] if j else quat.IDENTITY)
    local = kinematics.inverse(turns, np.zeros((len(names), 3)), np.array(PARENTS[: len(names)], dtype=np.int64))[0]
    axes, unit = (CHINGMU_UNREAL, 0.01) if unreal else (CHINGMU, 0.001)
    root = frame.positions[at["Hips"]] if "Hips" in at else np.zeros(3)
    return [*(np.round(axes.points_back(root) / unit, 6)).tolist(), *np.round(axes.to_xyzw(local), 9).ravel().tolist()]


def _written(place: Array | None, turn: Array | None, unreal: bool) -> list[float]:
    assert place is not None and turn is not None
    axes, unit = (CHINGMU_UNREAL, 0.01) if unreal else (CHINGMU, 0.001)
    return [*np.round(axes.points_back(place[0]) / unit, 6).tolist(), *np.round(axes.to_xyzw(turn[0]), 9).tolist()]
