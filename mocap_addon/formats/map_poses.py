# SPDX-License-Identifier: GPL-3.0-or-later
"""Poses of bones as a transform map holds them, and what rounding does to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from .node_metric import SHELL

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Stored = NDArray[np.float32] | NDArray[np.float16]

_EVEN = 1e-4
_BLOCK = 2000  # rows whose matrices stand in memory at once
_REACH = 2.0  # metres from the origin at which the error of matrices is told


@dataclass(frozen=True, eq=False)
class Poses:
    """Rotations xyzw ``(R, B, 4)``, translations and scales ``(R, B, 3)``, each in the parent's frame."""

    rotations: Array
    translations: Array
    scales: Array

    @property
    def parts(self) -> tuple[Array, Array, Array]:
        return self.rotations, self.translations, self.scales

    def block(self, start: int, stop: int) -> Poses:
        return Poses(*(part[start:stop] for part in self.parts))


def texels(poses: Poses) -> Array:
    """(R, B * n, 4)."""
    scales = poses.scales
    even = float(np.abs(scales - scales[..., :1]).max()) <= _EVEN * float(np.abs(scales).max())
    parts = [poses.rotations, np.concatenate([poses.translations, scales[..., :1]], axis=-1)]
    if not even:
        parts.append(np.concatenate([scales, np.zeros_like(scales[..., :1])], axis=-1))
    return np.stack(parts, axis=2).reshape(len(scales), -1, 4)


def skin_texels(poses: Poses, parents: Indices, joints: list[int], binds: Array) -> Array:
    """(R, J * 4, 4): columns of the skinning matrices."""
    rows = len(poses.rotations)
    out = np.empty((rows, len(joints), 4, 4))
    for start in range(0, rows, _BLOCK):
        bones = worlds(poses.block(start, start + _BLOCK), parents)
        out[start : start + _BLOCK] = (bones[:, joints] @ binds).transpose(0, 1, 3, 2)
    return out.reshape(rows, -1, 4)


def measured(poses: Poses, parents: Indices, stored: Stored, matrices: Array | None) -> tuple[float, Array]:
    """The error in metres, and the bounds ``(2, 3)``."""
    error = 0.0
    low, high = np.full(3, np.inf), np.full(3, -np.inf)
    for start in range(0, len(stored), _BLOCK):
        bones = worlds(poses.block(start, start + _BLOCK), parents)
        some = stored[start : start + _BLOCK].astype(np.float64)
        low, high = np.minimum(low, bones[..., :3, 3].min(axis=(0, 1))), np.maximum(high, bones[..., :3, 3].max(axis=(0, 1)))
        if matrices is None:
            error = max(error, largest_error(bones, worlds(_back(some, bones.shape[1]), parents)))
            continue
        apart = np.abs(some - matrices[start : start + _BLOCK]).reshape(len(some), -1, 4, 4)
        error = max(error, float(np.sqrt(np.sum((_REACH * apart[..., :3, :3].sum(axis=-2) + apart[..., 3, :3]) ** 2, axis=-1)).max()))
    return error, np.stack([low, high])


def _back(texels: Array, bones: int) -> Poses:
    """What a player reads: rotations made unit again."""
    table = texels.reshape(len(texels), bones, -1, 4)
    q = table[:, :, 0]
    q = q / np.sqrt(np.sum(q * q, axis=-1, keepdims=True))
    return Poses(q, table[:, :, 1, :3], table[:, :, 2, :3] if table.shape[2] > 2 else np.repeat(table[:, :, 1, 3:], 3, axis=-1))


def worlds(poses: Poses, parents: Indices) -> Array:
    """(R, B, 4, 4): the bones in the scene."""
    out = np.zeros((*poses.rotations.shape[:2], 4, 4))
    out[..., :3, :3] = quat.to_matrix(poses.rotations[..., [3, 0, 1, 2]]) * poses.scales[..., None, :]
    out[..., :3, 3] = poses.translations
    out[..., 3, 3] = 1.0
    for b, p in enumerate(parents.tolist()):
        if p >= 0:
            out[:, b] = out[:, p] @ out[:, b]
    return out


def largest_error(meant: Array, got: Array) -> float:
    """Metres, from matrices of bones in the scene ``(R, B, 4, 4)``; the arms are as long as 3 cm are in the scene."""
    size = np.maximum(np.cbrt(np.abs(np.linalg.det(meant[..., :3, :3]))), 1e-12)
    worst = 0.0
    apart = got - meant
    for arm in (None, 0, 1, 2):
        shift = apart[..., :3, 3] if arm is None else apart[..., :3, 3] + apart[..., :3, arm] * (SHELL / size)[..., None]
        worst = max(worst, float(np.sqrt(np.sum(shift * shift, axis=-1)).max()))
    return worst
