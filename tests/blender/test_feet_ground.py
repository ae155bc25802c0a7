# SPDX-License-Identifier: GPL-3.0-or-later
"""The scene as ground: what rays meet, held against geometry worked out by hand."""

from __future__ import annotations

import math

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from mocap_addon.blender import ground as scene_grounds
from mocap_addon.blender import ground_trees
from mocap_addon.blender.ground_objects import ground_objects, in_collection, in_scene
from mocap_addon.motion.errors import MocapError


def box(name, low, high, collection=None):
    corners = [(x, y, z) for x in (low[0], high[0]) for y in (low[1], high[1]) for z in (low[2], high[2])]
    faces = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return mesh(name, corners, faces, collection)


def mesh(name, points, faces, collection=None):
    data = bpy.data.meshes.new(name)
    data.from_pydata(points, [], faces)
    obj = bpy.data.objects.new(name, data)
    (collection or bpy.context.scene.collection).objects.link(obj)
    return obj


def sheet(name, size=5.0, z=0.0, flipped=False):
    points = [(-size, -size, z), (size, -size, z), (size, size, z), (-size, size, z)]
    return mesh(name, points, [(3, 2, 1, 0) if flipped else (0, 1, 2, 3)])


def down(points, height=10.0, length=20.0):
    points = np.array(points, dtype=float)
    origins = np.column_stack([points, np.full(len(points), height)])
    return origins, np.tile((0.0, 0.0, -1.0), (len(points), 1)), np.full(len(points), length)


def ask(objects, points, times=None, height=10.0, length=20.0, limit=4, **options):
    with scene_grounds.scene_ground(objects, **options) as ground:
        origins, directions, lengths = down(points, height, length)
        return ground, ground.cast(origins, directions, lengths, np.zeros(len(points)) if times is None else np.array(times), limit)


def test_a_box_is_met_on_its_top_and_left_through_its_bottom():
    ground, hits = ask([box("step", (-1, -1, 0), (1, 1, 0.17))], [(0.0, 0.0), (5.0, 0.0)])
    assert ground.names == ("step",)
    assert np.allclose(hits.distance[0, :2], [9.83, 10.0], atol=1e-5)
    assert np.allclose(hits.point[0, 0], (0, 0, 0.17), atol=1e-5)
    assert np.allclose(hits.normal[0, :2], [(0, 0, 1), (0, 0, -1)], atol=1e-6)
    assert hits.object[0].tolist() == [0, 0, -1, -1]
    assert np.isinf(hits.distance[1]).all() and (hits.object[1] == -1).all()


def test_a_sheet_has_its_upper_side_where_it_is_met_however_it_was_drawn():
    for flipped in (False, True):
        bpy.ops.wm.read_factory_settings(use_empty=True)
        _, hits = ask([sheet("floor", flipped=flipped)], [(0.3, 0.2)])
        assert np.allclose(hits.normal[0, 0], (0, 0, 1), atol=1e-6)


def test_a_body_turned_inside_out_is_met_from_outside_on_top():
    obj = box("step", (-1, -1, 0), (1, 1, 0.2))
    obj.data.flip_normals()
    _, hits = ask([obj], [(0.1, 0.2)])
    assert np.allclose(hits.normal[0, :2], [(0, 0, 1), (0, 0, -1)], atol=1e-6)


def test_a_room_with_its_faces_inwards_has_a_floor():
    obj = box("room", (-3, -3, 0), (3, 3, 2.6))
    obj.data.flip_normals()
    _, hits = ask([obj], [(0.1, 0.2)], height=1.0)
    assert hits.distance[0, 0] == pytest.approx(1.0, abs=1e-5)
    assert np.allclose(hits.normal[0, 0], (0, 0, 1), atol=1e-6)


def test_mirrored_objects_keep_their_upper_side():
    obj = box("step", (-1, -1, 0), (1, 1, 0.2))
    obj.scale = (-1, 1, 1)
    _, hits = ask([obj], [(0.1, 0.2)])
    assert np.allclose(hits.normal[0, :2], [(0, 0, 1), (0, 0, -1)], atol=1e-6)


