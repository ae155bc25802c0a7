# SPDX-License-Identifier: GPL-3.0-or-later
"""Rotations as plain 3x3 matrices: nothing of the program's own arithmetic is in the truth."""

from __future__ import annotations

import numpy as np

UP, LEFT, FORWARD = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0]), np.array([0.0, -1.0, 0.0])


def unit(v: np.ndarray) -> np.ndarray:
    """``v (3,)`` at length 1."""
    return v / np.sqrt(v @ v)


def about(axis: np.ndarray, degrees: np.ndarray | float) -> np.ndarray:
    """Turns about a fixed axis ``(3,)`` by ``(...)`` degrees -> ``(..., 3, 3)``. Rodrigues' formula."""
    x, y, z = unit(np.asarray(axis, dtype=float))
    k = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    a = np.radians(degrees)
    return np.eye(3) + np.multiply.outer(np.sin(a), k) + np.multiply.outer(1.0 - np.cos(a), k @ k)


def vectors(m: np.ndarray) -> np.ndarray:
    """Rotation vectors ``(..., 3)`` in radians of ``(..., 3, 3)``; turns of less than a half."""
    v = 0.5 * np.stack([m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]], axis=-1)
    sine, cosine = np.linalg.norm(v, axis=-1), 0.5 * (np.trace(m, axis1=-2, axis2=-1) - 1.0)
    angle = np.arctan2(sine, cosine)
    return v * np.where(sine > 1e-12, angle / np.maximum(sine, 1e-300), 1.0)[..., None]


def turns(v: np.ndarray) -> np.ndarray:
    """Rotation vectors ``(..., 3)`` -> ``(..., 3, 3)``."""
    angle = np.linalg.norm(v, axis=-1)
    x, y, z = np.moveaxis(v / np.maximum(angle, 1e-300)[..., None], -1, 0)
    o = np.zeros_like(x)
    k = np.stack([np.stack([o, -z, y], -1), np.stack([z, o, -x], -1), np.stack([-y, x, o], -1)], -2)
    return np.eye(3) + np.sin(angle)[..., None, None] * k + (1.0 - np.cos(angle))[..., None, None] * (k @ k)


def between(a: np.ndarray, b: np.ndarray, share: float) -> np.ndarray:
    """``share`` of the shortest way from ``a`` to ``b``, ``(..., 3, 3)`` each."""
    return a @ turns(share * vectors(np.swapaxes(a, -1, -2) @ b))


def smallest(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(3, 3): the smallest turn of direction ``u (3,)`` onto ``v (3,)``."""
    axis = np.cross(u, v)
    return np.eye(3) if axis @ axis < 1e-24 * (u @ u) * (v @ v) else about(axis, np.degrees(np.arctan2(np.sqrt(axis @ axis), u @ v)))


def of_quaternions(q: np.ndarray) -> np.ndarray:
    """wxyz ``(..., 4)``, of any length -> ``(..., 3, 3)``."""
    w, x, y, z = np.moveaxis(q / np.linalg.norm(q, axis=-1, keepdims=True), -1, 0)
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.stack([np.stack(row, -1) for row in rows], -2)


def random_turn(rng: np.random.Generator) -> np.ndarray:
    """(3, 3): any rotation, all alike likely."""
    return of_quaternions(rng.normal(size=4))


def degrees_apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Degrees between ``(..., 3, 3)``, exact for small ones: the chord ``|a - b|`` is ``2 sqrt 2 sin(angle / 2)``."""
    chord = np.sqrt(((a - b) ** 2).sum(axis=(-2, -1)))
    return np.degrees(2.0 * np.arcsin(np.minimum(chord / (2.0 * np.sqrt(2.0)), 1.0)))
