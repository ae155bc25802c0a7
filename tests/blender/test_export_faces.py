# SPDX-License-Identifier: GPL-3.0-or-later
"""Shape keys out of Blender: FBX read back by Blender, VRM expressions by three-vrm, meshes of several materials in three.js."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import bpy
import numpy as np
import pytest

from mocap_addon.blender import compat, export
from mocap_addon.blender.export import ExportOptions
from tests.blender import export_helpers as h
from tests.node import run

FRAMES = range(1, 9)
VRM = "mh_vrm1_tpose.vrm"


def weights(name: str) -> list[float]:
    """What each shape key does, frame by frame."""
    phase = np.linspace(0.0, 1.0, len(FRAMES))
    return (np.abs(np.sin(3.0 * phase + len(name))) * 0.9).tolist()


def moved(mesh: bpy.types.Object, names: list[str]) -> None:
    """Shape keys of these names, each with keys of its own on every frame."""
    if mesh.data.shape_keys is None:
        mesh.shape_key_add(name="Basis")
    for name in names:
        block = mesh.shape_key_add(name=name)
        for point in block.data:
            point.co.z += 0.01 * (1 + len(name))
        for frame, value in zip(FRAMES, weights(name), strict=True):
            block.value = value
            block.keyframe_insert("value", frame=frame)


def face(obj: bpy.types.Object, name: str, materials: int = 1) -> bpy.types.Object:
    """A mesh of several triangles on the head, each with a material of its own."""
    mesh = bpy.data.meshes.new(name)
    points = [(0.1 * x, 0.0, 1.6 + 0.1 * (x % 2)) for x in range(materials + 2)]
    mesh.from_pydata(points, [], [(k, k + 1, k + 2) for k in range(materials)])
    for k in range(materials):
        mesh.materials.append(bpy.data.materials.new(f"material {k}"))
        mesh.polygons[k].material_index = k
    one = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(one)
    one.parent = obj
    one.modifiers.new("Armature", "ARMATURE").object = obj
    one.vertex_groups.new(name="head").add(range(len(points)), 1.0, "REPLACE")
    return one


@pytest.mark.parametrize("preset", ["unreal", pytest.param("unity", marks=pytest.mark.thorough)])
def test_fbx_holds_shape_keys_and_what_they_do(tmp_path, preset):
    """Two meshes with a key of one name that do different things, one of them below a modifier that would make Blender leave it out."""
    h.set_rate(30)
    obj = h.body()
    first, second = face(obj, "Face"), face(obj, "Teeth")
    h.act(obj, "talk", FRAMES, {"head": (20, 0, 10)}, "hips")
    moved(first, ["smile", "jawOpen"])
    moved(second, ["open"])
    second.data.shape_keys.key_blocks["open"].name = "smile"  # another motion under a name that the other mesh has
    second.modifiers.new("Smooth", "SUBSURF")
    before = {b.name: b.value for b in first.data.shape_keys.key_blocks}
    report = export.export_actions(obj, [""], tmp_path, ExportOptions(("fbx",), fbx=preset, bound=None), names=["talk"])
    assert [note for note in report.notes if "Smooth" in note and "Teeth" in note] and len(second.modifiers) == 2
    assert before == {b.name: b.value for b in first.data.shape_keys.key_blocks}
    assert not any("mocap" in str(one.__module__) for one in bpy.app.handlers.frame_change_post)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    h.set_rate(30)
    bpy.ops.import_scene.fbx(filepath=str(tmp_path / "talk.fbx"))
    meshes = {one.name: one for one in bpy.data.objects if one.type == "MESH"}
    start = min(a.frame_range[0] for a in bpy.data.actions)
    for mesh, key, curve in (("Face", "smile", "smile"), ("Face", "jawOpen", "jawOpen"), ("Teeth", "smile", "open")):
        found = []
        for frame in range(len(FRAMES)):
            bpy.context.scene.frame_set(int(start) + frame)
            found.append(meshes[mesh].data.shape_keys.key_blocks[key].value)
        np.testing.assert_allclose(found, weights(curve), atol=1e-5)


def with_expressions(path: Path, target: Path, expressions: dict) -> Path:
    """A VRM character with more in its JSON."""
    content = path.read_bytes()
    length = struct.unpack("<I", content[12:16])[0]
    data = json.loads(content[20 : 20 + length])
    data["extensions"]["VRMC_vrm"]["expressions"] = expressions
    text = json.dumps(data).encode()
    text += b" " * (-len(text) % 4)
    body = struct.pack("<I4s", len(text), b"JSON") + text + content[20 + length :]
    target.write_bytes(struct.pack("<4sII", b"glTF", 2, 12 + len(body)) + body)
    return target


def test_vrm_expressions_come_back_in_three_vrm(tmp_path):
    seconds = h.set_rate(30)
    obj = h.skinned(VRM)
    h.act(obj, "talk", FRAMES, {"head": (20, 0, 10)}, "pelvis")
    (mesh,) = [one for one in obj.children_recursive if one.type == "MESH"]
    moved(mesh, ["Fcl_MTH_A", "Blink_L", "Tongue Out Far", "happy"])
    report = export.export_actions(obj, [""], tmp_path, ExportOptions(("vrma",), bound=1e-4), names=["talk"])
    assert report.notes == ()
    names = {"preset": {"aa": "Fcl_MTH_A", "blinkLeft": "Blink_L", "happy": "happy"}, "custom": {"Tongue Out Far": "Tongue Out Far"}}
    known = {kind: {name: {"morphTargetBinds": []} for name in found} for kind, found in names.items()}
    character = with_expressions(h.TARGETS / VRM, tmp_path / "hero.vrm", known)
    path = str(tmp_path / "talk.vrma")
    times = [k * seconds for k in range(len(FRAMES))]
    played = run("play_vrma.mjs", {"character": str(character), "vrma": path, "times": times})
    assert played["printed"] == []
    assert {kind: set(found) for kind, found in played["found"].items()} == {kind: set(found) for kind, found in names.items()}
    for kind in names.values():
        for name, curve in kind.items():
            np.testing.assert_allclose([frame[name] for frame in played["expressions"]], weights(curve), atol=2e-4)
    assert run("validate.mjs", [path]) == [{"errors": 0, "warnings": 0, "codes": []}]


def test_the_characters_own_file_says_which_expression_a_morph_is(tmp_path):
    """A target that an expression moves by half: the expression is twice its weight. The gaze has no expressions in the format."""
    from mocap_addon.blender import vrm_expressions

    curve = np.array([0.0, 0.2, 0.5])
    data = {
        "asset": {"version": "2.0"},
        "nodes": [{"name": "Face", "mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {}, "targets": [{}, {}]}], "extras": {"targetNames": ["m_01", "m_02"]}}],
        "extensions": {
            "VRMC_vrm": {
                "expressions": {
                    "preset": {"surprised": {"morphTargetBinds": [{"node": 0, "index": 1, "weight": 0.5}]}},
                    "custom": {"both": {"morphTargetBinds": [{"node": 0, "index": k, "weight": 1.0} for k in (0, 1)]}},
                }
            }
        },
    }
    path = tmp_path / "hero.gltf"
    path.write_text(json.dumps(data))
    found, notes = vrm_expressions.of_shapes({"Face": {"m_01": curve, "m_02": curve, "lookUp": curve, "still": 0.0 * curve}}, path)
    assert set(found) == {("custom", "m_01"), ("preset", "surprised")}
    np.testing.assert_allclose(found["preset", "surprised"], [0.0, 0.4, 1.0])
    np.testing.assert_allclose(found["custom", "m_01"], curve)
    assert len(notes) == 1 and "lookUp" in notes[0]


@pytest.mark.parametrize("named_alike", [True, False])
def test_meshes_of_several_materials_without_a_character_file(tmp_path, named_alike):
    """Clips alone, for what Blender exports: three.js makes one object of each material, and each gets its track."""
    seconds = h.set_rate(30)
    obj = h.body()
    one, other = face(obj, "Face", 3), face(obj, "Teeth", 2)
    if not named_alike:
        one.data.name = "face data"
        other.name = "face_data_1"  # what three.js would call a part
    loose = face(obj, "Loose")
    loose.parent = None  # moved by its modifier alone
    h.act(obj, "talk", FRAMES, {"head": (20, 0, 10)}, "hips")
    for mesh in (one, other, loose):
        moved(mesh, ["smile"])
    h.write(obj, tmp_path, [""], names=["talk"])
    path = tmp_path / "character.glb"
    bpy.ops.export_scene.gltf(filepath=str(path), export_animations=False, export_rest_position_armature=True)
    played = h.play(path, [k * seconds for k in range(len(FRAMES))], clips=tmp_path / "talk.clip.json")
    tracks = [name for name in played["bound"] if "morph" in name]
    assert len(tracks) == 6
    for frame, value in zip(played["frames"], weights("smile"), strict=True):
        np.testing.assert_allclose(frame["morphs"], [[value]] * 6, atol=1e-4)


def test_shape_keys_of_an_action_that_is_not_assigned_are_not_taken_from_another(tmp_path):
    h.set_rate(30)
    obj = h.body()
    one = face(obj, "Face")
    h.act(obj, "quiet", FRAMES, {"head": (20, 0, 10)})
    h.act(obj, "talk", FRAMES, {"head": (-20, 0, 10)})
    moved(one, ["smile"])
    report = export.export_actions(obj, ["quiet"], tmp_path, ExportOptions(("fbx",), bound=None))
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.import_scene.fbx(filepath=str(report.files[0].path))
    keys = next(one for one in bpy.data.objects if one.type == "MESH").data.shape_keys
    assert keys is not None and "smile" in keys.key_blocks
    moving = [] if keys.animation_data is None else compat.moving_curves(keys.animation_data)
    assert all(np.ptp([k.co[1] for k in curve.keyframe_points]) < 1e-6 for curve in moving)
