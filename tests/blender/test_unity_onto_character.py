# SPDX-License-Identifier: GPL-3.0-or-later
"""A Unity clip goes onto a character as the recording it was made of does."""

from __future__ import annotations

import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.blender import characters, job
from mocap_addon.motion.errors import MocapError
from tests.formats.test_unity_anim import SAMPLES, as_unity, written
from tests.formats.test_viewer_page import CHARACTER
from tests.paths import SHARED, need


def test_a_clip_and_its_recording_move_a_character_alike(tmp_path):
    (walk,) = formats.read(need(SHARED / "cmu" / "asf_02_01_walk.bvh"))
    walk = walk.block(0, 120)
    (clip,) = formats.read(written(tmp_path, as_unity(walk, 120)))
    obj = characters.bring_in(CHARACTER, None).armature
    meant = job.retarget_onto(obj, walk).take
    got = job.retarget_onto(obj, clip).take
    assert meant.frames == got.frames
    apart = got.global_positions - meant.global_positions
    hips = meant.skeleton.index("pelvis")
    # The recording also says where its toes end, the clip does not: the floor under them is found a few millimetres apart.
    assert (
        np.ptp(apart[:, hips], axis=0).max() < 1e-5 and np.abs(apart[:, hips, :2]).max() < 1e-5 and np.abs(apart[:, hips, 2]).max() < 0.01
    )
    moving = [j for j in range(len(meant.skeleton)) if meant.skeleton.is_below(j, hips)]
    np.testing.assert_allclose(apart[:, moving], np.broadcast_to(apart[:, [hips]], apart[:, moving].shape), atol=1e-5)


def test_muscles_are_refused_with_what_is_missing():
    obj = characters.bring_in(CHARACTER, None).armature
    (pose,) = formats.read(need(SAMPLES / "pose1.anim"))
    with pytest.raises(MocapError, match="avatar"):
        job.retarget_onto(obj, pose)
