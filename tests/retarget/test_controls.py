# SPDX-License-Identifier: GPL-3.0-or-later
"""Controls as arrays, against matrices multiplied out one bone and one frame at a time."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap_addon.motion import quat
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.retarget.controls import Bones, Link, Plan, Rigid, to_controls
from mocap_addon.retarget.controls.follow import Follower
from mocap_addon.retarget.controls.limbs import Hinge, bends, heel_roll, solved_motions
from mocap_addon.retarget.controls.rigid import STILL
from mocap_addon.retarget.motion import PoseMotion
from mocap_addon.rig.body import role_body
from mocap_addon.rig.control_sets import Control, ControlSet, Limb
from mocap_addon.rig.roles import RoleMap

F = 7


def q(rotation: Rotation) -> np.ndarray:
    return rotation.as_quat()[..., [3, 0, 1, 2]]


def matrix(rotation: np.ndarray, place: np.ndarray) -> np.ndarray:
    out = np.eye(4)
    out[:3, :3] = Rotation.from_quat(np.asarray(rotation)[[1, 2, 3, 0]]).as_matrix()
    out[:3, 3] = place
    return out


def of(rigid: Rigid, frame: int) -> np.ndarray:
    k = min(frame, len(rigid.rotation) - 1)
    return matrix(rigid.rotation[k], rigid.translation[min(frame, len(rigid.translation) - 1)])


def any_rigid(rng, frames: int = F) -> Rigid:
    return Rigid(q(Rotation.random(frames, random_state=rng)), rng.normal(size=(frames, 3)))


def chain(rng, parents: list[int]) -> Skeleton:
    n = len(parents)
    rotations = q(Rotation.random(n, random_state=rng))
    return Skeleton(tuple(f"b{i}" for i in range(n)), np.array(parents), rng.normal(size=(n, 3)), rotations)


def rest(skeleton: Skeleton, j: int) -> np.ndarray:
    return matrix(skeleton.rest_global_rotations[j], skeleton.rest_global_positions[j])


@pytest.fixture
def rng():
    return np.random.default_rng(4)


def test_rigid_motions_are_matrices(rng):
    a, b, p = any_rigid(rng), any_rigid(rng, 1), rng.normal(size=3)
    for f in range(F):
        assert np.allclose(of(a @ b, f), of(a, f) @ of(b, f))
        assert np.allclose(of(a.inverse, f), np.linalg.inv(of(a, f)))
        assert np.allclose(a.apply(p)[f], (of(a, f) @ [*p, 1.0])[:3])


@pytest.mark.parametrize("inherits", [True, False])
def test_a_bone_at_rest_goes_with_its_parent(rng, inherits):
    skeleton = chain(rng, [-1, 0, 1])
    known = {0: any_rigid(rng)}
    found = Follower(Bones(skeleton, np.array([True, inherits, True])), known, {}).motion(2)
    for f in range(F):
        pose = of(known[0], f) @ rest(skeleton, 0)
        local = np.linalg.inv(rest(skeleton, 0)) @ rest(skeleton, 1)
        mid = pose @ local
        if not inherits:
            mid[:3, :3] = rest(skeleton, 1)[:3, :3]
        end = mid @ np.linalg.inv(rest(skeleton, 1)) @ rest(skeleton, 2)
        assert np.allclose(of(found, f) @ rest(skeleton, 2), end)


@pytest.mark.parametrize("kind", ["transforms", "rotation", "location", "parents"])
def test_constraints_in_full(rng, kind):
    """What Blender's constraints do at full influence, multiplied out."""
    skeleton = chain(rng, [-1, -1, 0])
    known = {0: any_rigid(rng), 1: any_rigid(rng)}
    bones = Bones(skeleton, np.ones(3, bool), {2: (Link(kind, ((1, 1.0),)),)})
    found = Follower(bones, known, {}).motion(2)
    for f in range(F):
        own = of(known[0], f) @ rest(skeleton, 2)
        target = of(known[1], f) @ rest(skeleton, 1)
        expected = own.copy()
        if kind == "transforms":
            expected = target
        elif kind == "rotation":
            expected[:3, :3] = target[:3, :3]
        elif kind == "location":
            expected[:3, 3] = target[:3, 3]
        else:
            expected = of(known[1], f) @ own  # the armature constraint deforms by the target's motion away from rest
        assert np.allclose(of(found, f) @ rest(skeleton, 2), expected)


