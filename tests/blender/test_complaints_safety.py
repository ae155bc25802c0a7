# SPDX-License-Identifier: GPL-3.0-or-later
"""Known complaints about retargeting, 15 and 20 to 22: what is the user's stays the user's."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from mocap_addon.blender import actions, compat, job
from mocap_addon.motion.errors import MocapError, TargetError

from . import fidelity
from .complaints import FRAMES, assert_walks, character, original, retarget, walk
from .snapshot import beside_the_retarget, changes, digest, snapshot


def animated(obj: bpy.types.Object, name: str = "Old", bone: str = "head") -> bpy.types.Action:
    """Give the object an action of the user's own, with handles and a modifier of its own."""
    pose = obj.pose.bones[bone]
    for frame, x in ((1, 0.0), (9, 0.3), (30, -0.2)):
        pose.rotation_quaternion = (1.0, x, 0.0, 0.0)
        pose.keyframe_insert("rotation_quaternion", frame=frame)
    action = obj.animation_data.action
    action.name = name
    curve = compat.all_curves(action)[1]
    curve.keyframe_points[1].handle_left_type = "FREE"
    curve.keyframe_points[1].handle_left = (6.0, 1.0)
    curve.modifiers.new("NOISE").strength = 0.01
    return action


def strip_of(obj: bpy.types.Object, action: bpy.types.Action) -> None:
    """Put the action on a muted NLA track of the object."""
    track = obj.animation_data.nla_tracks.new()
    track.name, track.mute = "Kept", True
    track.strips.new(action.name, 40, action)


def test_15_everything_but_the_new_action_is_as_it_was():
    """R: rest, object transform, other actions byte-equal after. T: hash of everything but the new action; skin, NLA, a second rig."""
    obj, other = character(mesh=True), character("cmu")
    obj.location, obj.rotation_mode, obj.rotation_euler, obj.scale = (1.0, 2.0, 0.5), "XZY", (0.1, 0.2, 0.3), (1.1,) * 3
    first = animated(obj, "First")
    obj.animation_data.action = None
    animated(obj, "Second")
    strip_of(obj, first)
    animated(other, "Theirs", "Head")
    bpy.context.scene.frame_set(7)
    bpy.context.scene.timeline_markers.new("here", frame=5)
    bpy.context.scene.render.fps = 24
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    again = snapshot()
    second = retarget(obj)
    assert beside_the_retarget(again, obj, second.action) == []
    assert digest(before) != digest(again) != digest(snapshot())  # the hash does see a retarget


def test_20_two_objects_with_one_armature():
    """R: never write to another object; no transform_apply. T: two objects sharing one armature datablock; only one of them moves."""
    truth = original()
    obj = character()
    twin = bpy.data.objects.new("Twin", obj.data)
    bpy.context.scene.collection.objects.link(twin)
    twin.location, twin.scale = (3.0, 0.0, 0.0), (2.0,) * 3
    bpy.context.view_layer.update()
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    assert twin.animation_data is None and obj.animation_data.action == result.action
    assert_walks(obj, truth)
    assert np.ptp(fidelity.evaluated(twin, FRAMES).positions, axis=0).max() < 1e-6
    before = snapshot()
    mine = retarget(twin)
    assert beside_the_retarget(before, twin, mine.action) == []
    assert mine.action != result.action and obj.animation_data.action == result.action
    assert_walks(twin, truth)
    assert_walks(obj, truth)


def saved(tmp_path, obj: bpy.types.Object) -> str:
    """The object in a library file of its own; returns its path, in an empty file."""
    path = str(tmp_path / "library.blend")
    bpy.data.libraries.write(path, {obj}, fake_user=True)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    return path


def linked(path: str, kind: str = "objects") -> bpy.types.ID:
    with bpy.data.libraries.load(path, link=True) as (source, into):
        setattr(into, kind, list(getattr(source, kind)))
    return getattr(into, kind)[0]


def test_20_a_linked_character_is_refused_and_an_override_takes_local_actions(tmp_path):
    """R: linked rigs get a local action only. T: linked object (refused, with what to do), then its library override; save and reload."""
    truth = original()
    path = saved(tmp_path, character())
    obj = linked(path)
    bpy.context.scene.collection.objects.link(obj)
    bpy.context.scene.render.fps = 24
    before = snapshot()
    with pytest.raises(TargetError, match="Library Override"):
        retarget(obj)
    assert changes(before, snapshot()) == []
    override = obj.override_create(remap_local_usages=True)
    before = snapshot()
    result = retarget(override)
    assert beside_the_retarget(before, override, result.action) == []
    assert result.action.library is None and override.override_library is not None
    assert_walks(override, truth)
    home = str(tmp_path / "scene.blend")
    bpy.ops.wm.save_as_mainfile(filepath=home)
    bpy.ops.wm.open_mainfile(filepath=home)
    again = next(o for o in bpy.context.scene.objects if o.override_library)
    assert_walks(again, truth)


