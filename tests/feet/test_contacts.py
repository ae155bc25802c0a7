# SPDX-License-Identifier: GPL-3.0-or-later
"""Which feet are found to stand, against what the walker was told to do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mocap_addon.feet.ground import Plane
from mocap_addon.feet.plan import plan_feet
from mocap_addon.motion import quat

from . import scenes
from .measure import f1
from .test_complaints import standing
from .walker import sliding


def agreement(take, walk, ground):
    found = plan_feet(take, walk.feet, ground).locks > 0.5
    held = walk.parts.any(axis=2)
    return [f1(found[:, side], held[:, side], 4) for side in range(2)]


def test_a_floor_that_rises_a_little_along_the_way():
    """Recorded floors slope: the last steps of this walk are 7 cm above the first, too high for a foot that only passes by."""
    w = scenes.plain()
    travelled = w.take.global_positions[:, 0, 1]
    up = (travelled[0] - travelled) / (travelled[0] - travelled[-1]) * 0.07
    risen = sliding(w, lambda t: np.column_stack([0.0 * up, 0.0 * up, up])).take
    assert min(agreement(risen, w, Plane())) > 0.95


def test_a_foot_held_still_in_the_air_does_not_stand():
    """On one leg for a while, the other foot 9 cm over the floor: as still and as low as one that stands on a floor that slopes."""
    w = standing(3.0)
    r = w.take.local_rotations.copy()
    lifted = (w.take.times > 0.8) & (w.take.times < 2.2)
    bend = np.radians(38.0)
    side = np.array([1.0, 0.0, 0.0])
    for joint, angle in ((6, -0.5 * bend), (7, bend), (8, -0.5 * bend)):
        r[lifted, joint] = quat.mul(quat.from_axis_angle(side, np.array([angle])), r[lifted, joint])
    take = replace(w.take, local_rotations=r)
    lift = take.global_positions[:, 8, 2] - w.take.global_positions[:, 8, 2]
    assert 0.06 < lift[lifted].min() < 0.12
    held = plan_feet(take, w.feet, Plane()).locks > 0.5
    inner = (w.take.times > 1.0) & (w.take.times < 2.0)
    assert held[inner, 0].all() and not held[inner, 1].any()


@pytest.mark.parametrize("ground", ["stairs", "hill"])
def test_a_take_made_for_the_scene_has_the_same_contacts_there(ground):
    """What stands on stairs is found there again, although the take has no floor of its own."""
    scene = scenes.stairs(0.17, 0.28, True) if ground == "stairs" else scenes.slope(20, 45)
    first = plan_feet(scene.source, scene.walk.feet, scene.ground)
    second = plan_feet(first.onto(scene.source), scene.walk.feet, scene.ground)
    assert len(second.footprints) == len(first.footprints) > 6
    for side in range(2):
        assert f1(second.locks[:, side] > 0.5, first.locks[:, side] > 0.5, 3) > 0.99
