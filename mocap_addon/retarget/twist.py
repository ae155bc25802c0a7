# SPDX-License-Identifier: GPL-3.0-or-later
"""Twist bones of the target: the roll of a limb about its own axis, shared along it.

A hand that is turned by 90 degrees about the forearm turns the skin at the wrist by 90 degrees over no length at all. Twist bones
(:mod:`mocap_addon.rig.twist`) spread it. What they do follows from the target's own pose alone, so corrections and body sliders count.

Derivation
----------
``b`` is the basis of the bone that gives the roll (its turn away from rest in its parent's frame): of a forearm or shin what hangs on its
end, hand or foot; of an upper arm or thigh itself. ``d`` is the limb's axis at rest in that bone's own frame. The roll is the angle of the
twist of ``b`` about ``d`` (swing-twist: ``b = swing twist``; the swing's axis is perpendicular to ``d``, so that ``b = twist swing'`` has
the same twist: it does not matter from which side it is counted),

    roll = 2 atan2(b_xyz . d, b_w)                                                                             (1)

counted from the target's rest pose, for there its skin is not wrung. With ``g`` the share and ``Q(d, a)`` a turn by ``a`` about ``d``:

* beside a forearm or shin a bone takes its share on, ``Q(d, g roll)``; beside an upper arm or thigh, which it follows, it takes its share
  back, ``Q(d, -g roll)``: at the shoulder all, so that it swings with the arm and does not roll. A bone that hangs on another such
  bone has the difference of the two.
* a link in the limb turns by ``g roll`` about the line to the next joint, which stays where it is. In a forearm or shin what hangs on its
  end is turned back by as much as all links together, in an upper arm or thigh the limb's bone itself: the last link, hand and foot
  keep their turn in the world, and elbow and knee their hinge. A bone beside such a limb has its share by its place still, less what
  the joint that it hangs on turns more than it did.

The angle (1) is continuous over the frames, also through 180 degrees; it starts on the turn on which the most of it is near zero. With a
swing beyond 150 degrees there is hardly a twist to speak of: it is carried over from the frames round it. No bone turns by more than half a
turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.skeleton import Skeleton
from ..rig.roles import SIDES
from ..rig.table import CorrectionTable, Row
from ..rig.twist import LIMB_NEXT, UPPER, links_between
from .align import Body

Array = NDArray[np.float64]
Places = NDArray[np.intp]

_SWUNG = np.cos(np.radians(75.0)) ** 2
"""Square of the cosine of half a swing of 150 degrees."""


@dataclass(eq=False)
class _Turns:
    """Turns by shares of rolls: of which bone (its place among the keyed ones), about which axis in its rest frame, how much of which
    roll."""

    bones: list[int] = field(default_factory=list[int])
    axes: list[Array] = field(default_factory=list[Array])
    gains: list[float] = field(default_factory=list[float])
    rolls: list[int] = field(default_factory=list[int])

    def add(self, bone: int, axis: Array, gain: float, roll: int) -> None:
        self.bones.append(bone)
        self.axes.append(axis)
        self.gains.append(gain)
        self.rolls.append(roll)


@dataclass(frozen=True, eq=False)
class _Steps:
    """:class:`_Turns` as arrays: n turns; ``axes`` and ``gains`` of one table ``(n, 3)``, ``(n,)`` or of many ``(P, n, 3)``, ``(P, n)``."""

    bones: Places
    axes: Array
    gains: Array
    rolls: Places

    def turns(self, rolls: Array) -> Array:
        """(F, n, 4) from rolls ``(F, m)``; radians."""
        half = 0.5 * np.clip(self.gains * rolls[:, self.rolls], -np.pi, np.pi)
        out = np.empty((*half.shape, 4), order="F")
        out[..., 0] = np.cos(half)
        sine = np.sin(half)
        for c in range(3):
            out[..., c + 1] = self.axes[..., c] * sine
        return out


def _steps(turns: _Turns) -> _Steps:
    return _Steps(
        np.array(turns.bones, dtype=np.intp),
        np.array(turns.axes, dtype=np.float64).reshape(-1, 3),
        np.array(turns.gains, dtype=np.float64),
        np.array(turns.rolls, dtype=np.intp),
    )


@dataclass(frozen=True, eq=False)
class Twists:
    """The twist rows of a table, made ready.

    Parameters
    ----------
    bones : tuple of int
        Target joints that get keys, twist bones and others, in order.
    kept : (K,) int array
        Places in ``bones`` of those that have keys without twist rows.
    givers, axes : (m,) int array, (m, 3) array
        Place in ``bones`` of the bone that gives each roll, and the limb's axis in its rest frame.
    own, back : turns about a bone's own axis, and against what its parent was turned
    fixed, corrections : (n,) int array, (n, 4) array
        Places in ``bones`` of the twist bones, and their corrections in their own rest frames.
    """

    bones: tuple[int, ...]
    kept: Places
    givers: Places
    axes: Array
    own: _Steps
    back: _Steps
    fixed: Places
    corrections: Array

    @classmethod
    def of(
        cls,
        table: CorrectionTable,
        target: Skeleton,
        body: Body,
        turns: Mapping[int, Array],
        keyed: Sequence[int],
        inherits: NDArray[np.bool_] | None = None,
    ) -> Twists | None:
        """``body``, ``turns``: the target at rest and its alignment (:class:`.build.Bodies`); ``keyed``: joints of the other rows;
        ``inherits``: bones that follow their parent's rotation, None: all.

        None when there is nothing to share.
        """
        rows = [row for row in table.rows if row.rule == "twist"]
        if not rows:
            return None
        limbs = _limbs(rows, table, target)
        if inherits is not None:
            limbs = [limb for limb in limbs if inherits[limb.tip] and all(inherits[joint] for joint in limb.rows)]
        limbs = [limb for limb in limbs if limb.joint in keyed and limb.tip in keyed]
        return _planned(limbs, target, body, turns, keyed) if limbs else None

    @property
    def shape(self) -> tuple[bytes, ...]:
        """Equal for plans whose arrays can be stacked."""
        parts = (self.kept, self.givers, self.own.bones, self.own.rolls, self.back.bones, self.back.rolls, self.fixed)
        return tuple(part.tobytes() for part in parts)

    def apply(self, rotations: Array) -> Array:
        """Bases of the bones of the other rows ``(F, K, 4)``, F frames in order -> of :attr:`bones`."""
        q = self._spread(rotations)
        q = self._turned(q, rolls_of(q[:, self.givers], self.axes))
        for place in self._touched:
            q[:, place] = quat.continuous(q[:, place])
        return q

    @property
    def _touched(self) -> list[int]:
        return sorted({*self.own.bones.tolist(), *self.back.bones.tolist(), *self.fixed.tolist()})

    def _spread(self, rotations: Array) -> Array:
        q = np.empty((len(rotations), len(self.bones), 4), order="F")
        q[:] = quat.IDENTITY
        q[:, self.kept] = rotations
        return q

    def _turned(self, q: Array, rolls: Array) -> Array:
        touched = self._touched
        q[:, self.own.bones] = quat.mul(q[:, self.own.bones], self.own.turns(rolls))
        q[:, self.back.bones] = quat.mul(self.back.turns(rolls), q[:, self.back.bones])
        q[:, self.fixed] = quat.mul(q[:, self.fixed], self.corrections)
        q[:, touched] = quat.normalize(q[:, touched])
        return q


def together(plans: Sequence[Twists], rotations: Array) -> Array:
    """One pose of each of several plans of one shape, ``(P, K, 4)`` -> ``(P, bones, 4)``."""
    like = plans[0]
    stacked = Twists(
        like.bones,
        like.kept,
        like.givers,
        np.array([plan.axes for plan in plans]),
        _stacked([plan.own for plan in plans]),
        _stacked([plan.back for plan in plans]),
        like.fixed,
        np.array([plan.corrections for plan in plans]),
    )
    q = stacked._spread(rotations)  # pyright: ignore[reportPrivateUsage]
    half, _ = _halves(q[:, stacked.givers], stacked.axes)
    return stacked._turned(q, 2.0 * (half - np.pi * np.rint(half / np.pi)))  # pyright: ignore[reportPrivateUsage]


def _stacked(steps: Sequence[_Steps]) -> _Steps:
    return _Steps(steps[0].bones, np.array([s.axes for s in steps]), np.array([s.gains for s in steps]), steps[0].rolls)


# --- the roll ---


def _halves(q: Array, axes: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Half the twist of ``q (F, m, 4)`` about unit ``axes``, up to half turns; and where there is hardly one. ``(F, m)`` each."""
    along = np.sum(q[..., 1:] * axes, axis=-1)
    return np.arctan2(along, q[..., 0]), along**2 + q[..., 0] ** 2 < _SWUNG


