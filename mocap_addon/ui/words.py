# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain words for what the panels show. No bpy, no state."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from ..rig.roles import CENTRE_ROLES, SIDES

DOUBTFUL = 0.75
"""Below this confidence a match is worth a look."""

GOOD_DEGREES = 1.0
FAIR_DEGREES = 10.0

_PARTS: dict[str, str] = {
    "root": "root",
    "hips": "hips",
    "spine": "spine",
    "neck": "neck",
    "head": "head",
    "jaw": "jaw",
    "leftEye": "left eye",
    "rightEye": "right eye",
    "Shoulder": "shoulder",
    "UpperArm": "upper arm",
    "LowerArm": "forearm",
    "Hand": "hand",
    "Thumb": "thumb",
    "Index": "index finger",
    "Middle": "middle finger",
    "Ring": "ring finger",
    "Little": "little finger",
    "UpperLeg": "thigh",
    "LowerLeg": "shin",
    "Foot": "foot",
    "Toes": "toes",
}


def role_words(role: str) -> str:
    """``leftUpperArm`` -> ``left upper arm``; an empty role stays empty, an unknown one stays as it is."""
    if role in CENTRE_ROLES:
        return _PARTS[role]
    for side in SIDES:
        if role.startswith(side) and role[len(side) :] in _PARTS:
            return f"{side} {_PARTS[role[len(side) :]]}"
    return role


def part_words(role: str, rule: str) -> str:
    """What a row's bone is: its role, or that it shares a limb's roll."""
    return "twist bone" if rule == "twist" else role_words(role)


def capital(text: str) -> str:
    """The text with its first letter in upper case, the rest as it is."""
    return text[:1].upper() + text[1:]


def listed(items: Iterable[str], most: int = 4) -> str:
    """``a, b and c``; beyond ``most`` items ``a, b, c, d and 5 more``."""
    names = list(items)
    if len(names) > most + 1:
        return f"{', '.join(names[:most])} and {len(names) - most} more"
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def confidence_words(confidence: float) -> str:
    """How sure a match is, as a person would say it."""
    if confidence >= 0.95:
        return "sure"
    if confidence >= DOUBTFUL:
        return "likely"
    return "doubtful, please check"


def residual_words(degrees: float) -> str:
    """How closely a bone points where the one it follows points."""
    if degrees <= GOOD_DEGREES:
        return "as in the take"
    return f"{degrees:.0f}° off the take"


def duration_words(seconds: float) -> str:
    """``2.9 s``, ``3 min 05 s``."""
    if seconds < 60.0:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s"


def length_words(metres: float) -> str:
    """A length in the unit a person would choose: ``1 m``, ``5.644 cm``, ``1 mm``."""
    for factor, unit in ((1.0, "m"), (0.01, "cm"), (0.001, "mm")):
        if metres >= 0.9999 * factor:
            return f"{metres / factor:.4g} {unit}"
    return f"{metres * 1000.0:.3g} mm"


def wrapped(text: str, width: int) -> list[str]:
    """Lines of at most ``width`` letters; a long file name is broken rather than clipped."""
    return textwrap.wrap(text, max(width, 12)) or [""]
