# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigid bodies beside a performer, movable bones, time code and settings on their way to a character. Truth: SciPy and plain geometry."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap_addon.motion.errors import MocapError
from mocap_addon.motion.take import PropTrack, Take
from mocap_addon.motion.timecode import parse
from mocap_addon.retarget import RetargetOptions, build_table, retarget
from mocap_addon.retarget.extras import Extras, MorphOptions, PropOptions, TimeCodeOptions
from mocap_addon.retarget.root_motion import RootMotion

from .bodies import body, q, r
from .walker import apart, walk

GRIP = np.array([0.1, -0.2, 0.3])
TURN = Rotation.from_rotvec([0.3, -1.0, 0.5])


def held_by(take: Take, joint: str) -> PropTrack:
    """A stick that a joint holds, rigidly, from its frame in the world."""
    j = take.skeleton.names.index(joint)
    world = r(take.global_rotations[:, j])
    return PropTrack(q(world * TURN), take.global_positions[:, j] + world.apply(GRIP))


def scene(world: Rotation | None = None, scale: float = 1.0):
    source, source_roles = body(world=world)
    take = walk(source, {name: world for name in source.names} if world else None, seconds=2.0)
    take = replace(take, props={"stick": held_by(take, "hips")})
    target, target_roles = body(scale=scale)
    return take, build_table(source, source_roles, target, target_roles), target


ROOTS = [
    RootMotion(),
    RootMotion(destination="object"),
    RootMotion(destination="object", origin="first-heading", axes="xyz"),
    RootMotion(destination="in-place"),
    RootMotion(destination="in-place", heading="hips", axes="xyz"),
    RootMotion(origin="first", height="ground"),
]


@pytest.mark.parametrize("root", ROOTS, ids=lambda root: f"{root.destination} {root.origin} {root.height} {root.axes}")
def test_a_stick_held_to_the_hips_stays_there_under_every_root_motion(root: RootMotion) -> None:
    """Two equal bodies: what was rigidly at the hips of the one is rigidly at the hips of the other, at the same place of them."""
    take, table, target = scene()
    got = retarget(take, table, target, RetargetOptions(root=root)).to_take(target)
    world = r(got.global_rotations[:, 0])
    stick = got.props["stick"]
    assert np.abs(world.inv().apply(stick.translations - got.global_positions[:, 0]) - GRIP).max() < 1e-9
    assert apart(stick.rotations, q(world * TURN)).max() < 1e-5
    assert np.all(np.einsum("fi,fi->f", stick.rotations[1:], stick.rotations[:-1]) > 0.0)


def test_a_box_on_the_floor_stays_on_the_floor_where_the_way_leads() -> None:
    """Half the size: the box stands half as far, on the floor, and keeps its turn; the walker passes it when the performer did."""
    take, table, target = scene(scale=0.5)
    hips = take.global_positions[:, 0]
    at = np.array([hips[70, 0], hips[70, 1], 0.0])
    still = PropTrack(np.broadcast_to(q(TURN), (take.frames, 4)).copy(), np.broadcast_to(at, (take.frames, 3)).copy())
    motion = retarget(replace(take, props={"box": still}), table, target)
    box = motion.props["box"]
    assert np.abs(box.translations - 0.5 * at).max() < 1e-9 and apart(box.rotations, still.rotations).max() < 1e-5
    walker = motion.to_take(target).global_positions[70, 0]
    assert np.linalg.norm(walker[:2] - box.translations[70, :2]) < 2e-3


def test_a_performer_who_faces_elsewhere_takes_the_props_along() -> None:
    """The same walk recorded facing another way gives the same props."""
    (take, table, target), turn = scene(), Rotation.from_euler("z", 100, degrees=True)
    other = take.turned(q(turn))
    first, second = retarget(take, table, target), retarget(other, table, target)
    assert np.abs(first.props["stick"].translations - second.props["stick"].translations).max() < 1e-9
    assert apart(first.props["stick"].rotations, second.props["stick"].rotations).max() < 1e-5


@pytest.mark.parametrize(("options", "factor"), [({}, 0.5), ({"travel": 0.8}, 0.8), ({"travel": 0.8, "locations": 1.0}, 1.0)])
def test_a_movable_bone_slides_by_what_the_take_says(options: dict[str, float], factor: float) -> None:
    """A hand that is pulled out of its joint: along the same way in the arm, by the scale that was asked for."""
    take, table, target = scene(scale=0.5)
    hand = take.skeleton.names.index("leftHand")
    moved = np.broadcast_to(take.local_translations, (take.frames, len(take.skeleton), 3)).copy()
    pulled = np.stack([0.1 * np.sin(take.times), 0.02 * take.times, -0.03 * take.times], axis=1)
    moved[:, hand] += pulled
    row = table.row("leftHand")
    assert row is not None
    table = table.with_row(replace(row, movable=True))
    got = retarget(replace(take, local_translations=moved), table, target, RetargetOptions(**options)).to_take(target)
    place, elbow = target.names.index("leftHand"), target.names.index("leftLowerArm")
    seen = r(got.global_rotations[:, elbow]).inv().apply(got.global_positions[:, place] - got.global_positions[:, elbow])
    assert np.abs(seen - (target.rest_translations[place] + factor * pulled)).max() < 1e-9


def test_time_code_options() -> None:
    take = replace(walk(body()[0], seconds=0.5), timecode="10:00:00:00", timecode_rate=Fraction(25))
    assert TimeCodeOptions().of(take) == parse("10:00:00:00", Fraction(25))
    assert TimeCodeOptions(use=False).of(take) is None
    assert str(TimeCodeOptions(start="01:00:00;00", rate="29.97").of(take)) == "01:00:00;00"
    assert TimeCodeOptions(rate="50").of(take) == parse("10:00:00:00", Fraction(50))
    with pytest.raises(MocapError, match="not a time code"):
        TimeCodeOptions(start="noon").of(take)


def test_settings_survive_as_plain_data() -> None:
    extras = Extras(TimeCodeOptions(False, "01:00:00;02", "29.97"), MorphOptions(True, (("a", "B"),), 100.0), PropOptions(True), True, 1.0)
    assert Extras.from_dict(extras.as_dict()) == extras
    assert Extras.from_dict({}) == Extras()
    for wrong in ({"markers": 1}, {"morphs": {"names": ["a"]}}, {"props": True}, {"time_code": {"start": 5}}):
        with pytest.raises(MocapError, match="must be"):
            Extras.from_dict(wrong)
