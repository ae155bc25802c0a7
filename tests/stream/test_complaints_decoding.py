# SPDX-License-Identifier: GPL-3.0-or-later
"""What users of other tools complained of, as far as it is about reading a stream. Numbers as in the list of complaints."""

from __future__ import annotations

import ast
import json
import sys
import time
from pathlib import Path

import numpy as np

from mocap_addon.stream import humanoid, lz4_frame, osc
from mocap_addon.stream.frame import Sender, to_take
from mocap_addon.stream.protocols import PROTOCOLS, decoder

from .bodies import moving, of_kind, packets, received

STREAM = Path(__file__).resolve().parents[2] / "mocap_addon" / "stream"
MODULES = ("mvn", "vmc", "osc", "rokoko", "lz4_frame", "noitom", "chingmu", "vrpn", "natnet", "own_json", "protocols", "json_values")


def test_complaint_01_the_sender_s_rate_is_no_setting_of_the_scene():
    """Frames carry times; nothing in a packet's fps changes them."""
    protocol = decoder("rokoko")
    take = moving(protocol.standard(), props=())
    for rate in (24.0, 60.0, 100.0):
        frames, _ = received(protocol, packets(protocol, take, Sender(rate=rate)))
        np.testing.assert_allclose([f.time for f in frames], take.times)


def test_complaint_02_heads_cost_little_beside_bodies():
    """A late reader learns who and when from many packets at the cost of a few, and decodes only what it shows."""
    for name, times in (("mvn", 4.0), ("vmc", 4.0), ("noitom", 4.0)):
        protocol = decoder(name)
        sent = packets(protocol, moving(protocol.standard(), props=()), Sender(mtu=65000, rate=1e9))[1:] * 30
        state = protocol.state()
        received(protocol, sent, state)
        best = {}
        for what in (protocol.header, protocol.decode):
            spent = []
            for _ in range(5):
                start = time.thread_time()
                for data in sent:
                    what(data, state)
                spent.append(time.thread_time() - start)
            best[what.__name__] = min(spent)
        assert best["header"] * times < best["decode"], (name, best)


def test_complaint_03_nothing_unknown_and_broken_are_told_apart():
    for name in PROTOCOLS:
        protocol = decoder(name)
        state = protocol.state()
        assert (state.counts.packets, state.counts.unknown, state.counts.broken) == (0, 0, 0)
        protocol.decode(b"\x01\x02\x03 something else", state)
        assert state.counts.packets == 1 and state.counts.unknown + state.counts.broken == 1 and state.counts.frames == 0
        sent = packets(protocol, moving(protocol.standard(), props=()))
        frames, state = received(protocol, protocol.messages(b"".join(sent), protocol.state()) if name == "vrpn" else sent)
        assert state.counts.frames + 1 >= len(frames) > 0 and state.counts.unknown == state.counts.broken == 0


def test_complaint_04_numbers_as_texts_and_one_bad_field():
    protocol = decoder("rokoko")
    take = moving(protocol.standard(), frames=2, props=())
    plain, _ = received(protocol, packets(protocol, take))
    texts, state = received(protocol, packets(protocol, take, Sender(options={"texts": True})))
    assert state.counts.broken == 0
    for a, b in zip(plain, texts, strict=True):
        np.testing.assert_array_equal(a.rotations, b.rotations)
    for bad in ("n/a", None, [], {}, "NaN", 1e308, True):
        packet = json.loads(packets(protocol, take)[0])
        packet["scene"]["actors"][0]["body"]["leftHand"]["rotation"]["w"] = bad
        packet["scene"]["actors"][0]["body"]["leftHand"]["rotation"]["x"] = bad
        state = protocol.state()
        (frame,) = protocol.decode(json.dumps(packet).encode(), state)
        lost = [n for n, seen in zip(frame.joints, frame.valid, strict=True) if not seen]
        assert lost == ["leftHand"] and state.counts.failed == 0
        again = protocol.decode(packets(protocol, take)[1], state)
        assert len(again) == 1 and again[0].valid is None
    commas = packets(protocol, take)[0].replace(b'"timestamp":0.0', b'"timestamp":"0,25"')
    assert protocol.decode(commas, protocol.state())[0].time == 0.25


