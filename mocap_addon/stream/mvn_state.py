# SPDX-License-Identifier: GPL-3.0-or-later
"""What is remembered of a sender of MVN: performers, samples that have not arrived whole, units and axes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from . import mvn_wire
from .axes import Axes
from .base import BrokenPacketError
from .frame import State
from .mvn_layout import Layout
from .mvn_wire import Header

Array = NDArray[np.float64]
_MAX_PENDING, _MAX_SAMPLE_BYTES = 64, 1 << 17


@dataclass
class Character:
    """What is known of one performer."""

    name: str = ""
    layout: Layout | None = None
    id_bytes: bytes = b""
    declared: tuple[int, int, int] = (0, 0, 0)
    pose: tuple[Layout, Array, Array] | None = None
    offsets: Array | None = None
    origins: Array | None = None
    time_code: tuple[int, str] | None = None

    def code_at(self, sample: int) -> str | None:
        """The time code that was sent for this sample."""
        return self.time_code[1] if self.time_code is not None and self.time_code[0] == sample else None


@dataclass
class Pending:
    """Datagrams of a sample that has not arrived whole."""

    sample: int
    parts: dict[int, bytes] = field(default_factory=dict[int, bytes])
    items: int = 0
    size: int = 0
    last: int = -1


@dataclass
class MvnState(State):
    """Options: ``unit`` ("m", "cm") and ``up`` ("z", "y"), else guessed from the first pose; ``euler_order`` of type 01 ("ZYX")."""

    characters: dict[int, Character] = field(default_factory=dict[int, Character])
    pending: dict[tuple[int, bytes], Pending] = field(default_factory=dict[tuple[int, bytes], Pending])
    units: dict[bytes, float] = field(default_factory=dict[bytes, float])
    axes: Axes | None = None

    def character(self, number: int) -> Character:
        """The performer with this id (one byte: at most 256)."""
        found = self.characters.get(number)
        if found is None:
            found = self.characters[number] = Character()
        return found


def is_whole(head: Header) -> bool:
    """Whether a datagram holds its whole sample: by its counter, else (some emulators leave it 0) by its items.

    The first of several datagrams is full, and holds more than a body and four props.
    """
    if head.part == mvn_wire.LAST:
        return True
    total = head.body + head.props + head.fingers
    return head.part == 0 and head.items >= 23 and (head.items == total or (total == 0 and head.items <= 27))


def gather(part: bytes, head: Header, state: MvnState) -> tuple[int, bytes] | None:
    """Put split datagrams together; the sample's items and bytes when this was the missing one."""
    key = (head.character, head.kind)
    pending = state.pending.get(key)
    if pending is None or pending.sample != head.sample:
        if pending is not None:
            if (head.sample - pending.sample) & 0xFFFFFFFF > 0x80000000 and (pending.sample - head.sample) & 0xFFFFFFFF < 1000:
                state.counts.ignored += 1  # a late part of a sample that is given up; farther back is a restart
                return None
            state.counts.incomplete += 1
        elif len(state.pending) >= _MAX_PENDING:
            state.pending.pop(next(iter(state.pending)))
        pending = state.pending[key] = Pending(head.sample)
    index = head.part & 0x7F
    if index in pending.parts:
        return None
    pending.parts[index] = part
    pending.items += head.items
    pending.size += len(part)
    if head.part & mvn_wire.LAST:
        pending.last = index
    if pending.size > _MAX_SAMPLE_BYTES:
        del state.pending[key]
        raise BrokenPacketError("a sample is larger than any body")
    total = head.body + head.props + head.fingers
    done = pending.last >= 0 and len(pending.parts) == pending.last + 1
    if not done and not (total and pending.items == total):
        return None
    del state.pending[key]
    return pending.items, b"".join(pending.parts[i] for i in sorted(pending.parts))
