# SPDX-License-Identifier: GPL-3.0-or-later
"""A clip played by three.js puts every joint where Blender's evaluated pose has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import bpy
import mathutils
import numpy as np
import pytest

from mocap_addon.blender import armature, clips
from mocap_addon.motion import quat, timeline
from mocap_addon.motion.errors import FileError
from mocap_addon.retarget.motion import PoseMotion
from tests.node import run
from tests.paths import SHARED, need

TARGETS = SHARED / "targets"
METRES = ("mh_ue_names_apose.glb", "pelvis")
CENTIMETRES = ("mh_mixamo_names_scale001.glb", "mixamorig:Hips")
VRM = ("mh_vrm1_tpose.vrm", "pelvis")
CHARACTERS = [
    METRES,
    CENTIMETRES,
    VRM,
    ("mh_cmu_names_boneaxes.glb", "Hips"),
    ("kaykit_manny/manny_med_mod.gltf", "hips"),
    ("kaykit_manny/Med_MovementBasic.glb", "hips"),
    ("RobotExpressive.glb", "Hips"),
]
RATES = {  # the scene's fps and fps_base, and seconds a frame written out
    "24": (24, 1.0, 1 / 24),
    "29.97": (30, 1.001, 1.001 / 30),
    "30": (30, 1.0, 1 / 30),
    "120": (120, 1.0, 1 / 120),
}
FRACTIONS = {"24": Fraction(24), "29.97": Fraction(30000, 1001), "30": Fraction(30), "120": Fraction(120)}
FRAMES = 8
LIMIT = 1e-4


def bring(name: str) -> bpy.types.Object:
    bpy.ops.import_scene.gltf(filepath=str(need(TARGETS / name)))
    (obj,) = (o for o in bpy.data.objects if o.type == "ARMATURE")
    if obj.animation_data is not None:
        obj.animation_data_clear()
    for pose in obj.pose.bones:
        pose.rotation_mode = "QUATERNION"
    bpy.context.view_layer.update()
    return obj


def motion_for(target: armature.Target, hips: str, rate: Fraction, bones: Sequence[int] | None = None, seed: int = 5) -> PoseMotion:
    """Smooth turns up to 70 degrees on all bones, and a walk of 2 m with the hips."""
    rng = np.random.default_rng(seed)
    bones = range(len(target.skeleton)) if bones is None else bones
    times = timeline.uniform_times(FRAMES, rate)
    phase = np.linspace(0.0, 1.0, FRAMES)
    axis = rng.normal(size=(len(bones), 3))
    axis /= np.linalg.norm(axis, axis=1)[:, None]
    angle = np.radians(rng.uniform(10, 70, len(bones))) * np.sin(6 * phase[:, None] + rng.uniform(0, 6, len(bones)))
    rotations = quat.continuous(quat.from_axis_angle(axis, angle))
    at = target.skeleton.index(hips)
    world = np.stack([0.3 * np.sin(5 * phase), -2.0 * phase, 0.1 * np.cos(9 * phase)], axis=1)
    locations = quat.rotate(quat.inv(target.skeleton.rest_global_rotations[at]), world)
    return PoseMotion("random", times, tuple(bones), rotations, (at,), locations[:, None, :], rate=rate)


def key(obj: bpy.types.Object, target: armature.Target, motion: PoseMotion, first: int = 1) -> None:
    """Keys on the bones, one by one, with Blender's own call."""
    names = target.skeleton.names
    for k, j in enumerate(motion.bones):
        pose = obj.pose.bones[names[j]]
        for f, q in enumerate(motion.rotations[:, k]):
            pose.rotation_quaternion = q
            pose.keyframe_insert("rotation_quaternion", frame=first + f)
    for k, j in enumerate(motion.moving):
        pose = obj.pose.bones[names[j]]
        for f, place in enumerate(target.bone_locations(j, motion.locations[:, k])):
            pose.location = place
            pose.keyframe_insert("location", frame=first + f)


