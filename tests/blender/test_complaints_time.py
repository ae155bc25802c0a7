# SPDX-License-Identifier: GPL-3.0-or-later
"""Known complaints about retargeting, 29 to 31 and 35, as they show in Blender: rates, signs, first and last keys, tables."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import bpy
import numpy as np
import pytest

from mocap_addon import rig
from mocap_addon.blender import compat
from mocap_addon.blender.job import JobOptions, retarget_onto
from mocap_addon.motion import quat
from mocap_addon.motion.take import Take

from . import fidelity
from .complaints import character, retarget, walk
from .snapshot import beside_the_retarget, snapshot


def spinning(seconds: np.ndarray, turns: float = 0.0, speed: float = 1.5) -> Take:
    """The walk's first pose carried along X at ``speed`` m/s, turned about Z by ``turns`` a second."""
    one = walk().block(0, 1)
    local = np.repeat(one.local_rotations, len(seconds), axis=0)
    local[:, 0] = quat.mul(quat.from_axis_angle((0.0, 0.0, 1.0), 2.0 * np.pi * turns * seconds), local[:, 0])
    moving = np.repeat(np.broadcast_to(one.local_translations, (1, *one.local_translations.shape[1:])), len(seconds), axis=0).copy()
    moving[:, 0, 0] += speed * seconds
    return Take("spin", one.skeleton, seconds, local, moving)


def keys(action: bpy.types.Action, ending: str, index: int = 0) -> np.ndarray:
    """(n, 2): frames and values of the first curve whose path ends so."""
    curve = next(c for c in compat.all_curves(action) if c.data_path.endswith(ending) and c.array_index == index)
    return np.array([key.co[:] for key in curve.keyframe_points])


@pytest.mark.parametrize("rate", [Fraction(60000, 1001), Fraction("29.476"), Fraction(120)])
@pytest.mark.parametrize("how", ["scene", "source"])
def test_29_the_scenes_rate_stays_and_time_is_true(rate, how):
    """R: scene fps untouched unless asked; time true. T: 59.94, 29.476, 120 Hz into 24 fps; duration error < 1 frame; speed exact."""
    obj = character()
    seconds = np.arange(0, 200) / float(rate)
    take = replace(spinning(seconds), rate=rate)
    bpy.context.scene.render.fps, bpy.context.scene.frame_end = 24, 250
    before = snapshot()
    result = retarget_onto(obj, take, options=JobOptions(rate=how, frame_start=1.0, travel=1.0))
    assert beside_the_retarget(before, obj, result.action) == []
    assert (bpy.context.scene.render.fps, bpy.context.scene.frame_end) == (24, 250)
    first, last = result.action.frame_range
    assert first == 1.0 and abs((last - first) / 24.0 - seconds[-1]) < 1.0 / 24.0
    if how == "scene":
        assert np.array_equal(keys(result.action, "location")[:, 0] % 1.0, np.zeros(int(last)))
    frames = np.linspace(1.0, np.floor(last), 9).round()
    way = fidelity.evaluated(obj, frames).place("pelvis")
    gone = np.linalg.norm((way - way[0])[:, :2], axis=1)
    assert np.abs(gone - 1.5 * (frames - 1.0) / 24.0).max() < 1e-3


def test_29_gaps_in_the_time_stamps_do_not_shift_what_follows():
    """R: time true. T: 120 Hz with half a second missing in the middle, and uneven stamps."""
    obj = character()
    seconds = np.concatenate([np.arange(0, 100), np.arange(160, 300)]) / 120.0
    seconds[1:-1] += np.random.default_rng(2).uniform(-0.003, 0.003, len(seconds) - 2)
    retarget(obj, spinning(seconds), travel=1.0)
    frames = np.array([1.0, 10.0, 25.0, 40.0, 55.0])
    way = fidelity.evaluated(obj, frames).place("pelvis")
    assert np.abs(np.linalg.norm((way - way[0])[:, :2], axis=1) - 1.5 * (frames - 1.0) / 24.0).max() < 1e-3


def test_30_quaternions_never_flip_sign():
    """R: dot >= 0 between neighbours as the last step. T: 720 degree spin, random sign input, keys resampled and as recorded."""
    seconds = np.arange(0, 241) / 60.0
    take = spinning(seconds, turns=0.5)
    signs = np.where(np.random.default_rng(4).random(take.local_rotations.shape[:2]) < 0.5, -1.0, 1.0)
    take = replace(take, local_rotations=take.local_rotations * signs[..., None])
    obj = character()
    for rate in ("scene", "source"):
        action = retarget(obj, take, rate=rate).action
        paths = {c.data_path for c in compat.all_curves(action) if c.data_path.endswith("rotation_quaternion")}
        assert len(paths) > 15
        for path in paths:
            q = np.stack([keys(action, path, i)[:, 1] for i in range(4)], axis=1)
            assert np.einsum("fi,fi->f", q[1:], q[:-1]).min() >= 0.0
        seen = fidelity.evaluated(obj, np.arange(1, 97))
        steps = quat.angle(seen.turn("pelvis")[1:], seen.turn("pelvis")[:-1])
        assert np.abs(np.degrees(steps) - 0.5 * 360.0 / 24.0).max() < 0.1  # a half turn a second, all the way


@pytest.mark.parametrize("count", [1, 2, 3, 61])
@pytest.mark.parametrize("start", [1.0, 0.0, -30.0, 12.5])
def test_31_as_many_keys_as_samples(count, start):
    """R: N samples -> N keys, first/last exact. T: ramp clip, 2-frame and 1-frame clips, negative and fractional start."""
    obj = character()
    take = replace(spinning(np.arange(count) / 24.0 - 3.0), rate=Fraction(24))
    bpy.context.scene.render.fps = 24
    for rate in ("scene", "source"):
        action = retarget_onto(obj, take, options=JobOptions(rate=rate, frame_start=start, travel=1.0)).action
        for curve in compat.all_curves(action):
            frames = np.array([key.co[0] for key in curve.keyframe_points])
            if len(frames) > 1 or count == 1:
                assert np.array_equal(frames, start + np.arange(count)), curve.data_path
        ends = fidelity.evaluated(obj, (start, start + count - 1)).place("pelvis")
        assert np.linalg.norm((ends[1] - ends[0])[:2]) == pytest.approx(1.5 * (count - 1) / 24.0, abs=1e-4)


def test_35_a_zero_table_is_a_table():
    """R: a zero table is valid. T: every correction cleared in a table made by hand; and the first version of the file is still read."""
    obj = character()
    result = retarget(obj)
    frames = (1, 26, 55)
    seen = fidelity.evaluated(obj, frames)
    bent = replace(result.table, rows=tuple(replace(r, correction=(0.0, 0.0, 30.0)) if r.role == "head" else r for r in result.table.rows))
    turned = retarget(obj, table=bent)
    assert np.degrees(quat.angle(fidelity.evaluated(obj, frames).turn("head"), seen.turn("head"))).min() > 20.0
    cleared = replace(turned.table, rows=tuple(replace(r, correction=(0.0, 0.0, 0.0)) for r in turned.table.rows))
    text = rig.dumps(cleared)
    read = rig.loads("\n".join(line for line in text.splitlines() if not line.startswith("version")))
    assert all(row.correction == (0.0, 0.0, 0.0) for row in read.rows) and len(read.rows) == len(cleared.rows)
    for table in (cleared, read):
        again = retarget(obj, table=table)
        assert again.table.row("head").correction == (0.0, 0.0, 0.0)
        assert np.degrees(quat.angle(fidelity.evaluated(obj, frames).rotations, seen.rotations)).max() < 1e-3
