# SPDX-License-Identifier: GPL-3.0-or-later
"""The live preview: it shows what Retarget would write, quickly, and leaves nothing behind."""

from __future__ import annotations

import math
import time

import bpy
import numpy as np
import pytest

from mocap_addon.ui import preview, takes

from .helpers import apart, counts, fingerprint, give_action, press_retarget, refused

FRAME = 31


def pose(obj) -> dict[str, tuple]:
    """Every channel of every bone, as stored."""
    names = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")
    return {bone.name: tuple(tuple(getattr(bone, name)) for name in names) for bone in obj.pose.bones}


def shown(obj, names=("head", "upperarm_l", "hand_l", "thigh_r", "pelvis", "spine_02")) -> np.ndarray:
    """(n, 3, 3): rotations in the world as they are seen now."""
    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return np.array([(seen.matrix_world @ seen.pose.bones[name].matrix).to_3x3().normalized() for name in names])


def places(obj, names=("head", "hand_l", "foot_r", "pelvis")) -> np.ndarray:
    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return np.array([(seen.matrix_world @ seen.pose.bones[name].matrix).translation for name in names])


@pytest.fixture
def ready(character, walk):
    """A character with a matched table, an action of its own, and a pose of its own on top."""
    give_action(character)
    bpy.context.scene.mocap.filepath = walk
    bpy.ops.mocap.match_bones()
    bpy.context.scene.frame_set(FRAME)
    character.pose.bones["upperarm_l"].rotation_quaternion = (0.8, 0.6, 0.0, 0.0)
    character.pose.bones["head"].location = (0.0, 0.1, 0.0)
    bpy.context.view_layer.update()
    return character


def test_it_shows_what_retarget_writes(ready):
    ready.mocap.rows["head"].correction = (0.3, 0.2, -0.1)
    ready.mocap.rows["hand_l"].correction = (0.0, 0.4, 0.0)
    bpy.ops.mocap.preview()
    turned, placed = shown(ready), places(ready)
    press_retarget()
    bpy.context.scene.frame_set(FRAME)
    assert apart(turned, shown(ready)) < 1e-2
    np.testing.assert_allclose(placed, places(ready), atol=1e-4)
    assert ready.mocap.posing == "NONE"


def test_it_follows_edits_settings_and_the_frame(ready):
    scene = bpy.context.scene
    bpy.ops.mocap.preview()
    first = shown(ready, ("head", "neck_01"))
    ready.mocap.rows["head"].correction = (math.radians(30.0), 0.0, 0.0)
    assert apart(first[:1], shown(ready, ("head",))) == pytest.approx(30.0, abs=0.05)
    assert apart(first[1:], shown(ready, ("neck_01",))) < 1e-2
    ready.mocap.rows["head"].source = "upperneck"
    assert apart(first[:1], shown(ready, ("head",))) != pytest.approx(30.0, abs=0.5)
    far = places(ready, ("pelvis",))
    scene.mocap.travel_auto, scene.mocap.travel = False, 3.0
    assert np.linalg.norm(places(ready, ("pelvis",)) - far) > 0.5
    scene.mocap.travel_auto = True
    np.testing.assert_allclose(places(ready, ("pelvis",)), far, atol=1e-5)
    scene.frame_set(FRAME + 20)
    assert np.linalg.norm(places(ready, ("pelvis",)) - far) > 0.2
    bpy.ops.mocap.reset_corrections(which="ALL")
    press_retarget()
    scene.frame_set(FRAME)
    np.testing.assert_allclose(places(ready, ("pelvis",)), far, atol=1e-4)


def test_nothing_is_touched_and_the_pose_comes_back(ready):
    before, prints, amounts = pose(ready), fingerprint(), counts()
    bpy.ops.mocap.preview()
    assert pose(ready) != before
    ready.mocap.rows["head"].correction = (0.3, 0.0, 0.0)
    assert fingerprint() == prints and counts() == amounts
    bpy.ops.mocap.preview()
    assert pose(ready) == before and fingerprint() == prints


def test_on_another_frame_the_action_has_its_say_again(ready):
    bone = ready.pose.bones[-1].name
    bpy.context.scene.frame_set(1)
    bpy.ops.mocap.preview()
    bpy.context.scene.frame_set(9)
    bpy.ops.mocap.preview()
    bpy.context.view_layer.update()
    assert ready.pose.bones[bone].rotation_euler[0] == pytest.approx(0.7, abs=1e-5)  # keyed there, see give_action
    assert tuple(ready.pose.bones["upperarm_l"].rotation_quaternion) == pytest.approx((0.8, 0.6, 0.0, 0.0))  # not keyed: as it was


def test_a_saved_file_holds_the_own_pose(ready, tmp_path):
    path, name, before = str(tmp_path / "file.blend"), ready.name, pose(ready)
    bpy.ops.mocap.preview()
    now = pose(ready)
    bpy.ops.wm.save_as_mainfile(filepath=path)
    assert pose(ready) == now and ready.mocap.posing == "PREVIEW"
    bpy.ops.wm.open_mainfile(filepath=path)
    again = bpy.data.objects[name]
    assert pose(again) == before and again.mocap.posing == "NONE" and not again.mocap.kept_pose


def test_a_file_from_the_middle_of_a_preview(ready, tmp_path, monkeypatch):
    """An autosave after a crash: Blender writes it without asking anybody."""
    path, name, before = str(tmp_path / "file.blend"), ready.name, pose(ready)
    bpy.ops.mocap.preview()
    handlers = bpy.app.handlers.save_pre
    handlers.remove(preview.before_save)
    try:
        bpy.ops.wm.save_as_mainfile(filepath=path, copy=True)
    finally:
        handlers.append(preview.before_save)
    bpy.ops.wm.open_mainfile(filepath=path)
    again = bpy.data.objects[name]
    assert pose(again) == before and again.mocap.posing == "NONE"


