# SPDX-License-Identifier: GPL-3.0-or-later
"""Words of the command line that stand for values: what each may be, and what is said of one that is none.

Each function is a ``type`` of :mod:`argparse`.
"""

from __future__ import annotations

import argparse
from fractions import Fraction
from typing import Literal

from .naming import COLLECTED, SUFFIXES

FORMATS: tuple[str, ...] = (*SUFFIXES, *COLLECTED)
CONTROLS: tuple[str, ...] = ("auto", "deform", "fk", "ik-legs", "ik")
UNITS: dict[str, float] = {"m": 1.0, "dm": 0.1, "cm": 0.01, "mm": 0.001, "inch": 0.0254, "foot": 0.3048}
"""Names of units and their length in metres."""


def port(text: str) -> int:
    """1 to 65535."""
    if not text.isdecimal() or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError(f'"{text}" is not a port; ports are 1 to 65535')
    return int(text)


def address(text: str) -> tuple[str, int]:
    """``HOST:PORT`` -> both."""
    host, colon, number = text.rpartition(":")
    if not colon or not host or not number.isdecimal():
        raise argparse.ArgumentTypeError(f'"{text}" is not an address such as 127.0.0.1:9763 or [::1]:9763')
    return host.strip("[]"), port(number)


def speed(text: str) -> float:
    """How many times as fast."""
    return _number(text, 0.01, 100.0, "a speed; 1 is as recorded, 2 twice as fast")


def millimetres(text: str) -> float:
    """A length."""
    return _number(text, 0.001, 1000.0, "a number of millimetres from 0.001 to 1000, such as 0.1")


def _number(text: str, least: float, most: float, what: str) -> float:
    """A number between two others; ``what`` it is says the sentence about one that is none."""
    try:
        number = float(text)
    except ValueError:
        number = least - 1.0
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f'"{text}" is not {what}')
    return number


def rate(text: str) -> Fraction:
    """Frames a second, exactly."""
    from ..motion.errors import MocapError
    from ..motion.timeline import parse_rate

    try:
        return parse_rate(text)
    except MocapError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def rate_choice(text: str) -> Fraction | Literal["source", "scene"]:
    """A rate, or one that is asked of the source or the scene."""
    if text == "source" or text == "scene":
        return text
    return rate(text)


def controls(text: str) -> str:
    """As :class:`JobOptions` writes them."""
    if text not in CONTROLS:
        raise argparse.ArgumentTypeError(f'"{text}" is no choice of controls; choose from {", ".join(CONTROLS)}')
    return text.replace("-", "_")


def reference(text: str) -> int | Literal["rest"] | None:
    """A frame, the rest pose, or None: found out."""
    if text == "auto":
        return None
    if text == "rest":
        return "rest"
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f'"{text}" is not a frame number; the first frame is 0 (or write auto or rest)')
    return int(text)


def morphs(text: str) -> tuple[bool, tuple[tuple[str, str], ...]]:
    """Whether there are any, and names in place of others."""
    from ..motion.errors import MocapError
    from ..retarget.extras import parse_names

    if text.strip().lower() == "off":
        return False, ()
    try:
        return True, parse_names(text)
    except MocapError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def unit(text: str) -> float:
    """Metres."""
    if text.lower() in UNITS:
        return UNITS[text.lower()]
    try:
        metres = float(text)
    except ValueError:
        metres = 0.0
    if not 1e-6 <= metres <= 1e6:
        raise argparse.ArgumentTypeError(f'"{text}" is not a unit of length; write {", ".join(UNITS)} or its metres, such as 0.01')
    return metres


def axes(text: str) -> str:
    """Letters of xyz, in order."""
    axes = "" if text.lower() == "none" else text.lower().replace(",", "")
    if set(axes) - set("xyz") or (not axes and text.lower() != "none"):
        raise argparse.ArgumentTypeError(f'"{text}" are no axes; write letters of xyz, or none')
    return "".join(axis for axis in "xyz" if axis in axes)


def seconds(text: str) -> float:
    """A duration."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0.0 <= seconds < 1e4:
        raise argparse.ArgumentTypeError(f'"{text}" is not a number of seconds, such as 0.5')
    return seconds


def formats(text: str) -> tuple[str, ...]:
    """What to write, in the order that it is written in."""
    wanted = [word.strip().lower() for word in text.split(",") if word.strip()]
    unknown = [word for word in wanted if word not in FORMATS]
    if unknown or not wanted:
        raise argparse.ArgumentTypeError(f'"{text}" is not a list of formats; choose from {", ".join(FORMATS)}')
    return tuple(name for name in FORMATS if name in wanted)
