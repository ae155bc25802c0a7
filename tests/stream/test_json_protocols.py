# SPDX-License-Identifier: GPL-3.0-or-later
"""Rokoko, ChingMu and the project's own JSON: what is missing, of another kind, or only said in words."""

from __future__ import annotations

import json

import numpy as np
import pytest

from mocap_addon.motion import quat
from mocap_addon.stream import rokoko_body
from mocap_addon.stream.chingmu import ChingMu
from mocap_addon.stream.frame import Frame, Sender, frames_of
from mocap_addon.stream.own_json import OwnJson
from mocap_addon.stream.rokoko import Rokoko

from .bodies import moving, of_kind, packets, received

ROKOKO, CHINGMU, OWN = Rokoko(), ChingMu(), OwnJson()

# Studio's T-pose as its plug-ins list it: w, x, y, z.
PUBLISHED = {
    "hip": (-1.0, 0.0, -0.0, 0.0),
    "chest": (-0.0, -0.0, 0.0, -1.0),
    "leftShoulder": (-0.70711, 0.0, 0.0, 0.70711),
    "leftUpperArm": (-0.5, -0.5, -0.5, 0.5),
    "rightShoulder": (0.70711, 0.0, -0.0, 0.70711),
    "rightHand": (0.5, 0.5, -0.5, 0.5),
    "leftUpLeg": (0.70711, -0.0, 0.70711, -0.0),
    "leftFoot": (0.0, -0.0, 0.70711, -0.70711),
    "rightLeg": (0.70711, -0.0, -0.70711, 0.0),
    "rightToe": (0.0, 0.0, -0.70711, 0.70711),
    "leftThumbProximal": (-0.0923, -0.56098, -0.70106, 0.43046),
    "rightThumbProximal": (0.0923, 0.56099, -0.70106, 0.43046),
    "rightThumbMedial": (0.2706, 0.65328, -0.65328, 0.2706),
}


def moment(protocol, i=0, options=None, **more):
    take = moving(protocol.standard(), props=("Sword",))
    frames = frames_of(take, i)
    frames[0] = Frame(**{**{s: getattr(frames[0], s) for s in Frame.__slots__}, **more})
    (data,) = protocol.encode(frames, Sender(number=i, time=i / 64, options=options or {}))
    return take, json.loads(data)


def sent(value) -> bytes:
    return json.dumps(value).encode()


def test_rokoko_s_t_pose_is_the_published_one():
    for name, (w, x, y, z) in PUBLISHED.items():
        assert abs(np.dot(rokoko_body.T_POSE[name], (x, y, z, w))) == pytest.approx(1.0, abs=1e-5), name
    assert len(rokoko_body.STANDARD) == 23 and len(rokoko_body.MORPHS) == 52 and len(rokoko_body.JOINTS) == 63


def test_a_packet_in_studio_s_t_pose_is_the_t_pose():
    body = {
        n: {"position": {"x": 0, "y": 1, "z": 0}, "rotation": {"w": w, "x": x, "y": y, "z": z}} for n, (w, x, y, z) in PUBLISHED.items()
    }
    packet = {"version": 3, "fps": 30, "scene": {"timestamp": 1.5, "actors": [{"name": "A", "body": body}], "props": []}}
    (frame,) = ROKOKO.decode(sent(packet), ROKOKO.state())
    assert frame.source == "A" and frame.time == 1.5 and set(frame.joints) == set(PUBLISHED)
    np.testing.assert_allclose(np.abs(frame.rotations[:, 0]), 1.0, atol=1e-9)
    np.testing.assert_allclose(frame.positions, np.tile((0, 0, 1.0), (len(PUBLISHED), 1)), atol=1e-12)


@pytest.mark.parametrize("version", [3, 3.0, "3", "3.0", "3,0", 4, "4,1"])
def test_rokoko_s_versions_in_numbers_and_words(version):
    _, packet = moment(ROKOKO)
    packet["version"] = version
    assert len(ROKOKO.decode(sent(packet), ROKOKO.state())) == 2


def test_studio_one_calls_two_point_five_three():
    _, packet = moment(ROKOKO, options={"version": 2.5})
    assert packet["version"] == 3 and "trackers" in packet and "scene" not in packet
    assert [f.kind for f in ROKOKO.decode(sent(packet), ROKOKO.state())] == ["body", "prop"]


