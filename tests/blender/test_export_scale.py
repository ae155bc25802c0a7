# SPDX-License-Identifier: GPL-3.0-or-later
"""Bones whose scale is animated: where three.js and bone maps have every joint, against Blender's evaluated pose."""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from mocap_addon.blender import export, node_clips, playing
from mocap_addon.blender.export import ExportOptions
from tests.blender import export_grid as grid
from tests.blender import export_helpers as h
from tests.node import run

HERO = "mh_ue_names_apose.glb"
CENTIMETRES = "mh_mixamo_names_scale001.glb"
EVEN, UNEVEN = (1.6, 1.6, 1.6), (1.5, 0.7, 1.2)
FRAMES = range(1, 9)


def scaled(
    bones: dict[str, tuple[float, float, float]], turns: dict[str, tuple[float, float, float]], file: str = HERO
) -> bpy.types.Object:
    """A character whose bones grow from 1 to a scale and back to half of that, while it moves."""
    h.set_rate(30)
    obj = h.skinned(file)
    root = obj.data.bones[1].name
    h.act(obj, "grow", FRAMES, turns, root, size=1.0 / obj.matrix_world.to_scale()[0])
    for frame in FRAMES:
        share = np.sin(np.pi * (frame - 1) / 7) if frame < 5 else 0.5
        for name, size in bones.items():
            obj.pose.bones[name].scale = [1.0 + share * (s - 1.0) for s in size]
            obj.pose.bones[name].keyframe_insert("scale", frame=frame)
    return obj


def check(obj: bpy.types.Object, folder, file: str = HERO, **options) -> list[grid.Found]:
    poses = h.shown(obj, FRAMES)
    times = [(f - 1) / 30 for f in FRAMES]
    some = grid.written(
        obj, "grow", folder, h.TARGETS / file, times, poses, 7 / 30, len(times), ExportOptions(**{"bound": None, **options})
    )
    return grid.in_node(some)


def _is_sheared(obj: bpy.types.Object, bone: str) -> bool:
    """Whether the axes of a bone are not square to each other in its parent's frame on any frame."""
    for pose in h.shown(obj, FRAMES):
        axes = (np.linalg.inv(pose[obj.data.bones[bone].parent.name]) @ pose[bone])[:3, :3]
        axes = axes / np.linalg.norm(axes, axis=0)
        if np.abs(axes.T @ axes - np.eye(3)).max() > 1e-3:
            return True
    return False


TURNS = {"spine_02": (20, 10, 30), "upperarm_l": (30, 50, 10), "lowerarm_l": (0, 60, 20), "thigh_r": (40, 10, 0)}


@pytest.mark.parametrize("size", [pytest.param(EVEN, marks=pytest.mark.thorough), UNEVEN])
@pytest.mark.parametrize(
    "mode", ["FULL", *(pytest.param(m, marks=pytest.mark.thorough) for m in ("FIX_SHEAR", "AVERAGE", "NONE")), "ALIGNED"]
)
def test_joints_of_scaled_bones_are_where_blender_has_them(tmp_path, mode, size):
    """Fingers hang on the arm in all directions, so they show how it is scaled. What cannot be is named, and its joints stand right."""
    obj = scaled({"spine_02": size, "upperarm_l": size, "head": (0.5, 0.5, 0.5)}, TURNS)
    arm = "upperarm_l"
    obj.data.bones[arm].inherit_scale = mode
    obj.data.bones["thigh_r"].inherit_scale = mode  # its parent is not scaled: nothing to be said
    for one in check(obj, tmp_path):
        assert one.keys < h.LIMIT
    made = node_clips.of_action(node_clips.stage(obj, h.TARGETS / HERO), playing.choose(obj, "grow"))
    assert {"spine_02", "head"} <= set(made.facts["scaled"]) and len(made.facts["scaled"]) < len(obj.data.bones)
    notes = [note for note in made.notes if "a shear" in note]
    assert bool(notes) == _is_sheared(obj, arm)
    if notes:
        assert notes[0].endswith(f": {arm}.")
    assert not notes or (mode != "FULL" and size == UNEVEN)
    assert notes or mode != "ALIGNED" or size == EVEN


def test_only_scales_that_move_have_tracks(tmp_path):
    obj = scaled({"spine_02": UNEVEN}, TURNS)
    check(obj, tmp_path)
    tracks = h.tracks_of(h.clips_in(tmp_path / "grow.clip.json")["grow"])
    assert [name for name in tracks if name.endswith(".scale")] == ["spine_02.scale"]
    times, values = tracks["spine_02.scale"]
    assert len(times) == 8
    np.testing.assert_allclose(values[3], 1.0 + np.sin(np.pi * 3 / 7) * (np.array(UNEVEN) - 1.0), atol=2e-6)
    # what hangs on it moves by its turns alone
    assert {name.partition(".")[0] for name in tracks if name.endswith(".position")} == {obj.data.bones[1].name}


