# SPDX-License-Identifier: GPL-3.0-or-later
"""A take looked at: some hundred frames spread over it, and averages of directions and rotations that a few odd frames do not move."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...motion import kinematics, quat
from ...motion.take import Take

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

UP: Array = np.array([0.0, 0.0, 1.0])
MOST = 1500
"""Frames looked at."""

_STRETCH = 30
"""Frames in a row; longer takes are looked at in stretches of so many, so that speeds can be told."""
_LOOK_RATE = 40.0
_NEAR = np.radians(5.0)
_LEANING = 0.82  # cosine of 35 degrees


class Samples:
    """Global ``rotations (f, J, 4)``, ``positions (f, J, 3)`` (metres) and ``speeds (f, J)`` of some frames; the ``offsets (J, 3)``.

    Offsets are the medians of the translations: files exist that state lengths only there.
    """

    def __init__(self, take: Take, roles: Mapping[str, tuple[int, ...]]) -> None:
        self.skeleton, self.roles = take.skeleton, roles
        self.frames, runs = _picked(take, [j for joints in roles.values() for j in joints])
        self.local = np.ascontiguousarray(take.local_rotations[self.frames])
        moving = len(take.local_translations) == take.frames
        translations = take.local_translations[self.frames] if moving else take.local_translations
        self.offsets: Array = np.median(translations, axis=0) if len(translations) else take.skeleton.rest_translations
        self.rotations, self.positions = kinematics.forward(self.local, translations, take.skeleton.parents)
        self.speeds = _speeds(self.positions, take.times[self.frames], runs)

    def __len__(self) -> int:
        return len(self.frames)

    def one(self, role: str) -> int | None:
        """First joint of a role, or None."""
        found = self.roles.get(role)
        return found[0] if found else None

    def across(self, part: str) -> Array | None:
        """(f, 3): from the right joint of a pair to the left one, metres, or None."""
        left, right = self.one(f"left{part}"), self.one(f"right{part}")
        if left is None or right is None:
            return None
        apart = self.positions[:, left] - self.positions[:, right]
        return apart if float(np.median(_lengths(apart))) > 1e-4 else None

    def inside(self, joint: int, vectors: Array) -> Array:
        """World vectors ``(f, 3)`` in the frame of ``joint``."""
        return quat.rotate(quat.inv(self.rotations[:, joint]), vectors)

    def reach(self, joint: int, tip: int) -> Array:
        """(3,): the way from ``joint`` to ``tip``, in the frame of ``joint``, metres."""
        return mean_vector(self.inside(joint, self.positions[:, tip] - self.positions[:, joint]))

    @cached_property
    def trunk(self) -> Array:
        """(f, 3): unit vectors from the middle of the hip joints to the shoulders (else the head)."""
        below = [j for side in ("left", "right") if (j := self.one(f"{side}UpperLeg")) is not None]
        above = [j for side in ("left", "right") if (j := self.one(f"{side}UpperArm")) is not None]
        above = above or [j for j in (self.one("neck"), self.one("head")) if j is not None][:1]
        if not below or not above:
            return np.broadcast_to(UP, (len(self), 3))
        return unit(self.positions[:, above].mean(axis=1) - self.positions[:, below].mean(axis=1))

    @cached_property
    def upright(self) -> Mask:
        """(f,): frames in which the body stands upright; the most upright fifth where few do."""
        rise: Array = self.trunk[:, 2]
        return rise >= min(_LEANING, float(np.percentile(rise, 80.0)))

    @cached_property
    def left(self) -> Array:
        """(f, 3): level unit vectors to the body's left: hips and shoulders together."""
        total = np.zeros((len(self), 3))
        for part in ("UpperLeg", "UpperArm"):
            apart = self.across(part)
            if apart is not None:
                total += unit(apart)
        return unit(total * np.array([1.0, 1.0, 0.0]))

    @cached_property
    def body(self) -> Array:
        """(f, 4): the rotation from character axes (left, back, up) to the world: upright, heading as the body does."""
        left = self.left
        return quat.from_axis_angle(UP, np.arctan2(left[:, 1], left[:, 0]))

    @cached_property
    def leg(self) -> float:
        """Metres: upper and lower leg."""
        lengths: list[float] = []
        for side in ("left", "right"):
            joints = [self.one(f"{side}{part}") for part in ("UpperLeg", "LowerLeg", "Foot")]
            if all(j is not None for j in joints):
                places = self.positions[:, [j for j in joints if j is not None]]
                along: Array = _lengths(np.diff(places, axis=1)).sum(axis=1)
                lengths.append(float(np.median(along)))
        return float(np.mean(lengths)) if lengths else 0.0


