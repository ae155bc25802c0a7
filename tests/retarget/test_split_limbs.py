# SPDX-License-Identifier: GPL-3.0-or-later
"""Limbs that a rig splits for skinning, onto limbs that are not. Truth: the anatomy that the motion was made from.

An arm is made of a swing and a twist of the upper arm, a flexion about the elbow's own hinge, and a pronation of the forearm. Splitting
rigs spread it over two links each, as Daz does (bend, then twist). A limb in one piece must bend at the elbow and the knee about the hinge
alone, and its hand and foot must stand as the source's.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import Take
from mocap_addon.retarget import build_table, retarget
from mocap_addon.rig.roles import RoleMap

from .bodies import PLACES, body, q, r, random_orientations
from .walker import apart

FRAMES = 60
SPLIT = {"UpperArm": "LowerArm", "LowerArm": "Hand", "UpperLeg": "LowerLeg", "LowerLeg": "Foot"}


def turned(axis: str, degrees: np.ndarray) -> Rotation:
    return Rotation.from_euler(axis, np.asarray(degrees)[:, None], degrees=True)


def along(joint: str, tip: str, degrees: np.ndarray) -> Rotation:
    """Twists about a bone's own length."""
    axis = np.subtract(PLACES[tip][2], PLACES[joint][2])
    return Rotation.from_rotvec(np.radians(np.asarray(degrees))[:, None] * axis / np.linalg.norm(axis))


def anatomy() -> dict[str, Rotation]:
    """Turn away from the T-pose of every joint of the unsplit body; ``.../bend`` and ``.../twist`` are the links of a split one."""
    t = np.linspace(0.0, 6.0, FRAMES)
    still = turned("z", 0.0 * t)
    out = {name: still for name in PLACES}
    for side, sign in (("left", 1.0), ("right", -1.0)):
        swing = turned("y", sign * 50.0 * np.sin(t)) * turned("z", sign * 35.0 * np.cos(0.7 * t))
        upper = swing * turned("x", 60.0 * np.sin(1.3 * t + sign))
        lower = upper * turned("z", -sign * (70.0 + 50.0 * np.sin(0.9 * t)))  # the arm lies along x: the elbow bends about the vertical
        hand = lower * turned("x", 70.0 * np.cos(1.1 * t))
        out |= {f"{side}UpperArm/bend": swing, f"{side}UpperArm": upper, f"{side}LowerArm": lower, f"{side}LowerArm/twist": hand}
        grip = hand * turned("y", 20.0 * np.sin(t))
        out |= {f"{side}{name}": grip for name in ("Hand", "Index", "Index2", "Index3", "Little", "Little2", "Little3")}
        kick = turned("x", -30.0 * np.sin(t + sign)) * turned("y", sign * 10.0 * np.cos(t))
        thigh = kick * along(f"{side}UpperLeg", f"{side}LowerLeg", 40.0 * np.sin(1.7 * t))
        shin = thigh * turned("x", 45.0 + 40.0 * np.sin(0.8 * t))  # the leg lies in the plane of y and z: the knee bends about x
        foot = shin * along(f"{side}LowerLeg", f"{side}Foot", 15.0 * np.sin(t))
        out |= {f"{side}UpperLeg/bend": kick, f"{side}UpperLeg": thigh, f"{side}LowerLeg": shin, f"{side}LowerLeg/twist": foot}
        out |= {f"{side}Foot": foot, f"{side}Toes": foot}
    return out


