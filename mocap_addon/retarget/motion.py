# SPDX-License-Identifier: GPL-3.0-or-later
"""What a retarget returns: the keys of a target skeleton, as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from ..motion import quat, timecode
from ..motion.skeleton import Skeleton
from ..motion.take import PropTrack, Take
from ..motion.timecode import TimeCode

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PoseMotion:
    """Motion of some bones away from their rest pose: exactly what pose bones store.

    A bone's local transform is ``rest * basis``; these are the bases. Bones that are not listed keep whatever pose they have.

    Parameters
    ----------
    name : str
    times : (F,) array
        Seconds.
    bones : tuple of int
        Target joints with rotations, K of them.
    rotations : (F, K, 4) array
        wxyz in each bone's own rest frame; neighbours in time have a dot product >= 0.
    moving : tuple of int
        Target joints with locations, M of them.
    locations : (F, M, 3) array
        Metres, in each bone's own rest frame, zero at rest.
    rate : Fraction or None
        Nominal rate of a uniform time axis.
    curves : mapping from name to (F,) array
        Scalar curves that travel with the pose, also ``TCHour``, ``TCMinute``, ``TCSecond`` and ``TCFrame`` where there is time code.
    notes : tuple of str
        Warnings, one plain sentence each.
    placement : (F, 3) array or None
        Metres in the world's axes: how far the whole character is carried from where it stands, by its object.
    turning : (F, 4) array or None
        How the whole character is turned about its object's origin, in the world's axes.
    held : frozenset of int
        Those of ``bones`` that keep one and the same rotation all the time: one key is enough.
    settings : tuple of (bone, property, value)
        Custom properties of bones that the motion needs at a value (the switch between FK and IK); a property that starts with a full
        stop is a path from the bone (``.constraints["IK"].influence``).
    followed : frozenset of int
        Other bones than those above the keyed ones whose pose shows in theirs; the motion takes them to be at rest.
    time_code : TimeCode or None
        Of the first sample; set by :meth:`with_time_code`, which keeps its curves in step.
    scales : mapping from int to (F, 3) array
        Target joints that are scaled, along their own axes.
    props : mapping from name to PropTrack
        Rigid bodies, in the world's axes and metres from where the character's object stands.
    """

    name: str
    times: Array
    bones: tuple[int, ...]
    rotations: Array
    moving: tuple[int, ...]
    locations: Array
    rate: Fraction | None = None
    curves: Mapping[str, Array] = field(default_factory=dict[str, Array])
    notes: tuple[str, ...] = ()
    placement: Array | None = None
    turning: Array | None = None
    held: frozenset[int] = frozenset()
    settings: tuple[tuple[str, str, float], ...] = ()
    followed: frozenset[int] = frozenset()
    time_code: TimeCode | None = None
    props: Mapping[str, PropTrack] = field(default_factory=dict[str, PropTrack])
    scales: Mapping[int, Array] = field(default_factory=dict[int, Array])

    def with_time_code(self, start: TimeCode | None) -> PoseMotion:
        """The motion with ``start`` as the time code of its first sample: the four curves are computed for its times (none without)."""
        curves = {name: values for name, values in self.curves.items() if not name.startswith(timecode.PREFIX)}
        if start is not None and len(self.times):
            curves |= timecode.curves(start, self.times - self.times[0])
        return replace(self, curves=curves, time_code=start)

    def to_take(self, skeleton: Skeleton) -> Take:
        """The whole pose as a take on ``skeleton``, every bone without keys at rest."""
        f, n = len(self.times), len(skeleton)
        rotations = np.empty((f, n, 4), order="F")
        rotations[:] = skeleton.rest_rotations
        bones = list(self.bones)
        rotations[:, bones] = quat.mul(skeleton.rest_rotations[bones], self.rotations)
        translations = np.empty((f, n, 3), order="F")
        translations[:] = skeleton.rest_translations
        moving = list(self.moving)
        translations[:, moving] += quat.rotate(skeleton.rest_rotations[moving], self.locations)
        curves = {name: values for name, values in self.curves.items() if self.time_code is None or not name.startswith(timecode.PREFIX)}
        take = Take(self.name, skeleton, self.times, rotations, translations, rate=self.rate, source="retargeted", curves=curves)
        return replace(self.carried(take.with_time_code(self.time_code)), props=self.props)

    def carried(self, take: Take) -> Take:
        """A take of the pose alone, carried as ``placement`` and ``turning`` say: its roots move with the object."""
        turning, placement = self.turning, self.placement
        if turning is not None:
            take = take.rerooted(lambda q: quat.mul(turning, q), lambda v: quat.rotate(turning, v), rest=False)
        return take if placement is None else take.rerooted(lambda q: q, lambda v: v + placement, rest=False)
