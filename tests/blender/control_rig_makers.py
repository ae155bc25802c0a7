# SPDX-License-Identifier: GPL-3.0-or-later
"""Rigs with controls, takes that ask something of knees and heels, and what Blender says of both."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path

import bpy
import numpy as np
import pytest
from mathutils import Matrix, Vector

from mocap_addon.blender import armature, compat, scenes
from mocap_addon.blender.job import JobOptions, JobResult, retarget_onto
from mocap_addon.motion import quat
from mocap_addon.motion.take import Take

from .helpers import make_rig

SIDES = ("L", "R")
LIMBS = tuple(f"{part}.{s}" for part in ("thigh", "shin", "foot", "toe", "shoulder", "upper_arm", "forearm", "hand") for s in SIDES)
HAND_TURNS = tuple(f"{part}.{s}" for part in ("shin", "foot", "toe", "forearm", "hand", "shoulder") for s in SIDES)
"""Deform bones whose roll Rigify does not spread along the limb."""


def generate_rigify(path: Path) -> Path:
    """A file with Rigify's human meta-rig, ``metarig``, and the rig that Blender generates from it, ``rig``."""
    addon_utils = pytest.importorskip("addon_utils")
    bpy.ops.wm.read_factory_settings(use_empty=True)
    if addon_utils.enable("rigify", default_set=True, persistent=False) is None:
        pytest.skip("this Blender has no Rigify")
    from rigify import generate

    bpy.ops.object.armature_human_metarig_add()
    meta = bpy.context.object
    generate.generate_rig(bpy.context, meta)
    rig = next(o for o in bpy.data.objects if o.type == "ARMATURE" and o is not meta)
    meta.name, rig.name = "metarig", "rig"
    bpy.ops.wm.save_as_mainfile(filepath=str(path))
    bpy.ops.wm.read_factory_settings(use_empty=True)
    return path


def opened(path: Path) -> tuple[bpy.types.Object, bpy.types.Object]:
    """The generated rig and its meta-rig."""
    bpy.ops.wm.open_mainfile(filepath=str(path))
    return bpy.data.objects["rig"], bpy.data.objects["metarig"]


def retarget(obj: bpy.types.Object, take: Take, table=None, **options) -> JobResult:
    """The job at 24 frames a second from frame 1 on."""
    scenes.set_rate(bpy.context.scene, Fraction(24))
    return retarget_onto(obj, take, table=table, options=JobOptions(frame_start=1.0, **options))


def plain_rig(*, switch: bool = False, hanging: bool = False, copies: bool = False) -> bpy.types.Object:
    """A person whose legs hang on inverse kinematics with a pole.

    ``switch``: a property turns it on. ``hanging``: the feet hang on the targets. ``copies``: the feet copy the targets' rotation.
    """
    rows: list[tuple] = [
        ("hips", None, (0, 0, 1.0), (0, 0, 1.15), 0),
        ("spine", "hips", (0, 0, 1.15), (0, 0, 1.4), 0),
        ("neck", "spine", (0, 0, 1.4), (0, 0, 1.5), 0),
        ("head", "neck", (0, 0, 1.5), (0, 0, 1.7), 0),
    ]
    for s, x in zip(SIDES, (1, -1), strict=True):
        rows += [
            (f"IK_foot.{s}", None, (0.1 * x, 0, 0.08), (0.1 * x, 0.1, 0.1), 0.4),
            (f"IK_knee.{s}", None, (0.1 * x, -0.6, 0.5), (0.1 * x, -0.7, 0.5), 0),
            (f"thigh.{s}", "hips", (0.1 * x, 0, 0.95), (0.1 * x, -0.02, 0.5), 0.3),
            (f"shin.{s}", f"thigh.{s}", (0.1 * x, -0.02, 0.5), (0.1 * x, 0, 0.08), -0.2),
            (f"foot.{s}", f"IK_foot.{s}" if hanging else f"shin.{s}", (0.1 * x, 0, 0.08), (0.1 * x, -0.12, 0.02), 0),
            (f"toe.{s}", f"foot.{s}", (0.1 * x, -0.12, 0.02), (0.1 * x, -0.2, 0.02), 0),
            (f"upper_arm.{s}", "spine", (0.15 * x, 0, 1.38), (0.42 * x, 0.01, 1.38), 0),
            (f"forearm.{s}", f"upper_arm.{s}", (0.42 * x, 0.01, 1.38), (0.68 * x, 0, 1.38), 0),
            (f"hand.{s}", f"forearm.{s}", (0.68 * x, 0, 1.38), (0.78 * x, 0, 1.38), 0),
        ]
    obj = make_rig(rows)
    bones = obj.data.bones
    for s in SIDES:
        ik = obj.pose.bones[f"shin.{s}"].constraints.new("IK")
        ik.target = ik.pole_target = obj
        ik.subtarget, ik.pole_subtarget, ik.chain_count = f"IK_foot.{s}", f"IK_knee.{s}", 2
        ik.pole_angle = pole_angle(*(bones[n] for n in (f"thigh.{s}", f"shin.{s}", f"IK_knee.{s}")))
        if copies:
            copy = obj.pose.bones[f"foot.{s}"].constraints.new("COPY_ROTATION")
            copy.target, copy.subtarget = obj, f"IK_foot.{s}"
        if switch:
            obj.pose.bones[f"IK_foot.{s}"]["IK"] = 1.0
            driver = ik.driver_add("influence").driver
            driver.type, driver.expression = "SCRIPTED", "var"
            variable = driver.variables.new()
            variable.name = "var"
            variable.targets[0].id, variable.targets[0].data_path = obj, f'pose.bones["IK_foot.{s}"]["IK"]'
    bpy.context.view_layer.update()
    return obj


