# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding a reference pose: a walk on joint frames at random without a rest pose, carried onto the same body in its T-pose, is the walk."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mocap_addon.motion import quat
from mocap_addon.motion.take import Take
from mocap_addon.retarget import RetargetOptions, build_table, retarget
from mocap_addon.retarget.neutral import find_reference, is_body, reference_notes, source_reference
from mocap_addon.rig.roles import RoleMap

from .bodies import PLACES, a_pose, body, q, r, random_orientations
from .walker import apart, collapsed, walk

LIMBS = tuple(
    f"{side}{part}" for side in ("left", "right") for part in ("UpperArm", "LowerArm", "Hand", "UpperLeg", "LowerLeg", "Foot", "Toes")
)


def carried(take: Take, roles: RoleMap, reference) -> Take:
    """Onto the same body in its T-pose, every joint's frame along the world's axes."""
    plain, plain_roles = body(without=tuple(name for name in PLACES if name not in take.skeleton.names))
    table = build_table(take.skeleton, roles, plain, plain_roles, reference=reference)
    return retarget(take, table, plain, RetargetOptions(reference=reference)).to_take(plain)


def off(out: Take, truth: Take) -> dict[str, float]:
    """Greatest angle over the frames for every joint, degrees."""
    angles = apart(out.global_rotations, truth.global_rotations).max(axis=0)
    return dict(zip(out.skeleton.names, angles.tolist(), strict=True))


@given(seed=st.integers(0, 10_000), heading=st.floats(-180.0, 180.0), pronation=st.floats(0.0, 50.0))
@settings(max_examples=8, deadline=None)
def test_whatever_the_frames_of_the_joints(seed, heading, pronation):
    frames = random_orientations(seed)
    skeleton, roles = body(orientations=frames)
    take = collapsed(walk(skeleton, frames, seconds=4.0, heading=heading, pronation=pronation))
    found = find_reference(take, roles)
    assert found.how == "motion" and found.confidence > 0.8
    out = carried(take, roles, found.pose)
    plain, _ = body()
    truth = walk(plain, seconds=4.0, heading=heading, pronation=pronation)
    angles = off(out, truth)
    assert max(angles[name] for name in LIMBS) < 1.0, angles
    assert max(angles[name] for name in ("hips", "spine1", "spine2", "spine3", "neck")) < 2.0, angles
    assert angles["head"] < 8.0, angles  # it looks about while it walks; four seconds do not average that out
    assert np.abs(out.global_positions - truth.global_positions).max() < 0.01


def test_the_pose_that_is_found_is_a_t_pose():
    frames = random_orientations(4)
    skeleton, roles = body(orientations=frames)
    found = find_reference(collapsed(walk(skeleton, frames)), roles)
    expected = q(Rotation.concatenate([frames[name] for name in skeleton.names]))
    angles = dict(zip(skeleton.names, apart(found.pose.rotations, expected).tolist(), strict=True))
    # legs are put straight (the drawn ones bend at the knee by some degrees), and the head looked about
    named = {name: a for name, a in angles.items() if not any(part in name for part in ("Leg", "Index", "Little", "head"))}
    assert len(named) == 17 and max(named.values()) < 2.0, angles
    place = dict(zip(skeleton.names, found.pose.positions, strict=True))
    for name in ("leftHand", "rightFoot", "head", "leftToes"):
        assert np.abs(place[name] - PLACES[name][2]).max() < 0.03, name


@pytest.mark.parametrize("rate", [24.0, 120.0, 240.0])
def test_whatever_the_rate(rate):
    frames = random_orientations(9)
    skeleton, roles = body(orientations=frames)
    take = collapsed(walk(skeleton, frames, seconds=3.0, rate=rate))
    plain, _ = body()
    angles = off(carried(take, roles, find_reference(take, roles).pose), walk(plain, seconds=3.0, rate=rate))
    assert max(angles[name] for name in LIMBS) < 1.5, angles


