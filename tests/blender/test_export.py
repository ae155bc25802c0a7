# SPDX-License-Identifier: GPL-3.0-or-later
"""Exported clips against Blender's evaluation, played by three.js: rates, characters, reduction, what goes with the pose."""

from __future__ import annotations

import json
from fractions import Fraction

import bpy
import mathutils
import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.blender import scenes
from mocap_addon.blender.job import retarget_onto
from mocap_addon.motion.errors import MocapError
from tests.blender import export_helpers as h
from tests.blender.export_helpers import LIMIT, act, apart, body, clips_in, halfway, play, shown, tracks_of, write
from tests.blender.helpers import make_rig
from tests.node import run
from tests.paths import ROOT, SHARED, need

SWING = {"hips": (20, 10, 5), "spine": (10, 25, 0), "arm.L": (60, 0, 40), "hand.L": (0, 50, 20), "leg.L": (40, 0, 0), "leg.R": (-40, 0, 0)}
RATES = {"24": Fraction(24), "29.97": Fraction(30000, 1001), "30": Fraction(30), "60": Fraction(60), "120": Fraction(120)}
CHARACTERS = {"metres": "mh_ue_names_apose.glb", "scale001": "mh_mixamo_names_scale001.glb", "vrm": "mh_vrm1_tpose.vrm"}


@pytest.mark.parametrize(
    ("character", "rate"),
    [("scale001", "29.97")]
    + [pytest.param(c, r, marks=pytest.mark.thorough) for c, r in (("metres", "60"), ("scale001", "120"), ("vrm", "24"), ("metres", "30"))],
)
def test_acceptance_1_2_6_characters_at_any_rate_on_keys_and_between_them(tmp_path, character, rate):
    scenes.set_rate(bpy.context.scene, RATES[rate])
    obj = h.skinned(CHARACTERS[character])
    result = retarget_onto(obj, formats.read(need(SHARED / "cmu" / "asf_02_03_run_jog.bvh"))[0])
    count = len(result.motion.times)
    picked = np.linspace(0, count - 2, 9).astype(int)
    needed = sorted({*picked.tolist(), *(picked + 1).tolist()})
    poses = dict(zip(needed, shown(obj, [1 + f for f in needed]), strict=True))
    seconds = float(1 / RATES[rate])
    keys, middles = [poses[f] for f in picked], [halfway(obj, poses[f], poses[f + 1]) for f in picked]
    times = [*(f * seconds for f in picked), *((f + 0.5) * seconds for f in picked)]
    for bound in (None, LIMIT):
        files = write(obj, tmp_path, formats="threejs,glb", bound=bound, character=h.TARGETS / CHARACTERS[character])
        clip = tmp_path / f"{result.action.name}.clip.json"
        for more in ({"clips": clip}, {}):
            played = play(tmp_path / "Armature.glb", times, **more)
            assert apart(played, [*keys, *middles]) < (0.5 * LIMIT if bound is None else 1.05 * LIMIT)
            assert played["duration"] == pytest.approx((count - 1) * seconds, abs=1e-6)
        assert all(one.error <= LIMIT for one in files.values() if one.format != "manifest")
    checked = run("validate.mjs", [str(tmp_path / "Armature.glb")])
    assert checked == [{"errors": 0, "warnings": 0, "codes": []}]


def test_acceptance_3_and_5_reduced_files_say_their_error_and_three_js_agrees(tmp_path):
    """What Node finds on the samples is never more than what the file says, and the file is much smaller."""
    seconds = h.set_rate(60)
    obj = body()
    act(obj, "swing", range(1, 121), SWING, "hips")
    exact = write(obj, tmp_path, formats="threejs,glb", mesh=False)
    moved = {name.replace(".", "") for name in SWING}  # a file of bones alone has three's names
    poses = [{name.replace(".", ""): m for name, m in pose.items()} for pose in shown(obj, range(1, 121))]
    for bound in (1e-4, 5e-4):
        small = write(obj, tmp_path, formats="threejs,glb", mesh=False, bound=bound)
        for name in ("swing.clip.json", "swing.glb"):
            assert small[name].error <= bound
            assert small[name].p99 <= small[name].error
            assert small[name].size < 0.55 * exact[name].size
            more = {"clips": tmp_path / name} if name.endswith("json") else {}
            found = apart(play(tmp_path / "swing.glb", [f * seconds for f in range(120)], **more), poses, moved)
            assert found <= small[name].error + 3e-6  # what single precision makes of Blender's pose and of three's


