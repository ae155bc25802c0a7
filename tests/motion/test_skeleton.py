# SPDX-License-Identifier: GPL-3.0-or-later
"""Skeletons: what they refuse, and their rest pose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given

from mocap_addon.motion.errors import RigError
from mocap_addon.motion.skeleton import Skeleton

from .strategies import same_rotation, scipy, skeletons, wxyz

S = np.sqrt(0.5)


def arm() -> Skeleton:
    """Shoulder one metre up and a quarter turned about Z, elbow 0.3 along its X, hand 0.25 further; a second root beside them."""
    return Skeleton(
        ("shoulder", "elbow", "hand", "stick"),
        np.array([-1, 0, 1, -1]),
        np.array([[0, 0, 1], [0.3, 0, 0], [0.25, 0, 0], [5, 5, 5]]),
        np.array([[S, 0, 0, S], [1, 0, 0, 0], [1, 0, 0, 0], [1, 0, 0, 0]]),
        np.array([[0.3, 0, 0], [0.25, 0, 0], [0.1, 0, 0], [np.nan] * 3]),
    )


def test_rest_pose_by_hand():
    s = arm()
    assert np.allclose(s.rest_global_positions, [[0, 0, 1], [0, 0.3, 1], [0, 0.55, 1], [5, 5, 5]])
    assert np.allclose(s.rest_global_rotations[2], [S, 0, 0, S])
    assert np.allclose(s.rest_global_ends[:3], [[0, 0.3, 1], [0, 0.55, 1], [0, 0.65, 1]])
    assert np.isnan(s.rest_global_ends[3]).all()


def test_hierarchy():
    s = arm()
    assert len(s) == 4 and s.roots == (0, 3) and s.children == ((1,), (2,), (), ())
    assert s.ancestors(2) == [1, 0] and s.ancestors(0) == []
    assert s.is_below(2, 0) and s.is_below(2, 2) and not s.is_below(0, 2) and not s.is_below(3, 0)
    assert s.index("hand") == 2 and "hand" in s and "foot" not in s


@given(skeletons())
def test_rest_pose_equals_scipys_chain(s):
    turns, places = s.rest_rotations.copy(), s.rest_translations.copy()  # SciPy's older builds take no read-only arrays
    for j in range(len(s)):
        rotation, place = scipy(turns[j]), places[j]
        for p in s.ancestors(j):
            place = places[p] + scipy(turns[p]).apply(place)
            rotation = scipy(turns[p]) * rotation
        assert np.allclose(s.rest_global_positions[j], place, atol=1e-12)
        assert same_rotation(s.rest_global_rotations[j], wxyz(rotation))
        assert np.allclose(s.rest_global_ends[j], place + rotation.apply(s.ends[j].copy()), atol=1e-12)


def test_defaults():
    s = Skeleton(("a", "b"), np.array([-1, 0]), np.zeros((2, 3)))
    assert np.array_equal(s.rest_rotations, [[1, 0, 0, 0]] * 2) and np.isnan(s.ends).all()
    empty = Skeleton((), np.zeros(0), np.zeros((0, 3)))
    assert len(empty) == 0 and empty.roots == () and empty.rest_global_positions.shape == (0, 3)


@pytest.mark.parametrize(
    ("names", "parents", "translations", "says"),
    [
        (("a", "a"), [-1, 0], np.zeros((2, 3)), '"a"'),
        (("a", "b"), [1, -1], np.zeros((2, 3)), "before its parent"),
        (("a", "b"), [-1, 1], np.zeros((2, 3)), "before its parent"),
        (("a", "b"), [-1, -2], np.zeros((2, 3)), "before its parent"),
        (("a", "b"), [-1, 0], np.zeros((3, 3)), "(2, 3)"),
        (("a", "b"), [-1, 0, 1], np.zeros((2, 3)), "(2,)"),
    ],
)
def test_impossible_skeletons_are_refused_with_a_sentence(names, parents, translations, says):
    with pytest.raises(RigError) as error:
        Skeleton(names, np.array(parents), translations)
    assert says in str(error.value) and str(error.value).endswith(".")


def test_an_unknown_joint_is_named():
    with pytest.raises(RigError, match='"tail"'):
        arm().index("tail")


def test_a_skeleton_cannot_be_changed_by_accident():
    s = arm()
    given_arrays = (s.parents, s.rest_rotations, s.rest_translations, s.ends)
    for array in given_arrays:
        with pytest.raises(ValueError):
            array[0] = 0
    places, parents = np.zeros((2, 3)), np.array([-1, 0])
    copy = Skeleton(("a", "b"), parents, places)
    places[1], parents[1] = 7.0, -1
    assert copy.rest_translations[1].tolist() == [0, 0, 0] and copy.parents[1] == 0


def test_another_rest_pose_keeps_all_else():
    s = arm()
    turned = s.with_rest(np.tile([1.0, 0, 0, 0], (4, 1)))
    assert np.allclose(turned.rest_global_positions[:3], [[0, 0, 1], [0.3, 0, 1], [0.55, 0, 1]])
    assert np.allclose(s.rest_global_positions[2], [0, 0.55, 1])
    assert turned.names == s.names and np.array_equal(turned.ends[:3], s.ends[:3])
    moved = s.with_rest(s.rest_rotations, s.rest_translations * 2)
    assert np.allclose(moved.rest_global_positions[2], [0, 1.1, 2])


def test_other_names():
    s = arm().renamed(["a", "b", "c", "d"])
    assert s.names == ("a", "b", "c", "d") and s.index("c") == 2 and "hand" not in s
    with pytest.raises(RigError):
        arm().renamed(["a", "a", "c", "d"])
