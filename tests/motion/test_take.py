# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes: what they refuse, resampling, turning, scaling."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Slerp

from mocap_addon.motion import quat, timeline
from mocap_addon.motion.errors import MocapError
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import PropTrack, Take

from .strategies import quaternions, same_rotation, scipy, skeletons, vectors, wxyz

NTSC30 = Fraction(30000, 1001)


def small_take(frames: int = 25, rate: Fraction = Fraction(24), *, moving: bool = True) -> Take:
    """A root that walks 1 m/s along X and spins 90 degrees/s about Z, an arm that swings, a curve, a prop."""
    times = timeline.uniform_times(frames, rate, 2.0)
    seconds = times - 2.0
    skeleton = Skeleton(("root", "arm"), np.array([-1, 0]), np.array([[0, 0, 1], [0.5, 0, 0.0]]))
    rotations = np.stack(
        [quat.from_axis_angle([0, 0, 1], np.pi / 2 * seconds), quat.from_axis_angle([1, 0, 0], np.sin(5 * seconds))], axis=1
    )
    places = np.tile(skeleton.rest_translations, (frames if moving else 1, 1, 1))
    if moving:
        places[:, 0, 0] = seconds
    prop = PropTrack(quat.from_axis_angle([0, 1, 0], seconds), np.stack([0 * seconds, seconds, 0 * seconds], axis=-1))
    return Take("small", skeleton, times, rotations, places, rate=rate, curves={"ramp": 10.0 * seconds}, props={"stick": prop})


@st.composite
def takes(draw: st.DrawFn) -> Take:
    skeleton = draw(skeletons(4))
    times = np.cumsum(draw(st.lists(st.floats(0.01, 0.5), min_size=2, max_size=8)))
    shape = (len(times), len(skeleton))
    return Take("random", skeleton, times, draw(quaternions(shape)), draw(vectors((*shape, 3))))


# -- what a take is


def test_counts():
    take = small_take()
    assert take.frames == 25 and take.duration == pytest.approx(1.0)
    one = take.block(3, 4)
    assert one.frames == 1 and one.duration == 0.0
    none = take.block(0, 0)
    assert none.frames == 0 and none.duration == 0.0 and none.global_positions.shape == (0, 2, 3)


def test_places_in_the_world_by_hand():
    take = small_take()
    # After one second: 1 m along X, 1 m up, turned by 90 degrees, so that the arm's joint lies 0.5 m along +Y.
    assert np.allclose(take.global_positions[-1], [[1, 0, 1], [1, 0.5, 1]])
    assert np.allclose(small_take(moving=False).global_positions[-1], [[0, 0, 1], [0, 0.5, 1]])


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("local_rotations", np.zeros((25, 3, 4)), "rotations"),
        ("local_translations", np.zeros((24, 2, 3)), "translations"),
        ("times", np.linspace(1, 0, 25), "increasing"),
        ("times", np.zeros(25), "increasing"),
        ("times", np.where(np.arange(25) == 7, np.nan, np.arange(25.0)), "increasing"),
    ],
)
def test_impossible_takes_are_refused_with_a_sentence(field, value, says):
    with pytest.raises(MocapError) as error:
        replace(small_take(), **{field: value})
    assert says in str(error.value) and str(error.value).endswith(".") and "\n" not in str(error.value)


def test_a_block_is_a_view():
    take = replace(small_take(), valid=np.ones((25, 2), dtype=bool))
    part = take.block(5, 9)
    assert np.array_equal(part.times, take.times[5:9])
    assert np.shares_memory(part.local_rotations, take.local_rotations)
    assert np.allclose(part.global_positions, take.global_positions[5:9])
    assert part.curves["ramp"].tolist() == take.curves["ramp"][5:9].tolist() and part.valid.shape == (4, 2)
    assert np.array_equal(part.props["stick"].translations, take.props["stick"].translations[5:9])
    still = small_take(moving=False).block(5, 9)
    assert still.local_translations.shape == (1, 2, 3)


# -- sampling


@given(takes(), st.lists(st.floats(0.0, 1.0), min_size=1, max_size=6, unique=True))
def test_sampling_equals_scipys_slerp_and_numpys_lines(take, shares):
    at = np.minimum(take.times[0] + np.sort(shares) * take.duration, take.times[-1])
    at = at[np.concatenate([[True], np.diff(at) > 1e-6])]
    got = take.sampled(at)
    for j in range(len(take.skeleton)):
        q = take.local_rotations[:, j]
        if np.abs((q[1:] * q[:-1]).sum(-1)).min() > 1e-6:  # else there are two shortest ways
            assert same_rotation(got.local_rotations[:, j], wxyz(Slerp(take.times, scipy(q))(at)), 1e-7)
        for c in range(3):
            assert np.allclose(got.local_translations[:, j, c], np.interp(at, take.times, take.local_translations[:, j, c]), atol=1e-7)


def test_other_rates_by_hand():
    take = small_take()
    for rate, frames in ((Fraction(30), 31), (Fraction(12), 13), (NTSC30, 30), (Fraction(120), 121), (Fraction(7), 8)):
        got = take.resampled(rate)
        assert got.frames == frames and got.rate == rate
        seconds = np.arange(frames) / float(rate)
        assert np.allclose(got.times, 2.0 + seconds)
        assert np.allclose(got.local_translations[:, 0], np.stack([seconds, 0 * seconds, 0 * seconds + 1], axis=-1), atol=1e-12)
        assert same_rotation(got.local_rotations[:, 0], quat.from_axis_angle([0, 0, 1], np.pi / 2 * seconds))
        assert np.allclose(got.curves["ramp"], 10 * seconds)
        assert np.allclose(got.props["stick"].translations[:, 1], seconds)
        assert same_rotation(got.props["stick"].rotations, quat.from_axis_angle([0, 1, 0], seconds))


