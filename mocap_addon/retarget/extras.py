# SPDX-License-Identifier: GPL-3.0-or-later
"""What travels with the pose besides bones: time code, morphs, props and marks, and how they are to arrive.

All of it is plain data that goes into an action's recipe and into a settings file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, cast

from ..motion import timecode, timeline
from ..motion.errors import MocapError
from ..motion.take import Take
from ..motion.timecode import TimeCode

Names = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TimeCodeOptions:
    """Time code of the action.

    Parameters
    ----------
    use : bool
        Whether it is written at all.
    start : str
        Label of the first sample in place of the take's, ``HH:MM:SS:FF`` or, in drop-frame, ``HH:MM:SS;FF``; empty: the take's.
    rate : str
        Its frames a second, such as ``29.97``; empty: the take's. Where it is another than the take's and ``start`` is empty, the moment
        of the day is kept and counted at this rate.
    """

    use: bool = True
    start: str = ""
    rate: str = ""

    def of(self, take: Take) -> TimeCode | None:
        """The time code of a take's first sample under these options.

        Raises
        ------
        MocapError
            The label or the rate is none.
        """
        if not self.use:
            return None
        own = take.time_code
        rate = timeline.parse_rate(self.rate) if self.rate.strip() else (take.timecode_rate or take.rate)
        if self.start.strip():
            return timecode.parse(self.start, rate or Fraction(30))
        if own is None or rate is None or rate == own.rate:
            return own
        return TimeCode(rate, 0, drop=own.drop and timecode.can_drop(rate)).shifted(own.seconds)


@dataclass(frozen=True)
class MorphOptions:
    """Curves onto shape keys.

    Parameters
    ----------
    use : bool
    names : tuple of (curve, shape key)
        Said by a person, before what is found by name; an empty shape key leaves the curve out.
    unit : float
        The curve value that is a shape key's 1: 1, or 100 for percent; 0: found from the values.
    """

    use: bool = True
    names: Names = ()
    unit: float = 0.0


@dataclass(frozen=True)
class PropOptions:
    """Rigid bodies as objects.

    Parameters
    ----------
    use : bool
    names : tuple of (prop, object)
        Objects of the scene that take a prop's motion; an empty name leaves the prop out. Other props become empties.
    """

    use: bool = False
    names: Names = ()


@dataclass(frozen=True)
class Extras:
    """All of them.

    Parameters
    ----------
    time_code : TimeCodeOptions
    morphs : MorphOptions
    props : PropOptions
    markers : bool
        The take's events as markers of the scene.
    locations : float
        Scale of the locations of movable bones other than the hips; 0: that of the way walked.
    scales : bool
        Movable bones are scaled as the take scales the joints that they follow.
    """

    time_code: TimeCodeOptions = TimeCodeOptions()
    morphs: MorphOptions = MorphOptions()
    props: PropOptions = PropOptions()
    markers: bool = False
    locations: float = 0.0
    scales: bool = False

    def as_dict(self) -> dict[str, object]:
        """As plain data, for JSON and TOML."""
        return {
            "time_code": {"use": self.time_code.use, "start": self.time_code.start, "rate": self.time_code.rate},
            "morphs": {"use": self.morphs.use, "unit": self.morphs.unit, "names": dict(self.morphs.names)},
            "props": {"use": self.props.use, "names": dict(self.props.names)},
            "markers": self.markers,
            "locations": self.locations,
            "scales": self.scales,
        }

    @staticmethod
    def from_dict(data: Mapping[str, object]) -> Extras:
        """The reverse; what is missing or unknown is as by default.

        Raises
        ------
        MocapError
            A value is of the wrong kind.
        """
        return Extras(
            _filled(TimeCodeOptions(), data.get("time_code"), "time_code"),
            _filled(MorphOptions(), data.get("morphs"), "morphs"),
            _filled(PropOptions(), data.get("props"), "props"),
            _value(data.get("markers", False), False, "markers"),
            _value(data.get("locations", 0.0), 0.0, "locations"),
            _value(data.get("scales", False), False, "scales"),
        )


AS_BY_DEFAULT = Extras()


def parse_names(text: str) -> Names:
    """What a person writes, ``jawOpen = Jaw_Open, tongueOut =``, as pairs; an empty second name leaves the first out.

    Raises
    ------
    MocapError
        A part has no equals sign, or names nothing before it.
    """
    out: list[tuple[str, str]] = []
    for part in (one.strip() for one in text.replace(";", ",").split(",")):
        if not part:
            continue
        name, sign, other = (piece.strip() for piece in part.partition("="))
        if not sign or not name:
            raise MocapError(f'"{part}" is no pair of names; write for example jawOpen = Jaw_Open, with commas between pairs.')
        out.append((name, other))
    return tuple(out)


def format_names(names: Names) -> str:
    """The reverse of :func:`parse_names`."""
    return ", ".join(f"{name} = {other}" for name, other in names)


def _filled(default: Any, data: object, where: str) -> Any:
    if data is None:
        return default
    if not isinstance(data, Mapping):
        raise MocapError(f"The setting {where} must be a group of settings, not {data!r}.")
    stored = cast("Mapping[str, object]", data)
    known = {f.name for f in fields(default)}
    return replace(default, **{k: _value(v, getattr(default, k), f"{where}.{k}") for k, v in stored.items() if k in known})


def _value(value: object, default: Any, where: str) -> Any:
    if isinstance(default, tuple):
        if isinstance(value, Mapping):
            pairs = list(cast("Mapping[object, object]", value).items())
            if all(isinstance(a, str) and isinstance(b, str) for a, b in pairs):
                return tuple(pairs)
        raise MocapError(f'The setting {where} must be pairs of names, such as "jawOpen" = "Jaw Open".')
    if isinstance(default, bool):
        if isinstance(value, bool):
            return value
        raise MocapError(f"The setting {where} must be true or false, not {value!r}.")
    if isinstance(default, float):
        if isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < 1e9:
            return float(value)
        raise MocapError(f"The setting {where} must be a number of 0 or more, not {value!r}.")
    if isinstance(value, str):
        return value
    raise MocapError(f"The setting {where} must be a text in quotes, not {value!r}.")
