# SPDX-License-Identifier: GPL-3.0-or-later
"""Unity clips: values against the formula of Unity's curves, axes against matrices, what is said about what cannot be read."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap_addon import formats
from mocap_addon.formats import threejs, unity_anim, unity_clip, unity_threejs
from mocap_addon.motion.errors import FileError, MocapError
from tests.paths import SHARED, need

from .unity_writer import Clip, Key, curve, float_curve, formula, text

SAMPLES = SHARED / "unity_anim"
INF = math.inf
TURN = np.diag([-1.0, 1.0, 1.0])  # Unity's x is the other way round
UP = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])  # Y up to Z up
TO_BLENDER = UP @ TURN  # (x, y, z) -> (-x, -z, y)


def written(tmp_path, clip: Clip, name="clip.anim", encode=str.encode):
    path = tmp_path / name
    path.write_bytes(encode(text(clip)))
    return path


def random_keys(rng, count: int, width: int, *, weights=False, steps=False, spread=0.5) -> list[Key]:
    times = np.cumsum(rng.uniform(0.05, spread, count)) - 0.05

    def some(n):
        return tuple(rng.normal(size=n).tolist())

    out = []
    for t in times.tolist():
        k = Key(t, some(width), some(width), some(width))
        if weights:
            k.mode = int(rng.integers(0, 4))
            k.in_weight, k.out_weight = tuple(rng.uniform(0, 1, width).tolist()), tuple(rng.uniform(0, 1, width).tolist())
        if steps and rng.random() < 0.5:
            k.out_slope = tuple(INF if rng.random() < 0.5 else v for v in k.out_slope)
        if steps and rng.random() < 0.3:
            k.in_slope = tuple(-INF if rng.random() < 0.5 else v for v in k.in_slope)
        out.append(k)
    return out


def sample_keys(path):
    """(list, path, attribute) -> keys of a sample file, by a plain search for its lines: no reader of ours."""
    found = {}
    body = path.read_text().replace("\r\n", "\n")
    for name, block in re.findall(r"^  (m_\w+Curves):\n((?:  [ -].*\n)+)", body, re.M):
        if "Editor" in name:
            continue
        for item in re.split(r"^  - ", block, flags=re.M)[1:]:
            keys = []
            for part in item.split("time: ")[1:]:
                at = float(part.split("\n", 1)[0])

                def values(field, part=part):
                    m = re.search(rf"{field}: (.*)", part)
                    return (
                        tuple(float(v) for v in re.findall(r"-?(?:Infinity|[\d.]+(?:e-?\d+)?)", re.sub(r"[xyzw]:", "", m[1]))) if m else ()
                    )

                mode = values("weightedMode")
                keys.append(
                    Key(
                        at,
                        values("value"),
                        values("inSlope"),
                        values("outSlope"),
                        int(mode[0]) if mode else 0,
                        values("inWeight"),
                        values("outWeight"),
                    )
                )
            where = re.search(r"^    path: ?(.*)$", item, re.M)[1]
            what = re.search(r"^    attribute: (.*)$", item, re.M)
            found[name, where, what[1] if what else ""] = keys
    return found


@pytest.mark.parametrize("name", ["AnimationA", "AnimationB", "AnimationBridgeSample", "BallAnimation", "Fist", "pose1", "pose4"])
@pytest.mark.parametrize("rate", [None, Fraction(30), Fraction(30000, 1001), Fraction(240)])
def test_samples_equal_the_formula(name, rate):
    path = need(SAMPLES / f"{name}.anim")
    (clip,) = unity_clip.read_clips(path)
    keys = sample_keys(path)
    assert keys and len(clip.curves) == len(keys)
    lists = {"rotation": "m_RotationCurves", "euler": "m_EulerCurves", "position": "m_PositionCurves", "float": "m_FloatCurves"}
    times = clip.times(rate)
    assert times[0] == pytest.approx(clip.start) and times[-1] <= clip.stop + 1e-5
    for c in clip.curves:
        expected = keys[lists[c.kind], c.path, c.attribute]
        wanted = [[formula(expected, n, t) for n in range(len(expected[0].value))] for t in times.tolist()]
        limit = 1e-6 * max(1.0, float(np.abs(wanted).max()))
        np.testing.assert_allclose(c.at(times), wanted, rtol=0, atol=limit)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["m_RotationCurves", "m_EulerCurves", "m_PositionCurves", "m_ScaleCurves"])
def test_made_up_curves_equal_the_formula(tmp_path, seed, kind):
    rng = np.random.default_rng(seed)
    width = 4 if kind == "m_RotationCurves" else 3
    sets = [random_keys(rng, int(rng.integers(1, 9)), width, weights=seed % 2 == 1, steps=seed >= 3) for _ in range(3)]
    path = written(tmp_path, Clip(lists={kind: [curve(k, f"Root/b{i}") for i, k in enumerate(sets)]}))
    (clip,) = unity_clip.read_clips(path)
    for keys, c in zip(sets, clip.curves, strict=True):
        times = np.sort(np.concatenate([rng.uniform(-0.5, keys[-1].time + 0.5, 200), [k.time for k in keys]]))
        wanted = [[formula(keys, n, t) for n in range(width)] for t in times.tolist()]
        np.testing.assert_allclose(c.at(times), wanted, rtol=0, atol=1e-6)


def test_weights_of_a_third_change_nothing(tmp_path):
    rng = np.random.default_rng(3)
    plain = random_keys(rng, 6, 3)
    third = [Key(k.time, k.value, k.in_slope, k.out_slope, 3, (1 / 3 + 1e-13,) * 3, (1 / 3 + 1e-13,) * 3) for k in plain]
    path = written(tmp_path, Clip(lists={"m_PositionCurves": [curve(plain, "a"), curve(third, "b")]}))
    (clip,) = unity_clip.read_clips(path)
    times = np.linspace(0, plain[-1].time, 500)
    np.testing.assert_allclose(clip.curves[0].at(times), clip.curves[1].at(times), atol=1e-9)


def test_a_step_falls_on_the_frame_of_its_key(tmp_path):
    """Key times are float32: 0.083333336 is frame 5 at 60 fps, and the value of that frame is the key's."""
    stepped = [Key(float(np.float32(n / 60)), (float(n),), (INF,), (INF,)) for n in range(600)]
    path = written(tmp_path, Clip(rate=60, stop=float(np.float32(599 / 60)), lists={"m_FloatCurves": [float_curve(stepped, "", "x", 114)]}))
    (take,) = formats.read(path)
    np.testing.assert_array_equal(take.curves["x"], np.arange(600))


