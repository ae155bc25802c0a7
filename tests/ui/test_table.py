# SPDX-License-Identifier: GPL-3.0-or-later
"""The bone table in the window: it lives with the armature, and what stands there is what Retarget uses."""

from __future__ import annotations

import math
from dataclasses import replace

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix

from mocap_addon import rig
from mocap_addon.rig.table import CorrectionTable, Row
from mocap_addon.ui import lists, table_sync, takes
from tests.paths import SHARED, need

from .helpers import apart, counts, refused, turns

TABLE = CorrectionTable(
    rows=(
        Row("hips", "Pelvis 'x'", ("Hips: a",), movable=True, confidence=1.0),
        Row("spine", "s1", ("a", "b"), rule="blend", blend=0.25, correction=(12.5, -0.1, 179.0), residual=3.25, hinge=1.5, confidence=0.5),
        Row("spine", "s2", ("a", "b", "ü\n"), rule="chord", alignment=(10.0, 0.0, -5.0)),
    ),
    source_family="One",
    target_family="Two",
    unmapped_target=("Tail",),
    unmapped_source=("Prop",),
    notes=("A note.",),
    extra={"by": "hand"},
)


def same(a: CorrectionTable, b: CorrectionTable) -> None:
    """Equal, NaN equal to NaN, angles to what a person could have typed."""
    assert (a.source_family, a.target_family, a.unmapped_target, a.unmapped_source, a.notes, a.extra) == (
        b.source_family,
        b.target_family,
        b.unmapped_target,
        b.unmapped_source,
        b.notes,
        b.extra,
    )
    assert len(a.rows) == len(b.rows)
    for x, y in zip(a.rows, b.rows, strict=True):
        assert (x.role, x.target, x.source, x.rule, x.movable) == (y.role, y.target, y.source, y.rule, y.movable)
        assert x.correction == y.correction
        np.testing.assert_allclose(x.alignment, y.alignment, atol=1e-4)
        np.testing.assert_allclose([x.blend, x.residual, x.hinge, x.confidence], [y.blend, y.residual, y.hinge, y.confidence], atol=1e-5)


def test_table_to_rows_and_back(character):
    assert table_sync.to_table(character) is None
    table_sync.from_table(character, TABLE)
    same(table_sync.to_table(character), TABLE)


def test_the_table_survives_saving(character, tmp_path):
    name, path = character.name, str(tmp_path / "file.blend")
    table_sync.from_table(character, TABLE)
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.read_factory_settings(use_empty=True)
    bpy.ops.wm.open_mainfile(filepath=path)
    same(table_sync.to_table(bpy.data.objects[name]), TABLE)


def test_a_correction_turns_its_bone_and_no_other(character, walk):
    frames = (1, 20, 40, 60)
    bpy.ops.mocap.retarget(filepath=walk)
    head, neck = turns(character, "head", frames), turns(character, "neck_01", frames)
    rest = turns(character, "pelvis", (1,))
    row = character.mocap.rows["head"]
    row.correction = (math.radians(20.0), 0.0, math.radians(30.0))
    bpy.ops.mocap.retarget(filepath=walk)
    new, other = turns(character, "head", frames), turns(character, "neck_01", frames)
    assert apart(neck, other) < 1e-2
    # D = T C T^-1 with T the turn away from rest: an angle of |C| at every frame, whatever the pose
    wanted = math.degrees(Euler((math.radians(20.0), 0.0, math.radians(30.0)), "ZYX").to_quaternion().angle)
    for a, b in zip(head, new, strict=True):
        assert math.degrees((Matrix(b) @ Matrix(a).inverted()).to_quaternion().angle) == pytest.approx(wanted, abs=0.02)
    assert apart(rest, turns(character, "pelvis", (1,))) < 1e-2


def test_another_source_is_followed(character, walk):
    bpy.context.scene.mocap.filepath = walk
    bpy.ops.mocap.retarget(filepath=walk)
    row = character.mocap.rows["head"]
    row.source = "upperneck"
    assert (row.source, row.rule, row.by_hand, row.confidence) == ("upperneck", "copy", True, 1.0)
    before = turns(character, "head", (30,))
    assert bpy.ops.mocap.retarget(filepath=walk) == {"FINISHED"}
    assert apart(before, turns(character, "head", (30,))) > 0.5
    row = character.mocap.rows["head"]
    assert row.source == "upperneck"  # not matched away


