# SPDX-License-Identifier: GPL-3.0-or-later
"""Feet on the ground: contacts, a Ground to trace against, ALS offsets or planting, the pelvis, the leg solve, the report. numpy only."""
