# SPDX-License-Identifier: GPL-3.0-or-later
"""``mocap record`` and ``mocap replay`` through a real socket."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from mocap_addon import cli, formats
from tests.paths import ROOT

WALK = ROOT / "mocap_addon" / "demo" / "zombieWalk1.bvh"


def run(capfd, *words):
    code = cli.main([*map(str, words), "--json"])
    out, _ = capfd.readouterr()
    return code, [json.loads(line) for line in out.splitlines()]


def free_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def recorder(port, path, *more):
    command = [sys.executable, "-m", "mocap_addon.cli", "record", "--port", port, "--out", path, *more, "--json"]
    process = subprocess.Popen([*map(str, command)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    first = json.loads(process.stdout.readline())
    assert first["event"] == "listening", first
    return process


def test_replayed_recorded_and_read_again(tmp_path, capfd):
    """Any take, on any skeleton, as a stream; what is recorded is a take like another."""
    port, path = free_port(), tmp_path / "take.pcap"
    process = recorder(port, path)
    try:
        code, said = run(capfd, "replay", WALK, "--to", f"127.0.0.1:{port}", "--protocol", "mvn", "--speed", "2")
    finally:
        process.send_signal(signal.SIGINT if os.name != "nt" else signal.SIGTERM)
        out, _ = process.communicate(timeout=60)
    assert code == 0 and said[-1]["frames"] == 31 and said[-1]["failed"] == 0
    result = json.loads(out.splitlines()[-1])
    assert process.returncode == 0 and result["kind"] == "capture" and result["dropped"] == 0
    assert [(p["kind"], p["protocol"], p["frames"], p["lost"]) for p in result["performers"]] == [("body", "mvn", 31, 0)]
    (take,) = formats.read(path)
    assert take.frames == 31 and take.duration == pytest.approx(30 / 24, abs=1e-3)
    code, (info,) = run(capfd, "info", path)
    assert (code, info["format"], info["frames"], info["missing"]) == (0, "Xsens MVN", 31, [])
    # Sent on as it came, and in another protocol.
    other, again = free_port(), tmp_path / "again.pcap"
    process = recorder(other, again, "--seconds", "8")
    code, said = run(capfd, "replay", path, "--to", f"127.0.0.1:{other}", "--speed", "4")
    assert code == 0 and said[-1]["datagrams"] == result["packets"]
    code, said = run(capfd, "replay", path, "--to", f"127.0.0.1:{other}", "--protocol", "vmc", "--speed", "4")
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert code == 0 and {t.facts["format"] for t in formats.read(again)} >= {"Xsens MVN"}


def test_a_recording_of_nothing_says_so(tmp_path, capfd):
    port = free_port()
    code, said = run(capfd, "record", "--port", port, "--seconds", "0.5", "--out", tmp_path / "x.pcap")
    assert code == 0 and said[-1]["packets"] == 0
    assert said[-1]["warnings"] == [f"Nothing was received; look that the sender is on, and sends to 127.0.0.1 port {port}."]


def test_wrong_words_are_sentences(tmp_path, capfd):
    (tmp_path / "there.pcap").write_bytes(b"")
    port = free_port()
    cases = [
        (("record", "--out", tmp_path / "there.pcap", "--port", port), "never overwritten"),
        (("record", "--out", tmp_path / "no" / "x.pcap", "--port", port), "no such folder"),
        (("record", "--out", tmp_path / "x.pcap"), "Name the port"),
        (("record", "--out", tmp_path / "x.pcap", "--protocol", "morse"), 'no protocol called "morse"'),
        (("record", "--out", tmp_path / "x.pcap", "--port", port, "--relay", "192.0.2.1:5"), "add --network"),
        (("record", "--out", tmp_path / "x.pcap", "--port", port, "--interface", "203.0.113.7"), "no network interface"),
        (("replay", WALK, "--to", "192.0.2.1:9763", "--protocol", "mvn"), "add --network"),
        (("replay", WALK, "--to", "127.0.0.1:9763"), "Name the protocol"),
        (("replay", tmp_path / "no.bvh", "--to", "127.0.0.1:9763"), "no such file"),
    ]
    for words, part in cases:
        code, said = run(capfd, *words)
        assert code == 1 and part in said[-1]["error"], (words, said)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["there.pcap"]


@pytest.mark.parametrize(
    "words", [("replay", "x.bvh", "--to", "nowhere"), ("replay", "x.bvh", "--to", "a:99999"), ("record", "--port", "0", "--out", "x")]
)
def test_addresses_that_are_none(capfd, words):
    assert run(capfd, *words)[0] == 2


def test_a_port_in_use_ends_with_a_sentence(tmp_path, capfd):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", 0))
        code, said = run(capfd, "record", "--out", tmp_path / "x.pcap", "--port", other.getsockname()[1], "--seconds", "5")
    assert code == 1 and "is in use by another program" in said[-1]["error"]
