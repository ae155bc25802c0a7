# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows on the armature object <-> the ``CorrectionTable`` of the core.

The rows are the truth of the window: what stands there is what Retarget uses. Degrees there, radians here: Blender's angle sliders store
radians in float32, so values are rounded to what a person could have typed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import replace

import bpy

from ..rig.table import VERSION, CorrectionTable, Row
from . import properties
from .properties import UNKNOWN, MocapRow

_DECIMALS = 4


def has_table(obj: bpy.types.Object) -> bool:
    """Whether the bones were matched before."""
    return len(obj.mocap.rows) > 0


def active_row(obj: bpy.types.Object) -> MocapRow | None:
    """The row chosen in the list."""
    settings = obj.mocap
    return settings.rows[settings.active_row] if 0 <= settings.active_row < len(settings.rows) else None


def is_edited(obj: bpy.types.Object) -> bool:
    """Whether a person put work into the table: a correction, or a bone chosen by hand."""
    return any(row.by_hand or corrected(row) for row in obj.mocap.rows)


def corrected(row: MocapRow) -> bool:
    """Whether the row has a correction."""
    return any(abs(a) > 1e-7 for a in row.correction)


def about(obj: bpy.types.Object) -> dict[str, object]:
    """Families, notes and the like of the stored table."""
    return json.loads(obj.mocap.about or "{}")


def to_table(obj: bpy.types.Object) -> CorrectionTable | None:
    """The table as it stands in the window, or None when the bones were never matched."""
    if not has_table(obj):
        return None
    facts = about(obj)
    rows = obj.mocap.rows
    return CorrectionTable(
        rows=tuple(_to_row(row) for row in rows if row.sources),
        source_family=str(facts.get("source_family", "")),
        target_family=str(facts.get("target_family", "")),
        unmapped_target=tuple(row.name for row in rows if not row.sources),
        unmapped_source=tuple(facts.get("unmapped_source", ())),
        notes=tuple(facts.get("notes", ())),
        version=int(facts.get("version", VERSION)),
        extra=dict(facts.get("extra", {})),
    )


def from_table(obj: bpy.types.Object, table: CorrectionTable, *, by_hand: bool = False) -> None:
    """Put ``table`` on the object, in place of what was there. Bones that follow nothing stand last.

    ``by_hand``: a person made this table (it was loaded from a file), so nothing replaces it unasked.
    """
    settings = obj.mocap
    chosen = active_row(obj)
    active = chosen.name if chosen is not None else ""
    settings.rows.clear()
    with properties.quiet():
        for entry in table.rows:
            _from_row(settings.rows.add(), entry, by_hand=by_hand)
    for name in table.unmapped_target:
        settings.rows.add().name = name
    settings.about = json.dumps(
        {
            "source_family": table.source_family,
            "target_family": table.target_family,
            "unmapped_source": list(table.unmapped_source),
            "notes": list(table.notes),
            "version": table.version,
            "extra": table.extra,
        }
    )
    settings.active_row = max(settings.rows.find(active), 0)


def set_measures(obj: bpy.types.Object, table: CorrectionTable) -> None:
    """Residuals and alignment of ``table`` into the rows of the same bones; nothing else changes."""
    rows = obj.mocap.rows
    for entry in table.rows:
        row = rows.get(entry.target)
        if row is not None:
            _set_measures(row, entry)


def set_corrections(obj: bpy.types.Object, table: CorrectionTable) -> None:
    """Corrections and movable marks of ``table`` into the rows of the same bones."""
    with properties.quiet():
        for entry in table.rows:
            row = obj.mocap.rows[entry.target]
            row.correction = [math.radians(a) for a in entry.correction]
            row.movable = entry.movable


def carry_corrections(old: CorrectionTable | None, new: CorrectionTable) -> CorrectionTable:
    """``new`` with the corrections that ``old`` has for the same bones: a fresh match does not throw a person's work away."""
    kept = {} if old is None else {row.target: row.correction for row in old.rows if any(row.correction)}
    for row in new.rows:
        if row.target in kept:
            new = new.with_row(replace(row, correction=kept[row.target]))
    return new


def fitted(table: CorrectionTable, bones: Collection[str]) -> tuple[CorrectionTable, list[str]]:
    """The table cut down to the character's bones, and the names of those left out."""
    dropped = [row.target for row in table.rows if row.target not in bones]
    rows = tuple(row for row in table.rows if row.target in bones)
    following = {row.target for row in rows}
    rest = tuple(name for name in bones if name not in following)
    return replace(table, rows=rows, unmapped_target=rest), dropped


def strangers(table: CorrectionTable, joints: Collection[str], bones: Collection[str]) -> tuple[list[str], list[str]]:
    """Names in the table that the take's joints or the character's bones do not have."""
    sources = dict.fromkeys(name for row in table.rows for name in row.source if name not in joints)
    targets = dict.fromkeys(row.target for row in table.rows if row.target not in bones)
    return list(sources), list(targets)


def suits_take(obj: bpy.types.Object, joints: Collection[str]) -> bool:
    """Whether the take has every bone that the rows follow; True as long as no take is known."""
    have = set(joints)
    return not have or all(name in have for row in obj.mocap.rows if row.sources for name in sources_of(row))


def sources_of(row: MocapRow) -> list[str]:
    """The bones of the take that the row follows."""
    return json.loads(row.sources or "[]")


def _to_row(row: MocapRow) -> Row:
    return Row(
        role=row.role,
        target=row.name,
        source=tuple(sources_of(row)),
        rule=row.rule,
        blend=round(row.blend, 6),
        correction=_degrees(row.correction),
        movable=row.movable,
        alignment=_degrees(row.alignment),
        residual=_number(row.residual),
        hinge=_number(row.hinge),
        confidence=round(row.confidence, 6),
    )


def _from_row(row: MocapRow, entry: Row, *, by_hand: bool) -> None:
    row.name = entry.target
    row.role = entry.role
    row.sources = json.dumps(list(entry.source)) if entry.source else ""
    row.rule = entry.rule
    row.blend = entry.blend
    row.correction = [math.radians(a) for a in entry.correction]
    row.movable = entry.movable
    _set_measures(row, entry)
    row.confidence = entry.confidence
    row.by_hand = by_hand


def _set_measures(row: MocapRow, entry: Row) -> None:
    row.alignment = [math.radians(a) for a in entry.alignment]
    row.residual = UNKNOWN if math.isnan(entry.residual) else entry.residual
    row.hinge = UNKNOWN if math.isnan(entry.hinge) else entry.hinge


def _degrees(radians: Collection[float]) -> tuple[float, float, float]:
    x, y, z = (round(math.degrees(a), _DECIMALS) + 0.0 for a in radians)
    return x, y, z


def _number(value: float) -> float:
    return float("nan") if value < 0.0 else round(value, 6)
