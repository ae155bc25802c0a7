# SPDX-License-Identifier: GPL-3.0-or-later
"""Time code, morphs, props and marks beside a motion. Blender evaluates what was written; that is what is looked at."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import bpy
import numpy as np
import pytest
from mathutils import Quaternion

from mocap_addon.blender import batch, companions, compat, sources
from mocap_addon.blender.job import JobOptions, options_of, retarget_onto
from mocap_addon.blender.recipes import recipe_of
from mocap_addon.blender.takes import read_takes
from mocap_addon.blender.update import update_action
from mocap_addon.motion.errors import MocapError
from mocap_addon.motion.take import PropTrack
from mocap_addon.retarget.extras import Extras, MorphOptions, PropOptions, TimeCodeOptions
from mocap_addon.retarget.root_motion import RootMotion

from . import take_makers as make
from .complaints import character, walk

NTSC = Fraction(30000, 1001)
KEYS = ("Basis", "Jaw_Open", "eyeBlink_L", "own")


def face(obj: bpy.types.Object, name: str = "Face", keys=KEYS, *, parented: bool = False) -> bpy.types.Object:
    mesh = bpy.data.meshes.new(name)
    mesh.from_pydata([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [], [(0, 1, 2)])
    made = bpy.data.objects.new(name, mesh)
    bpy.context.scene.collection.objects.link(made)
    for key in keys:
        made.shape_key_add(name=key, from_mix=False).value = 0.0  # Blender 5 makes them at 1
    if parented:
        made.parent = obj
    else:
        made.modifiers.new("Armature", "ARMATURE").object = obj
    return made


def take_with(**parts):
    base = walk()
    return replace(base, **parts)


def evaluated(owner, frame: float, path: str):
    whole = int(np.floor(frame))
    bpy.context.scene.frame_set(whole, subframe=frame - whole)
    return owner.path_resolve(path)


def waves(count: int) -> np.ndarray:
    return 0.5 + 0.5 * np.sin(np.arange(count) / 7.0)


# --- time code --------------------------------------------------------------------------------------------------------------------------


def test_time_code_is_held_between_frames_and_says_what_it_is():
    obj = character()
    take = take_with(timecode="23:59:59;20", timecode_rate=NTSC)
    scene = bpy.context.scene
    scene.render.fps, scene.render.fps_base = 30, 1.001
    result = retarget_onto(obj, take)
    first = scene.frame_start
    shown = [tuple(round(evaluated(obj, first + k, f'["{n}"]')) for n in ("TCHour", "TCMinute", "TCSecond", "TCFrame")) for k in range(12)]
    assert shown[0] == (23, 59, 59, 20) and shown[9] == (23, 59, 59, 29) and shown[10] == (0, 0, 0, 0) and shown[11] == (0, 0, 0, 1)
    assert evaluated(obj, first + 9.6, '["TCSecond"]') == 59.0 and evaluated(obj, first + 9.6, '["TCFrame"]') == 29.0
    assert (obj["TCRateNumerator"], obj["TCRateDenominator"], obj["TCDropFrame"], obj["TCSubframe"]) == (30000.0, 1001.0, 1.0, 0.0)
    assert obj["TCStart"] == "23:59:59;20"
    curves = [c for c in compat.all_curves(result.action) if c.data_path.startswith('["TC')]
    assert len(curves) == 8 and all(k.interpolation == "CONSTANT" for c in curves for k in c.keyframe_points)
    assert not any(name.startswith("TC") for name in obj.data.keys())  # noqa: SIM118 - an armature is no dict
    assert result.take.time_code == take.time_code  # what exporters get


def test_time_code_of_24_fps_film_on_a_scene_of_60_has_sub_frames():
    obj, scene = character(), bpy.context.scene
    scene.render.fps, scene.render.fps_base = 60, 1.0
    retarget_onto(obj, take_with(timecode="01:00:00:00", timecode_rate=Fraction(24)))
    got = [
        (evaluated(obj, scene.frame_start + k, '["TCFrame"]'), evaluated(obj, scene.frame_start + k, '["TCSubframe"]')) for k in range(6)
    ]
    assert np.allclose(got, [(0, 0), (0, 0.4), (0, 0.8), (1, 0.2), (1, 0.6), (2, 0)], atol=1e-6)


def test_time_code_by_hand_off_and_wrong():
    obj = character()
    take = take_with(timecode="01:00:00:00", timecode_rate=Fraction(25))
    result = retarget_onto(obj, take, options=JobOptions(extras=Extras(TimeCodeOptions(start="10:00:00;02", rate="29.97"))))
    assert str(result.motion.time_code) == "10:00:00;02"
    again = update_action(obj, result.action, take=take)
    assert str(again.motion.time_code) == "10:00:00;02"
    off = retarget_onto(obj, take, options=JobOptions(extras=Extras(TimeCodeOptions(use=False))))
    assert not any(name.startswith("TC") for name in off.motion.curves)
    before = len(bpy.data.actions)
    with pytest.raises(MocapError, match="not a time code"):
        retarget_onto(obj, take, options=JobOptions(extras=Extras(TimeCodeOptions(start="soon"))))
    assert len(bpy.data.actions) == before
    odd = retarget_onto(obj, replace(take, timecode="late"))
    assert any('"late" is not a time code' in note for note in odd.notes)


# --- morphs -----------------------------------------------------------------------------------------------------------------------------


def test_morphs_move_every_mesh_that_has_the_key():
    obj = character()
    meshes = [face(obj), face(obj, "Teeth", ("Basis", "jawOpen"), parented=True), face(obj, "Hat", ("Basis", "Brim"))]
    count = walk().frames
    jaw = waves(count)
    take = take_with(curves={"jawOpen": jaw, "EyeBlinkLeft": 1.0 - jaw, "tongueOut": jaw, "contact_l_toe": jaw})
    old = [m.data.shape_keys for m in meshes]
    result = retarget_onto(obj, take, options=JobOptions(rate="source"))
    step = bpy.context.scene.render.fps / bpy.context.scene.render.fps_base * (take.times[1] - take.times[0])
    first = bpy.context.scene.frame_start
    for k in (0, 5, 40, count - 1):
        for keys, name, want in ((old[0], "Jaw_Open", jaw[k]), (old[1], "jawOpen", jaw[k]), (old[0], "eyeBlink_L", 1 - jaw[k])):
            assert evaluated(keys, first + k * step, f'key_blocks["{name}"].value') == pytest.approx(want, abs=2e-5)
    middle = evaluated(old[0], first + 5.5 * step, 'key_blocks["Jaw_Open"].value')
    assert middle == pytest.approx(waves(count)[5:7].mean(), abs=1e-4)  # linear
    assert old[2].animation_data is None and meshes[0].data.shape_keys.key_blocks["own"].value == 0.0
    assert sum("tongueOut" in note for note in result.notes) == 1 and not any("contact" in note for note in result.notes)
    for keys in old[:2]:
        assert (keys.animation_data.action == result.action) == compat.SLOTTED
    if compat.SLOTTED:
        assert [slot.target_id_type for slot in result.action.slots] == ["OBJECT", "KEY", "KEY"]
    else:
        assert all(keys.animation_data.action.id_root == "KEY" for keys in old[:2])


def test_percent_a_map_and_slider_ranges():
    obj = character()
    mesh = face(obj)
    count = walk().frames
    curves = {"jawOpen": 100.0 * waves(count), "strange": 50.0 * waves(count), "eyeBlinkLeft": 120.0 * waves(count)}
    morphs = MorphOptions(names=(("strange", "own"), ("jawOpen", "")))
    result = retarget_onto(obj, take_with(curves=curves), options=JobOptions(extras=Extras(morphs=morphs), rate="source"))
    keys = mesh.data.shape_keys
    assert evaluated(keys, bpy.context.scene.frame_start, 'key_blocks["own"].value') == pytest.approx(0.25, abs=1e-5)
    assert evaluated(keys, bpy.context.scene.frame_start, 'key_blocks["Jaw_Open"].value') == 0.0
    assert any("eyeBlink_L" in note and "cuts off" in note for note in result.notes)
    exported = result.on_bones.curves
    assert set(exported) == {"own", "eyeBlink_L", "jawOpen"} and np.allclose(exported["own"], 0.5 * waves(count), atol=1e-6)
    assert options_of(recipe_of(result.action)).extras.morphs == morphs
    with_wrong = JobOptions(extras=Extras(morphs=MorphOptions(names=(("strange", "nowhere"),))))
    assert any('"nowhere"' in note for note in retarget_onto(obj, take_with(curves=curves), options=with_wrong).notes)


def test_morphs_of_the_clip_before_do_not_leak():
    """Clip one opens the jaw, clip two has no morphs: in either order the mouth is shut in clip two, and the first action is kept."""
    obj = character()
    keys = face(obj).data.shape_keys
    count = walk().frames
    one = retarget_onto(obj, take_with(name="one", curves={"jawOpen": np.full(count, 0.7)}))
    first = bpy.context.scene.frame_start
    assert evaluated(keys, first + 3, 'key_blocks["Jaw_Open"].value') == pytest.approx(0.7)
    retarget_onto(obj, take_with(name="two"))
    assert evaluated(keys, first + 3, 'key_blocks["Jaw_Open"].value') == 0.0
    assert one.action.name in bpy.data.actions and one.action.use_fake_user
    companions.assign_all(one.action)
    assert evaluated(keys, first + 4, 'key_blocks["Jaw_Open"].value') == pytest.approx(0.7)


def test_a_persons_own_shape_key_action_is_kept():
    obj = character()
    keys = face(obj).data.shape_keys
    keys.key_blocks["Jaw_Open"].value = 0.3
    keys.key_blocks["Jaw_Open"].keyframe_insert("value", frame=1)
    own = keys.animation_data.action
    retarget_onto(obj, take_with(curves={"jawOpen": waves(walk().frames)}))
    assert keys.animation_data.action != own and own.use_fake_user and len(compat.all_curves(own)) == 1


def test_update_writes_morphs_anew_but_not_over_a_hand():
    obj = character()
    mesh = face(obj)
    keys, count = mesh.data.shape_keys, walk().frames
    take = take_with(curves={"jawOpen": waves(count), "eyeBlinkLeft": waves(count)})
    result = retarget_onto(obj, take)
    place = keys.animation_data.action
    curve = next(c for c in compat.moving_curves(keys.animation_data) if "eyeBlink" in c.data_path)
    curve.keyframe_points[3].co.y = 0.123
    curve.update()
    fresh = replace(take, curves={"jawOpen": 0.5 * waves(count), "eyeBlinkLeft": 0.5 * waves(count)})
    done = update_action(obj, result.action, take=fresh)
    first = bpy.context.scene.frame_start
    assert keys.animation_data.action == place
    assert evaluated(keys, first, 'key_blocks["Jaw_Open"].value') == pytest.approx(0.25, abs=1e-5)
    assert evaluated(keys, first + 3, 'key_blocks["eyeBlink_L"].value') == pytest.approx(0.123, abs=1e-5)
    assert any("changed by hand" in note for note in done.notes)
    if compat.SLOTTED:
        assert len(result.action.slots) == 2
    slot_count = len(bpy.data.actions)
    gone = update_action(obj, result.action, take=replace(take, curves={}))
    assert len(bpy.data.actions) == slot_count and gone.action == result.action
    assert evaluated(keys, first + 8, 'key_blocks["Jaw_Open"].value') == 0.0


def test_morphs_are_read_back_from_the_rig():
    obj = character()
    face(obj)
    count = walk().frames
    retarget_onto(obj, take_with(name="face", curves={"jawOpen": waves(count)}, timecode="01:02:03:04", timecode_rate=Fraction(25)))
    for how in ({}, {"action": "face"}):
        got = sources.read_rig(obj, **how)
        rate = float(got.rate)
        at = got.times
        want = np.interp(at, walk().times, waves(count))
        assert np.abs(got.curves["Jaw_Open"] - want).max() < 1e-4, rate
        assert str(got.time_code) == "01:02:03:04" and got.time_code.rate == 25 and not any(n.startswith("TC") for n in got.curves)
        assert got.facts["morphs"] == ("Jaw_Open",)


def test_shape_keys_that_drivers_move_are_named_and_left():
    obj = character()
    mesh = face(obj)
    mesh.data.shape_keys.key_blocks["Jaw_Open"].driver_add("value").driver.expression = "0.25"
    count = walk().frames
    result = retarget_onto(obj, take_with(curves={"jawOpen": waves(count), "eyeBlinkLeft": waves(count)}))
    assert any("Drivers move" in note and "Jaw_Open" in note for note in result.notes)
    paths = [c.data_path for c in compat.moving_curves(mesh.data.shape_keys.animation_data)]
    assert paths == ['key_blocks["eyeBlink_L"].value']


def test_numbers_that_are_none_are_refused_before_anything_is_written():
    obj = character()
    face(obj)
    count, base = walk().frames, walk()
    before = len(bpy.data.actions), len(bpy.data.objects)
    bad = np.where(np.arange(count) == 9, np.nan, 0.0)
    with pytest.raises(MocapError, match="not a number"):
        retarget_onto(obj, take_with(curves={"jawOpen": bad}), options=JobOptions(rate="source"))
    lost = PropTrack(ball(base).rotations, np.full((count, 3), np.nan))
    with pytest.raises(MocapError, match=r'"ball".*not a number'):
        retarget_onto(obj, take_with(props={"ball": lost}), options=JobOptions(extras=Extras(props=PropOptions(True)), rate="source"))
    assert (len(bpy.data.actions), len(bpy.data.objects)) == before


def test_morphs_of_fbx_and_blend_files_are_curves(tmp_path):
    """Written by Blender's exporter and by Blender; nothing of it stays behind."""
    obj = make.bvh_rig()
    skin = make.skin(obj)
    skin.shape_key_add(name="Basis")
    key = skin.shape_key_add(name="jawOpen", from_mix=False)
    key.data[0].co.z += 0.1
    for frame in range(1, 61):
        key.value = 0.5 + 0.5 * np.sin(frame / 7.0)
        key.keyframe_insert("value", frame=frame)
    files = [make.save_fbx(tmp_path / "talk.fbx"), make.save_blend(tmp_path / "talk.blend")]
    bpy.ops.wm.read_factory_settings(use_empty=True)
    for path in files:
        before = len(bpy.data.actions), len(bpy.data.shape_keys)
        (take,) = read_takes(path)
        assert take.facts["morphs"] == ("jawOpen",)
        assert np.abs(take.curves["jawOpen"] - (0.5 + 0.5 * np.sin(np.arange(1, 61) / 7.0))).max() < 1e-5, path.name
        assert (len(bpy.data.actions), len(bpy.data.shape_keys)) == before


