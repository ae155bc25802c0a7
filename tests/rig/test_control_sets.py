# SPDX-License-Identifier: GPL-3.0-or-later
"""The descriptions of control rigs, and the body behind a rig."""

from __future__ import annotations

import numpy as np
import pytest

from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.rig import control_sets, match
from mocap_addon.rig.body import role_body
from mocap_addon.rig.control_sets import find_controls
from mocap_addon.rig.roles import RoleMap

SIDES = (("L", "left", 1.0), ("R", "right", -1.0))

DEFORM = {
    "DEF-spine": ("hips", (0, 0.05, 1.0)),
    "DEF-spine.001": ("spine", (0, 0.02, 1.15)),
    "DEF-spine.002": ("spine", (0, 0, 1.3)),
    "DEF-spine.003": ("spine", (0, 0, 1.45)),
    "DEF-spine.004": ("neck", (0, 0, 1.6)),
    "DEF-spine.005": ("neck", (0, 0, 1.66)),
    "DEF-spine.006": ("head", (0, 0, 1.72)),
}
for _s, _side, _x in SIDES:
    DEFORM |= {
        f"DEF-shoulder.{_s}": (f"{_side}Shoulder", (0.02 * _x, 0, 1.55)),
        f"DEF-upper_arm.{_s}": (f"{_side}UpperArm", (0.18 * _x, 0, 1.55)),
        f"DEF-forearm.{_s}": (f"{_side}LowerArm", (0.45 * _x, 0, 1.55)),
        f"DEF-hand.{_s}": (f"{_side}Hand", (0.7 * _x, 0, 1.55)),
        f"DEF-f_index.01.{_s}": (f"{_side}Index", (0.8 * _x, 0, 1.55)),
        f"DEF-f_index.02.{_s}": (f"{_side}Index", (0.84 * _x, 0, 1.55)),
        f"DEF-thigh.{_s}": (f"{_side}UpperLeg", (0.1 * _x, 0, 0.95)),
        f"DEF-shin.{_s}": (f"{_side}LowerLeg", (0.1 * _x, -0.02, 0.5)),
        f"DEF-foot.{_s}": (f"{_side}Foot", (0.1 * _x, 0, 0.08)),
        f"DEF-toe.{_s}": (f"{_side}Toes", (0.1 * _x, -0.12, 0.02)),
    }

CONTROLS = ["torso", "hips", "chest", "neck", "head", "spine_fk", "spine_fk.001", "spine_fk.002", "spine_fk.003"]
for _s, _, _ in SIDES:
    CONTROLS += [f"{part}_fk.{_s}" for part in ("upper_arm", "forearm", "hand", "thigh", "shin", "foot", "toe")]
    CONTROLS += [f"{name}.{_s}" for name in ("shoulder", "f_index.01", "f_index.02", "thigh_parent", "upper_arm_parent", "hand_ik")]
    CONTROLS += [f"{name}.{_s}" for name in ("upper_arm_ik_target", "foot_ik", "foot_heel_ik", "toe_ik", "thigh_ik_target")]


def loose_rig() -> tuple[Skeleton, RoleMap]:
    """Rigify's names, every bone on the root: nothing in the hierarchy tells what hangs on what."""
    names = ("root", *DEFORM, *CONTROLS, "ORG-thigh.L", "ORG-spine.003", "MCH-shin_ik.L")
    places = np.array([DEFORM[n][1] if n in DEFORM else (0.0, 0.0, 0.0) for n in names])
    skeleton = Skeleton(names, np.array([-1] + [0] * (len(names) - 1)), places)
    joints: dict[str, tuple[int, ...]] = {"root": (0,)}
    for name, (role, _) in DEFORM.items():
        joints[role] = (*joints.get(role, ()), names.index(name))
    return skeleton, RoleMap(joints, "made")


