# SPDX-License-Identifier: GPL-3.0-or-later
"""Which bone is which, and the correction table: naming families (data files), the matcher, its report, the table's file form."""

from __future__ import annotations

from .families import families
from .matcher import match, require_humanoid
from .report import Report, analyse, report
from .table_edit import mirror_row, mirror_table
from .table_file import dumps, load_table, loads, save_table

__all__ = [
    "Report",
    "analyse",
    "dumps",
    "families",
    "load_table",
    "loads",
    "match",
    "mirror_row",
    "mirror_table",
    "report",
    "require_humanoid",
    "save_table",
]
