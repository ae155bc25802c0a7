# SPDX-License-Identifier: GPL-3.0-or-later
"""The correction table as a file."""

from __future__ import annotations

import math
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from mocap_addon import rig
from mocap_addon.motion.errors import FileError, MocapError
from mocap_addon.rig.roles import HELPER, ROLES
from mocap_addon.rig.table import CorrectionTable, Row

BY_HAND = """
# written by a person
version = 1

[[row]]
role = "hips"
target = "pelvis"
source = "Hips"
movable = true

[[row]]
role = "leftUpperArm"
target = "upperarm_l"
source = "LeftArm"
correction = [0, -12.5, 3]
"""


def equal(a: CorrectionTable, b: CorrectionTable) -> bool:
    """Equality with NaN equal to NaN."""

    def plain(table: CorrectionTable) -> CorrectionTable:
        rows = (
            replace(r, residual=r.residual if r.residual == r.residual else -1, hinge=r.hinge if r.hinge == r.hinge else -1)
            for r in table.rows
        )
        return replace(table, rows=tuple(rows))

    return plain(a) == plain(b)


def test_what_a_person_writes_is_enough() -> None:
    table = rig.loads(BY_HAND)
    hips, arm = table.rows
    assert (hips.role, hips.target, hips.source, hips.rule, hips.movable) == ("hips", "pelvis", ("Hips",), "copy", True)
    assert arm.correction == (0.0, -12.5, 3.0) and not arm.movable
    assert math.isnan(arm.residual) and math.isnan(arm.hinge) and arm.confidence == 1.0


def test_a_zero_correction_is_a_value() -> None:
    row = Row("hips", "pelvis", ("Hips",), correction=(0.0, 0.0, 0.0))
    text = rig.dumps(CorrectionTable((row,)))
    assert "correction = [0.0, 0.0, 0.0]" in text
    assert rig.loads(text).rows[0].correction == (0.0, 0.0, 0.0)


def test_the_file_is_laid_out_for_a_person(tmp_path: Path) -> None:
    rows = (
        Row("hips", "pelvis", ("Hips",), movable=True),
        Row("spine", "spine_01", ("Chest", "Chest2"), "blend", 0.25, (1.0, -2.5, 0.0), residual=0.5),
    )
    rig.save_table(CorrectionTable(rows, "Xsens MVN", "Unreal mannequin", notes=("one note",)), tmp_path / "t.toml")
    text = (tmp_path / "t.toml").read_text(encoding="utf-8")
    assert text.startswith("# Correction table")
    assert text.endswith(
        """
version = 1
source_family = "Xsens MVN"
target_family = "Unreal mannequin"
notes = ["one note"]

[[row]]
role = "hips"
target = "pelvis"
source = "Hips"
correction = [0.0, 0.0, 0.0]
movable = true
rule = "copy"
alignment = [0.0, 0.0, 0.0]
confidence = 1.0

[[row]]
role = "spine"
target = "spine_01"
source = ["Chest", "Chest2"]
correction = [1.0, -2.5, 0.0]
movable = false
rule = "blend"
blend = 0.25
alignment = [0.0, 0.0, 0.0]
residual = 0.5
confidence = 1.0
"""
    )
    assert "nan" not in text
    assert [p.name for p in tmp_path.iterdir()] == ["t.toml"]


NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
DEGREES = st.floats(-360.0, 360.0)
MEASURED = st.one_of(st.just(math.nan), st.floats(0.0, 180.0))


@st.composite
def rows(draw: st.DrawFn) -> Row:
    rule = draw(st.sampled_from(["copy", "blend", "chord"]))
    count = {"copy": 1, "blend": 2}.get(rule) or draw(st.integers(1, 5))
    return Row(
        draw(st.sampled_from([*ROLES, HELPER])),
        draw(NAMES),
        tuple(draw(NAMES) for _ in range(count)),
        rule,
        draw(st.floats(0.0, 1.0)),
        (draw(DEGREES), draw(DEGREES), draw(DEGREES)),
        draw(st.booleans()),
        (draw(DEGREES), draw(DEGREES), draw(DEGREES)),
        draw(MEASURED),
        draw(MEASURED),
        draw(st.floats(0.0, 1.0)),
    )


TABLES = st.builds(
    CorrectionTable,
    st.lists(rows(), max_size=5, unique_by=lambda r: r.target).map(tuple),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    st.lists(NAMES, max_size=4).map(tuple),
    st.lists(NAMES, max_size=4).map(tuple),
    st.lists(NAMES, max_size=3).map(tuple),
)


