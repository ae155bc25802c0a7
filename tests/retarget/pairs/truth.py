# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pair must come to, written out joint by joint and, for chains, frame by frame.

A target's joint that has its own link in the source has the target's own version of the master's motion. Else

* a link that the source lacks keeps its rest to its parent;
* of a chain with other links than the source's, one link aims along the source's chord with the last link's twist, several take the slerp
  of the two source links whose middles (by length along the chain) lie round their own; turns are counted from each body's own rest, which
  shows only where fingers of other counts are curled at rest;
* a limb bone that the source splits takes the chord, above elbow and knee with the last link's twist (the hinge hangs on it), below them
  with the first's (the hinge turns it); one that the target splits turns at its first link;
* but where the second link is a twist bone the roll about the limb, counted from the target's rest, is shared along it: of an upper arm or
  thigh the first link has only as much as it is long, of a forearm or shin the second has as much of what hand or foot roll.

Turns are away from the T-pose, ``(F, J, 3, 3)``, so that the target's global rotations are ``turns @ frames``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .links import LIMBS
from .master import FINGERS, SIDES
from .matrices import about, between, smallest, unit
from .standard import Body

OWN, CHAIN, STATIC = "own", "chain", "static"


@dataclass(frozen=True)
class Truth:
    """Turns ``(F, J, 3, 3)``, places ``(F, J, 3)`` at the master's size, and by which rule each joint got its turn."""

    turns: np.ndarray
    positions: np.ndarray
    rules: tuple[str, ...]


def expected(source: Body, target: Body) -> Truth:
    """The truth of a pair."""
    turns, rules = target.turns.copy(), [STATIC] * len(target.links)
    given: dict[int, np.ndarray | None] = {}
    for role, joints in target.roles.items():
        if role in source.roles and role != "root":
            given |= _role(role, joints, source, target)
    for j, p in enumerate(target.parents):
        if j in given:
            turn = given[j]
            rules[j] = OWN if turn is None else CHAIN
            if turn is not None:
                turns[:, j] = turn
        elif p >= 0:  # at rest to its parent
            turns[:, j] = turns[:, p] @ target.rest[p].T @ target.rest[j]
    for role, follows in ((side + part, side + tip) for side in SIDES for part, tip in LIMBS.items()):
        own, tip = (target.roles.get(r, (-1,))[0] for r in (role, follows))
        if own in given and tip in given:
            _share(role, own, tip, source, target, turns, rules)
    _leaves(source, target, turns, rules)
    return Truth(turns, target.forward(turns), tuple(rules))


def _share(role: str, own: int, tip: int, source: Body, target: Body, turns: np.ndarray, rules: list[str]) -> None:
    """The roll of a limb that the target splits into a bone and a twist bone, frame by frame."""
    aims = target.way(own, tip)
    alike = [target.links[j].name for j in aims] == [
        source.links[s].name for s in source.way(source.roles[role][0], source.roles[_tip_of(role)][0])
    ]
    last = target.links[aims[-1]]
    if alike or last.name in NO_TWIST or not (last.key.endswith("/2") or last.name in TWIST):
        return
    second, (start, middle, end) = aims[-1], (target.places[j] for j in (own, aims[-1], tip))
    first = float(np.linalg.norm(middle - start) / np.linalg.norm(end - start))
    upper = "Upper" in role
    axis, angles = _roll(target, turns, own, tip, upper=upper)
    for f, angle in enumerate(angles):
        whole = turns[f, own] @ target.rest[own].T
        if upper:
            turns[f, own] = whole @ about(axis, -(1.0 - first) * angle) @ target.rest[own]
        else:
            turns[f, second] = whole @ about(axis, first * angle) @ target.rest[second]
    rules[own if upper else second] = CHAIN


def _leaves(source: Body, target: Body, turns: np.ndarray, rules: list[str]) -> None:
    """Twist bones beside limbs: of hand's or foot's roll the part that they stand along the limb; of the limb's own the rest taken back."""
    theirs = {link.name for link in source.links}
    for j, link in enumerate(target.links):
        if link.leaf_of is None or link.name in theirs:
            continue
        limb, end, share = link.leaf_of
        own, tip = target.keys.index(limb), target.keys.index(end)
        upper = "Upper" in limb
        axis, angles = _roll(target, turns, own, tip, upper=upper)
        for f, angle in enumerate(angles):
            turns[f, j] = turns[f, own] @ target.rest[own].T @ about(axis, (share - 1.0 if upper else share) * angle) @ target.rest[j]
        rules[j] = CHAIN


def _roll(target: Body, turns: np.ndarray, own: int, tip: int, *, upper: bool) -> tuple[np.ndarray, np.ndarray]:
    """A limb's axis at rest, and degrees frame by frame ``(F,)`` that its end (an upper one's own joint) rolls about it."""
    axis = target.rest[own] @ unit(target.places[tip] - target.places[own])
    holds, turned = (target.parents[own], own) if upper else (own, tip)
    angles = []
    for frame in turns:
        a, b = frame[holds] @ target.rest[holds].T, frame[turned] @ target.rest[turned].T
        apart = a.T @ b
        assert axis @ apart @ axis > np.cos(np.radians(150.0)), "the master swings a limb so far that its roll means nothing"
        around = smallest(axis, apart @ axis).T @ apart
        across = unit(np.cross(axis, [0.3, 0.5, 0.7]))
        angles.append(np.arctan2(axis @ np.cross(across, around @ across), across @ around @ across))
    out = np.degrees(np.unwrap(angles))
    return axis, out - 360.0 * np.rint(np.median(out) / 360.0)


