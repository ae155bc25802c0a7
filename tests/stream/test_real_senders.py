# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that nobody here wrote send to our decoders, and read what our senders send."""

from __future__ import annotations

import socket
import sys
import threading
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from mocap_addon.motion import quat
from mocap_addon.stream import humanoid, lz4_frame, rokoko_body
from mocap_addon.stream.frame import Frame, Sender, frames_of, to_take
from mocap_addon.stream.protocols import decoder
from tests import node

from . import lz4_writer
from .bodies import moving, of_kind, packets, received

FINGERED = humanoid.BONES


def unity(take, i):
    """A take's sample as Unity would hold it, by formulas of its own: name -> local place, local rotation x, y, z, w."""
    out = {}
    for j, name in enumerate(take.skeleton.names):
        x, y, z = take.local_translations[i, j].tolist()
        w, a, b, c = take.local_rotations[i, j].tolist()
        out[name] = (-x, z, -y, a, -c, b, w)  # ours (x, y, z) = (-X, -Z, Y), so X = -x, Y = z, Z = -y; likewise (w, X, -Z, Y) for turns
    return out


def as_messages(take, i, time=None):
    out = [("/VMC/Ext/OK", [1]), ("/VMC/Ext/T", [float(take.times[i]) if time is None else time])]
    out += [("/VMC/Ext/Root/Pos", ["root", 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])]
    out += [("/VMC/Ext/Bone/Pos", [name, *row]) for name, row in unity(take, i).items()]
    return [*out, ("/VMC/Ext/Blend/Val", ["Joy", 0.25]), ("/VMC/Ext/Blend/Apply", [])]


def assert_same_motion(datagrams, take, times=True):
    protocol = decoder("vmc")
    frames, state = received(protocol, datagrams)
    bodies = of_kind(frames, "body")
    assert len(bodies) == take.frames and state.counts.broken == state.counts.unknown == state.counts.failed == 0
    again = to_take(bodies, protocol.skeleton("VMC", state), take.times)
    shown = [again.skeleton.index(n) for n in take.skeleton.names]
    np.testing.assert_array_less(quat.angle(again.global_rotations[:, shown], take.global_rotations), np.radians(0.001))
    np.testing.assert_allclose(again.global_positions[:, shown], take.global_positions, atol=5e-6)
    assert [f.curves for f in of_kind(frames, "morphs")] == [{"Joy": 0.25}] * take.frames
    if times:
        np.testing.assert_allclose([f.time for f in bodies], take.times, atol=1e-6)
    return bodies


class Listener:
    """What arrives at a port of this machine."""

    def __enter__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(5.0)
        self.port = self.socket.getsockname()[1]
        self.got: list[bytes] = []
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        return self

    def read(self):
        try:
            while data := self.socket.recv(65535):
                self.got.append(data)
        except OSError:
            pass

    def wait(self, count):
        for _ in range(200):
            if len(self.got) >= count:
                break
            threading.Event().wait(0.02)
        return list(self.got)

    def __exit__(self, *_):
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"", ("127.0.0.1", self.port))
        self.reader.join(timeout=6.0)
        self.socket.close()


@pytest.mark.parametrize("bundled", [False, True])
def test_python_osc_sends_vmc(bundled):
    client_of = pytest.importorskip("pythonosc.udp_client", reason="python-osc is not installed")
    from pythonosc.osc_bundle_builder import IMMEDIATELY, OscBundleBuilder
    from pythonosc.osc_message_builder import OscMessageBuilder

    take = moving(humanoid.standard(FINGERED), frames=4)
    with Listener() as listener:
        client = client_of.SimpleUDPClient("127.0.0.1", listener.port)
        count = 0
        for i in range(take.frames):
            built = []
            for address, values in as_messages(take, i):
                builder = OscMessageBuilder(address)
                for value in values:
                    builder.add_arg(value)
                built.append(builder.build())
            if bundled:
                bundle = OscBundleBuilder(IMMEDIATELY)
                for message in built:
                    bundle.add_content(message)
                built = [bundle.build()]
            for packet in built:
                client.send(packet)
                count += 1
        got = listener.wait(count)
    assert_same_motion(got, take)


