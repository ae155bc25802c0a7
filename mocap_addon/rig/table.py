# SPDX-License-Identifier: GPL-3.0-or-later
"""The correction table: which bone follows which, by what rule, with what correction.

The table is data that a person can read, edit, save and share. :mod:`mocap_addon.retarget` computes it (``retarget.build_table``) and
applies it (``retarget.retarget``).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

Rule = Literal["copy", "blend", "chord", "twist"]

VERSION = 1
"""Version of the saved table. Readers accept every version up to this one."""


@dataclass(frozen=True)
class Row:
    """One target bone.

    Parameters
    ----------
    role : str
        The role (for a chain, the same role on each of its links).
    target : str
        Name of the bone that moves.
    source : tuple of str
        ``copy``: one joint. ``blend``: two neighbouring links of a chain. ``chord``: every link of the chain, from the body outwards.
    rule : "copy", "blend", "chord" or "twist"
        ``copy``: the target turns away from its reference pose as the source does from its own. ``blend``: as the slerp of the two links
        does. ``chord``: one target bone for several links: it aims along the chain's chord, with the last link's twist (below elbow and
        knee: the first's). ``twist``: a twist bone; it shares the roll that the target's own limb has (:mod:`..rig.twist`), and the source
        only says whose roll that is.
    blend : float
        Share (0..1) of the second link in ``blend``; of the limb's roll in ``twist``, 0: the bone gets no keys.
    correction : (float, float, float)
        Degrees, intrinsic XYZ in character axes (left, back, up) at the reference pose; added by hand on top of the alignment.
    movable : bool
        Whether the bone's location is keyed too (hips as a rule).
    alignment : (float, float, float)
        Degrees, rotation vector in character axes: how far the target's rest was turned to meet the source's reference. Computed, for
        information.
    residual : float
        Degrees between the two bones' directions at the reference pose after alignment and correction. NaN where a direction means nothing.
    hinge : float
        Degrees between the hinge axes of elbow or knee at the reference pose; NaN elsewhere.
    confidence : float
        0..1, the weaker of the two matches.
    """

    role: str
    target: str
    source: tuple[str, ...]
    rule: Rule = "copy"
    blend: float = 0.0
    correction: tuple[float, float, float] = (0.0, 0.0, 0.0)
    movable: bool = False
    alignment: tuple[float, float, float] = (0.0, 0.0, 0.0)
    residual: float = float("nan")
    hinge: float = float("nan")
    confidence: float = 1.0


@dataclass(frozen=True)
class CorrectionTable:
    """Rows in the target's order, and where they came from."""

    rows: tuple[Row, ...]
    source_family: str = ""
    target_family: str = ""
    unmapped_target: tuple[str, ...] = ()
    unmapped_source: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    version: int = VERSION
    extra: dict[str, object] = field(default_factory=dict[str, object])

    def row(self, target: str) -> Row | None:
        """The row of the target bone, or None."""
        return next((row for row in self.rows if row.target == target), None)

    def with_row(self, row: Row) -> CorrectionTable:
        """The table with the row of the same target replaced, or appended."""
        if self.row(row.target) is None:
            return replace(self, rows=(*self.rows, row))
        return replace(self, rows=tuple(row if r.target == row.target else r for r in self.rows))
