# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes read from rigs in the scene. The truth is what Blender evaluates when the person's own scene is stepped through the frames."""

from __future__ import annotations

from fractions import Fraction

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from mocap_addon.blender import compat, rig_curves, sources
from mocap_addon.blender.playing import choose
from mocap_addon.motion import quat
from mocap_addon.motion.errors import MocapError, RigError, TargetError
from tests.blender.helpers import MODES, limb, make_rig, snapshot, world_matrices

FRAMES = range(1, 25)


def key_bones(obj, rng, name: str = "Walk", *, first: float = 1.0, last: float = 24.0, keys: int = 6, locations: bool = True):
    """A random action in the rig's own rotation modes, Bezier and linear keys at odd frames; not assigned."""
    action, slot, bag = compat.new_action(name)
    frames = np.concatenate([[first], np.sort(rng.uniform(first, last, keys - 2)), [last]])
    for bone in obj.pose.bones:
        prop = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}.get(bone.rotation_mode, "rotation_euler")
        width = 3 if prop == "rotation_euler" else 4
        for path, count in ((prop, width), ("location", 3)) if locations else ((prop, width),):
            for i in range(count):
                put(bag, f'pose.bones["{bpy.utils.escape_identifier(bone.name)}"].{path}', i, frames, rng.normal(size=keys) * 0.7, rng)
    return action, slot


def put(bag, path, index, frames, values, rng=None):
    curve = compat.new_curve(bag, path, index, "g")
    for frame, value in zip(frames, values, strict=True):
        point = curve.keyframe_points.insert(float(frame), float(value), options={"FAST"})
        point.interpolation = "BEZIER" if rng is None else str(rng.choice(["BEZIER", "LINEAR"]))
    curve.update()
    return curve


def assign(obj, action, slot=None):
    compat.assign(obj.animation_data or obj.animation_data_create(), action, slot)


def truth(obj, names, frames=FRAMES):
    """Rotations (F, J, 4) and places (F, J, 3) in the world as the open scene evaluates them."""
    m = world_matrices(obj, frames, names)
    linear = m[..., :3, :3] / np.linalg.norm(m[..., :3, :3], axis=-2, keepdims=True)
    return quat.from_matrix(linear), m[..., :3, 3]


def assert_plays(take, obj, frames=FRAMES, origin=(0.0, 0.0, 0.0), tolerance=1e-5):
    """The take is what the open scene evaluates."""
    rotations, places = truth(obj, take.skeleton.names, frames)
    assert take.frames == len(frames)
    size = max(1.0, float(np.abs(places).max()))
    assert np.abs(take.global_positions + np.array(origin) - places).max() < tolerance * size
    assert quat.angle(take.global_rotations, rotations).max() < tolerance


# --- arrays and depsgraph ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["curves", "depsgraph"])
def test_every_rotation_mode(method):
    obj = limb()
    assign(obj, *key_bones(obj, np.random.default_rng(1)))
    take = sources.read_rig(obj, method=method)
    assert {b.rotation_mode for b in obj.pose.bones} == set(MODES)
    assert take.facts["evaluated"] == method
    assert take.rate == Fraction(24) and take.times[-1] == pytest.approx(23 / 24)
    assert_plays(take, obj)


def tangled() -> bpy.types.Object:
    """Connected bones, bones that do not inherit rotation, bones without local location, two roots."""
    rows = [("root", None, (0, 0, 0.3), (0.2, 0.1, 1), 0.4), ("other", None, (1, 0, 0), (1, 1, 0.2), 1.0)]
    parents, rng = ["root", "other", "root"], np.random.default_rng(2)
    for i in range(9):
        head = rng.normal(size=3)
        parent = parents[i % 3]
        rows.append((f"b{i}", parent, tuple(head), tuple(head + rng.normal(size=3)), float(rng.uniform(-3, 3))))
        parents[i % 3] = f"b{i}"
    obj = make_rig(rows)
    bpy.ops.object.mode_set(mode="EDIT")
    for name in ("b0", "b4"):
        bone = obj.data.edit_bones[name]
        bone.parent.tail = bone.head
        bone.use_connect = True
    bpy.ops.object.mode_set(mode="OBJECT")
    for name in ("b1", "b3", "b6", "other"):
        obj.data.bones[name].use_inherit_rotation = False
    for name in ("b2", "b3", "b5", "root", "b7"):
        obj.data.bones[name].use_local_location = False
    for i, bone in enumerate(obj.pose.bones):
        bone.rotation_mode = MODES[i % len(MODES)]
    return obj