def test_two_storeys_and_a_table_are_all_met_nearest_first():
    objects = [sheet("ground"), sheet("upper", z=2.6), box("table", (-1, -1, 0.7), (1, 1, 0.75))]
    ground, hits = ask(objects, [(0.1, 0.3)])
    assert np.allclose(10.0 - hits.distance[0], [2.6, 0.75, 0.7, 0.0], atol=1e-5)
    assert [ground.names[i] for i in hits.object[0]] == ["upper", "table", "table", "ground"]
    _, nearest = ask(objects, [(0.1, 0.3)], limit=1)
    assert nearest.distance.shape == (1, 1) and nearest.distance[0, 0] == pytest.approx(7.4, abs=1e-5)


def test_enough_is_known_once_a_floor_below_the_foot_is_met():
    objects = [sheet("ground"), sheet("upper", z=2.6), box("table", (-1, -1, 0.7), (1, 1, 0.75))]
    with scene_grounds.scene_ground(objects) as ground:
        origins, directions, lengths = down([(0.1, 0.3)] * 2)
        hits = ground.cast(origins, directions, lengths, np.zeros(2), 4, np.array([5.0, 8.0]))
    assert np.allclose(10.0 - hits.distance[0, :1], [2.6], atol=1e-5) and np.isinf(hits.distance[0, 1])
    assert np.allclose(10.0 - hits.distance[1], [2.6, 0.75, 0.7, 0.0], atol=1e-5)  # its foot is below the upper storey


def test_large_surfaces_are_built_another_way_with_the_same_hits(monkeypatch):
    objects = [box("step", (-1, -1, 0), (1, 1, 0.17)), sheet("floor")]
    _, one = ask(objects, [(0.2, 0.4), (3.0, 0.0)])
    counts = [len(getattr(bpy.data, name)) for name in ("objects", "meshes", "scenes")]
    monkeypatch.setattr(ground_trees, "_LISTED", 0)
    monkeypatch.setattr(scene_grounds, "MANY", 10**9)
    _, other = ask(objects, [(0.2, 0.4), (3.0, 0.0)])
    assert np.allclose(one.point, other.point, atol=1e-6) and np.array_equal(one.object, other.object)
    assert np.allclose(one.normal, other.normal, atol=1e-6)
    assert [len(getattr(bpy.data, name)) for name in ("objects", "meshes", "scenes")] == counts
    monkeypatch.setattr(scene_grounds, "MANY", 0)
    objects[0].location.z, objects[0].scale = 0.1, (2.0, 1.0, 1.0)
    objects[0].rotation_euler.z = 1.0
    _, third = ask(objects, [(0.2, 0.4), (3.0, 0.0)])
    assert third.point[0, 0, 2] == pytest.approx(0.27, abs=1e-6) and np.array_equal(third.object[1], other.object[1])
    assert np.allclose(third.normal[0, :2], [(0, 0, 1), (0, 0, -1)], atol=1e-6)


@pytest.mark.parametrize("faces", [[(0, 1, 2), (0, 2, 3)], [(0, 1, 2, 3)], [(0, 1, 2), (0, 2, 3, 4)]])
def test_corners_of_triangles_are_those_that_blender_counts(faces):
    obj = mesh("sheet", [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0.5), (-1, 0.5, 0)], faces)
    graph = bpy.context.evaluated_depsgraph_get()
    found = ground_trees.triangles(obj.evaluated_get(graph))
    obj.data.calc_loop_triangles()
    assert found.corners.tolist() == [list(t.vertices) for t in obj.data.loop_triangles]


def test_metres_where_a_unit_is_something_else():
    bpy.context.scene.unit_settings.scale_length = 0.01
    _, hits = ask([box("step", (-100, -100, 0), (100, 100, 17))], [(0.5, 0.5), (1.5, 0.0)])
    assert hits.distance[0, 0] == pytest.approx(9.83, abs=1e-4) and np.isinf(hits.distance[1, 0])