@pytest.mark.parametrize(
    "without",
    [
        ("leftShoulder", "rightShoulder"),
        ("leftToes", "rightToes"),
        tuple(f"{side}{finger}{k}" for side in ("left", "right") for finger in ("Index", "Little") for k in ("", "2", "3")),
        ("spine2", "spine3", "neck"),
    ],
    ids=["no clavicles", "no toes", "no fingers", "one spine, no neck"],
)
def test_with_fewer_joints(without):
    frames = random_orientations(11)
    skeleton, roles = body(orientations=frames, without=without)
    take = collapsed(walk(skeleton, frames))
    plain, _ = body(without=without)
    angles = off(carried(take, roles, find_reference(take, roles).pose), walk(plain))
    limbs = [name for name in LIMBS if name in angles and not (name.endswith("Hand") and "leftIndex" in without)]
    # without toes nothing says exactly where the foot points, without fingers nothing which way the hand is bent
    assert max(angles[name] for name in limbs) < 2.0, angles
    if "leftIndex" in without:
        assert max(angles["leftHand"], angles["rightHand"]) < 10.0, angles


def test_a_frame_that_shows_a_t_pose_is_preferred():
    """Complaint 2: the rest is no body, and frame 0 is the T-pose."""
    frames = random_orientations(2)
    skeleton, roles = body(orientations=frames)
    take = walk(skeleton, frames, seconds=2.0)
    local, translations = take.local_rotations.copy(), take.local_translations.copy()
    local[0], translations[0] = skeleton.rest_rotations, skeleton.rest_translations
    take = collapsed(replace(take, local_rotations=local, local_translations=translations))
    found = find_reference(take, roles)
    assert (found.how, found.frame) == ("frame", 0)
    assert any("Frame 0" in note for note in found.notes)
    plain, _ = body()
    truth = walk(plain, seconds=2.0)
    out = carried(take, roles, found.pose)
    assert np.abs(out.global_positions[1:] - truth.global_positions[1:]).max() < 1e-9


def test_rests_that_are_bodies_are_left_alone():
    for places in (a_pose(0), a_pose(45), a_pose(85), a_pose(-80)):
        skeleton, roles = body(places, orientations=random_orientations(1))
        take = walk(skeleton, random_orientations(1), seconds=0.5)
        found = find_reference(take, roles)
        assert found.how == "rest" and found.confidence == 1.0 and not found.notes
        assert source_reference(take, None) is None or not found.notes
        assert np.array_equal(found.pose.rotations, skeleton.rest_global_rotations)
    assert not is_body(collapsed(take).skeleton, roles.joints)


def test_readers_word_for_it_costs_nothing():
    skeleton, _ = body()
    take = replace(walk(skeleton, seconds=1.0), facts={"rest": "a"})
    started = time.perf_counter()
    for _ in range(1000):
        assert source_reference(take, None) is None
        assert reference_notes(take, None) == ()
    assert (time.perf_counter() - started) / 1000 < 20e-6


def test_straight_arms_are_said_to_be_a_guess():
    frames = random_orientations(5)
    skeleton, roles = body(orientations=frames)
    take = collapsed(walk(skeleton, frames, elbows=0.0))
    found = find_reference(take, roles)
    assert found.sure["leftUpperArm"] < 0.5 < found.sure["leftUpperLeg"]
    assert any("left lower arm never bends" in note for note in found.notes)
    assert any(note.startswith("Look at") and "left upper arm" in note for note in found.notes)
    plain, _ = body()
    angles = off(carried(take, roles, found.pose), walk(plain, elbows=0.0))
    assert max(angles["leftUpperArm"], angles["rightUpperArm"]) < 15.0, angles  # still hanging the right way round


def test_lengths_only_in_the_positions():
    """Six channels at every joint and offsets of zero: bones are as long as the positions say."""
    frames = random_orientations(6)
    skeleton, roles = body(orientations=frames)
    take = collapsed(walk(skeleton, frames))
    bare = replace(take.skeleton, rest_translations=np.zeros((len(skeleton), 3)))
    take = replace(take, skeleton=bare)
    found = find_reference(take, roles)
    assert found.how == "motion"
    assert np.abs(found.pose.positions[skeleton.index("leftHand")] - PLACES["leftHand"][2]).max() < 0.03
    plain, _ = body()
    angles = off(carried(take, roles, found.pose), walk(plain))
    assert max(angles[name] for name in LIMBS) < 1.5, angles


def test_frames_that_are_no_numbers_are_left_out():
    frames = random_orientations(7)
    skeleton, roles = body(orientations=frames)
    take = collapsed(walk(skeleton, frames, seconds=2.0))
    local = take.local_rotations.copy()
    local[10:20, 3] = np.nan
    found = find_reference(replace(take, local_rotations=local), roles)
    assert found.how == "motion" and np.isfinite(found.pose.rotations).all() and np.isfinite(found.pose.positions).all()


