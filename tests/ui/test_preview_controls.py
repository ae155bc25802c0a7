# SPDX-License-Identifier: GPL-3.0-or-later
"""The preview on rigs with controls, under root motion and with soft borders: it is what Retarget writes there."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from mocap_addon.ui import characters, preview
from tests.blender.control_rig_makers import plain_rig

from .helpers import apart, give_action, press_retarget
from .test_preview import places, pose, ready, shown  # noqa: F401

FRAME = 31
NAMES = ("head", "upper_arm.L", "hand.L", "thigh.R", "shin.R", "foot.L", "hips")


@pytest.fixture
def rig(walk):
    """A person whose legs hang on inverse kinematics that a property switches, with a matched table."""
    obj = plain_rig(switch=True, copies=True)
    bpy.context.view_layer.objects.active = obj
    bpy.context.scene.mocap.filepath = walk
    assert bpy.ops.mocap.match_bones() == {"FINISHED"}
    bpy.context.scene.frame_set(FRAME)
    return obj


def switches(obj) -> list[float]:
    return [obj.pose.bones[f"IK_foot.{side}"]["IK"] for side in "LR"]


@pytest.mark.parametrize("controls", ["AUTO", "FK", "IK_LEGS"])
def test_it_shows_what_the_controls_will_do(rig, controls):
    scene, before = bpy.context.scene, pose(rig)
    scene.mocap.controls = controls
    assert characters.driven(rig)
    bpy.ops.mocap.preview()
    assert switches(rig) == ([0.0, 0.0] if controls == "FK" else [1.0, 1.0])
    turned, placed = shown(rig, NAMES), places(rig, NAMES)
    bpy.ops.mocap.preview()
    assert pose(rig) == before and switches(rig) == [1.0, 1.0]
    bpy.ops.mocap.preview()
    assert press_retarget() == {"FINISHED"}
    scene.frame_set(FRAME)
    assert apart(turned, shown(rig, NAMES)) < 0.05
    np.testing.assert_allclose(placed, places(rig, NAMES), atol=2e-4)


def test_another_choice_of_controls_while_it_is_shown(rig):
    scene, own = bpy.context.scene, pose(rig)
    bpy.ops.mocap.preview()
    held = places(rig, NAMES)
    for controls, expected in (("FK", 0.0), ("AUTO", 1.0), ("IK", 1.0), ("DEFORM", 1.0), ("AUTO", 1.0)):
        scene.mocap.controls = controls
        assert preview.problem(rig) == "" and switches(rig) == [expected, expected]
    np.testing.assert_allclose(places(rig, NAMES), held, atol=1e-4)
    bpy.ops.mocap.preview()
    assert pose(rig) == own and switches(rig) == [1.0, 1.0]


def test_saved_in_the_middle(rig, tmp_path):
    bpy.context.scene.mocap.controls = "FK"
    bpy.ops.mocap.preview()
    now, path, name = pose(rig), str(tmp_path / "f.blend"), rig.name
    bpy.ops.wm.save_as_mainfile(filepath=path)
    assert pose(rig) == now and switches(rig) == [0.0, 0.0]
    bpy.ops.wm.open_mainfile(filepath=path)
    assert switches(bpy.data.objects[name]) == [1.0, 1.0]


def test_the_reference_pose_on_controls(rig):
    """Laid out and applied untouched nothing changes; turned by a control, the take's rest pose gives that pose."""
    bpy.context.scene.mocap.controls = "FK"
    before = [tuple(row.correction) for row in rig.mocap.rows]
    bpy.ops.mocap.edit_reference_pose()
    bpy.context.view_layer.update()
    bpy.ops.mocap.apply_reference_pose()
    assert [tuple(row.correction) for row in rig.mocap.rows] == before
    bpy.ops.mocap.edit_reference_pose()
    rig.pose.bones["upper_arm.L"].rotation_quaternion = (0.924, 0.383, 0.0, 0.0)
    bpy.context.view_layer.update()
    made = shown(rig, ("upper_arm.L", "hand.L"))
    bpy.ops.mocap.apply_reference_pose()
    assert any(abs(a) > 0.05 for a in rig.mocap.rows["upper_arm.L"].correction)
    bpy.ops.mocap.edit_reference_pose()
    assert apart(made, shown(rig, ("upper_arm.L", "hand.L"))) < 0.05


@pytest.mark.parametrize("setting", [
    {"root_destination": "IN_PLACE"},
    {"root_destination": "IN_PLACE", "root_smoothing": 1.0, "root_heading": "HIPS"},
    {"root_destination": "BONE", "root_origin": "FIRST_HEADING"},
    {"root_origin": "FIRST"},
    {"root_height": "GROUND"},
    {"root_destination": "OBJECT", "root_height": "GROUND", "root_origin": "FIRST_HEADING"},
])  # fmt: skip
def test_root_motion_is_where_it_will_be(ready, setting):  # noqa: F811
    panel = bpy.context.scene.mocap
    for name, value in setting.items():
        setattr(panel, name, value)
    bpy.ops.mocap.preview()
    assert preview.problem(ready) == ""
    turned, placed = shown(ready), places(ready)
    assert press_retarget() == {"FINISHED"}
    bpy.context.scene.frame_set(FRAME)
    assert apart(turned, shown(ready)) < 0.02
    np.testing.assert_allclose(placed, places(ready), atol=3e-4)


@pytest.mark.parametrize("frame", [8, 12, 13, 25, 38, 45])
def test_soft_borders_are_as_soft_as_they_will_be(character, walk, frame):
    give_action(character)
    scene = bpy.context.scene
    scene.mocap.filepath = walk
    bpy.ops.mocap.match_bones()
    character.pose.bones["thigh_r"].rotation_quaternion = (0.9, 0.3, 0.3, 0.1)
    scene.mocap.use_mask_range, scene.mocap.mask_start, scene.mocap.mask_end, scene.mocap.mask_ease = True, 10.0, 40.0, 6.0
    scene.frame_set(frame)
    bpy.ops.mocap.preview()
    turned, placed = shown(character), places(character)
    assert press_retarget() == {"FINISHED"}
    scene.frame_set(frame)
    assert apart(turned, shown(character)) < 0.05
    np.testing.assert_allclose(placed, places(character), atol=3e-4)
