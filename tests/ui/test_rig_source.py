# SPDX-License-Identifier: GPL-3.0-or-later
"""A rig in the scene as the source, in the window."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from mocap_addon.blender import sources
from mocap_addon.ui import rig_takes, takes

from .helpers import apart, counts, fingerprint, press_retarget, refused, turns
from .test_drawing import drawn

FRAMES = (1, 20, 45)


@pytest.fixture
def suit(character, walk):
    """Another person that plays the walk; the first one is picked as the character."""
    scene = bpy.context.scene
    bpy.ops.mocap.retarget(filepath=walk, target=character.name)
    source = character.copy()
    source.name = "Suit"
    scene.collection.objects.link(source)
    character.animation_data_clear()
    character.mocap.rows.clear()
    scene.mocap.target = character
    scene.mocap.source = "RIG"
    return source


def test_an_empty_picker_says_what_to_do(suit):
    assert "Pick the armature" in drawn().replace("\n", " ")
    assert "No rig" in refused(press_retarget)


def test_the_rigs_motion_arrives(suit, character):
    bpy.context.scene.mocap.source_rig = suit
    assert "Unreal" in drawn() and takes.joint_names(bpy.context.scene, "clav") == ["clavicle_l", "clavicle_r"]
    assert press_retarget() == {"FINISHED"}
    for bone in ("head", "hand_l", "foot_r"):
        assert apart(turns(character, bone, FRAMES), turns(suit, bone, FRAMES)) < 0.05


def test_one_action_by_name_or_all(suit, character):
    scene = bpy.context.scene
    first = suit.animation_data.action
    second = first.copy()
    second.name = "Second"
    scene.mocap.source_rig = suit
    assert {"Second", first.name} <= set(rig_takes.labels(suit))
    scene.mocap.source_take = "Second"
    assert press_retarget() == {"FINISHED"} and character.animation_data.action.name.startswith("Second")
    scene.mocap.source_take = "no such"
    assert "no such" in refused(press_retarget)
    before, there = counts()["actions"], len([t for t in sources.takes_of(suit) if t.kind == "action"])
    scene.mocap.source_every = True
    assert press_retarget() == {"FINISHED"}
    assert counts()["actions"] - before == there > 1


def test_by_script(suit, character):
    assert bpy.ops.mocap.retarget(source_rig="Suit", target=character.name) == {"FINISHED"}
    assert "nobody" in refused(bpy.ops.mocap.retarget, source_rig="nobody", target=character.name)
    assert "own source" in refused(bpy.ops.mocap.retarget, source_rig="Suit", target="Suit")


def test_it_is_not_read_twice_unless_it_changed(suit, character, monkeypatch):
    scene = bpy.context.scene
    scene.mocap.source_rig = suit
    bpy.context.view_layer.update()
    reads = []
    real = sources.read_steps
    monkeypatch.setattr(sources, "read_steps", lambda *a, **k: reads.append(1) or real(*a, **k))
    press_retarget()
    scene.frame_set(12)
    press_retarget()
    assert not reads
    from mocap_addon.blender import compat

    curve = next(c for c in compat.all_curves(suit.animation_data.action) if c.data_path == 'pose.bones["head"].rotation_quaternion')
    curve.keyframe_points[3].co.y += 0.2
    curve.update()
    suit.animation_data.action.update_tag()
    bpy.context.view_layer.update()
    press_retarget()
    assert reads


def test_preview_of_a_rig(suit, character):
    scene = bpy.context.scene
    scene.mocap.source_rig = suit
    bpy.ops.mocap.match_bones()
    scene.frame_set(20)
    bpy.ops.mocap.preview()
    seen = [
        np.array(obj.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones["hand_l"].matrix.to_3x3().normalized())
        for obj in (suit, character)
    ]
    assert apart(seen[0][None], seen[1][None]) < 0.05


def test_a_rig_without_motion_is_one_sentence(suit):
    still = suit.copy()
    still.animation_data_clear()
    bpy.context.scene.collection.objects.link(still)
    bpy.context.scene.mocap.source_rig = still
    assert takes.peek(bpy.context.scene).error
    assert refused(press_retarget) == takes.peek(bpy.context.scene).error


def test_all_actions_are_one_undo_step(suit, character):
    panel = bpy.context.scene.mocap
    suit.animation_data.action.copy().name = "Second"
    panel.source_rig, panel.source_every = suit, True
    bpy.ops.ed.undo_push(message="before")
    name, before, amounts = character.name, fingerprint(), counts()
    assert bpy.ops.mocap.retarget("EXEC_DEFAULT", True, target=name) == {"FINISHED"}
    assert counts()["actions"] >= amounts["actions"] + 2
    bpy.ops.ed.undo()
    assert counts() == amounts and fingerprint() == before
