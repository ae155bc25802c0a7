# SPDX-License-Identifier: GPL-3.0-or-later
"""What is planned for hips and legs is what Blender shows afterwards; the rest of the action, and the action before, stay as they are.

The plan is a made-up one here, so that what is tested is the way in and out of Blender: any turn of any leg bone, any way of the hips.
"""

from __future__ import annotations

import json
from dataclasses import replace

import bpy
import numpy as np
import pytest
from mathutils import Matrix

from mocap_addon import formats
from mocap_addon.blender import compat, feet, feet_actions, job, update
from mocap_addon.blender.feet_recipe import FeetOptions, GroundChoice, feet_of
from mocap_addon.blender.recipes import recipe_of
from mocap_addon.feet.result import FeetResult
from mocap_addon.motion import quat
from mocap_addon.motion.errors import MocapError, RigError
from mocap_addon.retarget.root_motion import RootMotion
from tests.paths import DATA

from .control_rig_makers import plain_rig, retarget
from .helpers import keys_of, make_rig

WALK = DATA / "takes" / "cmu_walk_60rows.bvh"
FLOOR = FeetOptions(ground=GroundChoice("floor"))


@pytest.fixture(scope="module")
def walk():
    return formats.read(WALK)[0]


def person() -> bpy.types.Object:
    """A person of plain bones with odd rolls."""
    rows = [("Hips", None, (0, 0, 1.0), (0, 0, 1.1), 0.3), ("Spine", "Hips", (0, 0, 1.1), (0, 0.02, 1.45), -0.4)]
    rows.append(("Head", "Spine", (0, 0.02, 1.5), (0, 0, 1.7), 0.0))
    for side, s in (("Left", 1), ("Right", -1)):
        rows += [
            (f"{side}UpLeg", "Hips", (0.1 * s, 0, 0.95), (0.1 * s, -0.02, 0.52), 0.7 * s),
            (f"{side}Leg", f"{side}UpLeg", (0.1 * s, -0.02, 0.52), (0.1 * s, 0, 0.1), -1.1),
            (f"{side}Foot", f"{side}Leg", (0.1 * s, 0, 0.1), (0.1 * s, -0.14, 0.03), 0.2),
            (f"{side}ToeBase", f"{side}Foot", (0.1 * s, -0.14, 0.03), (0.1 * s, -0.2, 0.03), 2.0),
            (f"{side}Arm", "Spine", (0.18 * s, 0, 1.4), (0.45 * s, 0, 1.4), 0.5),
            (f"{side}ForeArm", f"{side}Arm", (0.45 * s, 0, 1.4), (0.7 * s, 0, 1.4), 0.0),
            (f"{side}Hand", f"{side}ForeArm", (0.7 * s, 0, 1.4), (0.8 * s, 0, 1.4), 0.0),
        ]
    return make_rig(rows)


