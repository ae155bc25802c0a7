# SPDX-License-Identifier: GPL-3.0-or-later
"""Time, as users of other tools found it broken: rates that change the speed, gaps that shift what follows, ranges that lose a frame.

The motion turns about Z at a known speed while it moves along X at a known speed, so that every sample says which time it is of.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import Take

SPIN = 0.8  # radians a second
SPEED = 1.5  # metres a second
SKELETON = Skeleton(("hips", "spine"), np.array([-1, 0]), np.array([[0.0, 0.0, 0.0], [0.0, 0.0, 0.2]]))


def clock(times: np.ndarray) -> Take:
    """A take whose samples tell their time."""
    times = np.asarray(times, dtype=np.float64)
    rotations = np.zeros((len(times), 2, 4), order="F")
    rotations[..., 0] = 1.0
    rotations[:, 0, 0], rotations[:, 0, 3] = np.cos(SPIN * times / 2), np.sin(SPIN * times / 2)
    translations = np.zeros((len(times), 2, 3), order="F")
    translations[:, 1, 2] = 0.2
    translations[:, 0, 0] = SPEED * times
    return Take("clock", SKELETON, times, rotations, translations)


def told(take: Take) -> tuple[np.ndarray, np.ndarray]:
    """The times that rotations and places tell."""
    q = take.local_rotations[:, 0]
    return np.unwrap(2.0 * np.arctan2(q[:, 3], q[:, 0])) / SPIN, take.local_translations[:, 0, 0] / SPEED


@pytest.mark.parametrize("rate", [Fraction(60000, 1001), Fraction("29.476"), Fraction("31.088"), Fraction(120), Fraction(240)])
@pytest.mark.parametrize("scene", [Fraction(24), Fraction(24000, 1001), Fraction(30)])
def test_complaint_29_the_speed_stays(rate: Fraction, scene: Fraction) -> None:
    take = clock(np.arange(1501) / float(rate))
    out = take.resampled(scene)
    assert out.rate == scene
    assert 0.0 <= take.duration - out.duration < 1.0 / float(scene) + 1e-9
    np.testing.assert_allclose(np.diff(out.times), 1.0 / float(scene), atol=1e-12)
    for times in told(out):
        np.testing.assert_allclose(times, out.times, atol=1e-9)


@pytest.mark.parametrize("scene", [Fraction(24), Fraction(60), Fraction(240)])
def test_complaint_29_gaps_do_not_shift_what_follows(scene: Fraction) -> None:
    numbers = np.array([n for n in range(600) if not (100 <= n < 137 or n in (300, 302))])
    take = clock(numbers / 240.0)
    out = take.resampled(scene)
    assert out.frames == int(599 / 240 * float(scene)) + 1
    rotation_times, place_times = told(out)
    # Straight lines in time: even what was lost lies where it was, because both sides of the gap kept their times.
    np.testing.assert_allclose(rotation_times, out.times, atol=1e-9)
    np.testing.assert_allclose(place_times, out.times, atol=1e-9)


def test_complaint_29_uneven_stamps_stay_true() -> None:
    stamps = np.cumsum(np.random.default_rng(5).uniform(0.004, 0.03, 800))
    out = clock(stamps).resampled(Fraction(30))
    for times in told(out):
        np.testing.assert_allclose(times, out.times, atol=1e-9)
    assert abs(out.times[0] - stamps[0]) < 1e-12 and stamps[-1] - out.times[-1] < 1 / 30


@pytest.mark.parametrize("start", [0.0, -3.25, 7.5])
@pytest.mark.parametrize("count", [1, 2, 3, 1000])
def test_complaint_31_as_many_samples_as_there_were(count: int, start: float) -> None:
    take = clock(start + np.arange(count) / 30.0)
    out = take.resampled(Fraction(30))
    assert out.frames == count
    for end in (0, -1):
        np.testing.assert_allclose(out.times[end], take.times[end], rtol=0, atol=1e-12)
        np.testing.assert_array_equal(out.local_rotations[end], take.local_rotations[end])
        np.testing.assert_array_equal(out.local_translations[end], take.local_translations[end])


@pytest.mark.parametrize("start", [0.0, -3.25, 1000.0])
@pytest.mark.parametrize(("count", "rate", "scene"), [(61, 60, 30), (121, 120, 24), (2, 1, 24), (3, 30, 60)])
def test_complaint_31_first_and_last_at_other_rates(count: int, rate: int, scene: int, start: float) -> None:
    take = clock(start + np.arange(count) / rate)
    out = take.resampled(Fraction(scene))
    assert out.frames == (count - 1) * scene // rate + 1
    np.testing.assert_allclose(out.local_translations[0], take.local_translations[0], atol=1e-9)
    np.testing.assert_allclose(out.local_translations[-1], take.local_translations[-1], atol=1e-9)
    np.testing.assert_allclose(out.local_rotations[-1], take.local_rotations[-1], atol=1e-9)


def test_complaint_31_one_sample_is_one_sample_at_any_rate() -> None:
    for scene in (Fraction(24), Fraction(24000, 1001), Fraction(1000)):
        out = clock(np.array([-0.5])).resampled(scene)
        assert out.frames == 1 and out.times[0] == -0.5
