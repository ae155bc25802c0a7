# SPDX-License-Identifier: GPL-3.0-or-later
"""``mocap demo``: a real walk on a character that comes with it; something to look at within half a minute."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from ..motion.errors import FileError, MocapError
from . import FAILED, OK, interrupt, reading
from .convert import make_folder
from .output import Output

PACKAGE = Path(__file__).resolve().parent.parent
CHARACTER = PACKAGE / "demo" / "character.glb"
TAKES: tuple[tuple[Path, str], ...] = (
    (
        PACKAGE.parent / "demo" / "takes" / "cmu_02_01_walk.bvh",
        "The walk was obtained from mocap.cs.cmu.edu; the database was created with funding from NSF EIA-0196217.",
    ),
    (PACKAGE / "demo" / "zombieWalk1.bvh", "The walk is from MakeHuman (CC0)."),
)
"""A walk of the repository, whose licence keeps it out of releases, then one that is always there; each with its credit."""

PHASES = 7


def run(options: argparse.Namespace, out: Output) -> int:
    """Make the demo; 1 if it cannot be made."""
    try:
        folder = make_folder(options.out)
        path, credit = next(((p, c) for p, c in TAKES if p.is_file()), TAKES[-1])
        with interrupt.Held() as held, out.while_blender_works(verbose=options.verbose):
            record = _make(path, folder)
            held.check()
            record["credit"] = credit
            out.result(record, _lines(record, options.out, options.called))
    except MocapError as error:
        out.failure(str(error))
        return FAILED
    return OK


def _make(path: Path, folder: Path) -> dict[str, Any]:
    from ..blender import picture
    from . import exports
    from .stage import Stage

    start = perf_counter()
    take = reading.read(path)[0]
    with Stage(CHARACTER) as stage:
        obj = stage.set(take.rate)
        result = stage.retarget(obj, take, None)
        formats = ("blend", "threejs")
        files, notes = exports.write(formats, exports.Finished(obj, result, CHARACTER), folder, "walk")
        files["character"] = str(_copy(CHARACTER, folder / "walk.character.glb"))
        first, last = result.action.frame_range
        files["picture"] = str(picture.strip(folder / "walk.png", obj, [float(f) for f in np.linspace(first, last, PHASES)]))
        return {
            "take": take.name,
            "source": str(path),
            "character": str(CHARACTER),
            "action": result.action.name,
            "frames": len(result.motion.times),
            "fps": float(stage.rate),
            "duration_s": take.duration,
            "warnings": list(dict.fromkeys([*result.notes, *notes])),
            "files": files,
            "timing_s": {"all": round(perf_counter() - start, 3)},
        }


def _copy(source: Path, target: Path) -> Path:
    hidden = target.with_name(f".mocap-{os.getpid()}{target.suffix}")
    try:
        shutil.copyfile(source, hidden)
        os.replace(hidden, target)
    except OSError as error:
        raise FileError(f"The file cannot be written there ({error.strerror or error}).", target) from None
    finally:
        hidden.unlink(missing_ok=True)
    return target


def _lines(r: dict[str, Any], folder: str, called: str) -> list[str]:
    files = r["files"]
    return [
        f"A walk of {r['frames']} frames at {r['fps']:g} fps is on the character. In {os.path.abspath(folder)}:",
        f"  {Path(files['blend']).name:<20} open it in Blender and press Space",
        f"  {Path(files['picture']).name:<20} the walk in one picture",
        f"  {Path(files['threejs']).name:<20} the motion for three.js; it plays on {Path(files['character']).name}",
        "",
        "Your own takes go the same way:",
        f"  {called} info TAKE.bvh",
        f"  {called} convert TAKE.bvh --character CHARACTER.glb --out FOLDER",
        r["credit"],
    ]
