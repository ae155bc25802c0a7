# SPDX-License-Identifier: GPL-3.0-or-later
"""Known complaints about retargeting, 1 to 7: reference poses, axes, object transforms. Truth is Blender's importer and evaluated pose."""

from __future__ import annotations

from dataclasses import replace

import bpy
import numpy as np
import pytest
from mathutils import Euler, Matrix

from mocap_addon.motion import quat
from mocap_addon.motion.errors import TargetError
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import Take

from . import fidelity
from .complaints import FRAMES, assert_walks, character, edit, original, retarget, walk
from .snapshot import beside_the_retarget, changes, snapshot


def standing(take: Take) -> Take:
    """Two samples of the take's own rest pose."""
    skeleton = take.skeleton
    local = np.tile(skeleton.rest_rotations, (2, 1, 1))
    return Take("rest", skeleton, np.array([0.0, 1.0]), local, np.tile(skeleton.rest_translations, (2, 1, 1)))


def limb_directions(seen: fidelity.Evaluated, pairs) -> np.ndarray:
    """(F, limbs, 3): unit vectors from the first to the second bone of each pair."""
    return np.stack([fidelity.unit(seen.place(b) - seen.place(a)) for a, b in pairs], axis=1)


ARMS = (("upperarm_l", "lowerarm_l"), ("lowerarm_l", "hand_l"), ("upperarm_r", "lowerarm_r"), ("lowerarm_r", "hand_r"))


def test_01_arms_of_an_a_pose_rest_are_horizontal_in_the_sources_t_pose():
    """R: any pose of either rig is a reference, rest untouched. T: source T rest, target A rest; source rest frame -> target arms
    horizontal < 0.1 degree; target rest matrices and shape keys bit-equal after."""
    obj = character(mesh=True)
    body = next(child for child in obj.children_recursive if child.type == "MESH")
    body.shape_key_add(name="Basis")
    body.shape_key_add(name="smile").data[7].co.x += 0.1
    arms = limb_directions(fidelity.rest(obj), ARMS)
    assert np.degrees(np.arcsin(np.abs(arms[..., 2]))).max() > 30.0  # the rest is an A-pose
    before = snapshot()
    result = retarget(obj, standing(walk()))
    assert beside_the_retarget(before, obj, result.action) == []
    arms = limb_directions(fidelity.evaluated(obj, (1, 13)), ARMS)
    assert np.degrees(np.arcsin(np.abs(arms[..., 2]))).max() < 0.1


def collapsed(take: Take) -> Take:
    """The same motion on a skeleton whose rest is no body: every joint with one child has it along its own +Y.

    The joints' axes are chosen anew, ``G`` in the T-pose instead of ``R``; a joint that stands at ``S`` then stands at ``S R^-1 G``.
    """
    skeleton = take.skeleton
    places, rest = skeleton.rest_global_positions, skeleton.rest_global_rotations
    axes = np.tile(quat.IDENTITY, (len(skeleton), 1))
    for joint, children in enumerate(skeleton.children):
        if len(children) == 1 and np.linalg.norm(places[children[0]] - places[joint]) > 1e-6:
            axes[joint] = quat.between(np.array([0.0, 1.0, 0.0]), places[children[0]] - places[joint])
    parents = skeleton.parents
    offsets = places - places[parents]
    offsets = np.where((parents < 0)[:, None], places, quat.rotate(quat.inv(axes[parents]), offsets))
    turned = quat.mul(take.global_rotations, quat.mul(quat.inv(rest), axes))
    local = np.where((parents < 0)[None, :, None], turned, quat.mul(quat.inv(turned[:, parents]), turned))
    moving = np.tile(offsets, (take.frames, 1, 1))
    moving[:, 0] = take.local_translations[:, 0]
    flat = Skeleton(skeleton.names, parents, offsets)
    return replace(take, skeleton=flat, local_rotations=local, local_translations=moving)


def test_02_a_source_rest_that_is_no_body():
    """R: a chosen frame as the reference. T: a source whose rest has its bones along +Y, with a T-pose in frame 0; real walk."""
    base = walk()
    still = standing(base)
    local, moving = base.local_rotations.copy(), np.array(np.broadcast_to(base.local_translations, (base.frames, len(base.skeleton), 3)))
    local[0], moving[0] = still.local_rotations[0], still.local_translations[0]
    whole = replace(base, local_rotations=local, local_translations=moving)
    flat = collapsed(whole)
    assert np.abs(flat.global_positions - whole.global_positions).max() < 1e-9  # the same walk
    hand, shoulder = (flat.skeleton.rest_global_positions[flat.skeleton.index(n)] for n in ("lhand", "lhumerus"))
    assert abs(fidelity.unit(hand - shoulder)[1]) > 0.95  # an arm along +Y at rest
    obj = character()
    retarget(obj, whole)
    truth = fidelity.evaluated(obj, FRAMES[1:])
    retarget(obj, flat, reference_frame=0)
    seen = fidelity.evaluated(obj, FRAMES[1:])
    assert np.degrees(quat.angle(seen.rotations, truth.rotations)).max() < 0.1
    assert np.linalg.norm(seen.positions - truth.positions, axis=-1).max() < 1e-3


