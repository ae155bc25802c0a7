# SPDX-License-Identifier: GPL-3.0-or-later
"""Grounds, what can be stood on, and the two-bone solve, each against a plain calculation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mocap_addon.feet import legs as solver
from mocap_addon.feet import signals, terrain, under_soles
from mocap_addon.feet.contacts import Contacts
from mocap_addon.feet.ground import Box, Boxes, HeightField, Plane, Union
from mocap_addon.feet.pose import legs_of
from mocap_addon.feet.settings import FeetSettings
from mocap_addon.feet.stretches import Stretches, fade
from mocap_addon.motion import quat

from . import scenes

RNG = np.random.default_rng(4)


def rays(n=200):
    o = RNG.uniform(-2, 2, (n, 3))
    d = RNG.normal(size=(n, 3))
    return o, d / np.linalg.norm(d, axis=1, keepdims=True), np.full(n, 6.0), RNG.uniform(0, 3, n)


def test_rays_meet_planes_where_they_should():
    o, d, length, t = rays()
    hits = Plane((0.1, 0.2, 0.3), (0.2, -0.1, 2.0)).cast(o, d, length, t)
    n = np.array([0.2, -0.1, 2.0]) / np.linalg.norm([0.2, -0.1, 2.0])
    found = hits.object[:, 0] == 0
    assert found.any() and not found.all()
    np.testing.assert_allclose((hits.point[found, 0] - [0.1, 0.2, 0.3]) @ n, 0.0, atol=1e-12)
    np.testing.assert_allclose(o[found] + d[found] * hits.distance[found, :1], hits.point[found, 0], atol=1e-12)
    assert np.isinf(hits.distance[:, 1:]).all() and (hits.object[:, 1:] == -1).all()


def test_rays_meet_height_fields_vertically_and_aslant():
    field = HeightField(lambda x, y: 0.3 * np.sin(x) * np.cos(y))
    o, d, length, t = rays()
    o[:, 2] = 2.0
    d[:, 2] = -np.abs(d[:, 2]) - 0.5
    d /= np.linalg.norm(d, axis=1, keepdims=True)
    down = np.zeros_like(d)
    down[:, 2] = -1.0
    for directions in (d, down):
        hits = field.cast(o, directions, length, t)
        found = hits.object[:, 0] == 0
        assert found.mean() > 0.9
        p = hits.point[found, 0]
        np.testing.assert_allclose(p[:, 2], 0.3 * np.sin(p[:, 0]) * np.cos(p[:, 1]), atol=1e-9)
        n = np.stack([-0.3 * np.cos(p[:, 0]) * np.cos(p[:, 1]), 0.3 * np.sin(p[:, 0]) * np.sin(p[:, 1]), np.ones(len(p))], axis=1)
        np.testing.assert_allclose(hits.normal[found, 0], n / np.linalg.norm(n, axis=1, keepdims=True), atol=1e-6)


def test_rays_meet_moving_boxes_like_still_ones_seen_from_them():
    q = quat.from_axis_angle(np.array([0.0, 0.6, 0.8]), 0.7)

    def motion(t):
        return np.column_stack([t, 0 * t, 0.2 * t]), np.broadcast_to(q, (len(t), 4))

    o, d, length, t = rays(400)
    moving = Boxes([Box((-1, -0.5, -0.2), (1, 0.5, 0.4), "a", motion)])
    still = Boxes([Box((-1, -0.5, -0.2), (1, 0.5, 0.4))])
    at, turned = motion(t)
    a = moving.cast(o, d, length, t)
    b = still.cast(quat.rotate(quat.inv(turned), o - at), quat.rotate(quat.inv(turned), d), length, t)
    np.testing.assert_allclose(a.distance, b.distance, atol=1e-9)
    found = b.object >= 0
    assert found[:, 1].any()  # in and out again
    np.testing.assert_allclose(a.normal[found], quat.rotate(turned[:, None], b.normal)[found], atol=1e-9)
    positions, rotations = moving.spaces(np.zeros(len(t), dtype=np.int64), t)
    np.testing.assert_allclose(positions, at)
    np.testing.assert_allclose(rotations, turned)
    assert terrain.moves(moving, np.linspace(0, 1, 10)) and not terrain.moves(still, np.linspace(0, 1, 10))


def test_unions_keep_names_objects_and_order():
    both = Union([Boxes([Box((-1, -1, 1), (1, 1, 2), "high")]), Plane(name="low"), Boxes([])])
    assert both.names == ("high", "low")
    hits = both.cast(np.array([[0.0, 0.0, 3.0]]), np.array([[0.0, 0.0, -1.0]]), np.array([5.0]), np.zeros(1), 5)
    np.testing.assert_allclose(hits.distance[0], [1, 2, 3, np.inf, np.inf])
    assert hits.object[0].tolist() == [0, 0, 1, -1, -1]
    np.testing.assert_allclose(hits.normal[0, :3, 2], [1, -1, 1])


@pytest.mark.parametrize(
    "ground, at, stands",
    [
        (Plane(), 0.05, 0.0),
        (Union([Plane(), Boxes([Box((-1, -1, 0), (1, 1, 0.3))])]), 0.05, 0.3),  # inside a box: its top, not the floor under it
        (Union([Plane(), Boxes([Box((-1, -1, 0.7), (1, 1, 0.75))])]), 0.05, 0.0),  # under a table
        (Union([Plane(), Boxes([Box((-1, -1, 0.6), (1, 1, 3.0))])]), 0.05, 0.0),  # in a crawl tunnel
        (Union([Plane(), Plane((0, 0, 2.6))]), 2.5, 2.6),  # storeys without thickness
        (Union([Plane(), Plane((0, 0, 2.6))]), 0.1, 0.0),
        (Plane(normal=(0, 0, -1)), 0.05, 0.0),  # modelled upside down
        (Plane(normal=(1, 0, 0.3)), 0.05, np.nan),  # a wall
    ],
)
def test_what_a_foot_stands_on(ground, at, stands):
    p = np.array([[0.0, 0.0, at]])
    hits = terrain.cast_down(ground, p, np.zeros(1), 4.0, 4.0)
    assert terrain.nearest_to(hits, p[:, 2], np.cos(np.radians(44.765))).height[0] == pytest.approx(stands, nan_ok=True)


def test_legs_reach_what_they_can_and_keep_their_lengths_and_side():
    """Targets all over the place, also aside: not only in the legs' plane."""
    w = scenes.plain(rolls=2)
    legs = legs_of(w.take, w.feet)
    target = legs.ankle + RNG.uniform(-0.15, 0.15, legs.ankle.shape) + [0.0, 0.0, 0.1]
    settings = FeetSettings()
    done = solver.solve(legs, w.feet, legs.hip, target, settings)
    a, b = np.linalg.norm(done.knee - legs.hip, axis=2), np.linalg.norm(done.ankle - done.knee, axis=2)
    np.testing.assert_allclose(a, 0.45, atol=1e-12)
    np.testing.assert_allclose(b, 0.45, atol=1e-12)
    near = np.linalg.norm(target - legs.hip, axis=2) < 0.95 * 0.9
    assert near.mean() > 0.5
    np.testing.assert_allclose(done.ankle[near], target[near], atol=1e-9)
    np.testing.assert_allclose(quat.rotate(done.thigh_turn, legs.knee - legs.hip), done.knee - legs.hip, atol=1e-9)
    np.testing.assert_allclose(quat.rotate(done.shin_turn, legs.ankle - legs.knee), done.ankle - done.knee, atol=1e-9)
    same = solver.solve(legs, w.feet, legs.hip, legs.ankle, settings)
    assert quat.angle(same.thigh_turn, quat.identity(same.thigh_turn.shape[:2])).max() < 1e-7


