# SPDX-License-Identifier: GPL-3.0-or-later
"""Lives through an installation, inside a fresh Blender: ``installed.py -- ZIP FOLDER``. Started by test_install.py.

The checkout is not on the path: what runs is what the zip holds.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tomllib
from pathlib import Path

import bpy

MODULE = "bl_ext.user_default.mocap_addon"


def part(name: str):
    return importlib.import_module(f"{MODULE}.{name}")


def traces() -> list[str]:
    """What an add-on may leave behind: classes, properties, handlers, timers do not show, the panel's tab does."""
    types = [n for n in dir(bpy.types) if n.startswith("MOCAP_")]
    properties = [
        t.__name__ for t in (bpy.types.Scene, bpy.types.Object, bpy.types.Armature, bpy.types.WindowManager) if hasattr(t, "mocap")
    ]
    lists = [getattr(bpy.app.handlers, n) for n in dir(bpy.app.handlers) if isinstance(getattr(bpy.app.handlers, n), list)]
    handlers = [f.__name__ for functions in lists for f in functions if "mocap" in (getattr(f, "__module__", "") or "")]
    return types + properties + handlers


def hand_travel(obj: bpy.types.Object, bone: str, action: bpy.types.Action) -> float:
    """Metres between the farthest places of a bone over the action, in Blender's evaluated pose."""
    scene = bpy.context.scene
    first, last = (int(f) for f in action.frame_range)
    places = []
    for frame in range(first, last + 1, 4):
        scene.frame_set(frame)
        pose = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        places.append((pose.matrix_world @ pose.pose.bones[bone].matrix).translation.copy())
    return max((a - b).length for a in places for b in places)


def run_a_job(folder: Path) -> None:
    demo = Path(part("cli").__file__).parent.parent / "demo"
    obj = part("blender.characters").bring_in(demo / "character.glb").armature
    before = set(bpy.data.actions)
    assert bpy.ops.mocap.retarget(filepath=str(demo / "zombieWalk1.bvh"), target=obj.name) == {"FINISHED"}
    (action,) = set(bpy.data.actions) - before
    hands = [b.name for b in obj.pose.bones if "hand" in b.name.lower()]
    assert hands, [b.name for b in obj.pose.bones]
    assert hand_travel(obj, hands[0], action) > 0.05
    table = folder / "table.toml"
    bpy.context.scene.mocap.target = obj
    assert bpy.ops.mocap.save_table(filepath=str(table), check_existing=False) == {"FINISHED"}
    assert len(tomllib.loads(table.read_text(encoding="utf-8"))) > 1


def main() -> None:
    zip_file, folder = (Path(a) for a in sys.argv[sys.argv.index("--") + 1 :])
    resources = Path(os.environ["BLENDER_USER_RESOURCES"])
    assert importlib.util.find_spec("mocap_addon") is None, "the checkout is on the path: this would not test the zip"
    assert not traces()

    done = bpy.ops.extensions.package_install_files(filepath=str(zip_file), repo="user_default", enable_on_install=True)
    assert done == {"FINISHED"}, done
    addons = bpy.context.preferences.addons
    assert MODULE in addons, addons.keys()
    assert resources in Path(sys.modules[MODULE].__file__).parents
    assert "MOCAP_OT_retarget" in traces() and "Scene" in traces()
    assert list(resources.glob("extensions/.local/**/site-packages/tomli_w/__init__.py")), "the bundled wheel was not unpacked"
    run_a_job(folder)

    bpy.ops.preferences.addon_disable(module=MODULE)
    assert MODULE not in addons
    assert not traces(), traces()

    bpy.ops.preferences.addon_enable(module=MODULE)
    assert MODULE in addons and "MOCAP_OT_retarget" in traces()
    run_a_job(folder)
    if bpy.app.binary_path:
        bpy.ops.wm.save_userpref()  # for `blender --command mocap` in the next process
    print("INSTALLED AND USED", flush=True)


try:
    main()
except BaseException:
    import traceback

    traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)
os._exit(0)
