# SPDX-License-Identifier: GPL-3.0-or-later
"""What all decoders share: nothing raises, everything is counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..motion.skeleton import Skeleton
from .frame import Frame, Head, Sender, State

Array = NDArray[np.float64]

MAX_SOURCES = 256
"""Performers and props that are remembered of one sender; more are a hostile sender's."""
MAX_REMAINDER = 1 << 20
"""Bytes of a TCP stream that wait for their message to end."""


class BrokenPacketError(Exception):
    """A packet of this protocol that cannot be right; the text says why."""


class UnknownPacketError(Exception):
    """Not a packet of this protocol, or of a version nobody knows."""


class BaseDecoder:
    """A :class:`~.frame.Decoder` whose ``read`` may raise the two errors above; what else escapes is counted as a fault of ours."""

    name = ""
    title = ""
    default_port = 0
    transports: tuple[str, ...] = ("udp",)
    stands_alone = True

    def state(self) -> State:
        return State()

    def recognises(self, data: bytes) -> bool:
        raise NotImplementedError

    def messages(self, chunk: bytes, state: State) -> list[bytes]:
        return [chunk]

    def heads(self, data: bytes, state: State) -> list[Head]:
        raise NotImplementedError

    def read(self, data: bytes, state: State) -> list[Frame]:
        raise NotImplementedError

    def skeleton(self, source: str, state: State) -> Skeleton | None:
        raise NotImplementedError

    def standard(self, joints: Sequence[str] = ()) -> Skeleton:
        raise NotImplementedError

    def encode(self, frames: Sequence[Frame], sender: Sender) -> list[bytes]:
        raise NotImplementedError

    def header(self, data: bytes, state: State) -> list[Head]:
        try:
            return self.heads(data, state)
        except (BrokenPacketError, UnknownPacketError):
            return []
        except Exception as error:  # whatever arrives, receiving goes on
            self._fault(state, error)
            return []

    def decode(self, data: bytes, state: State) -> list[Frame]:
        counts = state.counts
        counts.packets += 1
        try:
            with np.errstate(all="ignore"):  # numbers that are none are looked for, never warned of
                frames = self.read(data, state)
        except BrokenPacketError:
            counts.broken += 1
            return []
        except UnknownPacketError:
            counts.unknown += 1
            return []
        except Exception as error:  # whatever arrives, receiving goes on
            self._fault(state, error)
            return []
        counts.frames += len(frames)
        return frames

    def decode_all(self, packets: Sequence[bytes], state: State) -> list[list[Frame]]:
        return [self.decode(data, state) for data in packets]

    def flush(self, state: State) -> list[Frame]:
        return []

    @staticmethod
    def _fault(state: State, error: Exception) -> None:
        state.counts.failed += 1
        state.counts.fault = f"{type(error).__name__}: {error}"[:200]


def numbers(sources: Sequence[str], limit: int) -> list[int]:
    """A number below ``limit`` for each source: its own where all are numbers of their own, else by their order."""
    own = [int(s) if s.isdecimal() and s.isascii() and len(s) < 10 else limit for s in sources]
    return own if len(set(own)) == len(own) and max(own, default=0) < limit else list(range(len(sources)))
