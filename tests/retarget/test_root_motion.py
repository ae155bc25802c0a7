# SPDX-License-Identifier: GPL-3.0-or-later
"""Root motion: root times hips is the motion of before, in every combination. Truth: SciPy, and matrices multiplied out bone by bone."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter1d
from scipy.optimize import minimize_scalar
from scipy.spatial.transform import Rotation

from mocap_addon.motion.errors import MocapError, RigError
from mocap_addon.motion.skeleton import Skeleton
from mocap_addon.motion.take import Take
from mocap_addon.retarget import PoseMotion, RetargetOptions, build_table, retarget
from mocap_addon.retarget.root_motion import CHOICES, RootChain, RootMotion, extract, merge
from mocap_addon.retarget.root_path import headings_of, low_pass
from mocap_addon.rig.roles import RoleMap

from .bodies import a_pose, body, q, r, random_orientations, random_take

AXES = [letters for n in range(4) for letters in map("".join, itertools.combinations("xyz", n))]
METRES = 1e-10
DEGREES = 1e-6
FRAMES = 17


def about(axis: str, angles) -> Rotation:
    """Turns about one axis, radians."""
    return Rotation.from_rotvec(np.asarray(angles, dtype=float)[:, None] * np.eye(3)["xyz".index(axis)])


def rooted(skeleton: Skeleton, roles: RoleMap, *, seed: int = 3, between: bool = False) -> tuple[Skeleton, RoleMap]:
    """The body with a root bone at some place and turn above its hips, and perhaps another bone between."""
    names, frames = ["root"], [Rotation.random(random_state=seed)]
    places = [np.array([0.07, -0.04, 0.0])]
    if between:
        names.append("between")
        frames.append(Rotation.random(random_state=seed + 1))
        places.append(np.array([-0.2, 0.1, 0.6]))
    parents, rotations, translations = [], [], []
    for i in range(len(names)):
        parents.append(i - 1)
        above, origin = (frames[i - 1], places[i - 1]) if i else (Rotation.identity(), np.zeros(3))
        rotations.append(q(above.inv() * frames[i]))
        translations.append(above.inv().apply(places[i] - origin))
    local_r, local_t = skeleton.rest_rotations.copy(), skeleton.rest_translations.copy()
    for j in skeleton.roots:
        local_r[j] = q(frames[-1].inv() * r(local_r[j])[0])
        local_t[j] = frames[-1].inv().apply(local_t[j] - places[-1])
    n = len(names)
    moved = np.where(skeleton.parents < 0, n - 1, skeleton.parents + n)
    joined = Skeleton(
        (*names, *skeleton.names),
        np.concatenate([parents, moved]),
        np.concatenate([translations, local_t]),
        np.concatenate([np.array(rotations), local_r]),
    )
    joints = {role: tuple(j + n for j in js) for role, js in roles.joints.items()}
    return joined, RoleMap({**joints, "root": (0,)}, family="test")


def matrices(motion: PoseMotion, skeleton: Skeleton) -> np.ndarray:
    """(F, J, 4, 4): every bone in the world, multiplied out from what is stored."""
    count = len(motion.times)

    def affine(rotation: np.ndarray, place: np.ndarray) -> np.ndarray:
        out = np.zeros((count, 4, 4))
        out[:, 3, 3] = 1.0
        out[:, :3, :3] = np.broadcast_to(Rotation.from_quat(np.atleast_2d(rotation)[:, [1, 2, 3, 0]]).as_matrix(), (count, 3, 3))
        out[:, :3, 3] = place
        return out

    still = np.array([1.0, 0.0, 0.0, 0.0])
    whole = affine(still if motion.turning is None else motion.turning, np.zeros(3) if motion.placement is None else motion.placement)
    out = np.empty((count, len(skeleton), 4, 4))
    for j, parent in enumerate(skeleton.parents):
        rest = affine(skeleton.rest_rotations[j], skeleton.rest_translations[j])
        basis_r = motion.rotations[:, motion.bones.index(j)] if j in motion.bones else still
        basis_t = motion.locations[:, motion.moving.index(j)] if j in motion.moving else np.zeros(3)
        out[:, j] = (whole if parent < 0 else out[:, parent]) @ rest @ affine(basis_r, basis_t)
    return out


def turn_between(a: np.ndarray, b: np.ndarray) -> float:
    """Largest angle in degrees between rotation matrices."""
    product = np.einsum("...ji,...jk->...ik", a, b).reshape(-1, 3, 3)
    return float(np.degrees(np.linalg.norm(Rotation.from_matrix(product).as_rotvec(), axis=1).max()))


def same(a: np.ndarray, b: np.ndarray, joints: list[int]) -> None:
    assert np.abs(a[:, joints, :3, 3] - b[:, joints, :3, 3]).max() < METRES
    assert turn_between(a[:, joints, :3, :3], b[:, joints, :3, :3]) < DEGREES


def heading_by_search(turn: Rotation) -> float:
    """The heading from which a turn is smallest, found by trying."""

    def left(angle: float) -> float:
        return float((Rotation.from_euler("z", -angle) * turn).magnitude())

    start = min(np.linspace(-np.pi, np.pi, 73), key=left)
    return float(minimize_scalar(left, bounds=(start - 0.1, start + 0.1), method="bounded", options={"xatol": 1e-12}).x)


class Case:
    """A random take on a body with a root: the plain motion, and what is true of it."""

    def __init__(self, *, between: bool = False, seed: int = 1, frames: int = FRAMES) -> None:
        source, roles = body()
        take = random_take(source, frames=frames, seed=seed)
        sway = 0.1 * np.sin(np.outer(take.times, [15.0, 11.0, 9.0]) + np.arange(3.0))
        self.take = take.rerooted(lambda x: x, lambda v: v + sway, rest=False)
        self.roles = roles
        target, target_roles = rooted(*body(a_pose(40), orientations=random_orientations(seed)), between=between)
        self.target, self.target_roles = target, target_roles
        self.table = build_table(source, roles, target, target_roles)
        self.hips = target.index("hips")
        self.plain = self.run(RootMotion())
        self.world = matrices(self.plain, target)
        self.below = [j for j in range(len(target)) if target.is_below(j, self.hips)]
        self.chain = RootChain(target, self.hips, 0)

    def run(self, policy: RootMotion, **options) -> PoseMotion:
        return retarget(self.take, self.table, self.target, RetargetOptions(root=policy, root_joints=(None, 0), **options))

    def headings(self) -> np.ndarray:
        rest = r(self.target.rest_global_rotations[self.hips])[0]
        turns = Rotation.from_matrix(self.world[:, self.hips, :3, :3]) * rest.inv()
        return np.unwrap([heading_by_search(turn) for turn in turns])

    def carrier(self, axes: str, heading: bool) -> np.ndarray:
        """(F, 4, 4): the anchor (the hips at rest) goes where the hips are, along some axes; turned by the heading."""
        rest = self.target.rest_global_positions[self.hips]
        out = np.zeros((len(self.world), 4, 4))
        for f, angle in enumerate(self.headings() if heading else np.zeros(len(self.world))):
            place = np.array([self.world[f, self.hips, i, 3] if axis in axes else rest[i] for i, axis in enumerate("xyz")])
            out[f, :3, :3] = Rotation.from_euler("z", angle).as_matrix()
            out[f, :3, 3] = place - out[f, :3, :3] @ rest
            out[f, 3, 3] = 1.0
        return out

    def put_elsewhere(self, origin: str) -> np.ndarray:
        """(4, 4): where the first frame goes."""
        out = np.eye(4)
        if origin == "keep":
            return out
        first, rest = self.world[0, self.hips, :3, 3], self.target.rest_global_positions[self.hips]
        angle = -self.headings()[0] if origin == "first-heading" else 0.0
        out[:3, :3] = Rotation.from_euler("z", angle).as_matrix()
        out[:3, 3] = np.array([rest[0], rest[1], first[2]]) - out[:3, :3] @ first
        return out


@pytest.fixture(scope="module")
def case() -> Case:
    return Case()


# --- the invariant ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("between", [False, True])
@pytest.mark.parametrize("destination", ["hips", "bone", "object"])
def test_root_times_hips_is_the_motion_of_before(destination, between):
    case = Case(between=between)
    for axes, heading, origin, smoothing in itertools.product(AXES, ("root", "hips"), ("keep", "first", "first-heading"), (0.0, 0.5)):
        motion = case.run(RootMotion(destination=destination, axes=axes, heading=heading, origin=origin, smoothing=smoothing))
        expected = case.put_elsewhere(origin) @ case.world.reshape(-1, 4, 4)
        tolerant = origin == "first-heading"  # the search for the heading ends at 1e-8 rad
        a, b = matrices(motion, case.target), expected.reshape(case.world.shape)
        assert np.abs(a[:, case.below, :3, 3] - b[:, case.below, :3, 3]).max() < (1e-6 if tolerant else METRES)
        assert turn_between(a[:, case.below, :3, :3], b[:, case.below, :3, :3]) < (1e-5 if tolerant else DEGREES)
        keyed_above = set(motion.bones) | set(motion.moving)
        assert (0 in keyed_above) == (destination == "bone")
        assert (motion.placement is not None) == (destination == "object")


@pytest.mark.parametrize("heading", ["root", "hips"])
@pytest.mark.parametrize("axes", AXES)
def test_the_root_goes_where_the_formula_says(case, axes, heading):
    carrier = case.carrier(axes, heading == "root")
    motion = case.run(RootMotion(destination="bone", axes=axes, heading=heading))
    rest = np.eye(4)
    rest[:3, :3] = r(case.target.rest_global_rotations[0])[0].as_matrix()
    rest[:3, 3] = case.target.rest_global_positions[0]
    found = matrices(motion, case.target)[:, 0]
    assert np.abs(found - carrier @ rest).max() < 1e-6
    moved = case.run(RootMotion(destination="object", axes=axes, heading=heading))
    assert np.abs(moved.placement - carrier[:, :3, 3]).max() < 1e-6
    turns = np.eye(3) if moved.turning is None else r(moved.turning).as_matrix()
    assert np.abs(turns - carrier[:, :3, :3]).max() < 1e-6
    assert (moved.turning is None) == (heading == "hips")


@pytest.mark.parametrize("heading", ["root", "hips"])
@pytest.mark.parametrize("axes", ["x", "xy", "xyz", ""])
def test_in_place_is_the_motion_without_the_way(case, axes, heading):
    motion = case.run(RootMotion(destination="in-place", axes=axes, heading=heading))
    expected = np.linalg.inv(case.carrier(axes, heading == "root"))[:, None] @ case.world
    found = matrices(motion, case.target)
    assert np.abs(found[:, case.below] - expected[:, case.below]).max() < 1e-6
    assert motion.placement is None and 0 not in motion.bones and 0 not in motion.moving
    for axis in axes if heading == "hips" or "xy" in axes else "":
        i = "xyz".index(axis)
        assert np.ptp(found[:, case.hips, i, 3]) < 1e-9


def test_the_root_keeps_flat_and_the_hips_over_it(case):
    """With all of it in the root, the hips only sway up and down and lean: no heading, no step aside is left."""
    motion = case.run(RootMotion(destination="object"))
    hips = np.linalg.inv(matrices(motion, case.target)[:, 0]) @ matrices(motion, case.target)[:, case.hips]
    assert np.ptp(hips[:, :3, 3] @ r(case.target.rest_global_rotations[0])[0].as_matrix().T, axis=0)[:2].max() < 1e-9
    assert np.abs(motion.placement[:, 2]).max() == 0.0
    assert np.abs(motion.turning[:, 1:3]).max() == 0.0


def test_smoothing_leaves_the_sway_to_the_hips():
    case = Case(frames=120)
    rough = case.run(RootMotion(destination="object"))
    smooth = case.run(RootMotion(destination="object", smoothing=1.0))

    def roughness(v):
        return np.abs(np.diff(v, n=2, axis=0)).sum()

    assert roughness(smooth.placement) < 0.5 * roughness(rough.placement)
    assert np.abs(smooth.placement[[0, -1]] - rough.placement[[0, -1]]).max() < 1e-9


@pytest.mark.parametrize("destination", ["bone", "object"])
def test_merge_is_the_way_back(case, destination):
    motion = case.run(RootMotion(destination=destination, axes="xyz", smoothing=0.3))
    back = merge(motion, case.chain)
    assert back.bones == case.plain.bones and back.moving == case.plain.moving
    assert np.abs(back.locations - case.plain.locations).max() < METRES
    assert np.abs(np.abs(np.einsum("fki,fki->fk", back.rotations, case.plain.rotations)) - 1.0).max() < 1e-12
    assert back.placement is None and back.turning is None


def test_from_one_carrier_to_another(case):
    """Extracting anew first takes off what carries now: object to bone is the same as hips to bone."""
    direct = case.run(RootMotion(destination="bone"))
    by_object = extract(case.run(RootMotion(destination="object", axes="x")), case.chain, RootMotion(destination="bone"))
    assert by_object.bones == direct.bones and by_object.placement is None
    assert np.abs(by_object.locations - direct.locations).max() < METRES
    handed_on = extract(case.run(RootMotion(destination="object")), case.chain, RootMotion(source="object", destination="bone", axes="xyz"))
    same(matrices(handed_on, case.target), case.world, case.below)
    assert np.abs(matrices(handed_on, case.target)[:, 0] - matrices(direct, case.target)[:, 0]).max() < METRES


def test_other_bones_with_keys_stay_where_they_were_and_those_without_ride_along(case):
    """A bone on the root with location keys of its own (an IK target) is compensated."""
    target = case.target
    extra = Skeleton(
        (*target.names, "ik"),
        np.append(target.parents, 0),
        np.vstack([target.rest_translations, [0.3, 0.2, 0.1]]),
        np.vstack([target.rest_rotations, q(Rotation.random(random_state=9))]),
    )
    rng = np.random.default_rng(2)
    keys = rng.normal(size=(FRAMES, 1, 3))
    turns = q(Rotation.random(FRAMES, random_state=4)).reshape(FRAMES, 1, 4)
    motion = replace(
        case.plain,
        bones=(*case.plain.bones, len(target)),
        rotations=np.concatenate([case.plain.rotations, turns], axis=1),
        moving=(*case.plain.moving, len(target)),
        locations=np.concatenate([case.plain.locations, keys], axis=1),
    )
    before = matrices(motion, extra)
    chain = RootChain(extra, case.hips, 0)
    for destination in ("bone", "object"):
        after = matrices(extract(motion, chain, RootMotion(destination=destination, smoothing=0.2)), extra)
        same(after, before, [*case.below, len(target)])
    without = replace(
        motion, bones=case.plain.bones, rotations=case.plain.rotations, moving=case.plain.moving, locations=case.plain.locations
    )
    rides = matrices(extract(without, chain, RootMotion(destination="object")), extra)
    assert np.linalg.norm(np.ptp(rides[:, len(target), :3, 3], axis=0)) > 1.0


def test_bones_that_do_not_inherit_rotation(case):
    """Hips that turn in the object's axes whatever the root does: their key is computed for that."""
    inherits = np.ones(len(case.target), dtype=bool)
    inherits[case.hips] = False
    motion = case.run(RootMotion(destination="bone"), inherits_rotation=inherits)
    plain = case.run(RootMotion(), inherits_rotation=inherits)
    k, m = motion.bones.index(case.hips), plain.bones.index(case.hips)
    parent = r(case.target.rest_global_rotations[case.target.parents[case.hips]])[0]
    rest = r(case.target.rest_rotations[case.hips])[0]
    stored = parent * rest * r(motion.rotations[:, k])
    assert turn_between(stored.as_matrix(), case.world[:, case.hips, :3, :3]) < DEGREES
    assert np.abs(np.abs(np.einsum("fi,fi->f", motion.rotations[:, k], plain.rotations[:, m])) - 1.0).max() < 1e-12


