# SPDX-License-Identifier: GPL-3.0-or-later
"""The character may be in any state: hidden, disabled, excluded, in any mode, animated, constrained, with NLA. Nothing of it changes."""

from __future__ import annotations

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from mocap_addon.blender import compat
from mocap_addon.motion import quat
from mocap_addon.motion.errors import TargetError

from . import fidelity
from .complaints import FRAMES, assert_walks, character, edit, original, retarget
from .snapshot import beside_the_retarget, changes, snapshot


@pytest.fixture
def truth():
    return original()


def in_collection(obj: bpy.types.Object) -> bpy.types.LayerCollection:
    """The object alone in a collection of its own."""
    home = bpy.data.collections.new("Home")
    bpy.context.scene.collection.children.link(home)
    for collection in list(obj.users_collection):
        collection.objects.unlink(obj)
    home.objects.link(obj)
    return bpy.context.view_layer.layer_collection.children["Home"]


HIDING = {
    "eye": (lambda o, c: o.hide_set(True), lambda o, c: o.hide_set(False)),
    "monitor": (lambda o, c: setattr(o, "hide_viewport", True), lambda o, c: setattr(o, "hide_viewport", False)),
    "render": (lambda o, c: setattr(o, "hide_render", True), lambda o, c: None),
    "unselectable": (lambda o, c: setattr(o, "hide_select", True), lambda o, c: None),
    "collection's eye": (lambda o, c: setattr(c, "hide_viewport", True), lambda o, c: setattr(c, "hide_viewport", False)),
    "collection's monitor": (
        lambda o, c: setattr(c.collection, "hide_viewport", True),
        lambda o, c: setattr(c.collection, "hide_viewport", False),
    ),
    "excluded": (lambda o, c: setattr(c, "exclude", True), lambda o, c: setattr(c, "exclude", False)),
    "holdout": (lambda o, c: setattr(c, "holdout", True), lambda o, c: None),
}


@pytest.mark.parametrize("how", HIDING)
def test_hidden_and_moved_since(truth, how):
    """Hidden in each way there is, then placed, turned and scaled by object and parent: Blender's own world matrix may be out of date."""
    obj = character()
    parent = bpy.data.objects.new("Parent", None)
    bpy.context.scene.collection.objects.link(parent)
    home = in_collection(obj)
    bpy.context.view_layer.update()
    hide, show = HIDING[how]
    hide(obj, home)
    bpy.context.view_layer.update()
    parent.rotation_euler, parent.location = (0.0, 0.0, 1.0), (5.0, 0.0, 0.0)
    obj.parent, obj.rotation_mode, obj.rotation_euler = parent, "XYZ", (0.5, 0.0, 0.0)
    obj.data.transform(Matrix.Scale(100.0, 4))
    obj.scale, obj.location = (0.01,) * 3, (0.0, 1.0, 0.0)
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    show(obj, home)
    bpy.context.view_layer.update()
    assert_walks(obj, truth)
    up = fidelity.evaluated(obj, FRAMES)
    assert (fidelity.unit(up.place("head") - up.place("pelvis"))[:, 2] > 0.95).all()
    origin = np.array(obj.matrix_world.translation)
    assert np.linalg.norm(origin) > 4.0 and np.linalg.norm((up.place("pelvis")[0] - origin)[:2]) < 2.0


def test_hidden_behind_a_bone_the_place_is_named():
    """A disabled object that hangs on a bone: its place is the last one known, and a note says so."""
    obj, carrier = character(), character("cmu")
    obj.parent, obj.parent_type, obj.parent_bone = carrier, "BONE", "Head"
    bpy.context.view_layer.update()
    obj.hide_viewport = True
    bpy.context.view_layer.update()
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    assert any("disabled in this view layer" in note for note in result.notes)


