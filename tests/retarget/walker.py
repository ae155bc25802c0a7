# SPDX-License-Identifier: GPL-3.0-or-later
"""A walk for the test bodies, joint by joint from anatomy: elbows flex ahead, knees back, the standing foot stays flat where it is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from scipy.spatial.transform import Rotation

from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import Take

from .bodies import PLACES, q, r


def _about(axis: str, degrees: np.ndarray) -> Rotation:
    return Rotation.from_euler(axis, np.asarray(degrees)[:, None], degrees=True)


def turns_of_a_walk(
    t: np.ndarray, *, pronation: float = 0.0, heading: float = 0.0, elbows: float = 35.0, knees: float = 50.0, ankles: bool = True
) -> dict[str, Rotation]:
    """How far every joint has turned away from the T-pose, in the world, at the times ``t (F,)`` (seconds); degrees elsewhere."""
    phase = 2.0 * np.pi * t / 1.1
    facing = _about("z", heading + 0.0 * t)
    pelvis = facing * _about("z", 5.0 * np.sin(phase)) * _about("y", 2.0 * np.sin(phase))
    chest = facing * _about("z", -6.0 * np.sin(phase)) * _about("x", 2.0 * np.sin(2 * phase))
    out = {"hips": pelvis, "spine1": pelvis, "spine2": facing, "spine3": chest, "neck": chest}
    out["head"] = facing * _about("z", 12.0 * np.sin(0.31 * phase)) * _about("x", 6.0 * np.sin(0.7 * phase))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        swing = sign * np.sin(phase)
        shoulder = chest * _about("y", sign * 3.0 * np.sin(0.5 * phase))
        # hanging: from the T-pose down to the side (+Y turns +Z towards +X), then a swing to the front and back about the left axis
        upper = facing * _about("x", 25.0 * swing) * _about("y", sign * 80.0 + 0.0 * t)
        lower = upper * _about("z", -sign * (elbows + 0.6 * elbows * swing)) * _about("x", pronation * np.sin(0.9 * phase + sign))
        hand = lower * _about("y", 8.0 * np.sin(1.3 * phase))
        out |= {f"{side}Shoulder": shoulder, f"{side}UpperArm": upper, f"{side}LowerArm": lower, f"{side}Hand": hand}
        curled = hand * _about("y", sign * (10.0 + 0.0 * t))
        out |= {f"{side}{finger}{link}": curled for finger in ("Index", "Little") for link in ("", "2", "3")}
        # +X turns -Z (down) towards +Y (back): negative swings a thigh ahead, positive flexes a knee
        thigh = facing * _about("x", 24.0 * swing)
        shin = thigh * _about("x", 0.1 * knees + knees * np.clip(np.sin(phase - 0.9 + (0.0 if sign > 0 else np.pi)), 0.0, None) ** 2)
        lifted = np.clip(swing - 0.55, 0.0, None) * 60.0 * (np.cos(phase) * sign < 0)
        foot = facing * _about("x", lifted) if ankles else shin
        out |= {f"{side}UpperLeg": thigh, f"{side}LowerLeg": shin, f"{side}Foot": foot, f"{side}Toes": foot}
    return out


def walk(
    skeleton: Skeleton, orientations: dict[str, Rotation] | None = None, *, seconds: float = 5.0, rate: float = 60.0, **how: float
) -> Take:
    """The walk on a body made by :func:`.bodies.body` (any joint frames); the standing ankle is at rest, on the ground."""
    t = np.arange(int(seconds * rate)) / rate
    turns = turns_of_a_walk(t, **how)
    frames = {name: (orientations or {}).get(name, Rotation.identity()) for name in skeleton.names}
    glob = {name: turns[name] * frames[name] for name in skeleton.names}
    places = _places(skeleton, turns)
    ankles = [places[f"{side}Foot"] for side in ("left", "right")]
    stands = np.where(ankles[0][:, 2] < ankles[1][:, 2], 0, 1)
    root = np.zeros((len(t), 3))
    for f in range(1, len(t)):
        ankle = ankles[stands[f]]
        root[f, :2] = root[f - 1, :2] + (ankle[f - 1] - ankle[f])[:2]
    root[:, 2] = PLACES["leftFoot"][2][2] - np.minimum(ankles[0][:, 2], ankles[1][:, 2])
    local = np.empty((len(t), len(skeleton), 4))
    for j, name in enumerate(skeleton.names):
        p = int(skeleton.parents[j])
        local[:, j] = q(glob[name] if p < 0 else glob[skeleton.names[p]].inv() * glob[name])
    translations = np.broadcast_to(skeleton.rest_translations, (len(t), len(skeleton), 3)).copy()
    translations[:, 0] = root
    return Take("walk", skeleton, t, local, translations, rate=Fraction(rate).limit_denominator(1001))


def _places(skeleton: Skeleton, turns: dict[str, Rotation]) -> dict[str, np.ndarray]:
    out: dict[str, np.ndarray] = {}
    for j, name in enumerate(skeleton.names):
        p = int(skeleton.parents[j])
        if p < 0:
            out[name] = np.zeros((len(turns[name]), 3))
        else:
            above = skeleton.names[p]
            offset = np.array(PLACES[name][2]) - np.array(PLACES[above][2])
            out[name] = out[above] + turns[above].apply(offset)
    return out


def collapsed(take: Take) -> Take:
    """The same motion on a skeleton whose rest says nothing: no rotation at any joint, each frame as its parent's."""
    skeleton = take.skeleton
    rest = np.broadcast_to([1.0, 0.0, 0.0, 0.0], (len(skeleton), 4))
    return replace(take, skeleton=skeleton.with_rest(rest))


def apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Degrees between rotations ``(..., 4)``, by SciPy."""
    return np.degrees((r(a).inv() * r(b)).magnitude()).reshape(np.shape(a)[:-1])
