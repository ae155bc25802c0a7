# SPDX-License-Identifier: GPL-3.0-or-later
"""Small BVH texts for tests, and how to read them."""

from __future__ import annotations

from pathlib import Path

from mocap_addon import formats
from mocap_addon.motion.take import Take

ARM = """HIERARCHY
ROOT Hips
{
  OFFSET 0 9 0
  CHANNELS 6 Xposition Yposition Zposition Zrotation Yrotation Xrotation
  JOINT Arm
  {
    OFFSET 0 50 0
    CHANNELS 3 Zrotation Yrotation Xrotation
    End Site
    {
      OFFSET 0 25 0
    }
  }
}
"""
ROWS = ["1 2 3 10 20 30 40 50 60", "1.5 2.5 3.5 11 21 31 41 51 61", "2 3 4 12 22 32 42 52 62"]


def motion(rows: list[str], frames: int | None = None, frame_time: str = "0.05") -> str:
    """The MOTION part with these rows."""
    return f"MOTION\nFrames: {len(rows) if frames is None else frames}\nFrame Time: {frame_time}\n" + "\n".join(rows) + "\n"


ARM_FILE = ARM + motion(ROWS)


def read_text(folder: Path, text: str | bytes, options: formats.ReadOptions | None = None) -> list[Take]:
    """The takes of a text, written as UTF-8."""
    path = folder / "take.bvh"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return formats.read(path, options)
