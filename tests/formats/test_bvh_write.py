# SPDX-License-Identifier: GPL-3.0-or-later
"""Written BVH files: read by a scalar reader and by our own, for takes with any rest pose."""

from __future__ import annotations

import os
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mocap_addon import formats
from mocap_addon.formats import ReadOptions, bvh_write
from mocap_addon.formats.bvh_write import BvhOptions
from mocap_addon.motion import quat
from mocap_addon.motion.errors import FileError, MocapError
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import Take
from tests.formats import bvh_oracle
from tests.paths import DATA, SHARED, need

BACK = ReadOptions(up="Y", rest_up="Y", unit=0.01)
SHARED_TAKES = [
    "cmu/asf_02_03_run_jog",
    "bandai_nc/dataset-1_run_normal_001",
    "animated_drawings/jumping_jacks",
    "misc_bvh/pybvh_fingers_mixed_orders_crlf",
    "misc_bvh/geno_bind_6ch_75joint",
    "xsens/mvn_bvh_upperbody_60hz_112f",
    "noitom/pn_pro_0frames",
    "makehuman/tpose",
]


def random_take(seed: int, frames: int = 40, joints: int = 9, moving: bool = True) -> Take:
    """A take whose rest pose has rotations everywhere, with quick motion through every orientation."""
    rng = np.random.default_rng(seed)
    parents = np.array([-1, *[int(rng.integers(0, i)) for i in range(1, joints)]])
    rest = Rotation.random(joints, random_state=seed).as_quat()[:, [3, 0, 1, 2]]
    ends = rng.normal(size=(joints, 3)) * 0.1
    ends[::2] = np.nan
    skeleton = Skeleton(tuple(f"bone {i}:ä.{i}" for i in range(joints)), parents, rng.normal(size=(joints, 3)) * 0.3, rest, ends)
    rotations = Rotation.random(frames * joints, random_state=seed + 1).as_quat()[:, [3, 0, 1, 2]].reshape(frames, joints, 4)
    translations = np.tile(skeleton.rest_translations, (frames if moving else 1, 1, 1))
    if moving:
        translations[:, 0] += rng.normal(size=(frames, 3))
        translations[:, joints // 2] += rng.normal(size=(frames, 3)) * 0.05
    return Take("random", skeleton, np.arange(frames) / 30.0, rotations, translations, rate=Fraction(30))


def check_same_motion(take: Take, back: Take) -> None:
    """Joints within 1e-5 m and turned alike away from the rest pose within 1e-4 degrees."""
    at = [back.skeleton.index(name) for name in take.skeleton.names]
    assert back.frames == take.frames
    np.testing.assert_allclose(back.skeleton.rest_global_positions[at], take.skeleton.rest_global_positions, atol=1e-5)
    np.testing.assert_allclose(back.skeleton.rest_global_ends[at], take.skeleton.rest_global_ends, atol=1e-5)
    if take.frames:
        np.testing.assert_allclose(back.global_positions[:, at], take.global_positions, atol=1e-5)
        moved = quat.mul(take.global_rotations, quat.inv(take.skeleton.rest_global_rotations))
        moved_back = quat.mul(back.global_rotations, quat.inv(back.skeleton.rest_global_rotations))[:, at]
        assert np.degrees(quat.angle(moved, moved_back).max()) < 1e-4


@pytest.mark.parametrize("name", sorted(p.name for p in (DATA / "takes").glob("*.bvh")))
def test_bundled_takes_come_back(tmp_path, name):
    (take,) = formats.read(DATA / "takes" / name)
    formats.write(take, tmp_path / "out.bvh")
    (back,) = formats.read(tmp_path / "out.bvh", BACK)
    assert back.rate == take.rate
    check_same_motion(take, back)


@pytest.mark.parametrize("name", SHARED_TAKES)
def test_shared_takes_come_back(tmp_path, name):
    (take,) = formats.read(need(SHARED / f"{name}.bvh"))
    formats.write(take, tmp_path / "out.bvh")
    (back,) = formats.read(tmp_path / "out.bvh", BACK)
    assert back.rate == take.rate
    check_same_motion(take, back)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10_000),
    order=st.sampled_from(["XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX"]),
    up=st.sampled_from(["X", "-X", "Y", "-Y", "Z", "-Z"]),
    moving=st.booleans(),
)
def test_any_rest_pose_comes_back(tmp_path_factory, seed, order, up, moving):
    take = random_take(seed, moving=moving)
    # Bones whose end is unknown and that have no child must get an End Site; it lies at the joint.
    path = tmp_path_factory.mktemp("write") / "out.bvh"
    bvh_write.write(take, path, BvhOptions(up=up, unit=0.0254, order=order))
    (back,) = formats.read(path, ReadOptions(up=up, rest_up=up, unit=0.0254))
    leaves = [j for j in range(len(take.skeleton)) if not take.skeleton.children[j] and np.isnan(take.skeleton.ends[j, 0])]
    at = [back.skeleton.index(take.skeleton.names[j]) for j in leaves]
    np.testing.assert_allclose(back.skeleton.ends[at], 0.0)
    ends = back.skeleton.ends.copy()
    ends[at] = np.nan
    check_same_motion(take, replace(back, skeleton=replace(back.skeleton, ends=ends)))


