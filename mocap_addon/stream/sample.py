# SPDX-License-Identifier: GPL-3.0-or-later
"""The pose at any time: rotations by slerp on the short arc, places rebuilt from constant bone lengths, roots linearly.

Interpolated world places would change bone lengths and interpolated Euler angles the way; neither happens here. All performers of one
layout are worked on at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..motion import kinematics, quat
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from .frame import NO_CURVES, Frame, local_poses
from .performers import Entry, Follower, Key, Track, decode_together, skeleton_of

Array = NDArray[np.float64]
Item = Track | Follower
_NO_ROWS: Array = np.zeros((0, 4))


@dataclass(frozen=True, slots=True)
class Sampled:
    """A moment of one performer, prop or face, in the project's axes and metres.

    ``rotations (J, 4)`` and ``translations (J, 3)`` are local to the parents of ``skeleton``, whose rest is the T-pose. A prop has one
    joint: its place in the world. A face has none, and curves alone. ``time`` is the moment on the track's own axis; ``held``: nothing
    newer has arrived, the last pose is shown; ``stale``: nothing at all was heard for half a second; ``age``: seconds since the last
    packet.
    """

    key: Key
    name: str
    skeleton: Skeleton | None
    rotations: Array
    translations: Array
    time: float
    age: float
    held: bool
    stale: bool
    curves: Mapping[str, float] = field(default_factory=lambda: NO_CURVES)
    time_code: str | None = None
    valid: NDArray[np.bool_] | None = None

    @property
    def positions(self) -> Array:
        """(J, 3): joints in the world, metres."""
        assert self.skeleton is not None
        return kinematics.forward(self.rotations, self.translations, self.skeleton.parents)[1]

    def take(self) -> Take:
        """This moment as a take of one frame: for matching, tables, and calibration from the live pose."""
        assert self.skeleton is not None
        return Take(
            self.name,
            self.skeleton,
            np.zeros(1),
            self.rotations[None],
            self.translations[None],
            curves={k: np.array([v]) for k, v in self.curves.items()},
            performer=self.name,
            timecode=self.time_code,
        )


class _Pose:
    """An entry's frame on the track's skeleton."""

    __slots__ = ("frame", "rotations", "skeleton", "translations")

    def __init__(self, frame: Frame, skeleton: Skeleton | None) -> None:
        self.frame, self.skeleton = frame, skeleton
        self.rotations: Array = _NO_ROWS
        self.translations: Array = _NO_ROWS


def sample(items: Iterable[Item], now: float, back: float = 0.1) -> dict[Key, Sampled]:
    """Every track's pose of ``back`` seconds ago, ``now`` being our time. Tracks that have nothing yet are left out."""
    found: list[tuple[Item, float, _Pose, _Pose, float, bool]] = []
    waiting: list[_Pose] = []
    moments = [(item, at, pair) for item in items if (pair := item.around(at := item.axis(now) - back)) is not None]
    decode_together([entry.datagram for _, _, pair in moments for entry in pair[:2]])
    for item, at, (first, second, share) in moments:
        a = _pose(item, first, waiting)
        b = a if second is first else _pose(item, second, waiting)
        a, b = a or b, b or a
        if a is None or b is None:
            a = b = _nearest(item, at, waiting)
            if a is None:
                continue
        assert b is not None
        newest = (item.leader if isinstance(item, Follower) else item).times[-1]
        found.append((item, at, a, b, share, at > newest))
    _settle(waiting)
    return _mix(found, now)


def _pose(item: Item, entry: Entry, waiting: list[_Pose]) -> _Pose | None:
    name = f"{item.kind} {item.source}"
    pose = entry.cache.get(name)
    if not isinstance(pose, _Pose):
        frame = entry.datagram.frame(item.kind, item.source)
        if frame is None:
            return None
        pose = entry.cache[name] = _Pose(frame, _skeleton(item, entry, frame))
        if pose.skeleton is not None:
            waiting.append(pose)
    elif pose.skeleton is not item.skeleton and item.skeleton is not None and item.kind == "body":
        pose.skeleton = item.skeleton
        waiting.append(pose)
    return pose


