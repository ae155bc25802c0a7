# SPDX-License-Identifier: GPL-3.0-or-later
"""Known complaints about retargeting, 8 to 14: hips, travel, ground. Truth is Blender's BVH importer and the evaluated pose."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix

from mocap_addon.blender import compat, sources
from mocap_addon.motion import quat
from mocap_addon.retarget.root_motion import RootMotion
from tests.paths import need

from . import fidelity
from .complaints import FRAMES, LEGS, SOURCE_LEGS, WALK, assert_walks, character, edit, original, retarget, walk, walked
from .snapshot import beside_the_retarget, snapshot


@pytest.fixture
def truth():
    return original()


def shorter_legs(obj: bpy.types.Object, factor: float) -> None:
    """Legs scaled about the hip joints, feet and toes kept whole; then everything lowered to stand on the ground."""

    def change(bones) -> None:
        for thigh, calf, foot in LEGS:
            hip, knee, ankle = (bones[name].head.copy() for name in (thigh, calf, foot))
            new_knee, new_ankle = hip + (knee - hip) * factor, hip + (ankle - hip) * factor
            step = new_ankle - ankle
            below = [bones[foot], *bones[foot].children_recursive]
            for bone in below:
                bone.head, bone.tail = bone.head + step, bone.tail + step
            bones[calf].head, bones[calf].tail = new_knee, new_ankle
            bones[thigh].tail = new_knee
            drop = step.z
        for bone in bones:
            if bone.name != "Root":
                bone.head.z, bone.tail.z = bone.head.z - drop, bone.tail.z - drop

    edit(obj, change)


def stances(places: np.ndarray) -> list[np.ndarray]:
    """Runs of at least five frames in which a ball of the foot ``(F, 3)`` moves along the ground at less than 10 cm/s."""
    still = np.linalg.norm(np.gradient(places[:, :2], axis=0), axis=1) < 0.1 / 24
    edges = np.flatnonzero(np.diff(np.concatenate([[0], still, [0]])))
    return [np.arange(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if b - a >= 5]


def test_08_shorter_legs_do_not_slide_or_sink(truth):
    """R: hip travel scaled by leg length. T: legs x0.8; stance-foot drift < 1 cm, penetration < 0.5 cm.

    The walker's own feet slide by up to 2 cm, and the take's floor is not quite level. What counts is what shorter legs add: against the
    same person with whole legs, by the ratio of the legs. (Pinning the feet is another stage.)
    """
    frames = np.arange(1, 70)
    balls, rest = {}, {}
    for factor in (1.0, 0.8):
        obj = character()
        shorter_legs(obj, factor)
        rest[factor] = fidelity.rest(obj).place("ball_l")[0, 2]
        retarget(obj)
        assert_walks(obj, truth)
        out = fidelity.evaluated(obj, frames)
        balls[factor] = np.stack([out.place(name) for name in ("ball_l", "ball_r")], axis=1)
        bpy.data.objects.remove(obj)
    assert rest[0.8] == pytest.approx(rest[1.0], abs=1e-5)
    count = 0
    for foot in (0, 1):
        long, short = balls[1.0][:, foot], balls[0.8][:, foot]
        for run in stances(long):
            count += 1
            middle = run[len(run) // 2]
            added = (short[run] - short[middle]) - 0.8 * (long[run] - long[middle])
            assert np.linalg.norm(added[:, :2], axis=1).max() < 0.01
            ground = 0.8 * (long[run, 2].min() - rest[1.0]) + rest[0.8]  # the floor there
            assert short[run, 2].min() > ground - 0.005
    assert count >= 5


def test_09_hips_bob_and_a_prop_bone_moves(truth):
    """R: hips' height and travel kept, optional prop bones. T: hips bob; a prop bone below the hand moves by a row marked movable."""
    obj = character()
    edit(obj, lambda bones: _prop(bones))
    base = walk()
    joint = base.skeleton.index("rhand")
    local = np.array(np.broadcast_to(base.local_translations, (base.frames, len(base.skeleton), 3)))
    slide = np.linspace(0.0, 0.2, base.frames)
    local[:, joint, 1] += slide
    take = replace(base, local_translations=local)
    plain = retarget(obj, take)
    row = next(row for row in plain.table.rows if row.target == "hand_r")
    prop = replace(row, role="helper", target="prop", movable=True)
    retarget(obj, take, table=replace(plain.table, rows=(*plain.table.rows, prop)))
    assert_walks(obj, truth)
    seen = fidelity.evaluated(obj, FRAMES)
    k = walked(seen, fidelity.rest(obj)).leg / fidelity_leg(base)
    away = np.linalg.norm(seen.place("prop") - seen.place("hand_r"), axis=1)
    wanted = np.linalg.norm(seen.place("prop") - seen.place("hand_r"), axis=1)[0]
    moved = np.interp(np.array(FRAMES) - 1.0, np.arange(base.frames) / 5.0, slide) * k
    assert np.abs(np.abs(away - wanted) - moved).max() < 0.02 and away[-1] - wanted > 0.1 * k
    assert np.ptp(seen.place("pelvis")[:, 2]) > 0.02  # the bob


