# SPDX-License-Identifier: GPL-3.0-or-later
"""Every synthetic scene keeps every limit; the figures come from the new take's own forward kinematics and the exact ground."""

from __future__ import annotations

import numpy as np
import pytest

from mocap_addon.feet.plan import plan_feet
from mocap_addon.motion import quat

from . import scenes
from .limits import rows
from .measure import measure


def fallen_short(scene):
    result = plan_feet(scene.source, scene.walk.feet, scene.ground)
    m = measure(scene.walk, scene.source, result, scene.height, carry=scene.carry, source_height=scene.source_height)
    return [r for r in rows(m, noisy="noise" in scene.name, slides=m.M3_source > 1.0) if not r.holds], m, result


@pytest.mark.parametrize("heading", range(0, 360, 45))
@pytest.mark.parametrize("degrees", [10, 20, 30, 40])
def test_slopes_in_every_direction(degrees, heading):
    short, _, _ = fallen_short(scenes.slope(degrees, heading))
    assert not short


@pytest.mark.parametrize("up", [True, False])
@pytest.mark.parametrize("stride", [0.28, 0.5, 0.56, 0.6])
def test_stairs_at_any_stride(stride, up):
    """Treads of 28 cm, every one or two at a time, wherever a flat walk happens to step."""
    short, _, _ = fallen_short(scenes.stairs(0.17, 0.28, up, length=stride))
    assert not short


@pytest.mark.parametrize("up, offset", [(True, 0.19), (True, 0.23), (False, 0.09), (False, 0.14), (False, 0.23)])
def test_stairs_that_begin_elsewhere(up, offset):
    """Feet that come down close to a riser, before it or behind it."""
    short, _, _ = fallen_short(scenes.stairs(0.17, 0.28, up, offset=offset))
    assert not short


OTHERS = [s.name for s in scenes.others()]


@pytest.mark.parametrize("name", OTHERS)
def test_other_scenes(name):
    scene = next(s for s in scenes.others() if s.name == name)
    short, _, _ = fallen_short(scene)
    assert not short


def test_a_clean_take_stays_as_it_is():
    """M12: 1 mm and 0.1 degrees."""
    scene = scenes.clean()
    for ground in (None, scenes.Plane()):
        new = plan_feet(scene.source, scene.walk.feet, ground).onto(scene.source)
        assert np.linalg.norm(new.global_positions - scene.source.global_positions, axis=2).max() < 0.001
        assert np.degrees(quat.angle(new.global_rotations, scene.source.global_rotations)).max() < 0.1


def test_downhill_the_toes_go_down():
    scene = scenes.slope(20, 0)
    result = plan_feet(scene.source, scene.walk.feet, scene.ground)
    middle = result.footprints[4].start + 10
    side = 0 if result.footprints[4].side == "left" else 1
    heel, ball = result.soles[middle, side, 0], result.soles[middle, side, 1]
    assert ball[1] < heel[1] and ball[2] < heel[2] - 0.03
