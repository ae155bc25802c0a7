# SPDX-License-Identifier: GPL-3.0-or-later
"""glTF takes against Blender's own importer: every animation of other makers' files, joint by joint in the world."""

from __future__ import annotations

import addon_utils
import bpy
import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.blender import compat, scenes
from mocap_addon.motion import quat
from tests.blender.fidelity import evaluated, rest
from tests.paths import SHARED, need

FILES = {"robot": "RobotExpressive.glb", "kaykit": "kaykit_manny/Med_MovementBasic.glb", "fox": "Fox.glb"}


def imported(path, rate, *, bind_pose: bool) -> bpy.types.Object:
    """The file's armature. Its bones rest as the skin was bound, or as the nodes stand; keys lie at seconds times ``rate``."""
    bpy.ops.wm.read_factory_settings(use_empty=True)
    addon_utils.enable("io_scene_gltf2", default_set=False)
    scenes.set_rate(bpy.context.scene, rate)
    bpy.ops.import_scene.gltf(filepath=str(path), guess_original_bind_pose=bind_pose)
    return next(o for o in bpy.context.scene.objects if o.type == "ARMATURE")


def play(obj, action) -> None:
    """Bones without keys stand as their nodes do: at rest, when those were taken for the rest pose."""
    for bone in obj.pose.bones:
        bone.matrix_basis.identity()
    compat.assign(obj.animation_data or obj.animation_data_create(), action, compat.slots(action)[0])


@pytest.mark.parametrize("name", FILES)
def test_motion_as_blender_imports_it(name):
    path = need(SHARED / "targets" / FILES[name])
    takes = formats.read(path)
    assert len(takes) == {"fox": 3, "kaykit": 11, "robot": 14}[name]
    obj = None
    for take in takes:
        if obj is None or scenes.scene_rate(bpy.context.scene) != take.rate:
            obj = imported(path, take.rate, bind_pose=False)
            for track in list(obj.animation_data.nla_tracks):
                obj.animation_data.nla_tracks.remove(track)
        # in some versions the importer writes the armature's name behind the animation's
        named = [a for a in bpy.data.actions if a.name == take.name or a.name.startswith(take.name + "_")]
        action = next(a for a in named if any(c.data_path.startswith("pose.bones") for c in compat.all_curves(a)))
        play(obj, action)
        # Blender's frames count from the file's second 0, the take's from its first key
        first = min(curve.keyframe_points[0].co[0] for curve in compat.all_curves(action))
        frames = np.unique(np.linspace(0, take.frames - 1, 5).round().astype(int))
        theirs = evaluated(obj, first + frames)
        order = [theirs.names.index(n) for n in take.skeleton.names]
        size = float(np.ptp(theirs.positions[0], axis=0).max())
        assert np.abs(take.global_positions[frames] - theirs.positions[:, order]).max() < 2e-5 * size, take.name
        assert np.degrees(quat.angle(take.global_rotations[frames], theirs.rotations[:, order])).max() < 0.02, take.name


@pytest.mark.parametrize("name", FILES)
def test_rest_pose_as_blender_imports_it(name):
    """But for where the robot stands: the importer takes its mesh's own axes for the armature's and puts it 2.4 m under the floor."""
    path = need(SHARED / "targets" / FILES[name])
    take = formats.read(path)[0]
    stand = rest(imported(path, take.rate, bind_pose=True))
    order = [stand.names.index(n) for n in take.skeleton.names]
    size = float(np.ptp(stand.positions[0], axis=0).max())
    ours, theirs = take.skeleton.rest_global_positions, stand.positions[0, order]
    if name == "robot":
        assert ours[:, 2].min() == pytest.approx(0.0, abs=0.05)
        ours, theirs = ours - ours[0], theirs - theirs[0]
    assert np.abs(ours - theirs).max() < 2e-5 * size
    assert np.degrees(quat.angle(take.skeleton.rest_global_rotations, stand.rotations[0, order])).max() < 0.02