@pytest.mark.thorough
def test_a_scale_of_centimetres_and_reduced(tmp_path):
    names = ("mixamorig:Spine1", "mixamorig:LeftArm")
    obj = scaled(dict.fromkeys(names, UNEVEN), {n: (20, 40, 10) for n in names}, CENTIMETRES)
    for one in check(obj, tmp_path, CENTIMETRES, bound=h.LIMIT):
        assert one.keys < 1.05 * h.LIMIT
    assert run("validate.mjs", [str(tmp_path / "Armature.glb")])[0]["errors"] == 0


@pytest.mark.parametrize(
    "size",
    [(0.0, 0.0, 0.0), *(pytest.param(s, marks=pytest.mark.thorough) for s in ((1.0, 0.0, 1.0), (-1.0, 1.0, 1.0), (1.0, -0.5, -1.0)))],
)
def test_bones_made_nothing_flat_or_mirrored(tmp_path, size):
    """Hidden by a scale of zero for some frames: all that hangs on them is in one point then, and comes back."""
    h.set_rate(30)
    obj = h.skinned(HERO)
    h.act(obj, "grow", FRAMES, TURNS, "pelvis")
    for frame in FRAMES:
        obj.pose.bones["upperarm_l"].scale = size if 3 <= frame <= 5 else (1, 1, 1)
        obj.pose.bones["upperarm_l"].keyframe_insert("scale", frame=frame)
    for one in check(obj, tmp_path):
        assert one.keys < h.LIMIT


def test_a_scale_that_is_only_posed_is_kept_and_other_formats_say_that_they_have_none(tmp_path):
    h.set_rate(30)
    obj = h.skinned(HERO)
    h.act(obj, "grow", FRAMES, TURNS, "pelvis")
    obj.pose.bones["head"].scale = (1.4, 1.4, 1.4)
    for one in check(obj, tmp_path):
        assert one.keys < h.LIMIT
    times, values = h.tracks_of(h.clips_in(tmp_path / "grow.clip.json")["grow"])["head.scale"]
    assert len(times) == 2
    np.testing.assert_allclose(values, 1.4, atol=1e-6)
    report = export.export_actions(obj, ["grow"], tmp_path, ExportOptions(("bvh",), bound=None))
    assert any("scale" in note and "head" in note for note in report.notes)
    report = export.export_actions(obj, ["grow"], tmp_path, ExportOptions(("glb",), bound=None), character=h.TARGETS / HERO)
    assert report.notes == ()


@pytest.mark.thorough
def test_uneven_scales_in_chromium(tmp_path):
    """Bone maps by the player's vertex shader, a bone that is flat included."""
    obj = scaled({"spine_02": UNEVEN, "upperarm_l": UNEVEN, "head": (0.0, 0.5, 0.5)}, TURNS)
    rest = h.TARGETS / HERO, [(f - 1) / 30 for f in FRAMES], h.shown(obj, FRAMES), 7 / 30, len(FRAMES)
    some = grid.written(obj, "grow", tmp_path, *rest, ExportOptions(bound=None))
    for one in grid.in_chromium(some, tmp_path):
        assert one.keys < h.LIMIT


@pytest.mark.thorough
def test_match_blender_where_scales_go_along_curves(tmp_path):
    h.set_rate(24)
    obj = h.skinned(HERO)
    h.act(obj, "grow", [1, 5], {"upperarm_l": (90, 0, 20)}, "pelvis")
    for frame, size in ((1, EVEN), (3, UNEVEN), (5, (0.5, 1, 2))):
        obj.pose.bones["upperarm_l"].scale = size
        obj.pose.bones["upperarm_l"].keyframe_insert("scale", frame=frame)
    frames = np.arange(1, 5.01, 0.2)
    rest = h.TARGETS / HERO, ((frames - 1) / 24).tolist(), h.shown(obj, frames), 4 / 24, 0
    worst = {}
    for match in (True, False):
        some = grid.written(obj, "grow", tmp_path / str(match), *rest, ExportOptions(bound=None, match=match), kinds=["JSON", "GLB"])
        worst[match] = [one.between for one in grid.in_node(some)]
    assert max(worst[True]) < h.LIMIT < min(worst[False])
