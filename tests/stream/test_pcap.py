# SPDX-License-Identifier: GPL-3.0-or-later
"""Capture files and what is in them; the packets are written out by hand in ``wire.py``."""

from __future__ import annotations

import contextlib
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mocap_addon.motion.errors import FileError
from mocap_addon.stream.packets import Dissector
from mocap_addon.stream.pcap import CaptureReader, Tail, is_capture
from tests.stream.wire import A6, B6, ipv4, ipv6, pcap, pcapng, tcp, udp

MAC = bytes(range(12))
HELLO = ipv4(17, udp(b"hello"))
SIX = ipv6(17, udp(b"hello"))


def read(path, data):
    path.write_bytes(data)
    with CaptureReader(path) as reader:
        return list(reader.packets())


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("nano", [True, False])
def test_pcap_in_both_byte_orders_and_resolutions(tmp_path, order, nano):
    (packet,) = read(tmp_path / "a.pcap", pcap([(1000.25, HELLO)], 101, order, nano))
    assert packet == (1_000_250_000_000, "udp", ("192.168.1.20", 5000), ("192.168.1.30", 9763), b"hello", False, False)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("resolution", [None, 3, 9])
def test_pcapng_in_both_byte_orders_and_resolutions(tmp_path, order, resolution):
    data = pcapng([(1000.25, MAC + b"\x08\0" + HELLO), (1000.5, MAC + b"\x86\xdd" + SIX)], 1, order, resolution)
    first, second = read(tmp_path / "a.pcapng", data)
    assert (first.time, first.data, second.time) == (1_000_250_000_000, b"hello", 1_000_500_000_000)
    assert second.source == ("2001:db8::1", 5000)


@pytest.mark.parametrize(
    "link, head",
    [
        (1, MAC + b"\x08\0"),
        (1, MAC + b"\x81\0\0\x64\x08\0"),  # VLAN 100
        (1, MAC + b"\x88\xa8\0\x01\x81\0\0\x02\x08\0"),  # two of them
        (101, b""),
        (12, b""),
        (228, b""),
        (0, b"\x02\0\0\0"),
        (0, b"\0\0\0\x02"),  # written on a big-endian machine
        (108, b"\0\0\0\x02"),
        (113, b"\0\0\0\x01\0\x06" + bytes(8) + b"\x08\0"),
        (276, b"\x08\0" + bytes(18)),
    ],
)
def test_link_layers(tmp_path, link, head):
    (packet,) = read(tmp_path / "a.pcap", pcap([(1.0, head + HELLO)], link))
    assert packet.data == b"hello"


@pytest.mark.parametrize("link, head", [(1, MAC + b"\x86\xdd"), (0, b"\x1e\0\0\0"), (229, b""), (113, bytes(14) + b"\x86\xdd")])
def test_link_layers_of_ipv6(tmp_path, link, head):
    (packet,) = read(tmp_path / "a.pcap", pcap([(1.0, head + SIX)], link))
    assert packet.data == b"hello"


def test_what_is_no_ip_is_passed_over(tmp_path):
    arp = MAC + b"\x08\x06" + bytes(28)
    (packet,) = read(tmp_path / "a.pcap", pcap([(1.0, arp), (2.0, MAC + b"\x08\0" + HELLO + bytes(13))], 1))
    assert packet.data == b"hello"  # and the Ethernet padding behind the packet is none of it


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_fragments_in_any_order(tmp_path, order):
    whole = udp(bytes(range(256)) * 12)  # 3080 bytes
    parts = [ipv4(17, whole[:1480], part=0x2000), ipv4(17, whole[1480:2960], part=0x2000 | 185), ipv4(17, whole[2960:], part=370)]
    (packet,) = read(tmp_path / "a.pcap", pcap([(1.0 + i, parts[k]) for i, k in enumerate(order)]))
    assert packet.data == whole[8:] and packet.time == 1_000_000_000


