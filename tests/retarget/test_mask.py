# SPDX-License-Identifier: GPL-3.0-or-later
"""New motion for a part of the body and a range of frames."""

from __future__ import annotations

import numpy as np
import pytest

from mocap_addon.motion.errors import RigError
from mocap_addon.retarget import PARTS, Mask, PoseMotion, blended
from mocap_addon.retarget.mask import part_of

from .bodies import body, q, r, random_take

FRAMES = np.arange(1.0, 41.0)


def two_motions() -> tuple[PoseMotion, PoseMotion, object, dict]:
    skeleton, roles = body()
    out = []
    for seed in (1, 2):
        take = random_take(skeleton, seed=seed)
        rest = r(np.broadcast_to(skeleton.rest_rotations, take.local_rotations.shape))
        bases = q(rest.inv() * r(take.local_rotations)).reshape(take.local_rotations.shape)
        moved = take.local_translations[:, :1] - skeleton.rest_translations[0]
        out.append(PoseMotion("m", take.times, tuple(range(len(skeleton))), bases, (0,), moved))
    return out[0], out[1], skeleton, dict(roles.joints)


def apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (r(a).inv() * r(b)).magnitude().reshape(a.shape[:-1])


def test_only_the_chosen_parts_change():
    old, new, skeleton, roles = two_motions()
    out = blended(old, new, skeleton, roles, Mask(parts=frozenset({"left arm", "fingers"})), FRAMES)
    for k, joint in enumerate(out.bones):
        name = skeleton.names[joint]
        chosen = (name.startswith("left") and any(p in name for p in ("Arm", "Hand", "Shoulder"))) or "Index" in name or "Little" in name
        source = new if chosen else old
        assert apart(out.rotations[:, k], source.rotations[:, k]).max() < 1e-7, name
    assert np.array_equal(out.locations, old.locations)


def test_a_range_with_eased_borders():
    old, new, skeleton, roles = two_motions()
    mask = Mask(start=11.0, end=30.0, ease=5.0)
    out = blended(old, new, skeleton, roles, mask, FRAMES)
    outside = (FRAMES <= 11.0) | (FRAMES >= 30.0)
    whole = (FRAMES >= 16.0) & (FRAMES <= 25.0)
    assert apart(out.rotations[outside], old.rotations[outside]).max() < 1e-7
    assert apart(out.rotations[whole], new.rotations[whole]).max() < 1e-7
    assert np.array_equal(out.locations[whole], new.locations[whole]) and np.array_equal(out.locations[outside], old.locations[outside])
    # smoothstep by hand: one frame in at x = 1/5 it is 3/25 - 2/125 = 0.104, half way 0.5
    assert mask.weights(np.array([11.0, 12.0, 13.5, 16.0, 20.0, 29.0, 30.0, 31.0])) == pytest.approx([0, 0.104, 0.5, 1, 1, 0.104, 0, 0])
    step = apart(old.rotations[11], new.rotations[11])
    assert apart(old.rotations[11], out.rotations[11]) == pytest.approx(0.104 * step, abs=1e-9)


def test_neighbouring_keys_keep_their_sign():
    old, new, skeleton, roles = two_motions()
    flipped = PoseMotion("m", new.times, new.bones, -new.rotations, new.moving, new.locations)
    out = blended(old, flipped, skeleton, roles, Mask(start=11.0, end=30.0), FRAMES)
    assert np.sum(out.rotations[1:] * out.rotations[:-1], axis=-1).min() > 0.0


def test_bones_without_earlier_motion_start_from_rest():
    old, new, skeleton, roles = two_motions()
    none = PoseMotion("none", old.times, (), np.zeros((40, 0, 4)), (), np.zeros((40, 0, 3)))
    out = blended(none, new, skeleton, roles, Mask(end=20.0), FRAMES)
    assert np.array_equal(out.rotations[25, 3], [1.0, 0.0, 0.0, 0.0]) and not out.locations[25].any()
    assert np.array_equal(out.rotations[5], new.rotations[5])


def test_every_joint_belongs_to_a_part():
    skeleton, roles = body()
    found = {part_of(skeleton, dict(roles.joints), j) for j in range(len(skeleton))}
    assert found == set(PARTS)
    assert part_of(skeleton, {"hips": (0,)}, skeleton.index("leftHand")) == "hips"


def test_the_whole_body_all_the_time_is_no_mask():
    assert not Mask() and Mask(parts=frozenset({"head"})) and Mask(ease=1.0)
    for bad in ({"parts": frozenset({"tail"})}, {"parts": frozenset()}, {"start": 5.0, "end": 1.0}, {"ease": -1.0}):
        with pytest.raises(RigError):
            Mask(**bad)
