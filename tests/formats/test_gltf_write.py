# SPDX-License-Identifier: GPL-3.0-or-later
"""GLB files written by us: read back by our reader and by three.js, judged by Khronos' validator."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest

from mocap_addon.formats import clip_read, clip_reduce, gltf_clips, gltf_nodes, gltf_write, vrma
from mocap_addon.formats.gltf_clips import GlbWriting
from mocap_addon.formats.node_metric import Body
from mocap_addon.motion import quat
from mocap_addon.motion.errors import FileError, RigError
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import Take
from tests.formats.test_clip_reduce import chain, clip_on
from tests.node import run
from tests.paths import SHARED, need

TARGETS = SHARED / "targets"


def compacts(tree, bound=None, **more):
    return [clip_reduce.compact(clip_on(tree, **more), Body(tree, range(1, len(tree))), bound, GlbWriting())]


@pytest.mark.parametrize("bound", [None, 1e-4])
def test_clips_alone_come_back_number_by_number_and_are_valid(tmp_path, bound):
    tree = chain()
    done = compacts(tree, bound)
    path = tmp_path / "clips.glb"
    assert gltf_write.save(path, gltf_clips.skeleton(tree, done).glb()) == path.stat().st_size
    (found,) = clip_read.gltf(path, tree).values()
    meant = {(c.node, c.path): c for c in done[0].clip.channels}
    assert len(found) == len(meant)
    for c in found:
        np.testing.assert_allclose(c.values, meant[c.node, c.path].values, atol=1e-7)
        np.testing.assert_allclose(c.times, meant[c.node, c.path].times, atol=1e-7)
    assert run("validate.mjs", [str(path)]) == [{"errors": 0, "warnings": 0, "codes": []}]
    again = gltf_nodes.read_tree(path)
    assert set(again.loader_names) == set(tree.loader_names)


def test_the_same_times_are_stored_once():
    tree = chain()
    file = gltf_clips.skeleton(tree, compacts(tree))
    inputs = {s["input"] for s in file.data["animations"][0]["samplers"]}
    assert len(inputs) == 1


@pytest.mark.parametrize("name", ["mh_ue_names_apose.glb", "RobotExpressive.glb", "kaykit_manny/Med_MovementBasic.glb", "Fox.glb"])
def test_exchanging_animations_ten_times_makes_no_file_larger_and_touches_nothing_else(tmp_path, name):
    path = need(TARGETS / name)
    before = gltf_nodes.read_json(path)
    tree = gltf_nodes.read_tree(path)
    joints = sorted(tree.joints)
    clip = clip_on(chain())
    from dataclasses import replace

    channels = tuple(replace(c, node=joints[c.node]) for c in clip.channels)
    body = Body(tree, joints)
    done = [clip_reduce.compact(replace(clip, channels=channels), body, None, GlbWriting())]
    sizes = []
    for turn in range(3):
        out = tmp_path / f"{turn}.glb"
        gltf_write.save(out, gltf_clips.character(path if turn == 0 else tmp_path / f"{turn - 1}.glb", done).glb())
        sizes.append(out.stat().st_size)
    assert len(set(sizes)) == 1
    after = gltf_nodes.read_json(tmp_path / "2.glb")
    assert [a["name"] for a in after["animations"]] == ["swing"]
    for key in ("materials", "skins", "textures"):
        assert len(after.get(key, [])) == len(before.get(key, []))
    assert gltf_nodes.loader_names(after) == gltf_nodes.loader_names(before)
    report = run("validate.mjs", [str(path), str(tmp_path / "2.glb")])
    assert report[1]["errors"] == 0
    assert report[1]["warnings"] <= report[0]["warnings"]
    assert _mesh_bytes(path) == _mesh_bytes(tmp_path / "2.glb")


def _mesh_bytes(path) -> list[bytes]:
    """The values of everything that meshes and skins use, in their order."""
    file = gltf_write.read(path)
    from mocap_addon.formats.gltf_buffers import Buffers

    numbers = []
    for mesh in file.data.get("meshes", []):
        for primitive in mesh["primitives"]:
            numbers += [*primitive["attributes"].values(), primitive.get("indices")]
            numbers += [n for target in primitive.get("targets", []) for n in target.values()]
    numbers += [skin.get("inverseBindMatrices") for skin in file.data.get("skins", [])]
    buffers = Buffers(gltf_nodes.read_json(path), path)
    return [buffers.array(n).tobytes() for n in numbers if n is not None]


def test_a_character_keeps_its_animations_where_wanted(tmp_path):
    path = need(TARGETS / "Fox.glb")
    tree = gltf_nodes.read_tree(path)
    from dataclasses import replace

    clip = clip_on(chain(1))
    joint = min(tree.joints)
    clip = replace(clip, channels=tuple(replace(c, node=joint) for c in clip.channels))
    done = [clip_reduce.compact(clip, Body(tree, tree.joints), None, GlbWriting())]
    out = tmp_path / "fox.glb"
    gltf_write.save(out, gltf_clips.character(path, done, keep=True).glb())
    names = [a.get("name") for a in gltf_nodes.read_json(out)["animations"]]
    assert names == [*(a.get("name") for a in gltf_nodes.read_json(path)["animations"]), "swing"]
    assert run("validate.mjs", [str(out)])[0]["errors"] == 0


def test_files_with_unknown_extensions_lose_no_number():
    data = {
        "asset": {"version": "2.0"},
        "extensionsUsed": ["XY_own"],
        "animations": [{"samplers": [{"input": 0, "output": 1}], "channels": []}],
        "accessors": [{"bufferView": 0, "count": 1}, {"bufferView": 0, "count": 1}],
        "bufferViews": [{"buffer": 0, "byteOffset": 0, "byteLength": 8}],
        "extensions": {"XY_own": {"accessor": 1}},
    }
    file = gltf_write.GltfFile(data, bytearray(8))
    gltf_write.drop_animations(file)
    assert "animations" not in file.data
    assert len(file.data["accessors"]) == 2


def test_a_node_with_a_matrix_can_be_animated(tmp_path):
    matrix = np.eye(4)
    matrix[:3, :3] = quat.to_matrix(quat.from_axis_angle((0, 0, 1), 0.5)) * 2.0
    matrix[:3, 3] = (1, 2, 3)
    data = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"name": "a", "matrix": matrix.T.ravel().tolist()}],
    }
    (tmp_path / "a.gltf").write_text(json.dumps(data))
    tree = gltf_nodes.read_tree(tmp_path / "a.gltf")
    from dataclasses import replace

    clip = clip_on(chain(1))
    clip = replace(clip, channels=(replace(clip.channels[0], node=0),))
    out = tmp_path / "a.glb"
    gltf_write.save(out, gltf_clips.character(tmp_path / "a.gltf", [clip_reduce.compact(clip, Body(tree, [0]), None, GlbWriting())]).glb())
    node = gltf_nodes.read_json(out)["nodes"][0]
    assert "matrix" not in node and node["scale"] == pytest.approx([2, 2, 2])
    assert run("validate.mjs", [str(out)]) == [{"errors": 0, "warnings": 0, "codes": []}]


def test_pictures_beside_a_gltf_file_are_taken_in(tmp_path):
    path = need(TARGETS / "kaykit_manny" / "manny_med_mod.gltf")
    file = gltf_write.read(path)
    assert all("uri" not in image or image["uri"].startswith("data:") for image in file.data.get("images", []))
    (tmp_path / "a.glb").write_bytes(file.glb())
    assert run("validate.mjs", [str(tmp_path / "a.glb")])[0]["errors"] == 0


def test_damaged_files_are_one_sentence(tmp_path):
    path = tmp_path / "cut.glb"
    content = need(TARGETS / "Fox.glb").read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(FileError, match=r"^cut\.glb: .*\.$"):
        gltf_write.read(path)
    head = struct.pack("<4sII", b"glTF", 2, 20)
    path.write_bytes(head + struct.pack("<I4s", 0, b"JSON"))
    with pytest.raises(FileError):
        gltf_write.read(path)
    with pytest.raises(FileError, match="cannot be written"):
        gltf_write.save(tmp_path / "none" / "a.glb", b"")


def humanoid(arm_angle: float, heading: float) -> tuple[Take, dict[str, tuple[int, ...]]]:
    """A stick figure whose arms hang by an angle, that turns its spine by 0.5 rad in one frame."""
    down = np.radians(arm_angle)
    side = np.array([np.cos(down), 0.0, -np.sin(down)])
    rows = [("hips", -1, (0, 0, 1)), ("spine", 0, (0, 0, 0.2)), ("head", 1, (0, 0, 0.4))]
    for s, sign in (("left", 1), ("right", -1)):
        k = len(rows)
        arm = side * (sign, 1, 1) * 0.3
        rows += [(f"{s}UpperArm", 1, (0.2 * sign, 0, 0.3)), (f"{s}LowerArm", k, tuple(arm)), (f"{s}Hand", k + 1, tuple(arm))]
        rows += [(f"{s}UpperLeg", 0, (0.1 * sign, 0, 0)), (f"{s}LowerLeg", k + 3, (0, 0, -0.45)), (f"{s}Foot", k + 4, (0, 0, -0.45))]
    turn = quat.from_axis_angle((0, 0, 1), heading)
    offsets = np.array([r[2] for r in rows], dtype=float)
    rest = quat.identity(len(rows))
    rest[0] = turn
    offsets[0] = quat.rotate(turn, offsets[0])
    skeleton = Skeleton(tuple(r[0] for r in rows), np.array([r[1] for r in rows]), offsets, rest)
    rotations = np.repeat(rest[None], 2, axis=0)
    rotations[1, 1] = quat.from_axis_angle((1, 0, 0), 0.5)
    take = Take("bow", skeleton, np.array([0.0, 1 / 30]), rotations, np.repeat(offsets[None], 2, axis=0))
    return take, {name: (j,) for j, name in enumerate(skeleton.names)}


@pytest.mark.parametrize("heading", [0.0, 0.7])
@pytest.mark.parametrize("arm_angle", [0.0, 45.0])
def test_vrm_animations_are_counted_from_a_t_pose_that_faces_the_front(tmp_path, arm_angle, heading):
    """The first frame is the rest pose: with hanging arms it is 45 degrees from the T-pose; the bow is about the character's own left."""
    take, roles = humanoid(arm_angle, heading)
    path = tmp_path / "bow.vrma"
    vrma.write(path, take, roles)
    tree = gltf_nodes.read_tree(path)
    by_name = {name: n for n, name in enumerate(tree.names)}
    at = tree.global_matrices[:, :3, 3]
    np.testing.assert_allclose(at[by_name["leftHand"]] - at[by_name["leftUpperArm"]], [0.6, 0, 0], atol=1e-6)
    np.testing.assert_allclose(at[by_name["hips"]], [0, 1, 0], atol=1e-6)
    found = {(tree.names[c.node], c.path): c for c in clip_read.gltf(path, tree)["bow"]}
    np.testing.assert_allclose(np.abs(found["spine", "rotation"].values[1]), [np.cos(0.25), np.sin(0.25), 0, 0], atol=1e-6)
    arm = found["leftUpperArm", "rotation"].values[0]
    assert 2 * np.degrees(np.arccos(min(1.0, abs(arm[0])))) == pytest.approx(arm_angle, abs=1e-3)
    assert run("validate.mjs", [str(path)]) == [{"errors": 0, "warnings": 0, "codes": []}]


def test_vrm_animations_need_their_bones(tmp_path):
    take, roles = humanoid(0.0, 0.0)
    with pytest.raises(RigError, match="needs the bone leftHand"):
        vrma.write(tmp_path / "a.vrma", take, {k: v for k, v in roles.items() if k != "leftHand"})
    assert list(tmp_path.iterdir()) == []


def test_long_chains_are_spread_over_vrms_bones():
    found = vrma.humanoid_bones({"spine": (3, 4, 5, 6, 7), "leftIndex": (9, 10), "neck": (8,), "root": (0,)})
    assert found == {"spine": 3, "chest": 5, "upperChest": 7, "neck": 8, "leftIndexProximal": 9, "leftIndexIntermediate": 10}
