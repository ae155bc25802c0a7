# SPDX-License-Identifier: GPL-3.0-or-later
"""Frame rates from key times."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mocap_addon.motion import grid

RATES = [Fraction(24), Fraction(25), Fraction(30), Fraction(60), Fraction(120), Fraction(240), Fraction(24000, 1001), Fraction(30000, 1001)]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("start", [0.0, 1 / 24, 500.0])
def test_even_keys_in_float32(rate, start):
    times = (start + np.arange(400) / float(rate)).astype(np.float32).astype(float)
    assert grid.uniform_rate(times) == rate
    assert grid.fitting_rate(times) == rate


def test_a_rate_that_drifts_by_less_than_a_millionth_is_the_common_one():
    assert grid.uniform_rate(np.arange(40_000) / 120.0000502) == 120
    assert grid.uniform_rate(np.arange(40_000) / 119.88) == Fraction(120000, 1001)
    assert grid.uniform_rate(np.arange(40_000) / 119.9) == Fraction(1199, 10)


def test_an_unusual_rate_is_kept():
    assert grid.uniform_rate(np.arange(200) / 31.25) == Fraction(125, 4)


def test_thinned_out_keys_lie_on_frames():
    times = np.array([0, 1, 4, 9, 11, 40]) / 30
    assert grid.uniform_rate(times) is None
    assert grid.fitting_rate(times.astype(np.float32).astype(float)) == 30
    assert grid.fitting_rate(np.array([0, 1, 4, 9, 11, 41]) * 1001 / 24000) == Fraction(24000, 1001)


def test_keys_set_by_hand_are_no_rate():
    seconds = np.array([0.0, 1.0, 2.0])
    assert grid.uniform_rate(seconds) is None
    assert grid.fitting_rate(seconds) == 24
    assert grid.fitting_rate(np.array([0.0, 0.11, 0.3171, 0.77777])) is None


def test_one_time_or_none():
    assert grid.uniform_rate(np.zeros(1)) is None and grid.uniform_rate(np.zeros(0)) is None
    assert grid.fitting_rate(np.zeros(0)) is None
    assert grid.fitting_rate(np.zeros(1)) == 24


def test_distinct():
    np.testing.assert_allclose(grid.distinct(np.array([2.0, 1.0, 1.0 + 1e-6, 2.0, 0.5])), [0.5, 1.0, 2.0])
