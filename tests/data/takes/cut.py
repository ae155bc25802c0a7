# SPDX-License-Identifier: GPL-3.0-or-later
"""Makes the two CMU excerpts of this folder from the whole takes: ``python cut.py FOLDER_WITH_THE_TAKES``.

Only rows are left out and the number of frames is changed; every kept byte is the original's.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
EXCERPTS = {
    "cmu_walk_60rows.bvh": ("asf_02_01_walk.bvh", 60),
    "cgspeed_walk_24rows_crlf.bvh": ("cgspeed_12_01_walk.bvh", 24),
}


def cut(whole: bytes, rows: int) -> bytes:
    """The head of a BVH file with its first rows."""
    end = re.search(rb"Frame Time:[^\n]*\n", whole)
    assert end is not None
    head = re.sub(rb"(Frames:\s*)\d+", rb"\g<1>%d" % rows, whole[: end.end()])
    return head + b"".join(whole[end.end() :].splitlines(keepends=True)[:rows])


if __name__ == "__main__":
    for name, (source, rows) in EXCERPTS.items():
        (HERE / name).write_bytes(cut((Path(sys.argv[1]) / source).read_bytes(), rows))
