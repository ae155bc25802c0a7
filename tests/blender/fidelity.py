# SPDX-License-Identifier: GPL-3.0-or-later
"""What the fidelity tests share. Truth comes from Blender: its own BVH importer, and the depsgraph's evaluated pose and mesh.

No SciPy here: these tests also run inside real Blender executables.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import bpy
import numpy as np
import pytest

from mocap_addon import formats, rig
from mocap_addon.blender import characters, scenes
from mocap_addon.blender.job import JobOptions, JobResult, retarget_onto
from mocap_addon.motion import quat
from tests.paths import DATA, SHARED

TARGETS = {
    "unreal": "mh_ue_names_apose.glb",
    "mixamo": "mh_mixamo_names_scale001.glb",
    "cmu": "mh_cmu_names_boneaxes.glb",
    "vrm": "mh_vrm1_tpose.vrm",
    "kaykit": "kaykit_manny/manny_med_mod.gltf",
    "robot": "RobotExpressive.glb",
}

# every take whose rest pose is a body
TAKES = (
    "cmu/asf_02_01_walk.bvh",
    "cmu/asf_02_03_run_jog.bvh",
    "cmu/asf_02_05_punch_60fps.bvh",
    "cmu/asf_03_01_walk_uneven_down.bvh",
    "cmu/asf_03_02_walk_uneven.bvh",
    "cmu/asf_01_01_playground_jumps_turn_30fps.bvh",
    "cmu/cgspeed_12_01_walk.bvh",
    "xsens/mvn_bvh_walk_239hz_1200f.bvh",
    "xsens/mvn_bvh_upperbody_60hz_112f.bvh",
    "xsens/mvn_like_23joint_zero_frame.bvh",
    "makehuman/walk1.bvh",
    "makehuman/zombieWalk1.bvh",
    "makehuman/dance1.bvh",
    "makehuman/tpose.bvh",
    "makehuman/benchmark.bvh",
    "animated_drawings/jumping.bvh",
    "animated_drawings/zombie.bvh",
    "animated_drawings/jumping_jacks.bvh",
    "misc_bvh/pybvh_fingers_mixed_orders_crlf.bvh",
    "misc_bvh/pybvh_armsdown_crlf.bvh",
    "misc_bvh/pymo_figure8_walk_xyz.bvh",
    "misc_bvh/geno_bind_6ch_75joint.bvh",
    "odd/boxing_toes_offbyone_excerpt.bvh",
    "odd/pirouette_excerpt_root_without_position.bvh",
)

IN_THE_MATRIX = ("cmu/asf_02_01_walk.bvh", "makehuman/zombieWalk1.bvh", "xsens/mvn_bvh_upperbody_60hz_112f.bvh")


def takes(names=TAKES):
    """Test parameters: a few takes on every Blender, all of them on the default one."""
    return [pytest.param(name, marks=() if name in IN_THE_MATRIX else (pytest.mark.thorough,)) for name in names]


LIMBS = tuple(
    (f"{side}{near}", f"{side}{far}")
    for side in ("left", "right")
    for near, far in (("UpperArm", "LowerArm"), ("LowerArm", "Hand"), ("UpperLeg", "LowerLeg"), ("LowerLeg", "Foot"))
)


def find(relative: str) -> Path:
    """A data file: the bundled copy where there is one, else the one beside the repository (which may be missing)."""
    for folder in (DATA / "takes", DATA / "characters"):
        if (folder / Path(relative).name).exists():
            return folder / Path(relative).name
    return SHARED / ("targets" if relative in TARGETS.values() else "") / relative


def target_object(name: str) -> bpy.types.Object:
    """One of TARGETS, brought in."""
    return characters.bring_in(find(TARGETS[name])).armature


@dataclass
class Evaluated:
    """World matrices of every bone at some frames, from the depsgraph: ``rotations (F, J, 4)``, ``positions (F, J, 3)`` by bone name."""

    names: list[str]
    rotations: np.ndarray
    positions: np.ndarray

    def place(self, name: str) -> np.ndarray:
        return self.positions[:, self.names.index(name)]

    def turn(self, name: str) -> np.ndarray:
        return self.rotations[:, self.names.index(name)]


def evaluated(obj: bpy.types.Object, frames) -> Evaluated:
    """The evaluated pose at scene frames (sub-frames allowed). Scale is taken out of the rotations."""
    scene = bpy.context.scene
    names = [bone.name for bone in obj.pose.bones]
    matrices = np.empty((len(frames), len(names), 4, 4))
    for i, frame in enumerate(frames):
        whole = int(np.floor(frame))
        scene.frame_set(whole, subframe=float(frame - whole))
        ready = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
        world = np.array(ready.matrix_world)
        for j, bone in enumerate(ready.pose.bones):
            matrices[i, j] = world @ np.array(bone.matrix)
    linear = matrices[..., :3, :3]
    linear = linear / np.linalg.norm(linear, axis=-2, keepdims=True)
    return Evaluated(names, quat.from_matrix(linear), matrices[..., :3, 3])


def rest(obj: bpy.types.Object) -> Evaluated:
    """The rest pose in the world, from the armature's data."""
    world = np.array(obj.matrix_world)
    matrices = np.array([world @ np.array(bone.matrix_local) for bone in obj.data.bones])[None]
    linear = matrices[..., :3, :3]
    linear = linear / np.linalg.norm(linear, axis=-2, keepdims=True)
    return Evaluated([bone.name for bone in obj.data.bones], quat.from_matrix(linear), matrices[..., :3, 3])


