# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from fractions import Fraction

import bpy
import pytest

from mocap_addon.blender import scenes
from mocap_addon.motion.errors import FileError, MocapError


@pytest.mark.parametrize(
    ("rate", "fps", "base"),
    [
        (Fraction(24), 24, 1.0),
        (Fraction(30000, 1001), 30, 1.001),
        (Fraction(24000, 1001), 24, 1.001),
        (Fraction(60000, 1001), 60, 1.001),
        (Fraction(120000, 1001), 120, 1.001),
        (Fraction(240), 240, 1.0),
        (Fraction(25, 2), 13, 1.04),
        (Fraction(1, 3), 1, 3.0),
    ],
)
def test_rates_are_exact_both_ways(rate, fps, base):
    scene = bpy.context.scene
    scenes.set_rate(scene, rate)
    assert scene.render.fps == fps and scene.render.fps_base == pytest.approx(base, abs=1e-7)
    assert scenes.scene_rate(scene) == rate


def test_odd_rates_come_back():
    scene = bpy.context.scene
    for rate in (Fraction(239, 1), Fraction(23901, 100), Fraction(11988, 100), Fraction(1000, 41), Fraction(7, 3)):
        scenes.set_rate(scene, rate)
        assert float(scenes.scene_rate(scene)) == pytest.approx(float(rate), rel=1e-7)
    scene.render.fps, scene.render.fps_base = 30, 1.0010000467300415
    assert scenes.scene_rate(scene) == Fraction(30000, 1001)


def test_rates_blender_cannot_play():
    for rate in (Fraction(0), Fraction(-3), Fraction(40000)):
        with pytest.raises(MocapError, match="frames per second"):
            scenes.set_rate(bpy.context.scene, rate)


def test_frame_range():
    scene = bpy.context.scene
    for (start, end), expected in {
        (1, 250): (1, 250),
        (1.2, 9.5): (1, 10),
        (-7, 20): (0, 20),
        (5, 5): (5, 5),
        (0.99999, 3.00001): (1, 3),
    }.items():
        scenes.set_frame_range(scene, start, end)
        assert (scene.frame_start, scene.frame_end) == expected


def test_a_fresh_scene_keeps_preferences_and_add_ons():
    before = {a.module for a in bpy.context.preferences.addons}
    bpy.context.preferences.edit.undo_steps = 7
    bpy.data.objects.new("gone", None)
    scene = scenes.fresh(Fraction(30000, 1001))
    assert not bpy.data.objects and scenes.scene_rate(scene) == Fraction(30000, 1001)
    assert {a.module for a in bpy.context.preferences.addons} == before
    assert bpy.context.preferences.edit.undo_steps == 7
    assert scenes.current() == scene


def test_saving_is_whole_or_not_at_all(tmp_path, monkeypatch):
    bpy.data.objects.new("kept", None).use_fake_user = True
    path = tmp_path / "a.blend"
    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(scenes.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
        with pytest.raises(FileError, match="disk full"):
            scenes.save_blend(path)
    assert [p.name for p in tmp_path.iterdir()] == ["a.blend"] and path.read_bytes() == b"old"
    assert scenes.save_blend(path) == path
    assert path.read_bytes()[:4] == b"\x28\xb5\x2f\xfd"  # zstd: compressed
    assert [p.name for p in tmp_path.iterdir()] == ["a.blend"]
    assert bpy.data.filepath == ""
    for bad, words in {tmp_path / "a.fbx": ".blend", tmp_path / "none" / "a.blend": "does not exist"}.items():
        with pytest.raises(FileError, match=words):
            scenes.save_blend(bad)
    (tmp_path / "b.blend").mkdir()
    with pytest.raises(FileError, match=r"b\.blend: could not be saved"):
        scenes.save_blend(tmp_path / "b.blend")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.blend", "b.blend"]