@settings(max_examples=150, deadline=None)
@given(TABLES)
def test_any_table_reads_back_equal(table: CorrectionTable) -> None:
    text = rig.dumps(table)
    assert equal(rig.loads(text), table)
    assert tomllib.loads(text)["version"] == 1


def test_line_ends_marks_and_places_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "t.toml"
    path.write_bytes(b"\xef\xbb\xbf" + BY_HAND.replace("\n", "\r\n").encode())
    assert equal(rig.load_table(path), rig.loads(BY_HAND))
    assert equal(rig.load_table(str(path)), rig.loads(BY_HAND))


def test_unknown_keys_are_kept_and_written_back() -> None:
    text = BY_HAND.replace("version = 1", 'version = 1\nstudio = "north"') + 'colour = "red"\n\n[sliders]\narm_space = 1.5\n'
    table = rig.loads(text)
    assert table.extra["studio"] == "north" and table.extra["sliders"] == {"arm_space": 1.5}
    again = tomllib.loads(rig.dumps(table))
    assert again["studio"] == "north" and again["sliders"] == {"arm_space": 1.5}
    assert again["row"][1]["colour"] == "red" and "colour" not in again["row"][0]
    moved = rig.loads(rig.dumps(table.with_row(replace(table.rows[1], correction=(9.0, 0.0, 0.0)))))
    assert tomllib.loads(rig.dumps(moved))["row"][1]["colour"] == "red"


def test_a_file_without_a_version_is_the_first_version() -> None:
    assert rig.loads(BY_HAND.replace("version = 1\n", "")).version == 1


WRONG = [
    ("version = 99", ["version 99", "update the add-on"]),
    ("version = 0", ["version must be 1 or more"]),
    ('version = "1"', ["version must be a whole number", "'1'"]),
    ("row = 3", ["row must be written as [[row]]"]),
    ("row = [3]", ["row must be written as [[row]]"]),
    ("notes = 3", ["notes must be a name or a list"]),
    ("source_family = 1", ["source_family must be a text"]),
    ("a =\nb = 1", ["no valid TOML", "line 1"]),
    ('[[row]]\nrole = "hips"\ntarget = "a"', ['row 1 ("a")', "source is missing"]),
    ('[[row]]\nrole = "hips"\nsource = "a"', ["row 1", "target is missing"]),
    ('[[row]]\nrole = "hips"\ntarget = ""\nsource = "a"', ["target must be a text"]),
    ('[[row]]\nrole = "Hips"\ntarget = "a"\nsource = "b"', ['"hips" was meant']),
    ('[[row]]\nrole = "elbow"\ntarget = "a"\nsource = "b"', ['"elbow" is no role']),
    ('[[row]]\nrole = "hips"\ntarget = "a"\nsource = []', ["source must be a name or a list of names"]),
    ('[[row]]\nrole = "hips"\ntarget = "a"\nsource = ["b", 1]', ["source must be a name or a list of names"]),
    ('[[row]]\nrole = "hips"\ntarget = "a"\nsource = "b"\nrule = "mirror"', ['must be "copy", "blend", "chord" or "twist"']),
    ('[[row]]\nrole = "hips"\ntarget = "a"\nsource = ["b", "c"]\nrule = "copy"', ["source has 2 names"]),
    ('[[row]]\nrole = "hips"\ntarget = "a"\nsource = "b"\nrule = "blend"', ["source has 1 name"]),
    ('[[row]]\nrole = "hips"\ntarget = "a"\nsource = ["b", "c"]\nrule = "blend"\nblend = 1.5', ["blend must lie between 0 and 1"]),
    ('[[row]]\nrole = "hips"\ntarget = "a"\nsource = "b"\nmovable = 1', ["movable must be true or false"]),
    ('[[row]]\nrole = "hips"\ntarget = "a"\nsource = "b"\ncorrection = [1, 2]', ["correction must be three numbers"]),
    ('[[row]]\nrole = "hips"\ntarget = "a"\nsource = "b"\ncorrection = [1, 2, nan]', ["correction must be three numbers"]),
    ('[[row]]\nrole = "hips"\ntarget = "a"\nsource = "b"\ncorrection = [1, 2, true]', ["correction must be three numbers"]),
    ('[[row]]\nrole = "hips"\ntarget = "a"\nsource = "b"\ncorrection = "none"', ["correction must be three numbers"]),
    ('[[row]]\nrole = "hips"\ntarget = "a"\nsource = "b"\nconfidence = nan', ["confidence must be a number"]),
    ('[[row]]\nrole = "hips"\ntarget = "a"\nsource = "b"\nresidual = "x"', ["residual must be a number"]),
    (
        '[[row]]\nrole = "hips"\ntarget = "a"\nsource = "b"\n[[row]]\nrole = "head"\ntarget = "a"\nsource = "c"',
        ["row 2", '"a" has a row already'],
    ),
]


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_wrong_values_are_named_with_their_place(text: str, said: list[str]) -> None:
    with pytest.raises(FileError) as caught:
        rig.loads(text, "/somewhere/mine.toml")
    message = str(caught.value)
    assert message.startswith("mine.toml: ")
    assert message.endswith(".") and "\n" not in message
    for words in said:
        assert words in message


