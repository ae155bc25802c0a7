# SPDX-License-Identifier: GPL-3.0-or-later
"""``python -m mocap_addon.cli VERB ...``."""

from __future__ import annotations

import sys

from . import main

sys.exit(main(ends_process=True))
