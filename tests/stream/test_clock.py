# SPDX-License-Identifier: GPL-3.0-or-later
"""Senders' clocks, simulated: the true offset is known, so the error is."""

from __future__ import annotations

import numpy as np
import pytest

from mocap_addon.stream.clock import Clock, TimeCheck


@pytest.mark.parametrize("rate", [60, 240])
@pytest.mark.parametrize("drift", [1e-4, -1e-4, 0.0])
@pytest.mark.parametrize("kind", ["uniform", "exponential"])
def test_the_offset_is_within_two_milliseconds(rate, drift, kind):
    """20 ms of jitter and 100 ppm of drift over a minute: p99 below 2 ms, and what is shown (smoothed) too."""
    rng = np.random.default_rng(5)
    clock, errors, shown = Clock(), [], []
    for i in range(60 * rate):
        source = 500.0 + i / rate
        true = 7.0 + drift * (source - 500.0)
        delay = rng.uniform(0.0, 0.02) if kind == "uniform" else rng.exponential(0.007)
        arrival = source + true + delay
        clock.add(source, arrival)
        errors.append(abs(clock.offset(source) - true))
        shown.append(abs(clock.smooth(arrival) - true))
    assert np.percentile(errors, 99) < 0.002 and np.percentile(shown, 99) < 0.002
    assert np.max(errors[2 * rate :]) < 0.002


def test_late_packets_do_not_move_it():
    clock = Clock()
    for i in range(600):
        clock.add(i / 60, i / 60 + 3.0 + (0.5 if i % 5 == 0 else 0.0))
    assert clock.offset(10.0) == pytest.approx(3.0, abs=1e-6)


def test_a_faster_way_is_followed_at_once_and_shown_without_a_jerk():
    clock = Clock()
    shown = []
    for i in range(60 * 20):
        clock.add(i / 60, i / 60 + (0.030 if i < 600 else 0.010))
        shown.append(clock.smooth(i / 60 + 0.03))
    assert shown[599] == pytest.approx(0.030, abs=1e-4) and shown[-1] == pytest.approx(0.010, abs=1e-3)
    assert np.abs(np.diff(shown)).max() < 0.001


def test_an_hour_needs_no_more_memory_than_a_minute():
    clock = Clock()
    for i in range(120 * 60):
        clock.add(i / 2.0, i / 2.0 + 1.0)
    assert len(clock._points) < 100


def feed(check, times, rate=60):
    return [check.add(t, i / rate) for i, t in enumerate(times)][-1]


@pytest.mark.parametrize(
    "times, good",
    [
        ([i / 60 for i in range(300)], True),
        ([round(i / 60, 3) for i in range(300)], True),  # MVN: whole milliseconds
        ([1.7e9 // 128 * 128] * 300, False),  # the time of day as float32 stands still for 128 s
        ([0.0] * 300, False),  # an emulator's constant time code
        ([i / 1000 for i in range(300)], False),  # one that counts frames where milliseconds belong
        ([float(i // 60) for i in range(300)], False),  # whole seconds
        ([None] * 300, False),
        ([2 * i / 60 for i in range(300)], False),  # twice as fast as time passes
    ],
)
def test_what_is_a_clock(times, good):
    assert feed(TimeCheck(), times) is good


def test_packets_that_came_in_a_burst_are_no_other_clock():
    check, good = TimeCheck(), []
    for i in range(600):
        late = max(0.0, 5.0 - i / 60) if i > 270 else 0.0  # held up for half a second
        good.append(check.add(i / 60, i / 60 + late))
    assert all(good)


def test_a_clock_that_begins_anew_is_still_one():
    assert feed(TimeCheck(), [5000.0 + i / 60 for i in range(100)] + [i / 60 for i in range(100)])
