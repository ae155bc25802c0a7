# SPDX-License-Identifier: GPL-3.0-or-later
"""Body sliders against SciPy: joint places and bone rotations of the adjusted motion, in character axes, on bodies with any bone axes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap_addon.motion.errors import RigError
from mocap_addon.motion.take import Take
from mocap_addon.retarget import Adjustments, RetargetOptions, build_table, retarget
from mocap_addon.retarget.relaxed import FLEXION

from .bodies import PLACES, a_pose, body, q, r, random_orientations, random_take, swung

PARENTS = {name: parent for name, (_, parent, _) in PLACES.items()}
WORLD = Rotation.from_euler("z", 70, degrees=True)


def still(skeleton, turns: dict[str, Rotation] | None = None, frames: int = 3) -> Take:
    """The T-pose held; ``turns`` are turns of single joints in character axes, what hangs below carried along."""
    local = np.broadcast_to(skeleton.rest_rotations, (frames, len(skeleton), 4)).copy()
    for name, turn in (turns or {}).items():
        j = skeleton.index(name)
        local[:, j] = q(turn * r(skeleton.rest_rotations[j])[0])
    translations = np.broadcast_to(skeleton.rest_translations, (frames, len(skeleton), 3)).copy()
    return Take("still", skeleton, np.arange(frames) / 30.0, local, translations)


def carried(take: Take, adjustments: Adjustments, *, seed: int = 4, arms: float = 40.0, world: Rotation = WORLD, without=()):
    """The take on a body with an A-pose, any bone axes, turned in the world; and its places."""
    _, roles = body()
    target, target_roles = body(a_pose(arms), orientations=random_orientations(seed), world=world, without=without)
    axes = q(world)
    table = build_table(take.skeleton, roles, target, target_roles, target_axes=axes)
    out = retarget(take, table, target, RetargetOptions(target_axes=axes, adjustments=adjustments)).to_take(target)
    return target, out.global_positions, out


def places_of(target, places: np.ndarray, frame: int = 0) -> dict[str, np.ndarray]:
    return dict(zip(target.names, places[frame], strict=True))


def turned_by(before: Take, after: Take, joint: int) -> np.ndarray:
    """Rotation vectors, degrees: what the bone was turned by."""
    return np.degrees((r(after.global_rotations[:, joint]) * r(before.global_rotations[:, joint]).inv()).as_rotvec())


def turn_from_rest(out: Take, joint: int, world: Rotation = WORLD) -> Rotation:
    """What the bone is turned by away from a rest pose that stands upright and faces -Y."""
    return r(out.global_rotations[:, joint]) * (world.inv() * r(out.skeleton.rest_global_rotations[joint])[0]).inv()


def test_nothing_set_changes_nothing():
    source, _ = body()
    take = random_take(source)
    _, plain, _ = carried(take, Adjustments())
    _, again, _ = carried(take, Adjustments(arm_space=0.0))
    assert np.array_equal(plain, again)
    assert not Adjustments() and Adjustments(head_level=0.5)


@pytest.mark.parametrize("angle", [12.0, -20.0])
def test_arm_space_turns_the_whole_arms_about_the_front_back_axis(angle):
    source, _ = body()
    target, places, _ = carried(still(source), Adjustments(arm_space=angle))
    wanted = a_pose(-angle)  # T-pose arms raised by the angle
    for name, place in places_of(target, places).items():
        assert np.allclose(place, wanted[name], atol=1e-9), name


def test_arm_space_does_not_spin_arms_that_point_forwards_or_up():
    source, _ = body()
    forwards = {"leftUpperArm": Rotation.from_euler("z", -90, degrees=True), "rightUpperArm": Rotation.from_euler("z", 90, degrees=True)}
    up = {"leftUpperArm": Rotation.from_euler("y", -90, degrees=True), "rightUpperArm": Rotation.from_euler("y", 90, degrees=True)}
    for turns in (forwards, up):
        take = still(source, turns)
        target, _, before = carried(take, Adjustments())
        _, _, after = carried(take, Adjustments(arm_space=30.0))
        for name in ("leftUpperArm", "rightHand"):
            assert np.abs(turned_by(before, after, target.index(name))).max() < 1e-6


def test_arm_space_goes_with_the_chest():
    source, _ = body()
    bent = Rotation.from_euler("zx", [50, 25], degrees=True)
    take = still(source, {"spine3": bent, "leftUpperArm": Rotation.from_euler("y", 60, degrees=True)})
    target, _, before = carried(take, Adjustments())
    _, _, after = carried(take, Adjustments(arm_space=15.0))
    axis = bent.apply([0.0, -1.0, 0.0])
    assert np.allclose(turned_by(before, after, target.index("leftHand")), 15.0 * axis, atol=1e-6)
    assert np.allclose(turned_by(before, after, target.index("neck")), 0.0, atol=1e-6)


def test_leg_spread_moves_the_feet_apart_and_keeps_the_soles():
    source, _ = body()
    take = random_take(source)
    target, _, before = carried(take, Adjustments())
    _, places, after = carried(still(source), Adjustments(leg_spread=8.0))
    wanted = a_pose(0.0)
    for side, sign in (("left", -1.0), ("right", 1.0)):
        turn = Rotation.from_euler("y", sign * 8.0, degrees=True)
        legs = swung(wanted, PARENTS, f"{side}UpperLeg", turn)
        wanted |= {name: legs[name] for name in (f"{side}LowerLeg", f"{side}Foot")}
        assert np.allclose(places_of(target, places)[f"{side}Foot"], legs[f"{side}Foot"], atol=1e-9)
    _, _, after = carried(take, Adjustments(leg_spread=8.0))
    for name in ("leftFoot", "rightToes"):
        assert np.abs(turned_by(before, after, target.index(name))).max() < 1e-6
    axes = turn_from_rest(after, 0).apply([0.0, -8.0, 0.0])
    assert np.allclose(turned_by(before, after, target.index("leftUpperLeg")), axes, atol=1e-6)


def test_foot_yaw_turns_the_toes_out():
    source, _ = body()
    target, places, _ = carried(still(source), Adjustments(foot_yaw=10.0))
    found = places_of(target, places)
    for side, sign in (("left", 1.0), ("right", -1.0)):
        foot = found[f"{side}Toes"] - found[f"{side}Foot"]
        rest = np.array(PLACES[f"{side}Toes"][2]) - np.array(PLACES[f"{side}Foot"][2])
        assert np.allclose(foot, Rotation.from_euler("z", sign * 10.0, degrees=True).apply(rest), atol=1e-9)
        assert sign * foot[0] > 0.0


@pytest.mark.parametrize("world", [WORLD, Rotation.from_euler("xyz", [90, 0, 30], degrees=True)])
def test_hip_height_raises_the_whole_body(world):
    source, _ = body()
    take = random_take(source)
    _, before, _ = carried(take, Adjustments(), world=world)
    _, after, _ = carried(take, Adjustments(hip_height=-0.07), world=world)
    assert np.allclose(after - before, [0.0, 0.0, -0.07], atol=1e-9)


@pytest.mark.parametrize("raised", [20.0, 60.0, 85.0])
def test_shoulder_share_lifts_the_clavicle_and_leaves_the_arm(raised):
    source, _ = body()
    take = still(source, {"leftUpperArm": Rotation.from_euler("y", -raised, degrees=True)})
    target, _, before = carried(take, Adjustments())
    _, _, after = carried(take, Adjustments(shoulder_share=0.3))
    assert np.allclose(turned_by(before, after, target.index("leftShoulder")), [0.0, -0.3 * raised, 0.0], atol=1e-6)
    for name in ("leftUpperArm", "leftHand", "rightShoulder", "rightUpperArm"):
        assert np.abs(turned_by(before, after, target.index(name))).max() < 1e-6


def test_shoulder_share_leaves_hanging_arms_alone():
    source, _ = body()
    take = still(source, {"leftUpperArm": Rotation.from_euler("y", 75, degrees=True)})
    _, before, _ = carried(take, Adjustments())
    _, after, _ = carried(take, Adjustments(shoulder_share=1.0))
    assert np.allclose(before, after, atol=1e-9)


def test_head_level_keeps_the_head_upright():
    source, _ = body()
    take = random_take(source)
    target, before, plain = carried(take, Adjustments())
    head = target.index("head")

    def tilt(out: Take) -> np.ndarray:
        up = turn_from_rest(out, head).apply([0.0, 0.0, 1.0])
        return np.degrees(np.arctan2(np.linalg.norm(up[:, :2], axis=1), up[:, 2]))

    assert tilt(plain).max() > 20.0
    _, places, level = carried(take, Adjustments(head_level=1.0))
    assert tilt(level).max() < 1e-5
    _, _, half = carried(take, Adjustments(head_level=0.5))
    assert np.allclose(tilt(half), 0.5 * tilt(plain), atol=1e-5)
    assert np.array_equal(places[:, target.index("neck")], before[:, target.index("neck")])


def test_relaxed_fingers_curl_towards_the_palm_where_the_take_has_none():
    fingerless = tuple(n for n in PLACES if "Index" in n or "Little" in n)
    source, roles = body(without=fingerless)
    target, target_roles = body(a_pose(30.0), orientations=random_orientations(9))
    table = build_table(source, roles, target, target_roles)
    take = still(source)
    motion = retarget(take, table, target, RetargetOptions(adjustments=Adjustments(relaxed_fingers=1.0)))
    places = dict(zip(target.names, motion.to_take(target).global_positions[0], strict=True))
    assert {target.names[j] for j in motion.held} == set(fingerless)
    flat = dict(zip(target.names, retarget(take, table, target).to_take(target).global_positions[0], strict=True))
    for side in ("left", "right"):
        for finger in ("Index", "Little"):
            names = (f"{side}{finger}", f"{side}{finger}2", f"{side}{finger}3")
            for near, far, angle in ((names[0], names[1], FLEXION[finger][0]), (names[1], names[2], sum(FLEXION[finger][:2]))):
                before, after = flat[far] - flat[near], places[far] - places[near]
                turned = np.degrees(np.arccos(before @ after / np.linalg.norm(before) / np.linalg.norm(after)))
                # these hands hold their fingers out by a few degrees from wrist to knuckle: that is no curl
                assert turned == pytest.approx(angle, abs=1e-6), names
                assert np.allclose(before[2], 0.0, atol=1e-9) and after[2] < 0.0  # palms down: the curl goes down
    half = retarget(take, table, target, RetargetOptions(adjustments=Adjustments(relaxed_fingers=0.5)))
    first = motion.bones.index(target.index("leftIndex"))
    angles = [r(m.rotations[:1, first]).magnitude()[0] for m in (half, motion)]
    assert angles[0] == pytest.approx(angles[1] / 2, rel=1e-6)


def test_fingers_that_the_take_moves_are_not_relaxed():
    source, roles = body()
    target, target_roles = body(a_pose(30.0))
    table = build_table(source, roles, target, target_roles)
    take = random_take(source)
    plain, out = (retarget(take, table, target, RetargetOptions(adjustments=Adjustments(relaxed_fingers=s))) for s in (0.0, 1.0))
    assert plain.bones == out.bones and np.array_equal(plain.rotations, out.rotations)


def test_a_recording_with_thumbs_alone_leaves_the_others_relaxed():
    """CMU's recordings have one joint for the thumb and none for the other fingers; here the index finger plays that part."""
    little = tuple(n for n in PLACES if "Little" in n)
    source, roles = body(without=little)
    target, target_roles = body(a_pose(30.0))
    table = build_table(source, roles, target, target_roles)
    take = random_take(source)
    plain, out = (retarget(take, table, target, RetargetOptions(adjustments=Adjustments(relaxed_fingers=s))) for s in (0.0, 1.0))
    assert {target.names[j] for j in out.held} == set(little)
    moved = [out.bones.index(joint) for joint in plain.bones]
    assert np.array_equal(out.rotations[:, moved], plain.rotations)