@pytest.mark.parametrize("method", ["curves", "depsgraph"])
def test_hierarchy_flags(method):
    obj = tangled()
    assert sum(b.use_connect for b in obj.data.bones) == 2
    assign(obj, *key_bones(obj, np.random.default_rng(3)))
    assert_plays(sources.read_rig(obj, method=method), obj)


@pytest.mark.parametrize("method", ["curves", "depsgraph"])
def test_where_the_object_stands_is_taken_out(method):
    obj = tangled()
    assign(obj, *key_bones(obj, np.random.default_rng(4)))
    parent = bpy.data.objects.new("Parent", None)
    bpy.context.scene.collection.objects.link(parent)
    parent.matrix_world = Matrix.Translation((2, 3, 4)) @ Matrix.Rotation(0.7, 4, (1, 2, 3)) @ Matrix.Scale(0.01, 4)
    obj.parent = parent
    obj.matrix_parent_inverse = Matrix.Rotation(0.3, 4, "X")
    obj.rotation_mode = "ZXY"
    obj.rotation_euler, obj.delta_rotation_euler = (0.3, 1.0, -2.0), (0.1, 0.2, 0.3)
    obj.location, obj.delta_location = (100, 50, -20), (1, 2, 3)
    obj.scale, obj.delta_scale = (50, 50, 50), (2, 2, 2)
    bpy.context.view_layer.update()
    origin = np.array(obj.matrix_world.translation)
    take = sources.read_rig(obj, method=method)
    assert_plays(take, obj, origin=origin)
    assert not take.notes
    rest = np.array([obj.matrix_world @ obj.data.bones[n].head_local for n in take.skeleton.names]) - origin
    np.testing.assert_allclose(take.skeleton.rest_global_positions, rest, atol=1e-5)
    tails = np.array([obj.matrix_world @ obj.data.bones[n].tail_local for n in take.skeleton.names]) - origin
    np.testing.assert_allclose(take.skeleton.rest_global_ends, tails, atol=1e-5)


def test_metres():
    obj = limb()
    assign(obj, *key_bones(obj, np.random.default_rng(5)))
    plain = sources.read_rig(obj)
    bpy.context.scene.unit_settings.scale_length = 0.01
    small = sources.read_rig(obj)
    np.testing.assert_allclose(small.global_positions, plain.global_positions * 0.01, atol=1e-12)
    np.testing.assert_allclose(small.skeleton.rest_global_ends, plain.skeleton.rest_global_ends * 0.01, atol=1e-12)
    assert small.facts["unit"] == pytest.approx(0.01)


@pytest.mark.parametrize("method", ["curves", "depsgraph"])
@pytest.mark.parametrize("mode", ["XYZ", "QUATERNION", "AXIS_ANGLE"])
def test_motion_of_the_object_itself(mode, method):
    """All travel in the object's location and rotation: such takes of other tools lost it."""
    obj = limb()
    action, slot = key_bones(obj, np.random.default_rng(6))
    bag, rng = compat.bag_of(action, slot), np.random.default_rng(7)
    for i in range(3):
        put(bag, "location", i, (1, 9.5, 24), rng.normal(size=3) * 3, rng)
        put(bag, "scale", i, (1, 24), (1.0, 1.5))
    obj.rotation_mode = mode
    prop = {"QUATERNION": "rotation_quaternion", "AXIS_ANGLE": "rotation_axis_angle"}.get(mode, "rotation_euler")
    for i in range(4 if mode != "XYZ" else 3):
        put(bag, prop, i, (1, 12, 24), rng.normal(size=3), rng)
    assign(obj, action, slot)
    obj.location = (50.0, 0.0, 0.0)  # keyed, so where it stands now does not matter
    take = sources.read_rig(obj, method=method)
    assert any("moves by itself" in note for note in take.notes) and any("scale" in note for note in take.notes)
    assert_plays(take, obj)


