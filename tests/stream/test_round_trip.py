# SPDX-License-Identifier: GPL-3.0-or-later
"""A take sent in every protocol and received again is the same motion, on a skeleton that the naming families know, like a file's."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mocap_addon import retarget, rig
from mocap_addon.motion import kinematics, quat
from mocap_addon.stream import chingmu_body
from mocap_addon.stream.frame import Frame, Sender, frames_of, local_pose, to_take
from mocap_addon.stream.protocols import PROTOCOLS, decoder, recognise

from .bodies import FINGERS, moving, of_kind, packets, received, streamed

FAMILIES = {
    "mvn": "Xsens MVN",
    "vmc": "Unity humanoid",
    "json": "Unity humanoid",
    "chingmu": "ChingMu (23 joints)",
    "rokoko": "Rokoko",
    "noitom": "Noitom Axis",
    "natnet": "OptiTrack Motive",
    "vrpn": "ChingMu (23 joints)",
}
VARIANTS = [
    ("mvn", {}),
    ("mvn", {"types": ("01",)}),
    ("mvn", {"types": ("05",)}),
    ("mvn", {"unit": "cm"}),
    ("mvn", {"unit": "cm", "types": ("13", "01", "02", "05")}),
    ("mvn", {"up": "y"}),
    ("mvn", {"first_id": 0}),
    ("mvn", {"mark_last": False}),
    ("mvn", {"declare": False}),
    ("vmc", {}),
    ("vmc", {"bundle": False}),
    ("rokoko", {}),
    ("rokoko", {"lz4": True}),
    ("rokoko", {"version": 2}),
    ("rokoko", {"version": 2.5}),
    ("rokoko", {"version": 4}),
    ("rokoko", {"texts": True}),
    ("noitom", {}),
    ("noitom", {"displacement": False}),
    ("noitom", {"reference": True}),
    ("noitom", {"old": True}),
    ("noitom", {"text": True}),
    ("chingmu", {}),
    ("chingmu", {"space": "unreal"}),
    ("json", {}),
    *(("natnet", {"version": v}) for v in ("4.1", "4.0", "3.1", "3.0", "2.10", "2.9", "2.7", "2.6", "2.3")),
    ("natnet", {"space": "local"}),
    ("vrpn", {}),
]
WITHOUT_PLACES = {"chingmu", "vrpn"}


def standards(name: str, options: dict[str, object]):
    joints = FINGERS.get(name, ())
    if name == "noitom":
        joints = ("Spine3", *joints) if options.get("old") else joints
        return [decoder(name).standard(joints)]
    return [decoder(name).standard(), decoder(name).standard(joints)] if joints else [decoder(name).standard()]


@pytest.mark.parametrize(
    ("name", "options"), VARIANTS, ids=lambda v: v if isinstance(v, str) else "-".join(f"{k}={x}" for k, x in v.items())
)
def test_a_take_comes_back(name, options):
    protocol = decoder(name)
    for skeleton in standards(name, options):
        take = moving(skeleton, props=() if name == "noitom" else ("7",))
        sent = packets(protocol, take, Sender(options=dict(options)))
        if name == "vrpn":
            frames, state = streamed(protocol, sent, 77)
        else:
            assert {recognise(data) for data in sent} == {protocol}
            frames, state = received(protocol, sent)
        bodies = of_kind(frames, "body")
        if options.get("types") == ("13", "01", "02", "05"):
            bodies = bodies[1::3]
        assert state.counts.failed == state.counts.broken == state.counts.unknown == state.counts.incomplete == 0, state.counts
        assert len(bodies) == take.frames and len({id(f.joints) for f in bodies}) == 1
        found = protocol.skeleton(bodies[0].source, state)
        again = to_take(bodies, found, take.times)
        shown = [found.index(n) for n in skeleton.names if n in found]
        kept = [skeleton.index(n) for n in skeleton.names if n in found]
        assert len(kept) == len(skeleton) or (name == "mvn" and len(kept) == 23)  # type 05 has no fingers
        np.testing.assert_array_less(quat.angle(again.global_rotations[:, shown], take.global_rotations[:, kept]), np.radians(0.001))
        np.testing.assert_allclose(again.global_positions[:, shown[0]], take.global_positions[:, 0], atol=2e-6)
        if name not in WITHOUT_PLACES and options.get("displacement", True):
            np.testing.assert_allclose(again.global_positions[:, shown], take.global_positions[:, kept], atol=5e-6)
        assert_the_prop(frames, take, name)
        assert_the_numbers(name, bodies, take, options)


def assert_the_prop(frames, take, name):
    props = [f for f in frames if f.kind == "prop"]
    if not take.props:
        assert not props
        return
    per = len(props) // take.frames
    assert per in (1, 3)
    for i, frame in enumerate(props[::per]):
        track = take.props["7"]
        np.testing.assert_allclose(frame.positions, track.translations[i][None], atol=1e-6)
        assert quat.angle(frame.rotations[0], track.rotations[i]) < np.radians(0.001)


def assert_the_numbers(name, bodies, take, options):
    if name in ("mvn", "natnet", "chingmu", "json") or (name == "noitom" and not options.get("old") and not options.get("text")):
        assert [f.number for f in bodies] == list(range(take.frames))
    if name != "noitom":
        atol = 5e-4 if name == "mvn" else 1e-6  # whole milliseconds
        np.testing.assert_allclose([f.time for f in bodies], take.times, atol=atol)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_the_skeleton_is_known_by_name_and_retargets(name):
    """The frames of a stream become a take that goes the way of a file's: matched by name, put onto another body."""
    protocol = decoder(name)
    take = moving(protocol.standard(FINGERS[name] if name == "noitom" else ()), turn=0.4, props=())  # Noitom always sends fingers
    take.local_rotations[0], take.local_translations[0] = (1.0, 0.0, 0.0, 0.0), take.skeleton.rest_translations  # it begins in T-pose
    sent = packets(protocol, take)
    frames, state = streamed(protocol, sent, 1000) if name == "vrpn" else received(protocol, sent)
    bodies = of_kind(frames, "body")
    found = protocol.skeleton(bodies[0].source, state)
    roles = rig.match(found)
    assert roles.family == FAMILIES[name] and not roles.missing() and not roles.notes
    assert min(roles.confidence.values()) > 0.85
    again = to_take(bodies, found, take.times)
    for other in ("mvn", "vmc"):
        target = decoder(other).standard()
        there = rig.match(target)
        live = retarget.retarget(again, retarget.build_table(found, roles, target, there), target)
        table = retarget.build_table(take.skeleton, rig.match(take.skeleton), target, there)
        recorded = retarget.retarget(take, table, target)
        assert live.bones == recorded.bones and len(live.bones) > 15
        assert np.degrees(quat.angle(live.rotations, recorded.rotations)).max() < 0.05
        np.testing.assert_allclose(live.locations, recorded.locations, atol=1e-3)


