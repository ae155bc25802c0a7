# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs one benchmark: ``scripts/bench NAME [--json] [--report]``.

A benchmark is a file ``scripts/benches/NAME.py`` with a function ``measure()`` that returns :class:`figures.Figure` objects. Each is
printed with its limit; the exit code is 1 when one falls short. ``--report`` prints the lines of its ``report()`` first, if it has one.
The result goes to ``docs/bench/NAME.json`` with date and commit.
"""

from __future__ import annotations

import contextlib
import datetime
import importlib
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any, Dict, List, Sequence

ROOT = Path(__file__).resolve().parents[2]
BENCHES = ROOT / "scripts" / "benches"


def main(arguments: List[str]) -> int:
    """Measure, print, write; exit code 1 when a figure falls short, 2 when there is no such benchmark."""
    names = [a for a in arguments if not a.startswith("-")]
    known = sorted(p.stem for p in BENCHES.glob("*.py") if not p.stem.startswith("_"))
    if len(names) != 1 or names[0] not in known or set(arguments) - {"--json", "--report", *names}:
        print(f"Usage: scripts/bench NAME [--json] [--report]; NAME is one of: {', '.join(known) or '(none yet)'}", file=sys.stderr)
        return 2
    sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]
    with contextlib.redirect_stdout(sys.stderr):
        bench = importlib.import_module(f"benches.{names[0]}")
        figures = bench.measure()
        lines: List[str] = bench.report() if "--report" in arguments and hasattr(bench, "report") else []
    record = {**setting(), "bench": names[0], "figures": [f.record() for f in figures]}
    write(ROOT / "docs" / "bench" / f"{names[0]}.json", record)
    if "--json" in arguments:
        print(json.dumps(record))
    else:
        width = max((len(f.name) for f in figures), default=0)
        print("\n".join([*lines, *(f.line(width) for f in figures)]))
    return 0 if figures and all(f.holds for f in figures) else 1


def setting() -> Dict[str, Any]:
    """When, from which commit and with what the figures were measured."""
    import numpy

    try:
        import bpy

        blender = bpy.app.version_string
    except ImportError:
        blender = None
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", "mocap_addon", "scripts")
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": _git("rev-parse", "HEAD") + ("+changes" if changed else ""),
        "blender": blender,
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "processors": os.cpu_count(),
    }


def write(path: Path, record: Dict[str, Any]) -> None:
    """The record as JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    part.replace(path)


def _git(*words: str) -> str:
    command: Sequence[str] = ("git", "-C", str(ROOT), *words)
    try:
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode().strip()
    except OSError:
        return ""


if __name__ == "__main__":
    # Everything that Blender prints while it works goes to standard error, so that the figures stand alone on standard output.
    keep = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(keep, "w", encoding="utf-8")
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # nothing is saved by Blender's own way out, which is slow and not always clean
