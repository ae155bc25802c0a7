# SPDX-License-Identifier: GPL-3.0-or-later
"""One master body and motion, drawn to many standards; every ordered pair of them has a known truth."""