def split_body(frames: dict[str, Rotation]) -> tuple[Skeleton, RoleMap, dict[str, str]]:
    """The body with two links for every long bone; which turn of :func:`anatomy` each joint has."""
    whole, roles = body()
    names: list[str] = []
    turns: dict[str, str] = {}
    above: dict[str, str | None] = {}
    places: dict[str, np.ndarray] = {}
    for name in whole.names:
        parent = PLACES[name][1]
        above[name] = parent if parent is None or parent[4:].removeprefix("t") not in SPLIT else f"{parent} 2"
        names.append(name)
        places[name] = np.array(PLACES[name][2])
        part = name.removeprefix("left").removeprefix("right")
        side = name[: len(name) - len(part)]
        turns[name] = name
        if part in SPLIT:
            second = f"{name} 2"
            names.append(second)
            above[second], places[second] = name, 0.5 * (places[name] + np.array(PLACES[side + SPLIT[part]][2]))
            first_has, second_has = (f"{name}/bend", name) if part.startswith("Upper") else (name, f"{name}/twist")
            turns[name], turns[second] = first_has, second_has
    parents = [-1 if above[n] is None else names.index(above[n]) for n in names]
    glob = [frames.get(n, Rotation.identity()) for n in names]
    local_r = [q(g if p < 0 else glob[p].inv() * g) for g, p in zip(glob, parents, strict=True)]
    local_t = [places[n] if p < 0 else glob[p].inv().apply(places[n] - places[names[p]]) for n, p in zip(names, parents, strict=True)]
    skeleton = Skeleton(tuple(names), np.array(parents), np.array(local_t), np.array(local_r))
    found = {role: tuple(names.index(whole.names[j]) for j in joints) for role, joints in roles.joints.items()}
    return skeleton, RoleMap(found, family="test"), turns


def moved(skeleton: Skeleton, turns: dict[str, str], frames: dict[str, Rotation]) -> Take:
    """The anatomy on a skeleton."""
    truth = anatomy()
    glob = {name: truth[turns[name]] * frames.get(name, Rotation.identity()) for name in skeleton.names}
    local = np.empty((FRAMES, len(skeleton), 4))
    for j, name in enumerate(skeleton.names):
        p = int(skeleton.parents[j])
        local[:, j] = q(glob[name] if p < 0 else glob[skeleton.names[p]].inv() * glob[name])
    return Take("split", skeleton, np.arange(FRAMES) / 30.0, local, skeleton.rest_translations[None])


@pytest.mark.parametrize("seed", [None, 5])
def test_elbow_and_knee_of_an_unsplit_limb_bend_about_their_hinge_alone(seed: int | None) -> None:
    frames = {} if seed is None else random_orientations(seed)
    frames |= {f"{name} 2": turn for name, turn in list(frames.items())[::-1]}
    skeleton, roles, turns = split_body(frames)
    take = moved(skeleton, turns, frames)
    rest = random_orientations(11)
    target, target_roles = body(orientations=rest)
    table = build_table(skeleton, roles, target, target_roles)
    split = {row.role for row in table.rows if row.rule == "chord"}
    assert {f"{side}{part}" for side in ("left", "right") for part in SPLIT} <= split
    got = retarget(take, table, target).to_take(target)
    turn = {name: r(got.global_rotations[:, j]) * rest[name].inv() for j, name in enumerate(target.names)}
    truth = anatomy()
    for side in ("left", "right"):
        for near, far, hinge in (("UpperArm", "LowerArm", 2), ("UpperLeg", "LowerLeg", 0)):
            bend = (turn[f"{side}{near}"].inv() * turn[f"{side}{far}"]).as_rotvec(degrees=True)
            assert np.abs(np.delete(bend, hinge, axis=1)).max() < 1e-6, (side, near)
            assert np.ptp(bend[:, hinge]) > 60.0
        for part in ("UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot"):
            assert apart(q(turn[f"{side}{part}"]), q(truth[f"{side}{part}"])).max() < 1e-5, (side, part)


def test_a_split_limb_takes_the_turn_of_an_unsplit_one_before_its_hinge() -> None:
    """The other way round: the last link, on which the hinge hangs, has all of the twist."""
    source, source_roles = body()
    take = moved(source, {name: name for name in source.names}, {})
    skeleton, roles, _ = split_body({})
    got = retarget(take, build_table(source, source_roles, skeleton, roles), skeleton).to_take(skeleton)
    truth = anatomy()
    for side in ("left", "right"):
        for part in SPLIT:
            for name in (f"{side}{part}", f"{side}{part} 2"):
                assert apart(got.global_rotations[:, skeleton.names.index(name)], q(truth[f"{side}{part}"])).max() < 1e-5, name


def test_two_rigs_of_one_make_go_link_by_link() -> None:
    skeleton, roles, turns = split_body({})
    take = moved(skeleton, turns, {})
    got = retarget(take, build_table(skeleton, roles, skeleton, roles), skeleton).to_take(skeleton)
    assert apart(got.global_rotations, take.global_rotations).max() < 1e-5
