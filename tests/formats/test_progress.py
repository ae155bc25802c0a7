# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress and cancel reach the readers of large files through the one way in."""

from __future__ import annotations

import pytest

from mocap_addon import formats
from mocap_addon.motion.errors import MocapError

from .mvnx_writer import Made


def test_large_formats_tell_and_can_be_cancelled(tmp_path):
    path = Made(frames=1500).write(tmp_path / "long.mvnx")
    shares: list[float] = []
    formats.read(path, progress=shares.append)
    assert len(shares) >= 3 and shares == sorted(shares) and shares[-1] == 1.0
    with pytest.raises(MocapError, match="cancelled"):
        formats.read(path, progress=lambda share: share < 0.5)


def test_a_reader_that_cannot_tell_is_not_asked(tmp_path):
    path = tmp_path / "a.bvh"
    path.write_text(
        "HIERARCHY\nROOT Hips\n{\nOFFSET 0 0 0\nCHANNELS 3 Zrotation Yrotation Xrotation\nEnd Site\n{\nOFFSET 0 1 0\n}\n}\n"
        "MOTION\nFrames: 1\nFrame Time: 0.1\n0 0 0\n"
    )
    shares: list[float] = []
    assert len(formats.read(path, progress=shares.append)) == 1
    assert shares == []
