# SPDX-License-Identifier: GPL-3.0-or-later
"""Takes whose zero pose is no body, on characters, as Blender evaluates them. Truth: T-poses made by hand, and the files' own rotations.

A bone's turn away from its rest has to be ``S S0^-1 W``: ``S0`` the hand-made T-pose, ``W`` the turn that lays the rest's limb along the
T-pose's, which is written here anew: trunk none, limbs from joint to joint the smallest turn, handed down.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mocap_addon import formats, rig
from mocap_addon.motion import quat
from tests.paths import SHARED, need

from . import fidelity
from .fidelity import degrees, unit

tables = pytest.importorskip("tests.retarget.truth", reason="needs SciPy").tables

UP, LEFT, AHEAD = np.eye(3)[2], np.eye(3)[0], -np.eye(3)[1]
FLEXED = 20.0
SIDES = (("left", LEFT), ("right", -LEFT))


class Seen:
    """A take on a character: the evaluated pose, the rest, the source's rotations and places at the same frames."""

    def __init__(self, path: Path, truth, target: str) -> None:
        obj = fidelity.target_object(target)
        self.result, self.take = fidelity.job(obj, path)
        frames = fidelity.picked_frames(self.take.frames, 25)
        self.now, self.rest = fidelity.evaluated(obj, frames), fidelity.rest(obj)
        self.bones = fidelity.roles_by_name(self.result.target.skeleton)
        skeleton = self.take.skeleton
        self.joints = {role: joints[0] for role, joints in rig.match(skeleton).joints.items()}
        self.places, self.rotations = self.take.global_positions[frames - 1], self.take.global_rotations[frames - 1]
        self.truth = {
            role: truth[skeleton.names[j]].as_quat()[[3, 0, 1, 2]] for role, j in self.joints.items() if skeleton.names[j] in truth
        }

    def meant(self, role: str) -> np.ndarray:
        """(F, 4): how far the source's joint has turned away from the T-pose."""
        return quat.mul(self.rotations[:, self.joints[role]], quat.inv(self.truth[role]))

    def turned(self, role: str) -> np.ndarray:
        """(F, 4): how far the character's bone has turned away from its rest."""
        bone = self.bones[role]
        return quat.mul(self.now.turn(bone), quat.inv(self.rest.turn(bone)[0]))

    def at_rest(self, a: str, b: str) -> np.ndarray:
        return unit(self.rest.place(self.bones[b])[0] - self.rest.place(self.bones[a])[0])

    def flexion(self, upper: str, lower: str, tip: str) -> np.ndarray:
        a, b, c = (self.places[:, self.joints[role]] for role in (upper, lower, tip))
        return np.degrees(np.arccos(np.clip(np.einsum("fc,fc->f", unit(b - a), unit(c - b)), -1.0, 1.0)))


@pytest.fixture(scope="module", params=["unreal", "vrm"])
def target(request):
    need(fidelity.find(fidelity.TARGETS[request.param]))
    return request.param


@pytest.fixture(scope="module", params=sorted(tables()), ids=lambda path: path.rsplit("/", 1)[1].removesuffix(".bvh"))
def seen(request, target):
    return Seen(need(SHARED / request.param), tables()[request.param], target)


def angle(a, b) -> float:
    return float(np.degrees(quat.angle(a, b)).max())


def test_hips_and_head(seen):
    """Head forward, hip line, and no twist between."""
    assert angle(seen.turned("hips"), seen.meant("hips")) < 2.0
    assert angle(seen.turned("head"), seen.meant("head")) < 2.0
    ahead = degrees(quat.rotate(seen.turned("head"), AHEAD), quat.rotate(seen.meant("head"), AHEAD))
    assert ahead.max() < 2.0
    line = unit(seen.now.place(seen.bones["leftUpperLeg"]) - seen.now.place(seen.bones["rightUpperLeg"]))
    source = unit(seen.places[:, seen.joints["leftUpperLeg"]] - seen.places[:, seen.joints["rightUpperLeg"]])
    assert degrees(line, source).max() < 2.0