def test_rokoko_s_trackers_faces_and_unknown_keys():
    _, packet = moment(ROKOKO, options={"version": 2})
    row = {"position": {"x": 1, "y": 2, "z": 3}, "rotation": {"x": 0, "y": 0, "z": 0, "w": 1}}
    packet["trackers"] = [{"name": "Sword", "connectionId": "9", **row}]
    packet["faces"] = [{"faceId": "f1", "profileName": "Anna", "jawOpen": 50, "mouthLeft": "25", "other": 3, "tongueOut": None}]
    packet["anything"] = {"else": [1, 2]}
    packet["actors"][0]["isLive"] = True
    frames = ROKOKO.decode(sent(packet), ROKOKO.state())
    assert [(f.kind, f.source) for f in frames] == [("body", "Anna"), ("morphs", "Anna"), ("prop", "Sword"), ("prop", "tracker Sword")]
    assert frames[1].curves == {"jawOpen": 0.5, "mouthLeft": 0.25}
    np.testing.assert_array_equal(frames[3].positions, [(-1, -3, 2)])


def test_rokoko_face_in_version_3():
    take = moving(ROKOKO.standard(), frames=1, props=())
    frame = frames_of(take, 0)[0]
    smiling = Frame("Anna", "body", 0, 0.0, frame.joints, frame.positions, frame.rotations, curves={"mouthSmileLeft": 0.5, "nonsense": 1.0})
    (data,) = ROKOKO.encode([smiling], Sender())
    face = of_kind(ROKOKO.decode(data, ROKOKO.state()), "morphs")[0]
    assert len(face.curves) == 52 and face.curves["mouthSmileLeft"] == 0.5 and face.curves["jawOpen"] == 0.0


def test_rotations_alone_take_an_average_body_as_tall_as_said():
    _, packet = moment(ROKOKO)
    actor = packet["scene"]["actors"][0]
    for joint in actor["body"].values():
        joint["position"] = {"x": 0, "y": 0, "z": 0}
    actor["dimensions"]["hipHeight"] = "1.9"
    state = ROKOKO.state()
    ROKOKO.decode(sent(packet), state)
    found = ROKOKO.skeleton("Anna", state)
    np.testing.assert_allclose(found.rest_translations, ROKOKO.standard().rest_translations * 2.0)


def test_chingmu_holds_what_the_cameras_lost():
    take = moving(CHINGMU.standard(), props=("3",))
    state = CHINGMU.state()
    packed = [json.loads(d) for d in packets(CHINGMU, take)]
    (first, _) = CHINGMU.decode(sent(packed[0]), state)
    human = packed[1]["humans"][0]
    human["detected"][5] = 0
    human["attitude"][3 + 4 * 9 : 7 + 4 * 9] = [0, 0, 0, 0]
    (second, _) = CHINGMU.decode(sent(packed[1]), state)
    assert np.flatnonzero(~second.valid).tolist() == [5, 9]
    np.testing.assert_array_equal(second.rotations[[5, 9]], first.rotations[[5, 9]])
    assert quat.angle(second.rotations[6], first.rotations[6]) > 0.01
    human["detected"] = False
    (third, _) = CHINGMU.decode(sent(packed[1]), state)
    assert not third.valid.any()


def test_chingmu_polled_again_before_the_next_frame():
    """A time code that stands is the frame before; frame numbers are left to who counts them."""
    _, packet = moment(CHINGMU, time_code="01:02:03:04")
    state = CHINGMU.state()
    (first, _) = CHINGMU.decode(sent(packet), state)
    assert first.time_code == "01:02:03:04" and first.number is None
    assert [f.kind for f in CHINGMU.decode(sent(packet), state)] == ["prop"]
    assert state.counts.ignored == 1


def test_chingmu_streams_of_150_segments():
    _, packet = moment(CHINGMU)
    human = packet["humans"][0]
    human["attitude"] += [0, 0, 0, 1] * (150 - 23)
    human["detected"] = [1] * 150
    (frame, _) = CHINGMU.decode(sent(packet), CHINGMU.state())
    assert len(frame.joints) == 63 and len(human["attitude"]) == 603


