# SPDX-License-Identifier: GPL-3.0-or-later
"""The one call: rates, ranges, gates, locks, forces, what is refused, what stays untouched (M10 to M13)."""

from __future__ import annotations

import numpy as np
import pytest

from mocap_addon.feet.ground import HeightField, Plane
from mocap_addon.feet.plan import plan_feet
from mocap_addon.feet.result import Force, Gates
from mocap_addon.feet.settings import FeetSettings
from mocap_addon.motion import quat
from mocap_addon.motion.errors import MocapError

from . import scenes
from .measure import knee_angles
from .walker import NO_TOES, ROLES, Walk, plain_take, sliding

HILL = HeightField(lambda x, y: 0.12 * np.sin(1.3 * x + 0.3) + 0.1 * np.cos(1.1 * y))


def slid(fps: float = 60.0) -> Walk:
    return sliding(scenes.plain(fps=fps), scenes.wandering)


@pytest.mark.parametrize("fps, skate", [(24.0, 0.0), (24.0, 0.3), (25.0, 0.3), (30.0, 0.3), (30.0, 1.0), (60.0, 1.0), (120.0, 0.3)])
def test_the_rate_of_a_take_changes_little(fps, skate):
    """M11: ankles within 5 mm, knees within 2 degrees, at times that both takes have."""
    step = round(240 / fps)
    coarse, fine = (sliding(scenes.plain(fps=f), lambda t: skate * scenes.wandering(t)) for f in (fps, step * fps))
    a = plan_feet(coarse.take, coarse.feet, HILL).onto(coarse.take)
    b = plan_feet(fine.take, fine.feet, HILL).onto(fine.take)
    both = min(a.frames, len(range(0, b.frames, step)))
    ankles = (a.global_positions[:both, [4, 8]], b.global_positions[::step, [4, 8]][:both])
    knees = (knee_angles(a)[:both], knee_angles(b)[::step][:both])
    far = np.linalg.norm(ankles[0] - ankles[1], axis=2)
    assert far.max() < 0.005, far.max()
    assert np.abs(knees[0] - knees[1]).max() < 2.0


def test_a_range_is_the_whole_beyond_a_second_from_its_ends():
    """M13."""
    w = slid()
    whole = plan_feet(w.take, w.feet, HILL).onto(w.take)
    part = plan_feet(w.take, w.feet, HILL, gates=Gates(start=1.0, end=4.5)).onto(w.take)
    t = w.take.times
    inside, outside = (t >= 2.0) & (t <= 3.5), (t <= 1.0) | (t >= 4.5)
    assert np.abs(part.global_positions[inside] - whole.global_positions[inside]).max() < 0.001
    assert np.abs(part.global_positions[outside] - w.take.global_positions[outside]).max() < 1e-9
    step = np.linalg.norm(np.diff(part.global_positions - w.take.global_positions, axis=0), axis=2)
    assert step.max() < 0.02  # eased at its borders


def test_a_take_cut_out_bakes_like_the_whole():
    w = slid()
    whole = plan_feet(w.take, w.feet, HILL).onto(w.take)
    cut = w.take.block(60, 270)
    part = plan_feet(cut, w.feet, HILL).onto(cut)
    assert np.abs(part.global_positions[75:-75] - whole.global_positions[135:195]).max() < 0.001


def test_baking_twice_changes_nothing_more():
    w = slid()
    for ground in (Plane(), scenes.slope(20, 45).ground):
        once = plan_feet(w.take, w.feet, ground).onto(w.take)
        source = once if isinstance(ground, Plane) and ground.normal == (0.0, 0.0, 1.0) else None
        if source is not None:
            twice = plan_feet(once, w.feet, ground).onto(once)
            assert np.abs(twice.global_positions - once.global_positions).max() < 0.001


def test_the_same_input_gives_the_same_output():
    w = slid()
    a, b = (plan_feet(w.take, w.feet, HILL) for _ in range(2))
    assert np.array_equal(a.local_rotations, b.local_rotations) and a.report == b.report


def test_only_hips_legs_and_feet_change():
    w = slid()
    result = plan_feet(w.take, w.feet, HILL)
    assert set(result.joints) == {2, 3, 4, 5, 6, 7, 8, 9} and result.moving == (0,)
    new = result.onto(w.take)
    assert np.array_equal(new.local_rotations[:, :2], w.take.local_rotations[:, :2])
    assert np.array_equal(new.local_translations[:, 1:], w.take.local_translations[:, 1:])
    dots = (result.local_rotations[1:] * result.local_rotations[:-1]).sum(axis=-1)
    assert (dots >= 0.0).all()


def test_gates_blend_everything():
    w = slid()
    whole = plan_feet(w.take, w.feet, HILL)
    half = plan_feet(w.take, w.feet, HILL, gates=Gates(foot_ik=np.full((w.take.frames, 2), 0.5)))
    np.testing.assert_allclose(half.hips_offset, 0.5 * whole.hips_offset, atol=1e-12)
    gate = np.ones((w.take.frames, 2))
    gate[:, 1] = 0.0
    one = plan_feet(w.take, w.feet, HILL, gates=Gates(foot_ik=gate)).onto(w.take)
    np.testing.assert_allclose(one.local_rotations[:, 6:10], w.take.local_rotations[:, 6:10], atol=1e-9)


