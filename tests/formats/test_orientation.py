# SPDX-License-Identifier: GPL-3.0-or-later
"""Up, facing and unit are found for bodies however they stand in a file: a real walk is turned, scaled and laid down."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap_addon import formats
from mocap_addon.formats import ReadOptions, landmarks, orientation
from mocap_addon.motion import quat
from tests.formats.bvh_text import read_text
from tests.paths import DATA

AXES = ("X", "-X", "Y", "-Y", "Z", "-Z")
WALK = (DATA / "takes" / "cmu_walk_60rows.bvh").read_text()


def rewritten(
    turn: Rotation, scale: float = 1.0, turn_rest: bool = True, turn_motion: bool = True, move=(0.0, 0.0, 0.0), rename=str
) -> str:
    """The walk seen from other axes: offsets, positions and, by a change of basis, rotations; only the root moves if not ``turn_rest``."""
    head, rows = WALK.split("Frame Time: 0.00833333\n")
    out: list[str] = []
    for line in head.splitlines():
        words = line.split()
        if words and words[0] == "OFFSET":
            vector = np.array([float(w) for w in words[1:]]) * scale
            words[1:] = [f"{v:.9f}" for v in (turn.apply(vector) if turn_rest else vector)]
        elif words and words[0] in ("ROOT", "JOINT"):
            words[1] = rename(words[1])
        out.append(" ".join(words))
    table = np.array([[float(w) for w in row.split()] for row in rows.splitlines()])
    place = table[:, :3] * scale
    table[:, :3] = (turn.apply(place) if turn_motion else place) + np.array(move)
    count, columns = table.shape
    angles = Rotation.from_euler("ZYX", table[:, 3:].reshape(-1, 3), degrees=True)
    if turn_rest:
        angles = turn * angles * turn.inv() if turn_motion else angles * turn.inv()
    turned = angles.as_euler("ZYX", degrees=True).reshape(count, columns - 3)
    if not turn_rest:
        root = turn * Rotation.from_euler("ZYX", table[:, 3:6], degrees=True)
        turned[:, :3] = root.as_euler("ZYX", degrees=True)
    table[:, 3:] = turned
    return "\n".join(out) + "\nFrame Time: 0.00833333\n" + "\n".join(" ".join(f"{v:.7f}" for v in row) for row in table) + "\n"


def onto(axis: str) -> Rotation:
    """A rotation that turns +Y onto ``axis``, with some heading of its own."""
    target = orientation.axis_vector(axis)
    return Rotation.from_quat(quat.between(np.array([0.0, 1, 0]), target)[[1, 2, 3, 0]])


@pytest.fixture(scope="module")
def walk():
    return formats.read(DATA / "takes" / "cmu_walk_60rows.bvh")[0]


@pytest.mark.parametrize("up", AXES)
def test_up_of_the_whole_file(tmp_path, walk, up):
    (take,) = read_text(tmp_path, rewritten(onto(up)))
    assert (take.facts["up"], take.facts["rest_up"], take.facts["rest"]) == (up, up, "t")
    np.testing.assert_allclose(take.global_positions[:, :, 2], walk.global_positions[:, :, 2], atol=1e-5)


@pytest.mark.parametrize("up", ["X", "Z", "-Z"])
def test_up_of_the_motion_alone(tmp_path, walk, up):
    """The rest pose stays Y up; the root's rotation stands the body up along another axis."""
    (take,) = read_text(tmp_path, rewritten(onto(up), turn_rest=False))
    assert (take.facts["up"], take.facts["rest_up"]) == (up, "Y")
    np.testing.assert_allclose(take.global_positions[:, :, 2], walk.global_positions[:, :, 2], atol=1e-5)
    np.testing.assert_allclose(take.skeleton.rest_global_positions, walk.skeleton.rest_global_positions, atol=1e-9)


@pytest.mark.filterwarnings("ignore:Gimbal lock")  # SciPy's word for an angle it may choose
@pytest.mark.parametrize("heading", [0, 45, 90, 180, 270])
def test_lying_on_the_floor_is_no_other_up(tmp_path, heading):
    """A sleeper on a floor that is y = 0, away from the origin: floor and rest pose outvote the body."""
    head, rows = WALK.split("Frame Time: 0.00833333\n")
    table = np.array([[float(w) for w in row.split()] for row in rows.splitlines()])
    table[:, 6:] *= 0.1  # hardly moves
    table[:, :3] = (40.0, 2.0, 70.0)
    lay = Rotation.from_euler("Y", heading, degrees=True) * Rotation.from_euler("X", -90, degrees=True)
    table[:, 3:6] = lay.as_euler("ZYX", degrees=True)
    text = head + "Frame Time: 0.00833333\n" + "\n".join(" ".join(f"{v:.7f}" for v in row) for row in table)
    (take,) = read_text(tmp_path, text)
    assert take.facts["up"] == "Y"
    assert np.ptp(take.global_positions[:, :, 2], axis=1).max() < 0.6


