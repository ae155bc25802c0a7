# SPDX-License-Identifier: GPL-3.0-or-later
"""Making an action again, and the hand edits in it. Poses are read from the depsgraph; rotations of the edits come from mathutils."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import bpy
import mathutils
import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.blender import actions, characters, compat, sources, update
from mocap_addon.blender.job import JobOptions, retarget_onto
from mocap_addon.motion.errors import MocapError
from tests.blender.helpers import keys_of, snapshot, world_matrices
from tests.paths import DATA, ROOT

WALK = DATA / "takes" / "cmu_walk_60rows.bvh"
CHARACTER = ROOT / "mocap_addon" / "demo" / "character.glb"
FRAMES = (1, 4, 6, 8, 10, 12, 15)
TURN = mathutils.Euler((0.4, -0.3, 0.7)).to_quaternion()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "walk.bvh"
    shutil.copy(WALK, path)
    return path


@pytest.fixture
def hero() -> bpy.types.Object:
    return characters.bring_in(CHARACTER).armature


def baked(hero: bpy.types.Object, source: Path, **options) -> bpy.types.Action:
    return retarget_onto(hero, formats.read(source)[0], options=JobOptions(**options)).action


def wrist_of(action: bpy.types.Action) -> str:
    table = actions.recipe_of(action)["table"]
    from mocap_addon.rig import loads

    return next(row.target for row in loads(table).rows if row.role == "leftHand")


def curve(action: bpy.types.Action, path: str, index: int = 0) -> bpy.types.FCurve:
    return next(
        c for slot in compat.slots(action) for c in compat.all_curves(action, slot) if c.data_path.endswith(path) and c.array_index == index
    )


def turn_by_hand(action: bpy.types.Action, bone: str, turn: mathutils.Quaternion, first: int, last: int) -> None:
    """As a person does it: new values in the keys from frame ``first`` to ``last``."""
    curves = [curve(action, f'pose.bones["{bone}"].rotation_quaternion', i) for i in range(4)]
    for k, point in enumerate(curves[0].keyframe_points):
        if first <= point.co.x <= last:
            q = mathutils.Quaternion([c.keyframe_points[k].co.y for c in curves]) @ turn
            for c, value in zip(curves, q, strict=True):
                c.keyframe_points[k].co.y = value
    for c in curves:
        c.update()


def other_motion(source: Path) -> None:
    """The same skeleton with its rows backwards and one more row: another recording under the same name."""
    head, _, rows = source.read_text().partition("Frame Time:")
    time, *lines = rows.strip().splitlines()
    lines = [*lines[::-1], lines[-1]]
    head = "\n".join(f"Frames: {len(lines)}" if line.startswith("Frames:") else line for line in head.splitlines())
    source.write_text(head + "\nFrame Time:" + time + "\n" + "\n".join(lines) + "\n")


def names(hero: bpy.types.Object) -> list[str]:
    return [bone.name for bone in hero.pose.bones]


def poses(hero: bpy.types.Object, action: bpy.types.Action, frames=FRAMES) -> np.ndarray:
    slot = compat.slots(action)[0]
    compat.assign(hero.animation_data, action, slot)
    return world_matrices(hero, frames, names(hero))


def turns(matrices: np.ndarray) -> list[mathutils.Quaternion]:
    return [mathutils.Matrix(m.tolist()).to_quaternion() for m in matrices]


def degrees(a: mathutils.Quaternion, b: mathutils.Quaternion) -> float:
    d = np.minimum(np.linalg.norm(np.array(a) - np.array(b)), np.linalg.norm(np.array(a) + np.array(b)))
    return float(np.degrees(4 * np.arcsin(min(d / 2, 1.0))))


def below(hero: bpy.types.Object, bone: str) -> set[str]:
    return {bone, *(b.name for b in hero.data.bones[bone].children_recursive)}


def assert_edit_on_fresh(hero, action, fresh, bone, turn, first, last) -> None:
    """``action`` is ``fresh`` with ``bone`` turned in its own axes from ``first`` to ``last``: to 0.01 degree and 0.01 mm."""
    got, plain = poses(hero, action), poses(hero, fresh)
    order = names(hero)
    outside = [i for i, name in enumerate(order) if name not in below(hero, bone)]
    assert np.abs(got[:, outside] - plain[:, outside]).max() < 1e-5
    k = order.index(bone)
    for f, now, was in zip(FRAMES, turns(got[:, k]), turns(plain[:, k]), strict=True):
        assert degrees(now, was @ turn if first <= f <= last else was) < 0.01, f


def test_a_wrist_edited_by_hand_survives_another_source_and_another_table(hero, source):
    action = baked(hero, source)
    slot = compat.slots(action)[0]
    wrist = wrist_of(action)
    turn_by_hand(action, wrist, TURN, 6, 10)
    other_motion(source)
    result = retarget_onto(hero, formats.read(source)[0])
    row = next(row for row in result.table.rows if row.role == "rightUpperArm")
    table = result.table.with_row(replace(row, correction=(0.0, 25.0, 10.0)))
    fresh = retarget_onto(hero, formats.read(source)[0], table=table).action
    out = update.update_action(hero, action, table=table)
    assert out.action == action and compat.slots(action)[0] == slot and out.edited == (wrist,)
    assert_edit_on_fresh(hero, action, fresh, wrist, TURN, 6, 10)
    # the curves nobody touched are the fresh bake's to the last bit
    untouched = [k for k in keys_of(fresh) if f'"{wrist}"' not in k[0]]
    assert [k for k in keys_of(action) if f'"{wrist}"' not in k[0]] == untouched
    assert not update.source_changed(action)


def test_edited_twice_and_updated_twice(hero, source):
    action = baked(hero, source)
    wrist = wrist_of(action)
    for turn in (TURN, mathutils.Euler((0.0, 0.5, -0.2)).to_quaternion()):
        turn_by_hand(action, wrist, turn, 6, 10)
        other_motion(source)
        update.update_action(hero, action)
    fresh = baked(hero, source)
    assert_edit_on_fresh(hero, action, fresh, wrist, TURN @ turn, 6, 10)


def test_nothing_changed_leaves_everything_as_it_is(hero, source):
    action = baked(hero, source)
    turn_by_hand(action, wrist_of(action), TURN, 6, 10)
    rounded = curve(action, "location", 1)
    rounded.keyframe_points[3].interpolation = "BEZIER"
    for index in (9, 8, 7):
        rounded.keyframe_points.remove(rounded.keyframe_points[index])
    rounded.update()
    bpy.context.scene.frame_set(1)
    before, recipe = snapshot(), action["mocap_recipe"]
    for _ in range(2):
        assert update.update_action(hero, action).rewritten == 0
        assert snapshot() == before and action["mocap_recipe"] == recipe


def test_without_edits_it_is_the_fresh_bake(hero, source):
    action = baked(hero, source)
    other_motion(source)
    out = update.update_action(hero, action)
    assert out.rewritten > 50 and out.edited == ()
    assert keys_of(action) == keys_of(baked(hero, source))


def test_edits_taken_away_leave_the_last_bake(hero, source):
    action = baked(hero, source)
    wrist = wrist_of(action)
    turn_by_hand(action, wrist, TURN, 6, 10)
    bag = compat.bag_of(action, compat.slots(action)[0])
    bag.fcurves.remove(curve(action, "location", 0))
    other_motion(source)
    update.update_action(hero, action)
    update.clear_edits(hero, action)
    assert update.summary(hero, action) == update.EditSummary((), (), (), 0, 1.0)
    by_path = {k[:2]: k for k in keys_of(baked(hero, source))}
    assert {k[:2]: k for k in keys_of(action)} == by_path


@pytest.mark.parametrize("mode", ["XYZ", "ZXY", "AXIS_ANGLE"])
def test_edits_in_any_rotation_mode_and_through_a_change_of_it(hero, source, mode):
    action = baked(hero, source)
    wrist = wrist_of(action)
    turn_by_hand(action, wrist, TURN, 6, 10)
    hero.pose.bones[wrist].rotation_mode = mode
    other_motion(source)
    update.update_action(hero, action)
    assert not any(c.data_path.endswith("rotation_quaternion") for c in _curves(action, wrist))
    fresh = baked(hero, source)
    assert_edit_on_fresh(hero, action, fresh, wrist, TURN, 6, 10)
    hero.pose.bones[wrist].rotation_mode = "QUATERNION"
    other_motion(source)
    update.update_action(hero, action)
    assert_edit_on_fresh(hero, action, baked(hero, source), wrist, TURN, 6, 10)


def _curves(action, bone):
    return [c for slot in compat.slots(action) for c in compat.all_curves(action, slot) if f'["{bone}"]' in c.data_path]


def test_moved_deleted_and_added_keys(hero, source):
    """Keys thinned out on the hips' height: what shows at the baked frames is what counts."""
    action = baked(hero, source)
    height = curve(action, "location", 1)
    was = [height.evaluate(f) for f in range(1, 16)]
    for k in range(len(height.keyframe_points) - 2, 0, -1):
        if k % 4:
            height.keyframe_points.remove(height.keyframe_points[k])
    height.keyframe_points.insert(7.5, was[6] + 0.05)
    height.update()
    edited = [height.evaluate(f) for f in range(1, 16)]
    shutil.copy(source, source.with_suffix(".old"))
    other_motion(source)
    update.update_action(hero, action)
    fresh = curve(baked(hero, source), "location", 1)
    got = [curve(action, "location", 1).evaluate(f) - fresh.evaluate(f) for f in range(1, 16)]
    assert np.allclose(got, np.subtract(edited, was), atol=2e-6)
    assert max(np.abs(got)) > 0.02


