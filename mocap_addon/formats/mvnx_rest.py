# SPDX-License-Identifier: GPL-3.0-or-later
"""What an MVNX subject's definitions, pose frames and first frames settle: joints, rest pose, and what the numbers refer to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.skeleton import Skeleton
from .mvnx_scan import Block, PlacedError
from .mvnx_skeleton import Layout, LayoutError, is_prop, layout
from .mvnx_xml import Subject

Array = NDArray[np.float64]

_SAMPLE = 64
_HAND_SPAN = 0.10
"""Metres: the carpus lies at most this far from the hand's origin."""
_FAR = 1e5
"""Metres: a place farther away than this is damage, not motion."""
_SIDES = ("Left", "Right")
_TAGS = {"": ("orientation", "position")} | {s: (f"orientationFingers{s}", f"positionFingers{s}") for s in _SIDES}


@dataclass(frozen=True)
class Pose:
    """A pose frame's numbers, by tag."""

    values: Mapping[str, Array]


@dataclass(frozen=True)
class Rest:
    """The reference pose: its ``kind``, ``offsets (J, 3)`` in parents' frames (in the world for the root), global rotations ``(J, 4)``."""

    kind: str
    parents: NDArray[np.int64]
    offsets: Array
    rotations: Array

    @property
    def local_rotations(self) -> Array:
        """(J, 4): rotations in the parents' frames."""
        above = quat.inv(self.rotations[np.maximum(self.parents, 0)])
        return np.where((self.parents >= 0)[:, None], quat.mul(above, self.rotations), self.rotations)


@dataclass(frozen=True)
class Settled:
    """How to read the frames of one subject."""

    layout: Layout
    rest: Rest
    isb: bool
    finger_frame: str
    width: int
    notes: tuple[str, ...]

    def world(self, block: Block) -> tuple[Array, Array]:
        """Rotations ``(F, J, 4)`` of the joints' body frames and places ``(F, J, 3)`` in the world; NaN where the file has none."""
        q, p = _gather(self.layout, block.values, len(block.attributes))
        if self.isb:
            q = quat.mul(q, self.layout.isb)
        if self.finger_frame == "hand":
            _fingers_into_world(self.layout, q, p)
        return q, p

    def props(self, block: Block) -> Array:
        """(F, P, 7): rotation and place of each prop in the world."""
        out = np.full((len(block.attributes), len(self.layout.props), 7), np.nan)
        for k, (_, column) in enumerate(self.layout.props):
            out[:, k, :4] = _unit(block.values["orientation"][:, 4 * column : 4 * column + 4])
            if "position" in block.values:
                place = block.values["position"][:, 3 * column : 3 * column + 3]
                out[:, k, 4:] = np.where(np.abs(place) > _FAR, np.nan, place)
        return out


