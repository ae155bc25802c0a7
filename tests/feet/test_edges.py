# SPDX-License-Identifier: GPL-3.0-or-later
"""Contacts begin and end at the same moments at any rate, and what fades between them does too."""

from __future__ import annotations

import numpy as np
import pytest

from mocap_addon.feet import contacts, edges, signals
from mocap_addon.feet.pose import legs_of, soles
from mocap_addon.feet.settings import FeetSettings
from mocap_addon.feet.stretches import Stretches, between, fade

from . import scenes
from .walker import sliding

LANDS, LEAVES = 0.6137, 1.2871


def flown(fps: float, how: float, slide: float = 0.0, end: float = 2.0) -> tuple[np.ndarray, np.ndarray]:
    """A point that comes down with speed (``how`` 1) or is slowed down (2) until it stands, slides and leaves in the same way."""
    t = np.arange(round(end * fps) + 1) / fps
    away = np.maximum(np.maximum(LANDS - t, t - LEAVES), 0.0) ** how * (1.2 if how == 1.0 else 12.0)
    x = np.zeros((len(t), 2, 3, 3))
    x[..., 0] = (np.where(t < LANDS, -away, away) + slide * t)[:, None, None]
    x[..., 2] = 0.3 * away[:, None, None]
    return x, t


def spans(found, side: int, part: int, times: np.ndarray) -> list[tuple[float, float]]:
    start, end = signals.runs(found.parts[:, side, part])
    return [(times[a] - found.early[a, side, part], times[b - 1] + found.late[b - 1, side, part]) for a, b in zip(start, end, strict=True)]


@pytest.mark.parametrize("fps", [24.0, 25.0, 30.0, 60.0, 120.0])
@pytest.mark.parametrize("how, slide", [(1.0, 0.0), (2.0, 0.0), (1.0, 0.1), (2.0, 0.1)])
def test_a_point_stands_from_when_it_came_to_stand(fps, how, slide):
    x, t = flown(fps, how, slide)
    stands = (t >= LANDS) & (t <= LEAVES)
    sure = np.repeat((stands & (t > LANDS + 0.08) & (t < LEAVES - 0.08))[:, None], 6, axis=1).reshape(len(t), 2, 3)
    parts, early, late = edges.follow(x, t, sure, None)
    first, last = np.argmax(parts[:, 0, 0]), len(t) - 1 - np.argmax(parts[::-1, 0, 0])
    grown = edges.NEAR / 1.2 if how == 1.0 else np.sqrt(edges.NEAR / 12.0)  # as far as it counts as standing
    assert abs(t[first] - early[first, 0, 0] - (LANDS - grown + edges.EASE)) < 0.005
    assert abs(t[last] + late[last, 0, 0] - (LEAVES + grown - edges.EASE)) < 0.005
    assert np.all(parts[stands & (t > LANDS + edges.EASE) & (t < LEAVES - edges.EASE)])


def test_what_carries_a_point_is_taken_off():
    x, t = flown(30.0, 2.0)
    sure = np.repeat(((t > LANDS + 0.08) & (t < LEAVES - 0.08))[:, None], 6, axis=1).reshape(len(t), 2, 3)
    still = edges.follow(x, t, sure, None)
    speed = np.zeros_like(x)
    speed[..., 1] = np.cos(3.0 * t)[:, None, None]
    moved = x.copy()
    moved[..., 1] += (np.sin(3.0 * t) / 3.0)[:, None, None]
    carried = edges.follow(moved, t, sure, speed)
    assert np.array_equal(still[0], carried[0])
    np.testing.assert_allclose(carried[1], still[1], atol=0.003)
    np.testing.assert_allclose(carried[2], still[2], atol=0.003)


@pytest.mark.parametrize("fps", [24.0, 30.0, 60.0])
def test_a_walk_has_the_same_contacts_at_any_rate(fps):
    found = {}
    for rate in (fps, 240.0):
        w = sliding(scenes.plain(fps=rate), lambda t: 0.3 * scenes.wandering(t))
        legs = legs_of(w.take, w.feet)
        points = soles(w.feet, legs.ankle, legs.foot, legs.ball, legs.toe)
        c = contacts.detect(points, w.take.times, FeetSettings(), w.feet.length)
        found[rate] = [spans(c, side, part, w.take.times) for side in range(2) for part in range(2)]
    for own, fine in zip(found[fps], found[240.0], strict=True):
        assert len(own) == len(fine)
        begin = [a[0] - b[0] for a, b in zip(own, fine, strict=True)]
        end = [a[1] - b[1] for a, b in zip(own[:-1], fine[:-1], strict=True)]  # the last one goes on to the end of the take
        assert max(map(abs, begin + end)) < 0.5 / fps and np.mean(np.abs(begin + end)) < 0.007


def test_takes_of_few_frames_and_contacts_at_their_ends():
    x, t = flown(30.0, 2.0)
    for frames in range(1, 8):
        parts, early, late = edges.follow(x[:frames], t[:frames], np.ones((frames, 2, 3), dtype=bool), None)
        assert parts.all() and not early.any() and not late.any()
    everywhere = np.zeros((len(t), 2, 3), dtype=bool)
    everywhere[0] = everywhere[-1] = True
    parts, early, late = edges.follow(x, t, everywhere, None)
    assert parts[0].all() and parts[-1].all() and np.isfinite(early).all() and np.isfinite(late).all()


def test_a_held_foot_begins_with_its_first_part_and_is_flat_with_its_last():
    parts = np.zeros((6, 2, 3), dtype=bool)
    parts[1:5, 0, 0] = parts[1:4, 0, 1] = True
    early, late = np.zeros(parts.shape), np.zeros(parts.shape)
    early[1, 0, :2], late[4, 0, 0], late[3, 0, 1] = (0.02, 0.01), 0.03, 0.004
    found = contacts.replace(contacts.summed(parts, (True, True), 0.0), early=early, late=late)
    (first, last), (flat_first, flat_last) = found.edges(0), found.edges(0, flat=True)
    assert first[1] == 0.02 and last[4] == 0.03
    assert flat_first[1] == 0.01 and flat_last[3] == 0.004


@pytest.mark.parametrize("shift", [0.0, 0.3, 0.9])
def test_fading_does_not_depend_on_where_frames_fall(shift):
    """The same moments, sampled elsewhere: the same curve."""
    begin, end = 0.51, 1.02

    def at(t):
        inside = (t <= begin) | (t >= end)
        early, late = np.where(t >= end, t - end, 0.0), np.where(t <= begin, begin - t, 0.0)
        stretches = Stretches.of(inside, t, early, late)
        value = np.where(t <= begin, 0.02 + 0.05 * t, 0.3 - 0.1 * t)[:, None]
        return fade(value, stretches, 0.2, 0.16)[:, 0], between(np.where(t <= begin, 1.0, 3.0), stretches), stretches

    coarse = (np.arange(40) + shift) / 30.0
    fine = np.arange(4 * 300) / 900.0
    for k in range(2):
        np.testing.assert_allclose(at(coarse)[k], np.interp(coarse, fine, at(fine)[k]), atol=2e-4)
    s = at(coarse)[2]
    swing = (coarse > begin) & (coarse < end)
    np.testing.assert_allclose(s.since[swing], coarse[swing] - begin, atol=1e-12)
    np.testing.assert_allclose(s.until[swing], end - coarse[swing], atol=1e-12)
    np.testing.assert_allclose(s.way()[swing], (coarse[swing] - begin) / (end - begin), atol=1e-12)