@pytest.mark.parametrize(
    ("code", "times", "expected"), [(2, [-0.5, 2.5], [0, 1]), (1, [-0.25, 2.25], [0.75, 0.25]), (0, [-0.25, 1.25], [0.25, 0.75])]
)
def test_beyond_the_keys(tmp_path, code, times, expected):
    line = [Key(0, (0.0,), (1.0,), (1.0,)), Key(1, (1.0,), (1.0,), (1.0,))]
    item = curve(line, "", before=code, after=code, more="    attribute: x\n") + "    classID: 114\n"
    (clip,) = unity_clip.read_clips(written(tmp_path, Clip(lists={"m_FloatCurves": [item]})))
    np.testing.assert_allclose(clip.curves[0].at(np.array(times))[:, 0], expected, atol=1e-12)


def test_rotations_and_places_are_turned_into_the_projects_axes(tmp_path):
    """Worlds of a two-joint arm: Unity's matrices, mirrored and turned up, are the take's. (-x, -z, y); quaternions (w, x, z, -y)."""
    rng = np.random.default_rng(1)
    q = Rotation.random(2, random_state=4)
    p = rng.normal(size=(2, 3))
    flat = (0.0,) * 4
    items = [
        curve([Key(0, tuple(q[i].as_quat()), flat, flat), Key(1, tuple(q[i].as_quat()), flat, flat)], path)
        for i, path in enumerate(["a", "a/b"])
    ]
    places = [
        curve([Key(0, tuple(p[i]), flat[:3], flat[:3]), Key(1, tuple(p[i]), flat[:3], flat[:3])], path)
        for i, path in enumerate(["a", "a/b"])
    ]
    (take,) = formats.read(written(tmp_path, Clip(lists={"m_RotationCurves": items, "m_PositionCurves": places})))
    world = [q[0].as_matrix(), q[0].as_matrix() @ q[1].as_matrix()]
    place = [p[0], p[0] + q[0].as_matrix() @ p[1]]
    for j in range(2):
        np.testing.assert_allclose(take.global_positions[0, j], TO_BLENDER @ place[j], atol=1e-9)
        got = Rotation.from_quat(take.global_rotations[0, j][[1, 2, 3, 0]]).as_matrix()
        np.testing.assert_allclose(got, UP @ TURN @ world[j] @ TURN, atol=1e-9)  # a joint's own axes are mirrored, its world is turned too
    # a quarter turn to the left about Unity's up (left-handed: -90) is one to the left about +Z
    yaw = [curve([Key(0, (0, -math.sqrt(0.5), 0, math.sqrt(0.5)), flat, flat)], "a")]
    (take,) = formats.read(written(tmp_path, Clip(lists={"m_RotationCurves": yaw})))
    ahead = Rotation.from_quat(take.global_rotations[0, 0][[1, 2, 3, 0]]).apply([0, 0, 1])  # the joint's +Z ahead
    np.testing.assert_allclose(ahead, [1, 0, 0], atol=1e-9)  # facing -Y, its left is +X