def _prop(bones) -> None:
    hand = bones["hand_r"]
    made = bones.new("prop")
    made.head, made.tail, made.parent = hand.head, hand.tail, hand


def fidelity_leg(take) -> float:
    names = ("lfemur", "ltibia", "lfoot")
    places = [take.skeleton.rest_global_positions[take.skeleton.index(n)] for n in names]
    return float(sum(np.linalg.norm(b - a) for a, b in pairwise(places)))


def test_10_all_travel_lives_on_the_object():
    """R: object curves are read; the way goes to the hips, a root bone or the object by choice. T: a rig that only its object carries."""
    source = fidelity.blender_bvh(need(fidelity.find(WALK)), scale=0.05644)
    root = next(bone.name for bone in source.data.bones if bone.parent is None)
    for curve in list(compat.all_curves(source.animation_data.action)):
        if f'"{root}"].location' in curve.data_path:
            curve.mute = True  # its hips walk on the spot now
    source.rotation_mode = "XYZ"
    for frame, place, turn in ((1, (0.0, 0.0, 0.0), 0.0), (61, (2.0, -3.0, 0.5), 1.2)):
        source.location, source.rotation_euler.z = place, turn
        source.keyframe_insert("location", frame=frame)
        source.keyframe_insert("rotation_euler", index=2, frame=frame)
    for curve in compat.all_curves(source.animation_data.action):
        if curve.data_path in ("location", "rotation_euler"):
            for key in curve.keyframe_points:
                key.interpolation = "LINEAR"
    take = sources.read_rig(source, frame_range=(1, 61))
    frames = (1, 16, 31, 61)
    seen = {}
    for destination in ("hips", "bone", "object"):
        obj = character()
        result = retarget(obj, take, root=RootMotion(destination=destination), rate="source")
        seen[destination] = fidelity.evaluated(obj, frames)
        carried = {c.data_path for c in compat.all_curves(result.action)}
        assert ("location" in carried) == (destination == "object")
        assert ('pose.bones["Root"].location' in carried) == (destination == "bone")
    truth = walked(fidelity.evaluated(source, frames), fidelity.rest(source), SOURCE_LEGS)
    assert np.linalg.norm((truth.hips[-1] - truth.hips[0])[:2]) > 3.0  # the object does carry it
    rest, heading = fidelity.rest(obj), np.degrees(quat.angle(*fidelity.evaluated(source, (1, 61)).turn(root)))
    assert heading > 50.0
    for destination, pose in seen.items():
        own = walked(pose, rest)
        gone, wanted = own.hips - own.hips[0], own.leg / truth.leg * (truth.hips - truth.hips[0])
        assert np.abs(np.linalg.norm(gone[:, :2], axis=1) - np.linalg.norm(wanted[:, :2], axis=1)).max() < 2e-3, destination
        assert np.abs(gone[:, 2] - wanted[:, 2]).max() < 2e-3, destination
        turned = pose.turn("pelvis")
        assert abs(np.degrees(quat.angle(turned[0], turned[-1])) - heading) < 0.05, destination
        assert np.abs(pose.place("pelvis") - seen["hips"].place("pelvis")).max() < 1e-4, destination
        assert np.degrees(quat.angle(pose.turn("head"), seen["hips"].turn("head"))).max() < 0.02, destination