def test_locks_are_obeyed_and_given_back():
    w = slid()
    found = plan_feet(w.take, w.feet, Plane())
    again = plan_feet(w.take, w.feet, Plane(), gates=Gates(foot_lock=found.locks))
    assert np.array_equal(again.locks, found.locks)
    assert np.abs(again.onto(w.take).global_positions - found.onto(w.take).global_positions).max() < 0.001
    none = plan_feet(w.take, w.feet, Plane(), gates=Gates(foot_lock=np.zeros((w.take.frames, 2))))
    assert not none.footprints and none.notes
    assert np.abs(none.onto(w.take).global_positions - w.take.global_positions).max() < 0.002


def test_forced_off_and_on():
    w = slid()
    base = plan_feet(w.take, w.feet, Plane())
    print_ = next(p for p in base.footprints if p.side == "left" and p.start > 100)
    t = w.take.times
    a, b = t[print_.start], t[print_.end - 1]
    off = plan_feet(w.take, w.feet, Plane(), gates=Gates(forces=(Force("left", a, b, "off"),)))
    assert len(off.footprints) == len(base.footprints) - 1
    assert not off.locks[print_.start : print_.end, 0].any()
    shorter = plan_feet(
        w.take, w.feet, Plane(), gates=Gates(forces=(Force("left", a + 0.1, b + 0.05, "on"), Force("left", a, a + 0.09, "off")))
    )
    p = next(p for p in shorter.footprints if p.side == "left" and abs(p.start - print_.start) < 15)
    assert p.start > print_.start and p.end > print_.end - 1


def test_contacts_of_the_source_are_taken():
    w = slid()
    contacts = np.zeros((w.take.frames, 2, 3), dtype=bool)
    contacts[:, :, :2] = w.parts
    result = plan_feet(w.take, w.feet, Plane(), gates=Gates(contacts=contacts))
    assert np.array_equal(result.contacts, contacts)
    assert result.report["after"]["skate_cm_s"] < 1.0


def test_off_changes_nothing():
    w = slid()
    new = plan_feet(w.take, w.feet, HILL, FeetSettings(mode="off")).onto(w.take)
    assert np.abs(new.global_positions - w.take.global_positions).max() < 1e-9


@pytest.mark.parametrize(
    "gates, words",
    [
        (Gates(foot_ik=np.ones((3, 2))), "foot_ik"),
        (Gates(foot_lock=np.ones((3, 1))), "foot_lock"),
        (Gates(contacts=np.ones((3, 2, 3), dtype=bool)), "contacts"),
        (Gates(start=5.0, end=4.0), "range"),
        (Gates(start=500.0), "range"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(gates, words):
    w = scenes.plain()
    with pytest.raises(MocapError, match=words) as caught:
        plan_feet(w.take, w.feet, Plane(), gates=gates)
    assert str(caught.value).endswith(".")


def test_settings_say_what_they_are_and_refuse_nonsense():
    described = FeetSettings.describe()
    assert described["als_foot_height"][:2] == (0.135, "m") and described["trace_up"][0] == 0.5 and described["trace_down"][0] == 0.45
    assert all(unit and text.endswith(".") for _, unit, text in described.values())
    for wrong in ({"clearance": -1.0}, {"mode": "best"}, {"als_rate": 0.0}, {"border": float("nan")}):
        with pytest.raises(MocapError):
            FeetSettings(**wrong)


def test_feet_without_toe_bones():
    w = plain_take(toes=False)
    assert w.feet.legs[0].toe == -1
    s = sliding(w, scenes.wandering)
    result = plan_feet(s.take, w.feet, Plane())
    assert len(result.joints) == 6
    assert result.report["after"]["skate_cm_s"] < 1.0 and result.report["after"]["penetration_contact_mm"] < 5.0


@pytest.mark.parametrize("frames", [1, 2, 3, 7])
def test_very_short_takes(frames):
    w = slid()
    cut = w.take.block(20, 20 + frames)
    for mode in ("plant", "als"):
        result = plan_feet(cut, w.feet, HILL, FeetSettings(mode=mode))
        assert np.isfinite(result.local_rotations).all() and np.isfinite(result.local_translations).all()


def test_missing_bones_are_named():
    from mocap_addon.feet.body import find_feet
    from mocap_addon.motion.errors import RigError
    from mocap_addon.rig.roles import RoleMap

    w = scenes.plain()
    less = RoleMap({k: v for k, v in ROLES.joints.items() if k != "rightFoot"})
    with pytest.raises(RigError, match="rightFoot"):
        find_feet(w.take.skeleton, less)
    crossed = RoleMap({**ROLES.joints, "rightFoot": (4,)})
    with pytest.raises(RigError, match="does not hang on"):
        find_feet(w.take.skeleton, crossed)
    assert find_feet(w.take.skeleton, NO_TOES).legs[1].toe == -1


def test_uneven_frame_times():
    """Times that jitter: the place of each contact stays the same."""
    w = slid()
    rng = np.random.default_rng(3)
    at = np.sort(w.take.times + rng.uniform(-0.004, 0.004, w.take.frames))
    take = w.take.sampled(np.clip(at, 0, None) + np.arange(len(at)) * 1e-9)
    result = plan_feet(take, w.feet, Plane())
    assert result.report["after"]["skate_cm_s"] < 1.0
    assert np.isfinite(quat.log(result.local_rotations)).all()
