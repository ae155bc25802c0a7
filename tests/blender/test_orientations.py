# SPDX-License-Identifier: GPL-3.0-or-later
"""What directions cannot see: twist, palms, soles, heads, and the reference pose itself. Read from Blender's evaluated pose and mesh."""

from __future__ import annotations

import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.blender import scenes
from mocap_addon.blender.job import JobOptions, retarget_onto
from mocap_addon.motion import quat
from mocap_addon.motion.take import Take
from tests.paths import need

from . import fidelity
from .fidelity import TARGETS, unit

import bpy  # isort: skip

ORIENTED = ("hips", "head", "leftUpperArm", "leftLowerArm", "leftHand", "rightUpperArm", "rightLowerArm", "rightHand")
LEGS = ("leftUpperLeg", "leftLowerLeg", "leftFoot", "rightUpperLeg", "rightLowerLeg", "rightFoot")


def reference_take(path) -> Take:
    """One frame: the source in its own reference pose."""
    take = formats.read(path)[0]
    s = take.skeleton
    return Take("reference", s, np.zeros(1), s.rest_rotations[None].copy(), s.rest_translations[None].copy(), rate=take.rate)


def in_reference(obj, path) -> tuple[fidelity.Evaluated, dict[str, str], object]:
    result = retarget_onto(obj, reference_take(path), options=JobOptions(frame_start=1.0))
    return fidelity.evaluated(obj, [1]), fidelity.roles_by_name(result.target.skeleton), result


def delta(now: np.ndarray, then: np.ndarray) -> np.ndarray:
    return quat.mul(now, quat.inv(then))


@pytest.mark.parametrize("take_name", fidelity.takes())
def test_every_bone_turns_as_its_source_does(take_name):
    """Turn away from the reference, bone by bone, against Blender's own importer: twist at elbow, wrist, knee, ankle; head forward;
    soles."""
    path = need(fidelity.find(take_name))
    reference = fidelity.blender_bvh(path)
    worst: dict[str, float] = {}
    truth = None
    for target in TARGETS:
        obj = fidelity.target_object(target)
        then, bones, _ = in_reference(obj, path)
        result, take = fidelity.job(obj, path)
        if truth is None:
            frames = fidelity.picked_frames(take.frames, 7)
            if any("relative to it" in note for note in take.notes):
                fidelity.drop_positions_below_the_root(reference)
            truth = fidelity.evaluated(reference, frames)
            truth_rest = fidelity.rest(reference)
            names = fidelity.blender_names(path, take.skeleton.names, reference)
        now = fidelity.evaluated(obj, frames)
        source = fidelity.roles_by_name(take.skeleton)
        # MakeHuman bends inside its split limbs: there the bone aims along the chord (test_directions), and no one link's turn is the
        # truth.
        split = {row.role for row in result.table.rows if row.rule == "chord"} if "upperarm02.L" in take.skeleton.names else set()
        roles = [r for r in (*ORIENTED, *LEGS) if r in source and r in bones and r not in split]
        d_s = np.stack([delta(truth.turn(names[source[r]]), truth_rest.turn(names[source[r]])) for r in roles], axis=1)
        d_t = np.stack([delta(now.turn(bones[r]), then.turn(bones[r])) for r in roles], axis=1)
        # One rotation may lie between the two worlds; the deltas turn with it: delta_t = A delta_s A^-1 W, where the file's motion and
        # rest may also stand differently (W). The pair is found from a handful of quarter turns and then holds for every bone and frame.
        worst[target] = min(_misses(d_s, d_t))
    assert max(worst.values()) < 0.05, worst


def _misses(d_s: np.ndarray, d_t: np.ndarray) -> list[float]:
    """Greatest angle (degrees) over all bones and frames between ``A d_s W`` and ``d_t``, for every quarter turn ``A``; ``W`` from the
    hips."""
    quarter = [quat.from_euler(np.radians([z, y, x]), "ZYX") for z in (0, 90, 180, 270) for y in (0, 90, -90) for x in (0, 90, 180, 270)]
    out = []
    for a in quarter:
        w = quat.mul(quat.inv(quat.mul(a, d_s[0, 0])), d_t[0, 0])
        out.append(float(np.degrees(quat.angle(quat.mul(quat.mul(a, d_s), w), d_t).max())))
    return out