def carried_by_the_object(obj: bpy.types.Object, motion: PoseMotion) -> PoseMotion:
    """The motion with a way and turns of the object on top, which are keyed on it with Blender's own calls, from frame 1 on."""
    phase = np.linspace(0.0, 1.0, FRAMES)
    placement = np.stack([1.5 * phase, np.sin(4 * phase), 0.1 * np.cos(7 * phase)], axis=1)
    axis = np.array([0.2, -0.1, 1.0]) / np.linalg.norm([0.2, -0.1, 1.0])
    turning = quat.from_axis_angle(axis, 3.0 * phase)
    stands = obj.matrix_world.copy()
    origin = stands.to_translation()
    for f in range(FRAMES):
        about = mathutils.Matrix.Rotation(3.0 * phase[f], 4, mathutils.Vector(axis))
        moved = (
            mathutils.Matrix.Translation(mathutils.Vector(placement[f]) + origin) @ about @ mathutils.Matrix.Translation(-origin) @ stands
        )
        obj.matrix_world = moved
        obj.keyframe_insert("location", frame=1 + f)
        obj.keyframe_insert(f"rotation_{'quaternion' if obj.rotation_mode == 'QUATERNION' else 'euler'}", frame=1 + f)
    return replace(motion, placement=placement, turning=turning)


def evaluated(obj: bpy.types.Object, first: int = 1) -> list[dict[str, np.ndarray]]:
    """Frame by frame, where Blender has every bone's head in the world."""
    out = []
    for frame in range(first, first + FRAMES):
        bpy.context.scene.frame_set(frame)
        shown = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        out.append({p.name: np.array(shown.matrix_world @ p.matrix) for p in shown.pose.bones})
    return out


def set_rate(rate: str) -> float:
    render = bpy.context.scene.render
    render.fps, render.fps_base, seconds = RATES[rate]
    return seconds


def compare(character: Path, clip: Path, poses: list[dict[str, np.ndarray]], seconds: float, *, unit: float = 1.0) -> dict:
    """Largest distance (metres) and turn (of a rotation matrix' entries) between Blender and three.js; all bones must be found."""
    played = run("play.mjs", {"character": str(character), "clip": str(clip), "times": [f * seconds for f in range(len(poses))]})
    assert played["playing"] == []
    assert played["valid"]
    for track, node in played["bound"].items():
        assert node >= 0, f"{track} finds nothing"
    places, turns, seen = 0.0, 0.0, 0
    for pose, frame in zip(poses, played["frames"], strict=True):
        for name, m in pose.items():
            ((node, at),) = ((n, frame[str(n)]) for n, given in enumerate(played["names"]) if given == name and str(n) in frame)
            x, y, z = m[:3, 3] * unit
            places = max(places, float(np.linalg.norm(np.array(at[:3]) - (x, z, -y))))
            c = m[:3, :3] / np.linalg.norm(m[:3, :3], axis=0)
            expected = np.array([c[0], c[2], -c[1]])
            turns = max(turns, float(np.abs(quat.to_matrix(np.array(at[3:])) - expected).max()))
            seen += 1
    assert seen == len(poses) * len(poses[0])
    return {"places": places, "turns": turns, **played}


def travel(poses: list[dict[str, np.ndarray]], hips: str) -> float:
    return float(np.linalg.norm(poses[-1][hips][:3, 3] - poses[0][hips][:3, 3]))


def export(path: Path, **options: object) -> Path:
    bpy.ops.export_scene.gltf(filepath=str(path), **options)
    return path


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(("file", "hips"), [METRES, CENTIMETRES, VRM], ids=["metres", "scale001", "vrm"])
def test_the_original_file_plays_as_in_blender(tmp_path, file, hips, rate):
    seconds = set_rate(rate)
    obj = bring(file)
    target = armature.read(obj)
    motion = motion_for(target, hips, FRACTIONS[rate])
    key(obj, target, motion)
    facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=TARGETS / file)
    poses = evaluated(obj)
    assert travel(poses, hips) > 1.5
    result = compare(TARGETS / file, facts.path, poses, seconds)
    assert result["places"] < LIMIT
    assert result["turns"] < 2e-4
    assert abs(result["duration"] - (FRAMES - 1) * seconds) < 1e-6


@pytest.mark.parametrize(("file", "hips"), CHARACTERS[3:])
def test_other_characters(tmp_path, file, hips):
    seconds = set_rate("30")
    obj = bring(file)
    target = armature.read(obj)
    motion = motion_for(target, hips, Fraction(30))
    key(obj, target, motion)
    facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=TARGETS / file)
    assert compare(TARGETS / file, facts.path, evaluated(obj), seconds)["places"] < LIMIT