def test_a_walk_on_the_object_is_the_same_walk_on_the_root_bone():
    rows = [("hips", None, (0, 0, 1), (0, 0, 1.2), 0.0), ("leg", "hips", (0.1, 0, 1), (0.1, 0, 0), 0.0)]
    on_bone, on_object = make_rig(rows, "A"), make_rig(rows, "B")
    for obj, prefix in ((on_bone, 'pose.bones["hips"].'), (on_object, "")):
        action, slot, bag = compat.new_action(obj.name)
        obj.pose.bones["hips"].rotation_mode = "XYZ"
        obj.data.bones["hips"].use_local_location = False  # steps of the bone along the armature's axes
        for i, path in enumerate((0.0, 2.0, 0.1)):
            put(bag, f"{prefix}location", i, (1, 24), (0.0, path))
        assign(obj, action, slot)
    a, b = sources.read_rig(on_bone), sources.read_rig(on_object)
    np.testing.assert_allclose(a.global_positions, b.global_positions, atol=1e-6)
    assert np.ptp(b.global_positions[:, 0], axis=0)[1] == pytest.approx(2.0, abs=1e-5)


def test_the_heading_of_a_turning_object_is_motion_and_its_tilt_is_rest():
    obj = limb()
    action, slot, bag = compat.new_action("Turn")
    for i, values in enumerate(((np.pi / 2, np.pi / 2), (0.0, 0.0), (0.5, 1.5))):
        put(bag, "rotation_euler", i, (1, 24), values)
    assign(obj, action, slot)
    take = sources.read_rig(obj)
    assert_plays(take, obj)
    tilt = quat.from_axis_angle((1.0, 0.0, 0.0), np.pi / 2)
    local = np.array([obj.data.bones[n].head_local for n in take.skeleton.names])
    np.testing.assert_allclose(take.skeleton.rest_global_positions, quat.rotate(tilt, local), atol=1e-6)


# --- what drives a rig ---------------------------------------------------------------------------------------------------------------


def driver_on(obj):
    bone = obj.pose.bones[2]
    bone.rotation_mode = "XYZ"
    driver = bone.driver_add("rotation_euler", 0).driver
    driver.type = "SCRIPTED"
    driver.expression = "frame * 0.1"


def moving_empty():
    helper = bpy.data.objects.new("Goal", None)
    bpy.context.scene.collection.objects.link(helper)
    action, slot, bag = compat.new_action("Goal")
    put(bag, "location", 0, (1, 24), (-2.0, 2.0))
    assign(helper, action, slot)
    return helper


def constraint_on(obj):
    constraint = obj.pose.bones[-1].constraints.new("IK")
    constraint.target, constraint.chain_count = moving_empty(), 3


def moving_parent(obj):
    obj.parent = moving_empty()


def bone_parent(obj):
    other = limb("Carrier")
    assign(other, *key_bones(other, np.random.default_rng(20), "Carrier"))
    obj.parent, obj.parent_type, obj.parent_bone = other, "BONE", other.data.bones[3].name


def scaled_bone(obj):
    obj.pose.bones[1].scale = (1.3, 1.3, 1.3)


def object_constraint(obj):
    obj.constraints.new("COPY_LOCATION").target = moving_empty()


@pytest.mark.parametrize("drive", [driver_on, constraint_on, moving_parent, bone_parent, scaled_bone, object_constraint])
def test_what_else_moves_the_rig_is_evaluated(drive):
    obj = limb()
    assign(obj, *key_bones(obj, np.random.default_rng(8)))
    drive(obj)
    take = sources.read_rig(obj, frame_range=(1, 24))
    assert take.facts["evaluated"] == "depsgraph" and take.facts["because"]
    assert_plays(take, obj)
    with pytest.raises(RigError, match="keys alone"):
        sources.read_rig(obj, method="curves")


def test_a_muted_constraint_does_not_matter():
    obj = limb()
    assign(obj, *key_bones(obj, np.random.default_rng(8)))
    constraint_on(obj)
    obj.pose.bones[-1].constraints[0].mute = True
    take = sources.read_rig(obj)
    assert take.facts["evaluated"] == "curves"
    assert_plays(take, obj)


