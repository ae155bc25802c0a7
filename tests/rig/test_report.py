# SPDX-License-Identifier: GPL-3.0-or-later
"""The report in plain words."""

from __future__ import annotations

from mocap_addon import rig
from mocap_addon.rig.roles import RoleMap

from .skeletons import written

TEXT = """
Hips = hips
 Spine = spine
  Spine1 = spine
   Head = head
   LeftShoulder* = leftShoulder
    LeftArm = leftUpperArm
     LeftForeArm = leftLowerArm
      LeftHand = leftHand
       Grip
 LeftUpLeg* = leftUpperLeg
  LeftLeg = leftLowerLeg
   LeftFoot = leftFoot
"""


def test_a_whole_body() -> None:
    skeleton, _ = written(TEXT.replace("       Grip\n", ""))
    assert rig.report(rig.match(skeleton), skeleton).splitlines() == [
        "18 of 18 joints matched: LaFAN1 names.",
        "  Body: hips = Hips, spine = Spine ... Spine1 (2), head = Head",
        "  Left arm: shoulder = LeftShoulder, upper arm = LeftArm, lower arm = LeftForeArm, hand = LeftHand",
        "  Right arm: shoulder = RightShoulder, upper arm = RightArm, lower arm = RightForeArm, hand = RightHand",
        "  Left leg: upper leg = LeftUpLeg, lower leg = LeftLeg, foot = LeftFoot",
        "  Right leg: upper leg = RightUpLeg, lower leg = RightLeg, foot = RightFoot",
        "  Not there (nothing will follow them): neck, left toes, right toes",
    ]


def test_what_is_doubtful_missing_and_unused_is_said() -> None:
    skeleton, _ = written(" a\n  b\n   c")
    roles = RoleMap({"hips": (0,), "leftUpperArm": (1,)}, "structure", {"hips": 0.6, "leftUpperArm": 1.0}, ("Mind the gap.",))
    facts = rig.analyse(roles, skeleton)
    assert facts.matched == (("hips", ("a",), 0.6), ("leftUpperArm", ("b",), 1.0))
    assert facts.doubtful == ("hips",)
    assert facts.unused == ("c",)
    assert "rightUpperArm" in facts.missing and "leftUpperArm" not in facts.missing
    text = rig.report(roles, skeleton)
    assert text.startswith("2 of 3 joints matched: found by the shape of the skeleton alone, not by names.\n")
    assert "  Look at: hips (60% sure)\n" in text
    assert "  Missing, and needed: left lower arm, " in text
    assert "  Not used (1): c\n" in text
    assert text.endswith("  Note: Mind the gap.")


def test_one_joint() -> None:
    skeleton, _ = written("Foo")
    assert rig.report(rig.match(skeleton), skeleton).startswith("None of 1 joint was matched.")