def test_chingmu_raw_is_millimetres_facing_y():
    attitude = [100.0, 200.0, 950.0] + [0.0, 0.0, 0.0, 1.0] * 23
    packet = {"humans": [{"id": 4, "attitude": attitude}], "timecode": 77}
    (frame,) = CHINGMU.decode(sent(packet), CHINGMU.state())
    assert frame.source == "4" and frame.number == 77 and len(attitude) == 95
    np.testing.assert_allclose(frame.positions[0], (-0.1, -0.2, 0.95))
    unreal = {"space": "unreal", "humans": [{"id": 4, "attitude": [20.0, 10.0, 95.0] + [0.0, 0.0, 0.0, -1.0] * 23}]}
    (other,) = CHINGMU.decode(sent(unreal), CHINGMU.state())
    np.testing.assert_allclose(other.positions[0], frame.positions[0])
    np.testing.assert_allclose(np.abs(other.rotations), frame.rotations)


def test_own_frames_come_back_as_they_were():
    rng = np.random.default_rng(3)
    places = np.array([[0.1, 0.2, 0.3], [np.nan] * 3])
    turns = quat.normalize(rng.normal(size=(2, 4)))
    frame = Frame("a", "body", 7, 1.25, ("x", "y"), places, turns, "local", {"Joy": 0.5}, "01:02:03:04", None, "Anna")
    face = Frame("a", "morphs", 8, 1.5, curves={"Joy": 0.25})
    (data,) = OWN.encode([frame, face], Sender(options={"origin": "retargeted"}))
    body, morphs = OWN.decode(data, OWN.state())
    assert (body.source, body.kind, body.number, body.time, body.joints, body.space) == ("a", "body", 7, 1.25, ("x", "y"), "local")
    assert (body.curves, body.time_code, body.name, body.origin) == ({"Joy": 0.5}, "01:02:03:04", "Anna", "retargeted")
    np.testing.assert_allclose(body.positions, places)
    np.testing.assert_allclose(body.rotations, turns, atol=1e-8)
    assert morphs.curves == {"Joy": 0.25} and morphs.number == 8


def test_own_skeletons_with_any_joints():
    take = moving(CHINGMU.standard(), frames=3, props=())
    frames, state = received(OWN, packets(OWN, take, Sender(rate=2.0)))
    found = OWN.skeleton("Anna", state)
    assert found.names == take.skeleton.names and len(frames) == 3
    np.testing.assert_allclose(found.rest_translations, take.skeleton.rest_translations, atol=1e-6)


def test_own_json_that_is_wrong():
    good = json.loads(packets(OWN, moving(OWN.standard(), frames=1, props=()))[0])
    for change in (
        {"rotations": None},
        {"rotations": [[1, 0, 0, 0]]},
        {"rotations": [[0, 0, 0, 0]] * 22},
        {"joints": ["a"] * 22},
        {"joints": "Hips"},
        {"joints": [1] * 22},
        {"positions": [[1e9, 0, 0]] * 22},
        {"source": ""},
        {"kind": "ghost"},
    ):
        state = OWN.state()
        assert OWN.decode(sent({**good, "frames": [{**good["frames"][0], **change}]}), state) == [], change
        assert state.counts.broken == 1 and state.counts.failed == 0
    for skeleton in (
        {"joints": ["a", "b"], "parents": [1, -1], "translations": [[0, 0, 0]] * 2},
        {"joints": []},
        3,
        {"joints": ["a"], "parents": ["x"]},
    ):
        state = OWN.state()
        assert len(OWN.decode(sent({**good, "skeletons": {"Anna": skeleton}}), state)) == 1
        assert OWN.skeleton("Anna", state) is None and state.counts.broken == 1
    assert OWN.decode(sent({**good, "mocap": 2}), state := OWN.state()) == [] and state.counts.unknown == 1


def test_a_chingmu_server_that_faces_the_other_way_is_noticed_and_can_be_told():
    attitude = [100.0, 200.0, 950.0] + [0.0, 0.0, 0.0, 1.0] * 23
    for knee in (16, 20):
        attitude[3 + 4 * knee : 7 + 4 * knee] = [0.5, 0.0, 0.0, 0.75**0.5]  # 60 degrees about its x
    data = sent({"humans": [{"id": 4, "attitude": attitude}]})
    wrong, told = CHINGMU.state(), CHINGMU.state()
    told.options["facing"] = "-y"
    CHINGMU.decode(data, wrong)
    (frame,) = CHINGMU.decode(data, told)
    assert len(wrong.notes) == 1 and "facing" in wrong.notes[0] and not told.notes
    np.testing.assert_allclose(frame.positions[0], (0.1, 0.2, 0.95))
    np.testing.assert_allclose(frame.rotations[16], (0.75**0.5, 0.5, 0.0, 0.0), atol=1e-12)
