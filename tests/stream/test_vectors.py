# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes and numbers from the specifications, written out."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from mocap_addon.motion import quat
from mocap_addon.stream import lz4_frame, mvn_wire, osc, vrpn
from mocap_addon.stream.axes import CHINGMU, CHINGMU_UNREAL, MVN, MVN_Y_UP, UNITY, Y_UP
from mocap_addon.stream.chingmu import time_code, time_word
from mocap_addon.stream.mvn import Mvn
from mocap_addon.stream.mvn_layout import PARENTS, STANDARD, UNITY_ORDER
from mocap_addon.stream.noitom import NEW, OLD, Noitom
from mocap_addon.stream.noitom_body import layout as noitom_layout
from mocap_addon.stream.protocols import PROTOCOLS
from mocap_addon.stream.vmc import Vmc
from mocap_addon.stream.vrpn import Vrpn

HALF = 0.5**0.5


def hexed(text: str) -> bytes:
    return bytes.fromhex(text.replace(" ", ""))


MVN_HEADER = hexed("4d5854503032 0000002a 80 17 000004d2 00 17 00 00 0000 02e0")
MVN_ITEM = hexed("00000001 3f000000 be800000 3f733333 3f800000 00000000 00000000 00000000")
MVN_TIME_CODE = hexed("4d5854503235 0000002a 80 01 000004d2 00 17 00 00 0000 0010 0000000c") + b"10:20:30.456"
VMC_HIPS = hexed(
    "2f564d432f4578742f426f6e652f506f73000000 2c736666666666666600 0000 48697073 00000000"
    "00000000 3f800000 00000000 00000000 00000000 00000000 3f800000"
)
VRPN_POSE = hexed("00000058 6553f100 0003d090 00000000 00000005 00000000 00000064 00000064") + struct.pack(">7d", 0, 0, 950, 0, 0, 0, 1)
VRPN_COOKIE = hexed("7672706e3a207665722e2030372e3335 202030 0000000000")


def test_ports():
    ports = {name: d.default_port for name, d in PROTOCOLS.items()}
    assert ports["mvn"] == 9763 and ports["vmc"] == 39539 and ports["rokoko"] == 14043
    assert ports["noitom"] == 7001 and ports["vrpn"] == 3883 and ports["natnet"] == 1511


# -- MVN


def test_mvn_header():
    head = mvn_wire.header(MVN_HEADER + bytes(736))
    assert head == (b"MXTP", b"02", 42, 0x80, 23, 1234, 0, 23, 0, 0, 736)
    assert mvn_wire.pack(b"02", 42, 0x80, 23, 1234, 0, (23, 0, 0), bytes(736))[:24] == MVN_HEADER
    (shown,) = Mvn().header(MVN_HEADER + bytes(736), Mvn().state())
    assert (shown.source, shown.number, shown.time, shown.whole) == ("0", 42, 1.234, True)


def test_mvn_item_in_a_body():
    """The pelvis of the vector: half a metre forward, a quarter to the right, 0.95 up; 22 more stand 0.1 above each other."""
    items = MVN_ITEM + b"".join(struct.pack(">I7f", i + 1, 0.5, -0.25, 0.95 + 0.1 * i, 1, 0, 0, 0) for i in range(1, 23))
    decoder = Mvn()
    state = decoder.state()
    (frame,) = decoder.decode(MVN_HEADER + items, state)
    assert frame.joints == STANDARD and frame.number == 42 and frame.time == 1.234 and frame.space == "global"
    np.testing.assert_allclose(frame.positions[0], (-0.25, -0.5, 0.95), atol=1e-7)  # facing -Y: forward is -Y, left +X
    np.testing.assert_array_equal(frame.rotations, np.tile((1.0, 0.0, 0.0, 0.0), (23, 1)))


def test_mvn_item_alone():
    """One segment is a body of one: a broken count says nothing against reading it."""
    data = mvn_wire.pack(b"02", 42, 0x80, 1, 1234, 0, (1, 0, 0), MVN_ITEM)
    (frame,) = Mvn().decode(data, Mvn().state())
    assert frame.joints == ("Pelvis",)
    np.testing.assert_allclose(frame.positions, [(-0.25, -0.5, 0.95)], atol=1e-7)


