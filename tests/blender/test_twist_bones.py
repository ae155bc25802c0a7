# SPDX-License-Identifier: GPL-3.0-or-later
"""Twist bones as Blender shows them: their turns, the skin on them, what the rig drives itself, edits, masks, and live poses."""

from __future__ import annotations

from dataclasses import replace

import bmesh
import bpy
import numpy as np
import pytest
from mathutils import Quaternion, Vector

from mocap_addon import formats, rig
from mocap_addon.blender import characters, update
from mocap_addon.blender.job import JobOptions, preview_table, retarget_onto
from mocap_addon.blender.live_pose import Rig, write_all
from mocap_addon.motion import quat
from mocap_addon.retarget import Mask
from mocap_addon.rig.table import CorrectionTable
from tests.blender.helpers import keys_of, world_matrices
from tests.paths import DATA, ROOT

WALK = DATA / "takes" / "cmu_walk_60rows.bvh"
CHARACTER = ROOT / "mocap_addon" / "demo" / "character.glb"
FRAMES = (1, 9, 17, 30, 44)
PLACES = {"LowerArm": (0.35, 0.7), "UpperArm": (0.0, 0.5), "LowerLeg": (0.6,)}
NEXT = {"LowerArm": "Hand", "UpperArm": "LowerArm", "LowerLeg": "Foot"}


@pytest.fixture
def hero() -> bpy.types.Object:
    """The demo's character with twist bones beside its limbs."""
    obj = characters.bring_in(CHARACTER).armature
    bpy.context.view_layer.objects.active = obj
    names = role_names(obj)
    bpy.ops.object.mode_set(mode="EDIT")
    bones = obj.data.edit_bones
    for part, places in PLACES.items():
        for side in ("left", "right"):
            limb, tip = bones[names[side + part]], bones[names[side + NEXT[part]]]
            for k, u in enumerate(places):
                made = bones.new(twist_name(side, part, k))
                made.head = limb.head.lerp(tip.head, u)
                made.tail = made.head + Vector((0.01, 0.02, 0.05))
                made.parent = limb
    bpy.ops.object.mode_set(mode="OBJECT")
    return obj


def twist_name(side: str, part: str, k: int) -> str:
    return f"{side}_{part}_twist_{k}"


def role_names(obj: bpy.types.Object) -> dict[str, str]:
    from mocap_addon.blender import armature

    skeleton = armature.read(obj, bpy.context.scene).skeleton
    return {role: skeleton.names[joints[0]] for role, joints in rig.match(skeleton).joints.items()}


def take():
    """The walk with hands that turn about the forearms, up to 140 degrees."""
    walk = formats.read(WALK)[0]
    roles = rig.match(walk.skeleton)
    local = walk.local_rotations.copy()
    places, rest = walk.skeleton.rest_global_positions, walk.skeleton.rest_global_rotations
    for side in ("left", "right"):
        hand, arm = roles.one(f"{side}Hand"), roles.one(f"{side}LowerArm")
        axis = quat.rotate(quat.inv(rest[hand]), places[hand] - places[arm])
        angle = np.radians(140.0) * np.sin(np.linspace(0.0, 5.0, len(local)))
        local[:, hand] = quat.mul(local[:, hand], quat.from_axis_angle(axis / np.linalg.norm(axis), angle))
    return replace(walk, local_rotations=local)


def about(turn: Quaternion, axis: Vector) -> float:
    """Degrees that a turn turns about an axis: what is left after the smallest swing."""
    swing = axis.rotation_difference(turn @ axis)
    rest = swing.inverted() @ turn
    angle = np.degrees(2.0 * np.arctan2(Vector((rest.x, rest.y, rest.z)).dot(axis), rest.w))
    return float((angle + 180.0) % 360.0 - 180.0)


def turned(obj: bpy.types.Object, names: list[str]) -> dict[str, list[Quaternion]]:
    """Away from rest, in the world, at FRAMES."""
    matrices = world_matrices(obj, FRAMES, names)
    from mathutils import Matrix

    out: dict[str, list[Quaternion]] = {}
    for k, name in enumerate(names):
        rest = (obj.matrix_world @ obj.data.bones[name].matrix_local).to_quaternion()
        out[name] = [Matrix(m).to_quaternion() @ rest.inverted() for m in matrices[:, k]]
    return out


def limb_axis(obj: bpy.types.Object, start: str, end: str) -> Vector:
    bones = obj.data.bones
    return (obj.matrix_world.to_3x3() @ (bones[end].head_local - bones[start].head_local)).normalized()


