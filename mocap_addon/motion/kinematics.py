# SPDX-License-Identifier: GPL-3.0-or-later
"""Forward kinematics and its inverse: local <-> global transforms of whole takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from . import quat

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

FEW = 32
"""Up to this many poses joints of one depth are worked on together: then a call costs more than its arithmetic."""


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
    out = np.empty(local_rotations.shape, order="F")
    for j, p in _steps(parents, joints, out):
        own = local_rotations[..., j, :]
        out[..., j, :] = own if p is None else quat.mul(out[..., p, :], own)
    return out


def global_positions(rotations: Array, local_translations: Array, parents: Indices, joints: Iterable[int] | None = None) -> Array:
    """Joint places in the world, metres: ``(..., J, 3)`` from global rotations ``(..., J, 4)`` and local translations ``(..., J, 3)``.

    With ``joints``, these and what stands above them only; the others are left NaN.
    """
    out = np.empty((*rotations.shape[:-1], 3), order="F")
    translations = np.broadcast_to(local_translations, out.shape)
    for j, p in _steps(parents, joints, out):
        t = translations[..., j, :]
        out[..., j, :] = t if p is None else out[..., p, :] + quat.rotate(rotations[..., p, :], t)
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


def _steps(parents: Indices, joints: Iterable[int] | None, out: Array) -> Iterator[tuple[int | Indices, int | Indices | None]]:
    """Joints and their parents (None: they are roots), from the roots on; those of ``out (..., J, n)`` that are not needed get NaN.

    One joint at a time, or all of one depth where ``out`` holds few poses.
    """
    needed = _closure(parents, joints)
    if not needed.all():
        out[..., ~needed, :] = np.nan
    above: list[int] = parents.tolist()
    if out.size > FEW * out.shape[-1] * out.shape[-2]:
        yield from ((j, None if p < 0 else p) for j, p in enumerate(above) if needed[j])
        return
    depths: list[int] = []
    for p in above:
        depths.append(0 if p < 0 else depths[p] + 1)
    depth = np.where(needed, depths, -1)
    for level in range(max(depths, default=-1) + 1):
        at = np.flatnonzero(depth == level)
        if len(at):
            yield at, None if level == 0 else parents[at]


def _closure(parents: Indices, joints: Iterable[int] | None) -> NDArray[np.bool_]:
    if joints is None:
        return np.ones(len(parents), dtype=bool)
    needed = np.zeros(len(parents), dtype=bool)
    for j in joints:
        while j >= 0 and not needed[j]:
            needed[j] = True
            j = int(parents[j])
    return needed