def test_influence_goes_half_way(rng):
    skeleton = chain(rng, [-1, -1, 0])
    known = {0: any_rigid(rng), 1: any_rigid(rng)}
    bones = Bones(skeleton, np.ones(3, bool), {2: (Link("transforms", ((1, 1.0),), 0.5),)})
    found = Follower(bones, known, {}).motion(2)
    for f in range(F):
        a, b = of(known[0], f) @ rest(skeleton, 2), of(known[1], f) @ rest(skeleton, 1)
        pose = of(found, f) @ rest(skeleton, 2)
        assert np.allclose(pose[:3, 3], 0.5 * (a[:3, 3] + b[:3, 3]))
        half = Rotation.from_matrix(a[:3, :3]) * (Rotation.from_matrix(a[:3, :3]).inv() * Rotation.from_matrix(b[:3, :3])) ** 0.5
        assert np.allclose(pose[:3, :3], half.as_matrix(), atol=1e-9)


def test_a_local_copy_takes_the_basis(rng):
    skeleton = chain(rng, [-1, 0, -1, 2])
    wanted = any_rigid(rng)
    known = {0: any_rigid(rng), 2: any_rigid(rng)}
    bones = Bones(skeleton, np.ones(4, bool), {3: (Link("transforms", ((1, 1.0),), local=True),)})
    follower = Follower(bones, known, {1: lambda _carried: wanted})
    found = follower.motion(3)
    for f in range(F):
        local = np.linalg.inv(rest(skeleton, 0)) @ rest(skeleton, 1)
        basis = np.linalg.inv(of(known[0], f) @ rest(skeleton, 0) @ local) @ of(wanted, f) @ rest(skeleton, 1)
        assert np.allclose(of(follower.basis(1), f), basis)
        assert np.allclose(of(found, f) @ rest(skeleton, 3), of(known[2], f) @ rest(skeleton, 3) @ basis)


def test_a_ring_of_constraints_ends(rng):
    skeleton = chain(rng, [-1, -1])
    links = {0: (Link("transforms", ((1, 1.0),)),), 1: (Link("transforms", ((0, 1.0),)),)}
    assert np.all(np.isfinite(Follower(Bones(skeleton, np.ones(2, bool), links), {}, {}).motion(0).rotation))


# --- a whole body -------------------------------------------------------------------------------------------------------------------------


def test_controls_move_the_body_as_it_was_meant(rng):
    """A rig whose controls point anywhere and hang on each other by way of mechanisms; the keys are played back bone by bone."""
    names = ("root", "mover", "hip_c", "mech", "leg_c", "leg_mech", "shin_c", "hips", "thigh", "shin")
    parents = [-1, 0, 1, 2, 3, 4, 5, 0, 0, 0]
    skeleton = Skeleton(names, np.array(parents), rng.normal(size=(10, 3)), q(Rotation.random(10, random_state=rng)))
    links = {9: (Link("transforms", ((6, 1.0),)),), 8: (Link("transforms", ((4, 1.0),)),), 7: (Link("transforms", ((2, 1.0),)),)}
    roles = RoleMap({"hips": (7,), "leftUpperLeg": (8,), "leftLowerLeg": (9,)})
    body = role_body(skeleton, roles)
    controls = (
        Control(1, 7, "hips", moves=True, carries="joint"),
        Control(2, 7, "hips"),
        Control(4, 8, "leftUpperLeg"),
        Control(6, 9, "leftLowerLeg"),
    )
    plan = Plan(ControlSet("made", controls), body, Bones(skeleton, np.ones(10, bool), links))
    motion = PoseMotion(
        "m", np.arange(F) / 24.0, (0, 1, 2), q(Rotation.random(F * 3, random_state=rng)).reshape(F, 3, 4), (0,), rng.normal(size=(F, 1, 3))
    )
    keys = to_controls(motion, plan)
    assert keys.bones == (1, 2, 4, 6) and keys.moving == (1,)
    meant = motion.to_take(body.skeleton)
    for f in range(F):
        pose: list[np.ndarray] = []
        for j, p in enumerate(parents):
            local = rest(skeleton, j) if p < 0 else np.linalg.inv(rest(skeleton, p)) @ rest(skeleton, j)
            basis = np.eye(4)
            if j in keys.bones:
                basis = matrix(keys.rotations[f, keys.bones.index(j)], np.zeros(3))
            if j in keys.moving:
                basis[:3, 3] = keys.locations[f, keys.moving.index(j)]
            pose.append((np.eye(4) if p < 0 else pose[p]) @ local @ basis)
        for control, joint in ((2, 0), (4, 1), (6, 2)):
            turned = pose[control][:3, :3] @ rest(skeleton, control)[:3, :3].T
            expected = Rotation.from_quat(meant.global_rotations[f, joint][[1, 2, 3, 0]]).as_matrix()
            assert np.allclose(turned, expected)
        hips = pose[1] @ np.linalg.inv(rest(skeleton, 1)) @ [*skeleton.rest_global_positions[7], 1.0]
        assert np.allclose(hips[:3], meant.global_positions[f, 0])


