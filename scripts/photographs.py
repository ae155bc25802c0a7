# SPDX-License-Identifier: GPL-3.0-or-later
"""Photographs of every panel, menu and dialog of the Mocap tab, as a person sees them.

Run it in a Blender with a window::

    blender --factory-startup --enable-event-simulate --window-geometry 0 0 1600 1000 --python scripts/photographs.py -- FOLDER [NAME ...]

Each picture is ``FOLDER/NAME.png``: the sidebar for panels, what pops up for menus and dialogs. Blender ends by itself. They are taken
by ImageMagick's ``import`` from an X display that shows nothing but this window (a virtual one will do).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import bpy
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

WALK = ROOT / "demo" / "takes" / "cmu_02_01_walk.bvh"
CHARACTER = ROOT / "mocap_addon" / "demo" / "character.glb"
PAUSE = 0.4
"""Seconds in which Blender draws what was changed."""

Step = Callable[[], object]


class Studio:
    """The window, and what is photographed of it."""

    def __init__(self, folder: Path) -> None:
        from mocap_addon.ui import panels, registration

        self.folder, self.panels = folder, panels
        self.all = [cls for cls in registration.CLASSES if issubclass(cls, bpy.types.Panel)]
        self.there = list(self.all)
        self.window = bpy.context.window_manager.windows[0]
        self.area = next(area for area in self.window.screen.areas if area.type == "VIEW_3D")
        self.area.spaces.active.show_region_ui = True
        self.only(*(cls.__name__.removeprefix("MOCAP_PT_") for cls in self.all))  # open before they are drawn for the first time

    def region(self, kind: str) -> bpy.types.Region:
        return next(region for region in self.area.regions if region.type == kind)

    def only(self, *names: str) -> None:
        """Leave only some panels in the tab, all of them open."""
        for cls in reversed(self.there):
            bpy.utils.unregister_class(cls)
        self.there = [cls for cls in self.all if cls.__name__.removeprefix("MOCAP_PT_") in names]
        for cls in self.there:
            cls.bl_options = set(getattr(cls, "bl_options", set())) - {"DEFAULT_CLOSED"}
            bpy.utils.register_class(cls)

    def show_tab(self) -> Iterator[str | None]:
        """Click down the row of tabs until ours is there."""
        side = self.region("UI")
        for down in range(20, side.height, 22):
            if side.active_panel_category == "Mocap":
                return
            at = {"x": side.x + side.width - 12, "y": side.y + side.height - down}
            self.window.event_simulate(type="MOUSEMOVE", value="NOTHING", **at)
            yield None
            for value in ("PRESS", "RELEASE"):
                self.window.event_simulate(type="LEFTMOUSE", value=value, **at)
            yield None

    def do(self, operator: Callable[..., object], *arguments: object, **options: object) -> object:
        """Call an operator as a person does over the 3D view."""
        with bpy.context.temp_override(window=self.window, area=self.area, region=self.region("WINDOW")):
            return operator(*arguments, **options)

    def seen(self) -> np.ndarray:
        """(rows, columns, 4): the whole window, from the bottom up."""
        path = self.folder / "window.part.png"
        # Blender's own screenshot is black where the window is drawn in software.
        subprocess.run(["import", "-window", "root", str(path)], check=True, timeout=30)
        image = bpy.data.images.load(str(path))
        columns, rows = image.size
        pixels = np.empty(columns * rows * 4, dtype=np.float32)
        image.pixels.foreach_get(pixels)
        bpy.data.images.remove(image)
        path.unlink()
        return pixels.reshape(rows, columns, 4)

    def take(self, name: str, *, popup: bool = False) -> None:
        """Photograph the sidebar, or what has popped up."""
        path = self.folder / f"{name}.png"
        now = self.seen()
        if popup:
            rows, columns = np.nonzero((np.abs(now - self.plain) > 0.02).any(axis=2))
            part = now[max(rows.min() - 8, 0) : rows.max() + 9, max(columns.min() - 8, 0) : columns.max() + 9]
        else:
            side = self.region("UI")
            part = now[side.y : side.y + side.height, side.x : side.x + side.width]
        out = bpy.data.images.new("part", part.shape[1], part.shape[0])
        out.pixels.foreach_set(np.ascontiguousarray(part).ravel())
        out.filepath_raw, out.file_format = str(path), "PNG"
        out.save()
        bpy.data.images.remove(out)
        print("photographed", path, flush=True)


def tour(studio: Studio) -> Iterator[str | None]:
    """Everything, one state after the other; yields to let Blender draw, with a name where a picture is taken of the sidebar."""
    from mocap_addon.blender import characters

    scene = bpy.context.scene
    panel = scene.mocap
    for obj in list(bpy.data.objects):
        bpy.data.objects.remove(obj)
    yield None
    yield from studio.show_tab()
    yield "empty"
    desk = Path(tempfile.mkdtemp())
    (desk / "walk.bvh").write_bytes(WALK.read_bytes())
    (desk / "notes.md").write_text("# Notes")
    os.chdir(desk)
    panel.filepath = "walk.bvh"
    studio.only("take", "take_overrides")
    yield "take"
    panel.up, panel.unit, panel.rate = "Y", "OTHER", "120"
    yield "take_overrides"
    panel.up, panel.unit, panel.rate = "AUTO", "AUTO", ""
    panel.filepath = "notes.md"
    yield "take_problem"
    panel.filepath = "walk.bvh"

    found = characters.bring_in(CHARACTER)
    hero = found.armature
    hero.name = "Hero"
    bpy.context.view_layer.objects.active = hero
    studio.only("character")
    yield "character"
    studio.only("bones", "reference_pose")
    yield "bones_before"
    bpy.ops.mocap.match_bones()
    studio.only("bones", "bone")
    hero.mocap.active_row = hero.mocap.rows.find("upperarm_l")
    scene.frame_set(30)
    yield "bones"
    hero.mocap.rows["upperarm_l"].correction = (0.0, 0.2, 0.0)
    panel.row_filter = "EDITED"
    hero.mocap.rows["hand_l"].correction = (0.0, 0.1, 0.1)
    bpy.ops.mocap.preview()
    yield "bones_corrected"
    panel.row_filter = "MATCHED"
    studio.only("bones", "reference_pose")
    yield "reference_pose"
    bpy.ops.mocap.preview()
    studio.do(bpy.ops.mocap.edit_reference_pose, "INVOKE_DEFAULT")
    yield "reference_pose_edited"
    studio.do(bpy.ops.mocap.cancel_reference_pose, "INVOKE_DEFAULT")
    studio.only("body")
    hero.mocap.arm_space, hero.mocap.head_level = 0.1, 0.5
    yield "body"
    studio.only("retarget", "root", "mask")
    yield "retarget"
    panel.root_destination, panel.use_mask_range = "BONE", True
    yield None  # panels slide apart
    yield None
    yield "retarget_root_and_part"
    panel.root_destination, panel.use_mask_range = "HIPS", False
    studio.do(bpy.ops.mocap.retarget, "INVOKE_DEFAULT", True)
    scene.frame_end = 343
    scene.frame_set(60)
    studio.only("retarget")
    yield "retarget_done"
    hero.mocap.rows["upperarm_l"].correction = (0.0, 0.0, 0.0)
    hero.mocap.arm_space = 0.0
    yield "update"
    studio.do(bpy.ops.mocap.update, "EXEC_DEFAULT", True)
    yield from _extras_and_export(studio, hero, desk)
    studio.only("take", "character", "bones", "retarget")
    yield None
    yield "tab"
    yield from _popups(studio, hero)
    suit = hero.copy()
    suit.name = "Suit"
    scene.collection.objects.link(suit)
    suit.animation_data.action = hero.animation_data.action
    panel.target, panel.source, panel.source_rig = hero, "RIG", suit
    studio.only("take", "reference_pose", "bones")
    yield "rig_as_take"


def _extras_and_export(studio: Studio, hero: bpy.types.Object, desk: Path) -> Iterator[str | None]:
    """What goes with the pose, and the Export panel before and after."""
    export = bpy.context.scene.mocap.export
    studio.only("retarget", "extras")
    yield None
    yield "curves_and_props"
    studio.only("export")
    export.folder = str(desk / "web")
    yield None
    yield "export"
    studio.only("export", "export_settings")
    yield None
    yield "export_settings"
    for preset in ("CROWD", "UNREAL", "VRM"):
        export.preset = preset
        yield None
        yield f"export_settings_{preset.lower()}"
    export.preset = "WEB"
    export.which = "CHOSEN"
    studio.only("export")
    yield None
    yield "export_chosen_empty"
    bpy.ops.mocap.list_actions()
    studio.do(bpy.ops.mocap.export)
    yield None
    yield "export_done"
    export.formats, export.match = {"THREEJS", "GLB", "MAP"}, True
    bpy.context.view_layer.objects.active = hero
    studio.do(bpy.ops.mocap.export)
    yield None
    yield "export_done_own"


def _popups(studio: Studio, hero: bpy.types.Object) -> Iterator[str | None]:
    """Menus and dialogs: what is new in the window."""
    from mocap_addon.ui import presets

    for name, act in (
        ("redo", lambda: studio.do(bpy.ops.screen.redo_last, "INVOKE_DEFAULT")),
        ("hand_edits", lambda: studio.do(bpy.ops.mocap.hand_edits, "INVOKE_DEFAULT")),
        ("presets", lambda: studio.do(bpy.ops.wm.call_menu, name="MOCAP_MT_table_presets")),
        ("recent", lambda: studio.do(bpy.ops.wm.call_menu, name="MOCAP_MT_recent")),
        ("drop_file", lambda: _drop(studio)),
        ("keep_table", lambda: studio.do(bpy.ops.mocap.keep_table, "INVOKE_DEFAULT")),
        ("drop_table", lambda: (presets._names.append("Unreal"), studio.do(bpy.ops.mocap.drop_table, "INVOKE_DEFAULT"))),
    ):
        studio.window.event_simulate(type="MOUSEMOVE", value="NOTHING", x=500, y=450)
        yield None
        studio.plain = studio.seen()
        act()
        yield f"!{name}"
        for value in ("PRESS", "RELEASE"):
            studio.window.event_simulate(type="ESC", value=value, x=500, y=450)
        yield None


def _drop(studio: Studio) -> None:
    """What Blender asks when a file is dropped that may be a take or a character."""
    folder = tempfile.mkdtemp()
    Path(folder, "dance.glb").write_bytes(CHARACTER.read_bytes())
    studio.do(bpy.ops.wm.drop_import_file, "INVOKE_DEFAULT", directory=folder, files=[{"name": "dance.glb"}])


def main() -> None:
    words = sys.argv[sys.argv.index("--") + 1 :]
    folder, wanted = Path(words[0]).absolute(), set(words[1:])
    folder.mkdir(parents=True, exist_ok=True)
    import mocap_addon

    mocap_addon.register()
    bpy.context.preferences.view.show_splash = False
    steps: list[Iterator[str | None]] = []
    waiting: list[str] = []

    def go() -> float | None:
        try:
            if not steps:
                studio.append(Studio(folder))
                steps.append(tour(studio[0]))
            if waiting:
                name = waiting.pop()
                if not wanted or name.lstrip("!") in wanted:
                    studio[0].take(name.lstrip("!"), popup=name.startswith("!"))
            name = next(steps[0])
            if name:
                waiting.append(name)
            studio[0].area.tag_redraw()
            return PAUSE
        except StopIteration:
            bpy.ops.wm.quit_blender()
        except Exception:
            traceback.print_exc()
            sys.stdout.flush()
            bpy.ops.wm.quit_blender()
        return None

    studio: list[Studio] = []
    bpy.app.timers.register(go, first_interval=1.5)


main()
