# SPDX-License-Identifier: GPL-3.0-or-later
"""What users of other tools complained about, each as a scene of its own. Those that are scenes of test_scenes.py are not repeated:
shaking on stairs, toes hanging downhill, random rolls, heels of every kind, platforms, other legs, tunnel and storeys."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mocap_addon.feet.ground import Box, Boxes, Plane, Union
from mocap_addon.feet.plan import plan_feet
from mocap_addon.feet.result import Gates
from mocap_addon.feet.settings import FeetSettings
from mocap_addon.motion import kinematics, quat

from . import scenes
from .measure import knee_angles, soles_of
from .walker import Gait, Shape, Step, sliding, walk


def bake(scene, **settings):
    return plan_feet(scene.source, scene.walk.feet, scene.ground, FeetSettings(**settings))


def standing(seconds=3.0, **more):
    steps = tuple(Step(side, (0.09 if side == 0 else -0.09, 0.0, 0.0), 0.0, -1.0, -0.9, 99.0, 99.1) for side in range(2))
    return walk(steps, seconds, **more)


def test_legs_that_are_nearly_straight_do_not_float():
    """Reach is capped by the source's own: at 99.7 % nothing changes on flat ground."""
    w = standing(gait=Gait(reach=0.997, bob=0.0))
    p = w.take.global_positions
    assert np.linalg.norm(p[0, 4] - p[0, 2]) > 0.99 * 0.9
    new = plan_feet(w.take, w.feet, Plane()).onto(w.take)
    assert np.abs(new.global_positions - p).max() < 0.001


def test_beside_a_ledge_hips_do_not_drop_and_time_does_not_matter():
    forward, back = scenes.ledge(), scenes.ledge(reverse=True)
    a, b = bake(forward), bake(back)
    one = plan_feet(forward.source, forward.walk.feet, Plane())
    assert np.abs(a.hips_offset - one.hips_offset).max() < 0.005
    np.testing.assert_allclose(a.hips_offset, b.hips_offset[::-1], atol=0.002)
    np.testing.assert_allclose(a.soles, b.soles[::-1], atol=0.005)
    assert a.notes and "no ground" in a.notes[0]


def test_a_body_that_turns_on_the_spot_does_not_wind_up_its_legs():
    """Locks forced on while everything turns by 180 degrees in a second: the feet are planted anew before they twist."""
    w = standing(4.0)
    turn = quat.from_axis_angle(np.array([0.0, 0.0, 1.0]), np.pi * np.clip(w.take.times - 1.5, 0.0, 1.0))
    take = w.take.rerooted(lambda q: quat.mul(turn, q), lambda v: quat.rotate(turn, v), rest=False)
    result = plan_feet(take, w.feet, Plane(), gates=Gates(foot_lock=np.ones((take.frames, 2))))
    new = result.onto(take)
    assert len(result.footprints) > 4
    for foot in (4, 8):
        twist = np.degrees(quat.angle(new.global_rotations[:, foot], take.global_rotations[:, foot]))
        assert twist.max() <= 45.0
    assert result.report["after"]["skate_cm_s"] < 1.0


def test_a_swinging_foot_clears_a_box_and_begins_before_it():
    scene = scenes.over_box()
    result = bake(scene)
    new = result.onto(scene.source)
    dt = 1.0 / 60.0
    speed, own = (np.linalg.norm(np.diff(t.global_positions[:, 4], axis=0), axis=1) / dt for t in (new, scene.source))
    assert (speed - own).max() <= 1.0
    lifted = new.global_positions[:, 4, 2] - scene.source.global_positions[:, 4, 2]
    assert lifted.max() > 0.03
    soles = soles_of(new, scene.walk.shape)
    inside = scene.height(soles[..., 0], soles[..., 1], 0) - soles[..., 2]
    assert inside.max() < 0.010