def test_controls_of_joints_without_keys_get_none(rng):
    skeleton = Skeleton(("hips", "thigh", "ctl"), np.array([-1, 0, 0]), rng.normal(size=(3, 3)))
    body = role_body(skeleton, RoleMap({"hips": (0,), "leftUpperLeg": (1,)}))
    plan = Plan(ControlSet("made", (Control(0, 0, "hips", True), Control(2, 1, "leftUpperLeg"))), body, Bones(skeleton, np.ones(3, bool)))
    motion = PoseMotion("m", np.zeros(1), (0,), quat.identity((1, 1)), (), np.zeros((1, 0, 3)))
    assert to_controls(motion, plan).bones == (0,)


@pytest.mark.parametrize("frames", [1, 9])
def test_what_is_remembered_is_what_would_be_worked_out(rng, frames):
    """A leg on inverse kinematics and an arm that follows by constraints; one joint after another turns or moves, and back again."""
    names = ("hips", "thigh", "shin", "foot", "target", "heel", "pole", "arm", "mech", "fore", "prop")
    parents = np.array([-1, 0, 1, 2, -1, 4, -1, 0, 7, 8, -1])
    skeleton = Skeleton(names, parents, rng.normal(size=(11, 3)), q(Rotation.random(11, random_state=rng)))
    links = {
        8: (Link("rotation", ((10, 1.0),), 0.4), Link("location", ((5, 1.0),), 0.5)),
        10: (Link("parents", ((3, 0.3), (7, 0.7))), Link("transforms", ((7, 1.0),), 0.5, local=True)),
    }
    roles = {"hips": (0,), "leftUpperLeg": (1,), "leftLowerLeg": (2,), "leftFoot": (3,), "leftUpperArm": (7,), "leftLowerArm": (9,)}
    limb = Limb("left", "Leg", target=4, pole=6, heel=5)
    controls = (Control(0, 0, "hips", True), Control(7, 7, "leftUpperArm"), Control(9, 9, "leftLowerArm"), Control(10, 7, "leftUpperArm"))

    def plan() -> Plan:
        bones = Bones(skeleton, np.array([j != 9 for j in range(11)]), links)
        return Plan(ControlSet("made", controls), role_body(skeleton, RoleMap(roles)), bones, inverse=(limb,))

    old = plan()
    count = len(old.body.joints)
    turns, places = q(Rotation.random(frames * count, random_state=rng)).reshape(frames, count, 4), rng.normal(size=(frames, 1, 3))
    first = (turns, places)
    for changed in (None, 0, 1, 4, 5, "place", "first", "all"):
        turns, places = (turns.copy(), places.copy()) if changed != "first" else first
        if isinstance(changed, int):
            turns[:, changed] = q(Rotation.random(frames, random_state=rng))
        elif changed == "place":
            places = places + 0.1
        elif changed == "all":
            turns = quat.mul(turns, q(Rotation.random(1, random_state=rng)))
        motion = PoseMotion("m", np.arange(frames) / 24.0, tuple(range(count)), turns, (0,), places)
        found, meant = to_controls(motion, old), to_controls(motion, plan())
        assert found.bones == meant.bones and found.moving == meant.moving and len(meant.bones) >= 5
        assert np.array_equal(found.rotations, meant.rotations), changed
        assert np.array_equal(found.locations, meant.locations), changed


# --- limbs ------------------------------------------------------------------------------------------------------------------------------


