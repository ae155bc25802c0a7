# SPDX-License-Identifier: GPL-3.0-or-later
"""Live motion in Blender: a real sender on loopback, a real receiver process, poses evaluated by Blender."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from dataclasses import replace
from fractions import Fraction

import bpy
import numpy as np
import pytest

import mocap_addon
from mocap_addon import cli, formats
from mocap_addon.blender import recipes, scenes
from mocap_addon.blender.job import JobOptions, retarget_onto
from mocap_addon.motion import quat
from mocap_addon.motion.take import PropTrack
from mocap_addon.retarget.sending import on_protocol
from mocap_addon.stream import protocols, send
from mocap_addon.stream.frame import Sender
from mocap_addon.ui import live, live_hold, live_send, live_takes, table_sync
from tests.paths import SHARED, need

WALK = SHARED / "cmu" / "asf_02_01_walk.bvh"


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    live.stop()
    live_send.stop()


@pytest.fixture
def port():
    return free_port()


def listen(port: int, protocol: str = "MVN"):
    bpy.ops.mocap.live_add_source(protocol=protocol, port=port)
    assert bpy.ops.mocap.live_start() == {"FINISHED"}
    found = live.running()
    assert found.session.pump(10.0, until=lambda: any(s.state == "listening" for s in found.session.sources()))
    return found


class Stream:
    """A take, sent in real time while the test pumps."""

    def __init__(self, take, port: int, protocol: str = "mvn", speed: float = 1.0, loop: bool = True) -> None:
        decoder = protocols.decoder(protocol)
        self.take = on_protocol(take, decoder)
        self.outlet = send.Outlet("127.0.0.1", port)
        sender = Sender()

        def rounds(shift: float):
            return send.moments([self.take], decoder, sender=sender, shift=shift)

        self.player = send.Player(rounds, self.outlet, speed=speed, loop=loop)

    def pump(self, seconds: float, until=lambda: False) -> bool:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.player.tick()
            live.tick()
            if until():
                return True
            time.sleep(0.004)
        return False


@pytest.fixture
def walk_take():
    return formats.read(need(WALK))[0]


def angles(obj) -> np.ndarray:
    graph = bpy.context.evaluated_depsgraph_get()
    pose = obj.evaluated_get(graph).pose.bones
    return np.array([bone.matrix.to_quaternion() for bone in pose])


def test_a_character_moves_and_is_itself_again_afterwards(character, port, walk_take):
    own = bpy.data.actions.new("Own")
    character.animation_data_create().action = own
    before = angles(character)
    listen(port)
    stream = Stream(walk_take, port)
    try:
        assert stream.pump(10.0, until=lambda: character.mocap.live)
        first = angles(character)
        stream.pump(0.6)
        second = angles(character)
    finally:
        stream.outlet.close()
    assert np.degrees(quat.angle(first, before)).max() > 5.0
    assert np.degrees(quat.angle(first, second)).max() > 2.0
    assert character.animation_data.action is None
    assert [b.name for b in bpy.context.scene.mocap.live.performers]
    bpy.ops.mocap.live_stop()
    assert character.animation_data.action == own
    assert np.degrees(quat.angle(angles(character), before)).max() < 1e-3
    assert not character.mocap.live


def test_the_pose_shown_is_the_one_that_a_retarget_of_the_stream_gives(character, port, walk_take):
    """A stream that stands still at one sample, against the job on the same sample, both evaluated by Blender."""
    still = walk_take.block(60, 61)
    decoder = protocols.decoder("mvn")
    sent = on_protocol(still, decoder)
    found = listen(port)
    outlet, sender = send.Outlet("127.0.0.1", port), Sender(rate=60.0)
    end = time.monotonic() + 15.0
    while time.monotonic() < end and not (character.mocap.live and found.shown):
        sender.number += 1
        sender.time += 1 / 60
        for _at, data in send.moments([sent], decoder, sender=sender, shift=sender.time):
            outlet.send(data)
        live.tick()
        time.sleep(0.01)
    outlet.close()
    shown = angles(character)
    moment = next(iter(found.shown.values()))
    bpy.ops.mocap.live_stop()
    scenes.set_rate(bpy.context.scene, Fraction(60))
    retarget_onto(character, moment.take(), options=JobOptions(frame_start=1.0))
    bpy.context.scene.frame_set(1)
    assert np.degrees(quat.angle(angles(character), shown)).max() < 0.02


def test_a_recording_becomes_an_action_in_time(character, port, walk_take, tmp_path):
    scene = bpy.context.scene
    scenes.set_rate(scene, Fraction(30))
    scene.mocap.live.folder = str(tmp_path)
    found = listen(port)
    stream = Stream(walk_take, port, loop=False)
    try:
        stream.player.tick()
        assert bpy.ops.mocap.live_record() == {"FINISHED"}
        assert stream.pump(10.0, until=lambda: found.session.recording is not None)
        stream.pump(2.0)
        assert bpy.ops.mocap.live_stop_recording() == {"FINISHED"}
    finally:
        stream.outlet.close()
    files = sorted(p.name for p in tmp_path.iterdir())
    assert files == ["Take_001.pcap", "Take_001.pcap.json"]
    assert scene.mocap.live.number == 2
    action = character.mocap.live_action
    assert action is not None and action.name.startswith("Take")
    bpy.ops.mocap.live_stop()
    assert character.animation_data.action == action
    first, last = action.frame_range
    assert 40 <= last - first <= 90  # about two seconds at 30 a second, and what a busy machine adds
    path = tmp_path / "Take_001.pcap"
    assert len(formats.read(path)) == 1
    assert live_takes.last() == path
    bpy.ops.mocap.live_rate(stars=4)
    from mocap_addon.stream import sidecar

    assert sidecar.load(path).rating == 4
    # and again from the file, as after a crash
    assert bpy.ops.mocap.live_use_recording(filepath=str(path)) == {"FINISHED"}
    assert character.animation_data.action != action


def test_undo_save_and_load_leave_the_character_as_it_was(character, port, walk_take, tmp_path):
    own = bpy.data.actions.new("Own")
    character.animation_data_create().action = own
    own.use_fake_user = True
    name, before = character.name, angles(character)
    listen(port)
    stream = Stream(walk_take, port)
    try:
        assert stream.pump(10.0, until=lambda: character.mocap.live)
        bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "a.blend"))
        assert character.mocap.live and character.animation_data.action is None
        moving = angles(character)
        assert np.degrees(quat.angle(moving, before)).max() > 5.0
        bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "a.blend"))
        obj = bpy.data.objects[name]
        assert obj.animation_data.action.name == "Own" and not obj.mocap.live
        assert np.degrees(quat.angle(angles(obj), before)).max() < 1e-3
        assert stream.pump(10.0, until=lambda: bpy.data.objects[name].mocap.live)  # and it goes on in the file that was opened
    finally:
        stream.outlet.close()
    live.stop()
    assert bpy.data.objects[name].animation_data.action.name == "Own"


def test_a_character_deleted_or_renamed_under_way(character, port, walk_take):
    found = listen(port)
    stream = Stream(walk_take, port)
    try:
        assert stream.pump(10.0, until=lambda: character.mocap.live)
        character.name = "Somebody Else"
        stream.pump(0.2)
        assert not found.message and character.mocap.live
        bpy.data.objects.remove(character)
        stream.pump(0.3)
        assert not found.message
    finally:
        stream.outlet.close()


def test_calibration_takes_the_pose_as_the_rest(character, port, walk_take):
    found = listen(port)
    stream = Stream(walk_take.block(30, 31), port)
    body = stream.take.skeleton
    bent = np.tile(quat.IDENTITY, (1, len(body), 1))
    bent[0, 0] = quat.from_axis_angle((1.0, 0.0, 0.0), np.radians(6.0))  # a slouch: hips and chest lean, each its own way
    bent[0, 4] = quat.from_axis_angle((1.0, 0.0, 0.0), np.radians(-15.0))
    stream.take = replace(stream.take, local_rotations=bent)
    try:
        decoder, sender = protocols.decoder("mvn"), Sender(rate=60.0)
        end = time.monotonic() + 12.0
        while time.monotonic() < end and not character.mocap.live:
            sender.number += 1
            for _at, data in send.moments([stream.take], decoder, sender=sender, shift=sender.number / 60):
                stream.outlet.send(data)
            live.tick()
            time.sleep(0.01)
        leaning = character.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones["pelvis"].matrix.to_quaternion()
        assert np.degrees(leaning.rotation_difference(character.data.bones["pelvis"].matrix_local.to_quaternion()).angle) > 5.0
        assert bpy.ops.mocap.live_calibrate(seconds=0.0) == {"FINISHED"}
        live.tick()
    finally:
        stream.outlet.close()
    assert bpy.context.scene.mocap.live.performers[0].reference
    assert "1 performer calibrated" in found.message
    # standing in that very pose, the trunk is as the character's own rest has it, whatever the performer's trunk did
    rig = next(iter(found.rigs.values()))
    names = rig.target.skeleton.names
    trunk = [names[row] for role in ("hips", "spine", "chest", "neck", "head") for row in rig.puppet.roles.chain(role)]
    assert len(trunk) >= 4
    graph = bpy.context.evaluated_depsgraph_get()
    for name in trunk:
        bone = character.evaluated_get(graph).pose.bones[name]
        away = bone.matrix.to_quaternion().rotation_difference(bone.bone.matrix_local.to_quaternion()).angle
        assert np.degrees(min(away, 2 * np.pi - away)) < 0.05, name


def test_a_recording_is_used_again_by_the_table_that_it_was_shown_by(character, port, walk_take, tmp_path, capfd):
    """Corrections and sliders that were on while it was recorded come with the file: into another scene, and to the command line."""
    scene = bpy.context.scene
    bare = tmp_path / "bare.blend"
    bpy.ops.wm.save_as_mainfile(filepath=str(bare), copy=True)
    scene.mocap.live.folder = str(tmp_path)
    found = listen(port)
    stream = Stream(walk_take, port)
    try:
        assert stream.pump(10.0, until=lambda: character.mocap.live)
        bpy.ops.mocap.live_record()
        assert stream.pump(10.0, until=lambda: found.session.recording is not None)
        table = next(iter(found.rigs.values())).table
        hand = next(row for row in table.rows if row.role == "leftHand")
        table_sync.from_table(character, table.with_row(replace(hand, correction=(0.0, 35.0, 0.0))))
        character.mocap.arm_space = 0.3  # set while it records: what stands at its end counts
        live.forget()
        stream.pump(0.4)
        bpy.ops.mocap.live_stop_recording()
    finally:
        stream.outlet.close()
    path = tmp_path / "Take_001.pcap"
    name, made = hand.target, character.mocap.live_action
    assert made is not None
    bpy.ops.mocap.live_stop()
    graph = bpy.context.evaluated_depsgraph_get
    bpy.context.scene.frame_set(int(made.frame_range[0]) + 4)
    wanted = character.evaluated_get(graph()).pose.bones[name].matrix.to_quaternion()
    rate = scenes.scene_rate(scene)
    owner = character.name

    bpy.ops.wm.open_mainfile(filepath=str(bare))
    other, (take,) = bpy.data.objects[owner], formats.read(path)
    assert not table_sync.has_table(other)
    scenes.set_rate(bpy.context.scene, rate)
    result = retarget_onto(other, take)
    assert result.table.row(name).correction == (0.0, 35.0, 0.0)
    assert "The bone table kept with the recording was used." in result.notes
    plain = retarget_onto(other, replace(take, facts={k: v for k, v in take.facts.items() if k != "table"}))
    assert plain.table.row(name).correction == (0.0, 0.0, 0.0)

    capfd.readouterr()
    words = f"convert {path} --character {bare} --out {tmp_path / 'out'} --formats blend --fps scene --json"
    assert cli.main(words.split()) == 0
    (line,) = [one for one in capfd.readouterr().out.splitlines() if one.startswith("{")]
    bpy.ops.wm.open_mainfile(filepath=json.loads(line)["files"]["blend"])
    shown = bpy.data.objects[owner]
    bpy.context.scene.frame_set(int(shown.animation_data.action.frame_range[0]) + 4)
    again = shown.evaluated_get(graph()).pose.bones[name].matrix.to_quaternion()
    assert np.degrees(quat.angle(np.array(again), np.array(wanted))) < 4.0  # half a frame apart at most; the correction is 35 degrees
    stored = recipes.recipe_of(shown.animation_data.action)
    assert stored["options"]["adjustments"]["arm_space"] == pytest.approx(np.degrees(0.3), abs=1e-3)


def test_the_table_of_another_character_is_not_used(character, walk_take):
    text = 'version = 1\n[[row]]\nrole = "hips"\ntarget = "nobody"\nsource = "Hips"\n'
    for kept in (text, "no table at all ["):
        take = replace(walk_take, facts={**walk_take.facts, "table": kept})
        result = retarget_onto(character, take)
        assert len(result.table.rows) > 15
        assert any("of another character" in note for note in result.notes)


def test_a_recording_cut_short_by_a_crash_is_told_of_and_used(character, port, walk_take, tmp_path):
    scene = bpy.context.scene
    scene.mocap.live.folder = str(tmp_path)
    found = listen(port)
    stream = Stream(walk_take, port)
    try:
        bpy.ops.mocap.live_record()
        assert stream.pump(10.0, until=lambda: found.session.recording is not None)
        stream.pump(1.0)
        path = tmp_path / "Take_001.pcap"
        there, said = path.read_bytes(), (tmp_path / "Take_001.pcap.json").read_text()
        live.stop()
        path.write_bytes(there[:-7])  # as a crash leaves it: in the middle of a packet, its notes still saying "recording"
        (tmp_path / "Take_001.pcap.json").write_text(said)
        os.utime(path, (time.time() - 60.0, time.time() - 60.0))
    finally:
        stream.outlet.close()
    bpy.ops.mocap.live_start()
    assert "Take_001.pcap" in live.running().message and "crash" in live.running().message
    live.stop()
    assert bpy.ops.mocap.live_use_recording(filepath=str(path)) == {"FINISHED"}
    assert character.animation_data.action.frame_range[1] > 10
    bpy.ops.mocap.live_start()
    assert not live.running().message  # said once


def test_a_prop_moves_an_object_and_becomes_an_action(port, walk_take, tmp_path):
    scene = bpy.context.scene
    scene.mocap.live.folder = str(tmp_path)
    box = bpy.data.objects.new("Box", None)
    box.scale = (2.0, 2.0, 2.0)
    scene.collection.objects.link(box)
    short = walk_take.block(0, 120)
    turn = quat.from_axis_angle((0.0, 0.0, 1.0), 0.7)
    track = PropTrack(np.tile(turn, (120, 1)), np.tile([0.3, -0.4, 1.2], (120, 1)))
    found = listen(port)
    stream = Stream(replace(short, props={"Sword": track}), port)
    listed = scene.mocap.live.performers
    try:
        assert stream.pump(10.0, until=lambda: any(b.kind == "prop" for b in listed))
        next(b for b in listed if b.kind == "prop").target = box
        assert stream.pump(10.0, until=lambda: box.mocap.live)
        stream.pump(0.2)
        bpy.context.view_layer.update()
        assert np.allclose(box.matrix_world.translation, (0.3, -0.4, 1.2), atol=1e-3)
        assert np.allclose(box.matrix_world.to_scale(), 2.0, atol=1e-5)
        assert quat.angle(np.array(box.matrix_world.to_quaternion()), turn) < 1e-3
        bpy.ops.mocap.live_record()
        assert stream.pump(10.0, until=lambda: found.session.recording is not None)
        stream.pump(0.7)
        assert bpy.ops.mocap.live_stop_recording() == {"FINISHED"}
    finally:
        stream.outlet.close()
    live.stop()
    action = box.animation_data.action
    assert action is not None
    scene.frame_set(int(action.frame_range[0]) + 3)
    assert np.allclose(box.matrix_world.translation, (0.3, -0.4, 1.2), atol=1e-3)


def test_nla_and_euler_bones(character, port, walk_take):
    """The NLA does not move the character meanwhile, and plays again; a bone in Euler mode stays in it and turns as it should."""
    action = bpy.data.actions.new("Strip")
    animation = character.animation_data_create()
    animation.nla_tracks.new().strips.new("Strip", 1, action)
    for bone in character.pose.bones:
        bone.rotation_mode = "YZX"
    listen(port)
    stream = Stream(walk_take, port)
    try:
        assert stream.pump(10.0, until=lambda: character.mocap.live)
        stream.pump(0.3)
        assert not animation.use_nla
        assert {bone.rotation_mode for bone in character.pose.bones} == {"YZX"}
        moment = next(iter(live.running().shown.values()))
        shown = angles(character)
    finally:
        stream.outlet.close()
    live.stop()
    assert animation.use_nla
    scenes.set_rate(bpy.context.scene, Fraction(60))
    retarget_onto(character, moment.take(), options=JobOptions(frame_start=1.0))
    bpy.context.scene.frame_set(1)
    assert np.degrees(quat.angle(angles(character), shown)).max() < 0.02


def test_a_face_moves_shape_keys_and_they_are_as_before_afterwards(character, port, walk_take):
    mesh = next(o for o in bpy.data.objects if o.type == "MESH" and o.parent == character)
    mesh.shape_key_add(name="Basis")
    key = mesh.shape_key_add(name="jawOpen")
    key.value = 0.25
    listen(port, "JSON")
    stream = Stream(replace(walk_take.block(0, 60), curves={"jawOpen": np.full(60, 0.75)}), port, "json")
    try:
        assert stream.pump(10.0, until=lambda: abs(key.value - 0.75) < 1e-5)
    finally:
        stream.outlet.close()
    live.stop()
    assert abs(key.value - 0.25) < 1e-6


def test_undo_under_way(character, port, walk_take):
    """Undo to before the stream began: the stream goes on, and the character's own animation is still put back at the end."""
    own = bpy.data.actions.new("Own")
    own.use_fake_user = True
    character.animation_data_create().action = own
    name = character.name
    bpy.ops.mocap.live_add_source(protocol="MVN", port=port)
    bpy.ops.ed.undo_push(message="before")
    assert bpy.ops.mocap.live_start() == {"FINISHED"}
    stream = Stream(walk_take, port)
    try:
        assert stream.pump(15.0, until=lambda: bpy.data.objects[name].mocap.live)
        bpy.ops.ed.undo_push(message="under way")
        bpy.ops.ed.undo()
        assert stream.pump(10.0, until=lambda: bpy.data.objects[name].mocap.live)
        assert not live.running().message
        bpy.ops.ed.redo()
        stream.pump(0.3)
        assert not live.running().message
    finally:
        stream.outlet.close()
    live.stop()
    obj = bpy.data.objects[name]
    assert not obj.mocap.live and obj.animation_data.action.name == "Own"


