# SPDX-License-Identifier: GPL-3.0-or-later
"""The room that knows Blender."""

import bpy as _bpy  # noqa: F401  # first: outside Blender's own executable it puts addon_utils and the importers on the path