def rolls_of(q: Array, axes: Array) -> Array:
    """(F, m): radians that ``q (F, m, 4)`` turn about unit ``axes (m, 3)``, continuous over the frames; see (1)."""
    half, unclear = _halves(q, axes)
    out = np.unwrap(half, axis=0, period=np.pi)
    out -= np.pi * np.rint(np.median(out, axis=0) / np.pi)
    for k in np.flatnonzero(unclear.any(axis=0) & ~unclear.all(axis=0)).tolist():
        out[:, k] = _carried_over(half[:, k], ~unclear[:, k])
    return 2.0 * out


def _carried_over(half: Array, clear: NDArray[np.bool_]) -> Array:
    """(F,): half angles, each clear stretch on the turn on which the most of it is near zero, straight lines between them."""
    at = np.flatnonzero(clear)
    stretches = np.split(at, np.flatnonzero(np.diff(at) > 1) + 1)
    values = [np.unwrap(half[one], period=np.pi) for one in stretches]
    values = [one - np.pi * np.rint(np.median(one) / np.pi) for one in values]
    return np.interp(np.arange(len(half)), at, np.concatenate(values))


# --- the plan ---


@dataclass(frozen=True, eq=False)
class _Limb:
    role: str
    joint: int
    tip: int
    rows: dict[int, Row]  # by joint