def test_a_persons_own_curves_and_modifiers_stay(hero, source):
    action = baked(hero, source)
    wrist = wrist_of(action)
    slot = compat.slots(action)[0]
    own = compat.new_curve(compat.bag_of(action, slot), f'pose.bones["{wrist}"].scale', 0, wrist)
    for frame, value in ((1, 1.0), (9, 1.5)):
        own.keyframe_points.insert(frame, value)
    noise = curve(action, f'"{wrist}"].rotation_quaternion', 1).modifiers.new("NOISE")
    noise.strength = 0.2
    other_motion(source)
    update.update_action(hero, action)
    assert [tuple(k.co) for k in curve(action, f'"{wrist}"].scale').keyframe_points] == [(1.0, 1.0), (9.0, 1.5)]
    assert len(curve(action, f'"{wrist}"].rotation_quaternion', 1).modifiers) == 1
    fresh = {k[:2]: k for k in keys_of(baked(hero, source)) if not k[0].endswith("scale")}
    assert {k[:2]: k for k in keys_of(action) if not k[0].endswith("scale")} == fresh


def test_what_a_modifier_adds_is_no_edit(hero, source):
    """Keys thinned on a curve with a strong modifier: the modifier's share must not end up in the keys."""
    action = baked(hero, source)
    height = curve(action, "location", 1)
    modifier = height.modifiers.new("NOISE")
    modifier.strength = 50.0
    height.keyframe_points.remove(height.keyframe_points[5])
    height.update()
    other_motion(source)
    update.update_action(hero, action)
    height = curve(action, "location", 1)
    fresh = [k.co.y for k in curve(baked(hero, source), "location", 1).keyframe_points]
    assert np.abs(np.subtract([k.co.y for k in height.keyframe_points], fresh)).max() < 0.02
    assert [m.mute for m in height.modifiers] == [False]