def test_a_rig_moved_by_constraints_alone():
    obj = limb()
    constraint_on(obj)
    bpy.context.scene.frame_start, bpy.context.scene.frame_end = 3, 20
    take = sources.read_rig(obj)
    assert_plays(take, obj, range(3, 21))
    assert np.ptp(take.global_positions[:, -1], axis=0).max() > 0.05


def nla(obj, *, repeat=2.0, scale=1.5, offset=10.0, blend="REPLACE"):
    action, slot = key_bones(obj, np.random.default_rng(9), "Strip")
    track = (obj.animation_data or obj.animation_data_create()).nla_tracks.new()
    strip = track.strips.new("strip", int(offset), action)
    if compat.SLOTTED:
        strip.action_slot = slot
    strip.action_frame_start, strip.action_frame_end = 4, 20  # a part of the action
    strip.scale, strip.repeat, strip.blend_type = scale, repeat, blend
    return action, strip


@pytest.mark.parametrize("blend", ["REPLACE", "COMBINE"])
def test_nla_with_offset_scale_repeat_and_part(blend):
    obj = limb()
    _action, strip = nla(obj, blend=blend)
    if blend == "COMBINE":
        assign(obj, *key_bones(obj, np.random.default_rng(10), "Top"))
        obj.animation_data.action_blend_type, obj.animation_data.action_influence = "COMBINE", 0.5
    take = sources.read_rig(obj)
    first = 10 if blend == "REPLACE" else 1
    assert take.facts["evaluated"] == "depsgraph" and take.name == "Rig NLA"
    assert strip.frame_end == pytest.approx(10 + 16 * 1.5 * 2)
    assert_plays(take, obj, range(first, 59), tolerance=2e-5)


def test_one_action_of_a_rig_that_plays_strips():
    obj = limb()
    nla(obj)
    take = sources.read_rig(obj, action="Strip")
    obj.animation_data.nla_tracks.remove(obj.animation_data.nla_tracks[0])
    action = bpy.data.actions["Strip"]
    assign(obj, action, compat.slots(action)[0])
    assert take.name == "Strip" and take.facts["evaluated"] == "curves"
    assert_plays(take, obj)


@pytest.mark.parametrize("drive", [None, constraint_on])
def test_an_action_that_is_not_assigned(drive):
    """What the assigned action leaves in the pose is none of the other's motion; what a person posed without keys is."""
    obj = limb()
    rng = np.random.default_rng(11)
    current, slot = key_bones(obj, rng, "Current")
    other, other_slot = key_bones(obj, rng, "Other", locations=False)
    assign(obj, current, slot)
    if drive:
        drive(obj)
    bpy.context.scene.frame_set(9)
    obj.pose.bones[0].location = (9, 9, 9)  # an unkeyed change on a keyed channel
    obj.pose.bones[3].rotation_quaternion = (0, 1, 0, 0)  # not the mode in use
    bpy.context.view_layer.update()
    before = snapshot()
    take = sources.read_rig(obj, action="Other", frame_range=(1, 24))
    assert snapshot() == before
    bpy.context.view_layer.update()
    assert snapshot() == before
    for bone in obj.pose.bones:
        bone.location = (0, 0, 0)
    assign(obj, other, other_slot)
    assert_plays(take, obj)


def test_the_slot_by_name():
    if not compat.SLOTTED:
        pytest.skip("actions have no slots before Blender 4.4")
    obj = limb()
    action, slot = key_bones(obj, np.random.default_rng(12))
    second = action.slots.new("OBJECT", "Second")
    bag = action.layers[0].strips[0].channelbag(second, ensure=True)
    rng = np.random.default_rng(13)
    for i in range(4):
        put(bag, f'pose.bones["{bpy.utils.escape_identifier(obj.pose.bones[0].name)}"].rotation_quaternion', i, (1, 24), rng.normal(size=2))
    assign(obj, action, slot)
    take = sources.read_rig(obj, action=action, slot="Second")
    plain = sources.read_rig(obj, action=action)
    assert plain.facts["slot"] == "Slot" and take.facts["slot"] == "Second"
    assert_plays(plain, obj)
    assign(obj, action, second)
    for bone in obj.pose.bones[1:]:
        bone.matrix_basis = Matrix()
    obj.pose.bones[0].location = (0, 0, 0)
    assert_plays(take, obj)
    assert [t.label for t in sources.takes_of(obj)] == ["Walk (Second)", "Walk (Slot)"]
    with pytest.raises(RigError, match='no slot "Third"; it has "Slot", "Second"'):
        sources.read_rig(obj, action=action, slot="Third")