def test_fragments_of_ipv6_behind_other_headers(tmp_path):
    whole = udp(bytes(range(256)) * 8)

    def part(at, more, data):
        return ipv6(
            0, bytes([44, 0, 1, 4, 0, 0, 0, 0]) + bytes([17, 0]) + ((at // 8) << 3 | more).to_bytes(2, "big") + b"\0\0\0\x07" + data
        )

    packets = [(1.0, part(1240, 0, whole[1240:])), (2.0, part(0, 1, whole[:1240]))]
    (packet,) = read(tmp_path / "a.pcap", pcap(packets))
    assert packet.data == whole[8:] and packet.target == ("2001:db8::2", 9763)


def test_two_datagrams_in_fragments_do_not_mix(tmp_path):
    one, two = udp(b"1" * 2000), udp(b"2" * 2000)
    parts = [
        ipv4(17, b[s], number=n, part=p) for s, p in ((slice(0, 1480), 0x2000), (slice(1480, None), 185)) for n, b in ((7, one), (8, two))
    ]
    found = read(tmp_path / "a.pcap", pcap([(float(i), p) for i, p in enumerate(parts)]))
    assert [p.data[:1] * 2 + p.data[-1:] for p in found] == [b"111", b"222"]


def stream_of(segments):
    dissector = Dissector()
    out = [p for i, s in enumerate(segments) for p in dissector.packets(i * 1_000_000_000, 101, ipv4(6, s))]
    return b"".join(p.data for p in out), out, dissector


def test_tcp_in_order_with_a_wrap_of_the_numbers():
    start = 0xFFFFFFFB
    data, packets, _ = stream_of([tcp(start, flags=2), tcp(start + 1, b"abcd"), tcp(start + 5, b"efgh"), tcp(start + 9, b"ij")])
    assert data == b"abcdefghij" and [p.start for p in packets] == [True, False, False]


def test_tcp_out_of_order_again_and_overlapping():
    segments = [tcp(10, flags=2), tcp(14, b"def"), tcp(11, b"abc"), tcp(11, b"abc"), tcp(15, b"efGH"), tcp(19, b"I")]
    data, packets, _ = stream_of(segments)
    assert data == b"abcdefGHI"
    assert [p.data for p in packets] == [b"abc", b"def", b"GH", b"I"]


def test_tcp_with_a_lost_segment_goes_on_after_two_seconds():
    data, packets, dissector = stream_of([tcp(10, flags=2), tcp(11, b"abc"), tcp(20, b"xyz"), tcp(23, b"1"), tcp(24, b"2"), tcp(25, b"3")])
    assert data == b"abcxyz123"
    assert [p.data for p in packets if p.hole] == [b"xyz"] and dissector.counts.lost == 1


def test_tcp_captured_from_the_middle_and_a_new_connection_from_the_same_port():
    data, packets, _ = stream_of([tcp(5000, b"abc"), tcp(5003, b"def"), tcp(9, flags=2), tcp(10, b"new")])
    assert data == b"abcdefnew" and [p.start for p in packets] == [True, False, True]


def test_a_growing_file_is_read_as_it_grows(tmp_path):
    whole = pcap([(float(i), ipv4(17, udp(b"%d" % i * 9))) for i in range(5)])
    path, got = tmp_path / "a.pcap", []
    path.write_bytes(b"")
    reader = CaptureReader(path)
    for size in range(0, len(whole) + 1, 7):
        path.write_bytes(whole[:size])
        got += [p.data for p in reader.packets()]
        records = [i for i in range(5) if 24 + sum(16 + 28 + 9 for _ in range(i + 1)) <= size]
        assert len(got) == len(records)
    path.write_bytes(whole)
    got += [p.data for p in reader.packets()]
    reader.close()
    assert got == [b"%d" % i * 9 for i in range(5)]


def test_a_record_longer_than_a_read(tmp_path):
    big = [(1.0, ipv4(17, udp(bytes(60000)))) for _ in range(40)]  # more than a megabyte
    assert len(read(tmp_path / "a.pcap", pcap(big))) == 40


def test_a_half_written_record_is_waited_for_and_a_damaged_one_said(tmp_path):
    whole = pcap([(1.0, HELLO), (2.0, HELLO)])
    assert len(read(tmp_path / "a.pcap", whole[:-5])) == 1
    (tmp_path / "b.pcap").write_bytes(pcap([(1.0, HELLO)]) + b"\xff" * 60)
    with CaptureReader(tmp_path / "b.pcap") as reader:
        assert len(list(reader.packets())) == 1 and "damaged at byte 73" in reader.damaged


@pytest.mark.parametrize("data", [b"no capture, at all, but text", b"\x00" * 40, b"PK\x03\x04" + bytes(40)])
def test_other_files_are_refused(tmp_path, data):
    with pytest.raises(FileError, match="no capture"):
        read(tmp_path / "a.pcap", data)
    assert not is_capture(data)


def test_a_tail_goes_from_file_to_file(tmp_path):
    one, two = tmp_path / "1.pcap", tmp_path / "2.pcap"
    one.write_bytes(pcap([(1.0, ipv4(17, udp(b"1")))]))
    tail = Tail()
    tail.follow(str(one), 24)
    assert [p.data for p in tail.read()] == [b"1"]
    more = pcap([(1.0, ipv4(17, udp(b"1"))), (2.0, ipv4(17, udp(b"2")))])
    early = pcap([(2.0, ipv4(17, udp(b"2"))), (3.0, ipv4(17, udp(b"3")))])  # the second file begins with what was read: a pre-roll
    one.write_bytes(more)
    two.write_bytes(early)
    tail.follow(str(two), 24 + 16 + 29, str(one), len(more))
    tail.follow(str(tmp_path / "gone.pcap"), 24, str(two), len(early))
    assert [p.data for p in tail.read()] == [b"2", b"3"]
    assert tail.skipped == 1
    tail.close()


@settings(max_examples=150)
@given(st.binary(max_size=300), st.sampled_from([0, 1, 101, 113, 276, 228, 99]))
def test_no_packet_raises(data, link):
    Dissector().packets(0, link, data)


@settings(max_examples=150)
@given(st.integers(0, 400), st.integers(0, 255), st.integers(0, 3))
def test_no_damaged_file_raises_anything_but_a_sentence(tmp_path_factory, at, value, which):
    parts = [(1.0, MAC + b"\x08\0" + ipv4(17, udp(b"x" * 50))), (2.0, MAC + b"\x86\xdd" + ipv6(6, tcp(1, b"y" * 20), A6, B6))]
    data = bytearray((pcap(parts, 1), pcap(parts, 1, ">"), pcapng(parts), pcapng(parts, order=">"))[which])
    data[at % len(data)] = value
    with contextlib.suppress(FileError):
        read(tmp_path_factory.mktemp("f") / "a.pcap", bytes(data))
