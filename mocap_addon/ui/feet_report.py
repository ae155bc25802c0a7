# SPDX-License-Identifier: GPL-3.0-or-later
"""A feet report as words in a table. No bpy, no state."""

from __future__ import annotations

from collections.abc import Mapping


def rows(report: Mapping[str, object]) -> list[tuple[str, str, str]]:
    """What was measured, before and after."""
    before, after = report.get("before"), report.get("after")
    if not isinstance(before, Mapping) or not isinstance(after, Mapping):
        return []
    return [(_label(name), _number(before.get(name)), _number(value)) for name, value in after.items() if _number(value)]


def sentences(report: Mapping[str, object]) -> list[str]:
    """Notes of the report."""
    notes = report.get("notes")
    return [str(note) for note in notes] if isinstance(notes, list | tuple) else []


def _label(name: str) -> str:
    return name.replace("_", " ")


def _number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) and not isinstance(value, bool) else ""