def test_no_source_keeps_the_pose(character, walk):
    bpy.ops.mocap.retarget(filepath=walk)
    character.mocap.rows["head"].source = "  "
    assert bpy.ops.mocap.retarget(filepath=walk) == {"FINISHED"}
    from mocap_addon.blender import compat

    keys = {curve.data_path: len(curve.keyframe_points) for curve in compat.all_curves(character.animation_data.action)}
    assert keys['pose.bones["neck_01"].rotation_quaternion'] > 50
    assert keys.get('pose.bones["head"].rotation_quaternion', 1) == 1  # at most put back to rest, where the action before had moved it


def test_an_unmatched_bone_can_be_given_a_source(character, walk):
    bpy.ops.mocap.retarget(filepath=walk)
    character.mocap.rows["index_01_l"].source = "lfingers"
    assert bpy.ops.mocap.retarget(filepath=walk) == {"FINISHED"}
    assert apart(turns(character, "index_01_l", (1,)), turns(character, "index_01_l", (40,))) > 1.0


def test_a_wrong_source_is_one_sentence(character, walk):
    bpy.ops.mocap.retarget(filepath=walk)
    amounts = counts()
    character.mocap.rows["head"].source = "no such bone"
    assert "no such bone" in refused(bpy.ops.mocap.retarget, filepath=walk)
    assert counts() == amounts


def test_an_edit_shows_how_the_bone_points_now(character, walk):
    bpy.context.scene.mocap.filepath = walk
    bpy.ops.mocap.match_bones()
    row = character.mocap.rows["upperarm_l"]
    assert row.residual < 0.1 and lists.colour(row) == lists.GOOD
    row.correction = (0.0, math.radians(25.0), 0.0)
    assert row.residual == pytest.approx(25.0, abs=1.5) and lists.colour(row) == lists.BAD and lists.doubtful(row)
    bpy.ops.mocap.reset_corrections(which="ALL")
    assert row.residual < 0.1


def test_a_take_of_another_skeleton(character, walk):
    other = str(need(SHARED / "makehuman" / "walk1.bvh"))
    bpy.ops.mocap.retarget(filepath=walk)
    assert bpy.ops.mocap.retarget(filepath=other) == {"FINISHED"}  # nobody worked on the table: matched anew
    assert "lhumerus" not in character.mocap.rows["upperarm_l"].sources
    character.mocap.rows["upperarm_l"].correction = (0.3, 0.0, 0.0)
    amounts = counts()
    assert "Match" in refused(bpy.ops.mocap.retarget, filepath=walk)
    assert counts() == amounts and character.mocap.rows["upperarm_l"].correction[0] == pytest.approx(0.3, abs=1e-5)
    bpy.context.scene.mocap.filepath = walk
    assert bpy.ops.mocap.match_bones() == {"FINISHED"}
    assert character.mocap.rows["upperarm_l"].source == "lhumerus"
    assert character.mocap.rows["upperarm_l"].correction[0] == pytest.approx(0.3, abs=1e-5)
    assert bpy.ops.mocap.match_bones(keep=False) == {"FINISHED"}
    assert not table_sync.is_edited(character)


def test_save_and_load(character, walk, tmp_path):
    bpy.context.scene.mocap.filepath = walk
    path = tmp_path / "table"
    bpy.ops.mocap.match_bones()
    character.mocap.rows["hand_r"].correction = (math.radians(7.25), 0.0, math.radians(-90.0))
    table = table_sync.to_table(character)
    assert bpy.ops.mocap.save_table(filepath=str(path)) == {"FINISHED"}
    found = rig.load_table(tmp_path / "table.toml")
    assert "settings" in found.extra  # tests/ui/test_extras_panel.py
    same(replace(found, extra={}), table)
    bpy.ops.mocap.match_bones(keep=False)
    assert table_sync.to_table(character).row("hand_r").correction == (0.0, 0.0, 0.0)
    assert bpy.ops.mocap.load_table(filepath=str(tmp_path / "table.toml")) == {"FINISHED"}
    assert table_sync.to_table(character).row("hand_r").correction == (7.25, 0.0, -90.0)
    assert len(character.mocap.rows) == len(character.data.bones)
    assert bpy.ops.mocap.retarget(filepath=walk) == {"FINISHED"}