# --- ranges, listing, refusals -------------------------------------------------------------------------------------------------------


def test_a_part_of_the_action():
    obj = limb()
    assign(obj, *key_bones(obj, np.random.default_rng(14)))
    take = sources.read_rig(obj, frame_range=(5, 11))
    assert take.times[0] == 0.0 and take.facts["frame_start"] == 5.0
    assert_plays(take, obj, range(5, 12))
    beyond = sources.read_rig(obj, frame_range=(-3, 30))
    assert_plays(beyond, obj, range(-3, 31))


def test_keys_between_frames_are_covered_and_a_range_set_by_hand_is_kept():
    obj = limb()
    action, slot = key_bones(obj, np.random.default_rng(15), first=2.4, last=11.6)
    assign(obj, action, slot)
    assert_plays(sources.read_rig(obj), obj, range(2, 13))
    action.use_frame_range = True
    action.frame_start, action.frame_end = 4, 8
    assert_plays(sources.read_rig(obj), obj, range(4, 9))


def test_rate_is_the_scenes():
    obj = limb()
    assign(obj, *key_bones(obj, np.random.default_rng(16)))
    bpy.context.scene.render.fps, bpy.context.scene.render.fps_base = 30, 1.001
    take = sources.read_rig(obj)
    assert take.rate == Fraction(30000, 1001)
    assert take.times[-1] == 23 * 1001 / 30000


def test_what_can_be_read():
    obj, rng = limb(), np.random.default_rng(17)
    assign(obj, *key_bones(obj, rng, "b"))
    key_bones(obj, rng, "A")
    stranger = make_rig([("elsewhere", None, (0, 0, 0), (0, 0, 1), 0.0)], "Stranger")
    key_bones(stranger, rng, "Strange")
    nothing, _slot, bag = compat.new_action("Camera move")
    put(bag, "location", 0, (1, 9), (0, 1))
    assert [(t.kind, t.action, t.assigned, t.frame_start, t.frame_end) for t in sources.takes_of(obj)] == [
        ("action", "b", True, 1.0, 24.0),
        ("action", "A", False, 1.0, 24.0),
    ]
    nla(obj)
    found = sources.takes_of(obj)
    assert (found[0].kind, found[0].label) == ("playing", "NLA") and len(found) == 4
    assert (found[0].frame_start, found[0].frame_end) == pytest.approx((10, 58))
    assert nothing.users == 0


@pytest.mark.parametrize("mode", ["POSE", "EDIT"])
def test_hidden_and_in_any_mode(mode):
    obj = limb()
    assign(obj, *key_bones(obj, np.random.default_rng(18)))
    take = sources.read_rig(obj)
    bpy.ops.object.mode_set(mode=mode)
    again = sources.read_rig(obj)
    np.testing.assert_array_equal(again.local_rotations, take.local_rotations)
    assert obj.mode == mode
    if mode == "POSE":
        np.testing.assert_allclose(sources.read_rig(obj, method="depsgraph").global_positions, take.global_positions, atol=1e-5)
    else:
        with pytest.raises(RigError, match="Edit Mode"):
            sources.read_rig(obj, method="depsgraph")
    bpy.ops.object.mode_set(mode="OBJECT")
    obj.hide_viewport, obj.data.pose_position = True, "REST"
    hidden = sources.read_rig(obj, method="depsgraph")
    assert obj.hide_viewport and obj.data.pose_position == "REST"
    np.testing.assert_allclose(hidden.global_positions, take.global_positions, atol=1e-5)
    np.testing.assert_array_equal(sources.read_rig(obj).local_rotations, take.local_rotations)


