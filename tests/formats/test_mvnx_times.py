# SPDX-License-Identifier: GPL-3.0-or-later
"""When the frames of an MVNX file were: exact rates, gaps, stamps that contradict, time code."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mocap_addon.formats import mvnx
from mocap_addon.formats.options import ReadOptions

from .mvnx_checks import written
from .mvnx_writer import Made


@pytest.mark.parametrize("rate", [Fraction(60), Fraction(240), Fraction(100), Fraction(60000, 1001)])
def test_times_are_exact(tmp_path: Path, rate: Fraction) -> None:
    take = written(tmp_path, Made(frames=500, rate=rate))
    assert take.rate == rate
    np.testing.assert_allclose(take.times, np.arange(500) / float(rate), rtol=0, atol=1e-12)


@pytest.mark.parametrize("attributes", [("time", "index"), ("time",), ("index",)])
def test_gaps_keep_their_time(tmp_path: Path, attributes: tuple[str, ...]) -> None:
    numbers = [n for n in range(60) if n not in (10, 11, 12, 30)]
    made = Made(frames=56, rate=Fraction(240), numbers=numbers, attributes=attributes)
    take = written(tmp_path, made)
    assert take.rate is None and take.facts["missing_frames"] == 4
    np.testing.assert_allclose(take.times, np.array(numbers) / 240.0, rtol=0, atol=1e-12)
    assert any("4 frames are missing in 2 places" in note for note in take.notes)
    # Resampled, the held second is where it was, and what was measured after the gap is still at its own time.
    again = take.resampled(Fraction(240))
    assert again.frames == 60
    np.testing.assert_allclose(again.local_rotations[40], take.local_rotations[numbers.index(40)], atol=1e-12)


def test_stamps_that_contradict_the_rate(tmp_path: Path) -> None:
    made = Made(frames=2000, rate=Fraction(50))
    path = tmp_path / "s.mvnx"
    path.write_text(made.text().replace('frameRate="50"', 'frameRate="60"'))
    (take,) = mvnx.read(path)
    assert take.rate == 50 and abs(take.duration - 1999 / 50) < 1e-9
    assert any("says 60 frames a second and its time stamps say 50" in note for note in take.notes)


@pytest.mark.parametrize("steps", [(11, 40), (24, 43)])
def test_uneven_stamps_are_kept(tmp_path: Path, steps: tuple[int, int]) -> None:
    made = Made(frames=40, attributes=("time",))
    ms = np.cumsum(np.random.default_rng(3).integers(*steps, 40))
    counter = iter(ms)
    text = re.sub(r'<frame time="\d+" type="normal">', lambda _: f'<frame time="{next(counter)}" type="normal">', made.text())
    path = tmp_path / "u.mvnx"
    path.write_text(text)
    (take,) = mvnx.read(path)
    assert take.rate is None
    np.testing.assert_allclose(take.times, ms / 1000.0, atol=1e-12)


def test_no_stamps_at_all(tmp_path: Path) -> None:
    take = written(tmp_path, Made(attributes=(), frame_rate=True))
    np.testing.assert_allclose(take.times, np.arange(40) / 60.0)
    assert any("without a gap" in note for note in take.notes) and take.timecode is None


def test_rate_missing_comes_from_the_stamps(tmp_path: Path) -> None:
    take = written(tmp_path, Made(frames=500, rate=Fraction(240), frame_rate=False))
    assert take.rate == 240 and any("no frame rate" in note for note in take.notes)


def test_timecode_and_clock(tmp_path: Path) -> None:
    take = written(tmp_path, Made(numbers=list(range(7, 47))))
    assert take.timecode == "10:20:30:07" and take.facts["start_ms"] == 1_600_000_000_000 + 116
    assert abs(take.times[0] - 7 / 60) < 1e-12


def test_options(tmp_path: Path) -> None:
    path = Made().write(tmp_path / "o.mvnx")
    (plain,) = mvnx.read(path)
    (fast,) = mvnx.read(path, ReadOptions(rate=Fraction(120)))
    assert fast.rate == 120 and abs(fast.duration - plain.duration / 2) < 1e-12
    (small,) = mvnx.read(path, ReadOptions(unit=0.01))
    np.testing.assert_allclose(small.global_positions, plain.global_positions * 0.01, atol=1e-12)
    (turned,) = mvnx.read(path, ReadOptions(up="Y"))
    np.testing.assert_allclose(turned.global_positions[..., 2], plain.global_positions[..., 1], atol=1e-9)


def test_the_clock_stands_in_for_missing_stamps(tmp_path: Path) -> None:
    numbers = [n for n in range(45) if n not in (10, 11, 12, 13, 14)]
    take = written(tmp_path, Made(numbers=numbers, attributes=("ms",)))
    np.testing.assert_allclose(take.times, np.array(numbers) / 60.0, atol=1e-12)
    assert take.facts["missing_frames"] == 5