def test_an_action_moved_in_time_stays_where_it_was_put(hero, source):
    action = baked(hero, source)
    wrist = wrist_of(action)
    turn_by_hand(action, wrist, TURN, 6, 10)
    for slot in compat.slots(action):
        for c in compat.all_curves(action, slot):
            for point in c.keyframe_points:
                point.co.x += 40
            c.update()
    for _ in range(2):
        other_motion(source)
        update.update_action(hero, action)
        assert curve(action, "location", 1).range()[0] == 41.0
    got = world_matrices(hero, [f + 40 for f in FRAMES], names(hero)) if _assign(hero, action) else None
    plain = poses(hero, baked(hero, source))
    k = names(hero).index(wrist)
    for f, now, was in zip(FRAMES, turns(got[:, k]), turns(plain[:, k]), strict=True):
        assert degrees(now, was @ TURN if 6 <= f <= 10 else was) < 0.01


def _assign(hero, action) -> bool:
    compat.assign(hero.animation_data, action, compat.slots(action)[0])
    return True


def test_the_layer_off_weakened_and_on_again(hero, source):
    action = baked(hero, source)
    wrist = wrist_of(action)
    fresh = baked(hero, source)
    turn_by_hand(action, wrist, TURN, 6, 10)
    update.set_edit_influence(hero, action, 0.0)
    assert keys_of(action) == keys_of(fresh)
    half = mathutils.Quaternion().slerp(TURN, 0.5)
    update.set_edit_influence(hero, action, 0.5)
    assert_edit_on_fresh(hero, action, fresh, wrist, half, 6, 10)
    other_motion(source)
    update.update_action(hero, action)
    again = baked(hero, source)
    assert_edit_on_fresh(hero, action, again, wrist, half, 6, 10)
    update.set_edit_influence(hero, action, 1.0)
    assert_edit_on_fresh(hero, action, again, wrist, TURN, 6, 10)


