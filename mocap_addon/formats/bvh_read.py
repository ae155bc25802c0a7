# SPDX-License-Identifier: GPL-3.0-or-later
"""BVH files to takes."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..motion import timeline
from ..motion.errors import FileError
from ..motion.skeleton import Skeleton
from ..motion.take import Take
from . import settle
from .bvh_header import Header, Joint
from .bvh_motion import ChannelMotion
from .bvh_rows import RowReport, read_rows
from .bvh_text import BvhText
from .options import ReadOptions

Array = NDArray[np.float64]

_ASSUMED_RATE = Fraction(30)
_MOST_VALUES_PER_NUMBER = 50  # joint values a file may ask for with each number it holds


def read(path: str | Path, options: ReadOptions | None = None) -> list[Take]:
    """The takes of a BVH file, one for each ROOT.

    Parameters
    ----------
    path : path
    options : ReadOptions, optional
        Rate, up axes and unit instead of those found.

    Returns
    -------
    list of Take
        In the project's axes and metres. ``notes`` say what was odd, ``facts`` what was found.

    Raises
    ------
    FileError
        With the line, where the file cannot be read.
    """
    path = Path(path)
    options = options or ReadOptions()
    try:
        with path.open("rb") as file:
            return _read(BvhText(file, path), options)
    except OSError as error:
        raise FileError(f"The file cannot be read ({error.strerror or error}).", path) from None
    except MemoryError:
        raise FileError("The file needs more memory than there is; cut it into shorter takes.", path) from None


def _read(text: BvhText, options: ReadOptions) -> list[Take]:
    header = text.header
    bodies = _bodies(header.joints)
    report = RowReport()
    collectors: list[ChannelMotion] = []
    if header.columns:
        for rows in read_rows(text, report):
            if not collectors:
                capacity = _expected_rows(text, len(rows))
                _check_size(text, capacity)
                collectors = [ChannelMotion(body, capacity) for body in bodies]
            for collector in collectors:
                collector.add(rows)
    collectors = collectors or [ChannelMotion(body, 0) for body in bodies]
    rate, rate_notes = _rate(header, options)
    notes = [*header.notes, *report.notes(header.columns), *_count_notes(header, collectors[0].frames), *rate_notes]
    names = _take_names(text.path.stem, [body[0].name for body in bodies])
    parts = zip(names, bodies, collectors, strict=True)
    return [_take(name, body, collector, rate, notes, header, options) for name, body, collector in parts]


def _take_names(stem: str, roots: list[str]) -> list[str]:
    """The file's name; with several roots followed by theirs, or by a number where those are alike."""
    if len(roots) == 1:
        return [stem]
    alike = len(set(roots)) < len(roots)
    return [f"{stem} {i if alike else root}" for i, root in enumerate(roots, 1)]


def _bodies(joints: list[Joint]) -> list[list[Joint]]:
    """The joints below each ROOT, parents counted from their own root."""
    out: list[list[Joint]] = []
    start = 0
    for i, joint in enumerate(joints):
        if joint.parent < 0:
            start = i
            out.append([])
        out[-1].append(replace(joint, parent=joint.parent - start if joint.parent >= 0 else -1))
    return out


def _expected_rows(text: BvhText, in_first_block: int) -> int:
    """How many rows to make room for: what the file's size says, or what it declares where that fits its size."""
    pieces = max(1.0, text.size / max(1, text.first_piece))
    estimate = in_first_block if pieces <= 1.0 else int(in_first_block * pieces * 1.03) + 16
    declared = text.header.frames
    return declared if declared is not None and 0.8 * estimate <= declared <= 1.2 * estimate else estimate


def _check_size(text: BvhText, rows: int) -> None:
    """Refuse what no motion file holds: thousands of joints that are fed by a handful of channels for ever."""
    joints, columns = len(text.header.joints), text.header.columns
    if joints * 7 > _MOST_VALUES_PER_NUMBER * columns and joints * rows > 5_000_000:
        raise FileError(
            f"The file has {rows} frames of {joints} joints and only {columns} channels for them; it is damaged or no motion capture.",
            text.path,
        )


def _rate(header: Header, options: ReadOptions) -> tuple[Fraction, list[str]]:
    if options.rate is not None:
        return options.rate, []
    seconds = header.frame_time
    if seconds is None:
        return _ASSUMED_RATE, ["The file gives no Frame Time; 30 frames a second were assumed, say the rate if it is another."]
    if not (math.isfinite(seconds) and 1e-5 <= seconds <= 1e4):
        return _ASSUMED_RATE, [
            f"The Frame Time {seconds:g} is no duration; 30 frames a second were assumed, say the rate if it is another."
        ]
    digits = header.frame_time_digits
    rate = timeline.rate_from_frame_time(seconds, digits)
    if rate not in timeline.COMMON_RATES and digits is not None:
        # 1 / 23.976 written in full: the three decimals of the rate stand for 24000/1001
        named = timeline.parse_rate(f"{float(rate):.3f}")
        if named in timeline.COMMON_RATES and abs(float(named) * seconds - 1.0) < 2e-6:
            rate = named
    return rate, [f"The Frame Time is {seconds:g} seconds; if that is meant as a rate, say so."] if seconds >= 1.0 else []


def _count_notes(header: Header, frames: int) -> list[str]:
    if not header.columns:
        return ["The hierarchy announces no channels; the take is a skeleton without frames."]
    if not header.motion_line or header.frames in (None, frames):
        return []
    return [f'The file says "Frames: {header.frames}" and holds {frames} rows; the rows count.']


def _take(
    name: str, body: list[Joint], collector: ChannelMotion, rate: Fraction, notes: list[str], header: Header, options: ReadOptions
) -> Take:
    """One body's take, turned and scaled into the project's axes."""
    rotations, translations, valid, own_notes = collector.finish()
    skeleton = Skeleton(
        names=tuple(j.name for j in body),
        parents=np.array([j.parent for j in body], dtype=np.int64),
        rest_translations=collector.offsets,
        ends=np.array([j.end or (math.nan, math.nan, math.nan) for j in body], dtype=np.float64),
    )
    take = Take(
        name=name,
        skeleton=skeleton,
        times=timeline.uniform_times(len(rotations), rate),
        local_rotations=rotations,
        local_translations=translations,
        rate=rate,
        valid=valid,
        performer=body[0].name if len(header.joints) > len(body) else "",
        notes=(*notes, *own_notes),
        facts={
            "format": "BVH",
            "frames": len(rotations),
            "rate": timeline.format_rate(rate),
            "frame_time": header.frame_time,
            "joints": len(body),
            "channels": _channel_summary(body),
        },
    )
    return settle.into_project_axes(take, options)


def _channel_summary(body: list[Joint]) -> str:
    """``6 at the root, 3 elsewhere; rotation order ZYX``, as a person reads it."""
    counts = sorted({len(j.channels) for j in body[1:]})
    orders = list(dict.fromkeys("".join("XYZ"[axis] for kind, axis in j.channels if kind == "rot") for j in body))
    elsewhere = f", {' or '.join(map(str, counts))} elsewhere" if counts else ""
    return f"{len(body[0].channels)} at the root{elsewhere}; rotation order {', '.join(o for o in orders if o) or 'none'}"
