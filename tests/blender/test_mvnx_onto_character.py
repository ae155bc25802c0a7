# SPDX-License-Identifier: GPL-3.0-or-later
"""An MVNX take on a character: limbs point where the file's own positions say, in Blender's evaluated pose.

The two real files are written in different segment frames, body and ISB; the older one misses where they are not told apart.
"""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import Path

import bpy
import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.blender.job import JobOptions, retarget_onto
from tests.paths import ROOT, SHARED, need

NS = "{http://www.xsens.com/mvn/mvnx}"
LIMBS = {
    side: {
        (f"{word}UpperArm", f"{word}ForeArm"): (f"upperarm_{side}", f"lowerarm_{side}"),
        (f"{word}ForeArm", f"{word}Hand"): (f"lowerarm_{side}", f"hand_{side}"),
        (f"{word}UpperLeg", f"{word}LowerLeg"): (f"thigh_{side}", f"calf_{side}"),
        (f"{word}LowerLeg", f"{word}Foot"): (f"calf_{side}", f"foot_{side}"),
    }
    for side, word in (("l", "Left"), ("r", "Right"))
}


def places(path: Path) -> tuple[list[str], np.ndarray]:
    """Segment names and positions (F, S, 3) by the standard library."""
    root = ET.parse(path).getroot()
    frames = [f.findtext(f"{NS}position") or "" for f in root.iter(f"{NS}frame") if f.get("type") == "normal"]
    names = [s.attrib["label"] for s in root.iter(f"{NS}segment")]
    return names, np.array([f.split() for f in frames], dtype=float).reshape(len(frames), -1, 3)


@pytest.mark.parametrize("name", ["mvnx4_upperbody_60hz_112f.mvnx", "mvnx3_fullbody_240hz_4f.mvnx"])
def test_limbs_point_where_the_file_says(name: str) -> None:
    path = need(SHARED / "xsens" / name)
    bpy.ops.import_scene.gltf(filepath=str(ROOT / "mocap_addon" / "demo" / "character.glb"))
    character = next(o for o in bpy.data.objects if o.type == "ARMATURE")
    (take,) = formats.read(path)
    result = retarget_onto(character, take, options=JobOptions(rate="source"))
    names, p = places(path)
    scene = bpy.context.scene
    rate = scene.render.fps / scene.render.fps_base
    worst = 0.0
    for k in range(0, take.frames, max(take.frames // 10, 1)):
        frame = result.action.frame_range[0] + (take.times[k] - take.times[0]) * rate
        scene.frame_set(math.floor(frame), subframe=frame - math.floor(frame))
        posed = character.evaluated_get(bpy.context.evaluated_depsgraph_get())
        for (a, b), (c, d) in (LIMBS["l"] | LIMBS["r"]).items():
            x, y, z = p[k, names.index(b)] - p[k, names.index(a)]
            truth = np.array([y, -x, z])  # MVN's +X, where its T-pose faces, onto Blender's -Y
            got = np.array(posed.matrix_world @ posed.pose.bones[d].head) - np.array(posed.matrix_world @ posed.pose.bones[c].head)
            cosine = truth @ got / np.linalg.norm(truth) / np.linalg.norm(got)
            worst = max(worst, math.degrees(math.acos(min(cosine, 1.0))))
    assert worst < 0.1