def test_an_edited_bone_out_of_the_table_and_in_again(hero, source):
    action = baked(hero, source)
    wrist = wrist_of(action)
    turn_by_hand(action, wrist, TURN, 6, 10)
    result = retarget_onto(hero, formats.read(source)[0])
    without = replace(result.table, rows=tuple(row for row in result.table.rows if row.target != wrist))
    out = update.update_action(hero, action, table=without)
    assert _curves(action, wrist) == [] and any(wrist in note for note in out.notes)
    update.update_action(hero, action, table=result.table)
    assert_edit_on_fresh(hero, action, result.action, wrist, TURN, 6, 10)


def test_curves_deleted_by_hand_stay_away(hero, source):
    action = baked(hero, source)
    wrist = wrist_of(action)
    bag = compat.bag_of(action, compat.slots(action)[0])
    for c in _curves(action, wrist):
        bag.fcurves.remove(c)
    for _ in range(2):
        other_motion(source)
        update.update_action(hero, action)
        assert _curves(action, wrist) == []
    assert update.summary(hero, action).deleted == (f"rotation:{wrist}",)


def test_strips_other_slots_and_users_keep_the_action(hero, source):
    action = baked(hero, source)
    strip = hero.animation_data.nla_tracks.new().strips.new("walk", 1, action)
    other = None
    if compat.SLOTTED:
        other = action.slots.new(id_type="OBJECT", name="Camera")
        bag = action.layers[0].strips[0].channelbag(other, ensure=True)
        bag.fcurves.new("location", index=0).keyframe_points.insert(1, 5.0)
    other_motion(source)
    update.update_action(hero, action)
    assert strip.action == action
    if other is not None:
        assert [tuple(k.co) for k in compat.all_curves(action, other)[0].keyframe_points] == [(1.0, 5.0)]


def test_a_source_that_is_gone_changes_nothing(hero, source):
    action = baked(hero, source)
    turn_by_hand(action, wrist_of(action), TURN, 6, 10)
    source.unlink()
    before = snapshot()
    with pytest.raises(MocapError, match=r"walk\.bvh: The source is not in"):
        update.update_action(hero, action)
    assert snapshot() == before and update.source_changed(action) is None


