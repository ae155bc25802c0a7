# SPDX-License-Identifier: GPL-3.0-or-later
"""F-curves in arrays against Blender's own evaluation of the very same curves."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from mocap_addon.blender import compat, curves

PLAIN = ("CONSTANT", "LINEAR", "BEZIER")
HANDLES = ("FREE", "ALIGNED", "VECTOR", "AUTO", "AUTO_CLAMPED")
EASING = ("SINE", "QUAD", "CUBIC", "QUART", "QUINT", "EXPO", "CIRC", "BACK", "BOUNCE", "ELASTIC")


def new_curve(rng, keys: int, interpolation, *, gap=(0.3, 9.0)) -> bpy.types.FCurve:
    _action, _slot, bag = compat.new_action("curve")
    curve = compat.new_curve(bag, "location", int(rng.integers(0, 3)), "g")
    frames = np.cumsum(rng.uniform(*gap, size=keys)) - 5.0
    for frame, value in zip(frames, rng.normal(size=keys) * 10.0 ** rng.integers(-2, 3), strict=True):
        point = curve.keyframe_points.insert(float(frame), float(value), options={"FAST"})
        point.interpolation = str(rng.choice(interpolation))
        point.easing = str(rng.choice(["AUTO", "EASE_IN", "EASE_OUT", "EASE_IN_OUT"]))
        point.handle_left_type, point.handle_right_type = str(rng.choice(HANDLES)), str(rng.choice(HANDLES))
    curve.update()
    for point in curve.keyframe_points:
        if point.handle_left_type == "FREE":  # far beyond the neighbours too: Blender shortens such handles
            point.handle_left = (point.co[0] - float(rng.exponential(8.0)), point.co[1] + float(rng.normal() * 20.0))
        if point.handle_right_type == "FREE":
            point.handle_right = (point.co[0] + float(rng.exponential(8.0)), point.co[1] + float(rng.normal() * 20.0))
    return curve


def truth(curve, at) -> np.ndarray:
    return np.array([curve.evaluate(float(x)) for x in at])


def assert_same(curve, at) -> None:
    expected = truth(curve, at)
    size = max(1.0, float(np.abs(expected).max()))
    assert np.abs(curves.evaluate(curve, at) - expected).max() < 1e-5 * size


@pytest.mark.parametrize("extrapolation", ["CONSTANT", "LINEAR"])
@pytest.mark.parametrize("interpolation", [("CONSTANT",), ("LINEAR",), ("BEZIER",), PLAIN])
@pytest.mark.parametrize("keys", [1, 2, 3, 40])
def test_keys_with_every_handle(interpolation, extrapolation, keys):
    rng = np.random.default_rng(keys)
    for _ in range(6):
        curve = new_curve(rng, keys, interpolation)
        curve.extrapolation = extrapolation
        last = curve.keyframe_points[-1].co[0]
        # float32, as Blender takes a frame: a time beside a step must fall on the same side for both
        at = np.concatenate([np.arange(-20.0, last + 20.0), rng.uniform(-20.0, last + 20.0, 200)]).astype(np.float32).astype(float)
        assert_same(curve, at)
        assert curves._as_arrays(curve, at) is not None


def test_on_the_keys_and_a_hair_beside_them():
    curve = new_curve(np.random.default_rng(3), 30, PLAIN, gap=(0.5, 3.0))
    keys = curves.key_frames(curve)
    for beside in (0.0, 5e-5, -5e-5, 3e-4, -3e-4):
        assert_same(curve, (keys + beside).astype(np.float32).astype(float))


@pytest.mark.parametrize("kind", EASING)
def test_easing_is_left_to_blender(kind):
    curve = new_curve(np.random.default_rng(5), 12, (kind, "BEZIER"))
    curve.keyframe_points[4].interpolation = kind
    at = np.arange(-8.0, 60.0, 0.37)
    assert curves._as_arrays(curve, at) is None
    np.testing.assert_array_equal(curves.evaluate(curve, at), truth(curve, at))


def test_modifiers_are_left_to_blender_unless_muted():
    curve = new_curve(np.random.default_rng(6), 8, ("BEZIER",))
    at = np.arange(-30.0, 90.0)
    plain = curves.evaluate(curve, at)
    curve.modifiers.new("CYCLES")
    np.testing.assert_array_equal(curves.evaluate(curve, at), truth(curve, at))
    assert np.abs(curves.evaluate(curve, at) - plain).max() > 0.1
    curve.modifiers[0].mute = True
    assert curves._as_arrays(curve, at) is not None
    assert_same(curve, at)


def test_baked_samples():
    curve = new_curve(np.random.default_rng(7), 8, ("BEZIER",))
    curve.convert_to_samples(-5, 30)
    at = np.arange(-10.0, 40.0, 0.5)
    assert curves.is_playing(curve)
    np.testing.assert_array_equal(curves.evaluate(curve, at), truth(curve, at))
    assert curves.key_frames(curve)[0] == -5.0


def test_what_does_not_play():
    curve = new_curve(np.random.default_rng(8), 4, ("LINEAR",))
    assert curves.is_playing(curve)
    curve.mute = True
    assert not curves.is_playing(curve)
    curve.mute = False
    curve.group.mute = True
    assert not curves.is_playing(curve)
    _action, _slot, bag = compat.new_action("empty")
    assert not curves.is_playing(compat.new_curve(bag, "location", 0, "g"))


def test_many_curves_at_once_are_each_by_itself():
    rng = np.random.default_rng(11)
    frames = np.arange(1.0, 41.0)
    found = [new_curve(rng, 12, ("BEZIER",)), new_curve(rng, 40, PLAIN)]  # as many keys as frames, but between them
    for number in range(4):
        _action, _slot, bag = compat.new_action("baked")
        found.append(compat.new_curve(bag, "location", 0, "g"))
        for frame in frames:
            found[-1].keyframe_points.insert(float(frame), float(rng.normal()), options={"FAST"})
        if number == 1:
            found[-1].modifiers.new("GENERATOR")
        if number == 2:
            found[-1].keyframe_points[7].co[0] += 0.25
        found[-1].update()
    for some in (found, found[2:3], found[4:], []):
        expected = np.array([truth(curve, frames) for curve in some]).reshape(len(some), len(frames)).T
        np.testing.assert_allclose(curves.evaluate_all(some, frames), expected, rtol=1e-5, atol=1e-5)
        with curves.remembered():
            assert [curves.extent(curve) for curve in some] == [tuple(map(float, curve.range())) for curve in some]
            np.testing.assert_allclose(curves.evaluate_all(some, frames), expected, rtol=1e-5, atol=1e-5)