@pytest.mark.parametrize("mode", ["OBJECT", "POSE", "EDIT"])
@pytest.mark.parametrize("on", ["this", "the twin", "another"])
def test_any_mode(truth, mode, on):
    """Any mode, on this object, on another that shares its bones, on another rig: same motion, and the mode stays."""
    obj = character()
    twin = bpy.data.objects.new("Twin", obj.data)
    bpy.context.scene.collection.objects.link(twin)
    other = {"this": obj, "the twin": twin, "another": None}[on] or character("cmu")
    bpy.context.view_layer.objects.active = other
    if mode != "OBJECT":
        bpy.ops.object.mode_set(mode=mode)
    before = snapshot()
    result = retarget(obj)
    assert other.mode == mode and beside_the_retarget(before, obj, result.action) == []
    assert any("Edit Mode" in note for note in result.notes) == (mode == "EDIT" and on != "another")
    if mode != "OBJECT":
        bpy.ops.object.mode_set(mode="OBJECT")
    assert_walks(obj, truth)


@pytest.mark.parametrize("on", ["this", "the twin"])
def test_bones_edited_and_not_yet_left(truth, on):
    """Legs shortened in Edit Mode, which is still on (here or on a twin): the new bones count."""
    obj = character()
    twin = bpy.data.objects.new("Twin", obj.data)
    bpy.context.scene.collection.objects.link(twin)
    bpy.context.view_layer.objects.active = obj if on == "this" else twin
    bpy.ops.object.mode_set(mode="EDIT")
    obj.data.edit_bones["thigh_l"].roll += 1.0
    for bone in obj.data.edit_bones:
        bone.head, bone.tail = bone.head * 0.5, bone.tail * 0.5
    retarget(obj)
    bpy.ops.object.mode_set(mode="OBJECT")
    assert_walks(obj, truth)


def test_in_another_collection_and_not_in_this_scene(truth):
    """In a nested collection: as anywhere. In another scene only: one sentence, and nothing is touched."""
    obj = character()
    home = in_collection(obj).collection
    inner = bpy.data.collections.new("Inner")
    home.children.link(inner)
    home.objects.unlink(obj)
    inner.objects.link(obj)
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    assert_walks(obj, truth)
    elsewhere = bpy.data.scenes.new("Elsewhere")
    elsewhere.collection.children.link(home)
    bpy.context.scene.collection.children.unlink(home)
    before = snapshot()
    with pytest.raises(TargetError, match=r'not in the scene "Scene"; link it'):
        retarget(obj)
    assert changes(before, snapshot()) == []


def test_rest_position_is_said_and_stays(truth):
    """The armature shows its rest position: keys are right, a note says why nothing is seen, the display stays."""
    obj = character()
    obj.data.pose_position = "REST"
    bpy.context.view_layer.update()
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    assert any("rest position" in note for note in result.notes) and obj.data.pose_position == "REST"
    obj.data.pose_position = "POSE"
    assert_walks(obj, truth)


def test_an_animated_object_stands_where_it_is_now():
    """The object's own location and rotation are keyed: its place at the current frame counts, is said, and nothing of it is changed."""
    obj = character()
    obj.rotation_mode = "XYZ"
    for frame, x in ((1, 0.0), (40, 3.0)):
        obj.location.x, obj.rotation_euler.z = x, x / 3.0
        obj.keyframe_insert("location", frame=frame)
        obj.keyframe_insert("rotation_euler", frame=frame)
    old = obj.animation_data.action
    bpy.context.scene.frame_set(40)
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    assert any("animated or constrained" in note for note in result.notes)
    assert old.use_fake_user and obj.location.x == pytest.approx(3.0)
    assert np.allclose(result.target.origin, (3.0, 0.0, 0.0), atol=1e-5)


def test_a_constrained_object(truth):
    """The object is held by constraints: where they put it counts, and a note says so; muted ones and those without influence do not."""
    obj = character()
    empty = bpy.data.objects.new("Empty", None)
    bpy.context.scene.collection.objects.link(empty)
    empty.location, empty.rotation_euler = (2.0, 1.0, 0.0), (0.0, 0.0, 0.7)
    held = obj.constraints.new("COPY_TRANSFORMS")
    held.target = empty
    bpy.context.view_layer.update()
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    assert any("animated or constrained" in note for note in result.notes)
    assert np.allclose(result.target.origin, (2.0, 1.0, 0.0), atol=1e-6)
    assert_walks(obj, truth)
    held.mute = True
    assert not any("animated or constrained" in note for note in retarget(obj).notes)