@pytest.mark.parametrize("stretch", [0.0, 1.0])
def test_a_floor_out_of_reach_stretches_nothing_unless_asked(stretch):
    w = scenes.plain()
    result = plan_feet(w.take, w.feet, Plane((0.0, 0.0, -0.3)), FeetSettings(pin_hips=True, stretch=stretch, stretch_limit=2.0))
    new = result.onto(w.take)
    p = new.global_positions
    lengths = np.linalg.norm(p[:, [3, 4, 7, 8]] - p[:, [2, 3, 6, 7]], axis=2)
    if stretch:
        assert lengths.max() > 0.5 and result.report["after"]["gap_mm"] < 5.0 and len(result.moving) == 5
    else:
        np.testing.assert_allclose(lengths, 0.45, atol=1e-9)
        assert result.report["unreached_frames"] > 100 and "out of the legs' reach" in result.notes[0]


def test_a_perfectly_straight_leg_bends_forwards():
    """No bend anywhere to go by: the rest pose's hinge says which way."""
    w = standing()
    sk = w.take.skeleton
    t = np.broadcast_to(sk.rest_translations, (180, 10, 3)).copy()
    r = np.broadcast_to(sk.rest_rotations, (180, 10, 4)).copy()
    take = replace(w.take, times=np.arange(180) / 60.0, local_rotations=r, local_translations=t)
    for shape_rolls in (None, 5):
        if shape_rolls:
            rolled = standing(rolls=shape_rolls)
            sk = rolled.take.skeleton
            take = replace(take, skeleton=sk, local_rotations=np.broadcast_to(sk.rest_rotations, r.shape).copy(),
                           local_translations=np.broadcast_to(sk.rest_translations, t.shape).copy())  # fmt: skip
            w = rolled
        result = plan_feet(take, w.feet, Plane((0.0, 0.0, 0.1)), FeetSettings(pin_hips=True))
        p = result.onto(take).global_positions
        for hip, knee, ankle in ((2, 3, 4), (6, 7, 8)):
            assert (p[:, ankle, 2] > 0.17).all()
            assert (p[:, knee, 1] < -0.1).all() and np.abs(p[:, knee, 0] - p[:, hip, 0]).max() < 0.01


def test_bone_rolls_make_no_difference():
    plain, rolled = scenes.plain(), scenes.plain(rolls=11)
    ground = scenes.slope(20, 45).ground
    a, b = (plan_feet(w.take, w.feet, ground).onto(w.take).global_positions for w in (plain, rolled))
    assert np.abs(a - b).max() < 1e-4


def test_in_the_air_nothing_pulls():
    """On flat ground a jump keeps its feet within 2 mm; onto a box the hips do not drop."""
    scene = scenes.jump()
    air = (scene.source.times > 1.1) & (scene.source.times < 1.45)
    low = walk(
        tuple(replace(s, ball=(s.ball[0], s.ball[1], 0.0)) for s in scene.walk.steps), 3.0, gait=Gait(pitch_strike=0.0, clearance=0.2)
    )
    flat = plan_feet(low.take, low.feet, Plane()).onto(low.take)
    assert np.linalg.norm(flat.global_positions - low.take.global_positions, axis=2)[air].max() < 0.002
    over = plan_feet(low.take, low.feet, scene.ground)  # a flat jump: the box is higher than the source's own landing
    assert over.footprints[-1].position[2] == pytest.approx(0.3, abs=1e-6)
    assert over.hips_offset[air, 2].min() > -0.02
    k = knee_angles(over.onto(low.take))
    k0 = knee_angles(low.take)
    assert np.percentile(np.abs(np.diff(k, 2, axis=0)), 99) < 1.5 * np.percentile(np.abs(np.diff(k0, 2, axis=0)), 99) + 1.0


def test_toes_come_out_of_a_riser():
    w = standing()
    riser = -(Shape().toe_length - 0.06)  # six centimetres of the toes are inside it
    ground = Union([Plane(), Boxes([Box((-2, -3, 0.0), (2, riser, 0.17), "step")])])
    result = plan_feet(w.take, w.feet, ground)
    new = soles_of(result.onto(w.take), w.shape)
    assert new[:, :, 2, 1].min() > riser - 0.002
    moved = new[:, :, 1, 1] - soles_of(w.take, w.shape)[:, :, 1, 1]
    assert 0.055 < moved.max() <= 0.08


