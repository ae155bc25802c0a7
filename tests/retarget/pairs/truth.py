# SPDX-License-Identifier: GPL-3.0-or-later
"""What a pair must come to, written out joint by joint and, for chains, frame by frame.

A target's joint that has its own link in the source has the target's own version of the master's motion. Else

* a link that the source lacks keeps its rest to its parent;
* of a chain with other links than the source's, one link aims along the source's chord with the last link's twist, several take the slerp
  of the two source links whose middles (by length along the chain) lie round their own; turns are counted from each body's own rest, which
  shows only where fingers of other counts are curled at rest;
* a limb bone that the source splits takes the chord, above elbow and knee with the last link's twist (the hinge hangs on it), below them
  with the first's (the hinge turns it); one that the target splits turns at its first link.

Turns are away from the T-pose, ``(F, J, 3, 3)``, so that the target's global rotations are ``turns @ frames``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .links import LIMBS
from .master import FINGERS
from .matrices import between, smallest
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
    return Truth(turns, target.forward(turns), tuple(rules))


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
