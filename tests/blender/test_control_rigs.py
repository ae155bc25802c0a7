# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated Rigify rigs: what is keyed on the controls moves the deform bones as the plain retarget moves the meta-rig.

The truth is the meta-rig with the same take, as Blender evaluates it; its bones are driven by nothing.
"""

from __future__ import annotations

import bpy
import numpy as np
import pytest

from mocap_addon import formats
from mocap_addon.blender import update
from mocap_addon.blender.job import preview_table
from mocap_addon.blender.recipes import recipe_of
from mocap_addon.motion.errors import TargetError
from mocap_addon.retarget.root_motion import RootMotion
from tests.paths import DATA

from .control_rig_makers import (
    HAND_TURNS,
    LIMBS,
    SIDES,
    bone_angle,
    degrees,
    generate_rigify,
    heel_lift,
    keyed,
    millimetres,
    opened,
    own_take,
    pole_step,
    posed,
    retarget,
    roll_about,
    settings_of,
    through_straight,
    turned,
)

WALK = DATA / "takes" / "cmu_walk_60rows.bvh"
EVEN = (1.0, 4.0, 7.0, 10.0, 12.0)
FEET = tuple(f"{part}.{s}" for part in ("foot", "toe") for s in SIDES)
KNEES = tuple(f"shin.{s}" for s in SIDES)


@pytest.fixture(scope="module")
def rigify(tmp_path_factory):
    return generate_rigify(tmp_path_factory.mktemp("rigify") / "rigify.blend")


@pytest.fixture(scope="module")
def walk():
    return formats.read(WALK)[0]


def worst(rig, meta, frames, names, prefix="ORG-"):
    """Largest difference over frames and bones: degrees of turn away from rest, millimetres, degrees of direction."""
    out = [(0.0, ""), (0.0, ""), (0.0, "")]
    for frame in frames:
        a, b = posed(rig, frame, [prefix + n for n in names]), posed(meta, frame, names)
        ta, tb = turned(rig, a), turned(meta, b)
        for n in names:
            found = (degrees(ta[prefix + n], tb[n]), millimetres(a[prefix + n], b[n]), bone_angle(a[prefix + n], b[n]))
            out = [max(x, (value, f"{n} at {frame}")) for x, value in zip(out, found, strict=True)]
    return out


def test_fk_limbs_are_the_plain_retarget(rigify, walk):
    rig, meta = opened(rigify)
    result = retarget(rig, walk)
    retarget(meta, walk)
    turn, place, _ = worst(rig, meta, EVEN, LIMBS)
    assert turn[0] < 0.1 and place[0] < 0.1, (turn, place)
    turn, place, _ = worst(rig, meta, EVEN, HAND_TURNS, "DEF-")
    assert turn[0] < 0.1 and place[0] < 0.1, (turn, place)
    _, place, direction = worst(rig, meta, EVEN, LIMBS, "DEF-")
    assert direction[0] < 0.1 and place[0] < 0.1, (direction, place)
    have = keyed(result.action)
    assert {"torso", "spine_fk", "chest", "hips"} & have == {"torso", "spine_fk"}
    assert {"thigh_fk.L", "foot_fk.R", "upper_arm_fk.L", "hand_fk.R", "neck", "head", "shoulder.L"} <= have
    assert not any(name.startswith(("DEF-", "ORG-", "MCH-")) or "ik" in name for name in have)
    switches = settings_of(result.action)
    assert len(switches) == 4 and set(switches.values()) == {1.0} and all("IK_FK" in path for path in switches)


def test_the_trunk_bends_as_the_metarig_does(rigify, walk):
    """The spine's controls turn about the middle of the trunk; where its joints are and where its bones point must not show it."""
    rig, meta = opened(rigify)
    retarget(rig, walk)
    retarget(meta, walk)
    trunk = ("spine", "spine.001", "spine.002", "spine.003")
    _, place, direction = worst(rig, meta, EVEN, trunk, "DEF-")
    assert place[0] < 0.1 and direction[0] < 0.1, (place, direction)
    turn, _, _ = worst(rig, meta, EVEN, ("spine", "spine.003", "spine.006"), "DEF-")
    assert turn[0] < 0.1, turn
    assert (
        worst(rig, meta, EVEN, ("spine.003",), "DEF-")[0][0]
        < 0.1
        < max(degrees(posed(rig, f, ["DEF-spine"])["DEF-spine"], posed(rig, 1.0, ["DEF-spine"])["DEF-spine"]) for f in EVEN)
    )


