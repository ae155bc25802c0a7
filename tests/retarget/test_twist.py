# SPDX-License-Identifier: GPL-3.0-or-later
"""Twist bones beside the limbs of the target: the roll is shared along the limb, and the bones of the body keep theirs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.retarget import Adjustments, RetargetOptions, build_table, retarget
from mocap_addon.retarget.build import bodies_of
from mocap_addon.retarget.reference import corrected_to_pose
from mocap_addon.rig import dumps, loads, match
from mocap_addon.rig.table import CorrectionTable

from .bodies import body, q, r
from .twist_bodies import ABOVE, BESIDE, away, carried, line, mannequin, match_of_plain, performance, roll, twist, with_joints

SIDES = ("l", "r")


def without_twists(table: CorrectionTable) -> CorrectionTable:
    return replace(table, rows=tuple(row for row in table.rows if row.rule != "twist"))


def check_shares(take, rows) -> float:
    """Every twist bone turns about the limb by its share of the roll, and by nothing else; the greatest roll in degrees."""
    most = 0.0
    for name, (limb, tip, u) in BESIDE.items():
        for side in SIDES:
            a, b = f"{limb}_{side}", f"{tip}_{side}"
            above = ABOVE.get(limb)
            if above is None:
                whole, share = roll(take, b, a, a, b), u
            else:
                above = above if above == "pelvis" else f"{above}_{side}"
                whole, share = roll(take, a, above, a, b), u - 1.0
            axis = line(take.skeleton, a, b)
            for total, limb_turn, own in zip(whole, away(take, a), away(take, f"{name}_{side}"), strict=True):
                angle, swing = twist(limb_turn.inv() * own, axis)
                assert swing < 1e-4, (name, swing)
                assert (angle - share * total + 180.0) % 360.0 - 180.0 == pytest.approx(0.0, abs=1e-4), (name, side)
                assert abs(angle) <= 180.0
                most = max(most, abs(total))
            assert rows[f"{name}_{side}"].blend == pytest.approx(abs(share), abs=1e-4)
    return most


@pytest.mark.parametrize("seed", [None, 7, 21])
def test_each_twist_bone_has_its_share_of_the_roll(seed: int | None) -> None:
    table, _motion, take = carried(performance(), mannequin(seed))
    rows = {row.target: row for row in table.rows}
    assert all(rows[f"{name}_{side}"].rule == "twist" for name in BESIDE for side in SIDES)
    assert check_shares(take, rows) > 100.0


def test_the_roll_goes_on_through_half_a_turn() -> None:
    """A hand that turns over by more than 180 degrees: no twist bone jumps from one side to the other."""
    table, motion, take = carried(performance(80, hand=215.0), mannequin())
    assert max(map(abs, roll(take, "hand_l", "lowerarm_l", "lowerarm_l", "hand_l"))) > 200.0
    check_shares(take, {row.target: row for row in table.rows})
    for name in BESIDE:
        k = motion.bones.index(take.skeleton.index(f"{name}_l"))
        steps = [(b * a.inv()).magnitude() for a, b in zip(r(motion.rotations[:-1, k]), r(motion.rotations[1:, k]), strict=True)]
        assert max(steps) < np.radians(15.0), name
        assert (np.einsum("fi,fi->f", motion.rotations[1:, k], motion.rotations[:-1, k]) > 0.0).all()


def test_the_steps_along_the_limb_come_to_the_hand_s_roll() -> None:
    """From the elbow over both twist bones to the hand, and from the shoulder to the upper arm: the parts are the whole."""
    _table, _motion, take = carried(performance(), mannequin())
    chains = {"lowerarm": ["lowerarm", "lowerarm_twist_02", "lowerarm_twist_01", "hand"], "upperarm": ["clavicle", "upperarm_twist_01"]}
    chains["upperarm"] += ["upperarm_twist_02", "upperarm"]
    for limb, tip in (("lowerarm", "hand"), ("upperarm", "lowerarm")):
        axis = line(take.skeleton, f"{limb}_l", f"{tip}_l")
        turns = [away(take, f"{name}_l") for name in chains[limb]]
        for frame in zip(*turns, strict=True):
            steps = [twist(a.inv() * b, axis)[0] for a, b in pairwise(frame)]
            assert sum(steps) == pytest.approx(twist(frame[0].inv() * frame[-1], axis)[0], abs=1e-4)
            assert max(map(abs, steps)) < 75.0  # of up to 130 at once


def test_bones_of_the_body_turn_as_without_twist_bones() -> None:
    _, with_them, _ = carried(performance(), mannequin())
    _, without, _ = carried(performance(), mannequin(), change=without_twists)
    assert set(with_them.bones) - set(without.bones) == {mannequin().index(f"{n}_{s}") for n in BESIDE for s in SIDES}
    place = {bone: k for k, bone in enumerate(with_them.bones)}
    assert np.array_equal(with_them.rotations[:, [place[bone] for bone in without.bones]], without.rotations)
    assert list(with_them.bones) == sorted(with_them.bones)


def test_body_sliders_and_corrections_count() -> None:
    """What a person adds to the arm or to the hand is shared too."""

    def turned(table: CorrectionTable) -> CorrectionTable:
        return table.with_row(replace(table.row("hand_l"), correction=(40.0, 5.0, 0.0)))

    table, _motion, take = carried(performance(), mannequin(), change=turned, adjustments=Adjustments(arm_space=20.0, foot_yaw=25.0))
    check_shares(take, {row.target: row for row in table.rows})


def test_a_share_of_zero_is_off_and_a_correction_turns_the_bone_alone() -> None:
    names = ("lowerarm_twist_01_l", "lowerarm_twist_02_l")

    def edited(table: CorrectionTable) -> CorrectionTable:
        table = table.with_row(replace(table.row(names[0]), blend=0.0))
        return table.with_row(replace(table.row(names[1]), blend=0.0, correction=(0.0, 0.0, 30.0)))

    skeleton = mannequin()
    _table, motion, take = carried(performance(), skeleton, change=edited)
    assert skeleton.index(names[0]) not in motion.bones
    for limb, own in zip(away(take, "lowerarm_l"), away(take, names[1]), strict=True):
        assert np.allclose((limb.inv() * own).as_rotvec(degrees=True), [0.0, 0.0, 30.0], atol=1e-4)  # T pose on T pose: no alignment


def test_the_skin_of_a_forearm_keeps_its_girth() -> None:
    """A tube along the forearm, its weights going over from bone to bone by place: linear skinning thins it where neighbours are wrung
    against each other by ``a``, to ``cos(a / 2)`` half way between. With the twist bones it stays a tube."""
    take = performance(9, hand=150.0)
    girth = {}
    for twists in (False, True):
        skeleton = mannequin(twists=twists)
        _table, _motion, moved = carried(take, skeleton)
        bones = ["lowerarm_l", *(["lowerarm_twist_02_l", "lowerarm_twist_01_l"] if twists else []), "hand_l"]
        at = [0.0, *([0.35, 0.7] if twists else []), 1.0]
        places = skeleton.rest_global_positions
        elbow, wrist = places[skeleton.index("lowerarm_l")], places[skeleton.index("hand_l")]
        axis, turns = line(skeleton, "lowerarm_l", "hand_l"), {name: away(moved, name) for name in bones}
        across = np.cross(axis, [0.0, 0.0, 1.0])
        radius = []
        for f in range(moved.frames):
            limb = turns["lowerarm_l"][f]
            straight = []  # bends at the wrist are the hand's own: only what is turned about the limb counts here
            for name in bones:
                straight.append(twist(limb.inv() * turns[name][f], axis)[0])
            for u in np.linspace(0.0, 1.0, 15):
                weights = np.array([np.interp(u, at, np.eye(len(at))[k]) for k in range(len(at))])
                ring = []
                for phi in (0.0, 1.0, 2.5, 4.0):
                    out = 0.03 * (np.cos(phi) * across + np.sin(phi) * np.cross(axis, across))
                    point = sum(w * r(q(_about(axis, angle)))[0].apply(out) for w, angle in zip(weights, straight, strict=True))
                    ring.append(np.linalg.norm(point) / 0.03)
                radius.append(np.mean(ring))
        girth[twists] = min(radius)
        assert np.linalg.norm(wrist - elbow) > 0.2
    assert girth[False] < 0.35 and girth[True] > 0.85


def _about(axis: np.ndarray, degrees: float):
    from scipy.spatial.transform import Rotation

    return Rotation.from_rotvec(np.radians(degrees) * axis)


# --- which bones ---


def test_only_bones_named_so_on_the_limb_s_line_and_with_nothing_on_them() -> None:
    plain = mannequin(twists=False)
    added = {
        "lowerarm_bulge_l": ("lowerarm_l", "hand_l", 0.5),  # no such name
        "lowerarm_twistCor_01_l": ("lowerarm_l", "hand_l", 0.5),  # a corrective bone
        "head_twist": ("head", "neck_01", 0.5),  # no limb
        "upperarm_twist_01_r": ("upperarm_r", "hand_r", 0.9),  # beyond the elbow
        "thigh_twist_01_r": ("thigh_r", "foot_l", 0.9),  # far off the leg
        "lowerarm_twist_01_r": ("lowerarm_r", "hand_r", 0.5),  # this one
    }
    skeleton = with_joints(plain, added)
    assert match(skeleton).twists == {skeleton.index("lowerarm_twist_01_r"): "rightLowerArm"}
    roles = match(skeleton)
    table = build_table(performance().skeleton, match_of_plain(performance().skeleton), skeleton, roles)
    assert [row.target for row in table.rows if row.rule == "twist"] == ["lowerarm_twist_01_r"]
    assert {"lowerarm_bulge_l", "thigh_twist_01_r"} <= set(table.unmapped_target)


def test_a_bone_that_hangs_on_another_twist_bone_does_not_twist_twice() -> None:
    plain = mannequin(twists=False)
    first = with_joints(
        plain, {"CC_upperarm_twist_01_l": ("upperarm_l", "lowerarm_l", 0.0), "lowerarm_twist_01_l": ("lowerarm_l", "hand_l", 0.25)}
    )
    skeleton = _under(
        first, {"upperarm_twist_02_l": ("CC_upperarm_twist_01_l", "lowerarm_l"), "lowerarm_twist_02_l": ("lowerarm_twist_01_l", "hand_l")}
    )
    _table, _motion, take = carried(performance(), skeleton)
    for limb, tip, share in (("lowerarm_l", "hand_l", 0.625), ("upperarm_l", "lowerarm_l", -0.5)):
        whole = roll(take, "hand_l", limb, limb, tip) if share > 0.0 else roll(take, limb, "clavicle_l", limb, tip)
        axis, name = line(skeleton, limb, tip), limb.replace("_l", "_twist_02_l")
        for total, a, b in zip(whole, away(take, limb), away(take, name), strict=True):
            assert twist(a.inv() * b, axis)[0] == pytest.approx(share * total, abs=1e-4)


def _under(skeleton: Skeleton, added: dict[str, tuple[str, str]]) -> Skeleton:
    """Bones that hang on twist bones, half way from them to the limb's end."""
    return with_joints(skeleton, {name: (parent, end, 0.5) for name, (parent, end) in added.items()}, seed=9)