def test_modifiers_and_object_transforms_count():
    obj = sheet("slope", size=1.0)
    obj.rotation_euler = (0.0, math.radians(30.0), 0.0)
    obj.location = (10.0, 0.0, 1.0)
    obj.scale = (2.0, 3.0, 1.0)
    array = obj.modifiers.new("more", "ARRAY")
    array.count, array.use_relative_offset, array.use_constant_offset = 2, False, True
    array.constant_offset_displace = (0.0, 2.0, 0.0)
    _, hits = ask([obj], [(10.5, 0.0), (10.5, 8.0), (10.5, -4.0)])
    height = 1.0 - 0.5 * math.tan(math.radians(30.0))  # +X goes down for a turn about +Y
    assert np.allclose(10.0 - hits.distance[:2, 0], height, atol=1e-5) and np.isinf(hits.distance[2, 0])
    assert np.allclose(hits.normal[0, 0], (0.5, 0.0, math.cos(math.radians(30.0))), atol=1e-6)


def test_far_from_the_origin():
    obj = box("step", (-1, -1, 0), (1, 1, 0.17))
    obj.location = (20000.0, -30000.0, 0.0)
    _, hits = ask([obj], [(20000.3, -30000.4)])
    assert hits.distance[0, 0] == pytest.approx(9.83, abs=2e-3)  # what an object's own matrix can hold there


def platform(obj, frames=((1, 0.0), (101, 10.0))):
    for frame, x in frames:
        obj.location.x = x
        obj.keyframe_insert("location", frame=frame)
    action = obj.animation_data.action
    from mocap_addon.blender import compat

    for curve in compat.all_curves(action):
        for key in curve.keyframe_points:
            key.interpolation = "LINEAR"
    return obj


def test_a_platform_is_where_it_is_at_each_ray_s_time():
    obj = platform(box("lift", (-0.5, -0.5, 0), (0.5, 0.5, 0.3)))
    bpy.context.scene.render.fps = 25
    times = [0.0, 2.0, 2.0]  # frames 1 and 51: at x 0 and 5
    ground, hits = ask([obj], [(0.2, 0.0), (5.2, 0.0), (0.2, 0.0)], times)
    assert np.allclose(hits.distance[:2, 0], 9.7, atol=1e-5) and np.isinf(hits.distance[2, 0])
    places, turns = ground.spaces(np.array([0, 0, -1]), np.array([0.0, 2.0, 2.0]))
    assert np.allclose(places, [(0, 0, 0), (5, 0, 0), (0, 0, 0)], atol=1e-5)
    assert np.allclose(turns, [(1, 0, 0, 0)] * 3)


def test_a_turning_platform_on_a_carrier_with_constraints_is_evaluated():
    carrier = platform(box("carrier", (-0.1, -0.1, -2), (0.1, 0.1, -1.9)))
    top = box("top", (-1, -0.1, 0), (1, 0.1, 0.3))
    top.parent = carrier
    top.rotation_euler.z = 0.0
    top.keyframe_insert("rotation_euler", frame=1)
    top.rotation_euler.z = math.pi
    top.keyframe_insert("rotation_euler", frame=101)
    from mocap_addon.blender import compat

    for curve in compat.all_curves(top.animation_data.action):
        for key in curve.keyframe_points:
            key.interpolation = "LINEAR"
    follower = box("follower", (-0.2, -0.2, 0), (0.2, 0.2, 0.1))
    follower.constraints.new("COPY_LOCATION").target = carrier
    bpy.context.scene.render.fps = 25
    half = 2.0  # frame 51: carrier at x 5, the top turned by 90 degrees
    ground, hits = ask([top, follower], [(5.0, 0.8), (5.8, 0.0), (5.0, 0.0)], [half] * 3)
    assert hits.distance[0, 0] == pytest.approx(9.7, abs=1e-5) and np.isinf(hits.distance[1, 0])
    assert hits.object[2].tolist() == [0, 1, 0, 1]
    places, turns = ground.spaces(np.array([0, 1]), np.array([half, half]))
    assert np.allclose(places, [(5, 0, 0), (5, 0, 0)], atol=1e-5)
    assert np.allclose(np.abs(turns[0]), (math.sqrt(0.5), 0, 0, math.sqrt(0.5)), atol=1e-5)