def test_every_description_can_be_read():
    found = {d["name"]: d for d in control_sets.descriptions()}
    assert {"Rigify", "Auto-Rig Pro"} <= set(found)
    general = {
        "root",
        "hips",
        "spine",
        "neck",
        "head",
        "Shoulder",
        "UpperArm",
        "LowerArm",
        "Hand",
        "UpperLeg",
        "LowerLeg",
        "Foot",
        "Toes",
        "Fingers",
    }
    for name, description in found.items():
        assert set(description) <= {"name", "needs", "prefix", "twins", "joints", "sides", "deform", "control", "limb"}, name
        assert description["needs"], name
        for entry in description["control"]:
            assert set(entry) <= {"role", "bone", "moves", "carries"} and entry["role"] in general, (name, entry)
        for entry in description["limb"]:
            assert set(entry) <= {"part", "target", "pole", "solver", "heel", "toe", "fk", "ik"} and entry["part"] in ("Leg", "Arm")
            assert all(len(row) == 3 for key in ("fk", "ik") for row in entry[key])


def test_rigify_controls_by_role():
    skeleton, roles = loose_rig()
    found = find_controls(skeleton, roles)
    assert found is not None and found.name == "Rigify"
    pairs = [(skeleton.names[c.bone], skeleton.names[c.joint]) for c in found.controls]
    assert ("torso", "DEF-spine") in pairs and ("spine_fk", "DEF-spine") in pairs and ("spine_fk.002", "DEF-spine.002") in pairs
    assert ("neck", "DEF-spine.004") in pairs and ("head", "DEF-spine.006") in pairs
    assert (
        ("f_index.02.R", "DEF-f_index.02.R") in pairs
        and ("thigh_fk.L", "DEF-thigh.L") in pairs
        and ("shoulder.R", "DEF-shoulder.R") in pairs
    )
    assert not any(control in ("hips", "chest") for control, _ in pairs)
    assert {skeleton.names[c.bone] for c in found.controls if c.moves} == {"root", "torso"}
    assert {skeleton.names[a]: skeleton.names[b] for a, b in found.twins.items()} == {
        "ORG-thigh.L": "DEF-thigh.L",
        "ORG-spine.003": "DEF-spine.003",
    }
    legs = {limb.side: limb for limb in found.limbs if limb.part == "Leg"}
    left = legs["left"]
    assert [skeleton.names[j] for j in (left.target, left.pole, left.heel, left.toe)] == [
        "foot_ik.L",
        "thigh_ik_target.L",
        "foot_heel_ik.L",
        "toe_ik.L",
    ]
    assert left.roles == ("leftUpperLeg", "leftLowerLeg", "leftFoot", "leftToes")
    assert left.fk == (("thigh_parent.L", "IK_FK", 1.0),) and ("thigh_parent.L", "IK_FK", 0.0) in left.ik
    assert legs["right"].solver is None  # MCH-shin_ik.R is not there


def test_a_rig_of_another_kind_has_no_description():
    skeleton = Skeleton(("hips", "spine"), np.array([-1, 0]), np.zeros((2, 3)))
    assert find_controls(skeleton, RoleMap({"hips": (0,)})) is None


def test_a_description_that_cannot_be_read_is_one_sentence(tmp_path, monkeypatch):
    from mocap_addon.motion.errors import FileError

    (tmp_path / "broken.toml").write_text("name = ", encoding="utf-8")
    monkeypatch.setattr(control_sets, "FOLDER", tmp_path)
    control_sets.descriptions.cache_clear()
    try:
        with pytest.raises(FileError, match=r"broken\.toml"):
            control_sets.descriptions()
    finally:
        control_sets.descriptions.cache_clear()


# --- the body ---------------------------------------------------------------------------------------------------------------------------


def hangs(body) -> dict[str, str | None]:
    names, parents = body.skeleton.names, body.skeleton.parents
    return {name: names[p] if p >= 0 else None for name, p in zip(names, parents.tolist(), strict=True)}


