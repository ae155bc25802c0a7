# SPDX-License-Identifier: GPL-3.0-or-later
"""Rokoko Studio's joints, its T-pose, and the names of its face shapes."""

from __future__ import annotations

_H = 0.5**0.5
_SIDES = ("left", "right")
_DIGITS = ("Thumb", "Index", "Middle", "Ring", "Little")
_LINKS = ("Proximal", "Medial", "Distal", "Tip")

STANDARD: tuple[str, ...] = (
    "hip",
    "spine",
    "chest",
    "neck",
    "head",
    *(f"{s}{part}" for s in _SIDES for part in ("Shoulder", "UpperArm", "LowerArm", "Hand")),
    *(f"{s}{part}" for s in _SIDES for part in ("UpLeg", "Leg", "Foot", "Toe", "ToeEnd")),
)
"""The 23 joints of a body without fingers."""
JOINTS: tuple[str, ...] = (*STANDARD, *(f"{s}{d}{link}" for s in _SIDES for d in _DIGITS for link in _LINKS))

_TRUNK_ABOVE = {"hip": "", "spine": "hip", "chest": "spine", "neck": "chest", "head": "neck"}
_ABOVE = {
    "Shoulder": "chest",
    "UpperArm": "Shoulder",
    "LowerArm": "UpperArm",
    "Hand": "LowerArm",
    "UpLeg": "hip",
    "Leg": "UpLeg",
    "Foot": "Leg",
    "Toe": "Foot",
    "ToeEnd": "Toe",
}


def _split(name: str) -> tuple[str, str]:
    side = next((s for s in _SIDES if name.startswith(s)), "")
    return side, name[len(side) :]


def _digit(part: str) -> tuple[str, str] | None:
    return next(((d, part[len(d) :]) for d in _DIGITS if part.startswith(d)), None)


def _parent(name: str) -> str:
    side, part = _split(name)
    if not side:
        return _TRUNK_ABOVE[name]
    digit = _digit(part)
    if digit is not None:
        link = _LINKS.index(digit[1])
        return f"{side}Hand" if link == 0 else f"{side}{digit[0]}{_LINKS[link - 1]}"
    above = _ABOVE[part]
    return above if above in _TRUNK_ABOVE else side + above


PARENT: dict[str, str] = {n: _parent(n) for n in JOINTS}


def _t_pose(name: str) -> tuple[float, float, float, float]:
    """x, y, z, w in Unity's axes, to the digits that are published."""
    side, part = _split(name)
    s = 1.0 if side == "left" else -1.0
    if name == "hip":
        return (0.0, 0.0, 0.0, 1.0)
    if not side:
        return (0.0, 0.0, 1.0, 0.0)
    if part == "Shoulder":
        return (0.0, 0.0, -s * _H, _H)
    if part in ("UpLeg", "Leg"):
        return (0.0, s * _H, 0.0, _H)
    if part in ("Foot", "Toe", "ToeEnd"):
        return (0.0, _H, -_H, 0.0)
    if part == "ThumbProximal":
        return (0.56098, s * 0.70106, -s * 0.43046, 0.0923)
    if part.startswith("Thumb"):
        return (0.65328, s * 0.65328, -s * 0.27060, 0.27060)
    return (0.5, s * 0.5, -s * 0.5, 0.5)


def _unit(q: tuple[float, float, float, float]) -> tuple[float, float, float, float]:
    size = sum(v * v for v in q) ** 0.5
    return (q[0] / size, q[1] / size, q[2] / size, q[3] / size)


T_POSE: dict[str, tuple[float, float, float, float]] = {n: _unit(_t_pose(n)) for n in JOINTS}
"""Global rotation of every joint in Studio's T-pose: x, y, z, w in Unity's axes."""


def role_of(name: str) -> str:
    """Where a joint stands on an average body (:func:`.body.place`)."""
    trunk = {"hip": "hips", "spine": "spine:1/2", "chest": "spine:2/2", "neck": "neck:1/1", "head": "head"}
    if name in trunk:
        return trunk[name]
    side, part = _split(name)
    digit = _digit(part)
    if digit is not None:
        return f"{side}{digit[0]}:{_LINKS.index(digit[1]) + 1}"
    return side + {"UpLeg": "UpperLeg", "Leg": "LowerLeg", "Toe": "Toes"}.get(part, part)


_PAIRED = (
    *("eyeBlink", "eyeLookDown", "eyeLookIn", "eyeLookOut", "eyeLookUp", "eyeSquint", "eyeWide"),
    *("mouthSmile", "mouthFrown", "mouthDimple", "mouthStretch", "mouthPress", "mouthLowerDown", "mouthUpperUp"),
    *("browDown", "browOuterUp", "cheekSquint", "noseSneer"),
)
_SINGLE = (
    *("jawForward", "jawLeft", "jawRight", "jawOpen", "mouthClose", "mouthFunnel", "mouthPucker", "mouthLeft", "mouthRight"),
    *("mouthRollLower", "mouthRollUpper", "mouthShrugLower", "mouthShrugUpper", "browInnerUp", "cheekPuff", "tongueOut"),
)
MORPHS: tuple[str, ...] = (*_SINGLE, *(f"{n}{s}" for n in _PAIRED for s in ("Left", "Right")))
"""The 52 face shapes (ARKit's), sent as 0 to 100."""