def settle(subject: Subject, poses: Mapping[str, Pose], first: Block) -> Settled:
    """Look at everything that stands before and in the first block of motion."""
    counts = {side: first.values[_TAGS[side][0]].shape[1] // 4 for side in ("", *_SIDES) if _TAGS[side][0] in first.values}
    try:
        lay = layout(subject, counts)
    except LayoutError as error:
        raise PlacedError(f"The subject cannot be read: {error}; export it from MVN again.", subject.offset) from None
    sample = first.rows(np.linspace(0, len(first.attributes) - 1, min(_SAMPLE, len(first.attributes))).astype(np.int64).tolist())
    q, p = _gather(lay, sample.values, len(sample.attributes))
    isb = _is_isb(lay, q, p, "tpose" in poses and _looks_isb(lay, poses["tpose"]))
    if isb:
        q = quat.mul(q, lay.isb)
    frame = _finger_frame(lay, q, p)
    notes: list[str] = []
    loose = [name for name, _ in lay.props if not is_prop(name)]
    if loose:
        named = ", ".join(f'"{n}"' for n in loose[:4]) + (" and others" if len(loose) > 4 else "")
        notes.append(f"Nothing joins {named} to the body; kept beside it as props.")
    if isb:
        notes.append("The orientations are those of ISB segment frames; they were turned into MVN's own.")
    if frame == "unknown":
        notes.append("Nothing says in which frame the fingers are given; the world was taken.")
    if frame == "hand":
        _fingers_into_world(lay, q, p)
    offsets = np.where(np.isfinite(lay.offsets), lay.offsets, _measured_offsets(lay, q, p))
    rest = _rest(lay, poses, isb, offsets, notes)
    return Settled(lay, rest, isb, frame, first.values["orientation"].shape[1], tuple(notes))


def _gather(lay: Layout, values: Mapping[str, Array], frames: int) -> tuple[Array, Array]:
    """The numbers of the joints, in their order: unit quaternions ``(F, J, 4)`` and places ``(F, J, 3)`` as written."""
    q = np.full((frames, len(lay.names), 4), np.nan, order="F")
    p = np.full((frames, len(lay.names), 3), np.nan, order="F")
    groups = np.array(lay.groups)
    for side, (rotation_tag, place_tag) in _TAGS.items():
        here = np.flatnonzero(groups == side)
        columns = lay.columns[here]
        for tag, out, size in ((rotation_tag, q, 4), (place_tag, p, 3)):
            table = values.get(tag)
            if table is not None and here.size and table.shape[1] >= size * (int(columns.max()) + 1):
                out[:, here] = table.reshape(frames, -1, size)[:, columns]
    p[np.abs(p) > _FAR] = np.nan
    return _unit(q), p


def _unit(q: Array) -> Array:
    """Unit quaternions; NaN where the length is far from one, which no rotation is."""
    with np.errstate(over="ignore"):
        norm = np.sqrt(q[..., 0] ** 2 + q[..., 1] ** 2 + q[..., 2] ** 2 + q[..., 3] ** 2)
    norm[~((norm > 0.5) & (norm < 2.0))] = np.nan
    return q / norm[..., None]


# -- frames of reference -------------------------------------------------------------------------------------------------------


def _link_miss(lay: Layout, q: Array, p: Array) -> float:
    """Metres: how far the file's places miss its orientations on the defined bones; the worst body link's median. NaN without places."""
    body = np.array([j for j in range(1, len(lay.names)) if lay.groups[j] == "" and np.isfinite(lay.offsets[j, 0])], dtype=np.int64)
    if not body.size:
        return np.nan
    above = lay.parents[body]
    miss = p[:, above] + quat.rotate(q[:, above], lay.offsets[body]) - p[:, body]
    far = _length(miss)
    far = far[np.isfinite(far).all(axis=1)]
    return float(np.median(far, axis=0).max()) if len(far) else np.nan


def _length(v: Array) -> Array:
    return np.sqrt(v[..., 0] ** 2 + v[..., 1] ** 2 + v[..., 2] ** 2)


def _is_isb(lay: Layout, q: Array, p: Array, guess: bool) -> bool:
    plain, turned = _link_miss(lay, q, p), _link_miss(lay, quat.mul(q, lay.isb), p)
    if np.isnan(plain) or np.isnan(turned):
        return guess
    return plain > 0.02 and turned < 0.5 * plain


def _looks_isb(lay: Layout, pose: Pose) -> bool:
    """Whether a T-pose frame has its arms turned as ISB does (for files without positions)."""
    q, _ = _gather(lay, {k: v[None] for k, v in pose.values.items()}, 1)
    turned = [j for j, n in enumerate(lay.names) if n.endswith("UpperArm")]
    return bool(turned) and bool(np.all(quat.angle(q[0, turned], np.broadcast_to(quat.IDENTITY, (len(turned), 4))) > 1.0))


def _finger_frame(lay: Layout, q: Array, p: Array) -> str:
    """ "world" or "hand": where the first finger segment lies near its hand; "unknown" when it has no places; "" without fingers."""
    tops = [j for j in range(1, len(lay.names)) if lay.groups[j] and not lay.groups[int(lay.parents[j])]]
    if not tops:
        return ""
    above = lay.parents[tops]
    to_hand, to_origin = _length(p[:, tops] - p[:, above]), _length(p[:, tops])
    good = np.isfinite(to_hand) & np.isfinite(to_origin)
    if not good.any():
        return "unknown"
    near, local = float(np.median(to_hand[good])), float(np.median(to_origin[good]))
    return "world" if near <= max(_HAND_SPAN, local) else "hand"


def _fingers_into_world(lay: Layout, q: Array, p: Array) -> None:
    for side in _SIDES:
        here = [j for j, group in enumerate(lay.groups) if group == side]
        if here:
            hand = lay.names.index(f"{side}Hand")
            p[:, here] = p[:, [hand]] + quat.rotate(q[:, [hand]], p[:, here])
            q[:, here] = quat.mul(q[:, [hand]], q[:, here])


# -- the rest pose -------------------------------------------------------------------------------------------------------------


def _measured_offsets(lay: Layout, q: Array, p: Array) -> Array:
    """(J, 3): median place of each joint in its parent's frame; zero where nothing was measured."""
    above = np.maximum(lay.parents, 0)
    with np.errstate(invalid="ignore"):
        local = quat.rotate(quat.inv(q[:, above]), p - p[:, above])
    local = local[np.isfinite(local).all(axis=(1, 2))] if not np.isfinite(local).all() else local
    return np.median(local, axis=0) if len(local) else np.zeros((len(lay.names), 3))


def _rest(lay: Layout, poses: Mapping[str, Pose], isb: bool, offsets: Array, notes: list[str]) -> Rest:
    """The T-pose frame; without one the pose in which all segments stand like the world, which is a T-pose by MVN's definition."""
    for kind in ("tpose", "tpose-isb", "identity"):
        if kind not in poses:
            continue
        q, p = _gather(lay, {k: v[None] for k, v in poses[kind].values.items()}, 1)
        if _is_isb(lay, q, p, kind == "tpose-isb" or isb):
            q = quat.mul(q, lay.isb)
        rotations = np.where(np.isfinite(q[0]), q[0], quat.IDENTITY)
        if not np.isfinite(q[0, [i for i, g in enumerate(lay.groups) if g == ""]]).all():
            continue
        place = p[0, 0] if np.isfinite(p[0, 0]).all() else None
        return _placed(Rest(kind, lay.parents, offsets, rotations), lay, place)
    notes.append("The file has no T-pose frame; the pose with all segments straight and arms out is the rest pose.")
    return _placed(Rest("straight", lay.parents, offsets, quat.identity(len(lay.names))), lay, None)


def _placed(rest: Rest, lay: Layout, place: Array | None) -> Rest:
    """The root where the pose frame has it, else so that the lowest point of the body stands on the floor."""
    offsets = rest.offsets.copy()
    offsets[0] = 0.0
    if place is None:
        body = Skeleton(lay.names, lay.parents, offsets, rest.local_rotations, lay.ends)
        low = np.concatenate([body.rest_global_positions[:, 2], body.rest_global_ends[:, 2]])
        place = np.array([0.0, 0.0, -float(np.nanmin(low))])
    offsets[0] = place
    return replace(rest, offsets=offsets)
