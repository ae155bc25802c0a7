# SPDX-License-Identifier: GPL-3.0-or-later
"""From an MVNX subject's definitions to joints: hierarchy, bone offsets, bone ends, and the frames MVN gives its segments.

A segment's own ("body") frame stands like the world (X forward, Y left, Z up) when the body stands straight with its arms out. Files can
instead be written with the frames of the International Society of Biomechanics, which differ in arms and hands; their points still are
in body frames (measured on a file of MVN Studio 4.2: links miss by up to 400 mm as written, by 2 mm when turned).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from .mvnx_xml import Point, SegmentGroup, Subject

Array = NDArray[np.float64]

_CHAINS: tuple[tuple[str, ...], ...] = (
    ("Pelvis", "L5", "L3", "T12", "T8", "Neck", "Head"),
    *(("T8", f"{s}Shoulder", f"{s}UpperArm", f"{s}ForeArm", f"{s}Hand") for s in ("Right", "Left")),
    *(("Pelvis", f"{s}UpperLeg", f"{s}LowerLeg", f"{s}Foot", f"{s}Toe") for s in ("Right", "Left")),
)
STANDARD: tuple[str, ...] = tuple(dict.fromkeys(name for chain in _CHAINS for name in chain))
"""The 23 segments in MVN's order."""
_STANDARD_PARENT: dict[str, str] = {child: parent for chain in _CHAINS for parent, child in pairwise(chain)}

_FINGERS: tuple[str, ...] = (
    "Carpus",
    *(f"First{part}" for part in ("MC", "PP", "DP")),
    *(f"{finger}{part}" for finger in ("Second", "Third", "Fourth", "Fifth") for part in ("MC", "PP", "MP", "DP")),
)
"""The 20 segments of a hand in MVN's order, without the side."""

_HALF = 0.5**0.5
ISB_FROM_BODY: dict[str, tuple[float, float, float, float]] = {
    "RightUpperArm": (_HALF, -_HALF, 0.0, 0.0),
    "RightForeArm": (0.5, -0.5, 0.5, 0.5),
    "RightHand": (0.5, -0.5, 0.5, 0.5),
    "LeftUpperArm": (_HALF, _HALF, 0.0, 0.0),
    "LeftForeArm": (0.5, 0.5, 0.5, -0.5),
    "LeftHand": (0.5, 0.5, 0.5, -0.5),
}
"""wxyz: what stands to the right of a segment's body orientation in an ISB file; read off the ``npose`` and ``tpose-isb`` frames."""

_PROP = re.compile(r"prop\W*\d*", re.IGNORECASE)
_FINGER = re.compile(r"(?:Left|Right)(First|Second|Third|Fourth|Fifth)(MC|PP|MP|DP)$")


@dataclass(frozen=True)
class Layout:
    """Joints in an order where parents stand first, and where their numbers are in a frame.

    Parameters
    ----------
    names : tuple of str
    parents : (J,) int array
    groups : tuple of str
        The side whose finger block a joint is in; "" for the body.
    columns : (J,) int array
        A joint's place in its block.
    offsets : (J, 3) array
        Metres, in the parent's body frame; NaN where the definitions do not say (and for the root).
    ends : (J, 3) array
        Metres, in the joint's body frame; NaN for joints with children, and where no point says.
    props : tuple of (str, int)
        Name and column of rigid bodies beside the person.
    """

    names: tuple[str, ...]
    parents: NDArray[np.int64]
    groups: tuple[str, ...]
    columns: NDArray[np.int64]
    offsets: Array
    ends: Array
    props: tuple[tuple[str, int], ...]

    @property
    def isb(self) -> Array:
        """(J, 4): what to multiply ISB orientations with from the right to get body orientations."""
        return np.array([quat.inv(np.array(ISB_FROM_BODY[n])) if n in ISB_FROM_BODY else quat.IDENTITY for n in self.names])


