# SPDX-License-Identifier: GPL-3.0-or-later
"""The standards: every naming family, each with its own links and with operators that its files are known for (or worse)."""

from __future__ import annotations

from functools import lru_cache

from .declared import Helper, Standard
from .master import FINGERS
from .standard import Body

_DOT_L, _DOT_CAPITAL = ((r"\.l", ".r"),), ((r"\.L", ".R"),)
_FIRST_L, _FIRST_CAPITAL, _LAST_CAPITAL = (("^l", "r"),), (("^L", "R"),), (("L$", "R"),)
_UNDER_L, _UNDER_CAPITAL, _BETWEEN = (("_l$", "_r"),), (("_L$", "_R"),), (("_L_", "_R_"),)
_INDEX_TO_RING = ("Index", "Middle", "Ring")
_LEGS = ("leftUpperLeg", "rightUpperLeg")
_ON_BACK = (-90.0, 0.0, 0.0)

STANDARDS: tuple[Standard, ...] = (
    Standard("mixamo", fingers=FINGERS, axis="Y", unit=0.01, scale=0.01, turn=(90.0, 0.0, 0.0), ends="random"),
    Standard(
        "unreal",
        _UNDER_L,
        spine=5,
        neck=2,
        fingers=FINGERS,
        root=True,
        arms=45.0,
        elbows=10.0,
        knees=4.0,
        feet=6.0,
        axis="X",
        unit=0.01,
        helpers=(
            Helper("lowerarm_twist_01_l", "leftLowerArm", share=0.0, aside=0.05),  # off the limb: no twist bone
            Helper("lowerarm_twist_02_l", "leftLowerArm", share=0.6, twist="leftHand"),
            Helper("upperarm_twist_01_l", "leftUpperArm", share=0.2, twist="leftLowerArm"),
            Helper("calf_twist_01_l", "leftLowerLeg", share=0.5, twist="leftFoot"),
        ),
        ends="random",
    ),
    Standard("xsens_mvn", spine=4, axis="rest"),
    Standard(
        "makehuman_default",
        _DOT_CAPITAL,
        spine=5,
        neck=3,
        fingers=FINGERS,
        toes=False,
        arms=48.0,
        legs=8.0,
        feet=14.0,
        axis="Y",
        unit=0.1,
        scale=0.1,
        splits={
            "UpperArm": ("upperarm02.L", False),
            "LowerArm": ("lowerarm02.L", False),
            "UpperLeg": ("upperleg02.L", False),
            "LowerLeg": ("lowerleg02.L", False),
        },
        helpers=(
            Helper("metacarpal1.L", "leftHand", ("leftIndex1",), 0.3, 0.004),
            Helper("shoulder01.L", "leftShoulder", ("leftUpperArm",), 0.6, 0.02),
        ),
        ends="true",
    ),
    Standard("vrm", (("left", "right"),), fingers=FINGERS, turn=(0.0, 0.0, 180.0), ends="true"),
    Standard(
        "kaykit",
        _DOT_L,
        spine=2,
        neck=0,
        shoulders=False,
        root=True,
        axis="Z",
        unit=0.0254,
        turn=_ON_BACK,
        helpers=(Helper("wrist.l", "leftLowerArm", ("leftHand",), 0.85),),
    ),
    Standard(
        "daz_g8",
        _FIRST_L,
        spine=4,
        neck=2,
        fingers=FINGERS,
        arms=30.0,
        legs=20.0,
        feet=9.0,
        unit=0.01,
        scale=0.012,
        splits={
            "UpperArm": ("lShldrTwist", True),
            "LowerArm": ("lForearmTwist", True),
            "UpperLeg": ("lThighTwist", True),
        },
        helpers=(Helper("pelvis", "hips", _LEGS),),
    ),
    Standard("lafan1", axis="X", unit=0.01, turn=_ON_BACK, origin="hips"),
    Standard("chingmu", spine=4, arms=90.0, axis="rest", turn=(0.0, 0.0, 37.0), origin="hips"),
    Standard(
        "humanik", spine=1, fingers=FINGERS, root=True, travels=True, arms=0.0, wrists=12.0, curl=14.0, axis="Z", turn=(0.0, 0.0, 37.0)
    ),
    Standard("bandai_namco", _UNDER_CAPITAL, spine=2, root=True, travels=True, arms=20.0, legs=20.0, axis="X"),
    Standard("biped", ((" L ", " R "),), spine=2, fingers=FINGERS, root=True, arms=45.0, legs=20.0, axis="X", unit=0.0254, scale=0.0254),
    Standard(
        "character_creator",
        _BETWEEN,
        neck=2,
        fingers=FINGERS,
        arms=30.0,
        feet=10.0,
        axis="Y",
        unit=0.01,
        scale=0.01,
        turn=_ON_BACK,
        splits={"UpperArm": ("CC_Base_L_UpperarmTwist01", False), "UpperLeg": ("CC_Base_L_ThighTwist01", False)},
        helpers=(Helper("CC_Base_Pelvis", "hips", _LEGS),),
        ends="random",
    ),
    Standard(
        "cmu_asf",
        _FIRST_L,
        neck=2,
        fingers=("Thumb",),
        links=1,
        arms=20.0,
        unit=0.0254,
        axis="rest",
        origin="hips",
        splits={"LowerArm": ("lwrist", False)},
        helpers=(Helper("lhipjoint", "hips", ("leftUpperLeg",), 0.4, 0.03),),
        ends="true",
    ),
    Standard(
        "cmu_cgspeed",
        (("Left", "Right"), ("^L", "R")),
        neck=2,
        axis="rest",
        unit=0.056,
        helpers=(
            Helper("LHipJoint", "hips", ("leftUpperLeg",)),
            Helper("LeftFingerBase", "leftHand"),
        ),
        origin="hips",
    ),
    Standard("collar_elbow", spine=4, arms=90.0, elbows=10.0, axis="rest", unit=0.01, origin="hips"),
    Standard(
        "daz_g9", (("^l_", "r_"),), spine=4, neck=2, fingers=FINGERS, arms=45.0, elbows=10.0, legs=20.0, feet=20.0, unit=0.01, scale=0.01
    ),
    Standard(
        "dfki",
        (("^L_", "R_"),),
        fingers=FINGERS,
        arms=45.0,
        curl=10.0,
        wrists=8.0,
        axis="X",
        helpers=(Helper("L_index_root_jnt", "leftHand", ("leftIndex1",), 0.4, 0.003),),
    ),
    Standard("makehuman_bvh", _UNDER_CAPITAL, arms=30.0, fingers=FINGERS, axis="Y", helpers=(Helper("Hips", "hips", _LEGS),), scale=1.7),
    Standard(
        "mmd",
        (("左", "右"),),
        spine=2,
        fingers=FINGERS,
        root=True,
        arms=38.0,
        unit=0.08,
        scale=0.08,
        axis="rest",
        turn=(0.0, 0.0, -143.0),
        helpers=(Helper("下半身", "hips", _LEGS, 0.0, 0.0), Helper("左腕捩", "leftUpperArm", ("leftLowerArm",), 0.7)),
    ),
    Standard(
        "mmd_english", _UNDER_CAPITAL, spine=2, root=True, arms=38.0, unit=0.08, axis="rest", scale=1.0, scene_turn=(-90.0, 0.0, 37.0)
    ),
    Standard(
        "noitom",
        spine=4,
        neck=2,
        fingers=FINGERS,
        axis="rest",
        unit=0.01,
        scale=0.01,
        helpers=tuple(Helper(f"LeftInHand{f}", "leftHand", (f"left{f}1",), 0.35, 0.002) for f in _INDEX_TO_RING),
    ),
    Standard("optitrack", _FIRST_CAPITAL, spine=2, fingers=FINGERS, axis="rest", turn=(90.0, 0.0, 0.0), ends="random"),
    Standard(
        "poser",
        _FIRST_L,
        spine=2,
        fingers=FINGERS,
        arms=75.0,
        feet=12.0,
        unit=2.6,
        helpers=(Helper("lButtock", "hips", ("leftUpperLeg",), 0.5, 0.05),),
    ),
    Standard(
        "quaternius",
        _LAST_CAPITAL,
        fingers=_INDEX_TO_RING,
        links=2,
        names={f: (f"{f}1L", f"{f}2L") for f in _INDEX_TO_RING} | {"spine": ("Hips", "Abdomen", "Torso"), "head": ("Head",)},
        toes=False,
        root=True,
        arms=50.0,
        legs=5.0,
        axis="Y",
        scale=100.0,
        turn=_ON_BACK,
        ends="true",
    ),
    Standard(
        "rigify_deform",
        _DOT_CAPITAL,
        neck=2,
        fingers=FINGERS,
        arms=40.0,
        elbows=15.0,
        knees=6.0,
        axis="Y",
        splits={
            "UpperArm": ("DEF-upper_arm.L.001", True),
            "LowerArm": ("DEF-forearm.L.001", True),
            "UpperLeg": ("DEF-thigh.L.001", True),
            "LowerLeg": ("DEF-shin.L.001", True),
        },
        ends="true",
    ),
    Standard(
        "rigify_metarig",
        _DOT_CAPITAL,
        neck=2,
        fingers=FINGERS,
        arms=40.0,
        elbows=15.0,
        knees=6.0,
        wrists=10.0,
        curl=8.0,
        axis="Y",
        scale=0.01,
        helpers=(Helper("palm.01.L", "leftHand", ("leftIndex1",), 0.2, 0.005),),
        ends="true",
    ),
    Standard("rokoko", spine=4, fingers=FINGERS, axis="any", unit=0.01, turn=(0.0, 0.0, 90.0), ends="random"),
    Standard(
        "smpl",
        (("left", "right"), ("L_", "R_"), ("^l", "r")),
        axis="rest",
        legs=6.0,
        helpers=(Helper("L_Hand", "leftHand", share=0.0, aside=0.08),),
    ),
    Standard("unity", spine=1, shoulders=False, fingers=FINGERS, root=True, axis="any", scale=0.5),
    Standard("vroid", _BETWEEN, fingers=FINGERS, root=True, axis="Z", scene_turn=(15.0, -10.0, 37.0), arms=10.0, ends="random"),
    Standard(
        "auto_rig_pro",
        _DOT_L,
        fingers=FINGERS,
        root=True,
        arms=45.0,
        axis="Y",
        splits={"UpperArm": ("arm_twist.l", True), "LowerLeg": ("leg_twist.l", False)},
        scale=2.54,
    ),
)

FEW = ("mixamo", "unreal", "chingmu", "kaykit", "daz_g8", "makehuman_default")
"""Six that have every operator among them."""


@lru_cache(maxsize=2)
def bodies(families: tuple[str, ...] = ()) -> tuple[Body, ...]:
    """The standards, built: all, or those of some families."""
    return tuple(Body(s, seed) for seed, s in enumerate(STANDARDS) if not families or s.family in families)
