# SPDX-License-Identifier: GPL-3.0-or-later
"""pytest inside Blender: ``blender -b --factory-startup --python-exit-code 1 -P tests/run_in_blender.py -- ARGS``.

``MOCAP_TEST_SITE`` names a folder of pure-Python packages with pytest and hypothesis in it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), *filter(None, os.environ.get("MOCAP_TEST_SITE", "").split(os.pathsep))]

import pytest  # noqa: E402

args = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
os.chdir(ROOT)
code = int(pytest.main(["-p", "no:cacheprovider", *(args or ["tests/blender"])]))
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # Blender's own exit would hide the code and may outlive the tests
