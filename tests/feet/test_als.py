# SPDX-License-Identifier: GPL-3.0-or-later
"""ALS mode against a literal transcription of its updates: scalars, centimetres, left-handed axes, component space, one step after another.

Unreal's axes: X forward, Y right, Z up; rotators are pitch, yaw, roll in degrees. The product works in metres and right-handed axes with
Y turned round; nothing of it is used here but the call under test.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from mocap_addon.feet import als_steps
from mocap_addon.feet.plan import plan_feet
from mocap_addon.feet.settings import FeetSettings
from mocap_addon.motion import quat

from . import scenes

FRAMES = 2000
UP, DOWN, H = 50.0, 45.0, 13.5


def v_interp_to(current, target, dt, speed):
    if speed <= 0.0:
        return list(target)
    dist = [target[i] - current[i] for i in range(3)]
    if dist[0] ** 2 + dist[1] ** 2 + dist[2] ** 2 < 1.0e-4:
        return list(target)
    alpha = min(max(dt * speed, 0.0), 1.0)
    return [current[i] + dist[i] * alpha for i in range(3)]


def wrap(angle):
    angle = math.fmod(angle + 180.0, 360.0)
    return angle + 180.0 if angle < 0.0 else angle - 180.0


def r_interp_to(current, target, dt, speed):
    """(pitch, yaw, roll)."""
    if dt == 0.0 or speed <= 0.0:
        return list(target)
    delta = [wrap(target[i] - current[i]) for i in range(3)]
    if all(abs(d) <= 1.0e-4 for d in delta):
        return list(target)
    alpha = min(max(dt * speed, 0.0), 1.0)
    return [wrap(current[i] + delta[i] * alpha) for i in range(3)]


class Foot:
    def __init__(self):
        self.offset, self.rotation = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]


def set_foot_offsets(foot: Foot, enable, bone, root_z, hit, dt):
    """Returns the location target (zero without a walkable hit)."""
    if enable <= 0.0:
        foot.offset, foot.rotation = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
        return [0.0, 0.0, 0.0]
    floor = [bone[0], bone[1], root_z]
    target, rotation = [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    if hit is not None:
        point, normal = hit
        target = [
            (point[0] + normal[0] * H) - floor[0],
            (point[1] + normal[1] * H) - floor[1],
            (point[2] + normal[2] * H) - (floor[2] + H),
        ]
        rotation = [-math.degrees(math.atan2(normal[0], normal[2])), 0.0, math.degrees(math.atan2(normal[1], normal[2]))]
    speed = 30.0 if foot.offset[2] > target[2] else 15.0
    foot.offset = v_interp_to(foot.offset, target, dt, speed)
    foot.rotation = r_interp_to(foot.rotation, rotation, dt, 30.0)
    return target


def set_pelvis_offset(pelvis, left, right, enable_l, enable_r, dt):
    alpha = (enable_l + enable_r) / 2.0
    if alpha <= 0.0:
        return [0.0, 0.0, 0.0], 0.0
    target = left if left[2] < right[2] else right
    speed = 10.0 if target[2] > pelvis[2] else 15.0
    return v_interp_to(pelvis, target, dt, speed), alpha


def reset_offsets(foot: Foot, dt):
    foot.offset = v_interp_to(foot.offset, [0.0, 0.0, 0.0], dt, 15.0)
    foot.rotation = r_interp_to(foot.rotation, [0.0, 0.0, 0.0], dt, 15.0)


def made_up(seed):
    """Feet that wander, hits that come and go, gates that close, flights."""
    rng = np.random.default_rng(seed)
    foot = np.cumsum(rng.normal(scale=0.02, size=(FRAMES, 2, 3)), axis=0)
    root = np.cumsum(rng.normal(scale=0.01, size=FRAMES))
    point = foot + np.array([0.0, 0.0, 1.0]) * (root[:, None, None] - foot[..., 2:] + rng.uniform(-0.4, 0.4, (FRAMES, 2, 1)))
    hold = np.repeat(np.arange(0, FRAMES, 8), 8)[:FRAMES]  # a target that stands for a while, so that the snap is reached too
    point[..., 2] = point[hold][..., 2] - root[hold][:, None] + root[:, None]
    normal = rng.normal(scale=0.35, size=(FRAMES, 2, 3))[hold] + np.array([0.0, 0.0, 1.0])
    normal[..., 2] = np.abs(normal[..., 2]) + 0.05
    normal /= np.linalg.norm(normal, axis=-1, keepdims=True)
    walkable = rng.random((FRAMES, 2))[hold] > 0.15
    gate = np.where(rng.random((FRAMES, 2))[hold] < 0.15, 0.0, rng.random((FRAMES, 2)))
    airborne = rng.random(FRAMES)[hold] < 0.15
    return foot, root, point, normal, walkable, gate, airborne


@pytest.mark.parametrize("rate", [30.0, 60.0, 120.0])
def test_offsets_against_the_literal_updates(rate):
    foot, root, point, normal, walkable, gate, airborne = made_up(int(rate))
    settings = FeetSettings(als_rate=rate)
    location, angles = als_steps.targets(foot, root, point, normal, walkable, np.array([0.135, 0.135]), exact=False)
    got = als_steps.run(location, angles, gate, airborne, settings, 1.0 / rate, fresh=True)

    left, right, pelvis = Foot(), Foot(), [0.0, 0.0, 0.0]
    want = {k: [] for k in ("location", "angles", "pelvis", "alpha")}
    for i in range(FRAMES):
        dt = 1.0 / rate
        if airborne[i]:
            pelvis, alpha = set_pelvis_offset(pelvis, [0.0] * 3, [0.0] * 3, gate[i, 0], gate[i, 1], dt)
            reset_offsets(left, dt)
            reset_offsets(right, dt)
        else:
            targets = []
            for side, state in enumerate((left, right)):
                ue = [foot[i, side, 0] * 100, -foot[i, side, 1] * 100, foot[i, side, 2] * 100]
                p, n = point[i, side], normal[i, side]
                hit = ([p[0] * 100, -p[1] * 100, p[2] * 100], [n[0], -n[1], n[2]]) if walkable[i, side] else None
                targets.append(set_foot_offsets(state, gate[i, side], ue, root[i] * 100, hit, dt))
            pelvis, alpha = set_pelvis_offset(pelvis, targets[0], targets[1], gate[i, 0], gate[i, 1], dt)
        want["location"].append([left.offset, right.offset])
        want["angles"].append([[s.rotation[0], s.rotation[2]] for s in (left, right)])
        want["pelvis"].append(pelvis)
        want["alpha"].append(alpha)
    turn = np.array([0.01, -0.01, 0.01])
    np.testing.assert_allclose(got.location, np.array(want["location"]) * turn, atol=1e-9)
    np.testing.assert_allclose(got.pelvis, np.array(want["pelvis"]) * turn, atol=1e-9)
    np.testing.assert_allclose(got.alpha, want["alpha"], atol=1e-9)
    # Unreal: +pitch raises +X, +roll lowers +Y (right). About Blender's axes: y by -pitch, x by roll (right is -Y: it goes down)
    ue = np.array(want["angles"])
    np.testing.assert_allclose(got.angles[..., 1], -ue[..., 0], atol=1e-7)
    np.testing.assert_allclose(got.angles[..., 0], ue[..., 1], atol=1e-7)
    assert airborne.any() and (gate == 0).any() and (~walkable).any()


def test_locks_against_the_literal_updates():
    """SetFootLocking in component space, with the actor turning and moving; the world place of the lock has to stay."""
    rng = np.random.default_rng(5)
    dt = 1.0 / 60.0
    yaw = np.cumsum(rng.normal(scale=0.8, size=FRAMES))  # degrees
    velocity = np.column_stack([rng.normal(scale=120, size=(FRAMES, 2)), np.zeros(FRAMES)])  # cm/s, level
    place = np.zeros((FRAMES, 3))
    for i in range(1, FRAMES):
        place[i] = place[i - 1] + velocity[i] * dt
    foot = rng.normal(scale=20, size=(FRAMES, 3))  # component space
    lock = np.clip(np.interp(np.arange(FRAMES), np.arange(0, FRAMES, 25), rng.choice([0.0, 0.4, 1.0, 1.0], FRAMES // 25)), 0, 1)
    gate = (rng.random(FRAMES) > 0.02).astype(float)

    def turned(v, degrees):  # Unreal's yaw: +X towards +Y
        c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
        return np.array([c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]])

    alpha, q, weights, worlds, held = 0.0, np.zeros(3), [], [], False
    for i in range(FRAMES):
        if i:  # component moves first, the lock is compensated for it, also while the curve is not read
            d = yaw[i] - yaw[i - 1]
            q = turned(q - turned(velocity[i] * dt, -yaw[i - 1]), -d)
        if gate[i] > 0.0:
            before = alpha
            if lock[i] >= 0.99 or lock[i] < alpha:
                alpha = lock[i]
            if alpha >= 0.99 and before < 0.99:  # later updates read the locked pose: the same point
                q, held = foot[i].copy(), True
        weights.append(alpha)
        worlds.append(place[i] + turned(q, yaw[i]) if held else np.full(3, np.nan))
    weight, at = als_steps.lock_weights(lock, gate)
    np.testing.assert_allclose(weight, weights, atol=1e-12)
    foot_world = np.array([place[i] + turned(foot[i], yaw[i]) for i in range(FRAMES)])
    known = at >= 0
    assert known.sum() > 1000 and len(set(at)) > 10
    np.testing.assert_allclose(foot_world[at[known]], np.array(worlds)[known], atol=1e-7)  # cm: 1e-9 m


def test_alss_pair_of_angles_is_its_world_rotation():
    """R = Ry(atan2(nx, nz)) Rx(-atan2(ny, nz)), and exact along one axis."""
    for n in ([0.3, 0.0, 0.8], [0.0, -0.4, 0.8], [0.3, 0.3, 0.8]):
        n = np.array(n) / np.linalg.norm(n)
        one = np.zeros((1, 2, 3)), np.zeros(1), np.zeros((1, 2, 3)), np.broadcast_to(n, (1, 2, 3)), np.ones((1, 2), dtype=bool), np.zeros(2)
        x, y = np.radians(als_steps.targets(*one, exact=False)[1][0, 0])
        up = quat.rotate(quat.mul(quat.from_axis_angle([0, 1, 0], y), quat.from_axis_angle([1, 0, 0], x)), np.array([0.0, 0.0, 1.0]))
        off = np.degrees(np.arccos(np.clip(up @ n, -1, 1)))
        assert off < 1e-6 if 0.0 in n else 0.5 < off < 5.5
        v = np.radians(als_steps.targets(*one, exact=True)[1][0, 0])
        np.testing.assert_allclose(quat.rotate(quat.exp(np.array([*v, 0.0])), np.array([0.0, 0.0, 1.0])), n, atol=1e-12)


def test_a_walk_down_a_slope_has_its_feet_on_it():
    scene = scenes.slope(20, 0)
    result = plan_feet(scene.source, scene.walk.feet, scene.ground, FeetSettings(mode="als"))
    report = result.report["after"]
    assert report["skate_cm_s"] < 1.0
    flat = result.locks.astype(bool)
    heights = result.soles[:, :, 1, 2] - scene.height(result.soles[:, :, 1, 0], result.soles[:, :, 1, 1], 0)
    assert np.abs(np.median(heights[flat])) < 0.02
    assert np.isfinite(result.local_rotations).all()


def test_closed_gates_leave_the_take_alone():
    from mocap_addon.feet.result import Gates

    scene = scenes.slope(20, 0)
    gates = Gates(foot_ik=np.zeros((scene.source.frames, 2)))
    for mode in ("als", "plant"):
        new = plan_feet(scene.source, scene.walk.feet, scene.ground, FeetSettings(mode=mode), gates).onto(scene.source)
        assert np.abs(new.global_positions - scene.source.global_positions).max() < 1e-9
