# SPDX-License-Identifier: GPL-3.0-or-later
"""The bone table as a list."""

from __future__ import annotations

import bpy

from . import table_sync, words

GOOD, FAIR, BAD, NOTHING = "COLLECTION_COLOR_04", "COLLECTION_COLOR_03", "COLLECTION_COLOR_01", "BLANK1"

WIDE = 380.0
"""Sidebar width from which the body part has a column of its own."""


def colour(row: bpy.types.PropertyGroup) -> str:
    """Icon that says how closely the bone points where its source points."""
    if not row.sources or row.residual < 0.0:
        return NOTHING
    if row.residual <= words.GOOD_DEGREES:
        return GOOD
    return FAIR if row.residual <= words.FAIR_DEGREES else BAD


def doubtful(row: bpy.types.PropertyGroup) -> bool:
    """Whether a person should look at the row."""
    return bool(row.sources) and (row.confidence < words.DOUBTFUL or row.residual > words.FAIR_DEGREES)


def shown(row: bpy.types.PropertyGroup, which: str, text: str = "") -> bool:
    """Whether a row passes the filter ``which`` and contains ``text`` in its bone, body part or source."""
    if which == "MATCHED" and not row.sources:
        return False
    if which == "UNMATCHED" and row.sources:
        return False
    if which == "DOUBTFUL" and not doubtful(row):
        return False
    if which == "EDITED" and not (row.by_hand or table_sync.corrected(row)):
        return False
    return not text or text in f"{row.name}\n{words.part_words(row.role, row.rule)}\n{row.sources}".casefold()


class MOCAP_UL_bones(bpy.types.UIList):
    """Bones of the character, what they follow, and how well."""

    bl_idname = "MOCAP_UL_bones"

    def draw_item(self, context, layout, data, item, icon, active_data, active_property, index=0, flt_flag=0):
        wide = context.region.width / context.preferences.system.ui_scale > WIDE
        split = layout.split(factor=0.36 if wide else 0.5, align=True)
        left = split.row(align=True)
        left.label(text=item.name, icon=colour(item), translate=False)
        if wide:
            split = split.split(factor=0.45, align=True)
            split.label(text=words.part_words(item.role, item.rule))
        right = split.row(align=True)
        sources = table_sync.sources_of(item)
        text = " + ".join((sources[0], sources[-1])) if len(sources) > 1 else "".join(sources)
        if item.rule == "twist" and text:
            text = f"{item.blend:.0%} of the roll of {text}"
        right.label(text=text or "nothing", translate=False)
        marks = right.row(align=True)
        marks.alignment = "RIGHT"
        if doubtful(item):
            marks.label(icon="QUESTION")
        if table_sync.corrected(item):
            marks.label(icon="ORIENTATION_GIMBAL")
        if item.movable:
            marks.label(icon="EMPTY_ARROWS")

    def filter_items(self, context, data, property):
        which = context.scene.mocap.row_filter
        text = self.filter_name.casefold().strip("*")
        flags = [self.bitflag_filter_item if shown(row, which, text) else 0 for row in getattr(data, property)]
        return flags, []