def test_mvn_counts_of_split_datagrams():
    state = Mvn().state()
    rows = [struct.pack(">I7f", i + 1, 0, 0, 0.1 * i, 1, 0, 0, 0) for i in range(23)]
    got = []
    for part, (a, b) in zip((0x00, 0x01, 0x82), ((0, 10), (10, 20), (20, 23)), strict=True):
        got += Mvn().decode(mvn_wire.pack(b"02", 7, part, b - a, 0, 0, (23, 0, 0), b"".join(rows[a:b])), state)
    assert len(got) == 1 and len(got[0].joints) == 23 and state.counts.incomplete == 0


def test_mvn_time_code_with_and_without_length():
    bare = MVN_TIME_CODE[:22] + hexed("000c") + b"10:20:30.456"
    declared_twelve = MVN_TIME_CODE[:22] + hexed("000c") + MVN_TIME_CODE[24:]
    for data in (MVN_TIME_CODE, bare, declared_twelve):
        (frame,) = Mvn().decode(data, Mvn().state())
        assert frame.kind == "info" and frame.time_code == "10:20:30.456" and frame.number == 42
    without = mvn_wire.pack(b"25", 42, 0x80, 1, 1234, 0, (23, 0, 0), mvn_wire.string("10:20:30"))
    assert Mvn().decode(without, Mvn().state())[0].time_code == "10:20:30"


def test_mvn_segments_and_parents():
    named = {n: STANDARD[p] for n, p in zip(STANDARD, PARENTS, strict=True) if p >= 0}
    assert STANDARD[6] == "Head" and STANDARD[7] == "RightShoulder" and STANDARD[11] == "LeftShoulder" and STANDARD[22] == "LeftToe"
    assert named["RightShoulder"] == named["LeftShoulder"] == named["Neck"] == "T8"
    assert named["RightUpperLeg"] == named["LeftUpperLeg"] == named["L5"] == "Pelvis"
    assert [STANDARD[k] for k in UNITY_ORDER[:4]] == ["Pelvis", "RightUpperLeg", "RightLowerLeg", "RightFoot"]
    assert [STANDARD[k] for k in UNITY_ORDER[9:14]] == ["L5", "L3", "T12", "T8", "LeftShoulder"] and STANDARD[UNITY_ORDER[22]] == "Head"


def test_mvn_joint_angle_points():
    """269 = segment 1, point 13."""
    body = struct.pack(">II3f", 269, 2 * 256, 1.5, -2.0, 3.0)
    (frame,) = Mvn().decode(mvn_wire.pack(b"20", 1, 0x80, 1, 0, 0, (23, 0, 0), body), Mvn().state())
    assert frame.curves == {"angle 269-512 x": 1.5, "angle 269-512 y": -2.0, "angle 269-512 z": 3.0}


@pytest.mark.parametrize("width", [11, 17])
def test_mvn_trackers_of_44_and_of_68_bytes(width):
    row = struct.pack(f">I{width - 1}f", 1, HALF, HALF, 0, 0, *range(width - 5))
    (frame,) = Mvn().decode(mvn_wire.pack(b"23", 1, 0x80, 2, 0, 0, (23, 0, 0), row * 2), Mvn().state())
    np.testing.assert_allclose(frame.rotations[1], (HALF, 0.0, -HALF, 0.0), atol=1e-7)


@pytest.mark.parametrize("count", [3, 9])
def test_mvn_centre_of_mass_alone_or_with_its_derivatives(count):
    data = mvn_wire.pack(b"24", 1, 0x80, 1, 0, 0, (23, 0, 0), struct.pack(f">{count}f", 1, 2, 3, *([9] * (count - 3))))
    (frame,) = Mvn().decode(data, Mvn().state())
    np.testing.assert_allclose(frame.positions, [(2.0, -1.0, 3.0)])


# -- axes, by where forward, left and up go


