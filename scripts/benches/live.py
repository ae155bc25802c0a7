# SPDX-License-Identifier: GPL-3.0-or-later
"""Live: nothing lost, latency, what a tick costs, memory; and an hour of simulated frames.

``MOCAP_BENCH_SECONDS`` shortens the ten minutes of the first part. The sender is a process of its own, as a suit's software is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

import numpy as np
from support.figures import Figure

from mocap_addon.motion import quat
from mocap_addon.motion.take import Take
from mocap_addon.stream.feed import Feed
from mocap_addon.stream.frame import Frame, Sender, frames_of
from mocap_addon.stream.packets import Packet
from mocap_addon.stream.pcap import CaptureReader
from mocap_addon.stream.protocols import decoder
from mocap_addon.stream.sample import sample
from mocap_addon.stream.session import LiveSession
from mocap_addon.stream.supervisor import RECEIVER, Source

ROOT = Path(__file__).resolve().parents[2]
SECONDS = float(os.environ.get("MOCAP_BENCH_SECONDS", "600"))
PERFORMERS, RATE = 10, 240

SENDER = """
import pickle, socket, struct, sys, time
bodies, props, port, seconds, rate = pickle.load(sys.stdin.buffer)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
began, n, sent = time.monotonic(), 0, 0
while n < seconds * rate:
    wait = began + n / rate - time.monotonic()
    if wait > 0:
        time.sleep(wait)
    stamp = struct.pack(">I", n)
    clock = struct.pack(">I", round(n * 1000 / rate))
    for group in bodies:
        data = group[n % len(group)]
        s.sendto(data[:6] + stamp + data[10:12] + clock + data[16:], ("127.0.0.1", port))
        sent += 1
    for data in props:
        s.sendto(data + stamp, ("127.0.0.1", port + 0))
        sent += 1
    n += 1
print(sent)
"""

SLOW_DISK = """
import os, runpy, sys, time
real, last = os.write, time.monotonic()
def write(fd, data):
    global last
    if fd > 2 and time.monotonic() - last > 20.0:
        last = time.monotonic()
        time.sleep(1.0)
    return real(fd, data)
os.write = write
sys.argv = [sys.argv[0]]
runpy.run_path({path!r}, run_name="__main__")
"""


def dance(name: str, seconds: float, rate: int, seed: int) -> Take:
    """Every joint turning, the hips walking."""
    skeleton = decoder(name).standard()
    rng = np.random.default_rng(seed)
    t, n = np.arange(int(seconds * rate)) / rate, len(skeleton)
    turns = [np.sin(2 * np.pi * (t[:, None] * rng.uniform(0.3, 1.0, n)) + rng.uniform(0, 6, n)) * 0.4 for _ in "xyz"]
    places = np.broadcast_to(skeleton.rest_translations, (len(t), n, 3)).copy()
    places[:, 0, 1] += 0.5 * t
    return Take(f"P{seed}", skeleton, t, quat.exp(np.stack(turns, -1)), places, performer=f"P{seed}")


def datagrams(takes: list[Take], name: str, rate: int) -> list[list[bytes]]:
    """For each moment everything that is sent of several performers."""
    sender, out = Sender(rate=rate), []
    for i in range(takes[0].frames):
        sender.number, sender.time = i, i / rate
        frames: list[Frame] = []
        for take in takes:
            frames += frames_of(take, i, source=take.name)
        out.append(decoder(name).encode(frames, sender))
    return out


def resident(pid: int | None) -> float:
    """Megabytes of memory of a process."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024.0
    except OSError:
        pass
    return float("nan")


def measure() -> list[Figure]:
    """All parts."""
    return [*lost(), *protocols(), *hour()]


