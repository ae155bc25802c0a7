# SPDX-License-Identifier: GPL-3.0-or-later
"""What the MVNX tests share: reading a made-up file, and holding a take against what was written."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from mocap_addon.formats import mvnx
from mocap_addon.motion.take import Take

from .mvnx_writer import BODY, Made


def written(tmp_path: Path, made: Made) -> Take:
    (take,) = mvnx.read(made.write(tmp_path / "made.mvnx"))
    return take


def degrees_between(take: Take, name: str, truth: Rotation) -> float:
    got = take.global_rotations[:, take.skeleton.index(name)]
    return float(np.degrees((truth.inv() * Rotation.from_quat(got[:, [1, 2, 3, 0]])).magnitude()).max())


def check_motion(take: Take, made: Made, names=tuple(BODY)) -> None:
    for name in names:
        j = take.skeleton.index(name)
        assert degrees_between(take, name, made.rotations[name]) < 2e-4, name
        assert np.abs(take.global_positions[:, j] - made.places[name]).max() < 2e-5, name
