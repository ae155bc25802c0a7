# SPDX-License-Identifier: GPL-3.0-or-later
"""What only one of the two bodies has still says how that body stands."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap_addon.motion.take import Take
from mocap_addon.retarget import build_table, retarget
from mocap_addon.retarget.chains import beyond, link_offsets

from .bodies import PLACES, body, q, random_take, swung

PARENTS = {name: parent for name, (_, parent, _) in PLACES.items()}
TOES = ("leftToes", "rightToes")


def places() -> dict[str, np.ndarray]:
    return {name: np.array(place) for name, (_, _, place) in PLACES.items()}


@pytest.mark.parametrize("toes_out", [0.0, 25.0])
def test_feet_head_where_their_toes_say_though_the_other_side_has_none(toes_out):
    """The source's feet end at the toes; the target has toes and turns its feet outward at rest."""
    turned = places()
    for side, angle in (("left", toes_out), ("right", -toes_out)):
        turned = swung(turned, PARENTS, f"{side}Foot", Rotation.from_euler("z", angle, degrees=True))
    source, roles = body(without=TOES)
    ends = source.ends.copy()
    for side in ("left", "right"):
        ends[source.index(f"{side}Foot")] = np.array(PLACES[f"{side}Toes"][2]) - PLACES[f"{side}Foot"][2]
    source = replace(source, ends=ends)
    target, target_roles = body(turned)
    table = build_table(source, roles, target, target_roles)
    assert table.row("leftFoot").alignment == pytest.approx((0.0, 0.0, -toes_out), abs=1e-6)
    take = random_take(source, frames=6)
    out = retarget(take, table, target).to_take(target)
    feet = [source.index("leftFoot"), source.index("rightFoot")]
    at = [target.index("leftFoot"), target.index("rightFoot")]
    assert np.abs(out.global_positions[:, at] - take.global_positions[:, feet]).max() < 1e-9


def test_a_target_with_its_origin_at_the_hips_stands_on_the_ground_that_the_source_stands_on():
    source, roles = body()  # toes 2 cm above the plane of the origin
    target, target_roles = body({name: place - [0.0, 0.0, 1.0] for name, place in places().items()})
    take = random_take(source, frames=6)
    out = retarget(take, build_table(source, roles, target, target_roles), target).to_take(target)
    assert np.abs(out.global_positions - take.global_positions).max() < 1e-9


def test_the_sole_of_a_take_that_lies_on_its_back_is_below_its_feet():
    """Hips at the origin at rest, everything turned over: up is where the body has it, not where the file does."""
    standing, roles = body({name: place - [0.0, 0.0, 1.0] for name, place in places().items()})
    local = np.tile(standing.rest_rotations, (9, 1, 1))
    moved = np.tile(standing.rest_translations, (9, 1, 1))
    moved[:, 0] = [0.0, 0.0, 1.0]  # toes at 2 cm
    take = Take("standing", standing, np.arange(9) / 30.0, local, moved)
    target, target_roles = body()
    lying = take.turned(q(Rotation.from_euler("x", -90, degrees=True)))
    out = retarget(lying, build_table(lying.skeleton, roles, target, target_roles), target).to_take(target)
    assert np.abs(out.global_positions - take.global_positions).max() < 1e-9


def test_a_hand_without_fingers_is_straight_on_either_side():
    """The source's wrists hang by 20 degrees at rest, the target's hands have no fingers: where the source's hand is straight, so is
    the target's."""
    hanging = places()
    for side, way in (("left", 1.0), ("right", -1.0)):
        hanging[f"{side}Middle"] = hanging[f"{side}Hand"] + np.array([0.09 * way, 0.0, 0.0])
    parents = {**PARENTS, "leftMiddle": "leftHand", "rightMiddle": "rightHand"}
    for side, angle in (("left", 20.0), ("right", -20.0)):
        hanging = swung(hanging, parents, f"{side}Hand", Rotation.from_euler("y", angle, degrees=True))
    skeleton, roles = body({name: hanging[name] for name in PLACES})
    names = (*skeleton.names, "leftMiddle", "rightMiddle")
    hands = [skeleton.index("leftHand"), skeleton.index("rightHand")]
    offsets = [hanging[n] - hanging[n.replace("Middle", "Hand")] for n in names[-2:]]
    source = replace(
        skeleton,
        names=names,
        parents=np.append(skeleton.parents, hands),
        rest_translations=np.concatenate([skeleton.rest_translations, offsets]),
        rest_rotations=np.zeros(0),
        ends=np.zeros(0),
    )
    joints = {**roles.joints, "leftMiddle": (len(names) - 2,), "rightMiddle": (len(names) - 1,)}
    target, target_roles = body(without=tuple(n for n in PLACES if "Index" in n or "Little" in n))
    row = build_table(source, replace(roles, joints=joints), target, target_roles).row("leftHand")
    assert row.alignment == pytest.approx((0.0, 20.0, 0.0), abs=1e-6)


def test_palms_are_laid_onto_each_other_by_the_fingers_that_both_have():
    """Knuckles on an arch, a target without the little finger: the same hand is not rolled."""
    arched = places()
    for side in ("left", "right"):
        arched[f"{side}Little"] = arched[f"{side}Little"] - [0.0, 0.0, 0.01]
    source, roles = body(arched)
    few = {role: joints for role, joints in roles.joints.items() if "Little" not in role}
    middle = {**roles.joints, "leftRing": roles.joints["leftIndex"][1:2]}  # a third knuckle, off the plane of the others
    whole = replace(roles, joints=middle)
    target_roles = replace(roles, joints={**few, "leftRing": middle["leftRing"]})
    row = build_table(source, whole, source, target_roles).row("leftHand")
    assert row.alignment == pytest.approx((0.0, 0.0, 0.0), abs=1e-6)


def test_a_spine_reaches_to_the_neck_and_not_to_a_collar_bone_near_the_middle():
    """The neck stands 15 cm over the last link of the spine, the collar bones 3 cm beside its middle."""
    skeleton, roles = body()
    spine = roles.joints["spine"]
    tip = beyond("spine", roles.joints)
    assert tip == skeleton.index("neck")
    assert link_offsets(skeleton, spine, tip)[-1] == pytest.approx([0.0, -0.03, 0.15])
    without = {role: joints for role, joints in roles.joints.items() if role != "neck"}
    assert beyond("spine", without) == skeleton.index("head") and beyond("leftIndex", roles.joints) is None


def test_one_bone_for_a_whole_finger_aims_along_its_joints_wherever_its_last_bone_ends():
    source, roles = body()
    ends = np.full((len(source), 3), np.nan)
    ends[source.index("leftIndex3")] = [0.0, 0.0, 0.05]  # straight up, as an exporter that does not know makes it
    odd = replace(source, ends=ends)
    target, target_roles = body(without=("leftIndex2", "leftIndex3"))
    take = random_take(source, frames=8)
    strange = replace(take, skeleton=odd)
    plain = retarget(take, build_table(source, roles, target, target_roles), target)
    out = retarget(strange, build_table(odd, roles, target, target_roles), target)
    assert np.abs(plain.rotations - out.rotations).max() < 1e-12