def test_an_override_is_obeyed(tmp_path):
    lay = Rotation.from_euler("X", -90, degrees=True)
    (take,) = read_text(tmp_path, rewritten(lay, turn_rest=False), ReadOptions(up="Y"))
    assert (take.facts["up"], take.facts["rest_up"]) == ("Y", "Y")
    body = take.global_positions[:, take.skeleton.index("head")] - take.global_positions[:, take.skeleton.index("lfoot")]
    assert np.abs(body[:, 2]).mean() < 0.3 * np.linalg.norm(body, axis=1).mean()


@pytest.mark.parametrize("degrees", [-170, -120, -60, -10, 0, 30, 80, 150])
def test_heading(tmp_path, walk, degrees):
    """Turned about the vertical to the left, the reported heading grows by as much."""
    (take,) = read_text(tmp_path, rewritten(Rotation.from_euler("Y", degrees, degrees=True), turn_rest=False))
    difference = take.facts["heading_deg"] - walk.facts["heading_deg"] - degrees
    assert (difference + 180) % 360 - 180 == pytest.approx(0.0, abs=0.2)


@pytest.mark.parametrize(
    ("unit", "name"),
    [(1.0, "m"), (0.01, "cm"), (0.001, "mm"), (0.0254, "inch"), (0.1, "dm"), (0.3048, "foot"), (0.0254 / 0.45, "1/0.45 inch")],
)
def test_units(tmp_path, walk, unit, name):
    (take,) = read_text(tmp_path, rewritten(Rotation.identity(), scale=0.0254 / 0.45 / unit))
    assert (take.facts["unit_name"], take.facts["unit"]) == (name, pytest.approx(unit))
    np.testing.assert_allclose(take.global_positions, walk.global_positions, atol=2e-5)


def test_a_unit_nobody_uses_is_scaled_to_a_person_and_said(tmp_path):
    (take,) = read_text(tmp_path, rewritten(Rotation.identity(), scale=0.0254 / 0.45 / 0.037))
    assert take.facts["unit_name"] == "odd"
    assert 0.03 < take.facts["unit"] < 0.045
    assert any("human size" in n for n in take.notes)


@pytest.mark.parametrize(
    "rename",
    [
        lambda n: {"lfoot": "LeftFoot", "rfoot": "RightFoot", "head": "Head"}.get(n, n),
        lambda n: "mixamorig:" + n,
        lambda n: n.upper(),
        lambda n: f"Bip01 {n[0].upper()} {n[1:]}" if n[0] in "lr" and n[1:] in ("foot", "femur", "humerus", "hand") else n,
        lambda n: n[1:] + ("_L" if n[0] == "l" else "_R") if n[0] in "lr" and n != "lowerback" else n,
        lambda n: n[1:] + (".l" if n[0] == "l" else ".r") if n[0] in "lr" and n != "lowerback" else n,
    ],
)
def test_namings(tmp_path, walk, rename):
    (take,) = read_text(tmp_path, rewritten(Rotation.identity(), rename=rename))
    for fact in ("up", "rest_up", "rest", "unit_name", "facing"):
        assert take.facts[fact] == walk.facts[fact], fact


def test_a_skeleton_that_says_nothing_is_said_to_be_guessed(tmp_path):
    names = iter(f"n{i}" for i in range(1000))
    (take,) = read_text(tmp_path, rewritten(Rotation.identity(), rename=lambda n: next(names)))
    assert sum("assumed" in n for n in take.notes) == 2


@pytest.mark.parametrize("axis", AXES)
def test_turns(axis):
    q = orientation.turn_to_z(axis)
    np.testing.assert_allclose(quat.rotate(q, orientation.axis_vector(axis)), [0, 0, 1], atol=1e-15)
    if axis == "Y":  # +90 degrees about X
        np.testing.assert_allclose(quat.rotate(q, np.array([0.0, 0, 1])), [0, -1, 0], atol=1e-15)


def test_pairs_in_any_spelling():
    names = (
        "Hips",
        "LeftLeg",
        "RightLeg",
        "l_arm",
        "r_arm",
        "lfemur",
        "rfemur",
        "Bip01 L Toe",
        "Bip01 R Toe",
        "x:LArm",
        "x:RArm",
        "leg.L",
        "leg.R",
        "lowerback",
    )
    found = landmarks.find(names, np.array([-1] + [0] * (len(names) - 1)))
    assert [(names[a], names[b]) for a, b in found.pairs] == [(names[i], names[i + 1]) for i in range(1, 13, 2)]