class MadeUp:
    """A plan that takes hips and legs somewhere else; outside ``span`` (seconds) it changes nothing."""

    def __init__(self, monkeypatch, span=None) -> None:
        self.span = span
        self.take = self.result = self.gates = self.feet = None
        monkeypatch.setattr(feet, "plan_feet", self)

    def __call__(self, take, body, ground=None, settings=None, gates=None):
        f, t = take.frames, take.times - take.times[0]
        weight = np.ones(f)
        if self.span is not None:
            weight = np.interp(t, [self.span[0] - 0.1, self.span[0], self.span[1], self.span[1] + 0.1], [0, 1, 1, 0])
        offset = np.stack([0.05 * np.sin(3 * t), 0.04 * np.cos(2 * t), -0.06 + 0.02 * np.sin(5 * t)], axis=1) * weight[:, None]
        parent = int(take.skeleton.parents[body.hips])
        above = take.global_rotations[:, parent] if parent >= 0 else quat.identity(f)
        translations = np.broadcast_to(take.local_translations, (f, len(take.skeleton), 3))[:, [body.hips]].copy()
        translations[:, 0] += quat.rotate(quat.inv(above), offset)
        joints = tuple(j for leg in body.legs for j in (leg.thigh, leg.shin, leg.foot, leg.toe) if j >= 0)
        rng = np.random.default_rng(3)
        rotations = take.local_rotations[:, list(joints)].copy()
        for k in range(len(joints)):
            axis = rng.normal(size=3)
            angle = (0.3 * np.sin((k + 1) * 0.7 * t + k)) * weight
            rotations[:, k] = quat.mul(rotations[:, k], quat.from_axis_angle(axis / np.linalg.norm(axis), angle))
        contacts = np.zeros((f, 2, 3), dtype=bool)
        contacts[: f // 2, 0] = contacts[f // 3 :, 1] = True
        nothing = np.full((f, 2, 3, 3), np.nan)
        locks = contacts[:, :, 1].astype(float)
        self.take, self.gates, self.feet = take, gates, body
        self.result = FeetResult(
            joints, quat.continuous(rotations), (body.hips,), translations, offset, contacts, locks, np.ones((f, 2)), locks,
            nothing, nothing, nothing, (), {"made": "up"},
        )  # fmt: skip
        return self.result

    def apart(self, obj, baked) -> float:
        """Metres between where Blender has hips and legs and where they were planned, at most; and heads of bones alone count."""
        unit = bpy.context.scene.unit_settings.scale_length
        planned = self.result.onto(self.take)
        worst = 0.0
        for i, frame in list(enumerate(baked.frames.tolist()))[:: max(1, len(baked.frames) // 12)]:
            bpy.context.scene.frame_set(int(frame), subframe=frame - int(frame))
            seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
            for joint, name in enumerate(planned.skeleton.names):
                if not planned.skeleton.is_below(joint, self.feet.hips):
                    continue
                bone = seen.pose.bones[name]
                head = np.array(seen.matrix_world @ bone.head) * unit
                worst = max(worst, float(np.linalg.norm(head - planned.global_positions[i, joint])))
                axes = np.array((seen.matrix_world @ bone.matrix).to_quaternion())
                if joint in self.result.joints and not baked_by_controls(self):
                    worst = max(worst, 0.1 * float(quat.angle(axes, planned.global_rotations[i, joint])))
        return worst


def baked_by_controls(plan) -> bool:
    return np.allclose(plan.take.skeleton.rest_rotations, quat.IDENTITY)


def plain(obj):
    """As it was made."""


def eulers(obj):
    for i, bone in enumerate(obj.pose.bones):
        bone.rotation_mode = ("XYZ", "ZXY", "AXIS_ANGLE", "QUATERNION")[i % 4]


def placed(obj):
    obj.location, obj.rotation_euler, obj.scale = (3.0, -2.0, 0.5), (0.0, 0.0, 2.0), (1.2, 1.2, 1.2)


def tilted(obj):
    obj.rotation_euler, obj.scale = (1.2, 0.3, 2.0), (0.01, 0.01, 0.01)
    obj.data.transform(Matrix.Scale(100.0, 4))


def loose(obj):
    for bone in obj.data.bones:
        bone.use_inherit_rotation = "Foot" not in bone.name
        bone.use_local_location = False


def centimetres(obj):
    bpy.context.scene.unit_settings.scale_length = 0.01
    obj.data.transform(Matrix.Scale(100.0, 4))


def child(obj):
    above = bpy.data.objects.new("above", None)
    bpy.context.scene.collection.objects.link(above)
    above.location, above.rotation_euler = (1.0, 1.0, 0.0), (0.0, 0.0, 1.0)
    obj.parent = above


STATES = (plain, eulers, placed, tilted, loose, centimetres, child)


@pytest.mark.parametrize("state", STATES, ids=lambda s: s.__name__)
def test_the_pose_that_blender_shows_is_the_planned_one(walk, monkeypatch, state):
    obj = person()
    state(obj)
    bpy.context.view_layer.update()
    job.retarget_onto(obj, walk)
    plan = MadeUp(monkeypatch)
    baked = feet.bake_feet(obj, FLOOR)
    size = 100.0 if state in (centimetres,) else 1.0
    assert plan.apart(obj, baked) < 2e-5 * size
    assert np.ptp(plan.take.global_positions[:, plan.feet.hips], axis=0).max() > 0.3  # it walks


def test_on_an_object_that_carries_the_character(walk, monkeypatch):
    obj = person()
    obj.location, obj.rotation_euler = (1.0, 2.0, 0.0), (0.0, 0.0, 0.7)
    bpy.context.view_layer.update()
    job.retarget_onto(obj, walk, options=job.JobOptions(root=RootMotion(destination="object")))
    assert any(c.data_path == "location" for c in compat.moving_curves(obj.animation_data))
    plan = MadeUp(monkeypatch)
    baked = feet.bake_feet(obj, FLOOR)
    assert plan.apart(obj, baked) < 2e-5


def test_hips_that_cannot_be_moved_hand_it_on(walk, monkeypatch):
    obj = person()
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode="EDIT")
    root = obj.data.edit_bones.new("root")
    root.head, root.tail, root.roll = (0, 0, 0), (0, 0.3, 1.0), 0.4
    hips = obj.data.edit_bones["Hips"]
    hips.parent = root
    root.tail = hips.head
    hips.use_connect = True
    bpy.ops.object.mode_set(mode="OBJECT")
    job.retarget_onto(obj, walk)
    plan = MadeUp(monkeypatch)
    baked = feet.bake_feet(obj, FLOOR)
    assert plan.apart(obj, baked) < 2e-5
    assert any("moved instead" in note for note in baked.notes)


@pytest.mark.parametrize("how", ["alone", "hanging", "copies", "switch"])
def test_on_controls_the_deform_bones_go_where_planned(walk, monkeypatch, how):
    obj = plain_rig(**({} if how == "alone" else {how: True}))
    retarget(obj, walk)
    plan = Lowered(monkeypatch)
    baked = feet.bake_feet(obj, FLOOR)
    assert plan.apart(obj, baked) < 1e-3


class Lowered(MadeUp):
    """Only what legs on inverse kinematics can do: the hips take the legs along as they are."""

    def __call__(self, take, body, *rest):
        made = super().__call__(take, body, *rest)
        self.result = replace(made, local_rotations=take.local_rotations[:, list(made.joints)].copy())
        return self.result


def test_the_action_before_stays_and_only_hips_and_legs_are_rewritten(walk, monkeypatch):
    obj = person()
    source = job.retarget_onto(obj, walk).action
    before = keys_of(source)
    MadeUp(monkeypatch)
    baked = feet.bake_feet(obj, FLOOR)
    assert baked.before == source and keys_of(source) == before and source.use_fake_user
    assert obj.animation_data.action == baked.action and baked.action.name == f"{source.name} feet"
    old = {(c.data_path, c.array_index): c for c in compat.all_curves(source)}
    for curve in compat.all_curves(baked.action):
        key = (curve.data_path, curve.array_index)
        same = key in old and [tuple(p.co) for p in curve.keyframe_points] == [tuple(p.co) for p in old[key].keyframe_points]
        rewritten = any(part in curve.data_path for part in ("UpLeg", "Leg", "Foot", "ToeBase", 'Hips"].location', "foot_"))
        assert same != rewritten, key


def test_kept_on_a_muted_track(walk, monkeypatch):
    obj = person()
    source = job.retarget_onto(obj, walk).action
    MadeUp(monkeypatch)
    baked = feet.bake_feet(obj, FeetOptions(ground=GroundChoice("floor"), keep="track"))
    tracks = list(obj.animation_data.nla_tracks)
    assert [t.mute for t in tracks] == [True] and tracks[0].strips[0].action == source
    assert obj.animation_data.action == baked.action


def test_a_bake_can_be_undone_by_going_back_to_the_action(walk, monkeypatch):
    obj = person()
    source = job.retarget_onto(obj, walk).action

    def broken(*_):
        raise MocapError("No.")

    monkeypatch.setattr(feet_actions, "store_recipe", broken)
    MadeUp(monkeypatch)
    names = {a.name for a in bpy.data.actions}
    with pytest.raises(MocapError, match="No"):
        feet.bake_feet(obj, FLOOR)
    assert {a.name for a in bpy.data.actions} == names and obj.animation_data.action == source
    assert not any(name.startswith("foot_") for name in obj.keys())  # noqa: SIM118 - an object is no mapping


def test_only_a_range_with_what_is_outside_left_alone(walk, monkeypatch):
    obj = person()
    source = job.retarget_onto(obj, walk, options=job.JobOptions(rate="source")).action
    plan = MadeUp(monkeypatch, span=(0.25, 0.3))
    rate = float(bpy.context.scene.render.fps)
    start = float(source.frame_range[0])
    baked = feet.bake_feet(obj, FeetOptions(ground=GroundChoice("floor"), frame_range=(start + 0.25 * rate, start + 0.3 * rate)))
    assert plan.gates.start == pytest.approx(0.25, abs=0.01) and plan.gates.end == pytest.approx(0.3, abs=0.01)
    assert plan.apart(obj, baked) < 2e-5
    old = {(c.data_path, c.array_index): c for c in compat.all_curves(source)}
    for curve in compat.all_curves(baked.action):
        was = old.get((curve.data_path, curve.array_index))
        if was is None:
            continue
        for frame in [*np.arange(start, start + 0.1 * rate, 0.5).tolist(), float(source.frame_range[1])]:
            assert curve.evaluate(frame) == pytest.approx(was.evaluate(frame), abs=1e-6)


def test_a_range_in_an_action_made_by_hand_keeps_its_handles(monkeypatch):
    obj = person()
    for frame, turn in ((1, 0.0), (21, 0.5), (41, -0.4), (61, 0.2), (81, 0.0)):
        for name in ("LeftUpLeg", "RightUpLeg", "Hips"):
            bone = obj.pose.bones[name]
            bone.rotation_mode = "XYZ"
            bone.rotation_euler = (turn, 0.1 * turn, 0.0)
            bone.keyframe_insert("rotation_euler", frame=frame)
    obj.pose.bones["Hips"].keyframe_insert("location", frame=1)
    source = obj.animation_data.action
    before = {(c.data_path, c.array_index): [c.evaluate(f) for f in np.arange(1, 82, 0.5)] for c in compat.all_curves(source)}
    rate = float(bpy.context.scene.render.fps)
    plan = MadeUp(monkeypatch, span=(28.0 / rate, 36.0 / rate))
    baked = feet.bake_feet(obj, FeetOptions(ground=GroundChoice("floor"), frame_range=(29.0, 37.0)))
    assert plan.apart(obj, baked) < 2e-5
    for curve in compat.all_curves(baked.action):
        was = before.get((curve.data_path, curve.array_index))
        if was is None:
            continue
        now = [curve.evaluate(f) for f in np.arange(1, 82, 0.5)]
        frames = np.arange(1, 82, 0.5)
        outside = (frames <= 21) | (frames >= 41)
        assert np.allclose(np.array(now)[outside], np.array(was)[outside], atol=1e-5)
        if "UpLeg" in curve.data_path:
            assert len(curve.keyframe_points) < 30  # sparse outside


def test_baking_again_starts_from_the_action_before_and_keeps_the_rest(walk, monkeypatch):
    obj = person()
    source = job.retarget_onto(obj, walk).action
    plan = MadeUp(monkeypatch)
    first = feet.bake_feet(obj, FLOOR)
    name = first.action.name
    planned = plan.result.local_rotations.copy()
    arm = next(c for c in compat.all_curves(first.action) if "LeftArm" in c.data_path)
    arm_path, arm_index = arm.data_path, arm.array_index
    arm.keyframe_points[10].co[1] += 0.25
    wanted = arm.keyframe_points[10].co[1]
    track = obj.animation_data.nla_tracks.new()
    track.strips.new("used", 1, first.action)
    track.mute = True
    again = feet.rebake_feet(obj)
    assert again.action.name == name and obj.animation_data.action == again.action and track.strips[0].action == again.action
    assert np.allclose(plan.result.local_rotations, planned)  # not planted twice
    assert plan.apart(obj, again) < 2e-5
    arm = next(c for c in compat.all_curves(again.action) if (c.data_path, c.array_index) == (arm_path, arm_index))
    assert arm.keyframe_points[10].co[1] == pytest.approx(wanted)
    assert {a.name for a in bpy.data.actions} == {source.name, name}
    third = feet.bake_feet(obj, FLOOR)  # the same as baking again, with other options
    assert third.action.name == name and third.before == source
    bpy.data.actions.remove(source)
    with pytest.raises(MocapError, match="not there any more"):
        feet.rebake_feet(obj)


def test_what_is_remembered(walk, monkeypatch):
    obj = person()
    source = job.retarget_onto(obj, walk).action
    MadeUp(monkeypatch)
    baked = feet.bake_feet(obj, FeetOptions(ground=GroundChoice("plane", height=0.25)))
    stored = feet_of(baked.action)
    assert stored["source"] == source.name and stored["options"]["ground"]["height"] == 0.25
    assert json.loads(baked.action["mocap_recipe"])["take"] == walk.name
    assert "mocap_baseline" not in baked.action and "mocap_baseline" in source
    assert stored["report"] == {"made": "up"}


def test_locks_are_curves_of_the_object_s_properties_and_are_obeyed_at_the_next_bake(walk, monkeypatch):
    obj = person()
    job.retarget_onto(obj, walk)
    plan = MadeUp(monkeypatch)
    assert plan.gates is None
    baked = feet.bake_feet(obj, FLOOR)
    assert plan.gates.foot_lock is None and plan.gates.foot_ik is None
    curves = {c.data_path: c for c in compat.moving_curves(obj.animation_data)}
    lock = curves['["foot_lock_l"]']
    half = len(baked.frames) // 2
    assert [tuple(p.co) for p in lock.keyframe_points] == [(baked.frames[0], 1.0), (baked.frames[half], 0.0)]
    assert obj["foot_lock_l"] in (0.0, 1.0) and obj.id_properties_ui("foot_ik_l").as_dict()["max"] == 1.0
    feet.rebake_feet(obj)
    assert plan.gates.foot_lock is None  # as it was baked: found anew
    curves = {c.data_path: c for c in compat.moving_curves(obj.animation_data)}
    lock = curves['["foot_lock_l"]']
    lock.keyframe_points[1].co[0] += 4.0
    gate = curves['["foot_ik_r"]']
    gate.keyframe_points[0].co[1] = 0.25
    feet.rebake_feet(obj)
    told = plan.gates.foot_lock
    assert np.isnan(told[:half]).all(axis=1).all()
    assert np.allclose(told[half : half + 4, 0], 1.0) and np.isnan(told[half + 4 :, 0]).all() and np.isnan(told[:, 1]).all()
    assert np.allclose(plan.gates.foot_ik, [1.0, 0.25])


def test_contacts_of_the_source_are_used(walk, monkeypatch):
    obj = person()
    curves = {f"contact_{side}_{part}": np.zeros(walk.frames) for side in "lr" for part in ("heel", "toe")}
    curves["contact_l_heel"][:30] = 1.0
    curves["contact_r_toe"][20:] = 1.0
    take = replace(walk, curves=curves)
    job.retarget_onto(obj, take, options=job.JobOptions(rate="source"))
    plan = MadeUp(monkeypatch)
    feet.bake_feet(obj, FLOOR)
    assert plan.gates.contacts[:, 0, 0].sum() == 30 and plan.gates.contacts[:, 1, 1].sum() == walk.frames - 20
    assert (plan.gates.contacts[:, :, 2] == plan.gates.contacts[:, :, 1]).all()
    feet.rebake_feet(obj)
    assert plan.gates.contacts is not None


def test_sentences(monkeypatch):
    obj = person()
    with pytest.raises(RigError, match="no action"):
        feet.bake_feet(obj)
    obj.pose.bones["Head"].keyframe_insert("location", frame=1)
    with pytest.raises(RigError, match="neither the hips nor the legs"):
        feet.bake_feet(obj)
    obj.pose.bones["Hips"].keyframe_insert("location", frame=1)
    obj.pose.bones["Hips"].keyframe_insert("location", frame=20)
    with pytest.raises(MocapError, match="not in this file any more"):
        feet.bake_feet(obj, FeetOptions(ground=GroundChoice("collection", ("gone",))))
    with pytest.raises(MocapError, match="has no frames of the action"):
        feet.bake_feet(obj, FeetOptions(ground=GroundChoice("floor"), frame_range=(100.0, 120.0)))
    with pytest.raises(MocapError, match="not baked here"):
        feet.rebake_feet(obj)


def test_making_the_action_again_plants_its_feet_again(walk, monkeypatch):
    obj = person()
    source = job.retarget_onto(obj, walk).action
    plan = MadeUp(monkeypatch)
    baked = feet.bake_feet(obj, FLOOR)
    assert update.actions_of(obj) == [source]
    options = replace(job.options_of(recipe_of(source)), travel=2.0)
    hips = plan.take.global_positions[:, plan.feet.hips]
    done = update.update_action(obj, baked.action, options=options, take=walk)
    assert done.action == obj.animation_data.action and feet_of(done.action)["source"] == source.name
    again = plan.take.global_positions[:, plan.feet.hips]
    assert np.linalg.norm(again[-1] - again[0]) > 1.5 * np.linalg.norm(hips[-1] - hips[0])
    update.update_all(obj, read=lambda *_: [walk])
    assert plan.take.global_positions[:, plan.feet.hips] == pytest.approx(again, abs=1e-5)
    assert feet_of(obj.animation_data.action) is not None


def test_muted_modified_and_single_keys(walk, monkeypatch):
    obj = person()
    source = job.retarget_onto(obj, walk).action
    legs = [c for c in compat.all_curves(source) if "UpLeg" in c.data_path]
    legs[0].modifiers.new("NOISE")
    legs[4].mute = True
    legs[5].group.mute = True
    plan = MadeUp(monkeypatch)
    baked = feet.bake_feet(obj, FLOOR)
    assert plan.apart(obj, baked) < 2e-5
    assert legs[0].modifiers and legs[4].mute  # the action before stays as it is
    obj.animation_data_clear()
    for name in ("Hips", "LeftUpLeg"):
        obj.pose.bones[name].keyframe_insert("location", frame=5)
    baked = feet.bake_feet(obj, FLOOR)
    assert baked.frames.tolist() == [5.0]
    again = feet.rebake_feet(obj)
    assert again.before.name != again.action.name
