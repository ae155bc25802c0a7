# SPDX-License-Identifier: GPL-3.0-or-later
"""Root motion: who carries a character over the ground, its hips, a root bone above them or the object; and the way back.

What is keyed above the hips is a carrier ``C`` (:mod:`.root_path`), and the hips keep ``C^-1 H``: root times hips is the world motion ``H``
of before, in every combination of what is extracted. The same holds for every other bone that hangs on the carrier and has keys of its own
(an IK target, a prop). What has no keys rides along.

:func:`extract` first takes all carriers off (:func:`merge` does only that), so it can be applied to a motion whose root moves already.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from ..motion.errors import MocapError, RigError
from ..motion.skeleton import Skeleton
from .motion import PoseMotion
from .root_path import UP, Replacing, RootPath, headings_of
from .world import OBJECT, Flags, Keys, World

Array = NDArray[np.float64]

Source = Literal["hips", "root", "object"]
Destination = Literal["hips", "bone", "object", "in-place"]
Heading = Literal["root", "hips"]
Height = Literal["scaled", "keep", "ground"]
Origin = Literal["keep", "first", "first-heading"]

CHOICES: Mapping[str, tuple[tuple[str, str, str], ...]] = {
    "source": (
        ("hips", "Hips", "The way is that of the hips. Right for nearly every recording"),
        ("root", "Joint Above the Hips", "The way is that of the take's own root joint; how the hips sway around it stays in the hips"),
        ("object", "Topmost Joint or Object", "The way is that of what everything in the take hangs on"),
    ),
    "destination": (
        ("hips", "Hips", "The hips carry the character, as recorded. Nothing is taken off them"),
        ("bone", "Root Bone", "The bone above the hips carries the character over the ground; game engines read root motion from it"),
        ("object", "Object", "The armature object carries the character over the ground"),
        ("in-place", "In Place", "The character stays where it is, as on a treadmill; the way is left out"),
    ),
    "heading": (
        ("root", "Root", "The root turns as the character does; the hips keep only their sway and lean"),
        ("hips", "Hips", "The hips keep all turning; the root always faces as at rest"),
    ),
    "height": (
        ("scaled", "Scaled", "Heights are scaled like the way walked, so that bent knees stay as bent"),
        (
            "keep",
            "As Recorded",
            "Ups and downs stay as long as recorded, for real stairs and jumps; only the standing height is the character's own",
        ),
        ("ground", "On the Ground", "Scaled, and the whole take is raised or lowered so that standing feet touch the ground"),
    ),
    "origin": (
        ("keep", "As Recorded", "The take starts where it was recorded"),
        ("first", "Start at the Character", "The take starts where the character stands; heights and heading stay"),
        ("first-heading", "Start and Face as the Character", "The take starts where the character stands, facing as it does at rest"),
    ),
}
"""For each choice of :class:`RootMotion`: values with a label and a sentence each."""


@dataclass(frozen=True)
class RootMotion:
    """Who carries the character. The default is the recording itself: the hips carry everything.

    Parameters
    ----------
    source : "hips", "root" or "object"
        Whose motion the way is taken from: the hips; the joint above them that plays the root; the topmost joint of the take (on a rig in
        the scene, the object).
    destination : "hips", "bone", "object" or "in-place"
        Who gets it.
    axes : str
        Which axes of the world go with it, of ``xyz``; z is the height. The hips keep the others.
    heading : "root" or "hips"
        Who turns.
    height : "scaled", "keep" or "ground"
        How high the hips go.
    origin : "keep", "first" or "first-heading"
        Where the first frame stands.
    smoothing : float
        Seconds: a sway that lasts so long goes half to the root; shorter ones stay in the hips. 0: the root follows every sway.

    Raises
    ------
    MocapError
        For a value that is none of these.
    """

    source: Source = "hips"
    destination: Destination = "hips"
    axes: str = "xy"
    heading: Heading = "root"
    height: Height = "scaled"
    origin: Origin = "keep"
    smoothing: float = 0.0

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            known = [choice[0] for choice in choices]
            if getattr(self, name) not in known:
                raise MocapError(f'Root motion knows no {name} "{getattr(self, name)}"; choose from {", ".join(known)}.')
        axes = str(self.axes).lower()
        if set(axes) - set("xyz"):
            raise MocapError(f'"{self.axes}" are no axes; write the letters of those that go to the root, such as xy or xyz.')
        object.__setattr__(self, "axes", "".join(axis for axis in "xyz" if axis in axes))
        smoothing = float(self.smoothing)
        if not 0.0 <= smoothing < 1e4:
            raise MocapError(f"The smoothing of the root is given in seconds, 0 or more, not {self.smoothing}.")
        object.__setattr__(self, "smoothing", smoothing)

    @property
    def plain(self) -> bool:
        """Whether the motion is left as it comes out of the transfer."""
        return self.destination == "hips" and self.origin == "keep" and self.height != "ground"

    def as_dict(self) -> dict[str, object]:
        """As plain data, for recipes."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: object) -> RootMotion:
        """The reverse of :meth:`as_dict`; unknown keys are left out, missing ones are as by default."""
        known = {f.name for f in fields(cls)}
        found: dict[str, Any] = {str(k): v for k, v in data.items() if k in known} if isinstance(data, Mapping) else {}  # pyright: ignore
        return cls(**found)