def test_the_addon_switched_off_under_way(character, port, walk_take):
    own = bpy.data.actions.new("Own")
    character.animation_data_create().action = own
    listen(port)
    stream = Stream(walk_take, port)
    try:
        assert stream.pump(10.0, until=lambda: character.mocap.live)
        mocap_addon.unregister()
        try:
            assert live.running() is None
            assert character.animation_data.action == own
        finally:
            mocap_addon.register()
    finally:
        stream.outlet.close()


def test_a_receiver_that_dies_is_back_within_seconds(character, port, walk_take):
    found = listen(port)
    stream = Stream(walk_take, port)
    try:
        assert stream.pump(10.0, until=lambda: character.mocap.live)
        os.kill(found.session.supervisor.pid, signal.SIGKILL)
        stream.pump(0.2)
        before = angles(character)
        assert stream.pump(15.0, until=lambda: np.degrees(quat.angle(angles(character), before)).max() > 1.0)
    finally:
        stream.outlet.close()
    assert any("started again" in sentence for sentence in found.session.messages())


def test_a_port_in_use_is_a_sentence_and_a_second_try_works(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        other.bind(("127.0.0.1", port))
        bpy.ops.mocap.live_add_source(protocol="MVN", port=port)
        bpy.ops.mocap.live_start()
        found = live.running()
        assert found.session.pump(10.0, until=lambda: any(s.state == "failed" for s in found.session.sources()))
        assert "in use" in found.session.sources()[0].message
    assert found.session.pump(10.0, until=lambda: found.session.sources()[0].state == "listening")


def test_without_sources_or_a_session_the_buttons_say_so():
    assert not bpy.ops.mocap.live_start.poll()
    assert not bpy.ops.mocap.live_record.poll()
    assert not bpy.ops.mocap.live_stop_recording.poll()
    with pytest.raises(RuntimeError, match="There is no protocol called"):
        bpy.ops.mocap.live_add_source(protocol="NOBODY")


def test_sending_the_panels_take(port):
    scene = bpy.context.scene
    scene.mocap.filepath = str(need(WALK))
    scene.mocap.live.send_port = port
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", port))
        receiver.settimeout(5.0)
        assert bpy.ops.mocap.live_send() == {"FINISHED"}
        live_send.tick()
        assert protocols.recognise(receiver.recv(65536)).name == "mvn"
        bpy.ops.mocap.live_stop_sending()
    assert live_send.sending() is None


def test_an_own_motion_put_aside_comes_back_whole(character):
    own = bpy.data.actions.new("Own")
    animation = character.animation_data_create()
    animation.action = own
    bone = character.pose.bones[3]
    bone.rotation_mode = "QUATERNION"
    bone.rotation_quaternion = (0.8, 0.6, 0.0, 0.0)
    live_hold.take_off(character, 1.0)
    assert animation.action is None and own.users > 0
    bone.rotation_quaternion = (1.0, 0.0, 0.0, 0.0)
    assert live_hold.put_back(character, 1.0)
    assert animation.action == own
    assert np.allclose(bone.rotation_quaternion, (0.8, 0.6, 0.0, 0.0))
    assert not live_hold.put_back(character, 1.0)