@pytest.mark.parametrize("scene_rate", [pytest.param((30, 1.0), marks=pytest.mark.thorough), (30, 1.001)])
def test_acceptance_4_keys_between_frames_are_kept(tmp_path, scene_rate):
    """120 Hz on a scene at 30: a key on every quarter frame, from -10 to 20.5."""
    seconds = h.set_rate(*scene_rate)
    obj = body()
    frames = np.arange(-10, 20.51, 0.25)
    act(obj, "fast", frames, SWING, "hips")
    write(obj, tmp_path, formats="threejs,glb")
    times, _ = tracks_of(clips_in(tmp_path / "fast.clip.json")["fast"])["hips.quaternion"]
    assert len(times) == len(frames)
    assert times[-1] == pytest.approx(30.5 * seconds, abs=1e-6)
    played = play(tmp_path / "Body.glb", (frames[::7] + 10) * seconds)
    assert apart(played, shown(obj, frames[::7])) < LIMIT
    assert json.loads(clips_in(tmp_path / "fast.clip.json")["fast"]["userData"])["fps"] == pytest.approx(120 / scene_rate[1], abs=1e-5)


@pytest.mark.parametrize(
    "rate", [Fraction(30000, 1001), *(pytest.param(r, marks=pytest.mark.thorough) for r in (Fraction(24000, 1001), Fraction(120)))]
)
def test_acceptance_4_ten_minutes_last_ten_minutes(tmp_path, rate):
    scenes.set_rate(bpy.context.scene, rate)
    obj = body()
    last = 1 + int(600 * rate)
    act(obj, "long", [1, last], {"head": (10, 0, 0)})
    write(obj, tmp_path, formats="threejs,glb", thin=False)
    expected = float((last - 1) / rate)
    assert clips_in(tmp_path / "long.clip.json")["long"]["duration"] == pytest.approx(expected, abs=1e-6)
    assert play(tmp_path / "Body.glb", [0.0])["duration"] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("kind", ["euler", pytest.param("sparse curves", marks=pytest.mark.thorough)])
def test_match_blender_between_keys(tmp_path, kind):
    """Euler angles and Bezier curves go other ways than a slerp; with more keys the clip goes theirs."""
    seconds = h.set_rate(24)
    obj = body()
    if kind == "euler":
        pose = obj.pose.bones["arm.L"]
        pose.rotation_mode = "XYZ"
        for frame, angles in ((1, (0, 0, 0)), (2, (60, -50, 120)), (3, (-70, 40, 20))):
            pose.rotation_euler = np.radians(angles)
            pose.keyframe_insert("rotation_euler", frame=frame)
        obj.animation_data.action.name = "swing"
    else:
        act(obj, "swing", [1, 2, 3], {"arm.L": (150, 20, 60), "spine": (0, 50, 30)}, "hips")
    frames = np.arange(1, 3.01, 0.05)
    poses = shown(obj, frames)
    found = {}
    for match in (False, True):
        write(obj, tmp_path, formats="threejs,glb", match=match)
        clip = tmp_path / "swing.clip.json"
        found[match] = apart(play(tmp_path / "Body.glb", (frames - 1) * seconds, clips=clip), poses)
    assert found[True] < LIMIT < found[False]


def test_the_gap_to_blender_between_keys_is_reported(tmp_path):
    from mocap_addon.blender import export

    obj = body()
    act(obj, "swing", [1, 3], {"arm.L": (150, 20, 60)})
    report = export.export_actions(obj, ["swing"], tmp_path, export.ExportOptions(("threejs",), match=True))
    assert 0.0 <= report.gap <= LIMIT
    assert export.export_actions(obj, ["swing"], tmp_path, export.ExportOptions(("threejs",))).gap is None