def test_undo_takes_the_preview_along(ready):
    name, before = ready.name, pose(ready)
    bpy.context.preferences.edit.use_global_undo = True
    bpy.ops.ed.undo_push(message="own pose")
    bpy.ops.mocap.preview()
    bpy.ops.ed.undo_push(message="preview")
    first = pose(bpy.data.objects[name])
    bpy.data.objects[name].mocap.rows["head"].correction = (0.5, 0.0, 0.0)
    bpy.ops.ed.undo_push(message="correction")
    second = pose(bpy.data.objects[name])
    assert first != second != before
    bpy.ops.ed.undo()
    obj = bpy.data.objects[name]
    assert obj.mocap.posing == "PREVIEW" and obj.mocap.rows["head"].correction[0] == 0.0 and pose(obj) == first
    bpy.ops.ed.undo()
    obj = bpy.data.objects[name]
    assert obj.mocap.posing == "NONE" and pose(obj) == before
    bpy.context.scene.frame_set(FRAME + 5)
    assert pose(bpy.data.objects[name])["upperarm_l"] == before["upperarm_l"]  # nothing goes on in the dark
    bpy.ops.ed.redo()
    assert pose(bpy.data.objects[name])["upperarm_l"] == first["upperarm_l"]


def test_disabling_the_extension_gives_the_pose_back(ready):
    import mocap_addon

    before = pose(ready)
    bpy.ops.mocap.preview()
    mocap_addon.unregister()
    try:
        assert pose(ready) == before
    finally:
        mocap_addon.register()


def test_an_object_that_was_moved_meanwhile_stays_there(ready):
    bpy.ops.mocap.preview()
    ready.location.x += 2.0
    x = ready.location.x
    bpy.ops.mocap.preview()
    assert ready.location.x == x


def test_what_cannot_be_shown_is_said(ready, walk, tmp_path):
    ready.mocap.rows["head"].source = "no such bone"
    before = pose(ready)
    assert "no such bone" in refused(bpy.ops.mocap.preview)
    assert pose(ready) == before and ready.mocap.posing == "NONE"
    ready.mocap.rows["head"].source = "head"
    bpy.ops.mocap.preview()
    ready.mocap.rows["head"].source = "nor this"
    assert "nor this" in preview.problem(ready)
    ready.mocap.rows["head"].source = "head"
    assert preview.problem(ready) == ""
    bpy.ops.mocap.preview()
    assert pose(ready) == before
    bpy.context.scene.mocap.filepath = str(tmp_path / "missing.bvh")
    assert "no such file" in refused(bpy.ops.mocap.preview)


def test_a_change_takes_less_than_ten_milliseconds(ready):
    """Our part of it: residuals and pose, in the processor's time. Blender's own evaluation follows as after any pose change."""
    bpy.ops.mocap.preview()
    assert len(ready.pose.bones) == 53
    row, spent = ready.mocap.rows["upperarm_l"], []
    for k in range(30):
        start = time.thread_time()
        row.correction[1] = 0.01 * (k + 1)
        spent.append(time.thread_time() - start)
        bpy.context.view_layer.update()
    print(f"median {1e3 * np.median(spent):.1f} ms, worst {1e3 * max(spent):.1f} ms")
    assert np.median(spent) < 0.010


def test_an_edit_without_preview_is_as_quick(ready):
    row, spent = ready.mocap.rows["upperarm_l"], []
    for k in range(30):
        start = time.thread_time()
        row.correction[1] = 0.01 * (k + 1)
        spent.append(time.thread_time() - start)
    assert np.median(spent) < 0.010
    takes.forget_all()


@pytest.mark.parametrize("destination", ["BONE", "OBJECT"])
def test_a_character_that_walks_by_its_root_does_not_walk_twice(ready, destination):
    """The action moves the root; the preview shows the same pose in the same place."""
    panel = bpy.context.scene.mocap
    panel.root_destination = destination
    assert press_retarget() == {"FINISHED"}
    bpy.context.scene.frame_set(FRAME)
    turned, placed, own = shown(ready), places(ready), tuple(ready.location)
    bpy.ops.mocap.preview()
    assert apart(turned, shown(ready)) < 0.02
    np.testing.assert_allclose(placed, places(ready), atol=2e-4)
    bpy.context.scene.frame_set(FRAME + 9)
    bpy.ops.mocap.preview()
    bpy.context.scene.frame_set(FRAME)
    assert apart(turned, shown(ready)) < 0.02
    np.testing.assert_allclose(placed, places(ready), atol=2e-4)
    np.testing.assert_allclose(ready.location, own, atol=1e-5)


def test_a_redo_of_two_thousand_frames(character, walk, tmp_path):
    """A change in the redo panel: the take is in memory, and all of it is made and written again."""
    with open(walk, encoding="utf-8") as file:
        lines = file.read().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("Frame Time")) + 1
    path = tmp_path / "long.bvh"
    path.write_text("\n".join([*lines[:first], *(lines[first:] * 6)[:2000]]).replace("Frames: 343", "Frames: 2000") + "\n")
    bpy.context.scene.render.fps = 120
    bpy.ops.mocap.retarget(filepath=str(path))
    spent = []
    for k in range(5):
        start = time.thread_time()
        assert bpy.ops.mocap.retarget(filepath=str(path), travel_auto=False, travel=1.0 + 0.1 * k) == {"FINISHED"}
        spent.append(time.thread_time() - start)
    assert character.animation_data.action.frame_range[1] == 2000.0
    print(f"median {1e3 * np.median(spent):.0f} ms")
    assert min(spent) < 0.1
