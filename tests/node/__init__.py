# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls three.js in Node: the independent reader of what the exporter writes."""

from __future__ import annotations

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


def run(script: str, request: object) -> Any:
    """What ``script`` answers to ``request``; a skip with a reason where Node or three.js cannot be had."""
    node, why = _ready()
    if why:
        import pytest

        pytest.skip(why)
    done = subprocess.run(
        [node, str(HERE / script)], input=json.dumps(request), capture_output=True, text=True, timeout=120, encoding="utf-8"
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@cache
def _ready() -> tuple[str, str]:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None:
        return "", "Node is not installed (the program `node`), so nothing can be played in three.js"
    wanted = json.loads((HERE / "package.json").read_text())["dependencies"]
    if all(_version(name) == version for name, version in wanted.items()):
        return node, ""
    if npm is None:
        return "", "npm is not installed, so three.js cannot be fetched"
    done = subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=HERE, capture_output=True, text=True, timeout=300)
    return (node, "") if done.returncode == 0 else ("", "three.js could not be fetched by npm (is there a network?)")


def _version(package: str) -> str:
    installed = HERE / "node_modules" / package / "package.json"
    return json.loads(installed.read_text())["version"] if installed.exists() else ""