def blender_bvh(path: Path, scale: float = 1.0, **axes: str) -> bpy.types.Object:
    """The file as Blender's own importer reads it: one frame of the file a scene frame, from frame 1, quaternions."""
    before = set(bpy.data.objects)
    bpy.ops.import_anim.bvh(
        filepath=str(path),
        global_scale=scale,
        rotate_mode="QUATERNION",
        use_fps_scale=False,
        update_scene_fps=False,
        frame_start=1,
        **axes,
    )
    return next(obj for obj in bpy.data.objects if obj not in before)


def drop_positions_below_the_root(obj: bpy.types.Object) -> None:
    """For files that write positions near zero beside a long offset (MakeHuman's poses): they mean "no offset from rest", and Blender's
    importer, which takes them for the whole offset, collapses the body. Its rotations stay as the oracle."""
    from mocap_addon.blender import compat

    action = obj.animation_data.action
    roots = {bone.name for bone in obj.data.bones if bone.parent is None}
    for curve in list(compat.all_curves(action)):
        if curve.data_path.endswith(".location") and not any(f'"{name}"' in curve.data_path for name in roots):
            curve.mute = True
    for bone in obj.pose.bones:
        if bone.name not in roots:
            bone.location = (0.0, 0.0, 0.0)


def blender_names(path: Path, skeleton_names: tuple[str, ...], obj: bpy.types.Object) -> dict[str, str]:
    """Our joint name -> Blender's bone name: both list the file's joints in its order (Blender cuts long names and strips spaces)."""
    assert len(obj.data.bones) == len(skeleton_names), path.name
    return dict(zip(skeleton_names, (bone.name for bone in obj.data.bones), strict=True))


def job(obj: bpy.types.Object, path: Path, **options) -> tuple[JobResult, object]:
    """Our own way: the file's samples on whole frames from 1 on (the scene is set to the take's rate)."""
    take = formats.read(path)[0]
    scenes.set_rate(bpy.context.scene, take.rate)
    return retarget_onto(obj, take, options=JobOptions(rate="scene", frame_start=1.0, **options)), take


def picked_frames(count: int, most: int = 9) -> np.ndarray:
    """Scene frames (from 1 on) spread over a take of ``count`` frames, first and last included."""
    return np.unique(np.linspace(1, count, min(most, count)).round().astype(int))


def best_turn(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(3, 3): the one rotation that turns unit vectors ``a (N, 3)`` onto ``b (N, 3)`` best (Kabsch)."""
    u, _, vt = np.linalg.svd(b.T @ a)
    return u @ np.diag([1.0, 1.0, np.sign(np.linalg.det(u @ vt))]) @ vt


def unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=-1, keepdims=True)


def degrees(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Angles between unit vectors ``(..., 3)``, accurate near zero."""
    return np.degrees(2.0 * np.arcsin(np.clip(0.5 * np.linalg.norm(a - b, axis=-1), 0.0, 1.0)))


def roles_by_name(skeleton) -> dict[str, str]:
    """Role -> name of its first joint."""
    found = rig.match(skeleton)
    return {role: skeleton.names[joints[0]] for role, joints in found.joints.items()}


def skinned(obj: bpy.types.Object, frame: int) -> dict[str, np.ndarray]:
    """Mesh name -> evaluated vertices ``(V, 3)`` in the world."""
    bpy.context.scene.frame_set(frame)
    graph = bpy.context.evaluated_depsgraph_get()
    out: dict[str, np.ndarray] = {}
    for child in bpy.context.scene.objects:
        if child.type == "MESH" and any(m.type == "ARMATURE" and m.object == obj for m in child.modifiers):
            ready = child.evaluated_get(graph)
            flat = np.empty(len(ready.data.vertices) * 3, dtype=np.float32)
            ready.data.vertices.foreach_get("co", flat)
            world = np.array(ready.matrix_world)
            out[child.name] = flat.reshape(-1, 3).astype(float) @ world[:3, :3].T + world[:3, 3]
    return out


def bound_to_one(mesh: bpy.types.Object) -> np.ndarray:
    """(V,) bool: vertices that a single bone holds."""
    return np.array([sum(g.weight > 1e-3 for g in v.groups) == 1 for v in mesh.data.vertices], dtype=bool)