@pytest.mark.parametrize("name", ["mvn", "vmc", "rokoko", "noitom", "chingmu", "vrpn"])
def test_fingers_are_known_by_name(name):
    roles = rig.match(decoder(name).standard(FINGERS[name]))
    assert "leftThumb" in roles.joints
    if name in ("mvn", "noitom", "chingmu"):
        assert all(
            f"{side}{digit}" in roles.joints for side in ("left", "right") for digit in ("Thumb", "Index", "Middle", "Ring", "Little")
        )


@pytest.mark.parametrize("name", PROTOCOLS)
def test_standards_are_a_person_in_t_pose(name):
    for joints in ((), FINGERS.get(name, ())):
        skeleton = decoder(name).standard(joints)
        np.testing.assert_array_equal(skeleton.rest_global_rotations, np.tile((1.0, 0.0, 0.0, 0.0), (len(skeleton), 1)))
        roles = rig.match(skeleton)
        places = skeleton.rest_global_positions
        hand, head, foot = (places[roles.one(r)] for r in ("leftHand", "head", "leftFoot"))
        arm = [places[roles.one(r)] for r in ("leftUpperArm", "leftLowerArm", "leftHand")]
        assert 0.6 < hand[0] < 0.8 and 1.5 < head[2] < 1.65 and 0.0 < foot[2] < 0.12 and np.ptp([a[2] for a in arm]) < 1e-9
        assert places[roles.one("leftToes")][1] < foot[1] if roles.one("leftToes") is not None else True  # faces -Y
        mirror = places[roles.one("rightHand")]
        np.testing.assert_allclose(mirror, hand * (-1, 1, 1))