@pytest.mark.parametrize(("order", "axes"), list(enumerate(["xyz", "xzy", "yzx", "yxz", "zxy", "zyx"])))
def test_euler_orders(tmp_path, order, axes):
    degrees = (30.0, -50.0, 400.0)
    item = curve([Key(0, degrees, (0,) * 3, (0,) * 3)], "a", order=order)
    (take,) = formats.read(written(tmp_path, Clip(lists={"m_EulerCurves": [item]})))
    unity = np.eye(3)
    for axis in axes:  # about the parent's axes, the first first
        unity = Rotation.from_rotvec(np.radians(degrees["xyz".index(axis)]) * np.eye(3)["xyz".index(axis)]).as_matrix() @ unity
    got = Rotation.from_quat(take.global_rotations[0, 0][[1, 2, 3, 0]]).as_matrix()
    np.testing.assert_allclose(got, UP @ TURN @ unity @ TURN, atol=1e-9)


def test_a_spin_of_a_whole_turn_is_seen_on_every_frame():
    (take,) = formats.read(need(SAMPLES / "AnimationB.anim"))
    turned = Rotation.from_quat(take.global_rotations[:, 0][:, [1, 2, 3, 0]])
    steps = np.degrees((turned[1:] * turned[:-1].inv()).magnitude())
    assert take.frames == 11 and steps.sum() == pytest.approx(360.0, abs=1e-3)


def test_names_that_yaml_takes_for_other_things(tmp_path):
    names = ["No", "on", "001", "12:30:45", "2026-01-01", "1e5", "mixamorig:Hips", "~", "null", "a b#c", "骨"]
    keys = [Key(0, (0.0, 0, 0, 1), (0,) * 4, (0,) * 4)]
    path = written(tmp_path, Clip(name="No", lists={"m_RotationCurves": [curve(keys, f"Root/{n}") for n in names]}))
    (take,) = formats.read(path)
    assert take.name == "No" and take.skeleton.names == ("Root", *names)


def test_quoted_escaped_and_wrapped_names(tmp_path):
    keys = [Key(0, (0.0, 0, 0, 1), (0,) * 4, (0,) * 4)]
    quoted = [
        '"\\u9AA8\\xE9"',
        "'it''s'",
        "Root/a very long name that Unity\n      goes on with in the next line",
        '"two\n      lines"',
        '"\\uD83D\\uDE00"',
    ]
    (take,) = formats.read(written(tmp_path, Clip(lists={"m_RotationCurves": [curve(keys, n) for n in quoted]})))
    assert take.skeleton.names == ("骨é", "it's", "Root", "a very long name that Unity goes on with in the next line", "two lines", "😀")


@pytest.mark.parametrize(
    "encode", [lambda s: s.replace("\n", "\r\n").encode(), lambda s: b"\xef\xbb\xbf" + s.encode(), lambda s: s.rstrip("\n").encode()]
)
def test_line_ends_marks_and_missing_last_ends(tmp_path, encode):
    keys = random_keys(np.random.default_rng(0), 4, 4)
    clip = Clip(lists={"m_RotationCurves": [curve(keys, "a"), curve(keys, "b")]})
    (plain,), (other,) = (formats.read(written(tmp_path, clip, f"{n}.anim", e)) for n, e in enumerate([str.encode, encode]))
    np.testing.assert_array_equal(plain.local_rotations, other.local_rotations)


