# SPDX-License-Identifier: GPL-3.0-or-later
"""A take: one performer's motion on one skeleton. Everything that comes in becomes one, every step takes one.

Conventions: metres, seconds, radians; right-handed, Z up, a character faces -Y and its left is +X (Blender's own). Readers turn every
other system into this one; nothing after them does.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from . import kinematics, quat, timecode, timeline
from .errors import MocapError
from .skeleton import Skeleton
from .timecode import TimeCode

Array = NDArray[np.float64]
Source = Literal["capture", "retargeted", "replay"]


@dataclass(frozen=True, eq=False)
class PropTrack:
    """A rigid body that moves beside the performer: ``rotations (F, 4)`` and ``translations (F, 3)`` (metres) in the world."""

    rotations: Array
    translations: Array


@dataclass(frozen=True, eq=False)
class Take:
    """Motion of one performer.

    Parameters
    ----------
    name : str
    skeleton : Skeleton
    times : (F,) array
        Seconds, strictly increasing.
    local_rotations : (F, J, 4) array
        wxyz, in the parents' frames (the rest rotation included).
    local_translations : (F, J, 3) or (1, J, 3) array
        Metres, in the parents' frames (the rest offset included). One row means that nothing moves but by rotation.
    rate : Fraction or None
        The nominal rate of a uniform time axis.
    valid : (F, J) bool array or None
        Where the source had a value. None: everywhere.
    curves : mapping from name to (F,) array
        Scalar curves with the same time axis.
    props : mapping from name to PropTrack
    scales : mapping from joint name to (F, 3) array
        Joints that the source scales, along their own axes, 1 at rest. Places of what hangs on them are those that the scale gives.
    performer : str
    source : "capture", "retargeted" or "replay"
    timecode : str or None
        ``HH:MM:SS:FF`` of the first frame (:mod:`.timecode`); ``time_code`` is the same, understood.
    timecode_rate : Fraction or None
        Frames a second of the time code; None: the rate of the take, also where its samples have gaps.
    events : tuple of (seconds, name)
        What was marked on the same time axis: annotations, hits, slates.
    notes : tuple of str
        What a person should know about how the take was read: warnings, guesses. One plain sentence each.
    facts : mapping
        What the reader found out about the file: ``unit`` (metres), ``up``, ``facing``, ``format``, ``channels`` ...
    """

    name: str
    skeleton: Skeleton
    times: Array
    local_rotations: Array
    local_translations: Array
    rate: Fraction | None = None
    valid: NDArray[np.bool_] | None = None
    curves: Mapping[str, Array] = field(default_factory=dict[str, Array])
    props: Mapping[str, PropTrack] = field(default_factory=dict[str, PropTrack])
    scales: Mapping[str, Array] = field(default_factory=dict[str, Array])
    performer: str = ""
    source: Source = "capture"
    timecode: str | None = None
    timecode_rate: Fraction | None = None
    events: tuple[tuple[float, str], ...] = ()
    notes: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict[str, object])

    def __post_init__(self) -> None:
        f, j = len(self.times), len(self.skeleton)
        if self.local_rotations.shape != (f, j, 4):
            raise MocapError(f"The rotations have shape {self.local_rotations.shape}; {(f, j, 4)} was expected.")
        if self.local_translations.shape not in ((f, j, 3), (1, j, 3)):
            raise MocapError(f"The translations have shape {self.local_translations.shape}; {(f, j, 3)} was expected.")
        if f > 1 and not np.all(np.diff(self.times) > 0.0):
            raise MocapError(f'The times of the take "{self.name}" are not strictly increasing.')

    @property
    def frames(self) -> int:
        """Number of samples."""
        return len(self.times)

    @property
    def duration(self) -> float:
        """Seconds from the first to the last sample."""
        return float(self.times[-1] - self.times[0]) if len(self.times) else 0.0

    @cached_property
    def time_code(self) -> TimeCode | None:
        """The time code of the first sample; None where there is none, or what is written is none."""
        rate = self.timecode_rate or self.rate or timeline.usual_rate(self.times)
        if self.timecode is None or rate is None:
            return None
        try:
            return timecode.parse(self.timecode, rate)
        except MocapError:
            return None

    def with_time_code(self, start: TimeCode | None) -> Take:
        """The take with another time code at its first sample."""
        return replace(self, timecode=None if start is None else str(start), timecode_rate=None if start is None else start.rate)

    def _time_coded_from(self, seconds: float) -> Take:
        """The take with its time code that much later: its first sample is another one now."""
        start = self.time_code
        return self if start is None else self.with_time_code(start.shifted(seconds) if seconds else start)

    @cached_property
    def global_rotations(self) -> Array:
        """(F, J, 4): rotations in the world."""
        return kinematics.global_rotations(self.local_rotations, self.skeleton.parents)

    @cached_property
    def global_positions(self) -> Array:
        """(F, J, 3): joints in the world, metres."""
        return kinematics.global_positions(self.global_rotations, self.local_translations, self.skeleton.parents)

    def block(self, start: int, stop: int) -> Take:
        """Samples ``start`` to ``stop`` (as a slice; views, no copy). Times are kept as they are."""
        s = slice(start, stop)
        moving = len(self.local_translations) == len(self.times)
        first = self.times[s][:1]
        return replace(
            self._time_coded_from(float(first[0] - self.times[0])) if len(first) else self,
            times=self.times[s],
            local_rotations=self.local_rotations[s],
            local_translations=self.local_translations[s] if moving else self.local_translations,
            valid=None if self.valid is None else self.valid[s],
            curves={k: v[s] for k, v in self.curves.items()},
            props={k: PropTrack(v.rotations[s], v.translations[s]) for k, v in self.props.items()},
            scales={k: v[s] for k, v in self.scales.items()},
        )

    def resampled(self, rate: Fraction) -> Take:
        """Whole frames at ``rate`` from the first sample on: rotations by slerp, the rest linearly. Unchanged where the times are."""
        at = timeline.sample_times(self.times, rate)
        if len(at) == len(self.times) and np.allclose(at, self.times, rtol=0.0, atol=1e-9):
            return replace(self._time_coded_from(0.0), rate=rate)
        return replace(self.sampled(at), rate=rate)

    def sampled(self, at: Array) -> Take:
        """The take at the times ``at`` (seconds, strictly increasing); held before its start and after its end.

        Time code is counted on, not interpolated, and is of the new first sample, also before the start and after the end.
        """
        if len(self.times) == 0:
            raise MocapError(f'The take "{self.name}" has no frames; there is nothing to sample.')
        i0, i1, t = timeline.bracket(self.times, at)
        rotations = np.empty((len(at), len(self.skeleton), 4), order="F")
        picked = np.where(t < 1.0, i0, i1)
        between = bool(np.any((t > 0.0) & (t < 1.0)))  # else every time is a sample's own: 120 Hz onto whole frames of 24
        for j in range(len(self.skeleton)):
            own = self.local_rotations[:, j]
            rotations[:, j] = quat.slerp(own[i0], own[i1], t) if between else own[picked]
        moving = len(self.local_translations) == len(self.times)

        def linear(a: Array) -> Array:
            if not between:
                return a[picked]
            w = t.reshape(-1, *([1] * (a.ndim - 1)))
            return a[i0] * (1.0 - w) + a[i1] * w

        return replace(
            self._time_coded_from(float(at[0] - self.times[0])) if len(at) else self,
            times=at,
            local_rotations=rotations,
            local_translations=linear(self.local_translations) if moving else self.local_translations,
            valid=None if self.valid is None else self.valid[i0] & self.valid[i1],
            curves={k: v[picked] if k.startswith(timecode.PREFIX) else linear(v) for k, v in self.curves.items()},
            props={k: PropTrack(quat.slerp(v.rotations[i0], v.rotations[i1], t), linear(v.translations)) for k, v in self.props.items()},
            scales={k: linear(v) for k, v in self.scales.items()},
            rate=None,
        )

    def turned(self, rotation: Array) -> Take:
        """The whole take, rest pose included, turned in the world by ``rotation (4,)``."""
        return self.rerooted(lambda q: quat.mul(rotation, q), lambda v: quat.rotate(rotation, v), rest=True)

    def rerooted(self, turn: Callable[[Array], Array], move: Callable[[Array], Array], *, rest: bool) -> Take:
        """Apply ``turn`` to the roots' rotations and ``move`` to the roots' places; with ``rest`` to the rest pose too."""
        roots = list(self.skeleton.roots)
        rotations = self.local_rotations.copy(order="K")
        translations = self.local_translations.copy(order="K")
        for r in roots:
            rotations[:, r] = turn(rotations[:, r])
            translations[:, r] = move(translations[:, r])
        skeleton = self.skeleton
        if rest:
            rest_r, rest_t = skeleton.rest_rotations.copy(), skeleton.rest_translations.copy()
            rest_r[roots], rest_t[roots] = turn(rest_r[roots]), move(rest_t[roots])
            skeleton = skeleton.with_rest(rest_r, rest_t)
        props = {k: PropTrack(turn(v.rotations), move(v.translations)) for k, v in self.props.items()}
        return replace(self, skeleton=skeleton, local_rotations=rotations, local_translations=translations, props=props)

    def scaled(self, factor: float) -> Take:
        """All lengths, rest pose included, times ``factor``."""
        skeleton = replace(
            self.skeleton,
            rest_translations=self.skeleton.rest_translations * factor,
            ends=self.skeleton.ends * factor,
        )
        return replace(
            self,
            skeleton=skeleton,
            local_translations=self.local_translations * factor,
            props={k: PropTrack(v.rotations, v.translations * factor) for k, v in self.props.items()},
        )
