# SPDX-License-Identifier: GPL-3.0-or-later
"""VMC: Open Sound Control messages of Unity's humanoid over UDP (protocol.vmc.info, 2.0 to 2.7), port 39539.

Nothing in it says whose bones they are (one sender's address is one performer) or where a frame ends: a frame is whole when every bone of
the frame before has come, and ends at the latest with the next time stamp or a bone that comes again. Lost bones hold their last value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..motion import kinematics, quat
from ..motion.skeleton import Skeleton
from . import body, humanoid, osc
from .axes import UNITY
from .base import BaseDecoder, UnknownPacketError
from .frame import NO_CURVES, Frame, Head, Sender, State
from .vmc_read import Digest, Template, digests, template_of

Array = NDArray[np.float64]
_SOURCE = "VMC"
_MAX_NAMES = 512
_LOW, _HIGH = 0.9**2, 1.1**2


@dataclass
class VmcState(State):
    """One performer: bones as last sent (Unity's axes, local), and what the current frame has brought."""

    names: tuple[str, ...] = ()
    at: dict[str, int] = field(default_factory=dict[str, int])
    values: Array = field(default_factory=lambda: np.zeros((0, 7)))
    seen: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    root: Array = field(default_factory=lambda: np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]))
    clock: float | None = None
    still: int = 0
    blends: dict[str, float] = field(default_factory=dict[str, float])
    settled: bool = False
    pose: tuple[Array, Array] | None = None
    templates: dict[int, list[Template]] = field(default_factory=dict[int, list[Template]])
    props: set[str] = field(default_factory=set[str])

    @property
    def time(self) -> float | None:
        """The sender's seconds; None where they stand still or step by more than 20 ms (an epoch in a float32)."""
        if self.clock is None or self.still > 2 or abs(self.clock) > 2.0**18:
            return None
        return self.clock


class Vmc(BaseDecoder):
    name = "vmc"
    title = "VMC"
    default_port = 39539
    stands_alone = False

    def state(self) -> VmcState:
        return VmcState()

    def recognises(self, data: bytes) -> bool:
        return data[:5] == b"/VMC/" or (data[:8] == osc.BUNDLE and b"/VMC/" in data[:512])

    def heads(self, data: bytes, state: State) -> list[Head]:
        if not self.recognises(data):
            return []
        at = data.find(b"/VMC/Ext/T\0\0,f\0\0")
        time = float(np.frombuffer(data, ">f4", 1, at + 16)[0]) if 0 <= at <= len(data) - 20 else None
        if time is not None and not abs(time) < 2.0**18:
            time = None
        return [Head(_SOURCE, "body", None, time, whole=False)]

    def read(self, data: bytes, state: State) -> list[Frame]:
        assert isinstance(state, VmcState)
        for template in state.templates.get(len(data), ()):
            digest = template.read(data)
            if digest is not None:
                return _take_in(digest, state)
        if data[:1] != b"/" and data[:8] != osc.BUNDLE:
            raise UnknownPacketError("no OSC")
        found = digests(data)
        if not found.known:
            state.counts.ignored += 1
            if not found.foreign:
                return []
            raise UnknownPacketError("OSC without an address of VMC's")
        state.counts.broken += found.broken
        if len(data) > 200 and len(found.digests) == 1:
            made = template_of(data)
            if made is not None:
                kept = state.templates.setdefault(len(data), [])
                kept.insert(0, made)
                del kept[2:]
                while len(state.templates) > 8:
                    state.templates.pop(next(iter(state.templates)))
        return [frame for digest in found.digests for frame in _take_in(digest, state)]

    def flush(self, state: State) -> list[Frame]:
        """What has come of the current frame, after a silence (8 ms) that no more of it will break."""
        assert isinstance(state, VmcState)
        return [_emit(state)] if state.seen.any() else []

    def skeleton(self, source: str, state: State) -> Skeleton | None:
        assert isinstance(state, VmcState)
        if not state.names or "Hips" not in state.at:
            return None
        names, above = state.names, humanoid.parents(state.names)
        if state.pose is None or len(state.pose[0]) != len(names):
            return humanoid.standard(names)
        offsets, turns = state.pose
        lengths = np.linalg.norm(offsets[1:], axis=1)
        if len(lengths) == 0 or float(np.median(lengths)) < 0.005:
            return humanoid.standard(names)
        return body.from_offsets(names, above, offsets, body.lowest(turns, offsets, above))

    def standard(self, joints: Sequence[str] = ()) -> Skeleton:
        return humanoid.standard(humanoid.ordered((*humanoid.CORE, *(n for n in joints if n in humanoid.PARENT))))

    def encode(self, frames: Sequence[Frame], sender: Sender) -> list[bytes]:
        """Options: ``bundle`` (False: a datagram a message), ``time`` "epoch" as some senders do."""
        out: list[bytes] = [osc.encode("/VMC/Ext/OK", 1), osc.encode("/VMC/Ext/T", float(sender.time))]
        for frame in frames:
            if frame.kind == "body" and frame.rotations is not None and frame.positions is not None:
                out += _bones(frame)
            elif frame.kind == "prop" and frame.rotations is not None and frame.positions is not None:
                place, turn = UNITY.points_back(frame.positions)[0], UNITY.to_xyzw(frame.rotations)[0]
                out.append(osc.encode("/VMC/Ext/Tra/Pos", frame.source, *place.tolist(), *turn.tolist()))
            if frame.curves and frame.kind in ("body", "morphs"):
                out += [osc.encode("/VMC/Ext/Blend/Val", name, float(v)) for name, v in frame.curves.items()]
                out.append(osc.encode("/VMC/Ext/Blend/Apply"))
        return out if sender.options.get("bundle") is False else osc.bundles(out, sender.mtu)


