# SPDX-License-Identifier: GPL-3.0-or-later
"""Corrections made from poses: whatever pose a person makes, the retarget must give exactly that pose."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap_addon import formats, rig
from mocap_addon.motion import kinematics, quat
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.retarget import RetargetOptions, build_table, reference, retarget
from mocap_addon.retarget.build import bodies_of
from mocap_addon.retarget.transfer import reference_pose
from tests.paths import SHARED, need

CLOSE = 0.01
"""Degrees."""


def turned_by(rng: np.random.Generator, count: int, degrees: float) -> np.ndarray:
    """(count, 4): rotations by up to ``degrees`` about any axis."""
    vectors = rng.normal(size=(count, 3))
    vectors *= np.radians(rng.uniform(0.0, degrees, count) / np.linalg.norm(vectors, axis=1))[:, None]
    return Rotation.from_rotvec(vectors).as_quat()[:, [3, 0, 1, 2]]


def apart(a: np.ndarray, b: np.ndarray) -> float:
    """Largest angle in degrees, by SciPy."""
    a, b = (Rotation.from_quat(np.asarray(q)[:, [1, 2, 3, 0]]) for q in (a, b))
    return float(np.degrees((a * b.inv()).magnitude()).max())


def posed(skeleton: Skeleton, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Global rotations and places of a skeleton whose bones are turned by ``basis (J, 4)``."""
    local = quat.mul(skeleton.rest_rotations, basis)[None]
    rotations, positions = kinematics.forward(local, skeleton.rest_translations[None], skeleton.parents)
    return rotations[0], positions[0]


@pytest.fixture(scope="module", params=["makehuman/walk1.bvh", "cmu/asf_02_01_walk.bvh"])
def pair(request):
    """A take, and another person's skeleton as the character: fingers, split limbs and all."""
    take = formats.read(need(SHARED / request.param))[0]
    target = formats.read(need(SHARED / "makehuman" / "dance1.bvh"))[0].skeleton
    roles = rig.match(take.skeleton), rig.match(target)
    table = build_table(take.skeleton, roles[0], target, roles[1])
    return take, target, table, bodies_of(table, take.skeleton, target, roles=roles)


def of_rows(table, target, rotations):
    return rotations[[target.index(row.target) for row in table.rows]]


def retargeted(take, table, target, bodies):
    return retarget(take, table, target, RetargetOptions(bodies=bodies, sole=0.0)).to_take(target).global_rotations


def test_the_reference_pose_gives_the_pose_that_was_made(pair):
    take, target, table, bodies = pair
    rng = np.random.default_rng(3)
    basis = turned_by(rng, len(target), 50.0)
    following = {row.target for row in table.rows}
    basis[[j for j, name in enumerate(target.names) if name not in following]] = quat.IDENTITY
    wanted, _ = posed(target, basis)
    made = reference.corrected_to_pose(table, target, bodies, wanted)
    got = retargeted(reference.reference_take(take, None), made, target, bodies)[0]
    # in character axes: the take's reference faces -Y, whichever way the character is built
    facing = quat.mul(bodies.target.turn, wanted)
    assert apart(of_rows(table, target, got), of_rows(table, target, facing)) < CLOSE
    assert (
        apart(
            of_rows(table, target, retargeted(reference.reference_take(take, None), table, target, bodies)[0]),
            of_rows(table, target, facing),
        )
        > 10.0
    )
    again = reference.corrected_to_pose(made, target, bodies, wanted)
    assert again == made  # nothing was changed, so no number changes
    assert apart(reference.standing(made, target, bodies), of_rows(table, target, wanted)) < CLOSE


def test_only_what_was_turned_gets_a_correction(pair):
    _take, target, table, bodies = pair
    head = next(row.target for row in table.rows if row.role == "head")
    shown = reference.standing(table, target, bodies)
    rotations = target.rest_global_rotations.copy()
    for row, q in zip(table.rows, shown, strict=True):
        rotations[target.index(row.target)] = q
    rotations[target.index(head)] = quat.mul(quat.from_axis_angle((0.0, 0.0, 1.0), np.radians(20.0)), rotations[target.index(head)])
    made = reference.corrected_to_pose(table, target, bodies, rotations)
    changed = [row.target for row, old in zip(made.rows, table.rows, strict=True) if row.correction != old.correction]
    assert changed == [head]
    assert np.degrees(np.linalg.norm(Rotation.from_euler("XYZ", made.row(head).correction, degrees=True).as_rotvec())) == pytest.approx(
        20.0, abs=1e-3
    )


def test_a_frame_of_the_take_gives_the_pose_that_was_made(pair):
    take, target, table, bodies = pair
    rng = np.random.default_rng(5)
    sample = take.block(take.frames // 3, take.frames // 3 + 1)
    shown = retarget(sample, table, target, RetargetOptions(bodies=bodies, sole=0.0)).to_take(target)
    basis = quat.mul(quat.inv(target.rest_rotations), shown.local_rotations[0])
    rows = [target.index(row.target) for row in table.rows]
    for j in rows:
        if target.parents[j] >= 0:
            basis[j] = quat.mul(basis[j], turned_by(rng, 1, 25.0)[0])
    wanted, _ = posed(target, basis)
    made = reference.corrected_to_pose(table, target, bodies, wanted, sample=sample)
    assert apart(retargeted(sample, made, target, bodies)[0][rows], wanted[rows]) < CLOSE


def test_the_character_may_face_another_way(pair):
    """The take walks one way, the character was posed where it stands: only the pose counts."""
    take, target, table, bodies = pair
    sample = take.block(take.frames // 2, take.frames // 2 + 1)
    shown = retarget(sample, table, target, RetargetOptions(bodies=bodies, sole=0.0)).to_take(target)
    rows = [target.index(row.target) for row in table.rows]
    turn = quat.from_axis_angle((0.0, 0.0, 1.0), np.radians(130.0))
    wanted = quat.mul(turn, shown.global_rotations[0])
    made = reference.corrected_to_pose(table, target, bodies, wanted, sample=sample)
    got = retargeted(sample, made, target, bodies)[0]
    # a common turn is left, the same for all bones; what each bone does against the hips is exact
    hips = target.index(next(row.target for row in table.rows if row.role == "hips"))
    against = [quat.mul(quat.inv(q[hips]), q[rows]) for q in (got, wanted)]
    assert apart(*against) < CLOSE
    assert made.row(target.names[hips]).correction == (0.0, 0.0, 0.0)


def test_the_reference_may_be_a_frame(pair):
    take, target, table, _ = pair
    frame = take.frames // 2
    bodies = bodies_of(table, take.skeleton, target, reference=reference_pose(take, frame))
    wanted, _ = posed(
        target, np.where(np.arange(len(target))[:, None] % 2, turned_by(np.random.default_rng(1), len(target), 30.0), quat.IDENTITY)
    )
    made = reference.corrected_to_pose(table, target, bodies, wanted)
    got = retargeted(reference.reference_take(take, frame), made, target, bodies)[0]
    assert apart(of_rows(table, target, got), of_rows(table, target, quat.mul(bodies.target.turn, wanted))) < CLOSE


def test_an_empty_table_stays_empty(pair):
    _take, target, table, bodies = pair
    empty = replace(table, rows=())
    assert reference.corrected_to_pose(empty, target, bodies, target.rest_global_rotations) == empty