@pytest.mark.parametrize("target", [t for t in TARGETS if t != "robot"])
@pytest.mark.parametrize(
    "take_name",
    fidelity.takes(("cmu/asf_02_01_walk.bvh", "cmu/cgspeed_12_01_walk.bvh", "makehuman/walk1.bvh", "xsens/mvn_bvh_walk_239hz_1200f.bvh")),
)
def test_a_source_in_its_reference_leaves_the_rest_but_for_the_limbs(take_name, target):
    path = need(fidelity.find(take_name))
    need(fidelity.find(TARGETS[target]))
    obj = fidelity.target_object(target)
    before = fidelity.skinned(obj, 1)
    rest = fidelity.rest(obj)
    now, bones, result = in_reference(obj, path)
    after = fidelity.skinned(obj, 1)
    trunk = {row.target for row in result.table.rows if row.role in ("hips", "spine", "neck", "head")}
    checked = 0
    for name, vertices in before.items():
        inside = _only_on(bpy.data.objects[name], trunk)
        if inside.sum() < 20:
            continue
        checked += int(inside.sum())
        moved = after[name][inside] - vertices[inside]
        assert np.linalg.norm(moved - moved.mean(axis=0), axis=1).max() < 1e-3, name
    assert checked > 100
    up = np.array([0.0, 0.0, 1.0])
    for side in ("left", "right"):
        turn = delta(now.turn(bones[f"{side}Foot"]), rest.turn(bones[f"{side}Foot"]))[0]
        assert np.degrees(np.arccos(np.clip(quat.rotate(turn, up) @ up, -1, 1))) < 0.5
        # a limb swings, it does not twist: the turn of a bone against its parent has no part about the bone itself
        common = [f for f in ("Middle", "Ring", "Index", "Little") if f"{side}{f}" in {row.role for row in result.table.rows}]
        pointing = (common or [f for f in ("Middle", "Index") if f"{side}{f}" in bones])[:1]
        wrist = [
            ("LowerArm", "Hand", finger) for finger in pointing if len(common) < 2
        ]  # two fingers or more: palms are laid onto each other
        for near, bone, tip in (("UpperArm", "LowerArm", "Hand"), ("UpperLeg", "LowerLeg", "Foot"), *wrist):
            parent, child = bones[f"{side}{near}"], bones[f"{side}{bone}"]
            relative = delta(
                quat.mul(quat.inv(delta(now.turn(parent), rest.turn(parent))[0]), delta(now.turn(child), rest.turn(child))[0]),
                quat.IDENTITY,
            )
            axis = unit(rest.place(bones[f"{side}{tip}"])[0] - rest.place(child)[0])
            _, twist = quat.swing_twist(relative, axis)
            assert np.degrees(quat.angle(twist, quat.IDENTITY)) < 0.5, (side, bone)


def _only_on(obj: bpy.types.Object, bones: set[str]) -> np.ndarray:
    """Vertices that are weighted to ``bones`` alone."""
    groups = {group.index for group in obj.vertex_groups if group.name in bones}
    return np.array([bool(v.groups) and all(g.group in groups or g.weight < 1e-6 for g in v.groups) for v in obj.data.vertices], dtype=bool)


@pytest.mark.parametrize(
    "take_name", fidelity.takes(("cmu/asf_02_01_walk.bvh", "cmu/asf_02_05_punch_60fps.bvh", "xsens/mvn_bvh_walk_239hz_1200f.bvh"))
)
def test_twins(take_name):
    """The same body skinned to two rigs, one in A-pose, one in T-pose, with other names: the same take must give the same shape.

    Vertices of one bone alone are compared. A vertex shared by several cannot be the same on both whatever the pose: the T-pose mesh was
    itself made by linear skinning, and skinning twice is not skinning once (up to 25 mm in the armpits here).
    """
    path = need(fidelity.find(take_name))
    shapes, palms = [], []
    for target in ("unreal", "vrm"):
        obj = fidelity.target_object(target)
        result, take = fidelity.job(obj, path)
        frames = fidelity.picked_frames(take.frames, 5)
        shapes.append([next(iter(fidelity.skinned(obj, int(frame)).values())) for frame in frames])
        alone = fidelity.bound_to_one(next(child for child in obj.children if child.type == "MESH"))
        now = fidelity.evaluated(obj, frames)
        roles = fidelity.roles_by_name(result.target.skeleton)
        for side in ("left", "right"):
            wrist = now.place(roles[f"{side}Hand"])
            across = np.cross(now.place(roles[f"{side}Index"]) - wrist, now.place(roles[f"{side}Little"]) - wrist)
            palms.append((target, side, unit(across)))
        for child in list(obj.children):
            bpy.data.objects.remove(child)
        bpy.data.objects.remove(obj)
    for side in ("left", "right"):
        a, b = (normal for target, s, normal in palms if s == side)
        assert fidelity.degrees(a, b).max() < 1.0
    assert alone.sum() > 3000
    for u, v in zip(*shapes, strict=True):
        assert u.shape == v.shape
        assert np.linalg.norm(u - v, axis=1)[alone].max() < 3e-3


@pytest.mark.parametrize(
    ("take_name", "axes"),
    [
        ("cmu/asf_02_01_walk.bvh", {}),
        ("cmu/cgspeed_12_01_walk.bvh", {}),
        ("makehuman/zombieWalk1.bvh", {"axis_forward": "Y", "axis_up": "Z"}),
        ("xsens/mvn_bvh_walk_239hz_1200f.bvh", {}),
    ],
)
def test_a_skeleton_onto_itself(take_name, axes):
    """Blender's importer makes the armature and plays the file on it; our action on the same armature puts every joint there, too."""
    path = need(fidelity.find(take_name))
    take = formats.read(path)[0]
    scenes.set_rate(bpy.context.scene, take.rate)
    obj = fidelity.blender_bvh(path, scale=float(take.facts["unit"]), **axes)
    frames = fidelity.picked_frames(take.frames)
    truth = fidelity.evaluated(obj, frames)
    obj.animation_data_clear()
    fidelity.job(obj, path)
    ours = fidelity.evaluated(obj, frames)
    assert np.linalg.norm(truth.positions - ours.positions, axis=-1).max() < 1e-4