@pytest.mark.parametrize("known", [True, False], ids=["file given", "file unknown"])
@pytest.mark.parametrize(("file", "hips"), CHARACTERS)
def test_a_file_exported_by_blender_plays_as_in_blender(tmp_path, file, hips, known):
    seconds = set_rate("29.97")
    obj = bring(file)
    target = armature.read(obj)
    motion = motion_for(target, hips, FRACTIONS["29.97"])
    exported = export(tmp_path / "character.glb")
    key(obj, target, motion)
    facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=exported if known else None)
    assert compare(exported, facts.path, evaluated(obj), seconds)["places"] < LIMIT


@pytest.mark.parametrize("known", [True, False], ids=["file given", "file unknown"])
@pytest.mark.parametrize(("file", "hips"), [METRES, CENTIMETRES])
def test_moved_turned_scaled_parented_object(tmp_path, file, hips, known):
    seconds = set_rate("30")
    obj = bring(file)
    above = bpy.data.objects.new("Above", None)
    bpy.context.scene.collection.objects.link(above)
    above.rotation_euler = (0.3, -0.2, 1.1)
    above.location = (0.4, 3.0, 0.2)
    obj.parent = above
    obj.location = (1.0, -2.0, 0.5)
    obj.rotation_mode = "XYZ"
    obj.rotation_euler = (obj.rotation_euler[0], 0.2, 0.7)
    obj.scale = obj.scale * 0.5
    bpy.context.view_layer.update()
    target = armature.read(obj)
    motion = motion_for(target, hips, Fraction(30))
    exported = export(tmp_path / "character.glb")
    key(obj, target, motion)
    facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=exported if known else None)
    assert compare(exported, facts.path, evaluated(obj), seconds)["places"] < LIMIT


@pytest.mark.parametrize("case", ["original", "exported", "file unknown", "armature removed", "parented", "other name"])
@pytest.mark.parametrize(("file", "hips"), [METRES, CENTIMETRES, VRM], ids=["metres", "scale001", "vrm"])
def test_motion_of_the_object_is_in_its_node(tmp_path, file, hips, case):
    """The armature's node gets tracks of its own; where the file has none, the root bones move instead."""
    seconds = set_rate("30")
    obj = bring(file)
    if case == "parented":
        above = bpy.data.objects.new("Above", None)
        bpy.context.scene.collection.objects.link(above)
        above.rotation_euler, above.location, above.scale = (0.3, -0.2, 1.1), (0.4, 3.0, 0.2), (2.0, 2.0, 2.0)
        obj.parent = above
        bpy.context.view_layer.update()
    if case == "other name":
        obj.name = "Somebody"
    target = armature.read(obj)
    motion = motion_for(target, hips, Fraction(30))
    options = {"export_armature_object_remove": True} if case == "armature removed" else {}
    exported = TARGETS / file if case in ("original", "other name") else export(tmp_path / "character.glb", **options)
    key(obj, target, motion)
    motion = carried_by_the_object(obj, motion)
    poses = evaluated(obj)
    facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=None if case == "file unknown" else exported)
    result = compare(exported, facts.path, poses, seconds)
    assert result["places"] < LIMIT
    assert result["turns"] < 3e-4
    own = {track for track in result["bound"] if track.split(".")[0] not in {p.name.replace(":", "") for p in obj.pose.bones}}
    assert len(own) == (0 if case in ("armature removed", "other name") else 2)


def test_unit_scale_of_the_scene(tmp_path):
    """At scale_length 0.01 a metre is 100 units for the importer; the original is still in metres, an export in units."""
    file, hips = METRES
    bpy.context.scene.unit_settings.scale_length = 0.01
    obj = bring(file)
    target = armature.read(obj)
    motion = motion_for(target, hips, Fraction(30))
    exported = export(tmp_path / "character.glb")
    key(obj, target, motion)
    poses = evaluated(obj)
    assert poses[0]["head"][2, 3] > 100.0
    facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=TARGETS / file)
    assert compare(TARGETS / file, facts.path, poses, 1 / 30, unit=0.01)["places"] < LIMIT
    for character in (exported, None):
        facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=character)
        assert compare(exported, facts.path, poses, 1 / 30)["places"] < 100 * LIMIT


