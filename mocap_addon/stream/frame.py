# SPDX-License-Identifier: GPL-3.0-or-later
"""What every protocol becomes: frames of bodies, props and morphs, in the project's axes and metres.

A decoder turns bytes into :class:`Frame` and never raises: what it cannot read it counts. It keeps what it must remember (halves of split
datagrams, names, skeletons, the rest of a TCP stream) in a :class:`State`, one per sender's address, bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal, NamedTuple, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from ..motion import kinematics, quat, timecode
from ..motion.skeleton import Skeleton
from ..motion.take import PropTrack, Source, Take

Array = NDArray[np.float64]
Kind = Literal["body", "prop", "morphs", "info"]
Space = Literal["global", "local"]
NO_CURVES: Mapping[str, float] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One moment of one performer, one prop, or one face.

    Rotations count from the skeleton's rest (T-pose) in world-aligned axes: all identity is the T-pose, for every protocol.

    Parameters
    ----------
    source : str
        The performer's or prop's id as sent. Unique within a sender's address and kind.
    kind : "body", "prop", "morphs" or "info"
        A prop has one joint. ``info`` carries a time code or a name alone.
    number : int or None
        The sender's frame counter (may wrap, restart, or stand still for props).
    time : float or None
        Seconds of the sender's own clock.
    joints : tuple of str
        The same object for every frame of one layout.
    positions : (J, 3) array or None
        Metres: places in the world (``space`` global) or in the parent's frame (local). A row of NaN: not sent, the rest's holds.
    rotations : (J, 4) array or None
        wxyz, in the world or in the parent's frame.
    space : "global" or "local"
    curves : mapping from name to float
        Morphs and other scalars; morphs in 0..1.
    time_code : str or None
        ``HH:MM:SS:FF`` or ``HH:MM:SS.mmm`` as sent.
    valid : (J,) bool array or None
        Which joints the sender saw. None: all.
    name : str
        A name for people, where the protocol has one; else the source.
    origin : "capture", "retargeted" or "replay"
        Where the motion comes from, for protocols that say so.
    """

    source: str
    kind: Kind
    number: int | None
    time: float | None
    joints: tuple[str, ...] = ()
    positions: Array | None = None
    rotations: Array | None = None
    space: Space = "global"
    curves: Mapping[str, float] = field(default_factory=lambda: NO_CURVES)
    time_code: str | None = None
    valid: NDArray[np.bool_] | None = None
    name: str = ""
    origin: Source = "capture"


@dataclass(frozen=True, slots=True)
class Head:
    """What a datagram says about itself without its body being decoded: for statistics, clocks, and to choose what to decode.

    ``number`` and ``time`` as in :class:`Frame`. ``whole`` tells that this datagram alone gives the frame.
    """

    source: str
    kind: Kind
    number: int | None
    time: float | None
    whole: bool = True


@dataclass
class Counts:
    """What became of a sender's packets. ``failed`` counts faults of a decoder itself and must stay 0."""

    packets: int = 0
    frames: int = 0
    unknown: int = 0
    broken: int = 0
    ignored: int = 0
    incomplete: int = 0
    failed: int = 0
    fault: str = ""


@dataclass
class State:
    """What a decoder remembers of one sender's address (one per address, and per TCP connection)."""

    counts: Counts = field(default_factory=Counts)
    remainder: bytes = b""
    notes: list[str] = field(default_factory=list[str])
    options: dict[str, object] = field(default_factory=dict[str, object])

    def note(self, sentence: str) -> None:
        """Keep a sentence for the person, once, at most 20 of them."""
        if sentence not in self.notes and len(self.notes) < 20:
            self.notes.append(sentence)


