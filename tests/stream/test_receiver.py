# SPDX-License-Identifier: GPL-3.0-or-later
"""The receiver as a process: what arrives is in the file, whatever happens. Ports are ephemeral, loopback alone."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

from mocap_addon.motion.errors import MocapError
from mocap_addon.stream import receiver
from mocap_addon.stream.pcap import CaptureReader
from mocap_addon.stream.supervisor import RECEIVER, Source, Supervisor, refusal, sentence
from tests.stream.wire import ipv4, pcap, udp

PATIENCE = 20.0


@contextlib.contextmanager
def receiving(folder, *sources, **more):
    supervisor = Supervisor(folder, sources or (Source(0),), **more)
    supervisor.start()
    events = []
    try:
        wait(
            supervisor,
            events,
            lambda: len(supervisor.states) == len(supervisor.sources) and all(_settled(s) for s in supervisor.states.values()),
        )
        yield supervisor, events
    finally:
        supervisor.close()


def _settled(state):
    return state["state"] in ("listening", "connected", "failed")


def wait(supervisor, events, condition):
    end = time.monotonic() + PATIENCE
    while True:
        events += supervisor.tick()
        if condition():
            return
        assert time.monotonic() < end, (events[-5:], supervisor.notes)
        time.sleep(0.01)


def wait_for(supervisor, events, kind):
    wait(supervisor, events, lambda: any(e["event"] == kind for e in events))
    return next(e for e in events if e["event"] == kind)


def packets(path):
    with CaptureReader(path) as reader:
        return list(reader.packets())


def everything(folder):
    return [p for path in sorted(Path(folder).glob("*.pcap")) for p in packets(path)]


def sender(family=socket.AF_INET):
    return socket.socket(family, socket.SOCK_DGRAM)


def test_datagrams_with_their_stamps_and_addresses(tmp_path):
    with receiving(tmp_path, Source(0), Source(0), Source(0, host="::1")) as (supervisor, _):
        one, two, six = supervisor.ports
        before = time.time_ns()
        with sender() as s, sender(socket.AF_INET6) as s6:
            for i in range(50):
                s.sendto(b"a%d" % i, ("127.0.0.1", one))
            s.sendto(bytes(65507), ("127.0.0.1", two))
            s.sendto(b"", ("127.0.0.1", two))
            s6.sendto(b"six", ("::1", six))
            source = s.getsockname()[1]
        after = time.time_ns()
        time.sleep(0.3)
    found = everything(tmp_path)
    assert [p.data for p in found if p.target[1] == one] == [b"a%d" % i for i in range(50)]
    assert [len(p.data) for p in found if p.target[1] == two] == [65507, 0]
    assert [(p.data, p.target[0]) for p in found if p.target[1] == six] == [(b"six", "::1")]
    assert all(p.source[1] == source and p.target[0] == "127.0.0.1" for p in found if p.target[1] == one)
    assert all(before <= p.time <= after + 2_000_000_000 for p in found)


def test_multicast_on_loopback(tmp_path):
    with receiving(tmp_path, Source(0, group="239.255.42.99")) as (supervisor, _):
        if supervisor.states["0"]["state"] == "failed":
            pytest.skip("this system has no multicast on loopback")
        with sender() as s:
            s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            s.sendto(b"to all", ("239.255.42.99", supervisor.ports[0]))
        time.sleep(0.3)
    assert [(p.data, p.target[0]) for p in everything(tmp_path)] == [(b"to all", "239.255.42.99")]


def test_tcp_as_client_says_hello_and_as_server_takes_several(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        client = Source(port, "tcp", hello=[{"data": b"hello".hex()}])
        with receiving(tmp_path, client, Source(0, "tcp-server")) as (supervisor, _):
            connection, _ = server.accept()
            connection.settimeout(PATIENCE)
            assert connection.recv(5) == b"hello"
            connection.sendall(b"x" * 150_000 + b"end")
            ours = [socket.create_connection(("127.0.0.1", supervisor.ports[1])) for _ in range(2)]
            for i, o in enumerate(ours):
                o.sendall(b"from %d" % i)
            time.sleep(0.4)
            for o in ours:
                o.close()
            connection.close()
            time.sleep(0.3)
    found = everything(tmp_path)
    theirs = [p for p in found if p.source[1] == port]
    assert b"".join(p.data for p in theirs) == b"x" * 150_000 + b"end" and theirs[0].start
    assert [p.data for p in found if p.target[1] == port] == [b"hello"]
    assert sorted(p.data for p in found if p.target[1] == supervisor.ports[1]) == [b"from 0", b"from 1"]


def test_a_recording_that_begins_late_knows_how_the_connection_began(tmp_path):
    with contextlib.ExitStack() as stack:
        supervisor, events = stack.enter_context(receiving(tmp_path / "ring", Source(0, "tcp-server")))
        s = stack.enter_context(socket.create_connection(("127.0.0.1", supervisor.ports[0])))
        s.sendall(b"names and types" + bytes(30_000))
        time.sleep(0.3)
        supervisor.record(tmp_path / "take.pcap")
        wait_for(supervisor, events, "recording")
        s.sendall(b"later")
        time.sleep(0.3)
    found = packets(tmp_path / "take.pcap")
    assert found[0].start and found[0].data[:15] == b"names and types"
    assert found[-1].data == b"later" and found[-1].hole


def test_recording_with_pre_roll_is_one_file_and_watching_goes_on(tmp_path):
    with receiving(tmp_path / "ring") as (supervisor, events), sender() as s:
        to = ("127.0.0.1", supervisor.ports[0])
        s.sendto(b"before", to)
        time.sleep(0.2)
        supervisor.record(tmp_path / "take.pcap", preroll=60.0)
        began = wait_for(supervisor, events, "recording")
        s.sendto(b"during", to)
        time.sleep(0.2)
        supervisor.stop()
        ended = wait_for(supervisor, events, "recorded")
        s.sendto(b"after", to)
        time.sleep(0.3)
    assert [p.data for p in packets(tmp_path / "take.pcap")] == [b"before", b"during"]
    assert began["offset"] > 24 and ended["size"] == (tmp_path / "take.pcap").stat().st_size
    assert [p.data for p in everything(tmp_path / "ring")] == [b"before", b"after"]


def test_the_ring_forgets_and_a_recording_does_not(tmp_path):
    options = {"ring_seconds": 0.3, "segment_seconds": 0.1}
    with receiving(tmp_path / "ring", options=options) as (supervisor, events), sender() as s:
        for _ in range(20):
            s.sendto(b"x" * 100, ("127.0.0.1", supervisor.ports[0]))
            time.sleep(0.1)
            events += supervisor.tick()
        names = sorted(p.name for p in (tmp_path / "ring").glob("*.pcap"))
        assert 1 <= len(names) < 12 and names[0] != "live-000001.pcap"
    receiver.Store({"folder": str(tmp_path / "ring")}, lambda _: None).close()  # a new one goes on with the numbers
    assert sorted(p.name for p in (tmp_path / "ring").glob("*.pcap"))[-1] > names[-1]


def test_a_recording_is_never_overwritten_and_not_begun_on_a_full_disk(tmp_path):
    (tmp_path / "there.pcap").write_bytes(b"mine")
    with receiving(tmp_path / "ring", options={"free_limit": 1 << 60}) as (supervisor, events):
        supervisor.record(tmp_path / "new.pcap")
        assert "too little room" in refusal(wait_for(supervisor, events, "refused"))
    with receiving(tmp_path / "ring") as (supervisor, events):
        supervisor.record(tmp_path / "there.pcap")
        assert "never overwritten" in refusal(wait_for(supervisor, events, "refused"))
    assert (tmp_path / "there.pcap").read_bytes() == b"mine" and not (tmp_path / "new.pcap").exists()


def test_a_recording_ends_clearly_when_the_disk_gets_full(tmp_path):
    said = []
    store = receiver.Store({"folder": str(tmp_path / "ring"), "record": str(tmp_path / "take.pcap")}, said.append)
    store.put([receiver.udp_record(1, (b"\x7f\0\0\1", 1), (b"\x7f\0\0\1", 2), b"x")])
    store.step()
    store.free_limit, store._checked = 1 << 60, 0.0
    store.step()
    store.put([receiver.udp_record(2, (b"\x7f\0\0\1", 1), (b"\x7f\0\0\1", 2), b"y")])
    store.step()
    store.close()
    assert [(e["event"], e.get("reason")) for e in said if e["event"] == "recorded"] == [("recorded", "space")]
    assert [p.data for p in packets(tmp_path / "take.pcap")] == [b"x"]
    assert [p.data for p in everything(tmp_path / "ring")] == [b"y"]


def test_a_write_that_fails_leaves_whole_records(tmp_path, monkeypatch):
    said = []
    store = receiver.Store({"folder": str(tmp_path)}, said.append)
    record = receiver.udp_record(1, (b"\x7f\0\0\1", 1), (b"\x7f\0\0\1", 2), b"x" * 100)
    store.put([record])
    store.step()
    real, calls = os.write, []

    def failing(fd, data):
        calls.append(1)
        if len(calls) == 2:
            raise OSError(28, "No space left on device")
        return real(fd, data[:50])

    monkeypatch.setattr(receiver.os, "write", failing)
    store.put([record])
    store.step()
    monkeypatch.undo()
    assert [e["error"] for e in said if e["event"] == "disk"] == ["write"] and store.failed == 1
    store._retry = 0.0
    store.put([record])
    store.step()
    store.close()
    assert len(everything(tmp_path)) == 2


def test_relays_send_on_what_came_and_never_in_a_circle(tmp_path):
    with sender() as target, sender() as s:
        target.bind(("127.0.0.1", 0))
        target.settimeout(PATIENCE)
        with receiving(tmp_path, relays=[target.getsockname()]) as (supervisor, events):
            s.sendto(b"on and on", ("127.0.0.1", supervisor.ports[0]))
            assert target.recv(100) == b"on and on"
            supervisor.relay([("127.0.0.1", supervisor.ports[0])])
            assert "round in circles" in refusal(wait_for(supervisor, events, "refused"))


# -- what goes wrong


def test_a_port_in_use_is_a_sentence_and_a_second_try_works(tmp_path):
    with sender() as other:
        other.bind(("127.0.0.1", 0))
        port = other.getsockname()[1]
        with receiving(tmp_path, Source(port)) as (supervisor, events):
            (message,) = supervisor.messages()
            assert message.startswith(f"UDP port {port} is in use by another program on this computer; close it there, or choose another")
            other.close()
            wait(supervisor, events, lambda: supervisor.states["0"]["state"] == "listening")
            assert supervisor.messages() == [None]


def test_no_such_interface_is_a_sentence(tmp_path):
    with receiving(tmp_path, Source(0, host="203.0.113.7")) as (supervisor, _):
        assert "no network interface with the address 203.0.113.7" in supervisor.messages()[0]


@pytest.mark.parametrize(
    "error, words",
    [
        ("permission", "above 1023"),
        ("network_gone", "is gone"),
        ("network", "cannot be reached"),
        ("refused", "no program there"),
        ("closed", "closed the connection"),
        ("no_host", "not known"),
        ("other", "cannot be opened"),
    ],
)
def test_every_failure_has_a_sentence(error, words):
    said = sentence(Source(80, "tcp", "10.0.0.5"), error, "detail")
    assert (words in said and said.endswith(".") and "10.0.0.5" in said) or "port 80" in said


@pytest.mark.parametrize(
    "number, word", [(13, "permission"), (98, "in_use"), (99, "no_interface"), (111, "refused"), (101, "network"), (104, "closed")]
)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="error numbers of Linux")
def test_what_the_system_says_is_understood(number, word):
    assert receiver.why(OSError(number, "x")) == word


def test_a_server_that_is_not_there_is_tried_again(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with receiving(tmp_path, Source(port, "tcp")) as (supervisor, events):
        assert "start the stream there" in supervisor.messages()[0]
        with socket.create_server(("127.0.0.1", port)):
            wait(supervisor, events, lambda: supervisor.states["0"]["state"] == "connected")


def test_silence_on_another_interface_names_the_program(tmp_path):
    supervisor = Supervisor(tmp_path, [Source(9763, host="0.0.0.0")], executable="/opt/blender/python")
    supervisor.states["0"] = {"state": "listening", "port": 9763, "packets": 0}
    supervisor._began = time.monotonic() - 2.0
    assert supervisor.messages() == [None]
    supervisor._began -= 2.0
    assert "whether a firewall blocks the program /opt/blender/python" in supervisor.messages()[0]


# -- deaths


def test_it_is_gone_when_its_parent_is_gone(tmp_path):
    code = textwrap.dedent(f"""
        import sys, time
        sys.path.insert(0, {str(Path(__file__).parents[2])!r})
        from mocap_addon.stream.supervisor import Source, Supervisor
        s = Supervisor({str(tmp_path)!r}, [Source(0)])
        s.start()
        while not s.states: s.tick(); time.sleep(0.01)
        print(s.pid, s.ports[0], flush=True)
        time.sleep(600)
    """)
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    try:
        pid, port = map(int, parent.stdout.readline().split())
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with contextlib.suppress(OSError), sender() as s:
            s.bind(("127.0.0.1", port))  # its port is free again
            break
        time.sleep(0.05)
    else:
        os.kill(pid, signal.SIGTERM)
        pytest.fail("the receiver outlived its parent")


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_killed_it_comes_back_into_the_same_take_with_the_same_port(tmp_path):
    with receiving(tmp_path / "ring") as (supervisor, events), sender() as s:
        port = supervisor.ports[0]
        supervisor.record(tmp_path / "take.pcap")
        wait_for(supervisor, events, "recording")
        s.sendto(b"one", ("127.0.0.1", port))
        time.sleep(0.3)
        os.kill(supervisor.pid, signal.SIGKILL)
        with (tmp_path / "take.pcap").open("ab") as file:
            file.write(pcap([(1.0, ipv4(17, udp(b"half")))])[24:-3])  # what a write that was cut off leaves
        wait(supervisor, events, lambda: supervisor.restarts == 1 and supervisor.status.get("recording") and supervisor.ports[0] == port)
        wait(supervisor, events, lambda: supervisor.states["0"]["state"] == "listening")
        began, ended = supervisor.gaps[0]
        assert 0.0 <= ended - began < PATIENCE
        s.sendto(b"two", ("127.0.0.1", port))
        time.sleep(0.3)
    assert [p.data for p in packets(tmp_path / "take.pcap")] == [b"one", b"two"]


def test_without_a_process_it_works_inside_and_says_so(tmp_path):
    with receiving(tmp_path / "ring", executable="/no/such/python") as (supervisor, events), sender() as s:
        assert supervisor.inside and "runs inside Blender's timer" in supervisor.notes[0]
        s.sendto(b"one", ("127.0.0.1", supervisor.ports[0]))
        supervisor.record(tmp_path / "take.pcap", preroll=5.0)
        wait_for(supervisor, events, "recording")
        s.sendto(b"two", ("127.0.0.1", supervisor.ports[0]))
        supervisor.tick()
        supervisor.stop()
        wait_for(supervisor, events, "recorded")
    assert [p.data for p in packets(tmp_path / "take.pcap")] == [b"one", b"two"]


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MocapError, match="cannot be written"):
        Supervisor(tmp_path / "file" / "ring", [Source(0)], executable="").start()


# -- nothing lost

SLOW_DISK = """
import os, runpy, sys, threading, time
real, began = os.write, time.monotonic()
stalls = [1.0, 2.5]
def write(fd, data):
    if fd > 2 and stalls and time.monotonic() - began > stalls[0]:
        stalls.pop(0)
        time.sleep(1.0)
    return real(fd, data)