def test_mixed_key_versions_wrapped_values_and_two_documents(tmp_path):
    keys = random_keys(np.random.default_rng(5), 6, 3)
    for n, k in enumerate(keys):
        k.version = (0, 2, 3)[n % 3]
    body = text(Clip(lists={"m_PositionCurves": [curve(keys, "a")]})).replace(", z: ", ",\n          z: ", 3)
    first, _, rest = body.partition("--- !u!74")
    body = (
        first
        + "--- !u!1 &1 stripped\nGameObject:\n  m_Name: other\n--- !u!74"
        + rest
        + "--- !u!74 &2\n"
        + rest.split("\n", 1)[1].replace("m_Name: clip", "m_Name: second")
    )
    path = tmp_path / "two.anim"
    path.write_text(body)
    clips = unity_clip.read_clips(path)
    assert [c.name for c in clips] == ["clip", "second"]
    times = np.linspace(0, keys[-1].time, 100)
    for clip in clips:
        np.testing.assert_allclose(clip.curves[0].at(times), [[formula(keys, n, t) for n in range(3)] for t in times], atol=1e-6)


def test_the_window_of_the_clip(tmp_path):
    line = [Key(0, (0.0,), (1.0,), (1.0,)), Key(4, (4.0,), (1.0,), (1.0,))]
    (take,) = formats.read(
        written(tmp_path, Clip(start=1.0, stop=2.0, rate=10, lists={"m_FloatCurves": [float_curve(line, "", "x", 114)]}))
    )
    np.testing.assert_allclose(take.curves["x"], np.arange(10, 21) / 10)
    np.testing.assert_allclose(take.times, np.arange(11) / 10)
    assert take.facts["loop"] is True


def test_blend_shapes_are_shares_and_go_to_morph_targets(tmp_path):
    line = [Key(0, (0.0,), (100.0,), (100.0,)), Key(1, (100.0,), (100.0,), (100.0,))]
    turn = curve([Key(0, (0.0, 0, 0, 1), (0,) * 4, (0,) * 4), Key(1, (0, 1.0, 0, 0), (0,) * 4, (0,) * 4)], "Armature/hips.L")
    path = written(
        tmp_path, Clip(lists={"m_FloatCurves": [float_curve(line, "Body", "blendShape.Smile: wide", 137)], "m_RotationCurves": [turn]})
    )
    (take,) = formats.read(path)
    np.testing.assert_allclose(take.curves["Smile: wide"], np.linspace(0, 1, 31), atol=1e-9)
    (clip,) = unity_clip.read_clips(path)
    made, notes = unity_threejs.to_clip(clip)
    tracks = {(t.node, t.property): t.values for t in made.tracks}
    np.testing.assert_allclose(tracks["Body", "morphTargetInfluences[Smile: wide]"][:, 0], np.linspace(0, 1, 31), atol=1e-6)
    np.testing.assert_allclose(tracks["hipsL", "quaternion"][0], [0, 0, 0, 1], atol=1e-7)
    assert abs(tracks["hipsL", "quaternion"][-1] @ [0, -1, 0, 0]) == pytest.approx(1.0, abs=1e-6)  # (x, -y, -z, w)
    assert not notes and threejs.dumps([made])


def test_muscles_are_kept_named_and_refused_as_bones():
    (take,) = formats.read(need(SAMPLES / "pose1.anim"))
    assert len(take.curves) == 99 and take.curves["Right Forearm Stretch"][0] == 1.0 and "RootQ.y" in take.curves
    assert take.facts["unfit"] == take.notes[0]
    assert take.facts["format"] == "Unity humanoid clip" and "avatar" in take.notes[0] and "humanoid" in take.notes[0]
    (clip,) = unity_clip.read_clips(need(SAMPLES / "Fist.anim"))
    with pytest.raises(MocapError, match="avatar"):
        unity_threejs.to_clip(clip)


def test_single_transform_components(tmp_path):
    def line(v):
        return [Key(0, (v,), (0.0,), (0.0,))]

    items = [float_curve(line(v), "a", f"m_LocalPosition.{c}", 4) for c, v in zip("xyz", (1.0, 2.0, 3.0), strict=True)]
    items += [float_curve(line(90.0), "a", "localEulerAnglesRaw.y", 4)]
    (take,) = formats.read(written(tmp_path, Clip(lists={"m_FloatCurves": items})))
    np.testing.assert_allclose(take.global_positions[0, 0], [-1, -3, 2], atol=1e-9)
    assert not take.curves


