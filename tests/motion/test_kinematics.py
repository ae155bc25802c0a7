# SPDX-License-Identifier: GPL-3.0-or-later
"""Forward kinematics against a chain of SciPy transforms, and its inverse."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mocap_addon.motion import kinematics

from .strategies import quaternions, same_rotation, scipy, skeletons, vectors, wxyz


@st.composite
def poses(draw: st.DrawFn, frames: int = 3):
    s = draw(skeletons())
    return s.parents, draw(quaternions((frames, len(s)))), draw(vectors((frames, len(s), 3)))


def test_a_bent_elbow_by_hand():
    half = np.sqrt(0.5)
    rotations = np.array([[1, 0, 0, 0], [half, 0, 0, half], [1, 0, 0, 0]], dtype=float)
    places = np.array([[0, 0, 1], [0.3, 0, 0], [0.25, 0, 0]])
    r, p = kinematics.forward(rotations, places, np.array([-1, 0, 1]))
    assert np.allclose(p, [[0, 0, 1], [0.3, 0, 1], [0.3, 0.25, 1]])
    assert np.allclose(r[2], [half, 0, 0, half])


@given(poses())
def test_forward_equals_a_chain_of_scipy_transforms(pose):
    parents, rotations, places = pose
    r, p = kinematics.forward(rotations, places, parents)
    for j, parent in enumerate(parents.tolist()):
        here, place = scipy(rotations[:, j]), places[:, j]
        while parent >= 0:
            place = places[:, parent] + scipy(rotations[:, parent]).apply(place)
            here = scipy(rotations[:, parent]) * here
            parent = int(parents[parent])
        assert same_rotation(r[:, j], wxyz(here))
        assert np.allclose(p[:, j], place, atol=1e-12)


@given(poses())
def test_inverse_undoes_forward(pose):
    parents, rotations, places = pose
    back_r, back_p = kinematics.inverse(*kinematics.forward(rotations, places, parents), parents)
    assert np.allclose(back_r, rotations, atol=1e-13)
    assert np.allclose(back_p, places, atol=1e-12)


@given(poses())
def test_bones_keep_their_length(pose):
    parents, rotations, places = pose
    _, p = kinematics.forward(rotations, places, parents)
    child = parents >= 0
    length = np.linalg.norm(p[:, child] - p[:, parents[child]], axis=-1)
    assert np.allclose(length, np.linalg.norm(places[:, child], axis=-1), atol=1e-12)


@given(poses(), st.data())
def test_some_joints_alone(pose, data):
    parents, rotations, _ = pose
    wanted = data.draw(st.sets(st.integers(0, len(parents) - 1)))
    some = kinematics.global_rotations(rotations, parents, wanted)
    everything = kinematics.global_rotations(rotations, parents)
    above = set(wanted)
    for j in wanted:
        while parents[j] >= 0:
            j = int(parents[j])
            above.add(j)
    for j in range(len(parents)):
        assert np.array_equal(some[:, j], everything[:, j]) if j in above else np.isnan(some[:, j]).all()


def test_one_row_of_places_serves_every_frame():
    parents = np.array([-1, 0])
    rotations = np.tile([1.0, 0, 0, 0], (4, 2, 1))
    places = np.array([[[0, 0, 1], [1, 0, 0]]], dtype=float)
    assert np.allclose(kinematics.global_positions(rotations, places, parents), np.tile([[0, 0, 1], [1, 0, 1]], (4, 1, 1)))


def test_no_frames_and_no_joints():
    r, p = kinematics.forward(np.zeros((0, 2, 4)), np.zeros((0, 2, 3)), np.array([-1, 0]))
    assert r.shape == (0, 2, 4) and p.shape == (0, 2, 3)
    r, p = kinematics.forward(np.zeros((3, 0, 4)), np.zeros((3, 0, 3)), np.zeros(0, dtype=int))
    assert r.shape == (3, 0, 4) and p.shape == (3, 0, 3)


@given(poses())
def test_a_few_poses_are_as_they_are_among_many(pose):
    """A few are worked on depth by depth, many joint by joint: to the last bit the same, also where only some joints are wanted."""
    parents, rotations, places = pose
    many_r, many_p = np.repeat(rotations, kinematics.FEW, axis=0), np.repeat(places, kinematics.FEW, axis=0)
    for joints in (None, [len(parents) - 1]):
        r, large = (kinematics.global_rotations(local, parents, joints) for local in (rotations, many_r))
        assert np.array_equal(r, large[:: kinematics.FEW], equal_nan=True)
        assert np.isfinite(r[:, -1]).all()
        p, large = (kinematics.global_positions(*local, parents, joints) for local in ((r, places), (large, many_p)))
        assert np.array_equal(p, large[:: kinematics.FEW], equal_nan=True)