def test_a_constrained_character_whose_hips_cannot_move_says_so():
    """Connected hips below a locked root send the travel to the object, but a constraint holds that: said, not silently lost."""
    obj = character()

    def connect(bones) -> None:
        bones["Root"].tail = bones["pelvis"].head
        bones["pelvis"].use_connect = True

    edit(obj, connect)
    obj.pose.bones["Root"].lock_location = (True,) * 3
    empty = bpy.data.objects.new("Empty", None)
    bpy.context.scene.collection.objects.link(empty)
    obj.constraints.new("COPY_LOCATION").target = empty
    bpy.context.view_layer.update()
    notes = retarget(obj).notes
    assert any("the object itself is moved" in note for note in notes)
    assert any("animated or constrained" in note for note in notes)
    obj.constraints.clear()
    obj.driver_add("location", 0).driver.expression = "1.0"
    assert any("animated or constrained" in note for note in retarget(obj).notes)


def with_strip(obj: bpy.types.Object) -> bpy.types.NlaStrip:
    """An NLA strip that turns the head and moves the pelvis."""
    for frame, x in ((1, 0.0), (30, 0.6)):
        obj.pose.bones["head"].rotation_quaternion = (1.0, x, 0.0, 0.0)
        obj.pose.bones["head"].keyframe_insert("rotation_quaternion", frame=frame)
    action, slot = obj.animation_data.action, compat.assigned_slot(obj.animation_data)
    obj.animation_data.action = None
    strip = obj.animation_data.nla_tracks.new().strips.new("Nod", 1, action)
    if slot is not None:
        strip.action_slot = slot
    return strip


@pytest.mark.parametrize("muted", [False, True])
def test_nla_tracks_stay_and_the_action_replaces_them(truth, muted):
    obj = character()
    with_strip(obj)
    obj.animation_data.nla_tracks[0].mute = muted
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    assert_walks(obj, truth)
    with_nla = fidelity.evaluated(obj, FRAMES)
    obj.animation_data.nla_tracks.remove(obj.animation_data.nla_tracks[0])
    assert np.degrees(quat.angle(with_nla.rotations, fidelity.evaluated(obj, FRAMES).rotations)).max() < 1e-3


@pytest.mark.parametrize("muted", [False, True])
def test_a_strip_being_edited_is_refused_in_a_sentence(muted):
    """Tweak mode, also on a muted track: one sentence with the way out; nothing is touched."""
    obj = character()
    with_strip(obj)
    track = obj.animation_data.nla_tracks[0]
    track.select = track.strips[0].select = True
    obj.animation_data.nla_tracks.active = track
    obj.animation_data.use_tweak_mode = True
    if not obj.animation_data.use_tweak_mode:
        pytest.skip("tweak mode cannot be entered without a window here")
    track.mute = muted
    bpy.context.scene.render.fps = 24
    before = snapshot()
    with pytest.raises(TargetError, match="tweak mode"):
        retarget(obj)
    assert changes(before, snapshot()) == []


def test_a_weak_or_additive_action_is_said(truth):
    """Influence and blending of the assigned action belong to the user: they stay, and a note says what they do."""
    obj = character()
    animation = obj.animation_data_create()
    animation.action_influence, animation.action_blend_type = 0.5, "ADD"
    before = snapshot()
    result = retarget(obj)
    assert [c for c in beside_the_retarget(before, obj, result.action) if "action_" in c] == []
    assert any("influence of 0.50" in note for note in result.notes) and any("blended" in note for note in result.notes)
    animation.action_influence, animation.action_blend_type = 1.0, "REPLACE"
    assert_walks(obj, truth)