def _planned(limbs: Sequence[_Limb], target: Skeleton, body: Body, turns: Mapping[int, Array], keyed: Sequence[int]) -> Twists:
    added = sorted(joint for limb in limbs for joint in limb.rows)
    bones = tuple(sorted({*keyed, *added}))
    place = {joint: k for k, joint in enumerate(bones)}
    own, back = _Turns(), _Turns()
    givers: list[int] = []
    axes: list[Array] = []
    for limb in limbs:
        giver = limb.joint if limb.role.endswith(UPPER) else limb.tip
        givers.append(place[giver])
        axes.append(_axis(target, limb.joint, limb.tip, giver))
        between = links_between(target, limb.joint, limb.tip)
        links = [joint for joint in limb.rows if joint in between]
        gains = _plan_links(limb, links, target, place, len(givers) - 1, own, back) if links else {}
        _plan_beside(limb, [j for j in limb.rows if j not in between], target, place, len(givers) - 1, own, gains)
    by_joint = {joint: row for limb in limbs for joint, row in limb.rows.items()}
    fixed = [_correction(by_joint[joint], joint, target, body, turns) for joint in added]
    return Twists(
        bones,
        np.array([place[joint] for joint in keyed], dtype=np.intp),
        np.array(givers, dtype=np.intp),
        np.array(axes).reshape(-1, 3),
        _steps(own),
        _steps(back),
        np.array([place[joint] for joint in added], dtype=np.intp),
        np.array(fixed).reshape(-1, 4),
    )


def _limbs(rows: Sequence[Row], table: CorrectionTable, target: Skeleton) -> list[_Limb]:
    """The limbs that twist rows belong to; those whose end the table does not move have no roll to share."""
    first = _first_joints(table, target)
    found: dict[str, dict[int, Row]] = {}
    for row in rows:
        limb = _limb_of(row, target, first)
        if limb is not None and (row.blend > 0.0 or any(row.correction)):
            found.setdefault(limb, {})[target.index(row.target)] = row
    out: list[_Limb] = []
    for role, members in found.items():
        side = next(s for s in SIDES if role.startswith(s))
        tip = first.get(side + LIMB_NEXT[role.removeprefix(side)])
        if tip is not None and target.is_below(tip, first[role]):
            out.append(_Limb(role, first[role], tip, dict(sorted(members.items()))))
    return out


