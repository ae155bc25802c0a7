# SPDX-License-Identifier: GPL-3.0-or-later
"""Time code against SMPTE ST 12-1's own figures and a counter that steps like a clock."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from mocap_addon.motion import quat, timecode, timeline
from mocap_addon.motion.errors import MocapError
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import Take
from mocap_addon.motion.timecode import TimeCode, parse
from mocap_addon.retarget.motion import PoseMotion

NTSC30, NTSC60, FILM = Fraction(30000, 1001), Fraction(60000, 1001), Fraction(24000, 1001)


def after(text: str, rate: Fraction, frames: int = 1) -> str:
    return str(parse(text, rate).shifted(frames / float(rate)))


@pytest.mark.parametrize(
    ("rate", "now", "following"),
    [
        (NTSC30, "00:00:59;29", "00:01:00;02"),  # two numbers are left out
        (NTSC30, "00:09:59;29", "00:10:00;00"),  # but not in the tenth minute
        (NTSC30, "00:10:59;29", "00:11:00;02"),
        (NTSC30, "00:00:59:29", "00:01:00:00"),  # non-drop counts on
        (NTSC30, "23:59:59;29", "00:00:00;00"),
        (NTSC60, "00:00:59;59", "00:01:00;04"),
        (NTSC60, "00:19:59;59", "00:20:00;00"),
        (FILM, "00:59:59:23", "01:00:00:00"),
        (FILM, "23:59:59:23", "00:00:00:00"),
        (Fraction(25), "11:59:59:24", "12:00:00:00"),
        (Fraction(240), "15:59:46:239", "15:59:47:000"),
        (Fraction(120), "10:00:00:007", "10:00:00:008"),
    ],
)
def test_next_frame(rate: Fraction, now: str, following: str) -> None:
    assert after(now, rate) == following
    assert str(parse(following, rate).shifted(-1 / float(rate))) == now


def test_a_day_of_drop_frame_has_the_published_number_of_frames() -> None:
    assert timecode.frames_per_day(NTSC30, drop=True) == 2_589_408
    assert timecode.frames_per_day(NTSC60, drop=True) == 5_178_816
    assert timecode.frames_per_day(NTSC30) == 2_592_000
    assert timecode.frames_per_day(FILM) == 2_073_600
    assert parse("01:00:00;00", NTSC30).count == 107_892  # the textbook hour
    assert parse("00:10:00;00", NTSC30).count == 17_982


def test_drop_frame_keeps_up_with_the_clock() -> None:
    """After an hour of real time drop-frame shows the hour, non-drop 3.6 s less."""
    assert str(TimeCode(NTSC30, 0, drop=True).shifted(3600.0)).startswith(("01:00:00;00", "00:59:59;29"))
    assert str(TimeCode(NTSC30, 0).shifted(3600.0))[:8] == "00:59:56"
    assert parse("01:00:00;00", NTSC30).seconds == pytest.approx(3600.0, abs=0.004)


@pytest.mark.parametrize(("rate", "drop"), [(NTSC30, True), (NTSC60, True), (NTSC30, False), (FILM, False)])
def test_counting_like_a_clock(rate: Fraction, drop: bool) -> None:
    """Every number of 25 minutes before midnight to some after it, by a counter that steps digit by digit."""
    base, left_out = timecode.nominal(rate), 2 * timecode.nominal(rate) // 30
    hour, minute, second, frame = 23, 35, 0, 0
    start = parse("23:35:00:00" if minute % 10 == 0 or not drop else f"23:35:00;{left_out:02d}", rate, drop=drop)
    if drop:
        frame = left_out
    n = 26 * 60 * base
    got = timecode.fields(start.count + np.arange(n), rate, drop=drop)
    for k in range(n):
        assert tuple(got[:, k]) == (hour, minute, second, frame), k
        frame += 1
        if frame == base:
            frame, second = 0, second + 1
        if second == 60:
            second, minute = 0, minute + 1
            if minute == 60:
                minute, hour = 0, (hour + 1) % 24
            if drop and minute % 10:
                frame = left_out


def test_labels_round_trip_over_a_day() -> None:
    for rate, drop in ((NTSC30, True), (NTSC60, True), (FILM, False), (Fraction(240), False)):
        for count in np.linspace(0, timecode.frames_per_day(rate, drop=drop) - 1, 997).astype(int):
            one = TimeCode(rate, int(count), drop=drop)
            assert parse(str(one), rate) == one


def test_curves_with_sub_frames_at_120_samples_a_second() -> None:
    start = parse("00:00:59;29.5", NTSC30)
    out = timecode.curves(start, np.arange(8) / (4 * float(NTSC30)))
    assert out["TCFrame"].tolist() == [29, 29, 2, 2, 2, 2, 3, 3]
    assert out["TCSecond"].tolist() == [59, 59, 0, 0, 0, 0, 0, 0]
    assert out["TCMinute"].tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    assert np.allclose(out["TCSubframe"], [0.5, 0.75, 0, 0.25, 0.5, 0.75, 0, 0.25])
    assert str(start) == "00:00:59;29.5"


def test_curves_over_midnight_at_23_976() -> None:
    out = timecode.curves(parse("23:59:59:22", FILM), np.arange(4) * 1001 / 24000)
    assert [out[n].tolist() for n in ("TCHour", "TCMinute", "TCSecond", "TCFrame")] == [
        [23, 23, 0, 0],
        [59, 59, 0, 0],
        [59, 59, 0, 0],
        [22, 23, 0, 1],
    ]
    assert "TCSubframe" not in out
    assert timecode.from_curves(out, FILM) == parse("23:59:59:22", FILM)


def test_rounded_times_fall_on_their_frames() -> None:
    """Times in float32 and in whole milliseconds are the frames they came from."""
    rate = NTSC60
    exact = np.arange(5000) / float(rate)
    for times in (exact, exact.astype(np.float32).astype(np.float64), np.round(exact, 7)):
        out = timecode.curves(parse("10:00:00;00", rate), times)
        assert np.array_equal(out["TCFrame"], timecode.fields(parse("10:00:00;00", rate).count + np.arange(5000), rate, drop=True)[3])
        assert "TCSubframe" not in out


@pytest.mark.parametrize(
    ("text", "rate", "says"),
    [
        ("noon", NTSC30, "HH:MM:SS:FF"),
        ("24:00:00:00", NTSC30, "out of range"),
        ("00:00:00:30", NTSC30, "out of range"),
        ("00:01:00;01", NTSC30, "does not exist"),
    ],
)
def test_wrong_labels_say_what_to_write(text: str, rate: Fraction, says: str) -> None:
    with pytest.raises(MocapError, match=says):
        parse(text, rate)


def test_drop_frame_only_where_it_exists() -> None:
    with pytest.raises(MocapError, match="only, not at 25"):
        parse("00:00:00:00", Fraction(25), drop=True)
    assert not parse("00:00:01.10", Fraction(25)).drop and parse("00:00:01.10", NTSC30).drop


def take_at(rate: Fraction, frames: int, label: str, code_rate: Fraction | None = None) -> Take:
    skeleton = Skeleton(("hips",), np.array([-1]), np.zeros((1, 3)), quat.identity(1), np.full((1, 3), np.nan))
    return Take(
        "walk",
        skeleton,
        timeline.uniform_times(frames, rate),
        np.broadcast_to(quat.identity(1), (frames, 1, 4)).copy(),
        np.zeros((1, 1, 3)),
        rate=rate,
        timecode=label,
        timecode_rate=code_rate,
        curves={"TCFrame": np.arange(frames) % 30.0, "ramp": np.arange(frames) / 1.0},
    )


def test_resampling_counts_on_and_never_interpolates() -> None:
    """240 Hz onto 24 and 60 frames a second: the time code stays the camera's, its numbers whole ones at every rate."""
    take = take_at(Fraction(240), 961, "00:00:58;12", NTSC30)
    for rate in (Fraction(24), Fraction(60), Fraction(240)):
        got = take.resampled(rate)
        assert got.time_code == parse("00:00:58;12", NTSC30)
        motion = PoseMotion("walk", got.times, (), np.zeros((got.frames, 0, 4)), (), np.zeros((got.frames, 0, 3)), curves=got.curves)
        motion = motion.with_time_code(got.time_code)
        seconds = 3600 * motion.curves["TCHour"] + 60 * motion.curves["TCMinute"] + motion.curves["TCSecond"]
        assert all(np.array_equal(motion.curves[n], np.rint(motion.curves[n])) for n in ("TCHour", "TCMinute", "TCSecond", "TCFrame"))
        # the clock of the numbers against the clock of the samples: within a frame, plus what was dropped by rule
        shown = seconds + motion.curves["TCFrame"] / 30.0
        assert np.all(np.abs((shown - shown[0]) - got.times) < 2 / 30.0 + 1 / 30.0)
        assert motion.to_take(got.skeleton).time_code == take.time_code