# --- props ------------------------------------------------------------------------------------------------------------------------------


def ball(take, height: float = 1.0) -> PropTrack:
    hips = take.global_positions[:, take.skeleton.index("root")] if "root" in take.skeleton else take.global_positions[:, 0]
    turn = np.stack([np.cos(take.times), np.zeros(take.frames), np.zeros(take.frames), np.sin(take.times)], axis=1)
    return PropTrack(turn, hips * (1.0, 1.0, 0.0) + (0.3, 0.0, height))


@pytest.mark.parametrize("destination", ["hips", "object"])
def test_props_are_objects_beside_the_character(destination: str):
    obj = character()
    obj.location = (3.0, -2.0, 0.5)
    obj.rotation_euler = (0.0, 0.0, 0.7)
    base = walk()
    take = replace(base, props={"ball": ball(base), "left": ball(base, 0.0)})
    extras = Extras(props=PropOptions(True, (("left", ""),)))
    options = JobOptions(extras=extras, root=RootMotion(destination=destination), rate="source")
    result = retarget_onto(obj, take, options=options)
    empty = bpy.data.objects["ball"]
    assert "left" not in bpy.data.objects and empty.type == "EMPTY" and empty.animation_data.action != result.action
    k = result.motion.props["ball"].translations[0, 2] / 1.0
    step = bpy.context.scene.render.fps / bpy.context.scene.render.fps_base * (take.times[1] - take.times[0])
    hips = next(row.target for row in result.table.rows if row.role == "hips")
    for frame in (0, 20, take.frames - 1):
        at = bpy.context.scene.frame_start + frame * step
        bpy.context.scene.frame_set(int(at), subframe=at - int(at))
        graph = bpy.context.evaluated_depsgraph_get()
        place = empty.evaluated_get(graph).matrix_world
        body = obj.evaluated_get(graph)
        pelvis = (body.matrix_world @ body.pose.bones[hips].matrix).translation
        # 0.3 m beside the performer's hips: k times that beside the character's, whose hips are not exactly where the performer's are
        away = np.array(place.translation - pelvis)[:2]
        assert abs(np.linalg.norm(away) - 0.3 * k) < 0.06
        assert place.translation.z == pytest.approx(0.5 + k, abs=1e-4)
    assert 0.2 < k < 2.0