def test_reach_is_soft_and_ends_at_the_sources_own():
    w = scenes.plain()
    legs = legs_of(w.take, w.feet)
    free, most = solver.free_reach(legs, FeetSettings())
    d = np.linspace(0.5, 2.0, 4000)[:, None, None] * np.ones_like(free[:1])
    got = solver.soft(d, free[:1], most[:1], np.full_like(free[:1], 0.018))
    assert (np.diff(got, axis=0) >= 0).all() and (got <= most[0] + 1e-12).all()
    slope = np.diff(got, axis=0) / np.diff(d, axis=0)
    assert slope.max() <= 1.0 + 1e-9 and np.abs(np.diff(slope, axis=0)).max() < 0.05  # no corner
    straight = replace(legs, knee=legs.hip - [0, 0, 0.45], ankle=legs.hip - [0, 0, 0.9])
    assert solver.free_reach(straight, FeetSettings())[1].min() == pytest.approx(0.9)


def test_filters_do_not_delay_and_work_both_ways_in_time():
    t = np.arange(200) / 60.0
    x = np.sin(3 * t)
    for kernel in (signals.gaussian(6.0, 1 / 60), signals.bell(0.2, 1 / 60)):
        np.testing.assert_allclose(signals.convolve(x, kernel)[::-1], signals.convolve(x[::-1].copy(), kernel), atol=1e-12)
        np.testing.assert_allclose(signals.convolve(2.0 + 0.5 * t, kernel), 2.0 + 0.5 * t, atol=1e-12)
        assert kernel.sum() == pytest.approx(1.0)
    y = RNG.normal(size=300)
    for n in (0, 1, 5, 40, 500):
        want = np.array([y[max(i - n, 0) : i + n + 1].min() for i in range(len(y))])
        np.testing.assert_array_equal(signals.lowest(y, n), want)
    enter, stay = RNG.random(300) > 0.9, RNG.random(300) > 0.4
    on = signals.hysteresis(enter, stay)
    np.testing.assert_array_equal(on[::-1], signals.hysteresis(enter[::-1], stay[::-1]))
    assert (on <= stay).all() and on[enter & stay].all()


