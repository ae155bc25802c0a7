# SPDX-License-Identifier: GPL-3.0-or-later
"""Every real file against a table of truth written by hand (``truth/*.toml``), or against the humanoid map the file itself holds."""

from __future__ import annotations

import time
import tomllib
from pathlib import Path

import pytest

from mocap_addon import rig
from mocap_addon.motion.errors import RigError
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.rig import matcher
from mocap_addon.rig.roles import REQUIRED_ROLES, RoleMap
from tests.paths import SHARED, need

from . import skeletons

TRUTH = {path.stem: tomllib.loads(path.read_text(encoding="utf-8")) for path in sorted((Path(__file__).parent / "truth").glob("*.toml"))}
FILES = {file: name for name, data in TRUTH.items() for file in data["files"]}
WITH_MAP = ("targets/mh_vrm1_tpose.vrm", "targets/mh_ue_names_apose.glb", "targets/test.vrma")
INCOMPLETE = {
    "targets/Fox.glb": "four legs",
    "misc_bvh/usdbvh_two_joints.bvh": "No body was found",
    "odd/bvh_anim_minimal.bvh": "No body was found",
    "misc_bvh/pybvh_full_precision_frame_time.bvh": "No whole body",
    "misc_bvh/pybvh_rotation_before_position_root.bvh": "No whole body",
}


def truth_of(data: dict) -> dict[str, tuple[str, ...]]:
    """Role -> joint names of a truth file."""

    def chain(value: str | list[str]) -> tuple[str, ...]:
        return (value,) if isinstance(value, str) else tuple(value)

    out = {role: chain(value) for role, value in data["centre"].items()}
    for part, (left, right) in data["pairs"].items():
        out |= {f"left{part}": chain(left), f"right{part}": chain(right)}
    return out


def truth_of_vrm(path: Path) -> dict[str, tuple[str, ...]]:
    """Role -> joint names from the humanoid map of a VRM file."""
    data = skeletons.gltf_json(path)
    extension = next(e for e in data["extensions"].values() if "humanoid" in e)
    bones = {bone: data["nodes"][entry["node"]]["name"] for bone, entry in extension["humanoid"]["humanBones"].items()}
    out: dict[str, tuple[str, ...]] = {}
    for bone, name in bones.items():  # in the file's order, from the body outwards
        role = {"chest": "spine", "upperChest": "spine"}.get(bone, bone)
        for finger in ("Thumb", "Index", "Middle", "Ring", "Little"):
            if finger in bone:
                role = bone[: bone.index(finger)] + finger
        out[role] = (*out.get(role, ()), name)
    return out


def named(role_map: RoleMap, skeleton: Skeleton) -> dict[str, tuple[str, ...]]:
    return {role: tuple(skeleton.names[j] for j in joints) for role, joints in role_map.joints.items()}


@pytest.mark.parametrize("file", sorted(FILES))
def test_roles_are_exactly_those_written_by_hand(file: str) -> None:
    skeleton = skeletons.load(need(SHARED / file))
    assert named(rig.match(skeleton), skeleton) == truth_of(TRUTH[FILES[file]])


@pytest.mark.parametrize("file", WITH_MAP)
def test_roles_are_exactly_those_of_the_file_s_own_map(file: str) -> None:
    skeleton = skeletons.load(need(SHARED / file))
    oracle = need(SHARED / ("targets/mh_vrm1_tpose.vrm" if file.endswith(".glb") else file))
    found = named(rig.match(skeleton), skeleton)
    root = found.pop("root", None)  # VRM's map has no word for it
    assert root in (None, ("Root",))
    assert found == truth_of_vrm(oracle)


def test_no_file_is_left_out() -> None:
    need(SHARED)
    endings = {".bvh", ".mvnx", ".glb", ".gltf", ".vrm", ".vrma"}
    there = {path.relative_to(SHARED).as_posix() for path in SHARED.rglob("*") if path.suffix in endings}
    assert there == FILES.keys() | set(WITH_MAP)


@pytest.mark.parametrize("file", sorted(FILES))
def test_a_whole_body_passes_and_anything_else_is_refused_with_one_sentence(file: str) -> None:
    skeleton = skeletons.load(need(SHARED / file))
    roles = rig.match(skeleton)
    if file not in INCOMPLETE:
        rig.require_humanoid(roles, skeleton)
        assert set(REQUIRED_ROLES) <= roles.joints.keys()
        return
    with pytest.raises(RigError) as caught:
        rig.require_humanoid(roles, skeleton)
    assert INCOMPLETE[file] in str(caught.value)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_the_fox_gets_no_roles_and_a_reason() -> None:
    skeleton = skeletons.load(need(SHARED / "targets/Fox.glb"))
    roles = rig.match(skeleton)
    assert not roles.joints and roles.family == "quadruped"
    assert "None of 24 joints was matched" in rig.report(roles, skeleton)


def test_detached_feet_are_named() -> None:
    skeleton = skeletons.load(need(SHARED / "targets/RobotExpressive.glb"))
    roles = rig.match(skeleton)
    assert sum("hangs on" in note for note in roles.notes) == 2
    assert roles.confidence["leftFoot"] == 0.8


@pytest.mark.parametrize("file", sorted(set(FILES) - INCOMPLETE.keys() - {"targets/RobotExpressive.glb"}))
def test_sound_files_are_sure_and_raise_no_doubts(file: str) -> None:
    roles = rig.match(skeletons.load(need(SHARED / file)))
    assert roles.notes == ()
    assert min(roles.confidence.values()) == 1.0


FAMILY = {
    "xsens_mvn": "Xsens MVN",
    "mvn_bvh": "Collar and elbow names (MVN BVH)",
    "cmu_asf": "CMU (ASF)",
    "cmu_cgspeed": "CMU (cgspeed)",
    "mh_cmu": "CMU (cgspeed)",
    "mvn_like": "ChingMu (23 joints)",
    "noitom_pro": "Noitom Axis",
    "mh_mixamo": "Mixamo",
    "bandai": "Bandai-Namco",
    "dfki": "DFKI",
    "makehuman_mhx": "MakeHuman MHX",
    "makehuman_default": "MakeHuman default",
    "kaykit": "KayKit",
    "geno": "HumanIK",
}


@pytest.mark.parametrize(("truth", "family"), FAMILY.items())
def test_family_is_told(truth: str, family: str) -> None:
    assert rig.match(skeletons.load(need(SHARED / TRUTH[truth]["files"][0]))).family == family


def test_a_sixty_bone_skeleton_takes_under_ten_milliseconds() -> None:
    skeleton = skeletons.load(need(SHARED / "animated_drawings/jesse_dance.bvh"))
    assert len(skeleton) == 60
    matcher._match_anew(skeleton, None)
    spent = []
    for _ in range(20):
        start = time.perf_counter()
        matcher._match_anew(skeleton, None)  # match() itself remembers
        spent.append(time.perf_counter() - start)
    assert min(spent) < 0.010
