# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of known complaints share: a real walk, a real character, and what Blender's own BVH importer says of the walk."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cache

import bpy
import numpy as np

from mocap_addon import formats
from mocap_addon.blender import scenes
from mocap_addon.blender.job import JobOptions, JobResult, retarget_onto
from mocap_addon.motion.take import Take
from tests.paths import need

from . import fidelity

WALK = "cmu/asf_02_01_walk.bvh"
FRAMES = (1, 9, 17, 26, 40, 55, 69)
"""Scene frames of the walk at 24 a second: 343 samples at 120 a second are frames 1 to 69.4."""

LEGS = (("thigh_l", "calf_l", "foot_l"), ("thigh_r", "calf_r", "foot_r"))
SOURCE_LEGS = (("lfemur", "ltibia", "lfoot"), ("rfemur", "rtibia", "rfoot"))


@cache
def walk() -> Take:
    """A walk of 2.85 s at 120 Hz."""
    return formats.read(need(fidelity.find(WALK)))[0]


def character(name: str = "unreal", *, mesh: bool = False) -> bpy.types.Object:
    """A person with 53 bones in A-pose, by default without the skin."""
    need(fidelity.find(fidelity.TARGETS[name]))
    obj = fidelity.target_object(name)
    if not mesh:
        for child in list(obj.children_recursive):
            bpy.data.objects.remove(child)
    return obj


def retarget(obj: bpy.types.Object, take: Take | None = None, **options) -> JobResult:
    """The job at 24 frames a second from frame 1 on."""
    scenes.set_rate(bpy.context.scene, Fraction(24))
    table = options.pop("table", None)
    return retarget_onto(obj, take or walk(), table=table, options=JobOptions(frame_start=1.0, **options))


def edit(obj: bpy.types.Object, change) -> None:
    """Change bones in Edit Mode, as a person does; the mode is left again."""
    bpy.context.view_layer.objects.active = obj
    bpy.ops.object.mode_set(mode="EDIT")
    change(obj.data.edit_bones)
    bpy.ops.object.mode_set(mode="OBJECT")


@dataclass(frozen=True)
class Walked:
    """Places at FRAMES, Blender units: the middle between the hip joints, and the ankles ``(F, 2, 3)``; and the length of a leg."""

    hips: np.ndarray
    ankles: np.ndarray
    leg: float


def walked(seen: fidelity.Evaluated, rest: fidelity.Evaluated, legs=LEGS) -> Walked:
    """Hips, ankles and leg length of an evaluated armature."""
    middle = np.mean([seen.place(thigh) for thigh, _, _ in legs], axis=0)
    ankles = np.stack([seen.place(foot) for *_, foot in legs], axis=1)
    length = [np.linalg.norm(rest.place(b)[0] - rest.place(a)[0]) + np.linalg.norm(rest.place(c)[0] - rest.place(b)[0]) for a, b, c in legs]
    return Walked(middle, ankles, float(np.mean(length)))


def source_frames(frames=FRAMES) -> np.ndarray:
    """Frames of the file, from 1 on, that the scene frames fall on: five samples a frame."""
    return 1 + 5 * (np.asarray(frames) - 1)


def original() -> Walked:
    """The walk as Blender's own importer reads it: one unit of the file is one Blender unit."""
    obj = fidelity.blender_bvh(need(fidelity.find(WALK)))
    out = walked(fidelity.evaluated(obj, source_frames()), fidelity.rest(obj), SOURCE_LEGS)
    bpy.data.objects.remove(obj)
    bpy.context.view_layer.update()
    return out


def assert_walks(obj: bpy.types.Object, truth: Walked, legs=LEGS, tolerance: float = 1e-3) -> None:
    """The hips go where Blender's importer has them go, by the ratio of the legs: along the ground up to one heading, and up and down."""
    seen = walked(fidelity.evaluated(obj, FRAMES), fidelity.rest(obj), legs)
    k = seen.leg / truth.leg
    gone, wanted = seen.hips - seen.hips[0], k * (truth.hips - truth.hips[0])
    assert np.linalg.norm(wanted, axis=1).max() > 1.0  # it does walk
    assert np.abs(np.linalg.norm(gone[:, :2], axis=1) - np.linalg.norm(wanted[:, :2], axis=1)).max() < tolerance
    assert np.abs(gone[:, 2] - wanted[:, 2]).max() < tolerance