def test_11_a_root_without_a_source_does_not_hold_the_hips(truth):
    """R: travel kept, the first frame's place stated by rule. T: target has an extra root above the hips, the source none."""
    obj = character()
    result = retarget(obj)
    assert all(row.target != "Root" for row in result.table.rows)
    assert not any('"Root"' in curve.data_path for curve in compat.all_curves(result.action))
    assert_walks(obj, truth)
    seen = fidelity.evaluated(obj, (1,))
    assert np.linalg.norm(seen.place("Root")[0]) < 1e-6
    # the rule: the take's own origin is the object's; where the walker stood in the first frame, by the ratio of the legs
    start = walked(seen, fidelity.rest(obj)).hips[0] / walked(seen, fidelity.rest(obj)).leg
    assert np.linalg.norm(start[:2]) == pytest.approx(np.linalg.norm(truth.hips[0, :2]) / truth.leg, abs=1e-3)


def test_11_a_root_animated_before_does_not_shift_the_walk(truth):
    """R: no jump. T: the root was moved by an earlier action and the playhead stood in the middle of it."""
    obj = character()
    root = obj.pose.bones["Root"]
    for frame, y in ((1, 0.0), (40, -3.0)):
        root.location = (0.0, y, 0.0)
        root.keyframe_insert("location", frame=frame)
    old = obj.animation_data.action
    bpy.context.scene.frame_set(40)
    retarget(obj)
    assert_walks(obj, truth)
    assert np.abs(fidelity.evaluated(obj, FRAMES).place("Root")).max() < 1e-6
    assert len(compat.all_curves(old)[0].keyframe_points) == 2


def test_11_a_root_posed_by_hand_carries_the_character_and_is_named(truth):
    """R: said in a note. T: the root is moved and turned by hand, without keys."""
    obj = character()
    root = obj.pose.bones["Root"]
    root.location, root.rotation_quaternion = (2.0, 0.0, 0.0), (0.8, 0.0, 0.6, 0.0)
    result = retarget(obj)
    assert any("carried" in note and "Root" in note for note in result.notes)
    assert_walks(obj, truth)
    assert tuple(root.location) == (2.0, 0.0, 0.0)


def connected(obj: bpy.types.Object) -> None:
    def change(bones) -> None:
        bones["Root"].tail = bones["pelvis"].head
        bones["pelvis"].use_connect = True

    edit(obj, change)


def test_12_connected_hips_travel_by_the_bone_above(truth):
    """R: detect use_connect on a bone that must move, say so, route to a parent. T: hips connected to root."""
    obj = character()
    connected(obj)
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    assert any('"pelvis" is connected' in note and '"Root"' in note for note in result.notes)
    paths = {curve.data_path for curve in compat.all_curves(result.action)}
    assert 'pose.bones["Root"].location' in paths and 'pose.bones["pelvis"].location' not in paths
    assert_walks(obj, truth)


def test_12_hips_with_the_connect_flag_but_no_parent(truth):
    """R: said and routed too: Blender ignores the location of such a bone as well. T: hips connected WITHOUT a parent."""
    obj = character()

    def change(bones) -> None:
        bones.remove(bones["Root"])
        bones["pelvis"].use_connect = True

    edit(obj, change)
    pose = obj.pose.bones["pelvis"]
    pose.location = (1.0, 2.0, 3.0)
    bpy.context.view_layer.update()
    assert (pose.matrix.translation - obj.data.bones["pelvis"].head_local).length < 1e-6  # what Blender does
    result = retarget(obj)
    assert any("no longer has" in note and "the object itself is moved" in note for note in result.notes)
    assert_walks(obj, truth)


