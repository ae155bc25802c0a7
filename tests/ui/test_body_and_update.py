# SPDX-License-Identifier: GPL-3.0-or-later
"""Body sliders and masks in the window, and actions made again after a change."""

from __future__ import annotations

import math
from pathlib import Path

import bpy
import numpy as np
import pytest

from mocap_addon.blender import compat, recipes
from mocap_addon.ui import body, outdated, table_sync

from .helpers import apart, press_retarget, refused
from .test_preview import FRAME, places, pose, ready, shown  # noqa: F401

SLIDERS = {
    "arm_space": math.radians(12.0),
    "leg_spread": 0.1,
    "foot_yaw": -0.2,
    "hip_height": 0.07,
    "shoulder_share": 0.4,
    "head_level": 0.8,
}


@pytest.fixture
def at_frame(ready):  # noqa: F811
    bpy.context.scene.frame_set(FRAME)
    return ready


def retarget() -> bpy.types.Action:
    assert press_retarget() == {"FINISHED"}
    bpy.context.scene.frame_set(FRAME)
    return bpy.context.object.animation_data.action


@pytest.mark.parametrize("name", [*SLIDERS, "relaxed_fingers"])
def test_every_slider_is_live_and_baked_as_shown(ready, name):  # noqa: F811
    bpy.ops.mocap.preview()
    names = ("upperarm_l", "thigh_r", "foot_r", "clavicle_l", "head", "index_02_l", "pelvis")
    before, stood = shown(ready, names), places(ready)
    setattr(ready.mocap, name, SLIDERS.get(name, 1.0))
    after, stands = shown(ready, names), places(ready)
    moved = apart(before, after) > 0.5 or np.abs(stood - stands).max() > 0.05
    assert moved or name == "shoulder_share"  # nobody raises an arm in this walk
    retarget()
    assert apart(after, shown(ready, names)) < 0.01
    np.testing.assert_allclose(places(ready), stands, atol=1e-4)


def test_a_slider_back_at_its_start_leaves_nothing(ready):  # noqa: F811
    bpy.ops.mocap.preview()
    before = pose(ready)
    ready.mocap.relaxed_fingers = 1.0
    assert pose(ready)["index_02_l"] != before["index_02_l"]
    ready.mocap.arm_space = 0.3
    assert bpy.ops.mocap.reset_body() == {"FINISHED"}
    assert not body.moved(ready) and not bpy.ops.mocap.reset_body.poll()
    after = pose(ready)
    for name in before:
        for a, b in zip(before[name], after[name], strict=True):
            np.testing.assert_allclose(a, b, atol=1e-6)


def test_slider_units(ready):  # noqa: F811
    bpy.context.scene.unit_settings.scale_length = 0.01
    ready.mocap.hip_height, ready.mocap.arm_space = 5.0, math.radians(10.0)
    found = body.adjustments(ready, bpy.context.scene)
    assert found.hip_height == pytest.approx(0.05) and found.arm_space == pytest.approx(10.0, abs=1e-3)
    ready.mocap.hip_height = 1e9
    assert body.adjustments(ready, bpy.context.scene).hip_height == 10.0


def test_a_mask_in_the_preview_and_in_the_action(ready):  # noqa: F811
    scene = bpy.context.scene
    own = shown(ready, ("upperarm_l", "thigh_r"))
    bpy.ops.mocap.preview()
    whole = shown(ready, ("upperarm_l", "thigh_r", "head"))
    scene.mocap.mask_parts = {"LEFT_ARM", "HEAD"}
    names = ("thigh_r", "foot_l", "hand_r")
    kept = {name: pose(ready)[name] for name in names}
    bpy.ops.mocap.preview()
    assert {name: pose(ready)[name] for name in names} == kept  # these parts had their own pose meanwhile
    bpy.ops.mocap.preview()
    local = pose(ready)["upperarm_l"]
    retarget()
    assert ready.animation_data.action.name != "Old"
    np.testing.assert_allclose(pose(ready)["upperarm_l"][1], local[1], atol=1e-5)
    assert apart(shown(ready, ("thigh_r",)), own[1:]) < 0.01
    assert apart(shown(ready, ("thigh_r",)), whole[1:2]) > 1.0


def test_a_range_of_frames(ready):  # noqa: F811
    scene = bpy.context.scene
    scene.mocap.use_mask_range, scene.mocap.mask_start, scene.mocap.mask_end, scene.mocap.mask_ease = True, 10.0, 40.0, 5.0
    scene.frame_set(5)
    own = pose(ready)
    bpy.ops.mocap.preview()
    assert pose(ready) == own
    scene.frame_set(25)
    inside = pose(ready)
    assert inside["thigh_r"] != own["thigh_r"]
    scene.frame_set(50)
    assert pose(ready)["thigh_r"] == own["thigh_r"]
    scene.frame_set(25)
    retarget()
    scene.frame_set(25)
    np.testing.assert_allclose(pose(ready)["thigh_r"][1], inside["thigh_r"][1], atol=1e-5)
    scene.mocap.mask_parts = set()
    assert "part of the body" in refused(press_retarget)
    scene.mocap.mask_parts = {"HEAD"}
    scene.mocap.mask_end = 1.0
    assert "range" in refused(press_retarget)


