# SPDX-License-Identifier: GPL-3.0-or-later
"""Computing the table: alignment, chains, residuals."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.spatial.transform import Rotation, Slerp

from mocap_addon.motion import quat
from mocap_addon.retarget import build_table, retarget
from mocap_addon.retarget.align import swing
from mocap_addon.retarget.chains import middles

from .bodies import PLACES, a_pose, body, q, r, random_orientations, random_take


def unit(v):
    return np.asarray(v) / np.linalg.norm(v)


def test_only_limbs_are_aligned():
    source, roles = body()
    target, target_roles = body(a_pose(45), orientations=random_orientations(1))
    table = build_table(source, roles, target, target_roles)
    for row in table.rows:
        turned = np.linalg.norm(row.alignment)
        if any(part in row.role for part in ("Arm", "Hand", "Index", "Little")):
            assert turned == pytest.approx(45.0, abs=1e-6), row
        else:
            assert turned == pytest.approx(0.0, abs=1e-6), row


def test_residual_is_zero_and_follows_the_correction():
    from dataclasses import replace

    from mocap_addon.retarget import measured

    source, roles = body()
    target, target_roles = body(a_pose(45))
    table = build_table(source, roles, target, target_roles)
    assert max(row.residual for row in table.rows if not np.isnan(row.residual)) < 1e-6
    edited = table.with_row(replace(table.row("leftUpperArm"), correction=(0.0, 15.0, 0.0)))
    assert measured(edited, source, target).row("leftUpperArm").residual == pytest.approx(15.0, abs=1e-6)


def test_hinge_axes_of_bent_elbows_are_compared():
    places = a_pose(0)
    bent = dict(places)
    turn = Rotation.from_euler("z", -30, degrees=True)  # left forearm forward
    for name in ("leftHand", "leftIndex", "leftIndex2", "leftIndex3", "leftLittle", "leftLittle2", "leftLittle3"):
        bent[name] = places["leftLowerArm"] + turn.apply(places[name] - places["leftLowerArm"])
    source, roles = body(bent)
    target, target_roles = body(bent)
    table = build_table(source, roles, target, target_roles)
    assert table.row("leftLowerArm").hinge == pytest.approx(0.0, abs=1e-6)
    assert np.isnan(table.row("rightLowerArm").hinge)


@pytest.mark.parametrize("angle", [10.0, 149.0, 155.0, 179.9, 180.0])
def test_wide_swings_stay_in_the_frontal_plane(angle):
    """An arm held up against an arm hanging down must not turn through the front or the back."""
    up = np.array([0.05, 0.0, 1.0]) / np.hypot(0.05, 1.0)
    wanted = Rotation.from_euler("y", angle, degrees=True).apply(up)
    turn = swing(up, wanted)
    assert np.allclose(quat.rotate(turn, up), wanted, atol=1e-9)
    axis = r(turn).as_rotvec()[0]
    assert abs(unit(axis)[1]) > 0.999


def test_feet_take_the_heading_only():
    places = {name: np.array(place) for name, (_, _, place) in PLACES.items()}
    places["leftToes"] = places["leftFoot"] + Rotation.from_euler("z", 25, degrees=True).apply(places["leftToes"] - places["leftFoot"])
    source, roles = body(places)
    target, target_roles = body()
    row = build_table(source, roles, target, target_roles).row("leftFoot")
    assert row.alignment == pytest.approx((0.0, 0.0, 25.0), abs=1e-6)
    assert row.residual == pytest.approx(0.0, abs=1e-6)


def test_palms_are_laid_onto_each_other_only_with_fingers_on_both_sides():
    places = {name: np.array(place) for name, (_, _, place) in PLACES.items()}
    for name in places:
        if name.startswith("leftIndex") or name.startswith("leftLittle"):
            offset = places[name] - places["leftHand"]
            places[name] = places["leftHand"] + Rotation.from_euler("x", 40, degrees=True).apply(offset)
    source, roles = body(places)
    target, target_roles = body()
    row = build_table(source, roles, target, target_roles).row("leftHand")
    assert row.alignment == pytest.approx((40.0, 0.0, 0.0), abs=1e-6)
    fingerless, fingerless_roles = body(without=tuple(n for n in PLACES if "Index" in n or "Little" in n))
    row = build_table(source, roles, fingerless, fingerless_roles).row("leftHand")
    assert row.alignment == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)


def test_three_links_onto_two_follow_the_slerp_at_their_middles():
    source, roles = body()
    target, target_roles = body(without=("spine2",), orientations=random_orientations(4))
    take = random_take(source, frames=9)
    out = retarget(take, build_table(source, roles, target, target_roles), target).to_take(target)
    # scalar transcription: links' middles along the arc from spine1 to the neck, slerp of the neighbours' deltas
    place = {name: np.array(p) for name, (_, _, p) in PLACES.items()}
    ends = [place[n] for n in ("spine1", "spine2", "spine3", "neck")]
    lengths = [np.linalg.norm(b - a) for a, b in pairwise(ends)]
    have = np.array([lengths[0] / 2, lengths[0] + lengths[1] / 2, lengths[0] + lengths[1] + lengths[2] / 2]) / sum(lengths)
    two = [np.linalg.norm(place["spine3"] - place["spine1"]), lengths[2]]
    for name, u in (("spine1", two[0] / 2 / sum(two)), ("spine3", (two[0] + two[1] / 2) / sum(two))):
        for f in range(take.frames):
            deltas = r(take.global_rotations[f, [source.index(n) for n in ("spine1", "spine2", "spine3")]])
            wanted = Slerp(have, deltas)(np.clip(u, have[0], have[-1])) * r(target.rest_global_rotations[target.index(name)])
            assert quat.angle(q(wanted), out.global_rotations[f, target.index(name)]).max() < 1e-5


def test_one_link_for_three_aims_along_the_chord():
    source, roles = body()
    target, target_roles = body(without=("spine2", "spine3"), orientations=random_orientations(4))
    take = random_take(source, frames=9)
    out = retarget(take, build_table(source, roles, target, target_roles), target).to_take(target)
    chord = take.global_positions[:, source.index("neck")] - take.global_positions[:, source.index("spine1")]
    bone = out.global_positions[:, target.index("neck")] - out.global_positions[:, target.index("spine1")]
    cosines = np.einsum("fc,fc->f", chord, bone) / np.linalg.norm(chord, axis=1) / np.linalg.norm(bone, axis=1)
    assert np.degrees(np.arccos(np.clip(cosines, -1, 1))).max() < 1e-5
    # clavicles take their own source's turn, not the link's
    j, k = source.index("leftShoulder"), target.index("leftShoulder")
    wanted = r(take.global_rotations[:, j]) * r(np.broadcast_to(target.rest_global_rotations[k], (take.frames, 4)))
    assert quat.angle(q(wanted), out.global_rotations[:, k]).max() < 1e-7


def test_middles_of_a_chain():
    source, _ = body()
    spine = tuple(source.index(n) for n in ("spine1", "spine2", "spine3"))
    at = middles(source, spine)
    assert np.all(np.diff(at) > 0) and at[0] > 0 and at[-1] < 1


def test_a_split_limb_onto_a_whole_one_aims_at_the_joint():
    """MakeHuman splits upper arms and legs: the whole bone must aim where the two links together lead."""
    from dataclasses import replace as replaced

    source, roles = body()
    arm, elbow = source.index("leftUpperArm"), source.index("leftLowerArm")
    names = (*source.names[:elbow], "leftUpperArm02", *source.names[elbow:])
    parents = [int(p) + (p >= elbow) for p in source.parents]
    parents.insert(elbow, arm)
    parents[elbow + 1] = elbow
    half = source.rest_translations[elbow] / 2
    translations = np.insert(source.rest_translations, elbow, half, axis=0)
    translations[elbow + 1] = half
    split = replaced(
        source, names=names, parents=np.array(parents), rest_translations=translations, rest_rotations=np.zeros(0), ends=np.zeros(0)
    )
    split_roles = replaced(roles, joints={r: tuple(j + (j >= elbow) for j in js) for r, js in roles.joints.items()})
    take = random_take(split, frames=7)
    out = retarget(take, build_table(split, split_roles, source, roles), source).to_take(source)
    a = take.global_positions[:, elbow + 1] - take.global_positions[:, arm]
    b = out.global_positions[:, elbow] - out.global_positions[:, arm]
    cosine = np.einsum("fc,fc->f", a, b) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    assert np.degrees(np.arccos(np.clip(cosine, -1, 1))).max() < 1e-5
    # and onto itself it is still the identity
    back = retarget(take, build_table(split, split_roles, split, split_roles), split).to_take(split)
    assert np.abs(back.global_positions - take.global_positions).max() < 1e-12