def test_additive_clips_are_what_three_js_makes_of_plain_ones(tmp_path):
    obj = body()
    act(obj, "swing", range(1, 9), SWING, "hips")
    write(obj, tmp_path, names=["plain"])
    write(obj, tmp_path, names=["extra"], additive=True)
    found = run("additive.mjs", {"plain": str(tmp_path / "plain.clip.json"), "additive": str(tmp_path / "extra.clip.json")})
    assert found["blendModes"] == [2501, 2501]
    assert set(found["three"]) == set(found["ours"])
    for name, track in found["ours"].items():
        np.testing.assert_allclose(track["values"], found["three"][name]["values"], atol=3e-7)


def test_in_place_and_the_way_make_the_whole_again(tmp_path):
    """A character that walks and turns, standing elsewhere than at the origin."""
    seconds = h.set_rate(30)
    obj = h.skinned("mh_ue_names_apose.glb")
    obj.location = (2.0, 1.0, 0.0)
    act(obj, "walk", range(1, 9), {"pelvis": (10, 80, 5), "thigh_l": (40, 0, 0)}, "pelvis")
    write(obj, tmp_path, formats="threejs,glb", in_place=True)
    poses = shown(obj, range(1, 9))
    clips = clips_in(tmp_path / "walk.clip.json")
    assert list(clips) == ["walk", "walk root"]
    assert json.loads(clips["walk root"]["userData"])["root_of"] == "walk"
    way = tracks_of(clips["walk root"])
    assert set(way) == {".position", ".quaternion"}
    played = play(tmp_path / "Armature.glb", [f * seconds for f in range(8)], clips=tmp_path / "walk.clip.json", clip="walk")
    hips = str(played["names"].index("pelvis"))
    places = np.array([frame["places"][hips][:3] for frame in played["frames"]])
    assert np.ptp(places[:, [0, 2]], axis=0).max() < 1e-4
    for f, frame in enumerate(played["frames"]):
        x, y, z, w = way[".quaternion"][1][f if len(way[".quaternion"][1]) > 2 else 0]
        turn = np.array(mathutils.Quaternion((w, x, y, z)).to_matrix())
        for i, name in enumerate(played["names"]):
            if name in poses[f]:
                at = turn @ frame["places"][str(i)][:3] + way[".position"][1][f]
                assert np.linalg.norm(at - h.C @ poses[f][name][:3, 3]) < LIMIT


def face(obj: bpy.types.Object) -> bpy.types.Object:
    """A mesh on the rig with two shape keys, of one material."""
    mesh = bpy.data.meshes.new("Face")
    mesh.from_pydata([(0, 0, 1.6), (0.1, 0, 1.6), (0, 0, 1.7)], [], [(0, 1, 2)])
    one = bpy.data.objects.new("Face", mesh)
    bpy.context.scene.collection.objects.link(one)
    one.parent = obj
    one.modifiers.new("Armature", "ARMATURE").object = obj
    one.vertex_groups.new(name="head").add([0, 1, 2], 1.0, "REPLACE")
    for name in ("Basis", "smile", "blink [L]"):
        key = one.shape_key_add(name=name)
        key.data[1].co.x += 0.02
    return one


def test_morph_targets_by_name_and_by_number(tmp_path):
    seconds = h.set_rate(30)
    obj = body()
    one = face(obj)
    act(obj, "talk", range(1, 5), {"head": (20, 0, 0)})
    blocks = one.data.shape_keys.key_blocks
    for frame, value in ((1, 0.0), (4, 0.9)):
        blocks["smile"].value, blocks["blink [L]"].value = value, 0.5 * value
        for name in ("smile", "blink [L]"):
            blocks[name].keyframe_insert("value", frame=frame)
    for by_name in (True, False):
        write(obj, tmp_path, formats="threejs,glb", morph_names=by_name)
        tracks = set(tracks_of(clips_in(tmp_path / "talk.clip.json")["talk"]))
        expected = {"Face.morphTargetInfluences[smile]" if by_name else "Face.morphTargetInfluences[0]", "Face.morphTargetInfluences[1]"}
        assert tracks == {"head.quaternion", *expected}
        for more in ({"clips": tmp_path / "talk.clip.json"}, {}):
            played = play(tmp_path / "Body.glb", [0.0, 3 * seconds], **more)
            np.testing.assert_allclose(played["frames"][1]["morphs"], [[0.9, 0.45]], atol=1e-4)
    assert run("validate.mjs", [str(tmp_path / "Body.glb")])[0]["errors"] == 0