@pytest.mark.parametrize(
    ("axes", "forward", "left", "up"),
    [
        (MVN, (1, 0, 0), (0, 1, 0), (0, 0, 1)),
        (MVN_Y_UP, (1, 0, 0), (0, 0, -1), (0, 1, 0)),
        (Y_UP, (0, 0, 1), (1, 0, 0), (0, 1, 0)),
        (UNITY, (0, 0, 1), (-1, 0, 0), (0, 1, 0)),
        (CHINGMU, (0, 1, 0), (-1, 0, 0), (0, 0, 1)),
        (CHINGMU_UNREAL, (1, 0, 0), (0, -1, 0), (0, 0, 1)),
    ],
)
def test_axes(axes, forward, left, up):
    np.testing.assert_array_equal(axes.points(np.array([forward, left, up], dtype=float)), [(0, -1, 0), (1, 0, 0), (0, 0, 1)])
    turn = np.array([0.3, 0.1, -0.7, 0.2])
    turn /= np.linalg.norm(turn)
    point = np.array([0.2, -1.0, 3.0])
    turned = quat.rotate(axes.from_wxyz(turn), axes.points(point))
    np.testing.assert_allclose(turned, axes.points(quat.rotate(turn, point)), atol=1e-12)
    np.testing.assert_allclose(axes.from_xyzw(np.roll(turn, -1)), axes.from_wxyz(turn))
    np.testing.assert_allclose(axes.to_wxyz(axes.from_wxyz(turn)), turn)
    np.testing.assert_allclose(axes.to_xyzw(axes.from_wxyz(turn)), np.roll(turn, -1))
    np.testing.assert_allclose(axes.points_back(axes.points(point)), point)


def test_mvn_z_up_formula():
    """p' = (y, -x, z), q' = (w, y, -x, z)."""
    np.testing.assert_array_equal(MVN.points(np.array([1.0, 2.0, 3.0])), (2, -1, 3))
    np.testing.assert_array_equal(MVN.from_wxyz(np.array([4.0, 1.0, 2.0, 3.0])), (4, 2, -1, 3))


def test_unity_formula():
    """p = (-x, -z, y), q = (w, x, z, -y)."""
    np.testing.assert_array_equal(UNITY.points(np.array([1.0, 2.0, 3.0])), (-1, -3, 2))
    np.testing.assert_array_equal(UNITY.from_xyzw(np.array([1.0, 2.0, 3.0, 4.0])), (4, 1, 3, -2))


def test_chingmu_through_unreal_is_chingmu():
    """Unreal has p = (y, x, z) / 10 and q = (y, x, z, -w)."""
    raw_p, raw_q = np.array([100.0, -200.0, 950.0]), np.array([0.1, 0.2, 0.3, (1 - 0.14) ** 0.5])
    ue_p, ue_q = raw_p[[1, 0, 2]] / 10.0, raw_q[[1, 0, 2, 3]] * (1, 1, 1, -1)
    np.testing.assert_allclose(CHINGMU_UNREAL.points(ue_p) * 10.0, CHINGMU.points(raw_p))
    a, b = CHINGMU_UNREAL.from_xyzw(ue_q), CHINGMU.from_xyzw(raw_q)
    np.testing.assert_allclose(a * np.sign(a @ b), b)


# -- VMC