def test_toes_come_out_of_a_wall_higher_than_any_trace():
    w = standing()
    wall = -(Shape().toe_length - 0.04)
    ground = Union([Plane(), Boxes([Box((-2, -3, 0.0), (2, wall, 5.0), "wall")])])
    result = plan_feet(w.take, w.feet, ground)
    assert soles_of(result.onto(w.take), w.shape)[:, :, 2, 1].min() > wall - 0.002


def test_headings_across_half_a_turn():
    """Walking towards +Y, where yaw jumps from 180 to -180 degrees."""
    from .walker import straight

    steps, last = straight(8, heading=np.pi - 0.001)
    w = walk(steps, last)
    s = sliding(w, scenes.wandering)
    result = plan_feet(s.take, w.feet, Plane())
    assert result.report["after"]["skate_cm_s"] < 1.0 and len(result.footprints) == 10


def test_soles_below_the_floor_in_the_source_come_up():
    w = scenes.plain()
    sunk = w.take.rerooted(lambda q: q, lambda v: v - np.array([0.0, 0.0, 0.08]), rest=False)
    result = plan_feet(sunk, w.feet, Plane())
    assert result.report["after"]["penetration_contact_mm"] < 5.0
    assert result.hips_offset[:, 2].mean() == pytest.approx(0.08, abs=0.005)


def test_nothing_is_kept_from_one_bake_to_the_next():
    w = scenes.plain()
    first = plan_feet(w.take, w.feet, Plane())
    plan_feet(sliding(w, scenes.wandering).take, w.feet, scenes.slope(30, 0).ground)
    again = plan_feet(w.take, w.feet, Plane())
    assert np.array_equal(first.local_rotations, again.local_rotations)


def test_split_limbs_go_along():
    """A thigh and a shin in two bones each, as skins that twist have them."""
    from mocap_addon.feet.body import find_feet
    from mocap_addon.motion.skeleton import Skeleton
    from mocap_addon.rig.roles import RoleMap

    w = scenes.plain()
    sk = w.take.skeleton
    names, parents = list(sk.names), sk.parents.tolist()
    rest = sk.rest_translations.copy()
    order, new_parent, local = [], {}, {}
    for j in range(10):
        if j in (3, 4, 7, 8):
            order.append(f"twist{j}")
            new_parent[f"twist{j}"], local[f"twist{j}"] = names[parents[j]], rest[j] / 2
            new_parent[names[j]], local[names[j]] = f"twist{j}", rest[j] / 2
        else:
            new_parent[names[j]], local[names[j]] = (names[parents[j]] if parents[j] >= 0 else None), rest[j]
        order.append(names[j])
    at = {n: i for i, n in enumerate(order)}
    split = Skeleton(
        tuple(order), np.array([-1 if new_parent[n] is None else at[new_parent[n]] for n in order]), np.array([local[n] for n in order])
    )
    r = quat.identity((w.take.frames, len(order)))
    t = np.broadcast_to(split.rest_translations, (w.take.frames, len(order), 3)).copy()
    for j, n in enumerate(names):
        r[:, at[n]] = w.take.local_rotations[:, j]
    t[:, 0] = w.take.local_translations[:, 0]
    take = replace(w.take, skeleton=split, local_rotations=r, local_translations=t)
    roles = {"hips": "Hips", "leftUpperLeg": "LeftUpLeg", "leftLowerLeg": "LeftLeg", "leftFoot": "LeftFoot", "leftToes": "LeftToe",
             "rightUpperLeg": "RightUpLeg", "rightLowerLeg": "RightLeg", "rightFoot": "RightFoot", "rightToes": "RightToe"}  # fmt: skip
    feet = find_feet(split, RoleMap({k: (at[v],) for k, v in roles.items()}), {"left": w.shape.sole, "right": w.shape.sole})
    ground = scenes.slope(20, 45).ground
    a = plan_feet(w.take, w.feet, ground).onto(w.take).global_positions
    b = plan_feet(take, feet, ground).onto(take).global_positions
    for n in ("LeftFoot", "RightToe", "LeftLeg"):
        np.testing.assert_allclose(b[:, at[n]], a[:, names.index(n)], atol=1e-6)
    assert kinematics.forward(r, t, split.parents)[1].shape == b.shape