def test_03_roll_never_reaches_the_mesh():
    """R: roll never changes the deformation. T: the same skeleton, random roll a bone; skinned vertices equal < 1e-4."""
    skins = []
    for rolled in (False, True):
        obj = character(mesh=True)
        if rolled:
            rng = np.random.default_rng(7)
            edit(obj, lambda bones, rng=rng: [setattr(bone, "roll", float(rng.uniform(-3.1, 3.1))) for bone in bones])
        retarget(obj)
        skins.append([fidelity.skinned(obj, frame) for frame in (1, 26, 55)])
        for other in list(bpy.data.objects):
            bpy.data.objects.remove(other)
    for a, b in zip(*skins, strict=True):
        for one, other in zip(a.values(), b.values(), strict=True):
            assert len(one) > 1000 and np.abs(one - other).max() < 1e-4


def test_04_leaf_joints_do_not_flip():
    """R: chain direction from the joint before, not the leaf's own axis. T: toes, fingertips and head pointing sideways, as in FBX."""
    obj = character(mesh=True)
    retarget(obj)
    plain = [fidelity.skinned(obj, frame) for frame in (1, 26, 55)]
    for other in list(bpy.data.objects):
        bpy.data.objects.remove(other)
    obj = character(mesh=True)
    leaves = [bone.name for bone in obj.data.bones if not bone.children]
    assert {"ball_l", "head"} <= set(leaves)

    def sideways(bones) -> None:
        for name in leaves:
            bones[name].tail = bones[name].head + Matrix.Rotation(1.8, 3, "X") @ Matrix.Rotation(1.3, 3, "Z") @ bones[name].vector

    edit(obj, sideways)
    retarget(obj)
    for frame, wanted in zip((1, 26, 55), plain, strict=True):
        for a, b in zip(fidelity.skinned(obj, frame).values(), wanted.values(), strict=True):
            assert np.abs(a - b).max() < 1e-4
    ends = walk().skeleton.ends.copy()
    tips = [j for j, children in enumerate(walk().skeleton.children) if not children]
    ends[tips] = np.linalg.norm(ends[tips], axis=1)[:, None] * np.array([1.0, 0.0, 0.0])
    retarget(obj, replace(walk(), skeleton=replace(walk().skeleton, ends=ends)))
    for a, b in zip(fidelity.skinned(obj, 26).values(), plain[1].values(), strict=True):
        assert np.abs(a - b).max() < 1e-4


@pytest.mark.parametrize("parented", [False, True])
@pytest.mark.parametrize("angles", [(90.0, 0.0, 0.0), (0.0, 0.0, 37.0)])
def test_05_a_turned_object_does_not_turn_the_motion(angles, parented):
    """R: world space, explicitly: the take's ground is the world's. T: object turned (90, 0, 0), (0, 0, 37), or by a turned parent."""
    truth = original()
    turn = Euler(np.radians(angles)).to_matrix().to_4x4()
    obj = character()
    obj.rotation_mode = "XYZ"
    if parented:
        empty = bpy.data.objects.new("Empty", None)
        bpy.context.scene.collection.objects.link(empty)
        obj.parent, empty.matrix_world = empty, turn
    else:
        obj.matrix_world = turn
    bpy.context.view_layer.update()
    before = snapshot()
    result = retarget(obj)
    assert beside_the_retarget(before, obj, result.action) == []
    assert_walks(obj, truth)
    seen = fidelity.evaluated(obj, FRAMES)
    up = seen.place("head") - seen.place("pelvis")
    assert (fidelity.unit(up)[:, 2] > 0.95).all()


@pytest.mark.parametrize("scale", [0.01, 100.0])
def test_06_any_uniform_object_scale(scale):
    """R: metres correct. T: target scale 0.01 with 100x bones, and the reverse; 1 m of source stride is 1 m times the ratio of legs."""
    truth = original()
    obj = character()
    obj.data.transform(Matrix.Scale(1.0 / scale, 4))
    obj.scale = (scale,) * 3
    bpy.context.view_layer.update()
    retarget(obj)
    assert_walks(obj, truth)


@pytest.mark.parametrize("mirrored", [(-1.0, 1.0, 1.0), (-1.0, -1.0, -1.0)])
def test_07_a_mirrored_object_is_refused_in_a_sentence(mirrored):
    """R: handled, or refused with a clear text. T: target scale (-1, 1, 1)."""
    obj = character()
    obj.scale = mirrored
    bpy.context.view_layer.update()
    before = snapshot()
    with pytest.raises(TargetError, match=r"mirrored by a negative scale; .*\.$"):
        retarget(obj)
    scene = [path for path in changes(before, snapshot()) if "render/fps" not in path]
    assert scene == []


def test_07_a_mirrored_bone_keeps_its_scale_and_is_named():
    """R: never NaN, never a flattened limb. T: one bone with negative scale."""
    obj = character()
    obj.pose.bones["lowerarm_l"].scale = (-1.0, 1.0, 1.0)
    result = retarget(obj)
    assert any("lowerarm_l" in note and "scaled" in note for note in result.notes)
    seen = fidelity.evaluated(obj, FRAMES)
    assert np.isfinite(seen.positions).all()
    rest = fidelity.rest(obj)
    for a, b in (("lowerarm_l", "hand_l"), ("upperarm_l", "lowerarm_l")):
        length = np.linalg.norm(seen.place(b) - seen.place(a), axis=1)
        assert np.abs(length - np.linalg.norm(rest.place(b)[0] - rest.place(a)[0])).max() < 1e-4