def test_corrections_fade_without_jumps():
    t = np.arange(0, 3, 1 / 240)
    mask = ((t > 0.5) & (t < 1.0)) | ((t > 1.2) & (t < 1.6)) | (t > 2.4)
    values = np.column_stack([0.05 * np.sin(4 * t), 0.02 + 0.01 * t])
    out = fade(values, Stretches.of(mask, t), 0.2, 0.16)
    np.testing.assert_array_equal(out[mask], values[mask])
    assert np.abs(np.diff(out, axis=0)).max() < 0.05 * 1.8 / 0.16 / 240
    assert np.abs(np.diff(out, 2, axis=0)).max() < 5e-4  # velocities go on over the edges
    assert np.all(out[(t > 1.82) & (t < 2.2)] == 0.0)
    one = fade(np.ones((len(t), 1)), Stretches.of(mask, t), 0.3, 0.3)
    np.testing.assert_allclose(one[(t >= 1.0) & (t <= 1.2)], 1.0)  # a short gap: one goes over into the other


def test_soles_with_nothing_to_choose_lie_where_choosing_puts_them():
    """A hill, and a hill with a table over part of it: with and without the short way for soles whose rays find one surface each."""
    table = Boxes([Box((1.0, -9.0, 0.5), (2.0, 9.0, 0.6))])
    hill = HeightField(lambda x, y: 0.3 * np.sin(x) + 0.05 * y)
    n, p = 30, 12
    ball = np.column_stack([np.linspace(-2.0, 4.0, n), RNG.uniform(-1.0, 1.0, n), np.zeros(n)])
    ahead = np.tile([1.0, 0.0, 0.0], (n, 1))
    offsets = np.tile(np.linspace(-0.15, 0.1, p), (n, 1))
    for ground in (hill, Union([hill, table])):
        found = []
        for short in (True, False):
            with pytest.MonkeyPatch.context() as patch:
                if not short:
                    patch.setattr(under_soles._Plain, "at", lambda *_: -1)
                found.append(under_soles.follow(ground, ball, ahead, offsets, np.zeros(n), np.zeros(n), 0.7, FeetSettings()))
        one, other = found
        np.testing.assert_array_equal(one.height, other.height)
        np.testing.assert_array_equal(one.normal, other.normal)
        np.testing.assert_array_equal(one.object, other.object)
        assert np.count_nonzero(one.object == 0) > 100


def test_edges_of_flat_contacts_are_known_where_no_part_begins_too():
    """A contact that is cut in two is flat from the cut on, in the midst of its parts."""
    parts = np.zeros((12, 2, 3), dtype=bool)
    parts[2:10, 0, 0], parts[3:9, 0, 1] = True, True
    early, late = np.where(parts, 0.02, 0.0), np.where(parts, 0.03, 0.0)
    held = parts[..., :2].any(axis=2)
    found = Contacts(parts, held, parts[..., :2].all(axis=2), 0.0, early=early, late=late)
    begins, ends = found.edges(0, flat=True)
    np.testing.assert_allclose(begins[[2, 3, 6]], [0.02, 0.02, 0.0])
    np.testing.assert_allclose(ends[[6, 8, 9]], [0.0, 0.03, 0.03])