def test_object_curves_are_counted(tmp_path):
    keys = curve([Key(0, (0.0, 0, 0), (0,) * 3, (0,) * 3)], "a")
    objects = "  - curve:\n    - time: 0\n      value: {fileID: 21300000, guid: abc, type: 3}\n"
    objects += "    attribute: m_Sprite\n    path: \n    classID: 212\n"
    (take,) = formats.read(written(tmp_path, Clip(lists={"m_PositionCurves": [keys], "m_PPtrCurves": [objects, objects]})))
    assert any("2 curves that change objects" in note for note in take.notes)


def test_scale_above_multiplies_offsets(tmp_path):
    size = curve([Key(0, (100.0,) * 3, (0,) * 3, (0,) * 3)], "a")
    place = curve([Key(0, (0.0, 0.01, 0), (0,) * 3, (0,) * 3)], "a/b")
    (take,) = formats.read(written(tmp_path, Clip(lists={"m_ScaleCurves": [size], "m_PositionCurves": [place]})))
    np.testing.assert_allclose(take.global_positions[0, 1], [0, 0, 1], atol=1e-9)


def test_recognised_by_content(tmp_path):
    path = written(tmp_path, Clip(lists={"m_PositionCurves": [curve([Key(0, (0.0, 0, 0), (0,) * 3, (0,) * 3)], "a")]}), name="clip.txt")
    assert formats.recognise(path).name == "unity" and len(formats.read(path)) == 1


def as_unity(walk, rate) -> Clip:
    """A take as Unity would hold it: every matrix mirrored, positions of all bones, straight keys."""
    sk, count = walk.skeleton, walk.frames
    turns, places = [], []
    for j in range(len(sk)):
        path = "/".join([sk.names[a] for a in reversed(sk.ancestors(j))] + [sk.names[j]])
        r = Rotation.from_quat(walk.local_rotations[:, j][:, [1, 2, 3, 0]]).as_matrix()
        t = np.broadcast_to(walk.local_translations[:, j], (count, 3))
        if sk.parents[j] < 0:
            r, t = UP.T @ r, t @ UP
        q, t = Rotation.from_matrix(TURN @ r @ TURN).as_quat(), t @ TURN
        at = walk.times.tolist()
        turns.append(curve([Key(s, tuple(v), (0.0,) * 4, (0.0,) * 4) for s, v in zip(at, q.tolist(), strict=True)], path))
        places.append(curve([Key(s, tuple(v), (0.0,) * 3, (0.0,) * 3) for s, v in zip(at, t.tolist(), strict=True)], path))
    return Clip(rate=rate, lists={"m_RotationCurves": turns, "m_PositionCurves": places})


def test_a_recorded_body_comes_back(tmp_path):
    """A walk, written as Unity would hold it, stands where it stood; its bones are found by name."""
    from mocap_addon import rig

    (walk,) = formats.read(need(SHARED / "cmu" / "asf_02_01_walk.bvh"))
    walk = walk.block(0, 40)
    (take,) = formats.read(written(tmp_path, as_unity(walk, 120)))
    assert take.skeleton.names == walk.skeleton.names and take.frames == 40 and take.rate == 120
    np.testing.assert_allclose(take.global_positions, walk.global_positions, atol=1e-9)
    assert set(rig.match(take.skeleton).joints) == set(rig.match(walk.skeleton).joints)


def test_straight_to_three_it_moves_its_own_bones(tmp_path):
    """three.js plays the clip on the same skeleton as a glTF file: joints where the recording has them."""
    from mocap_addon.formats import viewer_page
    from tests.node import run

    (walk,) = formats.read(need(SHARED / "cmu" / "asf_02_01_walk.bvh"))
    walk = walk.block(0, 60)
    (clip,) = unity_clip.read_clips(written(tmp_path, as_unity(walk, 120)))
    made, notes = unity_threejs.to_clip(clip)
    assert not notes
    threejs.write(tmp_path / "clip.json", [made])
    (tmp_path / "body.glb").write_bytes(viewer_page.skeleton_of(walk))
    frames = [0, 17, 59]
    answer = run(
        "play.mjs", {"character": str(tmp_path / "body.glb"), "clip": str(tmp_path / "clip.json"), "times": [f / 120 for f in frames]}
    )
    node = {name: str(i) for i, name in enumerate(answer["names"])}
    found = np.array([[frame[node[name]][:3] for name in walk.skeleton.names] for frame in answer["frames"]])
    np.testing.assert_allclose(found, walk.global_positions[frames] @ UP, atol=1e-5)