def pole_angle(upper: bpy.types.Bone, lower: bpy.types.Bone, pole: bpy.types.Bone) -> float:
    """The pole angle with which the knee stays where it is at rest: from where the pole is to the first bone's X, about that bone."""
    along = lower.tail_local - upper.head_local
    normal = along.cross(pole.head_local - upper.head_local)
    projected = normal.cross(upper.vector)
    x = upper.x_axis
    angle = x.angle(projected)
    return -angle if x.cross(projected).dot(upper.vector) < 0.0 else angle


# --- takes ------------------------------------------------------------------------------------------------------------------------------


def own_take(obj: bpy.types.Object, turns: dict[str, np.ndarray], name: str = "made") -> Take:
    """A take on a rig's own bones at 24 fps, the root fixed: degrees ``(F,)`` about each bone's own X; ``bone/Y`` and ``bone/Z`` about
    the others."""
    skeleton = armature.read(obj).skeleton
    count = len(next(iter(turns.values())))
    rotations = np.broadcast_to(skeleton.rest_rotations, (count, len(skeleton), 4)).copy(order="F")
    for key, degrees in turns.items():
        bone, _, letter = key.partition("/")
        axis = np.eye(3)["XYZ".index(letter or "X")]
        j = skeleton.index(bone)
        rotations[:, j] = quat.mul(rotations[:, j], quat.from_axis_angle(axis, np.radians(degrees)))
    times = np.arange(count) / 24.0
    return Take(name, skeleton, times, rotations, skeleton.rest_translations[None], rate=Fraction(24))


def through_straight(obj: bpy.types.Object, frames: int = 61) -> Take:
    """Knees that swing through straight and a little beyond while the legs tremble sideways, as recorded legs do."""
    t = np.linspace(0.0, 1.0, frames)
    knee = 40.0 * np.cos(2.0 * np.pi * t) + 28.0
    turns: dict[str, np.ndarray] = {}
    for s in SIDES:
        turns |= {
            f"thigh.{s}": -0.6 * knee,
            f"thigh.{s}/Y": 2.0 * np.sin(40.0 * t),
            f"shin.{s}": knee,
            f"shin.{s}/Z": 1.5 * np.sin(25.0 * t),
        }
    return own_take(obj, turns, "straight")


def heel_lift(obj: bpy.types.Object, most: float = 40.0, frames: int = 25) -> Take:
    """The feet roll over their balls: the foot tips forward, the toes bend back by as much and stay as they were."""
    lift = most * np.sin(np.linspace(0.0, np.pi, frames))
    parts = {"shin": 0.5, "foot": 0.5, "toe": 1.0}
    turns = {f"{part}.{s}": share * lift for s in SIDES for part, share in parts.items()}
    return own_take(obj, turns, "heel")


# --- what Blender says --------------------------------------------------------------------------------------------------------------------


def posed(obj: bpy.types.Object, frame: float, names: Iterable[str]) -> dict[str, Matrix]:
    """World matrices of bones as Blender evaluates them."""
    whole = int(np.floor(frame))
    bpy.context.scene.frame_set(whole, subframe=float(frame - whole))
    seen = obj.evaluated_get(bpy.context.evaluated_depsgraph_get())
    return {name: seen.matrix_world @ seen.pose.bones[name].matrix for name in names}


def turned(obj: bpy.types.Object, matrices: dict[str, Matrix]) -> dict[str, Matrix]:
    """What takes each bone from its rest in the world to where it is."""
    return {name: m @ (obj.matrix_world @ obj.data.bones[name].matrix_local).inverted() for name, m in matrices.items()}


def degrees(a: Matrix, b: Matrix) -> float:
    """Angle between two rotations."""
    angle = np.degrees(a.to_quaternion().rotation_difference(b.to_quaternion()).angle)
    return float(min(angle, 360.0 - angle))


