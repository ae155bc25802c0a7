# SPDX-License-Identifier: GPL-3.0-or-later
"""MVNX on made-up files whose every number is known."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from mocap_addon.formats import mvnx
from mocap_addon.motion.errors import MocapError

from .mvnx_checks import check_motion, degrees_between, written
from .mvnx_writer import BODY, TIPS, TPOSE_TILT, Made, fingers

# -- a known file --------------------------------------------------------------------------------------------------------------


def test_body_places_and_rotations(tmp_path: Path) -> None:
    made = Made()
    take = written(tmp_path, made)
    assert take.skeleton.names == tuple(BODY)
    assert [take.skeleton.names[p] if p >= 0 else "" for p in take.skeleton.parents] == [v[0] for v in BODY.values()]
    check_motion(take, made)
    assert take.frames == 40 and take.rate == 60 and take.performer == "Suit A" and take.name == "made"
    assert take.notes == () and take.valid is None
    fit = take.facts["fk_error_mm"]
    assert isinstance(fit, dict) and fit["max"] < 0.02
    assert take.facts["format"] == "MVNX 4" and take.facts["unit"] == 1.0 and take.facts["up"] == "Z"


def test_rest_is_the_tpose_frame(tmp_path: Path) -> None:
    made = Made()
    take = written(tmp_path, made)
    rotations, places = made.tpose()
    assert take.facts["rest_frame"] == "tpose"
    for j, name in enumerate(take.skeleton.names):
        got = Rotation.from_quat(take.skeleton.rest_global_rotations[j][[1, 2, 3, 0]])
        assert np.degrees((rotations[name].inv() * got).magnitude()) < 2e-4
        np.testing.assert_allclose(take.skeleton.rest_global_positions[j], places[name], atol=2e-6)
    tilt = 2.0 * np.degrees(np.arcsin(take.skeleton.rest_rotations[0, 2]))
    assert abs(tilt - TPOSE_TILT["Pelvis"]) < 1e-3


def test_bone_ends(tmp_path: Path) -> None:
    take = written(tmp_path, Made())
    for j, name in enumerate(take.skeleton.names):
        if name in TIPS:
            np.testing.assert_allclose(take.skeleton.ends[j], TIPS[name][1], atol=1e-9)
        else:
            assert np.isnan(take.skeleton.ends[j]).all(), name


def test_bones_keep_their_length_and_only_the_root_moves(tmp_path: Path) -> None:
    made = Made()
    take = written(tmp_path, made)
    assert np.ptp(take.local_translations[:, 1:], axis=0).max() == 0.0
    np.testing.assert_allclose(take.local_translations[:, 0], made.places["Pelvis"], atol=1e-6)
    for j, name in enumerate(take.skeleton.names[1:], 1):
        np.testing.assert_allclose(take.local_translations[0, j], BODY[name][2], atol=1e-6)


def test_neighbouring_quaternions_do_not_flip(tmp_path: Path) -> None:
    made = Made(frames=300, random_signs=True)
    take = written(tmp_path, made)
    check_motion(take, made)
    assert np.einsum("fji,fji->fj", take.local_rotations[1:], take.local_rotations[:-1]).min() > 0.9


def test_contacts(tmp_path: Path) -> None:
    made = Made()
    take = written(tmp_path, made)
    assert list(take.curves) == ["contact_l_heel", "contact_l_toe", "contact_r_heel", "contact_r_toe"]
    np.testing.assert_array_equal(np.stack(list(take.curves.values()), axis=1), made.contact_values)
    plain = written(tmp_path, Made(contact_definition=False))
    assert list(plain.curves) == list(take.curves) and "which foot contact" in plain.notes[0]
    assert not written(tmp_path, Made(contacts=False)).curves


def test_isb_orientations_become_body_orientations(tmp_path: Path) -> None:
    made = Made(isb=True, poses=("npose", "tpose"), version="3", points="pos_s")
    take = written(tmp_path, made)
    assert take.facts["segment_frames"] == "ISB"
    check_motion(take, made)
    np.testing.assert_allclose(take.skeleton.rest_global_rotations[take.skeleton.index("LeftHand")], (1, 0, 0, 0), atol=2e-6)
    assert any("ISB" in note for note in take.notes)


def test_isb_is_found_without_positions(tmp_path: Path) -> None:
    made = Made(isb=True, poses=("tpose",), position=False)
    take = written(tmp_path, made)
    for name in BODY:
        assert degrees_between(take, name, made.rotations[name]) < 2e-4, name


@pytest.mark.parametrize("kind", ["tpose-isb", "identity"])
def test_rest_from_other_pose_frames(tmp_path: Path, kind: str) -> None:
    take = written(tmp_path, Made(poses=(kind,)))
    assert take.facts["rest_frame"] == kind
    hand = take.skeleton.index("RightHand")
    np.testing.assert_allclose(take.skeleton.rest_global_rotations[hand], (1, 0, 0, 0), atol=2e-6)
    np.testing.assert_allclose(take.skeleton.rest_global_positions[hand, 1], -0.72, atol=1e-5)


def test_no_pose_frames_gives_the_straight_pose_on_the_floor(tmp_path: Path) -> None:
    made = Made(poses=())
    take = written(tmp_path, made)
    check_motion(take, made)
    np.testing.assert_array_equal(take.skeleton.rest_global_rotations, np.tile((1.0, 0, 0, 0), (23, 1)))
    lowest = np.nanmin(np.concatenate([take.skeleton.rest_global_positions[:, 2], take.skeleton.rest_global_ends[:, 2]]))
    assert abs(lowest) < 1e-9 and abs(take.skeleton.rest_global_positions[0, 2] - 0.9) < 1e-6
    assert "no T-pose frame" in take.notes[0]


def test_the_joints_say_which_points_meet(tmp_path: Path) -> None:
    made = Made(position=False)
    text = re.sub(r'<point label="j(\w+)"(><pos_b>0.000000 0.000000 0.000000<)', r'<point label="top\1"\2', made.text())
    text = re.sub(r"<connector2>(\w+)/j", r"<connector2>\1/top", text)
    path = tmp_path / "c.mvnx"
    path.write_text(text)
    (take,) = mvnx.read(path)
    for j, name in enumerate(take.skeleton.names[1:], 1):
        np.testing.assert_allclose(take.skeleton.rest_translations[j], BODY[name][2], atol=1e-9)


def test_without_joints_the_standard_hierarchy_is_known(tmp_path: Path) -> None:
    made = Made(joints=False)
    take = written(tmp_path, made)
    check_motion(take, made)
    assert take.skeleton.names == tuple(BODY)


def test_without_any_definition_bones_come_from_the_frames(tmp_path: Path) -> None:
    made = Made(joints=False, segments=False)
    take = written(tmp_path, made)
    assert take.skeleton.names == tuple(BODY)
    check_motion(take, made)


def test_without_positions_the_root_stays(tmp_path: Path) -> None:
    made = Made(position=False)
    take = written(tmp_path, made)
    np.testing.assert_allclose(take.local_translations[:, 0], np.tile((0.0, 0.0, 0.96), (40, 1)))
    assert any("no positions" in note for note in take.notes) and "fk_error_mm" not in take.facts
    assert degrees_between(take, "LeftHand", made.rotations["LeftHand"]) < 2e-4


def test_positions_that_do_not_fit_are_told(tmp_path: Path) -> None:
    made = Made()
    made.places["LeftHand"] = made.places["LeftHand"] + np.array([0.0, 0.0, 0.012])
    take = written(tmp_path, made)
    fit = take.facts["fk_error_mm"]
    assert isinstance(fit, dict) and abs(fit["max"] - 12.0) < 0.05 and abs(fit["mean"] - 12.0 / 22) < 0.02
    assert any("12.0 mm" in note for note in take.notes)


# -- fingers and props ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", ["world", "hand"])
@pytest.mark.parametrize("joints", [True, False])
def test_fingers_are_joints_below_the_hands(tmp_path: Path, frame: str, joints: bool) -> None:
    made = Made(with_fingers=True, fingers_in=frame, finger_joints=joints, frames=12)
    take = written(tmp_path, made)
    assert len(take.skeleton) == 63 and take.facts["finger_frame"] == frame
    for side in ("Left", "Right"):
        for name, (parent, _, _) in fingers(side).items():
            assert take.skeleton.names[take.skeleton.parents[take.skeleton.index(name)]] == parent
        np.testing.assert_allclose(
            take.skeleton.ends[take.skeleton.index(f"{side}ThirdDP")], (0.0, 0.02 if side == "Left" else -0.02, 0.0), atol=1e-9
        )
    check_motion(take, made, tuple(BODY) + tuple(fingers("Left")) + tuple(fingers("Right")))


@pytest.mark.parametrize("frame", ["world", "hand"])
def test_fingers_without_definitions(tmp_path: Path, frame: str) -> None:
    made = Made(with_fingers=True, fingers_in=frame, segments=False, joints=False, finger_joints=False, frames=12)
    take = written(tmp_path, made)
    for side in ("Left", "Right"):
        for name, (parent, _, _) in fingers(side).items():
            assert take.skeleton.names[take.skeleton.parents[take.skeleton.index(name)]] == parent
    check_motion(take, made, tuple(BODY) + tuple(fingers("Left")) + tuple(fingers("Right")))


def test_props_are_rigid_bodies_beside_the_person(tmp_path: Path) -> None:
    made = Made(props=2)
    take = written(tmp_path, made)
    assert len(take.skeleton) == 23 and list(take.props) == ["Prop1", "Prop2"]
    check_motion(take, made)
    for k, prop in enumerate(take.props.values()):
        got = Rotation.from_quat(prop.rotations[:, [1, 2, 3, 0]])
        assert np.degrees((made.prop_rotations[k].inv() * got).magnitude()).max() < 2e-4
        np.testing.assert_allclose(prop.translations, made.prop_places[k], atol=1e-6)


def test_undefined_further_segments_are_props(tmp_path: Path) -> None:
    made = Made(props=1)
    text = re.sub(r'<segment label="Prop1".*?</segment>\n', "", made.text(), flags=re.S)
    path = tmp_path / "p.mvnx"
    path.write_text(text)
    (take,) = mvnx.read(path)
    assert list(take.props) == ["Prop1"]
    np.testing.assert_allclose(take.props["Prop1"].translations, made.prop_places[0], atol=1e-6)


def test_two_subjects_are_two_takes(tmp_path: Path) -> None:
    a, b = Made(label="Ann", frames=20), Made(label="Bob", frames=30, seed=2, rate=Fraction(240))
    text = a.text().replace("</subject>", "</subject>\n" + "\n".join(b.subject()), 1)
    path = tmp_path / "duo.mvnx"
    path.write_text(text)
    first, second = mvnx.read(path)
    assert (first.name, second.name) == ("duo Ann", "duo Bob") and (first.performer, second.performer) == ("Ann", "Bob")
    check_motion(first, a)
    check_motion(second, b)
    assert second.rate == 240


# -- spellings -----------------------------------------------------------------------------------------------------------------

UNKNOWN = "<orientation2>x</orientation2><deep><orientation>0</orientation></deep>"
SPELLINGS = {
    "prefix": lambda m: Made(prefix="m:").text(),
    "crlf": lambda m: m.text().replace("\n", "\r\n"),
    "single quotes": lambda m: re.sub(r'(\w)="([^"]*)"', r"\1='\2'", m.text().split("?>", 1)[1]),
    "comments": lambda m: m.text().replace("<position>", "<!-- <orientation>1</orientation> --><position>"),
    "cdata": lambda m: re.sub(r"<orientation>(.*?)</orientation>", r"<orientation><![CDATA[\1]]></orientation>", m.text()),
    "references": lambda m: m.text().replace("<orientation>1.0", "<orientation>&#49;.0").replace("<orientation>0", "<orientation>&#x30;"),
    "white space": lambda m: m.text().replace(" 0.", "\n\t 0.").replace("<position>", "<position>\n"),
    "attributes on values": lambda m: m.text().replace("<orientation>", '<orientation unit="q">'),
    "exponents": lambda m: re.sub(r"(-?\d\.\d{6})(?=[ <])", lambda k: f"{float(k[1]):.12e}", m.text()),
    "doctype": lambda m: m.text().replace("<mvnx", '<!DOCTYPE mvnx SYSTEM "http://www.xsens.com/mvn/mvnx/schema.dtd">\n<mvnx', 1),
    "unknown tags": lambda m: m.text().replace("<position>", f"{UNKNOWN}<position>"),
    "no xml line": lambda m: m.text().split("?>", 1)[1].lstrip(),
    "byte order mark": lambda m: "\ufeff" + m.text(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_legal_spellings_give_the_same_take(tmp_path: Path, spelling: str) -> None:
    made = Made()
    plain = written(tmp_path, made)
    path = tmp_path / "other.mvnx"
    path.write_bytes(SPELLINGS[spelling](made).encode())
    (take,) = mvnx.read(path)
    np.testing.assert_array_equal(take.local_rotations, plain.local_rotations)
    np.testing.assert_array_equal(take.local_translations, plain.local_translations)
    np.testing.assert_array_equal(take.times, plain.times)
    assert take.skeleton.names == plain.skeleton.names


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "iso-8859-1"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    made = Made(label="Zoë")
    text = made.text().replace("UTF-8", encoding.split("-be")[0] if encoding != "utf-16-be" else "UTF-16")
    data = text.encode(encoding)
    path = tmp_path / "e.mvnx"
    path.write_bytes(b"\xfe\xff" + data if encoding == "utf-16-be" else data)
    (take,) = mvnx.read(path)
    assert take.performer == "Zoë"
    check_motion(take, made)


def test_a_segment_under_another_name_is_bridged(tmp_path: Path) -> None:
    made = Made()
    text = made.text().replace('<segment label="T12"', '<segment label="T1Z"')
    path = tmp_path / "t.mvnx"
    path.write_text(text)
    (take,) = mvnx.read(path)
    assert take.skeleton.names == tuple(n for n in BODY if n != "T12") and list(take.props) == ["T1Z"]
    assert take.skeleton.names[take.skeleton.parents[take.skeleton.index("T8")]] == "L3"
    assert any('"T1Z"' in note for note in take.notes)
    assert degrees_between(take, "Head", made.rotations["Head"]) < 2e-4


# -- missing values ------------------------------------------------------------------------------------------------------------


def test_missing_values_are_held_and_marked(tmp_path: Path) -> None:
    made = Made()
    lines = made.text().split("\n")
    rows = [i for i, line in enumerate(lines) if line.startswith("<orientation>")][3:]
    words = lines[rows[10]].split(" ")
    words[4 * 3 : 4 * 3 + 4] = ["nan"] * 4  # T12 in frame 10
    lines[rows[10]] = " ".join(words)
    lines[rows[20]] = ""  # no orientation in frame 20
    path = tmp_path / "n.mvnx"
    path.write_text("\n".join(lines))
    (take,) = mvnx.read(path)
    assert take.valid is not None and not take.valid[20].any() and np.count_nonzero(~take.valid) == 24
    assert not take.valid[10, take.skeleton.index("T12")]
    assert np.isfinite(take.local_rotations).all()
    np.testing.assert_array_equal(take.local_rotations[20], take.local_rotations[19])
    np.testing.assert_array_equal(take.local_rotations[10, take.skeleton.index("T12")], take.local_rotations[9, take.skeleton.index("T12")])
    assert any("2 of 40 frames" in note for note in take.notes)
    assert degrees_between(take.block(21, 40), "Head", made.rotations["Head"][21:]) < 2e-4


# -- progress ------------------------------------------------------------------------------------------------------------------


def test_progress_and_cancel(tmp_path: Path) -> None:
    path = Made(frames=1500).write(tmp_path / "long.mvnx")
    seen: list[float] = []
    mvnx.read(path, None, lambda share: seen.append(share))
    assert len(seen) >= 3 and seen == sorted(seen) and seen[-1] == 1.0
    with pytest.raises(MocapError, match="cancelled"):
        mvnx.read(path, progress=lambda share: share < 0.5)