def test_parents_that_are_not_inherited_from():
    """A foot that does not follow the leg's rotation still ends where its slider says."""
    source, roles = body()
    target, target_roles = body()
    inherits = np.ones(len(target), dtype=bool)
    inherits[target.index("leftFoot")] = False
    table = build_table(source, roles, target, target_roles)
    take = random_take(source, frames=5)
    options = RetargetOptions(inherits_rotation=inherits)
    foot = target.index("leftFoot")
    before, after = (
        retarget(take, table, target, replace(options, adjustments=a)) for a in (Adjustments(leg_spread=10.0), Adjustments(foot_yaw=10.0))
    )
    k = before.bones.index(foot)
    plain = retarget(take, table, target, options)
    # the foot's basis is counted from the leg's rest there: spreading the legs does not touch it
    assert np.allclose(np.abs(np.sum(before.rotations[:, k] * plain.rotations[:, k], axis=-1)), 1.0, atol=1e-12)
    assert np.degrees((r(plain.rotations[:, k]).inv() * r(after.rotations[:, k])).magnitude()) == pytest.approx([10.0] * 5)


@pytest.mark.parametrize("bad", [{"arm_space": float("nan")}, {"head_level": 1.5}, {"shoulder_share": -0.1}, {"foot_yaw": 400.0}])
def test_what_no_body_can_do_is_refused(bad):
    with pytest.raises(RigError, match="out of range; it must lie between"):
        Adjustments(**bad)
