# SPDX-License-Identifier: GPL-3.0-or-later
"""Two bones to a target, as turns of the source's own bones: how bones are rolled and what lies between them does not matter."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..motion import quat
from .body import Feet
from .pose import Legs
from .settings import FeetSettings

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Solved:
    """Legs that reach for their targets.

    Parameters
    ----------
    thigh_turn, shin_turn : (F, 2, 4) array
        World rotations to put in front of the bones' own.
    knee, ankle : (F, 2, 3) array
        World, metres.
    missing : (F, 2) array
        Metres between ankle and target.
    stretch : (F, 2) array
        Factor on both bones' lengths.
    """

    thigh_turn: Array
    shin_turn: Array
    knee: Array
    ankle: Array
    missing: Array
    stretch: Array


def dot(a: Array, b: Array) -> Array:
    """Inner product over the last axis."""
    return np.einsum("...i,...i->...", a, b)


def length(a: Array) -> Array:
    """Length over the last axis."""
    return np.sqrt(dot(a, a))


def unit(a: Array) -> Array:
    """Direction; zero stays zero."""
    return a / np.maximum(length(a), 1e-12)[..., None]


def cross(a: Array, b: Array) -> Array:
    """Cross product over the last axis."""
    a, b = np.broadcast_arrays(a, b)
    out = np.empty(a.shape)
    out[..., 0] = a[..., 1] * b[..., 2] - a[..., 2] * b[..., 1]
    out[..., 1] = a[..., 2] * b[..., 0] - a[..., 0] * b[..., 2]
    out[..., 2] = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return out


def free_reach(legs: Legs, settings: FeetSettings) -> tuple[Array, Array]:
    """How far each leg reaches before it becomes soft, and at most: two (F, 2) arrays, metres.

    The source's own distance from hip to ankle is always free, so that a leg is never less straight than it was performed; and a
    lock straightens no leg much beyond it.
    """
    whole = length(legs.knee - legs.hip) + length(legs.ankle - legs.knee)
    source = length(legs.ankle - legs.hip)
    free = np.maximum(source, settings.source_reach * whole)
    return free, np.maximum(settings.reach * whole, source)


def soft(distance: Array, free: Array, most: Array, width: Array) -> Array:
    """``distance`` up to ``free``, then ever less more, never ``most``: once smooth, exponential over ``width``.

    ``d' = free + w (1 - exp(-(d - free) / w))`` with ``w = min(width, most - free)``.
    """
    w = np.maximum(np.minimum(width, most - free), 1e-9)
    over = np.maximum(distance - free, 0.0)
    return np.where(distance > free, free + w * -np.expm1(-over / w), distance)


def solve(legs: Legs, feet: Feet, hip: Array, target: Array, settings: FeetSettings) -> Solved:
    """Bend the legs so that ankles come to ``target`` (F, 2, 3) from ``hip`` (F, 2, 3).

    The knee stays on the side that it has in the source: its offset from the line hip to ankle is carried over by the smallest turn of
    that line. Where the source's leg is straight, or bent the wrong way by less than a hand's breadth, the bend that is added goes
    about the rest pose's hinge.
    """
    thigh, shin = legs.knee - legs.hip, legs.ankle - legs.knee
    a, b = length(thigh), length(shin)
    line = legs.ankle - legs.hip
    w = unit(line)
    free, most = free_reach(legs, settings)
    wanted = target - hip
    d = length(wanted)
    reached = soft(d, free, most, settings.soft_reach * (a + b))
    stretch = 1.0 + np.clip(settings.stretch * (d / np.maximum(reached, 1e-9) - 1.0), 0.0, max(settings.stretch_limit - 1.0, 0.0))
    reached = np.clip(np.minimum(reached * stretch, d), np.abs(a - b) * stretch + 1e-6, None)
    w_new = np.where((d > 1e-9)[..., None], wanted / np.maximum(d, 1e-12)[..., None], w)
    along = (a * a + reached * reached / (stretch * stretch) - b * b) / (2.0 * np.maximum(reached / stretch, 1e-9)) * stretch
    out = np.sqrt(np.maximum((a * stretch) ** 2 - along * along, 0.0))

    bend = thigh - w * dot(thigh, w)[..., None]
    forward = _forward(legs, feet, w)
    bent = length(bend) / np.maximum(a, 1e-9)
    sided = np.where(dot(bend, forward) < 0.0, 0.12, 0.06)
    trust = np.clip((bent - 0.02) / (sided - 0.02), 0.0, 1.0)
    trust = trust * trust * (3.0 - 2.0 * trust)
    added = np.maximum(out - length(bend), 0.0) * (1.0 - trust)
    side = unit(bend + forward * (added + 1e-9)[..., None])
    side = unit(side - w * dot(side, w)[..., None])
    turn = quat.between(w, w_new, (1.0, 0.0, 0.0))
    side_new = quat.rotate(turn, side)
    side_new = unit(side_new - w_new * dot(side_new, w_new)[..., None])

    knee = hip + w_new * along[..., None] + side_new * out[..., None]
    ankle = hip + w_new * reached[..., None]
    plane, plane_new = cross(w, side), cross(w_new, side_new)
    thigh_turn, shin_turn = _turn(thigh, plane, knee - hip, plane_new), _turn(shin, plane, ankle - knee, plane_new)
    return Solved(thigh_turn, shin_turn, knee, ankle, np.maximum(d - reached, 0.0), stretch)


def _forward(legs: Legs, feet: Feet, w: Array) -> Array:
    """(F, 2, 3): where a straight leg's knee goes when it bends."""
    hinge = quat.rotate(legs.thigh, np.stack([leg.hinge for leg in feet.legs]))
    return unit(cross(w, hinge))


def _turn(old: Array, old_plane: Array, new: Array, new_plane: Array) -> Array:
    """The rotation that takes a bone's direction ``old`` to ``new`` and the plane it bends in along."""
    swing = quat.between(old, new, (1.0, 0.0, 0.0))
    axis = unit(new)
    brought = quat.rotate(swing, old_plane)
    brought = brought - axis * dot(brought, axis)[..., None]
    wanted = new_plane - axis * dot(new_plane, axis)[..., None]
    angle = np.arctan2(dot(cross(brought, wanted), axis), dot(brought, wanted))
    return quat.mul(quat.from_axis_angle(axis, angle), swing)
