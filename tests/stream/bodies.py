# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes that every protocol can carry, and what comes out when they are sent and read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mocap_addon.motion import quat
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import PropTrack, Take
from mocap_addon.stream.frame import Decoder, Frame, Sender, State, frames_of

FINGERS = {
    "mvn": ("LeftCarpus",),
    "vmc": ("LeftThumbProximal", "LeftThumbIntermediate", "LeftThumbDistal", "RightIndexProximal", "RightIndexIntermediate"),
    "rokoko": ("leftThumbProximal", "leftThumbMedial", "leftThumbDistal", "leftThumbTip", "rightIndexProximal", "rightIndexMedial"),
    "noitom": ("LeftHandThumb1",),
    "chingmu": ("LeftHandThumb1",),
    "vrpn": ("LeftHandThumb1",),
}


def moving(
    skeleton: Skeleton, frames: int = 6, seed: int = 0, rate: float = 64.0, props: Sequence[str] = ("7",), turn: float = 0.2
) -> Take:
    """Every joint turns by about ``turn`` radians about an axis of its own, the root walks; times are exact in binary."""
    rng = np.random.default_rng(seed)
    j = len(skeleton)
    rotations = quat.normalize(np.array([1.0, 0.0, 0.0, 0.0]) + 0.5 * turn * rng.normal(size=(frames, j, 4)))
    places = np.broadcast_to(skeleton.rest_translations, (frames, j, 3)).copy()
    places[:, 0] += rng.normal(size=(frames, 3)) * (1.0, 1.0, 0.01)
    tracks = {name: PropTrack(quat.normalize(rng.normal(size=(frames, 4))), rng.normal(size=(frames, 3))) for name in props}
    return Take("walk", skeleton, np.arange(frames) / rate, rotations, places, performer="Anna", props=tracks)


def packets(decoder: Decoder, take: Take, sender: Sender | None = None, source: str = "") -> list[bytes]:
    """What a sender of this protocol sends for the whole take."""
    sender = Sender() if sender is None else sender
    sender.skeletons.setdefault(source or take.performer, take.skeleton)
    out: list[bytes] = []
    for i in range(take.frames):
        sender.number, sender.time = i, float(take.times[i])
        out += decoder.encode(frames_of(take, i, source=source), sender)
    return out


def received(decoder: Decoder, datagrams: Sequence[bytes], state: State | None = None) -> tuple[list[Frame], State]:
    """Every frame that comes of them, at once as at the end of a capture."""
    state = decoder.state() if state is None else state
    out = [frame for data in datagrams for frame in decoder.decode(data, state)]
    return out + decoder.flush(state), state


def streamed(decoder: Decoder, datagrams: Sequence[bytes], step: int, state: State | None = None) -> tuple[list[Frame], State]:
    """The same as one TCP stream, cut into pieces of ``step`` bytes."""
    state = decoder.state() if state is None else state
    stream = b"".join(datagrams)
    whole = [m for i in range(0, len(stream), step) for m in decoder.messages(stream[i : i + step], state)]
    return received(decoder, whole, state)


def of_kind(frames: Sequence[Frame], kind: str) -> list[Frame]:
    return [f for f in frames if f.kind == kind]