def test_time_code_and_contacts_travel_as_numbers_that_hold(tmp_path):
    seconds = h.set_rate(30)
    obj = body()
    act(obj, "coded", range(1, 9), {"head": (20, 0, 0)})
    for frame, value in zip(range(1, 9), (3, 3, 3, 4, 4, 4, 4, 4), strict=True):
        obj["TCSecond"] = value
        obj.keyframe_insert('["TCSecond"]', frame=frame)
    for curve in _curves(obj):
        if "TC" in curve.data_path:
            for key in curve.keyframe_points:
                key.interpolation = "CONSTANT"
    write(obj, tmp_path, formats="threejs,glb")
    (track,) = [t for t in clips_in(tmp_path / "coded.clip.json")["coded"]["tracks"] if "TC" in t["name"]]
    assert track == {
        "name": ".userData[TCSecond]",
        "type": "number",
        "times": [0.0, 0.1, 0.2333333],
        "values": [3.0, 4.0, 4.0],
        "interpolation": 2300,
    }
    played = play(tmp_path / "Body.glb", [2.9 * seconds, 3.1 * seconds], clips=tmp_path / "coded.clip.json")
    assert [frame["data"]["TCSecond"] for frame in played["frames"]] == [3, 4]
    extras = play(tmp_path / "Body.glb", [0.0])["userData"]
    assert extras["curves"]["TCSecond"] == {"times": [0.0, 0.1, 0.233333], "values": [3.0, 4.0, 4.0]}


def _curves(obj: bpy.types.Object) -> list:
    from mocap_addon.blender import compat

    return compat.moving_curves(obj.animation_data)


def test_chosen_bones_the_manifest_and_same_bones(tmp_path):
    obj = body()
    act(obj, "a", range(1, 5), {"head": (20, 0, 0), "spine": (5, 0, 0)})
    act(obj, "b", range(1, 5), {"head": (30, 0, 0), "arm.L": (5, 0, 0)})
    write(obj, tmp_path, ["a", "b"], bones=("head", "arm.L"), together=True)
    clips = clips_in(tmp_path / "Body.clips.json")
    assert set(tracks_of(clips["a"])) == set(tracks_of(clips["b"])) == {"head.quaternion", "armL.quaternion"}
    assert tracks_of(clips["a"])["armL.quaternion"][0].tolist() == [0.0, 0.125]
    listed = json.loads((tmp_path / "Body.manifest.json").read_text())
    assert [(c["name"], c["uuid"], c["duration"], c["tracks"]) for c in listed["clips"]] == [
        (name, clip["uuid"], clip["duration"], 2) for name, clip in clips.items()
    ]
    assert listed["bones"]["armL"] == "arm.L"
    write(obj, tmp_path, ["a", "b"], same_bones=False)
    assert set(tracks_of(clips_in(tmp_path / "Body.clips.json")["a"])) == {"head.quaternion", "spine.quaternion"}
    with pytest.raises(MocapError, match="has no bone called"):
        write(obj, tmp_path, ["a"], bones=("tail",))
    with pytest.raises(MocapError, match="moves nothing"):
        write(obj, tmp_path, ["a"], bones=("leg.L",))


def test_the_same_export_twice_is_the_same_to_the_byte(tmp_path):
    obj = body()
    act(obj, "swing", range(1, 30), SWING, "hips")
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    for folder in ("one", "two"):
        write(obj, tmp_path / folder, formats="threejs,glb", bound=LIMIT)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_vrm_animation_in_three_vrm(tmp_path):
    seconds = h.set_rate(30)
    obj = h.skinned(CHARACTERS["vrm"])
    result = retarget_onto(obj, formats.read(need(SHARED / "cmu" / "asf_02_03_run_jog.bvh"))[0])
    write(obj, tmp_path, formats="vrma", bound=5e-5)
    frames = list(range(0, len(result.motion.times), 5))
    poses = shown(obj, [1 + f for f in frames])
    path = str(tmp_path / f"{result.action.name}.vrma")
    times = [f * seconds for f in frames]
    played = run("play_vrma.mjs", {"character": str(h.TARGETS / CHARACTERS["vrm"]), "vrma": path, "times": times})
    assert played["printed"] == []
    seen = 0
    for pose, frame in zip(poses, played["frames"], strict=True):
        for role, at in frame.items():
            assert np.linalg.norm(np.array(at) - h.C @ pose[played["names"][role]][:3, 3]) < LIMIT, role
            seen += 1
    assert seen > 20 * len(frames)
    assert run("validate.mjs", [path]) == [{"errors": 0, "warnings": 0, "codes": []}]