# --- headings and smoothing ------------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_a_heading_is_the_one_that_leaves_the_smallest_turn(seed):
    rng = np.random.default_rng(seed)
    lean = Rotation.from_rotvec([*rng.normal(size=2), 0.0] / np.float64(1.0))
    lean = Rotation.from_rotvec(lean.as_rotvec() * min(1.0, 1.9 / max(lean.magnitude(), 1e-9)))
    turn = Rotation.from_euler("z", rng.uniform(-np.pi, np.pi)) * lean
    found = float(headings_of(q(turn)[None], np.zeros(1))[0])
    assert abs((found - heading_by_search(turn) + np.pi) % (2 * np.pi) - np.pi) < 1e-5


def test_leaning_in_every_direction_does_not_change_the_heading():
    """Literal: 30 degrees to the left, and 100 degrees of lean going all round."""
    around = np.linspace(0.0, 2 * np.pi, 60)
    lean = Rotation.from_rotvec(np.radians(100.0) * np.column_stack([np.cos(around), np.sin(around), np.zeros(60)]))
    turns = q(Rotation.from_euler("z", 30.0, degrees=True) * lean)
    assert np.abs(np.degrees(headings_of(turns, np.arange(60.0))) - 30.0).max() < 1e-9


@pytest.mark.parametrize("turns", [2, -3])
def test_whole_turns_are_counted(turns):
    angles = np.linspace(0.3, 0.3 + turns * 2 * np.pi, 80)
    signs = np.where(np.random.default_rng(1).random(80) < 0.5, -1.0, 1.0)  # q and -q are one rotation
    found = headings_of(q(about("z", angles)) * signs[:, None], np.arange(80.0))
    assert np.abs(found - angles).max() < 1e-9


