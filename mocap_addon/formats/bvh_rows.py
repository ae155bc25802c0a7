# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of a BVH file's MOTION part: text to arrays, and what is wrong with single rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..motion.errors import FileError
from .bvh_text import BvhText
from .numbers import Numbers, parse, unify_commas

Array = NDArray[np.float64]
Indices = NDArray[np.int64]

_LARGEST = 1e9  # a larger value is a damaged one


@dataclass
class RowReport:
    """What was found while the rows were read; turned into remarks by :meth:`notes`."""

    commas: str = ""
    flowing: bool = False
    rows: int = 0
    bad_rows: list[int] = field(default_factory=list[int])  # lines, the first few
    bad_row_count: int = 0
    bad_values: int = 0
    first_bad_value: int = 0  # line
    cut_off: int = 0  # line

    def notes(self, columns: int) -> list[str]:
        """One plain sentence for each kind of thing that was found."""
        out: list[str] = []
        if self.commas:
            out.append(f"The numbers are written with commas, which were read as {self.commas}.")
        if self.flowing:
            out.append("The rows of numbers are not one to a line; they were counted off by the number of channels.")
        if self.bad_row_count:
            some = ", ".join(map(str, self.bad_rows)) + (", ..." if self.bad_row_count > len(self.bad_rows) else "")
            out.append(
                f"{self.bad_row_count} of {self.rows} rows do not have {columns} numbers (line {some}); "
                "they are marked as invalid and show the pose before them."
            )
        if self.bad_values:
            out.append(
                f"{self.bad_values} values are not numbers (the first on line {self.first_bad_value}); "
                "they are marked as invalid and show the value before them."
            )
        if self.cut_off:
            out.append(f"The last row (line {self.cut_off}) is cut off; it was left out.")
        return out


def read_rows(text: BvhText, report: RowReport) -> Iterator[Array]:
    """Blocks of rows ``(n, columns)``, file units and degrees; NaN where there is no number.

    Raises
    ------
    FileError
        Where the rows cannot belong to the hierarchy.
    """
    columns = text.header.columns
    line = text.header.motion_line
    carried = b""
    pieces = text.pieces()
    piece = next(pieces, None)
    first = True
    while piece is not None:
        following = next(pieces, None)
        block = _commas(carried + piece, report)
        numbers = parse(block)
        if first and len(numbers.values) < 2 * columns and following is not None:
            piece += following  # two rows are needed to see how they lie on the lines
            continue
        ends = _line_ends(block)
        counts = np.searchsorted(numbers.starts, ends)
        if first and len(numbers.values):
            report.flowing = _is_flowing(counts, columns, last=following is None)
            first = False
        _count_bad_values(numbers, ends, line, report)
        if report.flowing:
            rows, used = _flowing_rows(numbers, columns)
            at = int(numbers.starts[used]) if used < len(numbers.values) else len(block)
            if following is None and at < len(block):
                report.cut_off = line + int(np.searchsorted(ends, at))
            carried = block[at:]
            line += int(np.searchsorted(ends, at))
        else:
            rows = _line_rows(numbers, counts, columns, line, following is None, report, text.path)
            line += len(ends) - (0 if block.endswith(b"\n") else 1)
        if not bool(np.all(np.abs(rows) < _LARGEST)):
            rows = np.where(np.abs(rows) < _LARGEST, rows, np.nan)
        report.rows += len(rows)
        if report.bad_row_count > 100 + report.rows // 2:
            raise FileError(
                f"Most rows do not have the {columns} numbers that the hierarchy announces; motion and hierarchy do not belong together.",
                text.path,
                report.bad_rows[0],
            )
        yield rows
        piece = following


def _commas(block: bytes, report: RowReport) -> bytes:
    if b"," not in block:
        return block
    if not report.commas:
        report.commas = "separators" if b"." in block else "decimal points"
    return unify_commas(block, report.commas == "decimal points")


def _line_ends(block: bytes) -> Indices:
    """Where the lines end, bytes; the last one also without its line feed."""
    b = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(b == 10)
    return ends if len(ends) and ends[-1] == len(block) - 1 else np.append(ends, len(block))


def _is_flowing(counts: Indices, columns: int, last: bool) -> bool:
    """Whether rows are spread over several lines, or several stand on one; judged by where the first two rows end."""
    filled = counts[counts > 0]
    if int(filled[0]) == columns:
        return False
    total = int(filled[-1])
    known = {int(c) for c in filled[: 2 * columns + 2]}
    if int(filled[0]) > columns:
        return int(filled[0]) % columns == 0
    return columns in known and (2 * columns in known or (last and total < 2 * columns))


def _flowing_rows(numbers: Numbers, columns: int) -> tuple[Array, int]:
    n = len(numbers.values) // columns
    return numbers.values[: n * columns].reshape(n, columns), n * columns


def _line_rows(numbers: Numbers, counts: Indices, columns: int, line: int, last: bool, report: RowReport, path: Path) -> Array:
    """One row a line. Lines with another number of values become rows of NaN; a short last line is left out."""
    per_line = np.diff(counts, prepend=0)
    good = per_line == columns
    if bool(np.all(good | (per_line == 0))):
        return numbers.values.reshape(-1, columns)
    filled = np.flatnonzero(per_line)
    bad = filled[per_line[filled] != columns]
    if report.rows == 0 and len(filled) > 1 and not good[filled[0]] and 2 * len(bad) > len(filled):
        found = int(per_line[filled[0]])
        raise FileError(
            f"A row has {found} numbers and the hierarchy announces {columns} channels; motion and hierarchy do not belong together.",
            path,
            line + int(filled[0]),
        )
    rows = np.full((len(filled), columns), np.nan)
    rows[good[filled]] = numbers.values[np.repeat(good, per_line)].reshape(-1, columns)
    if last and bad[-1] == filled[-1]:
        report.cut_off = line + int(bad[-1])
        rows, bad = rows[:-1], bad[:-1]
    report.bad_row_count += len(bad)
    report.bad_rows += [line + int(i) for i in bad[: 5 - len(report.bad_rows)]] if len(report.bad_rows) < 5 else []
    return rows


def _count_bad_values(numbers: Numbers, ends: Indices, line: int, report: RowReport) -> None:
    if numbers.unreadable or np.isnan(numbers.values[:1]).any() or np.isnan(numbers.values).any():
        bad = np.flatnonzero(np.isnan(numbers.values))
        if report.bad_values == 0:
            report.first_bad_value = line + int(np.searchsorted(ends, numbers.starts[bad[0]]))
        report.bad_values += len(bad)