def _first_joints(table: CorrectionTable, target: Skeleton) -> dict[str, int]:
    """Role -> its first joint in the table."""
    out: dict[str, int] = {}
    for row in table.rows:
        if row.rule != "twist":
            out.setdefault(row.role, target.index(row.target))
    return out


def _limb_of(row: Row, target: Skeleton, first: Mapping[str, int]) -> str | None:
    """The role of the nearest limb bone above a twist row's bone, or None."""
    limbs = {first[role]: role for side in SIDES for part in LIMB_NEXT if (role := side + part) in first}
    return next((limbs[j] for j in target.ancestors(target.index(row.target)) if j in limbs), None)


def strays(table: CorrectionTable, target: Skeleton) -> tuple[str, ...]:
    """A sentence where twist rows have bones that hang on no limb of the table, which keep their pose; else nothing."""
    first = _first_joints(table, target)
    names = [f'"{row.target}"' for row in table.rows if row.rule == "twist" and _limb_of(row, target, first) is None]
    return (
        (f"These are to share the roll of a limb, but hang on none of the table and keep their pose: {', '.join(names)}.",) if names else ()
    )


def _plan_beside(
    limb: _Limb,
    joints: Sequence[int],
    target: Skeleton,
    place: Mapping[int, int],
    roll: int,
    own: _Turns,
    gains: Mapping[int, float],
) -> None:
    """``gains``: by how much of the roll joints of the limb turn more than they did: what hangs on them has that already."""
    sign = -1.0 if limb.role.endswith(UPPER) else 1.0
    for joint in joints:
        above = next((j for j in target.ancestors(joint) if j == limb.joint or j in joints or j in gains), limb.joint)
        already = sign * limb.rows[above].blend if above in joints else gains.get(above, 0.0)
        own.add(place[joint], _axis(target, limb.joint, limb.tip, joint), sign * limb.rows[joint].blend - already, roll)


def _plan_links(
    limb: _Limb, links: Sequence[int], target: Skeleton, place: Mapping[int, int], roll: int, own: _Turns, back: _Turns
) -> dict[int, float]:
    """Turns of the links; by how much of the roll each joint of the chain turns more than it did."""
    chain = [limb.joint, *links, limb.tip]
    shares = np.array([0.0, *(limb.rows[joint].blend for joint in links)])
    total = np.cumsum(shares)
    if total[-1] > 1.0:
        total /= total[-1]
    gains = total - total[-1] if limb.role.endswith(UPPER) else total
    for (joint, following), gain in zip(pairwise(chain), gains.tolist(), strict=True):
        if gain:
            own.add(place[joint], _axis(target, joint, following, joint), gain, roll)
            back.add(place[following], _axis(target, joint, following, following), -gain, roll)
    return dict(zip(chain, gains.tolist(), strict=False))


def _axis(target: Skeleton, start: int, end: int, frame: int) -> Array:
    """(3,): from one joint to the other at rest, in the rest frame of ``frame``, of length 1."""
    way = target.rest_global_positions[end] - target.rest_global_positions[start]
    length = float(np.linalg.norm(way))
    return quat.rotate(quat.inv(target.rest_global_rotations[frame]), way / length) if length > 1e-9 else np.array([0.0, 1.0, 0.0])


def _correction(row: Row, joint: int, target: Skeleton, body: Body, turns: Mapping[int, Array]) -> Array:
    """(4,): ``E^-1 C E`` with ``E = R B T0``: the row's correction in the bone's own frame."""
    from .build import correction_of

    e = quat.mul(quat.mul(turns.get(joint, quat.IDENTITY), body.turn), target.rest_global_rotations[joint])
    return quat.mul(quat.mul(quat.inv(e), correction_of(row)), e)
