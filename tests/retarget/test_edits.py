# SPDX-License-Identifier: GPL-3.0-or-later
"""The layer of hand edits by itself: differences, strength, what is new in it, other times, bytes. SciPy is the oracle."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation, Slerp

from mocap_addon.motion import quat
from mocap_addon.retarget.edits import Edits, pack, rotation_difference, unpack

from .bodies import q, r

F = 12
TIMES = np.arange(F) / 24.0
KNOWN = {"rotation:hand", "location:hips", "value:contact"}


def some(seed: int) -> Rotation:
    return Rotation.from_rotvec(np.random.default_rng(seed).normal(size=(F, 3)) * 0.4)


def layer(rotation: Rotation | None = None, location: np.ndarray | None = None, influence: float = 1.0) -> Edits:
    return Edits(
        TIMES,
        {} if rotation is None else {"hand": q(rotation)},
        {} if location is None else {"hips": location},
        influence=influence,
    )


def apart(a: np.ndarray, b: Rotation) -> float:
    return float((r(a).inv() * b).magnitude().max())


def test_the_difference_is_in_the_bones_own_axes():
    base, edited = some(1), some(2)
    assert apart(rotation_difference(q(base), q(edited)), base.inv() * edited) < 1e-9
    assert np.array_equal(rotation_difference(q(base), -q(base)), np.tile([1.0, 0, 0, 0], (F, 1)))


def test_rounding_to_single_precision_is_no_edit():
    base = q(some(3))
    keys = base.astype(np.float32).astype(np.float64)
    assert np.array_equal(rotation_difference(quat.normalize(base), quat.normalize(keys)), np.tile([1.0, 0, 0, 0], (F, 1)))


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.floats(0.05, 1.0))
@settings(max_examples=30, deadline=None)
def test_what_shows_is_what_was_made(seed: int, other: int, influence: float):
    """Whatever the strength: after more was done by hand, the layer shows exactly the pose that was made."""
    step = Rotation.from_rotvec(some(other).as_rotvec() * 0.1)
    before = layer(some(seed), influence=influence)
    made = r(before.shown().rotations["hand"]) * step
    after = before.absorbing(Edits(TIMES, {"hand": q(made)}), KNOWN)
    assert after.influence in (influence, 1.0)
    assert apart(after.shown().rotations["hand"], made) < 1e-6


def test_an_edit_too_large_for_a_weak_layer_makes_it_a_full_one():
    quarter = Rotation.from_rotvec(np.tile([0.0, 1.2, 0.0], (F, 1)))
    small = layer(quarter, influence=0.5).absorbing(Edits(TIMES, {"hand": q(quarter)}), KNOWN)
    large = layer(quarter, influence=0.25).absorbing(Edits(TIMES, {"hand": q(quarter)}), KNOWN)
    assert small.influence == 0.5 and apart(small.rotations["hand"], quarter**2) < 1e-9  # 2.4 rad: half of it is what was made
    assert large.influence == 1.0 and apart(large.rotations["hand"], quarter) < 1e-9  # 4.8 rad is no turn


def test_half_strength_is_half_the_turn_and_half_the_way():
    turn, way = some(5), np.random.default_rng(5).normal(size=(F, 3))
    half = layer(turn, way, influence=0.5).shown()
    assert apart(half.rotations["hand"], Rotation.from_rotvec(0.5 * turn.as_rotvec())) < 1e-9
    assert np.allclose(half.locations["hips"], 0.5 * way)
    off = replace(layer(turn, way), influence=0.0).shown()
    assert not off.rotations and not off.locations


def test_edits_made_while_the_layer_is_off_join_it():
    turn, news = some(6), some(7)
    off = layer(turn, influence=0.0).absorbing(Edits(TIMES, {"hand": q(news)}), KNOWN)
    assert apart(replace(off, influence=1.0).shown().rotations["hand"], turn * news) < 1e-9


def test_what_shows_already_is_no_news_and_what_was_undone_is_gone():
    before = layer(some(8), np.ones((F, 3)))
    same = before.absorbing(Edits(TIMES, dict(before.rotations), dict(before.locations)), KNOWN)
    assert np.array_equal(same.rotations["hand"], before.rotations["hand"])
    assert before.absorbing(Edits(TIMES), KNOWN).empty


def test_bones_that_are_not_there_keep_their_edits():
    waiting = replace(layer(some(9), np.ones((F, 3))), deleted=frozenset({"rotation:tail"})).absorbing(Edits(TIMES), {"value:contact"})
    assert set(waiting.rotations) == {"hand"} and set(waiting.locations) == {"hips"} and waiting.deleted == {"rotation:tail"}


def test_at_other_times_turns_go_along_the_arc_and_ends_are_held():
    turn, way = some(10), np.random.default_rng(1).normal(size=(F, 3))
    values = np.full(F, np.nan)
    values[3:6] = 0.7
    at = np.array([-1.0, 0.0, 0.1, 0.2, TIMES[-1], 2.0])
    out = replace(layer(turn, way), values={"contact": values}).at(at)
    inside = np.clip(at, 0.0, TIMES[-1])
    assert apart(out.rotations["hand"], Slerp(TIMES, turn)(inside)) < 1e-7
    assert np.allclose(out.locations["hips"], _lerp(inside, way))
    assert np.array_equal(np.isnan(out.values["contact"]), [True, True, True, False, True, True])  # 0.1 s is sample 2.4, 0.2 s is 4.8
    assert out.at(at) is out


def _lerp(at: np.ndarray, values: np.ndarray) -> np.ndarray:
    return np.stack([np.interp(at, TIMES, values[:, c]) for c in range(values.shape[1])], axis=-1)


def test_bytes_hold_only_the_frames_that_were_edited():
    rotations = np.tile([1.0, 0.0, 0.0, 0.0], (F, 1))
    rotations[4:7] = q(some(11))[4:7]
    locations = np.zeros((F, 3))
    locations[9] = (0.5, 0.0, -0.25)
    values = np.full(F, np.nan)
    values[[2, 5]] = (0.25, 0.75)
    edits = Edits(TIMES, {'a "hand"': rotations}, {"hips": locations}, {"contact": values}, frozenset({"rotation:ü"}), 0.25)
    text, data = pack(edits)
    assert len(data) == 8 * F + 4 * (3 * 4 + 1 * 3 + 4 * 1)
    out = unpack(text, data)
    assert np.array_equal(out.times, TIMES) and out.influence == 0.25 and out.deleted == {"rotation:ü"}
    assert np.array_equal(out.rotations['a "hand"'][:4], rotations[:4]) and apart(out.rotations['a "hand"'], r(rotations)) < 1e-6
    assert np.array_equal(out.locations["hips"], locations)
    assert np.array_equal(out.values["contact"], values, equal_nan=True)


@pytest.mark.parametrize("damage", ["", "{}", '{"version": 99}', "[1]"])
def test_other_bytes_are_refused(damage):
    with pytest.raises((ValueError, KeyError, TypeError)):
        unpack(damage, b"")
