# SPDX-License-Identifier: GPL-3.0-or-later
"""One pose at a time is what a retarget of a take gives at that sample."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.retarget import RetargetOptions, build_table, retarget
from mocap_addon.retarget.build import bodies_of
from mocap_addon.retarget.moment import Moment, pose
from mocap_addon.retarget.travel import sole_thickness
from mocap_addon.rig import match
from tests.paths import SHARED, need
from tests.retarget.twist_bodies import BESIDE, mannequin, match_of_plain, performance

WALK = "cmu/asf_02_01_walk.bvh"


def made(take, target, **options):
    roles = match(take.skeleton), match(target)
    table = build_table(take.skeleton, roles[0], target, roles[1])
    bodies = bodies_of(table, take.skeleton, target)
    found = RetargetOptions(bodies=bodies, sole=sole_thickness(take, bodies), **options)
    return table, found


@pytest.mark.parametrize(
    ("source", "target"),
    [
        (WALK, "makehuman/walk1.bvh"),
        ("makehuman/zombieWalk1.bvh", WALK),
        ("misc_bvh/pymo_figure8_walk_xyz.bvh", WALK),
        (WALK, "xsens/mvn_bvh_walk_239hz_1200f.bvh"),
    ],
)
def test_a_pose_is_the_sample_of_a_retarget(source, target):
    take = formats.read(need(SHARED / source))[0].block(0, 40)
    skeleton = formats.read(need(SHARED / target))[0].skeleton
    table, options = made(take, skeleton)
    whole = retarget(take, table, skeleton, options)
    moment = Moment(table, take.skeleton, skeleton, options)
    assert moment.bones == whole.bones and moment.moving == whole.moving
    rows = [0, 7, take.frames - 1]
    at = [min(row, len(take.local_translations) - 1) for row in rows]
    found = pose([moment] * 3, [take.local_rotations[row] for row in rows], [take.local_translations[row] for row in at])
    for row, one in zip(rows, found, strict=True):
        same = np.abs(np.einsum("ki,ki->k", one.rotations, whole.rotations[row]))
        assert np.degrees(2.0 * np.arccos(np.clip(same, -1.0, 1.0))).max() < 1e-5
        assert np.abs(one.locations - whole.locations[row]).max() < 1e-9


@pytest.mark.parametrize("seed", [None, 5])
def test_twist_bones_share_the_roll_of_one_pose_too(seed):
    take = performance(30)
    skeletons = [mannequin(seed), mannequin(11)]
    roles = match_of_plain(take.skeleton)
    moments, wholes = [], []
    for skeleton in skeletons:  # two characters of one shape are worked on together
        table = build_table(take.skeleton, roles, skeleton, match(skeleton))
        table = table.with_row(replace(table.row("calf_twist_01_l"), correction=(3.0, 0.0, 20.0)))
        bodies = bodies_of(table, take.skeleton, skeleton)
        options = RetargetOptions(bodies=bodies, sole=sole_thickness(take, bodies))
        wholes.append(retarget(take, table, skeleton, options))
        moments.append(Moment(table, take.skeleton, skeleton, options))
    assert moments[0].shape == moments[1].shape and moments[0].bones == wholes[0].bones
    assert {skeletons[0].index(f"{name}_l") for name in BESIDE} <= set(moments[0].bones)
    for f in (3, 12, 29):
        found = pose(moments, [take.local_rotations[f]] * 2, [take.local_translations[0]] * 2)
        for one, whole in zip(found, wholes, strict=True):
            assert np.abs(np.abs(np.einsum("ki,ki->k", one.rotations, whole.rotations[f])) - 1.0).max() < 1e-12


def test_performers_of_different_tables_side_by_side():
    takes = [formats.read(need(SHARED / name))[0].block(0, 3) for name in (WALK, "makehuman/zombieWalk1.bvh", WALK)]
    skeleton = formats.read(need(SHARED / "makehuman/walk1.bvh"))[0].skeleton
    moments, wanted = [], []
    for take in takes:
        table, options = made(take, skeleton, travel=0.5)
        moments.append(Moment(table, take.skeleton, skeleton, options))
        wanted.append(retarget(take, table, skeleton, options))
    found = pose(
        moments, [t.local_rotations[1] for t in takes], [t.local_translations[min(1, len(t.local_translations) - 1)] for t in takes]
    )
    for one, whole in zip(found, wanted, strict=True):
        assert np.abs(np.abs(np.einsum("ki,ki->k", one.rotations, whole.rotations[1])) - 1.0).max() < 1e-12
        assert np.abs(one.locations - whole.locations[1]).max() < 1e-9