@pytest.mark.parametrize("aside", [0.0, 1e-6, 3.0, 15.0])
def test_a_somersault_is_no_spin(aside):
    """Over the head about an axis that is a little off the horizontal: the twist runs through 360 degrees, the heading stays near 0."""
    angle = np.linspace(0.0, 2 * np.pi, 200)
    axis = np.array([np.cos(np.radians(aside)), 0.0, np.sin(np.radians(aside))])
    found = np.degrees(headings_of(q(Rotation.from_rotvec(angle[:, None] * axis)), np.linspace(0.0, 1.0, 200)))
    assert np.abs(np.diff(found)).max() < 3.0
    assert np.abs(found).max() < 1.0 + 4.0 * aside
    assert abs(found[-1]) < 1e-6


def test_upside_down_all_the_time_is_still_a_number():
    turns = q(Rotation.from_euler("x", 180.0, degrees=True) * about("z", np.linspace(0, 1, 9)))
    assert np.isfinite(headings_of(turns, np.arange(9.0))).all()


def test_smoothing_is_a_gaussian_without_delay():
    rng = np.random.default_rng(0)
    times = np.arange(300) / 60.0
    values = np.cumsum(rng.normal(size=(300, 2)), axis=0)
    sigma = 0.7 * np.sqrt(np.log(2) / 2) / np.pi * 60.0
    pad = 120
    before, after = 2 * values[0] - values[pad:0:-1], 2 * values[-1] - values[-2 : -pad - 2 : -1]
    expected = gaussian_filter1d(np.concatenate([before, values, after]), sigma, axis=0, truncate=6.0)[pad:-pad]
    assert np.abs(low_pass(values, times, 0.7) - expected).max() < 2e-4 * np.ptp(values)
    assert np.abs(low_pass(values, times, 0.7)[[0, -1]] - values[[0, -1]]).max() < 1e-9