os.write = write
sys.argv = [sys.argv[0]]
runpy.run_path({path!r}, run_name="__main__")
"""


def test_nothing_is_lost_while_the_reader_sleeps_and_the_disk_stalls(tmp_path):
    """10 performers and 10 props at 240 Hz for four seconds (thirty where ``MOCAP_LONG`` is set); the parent never listens, the disk stands
    still for a second now and then."""
    seconds = 30.0 if os.environ.get("MOCAP_LONG") else 4.0
    script = tmp_path / "slow.py"
    script.write_text(SLOW_DISK.format(path=str(RECEIVER)))
    with receiving(tmp_path / "ring", script=script) as (supervisor, events):
        port, count = supervisor.ports[0], 0
        supervisor.record(tmp_path / "take.pcap")
        wait_for(supervisor, events, "recording")

        def send():
            nonlocal count
            began = time.monotonic()
            with sender() as s:
                while (now := time.monotonic() - began) < seconds:
                    while count < now * 240 * 20:
                        s.sendto(count.to_bytes(4, "big") + bytes(756 if count % 20 < 10 else 100), ("127.0.0.1", port))
                        count += 1
                    time.sleep(0.002)

        thread = threading.Thread(target=send)
        thread.start()
        thread.join()
        time.sleep(1.5)
        events += supervisor.tick()
        supervisor.stop()
        wait_for(supervisor, events, "recorded")
        status = supervisor.status
    numbers = [int.from_bytes(p.data[:4], "big") for p in packets(tmp_path / "take.pcap")]
    assert numbers == list(range(count)) and count > 10_000
    assert status["refused"] == status["failed"] == 0
