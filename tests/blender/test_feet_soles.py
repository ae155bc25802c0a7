# SPDX-License-Identifier: GPL-3.0-or-later
"""What feet measure: on skins made of known points, and on real characters against the lowest of their evaluated vertices."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from mocap_addon import rig
from mocap_addon.blender import armature, soles
from mocap_addon.feet.body import Sole, find_feet
from mocap_addon.motion import quat
from tests.paths import SHARED, need

from .test_feet_bake import person


def shoe(obj, side, points, name="shoe", group=None):
    """A cloud of vertices bound to one foot."""
    data = bpy.data.meshes.new(name)
    data.from_pydata(points, [], [])
    mesh = bpy.data.objects.new(name, data)
    bpy.context.scene.collection.objects.link(mesh)
    mesh.modifiers.new("rig", "ARMATURE").object = obj
    mesh.vertex_groups.new(name=group or f"{side}Foot").add(list(range(len(points))), 1.0, "REPLACE")
    return mesh


def sole_points(x, heel, ball, back=0.06, front=-0.22):
    """A heel at height ``heel`` from the back to the ankle and a fore part at ``ball`` from y -0.13 on, and an upper."""
    return [
        *((x + w, y, heel) for w in (-0.03, 0.03) for y in (back, 0.03, 0.0)),
        *((x + w, y, ball) for w in (-0.04, 0.04) for y in (-0.135, -0.17, front)),
        *((x + w, y, 0.12) for w in (-0.03, 0.03) for y in (0.05, 0.0, -0.05)),
    ]


def measure(obj):
    target = armature.read(obj)
    return target, soles.measured(obj, target, rig.match(target.skeleton))


def test_a_flat_shoe_and_a_high_heel():
    obj = person()  # ankles at 0.1, balls at 0.03 and y -0.14
    shoe(obj, "Left", sole_points(0.1, 0.0, 0.0))
    shoe(obj, "Right", sole_points(-0.1, -0.07, -0.01))
    _, found = measure(obj)
    left, right = found["left"], found["right"]
    assert (left.heel_height, left.ball_height) == pytest.approx((0.1, 0.03), abs=1e-6)
    assert (right.heel_height, right.ball_height) == pytest.approx((0.17, 0.04), abs=1e-6)
    assert (left.heel_offset, left.toe_length) == pytest.approx((0.06, 0.08), abs=1e-6)


def test_in_the_world_s_metres_wherever_the_character_stands():
    obj = person()
    shoe(obj, "Left", sole_points(0.1, 0.0, 0.0)).parent = obj
    obj.location, obj.scale, obj.rotation_euler = (4.0, 2.0, 7.0), (2.0, 2.0, 2.0), (0.0, 0.0, 1.0)
    bpy.context.scene.unit_settings.scale_length = 0.5
    bpy.context.view_layer.update()
    _, found = measure(obj)
    assert found["left"].heel_height == pytest.approx(0.1, abs=1e-5) and found["left"].toe_length == pytest.approx(0.08, abs=1e-5)
    assert "right" not in found


def test_what_hangs_on_the_shin_is_no_sole():
    obj = person()
    shoe(obj, "Left", sole_points(0.1, -0.2, -0.2), group="LeftLeg")
    assert measure(obj)[1] == {}


def test_what_a_person_typed_wins():
    obj = person()
    shoe(obj, "Left", sole_points(0.1, 0.0, 0.0))
    target, _ = measure(obj)
    found = soles.soles_of(obj, target, rig.match(target.skeleton), {"left": Sole(heel_height=0.2), "right": Sole(ball_height=0.05)})
    assert found["left"].heel_height == 0.2 and found["left"].ball_height == pytest.approx(0.03, abs=1e-6)
    assert found["right"] == Sole(ball_height=0.05)


@pytest.mark.parametrize("name", ["mh_ue_names_apose.glb", "mh_mixamo_names_scale001.glb"])
def test_the_sole_s_points_lie_on_the_skin_s_underside(name):
    bpy.ops.import_scene.gltf(filepath=str(need(SHARED / "targets" / name)))
    obj = next(o for o in bpy.data.objects if o.type == "ARMATURE")
    target, found = measure(obj)
    legs = find_feet(target.skeleton, rig.match(target.skeleton), found).legs
    graph = bpy.context.evaluated_depsgraph_get()
    obj.data.pose_position = "REST"
    graph = bpy.context.evaluated_depsgraph_get()
    points = []
    for mesh in bpy.data.objects:
        if mesh.type == "MESH" and any(m.type == "ARMATURE" for m in mesh.modifiers):
            seen = mesh.evaluated_get(graph)
            points.append(np.array([tuple(seen.matrix_world @ v.co) for v in seen.data.vertices]))
    skin = np.concatenate(points)
    skeleton = target.skeleton
    for leg in legs:
        for joint, offset in ((leg.foot, leg.heel), (leg.foot, leg.ball), (leg.toe, leg.tip)):
            at = skeleton.rest_global_positions[joint] + quat.rotate(skeleton.rest_global_rotations[joint], offset) + target.origin
            under = skin[np.linalg.norm(skin[:, :2] - at[:2], axis=1) < 0.03]
            assert len(under) and abs(float(under[:, 2].min()) - at[2]) < 0.012