def check(obj: bpy.types.Object, part: str = "LowerArm", factor: float = 1.0) -> float:
    """The twist bones of one part of both limbs have their shares; the greatest roll in degrees."""
    names, most = role_names(obj), 0.0
    for side in ("left", "right"):
        limb, tip = names[side + part], names[side + NEXT[part]]
        own = [twist_name(side, part, k) for k in range(len(PLACES[part]))]
        above = obj.data.bones[limb].parent.name
        seen, axis = turned(obj, [limb, tip, above, *own]), limb_axis(obj, limb, tip)
        for f in range(len(FRAMES)):
            upper = part == "UpperArm"
            total = about(seen[above][f].inverted() @ seen[limb][f] if upper else seen[limb][f].inverted() @ seen[tip][f], axis)
            for name, u in zip(own, PLACES[part], strict=True):
                found = about(seen[limb][f].inverted() @ seen[name][f], axis)
                assert found == pytest.approx(factor * (u - 1.0 if upper else u) * total, abs=0.02), (name, FRAMES[f])
            most = max(most, abs(total))
    return most


def test_bones_beside_arms_and_legs_share_the_roll(hero):
    made = retarget_onto(hero, take())
    assert {row.target for row in made.table.rows if row.rule == "twist"} == {b.name for b in hero.data.bones if "_twist_" in b.name}
    assert check(hero) > 100.0
    check(hero, "UpperArm")
    check(hero, "LowerLeg")
    assert set(made.on_bones.bones) >= {made.target.skeleton.index(twist_name("left", "LowerArm", k)) for k in (0, 1)}


