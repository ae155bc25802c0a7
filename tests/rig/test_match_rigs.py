# SPDX-License-Identifier: GPL-3.0-or-later
"""Well-known rigs, by names and hierarchy alone: every bone lies along +X, so the rest pose says nothing."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mocap_addon import rig
from mocap_addon.motion.errors import RigError
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.rig import matcher
from mocap_addon.rig.roles import RoleMap

from .rigs import LAFAN1, RIGS, UNREAL_5
from .skeletons import written

HELPERS = ("twist_{}", "helper_{}", "IK_{}", "Pole.{}", "{}_End", "hair_{}", "prop_{}", "{}_nub", "Weapon {}")


def named(role_map: RoleMap, skeleton: Skeleton) -> dict[str, tuple[str, ...]]:
    return {role: tuple(skeleton.names[j] for j in joints) for role, joints in role_map.joints.items()}


@pytest.mark.parametrize("name", RIGS)
def test_roles_and_family(name: str) -> None:
    family, text = RIGS[name]
    skeleton, truth = written(text)
    roles = rig.match(skeleton)
    assert named(roles, skeleton) == truth
    assert roles.family == family
    assert min(roles.confidence.values()) >= 0.8
    rig.require_humanoid(roles, skeleton)


@pytest.mark.parametrize("name", RIGS)
def test_words_of_any_naming_are_never_wrong(name: str) -> None:
    """Without the rig's own family (one bone in four renamed to nonsense, so that no family explains it), nothing wrong is matched."""
    _, text = RIGS[name]
    skeleton, truth = written(text)
    chance = random.Random(name)
    names = tuple(f"zz{j}" if chance.random() < 0.25 else n for j, n in enumerate(skeleton.names))
    renamed = skeleton.renamed(names)
    right = {role: {skeleton.index(n) for n in joints} for role, joints in truth.items()}
    for role, joints in rig.match(renamed).joints.items():
        if role in ("root", "spine", "neck", "head", "hips"):
            continue  # the hierarchy may rightly fill these with renamed links
        assert set(joints) <= right.get(role, set()), (role, [skeleton.names[j] for j in joints])