def test_the_original_of_a_character_that_was_put_elsewhere(tmp_path):
    """The file's own place stays: the motion begins there, in the same direction of the world, in the file's size."""
    file, hips = METRES
    obj = bring(file)
    obj.location = (5.0, 1.0, 0.0)
    obj.scale = (2.0, 2.0, 2.0)
    obj.rotation_mode = "XYZ"
    obj.rotation_euler = (0.0, 0.0, 1.0)
    bpy.context.view_layer.update()
    target = armature.read(obj)
    motion = motion_for(target, hips, Fraction(30))
    key(obj, target, motion)
    poses = evaluated(obj)
    moved = mathutils.Matrix.Scale(0.5, 4) @ mathutils.Matrix.Translation((-5.0, -1.0, 0.0))
    poses = [{name: np.array(moved) @ m for name, m in pose.items()} for pose in poses]
    facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=TARGETS / file)
    assert compare(TARGETS / file, facts.path, poses, 1 / 30)["places"] < LIMIT


def test_bones_without_keys_keep_their_pose(tmp_path):
    """Turned, moved and scaled by hand before: constant tracks where the file differs, none elsewhere."""
    file, hips = METRES
    obj = bring(file)
    target = armature.read(obj)
    bones = [j for j, name in enumerate(target.skeleton.names) if name in ("pelvis", "spine_01", "head", "thigh_l")]
    obj.pose.bones["upperarm_l"].rotation_quaternion = mathutils.Quaternion((0.0, 0.0, 1.0), 0.6)
    obj.pose.bones["clavicle_r"].location = (0.01, 0.02, 0.03)
    obj.pose.bones["hand_r"].scale = (1.5, 1.5, 1.5)
    motion = motion_for(target, hips, Fraction(30), bones)
    key(obj, target, motion)
    facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=TARGETS / file)
    result = compare(TARGETS / file, facts.path, evaluated(obj), 1 / 30)
    assert result["places"] < LIMIT
    assert set(result["bound"]) == {
        "pelvis.position",
        "pelvis.quaternion",
        "spine_01.quaternion",
        "head.quaternion",
        "thigh_l.quaternion",
        "upperarm_l.quaternion",
        "clavicle_r.position",
        "hand_r.scale",
    }


def test_bones_that_do_not_inherit_rotation_and_connected_bones(tmp_path):
    file, hips = METRES
    obj = bring(file)
    obj.data.bones["thigh_l"].use_inherit_rotation = False
    obj.data.bones["head"].use_inherit_rotation = False
    target = armature.read(obj)
    motion = motion_for(target, hips, Fraction(30), [j for j, n in enumerate(target.skeleton.names) if n != "head"])
    key(obj, target, motion)
    exported = export(tmp_path / "character.glb")
    facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=TARGETS / file)
    poses = evaluated(obj)
    assert compare(TARGETS / file, facts.path, poses, 1 / 30)["places"] < LIMIT
    facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=exported)
    assert compare(exported, facts.path, poses, 1 / 30)["places"] < LIMIT


def test_deformation_bones_only(tmp_path):
    """A bone that is not exported is multiplied into its children, though it moves."""
    file, hips = METRES
    obj = bring(file)
    for name in ("spine_02", "Root"):
        obj.data.bones[name].use_deform = False
    target = armature.read(obj)
    motion = motion_for(target, hips, Fraction(30))
    exported = export(tmp_path / "character.glb", export_def_bones=True)
    key(obj, target, motion)
    facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=exported)
    poses = [{n: m for n, m in pose.items() if n not in ("spine_02", "Root")} for pose in evaluated(obj)]
    assert compare(exported, facts.path, poses, 1 / 30)["places"] < LIMIT
    assert any("spine_02" in note for note in facts.notes)


def test_armature_object_removed(tmp_path):
    file, hips = CENTIMETRES
    obj = bring(file)
    target = armature.read(obj)
    motion = motion_for(target, hips, Fraction(30))
    exported = export(tmp_path / "character.glb", export_armature_object_remove=True)
    key(obj, target, motion)
    facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=exported)
    assert compare(exported, facts.path, evaluated(obj), 1 / 30)["places"] < LIMIT