@pytest.mark.parametrize("bundled", [False, True])
def test_node_osc_sends_vmc_with_whole_numbers_as_ints(bundled):
    take = moving(humanoid.standard(), frames=3)
    take.local_rotations[1:, 3:9] = (1.0, 0.0, 0.0, 0.0)  # zeros and ones: node-osc writes them as ints
    take.local_translations[2, 0] = (0.0, 0.0, 1.0)
    frames = [[{"address": a, "args": v} for a, v in as_messages(take, i)] for i in range(take.frames)]
    with Listener() as listener:
        sent = node.run("send_vmc.mjs", {"port": listener.port, "frames": frames, "bundle": bundled})
        got = listener.wait(sent)
    assert any(b",si" in data or b"i" in data[data.find(b",s") : data.find(b",s") + 10] for data in got)
    assert_same_motion(got, take)


def test_vmcp_sends_an_epoch_in_a_float32():
    """Its time steps by 128 s; no sender's time is better than such a one."""
    protocol = pytest.importorskip("vmcp.protocol", reason="vmcp is not installed")
    pytest.importorskip("pythonosc", reason="python-osc is not installed")
    from pythonosc.osc_message_builder import OscMessageBuilder
    from vmcp.typing import Bone, CoordinateVector, Quaternion, Timestamp

    take = moving(humanoid.standard(), frames=3)
    out = []
    for i in range(take.frames):
        messages = [protocol.time(Timestamp())]
        for name, (x, y, z, a, b, c, w) in unity(take, i).items():
            messages.append(protocol.bone_transform(Bone(name), CoordinateVector(x, y, z), Quaternion(a, b, c, w)))
        messages += [protocol.blendshape(SimpleNamespace(value="Joy"), 0.25), protocol.blendshape_apply()]
        for address, tags, values in messages:
            builder = OscMessageBuilder(address)
            for tag, value in zip(tags[1:], values, strict=True):
                builder.add_arg(value, tag)
            out.append(builder.build().dgram)
    bodies = assert_same_motion(out, take, times=False)
    assert {f.time for f in bodies} == {None}


def test_python_osc_reads_what_we_send():
    packet = pytest.importorskip("pythonosc.osc_packet", reason="python-osc is not installed")
    take = moving(humanoid.standard(), frames=2)
    for data in packets(decoder("vmc"), take, Sender(mtu=65000)):
        messages = {(m.message.address, m.message.params[0] if m.message.params else None) for m in packet.OscPacket(data).messages}
        assert ("/VMC/Ext/Bone/Pos", "LeftUpperArm") in messages and ("/VMC/Ext/Root/Pos", "root") in messages


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"block_linked": False},
        {"compression_level": 12},
        {"content_checksum": True, "block_checksum": True},
        {"store_size": False},
        {"block_size": 4, "block_linked": True},
    ],
    ids=str,
)
def test_lz4_frames_of_the_package_are_read(options):
    frame = pytest.importorskip("lz4.frame", reason="lz4 is not installed")
    rng = np.random.default_rng(1)
    protocol = decoder("rokoko")
    take = moving(protocol.standard(rokoko_body.JOINTS), frames=2)
    contents = [b"", b"a", b"ab" * 50000, rng.bytes(70000), rng.integers(0, 4, 100000, dtype=np.uint8).tobytes(), *packets(protocol, take)]
    for content in contents:
        assert lz4_frame.decompress(frame.compress(content, **options)) == content
        assert frame.decompress(lz4_frame.compress(content)) == content
    got = [f for data in packets(protocol, take) for f in protocol.decode(frame.compress(data, **options), protocol.state())]
    assert len(of_kind(got, "body")) == 2


def hermes_reader(kind):
    """Its parser alone: names that its base package does not bring along in every version stand empty."""
    types = pytest.importorskip("hermes.utils.types", reason="pysio-hermes-mvn is not installed")
    absent = ModuleType("hermes.base.stream")
    absent.Stream = object
    sys.modules.setdefault("hermes.base.stream", absent)
    types.NewDataDict = getattr(types, "NewDataDict", dict)
    module = pytest.importorskip("hermes.mvn.producer", reason="pysio-hermes-mvn cannot be imported", exc_type=ImportError)
    reader = type("Reader", (module.MvnAnalyzeProducer,), {})
    reader.__abstractmethods__ = frozenset()
    made = object.__new__(reader)
    made._segment_id_mapping = {i + 1: i for i in range(23)}
    made._num_segments = 23
    made._xsens_sample_index = made._xsens_timestep_receive_time_s = made._xsens_message_start_time_s = None

    def read(data):
        head, at = made._process_header(data, 0)
        assert head["payload_size"] == len(data) - 24
        found, end = getattr(made, kind)(data, at, head, {})
        assert end == len(data)
        return head, found

    return read