def test_hinges_of_elbows_and_knees(seen):
    """The axis a bent limb bends about lies as the source's does, and both bones twist with it."""
    checked = 0
    for side, out in SIDES:
        for parts, along, hinge in (
            (("UpperArm", "LowerArm", "Hand"), out, -UP if side == "left" else UP),
            (("UpperLeg", "LowerLeg", "Foot"), -UP, LEFT),
        ):
            upper, lower, tip = (side + part for part in parts)
            swing = quat.identity()
            bent = seen.flexion(upper, lower, tip) > FLEXED
            for near, far in ((upper, lower), (lower, tip)):
                swing = quat.mul(quat.between(quat.rotate(swing, seen.at_rest(near, far)), along), swing)
                assert angle(seen.turned(near), quat.mul(seen.meant(near), swing)) < 2.0, near
                if bent.any():
                    a = quat.rotate(quat.mul(seen.turned(near), quat.inv(swing)), hinge)[bent]
                    assert degrees(a, quat.rotate(seen.meant(near), hinge)[bent]).max() < 2.0, near
                    checked += int(bent.sum())
            # the source's own hinge, from where its joints are: ahead of the elbow, behind the knee
            if bent.any():
                a, b, c = (seen.places[:, seen.joints[role]][bent] for role in (upper, lower, tip))
                own = unit(np.cross(b - a, c - b))
                assert np.median(degrees(own, quat.rotate(seen.meant(upper), hinge)[bent])) < 2.0
    assert checked > 50


def test_hands(seen):
    """Palms by the knuckles where the source has any; else the roll that the hand has against a straight arm."""
    for side, out in SIDES:
        hand = f"{side}Hand"
        if f"{side}Little" in seen.joints and f"{side}Index" in seen.joints:
            knuckles = (f"{side}Index", f"{side}Little")
            normals = [
                unit(np.cross(*(place(role) - place(hand) for role in knuckles)))
                for place in (lambda r: seen.now.place(seen.bones[r]), lambda r: seen.places[:, seen.joints[r]])
            ]
            assert degrees(*normals).max() < 2.0
            continue
        swing = quat.identity()
        finger = next(f"{side}{f}" for f in ("Middle", "Index") if f"{side}{f}" in seen.bones)
        for near, far in ((f"{side}UpperArm", f"{side}LowerArm"), (f"{side}LowerArm", hand), (hand, finger)):
            swing = quat.mul(quat.between(quat.rotate(swing, seen.at_rest(near, far)), out), swing)
        assert angle(seen.turned(hand), quat.mul(seen.meant(hand), swing)) < 2.0


def test_feet(seen):
    """Headings from ankle to toes within two degrees, soles flat in stance within three."""
    stances = 0
    for side, _ in SIDES:
        foot, toes = f"{side}Foot", f"{side}Toes"
        way = seen.now.place(seen.bones[toes]) - seen.now.place(seen.bones[foot])
        source = seen.places[:, seen.joints[toes]] - seen.places[:, seen.joints[foot]]
        # two feet of different slope have one heading where the sole is level; tilted to a side, both lines tip differently
        level = quat.rotate(seen.meant(foot), UP)[:, 2] > np.cos(np.radians(6.0))
        heading = [np.arctan2(v[level, 1], v[level, 0]) for v in (way, source)]
        off = np.degrees(np.abs((heading[0] - heading[1] + np.pi) % (2 * np.pi) - np.pi))
        assert off.max(initial=0.0) < 2.0, foot
        flat = quat.rotate(seen.meant(foot), UP)[:, 2] > np.cos(np.radians(1.5))
        stances += int(flat.sum())
        sole = quat.rotate(seen.turned(foot), UP)
        assert np.degrees(np.arccos(np.clip(sole[flat][:, 2], -1.0, 1.0))).max(initial=0.0) < 3.0, foot
        assert degrees(sole, quat.rotate(seen.meant(foot), UP)).max() < 3.0, foot
    if "walk" in seen.take.name:
        assert stances >= 8


def test_the_reference_is_said(seen):
    assert any("whose T-pose is known" in note for note in seen.result.notes)
    assert not any("choose a frame of the take as the reference" in note for note in seen.result.notes)


@pytest.mark.parametrize("name", ["bandai_nc/dataset-1_walk_normal_001.bvh"])
def test_the_rest_can_still_be_asked_for(name):
    """Whatever it looks like; and the character's own first frame of a collapsed rest is then no pose of a walker."""
    path = need(SHARED / name)
    obj = fidelity.target_object("unreal")
    result, take = fidelity.job(obj, path, reference_frame="rest")
    assert not any("whose T-pose is known" in note for note in result.notes)
    assert formats.read(path)[0].facts["rest"] == "collapsed"
    hips = result.table.row(next(row.target for row in result.table.rows if row.role == "hips"))
    assert hips.source and take.frames == len(result.motion.times)