def test_several_performers_and_props_in_one_moment():
    for name in ("mvn", "rokoko", "chingmu", "json", "natnet", "noitom"):
        protocol = decoder(name)
        takes = [moving(protocol.standard(), seed=s, props=() if name == "noitom" else (f"{s}",)) for s in range(3)]
        sender, state = Sender(rate=1000.0), protocol.state()
        sender.skeletons = {str(s): t.skeleton for s, t in enumerate(takes)}
        got: list[Frame] = []
        for i in range(3):
            sender.number, sender.time = i, i / 64
            moment = [f for s, t in enumerate(takes) for f in frames_of(t, i, source=str(s))]
            got += [f for data in protocol.encode(moment, sender) for f in protocol.decode(data, state)]
        bodies = of_kind(got, "body")
        assert [f.source for f in bodies] == ["0", "1", "2"] * 3, name
        assert len(of_kind(got, "prop")) == (0 if name == "noitom" else 9), name
        for s, take in enumerate(takes):
            own = [f for f in bodies if f.source == str(s)]
            again = to_take(own, protocol.skeleton(str(s), state), take.times[:3])
            np.testing.assert_allclose(again.global_positions[:, 0], take.global_positions[:3, 0], atol=2e-6)
            shown = [again.skeleton.index(n) for n in take.skeleton.names]
            assert quat.angle(again.global_rotations[:, shown], take.global_rotations[:3]).max() < 1e-5


def test_frames_decode_alike_one_by_one_and_all_at_once():
    for name in PROTOCOLS:
        protocol = decoder(name)
        take = moving(protocol.standard(FINGERS.get(name, ()) if name != "natnet" else ()), frames=20)
        sent = packets(protocol, take, Sender(rate=7.0))
        if name == "vrpn":
            sent = protocol.messages(b"".join(sent), protocol.state())
        one, at_once = protocol.state(), protocol.state()
        single = [protocol.decode(data, one) for data in sent]
        many: list[list[Frame]] = []
        for i in range(0, len(sent), 11):
            many += protocol.decode_all(sent[i : i + 11], at_once)
        assert one.counts == at_once.counts
        for a, b in zip(single, many, strict=True):
            for x, y in zip(a, b, strict=True):
                assert (x.source, x.kind, x.number, x.time, x.joints, x.space, x.time_code, x.name) == (
                    *(y.source, y.kind, y.number, y.time, y.joints, y.space),
                    *(y.time_code, y.name),
                )
                np.testing.assert_array_equal(x.positions, y.positions)
                np.testing.assert_allclose(x.rotations, y.rotations, atol=1e-15)


def test_heads_say_what_the_frames_say():
    for name in PROTOCOLS:
        protocol = decoder(name)
        take = moving(protocol.standard(), props=())
        state = protocol.state()
        sent = packets(protocol, take)
        for data in protocol.messages(b"".join(sent), state) if name == "vrpn" else sent:
            heads = protocol.header(data, state)
            frames = of_kind(protocol.decode(data, state), "body")
            if protocol.stands_alone:
                assert [(h.source, h.number, h.time) for h in heads if h.whole] == [(f.source, f.number, f.time) for f in frames]


def test_tcp_streams_cut_anywhere():
    for name in ("mvn", "noitom", "vrpn", "json"):
        protocol = decoder(name)
        options = {"lines": True} if name == "json" else {}
        sent = packets(protocol, moving(protocol.standard(), frames=4, props=()), Sender(options=options))
        whole, _ = streamed(protocol, sent, 10**9)
        for step in (1, 23, 24, 63, 64, 65, 1000):
            frames, state = streamed(protocol, sent, step)
            assert len(frames) == len(whole) >= 4 and state.counts.unknown == state.counts.broken == 0, (name, step)


def test_tcp_streams_find_their_step_again_after_damage():
    for name in ("mvn", "noitom", "vrpn", "json"):
        protocol = decoder(name)
        options = {"lines": True} if name == "json" else {}
        sent = packets(protocol, moving(protocol.standard(), frames=8, props=()), Sender(options=options))
        third = len(sent) // 3
        stream = [b"\xff\xddrubbish MXTP {\n", *sent[:third], b"\x00\x01\x02\xff\xddMXTP??\n", sent[third][5:], *sent[third + 1 :]]
        if name == "vrpn":
            stream = [*sent[: third + 1], b"\x7f\xff\xff\xff" + b"rubbish.", *sent[third + 1 :]]
        frames, state = streamed(protocol, stream, 100)
        assert len(of_kind(frames, "body")) >= 5, name
        assert state.counts.unknown + state.counts.broken > 0 and state.counts.failed == 0


