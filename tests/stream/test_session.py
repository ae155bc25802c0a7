# SPDX-License-Identifier: GPL-3.0-or-later
"""A live session from end to end, with real sockets and a real receiver; no test asks how fast the machine is."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from mocap_addon.motion import quat
from mocap_addon.motion.errors import MocapError
from mocap_addon.stream import session as live
from mocap_addon.stream import sidecar
from mocap_addon.stream.protocols import decoder
from mocap_addon.stream.send import Outlet, Player, moments
from mocap_addon.stream.supervisor import Source
from tests.stream.wire import dance

MVN = decoder("mvn")
PATIENCE = 20.0


@contextlib.contextmanager
def running(folder, *sources, **more):
    session = live.LiveSession(folder, sources or (Source(0),), **more)
    session.start()
    try:
        assert session.pump(PATIENCE, until=lambda: all(s.state in ("listening", "failed") for s in session.sources())), session.messages()
        yield session
    finally:
        session.close()


@contextlib.contextmanager
def sending(port, *takes, protocol=MVN, loop=True):
    stop = threading.Event()
    with Outlet("127.0.0.1", port) as outlet:
        player = Player(lambda shift: moments(takes, protocol, shift=shift), outlet, loop=loop)
        thread = threading.Thread(target=lambda: player.run(should_stop=stop.is_set))
        thread.start()
        try:
            yield outlet
        finally:
            stop.set()
            thread.join()


def people(count, seconds=4, rate=60):
    return [dance(MVN.standard(), rate, seconds * rate + 1, i, f"P{i}") for i in range(count)]


def test_from_the_wire_to_the_pose(tmp_path):
    takes = people(3)
    with running(tmp_path) as session, sending(session.supervisor.ports[0], *takes):
        assert session.poll() == {} and session.performers() == []
        assert session.pump(PATIENCE, until=lambda: len(session.poll()) == 3)
        session.pump(1.0)
        found = session.poll()
        for take, (key, moment) in zip(takes, sorted(found.items()), strict=True):
            assert key[0].startswith("mvn 127.0.0.1") and key[1] == "body"
            at = min(moment.time, session.feed.tracks[key].times[-1])  # a slow machine shows what it has
            true = take.sampled(np.array([at % (take.duration + 1 / 60)])).local_rotations[0]
            assert np.degrees(quat.angle(true, moment.rotations)).max() < 0.5  # MVN's time is whole milliseconds
            shown = moment.take()
            assert shown.frames == 1 and shown.skeleton is moment.skeleton
        assert [p.name for p in session.performers()] == ["P0", "P1", "P2"]
        (source,) = session.sources()
        assert (source.state, source.protocols, source.message, source.drops) == ("listening", ("mvn",), None, 0)
        assert source.packets > 60 and source.age is not None and source.age < PATIENCE and source.loss == 0.0
        assert session.fault == "" and session.messages() == []


def test_record_stop_and_there_are_the_takes(tmp_path):
    path = tmp_path / "Chase_01.pcap"
    with running(tmp_path / "ring") as session, sending(session.supervisor.ports[0], *people(2)):
        session.pump(PATIENCE, until=lambda: len(session.poll()) == 2)
        session.pump(0.5)
        session.record(path, preroll=0.4, notes=sidecar.Sidecar(take="Chase", slate="12A", rating=4))
        with pytest.raises(MocapError, match="running already"):
            session.record(tmp_path / "other.pcap")
        assert session.pump(PATIENCE, until=lambda: session.recording is not None)
        assert json.loads(sidecar.beside(path).read_text())["state"] == "recording"
        session.pump(1.0)
        session.notes.performers["0"] = "Berta"
        assert session.stop_recording() == path
        with pytest.raises(MocapError, match="never overwritten"):
            session.record(path)
        said = sidecar.load(path)
        assert (said.state, said.slate, said.rating, said.ports[str(session.supervisor.ports[0])]["protocol"]) == (
            "finished",
            "12A",
            4,
            "mvn",
        )
        takes = session.takes_of(path)
        assert [t.performer for t in takes] == ["Berta", "P1"] and all(t.duration > 1.0 and t.rate == 60 for t in takes)
        session.pump(0.3)
        assert len(session.poll()) == 2 and not next(iter(session.poll().values())).stale  # watching goes on
        second = tmp_path / "Chase_02.pcap"
        session.record(second)
        assert session.pump(PATIENCE, until=lambda: session.recording is not None)
    assert session.finished == [path, second] and sidecar.load(second).state == "finished"  # closing ends a recording


def test_the_reader_may_sleep_and_nothing_is_missing(tmp_path):
    """Blender's main thread blocks for two seconds while it is recorded."""
    path = tmp_path / "a.pcap"
    with running(tmp_path / "ring") as session:
        session.record(path)
        assert session.pump(PATIENCE, until=lambda: session.recording is not None)
        with sending(session.supervisor.ports[0], *people(2, 2, 120), loop=False):
            time.sleep(2.6)  # nobody ticks
        session.pump(0.5)
        session.stop_recording()
        assert [t.frames for t in session.takes_of(path)] == [241, 241]
        assert all(t.sequence.received == 241 and not t.sequence.lost for t in session.feed.tracks.values())


