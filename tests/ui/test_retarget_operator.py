# SPDX-License-Identifier: GPL-3.0-or-later
"""The Retarget operator on real data: it makes an action, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import bpy
import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.blender import compat, job
from mocap_addon.motion.errors import RigError
from mocap_addon.ui import settings, takes
from tests.paths import SHARED, need

from .helpers import apart, counts, fingerprint, give_action, refused, turns


def test_one_call_makes_the_action(character, walk):
    assert bpy.ops.mocap.retarget(filepath=walk, target=character.name) == {"FINISHED"}
    action = character.animation_data.action
    assert action is not None and action.name == "asf_02_01_walk"
    # 343 samples at 120 a second are 2.85 s: frames 1 to 69 of a scene at 24
    assert tuple(action.frame_range) == (1.0, 69.0)
    assert len(character.mocap.rows) == len(character.data.bones)
    assert character.mocap.rows["upperarm_l"].source == "lhumerus"
    assert apart(turns(character, "thigh_l", (1,)), turns(character, "thigh_l", (20,))) > 10.0


def test_nothing_else_changes(character, walk):
    character.location, character.scale = (1.0, 2.0, 0.5), (1.1, 1.1, 1.1)
    old = give_action(character)
    bpy.context.scene.frame_set(5)
    before = fingerprint(ignore_assigned=True)
    assert bpy.ops.mocap.retarget(filepath=walk) == {"FINISHED"}
    new = character.animation_data.action
    assert new != old and (old.users > 0)
    assert fingerprint(ignore_actions=(new.name,), ignore_assigned=True) == before


def test_works_from_any_mode_and_selection(character, walk):
    for obj in bpy.data.objects:
        obj.select_set(False)
    mesh = next(o for o in bpy.data.objects if o.type == "MESH" and o.find_armature() == character)
    bpy.context.view_layer.objects.active = mesh  # the armature of the selected mesh is meant
    character.hide_set(True)
    before = fingerprint(ignore_assigned=True)
    assert bpy.ops.mocap.retarget(filepath=walk) == {"FINISHED"}
    assert fingerprint(ignore_actions=(character.animation_data.action.name,), ignore_assigned=True) == before
    character.hide_set(False)
    bpy.context.view_layer.objects.active = character
    for mode in ("POSE", "EDIT"):
        bpy.ops.object.mode_set(mode=mode)
        assert bpy.ops.mocap.retarget(filepath=walk, target=character.name) == {"FINISHED"}
        assert character.mode == mode
        bpy.ops.object.mode_set(mode="OBJECT")


def test_undo_is_one_step(character, walk):
    give_action(character)
    bpy.ops.ed.undo_push(message="before")
    name, before, amounts = character.name, fingerprint(), counts()
    assert bpy.ops.mocap.retarget("EXEC_DEFAULT", True, filepath=walk, target=name) == {"FINISHED"}
    assert fingerprint() != before
    bpy.ops.ed.undo()
    assert fingerprint() == before
    assert counts() == amounts
    assert len(bpy.data.objects[name].mocap.rows) == 0
    bpy.ops.ed.redo()
    assert len(bpy.data.objects[name].mocap.rows) > 0


def test_the_panel_is_what_the_button_uses(character, walk):
    """The button's invoke hands the panel's settings on (it needs a window; without one Blender goes straight to execute)."""
    panel = bpy.context.scene.mocap
    panel.filepath, panel.rate_mode, panel.custom_rate = walk, "CUSTOM", "12"
    panel.use_frame_start, panel.frame_start, panel.travel_auto = True, 101.0, False

    class Operator:
        travel_auto = True
        properties = SimpleNamespace(is_property_set=lambda name: name == "travel_auto")  # the one the caller gave

    settings.copy_unset(panel, Operator)
    handed = {name: getattr(Operator, name) for name in settings.SHARED}
    assert handed["travel_auto"] is True
    assert bpy.ops.mocap.retarget(**handed) == {"FINISHED"}  # the file is the panel's
    curve = compat.all_curves(character.animation_data.action)[0]
    frames = [round(point.co[0], 3) for point in curve.keyframe_points]
    assert frames[:3] == [101.0, 103.0, 105.0]  # 12 a second in a scene of 24


def test_a_script_is_not_steered_by_the_panel(character, walk):
    panel = bpy.context.scene.mocap
    panel.use_frame_start, panel.frame_start, panel.rate_mode = True, 500.0, "SOURCE"
    assert bpy.ops.mocap.retarget(filepath=walk) == {"FINISHED"}
    assert tuple(character.animation_data.action.frame_range) == (1.0, 69.0)


def test_every_sample_as_recorded(character, walk):
    assert bpy.ops.mocap.retarget(filepath=walk, rate_mode="SOURCE") == {"FINISHED"}
    curve = compat.all_curves(character.animation_data.action)[0]
    assert len(curve.keyframe_points) == 343
    assert curve.keyframe_points[1].co[0] == pytest.approx(1.2, abs=1e-4)  # 24 / 120


def test_travel_by_hand(character, walk):
    def way() -> float:
        ends = []
        for frame in (1, 69):
            bpy.context.scene.frame_set(frame)
            seen = character.evaluated_get(bpy.context.evaluated_depsgraph_get())
            ends.append(np.array((seen.matrix_world @ seen.pose.bones["pelvis"].matrix).translation))
        return float(np.linalg.norm((ends[1] - ends[0])[:2]))

    bpy.ops.mocap.retarget(filepath=walk, travel_auto=False, travel=1.0)
    full = way()
    bpy.ops.mocap.retarget(filepath=walk, travel_auto=False, travel=0.5)
    # the pelvis bone also turns about the hips' middle, which no scale touches: well under 1 %
    assert full > 1.0 and way() == pytest.approx(0.5 * full, rel=5e-3)


WRONG_FILES = {
    "missing.bvh": None,
    "empty.bvh": b"",
    "binary.bvh": bytes(range(256)) * 20,
    "words.bvh": b"Once upon a time\nthere was no motion.\n",
    "half.bvh": b"HIERARCHY\nROOT Hips\n{\n OFFSET 0 0 0\n CHANNELS 6 Xposition Yposition",
    "take.xyz": b"1 2 3",
}


@pytest.mark.parametrize("name", WRONG_FILES)
def test_a_wrong_file_is_one_sentence(character, tmp_path, name):
    path = tmp_path / name
    if WRONG_FILES[name] is not None:
        path.write_bytes(WRONG_FILES[name])
    give_action(character)
    before, amounts = fingerprint(), counts()
    sentence = refused(bpy.ops.mocap.retarget, filepath=str(path), target=character.name)
    assert name in sentence
    assert fingerprint() == before and counts() == amounts and not character.mocap.rows
    refused(bpy.ops.mocap.import_take, directory=str(tmp_path), files=[{"name": name}])
    assert fingerprint() == before and counts() == amounts
    bpy.context.scene.mocap.filepath = str(path)  # the panel takes it and shows the sentence
    assert name in takes.peek(bpy.context.scene).error


def test_wrong_characters_are_one_sentence(character, walk, tmp_path):
    empty = bpy.data.objects.new("Hollow", bpy.data.armatures.new("Hollow"))
    bpy.context.scene.collection.objects.link(empty)
    mesh = next(o for o in bpy.data.objects if o.type == "MESH")
    amounts = counts()
    assert "Nobody" in refused(bpy.ops.mocap.retarget, filepath=walk, target="Nobody")
    assert mesh.name in refused(bpy.ops.mocap.retarget, filepath=walk, target=mesh.name)
    assert "no bones" in refused(bpy.ops.mocap.retarget, filepath=walk, target="Hollow")
    character.scale = (-1.0, 1.0, 1.0)
    bpy.context.view_layer.update()
    assert "mirrored" in refused(bpy.ops.mocap.retarget, filepath=walk, target=character.name)
    character.scale = (1.0, 1.0, 2.0)
    bpy.context.view_layer.update()
    assert "scaled differently" in refused(bpy.ops.mocap.retarget, filepath=walk, target=character.name)
    assert counts() == amounts


def test_a_linked_character_is_refused(character, walk, tmp_path):
    library, name = tmp_path / "library.blend", character.name
    bpy.data.libraries.write(str(library), {character})
    bpy.ops.wm.read_factory_settings(use_empty=True)
    with bpy.data.libraries.load(str(library), link=True) as (_found, wanted):
        wanted.objects = [name]
    bpy.context.scene.collection.objects.link(bpy.data.objects[name])
    amounts = counts()
    assert "Library Override" in refused(bpy.ops.mocap.retarget, filepath=walk, target=name)
    assert counts() == amounts


def test_other_wrong_wishes_are_one_sentence(character, walk):
    amounts, before = counts(), fingerprint()
    assert "No take" in refused(bpy.ops.mocap.retarget)
    assert "99999" in refused(bpy.ops.mocap.retarget, filepath=walk, reference="FRAME", reference_frame=99999)
    assert "soon" in refused(bpy.ops.mocap.retarget, filepath=walk, rate_mode="CUSTOM", custom_rate="soon")
    assert "fast" in refused(bpy.ops.mocap.retarget, filepath=walk, rate="fast")
    toy = need(SHARED / "misc_bvh" / "usdbvh_two_joints.bvh")
    refused(bpy.ops.mocap.retarget, filepath=str(toy))
    assert fingerprint() == before
    bpy.context.view_layer.objects.active = None
    for obj in bpy.data.objects:
        obj.select_set(False)
    before = fingerprint()
    assert "No character" in refused(bpy.ops.mocap.retarget, filepath=walk)
    assert "No character" in refused(bpy.ops.mocap.import_take, directory=str(toy.parent), files=[{"name": toy.name}])
    assert counts() == amounts and fingerprint() == before


@pytest.mark.parametrize("had_action", [False, True])
@pytest.mark.parametrize("where", ["curve", "assign", "table"])
def test_a_fault_in_the_middle_leaves_nothing(character, walk, monkeypatch, where, had_action):
    if had_action:
        give_action(character)

    def fail(*_args, **_kwargs):
        raise OSError("injected")

    before, amounts, animated = fingerprint(), counts(), character.animation_data is not None
    if where == "curve":
        calls = []
        real = compat.new_curve
        monkeypatch.setattr(compat, "new_curve", lambda *a, **k: fail() if len(calls) > 50 else calls.append(1) or real(*a, **k))
    elif where == "assign":
        monkeypatch.setattr(compat, "assign", fail)
    else:
        from mocap_addon.ui import table_sync

        monkeypatch.setattr(table_sync, "from_table", fail)
    with pytest.raises(RuntimeError, match="injected"):
        bpy.ops.mocap.retarget(filepath=walk)
    monkeypatch.undo()
    assert fingerprint() == before and counts() == amounts
    assert (character.animation_data is not None) == animated
    assert bpy.ops.mocap.retarget(filepath=walk) == {"FINISHED"}


def two_performers(monkeypatch, walk):
    real = formats.read

    def read(path, options=None, progress=None):
        take = real(path, options)[0]
        return [take, replace(take.block(0, 100), name="second")]

    monkeypatch.setattr(formats, "read", read)
    takes.forget_all()


def test_every_take_of_a_file_is_an_action_and_the_first_plays(character, walk, monkeypatch):
    two_performers(monkeypatch, walk)
    assert bpy.ops.mocap.retarget(filepath=walk) == {"FINISHED"}
    takes.forget_all()
    assert sorted(a.name for a in bpy.data.actions) == ["asf_02_01_walk", "second"]
    assert character.animation_data.action.name == "asf_02_01_walk"
    assert bpy.data.actions["second"].users > 0  # kept when the file is saved


def test_one_failing_take_takes_the_others_back(character, walk, monkeypatch):
    old = give_action(character)
    two_performers(monkeypatch, walk)
    real, calls = job.retarget_onto, []

    def second_fails(*args, **kwargs):
        calls.append(1)
        if len(calls) == 2:
            raise RigError("The second performer has no legs.")
        return real(*args, **kwargs)

    monkeypatch.setattr(job, "retarget_onto", second_fails)
    before, amounts, kept = fingerprint(), counts(), old.use_fake_user
    assert refused(bpy.ops.mocap.retarget, filepath=walk) == 'Take "second": The second performer has no legs.'
    takes.forget_all()
    assert fingerprint() == before and counts() == amounts and old.use_fake_user == kept


def test_files_dropped_together(character, walk, tmp_path):
    (tmp_path / "broken.bvh").write_text("HIERARCHY\nROOT")
    for name in ("a.bvh", "b.bvh"):
        (tmp_path / name).write_bytes(Path(walk).read_bytes())
    files = [{"name": n} for n in ("a.bvh", "broken.bvh", "b.bvh")]
    assert bpy.ops.mocap.import_take(directory=str(tmp_path), files=files) == {"FINISHED"}
    assert sorted(a.name for a in bpy.data.actions) == ["a", "b"]
    assert all(a.users for a in bpy.data.actions)


def test_a_second_run_does_not_read_the_file_again(character, walk, monkeypatch):
    bpy.ops.mocap.retarget(filepath=walk)
    monkeypatch.setattr(formats, "read", lambda *_: pytest.fail("the file was read twice"))
    assert bpy.ops.mocap.retarget(filepath=walk, travel_auto=False, travel=2.0) == {"FINISHED"}


def test_a_changed_file_is_read_again(character, walk, tmp_path):
    path = tmp_path / "take.bvh"
    text = Path(walk).read_text()
    path.write_text(text)
    bpy.ops.mocap.retarget(filepath=str(path))
    path.write_text(text.replace("Frame Time: 0.0083333", "Frame Time: 0.0166667") + "\n")
    bpy.ops.mocap.retarget(filepath=str(path))
    assert character.animation_data.action.frame_range[1] == pytest.approx(137.0)
