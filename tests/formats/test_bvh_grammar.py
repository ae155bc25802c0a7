# SPDX-License-Identifier: GPL-3.0-or-later
"""The many ways in which BVH files are written. Every expected value stands here as a literal."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from mocap_addon.formats import ReadOptions, bvh_text
from mocap_addon.motion import quat
from mocap_addon.motion.errors import MocapError
from tests.formats.bvh_text import ARM, ARM_FILE, ROWS, motion, read_text

PLAIN = ReadOptions(up="Z", rest_up="Z", unit=1.0)  # the file's own axes and units


def degrees(order, *angles):
    return quat.from_euler(np.radians(np.array(angles, dtype=float)), order)


def same_rotation(a, b):
    assert np.degrees(quat.angle(np.asarray(a), np.asarray(b)).max()) < 1e-9


def check_arm(take):
    """The take that ``ARM_FILE`` writes, whatever its spelling."""
    assert take.frames == 3
    np.testing.assert_allclose(take.local_translations[:, 0], [[1, 2, 3], [1.5, 2.5, 3.5], [2, 3, 4]], atol=1e-12)
    np.testing.assert_allclose(take.local_translations[:, 1], [[0, 50, 0]] * 3, atol=1e-12)
    same_rotation(take.local_rotations[1, 0], degrees("ZYX", 11, 21, 31))
    same_rotation(take.local_rotations[2, 1], degrees("ZYX", 42, 52, 62))
    np.testing.assert_allclose(take.skeleton.ends[1], [0, 25, 0])
    assert take.valid is None


SPELLINGS = {
    "as it is": lambda t: t,
    "CRLF": lambda t: t.replace("\n", "\r\n"),
    "CR": lambda t: t.replace("\n", "\r"),
    "tabs": lambda t: t.replace(" ", "\t").replace("End\tSite", "End Site").replace("Frame\tTime", "Frame Time"),
    "tabs everywhere": lambda t: t.replace(" ", "\t"),
    "byte-order mark": lambda t: "\ufeff" + t,
    "UTF-16": lambda t: t.encode("utf-16"),
    "no last newline": lambda t: t.rstrip("\n"),
    "blank lines": lambda t: t.replace("\n", "\n\n"),
    "trailing blanks": lambda t: t.replace("\n", "  \n"),
    "blank lines at the end": lambda t: t + "\n \n\n",
    "keywords in lower case": lambda t: t.replace("HIERARCHY", "hierarchy").replace("ROOT", "root").replace("MOTION", "motion"),
    "keywords in upper case": lambda t: t.replace("End Site", "END SITE").replace("Frame Time", "FRAME TIME").replace("Frames", "FRAMES"),
    "channels in lower case": lambda t: t.replace("Zrotation", "zrotation").replace("Xposition", "xposition"),
    "braces on the names' lines": lambda t: t.replace("\n{", " {").replace("\n  {", " {").replace("\n    {", " {"),
    "brace touches the name": lambda t: t.replace("Arm\n  {", "Arm{"),
    "no space after colons": lambda t: t.replace("Frames: ", "Frames:").replace("Time: ", "Time:"),
    "spaces before colons": lambda t: t.replace("Frames:", "Frames :").replace("Time:", "Time :"),
    "header lines swapped": lambda t: t.replace("Frames: 3\nFrame Time: 0.05\n", "Frame Time: 0.05\nFrames: 3\n"),
    "exponents": lambda t: t.replace("\n1.5 2.5 3.5 11", "\n1.5e0 25E-1 +3.5e+00 1.1e1"),
    "integers with points": lambda t: t.replace("2 3 4 12 22", "2. 3. 4.0 12. 22."),
    "no leading zeros": lambda t: t.replace("1.5 2.5", "01.5 +2.5"),
    "one number on a line": lambda t: t.split("0.05\n")[0] + "0.05\n" + t.split("0.05\n")[1].replace(" ", "\n"),
    "rows on one line": lambda t: t.split("0.05\n")[0] + "0.05\n" + t.split("0.05\n")[1].replace("\n", " "),
    "everything on one line": lambda t: " ".join(t.split()),
    "comment at the top": lambda t: "# made by hand\n" + t,
    "numbered End Site": lambda t: t.replace("End Site", "End Site Arm_end"),
    "End Site with channels": lambda t: t.replace("OFFSET 0 25 0", "OFFSET 0 25 0\n      CHANNELS 0"),
    "channels before offset": lambda t: t.replace(
        "    OFFSET 0 50 0\n    CHANNELS 3 Zrotation Yrotation Xrotation\n",
        "    CHANNELS 3 Zrotation Yrotation Xrotation\n    OFFSET 0 50 0\n",
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings(tmp_path, spelling):
    (take,) = read_text(tmp_path, SPELLINGS[spelling](ARM_FILE), PLAIN)
    check_arm(take)
    assert take.rate == 20


def test_pieces_of_any_size_give_the_same(tmp_path, monkeypatch):
    rows = [" ".join(f"{(i * 7 + c * 3) % 360 - 180 + i / 64:.6f}" for c in range(9)) for i in range(200)]
    whole = read_text(tmp_path, ARM + motion(rows), PLAIN)[0]
    for size in (1, 17, 1000, 4096):
        monkeypatch.setattr(bvh_text, "PIECE", size)
        (take,) = read_text(tmp_path, ARM + motion(rows), PLAIN)
        assert np.array_equal(take.local_rotations, whole.local_rotations)
        assert np.array_equal(take.local_translations, whole.local_translations)


def test_rows_spread_over_lines_across_pieces(tmp_path, monkeypatch):
    rows = [" ".join(f"{i + c / 16:.4f}" for c in range(9)) for i in range(100)]
    whole = read_text(tmp_path, ARM + motion(rows), PLAIN)[0]
    monkeypatch.setattr(bvh_text, "PIECE", 100)
    text = (ARM + motion(rows)).split("0.05\n")
    (take,) = read_text(tmp_path, text[0] + "0.05\n" + "\n".join(text[1].split()), PLAIN)
    assert np.array_equal(take.local_rotations, whole.local_rotations)
    assert len(take.notes) == 1 and "one to a line" in take.notes[0]


@pytest.mark.parametrize(
    "name",
    ["Left Arm", "mixamorig:LeftArm", "upperarm.l", "左腕", "Ärm", "End", "End Effector", "Site", "OFFSET", "joint", "MOTION", "a#b"],
)
def test_names(tmp_path, name):
    (take,) = read_text(tmp_path, ARM_FILE.replace("JOINT Arm", f"JOINT {name}"), PLAIN)
    assert take.skeleton.names == ("Hips", name)
    check_arm(take)


def test_names_that_are_not_unicode(tmp_path):
    (take,) = read_text(tmp_path, ARM_FILE.replace("Arm", "Ärm").encode("latin-1"), PLAIN)
    assert take.skeleton.names == ("Hips", "Ärm")
    assert any("UTF-8" in n for n in take.notes)


def test_names_that_occur_twice_become_unique(tmp_path):
    text = ARM_FILE.replace("Arm", "Hips")
    (take,) = read_text(tmp_path, text, PLAIN)
    assert take.skeleton.names == ("Hips", "Hips.001")
    assert any("occurs again" in n and "line 6" in n for n in take.notes)


def test_rotation_orders_by_name_and_mixed(tmp_path):
    text = ARM_FILE.replace("3 Zrotation Yrotation Xrotation", "3 Xrotation Zrotation Yrotation")
    (take,) = read_text(tmp_path, text, PLAIN)
    same_rotation(take.local_rotations[:, 0], [degrees("ZYX", 10 + i, 20 + i, 30 + i) for i in range(3)])
    same_rotation(take.local_rotations[:, 1], [degrees("XZY", 40 + i, 50 + i, 60 + i) for i in range(3)])


@pytest.mark.parametrize("order", ["XYZ", "XZY", "YXZ", "YZX", "ZXY", "ZYX", "ZXZ", "XYX"])
def test_every_order(tmp_path, order):
    channels = " ".join(f"{axis}rotation" for axis in order)
    (take,) = read_text(tmp_path, ARM_FILE.replace("3 Zrotation Yrotation Xrotation", f"3 {channels}"), PLAIN)
    # one matrix per channel, multiplied in the written order: nothing of the product's own product is used
    expected = np.eye(3)
    for axis, angle in zip(order, (40, 50, 60), strict=True):
        c, s = np.cos(np.radians(angle)), np.sin(np.radians(angle))
        one = {"X": [[1, 0, 0], [0, c, -s], [0, s, c]], "Y": [[c, 0, s], [0, 1, 0], [-s, 0, c]], "Z": [[c, -s, 0], [s, c, 0], [0, 0, 1]]}
        expected = expected @ np.array(one[axis])
    np.testing.assert_allclose(quat.to_matrix(take.local_rotations[0, 1]), expected, atol=1e-12)


def test_rotation_before_position(tmp_path):
    text = ARM_FILE.replace(
        "6 Xposition Yposition Zposition Zrotation Yrotation Xrotation", "6 Zrotation Xposition Yrotation Zposition Yposition Xrotation"
    )
    (take,) = read_text(tmp_path, text, PLAIN)
    np.testing.assert_allclose(take.local_translations[0, 0], [2, 20, 10])
    same_rotation(take.local_rotations[0, 0], degrees("ZYX", 1, 3, 30))


def test_root_without_position(tmp_path):
    text = ARM.replace("6 Xposition Yposition Zposition Zrotation", "3 Zrotation") + motion(["10 20 30 40 50 60"])
    (take,) = read_text(tmp_path, text, PLAIN)
    assert take.local_translations.shape == (1, 2, 3)
    np.testing.assert_allclose(take.local_translations[0], [[0, 9, 0], [0, 50, 0]])


def test_one_rotation_channel_and_none(tmp_path):
    text = ARM.replace("3 Zrotation Yrotation Xrotation", "1 Yrotation") + motion(["0 0 0 0 0 0 90"])
    (take,) = read_text(tmp_path, text, PLAIN)
    same_rotation(take.local_rotations[0, 1], degrees("Y", 90))
    text = ARM.replace("CHANNELS 3 Zrotation Yrotation Xrotation", "CHANNELS 0") + motion(["0 0 0 0 0 90"])
    (take,) = read_text(tmp_path, text, PLAIN)
    same_rotation(take.local_rotations[0, 1], [1, 0, 0, 0])
    text = ARM.replace("    CHANNELS 3 Zrotation Yrotation Xrotation\n", "") + motion(["0 0 0 0 0 90"])
    assert read_text(tmp_path, text, PLAIN)[0].frames == 1


def test_two_rotation_channels(tmp_path):
    text = ARM.replace("3 Zrotation Yrotation Xrotation", "2 Yrotation Zrotation") + motion(["0 0 0 0 0 0 90 30"])
    same_rotation(read_text(tmp_path, text, PLAIN)[0].local_rotations[0, 1], degrees("YZ", 90, 30))


def test_scale_channels_are_left_out(tmp_path):
    text = ARM.replace("3 Zrotation Yrotation Xrotation", "6 Zrotation Yrotation Xrotation Xscale Yscale Zscale") + motion(
        [ROWS[0] + " 1 1 1"]
    )
    (take,) = read_text(tmp_path, text, PLAIN)
    same_rotation(take.local_rotations[0, 1], degrees("ZYX", 40, 50, 60))
    assert any("Xscale" in n for n in take.notes)


def test_channel_count_unlike_the_names(tmp_path):
    (take,) = read_text(tmp_path, ARM_FILE.replace("CHANNELS 3", "CHANNELS 6"), PLAIN)
    check_arm(take)
    assert any("announces 6 channels" in n for n in take.notes)


POSITIONS = ARM.replace("3 Zrotation", "6 Xposition Yposition Zposition Zrotation")


def test_positions_replace_the_offset(tmp_path):
    (take,) = read_text(tmp_path, POSITIONS + motion(["0 0 0 0 0 0 1 52 3 0 0 0"]), PLAIN)
    np.testing.assert_allclose(take.local_translations[0, 1], [1, 52, 3])


def test_positions_near_zero_are_relative_to_a_long_offset(tmp_path):
    (take,) = read_text(tmp_path, POSITIONS + motion(["0 80 0 0 0 0 0.5 -1 0 0 0 0", "0 80 0 0 0 0 0 2 0 0 0 0"]), PLAIN)
    np.testing.assert_allclose(take.local_translations[:, 1], [[0.5, 49, 0], [0, 52, 0]])
    np.testing.assert_allclose(take.local_translations[:, 0], [[0, 80, 0]] * 2)
    assert any('"Arm"' in n and "relative" in n for n in take.notes)


def test_one_position_channel(tmp_path):
    text = ARM.replace("3 Zrotation", "4 Yposition Zrotation") + motion(["0 0 0 0 0 0 49 0 0 0"])
    np.testing.assert_allclose(read_text(tmp_path, text, PLAIN)[0].local_translations[0, 1], [0, 49, 0])


def test_several_roots_become_several_takes(tmp_path):
    second = ARM.removeprefix("HIERARCHY\n").replace("OFFSET 0 50 0", "OFFSET 0 33 0")
    text = ARM + second + motion([f"{ROWS[0]} 7 8 9 1 2 3 4 5 6"])
    one, two = read_text(tmp_path, text, PLAIN)
    assert (one.name, two.name) == ("take 1", "take 2")
    assert one.skeleton.names == two.skeleton.names == ("Hips", "Arm")
    np.testing.assert_allclose(one.local_translations[0, 0], [1, 2, 3])
    np.testing.assert_allclose(two.local_translations[0, :], [[7, 8, 9], [0, 33, 0]])
    same_rotation(two.local_rotations[0, 1], degrees("ZYX", 4, 5, 6))


def test_takes_are_named_after_their_roots(tmp_path):
    text = ARM + ARM.removeprefix("HIERARCHY\n").replace("Hips", "Other") + motion([f"{ROWS[0]} {ROWS[0]}"])
    assert [t.name for t in read_text(tmp_path, text, PLAIN)] == ["take Hips", "take Other"]


def test_several_end_sites_and_an_end_site_beside_a_child(tmp_path):
    more = "    End Site\n    {\n      OFFSET 9 9 9\n    }\n"
    text = ARM_FILE.replace("      OFFSET 0 25 0\n    }\n", "      OFFSET 0 25 0\n    }\n" + more).replace(
        "  JOINT Arm", more + "  JOINT Arm"
    )
    (take,) = read_text(tmp_path, text, PLAIN)
    np.testing.assert_allclose(take.skeleton.ends, [[9, 9, 9], [0, 25, 0]])
    check_arm_text = read_text(tmp_path, ARM_FILE, PLAIN)[0]
    assert np.array_equal(take.local_rotations, check_arm_text.local_rotations)


def test_chain_without_end_site(tmp_path):
    text = ARM_FILE.replace("    End Site\n    {\n      OFFSET 0 25 0\n    }\n", "")
    assert np.isnan(read_text(tmp_path, text, PLAIN)[0].skeleton.ends).all()


def test_zero_length_joints(tmp_path):
    (take,) = read_text(tmp_path, ARM_FILE.replace("OFFSET 0 50 0", "OFFSET 0 0 0"), PLAIN)
    np.testing.assert_allclose(take.local_translations[:, 1], 0)


def test_glued_numbers(tmp_path):
    (take,) = read_text(tmp_path, ARM + motion(["1.25-2.50 3.00-10.00-20.00 30.00 40.00-50.00-60.00"] * 2), PLAIN)
    np.testing.assert_allclose(take.local_translations[1, 0], [1.25, -2.5, 3])
    same_rotation(take.local_rotations[1, 1], degrees("ZYX", 40, -50, -60))


def test_decimal_commas(tmp_path):
    (take,) = read_text(
        tmp_path, ARM.replace("0 50 0", "0,0 50,5 0") + motion(["1,5 2,5 3,5 11 21 31 41 51 61,25"], frame_time="0,05"), PLAIN
    )
    np.testing.assert_allclose(take.local_translations[0], [[1.5, 2.5, 3.5], [0, 50.5, 0]])
    same_rotation(take.local_rotations[0, 1], degrees("ZYX", 41, 51, 61.25))
    assert take.rate == 20
    assert sum("commas" in n and "decimal points" in n for n in take.notes) == 1


def test_commas_between_numbers(tmp_path):
    (take,) = read_text(tmp_path, ARM + motion(["1.5, 2.5, 3.5, 11, 21, 31, 41, 51, 61"]), PLAIN)
    np.testing.assert_allclose(take.local_translations[0, 0], [1.5, 2.5, 3.5])
    assert any("separators" in n for n in take.notes)


@pytest.mark.parametrize(
    "word", ["nan", "NaN", "-nan", "1.#QNAN", "-1.#IND00", "inf", "-Infinity", "1e400", "garbage", "1.2.3", "--5", "0x1p3", "1e300"]
)
def test_values_that_are_not_numbers_are_held_and_marked(tmp_path, word):
    rows = ["0 80 0 0 0 0 10 0 0", f"0 80 0 0 0 0 {word} 0 0", "0 80 0 0 0 0 30 0 0", f"5 80 {word} 0 0 0 40 0 0"]
    (take,) = read_text(tmp_path, ARM + motion(rows), PLAIN)
    assert take.valid is not None
    assert take.valid.tolist() == [[True, True], [True, False], [True, True], [False, True]]
    same_rotation(take.local_rotations[1, 1], degrees("Z", 10))
    same_rotation(take.local_rotations[2, 1], degrees("Z", 30))
    np.testing.assert_allclose(take.local_translations[3, 0], [0, 80, 0])
    assert np.isfinite(take.local_rotations).all() and np.isfinite(take.local_translations).all()
    if word != "1e300":
        assert any("2 values are not numbers" in n and "line 20" in n for n in take.notes)


def test_a_first_value_that_is_no_number_shows_the_next(tmp_path):
    (take,) = read_text(tmp_path, ARM + motion(["0 80 0 0 0 0 nan 0 0", "0 80 0 0 0 0 25 0 0"]), PLAIN)
    same_rotation(take.local_rotations[0, 1], degrees("Z", 25))


def test_a_joint_that_never_has_a_number_keeps_its_rest(tmp_path):
    (take,) = read_text(tmp_path, ARM + motion(["nan 80 0 0 0 0 nan 0 0"] * 3), PLAIN)
    same_rotation(take.local_rotations[:, 1], np.array([[1.0, 0, 0, 0]] * 3))
    np.testing.assert_allclose(take.local_translations[:, 0], [[0, 9, 0]] * 3)
    assert not take.valid.any()


@pytest.mark.parametrize("declared", [0, 1, 2, 4, 1_000_000_000, 10**17])
def test_rows_count_whatever_is_declared(tmp_path, declared):
    (take,) = read_text(tmp_path, ARM + motion(ROWS, frames=declared), PLAIN)
    check_arm(take)
    assert sum(f"Frames: {declared}" in n for n in take.notes) == 1


@pytest.mark.parametrize("rows", [[], ["", "  ", ""]])
def test_no_frames(tmp_path, rows):
    (take,) = read_text(tmp_path, ARM + motion(rows, frames=0), PLAIN)
    assert take.frames == 0
    assert take.local_rotations.shape == (0, 2, 4)
    np.testing.assert_allclose(take.skeleton.rest_translations, [[0, 9, 0], [0, 50, 0]])


def test_one_frame(tmp_path):
    (take,) = read_text(tmp_path, ARM + motion(ROWS[:1]), PLAIN)
    assert take.frames == 1 and take.times.tolist() == [0.0]


def test_a_short_last_row_is_left_out(tmp_path):
    (take,) = read_text(tmp_path, ARM + motion([*ROWS, "1 2 3 4"]), PLAIN)
    check_arm(take)
    assert any("cut off" in n and "line 22" in n for n in take.notes)


def test_a_bad_row_in_the_middle_is_held_and_marked(tmp_path):
    (take,) = read_text(tmp_path, ARM + motion([ROWS[0], "1 2 3", ROWS[1], ROWS[2]]), PLAIN)
    assert take.valid.tolist() == [[True] * 2, [False] * 2, [True] * 2, [True] * 2]
    assert np.array_equal(take.local_rotations[1], take.local_rotations[0])
    assert any("line 20" in n for n in take.notes)


@pytest.mark.parametrize(
    ("written", "rate"),
    [
        ("0.0083333", Fraction(120)),
        ("0.008333", Fraction(120)),
        (".0083333", Fraction(120)),
        ("0.0417083", Fraction(24000, 1001)),
        ("0.0417083750417", Fraction(24000, 1001)),
        ("0.0333667", Fraction(30000, 1001)),
        ("0.033366700033366704", Fraction(30000, 1001)),
        ("0.033333", Fraction(30)),
        ("0.0333333", Fraction(30)),
        ("0.033", Fraction(30)),
        ("0.04", Fraction(25)),
        ("0.041667", Fraction(24)),
        ("0.016667", Fraction(60)),
        ("0.016666", Fraction(60)),
        ("0.01", Fraction(100)),
        ("1e-2", Fraction(100)),
        ("0.004166667", Fraction(240)),
        ("0.5", Fraction(2)),
    ],
)
def test_frame_times(tmp_path, written, rate):
    assert read_text(tmp_path, ARM + motion(ROWS, frame_time=written), PLAIN)[0].rate == rate


@pytest.mark.parametrize("written", ["0", "0.0", "-0.01", "nan", "inf", "soon", "1e-30", "1e300"])
def test_frame_times_that_are_none(tmp_path, written):
    (take,) = read_text(tmp_path, ARM + motion(ROWS, frame_time=written), PLAIN)
    assert take.rate == 30
    assert any("30 frames a second" in n for n in take.notes)
    (take,) = read_text(tmp_path, ARM + motion(ROWS, frame_time=written), ReadOptions(rate=Fraction(60000, 1001)))
    assert take.rate == Fraction(60000, 1001)
    assert not any("30 frames a second" in n for n in take.notes)
    np.testing.assert_allclose(take.times, [0, 1001 / 60000, 2002 / 60000])


def test_no_frame_time_line(tmp_path):
    (take,) = read_text(tmp_path, ARM + "MOTION\nFrames: 3\n" + "\n".join(ROWS), PLAIN)
    check_arm(take)
    assert take.rate == 30


def test_skeleton_without_motion(tmp_path):
    (take,) = read_text(tmp_path, ARM, PLAIN)
    assert take.frames == 0 and len(take.skeleton) == 2
    assert any("no MOTION" in n for n in take.notes)


def test_overrides(tmp_path):
    (take,) = read_text(tmp_path, ARM_FILE, ReadOptions(up="Y", rest_up="Z", unit=0.01))
    np.testing.assert_allclose(take.local_translations[0, 0], [0.01, -0.03, 0.02], atol=1e-15)  # Y up: (x, y, z) -> (x, -z, y)
    np.testing.assert_allclose(take.local_translations[0, 1], [0, 0.5, 0], atol=1e-15)
    np.testing.assert_allclose(take.skeleton.rest_translations[0], [0, 0.09, 0], atol=1e-15)
    same_rotation(take.local_rotations[0, 0], quat.mul(degrees("X", 90), degrees("ZYX", 10, 20, 30)))
    assert (take.facts["up"], take.facts["rest_up"], take.facts["unit"]) == ("Y", "Z", 0.01)


@pytest.mark.parametrize("bad", [{"up": "W"}, {"rest_up": "up"}, {"unit": 0.0}, {"unit": float("nan")}, {"rate": Fraction(0)}])
def test_overrides_that_make_no_sense(bad):
    with pytest.raises(MocapError):
        ReadOptions(**bad)


def test_files_of_one_hierarchy_keep_what_is_theirs(tmp_path):
    """The second file begins with the same text, at another rate and with another number of rows than it says."""
    (first,) = read_text(tmp_path, ARM_FILE)
    (other,) = read_text(tmp_path, ARM_FILE.replace("Frames: 3", "Frames: 9").replace("Frame Time: 0.05", "Frame Time: 0.1"))
    (again,) = read_text(tmp_path, ARM_FILE)
    assert (first.rate, other.rate, again.rate) == (Fraction(20), Fraction(10), Fraction(20))
    assert first.notes == again.notes and [note for note in other.notes if note not in first.notes] == [
        'The file says "Frames: 9" and holds 3 rows; the rows count.'
    ]