def test_what_moves_the_animated_object_itself_moves_what_the_mixer_was_made_for(tmp_path):
    """The path is empty in Unity; three.js finds the mixer's root by a track without a node."""
    none = (0.0,) * 4
    turn = curve([Key(0, (0.0, 0, 0, 1), none, none), Key(1, (0.0, 0.6, 0, 0.8), none, none)], "")
    place = curve([Key(0, (0.0, 0, 0), none[:3], none[:3]), Key(1, (3.0, 1, 2), none[:3], none[:3])], "")
    (clip,) = unity_clip.read_clips(written(tmp_path, Clip(lists={"m_RotationCurves": [turn], "m_PositionCurves": [place]})))
    made, notes = unity_threejs.to_clip(clip)
    threejs.write(tmp_path / "clip.json", [made])
    (stored,) = json.loads((tmp_path / "clip.json").read_text())
    tracks = {track["name"]: track["values"] for track in stored["tracks"]}
    assert set(tracks) == {".quaternion", ".position"} and not notes
    assert tracks[".position"][-3:] == pytest.approx([-3.0, 1.0, 2.0])
    assert tracks[".quaternion"][-4:] == pytest.approx([0.0, -0.6, 0.0, 0.8])


def test_bones_without_places_are_said_to_have_no_lengths(tmp_path):
    """Rotations of a whole body and the way of its hips: what to do instead is said, and finding a reference pose does not fail."""
    from mocap_addon import rig
    from mocap_addon.retarget import neutral

    (walk,) = formats.read(need(SHARED / "cmu" / "asf_02_01_walk.bvh"))
    sk, none = walk.skeleton, (0.0,) * 4
    keys = [Key(0, (0.0, 0, 0, 1), none, none), Key(1, (0.0, 0.1, 0, 0.99), none, none)]
    paths = ["/".join([*(sk.names[a] for a in reversed(sk.ancestors(j))), sk.names[j]]) for j in range(len(sk))]
    place = curve([Key(0, (0.0, 1, 0), none[:3], none[:3]), Key(1, (0.0, 1, 1), none[:3], none[:3])], paths[0])
    clip = Clip(lists={"m_RotationCurves": [curve(keys, p) for p in paths], "m_PositionCurves": [place]})
    (take,) = formats.read(written(tmp_path, clip))
    assert "lengths are unknown" in take.facts["unfit"] and take.facts["unfit"] in take.notes
    assert neutral.find_reference(take, rig.match(take.skeleton)).confidence == 0.0