@pytest.mark.parametrize("axes", [(True, True, True), (True, True, False)])
def test_12_locked_hips(truth, axes):
    """R: detect lock flags on a bone that must move, say so. T: all axes locked: the bone above moves; some: keys work, a note says so."""
    obj = character()
    obj.pose.bones["pelvis"].lock_location = axes
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    words = ("locked location, so", "Root") if all(axes) else ("Locks do not hold keys back; locked location", "pelvis")
    assert any(words[0] in note and words[1] in note for note in result.notes)
    assert [result.target.skeleton.names[j] for j in result.motion.moving] == ["Root" if all(axes) else "pelvis"]
    assert_walks(obj, truth)


@pytest.mark.parametrize("how", ["plain", "turned and scaled", "parented"])
def test_12_with_nothing_above_that_moves_the_object_walks(truth, how):
    """R: else route to the object. T: hips connected to a locked root; the object turned, scaled, parented to a turned empty."""
    obj = character()
    connected(obj)
    obj.pose.bones["Root"].lock_location = (True, True, True)
    obj.location = (1.0, 2.0, 0.0)
    if how != "plain":
        obj.data.transform(Matrix.Scale(100.0, 4))
        obj.scale = (0.01,) * 3
        obj.rotation_mode, obj.rotation_euler = "XYZ", (0.4, -0.2, 2.0)
        obj.data.transform(Euler((0.4, -0.2, 2.0)).to_matrix().to_4x4().inverted())
    if how == "parented":
        empty = bpy.data.objects.new("Empty", None)
        bpy.context.scene.collection.objects.link(empty)
        empty.rotation_euler, empty.location, empty.scale = (0.3, 0.7, -1.0), (4.0, 5.0, 6.0), (2.0,) * 3
        bpy.context.view_layer.update()
        obj.parent, obj.matrix_parent_inverse = empty, empty.matrix_world.inverted()
    bpy.context.view_layer.update()
    before = snapshot()
    first = retarget(obj)
    assert beside_the_retarget(before, obj, first.action, carried=True) == []
    assert any("the object itself is moved" in note for note in first.notes)
    assert not first.motion.moving
    assert_walks(obj, truth)
    once = fidelity.evaluated(obj, FRAMES)
    assert np.linalg.norm(once.place("pelvis")[0, :2] - (1.0, 2.0)) < 2.0  # it starts where the object stood
    bpy.context.scene.frame_set(40)  # a second run from the middle of the walk starts at the same place
    retarget(obj)
    again = fidelity.evaluated(obj, FRAMES)
    assert np.abs(once.positions - again.positions).max() < 1e-4
    # and an action that leaves the object alone puts it back
    obj.pose.bones["Root"].lock_location = (False, False, False)
    retarget(obj)
    bpy.context.scene.frame_set(40)
    assert np.abs(np.array(obj.location) - (1.0, 2.0, 0.0)).max() < 1e-5
    assert np.abs(fidelity.evaluated(obj, FRAMES).place("pelvis") - once.place("pelvis")).max() < 2e-3


def test_14_five_hundred_metres_away_nothing_trembles():
    """R: < 0.01 degree wobble at 500 m. T: same clip at 0 and at +500 m; local rotations and the evaluated pose compared."""
    obj = character()
    frames = np.arange(1, 70, 4)
    retarget(obj)
    near = fidelity.evaluated(obj, frames)
    retarget(obj, walk().rerooted(lambda q: q, lambda v: v + np.array([500.0, 0.0, 0.0]), rest=False))
    far = fidelity.evaluated(obj, frames)
    assert np.linalg.norm(far.place("pelvis")[0] - near.place("pelvis")[0]) > 400.0
    assert np.degrees(quat.angle(near.rotations, far.rotations)).max() < 0.01
    step = far.positions - near.positions
    moved = [i for i, name in enumerate(near.names) if name != "Root"]
    assert np.ptp(step[:, moved], axis=(0, 1)).max() < 5e-4