def test_wrong_tables_are_one_sentence(character, walk, tmp_path):
    bpy.ops.mocap.retarget(filepath=walk)
    before = table_sync.to_table(character)
    (tmp_path / "bad.toml").write_text("this is [not a table")
    (tmp_path / "other.toml").write_text("title = 'something else'\n")
    rig.save_table(TABLE, tmp_path / "stranger.toml")
    for name in ("missing.toml", "bad.toml", "other.toml"):
        assert name in refused(bpy.ops.mocap.load_table, filepath=str(tmp_path / name))
    assert "another character" in refused(bpy.ops.mocap.load_table, filepath=str(tmp_path / "stranger.toml"))
    refused(bpy.ops.mocap.save_table, filepath=str(tmp_path / "no" / "such" / "folder" / "t.toml"))
    refused(bpy.ops.mocap.load_table)
    refused(bpy.ops.mocap.save_table)
    same(table_sync.to_table(character), before)


def test_mirror(character, walk):
    bpy.context.scene.mocap.filepath = walk
    bpy.ops.mocap.match_bones()
    rows = character.mocap.rows
    for name, turn in (("upperarm_l", (10.0, 20.0, 30.0)), ("thumb_02_l", (1.0, 2.0, 3.0)), ("upperarm_r", (0.0, 0.0, 5.0))):
        rows[name].correction = [math.radians(a) for a in turn]
    assert bpy.ops.mocap.mirror_corrections(which="LEFT") == {"FINISHED"}
    table = table_sync.to_table(character)
    assert table.row("upperarm_r").correction == (10.0, -20.0, -30.0)
    assert table.row("thumb_02_r").correction == (1.0, -2.0, -3.0)
    assert table.row("thumb_01_r").correction == (0.0, 0.0, 0.0)
    rows["hand_r"].correction = (math.radians(4.0), math.radians(5.0), 0.0)
    character.mocap.active_row = rows.find("hand_r")
    assert bpy.ops.mocap.mirror_corrections(which="ONE") == {"FINISHED"}
    assert table_sync.to_table(character).row("hand_l").correction == (4.0, -5.0, 0.0)
    assert table_sync.to_table(character).row("upperarm_l").correction == (10.0, 20.0, 30.0)
    character.mocap.active_row = rows.find("head")
    assert bpy.ops.mocap.mirror_corrections(which="ONE") == {"CANCELLED"}


def test_reset(character, walk):
    bpy.ops.mocap.retarget(filepath=walk)
    rows = character.mocap.rows
    for name in ("head", "hand_l"):
        rows[name].correction = (0.1, 0.2, 0.3)
    character.mocap.active_row = rows.find("head")
    bpy.ops.mocap.reset_corrections(which="ONE")
    assert not table_sync.corrected(rows["head"]) and table_sync.corrected(rows["hand_l"])
    bpy.ops.mocap.reset_corrections(which="ALL")
    assert not table_sync.is_edited(character)


def test_no_bone_chosen_is_one_sentence(character, walk):
    bpy.ops.mocap.retarget(filepath=walk)
    character.mocap.active_row = 999
    assert "No bone" in refused(bpy.ops.mocap.reset_corrections, which="ONE")
    assert "No bone" in refused(bpy.ops.mocap.mirror_corrections, which="ONE")


def test_filters(character, walk):
    bpy.context.scene.mocap.filepath = walk
    bpy.ops.mocap.match_bones()
    rows = character.mocap.rows
    rows["hand_l"].correction = (0.5, 0.0, 0.0)
    rows["head"].confidence = 0.4

    def names(which: str, text: str = "") -> set[str]:
        return {row.name for row in rows if lists.shown(row, which, text)}

    assert names("ALL") == set(character.data.bones.keys())
    assert names("MATCHED") | names("UNMATCHED") == names("ALL") and not names("MATCHED") & names("UNMATCHED")
    assert {"Root", "index_01_l"} <= names("UNMATCHED")
    assert names("EDITED") == {"hand_l"}
    assert "head" in names("DOUBTFUL") and "thigh_l" not in names("DOUBTFUL")
    assert names("ALL", "lhumerus") == {"upperarm_l"}  # by what it follows
    assert names("ALL", "left thigh") == {"thigh_l"}  # by body part
    assert "clavicle_l" in names("ALL", "clav")


def test_search_offers_the_takes_bones(character, walk):
    scene = bpy.context.scene
    assert takes.joint_names(scene) == []
    scene.mocap.filepath = walk
    assert "lhumerus" in takes.joint_names(scene, "HUM") and "head" not in takes.joint_names(scene, "HUM")
    assert len(takes.joint_names(scene)) == 31


