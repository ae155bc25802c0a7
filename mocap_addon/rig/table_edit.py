# SPDX-License-Identifier: GPL-3.0-or-later
"""Mirroring corrections from one side of the body to the other.

A reflection in x takes the rotation about the axis ``(x, y, z)`` to the one about ``(x, -y, -z)`` by the same angle (an
axis is a pseudo-vector: the part along the mirrored direction keeps its sign). A row's correction is three intrinsic
turns about X, Y and Z; reflected one by one they are the turns ``(x, -y, -z)``, so no conversion is needed and nothing is
rounded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from .roles import mirrored
from .table import CorrectionTable, Row

Triple = tuple[float, float, float]


def mirror_correction(correction: Triple) -> Triple:
    """Degrees, intrinsic XYZ in character axes, reflected in x."""
    x, y, z = correction
    return x, 0.0 - y, 0.0 - z  # not -y: a zero stays a plain zero


def mirror_row(row: Row, onto: Row) -> Row:
    """``onto`` with the reflected correction (and the movable flag) of ``row``; its bones stay its own."""
    return replace(onto, correction=mirror_correction(row.correction), movable=row.movable)


def mirror_table(table: CorrectionTable, side: Literal["left", "right"] = "left") -> CorrectionTable:
    """Every correction of ``side`` reflected onto the other side; the centre stays.

    A chain's links are paired in their order along the chain; where the sides have different counts, the surplus links stay as they are.
    """
    groups: dict[str, list[Row]] = {}
    for row in table.rows:
        groups.setdefault(row.role, []).append(row)
    out = table
    for role, rows in groups.items():
        if not role.startswith(side):
            continue
        for row, onto in zip(rows, groups.get(mirrored(role), []), strict=False):
            out = out.with_row(mirror_row(row, onto))
    return out