@pytest.mark.parametrize("where", ["key", "store", "second action"])
def test_a_fault_in_the_middle_puts_everything_back(hero, source, monkeypatch, where):
    action, second = baked(hero, source), baked(hero, source, name="second", frame_start=100)
    wrist = wrist_of(action)
    turn_by_hand(action, wrist, TURN, 6, 10)
    curve(action, "location", 1).keyframe_points[3].interpolation = "BEZIER"
    result = retarget_onto(hero, formats.read(source)[0], options=JobOptions(name="third"))
    bpy.data.actions.remove(result.action)
    other_motion(source)
    before = snapshot()
    properties = [dict(a["mocap_baseline"]) | {"recipe": a["mocap_recipe"]} for a in (action, second)]
    rows = tuple(row for row in result.table.rows if row.role not in ("leftHand", "head"))

    class FaultError(RuntimeError):
        pass

    calls = 0
    real = {"key": compat.new_curve, "store": update.baseline.store, "second action": update._prepare}[where]

    def fail(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == (2 if where != "key" else 1):
            raise FaultError
        return real(*args, **kwargs)

    if where == "key":  # a curve that was deleted has to be made anew: the fault comes after others were rewritten
        hero.pose.bones[wrist].rotation_mode = "XYZ"
        before = snapshot()
        monkeypatch.setattr(compat, "new_curve", fail)
    elif where == "store":
        monkeypatch.setattr(update.baseline, "store", fail)
    else:
        monkeypatch.setattr(update, "_prepare", fail)
    with pytest.raises(FaultError):
        update.update_all(hero, table=replace(result.table, rows=rows) if where != "key" else None)
    assert calls and snapshot() == before
    assert [dict(a["mocap_baseline"]) | {"recipe": a["mocap_recipe"]} for a in (action, second)] == properties


def test_all_actions_of_a_character_at_once(hero, source):
    first, second = baked(hero, source), baked(hero, source, name="second", frame_start=100)
    bpy.data.actions.new("a person's own")
    turn_by_hand(second, wrist_of(second), TURN, 105, 109)
    other_motion(source)
    reads = []

    def read(path, options):
        reads.append(path)
        return formats.read(path, options)

    out = update.update_all(hero, read=read)
    assert {r.action for r in out} == {first, second} and len(reads) == 1
    assert keys_of(first) == keys_of(baked(hero, source))
    assert [r.edited for r in out if r.action == second] == [(wrist_of(second),)]
    assert curve(second, "location", 1).range()[0] == 100.0


def test_saved_and_opened_again(hero, source, tmp_path):
    action = baked(hero, source)
    wrist = wrist_of(action)
    turn_by_hand(action, wrist, TURN, 6, 10)
    name, who = action.name, hero.name
    bpy.ops.wm.save_as_mainfile(filepath=str(tmp_path / "scene.blend"))
    bpy.ops.wm.open_mainfile(filepath=str(tmp_path / "scene.blend"))
    hero, action = bpy.data.objects[who], bpy.data.actions[name]
    assert update.summary(hero, action).bones == (wrist,)
    other_motion(source)
    update.update_action(hero, action)
    assert_edit_on_fresh(hero, action, baked(hero, source), wrist, TURN, 6, 10)


def test_a_rig_in_the_scene_as_the_source(hero, source):
    """A second character is the source: its action is edited, and the update follows it."""
    other = characters.bring_in(CHARACTER).armature
    walk = baked(other, source)
    action = retarget_onto(hero, sources.read_rig(other, action=walk)).action
    wrist = wrist_of(action)
    turn_by_hand(action, wrist, TURN, 6, 10)
    turn_by_hand(walk, wrist_of(walk).replace("_l", "_r"), TURN, 1, 12)
    update.update_action(hero, action)
    fresh = retarget_onto(hero, sources.read_rig(other, action=walk)).action
    assert_edit_on_fresh(hero, action, fresh, wrist, TURN, 6, 10)
    bpy.data.objects.remove(other)
    before = snapshot()
    with pytest.raises(MocapError, match="is not in this file any more"):
        update.update_action(hero, action)
    assert snapshot() == before and update.source_changed(action) is None


def test_what_was_not_made_here_is_refused(hero, source):
    baked(hero, source)
    own = bpy.data.actions.new("own")
    with pytest.raises(MocapError, match="was not made here"):
        update.update_action(hero, own)


def test_the_baseline_is_a_twentieth_of_the_action(hero, source):
    """72 bytes a key in Blender (sizeof BezTriple), 4 here, and a few kilobytes that say which is which."""
    action = baked(hero, source)
    keys = sum(len(k[2]) for k in keys_of(action))
    group = action["mocap_baseline"]
    assert len(bytes(group["data"])) <= 4 * (keys + 100)
    assert len(group["layout"]) < 200 * len(keys_of(action))