@pytest.mark.parametrize("kind", ["02", "01"])
def test_hermes_reads_our_mvn(kind):
    """Its reader turns Euler poses to MVN's axes by (third, first, second)."""
    read = hermes_reader("_process_pose")
    take = moving(decoder("mvn").standard(), frames=3)
    for i, data in enumerate(packets(decoder("mvn"), take, Sender(options={"types": (kind,)}))):
        head, found = read(data)
        assert head["counter"] == i and head["num_items"] == 24 and head["num_segments"] == 23 and head["num_props"] == 1
        ours = take.global_positions[i]
        np.testing.assert_allclose(found["position"][0], np.stack([-ours[:, 1], ours[:, 0], ours[:, 2]], axis=1), atol=1e-6)
        if kind == "02":
            w, x, y, z = np.moveaxis(take.global_rotations[i], 1, 0)
            np.testing.assert_allclose(found["quaternion"][0], np.stack([w, -y, x, z], axis=1), atol=1e-6)


def test_hermes_reads_our_time_code():
    read = hermes_reader("_process_time_code")
    frame = frames_of(moving(decoder("mvn").standard(), frames=1, props=()), 0)[0]
    coded = Frame("0", "body", 0, 0.0, frame.joints, frame.positions, frame.rotations, time_code="10:20:30.456")
    (data,) = decoder("mvn").encode([coded], Sender(options={"types": ("25",)}))
    _, found = read(data)
    assert found["timestamp_s"][0, 0] % 60 == pytest.approx(30.456, abs=1e-3)


@pytest.mark.parametrize("version", ["4.1", "4.0", "3.1", "3.0", "2.10", "2.9", "2.7"])
def test_natnet_reads_what_we_send(version):
    package = pytest.importorskip("natnet", reason="natnet is not installed")
    from natnet.packet_buffer import PacketBuffer

    numbers = package.Version(*map(int, version.split(".")))
    protocol = decoder("natnet")
    take = moving(protocol.standard(), frames=2)
    server, model, *frames = packets(protocol, take, Sender(options={"version": version}))
    info = PacketBuffer(server)
    info.pointer = 4
    assert package.ServerInfo.read_from_buffer(info, numbers).nat_net_protocol_version.truncate(2) == numbers
    described = PacketBuffer(model)
    described.pointer = 4
    found = package.DataDescriptions.read_from_buffer(described, numbers)
    assert described.pointer == len(model)
    assert found.rigid_bodies[0].name == "7" and found.skeletons[0].name == "Anna"
    bones = found.skeletons[0].rigid_body_descriptions
    assert [b.name for b in bones] == [f"Anna_{n}" for n in take.skeleton.names]
    for i, data in enumerate(frames):
        buffer = PacketBuffer(data)
        buffer.pointer = 4
        frame = package.DataFrame.read_from_buffer(buffer, numbers)
        assert buffer.pointer == len(data) - 4 and frame.prefix.frame_number == i  # its reader leaves the mark of the end
        sent = np.array([b.pos for b in frame.skeletons[0].rigid_bodies])
        ours = take.global_positions[i]
        np.testing.assert_allclose(sent, np.stack([ours[:, 0], ours[:, 2], -ours[:, 1]], axis=1), atol=1e-6)
        assert frame.suffix.timestamp == pytest.approx(float(take.times[i]))
        assert frame.rigid_bodies[0].tracking_valid


def test_the_package_reads_the_tests_own_compressor():
    frame = pytest.importorskip("lz4.frame", reason="lz4 is not installed")
    rng = np.random.default_rng(1)
    for content in (
        b"",
        b"a" * 500,
        b"abcd" * 900,
        rng.bytes(3000),
        *packets(decoder("rokoko"), moving(decoder("rokoko").standard(), frames=1)),
    ):
        packed = lz4_writer.compress(content)
        assert frame.decompress(packed) == content == lz4_frame.decompress(packed)
