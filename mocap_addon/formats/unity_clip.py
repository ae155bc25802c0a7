# SPDX-License-Identifier: GPL-3.0-or-later
"""A Unity ``.anim`` file -> its clips: curves with their keys, rate, range, and what was left out. Unity's own axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..motion import timeline
from ..motion.errors import FileError, MocapError
from . import unity_curves, unity_keys, unity_packed, unity_yaml
from .unity_keys import Keys
from .unity_yaml import Map, Node, Parser, Span, Text, line_of

Array = NDArray[np.float64]
Kind = Literal["rotation", "euler", "position", "scale", "float"]

ANIMATION_CLIP = 74
"""Unity's class number of clips."""
TRANSFORM, SKINNED_MESH, ANIMATOR = 4, 137, 95

_LISTS: dict[str, tuple[Kind, int]] = {
    "m_RotationCurves": ("rotation", 4),
    "m_EulerCurves": ("euler", 3),
    "m_PositionCurves": ("position", 3),
    "m_ScaleCurves": ("scale", 3),
    "m_FloatCurves": ("float", 1),
}
# The editor's copies of the curves, and what has no numbers; their text is passed over.
_PASSED = ("m_EditorCurves", "m_EulerEditorCurves", "m_PPtrCurves", "m_ClipBindingConstant", "m_Curve")
_FASTEST = 10_000
_LONGEST = 24 * 3600.0
_MOST_FRAMES = 20_000_000


@dataclass(frozen=True, eq=False)
class Curve:
    """One curve of a clip.

    Parameters
    ----------
    path : str
        Names of the transforms from below the animated object, joined by ``/``; empty: the object itself.
    kind : "rotation", "euler", "position", "scale" or "float"
    keys : Keys
        Components x, y, z (, w), or one; degrees where ``kind`` is "euler".
    before, after : int
        What it does beyond its ends.
    order : int
        Rotation order of "euler".
    attribute : str
        What a "float" moves, as Unity calls it.
    class_id : int
        Unity's class of the component that has the attribute.
    """

    path: str
    kind: Kind
    keys: Keys
    before: int = unity_curves.CLAMP
    after: int = unity_curves.CLAMP
    order: int = unity_curves.UNITY_ORDER
    attribute: str = ""
    class_id: int = 0

    def at(self, times: Array) -> Array:
        """Values ``(F, C)`` at ``times (F,)``, seconds of the clip."""
        return unity_curves.evaluate(self.keys, times, self.before, self.after)


