# SPDX-License-Identifier: GPL-3.0-or-later
"""Limb directions of every take on every character equal those of Blender's own BVH importer, up to one rotation."""

from __future__ import annotations

import numpy as np
import pytest

from tests.paths import need

from . import fidelity
from .fidelity import LIMBS, TARGETS, degrees, unit

LIMIT = 0.1  # degrees


@pytest.mark.parametrize("take_name", fidelity.takes())
def test_limb_directions(take_name):
    path = need(fidelity.find(take_name))
    for target in TARGETS:
        need(fidelity.find(TARGETS[target]))
    reference = fidelity.blender_bvh(path)
    worst: dict[str, float] = {}
    frames = truth = bone_names = None
    for target in TARGETS:
        obj = fidelity.target_object(target)
        result, take = fidelity.job(obj, path)
        if truth is None:
            frames = fidelity.picked_frames(take.frames)
            if any("relative to it" in note for note in take.notes):
                fidelity.drop_positions_below_the_root(reference)
            truth = fidelity.evaluated(reference, frames)
            bone_names = fidelity.blender_names(path, take.skeleton.names, reference)
        ours = fidelity.evaluated(obj, frames)
        source, bones = fidelity.roles_by_name(take.skeleton), fidelity.roles_by_name(result.target.skeleton)
        if target == "robot":  # no hand bones: three palm bones start at the wrist
            bones |= {"leftHand": "Palm2L", "rightHand": "Palm2R"}
        limbs = [pair for pair in LIMBS if all(role in source and role in bones for role in pair)]
        assert len(limbs) == len(LIMBS), f"{target}: only {limbs}"
        if target == "robot":  # its feet hang on the root: the shin's direction is not set by its joints
            limbs = [pair for pair in limbs if "LowerLeg" not in pair[0]]
        a = np.concatenate([unit(truth.place(bone_names[source[q]]) - truth.place(bone_names[source[p]])) for p, q in limbs])
        b = np.concatenate([unit(ours.place(bones[q]) - ours.place(bones[p])) for p, q in limbs])
        worst[target] = float(degrees(a @ fidelity.best_turn(a, b).T, b).max())
    assert max(worst.values()) < LIMIT, worst