def leg(bend: np.ndarray, sideways: np.ndarray) -> tuple[Rigid, Rigid, np.ndarray, Hinge]:
    """A leg from the origin down, 0.45 and 0.43 long, bent at rest by 10 degrees forwards: ``bend`` degrees about the hinge (X), and the
    whole thigh turned ``sideways`` about its length."""
    hip, knee = np.zeros(3), np.array([0.0, -0.04, -0.448])
    ankle = knee + np.array([0.0, 0.035, -0.4285])
    hinge = Hinge.of(hip, knee, ankle, np.array([0.0, -1.0, -0.5]), None)
    upper = Rotation.from_euler("z", sideways[:, None], degrees=True)
    lower = upper * Rotation.from_euler("x", bend[:, None], degrees=True)
    a = Rigid(q(upper), np.zeros((len(bend), 3)))
    b = Rigid.about(q(lower), knee, a.apply(knee))
    return a, b, b.apply(ankle), hinge


def test_a_bent_knee_points_where_it_is():
    a, b, end, hinge = leg(np.linspace(30.0, 90.0, 9), np.linspace(-40.0, 40.0, 9))
    found = bends(a, b, end, hinge, 1 / 24)
    knee = b.apply(hinge.lower)
    across = (knee - found.start) - found.axis * np.sum((knee - found.start) * found.axis, axis=1, keepdims=True)
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    assert np.allclose(found.forward, across, atol=1e-6)
    pole = found.pole(hinge)
    assert np.allclose(np.sum((pole - knee) * found.axis, axis=1), 0.0, atol=1e-9)  # level with the knee
    assert np.all(np.linalg.norm(pole - knee, axis=1) > 0.3)


def test_the_solver_is_known_beforehand():
    """The two bones as the solver will have them: right lengths, ends where they were, and for a pure hinge the very motion."""
    a, b, end, hinge = leg(np.linspace(20.0, 100.0, 9), np.linspace(-40.0, 40.0, 9))
    upper, lower = solved_motions(bends(a, b, end, hinge, 1 / 24), hinge)
    for got, meant in ((upper, a), (lower, b)):
        assert np.max(quat.angle(got.rotation, meant.rotation)) < 1e-6
        assert np.allclose(got.apply(hinge.lower), meant.apply(hinge.lower), atol=1e-9)
    assert np.allclose(lower.apply(hinge.tip), end, atol=1e-9)


def test_a_straight_knee_keeps_its_direction():
    """Through straight and a little beyond, with noise on the knee that turns it by anything."""
    rng = np.random.default_rng(1)
    swing = 35.0 * np.cos(np.linspace(0.0, 2.0 * np.pi, 49)) + 22.0  # rest is bent by 10 degrees: straight at -10
    a, b, end, hinge = leg(swing, rng.normal(size=49) * 1.0)
    found = bends(a, b, end, hinge, 1 / 24)
    steps = np.degrees(np.arccos(np.clip(np.sum(found.forward[1:] * found.forward[:-1], axis=1), -1.0, 1.0)))
    assert (
        swing.min() < -12.0
        and steps.max() < 5.0 + np.degrees(np.arccos(np.clip(np.sum(found.axis[1:] * found.axis[:-1], axis=1), -1, 1))).max()
    )
    assert np.all(found.forward[:, 1] < 0.0)  # never to the back


def test_a_leg_that_is_straight_all_the_time():
    a, b, end, hinge = leg(np.full(5, -10.0), np.zeros(5))
    found = bends(a, b, end, hinge, 1 / 24)
    assert np.all(np.isfinite(found.pole(hinge))) and np.all(found.forward[:, 1] < -0.9)


def test_one_frame_is_enough():
    a, b, end, hinge = leg(np.array([25.0]), np.zeros(1))
    assert np.all(np.isfinite(bends(a, b, end, hinge, 1.0).pole(hinge)))


@pytest.mark.parametrize("angle", [40.0, 5.0, 0.0, -25.0])
def test_a_heel_rolls_over_the_ball(angle):
    """Toes flat, the foot tipped forwards about the ball: all of it is the heel's; toes bent up are not."""
    ball, axis = np.array([0.1, -0.12, 0.02]), np.array([1.0, 0.0, 0.0])
    foot = Rigid.about(q(Rotation.from_euler("x", [angle], degrees=True)), ball, ball)
    roll, left = heel_roll(foot, STILL, ball, axis)
    assert np.allclose(np.degrees(roll), max(angle, 0.0))
    assert np.degrees(quat.angle(left.rotation, quat.IDENTITY))[0] == pytest.approx(max(-angle, 0.0), abs=1e-6)
    lifted = left @ Rigid.about(quat.from_axis_angle(axis, roll), ball, ball)
    heel = np.array([0.1, 0.05, 0.0])
    assert np.allclose(lifted.apply(heel), foot.apply(heel))
