# SPDX-License-Identifier: GPL-3.0-or-later
"""Damaged packets: what a hostile or broken sender, or a bad network, could send. No pytest here: the nightly run uses it too."""

from __future__ import annotations

import gc
import re
import time
import tracemalloc
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from mocap_addon.stream.frame import Decoder, Sender, State, frames_of
from mocap_addon.stream.protocols import PROTOCOLS, decoder, recognise

from .bodies import FINGERS, moving
from .lz4_writer import compress

VARIANTS: dict[str, list[dict[str, object]]] = {
    "mvn": [{}, {"types": ("01", "05")}, {"types": ("12", "13", "20", "21", "22", "23", "24", "25", "02")}],
    "vmc": [{}, {"bundle": False}],
    "rokoko": [{}, {"lz4": True}, {"version": 2}],
    "noitom": [{}, {"displacement": False}, {"old": True}, {"text": True}],
    "natnet": [{"version": v} for v in ("4.1", "3.1", "2.10", "2.6")],
    "chingmu": [{}, {"space": "unreal"}],
    "json": [{}],
    "vrpn": [{}],
}
_WORDS = (0, 1, 0x7F, 0x80, 0xFF, 0x7F80, 0x7FFF, 0xFFFF, 0x7F800000, 0x7FC00000, 0x7FFFFFFF, 0x80000000, 0xFF800000, 0xFFFFFFFF)

_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_WRITTEN = (
    *(b"0", b"-1", b"1e308", b"-1e999", b"NaN", b"Infinity", b"null", b"true", b'"1,5"', b'"x"', b"[]", b"{}", b"[[1]]"),
    *(b"12345678901234567890", b"0.70710678", b"99999999", b'"0.25"', b"1e-300"),
)


@cache
def corpus(name: str) -> list[bytes]:
    """Valid packets of a protocol, in all its kinds: whole and split bodies with fingers, props, descriptions."""
    protocol = decoder(name)
    out: list[bytes] = []
    for options in VARIANTS[name]:
        for joints in ((), FINGERS.get(name, ())):
            skeleton = protocol.standard(joints)
            take = moving(skeleton, frames=3, props=() if name == "noitom" else ("7",))
            sender = Sender(options=dict(options), rate=2.0, skeletons={"Anna": skeleton})
            for i in range(take.frames):
                sender.number, sender.time = i, i / 64
                frames = frames_of(take, i)
                out += protocol.encode(frames, sender)
    if name == "rokoko":
        out += [compress(data) for data in out[:3]]
    return protocol.messages(b"".join(out), protocol.state()) if name == "vrpn" else out


def worded(data: bytes, rng: np.random.Generator) -> bytes:
    """A text with one or two of its numbers in other words: extreme, missing, of another kind."""
    for _ in range(int(rng.integers(1, 3))):
        found = list(_NUMBER.finditer(data))
        if found:
            chosen = found[int(rng.integers(0, len(found)))]
            data = data[: chosen.start()] + _WRITTEN[int(rng.integers(0, len(_WRITTEN)))] + data[chosen.end() :]
    return data


def mutant(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    """One packet, damaged: bits, bytes, words of extreme values, cut, grown, pieces doubled or of another packet."""
    if data[:1] == b"{" and rng.integers(0, 2):
        return worded(data, rng)
    raw = bytearray(data)
    if not raw:
        return b""
    for _ in range(int(rng.integers(1, 3))):
        at = int(rng.integers(0, len(raw))) if raw else 0
        kind = int(rng.integers(0, 9))
        if not raw:
            break
        if kind <= 2:
            raw[at] ^= 1 << int(rng.integers(0, 8))
        elif kind == 3:
            raw[at] = int(rng.integers(0, 256))
        elif kind == 4:
            word = _WORDS[int(rng.integers(0, len(_WORDS)))]
            raw[at : at + 4] = word.to_bytes(4, "big" if rng.integers(0, 2) else "little")
        elif kind == 5 and rng.integers(0, 3) == 0:
            del raw[at:]
        elif kind == 6:
            raw += rng.bytes(int(rng.integers(1, 64)))
        elif kind == 7 and rng.integers(0, 3) == 0:
            raw[at:at] = raw[at : at + int(rng.integers(1, 32))]
        elif kind == 8 and rng.integers(0, 3) == 0:
            size = int(rng.integers(1, 32))
            raw[at : at + size] = other[at : at + size]
        else:
            raw[at : at + 1] = bytes([48 + int(rng.integers(0, 10))])
    return bytes(raw)


def mutants(name: str, count: int, seed: int) -> Iterator[bytes]:
    """``count`` damaged packets."""
    packets = corpus(name)
    rng = np.random.default_rng(seed)
    for _ in range(count):
        a, b = (packets[int(i)] for i in rng.integers(0, len(packets), 2))
        yield mutant(a, b, rng)


@dataclass
class Outcome:
    """What became of many mutants."""

    count: int = 0
    decoded: int = 0
    failed: int = 0
    faults: set[str] = field(default_factory=set[str])
    slowest: float = 0.0
    growth: float = 0.0


def throw(name: str, count: int, seed: int = 0, *, measure_memory: bool = False) -> Outcome:
    """Give ``count`` mutants to a decoder as one sender's packets, its valid ones among them; ask for skeletons and heads as well."""
    protocol = decoder(name)
    valid = corpus(name)
    state = protocol.state()
    out = Outcome()
    stream = protocol.state()
    settled = 0
    for data in valid:
        protocol.decode(data, state)
    damaged: Iterable[bytes] = mutants(name, count, seed)
    if measure_memory:
        damaged = list(damaged)
        tracemalloc.start()
    for i, data in enumerate(damaged):
        out.count += 1
        counts = state.counts
        before = counts.frames, counts.broken + counts.unknown
        out.slowest = max(out.slowest, _timed(protocol, data, state))
        out.decoded += counts.frames > before[0] or counts.broken + counts.unknown == before[1]
        if i % 16 == 0:
            recognise(data)
            protocol.header(data, state)
            protocol.decode(valid[i // 16 % len(valid)], state)
            if "tcp" in protocol.transports:
                for message in protocol.messages(data, stream):
                    protocol.decode(message, stream)
        if i % 256 == 0:
            for source in _sources(state):
                protocol.skeleton(source, state)
            protocol.flush(state)
        if measure_memory and i == count // 2:
            gc.collect()
            settled = tracemalloc.get_traced_memory()[0]
    if measure_memory:
        gc.collect()
        out.growth = float(tracemalloc.get_traced_memory()[0] - settled)
        tracemalloc.stop()
    out.failed = state.counts.failed + stream.counts.failed
    out.faults = {c.fault for c in (state.counts, stream.counts) if c.fault}
    return out


def _timed(protocol: Decoder, data: bytes, state: State) -> float:
    """Seconds of the processor's time; where it seems long it is measured again, for a busy machine interrupts."""
    start = time.thread_time()
    protocol.decode(data, state)
    spent = time.thread_time() - start
    for _ in range(3):
        if spent < 0.004:
            break
        again = protocol.state()
        start = time.thread_time()
        protocol.decode(data, again)
        spent = min(spent, time.thread_time() - start)
    return spent


def _sources(state: State) -> list[str]:
    """Every performer that a state could know."""
    found: set[str] = {"", "0", "Anna", "VMC", "MCAvatar/0", "nobody"}
    for value in vars(state).values():
        if isinstance(value, dict):
            found |= {str(k) for k in list(value)[:64]}
    return sorted(found)


NAMES = tuple(PROTOCOLS)