def key(action, bone: str, frame: float) -> np.ndarray:
    curves = [c for c in compat.all_curves(action) if c.data_path == f'pose.bones["{bone}"].rotation_quaternion']
    return np.array([c.evaluate(frame) for c in sorted(curves, key=lambda c: c.array_index)])


def test_update_after_an_edit_of_the_table(ready):  # noqa: F811
    action = retarget()
    assert outdated.of(ready) == {action.name: ()}
    ready.mocap.rows["neck_01"].correction = (0.3, 0.0, 0.0)
    assert outdated.of(ready)[action.name] == ("the bones",)
    ready.mocap.arm_space = 0.2
    assert outdated.of(ready)[action.name] == ("the bones", "the body sliders")
    for curve in compat.all_curves(action):  # by hand: the right hand turned in one frame
        if curve.data_path == 'pose.bones["hand_r"].rotation_quaternion':
            point = next(p for p in curve.keyframe_points if p.co.x == 20.0)
            point.co.y = (0.6, 0.8, 0.0, 0.0)[curve.array_index]
    head = key(action, "neck_01", 20.0)
    assert bpy.ops.mocap.update(which="ONE") == {"FINISHED"}
    assert ready.animation_data.action == action and outdated.of(ready) == {action.name: ()}
    assert np.abs(key(action, "neck_01", 20.0) - head).max() > 0.05
    np.testing.assert_allclose(np.abs(key(action, "hand_r", 20.0)), (0.6, 0.8, 0.0, 0.0), atol=1e-4)
    assert bpy.ops.mocap.hand_edits(influence=0.0) == {"FINISHED"}
    assert np.abs(np.abs(key(action, "hand_r", 20.0)) - (0.6, 0.8, 0.0, 0.0)).max() > 0.1


def test_update_after_the_file_changed(ready, walk, tmp_path):  # noqa: F811
    path = tmp_path / "take.bvh"
    text = Path(walk).read_text()
    path.write_text(text)
    bpy.context.scene.mocap.filepath = str(path)
    action = retarget()
    outdated.of(ready)
    outdated.look()
    assert outdated.of(ready) == {action.name: ()}
    lines = text.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("Frame Time")) + 1
    lines[start:] = lines[start : start + 60]
    path.write_text("\n".join(lines).replace("Frames: 343", "Frames: 60") + "\n")
    outdated._asked.clear()
    outdated.of(ready)
    outdated.look()
    assert outdated.of(ready)[action.name] == ("the take's file",)
    assert bpy.ops.mocap.update() == {"FINISHED"}
    assert action.frame_range[1] < 20.0
    path.unlink()
    outdated._asked.clear()
    outdated.of(ready)
    outdated.look()
    assert outdated.of(ready)[action.name] == ("the take's file is gone",)
    assert "any more" in refused(bpy.ops.mocap.update)


def test_update_all(ready, walk):  # noqa: F811
    first = retarget()
    second = retarget()
    ready.mocap.rows["neck_01"].correction = (0.0, 0.4, 0.0)
    before = [key(a, "neck_01", 20.0) for a in (first, second)]
    assert bpy.ops.mocap.update(which="ALL") == {"FINISHED"}
    for action, old in zip((first, second), before, strict=True):
        assert np.abs(key(action, "neck_01", 20.0) - old).max() > 0.05
    assert all(not why for why in outdated.of(ready).values())


def test_an_action_of_another_skeleton_keeps_its_own_table(ready, walk):  # noqa: F811
    from tests.paths import SHARED, need

    other = str(need(SHARED / "makehuman" / "walk1.bvh"))
    first = retarget()
    bpy.ops.mocap.match_bones(keep=False)
    bpy.ops.mocap.retarget(filepath=other)
    table = recipes.recipe_of(first)["table"]
    assert bpy.ops.mocap.update(which="ALL") == {"FINISHED"}
    assert recipes.recipe_of(first)["table"] == table
    assert table_sync.to_table(ready).source_family != ""


def test_update_says_why_it_is_grey(character, walk):
    assert not bpy.ops.mocap.update.poll() and not bpy.ops.mocap.hand_edits.poll()
    with pytest.raises(RuntimeError, match="Retarget a take"):
        bpy.ops.mocap.update()


def test_root_motion_of_the_action_there_is(ready):  # noqa: F811
    scene = bpy.context.scene
    action = retarget()
    turned, stood = shown(ready), places(ready)
    assert "hips" in refused(bpy.ops.mocap.root_motion)
    scene.mocap.root_destination = "BONE"
    assert bpy.ops.mocap.root_motion(what="SETTINGS") == {"FINISHED"}
    assert ready.animation_data.action != action and action.name in bpy.data.actions
    paths = {curve.data_path for curve in compat.all_curves(ready.animation_data.action)}
    assert 'pose.bones["Root"].location' in paths
    scene.frame_set(FRAME)
    assert apart(turned, shown(ready)) < 0.02
    np.testing.assert_allclose(places(ready), stood, atol=2e-4)
    assert bpy.ops.mocap.root_motion(what="HIPS") == {"FINISHED"}
    scene.frame_set(FRAME)
    np.testing.assert_allclose(places(ready), stood, atol=2e-4)
    ready.animation_data_clear()
    assert not bpy.ops.mocap.root_motion.poll()