@pytest.mark.parametrize("choice", ["ik_legs", "ik"])
def test_ik_feet_are_the_fk_solutions(rigify, walk, choice):
    rig, meta = opened(rigify)
    result = retarget(rig, walk, controls=choice)
    retarget(meta, walk)
    held = FEET + (tuple(f"hand.{s}" for s in SIDES) if choice == "ik" else ())
    turn, place, _ = worst(rig, meta, EVEN, held, "DEF-")
    assert place[0] < 1.0 and turn[0] < 0.5, (turn, place)
    bent = KNEES + (tuple(f"forearm.{s}" for s in SIDES) if choice == "ik" else ())
    _, place, _ = worst(rig, meta, EVEN, bent, "DEF-")
    assert place[0] < 3.0, place
    have, switches = keyed(result.action), settings_of(result.action)
    assert {"foot_ik.L", "thigh_ik_target.L", "foot_heel_ik.L", "toe_ik.L"} <= have
    assert not {"thigh_fk.L", "shin_fk.R", "foot_fk.L", "toe_fk.R"} & have
    assert ("hand_ik.L" in have) == (choice == "ik") and ("hand_fk.L" in have) == (choice == "ik_legs")
    assert switches['pose.bones["thigh_parent.L"]["IK_FK"]'] == 0.0 and switches['pose.bones["thigh_parent.R"]["pole_vector"]'] == 1.0
    assert switches['pose.bones["upper_arm_parent.L"]["IK_FK"]'] == (0.0 if choice == "ik" else 1.0)


@pytest.mark.parametrize("controls", ["fk", "ik"])
def test_the_rig_shares_the_roll_of_limbs_by_itself(rigify, controls):
    """Rigify's deform bones split a limb in two. A roll arrives on them as on twist bones that get keys: of the hand none at the elbow and
    half from the middle on, of thigh and upper arm none where the limb begins and half from the middle on. So they need no keys."""
    rig, meta = opened(rigify)
    rolls = np.array([0.0, 40.0, 80.0, -80.0])
    split = {"hand.L": "forearm.L", "upper_arm.R": "upper_arm.R", "thigh.L": "thigh.L"}
    result = retarget(rig, own_take(meta, {f"{bone}/Y": rolls for bone in split}), controls=controls)
    assert not any(row.rule == "twist" for row in result.table.rows)
    for frame, roll in enumerate(rolls.tolist(), start=1):
        for bone, limb in split.items():
            names = (f"DEF-{limb}", f"DEF-{limb}.001", f"ORG-{bone}")
            bone_at_rest = rig.data.bones[f"ORG-{limb}"]
            axis = (bone_at_rest.tail_local - bone_at_rest.head_local).normalized()
            seen = turned(rig, posed(rig, frame, names))
            first, second, whole = (roll_about(seen[name], axis) for name in names)
            assert whole == pytest.approx(roll, abs=0.5)
            assert first == pytest.approx(0.0, abs=0.5) and second == pytest.approx(0.5 * roll, abs=0.5), (bone, frame)