def _bones(frame: Frame) -> list[bytes]:
    assert frame.rotations is not None and frame.positions is not None
    names = humanoid.ordered(frame.joints)
    order = [frame.joints.index(n) for n in names]
    above = np.array(humanoid.parents(names), dtype=np.int64)
    turns, places = kinematics.inverse(frame.rotations[order], np.nan_to_num(frame.positions[order]), above)
    rows = np.hstack([UNITY.points_back(places), UNITY.to_xyzw(turns)]).tolist()
    root = osc.encode("/VMC/Ext/Root/Pos", "root", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    return [root, *(osc.encode("/VMC/Ext/Bone/Pos", name, *row) for name, row in zip(names, rows, strict=True))]


def _take_in(digest: Digest, state: VmcState) -> list[Frame]:
    """Let a datagram's values in; the frames that end with it."""
    out: list[Frame] = []
    counted = digest.time is not None or digest.ok
    if state.seen.any() and ((counted and not digest.bones) or (digest.bones and _again(digest, state)) or (counted and digest.first)):
        out.append(_emit(state))
        state.settled = True
    if digest.time is not None:
        state.still = state.still + 1 if digest.time == state.clock else 0
        state.clock = digest.time
    if digest.root is not None and _good(digest.root[None])[0]:
        state.root = digest.root
    if digest.bones:
        _bones_in(digest, state)
        if state.settled and state.seen.all():
            out.append(_emit(state))
    for name, row, fov in digest.props:
        if (name in state.props or len(state.props) < 256) and _good(row[None])[0]:
            state.props.add(name)
            place, turn = UNITY.points(row[None, :3]), _unit(UNITY.from_xyzw(row[None, 3:]))
            curves = NO_CURVES if fov is None else {"fov": fov}
            out.append(Frame(name, "prop", None, state.time, (name,), place, turn, curves=curves, name=name))
    for name, value in digest.blends:
        if (name in state.blends or len(state.blends) < _MAX_NAMES) and abs(value) < 1e6:
            state.blends[name] = value
    if digest.applied and state.blends:
        out.append(Frame(_SOURCE, "morphs", None, state.time, curves=dict(state.blends), name=_SOURCE))
    return out


def _again(digest: Digest, state: VmcState) -> bool:
    if digest.bones == state.names:
        return bool(state.seen.any())
    return any(n in state.at and state.seen[state.at[n]] for n in digest.bones)


def _bones_in(digest: Digest, state: VmcState) -> None:
    good = _good(digest.rows)
    if digest.bones != state.names:
        fresh = [n for n in digest.bones if n not in state.at]
        if fresh:
            _widen(state, fresh)
        where = np.array([state.at[n] for n in digest.bones], dtype=np.intp)[good]
        state.values[where] = digest.rows[good]
        state.seen[where] = True
    elif good.all():
        state.values = digest.rows
        state.seen[:] = True
    else:
        state.values[good] = digest.rows[good]
        state.seen[good] = True
    if not good.all():
        state.counts.broken += 1


def _widen(state: VmcState, fresh: Sequence[str]) -> None:
    """Bones that were not known yet."""
    names = humanoid.ordered((*state.names, *fresh))
    state.settled = False
    values = np.zeros((len(names), 7))
    values[:, 6] = 1.0
    seen = np.zeros(len(names), dtype=bool)
    for i, name in enumerate(names):
        if name in state.at:
            values[i], seen[i] = state.values[state.at[name]], state.seen[state.at[name]]
    state.names, state.values, state.seen = names, values, seen
    state.at = {n: i for i, n in enumerate(names)}


def _emit(state: VmcState) -> Frame:
    """The frame that has come together, with the root's transform folded into the hips."""
    places, turns = UNITY.points(state.values[:, :3]), _unit(UNITY.from_xyzw(state.values[:, 3:]))
    if state.root[6] != 1.0 or state.root[:3].any():
        _fold(state, places, turns)
    if state.pose is None or len(state.pose[0]) != len(places):
        state.pose = (places, turns)
    whole = bool(state.seen.all())
    valid = None if whole else state.seen.copy()
    state.seen = np.zeros(len(state.names), dtype=bool)
    return Frame(_SOURCE, "body", None, state.time, state.names, places, turns, "local", NO_CURVES, None, valid, _SOURCE)


def _fold(state: VmcState, places: Array, turns: Array) -> None:
    turn, place = _unit(UNITY.from_xyzw(state.root[3:])), UNITY.points(state.root[:3])
    for j, p in enumerate(humanoid.parents(state.names)):
        if p < 0:
            turns[j], places[j] = quat.mul(turn, turns[j]), place + quat.rotate(turn, places[j])


def _unit(q: Array) -> Array:
    return q / np.sqrt((q * q).sum(axis=-1))[..., None]


def _good(rows: Array) -> NDArray[np.bool_]:
    """Which rows (place, x, y, z, w) are transforms of a body."""
    square = np.einsum("ij,ij->i", rows[:, 3:], rows[:, 3:])
    return (square >= _LOW) & (square <= _HIGH) & (np.abs(rows[:, :3]) < 1e5).all(axis=1)