def test_a_body_hangs_together_whatever_the_rig_hangs_it_on():
    skeleton, roles = loose_rig()
    body = role_body(skeleton, roles)
    assert hangs(body) == {
        "root": None,
        "DEF-spine": "root",
        "DEF-spine.001": "DEF-spine",
        "DEF-spine.002": "DEF-spine.001",
        "DEF-spine.003": "DEF-spine.002",
        "DEF-spine.004": "DEF-spine.003",
        "DEF-spine.005": "DEF-spine.004",
        "DEF-spine.006": "DEF-spine.005",
        **{f"DEF-shoulder.{s}": "DEF-spine.003" for s in "LR"},
        **{f"DEF-upper_arm.{s}": f"DEF-shoulder.{s}" for s in "LR"},
        **{f"DEF-forearm.{s}": f"DEF-upper_arm.{s}" for s in "LR"},
        **{f"DEF-hand.{s}": f"DEF-forearm.{s}" for s in "LR"},
        **{f"DEF-f_index.01.{s}": f"DEF-hand.{s}" for s in "LR"},
        **{f"DEF-f_index.02.{s}": f"DEF-f_index.01.{s}" for s in "LR"},
        **{f"DEF-thigh.{s}": "DEF-spine" for s in "LR"},
        **{f"DEF-shin.{s}": f"DEF-thigh.{s}" for s in "LR"},
        **{f"DEF-foot.{s}": f"DEF-shin.{s}" for s in "LR"},
        **{f"DEF-toe.{s}": f"DEF-foot.{s}" for s in "LR"},
    }
    for name, (_, place) in DEFORM.items():
        assert np.allclose(body.skeleton.rest_global_positions[body.skeleton.index(name)], place)
        assert skeleton.names[body.joints[body.skeleton.index(name)]] == name
    assert np.all(body.skeleton.rest_global_rotations == [1.0, 0.0, 0.0, 0.0])
    assert body.roles.chain("neck") == tuple(body.skeleton.index(n) for n in ("DEF-spine.004", "DEF-spine.005"))


def test_a_link_that_is_left_out_closes_up():
    skeleton, roles = loose_rig()
    keep = {skeleton.index(n) for n in DEFORM if n not in ("DEF-spine.005", "DEF-hand.L")}
    body = role_body(skeleton, roles, keep=keep)
    assert hangs(body)["DEF-spine.006"] == "DEF-spine.004"
    assert hangs(body)["DEF-f_index.01.L"] == "DEF-forearm.L"
    assert hangs(body)["DEF-spine"] is None and body.roles.one("leftHand") is None


def test_where_the_rig_allows_it_decides():
    """Collars on the second spine link stay there; hands are found below the forearm's twist bone."""
    skeleton, roles = loose_rig()
    parents = skeleton.parents.copy()
    parents[skeleton.index("DEF-shoulder.L")] = skeleton.index("DEF-spine.002")
    moved = Skeleton(skeleton.names, parents, skeleton.rest_translations)
    assert hangs(role_body(moved, roles))["DEF-shoulder.L"] == "DEF-spine.002"
    assert hangs(role_body(moved, roles))["DEF-shoulder.R"] == "DEF-spine.003"


def test_a_joint_can_lie_elsewhere_than_its_bone_starts():
    skeleton, roles = loose_rig()
    thigh, at = skeleton.index("DEF-thigh.L"), skeleton.index("DEF-spine.003")
    body = role_body(skeleton, roles, places={thigh: at})
    assert np.allclose(body.skeleton.rest_global_positions[body.skeleton.index("DEF-thigh.L")], DEFORM["DEF-spine.003"][1])
    assert np.allclose(body.skeleton.rest_global_positions[body.skeleton.index("DEF-shin.L")], DEFORM["DEF-shin.L"][1])


def test_the_matcher_says_no_more_that_keys_do_nothing():
    skeleton, _ = loose_rig()
    extra = tuple(f"ORG-{i}" for i in range(8))
    whole = Skeleton(
        (*skeleton.names, *extra),
        np.concatenate([skeleton.parents, np.zeros(8, int)]),
        np.concatenate([skeleton.rest_translations, np.zeros((8, 3))]),
    )
    assert not any("do nothing" in note for note in match(whole).notes)
