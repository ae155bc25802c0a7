# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones that the take scales: onto bones that also move, when asked. What Blender shows of both rigs is compared."""

from __future__ import annotations

from dataclasses import replace

import bpy
import numpy as np
import pytest

from mocap_addon import rig
from mocap_addon.blender import compat, sources, take_files
from mocap_addon.blender.job import JobOptions, preview_table, retarget_onto
from mocap_addon.blender.update import update_action
from mocap_addon.motion.steps import run
from mocap_addon.retarget import Mask
from mocap_addon.retarget.extras import Extras

from .helpers import make_rig, world_matrices
from .test_sources import put

FRAMES = (1, 5, 8, 12)
SCALED = JobOptions(frame_start=1.0, extras=Extras(locations=1.0, scales=True))


def person(name: str, *, roll: float) -> bpy.types.Object:
    """A person with a stick in the left hand, a ring on the stick and a tip on that; ``roll``: of the stick, about its own line."""
    rows: list[tuple] = [
        ("hips", None, (0, 0, 1.0), (0, 0, 1.15), 0),
        ("spine", "hips", (0, 0, 1.15), (0, 0, 1.4), 0),
        ("neck", "spine", (0, 0, 1.4), (0, 0, 1.5), 0),
        ("head", "neck", (0, 0, 1.5), (0, 0, 1.7), 0),
    ]
    for s, x in (("L", 1), ("R", -1)):
        rows += [
            (f"thigh.{s}", "hips", (0.1 * x, 0, 0.95), (0.1 * x, -0.02, 0.5), 0.3),
            (f"shin.{s}", f"thigh.{s}", (0.1 * x, -0.02, 0.5), (0.1 * x, 0, 0.08), -0.2),
            (f"foot.{s}", f"shin.{s}", (0.1 * x, 0, 0.08), (0.1 * x, -0.12, 0.02), 0),
            (f"upper_arm.{s}", "spine", (0.15 * x, 0, 1.38), (0.42 * x, 0.01, 1.38), 0),
            (f"forearm.{s}", f"upper_arm.{s}", (0.42 * x, 0.01, 1.38), (0.68 * x, 0, 1.38), 0),
            (f"hand.{s}", f"forearm.{s}", (0.68 * x, 0, 1.38), (0.78 * x, 0, 1.38), 0),
        ]
    rows += [
        ("stick", "hand.L", (0.72, -0.05, 1.38), (0.72, -0.45, 1.38), roll),
        ("ring", "stick", (0.72, -0.25, 1.38), (0.72, -0.3, 1.38), roll),
        ("tip", "ring", (0.72, -0.45, 1.38), (0.72, -0.5, 1.38), 0.3),
    ]
    return make_rig(rows, name)


def source() -> bpy.types.Object:
    """The stick grows unevenly, the ring evenly, the ring slides along the stick; the arm swings."""
    obj = person("Source", roll=0.0)
    action, slot, bag = compat.new_action("Grow")
    keys = {
        ("stick", "scale"): [(1.0, 2.0, 1.5), (1.0, 1.5, 3.0), (1.0, 0.5, 0.8)],
        ("ring", "scale"): [(1.0, 1.4, 0.7)] * 3,
        ("ring", "location"): [(0.0, 0.0, 0.0), (0.0, 0.1, -0.05), (0.0, 0.0, 0.02)],
        ("upper_arm.L", "rotation_quaternion"): [(1.0, 0.9, 1.0), (0.0, 0.3, 0.0), (0.0, 0.1, 0.2), (0.0, 0.2, 0.1)],
    }
    for (bone, prop), values in keys.items():
        for i, column in enumerate(values):
            put(bag, f'pose.bones["{bone}"].{prop}', i, (1, 6, 12), column)
    compat.assign(obj.animation_data_create(), action, slot)
    return obj


def movable(table, names=("stick", "ring", "tip")):
    assert {row.target for row in table.rows} >= set(names)
    return replace(table, rows=tuple(replace(row, movable=True) if row.target in names else row for row in table.rows))


@pytest.mark.parametrize("roll", [0.0, np.pi / 2, np.pi])
def test_bones_are_scaled_as_in_the_take(roll):
    """Uneven scale goes along the axes that lie along each other, whatever the roll; what hangs on it lands where it does in the take."""
    obj = source()
    take = sources.read_rig(obj)
    assert set(take.scales) == {"stick", "ring"}
    hero = person("Hero", roll=roll)
    table = movable(preview_table(hero, take)[0])
    result = retarget_onto(hero, take, table=table, options=SCALED)
    wanted, seen = (world_matrices(o, FRAMES, ("stick", "ring", "tip")) for o in (obj, hero))
    assert np.abs(seen[..., :3, 3] - wanted[..., :3, 3]).max() < 1e-5
    across = np.abs(np.round(np.cos(roll))) > 0.5
    order = [0, 1, 2] if across else [2, 1, 0]
    lengths, truth = (np.linalg.norm(m[:, :2, :3, :3], axis=-2) for m in (seen, wanted))
    assert np.abs(lengths - truth[..., order]).max() < 1e-5 and np.ptp(truth[:, 0], axis=0).min() > 0.3
    curves = {(c.data_path, c.array_index) for c in compat.all_curves(result.action) if c.data_path.endswith(".scale")}
    assert curves == {(f'pose.bones["{name}"].scale', i) for name in ("stick", "ring") for i in range(3)}


