# SPDX-License-Identifier: GPL-3.0-or-later
"""three.js clips: everything that three.js accepts without a word and plays wrong."""

from __future__ import annotations

import json
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from mocap_addon.formats import threejs
from mocap_addon.formats.threejs import Track
from mocap_addon.motion.errors import FileError, MocapError
from tests.node import run

HALF = 0.5**0.5


def spin(frames: int, turns: float = 1.0) -> np.ndarray:
    """xyzw about Y."""
    half = np.linspace(0.0, np.pi * turns, frames)
    return np.stack([0 * half, np.sin(half), 0 * half, np.cos(half)], axis=1)


def make(frames: int = 5, name: str = "walk", **more) -> threejs.Clip:
    rate = more.pop("rate", Fraction(30))
    times = more.pop("times", np.arange(frames) / float(rate))
    tracks = more.pop(
        "tracks", [Track("hips", "quaternion", spin(frames)), Track("hips", "position", np.arange(frames * 3.0).reshape(-1, 3))]
    )
    return threejs.clip(name, times, tracks, rate=rate, **more)


def parsed(*clips: threejs.Clip) -> list[dict]:
    return json.loads(threejs.dumps(clips or [make()]))


def test_trap_file_is_an_array():
    """AnimationLoader reads no clip, and says nothing, if the file is one object."""
    data = parsed(make(), make(name="run"))
    assert isinstance(data, list)
    assert [clip["name"] for clip in data] == ["walk", "run"]


def test_trap_1_uuid_differs_between_clips_and_stays_between_writings():
    one, again, renamed = parsed(make())[0]["uuid"], parsed(make())[0]["uuid"], parsed(make(name="run"))[0]["uuid"]
    other = parsed(make(tracks=[Track("hips", "quaternion", spin(5, 1.0001))]))[0]["uuid"]
    moved = parsed(make(tracks=[Track("spine", "quaternion", spin(5, 1.0001))]))[0]["uuid"]
    assert one == again
    assert len({one, renamed, other, moved}) == 4


def test_trap_1_the_same_clip_twice_is_refused():
    with pytest.raises(MocapError, match="are the same"):
        threejs.dumps([make(), make()])


def test_trap_2_user_data_is_a_string():
    text = parsed(make(user_data={"bones": {"a_1": "é"}}))[0]["userData"]
    assert json.loads(text) == {"fps": 30.0, "rate": "30/1", "bones": {"a_1": "é"}}


def test_trap_3_no_fps_beside_times_in_seconds():
    clip = parsed()[0]
    assert "fps" not in clip
    assert clip["tracks"][0]["times"] == [0.0, 0.0333333, 0.0666667, 0.1, 0.1333333]


def test_trap_4_duration_is_a_number():
    assert parsed()[0]["duration"] == pytest.approx(4 / 30, abs=1e-7)


def test_trap_5_a_pose_has_two_keys_and_a_duration():
    clip = parsed(make(1, tracks=[Track("hips", "quaternion", spin(1))], rate=Fraction(25)))[0]
    assert clip["duration"] == 0.04
    assert clip["tracks"][0]["times"] == [0.0, 0.04]
    assert clip["tracks"][0]["values"] == [0, 0, 0, 1] * 2


def test_trap_6_the_first_key_is_at_zero():
    clip = parsed(make(times=np.arange(5) / 30 + 17.25))[0]
    assert all(track["times"][0] == 0.0 for track in clip["tracks"])
    assert clip["duration"] == pytest.approx(4 / 30, abs=1e-7)


