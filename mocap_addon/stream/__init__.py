# SPDX-License-Identifier: GPL-3.0-or-later
"""Wire <-> frames: one module a protocol, and what receives, keeps and sends them. Standard library and numpy alone."""