def test_only_when_asked_and_named_where_rows_do_not_move():
    obj, hero = source(), person("Hero", roll=0.4)
    take = sources.read_rig(obj)
    plain = retarget_onto(hero, take, table=movable(preview_table(hero, take)[0]), options=replace(SCALED, extras=Extras(locations=1.0)))
    assert not any(c.data_path.endswith(".scale") for c in compat.all_curves(plain.action))
    wanted, seen = (world_matrices(o, FRAMES, ("stick", "ring", "tip")) for o in (obj, hero))
    assert np.abs(seen[..., :3, 3] - wanted[..., :3, 3]).max() < 1e-5  # what hangs on a scaled bone is where it was all the same
    still = retarget_onto(hero, take, options=SCALED)
    assert any('scales "stick", "ring", which' in note for note in still.notes)
    assert not any(c.data_path.endswith(".scale") for c in compat.all_curves(still.action))


def test_what_grows_out_of_nothing():
    """A scale of zero, as props have that come and go: what hangs on it has no place then, and a finite key all the same."""
    obj = source()
    for curve in compat.all_curves(obj.animation_data.action):
        if curve.data_path.endswith('"stick"].scale'):
            curve.keyframe_points[0].co[1] = 0.0
            curve.update()
    take, hero = sources.read_rig(obj), person("Hero", roll=0.0)
    assert np.isfinite(take.local_translations).all() and take.scales["stick"][0] == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)
    made = retarget_onto(hero, take, table=movable(preview_table(hero, take)[0]), options=SCALED)
    values = [point.co[1] for curve in compat.all_curves(made.action) for point in curve.keyframe_points]
    assert np.isfinite(values).all() and np.abs(values).max() < 10.0
    wanted, seen = (world_matrices(o, (1, 8, 12), ("stick", "tip")) for o in (obj, hero))
    assert np.abs(np.linalg.norm(seen[:, 0, :3, :3], axis=-2) - np.linalg.norm(wanted[:, 0, :3, :3], axis=-2)).max() < 1e-5
    assert np.abs(seen[1:, :, :3, 3] - wanted[1:, :, :3, 3]).max() < 1e-4


def test_ways_of_inheriting_scale():
    """What a bone is scaled by itself is told from what it inherits."""
    for way in ("FULL", "ALIGNED", "AVERAGE", "NONE", "FIX_SHEAR"):
        bpy.ops.wm.read_factory_settings(use_empty=True)
        obj = source()
        obj.data.bones["ring"].inherit_scale = way
        take = sources.read_rig(obj)
        for f, frame in ((0, 1), (5, 6), (11, 12)):
            bpy.context.scene.frame_set(frame)
            assert take.scales["stick"][f] == pytest.approx(tuple(obj.pose.bones["stick"].scale), abs=1e-4)
            assert take.scales["ring"][f] == pytest.approx(tuple(obj.pose.bones["ring"].scale), abs=2e-3), way


def test_updates_masks_and_files_keep_it(tmp_path):
    obj, hero = source(), person("Hero", roll=0.0)
    take = sources.read_rig(obj)
    table = movable(preview_table(hero, take)[0])
    made = retarget_onto(hero, take, table=table, options=SCALED)
    curve = next(c for c in compat.all_curves(made.action) if c.data_path.endswith('"ring"].scale') and c.array_index == 1)
    before = [point.co[1] for point in curve.keyframe_points]
    curve.keyframe_points[5].co[1] += 0.25
    curve.update()
    edited = update_action(hero, made.action, take=replace(take, scales={**take.scales, "ring": 2.0 * take.scales["ring"]}))
    assert edited.rewritten
    after = [point.co[1] for point in curve.keyframe_points]
    assert after == pytest.approx([2.0 * v + (0.25 if k == 5 else 0.0) for k, v in enumerate(before)], abs=1e-4)

    masked = retarget_onto(hero, take, table=table, options=replace(SCALED, mask=Mask(parts=frozenset({"right arm"}))))
    assert not any(c.data_path.endswith(".scale") and len(c.keyframe_points) > 1 for c in compat.all_curves(masked.action))

    bpy.data.objects.remove(hero)
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "a.blend"), copy=True)
    back = next(one for one in run(take_files.blend_steps(tmp_path / "a.blend"), None, "") if one.name == "Grow")
    assert set(back.scales) == {"stick", "ring"} and np.allclose(back.scales["stick"], take.scales["stick"], atol=1e-5)
    assert rig.match(back.skeleton).one("leftHand") is not None
