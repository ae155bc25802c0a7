# SPDX-License-Identifier: GPL-3.0-or-later
"""Euler angles: every order against SciPy, the poles, and curves without jumps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mocap_addon.motion import quat

from .strategies import ORDERS, numbers, quaternions, same_rotation, scipy, vectors, wxyz


@pytest.mark.parametrize("order", ORDERS)
@given(angles=vectors((4, 3), 2 * np.pi))
def test_angles_to_rotation(order, angles):
    assert same_rotation(quat.from_euler(angles, order), wxyz(Rotation.from_euler(order, angles)), 1e-13)


@pytest.mark.parametrize("order", [*"XYZ", "XY", "YX", "ZX", "YZ"])
@given(angles=vectors((2, 2), np.pi))
def test_one_or_two_channels(order, angles):
    angles = angles[:, : len(order)]
    theirs = Rotation.from_euler(order, angles)
    assert same_rotation(quat.from_euler(angles, order), wxyz(theirs), 1e-13)


def test_no_channel_is_no_rotation():
    assert np.array_equal(quat.from_euler(np.zeros((3, 0)), ""), np.tile([1.0, 0, 0, 0], (3, 1)))


def test_order_by_hand():
    # ZYX is Rz Ry Rx: the X turn acts first. A quarter about X takes Y to Z; the quarter about Z leaves Z there.
    q = quat.from_euler(np.radians([90.0, 0.0, 90.0]), "ZYX")
    assert np.allclose(quat.rotate(q, np.array([0.0, 1.0, 0.0])), [0, 0, 1], atol=1e-15)
    assert np.allclose(quat.rotate(q, np.array([1.0, 0.0, 0.0])), [0, 1, 0], atol=1e-15)


@pytest.mark.parametrize("order", ORDERS)
@given(q=quaternions((4,)))
def test_rotation_to_angles_and_back(order, q):
    angles = quat.to_euler(q, order)
    assert np.all(np.abs(angles) <= np.pi + 1e-12) and np.all(np.abs(angles[..., 1]) <= np.pi / 2 + 1e-12)
    # SciPy turns the angles into a rotation again, so that our two halves cannot hide each other's fault.
    assert same_rotation(q, wxyz(Rotation.from_euler(order, angles)), 1e-9)


@pytest.mark.parametrize("order", ORDERS)
@given(first=numbers(-3.1, 3.1), middle=numbers(-1.5, 1.5), last=numbers(-3.1, 3.1))
def test_angles_come_back_as_written(order, first, middle, last):
    angles = np.array([first, middle, last])
    q = wxyz(Rotation.from_euler(order, angles))
    assert np.allclose(quat.to_euler(q, order), angles, atol=1e-10)
    assert np.allclose(quat.to_euler(-q, order), angles, atol=1e-10)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("pole", [np.pi / 2, -np.pi / 2])
@pytest.mark.parametrize("off", [0.0, 1e-15, 1e-12, 1e-10, 1e-9, 1e-8, 1e-6, 1e-4])
def test_at_and_near_the_poles(order, pole, off):
    grid = np.linspace(-np.pi, np.pi, 9)
    angles = np.array([[a, pole - np.sign(pole) * off, c] for a in grid for c in grid])
    q = wxyz(Rotation.from_euler(order, angles))
    back = quat.to_euler(q, order)
    assert np.all(np.isfinite(back))
    assert np.all((scipy(q).inv() * Rotation.from_euler(order, back)).magnitude() < 3e-8)


@pytest.mark.parametrize("order", ORDERS)
def test_exactly_at_a_pole_one_angle_is_zero(order):
    q = wxyz(Rotation.from_euler(order, [0.4, np.pi / 2, 0.3]))
    assert quat.to_euler(q, order)[0] == 0.0


# -- curves without jumps


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("channel", [0, 1, 2])
@pytest.mark.parametrize("turns", [2, -2])
def test_a_spin_of_720_degrees_about_each_axis(order, channel, turns):
    angle = np.linspace(0.0, turns * 2 * np.pi, 101)  # 7.2 degrees a frame
    truth = np.zeros((101, 3))
    truth[:, channel] = angle
    jumpy = quat.to_euler(wxyz(Rotation.from_euler(order, truth)), order)
    smooth = quat.continuous_euler(jumpy)
    assert np.allclose(smooth, truth, atol=1e-7)
    assert np.abs(np.diff(jumpy, axis=0)).max() > 1.0  # there was something to mend


@pytest.mark.parametrize("order", ORDERS)
def test_a_tumble_through_the_poles_keeps_its_steps_small(order):
    t = np.linspace(0.0, 1.0, 721)[:, None]
    truth = t * np.array([3.0, 4 * np.pi, -2.0]) + 0.3 * np.sin(9 * t)
    q = wxyz(Rotation.from_euler(order, truth))
    smooth = quat.continuous_euler(quat.to_euler(q, order))
    assert np.allclose(smooth - smooth[0], truth - truth[0], atol=1e-6)


@given(vectors((12, 3), 7.0), st.sampled_from(ORDERS))
def test_the_rotations_stay_what_they_were(angles, order):
    smooth = quat.continuous_euler(angles)
    assert same_rotation(wxyz(Rotation.from_euler(order, smooth)), wxyz(Rotation.from_euler(order, angles)), 1e-12)


@given(vectors((12, 3), 7.0))
def test_each_frame_takes_the_nearest_of_all_equivalents(angles):
    """Against a plain loop that tries both branches and every whole turn, frame by frame."""
    smooth = quat.continuous_euler(angles)
    turns = 2 * np.pi * np.arange(-6, 7)
    for before, now, raw in zip(smooth, smooth[1:], angles[1:], strict=False):
        best = np.inf
        for branch in (raw, raw * [1, -1, 1] + np.pi):
            best = min(best, sum(np.abs(branch[c] + turns - before[c]).min() for c in range(3)))
        assert np.abs(now - before).sum() <= best + 1e-9


def test_many_joints_at_once_and_short_takes():
    angles = np.random.default_rng(1).uniform(-np.pi, np.pi, (20, 5, 3))
    together = quat.continuous_euler(angles)
    for j in range(5):
        assert np.allclose(together[:, j], quat.continuous_euler(angles[:, j]), atol=1e-12)
    for n in (0, 1):
        assert quat.continuous_euler(angles[:n]).shape == (n, 5, 3)