def test_missing_joints_rest_and_missing_places_are_the_rests():
    skeleton = decoder("vmc").standard()
    turn = np.array([[0.5**0.5, 0.0, 0.0, 0.5**0.5]])
    frame = Frame("a", "body", 0, 0.0, ("Spine", "nobody"), np.full((2, 3), np.nan), np.vstack([turn, turn]))
    rotations, translations = local_pose(frame, skeleton)
    np.testing.assert_allclose(rotations[skeleton.index("Spine")], turn[0])
    np.testing.assert_allclose(np.delete(rotations, skeleton.index("Spine"), 0), np.tile((1.0, 0, 0, 0), (len(skeleton) - 1, 1)))
    np.testing.assert_array_equal(translations, skeleton.rest_translations)


def test_the_file_s_rest_does_not_matter_to_a_sender():
    """A skeleton whose bones are turned at rest is sent by what has turned since: the take with plain rest arrives."""
    protocol = decoder("mvn")
    plain = moving(protocol.standard(), props=())
    rng = np.random.default_rng(5)
    q0 = quat.normalize(rng.normal(size=(23, 4)))
    parents = plain.skeleton.parents
    local = np.where((parents >= 0)[:, None], quat.mul(quat.inv(q0[parents]), q0), q0)
    offsets = np.where(
        (parents >= 0)[:, None], quat.rotate(quat.inv(q0[parents]), plain.skeleton.rest_translations), plain.skeleton.rest_translations
    )
    turned = type(plain.skeleton)(plain.skeleton.names, parents, offsets, local)
    rotations, places = kinematics.inverse(quat.mul(plain.global_rotations, q0), plain.global_positions, parents)
    other = replace(plain, skeleton=turned, local_rotations=rotations, local_translations=places)
    for i in (0, 3):
        (a,), (b,) = frames_of(plain, i), frames_of(other, i)
        np.testing.assert_allclose(a.positions, b.positions, atol=1e-12)
        assert quat.angle(a.rotations, b.rotations).max() < 1e-7


def test_average_bodies_are_as_large_as_the_performer():
    """Rotations alone: the size comes from how high the hips stand over the lowest joint, also in a crouch."""
    protocol = decoder("chingmu")
    small = chingmu_body.average(23)
    small = small.with_rest(small.rest_rotations, small.rest_translations * 0.8)
    take = moving(small, props=())
    rotations, places = take.local_rotations.copy(), take.local_translations.copy()
    rotations[:] = (1.0, 0.0, 0.0, 0.0)
    bend = np.array([np.cos(0.5), np.sin(0.5), 0.0, 0.0])  # thighs forward by a radian, shins back by twice that: a crouch
    for side in ("Left", "Right"):
        rotations[:, small.index(f"{side}UpLeg")] = quat.inv(bend)
        rotations[:, small.index(f"{side}Leg")] = quat.mul(bend, bend)
        rotations[:, small.index(f"{side}Foot")] = quat.inv(bend)
    crouch = replace(take, local_rotations=rotations, local_translations=places)
    places[:, 0, 2] -= crouch.global_positions[:, :, 2].min(axis=1) - small.rest_global_positions[:, 2].min()
    crouch = replace(crouch, local_translations=places)
    _, state = received(protocol, packets(protocol, crouch))
    np.testing.assert_allclose(protocol.skeleton("Anna", state).rest_translations, small.rest_translations, atol=1e-6)


def test_time_code_goes_along():
    """Ten frames after 01:02:03:20 at 24 it is 01:02:04:06, in the words of each protocol."""
    rate = Fraction(24)
    words = {"mvn": "01:02:04.250", "natnet": "01:02:04:06", "chingmu": "01:02:04:06", "json": "01:02:04:06"}
    for name, expected in words.items():
        protocol = decoder(name)
        take = replace(moving(protocol.standard(), frames=11, rate=24.0, props=()), timecode="01:02:03:20", rate=rate)
        frames, _ = received(protocol, packets(protocol, take, Sender(rate=24.0)))
        bodies = of_kind(frames, "body")
        assert bodies[-1].time_code == expected, name
        assert bodies[0].time_code in ("01:02:03:20", "01:02:03.833")


def test_two_called_alike_are_two():
    protocol = decoder("rokoko")
    take = moving(protocol.standard(), frames=1, props=())
    (frame, *_) = frames_of(take, 0)
    (data,) = protocol.encode([frame, frame], Sender())
    frames = protocol.decode(data, protocol.state())
    assert [f.source for f in frames] == ["Anna", "Anna (2)"]
    assert [h.source for h in protocol.header(data, protocol.state())] == ["Anna", "Anna (2)"]
    mixed = [replace(frame, source=s) for s in ("Anna", "0")]
    frames, _ = received(decoder("noitom"), decoder("noitom").encode(mixed, Sender()))
    assert len({f.source for f in frames}) == 2