def test_two_rigs_of_one_make_carry_their_twist_bones_as_they_are() -> None:
    skeleton = mannequin()
    _table, _motion, take = carried(performance(), skeleton)
    rng = np.random.default_rng(4)
    local = take.local_rotations.copy()
    for name in BESIDE:
        j = skeleton.index(f"{name}_l")
        local[:, j] = q(r(local[:, j]) * r(q(_about(np.array([0.0, 0.0, 1.0]), 1.0))) * _random(rng, len(local)))
    take = replace(take, local_rotations=local)
    table = build_table(skeleton, match(skeleton), skeleton, match(skeleton))
    assert not [row for row in table.rows if row.rule == "twist"]
    got = retarget(take, table, skeleton).to_take(skeleton)
    dots = np.abs(np.einsum("fji,fji->fj", got.global_rotations, take.global_rotations))
    assert np.degrees(2.0 * np.arccos(np.clip(dots, 0.0, 1.0))).max() < 1e-5


def _random(rng: np.random.Generator, count: int):
    from scipy.spatial.transform import Rotation

    return Rotation.from_rotvec(rng.normal(size=(count, 3)) * 0.2)


def test_a_table_file_keeps_the_rule_and_a_bone_on_no_limb_is_named() -> None:
    table, *_ = carried(performance(4), mannequin())
    again = loads(dumps(table))
    assert [(row.target, row.rule, row.blend) for row in again.rows] == [(row.target, row.rule, row.blend) for row in table.rows]
    wrong = table.with_row(replace(table.row("spine_02"), rule="twist", blend=0.5, role="helper"))
    _t, motion, _take = carried(performance(4), mannequin(), change=lambda _: wrong)
    assert len(motion.notes) == 1 and "hang on none of the table" in motion.notes[0] and '"spine_02".' in motion.notes[0]
    assert mannequin().index("spine_02") not in motion.bones
    for freed in ("upperarm_l", "lowerarm_l", "hand_l"):  # a person who takes a bone of the limb out of the table is not held up
        rows = tuple(row for row in table.rows if row.target != freed)
        _t, motion, _take = carried(performance(4), mannequin(), change=lambda _, rows=rows: replace(table, rows=rows))
        keyed = {mannequin().names[bone] for bone in motion.bones}
        assert "lowerarm_twist_01_r" in keyed and ("lowerarm_twist_01_l" not in keyed) is (freed != "upperarm_l")


