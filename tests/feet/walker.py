# SPDX-License-Identifier: GPL-3.0-or-later
"""A made-up walker whose contacts are known: footsteps in, a take out.

Written for the tests alone, with its own inverse kinematics. Heels strike with toes up, the foot rolls onto its ball, lies flat, the heel
rises over toes that stay where they are, the foot swings. In contact nothing slides and nothing sinks in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from mocap_addon.feet.body import Feet, Sole, find_feet
from mocap_addon.motion import kinematics, quat
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import Take
from mocap_addon.rig.roles import RoleMap

NAMES = ("Hips", "Spine", "LeftUpLeg", "LeftLeg", "LeftFoot", "LeftToe", "RightUpLeg", "RightLeg", "RightFoot", "RightToe")
PARENTS = (-1, 0, 0, 2, 3, 4, 0, 6, 7, 8)
ROLES = RoleMap(
    {
        "hips": (0,), "spine": (1,), "leftUpperLeg": (2,), "leftLowerLeg": (3,), "leftFoot": (4,), "leftToes": (5,),
        "rightUpperLeg": (6,), "rightLowerLeg": (7,), "rightFoot": (8,), "rightToes": (9,),
    }
)  # fmt: skip
NO_TOES = RoleMap({role: joints for role, joints in ROLES.joints.items() if not role.endswith("Toes")})


@dataclass(frozen=True)
class Shape:
    """Measures of a body, metres; soles as in :class:`mocap_addon.feet.body.Sole`."""

    thigh: float = 0.45
    shin: float = 0.45
    heel_height: float = 0.08
    ball_height: float = 0.02
    heel_offset: float = 0.05
    ball_offset: float = 0.13
    toe_length: float = 0.07
    width: float = 0.18

    @property
    def sole(self) -> Sole:
        return Sole(self.heel_height, self.ball_height, self.heel_offset, self.toe_length)


@dataclass(frozen=True)
class Step:
    """One contact: where the ball is, which way the foot points, what the ground is like, and when."""

    side: int
    ball: tuple[float, float, float]
    yaw: float
    strike: float
    flat: float
    heel_off: float
    toe_off: float


@dataclass(frozen=True)
class Gait:
    pitch_strike: float = 20.0
    pitch_off: float = 35.0
    clearance: float = 0.16
    reach: float = 0.985
    bob: float = 0.03  # metres from top to bottom, lowest when a heel strikes; people have 3 to 5 cm


@dataclass(frozen=True, eq=False)
class Walk:
    take: Take
    feet: Feet
    steps: tuple[Step, ...]
    shape: Shape
    parts: np.ndarray  # (F, 2, 2) heel and ball down, truth
    extra: dict = field(default_factory=dict)

    @property
    def held(self):
        return self.parts.any(axis=2)


def skeleton(shape: Shape = Shape(), rolls: int | None = None, bend: float = 0.0) -> Skeleton:
    """Legs straight down at rest; ``rolls``: a seed for random bone axes."""
    high = shape.thigh + shape.shin + shape.heel_height
    w = shape.width / 2
    at = np.zeros((10, 3))
    at[0], at[1] = (0, 0, high), (0, 0, high + 0.3)
    for k, x in ((2, w), (6, -w)):
        at[k] = (x, 0, high)
        at[k + 1] = (x, -bend, high - shape.thigh)
        at[k + 2] = (x, 0, shape.heel_height)
        at[k + 3] = (x, -shape.ball_offset, shape.ball_height)
    turns = quat.identity(10)
    if rolls is not None:
        q = np.random.default_rng(rolls).normal(size=(10, 4))
        turns = q / np.linalg.norm(q, axis=1, keepdims=True)
    r, t = kinematics.inverse(turns, at, np.array(PARENTS))
    ends = np.full((10, 3), np.nan)
    for k in (5, 9):
        ends[k] = quat.rotate(quat.inv(turns[k]), np.array([0.0, -shape.toe_length, 0.0]))
    return Skeleton(NAMES, np.array(PARENTS), t, r, ends)


def _yaw(a):
    return quat.from_axis_angle(np.array([0.0, 0.0, 1.0]), np.asarray(a, dtype=float))


def _pitch(a):
    """Toes up by ``a`` radians, for a foot that points along -Y."""
    return quat.from_axis_angle(np.array([-1.0, 0.0, 0.0]), np.asarray(a, dtype=float))


def _ease(x):
    x = np.clip(x, 0, 1)
    return x * x * (3 - 2 * x)


def straight(count: int, length: float = 0.6, period: float = 0.5, shape: Shape = Shape(), heading: float = 0.0, start: float = 0.6):
    """Footsteps on a line: ``count`` of them, ``length`` apart, one every ``period`` seconds; the walker stands at first and at last."""
    steps, w = [], shape.width / 2
    ahead, left = np.array([np.sin(heading), -np.cos(heading)]), np.array([np.cos(heading), np.sin(heading)])
    last = start + count * period + 1.0
    place = {0: 0.0, 1: 0.0}
    begun = {0: (-1.0, -0.9), 1: (-1.0, -0.9)}
    for k in range(count + 2):
        side = k % 2
        off = start + k * period if k < count else last + 9.0
        p = ahead * place[side] + left * (w if side == 0 else -w)
        strike, flat = begun[side]
        steps.append(Step(side, (p[0], p[1], 0.0), heading, strike, flat, off - 0.18 if k < count else off - 0.1, off))
        if k < count:
            place[side] = place[1 - side] + length
            if k == count - 1:
                place[side] = place[1 - side]
            swing = 0.8 * period
            begun[side] = (off + swing, off + swing + 0.08)
    return tuple(steps), last


def _foot(steps: list[Step], shape: Shape, gait: Gait, t: np.ndarray):
    """Ankle, pitch, toe pitch, yaw and truth of one foot."""
    n = len(t)
    ankle, pitch, toe, yaw = np.zeros((n, 3)), np.zeros(n), np.zeros(n), np.zeros(n)
    parts = np.zeros((n, 2), dtype=bool)
    joint = np.array([0.0, -shape.ball_offset, shape.ball_height - shape.heel_height])
    heel = np.array([0.0, shape.heel_offset, -shape.heel_height])
    up = np.radians(gait.pitch_strike)
    off = np.radians(gait.pitch_off)

    def stance(s: Step, u):
        """Foot in contact at times u (extrapolates)."""
        q = _yaw(np.full(len(u), s.yaw))
        flat_ankle = np.asarray(s.ball) + np.array([0, 0, shape.ball_height]) - quat.rotate(_yaw(s.yaw), joint)
        heel_at = flat_ankle + quat.rotate(_yaw(s.yaw), heel)
        land = np.clip((u - s.strike) / (s.flat - s.strike), 0, 1)
        rise = np.clip((u - s.heel_off) / (s.toe_off - s.heel_off), 0, 1)
        down = up * (1 - land) ** 2
        p = np.where(u < s.flat, down, -off * rise**2)
        r = quat.mul(q, _pitch(p))
        by_heel = heel_at - quat.rotate(r, heel)
        by_ball = np.asarray(s.ball) + np.array([0, 0, shape.ball_height]) - quat.rotate(r, joint)
        return np.where((u < s.flat)[:, None], by_heel, by_ball), p

    for k, s in enumerate(steps):
        inside = (t >= s.strike) & (t <= s.toe_off)
        a, p = stance(s, t)
        ankle[inside], pitch[inside] = a[inside], p[inside]
        yaw[inside] = s.yaw
        toe[inside] = np.where(p[inside] < 0, 0.0, p[inside])
        parts[:, 0] |= inside & (t <= s.heel_off)
        parts[:, 1] |= inside & (t >= s.flat)
        if k + 1 < len(steps):
            b = steps[k + 1]
            air = (t > s.toe_off) & (t < b.strike)
            if not air.any():
                continue
            h = 1e-4
            span = b.strike - s.toe_off
            (a0, p0), (a1, p1) = stance(s, np.array([s.toe_off - h, s.toe_off])), stance(b, np.array([b.strike, b.strike + h]))
            v0, v1 = (a0[1] - a0[0]) / h, (a1[1] - a1[0]) / h
            w0, w1 = (p0[1] - p0[0]) / h, (p1[1] - p1[0]) / h
            x = (t[air] - s.toe_off) / span
            h00, h10, h01, h11 = 2 * x**3 - 3 * x**2 + 1, x**3 - 2 * x**2 + x, -2 * x**3 + 3 * x**2, x**3 - x**2
            ankle[air] = a0[1] * h00[:, None] + v0 * (h10 * span)[:, None] + a1[0] * h01[:, None] + v1 * (h11 * span)[:, None]
            ankle[air, 2] += gait.clearance * 16 * (x * (1 - x)) ** 2
            pitch[air] = p0[1] * h00 + w0 * span * h10 + p1[0] * h01 + w1 * span * h11
            toe[air] = np.where(x < 0.5, pitch[air] * _ease(2 * x), pitch[air])
            turn = (b.yaw - s.yaw + np.pi) % (2 * np.pi) - np.pi
            yaw[air] = s.yaw + turn * _ease(x)
    return ankle, pitch, toe, yaw, parts


def _hip_heights(hips_xy, ankles, shape, gait, reach_of=1.0):
    """Height of the hip joints: as high as the legs allow while their feet are near, smoothed."""
    length = (shape.thigh + shape.shin) * gait.reach
    high = np.full(len(hips_xy), np.inf)
    for hip, ankle in ankles:
        r2 = ((hip - ankle[:, :2]) ** 2).sum(axis=1)
        high = np.minimum(high, ankle[:, 2] + np.sqrt(np.maximum(length**2 - np.minimum(r2, 0.8 * length**2), 0)))
    return high


def walk(
    steps, last: float, fps: float = 60.0, shape: Shape = Shape(), gait: Gait = Gait(), rolls: int | None = None, toes: bool = True,
    hold: float | None = None, facing=None, pelvis_rise=None,
) -> Walk:  # fmt: skip
    """The take of those footsteps.

    ``pelvis_rise``: added to the pelvis (F,) after everything, for jumps. ``facing``: yaw of the pelvis over time, else between the feet's.
    """
    n = round(last * fps) + 1
    t = np.arange(n) / fps
    fine = np.arange(0.0, last + 1e-9, 1.0 / 240.0)
    per = [[s for s in steps if s.side == side] for side in range(2)]
    w = shape.width / 2

    def body(u):
        feet = [_foot(p, shape, gait, u) for p in per]
        mid = 0.5 * (feet[0][0] + feet[1][0])
        yaws = 0.5 * (feet[0][3] + feet[1][3]) if facing is None else facing(u)
        return feet, mid, yaws

    feet, mid, yaws = body(fine)
    k = np.hanning(145)
    k /= k.sum()

    def smooth(x):
        return np.convolve(np.pad(x, 72, mode="edge"), k, mode="valid")

    xy = np.column_stack([smooth(mid[:, 0]), smooth(mid[:, 1])]) + _turned(yaws, np.array([0.0, -0.03]))
    yaws = smooth(yaws)
    hips = [xy + _turned(yaws, np.array([w, 0.0])), xy + _turned(yaws, np.array([-w, 0.0]))]
    z = _hip_heights(xy, [(hips[i], feet[i][0]) for i in range(2)], shape, gait)
    low = np.array([z[max(i - 36, 0) : i + 37].min() for i in range(len(z))])
    k2 = np.hanning(75)
    k2 /= k2.sum()
    z = np.convolve(np.pad(low, 37, mode="edge"), k2, mode="valid")
    strikes = sorted(s.strike for s in steps if s.strike > 0)
    if len(strikes) > 1 and gait.bob:
        phase = np.interp(fine, [strikes[0] - np.median(np.diff(strikes)), *strikes, strikes[-1] + 0.5], np.arange(len(strikes) + 2) - 1.0)
        z = z - 0.5 * gait.bob * (1 + np.cos(2 * np.pi * phase)) * _ease((fine - strikes[0] + 0.5) / 0.5) * _ease(
            (strikes[-1] + 0.5 - fine) / 0.5
        )
    if pelvis_rise is not None:
        z = z + pelvis_rise(fine)
    x = np.column_stack([np.interp(t, fine, xy[:, 0]), np.interp(t, fine, xy[:, 1]), np.interp(t, fine, z)])
    heading = np.interp(t, fine, yaws)
    return _pose(t, fps, x, heading, body(t)[0], steps, shape, rolls, toes)


def _turned(yaw, v):
    c, s = np.cos(yaw), np.sin(yaw)
    return np.stack([c * v[0] - s * v[1], s * v[0] + c * v[1]], axis=-1)


def _pose(t, fps, middle, heading, feet, steps, shape, rolls, toes) -> Walk:
    n = len(t)
    sk = skeleton(shape, rolls)
    rest_g = sk.rest_global_rotations
    g = np.zeros((n, 10, 4))
    p = np.zeros((n, 10, 3))
    g[:, 0] = g[:, 1] = _yaw(heading)
    p[:, 0] = middle
    p[:, 1] = middle + np.array([0, 0, 0.3])
    parts = np.zeros((n, 2, 2), dtype=bool)
    for side, k in ((0, 2), (1, 6)):
        ankle, pitch, toe, yaw, parts[:, side] = feet[side]
        w = shape.width / 2 * (1 if side == 0 else -1)
        hip = middle + np.column_stack([_turned(heading, np.array([w, 0.0])), np.zeros(n)])
        foot = quat.mul(_yaw(yaw), _pitch(pitch))
        line = ankle - hip
        d = np.linalg.norm(line, axis=1)
        assert np.all(d < shape.thigh + shape.shin), "the walker's own legs are too short"
        u = line / d[:, None]
        half = 0.5 * (heading + yaw)
        fwd = np.column_stack([np.sin(half), -np.cos(half), np.zeros(n)])
        fwd -= u * (fwd * u).sum(axis=1, keepdims=True)
        fwd /= np.linalg.norm(fwd, axis=1, keepdims=True)
        along = (shape.thigh**2 + d**2 - shape.shin**2) / (2 * d)
        knee = hip + u * along[:, None] + fwd * np.sqrt(shape.thigh**2 - along**2)[:, None]
        left = np.cross(fwd, u)  # forward x down = left
        p[:, k], p[:, k + 1], p[:, k + 2] = hip, knee, ankle
        g[:, k], g[:, k + 1], g[:, k + 2] = _down(knee - hip, left), _down(ankle - knee, left), foot
        p[:, k + 3] = ankle + quat.rotate(foot, np.array([0.0, -shape.ball_offset, shape.ball_height - shape.heel_height]))
        g[:, k + 3] = quat.mul(_yaw(yaw), _pitch(toe))
    g = quat.mul(g, rest_g)
    r, tr = kinematics.inverse(g, p, np.array(PARENTS))
    moving = np.broadcast_to(sk.rest_translations, tr.shape).copy()
    moving[:, 0] = tr[:, 0]
    assert np.abs(moving - tr).max() < 1e-9, "bones of the walker change their lengths"
    take = Take("walker", sk, t, quat.continuous(r), moving, rate=Fraction(fps).limit_denominator(1001))
    feet_found = find_feet(sk, ROLES if toes else NO_TOES, {"left": shape.sole, "right": shape.sole})
    return Walk(take, feet_found, tuple(steps), shape, parts)


def _down(direction, left):
    z = -direction / np.linalg.norm(direction, axis=1, keepdims=True)
    x = left - z * (left * z).sum(axis=1, keepdims=True)
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    m = np.stack([x, np.cross(z, x), z], axis=-1)
    return quat.from_matrix(m)


def sliding(walk: Walk, drift, noise: float = 0.0, seed: int = 1) -> Walk:
    """The same body carried along by ``drift(times) -> (F, 3)``: its feet slide; ``noise``: metres (r.m.s.) of shaking as well."""
    shift = drift(walk.take.times)
    if noise:
        rng = np.random.default_rng(seed)
        shift = shift + noise / np.sqrt(3.0) * rng.normal(size=shift.shape)
    return Walk(walk.take.rerooted(lambda q: q, lambda v: v + shift, rest=False), walk.feet, walk.steps, walk.shape, walk.parts)


def plain_take(**more) -> Walk:
    """Eight steps straight on."""
    steps, last = straight(8)
    return walk(steps, last, **more)
