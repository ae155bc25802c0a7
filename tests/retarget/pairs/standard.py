# SPDX-License-Identifier: GPL-3.0-or-later
"""A standard: the master body under declared operators, built.

Rest poses keep to one rule, so that every pair has one truth. A limb's rest is its T-pose turned, each bone in its parent's frame, about
one axis across the bone: the upper arm in the plane through it and straight down, the thigh in the plane through it and the body's side,
elbow, knee, wrist and fingers about their hinges. Then the smallest inherited turn from any such rest to any other undoes one and makes the
other exactly. Rests apart from that rule (arms forward *and* down) differ by the holonomy of the smallest turns, up to about 2 degrees of
twist: a property of minimal swings, not of a pair. Soles stand flat, feet turn by their heading alone, a hand without fingers is straight
at rest.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from mocap_addon.motion import quat
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import Take

from .declared import Standard
from .links import Link, family_file, links_of
from .master import PARENTS, PLACES, SIDES, motion, tip
from .matrices import FORWARD, LEFT, UP, about, between, random_turn, unit


class Body:
    """A standard, built: skeleton, roles, its own version of the master's motion. J joints, F frames."""

    def __init__(self, standard: Standard, seed: int) -> None:
        self.standard = standard
        self.name, self.family = standard.family, family_file(standard.family)["name"]
        self._rng = np.random.default_rng(seed)
        self.links = links_of(standard)
        self.keys = [link.key for link in self.links]
        at = {key: j for j, key in enumerate(self.keys)}
        self.parents = [-1 if link.above is None else at[link.above] for link in self.links]
        self.places = np.array([link.place for link in self.links])
        self.size = standard.scale / standard.unit
        self.object, self.scene_object = _turned(standard.turn), _turned(standard.scene_turn or standard.turn)
        self.rest = self._rest()
        self.frames = self._frames()
        self.ends = self._ends()
        self.skeleton, self.character = self._skeleton(self.object), self._skeleton(self.scene_object)

    @cached_property
    def moving(self) -> frozenset[tuple[str, float, float]]:
        """The links that have motion of their own."""
        return frozenset(m for link in self.links if (m := link.motion) is not None)

    @cached_property
    def roles(self) -> dict[str, tuple[int, ...]]:
        """Role -> joints, as they were made."""
        out: dict[str, tuple[int, ...]] = {}
        for j, link in enumerate(self.links):
            if link.role:
                out[link.role] = (*out.get(link.role, ()), j)
        return out

    @cached_property
    def below_hips(self) -> np.ndarray:
        """(J,) bool: the hips and what hangs on them."""
        out = np.zeros(len(self.links), dtype=bool)
        for j, p in enumerate(self.parents):
            out[j] = self.keys[j] == "hips" or (p >= 0 and out[p])
        return out

    def way(self, top: int, joint: int) -> list[int]:
        """Joints from ``top`` down to the parent of ``joint``."""
        out: list[int] = []
        while joint != top:
            joint = self.parents[joint]
            out.append(joint)
        return out[::-1]

    # --- its own version of the motion, in character axes at the master's size ---

    @cached_property
    def turns(self) -> np.ndarray:
        """(F, J, 3, 3): turns away from the T-pose."""
        master = motion()
        out = np.empty((len(master.hips), len(self.links), 3, 3))
        for j, link in enumerate(self.links):
            if link.moves is None:
                out[:, j] = np.eye(3) if self.parents[j] < 0 else out[:, self.parents[j]]
                continue
            turn = master.turns[link.moves]
            above = PARENTS[link.moves]
            if link.share < 1.0 and above is not None:
                turn = between(master.turns[above], turn, link.share)
            if link.twist < 1.0:
                turn = turn @ about(tip(link.moves) - PLACES[link.moves], (link.twist - 1.0) * master.twists[link.moves])
            out[:, j] = turn
        return out

    @cached_property
    def positions(self) -> np.ndarray:
        """(F, J, 3): metres."""
        return self.forward(self.turns)

    def forward(self, turns: np.ndarray) -> np.ndarray:
        """(F, J, 3): forward kinematics of turns away from the T-pose, the hips where the master has them; above them nothing moves."""
        hips = self.keys.index("hips")
        out = np.empty((*turns.shape[:2], 3))
        for j, p in enumerate(self.parents):
            if j == hips:
                out[:, j] = motion().hips
            elif p < 0:
                out[:, j] = self._lowered(self.places[j])
            else:
                out[:, j] = out[:, p] + turns[:, p] @ (self.places[j] - self.places[p])
        return out

    @cached_property
    def take(self) -> Take:
        """The motion as a file of this standard would give it: in its object's space, at its size."""
        turns, positions = self.turns, self.positions
        if self.standard.travels:
            positions = positions.copy()
            positions[:, ~self.below_hips] += motion().hips[:, None] * [1.0, 1.0, 0.0]
        rotations = self.object @ turns @ self.frames
        places = self.size * positions @ self.object.T
        local, offsets = np.empty_like(rotations), np.empty_like(places)
        for j, p in enumerate(self.parents):
            local[:, j] = rotations[:, j] if p < 0 else np.swapaxes(rotations[:, p], -1, -2) @ rotations[:, j]
            offsets[:, j] = places[:, j]
            if p >= 0:
                offsets[:, j] = (np.swapaxes(rotations[:, p], -1, -2) @ (places[:, j] - places[:, p])[..., None])[..., 0]
        signs = self._rng.choice([-1.0, 1.0], (*local.shape[:2], 1))
        return Take(self.name, self.skeleton, np.arange(len(local)) / 30.0, quat.from_matrix(local) * signs, offsets)

    # --- the rest pose ---

    def _rest(self) -> np.ndarray:
        """(J, 3, 3): turns from the T-pose to the rest pose."""
        s = self.standard
        known: dict[str, np.ndarray] = {}

        def turn(side: str, part: str) -> np.ndarray:
            """By the master's joint, whatever links a standard has."""
            if side + part not in known:
                name, mirror = side + part, -1.0 if side == "right" else 1.0
                along = tip(name) - PLACES[name]
                above = np.eye(3) if part in ("Shoulder", "UpperLeg") else turn(side, (PARENTS[name] or "").removeprefix(side))
                if part == "UpperArm":
                    out = about(np.cross(along, -UP), s.arms)
                elif part == "LowerArm":
                    out = above @ about(np.cross(along, FORWARD), s.elbows)
                elif part == "Hand":
                    out = above @ about(np.cross(along, -UP), s.wrists)
                elif part == "UpperLeg":
                    out = about(np.cross(along, mirror * LEFT), s.legs)
                elif part == "LowerLeg":
                    out = above @ about(np.cross(along, -FORWARD), s.knees)
                elif part in ("Foot", "Toes"):
                    out = about(UP, mirror * s.feet)
                elif part[-1].isdigit() and int(part[-1]) < s.links and not part.startswith("Thumb"):
                    out = above @ about(np.cross(along, -UP), s.curl)
                else:
                    out = above
                known[name] = out
            return known[side + part]

        out = np.empty((len(self.links), 3, 3))
        for j, link in enumerate(self.links):
            side = next((x for x in SIDES if link.rest and link.rest.startswith(x)), "")
            if link.rest is None:
                out[j] = np.eye(3) if self.parents[j] < 0 else out[self.parents[j]]
            else:
                out[j] = turn(side, link.rest[len(side) :]) if side else np.eye(3)
        return out

    @cached_property
    def _rest_places(self) -> np.ndarray:
        """(J, 3): the rest pose, standing on the ground."""
        out = self.places.copy()
        for j, p in enumerate(self.parents):
            if p >= 0:
                out[j] = out[p] + self.rest[p] @ (self.places[j] - self.places[p])
        ankles = [self.keys.index(f"{side}Foot") for side in SIDES]
        drop = self.places[ankles, 2].min() - out[ankles, 2].min()
        out[self.below_hips] += drop * UP
        return out

    def _lowered(self, place: np.ndarray) -> np.ndarray:
        """A place of the standing body in the standard's own space, whose origin may be at the hips."""
        return place - (self._rest_places[self.keys.index("hips")] if self.standard.origin == "hips" else 0.0)

    def _frames(self) -> np.ndarray:
        """(J, 3, 3): the joints' frames in the T-pose."""
        out = np.empty((len(self.links), 3, 3))
        axis = self.standard.axis
        for j, link in enumerate(self.links):
            if axis == "any":
                out[j] = random_turn(self._rng)
            elif axis == "rest":
                out[j] = self.rest[j].T
            else:
                out[j] = self._along(j, link) @ np.roll(np.eye(3), "XYZ".index(axis), axis=1)
        return out

    def _along(self, j: int, link: Link) -> np.ndarray:
        """(3, 3): a frame whose X lies along the bone, at any roll."""
        children = [k for k, p in enumerate(self.parents) if p == j]
        way = (self.places[children[0]] if children else link.place + UP) - link.place
        x = unit(way if way @ way > 1e-9 else UP)
        y = unit(np.cross(x, random_turn(self._rng)[0]))
        return np.stack([x, y, np.cross(x, y)], axis=-1)

    def _skeleton(self, object_turn: np.ndarray) -> Skeleton:
        rotations = object_turn @ self.rest @ self.frames
        places = self.size * np.array([self._lowered(p) for p in self._rest_places]) @ object_turn.T
        local, offsets = rotations.copy(), places.copy()
        for j, p in enumerate(self.parents):
            if p >= 0:
                local[j], offsets[j] = rotations[p].T @ rotations[j], rotations[p].T @ (places[j] - places[p])
        names = tuple(link.name for link in self.links)
        return Skeleton(names, np.array(self.parents), offsets, quat.from_matrix(local), self.ends)

    def _ends(self) -> np.ndarray:
        """(J, 3): ends of leaf bones in their own frames; of feet without toes the toes."""
        out = np.full((len(self.links), 3), np.nan)
        for j, link in enumerate(self.links):
            if j in self.parents or link.moves is None:
                continue
            way = tip(link.moves) - PLACES[link.moves]
            if link.key.endswith("Foot") or self.standard.ends == "true":
                out[j] = self.frames[j].T @ way
            elif self.standard.ends == "random":
                out[j] = np.sqrt(way @ way) * random_turn(self._rng)[0]
        return out * self.size


def _turned(degrees: tuple[float, float, float]) -> np.ndarray:
    x, y, z = degrees
    return about(UP, z) @ about(np.cross(UP, LEFT), y) @ about(LEFT, x)
