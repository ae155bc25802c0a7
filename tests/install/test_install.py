# SPDX-License-Identifier: GPL-3.0-or-later
"""The built zip in a fresh Blender of the version that runs the tests: installed, used, disabled, enabled and used again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.paths import ROOT

bpy = pytest.importorskip("bpy", reason="this Python has no bpy; the zip is installed in Blender or in a bpy wheel")

MANIFEST_FILES = {"__init__.py", "blender_manifest.toml", "LICENSE", "wheels/tomli_w-1.2.0-py3-none-any.whl"}


@pytest.fixture(scope="module")
def zip_file() -> Path:
    """The zip that the matrix has built; otherwise one built now."""
    if "MOCAP_ZIP" in os.environ:
        return Path(os.environ["MOCAP_ZIP"])
    done = subprocess.run([sys.executable, str(ROOT / "scripts" / "support" / "build.py")], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.splitlines()[-1])


def blender(script: Path, *arguments: str | Path) -> list[str]:
    """The command that runs a script in a fresh Blender of this version."""
    words = [str(a) for a in arguments]
    if not bpy.app.binary_path:
        return [sys.executable, "-I", str(script), "--", *words]
    return [bpy.app.binary_path, "--background", "--factory-startup", "--python-exit-code", "1", "--python", str(script), "--", *words]


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> dict[str, str]:
    """Variables of a Blender that has never been started, and cannot see the checkout."""
    keep = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "MOCAP_TEST_SITE") and not k.startswith("BLENDER_USER")}
    return {**keep, "BLENDER_USER_RESOURCES": str(tmp_path_factory.mktemp("resources"))}


@pytest.fixture(scope="module")
def installed(zip_file, home, tmp_path_factory) -> subprocess.CompletedProcess:
    folder = tmp_path_factory.mktemp("work")
    command = blender(ROOT / "tests" / "install" / "installed.py", zip_file, folder)
    return subprocess.run(command, cwd=folder, env=home, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)


def test_the_zip_holds_the_package_and_nothing_else(zip_file):
    with zipfile.ZipFile(zip_file) as archive:
        names = {n for n in archive.namelist() if not n.endswith("/")}
    assert names >= MANIFEST_FILES
    package = {p.relative_to(ROOT / "mocap_addon").as_posix() for p in (ROOT / "mocap_addon").rglob("*.py")}
    assert package <= names
    tops = {n.split("/")[0] for n in names}
    assert not tops & {"tests", "scripts", "docs", ".git", ".venv", ".tools"}
    assert not [n for n in names if "__pycache__" in n or n.endswith((".pyc", ".so", ".pyd", ".blend1"))]


def test_installed_used_disabled_and_enabled_again(installed):
    assert installed.returncode == 0, installed.stdout[-3000:] + installed.stderr[-3000:]
    assert "INSTALLED AND USED" in installed.stdout


@pytest.mark.skipif(not bpy.app.binary_path, reason="the Python module of Blender has no --command")
def test_the_command_line_of_an_installed_extension(installed, home, tmp_path):
    assert installed.returncode == 0, installed.stderr[-3000:]
    take = ROOT / "mocap_addon" / "demo" / "zombieWalk1.bvh"
    command = [bpy.app.binary_path, "--background", "--command", "mocap", "info", str(take), "--json"]
    done = subprocess.run(command, cwd=tmp_path, env=home, capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stdout + done.stderr
    (record,) = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert record["frames"] == 31
    wrong = subprocess.run([*command[:4], "info", "nowhere.bvh"], cwd=tmp_path, env=home, capture_output=True, text=True, timeout=120)
    assert wrong.returncode == 1 and "nowhere.bvh" in wrong.stderr and "Traceback" not in wrong.stderr
