# SPDX-License-Identifier: GPL-3.0-or-later
"""MVN beyond its vectors: split samples, late and lost parts, names, null poses, fingers, props, wrong units and numbers."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from mocap_addon import rig
from mocap_addon.stream import mvn_wire
from mocap_addon.stream.frame import Frame, Sender, frames_of
from mocap_addon.stream.mvn import Mvn
from mocap_addon.stream.mvn_layout import FINGER_NAMES, STANDARD, standard

from .bodies import moving, of_kind, packets, received

MVN = Mvn()
IDENTITY = (1.0, 0.0, 0.0, 0.0)


def sample(number: int, take, options=None, mtu=1472) -> list[bytes]:
    sender = Sender(number=number, time=number / 60, rate=1e9, mtu=mtu, options=options or {"types": ("02",)})
    return MVN.encode(frames_of(take, number % take.frames), sender)


@pytest.fixture(scope="module")
def fingers():
    return moving(standard(True), frames=4, props=("0/Sword", "0/Shield"))


def test_fingers_and_props_by_their_order(fingers):
    parts = sample(0, fingers)
    assert [len(p) <= 1472 for p in parts] == [True, True] and parts[0][10] == 0 and parts[1][10] == 0x81
    frames, state = received(MVN, parts)
    (body,) = of_kind(frames, "body")
    assert body.joints == (*STANDARD, *FINGER_NAMES)
    assert [f.source for f in of_kind(frames, "prop")] == ["0/Prop1", "0/Prop2"]
    np.testing.assert_allclose(of_kind(frames, "prop")[1].positions[0], fingers.props["0/Shield"].translations[0], atol=1e-6)
    found = MVN.skeleton("0", state)
    parents = {n: found.names[p] for n, p in zip(found.names, found.parents.tolist(), strict=True) if p >= 0}
    assert parents["LeftCarpus"] == "LeftHand" and parents["LeftFirstMC"] == parents["LeftFifthMC"] == "LeftCarpus"
    assert parents["RightThirdMP"] == "RightThirdPP"


def test_one_datagram_of_2040_bytes(fingers):
    bare = moving(standard(True), frames=1, props=())
    (data,) = sample(0, bare, mtu=65000)
    assert len(data) == 2040
    (frame,) = MVN.decode(data, MVN.state())
    assert len(frame.joints) == 63


def test_parts_in_any_order_twice_and_lost(fingers):
    state = MVN.state()
    got: list[Frame] = []
    for number, order in ((0, (1, 0)), (1, (0, 0, 1)), (2, (0,)), (3, (0, 1)), (2, (1,)), (4, (1, 0))):
        parts = sample(number, fingers)
        for k in order:
            got += MVN.decode(parts[k], state)
    assert [f.number for f in of_kind(got, "body")] == [0, 1, 3, 4]
    assert state.counts.incomplete == 2 and state.counts.broken == 0  # sample 2 twice: given up, and its late part alone


def test_parts_across_the_wrap_of_the_counter_and_a_restart(fingers):
    state = MVN.state()
    got: list[Frame] = []
    for number in (2**32 - 2, 2**32 - 1, 0, 1, 5, 0, 1):
        for part in sample(0, fingers):
            got += MVN.decode(part[:6] + struct.pack(">I", number) + part[10:], state)
    assert [f.number for f in of_kind(got, "body")] == [2**32 - 2, 2**32 - 1, 0, 1, 5, 0, 1]


def test_names_of_characters():
    for text in (
        b"name:Anna\nxmid:23\ncolor:FF8000\n",
        b"color:FF8000\nsomething:else\ntimeOffset:0\nname: Anna\n",
        b"\0\0\0\x0bname:Anna\r\n\0",
    ):
        state = MVN.state()
        assert MVN.decode(mvn_wire.pack(b"12", 0, 0x80, 1, 0, 3, (23, 0, 0), text), state) == []
        take = moving(standard(False), frames=1, props=())
        (data,) = sample(0, take)
        (frame,) = MVN.decode(data[:16] + b"\3" + data[17:], state)
        assert (frame.source, frame.name) == ("3", "Anna")


def test_the_null_pose_is_the_skeleton():
    """Origins as MVN has them, X forward and Y left; also in two datagrams of which the second holds points alone, and in centimetres."""
    body = standard(False).rest_global_positions
    raw = np.stack([-body[:, 1], body[:, 0], body[:, 2]], axis=1) * 0.9
    for scale in (1.0, 100.0):
        text = struct.pack(">I", 23)
        for name, row in zip(STANDARD, raw * scale, strict=True):
            text += struct.pack(">i", len(name)) + name.encode() + struct.pack(">3f", *row)
        points = struct.pack(">II", 0, 1) + struct.pack(">HH", 1, 13) + struct.pack(">i", 3) + b"pXY" + struct.pack(">I3f", 0, 0, 0, 0)
        state = MVN.state()
        for part, data in ((0, text + struct.pack(">I", 0)), (0x81, points)):
            assert MVN.decode(mvn_wire.pack(b"13", 0, part, 23, 0, 0, (23, 0, 0), data), state) == []
        assert state.counts.broken == 0
        found = MVN.skeleton("0", state)
        np.testing.assert_allclose(found.rest_global_positions, body * 0.9, atol=1e-6)
        assert rig.match(found).family == "Xsens MVN"


def test_a_body_of_some_segments():
    """Legs alone, by their ids: parents are the next ones that are there."""
    rows = b"".join(struct.pack(">I7f", i, 0.0, 0.1 * i, 1.0, *IDENTITY) for i in (1, 16, 17, 18, 20, 21, 22))
    (frame,) = MVN.decode(mvn_wire.pack(b"02", 0, 0x80, 7, 0, 0, (7, 0, 0), rows), state := MVN.state())
    assert frame.joints == ("Pelvis", "RightUpperLeg", "RightLowerLeg", "RightFoot", "LeftUpperLeg", "LeftLowerLeg", "LeftFoot")
    assert MVN.skeleton("0", state).parents.tolist() == [-1, 0, 1, 2, 0, 4, 5]


def test_segments_out_of_order_are_where_their_ids_say():
    take = moving(standard(False), frames=1, props=())
    (data,) = sample(0, take)
    rows = [data[24 + 32 * i : 56 + 32 * i] for i in range(23)]
    shuffled = data[:24] + b"".join(rows[i] for i in np.random.default_rng(0).permutation(23))
    (a,), (b,) = MVN.decode(data, MVN.state()), MVN.decode(shuffled, MVN.state())
    assert a.joints == b.joints
    np.testing.assert_array_equal(a.positions, b.positions)


@pytest.mark.parametrize("kind", ["01", "02", "05"])
def test_centimetres_are_noticed_and_can_be_overruled(kind):
    take = moving(standard(False), frames=1, props=())
    (data,) = sample(0, take, {"types": (kind,), "unit": "cm"})
    guessed, told = MVN.state(), MVN.state()
    told.options["unit"] = "m"
    (a,), (b,) = MVN.decode(data, guessed), MVN.decode(data, told)
    np.testing.assert_allclose(a.positions * 100.0, b.positions, atol=1e-4)
    assert any("centimetres" in n for n in guessed.notes) and not told.notes


def test_what_is_no_body_is_refused():
    take = moving(standard(False), frames=1, props=())
    (good,) = sample(0, take)
    bad = {
        "not a number": good[:28] + struct.pack(">f", float("nan")) + good[32:],
        "infinite": good[:28] + struct.pack(">f", float("inf")) + good[32:],
        "too long a quaternion": good[:40] + struct.pack(">4f", 1.1, 0, 0, 0) + good[56:],
        "too short a quaternion": good[:40] + struct.pack(">4f", 0.9, 0, 0, 0) + good[56:],
        "payload past the datagram": good[:-8],
        "no items": good[:11] + b"\0" + good[12:],
    }
    for why, data in bad.items():
        state = MVN.state()
        assert MVN.decode(data, state) == [] and state.counts.broken == 1, why
    for data in (b"MXTX" + good[4:], b"", good[:20]):
        state = MVN.state()
        assert MVN.decode(data, state) == [] and state.counts.unknown == 1
    unknown = good[:4] + b"77" + good[6:]
    assert MVN.decode(unknown, state := MVN.state()) == [] and state.counts.unknown == 1
    markers = good[:4] + b"03" + good[6:]
    assert MVN.decode(markers, state := MVN.state()) == [] and state.counts.ignored == 1


def test_a_bad_finger_costs_the_finger_alone(fingers):
    bare = moving(standard(True), frames=1, props=())
    (data,) = sample(0, bare, mtu=65000)
    at = 24 + 32 * 40 + 16
    (frame,) = MVN.decode(data[:at] + struct.pack(">4f", 0, 0, 0, 0) + data[at + 16 :], MVN.state())
    assert not frame.valid[40] and frame.valid.sum() == 62 and tuple(frame.rotations[40]) == IDENTITY


def test_the_time_code_of_the_sample_goes_with_its_pose():
    take = moving(standard(False), frames=2, props=())
    state = MVN.state()
    (first,), (second,) = sample(0, take), sample(1, take)
    code = mvn_wire.pack(b"25", 0, 0x80, 1, 0, 0, (23, 0, 0), mvn_wire.string("10:20:30.456"))
    (info,), (a,), (b,) = (MVN.decode(data, state) for data in (code, first, second))
    assert info.time_code == a.time_code == "10:20:30.456" and b.time_code is None
    assert [f.time_code for (f,) in MVN.decode_all([code, first, second], state)] == ["10:20:30.456", "10:20:30.456", None]


def test_kinematics_come_as_they_are():
    take = moving(standard(False), frames=1, props=())
    got, state = received(MVN, packets(MVN, take, Sender(options={"types": ("20", "21", "22", "23", "24")}, mtu=65000)))
    angles, places, turns, trackers, centre = got
    assert {f.kind for f in got} == {"info"} and state.counts.broken == 0
    assert len(angles.curves) == 66
    np.testing.assert_allclose(places.positions, take.global_positions[0], atol=1e-6)
    np.testing.assert_allclose(turns.rotations, take.global_rotations[0], atol=1e-6)
    np.testing.assert_allclose(trackers.rotations, take.global_rotations[0], atol=1e-6)
    np.testing.assert_allclose(centre.positions[0], take.global_positions[0].mean(axis=0), atol=1e-6)


def test_an_emulator_that_counts_from_zero_and_declares_twelve():
    """A public FBX player: ids from 0, a frame count for the time, a time code of 16 bytes that says 12."""
    take = moving(standard(False), frames=1, props=())
    (data,) = sample(0, take, {"types": ("02",), "first_id": 0, "mark_last": False})
    (frame,) = MVN.decode(data[:12] + struct.pack(">I", 7) + data[16:], MVN.state())
    assert frame.joints == STANDARD and frame.time == 0.007
    np.testing.assert_allclose(frame.positions, take.global_positions[0], atol=1e-6)
