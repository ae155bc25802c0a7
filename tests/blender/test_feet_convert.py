# SPDX-License-Identifier: GPL-3.0-or-later
"""``mocap convert --feet --ground``: the files hold the planted motion, and nothing of the ground."""

from __future__ import annotations

from pathlib import Path

import bpy
import numpy as np
import pytest

from .test_cli_convert import CHARACTER, WALK, armature, convert, heads


def step_file(path, height=0.2, size=40.0):
    """A large level slab as a Wavefront file: Y up, metres."""
    corners = [(x, y, z) for y in (height - 0.1, height) for z in (-size, size) for x in (-size, size)]
    faces = ((1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4))
    rows = [f"v {x} {y} {z}" for x, y, z in corners] + ["f " + " ".join(map(str, face)) for face in faces]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_feet_stand_on_a_file(tmp_path, capfd):
    slab = step_file(tmp_path / "slab.obj")
    (flat,) = convert(capfd, tmp_path / "flat", WALK, "--character", CHARACTER, "--feet", "plant", "--formats", "bvh,blend")
    (raised,) = convert(
        capfd, tmp_path / "up", WALK, "--character", CHARACTER, "--feet", "plant", "--ground", slab, "--formats", "bvh,blend"
    )
    assert flat["feet"]["mode"] == "plant" and raised["feet"]["footprints"] and raised["feet"]["report"]["frames"] == raised["frames"]
    assert {o.type for o in bpy.data.objects} == {"ARMATURE", "MESH"} and "slab" not in bpy.data.objects
    found = []
    for record in (flat, raised):
        bpy.ops.wm.open_mainfile(filepath=record["files"]["blend"])
        action = armature().animation_data.action
        assert action.name == record["action"] and action.name.endswith("feet")
        found.append(heads(armature(), range(1, 60, 7)))
    for name in ("pelvis", "foot_l", "foot_r", "ball_l"):
        lifted = (found[1][name] - found[0][name])[:, 2]
        assert np.allclose(lifted, 0.2, atol=0.005), name


def test_measured_only(tmp_path, capfd):
    (record,) = convert(capfd, tmp_path, WALK, "--character", CHARACTER, "--feet", "off", "--formats", "bvh")
    (plain,) = convert(capfd, tmp_path / "plain", WALK, "--character", CHARACTER, "--formats", "bvh")
    assert record["feet"]["report"]["before"] and "feet" not in plain
    assert Path(record["files"]["bvh"]).read_text() == Path(plain["files"]["bvh"]).read_text()


@pytest.mark.parametrize("words, sentence", [(("--ground", "nowhere.obj"), "no such file"), (("--ground", "x.txt"), "cannot be ground")])
def test_sentences(tmp_path, capfd, words, sentence):
    (record,) = convert(capfd, tmp_path, WALK, "--character", CHARACTER, "--feet", "plant", *words, "--formats", "bvh", code=1)
    assert sentence in record["error"]