@pytest.mark.parametrize("method", ["curves", "depsgraph"])
def test_nothing_of_the_persons_changes(method):
    obj = limb()
    assign(obj, *key_bones(obj, np.random.default_rng(19)))
    bpy.context.scene.frame_set(7)
    obj.pose.bones[1].location = (3, 2, 1)  # unkeyed
    obj.select_set(True)
    bpy.ops.object.mode_set(mode="POSE")
    bpy.context.view_layer.update()
    before = snapshot(), bpy.context.scene, obj.mode, [c.name for c in obj.users_collection], [s.name for s in bpy.data.scenes]
    sources.read_rig(obj, method=method)
    bpy.context.view_layer.update()
    assert (snapshot(), bpy.context.scene, obj.mode, [c.name for c in obj.users_collection], [s.name for s in bpy.data.scenes]) == before


def test_progress_and_cancel():
    obj = limb()
    assign(obj, *key_bones(obj, np.random.default_rng(21)))
    seen: list[float] = []
    sources.read_rig(obj, method="depsgraph", progress=lambda share: seen.append(share))
    assert seen == pytest.approx(np.arange(1, 25) / 24)
    before = snapshot()
    with pytest.raises(MocapError, match="cancelled"):
        sources.read_rig(obj, method="depsgraph", progress=lambda share: share < 0.5)
    assert snapshot() == before


def test_the_hash_tells_another_motion():
    obj = limb()
    action, slot = key_bones(obj, np.random.default_rng(22))
    assign(obj, action, slot)
    first, evaluated = sources.read_rig(obj), sources.read_rig(obj, method="depsgraph")
    assert sources.read_rig(obj).facts["hash"] == first.facts["hash"]
    assert sources.read_rig(obj, method="depsgraph").facts["hash"] == evaluated.facts["hash"]
    compat.all_curves(action, slot)[5].keyframe_points[2].co.y += 0.01
    compat.all_curves(action, slot)[5].update()
    assert sources.read_rig(obj).facts["hash"] != first.facts["hash"]
    assert sources.read_rig(obj, method="depsgraph").facts["hash"] != evaluated.facts["hash"]


def test_refusals():
    obj = limb()
    with pytest.raises(RigError, match="no action and no NLA strips"):
        sources.read_rig(obj)
    with pytest.raises(RigError, match='no action called "Nope"'):
        sources.read_rig(obj, action="Nope")
    _action, _slot, bag = compat.new_action("Camera move")
    put(bag, 'pose.bones["nobody"].location', 0, (1, 9), (0, 1))
    with pytest.raises(RigError, match="moves no bone"):
        sources.read_rig(obj, action="Camera move")
    assign(obj, *key_bones(obj, np.random.default_rng(23)))
    with pytest.raises(RigError, match="empty"):
        sources.read_rig(obj, frame_range=(9, 3))
    obj.scale = (1, 1, 2)
    for method in ("curves", "depsgraph"):
        with pytest.raises(TargetError, match="scaled differently"):
            sources.read_rig(obj, method=method)
    obj.scale = (-1, 1, 1)
    with pytest.raises(TargetError, match="mirrored"):
        sources.read_rig(obj)
    with pytest.raises(TargetError, match="not an armature"):
        sources.read_rig(bpy.data.objects.new("Empty", None))
    with pytest.raises(TargetError, match="No armature"):
        sources.read_rig(None)


def test_uneven_scale_in_the_middle_of_the_motion_is_told_with_its_frame():
    obj = limb()
    action, slot = key_bones(obj, np.random.default_rng(24))
    put(compat.bag_of(action, slot), "scale", 0, (1, 10, 24), (1.0, 1.0, 2.0)).keyframe_points[1].interpolation = "LINEAR"
    compat.bag_of(action, slot).fcurves[-1].keyframe_points[0].interpolation = "LINEAR"
    assign(obj, action, slot)
    with pytest.raises(TargetError, match="At frame 11 "):
        sources.read_rig(obj)


def test_arrays_are_for_what_they_can_do():
    obj = limb()
    assign(obj, *key_bones(obj, np.random.default_rng(25)))
    assert rig_curves.obstacles(choose(obj), np.arange(1.0, 25.0)) == []
    obj.data.driver_add('bones["' + bpy.utils.escape_identifier(obj.data.bones[0].name) + '"].inherit_scale')
    assert rig_curves.obstacles(choose(obj), np.arange(1.0, 25.0)) == ["drivers", "animated bone settings"]
