# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever arrives, receiving goes on: damaged packets are counted, and nothing else happens."""

from __future__ import annotations

import struct
import warnings

import numpy as np
import pytest

from mocap_addon.stream import lz4_frame, mvn_wire, osc
from mocap_addon.stream.mvn import Mvn
from mocap_addon.stream.protocols import PROTOCOLS, decoder, recognise

from . import mutants
from .bodies import moving, of_kind, packets, received

IN_ALL = 20_000
SHARE = IN_ALL // len(PROTOCOLS)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_mutants(name):
    """The share of the 20,000; a million of each are the nightly run (``scripts/bench live_hostile``). A warning counts as a fault."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mutants.throw(name, SHARE, seed=len(name))
    assert found.failed == 0, found.faults
    assert found.decoded >= 0.3 * found.count, found
    assert found.slowest < 0.005, found


@pytest.mark.parametrize("name", PROTOCOLS)
def test_mutants_leave_nothing_behind(name):
    found = mutants.throw(name, 600, seed=3, measure_memory=True)
    assert found.growth < 300_000, found


@pytest.mark.parametrize("name", PROTOCOLS)
def test_rubbish(name):
    protocol = decoder(name)
    state = protocol.state()
    rng = np.random.default_rng(1)
    for size in (0, 1, 3, 4, 8, 23, 24, 63, 64, 65, 1000, 65507):
        for data in (
            bytes(size),
            b"\xff" * size,
            rng.bytes(size),
            b"{" * size,
            b'{"a":' * (size // 5),
            b"[" * size,
            b"/" * size,
            b"#bundle\0" * 8,
        ):
            assert protocol.decode(data, state) == []
            protocol.header(data, state)
            recognise(data)
            if "tcp" in protocol.transports:
                protocol.messages(data, state)
    assert state.counts.failed == 0, state.counts.fault
    assert len(state.remainder) <= 1 << 20


@pytest.mark.parametrize("name", PROTOCOLS)
def test_other_protocols_packets_are_not_taken_for_ones_own(name):
    for other in PROTOCOLS:
        for data in mutants.corpus(other)[:8]:
            if other == "vrpn" and not data.startswith(b"vrpn"):
                continue
            assert (recognise(data) is decoder(name)) == (other == name)
            if other != name:
                state = decoder(name).state()
                assert decoder(name).decode(data, state) == []
                assert state.counts.failed == 0 and state.counts.unknown + state.counts.broken == 1


def test_a_sender_that_invents_performers_does_not_fill_the_memory():
    for name in ("chingmu", "rokoko", "json", "noitom", "natnet"):
        protocol = decoder(name)
        state = protocol.state()
        take = moving(protocol.standard(), frames=1, props=())
        (packet,) = packets(protocol, take)[-1:]
        for i in range(600):
            if name == "noitom":
                data = packet[:10] + struct.pack("<I", i) + packet[14:]
            elif name == "natnet":
                data = bytearray(packet)
                at = packet.index(struct.pack("<II", 1, 21))
                data[at : at + 4] = struct.pack("<I", i)
                data = bytes(data)
            else:
                data = packet.replace(b'"Anna"', f'"A{i}"'.encode())
            protocol.decode(data, state)
        for value in vars(state).values():
            if isinstance(value, dict):
                assert len(value) <= 512, (name, len(value))


def test_halves_that_never_become_whole_are_dropped():
    protocol = Mvn()
    state = protocol.state()
    body = struct.pack(">I7f", 1, 0, 0, 1, 1, 0, 0, 0)
    for i in range(3000):
        protocol.decode(mvn_wire.pack(b"02", i, 0, 1, 0, i % 256, (23, 0, 0), body), state)
    assert len(state.pending) <= 64 and all(p.size < 1 << 17 for p in state.pending.values())
    big = mvn_wire.pack(b"02", 9, 0, 255, 0, 0, (255, 255, 255), body * 255)
    for part in range(127):
        protocol.decode(big[:10] + bytes([part]) + big[11:], state)
    assert sum(p.size for p in state.pending.values()) < 1 << 19


def test_an_lz4_bomb_is_refused():
    block = b"\x1f" + b"a" + b"\x01\x00" + b"\xff" * 60000 + b"\x00" + b"\x50aaaaa"
    frame = lz4_frame.MAGIC + bytes([0x60, 0x70]) + bytes([lz4_frame.xxh32(bytes([0x60, 0x70])) >> 8 & 0xFF])
    state = decoder("rokoko").state()
    assert decoder("rokoko").decode(frame + len(block).to_bytes(4, "little") + block + bytes(4), state) == []
    assert state.counts.broken == 1


def test_deep_json_and_deep_bundles_are_refused():
    for name in ("rokoko", "chingmu", "json"):
        state = decoder(name).state()
        deep = b'{"version":3,"scene":' * 10000
        nested = b'{"mocap":1,"version":3,"humans":' + b"[" * 20000 + b"]" * 20000 + b"}"
        for data in (deep, nested, b'{"version":' + b"9" * 60000 + b"}"):
            assert decoder(name).decode(data, state) == []
        assert state.counts.failed == 0, state.counts.fault
    data = osc.encode("/VMC/Ext/OK", 1)
    for _ in range(100):
        data = osc.bundles([data], 65000)[0]
    state = decoder("vmc").state()
    assert decoder("vmc").decode(data, state) == [] and state.counts.broken == 1 and state.counts.failed == 0


def test_numbers_that_are_none():
    """Not finite, too far, or no rotation: in every protocol the packet or the bone is dropped, and no such number comes out."""
    for name in PROTOCOLS:
        protocol = decoder(name)
        for data in mutants.mutants(name, 300, 5):
            state = protocol.state()
            for frame in protocol.decode(data, state):
                if frame.rotations is not None and frame.kind != "info":
                    np.testing.assert_allclose((frame.rotations**2).sum(axis=1), 1.0, atol=1e-9)
                if frame.positions is not None:
                    assert not (np.abs(frame.positions) > 1.001e5).any()


def test_a_valid_stream_goes_on_among_mutants():
    """Every second datagram is damaged; all of the others arrive."""
    for name in ("rokoko", "noitom", "chingmu", "json"):
        protocol = decoder(name)
        take = moving(protocol.standard(), frames=30, props=())
        sent = packets(protocol, take)
        bad = [m[: len(m) // 2] for m in mutants.mutants(name, 30, 8)]
        frames, state = received(protocol, [d for pair in zip(sent, bad, strict=True) for d in pair])
        assert len(of_kind(frames, "body")) >= 30 and state.counts.failed == 0
