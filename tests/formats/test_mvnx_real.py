# SPDX-License-Identifier: GPL-3.0-or-later
"""Real MVNX files against an independent parse."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from mocap_addon.formats import mvnx
from tests.paths import SHARED, need

from .mvnx_checks import degrees_between

V4 = SHARED / "xsens" / "mvnx4_upperbody_60hz_112f.mvnx"
V3 = SHARED / "xsens" / "mvnx3_fullbody_240hz_4f.mvnx"

NS = "{http://www.xsens.com/mvn/mvnx}"


def by_etree(path: Path) -> tuple[list[str], np.ndarray, np.ndarray, list[ET.Element]]:
    """Segment names, orientations (F, 23, 4) and positions (F, 23, 3) of the motion, and its frames, by the standard library."""
    root = ET.parse(path).getroot()
    names = [s.attrib["label"] for s in root.iter(f"{NS}segment")]
    frames = [f for f in root.iter(f"{NS}frame") if f.get("type") == "normal"]

    def table(tag: str, k: int) -> np.ndarray:
        return np.array([[float(v) for v in (f.findtext(f"{NS}{tag}") or "").split()] for f in frames]).reshape(len(frames), -1, k)

    return names, table("orientation", 4), table("position", 3), frames


def test_real_version_4_against_another_parser() -> None:
    names, q, p, frames = by_etree(need(V4))
    (take,) = mvnx.read(V4)
    assert list(take.skeleton.names) == names and take.frames == 112 and take.rate == 60 and take.timecode == "04:17:11:50"
    for j, name in enumerate(names):
        assert degrees_between(take, name, Rotation.from_quat(q[:, j][:, [1, 2, 3, 0]])) < 1e-4
    np.testing.assert_allclose(take.local_translations[:, 0], p[:, 0], atol=1e-12)
    miss = np.linalg.norm(take.global_positions - p, axis=-1)
    assert miss.max() < 0.0025  # MVN's shoulders slide by 1.9 mm in this file
    fit = take.facts["fk_error_mm"]
    assert isinstance(fit, dict) and abs(fit["max"] - 1e3 * miss.max()) < 1e-6 and abs(fit["mean"] - 1e3 * miss[:, 1:].mean()) < 1e-6
    contacts = np.array([[int(v) for v in (f.findtext(f"{NS}footContacts") or "").split()] for f in frames])
    np.testing.assert_array_equal(np.stack(list(take.curves.values()), axis=1), contacts)
    assert take.facts["configuration"] == "UpperBody" and take.notes == ()


def test_real_version_3_has_isb_frames() -> None:
    names, _, p, _ = by_etree(need(V3))
    (take,) = mvnx.read(V3)
    assert list(take.skeleton.names) == names and take.rate == 240 and take.frames == 4
    # Read as they are written, the links miss the file's own positions by up to 600 mm; in body frames they fit.
    assert np.linalg.norm(take.global_positions - p, axis=-1).max() < 0.0002
    arm, hand = (take.skeleton.rest_global_positions[take.skeleton.index(n)] for n in ("LeftUpperArm", "LeftHand"))
    np.testing.assert_allclose(hand - arm, [0.0, hand[1] - arm[1], 0.0], atol=0.01)
    np.testing.assert_allclose(take.times, np.arange(4) / 240.0, atol=1e-12)


def test_real_tpose_of_version_4_stands_as_the_file_says() -> None:
    root = ET.parse(need(V4)).getroot()
    frame = next(f for f in root.iter(f"{NS}frame") if f.get("type") == "tpose")
    p = np.array([float(v) for v in (frame.findtext(f"{NS}position") or "").split()]).reshape(-1, 3)
    (take,) = mvnx.read(V4)
    np.testing.assert_allclose(take.skeleton.rest_global_positions, p, atol=2e-6)