@pytest.mark.parametrize("rate", [30.0, 1000.0])
def test_a_wave_of_the_given_seconds_is_halved_and_a_slow_one_kept(rate):
    times = np.arange(int(12 * rate)) / rate
    middle = slice(len(times) // 3, 2 * len(times) // 3)
    for period, share in ((0.5, 0.5), (2.0, 2.0 ** -((0.5 / 2.0) ** 2)), (0.125, 2.0**-16)):
        wave = np.sin(2 * np.pi * times / period)[:, None]
        assert np.abs(low_pass(wave, times, 0.5) - share * wave)[middle].max() < 2e-3


def test_a_straight_line_stays_one_at_uneven_times():
    times = np.sort(np.random.default_rng(3).uniform(0.0, 4.0, 200))
    line = np.column_stack([3.0 * times - 1.0, -times])
    assert np.abs(low_pass(line, times, 1.0) - line).max() < 1e-3
    assert np.abs(low_pass(line[:3], times[:3], 50.0) - line[:3]).max() < 1e-6


# --- heights, sources, first frames ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0.6, 1.7])
def test_heights_as_recorded_are_not_scaled(size):
    source, roles = body()
    take = random_take(source, frames=12)
    target, target_roles = rooted(*body(scale=size))
    table = build_table(source, roles, target, target_roles)

    def middle(height):
        """The middle of the hip joints, which is what is carried over."""
        motion = retarget(take, table, target, RetargetOptions(root=RootMotion(height=height)))
        world = matrices(motion, target)[..., :3, 3]
        return 0.5 * (world[:, target.index("leftUpperLeg")] + world[:, target.index("rightUpperLeg")])

    recorded = 0.5 * (take.global_positions[:, source.index("leftUpperLeg")] + take.global_positions[:, source.index("rightUpperLeg")])
    assert np.abs(middle("scaled") - size * recorded).max() < 1e-9
    kept = middle("keep")
    assert np.abs(kept[:, :2] - size * recorded[:, :2]).max() < 1e-9
    assert np.abs(kept[:, 2] - (recorded[:, 2] - 0.95 + 0.95 * size)).max() < 1e-9


@pytest.mark.parametrize("error", [-0.31, 0.0, 0.12])
def test_on_the_ground_standing_feet_are_at_zero(error):
    """A walk recorded too high or too low, with a jump: steps stand at their rest height after, the jump is as high as it was."""
    source, roles = body()
    count = 60
    local = np.broadcast_to(source.rest_rotations, (count, len(source), 4)).copy()
    knee = np.radians(60.0) * np.clip(np.sin(np.linspace(0, 6 * np.pi, count)), 0.0, None)
    for side, phase in (("left", 0), ("right", 10)):
        bent = np.roll(knee, phase)
        local[:, source.index(f"{side}UpperLeg")] = q(about("x", -bent))
        local[:, source.index(f"{side}LowerLeg")] = q(about("x", bent))
    translations = np.broadcast_to(source.rest_translations, (count, len(source), 3)).copy()
    jump = np.zeros(count)
    jump[40:50] = 0.4 * np.sin(np.linspace(0, np.pi, 10))
    translations[:, source.index("hips"), 2] += error + jump
    take = Take("t", source, np.arange(count) / 30.0, local, translations)
    target, target_roles = rooted(*body(scale=0.8))
    table = build_table(source, roles, target, target_roles)
    motion = retarget(take, table, target, RetargetOptions(root=RootMotion(height="ground"), sole=0.0))
    feet = matrices(motion, target)[:, [target.index("leftFoot"), target.index("rightFoot")], 2, 3].min(axis=1)
    rest = target.rest_global_positions[target.index("leftFoot"), 2]
    assert abs(np.median(feet[:40]) - rest) < 2e-3
    assert feet.max() - rest == pytest.approx(0.8 * 0.4 * np.sin(np.pi * 4 / 9), abs=3e-3)


def test_the_takes_own_root_shows_the_way():
    """The source's root walks 3 m straight on and turns; its hips circle round it, which stays in the hips."""
    bare, bare_roles = body()
    source, roles = rooted(bare, bare_roles, seed=11)
    count = 30
    local = np.broadcast_to(source.rest_rotations, (count, len(source), 4)).copy()
    translations = np.broadcast_to(source.rest_translations, (count, len(source), 3)).copy()
    root_rest = r(source.rest_global_rotations[0])[0]
    angle = np.linspace(0.0, 2.0, count)
    local[:, 0] = q(about("z", angle) * root_rest)
    way = np.column_stack([np.zeros(count), np.linspace(0.0, -3.0, count), np.zeros(count)])
    translations[:, 0] += way
    circle = 0.1 * np.column_stack([np.cos(3 * angle), np.sin(3 * angle), np.zeros(count)])
    translations[:, source.index("hips")] += root_rest.inv().apply(circle)
    take = Take("t", source, np.arange(count) / 30.0, local, translations)
    target, target_roles = rooted(*body(scale=0.5))
    table = build_table(source, roles, target, target_roles)
    plain = retarget(take, table, target)
    for destination in ("object", "bone"):
        motion = retarget(take, table, target, RetargetOptions(root=RootMotion(source="root", destination=destination), root_joints=(0, 0)))
        found = matrices(motion, target)
        same(found, matrices(plain, target), [j for j in range(len(target)) if target.is_below(j, target.index("hips"))])
        carried = found[:, 0, :3, 3] - found[0, 0, :3, 3]
        # the source's root is the pivot: it lies at (0.07, -0.04) from the body's middle, the target's at the same
        pivot = np.array([0.07, -0.04, 0.0]) * 0.5 - target.rest_global_positions[0]
        spin = about("z", angle).apply(-pivot) + pivot
        assert np.abs(carried - (0.5 * way + spin)).max() < 1e-9
    with pytest.raises(RigError, match="no joint above its hips"):
        single = random_take(bare, frames=4)
        retarget(single, build_table(bare, bare_roles, target, target_roles), target, RetargetOptions(root=RootMotion("root", "object")))


def test_first_frame_rules(case):
    rest = case.target.rest_global_positions[case.hips]
    at = {o: matrices(case.run(RootMotion(origin=o)), case.target)[:, case.hips] for o in ("keep", "first", "first-heading")}
    assert np.abs(at["keep"] - case.world[:, case.hips]).max() == 0.0
    assert np.abs(at["first"][0, :2, 3] - rest[:2]).max() < METRES
    assert at["first"][0, 2, 3] == pytest.approx(case.world[0, case.hips, 2, 3], abs=METRES)
    assert np.abs(at["first-heading"][0, :2, 3] - rest[:2]).max() < METRES
    turn = Rotation.from_matrix(at["first-heading"][0, :3, :3]) * r(case.target.rest_global_rotations[case.hips])[0].inv()
    assert abs(heading_by_search(turn)) < 1e-6
    for destination in ("bone", "object"):  # the carrier itself starts at rest
        found = matrices(case.run(RootMotion(destination=destination, origin="first-heading", smoothing=0.4)), case.target)[0, 0]
        assert np.abs(found[:3, 3] - case.target.rest_global_positions[0]).max() < METRES


# --- what can go wrong -----------------------------------------------------------------------------------------------------------------


def test_no_root_bone_is_one_sentence():
    source, roles = body()
    take = random_take(source, frames=5)
    table = build_table(source, roles, source, roles)
    with pytest.raises(RigError, match=r'^The character has no root bone above its hips "hips"; .*\.$'):
        retarget(take, table, source, RetargetOptions(root=RootMotion(destination="bone"), root_joints=(None, None)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"destination": "feet"},
        {"axes": "xw"},
        {"heading": "head"},
        {"height": "high"},
        {"origin": "last"},
        {"source": ""},
        {"smoothing": -1.0},
        {"smoothing": float("nan")},
    ],
)
def test_wrong_values_are_one_sentence(wrong):
    with pytest.raises(MocapError) as error:
        RootMotion(**wrong)
    assert str(error.value).endswith(".") and str(error.value).count(". ") == 0


