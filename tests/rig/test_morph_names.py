# SPDX-License-Identifier: GPL-3.0-or-later
"""Morph names: ARKit's 52, and how rigs spell them."""

from __future__ import annotations

import numpy as np
import pytest

from mocap_addon.rig import morph_names
from mocap_addon.rig.morph_names import arkit, canonical, match_morphs

# Apple's ARFaceAnchor.BlendShapeLocation, typed out by region: eyes 14, jaw and mouth 27, brows, cheeks and nose 10, tongue 1.
EYES = [f"eye{what}{side}" for what in ("Blink", "LookDown", "LookIn", "LookOut", "LookUp", "Squint", "Wide") for side in ("Left", "Right")]
MOUTH = ["jawForward", "jawLeft", "jawRight", "jawOpen", "mouthClose", "mouthFunnel", "mouthPucker", "mouthLeft", "mouthRight"]
MOUTH += [
    f"mouth{what}{side}" for what in ("Smile", "Frown", "Dimple", "Stretch", "Press", "LowerDown", "UpperUp") for side in ("Left", "Right")
]
MOUTH += ["mouthRollLower", "mouthRollUpper", "mouthShrugLower", "mouthShrugUpper"]
REST = ["browDownLeft", "browDownRight", "browInnerUp", "browOuterUpLeft", "browOuterUpRight", "cheekPuff", "cheekSquintLeft"]
REST += ["cheekSquintRight", "noseSneerLeft", "noseSneerRight", "tongueOut"]


def test_the_52_of_arkit() -> None:
    assert len(arkit()) == 52 and set(arkit()) == {*EYES, *MOUTH, *REST}
    assert all(canonical(name) == name for name in arkit())


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("jawOpen", "jawOpen"),
        ("JawOpen", "jawOpen"),
        ("jaw_open", "jawOpen"),
        ("Jaw Open", "jawOpen"),
        ("JAW_OPEN", "jawOpen"),
        ("blendShape1.jawOpen", "jawOpen"),
        ("Head:jawOpen", "jawOpen"),
        ("CTRL_expressions_jawOpen", "jawOpen"),
        ("browDown_L", "browDownLeft"),
        ("BrowDownLeft", "browDownLeft"),
        ("brow_down_right", "browDownRight"),
        ("browDown.R", "browDownRight"),
        ("Fcl_MTH_A", "aa"),
        ("Face.M_F00_000_00_Fcl_MTH_A", None),
        ("Face.Fcl_MTH_A", "aa"),
        ("vrc.v_aa", "aa"),
        ("A", "aa"),
        ("あ", "aa"),
        ("まばたき", "blink"),
        ("Blink_L", "eyeBlinkLeft"),
        ("blinkRight", "eyeBlinkRight"),
        ("Joy", "happy"),
        ("Mouth_Smile_L", "mouthSmileLeft"),
        ("Basis", None),
        ("contact_l_heel", None),
        ("TCFrame", None),
    ],
)
def test_spellings(written: str, meant: str | None) -> None:
    assert canonical(written) == meant


def test_no_two_morphs_share_a_name() -> None:
    seen: dict[str, str] = {}
    for name, variants in morph_names._morphs().items():
        for one in (name, *variants):
            plain = morph_names._plain(one)
            assert seen.setdefault(plain, name) == name, one


def test_matching_goes_by_rank() -> None:
    """A name said by a person, then the same name, then one that reads alike, then one that means the same."""
    found = match_morphs(["jawOpen", "smile", "Blink_L", "odd"], ["Jaw_Open", "jawOpen", "Smile", "eyeBlinkLeft", "own"], {"odd": "own"})
    assert dict(found.keys) == {"Jaw_Open": "jawOpen", "jawOpen": "jawOpen", "Smile": "smile", "eyeBlinkLeft": "Blink_L", "own": "odd"}
    assert found.missing == ()


def test_left_out_and_missing() -> None:
    found = match_morphs(["jawOpen", "cheekPuff", "tongueOut"], ["jawOpen"], {"jawOpen": ""})
    assert dict(found.keys) == {} and found.missing == ("cheekPuff", "tongueOut")


def test_percent_is_seen() -> None:
    assert morph_names.unit_of({"a": np.array([0.0, 1.2]), "b": np.array([0.5])}) == 1.0
    assert morph_names.unit_of({"a": np.array([0.0, 0.4]), "b": np.array([87.0])}) == 100.0
    assert morph_names.unit_of({}) == 1.0
