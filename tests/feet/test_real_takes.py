# SPDX-License-Identifier: GPL-3.0-or-later
"""Real recordings over flat ground, stairs and hills, with the take's own skeleton as the character."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.feet.body import find_feet
from mocap_addon.feet.ground import HeightField, Plane
from mocap_addon.feet.plan import plan_feet
from mocap_addon.feet.standing import standing_pose
from mocap_addon.motion import quat
from mocap_addon.rig.matcher import match
from tests.paths import SHARED, need

from .measure import jerk

TAKES = {
    "walk": "cmu/asf_02_01_walk.bvh",
    "walk, other body": "cmu/cgspeed_12_01_walk.bvh",
    "run": "cmu/asf_02_03_run_jog.bvh",
    "uneven down": "cmu/asf_03_01_walk_uneven_down.bvh",
    "uneven": "cmu/asf_03_02_walk_uneven.bvh",
    "jumps and turns": "cmu/asf_01_01_playground_jumps_turn_30fps.bvh",
    "figure of eight": "misc_bvh/pymo_figure8_walk_xyz.bvh",
    "mvn": "xsens/mvn_bvh_walk_239hz_1200f.bvh",
}


@cache
def loaded(name):
    take = formats.read(need(SHARED / TAKES[name]))[0]
    roles = match(take.skeleton)
    return take, roles, find_feet(take.skeleton, roles, pose=standing_pose(take, roles))


def grounds(take, hips):
    x0, y0 = take.global_positions[0, hips, :2]
    return {
        "flat": None,
        "hills": HeightField(lambda x, y: 0.15 * np.sin(1.3 * x) + 0.12 * np.cos(1.1 * y + 0.4 * x)),
        "stairs": HeightField(lambda x, y: 0.17 * np.floor(np.hypot(x - x0, y - y0) / 0.56), step=1e-3),
    }


def slide(take, feet, footprints):
    """Mean speed along the ground of the lower one of heel and ball joint in each contact's inner part, from positions alone: m/s."""
    p, g = take.global_positions, take.global_rotations
    out = []
    for f in footprints:
        leg = feet.legs[0 if f.side == "left" else 1]
        heel = p[:, leg.foot] + quat.rotate(g[:, leg.foot], leg.heel)
        points = np.stack([heel, p[:, leg.toe]], axis=1)
        few = max((f.end - f.start) // 8, 1)
        a, b = f.start + few, f.end - few
        if b - a < 3:
            continue
        low = (points[a:b] @ np.array(f.normal)).argmin(axis=1)
        v = np.linalg.norm(np.diff(points[a:b], axis=0)[..., :2], axis=2) / np.diff(take.times[a:b])[:, None]
        same = low[1:] == low[:-1]
        out.append(np.take_along_axis(v, low[:-1, None], axis=1)[same, 0])
    return float(np.concatenate(out).mean())


@pytest.mark.parametrize("ground", ["flat", "hills", "stairs"])
@pytest.mark.parametrize("name", TAKES)
def test_a_recording_on_a_ground(name, ground):
    take, _, feet = loaded(name)
    result = plan_feet(take, feet, grounds(take, feet.hips)[ground])
    new = result.onto(take)
    before, after = slide(take, feet, result.footprints), slide(new, feet, result.footprints)
    assert len(result.footprints) >= 4
    assert after < 0.01 and after < max(0.2 * before, 0.003)  # the cleanest take slides by 5 mm/s as it is
    report = result.report["after"]
    assert report["penetration_contact_mm"] <= 5.0 and report["penetration_swing_mm"] <= 10.0
    assert report["gap_mm"] <= 5.0
    z, z_new = (t.global_positions[:, feet.hips, 2] for t in (take, new))
    fps = 1.0 / np.median(np.diff(take.times))
    assert jerk(z_new, fps) <= 1.5 * jerk(z, fps)
    assert not flips(take, new, feet)
    lengths = [
        np.linalg.norm(t.global_positions[:, leg.foot] - t.global_positions[:, leg.shin], axis=1) for t in (take, new) for leg in feet.legs
    ]
    np.testing.assert_allclose(lengths[:2], lengths[2:], atol=1e-9)


def flips(take, new, feet):
    """Frames in which a knee bends backwards by more than it does in the source and than half a centimetre."""
    count = 0
    for leg in feet.legs:
        offsets = []
        for t in (take, new):
            p = t.global_positions
            line = p[:, leg.foot] - p[:, leg.thigh]
            line = line / np.linalg.norm(line, axis=1, keepdims=True)
            off = p[:, leg.shin] - p[:, leg.thigh]
            off = off - line * (off * line).sum(axis=1, keepdims=True)
            forward = np.cross(line, quat.rotate(t.global_rotations[:, leg.thigh], leg.hinge))
            offsets.append((off * forward).sum(axis=1))
        count += int((offsets[1] < np.minimum(offsets[0], 0.0) - 0.005).sum())
    return count


@pytest.mark.parametrize("name", TAKES)
def test_a_clean_take_on_flat_ground_stays_as_it_is(name):
    """A take whose feet stand still on the ground, as they do once it has been planted: no joint moves by 1 mm."""
    take, _, feet = loaded(name)
    first = plan_feet(take, feet)
    clean = first.onto(take)
    floor = Plane((0.0, 0.0, first.footprints[0].position[2]))
    second = plan_feet(clean, feet, floor)
    assert len(second.footprints) >= 3
    moved = np.linalg.norm(second.onto(clean).global_positions - clean.global_positions, axis=2)
    assert moved.max() < 0.001


def aside(take, new, feet):
    """How far the balls of the feet are from where the take has them, seen from above: metres, (F, 2)."""
    joints = [leg.toe for leg in feet.legs]
    return np.linalg.norm((new.global_positions - take.global_positions)[:, joints, :2], axis=2)


@pytest.mark.parametrize("ground", ["flat", "hills"])
@pytest.mark.parametrize("name", TAKES)
def test_over_smooth_ground_feet_go_the_way_they_went(name, ground):
    """Only steps make a foot be ahead of its source or behind it; what else moves it is that it stands in one place."""
    take, _, feet = loaded(name)
    new = plan_feet(take, feet, grounds(take, feet.hips)[ground]).onto(take)
    assert aside(take, new, feet).max() < 0.07
    assert np.median(aside(take, new, feet)) < 0.02


@pytest.mark.parametrize("ground", ["hills", "stairs"])
@pytest.mark.parametrize("name", TAKES)
def test_what_was_planted_on_a_ground_goes_the_same_way_again(name, ground):
    """A take that was made for the ground has its slopes and steps in its own way already."""
    take, _, feet = loaded(name)
    surface = grounds(take, feet.hips)[ground]
    first = plan_feet(take, feet, surface).onto(take)
    second = plan_feet(first, feet, surface).onto(first)
    assert aside(first, second, feet).max() < 0.03


def test_the_walk_on_hills_stands_on_them():
    """Against the height function itself, not the report."""
    take, _, feet = loaded("figure of eight")
    hill = grounds(take, feet.hips)["hills"]
    result = plan_feet(take, feet, hill)
    new = result.onto(take)
    for f in result.footprints:
        leg = feet.legs[0 if f.side == "left" else 1]
        middle = (f.start + f.end) // 2
        p = new.global_positions[middle, leg.foot] + quat.rotate(new.global_rotations[middle, leg.foot], leg.heel)
        ball = new.global_positions[middle, leg.toe]
        lowest = min(p[2] - hill.height(p[0], p[1]), ball[2] - leg.sole.ball_height - hill.height(ball[0], ball[1]))
        assert abs(lowest) < 0.006
