# SPDX-License-Identifier: GPL-3.0-or-later
"""The same contract on every Blender."""

from __future__ import annotations

import re

import bpy
import pytest

from mocap_addon.blender import compat
from tests.paths import ROOT


def test_only_compat_reads_the_version():
    reading = re.compile(r"app\s*\.\s*version|from\s+bpy\.app\s+import|getattr\(\s*bpy\.app")
    found = sorted(p.name for p in (ROOT / "mocap_addon").rglob("*.py") if reading.search(p.read_text(encoding="utf-8")))
    assert found == ["compat.py"]


def test_a_new_action_has_one_slot_and_takes_curves_in_groups():
    action, slot, bag = compat.new_action("Take")
    first = compat.new_curve(bag, 'pose.bones["a"].location', 0, "a")
    second = compat.new_curve(bag, 'pose.bones["a"].location', 2, "a")
    third = compat.new_curve(bag, '["x"]', 0, "Mocap")
    assert [c.group.name for c in (first, second, third)] == ["a", "a", "Mocap"]
    assert compat.all_curves(action) == compat.all_curves(action, slot) == [first, second, third]
    assert compat.slots(action) == (slot,)
    assert compat.bag_of(action, slot) == bag
    assert (slot is not None) == compat.SLOTTED == hasattr(bpy.types, "ActionSlot")
    with pytest.raises(RuntimeError):
        compat.new_curve(bag, '["x"]', 0, "Mocap")


def test_names_are_made_unique_by_blender():
    assert [compat.new_action("Take")[0].name for _ in range(2)] == ["Take", "Take.001"]


def test_curves_of_one_slot_only():
    action, slot, bag = compat.new_action("Take")
    compat.new_curve(bag, "location", 0, "g")
    if not compat.SLOTTED:
        return
    other = action.slots.new(id_type="OBJECT", name="Other")
    assert compat.bag_of(action, other) is None and compat.all_curves(action, other) == []
    theirs = compat.new_curve(action.layers[0].strips[0].channelbag(other, ensure=True), "location", 1, "g")
    assert compat.all_curves(action, other) == [theirs]
    assert len(compat.all_curves(action)) == 2 and len(compat.all_curves(action, slot)) == 1
    assert compat.bag_of(action, None) is None
    empty = bpy.data.actions.new("empty")
    assert compat.slots(empty) == () and compat.all_curves(empty) == []


def test_assigning_binds_the_slot_whatever_the_object_is_called():
    obj = bpy.data.objects.new("Someone", None)
    bpy.context.scene.collection.objects.link(obj)
    action, slot, bag = compat.new_action("Take")
    curve = compat.new_curve(bag, "location", 1, "g")
    curve.keyframe_points.add(1)
    curve.keyframe_points[0].co = (1.0, 7.0)
    compat.assign(obj.animation_data_create(), action, slot)
    assert compat.assigned_slot(obj.animation_data) == slot
    bpy.context.scene.frame_set(1)
    assert obj.evaluated_get(bpy.context.evaluated_depsgraph_get()).matrix_world.translation.y == 7.0
    compat.assign(obj.animation_data, None)
    assert obj.animation_data.action is None