def test_a_cut_starts_with_its_own_time_code() -> None:
    take = take_at(Fraction(120), 600, "23:59:58:060")
    assert str(take.block(240, 600).time_code) == "00:00:00:060"
    assert str(take.sampled(take.times[[90, 300]]).time_code) == "23:59:59:030"
    assert take.sampled(np.array([1.5, 2.0])).timecode == "00:00:00:000"
    assert take.sampled(np.array([-0.5, 0.0])).timecode == "23:59:58:000"


def test_time_code_that_came_as_a_curve_is_held() -> None:
    got = take_at(Fraction(30), 30, "00:00:00:00").sampled(np.array([0.5 / 30, 1.9 / 30, 2.0 / 30]))
    assert got.curves["TCFrame"].tolist() == [0.0, 1.0, 2.0]
    assert np.allclose(got.curves["ramp"], [0.5, 1.9, 2.0])


def test_a_clocks_time_is_the_frame_that_lies_there() -> None:
    assert str(parse("10:20:30.500", Fraction(60))) == "10:20:30:30"
    assert str(parse("10:20:30.125", Fraction(24))) == "10:20:30:03"
    assert str(parse("10:20:30.010", Fraction(25))) == "10:20:30:00.25"
    assert str(parse("10:20:30", Fraction(25))) == "10:20:30:00"
    assert str(parse("10:20:30.999", Fraction(25))) == "10:20:30:24.975"


def test_gaps_do_not_hide_the_rate() -> None:
    """Ten samples are missing; the others lie 1/60 s apart."""
    take = take_at(Fraction(60), 100, "10:00:00:12")
    gone = np.r_[0:40, 50:100]
    gaps = replace(take, times=take.times[gone], local_rotations=take.local_rotations[gone], rate=None, curves={})
    assert gaps.time_code == parse("10:00:00:12", Fraction(60))
    assert timeline.usual_rate(np.array([0.0, 0.31, 0.9])) is None and timeline.usual_rate(np.zeros(1)) is None


def test_what_is_no_time_code_is_none() -> None:
    assert take_at(Fraction(30), 2, "about noon").time_code is None