def test_operators_say_why_they_are_grey(character):
    for operator in (
        bpy.ops.mocap.save_table,
        bpy.ops.mocap.reset_corrections,
        bpy.ops.mocap.mirror_corrections,
        bpy.ops.mocap.match_bones,
    ):
        assert not operator.poll()
        with pytest.raises(RuntimeError, match=r"Press Match first|Choose a take first"):
            operator()


def test_an_overridden_character(character, walk, tmp_path):
    """Editable, and its table is there again when the file is opened."""
    name, library, path = character.name, str(tmp_path / "library.blend"), str(tmp_path / "shot.blend")
    group = bpy.data.collections.new("Character")
    for obj in bpy.data.objects:
        group.objects.link(obj)
    bpy.data.libraries.write(library, {group})
    bpy.ops.wm.read_factory_settings(use_empty=True)
    with bpy.data.libraries.load(library, link=True) as (_found, wanted):
        wanted.collections = ["Character"]
    linked = bpy.data.collections["Character"]
    bpy.context.scene.collection.children.link(linked)
    linked.override_hierarchy_create(bpy.context.scene, bpy.context.view_layer, do_fully_editable=True)
    character = bpy.data.objects[name, None]
    assert character.override_library is not None

    assert bpy.ops.mocap.retarget(filepath=walk, target=name) == {"FINISHED"}  # the override, not the linked one of the same name
    row = character.mocap.rows["head"]
    assert not [name for name in ("correction", "source", "movable") if row.is_property_readonly(name)]
    assert not character.mocap.is_property_readonly("active_row")
    row.correction = (math.radians(15.0), 0.0, 0.0)
    assert bpy.ops.mocap.retarget(filepath=walk, target=name) == {"FINISHED"}
    table = table_sync.to_table(character)
    bpy.ops.wm.save_as_mainfile(filepath=path)
    bpy.ops.wm.open_mainfile(filepath=path)
    again = table_sync.to_table(bpy.data.objects[name, None])
    assert again.row("head").correction == (15.0, 0.0, 0.0)
    assert [(r.role, r.target, r.source) for r in again.rows] == [(r.role, r.target, r.source) for r in table.rows]


def test_a_twist_bone_is_a_row_whose_share_can_be_changed(character, walk):
    bpy.context.view_layer.objects.active = character
    bpy.ops.object.mode_set(mode="EDIT")
    bones = character.data.edit_bones
    made = bones.new("lowerarm_twist_01_l")
    made.head = bones["lowerarm_l"].head.lerp(bones["hand_l"].head, 0.5)
    made.tail = made.head + 0.2 * (bones["hand_l"].head - bones["lowerarm_l"].head)
    made.parent = bones["lowerarm_l"]
    bpy.ops.object.mode_set(mode="OBJECT")
    bpy.context.scene.mocap.filepath = walk
    bpy.ops.mocap.retarget(filepath=walk)
    row = character.mocap.rows["lowerarm_twist_01_l"]
    assert (row.rule, row.source) == ("twist", character.mocap.rows["hand_l"].source) and row.blend == pytest.approx(0.5, abs=1e-3)
    assert lists.shown(row, "ALL", "twist bone") and not lists.doubtful(row)
    character.mocap.rows["hand_l"].correction = (math.radians(40.0), 0.0, 0.0)
    assert bpy.ops.mocap.retarget(filepath=walk) == {"FINISHED"}
    whole = local_turn(character, "lowerarm_twist_01_l", 30)
    row = character.mocap.rows["lowerarm_twist_01_l"]
    row.blend = 0.25
    assert bpy.ops.mocap.retarget(filepath=walk) == {"FINISHED"}
    assert character.mocap.rows["lowerarm_twist_01_l"].blend == pytest.approx(0.25)
    assert local_turn(character, "lowerarm_twist_01_l", 30) == pytest.approx(0.5 * whole, abs=1e-4) and whole > math.radians(8.0)
    row = character.mocap.rows["lowerarm_twist_01_l"]
    row.source = "lradius"  # a person's own choice: it follows that bone like any other
    assert (row.rule, row.blend) == ("copy", 0.0)


def local_turn(obj: bpy.types.Object, bone: str, frame: int) -> float:
    """Radians that a bone is turned away from rest, in its parent's frame."""
    bpy.context.scene.frame_set(frame)
    return obj.pose.bones[bone].matrix_basis.to_quaternion().angle
