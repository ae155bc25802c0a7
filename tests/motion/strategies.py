# SPDX-License-Identifier: GPL-3.0-or-later
"""Random rotations, vectors and skeletons, and SciPy's rotations for comparison."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial.transform import Rotation

from mocap_addon.motion.skeleton import Skeleton

ORDERS = ("XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX")


def numbers(low: float = -1.0, high: float = 1.0) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False, allow_subnormal=False)


def vectors(shape: tuple[int, ...] = (3,), size: float = 10.0) -> st.SearchStrategy[np.ndarray]:
    return arrays(np.float64, shape, elements=numbers(-size, size))


@st.composite
def quaternions(draw: st.DrawFn, shape: tuple[int, ...] = ()) -> np.ndarray:
    """Unit quaternions (*shape, 4) with either sign; hypothesis likes the corners: identity, half turns, axes."""
    q = draw(arrays(np.float64, (*shape, 4), elements=numbers()))
    norm = np.linalg.norm(q, axis=-1, keepdims=True)
    q = np.where(norm < 1e-3, [1.0, 0.0, 0.0, 0.0], q)
    return q / np.linalg.norm(q, axis=-1, keepdims=True)


@st.composite
def skeletons(draw: st.DrawFn, most: int = 8) -> Skeleton:
    n = draw(st.integers(1, most))
    parents = [-1] + [draw(st.integers(-1, j - 1)) for j in range(1, n)]
    return Skeleton(
        tuple(f"joint{j}" for j in range(n)),
        np.array(parents),
        draw(vectors((n, 3), 2.0)),
        draw(quaternions((n,))),
        draw(vectors((n, 3), 1.0)),
    )


def scipy(q: np.ndarray) -> Rotation:
    """Our wxyz (N, 4) or (4,) as SciPy's rotations (xyzw)."""
    return Rotation.from_quat(np.asarray(q)[..., [1, 2, 3, 0]])


def wxyz(r: Rotation) -> np.ndarray:
    return r.as_quat()[..., [3, 0, 1, 2]]


def same_rotation(a: np.ndarray, b: np.ndarray, within: float = 1e-12) -> bool:
    """q and -q are the same rotation; the distance is that of the nearer sign."""
    a, b = np.asarray(a), np.asarray(b)
    away = np.minimum(np.abs(a - b).max(axis=-1), np.abs(a + b).max(axis=-1))
    return bool(np.all(away <= within))
