# SPDX-License-Identifier: GPL-3.0-or-later
"""What a datagram of VMC says. Senders repeat a bundle with other numbers: its shape is remembered, and only the numbers are read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from . import osc
from .base import BrokenPacketError
from .humanoid import PARENT

Array = NDArray[np.float64]
_BONE, _ROOT, _TIME, _OK = b"/VMC/Ext/Bone/Pos", b"/VMC/Ext/Root/Pos", b"/VMC/Ext/T", b"/VMC/Ext/OK"
_VALUE, _APPLY, _CAMERA = b"/VMC/Ext/Blend/Val", b"/VMC/Ext/Blend/Apply", b"/VMC/Ext/Cam"
_PROPS = frozenset((b"/VMC/Ext/Hmd/Pos", b"/VMC/Ext/Con/Pos", b"/VMC/Ext/Tra/Pos"))
_MAX_NAME = 128


@dataclass
class Digest:
    """Values of one frame, or of a part of one. Rows are place and rotation (x, y, z, w) in Unity's axes."""

    time: float | None = None
    ok: bool = False
    first: bool = False
    root: Array | None = None
    bones: tuple[str, ...] = ()
    rows: Array = field(default_factory=lambda: np.zeros((0, 7)))
    blends: Sequence[tuple[str, float]] = ()
    applied: bool = False
    props: Sequence[tuple[str, Array, float | None]] = ()


@dataclass
class Digests:
    """All of a datagram, cut where a frame ends inside it."""

    digests: list[Digest]
    known: int
    foreign: int
    broken: int


class _Building:
    def __init__(self) -> None:
        self.digest = Digest()
        self.bones: dict[str, list[float]] = {}
        self.blends: list[tuple[str, float]] = []
        self.props: list[tuple[str, Array, float | None]] = []

    def closed(self) -> Digest:
        d = self.digest
        d.bones = tuple(n for n in PARENT if n in self.bones)
        d.rows = np.array([self.bones[n] for n in d.bones], dtype=np.float64).reshape(-1, 7)
        d.blends, d.props = self.blends, self.props
        return d


def digests(data: bytes) -> Digests:
    """Read a datagram message by message. What is broken is left out and counted; addresses that nobody needs are passed over."""
    now = _Building()
    out: list[Digest] = []
    known = foreign = broken = 0
    stream = osc.messages(data)
    while True:
        try:
            message = next(stream, None)
        except BrokenPacketError:
            broken += 1
            break
        if message is None:
            break
        if not message.address.startswith(b"/VMC/"):
            foreign += 1
            continue
        known += 1
        try:
            values = osc.arguments(data, message)
            if _ends_frame(message.address, values, now):
                out.append(now.closed())
                now = _Building()
            _let_in(message.address, values, now)
        except (BrokenPacketError, ValueError, TypeError, IndexError, OverflowError):
            broken += 1
    out.append(now.closed())
    if broken and not known:
        raise BrokenPacketError("no message can be read")
    return Digests(out, known, foreign, broken)


def _ends_frame(address: bytes, values: list[osc.Value], now: _Building) -> bool:
    """A time stamp after the first bones begins the next frame, and so does a bone that comes again."""
    if address == _TIME:
        return bool(now.bones) and now.digest.time is not None
    return address == _BONE and bool(values) and values[0] in now.bones


def _let_in(address: bytes, values: list[osc.Value], now: _Building) -> None:
    d = now.digest
    if address == _BONE:
        name = str(values[0])
        if name in PARENT:
            now.bones[name] = _numbers(values, 7)
    elif address == _VALUE:
        if len(str(values[0])) <= _MAX_NAME:
            now.blends.append((str(values[0]), float(values[1])))  # type: ignore[arg-type]
    elif address == _TIME:
        d.time = float(values[0])  # type: ignore[arg-type]
        d.first = not now.bones
        if d.time != d.time:
            d.time = None
    elif address == _OK:
        d.ok = True
        d.first = d.first or not now.bones
    elif address == _APPLY:
        d.applied = True
    elif address == _ROOT:
        d.root = np.array(_numbers(values, 7))
    elif address in _PROPS or address == _CAMERA:
        name = str(values[0])
        fov = float(values[8]) if address == _CAMERA and len(values) > 8 else None  # type: ignore[arg-type]
        if 0 < len(name) <= _MAX_NAME and len(now.props) < 256:
            now.props.append((name, np.array(_numbers(values, 7)), fov))