@dataclass(frozen=True, eq=False)
class UnityClip:
    """A clip as it is in the file.

    Parameters
    ----------
    name : str
    curves : tuple of Curve
    rate : Fraction
        Samples a second that it was made at.
    start, stop : float
        Seconds: the part that plays.
    loop : bool
    events : tuple of (float, str)
        Seconds and the function's name.
    notes : tuple of str
    """

    name: str
    curves: tuple[Curve, ...]
    rate: Fraction
    start: float
    stop: float
    loop: bool = False
    events: tuple[tuple[float, str], ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def muscles(self) -> bool:
        """Whether it moves the muscles of a humanoid, and no bone."""
        return any(c.class_id == ANIMATOR for c in self.curves) and not any(c.kind != "float" and c.path for c in self.curves)

    def times(self, rate: Fraction | None = None) -> Array:
        """(F,): seconds of the clip, a frame each from its start; the last is its end where that is a frame."""
        rate = rate or self.rate
        # stop and rate are float32 in Unity: a frame may lie a rounding beyond the end
        count = int(np.floor((self.stop - self.start) * float(rate) + 1e-3)) + 1
        if count > _MOST_FRAMES:
            raise MocapError(f'"{self.name}" would have {count} frames at this rate; choose a lower one, or look at its length.')
        return timeline.uniform_times(count, rate, self.start)


def read_clips(path: str | Path) -> list[UnityClip]:
    """The clips of a ``.anim`` file (or of any text asset of Unity that holds some).

    Raises
    ------
    FileError
        No Unity text file, none with a clip, or a damaged one: then with the line.
    """
    path = Path(path)
    data = unity_yaml.load(path)
    if not data.lstrip().startswith((b"%YAML", b"---")):
        raise FileError("This is no text file of Unity: it does not begin with %YAML.", path)
    found = [d for d in unity_yaml.documents(data) if d.kind == ANIMATION_CLIP]
    if not found:
        raise FileError("There is no animation clip in this Unity file.", path)
    return [_clip(data, d.start, d.stop, path) for d in found]


def _clip(data: bytes, start: int, stop: int, path: Path) -> UnityClip:
    try:
        parsed = Parser(data, start, stop, path, _PASSED).parse()
    except RecursionError:
        raise FileError("The lists of this file are nested too deeply; it is damaged.", path) from None
    fields = parsed.get("AnimationClip") if isinstance(parsed, Map) else None
    if not isinstance(fields, Map):
        raise FileError("The animation clip has no content; the file is damaged here.", path, line_of(data, start))
    read = _Fields(data, path)
    curves = read.curves(fields)
    curves += read.packed(fields)
    settings = fields.get("m_AnimationClipSettings")
    settings = settings if isinstance(settings, Map) else Map()
    rate = read.number(fields, "m_SampleRate", 60.0)
    if not 0.0 < rate <= _FASTEST:
        raise FileError(
            f"The clip has a sample rate of {rate:g}; it must lie between 0 and {_FASTEST}.", path, read.line(fields, "m_SampleRate")
        )
    first, last = read.range(settings, curves, path)
    name = str(fields.get("m_Name") or "") if isinstance(fields.get("m_Name"), Text) else ""
    notes: list[str] = []
    objects = fields.get("m_PPtrCurves")
    if isinstance(objects, Span):
        count = data[objects.start : objects.stop].count(b"\n" + b" " * objects.indent + b"- ") + 1
        notes.append(f"{_counted(count, 'curve that changes', 'curves that change')} objects (sprites, materials) was left out.")
    if settings.get("m_Mirror") == "1":
        notes.append("Unity plays this clip mirrored; here it is as it was recorded.")
    if not curves:
        raise FileError("The animation clip has no curves that can be read; nothing in it moves.", path, line_of(data, start))
    return UnityClip(
        name or path.stem,
        tuple(curves),
        timeline.rate_from_frame_time(1.0 / rate),
        first,
        last,
        settings.get("m_LoopTime") == "1" or str(fields.get("m_WrapMode")) in ("2", "4"),
        read.events(fields),
        tuple(notes),
    )


class _Fields:
    """Values of a clip's fields, with the line where one is wrong."""

    def __init__(self, data: bytes, path: Path) -> None:
        self.data, self.path = data, path

    def line(self, fields: Map, name: str) -> int:
        node = fields.get(name)
        return line_of(self.data, node.at if isinstance(node, Text | Map) and node.at >= 0 else fields.at)

    def number(self, fields: Map, name: str, default: float) -> float:
        node = fields.get(name)
        if node is None or (isinstance(node, Text) and not node):
            return default
        return unity_keys.number(self.data, node, self.path, where=fields.at)

    def code(self, fields: Map, name: str, default: int) -> int:
        node = fields.get(name)
        if isinstance(node, Text) and node.isdecimal() and len(node) < 10:
            return int(node)
        return int(min(max(self.number(fields, name, default), -1e9), 1e9))

    def items(self, fields: Map, name: str) -> list[Map]:
        node = fields.get(name)
        if node is None or (isinstance(node, Text) and not node):
            return []
        if not isinstance(node, list) or not all(isinstance(item, Map) for item in node):
            raise FileError(f"{name} is not a list of curves; the file is damaged here.", self.path, self.line(fields, name))
        return [item for item in node if isinstance(item, Map)]

    def curves(self, fields: Map) -> list[Curve]:
        """The curves of all lists but the packed ones."""
        found: list[tuple[Kind, int, Map, Map]] = []
        spans: list[Span] = []
        for name, (kind, width) in _LISTS.items():
            for item in self.items(fields, name):
                curve = item.get("curve")
                if not isinstance(curve, Map) or "m_Curve" not in curve:
                    raise FileError("This curve has no keys; the file is damaged here.", self.path, line_of(self.data, item.at))
                keys = curve["m_Curve"]
                if isinstance(keys, Span):
                    spans.append(keys)
                    found.append((kind, width, item, curve))
                elif keys:
                    raise FileError(
                        "The keys of this curve are not a list; the file is damaged here.", self.path, self.line(curve, "m_Curve")
                    )
        read = unity_keys.read(self.data, spans, self.path)
        return [self._curve(kind, width, item, curve, keys) for (kind, width, item, curve), keys in zip(found, read, strict=True)]

    def _curve(self, kind: Kind, width: int, item: Map, curve: Map, keys: Keys) -> Curve:
        if keys.values.shape[1] != width:
            raise FileError(
                f"The keys of this {kind} curve have {keys.values.shape[1]} components, {width} were expected; the file is damaged here.",
                self.path,
                line_of(self.data, item.at),
            )
        return Curve(
            _text(item.get("path")),
            kind,
            keys,
            self.code(curve, "m_PreInfinity", unity_curves.CLAMP),
            self.code(curve, "m_PostInfinity", unity_curves.CLAMP),
            self.code(curve, "m_RotationOrder", unity_curves.UNITY_ORDER),
            _text(item.get("attribute")),
            self.code(item, "classID", 0),
        )

    def packed(self, fields: Map) -> list[Curve]:
        """The compressed rotation curves."""
        return [
            Curve(
                _text(item.get("m_Path")),
                "rotation",
                unity_packed.keys(self.data, item, self.path),
                self.code(item, "m_PreInfinity", unity_curves.CLAMP),
                self.code(item, "m_PostInfinity", unity_curves.CLAMP),
            )
            for item in self.items(fields, "m_CompressedRotationCurves")
        ]

    def range(self, settings: Map, curves: Sequence[Curve], path: Path) -> tuple[float, float]:
        """The seconds that play: the clip's settings where they say so, else all keys."""
        first, last = self.number(settings, "m_StartTime", 0.0), self.number(settings, "m_StopTime", 0.0)
        ends = [(float(c.keys.times[0]), float(c.keys.times[-1])) for c in curves if len(c.keys.times)]
        if last <= first and ends:
            first, last = min(a for a, _ in ends), max(b for _, b in ends)
        if last - first > _LONGEST:
            line = self.line(settings, "m_StopTime") if "m_StopTime" in settings else None
            raise FileError(f"The clip lasts {last - first:g} seconds, which cannot be; the file is damaged.", path, line)
        return first, last

    def events(self, fields: Map) -> tuple[tuple[float, str], ...]:
        return tuple((self.number(e, "time", 0.0), _text(e.get("functionName"))) for e in self.items(fields, "m_Events"))


def _text(node: Node | None) -> str:
    return str(node) if isinstance(node, Text) else ""


def _counted(count: int, one: str, more: str) -> str:
    return f"1 {one}" if count == 1 else f"{count} {more}"
