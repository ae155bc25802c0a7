# SPDX-License-Identifier: GPL-3.0-or-later
"""The reference pose in the viewport, corrections from poses, bones picked in the viewport."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
from mathutils import Quaternion

from mocap_addon.ui import table_sync, takes

from .helpers import apart, press_retarget, refused
from .test_preview import FRAME, pose, ready, shown  # noqa: F401

NAMES = ("pelvis", "spine_02", "head", "clavicle_l", "upperarm_l", "lowerarm_l", "hand_l", "upperarm_r", "thigh_l", "calf_r", "foot_r")
POSED = {
    "spine_02": (0.1, 0.2, -0.1),
    "head": (0.0, 0.3, 0.1),
    "upperarm_l": (0.4, -0.2, 0.5),
    "lowerarm_l": (0.2, 0.6, 0.1),
    "hand_l": (-0.3, 0.2, 0.4),
    "thigh_l": (0.2, 0.0, -0.2),
    "foot_r": (0.0, 0.15, 0.1),
}


def turn(obj, poses=POSED) -> None:
    """What a person does in Pose Mode."""
    for name, vector in poses.items():
        bone = obj.pose.bones[name]
        bone.rotation_quaternion = bone.rotation_quaternion @ Quaternion(np.array(vector), float(np.linalg.norm(vector)))
    bpy.context.view_layer.update()


def rest_take(tmp_path, walk) -> str:
    """The walk with one frame, in which the performer stands in the rest pose."""
    with open(walk, encoding="utf-8") as file:
        head, _, motion = file.read().partition("MOTION")
    lines = motion.strip().splitlines()
    values = lines[2].split()
    path = tmp_path / "rest.bvh"
    still = " ".join([*values[:3], *(["0"] * (len(values) - 3))])
    path.write_text(f"{head}MOTION\nFrames: 2\n{lines[1]}\n{still}\n{still}\n")
    return str(path)


def test_apply_makes_the_rest_pose_give_the_pose(ready, walk, tmp_path):  # noqa: F811
    before = pose(ready)
    assert bpy.ops.mocap.edit_reference_pose() == {"FINISHED"}
    assert ready.mocap.posing == "REFERENCE"
    turn(ready)
    made = shown(ready, NAMES)
    assert bpy.ops.mocap.apply_reference_pose() == {"FINISHED"}
    assert pose(ready) == before and ready.mocap.posing == "NONE"
    assert table_sync.corrected(ready.mocap.rows["head"]) and not table_sync.corrected(ready.mocap.rows["thigh_r"])
    bpy.ops.mocap.retarget(filepath=rest_take(tmp_path, walk), use_frame_start=True, frame_start=200.0)
    bpy.context.scene.frame_set(200)
    assert apart(made, shown(ready, NAMES)) < 0.01


def test_applying_what_was_not_touched_changes_nothing(ready):  # noqa: F811
    ready.mocap.rows["hand_r"].correction = (0.1, 0.2, 0.3)
    before = table_sync.to_table(ready)
    bpy.ops.mocap.edit_reference_pose()
    bpy.context.view_layer.update()
    bpy.ops.mocap.apply_reference_pose()
    assert [r.correction for r in table_sync.to_table(ready).rows] == [r.correction for r in before.rows]


def test_cancel_changes_nothing(ready):  # noqa: F811
    before, table = pose(ready), table_sync.to_table(ready)
    bpy.ops.mocap.edit_reference_pose()
    turn(ready)
    assert bpy.ops.mocap.cancel_reference_pose() == {"FINISHED"}
    assert pose(ready) == before
    assert [r.correction for r in table_sync.to_table(ready).rows] == [r.correction for r in table.rows]


def test_a_pose_in_the_making_outlives_frames_and_saving(ready, tmp_path):  # noqa: F811
    bpy.ops.mocap.edit_reference_pose()
    turn(ready)
    now = pose(ready)
    bpy.context.scene.frame_set(3)
    bpy.context.view_layer.update()
    assert pose(ready) == now
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "f.blend"))
    assert pose(ready) == now and ready.mocap.posing == "REFERENCE"


def test_nothing_else_runs_in_between(ready, walk):  # noqa: F811
    bpy.ops.mocap.edit_reference_pose()
    assert "Apply or Cancel" in refused(bpy.ops.mocap.retarget, filepath=walk)
    assert not bpy.ops.mocap.preview.poll() and not bpy.ops.mocap.use_pose.poll()
    bpy.ops.mocap.cancel_reference_pose()
    assert not bpy.ops.mocap.apply_reference_pose.poll()
    assert bpy.ops.mocap.preview.poll()


def test_the_pose_of_a_frame(ready, walk):  # noqa: F811
    """Preview, put right by hand what is wrong in this frame, and the table knows it."""
    bpy.ops.mocap.preview()
    turn(ready)
    made = shown(ready, NAMES)
    assert bpy.ops.mocap.use_pose(which="FRAME") == {"FINISHED"}
    assert apart(made, shown(ready, NAMES)) < 0.01  # the preview shows the same again, now by the table
    frame = bpy.context.scene.frame_current
    press_retarget()
    bpy.context.scene.frame_set(frame)
    assert apart(made, shown(ready, NAMES)) < 0.01


def test_the_present_pose_for_the_rest_pose(ready, walk, tmp_path):  # noqa: F811
    for bone in ready.pose.bones:
        bone.rotation_quaternion = (1.0, 0.0, 0.0, 0.0)
    turn(ready)
    made, kept = shown(ready, NAMES), pose(ready)
    assert bpy.ops.mocap.use_pose(which="REST") == {"FINISHED"}
    assert pose(ready) == kept
    bpy.ops.mocap.retarget(filepath=rest_take(tmp_path, walk), use_frame_start=True, frame_start=200.0)
    bpy.context.scene.frame_set(200)
    assert apart(made, shown(ready, NAMES)) < 0.01


def test_a_character_turned_in_the_scene(ready, walk, tmp_path):  # noqa: F811
    """Only the pose counts: the take's performer faces its own way."""
    ready.rotation_mode = "XYZ"
    ready.rotation_euler.z += math.radians(110.0)
    bpy.context.view_layer.update()
    bpy.ops.mocap.edit_reference_pose()
    turn(ready)
    made = shown(ready, NAMES)
    bpy.ops.mocap.apply_reference_pose()
    bpy.ops.mocap.retarget(filepath=rest_take(tmp_path, walk), use_frame_start=True, frame_start=200.0)
    bpy.context.scene.frame_set(200)
    got = shown(ready, NAMES)
    against = [np.einsum("ji,njk->nik", m[0], m) for m in (made.astype(float), got.astype(float))]
    assert apart(*against) < 0.01


