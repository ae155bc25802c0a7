# SPDX-License-Identifier: GPL-3.0-or-later
"""Drawing the panels, with a layout that checks every property, operator and icon by name; without touching a file."""

from __future__ import annotations

import builtins
import os
from types import SimpleNamespace

import bpy
import pytest

from mocap_addon.blender import armature
from mocap_addon.ui import lists, panels, recent, takes
from tests.paths import SHARED, need

ICONS = set(bpy.types.UILayout.bl_rna.functions["prop"].parameters["icon"].enum_items.keys())
PROP_KEYWORDS = set(bpy.types.UILayout.bl_rna.functions["prop"].parameters.keys())
TABS = (
    panels.MOCAP_PT_take,
    panels.MOCAP_PT_take_overrides,
    panels.MOCAP_PT_character,
    panels.MOCAP_PT_bones,
    panels.MOCAP_PT_bone,
    panels.MOCAP_PT_reference_pose,
    panels.MOCAP_PT_body,
    panels.MOCAP_PT_root,
    panels.MOCAP_PT_extras,
    panels.MOCAP_PT_mask,
)


class Layout:
    """Stands for UILayout: records the words shown and refuses what Blender would refuse."""

    def __init__(self, said: list[str] | None = None) -> None:
        self.said = [] if said is None else said

    def _sub(self, **_options) -> Layout:
        return Layout(self.said)

    row = column = split = box = _sub

    def label(self, text="", icon="NONE", translate=True):
        assert icon in ICONS, icon
        self.said.append(text)

    def prop(self, data, name, **options):
        assert name in data.bl_rna.properties or name in type(data).__annotations__, name
        assert options.get("icon", "NONE") in ICONS
        assert set(options) <= PROP_KEYWORDS, options
        self.said.append(options.get("text") or data.bl_rna.properties[name].name)

    def operator(self, name, text=None, icon="NONE", **_options):
        assert icon in ICONS, icon
        module, _, func = name.partition(".")
        assert func in dir(getattr(bpy.ops, module)), name
        self.said.append(text or name)
        return SimpleNamespace()

    def prop_enum(self, data, name, value):
        assert value in [item.identifier for item in type(data).bl_rna.properties[name].enum_items]
        self.said.append(value)

    def operator_menu_enum(self, name, prop, **options):
        assert prop in getattr(bpy.ops.mocap, name.partition(".")[2]).get_rna_type().properties
        return self.operator(name, **options)

    def menu(self, name, text="", icon="NONE"):
        assert hasattr(bpy.types, name) and icon in ICONS

    def template_list(self, kind, _name, data, items, active, active_name, **_options):
        assert hasattr(bpy.types, kind)
        assert hasattr(data, items) and hasattr(active, active_name)
        item_layout = SimpleNamespace(filter_name="", bitflag_filter_item=1)
        flags, _order = lists.MOCAP_UL_bones.filter_items(item_layout, context(), data, items)
        assert len(flags) == len(getattr(data, items))
        for item in getattr(data, items):
            lists.MOCAP_UL_bones.draw_item(item_layout, context(), self, data, item, 0, active, active_name)


def context(width: int = 300) -> SimpleNamespace:
    real = bpy.context
    preferences = SimpleNamespace(system=SimpleNamespace(ui_scale=1.0))  # there is none without a window
    return SimpleNamespace(scene=real.scene, object=real.object, preferences=preferences, region=SimpleNamespace(width=width))


def drawn(*which, width: int = 300) -> str:
    """Every word that the panels show, a line each."""
    layout = Layout()
    for panel in which or (*TABS, panels.MOCAP_PT_retarget):
        if not hasattr(panel, "poll") or panel.poll(context(width)):
            panel.draw(SimpleNamespace(layout=layout), context(width))
    return "\n".join(layout.said)


def test_an_empty_scene_says_what_to_do():
    text = drawn()
    assert "Choose a recording" in text and "armature" in text


def test_a_read_take_is_described(character, walk):
    bpy.context.scene.mocap.filepath = walk
    text = drawn(panels.MOCAP_PT_take)
    for word in ("CMU", "2.9 s", "343 frames", "120", "5.644 cm", "Y up", "Rest Pose"):
        assert word in text.replace("\n", " "), word
    assert "Unreal" in drawn(panels.MOCAP_PT_character)
    assert "Not matched yet" in drawn(panels.MOCAP_PT_bones)
    bpy.ops.mocap.match_bones()
    for i, row in enumerate(character.mocap.rows):
        character.mocap.active_row = i
        assert row.name in drawn(width=300) and drawn(width=700)


def test_unusable_characters_say_why(character):
    character.scale.x = -1.0
    bpy.context.view_layer.update()
    assert "mirrored" in drawn(panels.MOCAP_PT_character)
    character.scale = (1.0, 1.0, 3.0)
    bpy.context.view_layer.update()
    assert "scaled differently" in drawn(panels.MOCAP_PT_character)
    bpy.context.scene.mocap.target = character
    bpy.data.collections.new("nowhere")
    for collection in list(character.users_collection):
        collection.objects.unlink(character)
    character.scale = (1.0, 1.0, 1.0)
    assert "deleted" in drawn(panels.MOCAP_PT_character).replace("\n", " ") or "scaled" in drawn(panels.MOCAP_PT_character)


def test_lines_fit_the_sidebar(character, tmp_path):
    bpy.context.scene.mocap.filepath = str(tmp_path / ("long_" * 40 + ".bvh"))
    for width in (160, 300, 600):
        lines = drawn(panels.MOCAP_PT_take, width=width).splitlines()
        assert max(map(len, lines)) <= max(12, (width - 50) / 6.3)


def test_drawing_reads_no_file_and_parses_nothing(character, walk, monkeypatch):
    bpy.context.scene.mocap.filepath = walk
    bpy.ops.mocap.match_bones()
    drawn()
    with monkeypatch.context() as forbidden:
        for module, name in (
            (builtins, "open"),
            (os, "stat"),
            (os, "listdir"),
            (takes.take_reader, "read_takes"),
            (takes.rig, "match"),
            (armature, "read"),
        ):
            forbidden.setattr(module, name, lambda *_a, **_k: pytest.fail("drawing must not do this"))
        drawn()
        takes.forget_all()
        assert "mocap.read_take" in drawn(panels.MOCAP_PT_take)  # asks, does not read
        recent.MOCAP_MT_recent.draw(SimpleNamespace(layout=Layout()), context())


def test_a_reference_that_was_found_is_said_and_can_be_chosen(character):
    """A rest pose that is no body: the panel says where the reference is from and how sure that is; a choice of one's own counts."""
    panel = bpy.context.scene.mocap
    panel.filepath = str(need(SHARED / "bandai_nc" / "dataset-1_walk_normal_001.bvh"))
    words = " ".join(drawn(panels.MOCAP_PT_reference_pose).split())
    assert "known from the kind of skeleton" in words and "% sure" in words
    panel.reference = "REST"
    assert "known from" not in drawn(panels.MOCAP_PT_reference_pose)
    panel.reference = "FRAME"
    assert "Frame" in drawn(panels.MOCAP_PT_reference_pose).splitlines()
