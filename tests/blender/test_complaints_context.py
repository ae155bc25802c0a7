# SPDX-License-Identifier: GPL-3.0-or-later
"""Known complaints about retargeting, 23 to 27: versions, slots, NLA strips, context, batch. All that a rig can play: ``test_sources``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import bpy
import numpy as np
import pytest

from mocap_addon.blender import compat, sources
from mocap_addon.motion.errors import MocapError
from tests.paths import ROOT, need

from . import fidelity
from .complaints import SOURCE_LEGS, WALK, assert_walks, character, original, retarget, source_frames, walked
from .snapshot import beside_the_retarget, snapshot

slotted = pytest.mark.skipif(not hasattr(bpy.types, "ActionSlot"), reason="this Blender's actions have no slots")


def test_23_curves_are_where_this_blender_looks_for_them():
    """R: one curve accessor for 4.2 to 5.3. T: version smoke: Blender's own channel lists, groups and evaluation see the curves."""
    obj = character()
    action = retarget(obj).action
    if hasattr(bpy.types, "ActionSlot"):
        (bag,) = (bag for layer in action.layers for strip in layer.strips for bag in strip.channelbags)
        curves, groups = bag.fcurves, bag.groups
    else:
        curves, groups = action.fcurves, action.groups
    assert len(curves) > 60 and {g.name for g in groups} >= {"pelvis", "head", "foot_l"}
    assert all(curve.group.name == curve.data_path.split('"')[1] for curve in curves)
    assert action.frame_range[0] == 1.0 and action.frame_range[1] == 69.0
    assert_walks(obj, original())


@slotted
def test_24_the_slot_is_made_and_bound_and_survives_a_reload(tmp_path):
    """R: slot created and bound for the object. T: reload the file; assign to a second armature; both move."""
    truth = original()
    obj = character()
    action = retarget(obj).action
    assert len(action.slots) == 1 and action.slots[0].target_id_type == "OBJECT"
    assert obj.animation_data.action_slot == action.slots[0]
    twin = character()
    twin.name = "Twin"
    there = twin.animation_data_create()
    there.action = action
    there.action_slot = there.action_suitable_slots[0]  # what the window offers
    path = str(tmp_path / "scene.blend")
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    for name in ("Armature", "Twin"):
        assert_walks(bpy.data.objects[name], truth)


@slotted
def test_24_an_action_with_two_slots_stays_whole():
    """R: other slots untouched. T: the character uses the second slot of an action that moves another object by its first."""
    obj = character()
    other = character("cmu")
    head = other.pose.bones["Head"]
    for frame, x in ((1, 0.0), (20, 0.6)):
        head.rotation_quaternion = (1.0, x, 0.0, 0.0)
        head.keyframe_insert("rotation_quaternion", frame=frame)
    shared = other.animation_data.action
    slot = shared.slots.new(id_type="OBJECT", name="Mine")
    obj.animation_data_create()
    compat.assign(obj.animation_data, shared, slot)
    obj.pose.bones["head"].rotation_quaternion = (1.0, 0.3, 0.0, 0.0)
    obj.pose.bones["head"].keyframe_insert("rotation_quaternion", frame=3)
    was = fidelity.evaluated(other, (1, 9, 20))
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    assert result.action != shared and len(shared.slots) == 2
    assert other.animation_data.action == shared and other.animation_data.action_slot != slot
    assert np.abs(fidelity.evaluated(other, (1, 9, 20)).rotations - was.rotations).max() < 1e-6
    assert_walks(obj, original())


@slotted
def test_24_an_action_without_a_slot_set_does_no_harm():
    """R: handled. T: the character has an action assigned, but no slot: nothing moves it, nothing of it is taken for its motion."""
    obj = character()
    shared = bpy.data.actions.new("Slotless")
    obj.animation_data_create().action = shared
    assert obj.animation_data.action_slot is None
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    assert_walks(obj, original())


def contexts():
    """What is active, selected and in which mode, as functions of the character and another armature."""

    def nothing(obj, other) -> None:
        for o in bpy.data.objects:
            o.select_set(False)
        bpy.context.view_layer.objects.active = None

    def edit_elsewhere(obj, other) -> None:
        bpy.context.view_layer.objects.active = other
        bpy.ops.object.mode_set(mode="EDIT")

    def pose_elsewhere(obj, other) -> None:
        bpy.context.view_layer.objects.active = other
        bpy.ops.object.mode_set(mode="POSE")

    def mesh_edit(obj, other) -> None:
        mesh = bpy.data.objects.new("Plane", bpy.data.meshes.new("Plane"))
        bpy.context.scene.collection.objects.link(mesh)
        bpy.context.view_layer.objects.active = mesh
        bpy.ops.object.mode_set(mode="EDIT")

    def both_selected(obj, other) -> None:
        for o in (obj, other):
            o.select_set(True)
        bpy.context.view_layer.objects.active = other

    def hidden(obj, other) -> None:
        obj.hide_set(True)
        nothing(obj, other)

    return {f.__name__: f for f in (nothing, edit_elsewhere, pose_elsewhere, mesh_edit, both_selected, hidden)}


