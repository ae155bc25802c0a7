# SPDX-License-Identifier: GPL-3.0-or-later
"""Live protocols: packets a second that become frames, the longest packet, and what four performers cost in one tick.

Speeds are of the processor's time: one thread reads, and on a machine with nothing else to do the clock says the same. MVN and Noitom are
read as the live view reads them, all packets that came since the last tick (40 of 10 performers at 240 Hz) at once; the others one by one.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from support.figures import Figure  # noqa: E402

from mocap_addon.motion import quat  # noqa: E402
from mocap_addon.motion.skeleton import Skeleton  # noqa: E402
from mocap_addon.stream import humanoid, rokoko_body  # noqa: E402
from mocap_addon.stream.frame import Frame, Sender, local_poses  # noqa: E402
from mocap_addon.stream.protocols import decoder  # noqa: E402
from tests.stream.bodies import moving, packets  # noqa: E402
from tests.stream.lz4_writer import compress  # noqa: E402

BATCH = 40
SECONDS = 1.0


def measure() -> list[Figure]:
    """Every protocol, then one tick of four performers in three of them."""
    out: list[Figure] = []
    cases: list[tuple[str, str, list[bytes], float, bool]] = [
        ("MVN, 23 segments", "mvn", stream("mvn"), 100_000, True),
        ("MVN, one by one", "mvn", stream("mvn"), 0, False),
        ("Noitom, 59 joints", "noitom", stream("noitom"), 25_000, True),
        ("VMC, bundles of 55 bones", "vmc", stream("vmc", humanoid.BONES), 15_000, False),
        ("VMC, a datagram a bone", "vmc", stream("vmc", humanoid.BONES, bundle=False), 0, False),
        ("Rokoko JSON, 23 joints", "rokoko", stream("rokoko"), 5_000, False),
        ("Rokoko JSON with fingers", "rokoko", stream("rokoko", rokoko_body.JOINTS), 0, False),
        ("Rokoko LZ4, 23 joints", "rokoko", [compress(d) for d in stream("rokoko")], 2_000, False),
        ("ChingMu JSON", "chingmu", stream("chingmu"), 5_000, False),
        ("own JSON", "json", stream("json"), 5_000, False),
        ("NatNet, 21 bones", "natnet", stream("natnet"), 0, False),
    ]
    worst = 0.0
    for label, name, sent, limit, at_once in cases:
        rate, longest = speed(name, sent, at_once)
        worst = max(worst, longest)
        out.append(Figure(label, round(rate), "packets/s", limit or None, "higher"))
    out.append(Figure("longest packet of all", round(worst * 1e3, 3), "ms", 5.0))
    for label, name, limit in (("MVN", "mvn", 1.0), ("VMC", "vmc", 2.5), ("JSON", "json", 4.0)):
        out.append(Figure(f"tick of 4 performers, {label}: decode and sample", round(tick(name) * 1e3, 3), "ms", limit))
    return out


def stream(name: str, joints: tuple[str, ...] = (), **options: object) -> list[bytes]:
    """Valid packets of one performer; descriptions, which come once a second, only in the first moment."""
    take = moving(decoder(name).standard(joints), frames=120, props=())
    return packets(decoder(name), take, Sender(options=dict(options), rate=1e9, mtu=65000))


def speed(name: str, sent: list[bytes], at_once: bool) -> tuple[float, float]:
    """Packets a second of the processor's time, and the longest packet's seconds (the least of five readings of the same one)."""
    protocol = decoder(name)
    state = protocol.state()
    for data in sent:
        protocol.decode(data, state)
    batches = [sent[i : i + BATCH] for i in range(0, len(sent), BATCH)]
    count, start = 0, time.process_time()
    while time.process_time() - start < SECONDS:
        if at_once:
            for batch in batches:
                protocol.decode_all(batch, state)
        else:
            for data in sent:
                protocol.decode(data, state)
        count += len(sent)
    rate = count / (time.process_time() - start)
    if state.counts.failed or state.counts.broken or state.counts.unknown:
        raise SystemExit(f"{name}: {state.counts}")
    longest = max(min(_timed(lambda data=data: protocol.decode(data, state)) for _ in range(5)) for data in sent)
    return rate, longest


def _timed(what: Callable[[], object]) -> float:
    start = time.thread_time()
    what()
    return time.thread_time() - start


def tick(name: str) -> float:
    """Seconds (median) to decode what four performers at 120 Hz send between two ticks at 60 Hz, and to sample each once by slerp."""
    protocol = decoder(name)
    takes = [moving(protocol.standard(), frames=120, seed=s, props=()) for s in range(4)]
    streams = [packets(protocol, t, Sender(rate=1e9, mtu=65000), source=str(i)) for i, t in enumerate(takes)]
    per = 2
    if name == "mvn":  # one address sends all four
        numbered = [[d[:16] + bytes([i]) + d[17:] for d in s] for i, s in enumerate(streams)]
        streams, per = [[s[j] for j in range(120) for s in numbered]], 8
    states = [protocol.state() for _ in streams]
    bodies: dict[tuple[int, str], Skeleton] = {}
    for number, (sent, state) in enumerate(zip(streams, states, strict=True)):
        for frame in (f for got in protocol.decode_all(sent[:16], state) for f in got if f.kind == "body"):
            body = protocol.skeleton(frame.source, state)
            if body is not None:
                bodies[number, frame.source] = body
    spent: list[float] = []
    for at in range(16, min(map(len, streams)) - per, per):
        start = time.thread_time()
        for number, (sent, state) in enumerate(zip(streams, states, strict=True)):
            own: dict[str, list[Frame]] = {}
            for frame in (f for got in protocol.decode_all(sent[at : at + per], state) for f in got if f.kind == "body"):
                own.setdefault(frame.source, []).append(frame)
            for source, pair in own.items():
                rotations, places = local_poses(pair[-2:], bodies[number, source])
                quat.slerp(rotations[0], rotations[-1], 0.4)
                np.add(places[0] * 0.6, places[-1] * 0.4)
        spent.append(time.thread_time() - start)
    return float(np.median(spent))


if __name__ == "__main__":
    print("\n".join(f.line(60) for f in measure()))
