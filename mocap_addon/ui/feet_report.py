# SPDX-License-Identifier: GPL-3.0-or-later
"""A feet report as words in tables. No bpy, no state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_UNITS = {"cm_s": "cm/s", "mm": "mm", "m": "m", "s": "s"}

_LABELS = {
    "skate_cm_s": "Standing feet slide",
    "skate_max_cm_s": "Slide at most",
    "penetration_contact_mm": "Sole too deep",
    "gap_mm": "Sole too high",
    "penetration_swing_mm": "Swings too deep",
}
"""Figures that say something to who looks at feet, in this order. The others are for comparing with papers; the report keeps them."""

_FEWEST = 12
"""Contacts that are listed."""


def rows(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What was measured, before and after."""
    before, after = report.get("before"), report.get("after")
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return []
    return [
        (text, number(name, before.get(name)), number(name, after.get(name)))
        for name, text in _LABELS.items()
        if number(name, after.get(name))
    ]


def contact_rows(report: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """One row a contact: when, how far the foot slid in the source, and how far it does now."""
    contacts = report.get("contacts")
    out: list[tuple[str, str, str]] = []
    for one in list(contacts)[:_FEWEST] if isinstance(contacts, list | tuple) else ():
        what = f"{one['side'][:1].upper()} {one['start_s']:.2f} to {one['end_s']:.2f} s"
        after = f"{one['slid_mm']:.1f} mm" if one.get("reached", True) else "out of reach"
        out.append((what, f"{one['source_slid_mm']:.0f} mm", after))
    return out


def sentences(report: Mapping[str, Any]) -> list[str]:
    """What the tables do not say."""
    out: list[str] = []
    pelvis = report.get("pelvis")
    if isinstance(pelvis, Mapping):
        low, high = pelvis.get("lowest_mm", 0.0), pelvis.get("highest_mm", 0.0)
        out.append(f"The hips go {max(-low, 0.0) / 10.0:.1f} cm down and {max(high, 0.0) / 10.0:.1f} cm up at most.")
    unreached = report.get("unreached_frames")
    if unreached:
        out.append(f"A foot is out of reach on {unreached} frames, by up to {report.get('unreached_mm', 0.0):.0f} mm.")
    contacts = report.get("contacts")
    if isinstance(contacts, list | tuple) and len(contacts) > _FEWEST:
        out.append(f"{len(contacts) - _FEWEST} more contacts are not listed.")
    return out


def number(name: str, value: object) -> str:
    """A figure with its unit; empty for what is none."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return ""
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(f"_{end}")), "")
    return f"{value:.1f} {unit}".strip()