def test_a_table_without_twist_rows_is_read_and_used_as_before() -> None:
    skeleton, roles = body()
    table = build_table(skeleton, roles, skeleton, roles)
    assert loads(dumps(table)) == table or all(row.rule != "twist" for row in loads(dumps(table)).rows)
    assert "twist" not in {row.rule for row in table.rows}


# --- links in the limb ---


LIMBS = {"upperarm": ("clavicle", "lowerarm"), "lowerarm": (None, "hand"), "thigh": ("pelvis", "calf"), "calf": (None, "foot")}


def split(counts: dict[str, tuple[float, ...]], seed: int = 5) -> Skeleton:
    """The mannequin with links in its limbs, at shares of the way."""
    plain = mannequin(twists=False)
    names, parents = list(plain.names), [None if p < 0 else plain.names[p] for p in plain.parents.tolist()]
    place = dict(zip(names, plain.rest_global_positions, strict=True))
    frame = dict(zip(names, r(plain.rest_global_rotations), strict=True))
    above = dict(zip(names, parents, strict=True))
    for limb, shares in counts.items():
        for side in SIDES:
            start, end = f"{limb}_{side}", f"{LIMBS[limb][1]}_{side}"
            on = start
            for k, share in enumerate(shares):
                name = f"{limb}_twist_{k + 1:02d}_{side}"
                place[name] = plain.rest_global_positions[names.index(start)] * (1.0 - share) + share * place[end]
                frame[name] = r(q(_about(np.array([1.0, 0.2, -0.4]) / np.sqrt(1.2), 40.0 * seed + 25.0 * k)))[0] * frame[start]
                above[name], above[end], on = on, name, name
    order: list[str] = []
    while len(order) < len(above):
        order += [n for n in above if n not in order and (above[n] is None or above[n] in order)]
    local_t, local_r = [], []
    for name in order:
        up = above[name]
        local_r.append(q(frame[name] if up is None else frame[up].inv() * frame[name]))
        local_t.append(place[name] if up is None else frame[up].inv().apply(place[name] - place[up]))
    return Skeleton(
        tuple(order), np.array([-1 if above[n] is None else order.index(above[n]) for n in order]), np.array(local_t), np.array(local_r)
    )


