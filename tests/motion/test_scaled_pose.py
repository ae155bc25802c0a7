# SPDX-License-Identifier: GPL-3.0-or-later
"""Scaled poses taken apart: multiplied out again they are the matrices they came from, as far as nodes can be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap_addon.motion import scaled_pose

PARENTS = [-1, 0, 1, 2]


def matrix(rotation: Rotation, place: np.ndarray, scale: np.ndarray) -> np.ndarray:
    out = np.eye(4)
    out[:3, :3] = rotation.as_matrix() * scale
    out[:3, 3] = place
    return out


def multiplied(pose: scaled_pose.ScaledPose) -> np.ndarray:
    """(F, J, 4, 4), by SciPy."""
    frames, count = pose.rotations.shape[:2]
    out = np.empty((frames, count, 4, 4))
    for f in range(frames):
        for j in range(count):
            own = matrix(Rotation.from_quat(pose.rotations[f, j][[1, 2, 3, 0]]), pose.translations[f, j], pose.scales[f, j])
            out[f, j] = own if PARENTS[j] < 0 else out[f, PARENTS[j]] @ own
    return out


def chain(scales: np.ndarray, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Matrices of a chain whose joints inherit all, and its local scales ``(F, J, 3)``."""
    rng = np.random.default_rng(seed)
    frames = len(scales)
    out = np.empty((frames, 4, 4, 4))
    for f in range(frames):
        for j in range(4):
            own = matrix(Rotation.from_rotvec(rng.normal(size=3)), np.array([0.1 * j, 1.0, 0.2]), scales[f, j])
            out[f, j] = own if j == 0 else out[f, j - 1] @ own
    return out, scales


def test_what_inherits_everything_comes_back_exactly():
    sizes = np.random.default_rng(2).uniform(0.3, 2.5, (20, 4, 3))
    matrices, _ = chain(sizes)
    pose = scaled_pose.taken_apart(matrices, PARENTS)
    np.testing.assert_allclose(multiplied(pose), matrices, atol=1e-9)
    np.testing.assert_allclose(pose.scales, sizes, atol=1e-9)
    assert not pose.bent.any()


def test_a_mirrored_joint_comes_back_too():
    sizes = np.ones((3, 4, 3))
    sizes[:, 1] = (1.0, -0.8, 1.0)
    matrices, _ = chain(sizes)
    pose = scaled_pose.taken_apart(matrices, PARENTS)
    np.testing.assert_allclose(multiplied(pose), matrices, atol=1e-9)


@pytest.mark.parametrize("gone", [(0.0, 0.0, 0.0), (1.0, 0.0, 1.0)])
def test_joints_below_one_that_is_flat_or_gone_stand_where_they_should(gone):
    sizes = np.ones((5, 4, 3))
    sizes[1:4, 1] = gone
    matrices, _ = chain(sizes)
    pose = scaled_pose.taken_apart(matrices, PARENTS)
    assert np.isfinite(pose.rotations).all() and np.isfinite(pose.translations).all()
    np.testing.assert_allclose(multiplied(pose)[..., :3, 3], matrices[..., :3, 3], atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(pose.rotations, axis=-1), 1.0, atol=1e-12)
    np.testing.assert_allclose(multiplied(pose)[[0, 4]], matrices[[0, 4]], atol=1e-9)


def test_a_shear_is_named_and_the_joints_below_it_stand_right():
    """The third joint turns against an uneven scale of its parent without inheriting it: 45 degrees, so by hand the axes are 53 apart."""
    sizes = np.ones((1, 4, 3))
    sizes[:, 1] = (2.0, 1.0, 1.0)
    matrices = np.tile(np.eye(4), (1, 4, 1, 1))
    matrices[0, 1] = np.diag([2.0, 1.0, 1.0, 1.0])
    turned = np.eye(4)
    turned[:3, :3] = Rotation.from_euler("z", 45, degrees=True).as_matrix()
    turned[:3, 3] = (1.0, 2.0, 3.0)
    matrices[0, 2] = turned
    below = np.eye(4)
    below[:3, 3] = (0.5, -1.0, 0.2)
    matrices[0, 3] = turned @ below
    pose = scaled_pose.taken_apart(matrices, PARENTS)
    assert pose.bent.tolist() == [False, False, True, True]
    np.testing.assert_allclose(multiplied(pose)[..., :3, 3], matrices[..., :3, 3], atol=1e-9)


def test_scales_that_hardly_change_stand_still():
    noise = np.random.default_rng(3).uniform(-1e-6, 1e-6, (6, 4, 3))
    sizes = np.ones((6, 4, 3)) + noise
    sizes[:, 2] += np.linspace(0.0, 0.5, 6)[:, None]
    matrices, _ = chain(sizes)
    pose = scaled_pose.joined([scaled_pose.taken_apart(matrices[:3], PARENTS), scaled_pose.taken_apart(matrices[3:], PARENTS)])
    assert pose.scaled.tolist() == [False, False, True, False]
    assert np.all(pose.scales[:, [0, 1, 3]] == 1.0)
    np.testing.assert_allclose(pose.scales[:, 2], sizes[:, 2], atol=1e-9)
