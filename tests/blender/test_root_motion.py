# SPDX-License-Identifier: GPL-3.0-or-later
"""Root motion as Blender evaluates it: root times hips is the motion of before, whoever carries it and however the object stands."""

from __future__ import annotations

import itertools
import zlib
from fractions import Fraction

import bpy
import numpy as np
import pytest
from mathutils import Vector

from mocap_addon import formats
from mocap_addon.blender import actions, characters, compat, job, root_motion, update
from mocap_addon.blender.job import JobOptions
from mocap_addon.motion import quat
from mocap_addon.motion.errors import MocapError, RigError
from mocap_addon.motion.take import Take
from mocap_addon.retarget import Mask
from mocap_addon.retarget.root_motion import RootMotion
from tests.paths import SHARED, need

from .helpers import make_rig, snapshot

METRES = 1e-4
DEGREES = 0.01
AXES = [letters for n in range(4) for letters in map("".join, itertools.combinations("xyz", n))]
CHARACTERS = {"unreal": "mh_ue_names_apose.glb", "mixamo": "mh_mixamo_names_scale001.glb", "kaykit": "kaykit_manny/manny_med_mod.gltf"}
HAS_ROOT = ("unreal", "kaykit")


@pytest.fixture(scope="module")
def take() -> Take:
    """Half a second of a walk that turns, starting beside the origin."""
    path = need(SHARED / "cmu" / "asf_01_01_playground_jumps_turn_30fps.bvh")
    whole = formats.read(path)[0].resampled(Fraction(24))
    some = whole.block(200, 290)
    picked = some.sampled(some.times[::11])
    turn = quat.from_axis_angle(np.array([0.0, 0.0, 1.0]), 0.7)
    moved = picked.rerooted(lambda q: quat.mul(turn, q), lambda v: quat.rotate(turn, v) + np.array([1.5, -0.8, 0.0]), rest=False)
    return Take(moved.name, moved.skeleton, np.arange(moved.frames) / 24.0, moved.local_rotations, moved.local_translations, Fraction(24))


def character(name: str) -> bpy.types.Object:
    obj = characters.bring_in(need(SHARED / "targets" / CHARACTERS[name])).armature
    if obj.animation_data is not None:
        obj.animation_data_clear()
    bpy.context.view_layer.update()
    return obj


def stand(obj: bpy.types.Object, how: str) -> None:
    """Put the object somewhere, in some way."""
    if how in ("turned", "parented"):
        obj.location = (0.7, -1.1, 0.3)
        obj.rotation_mode = {"turned": "ZXY", "parented": "AXIS_ANGLE"}[how]
        if how == "turned":
            obj.rotation_euler = (obj.rotation_euler[0] + 0.2, -0.4, 1.9)
            obj.delta_rotation_euler = (0.1, 0.2, -0.3)
            obj.delta_location = (0.0, 2.0, 0.0)
        else:
            obj.rotation_axis_angle = (1.1, 0.36, 0.48, 0.8)
        obj.scale = obj.scale * 1.7
    if how == "parented":
        for i in range(2):
            above = bpy.data.objects.new(f"Above {i}", None)
            bpy.context.scene.collection.objects.link(above)
            above.rotation_euler = (0.5, -0.3 * i, 2.0)
            above.location = (0.2, 1.0, -0.4)
            above.scale = (0.5, 0.5, 0.5)
            top = obj
            while top.parent is not None:
                top = top.parent
            top.parent = above
    bpy.context.view_layer.update()


