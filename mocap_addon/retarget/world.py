# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones of a keyed character in the world and back: forward kinematics of :class:`.motion.PoseMotion`, of a few bones over all frames.

With the object at ``O = (Q_o, x_o)`` away from where it stands, ``(Q_p, x_p)`` the parent in the world (the object for a root), ``r, t``
the bone's rest in its parent's frame, ``b, l`` what it stores:

    x = x_p + Q_p (t + r l)                     Q = Q_p r b

A bone that does not inherit rotation turns in the object's axes, ``Q = Q_o R_p r b`` with ``R_p`` its parent at rest, while its place still
hangs on the parent.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.skeleton import Skeleton
from .motion import PoseMotion

Array = NDArray[np.float64]
Flags = NDArray[np.bool_]

OBJECT = -1
"""In place of a bone: the object, the whole character."""


@dataclass(eq=False)
class Keys:
    """A motion's keys by bone: rotations ``(F, 4)``, locations ``(F, 3)``, and the object's where it moves; to be changed.

    F is ``count``.
    """

    count: int
    rotations: dict[int, Array] = field(default_factory=dict[int, Array])
    locations: dict[int, Array] = field(default_factory=dict[int, Array])
    placement: Array | None = None
    turning: Array | None = None

    @classmethod
    def of(cls, motion: PoseMotion) -> Keys:
        """Views of a motion's arrays."""
        rotations = {bone: motion.rotations[:, k] for k, bone in enumerate(motion.bones)}
        locations = {bone: motion.locations[:, k] for k, bone in enumerate(motion.moving)}
        return cls(len(motion.times), rotations, locations, motion.placement, motion.turning)

    def at(self, frames: NDArray[np.int64]) -> Keys:
        """The keys of some frames."""

        def picked(a: Array | None) -> Array | None:
            return None if a is None else a[frames]

        return Keys(
            len(frames),
            {bone: q[frames] for bone, q in self.rotations.items()},
            {bone: v[frames] for bone, v in self.locations.items()},
            picked(self.placement),
            picked(self.turning),
        )

    def put_into(self, motion: PoseMotion) -> PoseMotion:
        """The motion with these keys instead of its own, bones in the skeleton's order."""
        count, bones, moving = len(motion.times), tuple(sorted(self.rotations)), tuple(sorted(self.locations))
        rotations = np.empty((count, len(bones), 4), order="F")
        locations = np.empty((count, len(moving), 3), order="F")
        for k, bone in enumerate(bones):
            rotations[:, k] = self.rotations[bone]
        for k, bone in enumerate(moving):
            locations[:, k] = self.locations[bone]
        return replace(
            motion,
            bones=bones,
            rotations=rotations,
            moving=moving,
            locations=locations,
            placement=self.placement,
            turning=self.turning,
        )


class World:
    """Where the bones are, worked out when asked for. Arrays have one row where nothing on the way up moves.

    ``inherits (J,)``: which bones follow their parent's rotation; None: all.
    """

    def __init__(self, keys: Keys, skeleton: Skeleton, inherits: Flags | None = None) -> None:
        self._keys, self._skeleton, self._inherits = keys, skeleton, inherits
        self._known: dict[int, tuple[Array, Array]] = {}

    def of(self, bone: int) -> tuple[Array, Array]:
        """Rotation ``(F | 1, 4)`` and place ``(F | 1, 3)`` of a bone or :data:`OBJECT`, relative to where the object stands."""
        if bone not in self._known:
            self._known[bone] = self._object() if bone == OBJECT else self._bone(bone)
        return self._known[bone]

    def ends(self, bone: int) -> Array:
        """(F | 1, 3): where the bone ends; NaN where the skeleton does not say."""
        rotation, place = self.of(bone)
        return place + quat.rotate(rotation, self._skeleton.ends[bone])

    def stored(self, bone: int, rotation: Array, place: Array) -> tuple[Array, Array]:
        """What the bone has to store to stand so: rotation away from rest ``(F | 1, 4)`` and location ``(F | 1, 3)``."""
        skeleton, parent = self._skeleton, int(self._skeleton.parents[bone])
        above, origin = self.of(parent)
        rest = skeleton.rest_rotations[bone]
        basis = quat.mul(quat.inv(quat.mul(self._axes(bone, above), rest)), rotation)
        location = quat.rotate(quat.inv(rest), quat.rotate(quat.inv(above), place - origin) - skeleton.rest_translations[bone])
        return basis, location

    def _object(self) -> tuple[Array, Array]:
        turning, placement = self._keys.turning, self._keys.placement
        return quat.IDENTITY[None] if turning is None else turning, np.zeros((1, 3)) if placement is None else placement

    def _bone(self, bone: int) -> tuple[Array, Array]:
        skeleton, keys = self._skeleton, self._keys
        above, origin = self.of(int(skeleton.parents[bone]))
        rest, offset = skeleton.rest_rotations[bone], skeleton.rest_translations[bone]
        if bone in keys.locations:
            offset = offset + quat.rotate(rest, keys.locations[bone])
        rotation = quat.mul(self._axes(bone, above), rest)
        if bone in keys.rotations:
            rotation = quat.mul(rotation, keys.rotations[bone])
        return rotation, origin + quat.rotate(above, offset)

    def _axes(self, bone: int, above: Array) -> Array:
        """What the bone's rotation is relative to."""
        parent = int(self._skeleton.parents[bone])
        if parent < 0 or self._inherits is None or self._inherits[bone]:
            return above
        return quat.mul(self.of(OBJECT)[0], self._skeleton.rest_global_rotations[parent])