def _picked(take: Take, joints: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Frames to look at and the number of the stretch that each belongs to; frames with values that are no numbers are left out."""
    step = 1
    if take.frames > 1:
        step = max(1, round((take.frames - 1) / max(take.duration, 1e-9) / _LOOK_RATE))
    frames = np.arange(0, take.frames, step)
    runs = np.zeros(len(frames), dtype=np.int64)
    if len(frames) > MOST:
        starts = np.linspace(0, len(frames) - _STRETCH, MOST // _STRETCH).astype(np.int64)
        frames = np.concatenate([frames[s : s + _STRETCH] for s in starts.tolist()])
        runs = np.repeat(np.arange(len(starts)), _STRETCH)
    good = np.isfinite(take.local_rotations[frames]).all(axis=(1, 2))
    if len(take.local_translations) == take.frames:
        good &= np.isfinite(take.local_translations[frames]).all(axis=(1, 2))
    if take.valid is not None and joints:
        good &= take.valid[frames][:, joints].all(axis=1)
    return frames[good], runs[good]


def _speeds(positions: Array, times: Array, runs: NDArray[np.int64]) -> Array:
    """Metres a second, the greater of the way from the frame before and to the frame after."""
    count = len(times)
    out = np.zeros(positions.shape[:2])
    if count < 2:
        return out
    step = np.linalg.norm(np.diff(positions, axis=0), axis=-1) / np.maximum(np.diff(times), 1e-9)[:, None]
    step[np.diff(runs) != 0] = 0.0
    out[1:] = step
    out[:-1] = np.maximum(out[:-1], step)
    return out


def _lengths(v: Array) -> Array:
    return np.sqrt((v * v).sum(axis=-1))


def unit(v: Array) -> Array:
    """Vectors ``(..., 3)`` at length one; zero vectors stay zero."""
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    return np.where(length > 1e-12, v / np.maximum(length, 1e-300), 0.0)


def mean_vector(v: Array) -> Array:
    """(3,): componentwise median of ``(f, 3)``, the vector itself where it never changes."""
    return np.median(v, axis=0)


def mean_direction(v: Array, weights: Array | None = None) -> tuple[Array, float]:
    """(3,): the direction nearest to most of ``v (f, 3)``, and how far they typically stray from it (radians).

    Each is weighed by its own length and by the inverse of its distance from the last estimate (Weiszfeld, 1937), a few times over.
    """
    w = np.linalg.norm(v, axis=1) * (1.0 if weights is None else weights)
    u = unit(v)
    if float(w.sum()) < 1e-12:
        return np.zeros(3), np.pi
    out = unit((w[:, None] * u).sum(axis=0))
    for _ in range(4):
        near = w / (_angle(u, out) + _NEAR)
        out = unit((near[:, None] * u).sum(axis=0))
    return out, _median(_angle(u, out), w)


def mean_rotation(q: Array) -> tuple[Array, float]:
    """(4,): the rotation nearest to most of ``q (f, 4)``, and how far they typically stray (radians).

    The mean is the first eigenvector of the sum of ``q q^T`` (Markley et al., *Averaging quaternions*, 2007), weighed as in
    :func:`mean_direction`.
    """
    w = np.ones(len(q))
    out = quat.identity()
    for _ in range(5):
        out = np.linalg.eigh((q * w[:, None]).T @ q)[1][:, -1]
        w = 1.0 / (quat.angle(q, out) + _NEAR)
    return out, float(np.median(quat.angle(q, out)))


def held_rotation(q: Array, within: float = np.radians(0.5)) -> tuple[Array, float]:
    """(4,): the one of ``q (f, 4)`` that most others are ``within`` radians of, and the share of those.

    A joint that is not captured stands still.
    """
    picked = q[np.unique(np.linspace(0, len(q) - 1, min(len(q), 80)).astype(np.int64))]
    share = (quat.angle(q[None], picked[:, None]) <= within).mean(axis=1)
    best = int(np.argmax(share))
    return picked[best], float(share[best])


def turn_onto(main: Array, second: Array, wanted_main: Array, wanted_second: Array) -> Array:
    """(4,): the rotation that turns ``main (3,)`` exactly onto ``wanted_main``, ``second`` as near ``wanted_second`` as that allows."""
    return quat.mul(_axes(wanted_main, wanted_second), quat.inv(_axes(main, second)))


def _axes(main: Array, second: Array) -> Array:
    x = unit(main)
    y = unit(second - x * float(second @ x))
    return quat.from_matrix(np.stack([x, y, np.cross(x, y)], axis=-1))


def _angle(u: Array, v: Array) -> Array:
    return 2.0 * np.arcsin(np.clip(0.5 * np.linalg.norm(u - v, axis=-1), 0.0, 1.0))


def _median(values: Array, weights: Array) -> float:
    order = np.argsort(values)
    total = np.cumsum(weights[order])
    return float(values[order[int((total < 0.5 * float(total[-1])).sum())]])