@pytest.mark.parametrize("frames", [0, 1, 2])
def test_next_to_no_frames(frames):
    orientations = random_orientations(8)
    skeleton, roles = body(orientations=orientations)
    take = collapsed(walk(skeleton, orientations, seconds=1.0)).block(0, frames)
    found = find_reference(take, roles)
    assert found.notes and np.isfinite(found.pose.positions).all()
    assert (found.confidence == 0.0) == (frames == 0)


def test_long_takes_are_looked_at_in_parts():
    frames = random_orientations(3)
    skeleton, roles = body(orientations=frames)
    take = collapsed(walk(skeleton, frames, seconds=120.0, rate=60.0))
    assert take.frames > 7000
    started = time.perf_counter()
    found = find_reference(take, roles)
    assert time.perf_counter() - started < 5.0
    plain, _ = body()
    angles = off(carried(take.block(0, 300), roles, found.pose), walk(plain, seconds=5.0))
    assert max(angles[name] for name in LIMBS) < 1.0 and angles["head"] < 3.0, angles


def test_quarter_turns_are_recognised_and_exact():
    """A chin always on the chest, drawn shoulders: what the motion alone cannot tell is exact when the frames are quarter turns."""
    rng = np.random.default_rng(0)
    cube = Rotation.create_group("O")
    frames = {name: cube[int(k)] for name, k in zip(PLACES, rng.integers(0, 24, len(PLACES)), strict=True)}
    places = {name: np.array(place) for name, (_, _, place) in PLACES.items()}
    for side in ("left", "right"):
        places[f"{side}LowerLeg"][1] = places[f"{side}Foot"][1] = 0.0
    skeleton, roles = body(places, orientations=frames)
    take = walk(skeleton, frames)
    local = take.local_rotations.copy()
    head = skeleton.index("head")
    bowed = frames["head"].inv() * Rotation.from_euler("x", 20, degrees=True) * frames["head"]
    local[:, head] = q(r(local[:, head]) * bowed)
    found = find_reference(collapsed(replace(take, local_rotations=local)), roles)
    assert any("quarter turns" in note for note in found.notes)
    for name in ("hips", "spine2", "neck", "head", "leftShoulder", "leftUpperArm", "rightHand", "leftUpperLeg"):
        assert float(apart(found.pose.rotations[skeleton.index(name)], q(frames[name]))) < 1e-6, name


def test_frames_at_random_are_not_put_on_quarter_turns():
    for seed in range(20, 25):
        frames = random_orientations(seed)
        skeleton, roles = body(orientations=frames)
        assert not any("quarter turns" in note for note in find_reference(collapsed(walk(skeleton, frames)), roles).notes)


def test_a_known_skeleton_is_not_believed_against_the_feet():
    """Frames as in a known make, but another foot: its soles would be tipped by the wrong angle."""
    from mocap_addon.retarget.neutral.conventions import BANDAI_NAMCO

    axes = {name: BANDAI_NAMCO.rotation(PLACES[name][0]) for name in PLACES}
    frames = {name: r(turn)[0] for name, turn in axes.items() if turn is not None}
    skeleton, roles = body(orientations=frames)
    found = find_reference(collapsed(walk(skeleton, frames)), roles)
    assert found.how == "motion"
    plain, _ = body()
    angles = off(carried(collapsed(walk(skeleton, frames)), roles, found.pose), walk(plain))
    assert max(angles[f"{side}Foot"] for side in ("left", "right")) < 1.0, angles


def test_a_swimmer_never_stands():
    """The same motion lying on its front: limbs as well as ever, head and feet admitted to be guesses."""
    frames = random_orientations(12)
    skeleton, roles = body(orientations=frames)
    lying = q(Rotation.from_euler("x", 88, degrees=True))

    def lie(take: Take) -> Take:
        return take.rerooted(lambda turns: quat.mul(lying, turns), lambda v: v * [1.0, 1.0, 0.0] + [0.0, 0.0, 0.3], rest=False)

    take = lie(collapsed(walk(skeleton, frames)))
    found = find_reference(take, roles)
    assert any("Nobody stands upright" in note for note in found.notes)
    assert found.sure["leftFoot"] < 0.5
    plain, _ = body()
    angles = off(carried(take, roles, found.pose), lie(walk(plain)))
    assert max(angles[name] for name in LIMBS if "Foot" not in name and "Toes" not in name) < 1.0, angles
    assert angles["hips"] < 3.0 and angles["head"] < 12.0 and angles["leftFoot"] < 45.0, angles
