# SPDX-License-Identifier: GPL-3.0-or-later
"""Every joint of real takes where Blender's own BVH importer puts it."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from mocap_addon import formats
from tests.paths import DATA, SHARED, need

BUNDLED = ["cmu_walk_60rows", "cgspeed_walk_24rows_crlf", "makehuman_zombie_walk", "pybvh_rotation_before_position_root"]
OTHERS = [
    "cmu/asf_02_03_run_jog",
    "cmu/asf_03_02_walk_uneven",
    "xsens/mvn_bvh_upperbody_60hz_112f",
    "xsens/mvn_like_23joint_zero_frame",
    "makehuman/dance1",
    "animated_drawings/jumping_jacks",
    "animated_drawings/zombie",
    "bandai_nc/dataset-1_run_normal_001",
    "misc_bvh/pybvh_fingers_mixed_orders_crlf",
    "misc_bvh/pybvh_armsdown_crlf",
    "misc_bvh/geno_bind_6ch_75joint",
    "odd/boxing_toes_offbyone_excerpt",
    "odd/pirouette_excerpt_root_without_position",
    "odd/bvh_anim_minimal",
]
# Its thighs point almost straight along -Y of the file, where Blender's matrix of a bone is good to four digits only.
COARSE = {"xsens/mvn_bvh_upperbody_60hz_112f": 1e-4}
FORWARD = {"Y": "-Z", "Z": "Y"}  # with these Blender turns the file by the quarter turn about X, or not at all


@pytest.mark.parametrize("name", [*BUNDLED, *OTHERS])
def test_joints(name):
    path = DATA / "takes" / f"{name}.bvh" if name in BUNDLED else need(SHARED / f"{name}.bvh")
    (take,) = formats.read(path)
    up = take.facts["up"]
    bpy.ops.import_anim.bvh(filepath=str(path), axis_up=up, axis_forward=FORWARD[up], rotate_mode="QUATERNION", frame_start=1)
    obj = bpy.context.view_layer.objects.active
    assert len(obj.pose.bones) == len(take.skeleton)
    unit = take.facts["unit"]
    reach = np.abs(take.global_positions).max()
    for row in np.unique(np.linspace(0, take.frames - 1, 6).astype(int)).tolist():
        bpy.context.scene.frame_set(1 + row)
        evaluated = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        heads = np.array([evaluated.matrix_world @ evaluated.pose.bones[n].head for n in take.skeleton.names])
        # Blender computes in single precision: 0.01 mm for a take within a metre of the origin
        np.testing.assert_allclose(take.global_positions[row], heads * unit, atol=COARSE.get(name, 1e-5) * max(1.0, reach))