def _numbers(values: list[osc.Value], count: int) -> list[float]:
    """Arguments after the name, as floats whatever their type; surplus ones are passed over."""
    if len(values) < count + 1:
        raise BrokenPacketError("fewer numbers than a transform has")
    return [float(v) for v in values[1 : count + 1]]  # type: ignore[arg-type]


# -- shapes ------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Template:
    """A bundle's shape: words that stay, and where the numbers are."""

    fixed: NDArray[np.intp]
    words: bytes
    time: int
    first: bool
    ok: bool
    root: NDArray[np.intp] | None
    bones: tuple[str, ...]
    rows: NDArray[np.intp]
    blends: tuple[str, ...]
    values: NDArray[np.intp]
    applied: bool

    def read(self, data: bytes) -> Digest | None:
        """The numbers of a datagram of this shape and length; None when it has another shape."""
        words = np.frombuffer(data, ">u4")
        if words[self.fixed].tobytes() != self.words:
            return None
        numbers = words.view(">f4").astype(np.float64)
        time = float(numbers[self.time]) if self.time >= 0 else None
        if time is not None and time != time:
            time = None
        return Digest(
            time,
            self.ok,
            self.first,
            None if self.root is None else numbers[self.root],
            self.bones,
            numbers[self.rows],
            list(zip(self.blends, numbers[self.values].tolist(), strict=True)) if self.blends else (),
            self.applied,
        )


def template_of(data: bytes) -> Template | None:
    """The shape of a datagram; None where it has more than one frame, numbers of another type, or things beside bones and blends."""
    if len(data) % 4 or data[:8] != osc.BUNDLE:
        return None
    free = np.zeros(len(data) // 4, dtype=bool)
    time, first, ok, applied = -1, False, False, False
    root: NDArray[np.intp] | None = None
    bones: dict[str, int] = {}
    blends: list[tuple[str, int]] = []
    for message in osc.messages(data):
        address = message.address
        at = message.start
        if address in (_BONE, _ROOT, _VALUE):
            wanted = "sf" if address == _VALUE else "sfffffff"
            if message.tags != wanted:
                return None
            stop = data.find(b"\0", at, message.end)
            name = data[at:stop].decode("utf-8", "replace")
            at = (at + ((stop - at) // 4 + 1) * 4) // 4
            count = len(wanted) - 1
            if stop < 0 or (at + count) * 4 > message.end or len(name) > _MAX_NAME:
                return None
            free[at : at + count] = True
            if address == _ROOT:
                root = np.arange(at, at + 7)
            elif address == _VALUE:
                blends.append((name, at))
            elif name in bones:
                return None
            elif name in PARENT:
                bones[name] = at
        elif address == _TIME:
            if message.tags != "f" or time >= 0 or at + 4 > message.end:
                return None
            time, first = at // 4, first or not bones
            free[time] = True
        elif address == _OK:
            ok, first = True, first or not bones
        elif address == _APPLY:
            applied = True
        else:
            return None
    free[2:4] = True  # the bundle's own time
    fixed = np.flatnonzero(~free)
    names = tuple(n for n in PARENT if n in bones)
    rows = np.array([np.arange(bones[n], bones[n] + 7) for n in names], dtype=np.intp).reshape(-1, 7)
    values = np.array([at for _, at in blends], dtype=np.intp)
    words = np.frombuffer(data, ">u4")[fixed].tobytes()
    return Template(fixed, words, time, first, ok, root, names, rows, tuple(n for n, _ in blends), values, applied)