def test_a_lifted_heel(rigify):
    """A roll of 40 degrees over the ball: the heel's control takes it, and the foot's stays with the sole."""
    rig, meta = opened(rigify)
    take = heel_lift(meta)
    result = retarget(rig, take, controls="ik_legs")
    retarget(meta, take)
    turn, place, _ = worst(rig, meta, (1, 5, 9, 13, 17, 21, 25), FEET, "DEF-")
    assert place[0] < 1.0 and turn[0] < 0.5, (turn, place)
    top = posed(rig, 13, ["foot_heel_ik.L", "foot_ik.L", "DEF-toe.L", "ORG-foot.L"])
    flat = posed(rig, 1, ["foot_heel_ik.L", "foot_ik.L", "DEF-toe.L", "ORG-foot.L"])
    assert abs(degrees(top["foot_heel_ik.L"], flat["foot_heel_ik.L"]) - degrees(top["ORG-foot.L"], flat["ORG-foot.L"])) < 0.1
    bpy.context.scene.frame_set(13)
    assert abs(np.degrees(rig.pose.bones["foot_heel_ik.L"].rotation_euler[0]) - 40.0) < 0.1  # a negative one would roll back over the heel
    assert degrees(top["foot_ik.L"], flat["foot_ik.L"]) < 0.1
    assert "foot_heel_ik.L" in keyed(result.action)


def test_34_no_pole_flips_through_a_straight_knee(rigify):
    """R: a stable bend plane. T: the knee through 180 degrees; a pole's step stays below 5 degrees a frame."""
    rig, meta = opened(rigify)
    take = through_straight(meta)
    retarget(rig, take, controls="ik_legs")
    retarget(meta, take)
    for s in SIDES:
        poles, knees = [], []
        for frame in range(1, take.frames + 1):
            seen, plain = posed(rig, frame, [f"thigh_ik_target.{s}"]), posed(meta, frame, [f"{p}.{s}" for p in ("thigh", "shin", "foot")])
            start, knee, end = (plain[f"{p}.{s}"].translation for p in ("thigh", "shin", "foot"))
            poles.append((start, end, seen[f"thigh_ik_target.{s}"].translation))
            knees.append((start, end, knee))
        assert pole_step(poles) < 5.0
        assert pole_step(knees) > 30.0  # where the knee itself is would have the pole jump
    turn, place, _ = worst(rig, meta, range(1, take.frames + 1, 4), FEET, "DEF-")
    assert place[0] < 1.0 and turn[0] < 0.5, (turn, place)
    assert worst(rig, meta, (1, 7, 13), KNEES, "DEF-")[1][0] < 0.5  # well bent: the knee too


@pytest.mark.parametrize("choice", ["fk", "ik"])
def test_what_the_rig_is_set_to_follow_does_not_matter(rigify, walk, choice):
    """Neck, head and limbs may follow the torso or the world, feet and poles anything: the keys make up for it."""
    rig, meta = opened(rigify)
    torso = rig.pose.bones["torso"]
    torso["neck_follow"], torso["head_follow"] = 0.3, 0.8
    for s in SIDES:
        leg, arm = rig.pose.bones[f"thigh_parent.{s}"], rig.pose.bones[f"upper_arm_parent.{s}"]
        leg["FK_limb_follow"], arm["FK_limb_follow"] = 1.0, 0.6
        leg["IK_parent"], arm["IK_parent"] = 2, 4
        leg["pole_parent"], arm["pole_parent"] = 1, 2
    rig.update_tag()
    bpy.context.view_layer.update()
    retarget(rig, walk, controls=choice)
    retarget(meta, walk)
    tips = (*FEET, *(f"hand.{s}" for s in SIDES), "spine.006")
    turn, place, _ = worst(rig, meta, EVEN, tips, "DEF-")
    assert turn[0] < 0.1, turn
    assert worst(rig, meta, EVEN, tips[:-1], "DEF-")[1][0] < 0.5, place