def evaluated(obj: bpy.types.Object, count: int, names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Rotations ``(F, J, 4)`` and places ``(F, J, 3)`` of bones in the world from Blender's evaluated pose, frames 1 on; metres."""
    matrices = np.empty((count, len(names), 4, 4))
    for f in range(count):
        bpy.context.scene.frame_set(1 + f)
        ready = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        world = np.array(ready.matrix_world, dtype=np.float64)
        for j, name in enumerate(names):
            matrices[f, j] = world @ np.array(ready.pose.bones[name].matrix, dtype=np.float64)
    linear = matrices[..., :3, :3] / np.linalg.norm(matrices[..., :3, :3], axis=-2, keepdims=True)
    return quat.from_matrix(linear), matrices[..., :3, 3] * bpy.context.scene.unit_settings.scale_length


def same(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> None:
    assert np.linalg.norm(a[1] - b[1], axis=-1).max() < METRES
    assert np.degrees(quat.angle(a[0], b[0])).max() < DEGREES


def carried(pose: tuple[np.ndarray, np.ndarray], policy: RootMotion, rest: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Where a plain evaluated pose goes by the rule for first frames: its first hips over their rest place, perhaps with their heading."""
    q, x = pose
    if policy.origin == "keep":
        return pose
    turn = quat.IDENTITY
    if policy.origin == "first-heading":
        d = quat.mul(q[0, 0], quat.inv(rest[0]))
        turn = quat.from_axis_angle(np.array([0.0, 0.0, 1.0]), -2.0 * np.arctan2(d[3], d[0]))
    first = x[0, 0]
    return quat.mul(turn, q), np.array([rest[1][0], rest[1][1], first[2]]) + quat.rotate(turn, x - first)


def rest_of(obj: bpy.types.Object, name: str, head: str) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and place of a bone at rest in the world; the rotation as if the tilted object were put upright, the shortest way."""
    m = np.array(obj.matrix_world, dtype=np.float64) @ np.array(obj.data.bones[name].matrix_local, dtype=np.float64)
    turn = obj.matrix_world.to_quaternion()
    trunk = turn @ (obj.data.bones[head].head_local - obj.data.bones[name].head_local)
    up = max((s * (turn @ Vector(axis)) for axis in np.eye(3) for s in (1, -1)), key=trunk.dot)
    righted = quat.mul(np.array(up.rotation_difference(Vector((0, 0, 1)))), quat.from_matrix(m[:3, :3] / np.linalg.norm(m[:3, :3], axis=0)))
    return righted, m[:3, 3] * bpy.context.scene.unit_settings.scale_length


def body_names(result: job.JobResult) -> list[str]:
    """Hips first, then what hangs on them."""
    skeleton = result.target.skeleton
    hips = result.target_roles.one("hips")
    picked = [role for role in ("head", "leftHand", "rightFoot", "leftToes") if result.target_roles.one(role) is not None]
    return [skeleton.names[hips], *(skeleton.names[result.target_roles.one(role)] for role in picked)]


def run(obj: bpy.types.Object, take: Take, policy: RootMotion | None = None) -> job.JobResult:
    bpy.context.scene.render.fps = 24
    bpy.context.scene.frame_set(3)  # wherever the playhead stands, what carried before must not be taken for the place
    return job.retarget_onto(obj, take, options=JobOptions(frame_start=1.0, root=policy or RootMotion()))


@pytest.mark.parametrize("how", ["as it comes", "turned", "parented"])
@pytest.mark.parametrize("name", CHARACTERS)
def test_root_times_hips_is_the_motion_of_before(take, name, how):
    """Every destination with all axes, headings, first frames, with and without smoothing, one action after the other on one object."""
    obj = character(name)
    stand(obj, how)
    plain = run(obj, take)
    names = body_names(plain)
    before = evaluated(obj, take.frames, names)
    hips_rest = rest_of(obj, names[0], names[1])
    assert np.linalg.norm(np.ptp(before[1][:, 0], axis=0)) > 0.1
    destinations = ("object", "bone", "hips") if name in HAS_ROOT else ("object", "hips")
    for destination, axes, heading, origin, smoothing in itertools.product(
        destinations, AXES, ("root", "hips"), ("keep", "first", "first-heading"), (0.0, 0.4)
    ):
        policy = RootMotion(destination=destination, axes=axes, heading=heading, origin=origin, smoothing=smoothing)
        if zlib.crc32(repr((name, how, policy)).encode()) % (6 if destination != "hips" else 30):
            continue  # a sixth of them a character and place: each combination comes up with one or another
        run(obj, take, policy)
        same(evaluated(obj, take.frames, names), carried(before, policy, hips_rest))
    run(obj, take)
    same(evaluated(obj, take.frames, names), before)


# --- on what is in the scene: extract and merge -----------------------------------------------------------------------------------------


def keys_now(obj: bpy.types.Object) -> dict[tuple[str, int], np.ndarray]:
    out = {}
    for curve in compat.moving_curves(obj.animation_data):
        co = np.empty(2 * len(curve.keyframe_points), dtype=np.float32)
        curve.keyframe_points.foreach_get("co", co)
        out[curve.data_path, curve.array_index] = co
    return out


@pytest.mark.parametrize("how", ["as it comes", "turned", "parented"])
@pytest.mark.parametrize("name", CHARACTERS)
def test_extract_and_merge_in_the_scene(take, name, how):
    obj = character(name)
    stand(obj, how)
    plain = run(obj, take)
    names = body_names(plain)
    before, untouched = evaluated(obj, take.frames, names), keys_now(obj)
    standing = rest_of(obj, names[0], names[1])[1]
    policies = [
        RootMotion(destination="object"),
        RootMotion(destination="object", axes="xyz", heading="hips", smoothing=0.3),
        RootMotion(source="object", destination="object", axes="x"),
        RootMotion(destination="hips"),
    ]
    if name in HAS_ROOT:
        policies[2:2] = [RootMotion(destination="bone"), RootMotion(source="root", destination="bone", axes="y", heading="hips")]
        policies[-1:-1] = [RootMotion(destination="object")]
    if name in HAS_ROOT:  # the way is handed on: from the object again, not from a root that does not move
        policies[4] = RootMotion(destination="object", smoothing=0.2)
    for policy in policies:
        bpy.context.scene.frame_set(5)
        old = obj.animation_data.action
        old_keys = keys_now(obj)
        result = root_motion.extract(obj, policy)
        assert result.before == old and obj.animation_data.action == result.action != old
        same(evaluated(obj, take.frames, names), before)
        compat.assign(obj.animation_data, old, next(iter(compat.slots(old))))
        assert all(np.array_equal(old_keys[k], v) for k, v in keys_now(obj).items())
        compat.assign(obj.animation_data, result.action, next(iter(compat.slots(result.action))))
    bpy.context.scene.frame_set(6)
    root_motion.extract(obj, RootMotion(destination="object"))
    merged = root_motion.merge(obj)
    same(evaluated(obj, take.frames, names), before)
    again = keys_now(obj)
    assert max(np.abs(again[k] - untouched[k]).max() for k in untouched) < 2e-4 * (100.0 if name == "mixamo" else 1.0)
    assert np.allclose(rest_of(obj, names[0], names[1])[1], standing, atol=1e-6)
    assert merged.action.name.startswith(f"{take.name} hips")


def test_in_place_in_the_scene(take):
    obj = character("unreal")
    names = body_names(run(obj, take))
    before = evaluated(obj, take.frames, names)
    result = root_motion.extract(obj, RootMotion(destination="in-place", heading="hips"))
    after = evaluated(obj, take.frames, names)
    way = before[1][:, :1] - rest_of(obj, names[0], names[1])[1]
    way[..., 2] = 0.0
    same((after[0], after[1] + way), before)
    assert result.action.name == f"{take.name} in place"


def test_the_rest_of_the_action_is_as_it_was(take):
    """Fingers, face and custom properties of the new action have the very keys of the old one; hips and root alone differ."""
    obj = character("unreal")
    run(obj, take)
    obj["glow"] = 0.0
    obj.animation_data.action.name = "walk"
    bag = compat.bag_of(obj.animation_data.action, compat.assigned_slot(obj.animation_data))
    extra = compat.new_curve(bag, '["glow"]', 0, "Mine")
    extra.keyframe_points.insert(2.0, 0.5).interpolation = "BEZIER"
    before = keys_now(obj)
    root_motion.extract(obj, RootMotion(destination="bone"))
    after = keys_now(obj)
    changed = {path for path, i in before if not np.array_equal(before[path, i], after.get((path, i)))}
    assert changed == {'pose.bones["pelvis"].location', 'pose.bones["pelvis"].rotation_quaternion'}
    assert {path for path, _ in after} - {path for path, _ in before} == {
        'pose.bones["Root"].location',
        'pose.bones["Root"].rotation_quaternion',
    }


def test_made_again_after_extracting(take, tmp_path):
    """Hand edits live on, the root motion too, whatever was divided or put back in between."""
    obj = character("unreal")
    plain = run(obj, take)
    names = body_names(plain)

    def turn_by_hand(bone: str, frame: int) -> None:
        for curve in compat.moving_curves(obj.animation_data):
            if curve.data_path == f'pose.bones["{bone}"].rotation_quaternion':
                point = curve.keyframe_points[frame]
                point.co[1] = (0.8, 0.6, 0.0, 0.0)[curve.array_index]
                curve.update()

    turn_by_hand("spine_02", 3)
    turn_by_hand("pelvis", 5)
    edited = evaluated(obj, take.frames, names)
    for step in (
        lambda: root_motion.extract(obj, RootMotion(destination="bone", smoothing=0.3)),
        lambda: root_motion.extract(obj, RootMotion(destination="object", axes="xyz")),
        lambda: root_motion.merge(obj),
    ):
        action = step().action
        before = keys_now(obj).keys()
        done = update.update_action(obj, action, take=take)
        assert set(done.edited) == {"spine_02", "pelvis"}
        same(evaluated(obj, take.frames, names), edited)
        assert keys_now(obj).keys() == before
    update.clear_edits(obj, action)
    assert np.degrees(quat.angle(evaluated(obj, take.frames, names)[0], edited[0])).max() > 30.0


def test_one_action_made_again_under_one_policy_after_the_other(take):
    """What carried before goes back to rest; the object is where it stood whenever it does not carry."""
    obj = character("unreal")
    obj.location = (1.0, 2.0, 0.0)
    bpy.context.view_layer.update()
    plain = run(obj, take)
    names = body_names(plain)
    before = evaluated(obj, take.frames, names)
    for policy in (
        RootMotion(destination="object"),
        RootMotion(destination="bone"),
        RootMotion(),
        RootMotion(destination="object", heading="hips"),
        RootMotion(destination="bone", smoothing=0.3),
        RootMotion(),
    ):
        bpy.context.scene.frame_set(6)
        update.update_action(obj, plain.action, take=take, options=JobOptions(frame_start=1.0, root=policy))
        same(evaluated(obj, take.frames, names), before)
        if policy.destination != "object":
            assert tuple(obj.location) == pytest.approx((1.0, 2.0, 0.0))


def test_a_mask_over_motion_that_the_object_carries(take):
    """The same root motion: the left arm alone changes. Another one cannot be laid over it, and says so."""
    obj = character("unreal")
    names = body_names(run(obj, take, RootMotion(destination="object")))
    before = evaluated(obj, take.frames, names)
    other = Take("t", take.skeleton, take.times, take.local_rotations[::-1], take.local_translations[::-1], take.rate)
    arm = Mask(parts=frozenset({"left arm"}))
    options = JobOptions(frame_start=1.0, root=RootMotion(destination="object"), mask=arm)
    bpy.context.scene.frame_set(5)
    job.retarget_onto(obj, other, options=options)
    after = evaluated(obj, take.frames, names)
    kept = [i for i, name in enumerate(names) if name != "hand_l"]
    same((after[0][:, kept], after[1][:, kept]), (before[0][:, kept], before[1][:, kept]))
    assert np.abs(after[1] - before[1]).max() > 0.05
    with pytest.raises(RigError, match='carried by the object, the new one by "Root"'):
        job.retarget_onto(obj, take, options=JobOptions(root=RootMotion(destination="bone"), mask=arm))


def test_a_source_root_that_stands_still_is_said():
    take = formats.read(need(SHARED / "bandai_nc" / "dataset-1_walk_normal_001.bvh"))[0].block(0, 9)
    result = run(character("unreal"), take, RootMotion(source="root", destination="bone"))
    assert any("root joint does not move" in note for note in result.notes)


def test_complaint_10_travel_that_somebody_keyed_on_the_object(take):
    """An object moved and turned by a few eased keys: put into the hips it is the same on every frame, and the object stands still."""
    obj = character("unreal")
    policy = RootMotion(destination="in-place", axes="xyz")
    run(obj, take, policy)
    obj.rotation_mode = "XYZ"
    start = obj.location.copy()
    for frame, place, angle in ((1, (0.2, 0.0, 0.0), 0.0), (4, (1.0, -1.0, 0.1), 0.8), (take.frames, (1.5, -3.0, 0.0), 2.5)):
        obj.location = place
        obj.keyframe_insert("location", frame=frame)
        obj.rotation_euler = (0.0, 0.0, angle)
        obj.keyframe_insert("rotation_euler", frame=frame)
    names = ["pelvis", "head", "hand_l", "ball_r"]
    before = evaluated(obj, take.frames, names)
    bpy.context.scene.frame_set(7)
    root_motion.merge(obj)
    same(evaluated(obj, take.frames, names), before)
    assert np.ptp([tuple(obj.location) for _ in [bpy.context.scene.frame_set(f) for f in (1, 9)]], axis=0).max() == 0.0
    assert tuple(obj.location) == pytest.approx((0.2, 0.0, 0.0)) and start.length == 0.0
    root_motion.extract(obj, RootMotion(destination="bone"))
    same(evaluated(obj, take.frames, names), before)


def test_complaint_09_bob_in_the_hips_way_in_the_root(take):
    obj = character("unreal")
    names = body_names(run(obj, take))
    run(obj, take, RootMotion(destination="bone", axes="xy"))
    root = evaluated(obj, take.frames, ["Root"])[1][:, 0]
    hips = evaluated(obj, take.frames, names)[1][:, 0]
    assert np.ptp(root[:, 2]) < 1e-6
    assert np.abs(hips[:, :2] - root[:, :2] - (hips[0, :2] - root[0, :2])).max() < 0.05  # the hips bone is 1.4 cm off the root's axis
    assert np.ptp(hips[:, 2]) > 0.05


def test_complaint_14_five_hundred_metres_away(take):
    obj = character("unreal")
    far = take.rerooted(lambda q: q, lambda v: v + np.array([500.0, -500.0, 0.0]), rest=False)
    rotations = {}
    for destination in ("bone", "object", "in-place"):
        for which, one in (("near", take), ("far", far)):
            run(obj, one, RootMotion(destination=destination))
            keys = keys_now(obj)
            rotations[which] = {k: v[1::2] for k, v in keys.items() if "rotation" in k[0] and "pelvis" in k[0]}
        assert max(np.abs(rotations["near"][k] - rotations["far"][k]).max() for k in rotations["near"]) < 1e-6


def test_a_hundredth_of_a_metre_as_the_scenes_unit(take):
    bpy.context.scene.unit_settings.scale_length = 0.01
    obj = character("unreal")
    names = body_names(run(obj, take))
    before = evaluated(obj, take.frames, names)
    for policy in (RootMotion(destination="object"), RootMotion(destination="bone", axes="xyz")):
        run(obj, take, policy)
        same(evaluated(obj, take.frames, names), before)
    root_motion.merge(obj)
    same(evaluated(obj, take.frames, names), before)


def test_from_the_object_to_the_hips_again_leaves_the_object_where_it_was(take):
    """Whatever is done in which order, wherever the playhead stands: the character's place is not lost."""
    obj = character("mixamo")
    obj.location = (3.0, -2.0, 0.5)
    bpy.context.view_layer.update()
    place = np.array(obj.matrix_world)
    before = evaluated(obj, take.frames, body_names(run(obj, take)))
    for policy in (RootMotion(destination="object"), RootMotion(), RootMotion(destination="object", heading="hips"), RootMotion()):
        bpy.context.scene.frame_set(take.frames)
        names = body_names(job.retarget_onto(obj, take, options=JobOptions(frame_start=1.0, root=policy)))
        same(evaluated(obj, take.frames, names), before)
    assert np.abs(np.array(obj.matrix_world) - place).max() < 1e-6


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda obj: obj.animation_data_clear(), "has no action"),
        (lambda obj: setattr(obj.pose.bones["Root"], "scale", (2, 2, 2)), 'bone "Root" above the hips is scaled'),
        (lambda obj: [setattr(c, "mute", True) for c in compat.moving_curves(obj.animation_data)], "moves neither the hips"),
    ],
)
def test_what_cannot_be_divided_is_one_sentence_and_nothing_changes(take, spoil, words):
    obj = character("unreal")
    run(obj, take)
    spoil(obj)
    bpy.context.view_layer.update()
    before = snapshot()
    with pytest.raises(MocapError, match=words):
        root_motion.extract(obj, RootMotion(destination="bone"))
    assert snapshot() == before


