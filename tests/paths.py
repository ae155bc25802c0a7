# SPDX-License-Identifier: GPL-3.0-or-later
"""Where tests find their files."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared" / "data"


def need(path: Path) -> Path:
    """The path, or a skip that names what is missing."""
    if not path.exists():
        import pytest

        pytest.skip(f"{path.name} is not here (looked in {path.parent.name}/ beside the repository)")
    return path