def test_a_named_object_takes_the_motion_in_its_parents_frame():
    obj, scene = character(), bpy.context.scene
    table = bpy.data.objects.new("Table", None)
    table.location, table.rotation_euler, table.scale = (1, 2, 3), (0.2, 0.4, -0.6), (2, 2, 2)
    sword = bpy.data.objects.new("Sword", None)
    for one in (table, sword):
        scene.collection.objects.link(one)
    sword.parent, sword.rotation_mode = table, "YZX"
    sword.matrix_parent_inverse = Quaternion((0.8, 0.6, 0, 0)).to_matrix().to_4x4()
    sword.location = (5, 5, 5)
    sword.keyframe_insert("location", frame=1)
    own = sword.animation_data.action
    base = walk()
    take = replace(base, props={"blade": ball(base)})
    result = retarget_onto(obj, take, options=JobOptions(extras=Extras(props=PropOptions(True, (("blade", "Sword"),)))))
    track = result.motion.props["blade"]
    for k in (0, 7, 30):
        scene.frame_set(scene.frame_start + k)
        seen = sword.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world
        assert np.abs(np.array(seen.translation) - track.translations[k]).max() < 1e-4
        off = Quaternion(track.rotations[k]).rotation_difference(seen.to_quaternion())
        assert min(off.angle, 2 * np.pi - off.angle) < 1e-3
    assert own.use_fake_user and "blade" not in bpy.data.objects
    with pytest.raises(MocapError, match='no object "Nothing"'):
        retarget_onto(obj, take, options=JobOptions(extras=Extras(props=PropOptions(True, (("blade", "Nothing"),)))))