AS_RECORDED = RootMotion()
"""The hips carry everything; heights are scaled; nothing is put elsewhere."""


@dataclass(frozen=True, eq=False)
class RootChain:
    """The part of a character that root motion is about.

    Parameters
    ----------
    skeleton : Skeleton
    hips : int
    root : int or None
        The bone above the hips that can carry root motion.
    inherits_rotation : (J,) bool array or None
        Bones that follow their parent's rotation; None: all.
    carrier : int or None
        What is moved instead of hips that cannot be: a bone above them, or :data:`.world.OBJECT`.
    feet : tuple of int
        Joints that stand on the ground.
    ground : float
        Metres: the height on which they stand at rest.
    upright : (4,) array
        Puts the body at rest upright, the shortest way: a character may lie there tilted. Headings are counted from how it stands then.
    """

    skeleton: Skeleton
    hips: int
    root: int | None = None
    inherits_rotation: Flags | None = None
    carrier: int | None = None
    feet: tuple[int, ...] = ()
    ground: float = 0.0
    upright: Array = field(default_factory=lambda: quat.IDENTITY)
    lifting: tuple[int, ...] = field(init=False, default=())

    def __post_init__(self) -> None:
        if self.root is not None and self.root not in self.skeleton.ancestors(self.hips):
            object.__setattr__(self, "root", None)
        lifting = tuple(bone for bone in (self.root, self.carrier) if bone is not None and bone != OBJECT)
        object.__setattr__(self, "lifting", lifting)

    def held(self, keyed: Collection[int]) -> list[int]:
        """Bones that stay where they are in the world: the hips, and every ``keyed`` bone that only carriers move; parents first."""
        own = set(keyed) - set(self.lifting)
        return sorted({self.hips, *(bone for bone in own if not own & set(self.skeleton.ancestors(bone)))})

    def required_root(self) -> int:
        """The root bone; :class:`RigError` when there is none."""
        if self.root is None:
            hips = self.skeleton.names[self.hips]
            raise RigError(f'The character has no root bone above its hips "{hips}"; let the object carry it, or choose in place.')
        return self.root


