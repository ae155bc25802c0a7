# SPDX-License-Identifier: GPL-3.0-or-later
"""What a standard declares: the operators that the master is put under."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Helper:
    """A link without motion of its own: ``name`` hangs on ``above``, and ``below`` hang on it.

    ``share`` says how far it stands on the way to the first of them (0: a link of no length), ``aside`` how many metres off that way.
    ``twist``: it is a leaf on the way to that joint and shares the limb's roll.
    """

    name: str
    above: str
    below: tuple[str, ...] = ()
    share: float = 0.0
    aside: float = 0.0
    twist: str = ""


@dataclass(frozen=True)
class Standard:
    """What was done to the master. Angles in degrees; names, helpers and splits of the left side are made on both.

    Parameters
    ----------
    family : str
        File of the naming family whose own names the joints get. ``sides``: patterns of left names and what stands there on the right;
        ``names``: others than the first ones of a role.
    spine, neck : int
        Links. More than the master's are split, fewer are dropped; 0: no neck.
    shoulders, fingers, links, toes
        What is left of the master's; ``links`` of each finger.
    splits : mapping from a limb's bone to (name, half)
        The bone's second link; with ``half`` it has half of the twist, else no motion of its own.
    root, travels : bool
        A joint above the hips; whether it carries the way over the ground.
    arms, elbows, wrists, curl, legs, knees, feet : float
        The rest pose: arms below level, elbows bent forward, wrists and fingers bent, legs spread, knees bent, toes outward.
    axis : "X", "Y", "Z", "any" or "rest"
        Which local axis lies along the bones, at any roll; ``any``: frames at random; ``rest``: no rotations at rest.
    unit, scale : float
        Metres of a unit of the file, and the object's scale: together they make the size.
    turn : (float, float, float)
        The object's rotation about X, then Y, then Z.
    scene_turn : (float, float, float), optional
        Another one where the standard is the character that takes the motion. A take whose body leans is a leaning body; a character knows
        its own axes.
    origin : "ground" or "hips"
        Where the rest pose has it.
    ends : "none", "true" or "random"
        Where leaf bones end. Feet without toes always end at the toes.
    """

    family: str
    sides: tuple[tuple[str, str], ...] = (("Left", "Right"),)
    names: dict[str, tuple[str, ...]] = field(default_factory=dict)
    spine: int = 3
    neck: int = 1
    shoulders: bool = True
    fingers: tuple[str, ...] = ()
    links: int = 3
    toes: bool = True
    splits: dict[str, tuple[str, bool]] = field(default_factory=dict)
    helpers: tuple[Helper, ...] = ()
    root: bool = False
    travels: bool = False
    arms: float = 0.0
    elbows: float = 0.0
    wrists: float = 0.0
    curl: float = 0.0
    legs: float = 0.0
    knees: float = 0.0
    feet: float = 0.0
    axis: str = "any"
    unit: float = 1.0
    scale: float = 1.0
    turn: tuple[float, float, float] = (0.0, 0.0, 0.0)
    scene_turn: tuple[float, float, float] | None = None
    origin: str = "ground"
    ends: str = "none"