@pytest.mark.parametrize(
    "counts",
    [
        {"upperarm": (0.4,), "lowerarm": (0.55,), "thigh": (0.5,), "calf": (0.3,)},
        {"upperarm": (0.25, 0.6), "lowerarm": (0.3, 0.8), "thigh": (0.2, 0.7)},
    ],
)
def test_links_in_a_limb_share_its_roll_and_every_joint_stays(counts) -> None:
    skeleton = split(counts)
    table, _motion, take = carried(performance(), skeleton)
    _t, _m, stiff = carried(performance(), skeleton, change=without_twists)
    assert len([row for row in table.rows if row.rule == "twist"]) == 2 * sum(map(len, counts.values()))
    links = {f"{limb}_twist_{k + 1:02d}_{side}" for limb, shares in counts.items() for k in range(len(shares)) for side in SIDES}
    first = {f"{limb}_{side}" for limb in counts if LIMBS[limb][0] is not None for side in SIDES}
    assert np.abs(take.global_positions - stiff.global_positions).max() < 1e-6
    for name in set(skeleton.names) - links - first:  # hands, feet, forearms and all else turn as ever
        turns = zip(away(take, name), away(stiff, name), strict=True)
        assert max((a.inv() * b).magnitude() for a, b in turns) < 1e-6, name
    for limb, shares in counts.items():
        above, end = LIMBS[limb]
        for side in SIDES:
            a, b = f"{limb}_{side}", f"{end}_{side}"
            axis = line(skeleton, a, b)
            holds = above if above in (None, "pelvis") else f"{above}_{side}"
            whole = roll(stiff, b, a, a, b) if holds is None else roll(stiff, a, holds, a, b)
            names = [a, *(f"{limb}_twist_{k + 1:02d}_{side}" for k in range(len(shares)))]
            edges = [0.0, *shares, 1.0]
            for k, name in enumerate(names):
                share = edges[k] if holds is None else edges[k + 1] - 1.0  # against the limb as a whole
                for total, still, own in zip(whole, away(stiff, a), away(take, name), strict=True):
                    angle, swing = twist(still.inv() * own, axis)
                    assert swing < 1e-4 and (angle - share * total + 180.0) % 360.0 - 180.0 == pytest.approx(0.0, abs=2e-3), (name, share)
    assert max(abs(x) for x in roll(stiff, "hand_l", "lowerarm_l", "lowerarm_l", "hand_l")) > 100.0


