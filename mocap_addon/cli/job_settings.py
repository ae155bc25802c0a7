# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of ``mocap convert`` and the settings of its table file as one set of options; what is said in the command comes first."""

from __future__ import annotations

import argparse
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from .arguments import MORPH_UNITS

if TYPE_CHECKING:
    from ..blender.job import JobOptions
    from ..retarget.extras import Extras
    from ..retarget.root_motion import RootMotion
    from ..rig.table import CorrectionTable

_ROOT = {
    "--root": ("destination", "root"),
    "--root-source": ("source", "root_source"),
    "--root-axes": ("axes", "root_axes"),
    "--heading": ("heading", "heading"),
    "--height": ("height", "height"),
    "--origin": ("origin", "origin"),
    "--root-smoothing": ("smoothing", "root_smoothing"),
}


def job_options(words: argparse.Namespace, table: CorrectionTable | None) -> JobOptions:
    """The options of a job.

    Raises
    ------
    MocapError
        The settings in the table file, or a time code, are not right.
    """
    from ..blender import settings_file
    from ..blender.job import JobOptions

    stored = settings_file.settings_in(table) if table is not None else None
    given: frozenset[str] = words.given
    out = stored or JobOptions()
    if stored is None or given & {"--reference", "--reference-frame"}:
        out = replace(out, reference_frame=words.reference_frame)
    if stored is None or "--controls" in given:
        out = replace(out, controls=words.controls)
    return replace(out, rate="scene", root=_root(words, out.root, given), extras=_extras(words, out.extras, given))


def rate(words: argparse.Namespace, table: CorrectionTable | None) -> Fraction | str:
    """The rate of the keys: the command's, else the file's."""
    from ..blender import settings_file

    stored = settings_file.settings_in(table) if table is not None and "--fps" not in words.given else None
    return words.fps if stored is None else stored.rate


def notes(table: CorrectionTable | None) -> list[str]:
    """What is to be said of a table file."""
    from ..blender import settings_file

    return settings_file.strange_keys(table) if table is not None else []


def _root(words: argparse.Namespace, before: RootMotion, given: frozenset[str]) -> RootMotion:
    from typing import Any

    said: dict[str, Any] = {name: getattr(words, dest) for flag, (name, dest) in _ROOT.items() if flag in given}
    return replace(before, **said)


def _extras(words: argparse.Namespace, before: Extras, given: frozenset[str]) -> Extras:
    code, morphs, props = before.time_code, before.morphs, before.props
    if "--timecode" in given:
        off = words.timecode.strip().lower() == "off"
        code = replace(code, use=not off, start="" if off else words.timecode)
    if "--timecode-rate" in given:
        code = replace(code, rate=words.timecode_rate)
    if "--morphs" in given:
        morphs = replace(morphs, use=words.morphs[0], names=words.morphs[1])
    if "--morph-unit" in given:
        morphs = replace(morphs, unit=MORPH_UNITS[words.morph_unit])
    props = replace(props, use=props.use or words.props)
    scales = before.scales or words.bone_scale
    return replace(before, time_code=code, morphs=morphs, props=props, markers=before.markers or words.markers, scales=scales)