@pytest.mark.parametrize("scale", [1.0, 1.5])
def test_25_motion_that_is_only_on_an_nla_track(scale):
    """R: read NLA or a named action. T: animation only on a track, a strip with offset and scale; the action by name beside it."""
    walk = fidelity.blender_bvh(need(fidelity.find(WALK)))
    action = walk.animation_data.action
    whole = walked(fidelity.evaluated(walk, source_frames()), fidelity.rest(walk), SOURCE_LEGS)
    strip = walk.animation_data.nla_tracks.new().strips.new("walk", 11, action)
    strip.scale = scale
    walk.animation_data.action = None
    played = sources.read_rig(walk)
    assert played.facts["frame_start"] == 11 and abs(played.frames - 1 - 342 * scale) <= 1
    obj = character()
    for take, pace in ((played, scale), (sources.read_rig(walk, action=action.name), 1.0)):
        retarget(obj, take, rate="source")
        frames = 1.0 + (np.asarray(source_frames()) - 1.0) * pace * 24.0 / float(take.rate)
        seen = walked(fidelity.evaluated(obj, frames), fidelity.rest(obj))
        k = seen.leg / whole.leg
        gone, wanted = seen.hips - seen.hips[0], k * (whole.hips - whole.hips[0])
        assert np.linalg.norm(wanted, axis=1).max() > 1.0
        assert np.abs(np.linalg.norm(gone[:, :2], axis=1) - np.linalg.norm(wanted[:, :2], axis=1)).max() < 2e-3
    assert walk.animation_data.action is None and strip.scale == pytest.approx(scale)


def test_25_no_motion_at_all_is_said_in_a_sentence():
    """R: clear error. T: a rig without any animation, and a name that is not there."""
    obj = character()
    obj.animation_data_clear()
    with pytest.raises(MocapError, match=r"^[^\n]*\.$"):
        sources.read_rig(obj, action="no such action")
    with pytest.raises(MocapError, match=r"^[^\n]*\.$"):
        sources.read_rig(obj)


@pytest.mark.parametrize("situation", contexts())
def test_26_no_context_matters(situation):
    """R: data API only. T: nothing selected, edit mode elsewhere, another rig selected too, hidden: same motion, nothing else moved."""
    truth = original()
    obj, other = character(), character("cmu")
    contexts()[situation](obj, other)
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    if bpy.context.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    assert_walks(obj, truth)
    assert other.animation_data is None


BATCH = """
import json, sys
from fractions import Fraction
import bpy
sys.path.insert(0, {root!r})
from mocap_addon import formats
from mocap_addon.blender.job import retarget_onto
from mocap_addon.motion.errors import MocapError
bpy.ops.wm.read_factory_settings(use_empty=True)
assert bpy.app.background
bpy.ops.import_scene.gltf(filepath={character!r})
obj = next(o for o in bpy.data.objects if o.type == "ARMATURE")
bpy.context.view_layer.objects.active = None
try:
    for path in {takes!r}:
        result = retarget_onto(obj, formats.read(path)[0])
        print("DONE " + json.dumps([result.action.name, list(result.action.frame_range)]), flush=True)
except MocapError as error:
    print("REFUSED " + str(error), flush=True)
    sys.exit(1)
"""


def background(tmp_path, takes: list[Path]) -> subprocess.CompletedProcess:
    """A fresh Blender in the background that retargets takes; the same Blender as this one."""
    script = tmp_path / "batch.py"
    body = need(fidelity.find(fidelity.TARGETS["unreal"]))
    script.write_text(BATCH.format(root=str(ROOT), character=str(body), takes=[str(p) for p in takes]), encoding="utf-8")
    if bpy.app.binary_path:
        command = [bpy.app.binary_path, "-b", "--factory-startup", "--python-exit-code", "3", "-P", str(script)]
    else:
        command = [sys.executable, str(script)]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL, check=False)


def test_27_batch_runs_without_popups_and_ends_with_a_code(tmp_path):
    """R: errors by return/exit code. T: a background run of two takes, then one with a damaged file; exit codes and output checked."""
    walk = need(fidelity.find(WALK))
    good = background(tmp_path, [walk, walk])
    lines = [line for line in good.stdout.splitlines() if line.startswith("DONE")]
    assert good.returncode == 0, good.stderr[-500:]
    assert [json.loads(line[5:])[0] for line in lines] == ["asf_02_01_walk", "asf_02_01_walk.001"]
    broken = tmp_path / "broken.bvh"
    broken.write_bytes(walk.read_bytes()[:3000])
    bad = background(tmp_path, [broken])
    assert bad.returncode == 1 and "Traceback" not in bad.stderr
    assert any(line.startswith("REFUSED") and "broken.bvh" in line for line in bad.stdout.splitlines())
