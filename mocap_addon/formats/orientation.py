# SPDX-License-Identifier: GPL-3.0-or-later
"""Which way is up, which way a body faces, and how long a file unit is: found from the motion, and from the rest pose where it is a body.

Files do not say any of it. Head, hips and feet of some frames spread over the take are set up in the file's own axes, and every one of the
six axes is asked how well it explains them: the body stands along it; the rest pose does; the lowest point of the body keeps to one height
(the floor) near zero. A lying or crawling performer loses the first vote and keeps the other two.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from . import landmarks
from .landmarks import Landmarks
from .options import AXES, Axis

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

UNITS: tuple[tuple[str, float, float, float], ...] = (
    # name, metres, and between which heights of a body (metres) it is believed: wide for the usual ones
    ("m", 1.0, 0.95, 2.6),
    ("cm", 0.01, 0.95, 2.6),
    ("mm", 0.001, 0.95, 2.6),
    ("1/0.45 inch", 0.0254 / 0.45, 1.3, 2.15),
    ("inch", 0.0254, 1.3, 2.15),
    ("dm", 0.1, 1.3, 2.15),
    ("foot", 0.3048, 1.3, 2.15),
)
USUAL_HEIGHT = 1.7
# Of a standing adult's height: hips to skull base about 0.34, hips to ankle with the way out to the hip joint about 0.49
# (segment lengths after Drillis and Contini, 1966, as given by Winter, Biomechanics and Motor Control of Human Movement).
_CHAIN_SHARE = 0.83


def axis_vector(axis: Axis) -> Array:
    """Unit vector ``(3,)`` of an axis name."""
    out = np.zeros(3)
    out["XYZ".index(axis[-1])] = -1.0 if axis[0] == "-" else 1.0
    return out


def turn_to_z(up: Axis) -> Array:
    """The rotation ``(4,)`` that turns a file's up axis onto +Z: a quarter turn about X for Y up, about Y for X up."""
    s = np.sqrt(0.5)
    return np.array(
        {
            "Z": [1.0, 0.0, 0.0, 0.0],
            "Y": [s, s, 0.0, 0.0],
            "-Y": [s, -s, 0.0, 0.0],
            "-Z": [0.0, 1.0, 0.0, 0.0],
            "X": [s, 0.0, -s, 0.0],
            "-X": [s, 0.0, s, 0.0],
        }[up]
    )


def sample_positions(rotations: Array, translations: Array, parents: Indices, most: int = 40) -> Array:
    """Joint positions ``(N, J, 3)`` of at most ``most`` frames spread over the take; by matrices, which is less work for few frames."""
    frames = len(rotations)
    at = np.unique(np.linspace(0, frames - 1, min(frames, most)).round().astype(np.int64))
    local = quat.to_matrix(np.ascontiguousarray(rotations[at]))
    move = translations[at] if len(translations) == frames else np.broadcast_to(translations, (len(at), *translations.shape[1:]))
    place = np.empty((len(parents), len(at), 3))
    turn = np.empty((len(parents), len(at), 3, 3))
    for j, p in enumerate(parents.tolist()):
        if p < 0:
            turn[j], place[j] = local[:, j], move[:, j]
        else:
            turn[j] = turn[p] @ local[:, j]
            place[j] = place[p] + (turn[p] @ move[:, j, :, None])[..., 0]
    return place.transpose(1, 0, 2)


def body_axis(positions: Array, marks: Landmarks) -> Array:
    """Unit vectors ``(N, 3)`` from the feet to the head, by way of the hips; zero where there is no body."""
    if not marks.body:
        return np.zeros((len(positions), 3))
    hips = positions[:, marks.hips]
    return _unit(_unit(positions[:, marks.head] - hips) - _unit(positions[:, list(marks.feet)].mean(axis=1) - hips))


def rest_is_body(rest: Array, marks: Landmarks) -> str:
    """``"body"``, ``"collapsed"`` (head and legs lie on the same side of the hips) or ``"other"``; from rest positions ``(J, 3)``."""
    if not marks.body:
        return "other"
    hips = rest[marks.hips]
    head, legs = _unit(rest[marks.head] - hips), _unit(rest[list(marks.feet)] - hips)
    along = legs @ head  # of each leg: some rigs lay the left one along the spine and the right one against it
    if not np.any(head) or not np.all(np.any(legs, axis=1)) or float(along.max()) > 0.5:
        return "collapsed"
    return "body" if float(along.max()) < -0.7 and float(np.abs(_unit(head - legs.mean(axis=0))).max()) > 0.85 else "other"


def rest_up_axis(rest: Array, marks: Landmarks) -> Axis | None:
    """The file axis along which the rest pose ``(J, 3)`` stands, or a skeleton that is no body reaches farthest; None: neither."""
    if not marks.body:
        reach: Array = rest.max(axis=0) - rest.min(axis=0)
        return ("X", "Y", "Z")[int(np.argmax(reach))] if float(reach.max()) > 2.0 * float(np.median(reach)) else None
    if rest_is_body(rest, marks) != "body":
        return None
    return nearest_axis(body_axis(rest[None], marks)[0])