class Decoder(Protocol):
    """Bytes to frames and back, for one protocol. Nothing here raises for what was received."""

    @property
    def name(self) -> str:
        """Short and unique: ``mvn``, ``vmc``, ``rokoko`` ..."""
        ...

    @property
    def title(self) -> str:
        """As a person knows it."""
        ...

    @property
    def default_port(self) -> int: ...

    @property
    def transports(self) -> tuple[str, ...]:
        """Of "udp" and "tcp", the usual one first."""
        ...

    @property
    def stands_alone(self) -> bool:
        """Whether most datagrams give their frames alone, so that bodies may be left out. Else decode all of them, in order."""
        ...

    def state(self) -> State:
        """A fresh memory for one sender's address."""
        ...

    def recognises(self, data: bytes) -> bool:
        """Whether a datagram (or the first bytes of a TCP stream) is of this protocol."""
        ...

    def messages(self, chunk: bytes, state: State) -> list[bytes]:
        """TCP: the whole messages that end in this chunk; the rest is kept in ``state.remainder``."""
        ...

    def header(self, data: bytes, state: State) -> list[Head]:
        """Who and when, without decoding the body. Changes nothing in ``state``."""
        ...

    def decode(self, data: bytes, state: State) -> list[Frame]:
        """The frames that this datagram (or message) completes."""
        ...

    def decode_all(self, packets: Sequence[bytes], state: State) -> list[list[Frame]]:
        """The same for many in order, one list of frames a packet: several times faster where arrays can be made of all at once."""
        ...

    def flush(self, state: State) -> list[Frame]:
        """What has come of frames that are not whole, after a silence (8 ms) or at the end of a capture."""
        ...

    def skeleton(self, source: str, state: State) -> Skeleton | None:
        """The performer's joints in T-pose, as sent, learned from its frames, or of average size; None before its first frame."""
        ...

    def standard(self, joints: Sequence[str] = ()) -> Skeleton:
        """A body of average size with this protocol's joints (T-pose): what to retarget onto before sending."""
        ...

    def encode(self, frames: Sequence[Frame], sender: Sender) -> list[bytes]:
        """The datagrams of one moment. Frames are global (see :func:`frames_of`) and carry the protocol's joint names."""
        ...


@dataclass
class Sender:
    """What an encoder remembers between moments, and how it is set.

    ``number`` is the moment's counter, ``time`` seconds since the start; who sends sets both before each ``encode``.
    ``skeletons`` are sent where the protocol has a message for them.
    """

    number: int = 0
    time: float = 0.0
    rate: float = 60.0
    mtu: int = 1472
    skeletons: dict[str, Skeleton] = field(default_factory=dict[str, Skeleton])
    options: dict[str, object] = field(default_factory=dict[str, object])


def local_pose(frame: Frame, skeleton: Skeleton) -> tuple[Array, Array]:
    """A body frame's ``(J, 4)`` local rotations and ``(J, 3)`` local translations on ``skeleton`` (whose rest rotations are identity).

    Bone lengths are the skeleton's; only roots move. Joints are matched by name; those that the frame lacks stay at rest.
    """
    rotations, translations = local_poses([frame], skeleton)
    return rotations[0], translations[0]


def local_poses(frames: Sequence[Frame], skeleton: Skeleton) -> tuple[Array, Array]:
    """The same for F frames at once: ``(F, J, 4)`` and ``(F, J, 3)``."""
    f = len(frames)
    rotations = np.empty((f, len(skeleton), 4), order="F")
    translations = np.empty((f, len(skeleton), 3), order="F")
    rotations[:], translations[:] = skeleton.rest_rotations, skeleton.rest_translations
    groups: dict[tuple[tuple[str, ...], Space], list[int]] = {}
    for i, frame in enumerate(frames):
        groups.setdefault((frame.joints, frame.space), []).append(i)
    for (joints, space), members in groups.items():
        found = _found(joints, skeleton)
        turned = [i for i in members if frames[i].rotations is not None]
        if turned and found.to.size:
            sent = np.array([frames[i].rotations for i in turned], dtype=np.float64)[:, found.of]
            rows = np.array(turned)[:, None]
            if space == "local":
                rotations[rows, found.to] = sent
            else:
                rotations[rows, np.arange(len(skeleton))] = _local(sent, found, skeleton)
        placed = [i for i in members if frames[i].positions is not None]
        if placed and found.roots_to.size:
            places = np.array([frames[i].positions for i in placed], dtype=np.float64)[:, found.roots_of]
            rest = skeleton.rest_translations[found.roots_to]
            rows = np.array(placed)[:, None]
            translations[rows, found.roots_to] = np.where(np.isfinite(places).all(axis=2, keepdims=True), places, rest)
    return rotations, translations


class _Found(NamedTuple):
    """Where a frame's joints are in a skeleton: ``of`` in the frame, ``to`` in the skeleton; the same for roots; joints it lacks."""

    of: NDArray[np.intp]
    to: NDArray[np.intp]
    roots_of: NDArray[np.intp]
    roots_to: NDArray[np.intp]
    lacking: tuple[int, ...]


@lru_cache(maxsize=64)
def _found(joints: tuple[str, ...], skeleton: Skeleton) -> _Found:
    pairs = [(i, skeleton.index(n)) for i, n in enumerate(joints) if n in skeleton]
    of, to = (np.array([pair[k] for pair in pairs], dtype=np.intp) for k in (0, 1))
    root = np.isin(to, skeleton.roots)
    return _Found(of, to, of[root], to[root], tuple(j for j in range(len(skeleton)) if j not in set(to.tolist())))