def test_the_own_rate_changes_nothing():
    take = small_take()
    assert take.resampled(Fraction(24)).local_rotations is take.local_rotations
    twice = take.resampled(Fraction(48)).resampled(Fraction(24))
    assert np.allclose(twice.local_rotations, take.local_rotations, rtol=0, atol=2e-16)
    assert np.array_equal(twice.local_translations, take.local_translations)


def test_held_outside_its_range():
    take = small_take()
    got = take.sampled(np.array([-10.0, 2.0, 3.0, 99.0]))
    assert np.array_equal(got.local_rotations[[0, 3]], take.local_rotations[[0, -1]])
    assert got.curves["ramp"].tolist() == [0.0, 0.0, 10.0, 10.0]


def test_still_places_stay_one_row():
    assert small_take(moving=False).resampled(Fraction(60)).local_translations.shape == (1, 2, 3)


def test_a_missing_sample_spoils_only_what_lies_beside_it():
    take = small_take(5, Fraction(1))
    valid = np.ones((5, 2), dtype=bool)
    valid[2, 1] = False
    rotations, places = take.local_rotations.copy(), take.local_translations.copy()
    rotations[2, 1], places[2, 1] = np.nan, np.nan
    take = replace(take, valid=valid, local_rotations=rotations, local_translations=places)
    got = take.sampled(2.0 + np.array([0.5, 1.0, 1.5, 2.0, 2.5, 3.0]))
    assert got.valid[:, 1].tolist() == [True, True, False, False, False, True]
    assert got.valid[:, 0].all()
    assert np.isfinite(got.local_rotations[got.valid]).all() and np.isfinite(got.local_translations[got.valid]).all()


def test_one_frame_can_be_sampled_and_none_cannot():
    take = small_take()
    one = take.block(4, 5).sampled(np.array([0.0, 1.0]))
    assert np.array_equal(one.local_rotations, take.local_rotations[[4, 4]])
    assert take.block(4, 5).resampled(Fraction(30)).frames == 1
    with pytest.raises(MocapError, match="no frames"):
        take.block(0, 0).sampled(np.array([0.0]))
    assert take.block(0, 0).resampled(Fraction(30)).frames == 0


def test_irregular_times_get_a_regular_rate():
    times = np.array([0.0, 0.1, 0.35, 1.0])
    skeleton = Skeleton(("root",), np.array([-1]), np.zeros((1, 3)))
    take = Take("gaps", skeleton, times, quat.exp(np.outer(times, [0, 0, 1]))[:, None], np.outer(times, [1, 2, 3])[:, None])
    got = take.resampled(Fraction(10))
    assert got.frames == 11
    assert np.allclose(quat.log(got.local_rotations[:, 0])[:, 2], np.arange(11) / 10)
    assert np.allclose(got.local_translations[:, 0], np.outer(np.arange(11) / 10, [1, 2, 3]))


# -- turning and scaling


@given(takes(), quaternions())
def test_turning_turns_everything_in_the_world(take, turn):
    take = replace(take, props={"stick": PropTrack(take.local_rotations[:, 0], take.local_translations[:, 0])})
    got = take.turned(turn)
    r = scipy(turn)
    for j in range(len(take.skeleton)):
        assert np.allclose(got.global_positions[:, j], r.apply(take.global_positions[:, j]), atol=1e-11)
        assert same_rotation(got.global_rotations[:, j], wxyz(r * scipy(take.global_rotations[:, j])), 1e-11)
    assert np.allclose(got.skeleton.rest_global_positions, r.apply(take.skeleton.rest_global_positions), atol=1e-11)
    assert np.allclose(got.skeleton.rest_global_ends, r.apply(take.skeleton.rest_global_ends), atol=1e-11)
    assert np.allclose(got.props["stick"].translations, r.apply(take.local_translations[:, 0]), atol=1e-11)


def test_turning_the_motion_alone():
    take = small_take()
    turn = quat.from_axis_angle([1, 0, 0], np.pi / 2)
    got = take.rerooted(lambda q: quat.mul(turn, q), lambda v: quat.rotate(turn, v), rest=False)
    assert np.allclose(got.global_positions[-1, 0], [1, -1, 0])
    assert got.skeleton is take.skeleton
    assert np.allclose(take.global_positions[-1, 0], [1, 0, 1])  # the take itself is not touched


@given(takes(), st.floats(1e-3, 1e3))
def test_scaling_scales_every_length(take, factor):
    got = take.scaled(factor)
    assert np.allclose(got.global_positions, take.global_positions * factor, rtol=1e-9, atol=1e-9 * factor)
    assert np.allclose(got.skeleton.rest_global_ends, take.skeleton.rest_global_ends * factor, rtol=1e-9, atol=1e-9 * factor)
    assert np.array_equal(got.local_rotations, take.local_rotations)
    prop = small_take().scaled(factor).props["stick"]
    assert np.allclose(prop.translations[:, 1], factor * np.arange(25) / 24)


def test_arrays_are_laid_out_component_by_component():
    got = small_take().resampled(Fraction(60))
    assert got.local_rotations[:, 1, 3].flags.c_contiguous
    assert got.global_rotations[:, 1, 3].flags.c_contiguous
    assert got.global_positions[:, 1, 2].flags.c_contiguous