def test_a_policy_goes_through_plain_data():
    policy = RootMotion("root", "bone", "zx", "hips", "ground", "first", 0.25)
    assert policy.axes == "xz"
    assert RootMotion.from_dict({**policy.as_dict(), "later": 1}) == policy
    assert RootMotion.from_dict(None) == RootMotion() and RootMotion().plain
    assert {name: getattr(RootMotion(), name) in [c[0] for c in choices] for name, choices in CHOICES.items()} == dict.fromkeys(
        CHOICES, True
    )


@pytest.mark.parametrize("destination", ["bone", "object", "in-place"])
def test_one_and_two_frames(destination):
    for frames in (1, 2):
        case = Case(frames=frames)
        motion = case.run(RootMotion(destination=destination, smoothing=1.0, origin="first-heading"))
        assert len(motion.times) == frames and np.isfinite(motion.rotations).all() and np.isfinite(motion.locations).all()


def test_the_plain_path_is_left_alone(case):
    again = retarget(case.take, case.table, case.target)
    assert np.array_equal(again.rotations, case.plain.rotations) and np.array_equal(again.locations, case.plain.locations)
    assert again.placement is None and again.turning is None


def test_a_take_of_the_result_holds_the_objects_motion(case):
    motion = case.run(RootMotion(destination="object"))
    take = motion.to_take(case.target)
    same(
        np.concatenate([r(take.global_rotations).as_matrix().reshape(FRAMES, -1, 3, 3), take.global_positions[..., None]], axis=-1),
        case.world[..., :3, :],
        case.below,
    )