def is_prop(name: str) -> bool:
    """Whether a segment is called like one of MVN's props."""
    return _PROP.fullmatch(name) is not None


class LayoutError(Exception):
    """Definitions that give no hierarchy; the text is half a sentence that says why."""


def layout(subject: Subject, counts: Mapping[str, int]) -> Layout:
    """Joints of a subject whose frames hold ``counts[side]`` segments ("" for the body); :class:`LayoutError` when they make no body."""
    bodies = _body_labels(subject.groups[""], counts.get("", 0))
    parts = [n for n in bodies if not is_prop(n)]
    parents = _known_links(subject.groups[""], parts)
    for name in parts:
        above = _STANDARD_PARENT.get(name)
        if name not in parents and above is not None and above in parts:
            parents[name] = above
    root = _root(parts, parents)
    members = [n for n in parts if _leads_to(n, root, parents)]
    outside = [(n, i) for i, n in enumerate(bodies) if n not in members]
    column: dict[str, tuple[str, int]] = {n: ("", i) for i, n in enumerate(bodies) if n in members}
    for side in ("Left", "Right"):
        if counts.get(side, 0) and f"{side}Hand" in column:
            fingers = [n if n not in column else f"{n} (finger)" for n in _finger_labels(subject.groups[side], counts[side], side)]
            parents.update(_finger_parents(subject.groups[side], fingers, f"{side}Hand"))
            column.update({n: (side, i) for i, n in enumerate(fingers)})
    names = _parents_first(list(column), parents, root)
    index = {n: i for i, n in enumerate(names)}
    points = {s.label: s.points for group in subject.groups.values() for s in group.segments}
    joints = _connectors(subject)
    leaves = set(names) - {parents[n] for n in names[1:]}
    return Layout(
        tuple(names),
        np.array([-1, *(index[parents[n]] for n in names[1:])], dtype=np.int64),
        tuple(column[n][0] for n in names),
        np.array([column[n][1] for n in names], dtype=np.int64),
        np.array([_UNKNOWN, *(_offset(joints.get((parents[n], n)), points.get(parents[n], {}), points.get(n, {})) for n in names[1:])]),
        np.array([_end(points.get(n, {})) if n in leaves else _UNKNOWN for n in names]),
        tuple(outside),
    )


_UNKNOWN: Point = (np.nan, np.nan, np.nan)


def _body_labels(group: SegmentGroup, count: int) -> list[str]:
    """Names of the ``count`` segments in a frame: the defined ones, the standard 23 where nothing is defined; props for any more."""
    defined = [s.label for s in group.segments] or list(STANDARD if count >= len(STANDARD) else ())
    if not defined or count < len(defined):
        raise LayoutError(f"its frames hold {count} segments and {len(defined)} are defined")
    return _unique(defined + [f"Prop{i + 1}" for i in range(count - len(defined))])


def _finger_labels(group: SegmentGroup, count: int, side: str) -> list[str]:
    """Names of the ``count`` finger segments of one hand, likewise."""
    defined = [s.label for s in group.segments] or [f"{side}{name}" for name in _FINGERS if count == len(_FINGERS)]
    return _unique((defined + [f"{side}Finger{i + 1}" for i in range(count)])[:count])


def _unique(names: Sequence[str]) -> list[str]:
    out: list[str] = []
    for i, name in enumerate(names):
        free = name or "Segment"
        while free in out:
            free = f"{free}_{i + 1}"
        out.append(free)
    return out


def _links(group: SegmentGroup) -> dict[str, str]:
    """Child -> parent of a group's joints."""
    return {b.partition("/")[0]: a.partition("/")[0] for a, b in group.joints if a.partition("/")[0] != b.partition("/")[0]}


