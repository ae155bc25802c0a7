# SPDX-License-Identifier: GPL-3.0-or-later
"""Bodies whose names say nothing: found by the hierarchy, the lengths and the rest pose; and what must not be found."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mocap_addon import rig
from mocap_addon.motion import quat
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.rig.roles import REQUIRED_ROLES
from tests.paths import SHARED, need

from . import skeletons
from .test_match_files import FILES, TRUTH, WITH_MAP, truth_of, truth_of_vrm

VRM_ORACLE = {"targets/mh_ue_names_apose.glb": "targets/mh_vrm1_tpose.vrm"}

# An upright body, Z up, facing -Y, left at +X: role (or helper) -> parent, place in metres. The numbers are a tall adult's.
BODY: dict[str, tuple[str, tuple[float, float, float]]] = {
    "root": ("", (0.0, 0.0, 0.0)),
    "hips": ("root", (0.0, 0.0, 0.95)),
    "spine.0": ("hips", (0.0, 0.0, 1.05)),
    "spine.1": ("spine.0", (0.0, 0.01, 1.2)),
    "spine.2": ("spine.1", (0.0, 0.01, 1.35)),
    "neck": ("spine.2", (0.0, 0.0, 1.52)),
    "head": ("neck", (0.0, -0.01, 1.62)),
    "leftShoulder": ("spine.2", (0.03, 0.0, 1.46)),
    "leftUpperArm": ("leftShoulder", (0.17, 0.01, 1.45)),
    "leftLowerArm": ("leftUpperArm", (0.45, 0.01, 1.43)),
    "leftHand": ("leftLowerArm", (0.71, 0.0, 1.42)),
    "leftUpperLeg": ("hips", (0.09, 0.0, 0.92)),
    "leftLowerLeg": ("leftUpperLeg", (0.1, -0.01, 0.5)),
    "leftFoot": ("leftLowerLeg", (0.1, 0.02, 0.09)),
    "leftToes": ("leftFoot", (0.1, -0.12, 0.02)),
}
ENDS = {"head": (0.0, 0.0, 0.18), "leftToes": (0.0, -0.07, 0.0), "leftHand": (0.17, 0.0, 0.0)}


def body(rename, turn: np.ndarray | None = None, drop: tuple[str, ...] = ()) -> tuple[Skeleton, dict[str, tuple[int, ...]]]:
    """The body with both sides, its joints called ``rename(role, index)``, turned in the world; and the truth by index."""
    rows: list[tuple[str, str, tuple[float, float, float]]] = []
    for name, (parent, place) in BODY.items():
        if name in drop or parent in drop:
            continue
        rows.append((name, parent, place))
    for name, parent, (x, y, z) in list(rows):
        if name.startswith("left"):
            rows.append((name.replace("left", "right"), parent.replace("left", "right"), (-x, y, z)))
    index = {name: k for k, (name, _, _) in enumerate(rows)}
    places = np.array([place for _, _, place in rows])
    ends = np.full((len(rows), 3), np.nan)
    for name, (x, y, z) in ENDS.items():
        for side, sign in ((name, 1.0), (name.replace("left", "right"), -1.0)):
            if side in index:
                ends[index[side]] = (sign * x if name != side else x, y, z)
    parents = np.array([index.get(parent, -1) for _, parent, _ in rows])
    offsets = places - np.where(parents[:, None] >= 0, places[parents], 0.0)
    skeleton = Skeleton(tuple(rename(name, k) for name, k in index.items()), parents, offsets, ends=ends)
    if turn is not None:
        rotations = skeleton.rest_rotations.copy()
        translations = skeleton.rest_translations.copy()
        for root in skeleton.roots:
            rotations[root], translations[root] = turn, quat.rotate(turn, translations[root])
        skeleton = skeleton.with_rest(rotations, translations)
    truth: dict[str, tuple[int, ...]] = {}
    for name, k in index.items():
        role = name.split(".")[0]
        truth[role] = (*truth.get(role, ()), k)
    return skeleton, truth


@settings(max_examples=60, deadline=None)
@given(
    axis=st.tuples(*[st.floats(-1, 1)] * 3).filter(lambda v: np.linalg.norm(v) > 0.1), angle=st.floats(0.0, 6.28), seed=st.integers(0, 999)
)
def test_a_nameless_body_in_any_direction(axis: tuple[float, float, float], angle: float, seed: int) -> None:
    turn = quat.from_axis_angle(np.array(axis) / np.linalg.norm(axis), angle)
    names = [f"b{k}q" for k in range(40)]
    random.Random(seed).shuffle(names)
    skeleton, truth = body(lambda _, k: names[k], turn)
    roles = rig.match(skeleton)
    assert dict(roles.joints) == truth
    assert roles.family == "structure"
    assert set(roles.confidence.values()) == {0.6}
    rig.require_humanoid(roles, skeleton)


def test_a_nameless_body_without_shoulders_toes_or_neck() -> None:
    skeleton, truth = body(lambda _, k: f"n{k}x", drop=("leftShoulder", "neck"))
    assert "leftUpperArm" not in truth  # dropped with what hangs on it: no arms at all
    assert not rig.match(skeleton).joints


def test_a_nameless_body_lying_along_x_gets_no_sides() -> None:
    """The hierarchy shows a body, but nothing tells left from right: no limb may be guessed."""
    skeleton, _ = body(lambda _, k: f"n{k}x")
    lengths = np.linalg.norm(skeleton.rest_translations, axis=1)
    flat = skeleton.with_rest(quat.identity(len(skeleton)), np.stack([lengths, 0 * lengths, 0 * lengths], axis=1))
    roles = rig.match(flat)
    assert not any(role.startswith(("left", "right")) for role in roles.joints)
    assert any("name the bones" in note for note in roles.notes)


@pytest.mark.parametrize("nameless", ["leftLowerArm", "rightLowerLeg"])
def test_a_middle_joint_without_a_name_is_found_between_its_neighbours(nameless: str) -> None:
    skeleton, truth = body(lambda name, k: "zzz" if name == nameless else name.replace(".", ""))
    roles = rig.match(skeleton)
    assert roles.joints[nameless] == truth[nameless]
    assert roles.confidence[nameless] == 0.6
    assert "Look at" in rig.report(roles, skeleton)


@pytest.mark.parametrize("nameless", ["leftUpperArm", "rightFoot", "hips", "leftUpperLeg"])
def test_any_needed_joint_without_a_name_is_found_by_structure(nameless: str) -> None:
    skeleton, truth = body(lambda name, k: "zzz" if name == nameless else name.replace(".", ""))
    assert rig.match(skeleton).joints[nameless] == truth[nameless]


def test_swapped_names_are_believed_but_reported() -> None:
    def swap(name: str, _: int) -> str:
        return name.replace("left", "#").replace("right", "left").replace("#", "right").replace(".", "")

    skeleton, truth = body(swap)
    roles = rig.match(skeleton)
    assert roles.joints["leftHand"] == truth["rightHand"]
    assert any("swapped" in note for note in roles.notes)


def test_one_swapped_arm_is_reported_with_its_bone() -> None:
    def swap(name: str, _: int) -> str:
        if "Arm" in name or "Hand" in name or "Shoulder" in name:
            name = name.replace("left", "#").replace("right", "left").replace("#", "right")
        return name.replace(".", "")

    skeleton, _ = body(swap)
    notes = rig.match(skeleton).notes
    assert any('"leftUpperArm"' in note and "disagree" in note for note in notes)


def test_sound_bodies_raise_no_note() -> None:
    skeleton, _ = body(lambda name, _: name.replace(".", ""))
    assert rig.match(skeleton).notes == ()


LIMBS_AND_TRUNK = (*REQUIRED_ROLES, "root", "spine", "leftShoulder", "rightShoulder", "leftToes", "rightToes")


@pytest.mark.parametrize("file", sorted(set(FILES) | set(WITH_MAP)))
def test_real_skeletons_without_names_are_right_or_not_found(file: str) -> None:
    """With every name taken away: limbs and trunk are on the joints that the truth names, or on none."""
    path = need(SHARED / file)
    skeleton = skeletons.load(path)
    truth = truth_of(TRUTH[FILES[file]]) if file in FILES else truth_of_vrm(SHARED / VRM_ORACLE.get(file, file))
    right = {role: tuple(skeleton.index(n) for n in names) for role, names in truth.items()} | {"root": (0,)}
    found = rig.match(skeleton.renamed([f"q{k}z" for k in range(len(skeleton))])).joints
    assert {r: found[r] for r in LIMBS_AND_TRUNK if r in found and found[r] != right[r]} == {}
    if file in ("misc_bvh/pybvh_armsdown_crlf.bvh", "targets/mh_ue_names_apose.glb", "xsens/mvn_bvh_walk_239hz_1200f.bvh"):
        assert set(REQUIRED_ROLES) <= found.keys()


def test_a_nameless_fox_is_refused_too() -> None:
    skeleton = skeletons.load(need(SHARED / "targets/Fox.glb"))
    roles = rig.match(skeleton.renamed([f"q{k}z" for k in range(len(skeleton))]))
    assert not roles.joints
