# SPDX-License-Identifier: GPL-3.0-or-later
"""FBX and Blender files as takes. The truth is the rig that the file was made from, read before it was written."""

from __future__ import annotations

from fractions import Fraction

import bpy
import numpy as np
import pytest

from mocap_addon.blender import compat, scenes, sources
from mocap_addon.blender.takes import EXTENSIONS, read_takes
from mocap_addon.formats import ReadOptions, content_hash
from mocap_addon.motion import quat
from mocap_addon.motion.errors import FileError, MocapError
from tests.blender import take_makers as make
from tests.blender.helpers import limb


def assert_same(a, b, *, positions: float = 1e-4, degrees: float = 0.02) -> None:
    """The same motion away from the same rest pose, whatever axes the bones have."""
    assert a.frames == b.frames and a.rate == b.rate
    picked = [a.skeleton.index(name) for name in b.skeleton.names]
    assert np.abs(a.global_positions[:, picked] - b.global_positions).max() < positions
    assert np.abs(a.skeleton.rest_global_positions[picked] - b.skeleton.rest_global_positions).max() < positions
    turned = quat.mul(a.global_rotations[:, picked], quat.inv(a.skeleton.rest_global_rotations[picked]))
    truth = quat.mul(b.global_rotations, quat.inv(b.skeleton.rest_global_rotations))
    assert np.degrees(quat.angle(turned, truth)).max() < degrees


def emptied():
    bpy.ops.wm.read_factory_settings(use_empty=True)


# --- FBX -----------------------------------------------------------------------------------------------------------------------------


def test_every_stack_of_an_fbx_file(tmp_path):
    obj = make.bvh_rig()
    make.skin(obj)
    make.second_action(obj, "Far walk")
    truth = {name: sources.read_rig(obj, action=name) for name in ("Walk", "Far walk")}
    path = make.save_fbx(tmp_path / "file.fbx", all_actions=True)
    emptied()
    bpy.data.actions.new("Walk")  # a name that is taken
    takes = read_takes(path)
    assert sorted(t.name for t in takes) == ["Far walk", "Walk"]
    for take in takes:
        assert take.rate == 120 and take.facts["format"] == "FBX" and take.facts["evaluated"] == "curves"
        assert take.facts["path"] == str(path) and take.facts["hash"] == content_hash(path)
        assert not take.notes
        assert_same(take, truth[take.name])
    travel = {t.name: float(np.linalg.norm(np.ptp(t.global_positions[:, 0], axis=0))) for t in takes}
    assert travel["Far walk"] > 1.5 * travel["Walk"]


def test_a_single_stack_without_a_name_of_its_own_is_called_after_the_file(tmp_path):
    obj = make.bvh_rig(name="Scene")
    make.skin(obj)
    path = make.save_fbx(tmp_path / "Old man walking.fbx")
    emptied()
    assert [t.name for t in read_takes(path)] == ["Old man walking"]


def test_a_skeleton_without_skin_is_told(tmp_path):
    obj = make.bvh_rig()
    path = make.save_fbx(tmp_path / "file.fbx")
    emptied()
    (take,) = read_takes(path)
    assert any("no skin" in note for note in take.notes)
    assert take.rate == 120 and len(take.skeleton) == 31
    assert obj is not None


@pytest.mark.parametrize("rate", [Fraction(24), Fraction(30), Fraction(60)])
def test_the_rate_is_that_of_the_keys(tmp_path, rate):
    obj = make.bvh_rig()
    make.skin(obj)
    bpy.context.scene.render.fps = int(rate)
    truth = sources.read_rig(obj)
    path = make.save_fbx(tmp_path / "file.fbx")
    emptied()
    scenes.set_rate(bpy.context.scene, Fraction(25))
    (take,) = read_takes(path)
    assert take.rate == rate and take.duration == pytest.approx(59 / float(rate))
    assert_same(take, truth)
    assert scenes.scene_rate(bpy.context.scene) == 25


def test_keys_closer_than_frames_are_kept(tmp_path):
    """A file that says 24 frames a second and holds 120 keys in each."""
    obj = make.bvh_rig()
    make.skin(obj)
    dense = sources.read_rig(obj)
    for curve in compat.all_curves(obj.animation_data.action):
        for point in curve.keyframe_points:
            point.co.x = 1.0 + (point.co.x - 1.0) / 5.0
        curve.update()
    scene = bpy.context.scene
    scene.render.fps, scene.frame_end = 24, 13
    path = make.save_fbx(tmp_path / "file.fbx", bake_anim_step=0.2)
    blend = make.save_blend(tmp_path / "file.blend")
    emptied()
    (take,) = read_takes(path)
    assert take.rate == 120 and take.frames in (60, 61)  # the exporter also bakes the frame after the last key
    cut = take.block(0, 60)
    assert_same(cut, dense)
    (take,) = read_takes(blend)
    assert_same(take, dense)