def test_missing_binary_and_unwritable_files(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"none\.toml: the table cannot be read"):
        rig.load_table(tmp_path / "none.toml")
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(FileError, match=r"b\.toml: this is no text in UTF-8"):
        rig.load_table(tmp_path / "b.toml")
    with pytest.raises(FileError, match="cannot be written"):
        rig.save_table(rig.loads(BY_HAND), tmp_path / "no" / "folder" / "t.toml")
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="cannot be written"):
        rig.save_table(rig.loads(BY_HAND), tmp_path / "folder")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b.toml", "folder"]


def test_a_number_that_is_none_is_not_written(tmp_path: Path) -> None:
    table = CorrectionTable((Row("hips", "pelvis", ("Hips",), correction=(math.nan, 0.0, 0.0)),))
    with pytest.raises(MocapError, match='correction of the bone "pelvis"'):
        rig.save_table(table, tmp_path / "t.toml")
    assert not list(tmp_path.iterdir())


# --- mirroring ---


@settings(max_examples=80, deadline=None)
@given(x=DEGREES, y=DEGREES, z=DEGREES)
def test_a_mirrored_correction_is_the_reflected_rotation(x: float, y: float, z: float) -> None:
    """Oracle: SciPy's matrices, reflected in x: M R M with M = diag(-1, 1, 1)."""
    left, right = Row("leftHand", "hand_l", ("LeftHand",), correction=(x, y, z)), Row("rightHand", "hand_r", ("RightHand",))
    mirrored = rig.mirror_row(left, right)
    mirror = np.diag([-1.0, 1.0, 1.0])
    want = mirror @ Rotation.from_euler("XYZ", [x, y, z], degrees=True).as_matrix() @ mirror
    got = Rotation.from_euler("XYZ", mirrored.correction, degrees=True).as_matrix()
    assert np.allclose(got, want, atol=1e-12)
    assert (mirrored.role, mirrored.target, mirrored.source) == ("rightHand", "hand_r", ("RightHand",))


def test_a_mirrored_axis_is_x_minus_y_minus_z() -> None:
    """The issue's own form: the axis (x, y, z) becomes (x, -y, -z), the angle stays."""
    vector = np.array([0.3, -0.5, 0.7])
    correction = tuple(Rotation.from_rotvec(vector).as_euler("XYZ", degrees=True))
    mirrored = rig.mirror_row(Row("leftHand", "l", ("L",), correction=correction), Row("rightHand", "r", ("R",)))
    got = Rotation.from_euler("XYZ", mirrored.correction, degrees=True).as_rotvec()
    assert np.allclose(got, vector * (1.0, -1.0, -1.0), atol=1e-12)


def test_mirroring_a_table_pairs_links_by_their_order_and_leaves_the_centre() -> None:
    table = CorrectionTable(
        (
            Row("spine", "s", ("S",), correction=(1.0, 2.0, 3.0)),
            Row("leftIndex", "i1_l", ("a",), correction=(1.0, 2.0, 3.0)),
            Row("leftIndex", "i2_l", ("b",), correction=(4.0, 0.0, 0.0)),
            Row("rightIndex", "i1_r", ("c",)),
            Row("rightIndex", "i2_r", ("d",)),
            Row("rightIndex", "i3_r", ("e",), correction=(7.0, 7.0, 7.0)),
            Row("rightHand", "h_r", ("f",), correction=(5.0, 5.0, 5.0)),
        )
    )
    out = rig.mirror_table(table)
    assert [r.correction for r in out.rows] == [
        (1.0, 2.0, 3.0),
        (1.0, 2.0, 3.0),
        (4.0, 0.0, 0.0),
        (1.0, -2.0, -3.0),
        (4.0, 0.0, 0.0),
        (7.0, 7.0, 7.0),
        (5.0, 5.0, 5.0),
    ]
    assert rig.mirror_table(rig.mirror_table(table), "right").rows[1].correction == (1.0, 2.0, 3.0)
    assert "-0.0" not in rig.dumps(out)
