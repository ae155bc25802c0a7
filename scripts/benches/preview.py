# SPDX-License-Identifier: GPL-3.0-or-later
"""A correction in the bone table with its preview: what it costs from the slider's new value to the last pose bone that is written.

Ours is residuals, pose and writing, in the processor's time; what Blender then needs to evaluate the character stands beside it. Asked of
the demo character and of the rig with controls that Rigify makes of its human meta-rig (706 bones), each with an arm's row, of which only
a limb hangs, and with that of the hips, of which everything does.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from benches.retarget import CHARACTER, WALK
from support.figures import Figure

LIMIT = 10.0


def measure() -> list[Figure]:
    """Every figure of this benchmark."""
    import bpy

    import mocap_addon
    from mocap_addon.blender import characters
    from tests.blender.control_rig_makers import generate_rigify, opened

    figures: list[Figure] = []
    bpy.ops.wm.read_factory_settings(use_empty=True)
    mocap_addon.register()
    figures += _changes("demo character", characters.bring_in(CHARACTER).armature, "AUTO")
    with tempfile.TemporaryDirectory() as folder:
        path = generate_rigify(Path(folder) / "rigify.blend")
        for label, controls in (("Rigify, FK", "AUTO"), ("Rigify, IK", "IK")):
            figures += _changes(label, opened(path)[0], controls)
    mocap_addon.unregister()
    return figures


def _changes(label: str, obj, controls: str, count: int = 60) -> list[Figure]:
    import bpy

    scene = bpy.context.scene
    bpy.context.view_layer.objects.active = obj
    obj.select_set(True)
    scene.mocap.filepath, scene.mocap.controls = str(WALK), controls
    bpy.ops.mocap.match_bones()
    scene.frame_set(31)
    bpy.ops.mocap.preview()
    figures: list[Figure] = []
    for role in ("leftUpperArm", "hips"):
        row = next(row for row in obj.mocap.rows if row.role == role)
        ours: list[float] = []
        blenders: list[float] = []
        for k in range(count):
            started = time.thread_time()
            row.correction[1] = 0.01 * (k + 1)
            ours.append(time.thread_time() - started)
            started = time.thread_time()
            bpy.context.view_layer.update()
            blenders.append(time.thread_time() - started)
        figures.append(Figure(f"{label}, {role}: a change", 1e3 * statistics.median(ours), "ms", LIMIT))
        figures.append(Figure(f"{label}, {role}: Blender's evaluation after it", 1e3 * statistics.median(blenders), "ms"))
    return figures