def millimetres(a: Matrix, b: Matrix) -> float:
    """Distance between two places."""
    return float((a.translation - b.translation).length) * 1000.0


def bone_angle(a: Matrix, b: Matrix) -> float:
    """Degrees between the directions of two bones, roll left out."""
    return float(np.degrees(a.to_3x3().col[1].angle(b.to_3x3().col[1])))


def roll_about(turn: Matrix, axis: Vector) -> float:
    """Degrees that a turn turns about a unit axis: what is left after the smallest swing that takes the axis where it goes."""
    q = turn.to_quaternion()
    left = axis.rotation_difference(q @ axis).inverted() @ q
    angle = np.degrees(2.0 * np.arctan2(Vector((left.x, left.y, left.z)).dot(axis), left.w))
    return float((angle + 180.0) % 360.0 - 180.0)


def settings_of(action: bpy.types.Action) -> dict[str, float]:
    """Last part of the data path -> value, for curves of custom properties and of single values of a bone or constraint."""
    pose = ("location", "rotation_quaternion", "rotation_euler", "rotation_axis_angle", "scale")
    return {c.data_path: c.keyframe_points[0].co[1] for c in compat.all_curves(action) if not c.data_path.endswith(pose)}


def keyed(action: bpy.types.Action) -> set[str]:
    """Bones with keys on their transform."""
    pose = (".location", ".rotation_quaternion", ".rotation_euler", ".rotation_axis_angle")
    return {c.data_path.split('"')[1] for c in compat.all_curves(action) if c.data_path.endswith(pose)}


def pole_step(points: list[tuple[Vector, Vector, Vector]]) -> float:
    """Largest step in degrees that a direction makes about a limb, from frame to frame: ``(start, end, pole)`` each.

    The direction of the frame before is carried along with the limb by the smallest turn, so that a swing of the limb is no step.
    """
    most, before = 0.0, None
    for start, end, pole in points:
        axis = (end - start).normalized()
        across = pole - start
        across -= axis * across.dot(axis)
        if before is not None:
            carried = before[0].rotation_difference(axis) @ before[1]
            most = max(most, float(np.degrees(carried.angle(across))))
        before = (axis, across)
    return most


