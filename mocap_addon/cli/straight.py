# SPDX-License-Identifier: GPL-3.0-or-later
"""``mocap convert clip.anim`` without a character: Unity's clips straight to three.js clips and BVH. Needs no Blender."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from ..motion.errors import MocapError
from ..motion.timeline import format_rate
from . import FAILED, OK, naming
from .output import Output

if TYPE_CHECKING:
    from ..formats.unity_clip import UnityClip

FORMATS = ("threejs", "bvh")
SUFFIX = ".anim"


def possible(takes: Iterable[str]) -> bool:
    """Whether all files are clips that need no character."""
    return all(word.lower().endswith(SUFFIX) for word in takes)


def run(options: argparse.Namespace, paths: list[Path], folder: Path, out: Output) -> int:
    """Convert every clip; 1 if one failed."""
    from ..formats import unity_clip

    wanted = [name for name in FORMATS if name in options.formats]
    if not wanted:
        out.failure(f"Without a character only {' and '.join(FORMATS)} files can be written; give --character for the others.")
        return FAILED
    names = naming.Names(folder, paths)
    failed = False
    for path in paths:
        try:
            for clip in unity_clip.read_clips(path):
                _one(clip, path, wanted, options, folder, names, out)
        except MocapError as error:
            out.failure(str(error), take=path.stem, source=str(path))
            failed = True
    return FAILED if failed else OK


def _one(
    clip: UnityClip, path: Path, wanted: list[str], options: argparse.Namespace, folder: Path, names: naming.Names, out: Output
) -> None:
    from .. import formats
    from ..formats import threejs, unity_anim, unity_threejs
    from .reading import read_options

    rate = options.fps if isinstance(options.fps, Fraction) else None
    made, notes = unity_threejs.to_clip(clip, rate=rate, unit=options.unit or 1.0)
    stem = names.stem(clip.name)
    files: dict[str, str] = {}
    if "threejs" in wanted:
        file = folder / (stem + naming.SUFFIXES["threejs"])
        threejs.write(file, [made])
        files["threejs"] = str(file)
    if "bvh" in wanted:
        take = unity_anim.to_take(clip, read_options(options))
        if len(take.skeleton) > 1:
            file = folder / (stem + naming.SUFFIXES["bvh"])
            formats.write(take if rate is None else take.resampled(rate), file)
            files["bvh"] = str(file)
            notes += [note for note in take.notes if note not in notes]
    record: dict[str, object] = {
        **{
            "take": clip.name,
            "source": str(path),
            "frames": len(made.times),
            "fps": float(rate or clip.rate),
            "rate": str(rate or clip.rate),
        },
        **{"duration_s": made.duration, "tracks": len(made.tracks), "loop": clip.loop, "warnings": notes, "files": files},
    }
    frames = "1 frame" if len(made.times) == 1 else f"{len(made.times)} frames"
    out.result(
        record,
        [
            f"{clip.name}: {frames} at {format_rate(rate or clip.rate)} fps, {made.duration:.2f} s; {_counted(len(made.tracks))}",
            *(f"  note: {note}" for note in notes),
            *(f"  {name:<8} {file}" for name, file in files.items()),
        ],
    )


def _counted(tracks: int) -> str:
    return "1 track" if tracks == 1 else f"{tracks} tracks"
