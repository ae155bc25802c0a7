# SPDX-License-Identifier: GPL-3.0-or-later
"""``--feet`` and ``--ground`` of ``mocap convert``: feet planted before anything is written."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import bpy

    from ..blender.feet_recipe import GroundChoice
    from ..blender.job import JobResult

MODES = ("plant", "als", "off")
WORDS = ("plane", "none", "scene")
"""What ``--ground`` may be besides a file."""


def planted(obj: bpy.types.Object, result: JobResult, words: argparse.Namespace) -> tuple[JobResult, dict[str, Any] | None]:
    """The result with its feet planted as the command says, and what to report of it; as it is without ``--feet``.

    Raises
    ------
    MocapError
        The ground cannot be read, or the character has no feet.
    """
    if words.feet is None:
        return result, None
    from ..blender import feet
    from ..blender.feet_recipe import FeetOptions
    from ..feet.settings import FeetSettings

    with _ground(words.ground) as choice:
        options = FeetOptions(FeetSettings(mode=words.feet), choice)
        bake = feet.check_feet(obj, options) if words.feet == "off" else feet.bake_feet(obj, options)
    record = {"mode": words.feet, "ground": words.ground, "report": bake.report, "footprints": bake.footprints}
    return (result if words.feet == "off" else feet.onto_job(result, bake)), record


@contextmanager
def _ground(word: str) -> Iterator[GroundChoice]:
    from ..blender import ground_files
    from ..blender.feet_recipe import GroundChoice

    if word in WORDS:
        kinds: Mapping[str, Any] = {"plane": "plane", "none": "floor", "scene": "scene"}
        yield GroundChoice(kinds[word])
        return
    with ground_files.brought_in(Path(word)) as objects:
        yield GroundChoice("objects", tuple(obj.name for obj in objects))


def lines(record: Mapping[str, Any] | None) -> list[str]:
    """What a person reads of it."""
    if record is None:
        return []
    report = record["report"]
    before, after = report.get("before") or {}, report.get("after") or {}
    contacts = report.get("contacts") or []
    figures = [
        f"{name} {before[key]:.1f} -> {after[key]:.1f} {unit}"
        for name, key, unit in (
            ("sliding", "skate_cm_s", "cm/s"),
            ("below the ground", "penetration_contact_mm", "mm"),
            ("above it", "gap_mm", "mm"),
        )
        if key in before and key in after
    ]
    return [f"  feet: {len(contacts)} contacts" + "".join(f", {figure}" for figure in figures)]


def add(p: argparse.ArgumentParser) -> None:
    """The options."""
    group = p.add_argument_group("feet on the ground")
    group.add_argument(
        "--feet",
        choices=MODES,
        help="plant: hold every contact at one place, knowing what comes; als: as the Advanced Locomotion System of games does; "
        "off: measure only",
    )
    group.add_argument(
        "--ground",
        default="plane",
        metavar="FILE|plane|scene|none",
        help="what the feet stand on: a file with meshes (.blend, .glb, .gltf, .fbx, .obj, .ply, .stl), the plane z = 0 (the default), "
        "what is in the character's file, or nothing but the level at which the feet are lowest",
    )
