# SPDX-License-Identifier: GPL-3.0-or-later
"""Hand edits as an additive layer: what was changed on top of a motion, per bone and in joint space, to be put on top of another motion.

With ``q`` the rotation away from rest that was baked and ``e`` the one found in its place, the edit is ``d = q^-1 e``: a turn in the
bone's own axes, whatever the rotation mode. On a new motion ``q'`` it becomes ``q' d``. A location's edit is the difference. A scalar
curve that is not of the body (a contact, a time code) keeps the edited value itself: half a contact more means nothing.

The layer's times are seconds since the motion's first sample, so that it moves along when the motion starts elsewhere or the rate changes.
Before its first and after its last sample it is held.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from ..motion import quat, timeline

Array = NDArray[np.float64]

NOISE = 3e-6
"""Radians, and units of a location: differences up to here are the rounding of float32 keys, no edit."""

VERSION = 1


@dataclass(frozen=True, eq=False)
class Edits:
    """A layer of hand edits.

    Parameters
    ----------
    times : (F,) array
        Seconds since the motion's first sample.
    rotations : mapping from bone name to (F, 4) array
        Turns in the bone's own axes after its baked rotation, the identity where nothing was done.
    locations : mapping from bone name to (F, 3) array
        Added to the baked location, in the unit and axes that the bone stores.
    values : mapping from curve name to (F,) array
        Values that take the place of the baked ones; NaN where nothing was done.
    deleted : frozenset of str
        What was taken away by hand: ``rotation:BONE``, ``location:BONE`` or ``value:CURVE``. Stays away at any influence.
    influence : float
        0..1: how much of the layer shows.
    """

    times: Array
    rotations: Mapping[str, Array] = field(default_factory=dict[str, Array])
    locations: Mapping[str, Array] = field(default_factory=dict[str, Array])
    values: Mapping[str, Array] = field(default_factory=dict[str, Array])
    deleted: frozenset[str] = frozenset()
    influence: float = 1.0

    @property
    def empty(self) -> bool:
        """Nothing was done by hand."""
        return not (self.rotations or self.locations or self.values or self.deleted)

    @property
    def bones(self) -> tuple[str, ...]:
        """Names of the bones that were edited."""
        return tuple(dict.fromkeys((*self.rotations, *self.locations)))

    def at(self, times: Array) -> Edits:
        """The layer at other times (seconds since the first sample), held outside its own."""
        if len(times) == len(self.times) and np.allclose(times, self.times, rtol=0.0, atol=1e-6):
            return self
        i0, i1, t = timeline.bracket(self.times, times)

        def linear(a: Array) -> Array:
            w = t[:, None]
            return a[i0] * (1.0 - w) + a[i1] * w

        return replace(
            self,
            times=times,
            rotations={name: quat.slerp(q[i0], q[i1], t) for name, q in self.rotations.items()},
            locations={name: linear(v) for name, v in self.locations.items()},
            values={name: v[np.where(t < 0.5, i0, i1)] for name, v in self.values.items()},
        )

    def shown(self) -> Edits:
        """The layer as strong as its influence makes it."""
        w = self.influence
        if w == 1.0:
            return self
        if w == 0.0:
            return Edits(self.times, deleted=self.deleted)
        return replace(
            self,
            rotations={name: quat.exp(w * quat.log(q)) for name, q in self.rotations.items()},
            locations={name: w * v for name, v in self.locations.items()},
            influence=1.0,
        )

    def absorbing(self, found: Edits, known: Collection[str]) -> Edits:
        """The layer after more was done by hand.

        ``found`` is the whole difference from the bake as it shows now. What this layer itself shows of it is no news; the rest goes into
        the layer, so strong that it shows as it was made. Where no turn is large enough for that, the layer becomes what shows, at
        influence 1; at influence 0, where nothing can show, it goes in as it was made. ``known`` are the bones and curves that were looked
        at (named as in ``deleted``); what the layer holds for others waits until they are there again.
        """
        mine, weak = self.shown(), 0.0 < self.influence < 1.0
        rotations, locations = dict(self.rotations), dict(self.locations)
        for name in _looked_at("rotation", self.rotations, found.rotations, known):
            was = mine.rotations.get(name, quat.identity(len(self.times)))
            news = rotation_difference(was, found.rotations.get(name, quat.identity(len(was))))
            if not _turned(news).any():
                continue
            if weak:
                made = quat.log(quat.mul(was, news))
                if np.linalg.norm(made, axis=-1).max() > self.influence * np.pi:
                    return mine.absorbing(found, known)  # no turn is so large that this share of it is what was made
                total = quat.exp(made / self.influence)
            else:
                total = quat.mul(rotations.get(name, quat.IDENTITY), news)
            rotations[name] = np.where(_turned(news)[:, None], total, rotations.get(name, quat.IDENTITY))
        for name in _looked_at("location", self.locations, found.locations, known):
            zero = np.zeros((len(self.times), 3))
            moved = found.locations.get(name, zero) - mine.locations.get(name, zero)
            moved[np.abs(moved) <= NOISE] = 0.0
            locations[name] = locations.get(name, zero) + (moved / self.influence if weak else moved)
        waiting = self.values if self.influence == 0.0 else {n: v for n, v in self.values.items() if f"value:{n}" not in known}
        return replace(
            self,
            rotations={name: q for name, q in rotations.items() if _turned(q).any()},
            locations={name: v for name, v in locations.items() if np.abs(v).max() > NOISE},
            values={name: v for name, v in _merged(waiting, found.values).items() if not np.isnan(v).all()},
            deleted=found.deleted | {token for token in self.deleted if token not in known},
        )


def rotation_difference(base: Array, edited: Array) -> Array:
    """(F, 4): ``base^-1 edited``, and exactly the identity where the two differ by no more than rounding."""
    d = quat.mul(quat.inv(base), edited)
    d = np.where(d[:, :1] < 0.0, -d, d)
    return np.asfortranarray(np.where(_turned(d)[:, None], d, quat.IDENTITY))


def _turned(q: Array) -> NDArray[np.bool_]:
    return quat.angle(q, quat.IDENTITY) > NOISE


def _looked_at(kind: str, old: Mapping[str, Array], new: Mapping[str, Array], known: Collection[str]) -> list[str]:
    return [*new, *(name for name in old if name not in new and f"{kind}:{name}" in known)]


def _merged(old: Mapping[str, Array], new: Mapping[str, Array]) -> dict[str, Array]:
    return {**old, **{name: np.where(np.isnan(v), old.get(name, np.nan), v) for name, v in new.items()}}


# --- as bytes, only the frames that were edited ---------------------------------------------------------------------------------------


def pack(edits: Edits) -> tuple[str, bytes]:
    """A layout as JSON text and the numbers: times as float64, of each bone float32 from its first to its last edited frame."""
    parts: list[NDArray[np.float32]] = []
    layout: dict[str, object] = {
        "version": VERSION,
        "times": len(edits.times),
        "influence": edits.influence,
        "deleted": sorted(edits.deleted),
    }
    kinds = (
        ("rotations", {name: (q, _turned(q)) for name, q in edits.rotations.items()}),
        ("locations", {name: (v, np.abs(v).max(axis=1) > 0.0) for name, v in edits.locations.items()}),
        ("values", {name: (v[:, None], ~np.isnan(v)) for name, v in edits.values.items()}),
    )
    for kind, tracks in kinds:
        spans: dict[str, tuple[int, int]] = {}
        for name, (track, touched) in tracks.items():
            at = np.flatnonzero(touched)
            start, stop = (int(at[0]), int(at[-1]) + 1) if len(at) else (0, 0)
            spans[name] = (start, stop)
            parts.append(track[start:stop].T.astype(np.float32).ravel())
        layout[kind] = spans
    data = np.asarray(edits.times, dtype=np.float64).tobytes() + b"".join(part.tobytes() for part in parts)
    return json.dumps(layout, ensure_ascii=False), data


def unpack(text: str, data: bytes) -> Edits:
    """What :func:`pack` made. :class:`ValueError` or :class:`KeyError` when it is something else."""
    layout = json.loads(text)
    if layout["version"] > VERSION:
        raise ValueError("The layer was written by a newer version.")
    count = int(layout["times"])
    times = np.frombuffer(data, dtype=np.float64, count=count)
    numbers = np.frombuffer(data, dtype=np.float32, offset=8 * count)
    at = 0

    def tracks(kind: str, rest: Array) -> dict[str, Array]:
        nonlocal at
        out: dict[str, Array] = {}
        for name, (start, stop) in layout[kind].items():
            track = np.empty((count, len(rest)), order="F")
            track[:] = rest
            size = (stop - start) * len(rest)
            track[start:stop] = numbers[at : at + size].reshape(len(rest), stop - start).T
            at += size
            out[name] = track
        return out

    rotations = {name: quat.normalize(q) for name, q in tracks("rotations", quat.IDENTITY).items()}
    locations = tracks("locations", np.zeros(3))
    values = {name: v[:, 0] for name, v in tracks("values", np.array([np.nan])).items()}
    return Edits(times, rotations, locations, values, frozenset(layout["deleted"]), float(layout["influence"]))