def test_no_root_bone_and_nothing_to_merge(take):
    obj = character("mixamo")
    run(obj, take)
    before = snapshot()
    for doing in (
        lambda: run(obj, take, RootMotion(destination="bone")),
        lambda: root_motion.extract(obj, RootMotion(destination="bone")),
        lambda: root_motion.extract(obj, RootMotion(source="object", destination="object")),
    ):
        with pytest.raises(RigError, match=r"^The .*\.$"):
            doing()
    with pytest.raises(RigError, match="nothing to put into its hips"):
        root_motion.merge(obj)
    bpy.context.scene.frame_set(1)
    after = snapshot()
    assert after["counts"] == before["counts"] and after["actions"] == before["actions"]


def test_unevenly_scaled_parents_are_one_sentence(take):
    obj = character("unreal")
    above = bpy.data.objects.new("Above", None)
    bpy.context.scene.collection.objects.link(above)
    above.scale = (1.0, 2.0, 1.0)
    obj.scale = (1.0, 0.5, 1.0)
    obj.parent = above
    bpy.context.view_layer.update()
    actions_before = len(bpy.data.actions)
    with pytest.raises(MocapError, match="scaled unevenly"):
        run(obj, take, RootMotion(destination="object"))
    assert len(bpy.data.actions) == actions_before
    run(obj, take, RootMotion(destination="object", heading="hips"))