def test_a_killed_receiver_costs_a_moment_and_the_gap_is_shown(tmp_path):
    if os.name == "nt":
        pytest.skip("signals")
    path = tmp_path / "a.pcap"
    with running(tmp_path / "ring") as session, sending(session.supervisor.ports[0], *people(1)):
        session.record(path)
        assert session.pump(PATIENCE, until=lambda: session.recording is not None and len(session.poll()) == 1)
        session.pump(0.7)
        before = session.feed.tracks
        os.kill(session.supervisor.pid, signal.SIGKILL)
        received = sum(t.sequence.received for t in before.values())
        more = lambda: sum(t.sequence.received for t in session.feed.tracks.values()) > received + 30  # noqa: E731
        assert session.pump(PATIENCE, until=more)
        assert session.stop_recording() == path
        assert "started again" in session.messages()[-1] and len(sidecar.load(path).gaps) == 1
        (take,) = session.takes_of(path)
        assert take.frames > 60 and len(session.feed.tracks) == 1


def test_killed_with_everything_around_it_the_takes_come_back(tmp_path):
    """kill -9 of the program and of the receiver during a recording: all but the last moment is there."""
    if os.name == "nt":
        pytest.skip("signals")
    code = textwrap.dedent(f"""
        import sys
        sys.path.insert(0, {str(Path(__file__).parents[2])!r})
        from mocap_addon.stream.session import LiveSession
        from mocap_addon.stream.supervisor import Source
        session = LiveSession({str(tmp_path / "ring")!r}, [Source(0)])
        session.start()
        session.pump(20, until=lambda: session.sources()[0].state == "listening")
        session.record({str(tmp_path / "a.pcap")!r})
        session.pump(20, until=lambda: session.recording is not None)
        print(session.supervisor.pid, session.supervisor.ports[0], flush=True)
        session.pump(600)
    """)
    for victims in ("both", "program"):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        try:
            pid, port = map(int, child.stdout.readline().split())
            take = people(1, 1, 100)[0]
            with sending(port, take, loop=False) as outlet:
                end = time.monotonic() + PATIENCE
                while outlet.sent < 101 and time.monotonic() < end:
                    time.sleep(0.02)
                time.sleep(0.1)
            if victims == "both":
                os.kill(pid, signal.SIGKILL)
        finally:
            child.kill()
            child.wait()
            child.stdout.close()
        time.sleep(0.3)
        assert live.recover(tmp_path) == [tmp_path / "a.pcap"] and live.recover(tmp_path) == []
        session = live.LiveSession(tmp_path / "none", [Source(0)])
        (back,) = session.takes_of(tmp_path / "a.pcap")
        assert back.duration >= take.duration - 0.5 and back.frames >= 51
        assert sidecar.load(tmp_path / "a.pcap").state == "recovered"
        for file in tmp_path.glob("a.pcap*"):
            file.unlink()


def test_inside_when_no_process_can_be_started(tmp_path):
    path = tmp_path / "a.pcap"
    with running(tmp_path / "ring", executable="") as session:
        session.record(path)
        assert session.pump(PATIENCE, until=lambda: session.recording is not None)
        with sending(session.supervisor.ports[0], people(1, 1)[0], loop=False):
            assert session.pump(PATIENCE, until=lambda: sum(t.sequence.received for t in session.feed.tracks.values()) == 61)
        session.stop_recording()
        assert [t.frames for t in session.takes_of(path)] == [61]


def test_one_bad_source_does_not_keep_the_others(tmp_path):
    with running(tmp_path, Source(0), Source(0, host="203.0.113.7")) as session, sending(session.supervisor.ports[0], *people(1)):
        assert session.pump(PATIENCE, until=lambda: len(session.poll()) == 1)
        good, bad = session.sources()
        assert good.message is None and bad.state == "failed" and "203.0.113.7" in bad.message


def test_packets_in_no_known_protocol_are_told_from_silence(tmp_path):
    with running(tmp_path) as session, Outlet("127.0.0.1", session.supervisor.ports[0]) as outlet:
        outlet.send([b"what is this?"] * 50)
        assert session.pump(PATIENCE, until=lambda: session.sources()[0].message is not None)
        assert "in no protocol that is known (50 so far)" in session.sources()[0].message


def test_stop_start_close_in_any_order(tmp_path):
    """Complaint 10: stop is idempotent and the port is free at once; complaint 14: sender, connection and recording in any order."""
    session = live.LiveSession(tmp_path, [Source(0)])
    session.close()
    with pytest.raises(MocapError, match="start the stream first"):
        session.record(tmp_path / "x.pcap")
    session.start()
    session.start()
    session.pump(PATIENCE, until=lambda: session.sources()[0].state == "listening")
    port = session.sources()[0].port
    assert session.stop_recording() is None
    session.close()
    session.close()
    with running(tmp_path / "again", Source(port)) as second:
        assert second.sources()[0].state == "listening"


def test_a_fault_in_a_decoder_does_not_end_a_tick(tmp_path):
    with running(tmp_path) as session:
        session.supervisor.tick = lambda: 1 / 0  # type: ignore[method-assign]
        session.tick()
        assert "ZeroDivisionError" in session.fault and "receiving goes on" in session.messages()[-1]
