# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line from a checkout: ``blender --background --python scripts/mocap.py -- VERB ...``.

``scripts/mocap`` runs the same file with the Python module of Blender. Add ``--python-exit-code 1`` before ``--python`` so that Blender
passes a crash on too; the verbs' own exit codes always come through.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def main() -> int:
    """Put the checkout and its bundled wheels on the path, and hand over what stands behind ``--``."""
    here = str(ROOT / "scripts")
    sys.path[:] = [str(ROOT), *(p for p in sys.path if p not in (here, str(ROOT))), *map(str, sorted((ROOT / "wheels").glob("*.whl")))]
    from mocap_addon import cli

    arguments = sys.argv[sys.argv.index("--") + 1 :] if "--" in sys.argv else []
    return cli.main(arguments, ends_process=True, called=os.environ.get("MOCAP_CALLED") or "mocap")


if __name__ == "__main__":
    sys.exit(main())