@pytest.mark.parametrize("stage", ["write_curves", "make_active"])
def test_a_fault_in_the_middle_leaves_everything_as_it_was(take, stage, monkeypatch):
    obj = character("unreal")
    run(obj, take)
    bpy.context.view_layer.update()
    before = snapshot()
    real = getattr(actions, stage)

    def broken(*args, **kwargs):
        real(*args, **kwargs)
        raise OSError("injected")

    monkeypatch.setattr(actions, stage, broken)
    with pytest.raises(OSError, match="injected"):
        root_motion.extract(obj, RootMotion(destination="bone"))
    monkeypatch.undo()
    assert snapshot() == before


def test_hips_connected_to_the_root_bone():
    """They cannot be moved, so the root bone takes all of the way, whatever was asked; the motion is the same."""
    path = need(SHARED / "cmu" / "asf_02_01_walk.bvh")
    whole = formats.read(path)[0].resampled(Fraction(24))
    short = whole.block(0, 8)
    obj = connected()
    plain = run(obj, short)
    names = body_names(plain)
    before = evaluated(obj, short.frames, names)
    assert np.linalg.norm(np.ptp(before[1][:, 0], axis=0)) > 0.3
    for policy in (
        RootMotion(destination="bone"),
        RootMotion(destination="bone", axes="", heading="hips"),
        RootMotion(destination="object", smoothing=0.5),
    ):
        run(obj, short, policy)
        same(evaluated(obj, short.frames, names), before)
    root_motion.extract(obj, RootMotion(destination="bone"))
    same(evaluated(obj, short.frames, names), before)
    root_motion.merge(obj)
    same(evaluated(obj, short.frames, names), before)