def test_the_file_says_what_it_should(tmp_path):
    """Read by the scalar reader: Y up, centimetres, the rest pose without rotations, six channels only where something moves."""
    take = random_take(5)
    formats.write(take, tmp_path / "out.bvh")
    bvh = bvh_oracle.read(tmp_path / "out.bvh")
    assert bvh.declared == len(bvh.rows) == take.frames
    assert bvh.frame_time == pytest.approx(1 / 30, abs=1e-10)
    assert {len(n.channels) for n in bvh.nodes} == {3, 6}
    assert [n.name for n in bvh.nodes if len(n.channels) == 6] == [take.skeleton.names[0], take.skeleton.names[4]]
    to_file = Rotation.from_euler("X", -90, degrees=True)
    at = [take.skeleton.index(n.name) for n in bvh.nodes]
    for row in (0, 17, 39):
        positions, rotations = bvh_oracle.pose(bvh, row)
        np.testing.assert_allclose(positions / 100.0, to_file.apply(take.global_positions[row, at]), atol=1e-7)
        for turn, j in zip(rotations, at, strict=True):
            g, g0 = (Rotation.from_quat(q[[1, 2, 3, 0]]) for q in (take.global_rotations[row, j], take.skeleton.rest_global_rotations[j]))
            assert ((to_file * g * g0.inv() * to_file.inv()).inv() * turn).magnitude() < 1e-7


def test_euler_curves_do_not_jump(tmp_path):
    """A spin of 720 degrees about two axes is written as curves that run on, across the blocks in which it is written too."""
    frames = 2500
    angle = np.linspace(0.0, 4.0 * np.pi, frames)
    rotations = quat.mul(quat.from_axis_angle([0, 0, 1.0], angle), quat.from_axis_angle([1.0, 0, 0], 0.5 * np.sin(angle)))[:, None]
    skeleton = Skeleton(("r",), np.array([-1]), np.zeros((1, 3)))
    take = Take("spin", skeleton, np.arange(frames) / 120.0, rotations, np.zeros((1, 1, 3)), rate=Fraction(120))
    formats.write(take, tmp_path / "out.bvh")
    rows = np.array(bvh_oracle.read(tmp_path / "out.bvh").rows)
    assert np.abs(np.diff(rows[:, 3:], axis=0)).max() < 1.0
    assert np.ptp(rows[:, 3:], axis=0).max() == pytest.approx(720.0, abs=0.1)


def test_no_frames_and_several_roots(tmp_path):
    skeleton = Skeleton(("a", "b", "c"), np.array([-1, 0, -1]), np.array([[0, 0, 1], [0, 0.5, 0], [3.0, 0, 0]]))
    take = Take("two", skeleton, np.zeros(0), np.zeros((0, 3, 4)), skeleton.rest_translations[None])
    formats.write(take, tmp_path / "out.bvh")
    one, two = formats.read(tmp_path / "out.bvh", BACK)
    assert (one.skeleton.names, two.skeleton.names) == (("a", "b"), ("c",))
    np.testing.assert_allclose(one.skeleton.rest_global_positions, [[0, 0, 1], [0, 0.5, 1]], atol=1e-9)
    np.testing.assert_allclose(two.skeleton.rest_global_positions, [[3, 0, 0]], atol=1e-9)


def test_uneven_times_are_resampled(tmp_path):
    take = random_take(1, frames=3)
    slow = Take("slow", take.skeleton, np.array([0.0, 0.1, 0.3]), take.local_rotations, take.local_translations)
    formats.write(slow, tmp_path / "out.bvh")
    bvh = bvh_oracle.read(tmp_path / "out.bvh")
    assert len(bvh.rows) == 1 + round(0.3 / bvh.frame_time)


def test_names_that_would_break_the_file(tmp_path):
    skeleton = Skeleton(("a {b}\nc", "", "  x  "), np.array([-1, 0, 0]), np.zeros((3, 3)))
    take = Take("n", skeleton, np.zeros(1), quat.identity((1, 3)), np.zeros((1, 3, 3)), rate=Fraction(24))
    formats.write(take, tmp_path / "out.bvh")
    assert formats.read(tmp_path / "out.bvh", BACK)[0].skeleton.names == ("a (b) c", "joint", "x")


def test_nothing_half_written_stays(tmp_path, monkeypatch):
    take = random_take(2)
    path = tmp_path / "out.bvh"
    path.write_text("what was here before")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bvh_write, "_write_motion", fail)
    with pytest.raises(FileError, match=r"out\.bvh: .*No space left"):
        formats.write(take, path)
    assert path.read_text() == "what was here before"
    assert os.listdir(tmp_path) == ["out.bvh"]


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileError, match="cannot be written"):
        formats.write(random_take(2), tmp_path / "nowhere" / "out.bvh")


@pytest.mark.parametrize("bad", [{"up": "W"}, {"unit": -1.0}, {"order": "XXZ"}])
def test_options_that_make_no_sense(bad):
    with pytest.raises(MocapError):
        BvhOptions(**bad)
