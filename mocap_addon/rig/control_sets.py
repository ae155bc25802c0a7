# SPDX-License-Identifier: GPL-3.0-or-later
"""Which controls an animator uses on a rig whose deform bones are driven: one TOML file a kind of rig in ``controls/``.

``docs/controls.md`` says how to add one.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Literal, cast

from ..motion.errors import FileError
from ..motion.skeleton import Skeleton
from .roles import FINGERS, ROLES, SIDES, RoleMap

FOLDER = Path(__file__).parent / "controls"

LIMB_PARTS: Mapping[str, tuple[str, str, str, str]] = {
    "Arm": ("UpperArm", "LowerArm", "Hand", ""),
    "Leg": ("UpperLeg", "LowerLeg", "Foot", "Toes"),
}
"""Roles (without side) of a limb that inverse kinematics can hold: the two that bend, the one at the tip, what hangs on that."""

Carries = Literal["head", "below", "joint"]

Setting = tuple[str, str, float]
"""A custom property of a bone and its value: bone, property, value."""


@dataclass(frozen=True)
class Control:
    """A bone that an animator turns (and moves).

    Parameters
    ----------
    bone : int
        Its joint in the skeleton.
    joint : int
        The deform bone whose motion it takes on.
    role : str
        That bone's role.
    moves : bool
        Whether its location is keyed too.
    turns : bool
        Whether its rotation is keyed.
    copied : bool
        The deform bone stands as the control stands; else it only turns away from rest as the control does.
    carries : "head", "below" or "joint"
        With ``moves``, which point goes where the body has it: the control's own head as if it were fixed to the deform bone; the head of
        the control that hangs on it; the deform bone's own head.
    """

    bone: int
    joint: int
    role: str
    moves: bool = False
    carries: Carries = "head"
    turns: bool = True
    copied: bool = False


@dataclass(frozen=True)
class Limb:
    """A limb that can be held by inverse kinematics. Joints of the skeleton; None where the rig has none.

    Parameters
    ----------
    side : "left" or "right"
    part : "Arm" or "Leg"
    target, pole, heel, toe : int or None
        The controls.
    solver, first : int or None
        The bone with the constraint, and the first of those that it bends.
    fk, ik : tuple of (bone, property, value)
        What switches the limb to forward and to inverse kinematics.
    pole_angle : float or None
        Radians, of the constraint.
    tip : int or None
        The bone whose end the solver brings to the target; None: the foot (or hand) itself.
    keeps : tuple of str
        Roles of the limb whose own controls stay in use.
    copied : bool
        The foot (or hand) stands as the target stands (:class:`Control`).
    """

    side: str
    part: str
    target: int
    pole: int | None = None
    solver: int | None = None
    heel: int | None = None
    toe: int | None = None
    fk: tuple[Setting, ...] = ()
    ik: tuple[Setting, ...] = ()
    first: int | None = None
    pole_angle: float | None = None
    tip: int | None = None
    keeps: tuple[str, ...] = ()
    copied: bool = False

    @property
    def roles(self) -> tuple[str, ...]:
        """The limb's roles from the body outwards, with their side."""
        return tuple(f"{self.side}{part}" for part in LIMB_PARTS[self.part] if part)


@dataclass(frozen=True)
class ControlSet:
    """The controls of one rig.

    Parameters
    ----------
    name : str
        The kind of rig.
    controls : tuple of Control
    limbs : tuple of Limb
    twins : mapping from joint to joint
        Bones that stand for a deform bone: where it goes they go.
    places : mapping from joint to joint
        Deform bone -> bone whose head is where the joint really is.
    """

    name: str
    controls: tuple[Control, ...]
    limbs: tuple[Limb, ...] = ()
    twins: Mapping[int, int] = field(default_factory=dict[int, int])
    places: Mapping[int, int] = field(default_factory=dict[int, int])


def find_controls(skeleton: Skeleton, roles: RoleMap) -> ControlSet | None:
    """The controls of a rig of a known kind, or None.

    Parameters
    ----------
    skeleton : Skeleton
        With all bones of the rig.
    roles : RoleMap
        Which deform bone plays which role.
    """
    description = _description_of(skeleton)
    return None if description is None else _resolve(description, skeleton, roles)


def described_roles(skeleton: Skeleton) -> RoleMap | None:
    """The roles of a control rig whose description names its deform bones, or None."""
    description = _description_of(skeleton)
    names = None if description is None else description.get("deform")
    if description is None or names is None:
        return None
    links = cast("Mapping[str, Sequence[str | Sequence[str]]]", names)
    sides = _sides(description)
    joints: dict[str, tuple[int, ...]] = {}
    for role in ROLES:
        found = [_first(skeleton, link, {"side": _side(role, sides)}) for link in links.get(_part(role), ())]
        if chain := tuple(joint for joint in found if joint is not None):
            joints[role] = chain
    return RoleMap(joints, str(description["name"]), dict.fromkeys(joints, 1.0))


