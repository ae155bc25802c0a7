# SPDX-License-Identifier: GPL-3.0-or-later
"""Live in Blender: ten performers at 240 Hz on ten characters, ticks at 60 Hz: what a tick costs us, and how old the pose is that is shown.

The sender is a process of its own. It writes the time of each packet, on the clock that all processes of a machine share, into the place of
the pelvis: the age of what is shown is told by the pose itself.
"""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
from benches.live import PERFORMERS, RATE, dance, datagrams
from support.figures import Figure

ROOT = Path(__file__).resolve().parents[2]
CHARACTER = ROOT / "mocap_addon" / "demo" / "character.glb"
SECONDS = float(os.environ.get("MOCAP_BENCH_SECONDS", "20"))
BACK, DISPLAY = 0.1, 1.0 / 60.0

SENDER = """
import pickle, socket, struct, sys, time
bodies, port, seconds, rate = pickle.load(sys.stdin.buffer)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
began, n = time.monotonic(), 0
print(repr(began), flush=True)
while n < seconds * rate:
    wait = began + n / rate - time.monotonic()
    if wait > 0:
        time.sleep(wait)
    at = time.monotonic() - began
    stamp, clock, place = struct.pack(">I", n), struct.pack(">I", round(at * 1000)), struct.pack(">f", at)
    for group in bodies:
        data = group[n % len(group)]
        s.sendto(data[:6] + stamp + data[10:12] + clock + data[16:28] + place + data[32:], ("127.0.0.1", port))
    n += 1
"""


def measure() -> list[Figure]:
    """Ticks of :data:`SECONDS` seconds."""
    import bpy

    import mocap_addon
    from mocap_addon.ui import live

    mocap_addon.register()
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.import_scene.gltf(filepath=str(CHARACTER))
    first = next(o for o in bpy.data.objects if o.type == "ARMATURE")
    heroes = [first]
    for _ in range(PERFORMERS - 1):
        heroes.append(first.copy())
        bpy.context.scene.collection.objects.link(heroes[-1])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    bpy.ops.mocap.live_add_source(protocol="MVN", port=port)
    bpy.ops.mocap.live_start()
    found = live.running()
    found.session.pump(20.0, until=lambda: found.session.sources()[0].state == "listening")
    moments = datagrams([dance("mvn", 1.0, RATE, i) for i in range(PERFORMERS)], "mvn", RATE)
    poses = [[d for d in m if d[4:6] == b"02"] for m in moments]
    bodies = [[m[i] for m in poses] for i in range(PERFORMERS)]
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(SENDER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin and child.stdout
    pickle.dump((bodies, port, SECONDS + 5.0, RATE), child.stdin)
    child.stdin.close()
    began = float(child.stdout.readline())
    live.pump(2.0)
    for binding, obj in zip(bpy.context.scene.mocap.live.performers, heroes, strict=True):
        binding.target = obj
    live.pump(1.0)
    costs, evaluations, ages = [], [], []
    next_tick, end = time.monotonic(), time.monotonic() + SECONDS
    while time.monotonic() < end:
        next_tick = max(next_tick + DISPLAY, time.monotonic())
        start = time.perf_counter()
        live.tick()
        costs.append(time.perf_counter() - start)
        start = time.perf_counter()
        bpy.context.view_layer.update()
        evaluations.append(time.perf_counter() - start)
        shown = time.monotonic() - began
        ages += [shown - _stamp(moment) for moment in found.shown.values()]
        time.sleep(max(0.0, next_tick - time.monotonic()))
    driven = sum(o.mocap.live for o in heroes)
    live.stop()
    child.kill()
    mocap_addon.unregister()
    return [
        Figure("characters driven", driven, "", PERFORMERS, "higher"),
        Figure("our part of a tick, median", 1e3 * float(np.median(costs)), "ms", 4.0),
        Figure("our part of a tick, 99th percentile", 1e3 * float(np.percentile(costs, 99)), "ms"),
        Figure("Blender's evaluation, median", 1e3 * float(np.median(evaluations)), "ms"),
        Figure("age of the pose shown, 99th percentile", 1e3 * float(np.percentile(ages, 99)), "ms", 1e3 * (BACK + DISPLAY) + 5.0),
    ]


def _stamp(moment) -> float:
    """The sender's time in a pose: metres forward."""
    place = moment.translations[0]
    return float(np.abs(place[:2]).max())
