# SPDX-License-Identifier: GPL-3.0-or-later
"""What users of other receivers complained of (docs/live.md says how it is here), a test each; the number is that of the collected list."""

from __future__ import annotations

import socket
import time
from fractions import Fraction

import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.motion import quat
from mocap_addon.stream import receiver
from mocap_addon.stream.feed import Feed
from mocap_addon.stream.packets import Packet
from mocap_addon.stream.performers import MOST_ENTRIES
from mocap_addon.stream.protocols import decoder
from mocap_addon.stream.sample import sample
from mocap_addon.stream.send import Outlet, moments
from mocap_addon.stream.session import LiveSession
from mocap_addon.stream.supervisor import Source, Supervisor
from tests.stream.wire import dance

MVN = decoder("mvn")
US, THEM = (b"\x7f\0\0\1", 9763), (b"\x7f\0\0\1", 5000)


def packet(at, data):
    return Packet(round((1000 + at) * 1e9), "udp", ("127.0.0.1", 5000), ("127.0.0.1", 9763), data)


def written(path, take):
    records = [
        receiver.udp_record(round((1000 + at) * 1e9), THEM, US, data) for at, datagrams in moments([take], MVN) for data in datagrams
    ]
    path.write_bytes(receiver.HEADER + b"".join(records))
    return path


def test_2_a_sender_faster_than_the_tick_makes_no_growing_delay():
    """A tick drains everything and decodes the frames it needs: at 10 ticks a second of a sender of 240 Hz the pose is as old as ever."""
    take, feed = dance(MVN.standard(), 240, 720), Feed([MVN])
    timed = [(at, d) for at, data in moments([take], MVN) for d in data]
    k = 0
    for tick in np.arange(0.5, 2.9, 0.1):
        while k < len(timed) and timed[k][0] <= tick:
            feed.add(packet(*timed[k]))
            k += 1
        (moment,) = sample(feed.all().values(), float(tick), 0.1).values()
        assert moment.time == pytest.approx(tick - 0.1, abs=0.002) and not moment.held


def test_3_connected_but_nothing_arrives_is_told_from_bytes_nobody_knows(tmp_path):
    with LiveSession(tmp_path, [Source(0), Source(0)]) as session:
        assert session.pump(20, until=lambda: all(s.state == "listening" for s in session.sources()))
        with Outlet("127.0.0.1", session.supervisor.ports[0]) as outlet:
            outlet.send([b"?"] * 30)
            assert session.pump(20, until=lambda: session.sources()[0].message is not None)
        heard, silent = session.sources()
        assert (heard.packets, heard.unknown, silent.packets, silent.message) == (30, 30, 0, None)


@pytest.mark.parametrize("rate", [Fraction(29476, 1000), Fraction(60000, 1001), Fraction(1000, 33)])
def test_1_and_22_source_time_decides_at_odd_rates(tmp_path, rate):
    """29.476 and 59.94 frames a second onto a scene of 30: the same seconds, not the same frames."""
    take = dance(MVN.standard(), rate, 400)
    (back,) = formats.read(written(tmp_path / "x.pcap", take))
    assert back.duration == pytest.approx(399 / float(rate), abs=1e-3)
    onto = back.resampled(Fraction(30))
    true = take.sampled(np.clip(onto.times, 0, take.duration))
    assert np.degrees(quat.angle(true.local_rotations, onto.local_rotations)).max() < 0.2  # MVN's milliseconds
    assert abs(onto.duration - back.duration) < 1 / 30


def test_12_a_frozen_window_records_all_the_same(tmp_path):
    path = tmp_path / "x.pcap"
    with LiveSession(tmp_path / "ring", [Source(0)]) as session:
        session.record(path)
        assert session.pump(20, until=lambda: session.recording is not None)
        with Outlet("127.0.0.1", session.supervisor.ports[0]) as outlet:
            for _, data in moments([dance(MVN.standard(), 60, 30)], MVN):
                outlet.send(data)
        time.sleep(0.3)  # nothing was ticked since, and nothing was ever shown
        session.stop_recording()
        assert [t.frames for t in session.takes_of(path)] == [30]


def test_14_a_sender_that_ran_before_anything_was_opened():
    take, feed = dance(MVN.standard(), 120, 600), Feed([MVN])
    for at, data in list(moments([take], MVN))[300:]:
        for d in data:
            feed.add(packet(at, d))
    (moment,) = sample(feed.all().values(), feed.seconds(packet(4.9, b"").time), 0.1).values()
    assert moment.skeleton is not None and not moment.stale


def test_15_and_26_a_long_session_holds_no_more_than_a_short_one():
    take = dance(MVN.standard(), 100, 100)
    (poses,) = zip(*[[d for d in data if d[4:6] == b"02"] for _, data in moments([take], MVN)], strict=True)
    feed = Feed([MVN])
    sizes = []
    for n in range(20_000):
        data = poses[n % 100]
        whole = data[:6] + n.to_bytes(4, "big") + data[10:12] + (n * 10).to_bytes(4, "big") + data[16:]
        feed.add(packet(n / 100, whole))
        if n % 5000 == 4999:
            (track,) = feed.tracks.values()
            sizes.append((len(track.entries), len(track.clock._points), len(track.sequence._seen), len(feed.slots)))
    assert max(s[0] for s in sizes) <= 500 <= MOST_ENTRIES and max(s[1] for s in sizes) < 100
    assert max(s[2] for s in sizes) <= 1025 and {s[3] for s in sizes} == {1}


def test_16_no_thread_is_started_in_the_process_that_shows(tmp_path):
    import threading

    before = threading.active_count()
    for executable in (None, ""):
        with LiveSession(tmp_path / str(executable), [Source(0)], executable=executable) as session:
            session.pump(0.2)
            assert threading.active_count() == before


def test_20_a_window_that_was_away_shows_the_newest_and_keeps_all():
    take, feed = dance(MVN.standard(), 240, 240 * 8), Feed([MVN])
    for at, data in moments([take], MVN):
        for d in data:
            feed.add(packet(at, d))
    (track,) = feed.tracks.values()
    (moment,) = sample([track], 8.0, 0.1).values()
    assert moment.time == pytest.approx(7.9, abs=0.002) and track.sequence.received == 240 * 8 and len(track.entries) <= MOST_ENTRIES


def test_23_and_10_closed_means_closed(tmp_path):
    """No process and no socket is left, and the port can be used at once, whichever way it ran."""
    for executable in (None, ""):
        supervisor = Supervisor(tmp_path / str(executable), [Source(0)], executable=executable)
        supervisor.start()
        end = time.monotonic() + 20
        while not supervisor.states and time.monotonic() < end:
            supervisor.tick()
            time.sleep(0.01)
        port, process = supervisor.ports[0], supervisor._process
        supervisor.close()
        assert process is None or process.returncode is not None
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind(("127.0.0.1", port))
