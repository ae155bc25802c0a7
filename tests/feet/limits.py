# SPDX-License-Identifier: GPL-3.0-or-later
"""The limits that a scene's measures have to keep, M1 to M10; M11 to M13 compare bakes with each other (test_plan.py)."""

from __future__ import annotations

from typing import NamedTuple

from .measure import Measures


class Row(NamedTuple):
    """A measure and its limit; ``lower``: whether it has to stay below."""

    name: str
    value: float
    limit: float
    unit: str
    lower: bool = True

    @property
    def holds(self) -> bool:
        return self.value <= self.limit if self.lower else self.value >= self.limit


def rows(m: Measures, *, noisy: bool = False, slides: bool = True) -> list[Row]:
    """All limits of one scene. ``noisy``: white noise was added, so that only contacts and places count; ``slides``: the source skates."""
    out = [
        Row("M2 drift, solid part", m.M2_drift, 2.0, "mm"),
        Row("M2 mean speed", m.M2_speed, 1.0, "cm/s"),
        Row("M6 contact F1", m.M6, 0.90 if noisy else 0.95, "", False),
        Row("M7 sole tilt, flat", m.M7, 1.0, "deg"),
        Row("M10 bone lengths", m.M10, 0.1, "mm"),
    ]
    if slides:
        out.append(Row("M3 weighted skate, of the source's", m.M3 / m.M3_source * 100, 20.0, "%"))
    if noisy:
        return out
    return [
        Row("M1 skating ratio in contact", m.M1 * 100, max(0.5, m.M1_source * 100), "%"),
        *out,
        Row("M4 penetration, contact", m.M4_contact, 5.0, "mm"),
        Row("M4 penetration, swing", m.M4_swing, 10.0, "mm"),
        Row("M5 gap", m.M5, 5.0, "mm"),
        Row("M8 knee, 99 % of second differences", m.M8_p99, m.M8_limit, "deg"),
        Row("M8 knees bent backwards", m.M8_flips, 0, ""),
        Row("M9 beyond reach", m.M9_reach, 1e-6, "mm"),
        Row("M9 pelvis jerk, of the source's", m.M9, 1.5, "x"),
    ]
