# SPDX-License-Identifier: GPL-3.0-or-later
"""T-poses of real skeletons whose rest is no body, worked out by hand (see the TOML files)."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

AXES = {"left": (1, 0, 0), "right": (-1, 0, 0), "back": (0, 1, 0), "ahead": (0, -1, 0), "up": (0, 0, 1), "down": (0, 0, -1)}


def tables() -> dict[str, dict[str, Rotation]]:
    """File (below the shared data) -> joint -> its rotation in the T-pose, in character axes."""
    out: dict[str, dict[str, Rotation]] = {}
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        poses = {name: _rotation(axes, table["tipped"].get(name, 0.0)) for name, axes in table["joints"].items()}
        out |= dict.fromkeys(table["files"], poses)
    return out


def _rotation(axes: list[str], tipped: float) -> Rotation:
    matrix = np.array([AXES[a] for a in axes], dtype=float).T
    assert np.linalg.det(matrix) == 1.0, axes
    return Rotation.from_euler("x", tipped, degrees=True) * Rotation.from_matrix(matrix)