# --- Blender files -------------------------------------------------------------------------------------------------------------------


def test_actions_of_a_blender_file(tmp_path):
    obj = make.bvh_rig()
    make.second_action(obj, "Far walk")
    truth = {name: sources.read_rig(obj, action=name) for name in ("Walk", "Far walk")}
    path = make.save_blend(tmp_path / "file.blend")
    emptied()
    bpy.data.actions.new("Walk")
    takes = read_takes(path)
    assert sorted(t.name for t in takes) == ["Far walk", "Walk"]
    for take in takes:
        assert take.rate == 120 and take.facts["format"] == "Blender"
        assert_same(take, truth[take.name], positions=1e-9, degrees=1e-6)


def test_rate_unit_and_strips_are_the_files(tmp_path):
    obj = make.bvh_rig()
    scene = bpy.context.scene
    scene.render.fps, scene.unit_settings.scale_length = 25, 0.5
    action = obj.animation_data.action
    slot = compat.assigned_slot(obj.animation_data)
    obj.animation_data.action = None
    strip = obj.animation_data.nla_tracks.new().strips.new("Walk", 11, action)
    if compat.SLOTTED:
        strip.action_slot = slot
    strip.scale = 2.0
    truth, plain = sources.read_rig(obj), sources.read_rig(obj, action="Walk")
    path = make.save_blend(tmp_path / "file.blend")
    emptied()
    takes = {t.name: t for t in read_takes(path)}
    assert set(takes) == {"Source NLA", "Walk"}
    assert takes["Source NLA"].rate == 25 and takes["Source NLA"].frames == 119
    assert_same(takes["Source NLA"], truth, positions=1e-6, degrees=1e-3)
    assert_same(takes["Walk"], plain, positions=1e-9, degrees=1e-6)


def test_armatures_with_the_same_bones(tmp_path):
    obj = make.bvh_rig()
    other = obj.copy()
    other.data = obj.data.copy()
    other.name = "Second"
    other.animation_data.action = make.second_action(obj, "Far walk")
    if compat.SLOTTED:
        other.animation_data.action_slot = other.animation_data.action.slots[0]
    bpy.context.scene.collection.objects.link(other)
    loose = make.second_action(obj, "Loose")
    assert loose.users == 1
    path = make.save_blend(tmp_path / "file.blend")
    emptied()
    found = sorted((t.name, t.facts["object"]) for t in read_takes(path))
    assert found == [("Far walk", "Second"), ("Loose", "Second"), ("Walk", "Source")]  # nothing says whose the loose one is: the first's


def test_a_rig_that_has_to_be_evaluated(tmp_path):
    obj = make.bvh_rig()
    goal = bpy.data.objects.new("Goal", None)
    bpy.context.scene.collection.objects.link(goal)
    goal.location = (1, -2, 3)
    obj.pose.bones["head"].constraints.new("DAMPED_TRACK").target = goal
    truth = sources.read_rig(obj)
    assert truth.facts["evaluated"] == "depsgraph"
    path = make.save_blend(tmp_path / "file.blend")
    emptied()
    seen: list[float] = []
    (take,) = read_takes(path, progress=lambda share: seen.append(share))
    assert_same(take, truth, positions=1e-6, degrees=1e-3)
    assert seen[-1] == 1.0 and len(seen) == 60
    with pytest.raises(MocapError, match="cancelled"):
        read_takes(path, progress=lambda share: False)
    assert not bpy.data.objects


def test_a_file_without_scenes(tmp_path):
    obj = make.bvh_rig()
    truth = sources.read_rig(obj)
    path = tmp_path / "file.blend"
    bpy.data.libraries.write(str(path), {obj}, compress=True)
    emptied()
    scenes.set_rate(bpy.context.scene, Fraction(120))
    (take,) = read_takes(path)
    assert_same(take, truth, positions=1e-9, degrees=1e-6)
    assert not bpy.data.objects and not bpy.data.libraries


# --- nothing stays, nothing changes --------------------------------------------------------------------------------------------------