# --- hips that cannot be moved: a carrier above them takes what the root does not -------------------------------------------------------


@pytest.mark.parametrize("carrier", [-1, 0, 1])
@pytest.mark.parametrize("destination", ["hips", "bone", "object"])
def test_hips_that_cannot_move_still_are_where_they_were(carrier, destination):
    case = Case(between=True)
    plain = case.run(RootMotion(), carrier=carrier)
    assert case.hips not in plain.moving
    for axes, smoothing in itertools.product(("", "xy", "xyz"), (0.0, 0.4)):
        motion = case.run(RootMotion(destination=destination, axes=axes, smoothing=smoothing, origin="first"), carrier=carrier)
        assert case.hips not in motion.moving
        same(matrices(motion, case.target), case.put_elsewhere("first") @ case.world, case.below)


# --- complaints of others' users, by number ---------------------------------------------------------------------------------------------


def test_complaint_09_travel_in_the_root_and_bob_in_the_hips():
    """The way goes to the root along x, the bob stays with the hips along z: neither is lost."""
    source, roles = body()
    count = 40
    local = np.broadcast_to(source.rest_rotations, (count, len(source), 4)).copy()
    translations = np.broadcast_to(source.rest_translations, (count, len(source), 3)).copy()
    way, bob = np.linspace(0.0, 4.0, count), 0.05 * np.sin(np.linspace(0.0, 20.0, count))
    translations[:, source.index("hips")] += np.column_stack([way, np.zeros(count), bob])
    take = Take("t", source, np.arange(count) / 30.0, local, translations)
    target, target_roles = rooted(source, roles)
    table = build_table(source, roles, target, target_roles)
    motion = retarget(take, table, target, RetargetOptions(root=RootMotion(destination="bone", axes="x"), root_joints=(None, 0)))
    found = matrices(motion, target)
    assert np.abs(found[:, 0, :3, 3] - target.rest_global_positions[0] - np.outer(way, [1, 0, 0])).max() < METRES
    offset = found[:, target.index("hips"), :3, 3] - found[:, 0, :3, 3]
    assert np.abs(offset - offset[0] - np.outer(bob, [0, 0, 1])).max() < METRES