@pytest.mark.parametrize("choice", ["fk", "ik"])
def test_a_rig_that_stands_anywhere(rigify, walk, choice):
    rig, meta = opened(rigify)
    bpy.context.scene.unit_settings.scale_length = 0.1
    for obj in (rig, meta):
        obj.location, obj.rotation_euler, obj.scale = (3.0, -2.0, 5.0), (0.0, 0.0, 1.9), (8.0, 8.0, 8.0)
    bpy.context.view_layer.update()
    retarget(rig, walk, controls=choice)
    retarget(meta, walk)
    turn, place, _ = worst(rig, meta, EVEN, (*FEET, *(f"hand.{s}" for s in SIDES)), "DEF-")
    assert turn[0] < 0.1 and place[0] * 0.1 < 1.0, (turn, place)


def test_a_root_bone_that_carries_the_character(rigify, walk):
    rig, meta = opened(rigify)
    result = retarget(rig, walk, controls="ik_legs", root=RootMotion(destination="bone"))
    retarget(meta, walk)
    assert {"root", "torso"} <= keyed(result.action)
    way = posed(rig, 12, ["root"])["root"].translation - posed(rig, 1, ["root"])["root"].translation
    assert way.length > 0.1
    turn, place, _ = worst(rig, meta, EVEN, FEET, "DEF-")
    assert turn[0] < 0.1 and place[0] < 0.5, (turn, place)


def test_the_check_says_what_the_controls_make_of_it(rigify, walk):
    rig, _ = opened(rigify)
    good = retarget(rig, walk)
    assert any("follows the motion to within 0.0 mm" in note for note in good.notes)
    assert any("controls of this Rigify rig" in note for note in good.notes)
    rig.animation_data.action = None
    rig.pose.bones["hips"].rotation_mode = "XYZ"
    rig.pose.bones["hips"].rotation_euler = (0.5, 0.0, 0.0)  # a control without keys, posed by hand: it bends the spine
    bad = next(note for note in retarget(rig, walk).notes if note.startswith("Checked at"))
    assert "differs from the motion by up to" in bad and "mm" in bad and "degrees" in bad


def test_33_keys_without_effect_are_named(rigify, walk):
    """R: report bones with no effect. T: the switch of one leg is driven and stays at IK, whatever its key says."""
    rig, meta = opened(rigify)
    curve = rig.pose.bones["thigh_parent.L"].driver_add('["IK_FK"]')
    curve.driver.type, curve.driver.expression = "SCRIPTED", "0.0"
    rig.update_tag()
    bpy.context.view_layer.update()
    notes = retarget(rig, walk, controls="fk").notes
    idle = next(note for note in notes if note.startswith("Keys have no effect on"))
    named = {word.strip() for word in idle.split(":")[1].split(";")[0].split(",")}
    assert {"DEF-shin.L", "DEF-foot.L", "DEF-toe.L"} <= named <= {f"DEF-{part}.L" for part in ("thigh", "shin", "foot", "toe")}
    assert any("differs from the motion" in note for note in notes)
    del meta


def test_settings_go_back_with_the_next_action(rigify, walk):
    rig, _ = opened(rigify)
    before = rig.pose.bones["thigh_ik.L"].ik_stretch
    first = retarget(rig, walk, controls="ik_legs")
    bpy.context.scene.frame_set(5)
    assert rig.pose.bones["thigh_ik.L"].ik_stretch == 0.0 and before > 0.0
    assert ["thigh_ik.L", ".ik_stretch", before] in recipe_of(first.action)["switched"]
    retarget(rig, walk, controls="fk")
    bpy.context.scene.frame_set(6)
    assert abs(rig.pose.bones["thigh_ik.L"].ik_stretch - before) < 1e-6
    assert rig.pose.bones["thigh_parent.L"]["IK_FK"] == 1.0