def _local(sent: Array, found: _Found, skeleton: Skeleton) -> Array:
    """Global rotations ``(F, K, 4)`` of the joints found -> local ones of all, ``(F, J, 4)``; joints that are lacking stay at rest."""
    whole = np.empty((len(sent), len(skeleton), 4))
    whole[:, found.to] = sent
    for j in found.lacking:
        p = int(skeleton.parents[j])
        whole[:, j] = skeleton.rest_rotations[j] if p < 0 else quat.mul(whole[:, p], skeleton.rest_rotations[j])
    above = skeleton.parents
    local = quat.mul(quat.inv(whole[:, np.maximum(above, 0)]), whole)
    return np.where((above >= 0)[:, None], local, whole)


def to_take(
    frames: Iterable[Frame], skeleton: Skeleton, times: Array, *, name: str = "", props: Mapping[str, PropTrack] | None = None
) -> Take:
    """Body frames of one performer as a take. ``times (F,)`` are seconds, strictly increasing; curves are held where a frame lacks them."""
    bodies = list(frames)
    rotations, translations = local_poses(bodies, skeleton)
    names = dict.fromkeys(n for frame in bodies for n in frame.curves)
    curves = {n: _held([frame.curves.get(n) for frame in bodies]) for n in names}
    valid: NDArray[np.bool_] | None = None
    if any(frame.valid is not None for frame in bodies):
        valid = np.ones((len(bodies), len(skeleton)), dtype=bool)
        for i, frame in enumerate(bodies):
            if frame.valid is not None:
                for n, seen in zip(frame.joints, frame.valid.tolist(), strict=True):
                    if n in skeleton:
                        valid[i, skeleton.index(n)] = seen
    first = next((frame for frame in bodies if frame.time_code), None)
    performer = (bodies[0].name or bodies[0].source) if bodies else ""
    return Take(
        name or performer,
        skeleton,
        np.asarray(times, dtype=np.float64),
        quat.continuous(rotations) if bodies else rotations,
        translations,
        valid=valid,
        curves=curves,
        props=dict(props or {}),
        performer=performer,
        timecode=first.time_code if first else None,
        source=bodies[0].origin if bodies else "capture",
    )


def _held(values: Sequence[float | None]) -> Array:
    """A curve with gaps: the value before holds, zero before the first."""
    out = np.zeros(len(values))
    last = 0.0
    for i, value in enumerate(values):
        last = last if value is None else value
        out[i] = last
    return out


def frames_of(
    take: Take, index: int, *, names: Mapping[str, str] | None = None, source: str = "", number: int | None = None
) -> list[Frame]:
    """Sample ``index`` of a take as global frames for an encoder: the body first, then its props.

    Rotations are counted from the take's rest pose, which should be a T-pose. ``names`` renames joints to the protocol's and leaves
    out the others.
    """
    chosen = [j for j, n in enumerate(take.skeleton.names) if names is None or n in names]
    joints = tuple(take.skeleton.names[j] if names is None else names[take.skeleton.names[j]] for j in chosen)
    first, turns, places = _blocks.get(take, (-_BLOCK, None, None))
    if turns is None or places is None or not first <= index < first + len(turns):
        first, turns, places = _block(take, index)
        _blocks[take] = first, turns, places
    time = float(take.times[index])
    who = source or take.performer or take.name
    curves = {k: float(v[index]) for k, v in take.curves.items() if not k.startswith(timecode.PREFIX)}
    start = take.time_code if take.timecode is not None else None
    code = None if start is None else str(start.shifted(time - float(take.times[0])))
    count, row = index if number is None else number, index - first
    out = [Frame(who, "body", count, time, joints, places[row, chosen], turns[row, chosen], "global", curves, code, None, who, take.source)]
    for prop, track in take.props.items():
        place, turn = track.translations[index][None], track.rotations[index][None]
        out.append(Frame(prop, "prop", count, time, (prop,), place, turn, name=prop, origin=take.source))
    return out


_BLOCK = 512
_blocks: WeakKeyDictionary[Take, tuple[int, Array, Array]] = WeakKeyDictionary()
"""Global poses of the samples around the last one that was asked for: a sender asks for one after the other."""


def _block(take: Take, index: int) -> tuple[int, Array, Array]:
    """First sample, rotations since the rest ``(F, J, 4)`` and places ``(F, J, 3)`` in the world."""
    first = index // _BLOCK * _BLOCK
    part = take.block(first, first + _BLOCK)
    turns, places = kinematics.forward(part.local_rotations, part.local_translations, take.skeleton.parents)
    delta = quat.mul(turns, quat.inv(take.skeleton.rest_global_rotations))
    return first, np.ascontiguousarray(delta), np.ascontiguousarray(places)