def test_bones_beside_a_limb_with_links_share_by_their_own_place() -> None:
    """As MikuMikuDance's: a link in the arm, and bones without children beside it. Each turns as the limb is to turn where it lies."""
    leaves = {"upperarm_twist_08_l": 0.3, "lowerarm_twist_08_l": 0.8, "lowerarm_twist_09_l": 0.7}
    skeleton = with_joints(
        split({"upperarm": (0.6,), "lowerarm": (0.5,)}),
        {
            "upperarm_twist_08_l": ("upperarm_l", "lowerarm_l", 0.3),
            "lowerarm_twist_08_l": ("lowerarm_l", "hand_l", 0.8),
            "lowerarm_twist_09_l": ("lowerarm_twist_01_l", "hand_l", 0.4),  # hangs on the link: 0.5 + 0.4 * 0.5
        },
    )
    table, _motion, take = carried(performance(), skeleton)
    _t, _m, stiff = carried(performance(), skeleton, change=without_twists)
    assert {row.target for row in table.rows if row.rule == "twist"} >= set(leaves)
    assert np.abs(take.global_positions - stiff.global_positions).max() < 1e-6
    for name, u in leaves.items():
        limb, upper = f"{name.partition('_')[0]}_l", name.startswith("upper")
        end = "lowerarm_l" if upper else "hand_l"
        whole = roll(stiff, limb, "clavicle_l", limb, end) if upper else roll(stiff, end, limb, limb, end)
        axis, share = line(skeleton, limb, end), u - 1.0 if upper else u
        assert max(map(abs, whole)) > 90.0
        for total, still, own in zip(whole, away(stiff, limb), away(take, name), strict=True):
            angle, swing = twist(still.inv() * own, axis)
            assert swing < 1e-4 and (angle - share * total + 180.0) % 360.0 - 180.0 == pytest.approx(0.0, abs=2e-3), name
    plain = split({"upperarm": (0.6,), "lowerarm": (0.5,)})
    _t, _m, linked = carried(performance(), plain)
    for name in plain.names:  # what the links do is not changed by those beside them
        assert max((a.inv() * b).magnitude() for a, b in zip(away(take, name), away(linked, name), strict=True)) < 1e-6, name


def test_shares_that_come_to_more_than_all_are_brought_down_to_all() -> None:
    skeleton = split({"lowerarm": (0.3, 0.8)})

    def edited(table: CorrectionTable) -> CorrectionTable:
        return table.with_row(replace(table.row("lowerarm_twist_01_l"), blend=0.8)).with_row(
            replace(table.row("lowerarm_twist_02_l"), blend=0.8)
        )

    _table, _motion, take = carried(performance(), skeleton, change=edited)
    whole, axis = roll(take, "hand_l", "lowerarm_l", "lowerarm_l", "hand_l"), line(skeleton, "lowerarm_l", "hand_l")
    for name, share in (("lowerarm_twist_01_l", 0.5), ("lowerarm_twist_02_l", 1.0)):
        for total, limb, own in zip(whole, away(take, "lowerarm_l"), away(take, name), strict=True):
            assert (twist(limb.inv() * own, axis)[0] - share * total + 180.0) % 360.0 - 180.0 == pytest.approx(0.0, abs=1e-4)


def test_a_pose_made_by_hand_corrects_the_hand_and_twist_bones_follow() -> None:
    skeleton, take = mannequin(), performance(9)
    table, _motion, _got = carried(take, skeleton)
    wanted = table.with_row(replace(table.row("hand_l"), correction=(35.0, 0.0, 0.0)))
    sample = take.block(4, 5)
    bodies = bodies_of(table, take.skeleton, skeleton)
    pose = retarget(sample, wanted, skeleton, RetargetOptions(bodies=bodies, sole=0.0)).to_take(skeleton).global_rotations[0]
    found = corrected_to_pose(table, skeleton, bodies, pose, sample=sample)
    assert found.row("hand_l").correction == pytest.approx((35.0, 0.0, 0.0), abs=1e-3)
    assert all(row.correction == (0.0, 0.0, 0.0) for row in found.rows if row.rule == "twist")