def lost() -> list[Figure]:
    """10 performers and 10 props at 240 Hz, recorded; 5 s without a tick every 30 s, a disk that stalls 1 s every 20 s."""
    import pickle

    moments = datagrams([dance("mvn", 1.0, RATE, i) for i in range(PERFORMERS)], "mvn", RATE)
    poses = [[d for d in m if d[4:6] == b"02"] for m in moments]
    bodies = [[m[i] for m in poses] for i in range(PERFORMERS)]
    props = [b"prop %d " % i + bytes(60) for i in range(10)]
    with tempfile.TemporaryDirectory(prefix="mocap-bench-") as folder:
        script = Path(folder) / "slow.py"
        script.write_text(SLOW_DISK.format(path=str(RECEIVER)))
        from mocap_addon.stream.supervisor import Supervisor

        sources = [Source(0)]
        session = LiveSession(folder, sources, supervisor=Supervisor(Path(folder) / "ring", sources, script=script))
        with session:
            session.pump(20, until=lambda: session.sources()[0].state == "listening")
            port = session.supervisor.ports[0]
            path = Path(folder) / "take.pcap"
            session.record(path)
            session.pump(20, until=lambda: session.recording is not None)
            child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(SENDER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            assert child.stdin and child.stdout
            pickle.dump((bodies, props, port, SECONDS, RATE), child.stdin)
            child.stdin.close()
            ages, ticks, waited, memory = _watch(session, child)
            sent = int(child.stdout.read())
            session.pump(1.5)
            session.stop_recording()
            status = session.supervisor.status
        with CaptureReader(path) as reader:
            kept = sum(1 for _ in reader.packets())
        first = memory[min(len(memory) - 1, max(1, len(memory) // 10))]
        growth = [memory[-1][k] - first[k] for k in (0, 1)]
        return [
            Figure("datagrams sent", sent, ""),
            Figure("datagrams missing in the recording", sent - kept, "", 0),
            Figure("dropped by the system", int(status["sources"][0]["drops"]), "", 0),
            Figure("reader's memory growth", growth[0], "MB", 20),
            Figure("receiver's memory growth", growth[1], "MB", 20),
            Figure(
                "tick of 10 performers at 240 Hz: read, decode, sample (median, processor time)", float(np.median(ticks)) * 1e3, "ms", 4.0
            ),
            Figure("tick (median, wall clock)", float(np.median(waited)) * 1e3, "ms"),
            Figure("tick (p99, processor time; after 5 s away there is much to read)", float(np.percentile(ticks, 99)) * 1e3, "ms"),
            Figure("load of the machine (processes that want to run, of the last minute)", os.getloadavg()[0], ""),
            # What the disk holds back is not shown: without stalls the age is measured by live_blender.
            Figure("age of the pose shown beyond the back-sample (p99), the stalls included", float(np.percentile(ages, 99)) * 1e3, "ms"),
        ]


def _watch(session: LiveSession, child: subprocess.Popen[bytes]) -> tuple[list[float], list[float], list[float], list[tuple[float, float]]]:
    """Tick at 60 Hz while the child sends; ages beyond the back-sample, costs, memory every second."""
    ages: list[float] = []
    ticks: list[float] = []
    waited: list[float] = []
    memory: list[tuple[float, float]] = []
    began = rested = counted = time.monotonic()
    settle = 0.0
    while child.poll() is None:
        now = time.monotonic()
        if now - rested > 30.0:
            time.sleep(5.0)
            rested = time.monotonic()
            settle = rested + 1.0
        start, own = time.perf_counter(), time.thread_time()
        session.tick()
        shown = session.poll()
        ticks.append(time.thread_time() - own)
        waited.append(time.perf_counter() - start)
        if now > settle and now - began > 3.0:
            at = session.now()
            for key, moment in shown.items():
                if key[1] == "body":
                    track = session.feed.tracks[key]
                    motion = min(moment.time, track.times[-1])  # what is held is older than what was asked for
                    ages.append(at - motion - track.clock.offset(motion) - session.back)
            ages = ages[-200_000:]
        if now - counted > 1.0:
            counted = now
            memory.append((resident(os.getpid()), resident(session.supervisor.pid)))
        time.sleep(max(0.0, 1 / 60 - (time.perf_counter() - start)))
    return ages, ticks[60:], waited[60:], memory or [(0.0, 0.0)] * 2


def protocols() -> list[Figure]:
    """Decode and sample four performers on a tick at 60 Hz."""
    out: list[Figure] = []
    for name, limit in (("mvn", 1.0), ("vmc", 2.5), ("json", 4.0), ("rokoko", 4.0)):
        actors = 1 if name == "vmc" else 4
        groups = [datagrams([dance(name, 4.0, 60, i) for i in range(4)], name, 60)] if actors == 4 else []
        groups = groups or [datagrams([dance(name, 4.0, 60, i)], name, 60) for i in range(4)]
        feed, costs = Feed([decoder(name)]), []
        for i in range(len(groups[0])):
            start = time.thread_time()
            for port, group in enumerate(groups):
                for data in group[i]:
                    feed.add(Packet(round((1000 + i / 60) * 1e9), "udp", ("127.0.0.1", 5000 + port), ("127.0.0.1", 9000), data))
            found = sample(feed.all().values(), i / 60, 0.1)
            costs.append(time.thread_time() - start)
        assert sum(k[1] == "body" and m.skeleton is not None for k, m in found.items()) == 4, (name, list(found))
        out.append(Figure(f"decode and sample 4 performers, {name} (median)", float(np.median(costs[60:])) * 1e3, "ms", limit))
    return out


def hour() -> list[Figure]:
    """A simulated hour of five performers at 120 Hz: 2.2 million frames; a poll every sixtieth of a second of the first and last minute."""
    rate, minutes = 120, 60
    moments = datagrams([dance("mvn", 1.0, rate, i) for i in range(5)], "mvn", rate)
    poses = [[d for d in m if d[4:6] == b"02"] for m in moments]
    feed, memory, costs = Feed([decoder("mvn")]), [], []
    for minute in range(minutes):
        spent = []
        for n in range(minute * 60 * rate, (minute + 1) * 60 * rate):
            stamp, clock = n.to_bytes(4, "big"), round(n * 1000 / rate).to_bytes(4, "big")
            for data in poses[n % len(poses)]:
                whole = data[:6] + stamp + data[10:12] + clock + data[16:]
                feed.add(Packet(round((1000 + n / rate) * 1e9), "udp", ("127.0.0.1", 5000), ("127.0.0.1", 9763), whole))
            if n % (rate // 60 * 20) == 0:
                start = time.thread_time()
                sample(feed.all().values(), n / rate, 0.1)
                spent.append(time.thread_time() - start)
        memory.append(resident(os.getpid()))
        costs.append(float(np.median(spent)))
    return [
        Figure("an hour of 5 performers at 120 Hz: memory growth after the first minute", memory[-1] - memory[0], "MB", 5),
        Figure("an hour: tick of the last minute by that of the second", costs[-1] / costs[1], "x", 1.5),
        Figure("an hour: frames of one performer", feed.tracks[next(iter(feed.tracks))].sequence.received, ""),
    ]
