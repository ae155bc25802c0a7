# SPDX-License-Identifier: GPL-3.0-or-later
"""One master motion on standards that each have their own version of it: every ordered pair has a truth that the program has no part in.

Six standards here; ``scripts/bench pairs`` measures all of them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from mocap_addon.retarget import PoseMotion

from .pairs import compare as measured
from .pairs.compare import CHAIN, OWN, STATIC, Pair, compare, mismatch, posed
from .pairs.master import FINGERS, SIDES, SOLE, motion
from .pairs.matrices import degrees_apart
from .pairs.standards import FEW, STANDARDS, bodies

DEGREES, METRES = 0.01, 1e-4


@pytest.fixture(scope="module")
def pairs() -> list[Pair]:
    few = bodies(FEW)
    return [compare(source, target) for source in few for target in few]


def test_no_pair_is_left_out(pairs):
    joints = Counter(rule for pair in pairs for rule in pair.rules)
    assert len(pairs) == 36 and len({(p.source, p.target) for p in pairs}) == 36
    assert sum(p.alike for p in pairs) == 6  # onto themselves
    assert joints[OWN] > 700 and joints[CHAIN] > 100 and joints[STATIC] > 300
    assert len(STANDARDS) >= 24 and len({s.family for s in STANDARDS}) == len(STANDARDS)


def test_a_joints_in_both_turn_as_the_targets_own(pairs):
    wrong = [pair.named() for pair in pairs if pair.worst(OWN) > DEGREES]
    assert not wrong


def test_b_the_same_moving_links_stand_where_the_targets_own_do(pairs):
    wrong = [pair.named() for pair in pairs if pair.alike and pair.metres.max() > METRES]
    assert not wrong


def test_c_chains_follow_their_rule_and_what_is_missing_rests(pairs):
    wrong = [pair.named() for pair in pairs if pair.worst(CHAIN, STATIC) > DEGREES or pair.metres.max() > METRES]
    assert not wrong


def test_hips_and_legs_stand_where_the_targets_own_do_in_every_pair(pairs):
    wrong = [pair.named() for pair in pairs if pair.legs > METRES]
    assert not wrong


@pytest.mark.parametrize("body", bodies(), ids=lambda body: body.name)
def test_every_standard_is_matched_as_it_was_made(body):
    found = mismatch(body)
    assert not found.roles and found.known


# --- what the truth stands on --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", bodies(FEW), ids=lambda body: body.name)
def test_a_take_is_its_standards_own_version(body):
    """The take's own forward kinematics against turns of the T-pose, in the object's space."""
    take = body.take
    assert np.abs(take.global_positions - body.size * body.positions @ body.object.T)[:, body.below_hips].max() < 1e-9 * body.size
    still = posed_at_rest(body)
    assert degrees_apart(still, body.scene_object @ body.rest @ body.frames).max() < 1e-6


def posed_at_rest(body):
    nothing = PoseMotion("rest", np.zeros(1), (), np.zeros((1, 0, 4)), (), np.zeros((1, 0, 3)))
    return posed(nothing, body.character)[0][0]


def test_the_master_leaves_nothing_out():
    master = motion()
    steps = degrees_apart(master.turns["hips"][1:], master.turns["hips"][:-1])
    assert steps.sum() > 900.0 and steps.max() < 45.0  # two turns and, meanwhile, a somersault
    for side in SIDES:
        for part, least in (("UpperArm", 100), ("LowerArm", 100), ("UpperLeg", 40), ("LowerLeg", 25)):
            assert np.ptp(master.twists[side + part]) > least
        for near, far, least in (("UpperArm", "LowerArm", 100), ("UpperLeg", "LowerLeg", 90), ("Hand", "Index1", 60), ("Foot", "Toes", 20)):
            bent = degrees_apart(master.turns[side + near], master.turns[side + far])
            assert bent.max() > least, (side, near)
        assert all(f"{side}{finger}3" in master.turns for finger in FINGERS)
    for body in bodies(FEW):
        feet = [j for j, key in enumerate(body.keys) if key.endswith(("Foot", "Toes"))]
        low = body.positions[:, feet, 2].min(axis=1)
        assert low.min() > SOLE - 1e-9
        assert (low < SOLE + 1e-9).mean() > 0.4 or not body.standard.toes


def test_the_measure_sees_two_hundredths_of_a_degree_and_two_tenths_of_a_millimetre(monkeypatch):
    source, target = bodies(FEW)[0], bodies(FEW)[1]
    made = measured.carry(source, target)
    k = made.bones.index(target.keys.index("leftMiddle2"))
    rotations, locations = made.rotations.copy(), made.locations.copy()
    w, x, y, z = np.moveaxis(rotations[:, k], -1, 0)
    half = np.radians(0.01)
    rotations[:, k] = np.stack([w - half * z, x + half * y, y - half * x, z + half * w], axis=-1)  # rolled about its own Z
    locations[:, 0, 0] += 2e-4 * target.size
    monkeypatch.setattr(measured, "carry", lambda *_: replace(made, rotations=rotations, locations=locations))
    seen = compare(source, target)
    assert seen.worst(OWN) == pytest.approx(0.02, rel=1e-3)
    assert seen.metres.max() == pytest.approx(2e-4, rel=0.2) and seen.legs == pytest.approx(2e-4, rel=1e-3)