def _known_links(group: SegmentGroup, names: Sequence[str]) -> dict[str, str]:
    """The same among ``names`` alone: a segment whose parent is not there hangs on the next one above that is."""
    links = _links(group)
    out: dict[str, str] = {}
    for child in names:
        above, seen = links.get(child), {child}
        while above is not None and above not in names and above not in seen:
            seen.add(above)
            above = links.get(above)
        if above is not None and above in names and above != child:
            out[child] = above
    return out


def _root(names: Sequence[str], parents: Mapping[str, str]) -> str:
    if "Pelvis" in names and parents.get("Pelvis") not in names:
        return "Pelvis"
    tops = [n for n in names if parents.get(n) not in names]
    if not tops:
        raise LayoutError("its joints form a circle")
    return max(tops, key=lambda top: sum(_leads_to(n, top, parents) for n in names))


def _leads_to(name: str, root: str, parents: Mapping[str, str]) -> bool:
    seen: set[str] = set()
    while name != root:
        if name in seen or name not in parents:
            return False
        seen.add(name)
        name = parents[name]
    return True


def _finger_parents(group: SegmentGroup, fingers: Sequence[str], hand: str) -> dict[str, str]:
    """Child -> parent of one hand: by its joints, else by the standard names, else straight from the hand."""
    links = _links(group)
    out: dict[str, str] = {}
    previous: dict[str, str] = {}
    carpus = next((n for n in fingers if n.endswith("Carpus")), hand)
    for name in fingers:
        match = _FINGER.match(name)
        finger = match.group(1) if match else ""
        chained = previous.get(finger, carpus) if finger else hand
        above = links.get(name, chained)
        out[name] = above if above in fingers and above != name else (chained if chained != name and name not in links else hand)
        previous[finger] = name
    for name in fingers:  # a circle in the file's joints would hang in the air
        if not _leads_to(name, hand, out):
            out[name] = hand
    return out


def _parents_first(names: Sequence[str], parents: Mapping[str, str], root: str) -> list[str]:
    children: dict[str, list[str]] = {}
    for n in names:
        if n != root:
            children.setdefault(parents[n], []).append(n)
    position = {n: i for i, n in enumerate(names)}
    if all(position[parents[n]] < i for i, n in enumerate(names) if n != root) and names[0] == root:
        return list(names)  # the file's own order
    out: list[str] = []
    todo = [root]
    while todo:
        name = todo.pop()
        out.append(name)
        todo.extend(reversed(children.get(name, [])))
    return out


def _connectors(subject: Subject) -> dict[tuple[str, str], tuple[str, str]]:
    """(Parent, child) -> the names of their joint's point in the parent and in the child."""
    out: dict[tuple[str, str], tuple[str, str]] = {}
    for group in subject.groups.values():
        for a, b in group.joints:
            (pa, _, ja), (pb, _, jb) = a.partition("/"), b.partition("/")
            out.setdefault((pa, pb), (ja, jb))
    return out


def _offset(joint: tuple[str, str] | None, parent: Mapping[str, Point], child: Mapping[str, Point]) -> Point:
    """Where a segment begins in its parent's frame: the joint's point in the parent, when the child begins at that joint."""
    if joint is not None and _is_origin(child.get(joint[1], (0.0, 0.0, 0.0))) and joint[0] in parent:
        return parent[joint[0]]
    return next((parent[k] for k, p in child.items() if k.startswith("j") and _is_origin(p) and k in parent), _UNKNOWN)


def _is_origin(point: Point) -> bool:
    return max(map(abs, point)) < 1e-6


def _end(points: Mapping[str, Point]) -> Point:
    """The tip of a segment without children: top of head or hand, tip of toe or finger, else its farthest point."""
    if not points:
        return _UNKNOWN
    tips = [p for label, p in points.items() if re.fullmatch(r"p(?:Right|Left)?(?:TopOf(?:Head|Hand)|Toe|\w*Tip)", label)]
    best = max(tips or points.values(), key=lambda p: float(np.linalg.norm(p)))
    return best if np.linalg.norm(best) > 1e-6 else _UNKNOWN
