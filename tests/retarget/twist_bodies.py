# SPDX-License-Identifier: GPL-3.0-or-later
"""Bodies with twist bones, under Unreal's names, and what their bones turn about a limb, worked out frame by frame."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import Take
from mocap_addon.retarget import RetargetOptions, build_table, retarget
from mocap_addon.rig import match

from .bodies import body, q, r, random_orientations

_UNREAL = {"hips": "pelvis", "spine1": "spine_01", "spine2": "spine_02", "spine3": "spine_03", "neck": "neck_01", "head": "head"}
_SIDED = {
    "Shoulder": "clavicle",
    "UpperArm": "upperarm",
    "LowerArm": "lowerarm",
    "Hand": "hand",
    "Index": "index_01",
    "Index2": "index_02",
    "Index3": "index_03",
    "Little": "pinky_01",
    "Little2": "pinky_02",
    "Little3": "pinky_03",
    "UpperLeg": "thigh",
    "LowerLeg": "calf",
    "Foot": "foot",
    "Toes": "ball",
}
_UNREAL |= {f"{side}{part}": f"{name}_{side[0]}" for side in ("left", "right") for part, name in _SIDED.items()}

# twist bone: the limb's bone, the next one, where it lies between them
BESIDE = {
    "upperarm_twist_01": ("upperarm", "lowerarm", 0.0),
    "upperarm_twist_02": ("upperarm", "lowerarm", 0.5),
    "lowerarm_twist_02": ("lowerarm", "hand", 0.35),
    "lowerarm_twist_01": ("lowerarm", "hand", 0.7),
    "thigh_twist_01": ("thigh", "calf", 0.25),
    "calf_twist_01": ("calf", "foot", 0.6),
}
ABOVE = {"upperarm": "clavicle", "thigh": "pelvis"}


def with_joints(skeleton: Skeleton, added: dict[str, tuple[str, str, float]], seed: int = 3) -> Skeleton:
    """The skeleton with bones beside limbs: name: (parent and start, end, share of the way). Their frames are at random."""
    frames = Rotation.random(len(added), random_state=seed)
    names, places = list(skeleton.names), list(skeleton.rest_global_positions)
    parents, turns = list(skeleton.parents), list(r(skeleton.rest_global_rotations))
    for (name, (start, end, share)), frame in zip(added.items(), frames, strict=True):
        a, b = names.index(start), names.index(end)
        names.append(name)
        parents.append(a)
        turns.append(frame)
        places.append(places[a] + share * (places[b] - places[a]))
    local_t, local_r = [], []
    for place, turn, p in zip(places, turns, parents, strict=True):
        local_r.append(q(turn if p < 0 else turns[p].inv() * turn))
        local_t.append(place if p < 0 else turns[p].inv().apply(place - places[p]))
    return Skeleton(tuple(names), np.array(parents), np.array(local_t), np.array(local_r))


def mannequin(seed: int | None = 7, *, twists: bool = True) -> Skeleton:
    """Unreal's names on a T-posed body, joint frames at random."""
    plain, _ = body(orientations={} if seed is None else random_orientations(seed))
    skeleton = Skeleton(tuple(_UNREAL[name] for name in plain.names), plain.parents, plain.rest_translations, plain.rest_rotations)
    if not twists:
        return skeleton
    sides = ("l", "r")
    return with_joints(skeleton, {f"{n}_{s}": (f"{a}_{s}", f"{b}_{s}", u) for s in sides for n, (a, b, u) in BESIDE.items()})