def connected() -> bpy.types.Object:
    rows = [("root", None, (0, 0.4, 0.9), (0, 0, 0.95), 0.3), ("hips", "root", (0, 0, 0.95), (0, 0, 1.1), 0.0)]
    rows += [("spine", "hips", (0, 0, 1.1), (0, 0, 1.3), 0.0), ("chest", "spine", (0, 0, 1.3), (0, 0, 1.5), 0.0)]
    rows += [("neck", "chest", (0, 0, 1.5), (0, 0, 1.6), 0.0), ("head", "neck", (0, 0, 1.6), (0, 0, 1.8), 0.0)]
    for side, x in (("L", 1), ("R", -1)):
        rows += [
            (f"shoulder.{side}", "chest", (0.03 * x, 0, 1.45), (0.16 * x, 0, 1.45), 0.0),
            (f"upper_arm.{side}", f"shoulder.{side}", (0.17 * x, 0, 1.45), (0.45 * x, 0, 1.45), 0.0),
            (f"forearm.{side}", f"upper_arm.{side}", (0.45 * x, 0, 1.45), (0.7 * x, 0, 1.45), 0.0),
            (f"hand.{side}", f"forearm.{side}", (0.7 * x, 0, 1.45), (0.85 * x, 0, 1.45), 0.0),
            (f"thigh.{side}", "hips", (0.1 * x, 0, 0.92), (0.1 * x, -0.01, 0.5), 0.0),
            (f"shin.{side}", f"thigh.{side}", (0.1 * x, -0.01, 0.5), (0.1 * x, 0.02, 0.08), 0.0),
            (f"foot.{side}", f"shin.{side}", (0.1 * x, 0.02, 0.08), (0.1 * x, -0.12, 0.02), 0.0),
            (f"toe.{side}", f"foot.{side}", (0.1 * x, -0.12, 0.02), (0.1 * x, -0.2, 0.02), 0.0),
        ]
    obj = make_rig(rows)
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode="EDIT")
    obj.data.edit_bones["hips"].use_connect = True
    bpy.ops.object.mode_set(mode="OBJECT")
    return obj