def _description_of(skeleton: Skeleton) -> Mapping[str, object] | None:
    return next((d for d in descriptions() if all(bone in skeleton for bone in _texts(d, "needs"))), None)


@lru_cache(maxsize=1)
def descriptions() -> tuple[Mapping[str, object], ...]:
    """Every description in ``controls/``."""
    out: list[Mapping[str, object]] = []
    for path in sorted(FOLDER.glob("*.toml")):
        try:
            out.append(tomllib.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise FileError(f"This description of a control rig cannot be read ({error}); correct or remove it.", path) from None
    return tuple(out)


def _resolve(description: Mapping[str, object], skeleton: Skeleton, roles: RoleMap) -> ControlSet:
    sides = _sides(description)
    prefix = str(description.get("prefix", ""))
    controls: list[Control] = []
    taken: set[int] = set()
    for role in ROLES:
        for entry in _entries(description, "control"):
            if entry["role"] != _general(role):
                continue
            for joint in roles.chain(role):
                bone = _first(skeleton, entry["bone"], _words(skeleton.names[joint], prefix, sides, role))
                if bone is None or bone in taken:
                    continue
                taken.add(bone)
                carries = cast("Carries", entry.get("carries", "head"))
                controls.append(Control(bone, joint, role, bool(entry.get("moves", False)), carries))
    limbs = [
        limb
        for entry in _entries(description, "limb")
        for side in SIDES
        if (limb := _limb(entry, skeleton, roles, side, sides.get(side, ""))) is not None
    ]
    twins = {
        skeleton.index(twin): joint
        for joint in {control.joint for control in controls}
        for start in _texts(description, "twins")
        if (twin := start + skeleton.names[joint].removeprefix(prefix)) in skeleton
    }
    places: dict[int, int] = {}
    if description.get("joints") == "controls":
        places = {c.joint: c.bone for c in controls if not c.moves}
    return ControlSet(str(description["name"]), tuple(controls), tuple(limbs), twins, places)


def _limb(entry: Mapping[str, object], skeleton: Skeleton, roles: RoleMap, side: str, suffix: str) -> Limb | None:
    part = str(entry["part"])
    words = {"side": suffix}

    def bone(key: str) -> int | None:
        return _first(skeleton, entry.get(key, ""), words)

    target = bone("target")
    if target is None or any(not roles.chain(f"{side}{role}") for role in LIMB_PARTS[part][:3]):
        return None
    fk, ik = (tuple(_settings(entry.get(key, []), words)) for key in ("fk", "ik"))
    return Limb(side, part, target, bone("pole"), bone("solver"), bone("heel"), bone("toe"), fk, ik)


def _settings(entries: object, words: Mapping[str, str]) -> list[Setting]:
    rows = cast("Sequence[tuple[str, str, float]]", entries)
    return [(bone.format(**words), prop, float(value)) for bone, prop, value in rows]


def _words(name: str, prefix: str, sides: Mapping[str, str], role: str) -> dict[str, str]:
    """What may stand in a control's name: ``DEF-f_index.01.L`` has the name ``f_index.01.L``, stem ``f_index``, rest ``.01.L``."""
    own = name.removeprefix(prefix)
    stem, dot, rest = own.partition(".")
    return {"name": own, "stem": stem, "rest": dot + rest, "side": _side(role, sides)}


def _sides(description: Mapping[str, object]) -> Mapping[str, str]:
    return cast("Mapping[str, str]", description.get("sides", {}))


def _side(role: str, sides: Mapping[str, str]) -> str:
    """What names of a role's side have in them."""
    return next((sides.get(side, "") for side in SIDES if role.startswith(side)), "")


def _first(skeleton: Skeleton, patterns: object, words: Mapping[str, str]) -> int | None:
    """The first bone of the skeleton that one of the patterns names."""
    for pattern in [patterns] if isinstance(patterns, str) else cast("Sequence[str]", patterns):
        name = pattern.format(**words)
        if name in skeleton:
            return skeleton.index(name)
    return None


def _general(role: str) -> str:
    """A role as controls have it: without its side, every finger as ``Fingers``."""
    return "Fingers" if _part(role) in FINGERS else _part(role)


def _part(role: str) -> str:
    return next((role[len(side) :] for side in SIDES if role.startswith(side)), role)


def _entries(description: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    return cast("list[Mapping[str, object]]", description.get(key, []))


def _texts(description: Mapping[str, object], key: str) -> list[str]:
    return cast("list[str]", description.get(key, []))
