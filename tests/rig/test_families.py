# SPDX-License-Identifier: GPL-3.0-or-later
"""Family files: what they must be, and what is said of wrong ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from mocap_addon import rig
from mocap_addon.motion.errors import FileError
from mocap_addon.rig.families import finger_of, load_family
from mocap_addon.rig.names import readings

WANTED = (
    "Xsens MVN",
    "Collar and elbow names (MVN BVH)",
    "CMU (cgspeed)",
    "CMU (ASF)",
    "Mixamo",
    "Unreal mannequin",
    "VRM",
    "VRoid",
    "Rigify metarig",
    "MakeHuman default",
    "MakeHuman MHX",
    "KayKit",
    "ChingMu (23 joints)",
    "LaFAN1",
    "Bandai-Namco",
    "Rokoko",
    "Noitom Axis",
    "DFKI",
    "Quaternius",
    "Unity humanoid",
    "HumanIK",
    "3ds Max Biped",
    "Daz Genesis 3 and 8",
    "Daz Genesis 9",
    "Character Creator",
    "Auto-Rig Pro",
    "SMPL",
    "OptiTrack Motive",
    "MikuMikuDance (Japanese)",
    "MikuMikuDance (English)",
    "Poser",
    "Rigify deform bones",
)


def test_the_families_asked_for_are_there_once() -> None:
    names = [family.name for family in rig.families()]
    assert sorted(names) == sorted(WANTED)


@pytest.mark.parametrize("name", WANTED)
def test_a_family_claims_its_own_names_for_both_sides(name: str) -> None:
    family = next(f for f in rig.families() if f.name == name)
    for part, names in family.roles.items():
        for text in names:
            if "#" in text:
                continue
            claim = family.claim(text)
            assert claim is not None and claim.part == part, (part, text)
            assert claim.side == ("left" if part[0].isupper() else "")


@pytest.mark.parametrize(
    ("name", "side", "key"),
    [
        ("LeftUpLeg", "left", "upleg"),
        ("mixamorig_RightHand", "right", "mixamorighand"),
        ("thigh.L", "left", "thigh"),
        ("rhumerus", "right", "humerus"),
        ("LHipJoint", "left", "hipjoint"),
        ("Bip01 L Thigh", "left", "bip01thigh"),
        ("左ひじ", "left", "ひじ"),
        ("左足ＩＫ", "left", "足ik"),
        ("upperarml", "left", "upperarm"),
        ("L5", "", "l5"),
        ("Spine.001", "", "spine001"),
        ("", "", ""),
        ("...", "", ""),
    ],
)
def test_readings(name: str, side: str, key: str) -> None:
    assert (side, key) in {(r.side, r.key) for r in readings(name)}


def test_a_vertebra_has_no_side() -> None:
    assert all(r.side == "" or r.key for r in readings("L5"))
    assert readings("L5")[0].key == "l5"


@pytest.mark.parametrize(
    ("key", "finger"),
    [
        ("handindex2", ("Index", 2)),
        ("findex1", ("Index", 1)),
        ("inhandring", ("Ring", -1)),
        ("thumbmetacarpal", ("Thumb", -1)),
        ("pinkyproximal", ("Little", 1)),
        ("mid3", ("Middle", 3)),
        ("middlefinger2", ("Middle", 2)),
        ("foreindexx", None),
        ("ring", ("Ring", 0)),
        ("string", None),
    ],
)
def test_fingers(key: str, finger: tuple[str, int] | None) -> None:
    assert finger_of(key) == finger


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", 'needs a "name"'),
        ('name = "x"', r"needs a table \"\[roles\]\""),
        ('name = "x"\n[roles]\nElbow = "LeftElbow"', '"Elbow" is no role'),
        ('name = "x"\n[roles]\nUpperArm = 3', "must be a name or a list"),
        ('name = "x"\n[roles]\nUpperArm = "Arm"', "must give a left side name for UpperArm"),
        ('name = "x"\nrole = 1\n[roles]\nhips = "a"', '"role" is no key'),
        ('name = "x', "no valid TOML"),
    ],
)
def test_wrong_family_files_are_refused_with_their_name(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FileError, match=said) as caught:
        load_family(path)
    assert str(caught.value).startswith("mine.toml: ")


def test_the_example_of_the_how_to_is_a_family(tmp_path: Path) -> None:
    page = (Path(rig.__file__).parents[2] / "docs" / "families.md").read_text(encoding="utf-8")
    example = page.split("```toml\n")[1].split("```")[0]
    path = tmp_path / "example.toml"
    path.write_text(example, encoding="utf-8")
    family = load_family(path)
    assert family.claim("acme_R_forearm").role == "rightLowerArm"
    assert family.claim("acme2_hips").role == "hips"
    assert family.claim("acme_L_forearm_twist").part == ""