@pytest.mark.parametrize("name", RIGS)
def test_words_alone_are_never_wrong(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With no family at all: every chain that is found is the true one or none."""
    skeleton, truth = written(RIGS[name][1])
    monkeypatch.setattr("mocap_addon.rig.claims.families", tuple)
    roles = matcher._match_anew(skeleton, None)
    assert {role: names for role, names in named(roles, skeleton).items() if names != truth.get(role)} == {}
    if name in ("unreal_5", "smpl", "unity", "optitrack", "lafan1", "humanik"):
        assert set(roles.joints) == set(truth)
        assert max(roles.confidence.values()) <= 0.9


def renamed(skeleton: Skeleton, change) -> Skeleton:
    return skeleton.renamed([change(name) for name in skeleton.names])


def shuffled(skeleton: Skeleton, chance: random.Random) -> tuple[Skeleton, list[int]]:
    """The same tree with siblings (and so all indices) in another order; also old index -> new index."""
    order: list[int] = []

    def walk(j: int) -> None:
        order.append(j)
        children = list(skeleton.children[j])
        chance.shuffle(children)
        for c in children:
            walk(c)

    roots = list(skeleton.roots)
    chance.shuffle(roots)
    for r in roots:
        walk(r)
    new = {old: i for i, old in enumerate(order)}
    parents = [new[int(skeleton.parents[old])] if skeleton.parents[old] >= 0 else -1 for old in order]
    names = tuple(skeleton.names[old] for old in order)
    return Skeleton(names, np.array(parents), skeleton.rest_translations[order]), [new[j] for j in range(len(order))]


def with_helpers(skeleton: Skeleton, chance: random.Random, count: int) -> Skeleton:
    """Leaf bones without a role hung anywhere."""
    names, parents = list(skeleton.names), skeleton.parents.tolist()
    for k in range(count):
        at = chance.randrange(len(skeleton))
        names.append(chance.choice(HELPERS).format(skeleton.names[at] if chance.random() < 0.5 else f"x{k}") + f"_{k}")
        parents.append(at)
    return Skeleton(tuple(names), np.array(parents), np.tile((0.05, 0.02, 0.0), (len(names), 1)))


PREFIXES = st.sampled_from(
    ["", "mixamorig:", "mixamorig1:", "char:rig:", "Armature|", "Bob_", "hero.", "my rig:", "Ünï_", "A'b:", "人_", "x9:"]
)
CASES = st.sampled_from([str, str.upper, str.lower])


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    base=st.sampled_from(["lafan1", "humanik", "unreal_5", "unity", "optitrack", "rigify_metarig", "smpl"]),
    prefix=PREFIXES,
    case=CASES,
    seed=st.integers(0, 10**6),
    helpers=st.integers(0, 12),
)
def test_prefixes_case_helpers_and_order_change_nothing(base: str, prefix: str, case, seed: int, helpers: int) -> None:
    chance = random.Random(seed)
    skeleton, truth = written(RIGS[base][1])
    right = {role: tuple(skeleton.index(n) for n in joints) for role, joints in truth.items()}
    dressed = renamed(with_helpers(skeleton, chance, helpers), lambda n: prefix + case(n))
    mixed, new = shuffled(dressed, chance)
    found = rig.match(mixed).joints
    assert dict(found) == {role: tuple(new[j] for j in joints) for role, joints in right.items()}


SPELLINGS = [
    ("Left{}", "Right{}"),
    ("left_{}", "right_{}"),
    ("{}_L", "{}_R"),
    ("{}.l", "{}.r"),
    ("L {}", "R {}"),
    ("{} left", "{} right"),
    ("l_{}", "r_{}"),
]


@settings(max_examples=60, deadline=None)
@given(separator=st.sampled_from(["_", "-", ".", " ", ""]), sides=st.sampled_from(SPELLINGS))
def test_any_spelling_of_side_and_separator(separator: str, sides: tuple[str, str]) -> None:
    """Plain English names in every spelling, with numbers in every style."""
    words = {
        "UpperArm": ["upper", "arm"],
        "LowerArm": ["fore", "arm"],
        "Hand": ["hand"],
        "UpperLeg": ["upper", "leg"],
        "LowerLeg": ["lower", "leg"],
        "Foot": ["foot"],
    }
    names, parents = ["Pelvis", f"Spine{separator}1", f"Spine{separator}2", "Neck", "Head"], [-1, 0, 1, 2, 3]
    truth = {"hips": (0,), "spine": (1, 2), "neck": (3,), "head": (4,)}
    for right in (False, True):
        for start, parts in ((2, ("UpperArm", "LowerArm", "Hand")), (0, ("UpperLeg", "LowerLeg", "Foot"))):
            parent = start
            for part in parts:
                names.append(sides[right].format(separator.join(w.capitalize() for w in words[part])))
                parents.append(parent)
                parent = len(names) - 1
                truth[("right" if right else "left") + part] = (parent,)
    skeleton = Skeleton(tuple(names), np.array(parents), np.tile((0.1, 0.0, 0.0), (len(names), 1)))
    assert dict(rig.match(skeleton).joints) == truth


# --- traps of real files: complaint 28 of the notes on peers ---


@pytest.mark.parametrize(
    "prefix",
    ["mixamorig:", "mixamorig12:", "mixamorig_", "mixamorig", "a:b:mixamorig:", 'we"ird: ', "ns.with.dots:", "数字123:", "x" * 40 + ":"],
)
def test_traps_of_prefixes(prefix: str) -> None:
    skeleton, truth = written(LAFAN1.replace("LeftToe", "LeftToeBase"))
    dressed = renamed(skeleton, lambda n: prefix + n)
    assert max(len(n.encode()) for n in dressed.names) <= 63
    assert named(rig.match(dressed), dressed) == {role: tuple(prefix + n for n in names) for role, names in truth.items()}


def test_names_numbered_by_an_exporter() -> None:
    skeleton, truth = written(LAFAN1)
    names = [f"{n}_{j:02d}" for j, n in enumerate(skeleton.names)]
    roles = rig.match(skeleton.renamed(names))
    assert {r: tuple(skeleton.names[j] for j in js) for r, js in roles.joints.items()} == truth


def test_a_common_ending_is_taken_off() -> None:
    skeleton, truth = written(UNREAL_5)
    roles = rig.match(renamed(skeleton, lambda n: n + "_jnt"))
    assert {r: tuple(skeleton.names[j] for j in js) for r, js in roles.joints.items()} == truth


def test_two_figures_in_one_skeleton_are_reported_and_never_mixed() -> None:
    one, _ = written(LAFAN1)
    n = len(one)
    names = [f"mixamorig:{x}" for x in one.names] + [f"mixamorig1:{x}" for x in one.names]
    parents = np.concatenate([one.parents, np.where(one.parents >= 0, one.parents + n, -1)])
    both = Skeleton(tuple(names), parents, np.tile((0.1, 0.0, 0.0), (2 * n, 1)))
    roles = rig.match(both)
    assert len({j < n for js in roles.joints.values() for j in js}) == 1
    assert len(roles.joints) == 20
    assert any("2 figures" in note for note in roles.notes)


def test_hips_are_never_a_bone_of_one_side_and_an_arm_never_a_shoulder() -> None:
    text = """
Base
 LeftHip* = leftUpperLeg
  LeftKnee = leftLowerLeg
   LeftAnkle = leftFoot
 Torso = spine
  Head = head
  LeftShoulder* = leftUpperArm
   LeftElbow = leftLowerArm
    LeftWrist = leftHand
"""
    skeleton, truth = written(text)
    roles = rig.match(skeleton)
    assert named(roles, skeleton) == truth | {"hips": ("Base",)}
    assert roles.confidence["hips"] == 0.6


def test_hips_that_carry_only_the_legs_are_not_the_hips() -> None:
    text = """
Root = hips
 Hips
  LeftThigh* = leftUpperLeg
   LeftShin = leftLowerLeg
    LeftFoot = leftFoot
 Spine = spine
  Head = head
  LeftUpperArm* = leftUpperArm
   LeftLowerArm = leftLowerArm
    LeftHand = leftHand
"""
    skeleton, truth = written(text, step=(0.0, 0.0, 0.0))
    roles = rig.match(skeleton)
    assert named(roles, skeleton) == truth
    assert roles.confidence["hips"] < 0.75 and any('"Hips"' in note for note in roles.notes)


def test_names_in_the_wrong_order_are_not_believed() -> None:
    text = """
Hips = hips
 Spine = spine
  Head = head
  LeftHand
   LeftForeArm
    LeftArm
  RightArm = rightUpperArm
   RightForeArm = rightLowerArm
    RightHand = rightHand
 LeftUpLeg* = leftUpperLeg
  LeftLeg = leftLowerLeg
   LeftFoot = leftFoot
"""
    skeleton, truth = written(text)
    found = named(rig.match(skeleton), skeleton)
    assert {role: names for role, names in found.items() if not role.startswith("left") or "Leg" in role or "Foot" in role} == truth
    assert len([role for role in found if role.startswith("left") and role[4:] in ("UpperArm", "LowerArm", "Hand")]) <= 1


def test_an_upper_body_alone_is_named_as_such() -> None:
    skeleton, truth = written(
        LAFAN1.replace(" LeftUpLeg* = leftUpperLeg\n  LeftLeg = leftLowerLeg\n   LeftFoot = leftFoot\n    LeftToe = leftToes\n", "")
    )
    roles = rig.match(skeleton)
    assert named(roles, skeleton) == truth
    assert roles.notes[0].startswith("Only an upper body")
    with pytest.raises(RigError, match=r"Only an upper body.*left upper leg"):
        rig.require_humanoid(roles, skeleton)


def test_no_joint_has_two_roles_and_no_skeleton_fails() -> None:
    chance = random.Random(5)
    vocabulary = [
        "Hips",
        "Spine",
        "LeftArm",
        "LeftHand",
        "RightLeg",
        "Foot_L",
        "Head",
        "x",
        "L",
        "",
        "左足",
        "Neck1",
        "thumb.01.L",
        "DEF-a",
        "ik",
        "Root",
    ]
    for _ in range(200):
        n = chance.randrange(1, 40)
        names = tuple(
            f"{chance.choice(vocabulary)}{'' if chance.random() < 0.5 else '.'}{k if chance.random() < 0.7 else ''}#{k}" for k in range(n)
        )
        parents = np.array([-1 if j == 0 or chance.random() < 0.05 else chance.randrange(j) for j in range(n)])
        places = np.array([[chance.uniform(-1, 1) for _ in range(3)] for _ in range(n)])
        skeleton = Skeleton(names, parents, places)
        roles = rig.match(skeleton)
        used = [j for js in roles.joints.values() for j in js]
        assert len(used) == len(set(used))
        rig.report(roles, skeleton)


def test_an_empty_skeleton() -> None:
    empty = Skeleton((), np.zeros(0), np.zeros((0, 3)))
    assert rig.match(empty).joints == {}


def test_a_family_can_be_asked_for() -> None:
    skeleton, _ = written(LAFAN1)
    assert rig.match(skeleton, family="mixamo").family == "Mixamo"
    with pytest.raises(RigError, match="no naming family"):
        rig.match(skeleton, family="nonsense")


def test_a_skeleton_matched_before_is_told_from_one_that_differs_only_in_its_ends() -> None:
    """What was matched is remembered; bone ends count too (they tell a head from the end of one, and where the feet point)."""
    skeleton, _ = written(LAFAN1)
    first = rig.match(skeleton)
    assert rig.match(skeleton.renamed(skeleton.names)) is first
    other = Skeleton(skeleton.names, skeleton.parents, skeleton.rest_translations, ends=np.ones((len(skeleton), 3)))
    assert rig.match(other) is not first