def test_props_are_offered_and_never_doubled():
    obj = character()
    base = walk()
    take = replace(base, props={"ball": ball(base)})
    quiet = retarget_onto(obj, take)
    assert any("turn Props on" in note for note in quiet.notes) and "ball" not in bpy.data.objects
    options = JobOptions(extras=Extras(props=PropOptions(True)))
    first = retarget_onto(obj, take, options=options)
    place = bpy.data.objects["ball"].animation_data.action
    retarget_onto(obj, take, options=options)
    assert sum(o.name.startswith("ball") for o in bpy.data.objects) == 1 and place.use_fake_user
    companions.assign_all(first.action)
    assert bpy.data.objects["ball"].animation_data.action == place
    update_action(obj, first.action, take=take)
    assert sum(o.name.startswith("ball") for o in bpy.data.objects) == 1


def test_a_batch_that_fails_leaves_no_prop_and_no_morph():
    obj = character()
    keys = face(obj).data.shape_keys
    base = walk()
    good = replace(base, props={"ball": ball(base)}, curves={"jawOpen": waves(base.frames)})
    bad = replace(base, name="bad", local_rotations=np.full_like(base.local_rotations, np.nan))
    objects, actions = len(bpy.data.objects), len(bpy.data.actions)
    with pytest.raises(MocapError):
        batch.retarget_all(obj, [good, bad], options=JobOptions(extras=Extras(props=PropOptions(True))))
    assert (len(bpy.data.objects), len(bpy.data.actions)) == (objects, actions)
    assert keys.animation_data is None or keys.animation_data.action is None
    done = batch.retarget_all(obj, [good, replace(good, name="two")], options=JobOptions(extras=Extras(props=PropOptions(True))))
    first = done[0].action
    assert obj.animation_data.action == first and (not compat.SLOTTED or keys.animation_data.action == first)
    own = companions.actions_of(first)
    assert bpy.data.objects["ball"].animation_data.action in own


