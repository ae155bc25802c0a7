# SPDX-License-Identifier: GPL-3.0-or-later
"""Morph weights of glTF files and expressions of VRM animations as curves."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from mocap_addon.formats import gltf_take
from mocap_addon.motion.errors import FileError
from tests.formats.gltf_writer import Gltf


def _with_face(target_names: list[str] | None, values, times, interpolation: str | None = None, *, targets: int = 2) -> Gltf:
    made = Gltf()
    hips = made.node("Hips", translation=[0, 1, 0])
    head = made.node("Head", hips, translation=[0, 0.5, 0])
    made.skin([hips, head])
    face = made.node("Face", mesh=0)
    extras = {} if target_names is None else {"extras": {"targetNames": target_names}}
    made.data["meshes"] = [{"name": "face", "primitives": [{"attributes": {}, "targets": [{}] * targets}], **extras}]
    moved = made.animation("talk")
    made.channel(moved, head, "rotation", times, [[0, 0, 0, 1]] * len(times))
    flat = made.accessor(np.asarray(values, dtype=float).reshape(-1, 1))
    made.channel(moved, face, "weights", np.asarray(times, dtype=float), flat, interpolation)
    return made


def test_morph_weights_are_curves_by_the_targets_names(tmp_path: Path) -> None:
    times = np.arange(4) / 30.0
    made = _with_face(["jawOpen", "eyeBlinkLeft"], [[0, 1], [0.25, 0.5], [0.5, 0.25], [1, 0]], times)
    (take,) = gltf_take.read(made.save(tmp_path / "talk.glb"))
    assert take.rate == 30 and take.facts["morphs"] == ("jawOpen", "eyeBlinkLeft")
    assert np.allclose(take.curves["jawOpen"], [0, 0.25, 0.5, 1]) and np.allclose(take.curves["eyeBlinkLeft"], [1, 0.5, 0.25, 0])
    assert np.allclose(take.resampled(Fraction(60)).curves["jawOpen"], np.interp(np.arange(7) / 60, times, [0, 0.25, 0.5, 1]), atol=1e-6)


def test_morphs_without_names_steps_and_splines(tmp_path: Path) -> None:
    times = np.arange(3) / 30.0
    (take,) = gltf_take.read(_with_face(None, [[0, 1], [1, 0], [0.5, 0.5]], times).save(tmp_path / "a.glb"))
    assert list(take.curves) == ["face 0", "face 1"]
    held = _with_face(["open"], [[0], [1]], [0.0, 0.1], "STEP", targets=1)
    (take,) = gltf_take.read(held.save(tmp_path / "b.glb"))
    assert take.curves["open"].tolist()[:2] == [0.0, 0.0] and take.curves["open"][-1] == 1.0
    spline = [[[0.0], [0.2], [0.0]], [[0.0], [0.8], [0.0]]]  # in-tangent, value, out-tangent: flat at both ends
    (take,) = gltf_take.read(_with_face(["open"], spline, [0.0, 0.1], "CUBICSPLINE", targets=1).save(tmp_path / "c.glb"))
    middle = take.curves["open"][len(take.curves["open"]) // 2]
    u = take.times[len(take.times) // 2] / 0.1
    assert middle == pytest.approx(0.2 + 0.6 * (3 * u**2 - 2 * u**3), abs=1e-6)


def test_weights_of_the_wrong_count_are_damage(tmp_path: Path) -> None:
    made = _with_face(["a", "b"], [[0, 1], [1, 0]], [0.0, 0.1, 0.2])
    with pytest.raises(FileError, match="damaged"):
        gltf_take.read(made.save(tmp_path / "bad.glb"))


def test_expressions_of_a_vrm_animation_are_curves(tmp_path: Path) -> None:
    made = Gltf()
    hips = made.node("Hips", translation=[0, 1, 0])
    head = made.node("Head", hips, translation=[0, 0.5, 0])
    aa, own = made.node("aa"), made.node("wink")
    made.humanoid({"hips": hips, "head": head})
    made.data["extensions"]["VRMC_vrm_animation"]["expressions"] = {"preset": {"aa": {"node": aa}}, "custom": {"wink": {"node": own}}}
    moved = made.animation("talk")
    times = np.arange(3) / 30.0
    made.channel(moved, head, "rotation", times, [[0, 0, 0, 1]] * 3)
    made.channel(moved, aa, "translation", times, [[0, 0, 0], [0.5, 0, 0], [1, 0, 0]])
    (take,) = gltf_take.read(made.save(tmp_path / "talk.vrma"))
    assert take.facts["morphs"] == ("aa",) and np.allclose(take.curves["aa"], [0, 0.5, 1])