def performance(frames: int = 45, *, hand: float = 130.0, arm: float = 110.0) -> Take:
    """Arms and legs that swing and roll: hands (and feet) about the forearm (shin), upper arms and thighs about themselves, degrees."""
    skeleton, _ = body()
    t = np.linspace(0.0, 1.0, frames)
    wave = np.sin(2.0 * np.pi * t)
    glob = {}
    for j, name in enumerate(skeleton.names):
        above = glob[skeleton.names[skeleton.parents[j]]] if j else Rotation.identity()
        side, own = (-1.0 if name.startswith("right") else 1.0), Rotation.identity()
        if name.endswith("UpperArm"):
            own = Rotation.from_euler("ZYX", np.stack([side * 40 * wave, side * 50 * np.cos(5 * t), arm * wave], -1), degrees=True)
        elif name.endswith("LowerArm"):
            own = Rotation.from_euler("z", -side * 45.0 * (1.0 - np.cos(7.0 * t))[:, None], degrees=True)
        elif name.endswith("Hand"):
            own = Rotation.from_euler("ZYX", np.stack([20 * wave, 35 * np.cos(6 * t), hand * np.sin(3.0 * t)], -1), degrees=True)
        elif name.endswith("UpperLeg"):
            own = Rotation.from_euler("XYZ", np.stack([-50 * t, side * 20 * wave, side * 35 * wave], -1), degrees=True)
        elif name.endswith("LowerLeg"):
            own = Rotation.from_euler("x", 60.0 * t[:, None], degrees=True)
        elif name.endswith("Foot"):
            own = Rotation.from_euler("XZ", np.stack([15 * wave, 30 * np.cos(4 * t)], -1), degrees=True)
        glob[name] = above * own
    local = np.empty((frames, len(skeleton), 4))
    for j, name in enumerate(skeleton.names):
        p = int(skeleton.parents[j])
        local[:, j] = q(glob[name] if p < 0 else glob[skeleton.names[p]].inv() * glob[name])
    return Take("performance", skeleton, np.arange(frames) / 30.0, local, skeleton.rest_translations[None])


def carried(take: Take, target: Skeleton, change=None, **options):
    """The table, the motion and the take on the target; ``change`` edits the table."""
    table = build_table(take.skeleton, match_of_plain(take.skeleton), target, match(target))
    table = table if change is None else change(table)
    motion = retarget(take, table, target, RetargetOptions(**options))
    return table, motion, motion.to_take(target)


def match_of_plain(skeleton: Skeleton):
    """Roles of :func:`.bodies.body`, as they were made."""
    plain, roles = body()
    assert plain.names == skeleton.names
    return roles


def away(take: Take, name: str) -> list[Rotation]:
    """Each frame's turn of a joint away from the rest pose, in the world."""
    j = take.skeleton.index(name)
    rest = r(take.skeleton.rest_global_rotations[j])[0]
    return [turn * rest.inv() for turn in r(take.global_rotations[:, j])]


def line(skeleton: Skeleton, start: str, end: str) -> np.ndarray:
    """Direction at rest from one joint to another."""
    places = skeleton.rest_global_positions
    way = places[skeleton.index(end)] - places[skeleton.index(start)]
    return way / np.linalg.norm(way)


def twist(turn: Rotation, axis: np.ndarray) -> tuple[float, float]:
    """Degrees of one turn about ``axis``: what is left after the smallest swing that brings the axis where the turn does; and of the
    swing."""
    to = turn.apply(axis)
    swing = Rotation.from_rotvec(np.cross(axis, to) / max(np.linalg.norm(np.cross(axis, to)), 1e-15) * np.arccos(np.clip(axis @ to, -1, 1)))
    rest = (swing.inv() * turn).as_rotvec(degrees=True)
    return float(rest @ axis), float(np.degrees(swing.magnitude()))


def roll(take: Take, joint: str, above: str, start: str, end: str) -> list[float]:
    """Degrees that a joint turns about a limb against the joint above, frame by frame without a jump, from near zero."""
    axis = line(take.skeleton, start, end)
    out: list[float] = []
    for one, other in zip(away(take, joint), away(take, above), strict=True):
        angle = twist(other.inv() * one, axis)[0]
        while out and angle - out[-1] > 180.0:
            angle -= 360.0
        while out and angle - out[-1] < -180.0:
            angle += 360.0
        out.append(angle)
    return out
