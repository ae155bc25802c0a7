# SPDX-License-Identifier: GPL-3.0-or-later
"""Take -> live stream -> capture -> take, in every protocol; and captures as tcpdump and tshark see them."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
import time
from fractions import Fraction

import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.motion import quat
from mocap_addon.motion.errors import FileError, MocapError
from mocap_addon.stream import capture, receiver, sidecar
from mocap_addon.stream.feed import Port
from mocap_addon.stream.protocols import PROTOCOLS, decoder
from mocap_addon.stream.send import Outlet, Player, moments, recorded
from mocap_addon.stream.supervisor import Source, Supervisor
from tests.stream.wire import dance, pcap

RATES = (Fraction(24), Fraction(30000, 1001), Fraction(60), Fraction(120))
US, THEM = (b"\x7f\0\0\1", 9000), (b"\x7f\0\0\1", 5000)


def written(path, timed, transport="udp"):
    """A capture as the receiver writes it, of datagrams at given times."""
    stream = receiver.TcpStream(US, THEM)
    out = [receiver.HEADER, *(stream.begin(0, by_peer=True) if transport == "tcp" else ())]
    for at, datagrams in timed:
        stamp = round((1_800_000_000 + at) * 1e9)
        for data in datagrams:
            out += stream.data(stamp, data) if transport == "tcp" else [receiver.udp_record(stamp, THEM, US, data)]
    path.write_bytes(b"".join(out))
    return path


def way(name):
    return "udp" if "udp" in decoder(name).transports else "tcp"


def difference(a, b):
    """Largest angle (degrees) and root distance (mm) over the joints that both have."""
    names = [n for n in a.skeleton.names if n in b.skeleton]
    one, two = (t.local_rotations[:, [t.skeleton.index(n) for n in names]] for t in (a, b))
    roots = a.local_translations[:, 0] - b.local_translations[:, 0]
    assert len(names) >= 20
    return float(np.degrees(quat.angle(one, two)).max()), float(1e3 * np.abs(roots).max())


@pytest.mark.parametrize("rate", RATES, ids=["24", "29.97", "60", "120"])
@pytest.mark.parametrize("name", PROTOCOLS)
def test_round_trip(tmp_path, name, rate):
    """Angles within 0.05 degree, duration within 1 ms, the rate found exactly; packets up to 5 ms late."""
    rng = np.random.default_rng(1)
    seconds = 3 if name == "noitom" else 2  # without a clock it takes longer to tell 29.97 from 30
    take = dance(decoder(name).standard(), rate, int(rate * seconds) + 1)
    late = rng.uniform(0.0, 0.005, take.frames)  # less than a frame: the order stays
    timed = [(at + late[i], data) for i, (at, data) in enumerate(moments([take], decoder(name)))]
    path = written(tmp_path / "take.pcap", timed, way(name))
    (back,) = formats.read(path)
    assert back.frames == take.frames and abs(back.duration - take.duration) < 1e-3 and back.rate == rate
    degrees, millimetres = difference(take, back)
    assert degrees < 0.05 and millimetres < 0.1
    assert back.facts["lost"] == 0 and back.performer


@pytest.mark.parametrize("name", ["mvn", "json"])
def test_props_and_several_performers_come_back(tmp_path, name):
    body = decoder(name).standard()
    takes = [dance(body, 60, 121, i, f"P{i}", prop=i == 0) for i in range(3)]
    loaded = capture.load(written(tmp_path / "take.pcap", moments(takes, decoder(name))))
    back = capture.takes(loaded)
    assert [t.performer for t in back] == ["P0", "P1", "P2"] and {t.frames for t in back} == {121}
    for ours, theirs in zip(takes, back, strict=True):
        assert difference(ours, theirs)[0] < 0.05
    (sword,) = [track for n, track in back[0].props.items() if "Sword" in n or "Prop" in n]
    assert np.abs(sword.translations - takes[0].props["Sword"].translations).max() < 1e-3
    assert np.degrees(quat.angle(sword.rotations, takes[0].props["Sword"].rotations)).max() < 0.05
    apart = capture.takes(loaded, props="apart")
    assert len(apart) == 4 and len(apart[3].skeleton) == 1


def test_lost_and_doubled_datagrams(tmp_path):
    take = dance(decoder("mvn").standard(), 100, 301)
    timed = list(moments([take], decoder("mvn")))
    timed = [m for i, m in enumerate(timed) if i % 50 != 25 for _ in range(1 + (i % 40 == 7))]
    (back,) = formats.read(written(tmp_path / "take.pcap", timed))
    assert (back.frames == 301 - 6 and back.rate is None) or back.rate == 100
    assert back.duration == pytest.approx(3.0, abs=1e-3) and back.facts["lost"] == 6
    assert any("6 of 301 frames did not arrive" in note for note in back.notes)
    whole = back.resampled(Fraction(100))
    assert whole.frames == 301 and difference(take, whole)[0] < 1.0


def test_a_sender_that_began_anew_goes_on_after_the_pause(tmp_path):
    take = dance(decoder("mvn").standard(), 100, 101)
    once = list(moments([take], decoder("mvn")))
    (back,) = formats.read(written(tmp_path / "take.pcap", [*once, *((at + 3.0, data) for at, data in moments([take], decoder("mvn")))]))
    assert back.facts["restarts"] == 1 and back.frames == 202
    assert back.duration == pytest.approx(4.0, abs=0.011)


def test_takes_on_whole_frames_count_from_one_origin(tmp_path):
    first, second = (dance(decoder("mvn").standard(), 120, 241, i, f"P{i}") for i in range(2))
    one, two = (list(moments([t], decoder("mvn"))) for t in (first, second))
    late = [(at + 0.5, [b"" + _as_character(d, 1) for d in data]) for at, data in two]
    path = written(tmp_path / "take.pcap", sorted([*one, *late], key=lambda m: m[0]))
    a, b = capture.takes(capture.load(path), rate=Fraction(24))
    assert (a.facts["first_frame"], b.facts["first_frame"]) == (0, 12)
    assert a.rate == b.rate == 24 and a.frames == b.frames == 49
    assert np.degrees(quat.angle(a.local_rotations, first.local_rotations[::5])).max() < 0.05


def _as_character(data, number):
    return data[:16] + bytes([number]) + data[17:]


def test_a_person_may_name_performers_and_takes(tmp_path):
    take = dance(decoder("mvn").standard(), 60, 61)
    path = written(tmp_path / "x.pcap", moments([take], decoder("mvn")))
    sidecar.save(path, sidecar.Sidecar(take="Chase", number=3, performers={"0": "Berta"}, state="finished"))
    (back,) = formats.read(path)
    assert (back.name, back.performer) == ("Chase 03", "Berta")
    sidecar.beside(path).write_text('{"take": 5, "rating": "x", "gaps": null, "unheard": 1}')
    assert formats.read(path)[0].name == "x"
    sidecar.beside(path).write_text("{")
    with pytest.raises(FileError, match="are damaged"):
        formats.read(path)


def test_a_performer_is_shown_as_it_was_when_it_was_recorded(tmp_path):
    """Table and calibration are of one performer; what is of another, or damaged, changes nothing."""
    take = dance(decoder("mvn").standard(), 60, 61)
    path = written(tmp_path / "x.pcap", moments([take], decoder("mvn")))
    (plain,) = formats.read(path)
    assert "table" not in plain.facts
    names, lean = plain.skeleton.names, quat.from_axis_angle((1.0, 0.0, 0.0), 0.25)
    rotations, translations = np.tile(quat.IDENTITY, (len(names), 1)), plain.skeleton.rest_translations
    rotations[3] = lean
    text = sidecar.reference_text(names, rotations, translations)
    whole = " ".join((str(plain.facts["sender"]), "body", "0"))
    for kept in ({whole: text}, {"0": text}):
        sidecar.save(path, sidecar.Sidecar(references=kept, tables={whole: "version = 1"}))
        (back,) = formats.read(path)
        assert back.facts["table"] == "version = 1"
        assert np.allclose(back.skeleton.rest_rotations[3], lean, atol=1e-6) and np.allclose(back.skeleton.rest_rotations[:3], [1, 0, 0, 0])
        assert np.allclose(back.skeleton.rest_translations, translations, atol=1e-5)
        assert np.array_equal(back.local_rotations, plain.local_rotations)
    others = sidecar.reference_text(names[1:], rotations[1:], translations[1:])
    nothing = sidecar.reference_text(names, 0.0 * rotations, translations)
    for bad in (others, nothing, "{", "[1]", '{"joints": 5}', text.replace("0.25", "x")[:-9]):
        sidecar.save(path, sidecar.Sidecar(references={whole: bad}, tables={"1": "version = 1"}))
        (back,) = formats.read(path)
        assert np.array_equal(back.skeleton.rest_rotations, plain.skeleton.rest_rotations) and "table" not in back.facts
    sidecar.beside(path).write_text(f'{{"references": {{"{whole}": 7}}, "tables": {{"{whole}": ["x"]}}}}')
    assert "table" not in formats.read(path)[0].facts


def test_what_is_in_a_capture_of_something_else_is_said(tmp_path):
    path = tmp_path / "x.pcap"
    path.write_bytes(pcap([]))
    with pytest.raises(FileError, match="no UDP datagrams"):
        formats.read(path)
    written(path, [(0.0, [b"GET / HTTP/1.1"])])
    with pytest.raises(FileError, match=r"1 packets \(to port 9000\) are in this capture, but no performer"):
        formats.read(path)


def test_progress_cancels(tmp_path):
    take = dance(decoder("mvn").standard(), 60, 1500)
    path = written(tmp_path / "x.pcap", moments([take], decoder("mvn")))
    with pytest.raises(MocapError, match="cancelled"):
        formats.read(path, progress=lambda _: False)


def test_the_player_keeps_time_and_loops():
    class Gone:
        sent: list = []

        def send(self, data):
            self.sent.append((now, *data))

    out, rounds = Gone(), []

    def make(base):
        rounds.append(base)
        return iter([(0.0, [b"a"]), (0.5, [b"b"]), (1.0, [b"c"])])

    player = Player(make, out, speed=2.0, loop=True)
    for now in np.arange(0.0, 1.6, 0.05):
        player.tick(float(now))
    assert [(round(t, 2), d) for t, d in out.sent] == [
        (0.0, b"a"),
        (0.25, b"b"),
        (0.5, b"c"),
        (0.75, b"a"),
        (1.0, b"b"),
        (1.25, b"c"),
        (1.5, b"a"),
    ]
    assert rounds == pytest.approx([0.0, 1.5, 3.0]) and not player.done


def test_a_captures_own_datagrams_are_sent_as_they_came(tmp_path):
    path = written(tmp_path / "x.pcap", [(0.0, [b"a"]), (0.25, [b"b", b"c"])])
    assert [(round(t, 6), d) for t, d in recorded(path)] == [(0.0, [b"a"]), (0.25, [b"b"]), (0.25, [b"c"])]
    assert list(recorded(path, port=1)) == []


def test_nobody_there_is_a_sentence_or_counted():
    with Outlet("127.0.0.1", 9) as outlet:
        for _ in range(3):
            outlet.send([b"x"])
    with pytest.raises(MocapError, match="check address and port"):
        Outlet("127.0.0.1", 9, "tcp")
    with pytest.raises(MocapError, match="check address and port"):
        Outlet("no such host.invalid", 9)


@pytest.mark.parametrize("name", ["mvn", "vrpn"])
def test_over_the_network_and_back(tmp_path, name):
    """The same through a real socket, receiver and file."""
    take = dance(decoder(name).standard(), 60, 61)
    path = tmp_path / "take.pcap"
    server = Outlet("127.0.0.1", 0, "tcp-server") if way(name) == "tcp" else None
    source = Source(server.port if server else 0, way(name), protocol=name)
    supervisor = Supervisor(tmp_path / "ring", [source], options={"record": str(path)})
    try:
        supervisor.start()
        end = time.monotonic() + 20
        while supervisor.states.get("0", {}).get("state") not in ("listening", "connected") and time.monotonic() < end:
            supervisor.tick()
            time.sleep(0.01)
        port = supervisor.ports[0]
        with server or Outlet("127.0.0.1", port) as outlet:
            Player(lambda _: moments([take], decoder(name)), outlet).run()
            time.sleep(0.3)
    finally:
        supervisor.close()
    (back,) = capture.takes(capture.load(path, ports={port: Port(name)}))
    assert back.frames == 61 and back.rate == 60 and difference(take, back)[0] < 0.05


# -- other people's programs


def tool(name):
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def lines(*command):
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.splitlines()


def test_tshark_finds_nothing_wrong_and_follows_our_tcp(tmp_path):
    tshark = tool("tshark")
    ours, theirs = (US[0], 50_123), (THEM[0], 50_124)  # ports that are nobody's, so that nothing is read into the data
    stream = receiver.TcpStream(ours, theirs)
    six = (bytes(15) + b"\1", 50_123), (bytes(15) + b"\1", 50_124)
    text = b"".join(b"line %d\n" % i for i in range(20000))
    records = [
        *(receiver.udp_record(i * 10_000_000, theirs, ours, bytes([i]) * (i * 257 % 60000)) for i in range(1, 40)),
        *(receiver.udp_record(i * 10_000_000, six[1], six[0], bytes([i]) * i) for i in range(1, 40)),
        *stream.begin(10**9, by_peer=True),
        *(r for i in range(0, len(text), 70_001) for r in stream.data(10**9 + i, text[i : i + 70_001])),
        *stream.data(2 * 10**9, b"answer\n", sent=True),
        *stream.end(3 * 10**9, by_peer=True),
    ]
    path = tmp_path / "x.pcap"
    path.write_bytes(receiver.HEADER + b"".join(records))
    checks = [w for p in ("ip", "udp", "tcp") for w in ("-o", f"{p}.check_checksum:TRUE")]
    bad = "_ws.malformed or _ws.expert.severity >= 6291456 or tcp.analysis.flags"  # 6291456: warning
    assert lines(tshark, "-r", str(path), *checks, "-Y", bad) == []
    fields = lines(tshark, "-r", str(path), *checks, "-T", "fields", "-e", "udp.checksum.status", "-e", "tcp.checksum.status")
    assert len(fields) == len(records) and {f.replace("\t", "") for f in fields} == {"1"}  # every checksum is right
    followed = lines(tshark, "-r", str(path), "-q", "-z", "follow,tcp,raw,0")
    data = b"".join(bytes.fromhex(x.strip()) for x in followed if x.strip() and all(c in "0123456789abcdef" for c in x.strip()))
    assert data == text + b"answer\n"
    times = lines(tshark, "-r", str(path), "-T", "fields", "-e", "frame.time_epoch", "-c", "1")
    assert times == ["0.010000000"]


def test_wiresharks_pcapng_gives_the_same_take(tmp_path):
    editcap = tool("editcap")
    take = dance(decoder("mvn").standard(), 60, 61)
    path = written(tmp_path / "x.pcap", moments([take], decoder("mvn")))
    lines(editcap, "-F", "pcapng", str(path), str(tmp_path / "y.pcapng"))
    (one,), (two,) = formats.read(path), formats.read(tmp_path / "y.pcapng")
    assert np.array_equal(one.local_rotations, two.local_rotations) and np.array_equal(one.times, two.times)


def test_what_tcpdump_captures_is_the_same_take(tmp_path):
    """tcpdump and the receiver hear the same stream; both files give the same frames."""
    tcpdump = tool("tcpdump")
    take = dance(decoder("mvn").standard(), 60, 61)
    path, theirs = tmp_path / "take.pcap", tmp_path / "theirs.pcap"
    supervisor = Supervisor(tmp_path / "ring", [Source(0)], options={"record": str(path)})
    process = None
    try:
        supervisor.start()
        end = time.monotonic() + 20
        while not supervisor.states and time.monotonic() < end:
            supervisor.tick()
            time.sleep(0.01)
        port = supervisor.ports[0]
        command = [tcpdump, "-i", "lo", "--immediate-mode", "-U", "-s", "0", "-w", str(theirs), "udp", "port", str(port)]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert process.stderr is not None
        said = process.stderr.readline()
        while "listening" not in said:
            if not said or process.poll() is not None:
                pytest.skip(f"tcpdump may not capture here ({said.strip()})")
            said = process.stderr.readline()
        with Outlet("127.0.0.1", port) as outlet:
            Player(lambda _: moments([take], decoder("mvn")), outlet, speed=4.0).run()
        end = time.monotonic() + 20
        while theirs.stat().st_size < 61 * 760 and time.monotonic() < end:
            time.sleep(0.05)
    finally:
        supervisor.close()
        if process is not None:
            process.terminate()
            process.wait(20)
            process.stderr.close()
    (ours,), (foreign,) = formats.read(path), formats.read(theirs)
    assert struct.unpack("<I", theirs.read_bytes()[20:24])[0] == 1  # Ethernet, as loopback is there
    assert ours.frames == foreign.frames == 61
    assert np.array_equal(ours.local_rotations, foreign.local_rotations) and np.array_equal(ours.times, foreign.times)


def test_the_sidecar_is_json(tmp_path):
    path = sidecar.save(tmp_path / "x.pcap", sidecar.Sidecar(take="Größe", gaps=[[1.0, 2.0]]))
    said = json.loads(path.read_text(encoding="utf-8"))
    assert said["take"] == "Größe" and said["state"] == "recording" and said["gaps"] == [[1.0, 2.0]]
    assert sidecar.load(tmp_path / "x.pcap") == sidecar.Sidecar(take="Größe", gaps=[[1.0, 2.0]])