def _nearest(item: Item, at: float, waiting: list[_Pose]) -> _Pose | None:
    """The newest whole frame before ``at``, where both frames round it are broken."""
    entries = (item.leader if isinstance(item, Follower) else item).entries
    for entry in reversed([e for e in entries if e.time <= at][-8:]):
        if (pose := _pose(item, entry, waiting)) is not None:
            return pose
    return None


def _skeleton(item: Item, entry: Entry, frame: Frame) -> Skeleton | None:
    """The track's skeleton: asked for again when the layout changes, and once a second, for what the sender told in the meantime."""
    if item.kind == "morphs":
        return None
    mark = (frame.joints, int(entry.arrival))
    if item.skeleton_of != mark:
        item.skeleton_of = mark
        if item.kind == "prop":
            if item.skeleton is None or item.skeleton.names != frame.joints:
                item.skeleton = Skeleton(frame.joints, np.full(len(frame.joints), -1), np.zeros((len(frame.joints), 3)))
        else:
            sent = skeleton_of(entry.datagram, frame)
            if sent is not None and (item.skeleton is None or sent.content != item.skeleton.content):
                item.skeleton = sent
    return item.skeleton


def _settle(poses: list[_Pose]) -> None:
    """Local rotations and translations of frames; those of one layout at once."""
    groups: dict[tuple[int, tuple[str, ...], str, bool], list[_Pose]] = {}
    for pose in poses:
        assert pose.skeleton is not None
        frame = pose.frame
        plain = frame.rotations is not None and frame.positions is not None and frame.joints == pose.skeleton.names
        plain = plain and frame.space == "global" and len(pose.skeleton.roots) == 1 and pose.skeleton.parents[0] < 0
        groups.setdefault((len(pose.skeleton), pose.skeleton.names, frame.space, plain), []).append(pose)
    for (_, _, _, plain), members in groups.items():
        if not plain:
            for pose in members:
                assert pose.skeleton is not None
                rotations, translations = local_poses([pose.frame], pose.skeleton)
                pose.rotations, pose.translations = rotations[0], translations[0]
            continue
        whole = np.array([pose.frame.rotations for pose in members])
        parents = members[0].skeleton.parents  # type: ignore[union-attr]
        local = whole.copy()
        local[:, 1:] = quat.mul(quat.inv(whole[:, parents[1:]]), whole[:, 1:])
        for i, pose in enumerate(members):
            assert pose.skeleton is not None and pose.frame.positions is not None
            pose.rotations = local[i]
            pose.translations = pose.skeleton.rest_translations.copy()
            place = pose.frame.positions[0]
            if np.isfinite(place).all():
                pose.translations[0] = place


def _mix(found: list[tuple[Item, float, _Pose, _Pose, float, bool]], now: float) -> dict[Key, Sampled]:
    out: dict[Key, Sampled] = {}
    groups: dict[int, list[int]] = {}
    for i, (_, _, a, b, _, _) in enumerate(found):
        same = len(a.rotations) == len(b.rotations)
        groups.setdefault(len(a.rotations) if same else -1 - i, []).append(i)
    turns: dict[int, Array] = {}
    for size, members in groups.items():
        if size <= 0:
            continue
        first = np.array([found[i][2].rotations for i in members])
        second = np.array([found[i][3].rotations for i in members])
        share = np.array([found[i][4] for i in members])[:, None]
        for i, row in zip(members, quat.slerp(first, second, share), strict=True):
            turns[i] = row
    for i, (item, at, a, b, share, held) in enumerate(found):
        near = b if share >= 0.5 else a
        places = near.translations
        if i in turns:
            places = a.translations * (1.0 - share) + b.translations * share
        out[item.key] = Sampled(
            item.key,
            item.name,
            near.skeleton,
            turns.get(i, near.rotations),
            places,
            at,
            now - item.last_heard,
            held,
            item.stale(now),
            _curves(a.frame, b.frame, share),
            near.frame.time_code,
            near.frame.valid,
        )
    return out


def _curves(a: Frame, b: Frame, share: float) -> Mapping[str, float]:
    if not a.curves and not b.curves:
        return NO_CURVES
    return {
        name: a.curves.get(name, b.curves.get(name, 0.0)) * (1.0 - share) + b.curves.get(name, a.curves.get(name, 0.0)) * share
        for name in {**a.curves, **b.curves}
    }