@pytest.mark.parametrize("character", ["scale001", pytest.param("metres", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("preset", ["unreal", pytest.param("unity", marks=pytest.mark.thorough)])
def test_fbx_comes_back_into_blender_as_it_was(tmp_path, preset, character):
    h.set_rate(30)
    obj = h.skinned(CHARACTERS[character])
    names = list(obj.data.bones.keys())
    act(obj, "swing", range(1, 9), {names[k]: (25, -10, 5 * k) for k in range(2, 12)}, names[1], size=1.0 / obj.matrix_world.to_scale()[0])
    poses = shown(obj, range(1, 9))
    other = bpy.data.objects.new("Somebody", None)  # a name that the file needs is taken, and lent
    other.name = "Armature"
    obj.name = "Hero"
    other.name = "Armature"
    write(obj, tmp_path, ["swing"], "fbx", fbx=preset)
    assert (obj.name, other.name) == ("Hero", "Armature")
    bpy.ops.wm.read_factory_settings(use_empty=True)
    h.set_rate(30)
    if "fbx_import" in dir(bpy.ops.wm):
        bpy.ops.wm.fbx_import(filepath=str(tmp_path / "swing.fbx"))
    else:
        bpy.ops.import_scene.fbx(filepath=str(tmp_path / "swing.fbx"))
    (back,) = [o for o in bpy.data.objects if o.type == "ARMATURE"]
    assert back.name == "Armature"
    assert set(back.data.bones.keys()) == set(names)  # no leaf bones
    assert any(o.type == "MESH" and o.find_armature() == back for o in bpy.data.objects)
    first = back.animation_data.action.frame_range[0]
    for pose, again in zip(poses, shown(back, [first + f for f in range(8)]), strict=True):
        for name in names:
            assert np.linalg.norm(pose[name][:3, 3] - again[name][:3, 3]) < LIMIT


def test_bvh_of_any_action(tmp_path):
    h.set_rate(30)
    obj = body()
    act(obj, "swing", range(1, 9), SWING, "hips")
    obj.animation_data.action = None
    write(obj, tmp_path, ["swing"], "bvh")
    take = formats.read(tmp_path / "swing.bvh")[0]
    obj.animation_data.action = bpy.data.actions["swing"]
    if hasattr(obj.animation_data, "action_slot"):
        obj.animation_data.action_slot = bpy.data.actions["swing"].slots[0]
    for k, pose in enumerate(shown(obj, range(1, 9))):
        for j, name in enumerate(take.skeleton.names):
            assert np.linalg.norm(take.global_positions[k, j] - pose[name][:3, 3]) < LIMIT


def test_characters_with_nla_strips_export_what_is_seen(tmp_path):
    seconds = h.set_rate(24)
    obj = body()
    one = act(obj, "one", range(1, 7), {"arm.L": (60, 0, 0)})
    obj.animation_data.action = None
    track = obj.animation_data.nla_tracks.new()
    track.strips.new("one", 10, one)
    write(obj, tmp_path, [""], "threejs,glb", names=["mix"])
    played = play(tmp_path / "Body.glb", [0.0, 5 * seconds], clips=tmp_path / "mix.clip.json")
    assert apart(played, shown(obj, (10, 15))) < LIMIT
    assert [clip["name"] for clip in play(tmp_path / "Body.glb", [0.0])["clips"]] == ["mix"]


def test_one_rig_among_many_and_wrong_wishes(tmp_path):
    obj = body()
    act(obj, "swing", range(1, 5), SWING)
    make_rig([("only", None, (0, 0, 0), (0, 0, 1), 0.0)], "Small")
    with pytest.raises(MocapError, match="is not an export format"):
        write(obj, tmp_path, ["swing"], "obj")
    with pytest.raises(MocapError, match="no action called"):
        write(obj, tmp_path, ["none"])
    with pytest.raises(MocapError, match="No action is chosen"):
        write(obj, tmp_path, [])
    with pytest.raises(MocapError, match="no such folder"):
        write(obj, tmp_path / "none", ["swing"])
    with pytest.raises(MocapError, match="moves no bone"):
        write(bpy.data.objects["Small"], tmp_path, ["swing"])
    assert list(tmp_path.iterdir()) == []


def test_files_never_take_each_others_names_nor_the_characters(tmp_path):
    obj = body("Hero")
    for name in ("a/b", "a:b", "A_b"):
        act(obj, name, range(1, 4), {"head": (20, 0, len(name) + ord(name[1]))})
    write(obj, tmp_path, ["a/b", "a:b", "A_b"], "threejs,bvh", together=False)
    names = {p.name for p in tmp_path.iterdir()}
    assert {"a_b.bvh", "a_b 2.bvh", "A_b 3.bvh", "a_b.clip.json", "a_b 2.clip.json", "A_b 3.clip.json"} <= names
    write(obj, tmp_path, ["a/b"], "glb")
    before = (tmp_path / "Hero.glb").read_bytes()
    with pytest.raises(MocapError, match="the file the character came from"):
        write(obj, tmp_path, ["a:b"], "glb", character=tmp_path / "Hero.glb")
    assert (tmp_path / "Hero.glb").read_bytes() == before


@pytest.mark.parametrize(
    "state", ["edit mode", pytest.param("pose mode", marks=pytest.mark.thorough), "hidden", "rest position", "one frame"]
)
def test_whatever_state_the_character_is_in(tmp_path, state):
    obj = body()
    act(obj, "swing", [3] if state == "one frame" else range(1, 5), SWING)
    bpy.context.view_layer.objects.active = obj
    expected = shown(obj, (3 if state == "one frame" else 4,))
    if state in ("edit mode", "pose mode"):
        bpy.ops.object.mode_set(mode=state.split()[0].upper())
    elif state == "hidden":
        obj.hide_set(True)
        obj.hide_viewport = True
    elif state == "rest position":
        obj.data.pose_position = "REST"
    mode = obj.mode
    write(obj, tmp_path, formats="threejs,glb,fbx,bvh")
    assert obj.mode == mode
    played = play(tmp_path / "Body.glb", [0.0 if state == "one frame" else 3 / 24], clips=tmp_path / "swing.clip.json")
    assert apart(played, expected) < LIMIT
    assert played["duration"] > 0.0


@pytest.mark.thorough
def test_in_chromium_as_in_blender(tmp_path):
    """A page on the web, with the character's materials and textures: where its bones are, and nothing in the console."""
    from tests import browser
    from tests.node import HERE

    seconds = h.set_rate(30)
    obj = h.skinned("mh_mixamo_names_scale001.glb")
    result = retarget_onto(obj, formats.read(need(SHARED / "cmu" / "asf_02_03_run_jog.bvh"))[0])
    write(obj, tmp_path, formats="threejs,glb", bound=LIMIT)
    frames = [0, 7, 20, 41]
    poses = shown(obj, [1 + f for f in frames])
    roots = {"page": ROOT / "tests" / "browser", "three": HERE / "node_modules" / "three", "case": tmp_path}
    for clips in (f"/case/{result.action.name}.clip.json", None):
        asked = {"character": "/case/Armature.glb", "clips": clips, "times": [f * seconds for f in frames]}
        (tmp_path / "request.json").write_text(json.dumps(asked))
        found = browser.ask("page/clips.html", roots)
        assert "error" not in found, found
        assert found["said"] == []
        for pose, places in zip(poses, found["frames"], strict=True):
            for name, m in pose.items():
                assert np.linalg.norm(np.array(places[name]) - h.C @ m[:3, 3]) < 1.1 * LIMIT
