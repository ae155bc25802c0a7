# SPDX-License-Identifier: GPL-3.0-or-later
"""Quaternion arithmetic against SciPy and against truths that can be checked by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from mocap_addon.motion import quat

from .strategies import numbers, quaternions, same_rotation, scipy, vectors, wxyz

S = np.sqrt(0.5)
X, Y, Z = np.eye(3)


# -- product, inverse, rotation


def test_quarter_turns_by_hand():
    about_x, about_z = np.array([S, S, 0, 0]), np.array([S, 0, 0, S])
    assert np.allclose(quat.rotate(about_z, X), Y, atol=1e-15)
    assert np.allclose(quat.rotate(about_x, Y), Z, atol=1e-15)
    # The right factor acts first: X -> Y (about z) -> Z (about x).
    assert np.allclose(quat.rotate(quat.mul(about_x, about_z), X), Z, atol=1e-15)
    assert np.allclose(quat.mul(about_x, about_z), [0.5, 0.5, -0.5, 0.5], atol=1e-15)


def test_hamiltons_rules():
    one, i, j, k = np.eye(4)
    assert np.array_equal(quat.mul(i, j), k)
    assert np.array_equal(quat.mul(j, k), i)
    assert np.array_equal(quat.mul(k, i), j)
    assert np.array_equal(quat.mul(j, i), -k)
    for unit in (i, j, k):
        assert np.array_equal(quat.mul(unit, unit), -one)


@given(quaternions((5,)), quaternions((5,)), vectors((5, 3)))
def test_product_and_rotation_equal_scipys(a, b, v):
    assert same_rotation(quat.mul(a, b), wxyz(scipy(a) * scipy(b)))
    assert np.allclose(quat.rotate(a, v), scipy(a).apply(v), atol=1e-13)


@given(quaternions((4,)), quaternions((4,)), vectors((4, 3)))
def test_rotating_by_a_product_is_rotating_twice(a, b, v):
    assert np.allclose(quat.rotate(quat.mul(a, b), v), quat.rotate(a, quat.rotate(b, v)), atol=1e-13)


@given(quaternions((3,)))
def test_inverse_undoes(q):
    assert np.allclose(quat.mul(q, quat.inv(q)), quat.IDENTITY, atol=1e-15)
    assert np.allclose(quat.mul(quat.inv(q), q), quat.IDENTITY, atol=1e-15)


def test_few_rotations_are_many_rotations():
    """A handful takes another way than thousands; the sums are the same, to the last bit, in the layout that is promised."""
    rng = np.random.default_rng(3)
    a, b, v = quat.normalize(rng.normal(size=(200, 3, 4))), quat.normalize(rng.normal(size=(200, 3, 4))), rng.normal(size=(200, 3, 3))
    for n in (1, 2, 5):
        assert np.array_equal(quat.mul(a[:n], b[:n]), quat.mul(a, b)[:n])
        assert np.array_equal(quat.mul(a[:n], b[0, 0]), quat.mul(a, b[0, 0])[:n])
        assert np.array_equal(quat.rotate(a[:n], v[:n]), quat.rotate(a, v)[:n])
        assert np.array_equal(quat.rotate(a[0, 0], v[:n]), quat.rotate(a[0, 0], v)[:n])
        assert quat.mul(a[:n], b[:n]).flags.f_contiguous and quat.rotate(a[:n], v[:n]).flags.f_contiguous


def test_cross_products_are_numpys():
    rng = np.random.default_rng(4)
    u, v = rng.normal(size=(5, 1, 3)), rng.normal(size=(2, 3))
    assert np.allclose(quat.cross(u, v), np.cross(u, v), atol=1e-15)


def test_shapes_broadcast():
    many = np.tile([S, 0, S, 0], (7, 3, 1))
    one = np.array([S, S, 0, 0])
    assert quat.mul(many, one).shape == quat.mul(one, many).shape == (7, 3, 4)
    assert quat.mul(many, many[:, :1]).shape == (7, 3, 4)
    assert quat.rotate(one, np.zeros((7, 3, 3))).shape == (7, 3, 3)
    assert quat.rotate(many, X).shape == (7, 3, 3)
    assert quat.identity(5).shape == (5, 4)
    assert quat.identity((2, 3)).shape == (2, 3, 4)
    assert quat.identity().tolist() == [1, 0, 0, 0]


def test_results_are_component_major():
    many = np.tile([S, 0, S, 0], (70, 3, 1))
    for result in (quat.mul(many, many), quat.rotate(many, np.zeros((70, 3, 3)))):
        assert result[:, 1, 2].flags.c_contiguous


def test_the_shared_identity_cannot_be_changed():
    with pytest.raises(ValueError):
        quat.IDENTITY[0] = 2.0


def test_normalize():
    assert np.allclose(quat.normalize(np.array([[0.0, 3.0, 0.0, 4.0], [-2.0, 0, 0, 0]])), [[0, 0.6, 0, 0.8], [-1, 0, 0, 0]])
    assert np.isnan(quat.normalize(np.zeros(4))).all()
    assert np.isnan(quat.normalize(np.array([1.0, np.nan, 0, 0]))).all()


# -- rotation vectors and angles


def test_axis_angle_by_hand():
    assert np.allclose(quat.from_axis_angle(Z, np.pi / 2), [S, 0, 0, S])
    assert np.allclose(quat.from_axis_angle(Z, [0.0, np.pi]), [[1, 0, 0, 0], [0, 0, 0, 1]], atol=1e-16)
    assert np.allclose(quat.from_axis_angle(np.eye(3), np.pi), [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], atol=1e-16)


@given(vectors((4, 3), 3.0))
def test_exp_equals_scipys(v):
    assert same_rotation(quat.exp(v), wxyz(Rotation.from_rotvec(v)))


@given(quaternions((4,)))
def test_log_equals_scipys_and_exp_inverts_it(q):
    v = quat.log(q)
    assert np.all(np.linalg.norm(v, axis=-1) <= np.pi + 1e-15)
    assert same_rotation(quat.exp(v), q)
    theirs = scipy(q).as_rotvec()
    clear = np.linalg.norm(theirs, axis=-1) < np.pi - 1e-6  # at a half turn either direction is right
    assert np.allclose(v[clear], theirs[clear], atol=1e-12)


@pytest.mark.parametrize("size", [0.0, 1e-300, 1e-160, 1e-30, 1e-13, 1e-9, 1e-5])
def test_small_rotations_keep_all_their_digits(size):
    v = size * np.array([0.6, 0.0, -0.8])
    assert np.allclose(quat.log(quat.exp(v)), v, rtol=1e-15, atol=1e-200)
    assert quat.angle(quat.exp(v), quat.IDENTITY) == pytest.approx(size, rel=1e-12, abs=1e-160)


@given(quaternions((4,)), quaternions((4,)))
def test_angle_equals_scipys(a, b):
    assert np.allclose(quat.angle(a, b), (scipy(a).inv() * scipy(b)).magnitude(), atol=2e-8)
    assert np.allclose(quat.angle(a, b), quat.angle(-a, b), atol=1e-15)


def test_angle_by_hand():
    assert quat.angle(np.eye(4)[0], np.eye(4)[1]) == pytest.approx(np.pi, abs=1e-15)
    assert quat.angle(quat.IDENTITY, quat.from_axis_angle(Y, 3.0)) == pytest.approx(3.0, abs=1e-15)
    assert quat.angle(quat.IDENTITY, quat.from_axis_angle(Y, 4.0)) == pytest.approx(2 * np.pi - 4.0, abs=1e-15)


# -- slerp


@given(quaternions(), quaternions(), numbers(0.0, 1.0))
def test_slerp_equals_scipys(a, b, t):
    if abs(np.dot(a, b)) < 1e-6:
        return  # a half turn apart there are two shortest ways
    theirs = Slerp([0.0, 1.0], scipy(np.stack([a, b])))(t)
    assert same_rotation(quat.slerp(a, b, t), wxyz(theirs), 1e-8)


@given(quaternions((3,)), quaternions((3,)), numbers(0.0, 1.0))
def test_slerp_goes_at_even_speed_on_the_short_arc(a, b, t):
    whole = quat.angle(a, b)
    middle = quat.slerp(a, b, t)
    assert np.allclose(np.linalg.norm(middle, axis=-1), 1.0, atol=1e-15)
    assert np.allclose(quat.angle(a, middle), t * whole, atol=1e-7)
    assert np.allclose(quat.angle(middle, b), (1 - t) * whole, atol=1e-7)


@given(quaternions((3,)), quaternions((3,)))
def test_slerp_meets_both_ends(a, b):
    assert same_rotation(quat.slerp(a, b, 0.0), a, 1e-15)
    assert same_rotation(quat.slerp(a, b, 1.0), b, 1e-15)
    assert same_rotation(quat.slerp(a, -b, 0.3), quat.slerp(a, b, 0.3), 1e-12) or np.any(np.abs((a * b).sum(-1)) < 1e-9)


def test_slerp_of_nearly_equal_rotations_is_exact():
    a, b = quat.exp(np.array([0.0, 0.0, 1.0])), quat.exp(np.array([0.0, 0.0, 1.0 + 1e-9]))
    got = quat.log(quat.slerp(a, b, 0.25))
    assert got[2] - 1.0 == pytest.approx(0.25e-9, rel=1e-5)
    assert np.array_equal(quat.slerp(a, a, np.linspace(0, 1, 5)), np.tile(quat.normalize(a), (5, 1)))


# -- smallest rotation between directions


@given(vectors((4, 3)), vectors((4, 3)))
def test_between_turns_one_onto_the_other_by_the_least_angle(u, v):
    lu, lv = np.linalg.norm(u, axis=-1), np.linalg.norm(v, axis=-1)
    keep = (lu > 1e-3) & (lv > 1e-3)
    u, v, lu, lv = u[keep], v[keep], lu[keep], lv[keep]
    q = quat.between(u, v)
    assert np.allclose(np.linalg.norm(q, axis=-1), 1.0, atol=1e-14)
    assert np.allclose(quat.rotate(q, u / lu[:, None]), v / lv[:, None], atol=2e-8)
    angle = np.arctan2(np.linalg.norm(np.cross(u, v), axis=-1), (u * v).sum(-1))
    assert np.allclose(quat.angle(q, quat.IDENTITY), angle, atol=3e-8)


@pytest.mark.parametrize("u", [X, Y, Z, -X, [1.0, 2.0, 3.0], [1e-8, 1.0, 0.0], [1e6, 0, 0], [1e-6, 0, 0], [1.0, 1e-9, 0.0]])
@pytest.mark.parametrize("axis", [X, Y, Z, [0.0, 0.0, 5.0], [1.0, 1.0, 1.0]])
def test_opposite_directions_turn_by_half_a_turn_about_the_given_axis(u, axis):
    u = np.asarray(u, dtype=float)
    q = quat.between(u, -u, axis)
    assert np.all(np.isfinite(q))
    assert np.allclose(quat.rotate(q, u), -u, atol=1e-8 * np.linalg.norm(u))
    assert quat.angle(q, quat.IDENTITY) == pytest.approx(np.pi, abs=1e-7)
    across = np.asarray(axis) - u * (np.dot(axis, u) / np.dot(u, u))
    if np.linalg.norm(across) > 1e-3:
        assert abs(np.dot(q[1:], across / np.linalg.norm(across))) == pytest.approx(1.0, abs=1e-7)


@pytest.mark.parametrize("gap", [1e-3, 1e-5, 1e-7, 1e-8, 3e-9, 1e-10, 1e-14])
def test_nearly_opposite_directions(gap):
    u, v = X, np.array([-np.cos(gap), np.sin(gap), 0.0])
    assert np.allclose(quat.rotate(quat.between(u, v, Z), u), v, atol=3e-8)


def test_a_zero_direction_turns_nothing():
    assert np.array_equal(quat.between(np.zeros(3), X), quat.IDENTITY)
    assert np.array_equal(quat.between(X, np.zeros(3)), quat.IDENTITY)
    assert np.array_equal(quat.between(np.array([X, np.zeros(3)]), np.array([X, X])), np.tile(quat.IDENTITY, (2, 1)))


# -- swing and twist


@given(quaternions((4,)), vectors(size=1.0))
def test_swing_and_twist(q, axis):
    if np.linalg.norm(axis) < 1e-2:
        axis = X
    axis = axis / np.linalg.norm(axis)
    swing, twist = quat.swing_twist(q, axis)
    assert np.allclose(quat.mul(swing, twist), q, atol=1e-12)
    assert np.allclose(np.cross(twist[..., 1:], axis), 0.0, atol=1e-15)
    assert np.allclose(swing[..., 1:] @ axis, 0.0, atol=1e-10)
    assert np.allclose(quat.rotate(twist, axis), axis, atol=1e-12)


def test_twist_by_hand():
    swing, twist = quat.swing_twist(quat.from_axis_angle(Z, 0.7), Z)
    assert np.allclose(twist, quat.from_axis_angle(Z, 0.7)) and np.allclose(swing, quat.IDENTITY)
    swing, twist = quat.swing_twist(quat.from_axis_angle(X, 0.7), Z)
    assert np.allclose(swing, quat.from_axis_angle(X, 0.7)) and np.allclose(twist, quat.IDENTITY)
    swing, twist = quat.swing_twist(quat.from_axis_angle(X, np.pi), Z)  # a half turn across the axis
    assert np.allclose(twist, quat.IDENTITY, atol=1e-15) and np.allclose(swing, [0, 1, 0, 0], atol=1e-15)


# -- matrices


@given(quaternions((5,)))
def test_matrices_equal_scipys_both_ways(q):
    m = scipy(q).as_matrix()
    assert np.allclose(quat.to_matrix(q), m, atol=1e-14)
    assert same_rotation(quat.from_matrix(m), q, 1e-14)


@pytest.mark.parametrize("axis", [X, Y, Z, [S, S, 0], [0, S, -S], [0.6, 0, 0.8], [0.577350269, 0.577350269, 0.577350269]])
@pytest.mark.parametrize("angle", [np.pi, np.pi - 1e-9, np.pi + 1e-7, 2 * np.pi / 3, 0.0, 1e-9, -np.pi / 2])
def test_from_matrix_near_half_turns(axis, angle):
    axis = np.asarray(axis) / np.linalg.norm(axis)
    expected = wxyz(Rotation.from_rotvec(angle * axis))
    assert same_rotation(quat.from_matrix(Rotation.from_rotvec(angle * axis).as_matrix()), expected, 1e-14)


@given(quaternions(), quaternions())
def test_product_as_matrices(a, b):
    assert np.allclose(quat.left_matrix(a) @ b, quat.mul(a, b), atol=1e-15)
    assert np.allclose(quat.right_matrix(b) @ a, quat.mul(a, b), atol=1e-15)


# -- signs


@given(quaternions((9, 2)), st.lists(st.booleans(), min_size=18, max_size=18))
def test_continuous_changes_signs_alone(q, flips):
    q = q * np.where(np.array(flips).reshape(9, 2, 1), -1.0, 1.0)
    out = quat.continuous(q)
    assert np.array_equal(np.abs(out), np.abs(q))
    assert np.array_equal(out[0], q[0])
    assert np.all((out[1:] * out[:-1]).sum(-1) >= 0.0)
    assert np.all((out == q).all(-1) | (out == -q).all(-1))


def test_continuous_leaves_its_input_alone_and_takes_any_length():
    q = np.array([[1.0, 0, 0, 0], [-1.0, 0, 0, 0]])
    before = q.copy()
    assert np.array_equal(quat.continuous(q), [[1, 0, 0, 0], [1, 0, 0, 0]])
    assert np.array_equal(q, before)
    for n in (0, 1):
        assert quat.continuous(q[:n]).shape == (n, 4)
    for same in (q[:1], q[[0, 0]]):
        assert not np.shares_memory(quat.continuous(same), q)


def test_one_bad_sample_does_not_flip_the_rest():
    q = np.tile([1.0, 0, 0, 0], (5, 1))
    q[2] = np.nan
    assert np.array_equal(quat.continuous(q)[[0, 1, 3, 4]], q[[0, 1, 3, 4]])


def test_a_spin_of_720_degrees_stays_smooth():
    angle = np.linspace(0.0, 4 * np.pi, 145)
    q = np.stack([np.cos(angle / 2), 0 * angle, np.sin(angle / 2), 0 * angle], axis=-1)
    jumpy = wxyz(scipy(q))  # SciPy and files write every rotation with the sign they like
    jumpy[jumpy[:, 0] < 0] *= -1
    assert np.abs(np.diff(jumpy, axis=0)).max() > 1.0
    assert np.allclose(quat.continuous(jumpy), q, atol=1e-12)