def extract(
    motion: PoseMotion, chain: RootChain, policy: RootMotion, path: RootPath | None = None, *, lift: float | None = None
) -> PoseMotion:
    """Divide a motion between the hips and what carries them.

    Parameters
    ----------
    motion : PoseMotion
    chain : RootChain
    policy : RootMotion
        Of its heights only "ground" is applied here.
    path : RootPath, optional
        The way, where it is not in the motion itself (a joint above the source's hips).
    lift : float, optional
        Metres that "ground" raises everything by, where that is known already; else minus :func:`standing_height`.

    Returns
    -------
    PoseMotion
        With keys for the root bone, or with ``placement`` and ``turning``. In place, the way is gone.

    Raises
    ------
    RigError
        A root bone is wanted and there is none.
    """
    root = chain.required_root() if policy.destination == "bone" else None
    keys = Keys.of(motion)
    world = World(keys, chain.skeleton, chain.inherits_rotation)
    path = path or path_of(motion, chain, policy.source)
    placed = {bone: world.of(bone) for bone in chain.held({*keys.rotations, *keys.locations})}
    if policy.height == "ground":
        lift = -standing_height(motion, chain) if lift is None else lift
        placed = {bone: (q, x + lift * UP) for bone, (q, x) in placed.items()}
        path = path.lifted(lift)
    if policy.origin != "keep":
        replacing = Replacing.of_first(path, heading=policy.origin == "first-heading")
        placed = {bone: replacing(*at) for bone, at in placed.items()}
        path = replacing.path(path)
    carried = path.smoothed(motion.times, policy.smoothing).only(policy.axes, heading=policy.heading == "root")
    if policy.destination == "in-place":
        placed = {bone: carried.leave(*at) for bone, at in placed.items()}
    new = _without_carriers(keys, chain)
    turns = policy.heading == "root"
    if policy.destination == "object":
        new.placement, new.turning = carried.shifts, quat.continuous(carried.turns) if turns else None
    if root is not None:
        rest = chain.skeleton.rest_global_rotations[root], chain.skeleton.rest_global_positions[root]
        _put(new, chain, root, *carried.carry(rest[0][None], rest[1][None]), turns=turns, moves=True)
    _put_back(new, chain, placed, everything=False)
    return new.put_into(motion)


def merge(motion: PoseMotion, chain: RootChain) -> PoseMotion:
    """The way back: what root bone and object carry is folded into the hips, which then do alone what was seen before.

    The root bone and the object lose their keys. Other keyed bones that hung on them stay where they were in the world too, with
    location keys where they had none.
    """
    keys = Keys.of(motion)
    world = World(keys, chain.skeleton, chain.inherits_rotation)
    placed = {bone: world.of(bone) for bone in chain.held({*keys.rotations, *keys.locations})}
    new = _without_carriers(keys, chain)
    _put_back(new, chain, placed, everything=True)
    return new.put_into(motion)


def path_of(motion: PoseMotion, chain: RootChain, source: Source) -> RootPath:
    """The way of the hips, of the root bone or of the object in a motion; :class:`RigError` where that does not move."""
    bone = {"hips": chain.hips, "root": chain.root, "object": OBJECT}[source]
    if bone is None:
        bone = chain.required_root()
    rotations, places = World(Keys.of(motion), chain.skeleton, chain.inherits_rotation).of(bone)
    if bone != chain.hips and len(rotations) == len(places) == 1 < len(motion.times):
        name = "object" if bone == OBJECT else f'bone "{chain.skeleton.names[bone]}"'
        raise RigError(f"The {name} does not move, so there is no way to take from it; take it from the hips.")
    rest, anchor = quat.IDENTITY, np.zeros(3)
    if bone == chain.hips:
        rest = quat.mul(chain.upright, chain.skeleton.rest_global_rotations[bone])
        anchor = chain.skeleton.rest_global_positions[bone]
    elif bone != OBJECT:
        rest, anchor = chain.skeleton.rest_global_rotations[bone], chain.skeleton.rest_global_positions[bone]
    count = len(motion.times)
    turns = np.broadcast_to(quat.mul(rotations, quat.inv(rest)), (count, 4))
    return RootPath(np.broadcast_to(places, (count, 3)), headings_of(turns, motion.times), anchor)


_SAMPLES = 400
_LEVEL = 0.03
_STANCE = 5.0


