# SPDX-License-Identifier: GPL-3.0-or-later
"""Real takes of many writers: what is known of each, and every joint against a scalar reader of its own."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap_addon import formats
from mocap_addon.motion import quat
from tests.formats import bvh_oracle
from tests.paths import DATA, SHARED, need

CMU = 0.0254 / 0.45
# Known from the notes of the data, not from this reader:
# joints, end sites, frames, rate, up in motion, up at rest, metres a unit, rest pose.
# None: nobody knows it for certain.
KNOWN = {
    "cmu/asf_02_01_walk": (31, 7, 343, 120, "Y", "Y", CMU, "t"),
    "cmu/asf_02_03_run_jog": (31, 7, 173, 120, "Y", "Y", CMU, "t"),
    "cmu/asf_02_05_punch_60fps": (31, 7, 927, 60, "Y", "Y", CMU, "t"),
    "cmu/asf_03_01_walk_uneven_down": (31, 7, 432, 120, "Y", "Y", CMU, "t"),
    "cmu/asf_03_02_walk_uneven": (31, 7, 365, 120, "Y", "Y", CMU, "t"),
    "cmu/asf_01_01_playground_jumps_turn_30fps": (31, 7, 688, 30, "Y", "Y", CMU, "t"),
    "cmu/cgspeed_12_01_walk": (31, 7, 524, 120, "Y", "Y", CMU, "t"),
    "xsens/mvn_bvh_walk_239hz_1200f": (23, 5, 1200, 239, "Y", "Y", 0.01, "t"),
    "xsens/mvn_bvh_upperbody_60hz_112f": (23, 5, 112, 60, "Y", "Y", 0.01, "t"),
    "xsens/mvn_like_23joint_zero_frame": (23, 5, 1, 120, "Y", "Y", 0.01, "t"),
    "noitom/pn_pro_0frames": (59, 13, 0, 100, "Y", "Y", 0.01, "t"),
    "noitom/pns_thumb_open_0frames": (59, 13, 0, 100, "Y", "Y", 0.01, "t"),
    "makehuman/walk1": (75, 16, 14, 24, "Z", "Z", 0.1, "t"),
    "makehuman/zombieWalk1": (75, 16, 31, 24, "Z", "Z", 0.1, "t"),
    "makehuman/dance1": (75, 16, 1, 24, "Z", "Z", 0.1, "t"),
    "makehuman/tpose": (173, 49, 1, 24, "Z", "Z", 0.1, "a"),
    "makehuman/benchmark": (163, 49, 1, 24, "Z", "Z", 0.1, "a"),
    "animated_drawings/jumping": (27, 7, 654, Fraction(120000, 1001), "Z", "Z", None, "t"),
    "animated_drawings/zombie": (27, 7, 779, 30, "Z", "Z", None, "t"),
    "animated_drawings/jesse_dance": (60, 13, 1007, 100, "Y", "Y", 0.01, "collapsed"),
    "animated_drawings/jumping_jacks": (31, 7, 125, 30, "Y", "Y", CMU, "arms down"),
    "bandai_nc/dataset-1_run_normal_001": (22, 5, 24, 30, "Y", "Y", 0.01, "collapsed"),
    "bandai_nc/dataset-1_walk_normal_001": (22, 5, 195, 30, "Y", "Y", 0.01, "collapsed"),
    "bandai_nc/dataset-2_walk-turn-left_normal_001": (22, 5, 102, 30, "Y", "Y", 0.01, "collapsed"),
    "misc_bvh/pybvh_fingers_mixed_orders_crlf": (60, 13, 100, 120, "Z", "Y", None, "t"),
    "misc_bvh/pybvh_armsdown_crlf": (23, 5, 61, 120, "Y", "Y", 0.01, "arms down"),
    "misc_bvh/pybvh_rotation_before_position_root": (4, 2, 4, 25, None, None, None, None),
    "misc_bvh/pybvh_full_precision_frame_time": (2, 1, 3, Fraction(24000, 1001), None, None, None, None),
    "misc_bvh/pymo_figure8_walk_xyz": (23, 7, 1064, 120, "Y", "Y", None, "t"),
    "misc_bvh/dfki_walk_78joint_72fps": (78, 17, 47, 72, "Y", None, 0.01, "other"),
    "misc_bvh/geno_bind_6ch_75joint": (75, 21, 2, 60, "Y", "Y", 0.01, "arms up"),
    "misc_bvh/usdbvh_two_joints": (2, 1, 20, 24, "Z", "Z", 1.0, None),
    "odd/boxing_toes_offbyone_excerpt": (21, 5, 300, 100, "Y", "Y", 0.01, "t"),
    "odd/pirouette_excerpt_root_without_position": (20, 5, 3, 120, "Y", "Y", 0.01, "t"),
    "odd/bvh_anim_minimal": (2, 1, 2, 30, None, None, None, None),
}
# Position channels that are written relative to the offset: below the root, and at the root.
RELATIVE_BELOW = ("makehuman/tpose", "makehuman/benchmark")
RELATIVE_ROOT = ("makehuman/walk1", "misc_bvh/dfki_walk_78joint_72fps")

BUNDLED = sorted(p.name for p in (DATA / "takes").glob("*.bvh"))


@pytest.mark.parametrize("name", KNOWN)
def test_facts(name):
    joints, ends, frames, rate, up, rest_up, unit, rest = KNOWN[name]
    (take,) = formats.read(need(SHARED / f"{name}.bvh"))
    assert len(take.skeleton) == joints
    assert np.count_nonzero(np.isfinite(take.skeleton.ends[:, 0])) == ends
    assert take.frames == frames
    assert take.rate == Fraction(rate)
    assert take.facts["format"] == "BVH"
    for fact, value in (("up", up), ("rest_up", rest_up), ("rest", rest)):
        assert value is None or take.facts[fact] == value, fact
    assert unit is None or take.facts["unit"] == pytest.approx(unit, rel=1e-12)


@pytest.mark.parametrize("name", [n for n, known in KNOWN.items() if known[0] > 10 and known[2]])
def test_a_person_stands_on_the_floor_and_has_a_persons_size(name):
    (take,) = formats.read(need(SHARED / f"{name}.bvh"))
    tall = np.ptp(take.global_positions[:, :, 2], axis=1)
    if "dance1" in name or "benchmark" in name:
        pytest.skip("a single acrobatic pose")
    assert 1.2 < np.median(tall) < 1.9  # the joints of a head and of feet: less than the body
    if not name.startswith(("xsens/mvn_bvh_upperbody", "makehuman/tpose", "odd/pirouette")):  # their hips are the origin
        assert -0.1 < np.median(take.global_positions[:, :, 2].min(axis=1)) < 0.45


@pytest.mark.parametrize("name", list(KNOWN))
def test_joints_against_a_scalar_reader(name):
    check_against_oracle(need(SHARED / f"{name}.bvh"), name)


@pytest.mark.parametrize("name", BUNDLED)
def test_bundled_joints_against_a_scalar_reader(name):
    check_against_oracle(DATA / "takes" / name, "makehuman/benchmark" if "benchmark" in name else name)


def check_against_oracle(path, name):
    bvh = bvh_oracle.read(path)
    (take,) = formats.read(path)
    assert take.skeleton.names == tuple(n.name for n in bvh.nodes)
    assert take.skeleton.parents.tolist() == [n.parent for n in bvh.nodes]
    assert take.frames == len(bvh.rows)
    turns = {"Y": Rotation.from_euler("X", 90, degrees=True), "Z": Rotation.identity()}
    turn, rest_turn, unit = turns[take.facts["up"]], turns[take.facts["rest_up"]], take.facts["unit"]
    np.testing.assert_allclose(take.skeleton.rest_translations[1:], np.array([n.offset for n in bvh.nodes[1:]]) * unit, atol=1e-12)
    np.testing.assert_allclose(take.skeleton.rest_global_positions, rest_turn.apply(rest_positions(bvh)) * unit, atol=1e-9)
    first_ends = np.array([n.ends[0] if n.ends else [np.nan] * 3 for n in bvh.nodes])
    np.testing.assert_allclose(take.skeleton.ends, first_ends * unit, atol=1e-12)
    at_root = np.array(bvh.nodes[0].offset) if name in RELATIVE_ROOT else np.zeros(3)
    for row in range(0, len(bvh.rows), max(1, len(bvh.rows) // 7)):
        positions, rotations = bvh_oracle.pose(bvh, row, relative=name in RELATIVE_BELOW)
        expected = turn.apply(positions + at_root) * unit
        np.testing.assert_allclose(take.global_positions[row], expected, atol=1e-9 * max(1.0, np.abs(expected).max()))
        wanted = np.array([(turn * r).as_quat()[[3, 0, 1, 2]] for r in rotations])
        assert np.degrees(quat.angle(take.global_rotations[row], wanted).max()) < 1e-6


def rest_positions(bvh):
    out = []
    for node in bvh.nodes:
        out.append(np.array(node.offset) + (out[node.parent] if node.parent >= 0 else 0.0))
    return np.array(out)


def test_times_are_those_of_the_rate():
    (take,) = formats.read(DATA / "takes" / "pybvh_full_precision_frame_time.bvh")
    np.testing.assert_allclose(take.times, np.arange(3) * 1001 / 24000, rtol=1e-15)


def test_arrays_are_component_major():
    (take,) = formats.read(DATA / "takes" / "cmu_walk_60rows.bvh")
    assert take.local_rotations.strides[0] == take.local_rotations.itemsize
    assert take.local_translations.strides[0] == take.local_translations.itemsize


def test_row_count_unlike_the_declared_one_is_said_once():
    (take,) = formats.read(need(SHARED / "odd" / "boxing_toes_offbyone_excerpt.bvh"))
    assert [n for n in take.notes if "299" in n and "300" in n] == list(take.notes)


@pytest.mark.parametrize("name", ["bandai_nc/dataset-1_run_normal_001", "animated_drawings/jesse_dance"])
def test_a_rest_pose_that_is_no_body_is_said(name):
    (take,) = formats.read(need(SHARED / f"{name}.bvh"))
    assert any("reference pose" in n for n in take.notes)


FACING = {  # headings as the eye sees them: the file's axis that the first frame faces
    "cmu/cgspeed_12_01_walk": "Z",
    "xsens/mvn_bvh_upperbody_60hz_112f": "Z",
    "makehuman/tpose": "-Y",
    "misc_bvh/geno_bind_6ch_75joint": "Z",
    "animated_drawings/jumping": "Y",
}


@pytest.mark.parametrize("name", FACING)
def test_facing(name):
    (take,) = formats.read(need(SHARED / f"{name}.bvh"))
    assert take.facts["facing"] == FACING[name]


def test_walks_go_the_way_they_face():
    """The travel of a straight walk is an oracle of the heading that no joint name has a part in."""
    for name in (
        "cmu/cgspeed_12_01_walk",
        "cmu/asf_02_03_run_jog",
        "bandai_nc/dataset-1_walk_normal_001",
        "bandai_nc/dataset-1_run_normal_001",
    ):
        (take,) = formats.read(need(SHARED / f"{name}.bvh"))
        hips = take.global_positions[:, take.skeleton.index("Hips"), :2]
        x, y = hips[len(hips) // 3] - hips[0]
        assert np.degrees(np.arctan2(x, -y)) == pytest.approx(take.facts["heading_deg"], abs=25.0), name