NO_TWIST = frozenset({"lwrist", "rwrist"})
"""Second links that are joints of their own."""

TWIST = frozenset({"左腕捩", "右腕捩"})
"""Helpers that are twist bones."""


def _tip_of(role: str) -> str:
    part = role.removeprefix("left").removeprefix("right")
    return role[: -len(part)] + LIMBS[part]


def _role(role: str, joints: tuple[int, ...], source: Body, target: Body) -> dict[int, np.ndarray | None]:
    """Target joint -> turns; None where its own version is the truth."""
    have = source.roles[role]
    part = role.removeprefix("left").removeprefix("right")
    if part in LIMBS:
        return _limb(role, LIMBS[part], source, target)
    if [source.links[s].motion for s in have] == [target.links[j].motion for j in joints]:
        return dict.fromkeys(joints)
    if len(have) == len(joints):
        return {j: source.turns[:, s] for j, s in zip(joints, have, strict=True)}
    finger = part in FINGERS
    away = source.turns[:, have] @ np.swapaxes(source.rest[list(have)], -1, -2)  # from its own rest
    if len(joints) == 1:
        vectors = [source.rest[s] @ v for s, v in zip(have, _vectors(source, role), strict=True)]
        out = {joints[0]: _chord(away, vectors[:-1] if finger else vectors, -1)}
    else:
        at, known = _middles(_lengths(target, role)), _middles(_lengths(source, role))
        out = {j: _blend(away, known, u) for j, u in zip(joints, at, strict=True)}
    if finger:  # the target's finger starts from its own rest, on a hand that stands as the source's
        hands = (body.rest[body.roles[role[: -len(part)] + "Hand"][0]] for body in (source, target))
        stands = next(hands) @ next(hands).T
        return {j: turn @ stands @ target.rest[j] for j, turn in out.items()}
    return out


def _limb(role: str, follows: str, source: Body, target: Body) -> dict[int, np.ndarray | None]:
    side = role[: 5 if role.startswith("right") else 4]
    bone, tip = source.roles[role][0], source.roles[side + follows][0]
    links = source.way(bone, tip)
    own = target.roles[role][0]
    aims = target.way(own, target.roles[side + follows][0])
    if [source.links[s].name for s in links] == [target.links[j].name for j in aims]:
        return {j: source.turns[:, s] for j, s in zip(aims, links, strict=True)} if source is not target else dict.fromkeys(aims)
    places = [source.places[j] for j in (*links, tip)]
    if all(source.links[s].motion is None for s in links[1:]) and source.links[bone].motion == target.links[own].motion:
        return {own: None}
    return {own: _chord(source.turns[:, links], [b - a for a, b in pairwise(places)], -1 if "Upper" in role else 0)}


def _vectors(body: Body, role: str) -> list[np.ndarray]:
    """A chain's links in the T-pose, each to the next link; a spine's last to the neck, a neck's to the head, a finger's to its end."""
    joints = body.roles[role]
    out = [body.places[b] - body.places[a] for a, b in pairwise(joints)]
    after = {"spine": ("neck", "head"), "neck": ("head",)}.get(role, ())
    beyond = next((body.roles[r][0] for r in after if r in body.roles), None)
    if beyond is not None:
        return [*out, body.places[beyond] - body.places[joints[-1]]]
    end = body.frames[joints[-1]] @ body.ends[joints[-1]] / body.size
    return [*out, end if np.isfinite(end).all() else np.zeros(3)]


def _lengths(body: Body, role: str) -> list[float]:
    lengths = [float(np.sqrt(v @ v)) for v in _vectors(body, role)]
    if lengths[-1] == 0.0 and len(lengths) > 1:  # an end that nobody knows
        lengths[-1] = sum(lengths) / (len(lengths) - 1)
    return lengths


def _middles(lengths: list[float]) -> list[float]:
    """Where along the chain, 0..1, the middle of each link lies."""
    total, out, so_far = sum(lengths) or 1.0, [], 0.0
    for length in lengths:
        out.append((so_far + 0.5 * length) / total)
        so_far += length
    return out


def _blend(links: np.ndarray, middles: list[float], at: float) -> np.ndarray:
    """(F, 3, 3): the slerp at ``at`` along the chain of links ``(F, n, 3, 3)``, frame by frame."""
    if len(middles) == 1 or at <= middles[0]:
        return links[:, 0]
    for k in range(1, len(middles)):
        if at <= middles[k]:
            share = (at - middles[k - 1]) / (middles[k] - middles[k - 1])
            return np.array([between(frame[k - 1], frame[k], share) for frame in links])
    return links[:, -1]


def _chord(links: np.ndarray, vectors: list[np.ndarray], twist: int) -> np.ndarray:
    """(F, 3, 3): ``minimal(D c0 -> c) D``, ``D`` the turn of link ``twist``, ``c`` the chord, ``c0`` the same in the T-pose."""
    out = np.empty((len(links), 3, 3))
    still = sum(vectors, np.zeros(3))
    for f, frame in enumerate(links):
        chord = sum((turn @ v for turn, v in zip(frame, vectors, strict=False)), np.zeros(3))
        out[f] = smallest(frame[twist] @ still, chord) @ frame[twist]
    return out
