# SPDX-License-Identifier: GPL-3.0-or-later
"""Forward kinematics and its inverse: local <-> global transforms of whole takes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from . import quat

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def global_rotations(local_rotations: Array, parents: Indices, joints: Iterable[int] | None = None) -> Array:
    """Rotations in the world.

    Parameters
    ----------
    local_rotations : (..., J, 4) array
    parents : (J,) int array
        A parent before its children.
    joints : iterable of int, optional
        Compute these and what stands above them only; the others are left NaN.

    Returns
    -------
    (..., J, 4) array
    """
    needed = _closure(parents, joints)
    out = np.empty(local_rotations.shape, order="F")
    for j, p in enumerate(parents.tolist()):
        if not needed[j]:
            out[..., j, :] = np.nan
        elif p < 0:
            out[..., j, :] = local_rotations[..., j, :]
        else:
            out[..., j, :] = quat.mul(out[..., p, :], local_rotations[..., j, :])
    return out


def global_positions(rotations: Array, local_translations: Array, parents: Indices, joints: Iterable[int] | None = None) -> Array:
    """Joint places in the world, metres: ``(..., J, 3)`` from global rotations ``(..., J, 4)`` and local translations ``(..., J, 3)``.

    With ``joints``, these and what stands above them only; the others are left NaN.
    """
    needed = _closure(parents, joints)
    out = np.empty((*rotations.shape[:-1], 3), order="F")
    translations = np.broadcast_to(local_translations, out.shape)
    for j, p in enumerate(parents.tolist()):
        t = translations[..., j, :]
        if not needed[j]:
            out[..., j, :] = np.nan
        else:
            out[..., j, :] = t if p < 0 else out[..., p, :] + quat.rotate(rotations[..., p, :], t)
    return out


def forward(local_rotations: Array, local_translations: Array, parents: Indices) -> tuple[Array, Array]:
    """Local transforms -> (global rotations ``(..., J, 4)``, global positions ``(..., J, 3)`` in metres)."""
    rotations = global_rotations(local_rotations, parents)
    return rotations, global_positions(rotations, local_translations, parents)


def inverse(rotations: Array, positions: Array, parents: Indices) -> tuple[Array, Array]:
    """Global rotations ``(..., J, 4)`` and positions ``(..., J, 3)`` -> local rotations and translations. No loop is needed."""
    has_parent = parents >= 0
    above = np.where(has_parent, parents, 0)
    undo = quat.inv(rotations[..., above, :])
    local_r = np.where(has_parent[:, None], quat.mul(undo, rotations), rotations)
    local_t = quat.rotate(undo, positions - positions[..., above, :])
    return np.asfortranarray(local_r), np.asfortranarray(np.where(has_parent[:, None], local_t, positions))


def _closure(parents: Indices, joints: Iterable[int] | None) -> NDArray[np.bool_]:
    if joints is None:
        return np.ones(len(parents), dtype=bool)
    needed = np.zeros(len(parents), dtype=bool)
    for j in joints:
        while j >= 0 and not needed[j]:
            needed[j] = True
            j = int(parents[j])
    return needed