def test_trap_7_interpolation_is_left_to_the_type():
    assert all("interpolation" not in track for track in parsed()[0]["tracks"])


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float64, (7, 4), elements=st.floats(-3, 3, width=32)))
def test_trap_8_quaternions_are_unit_after_rounding_and_continuous(q):
    if np.any(np.linalg.norm(q, axis=1) < 1e-3):
        q = q + np.array([0, 0, 0, 10.0])
    (track,) = parsed(make(7, tracks=[Track("a", "quaternion", q)]))[0]["tracks"]
    out = np.array(track["values"]).reshape(-1, 4)
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), 1.0, atol=1.5e-7)
    assert np.all(np.einsum("fi,fi->f", out[1:], out[:-1]) >= -1e-6)
    q = q / np.linalg.norm(q, axis=1)[:, None]
    if len(out) == 7:
        assert np.all(np.minimum(np.linalg.norm(out - q, axis=1), np.linalg.norm(out + q, axis=1)) < 3e-7)


def test_trap_8_a_rotation_of_zero_length_is_refused():
    with pytest.raises(MocapError, match="zero length"):
        make(tracks=[Track("a", "quaternion", np.zeros((5, 4)))])


@pytest.mark.parametrize("times", [[0, 1, 1], [0, 2, 1], [0, 1e-9, 1], [0, 1, 1 + 1e-8]])
def test_trap_9_10_times_rise(times):
    with pytest.raises(MocapError, match="do not rise"):
        threejs.clip("x", np.array(times, float), [Track("a", "position", np.zeros((3, 3)))])


def test_trap_9_times_that_only_single_precision_makes_equal():
    """three keeps single precision: at ten hours its steps are 4 ms."""
    with pytest.raises(MocapError, match="too close"):
        threejs.clip("x", np.array([0.0, 36000.0, 36000.001]), [Track("a", "position", np.zeros((3, 3)))])


@pytest.mark.parametrize("times", [[], [0, np.nan], [0, np.inf]])
def test_trap_9_times_are_numbers(times):
    with pytest.raises(MocapError, match="nothing to write"):
        threejs.clip("x", np.array(times, float), [])


@pytest.mark.parametrize(
    ("kind", "shape"),
    [("quaternion", (5, 3)), ("position", (5, 4)), ("position", (4, 3)), ("scale", (15,))],
)
def test_trap_10_three_values_for_a_quaternion(kind, shape):
    with pytest.raises(MocapError, match="have shape"):
        make(tracks=[Track("a", kind, np.ones(shape))])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("kind", "stride"), [("quaternion", 4), ("position", 3)])
def test_trap_10_values_are_numbers(kind, stride, bad):
    values = np.ones((5, stride))
    values[3, 1] = bad
    with pytest.raises(MocapError, match="not numbers"):
        make(tracks=[Track("a", kind, values)])


def test_trap_11_every_track_has_a_type_and_keys():
    for track in parsed()[0]["tracks"]:
        assert track["type"] in ("quaternion", "vector")
        assert len(track["times"]) >= 2


def test_trap_11_a_clip_without_tracks_is_refused():
    with pytest.raises(MocapError, match="moves nothing"):
        make(tracks=[])


def test_trap_12_13_only_linear_keys():
    assert all(set(track) == {"name", "type", "times", "values"} for track in parsed()[0]["tracks"])


@pytest.mark.parametrize("name", ["mixamorig:Hips", "upper.L", "a[0]", "a/b", "a b", ""])
def test_trap_unsanitised_names_are_refused(name):
    with pytest.raises(MocapError, match="not a node name"):
        make(tracks=[Track(name, "quaternion", spin(5))])


def test_two_tracks_of_one_property_are_refused():
    with pytest.raises(MocapError, match="two quaternion tracks"):
        make(tracks=[Track("a", "quaternion", spin(5)), Track("a", "quaternion", spin(5))])


def test_a_constant_track_stays_with_two_keys():
    """Clips to be cross-faded carry the same bones; a missing track would pull to the pose at binding time."""
    track = parsed(make(tracks=[Track("a", "quaternion", np.repeat([[0, 0, 0, 2.0]], 5, axis=0))]))[0]["tracks"][0]
    assert track["times"] == [0.0, 0.1333333]
    assert track["values"] == [0, 0, 0, 1] * 2