# --- marks ------------------------------------------------------------------------------------------------------------------------------


def test_marks_of_a_take_are_markers_once():
    obj, scene = character(), bpy.context.scene
    scene.timeline_markers.new("mine", frame=scene.frame_start)
    take = take_with(events=((walk().times[0], "slate"), (walk().times[0] + 0.5, "hit"), (walk().times[0] + 0.5, "hit")))
    retarget_onto(obj, take)
    assert [m.name for m in scene.timeline_markers] == ["mine"]
    for _ in range(2):
        retarget_onto(obj, take, options=JobOptions(extras=Extras(markers=True)))
    found = sorted((m.frame - scene.frame_start, m.name) for m in scene.timeline_markers)
    rate = scene.render.fps / scene.render.fps_base
    assert found == [(0, "mine"), (0, "slate"), (round(0.5 * rate), "hit")]


def test_markers_of_a_rigs_action_are_marks_of_the_take():
    obj = character()
    action = retarget_onto(obj, walk(), options=JobOptions(frame_start=11.0)).action
    for name, frame in (("step", 21), ("before", 3)):
        action.pose_markers.new(name).frame = frame
    rate = bpy.context.scene.render.fps / bpy.context.scene.render.fps_base
    assert sources.read_rig(obj).events == ((10.0 / rate, "step"),)


def test_a_joint_that_slides_is_told_of():
    base = walk()
    hand = base.skeleton.index("rhand")
    moved = np.array(np.broadcast_to(base.local_translations, (base.frames, len(base.skeleton), 3)))
    moved[:, hand, 1] += np.linspace(0.0, 0.1, base.frames)
    notes = retarget_onto(character(), replace(base, local_translations=moved)).notes
    assert sum('"rhand" out of place' in note for note in notes) == 1