def test_a_surface_that_changes_its_shape_is_built_where_feet_are(monkeypatch):
    obj = sheet("trampoline")
    obj.shape_key_add(name="Basis")
    key = obj.shape_key_add(name="up")
    for point in key.data:
        point.co.z = 1.0
    key.value = 0.0
    key.keyframe_insert("value", frame=1)
    key.value = 1.0
    key.keyframe_insert("value", frame=11)
    bpy.context.scene.render.fps = 10
    from mocap_addon.blender import ground_restless

    built = []
    real = ground_restless.solid
    monkeypatch.setattr(ground_restless, "solid", lambda *a: built.append(1) or real(*a))
    before = bpy.context.scene.frame_current
    _, hits = ask([obj], [(0.0, 0.0), (0.0, 0.0), (40.0, 0.0)], [0.0, 1.0, 0.5])
    assert np.allclose(10.0 - hits.distance[:2, 0], [0.0, 1.0], atol=1e-5)
    assert len(built) == 2  # not at the third time, when the ray passes beside it
    assert bpy.context.scene.frame_current == before and key.value == 1.0


def test_instances_of_a_collection_are_ground():
    inside = bpy.data.collections.new("stone")
    box("stone", (-0.5, -0.5, 0), (0.5, 0.5, 0.4), inside)
    empty = bpy.data.objects.new("stones", None)
    empty.instance_type, empty.instance_collection = "COLLECTION", inside
    empty.location = (3.0, 0.0, 1.0)
    bpy.context.scene.collection.objects.link(empty)
    ground, hits = ask([empty], [(3.0, 0.0), (0.0, 0.0)])
    assert ground.names == ("stones",)
    assert hits.distance[0, 0] == pytest.approx(8.6, abs=1e-5) and np.isinf(hits.distance[1, 0])


def test_instances_on_a_moving_carrier_move_along():
    inside = bpy.data.collections.new("stone")
    box("stone", (-0.5, -0.5, 0), (0.5, 0.5, 0.4), inside)
    empty = bpy.data.objects.new("stones", None)
    empty.instance_type, empty.instance_collection = "COLLECTION", inside
    bpy.context.scene.collection.objects.link(empty)
    platform(empty)
    bpy.context.scene.render.fps = 25
    _, hits = ask([empty], [(5.0, 0.0), (0.0, 0.0)], [2.0, 2.0])
    assert hits.distance[0, 0] == pytest.approx(9.6, abs=1e-5) and np.isinf(hits.distance[1, 0])


def test_nothing_of_the_scene_is_changed_and_nothing_stays():
    obj = platform(box("lift", (-0.5, -0.5, 0), (0.5, 0.5, 0.3)))
    obj.constraints.new("LIMIT_LOCATION")
    counts = [len(getattr(bpy.data, name)) for name in ("objects", "meshes", "scenes", "collections")]
    world = obj.matrix_world.copy()
    ask([obj], [(0.2, 0.0)], [1.0])
    with pytest.raises(ZeroDivisionError), scene_grounds.scene_ground([obj]):
        raise ZeroDivisionError
    assert [len(getattr(bpy.data, name)) for name in ("objects", "meshes", "scenes", "collections")] == counts
    assert obj.matrix_world == world


def person(name="person", origin=(0.0, 0.0, 0.0)):
    """A humanoid of plain bones, with a mesh that an armature modifier deforms."""
    data = bpy.data.armatures.new(name)
    obj = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(obj)
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode="EDIT")
    bones = {
        "Hips": ((0, 0, 1), (0, 0, 1.1), None),
        "Spine": ((0, 0, 1.1), (0, 0, 1.4), "Hips"),
        "Head": ((0, 0, 1.5), (0, 0, 1.7), "Spine"),
    }
    for side, x in (("Left", 0.1), ("Right", -0.1)):
        bones[f"{side}UpLeg"] = ((x, 0, 0.95), (x, -0.01, 0.5), "Hips")
        bones[f"{side}Leg"] = ((x, -0.01, 0.5), (x, 0, 0.1), f"{side}UpLeg")
        bones[f"{side}Foot"] = ((x, 0, 0.1), (x, -0.12, 0.02), f"{side}Leg")
        bones[f"{side}Arm"] = ((2 * x, 0, 1.4), (5 * x, 0, 1.4), "Spine")
        bones[f"{side}ForeArm"] = ((5 * x, 0, 1.4), (8 * x, 0, 1.4), f"{side}Arm")
        bones[f"{side}Hand"] = ((8 * x, 0, 1.4), (9 * x, 0, 1.4), f"{side}ForeArm")
    for bone, (head, tail, parent) in bones.items():
        made = data.edit_bones.new(bone)
        made.head, made.tail = head, tail
        if parent:
            made.parent = data.edit_bones[parent]
    bpy.ops.object.mode_set(mode="OBJECT")
    obj.location = origin
    skin = box(f"{name} skin", (-0.3, -0.3, 0), (0.3, 0.3, 1.8))
    skin.modifiers.new("rig", "ARMATURE").object = obj
    return obj, skin