def test_ntsc_times_do_not_drift():
    """Ten minutes at 30000/1001: the last key where the fraction says, to the microsecond."""
    frames = 17983
    clip = threejs.clip("x", np.arange(frames) * 1001 / 30000, [Track("a", "position", np.zeros((1, 3)))], rate=Fraction(30000, 1001))
    assert clip.duration == pytest.approx(17982 * 1001 / 30000, abs=1e-6)
    assert parsed(clip)[0]["duration"] == pytest.approx(599.9994, abs=1e-6)


def test_positions_keep_a_micrometre_in_the_nodes_unit():
    values = np.array([[0.1234567891, 0, 0], [1, 0, 0]])
    for decimals, first in [(6, 0.123457), (4, 0.1235), (8, 0.12345679)]:
        track = Track("a", "position", values, decimals)
        assert parsed(make(2, tracks=[track]))[0]["tracks"][0]["values"][0] == first


def test_numbers_are_plain_json(tmp_path):
    text = threejs.dumps([make(3, tracks=[Track("骨\ud800", "position", np.array([[-0.0, 1e-9, -1e-9], [1e20, 0, 0], [0, 0, 0]]))])])
    assert text.isascii()
    assert "-0.0" not in text
    assert json.loads(text)[0]["tracks"][0]["values"][3] == 1e20


def test_three_reads_it_all():
    """AnimationLoader, validate(), an action each, and no word on the console."""
    clips = [make(name="walk"), make(name="run"), make(1, name="pose", tracks=[Track("腰_1", "quaternion", spin(1))])]
    seen = run("inspect_clips.mjs", threejs.dumps(clips))
    assert seen["printed"] == []
    assert seen["own_actions"] == 3
    assert seen["alone"] == 2
    assert all(np.isfinite(seen["times"]))
    for clip, theirs in zip(clips, seen["clips"], strict=True):
        assert theirs["valid"]
        assert (theirs["name"], theirs["uuid"], theirs["duration"]) == (clip.name, clip.uuid, clip.duration)
        assert theirs["userData"]["fps"] == 30
        for track in theirs["tracks"]:
            assert track["interpolation"] == 2301
            assert track["times"][0] == 0
            assert np.all(np.diff(track["times"]) > 0)
            values = np.array(track["values"]).reshape(-1, track["stride"])
            assert track["stride"] == (4 if track["type"] == "quaternion" else 3)
            if track["type"] == "quaternion":
                np.testing.assert_allclose(np.linalg.norm(values, axis=1), 1.0, atol=3e-7)


def test_writing_is_all_or_nothing(tmp_path, monkeypatch):
    path = tmp_path / "clip.json"
    size = threejs.write(path, [make()])
    assert path.stat().st_size == size
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    with pytest.raises(FileError, match=r"clip\.json: .*No space left"):
        threejs.write(path, [make(name="other")])
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["clip.json"]


def test_writing_into_a_missing_folder(tmp_path):
    with pytest.raises(FileError, match="cannot be written"):
        threejs.write(tmp_path / "none" / "clip.json", [make()])


def test_speed_and_size():
    """2,000 frames of 23 bones: at most 0.3 s of the processor, and at least twice as small as with all digits."""
    rng = np.random.default_rng(1)
    tracks = [Track(f"b{i}", "quaternion", rng.normal(size=(2000, 4))) for i in range(23)]
    tracks.append(Track("b0", "position", rng.normal(size=(2000, 3)), 6))
    times = np.arange(2000) / 30
    spent = []
    for _ in range(3):
        start = time.process_time()
        text = threejs.dumps([threejs.clip("x", times, tracks, rate=Fraction(30))])
        spent.append(time.process_time() - start)
    full = sum(len(json.dumps({"times": times.tolist(), "values": t.values.ravel().tolist()})) for t in tracks)
    assert min(spent) < 0.3
    assert full / len(text) > 1.8