def up_axis(positions: Array, marks: Landmarks, rest_up: Axis | None) -> tuple[Axis, bool]:
    """The file axis that points up in the motion ``(N, J, 3)``, and whether anything but habit told so."""
    if len(positions) == 0 or not marks.body:
        return rest_up or "Y", False
    stands = body_axis(positions, marks).mean(axis=0)
    size = max(float(np.linalg.norm(positions[:, marks.head] - positions[:, list(marks.feet)].mean(axis=1), axis=1).max()), 1e-9)

    def votes(axis: Axis) -> float:
        vector = axis_vector(axis)
        lowest: Array = (positions @ vector).min(axis=1)
        floor = float(np.exp(-((np.median(lowest) / (0.15 * size)) ** 2) - (np.std(lowest) / (0.1 * size)) ** 2))
        return float(stands @ vector) + 0.65 * (axis == rest_up) + 0.5 * floor + 0.1 * (axis == "Y") + 0.05 * (axis == "Z")

    return max(AXES, key=votes), True


def facing(positions: Array, marks: Landmarks, parents: Indices, up: Array) -> Array | None:
    """Unit vectors ``(N, 3)`` the body faces, level; None where no left and right were found. Left +X and up +Z face -Y."""
    across = _across(positions, marks, parents)
    if across is None:
        return None
    level = across - (across @ up)[..., None] * up
    forward = np.cross(level, up)
    return _unit(forward) if np.all(np.linalg.norm(forward, axis=-1) > 1e-9) else None


def arms(rest: Array, marks: Landmarks, parents: Indices, up: Array) -> str:
    """How the arms of the rest pose ``(J, 3)`` are held: ``"t"``, ``"a"``, ``"arms down"``, ``"arms up"`` or ``"other"``."""
    rises: list[float] = []
    for hand in marks.hands:
        elbow = int(parents[hand])
        while elbow >= 0 and np.linalg.norm(rest[hand] - rest[elbow]) < 0.08 * np.ptp(rest @ up):
            elbow = int(parents[elbow])
        if elbow >= 0:
            rises.append(float(np.degrees(np.arcsin(np.clip(_unit(rest[hand] - rest[elbow]) @ up, -1.0, 1.0)))))
    if not rises:
        return "other"
    rise = float(np.mean(rises))
    if rise > 45.0:
        return "arms up"
    if rise > 20.0:
        return "other"
    return "t" if rise >= -20.0 else "a" if rise > -70.0 else "arms down"


def unit_of(lengths: Array, parents: Indices, marks: Landmarks, positions: Array) -> tuple[str, float, bool]:
    """What one file unit is: (name, metres, whether the size of a body told so).

    From the bone lengths ``(J,)`` of the legs and the longest way from hips to head in some poses ``(N, J, 3)``, all in file units.
    """
    if marks.body:
        leg = float(np.mean([landmarks.path_length(lengths, parents, foot, marks.hips) for foot in marks.feet]))
        back = float(np.linalg.norm(positions[:, marks.head] - positions[:, marks.hips], axis=1).max())
        height = (leg + back) / _CHAIN_SHARE
        for name, metres, low, high in UNITS:
            if low <= height * metres <= high:
                return name, metres, True
        if height > 0.0:
            return "odd", USUAL_HEIGHT / height, True
    reach = _reach(lengths, parents)
    return ("m", 1.0, False) if 0.3 <= reach <= 5.0 else ("cm", 0.01, False)


def nearest_axis(vector: Array) -> Axis:
    """The axis name closest to a vector ``(3,)``."""
    return max(AXES, key=lambda axis: float(axis_vector(axis) @ vector))


def _across(positions: Array, marks: Landmarks, parents: Indices) -> Array | None:
    """From right to left ``(N, 3)``: the sum over the uppermost pairs that lie apart (hip joints, collars or shoulders).

    What hangs below such a pair swings (a stride turns the line between the feet by a right angle), and what is on the head looks about.
    """
    total = np.zeros((len(positions), 3))
    counted = {marks.head}
    for left, right in marks.pairs:
        apart = positions[:, left] - positions[:, right]
        if float(np.linalg.norm(apart, axis=-1).min()) < 1e-6 or landmarks.is_below(left, counted, parents):
            continue
        total += apart
        counted.add(left)
    return total if np.any(total) else None


def _reach(lengths: Array, parents: Indices) -> float:
    out = np.zeros(len(lengths))
    for j, p in enumerate(parents.tolist()):
        out[j] = lengths[j] + out[p] if p >= 0 else 0.0
    return float(out.max(initial=0.0))


def _unit(v: Array) -> Array:
    length = np.linalg.norm(v, axis=-1, keepdims=True)
    return np.where(length > 1e-12, v / np.maximum(length, 1e-300), 0.0)