def test_complaint_10_all_travel_in_the_object():
    """Written to the object by choice, and from there back to the hips or on to a bone."""
    case = Case()
    on_object = case.run(RootMotion(destination="object", axes="xyz"))
    hips = on_object.locations[:, on_object.moving.index(case.hips)]
    assert np.abs(hips - hips[0]).max() < METRES
    same(matrices(merge(on_object, case.chain), case.target), case.world, case.below)


def test_complaint_11_a_root_above_the_hips_that_the_source_has_not():
    """No jump and no anchored hips: the root is left at rest, the travel is in the hips, the first frame is where it was recorded."""
    case = Case()
    assert 0 not in case.plain.bones and 0 not in case.plain.moving
    assert np.linalg.norm(np.ptp(case.world[:, case.hips, :3, 3], axis=0)) > 1.0
    source = case.take.global_positions[0]
    middle = [case.take.skeleton.index(f"{side}UpperLeg") for side in ("left", "right")]
    there = [case.target.index(f"{side}UpperLeg") for side in ("left", "right")]
    assert np.abs(case.world[0, there, :3, 3].mean(axis=0) - source[middle].mean(axis=0)).max() < METRES


@pytest.mark.parametrize("destination", ["bone", "object", "in-place"])
def test_complaint_14_five_hundred_metres_away(destination):
    case = Case()
    far = case.take.rerooted(lambda x: x, lambda v: v + np.array([500.0, -300.0, 0.0]), rest=False)
    policy = RootMotion(destination=destination)
    near_motion = case.run(policy)
    far_motion = retarget(far, case.table, case.target, RetargetOptions(root=policy, root_joints=(None, 0)))
    assert near_motion.bones == far_motion.bones
    assert np.abs(near_motion.rotations - far_motion.rotations).max() < 1e-10
    hips = near_motion.moving.index(case.hips)
    assert np.abs(near_motion.locations[:, hips] - far_motion.locations[:, hips]).max() < 1e-9