def test_vmc_bone():
    assert len(VMC_HIPS) == 68
    (message,) = osc.messages(VMC_HIPS)
    assert message.address == b"/VMC/Ext/Bone/Pos" and message.tags == "sfffffff"
    assert osc.arguments(VMC_HIPS, message) == ["Hips", 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    assert osc.encode("/VMC/Ext/Bone/Pos", "Hips", 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0) == VMC_HIPS
    frames, state = [], Vmc().state()
    frames += Vmc().decode(VMC_HIPS, state) + Vmc().flush(state)
    assert frames[0].joints == ("Hips",) and frames[0].space == "local"
    np.testing.assert_array_equal(frames[0].positions, [(0, 0, 1)])
    np.testing.assert_array_equal(np.abs(frames[0].rotations), [(1, 0, 0, 0)])


def test_osc_bundles_nest_and_time_one_is_now():
    inner = osc.bundles([VMC_HIPS], 1000)[0]
    assert inner[:16] == b"#bundle\0" + hexed("0000000000000001")
    assert inner[16:20] == hexed("00000044") and inner[20:] == VMC_HIPS
    outer = osc.bundles([inner, VMC_HIPS], 1000)[0]
    assert [m.address for m in osc.messages(outer)] == [b"/VMC/Ext/Bone/Pos"] * 2


# -- LZ4


def test_lz4_magic_and_checksum():
    assert hexed("04224d18") == lz4_frame.MAGIC
    assert lz4_frame.xxh32(b"") == 0x02CC5D05 and lz4_frame.xxh32(b"abc") == 0x32D153FF  # published test values of xxHash
    assert lz4_frame.xxh32(b"Nobody inspects the spammish repetition") == 0xE2293B2F
    block = hexed("1a 61 0100 50 6161616161")  # one "a", a copy of 14 from one back, five literals
    frame = lz4_frame.MAGIC + hexed("6040 82") + len(block).to_bytes(4, "little") + block + bytes(4)
    assert lz4_frame.decompress(frame) == b"a" * 20


# -- Noitom


def test_noitom_headers():
    assert NEW.size == OLD.size == 64
    data = NEW.pack(0xDDFF, 0x01010000, 354, 1, 0, 3, b"Anna", 77, 0, 0, 0, 0xEEFF)
    assert data[:6] == hexed("ffdd 0000 0101") and data[62:] == hexed("ffee") and data[46:50] == hexed("4d000000")
    assert Noitom().recognises(data) and Noitom().header(data, Noitom().state())[0].number == 77


def test_noitom_values():
    """354 values: 59 joints of places in centimetres and angles in degrees, Y X Z; the hips turn by 90 degrees about Y, to their left."""
    values = np.zeros((59, 6))
    values[0] = (10, 95, 20, 90, 0, 0)
    data = NEW.pack(0xDDFF, 0x01010000, 354, 1, 0, 3, b"Anna", 77, 0, 0, 0, 0xEEFF) + values.astype("<f4").tobytes()
    (frame,) = Noitom().decode(data, Noitom().state())
    assert frame.source == "3" and frame.name == "Anna" and frame.number == 77 and frame.time is None
    np.testing.assert_allclose(frame.positions[0], (0.1, -0.2, 0.95), atol=1e-7)
    np.testing.assert_allclose(frame.rotations[0], (HALF, 0, 0, HALF), atol=1e-7)


def test_noitom_order():
    names = noitom_layout(False).names
    assert (
        len(names) == 59
        and names[:4] == ("Hips", "RightUpLeg", "RightLeg", "RightFoot")
        and names[7:13]
        == (
            *("Spine", "Spine1", "Spine2", "Neck", "Neck1"),
            "Head",
        )
    )
    assert names[13:17] == ("RightShoulder", "RightArm", "RightForeArm", "RightHand") and names[36] == "LeftShoulder"
    assert sum("Hand" in n and n not in ("LeftHand", "RightHand") for n in names) == 38


# -- ChingMu and VRPN


def test_vrpn_time_code_word():
    """Subframes 0 to 4, frames 5 to 11, seconds 12 to 17, minutes 18 to 23, hours 24 to 28, valid 31."""
    word = 1 << 31 | 13 << 24 | 59 << 18 | 7 << 12 | 24 << 5 | 3
    assert time_code(word) == (None, "13:59:07:24")
    assert time_code(123456) == (123456, None)  # not valid: the server's frame number
    assert time_word("13:59:07:24") == word & ~31


def test_vrpn_cookie_and_pose():
    assert VRPN_COOKIE == vrpn.COOKIE and len(VRPN_COOKIE) == 24
    decoder = Vrpn()
    state = decoder.state()
    assert decoder.recognises(VRPN_COOKIE)
    names = [vrpn.packed(0, 0, 0, -1, struct.pack(">i", 9) + b"MCServer\0"), vrpn.packed(0, 0, 5, -2, vrpn_name("vrpn_Tracker Pos_Quat"))]
    frames = []
    for message in decoder.messages(VRPN_COOKIE + b"".join(names) + VRPN_POSE, state):
        frames += decoder.decode(message, state)
    (frame,) = frames
    assert frame.source == "MCServer/100" and frame.kind == "prop" and frame.time == pytest.approx(0x6553F100 + 0.25)
    np.testing.assert_allclose(frame.positions, [(0, 0, 0.95)], rtol=1e-15)
    np.testing.assert_array_equal(frame.rotations, [(1, 0, 0, 0)])


def vrpn_name(text: str) -> bytes:
    return struct.pack(">i", len(text) + 1) + text.encode() + b"\0"