def test_a_rig_that_shows_its_rest_position_is_refused(ready):  # noqa: F811
    ready.data.pose_position = "REST"
    for operator in (bpy.ops.mocap.edit_reference_pose, bpy.ops.mocap.use_pose, bpy.ops.mocap.preview):
        assert "Pose Position" in refused(operator)
    assert ready.mocap.posing == "NONE"


def test_compare_in_this_frame(ready):  # noqa: F811
    scene = bpy.context.scene
    scene.frame_set(scene.frame_start + 24)  # 24 frames a second: one second, sample 120
    assert bpy.ops.mocap.use_frame() == {"FINISHED"}
    assert scene.mocap.reference == "FRAME" and scene.mocap.reference_frame == 120
    residual = ready.mocap.rows["upperarm_l"].residual
    assert residual < 0.1  # aligned to the pose of that frame
    assert math.hypot(*ready.mocap.rows["upperarm_l"].alignment) > math.radians(20.0)


def test_the_active_bone_of_the_character_is_found_in_the_list(ready):  # noqa: F811
    ready.data.bones.active = ready.data.bones["calf_r"]
    assert bpy.ops.mocap.pick_bone(what="ROW") == {"FINISHED"}
    assert table_sync.active_row(ready).name == "calf_r"
    ready.data.bones.active = None
    assert "No bone" in refused(bpy.ops.mocap.pick_bone, what="ROW")