def test_characters_their_clothes_and_widgets_are_never_ground():
    floor = sheet("floor")
    me, skin = person()
    other, other_skin = person("other")
    hat = box("hat", (0, 0, 1.7), (0.1, 0.1, 1.8))
    hat.parent, hat.parent_type, hat.parent_bone = other, "BONE", "Head"
    ball = box("ball", (0, 0, 0), (0.1, 0.1, 0.1))
    ball.parent = skin
    held = box("held", (0, 0, 0), (0.1, 0.1, 0.1))
    hold = held.constraints.new("CHILD_OF")
    hold.target = other
    widget = box("widget", (0, 0, 0), (1, 1, 1))
    me.pose.bones["Hips"].custom_shape = widget
    everything = list(bpy.context.scene.objects)
    assert ground_objects(everything, me) == [floor]
    assert ground_objects(everything, None) == [floor]
    _, hits = ask(everything, [(0.0, 0.0)], character=me)
    assert hits.distance[0, 0] == pytest.approx(10.0, abs=1e-5) and np.isinf(hits.distance[0, 1])
    with pytest.raises(MocapError, match="surface to stand on"):
        ask([skin, other_skin, me], [(0.0, 0.0)], character=me)


def test_a_drawbridge_moved_by_bones_is_ground():
    data = bpy.data.armatures.new("winch")
    winch = bpy.data.objects.new("winch", data)
    bpy.context.scene.collection.objects.link(winch)
    bpy.context.view_layer.objects.active = winch
    bpy.ops.object.mode_set(mode="EDIT")
    bone = data.edit_bones.new("hinge")
    bone.head, bone.tail = (0, 0, 0), (0, 1, 0)
    bpy.ops.object.mode_set(mode="OBJECT")
    bridge = box("bridge", (-1, -1, 0), (1, 1, 0.2))
    bridge.modifiers.new("rig", "ARMATURE").object = winch
    bridge.vertex_groups.new(name="hinge").add(list(range(8)), 1.0, "REPLACE")
    bone = winch.pose.bones["hinge"]
    bone.keyframe_insert("location", frame=1)
    bone.matrix_basis = Matrix.Translation((0, 0, 1.0))
    bone.keyframe_insert("location", frame=11)
    bpy.context.scene.render.fps = 10
    lifted = winch.data.bones["hinge"].matrix_local.to_3x3() @ bone.location
    _, hits = ask([bridge], [(0.5, 0.5)] * 2, [0.0, 1.0])
    assert np.allclose(10.0 - hits.distance[:, 0], [0.2, 0.2 + lifted.z], atol=1e-4)


def test_what_is_picked():
    inside, below = bpy.data.collections.new("set"), bpy.data.collections.new("stairs")
    bpy.context.scene.collection.children.link(inside)
    inside.children.link(below)
    a, b = box("a", (0, 0, 0), (1, 1, 1), inside), box("b", (0, 0, 0), (1, 1, 1), below)
    c = box("c", (0, 0, 0), (1, 1, 1))
    c.hide_set(True)
    b.hide_set(True)
    assert set(in_collection(inside)) == {a, b}  # the eye hides from view only
    assert in_scene(bpy.context.scene) == [a]
    b.hide_viewport = True
    assert in_collection(inside) == [a]
