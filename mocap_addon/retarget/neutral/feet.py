# SPDX-License-Identifier: GPL-3.0-or-later
"""Feet of an estimated reference pose: the sole is what lies level while a foot stands.

How far the line from ankle to toes slopes while the foot stands flat is the same for both feet and in any frame, so both are asked
together; the flattest stances count, for a heel lifts long before the toes do. The roll about that line is each foot's own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...motion import quat
from ...rig.roles import SIDES
from .estimate import BACK, Estimate, confidence, evidence, nearest_known
from .observe import UP, Samples, held_rotation, mean_direction, mean_rotation, turn_onto, unit

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

_SLOW = (0.08, 0.15, 0.3, 0.6)
"""Metres a second below which a foot stands; the first that shows enough stances."""
_STANCES = 4
_FLAT = float(np.cos(np.radians(8.0)))
_HELD = 0.6
"""Share of frames in one and the same rotation from which a joint was not captured: it then shows its rest."""


def estimate_feet(s: Samples, found: Estimate) -> None:
    """Feet and toes of both sides."""
    stances = {side: _stance(s, side) for side in SIDES}
    slope = _slope(s, stances)
    for side in SIDES:
        foot = s.one(f"{side}Foot")
        if foot is None or _held(s, found, foot):
            continue
        _foot(s, found, side, foot, stances[side], slope)
    for side in SIDES:
        toes = s.one(f"{side}Toes")
        foot = s.one(f"{side}Foot")
        if toes is not None and foot is not None and foot in found.rotations and not _held(s, found, toes):
            _toes(s, found, toes, foot, stances[side])


def _held(s: Samples, found: Estimate, joint: int) -> bool:
    """Put a joint that hardly ever turns where it always is."""
    above = nearest_known(s, found, joint)
    if above is None:
        return False
    rotation, share = held_rotation(quat.mul(quat.inv(s.rotations[:, above]), s.rotations[:, joint]))
    if share < _HELD or len(s) < 10:
        return False
    found.follow(joint, above, rotation, 0.9)
    return True


def _points(s: Samples, side: str) -> list[int]:
    return [j for part in ("Foot", "Toes") if (j := s.one(f"{side}{part}")) is not None]


def _stance(s: Samples, side: str) -> Mask:
    """(f,): frames in which a foot stands: ankle and toes are slow, and below the hips."""
    joints, hips = _points(s, side), s.one("hips")
    if not joints or hips is None:
        return np.zeros(len(s), dtype=bool)
    speed: Array = s.speeds[:, joints].max(axis=1)
    under = s.positions[:, hips, 2] - s.positions[:, joints[0], 2] > 0.5 * s.leg
    for limit in _SLOW:
        stands: Mask = under & (speed < limit)
        if int(stands.sum()) >= _STANCES:
            return stands
    return under & (speed <= float(np.percentile(speed, 10.0)))


def _toe_direction(s: Samples, side: str) -> Array | None:
    """(3,): from ankle to toes in the foot's frame, else to the foot's own end, else None."""
    foot, toes = s.one(f"{side}Foot"), s.one(f"{side}Toes")
    if foot is None:
        return None
    way = s.reach(foot, toes) if toes is not None else s.skeleton.ends[foot]
    return unit(way) if bool(np.isfinite(way).all()) and float(np.linalg.norm(way)) > 1e-4 else None


def _slope(s: Samples, stances: dict[str, Mask]) -> float | None:
    """Radians by which the line from ankle to toes rises (mostly: falls, below 0) under a flat sole; None where no foot stands."""
    heights: list[Array] = []
    slopes: list[Array] = []
    for side, stands in stances.items():
        direction, foot = _toe_direction(s, side), s.one(f"{side}Foot")
        if direction is None or foot is None or not stands.any():
            continue
        rise = quat.rotate(s.rotations[stands, foot], direction)[:, 2]
        slopes.append(np.arcsin(np.clip(rise, -1.0, 1.0)))
        heights.append(s.positions[stands, foot, 2])
    if not slopes:
        return None
    slope, height = np.concatenate(slopes), np.concatenate(heights)
    low = height <= max(float(np.percentile(height, 5.0)) + 0.005 * s.leg, float(np.sort(height)[min(2, len(height) - 1)]))
    return float(np.percentile(slope[low], 65.0))


def _foot(s: Samples, found: Estimate, side: str, foot: int, stands: Mask, slope: float | None) -> None:
    direction = _toe_direction(s, side)
    shin = nearest_known(s, found, foot)
    if not stands.any():  # never on the ground: it hangs from the shin as it mostly does
        if shin is not None:
            found.follow(foot, shin, mean_rotation(quat.mul(quat.inv(s.rotations[:, shin]), s.rotations[:, foot]))[0], 0.3)
        return
    up, stray = mean_direction(s.inside(foot, np.broadcast_to(UP, (len(s), 3)))[stands])
    if direction is None:
        if shin is None:
            return
        # Nothing says where the foot points: where the knee does.
        ahead = quat.rotate(s.rotations[:, shin], quat.rotate(quat.inv(found.rotations[shin]), -BACK))
        direction, astray = mean_direction(s.inside(foot, ahead)[stands])
        found.put(foot, turn_onto(up, direction, UP, -BACK), 0.6 * confidence(max(stray, astray)))
        return
    level = unit(up - direction * float(up @ direction))
    if slope is not None:
        up = np.sin(slope) * direction + np.cos(slope) * level
    shown = evidence(int(stands.sum()))
    found.put(foot, turn_onto(up, direction, UP, -BACK), 0.9 * shown * confidence(stray) if slope is not None else 0.3)


def _toes(s: Samples, found: Estimate, toes: int, foot: int, stands: Mask) -> None:
    sole = quat.rotate(s.rotations[:, foot], quat.rotate(quat.inv(found.rotations[foot]), UP))
    flat = stands & (sole[:, 2] > _FLAT)
    if int(flat.sum()) < _STANCES:  # no foot stands flat: toes then stand to the foot as they mostly do
        relative, stray = mean_rotation(quat.mul(quat.inv(s.rotations[:, foot]), s.rotations[:, toes]))
        found.follow(toes, foot, relative, 0.7 * confidence(stray))
        return
    up, stray = mean_direction(s.inside(toes, np.broadcast_to(UP, (len(s), 3)))[flat])
    ahead = quat.rotate(s.rotations[:, foot], quat.rotate(quat.inv(found.rotations[foot]), -BACK))
    direction, astray = mean_direction(s.inside(toes, ahead)[flat])
    if float(np.linalg.norm(np.cross(up, direction))) > 0.2:
        found.put(toes, turn_onto(up, direction, UP, -BACK), 0.85 * confidence(max(stray, astray)))