def test_what_an_action_before_left_on_controls_without_keys_goes_back_to_rest(rigify, walk):
    """The chest's and the hips' control bend the spine by way of copies, not as parents; the master of a thumb curls it."""
    rig, meta = opened(rigify)
    for name, prop, value in (
        ("chest", "rotation_euler", 0.6),
        ("hips", "rotation_euler", -0.4),
        ("thumb.01_master.L", "rotation_euler", 0.8),
    ):
        rig.pose.bones[name].rotation_mode = "XYZ"
        setattr(rig.pose.bones[name], prop, (value, 0.0, 0.0))
        rig.pose.bones[name].keyframe_insert(prop, frame=1)
    bpy.context.scene.frame_set(1)
    result = retarget(rig, walk)
    assert {"chest", "hips", "thumb.01_master.L"} <= keyed(result.action)
    retarget(meta, walk)
    turn, place, _ = worst(rig, meta, EVEN, ("hand.L", "hand.R", "spine.003"), "DEF-")
    assert turn[0] < 0.1 and place[0] < 0.1, (turn, place)


def test_a_mask_over_motion_on_other_controls_is_refused(rigify, walk):
    from mocap_addon.motion.errors import RigError
    from mocap_addon.retarget import Mask

    rig, meta = opened(rigify)
    retarget(rig, walk, controls="ik_legs")
    arms = Mask(parts=frozenset({"left arm", "right arm"}))
    with pytest.raises(RigError, match="on other controls"):
        retarget(rig, walk, mask=arms)
    result = retarget(rig, walk, controls="ik_legs", mask=arms)
    retarget(meta, walk)
    assert "foot_ik.L" in keyed(result.action) and result.meant is None
    turn, place, _ = worst(rig, meta, EVEN, (*FEET, "hand.L", "hand.R"), "DEF-")
    assert turn[0] < 0.5 and place[0] < 1.0, (turn, place)


def test_an_action_is_made_again_on_other_controls(rigify, walk):
    rig, meta = opened(rigify)
    result = retarget(rig, walk)
    assert recipe_of(result.action)["options"]["controls"] == "auto"
    from dataclasses import replace

    from mocap_addon.blender.job import options_of

    again = replace(options_of(recipe_of(result.action)), controls="ik_legs")
    update.update_action(rig, result.action, options=again, take=walk)
    retarget(meta, walk)
    assert "foot_ik.L" in keyed(result.action)
    turn, place, _ = worst(rig, meta, EVEN, FEET, "DEF-")
    assert turn[0] < 0.5 and place[0] < 1.0, (turn, place)


def test_only_what_the_table_moves_gets_keys(rigify, walk):
    from dataclasses import replace

    rig, meta = opened(rigify)
    table = preview_table(rig, walk)[0]
    table = replace(table, rows=tuple(row for row in table.rows if "Arm" not in row.role and "Hand" not in row.role))
    result = retarget(rig, walk, table=table)
    have = keyed(result.action)
    assert "thigh_fk.L" in have and not any("arm" in name or "hand" in name for name in have)
    assert not any("upper_arm_parent" in path for path in settings_of(result.action))
    retarget(meta, walk)
    turn, place, _ = worst(rig, meta, EVEN, FEET, "DEF-")
    assert turn[0] < 0.1 and place[0] < 0.1, (turn, place)


def test_bones_themselves_when_asked(rigify, walk):
    rig, meta = opened(rigify)
    have = keyed(retarget(rig, walk, controls="deform").action)
    assert "DEF-thigh.L" in have and {name for name in have if not name.startswith("DEF-")} <= {"root"}
    with pytest.raises(TargetError, match="No such controls"):
        retarget(meta, walk, controls="ik_legs")
    assert "thigh.L" in keyed(retarget(meta, walk, controls="auto").action)


def test_for_players_without_constraints_every_deform_bone_is_where_blender_has_it(rigify, walk):
    rig, _ = opened(rigify)
    result = retarget(rig, walk)
    take = result.on_bones.to_take(result.target.skeleton)
    names = [n for n in result.target.skeleton.names if n.startswith("DEF-")]
    assert len(names) > 100
    for frame in EVEN:
        seen = posed(rig, frame, names)
        for name in names:
            place = take.global_positions[int(frame) - 1, result.target.skeleton.index(name)]
            assert np.linalg.norm(np.array(seen[name].translation) - place) < 1e-4, (name, frame)