def packed(bits: list[tuple[int, int]]) -> str:
    whole = at = 0
    for value, size in bits:
        whole |= value << at
        at += size
    return whole.to_bytes((at + 7) // 8, "little").hex()


def packed_curve(times: list[int], quats, slopes, size: int = 6) -> str:
    words = []
    for q in quats:
        big = int(np.argmax(np.abs(q)))
        words += [(big, 2), (int(q[big] < 0), 1)]
        for c in range(4):
            if c != big:
                n = 9 if c == (big + 1) % 4 else 10
                words.append((round((q[c] + 1) * 0.5 * ((1 << n) - 1)), n))
    low, reach = (min(slopes), max(slopes) - min(slopes)) if slopes else (0.0, 0.0)
    steps = [(round((s - low) / reach * ((1 << size) - 1)) if reach else 0, size) for s in slopes]
    deltas = np.diff([0, *times]).tolist()
    bits = {"Times": packed([(d, 8) for d in deltas]), "Values": packed(words), "Slopes": packed(steps) if slopes else ""}
    return (
        f"  - m_Path: Root/a\n    m_Times:\n      m_NumItems: {len(times)}\n      m_Data: {bits['Times']}\n      m_BitSize: 8\n"
        f"    m_Values:\n      m_NumItems: {len(quats)}\n      m_Data: {bits['Values']}\n"
        f"    m_Slopes:\n      m_NumItems: {len(slopes)}\n      m_Range: {reach}\n      m_Start: {low}\n      m_Data: {bits['Slopes']}\n"
        f"      m_BitSize: {size}\n    m_PreInfinity: 2\n    m_PostInfinity: 2\n"
    )


def test_compressed_rotations(tmp_path):
    quats = Rotation.random(5, random_state=2).as_quat()
    slopes = [-1.0, 1.0] * 10
    path = written(tmp_path, Clip(lists={"m_CompressedRotationCurves": [packed_curve([0, 10, 35, 50, 120], quats, slopes)]}))
    (clip,) = unity_clip.read_clips(path)
    keys = clip.curves[0].keys
    np.testing.assert_allclose(keys.times, [0, 0.1, 0.35, 0.5, 1.2])
    apart = Rotation.from_quat(keys.values) * Rotation.from_quat(quats).inv()
    assert np.degrees(apart.magnitude()).max() < 0.4  # nine and ten bits
    np.testing.assert_allclose(keys.in_slopes.ravel(), slopes)
    np.testing.assert_allclose(keys.out_slopes.ravel(), slopes)


def test_a_lookup_of_many_curves_is_fast_enough_for_none_to_notice(tmp_path):
    import time

    keys = [Key(0, (0.0, 0, 0, 1), (0,) * 4, (0,) * 4), Key(1, (0.0, 0, 0, 1), (0,) * 4, (0,) * 4)]
    path = written(tmp_path, Clip(lists={"m_RotationCurves": [curve(keys, f"r/b{i}") for i in range(3000)]}))
    start = time.process_time()
    (clip,) = unity_clip.read_clips(path)
    assert len(clip.curves) == 3000 and time.process_time() - start < 2.0


def damaged(change):
    keys = [Key(n / 10, (0.1, 0.2, 0.3, 0.9), (0.0,) * 4, (0.0,) * 4) for n in range(3)]
    body = text(Clip(lists={"m_RotationCurves": [curve(keys, "a"), curve(keys, "b")]}))
    return change(body)


@pytest.mark.parametrize(
    ("change", "line", "says"),
    [
        (lambda s: s.replace("value: {x: 0.1", "value: {x: 0.1.2", 1), 16, "number"),
        (lambda s: s.replace("y: 0.20000000000000001", "y: abc", 1), None, "number"),
        (lambda s: s.replace("y: 0.20000000000000001", "y: NaN", 1), None, "number"),
        (lambda s: s.replace("y: 0.20000000000000001", "y: ", 1), None, "number"),
        (lambda s: s[: s.index("path: b") - 200], None, "damaged"),
        (lambda s: s.replace("y: 0.20000000000000001", "y: e5", 1), None, "number"),
        (lambda s: s.replace("value: {", "value: [", 1), None, "damaged"),
        (lambda s: s.replace("        inSlope", "\t inSlope", 1), None, "tab"),
        (lambda s: s.replace("m_SampleRate: 30", "m_SampleRate: fast"), None, "number"),
        (lambda s: s.replace("m_SampleRate: 30", "m_SampleRate: 0"), None, "sample rate"),
        (lambda s: s.replace("w: ", "v: "), None, "x, y, z, w"),
        (lambda s: s.replace("      m_Curve:\n", "      m_Curves:\n", 1), None, "no keys"),
        (lambda s: s.replace("time: 0", "tide: 0", 1), None, "time"),
        (lambda s: s.replace('m_Name: clip', 'm_Name: "clip'), None, "quoted"),
        (lambda s: s.replace("  m_Compressed: 0\n", "  m_Compressed 0\n"), None, "field"),
    ],
)  # fmt: skip
def test_damaged_files_name_the_line(tmp_path, change, line, says):
    path = tmp_path / "bad.anim"
    body = damaged(change)
    path.write_text(body)
    with pytest.raises(FileError, match=says) as caught:
        formats.read(path)
    assert caught.value.line is not None and 1 <= caught.value.line <= body.count("\n") + 1
    if line is not None:
        assert caught.value.line == line
    if "abc" in body:
        assert caught.value.line == next(n for n, text_ in enumerate(body.split("\n"), 1) if "abc" in text_)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\0\0\0\x01binary", "binary"),
        (b"%YAML 1.1\n%TAG !u! tag:unity3d.com,2011:\n--- !u!1 &1\nGameObject:\n  m_Name: a\n", "no animation clip"),
        (b"%YAML 1.1\n%TAG !u! tag:unity3d.com,2011:\n--- !u!74 &1\nAnimationClip:\n  m_Name: a\n", "no curves"),
        (b"hello", "%YAML"),
    ],
)
def test_other_files(tmp_path, content, says):
    path = tmp_path / "other.anim"
    path.write_bytes(content)
    with pytest.raises(FileError, match=says):
        unity_anim.read(path)