def pro_rig() -> bpy.types.Object:
    """A rig by Auto-Rig Pro's public names: controls, two chains a limb, a switch on the foot's and the hand's control, deform bones whose
    thighs and upper arms start half way down. Written for this test; the product itself has many more bones."""
    rows: list[tuple] = [
        ("c_traj", None, (0, 0, 0), (0, -0.3, 0), 0),
        ("c_root_master.x", "c_traj", (0, 0.02, 1.0), (0, -0.1, 1.0), 0),
        ("c_root.x", "c_root_master.x", (0, 0.02, 1.0), (0, -0.05, 1.0), 0.1),
        ("root.x", "c_root.x", (0, 0.02, 1.0), (0, 0.01, 1.12), 0),
        ("c_spine_01.x", "c_root_master.x", (0, 0.01, 1.12), (0, -0.1, 1.12), 0),
        ("spine_01.x", "c_spine_01.x", (0, 0.01, 1.12), (0, 0, 1.3), 0),
        ("c_spine_02.x", "c_spine_01.x", (0, 0, 1.3), (0, -0.1, 1.3), 0),
        ("spine_02.x", "c_spine_02.x", (0, 0, 1.3), (0, 0, 1.5), 0),
        ("c_neck.x", "c_spine_02.x", (0, 0, 1.5), (0, -0.1, 1.5), 0),
        ("neck.x", "c_neck.x", (0, 0, 1.5), (0, 0, 1.58), 0),
        ("c_head.x", "c_neck.x", (0, 0, 1.58), (0, -0.1, 1.58), 0),
        ("head.x", "c_head.x", (0, 0, 1.58), (0, 0, 1.75), 0),
    ]
    for s, x in ((".l", 1), (".r", -1)):
        hip, knee, ankle, ball, tip = (
            (0.1 * x, 0, 0.95),
            (0.1 * x, -0.03, 0.5),
            (0.1 * x, 0, 0.08),
            (0.1 * x, -0.12, 0.02),
            (0.1 * x, -0.2, 0.02),
        )
        collar, arm, elbow, wrist, palm = (
            (0.03 * x, 0, 1.45),
            (0.17 * x, 0, 1.45),
            (0.43 * x, 0.03, 1.45),
            (0.68 * x, 0, 1.45),
            (0.78 * x, 0, 1.45),
        )
        half = ((0.1 * x, -0.015, 0.725), (0.3 * x, 0.015, 1.45))
        rows += [
            (f"c_thigh_fk{s}", "c_root.x", hip, knee, 0.2),
            (f"c_leg_fk{s}", f"c_thigh_fk{s}", knee, ankle, 0.2),
            (f"c_foot_fk{s}", f"c_leg_fk{s}", ankle, ball, 0),
            (f"c_toes_fk{s}", f"c_foot_fk{s}", ball, tip, 0),
            (f"c_foot_ik{s}", "c_traj", ankle, ball, 0),
            (f"c_toes_ik{s}", f"c_foot_ik{s}", ball, tip, 0),
            (f"c_leg_pole{s}", "c_traj", (0.1 * x, -0.7, 0.5), (0.1 * x, -0.8, 0.5), 0),
            (f"thigh_ik{s}", "c_root.x", hip, knee, 0.2),
            (f"leg_ik{s}", f"thigh_ik{s}", knee, ankle, 0.2),
            (f"thigh{s}", "root.x", hip, knee, 0.2),
            (f"leg{s}", f"thigh{s}", knee, ankle, 0.2),
            (f"foot{s}", f"leg{s}", ankle, ball, 0),
            (f"toes_01{s}", f"foot{s}", ball, tip, 0),
            (f"thigh_stretch{s}", f"thigh{s}", half[0], knee, 0.2),
            (f"leg_stretch{s}", f"leg{s}", knee, ankle, 0.2),
            (f"c_shoulder{s}", "spine_02.x", collar, arm, 0),
            (f"shoulder{s}", f"c_shoulder{s}", collar, arm, 0),
            (f"c_arm_fk{s}", f"c_shoulder{s}", arm, elbow, 0.5),
            (f"c_forearm_fk{s}", f"c_arm_fk{s}", elbow, wrist, 0.5),
            (f"c_hand_fk{s}", f"c_forearm_fk{s}", wrist, palm, 0),
            (f"c_hand_ik{s}", "c_traj", wrist, palm, 0),
            (f"c_arms_pole{s}", "c_traj", (0.43 * x, 0.7, 1.45), (0.43 * x, 0.8, 1.45), 0),
            (f"arm_ik{s}", f"c_shoulder{s}", arm, elbow, 0.5),
            (f"forearm_ik{s}", f"arm_ik{s}", elbow, wrist, 0.5),
            (f"arm{s}", f"shoulder{s}", arm, elbow, 0.5),
            (f"forearm{s}", f"arm{s}", elbow, wrist, 0.5),
            (f"hand{s}", f"forearm{s}", wrist, palm, 0),
            (f"arm_stretch{s}", f"arm{s}", half[1], elbow, 0.5),
            (f"forearm_stretch{s}", f"forearm{s}", elbow, wrist, 0.5),
        ]
    obj = make_rig(rows, "pro")
    bones = obj.data.bones
    for s in (".l", ".r"):
        for solver, first, goal, pole, holder in (
            (f"leg_ik{s}", f"thigh_ik{s}", f"c_foot_ik{s}", f"c_leg_pole{s}", f"c_foot_ik{s}"),
            (f"forearm_ik{s}", f"arm_ik{s}", f"c_hand_ik{s}", f"c_arms_pole{s}", f"c_hand_ik{s}"),
        ):
            ik = obj.pose.bones[solver].constraints.new("IK")
            ik.target = ik.pole_target = obj
            ik.subtarget, ik.pole_subtarget, ik.chain_count = goal, pole, 2
            ik.pole_angle = pole_angle(bones[first], bones[solver], bones[pole])
            obj.pose.bones[holder]["ik_fk_switch"] = 0.0
        switched = [("thigh", "c_thigh_fk", "thigh_ik", "c_foot_ik"), ("leg", "c_leg_fk", "leg_ik", "c_foot_ik")]
        switched += [("foot", "c_foot_fk", "c_foot_ik", "c_foot_ik"), ("toes_01", "c_toes_fk", "c_toes_ik", "c_foot_ik")]
        switched += [("arm", "c_arm_fk", "arm_ik", "c_hand_ik"), ("forearm", "c_forearm_fk", "forearm_ik", "c_hand_ik")]
        switched += [("hand", "c_hand_fk", "c_hand_ik", "c_hand_ik")]
        for name, fk, by_solver, holder in switched:
            for source, inverse in ((fk, False), (by_solver, True)):
                copy = obj.pose.bones[name + s].constraints.new("COPY_TRANSFORMS")
                copy.target, copy.subtarget = obj, source + s
                if inverse:
                    driver = copy.driver_add("influence").driver
                    driver.type, driver.expression = "SCRIPTED", "1 - var"
                    variable = driver.variables.new()
                    variable.name = "var"
                    variable.targets[0].id, variable.targets[0].data_path = obj, f'pose.bones["{holder}{s}"]["ik_fk_switch"]'
    bpy.context.view_layer.update()
    return obj
