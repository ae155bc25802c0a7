# SPDX-License-Identifier: GPL-3.0-or-later
"""The transfer against skeletons whose true motion is known: the same body drawn with other bone axes, poses, places and facings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mocap_addon.motion import quat
from mocap_addon.motion.errors import RigError
from mocap_addon.motion.take import Take
from mocap_addon.retarget import RetargetOptions, build_table, retarget
from mocap_addon.retarget.transfer import reference_pose

from .bodies import PLACES, a_pose, body, q, r, random_orientations, random_take, swung

EXACT = 1e-12


def carried(take: Take, roles, target, target_roles, **options) -> Take:
    axes = options.get("target_axes")
    table = build_table(take.skeleton, roles, target, target_roles, target_axes=axes)
    return retarget(take, table, target, RetargetOptions(**options)).to_take(target)


def test_onto_itself_is_the_identity():
    source, roles = body()
    take = random_take(source)
    out = carried(take, roles, source, roles)
    assert np.abs(out.global_positions - take.global_positions).max() < EXACT
    assert quat.angle(out.global_rotations, take.global_rotations).max() < 1e-7


@given(seed_s=st.integers(0, 10_000), seed_t=st.integers(0, 10_000), arms=st.floats(-60.0, 80.0))
@settings(max_examples=25, deadline=None)
def test_bone_axes_and_rest_arms_never_show(seed_s: int, seed_t: int, arms: float):
    source, source_roles = body(orientations=random_orientations(seed_s))
    target, target_roles = body(a_pose(arms), orientations=random_orientations(seed_t))
    take = random_take(source, frames=12, seed=seed_s)
    out = carried(take, source_roles, target, target_roles)
    assert np.abs(out.global_positions - take.global_positions).max() < EXACT


@pytest.mark.parametrize("angles", [(90, 0, 0), (0, 0, 37), (-90, 0, 90), (20, 40, 70), (180, 0, 0)])
def test_the_targets_object_rotation_never_shows(angles):
    source, roles = body()
    take = random_take(source)
    world = Rotation.from_euler("xyz", angles, degrees=True)
    target, target_roles = body(a_pose(40), orientations=random_orientations(3), world=world)
    out = carried(take, roles, target, target_roles, target_axes=q(world))
    assert np.abs(out.global_positions - take.global_positions).max() < EXACT


@pytest.mark.parametrize("heading", [0.0, 12.0, 90.0, 137.0, -170.0])
def test_the_facing_of_either_rest_never_shows(heading):
    source, roles = body()
    take = random_take(source)
    turn = Rotation.from_euler("z", heading, degrees=True)
    target, target_roles = body(a_pose(40), world=turn)
    assert np.abs(carried(take, roles, target, target_roles).global_positions - take.global_positions).max() < EXACT
    straight, straight_roles = body(a_pose(40))
    turned = take.turned(q(turn))
    out = carried(turned, roles, straight, straight_roles)
    assert np.abs(out.global_positions - take.global_positions).max() < EXACT


def test_a_slightly_unsymmetric_body_onto_itself_does_not_turn():
    places = {name: np.array(place) for name, (_, _, place) in PLACES.items()}
    places["leftUpperLeg"] = places["leftUpperLeg"] + [0.0, -0.012, 0.004]
    skeleton, roles = body(places)
    take = random_take(skeleton)
    assert np.abs(carried(take, roles, skeleton, roles).global_positions - take.global_positions).max() < EXACT


@given(scale=st.floats(0.3, 3.0))
@settings(max_examples=15, deadline=None)
def test_travel_scales_with_the_legs(scale: float):
    source, roles = body()
    target, target_roles = body(a_pose(45), scale=scale)
    take = random_take(source, frames=8)
    out = carried(take, roles, target, target_roles)
    assert np.abs(out.global_positions - scale * take.global_positions).max() < EXACT * 10


def test_travel_by_hand():
    source, roles = body()
    take = random_take(source)
    out = carried(take, roles, source, roles, travel=0.5)
    hip = source.index("hips")
    moved = np.diff(out.global_positions[:, hip], axis=0)
    half = 0.5 * np.diff(take.global_positions[:, hip], axis=0)
    # the hips turn about the middle of the hip joints, 5 cm below: that part does not scale
    assert np.abs(moved - half).max() < 0.05
    assert np.abs((out.global_positions - take.global_positions)[:, hip, 0]).max() > 0.5


def test_five_hundred_metres_away_the_rotations_are_the_same():
    source, roles = body()
    target, target_roles = body(a_pose(45), orientations=random_orientations(5))
    take = random_take(source)
    far = take.rerooted(lambda x: x, lambda v: v + np.array([500.0, 0.0, 0.0]), rest=False)
    table = build_table(source, roles, target, target_roles)
    near_motion, far_motion = retarget(take, table, target), retarget(far, table, target)
    assert np.abs(near_motion.rotations - far_motion.rotations).max() < 1e-12


def test_a_reference_frame_replaces_the_rest_pose():
    """A source whose zero pose is no body: all joints in a heap, the T-pose only in frame 0."""
    source, roles = body()
    take = random_take(source)
    collapsed = source.with_rest(q(Rotation.random(len(source), random_state=8)))
    local = take.local_rotations.copy()
    local[0] = source.rest_rotations
    translations = take.local_translations.copy()
    translations[0] = source.rest_translations
    take = Take("t", collapsed, take.times, local, translations)
    target, target_roles = body(a_pose(45), orientations=random_orientations(6))
    table = build_table(source, roles, target, target_roles)
    out = retarget(take, table, target, RetargetOptions(reference=reference_pose(take, 0))).to_take(target)
    assert np.abs(out.global_positions - take.global_positions).max() < 1e-9


def test_neighbouring_keys_never_flip_sign():
    source, roles = body()
    frames = 200
    turn = np.linspace(0.0, np.radians(720.0), frames)
    local = np.broadcast_to(source.rest_rotations, (frames, len(source), 4)).copy()
    local[:, source.index("leftLowerArm")] = q(Rotation.from_rotvec(turn[:, None] * [1.0, 0.0, 0.0]))
    local[:, source.index("hips")] = q(Rotation.from_rotvec(turn[:, None] * [0.0, 0.0, 1.0]))
    local *= np.random.default_rng(0).choice([-1.0, 1.0], (frames, len(source), 1))
    take = Take("spin", source, np.arange(frames) / 30.0, local, np.broadcast_to(source.rest_translations, (frames, len(source), 3)).copy())
    motion = retarget(take, build_table(source, roles, source, roles), source)
    assert np.einsum("fkc,fkc->fk", motion.rotations[1:], motion.rotations[:-1]).min() > 0.9
    assert quat.angle(motion.to_take(source).global_rotations, take.global_rotations).max() < 1e-7


def test_blocks_do_not_show(monkeypatch):
    from mocap_addon.retarget import transfer

    source, roles = body()
    target, target_roles = body(a_pose(45), without=("spine2",))
    take = random_take(source, frames=50)
    table = build_table(source, roles, target, target_roles)
    whole = retarget(take, table, target)
    monkeypatch.setattr(transfer, "BLOCK", 7)
    parts = retarget(take, table, target)
    assert np.abs(whole.rotations - parts.rotations).max() < 1e-14
    assert np.abs(whole.locations - parts.locations).max() < 1e-14


def test_correction_turns_one_bone_in_character_axes():
    from dataclasses import replace

    source, roles = body()
    target, target_roles = body(a_pose(45), orientations=random_orientations(2))
    take = random_take(source)
    table = build_table(source, roles, target, target_roles)
    row = replace(table.row("head"), correction=(20.0, 0.0, 0.0))  # about the left axis: nod
    plain = retarget(take, table, target).to_take(target).global_rotations
    nodding = retarget(take, table.with_row(row), target).to_take(target).global_rotations
    head = target.index("head")
    others = [j for j in range(len(target)) if j != head]
    assert quat.angle(plain[:, others], nodding[:, others]).max() < 1e-7
    # seen from the head itself the nod is the same in every frame: delta = D N D^-1 with D the source's turn
    d = r(take.global_rotations[:, source.index("head")])
    expected = d * Rotation.from_euler("x", 20, degrees=True) * d.inv() * r(plain[:, head])
    assert quat.angle(q(expected), nodding[:, head]).max() < 1e-7


def test_a_roll_of_the_forearm_is_passed_to_hand_and_fingers():
    from dataclasses import replace

    source, roles = body()
    target, target_roles = body(a_pose(45))
    take = random_take(source, frames=1, amount=0.0)
    table = build_table(source, roles, target, target_roles)
    rolled = table.with_row(replace(table.row("leftLowerArm"), correction=(30.0, 0.0, 0.0)))
    plain = retarget(take, table, target).to_take(target)
    out = retarget(take, rolled, target).to_take(target)
    for name in ("leftLowerArm", "leftHand", "leftIndex", "leftLittle3"):
        j = target.index(name)
        turn = r(out.global_rotations[0, j]) * r(plain.global_rotations[0, j]).inv()
        assert turn.as_rotvec(degrees=True)[0] == pytest.approx([30.0, 0.0, 0.0], abs=1e-6)
    assert quat.angle(out.global_rotations, plain.global_rotations)[:, target.index("leftUpperArm")].max() < 1e-7


def test_bones_without_inherited_rotation():
    source, roles = body()
    take = random_take(source)
    table = build_table(source, roles, source, roles)
    inherits = np.ones(len(source), dtype=bool)
    head = source.index("head")
    inherits[head] = False
    motion = retarget(take, table, source, RetargetOptions(inherits_rotation=inherits))
    k = motion.bones.index(head)
    # Blender then puts the parent's REST rotation in the place of its posed one
    parent = source.rest_global_rotations[source.parents[head]]
    seen = quat.mul(quat.mul(parent, source.rest_rotations[head]), motion.rotations[:, k])
    assert quat.angle(seen, take.global_rotations[:, head]).max() < 1e-7


def test_wrong_tables_are_refused_in_a_sentence():
    from dataclasses import replace

    source, roles = body()
    table = build_table(source, roles, source, roles)
    take = random_take(source)
    with pytest.raises(RigError, match='"Kopf" is not in the armature'):
        retarget(take, replace(table, rows=(replace(table.rows[0], target="Kopf"), *table.rows[1:])), source)
    with pytest.raises(RigError, match=r'"Kopf".*is not in the take'):
        retarget(take, table.with_row(replace(table.row("head"), source=("Kopf",))), source)
    with pytest.raises(RigError, match="two rows"):
        retarget(take, replace(table, rows=(*table.rows, table.rows[-1])), source)
    with pytest.raises(RigError, match="no sample 99"):
        reference_pose(take, 99)
    with pytest.raises(RigError, match="no frames"):
        retarget(take.block(0, 0), table, source)


@pytest.mark.parametrize("heading", [0.5, 2.0, 4.0])
def test_a_symmetric_source_facing_nearly_along_an_axis_is_still_turned_exactly(heading):
    source, roles = body()
    take = random_take(source)
    target, target_roles = body(a_pose(40))
    out = carried(take.turned(q(Rotation.from_euler("z", heading, degrees=True))), roles, target, target_roles)
    assert np.abs(out.global_positions - take.global_positions).max() < EXACT


def hanging(skeleton):
    """The same skeleton with its hips at the origin at rest, as most BVH files have it."""
    translations = skeleton.rest_translations.copy()
    translations[0] = 0.0
    return skeleton.with_rest(skeleton.rest_rotations, translations)


def test_the_sole_below_a_hanging_rest_is_found_in_the_motion():
    """Hips at the origin at rest, ankles and toes 2 cm above the ground in the motion: a character that stands on its origin stands on the
    ground."""
    source, roles = body()
    take = random_take(source, frames=30, amount=0.0)
    take = take.rerooted(lambda x: x, lambda v: v * [1.0, 1.0, 0.0] + [0.0, 0.0, 1.0], rest=False)  # standing: toes at 2 cm
    hung = Take("hung", hanging(source), take.times, take.local_rotations, take.local_translations)
    assert np.abs(carried(hung, roles, source, roles).global_positions - take.global_positions).max() < EXACT
    itself = carried(hung, roles, hung.skeleton, roles)
    assert np.abs(itself.global_positions - take.global_positions).max() < EXACT


@pytest.mark.parametrize("spread", [0.0, 20.0, 40.0])
def test_legs_spread_at_rest_do_not_lift_the_feet(spread):
    """A source that stands with spread legs at rest and with straight ones in its motion: the ankles stay 8 cm above the ground."""
    turns = {"left": Rotation.from_euler("y", -spread, degrees=True), "right": Rotation.from_euler("y", spread, degrees=True)}
    places, parents = {name: np.array(place) for name, (_, _, place) in PLACES.items()}, {name: p for name, (_, p, _) in PLACES.items()}
    for side, turn in turns.items():
        places = swung(places, parents, f"{side}UpperLeg", turn)
        places = swung(places, parents, f"{side}Foot", turn.inv())  # the sole stays flat
    drop = places["leftFoot"][2] - 0.08
    places = {name: place - [0.0, 0.0, drop] for name, place in places.items()}  # it stands on the ground
    source, roles = body(places)
    local = np.tile(source.rest_rotations, (2, 1, 1))
    for side, turn in turns.items():
        local[:, source.index(f"{side}UpperLeg")] = q(turn.inv())
        local[:, source.index(f"{side}Foot")] = q(turn)
    translations = np.tile(source.rest_translations, (2, 1, 1))
    translations[:, 0, 2] += drop
    take = Take("stand", source, np.array([0.0, 1.0]), local, translations)
    feet = [source.index("leftFoot"), source.index("rightFoot")]
    assert np.abs(take.global_positions[:, feet, 2] - 0.08).max() < EXACT  # the test's own premise
    target, target_roles = body(a_pose(40), scale=0.9)
    out = carried(take, roles, target, target_roles)
    assert np.abs(out.global_positions[:, feet, 2] - 0.9 * 0.08).max() < EXACT