def test_names_that_clash(tmp_path):
    """Scene, object and bones of one name; names that three.js makes equal; names it cannot write: the right node moves."""
    file, hips = METRES
    obj = bring(file)
    bpy.context.scene.name = "pelvis"
    for old, new in {
        "upperarm_l": "arm.L",
        "upperarm_r": "armL",
        "hand_l": "Hand 1",
        "hand_r": "Hand_1",
        "head": "頭[0]/a:b",
        "neck_01": "toString",
    }.items():
        obj.data.bones[old].name = new
    obj.name = "armL"
    target = armature.read(obj)
    motion = motion_for(target, hips, Fraction(30))
    exported = export(tmp_path / "character.glb")
    key(obj, target, motion)
    poses = evaluated(obj)
    for character in (exported, None):
        facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=character)
        played = run("play.mjs", {"character": str(exported), "clip": str(facts.path), "times": [f / 30 for f in range(FRAMES)]})
        assert played["playing"] == []
        bones = set(target.skeleton.names)
        skin = {n for n, name in enumerate(played["names"]) if name in bones}
        assert len({n for n in played["bound"].values() if n in skin}) == len(bones)
        worst = 0.0
        for pose, frame in zip(poses, played["frames"], strict=True):
            for name, m in pose.items():
                at = [frame[str(n)][:3] for n in skin if played["names"][n] == name]
                x, y, z = m[:3, 3]
                worst = max(worst, min(float(np.linalg.norm(np.array(p) - (x, z, -y))) for p in at))
        assert worst < LIMIT
        assert facts.renamed["pelvis_1"] == "pelvis"


def test_two_characters_with_the_same_bones_in_one_file(tmp_path):
    """The clip moves the one it was made on, not the one three.js finds first."""
    file, hips = METRES
    first = bring(file)
    bpy.ops.import_scene.gltf(filepath=str(TARGETS / file))
    (second,) = (o for o in bpy.data.objects if o.type == "ARMATURE" and o != first)
    for pose in second.pose.bones:
        pose.rotation_mode = "QUATERNION"
    second.location.x = 3.0
    bpy.context.view_layer.update()
    exported = export(tmp_path / "two.glb")
    for obj in (second, first):
        obj.animation_data_clear()
        target = armature.read(obj)
        motion = motion_for(target, hips, Fraction(30))
        key(obj, target, motion)
        facts = clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=exported)
        played = run("play.mjs", {"character": str(exported), "clip": str(facts.path), "times": [2 / 30]})
        assert played["playing"] == []
        x, y, z = evaluated(obj)[2]["hand_l"][:3, 3]
        hands = [played["frames"][0][str(n)][:3] for n, name in enumerate(played["names"]) if name == "hand_l"]
        assert min(float(np.linalg.norm(np.array(h) - (x, z, -y))) for h in hands) < LIMIT


def test_two_writings_are_the_same_and_start_frame_does_not_matter(tmp_path):
    file, hips = METRES
    obj = bring(file)
    target = armature.read(obj)
    motion = motion_for(target, hips, Fraction(30))
    one = clips.write_clip(tmp_path / "one.json", obj, target, motion, character=TARGETS / file)
    key(obj, target, motion, first=-10)
    two = clips.write_clip(tmp_path / "two.json", obj, target, motion, character=TARGETS / file)
    assert one.path.read_bytes() == two.path.read_bytes()
    assert compare(TARGETS / file, two.path, evaluated(obj, first=-10), 1 / 30)["places"] < LIMIT


def test_another_characters_file_is_refused(tmp_path):
    obj = bring(METRES[0])
    target = armature.read(obj)
    motion = motion_for(target, METRES[1], Fraction(30))
    with pytest.raises(FileError, match="the file this character came from"):
        clips.write_clip(tmp_path / "clip.json", obj, target, motion, character=TARGETS / "mh_cmu_names_boneaxes.glb")
    assert list(tmp_path.iterdir()) == []


def test_another_bone_direction_at_import_is_refused(tmp_path):
    file, hips = METRES
    bpy.ops.import_scene.gltf(filepath=str(need(TARGETS / file)), bone_heuristic="TEMPERANCE")
    (obj,) = (o for o in bpy.data.objects if o.type == "ARMATURE")
    target = armature.read(obj)
    with pytest.raises(FileError, match="other axes"):
        clips.write_clip(tmp_path / "clip.json", obj, target, motion_for(target, hips, Fraction(30)), character=TARGETS / file)
    assert list(tmp_path.iterdir()) == []
