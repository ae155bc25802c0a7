# SPDX-License-Identifier: GPL-3.0-or-later
"""Frame rates as fractions, and time axes."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mocap_addon.motion import timeline
from mocap_addon.motion.errors import MocapError
from mocap_addon.motion.timeline import format_rate, parse_rate, rate_from_frame_time

NTSC24, NTSC30, NTSC60, NTSC120 = (Fraction(n * 1000, 1001) for n in (24, 30, 60, 120))

WRITTEN = {
    # six decimals and more: every common rate can be told from its neighbours
    "0.0083333": Fraction(120),
    "0.00833333": Fraction(120),
    "0.008333": Fraction(120),
    "0.0417083": NTSC24,
    "0.041708": NTSC24,
    "0.0416667": Fraction(24),
    "0.041667": Fraction(24),
    "0.033333": Fraction(30),
    "0.0333333": Fraction(30),
    "0.033367": NTSC30,
    "0.0333667": NTSC30,
    "0.016667": Fraction(60),
    "0.016683": NTSC60,
    "0.008342": NTSC120,
    "0.00834167": NTSC120,
    "0.010000": Fraction(100),
    "0.004167": Fraction(240),
    "0.005556": Fraction(180),
    "0.013889": Fraction(72),
    # cut off, not rounded
    "0.016666": Fraction(60),
    "0.0166666": Fraction(60),
    "0.041666": Fraction(24),
    "0.0083": Fraction(120),
    # few decimals: several rates would be written so, and the usual one is meant
    "0.0333": Fraction(30),
    "0.0334": NTSC30,
    "0.033": Fraction(30),
    "0.0167": Fraction(60),
    "0.017": Fraction(60),
    "0.0417": Fraction(24),
    "0.042": Fraction(24),
    "0.04": Fraction(25),
    "0.02": Fraction(50),
    "0.01": Fraction(100),
    "0.008": Fraction(125),
    "0.005": Fraction(200),
    "1": Fraction(1),
}


@pytest.mark.parametrize(("text", "rate"), WRITTEN.items())
def test_rounded_frame_times(text, rate):
    digits = len(text.partition(".")[2])
    assert rate_from_frame_time(float(text), digits) == rate


@pytest.mark.parametrize(
    "rate", [NTSC24, NTSC30, NTSC60, NTSC120, *map(Fraction, (1, 12, 24, 25, 30, 50, 60, 72, 90, 100, 120, 144, 240, 1000))]
)
def test_common_rates_survive_being_written(rate):
    exact = float(1 / rate)
    assert rate_from_frame_time(exact) == rate
    for digits in (6, 7, 8, 10, 15):
        assert rate_from_frame_time(round(exact, digits), digits) == rate


@pytest.mark.parametrize(("frame_time", "fps"), [(0.0123, 81.3008), (0.7, 1.42857), (2.5, 0.4), (0.0411111, 24.3243)])
def test_uncommon_rates_are_kept(frame_time, fps):
    assert float(rate_from_frame_time(frame_time)) == pytest.approx(fps, rel=1e-5)


@given(st.floats(1e-4, 10.0))
def test_the_rate_never_leaves_what_was_written(frame_time):
    rate = rate_from_frame_time(frame_time)
    assert abs(float(1 / rate) - frame_time) <= 1.01 * 10.0 ** (math.floor(math.log10(frame_time)) - 5)


@pytest.mark.parametrize("wrong", [0.0, -0.01, math.nan, math.inf])
def test_no_duration(wrong):
    with pytest.raises(MocapError, match="frame"):
        rate_from_frame_time(wrong)


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("30", Fraction(30)),
        (" 24 ", Fraction(24)),
        ("25.0", Fraction(25)),
        ("30000/1001", NTSC30),
        ("29.97", NTSC30),
        ("29.970", NTSC30),
        ("29.97003", NTSC30),
        ("23.976", NTSC24),
        ("23.98", NTSC24),
        ("59.94", NTSC60),
        ("119.88", NTSC120),
        ("239.76", Fraction(240000, 1001)),
        ("12.5", Fraction(25, 2)),
        ("1/2", Fraction(1, 2)),
        ("120", Fraction(120)),
        ("23", Fraction(23)),
    ],
)
def test_rates_as_people_write_them(text, rate):
    assert parse_rate(text) == rate


@pytest.mark.parametrize(
    "text", ["", "fast", "0", "-30", "30/0", "nan", "inf", "1e9", "30 fps", "29,97", "100001", "1e999999999", "1e-999999999"]
)
def test_no_rate(text):
    with pytest.raises(MocapError, match="frame rate") as error:
        parse_rate(text)
    assert "\n" not in str(error.value) and str(error.value).endswith(".")


@pytest.mark.parametrize(
    ("rate", "text"),
    [(Fraction(30), "30"), (NTSC30, "29.97"), (NTSC24, "23.98"), (NTSC120, "119.88"), (Fraction(25, 2), "12.5"), (Fraction(1000), "1000")],
)
def test_rates_as_people_read_them(rate, text):
    assert format_rate(rate) == text
    assert parse_rate(text) == rate


def test_hours_later_nothing_has_drifted():
    times = timeline.uniform_times(30 * 3600 * 10 + 1, NTSC30)
    assert times[-1] == 36036.0  # 1,080,000 frames of 1001/30000 s
    assert timeline.uniform_times(3, Fraction(10), 5.0).tolist() == [5.0, 5.1, 5.2]
    assert timeline.uniform_times(0, NTSC30).shape == (0,)


@pytest.mark.parametrize("rate", [Fraction(24), NTSC30, Fraction(60), Fraction(120), Fraction(7, 3)])
@pytest.mark.parametrize("count", [1, 2, 3, 100, 7201])
def test_frames_of_the_own_rate_are_the_own_frames(rate, count):
    times = timeline.uniform_times(count, rate, 17.3)
    assert np.allclose(timeline.sample_times(times, rate), times, rtol=0, atol=1e-9)


@given(st.floats(0.0, 100.0), st.floats(-1000.0, 1000.0), st.sampled_from([Fraction(24), NTSC30, Fraction(120)]))
def test_whole_frames_cover_the_take(span, start, rate):
    at = timeline.sample_times(np.array([start, start + span]), rate)
    assert at[0] == start
    assert at[-1] <= start + span + 1.1e-6 / rate
    assert at[-1] + float(1 / rate) > start + span
    assert np.allclose(np.diff(at), float(1 / rate), atol=1e-12 * (1 + abs(start)))


def test_no_times():
    assert timeline.sample_times(np.zeros(0), Fraction(24)).shape == (0,)


def test_bracket_by_hand():
    times = np.array([0.0, 1.0, 3.0])
    i0, i1, t = timeline.bracket(times, np.array([-5.0, 0.0, 0.25, 1.0, 2.0, 3.0, 9.0]))
    assert i0.tolist() == [0, 0, 0, 1, 1, 2, 2]
    assert i1.tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert (t * (i1 - i0)).tolist() == [0, 0, 0.25, 0, 0.5, 0, 0]


@given(st.lists(st.floats(0.001, 2.0), min_size=1, max_size=20), st.lists(st.floats(-5.0, 45.0), min_size=1, max_size=20))
def test_bracket_equals_numpys_interpolation(steps, at):
    times = np.concatenate([[0.0], np.cumsum(steps)])
    values = np.sin(times * 3.0)
    i0, i1, t = timeline.bracket(times, np.array(at))
    assert np.allclose(values[i0] * (1 - t) + values[i1] * t, np.interp(at, times, values), atol=1e-8)
    assert np.all((t >= 0) & (t <= 1))


def test_bracket_of_one_time():
    i0, i1, t = timeline.bracket(np.array([4.0]), np.array([0.0, 4.0, 9.0]))
    assert i0.tolist() == i1.tolist() == [0, 0, 0] and t.tolist() == [0, 0, 0]


def test_a_time_that_is_a_sample_needs_no_other():
    times = timeline.uniform_times(1000, NTSC30, 0.1)
    for shift in (0.0, 1e-13, -1e-13):
        i0, i1, _ = timeline.bracket(times, times + shift)
        assert i0.tolist() == i1.tolist() == list(range(1000))
