# SPDX-License-Identifier: GPL-3.0-or-later
"""Characters against what their own files say: node transforms and inverse bind matrices, read here with json and struct."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import bpy
import numpy as np
import pytest

from mocap_addon.blender import actions, armature, characters, compat, scenes
from mocap_addon.motion import quat
from mocap_addon.motion.errors import FileError
from mocap_addon.retarget.motion import PoseMotion
from tests.paths import SHARED, need

from .helpers import limb, make_rig, rest_matrices, snapshot

TARGETS = SHARED / "targets"
GLTF = {  # file: joints
    "mh_ue_names_apose.glb": 53,
    "mh_mixamo_names_scale001.glb": 52,
    "mh_cmu_names_boneaxes.glb": 31,
    "mh_vrm1_tpose.vrm": 53,
    "kaykit_manny/manny_med_mod.gltf": 21,
    "kaykit_manny/Med_MovementBasic.glb": 23,
    "Fox.glb": 24,
    "RobotExpressive.glb": 43,
}


def parse(path: Path) -> tuple[dict, bytes]:
    raw = path.read_bytes()
    if raw[:4] == b"glTF":
        length = struct.unpack("<I", raw[12:16])[0]
        return json.loads(raw[20 : 20 + length]), raw[28 + length :]
    tree = json.loads(raw)
    return tree, (path.parent / tree["buffers"][0]["uri"]).read_bytes()


def node_worlds(tree: dict) -> np.ndarray:
    """(N, 4, 4) by definition of the format: T R S (or a matrix by columns), down from the parents."""
    local, parent = [], {c: i for i, n in enumerate(tree["nodes"]) for c in n.get("children", [])}
    for node in tree["nodes"]:
        m = np.array(node.get("matrix", np.eye(4).ravel())).reshape(4, 4).T.copy()
        if "matrix" not in node:
            x, y, z, w = node.get("rotation", (0, 0, 0, 1))
            m[:3, :3] = [
                [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
                [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
                [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
            ] * np.array(node.get("scale", (1, 1, 1)))
            m[:3, 3] = node.get("translation", (0, 0, 0))
        local.append(m)

    def world(i):
        return (world(parent[i]) if i in parent else np.eye(4)) @ local[i]

    return np.array([world(i) for i in range(len(local))])


def bind_places(tree: dict, data: bytes) -> np.ndarray:
    accessor = tree["accessors"][tree["skins"][0]["inverseBindMatrices"]]
    start = tree["bufferViews"][accessor["bufferView"]].get("byteOffset", 0) + accessor.get("byteOffset", 0)
    m = np.frombuffer(data, np.float32, 16 * accessor["count"], start).reshape(-1, 4, 4).transpose(0, 2, 1)
    return np.linalg.inv(m.astype(np.float64))[:, :3, 3]


def distances(places: np.ndarray) -> np.ndarray:
    return np.linalg.norm(places[:, None] - places[None], axis=-1)


@pytest.mark.parametrize("file", GLTF)
def test_bones_stand_where_the_file_says(file):
    path = need(TARGETS / file)
    character = characters.bring_in(path)
    target = armature.read(character.armature)
    assert len(target.skeleton) == GLTF[file]
    tree, data = parse(path)
    joints = tree["skins"][0]["joints"]
    ours = [target.skeleton.index(tree["nodes"][i]["name"]) for i in joints]
    places = (target.skeleton.rest_global_positions + target.origin)[ours]
    exact = 2e-5 * np.ptp(places, axis=0).max()  # Blender chains rest matrices in float32, which shows in centimetre rigs
    bind = bind_places(tree, data)
    scale = 100.0 if file.startswith("Robot") else 1.0  # its bind matrices are in its armature node's space, which is scaled by 100
    assert np.abs(distances(places) - scale * distances(bind)).max() < exact
    if not file.startswith("Robot"):  # it is posed in its file
        turned = node_worlds(tree)[joints][:, :3, 3] @ np.array([[1, 0, 0], [0, 0, 1], [0, -1, 0]])  # Y up -> Z up: (x, -z, y)
        assert np.abs(places - turned).max() < exact
    parents = {c: i for i, n in enumerate(tree["nodes"]) for c in n.get("children", [])}
    for i, k in zip(joints, ours, strict=True):
        above = int(target.skeleton.parents[k])
        assert (parents[i] in joints) == (above >= 0)
        assert above < 0 or target.skeleton.names[above] == tree["nodes"][parents[i]]["name"]


@pytest.mark.parametrize("file", ["Fox.glb", "kaykit_manny/Med_MovementBasic.glb", "RobotExpressive.glb"])
def test_animations_of_the_file_are_kept_and_do_not_play(file):
    path = need(TARGETS / file)
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base, scene.frame_start, scene.frame_end = 30, 1.001, 5, 77
    scene.frame_set(12)
    character = characters.bring_in(path)
    assert (scene.render.fps, round(scene.render.fps_base, 5), scene.frame_start, scene.frame_end, scene.frame_current) == (
        30,
        1.001,
        5,
        77,
        12,
    )
    tree, _ = parse(path)
    assert len(character.actions) >= len(tree["animations"])
    assert all(a.use_fake_user and a.users == 1 for a in character.actions)
    assert any("kept as actions" in n for n in character.notes)
    rest = np.array([np.array(b.matrix_local) for b in character.armature.data.bones])
    for frame in (1, 20):
        scene.frame_set(frame)
        seen = character.armature.evaluated_get(bpy.context.evaluated_depsgraph_get())
        assert np.abs(np.array([np.array(b.matrix) for b in seen.pose.bones]) - rest).max() < 1e-4
    path = Path(bpy.app.tempdir) / "kept.blend"
    names = {a.name for a in character.actions}
    scenes.save_blend(path)
    bpy.ops.wm.open_mainfile(filepath=str(path))
    assert {a.name for a in bpy.data.actions} == names


def test_only_what_is_the_character_comes_in():
    path = need(TARGETS / "mh_ue_names_apose.glb")
    character = characters.bring_in(path)
    assert sorted(o.name for o in bpy.data.objects) == ["Armature", "Body"]
    assert set(character.objects) == set(bpy.data.objects) and character.notes == ()
    assert len(bpy.data.collections) == 0 and len(bpy.data.scenes) == 1


def test_a_second_character_leaves_selection_mode_and_the_first_alone():
    path = need(TARGETS / "mh_ue_names_apose.glb")
    first = characters.bring_in(path).armature
    first.select_set(True)
    bpy.context.view_layer.objects.active = first
    bpy.ops.object.mode_set(mode="POSE")
    first.pose.bones["head"].rotation_mode = "YXZ"
    first.pose.bones["head"].keyframe_insert("rotation_euler", frame=1)
    bpy.context.view_layer.update()
    before = snapshot(first)
    second = characters.bring_in(path).armature
    assert (second.name, second.mode, second.select_get()) == ("Armature.001", "OBJECT", False)
    assert bpy.context.view_layer.objects.active == first and first.mode == "POSE"
    after = snapshot(first)
    assert after["objects"] == before["objects"] and after["actions"] == before["actions"] and after["scene"] == before["scene"]
    assert characters.bring_in(path, armature="Armature").armature.name == "Armature.002"


def _blend(path: Path) -> list[str]:
    """A file as riggers make it: rig and mesh in a collection, a bone shape in none, hidden helpers, drivers, an action, a second scene."""
    scenes.fresh()
    rig, small = limb("Hero"), make_rig([("only", None, (0, 0, 0), (0, 0, 1), 0.0)], "Prop")
    group, helpers = bpy.data.collections.new("Hero files"), bpy.data.collections.new("Helpers")
    bpy.context.scene.collection.children.link(group)
    group.children.link(helpers)
    bpy.context.scene.collection.objects.unlink(rig)
    group.objects.link(rig)
    mesh = bpy.data.meshes.new("Skin")
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
    skin = bpy.data.objects.new("Skin", mesh)
    skin.modifiers.new("A", "ARMATURE").object = rig
    group.objects.link(skin)
    widget = bpy.data.objects.new("WGT", bpy.data.meshes.new("WGT"))
    rig.pose.bones[0].custom_shape = widget
    helpers.objects.link(bpy.data.objects.new("Guide", None))
    skin.hide_set(True)
    bpy.context.view_layer.layer_collection.children["Hero files"].children["Helpers"].exclude = True
    rig.pose.bones[0].rotation_quaternion = (0.5, 0.5, 0.5, 0.5)
    rig.pose.bones[0].keyframe_insert("location", frame=1)
    rig.animation_data.nla_tracks.new().strips.new("s", 1, rig.animation_data.action)
    rig.pose.bones[3].driver_add("location", 0)
    other = bpy.data.scenes.new("Second")
    other.collection.objects.link(bpy.data.objects.new("Elsewhere", bpy.data.meshes.new("Elsewhere")))
    small.location = (1, 0, 0)
    scenes.save_blend(path)
    names = [b.name for b in rig.data.bones]
    bpy.ops.wm.read_factory_settings(use_empty=True)
    return names


def test_a_blend_file_comes_in_as_it_is_arranged(tmp_path):
    names = _blend(tmp_path / "hero.blend")
    before = snapshot()["scene"]
    character = characters.bring_in(tmp_path / "hero.blend")
    rig = character.armature
    assert [b.name for b in rig.data.bones] == names and rig.name == "Hero"
    assert sorted(o.name for o in bpy.context.scene.objects) == ["Guide", "Hero", "Prop", "Skin"]
    assert rig.pose.bones[0].custom_shape == bpy.data.objects["WGT"]
    assert [c.name for c in bpy.context.scene.collection.children] == ["Hero files"] and len(bpy.data.scenes) == 1
    assert bpy.context.view_layer.layer_collection.children["Hero files"].children["Helpers"].exclude
    assert bpy.data.objects["Skin"].hide_get() and "Elsewhere" not in bpy.data.objects and "Elsewhere" not in bpy.data.meshes
    assert rig.animation_data.action is None and not rig.animation_data.nla_tracks and len(rig.animation_data.drivers) == 1
    assert np.allclose(rig.pose.bones[0].matrix_basis, np.eye(4))
    assert [a.use_fake_user for a in character.actions] == [True]
    assert any("2 armatures" in n for n in character.notes)
    assert snapshot()["scene"] == before
    assert not any(block.library for block in bpy.data.objects)


def test_the_armature_asked_for(tmp_path):
    _blend(tmp_path / "hero.blend")
    limb("Hero"), limb("Prop")
    assert characters.bring_in(tmp_path / "hero.blend", armature="Prop").armature.name == "Prop.001"
    before = snapshot()
    with pytest.raises(FileError, match='no armature called "Villain"; there is "Hero'):
        characters.bring_in(tmp_path / "hero.blend", armature="Villain")
    assert snapshot() == before
    assert characters.reopen(tmp_path / "hero.blend").name == "Hero"
    assert characters.reopen(tmp_path / "hero.blend", "Prop").name == "Prop"


def test_fbx_made_by_blender(tmp_path):
    rig = limb("Hero")
    rig.location = (0.5, 0, 0)
    names = [b.name for b in rig.data.bones]
    truth = rest_matrices(rig, names)[:, :3, 3]
    path = tmp_path / "hero.fbx"
    bpy.ops.export_scene.fbx(filepath=str(path), add_leaf_bones=False, bake_anim=True)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.context.scene.render.fps, bpy.context.scene.render.fps_base = 30, 1.001
    before = snapshot()["scene"]
    character = characters.bring_in(path)
    target = armature.read(character.armature)
    places = target.skeleton.rest_global_positions + target.origin
    assert np.abs(places[[target.skeleton.index(n) for n in names]] - truth).max() < 1e-5
    assert snapshot()["scene"] == before
    assert all(a.use_fake_user for a in bpy.data.actions)


def test_files_that_cannot_be_used_leave_nothing(tmp_path):
    rig = limb("Mine")
    rig.select_set(True)
    bpy.context.view_layer.update()
    scenes.save_blend(tmp_path / "armature_free.blend")
    before = snapshot()
    glb = need(TARGETS / "mh_ue_names_apose.glb").read_bytes()
    (tmp_path / "cut.glb").write_bytes(glb[: len(glb) // 2])
    (tmp_path / "noise.glb").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "empty.glb").write_bytes(b"")
    (tmp_path / "empty.vrm").write_bytes(b"")
    (tmp_path / "broken.gltf").write_text("{]")
    (tmp_path / "bare.gltf").write_text(
        '{"asset": {"version": "2.0"}, "scenes": [{"nodes": [0]}], "nodes": [{"name": "lonely"}], "scene": 0}'
    )
    (tmp_path / "noise.fbx").write_bytes(b"Kaydara" + bytes(range(256)))
    (tmp_path / "noise.blend").write_bytes(b"BLENDER-v" + bytes(range(256)))
    (tmp_path / "song.mp3").write_bytes(b"x")
    (tmp_path / "folder.glb").mkdir()
    expected = {"bare.gltf": "no armature", "song.mp3": "not a character file", "missing.glb": "no such file", "folder.glb": "no such file"}
    for path in [*sorted(tmp_path.iterdir()), tmp_path / "missing.glb"]:
        if path.name == "armature_free.blend":
            continue
        with pytest.raises(FileError, match=expected.get(path.name, "cannot read")) as caught:
            characters.bring_in(path)
        text = str(caught.value)
        assert (
            str(tmp_path) not in text
            and text.startswith(path.name + ": ")
            and "\n" not in text
            and "Traceback" not in text
            and len(text) < 350
        )
        assert snapshot() == before, path.name
    with pytest.raises(FileError, match=r"noise\.blend"):
        characters.reopen(tmp_path / "noise.blend")


def test_a_fault_after_the_import_removes_what_came_in(tmp_path, monkeypatch):
    _blend(tmp_path / "hero.blend")
    limb("Mine")
    bpy.context.view_layer.update()
    before = snapshot()
    blocks = {c: len(getattr(bpy.data, c)) for c in dir(bpy.data) if hasattr(getattr(bpy.data, c), "foreach_get")}
    monkeypatch.setattr(compat, "assign", lambda *_: 1 / 0)
    for file in (tmp_path / "hero.blend", need(TARGETS / "Fox.glb")):
        with pytest.raises(FileError):
            characters.bring_in(file)
        assert snapshot() == before
        assert {c: len(getattr(bpy.data, c)) for c in blocks} == blocks


def test_a_whole_job_on_a_real_character():
    """Not the retarget: keys on an imported character with a scaled, turned armature object move it as told."""
    path = need(TARGETS / "mh_mixamo_names_scale001.glb")
    obj = characters.bring_in(path).armature
    target = armature.read(obj)
    hips = target.skeleton.roots[0]
    up = np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.25]])
    local = quat.rotate(quat.inv(target.skeleton.rest_rotations[hips]), up)[:, None]
    motion = PoseMotion("lift", np.array([0.0, 1.0]), (), np.zeros((2, 0, 4)), (hips,), local)
    actions.write(obj, target, motion, name="lift", frame_start=1, recipe={})
    places = []
    for frame in (1, 25):
        bpy.context.scene.frame_set(frame)
        seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        places.append(np.array(seen.matrix_world @ seen.pose.bones[target.skeleton.names[hips]].head))
    assert np.abs(places[1] - places[0] - (0, 0, 0.25)).max() < 1e-6