def tube(obj: bpy.types.Object) -> bpy.types.Object:
    """A cylinder along the left forearm, its weights going over from bone to bone by place."""
    names = role_names(obj)
    bones = [names["leftLowerArm"], twist_name("left", "LowerArm", 0), twist_name("left", "LowerArm", 1), names["leftHand"]]
    start, end = obj.data.bones[bones[0]].head_local, obj.data.bones[bones[-1]].head_local
    mesh = bpy.data.meshes.new("Tube")
    made = bmesh.new()
    way = end - start
    for ring in range(21):
        bmesh.ops.create_circle(made, segments=8, radius=0.1 * way.length)
        made.verts.ensure_lookup_table()
        turn = Vector((0.0, 0.0, 1.0)).rotation_difference(way)
        for vertex in made.verts[-8:]:
            vertex.co = turn @ vertex.co + start + ring / 20.0 * way
    made.to_mesh(mesh)
    made.free()
    skin = bpy.data.objects.new("Tube", mesh)
    bpy.context.scene.collection.objects.link(skin)
    skin.parent = obj
    skin.modifiers.new("Armature", "ARMATURE").object = obj
    at = [0.0, *PLACES["LowerArm"], 1.0]
    for k, name in enumerate(bones):
        group = skin.vertex_groups.new(name=name)
        for vertex in range(len(mesh.vertices)):
            group.add([vertex], float(np.interp(vertex // 8 / 20.0, at, np.eye(4)[k])), "REPLACE")
    return skin


def girth(skin: bpy.types.Object) -> float:
    """The narrowest ring of all frames as a share of what it is at rest."""
    least = 1.0
    rest = np.array([v.co for v in skin.data.vertices]).reshape(-1, 8, 3)
    wide = np.linalg.norm(rest - rest.mean(axis=1, keepdims=True), axis=-1).mean(axis=1)
    for frame in FRAMES:
        bpy.context.scene.frame_set(frame)
        seen = skin.evaluated_get(bpy.context.evaluated_depsgraph_get())
        now = np.array([v.co for v in seen.data.vertices]).reshape(-1, 8, 3)
        least = min(least, float((np.linalg.norm(now - now.mean(axis=1, keepdims=True), axis=-1).mean(axis=1) / wide).min()))
    return least


def off(table: CorrectionTable) -> CorrectionTable:
    return replace(table, rows=tuple(replace(row, blend=0.0) if row.rule == "twist" else row for row in table.rows))


def test_the_skin_of_the_wrist_keeps_its_girth(hero):
    skin, motion = tube(hero), take()
    made = retarget_onto(hero, motion)
    with_them = girth(skin)
    retarget_onto(hero, motion, table=off(made.table))
    without = girth(skin)
    assert without < 0.6 and with_them > 0.85, (without, with_them)


def test_what_the_rig_moves_itself_gets_no_keys(hero):
    held, driven = twist_name("left", "LowerArm", 1), twist_name("right", "UpperArm", 0)
    constraint = hero.pose.bones[held].constraints.new("COPY_ROTATION")
    constraint.target, constraint.subtarget, constraint.influence = hero, role_names(hero)["leftHand"], 0.5
    hero.pose.bones[driven].rotation_mode = "XYZ"
    hero.driver_add(f'pose.bones["{driven}"].rotation_euler', 1).driver.expression = "0.1"
    made = retarget_onto(hero, take())
    twists = {row.target for row in made.table.rows if row.rule == "twist"}
    assert not twists & {f"left_LowerArm_twist_{k}" for k in (0, 1)} and not twists & {f"right_UpperArm_twist_{k}" for k in (0, 1)}
    assert {"right_LowerArm_twist_0", "left_UpperArm_twist_1", "left_LowerLeg_twist_0"} <= twists


def test_an_edited_share_is_updated_in_place_and_a_mask_leaves_the_rest(hero):
    made = retarget_onto(hero, take())
    table = made.table
    for side in ("left", "right"):
        for k in (0, 1):
            row = table.row(twist_name(side, "LowerArm", k))
            table = table.with_row(replace(row, blend=0.5 * row.blend))
    update.update_action(hero, made.action, table=table)
    assert hero.animation_data.action == made.action
    check(hero, factor=0.5)
    before = keys_of(made.action)
    masked = retarget_onto(hero, take(), options=JobOptions(mask=Mask(parts=frozenset({"left arm"}))))
    same = {(path, index): points for path, index, points in keys_of(masked.action)}
    old = {(path, index): points for path, index, points in before}
    for path, index in old:
        if "_twist_" not in path:
            continue
        values = [[p[1] for p in which[path, index]] for which in (old, same)]
        assert np.allclose(*values, atol=1e-6) is ("left_LowerArm" not in path), path


def test_a_live_pose_has_them_too(hero):
    motion = take()
    _table, source_roles, _roles = preview_table(hero, motion)
    assert source_roles.one("leftHand") is not None
    follower = Rig(hero, motion.skeleton)
    assert follower.moment is not None
    f = 20
    moved = motion.local_translations
    write_all([follower], [motion.local_rotations[f]], [moved[min(f, len(moved) - 1)]])
    live = {pose.name: pose.matrix_basis.to_quaternion() for pose in hero.pose.bones}
    retarget_onto(hero, motion, options=JobOptions(rate="source", frame_start=1.0))
    rate = bpy.context.scene.render.fps / bpy.context.scene.render.fps_base
    at = 1.0 + float(motion.times[f] - motion.times[0]) * rate
    bpy.context.scene.frame_set(int(at), subframe=at % 1.0)
    for name in (twist_name(side, "LowerArm", k) for side in ("left", "right") for k in (0, 1)):
        assert live[name].rotation_difference(hero.pose.bones[name].matrix_basis.to_quaternion()).angle < 2e-3, name
        assert live[name].angle > 0.1


def test_a_link_between_forearm_and_hand_leaves_the_hand_where_it_was():
    obj = characters.bring_in(CHARACTER).armature
    bpy.context.view_layer.objects.active = obj
    names = role_names(obj)
    bpy.ops.object.mode_set(mode="EDIT")
    bones, added = obj.data.edit_bones, {}
    for side in ("left", "right"):
        for part in ("LowerArm", "UpperArm"):
            limb, tip = bones[names[side + part]], bones[names[side + NEXT[part]]]
            made = bones.new(f"{side}_{part}_twist")
            made.head, made.tail = limb.head.lerp(tip.head, 0.5), limb.head.lerp(tip.head, 0.8)
            made.roll = 1.0
            made.parent = limb
            tip.use_connect = False
            tip.parent = made
            added[side, part] = made.name
    bpy.ops.object.mode_set(mode="OBJECT")
    made = retarget_onto(obj, take())
    twists = {row.target: row.blend for row in made.table.rows if row.rule == "twist"}
    assert twists == pytest.approx(dict.fromkeys(added.values(), 0.5), abs=1e-3)
    followed = [names[side + part] for side in ("left", "right") for part in ("LowerArm", "Hand")]
    shared, seen = world_matrices(obj, FRAMES, followed), turned(obj, [names["leftLowerArm"], added["left", "LowerArm"], names["leftHand"]])
    axis = limb_axis(obj, names["leftLowerArm"], names["leftHand"])
    limb, link, hand = seen.values()
    whole = [about(a.inverted() @ b, axis) for a, b in zip(limb, hand, strict=True)]
    half = [about(a.inverted() @ b, axis) for a, b in zip(limb, link, strict=True)]
    assert half == pytest.approx([0.5 * angle for angle in whole], abs=0.02) and max(map(abs, whole)) > 100.0
    retarget_onto(obj, take(), table=off(made.table))
    assert np.abs(world_matrices(obj, FRAMES, followed) - shared).max() < 2e-6