def test_complaint_07_and_13_nothing_compiled_and_nothing_fetched():
    for module in MODULES:
        for node in ast.walk(ast.parse((STREAM / f"{module}.py").read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                assert all(a.name.split(".")[0] in {*sys.stdlib_module_names, "numpy"} for a in node.names)
            elif isinstance(node, ast.ImportFrom) and not node.level:
                assert node.module.split(".")[0] in {*sys.stdlib_module_names, "numpy", "__future__"}
    assert lz4_frame.decompress(lz4_frame.compress(b"x" * 1000)) == b"x" * 1000


def test_complaint_11_many_messages_of_one_address_lose_no_bone():
    protocol = decoder("vmc")
    take = moving(humanoid.standard(humanoid.BONES), props=())
    for options in ({}, {"bundle": False}):
        frames, _ = received(protocol, packets(protocol, take, Sender(options=options)))
        bodies = of_kind(frames, "body")
        assert len(bodies) == take.frames and all(len(f.joints) == 55 and f.valid is None for f in bodies)
    assert osc.encode("/VMC/Ext/Bone/Pos", "Hips", 0.0)[:20] == osc.encode("/VMC/Ext/Bone/Pos", "Head", 1.0)[:20]


def test_complaint_14_a_stream_is_joined_at_any_time():
    for name in PROTOCOLS:
        protocol = decoder(name)
        take = moving(protocol.standard(), frames=8, props=())
        sent = packets(protocol, take, Sender(rate=3.0))
        if name == "vrpn":
            sent = protocol.messages(b"".join(sent), protocol.state())
            described, sent = sent[:4], sent[4:]
            late = [*described, *sent[40:]]  # a connection begins with the names
        else:
            late = sent[len(sent) // 2 :]
        frames, state = received(protocol, late)
        bodies = of_kind(frames, "body")
        assert len(bodies) >= 3 and protocol.skeleton(bodies[-1].source, state) is not None, name


def test_complaint_15_and_26_what_is_remembered_does_not_grow_with_time():
    """After 300 rounds of a stream a decoder holds what it held after 150 (mutants and the hour are measured in bytes elsewhere)."""
    for name in ("mvn", "rokoko", "chingmu", "noitom"):
        protocol = decoder(name)
        take = moving(protocol.standard(), frames=5, props=() if name == "noitom" else ("7",))
        sent = packets(protocol, take)
        state = protocol.state()
        sizes = []
        for _ in range(2):
            for _ in range(150):
                protocol.decode_all(sent, state)
            sizes.append({k: len(v) for k, v in vars(state).items() if hasattr(v, "__len__")})
        assert sizes[0] == sizes[1] and state.counts.failed == 0


def test_complaint_20_nothing_waits_in_a_decoder():
    """No queue: what a packet completes comes out with it, and a TCP stream keeps less than one message."""
    for name in ("mvn", "noitom", "json"):
        protocol = decoder(name)
        options = {"lines": True} if name == "json" else {}
        sent = packets(protocol, moving(protocol.standard(), frames=3, props=()), Sender(options=options))
        state = protocol.state()
        for data in sent * 20:
            protocol.messages(data[: len(data) // 2], state)
            assert 0 < len(state.remainder) < len(data)
            assert protocol.messages(data[len(data) // 2 :], state) == [data[:-1] if name == "json" else data]
            assert state.remainder == b""


def test_complaint_22_the_sender_s_time_decides():
    """29.476 and 59.94 frames a second stay what they are, whatever the sender calls its rate."""
    for rate in (29.476, 60000 / 1001):
        for name in ("vmc", "rokoko", "natnet", "json", "chingmu"):
            protocol = decoder(name)
            take = moving(protocol.standard(), frames=40, rate=rate, props=())
            frames, state = received(protocol, packets(protocol, take, Sender(rate=30.0)))
            bodies = of_kind(frames, "body")
            times = np.array([f.time for f in bodies])
            again = to_take(bodies, protocol.skeleton(bodies[0].source, state), times)
            assert abs(again.duration - take.duration) < 1e-6 * max(1.0, take.duration), (name, rate)