def standing_height(motion: PoseMotion, chain: RootChain) -> float:
    """Metres: how high above the ground the feet stand when they stand.

    Of each moment counts the lowest point of both feet, as far as it has left its own height at rest. The lowest twentieth of all moments
    is certainly stance; the median of what lies within 3 % of the hips' height above that is the level. Jumps and steps up are above it and
    do not count.
    """
    if not chain.feet or not len(motion.times):
        return 0.0
    picked = np.unique(np.linspace(0, len(motion.times) - 1, min(len(motion.times), _SAMPLES)).astype(np.int64))
    world = World(Keys.of(motion).at(picked), chain.skeleton, chain.inherits_rotation)
    rest, rest_ends = chain.skeleton.rest_global_positions[:, 2], chain.skeleton.rest_global_ends[:, 2]
    lowest: Array = np.full(len(picked), np.inf)
    for foot in chain.feet:
        lowest = np.minimum(lowest, world.of(foot)[1][:, 2] - rest[foot])
        lowest = np.fmin(lowest, world.ends(foot)[:, 2] - rest_ends[foot])  # a foot without an end is passed over
    lowest += chain.ground
    low = float(np.percentile(lowest, _STANCE))
    reach = float(rest[chain.hips]) - chain.ground
    return float(np.median(lowest[lowest <= low + _LEVEL * abs(reach)]))


# --- taking carriers off, and putting bones back where they were ----------------------------------------------------------------------


def _without_carriers(keys: Keys, chain: RootChain) -> Keys:
    off = set(chain.lifting)
    return replace(
        keys,
        rotations={bone: q for bone, q in keys.rotations.items() if bone not in off},
        locations={bone: v for bone, v in keys.locations.items() if bone not in off},
        placement=None,
        turning=None,
    )


def _put_back(keys: Keys, chain: RootChain, placed: Mapping[int, tuple[Array, Array]], *, everything: bool) -> None:
    """Every bone of ``placed`` where it was; with ``everything`` also the places of those that had no location keys."""
    hips = chain.hips
    if chain.carrier is not None:
        _lift(keys, chain, placed[hips][1])
    for bone, (rotation, place) in placed.items():
        moves = everything or bone in keys.locations
        if bone == hips:
            moves = chain.carrier is None and (moves or _is_elsewhere(keys, chain, place))
        _put(keys, chain, bone, rotation, place, turns=bone == hips or bone in keys.rotations, moves=moves)


def _is_elsewhere(keys: Keys, chain: RootChain, place: Array) -> bool:
    """Whether hips without location keys would not stand at ``place``."""
    return bool(np.abs(World(keys, chain.skeleton, chain.inherits_rotation).of(chain.hips)[1] - place).max() > 1e-9)


def _lift(keys: Keys, chain: RootChain, place: Array) -> None:
    """Move the carrier of hips that cannot be moved so that they stand at ``place``."""
    world = World(keys, chain.skeleton, chain.inherits_rotation)
    step = place - world.of(chain.hips)[1]
    if chain.carrier is None or chain.carrier == OBJECT:
        keys.placement = np.asfortranarray(np.broadcast_to(world.of(OBJECT)[1] + step, (keys.count, 3)))
        return
    rotation, at = world.of(chain.carrier)
    _put(keys, chain, chain.carrier, rotation, at + step, turns=False, moves=True)


def _put(keys: Keys, chain: RootChain, bone: int, rotation: Array, place: Array, *, turns: bool, moves: bool) -> None:
    """Key a bone so that it stands at a rotation and a place in the world, as far as it turns and moves."""
    basis, location = World(keys, chain.skeleton, chain.inherits_rotation).stored(bone, rotation, place)
    if turns:
        rotation = quat.continuous(np.asfortranarray(np.broadcast_to(basis, (keys.count, 4))))
        before = keys.rotations.get(bone, rotation)
        keys.rotations[bone] = rotation if float(before[0] @ rotation[0]) >= 0.0 else -rotation
    if moves:
        keys.locations[bone] = np.asfortranarray(np.broadcast_to(location, (keys.count, 3)))
