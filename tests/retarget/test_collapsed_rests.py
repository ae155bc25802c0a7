# SPDX-License-Identifier: GPL-3.0-or-later
"""Real takes whose zero pose is no body, against T-poses worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from mocap_addon import formats, rig
from mocap_addon.retarget.neutral import find_reference, source_reference
from mocap_addon.retarget.neutral.find import from_motion
from mocap_addon.retarget.neutral.observe import Samples
from tests.paths import SHARED, need

from .bodies import q
from .truth import tables
from .walker import apart

TABLES = tables()


@pytest.fixture(scope="module", params=sorted(TABLES), ids=lambda path: path.rsplit("/", 1)[1].removesuffix(".bvh"))
def real(request):
    """From the motion alone: as if nobody knew the make of the skeleton."""
    take = formats.read(need(SHARED / request.param))[0]
    return take, from_motion(Samples(take, rig.match(take.skeleton).joints), conventions=False), TABLES[request.param]


@pytest.mark.parametrize("frames", [None, 1])
@pytest.mark.parametrize("path", sorted(TABLES))
def test_known_skeletons_are_known_even_from_one_frame(path, frames):
    take = formats.read(need(SHARED / path))[0]
    truth = TABLES[path]
    found = find_reference(take if frames is None else take.block(7, 7 + frames), rig.match(take.skeleton))
    assert found.how == "family" and found.confidence > 0.95
    off = {name: float(apart(found.pose.rotations[take.skeleton.index(name)], q(turn))) for name, turn in truth.items()}
    assert max(angle for name, angle in off.items() if "ToeBase" not in name) < 0.01, off


def test_every_joint_is_within_two_degrees(real):
    """Three for the soles."""
    take, found, truth = real
    assert found.how == "motion"
    off = {
        name: float(apart(found.pose.rotations[take.skeleton.index(name)], q(turn))) for name, turn in truth.items() if "Toe" not in name
    }
    assert len(off) > 17
    assert max(angle for name, angle in off.items() if "Foot" not in name) < 2.0, off
    assert max(angle for name, angle in off.items() if "Foot" in name) < 3.0, off


def test_toes_lie_with_the_sole(real):
    take, found, truth = real
    off = {name: float(apart(found.pose.rotations[take.skeleton.index(name)], q(turn))) for name, turn in truth.items() if "Toe" in name}
    assert len(off) == 2 and max(off.values()) < 4.0, off


def test_the_pose_is_a_t_pose_on_the_ground(real):
    take, found, _ = real
    place = {role: found.pose.positions[joints[0]] for role, joints in rig.match(take.skeleton).joints.items()}
    for side, out in (("left", 1.0), ("right", -1.0)):
        arm = place[f"{side}Hand"] - place[f"{side}UpperArm"]
        assert arm[0] * out > 0.999 * np.linalg.norm(arm)
        leg = place[f"{side}Foot"] - place[f"{side}UpperLeg"]
        assert leg[2] < -0.999 * np.linalg.norm(leg)
        assert 0.0 <= place[f"{side}Toes"][2] < 0.06
    assert place["head"][2] > 1.3
    assert np.linalg.norm(place["hips"][:2]) < 0.05


def test_it_is_said_and_sure(real):
    take, found, _ = real
    assert found.confidence > 0.85
    assert found.sure["leftUpperArm"] > 0.9 and found.sure["rightLowerLeg"] > 0.9
    assert any("found in the motion" in note and "% sure" in note for note in found.notes)
    assert any("quarter turns" in note for note in found.notes)
    assert all(note.endswith(".") for note in found.notes)
    assert source_reference(take, None) is source_reference(take, None)  # looked for once


def test_a_few_frames_are_enough_for_the_limbs(real):
    """A second of the take still shows which way elbows and knees bend."""
    take, _, truth = real
    start = max(0, take.frames // 2 - 15)
    part = take.block(start, min(take.frames, start + round(float(take.rate))))
    found = from_motion(Samples(part, rig.match(take.skeleton).joints), conventions=False)
    limbs = [n for n in truth if any(w in n for w in ("Arm", "UpperLeg", "LowerLeg", "UpLeg", "Leg"))]
    off = {name: float(apart(found.pose.rotations[take.skeleton.index(name)], q(truth[name]))) for name in limbs}
    assert max(off.values()) < 2.0, off


def test_another_convention_nobody_made_a_table_for():
    """A suit's own names and frames: feet level, arms out, palms down, whatever the frames are."""
    take = formats.read(need(SHARED / "misc_bvh" / "dfki_walk_78joint_72fps.bvh"))[0]
    roles = rig.match(take.skeleton)
    found = find_reference(take, roles)
    place = {role: found.pose.positions[joints[0]] for role, joints in roles.joints.items()}
    for side, out in (("left", 1.0), ("right", -1.0)):
        arm = place[f"{side}Hand"] - place[f"{side}UpperArm"]
        assert arm[0] * out > 0.999 * np.linalg.norm(arm)
        thumb = place[f"{side}Thumb"] - place[f"{side}Hand"]
        assert thumb[1] < -0.01 and thumb[2] < 0.0  # palms down: thumbs ahead and below the back of the hand
        assert 0.04 < place[f"{side}Foot"][2] < 0.14 and abs(place[f"{side}Toes"][2]) < 0.05