def test_the_active_bone_of_another_rig_is_followed(ready):  # noqa: F811
    data = bpy.data.armatures.new("Suit")
    suit = bpy.data.objects.new("Suit", data)
    bpy.context.scene.collection.objects.link(suit)
    bpy.context.scene.mocap.target = ready
    bpy.context.view_layer.objects.active = suit
    bpy.ops.object.mode_set(mode="EDIT")
    for name in ("upperneck", "tail"):
        data.edit_bones.new(name).tail = (0.0, 0.0, 1.0)
    bpy.ops.object.mode_set(mode="OBJECT")
    ready.mocap.active_row = ready.mocap.rows.find("head")
    data.bones.active = data.bones["upperneck"]
    assert bpy.ops.mocap.pick_bone(what="SOURCE") == {"FINISHED"}
    assert ready.mocap.rows["head"].source == "upperneck"
    data.bones.active = data.bones["tail"]
    assert "tail" in refused(bpy.ops.mocap.pick_bone, what="SOURCE")
    bpy.context.view_layer.objects.active = ready
    assert "another armature" in refused(bpy.ops.mocap.pick_bone, what="SOURCE")
    takes.forget_all()


@pytest.mark.parametrize("mode", ["XYZ", "ZXY", "AXIS_ANGLE"])
def test_other_rotation_modes(ready, mode, tmp_path, walk):  # noqa: F811
    for name in ("upperarm_l", "head"):
        ready.pose.bones[name].rotation_mode = mode
    before = pose(ready)
    bpy.ops.mocap.edit_reference_pose()
    made = shown(ready, NAMES)
    bpy.ops.mocap.apply_reference_pose()
    assert pose(ready) == before
    bpy.ops.mocap.retarget(filepath=rest_take(tmp_path, walk), use_frame_start=True, frame_start=200.0)
    bpy.context.scene.frame_set(200)
    assert apart(made, shown(ready, NAMES)) < 0.01


def test_both_as_they_stand(ready, walk):  # noqa: F811
    """A rig in the scene and the character are posed by hand, without keys, to stand alike: so they do afterwards."""
    scene = bpy.context.scene
    press_retarget()
    source = ready.copy()
    source.name = "Suit"
    scene.collection.objects.link(source)
    ready.animation_data_clear()
    source.location.x, source.rotation_mode, source.rotation_euler = 2.0, "XYZ", (0.0, 0.0, math.radians(50.0))
    panel = scene.mocap
    panel.target, panel.source, panel.source_rig = ready, "RIG", source
    assert bpy.ops.mocap.match_bones() == {"FINISHED"}
    scene.frame_set(FRAME)
    turn(source)
    for bone in ready.pose.bones:
        bone.rotation_quaternion = (1.0, 0.0, 0.0, 0.0)
    turn(ready, {**POSED, "upperarm_r": (0.3, 0.3, -0.4)})
    made = shown(ready, NAMES)
    pose_of_source = {bone.name: tuple(bone.rotation_quaternion) for bone in source.pose.bones}
    assert bpy.ops.mocap.use_pose(which="BOTH") == {"FINISHED"}
    assert {bone.name: tuple(bone.rotation_quaternion) for bone in source.pose.bones} == pose_of_source
    for frame in (500, 501):  # the source's pose as an action: what the take shows then
        for bone in source.pose.bones:
            for prop in ("rotation_quaternion", "rotation_euler", "location"):
                bone.keyframe_insert(prop, frame=frame)
    assert bpy.ops.mocap.read_take() == {"FINISHED"}
    assert press_retarget() == {"FINISHED"}
    scene.frame_set(500 - int(source.animation_data.action.frame_range[0]) + scene.frame_start)
    got = shown(ready, NAMES)
    against = [np.einsum("ji,njk->nik", m[0], m) for m in (made.astype(float), got.astype(float))]
    assert apart(*against) < 0.05


def test_a_file_has_no_pose_in_the_scene(ready):  # noqa: F811
    assert "For This Frame" in refused(bpy.ops.mocap.use_pose, which="BOTH")
