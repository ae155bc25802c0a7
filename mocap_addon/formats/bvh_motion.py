# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows of BVH channels to joint rotations and translations, in the file's own axes and units.

A joint's rotation is the product of its rotation channels in the order they are written: ``Zrotation Yrotation Xrotation`` is
``Rz Ry Rx`` on column vectors. A joint's position channels *replace* its OFFSET, axis by axis; that is how the exporters with six channels
a joint write them (they repeat the offset) and how Blender's importer reads them. Only where they stay close to zero along the offset's
longest component are they taken as relative to it: some exporters write them so, and replacing would fold the body.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from .bvh_header import Joint

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_RELATIVE = 0.1  # of the offset's longest component: positions that stay below it are relative


@dataclass(frozen=True)
class _Group:
    """Joints with the same rotation axes in the same order; their half angles are rows ``at`` to ``at + k n`` of the angle block."""

    order: str
    joints: Indices
    at: int


class ChannelMotion:
    """Collects the motion of the joints below one ROOT, block of rows by block of rows.

    Parameters
    ----------
    joints : list of Joint
        One ROOT and what is below it.
    capacity : int
        Expected rows; more are taken too.
    """

    def __init__(self, joints: list[Joint], capacity: int) -> None:
        self.joints = joints
        self.offsets: Array = np.array([j.offset for j in joints], dtype=np.float64)
        self.frames = 0
        self._groups, self._columns = _group(joints)
        self._still = [i for i, j in enumerate(joints) if not any(kind == "rot" for kind, _ in j.channels)]
        self._positions = [
            (i, axis, j.first + k) for i, j in enumerate(joints) for k, (kind, axis) in enumerate(j.channels) if kind == "pos"
        ]
        # component-major: (components, joints, frames) in C order is (frames, joints, components) in Fortran order
        self._r: Array = np.empty((4, len(joints), capacity))
        self._t: Array = np.empty((3, len(joints), capacity if self._positions else 0))
        self._valid: NDArray[np.bool_] | None = None

    def add(self, rows: Array) -> None:
        """Append rows ``(n, columns)`` of the whole file: degrees and file units, NaN where the file has no number."""
        n = len(rows)
        if n == 0:
            return
        start, stop = self.frames, self.frames + n
        if stop > self._r.shape[2]:
            self._grow(max(stop, self._r.shape[2] * 3 // 2))
        channels = np.ascontiguousarray(rows.T)
        half = channels[self._columns] * (math.pi / 360.0)
        sin, cos = np.sin(half), np.cos(half)
        r = self._r[:, :, start:stop]
        for group in self._groups:
            self._turn(r, group, half, sin, cos)
        if self._still:
            r[0, self._still] = 1.0
            r[1:, self._still] = 0.0
        if self._positions:
            t = self._t[:, :, start:stop]
            t[:] = self.offsets.T[:, :, None]
            for joint, axis, column in self._positions:
                t[axis, joint] = channels[column]
        if not math.isfinite(float(rows.sum())):
            self._mark(channels, start, stop)
        self.frames = stop

    def _turn(self, r: Array, group: _Group, half: Array, sin: Array, cos: Array) -> None:
        """Quaternions of a group: the product of its axis rotations, written out for three different axes."""
        n = len(group.joints)
        rows = [slice(group.at + k * n, group.at + (k + 1) * n) for k in range(len(group.order))]
        if len(set(group.order)) != 3:
            angles = np.stack([2.0 * half[s] for s in rows], axis=-1)
            r[:, group.joints] = np.moveaxis(quat.from_euler(angles, group.order), -1, 0)
            return
        (s1, s2, s3), (c1, c2, c3) = (sin[s] for s in rows), (cos[s] for s in rows)
        i, j, k = ("XYZ".index(letter) for letter in group.order)
        e = 1.0 if (i, j, k) in ((0, 1, 2), (1, 2, 0), (2, 0, 1)) else -1.0
        # (c1 + s1 i)(c2 + s2 j)(c3 + s3 k) with ij = e k, jk = e i, ki = e j, ijk = -e
        cc, ss, sc, cs = c1 * c2, e * (s1 * s2), s1 * c2, c1 * s2
        place: slice | Indices = group.joints
        if int(place[-1]) - int(place[0]) == n - 1:
            place = slice(int(place[0]), int(place[-1]) + 1)
        r[0, place] = cc * c3 - ss * s3
        r[1 + i, place] = sc * c3 + e * (cs * s3)
        r[1 + j, place] = cs * c3 - e * (sc * s3)
        r[1 + k, place] = cc * s3 + ss * c3

    def _mark(self, channels: Array, start: int, stop: int) -> None:
        """Note which joints lack a number in which of the new frames."""
        if self._valid is None:
            self._valid = np.ones((len(self.joints), self._r.shape[2]), dtype=bool)
        missing = np.isnan(channels)
        for i, joint in enumerate(self.joints):
            if joint.channels:
                self._valid[i, start:stop] = ~missing[joint.first : joint.first + len(joint.channels)].any(axis=0)

    def _grow(self, capacity: int) -> None:
        self._r = _longer(self._r, capacity, self.frames)
        if self._positions:
            self._t = _longer(self._t, capacity, self.frames)
        if self._valid is not None:
            held = self._valid
            self._valid = np.ones((len(self.joints), capacity), dtype=bool)
            self._valid[:, : self.frames] = held[:, : self.frames]

    def finish(self) -> tuple[Array, Array, NDArray[np.bool_] | None, list[str]]:
        """Local rotations ``(F, J, 4)``, translations ``(F, J, 3)`` or ``(1, J, 3)``, validity ``(F, J)`` or None, and remarks."""
        notes: list[str] = []
        r = _shorter(self._r, self.frames)
        moving = bool(self._positions) and self.frames > 0
        t = _shorter(self._t, self.frames) if moving else np.ascontiguousarray(self.offsets.T[:, :, None])
        valid = None
        if self._valid is not None:
            valid = self._valid[:, : self.frames]
            self._hold(r, t, valid)
            valid = valid.T
        if moving:
            notes += self._add_offsets(t)
        return r.transpose(2, 1, 0), t.transpose(2, 1, 0), valid, notes

    def _hold(self, r: Array, t: Array, valid: NDArray[np.bool_]) -> None:
        """Invalid values show the last valid ones before them (at the start: the first after; nowhere: the rest pose)."""
        frames = np.arange(self.frames)
        for i in np.flatnonzero(~valid.all(axis=1)).tolist():
            known = valid[i]
            if not known.any():
                r[:, i] = np.array([1.0, 0.0, 0.0, 0.0])[:, None]
                if t.shape[2] == self.frames:
                    t[:, i] = self.offsets[i][:, None]
                continue
            source = np.maximum.accumulate(np.where(known, frames, -1))
            source[source < 0] = int(np.argmax(known))
            r[:, i] = r[:, i, source]
            if t.shape[2] == self.frames:
                t[:, i] = t[:, i, source]

    def _add_offsets(self, t: Array) -> list[str]:
        """Undo the replacing where the position channels are relative to the offset (see the module's head)."""
        relative: list[str] = []
        for i in sorted({joint for joint, _, _ in self._positions}):
            axes = [axis for joint, axis, _ in self._positions if joint == i]
            longest = max(axes, key=lambda axis: abs(float(self.offsets[i, axis])))
            if float(np.abs(t[longest, i]).max()) < _RELATIVE * abs(float(self.offsets[i, longest])):
                t[axes, i] += self.offsets[i, axes][:, None]
                relative.append(self.joints[i].name)
        if not relative:
            return []
        more = f" and {len(relative) - 1} more joints" if len(relative) > 1 else ""
        return [f'The positions of "{relative[0]}"{more} stay close to zero beside a long offset; they were read as relative to it.']


def _group(joints: list[Joint]) -> tuple[list[_Group], Indices]:
    """Joints by rotation order, and the columns of all rotation channels: group after group; first, second, third channels."""
    by_order: dict[str, list[int]] = {}
    columns: list[list[int]] = []
    for i, joint in enumerate(joints):
        turns = [(k, axis) for k, (kind, axis) in enumerate(joint.channels) if kind == "rot"]
        columns.append([joint.first + k for k, _ in turns])
        if turns:
            by_order.setdefault("".join("XYZ"[axis] for _, axis in turns), []).append(i)
    groups: list[_Group] = []
    flat: list[int] = []
    for order, members in by_order.items():
        groups.append(_Group(order, np.array(members, dtype=np.int64), len(flat)))
        flat += itertools.chain.from_iterable([columns[i][k] for i in members] for k in range(len(order)))
    return groups, np.array(flat, dtype=np.int64)


def _longer(a: Array, capacity: int, used: int) -> Array:
    out = np.empty((*a.shape[:2], capacity))
    out[:, :, :used] = a[:, :, :used]
    return out


def _shorter(a: Array, frames: int) -> Array:
    """The first ``frames``; a copy only where much would be wasted otherwise."""
    return a[:, :, :frames] if a.shape[2] <= frames * 1.1 + 16 else a[:, :, :frames].copy()