def busy_scene() -> None:
    """A person in the middle of work: in Pose Mode, with unkeyed changes, names that clash with the files'."""
    obj = limb("Source")
    image = bpy.data.images.new("Skin", 4, 4)
    material = bpy.data.materials.new("Skin")
    other = make.skin(obj)
    other.data.materials.append(material)
    assert image is not None
    bpy.context.view_layer.objects.active = obj
    obj.select_set(True)
    other.select_set(False)
    bone = obj.pose.bones[0]
    for frame in (1, 40):
        bone.location = (frame, 0, 0)
        bone.keyframe_insert("location", frame=frame)
    obj.animation_data.action.name = "Walk"
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base, scene.frame_start, scene.frame_end = 30, 1.001, 5, 77
    scene.unit_settings.scale_length = 0.01
    scene.frame_set(12, subframe=0.25)
    bpy.ops.object.mode_set(mode="POSE")
    bone.location = (9, 8, 7)
    obj.pose.bones[2].location = (1, 2, 3)
    bpy.context.view_layer.update()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    emptied()
    folder = tmp_path_factory.mktemp("files")
    obj = make.bvh_rig()
    make.skin(obj)
    make.second_action(obj, "Far walk")
    make.save_fbx(folder / "a.fbx", all_actions=True)
    make.save_blend(folder / "a.blend")
    make.save_glb(folder / "a.glb")
    return folder


@pytest.mark.parametrize("name", ["a.fbx", "a.blend", "a.glb"])
def test_the_open_file_is_left_alone(files, name):
    busy_scene()
    before = make.everything()
    assert len(read_takes(files / name)) == 2
    after = make.everything()
    assert after == before
    bpy.context.view_layer.update()
    assert make.everything() == before


@pytest.mark.parametrize("mode", ["OBJECT", "EDIT"])
@pytest.mark.parametrize("name", ["a.fbx", "a.blend"])
def test_in_other_modes(files, name, mode):
    busy_scene()
    bpy.ops.object.mode_set(mode=mode)
    before = make.everything()
    assert len(read_takes(files / name)) == 2
    assert make.everything() == before


@pytest.mark.parametrize("name", ["a.fbx", "a.blend"])
@pytest.mark.parametrize("harm", ["cut", "noise", "nothing"])
def test_damaged_files_end_in_a_sentence(files, tmp_path, name, harm):
    busy_scene()
    raw = bytearray((files / name).read_bytes())
    if harm == "cut":
        raw = raw[: len(raw) // 3]
    elif harm == "noise":
        rng = np.random.default_rng(1)
        raw[200:] = rng.integers(0, 256, len(raw) - 200, dtype=np.uint8).tobytes()
    else:
        raw = raw[:40]
    path = tmp_path / name
    path.write_bytes(raw)
    before = make.everything()
    with pytest.raises(FileError, match=f"^{name}: .*[.]$"):
        read_takes(path)
    assert make.everything() == before


def test_files_without_a_take(tmp_path):
    empty = make.save_blend(tmp_path / "empty.blend")
    limb("Rig")
    still = make.save_blend(tmp_path / "still.blend")
    emptied()
    with pytest.raises(FileError, match="no skeleton"):
        read_takes(empty)
    with pytest.raises(FileError, match="moves a skeleton"):
        read_takes(still)
    with pytest.raises(FileError, match="cannot be opened"):
        read_takes(tmp_path / "missing.fbx")
    assert not bpy.data.objects


def test_the_rest_goes_through_the_formats(tmp_path):
    (take,) = read_takes(make.WALK)
    assert take.facts["format"] == "BVH" and take.frames == 60
    disguised = tmp_path / "walk.fbx"
    disguised.write_bytes(make.WALK.read_bytes())
    assert read_takes(disguised)[0].facts["format"] == "BVH"
    assert {".bvh", ".mvnx", ".glb", ".gltf", ".vrma", ".fbx", ".blend"} <= set(EXTENSIONS)


def test_options(files):
    plain = read_takes(files / "a.blend")[0]
    asked = read_takes(files / "a.blend", ReadOptions(rate=Fraction(60), unit=0.1))[0]
    assert asked.rate == 60 and asked.duration == pytest.approx(2 * plain.duration)
    np.testing.assert_allclose(asked.global_positions, 0.1 * plain.global_positions)
    assert asked.facts["read"] == {"rate": "60", "unit": 0.1}
    turned = read_takes(files / "a.blend", ReadOptions(up="Y"))[0]
    np.testing.assert_allclose(turned.global_positions, plain.global_positions[..., [0, 2, 1]] * [1, -1, 1], atol=1e-12)
    rest = read_takes(files / "a.blend", ReadOptions(rest_up="Y"))[0]
    np.testing.assert_allclose(rest.global_positions, plain.global_positions, atol=1e-12)
    np.testing.assert_allclose(rest.skeleton.rest_global_positions, turned.skeleton.rest_global_positions, atol=1e-12)
