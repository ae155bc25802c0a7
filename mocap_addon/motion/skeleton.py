# SPDX-License-Identifier: GPL-3.0-or-later
"""A skeleton: names, hierarchy and rest pose. No motion."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import quat
from .errors import RigError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Skeleton:
    """Joints in an order where a parent stands before its children.

    Parameters
    ----------
    names : tuple of str
        Unique joint names, as the source wrote them.
    parents : (J,) int array
        Index of the parent; -1 for a root. A parent's index is smaller than its children's.
    rest_translations : (J, 3) array
        Metres: a joint's place in its parent's frame at rest (in the world for a root).
    rest_rotations : (J, 4) array
        wxyz: a joint's rotation in its parent's frame at rest (in the world for a root).
    ends : (J, 3) array
        Metres, in the joint's own frame: where the bone ends (BVH ``End Site``, Blender bone tail). NaN where nothing says so.
    """

    names: tuple[str, ...]
    parents: NDArray[np.int64]
    rest_translations: Array
    rest_rotations: Array = field(default_factory=lambda: np.zeros((0, 4)))
    ends: Array = field(default_factory=lambda: np.zeros((0, 3)))

    def __post_init__(self) -> None:
        n = len(self.names)

        def put(name: str, value: object) -> None:
            object.__setattr__(self, name, value)

        put("names", tuple(self.names))
        put("parents", _array(self.parents, (n,), "parents", np.int64))
        put("rest_translations", _array(self.rest_translations, (n, 3), "rest translations"))
        rotations = self.rest_rotations if np.size(self.rest_rotations) or n == 0 else quat.identity(n)
        put("rest_rotations", _array(rotations, (n, 4), "rest rotations"))
        ends = self.ends if np.size(self.ends) or n == 0 else np.full((n, 3), np.nan)
        put("ends", _array(ends, (n, 3), "bone ends"))
        if len(set(self.names)) != n:
            twice = next(name for i, name in enumerate(self.names) if name in self.names[:i])
            raise RigError(f'The joint name "{twice}" occurs twice; joint names must be unique.')
        if not np.all(self.parents < np.arange(n)) or np.any(self.parents < -1):
            raise RigError("A joint stands before its parent; parents must come first.")

    def __len__(self) -> int:
        return len(self.names)

    def index(self, name: str) -> int:
        """Index of the joint called ``name``; :class:`RigError` if there is none."""
        try:
            return self._index[name]
        except KeyError:
            raise RigError(f'There is no joint called "{name}".') from None

    def __contains__(self, name: object) -> bool:
        return name in self._index

    @cached_property
    def _index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def content(self) -> bytes:
        """A digest of names, hierarchy and rest pose: equal skeletons have equal ones."""
        digest = hashlib.blake2b("\0".join(self.names).encode("utf-8", "surrogatepass"), digest_size=16)
        for part in (self.parents, self.rest_translations, self.rest_rotations, self.ends):
            digest.update(np.ascontiguousarray(part).tobytes())
        return digest.digest()

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """For each joint the indices of its children, in order."""
        out: list[list[int]] = [[] for _ in self.names]
        for j, p in enumerate(self.parents.tolist()):
            if p >= 0:
                out[int(p)].append(j)
        return tuple(tuple(c) for c in out)

    @cached_property
    def roots(self) -> tuple[int, ...]:
        """Indices of the joints without a parent."""
        return tuple(int(j) for j in np.flatnonzero(self.parents < 0))

    def ancestors(self, joint: int) -> list[int]:
        """Indices from ``joint``'s parent up to its root, nearest first."""
        out: list[int] = []
        p = int(self.parents[joint])
        while p >= 0:
            out.append(p)
            p = int(self.parents[p])
        return out

    def is_below(self, joint: int, ancestor: int) -> bool:
        """Whether ``ancestor`` is ``joint`` itself or stands above it."""
        return joint == ancestor or ancestor in self.ancestors(joint)

    @cached_property
    def levels(self) -> tuple[NDArray[np.int64], ...]:
        """Joint indices by depth, roots first: what can be computed at once."""
        depth = np.zeros(len(self), dtype=np.int64)
        for j, p in enumerate(self.parents.tolist()):
            depth[j] = 0 if p < 0 else depth[p] + 1
        return tuple(np.flatnonzero(depth == d) for d in range(int(depth.max()) + 1 if len(self) else 0))

    @cached_property
    def rest_global_rotations(self) -> Array:
        """(J, 4): rotations of the rest pose in the world."""
        out = self.rest_rotations.copy()
        for level in self.levels[1:]:
            out[level] = quat.mul(out[self.parents[level]], self.rest_rotations[level])
        return out

    @cached_property
    def rest_global_positions(self) -> Array:
        """(J, 3): metres, joints of the rest pose in the world."""
        out = self.rest_translations.copy()
        for level in self.levels[1:]:
            above = self.parents[level]
            out[level] = out[above] + quat.rotate(self.rest_global_rotations[above], self.rest_translations[level])
        return out

    @cached_property
    def rest_global_ends(self) -> Array:
        """(J, 3): metres, bone ends of the rest pose in the world; NaN where unknown."""
        return self.rest_global_positions + quat.rotate(self.rest_global_rotations, self.ends)

    def with_rest(self, local_rotations: ArrayLike, local_translations: ArrayLike | None = None) -> Skeleton:
        """The same joints with another rest pose, ``(J, 4)`` and ``(J, 3)`` in parents' frames."""
        translations = self.rest_translations if local_translations is None else local_translations
        return replace(
            self,
            rest_rotations=np.asarray(local_rotations, dtype=np.float64),
            rest_translations=np.asarray(translations, dtype=np.float64),
        )

    def renamed(self, names: Sequence[str]) -> Skeleton:
        """The same joints under other names, in the same order."""
        return replace(self, names=tuple(names))


def _array(value: ArrayLike, shape: tuple[int, ...], what: str, dtype: type[np.generic] = np.float64) -> NDArray[np.generic]:
    """A read-only copy, so that no later change of the caller's array reaches the skeleton."""
    out = np.array(value, dtype=dtype)
    if out.shape != shape:
        raise RigError(f"The {what} have shape {out.shape}; {shape} was expected.")
    out.flags.writeable = False
    return out