def test_20_a_local_object_on_linked_bones(tmp_path):
    """R: a local object can be animated whoever owns the bones. T: object here, armature datablock linked."""
    truth = original()
    path = saved(tmp_path, character())
    data = linked(path, "armatures")
    obj = bpy.data.objects.new("Mine", data)
    bpy.context.scene.collection.objects.link(obj)
    bpy.context.view_layer.update()
    bpy.context.scene.render.fps = 24
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    assert_walks(obj, truth)


FAULTS = {
    "reading the rig": (job.armature, "read"),
    "computing": (job.retarget, "retarget"),
    "a new action": (actions.compat, "new_action"),
    "a curve": (actions.compat, "new_curve"),
    "the recipe": (actions, "store_recipe"),
    "assigning": (actions.compat, "assign"),
}


@pytest.mark.parametrize("had", ["nothing", "an action", "an action in two users' hands"])
@pytest.mark.parametrize("where", FAULTS)
def test_21_a_fault_in_the_middle_leaves_nothing_behind(monkeypatch, where, had):
    """R: exception -> scene restored. T: a fault injected mid bake; object, action and constraint counts equal, and everything else too."""
    obj = character()
    obj.pose.bones["hand_l"].constraints.new("LIMIT_ROTATION")
    if had != "nothing":
        old = animated(obj)
        if had != "an action":
            strip_of(obj, old)
    bpy.context.scene.render.fps = 24
    before = snapshot()
    module, name = FAULTS[where]
    real, calls = getattr(module, name), []

    def fail(*args, **kwargs):
        calls.append(1)
        if name == "new_curve" and len(calls) < 60:
            return real(*args, **kwargs)
        if name == "assign" and len(calls) > 1:
            return real(*args, **kwargs)  # the fault is over when the assignment is taken back
        raise OSError("injected")

    monkeypatch.setattr(module, name, fail)
    with pytest.raises(OSError, match="injected"):
        retarget(obj)
    monkeypatch.undo()
    assert calls and changes(before, snapshot()) == []
    assert beside_the_retarget(before, obj, retarget(obj).action) == []


REFUSED = {
    "no body": lambda obj: [setattr(bone, "name", f"b{i}") or setattr(bone, "parent", None) for i, bone in enumerate(edit_bones(obj))],
    "uneven scale": lambda obj: setattr(obj, "scale", (1.0, 1.0, 2.0)),
    "no scale": lambda obj: setattr(obj, "scale", (0.0, 0.0, 0.0)),
}


def edit_bones(obj: bpy.types.Object):
    """The bones in Edit Mode, which the next look at the scene leaves."""
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode="EDIT")
    return obj.data.edit_bones


@pytest.mark.parametrize("why", REFUSED)
def test_21_refusals_leave_nothing_behind(why):
    """R: one sentence, and everything equal. T: a body that is none, scales that cannot be."""
    obj = character()
    animated(obj)
    REFUSED[why](obj)
    if bpy.context.mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.scene.render.fps = 24
    before = snapshot()
    with pytest.raises(MocapError) as caught:
        retarget(obj)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
    assert changes(before, snapshot()) == []


def test_22_the_clip_starts_at_its_first_sample():
    """R: clip starts at first sample; no T-pose frame. T: no key before start, none after the end, in every curve."""
    obj = character()
    for start in (1.0, -20.0, 101.0):
        options = job.JobOptions(frame_start=start)
        bpy.context.scene.render.fps = 24
        action = job.retarget_onto(obj, walk(), options=options).action
        for curve in compat.all_curves(action):
            frames = [key.co[0] for key in curve.keyframe_points]
            assert frames[0] == start and frames[-1] == start + 68.0 and len(frames) == 69


def test_22_one_undo_step_restores_everything():
    """R: one undo step. T: undo restores the hash, redo brings the motion back."""
    obj = character(mesh=True)
    animated(obj)
    bpy.context.scene.render.fps = 24
    bpy.ops.ed.undo_push(message="before")
    before = snapshot()
    name = obj.name
    new = retarget(obj).action.name
    bpy.ops.ed.undo_push(message="retarget")
    after = snapshot()
    bpy.ops.ed.undo()
    assert changes(before, snapshot()) == []
    bpy.ops.ed.redo()
    assert new in bpy.data.actions and changes(after, snapshot()) == []
    assert_walks(bpy.data.objects[name], original())
