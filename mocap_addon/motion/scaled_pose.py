# SPDX-License-Identifier: GPL-3.0-or-later
"""Poses with scaled joints, as scene graphs hold them: a rotation, a place and a scale each, multiplied down the hierarchy.

A take holds where joints are and how they turn. Where bones are scaled too, players need their local transforms: with ``M`` a joint's
matrix and ``W`` what a player makes of its parent, the local transform is ``W^-1 M``. A rotation, place and scale give that exactly where
it has no shear. A bone that inherits all of its parent's scale never has any (``M = P L``, ``L`` its own rotation and scale); one that does
not, below an uneven scale that it is turned against, has. It is then given the nearest rotation, and the places of what hangs on it are
counted from what was given, so that every joint still stands where it should.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from . import quat
from .take import Take

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

STILL = 2e-5
"""Share: scales that change less stand still, and those nearer to 1 are 1. Far above what matrices in single precision are off."""
_FLAT = 1e-4
"""Below this share of its size a joint is a point, and nothing can be told of what hangs on it."""
_BENT = 1e-3
"""Metres at the end of an arm of one metre: a joint that is off by more is not expressed."""


@dataclass(frozen=True, eq=False)
class ScaledPose:
    """Local transforms of joints.

    Parameters
    ----------
    rotations : (F, J, 4) array
    translations : (F, J, 3) array
        In the parent's frame, which its scale enlarges.
    scales : (F, J, 3) array
    bent : (J,) bool array
        Joints whose own shape is not quite what it should be: they are sheared.
    """

    rotations: Array
    translations: Array
    scales: Array
    bent: Flags

    @property
    def scaled(self) -> Flags:
        """(J,): joints with another scale than 1 at any time."""
        return np.asarray(np.abs(self.scales - 1.0).max(axis=(0, 2)) > 0.0)

    def onto(self, take: Take) -> Take:
        """The take with these local transforms below its roots. What it says of the world is not true any more."""
        rotations, translations = self.rotations.copy(order="K"), self.translations.copy(order="K")
        for r in take.skeleton.roots:
            rotations[:, r], translations[:, r] = take.local_rotations[:, r], take.local_translations[:, r]
        return replace(take, local_rotations=quat.continuous(rotations), local_translations=translations)


def taken_apart(matrices: Array, parents: Sequence[int]) -> ScaledPose:
    """Matrices of joints ``(F, J, 4, 4)`` in one frame for all, parents first -> local transforms."""
    frames, count = matrices.shape[:2]
    rotations, translations = np.empty((frames, count, 4), order="F"), np.empty((frames, count, 3), order="F")
    scales, bent = np.empty((frames, count, 3), order="F"), np.zeros(count, dtype=bool)
    given = np.empty_like(matrices)
    for j, p in enumerate(parents):
        local, known = matrices[:, j], np.ones(frames, dtype=bool)
        if p >= 0:
            known = _smallest(given[:, p]) > _FLAT
            local = np.linalg.inv(np.where(known[:, None, None], given[:, p], np.eye(4))) @ local
        q, s = _turn_and_scale(local[:, :3, :3], known)
        t = local[:, :3, 3]
        for values, out in ((q, rotations), (t, translations), (s, scales)):
            out[:, j] = _held(values, known)
        if not known.all():
            translations[~known, j] = _in_what_is_left(given[~known, p], matrices[~known, j, :3, 3], translations[~known, j])
        own = _matrices(rotations[:, j], translations[:, j], scales[:, j])
        given[:, j] = own if p < 0 else given[:, p] @ own
        bent[j] = float(np.abs(given[:, j, :3, :3] - matrices[:, j, :3, :3]).max(initial=0.0)) > _BENT
    return ScaledPose(rotations, translations, scales, bent)


def joined(parts: Sequence[ScaledPose]) -> ScaledPose:
    """Poses one after the other; scales that stand still have one value."""
    scales = np.concatenate([part.scales for part in parts])
    middle = scales.mean(axis=0)
    still = np.abs(scales - middle).max(axis=0) <= STILL * np.maximum(1.0, np.abs(middle))
    middle = np.where(np.abs(middle - 1.0) <= STILL, 1.0, middle)
    scales = np.where(still, middle, scales)
    bent = parts[0].bent
    for part in parts[1:]:
        bent = bent | part.bent
    return ScaledPose(
        np.concatenate([part.rotations for part in parts]),
        np.concatenate([part.translations for part in parts]),
        scales,
        bent,
    )


def unscaled(rotations: Array, translations: Array) -> ScaledPose:
    """A pose without scale."""
    return ScaledPose(rotations, translations, np.ones_like(translations), np.zeros(len(rotations[0]), dtype=bool))


def _turn_and_scale(linear: Array, known: Flags) -> tuple[Array, Array]:
    """Rotations ``(F, 4)`` and scales ``(F, 3)`` of ``(F, 3, 3)``. Of a mirrored one the x axis is turned over, as three.js does."""
    scales = np.linalg.norm(linear, axis=1)
    flat = scales <= _FLAT * np.maximum(scales.max(axis=1, keepdims=True), _FLAT)
    axes = linear / np.where(flat, 1.0, scales)[:, None, :]
    for k in range(3):  # of a body that is flat in one direction, that direction is across the other two
        alone = flat[:, k] & (flat.sum(axis=1) == 1)
        axes[alone, :, k] = np.cross(axes[alone, :, (k + 1) % 3], axes[alone, :, (k + 2) % 3])
    mirrored = np.linalg.det(axes) < 0.0
    axes[mirrored, :, 0] *= -1.0
    scales[mirrored, 0] *= -1.0
    known = known & (flat.sum(axis=1) < 2)
    axes[~known] = np.eye(3)
    skew = np.abs(np.swapaxes(axes, -1, -2) @ axes - np.eye(3)).max(axis=(-1, -2))
    bent = skew > 1e-5
    if bent.any():
        u, _, vt = np.linalg.svd(axes[bent])
        u[..., 2] *= np.linalg.det(u @ vt)[..., None]
        axes[bent] = u @ vt
        scales[bent] = np.einsum("fij,fij->fj", axes[bent], linear[bent])
    q = quat.from_matrix(axes)
    return _held(q, known), scales


def _held(values: Array, known: Flags) -> Array:
    """Values with those that are not known taken from the nearest sample that is."""
    if known.all() or not known.any():
        return values
    there = np.flatnonzero(known)
    at = np.arange(len(values))
    after = np.clip(np.searchsorted(there, at), 0, len(there) - 1)
    before = np.maximum(after - 1, 0)
    nearest = np.where(np.abs(there[before] - at) < np.abs(there[after] - at), there[before], there[after])
    return values[nearest]


def _in_what_is_left(above: Array, places: Array, held: Array) -> Array:
    """(K, 3): places in parents that are flat: in the directions that these still have as they must be, in the others as they were."""
    linear = above[:, :3, :3]
    undo = np.linalg.pinv(linear, rcond=_FLAT)
    known = np.einsum("kij,kj->ki", undo, places - above[:, :3, 3])
    return known + held - np.einsum("kij,kjl,kl->ki", undo, linear, held)


def _smallest(matrices: Array) -> Array:
    """(F,): the smallest stretch of any direction, against the largest or 1."""
    singular = np.linalg.svd(matrices[:, :3, :3], compute_uv=False)
    return singular[:, -1] / np.maximum(singular[:, 0], 1.0)


def _matrices(q: Array, t: Array, s: Array) -> Array:
    out = np.zeros((len(q), 4, 4))
    out[:, :3, :3] = quat.to_matrix(q) * s[:, None, :]
    out[:, :3, 3] = t
    out[:, 3, 3] = 1.0
    return out
