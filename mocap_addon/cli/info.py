# SPDX-License-Identifier: GPL-3.0-or-later
"""``mocap info``: what is in a file, what was guessed, and which joint is which. Needs no Blender."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..motion.errors import MocapError
from . import FAILED, OK, character_files, reading
from .output import Output

if TYPE_CHECKING:
    from ..motion.take import Take
    from ..retarget.neutral import Found
    from ..rig.roles import RoleMap

DOUBTFUL = 0.75
"""A match below this is worth a look."""


def run(options: argparse.Namespace, out: Output) -> int:
    """Describe every file; 1 if one could not be read."""
    # Inside Blender, what it printed at its start may still be waiting in a buffer.
    with out.while_blender_works() if "bpy" in sys.modules else nullcontext():
        return _all(options, out)


def _all(options: argparse.Namespace, out: Output) -> int:
    code = OK
    for path in reading.expanded(options.files):
        try:
            if character_files.is_character(path):
                record, sentence = character_files.describe(path)
                out.result(record, [f"{path.name}: {sentence}"])
                takes = _animations(path, options) if record.get("animations") else []
            else:
                takes = reading.read(path, options)
            for take in takes:
                _describe(path, take, options, out)
        except MocapError as error:
            out.failure(str(error), file=str(path))
            code = FAILED
        except BrokenPipeError:
            raise
        except Exception as error:
            out.unexpected(error, verbose=options.verbose, file=str(path))
            code = FAILED
    return code


def _animations(path: Path, options: argparse.Namespace) -> list[Take]:
    """A character file's animations as takes. That none moves a skeleton is no fault of a character."""
    with suppress(MocapError):
        return reading.read(path, options)
    return []


def _describe(path: Path, take: Take, options: argparse.Namespace, out: Output) -> None:
    from ..retarget.neutral import find_reference
    from ..rig import match, rest_pose

    roles = match(take.skeleton)
    record = _record(path, take, roles, rest_pose.describe(take.skeleton, roles), find_reference(take, roles))
    out.result(record, _lines(record, verbose=options.verbose))


def _record(path: Path, take: Take, roles: RoleMap, pose: str, reference: Found) -> dict[str, object]:
    facts: Mapping[str, object] = take.facts
    names = take.skeleton.names
    return {
        "file": str(path),
        "kind": "take",
        "take": take.name,
        "format": facts.get("format", path.suffix[1:]),
        "frames": take.frames,
        "fps": None if take.rate is None else float(take.rate),
        "rate": None if take.rate is None else str(take.rate),
        "duration_s": take.duration,
        "unit_m": facts.get("unit"),
        "up": facts.get("up"),
        "facing": facts.get("facing"),
        "rest_pose": pose,
        "reference": {"how": reference.how, "frame": reference.frame, "confidence": reference.confidence},
        "joints": len(names),
        "performer": take.performer,
        "timecode": take.timecode,
        "family": roles.family,
        "roles": {role: [names[j] for j in joints] for role, joints in roles.joints.items() if joints},
        "missing": list(roles.missing()),
        "doubtful": sorted(role for role, sure in roles.confidence.items() if sure < DOUBTFUL and roles.joints.get(role)),
        "curves": sorted(take.curves),
        "props": sorted(take.props),
        "warnings": [*take.notes, *reference.notes, *roles.notes],
        "facts": {key: value for key, value in facts.items() if isinstance(value, (str, int, float, bool)) and key != "table"},
    }


def _lines(record: dict[str, object], *, verbose: bool) -> list[str]:
    r = record
    rate = "no fixed rate" if r["fps"] is None else f"{r['fps']:.6g} fps"
    roles: dict[str, list[str]] = r["roles"]  # type: ignore[assignment]
    missing, doubtful = r["missing"], r["doubtful"]
    lines = [
        f"{Path(str(r['file'])).name}: {r['take']}",
        f"  motion    {r['frames']} {'frame' if r['frames'] == 1 else 'frames'} at {rate}, {r['duration_s']:.2f} s ({r['format']})",
        f"  space     {_space(r)}",
        f"  skeleton  {r['joints']} joints, named like {r['family'] or 'nothing known'}; rest pose: {r['rest_pose']}",
        f"  roles     {len(roles)} found" + (f"; doubtful: {', '.join(doubtful)}" if doubtful else ""),  # type: ignore[arg-type]
    ]
    reference: dict[str, object] = r["reference"]  # type: ignore[assignment]
    if reference["how"] != "rest":
        found = {
            "motion": "found in the motion",
            "frame": f"found in frame {reference['frame']}",
            "family": "known for this make of skeleton",
        }
        lines.append(f"  reference {found[str(reference['how'])]}, {reference['confidence']:.0%} sure")
    if missing:
        lines.append(f"  missing   {', '.join(missing)}")  # type: ignore[arg-type]
    if verbose:
        lines += [f"    {role:<16} {', '.join(joints)}" for role, joints in roles.items()]
    return [*lines, *(f"  note: {note}" for note in r["warnings"])]  # type: ignore[attr-defined]


def _space(r: dict[str, object]) -> str:
    unit = r["unit_m"]
    parts = [f"1 unit is {float(unit) * 100:.4g} cm" if isinstance(unit, (int, float)) else "unit unknown"]  # type: ignore[arg-type]
    parts += [f"{key} {r[key]}" for key in ("up", "facing") if r[key]]
    return ", ".join(parts)
