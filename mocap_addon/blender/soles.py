# SPDX-License-Identifier: GPL-3.0-or-later
"""What a character's feet measure: from the skin that its armature deforms, in rest pose.

Bones end where riggers end them; what stands on the ground is the skin, or the shoe. Vertices count that belong most of all to the foot or
to anything that hangs on it. The heel is the lowest of them behind the first quarter of the way to the ball, the ball is the lowest from
four fifths of that way on: a shoe with a heel has two heights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import bpy
import numpy as np
from numpy.typing import NDArray

from ..feet.body import Sole
from ..motion import quat
from ..rig.roles import SIDES, RoleMap
from .armature import Target

Array = NDArray[np.float64]

_HEEL, _BALL = 0.25, 0.8
"""Shares of the way from ankle to ball."""

_NEAR_GROUND = 0.15
"""Of the way from ankle to ball: how far above the lowest vertex skin still counts as sole."""

_FEWEST = 6
"""Vertices of a foot: fewer are no sole."""


def measured(obj: bpy.types.Object, target: Target, roles: RoleMap) -> dict[str, Sole]:
    """Side -> what its sole measures, metres; a side whose skin says nothing is missing.

    Parameters
    ----------
    obj : armature object
    target : Target
        What :func:`.armature.read` said about it.
    roles : RoleMap
    """
    skins = [_Skin(mesh, into, target) for mesh, into in _skins(obj)]
    out: dict[str, Sole] = {}
    for side in SIDES:
        foot, toe = roles.one(f"{side}Foot"), roles.one(f"{side}Toes")
        if foot is None:
            continue
        found = _one(skins, target, foot, toe)
        if found is not None:
            out[side] = found
    return out


def soles_of(obj: bpy.types.Object, target: Target, roles: RoleMap, typed: Mapping[str, Sole]) -> dict[str, Sole]:
    """What a person said, else what was measured."""
    found = measured(obj, target, roles)
    for side, own in typed.items():
        base = found.get(side, Sole())
        found[side] = replace(base, **{name: value for name, value in vars(own).items() if value is not None})
    return found


def _skins(obj: bpy.types.Object) -> Iterator[tuple[bpy.types.Object, Array]]:
    """Meshes that the armature deforms, and what takes their vertices into its axes."""
    own = np.linalg.inv(np.array(obj.matrix_world, dtype=np.float64))
    for one in bpy.data.objects:
        if one.type != "MESH" or not len(one.data.vertices):
            continue
        deformed = any(m.type == "ARMATURE" and m.object == obj for m in one.modifiers)
        if deformed or (one.parent == obj and one.parent_type == "ARMATURE"):
            yield one, own @ np.array(one.matrix_world, dtype=np.float64)


def _one(skins: list[_Skin], target: Target, foot: int, toe: int | None) -> Sole | None:
    skeleton = target.skeleton
    ankle = skeleton.rest_global_positions[foot]
    below = {skeleton.names[j] for j in range(len(skeleton)) if j == foot or skeleton.is_below(j, foot)}
    end = skeleton.rest_global_positions[toe] if toe is not None else skeleton.rest_global_ends[foot]
    ahead = np.array([*(end - ankle)[:2], 0.0])
    reach = float(np.linalg.norm(ahead))
    if not np.isfinite(reach) or reach < 1e-4:
        return None
    ahead /= reach
    radius = 4.0 * max(reach, float(np.linalg.norm(end - ankle)))
    found = [skin.vertices(ankle, radius, below) for skin in skins]
    points = np.concatenate(found) if found else np.zeros((0, 3))
    if len(points) < _FEWEST:
        return None
    along, height = (points - ankle) @ ahead, points[:, 2]
    if toe is None:
        reach = 0.7 * float(along.max())
    heel, ball = along < _HEEL * reach, along > _BALL * reach
    if not heel.any() or not ball.any() or reach <= 0.0:
        return None
    heel_floor, ball_floor = float(height[heel].min()), float(height[ball].min())
    near = _NEAR_GROUND * reach
    back = float(along[heel & (height < heel_floor + near)].min())
    front = float(along[ball & (height < ball_floor + near)].max())
    heel_height, ball_height = float(ankle[2]) - heel_floor, (float(end[2]) if toe is not None else ball_floor) - ball_floor
    if not (0.0 <= heel_height < 3.0 * reach and 0.0 <= ball_height < 2.0 * reach and front > reach):
        return None
    return Sole(heel_height, ball_height, max(-back, 0.0), front - reach, reach if toe is None else None)


class _Skin:
    """A mesh that an armature deforms: where its vertices are, and which bone each belongs to most of all."""

    def __init__(self, mesh: bpy.types.Object, into: Array, target: Target) -> None:
        flat = np.empty(3 * len(mesh.data.vertices), dtype=np.float32)
        mesh.data.vertices.foreach_get("co", flat)
        points = flat.reshape(-1, 3).astype(np.float64) @ into[:3, :3].T + into[:3, 3]
        self._points = quat.rotate(target.object_rotation, points) * target.metres_per_unit
        self._vertices = mesh.data.vertices
        self._bones = {group.index: group.name for group in mesh.vertex_groups if group.name in target.skeleton}
        self._of: dict[int, str] = {}

    def vertices(self, ankle: Array, radius: float, bones: set[str]) -> Array:
        """Vertices ``(N, 3)`` around a foot that belong most of all to ``bones``; world axes, metres, from the armature's origin."""
        if bones.isdisjoint(self._bones.values()):
            return np.zeros((0, 3))
        low = np.flatnonzero(self._points[:, 2] < ankle[2] + 0.1 * radius)
        near = low[np.linalg.norm(self._points[low] - ankle, axis=1) < radius]
        return self._points[[i for i in near.tolist() if self._bone(i) in bones]]

    def _bone(self, vertex: int) -> str:
        """Its bone; empty where it has none. Feet stand close to each other, so vertices are asked for twice."""
        found = self._of.get(vertex)
        if found is None:
            best, most = -1, 0.0
            for one in self._vertices[vertex].groups:
                if one.weight > most and one.group in self._bones:
                    best, most = one.group, one.weight
            found = self._of[vertex] = self._bones.get(best, "")
        return found
